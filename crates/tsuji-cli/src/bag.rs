//! `tsuji bag`: recordings in the words of `ros2 bag`, and what is in one.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use serde_json::json;
use tsuji_platform::clock;
use tsuji_record::{RecordedTopic, Recording};

use crate::figures;
use crate::output::{Output, escaped};
use crate::play;
use crate::record::{self, Storage, Words, refusal};
use crate::session::Globals;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record topics to a folder, as `ros2 bag record` does
    #[command(name = "record", after_help = record::BAG_EXAMPLES)]
    Record(LettersOfRos2),
    /// Play a recording, as `ros2 bag play` does
    #[command(after_help = play::BAG_EXAMPLES)]
    Play(play::Args),
    /// Show what is in a recording, and what was lost as it was made
    #[command(
        after_help = "Examples:\n  tsuji bag info drive.mcap\n  tsuji bag info rosbag2_2026_01_31-12_00_00/ --json\n  \
        tsuji bag info --check drive.mcap"
    )]
    Info(InfoArgs),
    /// Not here
    #[command(hide = true)]
    Convert(Rest),
    /// Not here
    #[command(hide = true)]
    Reindex(Rest),
    /// Not here
    #[command(hide = true)]
    Burst(Rest),
    /// Not here
    #[command(hide = true)]
    Filter(Rest),
    /// Not here
    #[command(hide = true)]
    List(Rest),
}

/// The flags of `tsuji record`, with the letters of `ros2 bag record`.
#[derive(Debug)]
pub(crate) struct LettersOfRos2(record::Args);

impl clap::FromArgMatches for LettersOfRos2 {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        record::Args::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl clap::Args for LettersOfRos2 {
    fn augment_args(command: clap::Command) -> clap::Command {
        record::with_letters_of_ros2(record::Args::augment_args(command))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        record::with_letters_of_ros2(record::Args::augment_args_for_update(command))
    }
}

/// Whatever follows a word that is not here.
#[derive(Debug, clap::Args)]
pub(crate) struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// An MCAP file, or a folder of rosbag2 with MCAP files in it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Read every message, and say what is damaged
    #[arg(long)]
    check: bool,
    /// Print the names of the topics alone
    #[arg(short, long)]
    topic_name: bool,
    /// Read every message, and say how many bytes each topic has
    #[arg(short, long)]
    verbose: bool,
    /// In which order topics are shown
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: Storage,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Sort {
    #[default]
    Name,
    Type,
    Count,
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::Record(args) => record::run(&args.0, Words::Bag, globals, out),
        Command::Play(args) => play::run(args, globals, out),
        Command::Info(args) => info(args, out),
        Command::Convert(_) => Err(refusal(
            "bag convert: not here; `tsuji play` one into `tsuji record`, which packs and chooses topics, or `ros2 bag convert`",
        )),
        Command::Reindex(_) => Err(refusal(
            "bag reindex: not needed here; `tsuji play` and `tsuji bag info` read a folder's files one by one, without index too",
        )),
        Command::Burst(_) => Err(refusal(
            "bag burst: not here; `tsuji play --rate 1000` plays as fast as subscriptions take it, `tsuji play --start-paused` one \
             by one with the cursor to the right",
        )),
        Command::Filter(_) => Err(refusal(
            "bag filter: not here; `tsuji play --topics` into `tsuji record` keeps some topics",
        )),
        Command::List(_) => Err(refusal(
            "bag list: there are no plug-ins; recordings are of mcap, packed by none, zstd or lz4",
        )),
    }
}

fn info(args: &InfoArgs, out: &mut Output) -> anyhow::Result<()> {
    args.storage.check()?;
    let mut recording = Recording::open(&args.file)?;
    let mut bytes: HashMap<usize, u64> = HashMap::new();
    if args.verbose {
        for message in recording.messages(0) {
            let message = message?;
            *bytes.entry(message.topic).or_default() += message.data().len() as u64;
        }
    } else if args.check {
        recording.check()?;
    }
    let mut order: Vec<usize> = (0..recording.topics().len()).collect();
    let topics = recording.topics();
    match args.sort {
        Sort::Name => {}
        Sort::Type => order.sort_by(|a, b| topics[*a].type_name.cmp(&topics[*b].type_name)),
        Sort::Count => order.sort_by_key(|it| topics[*it].messages),
    }
    let shown = order.iter().map(|it| (&topics[*it], bytes.get(it).copied().unwrap_or(0)));
    let summary = recording.summary();
    if args.topic_name {
        for (topic, _) in shown {
            out.line(escaped(&topic.name, ""))?;
        }
        return play::tell_damages(summary);
    }
    let seconds = summary.last_ns.saturating_sub(summary.first_ns) as f64 / 1e9;
    if args.json {
        let damages: Vec<String> = summary.damages.iter().map(ToString::to_string).collect();
        let files = summary.files.iter().map(|it| it.display().to_string());
        let is_empty = summary.messages == 0;
        let time = |ns: u64| if is_empty { None } else { Some(date(ns)) };
        let topics = shown.map(|(topic, bytes)| {
            let mut json = topic_json(topic);
            if args.verbose {
                json["bytes"] = bytes.into();
            }
            json
        });
        out.line(json!({
            "files": files.collect::<Vec<_>>(),
            "storage": STORAGE,
            "ros_distro": summary.distro,
            "bytes": summary.bytes,
            "messages": summary.messages,
            "first_ns": summary.first_ns,
            "last_ns": summary.last_ns,
            "start": time(summary.first_ns),
            "end": time(summary.last_ns),
            "seconds": seconds,
            "topics": topics.collect::<Vec<_>>(),
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
    about(summary, out)?;
    for (topic, bytes) in shown {
        let RecordedTopic { name, type_name, messages, encoding, .. } = topic;
        let missing = missing(summary, name);
        let size =
            if args.verbose { format!(", {}", figures::bytes(bytes)) } else { String::new() };
        let other = if encoding == "cdr" {
            String::new()
        } else {
            format!(", in {}", escaped(encoding, ""))
        };
        let (name, type_name) = (escaped(name, ""), escaped(type_name, ""));
        out.line(format_args!("  {name}  {type_name}  {messages} messages{size}{other}{missing}"))?;
    }
    play::tell_damages(summary)
}

/// How files are written, of which there is one way.
const STORAGE: &str = "mcap";

/// What the recording is as a whole, under the titles of `ros2 bag info`.
fn about(summary: &tsuji_record::Summary, out: &mut Output) -> anyhow::Result<()> {
    let mut title = "Files:";
    for file in &summary.files {
        out.line(format_args!("{title:<15}{}", escaped(&file.display().to_string(), "")))?;
        title = "";
    }
    let duration_ns = summary.last_ns.saturating_sub(summary.first_ns);
    let distro = if summary.distro.is_empty() { "unknown" } else { &summary.distro };
    let mut lines = vec![
        ("Bag size:", format!("{} ({} bytes)", figures::bytes(summary.bytes), summary.bytes)),
        ("Storage id:", format!("{STORAGE}, messages in cdr")),
        ("ROS Distro:", escaped(distro, "")),
        ("Duration:", format!("{} s", seconds(duration_ns))),
    ];
    if summary.messages != 0 {
        for (title, ns) in [("Start:", summary.first_ns), ("End:", summary.last_ns)] {
            lines.push((title, format!("{} ({})", date(ns), seconds(ns))));
        }
    }
    lines.push(("Messages:", summary.messages.to_string()));
    for (title, text) in lines {
        out.line(format_args!("{title:<15}{text}"))?;
    }
    Ok(())
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A time in the calendar of this place, as ISO 8601 has it but for a blank.
fn date(ns: u64) -> String {
    let (second, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let Some(it) = i64::try_from(second).ok().and_then(clock::local) else { return seconds(ns) };
    let (sign, ahead) = (if it.ahead_s < 0 { '-' } else { '+' }, it.ahead_s.unsigned_abs());
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{rest:09}{sign}{:02}:{:02}",
        it.year,
        it.month,
        it.day,
        it.hour,
        it.minute,
        it.second,
        ahead / 3600,
        ahead / 60 % 60
    )
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
        "serialization_format": topic.encoding,
        "messages": topic.messages,
        "unplayable": topic.unplayable,
        "offered": topic.offered.iter().map(|it| json!({
            "reliability": it.reliability.to_string(),
            "durability": it.durability.to_string(),
            "history": it.history.to_string(),
        })).collect::<Vec<_>>(),
    })
}
