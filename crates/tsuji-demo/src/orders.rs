//! What the operator wants of a process of the robot: lines on its standard input. When that ends the process does, so that
//! none outlives the operator.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tsuji::{Context, ErrorKind, Node, Timer};

use crate::tally::Tally;
use crate::{Result, complain};

/// From now on the sources publish nothing.
pub(crate) const HOLD: &str = "hold";
/// Is answered with a line: the counts as a JSON array.
pub(crate) const COUNT: &str = "count";

/// What is refused for so long is an error.
const INSIST_MAX: Duration = Duration::from_secs(10);

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

    /// Obeys the lines on standard input, on a thread of its own, which counts with `tallies`. `also` is told those that are
    /// not for every process.
    pub(crate) fn obey(
        &self,
        context: &Context,
        tallies: Arc<Mutex<Vec<Arc<Tally>>>>,
        mut also: impl FnMut(&str) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (context, orders) = (context.clone(), self.clone());
        std::thread::Builder::new().name("orders".into()).spawn(move || {
            for order in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
                match order.as_str() {
                    HOLD => {
                        *orders.is_held.write().unwrap_or_else(PoisonError::into_inner) = true;
                    }
                    COUNT => {
                        let tallies = tallies.lock().unwrap_or_else(PoisonError::into_inner);
                        let counts: Vec<_> = tallies.iter().map(|it| it.count()).collect();
                        let line = serde_json::json!(counts);
                        // Nobody listens any more: the end of standard input says so too.
                        let _ = writeln!(std::io::stdout(), "{line}");
                    }
                    order => {
                        if let Err(error) = also(order) {
                            complain(&format!("{order}: {error}\n"));
                        }
                    }
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
pub(crate) fn insist<T>(mut attempt: impl FnMut() -> tsuji::Result<T>) -> tsuji::Result<T> {
    let give_up = Instant::now() + INSIST_MAX;
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
        let done = insist(|| {
            tries += 1;
            if tries < 3 { refused(ErrorKind::Busy) } else { Ok(tries) }
        });
        assert_eq!(done.unwrap(), 3);
        let done = insist(|| refused(ErrorKind::Closed));
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Closed);
    }
}
