//! A sign of life: others see when its holder is gone, however it went.
//!
//! It is the writing end of a pipe that nobody writes to. The system closes it with the process, and
//! whoever holds the reading end sees the hang-up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::fork::Unshared;

/// Lasts until it is dropped or its process is dead. A forked child does not prolong it.
#[derive(Debug)]
pub struct Life {
    seen: OwnedFd,
    _held: Unshared,
}

impl Life {
    /// A life that begins.
    pub fn begin() -> io::Result<Self> {
        let (seen, held) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { seen, _held: Unshared::new(held) })
    }

    /// What another process needs to see its end.
    pub fn to_be_seen(&self) -> io::Result<OwnedFd> {
        self.seen.try_clone()
    }
}

/// The life of another process, as seen from here. Its end makes the descriptor readable.
#[derive(Debug)]
pub struct LifeSeen {
    fd: OwnedFd,
}

impl LifeSeen {
    /// By what [`Life::to_be_seen`] gave.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.is_over_within(0)
    }

    fn is_over_within(&self, seconds: i64) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let timeout = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timeout)));
        ready.is_ok_and(|count| 0 < count)
    }
}

impl AsFd for LifeSeen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only there to end a hung test. A child that another test forks just now holds every descriptor
    /// for a moment.
    const HANG_S: i64 = 30;

    #[test]
    fn its_end_is_seen() {
        let life = Life::begin().unwrap();
        let seen = LifeSeen::from_fd(life.to_be_seen().unwrap());
        assert!(!seen.is_over());
        drop(life);
        assert!(seen.is_over_within(HANG_S));
        assert!(seen.is_over());
    }

    #[test]
    fn a_child_does_not_prolong_it() {
        let life = Life::begin().unwrap();
        let seen = LifeSeen::from_fd(life.to_be_seen().unwrap());
        let (started, start) = io::pipe().unwrap();
        // SAFETY: the child only waits to be killed.
        let child = unsafe { libc::fork() };
        assert!(0 <= child);
        if child == 0 {
            let _ = rustix::io::write(&start, b"1");
            loop {
                // SAFETY: sleeps until a signal.
                unsafe { libc::pause() };
            }
        }
        drop(start);
        io::Read::read_exact(&mut &started, &mut [0]).unwrap();
        drop(life);
        let is_over = seen.is_over_within(HANG_S);
        // SAFETY: a child of this process that was not waited for yet.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert!(is_over);
    }
}
