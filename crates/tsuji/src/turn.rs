//! Taking and handing on as one step, so that what comes in order is handed on in order.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock;
use tsuji_platform::ordered::{Mutex, MutexGuard};

/// Held by the thread that takes what has come and hands it on.
#[derive(Default)]
pub(crate) struct Turn {
    mutex: Mutex<()>,
    /// That thread, or 0.
    holder: AtomicUsize,
}

/// The turn of this thread, until it is dropped.
pub(crate) struct Held<'a> {
    holder: &'a AtomicUsize,
    _guard: MutexGuard<'a, ()>,
}

impl Turn {
    /// Waits for the turn. `None` if this thread has it: what it hands on, or drops meanwhile, is the user's and asks for
    /// more.
    pub(crate) fn take(&self) -> Option<Held<'_>> {
        let here = this_thread();
        if self.holder.load(Ordering::Relaxed) == here {
            return None;
        }
        let guard = lock(&self.mutex);
        self.holder.store(here, Ordering::Relaxed);
        Some(Held { holder: &self.holder, _guard: guard })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

/// A number that no other thread has while this one lives, and that is not 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_turn_once_and_others_wait_for_it() {
        let turn = Turn::default();
        let count = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let held = turn.take().unwrap();
                        assert!(turn.take().is_none());
                        let seen = *lock(&count);
                        *lock(&count) = seen + 1;
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(*lock(&count), 4000);
    }
}
