//! `tsuji component`: what is loaded into which process. The containers may be rclcpp's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use serde_json::json;
use tsuji::Context;
use tsuji::component::{
    CONTAINER_NAME, ComponentSource, ComponentType, Container, ContainerClient, LoadRequest,
    RCLCPP_COMPONENTS, TSUJI_COMPONENTS, builtin, containers, indexed,
};
use tsuji::parameter::{Parameter, ParameterFile, parse_command_value};

use crate::completions;
use crate::failure::{Told, Usage};
use crate::output::{self, Output};
use crate::service::full_name;
use crate::session::{Globals, Session, has_node};
use crate::topic::seconds;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the containers and the components in them
    #[command(
        after_help = "Examples:\n  tsuji component list\n  tsuji component list /ComponentManager --json"
    )]
    List(List),
    /// Load a component into a container
    #[command(
        after_help = "Examples:\n  tsuji component load /ComponentManager tsuji_components Camera\n  \
        tsuji component load /ComponentManager tsuji_components Camera \\\n      -p rate:=10.0 -r image:=/left/image\n  \
        tsuji component load /ComponentManager composition composition::Talker \\\n      -n voice"
    )]
    Load(Load),
    /// Unload components from a container
    #[command(after_help = "Example:\n  tsuji component unload /ComponentManager 1 2")]
    Unload(Unload),
    /// List the components that ship with tsuji, and those that installed packages have
    #[command(
        after_help = "Those that AMENT_PREFIX_PATH leads to are of rclcpp, which its own containers load, or of tsuji.\n\n\
        Examples:\n  tsuji component types\n  tsuji component types tsuji_components --json"
    )]
    Types(Types),
    /// Be a container, with the components that ship with tsuji
    #[command(
        after_help = "Components from shared libraries are loaded by the program tsuji-container.\n\n\
        Examples:\n  tsuji component container\n  tsuji component container --name eyes --namespace /robot"
    )]
    Container(ContainerArgs),
    /// Be a container that has loaded one of the components that ship with tsuji
    #[command(
        after_help = "Example:\n  tsuji component standalone tsuji_components Camera -p rate:=5.0"
    )]
    Standalone(Standalone),
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// The container; all if not said
    #[arg(value_name = "CONTAINER", value_parser = full_name, add = completions::containers())]
    container: Option<String>,
    /// Print only the names of the containers
    #[arg(long)]
    containers_only: bool,
    /// Print JSON: an array of containers with the ids and nodes of their components
    #[arg(long)]
    json: bool,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    timeout: Duration,
}

/// What a component is made of, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Made {
    /// The package
    package: String,
    /// The component in it
    plugin: String,
    /// The node's name, instead of its own
    #[arg(short = 'n', long, value_name = "NAME", default_value = "", hide_default_value = true)]
    node_name: String,
    /// The node's namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide_default_value = true)]
    node_namespace: String,
    /// The level of its log; a container of tsuji does not obey it
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
    /// Use another name for what it calls FROM, as FROM:=TO; may be said again
    #[arg(short = 'r', long = "remap-rule", value_name = "FROM:=TO")]
    remap_rules: Vec<String>,
    /// The value of a parameter, in YAML; may be said again
    #[arg(short = 'p', long = "parameter", value_name = "NAME:=VALUE", value_parser = assignment)]
    parameters: Vec<Parameter>,
    /// Parameters from a YAML file, under what `--parameter` says; needs --node-name
    #[arg(long, value_name = "FILE", requires = "node_name")]
    params_file: Vec<PathBuf>,
    /// What else the container is told, such as use_intra_process_comms:=true; may be said again
    #[arg(short = 'e', long = "extra-argument", value_name = "NAME:=VALUE", value_parser = assignment)]
    extra_arguments: Vec<Parameter>,
}

/// In the words and numbers of rcl.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogLevel {
    Debug = 10,
    Info = 20,
    Warn = 30,
    Error = 40,
    Fatal = 50,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Load {
    /// The container
    #[arg(value_name = "CONTAINER", value_parser = full_name, add = completions::containers())]
    container: String,
    #[command(flatten)]
    made: Made,
    /// Print no more than the id and the node's name
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON: the id and the node's name
    #[arg(long)]
    json: bool,
    /// Give up after so many seconds; what the component is made of may take long
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Unload {
    /// The container
    #[arg(value_name = "CONTAINER", value_parser = full_name, add = completions::containers())]
    container: String,
    /// The ids of the components, as `tsuji component list` has them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<u64>,
    /// Print no more than the ids
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON: an array of ids, whether each is unloaded, and why not
    #[arg(long)]
    json: bool,
    /// Give up after so many seconds; the container waits for 5 until callbacks have ended
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Types {
    /// The package; all if not said
    package: Option<String>,
    /// Print JSON: an array of packages and plugins, each with whose containers load it
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The container's name
    #[arg(short = 'c', long, visible_alias = "container-node-name", value_name = "NAME", default_value = CONTAINER_NAME)]
    name: String,
    /// The container's namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "/")]
    namespace: String,
    /// What ROS 2's launch tells nodes: -r __node:=NAME, -r __ns:=NAMESPACE, -p NAME:=VALUE and the like; all that
    /// follows is taken, and a name there wins
    #[arg(long, value_name = "ARGUMENT", num_args = 0.., allow_hyphen_values = true)]
    ros_args: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ContainerArgs {
    #[command(flatten)]
    named: Named,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Standalone {
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list(args, globals, out),
        Command::Load(args) => load(args, globals, out),
        Command::Unload(args) => unload(args, globals, out),
        Command::Types(args) => types(args, out),
        Command::Container(args) => serve(&args.named, None, globals, out),
        Command::Standalone(args) => serve(&args.named, Some(args.made.request()?), globals, out),
    }
}

/// A parameter as `NAME:=VALUE`.
fn assignment(words: &str) -> Result<Parameter, String> {
    let allowed = "allowed: NAME:=VALUE";
    let (name, value) = words.split_once(":=").ok_or_else(|| allowed.to_owned())?;
    if name.is_empty() {
        return Err(format!("the name is missing; {allowed}"));
    }
    let value =
        parse_command_value(value).map_err(|error| format!("{value:?} is no value: {error}"))?;
    Ok(Parameter { name: name.to_owned(), value })
}

impl Made {
    fn request(&self) -> anyhow::Result<LoadRequest> {
        let namespace = self.node_namespace.trim_matches('/');
        let node = match namespace {
            "" => format!("/{}", self.node_name),
            namespace => format!("/{namespace}/{}", self.node_name),
        };
        let mut parameters = Vec::new();
        for path in &self.params_file {
            let file = ParameterFile::read(path).map_err(|error| Usage(error.to_string()))?;
            parameters.extend(file.for_node(&node));
        }
        parameters.extend(self.parameters.iter().cloned());
        Ok(LoadRequest {
            package: self.package.clone(),
            plugin: self.plugin.clone(),
            node_name: self.node_name.clone(),
            node_namespace: self.node_namespace.clone(),
            log_level: self.log_level.map_or(0, |it| it as u8),
            remap_rules: self.remap_rules.clone(),
            parameters,
            extra_arguments: self.extra_arguments.clone(),
        })
    }
}

/// A container that is asked.
struct Asked {
    /// Lives for as long as the client.
    _session: Session,
    client: ContainerClient,
}

impl Asked {
    /// Meets the container. Ends the command if it is not there.
    fn open(globals: &Globals, container: &str) -> anyhow::Result<Self> {
        let session = Session::open_named(globals, |graph| has_node(graph, container))?;
        insist(&containers(&session.graph()), container)?;
        let client = ContainerClient::new(&session.hidden_node()?, container);
        Ok(Self { _session: session, client })
    }
}

fn insist(there: &BTreeSet<String>, container: &str) -> anyhow::Result<()> {
    if there.contains(container) {
        return Ok(());
    }
    let there: Vec<&str> = there.iter().map(String::as_str).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    anyhow::bail!("Unable to find container node '{container}'; there are: {there}")
}

fn list(args: &List, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open_named(globals, |graph| {
        args.container.as_ref().is_some_and(|it| has_node(graph, it))
    })?;
    let mut there = containers(&session.graph());
    if let Some(container) = &args.container {
        insist(&there, container)?;
        there.retain(|it| it == container);
    }
    let asking = session.hidden_node()?;
    let mut lists = Vec::new();
    for container in there {
        if args.containers_only {
            lists.push((container, Vec::new()));
            continue;
        }
        match ContainerClient::new(&asking, &container).list(args.timeout) {
            Ok(components) => lists.push((container, components)),
            Err(error) if args.container.is_some() => return Err(error.into()),
            // One that does not answer keeps nobody from seeing the others.
            Err(error) => output::warning(format_args!("{error}; {container} is left out")),
        }
    }
    if args.json {
        let lists = lists.iter().map(|(container, components)| {
            let components = components.iter().map(|it| json!({ "id": it.id, "node": it.node }));
            json!({ "container": container, "components": components.collect::<Vec<_>>() })
        });
        return Ok(out.lines(serde_json::to_string_pretty(&lists.collect::<Vec<_>>())?)?);
    }
    for (container, components) in lists {
        if args.container.is_none() {
            out.line(container)?;
        }
        // What is asked for alone stands at the margin, as `ros2` has it.
        let indent = if args.container.is_none() { "  " } else { "" };
        for it in components {
            out.line(format_args!("{indent}{}  {}", it.id, it.node))?;
        }
    }
    Ok(())
}

fn load(args: &Load, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let request = args.made.request()?;
    let Asked { client, .. } = &Asked::open(globals, &args.container)?;
    let loaded = client.load(request, args.timeout)?;
    if args.json {
        let loaded = json!({ "id": loaded.id, "node": loaded.node });
        return Ok(out.lines(serde_json::to_string_pretty(&loaded)?)?);
    }
    match args.quiet {
        true => out.line(format_args!("{}  {}", loaded.id, loaded.node))?,
        false => out.line(format_args!(
            "Loaded component {} into '{}' container node as '{}'",
            loaded.id, args.container, loaded.node
        ))?,
    }
    Ok(())
}

fn unload(args: &Unload, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let Asked { client, .. } = &Asked::open(globals, &args.container)?;
    let mut results = Vec::new();
    for id in &args.ids {
        let unloaded = client.unload(*id, args.timeout);
        if !args.json {
            match &unloaded {
                Ok(()) if args.quiet => out.line(id)?,
                Ok(()) => out.line(format_args!(
                    "Unloaded component {id} from '{}' container node",
                    args.container
                ))?,
                Err(error) => output::error(format_args!(
                    "Failed to unload component {id} from '{}' container node: {error}",
                    args.container
                )),
            }
        }
        results.push((id, unloaded.map_err(|error| error.to_string())));
    }
    if args.json {
        let results = results.iter().map(|(id, result)| {
            json!({ "id": id, "unloaded": result.is_ok(), "reason": result.as_ref().err() })
        });
        out.lines(serde_json::to_string_pretty(&results.collect::<Vec<_>>())?)?;
    }
    if results.iter().all(|(_, it)| it.is_ok()) { Ok(()) } else { Err(Told(1).into()) }
}

fn types(args: &Types, out: &mut Output) -> anyhow::Result<()> {
    let mut all: BTreeMap<ComponentType, &str> = BTreeMap::new();
    for (resource, whose) in [(RCLCPP_COMPONENTS, "rclcpp"), (TSUJI_COMPONENTS, "tsuji")] {
        all.extend(indexed(resource).into_iter().map(|it| (it.component, whose)));
    }
    all.extend(builtin().types().into_iter().map(|it| (it, "tsuji")));
    if let Some(package) = &args.package {
        let packages: BTreeSet<String> = all.keys().map(|it| it.package.clone()).collect();
        if !packages.contains(package) {
            let packages: Vec<String> = packages.into_iter().collect();
            anyhow::bail!(
                "no components of package '{package}'; there are those of {}",
                packages.join(", ")
            );
        }
        all.retain(|it, _| it.package == *package);
    }
    if args.json {
        let all = all.iter().map(
            |(it, whose)| json!({ "package": it.package, "plugin": it.plugin, "container": whose }),
        );
        return Ok(out.lines(serde_json::to_string_pretty(&all.collect::<Vec<_>>())?)?);
    }
    let mut before = None;
    for it in all.keys() {
        if args.package.is_none() && before.replace(&it.package) != Some(&it.package) {
            out.line(&it.package)?;
        }
        let indent = if args.package.is_none() { "  " } else { "" };
        out.line(format_args!("{indent}{}", it.plugin))?;
    }
    Ok(())
}

/// Is a container until the command is to end.
fn serve(
    named: &Named,
    first: Option<LoadRequest>,
    globals: &Globals,
    out: &mut Output,
) -> anyhow::Result<()> {
    let context: Context = globals.context(None)?;
    // Of two rules for a name the first holds.
    let said = ["--ros-args".to_owned()].into_iter().chain(named.ros_args.iter().cloned());
    let namespace = format!("__ns:={}", named.namespace);
    let arguments = said.chain(["--ros-args".to_owned(), "-r".to_owned(), namespace]);
    let context = context.with_args(arguments).map_err(|error| Usage(error.to_string()))?;
    if let Some(word) = context.arguments().first() {
        let text =
            format!("{word:?} after the '--' of --ros-args is not an argument of a container");
        return Err(Usage(text).into());
    }
    crate::log::publish(context.logging());
    let container = Container::builder(&context, &named.name).source(builtin()).build()?;
    if let Some(request) = first {
        let loaded = container.load(request)?;
        out.line(format_args!("Loaded component {} as '{}'", loaded.id, loaded.node))?;
    }
    out.line(format_args!("Container '{}'", container.node().fully_qualified_name()))?;
    std::io::Write::flush(out)?;
    Ok(container.spin()?)
}
