//! Listening for others on a wire in place of joining it, which loads an engine: where memory is
//! preferred, and nobody is there to speak with yet.
//!
//! Whoever is there announces itself to a multicast group, again and again; the first that is heard
//! there ends the listening, and the wire is joined. Two processes that only listen would never hear of
//! each other, so each of them tries to connect when it begins, and twice again since datagrams get lost. A connect attempt
//! from elsewhere ends the listening too, and what the engine then announces ends that of the one who
//! tried to connect. Processes that share a run-time folder find each other there, and pass over their connect attempts.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tsuji_core::TransportId;
use tsuji_platform::multicast::GroupSocket;
use tsuji_platform::{clock, process};
use tsuji_ros::discovery::{ConnectAttempt, HEADER_BYTES, Heard};
use tsuji_transport::Transport;
use tsuji_transport::deferred::told;
use tsuji_transport::wire::Announcements;

use crate::pacing::after;
use crate::session::Session;

/// How a process came to join a wire, or why it has not.
#[derive(Debug)]
pub(crate) enum JoinState {
    /// It listens for others.
    Listens,
    /// It could not listen.
    AtOnce(String),
    /// It has listened, and this was why it ended.
    Joined(String),
}

impl fmt::Display for JoinState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listens => f.write_str("listens for others; no engine yet"),
            Self::AtOnce(why) => write!(f, "joined at once because {why}"),
            Self::Joined(why) => write!(f, "joined because {why}"),
        }
    }
}

/// What stands in for the engine of a transport.
pub(super) struct Listening {
    pub(super) transport: TransportId,
    pub(super) socket: GroupSocket,
    announcements: Announcements,
    attempt: ConnectAttempt,
    since_ns: u64,
    /// ConnectAttempts that were sent.
    attempts: usize,
}

impl Listening {
    /// Begins to listen; else the reason why it cannot.
    pub(super) fn begin(session: &Session, transport: &dyn Transport) -> Result<Self, String> {
        let wire = transport.wire().ok_or("it has no wire")?;
        let announcements = wire.announcements()?;
        let failed = |what: &str, error: io::Error| format!("{what}: {error}");
        let place =
            place(session.folder()).map_err(|error| failed("the run-time folder", error))?;
        let group = announcements.group;
        let socket = GroupSocket::join(group, &announcements.interfaces, announcements.hops_max)
            .map_err(|error| failed(&format!("nothing can be heard at {group}"), error))?;
        Ok(Self {
            transport: transport.id(),
            socket,
            announcements,
            attempt: ConnectAttempt { place },
            since_ns: clock::monotonic_ns(),
            attempts: 0,
        })
    }

    /// Whether others announce themselves elsewhere by now.
    pub(super) fn has_moved(&self, transport: &dyn Transport) -> bool {
        let now = transport.wire().and_then(|it| it.announcements().ok());
        now.is_some_and(|it| it != self.announcements)
    }

    /// Who was heard first, if somebody was.
    pub(super) fn heard(&self) -> Option<String> {
        let mut header = [0; HEADER_BYTES];
        // A flood must not keep others waiting: the rest is looked at next time.
        for _ in 0..READ_BATCH {
            let datagram = match self.socket.receive(&mut header) {
                Ok(datagram) => datagram?,
                Err(error) => return Some(format!("nothing more can be heard: {error}")),
            };
            let given = &header[..datagram.bytes.min(HEADER_BYTES)];
            let from = match *datagram.from.ip() {
                Ipv4Addr::UNSPECIFIED => String::new(),
                address => format!(" at {address}"),
            };
            match Heard::read(given, datagram.bytes) {
                Some(Heard::ConnectAttempt(it)) if it.place == self.attempt.place => (),
                Some(Heard::ConnectAttempt(_)) => {
                    return Some(format!("another process of tsuji{from} tried to connect"));
                }
                Some(Heard::Participant(vendor)) => {
                    return Some(format!("a participant{from} was heard ({vendor})"));
                }
                None => (),
            }
        }
        None
    }

    /// When it tries to connect next; `None` when it has done so often enough.
    pub(super) fn due_ns(&self) -> Option<u64> {
        CONNECT_ATTEMPTS.get(self.attempts).map(|pause| after(self.since_ns, *pause))
    }

    /// ConnectAttempts if it is time.
    pub(super) fn on_time(&mut self, now_ns: u64) {
        if self.due_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }
        self.attempts += 1;
        if let Err(error) = self.socket.send(&self.attempt.to_bytes()) {
            told::warn!(transport = %self.transport, %error, "others who only listen do not hear of this process");
        }
    }
}

/// When it tries to connect, counted from the beginning. Whoever comes later tries to connect itself.
const CONNECT_ATTEMPTS: [Duration; 3] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

/// Datagrams that are read before others are looked at.
const READ_BATCH: usize = 256;

/// A number that processes have in common who share a run-time folder, and hardly any others.
pub(crate) fn place(folder: &Path) -> io::Result<u64> {
    let folder = std::fs::metadata(folder)?;
    let boot = process::boot_id()? as u64;
    Ok(boot ^ folder.ino() ^ folder.dev().rotate_left(32))
}
