//! Everything else that has a bar: throughput, small samples, allocations, footprint, start-up,
//! idling, what a foreign node that listens costs, a command beside pictures, actions and parameters, and what
//! tsuji chooses.

use crate::arguments::Options;
use crate::crew::{Stage, Stop};
use crate::report::{Judged, Report, Screen};
use crate::rounds::{self, InRounds, Round};
use crate::route::Route;
use crate::statistics::{Bar, Figure};
use crate::transport::{Flow, Role, Spec, Transport};

mod allocations;
mod choice;
mod command;
mod echo;
mod footprint;
mod node;
mod plain;
mod reading;
mod throughput;

pub(crate) use footprint::{First, Stand, Status, woken};
pub(crate) use node::NodePart;
pub(crate) use plain::{ForeignNode, until};

/// How a case is measured.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// At once: its figures have no interval.
    Once(fn(&mut Run<'_, '_>) -> Result<(), Stop>),
    /// In rounds, by turns with the others. What it is made of is told after what has to be known before.
    Rounds(fn(&mut Run<'_, '_>) -> Result<Parts, Stop>),
}

/// What of a case has its turn in each round.
pub(crate) type Parts = Vec<Box<dyn Part>>;

/// One that says what all rounds brought it.
pub(crate) trait Part: InRounds {
    /// To be called when all rounds are over. It has nothing to say where none was whole.
    fn tell(&mut self, run: &mut Run<'_, '_>);
}

/// A case whose rounds each bring the same, of which something is said when all are over.
struct Case<T, M, S> {
    name: String,
    measure: M,
    say: S,
    /// Of each round that was whole.
    brought: Vec<T>,
}

/// A case of that name. `measure` brings what one round is about, and `say` is told what all that were whole brought, if any was.
pub(crate) fn case<T: 'static>(
    name: impl Into<String>,
    measure: impl FnMut(&mut Run<'_, '_>, Round) -> Result<T, Stop> + 'static,
    say: impl FnMut(&mut Run<'_, '_>, Vec<T>) + 'static,
) -> Box<dyn Part> {
    Box::new(Case { name: name.into(), measure, say, brought: Vec::new() })
}

impl<T, M, S> InRounds for Case<T, M, S>
where
    M: FnMut(&mut Run<'_, '_>, Round) -> Result<T, Stop>,
{
    fn name(&self) -> String {
        self.name.clone()
    }

    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        self.brought.push((self.measure)(run, round)?);
        Ok(())
    }
}

impl<T, M, S> Part for Case<T, M, S>
where
    M: FnMut(&mut Run<'_, '_>, Round) -> Result<T, Stop>,
    S: FnMut(&mut Run<'_, '_>, Vec<T>),
{
    fn tell(&mut self, run: &mut Run<'_, '_>) {
        let brought = std::mem::take(&mut self.brought);
        if !brought.is_empty() {
            (self.say)(run, brought);
        }
    }
}

const CASES: &[(&str, Measure)] = &[
    ("throughput", Measure::Rounds(throughput::pictures)),
    ("small", Measure::Rounds(throughput::small)),
    ("allocations", Measure::Once(allocations::measure)),
    ("footprint", Measure::Once(footprint::measure)),
    ("footprint-prefer", Measure::Once(footprint::of_both_engines)),
    ("startup", Measure::Rounds(footprint::startup)),
    ("startup-cyclonedds", Measure::Rounds(footprint::startup_by_cyclone)),
    ("idle", Measure::Once(footprint::idle)),
    ("idle-rtps", Measure::Once(footprint::idle_beside_plain)),
    ("echo", Measure::Rounds(echo::measure)),
    ("command", Measure::Rounds(command::measure)),
    ("action", Measure::Rounds(node::action)),
    ("parameters", Measure::Rounds(node::parameters)),
    ("probe", Measure::Rounds(reading::measure)),
    ("choice", Measure::Rounds(choice::measure)),
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
    pub(crate) fn all(
        &mut self,
        cases: &[(&str, Measure)],
        rounds: impl Iterator<Item = Round>,
    ) -> Result<(), Stop> {
        let mut parts = Parts::new();
        for (name, measure) in self.wanted(cases.iter().copied())? {
            self.screen.progress(&format!("{name}: starting"));
            let result = match measure {
                Measure::Once(measure) => measure(self),
                Measure::Rounds(make) => make(self).map(|it| parts.extend(it)),
            };
            self.part(name, result)?;
        }
        let stopped = rounds::measure(self, rounds, &mut parts);
        parts.iter_mut().for_each(|it| it.tell(self));
        stopped
    }

    /// Those of `cases` that are asked for by the begin of their names.
    pub(crate) fn wanted<'c, C>(
        &self,
        cases: impl Iterator<Item = (&'c str, C)>,
    ) -> Result<Vec<(&'c str, C)>, Stop> {
        let mut known = Vec::new();
        let mut wanted = Vec::new();
        for (name, case) in cases {
            known.push(name);
            wanted.extend(self.options.wants_case(name).then_some((name, case)));
        }
        if wanted.is_empty() {
            return Err(Stop::Failed(format!("no such case; there are {}", known.join(", "))));
        }
        Ok(wanted)
    }

    pub(crate) fn judge(
        &mut self,
        what: impl Into<String>,
        of: impl Into<String>,
        figure: impl Figure,
        unit: &'static str,
        bar: Option<Bar>,
    ) {
        self.judge_sized(what, of, None, figure, unit, bar);
    }

    /// The same of samples of that size.
    pub(crate) fn judge_sized(
        &mut self,
        what: impl Into<String>,
        of: impl Into<String>,
        size_bytes: Option<usize>,
        figure: impl Figure,
        unit: &'static str,
        bar: Option<Bar>,
    ) {
        let Some(figure) = figure.interval() else { return };
        let (what, of) = (what.into(), of.into());
        self.report.judged(self.screen, Judged { what, of, size_bytes, figure, unit, bar });
    }

    /// A reliable flow of pictures of that size from one process to another, sample by sample, each as soon as the receiver has
    /// rested. No other of this run may have its name.
    pub(crate) fn spec(&self, transport: Transport, size: usize, name: &str) -> Spec {
        let folder = self.stage.folder();
        Spec {
            transport,
            role: Role::Sender,
            flow: Flow::Paced,
            size,
            pause_us: self.options.pause_us,
            period_us: 0,
            route: Route::Alone,
            is_reliable: true,
            receivers: 1,
            one_node: false,
            folder: folder.to_owned(),
            name: format!("{name}_{}", std::process::id()).replace(['-', ':'], "_"),
        }
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
pub(crate) fn run(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    run.all(CASES, Round::asked(run.options))
}
