//! How late a small command is while pictures go from the same process to the same other one on another topic.

use crate::budgets::{Part, Parts, Run};
use crate::crew::{Block, Crew, Crews, Stop, latencies};
use crate::report::Series;
use crate::rounds::{InRounds, Round};
use crate::route::{Route, TsujiTransport};
use crate::statistics::{Bar, Statistic, over_clusters, ratio};
use crate::transport::{Spec, Transport, absence};

/// By the transport that tsuji chooses, which has the bar, and by each engine for both topics.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    let engines = [TsujiTransport::CycloneDds, TsujiTransport::FastDds, TsujiTransport::Zenoh];
    let routes = [Route::Alone].into_iter().chain(engines.map(Route::By));
    let mut parts = Parts::new();
    for route in routes {
        let what = match route {
            Route::By(via) => format!("command-{}", via.word()),
            _ => "command".to_owned(),
        };
        if let Route::By(via) = route
            && let Some(why) = absence(via)
        {
            run.report.absent(run.screen, &what, &why);
            continue;
        }
        parts.push(Box::new(Commands {
            route,
            what,
            transport: String::new(),
            blocks: [vec![], vec![]],
        }));
    }
    Ok(parts)
}

/// Commands alone, and beside pictures.
struct Commands {
    route: Route,
    what: String,
    /// What carries.
    transport: String,
    /// Of both, one of each start.
    blocks: [Vec<Block>; 2],
}

impl InRounds for Commands {
    fn name(&self) -> String {
        self.what.clone()
    }

    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        let mut crews = Crews::default();
        for transport in [Transport::TsujiCommand, Transport::TsujiCommandBesidePictures] {
            let name = format!("{}_{}", self.what, round.number);
            let mut crew = Crew::start(run.stage, &spec(run, transport, self.route, &name))?;
            crew.block(WARM_UP)?;
            self.transport.clone_from(&crew.transport);
            crews.0.push(crew);
        }
        let each = round.part(run.options.count * COUNTS);
        for (blocks, fresh) in self.blocks.iter_mut().zip(crews.in_turn(round, each)?) {
            blocks.push(fresh);
        }
        Ok(())
    }
}

impl Part for Commands {
    fn tell(&mut self, run: &mut Run<'_, '_>) {
        let Self { route, what, transport, blocks: [alone, beside] } = self;
        if !alone.is_empty() {
            judge(run, *route, what, transport, alone, beside);
        }
    }
}

fn judge(
    run: &mut Run<'_, '_>,
    route: Route,
    what: &str,
    transport: &str,
    alone: &[Block],
    beside: &[Block],
) {
    for (word, blocks) in [("alone", alone), ("beside pictures", beside)] {
        let starts = latencies(blocks);
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            let figure = over_clusters(&starts, share);
            run.judge(format!("{what} {word} {name}"), transport, figure, "µs", None);
        }
        run.report.series(Series::latency(what, format!("{transport}, {word}"), &starts));
    }
    let came: u64 = beside.iter().map(|it| it.beside.came).sum();
    let missing: u64 = beside.iter().map(|it| it.beside.missing).sum();
    let lost: u64 = alone.iter().chain(beside).map(|it| it.lost).sum();
    let none = Some(Bar::AtMost(0.0));
    run.judge(format!("{what} pictures"), "came beside", came, "", None);
    run.judge(format!("{what} pictures lost"), "", missing, "", none);
    run.judge(format!("{what} lost"), "commands", lost, "", none);
    run.report.astray(missing + lost);
    let of = "beside pictures of 6 MB at 30 Hz / without";
    for statistic in [Statistic::Median, Statistic::P99] {
        let has_bar = route == Route::Alone && statistic == Statistic::P99;
        let figure = ratio(statistic, &latencies(beside), &latencies(alone));
        let bar = has_bar.then_some(Bar::AtMost(BESIDE_MAX));
        run.judge(format!("{what} {statistic}"), of, figure, "×", bar);
    }
}

fn spec(run: &Run<'_, '_>, transport: Transport, route: Route, what: &str) -> Spec {
    let name = format!("{what}_{}", transport.word());
    Spec { period_us: PERIOD_US, route, ..run.spec(transport, COMMAND_BYTES, &name) }
}

const COMMAND_BYTES: usize = 16;
/// Some ten commands to a picture.
const PERIOD_US: u64 = 3000;
/// So many as in other cases: a 99th percentile needs them.
const COUNTS: u64 = 3;
const WARM_UP: u64 = 30;
/// What the pictures may make of the 99th percentile.
const BESIDE_MAX: f64 = 2.0;
