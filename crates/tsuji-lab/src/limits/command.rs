//! How late a small command is while pictures go from the same process to the same other one on another topic.

use crate::carrier::{Carrier, Flow, Role, Spec, absence};
use crate::crew::{Block, Crew, Crews, Stop};
use crate::limits::{Part, Parts, Run};
use crate::report::Series;
use crate::road::{self, Road, Transport};
use crate::rounds::{InRounds, Round};
use crate::statistics::{Bar, Interval, Statistic, over_clusters, ratio};

/// By the road that tsuji chooses, which has the bar, and by each engine for both topics.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    let engines = [Transport::CycloneDds, Transport::FastDds, Transport::Zenoh];
    let roads = [Road::Alone].into_iter().chain(engines.map(Road::By));
    let mut parts = Parts::new();
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
        parts.push(Box::new(Commands {
            road,
            what,
            carrier: String::new(),
            blocks: [vec![], vec![]],
        }));
    }
    Ok(parts)
}

/// Commands alone, and beside pictures.
struct Commands {
    road: Road,
    what: String,
    /// What carries.
    carrier: String,
    /// Of both, one of each start.
    blocks: [Vec<Block>; 2],
}

impl InRounds for Commands {
    fn name(&self) -> String {
        self.what.clone()
    }

    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        let mut crews = Crews::default();
        for carrier in [Carrier::TsujiCommand, Carrier::TsujiCommandBesidePictures] {
            let name = format!("{}_{}", self.what, round.number);
            let mut crew = Crew::start(run.stage, &spec(run, carrier, self.road, &name))?;
            if let Road::By(transport) = self.road
                && crew.carrier != format!("tsuji:{}", transport.word())
            {
                return Err(format!("it goes by {}", crew.carrier).into());
            }
            crew.block(WARM_UP)?;
            self.carrier.clone_from(&crew.carrier);
            crews.0.push(crew);
        }
        let each = round.part(run.options.count * COUNTS);
        let mut fresh = [None, None];
        for at in round.order(fresh.len()) {
            fresh[at] = Some(crews.0[at].block(each)?);
        }
        for (blocks, fresh) in self.blocks.iter_mut().zip(fresh) {
            blocks.extend(fresh);
        }
        Ok(())
    }
}

impl Part for Commands {
    fn tell(&mut self, run: &mut Run<'_, '_>) {
        let Self { road, what, carrier, blocks: [alone, beside] } = self;
        if !alone.is_empty() {
            judge(run, *road, what, carrier, alone, beside);
        }
    }
}

fn judge(
    run: &mut Run<'_, '_>,
    road: Road,
    what: &str,
    carrier: &str,
    alone: &[Block],
    beside: &[Block],
) {
    let times = |it: &[Block]| it.iter().map(|it| it.passing_us.clone()).collect::<Vec<Vec<f64>>>();
    for (word, blocks) in [("alone", alone), ("beside pictures", beside)] {
        let starts = times(blocks);
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            let figure = over_clusters(&starts, share);
            run.judge(format!("{what} {word} {name}"), carrier, figure, "µs", None);
        }
        run.report.series(Series::passing(what, format!("{carrier}, {word}"), &starts));
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
const WARM_UP: u64 = 30;
/// What the pictures may make of the 99th percentile.
const BESIDE_MAX: f64 = 2.0;
