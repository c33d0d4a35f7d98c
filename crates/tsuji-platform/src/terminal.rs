//! The keys of a terminal, one by one, without waiting for the end of a line.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// How the terminal was before its keys were taken. While there is something, they are.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

const INPUT: libc::c_int = libc::STDIN_FILENO;

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The space bar.
    Space,
    /// The cursor upwards.
    Up,
    /// The cursor downwards.
    Down,
    /// The cursor to the right.
    Right,
    /// Any other.
    Other,
}

/// The keys of the terminal that is standard input. The terminal is as it was before when this is dropped, and when a thread
/// panics; a program that ends or stops by a signal calls [`give_back`] before. Ctrl-C and the like stay signals.
#[derive(Debug)]
pub struct Keys {
    bytes: VecDeque<u8>,
}

impl Keys {
    /// Takes the keys; `None` if standard input is no terminal. As long as another process has it in the foreground they are
    /// left to that one, and taken by [`take_again`] later.
    pub fn take() -> Option<Self> {
        static ON_PANIC: Once = Once::new();
        // SAFETY: asks only.
        if unsafe { libc::isatty(INPUT) } != 1 {
            return None;
        }
        ON_PANIC.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                give_back();
                before(info);
            }));
        });
        take_again();
        Some(Self { bytes: VecDeque::new() })
    }

    /// The next key that is pressed within `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Option<Key> {
        if self.bytes.is_empty() {
            self.read(timeout);
        }
        let first = self.bytes.pop_front()?;
        if first != 0x1B {
            return Some(if first == b' ' { Key::Space } else { Key::Other });
        }
        // A cursor key comes as three bytes at once, in one of two modes.
        if !matches!(self.bytes.front(), Some(b'[' | b'O')) {
            return Some(Key::Other);
        }
        self.bytes.pop_front();
        Some(match self.bytes.pop_front() {
            Some(b'A') => Key::Up,
            Some(b'B') => Key::Down,
            Some(b'C') => Key::Right,
            _ => Key::Other,
        })
    }

    /// Reads what is there, or comes within `timeout`.
    fn read(&mut self, timeout: Duration) {
        // Whoever reads in the background is stopped.
        if !is_in_foreground() {
            return thread::sleep(timeout);
        }
        let timeout = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut ready = libc::pollfd { fd: INPUT, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid place, as the count says.
        if unsafe { libc::poll(&raw mut ready, 1, timeout) } != 1 {
            return;
        }
        let mut bytes = [0_u8; 64];
        // SAFETY: the place is as long as is said.
        let count = unsafe { libc::read(INPUT, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) if 0 < count => self.bytes.extend(&bytes[..count]),
            // A terminal that is gone is always ready, and has nothing.
            _ => thread::sleep(Duration::from_millis(u64::from(timeout.unsigned_abs()))),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal as it was before its keys were taken. Does nothing if they are not.
pub fn give_back() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        set(&before);
    }
}

/// Takes the keys once more, after a stop, if this process is in the foreground. Does nothing if they are taken.
pub fn take_again() {
    let mut taken = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if taken.is_some() || !is_in_foreground() {
        return;
    }
    let mut before = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: a valid place for the answer, which is there if it says so.
    let before = unsafe {
        if libc::tcgetattr(INPUT, before.as_mut_ptr()) != 0 {
            return;
        }
        before.assume_init()
    };
    let mut raw = before;
    raw.c_lflag &= !(libc::ICANON | libc::ECHO);
    raw.c_cc[libc::VMIN] = 1;
    raw.c_cc[libc::VTIME] = 0;
    if set(&raw) {
        *taken = Some(before);
    }
}

fn set(how: &libc::termios) -> bool {
    // SAFETY: a valid description.
    unsafe { libc::tcsetattr(INPUT, libc::TCSANOW, how) == 0 }
}

/// Returns true if this process may read its terminal and change it: its group is the one in the foreground.
pub fn is_in_foreground() -> bool {
    // SAFETY: both ask only.
    unsafe { libc::tcgetpgrp(INPUT) == libc::getpgrp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let mut keys = Keys { bytes: b" \x1b[A\x1bOB\x1b[Cq\x1b[Z\x1bx".iter().copied().collect() };
        let pressed: Vec<Key> = std::iter::from_fn(|| keys.next(Duration::ZERO)).take(8).collect();
        use Key::{Down, Other, Right, Space, Up};
        assert_eq!(pressed, [Space, Up, Down, Right, Other, Other, Other, Other]);
    }
}
