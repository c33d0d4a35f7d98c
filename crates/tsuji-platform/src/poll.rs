//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

/// A set of descriptors, each with a number of the owner's choice.
#[derive(Debug)]
pub struct Poll {
    fd: OwnedFd,
}

/// A descriptor of the set is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The number it was added with.
    pub key: u64,
    /// There is something to read, or the other end is gone.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
}

impl Poll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Watches `fd` for something to read.
    pub fn add(&self, fd: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, EventData::new_u64(key), EventFlags::IN)?)
    }

    /// Watches `fd` for room to write too, or no longer.
    pub fn want_write(&self, fd: impl AsFd, key: u64, wanted: bool) -> io::Result<()> {
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        Ok(epoll::modify(&self.fd, fd, EventData::new_u64(key), flags)?)
    }

    /// Watches `fd` no longer.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, fd)?)
    }

    /// Sleeps until a descriptor is ready or `timeout` has passed; `None` is for ever. `events` is
    /// replaced by those that are ready.
    pub fn wait(&self, timeout: Option<Duration>, events: &mut Vec<Ready>) -> io::Result<()> {
        let timeout = timeout.map(|it| Timespec {
            tv_sec: i64::try_from(it.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(it.subsec_nanos()),
        });
        let mut raw: Vec<epoll::Event> = Vec::with_capacity(64);
        events.clear();
        match epoll::wait(&self.fd, spare_capacity(&mut raw), timeout.as_ref()) {
            Ok(_) => (),
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let gone = EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
        events.extend(raw.iter().map(|event| {
            let flags = event.flags;
            Ready {
                key: event.data.u64(),
                readable: flags.intersects(EventFlags::IN | gone),
                writable: flags.contains(EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

/// Wakes a [`Poll`] from another thread.
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
}

impl Waker {
    /// A waker that is not given yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Makes the descriptor readable.
    pub fn give(&self) {
        // The counter can only be full when the descriptor is readable already.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable.
    pub fn take(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut count);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_wakes_and_is_taken_once() {
        let (poll, waker) = (Poll::new().unwrap(), Waker::new().unwrap());
        poll.add(&waker, 9).unwrap();
        waker.give();
        waker.give();
        let mut events = Vec::new();
        poll.wait(None, &mut events).unwrap();
        assert_eq!(events, [Ready { key: 9, readable: true, writable: false }]);
        waker.take();
        poll.wait(Some(Duration::ZERO), &mut events).unwrap();
        assert_eq!(events, []);
    }
}
