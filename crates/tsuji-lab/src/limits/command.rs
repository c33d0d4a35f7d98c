//! How late a small command is while pictures go from the same process to the same other one on another topic.

use crate::carrier::{Carrier, Flow, Role, Spec, absence};
use crate::crew::{Block, Crew, Stop};
use crate::limits::Run;
use crate::report::Series;
use crate::road::{self, Road, Transport};
use crate::statistics::{Bar, Interval, Statistic, bootstrap, quantile, ratio, sorted};

/// By the road that tsuji chooses, which has the bar, and by each engine for both topics.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let engines = [Transport::CycloneDds, Transport::FastDds, Transport::Zenoh];
    let roads = [Road::Alone].into_iter().chain(engines.map(Road::By));
    for road in roads {
        let what = match road {
            Road::By(transport) => format!("command-{}", transport.word()),
            _ => "command".to_owned(),
        };
        if let Road::By(transport) = road
            && let Some(why) = absence(transport)
        {
            run.report.absent(run.screen, &what, &why);
            continue;
        }
        let measured = measure_by(run, road, &what);
        run.part(&what, measured)?;
    }
    Ok(())
}

fn measure_by(run: &mut Run<'_, '_>, road: Road, what: &str) -> Result<(), Stop> {
    run.screen.progress(&format!("{what}: starting"));
    let mut crews = Vec::new();
    for carrier in [Carrier::TsujiCommand, Carrier::TsujiCommandBesidePictures] {
        let mut crew = Crew::start(run.stage, &spec(run, carrier, road, what))?;
        if let Road::By(transport) = road
            && crew.carrier != format!("tsuji:{}", transport.word())
        {
            return Err(format!("it goes by {}", crew.carrier).into());
        }
        crew.block(WARM_UP)?;
        crews.push((crew, Vec::new()));
    }
    let stopped = blocks(run, what, &mut crews);
    judge(run, road, what, &crews);
    stopped
}

/// A block of each in turn, in changing order. Only whole rounds are kept.
fn blocks(run: &mut Run<'_, '_>, what: &str, crews: &mut [(Crew, Vec<Block>)]) -> Result<(), Stop> {
    let all = run.options.blocks;
    let each = (run.options.count * COUNTS).div_ceil(all as u64).max(1);
    for block in 0..all {
        run.screen.progress(&format!("{what}: block {} of {all}", block + 1));
        let mut fresh: Vec<Option<Block>> = vec![None; crews.len()];
        for at in 0..crews.len() {
            let at = if block % 2 == 1 { crews.len() - 1 - at } else { at };
            fresh[at] = Some(crews[at].0.block(each)?);
        }
        for ((_, blocks), fresh) in crews.iter_mut().zip(fresh) {
            blocks.extend(fresh);
        }
    }
    Ok(())
}

fn judge(run: &mut Run<'_, '_>, road: Road, what: &str, crews: &[(Crew, Vec<Block>)]) {
    let [(crew, alone), (_, beside)] = crews else { return };
    let times = |it: &[Block]| it.iter().map(|it| it.passing_us.clone()).collect::<Vec<Vec<f64>>>();
    for (word, blocks) in [("alone", alone), ("beside pictures", beside)] {
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            let figure = bootstrap(blocks.len(), |drawn| {
                let all = drawn.iter().flat_map(|at| blocks[*at].passing_us.iter().copied());
                quantile(&sorted(all.collect()), share)
            });
            run.judge(format!("{what} {word} {name}"), crew.carrier.clone(), figure, "µs", None);
        }
        let blocks = blocks.iter().map(|it| &it.passing_us);
        run.report.series(Series::passing(what, format!("{}, {word}", crew.carrier), blocks));
    }
    let exactly = |figure: u64| Some(Interval::exactly(figure as f64));
    let came: u64 = beside.iter().map(|it| it.beside.came).sum();
    let missing: u64 = beside.iter().map(|it| it.beside.missing).sum();
    let lost: u64 = alone.iter().chain(beside).map(|it| it.lost).sum();
    let none = Some(Bar::AtMost(0.0));
    run.judge(format!("{what} pictures"), "came beside", exactly(came), "", None);
    run.judge(format!("{what} pictures lost"), "", exactly(missing), "", none);
    run.judge(format!("{what} lost"), "commands", exactly(lost), "", none);
    run.report.astray(missing + lost);
    let of = "beside pictures of 6 MB at 30 Hz / without";
    for statistic in [Statistic::Median, Statistic::P99] {
        let has_bar = road == Road::Alone && statistic == Statistic::P99;
        let figure = ratio(statistic, &times(beside), &times(alone));
        let bar = has_bar.then_some(Bar::AtMost(BESIDE_MAX));
        run.judge(format!("{what} {statistic}"), of, figure, "×", bar);
    }
}

fn spec(run: &Run<'_, '_>, carrier: Carrier, road: Road, what: &str) -> Spec {
    let name = format!("{what}_{}", carrier.word()).replace('-', "_");
    Spec {
        carrier,
        role: Role::Sender,
        flow: Flow::Paced,
        size: COMMAND_BYTES,
        pause_us: run.options.pause_us,
        period_us: PERIOD_US,
        road,
        is_reliable: true,
        receivers: 1,
        one_node: false,
        folder: run.stage.folder().to_owned(),
        name: road::of_this_run(run.stage.folder(), &name),
    }
}

const COMMAND_BYTES: usize = 16;
/// Some ten commands to a picture.
const PERIOD_US: u64 = 3000;
/// So many as in other cases: a 99th percentile needs them.
const COUNTS: u64 = 3;
const WARM_UP: u64 = 100;
/// What the pictures may make of the 99th percentile.
const BESIDE_MAX: f64 = 2.0;
