//! As fast as they are taken: pictures to many processes, and the smallest samples to one.

use crate::arguments::PICTURE_BYTES;
use crate::carrier::{Carrier, Flow, Role, Spec};
use crate::crew::{Stop, StreamCrew, Streamed};
use crate::limits::Run;
use crate::road::Road;
use crate::statistics::{Bar, Interval, interval_of_median};

/// Pictures in loans to 1, 8 and 64 processes, beside iceoryx2.
pub(crate) fn pictures(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    for receivers in RECEIVERS {
        let what = format!("throughput-{receivers}");
        let measured = pictures_to(run, receivers, &what);
        run.part(&what, measured)?;
    }
    Ok(())
}

const RECEIVERS: [usize; 3] = [1, 8, 64];

fn pictures_to(run: &mut Run<'_, '_>, receivers: usize, what: &str) -> Result<(), Stop> {
    let mut contestants = Vec::new();
    for carrier in [Carrier::TsujiLoan, Carrier::IceoryxLoan] {
        run.screen.progress(&format!("{what}: starting {carrier}"));
        let spec = spec(run, carrier, PICTURE_BYTES, receivers, what);
        contestants.push((StreamCrew::start(run.stage, &spec)?, Vec::new()));
    }
    let each = (run.options.count / 10 / receivers as u64).max(PICTURES_MIN);
    blocks(run, what, &mut contestants, each)?;
    let bytes = (each * PICTURE_BYTES as u64) as f64;
    let rate = |it: &Streamed| bytes / it.seconds / 1e9;
    let cpu =
        |it: &Streamed| (it.sender_cpu_us + it.drawing_cpu_us + it.receivers_cpu_us) / each as f64;
    let passing_cpu = |it: &Streamed| (it.sender_cpu_us + it.receivers_cpu_us) / each as f64;
    let [(ours, our_blocks), (theirs, their_blocks)] = &*contestants else { return Ok(()) };
    let pair = format!("{} / {}", ours.carrier(), theirs.carrier());
    for (crew, blocks) in [(ours, our_blocks), (theirs, their_blocks)] {
        let name = crew.carrier().to_owned();
        run.judge(what, name.clone(), median(blocks, rate), "GB/s", None);
        run.judge(format!("{what} CPU/sample"), name.clone(), median(blocks, cpu), "µs", None);
        let lost = Interval::exactly(blocks.iter().map(|it| it.missing).sum::<u64>() as f64);
        run.judge(format!("{what} lost"), name, Some(lost), "", Some(Bar::AtMost(0.0)));
    }
    let ratio = |of: &dyn Fn(&Streamed) -> f64| {
        let pairs = our_blocks.iter().zip(their_blocks);
        let ratios: Vec<f64> = pairs.map(|(ours, theirs)| of(ours) / of(theirs)).collect();
        interval_of_median(&ratios)
    };
    let (fast, cheap) = (Some(Bar::AtLeast(0.9)), Some(Bar::AtMost(1.2)));
    run.judge(format!("{what} GB/s"), pair.clone(), ratio(&rate), "×", fast);
    run.judge(format!("{what} CPU"), pair.clone(), ratio(&cpu), "×", cheap);
    run.judge(format!("{what} CPU, undrawn"), pair, ratio(&passing_cpu), "×", None);
    Ok(())
}

const PICTURES_MIN: u64 = 20;

/// Samples of 64 bytes to one process, nothing lost.
pub(crate) fn small(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let carriers = [
        (Carrier::TsujiBytes, "small"),
        (Carrier::TsujiTyped, "small-typed"),
        (Carrier::IceoryxMemcpy, "small-raw"),
    ];
    let mut contestants = Vec::new();
    for (carrier, what) in carriers {
        let spec = spec(run, carrier, SMALL_BYTES, 1, what);
        contestants.push((StreamCrew::start(run.stage, &spec)?, Vec::new()));
    }
    let each = if run.options.quick { SMALL_QUICK } else { SMALL };
    blocks(run, "small", &mut contestants, each)?;
    for ((crew, blocks), (carrier, what)) in contestants.iter().zip(carriers) {
        let bar = |bar| carrier.is_tsuji().then_some(bar);
        let name = crew.carrier().to_owned();
        let rate = median(blocks, |it| each as f64 / it.seconds / 1e6);
        run.judge(what, name.clone(), rate, "M/s", bar(Bar::AtLeast(1.0)));
        let sender = median(blocks, |it| (it.sender_cpu_us + it.drawing_cpu_us) / each as f64);
        let at_most_1 = bar(Bar::AtMost(1.0));
        run.judge(format!("{what} CPU sender"), name.clone(), sender, "µs", at_most_1);
        let receiver = median(blocks, |it| it.receivers_cpu_us / each as f64);
        run.judge(format!("{what} CPU receiver"), name.clone(), receiver, "µs", at_most_1);
        let lost = Interval::exactly(blocks.iter().map(|it| it.missing).sum::<u64>() as f64);
        run.judge(format!("{what} lost"), name, Some(lost), "", bar(Bar::AtMost(0.0)));
    }
    Ok(())
}

const SMALL_BYTES: usize = 64;
const SMALL: u64 = 200_000;
const SMALL_QUICK: u64 = 20_000;

fn spec(run: &Run<'_, '_>, carrier: Carrier, size: usize, receivers: usize, what: &str) -> Spec {
    Spec {
        carrier,
        role: Role::Sender,
        flow: Flow::Stream,
        size,
        pause_us: run.options.pause_us,
        period_us: 0,
        road: Road::Alone,
        is_reliable: true,
        receivers,
        one_node: false,
        folder: run.stage.folder().to_owned(),
        name: format!("{what}_{}", carrier.word()).replace('-', "_"),
    }
}

/// A block of each in turn, in changing order, after one that does not count.
fn blocks(
    run: &mut Run<'_, '_>,
    what: &str,
    contestants: &mut [(StreamCrew, Vec<Streamed>)],
    each: u64,
) -> Result<(), Stop> {
    for (crew, _) in &mut *contestants {
        crew.block(each)?;
    }
    let all = run.options.blocks;
    for block in 0..all {
        run.screen.progress(&format!("{what}: block {} of {all}", block + 1));
        let mut order: Vec<usize> = (0..contestants.len()).collect();
        if block % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (crew, blocks) = &mut contestants[at];
            blocks.push(crew.block(each)?);
        }
    }
    Ok(())
}

fn median(blocks: &[Streamed], of: impl Fn(&Streamed) -> f64) -> Option<Interval> {
    interval_of_median(&blocks.iter().map(of).collect::<Vec<_>>())
}
