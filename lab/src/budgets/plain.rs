//! A foreign node as a child process: somebody on the network who knows nothing of tsuji.

use std::thread;
use std::time::{Duration, Instant};

use crate::account::Wrong;
use crate::crew::{Child, Stage, Stop};
use crate::transport::{Foreign, Heard};

/// One that runs. It ends when this is dropped.
pub(crate) struct ForeignNode(Child);

impl ForeignNode {
    /// Starts one.
    pub(crate) fn start(stage: &Stage, plain: &Foreign) -> Result<Self, Stop> {
        Child::open(stage, plain).map(Self)
    }

    fn look(&mut self) -> Result<Heard, Stop> {
        self.0.ask_for("look")
    }

    /// How many samples it has taken.
    pub(super) fn taken(&mut self) -> Result<u64, Stop> {
        Ok(self.look()?.taken)
    }

    /// What was wrong with the numbers of the samples that it has taken.
    pub(crate) fn wrong(&mut self) -> Result<Wrong, Stop> {
        Ok(self.look()?.wrong)
    }

    /// Waits until it has taken so many, and answers how many it has.
    pub(crate) fn wait_for(&mut self, samples: u64) -> Result<u64, Stop> {
        until(|| self.taken().map(|it| (samples <= it, it)))
    }

    /// Waits until its writer has a reader.
    pub(super) fn wait_for_reader(&mut self) -> Result<(), Stop> {
        let matched = until(|| {
            let matched = self.look()?.matched.unwrap_or(0);
            Ok((0 < matched, matched))
        })?;
        if matched == 0 {
            Err("the foreign writer finds no reader".to_owned().into())
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
