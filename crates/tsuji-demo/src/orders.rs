//! What the operator wants of a process of the robot: lines on its standard input, and its answers on standard output. When the
//! input ends the process does, so that none outlives the operator.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tsuji::{Context, ErrorKind, Node, Timer};

use crate::lock::lock;
use crate::tally::{Count, Tallies};
use crate::{Result, print_error};

/// From now on the sources publish nothing.
pub(crate) const HOLD: &str = "hold";
/// Before a [`Question`] as JSON, which is answered with a line: an [`Answer`] as JSON.
const COUNT: &str = "count ";

/// What is refused for so long is an error.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Asks for counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) number: u64,
    pub(crate) period: Period,
}

/// What the time from the question before was, which ages and latencies are of. An answer repeats it, so that one that comes late tells
/// of its own time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Period {
    /// The chapter of the story, once there is one.
    pub(crate) chapter: Option<usize>,
    /// By which transport pictures went to which node; none where that changed meanwhile.
    pub(crate) transports: BTreeMap<String, String>,
}

/// Counts of a process, and to which question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) question: Question,
    pub(crate) counts: Vec<Count>,
}

/// The order that asks for the counts.
pub(crate) fn count_order(question: &Question) -> String {
    format!("{COUNT}{}", serde_json::json!(question))
}

/// Takes lines up to the answer to the question of this number, and returns all answers among them: those to earlier questions came
/// too late for what they count, but have ages and latencies that no other answer has.
pub(crate) fn answers_up_to(number: u64, lines: impl Iterator<Item = String>) -> Vec<Answer> {
    let mut answers = Vec::new();
    for line in lines {
        let Ok(answer) = serde_json::from_str::<Answer>(&line) else { continue };
        let is_last = answer.question.number == number;
        answers.push(answer);
        if is_last {
            break;
        }
    }
    answers
}

/// What the operator wants of this process.
#[derive(Clone, Default)]
pub(crate) struct Orders {
    /// Callbacks read it for as long as they publish, so that whoever writes knows that none does any more.
    is_held: Arc<RwLock<bool>>,
    have_ended: Arc<AtomicBool>,
}

impl Orders {
    /// Calls back every `period` until it is held. Whoever counts after that counts all.
    pub(crate) fn every(
        &self,
        node: &Node,
        period: Duration,
        mut callback: impl FnMut() + Send + 'static,
    ) -> tsuji::Result<Timer> {
        let is_held = Arc::clone(&self.is_held);
        node.create_timer(period, move || {
            let is_held = is_held.read().unwrap_or_else(PoisonError::into_inner);
            if !*is_held {
                callback();
            }
        })
    }

    /// Reads orders from standard input, on a thread of its own, and counts with `tallies`. `on_other` gets those that are not
    /// for every process.
    pub(crate) fn start(
        &self,
        context: &Context,
        tallies: Tallies,
        mut on_other: impl FnMut(&str) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (context, orders) = (context.clone(), self.clone());
        std::thread::Builder::new().name("orders".into()).spawn(move || {
            for order in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
                let question = order.strip_prefix(COUNT);
                if let Some(question) = question.and_then(|it| serde_json::from_str(it).ok()) {
                    let counts = lock(&tallies).iter().map(|it| it.count()).collect();
                    let answer = serde_json::json!(Answer { question, counts });
                    // Nobody listens any more: the end of standard input says so too.
                    let _ = writeln!(std::io::stdout(), "{answer}");
                } else if order == HOLD {
                    *orders.is_held.write().unwrap_or_else(PoisonError::into_inner) = true;
                } else if let Err(error) = on_other(&order) {
                    print_error(&format!("{order}: {error}\n"));
                }
            }
            orders.have_ended.store(true, Ordering::Release);
            context.shutdown();
        })?;
        Ok(())
    }

    pub(crate) fn have_ended(&self) -> bool {
        self.have_ended.load(Ordering::Acquire)
    }
}

/// Does again what is refused for a moment, as while a transport is being changed: it was done for nobody then.
pub(crate) fn retry<T>(mut attempt: impl FnMut() -> tsuji::Result<T>) -> tsuji::Result<T> {
    let give_up = Instant::now() + RETRY_MAX;
    loop {
        match attempt() {
            Err(error) if is_for_now(error.kind()) && Instant::now() < give_up => {
                // Most of them have waited for room themselves.
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

fn is_for_now(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::Exhausted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_for_a_moment_is_done_again() {
        let refused = |kind| Err(tsuji::Error::new(kind, "test"));
        let mut tries = 0;
        let done = retry(|| {
            tries += 1;
            if tries < 3 { refused(ErrorKind::Busy) } else { Ok(tries) }
        });
        assert_eq!(done.unwrap(), 3);
        let done = retry(|| refused(ErrorKind::Closed));
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Closed);
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_taken_for_the_next() {
        let line = |number, samples| {
            let period = Period { chapter: Some(number as usize), ..Period::default() };
            let order = count_order(&Question { number, period });
            let question = serde_json::from_str(order.strip_prefix(COUNT).unwrap()).unwrap();
            let counts = vec![Count { samples, ..Count::default() }];
            serde_json::json!(Answer { question, counts }).to_string()
        };
        let mut lines = [line(1, 10), "no answer".to_owned(), line(2, 20), line(3, 30)].into_iter();
        let mut answered = |number| {
            let answers = answers_up_to(number, &mut lines).into_iter();
            let found = answers.map(|it| (it.question.period.chapter, it.counts[0].samples));
            found.collect::<Vec<_>>()
        };
        assert_eq!(answered(2), [(Some(1), 10), (Some(2), 20)], "the first was asked for before");
        assert_eq!(answered(3), [(Some(3), 30)]);
        assert_eq!(answered(4), []);
    }
}
