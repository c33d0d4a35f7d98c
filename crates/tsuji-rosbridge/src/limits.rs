use std::time::Duration;

use crate::client::ClientLimits;
use crate::parse::NESTING_MAX;

/// How much a server bears.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Clients at a time. One more is closed as soon as it has connected.
    pub connections_max: usize,
    /// The longest message of a client. One that is longer is refused without being read.
    pub message_bytes_max: usize,
    /// The deepest. One that is deeper is refused.
    pub nesting_max: usize,
    /// Messages a second of one client, and its bytes. Beyond it the server reads no more of it until it may again; `None` is
    /// without limit.
    pub messages: Option<Rate>,
    /// See `messages`.
    pub bytes: Option<Rate>,
    /// How much one client may have.
    pub client: ClientLimits,
}

impl Default for Limits {
    /// 1,000 clients, messages of 10 MB and [`NESTING_MAX`] levels, any rate.
    fn default() -> Self {
        Self {
            connections_max: 1000,
            message_bytes_max: 10_000_000,
            nesting_max: NESTING_MAX,
            messages: None,
            bytes: None,
            client: ClientLimits::default(),
        }
    }
}

/// So much a second, and so much at once after a silence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// In the long run.
    pub per_second: f64,
    /// At once.
    pub burst: f64,
}

impl Rate {
    /// So much a second, and as much at once, but at least one.
    pub fn steady(per_second: f64) -> Self {
        Self { per_second, burst: per_second.max(1.0) }
    }
}

/// Holds a client to a rate.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: Rate,
    /// What is left, less than nothing after what was taken in one piece.
    left: f64,
    at: Duration,
}

impl Bucket {
    /// A full one.
    pub fn new(now: Duration, rate: Rate) -> Self {
        Self { rate, left: rate.burst, at: now }
    }

    /// Takes so much, which has come already, and answers for how long to take no more: zero while the rate is kept.
    pub fn take(&mut self, now: Duration, amount: f64) -> Duration {
        self.fill(now);
        self.left -= amount;
        if self.left >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.left / self.rate.per_second).unwrap_or(Duration::MAX)
    }

    /// Takes so much if it is there, and answers whether it was, for what is dropped else. More than a burst is there when nothing of
    /// a burst was taken.
    pub fn take_if(&mut self, now: Duration, amount: f64) -> bool {
        self.fill(now);
        let is_there = amount.min(self.rate.burst) <= self.left;
        if is_there {
            self.left -= amount;
        }
        is_there
    }

    fn fill(&mut self, now: Duration) {
        let since = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.left = (self.left + since * self.rate.per_second).min(self.rate.burst);
    }
}
