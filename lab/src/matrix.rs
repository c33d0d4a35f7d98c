//! Payloads from 256 B to 4 MB, reliable and of best effort, by every transport and by the engines alone: the
//! measurement with which Morita and Matsubara chose among implementations of DDS, on this machine.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::budgets::Run;
use crate::budgets::Status;
use crate::crew::{Block, Crew, Crews, Stop, StreamCrew, latencies};
use crate::report::{Judged, Series, is_folder, matrix_csv};
use crate::rounds::Round;
use crate::route::{Route, TsujiTransport};
use crate::statistics::{Bar, Statistic, interval_of_median, mean, quantile, ratio, sorted};
use crate::transport::{Flow, Role, Spec, Transport, absence};

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
    transport: Transport,
    role: Role,
    route: Route,
    /// What carries if it is there.
    of_tsuji: Option<&'static str>,
    /// The engine that it is about, through tsuji or alone.
    engine: Option<TsujiTransport>,
}

fn entrants() -> Vec<Entrant> {
    let raw = |name, transport, role| {
        let route = Route::Alone;
        Entrant { name, transport, role, route, of_tsuji: None, engine: None }
    };
    let alone = |name, transport, engine| Entrant {
        engine: Some(engine),
        ..raw(name, transport, Role::Sender)
    };
    let mut all = vec![
        Entrant {
            name: "inproc",
            transport: Transport::TsujiPublish,
            role: Role::Both,
            route: Route::Alone,
            of_tsuji: Some("inproc"),
            engine: None,
        },
        raw("raw:condvar", Transport::CondvarClone, Role::Both),
    ];
    for of_tsuji in TsujiTransport::ALL {
        let name = of_tsuji.word();
        all.push(Entrant {
            name,
            transport: Transport::TsujiPublish,
            role: Role::Sender,
            route: Route::By(of_tsuji),
            of_tsuji: Some(name),
            engine: (of_tsuji != TsujiTransport::Shm).then_some(of_tsuji),
        });
        all.push(match of_tsuji {
            TsujiTransport::Shm => raw("raw:iceoryx2", Transport::IceoryxMemcpy, Role::Sender),
            TsujiTransport::CycloneDds => alone("raw:cyclonedds", Transport::CycloneCopy, of_tsuji),
            TsujiTransport::FastDds => alone("raw:fastdds", Transport::FastCopy, of_tsuji),
            TsujiTransport::Zenoh => alone("raw:zenoh", Transport::ZenohCopy, of_tsuji),
        });
    }
    all.push(raw("raw:unix-socket", Transport::UnixSocket, Role::Sender));
    all
}

/// What tsuji may take of the median of an engine alone.
pub(crate) const ENGINE_MEDIAN_MAX: f64 = 1.15;

/// An error says which of these names is of nobody, and what is allowed.
pub(crate) fn check_transports(names: &[String]) -> Result<(), String> {
    let known: Vec<_> = entrants().iter().map(|it| it.name).collect();
    let Some(name) = names.iter().find(|it| !known.contains(&it.as_str())) else { return Ok(()) };
    Err(format!("--transports {name}: allowed are {}", known.join(", ")))
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
    pub(crate) of_tsuji: Option<&'static str>,
    transport: String,
    count: u64,
    pub(crate) lost: u64,
    /// Mean, median, 99th percentile and most of the time from `publish` to the callback, µs.
    pub(crate) latency_us: [f64; 4],
    /// As fast as they are taken, where it was measured.
    mb_per_s: Option<f64>,
    /// The process that sends, and the one that receives if it is another.
    sides: Vec<Side>,
}

impl Cell {
    const HEAD: &str = "   bytes QoS          transport             count  lost   mean µs median µs    \
        p99 µs    max µs     MB/s    RSS MB     VM MB  threads";

    /// One of which nothing but the median is known.
    #[cfg(test)]
    pub(crate) fn of_median(
        size_bytes: usize,
        is_reliable: bool,
        of_tsuji: &'static str,
        median_us: f64,
    ) -> Self {
        Self {
            size_bytes,
            is_reliable,
            of_tsuji: Some(of_tsuji),
            transport: format!("tsuji:{of_tsuji}"),
            count: 1,
            lost: 0,
            latency_us: [median_us; 4],
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
        let [mean, median, p99, max] = self.latency_us;
        let rate = self.mb_per_s.map_or_else(|| "-".to_owned(), |it| format!("{it:.0}"));
        let sides =
            |of: &dyn Fn(&Side) -> String| self.sides.iter().map(of).collect::<Vec<_>>().join("/");
        format!(
            "{:>8} {:12} {:20} {:>6} {:>5} {mean:>9.1} {median:>9.1} {p99:>9.1} {max:>9.1} {rate:>8} \
             {:>9} {:>9} {:>8}",
            self.size_bytes,
            self.qos(),
            self.transport,
            self.count,
            self.lost,
            sides(&|it| format!("{:.0}", it.resident_mb)),
            sides(&|it| format!("{:.0}", it.virtual_mb)),
            sides(&|it| it.threads.to_string()),
        )
    }

    fn to_json(&self) -> Value {
        let finite = |it: f64| it.is_finite().then_some(it);
        let [mean, median, p99, max] = self.latency_us.map(finite);
        let sides = self.sides.iter().map(|it| {
            json!({
                "vm_size_mb": it.virtual_mb, "vm_rss_mb": it.resident_mb, "threads": it.threads,
            })
        });
        json!({
            "size_bytes": self.size_bytes,
            "reliability": self.qos(),
            "transport": self.transport,
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
pub(crate) fn run(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let options = run.options;
    let asked = |it: &Entrant| options.wants_transport(it.name);
    let own: &[usize] = if options.quick { &QUICK_SIZES } else { &SIZES };
    let mut matrix = Matrix {
        entrants: entrants().into_iter().filter(asked).collect(),
        sizes: options.sizes_or(own).to_vec(),
        period_us: if options.quick { QUICK_PERIOD_US } else { PERIOD_US },
        streams: true,
        cells: Vec::new(),
    };
    let ended = matrix.measure(run);
    for (name, size, resident, threads) in PAPER {
        run.screen.line(&format!(
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
pub(crate) struct Matrix {
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
    transport: String,
    /// One of each start.
    blocks: Vec<Block>,
    /// What both processes took in the end.
    sides: Vec<Side>,
    /// As fast as it went, of each start, MB in a second.
    mb_per_s: Vec<f64>,
    has_failed: bool,
}

impl Matrix {
    /// The transports between processes alone, one sample after the other.
    pub(crate) fn of_transports(sizes: &[usize]) -> Self {
        let is_transport = |it: &Entrant| matches!(it.route, Route::By(_));
        Self {
            entrants: entrants().into_iter().filter(is_transport).collect(),
            sizes: sizes.to_vec(),
            period_us: 0,
            streams: false,
            cells: Vec::new(),
        }
    }

    /// Measures all cells, and says what they are.
    pub(crate) fn measure(&mut self, run: &mut Run<'_, '_>) -> Result<(), Stop> {
        run.screen.line(Cell::HEAD);
        let ended = self.measure_all(run);
        run.report.matrix(self.cells.iter().map(Cell::to_json).collect());
        ended
    }

    fn measure_all(&mut self, run: &mut Run<'_, '_>) -> Result<(), Stop> {
        let kinds = self.sizes.iter().flat_map(|size| [true, false].map(|it| (*size, it)));
        let contestant = |entrant: &Entrant| Contestant {
            entrant: *entrant,
            transport: entrant.name.to_owned(),
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
        let stopped = self.rounds(&mut contests, run);
        contests.iter().for_each(|it| self.tell(it, run));
        stopped
    }

    /// Each cell once in every round.
    fn rounds(&mut self, contests: &mut [Contest], run: &mut Run<'_, '_>) -> Result<(), Stop> {
        let all = contests.len();
        for round in Round::asked(run.options) {
            for at in round.order(all) {
                let contest = &mut contests[at];
                let place = format!("[{}/{all}] {}", at + 1, contest.name());
                self.cell(contest, round, &place, run)?;
            }
            run.screen.line(&round.to_string());
        }
        Ok(())
    }

    fn spec(
        &self,
        run: &Run<'_, '_>,
        entrant: &Entrant,
        size: usize,
        is_reliable: bool,
        flow: Flow,
        round: Round,
    ) -> Spec {
        let qos = if is_reliable { "reliable" } else { "best_effort" };
        let way = if flow == Flow::Paced { "paced" } else { "stream" };
        let name = format!("matrix_{}_{qos}_{size}_{way}_{}", entrant.name, round.number);
        let Entrant { transport, role, route, .. } = *entrant;
        let period_us = self.period_us;
        Spec { role, flow, period_us, route, is_reliable, ..run.spec(transport, size, &name) }
    }

    /// One round of a cell: all stand ready at once, and send a block each, in turn or sample by sample in turn. Who fails is left out from there on.
    fn cell(
        &mut self,
        contest: &mut Contest,
        round: Round,
        place: &str,
        run: &mut Run<'_, '_>,
    ) -> Result<(), Stop> {
        let (size, is_reliable) = (contest.size, contest.is_reliable);
        let skip = |run: &mut Run<'_, '_>, it: &mut Contestant, stop: Stop| {
            let Stop::Failed(why) = stop else { return Err(stop) };
            let what = format!("{} {size} B, {}", it.entrant.name, qos_of(is_reliable));
            run.report.skipped(run.screen, &round.of(&what), &why);
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
            run.screen.progress(&format!("{place}: starting {}", entrant.name));
            match self.start(run, entrant, size, is_reliable, round) {
                Ok(Some(crew)) => {
                    it.transport.clone_from(&crew.transport);
                    crews.0.push(crew);
                    whose.push(at);
                }
                Ok(None) => {
                    let why = "not to be had here; `tsuji doctor` says why";
                    absent.push((entrant, why.to_owned()));
                }
                Err(stop) => skip(run, it, stop)?,
            }
        }
        let each = round.part(run.options.count);
        let at_once = usize::try_from(self.period_us / APART_US).unwrap_or(1).max(1);
        for turn in round.order(whose.len()).chunks(at_once) {
            let names = turn.iter().map(|at| contest.contestants[whose[*at]].entrant.name);
            let names = names.collect::<Vec<_>>().join(", ");
            run.screen.progress(&format!("{place}: {each} by {names}"));
            let blocks = crews.blocks(turn, Duration::from_micros(APART_US), each);
            for (at, block) in turn.iter().zip(blocks) {
                let it = &mut contest.contestants[whose[*at]];
                match block {
                    Ok(fresh) => it.blocks.push(fresh),
                    Err(stop) => skip(run, it, stop)?,
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
            run.report.absent(run.screen, entrant.name, &why);
            self.entrants.retain(|it| *it != entrant);
        }
        if !is_reliable || !self.streams || STREAM_STARTS <= round.number {
            return Ok(());
        }
        for at in whose {
            let it = &mut contest.contestants[at];
            if !it.has_failed {
                let rate = self.streamed(&it.entrant, size, round, place, run)?;
                it.mb_per_s.extend(rate);
            }
        }
        Ok(())
    }

    /// Says what all rounds brought to a cell.
    fn tell(&mut self, contest: &Contest, run: &mut Run<'_, '_>) {
        for it in contest.contestants.iter().filter(|it| !it.blocks.is_empty()) {
            let cell = cell_of(it, contest);
            let starts = it.blocks.iter().map(|block| &block.latency_us);
            run.report.series(Series::latency(contest.name(), &cell.transport, starts));
            if contest.is_reliable {
                run.report.astray(cell.lost);
            }
            run.screen.line(&cell.line());
            self.cells.push(cell);
        }
        ratios(contest).into_iter().for_each(|it| run.report.judged(run.screen, it));
    }

    /// Nothing where the transport is not here.
    fn start(
        &self,
        run: &Run<'_, '_>,
        entrant: Entrant,
        size: usize,
        is_reliable: bool,
        round: Round,
    ) -> Result<Option<Crew>, Stop> {
        let spec = self.spec(run, &entrant, size, is_reliable, Flow::Paced, round);
        let mut crew = Crew::start(run.stage, &spec)?;
        if entrant.of_tsuji.is_some_and(|it| crew.transport != format!("tsuji:{it}")) {
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
        run: &mut Run<'_, '_>,
    ) -> Result<Option<f64>, Stop> {
        // They have no stream: nothing bounds what waits for the receiver.
        let is_engine_alone = entrant.engine.is_some() && !entrant.transport.is_tsuji();
        if entrant.role == Role::Both || is_engine_alone {
            return Ok(None);
        }
        run.screen.progress(&format!("{place}: {} as fast as it goes", entrant.name));
        let bytes = if run.options.quick { QUICK_STREAM_BYTES } else { STREAM_BYTES };
        let [least, most] = STREAM_SAMPLES;
        let count = (bytes / size as u64).clamp(least, most);
        let measured = || {
            let spec = self.spec(run, entrant, size, true, Flow::Stream, round);
            let mut crew = StreamCrew::start(run.stage, &spec)?;
            crew.block(count)?;
            crew.block(count)
        };
        match measured() {
            Ok(block) => {
                run.report.astray(block.missing);
                Ok(Some((count * size as u64) as f64 / block.seconds / 1e6))
            }
            Err(Stop::Interrupted) => Err(Stop::Interrupted),
            Err(Stop::Failed(why)) => {
                let what = format!("{} {size} B, as fast as it goes", entrant.name);
                run.report.skipped(run.screen, &round.of(&what), &why);
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
    for ours in contestants.iter().filter(|it| it.entrant.transport.is_tsuji()) {
        let Some(engine) = ours.entrant.engine else { continue };
        let is_alone = |it: &&Contestant| {
            it.entrant.engine == Some(engine) && !it.entrant.transport.is_tsuji()
        };
        let Some(theirs) = contestants.iter().find(is_alone) else { continue };
        let figure = ratio(Statistic::Median, &latencies(&ours.blocks), &latencies(&theirs.blocks));
        all.extend(figure.map(|figure| Judged {
            what: format!("{} {qos} median", engine.word()),
            of: format!("{} / {}", ours.transport, theirs.transport),
            size_bytes: Some(*size),
            figure,
            unit: "×",
            bar: Some(Bar::AtMost(ENGINE_MEDIAN_MAX)),
        }));
    }
    all
}

fn cell_of(it: &Contestant, contest: &Contest) -> Cell {
    let latency = it.blocks.iter().flat_map(|it| it.latency_us.iter().copied());
    let latency = sorted(latency.collect());
    let of = |quantile_of| quantile(&latency, quantile_of);
    Cell {
        size_bytes: contest.size,
        is_reliable: contest.is_reliable,
        of_tsuji: it.entrant.of_tsuji,
        transport: it.transport.clone(),
        count: it.blocks.iter().map(|it| it.count).sum(),
        lost: it.blocks.iter().map(|it| it.lost).sum(),
        latency_us: [mean(&latency), of(0.5), of(0.99), of(1.0)],
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
                of_tsuji: Some("shm"),
                transport: "tsuji:shm".to_owned(),
                count: 3,
                lost: 1,
                latency_us: [1.0, 2.0, f64::NAN, 4.0],
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
