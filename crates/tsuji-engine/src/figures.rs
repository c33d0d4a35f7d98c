//! What a participant counts.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::reader::Dropped;

#[derive(Debug, Default)]
pub(crate) struct Figures {
    doubled_samples: AtomicU64,
    doubled_bytes: AtomicU64,
    invalid_samples: AtomicU64,
}

impl Figures {
    /// Samples that came from writers that the reader was not told of, and were dropped.
    pub(crate) fn count_doubled(&self, dropped: Dropped) {
        self.doubled_samples.fetch_add(dropped.samples, Ordering::Relaxed);
        self.doubled_bytes.fetch_add(dropped.bytes, Ordering::Relaxed);
    }

    /// A sample that is no plain CDR, and was dropped.
    pub(crate) fn count_invalid(&self) {
        self.invalid_samples.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        vec![
            ("doubled_samples", read(&self.doubled_samples)),
            ("doubled_bytes", read(&self.doubled_bytes)),
            ("invalid_samples", read(&self.invalid_samples)),
        ]
    }
}
