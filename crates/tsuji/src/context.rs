//! Contexts: where nodes live.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tsuji_core::names::{RemapRule, validate_topic};
use tsuji_core::{Interop, Peer, Peers, Policy, RtpsEngine};
use tsuji_platform::clock;
use tsuji_ros::environment::{DOMAIN_MAX, DiscoveryRange};
use tsuji_ros::gid::Distro;
use tsuji_transport::Transport;

use crate::control::{self, protocol::Control};
use crate::directory::{Answers, Directory};
use crate::executor::{Executor, ExecutorCore};
use crate::graph::{EndpointInfo, join};
use crate::host::{Host, Place};
use crate::network::{Asked, Network, Said};
use crate::policy_file::PolicyFile;
use crate::registry::Arrange;
use crate::{
    Error, ErrorKind, Graph, GuardCondition, LogArguments, Neighbour, Node, ProcessEngines, Result,
    RouteReport, RouteSetting, Stranger, TransportReport,
};

/// Where nodes live: a domain, a policy, and this process's part in it. Clones are the same
/// context; it ends with the last of them, or when it is shut down.
#[derive(Clone)]
pub struct Context {
    core: Arc<ContextCore>,
}

struct ContextCore {
    host: Arc<Host>,
    is_isolated: bool,
    /// The one whose participant this is too, where it was made of another.
    parent: Option<Context>,
    remap_rules: Vec<RemapRule>,
    parameter_arguments: Vec<ParameterArgument>,
    log_arguments: LogArguments,
    arguments: Vec<String>,
    /// Wakes those who await messages. Made when the first does.
    waking: Mutex<Option<Waking>>,
}

struct Waking {
    core: Arc<ExecutorCore>,
}

impl Context {
    /// A context by the environment: `TSUJI_POLICY`, `TSUJI_RUNTIME_DIR`, `TSUJI_INTEROP`,
    /// `TSUJI_RTPS_ENGINE`, and those of ROS 2, as `ROS_DOMAIN_ID`. `tsuji doctor` says what becomes of each.
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// Begins to make a context.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// The same participant under other arguments, as [`ContextBuilder::args`] reads them: nodes of both are in one
    /// process and share the in-process road. Where they say nothing of the log, what was said before holds. It ends with
    /// this one, and keeps it.
    pub fn with_args(&self, arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let arguments: Vec<String> = arguments.into_iter().collect();
        let Arguments { remap_rules, parameters, own, log } = split_arguments(&arguments)?;
        // A log is a program's rather than a node's.
        let is_said = log != LogArguments::default();
        let log_arguments = if is_said { log } else { self.log_arguments().clone() };
        let core = ContextCore {
            host: Arc::clone(self.host()),
            is_isolated: self.core.is_isolated,
            parent: Some(self.clone()),
            remap_rules,
            parameter_arguments: parameters,
            log_arguments,
            arguments: own,
            waking: Mutex::default(),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// A node in the root namespace.
    pub fn node(&self, name: &str) -> Result<Node> {
        self.node_in(name, "/")
    }

    /// A node in a namespace, such as `/robot`.
    pub fn node_in(&self, name: &str, namespace: &str) -> Result<Node> {
        Node::new(self, name, namespace)
    }

    /// Whether it is not shut down.
    pub fn is_ok(&self) -> bool {
        self.core.host.open("use").is_ok()
    }

    /// Ends every spin, every wait and every publish of this context. Later calls answer Closed.
    ///
    /// Contexts of one process and domain that are not isolated end together.
    pub fn shutdown(&self) {
        self.core.host.stop();
    }

    /// Shuts down on SIGINT and SIGTERM. A second signal ends the process as if nobody had asked.
    pub fn shutdown_on_signals(&self) -> Result<()> {
        let failed = |error: std::io::Error| crate::host::unexpected("signals", error);
        let host = Arc::downgrade(&self.core.host);
        let mut signals = signal_hook::iterator::Signals::new([
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
        ])
        .map_err(failed)?;
        std::thread::Builder::new()
            .name("tsuji-signals".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                let mut signals = signals.forever();
                if let Some(first) = signals.next() {
                    tracing::debug!(first, "shutting down");
                    if let Some(host) = host.upgrade() {
                        host.stop();
                    }
                }
                if let Some(second) = signals.next() {
                    let _ = signal_hook::low_level::emulate_default_handler(second);
                }
            })
            .map_err(failed)?;
        Ok(())
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.core.host.policy()
    }

    /// The domain.
    pub fn domain(&self) -> u32 {
        self.core.host.domain()
    }

    /// Which plain ROS 2 nodes are spoken to: less than was asked for where the plug-in over Zenoh is not
    /// found, or `ROS_AUTOMATIC_DISCOVERY_RANGE` is `OFF`.
    pub fn interop(&self) -> Interop {
        self.core.host.network().interop()
    }

    /// What speaks RTPS to plain ROS 2 nodes, if anything does: Cyclone DDS too where Fast DDS was asked
    /// for and does not work.
    pub fn rtps_engine(&self) -> RtpsEngine {
        self.core.host.network().engine()
    }

    /// The folder where the processes of this domain find each other.
    pub fn runtime_folder(&self) -> &Path {
        self.core.host.folder()
    }

    /// The arguments that are not between `--ros-args` and `--`.
    pub fn arguments(&self) -> &[String] {
        &self.core.arguments
    }

    /// What `--ros-args` says of parameters, in its order. Nothing here reads it: whoever serves parameters does.
    pub fn parameter_arguments(&self) -> &[ParameterArgument] {
        &self.core.parameter_arguments
    }

    /// What `--ros-args` says of the log. Nothing here reads it: whoever logs does.
    pub fn log_arguments(&self) -> &LogArguments {
        &self.core.log_arguments
    }

    /// Waits until every process that was there when this context was made has told all it has, and
    /// plain ROS 2 nodes had the time to be found, for which it waits a second at most. Answers how
    /// many processes of tsuji there are.
    pub fn settle(&self, timeout: Duration) -> Result<usize> {
        let settled = self.core.host.wait_for(timeout, |directory| {
            directory.links.are_settled().then(|| directory.links.peers().count())
        })?;
        let met = settled.ok_or_else(|| {
            Error::new(
                ErrorKind::Timeout,
                format!("a process of the domain did not answer within {timeout:?}"),
            )
        })?;
        self.settle_outside(timeout)?;
        Ok(met)
    }

    /// Waits until plain nodes have been found, as far as can be known.
    fn settle_outside(&self, timeout: Duration) -> Result<()> {
        let host = &self.core.host;
        let deadline = Instant::now() + timeout.min(OUTSIDE_MAX);
        while host.speaks() && Instant::now() < deadline {
            let settled = host.wait_for(LOOK_AGAIN, |directory| {
                directory.outside.is_settled(clock::monotonic_ns()).then_some(())
            })?;
            if settled.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// The other processes of the domain, those that do not answer among them.
    pub fn neighbours(&self) -> Vec<Neighbour> {
        if !self.core.host.is_current() {
            return Vec::new();
        }
        self.core.host.directory().links.neighbours()
    }

    /// What is known of all processes of the domain on this host.
    pub fn graph(&self) -> Graph {
        if !self.core.host.is_current() {
            return Graph::default();
        }
        self.core.host.directory().graph(&self.core.host)
    }

    /// The endpoints of one topic, publishers first: what the [`graph`](Self::graph) shows of it, at the price of these alone.
    /// `topic` is a full name.
    pub fn endpoints_of(&self, topic: &str) -> Vec<EndpointInfo> {
        if !self.core.host.is_current() {
            return Vec::new();
        }
        self.core.host.directory().endpoints_of(&self.core.host, topic)
    }

    /// A condition that is triggered whenever the [`graph`](Self::graph) may have changed.
    pub fn graph_guard(&self) -> Result<GuardCondition> {
        let guard = GuardCondition::new(self)?;
        self.host().trigger_at_change(&guard.core);
        Ok(guard)
    }

    /// Waits until `done` answers something about the graph, and answers it, or `None` when the
    /// time is up.
    pub fn wait_for_graph<T>(
        &self,
        timeout: Duration,
        mut done: impl FnMut(&Graph) -> Option<T>,
    ) -> Result<Option<T>> {
        let host = &self.core.host;
        host.wait_for(timeout, |directory| done(&directory.graph(host)))
    }

    /// Every flow of the domain on this host, with its road and the reason. Processes that do not
    /// answer within `timeout` are left out.
    pub fn routes(&self, timeout: Duration) -> Result<Vec<RouteReport>> {
        let host = &self.core.host;
        host.open("ask for routes")?;
        let (own, answers) = self.ask(timeout, |directory, question| {
            (directory.halves(host), Control::AskRoutes { question })
        })?;
        Ok(join([own, answers.halves].concat()))
    }

    /// The processes of the domain and how the engines of each stand: what runs, what for, and what it takes.
    /// Those that do not answer within `timeout` are left out.
    pub fn engines(&self, timeout: Duration) -> Result<Vec<ProcessEngines>> {
        let host = &self.core.host;
        host.open("ask for engines")?;
        let (own, answers) = self.ask(timeout, |directory, question| {
            (directory.engines(host), Control::AskEngines { question })
        })?;
        let mut all = [vec![own], answers.engines].concat();
        all.sort_by_cached_key(|it| {
            let process = &it.process;
            (process.host.clone(), process.program.clone(), process.pid, process.token.clone())
        });
        Ok(all)
    }

    /// From now on the flows of a topic take this transport, in all processes of the domain on this host,
    /// and in those that come while one of these lives; or with `None` again what the policy says. Where
    /// it cannot carry a flow the policy decides.
    ///
    /// Answers what each process has done about it. Those that do not answer within `timeout` are left
    /// out. Processes of other users and on other hosts refuse.
    pub fn set_route(
        &self,
        topic: &str,
        transport: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<RouteSetting>> {
        let host = &self.core.host;
        host.open("set a route")?;
        validate_topic(topic).map_err(|error| Error::invalid(error.to_string()))?;
        let (topic, transport) = (topic.to_owned(), transport.map(str::to_owned));
        let (own, answers) = self.ask(timeout, |directory, question| {
            let stamp = directory.new_stamp(host.id);
            let own = directory.pin(host, &topic, transport.as_deref(), stamp);
            (own, Control::Pin { question, topic, transport, stamp })
        })?;
        let directory = host.directory();
        let own = RouteSetting { process: host.info.clone(), outcome: own };
        let others = answers.settings.into_iter().map(|(peer, outcome)| RouteSetting {
            process: directory.links.process(peer),
            outcome,
        });
        Ok(std::iter::once(own).chain(others).collect())
    }

    /// Asks all processes that are linked to this one. `own` answers for this one, with the question as it
    /// is put to the others. Those that do not answer within `timeout` are left out.
    fn ask<T>(
        &self,
        timeout: Duration,
        own: impl FnOnce(&mut Directory, u64) -> (T, Control),
    ) -> Result<(T, Answers)> {
        let host = &self.core.host;
        let mut directory = host.directory();
        directory.questions += 1;
        let question = directory.questions;
        let waiting = directory.links.peers().collect();
        directory.answers.insert(question, Answers { waiting, ..Answers::default() });
        let (own, asked) = own(&mut directory, question);
        directory.links.broadcast(&asked);
        drop(directory);
        let waited = host.wait_for(timeout, |directory| {
            let answers = directory.answers.get(&question)?;
            answers.waiting.is_empty().then_some(())
        });
        let answers = host.directory().answers.remove(&question).unwrap_or_default();
        waited?;
        Ok((own, answers))
    }

    /// Processes in the run-time folder that could not be met, and why.
    pub fn strangers(&self) -> Vec<Stranger> {
        if !self.core.host.is_current() {
            return Vec::new();
        }
        self.core.host.directory().strangers.clone()
    }

    /// What names this process among those of the domain, as [`ProcessInfo::token`](crate::ProcessInfo::token).
    pub fn token(&self) -> &str {
        &self.core.host.info.token
    }

    /// What the transports of this process can do.
    pub fn transports(&self) -> Vec<TransportReport> {
        if !self.core.host.is_current() {
            return Vec::new();
        }
        let standing = |id| {
            let directory = self.core.host.directory();
            directory.standings.get(&id).map(ToString::to_string)
        };
        let works = self.core.host.transports().iter().map(|transport| {
            let capability = transport.capability();
            let scopes = tsuji_core::Scope::ALL.iter();
            let peers = transport.wire().map_or(Peers::TSUJI, |wire| wire.peers());
            let peers = Peer::ALL.iter().filter(|peer| peers.contains(**peer));
            TransportReport {
                name: transport.id().to_string(),
                is_installed: true,
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
                trouble: transport.trouble(),
                standing: standing(transport.id()),
                figures: transport
                    .figures()
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            }
        });
        let fails = self.core.host.failed().iter().map(|it| TransportReport {
            name: it.transport.to_string(),
            is_installed: !it.is_optional,
            scopes: Vec::new(),
            peers: Vec::new(),
            reliable: false,
            loan: false,
            typed: false,
            sample_bytes_max: 0,
            readers_max: 0,
            trouble: Some(it.reason.clone()),
            standing: None,
            figures: Vec::new(),
        });
        works.chain(fails).collect()
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.core.host
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
        let core = Executor::start_waking(self.host())?;
        *waking = Some(Waking { core: Arc::clone(&core) });
        Ok(core)
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("host", &self.core.host).finish_non_exhaustive()
    }
}

impl Drop for ContextCore {
    fn drop(&mut self) {
        if !self.host.is_current() {
            return;
        }
        let waking = self.waking.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waking) = waking {
            waking.core.end();
        }
        if self.parent.is_some() {
            return;
        }
        if self.is_isolated {
            self.host.stop();
        } else {
            Host::leave(&self.host);
        }
    }
}

/// What a context will be. What is not said comes from the environment.
#[derive(Debug, Default)]
pub struct ContextBuilder {
    domain: Option<u32>,
    arguments: Vec<String>,
    policy: Option<Policy>,
    policy_file: Option<PathBuf>,
    interop: Option<Interop>,
    rtps_engine: Option<RtpsEngine>,
    discovery_range: Option<DiscoveryRange>,
    static_peers: Option<Vec<String>>,
    distro: Option<Distro>,
    joins_at_once: bool,
    runtime_dir: Option<PathBuf>,
    is_isolated: bool,
    arrange: Option<Arrange>,
}

impl ContextBuilder {
    /// The domain, 0 to 232; else `ROS_DOMAIN_ID`, else 0.
    #[must_use]
    pub fn domain(mut self, domain: u32) -> Self {
        self.domain = Some(domain);
        self
    }

    /// The program's arguments. Between `--ros-args` and `--` (or the end) `-r FROM:=TO` remaps
    /// names, `__node:=NAME` and `__ns:=NAMESPACE` among them; `-p NAME:=VALUE` and `--params-file FILE` are kept as
    /// [`Context::parameter_arguments`], `--log-level [LOGGER:=]LEVEL` and which logs are disabled as
    /// [`Context::log_arguments`].
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.arguments = arguments.into_iter().collect();
        self
    }

    /// The policy; else that of the policy file. Contexts that share a participant share its policy,
    /// also where that is of a file and changes.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// The policy file; else the one that `TSUJI_POLICY` names, else the built-in default.
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

    /// Which plain ROS 2 nodes to speak to; else those that `TSUJI_INTEROP` names (`rtps`, `zenoh`,
    /// `both`, `none`), else those of the policy.
    #[must_use]
    pub fn interop(mut self, interop: Interop) -> Self {
        self.interop = Some(interop);
        self
    }

    /// What speaks RTPS to plain ROS 2 nodes; else what `TSUJI_RTPS_ENGINE` names (`cyclonedds`,
    /// `fastdds`, `both`), else what the policy says. Where Fast DDS does not work, Cyclone DDS does it
    /// alone, with a warning.
    #[must_use]
    pub fn rtps_engine(mut self, engine: RtpsEngine) -> Self {
        self.rtps_engine = Some(engine);
        self
    }

    /// Whom to find over the network unasked; else `ROS_AUTOMATIC_DISCOVERY_RANGE` and
    /// `ROS_LOCALHOST_ONLY` say so.
    #[must_use]
    pub fn discovery_range(mut self, range: DiscoveryRange) -> Self {
        self.discovery_range = Some(range);
        self
    }

    /// Whom to ask over the network: addresses and host names, as in `ROS_STATIC_PEERS`; else that
    /// says so. Asked where the discovery range is `Localhost` or `Subnet`.
    #[must_use]
    pub fn static_peers(mut self, peers: impl IntoIterator<Item = String>) -> Self {
        self.static_peers = Some(peers.into_iter().collect());
        self
    }

    /// The distribution of ROS 2 in whose formats plain nodes are spoken to; else that of `ROS_DISTRO`,
    /// else Jazzy.
    #[must_use]
    pub fn distro(mut self, distro: Distro) -> Self {
        self.distro = Some(distro);
        self
    }

    /// Joins the network at once, also where the policy prefers memory: for programs that look who is
    /// there and leave.
    #[must_use]
    pub fn joins_at_once(mut self) -> Self {
        self.joins_at_once = true;
        self
    }

    /// The folder under which processes find each other; else that of
    /// [`runtime_dir`](crate::runtime_dir).
    #[must_use]
    pub fn runtime_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime_dir = Some(path.into());
        self
    }

    /// Behaves as a process of its own: it shares neither memory nor the in-process road with other
    /// contexts of this process.
    #[must_use]
    pub fn isolated(mut self) -> Self {
        self.is_isolated = true;
        self
    }

    /// The transports, made of those of this build, nearest first: fewer of them, some of the
    /// program's own beside them, or [`faulty`](crate::transport::faulty) ones around them. Each has
    /// another name. The context is [`isolated`](Self::isolated).
    ///
    /// Another process has a road by them if it has transports of the same names. A policy file can
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

    /// Makes the context.
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
        let Arguments { remap_rules, parameters, log, own } = split_arguments(&self.arguments)?;
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
        };
        let Asked { network, mut lines } = Network::ask(said, &policy, from_environment)?;
        let domain = network.domain();
        let folder = folder.join(format!("domain-{domain}"));
        let place = Place { domain, folder };
        let policy = Arc::new(policy);
        let host = if self.is_isolated {
            Host::start(place, network, &policy, file, self.arrange)?
        } else {
            Host::shared(place, network, &policy, file)?
        };
        lines.extend(host.network().lines_of_engines());
        for line in lines {
            tracing::warn!("{line}");
        }
        let is_isolated = self.is_isolated;
        let waking = Mutex::default();
        let core = ContextCore {
            host,
            is_isolated,
            parent: None,
            remap_rules,
            parameter_arguments: parameters,
            log_arguments: log,
            arguments: own,
            waking,
        };
        Ok(Context { core: Arc::new(core) })
    }
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

/// The folder under which the processes of this user find each other, unless a context says
/// another: `TSUJI_RUNTIME_DIR`, else one of this user's in `/tmp`. It need not be there yet.
pub fn runtime_dir() -> Result<PathBuf> {
    let said = std::env::var_os("TSUJI_RUNTIME_DIR").filter(|path| !path.is_empty());
    absolute(&said.map_or_else(control::default_folder, PathBuf::from))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        Error::invalid(format!("run-time folder {}", path.display())).because(error)
    })
}

/// What `--ros-args` says of parameters, as it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterArgument {
    /// `-p NAME:=VALUE` or `-p NODE:NAME:=VALUE`: what stands after `-p`.
    Assign(String),
    /// `--params-file FILE`
    File(PathBuf),
}

/// The arguments of a program.
#[derive(Default)]
struct Arguments {
    remap_rules: Vec<RemapRule>,
    parameters: Vec<ParameterArgument>,
    log: LogArguments,
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
                said.remap_rules.push(rule.map_err(|error: tsuji_core::names::NameError| {
                    Error::invalid(error.to_string())
                })?);
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
            (true, flag) if said.log.set_flag(flag) => (),
            (true, other) if IGNORED_WITH_VALUE.contains(&other) => {
                let value = arguments.next().map_or("", String::as_str);
                tracing::warn!("--ros-args {argument} {value}: not supported yet, ignored");
            }
            (true, other) if IGNORED.contains(&other) => {
                tracing::warn!("--ros-args {argument}: not supported yet, ignored");
            }
            (true, other) => {
                return Err(Error::invalid(format!(
                    "--ros-args {other:?}; allowed: -r FROM:=TO, --remap FROM:=TO, -p NAME:=VALUE, \
                     --param NAME:=VALUE, --params-file FILE, --log-level [LOGGER:=]LEVEL, \
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

/// Of the arguments that `rcl` knows, those with a value behind them that are not obeyed.
const IGNORED_WITH_VALUE: &[&str] = &["--log-config-file", "--log-file-name", "-e", "--enclave"];

/// Those without a value.
const IGNORED: &[&str] = &["--enable-external-lib-logs", "--disable-external-lib-logs"];

/// How long plain nodes are waited for, of whom nobody knows whether there are any.
const OUTSIDE_MAX: Duration = Duration::from_secs(1);
/// How often is looked whether nothing more was found.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
