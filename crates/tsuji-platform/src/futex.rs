//! Sleeping on a word of memory that processes share.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

/// Sleeps while `word` holds `expected`, for at most `timeout`. Returns early without a reason
/// now and then, so the caller looks again. Works across processes.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    wait_with(futex::Flags::empty(), word, expected, timeout);
}

/// As [`wait`], and faster, but only [`wake_private`] of this process ends it.
pub fn wait_private(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    wait_with(futex::Flags::PRIVATE, word, expected, timeout);
}

fn wait_with(flags: futex::Flags, word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|it| Timespec {
        tv_sec: i64::try_from(it.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(it.subsec_nanos()),
    });
    // Every outcome means the same to the caller: look again.
    match futex::wait(word, flags, expected, timeout.as_ref()) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => (),
        Err(error) => unreachable!("futex wait on a valid word: {error}"),
    }
}

/// Wakes at most `count` threads that sleep on `word`, in any process.
pub fn wake(word: &AtomicU32, count: u32) {
    // A failure would mean that the word is not mapped, which a reference excludes.
    let _ = futex::wake(word, futex::Flags::empty(), count);
}

/// Wakes at most `count` threads of this process that sleep in [`wait_private`].
pub fn wake_private(word: &AtomicU32, count: u32) {
    // As above.
    let _ = futex::wake(word, futex::Flags::PRIVATE, count);
}

/// Sets `word` to 0 and wakes one thread that sleeps on it, in one step: whoever is killed here has
/// done both or neither.
pub fn clear_and_wake_one(word: &AtomicU32) {
    // The operation for the second word, which is the same one: set it to 0, and wake nobody more.
    const SET: i32 = 0;
    const WHEN_NEGATIVE: i32 = 2;
    let operation = (SET << 28) | (WHEN_NEGATIVE << 24);
    // SAFETY: both pointers are to a word that is valid for the call; no time-out is passed.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE_OP,
            1,
            0usize,
            word.as_ptr(),
            operation,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_changed_word_does_not_sleep() {
        wait(&AtomicU32::new(1), 0, None);
    }

    #[test]
    fn clearing_wakes_and_clears() {
        let word = Arc::new(AtomicU32::new(1));
        let sleeper = {
            let word = Arc::clone(&word);
            std::thread::spawn(move || {
                while word.load(Ordering::Acquire) == 1 {
                    wait(&word, 1, None);
                }
            })
        };
        clear_and_wake_one(&word);
        sleeper.join().unwrap();
        assert_eq!(word.load(Ordering::Acquire), 0);
    }

    #[test]
    fn a_wake_ends_the_sleep() {
        let word = Arc::new(AtomicU32::new(0));
        let waker = {
            let word = Arc::clone(&word);
            std::thread::spawn(move || {
                word.store(1, Ordering::Release);
                wake(&word, u32::MAX);
            })
        };
        while word.load(Ordering::Acquire) == 0 {
            wait(&word, 0, None);
        }
        waker.join().unwrap();
    }
}
