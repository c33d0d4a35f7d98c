//! Until when somebody waits.

use std::time::{Duration, Instant};

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

    /// What is left of it, zero when it is over.
    pub(crate) fn left(&self) -> Duration {
        self.until.map_or(self.timeout, |it| it.saturating_duration_since(Instant::now()))
    }
}
