//! `tsuji record`.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tsuji_core::TopicPattern;
use tsuji_interfaces::{AmentIndex, Chain, Shipped};
use tsuji_record::{ErrorKind, Progress, RecordOptions, Recorder, Split, TopicFilter};

use crate::completions;
use crate::failure::Usage;
use crate::figures;
use crate::output::{self, Output};
use crate::session::{Globals, Session};
use crate::topic;

pub(crate) const EXAMPLES: &str = "\
A pattern is a name in which * stands for any run of letters between slashes, and ** for any run of tokens. Topics that
appear later are joined. Ctrl-C ends the file; one that a killed recorder left is played as far as it is whole.

Examples:
  tsuji record --all
  tsuji record /camera/image /odom -o drive.mcap
  tsuji record '/camera/**' --exclude '/**/compressed' --compression zstd
  tsuji record --all -o drive --max-bag-size 2000000000 --max-bag-duration 600
  tsuji record --all --duration 60 --json";

/// How often the progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topics, or patterns of them
    #[arg(value_name = "TOPIC", value_parser = pattern, required_unless_present = "all", add = completions::topics())]
    topics: Vec<TopicPattern>,
    /// Record every topic that is not hidden
    #[arg(short, long, conflicts_with = "topics")]
    all: bool,
    /// But not these
    #[arg(short = 'x', long, value_name = "TOPIC", value_parser = pattern)]
    exclude: Vec<TopicPattern>,
    /// Hidden topics too, with --all
    #[arg(long, requires = "all")]
    include_hidden_topics: bool,
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
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    depth: u32,
    /// Go on in another file when one has so many bytes of messages; the files are in a folder, with rosbag2's metadata.yaml
    #[arg(short = 'b', long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    max_bag_size: Option<u64>,
    /// Go on in another file after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = topic::seconds)]
    max_bag_duration: Option<Duration>,
    /// End after so many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = topic::seconds)]
    duration: Option<Duration>,
    /// Print what was recorded as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Compression {
    #[default]
    None,
    Zstd,
    Lz4,
}

/// A topic as a user writes it, which may be a pattern.
pub(crate) fn pattern(text: &str) -> Result<TopicPattern, String> {
    let full = if text.starts_with('/') { text.to_owned() } else { format!("/{text}") };
    full.parse().map_err(|error: tsuji_core::InvalidPattern| error.to_string())
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    // Heard from here on, so that an early Ctrl-C ends a file and leaves none that is cut off.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let session = Session::open_without_signals(globals)?;
    let split = Split { bytes_max: args.max_bag_size, duration_max: args.max_bag_duration };
    let path = args.output.clone().unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = if split == Split::default() { ".mcap" } else { "" };
        PathBuf::from(format!("recording_{}{end}", now.as_secs()))
    });
    let ament = AmentIndex::from_env_value(&env::var("AMENT_PREFIX_PATH").unwrap_or_default());
    let options = RecordOptions {
        topics: TopicFilter {
            wanted: args.topics.clone(),
            excluded: args.exclude.clone(),
            hidden: args.include_hidden_topics,
        },
        compression: match args.compression {
            Compression::None => tsuji_record::Compression::None,
            Compression::Zstd => tsuji_record::Compression::Zstd,
            Compression::Lz4 => tsuji_record::Compression::Lz4,
        },
        depth: args.depth,
        replace: args.force,
        split,
    };
    let node = session.hidden_node()?;
    let definitions = Box::new(Chain(vec![Box::new(ament), Box::new(Shipped)]));
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
        if signals.forever().next().is_some() {
            told.store(true, Ordering::Release);
            waker.trigger();
        }
    })?;
    output::note(format_args!("recording to {}; Ctrl-C ends it", path.display()));
    let mut shown = Shown::new();
    let began = Instant::now();
    let left = || args.duration.map(|it| it.saturating_sub(began.elapsed()));
    while !is_over.load(Ordering::Acquire) && left() != Some(Duration::ZERO) {
        let turned = recorder.turn(SHOWN_EVERY.min(left().unwrap_or(SHOWN_EVERY)));
        recorder.news().iter().for_each(|it| {
            shown.clear();
            output::warning(it);
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
    let progress = recorder.finish()?;
    report(args, &path, &progress, began.elapsed(), out)
}

fn report(
    args: &Args,
    path: &std::path::Path,
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
