//! What a writer was refused for want of memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last refusal, until as much is given to some writer or can be had.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    /// The class that was refused, or 0. Whoever is given memory looks here first.
    class: AtomicU64,
    refusal: Mutex<Option<Refusal>>,
}

/// A writer was refused a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Of this class.
    pub(crate) class: u64,
    /// Why, for people to read.
    pub(crate) why: String,
    /// The system refused it; otherwise this process's own limit did.
    pub(crate) is_by_system: bool,
    /// When, on the monotonic clock.
    pub(crate) at_ns: u64,
}

impl Shortage {
    pub(crate) fn begin(&self, refusal: Refusal) {
        let mut last = self.lock();
        self.class.store(refusal.class, Ordering::Relaxed);
        *last = Some(refusal);
    }

    /// A writer was given a block of this class.
    pub(crate) fn given(&self, class: u64) {
        let refused = self.class.load(Ordering::Relaxed);
        if refused != 0 && refused <= class {
            self.end(|refusal| refusal.class <= class);
        }
    }

    pub(crate) fn end(&self, is_over: impl FnOnce(&Refusal) -> bool) {
        let mut last = self.lock();
        if last.as_ref().is_some_and(is_over) {
            self.class.store(0, Ordering::Relaxed);
            *last = None;
        }
    }

    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if self.class.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.lock().clone()
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
