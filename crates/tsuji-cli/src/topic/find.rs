//! `tsuji topic type` and `tsuji topic find`.

use std::collections::BTreeSet;

use crate::completions;
use crate::failure::Told;
use crate::output::Output;
use crate::session::{Globals, Session, is_hidden};

#[derive(Debug, clap::Args)]
pub(crate) struct TypeArgs {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name, add = completions::topics())]
    topic: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The type, such as std_msgs/msg/String
    #[arg(value_name = "TYPE", add = completions::messages())]
    type_name: String,
    /// Only print how many topics there are
    #[arg(short, long)]
    count_topics: bool,
    /// List topics too whose names ROS hides, such as /_private/state
    #[arg(long)]
    include_hidden_topics: bool,
}

/// Ends with exit code 1 and without a word if the topic has none, as `ros2` does.
pub(crate) fn type_of(args: &TypeArgs, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let types = super::types(&Session::open(globals)?.graph(), &args.topic);
    types.iter().try_for_each(|it| out.line(it))?;
    if types.is_empty() { Err(Told(1).into()) } else { Ok(()) }
}

pub(crate) fn run(
    args: &Args,
    globals: &Globals,
    include_hidden: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let include_hidden = include_hidden || args.include_hidden_topics;
    let graph = Session::open(globals)?.graph();
    let of_type = graph.endpoints.iter().filter(|it| it.type_name == args.type_name);
    let shown = of_type.filter(|it| include_hidden || !is_hidden(&it.topic));
    let topics: BTreeSet<&str> = shown.map(|it| it.topic.as_str()).collect();
    if args.count_topics {
        return Ok(out.line(topics.len())?);
    }
    Ok(topics.iter().try_for_each(|it| out.line(it))?)
}
