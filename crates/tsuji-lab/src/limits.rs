//! Everything else that has a bar: throughput, small samples, allocations, footprint, start-up,
//! idling, and what a plain node that listens costs.

use crate::arguments::Options;
use crate::crew::{Stage, Stop};
use crate::report::{Judged, Report, Screen};
use crate::statistics::{Bar, Interval};

mod allocations;
mod echo;
mod footprint;
mod plain;
mod throughput;

pub(crate) use footprint::{FIRST, STAND, first, stand};
pub(crate) use plain::{PLAIN, plain};

/// A case and what measures it.
type Measure = fn(&mut Run<'_, '_>) -> Result<(), Stop>;

const CASES: &[(&str, Measure)] = &[
    ("throughput", throughput::pictures),
    ("small", throughput::small),
    ("allocations", allocations::measure),
    ("footprint", footprint::measure),
    ("startup", footprint::startup),
    ("startup-cyclonedds", footprint::startup_by_cyclone),
    ("idle", footprint::idle),
    ("idle-rtps", footprint::idle_beside_plain),
    ("echo", echo::measure),
];

/// What all cases work with.
pub(crate) struct Run<'a, 's> {
    stage: &'a Stage,
    options: &'a Options,
    screen: &'a mut Screen<'s>,
    report: &'a mut Report,
}

impl Run<'_, '_> {
    fn judge(
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
    fn part(&mut self, what: &str, result: Result<(), Stop>) -> Result<(), Stop> {
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
    let wanted: Vec<_> = CASES
        .iter()
        .filter(|(name, _)| {
            options.cases.is_empty() || options.cases.iter().any(|it| name.starts_with(it))
        })
        .collect();
    if wanted.is_empty() {
        let known: Vec<_> = CASES.iter().map(|(name, _)| *name).collect();
        return Err(Stop::Failed(format!("no such case; there are {}", known.join(", "))));
    }
    let mut run = Run { stage, options, screen, report };
    for (name, measure) in wanted {
        run.screen.progress(&format!("{name}: starting"));
        let result = measure(&mut run);
        run.part(name, result)?;
    }
    Ok(())
}
