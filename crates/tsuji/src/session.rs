//! This process among the others of its domain: its number, its transports, its policy, and the
//! thread that keeps the control channels.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use tsuji_core::{Outward, Policy, Prefer, TransportId};
use tsuji_platform::fork::Generation;
use tsuji_platform::life::Life;
use tsuji_platform::ordered::{Condvar, Mutex, MutexGuard};
use tsuji_platform::poll::{Poll, Waker};
use tsuji_platform::process;
use tsuji_ros::gid::Distro;
use tsuji_transport::bell::{Bell, Bells, Cell};
use tsuji_transport::deferred::{self, Locked, told};
use tsuji_transport::wire::NetworkAddresses;
use tsuji_transport::{Gid, PeerId, Transport};

use crate::control;
use crate::control::listening_socket::ListeningSocket;
use crate::dirty::DirtyEndpoints;
use crate::graph::ProcessInfo;
use crate::graph_cache::GraphCache;
use crate::guard_condition::GuardCore;
use crate::network::Network;
use crate::policy_file::{self, PolicyFile};
use crate::registry::{self, Absence, Arrange, Failed, WireEngines};
use crate::security::Security;
use crate::{Error, ErrorKind, Result};

/// One participant. A process has one for each domain and run-time folder, unless a context asks
/// for one of its own.
pub(crate) struct Session {
    pub(crate) id: PeerId,
    pub(crate) info: ProcessInfo,
    folder: PathBuf,
    /// As it came out.
    network: Network,
    /// As it was asked for: another engine may speak where the one asked for does not work.
    asked: Network,
    policy: RwLock<Arc<Policy>>,
    /// What the process started with.
    first_policy: Arc<Policy>,
    /// Where the policy comes from, if not from the program.
    policy_file: Option<PolicyFile>,
    /// By which others know who this process is, if it is secured.
    security: Option<Security>,
    /// Others take this process for dead when it ends.
    life: Arc<Life>,
    bells: Arc<Bells>,
    transports: Vec<Arc<dyn Transport>>,
    failed: Vec<Failed>,
    wire_engines: Option<WireEngines>,
    graph_cache: Mutex<GraphCache>,
    /// How often the graph may have changed, and whom to wake for it.
    changes: Mutex<u64>,
    changed: Condvar,
    /// Conditions that are triggered by changes of the graph.
    guards: Mutex<Vec<Weak<GuardCore>>>,
    /// How often the graph has changed, and how often it had when the guards were triggered last.
    graph_changes: AtomicU64,
    graph_changes_told: AtomicU64,
    pub(crate) poll: Arc<Poll>,
    pub(crate) waker: Arc<Waker>,
    /// Endpoints that the control thread has to look at.
    pub(crate) dirty_endpoints: Arc<DirtyEndpoints>,
    generation: Generation,
    stopping: AtomicBool,
    /// It was said that another process of the robot has other rules.
    has_told_of_rules: AtomicBool,
    gids: AtomicU32,
    /// Contexts that share it.
    contexts: AtomicU32,
    thread: Mutex<Option<JoinHandle<()>>>,
    control_thread: OnceLock<ThreadId>,
    /// Rung when the context shuts down, for those who sleep.
    sleepers: Mutex<Vec<Weak<Cell>>>,
}

/// Where a participant stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) domain: u32,
    pub(crate) folder: PathBuf,
}

/// The participants of this process that are not isolated.
static SHARED: Mutex<Option<HashMap<Place, Weak<Session>>>> = Mutex::new(None);

impl Session {
    /// The participant of this process at `place`, made when it is not there yet.
    pub(crate) fn shared(
        place: Place,
        network: Network,
        policy: &Arc<Policy>,
        file: Option<PolicyFile>,
        security: Option<Security>,
    ) -> Result<Arc<Self>> {
        let mut shared = deferred::lock(&SHARED);
        let hosts = shared.get_or_insert_with(HashMap::new);
        if let Some(session) = hosts.get(&place).and_then(Weak::upgrade)
            && session.generation.is_current()
            && !session.stopping.load(Ordering::Acquire)
        {
            let follows_same = follows_same(&session, file.as_ref());
            if !follows_same && session.policy() != *policy {
                return Err(Error::invalid(
                    "another context of this process has another policy; allowed: the same policy, \
                     or an isolated context",
                ));
            }
            // What the file says of it now is taken at the next start.
            let of_start = |it: &Policy| (it.interop(), it.engine(), it.outward());
            let is_newer = follows_same && of_start(&session.first_policy) != of_start(policy);
            let is_same = match is_newer {
                true => session.asked.has_same_environment(&network),
                false => session.asked == network,
            };
            if !is_same {
                return Err(Error::invalid(
                    "another context of this process speaks to other ROS 2 nodes, or is of another robot; \
                     allowed: the same robot, exports, interop and engine, ROS_* and engines' variables, or an isolated context",
                ));
            }
            let enclave = |it: Option<&Security>| it.map(|it| it.enclave().to_owned());
            if enclave(session.security()) != enclave(security.as_ref()) {
                return Err(Error::invalid(
                    "another context of this process is of another enclave; allowed: the same enclave, or an isolated context",
                ));
            }
            session.contexts.fetch_add(1, Ordering::AcqRel);
            drop(shared);
            if follows_same {
                // It may be newer than what is in force.
                session.read_policy_again();
            }
            return Ok(session);
        }
        let session = Self::start(place.clone(), network, policy, file, security, None)?;
        hosts.insert(place, Arc::downgrade(&session));
        Ok(session)
    }

    /// A participant of its own, with the transports of this build as `arrange` makes them.
    pub(crate) fn start(
        place: Place,
        network: Network,
        policy: &Arc<Policy>,
        file: Option<PolicyFile>,
        security: Option<Security>,
        arrange: Option<Arrange>,
    ) -> Result<Arc<Self>> {
        let token = process::random_token().map_err(|error| unexpected("random numbers", error))?;
        let id = PeerId(token);
        let bells = Bells::create(&registry::bells_backing(policy)?)?;
        // Before a transport joins: whoever finds this process on the network looks for its door here.
        let listening_socket = ListeningSocket::open(&place.folder, id)?;
        let life = listening_socket.begin_life(id)?;
        let life = Arc::new(life);
        let mut opened =
            registry::open(id, &place.folder, &network, &life, &bells, policy, security.as_ref())?;
        if let Some(arrange) = arrange {
            opened.transports = arrange.0(opened.transports);
            // What is left out need not be missed.
            opened.failed.retain(|it| it.absence == Absence::Broken);
        }
        if security.is_some() {
            opened.retain_secured();
        }
        for Failed { transport, reason, absence } in &opened.failed {
            if *absence == Absence::Broken {
                told::warn!(%transport, reason, "a transport does not work");
            }
        }
        let poll = Arc::new(Poll::new().map_err(|error| unexpected("poll", error))?);
        let waker = Arc::new(Waker::new().map_err(|error| unexpected("eventfd", error))?);
        let session = Arc::new(Self {
            id,
            info: ProcessInfo {
                token: id.to_string(),
                pid: process::id(),
                program: program_name(),
                host: process::host_name(),
            },
            folder: place.folder,
            network: opened.network,
            asked: network,
            policy: RwLock::new(Arc::clone(policy)),
            first_policy: Arc::clone(policy),
            policy_file: file,
            security,
            life,
            bells,
            transports: opened.transports,
            failed: opened.failed,
            graph_cache: Mutex::new(GraphCache::new(
                Arc::clone(policy),
                opened.wire_engines.clone(),
            )),
            wire_engines: opened.wire_engines,
            changes: Mutex::default(),
            changed: Condvar::new(),
            guards: Mutex::default(),
            graph_changes: AtomicU64::new(0),
            graph_changes_told: AtomicU64::new(0),
            poll,
            dirty_endpoints: Arc::new(DirtyEndpoints::new(Arc::clone(&waker))),
            waker,
            generation: Generation::current(),
            stopping: AtomicBool::new(false),
            has_told_of_rules: AtomicBool::new(false),
            gids: AtomicU32::new(1),
            contexts: AtomicU32::new(1),
            thread: Mutex::new(None),
            control_thread: OnceLock::new(),
            sleepers: Mutex::default(),
        });
        let thread = control::start(Arc::clone(&session), listening_socket)?;
        let _ = session.control_thread.set(thread.thread().id());
        *session.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(session)
    }

    pub(crate) fn domain(&self) -> u32 {
        self.network.domain()
    }

    /// By which others know who this process is, if it is secured.
    pub(crate) fn security(&self) -> Option<&Security> {
        self.security.as_ref()
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the policy comes from, if not from the program.
    pub(crate) fn policy_file(&self) -> Option<&PolicyFile> {
        self.policy_file.as_ref()
    }

    /// Reads the policy file again. What is good in it is the policy from now on, and every flow is
    /// decided again; what is not changes nothing. Answers whether it wants to be read once more.
    pub(crate) fn read_policy_again(&self) -> bool {
        let Some(file) = &self.policy_file else { return false };
        let mut told = file.lock();
        let policy = match file.load_again() {
            Ok(policy) => policy,
            Err(error) => return told.trouble(&error),
        };
        let was_bad = told.good();
        if policy == *self.policy() {
            if was_bad {
                told::info!("{}: good again, and the policy in force", file.name());
            }
            return false;
        }
        told::info!("{}: the policy has changed", file.name());
        told.restart(file.name(), policy_file::parts_of_the_start(&self.first_policy, &policy));
        let mut graph_cache = self.graph_cache();
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
        graph_cache.policy_changed(self);
        drop(graph_cache);
        self.tell();
        // There may be links to be looked after.
        self.waker.give();
        false
    }

    /// What the outside sees of this process.
    pub(crate) fn outward(&self) -> &Arc<Outward> {
        self.network.outward()
    }

    /// Whether foreign ROS 2 nodes are spoken to.
    pub(crate) fn speaks(&self) -> bool {
        self.network.speaks()
    }

    /// Whether subscriptions are shown to foreign nodes on the wire of this transport before there is a
    /// publisher out there.
    pub(crate) fn shows_subscriptions(&self, transport: &TransportId) -> bool {
        registry::shows_subscriptions(&self.first_policy, transport)
    }

    /// Whether the network is joined at once, or where memory is preferred only listened to at first.
    pub(crate) fn joins_at_once(&self) -> bool {
        self.network.joins_at_once() || self.policy().prefer() != Prefer::Memory
    }

    /// Whose formats are spoken.
    pub(crate) fn distro(&self) -> Distro {
        self.network.distro()
    }

    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    pub(crate) fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    pub(crate) fn transports(&self) -> &[Arc<dyn Transport>] {
        &self.transports
    }

    pub(crate) fn transport(&self, name: &str) -> Option<&Arc<dyn Transport>> {
        self.transports.iter().find(|it| it.id().as_str() == name)
    }

    pub(crate) fn failed(&self) -> &[Failed] {
        &self.failed
    }

    /// The engines of the wire of foreign nodes, where there are two.
    pub(crate) fn wire_engines(&self) -> Option<&WireEngines> {
        self.wire_engines.as_ref()
    }

    /// Whether this transport is the second of them.
    pub(crate) fn is_second(&self, transport: &TransportId) -> bool {
        self.wire_engines().is_some_and(|it| it.second == *transport)
    }

    /// Samples that a keep-all history holds before its publisher waits.
    pub(crate) fn keep_all_max(&self) -> u32 {
        KEEP_ALL_MAX
    }

    /// A number for an endpoint or a node.
    pub(crate) fn new_gid(&self) -> Gid {
        let mut gid = self.id.0;
        let count = self.gids.fetch_add(1, Ordering::Relaxed);
        gid[12..].copy_from_slice(&count.to_be_bytes());
        Gid(gid)
    }

    /// Fails in a forked child and after the end.
    pub(crate) fn open(&self, operation: &str) -> Result<()> {
        if !self.generation.is_current() {
            return Err(Error::closed(format!(
                "{operation}: this is a forked child; make a context of its own"
            )));
        }
        if self.stopping.load(Ordering::Relaxed) {
            return Err(Error::closed(format!("{operation}: the context is shut down")));
        }
        Ok(())
    }

    /// Whether this is the process that made it, and not a forked child.
    pub(crate) fn is_current(&self) -> bool {
        self.generation.is_current()
    }

    /// One context of those that share the participant is gone; with the last it ends.
    pub(crate) fn leave(session: &Arc<Self>) {
        // Under the lock, so that a context made meanwhile shares what goes on and not what ends.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = session.contexts.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last && let Some(hosts) = shared.as_mut() {
            hosts.retain(|_, other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(session)));
        }
        drop(shared);
        if is_last {
            session.stop();
        }
    }

    /// Whether it was said before that another process of the robot has other rules.
    pub(crate) fn has_told_of_rules(&self) -> bool {
        self.has_told_of_rules.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The graph, to look at or to change. [`Session::tell`] after a change that others wait for.
    pub(crate) fn graph_cache(&self) -> Locked<'_, GraphCache> {
        let mut graph_cache = deferred::lock(&self.graph_cache);
        graph_cache.recover();
        graph_cache
    }

    /// Wakes those who wait for a change of the graph.
    pub(crate) fn tell(&self) {
        *self.changes() += 1;
        self.changed.notify_all();
        self.trigger_guards();
    }

    fn changes(&self) -> MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this condition is triggered by changes of the graph.
    pub(crate) fn trigger_at_change(&self, guard: &Arc<GuardCore>) {
        let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        guards.retain(|it| 0 < it.strong_count());
        guards.push(Arc::downgrade(guard));
    }

    /// Takes note of a change that the graph shows, or of who is connected. [`Session::tell`] triggers the conditions that
    /// wait for one.
    pub(crate) fn graph_changed(&self) {
        self.graph_changes.fetch_add(1, Ordering::AcqRel);
    }

    fn trigger_guards(&self) {
        let changes = self.graph_changes.load(Ordering::Acquire);
        if self.graph_changes_told.fetch_max(changes, Ordering::AcqRel) == changes {
            return;
        }
        let guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        guards.iter().filter_map(Weak::upgrade).for_each(|it| it.trigger(1));
    }

    /// Which addresses of this host packets to and from foreign nodes and other hosts have.
    pub(crate) fn network_addresses(&self) -> NetworkAddresses {
        let mut all = NetworkAddresses::default();
        let wires = self.transports().iter().filter(|it| !self.is_second(&it.id()));
        for wire in wires.filter_map(|it| it.wire()) {
            let NetworkAddresses { sends, receives } = wire.addresses();
            all.sends.extend(sends);
            all.receives.extend(receives);
        }
        all
    }

    /// Waits until `done` answers something, looking at the graph after each change.
    pub(crate) fn wait_for<T>(
        &self,
        timeout: Duration,
        mut done: impl FnMut(&mut GraphCache) -> Option<T>,
    ) -> Result<Option<T>> {
        self.wait_until(timeout, || done(&mut self.graph_cache()))
    }

    /// Waits until `done` answers something, asking it after each change of the graph. No lock is held while it
    /// is asked: it may be the user's.
    pub(crate) fn wait_until<T>(
        &self,
        timeout: Duration,
        mut done: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            // Before the locks, which a forked child may find held for ever.
            self.open("wait")?;
            // Of a change after this nobody need be woken: it is seen below.
            let seen = *self.changes();
            if let Some(it) = done() {
                return Ok(Some(it));
            }
            let mut changes = self.changes();
            while *changes == seen && !self.is_stopping() {
                let left =
                    deadline.map_or(timeout, |it| it.saturating_duration_since(Instant::now()));
                if left.is_zero() {
                    return Ok(None);
                }
                let waited = self.changed.wait_timeout(changes, left);
                changes = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// A bell to sleep on, and a cell that rings it as `place`, for whoever sleeps there to look up; the end of
    /// the participant does too.
    pub(crate) fn guarded_bell(&self, place: u16) -> Result<(Bell, Arc<Cell>)> {
        let bell = self.bells().claim_bell()?;
        let guard = Arc::new(self.bells().claim_cell()?);
        guard.attach(&bell, place);
        self.wake_at_end(&guard);
        Ok((bell, guard))
    }

    /// From now on `cell` is rung when the participant ends.
    pub(crate) fn wake_at_end(&self, cell: &Arc<Cell>) {
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.retain(|it| 0 < it.strong_count());
        sleepers.push(Arc::downgrade(cell));
        drop(sleepers);
        if self.is_stopping() {
            cell.ring();
        }
    }

    /// Ends the participant: everybody who waits is woken, and peers see it leave.
    pub(crate) fn stop(&self) {
        if !self.generation.is_current() {
            return;
        }
        if !self.stopping.swap(true, Ordering::AcqRel) {
            self.waker.give();
            let sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            sleepers.iter().filter_map(Weak::upgrade).for_each(|cell| cell.ring());
            drop(sleepers);
            self.graph_cache().wake_publishers();
            *self.changes() += 1;
            self.changed.notify_all();
        }
        if self.control_thread.get() == Some(&std::thread::current().id()) {
            // What it drops or tells may be the user's, and shut the context down. It ends by itself then.
            return;
        }
        // A second caller waits for the first, so that nobody returns before the socket is gone.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // A panic there was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).field("domain", &self.domain()).finish()
    }
}

/// Whether a context that names this file has the same policy as others that named it.
fn follows_same(session: &Session, file: Option<&PolicyFile>) -> bool {
    session.policy_file.as_ref().zip(file).is_some_and(|(one, other)| one.is_same(other))
}

fn program_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_name);
    name.map_or_else(|| "?".to_owned(), |name| name.to_string_lossy().into_owned())
}

pub(crate) fn unexpected(what: &str, error: std::io::Error) -> Error {
    let kind = match error.raw_os_error() {
        // EMFILE, ENFILE, ENOMEM, ENOSPC.
        Some(24 | 23 | 12 | 28) => ErrorKind::Exhausted,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, what).because(error)
}

const KEEP_ALL_MAX: u32 = 1024;
