//! `tsuji bag`: what is in a recording. `ros2` calls a recording a bag.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;
use tsuji_record::{RecordedTopic, Recording};

use crate::figures;
use crate::output::{Output, escaped};
use crate::play;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the topics of a recording, and what was lost as it was made
    #[command(
        after_help = "Examples:\n  tsuji bag info drive.mcap\n  tsuji bag info rosbag2_2026_01_31-12_00_00/ --json\n  \
        tsuji bag info --check drive.mcap"
    )]
    Info(InfoArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// An MCAP file, or a folder of rosbag2 with MCAP files in it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Read every message, and say what is damaged
    #[arg(long)]
    check: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &Command, out: &mut Output) -> anyhow::Result<()> {
    let Command::Info(args) = command;
    let mut recording = Recording::open(&args.file)?;
    if args.check {
        recording.check()?;
    }
    let summary = recording.summary();
    let seconds = summary.last_ns.saturating_sub(summary.first_ns) as f64 / 1e9;
    if args.json {
        let topics: Vec<_> = recording.topics().iter().map(topic_json).collect();
        let damages: Vec<String> = summary.damages.iter().map(ToString::to_string).collect();
        out.line(json!({
            "bytes": summary.bytes,
            "messages": summary.messages,
            "first_ns": summary.first_ns,
            "last_ns": summary.last_ns,
            "seconds": seconds,
            "topics": topics,
            "metadata": summary.metadata,
            "damages": damages,
            "damage_count": summary.damage_count,
        }))?;
        return play::tell_damages(summary);
    }
    out.line(format_args!(
        "{} messages of {} topics in {seconds:.1} s, {}",
        summary.messages,
        recording.topics().len(),
        figures::bytes(summary.bytes)
    ))?;
    for topic in recording.topics() {
        let RecordedTopic { name, type_name, messages, .. } = topic;
        let missing = missing(summary, name);
        let (name, type_name) = (escaped(name, ""), escaped(type_name, ""));
        out.line(format_args!("  {name}  {type_name}  {messages} messages{missing}"))?;
    }
    play::tell_damages(summary)
}

/// What the recorder counted of a topic and is not in the file.
fn missing(summary: &tsuji_record::Summary, topic: &str) -> String {
    let counts = summary.metadata.get("tsuji");
    let of = |what: &str| {
        let said = counts.and_then(|it| it.get(&format!("{topic} {what}")));
        said.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0)
    };
    let (lost, displaced) = (of("lost"), of("displaced"));
    if (lost, displaced) == (0, 0) {
        String::new()
    } else {
        format!(", {lost} lost, {displaced} displaced")
    }
}

fn topic_json(topic: &RecordedTopic) -> serde_json::Value {
    json!({
        "name": topic.name,
        "type": topic.type_name,
        "type_hash": topic.type_hash,
        "messages": topic.messages,
        "unplayable": topic.unplayable,
        "offered": topic.offered.iter().map(|it| json!({
            "reliability": it.reliability.to_string(),
            "durability": it.durability.to_string(),
            "history": it.history.to_string(),
        })).collect::<Vec<_>>(),
    })
}
