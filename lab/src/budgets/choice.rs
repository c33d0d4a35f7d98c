//! What tsuji chooses by the policy that `tsuji tune` writes, beside each transport that could be chosen.

use std::fs;

use crate::arguments::{MATRIX_BLOCKS, MATRIX_COUNT, Options};
use crate::budgets::{Part, Parts, Run, case};
use crate::crew::{Block, Crew, Crews, Stop, latencies};
use crate::report::Series;
use crate::rounds::Round;
use crate::route::{Route, TUNED, TsujiTransport};
use crate::statistics::{Bar, Interval, Statistic, quantile, ratio, sorted};
use crate::transport::{Spec, Transport, absence};
use crate::tune;

/// Tunes, and then measures in each size and reliability.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    let tuning = Options {
        blocks: run.options.blocks.min(MATRIX_BLOCKS),
        count: run.options.count.min(MATRIX_COUNT),
        ..run.options.clone()
    };
    let Run { stage, screen, report, .. } = run;
    let tuned = tune::tuned(&mut Run { stage, options: &tuning, screen, report })?;
    let path = run.stage.folder().join(TUNED);
    fs::write(&path, tuned).map_err(|error| format!("write {}: {error}", path.display()))?;
    let sizes = run.options.sizes_or(&SIZES).iter();
    let kinds = sizes.flat_map(|size| [true, false].map(|it| (*size, it)));
    Ok(kinds.map(|(size, is_reliable)| choice(size, is_reliable)).collect())
}

/// Samples of one size and reliability by what tsuji chooses, and by each transport.
fn choice(size: usize, is_reliable: bool) -> Box<dyn Part> {
    let here = TsujiTransport::ALL.into_iter().filter(|it| absence(*it).is_none()).map(Route::By);
    let routes: Vec<_> = [Route::Tuned].into_iter().chain(here).collect();
    let what = format!("choice {}", if is_reliable { "reliable" } else { "best effort" });
    let name = format!("{what} {size}");
    let own = routes.clone();
    let measure = move |run: &mut Run<'_, '_>, round: Round| {
        let mut crews = Crews::default();
        for route in &own {
            let spec = spec(run, *route, size, is_reliable, round);
            let mut crew = Crew::start(run.stage, &spec)?;
            crew.block(WARM_UP)?;
            crews.0.push(crew);
        }
        let blocks = crews.in_turn(round, round.part(run.options.count))?;
        Ok(crews.0.iter().map(|it| it.transport.clone()).zip(blocks).collect::<Vec<_>>())
    };
    case(name, measure, move |run: &mut Run<'_, '_>, starts: Vec<Vec<(String, Block)>>| {
        let of = |(at, route): (usize, &Route)| {
            let (transports, blocks) = starts.iter().map(|it| it[at].clone()).unzip();
            let transports: Vec<String> = transports;
            let transport = transports.last().cloned().unwrap_or_default();
            Contestant { route: *route, transport, blocks }
        };
        let contestants: Vec<_> = routes.iter().enumerate().map(of).collect();
        judge(run, size, is_reliable, &what, &contestants);
    })
}

const SIZES: [usize; 5] = [64, 4096, 65_536, 1 << 20, 4 << 20];

/// What all starts of one brought.
struct Contestant {
    route: Route,
    /// What carries.
    transport: String,
    /// One of each start.
    blocks: Vec<Block>,
}

/// The best of the transports is known only afterwards, so noise makes it look a little better than it is.
fn judge(
    run: &mut Run<'_, '_>,
    size: usize,
    is_reliable: bool,
    what: &str,
    contestants: &[Contestant],
) {
    if is_reliable {
        run.report.astray(contestants.iter().flat_map(|it| &it.blocks).map(|it| it.lost).sum());
    }
    for it in contestants {
        let of = format!("{} of {}", it.transport, it.route.word());
        let blocks = it.blocks.iter().map(|block| &block.latency_us);
        run.report.series(Series::latency(format!("{what} {size}"), of, blocks));
    }
    let times = |it: &Contestant| latencies(&it.blocks);
    let median = |it: &Contestant| quantile(&sorted(times(it).concat()), 0.5);
    let (own, others): (Vec<_>, Vec<_>) =
        contestants.iter().partition(|it| it.route == Route::Tuned);
    let best = others.iter().filter(|it| median(it).is_finite());
    let best = best.min_by(|a, b| median(a).total_cmp(&median(b)));
    let (Some(own), Some(best)) = (own.first(), best) else { return };
    let Some(measured) = ratio(Statistic::Median, &times(own), &times(best)) else { return };
    let medians = others.iter().map(|it| format!("{} {:.1}", it.transport, median(it)));
    let medians = medians.collect::<Vec<_>>().join(", ");
    let (chosen, of_best) = (&own.transport, &best.transport);
    let (figure, of) = told(measured, chosen, of_best);
    let (of, bar) = (format!("{of}; {medians} µs"), Some(Bar::AtMost(CHOICE_MAX)));
    run.judge_sized(what, of, Some(size), Some(figure), "×", bar);
}

/// What a choice costs, and of what. Whoever chose the best has lost nothing, however much two flows of one transport
/// differ on this machine.
fn told(measured: Interval, chosen: &str, best: &str) -> (Interval, String) {
    if chosen != best {
        return (measured, format!("its own, {chosen} / {best}, the best"));
    }
    let Interval { low, middle, high } = measured;
    let noise = format!("two flows of it {middle:.2} [{low:.2}, {high:.2}]");
    (Interval::exactly(1.0), format!("its own is the best, {chosen} ({noise})"))
}

fn spec(run: &Run<'_, '_>, route: Route, size: usize, is_reliable: bool, round: Round) -> Spec {
    let qos = if is_reliable { "reliable" } else { "best_effort" };
    let name = format!("choice_{}_{qos}_{size}_{}", route.word(), round.number);
    Spec { route, is_reliable, ..run.spec(Transport::TsujiPublish, size, &name) }
}

const WARM_UP: u64 = 12;
/// What tsuji's own choice may take of the best.
const CHOICE_MAX: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_no_worse_than_itself() {
        let measured = Interval { low: 1.2, middle: 1.27, high: 1.31 };
        let (same, of) = told(measured, "tsuji:shm", "tsuji:shm");
        assert_eq!(same, Interval::exactly(1.0));
        assert!(of.contains("1.27 [1.20, 1.31]"), "{of}");
        let (other, of) = told(measured, "tsuji:zenoh", "tsuji:shm");
        assert_eq!((other, &*of), (measured, "its own, tsuji:zenoh / tsuji:shm, the best"));
    }
}
