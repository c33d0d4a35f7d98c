//! `tsuji ros1 param`: the parameters that a master of ROS 1 keeps.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::Value as Json;
use tsuji_ros1::uri::{MASTER_DEFAULT, Uri};
use tsuji_ros1::xmlrpc::{Call, Value};

use super::{delivery, environment};
use crate::failure::Usage;
use crate::output::Output;

/// How long a master has to take a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the names of the parameters
    #[command(after_help = EXAMPLES)]
    List(List),
    /// Print the value of a parameter, or of all below a name
    #[command(after_help = EXAMPLES)]
    Get(Get),
}

const EXAMPLES: &str = "\
They are those that rosparam reads and writes, at the master of ROS_MASTER_URI.

Examples:
  tsuji ros1 param list
  tsuji ros1 param get /robot_description
  tsuji ros1 param get /arm --json           # all below it";

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Print them as a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// The name of the parameter
    #[arg(value_name = "NAME")]
    name: String,
    /// Print the value as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Command, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::List(List { json }) => {
            let names = ask("getParamNames", Vec::new())?;
            let names = names.as_array().unwrap_or_default().iter().filter_map(Value::as_str);
            let mut names: Vec<&str> = names.collect();
            names.sort_unstable();
            if *json {
                return Ok(out.line(Json::from(names))?);
            }
            names.into_iter().try_for_each(|name| out.line(name)).map_err(Into::into)
        }
        Command::Get(Get { name, json }) => {
            let value = ask("getParam", vec![Value::from(name.as_str())])?;
            match value {
                Value::String(text) if !json => Ok(out.line(text)?),
                value => Ok(out.line(to_json(&value))?),
            }
        }
    }
}

fn ask(method: &str, params: Vec<Value>) -> anyhow::Result<Value> {
    let said = environment("ROS_MASTER_URI");
    let said = said.as_deref().unwrap_or(MASTER_DEFAULT);
    let uri: Uri = said.parse().map_err(|error| {
        Usage(format!("ROS_MASTER_URI={said:?}: {error}; allowed: http://HOST:PORT"))
    })?;
    let params = [vec![Value::from("/tsuji")], params].concat();
    let reply = delivery::ask(&uri, &Call::new(method, params), CONNECT_WITHIN);
    let reply = reply.with_context(|| {
        format!("the master at {said} does not answer; `tsuji ros1 master` starts one")
    })?;
    match reply.ros() {
        Ok(value) => Ok(value),
        Err(why) => bail!("the master at {said} says: {why}"),
    }
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Int(it) => (*it).into(),
        Value::Bool(it) => (*it).into(),
        Value::Double(it) => (*it).into(),
        Value::String(it) | Value::DateTime(it) => it.as_str().into(),
        Value::Base64(it) => it.as_slice().into(),
        Value::Array(it) => it.iter().map(to_json).collect(),
        Value::Struct(it) => it.iter().map(|(name, it)| (name.clone(), to_json(it))).collect(),
        Value::Nil => Json::Null,
    }
}
