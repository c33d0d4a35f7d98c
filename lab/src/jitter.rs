//! A short text a hundred times a second: how even the beat is, and how long each takes to the callback.
//!
//! After an article of 2019 on ROS 1, which measured it by the lines of its log, and announced two more experiments: other
//! sizes, and other queues.

use std::time::Duration;

use crate::arguments::Options;
use crate::budgets::Run;
use crate::crew::{Child, Stage, Stop, check_length};
use crate::peers::{Peers, Site};
use crate::placement::Place;
use crate::report::{At, Cell, Report, Series, Table};
use crate::rounds::{self, InRounds, Round};
use crate::route::{self, Route, TsujiTransport};
use crate::statistics::{quantile, sorted};
use crate::transport::{Peer, Transport, Way};

mod beat;
mod rosout;
mod speaking;

use beat::{Beat, Beats, Spread};
pub(crate) use speaking::BeatPart;

/// Measures what `options` asks for, or reads a log.
pub(crate) fn run(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let options = run.options;
    match &options.rosout {
        Some(log) => rosout::analyse(log, options, run.screen, run.report),
        None => {
            check_length(options.count, "texts", options.count * PERIOD.as_micros() as u64)?;
            measure(run)
        }
    }
}

/// A case of several flows, which have a table together.
struct Case {
    name: &'static str,
    flows: fn(&Options) -> Result<Vec<Flow>, Stop>,
    tell: fn(&mut Run<'_, '_>, &[Box<Talk<'_>>]),
}

const CASES: [Case; 3] = [
    Case { name: "jitter", flows: by_transports, tell: tell_transports },
    Case { name: "payload", flows: of_sizes, tell: tell_payloads },
    Case { name: "queue", flows: of_depths, tell: tell_queues },
];

/// The beat of the article.
const PERIOD: Duration = Duration::from_millis(10);
const TEXT: &str = "Test msg";
const DEPTH: u32 = 10;

/// What the article found by ROS 1 on a virtual machine: the interval's mean in ms, its deviation in µs, how far it was off
/// at most in ms, and mean, deviation and most of what a message took, in µs.
const AUTHORS: [f64; 6] = [10.0, 400.0, 2.0, 300.0, 90.0, 3000.0];
const AUTHORS_EARLY: f64 = 11.0;

/// Texts that are sent in a row, all of one flow.
#[derive(Clone)]
struct Flow {
    name: String,
    way: Way,
    /// Both ends in one process.
    is_one: bool,
    bytes: usize,
    depth: u32,
    /// The subscription begins when the publisher already speaks.
    is_late: bool,
    /// So long the callback takes once, in the middle.
    pause: Duration,
    /// Where another program plays its ends: as what.
    peer: Option<Transport>,
    /// What is said to nodes of ROS 1 before their own words.
    words: &'static [&'static str],
}

impl Flow {
    fn new(name: impl Into<String>, way: Way) -> Self {
        let (bytes, pause) = (TEXT.len(), Duration::ZERO);
        let name = name.into();
        let (is_one, is_late, peer, words) = (false, false, None, &[][..]);
        Self { name, way, is_one, bytes, depth: DEPTH, is_late, pause, peer, words }
    }

    /// The same where its ends are started there.
    fn at(&self, site: Site<'_>) -> Self {
        let name = match (self.peer, site) {
            (Some(peer), Site::Rclcpp(it)) => format!("jitter-{}", peer.on(&it.name)),
            _ => self.name.clone(),
        };
        Self { name, ..self.clone() }
    }

    /// What a user may name of it.
    fn route(&self) -> &'static str {
        if self.is_one { "inproc" } else { self.way.word() }
    }

    /// Starts both ends, and lets the one speak to the other.
    fn run(&self, stage: &Stage, count: u64, round: Round) -> Result<Beat, Stop> {
        let count = round.part(count);
        let name = format!("{}_{}", self.name, round.number).replace(['-', ':'], "_");
        let topic = route::of_this_run(stage.folder(), &name);
        let told = |role: &str| BeatPart {
            folder: stage.folder().to_owned(),
            way: self.way,
            role: role.to_owned(),
            name: name.clone(),
            topic: topic.clone(),
            bytes: self.bytes,
            depth: self.depth,
        };
        let (role, place) =
            if self.is_one { ("both", Place::Both) } else { ("speaker", Place::Sender) };
        let speaker = Child::open(&stage.at(place), &told(role));
        let mut speaker = speaker.map_err(|stop| stop.of("the speaker"))?;
        let listen = || -> Result<Child, Stop> {
            let stage = stage.at(Place::Receiver(0));
            let listener = Child::open(&stage, &told("listener"));
            listener.map_err(|stop| stop.of("the listener"))
        };
        let mut early = if self.is_one || self.is_late { None } else { Some(listen()?) };
        if !self.is_late {
            speaker.ask("meet")?;
        }
        if !self.pause.is_zero() {
            let pause = format!("pause {} {}", count / 2, self.pause.as_millis());
            early.as_mut().unwrap_or(&mut speaker).ask(&pause)?;
        }
        speaker.tell(&format!("speak {count} {}", PERIOD.as_micros()))?;
        let mut listener = if self.is_late { Some(listen()?) } else { early };
        let spoken = speaker.answer().map_err(|stop| stop.of("the speaker"))?;
        let heard = listener.as_mut().unwrap_or(&mut speaker).ask(&format!("heard {count}"));
        let heard = heard.map_err(|stop| stop.of("the listener"))?;
        Beat::read(&spoken, &heard).map_err(Stop::Failed)
    }
}

/// A flow, and what it brought so far.
struct Talk<'a> {
    flow: Flow,
    /// Where its ends are started.
    site: Site<'a>,
    beats: Beats,
}

impl InRounds for Talk<'_> {
    fn name(&self) -> String {
        self.flow.name.clone()
    }

    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        let room = self.site.room(self.flow.words)?;
        let stage = room.as_ref().map_or_else(|| self.site.stage(), |it| &it.stage);
        self.beats.push(self.flow.run(stage, run.options.count, round)?);
        Ok(())
    }
}

fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let cases = run.wanted(CASES.iter().map(|it| (it.name, it)))?;
    let mut asked = Vec::new();
    for (_, case) in cases {
        match (case.flows)(run.options) {
            Ok(flows) => asked.push((case, flows)),
            Err(stop) => run.part(case.name, Err(stop))?,
        }
    }
    let transports: Vec<_> =
        asked.iter().flat_map(|(_, flows)| flows).filter_map(|it| it.peer).collect();
    let stage = run.stage;
    let peers = Peers::find(run, &transports)?;
    let mut talks = Vec::new();
    let mut parts = Vec::new();
    for (case, flows) in asked {
        let first = talks.len();
        talks.extend(here(run, flows, stage, &peers));
        parts.push((case, first..talks.len()));
    }
    let stopped = rounds::measure(run, Round::asked(run.options), &mut talks);
    for (case, part) in parts {
        let talks = &talks[part];
        if talks.iter().any(|it| !it.beats.is_empty()) {
            talks.iter().for_each(|it| keep(run.report, &it.flow.name, &it.beats));
            (case.tell)(run, talks);
        }
    }
    stopped
}

/// Those of `flows` that can be on this machine, of rclcpp one for each middleware. Of the others it is told why they cannot;
/// of a peer that is not here that is told already.
fn here<'a>(
    run: &mut Run<'_, '_>,
    flows: Vec<Flow>,
    stage: &'a Stage,
    peers: &'a Peers,
) -> Vec<Box<Talk<'a>>> {
    let mut here = Vec::new();
    for flow in flows {
        if let Some(why) = flow.way.absence() {
            run.report.absent(run.screen, &flow.name, &why);
            continue;
        }
        let own = || vec![Site::Own(stage)];
        let sites = flow.peer.map_or_else(own, |it| peers.sites(stage, it));
        here.extend(sites.into_iter().map(|site| {
            let (flow, beats) = (flow.at(site), Beats::default());
            Box::new(Talk { flow, site, beats })
        }));
    }
    here
}

/// By each transport and each peer, the subscriber starting late as in the article.
fn by_transports(options: &Options) -> Result<Vec<Flow>, Stop> {
    let names = &options.transports;
    let asked = |it: &Flow| options.wants_transport(it.route());
    let mut found: Vec<Flow> = flows().into_iter().filter(asked).collect();
    if found.is_empty() {
        let known: Vec<_> = flows().iter().map(Flow::route).collect();
        return Err(Stop::Failed(format!("no such transport; there are {}", known.join(", "))));
    }
    if names.is_empty() {
        found.extend(by_ros1().chain([by_rclcpp()]));
    }
    Ok(found)
}

/// The article's own: between two nodes of ROS 1, as it did it, and with the option that ROS 1 has for small messages.
fn by_ros1() -> impl Iterator<Item = Flow> {
    let ways = [("jitter-roscpp", &[][..]), ("jitter-roscpp_nodelay", &["--tcp-nodelay"])];
    ways.into_iter().map(|(name, words)| Flow {
        is_late: true,
        peer: Some(Transport::Roscpp),
        words,
        ..Flow::new(name, Way::Tsuji(Route::Alone))
    })
}

/// Between two nodes of rclcpp.
fn by_rclcpp() -> Flow {
    let flow = Flow::new("jitter-rclcpp", Way::Tsuji(Route::Alone));
    Flow { is_late: true, peer: Some(Transport::Rclcpp), ..flow }
}

fn tell_transports(run: &mut Run<'_, '_>, talks: &[Box<Talk<'_>>]) {
    let mut rows: Vec<_> = told(talks).map(|it| row(&it.flow, &it.beats)).collect();
    rows.push(authors_row());
    let columns = [
        "transport",
        "subscription",
        "published",
        "before the subscription",
        "received",
        "displaced",
        "lost",
        "late ms at most",
        "interval mean ms",
        "std µs",
        "off ms at most",
        "transmit mean µs",
        "std µs",
        "max µs",
        "median µs",
        "p99 µs",
    ];
    let note = format!(
        "{} The last row is of the article of 2019, by ROS 1 melodic on a virtual machine, from the times in its log.",
        of_starts(run)
    );
    let title = format!("`{TEXT}` at 100 Hz, the last {DEPTH} kept");
    run.report.table(run.screen, Table::new(title, &columns, rows, note));
}

/// Those that brought something.
fn told<'a>(talks: &'a [Box<Talk<'a>>]) -> impl Iterator<Item = &'a Talk<'a>> {
    talks.iter().map(|it| &**it).filter(|it| !it.beats.is_empty())
}

/// What is to be known of every table.
fn of_starts(run: &Run<'_, '_>) -> String {
    let starts = Round::asked(run.options).count();
    format!("All starts together, {starts} of each row unless it was cut short.")
}

/// Those of the case `jitter`.
fn flows() -> Vec<Flow> {
    let inside = Flow::new("jitter-inproc", Way::Tsuji(Route::Alone));
    let inside = Flow { is_one: true, ..inside };
    let routes = TsujiTransport::ALL.map(|it| (it.word(), Way::Tsuji(Route::By(it))));
    let peers = Peer::ALONE.map(|it| (it.word(), Way::Alone(it)));
    let late = routes.into_iter().chain(peers).map(|(name, way)| {
        let name = format!("jitter-{name}");
        Flow { is_late: true, ..Flow::new(name, way) }
    });
    // A stream is there once both ends are: what comes before that is of our making.
    let socket = Flow::new("jitter-raw:unix-socket-early", Way::Alone(Peer::UnixSocket));
    [inside].into_iter().chain(late).chain([socket]).collect()
}

fn row(flow: &Flow, beat: &Beats) -> Vec<Cell> {
    let [intervals, transmitted] = [beat.intervals_us(), beat.transmit_us()].map(|it| it.concat());
    let [interval, transmit] = [&intervals, &transmitted].map(|it| Spread::of(it));
    let transmitted = sorted(transmitted);
    let period_us = PERIOD.as_micros() as f64;
    let off = intervals.iter().map(|it| (it - period_us).abs()).fold(0.0, f64::max);
    let number = |it: u64| Cell::Number(it as f64);
    let mut row = vec![
        Cell::Text(beat.transport().to_owned()),
        Cell::Text(if flow.is_late { "late" } else { "early" }.to_owned()),
        number(beat.sum(Beat::published)),
        number(beat.sum(Beat::early)),
        number(beat.sum(Beat::received)),
        beat.displaced().map_or(Cell::Nothing, number),
        number(beat.sum(Beat::missing)),
        Cell::Number(beat.late_us() / 1000.0),
        Cell::Number(interval.mean / 1000.0),
        Cell::Number(interval.std),
        Cell::Number(off / 1000.0),
    ];
    row.extend([transmit.mean, transmit.std, transmit.max].map(Cell::Number));
    row.extend([0.5, 0.99].map(|it| Cell::Number(quantile(&transmitted, it))));
    row
}

fn authors_row() -> Vec<Cell> {
    let mut row = vec![Cell::Text("ROS 1, the article".to_owned())];
    row.extend([Cell::Text("late".to_owned()), Cell::Nothing]);
    row.push(Cell::Number(AUTHORS_EARLY));
    row.extend([Cell::Nothing, Cell::Nothing, Cell::Nothing, Cell::Nothing]);
    row.extend(AUTHORS.map(Cell::Number));
    row.extend([Cell::Nothing, Cell::Nothing]);
    row
}

/// Texts of other sizes.
fn of_sizes(options: &Options) -> Result<Vec<Flow>, Stop> {
    let all = [16, 256, 4096, 65_536, 262_144, 1 << 20];
    let asked = &options.sizes;
    let sizes = all.into_iter().filter(|it| asked.is_empty() || asked.contains(it));
    let flows = sizes.flat_map(|bytes| {
        [TsujiTransport::Shm, TsujiTransport::CycloneDds].map(|via| {
            let name = format!("payload-{}-{bytes}", via.word());
            Flow { bytes, ..Flow::new(name, Way::Tsuji(Route::By(via))) }
        })
    });
    Ok(flows.collect())
}

fn tell_payloads(run: &mut Run<'_, '_>, talks: &[Box<Talk<'_>>]) {
    tell_compared(run, "Texts of other sizes at 100 Hz", "bytes", talks, |flow| flow.bytes as f64);
}

/// Other queues, while the callback stands still for half a second.
fn of_depths(_: &Options) -> Result<Vec<Flow>, Stop> {
    let flows = [1, 10, 100].into_iter().flat_map(|depth| {
        [TsujiTransport::Shm, TsujiTransport::CycloneDds].map(|via| {
            let name = format!("queue-{}-{depth}", via.word());
            let pause = Duration::from_millis(500);
            Flow { depth, pause, ..Flow::new(name, Way::Tsuji(Route::By(via))) }
        })
    });
    Ok(flows.collect())
}

fn tell_queues(run: &mut Run<'_, '_>, talks: &[Box<Talk<'_>>]) {
    let title = "Other queues; the callback takes 500 ms once in each start";
    tell_compared(run, title, "queue", talks, |flow| flow.depth.into());
}

fn tell_compared(
    run: &mut Run<'_, '_>,
    title: &str,
    by: &str,
    talks: &[Box<Talk<'_>>],
    value: impl Fn(&Flow) -> f64,
) {
    let row = |Talk { flow, beats, .. }: &Talk<'_>| {
        let transmit = Spread::of(&beats.transmit_us().concat());
        let mut row = vec![
            Cell::Text(beats.transport().to_owned()),
            Cell::Number(value(flow)),
            Cell::Number(beats.sum(Beat::published) as f64),
            Cell::Number(beats.sum(Beat::received) as f64),
            beats.displaced().map_or(Cell::Nothing, |it| Cell::Number(it as f64)),
            Cell::Number(beats.sum(Beat::missing) as f64),
        ];
        row.extend([transmit.mean, transmit.std, transmit.max].map(Cell::Number));
        row
    };
    let rows = told(talks).map(row).collect();
    let columns = [
        "transport",
        by,
        "published",
        "received",
        "displaced",
        "lost",
        "transmit mean µs",
        "std µs",
        "max µs",
    ];
    run.report.table(run.screen, Table::new(title, &columns, rows, of_starts(run)));
}

/// Keeps all that was measured, and counts what is astray.
fn keep(report: &mut Report, case: &str, beats: &Beats) {
    if beats.is_empty() {
        return;
    }
    // How many the queue of a peer has let go, nobody says.
    report.astray(if beats.displaced().is_some() { beats.sum(Beat::missing) } else { 0 });
    for (what, at, starts) in [
        ("interval", At::Seconds(beats.seconds()), beats.intervals_us()),
        ("transmit", At::Number(beats.numbers()), beats.transmit_us()),
    ] {
        let (case, of) = (case.to_owned(), beats.transport().to_owned());
        report.series(Series { case, of, what, unit: "µs", at, starts });
    }
}
