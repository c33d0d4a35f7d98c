//! Payloads from 256 B to 4 MB, reliable and of best effort, by every transport and by the engines alone: the
//! measurement with which Morita and Matsubara chose among implementations of DDS, on this machine.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::Options;
use crate::carrier::{Carrier, Flow, Role, Spec, absence};
use crate::crew::{Block, Crew, Crews, Stage, Stop, StreamCrew};
use crate::limits::Status;
use crate::report::{Judged, Report, Screen, Series, is_folder, matrix_csv};
use crate::road::{Road, Transport};
use crate::rounds::Round;
use crate::statistics::{Bar, Statistic, interval_of_median, mean, quantile, ratio, sorted};

/// By powers of two, as in the paper.
const SIZES: [usize; 15] = [
    256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576,
    2_097_152, 4_194_304,
];
const QUICK_SIZES: [usize; 3] = [256, 65_536, 4_194_304];

/// Ten a second, as in the paper.
const PERIOD_US: u64 = 100_000;
const QUICK_PERIOD_US: u64 = 5_000;

/// Contestants whose beats fit into one period so far apart send in turn within it. A sample of 4 MB is through by then.
const APART_US: u64 = 25_000;

/// What goes as fast as it is taken, in one block, in so many of the starts.
const STREAM_BYTES: u64 = 64 << 20;
const QUICK_STREAM_BYTES: u64 = 8 << 20;
const STREAM_SAMPLES: [u64; 2] = [10, 5_000];
const STREAM_STARTS: usize = 3;

/// Samples before the measurement.
const WARM_UP: u64 = 3;

/// One that is measured in each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entrant {
    /// As a user may name it.
    name: &'static str,
    carrier: Carrier,
    role: Role,
    road: Road,
    /// What carries if it is there.
    transport: Option<&'static str>,
    /// The engine that it is about, through tsuji or alone.
    engine: Option<Transport>,
}

fn entrants() -> Vec<Entrant> {
    let raw = |name, carrier, role| {
        let road = Road::Alone;
        Entrant { name, carrier, role, road, transport: None, engine: None }
    };
    let alone = |name, carrier, engine| Entrant {
        engine: Some(engine),
        ..raw(name, carrier, Role::Sender)
    };
    let mut all = vec![
        Entrant {
            name: "inproc",
            carrier: Carrier::TsujiPublish,
            role: Role::Both,
            road: Road::Alone,
            transport: Some("inproc"),
            engine: None,
        },
        raw("raw:condvar", Carrier::CondvarClone, Role::Both),
    ];
    for transport in Transport::ALL {
        let name = transport.word();
        all.push(Entrant {
            name,
            carrier: Carrier::TsujiPublish,
            role: Role::Sender,
            road: Road::By(transport),
            transport: Some(name),
            engine: (transport != Transport::Shm).then_some(transport),
        });
        all.push(match transport {
            Transport::Shm => raw("raw:iceoryx2", Carrier::IceoryxMemcpy, Role::Sender),
            Transport::CycloneDds => alone("raw:cyclonedds", Carrier::CycloneCopy, transport),
            Transport::FastDds => alone("raw:fastdds", Carrier::FastCopy, transport),
            Transport::Zenoh => alone("raw:zenoh", Carrier::ZenohCopy, transport),
        });
    }
    all.push(raw("raw:unix-socket", Carrier::UnixSocket, Role::Sender));
    all
}

/// What tsuji may take of the median of an engine alone.
pub(crate) const ENGINE_MEDIAN_MAX: f64 = 1.15;

/// An error says which of these names is of nobody, and what is allowed.
pub(crate) fn check_roads(names: &[String]) -> Result<(), String> {
    let known: Vec<_> = entrants().iter().map(|it| it.name).collect();
    let Some(name) = names.iter().find(|it| !known.contains(&it.as_str())) else { return Ok(()) };
    Err(format!("--roads {name}: allowed are {}", known.join(", ")))
}

/// What one side of a flow takes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Side {
    virtual_mb: f64,
    resident_mb: f64,
    threads: u64,
}

impl Side {
    fn of(id: u32) -> Result<Self, Stop> {
        let status = Status::of(id)?;
        let mb = |field| status.kib(field) as f64 * 1024.0 / 1e6;
        let threads = status.kib("Threads:");
        Ok(Self { virtual_mb: mb("VmSize:"), resident_mb: mb("VmRSS:"), threads })
    }
}

/// One entrant at one size and reliability.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) size_bytes: usize,
    pub(crate) is_reliable: bool,
    /// The transport that it is about, where it is one of tsuji.
    pub(crate) transport: Option<&'static str>,
    carrier: String,
    count: u64,
    pub(crate) lost: u64,
    /// Mean, median, 99th percentile and most of the time from `publish` to the callback, µs.
    pub(crate) passing_us: [f64; 4],
    /// As fast as they are taken, where it was measured.
    mb_per_s: Option<f64>,
    /// The process that sends, and the one that receives if it is another.
    sides: Vec<Side>,
}

impl Cell {
    const HEAD: &str = "   bytes QoS          carrier               count  lost     mean   median      \
        p99      max     MB/s    RSS MB     VM MB  threads";

    /// One of which nothing but the median is known.
    #[cfg(test)]
    pub(crate) fn of_median(
        size_bytes: usize,
        is_reliable: bool,
        transport: &'static str,
        median_us: f64,
    ) -> Self {
        Self {
            size_bytes,
            is_reliable,
            transport: Some(transport),
            carrier: format!("tsuji:{transport}"),
            count: 1,
            lost: 0,
            passing_us: [median_us; 4],
            mb_per_s: None,
            sides: Vec::new(),
        }
    }

    /// What may be lost and the transport still be worth its place: nothing, or a hundredth of best effort.
    pub(crate) fn lost_max(&self) -> u64 {
        if self.is_reliable { 0 } else { self.count / 100 }
    }

    fn qos(&self) -> &'static str {
        if self.is_reliable { "reliable" } else { "best_effort" }
    }

    fn line(&self) -> String {
        let [mean, median, p99, max] = self.passing_us;
        let rate = self.mb_per_s.map_or_else(|| "-".to_owned(), |it| format!("{it:.0}"));
        let sides =
            |of: &dyn Fn(&Side) -> String| self.sides.iter().map(of).collect::<Vec<_>>().join("/");
        format!(
            "{:>8} {:12} {:20} {:>6} {:>5} {mean:>8.1} {median:>8.1} {p99:>8.1} {max:>8.1} {rate:>8} \
             {:>9} {:>9} {:>8}",
            self.size_bytes,
            self.qos(),
            self.carrier,
            self.count,
            self.lost,
            sides(&|it| format!("{:.0}", it.resident_mb)),
            sides(&|it| format!("{:.0}", it.virtual_mb)),
            sides(&|it| it.threads.to_string()),
        )
    }

    fn to_json(&self) -> Value {
        let finite = |it: f64| it.is_finite().then_some(it);
        let [mean, median, p99, max] = self.passing_us.map(finite);
        let sides = self.sides.iter().map(|it| {
            json!({
                "vm_size_mb": it.virtual_mb, "vm_rss_mb": it.resident_mb, "threads": it.threads,
            })
        });
        json!({
            "size_bytes": self.size_bytes,
            "reliability": self.qos(),
            "carrier": self.carrier,
            "count": self.count,
            "lost": self.lost,
            "mean_us": mean,
            "median_us": median,
            "p99_us": p99,
            "max_us": max,
            "throughput_mb_per_s": self.mb_per_s,
            "processes": sides.collect::<Vec<_>>(),
        })
    }
}

/// What the paper's author measured: virtual and resident memory in MB and threads of the process that sent
/// 256 bytes (tables 2 and 4 of Morita and Matsubara, on ROS 2 Ardent).
const PAPER: [(&str, u32, u32, u32); 3] =
    [("FastRTPS", 460, 70, 7), ("OpenSplice", 1872, 44, 28), ("both, its prototype", 2201, 99, 34)];

/// Measures all cells that `options` asks for.
pub(crate) fn run(
    stage: &Stage,
    options: &Options,
    screen: &mut Screen<'_>,
    report: &mut Report,
) -> Result<(), Stop> {
    let asked =
        |it: &Entrant| options.roads.is_empty() || options.roads.iter().any(|name| name == it.name);
    let own: &[usize] = if options.quick { &QUICK_SIZES } else { &SIZES };
    let mut matrix = Matrix {
        stage,
        options,
        entrants: entrants().into_iter().filter(asked).collect(),
        sizes: if options.sizes.is_empty() { own.to_vec() } else { options.sizes.clone() },
        period_us: if options.quick { QUICK_PERIOD_US } else { PERIOD_US },
        streams: true,
        cells: Vec::new(),
    };
    let ended = matrix.measure(screen, report);
    for (name, size, resident, threads) in PAPER {
        screen.line(&format!(
            "the paper: {name}: {resident} MB resident, {size} MB virtual, {threads} threads"
        ));
    }
    if let Some(path) = options.csv.as_ref().filter(|it| !is_folder(it)) {
        write_csv(path, &matrix.cells)?;
    }
    ended
}

fn write_csv(path: &Path, cells: &[Cell]) -> Result<(), Stop> {
    let cells: Vec<_> = cells.iter().map(Cell::to_json).collect();
    let written = fs::write(path, matrix_csv(&cells));
    written.map_err(|error| Stop::Failed(format!("write {}: {error}", path.display())))
}

/// What is to be measured, and what was.
pub(crate) struct Matrix<'a> {
    stage: &'a Stage,
    options: &'a Options,
    /// Those that are here, as far as is known.
    entrants: Vec<Entrant>,
    sizes: Vec<usize>,
    /// From one sample to the next, at least.
    period_us: u64,
    /// Each is also measured as fast as it goes.
    streams: bool,
    pub(crate) cells: Vec<Cell>,
}

/// Who is measured at one size and reliability.
struct Contest {
    size: usize,
    is_reliable: bool,
    contestants: Vec<Contestant>,
}

/// An entrant, and what it brought so far.
struct Contestant {
    entrant: Entrant,
    /// What carries.
    carrier: String,
    /// One of each start.
    blocks: Vec<Block>,
    /// What both processes took in the end.
    sides: Vec<Side>,
    /// As fast as it went, of each start, MB in a second.
    mb_per_s: Vec<f64>,
    has_failed: bool,
}

impl<'a> Matrix<'a> {
    /// The transports between processes alone, one sample after the other.
    pub(crate) fn of_transports(stage: &'a Stage, options: &'a Options, sizes: &[usize]) -> Self {
        let is_transport = |it: &Entrant| matches!(it.road, Road::By(_));
        Self {
            stage,
            options,
            entrants: entrants().into_iter().filter(is_transport).collect(),
            sizes: sizes.to_vec(),
            period_us: 0,
            streams: false,
            cells: Vec::new(),
        }
    }

    /// Measures all cells, and says what they are.
    pub(crate) fn measure(
        &mut self,
        screen: &mut Screen<'_>,
        report: &mut Report,
    ) -> Result<(), Stop> {
        screen.line(Cell::HEAD);
        let ended = self.measure_all(screen, report);
        report.matrix(self.cells.iter().map(Cell::to_json).collect());
        ended
    }

    fn measure_all(&mut self, screen: &mut Screen<'_>, report: &mut Report) -> Result<(), Stop> {
        let kinds = self.sizes.iter().flat_map(|size| [true, false].map(|it| (*size, it)));
        let contestant = |entrant: &Entrant| Contestant {
            entrant: *entrant,
            carrier: entrant.name.to_owned(),
            blocks: Vec::new(),
            sides: Vec::new(),
            mb_per_s: Vec::new(),
            has_failed: false,
        };
        let contest = |(size, is_reliable)| Contest {
            size,
            is_reliable,
            contestants: self.entrants.iter().map(contestant).collect(),
        };
        let mut contests: Vec<Contest> = kinds.map(contest).collect();
        let stopped = self.rounds(&mut contests, screen, report);
        contests.iter().for_each(|it| self.tell(it, screen, report));
        stopped
    }

    /// Each cell once in every round.
    fn rounds(
        &mut self,
        contests: &mut [Contest],
        screen: &mut Screen<'_>,
        report: &mut Report,
    ) -> Result<(), Stop> {
        let all = contests.len();
        for round in Round::asked(self.options) {
            for at in round.order(all) {
                let contest = &mut contests[at];
                let place = format!("[{}/{all}] {}", at + 1, contest.name());
                self.cell(contest, round, &place, screen, report)?;
            }
            screen.line(&round.to_string());
        }
        Ok(())
    }

    fn spec(
        &self,
        entrant: &Entrant,
        size: usize,
        is_reliable: bool,
        flow: Flow,
        round: Round,
    ) -> Spec {
        let qos = if is_reliable { "reliable" } else { "best_effort" };
        let way = if flow == Flow::Paced { "paced" } else { "stream" };
        let number = round.number;
        let name = entrant.name.replace([':', '-'], "_");
        Spec {
            carrier: entrant.carrier,
            role: entrant.role,
            flow,
            size,
            pause_us: self.options.pause_us,
            period_us: self.period_us,
            road: entrant.road,
            is_reliable,
            receivers: 1,
            one_node: false,
            folder: self.stage.folder().to_owned(),
            name: format!("matrix_{name}_{qos}_{size}_{way}_{number}_{}", std::process::id()),
        }
    }

    /// One round of a cell: all stand ready at once, and send a block each, in turn or sample by sample in turn. Who fails is left out from there on.
    fn cell(
        &mut self,
        contest: &mut Contest,
        round: Round,
        place: &str,
        screen: &mut Screen<'_>,
        report: &mut Report,
    ) -> Result<(), Stop> {
        let (size, is_reliable) = (contest.size, contest.is_reliable);
        let mut skip = |screen: &mut Screen<'_>, it: &mut Contestant, stop: Stop| {
            let Stop::Failed(why) = stop else { return Err(stop) };
            let what = format!("{} {size} B, {}", it.entrant.name, qos_of(is_reliable));
            report.skipped(screen, &round.of(&what), &why);
            it.has_failed = true;
            Ok(())
        };
        let mut crews = Crews::default();
        let mut whose = Vec::new();
        let mut absent = Vec::new();
        for (at, it) in contest.contestants.iter_mut().enumerate() {
            let entrant = it.entrant;
            if it.has_failed || !self.entrants.contains(&entrant) {
                continue;
            }
            if let Some(why) = entrant.engine.and_then(absence) {
                absent.push((entrant, why));
                continue;
            }
            screen.progress(&format!("{place}: starting {}", entrant.name));
            match self.start(entrant, size, is_reliable, round) {
                Ok(Some(crew)) => {
                    it.carrier.clone_from(&crew.carrier);
                    crews.0.push(crew);
                    whose.push(at);
                }
                Ok(None) => {
                    let why = "not to be had here; `tsuji doctor` says why";
                    absent.push((entrant, why.to_owned()));
                }
                Err(stop) => skip(screen, it, stop)?,
            }
        }
        let each = round.part(self.options.count);
        let at_once = usize::try_from(self.period_us / APART_US).unwrap_or(1).max(1);
        for turn in round.order(whose.len()).chunks(at_once) {
            let names = turn.iter().map(|at| contest.contestants[whose[*at]].entrant.name);
            let names = names.collect::<Vec<_>>().join(", ");
            screen.progress(&format!("{place}: {each} by {names}"));
            let blocks = crews.blocks(turn, Duration::from_micros(APART_US), each);
            for (at, block) in turn.iter().zip(blocks) {
                let it = &mut contest.contestants[whose[*at]];
                match block {
                    Ok(fresh) => it.blocks.push(fresh),
                    Err(stop) => skip(screen, it, stop)?,
                }
            }
        }
        for (crew, at) in crews.0.iter().zip(&whose) {
            let it = &mut contest.contestants[*at];
            if !it.has_failed {
                it.sides = crew.ids().into_iter().map(Side::of).collect::<Result<_, _>>()?;
            }
        }
        drop(crews);
        for (entrant, why) in absent {
            report.absent(screen, entrant.name, &why);
            self.entrants.retain(|it| *it != entrant);
        }
        if !is_reliable || !self.streams || STREAM_STARTS <= round.number {
            return Ok(());
        }
        for at in whose {
            let it = &mut contest.contestants[at];
            if !it.has_failed {
                let rate = self.streamed(&it.entrant, size, round, place, screen, report)?;
                it.mb_per_s.extend(rate);
            }
        }
        Ok(())
    }

    /// Says what all rounds brought to a cell.
    fn tell(&mut self, contest: &Contest, screen: &mut Screen<'_>, report: &mut Report) {
        for it in contest.contestants.iter().filter(|it| !it.blocks.is_empty()) {
            let cell = cell_of(it, contest);
            let starts = it.blocks.iter().map(|block| &block.passing_us);
            report.series(Series::passing(contest.name(), &cell.carrier, starts));
            if contest.is_reliable {
                report.astray(cell.lost);
            }
            screen.line(&cell.line());
            self.cells.push(cell);
        }
        ratios(contest).into_iter().for_each(|it| report.judged(screen, it));
    }

    /// Nothing where the transport is not here.
    fn start(
        &self,
        entrant: Entrant,
        size: usize,
        is_reliable: bool,
        round: Round,
    ) -> Result<Option<Crew>, Stop> {
        let spec = self.spec(&entrant, size, is_reliable, Flow::Paced, round);
        let mut crew = Crew::start(self.stage, &spec)?;
        if entrant.transport.is_some_and(|it| crew.carrier != format!("tsuji:{it}")) {
            return Ok(None);
        }
        crew.block(WARM_UP)?;
        Ok(Some(crew))
    }

    /// MB in a second, as fast as they are taken and none lost.
    fn streamed(
        &self,
        entrant: &Entrant,
        size: usize,
        round: Round,
        place: &str,
        screen: &mut Screen<'_>,
        report: &mut Report,
    ) -> Result<Option<f64>, Stop> {
        // They have no stream: nothing bounds what waits for the receiver.
        let is_engine_alone = entrant.engine.is_some() && !entrant.carrier.is_tsuji();
        if entrant.role == Role::Both || is_engine_alone {
            return Ok(None);
        }
        screen.progress(&format!("{place}: {} as fast as it goes", entrant.name));
        let bytes = if self.options.quick { QUICK_STREAM_BYTES } else { STREAM_BYTES };
        let [least, most] = STREAM_SAMPLES;
        let count = (bytes / size as u64).clamp(least, most);
        let measured = || {
            let spec = self.spec(entrant, size, true, Flow::Stream, round);
            let mut crew = StreamCrew::start(self.stage, &spec)?;
            crew.block(count)?;
            crew.block(count)
        };
        match measured() {
            Ok(block) => {
                report.astray(block.missing);
                Ok(Some((count * size as u64) as f64 / block.seconds / 1e6))
            }
            Err(Stop::Interrupted) => Err(Stop::Interrupted),
            Err(Stop::Failed(why)) => {
                let what = format!("{} {size} B, as fast as it goes", entrant.name);
                report.skipped(screen, &round.of(&what), &why);
                Ok(None)
            }
        }
    }
}

/// Each engine through tsuji beside the same engine alone.
fn ratios(contest: &Contest) -> Vec<Judged> {
    let Contest { size, is_reliable, contestants } = contest;
    let qos = qos_of(*is_reliable);
    let mut all = Vec::new();
    for ours in contestants.iter().filter(|it| it.entrant.carrier.is_tsuji()) {
        let Some(engine) = ours.entrant.engine else { continue };
        let is_alone =
            |it: &&Contestant| it.entrant.engine == Some(engine) && !it.entrant.carrier.is_tsuji();
        let Some(theirs) = contestants.iter().find(is_alone) else { continue };
        let times = |it: &Contestant| -> Vec<Vec<f64>> {
            it.blocks.iter().map(|block| block.passing_us.clone()).collect()
        };
        let figure = ratio(Statistic::Median, &times(ours), &times(theirs));
        all.extend(figure.map(|figure| Judged {
            what: format!("{} {qos} median", engine.word()),
            of: format!("{} / {}", ours.carrier, theirs.carrier),
            size_bytes: Some(*size),
            figure,
            unit: "×",
            bar: Some(Bar::AtMost(ENGINE_MEDIAN_MAX)),
        }));
    }
    all
}

fn cell_of(it: &Contestant, contest: &Contest) -> Cell {
    let passing = it.blocks.iter().flat_map(|it| it.passing_us.iter().copied());
    let passing = sorted(passing.collect());
    let of = |quantile_of| quantile(&passing, quantile_of);
    Cell {
        size_bytes: contest.size,
        is_reliable: contest.is_reliable,
        transport: it.entrant.transport,
        carrier: it.carrier.clone(),
        count: it.blocks.iter().map(|it| it.count).sum(),
        lost: it.blocks.iter().map(|it| it.lost).sum(),
        passing_us: [mean(&passing), of(0.5), of(0.99), of(1.0)],
        mb_per_s: interval_of_median(&it.mb_per_s).map(|it| it.middle),
        sides: it.sides.clone(),
    }
}

/// As it stands in names.
fn qos_of(is_reliable: bool) -> &'static str {
    if is_reliable { "reliable" } else { "best effort" }
}

impl Contest {
    fn name(&self) -> String {
        let qos = if self.is_reliable { "reliable" } else { "best_effort" };
        format!("{} B, {qos}", self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_a_line_of_csv_with_nothing_where_there_is_no_figure() {
        let side = Side { virtual_mb: 200.0, resident_mb: 10.5, threads: 6 };
        for sides in [vec![side], vec![side; 2]] {
            let cell = Cell {
                size_bytes: 256,
                is_reliable: false,
                transport: Some("shm"),
                carrier: "tsuji:shm".to_owned(),
                count: 3,
                lost: 1,
                passing_us: [1.0, 2.0, f64::NAN, 4.0],
                mb_per_s: None,
                sides,
            };
            let told = cell.to_json();
            assert_eq!(told["p99_us"], Value::Null);
            let text = matrix_csv(&[told]);
            let [head, line] = *text.lines().collect::<Vec<_>>() else { panic!("{text}") };
            let columns = |it: &str| it.matches(',').count();
            assert_eq!(columns(line), columns(head), "{text}");
            assert!(line.starts_with("256,best_effort,tsuji:shm,3,1,1.0,2.0,,4.0,,"), "{text}");
        }
    }

    #[test]
    fn nobody_enters_twice() {
        let names: Vec<_> = entrants().iter().map(|it| it.name).collect();
        let mut once = names.clone();
        once.dedup();
        assert_eq!(names, once);
    }
}
