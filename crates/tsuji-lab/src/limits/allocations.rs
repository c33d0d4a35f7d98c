//! Allocations of a sample, counted in children that count them.

use crate::carrier::{Carrier, Flow, Role, Spec};
use crate::crew::{Crew, Stage, Stop};
use crate::limits::Run;
use crate::road::Road;
use crate::statistics::{Bar, Interval};

/// The program whose allocator counts; a program can have only one allocator.
const COUNTING: &str = "tsuji-lab-alloc";

/// By pointer and by loan, where there must be none, and by ordinary publish, for comparison.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let program = run.stage.program.beside(COUNTING).ok_or_else(|| {
        format!("there is no {COUNTING} beside this program; `cargo build` of tsuji-lab makes it")
    })?;
    let stage = run.stage.with_program(program);
    let none = Some(Bar::AtMost(0.0));
    let cases = [
        ("allocations-pointer", Carrier::TsujiPointer, Role::Both, none),
        ("allocations-loan", Carrier::TsujiLoan, Role::Sender, none),
        ("allocations-publish", Carrier::TsujiPublish, Role::Sender, None),
        ("allocations-iceoryx2", Carrier::IceoryxLoan, Role::Sender, None),
    ];
    for (what, carrier, role, bar) in cases {
        run.screen.progress(what);
        let spec = Spec {
            carrier,
            role,
            flow: Flow::Paced,
            size: SIZE,
            pause_us: run.options.pause_us,
            period_us: 0,
            road: Road::Alone,
            is_reliable: true,
            receivers: 1,
            one_node: false,
            folder: run.stage.folder().to_owned(),
            name: what.replace('-', "_"),
        };
        let measured = count(&stage, &spec).map(|(carrier, each)| {
            run.judge(what, carrier, Some(Interval::exactly(each)), "each", bar);
        });
        run.part(what, measured)?;
    }
    Ok(())
}

const SIZE: usize = 64 * 1024;

fn count(stage: &Stage, spec: &Spec) -> Result<(String, f64), Stop> {
    let mut crew = Crew::start(stage, spec)?;
    crew.block(WARM_UP)?;
    let block = crew.block(COUNTED)?;
    if block.lost != 0 {
        return Err(format!("{} of {COUNTED} samples were lost", block.lost).into());
    }
    let allocations = block.allocations.ok_or_else(|| "they were not counted".to_owned())?;
    Ok((crew.carrier.clone(), allocations as f64 / COUNTED as f64))
}

const WARM_UP: u64 = 300;
const COUNTED: u64 = 500;
