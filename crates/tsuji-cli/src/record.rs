//! `tsuji record`, and `tsuji bag record`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tsuji::{Context, Distro};
use tsuji_core::{Qos, TopicPattern};
use tsuji_interfaces::{AmentIndex, Chain, Shipped};
use tsuji_msg::TypeName;
use tsuji_platform::{clock, signals};
use tsuji_record::{
    ErrorKind, Layout, NameRegex, Progress, RecordOptions, Recorder, Split, TopicFilter,
};

use crate::completions;
use crate::failure::Usage;
use crate::figures;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::session::{Globals, Session};
use crate::topic;

mod others;
use others::RecordOthers;
pub(crate) use others::{NoEffect, Storage, refusal};

pub(crate) const EXAMPLES: &str = "\
A pattern is a name in which * stands for any run of letters between slashes, and ** for any run of tokens. Topics that
appear later are joined. Ctrl-C ends the file; one that a killed recorder left is played as far as it is whole, and has all
but the last second.

Examples:
  tsuji record --all
  tsuji record /camera/image /odom -o drive.mcap
  tsuji record '/camera/**' --exclude '/**/compressed' --compression zstd
  tsuji record --regex 'camera|lidar' --exclude-regex raw --services /arm/move
  tsuji record --all -o drive --max-bag-size 2000000000 --max-bag-duration 600
  tsuji record --all --duration 60 --json";

pub(crate) const BAG_EXAMPLES: &str = "\
The flags are those of `tsuji record`, and letters stand for what they do in `ros2 bag record`. It makes a folder, as that
does; a name that ends with .mcap is that of one file.

Examples:
  tsuji bag record -a
  tsuji bag record /camera/image /odom -o drive
  tsuji bag record -a -o drive.mcap
  tsuji bag record --topics /camera/image --services /arm/move -d 600";

/// How often the progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(500);

/// What says what is recorded where no topic is named.
const CHOICES: [&str; 9] = [
    "all",
    "all_topics",
    "all_services",
    "all_actions",
    "named_topics",
    "services",
    "actions",
    "topic_types",
    "regex",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topics, or patterns of them
    #[arg(value_name = "TOPIC", value_parser = pattern, required_unless_present_any = CHOICES, add = completions::topics())]
    topics: Vec<TopicPattern>,
    /// The same
    #[arg(long = "topics", value_name = "TOPIC", value_parser = pattern, num_args = 1.., add = completions::topics())]
    named_topics: Vec<TopicPattern>,
    /// Record every topic that is not hidden, and the events of every service and action
    #[arg(short, long, conflicts_with = "topics")]
    all: bool,
    /// Record every topic that is not hidden
    #[arg(long)]
    all_topics: bool,
    /// Record the events of every service that tells them
    #[arg(long)]
    all_services: bool,
    /// Record every action: feedback, states, and the events that it tells
    #[arg(long)]
    all_actions: bool,
    /// The services whose events are recorded
    #[arg(long, value_name = "SERVICE", value_parser = name, num_args = 1.., add = completions::services())]
    services: Vec<String>,
    /// The actions that are recorded
    #[arg(long, value_name = "ACTION", value_parser = name, num_args = 1.., add = completions::actions())]
    actions: Vec<String>,
    /// Record the topics of these types
    #[arg(long, value_name = "TYPE", num_args = 1.., add = completions::messages())]
    topic_types: Vec<String>,
    /// Record topics, services and actions in whose names this regular expression finds something
    #[arg(short = 'e', long)]
    regex: Option<NameRegex>,
    /// But not these
    #[arg(short = 'x', long, value_name = "TOPIC", value_parser = excluded)]
    exclude: Vec<TopicPattern>,
    /// But not these
    #[arg(long, value_name = "TOPIC", value_parser = pattern, num_args = 1..)]
    exclude_topics: Vec<TopicPattern>,
    /// But not those in whose names this regular expression finds something
    #[arg(long, value_name = "REGEX")]
    exclude_regex: Option<NameRegex>,
    /// But not topics of these types, by their whole names
    #[arg(long, value_name = "TYPE", num_args = 1..)]
    exclude_topic_types: Vec<String>,
    /// But not these services
    #[arg(long, value_name = "SERVICE", value_parser = name, num_args = 1..)]
    exclude_services: Vec<String>,
    /// But not these actions
    #[arg(long, value_name = "ACTION", value_parser = name, num_args = 1..)]
    exclude_actions: Vec<String>,
    /// Hidden topics too, where they are not named
    #[arg(long)]
    include_hidden_topics: bool,
    /// Topics too that have subscriptions and are not published yet
    #[arg(long)]
    include_unpublished_topics: bool,
    /// But no topics that nobody subscribes to
    #[arg(long)]
    ignore_leaf_topics: bool,
    /// But no topics that appear later
    #[arg(long)]
    no_discovery: bool,
    /// The file, or the folder of several; without it recording_SECONDS.mcap here, or recording_SECONDS, the seconds being
    /// those since 1970
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(short, long, conflicts_with_all = ["max_bag_size", "max_bag_duration"])]
    force: bool,
    /// How chunks are packed
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    compression: Compression,
    /// Messages of a topic that wait to be written; of more the oldest are displaced and counted
    #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    depth: u32,
    /// A YAML file of what topics are asked for instead of what fits their publishers
    #[arg(long, value_name = "FILE")]
    qos_profile_overrides_path: Option<PathBuf>,
    /// Go on in another file when one has so many bytes of messages; the files are in a folder, with rosbag2's metadata.yaml
    #[arg(short = 'b', long, value_name = "BYTES", value_parser = bytes, allow_negative_numbers = true)]
    max_bag_size: Option<u64>,
    /// Go on in another file after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = topic::seconds, allow_negative_numbers = true)]
    max_bag_duration: Option<Duration>,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = topic::seconds, allow_negative_numbers = true)]
    duration: Option<Duration>,
    /// What else the recording says of itself
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value, num_args = 0..)]
    custom_data: Vec<(String, String)>,
    /// The name of the node that records; without it one that is hidden
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// Print what was recorded as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: Storage,
    #[command(flatten)]
    others: RecordOthers,
    #[command(flatten)]
    no_effect: NoEffect,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Compression {
    #[default]
    None,
    Zstd,
    Lz4,
}

/// In whose words a recording is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// `tsuji record`.
    Own,
    /// `tsuji bag record`.
    Bag,
}

/// Gives letters the meaning that they have in `ros2 bag record`.
pub(crate) fn with_letters_of_ros2(command: clap::Command) -> clap::Command {
    command
        .mut_arg("duration", |it| it.short(None))
        .mut_arg("force", |it| it.short(None))
        .mut_arg("exclude", |it| it.short(None))
        .mut_arg("max_bag_duration", |it| it.short('d'))
        .mut_arg("exclude_regex", |it| it.short('x'))
        .mut_arg("serialization_format", |it| it.short('f'))
        .mut_arg("output", |it| {
            it.help(
                "The folder, or one file if it ends with .mcap; without it rosbag2_DATE here, such as \
                 rosbag2_2026_01_31-12_00_00",
            )
        })
}

/// A topic as a user writes it, which may be a pattern.
pub(crate) fn pattern(text: &str) -> Result<TopicPattern, String> {
    name(text)?.parse().map_err(|error: tsuji_core::InvalidPattern| error.to_string())
}

/// The same of what is left out, which before Jazzy was a regular expression in ROS 2.
fn excluded(text: &str) -> Result<TopicPattern, String> {
    pattern(text).map_err(|error| format!("{error}; --exclude-regex takes regular expressions"))
}

/// A name in full.
pub(crate) fn name(text: &str) -> Result<String, String> {
    Ok(if text.starts_with('/') { text.to_owned() } else { format!("/{text}") })
}

fn bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse().ok().filter(|it| 0 < *it);
    bytes.ok_or_else(|| "allowed: a whole number of bytes above 0".to_owned())
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = parts.ok_or_else(|| "allowed: KEY=VALUE".to_owned())?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The overrides of QoS in a file, if one is given.
pub(crate) fn overrides(path: Option<&Path>) -> anyhow::Result<BTreeMap<String, Qos>> {
    let Some(path) = path else { return Ok(BTreeMap::new()) };
    let at = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| anyhow::Error::from(error).context(format!("cannot read {at}")))?;
    let overrides =
        tsuji_record::qos_overrides(&text).map_err(|what| Usage(format!("{at}: {what}")))?;
    overrides.into_iter().map(|(topic, qos)| Ok((name(&topic).map_err(Usage)?, qos))).collect()
}

pub(crate) fn run(
    args: &Args,
    words: Words,
    globals: &Globals,
    out: &mut Output,
) -> anyhow::Result<()> {
    args.storage.check()?;
    args.others.check()?;
    let types = types(&args.topic_types)?;
    // Heard from here on, so that an early Ctrl-C ends a file and leaves none that is cut off.
    let mut signals = Signals::new(signals::heard(&[SIGINT, SIGTERM, SIGHUP]))?;
    let session = Session::open_without_signals(globals)?;
    let (path, split) = place(args, words);
    let ament = AmentIndex::from_env_value(env::var_os("AMENT_PREFIX_PATH").unwrap_or_default());
    let node = match &args.node_name {
        Some(name) => session.context.node(name)?,
        None => session.hidden_node()?,
    };
    let definitions = Box::new(Chain(vec![Box::new(ament), Box::new(Shipped)]));
    let options = options(args, types.clone(), split, &session.context)?;
    let recorder = Recorder::create(&node, &path, options, definitions);
    let mut recorder = recorder.map_err(|error| match error.kind() {
        ErrorKind::Invalid if split == Split::default() => {
            Usage(format!("{error}; --force replaces it")).into()
        }
        ErrorKind::Invalid => Usage(error.to_string()).into(),
        _ => anyhow::Error::from(error),
    })?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (told, waker) = (Arc::clone(&is_over), recorder.waker());
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut signals = signals.forever();
        if signals.next().is_some() {
            told.store(true, Ordering::Release);
            waker.trigger();
        }
        // Whoever asks again does not want to wait for the end of the file.
        if let Some(second) = signals.next() {
            let _ = emulate_default_handler(second);
        }
    })?;
    for topic in recorder.unpublished() {
        output::warning(format_args!("topic [{topic}] does not appear to be published yet"));
    }
    let choices = choices(args, &types);
    for choice in in_vain(&choices, &recorder.progress()) {
        output::warning(format_args!("{choice}: no topic to record appears to be published yet"));
    }
    output::note(format_args!("recording to {}; Ctrl-C ends it", path.display()));
    let mut shown = Shown::new();
    let began = Instant::now();
    let left = || args.duration.map(|it| it.saturating_sub(began.elapsed()));
    while !is_over.load(Ordering::Acquire) && left() != Some(Duration::ZERO) {
        let turned = recorder.turn(SHOWN_EVERY.min(left().unwrap_or(SHOWN_EVERY)));
        recorder.warnings().iter().for_each(|it| {
            shown.clear();
            output::warning(output::escaped(it, ""));
        });
        if let Err(error) = turned {
            shown.clear();
            let progress = recorder.progress();
            return Err(anyhow::Error::from(error).context(format!(
                "recording ended after {} messages; those in whole chunks are in {}",
                progress.messages,
                path.display()
            )));
        }
        shown.show(&recorder, began);
    }
    shown.clear();
    let unpublished = recorder.unpublished();
    let progress = recorder.finish()?;
    for topic in unpublished.iter().filter(|it| !progress.topics.contains_key(*it)) {
        output::warning(format_args!("topic [{topic}] was not published, and is not in the file"));
    }
    for choice in in_vain(&choices, &progress) {
        output::warning(format_args!(
            "{choice}: no topic to record was published, and none is in the file"
        ));
    }
    report(args, &path, &progress, began.elapsed(), out)
}

/// The whole names of types; a word that is no name of a type is refused.
fn types(words: &[String]) -> anyhow::Result<Vec<String>> {
    let named = words.iter().map(|it| match it.parse::<TypeName>() {
        Ok(name) => Ok(name.to_string()),
        Err(error) => Err(Interfaces::from_environment().explain(it, error.into())),
    });
    named.collect()
}

/// What chooses topics without naming them, each with how it was said. `--all` and `--all-topics` mean what comes, too.
fn choices(args: &Args, types: &[String]) -> Vec<(String, TopicFilter)> {
    let any = || TopicFilter { hidden: true, ..TopicFilter::default() };
    let wanted = args.topics.iter().chain(&args.named_topics);
    let patterns = wanted
        .filter(|it| it.as_str().contains('*'))
        .map(|it| (format!("pattern [{it}]"), TopicFilter { wanted: vec![it.clone()], ..any() }));
    let actions = args.actions.iter().map(|it| {
        (format!("--actions [{it}]"), TopicFilter { actions: vec![it.clone()], ..any() })
    });
    let all_services = args
        .all_services
        .then(|| ("--all-services".to_owned(), TopicFilter { all_services: true, ..any() }));
    let all_actions = args
        .all_actions
        .then(|| ("--all-actions".to_owned(), TopicFilter { all_actions: true, ..any() }));
    let regex = args
        .regex
        .iter()
        .map(|it| (format!("--regex [{it}]"), TopicFilter { regex: Some(it.clone()), ..any() }));
    let types = types.iter().map(|it| {
        (format!("--topic-types [{it}]"), TopicFilter { types: vec![it.clone()], ..any() })
    });
    patterns
        .chain(all_services)
        .chain(all_actions)
        .chain(actions)
        .chain(regex)
        .chain(types)
        .collect()
}

/// Those of which nothing is recorded.
fn in_vain<'a>(choices: &'a [(String, TopicFilter)], progress: &Progress) -> Vec<&'a str> {
    let is_found = |filter: &TopicFilter| {
        progress.topics.iter().any(|(name, it)| filter.has(name, &it.type_name))
    };
    let vain = choices.iter().filter(|(_, filter)| !is_found(filter));
    vain.map(|(said, _)| said.as_str()).collect()
}

/// Where the recording goes, and whether to several files.
fn place(args: &Args, words: Words) -> (PathBuf, Split) {
    let mut split =
        Split { bytes_max: args.max_bag_size, duration_max: args.max_bag_duration, folder: false };
    if words == Words::Bag {
        let is_file =
            args.output.as_ref().is_some_and(|it| it.extension() == Some("mcap".as_ref()));
        split.folder = !is_file;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let path = args.output.clone().unwrap_or_else(|| match words {
        Words::Bag => PathBuf::from(format!("rosbag2_{}", stamp(now))),
        Words::Own if split == Split::default() => PathBuf::from(format!("recording_{now}.mcap")),
        Words::Own => PathBuf::from(format!("recording_{now}")),
    });
    (path, split)
}

/// The local time as `ros2 bag record` has it in names.
fn stamp(wall_s: u64) -> String {
    let local = i64::try_from(wall_s).ok().and_then(clock::local);
    local.map_or_else(
        || wall_s.to_string(),
        |it| {
            format!(
                "{:04}_{:02}_{:02}-{:02}_{:02}_{:02}",
                it.year, it.month, it.day, it.hour, it.minute, it.second
            )
        },
    )
}

fn options(
    args: &Args,
    types: Vec<String>,
    split: Split,
    context: &Context,
) -> anyhow::Result<RecordOptions> {
    let all = args.all;
    Ok(RecordOptions {
        topics: TopicFilter {
            all_topics: all || args.all_topics,
            all_services: all || args.all_services,
            all_actions: all || args.all_actions,
            wanted: [&args.topics[..], &args.named_topics].concat(),
            types,
            regex: args.regex.clone(),
            services: args.services.clone(),
            actions: args.actions.clone(),
            excluded: [&args.exclude[..], &args.exclude_topics].concat(),
            excluded_types: args.exclude_topic_types.clone(),
            excluded_regexes: args.exclude_regex.iter().cloned().collect(),
            excluded_services: args.exclude_services.clone(),
            excluded_actions: args.exclude_actions.clone(),
            hidden: args.include_hidden_topics,
        },
        compression: match args.compression {
            Compression::None => args.others.compression_of_preset(),
            Compression::Zstd => tsuji_record::Compression::Zstd,
            Compression::Lz4 => tsuji_record::Compression::Lz4,
        },
        depth: args.depth,
        replace: args.force,
        split,
        qos: overrides(args.qos_profile_overrides_path.as_deref())?,
        no_discovery: args.no_discovery,
        unpublished: args.include_unpublished_topics,
        ignore_leaf_topics: args.ignore_leaf_topics,
        layout: match context.distro() {
            Distro::Humble => Layout::Humble,
            Distro::Iron => Layout::Iron,
            _ => Layout::Jazzy,
        },
        distro: env::var_os("ROS_DISTRO").unwrap_or_default().to_string_lossy().into_owned(),
        custom_data: args.custom_data.iter().cloned().collect(),
    })
}

fn report(
    args: &Args,
    path: &Path,
    progress: &Progress,
    took: Duration,
    out: &mut Output,
) -> anyhow::Result<()> {
    if args.json {
        let topics = progress.topics.iter().map(|(name, it)| {
            json!({
                "topic": name,
                "type": it.type_name,
                "received": it.received,
                "lost": it.lost,
                "displaced": it.displaced,
            })
        });
        let report = json!({
            "file": path.display().to_string(),
            "seconds": took.as_secs_f64(),
            "messages": progress.messages,
            "bytes": progress.bytes,
            "missing": progress.missing(),
            "topics": topics.collect::<Vec<_>>(),
        });
        return Ok(out.line(report)?);
    }
    out.line(format_args!(
        "{}: {} messages of {} topics, {} in {:.1} s",
        path.display(),
        progress.messages,
        progress.topics.len(),
        figures::bytes(progress.bytes),
        took.as_secs_f64()
    ))?;
    for (name, it) in progress.topics.iter().filter(|(_, it)| 0 < it.lost + it.displaced) {
        output::warning(format_args!(
            "{name}: {} of {} messages are not in the file: {} displaced from a full queue (--depth makes it deeper), \
             {} lost on the way",
            it.lost + it.displaced,
            it.received + it.lost + it.displaced,
            it.displaced,
            it.lost
        ));
    }
    Ok(())
}

/// The line of a terminal that tells how far it has come.
struct Shown {
    is_terminal: bool,
    last: Option<Instant>,
}

impl Shown {
    fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), last: None }
    }

    fn show(&mut self, recorder: &Recorder, began: Instant) {
        if !self.is_terminal || self.last.is_some_and(|it| it.elapsed() < SHOWN_EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let progress = recorder.progress();
        // That nobody reads it is no fault.
        let _ = write!(
            io::stderr(),
            "\r\x1b[K{:.0} s  {}  {} messages of {} topics  {} missing",
            began.elapsed().as_secs_f64(),
            figures::bytes(progress.bytes),
            progress.messages,
            progress.topics.len(),
            progress.missing()
        );
    }

    fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
