//! A short text a hundred times a second: how even the beat is, and how long each takes to the callback.
//!
//! After an article of 2019 on ROS 1, which measured it by the lines of its log, and announced two more experiments: other
//! sizes, and other queues.

use std::time::Duration;

use serde_json::json;

use crate::arguments::Options;
use crate::carrier::{Carrier, Peer, RCLCPP, Way};
use crate::crew::{Child, Stage, Stop, check_length};
use crate::limits::{Measure, Run};
use crate::rclcpp::Rclcpp;
use crate::report::{At, Cell, Report, Screen, Series, Table};
use crate::road::{self, Road, Transport};
use crate::ros1::Ros1;
use crate::statistics::{quantile, sorted};

mod beat;
mod rosout;
mod speaking;

use beat::{Beat, Spread};
pub(crate) use speaking::{SPEAKER, speak};

/// Measures what `options` asks for, or reads a log.
pub(crate) fn run(
    stage: &Stage,
    options: &Options,
    screen: &mut Screen<'_>,
    report: &mut Report,
) -> Result<(), Stop> {
    match &options.rosout {
        Some(log) => rosout::analyse(log, options, screen, report),
        None => {
            check_length(options.count, "texts", options.count * PERIOD.as_micros() as u64)?;
            Run { stage, options, screen, report }.all(CASES)
        }
    }
}

const CASES: &[(&str, Measure)] = &[("cadence", roads), ("payload", payloads), ("queue", queues)];

/// The beat of the article.
const PERIOD: Duration = Duration::from_millis(10);
const TEXT: &str = "Test msg";
const DEPTH: u32 = 10;

/// What the article found by ROS 1 on a virtual machine: the interval's mean in ms, its deviation in µs, how far it was off
/// at most in ms, and mean, deviation and most of what a message took, in µs.
const AUTHORS: [f64; 6] = [10.0, 400.0, 2.0, 300.0, 90.0, 3000.0];
const AUTHORS_EARLY: f64 = 11.0;

/// Texts that are sent in a row, all of one flow.
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
}

impl Flow {
    fn new(name: impl Into<String>, way: Way) -> Self {
        let (bytes, pause) = (TEXT.len(), Duration::ZERO);
        let name = name.into();
        Self { name, way, is_one: false, bytes, depth: DEPTH, is_late: false, pause }
    }

    /// What a user may name of it.
    fn road(&self) -> &'static str {
        if self.is_one { "inproc" } else { self.way.word() }
    }

    fn run(&self, run: &mut Run<'_, '_>) -> Result<Beat, Stop> {
        run.screen.progress(&format!("{}: starting", self.name));
        let count = run.options.count;
        let (folder, name) = (run.stage.folder(), self.name.replace(['-', ':'], "_"));
        let topic = road::of_this_run(folder, &name);
        let text = |role: &str| {
            json!({
                "folder": folder, "way": self.way.word(), "role": role, "name": name, "topic": topic,
                "bytes": self.bytes, "depth": self.depth,
            })
            .to_string()
        };
        let role = if self.is_one { "both" } else { "speaker" };
        let mut speaker = Child::start(run.stage, SPEAKER, &text(role))?;
        speaker.answer().map_err(|stop| stop.of("the speaker"))?;
        let listen = || -> Result<Child, Stop> {
            let mut listener = Child::start(run.stage, SPEAKER, &text("listener"))?;
            listener.answer().map_err(|stop| stop.of("the listener"))?;
            Ok(listener)
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
        run.screen.progress(&format!("{}: {count} texts", self.name));
        let spoken = speaker.answer().map_err(|stop| stop.of("the speaker"))?;
        let heard = listener.as_mut().unwrap_or(&mut speaker).ask(&format!("heard {count}"));
        let heard = heard.map_err(|stop| stop.of("the listener"))?;
        Beat::read(&spoken, &heard).map_err(Stop::Failed)
    }
}

/// By each road and each peer, the subscriber starting late as in the article.
fn roads(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let asked = |it: &Flow| {
        let names = &run.options.roads;
        names.is_empty() || names.iter().any(|name| *name == it.road())
    };
    let flows: Vec<Flow> = flows().into_iter().filter(asked).collect();
    if flows.is_empty() {
        let known: Vec<_> = self::flows().iter().map(Flow::road).collect();
        return Err(Stop::Failed(format!("no such road; there are {}", known.join(", "))));
    }
    let mut rows = Vec::new();
    let mut stopped = Ok(());
    for flow in flows {
        if let Some(why) = flow.way.absence() {
            run.report.absent(run.screen, &flow.name, &why);
            continue;
        }
        let beat = flow.run(run);
        stopped = tell(run, &flow, beat, &mut rows);
        if stopped.is_err() {
            break;
        }
    }
    if stopped.is_ok() && run.options.roads.is_empty() {
        stopped = by_ros1(run, &mut rows).and_then(|()| by_rclcpp(run, &mut rows));
    }
    if !rows.is_empty() {
        rows.push(authors_row());
        let columns = [
            "road",
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
        let table = Table {
            title: format!("`{TEXT}` at 100 Hz, the last {DEPTH} kept"),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
            note: Some(
                "The last row is of the article of 2019, by ROS 1 melodic on a virtual machine, from \
                 the times in its log."
                    .to_owned(),
            ),
        };
        run.report.table(run.screen, table);
    }
    stopped
}

/// The article's own: between two nodes of ROS 1, as it did it, and with the option that ROS 1 has for small messages.
fn by_ros1(run: &mut Run<'_, '_>, rows: &mut Vec<Vec<Cell>>) -> Result<(), Stop> {
    let ros1 = match Ros1::find(&run.stage.program) {
        Ok(ros1) => ros1,
        Err(why) => {
            run.report.absent(run.screen, "ros1", &why);
            return Ok(());
        }
    };
    for (name, words) in
        [("cadence-roscpp", &[][..]), ("cadence-roscpp_nodelay", &["--tcp-nodelay"])]
    {
        let flow = Flow { is_late: true, ..Flow::new(name, Way::Tsuji(Road::Alone)) };
        let beat = ros1.room(run.stage, words).and_then(|room| {
            let Run { options, screen, report, .. } = run;
            flow.run(&mut Run { stage: &room.stage, options, screen, report })
        });
        tell(run, &flow, beat, rows)?;
    }
    Ok(())
}

/// Between two nodes of rclcpp, on each middleware that is here.
fn by_rclcpp(run: &mut Run<'_, '_>, rows: &mut Vec<Vec<Cell>>) -> Result<(), Stop> {
    let rclcpp = match Rclcpp::find(&run.stage.program) {
        Ok(rclcpp) => rclcpp,
        Err(why) => {
            run.report.absent(run.screen, RCLCPP, &why);
            return Ok(());
        }
    };
    for it in rclcpp.present(run.stage, run.screen, run.report)? {
        let name = format!("cadence-{}", Carrier::Rclcpp.on(&it.name));
        let flow = Flow { is_late: true, ..Flow::new(name, Way::Tsuji(Road::Alone)) };
        let Run { options, screen, report, .. } = run;
        let beat = flow.run(&mut Run { stage: &it.stage, options, screen, report });
        tell(run, &flow, beat, rows)?;
    }
    Ok(())
}

/// Keeps what a flow brought, with its row; one that failed is skipped.
fn tell(
    run: &mut Run<'_, '_>,
    flow: &Flow,
    beat: Result<Beat, Stop>,
    rows: &mut Vec<Vec<Cell>>,
) -> Result<(), Stop> {
    match beat {
        Ok(beat) => {
            keep(run.report, &flow.name, &beat);
            rows.push(row(flow, &beat));
            Ok(())
        }
        Err(stop) => run.part(&flow.name, Err(stop)),
    }
}

/// Those of the case `cadence`.
fn flows() -> Vec<Flow> {
    let inside = Flow::new("cadence-inproc", Way::Tsuji(Road::Alone));
    let inside = Flow { is_one: true, ..inside };
    let roads = Transport::ALL.map(|it| (it.word(), Way::Tsuji(Road::By(it))));
    let peers = Peer::ALONE.map(|it| (it.word(), Way::Alone(it)));
    let late = roads.into_iter().chain(peers).map(|(name, way)| {
        let name = format!("cadence-{name}");
        Flow { is_late: true, ..Flow::new(name, way) }
    });
    // A stream is there once both ends are: what comes before that is of our making.
    let socket = Flow::new("cadence-raw:unix-socket-early", Way::Alone(Peer::UnixSocket));
    [inside].into_iter().chain(late).chain([socket]).collect()
}

fn row(flow: &Flow, beat: &Beat) -> Vec<Cell> {
    let transmitted = sorted(beat.transmit_us());
    let [interval, transmit] = [beat.intervals_us(), beat.transmit_us()].map(|it| Spread::of(&it));
    let period_us = PERIOD.as_micros() as f64;
    let off = beat.intervals_us().iter().map(|it| (it - period_us).abs()).fold(0.0, f64::max);
    let number = |it: u64| Cell::Number(it as f64);
    let mut row = vec![
        Cell::Text(beat.carrier.clone()),
        Cell::Text(if flow.is_late { "late" } else { "early" }.to_owned()),
        number(beat.published()),
        number(beat.early()),
        number(beat.received()),
        beat.displaced.map_or(Cell::Nothing, number),
        number(beat.missing()),
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
fn payloads(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let all = [16, 256, 4096, 65_536, 262_144, 1 << 20];
    let asked = run.options.sizes.clone();
    let sizes = all.into_iter().filter(|it| asked.is_empty() || asked.contains(it));
    let flows = sizes.flat_map(|bytes| {
        [Transport::Shm, Transport::CycloneDds].map(|transport| {
            let name = format!("payload-{}-{bytes}", transport.word());
            Flow { bytes, ..Flow::new(name, Way::Tsuji(Road::By(transport))) }
        })
    });
    let title = "Texts of other sizes at 100 Hz";
    compared(run, title, "bytes", flows.collect(), |flow| flow.bytes as f64)
}

/// Other queues, while the callback stands still for half a second.
fn queues(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let flows = [1, 10, 100].into_iter().flat_map(|depth| {
        [Transport::Shm, Transport::CycloneDds].map(|transport| {
            let name = format!("queue-{}-{depth}", transport.word());
            let pause = Duration::from_millis(500);
            Flow { depth, pause, ..Flow::new(name, Way::Tsuji(Road::By(transport))) }
        })
    });
    let title = "Other queues; the callback takes 500 ms once";
    compared(run, title, "queue", flows.collect(), |flow| flow.depth.into())
}

fn compared(
    run: &mut Run<'_, '_>,
    title: &str,
    by: &str,
    flows: Vec<Flow>,
    value: impl Fn(&Flow) -> f64,
) -> Result<(), Stop> {
    let mut rows = Vec::new();
    let mut stopped = Ok(());
    for flow in flows {
        match flow.run(run) {
            Ok(beat) => {
                keep(run.report, &flow.name, &beat);
                let transmit = Spread::of(&beat.transmit_us());
                let mut row = vec![
                    Cell::Text(beat.carrier.clone()),
                    Cell::Number(value(&flow)),
                    Cell::Number(beat.published() as f64),
                    Cell::Number(beat.received() as f64),
                    beat.displaced.map_or(Cell::Nothing, |it| Cell::Number(it as f64)),
                    Cell::Number(beat.missing() as f64),
                ];
                row.extend([transmit.mean, transmit.std, transmit.max].map(Cell::Number));
                rows.push(row);
            }
            Err(stop) => stopped = run.part(&flow.name, Err(stop)),
        }
        if stopped.is_err() {
            break;
        }
    }
    if !rows.is_empty() {
        let columns = [
            "road",
            by,
            "published",
            "received",
            "displaced",
            "lost",
            "transmit mean µs",
            "std µs",
            "max µs",
        ];
        let columns = columns.map(str::to_owned).to_vec();
        run.report.table(run.screen, Table { title: title.to_owned(), columns, rows, note: None });
    }
    stopped
}

/// Keeps all that was measured, and counts what is astray.
fn keep(report: &mut Report, case: &str, beat: &Beat) {
    // How many the queue of a peer has let go, nobody says.
    report.astray(if beat.displaced.is_some() { beat.missing() } else { 0 });
    for (what, at, values) in [
        ("interval", At::Seconds(beat.seconds()), beat.intervals_us()),
        ("transmit", At::Number(beat.numbers()), beat.transmit_us()),
    ] {
        let (case, of) = (case.to_owned(), beat.carrier.clone());
        report.series(Series { case, of, what, unit: "µs", at, values });
    }
}
