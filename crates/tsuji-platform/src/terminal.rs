//! The keys of a terminal, one by one, without waiting for the end of a line.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// How the terminal was before its keys were taken. While there is something, they are.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

const INPUT: libc::c_int = libc::STDIN_FILENO;

/// So soon after its first byte come the others of a key.
const FOLLOWS: Duration = Duration::from_millis(25);

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character, a blank for the space bar.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// Tab with shift.
    BackTab,
    /// The key that deletes to the left.
    Backspace,
    /// The cursor upwards.
    Up,
    /// The cursor downwards.
    Down,
    /// The cursor to the left.
    Left,
    /// The cursor to the right.
    Right,
    /// To the begin.
    Home,
    /// To the end.
    End,
    /// A page upwards.
    PageUp,
    /// A page downwards.
    PageDown,
    /// Any other.
    Other,
}

/// The keys of the terminal that is standard input. The terminal is as it was before when this is dropped, and when a thread
/// panics; a program that ends or stops by a signal calls [`give_back`] before. Ctrl-C and the like stay signals.
#[derive(Debug)]
pub struct Keys {
    bytes: VecDeque<u8>,
    are_gone: bool,
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
        Some(Self { bytes: VecDeque::new(), are_gone: false })
    }

    /// The next key that is pressed within `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Option<Key> {
        if self.bytes.is_empty() {
            self.read(timeout);
        }
        Some(match self.bytes.pop_front()? {
            b'\r' | b'\n' => Key::Enter,
            b'\t' => Key::Tab,
            0x08 | 0x7F => Key::Backspace,
            0x1B => self.sequence(),
            first @ 0x20..0x7F => Key::Char(char::from(first)),
            first @ 0xC0.. => self.letter(first),
            _ => Key::Other,
        })
    }

    /// Returns true once the terminal is gone, so that no key will be pressed any more.
    pub fn are_gone(&self) -> bool {
        self.are_gone
    }

    /// What comes behind an escape: a key that is no character sends several bytes, in one of two modes, and one that is held with
    /// Alt its own. Alone it is the key itself.
    fn sequence(&mut self) -> Key {
        match self.following() {
            None => return Key::Escape,
            Some(b'[' | b'O') => {}
            Some(_) => return Key::Other,
        }
        let mut number = 0_u32;
        let mut is_first = true;
        while let Some(byte) = self.following() {
            match byte {
                b'0'..=b'9' if is_first => number = number * 10 % 1000 + u32::from(byte - b'0'),
                // Which other keys are held with it.
                0x20..=0x3F => is_first = false,
                b'A' => return Key::Up,
                b'B' => return Key::Down,
                b'C' => return Key::Right,
                b'D' => return Key::Left,
                b'H' => return Key::Home,
                b'F' => return Key::End,
                b'Z' => return Key::BackTab,
                b'~' => {
                    return match number {
                        1 | 7 => Key::Home,
                        4 | 8 => Key::End,
                        5 => Key::PageUp,
                        6 => Key::PageDown,
                        _ => Key::Other,
                    };
                }
                _ => return Key::Other,
            }
        }
        Key::Other
    }

    /// The next byte of the same key, which may come a moment later.
    fn following(&mut self) -> Option<u8> {
        if self.bytes.is_empty() {
            self.read(FOLLOWS);
        }
        self.bytes.pop_front()
    }

    /// A character of more than one byte.
    fn letter(&mut self, first: u8) -> Key {
        let len = match first {
            0xC0..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        let mut bytes = vec![first];
        while bytes.len() < len {
            if self.bytes.is_empty() {
                self.read(FOLLOWS);
            }
            match self.bytes.front() {
                Some(next @ 0x80..0xC0) => bytes.push(*next),
                _ => break,
            }
            self.bytes.pop_front();
        }
        let letter = std::str::from_utf8(&bytes).ok().and_then(|it| it.chars().next());
        letter.map_or(Key::Other, Key::Char)
    }

    /// Reads what is there, or comes within `timeout`.
    fn read(&mut self, timeout: Duration) {
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut ready = libc::pollfd { fd: INPUT, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid place, as the count says.
        if unsafe { libc::poll(&raw mut ready, 1, millis) } != 1 {
            return;
        }
        // A terminal that is gone is always ready, and has nothing.
        self.are_gone |= ready.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
        // Not given back meanwhile: who reads would wait for a whole line.
        let taken = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever reads in the background is stopped.
        if self.are_gone || taken.is_none() || !is_in_foreground() {
            drop(taken);
            return thread::sleep(timeout);
        }
        let mut bytes = [0_u8; 64];
        // SAFETY: the place is as long as is said.
        let count = unsafe { libc::read(INPUT, bytes.as_mut_ptr().cast(), bytes.len()) };
        drop(taken);
        match usize::try_from(count) {
            Ok(count) if 0 < count => self.bytes.extend(&bytes[..count]),
            _ => {
                let error = io::Error::last_os_error().raw_os_error();
                self.are_gone |= count < 0 && error == Some(libc::EIO);
                thread::sleep(timeout);
            }
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

/// Takes the keys once more, after a stop, if this process is in the foreground. Does nothing if they are taken. Returns true
/// if they are then.
pub fn take_again() -> bool {
    let mut taken = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if taken.is_some() || !is_in_foreground() {
        return taken.is_some();
    }
    let mut before = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: a valid place for the answer, which is there if it says so.
    let before = unsafe {
        if libc::tcgetattr(INPUT, before.as_mut_ptr()) != 0 {
            return false;
        }
        before.assume_init()
    };
    let mut raw = before;
    raw.c_lflag &= !(libc::ICANON | libc::ECHO);
    // Ctrl-Z throws away what was pressed before it, so what was ready may be gone: nobody waits for the next key then.
    raw.c_cc[libc::VMIN] = 0;
    raw.c_cc[libc::VTIME] = 0;
    if set(&raw) {
        *taken = Some(before);
    }
    taken.is_some()
}

fn set(how: &libc::termios) -> bool {
    // SAFETY: a valid description.
    unsafe { libc::tcsetattr(INPUT, libc::TCSANOW, how) == 0 }
}

fn is_in_foreground() -> bool {
    // SAFETY: both ask only.
    unsafe { libc::tcgetpgrp(INPUT) == libc::getpgrp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys { bytes: bytes.iter().copied().collect(), are_gone: false };
        std::iter::from_fn(|| (!keys.bytes.is_empty()).then(|| keys.next(Duration::ZERO))?)
            .collect()
    }

    #[test]
    fn keys_are_told_apart() {
        use Key::{
            BackTab, Backspace, Char, Down, End, Enter, Escape, Home, Left, Other, Right, Tab, Up,
        };
        assert_eq!(
            pressed(b" \x1b[A\x1bOB\x1b[Cq\x1b[D"),
            [Char(' '), Up, Down, Right, Char('q'), Left]
        );
        assert_eq!(
            pressed(b"\r\n\t\x7f\x08\x1b[Z\x1b"),
            [Enter, Enter, Tab, Backspace, Backspace, BackTab, Escape]
        );
        assert_eq!(
            pressed(b"\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[5~\x1b[6~"),
            [Home, End, Home, End, Key::PageUp, Key::PageDown]
        );
        // With others held, of a mouse, unknown, and cut.
        assert_eq!(pressed(b"\x1b[1;5A\x1b[<0;1;2M\x1b[15~x"), [Up, Other, Other, Char('x')]);
        assert_eq!(pressed(b"\x1bx\x01\x1b["), [Other, Other, Other]);
    }

    #[test]
    fn letters_of_several_bytes_are_one_key() {
        assert_eq!(pressed("é€🦀".as_bytes()), ['é', '€', '🦀'].map(Key::Char));
        assert_eq!(
            pressed(b"\xc3\xe2\x82a\x80"),
            [Key::Other, Key::Other, Key::Char('a'), Key::Other]
        );
    }
}
