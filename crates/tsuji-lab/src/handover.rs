//! Flows whose road changes while samples flow: what is lost, repeated or out of order, how late the
//! samples around a change are, what is held meanwhile; how soon a newcomer is on shared memory; and what
//! publish and take cost where nothing changes.

use crate::arguments::Options;
use crate::child::{answer, ended, said};
use crate::crew::{Stage, Stop};
use crate::limits::{Measure, Parts, Run};
use crate::report::{Report, Screen};

mod load;
mod member;
mod newcomer;
mod single;
mod timing;

pub(crate) use member::{MEMBER, member};
pub(crate) use newcomer::{NEWCOMER, newcomer};
pub(crate) use single::{SINGLE, single};

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
    ("newcomer", Measure::Once(newcomer::measure)),
    ("single-thread", Measure::Once(single::measure)),
];

fn shown(scene: load::Scene, load: load::Load) -> Result<Parts, Stop> {
    Ok(vec![Box::new(load::Show::new(scene, load))])
}

/// An error says which of these names cannot be one of a pair, and what is allowed.
pub(crate) fn check_roads(names: &[String]) -> Result<(), String> {
    load::check_roads(names)
}

/// Measures all cases that `options` asks for.
pub(crate) fn run(
    stage: &Stage,
    options: &Options,
    screen: &mut Screen<'_>,
    report: &mut Report,
) -> Result<(), Stop> {
    let starts = load::starts(options.handovers);
    Run { stage, options, screen, report }.all(CASES, starts)
}
