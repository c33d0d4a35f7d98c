//! Locks whose contents are sound whoever panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what nobody leaves half done, whoever panics while it is held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
