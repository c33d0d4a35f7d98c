//! What the lock-free code of this crate stands on: the real thing, or what loom and miri can look
//! through.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(any(loom, miri)))]
pub(crate) use tsuji_platform::futex;

/// A number that a thread can sleep on.
#[cfg(not(any(loom, miri)))]
pub(crate) type Word = AtomicU32;

#[cfg(any(loom, miri))]
pub(crate) use model::{Word, futex};

#[cfg(any(loom, miri))]
mod model {
    use std::ops::Deref;

    #[cfg(loom)]
    use loom::sync::{Condvar, Mutex};
    #[cfg(not(loom))]
    use std::sync::{Condvar, Mutex};

    use super::AtomicU32;

    /// A number, and the queue of its sleepers that the kernel would keep.
    #[derive(Debug)]
    pub(crate) struct Word {
        value: AtomicU32,
        sleepers: Mutex<()>,
        woken: Condvar,
    }

    impl Word {
        pub(crate) fn new(value: u32) -> Self {
            Self { value: AtomicU32::new(value), sleepers: Mutex::new(()), woken: Condvar::new() }
        }
    }

    impl Deref for Word {
        type Target = AtomicU32;

        fn deref(&self) -> &AtomicU32 {
            &self.value
        }
    }

    /// What the kernel does: looking and falling asleep are one step for whoever wakes.
    pub(crate) mod futex {
        use std::sync::PoisonError;
        use std::time::Duration;

        use super::super::Ordering;
        use super::Word;

        pub(crate) fn wait(word: &Word, expected: u32, timeout: Option<Duration>) {
            let sleepers = word.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            if word.load(Ordering::Relaxed) != expected {
                return;
            }
            match timeout {
                None => drop(word.woken.wait(sleepers)),
                Some(timeout) => drop(word.woken.wait_timeout(sleepers, timeout)),
            }
        }

        pub(crate) fn wake(word: &Word, count: u32) {
            let _sleepers = word.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            (0..count).for_each(|_| word.woken.notify_one());
        }

        // Here all threads are of one process.
        pub(crate) use wait as wait_private;
        pub(crate) use wake as wake_private;

        pub(crate) fn clear_and_wake_one(word: &Word) {
            let _sleepers = word.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            word.swap(0, Ordering::AcqRel);
            word.woken.notify_one();
        }
    }
}
