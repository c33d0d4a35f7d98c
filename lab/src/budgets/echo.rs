//! A flow of pictures by shared memory at 30 Hz, with a foreign node that listens too, and without one.

use crate::arguments::PICTURE_BYTES;
use crate::budgets::plain::{ForeignNode, until};
use crate::budgets::{Parts, Run, case};
use crate::crew::{Block, Crew, Crews, Stop};
use crate::report::Series;
use crate::rounds::Round;
use crate::route::Route;
use crate::statistics::{Bar, Interval, bootstrap, interval_of_median, quantile, sorted};
use crate::transport::{Foreign, PICTURE_TYPE, Spec, Transport};

/// The flow alone, the flow with a foreign reader, and the engine alone with a reader.
pub(crate) fn measure(_: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    Ok(vec![case(WHAT, start, tell)])
}

/// What one start brought: of the flow alone, of the flow with a foreign reader, and of the engine.
struct Start {
    /// What carries.
    transports: [String; 3],
    blocks: [Block; 3],
    lost: u64,
    doubled: u64,
}

const WHAT: &str = "echo";
const WARM_UP: u64 = 3;

fn start(run: &mut Run<'_, '_>, round: Round) -> Result<Start, Stop> {
    let name = |it: &str| format!("{it}_{}", round.number);
    let listened = spec(run, Transport::TsujiPublish, &name("echo_listened"));
    let plain = Foreign {
        folder: run.stage.folder().to_owned(),
        type_name: PICTURE_TYPE.to_owned(),
        reads: listened.name.clone(),
        writes: None,
        size: 0,
        depth: 10,
    };
    let mut plain = ForeignNode::start(run.stage, &plain)?;
    let alone = spec(run, Transport::TsujiPublish, &name("echo_alone"));
    let engine = spec(run, Transport::CycloneCopy, &name("echo_engine"));
    let mut crews = Crews::default();
    for spec in [&alone, &listened, &engine] {
        crews.0.push(Crew::start(run.stage, spec)?);
    }
    if let Some(crew) = crews.0[..2].iter().find(|it| it.transport != "tsuji:shm") {
        return Err(format!("it goes by {}", crew.transport).into());
    }
    let heard = until(|| {
        crews.0[1].block(1)?;
        plain.taken().map(|it| (0 < it, it))
    })?;
    if heard == 0 {
        return Err("the foreign reader hears nothing".to_owned().into());
    }
    for crew in &mut crews.0 {
        crew.block(WARM_UP)?;
    }
    let before = plain.taken()?;
    let doubled = crews.0[1].doubled()?;
    // At 30 Hz a sample takes its time.
    let each = round.part(run.options.count / 2).max(1);
    let fresh = crews.in_turn(round, each)?;
    let heard = plain.wait_for(before + each)? - before;
    let doubled = crews.0[1].doubled()? - doubled;
    let lost = fresh.iter().map(|it| it.lost).sum::<u64>() + each.saturating_sub(heard);
    let mut fresh = fresh.into_iter();
    let blocks = [(); 3].map(|()| fresh.next().unwrap_or_default());
    let transports = [0, 1, 2].map(|at| crews.0[at].transport.clone());
    Ok(Start { transports, blocks, lost, doubled })
}

fn tell(run: &mut Run<'_, '_>, starts: Vec<Start>) {
    let Some(last) = starts.last() else { return };
    let none = Some(Bar::AtMost(0.0));
    let sum = |of: fn(&Start) -> u64| starts.iter().map(of).sum::<u64>();
    let counts = [
        ("lost", sum(|it| it.lost), "of all three flows and the foreign reader"),
        ("doubled", sum(|it| it.doubled), "came to the subscription by RTPS too"),
    ];
    for (count, figure, of) in counts {
        run.judge(format!("{WHAT} {count}"), of, figure, "", none);
    }
    let blocks = [0, 1, 2].map(|at| starts.iter().map(|it| it.blocks[at].clone()).collect());
    judge(run, WHAT, &last.transports, &blocks);
}

/// The blocks of each of the three, one of each start.
type Blocks = [Vec<Block>; 3];

fn judge(run: &mut Run<'_, '_>, what: &str, transports: &[String; 3], blocks: &Blocks) {
    let [alone, listened, engine] = blocks;
    let names = [&*transports[0], "with a foreign reader", &*transports[2]];
    let count = alone.len();
    for (of, blocks) in names.into_iter().zip(blocks) {
        for (figure, share) in [("median", 0.5), ("p99", 0.99)] {
            let figure_of = |drawn: &[usize]| over(blocks, drawn, latency, share);
            let interval = bootstrap(count, figure_of);
            run.judge(format!("{what} {figure}"), of, interval, "µs", None);
        }
        run.report.series(Series::latency(what, of, blocks.iter().map(latency)));
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
    let p99 = |blocks: &[Block], drawn: &[usize]| over(blocks, drawn, latency, 0.99);
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

fn latency(block: &Block) -> &Vec<f64> {
    &block.latency_us
}

fn sending(block: &Block) -> &Vec<f64> {
    &block.sending_us
}

/// The quantile over all samples of the blocks that were drawn.
fn over(blocks: &[Block], drawn: &[usize], of: fn(&Block) -> &Vec<f64>, share: f64) -> f64 {
    quantile(&sorted(drawn.iter().flat_map(|at| of(&blocks[*at]).iter().copied()).collect()), share)
}

fn spec(run: &Run<'_, '_>, transport: Transport, name: &str) -> Spec {
    let own = run.spec(transport, PICTURE_BYTES, name);
    Spec { period_us: PERIOD_US, route: Route::Rtps, ..own }
}

/// 30 Hz.
const PERIOD_US: u64 = 33_333;
