//! The seam between tsuji and whatever carries samples.
//!
//! A transport implements [`Transport`], [`Writer`] and [`Reader`], and passes
//! `tsuji_conformance::suite!`. Nothing above this crate names a concrete transport, and nothing
//! in it knows of policies, message types or ROS.
//!
//! How two ends meet: each process hands every other its [`Handshake`]. A reader's process calls
//! [`Reader::accept`] for a writer and sends the [`Address`] to the writer's process, which calls
//! [`Writer::connect`]. Whoever owns the control channel carries these; a transport does not.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::{Capability, Qos, TransportId};

pub mod bell;
pub mod deferred;
pub mod engines;
pub mod faulty;
pub mod inproc;

mod bytes;
pub use bytes::{Bytes, Loan, Owner};

mod error;
pub use error::{Error, ErrorKind, Result};

mod heap;
pub use heap::{HeapReserve, LEAD};

mod sample;
pub use sample::{Encoding, Envelope, Gid, Payload, RelationHeader, Sample};

mod sync;

pub mod wire;

use bell::Cell;
use engines::EngineStatus;
use wire::Wire;

/// One way to carry samples.
///
/// No call blocks. Calls may come from any thread. A transport never calls back into its caller;
/// it rings the [`Cell`]s it was given. Values answer [`ErrorKind::Closed`] in a forked child.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// The name used in policies, routes and logs.
    fn id(&self) -> TransportId;

    /// What it can do on this machine. Fixed for the life of the value.
    fn capability(&self) -> Capability;

    /// Whether what it carries stays inside the process, or reaches only processes with which a [`Handshake`] was exchanged, by
    /// descriptors and nothing that has a name.
    fn is_confined(&self) -> bool {
        false
    }

    /// Whether whoever it reaches beyond that has proved to be allowed, and what it carries is protected as the governance of this
    /// process's keystore asks. A secured process has such transports, and those that [are confined](Self::is_confined).
    fn is_secured(&self) -> bool {
        false
    }

    /// Why it cannot take on more flows now, or `None` when it is well.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// What it counts, as names and numbers, for people to read.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// What is known of its engine; `None` for a transport that has none.
    fn engine(&self) -> Option<EngineStatus> {
        None
    }

    /// Ends what nothing has needed for long enough, as an engine; what takes long goes on behind it. Answers when
    /// there may be more to end, on the monotonic clock. Whoever owns the control channels calls it then, and
    /// whenever [`control_fd`](Self::control_fd) was readable.
    fn tidy(&self, now_ns: u64) -> Option<u64> {
        let _ = now_ns;
        None
    }

    /// What `peer` needs in order to exchange samples with this process.
    fn handshake(&self, peer: PeerId) -> Result<Handshake> {
        let _ = peer;
        Ok(Handshake::default())
    }

    /// Takes the handshake of `peer`. The answer goes back to it, for [`confirm`](Self::confirm).
    fn meet(&self, peer: PeerId, handshake: Handshake) -> Result<Vec<u8>> {
        let _ = (peer, handshake);
        Ok(Vec::new())
    }

    /// Takes the answer of `peer` to this process's handshake. On success it is proved that the
    /// transport reaches `peer`; a failure says why it does not.
    fn confirm(&self, peer: PeerId, answer: &[u8]) -> Result<()> {
        let _ = (peer, answer);
        Ok(())
    }

    /// `peer` is dead, or has left and looks at nothing of this process any more. What it held is
    /// free again; what it sent whole is still delivered.
    fn part(&self, peer: PeerId) {
        let _ = peer;
    }

    /// Readable when [`control_messages`](Self::control_messages) has something, or when a connect that answered
    /// [`Connected::Later`] may go on. `None` for a transport that needs neither.
    fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What this transport has to say to itself in other processes, in order. Whoever owns the
    /// control channels carries it. Makes the descriptor unreadable.
    fn control_messages(&self) -> Vec<ControlMessage> {
        Vec::new()
    }

    /// Takes what this transport in process `from` said. What it does not understand it ignores.
    fn receive(&self, from: PeerId, bytes: &[u8]) {
        let _ = (from, bytes);
    }

    /// Its wire, if others than those who were met are there too.
    fn wire(&self) -> Option<&dyn Wire> {
        None
    }

    /// Joins a topic as a writer. `room` is rung when a call that answered Busy may succeed.
    fn open_writer(&self, endpoint: &Endpoint, room: Arc<Cell>) -> Result<Arc<dyn Writer>>;

    /// Joins a topic as a reader. `news` is rung when [`Reader::take`] may have a sample.
    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>>;
}

/// The sending end of one topic over one transport. Dropping it leaves the topic; what its readers
/// have not taken yet, they still take.
///
/// One thread at a time calls the methods that send or reserve; the caller keeps the order.
pub trait Writer: fmt::Debug + Send + Sync {
    /// Lends memory of `len` bytes, which readers will see without a copy.
    ///
    /// Busy when all memory is in use, TooLarge when it could never be lent, Unsupported without
    /// [`Capability::loan`].
    fn loan(&self, len: usize) -> Result<Loan>;

    /// Makes sure that the next send of at most `len` bytes will not answer Busy. A reservation
    /// ends with that send, with [`cancel`](Self::cancel), or when a reader is connected.
    fn reserve(&self, len: usize) -> Result<()>;

    /// Gives a reservation back.
    fn cancel(&self);

    /// Shows readers that are not tsuji's that the writer is alive, where it offers liveliness by topic.
    fn assert_liveliness(&self) {}

    /// Sends one sample to every connected reader, or to none and answers why.
    ///
    /// On return the caller may reuse what it passed, and send the same bytes again. A reader that
    /// keeps the last samples loses its oldest when it is full; one that keeps all makes this answer
    /// Busy.
    fn send(&self, envelope: &Envelope, payload: &Payload) -> Result<Sent>;

    /// Sends one sample as [`send`](Self::send) does, but not to these readers, which count it as
    /// [filtered out](Reader::filtered) and are not rung. Whether they have room does not matter, unless it was reserved. Unsupported
    /// without [`Capability::directed`].
    fn send_except(
        &self,
        filtered: &[Gid],
        envelope: &Envelope,
        payload: &Payload,
    ) -> Result<Sent> {
        let _ = (filtered, envelope, payload);
        Err(Error::new(ErrorKind::Unsupported, "send to some readers"))
    }

    /// Lets a connected reader count a sample as filtered out that it is not sent. Does nothing for a reader that is not
    /// connected, and without [`Capability::directed`].
    fn note_filtered(&self, reader: Gid, envelope: &Envelope) {
        let _ = (reader, envelope);
    }

    /// Sends one sample to one connected reader: what a late joiner is owed, or a reply. Unsupported
    /// without [`Capability::directed`].
    fn send_to(&self, reader: Gid, envelope: &Envelope, payload: &Payload) -> Result<Sent>;

    /// Sends to the reader that gave this address, from now on; or begins to, and is called again with
    /// the same address when [`Transport::control_fd`] is readable.
    fn connect(&self, address: &Address) -> Result<Connected>;

    /// Sends to this reader no more. A reader that is not connected is no error. Without
    /// [`Capability::directed`] it may still get what others get, until it is told.
    fn disconnect(&self, reader: Gid);

    /// Its name on the [`Wire`], if it has one.
    fn wire_name(&self) -> Option<Gid> {
        None
    }

    /// Counts on a reader that is not tsuji's, by its name on the [`Wire`]; answers as
    /// [`connect`](Self::connect) does and is called again as that is. Unsupported without a wire.
    ///
    /// Such a reader has no room that could be full: what it does not keep up with is between it and
    /// the engine. Where all is kept, a send is Busy only when the engine waits for too much to be
    /// acknowledged. [`disconnect`](Self::disconnect) and [`lost`](Self::lost) name it as here.
    fn connect_foreign(&self, reader: Gid) -> Result<Connected> {
        let _ = reader;
        Err(Error::new(ErrorKind::Unsupported, "connect to a foreign reader"))
    }

    /// For how long it has matched such a reader, by its name on the [`Wire`]. That one may match later.
    fn matched_for(&self, reader: Gid) -> Duration {
        let _ = reader;
        Duration::MAX
    }

    /// Connected readers that cannot be reached any more, each told once. They are connected no longer.
    /// [`Transport::control_fd`] is readable when there are some.
    fn lost(&self) -> Vec<Gid> {
        Vec::new()
    }

    /// How many readers are connected.
    fn readers(&self) -> usize;

    /// Whether all that was sent has come to every reader that counts on it. Where a send puts it there, that is
    /// always so.
    fn is_acknowledged(&self) -> bool {
        true
    }

    /// Calls `then` when that is so, or after `timeout`: on another thread where there is something to wait for.
    fn when_acknowledged(&self, timeout: Duration, then: Box<dyn FnOnce() + Send>) {
        let _ = timeout;
        then();
    }
}

/// What became of a connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connected {
    /// What is sent from here on arrives.
    Now,
    /// The other end is still to be reached.
    Later,
}

/// What became of a sample that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Readers that got it.
    pub readers: u32,
    /// Older samples that it pushed out of readers that were full.
    pub displaced: u32,
}

/// The receiving end of one topic over one transport. Dropping it leaves the topic; samples taken
/// from it stay valid.
pub trait Reader: fmt::Debug + Send + Sync {
    /// Makes room for a writer of process `peer`, and says how it connects.
    fn accept(&self, peer: PeerId, writer: Gid) -> Result<Address>;

    /// Its name on the [`Wire`], if it has one.
    fn wire_name(&self) -> Option<Gid> {
        None
    }

    /// Takes what a writer sends that is not tsuji's, by its name on the [`Wire`]. What it was not
    /// told of it drops and counts. Later while the engine has not matched the writer: it is called
    /// again when [`Transport::control_fd`] is readable. Unsupported without a wire.
    ///
    /// The envelope of such a sample has the writer's name as its GID, the wire's number as its
    /// sequence number, and 0 as its `mono_ns`. Such a writer waits for nobody: where all is kept, it
    /// displaces the oldest of its kind beyond as many as one writer of tsuji may have waiting.
    /// What came of it before this call is delivered too, as far as it was held.
    fn accept_foreign(&self, writer: Gid) -> Result<Connected> {
        let _ = writer;
        Err(Error::new(ErrorKind::Unsupported, "accept a foreign writer"))
    }

    /// This writer sends nothing any more: it has disconnected, or its process is dead. What it
    /// sent whole is still delivered, as far as what is kept of all forgotten writers together allows:
    /// of the last [`FORGOTTEN_MAX`], and where the last samples are kept, no more than the depth.
    /// Beyond it the oldest are displaced.
    fn forget(&self, writer: Gid);

    /// The oldest sample that was not taken. Samples of one writer come in its order.
    fn take(&self) -> Result<Option<Sample>>;

    /// Samples lost because this reader was full, since it was opened.
    fn displaced(&self) -> u64;

    /// From now on what foreign writers send and `filter` does not let pass is filtered out as it arrives, before it takes a
    /// place or rings. Does nothing without a wire. What writers of tsuji send is filtered out by them, or by whoever takes.
    fn set_filter(&self, filter: Option<ByteFilter>) {
        let _ = filter;
    }

    /// Samples that writers have filtered out of what they sent here, or this reader as they arrived, since it was opened. Counted before a later sample of
    /// the same writer comes.
    fn filtered(&self) -> u64 {
        0
    }

    /// The same of one writer that is not forgotten.
    fn filtered_of(&self, writer: Gid) -> u64 {
        let _ = writer;
        0
    }

    /// Samples of this writer that were displaced here after it had sent them, so that no [`Sent`] counts them. 0 where
    /// a send itself displaces. The first such sample since [`heed_displaced`](Self::heed_displaced) makes
    /// [`Transport::control_fd`] readable.
    fn displaced_of(&self, writer: Gid) -> u64 {
        let _ = writer;
        0
    }

    /// Whether this foreign writer, which says by itself that it is alive, has not done so within its lease. `None` where that is
    /// not known. A change makes [`Transport::control_fd`] readable; one that is over by then is not seen.
    fn is_silent(&self, writer: Gid) -> Option<bool> {
        let _ = writer;
        None
    }

    /// Whoever is told of what was displaced looks at [`displaced_of`](Self::displaced_of) after this, and is to be
    /// woken when there is more.
    fn heed_displaced(&self) {}

    /// The envelope's `mono_ns` of the newest sample of this writer that has arrived, whether it
    /// waits, was taken, displaced or filtered out. `None` before the first, and for a writer that is not
    /// accepted. A sample at 0 is none. Without [`Capability::whole_envelope`] it is the time of
    /// arrival, later for each sample.
    fn newest_ns(&self, writer: Gid) -> Option<u64>;
}

/// Whether bytes that have arrived are kept. It is called with locks held: it never blocks, and calls nobody back.
pub type ByteFilter = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Forgotten writers of which a reader keeps what is unread; more, where that costs nothing.
pub const FORGOTTEN_MAX: usize = 256;

/// Names a process, more exactly one loaded copy of the in-process registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub [u8; 16]);

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Who wants to join what.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// The full topic name.
    pub topic: String,
    /// The type's name, for engines that announce it.
    pub type_name: String,
    /// The endpoint's name.
    pub gid: Gid,
    /// What it offers or asks for. A reader keeps as many samples as its history says.
    pub qos: Qos,
    /// Samples that keep-all histories hold before a writer is Busy; at least 1. A reader of best
    /// effort loses its oldest instead.
    pub keep_all_max: u32,
    /// What engines announce in the place of topic and type, for ends that are not tsuji's.
    pub announced: Option<Announced>,
}

/// An endpoint as an engine announces it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// The topic's name on the wire.
    pub topic: String,
    /// The type's name on the wire.
    pub type_name: String,
    /// The type has keys.
    pub is_keyed: bool,
    /// What else is said of it.
    pub user_data: Vec<u8>,
}

/// How a writer reaches a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The reader's process.
    pub peer: PeerId,
    /// The reader.
    pub reader: Gid,
    /// What only the transport understands.
    pub bytes: Vec<u8>,
}

/// What a transport says to itself in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlMessage {
    /// The other process.
    pub to: PeerId,
    /// What only the transport understands.
    pub bytes: Vec<u8>,
}

/// What a process shows another before they exchange samples.
#[derive(Debug, Default)]
pub struct Handshake {
    /// What only the transport understands.
    pub bytes: Vec<u8>,
    /// Descriptors of memory to share.
    pub fds: Vec<OwnedFd>,
}
