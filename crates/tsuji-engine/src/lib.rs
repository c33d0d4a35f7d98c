//! A transport over an engine: what is the same whatever engine carries the samples.
//!
//! An [`Engine`] sends bytes to all that match, in order, and numbers them; it finds others by topic,
//! type and QoS. It knows nothing of tsuji. [`EngineTransport`] makes a transport of it, which starts
//! the engine with the first endpoint and not before, and ends it when nothing has needed it for a while.
//!
//! Two tsuji processes connect over the network as any two participants do. What the engine does not
//! say they tell each other in messages over the control channel: when both ends have matched, which
//! sample of the publisher has which number of the engine, and how many samples a reader that keeps
//! all has taken.
//!
//! With a participant that is not tsuji's there are no messages. A writer counts on such a reader
//! once the engine has matched it, and never waits for it. A reader takes from such a writer what
//! it was told of, and has no other bound for it than its own: it keeps the last so many, where it
//! keeps all as well.
//!
//! Samples also come from writers that a reader was not told of, those of tsuji whose samples come
//! by shared memory among them. Of all these together a volatile reader that keeps the last holds 64
//! of at most 64 KiB, another the last 1024 and 16 MiB, for 3 s or until it is told of the writer.
//! What it drops is counted as doubled, also when it was owed to a late joiner.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tsuji_core::{Capability, Peers, Scopes, TransportId};
use tsuji_platform::fork::Generation;
use tsuji_platform::ordered::{Condvar, Mutex, MutexGuard};
use tsuji_platform::poll::Waker;
use tsuji_transport::bell::Cell;
use tsuji_transport::engines::{EngineStatus, Need};
use tsuji_transport::wire::{Treatment, Wire};
use tsuji_transport::{
    ControlMessage, Endpoint, Error, ErrorKind, Gid, Handshake, PeerId, Reader, Result, Transport,
    Writer,
};

mod engine;
pub use engine::{
    About, Arrived, EndpointSpec, Engine, EngineReader, EngineWriter, Guid, Library, Listener,
    Participant, Peep, Related, Tap, Watch, participant_of,
};

mod figures;
mod flow_message;
pub mod foreign;
mod gauge;
mod introduction;
mod known;
mod membership;
mod reader;
mod slot;
pub use slot::ListenerSlot;
mod wire;
mod writer;

use figures::Figures;
use flow_message::{Content, FlowMessage};
use introduction::{Ground, Secret};
use known::Known;
pub use membership::IDLE_DEFAULT;
use membership::{FirstOf, Lease, Membership, Turns};
use reader::{FlowReader, ReaderCore};
use writer::{FlowWriter, WriterCore};

/// A transport over one participant of an engine, which joins when it is needed, and leaves when it has not been for
/// a while. Clones share it.
#[derive(Clone, Debug)]
pub struct EngineTransport {
    // In this order: with the last of the clones the participant ends first.
    shared: Arc<Shared>,
    _end: Arc<WaitAtEnd>,
}

/// What the ends of a participant have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    id: PeerId,
    engine: Box<dyn Engine>,
    about: About,
    secret: Secret,
    membership: Membership,
    turns: Turns,
    /// Who was told of to whoever looks at the wire.
    known: Mutex<Known>,
    /// How processes of this host are treated on the wire.
    treatments: Mutex<HashMap<PeerId, Treatment>>,
    control_message: Outbox,
    /// Counts the connections to readers of this process. A reader may be opened anew while messages about
    /// an earlier one are on their way.
    rounds: AtomicU32,
    state: Mutex<State>,
    figures: Figures,
    generation: Generation,
    lingering: Arc<Lingering>,
}

/// Counts the threads of [`Shared::apart`].
#[derive(Debug, Default)]
struct Lingering {
    threads: Mutex<usize>,
    one_ended: Condvar,
}

/// Waits, when dropped, for the writers that linger: they may have something to deliver, and only
/// then does the participant leave, which others learn from it or from the end of its lease. The
/// engine ends each wait after a second. A participant that joins or leaves is waited for too.
#[derive(Debug)]
struct WaitAtEnd {
    lingering: Arc<Lingering>,
    generation: Generation,
}

impl Lingering {
    fn end_one(&self) {
        *lock(&self.threads) -= 1;
        self.one_ended.notify_all();
    }
}

/// Counts a thread down at its end, however that comes.
struct EndOne(Arc<Lingering>);

impl Drop for EndOne {
    fn drop(&mut self) {
        self.0.end_one();
    }
}

impl Drop for WaitAtEnd {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            return;
        }
        let mut threads = lock(&self.lingering.threads);
        while 0 < *threads {
            let waited = self.lingering.one_ended.wait(threads);
            threads = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Whom this process has met, with their secrets; `false` until they have answered.
    peers: HashMap<PeerId, (Secret, bool)>,
    writers: HashMap<Gid, Weak<WriterCore>>,
    readers: HashMap<Gid, Weak<ReaderCore>>,
}

/// FlowMessages that wait for the control channel.
#[derive(Debug)]
struct Outbox {
    waker: Arc<Waker>,
    messages: Mutex<Vec<ControlMessage>>,
}

impl EngineTransport {
    /// A transport of process `id` over `engine`. It starts nothing yet.
    pub fn new(id: PeerId, engine: impl Engine) -> Result<Self> {
        let failed = |error| Error::new(ErrorKind::Exhausted, "create an eventfd").because(error);
        let waker = Arc::new(Waker::new().map_err(failed)?);
        let control_message = Outbox { waker, messages: Mutex::default() };
        let shared = Shared {
            id,
            about: engine.about(),
            engine: Box::new(engine),
            secret: Secret::random(),
            membership: Membership::default(),
            turns: Turns::default(),
            known: Mutex::default(),
            treatments: Mutex::default(),
            control_message,
            rounds: AtomicU32::new(1),
            state: Mutex::default(),
            figures: Figures::default(),
            generation: Generation::current(),
            lingering: Arc::default(),
        };
        let (lingering, generation) = (Arc::clone(&shared.lingering), shared.generation);
        let end = WaitAtEnd { lingering, generation };
        Ok(Self { shared: Arc::new(shared), _end: Arc::new(end) })
    }

    /// The same, whose engine ends when nothing has needed it for so long, instead of [`IDLE_DEFAULT`]; never,
    /// with `None`.
    #[must_use]
    pub fn ending_after(self, idle: Option<Duration>) -> Self {
        self.shared.membership.set_idle(idle);
        self
    }
}

impl Transport for EngineTransport {
    fn id(&self) -> TransportId {
        self.shared.about.id.clone()
    }

    fn is_secured(&self) -> bool {
        self.shared.engine.is_secured()
    }

    fn capability(&self) -> Capability {
        Capability {
            // Two ends of one participant do not reach each other.
            scopes: Scopes { intra: false, ..self.shared.about.scopes },
            reliable: true,
            loan: false,
            typed: false,
            immediate: false,
            directed: false,
            whole_envelope: false,
            cdr_only: true,
            sample_bytes_max: self.shared.about.sample_bytes_max,
            readers_max: u32::MAX,
        }
    }

    fn trouble(&self) -> Option<String> {
        let shared = &*self.shared;
        let is_asked = shared.is_current() && !shared.membership.is_there();
        is_asked.then(|| shared.engine.trouble()).flatten()
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.shared.figures.all()
    }

    fn engine(&self) -> Option<EngineStatus> {
        self.shared.is_current().then(|| self.shared.status())
    }

    fn tidy(&self, now_ns: u64) -> Option<u64> {
        if self.shared.is_current() { self.shared.leave_if_idle(now_ns) } else { None }
    }

    fn wire(&self) -> Option<&dyn Wire> {
        (self.shared.about.peers != Peers::TSUJI).then_some(self)
    }

    fn handshake(&self, peer: PeerId) -> Result<Handshake> {
        let _ = peer;
        self.shared.open("handshake")?;
        let bytes = introduction::handshake(self.shared.secret, self.shared.ground());
        Ok(Handshake { bytes, fds: Vec::new() })
    }

    fn meet(&self, peer: PeerId, handshake: Handshake) -> Result<Vec<u8>> {
        self.shared.open("meet")?;
        if peer == self.shared.id {
            return Err(Error::new(ErrorKind::Unsupported, "meet").about("it is this process"));
        }
        let secret = introduction::read_handshake(&handshake.bytes, self.shared.ground())?;
        if !handshake.fds.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "meet").about("descriptors; allowed: none"));
        }
        let mut state = self.shared.lock();
        state.peers.entry(peer).or_insert((secret, false)).0 = secret;
        Ok(introduction::answer(secret))
    }

    fn confirm(&self, peer: PeerId, answer: &[u8]) -> Result<()> {
        self.shared.open("confirm")?;
        let refused = |why| Error::new(ErrorKind::Invalid, "confirm").about(why);
        if answer != introduction::answer(self.shared.secret) {
            return Err(refused("not an answer to this process's handshake"));
        }
        let mut state = self.shared.lock();
        let met = state.peers.get_mut(&peer).ok_or_else(|| refused("of a process not met"))?;
        met.1 = true;
        Ok(())
    }

    fn part(&self, peer: PeerId) {
        if !self.shared.generation.is_current() {
            return;
        }
        let mut state = self.shared.lock();
        state.peers.remove(&peer);
        let writers: Vec<_> = state.writers.values().filter_map(Weak::upgrade).collect();
        let readers: Vec<_> = state.readers.values().filter_map(Weak::upgrade).collect();
        drop(state);
        writers.iter().for_each(|writer| writer.part(peer));
        readers.iter().for_each(|reader| reader.part(peer));
    }

    fn open_writer(&self, endpoint: &Endpoint, room: Arc<Cell>) -> Result<Arc<dyn Writer>> {
        let lease = self.shared.participant_now(|| Need::Writer(endpoint.topic.clone()))?;
        let core = self.shared.measured(&lease, FirstOf::Writers, || {
            WriterCore::open(&self.shared, lease.clone(), endpoint, room)
        })?;
        self.shared.lock().writers.insert(endpoint.gid, Arc::downgrade(&core));
        Ok(Arc::new(FlowWriter::new(core)))
    }

    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        let lease = self.shared.participant_now(|| Need::Reader(endpoint.topic.clone()))?;
        let core = self.shared.measured(&lease, FirstOf::Readers, || {
            ReaderCore::open(&self.shared, lease.clone(), endpoint, news)
        })?;
        self.shared.lock().readers.insert(endpoint.gid, Arc::downgrade(&core));
        Ok(Arc::new(FlowReader::new(core)))
    }

    fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.control_message.waker.as_fd())
    }

    fn control_messages(&self) -> Vec<ControlMessage> {
        if !self.shared.generation.is_current() {
            return Vec::new();
        }
        self.shared.control_message.waker.take();
        std::mem::take(&mut *lock(&self.shared.control_message.messages))
    }

    fn receive(&self, from: PeerId, bytes: &[u8]) {
        if self.shared.generation.is_current()
            && let Some(message) = FlowMessage::from_bytes(bytes)
        {
            self.shared.read(from, &message);
        }
    }
}

impl Shared {
    pub(crate) fn open(&self, operation: &'static str) -> Result<()> {
        if self.generation.is_current() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Closed, operation).about("this is a forked child"))
    }

    /// Whether a sample is not too large.
    pub(crate) fn fits(&self, len: usize) -> Result<()> {
        let max = self.about.sample_bytes_max;
        if len as u64 <= max {
            return Ok(());
        }
        Err(Error::new(ErrorKind::TooLarge, "send").about(format!("{len} bytes; at most {max}")))
    }

    pub(crate) fn is_current(&self) -> bool {
        self.generation.is_current()
    }

    /// The secret of a process that was met both ways.
    pub(crate) fn secret_of(&self, peer: PeerId) -> Option<Secret> {
        self.lock().peers.get(&peer).filter(|(_, is_met)| *is_met).map(|(secret, _)| *secret)
    }

    fn ground(&self) -> Ground {
        let is_public = self.about.peers != Peers::TSUJI;
        Ground { network: self.engine.network(), is_public }
    }

    pub(crate) fn secret(&self) -> Secret {
        self.secret
    }

    pub(crate) fn id(&self) -> PeerId {
        self.id
    }

    pub(crate) fn post(&self, to: PeerId, message: FlowMessage) {
        lock(&self.control_message.messages).push(ControlMessage { to, bytes: message.to_bytes() });
        self.control_message.waker.give();
    }

    /// A connect that answered Later may go on, or there is something on the wire.
    pub(crate) fn wake(&self) {
        self.control_message.waker.give();
    }

    /// Drops a writer of the engine, which waits until its readers have what it sent, or are given
    /// up.
    pub(crate) fn linger(self: &Arc<Self>, writer: Option<Arc<dyn EngineWriter>>, lease: Lease) {
        // Where there is no thread to be had the closure is dropped, here and now.
        let _ = self.apart("tsuji-linger", move || {
            drop(writer);
            drop(lease);
        });
    }

    /// Does what takes long on a thread of its own. Where there is none to be had `work` is dropped.
    pub(crate) fn apart(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        let lingering = Arc::clone(&self.lingering);
        *lock(&lingering.threads) += 1;
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let end = EndOne(Arc::clone(&shared.lingering));
            work();
            // The participant ends with the last of its writers.
            drop(shared);
            drop(end);
        });
        if spawned.is_err() {
            lingering.end_one();
        }
        spawned.map(drop)
    }

    /// This writer is gone. Another of its name may have been opened before it ended.
    pub(crate) fn forget_writer(&self, core: &Arc<WriterCore>) {
        let writers = &mut self.lock().writers;
        writers.retain(|_, it| !std::ptr::eq(it.as_ptr(), Arc::as_ptr(core)));
    }

    /// A reader of this process.
    pub(crate) fn reader(&self, gid: Gid) -> Option<Arc<ReaderCore>> {
        self.lock().readers.get(&gid).and_then(Weak::upgrade)
    }

    /// This reader is gone, as a writer is.
    pub(crate) fn forget_reader(&self, core: &Arc<ReaderCore>) {
        let readers = &mut self.lock().readers;
        readers.retain(|_, it| !std::ptr::eq(it.as_ptr(), Arc::as_ptr(core)));
    }

    /// A number for a connection that no other of this process has, or had lately.
    pub(crate) fn next_round(&self) -> u32 {
        self.rounds.fetch_add(1, Ordering::Relaxed)
    }

    fn read(&self, from: PeerId, message: &FlowMessage) {
        let state = self.lock();
        let writer = state.writers.get(&message.writer).and_then(Weak::upgrade);
        let reader = state.readers.get(&message.reader).and_then(Weak::upgrade);
        drop(state);
        let is_for_writer =
            matches!(message.content, Content::Heard | Content::Gone | Content::Credit(_));
        match (is_for_writer, writer, reader) {
            (true, Some(writer), _) => writer.read(from, message),
            (false, _, Some(reader)) => reader.read(from, message),
            (false, _, None) if matches!(message.content, Content::Hello(_)) => {
                self.post(from, FlowMessage { content: Content::Gone, ..*message });
            }
            _ => (),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Nothing panics while holding these locks, so a poisoned one is still sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The encapsulation header.
pub(crate) const HEADER_LEN: usize = 4;

/// Whether the header says plain CDR, version 1, of either byte order (RTPS 2.5, table 10.3). What
/// is not tsuji's may say anything.
pub(crate) fn is_plain_cdr(bytes: &[u8]) -> bool {
    HEADER_LEN <= bytes.len() && matches!(bytes[..2], [0, 0 | 1])
}

#[cfg(test)]
mod tests {
    use super::is_plain_cdr;

    #[test]
    fn plain_cdr_is_told_by_its_header() {
        for header in [[0, 0, 0, 0], [0, 1, 0, 3], [0, 1, 0xff, 0xff]] {
            assert!(is_plain_cdr(&header), "{header:?}");
        }
        // Too short; a parameter list; version 2; nonsense.
        for bytes in [&[][..], &[0, 1, 0], &[0, 3, 0, 0], &[0, 7, 0, 0], &[1, 1, 0, 0]] {
            assert!(!is_plain_cdr(bytes), "{bytes:?}");
        }
    }
}
