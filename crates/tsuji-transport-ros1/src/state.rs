//! What the threads and the endpoints of a participant share.
//!
//! Locks, in their order: that of the [`State`], then that of one writer or reader. A listener is called under the lock of its own ear alone,
//! and no name is resolved under the first. Under that a message is converted only for a late joiner.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tsuji_engine::{Arrived, Guid, ListenerSlot, Related};
use tsuji_platform::poll::{Poll, Waker};
use tsuji_ros1::uri::Uri;
use tsuji_transport::Bytes;

use crate::graph::{Graph, Prefix};
use crate::link::{Frame, OutLink, Room};
use crate::role::Role;
use crate::types::{Message, Service, Types};

/// The last 4 bytes of the name of an endpoint of this process.
pub(crate) type Id = [u8; 4];

/// Short-lived threads that connect to nodes, at most. Others wait for their turn.
const JOBS_MAX: usize = 16;

/// How soon a connection that failed is tried again, and how much later at most.
pub(crate) const RETRY_MIN: Duration = Duration::from_millis(200);
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Shared {
    /// Itself.
    me: Weak<Self>,
    pub(crate) types: Types,
    pub(crate) master: Uri,
    /// What others call this host.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The address of this process that the master and nodes are told.
    pub(crate) api: String,
    pub(crate) prefix: Prefix,
    pub(crate) poll: Arc<Poll>,
    pub(crate) waker: Waker,
    state: Mutex<State>,
    /// The thread that speaks with the master has something to do, or has ended.
    pub(crate) work: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    endpoints_made: u32,
    connections_made: u64,
    pub(crate) writers: HashMap<Id, Arc<WriterCore>>,
    pub(crate) readers: HashMap<Id, Arc<ReaderCore>>,
    /// Which node of this process has an endpoint, by its full name.
    pub(crate) owners: HashMap<Id, String>,
    pub(crate) graph: Graph,
    /// The addresses of the publishers of topics that are subscribed to, as the master says.
    pub(crate) publishers: HashMap<String, Vec<String>>,
    /// Connections of subscribers of ROS 1.
    pub(crate) subscribers: Vec<Subscriber>,
    /// Connections to publishers and servers, also those that are only wanted.
    pub(crate) targets: HashMap<Target, TargetState>,
    /// Connections that callers of services of ROS 1 have to here, by the name of the client's half for replies.
    pub(crate) callers: HashMap<Guid, Caller>,
    /// Connections that the thread of connections is to take over.
    pub(crate) new_connections: Vec<crate::io::Connection>,
    /// Numbers of connections that are to be ended.
    pub(crate) to_close: Vec<u64>,
    /// Nodes that are to be looked for again, as something of theirs has ended.
    pub(crate) to_probe: BTreeSet<String>,
    /// What is known of the addresses of nodes, and the types of services by name and node.
    pub(crate) probes: HashMap<String, Probe>,
    pub(crate) service_types: HashMap<(String, String), ServiceType>,
    /// Services that are to be asked for their types.
    pub(crate) due_types: Vec<(String, String)>,
    /// Something of these is new.
    pub(crate) is_probed: bool,
    /// Names under which nodes are registered, where their own are taken.
    pub(crate) aliases: HashMap<String, String>,
    /// Something is to be registered, connected or looked for.
    pub(crate) is_due: bool,
    /// All registrations are to be made anew: somebody has ended them.
    pub(crate) is_unregistered: bool,
    pub(crate) is_leaving: bool,
    pub(crate) threads: usize,
    /// Threads that connect to others, and those that answer who has connected to here.
    jobs: [Jobs; 2],
}

#[derive(Default)]
struct Jobs {
    running: usize,
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
}

/// Which short-lived threads do something: who connects to here waits for nobody who does not answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pool {
    Outgoing,
    Incoming,
}

/// What is known of the address of a node.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) api: String,
    pub(crate) at: Instant,
    /// It is this process, or another of tsuji.
    pub(crate) is_ours: bool,
    pub(crate) is_alive: bool,
    pub(crate) pid: Option<u32>,
    /// It is being asked.
    pub(crate) is_asked: bool,
    /// How often in a row it did not answer.
    pub(crate) silent: u32,
}

/// What is known of the type of a service.
#[derive(Clone, Debug)]
pub(crate) struct ServiceType {
    pub(crate) ty: Option<String>,
    pub(crate) at: Instant,
    pub(crate) is_asked: bool,
}

/// Whom an endpoint of this process is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// A reader, and the address of a publisher.
    Publisher(Id, String),
    /// A client's half for requests, and the service and the name of its server.
    Server(Id, String, Guid),
}

#[derive(Debug)]
pub(crate) struct TargetState {
    pub(crate) progress: Progress,
    delay: Duration,
    /// The last reason that was told.
    told: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Progress {
    /// To be tried then.
    Due(Instant),
    Connecting,
    /// With the number of its connection and the name of the endpoint at the other end.
    Connected(u64, Guid),
}

/// A subscriber of ROS 1 that is connected.
pub(crate) struct Subscriber {
    pub(crate) topic: String,
    pub(crate) node: String,
    pub(crate) guid: Guid,
    pub(crate) link: Arc<OutLink>,
    /// The type of the topic here, and as both ends have agreed.
    pub(crate) known: Arc<Message>,
    pub(crate) message: Arc<Message>,
}

/// A client of ROS 1, with what it has asked.
pub(crate) struct Caller {
    pub(crate) node: String,
    pub(crate) service: String,
    /// Requests that were not answered.
    pub(crate) pending: HashMap<i64, Arc<OutLink>>,
    pub(crate) connections: usize,
    /// When the last connection ended.
    pub(crate) idle_since: Option<Instant>,
}

/// A writer of this process.
pub(crate) struct WriterCore {
    pub(crate) id: Id,
    pub(crate) role: Role,
    pub(crate) ear: Arc<ListenerSlot>,
    /// Of a topic.
    pub(crate) message: Option<Arc<Message>>,
    /// Of a half of a service.
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) room: Room,
    /// So many messages are kept for late joiners.
    pub(crate) kept_max: usize,
    pub(crate) endpoint: Mutex<WriterEndpoint>,
}

#[derive(Default)]
pub(crate) struct WriterEndpoint {
    pub(crate) written: i64,
    /// As CDR, with their numbers.
    pub(crate) kept: VecDeque<(i64, Bytes)>,
    pub(crate) links: HashMap<Guid, WriterLink>,
    pub(crate) outgoing: Outgoing,
}

/// What becomes of the messages of a writer.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// Messages that were sent before, whose memory may be free again.
    pub(crate) sent: VecDeque<Frame>,
    pub(crate) dropped: u64,
    pub(crate) dropped_told: u64,
    pub(crate) refused: u64,
}

pub(crate) struct WriterLink {
    pub(crate) out: Option<Arc<OutLink>>,
    pub(crate) message: Option<Arc<Message>>,
    /// Numbers of requests that are not answered, in their order.
    pub(crate) pending: Arc<Mutex<VecDeque<i64>>>,
}

/// A reader of this process.
pub(crate) struct ReaderCore {
    pub(crate) id: Id,
    pub(crate) role: Role,
    pub(crate) ear: Arc<ListenerSlot>,
    pub(crate) message: Option<Arc<Message>>,
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) endpoint: Mutex<ReaderEndpoint>,
}

#[derive(Default)]
pub(crate) struct ReaderEndpoint {
    pub(crate) arrived: VecDeque<Arrived>,
    /// The writers that match.
    pub(crate) sources: HashSet<Guid>,
    /// How much has come of each, also of those that were connected before: their numbers go on.
    pub(crate) counts: HashMap<Guid, i64>,
    pub(crate) refused: u64,
}

/// Whose listeners are to be called once the lock is released.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) matched: Vec<Arc<ListenerSlot>>,
    pub(crate) new_messages: Vec<Arc<ListenerSlot>>,
}

impl Calls {
    pub(crate) fn make(self) {
        self.matched.iter().for_each(|it| it.matched());
        self.new_messages.iter().for_each(|it| it.data_available());
    }
}

/// Writers whose numbers are remembered, beyond those that match.
const COUNTS_MAX: usize = 4096;

impl ReaderEndpoint {
    /// Puts a message where it is taken from, and answers its number; nothing where its writer does not match.
    pub(crate) fn arrive(
        &mut self,
        writer: Guid,
        related: Option<Related>,
        bytes: Bytes,
    ) -> Option<i64> {
        if !self.sources.contains(&writer) {
            return None;
        }
        if COUNTS_MAX <= self.counts.len() && !self.counts.contains_key(&writer) {
            let sources = &self.sources;
            self.counts.retain(|it, _| sources.contains(it));
        }
        let count = self.counts.entry(writer).or_default();
        *count += 1;
        let number = *count;
        // ROS 1 does not say when a message was sent, so it is taken to be sent when it comes.
        let source_ns = wall_ns();
        let is_headed = false;
        self.arrived.push_back(Arrived { writer, number, source_ns, is_headed, related, bytes });
        Some(number)
    }
}

impl ReaderCore {
    /// Takes in what a writer has sent; what is no message is counted and told. Answers whether it is one.
    pub(crate) fn arrive(
        &self,
        writer: Guid,
        related: Option<Related>,
        message: Result<Bytes, String>,
        what: &str,
    ) -> bool {
        let mut endpoint = crate::lock(&self.endpoint);
        let why = match message {
            Ok(bytes) => return endpoint.arrive(writer, related, bytes).is_some(),
            Err(why) => why,
        };
        endpoint.refused += 1;
        let refused = endpoint.refused;
        drop(endpoint);
        if is_reported(refused) {
            tracing::warn!(name = self.role.name(), refused, "ros1: {what}: {why}");
        }
        false
    }
}

fn wall_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok().and_then(|it| i64::try_from(it.as_nanos()).ok()).unwrap_or_default()
}

/// True for the first and then for each tenfold.
pub(crate) fn is_reported(count: u64) -> bool {
    count != 0 && 10_u64.pow(count.ilog10()) == count
}

impl Shared {
    #[expect(clippy::too_many_arguments, reason = "what a participant is made of")]
    pub(crate) fn new(
        types: Types,
        master: Uri,
        host: String,
        port: u16,
        api: String,
        prefix: Prefix,
        poll: Poll,
        waker: Waker,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            types,
            master,
            host,
            port,
            api,
            prefix,
            poll: Arc::new(poll),
            waker,
            state: Mutex::default(),
            work: Condvar::new(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        crate::lock(&self.state)
    }

    pub(crate) fn arc(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// Changes the state, then calls whoever is to know.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State, &mut Calls) -> T) -> T {
        let mut calls = Calls::default();
        let mut state = self.lock();
        let answer = change(&mut state, &mut calls);
        calls.new_messages.extend(state.graph.to_be_called());
        let is_due = state.is_due;
        let is_new = !state.new_connections.is_empty() || !state.to_close.is_empty();
        drop(state);
        if is_due {
            self.work.notify_all();
        }
        if is_new {
            self.waker.give();
        }
        calls.make();
        answer
    }

    /// Runs something that may take long on a thread of its own, when one of few is free.
    pub(crate) fn run(&self, pool: Pool, job: impl FnOnce(&Self) + Send + 'static) {
        let Some(shared) = self.arc() else { return };
        let job = Box::new(move || job(&shared));
        let mut state = self.lock();
        let jobs = &mut state.jobs[pool as usize];
        if JOBS_MAX <= jobs.running {
            jobs.waiting.push_back(job);
            return;
        }
        jobs.running += 1;
        drop(state);
        self.start_job(pool, job);
    }

    fn start_job(&self, pool: Pool, job: Box<dyn FnOnce() + Send>) {
        let Some(shared) = self.arc() else { return };
        let body = move || {
            let mut next = Some(job);
            while let Some(job) = next {
                job();
                let mut state = shared.lock();
                let is_leaving = state.is_leaving;
                let jobs = &mut state.jobs[pool as usize];
                next = jobs.waiting.pop_front().filter(|_| !is_leaving);
                if next.is_none() {
                    jobs.running -= 1;
                }
            }
        };
        if thread::Builder::new().name("tsuji-ros1-call".to_owned()).spawn(body).is_err() {
            let mut state = self.lock();
            state.jobs[pool as usize].running -= 1;
            // What it was to do is tried again.
            let due = Instant::now() + RETRY_MAX;
            let waiting = state.targets.values_mut();
            let waiting = waiting.filter(|it| matches!(it.progress, Progress::Connecting));
            waiting.for_each(|it| it.progress = Progress::Due(due));
            state.probes.retain(|_, it| !it.is_asked);
            state.service_types.retain(|_, it| !it.is_asked);
        }
    }
}

impl State {
    pub(crate) fn new_id(&mut self, is_writer: bool) -> Id {
        self.endpoints_made = (self.endpoints_made + 1) & 0xff_ffff;
        crate::graph::entity(self.endpoints_made, is_writer)
    }

    pub(crate) fn new_key(&mut self) -> u64 {
        self.connections_made += 1;
        self.connections_made + crate::io::KEYS_FROM
    }

    /// Wants a connection, from now on.
    pub(crate) fn want(&mut self, target: Target) {
        let state = || TargetState {
            progress: Progress::Due(Instant::now()),
            delay: RETRY_MIN,
            told: None,
        };
        self.targets.entry(target).or_insert_with(state);
    }

    /// A connection that was tried has failed, or has ended. It is tried again later, and each reason is told once.
    pub(crate) fn failed(&mut self, target: &Target, why: &str, is_told: bool) {
        let Some(state) = self.targets.get_mut(target) else { return };
        if is_told && state.told.as_deref() != Some(why) {
            tracing::warn!("ros1: {why}; it is tried again");
            state.told = Some(why.to_owned());
        } else {
            tracing::debug!("ros1: {why}");
        }
        state.progress = Progress::Due(Instant::now() + state.delay);
        state.delay = (state.delay * 2).min(RETRY_MAX);
        self.is_due = true;
    }

    /// The name of the endpoint at the other end of this connection, if that is the one that a target has.
    pub(crate) fn connected_by(&self, target: &Target, key: u64) -> Option<Guid> {
        match self.targets.get(target)?.progress {
            Progress::Connected(of, guid) if of == key => Some(guid),
            _ => None,
        }
    }

    /// A connection is there.
    pub(crate) fn connected(&mut self, target: &Target, key: u64, guid: Guid) -> bool {
        let Some(state) = self.targets.get_mut(target) else { return false };
        state.progress = Progress::Connected(key, guid);
        state.delay = RETRY_MIN;
        state.told = None;
        true
    }
}

/// Sets what every connection has.
pub(crate) fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(true)?;
    // A host that has lost its power says nothing.
    rustix::net::sockopt::set_socket_keepalive(stream, true)?;
    stream.set_nodelay(true)
}

/// The host of the address of a node.
pub(crate) fn host_of(api: &str) -> String {
    api.parse().map_or_else(|_| "?".to_owned(), |uri: Uri| uri.host)
}
