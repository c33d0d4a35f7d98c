//! Flows whose road changes while samples flow: what is lost, repeated or out of order, how late the
//! samples around a change are, what is held meanwhile; how soon a newcomer is on shared memory; and what
//! publish and take cost where nothing changes.

use crate::arguments::Options;
use crate::child::{answer, ended, said};
use crate::crew::{Stage, Stop};
use crate::limits::{Measure, Run};
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
    ("processes-64", |run| load::measure(run, &load::PROCESSES, load::SMALL)),
    ("processes-picture", |run| load::measure(run, &load::PROCESSES, load::PICTURE)),
    ("inside-64", |run| load::measure(run, &load::INSIDE, load::SMALL)),
    ("inside-picture", |run| load::measure(run, &load::INSIDE, load::PICTURE)),
    ("many-64", |run| load::measure(run, &load::MANY, load::SMALL)),
    ("many-picture", |run| load::measure(run, &load::MANY, load::PICTURE)),
    ("pairs-64", |run| load::measure_pairs(run, load::SMALL)),
    ("pairs-picture", |run| load::measure_pairs(run, load::PICTURE)),
    ("plain-64", |run| load::measure(run, &load::PLAIN, load::SMALL)),
    ("plain-picture", |run| load::measure(run, &load::PLAIN, load::PICTURE)),
    ("newcomer", newcomer::measure),
    ("single-thread", single::measure),
];

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
    Run { stage, options, screen, report }.all(CASES)
}
