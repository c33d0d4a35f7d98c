//! What is the user's waits until no lock is held.
//!
//! A value may do anything when it is dropped, a waker when it wakes, a tracing subscriber when it is told
//! something, and each may come back to whoever holds the lock. So whoever holds one leaves such things to
//! [`later`], and they are done when the thread gives its last lock back.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{OnceLock, PoisonError};

use tsuji_platform::ordered::{Mutex, MutexGuard};

thread_local! {
    /// Locks by [`lock`] that this thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
    static WAITING: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

/// Locks a mutex. What is left to [`later`] while it is held is done when this thread holds none any more.
///
/// A poisoned one is taken as it is: whoever uses this leaves nothing half done where it may panic.
pub fn lock<T>(mutex: &Mutex<T>) -> Locked<'_, T> {
    let hold = Hold::begin();
    Locked { guard: mutex.lock().unwrap_or_else(PoisonError::into_inner), _hold: hold }
}

/// Does something of the user's: now, or where this thread holds a lock, when it has given that back.
pub fn later(action: impl FnOnce() + 'static) {
    if HELD.get() == 0 {
        return action();
    }
    let mut action = Some(action);
    let left = WAITING.try_with(|waiting| {
        let Some(action) = action.take() else { return };
        waiting.borrow_mut().push(Box::new(action));
    });
    // The thread ends: nothing of it can be waited for.
    if left.is_err()
        && let Some(action) = action
    {
        action();
    }
}

/// Drops a value, which may be the user's, as [`later`] does.
pub fn drop_later(value: impl Sized + 'static) {
    later(move || drop(value));
}

/// Does something of the user's on a thread of its own, which is started with the first: for whoever is called while
/// others, such as an engine, hold locks that nobody here knows. Beyond [`ELSEWHERE_MAX`] that wait it is left undone.
pub fn elsewhere(action: impl FnOnce() + Send + 'static) {
    type Action = Box<dyn FnOnce() + Send>;
    static THREAD: OnceLock<SyncSender<Action>> = OnceLock::new();
    if THREAD.get().is_none() {
        let (sender, actions) = sync_channel::<Action>(ELSEWHERE_MAX);
        let work = move || actions.into_iter().for_each(|action| action());
        let thread = std::thread::Builder::new().name("tsuji-told".to_owned());
        // Where none can be had now, the next that comes asks again; of two at once one ends, as its sender is dropped.
        if thread.stack_size(256 * 1024).spawn(work).is_ok() {
            let _ = THREAD.set(sender);
        }
    }
    if let Some(thread) = THREAD.get() {
        // In a forked child nobody takes it.
        let _ = thread.try_send(Box::new(action));
    }
}

/// What may wait for [`elsewhere`].
pub const ELSEWHERE_MAX: usize = 256;

/// A locked mutex.
// The guard is the first field: it is gone before what has waited is done.
#[derive(Debug)]
pub struct Locked<'a, T> {
    guard: MutexGuard<'a, T>,
    _hold: Hold,
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[derive(Debug)]
struct Hold(());

impl Hold {
    #[inline]
    fn begin() -> Self {
        HELD.set(HELD.get() + 1);
        Self(())
    }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        let left = HELD.get() - 1;
        HELD.set(left);
        if left == 0 {
            do_waiting();
        }
    }
}

#[inline]
fn do_waiting() {
    let is_some = WAITING.try_with(|waiting| !waiting.borrow().is_empty());
    if is_some.unwrap_or(false) {
        do_all();
    }
}

/// What it does may leave more to be done, by the locks that it takes and gives back itself.
#[cold]
fn do_all() {
    let Ok(waiting) = WAITING.try_with(RefCell::take) else { return };
    for action in waiting {
        action();
    }
}

/// The macros of [`report`] and of `tracing`, but for what is told while this thread holds a lock: that it is told when
/// none is held, with what the values were.
///
/// Fields are `name = %value`, `name = ?value`, `name = value`, `%name`, `?name` and `name`, and each is shown as its text.
/// Whoever calls `info!` and `debug!` depends on `tracing`.
pub mod told {
    pub use crate::{
        told_debug as debug, told_error as error, told_info as info, told_warn as warn,
    };
}

#[doc(hidden)]
pub use tsuji_platform::report;

#[doc(hidden)]
#[macro_export]
macro_rules! told_error {
    ($($rest:tt)+) => { $crate::told_line!(report error [] $($rest)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! told_warn {
    ($($rest:tt)+) => { $crate::told_line!(report warn [] $($rest)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! told_info {
    ($($rest:tt)+) => { $crate::told_line!(INFO info [] $($rest)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! told_debug {
    ($($rest:tt)+) => { $crate::told_line!(DEBUG debug [] $($rest)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! told_line {
    ($L:ident $l:ident [$($done:tt)*] $name:ident = % $value:expr, $($rest:tt)+) => {
        $crate::told_line!($L $l [$($done)* ($name, ($value).to_string())] $($rest)+)
    };
    ($L:ident $l:ident [$($done:tt)*] $name:ident = ? $value:expr, $($rest:tt)+) => {
        $crate::told_line!($L $l [$($done)* ($name, format!("{:?}", $value))] $($rest)+)
    };
    ($L:ident $l:ident [$($done:tt)*] $name:ident = $value:expr, $($rest:tt)+) => {
        $crate::told_line!($L $l [$($done)* ($name, ($value).to_string())] $($rest)+)
    };
    ($L:ident $l:ident [$($done:tt)*] % $name:ident, $($rest:tt)+) => {
        $crate::told_line!($L $l [$($done)* ($name, $name.to_string())] $($rest)+)
    };
    ($L:ident $l:ident [$($done:tt)*] ? $name:ident, $($rest:tt)+) => {
        $crate::told_line!($L $l [$($done)* ($name, format!("{:?}", $name))] $($rest)+)
    };
    ($L:ident $l:ident [$($done:tt)*] $name:ident, $($rest:tt)+) => {
        $crate::told_line!($L $l [$($done)* ($name, $name.to_string())] $($rest)+)
    };
    (report $l:ident [$(($name:ident, $value:expr))*] $($text:tt)+) => {{
        $(let $name = $value;)*
        let text = ::std::format!($($text)+);
        $crate::deferred::later(move || $crate::deferred::report::$l!($($name = %$name,)* "{text}"));
    }};
    ($L:ident $l:ident [$(($name:ident, $value:expr))*] $($text:tt)+) => {
        if ::tracing::Level::$L <= ::tracing::level_filters::LevelFilter::current() {
            $(let $name = $value;)*
            let text = ::std::format!($($text)+);
            $crate::deferred::later(move || ::tracing::$l!($($name = %$name,)* "{text}"));
        }
    };
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn what_is_the_users_is_done_when_the_last_lock_is_given_back() {
        let (one, two) = (Mutex::new(1), Mutex::new(2));
        let done = Rc::new(RefCell::new(Vec::new()));
        let note = |what: &'static str| {
            let done = Rc::clone(&done);
            move || done.borrow_mut().push(what)
        };
        later(note("at once"));
        assert_eq!(*done.borrow(), ["at once"]);
        let outer = lock(&one);
        let inner = lock(&two);
        later(note("first"));
        later(note("second"));
        drop(inner);
        assert_eq!(done.borrow().len(), 1, "one lock is still held");
        drop(outer);
        assert_eq!(*done.borrow(), ["at once", "first", "second"]);
    }

    #[test]
    fn what_is_done_may_take_the_same_lock_and_leave_more() {
        struct Comes(Rc<Mutex<u32>>);

        impl Drop for Comes {
            fn drop(&mut self) {
                let mut count = lock(&self.0);
                *count += 1;
                if *count < 3 {
                    drop_later(Self(Rc::clone(&self.0)));
                }
            }
        }

        let count = Rc::new(Mutex::new(0));
        let held = lock(&count);
        drop_later(Comes(Rc::clone(&count)));
        assert_eq!(*held, 0);
        drop(held);
        assert_eq!(*lock(&count), 3);
    }
}
