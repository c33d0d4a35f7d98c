//! `tsuji param`: the parameters of nodes, whoever they are made of.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use regex::Regex;
use serde_json::{Value as Json, json};
use tsuji::parameter::{
    DescribedParameter, Parameter, ParameterClient, ParameterFile, ParameterRange, ParameterType,
    ParameterValue, parse_command_value, to_yaml,
};
use tsuji::{EndpointKind, ErrorKind, Graph, Node};
use tsuji_msg::Value;

use crate::completions;
use crate::failure::{Told, Usage};
use crate::output::{self, Output};
use crate::python;
use crate::service::full_name;
use crate::session::{Globals, Session, has_node, is_hidden};
use crate::topic::seconds;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the parameters of a node, or of all nodes
    #[command(
        after_help = "Examples:\n  tsuji param list\n  tsuji param list /camera --param-type\n  \
        tsuji param list /camera --param-prefixes exposure gain"
    )]
    List(List),
    /// Print the value of a parameter, of one node or of all that have it
    #[command(
        after_help = "Examples:\n  tsuji param get /camera exposure.time\n  tsuji param get /camera exposure.time --hide-type\n  \
        tsuji param get use_sim_time"
    )]
    Get(Get),
    /// Set a parameter
    #[command(
        after_help = "The value is YAML: 1 is an integer, 1.0 a double, true a truth value, \"'1'\" a text, '[1, 2]' an\n\
        array. Whether it is allowed says the node.\n\n\
        Examples:\n  tsuji param set /camera exposure.time 0.02\n  tsuji param set /camera modes '[day, night]'"
    )]
    Set(Set),
    /// Delete a parameter, where its node allows that
    #[command(after_help = "Example:\n  tsuji param delete /camera exposure.time")]
    Delete(Delete),
    /// Show what parameters are for, and what is allowed of them
    #[command(
        after_help = "Examples:\n  tsuji param describe /camera exposure.time gain\n  tsuji param describe /camera gain --json"
    )]
    Describe(Describe),
    /// Print the parameters of a node as a YAML file that `load` and `--params-file` take
    #[command(after_help = "Example:\n  tsuji param dump /camera > camera.yaml")]
    Dump(Dump),
    /// Set the parameters of a node that a YAML file names
    #[command(
        after_help = "Examples:\n  tsuji param load /camera camera.yaml\n  tsuji param load /camera all.yaml --no-use-wildcard"
    )]
    Load(Load),
}

/// What every command has that asks one node.
#[derive(Debug, clap::Args)]
pub(crate) struct Of {
    /// The node's full name
    #[arg(value_name = "NODE", value_parser = full_name, add = completions::nodes())]
    node: String,
    /// No effect: a node that is named is asked, hidden or not
    #[arg(long, hide = true)]
    include_hidden_nodes: bool,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Patience {
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// The node's full name; all nodes if not said
    #[arg(value_name = "NODE", value_parser = full_name, add = completions::nodes())]
    node: Option<String>,
    /// Only the parameters under these prefixes
    #[arg(long, value_name = "PREFIX", num_args = 1..)]
    param_prefixes: Vec<String>,
    /// Only the parameters whose names begin with what this regular expression matches
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    filter: Option<Regex>,
    /// Show the types as well
    #[arg(long)]
    param_type: bool,
    /// Ask hidden nodes too, whose names begin with an underscore
    #[arg(long, visible_alias = "all")]
    include_hidden_nodes: bool,
    /// Print JSON: an array of nodes with the names and types of their parameters
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// The node's full name; all nodes if not said
    #[arg(value_name = "NODE", add = completions::nodes())]
    first: String,
    /// The parameter
    #[arg(value_name = "PARAMETER")]
    second: Option<String>,
    /// Of all nodes ask hidden ones too, whose names begin with an underscore
    #[arg(long)]
    include_hidden_nodes: bool,
    #[command(flatten)]
    patience: Patience,
    /// Print the value alone
    #[arg(long)]
    hide_type: bool,
    /// Print JSON: the name, the type and the value
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Set {
    #[command(flatten)]
    of: Of,
    /// The parameter
    parameter: String,
    /// Its value, in YAML
    #[arg(allow_hyphen_values = true)]
    value: String,
    /// Print JSON: the name, whether it is set, and why not
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    of: Of,
    /// The parameter
    parameter: String,
    /// Print JSON: the name, whether it is deleted, and why not
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Describe {
    #[command(flatten)]
    of: Of,
    /// The parameters
    #[arg(value_name = "PARAMETER", required = true)]
    parameters: Vec<String>,
    /// Print JSON: an array of what is said of each
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Dump {
    #[command(flatten)]
    of: Of,
    /// Print JSON: an array of names, types and values
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Load {
    #[command(flatten)]
    of: Of,
    /// The file
    file: PathBuf,
    /// Leave out what the file says of nodes by wildcards, such as /**
    #[arg(long)]
    no_use_wildcard: bool,
    /// Print JSON: an array of names, whether each is set, and why not
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list(args, globals, out),
        Command::Get(args) => get(args, globals, out),
        Command::Set(args) => set(args, globals, out),
        Command::Delete(args) => delete(args, globals, out),
        Command::Describe(args) => describe(args, globals, out),
        Command::Dump(args) => dump(args, globals, out),
        Command::Load(args) => load(args, globals, out),
    }
}

fn list(args: &List, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    if let Some(node) = &args.node {
        let asked = Asked::open(globals, node, args.patience.timeout)?;
        let found = asked.list(args)?;
        return print_lists(args, &[(node.clone(), found)], out);
    }
    let session = Session::open_named(globals, |_| false)?;
    let asking = session.hidden_node()?;
    let mut lists = Vec::new();
    for node in nodes_with_parameters(&session.graph()) {
        if is_hidden(&node) && !args.include_hidden_nodes {
            continue;
        }
        let client = ParameterClient::new(&asking, &node);
        let asked = Asked { session: &session, client, timeout: args.patience.timeout };
        // One that does not answer keeps nobody from seeing the others.
        match asked.list(args) {
            Ok(found) => lists.push((node, found)),
            Err(error) => output::warning(format_args!("{error:#}; {node} is left out")),
        }
    }
    print_lists(args, &lists, out)
}

/// The nodes that answer which parameters they have.
fn nodes_with_parameters(graph: &Graph) -> BTreeSet<String> {
    let servers = graph.services.iter().filter(|it| it.kind == EndpointKind::Server);
    let listing = servers.filter(|it| it.topic == format!("{}/list_parameters", it.node));
    listing.map(|it| it.node.clone()).collect()
}

fn print_lists(
    args: &List,
    lists: &[(String, Vec<(String, ParameterType)>)],
    out: &mut Output,
) -> anyhow::Result<()> {
    if args.json {
        let lists = lists.iter().map(|(node, parameters)| {
            let parameters = parameters.iter();
            let parameters =
                parameters.map(|(name, ty)| json!({ "name": name, "type": words(*ty) }));
            json!({ "node": node, "parameters": parameters.collect::<Vec<_>>() })
        });
        return Ok(out.lines(serde_json::to_string_pretty(&lists.collect::<Vec<_>>())?)?);
    }
    for (node, parameters) in lists {
        // A node of which nothing is asked for is left out, as `ros2` does.
        if args.node.is_none() && !parameters.is_empty() {
            out.line(format_args!("{node}:"))?;
        }
        for (name, ty) in parameters {
            match args.param_type {
                true => out.line(format_args!("  {name} (type: {})", words(*ty)))?,
                false => out.line(format_args!("  {name}"))?,
            }
        }
    }
    Ok(())
}

fn get(args: &Get, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let Some(name) = args.second.as_deref() else { return get_of_all(args, globals, out) };
    let node = full_name(&args.first).map_err(|why| Usage(format!("{:?}: {why}", args.first)))?;
    let asked = Asked::open(globals, &node, args.patience.timeout)?;
    let values = asked.told(asked.client.get(&[name], asked.timeout))?;
    let value = values.into_iter().next().unwrap_or_default();
    if args.json {
        return Ok(out.lines(serde_json::to_string_pretty(&as_json(name, &value))?)?);
    }
    Ok(out.lines(shown(args, &value))?)
}

/// The value of a parameter of each node that has it.
fn get_of_all(args: &Get, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let name = args.first.as_str();
    let session = Session::open_named(globals, |_| false)?;
    let asking = session.hidden_node()?;
    let mut found = Vec::new();
    for node in nodes_with_parameters(&session.graph()) {
        if is_hidden(&node) && !args.include_hidden_nodes {
            continue;
        }
        let client = ParameterClient::new(&asking, &node);
        let asked = Asked { session: &session, client, timeout: args.patience.timeout };
        let value = || {
            if !asked
                .told(asked.client.list(&[], 0, asked.timeout))?
                .names
                .iter()
                .any(|it| it == name)
            {
                return Ok(None);
            }
            let values = asked.told(asked.client.get(&[name], asked.timeout))?;
            anyhow::Ok(values.into_iter().next())
        };
        match value() {
            Ok(value) => found.extend(value.map(|it| (node, it))),
            // One that does not answer keeps nobody from seeing the others.
            Err(error) => output::warning(format_args!("{error:#}; {node} is left out")),
        }
    }
    if found.is_empty() {
        anyhow::bail!("no node has a parameter '{name}'; allowed: [NODE] PARAMETER");
    }
    if args.json {
        let found = found.iter().map(|(node, value)| {
            let mut json = as_json(name, value);
            json["node"] = node.as_str().into();
            json
        });
        return Ok(out.lines(serde_json::to_string_pretty(&found.collect::<Vec<_>>())?)?);
    }
    for (node, value) in found {
        out.line(format_args!("{node}:"))?;
        out.lines(format_args!("  {}", shown(args, &value)))?;
    }
    Ok(())
}

/// A value in the words of `ros2`.
fn shown(args: &Get, value: &ParameterValue) -> String {
    match (value, args.hide_type) {
        (ParameterValue::NotSet, false) => "Parameter not set.".to_owned(),
        (value, true) => repr(value),
        (value, false) => format!("{} {}", label(value), repr(value)),
    }
}

fn expression(text: &str) -> Result<Regex, String> {
    // As Python's `match`, which is bound to the beginning and not to the end.
    Regex::new(&format!("^(?:{text})")).map_err(|error| error.to_string())
}

/// Sets the parameter to nothing, which is how ROS 2 deletes one.
fn delete(args: &Delete, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let asked = Asked::open(globals, &args.of.node, args.of.patience.timeout)?;
    let parameter = Parameter { name: args.parameter.clone(), value: ParameterValue::NotSet };
    let results = asked.told(asked.client.set(vec![parameter], asked.timeout))?;
    let result = results.into_iter().next().unwrap_or(Ok(()));
    if args.json {
        out.lines(serde_json::to_string_pretty(&outcome(&args.parameter, &result))?)?;
        return result.map_err(|_| Told(1).into());
    }
    match result {
        Ok(()) => Ok(out.line("Deleted parameter successfully")?),
        Err(reason) => anyhow::bail!("Deleting parameter failed: {reason}"),
    }
}

fn set(args: &Set, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let value = parse_command_value(&args.value)
        .map_err(|error| Usage(format!("{:?} is no value: {error}", args.value)))?;
    let asked = Asked::open(globals, &args.of.node, args.of.patience.timeout)?;
    let mut parameters = vec![Parameter { name: args.parameter.clone(), value }];
    fit_empty_arrays(&asked, &mut parameters);
    let results = asked.told(asked.client.set(parameters, asked.timeout))?;
    let result = results.into_iter().next().unwrap_or(Ok(()));
    if args.json {
        out.lines(serde_json::to_string_pretty(&outcome(&args.parameter, &result))?)?;
        return result.map_err(|_| Told(1).into());
    }
    match result {
        Ok(()) => Ok(out.line("Set parameter successful")?),
        Err(reason) => anyhow::bail!("Setting parameter failed: {reason}"),
    }
}

fn describe(args: &Describe, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let asked = Asked::open(globals, &args.of.node, args.of.patience.timeout)?;
    let names: Vec<&str> = args.parameters.iter().map(String::as_str).collect();
    let described = asked.told(asked.client.describe(&names, asked.timeout))?;
    if args.json {
        let described: Vec<Json> = described.iter().map(described_json).collect();
        return Ok(out.lines(serde_json::to_string_pretty(&described)?)?);
    }
    described.iter().try_for_each(|it| print_described(it, out))
}

fn print_described(described: &DescribedParameter, out: &mut Output) -> anyhow::Result<()> {
    let DescribedParameter { name, ty, descriptor } = described;
    out.line(format_args!("Parameter name: {name}"))?;
    out.line(format_args!("  Type: {}", words(*ty)))?;
    if !descriptor.description.is_empty() {
        out.lines(format_args!("  Description: {}", descriptor.description))?;
    }
    out.line("  Constraints:")?;
    if descriptor.read_only {
        out.line("    Read only: true")?;
    }
    if let Some(range) = descriptor.range {
        let (from, to, step) = match range {
            ParameterRange::Integer { from, to, step } => {
                (from.to_string(), to.to_string(), (step != 0).then(|| step.to_string()))
            }
            ParameterRange::FloatingPoint { from, to, step } => {
                (python::float(from), python::float(to), (step != 0.0).then(|| python::float(step)))
            }
        };
        out.line(format_args!("    Min value: {from}"))?;
        out.line(format_args!("    Max value: {to}"))?;
        if let Some(step) = step {
            out.line(format_args!("    Step: {step}"))?;
        }
    }
    if !descriptor.additional_constraints.is_empty() {
        out.line(format_args!(
            "    Additional constraints: {}",
            descriptor.additional_constraints
        ))?;
    }
    Ok(())
}

fn dump(args: &Dump, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let asked = Asked::open(globals, &args.of.node, args.of.patience.timeout)?;
    let names = asked.told(asked.client.list(&[], 0, asked.timeout))?.names;
    let names_said: Vec<&str> = names.iter().map(String::as_str).collect();
    let values = asked.told(asked.client.get(&names_said, asked.timeout))?;
    let parameters = names.iter().zip(values);
    if args.json {
        let parameters: Vec<Json> = parameters.map(|(name, value)| as_json(name, &value)).collect();
        return Ok(out.lines(serde_json::to_string_pretty(&parameters)?)?);
    }
    let parameters: Vec<Parameter> =
        parameters.map(|(name, value)| Parameter { name: name.clone(), value }).collect();
    let text = to_yaml(&args.of.node, &parameters);
    Ok(out.lines(text.trim_end())?)
}

fn load(args: &Load, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let Load { of, file: path, no_use_wildcard, json } = args;
    let file = ParameterFile::read(path).map_err(|error| Usage(error.to_string()))?;
    let mut parameters = match no_use_wildcard {
        true => file.for_node_by_name(&of.node),
        false => file.for_node(&of.node),
    };
    if parameters.is_empty() {
        return Err(Usage(format!("{} has no parameters for {}", path.display(), of.node)).into());
    }
    let asked = Asked::open(globals, &of.node, of.patience.timeout)?;
    let names: Vec<String> = parameters.iter().map(|it| it.name.clone()).collect();
    fit_empty_arrays(&asked, &mut parameters);
    let results = asked.told(asked.client.set(parameters, asked.timeout))?;
    let is_good = results.iter().all(Result::is_ok);
    if *json {
        let results = names.iter().zip(&results);
        let results: Vec<Json> = results.map(|(name, result)| outcome(name, result)).collect();
        out.lines(serde_json::to_string_pretty(&results)?)?;
    } else {
        for (name, result) in names.iter().zip(&results) {
            match result {
                Ok(()) => out.line(format_args!("Set parameter {name} successful"))?,
                Err(reason) => output::note(format_args!("Set parameter {name} failed: {reason}")),
            }
        }
    }
    if is_good { Ok(()) } else { Err(Told(1).into()) }
}

/// Gives each `[]` the type that its parameter has. Where the node does not say, it refuses the value itself.
fn fit_empty_arrays<S>(asked: &Asked<S>, parameters: &mut [Parameter]) {
    for Parameter { name, value } in parameters {
        if *value == ParameterValue::UNTYPED_EMPTY {
            let types = asked.client.types(&[name.as_str()], asked.timeout).unwrap_or_default();
            *value = std::mem::take(value).fitted(types.first().copied().unwrap_or_default());
        }
    }
}

/// A node whose parameters are asked for.
struct Asked<S> {
    session: S,
    client: ParameterClient,
    timeout: Duration,
}

impl Asked<Session> {
    /// Meets the node. Ends the command if it is not there.
    fn open(globals: &Globals, node: &str, timeout: Duration) -> anyhow::Result<Self> {
        let session = Session::open_named(globals, |graph| has_node(graph, node))?;
        if !has_node(&session.graph(), node) {
            anyhow::bail!("Node not found: '{node}'; `tsuji node list` lists those there are");
        }
        let asking: Node = session.hidden_node()?;
        Ok(Self { session, client: ParameterClient::new(&asking, node), timeout })
    }
}

impl<S: std::borrow::Borrow<Session>> Asked<S> {
    /// The answer, or what the user can know of why there is none.
    fn told<T>(&self, answer: tsuji::Result<T>) -> anyhow::Result<T> {
        let node = self.client.node();
        answer.map_err(|error| {
            let is_served = || nodes_with_parameters(&self.session.borrow().graph()).contains(node);
            if error.kind() == ErrorKind::NoServer && !is_served() {
                return anyhow::anyhow!(
                    "'{node}' has no parameter services; `tsuji node info {node}` shows what it has"
                );
            }
            error.into()
        })
    }

    /// The names under the prefixes that are asked for, with their types where they are shown.
    fn list(&self, args: &List) -> anyhow::Result<Vec<(String, ParameterType)>> {
        let prefixes: Vec<&str> = args.param_prefixes.iter().map(String::as_str).collect();
        let names = self.told(self.client.list(&prefixes, 0, self.timeout))?.names;
        let is_wanted = |it: &String| args.filter.as_ref().is_none_or(|regex| regex.is_match(it));
        let names: BTreeSet<String> = names.into_iter().filter(is_wanted).collect();
        let said: Vec<&str> = names.iter().map(String::as_str).collect();
        let types = match args.param_type || args.json {
            true => self.told(self.client.types(&said, self.timeout))?,
            false => vec![ParameterType::NotSet; names.len()],
        };
        Ok(names.into_iter().zip(types).collect())
    }
}

/// A type in the words of `ros2`.
fn words(ty: ParameterType) -> &'static str {
    match ty {
        ParameterType::NotSet => "not set",
        ParameterType::Bool => "boolean",
        ParameterType::Integer => "integer",
        ParameterType::Double => "double",
        ParameterType::String => "string",
        ParameterType::ByteArray => "byte array",
        ParameterType::BoolArray => "boolean array",
        ParameterType::IntegerArray => "integer array",
        ParameterType::DoubleArray => "double array",
        ParameterType::StringArray => "string array",
    }
}

/// What `ros2 param get` writes before a value.
fn label(value: &ParameterValue) -> &'static str {
    match value {
        ParameterValue::NotSet => "Parameter not set.",
        ParameterValue::Bool(_) => "Boolean value is:",
        ParameterValue::Integer(_) => "Integer value is:",
        ParameterValue::Double(_) => "Double value is:",
        ParameterValue::String(_) => "String value is:",
        ParameterValue::ByteArray(_) => "Byte values are:",
        ParameterValue::BoolArray(_) => "Boolean values are:",
        ParameterValue::IntegerArray(_) => "Integer values are:",
        ParameterValue::DoubleArray(_) => "Double values are:",
        ParameterValue::StringArray(_) => "String values are:",
    }
}

/// A value as `ros2 param get` prints it. A text stands without quotes.
fn repr(value: &ParameterValue) -> String {
    fn list<T: Clone>(items: &[T], value: impl Fn(T) -> Value) -> String {
        let items = items.iter().map(|it| python::scalar_repr(&value(it.clone()), true));
        format!("[{}]", items.collect::<Vec<_>>().join(", "))
    }
    match value {
        ParameterValue::NotSet => "None".to_owned(),
        ParameterValue::Bool(value) => python::scalar_repr(&Value::Bool(*value), false),
        ParameterValue::Integer(value) => value.to_string(),
        ParameterValue::Double(value) => python::float(*value),
        ParameterValue::String(value) => value.clone(),
        ParameterValue::ByteArray(values) => list(values, Value::U8),
        ParameterValue::BoolArray(values) => list(values, Value::Bool),
        // Python's arrays, which are no lists.
        ParameterValue::IntegerArray(values) => format!("array('q', {})", list(values, Value::I64)),
        ParameterValue::DoubleArray(values) => format!("array('d', {})", list(values, Value::F64)),
        ParameterValue::StringArray(values) => list(values, Value::Text),
    }
}

fn as_json(name: &str, value: &ParameterValue) -> Json {
    let ty = words(value.ty());
    let value = match value {
        ParameterValue::NotSet => Json::Null,
        ParameterValue::Bool(value) => json!(value),
        ParameterValue::Integer(value) => json!(value),
        ParameterValue::Double(value) => json!(value),
        ParameterValue::String(value) => json!(value),
        ParameterValue::ByteArray(values) => json!(values),
        ParameterValue::BoolArray(values) => json!(values),
        ParameterValue::IntegerArray(values) => json!(values),
        ParameterValue::DoubleArray(values) => json!(values),
        ParameterValue::StringArray(values) => json!(values),
    };
    json!({ "name": name, "type": ty, "value": value })
}

fn described_json(described: &DescribedParameter) -> Json {
    let DescribedParameter { name, ty, descriptor } = described;
    let range = descriptor.range.map(|range| match range {
        ParameterRange::Integer { from, to, step } => {
            json!({ "from": from, "to": to, "step": step })
        }
        ParameterRange::FloatingPoint { from, to, step } => {
            json!({ "from": from, "to": to, "step": step })
        }
    });
    json!({
        "name": name,
        "type": words(*ty),
        "description": descriptor.description,
        "additional_constraints": descriptor.additional_constraints,
        "read_only": descriptor.read_only,
        "dynamic_typing": descriptor.dynamic_typing,
        "range": range,
    })
}

fn outcome(name: &str, result: &Result<(), String>) -> Json {
    json!({ "name": name, "successful": result.is_ok(), "reason": result.as_ref().err() })
}
