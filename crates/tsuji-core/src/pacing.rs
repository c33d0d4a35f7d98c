//! When something is due, told the time: tries that come ever more rarely.

use std::time::Duration;

/// `duration` in nanoseconds, at least 1.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// The time `period` after `start_ns`, in nanoseconds.
pub fn after(start_ns: u64, period: Duration) -> u64 {
    start_ns.saturating_add(nanos(period))
}

/// Tries that come ever more rarely: each pause is twice the one before, from a first to a last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    /// The time to the try after the next.
    pause: Duration,
    /// The next try; `None` while none is planned.
    due_ns: Option<u64>,
}

impl Backoff {
    /// Plans nothing yet; pauses go from `first` to `last`.
    pub fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, pause: first, due_ns: None }
    }

    /// When the next try is due; `None` while none is planned.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Whether a try was planned for now or before.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.due_ns.is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// Plans the next try.
    pub fn later(&mut self, now_ns: u64) {
        self.due_ns = Some(after(now_ns, self.pause));
        self.pause = self.last.min(2 * self.pause);
    }

    /// Plans a try as soon as the first one, unless one is due before. Who asks again and again does not put it off.
    pub fn soon(&mut self, now_ns: u64) {
        let soon_ns = after(now_ns, self.first);
        if self.due_ns.is_none_or(|due_ns| soon_ns < due_ns) {
            self.hurry();
            self.later(now_ns);
        }
    }

    /// From here on tries are as frequent as at first.
    pub fn hurry(&mut self) {
        self.pause = self.first;
    }

    /// The try that was planned is made.
    pub fn tried(&mut self) {
        self.due_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_grow_rare_and_can_be_hurried() {
        let (first, last) = (Duration::from_secs(100), Duration::from_secs(300));
        let mut backoff = Backoff::new(first, last);
        assert_eq!(backoff.due_ns(), None);
        backoff.later(5);
        assert!(!backoff.is_due(after(5, first) - 1) && backoff.is_due(after(5, first)));
        backoff.later(5);
        backoff.later(5);
        assert_eq!(backoff.due_ns(), Some(after(5, last)));
        backoff.hurry();
        backoff.later(5);
        assert_eq!(backoff.due_ns(), Some(after(5, first)));
        backoff.tried();
        assert_eq!(backoff.due_ns(), None);
        backoff.soon(5);
        backoff.soon(6);
        assert_eq!(backoff.due_ns(), Some(after(5, first)), "it is not put off");
        backoff.later(5);
        backoff.later(5);
        backoff.soon(6);
        assert_eq!(backoff.due_ns(), Some(after(6, first)));
    }
}
