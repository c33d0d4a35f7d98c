//! `tsuji node`: who takes part.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, Subcommand};
use serde_json::json;
use tsuji::{EndpointKind, Graph};

use crate::action::actions;
use crate::completions;
use crate::failure::Told;
use crate::output::{self, Output};
use crate::session::{Globals, Session, has_node, is_hidden};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the nodes
    #[command(after_help = "Examples:\n  tsuji node list\n  tsuji node list --all")]
    List(List),
    /// Show what a node publishes and subscribes to, its services and its actions
    #[command(
        after_help = "Examples:\n  tsuji node info /camera\n  tsuji node info /camera --include-hidden"
    )]
    Info(Info),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List hidden nodes too, whose names begin with an underscore
    #[arg(short, long)]
    all: bool,
    /// Only print how many nodes there are
    #[arg(short, long)]
    count_nodes: bool,
    /// Print JSON: an array of nodes with their processes
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// The node's full name
    #[arg(value_name = "NODE", add = completions::nodes())]
    node: String,
    /// Show topics and services too whose names ROS hides, and those behind actions
    #[arg(long)]
    include_hidden: bool,
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open_named(globals, |graph| match command {
        Command::List(_) => false,
        Command::Info(args) => has_node(graph, &format!("/{}", args.node.trim_start_matches('/'))),
    })?;
    let graph = session.graph();
    match command {
        Command::List(args) => list(args, &graph, out),
        Command::Info(args) => info(args, &graph, out),
    }
}

fn list(args: &List, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let mut nodes: Vec<_> = graph.nodes.iter().map(|it| (it.fully_qualified_name(), it)).collect();
    nodes.retain(|(name, _)| args.all || !is_hidden(name));
    nodes.sort_by(|a, b| a.0.cmp(&b.0));
    if args.count_nodes {
        return Ok(out.line(nodes.len())?);
    }
    if args.json {
        let nodes = nodes.iter().map(|(name, node)| {
            let process = &node.process;
            json!({ "node": name, "program": process.program, "pid": process.pid, "host": process.host,
                "middleware": node.vendor.as_deref().unwrap_or("tsuji") })
        });
        return Ok(out.lines(serde_json::to_string_pretty(&nodes.collect::<Vec<_>>())?)?);
    }
    if nodes.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        output::warning(
            "Be aware that there are nodes in the graph that share an exact name, which can have unintended side effects.",
        );
    }
    for (name, _) in nodes {
        out.line(name)?;
    }
    Ok(())
}

fn info(args: &Info, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let wanted = format!("/{}", args.node.trim_start_matches('/'));
    let same = graph.nodes.iter().filter(|it| it.fully_qualified_name() == wanted).count();
    if same == 0 {
        output::error(format_args!(
            "Unable to find node '{wanted}'; `tsuji node list` lists those there are"
        ));
        return Err(Told(1).into());
    }
    if same > 1 {
        output::warning(format_args!(
            "There are {same} nodes in the graph with the exact name \"{wanted}\". You are seeing information about all of them."
        ));
    }
    out.line(&wanted)?;
    let ends = [
        ("Subscribers", EndpointKind::Subscription),
        ("Publishers", EndpointKind::Publisher),
        ("Service Servers", EndpointKind::Server),
        ("Service Clients", EndpointKind::Client),
    ];
    for (title, kind) in ends {
        let mut topics = BTreeMap::<&str, BTreeSet<&str>>::new();
        let all = graph.endpoints.iter().chain(&graph.services);
        for endpoint in all.filter(|it| it.node == wanted && it.kind == kind) {
            if args.include_hidden || !is_hidden(&endpoint.topic) {
                topics.entry(&endpoint.topic).or_default().insert(&endpoint.type_name);
            }
        }
        section(title, topics, out)?;
    }
    let actions = actions(graph);
    for (title, is_server) in [("Action Servers", true), ("Action Clients", false)] {
        let mut shown = BTreeMap::<&str, BTreeSet<&str>>::new();
        for (name, action) in actions.iter().filter(|(it, _)| args.include_hidden || !is_hidden(it))
        {
            let ends = if is_server { &action.servers } else { &action.clients };
            for (_, ty) in ends.iter().filter(|(node, _)| *node == wanted) {
                shown.entry(name).or_default().insert(ty);
            }
        }
        section(title, shown, out)?;
    }
    Ok(())
}

fn section(
    title: &str,
    named: BTreeMap<&str, BTreeSet<&str>>,
    out: &mut Output,
) -> anyhow::Result<()> {
    out.line(format_args!("  {title}:"))?;
    for (name, types) in named {
        let types: Vec<&str> = types.into_iter().collect();
        out.line(format_args!("    {name}: {}", types.join(", ")))?;
    }
    Ok(())
}
