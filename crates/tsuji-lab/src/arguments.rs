//! The words after `tsuji lab`.

use std::path::{Path, PathBuf};

use crate::placement::Placement;
use crate::{handover, matrix};

/// What a user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// How pictures are passed.
    Passing(Options),
    /// Everything else that has a bar.
    Limits(Options),
    /// What it costs that a flow changes its road.
    Handover(Options),
    /// Every size, reliability and transport.
    Matrix(Options),
    /// How even a beat is, and how long its messages take; or what a log says of one.
    Cadence(Options),
    /// Pictures of a camera, raw and compressed.
    Camera(Options),
    /// Web clients at the bridge.
    Bridge(Options),
    /// What the transports between processes take here, as a policy.
    Tune(Options),
    /// What earlier runs measured, as a page, plots and tables.
    Report(Options),
    /// Every experiment, and one page of all.
    All(Options),
    /// Whether two runs agree.
    Compare(Options),
    /// How it is used.
    Help,
}

/// How much to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub(crate) output: Option<PathBuf>,
    /// Even if there is a file already.
    pub(crate) force: bool,
    /// Only these entrants of a matrix, ends of a camera's pictures and roads of a beat; all if empty.
    pub(crate) roads: Vec<String>,
    /// Only these sizes, where a case has sizes; those of the case if empty.
    pub(crate) sizes: Vec<usize>,
    /// Only cases whose names begin so; all if empty.
    pub(crate) cases: Vec<String>,
    /// Blocks of each carrier.
    pub(crate) blocks: usize,
    /// Samples of each carrier in a case.
    pub(crate) count: u64,
    /// Least rest of the receiver between two samples.
    pub(crate) pause_us: u64,
    /// Who runs on which processor.
    pub(crate) placement: Placement,
    /// A look instead of a measurement.
    pub(crate) quick: bool,
    /// Changes of a road in a case.
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

impl Options {
    /// Where the policy goes.
    pub(crate) fn policy(&self) -> &Path {
        self.output.as_deref().unwrap_or_else(|| Path::new(POLICY_FILE))
    }

    /// Where all goes.
    pub(crate) fn folder(&self) -> &Path {
        self.output.as_deref().unwrap_or_else(|| Path::new(ALL_FOLDER))
    }
}

/// From 64 bytes to 8 MB; 2,359,296 bytes are a picture of 1024 × 768 in three colours.
pub(crate) const SIZES: [usize; 7] = [64, 512, 4096, 65_536, 524_288, PICTURE_BYTES, 8 << 20];

/// The sizes by the road of an engine: one datagram, two, a picture, and as much as a receive buffer holds.
pub(crate) const ENGINE_SIZES: [usize; 4] = [64, 65_536, PICTURE_BYTES, 4 << 20];

/// A picture of 1024 × 768, bgr8.
pub(crate) const PICTURE_BYTES: usize = 1024 * 768 * 3;

/// Sizes that a user may ask for.
const SIZE_MIN: usize = 8;
const SIZE_MAX: usize = 256 << 20;

const BLOCKS: usize = 10;
const COUNT: u64 = 1000;
/// Short, so that a virtual processor that has nothing to do is not yet given back to the host.
const PAUSE_US: u64 = 40;
const PLACEMENT: Placement = Placement::Apart;
/// Starts of all that is no flow alone cost more.
const LIMITS_BLOCKS: usize = 7;
const QUICK_BLOCKS: usize = 5;
/// Where more would take a look longer than a minute.
const FEW_STARTS: usize = 3;
const QUICK_COUNT: u64 = 80;
pub(crate) const MATRIX_BLOCKS: usize = 5;
pub(crate) const MATRIX_COUNT: u64 = 90;
const MATRIX_QUICK_BLOCKS: usize = 5;
const MATRIX_QUICK_COUNT: u64 = 25;
/// Half a minute of a hundred a second.
const CADENCE_COUNT: u64 = 3000;
const CADENCE_QUICK_COUNT: u64 = 125;
/// As many as the article's.
const CAMERA_COUNT: u64 = 500;
const CAMERA_QUICK_COUNT: u64 = 40;
/// As many texts in each start as the article's clients send.
const BRIDGE_COUNT: u64 = 100_000;
const BRIDGE_QUICK_COUNT: u64 = 20_000;
/// Of each flow of `cadence` and `camera`: two runs of five whose starts differ by chance alone have intervals that meet, 99 times in 100.
const STARTS: usize = 5;
const POLICY_FILE: &str = "tsuji-policy.xml";
const ALL_FOLDER: &str = "tsuji-lab";
const HANDOVERS: u64 = 180;
const QUICK_HANDOVERS: u64 = 20;
const SECONDS_MAX: u64 = 600;

/// What `tsuji lab --help` says.
pub(crate) const HELP: &str = "\
Measures tsuji beside the raw carriers, in one run, interleaved, each started anew several times. How: docs/lab.md.

Usage: tsuji lab all [--quick] [--placement WORD] [--output DIR] [--force]
       tsuji lab passing [OPTIONS]
       tsuji lab limits [OPTIONS]
       tsuji lab handover [OPTIONS]
       tsuji lab matrix [OPTIONS]
       tsuji lab cadence [OPTIONS]
       tsuji lab camera [OPTIONS]
       tsuji lab bridge [OPTIONS]
       tsuji tune [OPTIONS]
       tsuji lab report FILE.json... [--html FILE] [--svg DIR] [--csv DIR]
       tsuji lab compare FIRST.json SECOND.json [--json FILE] [--html FILE] [--csv DIR]

  all      all of passing, cadence, camera, bridge, limits, handover and matrix, one after the other, and one page of
           them: the files go to the folder tsuji-lab. About an hour in full, --quick takes six minutes
  passing  how long a picture takes from publish() to a sleeping subscriber: six patterns, and
           sizes from 64 B to 8 MB by pointer, by loan and by ordinary publish; the last two also
           by the road cyclonedds, beside Cyclone DDS alone, the last one by fastdds and zenoh too;
           the patterns also by ROS 1, and these and the sizes by rclcpp on each middleware of the ROS 2
           that is sourced, where scripts/ros1 and scripts/rclcpp have built their nodes (TSUJI_LAB_PEERS)
  limits   throughput, small samples, allocations, memory, threads, descriptors, start-up, idling,
           also beside plain ROS 2 nodes, and what one that listens costs; a command beside
           pictures, actions and parameters, and what tsuji chooses once it is tuned
  handover  flows whose road is changed again and again while samples flow: what is lost, repeated or
           out of order, how late samples are then, and what is held; how soon a newcomer is on
           shared memory; publish and take on one thread
  matrix   payloads from 256 B to 4 MB, reliable and of best effort, by every transport and by the
           engines alone: latency at 10 Hz, throughput, memory and threads of both processes, with the
           figures of the paper on choosing DDS implementations beside. 20 minutes in full
  cadence  a short text a hundred times a second, by every road, by engines alone, iceoryx2 and a socket:
           how even the beat is, and how long each text takes, beside ROS 1, rclcpp and the figures of an article
           on it; then texts of other sizes, and other queues beside a callback that stands still. Fourteen
           minutes in full. With --rosout the same from a log of ROS 1
  camera   500 pictures of 640 × 480 every 30 ms, raw and as JPEG, inside one process, between two by each
           road, to and from a plain Cyclone DDS node, and by engines alone, iceoryx2 and a socket:
           received, mean and variance, processor time and context switches, beside the figures of an
           article on ROS 2. Six minutes in full. With --input the pictures of a recording
  bridge   web clients at tsuji bridge: 100,000 texts by WebSocket, TCP and UDP until the last is in another process,
           by a client that is fast, one that does as those of an article on rosbridge_server did, and these
           themselves where Python is here, with its figures beside; texts to a client, messages there and back,
           pictures to one client and to 50, and what clients that come and go leave; beside rosbridge_server of
           the ROS 2 or ROS 1 that is sourced. Five minutes in full
  tune     the transports between processes, small and large, reliable and of best effort, in about two
           minutes; writes a policy file for this machine that puts the fastest first, with the
           figures in the names of its rules, where `tsuji policy explain` and `tsuji routes` show them
  report   what experiments wrote with --json, as one page of HTML with tables and plots, as SVG and as
           CSV; the page goes beside the first file if nothing else is said. docs/lab-report.md
  compare  two runs of one experiment: which of their figures differ by more than their intervals allow

Options:
  --quick         a look of about a minute; too short for verdicts to mean much
  --json FILE     writes the figures to FILE
  --html FILE     writes tables and plots to FILE, a page that needs nothing else
  --svg DIR       writes the plots to DIR, one file each
  --csv DIR       writes tables and all values to DIR; of a matrix also FILE, for its cells
  --output PATH   where the policy of tune goes [default: tsuji-policy.xml], or the folder of all [default: tsuji-lab]
  --force         also if there is a file, or files in the folder, already
  --roads NAMES   only these in a matrix, camera or cadence, with commas between: inproc, shm,
                  cyclonedds, fastdds, zenoh, raw:condvar, raw:unix-socket, raw:iceoryx2,
                  raw:cyclonedds, raw:fastdds, raw:zenoh; of the pairs of handover two or more of shm,
                  cyclonedds, fastdds, zenoh
  --cases NAMES   only cases whose names begin with one of NAMES, with commas between
  --sizes BYTES   only these sizes, with commas between, such as 64,4KiB,2359296
  --blocks N      starts of each carrier, with a block of samples in each; the cases have their turn once in every start
                  [default: 10; of limits 7; of matrix, tune, cadence, camera, bridge and with --quick: 5,
                  of limits, cadence and bridge then 3]
  --placement WORD
                  who runs on which processor: apart, the sender on the first of those allowed and receivers on the
                  others; together, all on the first; free, as the system likes [default: apart]
  --pause N       µs that pass at least before the next sample, for the receiver to rest
                  [default: 40]
  --count N       samples of each carrier in a case, of all starts together [default: 1000, quick: 80; of
                  matrix and tune 90, quick: 25; of cadence 3000, quick: 125; of camera 500, quick: 40]; of bridge texts of
                  each start, and clients of connects [default: 100000, quick: 20000]
  --handovers N   changes of the road in a case [default: 180, quick: 20]
  --seconds-max N a case of handovers, and connects of bridge, end after so long, with as many as there were
                  [default: 600]
  --rosout FILE   of cadence: reads this rosout.log of ROS 1, or what its screen showed, and measures nothing
  --publish-word WORD, --subscribe-word WORD
                  what its lines say of a message published, and received [default: publish, subscribe]
  --input FILE    of camera: films the pictures of this recording, as `tsuji record` or rosbag2 writes one:
                  at most 500 and 256 MB of sensor_msgs/msg/Image, raw, and as JPEG if they are bgr8, rgb8 or
                  mono8; or of CompressedImage in JPEG, as they are
  --topic NAME    those of this topic, where FILE has pictures on several
  --recorded-beat as far apart as they were recorded [default: one every 30 ms]
  --help          this text

Ctrl-C ends it and keeps what is measured. Exit code: 0, or 1 when something was lost or could not
be measured, 2 for wrong usage, 130 after Ctrl-C. A bar that is not met is not an error.
";

/// What may be said of all experiments at once.
const OF_ALL: [&str; 7] = ["--quick", "--placement", "--output", "-o", "--force", "--help", "-h"];

/// Reads the words. An error says what is wrong and what is allowed.
pub(crate) fn parse(words: &[String]) -> Result<Asked, String> {
    let (command, rest) = match words.split_first() {
        None => return Ok(Asked::Help),
        Some((command, rest)) => (command.as_str(), rest),
    };
    let asked = match command {
        "passing" => Asked::Passing,
        "limits" => Asked::Limits,
        "handover" => Asked::Handover,
        "matrix" => Asked::Matrix,
        "cadence" => Asked::Cadence,
        "camera" => Asked::Camera,
        "bridge" => Asked::Bridge,
        "tune" => Asked::Tune,
        "report" => Asked::Report,
        "compare" => Asked::Compare,
        "all" => Asked::All,
        "help" | "--help" | "-h" => return Ok(Asked::Help),
        other => {
            return Err(format!(
                "`{other}`: allowed are all, passing, limits, handover, matrix, cadence, camera, bridge, tune, report and compare"
            ));
        }
    };
    let mut options = Options {
        json: None,
        csv: None,
        html: None,
        svg: None,
        files: vec![],
        output: None,
        force: false,
        roads: vec![],
        sizes: vec![],
        cases: vec![],
        blocks: 0,
        count: 0,
        pause_us: PAUSE_US,
        placement: PLACEMENT,
        quick: false,
        handovers: 0,
        seconds_max: SECONDS_MAX,
        rosout: None,
        words: ["publish", "subscribe"].map(str::to_owned),
        input: None,
        topic: None,
        recorded_beat: false,
    };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let mut value = || {
            let value = joined.clone().or_else(|| rest.next().cloned());
            value.ok_or_else(|| format!("{name} needs a value"))
        };
        if command == "all" && !OF_ALL.contains(&name) {
            return Err(format!("`{name}` is no option of all; allowed are {}", OF_ALL.join(", ")));
        }
        match name {
            "--quick" => options.quick = true,
            "--help" | "-h" => return Ok(Asked::Help),
            "--json" => options.json = Some(value()?.into()),
            "--output" | "-o" => options.output = Some(value()?.into()),
            "--force" => options.force = true,
            "--csv" => options.csv = Some(value()?.into()),
            "--html" => options.html = Some(value()?.into()),
            "--svg" => options.svg = Some(value()?.into()),
            file if matches!(command, "report" | "compare") && !file.starts_with('-') => {
                options.files.push(word.into())
            }
            "--roads" => options.roads = value()?.split(',').map(str::to_owned).collect(),
            "--cases" => options.cases = value()?.split(',').map(str::to_owned).collect(),
            "--sizes" => options.sizes = value()?.split(',').map(size).collect::<Result<_, _>>()?,
            "--blocks" => options.blocks = positive(name, &value()?, 1000)? as usize,
            "--pause" => options.pause_us = positive(name, &value()?, 1_000_000)?,
            "--placement" => options.placement = Placement::of_word(&value()?)?,
            "--count" => options.count = positive(name, &value()?, 1_000_000)?,
            "--rosout" => options.rosout = Some(value()?.into()),
            "--publish-word" => options.words[0] = value()?,
            "--subscribe-word" => options.words[1] = value()?,
            "--input" => options.input = Some(value()?.into()),
            "--topic" => options.topic = Some(value()?),
            "--recorded-beat" => options.recorded_beat = true,
            "--handovers" => options.handovers = positive(name, &value()?, 1_000_000)?,
            "--seconds-max" => options.seconds_max = positive(name, &value()?, 1_000_000)?,
            other => return Err(format!("`{other}` is no option; `tsuji lab --help` lists them")),
        }
    }
    if command == "report" && options.files.is_empty() {
        return Err("report needs a FILE.json, as an experiment writes it with --json".to_owned());
    }
    if command == "compare" && options.files.len() != 2 {
        return Err("compare needs two FILE.json, of two runs of one experiment".to_owned());
    }
    match command {
        "handover" => handover::check_roads(&options.roads)?,
        _ => matrix::check_roads(&options.roads)?,
    }
    if options.rosout.is_some() && command != "cadence" {
        return Err(format!("--rosout is of cadence, not of {command}"));
    }
    if options.input.is_some() && command != "camera" {
        return Err(format!("--input is of camera, not of {command}"));
    }
    if options.input.is_none() && (options.topic.is_some() || options.recorded_beat) {
        return Err(
            "--topic and --recorded-beat are of --input FILE, which is not there".to_owned()
        );
    }
    let (blocks, count) = match (command, options.quick) {
        ("cadence", false) => (STARTS, CADENCE_COUNT),
        ("cadence", true) => (FEW_STARTS, CADENCE_QUICK_COUNT),
        ("camera", false) => (STARTS, CAMERA_COUNT),
        ("camera", true) => (STARTS, CAMERA_QUICK_COUNT),
        ("bridge", false) => (STARTS, BRIDGE_COUNT),
        ("bridge", true) => (FEW_STARTS, BRIDGE_QUICK_COUNT),
        ("matrix" | "tune", false) => (MATRIX_BLOCKS, MATRIX_COUNT),
        ("matrix" | "tune", true) => (MATRIX_QUICK_BLOCKS, MATRIX_QUICK_COUNT),
        ("limits", false) => (LIMITS_BLOCKS, COUNT),
        ("limits", true) => (FEW_STARTS, QUICK_COUNT),
        (_, false) => (BLOCKS, COUNT),
        (_, true) => (QUICK_BLOCKS, QUICK_COUNT),
    };
    if options.blocks == 0 {
        options.blocks = blocks;
    }
    if options.count == 0 {
        options.count = count;
    }
    if options.handovers == 0 {
        options.handovers = if options.quick { QUICK_HANDOVERS } else { HANDOVERS };
    }
    Ok(asked(options))
}

fn positive(name: &str, text: &str, max: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|it| (1..=max).contains(it));
    number.ok_or_else(|| format!("{name} {text}: allowed is a number from 1 to {max}"))
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
    bytes.filter(|it| (SIZE_MIN..=SIZE_MAX).contains(it)).ok_or_else(|| {
        format!("--sizes {text}: allowed are {SIZE_MIN} to {SIZE_MAX} bytes, also as KiB or MiB")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expect: Result<&str, &str>) {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let found = parse(&words).map(|it| match it {
            Asked::Passing(it) => format!(
                "passing {:?} {:?} {:?} {} {}",
                it.json, it.sizes, it.cases, it.blocks, it.count
            ),
            Asked::Limits(it) => format!("limits {} {}", it.blocks, it.count),
            Asked::Matrix(it) => {
                format!("matrix {:?} {:?} {} {}", it.csv, it.roads, it.blocks, it.count)
            }
            Asked::Tune(it) => format!("tune {:?} {} {}", it.policy(), it.force, it.count),
            Asked::Handover(it) => {
                format!("handover {:?} {} {}", it.roads, it.handovers, it.seconds_max)
            }
            Asked::Cadence(it) => format!("cadence {:?} {:?} {}", it.rosout, it.words, it.count),
            Asked::Report(it) => format!("report {:?} {:?} {:?}", it.files, it.html, it.svg),
            Asked::All(it) => format!("all {:?} {} {}", it.folder(), it.quick, it.force),
            Asked::Compare(it) => format!("compare {:?}", it.files),
            Asked::Camera(it) if it.input.is_some() => {
                format!("camera {:?} {:?} {}", it.input, it.topic, it.recorded_beat)
            }
            Asked::Camera(it) => format!("camera {:?} {:?} {}", it.cases, it.roads, it.count),
            Asked::Bridge(it) => format!("bridge {:?} {} {}", it.cases, it.blocks, it.count),
            Asked::Help => "help".to_owned(),
        });
        match (&found, expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect, "{words:?}"),
            (Err(found), Err(part)) => assert!(found.contains(part), "{words:?}: {found}"),
            _ => panic!("{words:?}: {found:?}"),
        }
    }

    #[test]
    fn options_are_understood() {
        check("", Ok("help"));
        check("passing --help", Ok("help"));
        check("limits --quick", Ok("limits 3 80"));
        check("handover", Ok("handover [] 180 600"));
        check("tune", Ok(r#"tune "tsuji-policy.xml" false 90"#));
        check("all", Ok(r#"all "tsuji-lab" false false"#));
        check("all --quick --force --output a", Ok(r#"all "a" true true"#));
        check("all --json a", Err("allowed are --quick"));
        check("all --quick --placement free", Ok(r#"all "tsuji-lab" true false"#));
        check("compare a.json b.json", Ok(r#"compare ["a.json", "b.json"]"#));
        check("compare a.json", Err("two FILE.json"));
        check("tune --quick --force -o a.xml", Ok(r#"tune "a.xml" true 25"#));
        check("matrix --quick", Ok("matrix None [] 5 25"));
        check(
            "matrix --roads shm,raw:iceoryx2 --csv a.csv",
            Ok(r#"matrix Some("a.csv") ["shm", "raw:iceoryx2"] 5 90"#),
        );
        check("cadence --quick", Ok(r#"cadence None ["publish", "subscribe"] 125"#));
        let words = "cadence --rosout a.log --publish-word sent --subscribe-word=got";
        check(words, Ok(r#"cadence Some("a.log") ["sent", "got"] 3000"#));
        check("passing --rosout a.log", Err("--rosout is of cadence, not of passing"));
        let words = "report a.json b=c.json --html a.html --svg=plots";
        check(words, Ok(r#"report ["a.json", "b=c.json"] Some("a.html") Some("plots")"#));
        check("camera --cases raw-shm", Ok(r#"camera ["raw-shm"] [] 500"#));
        check("bridge", Ok("bridge [] 5 100000"));
        check("bridge --quick --cases in,out", Ok(r#"bridge ["in", "out"] 3 20000"#));
        let words = "camera --quick --roads cyclonedds,raw:cyclonedds";
        check(words, Ok(r#"camera [] ["cyclonedds", "raw:cyclonedds"] 40"#));
        check("camera --input a.mcap", Ok(r#"camera Some("a.mcap") None false"#));
        let words = "camera --input a.mcap --topic /left --recorded-beat";
        check(words, Ok(r#"camera Some("a.mcap") Some("/left") true"#));
        check("handover --quick --seconds-max 60", Ok("handover [] 20 60"));
        check("handover --handovers 10000", Ok("handover [] 10000 600"));
        let words = "handover --roads shm,zenoh";
        check(words, Ok(r#"handover ["shm", "zenoh"] 180 600"#));
        check(
            "passing --json a.json --sizes 64,4KiB,2MiB --cases loan,two --count 10 --blocks=3",
            Ok(r#"passing Some("a.json") [64, 4096, 2097152] ["loan", "two"] 3 10"#),
        );
    }

    #[test]
    fn a_wrong_word_is_named_with_what_is_allowed() {
        check(
            "fast",
            Err(
                "`fast`: allowed are all, passing, limits, handover, matrix, cadence, camera, bridge, tune, report and compare",
            ),
        );
        check("passing --fast", Err("`--fast` is no option"));
        check("report --html a.html", Err("report needs a FILE.json"));
        check("report a.json --pdf", Err("`--pdf` is no option"));
        check("passing a.json", Err("`a.json` is no option"));
        check("passing --json", Err("--json needs a value"));
        check("passing --sizes 64,1GB", Err("--sizes 1GB: allowed are 8 to"));
        check("passing --sizes 4", Err("--sizes 4: allowed are 8 to"));
        check("passing --blocks 0", Err("--blocks 0: allowed is a number from 1 to 1000"));
        let allowed = "--roads pigeon: allowed are inproc, raw:condvar, shm";
        check("matrix --roads shm,pigeon", Err(allowed));
        let allowed = "--roads inproc: allowed are shm, cyclonedds, fastdds, zenoh";
        check("handover --roads shm,inproc", Err(allowed));
        check("handover --roads zenoh,zenoh", Err("--roads zenoh,zenoh: allowed are two or more"));
        check("passing --input a.mcap", Err("--input is of camera, not of passing"));
        check("camera --topic /left", Err("--topic and --recorded-beat are of --input FILE"));
        check("camera --recorded-beat", Err("--topic and --recorded-beat are of --input FILE"));
        check("passing --count many", Err("--count many: allowed"));
        let allowed = "--placement here: allowed are apart, together, free";
        check("passing --placement here", Err(allowed));
    }
}
