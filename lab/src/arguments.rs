//! The words after `tsuji lab` and `tsuji tune`.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, value_parser};

use crate::placement::Placement;
use crate::{handover, matrix};

/// The whole command as a user types it, so that usage and completions have its words.
#[derive(Debug, Parser)]
#[command(name = "tsuji", disable_help_subcommand = true, max_term_width = 100)]
pub(crate) enum Tsuji {
    /// Measure tsuji beside the raw transports
    #[command(version, disable_help_subcommand = true, subcommand_value_name = "EXPERIMENT")]
    #[command(subcommand_help_heading = "Experiments", after_help = EXIT)]
    Lab {
        #[command(subcommand)]
        asked: Asked,
    },
    /// Measure the transports of this machine, and write the policy that follows
    #[command(after_help = TUNE)]
    Tune(Tune),
}

/// What a user asks the laboratory for.
#[derive(Debug, Subcommand)]
pub(crate) enum Asked {
    /// Run every experiment, one after the other, and make one page of all
    ///
    /// The files go to a folder. About an hour in full; --quick takes six minutes.
    All(All),
    /// How long a picture takes from publish() to a sleeping subscriber
    ///
    /// Six patterns, and sizes from 64 B to 8 MB by pointer, by loan and by ordinary publish; the last two also by
    /// Cyclone DDS, beside Cyclone DDS alone, the last one by Fast DDS and Zenoh too, and between processes that a
    /// keystore secures, by memory beside the same in clear, and over RTPS beside Cyclone DDS secured alike. The patterns also by ROS 1, and
    /// these and the sizes by rclcpp on each middleware of the ROS 2 that is sourced, where scripts/ros1 and
    /// scripts/rclcpp have built their nodes (TSUJI_LAB_PEERS).
    #[command(after_help = LATENCY)]
    Latency(BySize),
    /// How even a beat of short texts is, and how long each takes
    ///
    /// A text a hundred times a second, by every transport, by engines alone, iceoryx2 and a socket, beside ROS 1,
    /// rclcpp and the figures of an article on it; then texts of other sizes, and other queues beside a callback that
    /// stands still. Fourteen minutes in full.
    #[command(after_help = JITTER)]
    Jitter(Jitter),
    /// How many pictures of a camera come, raw and as JPEG, and how late
    ///
    /// 500 pictures of 640 × 480 every 30 ms, inside one process, between two by each transport, to and from a foreign
    /// node on Cyclone DDS, and by engines alone, iceoryx2 and a socket: received, mean and variance, processor time
    /// and context switches, beside the figures of an article on ROS 2. Six minutes in full.
    #[command(after_help = CAMERA)]
    Camera(Camera),
    /// What web clients have of `tsuji bridge`
    ///
    /// 100,000 texts by WebSocket, TCP and UDP until the last is in another process, by a client that is fast, one
    /// that does as those of an article on rosbridge_server did, and these themselves where Python is here; texts to a
    /// client, messages there and back, pictures to one client and to 50, and what clients that come and go leave;
    /// beside rosbridge_server of the ROS 2 or ROS 1 that is sourced. Five minutes in full.
    Bridge(Bridge),
    /// Whether tsuji keeps its budgets: all else that has a bar
    ///
    /// Throughput, small samples, allocations, memory, threads, descriptors, start-up, idling, also beside foreign
    /// ROS 2 nodes, and what one that listens costs; a command beside pictures, actions and parameters, and what tsuji
    /// chooses once it is tuned.
    #[command(after_help = BUDGETS)]
    Budgets(BySize),
    /// What happens to samples while the transport of their flow changes
    ///
    /// What is lost, repeated or out of order, how late samples are then, and what is held; how soon a late joiner is
    /// on shared memory; publish and take on one thread.
    #[command(after_help = HANDOVER)]
    Handover(Handover),
    /// Every size and reliability by every transport
    ///
    /// Payloads from 256 B to 4 MB, reliable and of best effort, by every transport and by the engines alone: latency
    /// at 10 Hz, throughput, memory and threads of both processes, with the figures of the paper on choosing DDS
    /// implementations beside. 20 minutes in full.
    #[command(after_help = MATRIX)]
    Matrix(Matrix),
    /// Make a page, plots and tables of what experiments wrote with --json
    ///
    /// The page goes beside the first file if nothing else is said. docs/lab-report.md has the format.
    Report(Report),
    /// Say which figures of two runs differ by more than their intervals allow
    Compare(Compare),
}

const EXIT: &str = "\
Each is measured in one run, interleaved, and started anew several times. How:
docs/lab.md. Ctrl-C ends it and keeps what is measured. Exit code: 0, or 1 when
something was lost or could not be measured, 2 for wrong usage, 130 after
Ctrl-C. A bar that is not met is not an error.

Examples:
  tsuji lab all --quick
  tsuji lab latency --json latency.json
  tsuji lab report latency.json";
const LATENCY: &str = "\
Examples:
  tsuji lab latency --quick
  tsuji lab latency --cases loan --sizes 64,4KiB";
const JITTER: &str = "\
Examples:
  tsuji lab jitter --json jitter.json
  tsuji lab jitter --rosout ~/.ros/log/latest/rosout.log";
const CAMERA: &str = "\
Examples:
  tsuji lab camera --transports cyclonedds,raw:cyclonedds
  tsuji lab camera --input drive.mcap --topic /left";
const BUDGETS: &str = "\
Examples:
  tsuji lab budgets --quick
  tsuji lab budgets --cases command,choice";
const HANDOVER: &str = "\
Examples:
  tsuji lab handover --cases processes,inside
  tsuji lab handover --cases pairs-64 --transports shm,zenoh";
const MATRIX: &str = "\
Examples:
  tsuji lab matrix --json matrix.json --csv matrix.csv
  tsuji lab matrix --transports cyclonedds,raw:cyclonedds";
const TUNE: &str = "\
Measures every transport between processes: small and large samples, reliable
and of best effort. It takes about two minutes. The policy puts the fastest
first; the names of its rules have the figures, where `tsuji policy explain` and
`tsuji routes` show them. Ctrl-C ends it without a policy. Exit code: 0, or 1
when something was lost or could not be measured, 2 for wrong usage, 130 after
Ctrl-C.

Examples:
  tsuji tune
  tsuji tune --output robot.xml --force
  tsuji policy show --policy tsuji-policy.xml";

#[derive(Debug, Args)]
pub(crate) struct All {
    /// A look; too short for verdicts to mean much
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    placed: Placed,
    /// The folder that all goes to
    #[arg(long, short, value_name = "DIR", default_value = ALL_FOLDER)]
    output: PathBuf,
    /// Also if the folder has files already
    #[arg(long)]
    force: bool,
}

/// Of what measures cases at several sizes.
#[derive(Debug, Args)]
pub(crate) struct BySize {
    #[command(flatten)]
    cases: Cases,
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    measured: Measured,
}

#[derive(Debug, Args)]
pub(crate) struct Jitter {
    #[command(flatten)]
    cases: Cases,
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    among: Among,
    /// Reads this rosout.log of ROS 1, or what its screen showed, and measures nothing
    #[arg(long, value_name = "FILE")]
    rosout: Option<PathBuf>,
    /// What its lines say of a message published
    #[arg(long, value_name = "WORD", default_value = "publish")]
    publish_word: String,
    /// What its lines say of a message received
    #[arg(long, value_name = "WORD", default_value = "subscribe")]
    subscribe_word: String,
    #[command(flatten)]
    measured: Measured,
}

#[derive(Debug, Args)]
pub(crate) struct Camera {
    #[command(flatten)]
    cases: Cases,
    #[command(flatten)]
    among: Among,
    /// Films the pictures of this recording, as `tsuji record` or rosbag2 writes one
    ///
    /// At most 500 and 256 MB of sensor_msgs/msg/Image, raw, and as JPEG if they are bgr8, rgb8 or mono8; or of
    /// CompressedImage in JPEG, as they are.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Those of this topic, where FILE has pictures on several
    #[arg(long, value_name = "NAME", requires = "input")]
    topic: Option<String>,
    /// As far apart as they were recorded, not one every 30 ms
    #[arg(long, requires = "input")]
    recorded_beat: bool,
    #[command(flatten)]
    measured: Measured,
}

#[derive(Debug, Args)]
pub(crate) struct Bridge {
    #[command(flatten)]
    cases: Cases,
    #[command(flatten)]
    bounded: Bounded,
    #[command(flatten)]
    measured: Measured,
}

#[derive(Debug, Args)]
pub(crate) struct Handover {
    #[command(flatten)]
    cases: Cases,
    /// Of the pairs only those of these, two or more: shm, cyclonedds, fastdds, zenoh
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    transports: Vec<String>,
    /// Changes of the transport in a case [default: 180; with --quick: 20]
    #[arg(long, value_name = "N", value_parser = up_to(1_000_000))]
    handovers: Option<u64>,
    #[command(flatten)]
    bounded: Bounded,
    #[command(flatten)]
    measured: Measured,
}

#[derive(Debug, Args)]
pub(crate) struct Matrix {
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    among: Among,
    #[command(flatten)]
    measured: Measured,
}

#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// Where the policy goes
    #[arg(long, short, value_name = "PATH", default_value = POLICY_FILE)]
    output: PathBuf,
    /// Replaces a file that is there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    measured: Measured,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// What experiments wrote with --json
    #[arg(value_name = "FILE.json", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pages: Pages,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// What two runs of one experiment wrote with --json
    #[arg(value_name = "FILE.json", num_args = 2, required = true)]
    files: Vec<PathBuf>,
    /// Writes the figures to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    pages: Pages,
}

#[derive(Debug, Args)]
struct Cases {
    /// Only cases whose names begin with one of NAMES, with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cases: Vec<String>,
}

#[derive(Debug, Args)]
struct Sizes {
    /// Only these sizes, with commas between, such as 64,4KiB,2359296
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = size)]
    sizes: Vec<usize>,
}

#[derive(Debug, Args)]
struct Among {
    /// Only these, with commas between: inproc, shm, cyclonedds, fastdds, zenoh, raw:condvar, raw:unix-socket,
    /// raw:iceoryx2, raw:cyclonedds, raw:fastdds, raw:zenoh
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    transports: Vec<String>,
}

#[derive(Debug, Args)]
struct Bounded {
    /// A case ends after so long, with as many as there were
    #[arg(long, value_name = "N", default_value_t = SECONDS_MAX, value_parser = up_to(1_000_000))]
    seconds_max: u64,
}

#[derive(Debug, Args)]
struct Placed {
    /// Who runs on which processor: apart, the sender on the first of those allowed and receivers on the others;
    /// together, all on the first; free, as the system likes
    #[arg(long, value_name = "WORD", default_value = "apart", hide_possible_values = true)]
    placement: Placement,
}

#[derive(Debug, Args)]
struct Pages {
    /// Writes tables and plots to FILE, a page that needs nothing else
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    /// Writes the plots to DIR, one file each
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    svg: Option<PathBuf>,
    /// Writes tables and all values to DIR; of a matrix also FILE, for its cells
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    csv: Option<PathBuf>,
}

/// How much is measured, and where it goes. What is said of the defaults is filled in for each experiment.
#[derive(Debug, Args)]
struct Measured {
    /// A look of about a minute; too short for verdicts to mean much
    #[arg(long)]
    quick: bool,
    /// Starts of each transport, with a block of samples in each
    #[arg(long, value_name = "N", value_parser = up_to(1000))]
    blocks: Option<u64>,
    /// Samples of each transport in a case, of all starts together
    #[arg(long, value_name = "N", value_parser = up_to(1_000_000))]
    count: Option<u64>,
    /// µs that pass at least before the next sample, for the receiver to rest
    #[arg(long, value_name = "N", default_value_t = PAUSE_US, value_parser = up_to(1_000_000))]
    pause: u64,
    #[command(flatten)]
    placed: Placed,
    /// Writes the figures to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    #[command(flatten)]
    pages: Pages,
}

/// How much to measure, of whatever experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Where the figures go as JSON.
    pub(crate) json: Option<PathBuf>,
    /// Where tables and series go as CSV: a folder; of a matrix the cells to a file, if it is one.
    pub(crate) csv: Option<PathBuf>,
    /// Where the page goes.
    pub(crate) html: Option<PathBuf>,
    /// The folder that the plots go to.
    pub(crate) svg: Option<PathBuf>,
    /// What a report is made of.
    pub(crate) files: Vec<PathBuf>,
    /// Where the policy goes, or the folder that all goes to.
    pub(crate) output: PathBuf,
    /// Even if there is a file already.
    pub(crate) force: bool,
    /// Only these entrants of a matrix, ends of a camera's pictures and transports of a beat; all if empty.
    pub(crate) transports: Vec<String>,
    /// Only these sizes, where a case has sizes; those of the case if empty.
    pub(crate) sizes: Vec<usize>,
    /// Only cases whose names begin so; all if empty.
    pub(crate) cases: Vec<String>,
    /// Blocks of each transport.
    pub(crate) blocks: usize,
    /// Samples of each transport in a case.
    pub(crate) count: u64,
    /// Least rest of the receiver between two samples.
    pub(crate) pause_us: u64,
    /// Who runs on which processor.
    pub(crate) placement: Placement,
    /// A look instead of a measurement.
    pub(crate) quick: bool,
    /// Changes of a transport in a case.
    pub(crate) handovers: u64,
    /// After so long a case is over, whether it has had all its changes or not.
    pub(crate) seconds_max: u64,
    /// A log of ROS 1 that is read instead of measuring.
    pub(crate) rosout: Option<PathBuf>,
    /// What its lines say of a message that was published, and of one that was received.
    pub(crate) words: [String; 2],
    /// A recording whose pictures a camera films.
    pub(crate) input: Option<PathBuf>,
    /// The topic that they are on; the only one if none is named.
    pub(crate) topic: Option<String>,
    /// As far apart as they were recorded.
    pub(crate) recorded_beat: bool,
}

/// From 64 bytes to 8 MB; 2,359,296 bytes are a picture of 1024 × 768 in three colours.
pub(crate) const SIZES: [usize; 7] = [64, 512, 4096, 65_536, 524_288, PICTURE_BYTES, 8 << 20];

/// The sizes by the transport of an engine: one datagram, two, a picture, and as much as a receive buffer holds.
pub(crate) const ENGINE_SIZES: [usize; 4] = [64, 65_536, PICTURE_BYTES, 4 << 20];

/// A picture of 1024 × 768, bgr8.
pub(crate) const PICTURE_BYTES: usize = 1024 * 768 * 3;

/// Sizes that a user may ask for.
const SIZE_MIN: usize = 8;
const SIZE_MAX: usize = 256 << 20;

/// Short, so that a virtual processor that has nothing to do is not yet given back to the host.
const PAUSE_US: u64 = 40;
pub(crate) const MATRIX_BLOCKS: usize = 5;
pub(crate) const MATRIX_COUNT: u64 = 90;
const POLICY_FILE: &str = "tsuji-policy.xml";
const ALL_FOLDER: &str = "tsuji-lab";
const HANDOVERS: u64 = 180;
const QUICK_HANDOVERS: u64 = 20;
const SECONDS_MAX: u64 = 600;

/// The starts and the samples of an experiment, in full and of a look.
#[derive(Clone, Copy)]
struct Amount {
    experiment: &'static str,
    blocks: [usize; 2],
    count: [u64; 2],
}

const fn amount(experiment: &'static str, blocks: [usize; 2], count: [u64; 2]) -> Amount {
    Amount { experiment, blocks, count }
}

/// Five starts: two runs of five whose starts differ by chance alone have intervals that meet, 99 times in 100. Three
/// where more would take a look longer than a minute. Starts of all that is no flow alone cost more.
const AMOUNTS: [Amount; 8] = [
    amount("latency", [10, 5], [1000, 80]),
    amount("handover", [10, 5], [1000, 80]),
    amount("budgets", [7, 3], [1000, 80]),
    amount("matrix", [MATRIX_BLOCKS, 5], [MATRIX_COUNT, 25]),
    amount("tune", [MATRIX_BLOCKS, 5], [MATRIX_COUNT, 25]),
    // Half a minute of a hundred a second.
    amount("jitter", [5, 3], [3000, 125]),
    // As many as the article's.
    amount("camera", [5, 5], [500, 40]),
    // As many texts in each start as the article's clients send.
    amount("bridge", [5, 3], [100_000, 20_000]),
];

impl Options {
    /// Whether a case of that name is asked for.
    pub(crate) fn wants_case(&self, name: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|it| name.starts_with(it))
    }

    /// Whether a transport of that name is asked for.
    pub(crate) fn wants_transport(&self, name: &str) -> bool {
        self.transports.is_empty() || self.transports.iter().any(|it| it == name)
    }

    /// The sizes that are asked for, or else `own`.
    pub(crate) fn sizes_or<'a>(&'a self, own: &'a [usize]) -> &'a [usize] {
        if self.sizes.is_empty() { own } else { &self.sizes }
    }

    fn of(experiment: &str, measured: &Measured) -> Self {
        let at = usize::from(measured.quick);
        let amount = AMOUNTS.iter().find(|it| it.experiment == experiment);
        let (blocks, count) = amount.map_or((1, 1), |it| (it.blocks[at], it.count[at]));
        Self {
            json: measured.json.clone(),
            quick: measured.quick,
            blocks: measured.blocks.map_or(blocks, |it| it as usize),
            count: measured.count.unwrap_or(count),
            pause_us: measured.pause,
            placement: measured.placed.placement,
            handovers: [HANDOVERS, QUICK_HANDOVERS][at],
            seconds_max: SECONDS_MAX,
            ..Self::default()
        }
        .with_pages(&measured.pages)
    }

    fn with_pages(mut self, pages: &Pages) -> Self {
        (self.html, self.svg, self.csv) =
            (pages.html.clone(), pages.svg.clone(), pages.csv.clone());
        self
    }
}

impl Asked {
    /// The name of the experiment, and how it is measured.
    pub(crate) fn into_options(self) -> (&'static str, Options) {
        let name = self.name();
        let options = match self {
            Self::All(it) => Options {
                quick: it.quick,
                placement: it.placed.placement,
                output: it.output,
                force: it.force,
                ..Options::default()
            },
            Self::Latency(it) | Self::Budgets(it) => Options {
                cases: it.cases.cases,
                sizes: it.sizes.sizes,
                ..Options::of(name, &it.measured)
            },
            Self::Jitter(it) => Options {
                cases: it.cases.cases,
                sizes: it.sizes.sizes,
                transports: it.among.transports,
                rosout: it.rosout,
                words: [it.publish_word, it.subscribe_word],
                ..Options::of(name, &it.measured)
            },
            Self::Camera(it) => Options {
                cases: it.cases.cases,
                transports: it.among.transports,
                input: it.input,
                topic: it.topic,
                recorded_beat: it.recorded_beat,
                ..Options::of(name, &it.measured)
            },
            Self::Bridge(it) => Options {
                cases: it.cases.cases,
                seconds_max: it.bounded.seconds_max,
                ..Options::of(name, &it.measured)
            },
            Self::Handover(it) => {
                let own = Options::of(name, &it.measured);
                Options {
                    cases: it.cases.cases,
                    transports: it.transports,
                    handovers: it.handovers.unwrap_or(own.handovers),
                    seconds_max: it.bounded.seconds_max,
                    ..own
                }
            }
            Self::Matrix(it) => Options {
                sizes: it.sizes.sizes,
                transports: it.among.transports,
                ..Options::of(name, &it.measured)
            },
            Self::Report(it) => {
                Options { files: it.files, ..Options::default() }.with_pages(&it.pages)
            }
            Self::Compare(it) => Options { files: it.files, json: it.json, ..Options::default() }
                .with_pages(&it.pages),
        };
        (name, options)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::All(_) => "all",
            Self::Latency(_) => "latency",
            Self::Jitter(_) => "jitter",
            Self::Camera(_) => "camera",
            Self::Bridge(_) => "bridge",
            Self::Budgets(_) => "budgets",
            Self::Handover(_) => "handover",
            Self::Matrix(_) => "matrix",
            Self::Report(_) => "report",
            Self::Compare(_) => "compare",
        }
    }
}

impl Tune {
    fn into_options(self) -> Options {
        let options = Options::of("tune", &self.measured);
        Options { output: self.output, force: self.force, ..options }
    }
}

/// The whole command, with what each experiment does if nothing is said.
pub(crate) fn command() -> clap::Command {
    Tsuji::command().mut_subcommands(|it| match it.get_name() {
        "lab" => it.mut_subcommands(with_defaults),
        _ => with_defaults(it),
    })
}

fn with_defaults(command: clap::Command) -> clap::Command {
    let Some(amount) = AMOUNTS.iter().find(|it| it.experiment == command.get_name()) else {
        return command;
    };
    let defaults = |of: String, [full, quick]: [u64; 2]| {
        let quick = if full == quick { String::new() } else { format!("; with --quick: {quick}") };
        format!("{of} [default: {full}{quick}]")
    };
    let count = match amount.experiment {
        "bridge" => "Texts of each start, and clients of connects",
        _ => "Samples of each transport in a case, of all starts together",
    };
    let blocks = "Starts of each transport, with a block of samples in each".to_owned();
    let blocks = defaults(blocks, amount.blocks.map(|it| it as u64));
    let count = defaults(count.to_owned(), amount.count);
    command.mut_arg("blocks", |it| it.help(blocks)).mut_arg("count", |it| it.help(count))
}

/// Reads the words after `tsuji-lab`: an experiment with its flags, or `tune`. An error is help as well.
pub(crate) fn parse(words: &[String]) -> Result<(&'static str, Options), clap::Error> {
    let mut all = vec!["tsuji".to_owned()];
    if words.first().is_none_or(|it| it != "tune") {
        all.push("lab".to_owned());
    }
    match words {
        [] => all.push("--help".to_owned()),
        [word, rest @ ..] if word == "help" => {
            all.extend(rest.iter().cloned().chain(["--help".to_owned()]));
        }
        _ => all.extend_from_slice(words),
    }
    let mut command = command();
    if let Some(error) = unknown(&mut command, words) {
        return Err(error);
    }
    let matches = command.try_get_matches_from_mut(all)?;
    let asked = <Tsuji as clap::FromArgMatches>::from_arg_matches(&matches)?;
    let (name, options) = match asked {
        Tsuji::Tune(it) => ("tune", it.into_options()),
        Tsuji::Lab { asked } => asked.into_options(),
    };
    let checked = match name {
        "handover" => handover::check_transports(&options.transports),
        _ => matrix::check_transports(&options.transports),
    };
    let Err(error) = checked else { return Ok((name, options)) };
    let experiment = command.find_subcommand_mut("lab").and_then(|it| it.find_subcommand_mut(name));
    Err(match experiment {
        Some(it) => it.error(ErrorKind::InvalidValue, error),
        None => command.error(ErrorKind::InvalidValue, error),
    })
}

/// What is said of an experiment that there is not.
fn unknown(command: &mut clap::Command, words: &[String]) -> Option<clap::Error> {
    let word =
        words.first().filter(|it| !it.starts_with('-') && !["help", "tune"].contains(&&***it))?;
    command.build();
    let lab = command.find_subcommand_mut("lab")?;
    let known: Vec<_> = lab.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    let error = format!("`{word}`: allowed are {} and tune", known.join(", "));
    (!known.contains(word)).then(|| lab.error(ErrorKind::InvalidSubcommand, error))
}

/// A number from 1 to this.
fn up_to(max: u64) -> clap::builder::RangedU64ValueParser<u64> {
    value_parser!(u64).range(1..=max)
}

fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => Some(1),
        "K" | "KiB" => Some(1 << 10),
        "M" | "MiB" => Some(1 << 20),
        _ => None,
    };
    let bytes = digits.parse::<usize>().ok().zip(unit).and_then(|(it, unit)| it.checked_mul(unit));
    bytes
        .filter(|it| (SIZE_MIN..=SIZE_MAX).contains(it))
        .ok_or_else(|| format!("allowed are {SIZE_MIN} to {SIZE_MAX} bytes, also as KiB or MiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expect: Result<&str, &str>) {
        let split: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let found = parse(&split).map(|(name, it)| match name {
            "latency" => {
                format!("{:?} {:?} {:?} {} {}", it.json, it.sizes, it.cases, it.blocks, it.count)
            }
            "budgets" => format!("{} {}", it.blocks, it.count),
            "matrix" => format!("{:?} {:?} {} {}", it.csv, it.transports, it.blocks, it.count),
            "tune" => format!("{:?} {} {}", it.output, it.force, it.count),
            "handover" => format!("{:?} {} {}", it.transports, it.handovers, it.seconds_max),
            "jitter" => format!("{:?} {:?} {}", it.rosout, it.words, it.count),
            "report" => format!("{:?} {:?} {:?}", it.files, it.html, it.svg),
            "all" => format!("{:?} {} {} {}", it.output, it.quick, it.force, it.placement.word()),
            "compare" => format!("{:?}", it.files),
            "camera" if it.input.is_some() => {
                format!("{:?} {:?} {}", it.input, it.topic, it.recorded_beat)
            }
            "camera" => format!("{:?} {:?} {}", it.cases, it.transports, it.count),
            _ => format!("{:?} {} {}", it.cases, it.blocks, it.count),
        });
        match (found, expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect, "{words}"),
            (Err(found), Err(part)) => {
                let found = found.to_string();
                assert!(found.contains(part), "{words}: {found}");
            }
            (found, _) => panic!("{words}: {found:?}"),
        }
    }

    #[test]
    fn the_command_is_well_made() {
        command().debug_assert();
    }

    #[test]
    fn options_are_understood() {
        check("budgets --quick", Ok("3 80"));
        check("handover", Ok("[] 180 600"));
        check("tune", Ok(r#""tsuji-policy.xml" false 90"#));
        check("all", Ok(r#""tsuji-lab" false false apart"#));
        check("all --quick --force --output a", Ok(r#""a" true true apart"#));
        check("all --quick --placement free", Ok(r#""tsuji-lab" true false free"#));
        check("compare a.json b.json", Ok(r#"["a.json", "b.json"]"#));
        check("tune --quick --force -o a.xml", Ok(r#""a.xml" true 25"#));
        check("matrix --quick", Ok("None [] 5 25"));
        check(
            "matrix --transports shm,raw:iceoryx2 --csv a.csv",
            Ok(r#"Some("a.csv") ["shm", "raw:iceoryx2"] 5 90"#),
        );
        check("jitter --quick", Ok(r#"None ["publish", "subscribe"] 125"#));
        let words = "jitter --rosout a.log --publish-word sent --subscribe-word=got";
        check(words, Ok(r#"Some("a.log") ["sent", "got"] 3000"#));
        let words = "report a.json b=c.json --html a.html --svg=plots";
        check(words, Ok(r#"["a.json", "b=c.json"] Some("a.html") Some("plots")"#));
        check("camera --cases raw-shm", Ok(r#"["raw-shm"] [] 500"#));
        check("bridge", Ok("[] 5 100000"));
        check("bridge --quick --cases in,out", Ok(r#"["in", "out"] 3 20000"#));
        let words = "camera --quick --transports cyclonedds,raw:cyclonedds";
        check(words, Ok(r#"[] ["cyclonedds", "raw:cyclonedds"] 40"#));
        check("camera --input a.mcap", Ok(r#"Some("a.mcap") None false"#));
        let words = "camera --input a.mcap --topic /left --recorded-beat";
        check(words, Ok(r#"Some("a.mcap") Some("/left") true"#));
        check("handover --quick --seconds-max 60", Ok("[] 20 60"));
        check("handover --handovers 10000", Ok("[] 10000 600"));
        check("handover --transports shm,zenoh", Ok(r#"["shm", "zenoh"] 180 600"#));
        check(
            "latency --json a.json --sizes 64,4KiB,2MiB --cases loan,two --count 10 --blocks=3",
            Ok(r#"Some("a.json") [64, 4096, 2097152] ["loan", "two"] 3 10"#),
        );
    }

    #[test]
    fn help_is_of_what_is_asked_for() {
        check("", Err("Usage: tsuji lab <EXPERIMENT>"));
        check("help", Err("Usage: tsuji lab <EXPERIMENT>"));
        check("help jitter", Err("Usage: tsuji lab jitter [OPTIONS]"));
        check("jitter --help", Err("[default: 3000; with --quick:"));
        check("camera --help", Err("with a block of samples in each [default: 5]"));
        check("tune --help", Err("Usage: tsuji tune [OPTIONS]"));
    }

    #[test]
    fn a_wrong_word_is_named_with_what_is_allowed() {
        check(
            "fast",
            Err(
                "`fast`: allowed are all, latency, jitter, camera, bridge, budgets, handover, matrix, report, compare and tune",
            ),
        );
        check("latency --fast", Err("unexpected argument '--fast'"));
        check("latency --rosout a.log", Err("unexpected argument '--rosout'"));
        check("all --json a", Err("unexpected argument '--json'"));
        check("report --html a.html", Err("<FILE.json>"));
        check("compare a.json", Err("2 values required"));
        check("latency a.json", Err("unexpected argument 'a.json'"));
        check("latency --json", Err("a value is required for '--json <FILE>'"));
        check("latency --sizes 64,1GB", Err("'1GB' for '--sizes <BYTES>': allowed are 8 to"));
        check("latency --sizes 4", Err("'4' for '--sizes <BYTES>': allowed are 8 to"));
        check("latency --blocks 0", Err("0 is not in 1..=1000"));
        let allowed = "--transports pigeon: allowed are inproc, raw:condvar, shm";
        check("matrix --transports shm,pigeon", Err(allowed));
        let allowed = "--transports inproc: allowed are shm, cyclonedds, fastdds, zenoh";
        check("handover --transports shm,inproc", Err(allowed));
        check(
            "handover --transports zenoh,zenoh",
            Err("--transports zenoh,zenoh: allowed are two or more"),
        );
        check("camera --topic /left", Err("--input <FILE>"));
        check("camera --recorded-beat", Err("--input <FILE>"));
        check("latency --count many", Err("invalid value 'many' for '--count <N>'"));
        check("latency --placement here", Err("[possible values: apart, together, free]"));
    }
}
