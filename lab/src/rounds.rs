//! Cases that are measured in rounds: in each round every case has its turn once, with all that it needs started anew.
//!
//! How fast a flow is depends on how its processes happen to lie for as long as they run, so one start says nothing of the
//! next. And a machine drifts over minutes, which by turns meets all cases alike.

use std::fmt;

use crate::arguments::Options;
use crate::budgets::Run;
use crate::crew::Stop;

/// What has its turn in each round.
pub(crate) trait InRounds {
    /// What it is called where it is told that it failed.
    fn name(&self) -> String;

    /// Starts what it needs, measures, and ends all of it. A round that fails leaves what the earlier ones brought.
    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop>;
}

/// Which round it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// From 0.
    pub(crate) number: usize,
    /// How many there are.
    pub(crate) all: usize,
}

impl Round {
    /// Those that a user asked for.
    pub(crate) fn asked(options: &Options) -> impl Iterator<Item = Self> + use<> {
        Self::each(options.blocks, options.count)
    }

    /// As many as there are blocks, but no more than `count`, so that each has something to measure.
    pub(crate) fn each(blocks: usize, count: u64) -> impl Iterator<Item = Self> {
        let all = blocks.min(usize::try_from(count).unwrap_or(blocks)).max(1);
        (0..all).map(move |number| Self { number, all })
    }

    /// How many of `count` are of this round. What is left over is of the first ones.
    pub(crate) fn part(self, count: u64) -> u64 {
        let (number, all) = (self.number as u64, self.all as u64);
        count / all + u64::from(number < count % all)
    }

    /// How many of `count` are of the rounds before.
    pub(crate) fn before(self, count: u64) -> u64 {
        let (number, all) = (self.number as u64, self.all as u64);
        count / all * number + number.min(count % all)
    }

    /// The places of `count` in the order of this round: there in one, back in the next.
    pub(crate) fn order(self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        if self.number % 2 == 1 {
            order.reverse();
        }
        order
    }
}

/// Measures all rounds of `cases`. One whose round fails is skipped from there on. A wish to end is passed on.
pub(crate) fn measure<C: InRounds + ?Sized>(
    run: &mut Run<'_, '_>,
    rounds: impl Iterator<Item = Round>,
    cases: &mut [Box<C>],
) -> Result<(), Stop> {
    let mut failed = vec![false; cases.len()];
    for round in rounds {
        for at in round.order(cases.len()) {
            if failed[at] {
                continue;
            }
            let case = &mut cases[at];
            let Round { number, all } = round;
            run.screen.progress(&format!("[start {} of {all}] {}", number + 1, case.name()));
            match case.round(run, round) {
                Ok(()) => (),
                Err(Stop::Failed(why)) => {
                    failed[at] = true;
                    run.report.skipped(run.screen, &round.of(&case.name()), &why);
                }
                Err(Stop::Interrupted) => return Err(Stop::Interrupted),
            }
        }
        if failed.iter().any(|it| !it) {
            run.screen.line(&round.to_string());
        }
    }
    Ok(())
}

impl Round {
    /// What is skipped where `what` fails in this round.
    pub(crate) fn of(self, what: &str) -> String {
        match self.number {
            0 => what.to_owned(),
            number => format!("{what}, from start {} of {} on", number + 1, self.all),
        }
    }
}

impl fmt::Display for Round {
    /// What is said when it is over: the figures come after the last one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "start {} of {} is measured", self.number + 1, self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_share_what_there_is() {
        let parts = |blocks, count| -> Vec<(u64, u64)> {
            Round::each(blocks, count).map(|it| (it.before(count), it.part(count))).collect()
        };
        assert_eq!(parts(3, 9), [(0, 3), (3, 3), (6, 3)]);
        assert_eq!(parts(5, 7), [(0, 2), (2, 2), (4, 1), (5, 1), (6, 1)]);
        assert_eq!(parts(5, 2), [(0, 1), (1, 1)]);
        assert_eq!(parts(1, 4), [(0, 4)]);
    }

    #[test]
    fn the_order_changes_from_round_to_round() {
        let orders: Vec<_> = Round::each(2, 10).map(|it| it.order(3)).collect();
        assert_eq!(orders, [[0, 1, 2], [2, 1, 0]]);
    }

    struct Case {
        name: &'static str,
        fails_in: Option<usize>,
        rounds: Vec<usize>,
    }

    impl InRounds for Case {
        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn round(&mut self, _: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
            if self.fails_in == Some(round.number) {
                return Err("it is broken".to_owned().into());
            }
            self.rounds.push(round.number);
            Ok(())
        }
    }

    #[test]
    fn a_case_that_fails_is_skipped_from_there_on_and_the_others_go_on() {
        use crate::arguments::parse;
        use crate::crew::{Program, Stage};
        use crate::interrupt::Interrupt;
        use crate::placement::{Placement, Places};
        use crate::report::{Report, Screen};

        let words = ["budgets", "--blocks", "3"].map(str::to_owned);
        let (_, options) = parse(&words).unwrap();
        let program = Program::current().unwrap();
        let places = Places::new(Placement::Free);
        let stage = Stage::new(program, Interrupt::default(), places).unwrap();
        let (mut out, mut report) = (Vec::new(), Report::new("budgets"));
        let mut screen = Screen::new(&mut out);
        let case = |name, fails_in| Box::new(Case { name, fails_in, rounds: Vec::new() });
        let mut cases = [case("a", None), case("b", Some(1)), case("c", None)];
        let mut run =
            Run { stage: &stage, options: &options, screen: &mut screen, report: &mut report };
        measure(&mut run, Round::each(3, 10), &mut cases).unwrap();
        let rounds = cases.map(|it| it.rounds);
        assert_eq!(rounds, [vec![0, 1, 2], vec![0], vec![0, 1, 2]]);
        let told = report.to_json(&serde_json::Value::Null);
        let expect =
            serde_json::json!([{ "what": "b, from start 2 of 3 on", "why": "it is broken" }]);
        assert_eq!(told["skipped"], expect);
    }
}
