//! How long a picture takes from `publish` to the callback of a sleeping subscriber.

use crate::arguments::{CYCLONE_SIZES, Options, PICTURE_BYTES, SIZES};
use crate::carrier::{Carrier, Flow, Role, Spec};
use crate::crew::{Block, Crew, Stage, Stop};
use crate::report::{Judged, Report, Row, Screen};
use crate::road::Road;
use crate::statistics::{Bar, Statistic, ratio};

/// Some carriers side by side, and what the first one has to reach against the others.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    size: usize,
    role: Role,
    one_node: bool,
    /// By which one tsuji goes.
    road: Road,
    /// tsuji first.
    carriers: Vec<Carrier>,
    bars: &'static [(Statistic, f64)],
}

/// In process by pointer, against a condition variable.
const POINTER_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.5), (Statistic::P99, 2.0)];
/// Between processes, picture in a loan, against the same of iceoryx2.
const LOAN_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.3), (Statistic::P99, 1.5)];
/// Between processes, ordinary publish, against iceoryx2 and one copy.
const PUBLISH_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.3)];
/// Between processes by the road cyclonedds, against the engine alone.
const CYCLONE_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.15), (Statistic::P99, 1.5)];

fn cases(options: &Options) -> Vec<Case> {
    use Carrier::*;
    let patterns = [
        ("one_node", Role::Both, true, [TsujiPublish, CondvarClone], &[][..]),
        ("one_node_pointer", Role::Both, true, [TsujiPointer, Condvar], POINTER_BARS),
        ("two_nodes", Role::Sender, false, [TsujiPublish, IceoryxMemcpy], PUBLISH_BARS),
        ("two_nodes_pointer", Role::Sender, false, [TsujiLoan, IceoryxLoan], LOAN_BARS),
        ("two_components", Role::Both, false, [TsujiPublish, CondvarClone], &[]),
        ("two_components_pointer", Role::Both, false, [TsujiPointer, Condvar], POINTER_BARS),
    ];
    let sized = [
        ("pointer", Role::Both, Road::Alone, [TsujiPointer, Condvar], POINTER_BARS),
        ("loan", Role::Sender, Road::Alone, [TsujiLoan, IceoryxLoan], LOAN_BARS),
        ("publish", Role::Sender, Road::Alone, [TsujiPublish, IceoryxMemcpy], PUBLISH_BARS),
        ("cyclonedds-loan", Role::Sender, Road::Rtps, [TsujiLoan, CycloneInPlace], CYCLONE_BARS),
        ("cyclonedds-publish", Role::Sender, Road::Rtps, [TsujiPublish, CycloneCopy], CYCLONE_BARS),
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
        let own = if road == Road::Rtps { &CYCLONE_SIZES[..] } else { &SIZES };
        let sizes = if options.sizes.is_empty() { own } else { &options.sizes };
        cases.extend(sizes.iter().map(|size| Case {
            name: format!("{name}-{size}"),
            size: *size,
            role,
            one_node: false,
            road,
            carriers: carriers.to_vec(),
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
    for (at, case) in cases.iter().enumerate() {
        let place = format!("[{}/{}] {}", at + 1, cases.len(), case.name);
        measure(stage, case, options, &place, screen, report)?;
    }
    Ok(())
}

/// One carrier in one case, and what it brought so far.
struct Contestant {
    crew: Crew,
    blocks: Vec<Block>,
}

fn measure(
    stage: &Stage,
    case: &Case,
    options: &Options,
    place: &str,
    screen: &mut Screen<'_>,
    report: &mut Report,
) -> Result<(), Stop> {
    screen.progress(&format!("{place}: starting"));
    let mut contestants = Vec::new();
    for (at, carrier) in case.carriers.iter().enumerate() {
        let spec = Spec {
            carrier: *carrier,
            role: case.role,
            flow: Flow::Paced,
            size: case.size,
            pause_us: options.pause_us,
            period_us: 0,
            road: case.road,
            receivers: 1,
            one_node: case.one_node,
            folder: stage.folder().to_owned(),
            // The network is everybody's, so its topics bear the number of this process.
            name: format!("{}_{at}_{}", case.name, std::process::id()).replace('-', "_"),
        };
        let started = Crew::start(stage, &spec).and_then(|mut crew| {
            crew.block(WARM_UP)?;
            Ok(crew)
        });
        match started {
            Ok(crew) => contestants.push(Contestant { crew, blocks: Vec::new() }),
            Err(Stop::Interrupted) => return Err(Stop::Interrupted),
            Err(Stop::Failed(why)) => {
                report.skipped(screen, &format!("{} {carrier}", case.name), &why);
            }
        }
    }
    let stopped = blocks(&mut contestants, options, place, screen);
    for it in contestants.iter().filter(|it| !it.blocks.is_empty()) {
        report.row(screen, Row::of(&case.name, &it.crew.carrier, case.size, &it.blocks));
    }
    if let [ours, theirs, ..] = &*contestants {
        judge(case, ours, theirs, screen, report);
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

/// A block of each in turn, in changing order.
fn blocks(
    contestants: &mut [Contestant],
    options: &Options,
    place: &str,
    screen: &mut Screen<'_>,
) -> Result<(), Stop> {
    let each = options.count.div_ceil(options.blocks as u64).max(1);
    for block in 0..options.blocks {
        screen.progress(&format!("{place}: block {} of {}", block + 1, options.blocks));
        let mut order: Vec<usize> = (0..contestants.len()).collect();
        if block % 2 == 1 {
            order.reverse();
        }
        let mut fresh = vec![None; contestants.len()];
        for at in order {
            fresh[at] = Some(contestants[at].crew.block(each)?);
        }
        // Only whole rounds count, so that blocks stay pairs.
        for (contestant, block) in contestants.iter_mut().zip(fresh) {
            contestant.blocks.extend(block);
        }
    }
    Ok(())
}

fn judge(
    case: &Case,
    ours: &Contestant,
    theirs: &Contestant,
    screen: &mut Screen<'_>,
    report: &mut Report,
) {
    let times = |it: &Contestant| -> Vec<Vec<f64>> {
        it.blocks.iter().map(|block| block.passing_us.clone()).collect()
    };
    let (ours_us, theirs_us) = (times(ours), times(theirs));
    for statistic in [Statistic::Median, Statistic::P99] {
        let bar = case.bars.iter().find(|(it, _)| *it == statistic);
        if let Some(figure) = ratio(statistic, &ours_us, &theirs_us) {
            let judged = Judged {
                what: format!("{} {statistic}", case.name),
                of: format!("{} / {}", ours.crew.carrier, theirs.crew.carrier),
                size_bytes: Some(case.size),
                figure,
                unit: "×",
                bar: bar.map(|(_, bar)| Bar::AtMost(*bar)),
            };
            report.judged(screen, judged);
        }
    }
}
