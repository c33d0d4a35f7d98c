//! How late a small command is while pictures go from the same process to the same other one on another topic.

use crate::budgets::{Parts, Run, case};
use crate::crew::{Block, Crew, Crews, Stop, latencies};
use crate::probe::Beside;
use crate::report::Series;
use crate::rounds::Round;
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
        let (name, said) = (what.clone(), what.clone());
        let measure = move |run: &mut Run<'_, '_>, round| blocks(run, route, &what, round);
        let say =
            move |run: &mut Run<'_, '_>, starts: Vec<Start>| judge(run, route, &said, &starts);
        parts.push(case(name, measure, say));
    }
    Ok(parts)
}

/// What carries, and what came of commands alone, and of commands beside pictures.
type Start = (String, [Block; 2]);

fn blocks(run: &mut Run<'_, '_>, route: Route, what: &str, round: Round) -> Result<Start, Stop> {
    let mut crews = Crews::default();
    for transport in [Transport::TsujiCommand, Transport::TsujiCommandBesidePictures] {
        let name = format!("{what}_{}", round.number);
        let mut crew = Crew::start(run.stage, &spec(run, transport, route, &name))?;
        crew.block(WARM_UP)?;
        crews.0.push(crew);
    }
    let each = round.part(run.options.count * COUNTS);
    let mut fresh = crews.in_turn(round, each)?.into_iter();
    let both = [fresh.next(), fresh.next()].map(Option::unwrap_or_default);
    Ok((crews.0[1].transport.clone(), both))
}

fn judge(run: &mut Run<'_, '_>, route: Route, what: &str, starts: &[Start]) {
    let transport = starts.last().map_or("", |it| &it.0);
    let all = |at: usize| starts.iter().map(|it| it.1[at].clone()).collect::<Vec<_>>();
    let [alone, beside] = [0, 1].map(all);
    for (word, blocks) in [("alone", &alone), ("beside pictures", &beside)] {
        let starts = latencies(blocks);
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            let figure = over_clusters(&starts, share);
            run.judge(format!("{what} {word} {name}"), transport, figure, "µs", None);
        }
        run.report.series(Series::latency(what, format!("{transport}, {word}"), &starts));
    }
    let pictures: Beside = beside.iter().map(|it| it.beside).sum();
    let lost: u64 = alone.iter().chain(&beside).map(|it| it.lost).sum();
    let none = Some(Bar::AtMost(0.0));
    run.judge(format!("{what} pictures"), "came beside", pictures.came, "", None);
    run.judge(format!("{what} pictures lost"), "", pictures.lost(), "", none);
    let of = "by newer ones";
    run.judge(format!("{what} pictures displaced"), of, pictures.displaced, "", none);
    run.judge(format!("{what} lost"), "commands", lost, "", none);
    run.report.astray(pictures.lost() + lost);
    let of = "beside pictures of 6 MB at 30 Hz / without";
    for statistic in [Statistic::Median, Statistic::P99] {
        let has_bar = route == Route::Alone && statistic == Statistic::P99;
        let figure = ratio(statistic, &latencies(&beside), &latencies(&alone));
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
