//! A connection over which whole messages go out, and what waits for it to take more.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use tsuji_platform::poll::Poll;

/// What a connection that keeps all has waiting at most, in bytes. One message more fits always.
pub(crate) const WAITING_BYTES_MAX: usize = 64 << 20;

/// A message with its length before it, which several connections may share.
pub(crate) type Frame = Arc<Vec<u8>>;

/// Messages are given to the kernel so many at a time.
const BATCH: usize = 16;

/// How many messages may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// So many; beyond that the oldest are dropped.
    Last(usize),
    /// All, while they have no more bytes than [`WAITING_BYTES_MAX`].
    All,
}

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct OutLink {
    stream: TcpStream,
    poll: Arc<Poll>,
    key: u64,
    out: Mutex<Out>,
}

#[derive(Debug, Default)]
struct Out {
    frames: VecDeque<Frame>,
    /// Bytes of the first that are sent.
    sent: usize,
    bytes: usize,
    /// When the kernel took something last.
    progress: Option<Instant>,
    is_watched: bool,
    is_broken: bool,
}

impl OutLink {
    pub(crate) fn new(stream: TcpStream, poll: Arc<Poll>, key: u64) -> Self {
        Self { stream, poll, key, out: Mutex::default() }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Watches it from now on, also for room where something waits already.
    pub(crate) fn watch(&self) -> io::Result<()> {
        let out = crate::lock(&self.out);
        self.poll.add(&self.stream, self.key)?;
        match out.is_watched {
            true => self.poll.want_write(&self.stream, self.key, true),
            false => Ok(()),
        }
    }

    /// True if all that must be kept fits.
    pub(crate) fn has_room(&self, room: Room) -> bool {
        room != Room::All || crate::lock(&self.out).bytes < WAITING_BYTES_MAX
    }

    /// Ends the connection, once, if so much waits that whoever keeps all has to wait, and nothing was taken for so long.
    /// Answers whether it did.
    pub(crate) fn end_if_stalled(&self, within: Duration) -> bool {
        let mut out = crate::lock(&self.out);
        let is_late = || out.progress.is_none_or(|it| it + within < Instant::now());
        let is_stalled = !out.is_broken && WAITING_BYTES_MAX <= out.bytes && is_late();
        if is_stalled {
            out.is_broken = true;
            self.flush_locked(&mut out);
        }
        is_stalled
    }

    /// Ends the connection; whoever reads it learns of that.
    pub(crate) fn end(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// True if the kernel has all that was sent, or the connection is broken.
    pub(crate) fn is_done(&self) -> bool {
        let out = crate::lock(&self.out);
        out.is_broken || out.frames.is_empty()
    }

    /// Sends a message, at once where the kernel takes it. Answers how many older ones were dropped for it.
    pub(crate) fn send(&self, frame: Frame, room: Room) -> usize {
        let mut out = crate::lock(&self.out);
        if out.is_broken {
            return 0;
        }
        let is_first = out.frames.is_empty();
        out.bytes += frame.len();
        out.frames.push_back(frame);
        if is_first {
            // Nothing has waited until now.
            out.progress = Some(Instant::now());
            self.flush_locked(&mut out);
            return 0;
        }
        let Room::Last(depth) = room else { return 0 };
        // The first is on its way.
        let mut dropped = 0;
        while depth.max(1) + 1 < out.frames.len()
            && let Some(gone) = out.frames.remove(1)
        {
            out.bytes -= gone.len();
            dropped += 1;
        }
        dropped
    }

    /// Sends what waits, as far as the kernel takes it.
    pub(crate) fn flush(&self) {
        self.flush_locked(&mut crate::lock(&self.out));
    }

    #[cfg(test)]
    fn is_broken(&self) -> bool {
        crate::lock(&self.out).is_broken
    }

    fn flush_locked(&self, out: &mut Out) {
        while !out.frames.is_empty() && !out.is_broken {
            match out.write(&self.stream) {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => out.is_broken = true,
            }
        }
        if out.is_broken {
            // Whoever reads it is woken by the end of the connection.
            let _ = self.stream.shutdown(std::net::Shutdown::Both);
            *out = Out { is_broken: true, is_watched: out.is_watched, ..Out::default() };
        }
        let wants = !out.frames.is_empty();
        if wants != out.is_watched {
            out.is_watched = wants;
            let _ = self.poll.want_write(&self.stream, self.key, wants);
        }
    }
}

impl Out {
    fn write(&mut self, stream: &TcpStream) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); BATCH];
        let mut count = 0;
        for (at, (slice, frame)) in slices.iter_mut().zip(&self.frames).enumerate() {
            *slice = IoSlice::new(if at == 0 { &frame[self.sent..] } else { frame });
            count += 1;
        }
        // A program that has not said what becomes of SIGPIPE would be ended by the end of a subscriber.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let mut none = SendAncillaryBuffer::default();
        let mut written = sendmsg(stream, &slices[..count], &mut none, flags)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.progress = Some(Instant::now());
        while let Some(frame) = self.frames.front() {
            let left = frame.len() - self.sent;
            if written < left {
                self.sent += written;
                break;
            }
            written -= left;
            self.bytes -= frame.len();
            self.sent = 0;
            self.frames.pop_front();
        }
        Ok(())
    }
}

/// A message in ROS 1's form with its length before it.
pub(crate) fn framed(
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    framed_in(Vec::new(), fill)
}

/// The same in memory that was used before.
pub(crate) fn framed_in(
    mut frame: Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    frame.clear();
    frame.extend([0; 4]);
    fill(&mut frame)?;
    let length = u32::try_from(frame.len() - 4)
        .map_err(|_longer| "longer than 4 GiB, which TCPROS cannot say".to_owned())?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    fn connected() -> (OutLink, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        let (far, _) = listener.accept().unwrap();
        let poll = Arc::new(Poll::new().unwrap());
        poll.add(&near, 7).unwrap();
        (OutLink::new(near, poll, 7), far)
    }

    #[test]
    fn what_one_that_does_not_read_is_owed_is_the_newest() {
        let (link, mut far) = connected();
        let frame = |number: u32| -> Frame {
            let mut frame = vec![0; 1 << 20];
            frame[..4].copy_from_slice(&number.to_le_bytes());
            frame.into()
        };
        let dropped: usize = (0..60).map(|it| link.send(frame(it), Room::Last(3))).sum();
        assert!(!link.is_done() && 40 < dropped, "{dropped}");
        let mut numbers = Vec::new();
        let mut buffer = vec![0; 1 << 20];
        while numbers.len() + dropped < 60 {
            link.flush();
            far.read_exact(&mut buffer).unwrap();
            numbers.push(u32::from_le_bytes(buffer[..4].try_into().unwrap()));
            link.flush();
        }
        assert!(link.is_done());
        assert!(numbers.is_sorted());
        assert_eq!(numbers[numbers.len() - 3..], [57, 58, 59]);
    }

    #[test]
    fn one_that_keeps_all_has_room_until_too_much_waits() {
        let (link, far) = connected();
        let frame: Frame = vec![0; 16 << 20].into();
        let mut sent = 0;
        while link.has_room(Room::All) {
            assert_eq!(link.send(Arc::clone(&frame), Room::All), 0);
            sent += 1;
        }
        assert!((4..8).contains(&sent), "{sent}");
        assert!(link.has_room(Room::Last(1)));
        drop(far);
        while !link.is_broken() {
            link.flush();
        }
        assert!(link.is_done());
    }
}
