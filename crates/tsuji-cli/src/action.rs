//! `tsuji action`: who pursues goals, and who asks for them.

use std::collections::{BTreeMap, BTreeSet};

use clap::Subcommand;
use serde_json::json;
use tsuji::{EndpointKind, Graph};

use crate::completions;
use crate::failure::Told;
use crate::output::Output;
use crate::service::full_name;
use crate::session::{Globals, Session};
use crate::topic::join;

mod send_goal;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the actions that have a server or a client
    #[command(
        after_help = "Examples:\n  tsuji action list\n  tsuji action list -t\n  tsuji action list --json"
    )]
    List(List),
    /// Show which nodes serve an action, and which ask for its goals
    #[command(
        after_help = "Examples:\n  tsuji action info /fibonacci\n  tsuji action info /fibonacci -t --json"
    )]
    Info(Info),
    /// Print an action's type
    #[command(after_help = "Example:\n  tsuji action type /fibonacci")]
    Type(TypeOf),
    /// List the actions of a type
    #[command(
        after_help = "Examples:\n  tsuji action find example_interfaces/action/Fibonacci\n  \
        tsuji action find -c example_interfaces/action/Fibonacci"
    )]
    Find(Find),
    /// Refused: hidden topics carry what an action says
    #[command(hide = true, disable_help_flag = true)]
    Echo(crate::elsewhere::Words),
    /// Ask for a goal, and print its result; Ctrl-C asks for it to be given up
    #[command(
        name = "send-goal",
        visible_alias = "send_goal",
        after_help = "The goal is YAML; fields that are not named keep their defaults. The exit code is 1 where the goal is\n\
        not reached.\n\n\
        Examples:\n  tsuji action send-goal /fibonacci \\\n      example_interfaces/action/Fibonacci '{order: 10}'\n  \
        tsuji action send-goal /fibonacci \\\n      example_interfaces/action/Fibonacci '{order: 10}' --feedback"
    )]
    SendGoal(send_goal::Args),
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Show the types as well
    #[arg(short = 't', long)]
    show_types: bool,
    /// Only print how many actions there are
    #[arg(short, long)]
    count_actions: bool,
    /// Print JSON: an array of actions with their types, servers and clients
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Info {
    /// The action
    #[arg(value_name = "ACTION", value_parser = full_name, add = completions::actions())]
    action: String,
    /// Show the types as well
    #[arg(short = 't', long)]
    show_types: bool,
    /// Print how many servers and clients there are, and not which
    #[arg(short, long)]
    count: bool,
    /// Print JSON: the nodes of the servers and of the clients, each with its type
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TypeOf {
    /// The action
    #[arg(value_name = "ACTION", value_parser = full_name, add = completions::actions())]
    action: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Find {
    /// The type, such as example_interfaces/action/Fibonacci
    #[arg(value_name = "TYPE", add = completions::action_types())]
    type_name: String,
    /// Only print how many actions there are
    #[arg(short, long)]
    count_actions: bool,
}

/// What is known of one action.
#[derive(Default)]
pub(crate) struct Action {
    /// The names of nodes, each with the type that it knows.
    pub(crate) servers: Vec<(String, String)>,
    pub(crate) clients: Vec<(String, String)>,
}

impl Action {
    fn types(&self) -> BTreeSet<String> {
        self.servers.iter().chain(&self.clients).map(|(_, ty)| ty.clone()).collect()
    }
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list(args, &Session::open(globals)?.graph(), out),
        Command::Info(args) => info(args, &Session::open_named(globals, |_| false)?.graph(), out),
        Command::Type(args) => type_of(args, &Session::open(globals)?.graph(), out),
        Command::Find(args) => find(args, &Session::open(globals)?.graph(), out),
        Command::Echo(_) => crate::elsewhere::refuse("action echo"),
        Command::SendGoal(args) => send_goal::run(args, globals, out),
    }
}

fn list(args: &List, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let actions = actions(graph);
    if args.count_actions {
        return Ok(out.line(actions.len())?);
    }
    if args.json {
        let actions = actions.iter().map(|(name, it)| {
            let (servers, clients) = (it.servers.len(), it.clients.len());
            json!({ "action": name, "types": it.types(), "servers": servers, "clients": clients })
        });
        return Ok(out.lines(serde_json::to_string_pretty(&actions.collect::<Vec<_>>())?)?);
    }
    for (name, action) in &actions {
        match args.show_types {
            true => out.line(format_args!("{name} [{}]", join(&action.types())))?,
            false => out.line(name)?,
        }
    }
    Ok(())
}

/// Of an action that nobody has it ends with exit code 1, after the zeros that `ros2` prints.
fn info(args: &Info, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let action = actions(graph).remove(&args.action).unwrap_or_default();
    if args.json {
        let ends = |ends: &[(String, String)]| {
            let ends = ends.iter().map(|(node, ty)| json!({ "node": node, "type": ty }));
            ends.collect::<Vec<_>>()
        };
        let (servers, clients) = (ends(&action.servers), ends(&action.clients));
        let info = json!({ "action": args.action, "servers": servers, "clients": clients });
        out.lines(serde_json::to_string_pretty(&info)?)?;
    } else {
        out.line(format_args!("Action: {}", args.action))?;
        for (what, ends) in [("clients", &action.clients), ("servers", &action.servers)] {
            out.line(format_args!("Action {what}: {}", ends.len()))?;
            for (node, ty) in ends.iter().filter(|_| !args.count) {
                match args.show_types {
                    true => out.line(format_args!("    {node} [{ty}]"))?,
                    false => out.line(format_args!("    {node}"))?,
                }
            }
        }
    }
    let is_there = !action.servers.is_empty() || !action.clients.is_empty();
    if is_there { Ok(()) } else { Err(Told(1).into()) }
}

/// Ends with exit code 1 and without a word if the action has none, as `ros2` does.
fn type_of(args: &TypeOf, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let types = actions(graph).remove(&args.action).unwrap_or_default().types();
    types.iter().try_for_each(|it| out.line(it))?;
    if types.is_empty() { Err(Told(1).into()) } else { Ok(()) }
}

fn find(args: &Find, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let mut actions = actions(graph);
    actions.retain(|_, it| it.types().contains(&args.type_name));
    if args.count_actions {
        return Ok(out.line(actions.len())?);
    }
    Ok(actions.keys().try_for_each(|it| out.line(it))?)
}

/// An action is what has a service that takes goals.
pub(crate) fn actions(graph: &Graph) -> BTreeMap<String, Action> {
    let mut actions = BTreeMap::<String, Action>::new();
    for end in &graph.services {
        let Some((name, ty)) = action_of(&end.topic, &end.type_name) else { continue };
        let action = actions.entry(name).or_default();
        let ends = match end.kind {
            EndpointKind::Server => &mut action.servers,
            _ => &mut action.clients,
        };
        ends.push((end.node.clone(), ty));
    }
    for action in actions.values_mut() {
        action.servers.sort_unstable();
        action.clients.sort_unstable();
    }
    actions
}

/// The action whose goals a service takes, with its type.
pub(crate) fn action_of(service: &str, type_name: &str) -> Option<(String, String)> {
    let name = service.strip_suffix("/_action/send_goal")?;
    let ty = type_name.strip_suffix("_SendGoal").unwrap_or(type_name);
    Some((name.to_owned(), ty.to_owned()))
}
