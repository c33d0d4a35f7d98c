//! Locks that are taken in one order, which debug builds watch.
//!
//! A lock is known by the type that it guards. Where a thread takes one while it has another, that is an order of these two. A debug
//! build remembers every such order, and panics where a new one closes a circle with those before it: two threads that go round it
//! from two sides would wait for each other for ever. It tells of it whether or not they have ever met. ARCHITECTURE.md has the order
//! as it is meant.
//!
//! Not watched are turns, which are locks that user code runs under: `Mutex<()>`, and those that guard a callback, which is a `dyn`
//! type or one named `Callback`. Which of them are taken together is the user's affair.
//!
//! With `TSUJI_LOCK_ORDER=FILE` a debug build appends each order that it sees for the first time to a file.

#[cfg(not(debug_assertions))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(debug_assertions)]
pub use watched::{Condvar, Mutex, MutexGuard};

#[cfg(debug_assertions)]
mod watched {
    use std::fmt;
    use std::ops::{Deref, DerefMut};
    use std::sync::{self, LockResult, PoisonError, WaitTimeoutResult};
    use std::time::Duration;

    use super::order::{self, Class};

    /// As the standard library's.
    #[derive(Default)]
    pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

    /// As the standard library's.
    pub struct MutexGuard<'a, T: ?Sized> {
        // None while a condition variable has it.
        guard: Option<sync::MutexGuard<'a, T>>,
    }

    /// As the standard library's.
    #[derive(Debug, Default)]
    pub struct Condvar(sync::Condvar);

    impl<T> Mutex<T> {
        /// A lock that nobody has.
        pub const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }
    }

    impl<T: ?Sized> Mutex<T> {
        /// Waits for it.
        pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            // Before the wait, which would have no end.
            order::enter(Class::of::<T>());
            map(self.0.lock(), |guard| MutexGuard { guard: Some(guard) })
        }

        /// What it guards, of a lock that nobody else can have.
        pub fn get_mut(&mut self) -> LockResult<&mut T> {
            self.0.get_mut()
        }
    }

    /// A result of the standard library's locks with something else made of what it has, poisoned or not.
    fn map<A, B>(locked: LockResult<A>, make: impl FnOnce(A) -> B) -> LockResult<B> {
        match locked {
            Ok(it) => Ok(make(it)),
            Err(error) => Err(PoisonError::new(make(error.into_inner()))),
        }
    }

    impl<T> From<T> for Mutex<T> {
        fn from(value: T) -> Self {
            Self::new(value)
        }
    }

    impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            (**self).fmt(f)
        }
    }

    impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }

    impl<T: ?Sized> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.guard.as_deref().expect("it is only taken by what ends it")
        }
    }

    impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.guard.as_deref_mut().expect("it is only taken by what ends it")
        }
    }

    impl<T: ?Sized> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            if self.guard.take().is_some() {
                order::leave(Class::of::<T>());
            }
        }
    }

    impl Condvar {
        /// A condition variable that nobody waits for.
        pub const fn new() -> Self {
            Self(sync::Condvar::new())
        }

        /// Wakes one who waits.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes all who wait.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }

        /// Waits for a wake, or for no reason.
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
            map(self.0.wait(released(guard)), again)
        }

        /// Waits while something is so.
        pub fn wait_while<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            condition: impl FnMut(&mut T) -> bool,
        ) -> LockResult<MutexGuard<'a, T>> {
            map(self.0.wait_while(released(guard), condition), again)
        }

        /// The same, for this time at most.
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            at_most: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
            let waited = self.0.wait_timeout(released(guard), at_most);
            map(waited, |(guard, why)| (again(guard), why))
        }

        /// Waits while something is so, for this time at most.
        pub fn wait_timeout_while<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            at_most: Duration,
            condition: impl FnMut(&mut T) -> bool,
        ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
            let waited = self.0.wait_timeout_while(released(guard), at_most, condition);
            map(waited, |(guard, why)| (again(guard), why))
        }
    }

    /// What a condition variable lets go.
    fn released<T>(mut guard: MutexGuard<'_, T>) -> sync::MutexGuard<'_, T> {
        order::leave(Class::of::<T>());
        guard.guard.take().expect("it is only taken by what ends it")
    }

    /// What it has taken again.
    fn again<T>(guard: sync::MutexGuard<'_, T>) -> MutexGuard<'_, T> {
        order::enter(Class::of::<T>());
        MutexGuard { guard: Some(guard) }
    }
}

/// Which locks a thread has, and in which orders locks were taken.
#[cfg(debug_assertions)]
mod order {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::sync::{Mutex, PoisonError};

    /// What a lock guards, by the name of the type.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) struct Class(&'static str);

    impl Class {
        pub(super) fn of<T: ?Sized>() -> Self {
            Self(std::any::type_name::<T>())
        }

        /// User code runs under it.
        fn is_turn(self) -> bool {
            self.0 == "()" || self.0.contains("dyn ") || self.0.ends_with("::Callback")
        }
    }

    struct Thread {
        has: Vec<Class>,
        /// Orders that were seen by this thread, so that it need not ask for all.
        seen: BTreeSet<(Class, Class)>,
    }

    thread_local! {
        static THREAD: RefCell<Thread> = const { RefCell::new(Thread { has: Vec::new(), seen: BTreeSet::new() }) };
    }

    /// Of each class, those that were taken while it was held.
    static ORDERS: Mutex<BTreeMap<Class, BTreeSet<Class>>> = Mutex::new(BTreeMap::new());

    /// A thread is about to take a lock.
    pub(super) fn enter(class: Class) {
        if class.is_turn() {
            return;
        }
        // Where a thread ends it is not asked any more.
        let circle = THREAD.try_with(|thread| {
            let mut thread = thread.borrow_mut();
            let Thread { has, seen } = &mut *thread;
            let mut circle = None;
            for held in has.iter().filter(|it| **it != class) {
                if seen.insert((*held, class)) {
                    // Each is added, whatever was found before.
                    let found = add(*held, class);
                    circle = circle.or(found);
                }
            }
            has.push(class);
            circle
        });
        if let Ok(Some(circle)) = circle
            && !std::thread::panicking()
        {
            let names: Vec<&str> = circle.iter().map(|it| it.0).collect();
            let (taken, held) = (names[0], names[names.len() - 1]);
            leave(class);
            panic!(
                "a lock of {taken} is taken while one of {held} is held; the other order was seen before: {}",
                names.join(", then ")
            );
        }
    }

    /// A thread has given it back.
    pub(super) fn leave(class: Class) {
        if class.is_turn() {
            return;
        }
        let _ = THREAD.try_with(|thread| {
            let has = &mut thread.borrow_mut().has;
            if let Some(at) = has.iter().rposition(|it| *it == class) {
                has.remove(at);
            }
        });
    }

    /// Remembers an order. Answers the way from `second` back to `first` that there was before, if there was one.
    fn add(first: Class, second: Class) -> Option<Vec<Class>> {
        let mut orders = ORDERS.lock().unwrap_or_else(PoisonError::into_inner);
        if !orders.entry(first).or_default().insert(second) {
            return None;
        }
        if let Some(path) = std::env::var_os("TSUJI_LOCK_ORDER")
            && let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path)
        {
            // In one piece: other processes append to it too.
            let _ = file.write_all(format!("{} > {}\n", first.0, second.0).as_bytes());
        }
        way(&orders, second, first, &mut BTreeSet::new())
    }

    fn way(
        orders: &BTreeMap<Class, BTreeSet<Class>>,
        from: Class,
        to: Class,
        passed: &mut BTreeSet<Class>,
    ) -> Option<Vec<Class>> {
        if from == to {
            return Some(vec![to]);
        }
        if !passed.insert(from) {
            return None;
        }
        let rest = orders.get(&from)?.iter().find_map(|it| way(orders, *it, to, passed))?;
        Some([vec![from], rest].concat())
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct First(u8);
    #[derive(Default)]
    struct Second(u8);
    #[derive(Default)]
    struct Third(u8);

    #[test]
    fn a_circle_is_told_when_it_is_closed_though_nobody_waits() {
        let (first, second, third) =
            (Mutex::new(First(1)), Mutex::new(Second(2)), Mutex::new(Third(3)));
        let taken = || {
            let guard = first.lock().unwrap();
            assert_eq!(guard.0, 1);
            assert_eq!(second.lock().unwrap().0, 2);
        };
        taken();
        {
            let _second = second.lock().unwrap();
            assert_eq!(third.lock().unwrap().0, 3);
        }
        let told = std::thread::scope(|scope| {
            let closing = scope.spawn(|| {
                let _third = third.lock().unwrap();
                drop(first.lock());
            });
            *closing.join().unwrap_err().downcast::<String>().unwrap()
        });
        for name in ["First", "Second", "Third"] {
            assert!(told.contains(name), "{told}");
        }
        // The right order goes on, also after others gave theirs back in any order.
        let (one, two) = (first.lock().unwrap(), second.lock().unwrap());
        drop(one);
        drop(two);
        taken();
    }

    #[test]
    fn what_waits_for_a_change_has_its_lock_no_more() {
        struct Waited(bool);
        struct Other;
        let (waited, other, changed) =
            (Mutex::new(Waited(false)), Mutex::new(Other), Condvar::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _other = other.lock().unwrap();
                waited.lock().unwrap().0 = true;
                changed.notify_all();
            });
            let mut guard = waited.lock().unwrap();
            while !guard.0 {
                guard = changed.wait(guard).unwrap();
            }
            // Here it has it again.
            drop(guard);
        });
        let _waited = waited.lock().unwrap();
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(other.lock())));
        assert!(told.is_err());
    }

    #[test]
    fn turns_are_taken_in_any_order() {
        struct Held;
        let (turn, callback, held) =
            (Mutex::new(()), Mutex::<Box<dyn Fn() + Send>>::new(Box::new(|| ())), Mutex::new(Held));
        {
            let _turn = turn.lock().unwrap();
            let _held = held.lock().unwrap();
            (callback.lock().unwrap())();
        }
        let _callback = callback.lock().unwrap();
        let _held = held.lock().unwrap();
        drop(turn.lock());
    }
}
