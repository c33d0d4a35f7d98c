//! `tsuji service`: who answers what.

use std::collections::{BTreeMap, BTreeSet};

use clap::Subcommand;
use serde_json::json;
use tsuji::{EndpointKind, Graph};
use tsuji_core::names;

use crate::completions;
use crate::failure::Told;
use crate::output::Output;
use crate::session::{Globals, Session, is_hidden};
use crate::topic::join;

mod call;

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, made from the command line")]
pub(crate) enum Command {
    /// List the services that have a server or a client
    #[command(
        after_help = "Examples:\n  tsuji service list\n  tsuji service list -t\n  tsuji service list --json"
    )]
    List(List),
    /// Print a service's type
    #[command(after_help = "Example:\n  tsuji service type /add_two_ints")]
    Type(TypeOf),
    /// List the services of a type
    #[command(
        after_help = "Examples:\n  tsuji service find std_srvs/srv/SetBool\n  tsuji service find -c std_srvs/srv/Empty"
    )]
    Find(Find),
    /// Call a service and print its response
    #[command(
        after_help = "The values are YAML; fields that are not named keep their defaults. A header given as\n\
        `auto` and a stamp given as `now` take the current time. Without a type the one that the\n\
        service has is taken.\n\n\
        Examples:\n  tsuji service call /add_two_ints example_interfaces/srv/AddTwoInts '{a: 1, b: 2}'\n  \
        tsuji service call /add_two_ints '{a: 1, b: 2}' --timeout 5\n  \
        tsuji service call /reset std_srvs/srv/Empty -r 2"
    )]
    Call(call::Args),
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Show the types as well
    #[arg(short = 't', long)]
    show_types: bool,
    /// Only print how many services there are
    #[arg(short, long)]
    count_services: bool,
    /// List services too whose names ROS hides, such as /_private/reset
    #[arg(long)]
    include_hidden_services: bool,
    /// Print JSON: an array of services with their types, servers and clients
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TypeOf {
    /// The service
    #[arg(value_name = "SERVICE", value_parser = full_name, add = completions::services())]
    service: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Find {
    /// The type, such as std_srvs/srv/SetBool
    #[arg(value_name = "TYPE", add = completions::service_types())]
    type_name: String,
    /// Only print how many services there are
    #[arg(short, long)]
    count_services: bool,
    /// List services too whose names ROS hides, such as /_private/reset
    #[arg(long)]
    include_hidden_services: bool,
}

/// What is known of one service.
#[derive(Default)]
struct Service {
    types: BTreeSet<String>,
    servers: usize,
    clients: usize,
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list(args, &Session::open(globals)?.graph(), out),
        Command::Type(args) => type_of(args, &Session::open(globals)?.graph(), out),
        Command::Find(args) => find(args, &Session::open(globals)?.graph(), out),
        Command::Call(args) => call::run(args, globals, out),
    }
}

fn list(args: &List, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let mut services = services(graph);
    services.retain(|name, _| args.include_hidden_services || !is_hidden(name));
    if args.count_services {
        return Ok(out.line(services.len())?);
    }
    if args.json {
        let services = services.iter().map(|(name, it)| {
            json!({ "service": name, "types": it.types, "servers": it.servers, "clients": it.clients })
        });
        return Ok(out.line(serde_json::to_string_pretty(&services.collect::<Vec<_>>())?)?);
    }
    for (name, service) in &services {
        match args.show_types {
            true => out.line(format_args!("{name} [{}]", join(&service.types)))?,
            false => out.line(name)?,
        }
    }
    Ok(())
}

/// Ends with exit code 1 and without a word if the service has none, as `ros2` does.
fn type_of(args: &TypeOf, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let types = types(graph, &args.service);
    types.iter().try_for_each(|it| out.line(it))?;
    if types.is_empty() { Err(Told(1).into()) } else { Ok(()) }
}

fn find(args: &Find, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let mut services = services(graph);
    services.retain(|name, it| {
        it.types.contains(&args.type_name) && (args.include_hidden_services || !is_hidden(name))
    });
    if args.count_services {
        return Ok(out.line(services.len())?);
    }
    Ok(services.keys().try_for_each(|it| out.line(it))?)
}

fn services(graph: &Graph) -> BTreeMap<String, Service> {
    let mut services = BTreeMap::<String, Service>::new();
    for end in &graph.services {
        let service = services.entry(end.topic.clone()).or_default();
        service.types.insert(end.type_name.clone());
        let is_server = end.kind == EndpointKind::Server;
        service.servers += usize::from(is_server);
        service.clients += usize::from(!is_server);
    }
    services
}

/// The types that `service` has, by name.
fn types(graph: &Graph, service: &str) -> BTreeSet<String> {
    let here = graph.services.iter().filter(|it| it.topic == service);
    here.map(|it| it.type_name.clone()).collect()
}

/// A service or an action as a user writes it, as the full name in the root namespace.
pub(crate) fn full_name(text: &str) -> Result<String, String> {
    // A private name has no meaning here: the command's node has none that others use.
    if text.starts_with('~') || text.contains('{') {
        return Err("allowed: a name such as /reset or reset".to_owned());
    }
    names::expand_topic(text, "tsuji", "/").map_err(|error| error.to_string())
}
