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

/// Work that goes over all endpoints of a process. Each of them may ask for it; where they are very many, it is not begun again
/// for a while that grows with how long it took, so that it takes a part of a thread and not all of it.
#[derive(Debug, Default)]
pub(crate) struct FullPass {
    is_wanted: bool,
    begun_ns: Option<u64>,
    /// Until when it is not begun again.
    rests_until_ns: u64,
    /// How long it rests at least, for each endpoint.
    endpoint_rest_ns: u64,
}

impl FullPass {
    /// One that is wanted from the first, and that costs others too: it rests so long at least, for each endpoint.
    pub(crate) fn costing_others(endpoint_rest: Duration) -> Self {
        Self { is_wanted: true, endpoint_rest_ns: nanos(endpoint_rest), ..Self::default() }
    }

    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// When it is to begin, if it is wanted.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.is_wanted.then_some(self.rests_until_ns)
    }

    /// Whether it begins now.
    pub(crate) fn begin(&mut self, now_ns: u64) -> bool {
        let begins = self.due_ns().is_some_and(|due_ns| due_ns <= now_ns);
        if begins {
            (self.is_wanted, self.begun_ns) = (false, Some(now_ns));
        }
        begins
    }

    /// It has gone over so many endpoints, if it was begun.
    pub(crate) fn end(&mut self, now_ns: u64, endpoints: usize) {
        let Some(begun_ns) = self.begun_ns.take().filter(|_| ENDPOINTS_AT_ONCE < endpoints) else {
            return;
        };
        // What the machine did meanwhile took longest, if it took as long as that.
        let took_ns = now_ns.saturating_sub(begun_ns).min(endpoints as u64 * TAKES_NS_MAX);
        let least_ns = self.endpoint_rest_ns.saturating_mul(endpoints as u64);
        self.rests_until_ns = now_ns.saturating_add(least_ns.max(took_ns * RESTS));
    }
}

/// A pass over no more endpoints never waits.
const ENDPOINTS_AT_ONCE: usize = 100;

/// How many times as long as a pass took it rests, and what it takes for an endpoint at most.
const RESTS: u64 = 4;
const TAKES_NS_MAX: u64 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pass_over_very_many_rests_and_over_few_does_not() {
        let mut pass = FullPass::default();
        assert!(!pass.begin(1_000_000));
        pass.want();
        assert!(pass.begin(1_000_000));
        pass.end(1_300_000, 1000);
        assert_eq!((pass.due_ns(), pass.begin(u64::MAX)), (None, false));
        pass.want();
        assert_eq!((pass.due_ns(), pass.begin(2_499_999)), (Some(2_500_000), false));
        assert!(pass.begin(2_500_000));
        pass.end(900_000_000, 1000);
        pass.want();
        assert_eq!(pass.due_ns(), Some(900_000_000 + 4 * 1000 * 20_000));
        assert!(pass.begin(u64::MAX / 2));
        // Nothing was begun.
        pass.end(u64::MAX / 2, 100);
        pass.end(u64::MAX / 2 + 5, 1000);
        pass.want();
        assert!(pass.begin(u64::MAX / 2));

        let mut telling = FullPass::costing_others(Duration::from_micros(10));
        assert!(telling.begin(5));
        telling.end(5, 14_000);
        telling.want();
        assert_eq!(telling.due_ns(), Some(140_000_005));
    }

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
