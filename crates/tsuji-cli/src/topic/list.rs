//! `tsuji topic list`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tsuji::{EndpointKind, Graph};

use crate::output::{Colour, Output};
use crate::session::{Globals, Session, is_hidden};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show the types as well
    #[arg(short = 't', long)]
    show_types: bool,
    /// Show the types and how many publishers and subscriptions there are
    #[arg(short, long)]
    verbose: bool,
    /// Only print how many topics there are
    #[arg(short, long)]
    count_topics: bool,
    /// List topics too whose names ROS hides, such as /_private/state
    #[arg(long)]
    include_hidden_topics: bool,
    /// Print JSON: an array of topics with their types, publishers and subscriptions
    #[arg(long)]
    json: bool,
}

/// What is known of one topic.
#[derive(Default)]
struct Topic {
    types: BTreeSet<String>,
    publishers: usize,
    subscriptions: usize,
}

pub(crate) fn run(
    args: &Args,
    globals: &Globals,
    include_hidden: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let include_hidden = include_hidden || args.include_hidden_topics;
    let session = Session::open(globals)?;
    let mut topics = topics(&session.graph());
    topics.retain(|name, _| include_hidden || !is_hidden(name));
    if args.count_topics {
        return Ok(out.line(topics.len())?);
    }
    if args.json {
        let topics = topics.iter().map(|(name, it)| {
            json!({ "topic": name, "types": it.types, "publishers": it.publishers, "subscriptions": it.subscriptions })
        });
        return Ok(out.lines(serde_json::to_string_pretty(&topics.collect::<Vec<_>>())?)?);
    }
    if args.verbose {
        counted(&topics, "Published", "publisher", |it| it.publishers, out)?;
        return counted(&topics, "Subscribed", "subscriber", |it| it.subscriptions, out);
    }
    for (name, topic) in &topics {
        match args.show_types {
            true => out.line(format_args!("{name} [{}]", super::join(&topic.types)))?,
            false => out.line(name)?,
        }
    }
    Ok(())
}

fn counted(
    topics: &BTreeMap<String, Topic>,
    title: &str,
    what: &str,
    count: impl Fn(&Topic) -> usize,
    out: &mut Output,
) -> anyhow::Result<()> {
    out.line(out.paint.text(Colour::Strong, format_args!("{title} topics:")))?;
    for (name, topic) in topics {
        let count = count(topic);
        if count > 0 {
            let plural = if count > 1 { "s" } else { "" };
            out.line(format_args!(
                " * {name} [{}] {count} {what}{plural}",
                super::join(&topic.types)
            ))?;
        }
    }
    Ok(out.line("")?)
}

fn topics(graph: &Graph) -> BTreeMap<String, Topic> {
    let mut topics = BTreeMap::<String, Topic>::new();
    for endpoint in &graph.endpoints {
        let topic = topics.entry(endpoint.topic.clone()).or_default();
        topic.types.insert(endpoint.type_name.clone());
        match endpoint.kind {
            EndpointKind::Publisher => topic.publishers += 1,
            EndpointKind::Subscription => topic.subscriptions += 1,
            // These stand among the services.
            EndpointKind::Server | EndpointKind::Client => (),
        }
    }
    topics
}
