//! What leaves the host and the robot less often than it is published: a second publisher, whose samples have numbers of their own.
//!
//! A subscription tells losses by numbers, so what is left out for some must not be numbered for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tsuji_core::{Durability, Rate};
use tsuji_platform::clock;

use super::{Outgoing, PublisherCore, PublisherCounters, PublisherSpec};
use crate::Result;
use crate::endpoint::{Audience, EndpointCore};
use crate::events::PublisherEvent;

/// The publisher that others than those inside hear.
pub(super) struct Outside {
    core: Arc<PublisherCore>,
    pace: Pace,
    held_back: AtomicU64,
}

impl Outside {
    fn new(inside: &EndpointCore, spec: PublisherSpec, rate: Rate) -> Result<Self> {
        let mut qos = inside.qos;
        // It cannot keep a shorter one.
        qos.deadline = qos.deadline.map(|it| it.max(rate.period()));
        // Nobody inside waits for the outside.
        let spec = PublisherSpec { max_blocking: Duration::ZERO, ..spec };
        let core = PublisherCore::new(inside.for_outside(qos), spec)?;
        let pace = Pace::new(rate.period());
        Ok(Self { core: Arc::new(core), pace, held_back: AtomicU64::new(0) })
    }

    /// What finds no room is dropped, and counted there.
    pub(super) fn publish(&self, outgoing: &Outgoing<'_>) {
        if self.pace.lets_pass(clock::monotonic_ns()) {
            let _ = self.core.publish(outgoing);
        } else {
            self.held_back.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds what became of samples on their way out.
    pub(super) fn add_to(&self, counters: &mut PublisherCounters) {
        let outside = self.core.counters();
        counters.held_back += self.held_back.load(Ordering::Relaxed);
        counters.dropped += outside.dropped;
        counters.displaced += outside.displaced;
        counters.failed += outside.failed;
    }
}

impl PublisherCore {
    /// A topic's, with a second one where its export has a rate.
    pub(crate) fn of_topic(mut core: EndpointCore, spec: PublisherSpec) -> Result<Arc<Self>> {
        let rate = core.session.outward().rate(&core.topic);
        // What is kept for late joiners is a state, of which the newest is to be known everywhere.
        let is_kept = core.qos.durability == Durability::TransientLocal;
        let Some(rate) = rate.filter(|_| !is_kept) else {
            return Ok(Arc::new(Self::new(core, spec)?));
        };
        let outside = Outside::new(&core, spec, rate)?;
        core.audience = Audience::Inside;
        let events_of_outside = Arc::clone(&outside.core);
        let inside = Arc::new(Self { outside: Some(outside), ..Self::new(core, spec)? });
        let weak = Arc::downgrade(&inside);
        events_of_outside.events.note(Arc::new(move |event| {
            if let Some(inside) = weak.upgrade() {
                inside.heard_outside(event);
            }
        }));
        Ok(inside)
    }

    /// The publisher that those outside hear, where it is another.
    pub(crate) fn outside(&self) -> Option<&Arc<Self>> {
        self.outside.as_ref().map(|it| &it.core)
    }

    /// This one and the other.
    pub(crate) fn both(&self) -> impl Iterator<Item = &Self> {
        [self].into_iter().chain(self.outside().map(|it| &**it))
    }

    /// Whoever listens to events of this publisher hears of all its subscriptions.
    fn heard_outside(&self, event: &PublisherEvent) {
        match event {
            PublisherEvent::Matched { .. } => self.tell_matched(),
            PublisherEvent::IncompatibleQos { .. } | PublisherEvent::IncompatibleType { .. } => {
                self.events.push(event.clone());
            }
            // What it offers to those inside says this one itself.
            PublisherEvent::DeadlineMissed { .. } | PublisherEvent::LivelinessLost => {}
        }
    }
}

/// Lets something pass so many times a second on average, never twice within half of the time from one to the next.
struct Pace {
    period_ns: u64,
    next_ns: AtomicU64,
}

impl Pace {
    fn new(period: Duration) -> Self {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        Self { period_ns, next_ns: AtomicU64::new(0) }
    }

    fn lets_pass(&self, now_ns: u64) -> bool {
        let next = self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due_ns| {
            let next_ns = due_ns.saturating_add(self.period_ns);
            (due_ns <= now_ns).then(|| next_ns.max(now_ns.saturating_add(self.period_ns / 2)))
        });
        next.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(period_ns: u64, times: impl Iterator<Item = u64>) -> Vec<u64> {
        let pace = Pace::new(Duration::from_nanos(period_ns));
        times.filter(|it| pace.lets_pass(*it)).collect()
    }

    #[test]
    fn a_beat_is_thinned_to_the_rate_whether_it_divides_it_or_not() {
        let beat = |period: u64| (1..=3000).map(move |it| it * period);
        assert_eq!(passed(600, beat(100)).len(), 500);
        assert_eq!(passed(150, beat(100)).len(), 2000);
        assert_eq!(passed(100, beat(100)).len(), 3000, "what is as seldom passes whole");
        assert_eq!(passed(99, beat(100)).len(), 3000);
    }

    #[test]
    fn after_a_pause_nothing_is_made_up_for() {
        assert_eq!(
            passed(100, [1, 10_000, 10_010, 10_049, 10_051, 10_100].into_iter()),
            [1, 10_000, 10_051]
        );
    }

    proptest! {
        #[test]
        fn no_more_pass_than_the_rate_allows(
            period in 2u64..1000,
            gaps in prop::collection::vec(0u64..2000, 1..200),
        ) {
            let times = gaps.iter().scan(1_000_000, |at, gap| { *at += gap; Some(*at) });
            let passed = passed(period, times);
            for (first, at) in passed.iter().enumerate() {
                prop_assert!(first == 0 || period / 2 <= at - passed[first - 1]);
                for (last, end) in passed.iter().enumerate().skip(first) {
                    // One more than fits, as the first may be late.
                    prop_assert!((last - first) as u64 <= (end - at) / period + 1);
                }
            }
        }
    }
}
