//! A command's part in the system: its context, and what it sees of the others.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tsuji::{Context, ErrorKind, Graph, Node, ProcessInfo};
use tsuji_core::Policy;

use crate::output;
use crate::policy;

/// How long other processes have to tell what they have.
const SETTLE: Duration = Duration::from_secs(2);

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
}

impl Globals {
    /// The policy file that these flags or the environment name.
    pub(crate) fn policy_file(&self) -> Option<PathBuf> {
        let said = env::var_os("TSUJI_POLICY").filter(|it| !it.is_empty()).map(PathBuf::from);
        self.policy.clone().or(said)
    }

    /// A context under these flags, which SIGINT and SIGTERM end. It follows the policy file, unless
    /// another policy is given.
    pub(crate) fn context(&self, policy: Option<Policy>) -> anyhow::Result<Context> {
        let context = self.joined(policy)?;
        context.shutdown_on_signals()?;
        Ok(context)
    }

    /// The same for a command that hears signals itself.
    pub(crate) fn context_without_signals(&self) -> anyhow::Result<Context> {
        self.joined(None)
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
        Ok(builder.build()?)
    }
}

/// Flags that scripts carry for `ros2`, and that change nothing here.
#[derive(Clone, Debug, Args)]
pub(crate) struct Ignored {
    /// No effect: there is no daemon
    #[arg(long, global = true, hide = true)]
    no_daemon: bool,
    /// No effect: everybody who is there is heard
    #[arg(long, global = true, hide = true, value_name = "SECONDS")]
    spin_time: Option<f64>,
    /// Not supported
    #[arg(short = 's', long, global = true, hide = true)]
    use_sim_time: bool,
}

impl Ignored {
    /// Says what a script may rely on in vain.
    pub(crate) fn tell(&self) {
        let Self { no_daemon: _, spin_time: _, use_sim_time } = self;
        if *use_sim_time {
            output::warning("--use-sim-time: not supported, ignored");
        }
    }
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
        let session = Self::open_without_signals(globals)?;
        session.context.shutdown_on_signals()?;
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

    /// All that is known of the system.
    pub(crate) fn graph(&self) -> Graph {
        self.context.graph()
    }

    /// A node that `node list` hides, as `ros2` names its own.
    pub(crate) fn hidden_node(&self) -> anyhow::Result<Node> {
        Ok(self.context.node(&format!("_tsuji_cli_{}", std::process::id()))?)
    }

    /// Looks at the graph after each change until `look` finds something; `None` when the command
    /// is to end.
    pub(crate) fn wait_for<T>(&self, mut look: impl FnMut(&Graph) -> Option<T>) -> Option<T> {
        // Waiting fails when the context is shut down, which is how a command ends.
        while let Ok(found) = self.context.wait_for_graph(A_WHILE, &mut look) {
            if found.is_some() {
                return found;
            }
        }
        None
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

/// Hears what the others have.
pub(crate) fn settle(context: &Context) -> anyhow::Result<Settled> {
    match context.settle(SETTLE) {
        Ok(met) => Ok(Settled { met, silent: Vec::new() }),
        Err(error) if error.kind() == ErrorKind::Timeout => {
            let (met, silent): (Vec<_>, Vec<_>) =
                context.neighbours().into_iter().partition(|it| it.is_settled);
            let silent = silent.into_iter().map(|it| it.process).collect();
            Ok(Settled { met: met.len(), silent })
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a name is one that `ros2` hides: a token of it begins with an underscore.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.split('/').any(|token| token.starts_with('_'))
}
