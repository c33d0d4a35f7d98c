//! Pictures of a camera at 33 Hz, raw and as JPEG, between the ends of different engines: how many come, how long they take,
//! and what both processes use meanwhile.
//!
//! After an article of 2019 on ROS 2 Dashing, which measured on an Ultra96 how long its camera's pictures took.

use std::collections::{HashMap, HashSet};

use crate::arguments::Options;
use crate::budgets::Run;
use crate::crew::{Child, Stop, check_length};
use crate::placement::Place;
use crate::report::{At, Cell, Series, Table};
use crate::rounds::{self, InRounds, Round};
use crate::route::{Route, TsujiTransport};
use crate::statistics::{mean, quantile, sorted, variance};
use crate::transport::{Came, Peer, Way};

mod filming;
mod input;
mod reel;
mod usage;

pub(crate) use filming::FilmPart;
use filming::Filmed;
use input::{Footage, Input};
pub(crate) use usage::seconds_used;
use usage::{Sampling, Told, Who};

/// Who films and who watches.
#[derive(Clone, Copy, Debug)]
struct Pair {
    name: &'static str,
    camera: Way,
    /// Nothing where both are in one process.
    watcher: Option<Way>,
    /// The transport that is set once both have met.
    set: Option<&'static str>,
    /// What has to carry, where tsuji is at an end.
    of_tsuji: Option<&'static str>,
    /// What a user may name of it: the publisher's end and the subscriber's.
    ends: [&'static str; 2],
    /// Which of [`AUTHORS`] stands beside, if one does.
    author: Option<usize>,
}

fn pairs() -> Vec<Pair> {
    let inside = |name, route, set, of_tsuji, author| Pair {
        name,
        camera: Way::Tsuji(route),
        watcher: None,
        set,
        of_tsuji: Some(of_tsuji),
        ends: [of_tsuji; 2],
        author: Some(author),
    };
    let mut all = vec![
        inside("inproc", Route::Alone, None, "inproc", 4),
        inside("inside-shm", Route::Settable, Some("shm"), "shm", 6),
    ];
    all.extend(TsujiTransport::ALL.map(|of_tsuji| {
        let (end, name) = (Way::Tsuji(Route::By(of_tsuji)), of_tsuji.word());
        let (watcher, of_tsuji) = (Some(end), Some(name));
        Pair { name, camera: end, watcher, set: None, of_tsuji, ends: [name; 2], author: Some(0) }
    }));
    let beside = |name, camera, watcher: Way, ends: [&'static str; 2], author| {
        let of_tsuji = ends.contains(&CYCLONE).then_some(CYCLONE);
        Pair { name, camera, watcher: Some(watcher), set: None, of_tsuji, ends, author }
    };
    let (ours, plain) = (Way::Tsuji(Route::Rtps), Way::Alone(Peer::Foreign));
    all.extend([
        beside("cyclonedds-plain", ours, plain, [CYCLONE, RAW_CYCLONE], Some(2)),
        beside("plain-cyclonedds", plain, ours, [RAW_CYCLONE, CYCLONE], Some(1)),
        beside("plain-plain", plain, plain, [RAW_CYCLONE; 2], Some(3)),
    ]);
    // Of Cyclone DDS it is two foreign nodes.
    for (peer, author) in [
        (Peer::FastDds, Some(0)),
        (Peer::Zenoh, None),
        (Peer::Iceoryx2, None),
        (Peer::UnixSocket, None),
    ] {
        let (end, name) = (Way::Alone(peer), peer.word());
        all.push(beside(name, end, end, [name; 2], author));
    }
    all
}

const CYCLONE: &str = "cyclonedds";
const RAW_CYCLONE: &str = "raw:cyclonedds";

/// What nobody can measure here, and why.
const ABSENT: [(&str, &str); 3] = [
    ("inside-cyclonedds and the like", "an engine is no transport of tsuji inside one process"),
    ("shm-cyclonedds and the like", "a flow of tsuji has one transport, which both ends share"),
    (
        "fastdds-plain and the like",
        "the foreign node of the laboratory is on Cyclone DDS, and meets tsuji by that",
    ),
];

/// What the article found: received of 500, mean in µs and variance in µs², raw and as JPEG.
const AUTHORS: [(&str, [f64; 3], [f64; 3]); 8] = [
    ("FastRTPS → FastRTPS", [500.0, 5975.0, 3_833_268.0], [498.0, 10_393.0, 7070.0]),
    ("OpenSplice → FastRTPS", [104.0, 9_342_667.0, 117_216e8], [501.0, 10_382.0, 35_529.0]),
    ("FastRTPS → OpenSplice", [499.0, 12_740.0, 195_160.0], [501.0, 10_839.0, 26_926.0]),
    ("OpenSplice → OpenSplice", [255.0, 4_272_293.0, 39_810e8], [501.0, 10_880.0, 32_629.0]),
    ("one process, FastRTPS, in process on", [500.0, 746.0, 17_854.0], [498.0, 10_136.0, 11_989.0]),
    (
        "one process, OpenSplice, in process on",
        [501.0, 1052.0, 8767.0],
        [501.0, 10_762.0, 25_161.0],
    ),
    (
        "one process, FastRTPS, in process off",
        [497.0, 6494.0, 6_028_690.0],
        [500.0, 10_954.0, 33_649.0],
    ),
    (
        "one process, OpenSplice, in process off",
        [501.0, 14_762.0, 167_672.0],
        [501.0, 17_417.0, 138_289.0],
    ),
];

/// A pair and what it sends.
#[derive(Clone, Copy, Debug)]
struct Case {
    pair: Pair,
    is_jpeg: bool,
}

impl Case {
    fn picture(self) -> &'static str {
        if self.is_jpeg { "jpeg" } else { "raw" }
    }

    fn name(self) -> String {
        format!("{}-{}", self.picture(), self.pair.name)
    }

    fn is_asked(self, options: &Options) -> bool {
        options.wants_case(&self.name())
            && self.pair.ends.iter().all(|end| options.wants_transport(end))
    }
}

/// Measures all cases that `options` asks for.
pub(crate) fn run(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let options = run.options;
    let all = pairs().into_iter();
    let all = all.flat_map(|pair| [false, true].map(|is_jpeg| Case { pair, is_jpeg }));
    let cases: Vec<Case> = all.filter(|it| it.is_asked(options)).collect();
    if cases.is_empty() {
        let known: Vec<_> = pairs().iter().map(|it| it.name).collect();
        let known = known.join(", ");
        return Err(Stop::Failed(format!("no such case; there are raw- and jpeg- of {known}")));
    }
    let footage = Input::of(options).map(|it| it.read()).transpose()?;
    let lasts_us = match &footage {
        Some(footage) => footage.reel.due_us(options.count),
        None => options.count * reel::PERIOD_US,
    };
    check_length(options.count, "pictures", lasts_us)?;
    if let Some(footage) = &footage {
        run.report.table(run.screen, footage.table());
    }
    let cases = with_pictures(run, cases, footage.as_ref());
    let bytes_max = footage.as_ref().map_or(reel::DRAWN_BYTES, |it| it.reel.bytes_max());
    let mut shots: Vec<_> = cases
        .into_iter()
        .filter(|case| {
            let absence = case.pair.camera.absence();
            absence.iter().for_each(|why| run.report.absent(run.screen, &case.name(), why));
            absence.is_none()
        })
        .map(|case| Box::new(Shot { case, bytes_max, film: Film::default(), told: Vec::new() }))
        .collect();
    let stopped = rounds::measure(run, Round::asked(options), &mut shots);
    if options.cases.is_empty() && options.transports.is_empty() {
        for (what, why) in ABSENT {
            run.report.absent(run.screen, what, why);
        }
    }
    let drawn = || "Pictures of 640 × 480, every 30 ms".to_owned();
    let title = footage.as_ref().map_or_else(drawn, Footage::title);
    shots.retain(|it| !it.film.filmed.is_empty());
    shots.iter().for_each(|it| keep(run, it.case, &it.film, &it.told));
    let rows = shots.iter().map(|it| it.film.row(it.case)).collect();
    let used =
        shots.iter().flat_map(|it| it.told.iter().filter_map(|told| usage_row(it.case, told)));
    tables(run, &title, rows, used.collect());
    stopped
}

/// A case, and what it brought so far.
struct Shot {
    case: Case,
    /// Those of the largest picture.
    bytes_max: u64,
    film: Film,
    told: Vec<Told>,
}

impl InRounds for Shot {
    fn name(&self) -> String {
        self.case.name()
    }

    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        let (film, told) = measure(run, self.case, self.bytes_max, round)?;
        self.film.append(film);
        match &mut *self.told {
            [] => self.told = told,
            all => all.iter_mut().zip(told).for_each(|(it, more)| it.append(more)),
        }
        Ok(())
    }
}

/// Those of `cases` that there are pictures for; of the others it is told why there are none.
fn with_pictures(run: &mut Run<'_, '_>, cases: Vec<Case>, footage: Option<&Footage>) -> Vec<Case> {
    let lack = [false, true].map(|is_jpeg| footage.and_then(|it| it.lacks(is_jpeg)));
    let why = |case: &Case| lack[usize::from(case.is_jpeg)].as_deref();
    let mut told = HashSet::new();
    for case in &cases {
        if let Some(why) = why(case).filter(|_| told.insert(case.picture())) {
            run.report.absent(run.screen, case.picture(), why);
        }
    }
    cases.into_iter().filter(|it| why(it).is_none()).collect()
}

fn measure(
    run: &Run<'_, '_>,
    case: Case,
    bytes_max: u64,
    round: Round,
) -> Result<(Film, Vec<Told>), Stop> {
    let Case { pair, is_jpeg } = case;
    let name = format!("{}_{}", case.name(), round.number).replace(['-', ':'], "_");
    let (first, count) = (round.before(run.options.count), round.part(run.options.count));
    let start = |role: &'static str, place: Place, end: Way| {
        let told = FilmPart {
            folder: run.stage.folder().to_owned(),
            role: role.to_owned(),
            end,
            is_jpeg,
            bytes_max,
            input: Input::of(run.options),
            // So named, the policy of the stage sends it by Cyclone DDS.
            name: format!("{}{name}", crate::route::BY_CYCLONE),
        };
        let child = Child::open(&run.stage.at(place), &told);
        child.map_err(|stop| stop.of(&format!("the {role}")))
    };
    let (role, place) = match pair.watcher {
        Some(_) => ("camera", Place::Sender),
        None => ("both", Place::Both),
    };
    // Some peers can only listen to one that is there.
    let mut camera = start(role, place, pair.camera)?;
    let watcher = pair.watcher.map(|end| start("watcher", Place::Receiver(0), end));
    let mut watcher = watcher.transpose()?;
    camera.ask("meet").map_err(|stop| stop.of("the camera"))?;
    if let Some(watcher) = &mut watcher {
        watcher.ask("meet").map_err(|stop| stop.of("the watcher"))?;
    }
    if let Some(of_tsuji) = pair.set {
        camera.ask(&format!("by {of_tsuji}"))?;
    }
    let mut whose = vec![Who::Process(role, camera.id())];
    whose.extend(watcher.as_ref().map(|it| Who::Process("watcher", it.id())));
    whose.push(Who::Machine);
    let sampling = Sampling::start(whose);
    let filmed = camera.ask_for::<Filmed>(&format!("film {first} {count}"));
    let seen = match (&filmed, &mut watcher) {
        (Err(Stop::Interrupted), _) | (Err(_), None) => Ok(Came::default()),
        (_, Some(watcher)) => watcher.ask_for(&format!("seen {}", first + count)),
        (_, None) => camera.ask_for(&format!("seen {}", first + count)),
    };
    let told = sampling.end();
    let filmed = filmed.map_err(|stop| {
        let came = seen.as_ref().map_or(0, |it| it.received.len());
        stop.of(&format!("the camera, after {came} pictures had come"))
    })?;
    let film = Film::read(first, filmed, seen.map_err(|stop| stop.of("the watcher"))?)?;
    match pair.of_tsuji {
        Some(expected) if film.transport.as_deref() != Some(expected) => {
            let transport = film.transport.as_deref().unwrap_or("nothing that is known");
            Err(Stop::Failed(format!("it goes by {transport}, not by {expected}")))
        }
        _ => Ok((film, told)),
    }
}

/// What both ends have noted. Times are those of the clock that they share, in ns.
#[derive(Clone, Debug, Default, PartialEq)]
struct Film {
    /// What carried, as far as tsuji was at an end.
    transport: Option<String>,
    /// When each was due, when its time began, when it was ready to be sent, and its bytes.
    filmed: Vec<[u64; 4]>,
    /// The number of each that came, and how long it took in µs.
    took_us: Vec<(u64, f64)>,
    /// Those that came once more.
    repeated: u64,
    damaged: u64,
    /// Those that newer ones pushed out of the queue, where that is known.
    displaced: Option<u64>,
    /// How many of each start were filmed, and how many came.
    starts: Vec<(usize, usize)>,
}

impl Film {
    /// What one start brought, whose first picture has the number `first`.
    fn read(first: u64, filmed: Filmed, seen: Came) -> Result<Self, String> {
        let mut film = Self {
            transport: seen.transport.or(filmed.transport),
            filmed: filmed.filmed,
            damaged: seen.damaged,
            displaced: seen.displaced,
            ..Self::default()
        };
        let began: HashMap<u64, u64> = (first..).zip(film.filmed.iter().map(|it| it[1])).collect();
        let mut numbers_seen = HashSet::new();
        for (number, at) in seen.received {
            let began =
                began.get(&number).ok_or_else(|| format!("no picture has number {number}"))?;
            if numbers_seen.insert(number) {
                film.took_us.push((number, at.saturating_sub(*began) as f64 / 1000.0));
            } else {
                film.repeated += 1;
            }
        }
        film.starts = vec![(film.filmed.len(), film.took_us.len())];
        Ok(film)
    }

    /// Puts behind it what the next start brought.
    fn append(&mut self, next: Self) {
        let is_first = self.starts.is_empty();
        self.transport = next.transport;
        self.displaced = match (is_first, self.displaced, next.displaced) {
            (true, _, next) => next,
            (false, before, next) => before.zip(next).map(|(before, next)| before + next),
        };
        self.filmed.extend(next.filmed);
        self.took_us.extend(next.took_us);
        self.repeated += next.repeated;
        self.damaged += next.damaged;
        self.starts.extend(next.starts);
    }

    /// Values of all pictures, or of all that came, parted as the starts were.
    fn parted(&self, mut values: Vec<f64>, part: fn(&(usize, usize)) -> usize) -> Vec<Vec<f64>> {
        let mut parted = Vec::new();
        for start in &self.starts {
            let rest = values.split_off(part(start).min(values.len()));
            parted.push(std::mem::replace(&mut values, rest));
        }
        parted
    }

    /// Those that did not come, and of which nobody says where they are.
    fn lost(&self) -> u64 {
        let missing = self.filmed.len().saturating_sub(self.took_us.len()) as u64;
        missing.saturating_sub(self.displaced.unwrap_or_default())
    }

    /// Of all pictures, in µs or bytes.
    fn each(&self, of: impl Fn(&[u64; 4]) -> f64) -> Vec<f64> {
        self.filmed.iter().map(of).collect()
    }

    fn late_us(&self) -> Vec<f64> {
        self.each(|[due, at, ..]| at.saturating_sub(*due) as f64 / 1000.0)
    }

    fn packing_us(&self) -> Vec<f64> {
        self.each(|[_, at, packed, _]| packed.saturating_sub(*at) as f64 / 1000.0)
    }

    fn row(&self, case: Case) -> Vec<Cell> {
        let took: Vec<f64> = self.took_us.iter().map(|it| it.1).collect();
        let (late, ordered) = (sorted(self.late_us()), sorted(took.clone()));
        let transport = match &self.transport {
            Some(it) => format!("tsuji:{it}"),
            None => case.pair.ends[0].to_owned(),
        };
        let text = |it: &str| Cell::Text(it.to_owned());
        let mut row = vec![text(case.picture()), text(case.pair.name), Cell::Text(transport)];
        row.extend(
            [
                self.filmed.len() as f64,
                took.len() as f64,
                mean(&took),
                variance(&took),
                quantile(&ordered, 0.99),
                quantile(&ordered, 1.0),
                mean(&self.packing_us()),
                mean(&self.each(|it| it[3] as f64)),
                quantile(&late, 1.0) / 1000.0,
            ]
            .map(number),
        );
        match case.pair.author.map(|it| AUTHORS[it]) {
            None => row.extend([const { Cell::Nothing }; 4]),
            Some((pair, raw, jpeg)) => {
                row.push(text(pair));
                row.extend((if case.is_jpeg { jpeg } else { raw }).map(number));
            }
        }
        row
    }
}

fn number(figure: f64) -> Cell {
    if figure.is_finite() { Cell::Number(figure) } else { Cell::Nothing }
}

/// Keeps all that was measured, and counts what is astray.
fn keep(run: &mut Run<'_, '_>, case: Case, film: &Film, told: &[Told]) {
    let (name, report) = (case.name(), &mut *run.report);
    // How many the queue of a peer has let go, nobody says.
    let lost = if film.displaced.is_some() { film.lost() } else { 0 };
    report.astray(lost + film.damaged + film.repeated);
    let numbers: Vec<u64> = film.took_us.iter().map(|it| it.0).collect();
    let every: Vec<u64> = (0..film.filmed.len() as u64).collect();
    let took = film.took_us.iter().map(|it| it.1).collect();
    let (of_filmed, of_came) = (|it: &(usize, usize)| it.0, |it: &(usize, usize)| it.1);
    for (what, numbers, starts) in [
        ("to the callback", numbers, film.parted(took, of_came)),
        ("encoding", every.clone(), film.parted(film.packing_us(), of_filmed)),
        ("late", every, film.parted(film.late_us(), of_filmed)),
    ] {
        if what != "encoding" || case.is_jpeg {
            let (case, of, at) = (name.clone(), case.pair.name.to_owned(), At::Number(numbers));
            report.series(Series { case, of, what, unit: "µs", at, starts });
        }
    }
    for it in told {
        for (what, unit, values) in [
            ("user", "%", &it.usage.user),
            ("system", "%", &it.usage.system),
            ("context switches", "1/s", &it.usage.switches),
        ] {
            let (case, of) = (name.clone(), it.who.name().to_owned());
            let (at, starts) = (At::Seconds(it.usage.seconds.clone()), vec![values.clone()]);
            report.series(Series { case, of, what, unit, at, starts });
        }
        if let Some(why) = &it.trouble {
            let what = format!("{name}, what the {} uses, from there on", it.who.name());
            report.absent(run.screen, &what, why);
        }
    }
}

fn usage_row(case: Case, told: &Told) -> Option<Vec<Cell>> {
    let whole = told.usage.whole?;
    let text = |it: &str| Cell::Text(it.to_owned());
    let mut row = vec![text(case.picture()), text(case.pair.name), text(told.who.name())];
    row.extend(whole.map(number));
    Some(row)
}

fn tables(run: &mut Run<'_, '_>, title: &str, rows: Vec<Vec<Cell>>, used: Vec<Vec<Cell>>) {
    if !rows.is_empty() {
        let columns = [
            "picture",
            "from-to",
            "transport",
            "filmed",
            "received",
            "mean µs",
            "variance µs²",
            "p99 µs",
            "max µs",
            "encoding mean µs",
            "bytes",
            "late ms at most",
            "the article",
            "received",
            "mean µs",
            "variance µs²",
        ];
        let starts = Round::asked(run.options).count();
        let note = "The last four columns are of the article of 2019: ROS 2 Dashing on an Ultra96, 500 pictures of \
                    640 × 480, in one process every 50 ms. JPEG counts the encoding in.";
        let title = format!("{title}, to the callback");
        let note =
            format!("All starts together, {starts} of each row unless it was cut short. {note}");
        run.report.table(run.screen, Table::new(title, &columns, rows, note));
    }
    if !used.is_empty() {
        let columns = ["picture", "from-to", "who", "user %", "system %", "context switches/s"];
        let note =
            "Of a process, 100 % are one processor; of the machine, as of vmstat, all of them.";
        let table = Table::new("What was used meanwhile", &columns, used, note);
        run.report.table(run.screen, table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_matched_by_number_whatever_is_missing() {
        let filmed = vec![
            [1000, 1000, 1000, 10],
            [31_000, 33_000, 34_000, 20],
            [61_000, 61_000, 61_000, 30],
            [91_000, 91_000, 91_000, 40],
        ];
        let seen = Came {
            received: vec![(3, 95_000), (1, 43_000), (1, 44_000)],
            damaged: 1,
            displaced: Some(1),
            transport: Some("shm".to_owned()),
        };
        let film = Film::read(0, Filmed { filmed, transport: None }, seen).unwrap();
        assert_eq!(film.took_us, [(3, 4.0), (1, 10.0)]);
        assert_eq!((film.lost(), film.repeated, film.damaged), (1, 1, 1));
        assert_eq!(
            (film.late_us(), film.packing_us()),
            (vec![0.0, 2.0, 0.0, 0.0], vec![0.0, 1.0, 0.0, 0.0])
        );
        let row = film.row(Case { pair: pairs()[0], is_jpeg: false });
        assert_eq!(row[3..7], [4.0, 2.0, 7.0, 9.0].map(Cell::Number));
        assert_eq!(row[13..], [500.0, 746.0, 17_854.0].map(Cell::Number));
    }

    #[test]
    fn starts_are_told_one_after_the_other() {
        let read = |first: u64, came: &[u64], displaced: Option<u64>| {
            let filmed = vec![[1000, 1000, 1000, 10], [2000, 2500, 2500, 10]];
            let received: Vec<_> = came.iter().map(|number| (*number, 5000)).collect();
            let seen = Came { received, displaced, ..Came::default() };
            Film::read(first, Filmed { filmed, transport: None }, seen).unwrap()
        };
        let mut film = Film::default();
        film.append(read(0, &[0, 1], Some(0)));
        film.append(read(2, &[3], Some(1)));
        assert_eq!(film.took_us, [(0, 4.0), (1, 2.5), (3, 2.5)]);
        assert_eq!((film.filmed.len(), film.lost(), film.displaced), (4, 0, Some(1)));
        let late = film.parted(film.late_us(), |it| it.0);
        assert_eq!(late, [[0.0, 0.5], [0.0, 0.5]]);
        let took = film.parted(film.took_us.iter().map(|it| it.1).collect(), |it| it.1);
        assert_eq!(took, [vec![4.0, 2.5], vec![2.5]]);
    }

    #[test]
    fn where_nothing_came_there_is_no_figure() {
        let filmed = Filmed { filmed: vec![[1; 4]], transport: Some("shm".to_owned()) };
        let film = Film::read(0, filmed, Came::default()).unwrap();
        let row = film.row(Case { pair: pairs()[0], is_jpeg: true });
        assert_eq!(film.transport.as_deref(), Some("shm"));
        assert_eq!((film.lost(), &row[5..9]), (1, &[const { Cell::Nothing }; 4][..]));
    }

    #[test]
    fn a_picture_that_was_not_filmed_is_said() {
        let seen = Came { received: vec![(0, 1)], ..Came::default() };
        let error = Film::read(0, Filmed::default(), seen).unwrap_err();
        assert!(error.contains("no picture has number 0"), "{error}");
    }

    #[test]
    fn every_case_has_a_name_of_its_own_and_only_figures_that_exist() {
        let names: std::collections::BTreeSet<_> = pairs().iter().map(|it| it.name).collect();
        assert_eq!(names.len(), pairs().len());
        assert!(pairs().iter().all(|it| it.author.is_none_or(|it| it < AUTHORS.len())));
    }
}
