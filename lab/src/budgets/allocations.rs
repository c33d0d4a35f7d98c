//! Allocations of a sample, counted in children that count them.

use crate::budgets::Run;
use crate::crew::{Crew, Stage, Stop};
use crate::statistics::Bar;
use crate::transport::{Role, Spec, Transport};

/// The program whose allocator counts; a program can have only one allocator.
const COUNTING: &str = "tsuji-lab-alloc";

/// By pointer and by loan, where there must be none, and by ordinary publish, for comparison.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let Some(program) = run.stage.program.beside(COUNTING) else {
        let why = format!(
            "not built: {COUNTING} is not beside the laboratory; cargo build --release -p tsuji-lab builds it"
        );
        run.report.absent(run.screen, "allocations", &why);
        return Ok(());
    };
    let stage = run.stage.with_program(program);
    let none = Some(Bar::AtMost(0.0));
    let cases = [
        ("allocations-pointer", Transport::TsujiPointer, Role::Both, none),
        ("allocations-loan", Transport::TsujiLoan, Role::Sender, none),
        ("allocations-publish", Transport::TsujiPublish, Role::Sender, None),
        ("allocations-iceoryx2", Transport::IceoryxLoan, Role::Sender, None),
    ];
    for (what, transport, role, bar) in cases {
        run.screen.progress(what);
        let spec = Spec { role, ..run.spec(transport, SIZE, what) };
        let measured = count(&stage, &spec).map(|(transport, each)| {
            run.judge(what, transport, each, "each", bar);
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
    Ok((crew.transport.clone(), allocations as f64 / COUNTED as f64))
}

const WARM_UP: u64 = 300;
const COUNTED: u64 = 500;
