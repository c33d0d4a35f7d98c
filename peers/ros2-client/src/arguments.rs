//! The command line.

use std::net::IpAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ros2_client::ServiceMapping;
use ros2_client::qos::{Durability, History, QosProfile, WhenFull};

const AFTER_HELP: &str = "\
Each command prints `ready` when its endpoints exist, ends on SIGTERM, SIGINT, and when standard input closes, and says on \
standard error why it ended early.

Exit codes:
  0  done, or told to end a command that has no end of its own
  1  the middleware failed, or a message or sum is not what it must be
  2  the command line is wrong
  3  nothing happened for the time of --timeout
  4  told to end before it was done

Environment: ROS2_CLIENT_PEER_LOG=warn|info|debug|trace shows what RustDDS says (error).";

/// A ROS 2 node of the crate ros2-client.
#[derive(Parser)]
#[command(name = "ros2-client-peer", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) node: NodeArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Args)]
pub(crate) struct NodeArguments {
    /// The DDS domain.
    #[arg(long, global = true, default_value_t = 0, value_name = "N")]
    pub(crate) domain: u16,
    /// End with exit code 3 when for S seconds nothing comes that brings the command forward [default: never].
    #[arg(long, global = true, value_name = "S", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// The node's name, with a namespace or without [default: peer_ and the command].
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Use only the interface with this address; may be repeated [default: all].
    #[arg(long, global = true, value_name = "IP")]
    pub(crate) address: Vec<IpAddr>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Publish numbered messages; after the last, stay until the reliable subscriptions have gone.
    Talk(Talk),
    /// Print `received NUMBER BYTES` for each message, at the end `done N lost L`.
    Listen(Listen),
    /// Serve example_interfaces/srv/AddTwoInts; print `served A B` for each request.
    Serve(Serve),
    /// Call example_interfaces/srv/AddTwoInts; print `sum S` for each reply.
    Call(Call),
    /// Serve example_interfaces/action/Fibonacci to one client: reject orders beyond 25, pursue negative ones until they are canceled.
    Pursue(Pursue),
    /// Ask for a goal of example_interfaces/action/Fibonacci; print what becomes of it.
    Ask(Ask),
    /// Have parameters, and serve them; print `answered SERVICE` for each request.
    Offer(Offer),
    /// Ask for the parameters of a node by all six services, then wait for an event of it.
    Inspect(Inspect),
    /// Print participants, nodes and endpoints of others as JSON lines as they come.
    Graph(Graph),
    /// Announce that nodes will be told, and never tell any.
    Mute,
}

impl Command {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Talk(_) => "talk",
            Self::Listen(_) => "listen",
            Self::Serve(_) => "serve",
            Self::Call(_) => "call",
            Self::Pursue(_) => "pursue",
            Self::Ask(_) => "ask",
            Self::Offer(_) => "offer",
            Self::Inspect(_) => "inspect",
            Self::Graph(_) => "graph",
            Self::Mute => "mute",
        }
    }
}

#[derive(Args)]
pub(crate) struct Endpoint {
    /// The topic, as ROS 2 names it.
    pub(crate) topic: String,
    #[arg(long, value_enum, default_value = "std_msgs/String")]
    pub(crate) r#type: MessageType,
    /// The default.
    #[arg(long)]
    reliable: bool,
    #[arg(long, conflicts_with = "reliable")]
    best_effort: bool,
    #[arg(long)]
    transient_local: bool,
    /// How many messages the history keeps.
    #[arg(long, default_value_t = 10, value_name = "N")]
    depth: usize,
}

impl Endpoint {
    pub(crate) fn qos(&self) -> QosProfile {
        // A reliable publisher whose window is full waits until there is room.
        let qos = match self.best_effort {
            true => QosProfile::subscription_default(),
            false => QosProfile::subscription_default().reliability_reliable(WhenFull::Block),
        };
        let durability = match self.transient_local {
            true => Durability::TransientLocal,
            false => Durability::Volatile,
        };
        qos.durability(durability).history(History::KeepLast { depth: self.depth })
    }

    pub(crate) fn is_best_effort(&self) -> bool {
        self.best_effort
    }

    pub(crate) fn is_transient_local(&self) -> bool {
        self.transient_local
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum MessageType {
    #[value(name = "std_msgs/String")]
    String,
    #[value(name = "geometry_msgs/Twist")]
    Twist,
    #[value(name = "sensor_msgs/Image")]
    Image,
}

#[derive(Args)]
pub(crate) struct Talk {
    #[command(flatten)]
    pub(crate) endpoint: Endpoint,
    /// Messages a second; 0 is as fast as it goes.
    #[arg(long, default_value_t = 10.0, value_name = "HZ", value_parser = rate)]
    pub(crate) rate: f64,
    /// How many messages [default: without end].
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Bytes of a String's text (at least `hello N`) or an Image's data [default: `hello N`, 921600].
    #[arg(long, value_name = "N")]
    pub(crate) bytes: Option<usize>,
    /// How many subscriptions must match before the first message.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) wait_for: usize,
    /// Then print `matched`, and wait for a line on standard input before the first message.
    #[arg(long)]
    pub(crate) hold: bool,
}

#[derive(Args)]
pub(crate) struct Listen {
    #[command(flatten)]
    pub(crate) endpoint: Endpoint,
    /// End after this many messages.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// End when the last publisher that matched has gone.
    #[arg(long)]
    pub(crate) until_gone: bool,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// The service, as ROS 2 names it.
    pub(crate) name: String,
    #[arg(long, value_enum, default_value = "cyclone")]
    pub(crate) mapping: Mapping,
}

#[derive(Args)]
pub(crate) struct Call {
    /// The service, as ROS 2 names it.
    pub(crate) name: String,
    #[arg(allow_negative_numbers = true)]
    pub(crate) a: i64,
    #[arg(allow_negative_numbers = true)]
    pub(crate) b: i64,
    /// How many calls, one after the other.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) count: u64,
    /// When a server has matched, print `matched`, and wait for a line on standard input before the first call.
    #[arg(long)]
    pub(crate) hold: bool,
    #[arg(long, value_enum, default_value = "cyclone")]
    pub(crate) mapping: Mapping,
}

#[derive(Args)]
pub(crate) struct Pursue {
    /// The action, as ROS 2 names it.
    pub(crate) name: String,
    #[arg(long, value_enum, default_value = "cyclone")]
    pub(crate) mapping: Mapping,
}

#[derive(Args)]
pub(crate) struct Ask {
    /// The action, as ROS 2 names it.
    pub(crate) name: String,
    #[arg(allow_negative_numbers = true)]
    pub(crate) order: i32,
    /// Ask for the goal to be given up after its first feedback.
    #[arg(long)]
    pub(crate) cancel: bool,
    /// When a server has matched, print `matched`, and wait for a line on standard input before the goal.
    #[arg(long)]
    pub(crate) hold: bool,
    #[arg(long, value_enum, default_value = "cyclone")]
    pub(crate) mapping: Mapping,
}

#[derive(Args)]
pub(crate) struct Offer {
    #[arg(long, value_enum, default_value = "cyclone")]
    pub(crate) mapping: Mapping,
}

#[derive(Args)]
pub(crate) struct Inspect {
    /// The node whose parameters are asked for.
    pub(crate) node_name: String,
    /// The parameters that are asked for.
    pub(crate) names: Vec<String>,
    /// Set the first of them to this value, a double; may be repeated.
    #[arg(long, value_name = "VALUE")]
    pub(crate) set: Vec<f64>,
    /// When the node has matched, print `matched`, and wait for a line on standard input before the first request.
    #[arg(long)]
    pub(crate) hold: bool,
    #[arg(long, value_enum, default_value = "cyclone")]
    pub(crate) mapping: Mapping,
}

/// How a service becomes topics.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Mapping {
    /// As rmw_cyclonedds: a header of 16 bytes.
    Cyclone,
    /// As rmw_fastrtps: the related sample identity.
    Enhanced,
    /// As in the specification of RPC over DDS; does not work in ros2-client 0.12.1.
    Basic,
}

impl From<Mapping> for ServiceMapping {
    fn from(mapping: Mapping) -> Self {
        match mapping {
            Mapping::Cyclone => Self::Cyclone,
            Mapping::Enhanced => Self::Enhanced,
            Mapping::Basic => Self::Basic,
        }
    }
}

#[derive(Args)]
pub(crate) struct Graph {
    /// End when a node of this full name is there.
    #[arg(long, value_name = "NAME")]
    pub(crate) until_node: Option<String>,
    /// End when somebody publishes or subscribes this topic.
    #[arg(long, value_name = "TOPIC")]
    pub(crate) until_topic: Option<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().map_err(|error| error.to_string())?;
    if rate.is_finite() && rate >= 0.0 {
        Ok(rate)
    } else {
        Err("0 or a positive number is needed".to_owned())
    }
}
