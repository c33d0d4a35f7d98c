//! What is filtered out of what foreign writers send, as it arrives.

use std::collections::HashMap;
use std::fmt;

use tsuji_transport::{Gid, Sieve};

/// The sieve of a reader, and what it has filtered out.
#[derive(Default)]
pub(super) struct Sifting {
    sieve: Option<Sieve>,
    filtered: u64,
    /// By writers that are not forgotten.
    of_writers: HashMap<Gid, u64>,
}

impl Sifting {
    pub(super) fn set(&mut self, sieve: Option<Sieve>) {
        self.sieve = sieve;
    }

    /// Whether a sample is filtered out, which is counted.
    pub(super) fn rejects(&mut self, writer: Gid, bytes: &[u8]) -> bool {
        let is_filtered = self.sieve.as_ref().is_some_and(|sieve| !sieve(bytes));
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

impl fmt::Debug for Sifting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sifting").field("filtered", &self.filtered).finish_non_exhaustive()
    }
}
