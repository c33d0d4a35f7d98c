//! What the threads and the endpoints of a participant share.
//!
//! Locks, in their order: that of the [`State`], then that of one writer or reader. No listener is called under any of them,
//! and neither a name is resolved nor a message converted under the first.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tsuji_engine::{Arrived, Guid};
use tsuji_platform::poll::{Poll, Waker};
use tsuji_ros1::uri::Uri;
use tsuji_transport::Bytes;

use crate::ear::Ear;
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
    /// The nodes of this process by their full names, and which of them has an endpoint.
    pub(crate) nodes: BTreeSet<String>,
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
    pub(crate) doubted: BTreeSet<String>,
    /// Names under which nodes are registered, where their own are taken.
    pub(crate) aliases: HashMap<String, String>,
    /// Something is to be registered, connected or looked for.
    pub(crate) is_due: bool,
    /// All registrations are to be made anew: somebody has ended them.
    pub(crate) is_unregistered: bool,
    pub(crate) is_leaving: bool,
    pub(crate) threads: usize,
    jobs: usize,
    waiting_jobs: VecDeque<Box<dyn FnOnce() + Send>>,
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
    pub(crate) message: Arc<Message>,
}

/// A client of ROS 1, with what it has asked.
pub(crate) struct Caller {
    pub(crate) node: String,
    pub(crate) service: String,
    pub(crate) asked: i64,
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
    pub(crate) ear: Arc<Ear>,
    /// Of a topic.
    pub(crate) message: Option<Arc<Message>>,
    /// Of a half of a service.
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) room: Room,
    /// So many messages are kept for late joiners.
    pub(crate) kept_max: usize,
    pub(crate) flow: Mutex<WriterFlow>,
}

#[derive(Default)]
pub(crate) struct WriterFlow {
    pub(crate) written: i64,
    /// As CDR, with their numbers.
    pub(crate) kept: VecDeque<(i64, Bytes)>,
    pub(crate) links: HashMap<Guid, WriterLink>,
    /// Messages that were sent before, whose memory may be free again.
    pub(crate) sent: VecDeque<Frame>,
    pub(crate) dropped: u64,
    pub(crate) dropped_told: u64,
    pub(crate) refused: u64,
}

#[derive(Clone)]
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
    pub(crate) ear: Arc<Ear>,
    pub(crate) message: Option<Arc<Message>>,
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) flow: Mutex<ReaderFlow>,
}

#[derive(Default)]
pub(crate) struct ReaderFlow {
    pub(crate) arrived: VecDeque<Arrived>,
    /// The writers that match, with how much has come of each.
    pub(crate) sources: HashMap<Guid, i64>,
    pub(crate) refused: u64,
}

/// Whose listeners are to be called once the lock is released.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) matched: Vec<Arc<Ear>>,
    pub(crate) news: Vec<Arc<Ear>>,
}

impl Calls {
    pub(crate) fn make(self) {
        self.matched.iter().for_each(|it| it.matched());
        self.news.iter().for_each(|it| it.data_available());
    }
}

impl ReaderCore {
    /// Puts a message where it is taken from. Answers whom to call.
    pub(crate) fn push(&self, arrived: Arrived) -> Arc<Ear> {
        crate::lock(&self.flow).arrived.push_back(arrived);
        Arc::clone(&self.ear)
    }
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
        calls.news.extend(state.graph.to_be_called());
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
    pub(crate) fn run(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let Some(shared) = self.arc() else { return };
        let job = Box::new(move || job(&shared));
        let mut state = self.lock();
        if JOBS_MAX <= state.jobs {
            state.waiting_jobs.push_back(job);
            return;
        }
        state.jobs += 1;
        drop(state);
        self.start_job(job);
    }

    fn start_job(&self, job: Box<dyn FnOnce() + Send>) {
        let Some(shared) = self.arc() else { return };
        let body = move || {
            let mut next = Some(job);
            while let Some(job) = next {
                job();
                let mut state = shared.lock();
                next = state.waiting_jobs.pop_front().filter(|_| !state.is_leaving);
                if next.is_none() {
                    state.jobs -= 1;
                }
            }
        };
        if thread::Builder::new().name("tsuji-ros1-call".to_owned()).spawn(body).is_err() {
            // It is tried again with the next look.
            self.lock().jobs -= 1;
        }
    }

    /// Takes over a connection whose ends have agreed.
    pub(crate) fn adopt(state: &mut State, connection: crate::io::Connection) {
        state.new_connections.push(connection);
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
    stream.set_nodelay(true)
}

/// The host of the address of a node.
pub(crate) fn host_of(api: &str) -> String {
    api.parse().map_or_else(|_| "?".to_owned(), |uri: Uri| uri.host)
}
