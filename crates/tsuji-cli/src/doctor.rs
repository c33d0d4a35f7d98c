//! `tsuji doctor`: what this machine offers, what is in the way, and what mends it.

use std::collections::BTreeMap;

use clap::ArgAction;
use serde_json::{Value as Json, json};
use tsuji::{Context, Graph, ProcessInfo, TransportReport};
use tsuji_core::{Interop, Policy, RtpsEngine};

use crate::failure::{Told, Usage};
use crate::figures;
use crate::output::{Colour, Output, Paint};
use crate::policy;
use crate::record::refusal;
use crate::session::{self, Globals, Settled};
use crate::table::wrapped;

mod environment;
mod folder;
mod machine;
mod network;

pub(crate) const EXAMPLES: &str = "\
Each line says what was found; under what should be mended stands the command that mends it.
Exit code 1 if something is broken, so that tsuji does not work; warnings do not count.

Examples:
  tsuji doctor
  tsuji doctor --json | jq '.[] | select(.state == \"broken\")'";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON: an array of findings
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    others: Others,
}

/// The flags of `ros2 doctor`, which have no place here. Its flags of two letters are read as two of one.
#[derive(Debug, clap::Args)]
struct Others {
    /// Not supported
    #[arg(short = 'r', long, hide = true, action = ArgAction::Count)]
    report: u8,
    /// Not supported
    #[arg(short = 'f', long, hide = true, action = ArgAction::Count)]
    report_failed: u8,
    /// Not supported
    #[arg(short = 'i', short_alias = 'w', long, hide = true, action = ArgAction::Count)]
    include_warnings: u8,
    /// Not supported
    #[arg(short = 'e', short_alias = 'p', long, hide = true, action = ArgAction::Count)]
    exclude_packages: u8,
    /// Not supported
    #[arg(hide = true, trailing_var_arg = true)]
    words: Vec<String>,
}

impl Others {
    /// Refuses what is not there, with what takes its place.
    fn check(&self) -> anyhow::Result<()> {
        let refused = [
            (
                self.report_failed != 0,
                "--report-failed: under what should be mended stands what mends it, without a flag",
            ),
            (
                self.report != 0,
                "--report: all that was found is told without a flag; --json tells it to programs",
            ),
            (
                self.include_warnings != 0,
                "--include-warnings: warnings are always told; exit code 1 stands for what is broken alone",
            ),
            (
                self.exclude_packages != 0,
                "--exclude-packages: versions of packages are not looked at, so that none is to be left out",
            ),
            (
                self.words.first().is_some_and(|it| it == "hello"),
                "doctor hello: `tsuji doctor` tells who is met; `tsuji multicast receive` and `tsuji multicast send` try \
                 whether datagrams come through",
            ),
        ];
        if let Some((_, text)) = refused.into_iter().find(|(is_given, _)| *is_given) {
            return Err(refusal(text));
        }
        match self.words.first() {
            Some(word) => Err(Usage(format!("doctor takes flags alone, and not {word:?}")).into()),
            None => Ok(()),
        }
    }
}

/// Characters of the word for a state.
const STATE_WIDTH: usize = 7;

/// Characters that a line of text has at least, however narrow the terminal.
const TEXT_WIDTH_MIN: usize = 30;

/// A transport that accepts so much has no limit of its own.
const NO_LIMIT_BYTES: u64 = 1 << 40;

/// One thing that was looked at.
#[derive(Debug)]
struct Finding {
    area: &'static str,
    what: String,
    state: State,
    /// What was found.
    found: String,
    /// A command that mends it, or what to do.
    mend: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    /// Good to know.
    Note,
    /// Works, but less well than it could, or otherwise than one may think.
    Warning,
    /// Does not work.
    Broken,
}

impl Finding {
    fn new(
        area: &'static str,
        what: impl Into<String>,
        state: State,
        found: impl Into<String>,
    ) -> Self {
        Self { area, what: what.into(), state, found: found.into(), mend: None }
    }

    fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    args.others.check()?;
    let findings = examine(globals);
    if args.json {
        let json: Vec<Json> = findings.iter().map(Finding::json).collect();
        out.lines(serde_json::to_string_pretty(&json)?)?;
    } else {
        for line in lines(&findings, out.columns(), out.paint) {
            out.line(line)?;
        }
    }
    match findings.iter().any(|it| it.state == State::Broken) {
        true => Err(Told(1).into()),
        false => Ok(()),
    }
}

fn examine(globals: &Globals) -> Vec<Finding> {
    let (policy, in_force) = policy_in_force(globals);
    // Before anything joins, since whoever joins cleans up.
    let folder = folder::examine();
    let joined = globals
        .context(Some(policy.clone()))
        .and_then(|it| session::settle(&it).map(|settled| (it, settled)));
    let (reports, met) = match &joined {
        Ok((context, settled)) => (context.transports(), peers(context, settled)),
        Err(error) => {
            let finding = Finding::new("peers", "join", State::Broken, error.to_string());
            (Vec::new(), vec![finding.mend("mend what is broken above or below, then try again")])
        }
    };
    let domain = joined.as_ref().ok().map(|(context, _)| context.domain());
    let interop = joined.as_ref().ok().map(|(context, _)| context.interop());
    let engine = joined.as_ref().ok().map(|(context, _)| context.rtps_engine());
    let speaks_rtps = interop.is_some_and(|it| it.contains(Interop::RTPS));
    let parts = [
        vec![in_force],
        machine::examine(&policy, &reports),
        folder,
        transports(&reports, engine.unwrap_or(RtpsEngine::CycloneDds)),
        met,
        network::examine(domain, speaks_rtps),
        environment::examine(interop, engine),
    ];
    parts.into_iter().flatten().collect()
}

fn policy_in_force(globals: &Globals) -> (Policy, Finding) {
    let file = globals.policy_file();
    match policy::in_force(globals) {
        Ok(policy) => {
            let found = match &file {
                Some(file) => format!("{} over the built-in default", file.display()),
                None => "the built-in default".to_owned(),
            };
            (policy, Finding::new("policy", "in force", State::Good, found))
        }
        Err(_) => {
            let file = file.unwrap_or_default().display().to_string();
            let finding =
                Finding::new("policy", "in force", State::Broken, format!("{file} is refused"))
                    .mend(format!("tsuji policy check {file}"));
            (tsuji_policy::builtin_default(), finding)
        }
    }
}

fn transports(reports: &[TransportReport], engine: RtpsEngine) -> Vec<Finding> {
    let mut findings: Vec<Finding> = reports.iter().map(transport).collect();
    if !reports.is_empty() {
        let rmw = match engine {
            RtpsEngine::CycloneDds => "rmw_cyclonedds_cpp",
            RtpsEngine::FastDds => "rmw_fastrtps_cpp",
            RtpsEngine::Both => "rmw_cyclonedds_cpp, and on rmw_fastrtps_cpp of this host",
        };
        let meets =
            |it: &TransportReport| it.name == "zenoh" && it.peers.iter().any(|it| it == "zenoh");
        let text = match reports.iter().any(meets) {
            true => {
                format!("services with those on rmw_zenoh_cpp, and of the others only on {rmw}")
            }
            false => format!(
                "on rmw_zenoh_cpp they are not met (interop), and services only with those on {rmw}"
            ),
        };
        findings.push(Finding::new("transports", "foreign ROS 2 nodes", State::Note, text));
    }
    findings
}

fn transport(report: &TransportReport) -> Finding {
    if let Some(trouble) = &report.trouble {
        let is_missed = report.is_installed && !report.is_left_out;
        let state = if is_missed { State::Broken } else { State::Note };
        let finding = Finding::new("transports", &report.name, state, trouble);
        let install = || format!("install the package tsuji-transport-{}", report.name);
        return if report.is_installed { finding } else { finding.mend(install()) };
    }
    let mut offers = vec![report.scopes.join(" and ")];
    offers.extend(report.typed.then(|| "values by reference".to_owned()));
    offers.extend(report.loan.then(|| "loans".to_owned()));
    // Without a limit of its own there is nothing to say.
    if report.sample_bytes_max < NO_LIMIT_BYTES {
        offers.push(format!("samples up to {}", figures::bytes(report.sample_bytes_max)));
    }
    let mut found = offers.join(", ");
    if let Some(standing) = &report.activity {
        found.push_str(&format!("; {standing}"));
    }
    Finding::new("transports", &report.name, State::Good, found)
}

/// How many foreign nodes there are, by what they run on.
fn plain_nodes(graph: &Graph) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for vendor in graph.nodes.iter().filter_map(|it| it.vendor.as_deref()) {
        *counts.entry(vendor).or_default() += 1;
    }
    if counts.is_empty() {
        return "none found by RTPS".to_owned();
    }
    let counts: Vec<String> =
        counts.into_iter().map(|(vendor, count)| format!("{count} on {vendor}")).collect();
    counts.join(", ")
}

fn peers(context: &Context, settled: &Settled) -> Vec<Finding> {
    let found = match settled.met {
        0 => "nobody else in this domain".to_owned(),
        1 => "1 other process met".to_owned(),
        met => format!("{met} other processes met"),
    };
    let mut findings =
        vec![Finding::new("peers", format!("domain {}", context.domain()), State::Good, found)];
    if context.interop() != Interop::NONE {
        let nameless = context.wait_for_names(session::NAMES_MAX).unwrap_or_default();
        let found = plain_nodes(&context.graph());
        findings.push(Finding::new("peers", "foreign ROS 2 nodes", State::Good, found));
        for ProcessInfo { program, pid, .. } in nameless {
            let text = format!("{program} (pid {pid}) has not told its nodes");
            findings.push(Finding::new("peers", "foreign ROS 2 nodes", State::Note, text));
        }
    }
    for ProcessInfo { program, pid, .. } in &settled.silent {
        let text = format!("{program} (pid {pid}): stopped, or very slow");
        findings.push(
            Finding::new("peers", "no answer", State::Warning, text)
                .mend(format!("kill -CONT {pid}")),
        );
    }
    for unreachable_peer in context.unreachable_peers() {
        let text = format!("{}: {}", unreachable_peer.path, unreachable_peer.reason);
        findings.push(Finding::new("peers", "not met", State::Warning, text).mend(
            "end that process, or run it with the same tsuji and as the same user; TSUJI_RUNTIME_DIR keeps systems apart",
        ));
    }
    findings
}

fn lines(findings: &[Finding], columns: Option<usize>, paint: Paint) -> Vec<String> {
    let width = findings.iter().map(|it| it.what.chars().count()).max().unwrap_or(0);
    let indent = 2 + STATE_WIDTH + 2 + width + 2;
    let room =
        columns.map_or(usize::MAX, |columns| columns.saturating_sub(indent).max(TEXT_WIDTH_MIN));
    let mut lines = Vec::new();
    let mut area = "";
    for finding in findings {
        if finding.area != area {
            area = finding.area;
            lines.push(paint.text(Colour::Strong, area));
        }
        let (word, colour) = finding.state.word();
        let word = paint.text(colour, format_args!("{word:<STATE_WIDTH$}"));
        for (at, text) in finding.found.lines().flat_map(|it| wrapped(it, room)).enumerate() {
            lines.push(match at {
                0 => format!("  {word}  {:width$}  {text}", finding.what),
                _ => format!("{:indent$}{text}", ""),
            });
        }
        if let Some(mend) = &finding.mend {
            // In one line, so that it can be copied whole.
            lines.push(format!("{:indent$}{} {mend}", "", paint.text(Colour::Strong, "mend:")));
        }
    }
    let broken = findings.iter().filter(|it| it.state == State::Broken).count();
    let warnings = findings.iter().filter(|it| it.state == State::Warning).count();
    lines.push(match (broken, warnings) {
        (0, 0) => paint.text(Colour::Good, "All is well."),
        (0, _) => {
            paint.text(Colour::Warning, format_args!("Nothing is broken; warnings: {warnings}."))
        }
        _ => paint.text(Colour::Error, format_args!("Broken: {broken}, warnings: {warnings}.")),
    });
    lines
}

impl State {
    fn word(self) -> (&'static str, Colour) {
        match self {
            Self::Good => ("ok", Colour::Good),
            Self::Note => ("note", Colour::Dim),
            Self::Warning => ("warning", Colour::Warning),
            Self::Broken => ("broken", Colour::Error),
        }
    }
}

impl Finding {
    fn json(&self) -> Json {
        json!({
            "area": self.area,
            "what": self.what,
            "state": self.state.word().0,
            "found": self.found,
            "mend": self.mend,
        })
    }
}
