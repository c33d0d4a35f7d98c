//! Until when somebody waits.

use std::time::{Duration, Instant};

use crate::Result;

/// A time-out that began when this was made, over however many steps.
pub(crate) struct Deadline {
    /// `None` where that is later than the clock can tell.
    until: Option<Instant>,
    timeout: Duration,
}

impl Deadline {
    pub(crate) fn after(timeout: Duration) -> Self {
        Self { until: Instant::now().checked_add(timeout), timeout }
    }

    /// Does a step in what is left. An error that says how long was waited says the whole time-out, as the user knows it.
    pub(crate) fn step<T>(&self, step: impl FnOnce(Duration) -> Result<T>) -> Result<T> {
        step(self.left()).map_err(|error| error.of_whole(self.timeout))
    }

    /// What is left of it, zero when it is over.
    pub(crate) fn left(&self) -> Duration {
        self.until.map_or(self.timeout, |it| it.saturating_duration_since(Instant::now()))
    }
}
