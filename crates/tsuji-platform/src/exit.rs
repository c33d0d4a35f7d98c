//! At exit nobody is in a library whose destructors run then.
//!
//! A process may exit while publishers live: in a static variable, on another thread, or closed and waiting for what was not
//! acknowledged. The destructors of an engine's library then run beside threads of tsuji, and whoever is in the library
//! meets what is destroyed. A function that runs before them keeps everybody out, and waits for those who are in. What is not
//! closed by then the library ends itself, or the system does.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::{clock, fork, report};

/// How long those who are in are waited for, in all. A writer that is closed waits a second for its readers.
const WAIT_NS_MAX: u64 = 5_000_000_000;
const PAUSE: Duration = Duration::from_millis(1);

static IS_EXITING: AtomicBool = AtomicBool::new(false);
/// Until when is waited; 0 before the process exits.
static DUE_NS: AtomicU64 = AtomicU64::new(0);
/// How many threads are in, counted in several places so that they do not wait for each other's cache lines.
static INSIDE: [Count; 16] = [const { Count(AtomicIsize::new(0)) }; 16];

#[repr(align(128))]
struct Count(AtomicIsize);

thread_local! {
    /// The calls that this thread is in: one may lead to another, as by a callback.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Whether the process exits, and libraries with destructors are not to be called any more.
#[inline]
pub fn is_exiting() -> bool {
    IS_EXITING.load(Ordering::SeqCst)
}

/// A call of a library's function, from before it until after it, on one thread.
#[derive(Debug)]
pub struct Call {
    count: &'static AtomicIsize,
    /// It ends on the thread where it has begun.
    _of_thread: PhantomData<*const ()>,
}

impl Call {
    /// Begins one; `None` where the process exits.
    #[inline]
    pub fn enter() -> Option<Self> {
        thread_local! {
            static PLACE: usize = {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                NEXT.fetch_add(1, Ordering::Relaxed) % INSIDE.len()
            };
        }
        let count = &INSIDE[PLACE.with(|place| *place)].0;
        let depth = DEPTH.get();
        if depth == 0 {
            // Either this is counted before the exit looks, or this sees that the process exits.
            count.fetch_add(1, Ordering::SeqCst);
            if is_exiting() {
                count.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
        }
        DEPTH.set(depth + 1);
        Some(Self { count, _of_thread: PhantomData })
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Keeps everybody out of a library before its destructors run. Called with each object of it that was made, `by` a function
/// that is at this address: what is registered last runs first, and the library may register the destructors of what it has
/// when each of its functions makes the first.
///
/// Of what more than 64 functions make nothing is noted.
pub fn keep_out_before_destructors(by: *const ()) {
    static NOTED: [AtomicUsize; MAKERS_MAX] = [const { AtomicUsize::new(0) }; MAKERS_MAX];
    let own = by as usize;
    let is_new = NOTED.iter().find_map(|place| {
        let noted = place.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
        noted.map_or_else(|other| (other == own).then_some(false), |_| Some(true))
    });
    if is_new == Some(true) {
        fork::install();
        // SAFETY: the function may be called at any time. Where there is no memory for it, it is not.
        unsafe { libc::atexit(keep_out) };
    }
}

const MAKERS_MAX: usize = 64;

/// Called in a forked child, where it may only change atomics. Threads that were in are not there, nor does it exit because its
/// parent does.
pub(crate) fn forget() {
    INSIDE.iter().for_each(|count| count.0.store(0, Ordering::SeqCst));
    IS_EXITING.store(false, Ordering::SeqCst);
    DUE_NS.store(0, Ordering::SeqCst);
}

extern "C" fn keep_out() {
    let due_ns = clock::monotonic_ns().saturating_add(WAIT_NS_MAX);
    // Of several that run at exit the first says how long is waited.
    let first = DUE_NS.compare_exchange(0, due_ns, Ordering::SeqCst, Ordering::SeqCst);
    let due_ns = first.err().unwrap_or(due_ns);
    // That engines are gone is no trouble to tell of.
    report::set_least(report::Level::Nothing);
    IS_EXITING.store(true, Ordering::SeqCst);
    // Whoever exits in a call does not wait for itself.
    let own = isize::from(DEPTH.get() != 0);
    let inside = || INSIDE.iter().map(|count| count.0.load(Ordering::SeqCst)).sum::<isize>();
    while own < inside() && clock::monotonic_ns() < due_ns {
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "children speak by it")]
mod tests {
    use super::*;
    use crate::process;

    /// How many threads are in the library.
    static IN_LIBRARY: AtomicUsize = AtomicUsize::new(0);
    static CALLS: AtomicUsize = AtomicUsize::new(0);

    /// A function of the library.
    fn call(time: Duration) -> bool {
        let Some(_call) = Call::enter() else { return false };
        IN_LIBRARY.fetch_add(1, Ordering::SeqCst);
        // Whoever is in is let in again, as by a callback, though the process exits.
        assert!(Call::enter().is_some());
        thread::sleep(time);
        IN_LIBRARY.fetch_sub(1, Ordering::SeqCst);
        CALLS.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// What the library registers to be run at exit.
    extern "C" fn destroy() {
        let inside = || (IN_LIBRARY.load(Ordering::SeqCst), CALLS.load(Ordering::SeqCst));
        let before = inside();
        thread::sleep(Duration::from_millis(20));
        println!("destroyed: {} inside, same {}, {}", before.0, before == inside(), is_exiting());
    }

    #[test]
    #[ignore = "a child process of the other tests"]
    fn child() {
        let is_within = std::env::var("TSUJI_ROLE").unwrap() == "within a call";
        // SAFETY: the function may be called at exit.
        assert_eq!(unsafe { libc::atexit(destroy) }, 0);
        // Once for each, however often it is said.
        for maker in [call as *const (), destroy as *const (), call as *const ()] {
            keep_out_before_destructors(maker);
        }
        for _ in 0..4 {
            thread::spawn(|| while call(Duration::from_micros(50)) {});
        }
        // Longer than the others need to be refused.
        thread::spawn(|| call(Duration::from_millis(300)));
        while IN_LIBRARY.load(Ordering::SeqCst) < 2 || CALLS.load(Ordering::SeqCst) < 100 {
            thread::yield_now();
        }
        let _call = is_within.then(|| Call::enter().unwrap());
        std::process::exit(0);
    }

    /// What a process says whose threads are in the library when it exits.
    fn said(role: &str) -> String {
        let mut command = process::own_test("exit::tests::child");
        let output = command.arg("--nocapture").env("TSUJI_ROLE", role).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|it| it.contains("destroyed")).collect()
    }

    #[test]
    fn nobody_is_in_a_library_when_its_destructors_run() {
        let said = said("outside");
        assert!(said.ends_with("destroyed: 0 inside, same true, true"), "{said}");
    }

    /// As by a handler of a signal: the thread does not wait for itself.
    #[test]
    fn whoever_exits_within_a_call_waits_for_the_others() {
        let said = said("within a call");
        assert!(said.ends_with("destroyed: 0 inside, same true, true"), "{said}");
    }
}
