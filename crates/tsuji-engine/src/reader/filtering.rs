//! What is filtered out of what foreign writers send, as it arrives.

use std::collections::HashMap;
use std::fmt;

use tsuji_transport::{ByteFilter, Gid};

/// The filter of a reader, and what it has filtered out.
#[derive(Default)]
pub(super) struct Filtering {
    filter: Option<ByteFilter>,
    filtered: u64,
    /// By writers that are not forgotten.
    of_writers: HashMap<Gid, u64>,
}

impl Filtering {
    pub(super) fn set(&mut self, filter: Option<ByteFilter>) {
        self.filter = filter;
    }

    /// Whether a sample is filtered out, which is counted.
    pub(super) fn rejects(&mut self, writer: Gid, bytes: &[u8]) -> bool {
        let is_filtered = self.filter.as_ref().is_some_and(|filter| !filter(bytes));
        if is_filtered {
            self.filtered += 1;
            *self.of_writers.entry(writer).or_default() += 1;
        }
        is_filtered
    }

    pub(super) fn forget(&mut self, writer: Gid) {
        self.of_writers.remove(&writer);
    }

    pub(super) fn filtered(&self) -> u64 {
        self.filtered
    }

    pub(super) fn filtered_of(&self, writer: Gid) -> u64 {
        self.of_writers.get(&writer).copied().unwrap_or(0)
    }
}

impl fmt::Debug for Filtering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtering").field("filtered", &self.filtered).finish_non_exhaustive()
    }
}
