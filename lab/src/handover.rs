//! Flows whose transport changes while samples flow: what is lost, repeated or out of order, how late the
//! samples around a change are, what is held meanwhile; how soon a late joiner is on shared memory; and what
//! publish and take cost where nothing changes.

use crate::budgets::{Measure, Parts, Run};
use crate::child::{answer, obey_each, said};
use crate::crew::Stop;

mod late_joiner;
mod load;
mod member;
mod single;
mod timing;

pub(crate) use late_joiner::Joiner;
pub(crate) use member::Part as Member;
pub(crate) use single::Single;

const CASES: &[(&str, Measure)] = &[
    ("processes-64", Measure::Rounds(|_| shown(load::processes(), load::SMALL))),
    ("processes-picture", Measure::Rounds(|_| shown(load::processes(), load::PICTURE))),
    ("inside-64", Measure::Rounds(|_| shown(load::inside(), load::SMALL))),
    ("inside-picture", Measure::Rounds(|_| shown(load::inside(), load::PICTURE))),
    ("many-64", Measure::Rounds(|_| shown(load::many(), load::SMALL))),
    ("many-picture", Measure::Rounds(|_| shown(load::many(), load::PICTURE))),
    ("pairs-64", Measure::Rounds(|run| load::pairs(run, load::SMALL))),
    ("pairs-picture", Measure::Rounds(|run| load::pairs(run, load::PICTURE))),
    ("plain-64", Measure::Rounds(|_| shown(load::plain(), load::SMALL))),
    ("plain-picture", Measure::Rounds(|_| shown(load::plain(), load::PICTURE))),
    ("late-joiner", Measure::Once(late_joiner::measure)),
    ("single-thread", Measure::Once(single::measure)),
];

fn shown(scenario: load::Scenario, load: load::Load) -> Result<Parts, Stop> {
    Ok(vec![Box::new(load::Show::new(scenario, load))])
}

/// An error says which of these names cannot be one of a pair, and what is allowed.
pub(crate) fn check_transports(names: &[String]) -> Result<(), String> {
    load::check_transports(names)
}

/// Measures all cases that `options` asks for.
pub(crate) fn run(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    run.all(CASES, load::starts(run.options.handovers))
}
