//! Ordered, reliable, message-keeping sockets between processes of one host, which pass
//! descriptors and tell who the other end is and when it is gone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::fork::Unshared;
use crate::limit::{keep_room_for_descriptors, with_limit};

/// The most descriptors one message carries.
pub const MESSAGE_FDS_MAX: usize = 8;

/// The most bytes one message carries. The kernel's default send buffer holds it whole.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Waits for connections at a path. Gone in a forked child.
#[derive(Debug)]
pub struct Listener {
    fd: Unshared,
    /// Given up for a moment when descriptors run out, so that whoever tries to connect is not left waiting.
    reserve: Mutex<Option<OwnedFd>>,
}

impl Listener {
    /// Listens at `path`, which must not exist. It appears only when connections are accepted, so
    /// whoever sees it and is refused knows that its owner is dead. Who may write to it by `mode`
    /// may connect.
    pub fn bind(path: &Path, mode: u32) -> io::Result<Self> {
        let hidden = path.with_extension("new");
        let _ = std::fs::remove_file(&hidden);
        let fd = open()?;
        rustix::net::bind(&fd, &SocketAddrUnix::new(&hidden)?)?;
        std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(mode))?;
        rustix::net::listen(&fd, 1024)?;
        std::fs::rename(&hidden, path)?;
        Ok(Self { fd, reserve: Mutex::new(Some(null()?)) })
    }

    /// The next connection, or `None` when nobody waits. Never blocks. When descriptors have run
    /// out, whoever tried to connect sees a hang-up, and the answer is the error.
    pub fn accept(&self) -> io::Result<Option<Connection>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(&self.fd, flags) {
            Ok(fd) => {
                keep_room_for_descriptors(&fd);
                Ok(Some(Connection { fd: Unshared::new(fd) }))
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error @ (Errno::MFILE | Errno::NFILE)) => {
                let mut reserve = self.reserve.lock().unwrap_or_else(PoisonError::into_inner);
                drop(reserve.take());
                drop(rustix::net::accept_with(&self.fd, flags));
                *reserve = null().ok();
                Err(with_limit(error.into()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// One end of a connection. No call blocks. Gone in a forked child, so that the other end sees this
/// process's death although children of it live.
#[derive(Debug)]
pub struct Connection {
    fd: Unshared,
}

/// Lets a socket of any kind hold so many bytes that are sent and not taken yet. The kernel gives less where
/// `net.core.wmem_max` is less, and counts its own bookkeeping in.
pub fn set_send_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_send_buffer_size(socket, bytes)?)
}

/// Lets the kernel ask, where a TCP connection was silent for `idle`, whether the other end is there: three times, 10 s apart, and then
/// the connection is over. Whole seconds, at least one.
pub fn set_keepalive(socket: &impl AsFd, idle: Duration) -> io::Result<()> {
    use rustix::net::sockopt;
    let idle = Duration::from_secs(idle.as_secs().clamp(1, KEEPALIVE_IDLE_S_MAX));
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, idle)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    Ok(sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?)
}

/// The most that the kernel takes.
const KEEPALIVE_IDLE_S_MAX: u64 = 32_767;
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// Who is at the other end, as the kernel vouches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The effective user id at the time of the connection.
    pub user: u32,
    /// The effective group id at the time of the connection.
    pub group: u32,
    /// Its process id here; 0 where it lives in another pid namespace.
    pub pid: u32,
}

/// What a message brought.
#[derive(Debug)]
pub struct Received {
    /// Its length in bytes.
    pub bytes: usize,
    /// The descriptors it carried.
    pub fds: Vec<OwnedFd>,
}

impl Connection {
    /// Connects to whoever listens at `path`. `ConnectionRefused` says that nobody does any more.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let fd = open().map_err(with_limit)?;
        keep_room_for_descriptors(&fd);
        rustix::net::connect(&fd, &SocketAddrUnix::new(path)?)?;
        Ok(Self { fd })
    }

    /// Two ends of one connection.
    pub fn pair() -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, two) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Self { fd: Unshared::new(one) }, Self { fd: Unshared::new(two) }))
    }

    /// Who is at the other end.
    pub fn credentials(&self) -> io::Result<Credentials> {
        let mut raw = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: `raw` and `len` are valid for writes and of the size that the option has. The
        // wrapper of rustix panics on the process id 0 that another pid namespace gives.
        let result = unsafe {
            libc::getsockopt(
                std::os::fd::AsRawFd::as_raw_fd(&self.fd.as_fd()),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut raw).cast(),
                &raw mut len,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Credentials { user: raw.uid, group: raw.gid, pid: raw.pid.unsigned_abs() })
    }

    /// Sends one message. `WouldBlock` says that the other end is behind; nothing was sent.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_FDS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
        }
        rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(
                &self.fd,
                &[IoSlice::new(bytes)],
                &mut ancillary,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            )
        })?;
        Ok(())
    }

    /// Takes one message into `buffer`. `Ok(None)` says that the other end is gone, `WouldBlock`
    /// that there is no message, `InvalidData` that it did not fit and was dropped.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_FDS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut receive = || {
            rustix::io::retry_on_intr(|| {
                rustix::net::recvmsg(
                    &self.fd,
                    &mut [IoSliceMut::new(buffer)],
                    &mut ancillary,
                    RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
                )
            })
        };
        let message = match receive() {
            // Told once, by whoever hangs up with something unread. What it said before that is still there.
            Err(Errno::CONNRESET) => receive(),
            message => message,
        };
        let message = match message {
            Ok(message) => message,
            Err(Errno::CONNRESET | Errno::PIPE) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut fds = Vec::new();
        for part in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                fds.extend(rights);
            }
        }
        if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "message too large"));
        }
        // Nobody sends empty messages, so an empty one is the end.
        if message.bytes == 0 {
            return Ok(None);
        }
        Ok(Some(Received { bytes: message.bytes, fds }))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn null() -> io::Result<OwnedFd> {
    Ok(std::fs::File::open("/dev/null")?.into())
}

fn open() -> io::Result<Unshared> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok(Unshared::new(fd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_edges_and_carry_descriptors() {
        let (one, two) = Connection::pair().unwrap();
        one.send(b"first", &[]).unwrap();
        one.send(b"second", &[one.as_fd()]).unwrap();
        let mut buffer = [0; 16];
        let first = two.receive(&mut buffer).unwrap().unwrap();
        assert_eq!((&buffer[..first.bytes], first.fds.len()), (&b"first"[..], 0));
        let second = two.receive(&mut buffer).unwrap().unwrap();
        assert_eq!((&buffer[..second.bytes], second.fds.len()), (&b"second"[..], 1));
        let nothing = two.receive(&mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_larger_send_buffer_holds_more() {
        let held = |buffer_bytes| {
            let (one, _two) = std::os::unix::net::UnixStream::pair().unwrap();
            set_send_buffer(&one, buffer_bytes).unwrap();
            one.set_nonblocking(true).unwrap();
            let mut held = 0;
            while let Ok(taken) = io::Write::write(&mut &one, &[0; 4096]) {
                held += taken;
            }
            held
        };
        assert!(held(8 << 10) < held(128 << 10));
    }

    #[test]
    fn a_silent_connection_is_asked_as_often_as_was_said() {
        use rustix::net::sockopt;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!sockopt::socket_keepalive(&stream).unwrap());
        for (asked, given) in [(0, 1), (60, 60), (100_000, 32_767)] {
            set_keepalive(&stream, Duration::from_secs(asked)).unwrap();
            assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), Duration::from_secs(given));
        }
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), 3);
    }

    #[test]
    fn a_closed_end_is_news() {
        let (one, two) = Connection::pair().unwrap();
        drop(one);
        assert!(two.receive(&mut [0; 16]).unwrap().is_none());
    }

    #[test]
    fn the_last_word_of_one_that_hangs_up_with_something_unread_is_heard() {
        let (one, two) = Connection::pair().unwrap();
        one.send(b"never read", &[]).unwrap();
        two.send(b"go away", &[]).unwrap();
        two.send(b"bye", &[]).unwrap();
        drop(two);
        let mut buffer = [0; 64];
        let mut heard = || one.receive(&mut buffer).unwrap().map(|it| buffer[..it.bytes].to_vec());
        assert_eq!(heard(), Some(b"go away".to_vec()));
        assert_eq!(heard(), Some(b"bye".to_vec()));
        assert_eq!((heard(), heard()), (None, None));
    }

    #[test]
    fn a_message_that_does_not_fit_is_refused() {
        let (one, two) = Connection::pair().unwrap();
        one.send(&[7; 32], &[]).unwrap();
        let error = two.receive(&mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_dead_listener_refuses() {
        let path = std::env::temp_dir().join(format!("tsuji-socket-{}", std::process::id()));
        let listener = Listener::bind(&path, 0o700).unwrap();
        let connection = Connection::connect(&path).unwrap();
        let accepted = listener.accept().unwrap().unwrap();
        let user = crate::process::user_id();
        assert_eq!(accepted.credentials().unwrap().user, user);
        assert_eq!(connection.credentials().unwrap().user, user);
        drop(listener);
        // A child that another test is just forking holds the socket for a moment; the runner's
        // watchdog ends this if it is for longer.
        let error = loop {
            match Connection::connect(&path) {
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path).unwrap();
    }
}
