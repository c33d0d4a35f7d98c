//! A flow of pictures by shared memory at 30 Hz, with a plain node that listens too, and without one.

use crate::arguments::PICTURE_BYTES;
use crate::carrier::{Carrier, Flow, PICTURE_TYPE, Plain, Role, Spec};
use crate::crew::{Block, Crew, Stop};
use crate::limits::Run;
use crate::limits::plain::{PlainNode, until};
use crate::report::Series;
use crate::road::{self, Road};
use crate::statistics::{Bar, Interval, bootstrap, interval_of_median, quantile, sorted};

/// The flow alone, the flow with a plain reader, and the engine alone with a reader.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let what = "echo";
    run.screen.progress(&format!("{what}: starting"));
    let listened = spec(run, Carrier::TsujiPublish, "echo_listened");
    let plain = Plain {
        folder: run.stage.folder().to_owned(),
        type_name: PICTURE_TYPE.to_owned(),
        reads: listened.name.clone(),
        writes: None,
        size: 0,
        depth: 10,
    };
    let mut plain = PlainNode::start(run.stage, &plain)?;
    let mut crews = [
        Crew::start(run.stage, &spec(run, Carrier::TsujiPublish, "echo_alone"))?,
        Crew::start(run.stage, &listened)?,
        Crew::start(run.stage, &spec(run, Carrier::CycloneCopy, "echo_engine"))?,
    ];
    if let Some(crew) = crews[..2].iter().find(|it| it.carrier != "tsuji:shm") {
        return Err(format!("it goes by {}", crew.carrier).into());
    }
    let heard = until(|| {
        crews[1].block(1)?;
        plain.taken().map(|it| (0 < it, it))
    })?;
    if heard == 0 {
        return Err("the plain reader hears nothing".to_owned().into());
    }
    for crew in &mut crews {
        crew.block(WARM_UP)?;
    }
    let before = plain.taken()?;
    let doubled = crews[1].doubled()?;
    let blocks = blocks(run, what, &mut crews)?;
    let sent: u64 = blocks[1].iter().map(|it| it.count).sum();
    let heard = plain.wait_for(before + sent)? - before;
    let doubled = crews[1].doubled()? - doubled;
    let lost: u64 = blocks.iter().flatten().map(|it| it.lost).sum();
    let none = Some(Bar::AtMost(0.0));
    let counts = [
        ("lost", lost + sent.saturating_sub(heard), "of all three flows and the plain reader"),
        ("doubled", doubled, "came to the subscription by RTPS too"),
    ];
    for (count, figure, of) in counts {
        let figure = Some(Interval::exactly(figure as f64));
        run.judge(format!("{what} {count}"), of, figure, "", none);
    }
    judge(run, what, &crews, &blocks);
    Ok(())
}

const WARM_UP: u64 = 10;

/// The blocks of the flow alone, of the flow with a plain reader, and of the engine.
type Blocks = [Vec<Block>; 3];

/// A block of each in turn, in changing order.
fn blocks(run: &mut Run<'_, '_>, what: &str, crews: &mut [Crew; 3]) -> Result<Blocks, Stop> {
    let all = run.options.blocks;
    // At 30 Hz a sample takes its time.
    let each = (run.options.count / 2).div_ceil(all as u64).max(1);
    let mut blocks = Blocks::default();
    for block in 0..all {
        run.screen.progress(&format!("{what}: block {} of {all}", block + 1));
        let mut order = [0, 1, 2];
        if block % 2 == 1 {
            order.reverse();
        }
        for at in order {
            blocks[at].push(crews[at].block(each)?);
        }
    }
    Ok(blocks)
}

fn judge(run: &mut Run<'_, '_>, what: &str, crews: &[Crew; 3], blocks: &Blocks) {
    let [alone, listened, engine] = blocks;
    let names = [&*crews[0].carrier, "with a plain reader", &*crews[2].carrier];
    let count = alone.len();
    for (of, blocks) in names.into_iter().zip(blocks) {
        for (figure, share) in [("median", 0.5), ("p99", 0.99)] {
            let figure_of = |drawn: &[usize]| over(blocks, drawn, passing, share);
            let interval = bootstrap(count, figure_of);
            run.judge(format!("{what} {figure}"), of, interval, "µs", None);
        }
        run.report.series(Series::passing(what, of, blocks.iter().map(passing)));
        let interval = bootstrap(count, |drawn| over(blocks, drawn, sending, 0.5));
        run.judge(format!("{what} publish()"), of, interval, "µs", None);
    }
    let cpu = |it: &Block| it.cpu_us / it.count as f64;
    let send_cpu = |it: &Block| it.sender_cpu_us / it.count as f64;
    let each = |blocks: &[Block], of: &dyn Fn(&Block) -> f64| -> Option<Interval> {
        interval_of_median(&blocks.iter().map(of).collect::<Vec<_>>())
    };
    run.judge(format!("{what} CPU/sample"), names[0], each(alone, &cpu), "µs", None);
    run.judge(format!("{what} CPU/sample"), names[1], each(listened, &cpu), "µs", None);
    let of = format!("{}, its sender", names[2]);
    run.judge(format!("{what} CPU/sample"), of, each(engine, &send_cpu), "µs", None);

    let bar = Some(Bar::AtMost(1.2));
    let p99 = |blocks: &[Block], drawn: &[usize]| over(blocks, drawn, passing, 0.99);
    let raised = bootstrap(count, |drawn| p99(listened, drawn) / p99(alone, drawn));
    run.judge(format!("{what} p99, nothing subtracted"), "", raised, "×", None);
    let less_send = bootstrap(count, |drawn| {
        (p99(listened, drawn) - over(engine, drawn, sending, 0.5)) / p99(alone, drawn)
    });
    run.judge(format!("{what} p99, less one send"), "", less_send, "×", bar);
    let ratios: Vec<f64> = alone
        .iter()
        .zip(listened)
        .zip(engine)
        .map(|((alone, listened), engine)| (cpu(listened) - send_cpu(engine)) / cpu(alone))
        .collect();
    run.judge(format!("{what} CPU, less one send"), "", interval_of_median(&ratios), "×", bar);
}

fn passing(block: &Block) -> &Vec<f64> {
    &block.passing_us
}

fn sending(block: &Block) -> &Vec<f64> {
    &block.sending_us
}

/// The quantile over all samples of the blocks that were drawn.
fn over(blocks: &[Block], drawn: &[usize], of: fn(&Block) -> &Vec<f64>, share: f64) -> f64 {
    quantile(&sorted(drawn.iter().flat_map(|at| of(&blocks[*at]).iter().copied()).collect()), share)
}

fn spec(run: &Run<'_, '_>, carrier: Carrier, name: &str) -> Spec {
    Spec {
        carrier,
        role: Role::Sender,
        flow: Flow::Paced,
        size: PICTURE_BYTES,
        pause_us: run.options.pause_us,
        period_us: PERIOD_US,
        road: Road::Rtps,
        is_reliable: true,
        receivers: 1,
        one_node: false,
        folder: run.stage.folder().to_owned(),
        name: road::of_this_run(run.stage.folder(), name),
    }
}

/// 30 Hz.
const PERIOD_US: u64 = 33_333;
