//! Samples over RTPS by Cyclone DDS, vendored and static, with raw CDR. It knows no ROS names and no
//! message types, and starts no engine before the first endpoint.
//!
//! Two tsuji processes connect over the network as any two DDS participants do. What DDS does not
//! say they tell each other in letters over the control channel: when both ends have matched, which
//! sample of the publisher has which number of the engine, and how many samples a reader that keeps
//! all has taken. A sample's own number is read from the RTPS message that brings it.
//!
//! With a participant that is not tsuji's there are no letters. A writer counts on such a reader
//! once the engine has matched it, and never waits for it. A reader takes from such a writer what
//! it was told of, and has no other bound for it than its own: it keeps the last so many, where it
//! keeps all as well.
//!
//! Samples also come from writers that a reader was not told of, those of tsuji whose samples come
//! by shared memory among them. Of all these together a volatile reader that keeps the last holds 64
//! of at most 64 KiB, another the last 1024 and 16 MiB, for 3 s or until it is told of the writer.
//! What it drops is counted as doubled, also when it was owed to a late joiner.
//!
//! The engine keeps to the addresses that the host had when it joined. While one of them is another,
//! nothing goes by it, which is logged; where it is back all goes on by itself.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;

use tsuji_core::{Capability, Scopes, TransportId};
use tsuji_platform::fork::Generation;
use tsuji_platform::poll::Nudge;
use tsuji_transport::bell::Cell;
use tsuji_transport::wire::Wire;
use tsuji_transport::{
    Endpoint, Error, ErrorKind, Gid, Greeting, Mail, PeerId, Reader, Result, Transport, Writer,
};

mod config;
pub use config::CycloneConfig;

mod engine;
mod extra;
mod ffi;
mod figures;
mod introduction;
mod known;
mod letter;
#[cfg(feature = "raw")]
pub mod raw;
mod reader;
mod wire;
mod writer;

use engine::{EngineWriter, Participant, Watch};
use figures::Figures;
use introduction::Secret;
use known::Known;
use letter::{Content, Letter};
use reader::{CycloneReader, ReaderCore};
use writer::{CycloneWriter, WriterCore};

/// One participant of a DDS domain, which joins when it is first needed. Clones share it.
#[derive(Clone, Debug)]
pub struct CycloneDds {
    // In this order: with the last of the clones the participant ends first.
    shared: Arc<Shared>,
    _end: Arc<WaitAtEnd>,
}

/// What the ends of a participant have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    id: PeerId,
    config: CycloneConfig,
    secret: Secret,
    // In this order: what watches is deleted before the participant.
    watch: OnceLock<Watch>,
    participant: OnceLock<Participant>,
    starting: Mutex<()>,
    /// Whoever starts the engine waits for the names of hosts.
    is_resolving: AtomicBool,
    /// Who was told of to whoever looks at the wire.
    known: Mutex<Known>,
    mail: Outbox,
    state: Mutex<State>,
    figures: Figures,
    generation: Generation,
    lingering: Arc<Lingering>,
}

/// Counts the threads of [`Shared::linger`].
#[derive(Debug, Default)]
struct Lingering {
    threads: Mutex<usize>,
    one_ended: Condvar,
}

/// Waits, when dropped, for the writers that linger: they may have something to deliver, and only
/// then does the participant leave, which others learn from it or from the end of its lease. The
/// engine ends each wait after a second.
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

/// Letters that wait for the control channel.
#[derive(Debug)]
struct Outbox {
    nudge: Arc<Nudge>,
    letters: Mutex<Vec<Mail>>,
}

impl CycloneDds {
    /// The participant of process `id`. It starts nothing yet.
    pub fn create(id: PeerId, config: &CycloneConfig) -> Result<Self> {
        if DOMAIN_MAX < config.domain {
            return Err(Error::new(ErrorKind::Invalid, "create a participant")
                .about(format!("domain {}; at most {DOMAIN_MAX}", config.domain)));
        }
        let failed = |error| Error::new(ErrorKind::Exhausted, "create an eventfd").because(error);
        let nudge = Arc::new(Nudge::new().map_err(failed)?);
        let mail = Outbox { nudge, letters: Mutex::default() };
        let shared = Shared {
            id,
            config: config.clone(),
            secret: Secret::random(),
            watch: OnceLock::new(),
            participant: OnceLock::new(),
            starting: Mutex::default(),
            is_resolving: AtomicBool::new(false),
            known: Mutex::default(),
            mail,
            state: Mutex::default(),
            figures: Figures::default(),
            generation: Generation::current(),
            lingering: Arc::default(),
        };
        let (lingering, generation) = (Arc::clone(&shared.lingering), shared.generation);
        let end = WaitAtEnd { lingering, generation };
        Ok(Self { shared: Arc::new(shared), _end: Arc::new(end) })
    }
}

/// The domain whose ports are the last below 65536 (RTPS 2.5, 9.6.2.3).
const DOMAIN_MAX: u32 = 232;

impl Transport for CycloneDds {
    fn id(&self) -> TransportId {
        TransportId::new("cyclonedds")
    }

    fn capability(&self) -> Capability {
        Capability {
            // Two ends of one participant do not reach each other.
            scopes: Scopes { intra: false, local: true, remote: true },
            reliable: true,
            loan: false,
            typed: false,
            immediate: false,
            directed: false,
            whole_envelope: false,
            cdr_only: true,
            sample_bytes_max: SAMPLE_BYTES_MAX,
            readers_max: u32::MAX,
        }
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.shared.figures.all()
    }

    fn wire(&self) -> Option<&dyn Wire> {
        Some(self)
    }

    fn greeting(&self, peer: PeerId) -> Result<Greeting> {
        let _ = peer;
        self.shared.open("greet")?;
        let bytes = introduction::greeting(self.shared.secret, self.shared.config.domain);
        Ok(Greeting { bytes, fds: Vec::new() })
    }

    fn meet(&self, peer: PeerId, greeting: Greeting) -> Result<Vec<u8>> {
        self.shared.open("meet")?;
        if peer == self.shared.id {
            return Err(Error::new(ErrorKind::Unsupported, "meet").about("it is this process"));
        }
        let secret = introduction::read_greeting(&greeting.bytes, self.shared.config.domain)?;
        if !greeting.fds.is_empty() {
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
            return Err(refused("not an answer to this process's greeting"));
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
        let participant = self.shared.participant_now()?;
        let core = WriterCore::open(&self.shared, participant, endpoint, room)?;
        self.shared.lock().writers.insert(endpoint.gid, Arc::downgrade(&core));
        Ok(Arc::new(CycloneWriter::new(core)))
    }

    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        let participant = self.shared.participant_now()?;
        let core = ReaderCore::open(&self.shared, participant, endpoint, news)?;
        self.shared.lock().readers.insert(endpoint.gid, Arc::downgrade(&core));
        Ok(Arc::new(CycloneReader::new(core)))
    }

    fn mail_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.mail.nudge.as_fd())
    }

    fn mail(&self) -> Vec<Mail> {
        if !self.shared.generation.is_current() {
            return Vec::new();
        }
        self.shared.mail.nudge.take();
        std::mem::take(&mut *lock(&self.shared.mail.letters))
    }

    fn receive(&self, from: PeerId, bytes: &[u8]) {
        if self.shared.generation.is_current()
            && let Some(letter) = Letter::from_bytes(bytes)
        {
            self.shared.read(from, &letter);
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

    pub(crate) fn is_current(&self) -> bool {
        self.generation.is_current()
    }

    /// The secret of a process that was met both ways.
    pub(crate) fn secret_of(&self, peer: PeerId) -> Option<Secret> {
        self.lock().peers.get(&peer).filter(|(_, is_met)| *is_met).map(|(secret, _)| *secret)
    }

    pub(crate) fn secret(&self) -> Secret {
        self.secret
    }

    pub(crate) fn id(&self) -> PeerId {
        self.id
    }

    pub(crate) fn post(&self, to: PeerId, letter: Letter) {
        lock(&self.mail.letters).push(Mail { to, bytes: letter.to_bytes() });
        self.mail.nudge.give();
    }

    /// A connect that answered Later may go on, or there is something on the wire.
    pub(crate) fn nudge(&self) {
        self.mail.nudge.give();
    }

    /// Drops a writer of the engine, which waits until its readers have what it sent, or are given
    /// up.
    pub(crate) fn linger(self: &Arc<Self>, writer: Option<Arc<EngineWriter>>) {
        let shared = Arc::clone(self);
        let lingering = Arc::clone(&self.lingering);
        *lock(&lingering.threads) += 1;
        // Where there is no thread to be had the closure is dropped, here and now.
        let spawned = thread::Builder::new().name("tsuji-linger".to_owned()).spawn(move || {
            drop(writer);
            let lingering = Arc::clone(&shared.lingering);
            // The participant ends with the last of its writers.
            drop(shared);
            lingering.end_one();
        });
        if spawned.is_err() {
            lingering.end_one();
        }
    }

    pub(crate) fn forget_writer(&self, gid: Gid) {
        self.lock().writers.remove(&gid);
    }

    pub(crate) fn forget_reader(&self, gid: Gid) {
        self.lock().readers.remove(&gid);
    }

    fn read(&self, from: PeerId, letter: &Letter) {
        let state = self.lock();
        let writer = state.writers.get(&letter.writer).and_then(Weak::upgrade);
        let reader = state.readers.get(&letter.reader).and_then(Weak::upgrade);
        drop(state);
        let is_for_writer =
            matches!(letter.content, Content::Heard | Content::Gone | Content::Credit(_));
        match (is_for_writer, writer, reader) {
            (true, Some(writer), _) => writer.read(from, letter),
            (false, _, Some(reader)) => reader.read(from, letter),
            (false, _, None) if matches!(letter.content, Content::Hello(_)) => {
                self.post(from, Letter { content: Content::Gone, ..*letter });
            }
            _ => (),
        }
    }

    /// The participant, unless the names of hosts are still to be resolved, which may take long.
    fn participant_now(&self) -> Result<&Participant> {
        if self.participant.get().is_none() && self.is_resolving.load(Ordering::Acquire) {
            let error = Error::new(ErrorKind::Busy, "join the domain");
            return Err(error.about("names of hosts are being resolved"));
        }
        self.participant()
    }

    fn participant(&self) -> Result<&Participant> {
        self.open("join the domain")?;
        if let Some(participant) = self.participant.get() {
            return Ok(participant);
        }
        let _one = lock(&self.starting);
        if let Some(participant) = self.participant.get() {
            return Ok(participant);
        }
        self.is_resolving.store(self.config.names_hosts(), Ordering::Release);
        let peers = self.config.resolve_peers();
        self.is_resolving.store(false, Ordering::Release);
        let peers = peers?;
        let receive_buffer_bytes_max = config::receive_buffer_bytes_max();
        if let Some(warning) = config::buffer_warning(receive_buffer_bytes_max) {
            tracing::warn!("{warning}");
        }
        let xml = self.config.to_xml(&peers, receive_buffer_bytes_max);
        let checked = self.config.check_extra(&peers);
        let joined = checked.and_then(|()| Participant::join(&xml, &self.config.user_data));
        let joined = joined.map_err(|error| self.config.explain(error))?;
        let participant = self.participant.get_or_init(|| joined);
        // Whoever only listened on the wire looks at it from now on.
        self.nudge();
        Ok(participant)
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

/// What a receive buffer of some megabytes can still take without many retransmissions; and what
/// fits the 32 bits in which RTPS counts.
const SAMPLE_BYTES_MAX: u64 = 1 << 30;

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
