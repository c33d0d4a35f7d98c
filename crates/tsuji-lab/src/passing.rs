//! How long a picture takes from `publish` to the callback of a sleeping subscriber.

use std::ops::Range;

use crate::arguments::{ENGINE_SIZES, Options, PICTURE_BYTES, SIZES};
use crate::carrier::{Carrier, Flow, Role, Spec, absence};
use crate::crew::{Block, Crew, Stage, Stop};
use crate::matrix::ENGINE_MEDIAN_MAX;
use crate::peers::{Peers, Place};
use crate::report::{Judged, Report, Row, Screen, Series};
use crate::road::{Road, Transport};
use crate::ros1::Room;
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
    let cases = cases(options);
    if cases.is_empty() {
        return Err(Stop::Failed(format!("no case begins with {}", options.cases.join(" or "))));
    }
    let carriers: Vec<_> = cases.iter().flat_map(|it| &it.carriers).copied().collect();
    let peers = Peers::find(stage, &carriers, screen, report)?;
    let measured = cases.iter().enumerate().try_for_each(|(at, case)| {
        let place = &*format!("[{}/{}] {}", at + 1, cases.len(), case.name);
        let scene = Scene { stage, case, options, place, peers: &peers };
        measure(&scene, screen, report)
    });
    if let Some(table) = article::table(report.rows()) {
        report.table(screen, table);
    }
    measured
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
    blocks: Vec<Block>,
}

/// What stays as it is in a case.
struct Scene<'a> {
    stage: &'a Stage,
    case: &'a Case,
    options: &'a Options,
    place: &'a str,
    peers: &'a Peers,
}

fn measure(scene: &Scene<'_>, screen: &mut Screen<'_>, report: &mut Report) -> Result<(), Stop> {
    let case = scene.case;
    if let Road::By(transport) = case.road
        && let Some(why) = absence(transport)
    {
        report.absent(screen, &case.name, &why);
        return Ok(());
    }
    let mut contestants = scene.contestants();
    let stopped = scene.all(&mut contestants, screen, report);
    for it in contestants.iter().filter(|it| !it.blocks.is_empty()) {
        report.row(screen, Row::of(&case.name, &it.name, case.size, &it.blocks));
        let blocks = it.blocks.iter().map(|block| &block.passing_us);
        report.series(Series::passing(&case.name, &it.name, blocks));
    }
    if let [ours, others @ ..] = &*contestants
        && ours.carrier.is_tsuji()
    {
        others.iter().for_each(|theirs| judge(case, ours, theirs, screen, report));
    }
    match stopped {
        Err(Stop::Failed(why)) => {
            report.skipped(screen, &format!("{}, the rest of it", case.name), &why);
            Ok(())
        }
        other => other,
    }
}

/// Samples before the measurement, for buffers to exist and memory to be mapped.
const WARM_UP: u64 = 30;

/// After so many blocks, one in each order, an engine is started anew: how fast it is depends on how its threads and
/// connections happen to lie, for as long as it runs.
const BLOCKS_OF_A_START: usize = 2;

impl<'a> Scene<'a> {
    /// Each carrier of the case; one that is rclcpp once for each middleware, one whose peer is not here not at all.
    fn contestants(&self) -> Vec<Contestant<'a>> {
        let carriers = self.case.carriers.iter().copied();
        let places = carriers.flat_map(|carrier| {
            let places = self.peers.places(self.stage, carrier);
            places.into_iter().map(move |place| (carrier, place))
        });
        let contestants = places.enumerate().map(|(at, (carrier, place))| {
            let name = place.name(carrier);
            Contestant { at, carrier, place, name, blocks: Vec::new() }
        });
        contestants.collect()
    }

    fn all(
        &self,
        contestants: &mut Vec<Contestant<'a>>,
        screen: &mut Screen<'_>,
        report: &mut Report,
    ) -> Result<(), Stop> {
        let all = self.options.blocks;
        let of_a_start = if self.case.road == Road::Alone { all } else { BLOCKS_OF_A_START };
        for first in (0..all).step_by(of_a_start) {
            screen.progress(&format!("{}: starting", self.place));
            // In this order: masters go after their nodes.
            let mut rooms = Vec::new();
            let mut crews = Vec::new();
            let mut failed = Vec::new();
            for it in &mut *contestants {
                match self.start(it, first) {
                    Ok((crew, room)) => {
                        it.name = crew.carrier.clone();
                        rooms.extend(room);
                        crews.push(crew);
                    }
                    // The others are measured all the same.
                    Err(Stop::Failed(why)) if first == 0 => {
                        let what = format!("{} {}", self.case.name, it.name);
                        report.skipped(screen, &what, &why);
                        failed.push(it.at);
                    }
                    Err(stop) => return Err(stop),
                }
            }
            contestants.retain(|it| !failed.contains(&it.at));
            self.blocks(first..all.min(first + of_a_start), contestants, &mut crews, screen)?;
        }
        Ok(())
    }

    /// Starts the processes of a contestant, and of ROS 1 the master that they need.
    fn start(
        &self,
        contestant: &Contestant<'_>,
        first: usize,
    ) -> Result<(Crew, Option<Room>), Stop> {
        let Self { case, options, .. } = self;
        let carrier = contestant.carrier;
        // The network is everybody's, so its topics bear the number of this process.
        let name = format!("{}_{}_{first}_{}", case.name, contestant.at, std::process::id());
        let spec = Spec {
            carrier,
            role: case.role,
            flow: Flow::Paced,
            size: case.size,
            pause_us: options.pause_us,
            period_us: 0,
            road: case.road,
            is_reliable: true,
            receivers: 1,
            one_node: case.one_node,
            folder: self.stage.folder().to_owned(),
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

    /// A block of each in turn, in changing order.
    fn blocks(
        &self,
        numbers: Range<usize>,
        contestants: &mut [Contestant<'_>],
        crews: &mut [Crew],
        screen: &mut Screen<'_>,
    ) -> Result<(), Stop> {
        let all = self.options.blocks;
        let each = self.options.count.div_ceil(all as u64).max(1);
        for block in numbers {
            screen.progress(&format!("{}: block {} of {all}", self.place, block + 1));
            let mut order: Vec<usize> = (0..crews.len()).collect();
            if block % 2 == 1 {
                order.reverse();
            }
            let mut fresh = vec![None; crews.len()];
            for at in order {
                fresh[at] = Some(crews[at].block(each)?);
            }
            // Only whole rounds count, so that blocks stay pairs.
            for (contestant, block) in contestants.iter_mut().zip(fresh) {
                contestant.blocks.extend(block);
            }
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
