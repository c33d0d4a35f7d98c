//! Waking whoever waits for something to change.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tsuji_platform::ordered::{Condvar, MutexGuard};

/// A condition variable that costs no system call while nobody waits.
#[derive(Default)]
pub(crate) struct Changes {
    news: Condvar,
    waiting: AtomicUsize,
}

impl Changes {
    /// Wakes all who wait. What has changed was changed under the lock that they wait with.
    pub(crate) fn tell(&self) {
        // Whoever waits has said so under that lock, and whoever comes sees the change.
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.news.notify_all();
        }
    }

    /// Waits for a change, or for this time, or for no reason.
    pub(crate) fn wait<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        at_most: Duration,
    ) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.news.wait_timeout(guard, at_most);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
