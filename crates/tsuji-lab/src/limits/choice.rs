//! What tsuji chooses by the policy that `tsuji tune` writes, beside each transport that could be chosen.

use std::fs;

use crate::arguments::{MATRIX_BLOCKS, MATRIX_COUNT, Options};
use crate::carrier::{Carrier, Flow, Role, Spec, absence};
use crate::crew::{Block, Crew, Stop};
use crate::limits::Run;
use crate::report::{Judged, Series};
use crate::road::{Road, TUNED, Transport};
use crate::statistics::{Bar, Interval, Statistic, quantile, ratio, sorted};
use crate::tune;

/// Tunes, and then measures in each size and reliability.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let tuning = Options {
        blocks: run.options.blocks.min(MATRIX_BLOCKS),
        count: run.options.count.min(MATRIX_COUNT),
        ..run.options.clone()
    };
    let tuned = tune::tuned(run.stage, &tuning, run.screen, run.report)?;
    let path = run.stage.folder().join(TUNED);
    fs::write(&path, tuned).map_err(|error| format!("write {}: {error}", path.display()))?;
    let sizes = if run.options.sizes.is_empty() { &SIZES[..] } else { &run.options.sizes }.to_vec();
    for size in sizes {
        for is_reliable in [true, false] {
            let qos = if is_reliable { "reliable" } else { "best effort" };
            let what = format!("choice {qos}");
            let measured = measure_cell(run, size, is_reliable, &what);
            run.part(&format!("{what} {size}"), measured)?;
        }
    }
    Ok(())
}

const SIZES: [usize; 5] = [64, 4096, 65_536, 1 << 20, 4 << 20];

struct Contestant {
    road: Road,
    crew: Crew,
    blocks: Vec<Block>,
}

fn measure_cell(
    run: &mut Run<'_, '_>,
    size: usize,
    is_reliable: bool,
    what: &str,
) -> Result<(), Stop> {
    let here = Transport::ALL.into_iter().filter(|it| absence(*it).is_none()).map(Road::By);
    let mut contestants = Vec::new();
    for road in [Road::Tuned].into_iter().chain(here) {
        run.screen.progress(&format!("{what} {size}: starting {}", road.word()));
        let mut crew = Crew::start(run.stage, &spec(run, road, size, is_reliable))?;
        if let Road::By(transport) = road
            && crew.carrier != format!("tsuji:{}", transport.word())
        {
            return Err(format!("{} goes by {}", transport.word(), crew.carrier).into());
        }
        crew.block(WARM_UP)?;
        contestants.push(Contestant { road, crew, blocks: Vec::new() });
    }
    let stopped = blocks(run, &format!("{what} {size}"), &mut contestants);
    judge(run, size, is_reliable, what, &contestants);
    stopped
}

/// A block of each in turn, in changing order. Only whole rounds are kept.
fn blocks(run: &mut Run<'_, '_>, what: &str, contestants: &mut [Contestant]) -> Result<(), Stop> {
    let all = run.options.blocks;
    let each = run.options.count.div_ceil(all as u64).max(1);
    for block in 0..all {
        run.screen.progress(&format!("{what}: block {} of {all}", block + 1));
        let mut fresh: Vec<Option<Block>> = vec![None; contestants.len()];
        for at in 0..contestants.len() {
            let at = if block % 2 == 1 { contestants.len() - 1 - at } else { at };
            fresh[at] = Some(contestants[at].crew.block(each)?);
        }
        for (contestant, fresh) in contestants.iter_mut().zip(fresh) {
            contestant.blocks.extend(fresh);
        }
    }
    Ok(())
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
        let of = format!("{} of {}", it.crew.carrier, it.road.word());
        let blocks = it.blocks.iter().map(|block| &block.passing_us);
        run.report.series(Series::passing(format!("{what} {size}"), of, blocks));
    }
    let times = |it: &Contestant| -> Vec<Vec<f64>> {
        it.blocks.iter().map(|block| block.passing_us.clone()).collect()
    };
    let median = |it: &Contestant| quantile(&sorted(times(it).concat()), 0.5);
    let (own, others): (Vec<_>, Vec<_>) = contestants.iter().partition(|it| it.road == Road::Tuned);
    let best = others.iter().filter(|it| median(it).is_finite());
    let best = best.min_by(|a, b| median(a).total_cmp(&median(b)));
    let (Some(own), Some(best)) = (own.first(), best) else { return };
    let Some(measured) = ratio(Statistic::Median, &times(own), &times(best)) else { return };
    let medians = others.iter().map(|it| format!("{} {:.1}", it.crew.carrier, median(it)));
    let medians = medians.collect::<Vec<_>>().join(", ");
    let (chosen, of_best) = (&own.crew.carrier, &best.crew.carrier);
    let (figure, of) = told(measured, chosen, of_best);
    let judged = Judged {
        what: what.to_owned(),
        of: format!("{of}; {medians} µs"),
        size_bytes: Some(size),
        figure,
        unit: "×",
        bar: Some(Bar::AtMost(CHOICE_MAX)),
    };
    run.report.judged(run.screen, judged);
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

fn spec(run: &Run<'_, '_>, road: Road, size: usize, is_reliable: bool) -> Spec {
    let qos = if is_reliable { "reliable" } else { "best_effort" };
    Spec {
        carrier: Carrier::TsujiPublish,
        role: Role::Sender,
        flow: Flow::Paced,
        size,
        pause_us: run.options.pause_us,
        period_us: 0,
        road,
        is_reliable,
        receivers: 1,
        one_node: false,
        folder: run.stage.folder().to_owned(),
        name: format!("choice_{}_{qos}_{size}_{}", road.word(), std::process::id()),
    }
}

const WARM_UP: u64 = 30;
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
