//! How the thread of the connections is woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Wakes the thread of the connections, at most once for many messages, and says who has something new.
#[derive(Debug)]
pub(crate) struct Wake {
    waker: mio::Waker,
    is_asleep: AtomicBool,
    is_over: AtomicBool,
    /// Clients with something new, by their places.
    dirty: Mutex<Vec<usize>>,
}

impl Wake {
    pub(crate) fn new(waker: mio::Waker) -> Self {
        let (is_asleep, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { waker, is_asleep, is_over, dirty: Mutex::default() }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.now();
    }

    /// Whether it shall end.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Lets it look around.
    pub(crate) fn now(&self) {
        // It fails only where nobody is left to be woken.
        let _ = self.waker.wake();
    }

    /// Says that the client at `place` has something new.
    pub(crate) fn dirty(&self, place: usize) {
        self.lock().push(place);
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            self.now();
        }
    }

    /// Says that the thread is about to sleep; whether it may.
    pub(crate) fn falls_asleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        let may = self.lock().is_empty() && !self.is_over();
        if !may {
            self.is_asleep.store(false, Ordering::SeqCst);
        }
        may
    }

    /// Says that it does not sleep, and takes the places of those with something new.
    pub(crate) fn is_awake(&self, dirty: &mut Vec<usize>) {
        self.is_asleep.store(false, Ordering::SeqCst);
        dirty.clear();
        std::mem::swap(&mut *self.lock(), dirty);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
