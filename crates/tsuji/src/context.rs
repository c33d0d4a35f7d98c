//! Contexts: where nodes live.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tsuji_core::names::{self, RemapRule, validate_topic};
use tsuji_core::{Interop, Peer, Peers, Policy, RtpsEngine};
use tsuji_platform::clock;
use tsuji_platform::ordered::Mutex;
use tsuji_platform::report;
use tsuji_ros::environment::{self, DOMAIN_MAX, DiscoveryRange};
use tsuji_ros::gid::Distro;
use tsuji_transport::Transport;

use crate::control::{self, protocol::Control};
use crate::endpoint::Audience;
use crate::executor::{Executor, ExecutorCore};
use crate::graph::{EndpointInfo, join};
use crate::graph_cache::{Answers, GraphCache};
use crate::log::Logging;
use crate::network::{Asked, Network, Said};
use crate::policy_file::PolicyFile;
use crate::registry::{Absence, Arrange};
use crate::security::Security;
use crate::session::{Place, Session};
use crate::{
    Error, ErrorKind, Graph, GuardCondition, LogArguments, Node, PeerProcess, ProcessEngines,
    Result, RouteReport, RouteSetting, Severity, TransportReport, UnreachablePeer,
};

/// A domain, a policy, and this process's part in it: where nodes live.
///
/// Clones are the same context; it ends with the last of them, or when it is shut down.
///
/// ```no_run
/// use tsuji::Context;
///
/// let context = Context::builder().args(std::env::args().skip(1)).build()?;
/// context.shutdown_on_signals()?;
/// let node = context.node_in("camera", "/robot")?;
/// println!("{node:?} is in domain {}", context.domain());
/// tsuji::spin(&node)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone)]
pub struct Context {
    core: Arc<ContextCore>,
}

struct ContextCore {
    session: Arc<Session>,
    is_isolated: bool,
    /// The one whose participant this is too, where it was made of another.
    parent: Option<Context>,
    remap_rules: Vec<RemapRule>,
    parameter_arguments: Vec<ParameterArgument>,
    log_arguments: LogArguments,
    /// Made when it is first asked for.
    logging: OnceLock<Logging>,
    arguments: Vec<String>,
    enclave: String,
    /// Wakes those who await messages. Made when the first does.
    waking: Mutex<Option<Waking>>,
    /// Whether it was given up.
    has_left: AtomicBool,
}

struct Waking {
    core: Arc<ExecutorCore>,
}

impl Context {
    /// Creates a context by the environment: `TSUJI_POLICY`, `TSUJI_RUNTIME_DIR`, `TSUJI_INTEROP`,
    /// `TSUJI_RTPS_ENGINE`, and those of ROS 2, as `ROS_DOMAIN_ID`. `tsuji doctor` says what becomes of each.
    ///
    /// # Errors
    ///
    /// Those of [`ContextBuilder::build`].
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// Begins to make a context.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// Creates a context of the same participant under other arguments, as [`ContextBuilder::args`] reads them.
    ///
    /// Nodes of both are in one process and share the in-process link. Where the arguments say nothing of the log,
    /// what was said before holds. It ends with this one, and keeps it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if an argument after `--ros-args` is not allowed, or names another enclave than that which secures this
    /// process.
    pub fn with_args(&self, arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let arguments: Vec<String> = arguments.into_iter().collect();
        let Arguments { remap_rules, parameters, own, log, enclave } = split_arguments(&arguments)?;
        // Where the environment says it, nobody else does.
        let is_overridden =
            self.session().network().security().is_some_and(|it| it.enclave.is_some());
        let enclave = enclave.filter(|_| !is_overridden);
        let enclave = enclave.unwrap_or_else(|| self.enclave().to_owned());
        if self.session().security().is_some_and(|it| it.enclave() != enclave) {
            return Err(Error::invalid(format!(
                "enclave {enclave:?}: this process is secured as {:?}; allowed: that one, or an isolated context",
                self.enclave()
            )));
        }
        // A log is a program's rather than a node's.
        let is_said = log != LogArguments::default();
        let log_arguments = if is_said { log } else { self.log_arguments().clone() };
        let core = ContextCore {
            session: Arc::clone(self.session()),
            is_isolated: self.core.is_isolated,
            parent: Some(self.clone()),
            remap_rules,
            parameter_arguments: parameters,
            log_arguments,
            logging: OnceLock::new(),
            arguments: own,
            enclave,
            waking: Mutex::default(),
            has_left: AtomicBool::new(false),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// Creates a node in the root namespace.
    ///
    /// # Errors
    ///
    /// Those of [`node_in`](Self::node_in).
    pub fn node(&self, name: &str) -> Result<Node> {
        self.node_in(name, "/")
    }

    /// Creates a node in a namespace, such as `/robot`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the name or the namespace, after remapping, is not valid in ROS 2;
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn node_in(&self, name: &str, namespace: &str) -> Result<Node> {
        Node::builder(name).namespace(namespace).build(self)
    }

    /// Returns true until the context is shut down. In a forked child it is false.
    pub fn is_ok(&self) -> bool {
        self.core.session.open("use").is_ok()
    }

    /// Ends every spin, every wait and every publish of this context. Later calls answer [`ErrorKind::Closed`].
    ///
    /// Contexts of one process and domain that are not isolated end together.
    pub fn shutdown(&self) {
        self.core.session.stop();
    }

    /// Gives this context up, as dropping all of it does, while parts of it are still held: the contexts of one process and
    /// domain that are not isolated go on until the last of them is given up, and end with it as by
    /// [`shutdown`](Self::shutdown). One that is made meanwhile goes on. Of a context that was made of another, by
    /// arguments of a node, that one is given up.
    pub fn leave(&self) {
        self.core.leave();
    }

    /// Shuts the context down on SIGINT, SIGTERM and SIGHUP, which comes when a terminal is closed.
    ///
    /// A signal that was ignored when the process began, as under `nohup`, stays ignored. A second signal ends the
    /// process as if nobody had asked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exhausted`] if no descriptor or memory is left, [`ErrorKind::Unexpected`] if the system refuses
    /// the signals or a thread that waits for them.
    pub fn shutdown_on_signals(&self) -> Result<()> {
        let failed = |error: std::io::Error| crate::session::unexpected("signals", error);
        let session = Arc::downgrade(&self.core.session);
        let heard = tsuji_platform::signals::heard(&[
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ]);
        let mut signals = signal_hook::iterator::Signals::new(heard).map_err(failed)?;
        std::thread::Builder::new()
            .name("tsuji-signals".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                let mut signals = signals.forever();
                if let Some(first) = signals.next() {
                    tracing::debug!(first, "shutting down");
                    if let Some(session) = session.upgrade() {
                        session.stop();
                    }
                }
                if let Some(second) = signals.next() {
                    let _ = signal_hook::low_level::emulate_default_handler(second);
                }
            })
            .map_err(failed)?;
        Ok(())
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.core.session.policy()
    }

    /// Returns the distribution of ROS 2 whose formats this context uses with foreign nodes. Default Jazzy.
    pub fn distro(&self) -> Distro {
        self.core.session.distro()
    }

    /// Returns the security enclave of the context's nodes, `/` by default. It is shown to others, and where the context
    /// [is secured](Self::is_secured) proved to them.
    pub fn enclave(&self) -> &str {
        &self.core.enclave
    }

    /// Returns whether messages go to nobody but processes that have proved by the keystore who they are.
    ///
    /// So it is where `ROS_SECURITY_ENABLE` is `true` and `ROS_SECURITY_KEYSTORE` has the enclave.
    pub fn is_secured(&self) -> bool {
        self.core.session.security().is_some()
    }

    /// Returns the domain, 0 to 232.
    pub fn domain(&self) -> u32 {
        self.core.session.domain()
    }

    /// Returns the name of the robot that the nodes belong to, if they do.
    pub fn robot(&self) -> Option<&str> {
        self.core.session.outward().robot().map(tsuji_core::Robot::name)
    }

    /// Returns which foreign ROS 2 nodes are spoken to.
    ///
    /// That is less than was asked for where the plug-in over Zenoh is not found, or
    /// `ROS_AUTOMATIC_DISCOVERY_RANGE` is `OFF`.
    pub fn interop(&self) -> Interop {
        self.core.session.network().interop()
    }

    /// Returns what speaks RTPS to foreign ROS 2 nodes, if anything does.
    ///
    /// It is Cyclone DDS too where Fast DDS was asked for and does not work.
    pub fn rtps_engine(&self) -> RtpsEngine {
        self.core.session.network().engine()
    }

    /// Returns the folder where the processes of this domain find each other.
    pub fn runtime_folder(&self) -> &Path {
        self.core.session.folder()
    }

    /// Returns the program's own arguments: those that are not between `--ros-args` and `--`.
    pub fn arguments(&self) -> &[String] {
        &self.core.arguments
    }

    /// Returns what `--ros-args` says of parameters, in its order: for [`Node::parameters`].
    pub fn parameter_arguments(&self) -> &[ParameterArgument] {
        &self.core.parameter_arguments
    }

    /// Returns what `--ros-args` says of the log: for [`logging`](Self::logging).
    pub fn log_arguments(&self) -> &LogArguments {
        &self.core.log_arguments
    }

    /// Returns the log of the context's nodes: levels, and layers for a subscriber of `tracing`.
    ///
    /// [Contexts of the same participant](Self::with_args) have one together, unless their arguments say otherwise.
    pub fn logging(&self) -> &Logging {
        self.core.logging.get_or_init(|| match &self.core.parent {
            Some(parent) if parent.log_arguments() == self.log_arguments() => {
                parent.logging().clone()
            }
            _ => Logging::new(self.log_arguments()),
        })
    }

    /// Waits until the other processes of the domain are known, and returns how many processes of tsuji there are.
    ///
    /// That is when every process that was there when this context was made has told all it has, and foreign ROS 2
    /// nodes had the time to be found, for which it waits 3 s at most: as a rule half a second, and longer while
    /// one on Fast DDS is there that has not told what it has.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if a process of tsuji has not told all within `timeout`, [`ErrorKind::Closed`] when
    /// the context is shut down or in a forked child.
    pub fn settle(&self, timeout: Duration) -> Result<usize> {
        let settled = self.core.session.wait_for(timeout, |graph_cache| {
            graph_cache.channels.are_settled().then(|| graph_cache.channels.peers().count())
        })?;
        let met = settled.ok_or_else(|| {
            Error::new(ErrorKind::Timeout, "a process of the domain did not answer").within(timeout)
        })?;
        self.settle_foreign(timeout)?;
        Ok(met)
    }

    /// Waits until foreign nodes have been found, as far as can be known.
    fn settle_foreign(&self, timeout: Duration) -> Result<()> {
        let session = &self.core.session;
        let deadline = Instant::now() + timeout.min(FOREIGN_MAX);
        while session.speaks() && Instant::now() < deadline {
            let settled = session.wait_for(LOOK_AGAIN, |graph_cache| {
                graph_cache.foreign.is_settled(clock::monotonic_ns()).then_some(())
            })?;
            if settled.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the foreign ROS 2 processes that tell of their nodes and have not done so yet.
    ///
    /// One on Fast DDS does so up to three seconds after it was found.
    pub fn nameless_participants(&self) -> Vec<crate::ProcessInfo> {
        if !self.core.session.is_current() {
            return Vec::new();
        }
        self.core.session.graph_cache().foreign.nameless()
    }

    /// Waits until every foreign ROS 2 process that was found has told its nodes, and returns those that have not
    /// within `timeout`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn wait_for_names(&self, timeout: Duration) -> Result<Vec<crate::ProcessInfo>> {
        let session = &self.core.session;
        session.wait_for(timeout, |graph_cache| {
            graph_cache.foreign.nameless().is_empty().then_some(())
        })?;
        Ok(self.nameless_participants())
    }

    /// Returns the other processes of the domain, those that do not answer among them.
    pub fn peer_processes(&self) -> Vec<PeerProcess> {
        if !self.core.session.is_current() {
            return Vec::new();
        }
        self.core.session.graph_cache().channels.peer_processes()
    }

    /// Returns what is known of all nodes and endpoints of the domain.
    pub fn graph(&self) -> Graph {
        if !self.core.session.is_current() {
            return Graph::default();
        }
        self.core.session.graph_cache().graph(&self.core.session)
    }

    /// Returns the endpoints of one topic, publishers first. `topic` is a full name.
    ///
    /// It is what the [`graph`](Self::graph) shows of the topic, at the price of these alone.
    pub fn endpoints_of(&self, topic: &str) -> Vec<EndpointInfo> {
        if !self.core.session.is_current() {
            return Vec::new();
        }
        self.core.session.graph_cache().endpoints_of(&self.core.session, topic)
    }

    /// Creates a condition that is triggered whenever the [`graph`](Self::graph) may have changed.
    ///
    /// # Errors
    ///
    /// Those of [`GuardCondition::new`].
    pub fn graph_guard(&self) -> Result<GuardCondition> {
        let guard = GuardCondition::new(self)?;
        self.session().trigger_at_change(&guard.core);
        Ok(guard)
    }

    /// Waits until `done` answers something about the graph, and returns that, or `None` when the time is up.
    ///
    /// `done` is asked at once and after each change. It may ask anything of the context.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn wait_for_graph<T>(
        &self,
        timeout: Duration,
        mut done: impl FnMut(&Graph) -> Option<T>,
    ) -> Result<Option<T>> {
        let session = &self.core.session;
        session.wait_until(timeout, || {
            let graph = session.graph_cache().graph(session);
            done(&graph)
        })
    }

    /// Returns every flow of the domain on this host, with its route and the reason.
    ///
    /// Processes that do not answer within `timeout` are left out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn routes(&self, timeout: Duration) -> Result<Vec<RouteReport>> {
        let session = &self.core.session;
        session.open("ask for routes")?;
        let (own, answers) = self.ask(timeout, |graph_cache, question| {
            (graph_cache.halves(session), Control::AskRoutes { question })
        })?;
        let mut routes = join([own, answers.halves].concat());
        for end in routes.iter_mut().flat_map(|it| [&mut it.publisher, &mut it.subscription]) {
            end.node = session.outward().node_here(&end.node).into_owned();
        }
        Ok(routes)
    }

    /// Returns the processes of the domain and the state of the engines of each: what runs, what for, and what it
    /// takes.
    ///
    /// Processes that do not answer within `timeout` are left out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn engines(&self, timeout: Duration) -> Result<Vec<ProcessEngines>> {
        let session = &self.core.session;
        session.open("ask for engines")?;
        let (own, answers) = self.ask(timeout, |graph_cache, question| {
            (graph_cache.engines(session), Control::AskEngines { question })
        })?;
        let mut all = [vec![own], answers.engines].concat();
        all.sort_by_cached_key(|it| {
            let process = &it.process;
            (process.host.clone(), process.program.clone(), process.pid, process.token.clone())
        });
        Ok(all)
    }

    /// Sets the transport of all flows of a topic, in all processes of the domain on this host, or with `None`
    /// gives the choice back to the policy.
    ///
    /// It holds for processes that come later too, while one of these lives. Where the transport cannot carry a
    /// flow the policy decides.
    ///
    /// Returns what each process has done about it. Those that do not answer within `timeout` are left out.
    /// Processes of other users and on other hosts refuse.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if `topic` is no full topic name, [`ErrorKind::Closed`] when the context is shut down
    /// or in a forked child. That a process refuses, this one too, is in its [`RouteSetting`].
    pub fn set_route(
        &self,
        topic: &str,
        transport: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<RouteSetting>> {
        let session = &self.core.session;
        session.open("set a route")?;
        validate_topic(topic).map_err(|error| Error::invalid(error.to_string()))?;
        let (topic, transport) = (topic.to_owned(), transport.map(str::to_owned));
        let (own, answers) = self.ask(timeout, |graph_cache, question| {
            let stamp = graph_cache.new_stamp(session.id);
            let own = graph_cache.pin(session, &topic, transport.as_deref(), stamp);
            (own, Control::Pin { question, topic, transport, stamp })
        })?;
        let graph_cache = session.graph_cache();
        let own = RouteSetting { process: session.info.clone(), outcome: own };
        let others = answers.settings.into_iter().map(|(peer, outcome)| RouteSetting {
            process: graph_cache.channels.process(peer),
            outcome,
        });
        Ok(std::iter::once(own).chain(others).collect())
    }

    /// Asks all processes that are linked to this one. `own` answers for this one, with the question as it
    /// is put to the others. Those that do not answer within `timeout` are left out.
    fn ask<T>(
        &self,
        timeout: Duration,
        own: impl FnOnce(&mut GraphCache, u64) -> (T, Control),
    ) -> Result<(T, Answers)> {
        let session = &self.core.session;
        let mut graph_cache = session.graph_cache();
        graph_cache.questions += 1;
        let question = graph_cache.questions;
        let (own, asked) = own(&mut graph_cache, question);
        let waiting =
            graph_cache.channels.told(Audience::Everybody, &asked).map(|(peer, _)| peer).collect();
        graph_cache.answers.insert(question, Answers { waiting, ..Answers::default() });
        graph_cache.channels.broadcast(&asked);
        drop(graph_cache);
        let waited = session.wait_for(timeout, |graph_cache| {
            let answers = graph_cache.answers.get(&question)?;
            answers.waiting.is_empty().then_some(())
        });
        let answers = session.graph_cache().answers.remove(&question).unwrap_or_default();
        waited?;
        Ok((own, answers))
    }

    /// Returns the processes in the run-time folder that could not be met, and why.
    pub fn unreachable_peers(&self) -> Vec<UnreachablePeer> {
        if !self.core.session.is_current() {
            return Vec::new();
        }
        self.core.session.graph_cache().unreachable_peers.clone()
    }

    /// Returns what names this process among those of the domain, as [`ProcessInfo::token`](crate::ProcessInfo::token).
    pub fn token(&self) -> &str {
        &self.core.session.info.token
    }

    /// Returns what the transports of this process can do.
    pub fn transports(&self) -> Vec<TransportReport> {
        if !self.core.session.is_current() {
            return Vec::new();
        }
        let activity = |id| {
            let graph_cache = self.core.session.graph_cache();
            graph_cache.join_states.get(&id).map(ToString::to_string)
        };
        let join_trouble = |id: &tsuji_core::TransportId| {
            self.core.session.graph_cache().join_troubles.get(id).cloned()
        };
        let works = self.core.session.transports().iter().map(|transport| {
            let capability = transport.capability();
            let scopes = tsuji_core::Scope::ALL.iter();
            let peers = transport.wire().map_or(Peers::TSUJI, |wire| wire.peers());
            let peers = Peer::ALL.iter().filter(|peer| peers.contains(**peer));
            TransportReport {
                name: transport.id().to_string(),
                is_installed: true,
                is_left_out: false,
                scopes: scopes
                    .filter(|scope| capability.scopes.contains(**scope))
                    .map(|scope| scope.to_string())
                    .collect(),
                peers: peers.map(ToString::to_string).collect(),
                reliable: capability.reliable,
                loan: capability.loan,
                typed: capability.typed,
                sample_bytes_max: capability.sample_bytes_max,
                readers_max: capability.readers_max,
                trouble: transport.trouble().or_else(|| join_trouble(&transport.id())),
                activity: activity(transport.id()),
                figures: transport
                    .figures()
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            }
        });
        let fails = self.core.session.failed().iter().map(|it| TransportReport {
            name: it.transport.to_string(),
            is_installed: it.absence != Absence::NotInstalled,
            is_left_out: it.absence == Absence::LeftOut,
            scopes: Vec::new(),
            peers: Vec::new(),
            reliable: false,
            loan: false,
            typed: false,
            sample_bytes_max: 0,
            readers_max: 0,
            trouble: Some(it.reason.clone()),
            activity: None,
            figures: Vec::new(),
        });
        works.chain(fails).collect()
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.core.session
    }

    pub(crate) fn remap_rules(&self) -> &[RemapRule] {
        &self.core.remap_rules
    }

    /// What wakes those who await messages.
    pub(crate) fn waking(&self) -> Result<Arc<ExecutorCore>> {
        let mut waking = self.core.waking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waking) = &*waking {
            return Ok(Arc::clone(&waking.core));
        }
        let core = Executor::start_waking(self.session())?;
        *waking = Some(Waking { core: Arc::clone(&core) });
        Ok(core)
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("session", &self.core.session).finish_non_exhaustive()
    }
}

impl Drop for ContextCore {
    fn drop(&mut self) {
        if !self.session.is_current() {
            return;
        }
        let waking = self.waking.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waking) = waking {
            waking.core.end();
        }
        // One that was made of another goes with that.
        if self.parent.is_none() {
            self.leave();
        }
    }
}

impl ContextCore {
    /// Counts it out of those that share its participant, once, or the one that it was made of.
    fn leave(&self) {
        if let Some(parent) = &self.parent {
            return parent.leave();
        }
        if !self.session.is_current() || self.has_left.swap(true, Ordering::AcqRel) {
            return;
        }
        match self.is_isolated {
            true => self.session.stop(),
            false => Session::leave(&self.session),
        }
    }
}

/// Settings of a [`Context`] that is to be made. What is not set comes from the environment, then from the policy.
///
/// ```no_run
/// use tsuji::{Context, Qos};
/// use tsuji::interfaces::std_msgs::msg::String as Text;
///
/// let context = Context::builder()
///     .domain(42)
///     .policy_file("robot.xml")
///     .args(["--ros-args", "-r", "chatter:=news"].map(str::to_owned))
///     .build()?;
/// let publisher = context.node("talker")?.create_publisher::<Text>("chatter", Qos::DEFAULT)?;
/// assert_eq!(publisher.topic(), "/news");
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ContextBuilder {
    domain: Option<u32>,
    arguments: Vec<String>,
    has_only_ros_args: bool,
    policy: Option<Policy>,
    policy_file: Option<PathBuf>,
    interop: Option<Interop>,
    rtps_engine: Option<RtpsEngine>,
    discovery_range: Option<DiscoveryRange>,
    static_peers: Option<Vec<String>>,
    distro: Option<Distro>,
    joins_at_once: bool,
    enclave: Option<String>,
    enforces_security: bool,
    robot: Option<String>,
    runtime_dir: Option<PathBuf>,
    is_isolated: bool,
    arrange: Option<Arrange>,
}

impl ContextBuilder {
    /// Sets the domain, 0 to 232. Default `ROS_DOMAIN_ID`, else 0.
    #[must_use]
    pub fn domain(mut self, domain: u32) -> Self {
        self.domain = Some(domain);
        self
    }

    /// Sets the program's arguments, without the program's name. Default none.
    ///
    /// Between `--ros-args` and `--` (or the end) `-r FROM:=TO` remaps names, `__node:=NAME` and `__ns:=NAMESPACE`
    /// among them; `-p NAME:=VALUE` and `--params-file FILE` are kept as [`Context::parameter_arguments`],
    /// `--log-level [LOGGER:=]LEVEL` and which logs are disabled as [`Context::log_arguments`].
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.arguments = arguments.into_iter().collect();
        self
    }

    /// Refuses arguments that are not between `--ros-args` and `--`, as a flag of ROS whose `--ros-args` is missing.
    ///
    /// It is for programs that have no arguments of their own. It is given [`args`](Self::args) without the
    /// program's name.
    #[must_use]
    pub fn only_ros_args(mut self) -> Self {
        self.has_only_ros_args = true;
        self
    }

    /// Sets the policy. Default that of the policy file.
    ///
    /// Contexts that share a participant share its policy, also where that is of a file and changes.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets the policy file. Default the one that `TSUJI_POLICY` names, else the built-in default.
    ///
    /// While the context lives the file is watched. A change of it that is good is the policy from
    /// then on, and every flow is decided again while its samples flow; one that is not, or a file
    /// that is gone, is told in a warning and changes nothing. What is said of transports, `interop`
    /// and joining the network is taken at the next start, which a warning says.
    #[must_use]
    pub fn policy_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.policy_file = Some(path.into());
        self
    }

    /// Sets which foreign ROS 2 nodes to speak to.
    ///
    /// Default those that `TSUJI_INTEROP` names (`rtps`, `zenoh`, `both`, `none`), else those of the policy.
    #[must_use]
    pub fn interop(mut self, interop: Interop) -> Self {
        self.interop = Some(interop);
        self
    }

    /// Sets what speaks RTPS to foreign ROS 2 nodes.
    ///
    /// Default what `TSUJI_RTPS_ENGINE` names (`cyclonedds`, `fastdds`, `both`), else what the policy says. Where
    /// Fast DDS does not work, Cyclone DDS does it alone, with a warning.
    #[must_use]
    pub fn rtps_engine(mut self, engine: RtpsEngine) -> Self {
        self.rtps_engine = Some(engine);
        self
    }

    /// Sets whom to find over the network unasked. Default what `ROS_AUTOMATIC_DISCOVERY_RANGE` and
    /// `ROS_LOCALHOST_ONLY` say, else `Subnet`.
    #[must_use]
    pub fn discovery_range(mut self, range: DiscoveryRange) -> Self {
        self.discovery_range = Some(range);
        self
    }

    /// Sets whom to ask over the network: addresses and host names. Default those of `ROS_STATIC_PEERS`, else none.
    ///
    /// They are asked where the discovery range is `Localhost` or `Subnet`.
    #[must_use]
    pub fn static_peers(mut self, peers: impl IntoIterator<Item = String>) -> Self {
        self.static_peers = Some(peers.into_iter().collect());
        self
    }

    /// Sets the distribution of ROS 2 whose formats are used with foreign nodes. Default that of `ROS_DISTRO`, else
    /// Jazzy.
    #[must_use]
    pub fn distro(mut self, distro: Distro) -> Self {
        self.distro = Some(distro);
        self
    }

    /// Sets the security enclave that the nodes are shown with, and that secures them where `ROS_SECURITY_ENABLE` is `true`. Default
    /// `--enclave` of the arguments, else `/`; `ROS_SECURITY_ENCLAVE_OVERRIDE` prevails where security is enabled.
    ///
    /// It is a full name. Contexts of one process and domain are one participant, which foreign nodes see in the
    /// enclave of the first.
    #[must_use]
    pub fn enclave(mut self, enclave: impl Into<String>) -> Self {
        self.enclave = Some(enclave.into());
        self
    }

    /// Makes no context unless it is [secured](Context::is_secured), as `ROS_SECURITY_STRATEGY=Enforce` does.
    #[must_use]
    pub fn enforce_security(mut self) -> Self {
        self.enforces_security = true;
        self
    }

    /// Sets the robot that the nodes belong to, as `r2`; empty for none, whatever else is said. Default the one that
    /// `TSUJI_ROBOT` names, else that of the policy.
    ///
    /// Its topics, services and nodes have their names among the processes of the robot, and the same names behind the
    /// robot's outside of it: on the network, and in processes of other robots. Topics that the policy shares have
    /// one name everywhere, and other topics of other robots are not seen.
    #[must_use]
    pub fn robot(mut self, name: impl Into<String>) -> Self {
        self.robot = Some(name.into());
        self
    }

    /// Joins the network at once, also where the policy prefers memory: for programs that look who is
    /// there and leave. Default as the policy says.
    #[must_use]
    pub fn joins_at_once(mut self) -> Self {
        self.joins_at_once = true;
        self
    }

    /// Sets the folder under which processes find each other. Default that of [`runtime_dir`](crate::runtime_dir).
    #[must_use]
    pub fn runtime_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime_dir = Some(path.into());
        self
    }

    /// Behaves as a process of its own: it shares neither memory nor the in-process link with other
    /// contexts of this process. Default false: contexts of one process and domain are one participant.
    #[must_use]
    pub fn isolated(mut self) -> Self {
        self.is_isolated = true;
        self
    }

    /// Sets the transports, made of those of this build, nearest first.
    ///
    /// They may be fewer, some of the program's own beside them, or `faulty` ones of `tsuji-transport`
    /// around them. Each has another name. The context is [`isolated`](Self::isolated).
    ///
    /// Another process has a link by them if it has transports of the same names. A policy file can
    /// name those of [`KNOWN_TRANSPORTS`](crate::KNOWN_TRANSPORTS) only, a [`policy`](Self::policy)
    /// any; a transport that no rule names is a last resort.
    #[must_use]
    pub fn transports(
        mut self,
        arrange: impl FnOnce(Vec<Arc<dyn Transport>>) -> Vec<Arc<dyn Transport>> + Send + 'static,
    ) -> Self {
        self.arrange = Some(Arrange(Box::new(arrange)));
        self.isolated()
    }

    /// Makes the context: joins the participant of this process and domain, or starts it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if
    /// - the domain, an argument after `--ros-args`, the enclave, the robot or a variable of the environment is not allowed,
    /// - the policy file cannot be read or is no policy, or a setting of a transport in it is wrong,
    /// - security is enabled, and the enclave is not whole or, where security is enforced, not there,
    /// - the run-time folder cannot be made, belongs to somebody else, or has too long a path for a socket,
    /// - another context of this process and domain, neither of them isolated, has another policy or other foreign
    ///   nodes to speak to.
    ///
    /// [`ErrorKind::PermissionDenied`] if the enclave may not join the domain, [`ErrorKind::Exhausted`] if memory, descriptors or
    /// disk are used up, [`ErrorKind::Unexpected`] if the system fails in another way.
    pub fn build(self) -> Result<Context> {
        if let Some(domain) = self.domain.filter(|domain| DOMAIN_MAX < *domain) {
            return Err(Error::invalid(format!(
                "domain id {domain} is out of range; allowed: 0 to {DOMAIN_MAX}"
            )));
        }
        let (policy, file) = match self.policy {
            Some(policy) => (policy, None),
            None => load_policy(self.policy_file)?,
        };
        let Arguments { remap_rules, parameters, log, own, enclave } =
            split_arguments(&self.arguments)?;
        if let ([first, ..], true) = (&own[..], self.has_only_ros_args) {
            return Err(Error::invalid(format!(
                "{first:?}: this program has no arguments of its own; allowed: those of ROS, as \
                 --ros-args -r FROM:=TO"
            )));
        }
        if let Some(level) = least_report(&log) {
            report::set_least(level);
        }
        let enclave = match self.enclave {
            // Others name it in other ways than rcl does; it must only be one value of what a participant says.
            Some(enclave) if enclave.is_empty() || enclave.contains([';', '\0']) => {
                return Err(Error::invalid(format!(
                    "enclave {enclave:?}; allowed: a text without ';'"
                )));
            }
            Some(enclave) => enclave,
            None => enclave.unwrap_or_else(|| "/".to_owned()),
        };
        let folder = match self.runtime_dir {
            Some(path) => absolute(&path)?,
            None => runtime_dir()?,
        };
        let said = Said {
            domain: self.domain,
            interop: self.interop,
            engine: self.rtps_engine,
            range: self.discovery_range,
            static_peers: self.static_peers,
            distro: self.distro,
            joins_at_once: self.joins_at_once,
            enclave: Some(enclave),
            robot: self.robot,
        };
        let Asked { mut network, mut lines } = Network::ask(said, &policy, from_environment)?;
        let (domain, enclave) = (network.domain(), network.enclave().to_owned());
        let security = match network.security() {
            Some(asked) => {
                let is_enforced = asked.is_enforced || self.enforces_security;
                let asked = environment::Security { is_enforced, ..asked.clone() };
                Security::open(&asked, &enclave, domain, &mut lines)?
            }
            None if self.enforces_security => {
                return Err(Error::invalid(
                    "security is enforced, and ROS_SECURITY_ENABLE is not true",
                ));
            }
            None => None,
        };
        let mut enclave = enclave;
        if let Some(security) = &security {
            security.enclave().clone_into(&mut enclave);
            network =
                network.secured(&enclave, crate::registry::dds_security_library(), &mut lines);
        }
        let folder = folder.join(format!("domain-{domain}"));
        let place = Place { domain, folder };
        let policy = Arc::new(policy);
        let session = if self.is_isolated {
            Session::start(place, network, &policy, file, security, self.arrange)?
        } else {
            Session::shared(place, network, &policy, file, security)?
        };
        lines.extend(session.network().lines_of_engines());
        for line in lines {
            report::warn!("{line}");
        }
        let is_isolated = self.is_isolated;
        let (waking, has_left) = (Mutex::default(), AtomicBool::new(false));
        let core = ContextCore {
            session,
            is_isolated,
            parent: None,
            remap_rules,
            parameter_arguments: parameters,
            log_arguments: log,
            logging: OnceLock::new(),
            arguments: own,
            enclave,
            waking,
            has_left,
        };
        Ok(Context { core: Arc::new(core) })
    }
}

/// The least grave lines of tsuji itself that the terminal shall have where nobody collects them, if that is said.
fn least_report(log: &LogArguments) -> Option<report::Level> {
    if !log.stdout {
        return Some(report::Level::Nothing);
    }
    let of_all = log.levels.iter().rev().find(|(logger, _)| logger.is_none());
    of_all.map(|(_, level)| match level {
        Severity::Debug | Severity::Info | Severity::Warn => report::Level::Warn,
        Severity::Error => report::Level::Error,
        Severity::Fatal => report::Level::Nothing,
    })
}

/// A variable that is set. What is not UTF-8 in it is replaced, and then refused or said where it
/// matters.
fn from_environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// The policy, and the file that it comes from, if it comes from one.
fn load_policy(path: Option<PathBuf>) -> Result<(Policy, Option<PolicyFile>)> {
    let from_environment = || {
        let path = std::env::var_os("TSUJI_POLICY").filter(|path| !path.is_empty());
        path.map(PathBuf::from)
    };
    let Some(path) = path.or_else(from_environment) else {
        return Ok((tsuji_policy::builtin_default(), None));
    };
    let file = PolicyFile::new(&path)?;
    Ok((file.load()?, Some(file)))
}

/// Returns the folder under which the processes of this user find each other, unless a context says another.
///
/// It is `TSUJI_RUNTIME_DIR`, else one of this user's in `/tmp`. It need not be there yet.
///
/// # Errors
///
/// [`ErrorKind::Invalid`] if `TSUJI_RUNTIME_DIR` is relative and the current folder cannot be found.
pub fn runtime_dir() -> Result<PathBuf> {
    let said = std::env::var_os("TSUJI_RUNTIME_DIR").filter(|path| !path.is_empty());
    absolute(&said.map_or_else(control::listening_socket::default_folder, PathBuf::from))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        Error::invalid(format!("run-time folder {}", path.display())).because(error)
    })
}

/// A parameter, or a file of parameters, that `--ros-args` gives, as it is written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterArgument {
    /// The text after `-p`, `NAME:=VALUE` or `NODE:NAME:=VALUE`.
    Assign(String),
    /// The path after `--params-file`.
    File(PathBuf),
}

/// The arguments of a program.
#[derive(Default)]
struct Arguments {
    remap_rules: Vec<RemapRule>,
    parameters: Vec<ParameterArgument>,
    log: LogArguments,
    enclave: Option<String>,
    /// What is the program's own.
    own: Vec<String>,
}

fn split_arguments(arguments: &[String]) -> Result<Arguments> {
    let mut said = Arguments::default();
    let mut arguments = arguments.iter();
    let mut is_ros = false;
    while let Some(argument) = arguments.next() {
        let mut after = |what: &str| {
            let missing = || Error::invalid(format!("{argument} needs {what} after it"));
            arguments.next().ok_or_else(missing)
        };
        match (is_ros, argument.as_str()) {
            (_, "--ros-args") => is_ros = true,
            (true, "--") => is_ros = false,
            (true, "-r" | "--remap") => {
                let rule = after("FROM:=TO")?.parse();
                said.remap_rules.push(
                    rule.map_err(|error: names::NameError| Error::invalid(error.to_string()))?,
                );
            }
            (true, "-p" | "--param") => {
                let words = after("NAME:=VALUE")?;
                if !words.contains(":=") {
                    return Err(Error::invalid(format!(
                        "{argument} {words:?}: ':=' is missing; allowed: [NODE:]NAME:=VALUE"
                    )));
                }
                said.parameters.push(ParameterArgument::Assign(words.clone()));
            }
            (true, "--params-file") => {
                said.parameters.push(ParameterArgument::File(after("FILE")?.into()));
            }
            (true, "--log-level") => {
                let words = after("[LOGGER:=]LEVEL")?;
                said.log.add_level(words).map_err(|why| {
                    Error::invalid(format!("--ros-args --log-level {words}: {why}"))
                })?;
            }
            (true, "-e" | "--enclave") => {
                said.enclave = Some(checked_enclave(after("an enclave")?)?);
            }
            (true, flag) if said.log.set_flag(flag) => (),
            (true, other) if IGNORED_WITH_VALUE.contains(&other) => {
                let value = after("a value")?;
                report::warn!("--ros-args {argument} {value}: not supported yet, ignored");
            }
            (true, other) if IGNORED.contains(&other) => {
                report::warn!("--ros-args {argument}: not supported yet, ignored");
            }
            (true, other) => {
                return Err(Error::invalid(format!(
                    "--ros-args {other:?}; allowed: -r FROM:=TO, --remap FROM:=TO, -p NAME:=VALUE, \
                     --param NAME:=VALUE, --params-file FILE, --log-level [LOGGER:=]LEVEL, -e ENCLAVE, --enclave ENCLAVE, \
                     --enable-rosout-logs, --disable-rosout-logs, --enable-stdout-logs, \
                     --disable-stdout-logs, -- to end them, and without effect {}, {}",
                    IGNORED_WITH_VALUE.join(", "),
                    IGNORED.join(", ")
                )));
            }
            (false, _) => said.own.push(argument.clone()),
        }
    }
    Ok(said)
}

/// As rcl checks it.
fn checked_enclave(enclave: &str) -> Result<String> {
    names::validate_namespace(enclave)
        .map_err(|error| Error::invalid(format!("enclave: {error}")))?;
    Ok(enclave.to_owned())
}

/// Of the arguments that `rcl` knows, those with a value behind them that are not obeyed.
const IGNORED_WITH_VALUE: &[&str] = &["--log-config-file", "--log-file-name"];

/// Those without a value.
const IGNORED: &[&str] = &["--enable-external-lib-logs", "--disable-external-lib-logs"];

/// How long foreign nodes are waited for, of whom nobody knows whether there are any.
const FOREIGN_MAX: Duration = Duration::from_secs(3);
/// How often is looked whether nothing more was found.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
