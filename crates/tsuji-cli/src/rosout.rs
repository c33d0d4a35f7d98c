//! `tsuji log`.

use std::collections::HashMap;
use std::io::Write;

use serde_json::json;
use tsuji::{Context, Durability, Gid, History, MessageInfo, Qos, RawSample, RawType, Severity};
use tsuji_interfaces::rcl_interfaces::msg::Log;
use tsuji_msg::Message as _;

use crate::completions;
use crate::output::{self, Colour, Output, escaped};
use crate::session::{A_WHILE, Globals, Session};
use crate::topic::Listener;

pub(crate) const EXAMPLES: &str =
    "Examples:\n  tsuji log --level warn\n  tsuji log --node /robot/drive --json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print lines of this level and graver ones: debug, info, warn, error or fatal
    #[arg(long, value_name = "LEVEL", default_value = "debug")]
    level: Severity,
    /// Print the lines of this node alone; of several where it is said again. Lines of nodes that are gone are known by
    /// the beginning of their logger's name
    #[arg(long, value_name = "NODE", value_parser = crate::topic::full_name, add = completions::nodes())]
    node: Vec<String>,
    /// Print behind each line where in the program it comes from
    #[arg(long, conflicts_with = "json")]
    location: bool,
    /// Print each line as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Whether a logger is the node's, or below it: `robot.drive.wheels` of `/robot/drive`.
fn is_logger_of(logger: &str, node: &str) -> bool {
    let rest = logger.strip_prefix(&node.trim_start_matches('/').replace('/', "."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The nodes whose publishers were seen.
#[derive(Default)]
struct Nodes(HashMap<Gid, String>);

/// Publishers whose node is kept; when there are more, all are looked up again.
const PUBLISHERS_MAX: usize = 4096;

impl Nodes {
    /// Where the publisher is not seen, or has no node, nobody knows.
    fn of(&mut self, publisher: Gid, context: &Context) -> Option<&str> {
        let Self(known) = self;
        if !known.contains_key(&publisher) {
            let endpoints = context.graph().endpoints;
            let found = endpoints.into_iter().find(|it| it.gid == publisher)?;
            if PUBLISHERS_MAX <= known.len() {
                known.clear();
            }
            known.insert(publisher, found.node);
        }
        known.get(&publisher).map(String::as_str).filter(|it| !it.is_empty())
    }
}

/// As rcl offers it, so that the last lines of those who are there come first.
const QOS: Qos = Qos {
    history: History::KeepLast(1000),
    durability: Durability::TransientLocal,
    ..Qos::DEFAULT
};

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let of = RawType::new(Log::TYPE_NAME).hash(Log::TYPE_HASH);
    let mut listener = Listener::open(&session, "/rosout", of, QOS)?;
    let mut nodes = Nodes::default();
    while session.context.is_ok() {
        listener.wait(A_WHILE)?;
        while let Some(RawSample { bytes, info }) = listener.take() {
            match Log::deserialize_lossy(&bytes) {
                Ok(line) if is_asked_for(args, &line, &info, &mut nodes, &session.context) => {
                    print(args, &line, &info, out)?;
                }
                Ok(_) => (),
                Err(error) => {
                    output::warning(format_args!("a message on /rosout is no log: {error}"))
                }
            }
        }
        out.flush()?;
    }
    let counters = listener.counters();
    let lost = counters.displaced + counters.lost;
    if 0 < lost {
        output::warning(format_args!("not printed: {lost} lines that came too fast or were lost"));
    }
    Ok(())
}

fn is_asked_for(
    args: &Args,
    line: &Log,
    info: &MessageInfo,
    nodes: &mut Nodes,
    context: &Context,
) -> bool {
    if line.level < args.level as u8 {
        return false;
    }
    if args.node.is_empty() {
        return true;
    }
    match nodes.of(info.publisher, context) {
        Some(node) => args.node.iter().any(|it| it == node),
        None => args.node.iter().any(|it| is_logger_of(&line.name, it)),
    }
}

fn print(args: &Args, line: &Log, info: &MessageInfo, out: &mut Output) -> anyhow::Result<()> {
    let severity = Severity::from_number(line.level.into());
    let level = severity.map_or_else(|| line.level.to_string(), |it| it.to_string());
    if args.json {
        let line = json!({
            "stamp_ns": i64::from(line.stamp.sec) * 1_000_000_000 + i64::from(line.stamp.nanosec),
            "level": level,
            "name": line.name,
            "msg": line.msg,
            "file": line.file,
            "function": line.function,
            "line": line.line,
            "publisher": info.publisher.to_string(),
        });
        return Ok(out.line(line)?);
    }
    let stamp = format_args!("{}.{:09}", line.stamp.sec, line.stamp.nanosec);
    let (name, message) = (escaped(&line.name, ""), escaped(&line.msg, "\n\t"));
    let mut text = format!("[{level}] [{stamp}] [{name}]: {message}");
    if args.location {
        let (function, file) = (escaped(&line.function, ""), escaped(&line.file, ""));
        text += &format!(" ({function} at {file}:{})", line.line);
    }
    let colour = match severity {
        Some(Severity::Warn) => Colour::Warning,
        Some(Severity::Error | Severity::Fatal) => Colour::Error,
        _ => Colour::Plain,
    };
    Ok(out.lines(out.paint.text(colour, text))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_is_of_the_node_that_it_begins_with() {
        for (logger, expect) in [
            ("robot.drive", true),
            ("robot.drive.wheels", true),
            ("robot.drives", false),
            ("robot", false),
        ] {
            assert_eq!(is_logger_of(logger, "/robot/drive"), expect, "{logger}");
        }
    }
}
