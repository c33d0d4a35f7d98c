//! A plain node as a child process: somebody on the network who knows nothing of tsuji.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::account::Wrong;
use crate::carrier::{self, Plain};
use crate::crew::{Child, Stage, Stop};

/// The hidden argument of a plain node.
pub(crate) const PLAIN: &str = "--plain";

/// Plays one.
pub(crate) fn plain(text: &str) -> i32 {
    match carrier::play_plain(text) {
        Ok(()) => 0,
        Err(error) => {
            // Nobody listens any more when this fails.
            let _ = writeln!(std::io::stdout(), "{}", json!({ "failed": error }));
            1
        }
    }
}

/// One that runs. It ends when this is dropped.
pub(crate) struct PlainNode(Child);

impl PlainNode {
    /// Starts one.
    pub(crate) fn start(stage: &Stage, plain: &Plain) -> Result<Self, Stop> {
        let mut child = Child::start(stage, PLAIN, &plain.to_json())?;
        child.answer()?;
        Ok(Self(child))
    }

    /// How many samples it has taken.
    pub(super) fn taken(&mut self) -> Result<u64, Stop> {
        Ok(self.0.ask("look")?["taken"].as_u64().unwrap_or(0))
    }

    /// What was wrong with the numbers of the samples that it has taken.
    pub(crate) fn wrong(&mut self) -> Result<Wrong, Stop> {
        let look = self.0.ask("look")?;
        Ok(Wrong::from_json(&look["wrong"]).unwrap_or_default())
    }

    /// Waits until it has taken so many, and answers how many it has.
    pub(crate) fn wait_for(&mut self, samples: u64) -> Result<u64, Stop> {
        until(|| self.taken().map(|it| (samples <= it, it)))
    }

    /// Waits until its writer has a reader.
    pub(super) fn wait_for_reader(&mut self) -> Result<(), Stop> {
        let matched = until(|| {
            let matched = self.0.ask("look")?["matched"].as_u64().unwrap_or(0);
            Ok((0 < matched, matched))
        })?;
        if matched == 0 {
            Err("the plain writer finds no reader".to_owned().into())
        } else {
            Ok(())
        }
    }
}

/// Looks until it is done, or [`PATIENCE`] is over, and answers what was seen last.
pub(crate) fn until<T>(mut look: impl FnMut() -> Result<(bool, T), Stop>) -> Result<T, Stop> {
    let begin = Instant::now();
    loop {
        let (is_done, seen) = look()?;
        if is_done || PATIENCE <= begin.elapsed() {
            return Ok(seen);
        }
        thread::sleep(LOOK);
    }
}

const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);
