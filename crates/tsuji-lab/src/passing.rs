//! How long a picture takes from `publish` to the callback of a sleeping subscriber.

use crate::arguments::{ENGINE_SIZES, Options, PICTURE_BYTES, SIZES};
use crate::carrier::{Carrier, Flow, Role, Spec, absence};
use crate::crew::{Block, Crew, Crews, Stage, Stop};
use crate::limits::Run;
use crate::matrix::ENGINE_MEDIAN_MAX;
use crate::peers::{Peers, Place};
use crate::report::{Judged, Report, Row, Screen, Series};
use crate::road::{Road, Transport};
use crate::ros1::Room;
use crate::rounds::{self, InRounds, Round};
use crate::statistics::{Bar, Statistic, ratio};

mod article;

/// Some carriers side by side, and what the first one has to reach against the others.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    size: usize,
    role: Role,
    one_node: bool,
    /// By which one tsuji goes.
    road: Road,
    /// tsuji first, then the one that the bars are about.
    carriers: Vec<Carrier>,
    bars: &'static [(Statistic, f64)],
}

/// In process by pointer, against a condition variable.
const POINTER_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.5), (Statistic::P99, 2.0)];
/// Between processes, picture in a loan, against the same of iceoryx2.
const LOAN_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.3), (Statistic::P99, 1.5)];
/// Between processes, ordinary publish, against iceoryx2 and one copy.
const PUBLISH_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.3)];
/// Between processes by the road of an engine, against the engine alone.
const ENGINE_BARS: &[(Statistic, f64)] =
    &[(Statistic::Median, ENGINE_MEDIAN_MAX), (Statistic::P99, 1.5)];

fn cases(options: &Options) -> Vec<Case> {
    use Carrier::*;
    const FAST: Road = Road::By(Transport::FastDds);
    const ZENOH: Road = Road::By(Transport::Zenoh);
    const PUBLISHED: &[Carrier] = &[TsujiPublish, IceoryxMemcpy, UnixSocket, Rclcpp];
    let by_value: &[Carrier] = &[TsujiPublish, CondvarClone, Roscpp, Rclcpp];
    let by_pointer: &[Carrier] = &[TsujiPointer, Condvar, RoscppPointer, RclcppPointer];
    let between: &[Carrier] = &[TsujiPublish, IceoryxMemcpy, UnixSocket, Roscpp, Rclcpp];
    let by_loan: &[Carrier] = &[TsujiLoan, IceoryxLoan, RoscppPointer, RclcppLoan];
    let components: &[Carrier] = &[TsujiPublish, CondvarClone, Nodelet, Rclcpp];
    let components_by_pointer: &[Carrier] = &[TsujiPointer, Condvar, NodeletPointer, RclcppPointer];
    let patterns = [
        ("one_node", Role::Both, true, by_value, &[][..]),
        ("one_node_pointer", Role::Both, true, by_pointer, POINTER_BARS),
        ("two_nodes", Role::Sender, false, between, PUBLISH_BARS),
        ("two_nodes_pointer", Role::Sender, false, by_loan, LOAN_BARS),
        ("two_components", Role::Both, false, components, &[]),
        ("two_components_pointer", Role::Both, false, components_by_pointer, POINTER_BARS),
    ];
    let in_process: &[Carrier] = &[TsujiPointer, Condvar, RclcppPointer];
    let lent: &[Carrier] = &[TsujiLoan, IceoryxLoan, RclcppLoan];
    let sized: [(_, _, _, &[Carrier], _); 7] = [
        ("pointer", Role::Both, Road::Alone, in_process, POINTER_BARS),
        ("loan", Role::Sender, Road::Alone, lent, LOAN_BARS),
        ("publish", Role::Sender, Road::Alone, PUBLISHED, PUBLISH_BARS),
        ("cyclonedds-loan", Role::Sender, Road::Rtps, &[TsujiLoan, CycloneInPlace], ENGINE_BARS),
        ("cyclonedds-publish", Role::Sender, Road::Rtps, &[TsujiPublish, CycloneCopy], ENGINE_BARS),
        ("fastdds-publish", Role::Sender, FAST, &[TsujiPublish, FastCopy], ENGINE_BARS),
        ("zenoh-publish", Role::Sender, ZENOH, &[TsujiPublish, ZenohCopy], ENGINE_BARS),
    ];
    let mut cases: Vec<Case> = patterns
        .into_iter()
        .map(|(name, role, one_node, carriers, bars)| Case {
            name: name.to_owned(),
            size: PICTURE_BYTES,
            role,
            one_node,
            road: Road::Alone,
            carriers: carriers.to_vec(),
            bars,
        })
        .collect();
    for (name, role, road, carriers, bars) in sized {
        let own = if road == Road::Alone { &SIZES[..] } else { &ENGINE_SIZES };
        let sizes = if options.sizes.is_empty() { own } else { &options.sizes };
        cases.extend(sizes.iter().map(|size| Case {
            name: format!("{name}-{size}"),
            size: *size,
            role,
            one_node: false,
            road,
            carriers: carriers.iter().copied().filter(|it| it.carries(*size)).collect(),
            bars,
        }));
    }
    let wanted = |case: &Case| {
        options.cases.is_empty() || options.cases.iter().any(|it| case.name.starts_with(it))
    };
    cases.retain(wanted);
    cases
}

/// Measures all cases that `options` asks for.
pub(crate) fn run(
    stage: &Stage,
    options: &Options,
    screen: &mut Screen<'_>,
    report: &mut Report,
) -> Result<(), Stop> {
    let mut cases = cases(options);
    if cases.is_empty() {
        return Err(Stop::Failed(format!("no case begins with {}", options.cases.join(" or "))));
    }
    let carriers: Vec<_> = cases.iter().flat_map(|it| &it.carriers).copied().collect();
    let peers = Peers::find(stage, &carriers, screen, report)?;
    cases.retain(|case| {
        let Road::By(transport) = case.road else { return true };
        let absence = absence(transport);
        absence.iter().for_each(|why| report.absent(screen, &case.name, why));
        absence.is_none()
    });
    let contest = |case| Box::new(Contest::new(case, stage, &peers));
    let mut contests: Vec<_> = cases.into_iter().map(contest).collect();
    let mut run = Run { stage, options, screen, report };
    let stopped = rounds::measure(&mut run, Round::asked(options), &mut contests);
    contests.iter().for_each(|it| it.tell(&mut run));
    if let Some(table) = article::table(run.report.rows()) {
        run.report.table(run.screen, table);
    }
    stopped
}

/// One carrier in one case, and what it brought so far.
struct Contestant<'a> {
    /// Which of the case's.
    at: usize,
    carrier: Carrier,
    /// Where its children are started.
    place: Place<'a>,
    /// What carries.
    name: String,
    /// One of each start.
    blocks: Vec<Block>,
}

/// The carriers of a case.
struct Contest<'a> {
    case: Case,
    contestants: Vec<Contestant<'a>>,
}

/// Samples before the measurement, for buffers to exist and memory to be mapped: one more than the ten that are kept.
const WARM_UP: u64 = 11;

impl<'a> Contest<'a> {
    /// Each carrier of the case; one that is rclcpp once for each middleware, one whose peer is not here not at all.
    fn new(case: Case, stage: &'a Stage, peers: &'a Peers) -> Self {
        let places = case.carriers.iter().flat_map(|carrier| {
            let places = peers.places(stage, *carrier);
            places.into_iter().map(|place| (*carrier, place))
        });
        let contestants = places.enumerate().map(|(at, (carrier, place))| {
            let name = place.name(carrier);
            Contestant { at, carrier, place, name, blocks: Vec::new() }
        });
        let contestants = contestants.collect();
        Self { case, contestants }
    }

    /// Starts the processes of a contestant, and of ROS 1 the master that they need.
    fn start(
        &self,
        run: &Run<'_, '_>,
        contestant: &Contestant<'_>,
        round: Round,
    ) -> Result<(Crew, Option<Room>), Stop> {
        let Self { case, .. } = self;
        let carrier = contestant.carrier;
        // The network is everybody's, so its topics bear the number of this process.
        let (at, number) = (contestant.at, round.number);
        let name = format!("{}_{at}_{number}_{}", case.name, std::process::id());
        let spec = Spec {
            carrier,
            role: case.role,
            flow: Flow::Paced,
            size: case.size,
            pause_us: run.options.pause_us,
            period_us: 0,
            road: case.road,
            is_reliable: true,
            receivers: 1,
            one_node: case.one_node,
            folder: run.stage.folder().to_owned(),
            name: name.replace('-', "_"),
        };
        let room = contestant.place.room(&[])?;
        let stage = room.as_ref().map_or_else(|| contestant.place.stage(), |it| &it.stage);
        let mut crew = Crew::start(stage, &spec)?;
        if let Road::By(transport) = case.road
            && carrier.is_tsuji()
            && crew.carrier != format!("tsuji:{}", transport.word())
        {
            return Err(format!("it goes by {}", crew.carrier).into());
        }
        crew.block(WARM_UP)?;
        Ok((crew, room))
    }

    /// Says what all rounds brought.
    fn tell(&self, run: &mut Run<'_, '_>) {
        let Run { screen, report, .. } = run;
        let case = &self.case;
        for it in self.contestants.iter().filter(|it| !it.blocks.is_empty()) {
            report.row(screen, Row::of(&case.name, &it.name, case.size, &it.blocks));
            let starts = it.blocks.iter().map(|block| &block.passing_us);
            report.series(Series::passing(&case.name, &it.name, starts));
        }
        if let [ours, others @ ..] = &*self.contestants
            && ours.carrier.is_tsuji()
        {
            others.iter().for_each(|theirs| judge(case, ours, theirs, screen, report));
        }
    }
}

impl InRounds for Contest<'_> {
    fn name(&self) -> String {
        self.case.name.clone()
    }

    /// A block of each, all standing ready at once.
    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        // In this order: masters go after their nodes.
        let mut rooms = Vec::new();
        let mut crews = Crews::default();
        let mut failed = Vec::new();
        let mut names = Vec::new();
        for it in &self.contestants {
            match self.start(run, it, round) {
                Ok((crew, room)) => {
                    names.push(crew.carrier.clone());
                    rooms.extend(room);
                    crews.0.push(crew);
                }
                // The others are measured all the same.
                Err(Stop::Failed(why)) if round.number == 0 => {
                    let what = format!("{} {}", self.case.name, it.name);
                    run.report.skipped(run.screen, &what, &why);
                    failed.push(it.at);
                }
                Err(stop) => return Err(stop),
            }
        }
        self.contestants.retain(|it| !failed.contains(&it.at));
        let each = round.part(run.options.count);
        let mut fresh = vec![None; crews.0.len()];
        for at in round.order(crews.0.len()) {
            fresh[at] = Some(crews.0[at].block(each)?);
        }
        // Only whole rounds count, so that blocks stay pairs.
        for ((contestant, name), block) in self.contestants.iter_mut().zip(names).zip(fresh) {
            contestant.name = name;
            contestant.blocks.extend(block);
        }
        Ok(())
    }
}

fn judge(
    case: &Case,
    ours: &Contestant<'_>,
    theirs: &Contestant<'_>,
    screen: &mut Screen<'_>,
    report: &mut Report,
) {
    let times = |it: &Contestant<'_>| -> Vec<Vec<f64>> {
        it.blocks.iter().map(|block| block.passing_us.clone()).collect()
    };
    let (ours_us, theirs_us) = (times(ours), times(theirs));
    for statistic in [Statistic::Median, Statistic::P99] {
        let bars = if theirs.carrier == case.carriers[1] { case.bars } else { &[] };
        let bar = bars.iter().find(|(it, _)| *it == statistic);
        if let Some(figure) = ratio(statistic, &ours_us, &theirs_us) {
            let judged = Judged {
                what: format!("{} {statistic}", case.name),
                of: format!("{} / {}", ours.name, theirs.name),
                size_bytes: Some(case.size),
                figure,
                unit: "×",
                bar: bar.map(|(_, bar)| Bar::AtMost(*bar)),
            };
            report.judged(screen, judged);
        }
    }
}
