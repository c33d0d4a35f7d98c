//! `tsuji route`: the transport of a topic, set while its samples flow.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};
use tsuji::{ProcessInfo, RouteReport, RouteSetting, RouteState};

use crate::completions;
use crate::failure::Told;
use crate::figures::count;
use crate::output::{Colour, Output};
use crate::routes::{self, ANSWER, history};
use crate::session::{Globals, LOOK_AGAIN, Session};
use crate::table::{Cell, Column, Table, wrapped};
use crate::topic::full_name;

mod replay;

/// How long the flows have to come to their transports before they are shown as they are.
const SETTLE: Duration = Duration::from_secs(3);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Let the flows of a topic take a transport, where it can carry them
    #[command(after_help = "\
What is set stands before all rules of the policy, in all processes of this user on this host, and
in those that come while one of these lives. What the policy forbids stays forbidden, and where the
transport cannot carry a flow the policy decides. No sample is lost or repeated by it. Flows with
foreign ROS 2 nodes keep their transport.
Exit code 1 if no flow is meant, or if all processes refuse.

Examples:
  tsuji route set /camera/image cyclonedds
  tsuji route set /chatter shm --json")]
    Set(Set),
    /// Leave the flows of a topic to the policy again
    #[command(after_help = "Exit code 1 if no flow is meant, or if all processes refuse.\n\n\
        Examples:\n  tsuji route auto /camera/image\n  tsuji route auto /chatter --json")]
    Auto(Auto),
    /// Decide again what a process has decided of its flows, from the trace that it wrote
    #[command(after_help = "\
A process that is started with TSUJI_TRACE=FILE writes FILE.PID: all that its decisions about
flows depend on, and what it did. This decides it again, shows it, and says where it differs.
Exit code 1 if it differs anywhere.

Examples:
  TSUJI_TRACE=camera ros2 run image_tools cam2image
  tsuji route replay camera.4711")]
    Replay(replay::Args),
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The topic, or the service
    #[arg(value_name = "TOPIC", value_parser = full_name, add = completions::topics())]
    topic: String,
    /// The transport
    #[arg(value_name = "TRANSPORT", add = completions::transports())]
    transport: String,
    /// Print JSON: what each process did, and the flows with their transports
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Auto {
    /// The topic, or the service
    #[arg(value_name = "TOPIC", value_parser = full_name, add = completions::topics())]
    topic: String,
    /// Print JSON: what each process did, and the flows with their transports
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let (topic, transport, json) = match command {
        Command::Set(args) => (&args.topic, Some(args.transport.as_str()), args.json),
        Command::Auto(args) => (&args.topic, None, args.json),
        Command::Replay(args) => return replay::run(args, out),
    };
    let session = Session::open_named(globals, |_| false)?;
    let before = flows(&session, topic)?;
    let done = Done::all(&session, topic, transport)?;
    let (after, is_settled) = settled(&session, topic)?;
    if json {
        let text = serde_json::to_string_pretty(&done.json(topic, transport, &after, is_settled))?;
        out.lines(text)?;
    } else {
        done.show(topic, transport, out)?;
        show_flows(&before, &after, transport, out)?;
        if !is_settled {
            let text = format!(
                "Not settled after {} s; `tsuji routes --watch` shows how it goes on.",
                SETTLE.as_secs()
            );
            out.line(out.paint.text(Colour::Warning, text))?;
        }
    }
    match done.flows() {
        0 => Err(Told(1).into()),
        _ => Ok(()),
    }
}

/// What the other processes did.
struct Done {
    settings: Vec<RouteSetting>,
    silent: Vec<ProcessInfo>,
}

impl Done {
    fn all(session: &Session, topic: &str, transport: Option<&str>) -> anyhow::Result<Self> {
        let mut settings = session.context.set_route(topic, transport, ANSWER)?;
        let peers = session.context.peer_processes().into_iter().map(|it| it.process);
        let has_answered =
            |it: &ProcessInfo| settings.iter().any(|set| set.process.token == it.token);
        let silent = peers.filter(|it| !has_answered(it)).collect();
        // This command is a process too, and has no flow.
        if let Some(own) = settings.iter().position(|it| it.process.pid == std::process::id()) {
            settings.remove(own);
        }
        settings.sort_by(|a, b| {
            let key = |it: &RouteSetting| (it.process.program.clone(), it.process.pid);
            key(a).cmp(&key(b))
        });
        Ok(Self { settings, silent })
    }

    /// How many flows are meant.
    fn flows(&self) -> u32 {
        self.settings.iter().filter_map(|it| it.outcome.as_ref().ok()).sum()
    }

    fn show(&self, topic: &str, transport: Option<&str>, out: &mut Output) -> anyhow::Result<()> {
        let paint = out.paint;
        let obeyed = self.settings.iter().filter(|it| it.outcome.is_ok()).count();
        let topic = paint.text(Colour::Strong, topic);
        let what = match transport {
            Some(transport) => format!("{} is set", paint.text(Colour::Name, transport)),
            None => "left to the policy".to_owned(),
        };
        let text = match (obeyed, self.flows(), transport) {
            (0, _, _) if self.settings.is_empty() => {
                "nothing is set: no other process is here".to_owned()
            }
            (0, _, _) => "nothing is set: every process refuses".to_owned(),
            (_, 0, Some(_)) => format!(
                "no flow here; {what} in {}, for as long as one of them lives",
                count(obeyed, "process", "processes")
            ),
            (_, 0, None) => {
                format!("no flow here; {what} in {}", count(obeyed, "process", "processes"))
            }
            (_, flows, _) => format!("{what}, for {}", count(flows as usize, "flow", "flows")),
        };
        out.line(format_args!("{topic}: {text}"))?;
        let mut idle = 0;
        for RouteSetting { process, outcome } in &self.settings {
            let process = shown(process);
            match outcome {
                Ok(0) => idle += 1,
                Ok(flows) => {
                    let flows = count(*flows as usize, "flow", "flows");
                    out.line(format_args!("  {process}: decides {flows}"))?;
                }
                Err(reason) => {
                    let refused = paint.text(Colour::Error, "refused");
                    out.line(format_args!("  {process}: {refused}: {reason}"))?;
                }
            }
        }
        for process in &self.silent {
            let text = paint.text(Colour::Warning, "does not answer");
            out.line(format_args!("  {}: {text}", shown(process)))?;
        }
        if 0 < idle && 0 < self.flows() {
            let others = count(idle, "other process", "other processes");
            let text = match transport {
                Some(_) => format!("  {others}: no flow to decide; remembered"),
                None => format!("  {others}: no flow to decide"),
            };
            out.line(paint.text(Colour::Dim, text))?;
        }
        Ok(())
    }

    fn json(
        &self,
        topic: &str,
        transport: Option<&str>,
        flows: &[RouteReport],
        is_settled: bool,
    ) -> Json {
        let done = |it: &RouteSetting| {
            let (flows, refused) = (it.outcome.as_ref().ok(), it.outcome.as_ref().err());
            json!({ "process": it.process, "flows": flows, "refused": refused })
        };
        json!({
            "topic": topic,
            "transport": transport,
            "processes": self.settings.iter().map(done).collect::<Vec<_>>(),
            "silent": self.silent,
            "routes": flows,
            "settled": is_settled,
        })
    }
}

fn shown(process: &ProcessInfo) -> String {
    let ProcessInfo { pid, program, host, .. } = process;
    match host == &tsuji_platform::process::host_name() {
        true => format!("{program} {pid}"),
        false => format!("{program} {pid} on {host}"),
    }
}

fn flows(session: &Session, topic: &str) -> anyhow::Result<Vec<RouteReport>> {
    let mut routes = session.context.routes(ANSWER)?;
    routes.retain(|it| it.topic == topic);
    Ok(routes)
}

/// The flows of a topic once no transport is being changed, and whether that has come.
fn settled(session: &Session, topic: &str) -> anyhow::Result<(Vec<RouteReport>, bool)> {
    let end = Instant::now() + SETTLE;
    loop {
        let flows = flows(session, topic)?;
        if flows.iter().all(is_settled) {
            return Ok((flows, true));
        }
        if end <= Instant::now() || !session.context.is_ok() {
            return Ok((flows, false));
        }
        std::thread::sleep(LOOK_AGAIN / 5);
    }
}

fn is_settled(route: &RouteReport) -> bool {
    route.state != RouteState::Opening
        && route.handover_to.is_none()
        && route.changes.iter().all(|it| it.is_settled)
}

/// The transports as they are now, and how those that have changed came to it.
fn show_flows(
    before: &[RouteReport],
    after: &[RouteReport],
    transport: Option<&str>,
    out: &mut Output,
) -> anyhow::Result<()> {
    if after.is_empty() {
        return Ok(());
    }
    let key = |it: &RouteReport| (it.publisher.gid.clone(), it.subscription.gid.clone());
    let epochs: HashMap<_, u32> = before.iter().map(|it| (key(it), it.epoch)).collect();
    let hows = after.iter().map(|route| {
        let before = epochs.get(&key(route)).copied().unwrap_or(0);
        how(route, before, transport)
    });
    let hows: Vec<String> = hows.collect();
    let (width, paint) = (out.columns(), out.paint);
    let whole = flow_table(after, Some(&hows));
    let fits = width.is_none_or(|width| whole.natural_width() <= width);
    let table = if fits { whole } else { flow_table(after, None) };
    let mut lines = table.lines(width, paint).into_iter();
    out.line("")?;
    lines.by_ref().take(1).try_for_each(|titles| out.line(titles))?;
    for (line, how) in lines.zip(&hows) {
        out.line(line)?;
        if !fits {
            let room = width.unwrap_or(usize::MAX).saturating_sub(2);
            for part in wrapped(how, room) {
                out.line(format_args!("  {}", paint.text(Colour::Dim, part)))?;
            }
        }
    }
    Ok(())
}

fn flow_table(flows: &[RouteReport], hows: Option<&[String]>) -> Table {
    let mut columns =
        vec![Column::name("FROM", 12), Column::name("TO", 12), Column::whole("TRANSPORT")];
    columns.extend(hows.map(|_| Column::whole("HOW")));
    let mut table = Table::new(&columns);
    for (at, route) in flows.iter().enumerate() {
        let mut cells: Vec<Cell> = vec![
            routes::end(&route.publisher).into(),
            routes::end(&route.subscription).into(),
            routes::transport(route),
        ];
        cells.extend(hows.map(|hows| Cell::new(&hows[at], Colour::Dim)));
        table.row(cells);
    }
    table
}

/// How a flow came to its transport since its `before`th, or why it did not.
fn how(route: &RouteReport, before: u32, transport: Option<&str>) -> String {
    let is_plain = route.publisher.vendor.is_some() || route.subscription.vendor.is_some();
    if is_plain {
        return "a flow with a foreign node keeps its transport".to_owned();
    }
    if !is_settled(route) {
        return "is being changed".to_owned();
    }
    if let (Some(transport), Some(now)) = (transport, &route.transport)
        && now != transport
        && let Some((_, reason)) = route.rejected.iter().find(|(it, _)| it == transport)
    {
        return format!("not {transport}: {reason}");
    }
    match route.changes.last() {
        Some(change) if before < change.epoch => match &change.from {
            Some(from) => format!("from {from}: {}", history::told(change)),
            None => history::told(change),
        },
        _ => "as before".to_owned(),
    }
}
