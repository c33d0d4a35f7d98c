//! `tsuji lifecycle`: where managed nodes stand, whoever they are made of.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value as Json, json};
use tsuji::lifecycle::{LifecycleClient, managed_nodes};
use tsuji_interfaces::lifecycle_msgs::msg;

use crate::completions;
use crate::output::{self, Output};
use crate::service::full_name;
use crate::session::{Globals, Session, has_node, is_hidden};
use crate::topic::seconds;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the managed nodes
    #[command(after_help = "Examples:\n  tsuji lifecycle nodes\n  tsuji lifecycle nodes -c")]
    Nodes(Nodes),
    /// List the transitions that a node allows now
    #[command(
        after_help = "Examples:\n  tsuji lifecycle list /camera\n  tsuji lifecycle list /camera --all --json"
    )]
    List(List),
    /// Print the state of a node, or of all
    #[command(after_help = "Examples:\n  tsuji lifecycle get\n  tsuji lifecycle get /camera")]
    Get(Get),
    /// Make a transition of a node
    #[command(
        after_help = "Examples:\n  tsuji lifecycle set /camera configure\n  tsuji lifecycle set /camera 3"
    )]
    Set(Set),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Patience {
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Nodes {
    /// List hidden nodes too, whose names begin with an underscore
    #[arg(short, long)]
    all: bool,
    /// Only print how many there are
    #[arg(short, long)]
    count_nodes: bool,
    /// Print JSON: an array of names
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// The node's full name
    #[arg(value_name = "NODE", value_parser = full_name, add = completions::managed_nodes())]
    node: String,
    /// No effect: a node that is named is asked, hidden or not
    #[arg(long, hide = true)]
    include_hidden_nodes: bool,
    /// List all transitions that there are
    #[arg(short, long)]
    all: bool,
    /// Print JSON: an array of transitions with their states
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// The node's full name; all if not said
    #[arg(value_name = "NODE", value_parser = full_name, add = completions::managed_nodes())]
    node: Option<String>,
    /// Ask hidden nodes too, whose names begin with an underscore
    #[arg(long)]
    include_hidden_nodes: bool,
    /// Print JSON: an array of nodes with their states
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Set {
    /// The node's full name
    #[arg(value_name = "NODE", value_parser = full_name, add = completions::managed_nodes())]
    node: String,
    /// No effect: a node that is named is asked, hidden or not
    #[arg(long, hide = true)]
    include_hidden_nodes: bool,
    /// The transition: its label or its number
    transition: String,
    /// Give up after so many seconds; what the node does for it may take long
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    timeout: Duration,
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::Nodes(args) => nodes(args, globals, out),
        Command::List(args) => list(args, globals, out),
        Command::Get(args) => get(args, globals, out),
        Command::Set(args) => set(args, globals, out),
    }
}

fn nodes(args: &Nodes, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let mut there = managed_nodes(&Session::open_named(globals, |_| false)?.graph());
    there.retain(|it| args.all || !is_hidden(it));
    if args.count_nodes {
        return Ok(out.line(there.len())?);
    }
    if args.json {
        return Ok(out.lines(serde_json::to_string_pretty(&there)?)?);
    }
    Ok(there.iter().try_for_each(|it| out.line(it))?)
}

/// Meets a node. Ends the command if it is not there, or not managed.
fn open(session: &Session, node: &str) -> anyhow::Result<LifecycleClient> {
    let graph = session.graph();
    if managed_nodes(&graph).contains(node) {
        return Ok(LifecycleClient::new(&session.hidden_node()?, node));
    }
    if graph.nodes.iter().any(|it| it.fully_qualified_name() == node) {
        anyhow::bail!("'{node}' is no managed node; `tsuji lifecycle nodes` lists those there are");
    }
    anyhow::bail!("Node not found: '{node}'; `tsuji lifecycle nodes` lists those there are")
}

fn list(args: &List, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open_named(globals, |graph| has_node(graph, &args.node))?;
    let client = open(&session, &args.node)?;
    let transitions = match args.all {
        true => client.transition_graph(args.patience.timeout)?,
        false => client.transitions(args.patience.timeout)?,
    };
    if args.json {
        let transitions: Vec<Json> = transitions.iter().map(as_json).collect();
        return Ok(out.lines(serde_json::to_string_pretty(&transitions)?)?);
    }
    for msg::TransitionDescription { transition, start_state, goal_state } in transitions {
        out.line(format_args!("- {} [{}]", transition.label, transition.id))?;
        out.line(format_args!("\tStart: {}", start_state.label))?;
        out.line(format_args!("\tGoal: {}", goal_state.label))?;
    }
    Ok(())
}

fn as_json(it: &msg::TransitionDescription) -> Json {
    let state = |it: &msg::State| json!({ "id": it.id, "label": it.label });
    json!({
        "id": it.transition.id,
        "label": it.transition.label,
        "start": state(&it.start_state),
        "goal": state(&it.goal_state),
    })
}

fn get(args: &Get, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open_named(globals, |graph| {
        args.node.as_ref().is_some_and(|node| has_node(graph, node))
    })?;
    let mut found = Vec::new();
    if let Some(node) = &args.node {
        found.push((node.clone(), open(&session, node)?.state(args.patience.timeout)?));
    } else {
        let asking = session.hidden_node()?;
        let there: BTreeSet<String> = managed_nodes(&session.graph());
        for node in there.into_iter().filter(|it| args.include_hidden_nodes || !is_hidden(it)) {
            match LifecycleClient::new(&asking, &node).state(args.patience.timeout) {
                Ok(state) => found.push((node, state)),
                // One that does not answer keeps nobody from seeing the others.
                Err(error) => output::warning(format_args!("{error}; {node} is left out")),
            }
        }
    }
    if args.json {
        let found = found
            .iter()
            .map(|(node, state)| json!({ "node": node, "id": state.id, "state": state.label }));
        return Ok(out.lines(serde_json::to_string_pretty(&found.collect::<Vec<_>>())?)?);
    }
    for (node, msg::State { id, label }) in found {
        match args.node.is_some() {
            true => out.line(format_args!("{label} [{id}]"))?,
            false => out.line(format_args!("{node}: {label} [{id}]"))?,
        }
    }
    Ok(())
}

fn set(args: &Set, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open_named(globals, |graph| has_node(graph, &args.node))?;
    let client = open(&session, &args.node)?;
    match client.change(&args.transition, args.timeout) {
        Ok(()) => Ok(out.line("Transitioning successful")?),
        Err(error) => anyhow::bail!("Transitioning failed: {error}"),
    }
}
