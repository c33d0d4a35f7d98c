//! One session: who is there, who matches, and what is on its way.
//!
//! One lock guards the [`State`]. It is held for moments: never while Zenoh or a listener is called,
//! since Zenoh calls back from inside, and waits for room while its other threads want the lock.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tsuji_core::{Durability, History, Reliability};
use tsuji_engine::{
    Arrived, EndpointSpec, EngineReader, EngineWriter, Guid, Listener, ListenerSlot, Related, Watch,
};
use tsuji_platform::fork::Generation;
use tsuji_transport::wire::Found;
use tsuji_transport::{Bytes, Error, ErrorKind, Loan, Result};
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::query::Query;
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::session::ZenohId;
use zenoh::time::Timestamp;
use zenoh::{Session, Wait};

use crate::config::ZenohConfig;
use crate::control::{CONTROL, Prefix, Said, What, name};
use crate::endpoint::{ZenohReader, ZenohWriter};
use crate::format::{Announced, Attachment, Entity, Kind, NodeName, OWN_TOKENS, TOKENS, Token};
use crate::role::Role;
use crate::wire::{Early, HistoryAsk, PlainSource, Wire, to_hex};

mod gathering;
mod sending;
use gathering::{Came, Gatherer};
pub(crate) use sending::{Class, Job, To};
use sending::{SMALL_BYTES_MAX, SendQueue};

/// What a writer has on its way at most that is not acknowledged; one sample more fits always. Beyond it the
/// writer answers Busy.
pub(crate) const UNACKNOWLEDGED_BYTES_MAX: usize = 64 << 20;

/// How long an acknowledgement waits for more to acknowledge with it.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(5);

/// What is acknowledged without that delay.
const ACKNOWLEDGE_BYTES: usize = 128 << 10;

/// Writers that are gone, remembered of each session in case that something of theirs comes late.
const GONE_MAX: usize = 1024;

/// A value of Zenoh's, which a forked child forgets: it has no threads of Zenoh, and would tell others
/// that its parent is gone.
pub(crate) struct Own<T> {
    value: Option<T>,
    generation: Generation,
}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), generation: Generation::current() }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            std::mem::forget(self.value.take());
        }
    }
}

/// A participant, which is a session.
pub(crate) struct Participant {
    shared: Arc<Shared>,
    // What is told ends before the session.
    subscribers: Vec<Own<Subscriber<()>>>,
    tokens: Vec<Own<LivelinessToken>>,
    sender: Option<JoinHandle<()>>,
    generation: Generation,
}

/// What endpoints and callbacks share.
pub(crate) struct Shared {
    session: Own<Session>,
    /// Itself.
    pub(crate) me: Weak<Shared>,
    pub(crate) prefix: Prefix,
    pub(crate) session_name: String,
    pub(crate) domain: u32,
    /// Nodes of rmw_zenoh are met.
    pub(crate) is_on_wire: bool,
    state: Mutex<State>,
    /// The thread that sends for a class has something to do.
    work: [Condvar; 2],
    gatherer: Gatherer,
    /// The threads for large samples.
    helpers: Mutex<Vec<JoinHandle<()>>>,
    /// Something was acknowledged or sent, or a reader is gone.
    progress: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) endpoints_made: u32,
    /// Other sessions of tsuji.
    pub(crate) remotes: HashMap<Prefix, Remote>,
    pub(crate) writers: HashMap<[u8; 4], WriterState>,
    pub(crate) readers: HashMap<[u8; 4], ReaderState>,
    queues: [SendQueue; 2],
    /// What is to be acknowledged: the writer, the reader and the number.
    owed: HashMap<(Guid, [u8; 4]), i64>,
    owed_since: Option<Instant>,
    owed_bytes: usize,
    is_leaving: bool,
    pub(crate) wire: Wire,
}

/// Another session.
#[derive(Default)]
pub(crate) struct Remote {
    /// By which key it is told; `None` until it is known to be tsuji's.
    key: Option<KeyExpr<'static>>,
    endpoints: HashMap<[u8; 4], (Kind, Announced)>,
    gone: VecDeque<[u8; 4]>,
}

pub(crate) struct WriterState {
    pub(crate) role: Role,
    pub(crate) announced: Announced,
    class: Class,
    /// One for each class.
    publishers: [Arc<Own<Publisher<'static>>>; 2],
    pub(crate) ear: Arc<ListenerSlot>,
    written: i64,
    kept_max: usize,
    pub(crate) kept: VecDeque<Kept>,
    /// Where late joiners of rmw_zenoh tell samples apart by their times.
    is_stamped: bool,
    last_stamp: Option<Timestamp>,
    dropped: u64,
    pub(crate) readers: HashMap<Guid, Link>,
    /// The numbers and sizes of what not all reliable readers have acknowledged.
    unacknowledged: VecDeque<(i64, usize)>,
    /// Their bytes, and those that are queued and will not be acknowledged.
    pending_bytes: usize,
    queued_bytes: usize,
    /// Something of it is being sent, by whoever writes or by the thread of its class.
    is_sending: bool,
    /// What goes behind that, with what the writer was when it was put here.
    jobs: VecDeque<(Class, Job)>,
}

/// A reader that matches.
pub(crate) struct Link {
    pub(crate) is_reliable: bool,
    /// It is not tsuji's, and acknowledges nothing.
    pub(crate) is_foreign: bool,
    pub(crate) acknowledged: i64,
}

/// A sample that late joiners are owed.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) number: i64,
    pub(crate) source_ns: i64,
    pub(crate) stamp: Option<Timestamp>,
    pub(crate) bytes: Bytes,
}

pub(crate) struct ReaderState {
    pub(crate) announced: Announced,
    pub(crate) ear: Arc<ListenerSlot>,
    pub(crate) writers: HashMap<Guid, Source>,
    pub(crate) arrived: VecDeque<Arrived>,
    /// A large sample has come.
    is_large: bool,
    pub(crate) role: Role,
    /// Writers that match and are not tsuji's, and samples of those that are not known yet.
    pub(crate) foreign_sources: HashMap<Guid, PlainSource>,
    pub(crate) early: Early,
    /// Replies that came of foreign servers.
    pub(crate) answers: i64,
    /// Sessions whose nodes are to be told, to a reader of these.
    pub(crate) dirty: BTreeSet<Prefix>,
}

/// A writer that matches.
pub(crate) struct Source {
    /// The last number that came, or that is not for this reader.
    last: i64,
}

/// Zenoh starts its threads with the first session of a process, and they are no child's.
fn check_generation() -> Result<()> {
    static FIRST: OnceLock<Generation> = OnceLock::new();
    if FIRST.get_or_init(Generation::current).is_current() {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Unsupported, "open a session");
    Err(error.about("this process was forked from one that has used Zenoh"))
}

pub(crate) fn failed(operation: &'static str) -> impl Fn(zenoh::Error) -> Error {
    move |error| Error::new(ErrorKind::Unexpected, operation).because(error)
}

impl Participant {
    pub(crate) fn join(config: &ZenohConfig) -> Result<Self> {
        check_generation()?;
        let (opened, to_be_opened) = mpsc::channel();
        let (config, user_data) = (config.clone(), config.user_data.clone());
        // The session is opened and closed on a thread that is in nobody's asynchronous runtime.
        let body = move || {
            let joined = config.to_zenoh().and_then(|zenoh| {
                let session = zenoh::open(zenoh).wait().map_err(failed("open a session"))?;
                say_if_alone(&session, &config);
                Ok(Shared::new(session, &config))
            });
            let shared = joined.as_ref().ok().cloned();
            if opened.send(joined).is_ok()
                && let Some(shared) = shared
            {
                shared.send_all();
                if let Err(error) = shared.session().close().wait() {
                    tracing::warn!("a session of Zenoh is not closed: {error}");
                }
            }
        };
        let spawned = thread::Builder::new().name("tsuji-zenoh".to_owned()).spawn(body);
        let spawned = spawned
            .map_err(|error| Error::new(ErrorKind::Exhausted, "start a thread").because(error))?;
        let joined = to_be_opened.recv().map_err(|_gone| {
            Error::new(ErrorKind::Unexpected, "open a session").about("Zenoh panicked")
        })?;
        let mut participant = Self {
            shared: joined?,
            subscribers: Vec::new(),
            tokens: Vec::new(),
            sender: Some(spawned),
            generation: Generation::current(),
        };
        participant.begin(&user_data)?;
        Ok(participant)
    }

    #[cfg(test)]
    pub(crate) fn session(&self) -> &Session {
        self.shared.session()
    }

    /// Whoever hears of the token can tell this session something, so that is declared first.
    fn begin(&mut self, user_data: &[u8]) -> Result<()> {
        let declare = failed("declare a key");
        let (session, domain) = (self.shared.session(), self.shared.domain);
        let own_key = control_key(domain, &self.shared.session_name);
        let weak = Arc::downgrade(&self.shared);
        let told = session.declare_subscriber(own_key.clone()).allowed_origin(Locality::Remote);
        let told = told.callback(with(&weak, Shared::hear)).wait().map_err(&declare)?;
        self.subscribers.push(Own::new(told));
        let said = format!("{own_key}/{}", to_hex(user_data));
        let is_on_wire = !user_data.is_empty();
        for key in [Some(own_key), is_on_wire.then_some(said)].into_iter().flatten() {
            let token = session.liveliness().declare_token(key).wait().map_err(&declare)?;
            self.tokens.push(Own::new(token));
        }
        let of_tsuji = [
            (format!("{CONTROL}/{domain}/*"), Shared::see_session as fn(&Shared, &Sample)),
            (format!("{OWN_TOKENS}/{domain}/**"), Shared::see_endpoint),
        ];
        let on_wire = [
            (format!("{CONTROL}/{domain}/*/*"), Shared::see_tsuji as fn(&Shared, &Sample)),
            (format!("{TOKENS}/{domain}/**"), Shared::see_foreign),
        ];
        let on_wire = on_wire.into_iter().filter(|_| is_on_wire);
        for (key, callback) in of_tsuji.into_iter().chain(on_wire) {
            let seen = session.liveliness().declare_subscriber(key).history(true);
            let see = with(&weak, move |shared, sample| shared.see(callback, sample));
            let seen = seen.callback(see).wait().map_err(&declare)?;
            self.subscribers.push(Own::new(seen));
        }
        Ok(())
    }
}

/// Says so if nobody answers of those whom it connects to. Zenoh goes on trying.
fn say_if_alone(session: &Session, config: &ZenohConfig) {
    let connects_to = config.connects_to();
    let info = session.info();
    let is_alone =
        || info.routers_zid().wait().next().is_none() && info.peers_zid().wait().next().is_none();
    if !connects_to.is_empty() && is_alone() {
        tracing::warn!(
            "zenoh: nobody answers at {} yet, and nobody is met before; it is tried again until \
             somebody does. A router is started by `zenohd` or `ros2 run rmw_zenoh_cpp rmw_zenohd`; \
             processes of one host do without where the policy sets meet=\"host\" for zenoh",
            connects_to.join(" and ")
        );
    }
}

/// Calls `callback` while the session is used.
fn with(
    shared: &Weak<Shared>,
    callback: impl Fn(&Shared, &Sample) + Send + Sync + 'static,
) -> impl Fn(Sample) + Send + Sync + 'static {
    let shared = Weak::clone(shared);
    move |sample| {
        if let Some(shared) = shared.upgrade() {
            callback(&shared, &sample);
        }
    }
}

fn control_key(domain: u32, session: &str) -> String {
    format!("{CONTROL}/{domain}/{session}")
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant")
            .field("session", &self.shared.session_name)
            .finish_non_exhaustive()
    }
}

impl tsuji_engine::Participant for Participant {
    fn guid(&self) -> Guid {
        name(self.shared.prefix, [0, 0, 1, 0xc1])
    }

    fn writer(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineWriter>> {
        Ok(Box::new(ZenohWriter::open(&self.shared, spec)?))
    }

    fn reader(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineReader>> {
        Ok(Box::new(ZenohReader::open(&self.shared, spec)?))
    }

    fn watch(&self, listener: &Arc<dyn Listener>) -> Result<Box<dyn Watch>> {
        if !self.shared.is_on_wire {
            let error = Error::new(ErrorKind::Unsupported, "watch who is there");
            return Err(error.about("only tsuji is met by Zenoh here"));
        }
        let ear = Arc::new(ListenerSlot::default());
        ear.open(Arc::clone(listener));
        self.shared.lock().wire.look_out(Arc::clone(&ear));
        Ok(Box::new(Lookout { shared: Arc::clone(&self.shared), ear }))
    }
}

/// Watches who is there, until it is dropped.
struct Lookout {
    shared: Arc<Shared>,
    ear: Arc<ListenerSlot>,
}

impl fmt::Debug for Lookout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookout").finish_non_exhaustive()
    }
}

impl Watch for Lookout {
    fn take(&self) -> Vec<Found> {
        self.shared.lock().wire.take_found()
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.ear.close();
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            return;
        }
        self.tokens.clear();
        self.subscribers.clear();
        self.shared.lock().is_leaving = true;
        self.shared.work.iter().for_each(Condvar::notify_all);
        if let Some(sender) = self.sender.take() {
            // It panics only where Zenoh does.
            let _ = sender.join();
        }
    }
}

/// Who is to be called once the lock is released.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) matched: Vec<Arc<ListenerSlot>>,
    pub(crate) news: Vec<Arc<ListenerSlot>>,
    pub(crate) asks: Vec<HistoryAsk>,
    /// Requests that end without an answer, which their clients are told.
    pub(crate) ended: Vec<Own<Query>>,
}

impl Shared {
    fn new(session: Session, config: &ZenohConfig) -> Arc<Self> {
        let id = session.zid();
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            session_name: id.to_string(),
            prefix: prefix(id),
            session: Own::new(session),
            domain: config.domain,
            is_on_wire: !config.user_data.is_empty(),
            state: Mutex::default(),
            work: [Condvar::new(), Condvar::new()],
            gatherer: Gatherer::default(),
            helpers: Mutex::default(),
            progress: Condvar::new(),
        })
    }

    pub(crate) fn make(&self, calls: Calls) {
        let Calls { matched, mut news, asks, ended } = calls;
        asks.into_iter().for_each(|ask| self.ask_history(ask));
        drop(ended);
        matched.iter().for_each(|ear| ear.matched());
        news.dedup_by(|a, b| Arc::ptr_eq(a, b));
        news.iter().for_each(|ear| ear.data_available());
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        crate::lock(&self.state)
    }

    /// The last 4 bytes of the name of a new endpoint, which differ from the participant's.
    pub(crate) fn new_id(&self, kind: Kind) -> [u8; 4] {
        let mut state = self.lock();
        state.endpoints_made = (state.endpoints_made + 1) & 0xff_ffff;
        own_name(state.endpoints_made, kind)
    }

    /// As this endpoint is announced to others of tsuji.
    pub(crate) fn token(
        &self,
        id: [u8; 4],
        kind: Kind,
        announced: &Announced,
    ) -> Result<Own<LivelinessToken>> {
        let token = Token {
            domain: self.domain,
            session: self.session_name.clone(),
            id: u32::from_be_bytes(id) >> 8,
            node: NodeName { id: 0, namespace: "/".to_owned(), name: "tsuji".to_owned() },
            entity: Entity::endpoint(kind, announced.clone()),
        };
        let token = self.session().liveliness().declare_token(token.to_key(OWN_TOKENS)).wait();
        Ok(Own::new(token.map_err(failed("announce an endpoint"))?))
    }

    /// One for each class; others see but one.
    pub(crate) fn publishers(
        &self,
        announced: &Announced,
    ) -> Result<[Arc<Own<Publisher<'static>>>; 2]> {
        let congestion = match announced.qos.reliability {
            Reliability::Reliable => CongestionControl::Block,
            Reliability::BestEffort => CongestionControl::Drop,
        };
        let publisher = |class: Class| {
            let publisher = self.session().declare_publisher(announced.data_key(self.domain));
            let publisher = publisher
                .congestion_control(congestion)
                .priority(class.priority())
                .express(true)
                .allowed_destination(Locality::Remote)
                .wait();
            publisher.map(|it| Arc::new(Own::new(it))).map_err(failed("open a writer"))
        };
        Ok([publisher(Class::Small)?, publisher(Class::Large)?])
    }

    pub(crate) fn subscriber(
        self: &Arc<Self>,
        id: [u8; 4],
        announced: &Announced,
    ) -> Result<Own<Subscriber<()>>> {
        let subscriber = self.session().declare_subscriber(announced.data_key(self.domain));
        let callback = with(&Arc::downgrade(self), move |shared, sample| shared.arrive(id, sample));
        let subscriber = subscriber.allowed_origin(Locality::Remote).callback(callback).wait();
        Ok(Own::new(subscriber.map_err(failed("open a reader"))?))
    }

    /// A new writer. Its token was declared.
    pub(crate) fn add_writer(&self, id: [u8; 4], writer: WriterState) {
        let mut state = self.lock();
        let mut writer = writer;
        writer.match_plains(&state.wire);
        state.writers.insert(id, writer);
        let State { remotes, .. } = &*state;
        let all: Vec<(Prefix, [u8; 4])> = remotes
            .iter()
            .filter(|(_, remote)| remote.key.is_some())
            .flat_map(|(prefix, remote)| remote.endpoints.keys().map(|id| (*prefix, *id)))
            .collect();
        for (prefix, remote) in all {
            self.try_match(&mut state, id, prefix, remote);
        }
    }

    /// Begins to send to a reader, if it matches and is not sent to. Answers whether it is new.
    fn try_match(
        &self,
        state: &mut State,
        id: [u8; 4],
        prefix: Prefix,
        remote_id: [u8; 4],
    ) -> bool {
        let State { remotes, writers, .. } = &mut *state;
        let Some(writer) = writers.get_mut(&id) else { return false };
        let Some(remote) = remotes.get(&prefix) else { return false };
        let (Some(key), Some((Kind::Reader, reader))) =
            (&remote.key, remote.endpoints.get(&remote_id))
        else {
            return false;
        };
        let guid = name(prefix, remote_id);
        if writer.readers.contains_key(&guid) || !writer.announced.reaches(reader) {
            return false;
        }
        let is_owed = reader.qos.durability == Durability::TransientLocal;
        let first_kept = writer.kept.front().filter(|_| is_owed).map(|it| it.number);
        let start = first_kept.map_or(writer.written, |first| first - 1);
        let is_reliable = reader.qos.reliability == Reliability::Reliable;
        let link = Link { is_reliable, is_foreign: false, acknowledged: start };
        writer.readers.insert(guid, link);
        let said = |what, number, source_ns| Said {
            what,
            from: self.prefix,
            writer: id,
            reader: remote_id,
            number,
            source_ns,
        };
        let job = |said: Said, payload| Job {
            writer: id,
            to: To::One(key.clone()),
            payload,
            attachment: said.to_bytes().to_vec(),
            bytes: 0,
            stamp: None,
        };
        let mut jobs = vec![job(said(What::Start, start, 0), ZBytes::new())];
        if is_owed {
            for Kept { number, source_ns, bytes, .. } in &writer.kept {
                jobs.push(job(said(What::Kept, *number, *source_ns), payload_of(bytes)));
            }
        }
        jobs.into_iter().for_each(|job| self.enqueue(state, job));
        true
    }

    /// A sample of any writer by the key of a reader.
    fn arrive(&self, reader: [u8; 4], sample: &Sample) {
        if sample.kind() == SampleKind::Put
            && !self.leave_large(reader, sample, Came::Topic(reader))
        {
            self.take_in(reader, sample);
        }
    }

    fn take_in(&self, reader: [u8; 4], sample: &Sample) {
        let read = sample.attachment().and_then(|it| Attachment::read_with(&it.to_bytes()));
        let Some((attachment, related)) = read else {
            return self.refuse_sample(sample.key_expr().as_str());
        };
        let is_known = |state: &State| {
            let reader = state.readers.get(&reader);
            reader.is_none_or(|it| {
                it.role != Role::Topic || it.writers.contains_key(&attachment.writer)
            })
        };
        if is_known(&self.lock()) {
            let Attachment { number, source_ns, writer } = attachment;
            self.deliver(reader, writer, number, (source_ns, related), sample.payload());
        } else {
            self.arrive_foreign(reader, attachment, sample.payload());
        }
    }

    /// Puts a sample where the reader takes it from, unless it is not for this reader or came before.
    fn deliver(
        &self,
        id: [u8; 4],
        writer: Guid,
        number: i64,
        (source_ns, related): (i64, Option<Related>),
        payload: &ZBytes,
    ) {
        let is_wanted = |state: &State| {
            let source = state.readers.get(&id).and_then(|it| it.writers.get(&writer));
            source.is_some_and(|it| it.last < number)
        };
        if !is_wanted(&self.lock()) {
            return;
        }
        // One writer's samples come one after the other, so nothing changes meanwhile but an end.
        let bytes = bytes_of(payload);
        let mut state = self.lock();
        if !is_wanted(&state) {
            return;
        }
        let State { readers, owed, owed_since, owed_bytes, .. } = &mut *state;
        let Some(reader) = readers.get_mut(&id) else { return };
        let Some(source) = reader.writers.get_mut(&writer) else { return };
        source.last = number;
        let len = bytes.len();
        reader.arrived.push_back(Arrived {
            writer,
            number,
            source_ns,
            is_headed: false,
            related,
            bytes,
        });
        let ear = Arc::clone(&reader.ear);
        let mut is_urgent = false;
        if reader.announced.qos.reliability == Reliability::Reliable {
            owed.insert((writer, id), number);
            let was_urgent = ACKNOWLEDGE_BYTES <= *owed_bytes;
            *owed_bytes += len;
            is_urgent = !was_urgent && ACKNOWLEDGE_BYTES <= *owed_bytes;
            is_urgent |= owed_since.is_none();
            owed_since.get_or_insert_with(Instant::now);
        }
        if is_urgent {
            self.wake(&mut state, Class::Small);
        }
        drop(state);
        ear.data_available();
    }

    /// What another session says to this one.
    fn hear(&self, sample: &Sample) {
        let Some(attachment) = sample.attachment() else { return };
        let Some(said) = Said::read(&attachment.to_bytes()) else { return };
        match said.what {
            What::Start => {
                // Behind what has come by its topic for others, of which some may have been left out on the way.
                if !self.leave_large(said.reader, sample, Came::Start(said)) {
                    self.start(&said);
                }
            }
            What::Kept => {
                let reader = said.reader;
                if !self.leave_large(reader, sample, Came::Kept(said)) {
                    self.take_kept(&said, sample);
                }
            }
            What::Acknowledged => self.note_acknowledged(&said),
        }
    }

    fn take_kept(&self, said: &Said, sample: &Sample) {
        let writer = name(said.from, said.writer);
        let at = (said.source_ns, None);
        self.deliver(said.reader, writer, said.number, at, sample.payload());
    }

    fn start(&self, said: &Said) {
        let mut state = self.lock();
        let is_gone =
            state.remotes.get(&said.from).is_some_and(|it| it.gone.contains(&said.writer));
        if is_gone {
            return;
        }
        let Some(reader) = state.readers.get_mut(&said.reader) else { return };
        reader.writers.insert(name(said.from, said.writer), Source { last: said.number });
        let ear = Arc::clone(&reader.ear);
        drop(state);
        ear.matched();
    }

    fn note_acknowledged(&self, said: &Said) {
        let mut state = self.lock();
        let State { writers, queues, .. } = &mut *state;
        let Some(writer) = writers.get_mut(&said.writer) else { return };
        let Some(link) = writer.readers.get_mut(&name(said.from, said.reader)) else { return };
        link.acknowledged = link.acknowledged.max(said.number).min(writer.written);
        queues[writer.class as usize].on_the_way_bytes -= writer.forget_acknowledged();
        self.progress.notify_all();
    }

    /// A session of tsuji is there, or gone.
    fn see_session(&self, sample: &Sample) {
        let key = sample.key_expr();
        let Some(prefix) = key.as_str().rsplit('/').next().and_then(prefix_of) else { return };
        if prefix == self.prefix {
            return;
        }
        let mut calls = Calls::default();
        let mut state = self.lock();
        if sample.kind() == SampleKind::Put {
            let remote = state.remotes.entry(prefix).or_default();
            remote.key = Some(key.clone().into_owned());
            let ids: Vec<[u8; 4]> = remote.endpoints.keys().copied().collect();
            ids.into_iter().for_each(|id| self.match_reader(&mut state, prefix, id, &mut calls));
        } else {
            if let Some(remote) = state.remotes.get_mut(&prefix) {
                remote.key = None;
                if remote.endpoints.is_empty() {
                    state.remotes.remove(&prefix);
                }
            }
            self.unmatch(&mut state, |guid| guid[..12] == prefix, &mut calls);
        }
        drop(state);
        self.make(calls);
    }

    /// An endpoint is there, or gone.
    fn see_endpoint(&self, sample: &Sample) {
        let token = Token::read(OWN_TOKENS, sample.key_expr().as_str());
        let Some(Token { session, id, entity, .. }) = token else { return };
        let (kind, announced) = match entity {
            Entity::Writer(announced) => (Kind::Writer, announced),
            Entity::Reader(announced) => (Kind::Reader, announced),
            _ => return,
        };
        let Some(prefix) = prefix_of(&session) else { return };
        if prefix == self.prefix {
            return;
        }
        let id = own_name(id, kind);
        let mut calls = Calls::default();
        let mut state = self.lock();
        if sample.kind() == SampleKind::Put {
            let remote = state.remotes.entry(prefix).or_default();
            remote.gone.retain(|it| *it != id);
            remote.endpoints.insert(id, (kind, announced));
            self.match_reader(&mut state, prefix, id, &mut calls);
        } else {
            if let Some(remote) = state.remotes.get_mut(&prefix) {
                remote.endpoints.remove(&id);
                if remote.gone.len() == GONE_MAX {
                    remote.gone.pop_front();
                }
                remote.gone.push_back(id);
                if remote.endpoints.is_empty() && remote.key.is_none() {
                    state.remotes.remove(&prefix);
                }
            }
            let gone = name(prefix, id);
            self.unmatch(&mut state, |guid| *guid == gone, &mut calls);
        }
        drop(state);
        self.make(calls);
    }

    /// Matches a reader there with all writers here.
    fn match_reader(&self, state: &mut State, prefix: Prefix, id: [u8; 4], calls: &mut Calls) {
        let writers: Vec<[u8; 4]> = state.writers.keys().copied().collect();
        for writer in writers {
            if self.try_match(state, writer, prefix, id)
                && let Some(writer) = state.writers.get(&writer)
            {
                calls.matched.push(Arc::clone(&writer.ear));
            }
        }
    }

    fn unmatch(&self, state: &mut State, is_gone: impl Fn(&Guid) -> bool, calls: &mut Calls) {
        let State { writers, readers, queues, owed, .. } = &mut *state;
        for writer in writers.values_mut() {
            let before = writer.readers.len();
            writer.readers.retain(|guid, _| !is_gone(guid));
            if writer.readers.len() < before {
                queues[writer.class as usize].on_the_way_bytes -= writer.forget_acknowledged();
                calls.matched.push(Arc::clone(&writer.ear));
            }
        }
        for reader in readers.values_mut() {
            let before = reader.writers.len();
            reader.writers.retain(|guid, _| !is_gone(guid));
            if reader.writers.len() < before {
                calls.matched.push(Arc::clone(&reader.ear));
            }
        }
        owed.retain(|(writer, _), _| !is_gone(writer));
        self.progress.notify_all();
    }

    /// Whether the readers have all that was written. Nobody waits for a best-effort reader.
    pub(crate) fn is_acknowledged(&self, id: [u8; 4]) -> bool {
        self.lock().writers.get(&id).is_none_or(WriterState::is_acknowledged)
    }

    /// Waits until `is_done` of the writer, or for `timeout`.
    pub(crate) fn wait_for(
        &self,
        id: [u8; 4],
        timeout: Duration,
        is_done: fn(&WriterState) -> bool,
    ) {
        let state = self.lock();
        let waited = self.progress.wait_timeout_while(state, timeout, |state| {
            state.writers.get(&id).is_some_and(|writer| !is_done(writer))
        });
        drop(waited);
    }

    pub(crate) fn remove_writer(&self, id: [u8; 4]) {
        let mut state = self.lock();
        let removed = state.writers.remove(&id);
        let hidden = state.wire.hide(id);
        if let Some(writer) = &removed {
            let queue = &mut state.queues[writer.class as usize];
            queue.on_the_way_bytes -= writer.pending_bytes;
            queue.queued_bytes -= writer.queued_bytes;
        }
        drop(state);
        drop((removed, hidden));
    }

    pub(crate) fn remove_reader(&self, id: [u8; 4]) {
        let mut state = self.lock();
        state.owed.retain(|(_, reader), _| *reader != id);
        let removed = state.readers.remove(&id);
        let hidden = state.wire.hide(id);
        drop(state);
        drop((removed, hidden));
    }
}

impl ReaderState {
    pub(crate) fn new(role: Role, announced: Announced, ear: Arc<ListenerSlot>) -> Self {
        Self {
            role,
            announced,
            ear,
            writers: HashMap::new(),
            arrived: VecDeque::new(),
            is_large: false,
            foreign_sources: HashMap::new(),
            early: Early::default(),
            answers: 0,
            dirty: BTreeSet::new(),
        }
    }
}

impl WriterState {
    pub(crate) fn new(
        spec: &EndpointSpec<'_>,
        (role, announced): (Role, Announced),
        publishers: [Arc<Own<Publisher<'static>>>; 2],
        ear: Arc<ListenerSlot>,
    ) -> Self {
        let kept_max = match (spec.qos.durability, spec.qos.history) {
            (Durability::Volatile, _) => 0,
            (Durability::TransientLocal, History::KeepLast(depth)) => depth,
            (Durability::TransientLocal, History::KeepAll) => spec.keep_all_max,
        };
        Self {
            is_stamped: role == Role::Topic && 0 < kept_max,
            last_stamp: None,
            dropped: 0,
            role,
            announced,
            class: Class::Small,
            publishers,
            ear,
            written: 0,
            kept_max: kept_max as usize,
            kept: VecDeque::new(),
            readers: HashMap::new(),
            unacknowledged: VecDeque::new(),
            pending_bytes: 0,
            queued_bytes: 0,
            is_sending: false,
            jobs: VecDeque::new(),
        }
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        self.readers.values().all(|it| !it.is_reliable || it.acknowledged == self.written)
    }

    /// Whether nothing of it is on its way, as far as is told.
    pub(crate) fn is_done(&self) -> bool {
        self.jobs.is_empty() && !self.is_sending && self.is_acknowledged()
    }

    /// Answers the bytes of what is newly acknowledged by all.
    fn forget_acknowledged(&mut self) -> usize {
        let reliable = self.readers.values().filter(|it| it.is_reliable);
        let all = reliable.map(|it| it.acknowledged).min().unwrap_or(i64::MAX);
        let mut bytes = 0;
        while let Some((number, len)) = self.unacknowledged.front()
            && *number <= all
        {
            bytes += len;
            self.unacknowledged.pop_front();
        }
        self.pending_bytes -= bytes;
        bytes
    }
}

impl State {
    /// What is to be acknowledged to whom.
    fn take_owed(&mut self, prefix: Prefix) -> Vec<(KeyExpr<'static>, Said)> {
        self.owed_since = None;
        self.owed_bytes = 0;
        let remotes = &self.remotes;
        let told = self.owed.drain().filter_map(|((writer, reader), number)| {
            let from: Prefix = writer[..12].try_into().ok()?;
            let key = remotes.get(&from)?.key.clone()?;
            let writer = writer[12..].try_into().ok()?;
            let what = What::Acknowledged;
            Some((key, Said { what, from: prefix, writer, reader, number, source_ns: 0 }))
        });
        told.collect()
    }
}

/// The sample itself, without a copy.
pub(crate) fn payload_of(bytes: &Bytes) -> ZBytes {
    struct Held(Bytes);
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    ZBytes::from(bytes::Bytes::from_owner(Held(bytes.clone())))
}

/// A copy with the alignment of a CDR body, of what may have come in pieces.
pub(crate) fn bytes_of(payload: &ZBytes) -> Bytes {
    let mut loan = Loan::on_heap(payload.len());
    let mut rest = &mut loan[..];
    for slice in payload.slices() {
        let (part, behind) = rest.split_at_mut(slice.len());
        part.copy_from_slice(slice);
        rest = behind;
    }
    loan.freeze()
}

pub(crate) fn own_name(number: u32, kind: Kind) -> [u8; 4] {
    // The kinds as RTPS has them.
    let kind = match kind {
        Kind::Writer => 0x03,
        Kind::Reader => 0x04,
    };
    (number << 8 | kind).to_be_bytes()
}

pub(crate) fn prefix(id: ZenohId) -> Prefix {
    let mut prefix = Prefix::default();
    prefix.copy_from_slice(&id.to_le_bytes()[..12]);
    prefix
}

fn prefix_of(session: &str) -> Option<Prefix> {
    session.parse::<ZenohId>().ok().map(prefix)
}

impl<T> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("it is taken when dropped"),
        }
    }
}
