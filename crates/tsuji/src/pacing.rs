//! When something is due: periods that must not pass, and tries that come ever more rarely.

use std::time::Duration;

use tsuji_platform::clock;

/// `duration` in nanoseconds, at least 1.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// The time `period` after `start_ns`.
pub(crate) fn after(start_ns: u64, period: Duration) -> u64 {
    start_ns.saturating_add(nanos(period))
}

/// How long a link over an engine stays open that no flow has any more. It may be wanted again soon.
pub(crate) const LINK_IDLE_MAX: Duration = Duration::from_secs(5);

/// Counts the periods in which no sample came, as a QoS states them.
#[derive(Debug)]
pub(crate) struct DeadlineWatch {
    period: Option<Duration>,
    /// The end of the last period that was counted.
    from_ns: u64,
    missed: u64,
}

impl DeadlineWatch {
    pub(crate) fn new(period: Option<Duration>) -> Self {
        Self { period, from_ns: 0, missed: 0 }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.period.is_some()
    }

    /// What was before does not count.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.from_ns = now_ns;
    }

    /// When the current period ends, which began with the sample of `newest_ns`.
    pub(crate) fn due_ns(&self, newest_ns: u64) -> Option<u64> {
        self.period.map(|period| after(newest_ns.max(self.from_ns), period))
    }

    /// Counts the periods that ended since the sample of `newest_ns`: all there ever were, if there
    /// are new ones.
    pub(crate) fn look(&mut self, newest_ns: u64, now_ns: u64) -> Option<u64> {
        let period_ns = nanos(self.period?);
        let from_ns = newest_ns.max(self.from_ns);
        let missed = now_ns.saturating_sub(from_ns) / period_ns;
        if missed == 0 {
            return None;
        }
        self.from_ns = from_ns + missed * period_ns;
        self.missed += missed;
        Some(self.missed)
    }
}

/// Tries that come ever more rarely.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    last: Duration,
    /// The time to the try after the next.
    pause: Duration,
    /// The next try; `None` while none is planned.
    due_ns: Option<u64>,
}

impl Backoff {
    pub(crate) fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, pause: first, due_ns: None }
    }

    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.due_ns.is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// Plans the next try.
    pub(crate) fn later(&mut self) {
        self.due_ns = Some(after(clock::monotonic_ns(), self.pause));
        self.pause = self.last.min(2 * self.pause);
    }

    /// Plans a try as soon as the first one, unless one is due before. Who asks again and again does not put it off.
    pub(crate) fn soon(&mut self) {
        let soon_ns = after(clock::monotonic_ns(), self.first);
        if self.due_ns.is_none_or(|due_ns| soon_ns < due_ns) {
            self.hurry();
            self.later();
        }
    }

    /// From here on tries are as frequent as at first.
    pub(crate) fn hurry(&mut self) {
        self.pause = self.first;
    }

    /// The try that was planned is made.
    pub(crate) fn tried(&mut self) {
        self.due_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_periods_without_a_sample_are_counted_once() {
        let mut watch = DeadlineWatch::new(Some(Duration::from_nanos(100)));
        watch.begin(1000);
        assert_eq!(watch.due_ns(0), Some(1100));
        assert_eq!(watch.look(0, 1099), None);
        assert_eq!(watch.look(0, 1350), Some(3));
        assert_eq!(watch.look(0, 1399), None);
        assert_eq!(watch.look(1390, 1450), None);
        assert_eq!(watch.due_ns(1390), Some(1490));
        assert_eq!(watch.look(1390, 1490), Some(4));
    }

    #[test]
    fn nothing_is_due_without_a_period() {
        let mut watch = DeadlineWatch::new(None);
        assert_eq!((watch.due_ns(5), watch.look(5, u64::MAX)), (None, None));
    }

    #[test]
    fn tries_grow_rare_and_can_be_hurried() {
        let (first, last) = (Duration::from_secs(100), Duration::from_secs(300));
        let mut backoff = Backoff::new(first, last);
        assert_eq!(backoff.due_ns(), None);
        let now_ns = clock::monotonic_ns();
        backoff.later();
        assert!(!backoff.is_due(now_ns) && backoff.is_due(after(clock::monotonic_ns(), first)));
        backoff.later();
        backoff.later();
        assert!(!backoff.is_due(after(now_ns, last) - 1));
        backoff.hurry();
        backoff.later();
        assert!(backoff.is_due(after(clock::monotonic_ns(), first)));
        backoff.tried();
        assert_eq!(backoff.due_ns(), None);
        backoff.soon();
        let due_ns = backoff.due_ns();
        backoff.soon();
        assert_eq!(backoff.due_ns(), due_ns, "it is not put off");
        backoff.later();
        backoff.later();
        backoff.soon();
        assert!(backoff.is_due(after(clock::monotonic_ns(), first)));
    }
}
