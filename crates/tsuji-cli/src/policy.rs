//! `tsuji policy`: which transport carries which flow, and why.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};
use tsuji::KNOWN_TRANSPORTS;
use tsuji_core::{
    Choice, Interop, NoRoute, Peer, Policy, Reliability, Scope, Size, SizeOrigin, Traits,
    TransportId, names, select,
};
use tsuji_policy::{PolicyFile, Row, units};

use crate::completions;
use crate::failure::{Told, Usage};
use crate::figures::count;
use crate::offers;
use crate::output::{self, Colour, Output};
use crate::session::Globals;
use crate::table::{Cell, Column, Table};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tell everything that is wrong with a policy file
    #[command(
        after_help = "Each error names the line, the column, the offending word and what is allowed.\n\
        Exit code 1 if there is any.\n\nExample:\n  tsuji policy check robot.xml"
    )]
    Check(Check),
    /// Show the policy in force, and where each part of it comes from
    #[command(
        after_help = "Examples:\n  tsuji policy show\n  tsuji policy show --policy robot.xml\n  \
        tsuji policy show --xml > whole.xml"
    )]
    Show(Show),
    /// Say which transport a flow would take, and why each other one would not
    #[command(after_help = "Examples:\n  \
        tsuji policy explain --topic /camera/image --size 900KiB --scope local\n  \
        tsuji policy explain --topic /cmd_vel --size small --scope remote \\\n      --reliability best_effort\n  \
        tsuji policy explain --topic /scan --size 8000 --scope local \\\n      --peer cyclone --json")]
    Explain(Explain),
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The policy file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Print a policy file that says all of it by itself
    #[arg(long, conflicts_with = "json")]
    xml: bool,
    /// Print JSON: an array of rows
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The full name of the flow's topic
    #[arg(long, value_parser = topic, add = completions::topics())]
    topic: String,
    /// How large its samples are: small, large, or a number of bytes such as 921600 or 900KiB.
    /// Where it is left out, what the policy states for the topic counts
    #[arg(long, value_name = "N|small|large", value_parser = size)]
    size: Option<SizeWord>,
    /// How far the other end is: intra, local or remote
    #[arg(long, value_name = "SCOPE")]
    scope: Scope,
    /// What the matched QoS asks for
    #[arg(long, value_name = "reliable|best_effort", default_value_t = Reliability::Reliable)]
    reliability: Reliability,
    /// Who the other end is
    #[arg(long, value_name = "tsuji|cyclone|fast|zenoh|ros1|other", default_value_t = Peer::Tsuji)]
    peer: Peer,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
enum SizeWord {
    Class(Size),
    Bytes(u64),
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::Check(args) => check(args, out),
        Command::Show(args) => show(args, &in_force(globals)?, out),
        Command::Explain(args) => explain(args, in_force(globals)?, out),
    }
}

/// The policy that a program with these flags would run under.
pub(crate) fn in_force(globals: &Globals) -> anyhow::Result<Policy> {
    match globals.policy_file() {
        Some(file) => load(&file),
        None => Ok(tsuji_policy::builtin_default()),
    }
}

fn check(args: &Check, out: &mut Output) -> anyhow::Result<()> {
    let policy = load(&args.file)?;
    // What settings mean only the transports know; they say it when they are opened.
    offers::of_this_build(&policy)?;
    let parts = policy.parts();
    let file = args.file.display().to_string();
    let mine =
        |rules: &[tsuji_core::Rule]| rules.iter().filter(|rule| *rule.origin.file == *file).count();
    let robot =
        parts.robot.as_ref().map_or_else(String::new, |it| format!("robot {}, ", it.value.name()));
    let exports = match parts.exports.len() {
        0 => String::new(),
        exports => count(exports, "export", "exports") + ", ",
    };
    out.line(format_args!(
        "{file}: {} ({robot}{exports}{}, {}, {})",
        out.paint.text(Colour::Good, "good"),
        count(mine(&parts.rules), "rule", "rules"),
        count(mine(&parts.forbids), "forbid", "forbids"),
        count(parts.stated_sizes.len(), "stated size", "stated sizes"),
    ))?;
    for row in tsuji_policy::show(&policy) {
        if let Some(origin) = row.origin.as_ref().filter(|it| *it.file == *file)
            && has_no_effect(&row)
        {
            let Row { name, value, .. } = &row;
            out.line(format_args!("{origin}: {name}: {value}: {NO_EFFECT}"))?;
        }
    }
    Ok(())
}

fn show(args: &Show, policy: &Policy, out: &mut Output) -> anyhow::Result<()> {
    if args.xml {
        return Ok(out.lines(tsuji_policy::to_xml(policy).trim_end())?);
    }
    let rows = tsuji_policy::show(policy);
    if args.json {
        let rows: Vec<Json> = rows.iter().map(row_json).collect();
        return Ok(out.lines(serde_json::to_string_pretty(&rows)?)?);
    }
    let mut table = Table::new(&[
        Column::whole("KIND"),
        Column::sentence("NAME", 12),
        Column::sentence("FOR", 12),
        Column::sentence("VALUE", 16),
        Column::number("PRIORITY"),
        Column::name("FROM", 12),
    ]);
    for row in rows {
        let priority = row.priority.map_or(String::new(), |it| it.to_string());
        let from = match &row.origin {
            Some(origin) => Cell::new(origin.to_string(), Colour::Dim),
            None => Cell::new("nobody set it", Colour::Dim),
        };
        let value = match has_no_effect(&row) {
            true => Cell::new(format!("{} ({NO_EFFECT})", row.value), Colour::Dim),
            false => Cell::new(row.value, Colour::Name),
        };
        table.row(vec![
            row.kind.into(),
            row.name.into(),
            row.when.into(),
            value,
            priority.into(),
            from,
        ]);
    }
    for line in table.lines(out.columns(), out.paint) {
        out.line(line)?;
    }
    Ok(())
}

fn explain(args: &Explain, policy: Policy, out: &mut Output) -> anyhow::Result<()> {
    let traits = traits(args, &policy)?;
    let offers = offers::of_this_build(&policy)?;
    let decision = select(&traits, &policy, &args.topic, &offers);
    if args.json {
        let json = decision_json(&args.topic, &policy, &traits, &decision);
        return Ok(out.lines(serde_json::to_string_pretty(&json)?)?);
    }
    let paint = out.paint;
    out.line(format_args!(
        "{}: {}, {}, {}, peer {}",
        paint.text(Colour::Strong, &args.topic),
        size_text(&traits, &policy),
        traits.scope,
        traits.reliability,
        traits.peer
    ))?;
    let rejected = match &decision {
        Ok(choice) => {
            out.line(format_args!("transport: {}", paint.text(Colour::Name, &choice.transport)))?;
            out.line(format_args!("because:   {}", choice.because.basis))?;
            &choice.rejected
        }
        Err(no_route) => {
            out.line(format_args!(
                "transport: {}",
                paint.text(Colour::Error, "none can carry this flow")
            ))?;
            &no_route.rejected
        }
    };
    if !rejected.is_empty() {
        out.line("rejected:")?;
    }
    let width = rejected.iter().map(|(it, _)| it.as_str().len()).max().unwrap_or(0);
    for (transport, reason) in rejected {
        out.line(format_args!("  {transport:width$}  {reason}"))?;
    }
    Ok(())
}

/// Loads a file, and tells its errors itself.
fn load(file: &Path) -> anyhow::Result<Policy> {
    let name = file.display().to_string();
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => anyhow::bail!("cannot read the policy file {name}: {error}"),
    };
    let parsed = PolicyFile::parse(&name, &bytes, KNOWN_TRANSPORTS).and_then(|file| {
        file.warnings().iter().for_each(output::warning);
        file.resolve()
    });
    parsed.map_err(|errors| {
        output::note(&errors);
        let found = errors.errors.len() + errors.omitted;
        output::error(format_args!(
            "{name}: {}, the whole file is refused",
            count(found, "error", "errors")
        ));
        Told(1).into()
    })
}

fn traits(args: &Explain, policy: &Policy) -> anyhow::Result<Traits> {
    let stated = policy.stated_size(&args.topic);
    let class_of =
        |bytes| if bytes >= policy.size_line_bytes() { Size::Large } else { Size::Small };
    let (size, sample_bytes, size_origin) = match (args.size, stated) {
        (Some(SizeWord::Class(size)), _) => (size, None, SizeOrigin::Sent),
        (Some(SizeWord::Bytes(bytes)), _) => (class_of(bytes), Some(bytes), SizeOrigin::Sent),
        (None, Some(stated)) => {
            let bytes = stated.expected_bytes;
            let size = stated.size.or_else(|| bytes.map(class_of)).unwrap_or(Size::Small);
            (size, bytes, SizeOrigin::Stated)
        }
        (None, None) => {
            let text = format!(
                "the policy states no size for {}; give --size small, --size large or --size BYTES",
                args.topic
            );
            return Err(Usage(text).into());
        }
    };
    let Explain { scope, reliability, peer, .. } = *args;
    Ok(Traits { size, size_origin, sample_bytes, scope, reliability, peer })
}

fn size_text(traits: &Traits, policy: &Policy) -> String {
    let line = units::format_size(policy.size_line_bytes());
    let stated = match traits.size_origin {
        SizeOrigin::Stated => ", as the policy states",
        _ => "",
    };
    match traits.sample_bytes {
        Some(bytes) => format!("{} ({bytes} bytes, the line is {line}{stated})", traits.size),
        None => format!("{} (the line is {line}{stated})", traits.size),
    }
}

/// Whether this build does not do what a row says.
fn has_no_effect(row: &Row) -> bool {
    let asked = row.value.parse::<Interop>();
    row.kind == "set"
        && row.name == "interop"
        && asked.is_ok_and(|it| it.contains(Interop::ZENOH) || it.contains(Interop::ROS1))
}

const NO_EFFECT: &str = "no effect in this build";

fn row_json(row: &Row) -> Json {
    let from = row.origin.as_ref().map(|it| json!({ "file": &*it.file, "line": it.line }));
    json!({
        "kind": row.kind,
        "name": row.name,
        "for": row.when,
        "value": row.value,
        "priority": row.priority,
        "from": from,
        "no_effect_in_this_build": has_no_effect(row),
    })
}

fn decision_json(
    topic: &str,
    policy: &Policy,
    traits: &Traits,
    decision: &Result<Choice, NoRoute>,
) -> Json {
    let rejected = match decision {
        Ok(choice) => &choice.rejected,
        Err(no_route) => &no_route.rejected,
    };
    let pair = |(transport, reason): &(TransportId, tsuji_core::Reason)| json!({ "transport": transport.as_str(), "reason": reason.to_string() });
    json!({
        "topic": topic,
        "size": traits.size.to_string(),
        "sample_bytes": traits.sample_bytes,
        "size_line_bytes": policy.size_line_bytes(),
        "scope": traits.scope.to_string(),
        "reliability": traits.reliability.to_string(),
        "peer": traits.peer.to_string(),
        "transport": decision.as_ref().ok().map(|it| it.transport.as_str()),
        "because": decision.as_ref().ok().map(|it| it.because.basis.to_string()),
        "rejected": rejected.iter().map(pair).collect::<Vec<_>>(),
    })
}

fn topic(text: &str) -> Result<String, String> {
    names::validate_topic(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

fn size(text: &str) -> Result<SizeWord, String> {
    let class = text.parse().map(SizeWord::Class).ok();
    class
        .or_else(|| units::parse_size(text).map(SizeWord::Bytes))
        .ok_or_else(|| "allowed: small, large, or bytes such as 921600, 900KiB, 1MB".to_owned())
}
