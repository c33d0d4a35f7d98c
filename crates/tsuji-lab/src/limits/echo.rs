//! A flow of pictures by shared memory at 30 Hz, with a plain node that listens too, and without one.

use crate::arguments::PICTURE_BYTES;
use crate::carrier::{Carrier, Flow, PICTURE_TYPE, Plain, Role, Spec};
use crate::crew::{Block, Crew, Crews, Stop};
use crate::limits::plain::{PlainNode, until};
use crate::limits::{Part, Parts, Run};
use crate::report::Series;
use crate::road::{self, Road};
use crate::rounds::{InRounds, Round};
use crate::statistics::{Bar, Interval, bootstrap, interval_of_median, quantile, sorted};

/// The flow alone, the flow with a plain reader, and the engine alone with a reader.
pub(crate) fn measure(_: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    Ok(vec![Box::new(Echo::default())])
}

#[derive(Default)]
struct Echo {
    /// What carries.
    carriers: [String; 3],
    blocks: Blocks,
    lost: u64,
    doubled: u64,
}

/// The blocks of the flow alone, of the flow with a plain reader, and of the engine, one of each start.
type Blocks = [Vec<Block>; 3];

const WHAT: &str = "echo";
const WARM_UP: u64 = 3;

impl InRounds for Echo {
    fn name(&self) -> String {
        WHAT.to_owned()
    }

    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        let name = |it: &str| format!("{it}_{}", round.number);
        let listened = spec(run, Carrier::TsujiPublish, &name("echo_listened"));
        let plain = Plain {
            folder: run.stage.folder().to_owned(),
            type_name: PICTURE_TYPE.to_owned(),
            reads: listened.name.clone(),
            writes: None,
            size: 0,
            depth: 10,
        };
        let mut plain = PlainNode::start(run.stage, &plain)?;
        let alone = spec(run, Carrier::TsujiPublish, &name("echo_alone"));
        let engine = spec(run, Carrier::CycloneCopy, &name("echo_engine"));
        let mut crews = Crews::default();
        for spec in [&alone, &listened, &engine] {
            crews.0.push(Crew::start(run.stage, spec)?);
        }
        let crews = &mut *crews.0;
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
        for crew in &mut *crews {
            crew.block(WARM_UP)?;
        }
        let before = plain.taken()?;
        let doubled = crews[1].doubled()?;
        // At 30 Hz a sample takes its time.
        let each = round.part(run.options.count / 2).max(1);
        let mut fresh = [const { None }; 3];
        for at in round.order(fresh.len()) {
            fresh[at] = Some(crews[at].block(each)?);
        }
        let heard = plain.wait_for(before + each)? - before;
        self.doubled += crews[1].doubled()? - doubled;
        self.lost += fresh.iter().flatten().map(|it| it.lost).sum::<u64>();
        self.lost += each.saturating_sub(heard);
        for (((crew, carrier), fresh), blocks) in
            crews.iter().zip(&mut self.carriers).zip(fresh).zip(&mut self.blocks)
        {
            carrier.clone_from(&crew.carrier);
            blocks.extend(fresh);
        }
        Ok(())
    }
}

impl Part for Echo {
    fn tell(&mut self, run: &mut Run<'_, '_>) {
        if self.blocks[0].is_empty() {
            return;
        }
        let none = Some(Bar::AtMost(0.0));
        let counts = [
            ("lost", self.lost, "of all three flows and the plain reader"),
            ("doubled", self.doubled, "came to the subscription by RTPS too"),
        ];
        for (count, figure, of) in counts {
            let figure = Some(Interval::exactly(figure as f64));
            run.judge(format!("{WHAT} {count}"), of, figure, "", none);
        }
        judge(run, WHAT, &self.carriers, &self.blocks);
    }
}

fn judge(run: &mut Run<'_, '_>, what: &str, carriers: &[String; 3], blocks: &Blocks) {
    let [alone, listened, engine] = blocks;
    let names = [&*carriers[0], "with a plain reader", &*carriers[2]];
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
