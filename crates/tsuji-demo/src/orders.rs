//! What the operator wants of a process of the robot: lines on its standard input, and its answers on standard output. When the
//! input ends the process does, so that none outlives the operator.

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
/// Before the number of a question, which is answered with a line: an [`Answer`] as JSON.
const COUNT: &str = "count ";

/// What is refused for so long is an error.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Counts of a process, and to which question.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    question: u64,
    counts: Vec<Count>,
}

/// The order that asks for the counts.
pub(crate) fn count_order(question: u64) -> String {
    format!("{COUNT}{question}")
}

/// Takes lines up to the answer to `question`, and answers its counts. One to an earlier question came too late and is dropped.
pub(crate) fn counts_of(
    question: u64,
    mut lines: impl Iterator<Item = String>,
) -> Option<Vec<Count>> {
    lines.find_map(|line| {
        let answer: Answer = serde_json::from_str(&line).ok()?;
        (answer.question == question).then_some(answer.counts)
    })
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
                let question = order.strip_prefix(COUNT).and_then(|it| it.parse().ok());
                if let Some(question) = question {
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
        let line = |question, samples| {
            let counts = vec![Count { samples, ..Count::default() }];
            serde_json::json!(Answer { question, counts }).to_string()
        };
        let mut lines = [line(1, 10), "no answer".to_owned(), line(2, 20), line(3, 30)].into_iter();
        let mut samples = |question| Some(counts_of(question, &mut lines)?[0].samples);
        assert_eq!(samples(2), Some(20), "the first was asked for before");
        assert_eq!(samples(3), Some(30));
        assert_eq!(samples(4), None);
    }
}
