//! A command's part in the system: its context, and what it sees of the others.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use tsuji::clock::Clock;
use tsuji::{Context, ErrorKind, Graph, Node, ProcessInfo};
use tsuji_core::{Policy, Robot};
use tsuji_platform::signals;
use tsuji_ros::environment::RosEnvironment;

use crate::output;
use crate::policy;

/// How long other processes have to tell what they have.
const SETTLE: Duration = Duration::from_secs(3);
/// And again, while further ones answer.
const FURTHER: Duration = Duration::from_secs(1);

/// How long those who were found have to tell their nodes. Where a packet is lost, Fast DDS takes up to 3 s.
pub(crate) const NAMES_MAX: Duration = Duration::from_secs(5);

/// After so long somebody who looks on is told what is waited for.
const SAID_AFTER: Duration = Duration::from_secs(1);

/// How long to wait where something else ends the waiting anyway.
pub(crate) const A_WHILE: Duration = Duration::from_secs(3600);

/// How often what cannot be waited for is looked at again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The flags of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Globals {
    /// The policy file, instead of TSUJI_POLICY
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    policy: Option<PathBuf>,
    /// The ROS domain, 0 to 232, instead of ROS_DOMAIN_ID
    #[arg(long, global = true, value_name = "N", help_heading = "Global options", value_parser = clap::value_parser!(u32).range(0..=232))]
    domain_id: Option<u32>,
    /// The robot to be one of, by its own names of topics, instead of TSUJI_ROBOT
    #[arg(long, global = true, value_name = "NAME", help_heading = "Global options", value_parser = robot_name)]
    robot: Option<String>,
}

/// The name of a robot, or nothing for none.
fn robot_name(word: &str) -> Result<String, String> {
    match word {
        "" => Ok(String::new()),
        _ => Robot::new(word, Vec::new())
            .map(|it| it.name().to_owned())
            .map_err(|error| error.to_string()),
    }
}

impl Globals {
    /// The policy file that these flags or the environment name.
    pub(crate) fn policy_file(&self) -> Option<PathBuf> {
        let said = env::var_os("TSUJI_POLICY").filter(|it| !it.is_empty()).map(PathBuf::from);
        self.policy.clone().or(said)
    }

    /// The domain that these flags or the environment name.
    pub(crate) fn domain(&self) -> anyhow::Result<u32> {
        if let Some(domain) = self.domain_id {
            return Ok(domain);
        }
        let said =
            RosEnvironment::read(|name| env::var(name).ok().filter(|_| name == "ROS_DOMAIN_ID"));
        Ok(said?.domain)
    }

    /// A context under these flags, which SIGINT, SIGTERM and SIGHUP end. It follows the policy file, unless
    /// another policy is given.
    pub(crate) fn context(&self, policy: Option<Policy>) -> anyhow::Result<Context> {
        end_at_once_on_signals()?;
        let context = self.joined(policy)?;
        end_on_signals(&context)?;
        Ok(context)
    }

    /// The same for a command that hears signals itself.
    pub(crate) fn context_without_signals(&self) -> anyhow::Result<Context> {
        self.joined(None)
    }

    /// Sets what these flags say in the environment of another program.
    pub(crate) fn pass_on(&self, process: &mut Command) {
        if let Some(file) = &self.policy {
            process.env("TSUJI_POLICY", file);
        }
        if let Some(domain) = self.domain_id {
            process.env("ROS_DOMAIN_ID", domain.to_string());
        }
        if let Some(robot) = &self.robot {
            process.env("TSUJI_ROBOT", robot);
        }
    }

    fn joined(&self, policy: Option<Policy>) -> anyhow::Result<Context> {
        let mut builder = Context::builder().joins_at_once();
        builder = match (policy, self.policy_file()) {
            (Some(policy), _) => builder.policy(policy),
            (None, Some(file)) => builder.policy_file(file),
            (None, None) => builder,
        };
        if let Some(domain) = self.domain_id {
            builder = builder.domain(domain);
        }
        if let Some(robot) = &self.robot {
            builder = builder.robot(robot);
        }
        Ok(builder.build()?)
    }
}

/// Whether a signal has ended the command's context.
static IS_TOLD_TO_END: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether a signal has told the command to end. What it then could not do any more, for its context is shut down, is no
/// failure.
pub(crate) fn is_told_to_end() -> bool {
    IS_TOLD_TO_END.load(Ordering::Acquire)
}

/// Whether a signal ends the process at once, with 0; there once that was asked for.
static ENDS_AT_ONCE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From the first call on SIGINT, SIGTERM and SIGHUP end the process at once, with 0, until they shut a context down. For what
/// a command waits for before it has one that has met the others, which no signal would interrupt.
pub(crate) fn end_at_once_on_signals() -> anyhow::Result<()> {
    let mut registered = Ok(());
    ENDS_AT_ONCE.get_or_init(|| {
        let ends_at_once = Arc::new(AtomicBool::new(true));
        registered =
            signals::heard(&[SIGINT, SIGTERM, SIGHUP]).into_iter().try_for_each(|signal| {
                register_conditional_shutdown(signal, 0, Arc::clone(&ends_at_once)).map(drop)
            });
        ends_at_once
    });
    Ok(registered?)
}

fn end_on_signals(context: &Context) -> anyhow::Result<()> {
    // A command that is told to end may begin a last part, which only a further signal ends.
    IS_TOLD_TO_END.store(false, Ordering::Release);
    // Before the context is, so that nobody meets one that is shut down without having been told why.
    for signal in signals::heard(&[SIGINT, SIGTERM, SIGHUP]) {
        signal_hook::flag::register(signal, Arc::clone(&IS_TOLD_TO_END))?;
    }
    context.shutdown_on_signals()?;
    if let Some(it) = ENDS_AT_ONCE.get() {
        it.store(false, Ordering::Release);
    }
    // One that came between the two.
    if is_told_to_end() {
        context.shutdown();
    }
    Ok(())
}

/// Flags that scripts carry for `ros2`, and that change little or nothing here.
#[derive(Clone, Debug, Args)]
pub(crate) struct Ignored {
    /// No effect: there is no daemon
    #[arg(long, global = true, hide = true)]
    no_daemon: bool,
    /// No effect: everybody who is there is heard
    #[arg(long, global = true, hide = true, value_name = "SECONDS")]
    spin_time: Option<f64>,
    /// Measure and publish by the time of /clock; no effect where nothing depends on time
    #[arg(short = 's', long, global = true, hide = true)]
    pub(crate) use_sim_time: bool,
}

/// A context that has met the others.
#[derive(Debug)]
pub(crate) struct Session {
    /// The context.
    pub(crate) context: Context,
}

impl Session {
    /// Joins the domain and hears what the others have.
    pub(crate) fn open(globals: &Globals) -> anyhow::Result<Self> {
        end_at_once_on_signals()?;
        let session = Self::open_without_signals(globals)?;
        end_on_signals(&session.context)?;
        Ok(session)
    }

    /// The same for a command that hears signals itself.
    pub(crate) fn open_without_signals(globals: &Globals) -> anyhow::Result<Self> {
        // Tells what is wrong with the file, each error in a line.
        policy::in_force(globals)?;
        let context = globals.joined(None)?;
        for ProcessInfo { program, pid, .. } in settle(&context)?.silent {
            output::warning(format_args!(
                "{program} (pid {pid}) does not answer; what it has is left out"
            ));
        }
        Ok(Self { context })
    }

    /// The same for a command that names nodes: those who were found have told theirs, or `is_enough` of what is known.
    pub(crate) fn open_named(
        globals: &Globals,
        is_enough: impl FnMut(&Graph) -> bool,
    ) -> anyhow::Result<Self> {
        let session = Self::open(globals)?;
        session.wait_for_names(is_enough)?;
        Ok(session)
    }

    fn wait_for_names(&self, mut is_enough: impl FnMut(&Graph) -> bool) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut is_said = false;
        loop {
            let missing = self.context.wait_for_names(LOOK_AGAIN)?;
            if missing.is_empty() || is_enough(&self.graph()) {
                return Ok(());
            }
            let names: Vec<String> =
                missing.iter().map(|it| format!("{} (pid {})", it.program, it.pid)).collect();
            let names = names.join(", ");
            if NAMES_MAX < began.elapsed() {
                output::warning(format_args!(
                    "no word of their nodes within {} s from {names}; their nodes are left out",
                    NAMES_MAX.as_secs()
                ));
                return Ok(());
            }
            if !is_said && SAID_AFTER < began.elapsed() {
                is_said = true;
                output::note(format_args!("Waiting for {names}: no word of their nodes yet"));
            }
        }
    }

    /// All that is known of the system.
    pub(crate) fn graph(&self) -> Graph {
        self.context.graph()
    }

    /// The time that `/clock` tells, 0 until it does.
    pub(crate) fn simulated_time(&self) -> anyhow::Result<SimulatedTime> {
        let node = self.hidden_node()?;
        node.declare_parameter("use_sim_time", true)?;
        let clock = node.clock()?;
        Ok(SimulatedTime { _node: node, clock })
    }

    /// A node that `node list` hides, as `ros2` names its own.
    pub(crate) fn hidden_node(&self) -> anyhow::Result<Node> {
        Ok(self.context.node(&format!("_tsuji_cli_{}", std::process::id()))?)
    }

    /// Looks at the graph after each change until `look` finds something; `None` when the command
    /// is to end, or nothing was found in the time that was given.
    pub(crate) fn wait_for_within<T>(
        &self,
        within: Option<Duration>,
        mut look: impl FnMut(&Graph) -> Option<T>,
    ) -> Option<T> {
        // Waiting fails when the context is shut down, which is how a command ends.
        while let Ok(found) = self.context.wait_for_graph(within.unwrap_or(A_WHILE), &mut look) {
            if found.is_some() || within.is_some() {
                return found;
            }
        }
        None
    }
}

/// Time as a simulator tells it.
#[derive(Debug)]
pub(crate) struct SimulatedTime {
    /// While it is there the clock follows `/clock`.
    _node: Node,
    clock: Clock,
}

impl SimulatedTime {
    /// Nanoseconds since the simulation's epoch; 0 before it has told any.
    pub(crate) fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// The clock itself.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// The processes of the domain.
#[derive(Debug)]
pub(crate) struct Settled {
    /// Those that have told what they have.
    pub(crate) met: usize,
    /// Those that are stopped, or too slow.
    pub(crate) silent: Vec<ProcessInfo>,
}

/// Hears what the others have. On a busy machine with many processes it waits on as long as further ones answer.
pub(crate) fn settle(context: &Context) -> anyhow::Result<Settled> {
    let (mut met_before, mut patience) = (0, SETTLE);
    loop {
        match context.settle(patience) {
            Ok(met) => return Ok(Settled { met, silent: Vec::new() }),
            Err(error) if error.kind() == ErrorKind::Timeout => {}
            Err(error) => return Err(error.into()),
        }
        let (met, silent): (Vec<_>, Vec<_>) =
            context.peer_processes().into_iter().partition(|it| it.is_settled);
        if met.len() <= met_before {
            let silent = silent.into_iter().map(|it| it.process).collect();
            return Ok(Settled { met: met.len(), silent });
        }
        (met_before, patience) = (met.len(), FURTHER);
    }
}

/// Whether a node of this full name is known.
pub(crate) fn has_node(graph: &Graph, name: &str) -> bool {
    graph.nodes.iter().any(|it| it.fully_qualified_name() == name)
}

/// Whether a name is one that `ros2` hides: a token of it begins with an underscore.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.split('/').any(|token| token.starts_with('_'))
}
