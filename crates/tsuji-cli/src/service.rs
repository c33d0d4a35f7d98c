//! `tsuji service`: who answers what.

use std::collections::{BTreeMap, BTreeSet};

use clap::Subcommand;
use serde_json::json;
use tsuji::{EndpointInfo, EndpointKind, Graph};
use tsuji_core::names;

use crate::completions;
use crate::failure::{Told, Usage};
use crate::output::{self, Output};
use crate::session::{Globals, Session, is_hidden};
use crate::topic::{endpoint_json, join, show, types_said};

mod call;
pub(crate) use call::told_within;
mod echo;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the services that have a server or a client
    #[command(
        after_help = "Examples:\n  tsuji service list\n  tsuji service list -t\n  tsuji service list --json"
    )]
    List(List),
    /// Show a service's type, and how many clients and servers it has
    #[command(
        after_help = "Examples:\n  tsuji service info /add_two_ints\n  tsuji service info -v /add_two_ints"
    )]
    Info(Info),
    /// Print the requests and responses that clients and servers tell of by service introspection
    #[command(after_help = "Examples:\n  tsuji service echo /add_two_ints\n  \
        tsuji service echo /add_two_ints \\\n      example_interfaces/srv/AddTwoInts --flow-style")]
    Echo(echo::Args),
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
        Examples:\n  tsuji service call /add_two_ints \\\n      example_interfaces/srv/AddTwoInts '{a: 1, b: 2}'\n  \
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
pub(crate) struct Info {
    /// The service
    #[arg(value_name = "SERVICE", value_parser = full_name, add = completions::services())]
    service: String,
    /// Show each client and server with its node, type, GID and QoS
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
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

/// `include_hidden` is said before the verb: services count whose names ROS hides.
pub(crate) fn run(
    command: &Command,
    globals: &Globals,
    include_hidden: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list(args, include_hidden, &Session::open(globals)?.graph(), out),
        Command::Info(args) => {
            let is_enough = |_: &Graph| !args.verbose && !args.json;
            info(args, &Session::open_named(globals, is_enough)?.graph(), out)
        }
        Command::Echo(args) => echo::run(args, globals, out),
        Command::Type(args) => type_of(args, &Session::open(globals)?.graph(), out),
        Command::Find(args) => find(args, include_hidden, &Session::open(globals)?.graph(), out),
        Command::Call(args) => call::run(args, globals, out),
    }
}

fn list(args: &List, include_hidden: bool, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let include_hidden = include_hidden || args.include_hidden_services;
    let mut services = services(graph);
    services.retain(|name, _| include_hidden || !is_hidden(name));
    if args.count_services {
        return Ok(out.line(services.len())?);
    }
    if args.json {
        let services = services.iter().map(|(name, it)| {
            json!({ "service": name, "types": it.types, "servers": it.servers, "clients": it.clients })
        });
        return Ok(out.lines(serde_json::to_string_pretty(&services.collect::<Vec<_>>())?)?);
    }
    for (name, service) in &services {
        match args.show_types {
            true => out.line(format_args!("{name} [{}]", join(&service.types)))?,
            false => out.line(name)?,
        }
    }
    Ok(())
}

fn info(args: &Info, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let types = types(graph, &args.service);
    if types.is_empty() {
        output::error(format_args!("Unknown service '{}'", args.service));
        return Err(Told(1).into());
    }
    let of = |kind| -> Vec<&EndpointInfo> {
        let here = graph.services.iter().filter(|it| it.topic == args.service);
        here.filter(|it| it.kind == kind).collect()
    };
    let (clients, servers) = (of(EndpointKind::Client), of(EndpointKind::Server));
    if args.json {
        let ends =
            |ends: &[&EndpointInfo]| ends.iter().map(|it| endpoint_json(it)).collect::<Vec<_>>();
        let (clients, servers) = (ends(&clients), ends(&servers));
        let info = json!({ "service": args.service, "types": types, "clients": clients, "servers": servers });
        return Ok(out.lines(serde_json::to_string_pretty(&info)?)?);
    }
    out.line(format_args!("Type: {}", types_said(&types)))?;
    for (what, ends) in [("Clients", &clients), ("Services", &servers)] {
        out.line(format_args!("{what} count: {}", ends.len()))?;
        for end in ends.iter().filter(|_| args.verbose) {
            out.line("")?;
            show(end, out)?;
        }
        if args.verbose {
            out.line("")?;
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

fn find(args: &Find, include_hidden: bool, graph: &Graph, out: &mut Output) -> anyhow::Result<()> {
    let include_hidden = include_hidden || args.include_hidden_services;
    let mut services = services(graph);
    services.retain(|name, it| {
        it.types.contains(&args.type_name) && (include_hidden || !is_hidden(name))
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

/// The one type of a service that a command is to do something with.
fn only_type(verb: &str, service: &str, types: BTreeSet<String>) -> anyhow::Result<Option<String>> {
    if types.len() > 1 {
        let text = format!(
            "Cannot {verb} service '{service}', as it has more than one type: [{}]; name one",
            join(&types)
        );
        return Err(Usage(text).into());
    }
    Ok(types.into_iter().next())
}
