//! When something is due: periods that must not pass; and, of the core, tries that come ever more rarely.

use std::time::Duration;

pub(crate) use tsuji_core::pacing::{Backoff, after, nanos};

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
}
