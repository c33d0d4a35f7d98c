//! Everything else that has a bar: throughput, small samples, allocations, footprint, start-up,
//! idling, what a plain node that listens costs, a command beside pictures, actions and parameters, and what
//! tsuji chooses.

use crate::arguments::Options;
use crate::crew::{Stage, Stop};
use crate::report::{Judged, Report, Screen};
use crate::statistics::{Bar, Interval};

mod allocations;
mod choice;
mod command;
mod echo;
mod footprint;
mod node;
mod plain;
mod reading;
mod throughput;

pub(crate) use footprint::{FIRST, STAND, Status, first, stand};
pub(crate) use node::{NODE, node};
pub(crate) use plain::{PLAIN, PlainNode, plain, until};

/// A case and what measures it.
pub(crate) type Measure = fn(&mut Run<'_, '_>) -> Result<(), Stop>;

const CASES: &[(&str, Measure)] = &[
    ("throughput", throughput::pictures),
    ("small", throughput::small),
    ("allocations", allocations::measure),
    ("footprint", footprint::measure),
    ("footprint-prefer", footprint::of_both_engines),
    ("startup", footprint::startup),
    ("startup-cyclonedds", footprint::startup_by_cyclone),
    ("idle", footprint::idle),
    ("idle-rtps", footprint::idle_beside_plain),
    ("echo", echo::measure),
    ("command", command::measure),
    ("action", node::action),
    ("parameters", node::parameters),
    ("probe", reading::measure),
    ("choice", choice::measure),
];

/// What all cases work with.
pub(crate) struct Run<'a, 's> {
    pub(crate) stage: &'a Stage,
    pub(crate) options: &'a Options,
    pub(crate) screen: &'a mut Screen<'s>,
    pub(crate) report: &'a mut Report,
}

impl Run<'_, '_> {
    /// Measures those of `cases` that are asked for.
    pub(crate) fn all(&mut self, cases: &[(&str, Measure)]) -> Result<(), Stop> {
        let asked = &self.options.cases;
        let is_wanted =
            |name: &str| asked.is_empty() || asked.iter().any(|it| name.starts_with(it));
        let wanted: Vec<_> = cases.iter().filter(|(name, _)| is_wanted(name)).collect();
        if wanted.is_empty() {
            let known: Vec<_> = cases.iter().map(|(name, _)| *name).collect();
            return Err(Stop::Failed(format!("no such case; there are {}", known.join(", "))));
        }
        for (name, measure) in wanted {
            self.screen.progress(&format!("{name}: starting"));
            let result = measure(self);
            self.part(name, result)?;
        }
        Ok(())
    }

    pub(crate) fn judge(
        &mut self,
        what: impl Into<String>,
        of: impl Into<String>,
        figure: Option<Interval>,
        unit: &'static str,
        bar: Option<Bar>,
    ) {
        let Some(figure) = figure else { return };
        let (what, of) = (what.into(), of.into());
        let judged = Judged { what, of, size_bytes: None, figure, unit, bar };
        self.report.judged(self.screen, judged);
    }

    /// A part of a case that fails is skipped; a wish to end is passed on.
    pub(crate) fn part(&mut self, what: &str, result: Result<(), Stop>) -> Result<(), Stop> {
        if let Err(Stop::Failed(why)) = &result {
            self.report.skipped(self.screen, what, why);
            return Ok(());
        }
        result
    }
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
