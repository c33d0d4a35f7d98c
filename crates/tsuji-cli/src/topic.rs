//! `tsuji topic`: what is sent and received.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Subcommand;
use tsuji::{EndpointKind, Graph};
use tsuji_core::names;

use crate::failure::Usage;
use crate::figures;
use crate::output::{self, Output};
use crate::session::{Globals, Session};

mod bw;
mod delay;
mod echo;
mod find;
mod hz;
mod info;
mod list;
mod listener;
pub(crate) use echo::{Printer, Style};
pub(crate) use info::{endpoint_json, show, types_said};
pub(crate) use listener::Listener;
mod measure;
pub(crate) mod publish;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the topics that are published or subscribed to
    #[command(
        after_help = "Examples:\n  tsuji topic list\n  tsuji topic list -t\n  tsuji topic list --verbose"
    )]
    List(list::Args),
    /// Show a topic's type, publishers and subscriptions
    #[command(
        after_help = "Examples:\n  tsuji topic info /chatter\n  tsuji topic info -v /camera/image"
    )]
    Info(info::Args),
    /// Print the messages of a topic
    #[command(
        after_help = "Without QoS flags the QoS is chosen that receives from every publisher there is.\n\
        A content filter is an expression of DDS over the fields of a message: =, <>, <, <=, >, >=, BETWEEN, LIKE, MATCH,\n\
        AND, OR, NOT and parentheses; texts stand in single quotes.\n\n\
        Examples:\n  tsuji topic echo /chatter\n  tsuji topic echo --once /camera/image --no-arr\n  \
        tsuji topic echo /odom --field pose.pose.position\n  \
        tsuji topic echo /battery --filter 'percentage < 0.2 OR present = FALSE'\n  \
        tsuji topic echo /joints --filter \"name[0] LIKE 'arm_%' AND position[0] > 1.5\"\n  \
        tsuji topic echo /scan sensor_msgs/msg/LaserScan --qos-reliability best_effort"
    )]
    Echo(echo::Args),
    /// Publish messages on a topic
    #[command(
        after_help = "The values are YAML; fields that are not named keep their defaults. A header given as\n\
        `auto` and a stamp given as `now` take the current time.\n\n\
        Examples:\n  tsuji topic pub /chatter std_msgs/msg/String '{data: hello}'\n  \
        tsuji topic pub -r 10 /cmd_vel geometry_msgs/msg/Twist '{linear: {x: 0.5}}'\n  \
        tsuji topic pub --once /goal geometry_msgs/msg/PoseStamped '{header: auto}'"
    )]
    Pub(publish::Args),
    /// Measure at which rate messages come
    #[command(
        after_help = "Examples:\n  tsuji topic hz /camera/image\n  tsuji topic hz -w 100 /scan"
    )]
    Hz(hz::Args),
    /// Measure how many bytes a second come
    #[command(
        after_help = "Examples:\n  tsuji topic bw /camera/image\n  tsuji topic bw -w 1000 /scan"
    )]
    Bw(bw::Args),
    /// Measure how long messages take from the stamp in their header to here
    #[command(after_help = "The clocks of both machines must agree, where they are two.\n\n\
        Examples:\n  tsuji topic delay /camera/image\n  tsuji topic delay -w 100 --json /scan")]
    Delay(delay::Args),
    /// Print a topic's type
    #[command(after_help = "Example:\n  tsuji topic type /camera/image")]
    Type(find::TypeArgs),
    /// List the topics of a type
    #[command(
        after_help = "Examples:\n  tsuji topic find sensor_msgs/msg/Image\n  tsuji topic find -c std_msgs/msg/String"
    )]
    Find(find::Args),
}

/// What is said before the verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Time is what `/clock` tells.
    pub(crate) use_sim_time: bool,
    /// Topics count whose names ROS hides.
    pub(crate) include_hidden: bool,
}

pub(crate) fn run(
    command: &Command,
    globals: &Globals,
    Asked { use_sim_time, include_hidden }: Asked,
    out: &mut Output,
) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list::run(args, globals, include_hidden, out),
        Command::Info(args) => info::run(args, globals, out),
        Command::Echo(args) => echo::run(args, globals, out),
        Command::Pub(args) => publish::run(args, globals, use_sim_time, out),
        Command::Hz(args) => hz::run(args, globals, use_sim_time, out),
        Command::Bw(args) => bw::run(args, globals, use_sim_time, out),
        Command::Delay(args) => delay::run(args, globals, use_sim_time, out),
        Command::Type(args) => find::type_of(args, globals, out),
        Command::Find(args) => find::run(args, globals, include_hidden, out),
    }
}

/// A topic as a user writes it, as the full name in the root namespace.
pub(crate) fn full_name(text: &str) -> Result<String, String> {
    // A private name has no meaning here: the command's node has none that others use.
    let refused = || "allowed: a name such as /chatter or chatter".to_owned();
    if text.starts_with('~') || text.contains('{') {
        return Err(refused());
    }
    names::expand_topic(text, "tsuji", "/").map_err(|error| error.to_string())
}

/// The types that `topic` has, by name.
fn types(graph: &Graph, topic: &str) -> BTreeSet<String> {
    let here = graph.endpoints.iter().filter(|it| it.topic == topic);
    here.map(|it| it.type_name.clone()).collect()
}

/// Whether somebody publishes on `topic`.
pub(crate) fn is_published(graph: &Graph, topic: &str) -> bool {
    let publishers = graph.endpoints.iter().filter(|it| it.kind == EndpointKind::Publisher);
    publishers.into_iter().any(|it| it.topic == topic)
}

pub(crate) fn join(types: &BTreeSet<String>) -> String {
    types.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// A positive number of seconds, with a fraction if need be.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
    // What is less than half a nanosecond is none either.
    duration
        .filter(|it| !it.is_zero())
        .ok_or_else(|| "allowed: a number of seconds above 0, such as 2.5".to_owned())
}

/// The one type of a topic, waited for if need be; `None` when the command is to end before. `verb`
/// is what cannot be done with several types, `hint` what helps then. It is an error that there is none `within`.
fn only_type(
    session: &Session,
    topic: &str,
    verb: &str,
    hint: &str,
    within: Option<Duration>,
) -> anyhow::Result<Option<String>> {
    let look = |graph: &Graph| {
        let types = types(graph, topic);
        (!types.is_empty()).then_some(types)
    };
    let Some(types) = session.wait_for_within(within, look) else {
        match within.filter(|_| session.context.is_ok()) {
            Some(within) => {
                anyhow::bail!("no message on {topic} within {}", figures::seconds(within))
            }
            None => return Ok(None),
        }
    };
    if types.len() > 1 {
        let text = format!(
            "Cannot {verb} topic '{topic}', as it contains more than one type: [{}]{hint}",
            join(&types)
        );
        return Err(Usage(text).into());
    }
    Ok(types.into_iter().next())
}

/// Refuses the expressions of Python that `ros2` takes.
fn no_filter(_: &str) -> Result<String, String> {
    Err("it is an expression of Python, of which there is none here; `tsuji topic echo --filter` chooses messages by a \
         content filter of DDS"
        .to_owned())
}

/// Says once that nobody is there yet, in the words of `ros2`.
fn not_published(topic: &str) {
    output::warning(format_args!("topic [{topic}] does not appear to be published yet"));
}
