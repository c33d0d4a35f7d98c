//! What leaves the host and the robot less often than it is published: a second publisher, whose samples have numbers of their own.
//!
//! A subscription tells losses by numbers, so what is held back from some must not be numbered for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tsuji_core::{Durability, Rate};
use tsuji_platform::clock;
use tsuji_transport::deferred::told;

use super::{Outgoing, PublisherCore, PublisherCounters, PublisherSpec, may_wait};
use crate::endpoint::{Audience, EndpointCore};
use crate::events::PublisherEvent;
use crate::pacing::{after, nanos};
use crate::{Error, Result};

/// The publisher that those outside meet.
pub(super) struct Outside {
    core: Arc<PublisherCore>,
    pace: Pace,
    held_back: AtomicU64,
    has_told_of_error: AtomicBool,
}

impl Outside {
    fn new(inside: &EndpointCore, spec: PublisherSpec, rate: Rate) -> Result<Self> {
        let mut qos = inside.qos;
        // The first sample that is due after a period may come as late as the next one inside.
        qos.deadline = qos.deadline.map(|it| it.saturating_add(rate.period()));
        // Nobody inside waits for those outside.
        let spec = PublisherSpec { max_blocking: Duration::ZERO, ..spec };
        let core = PublisherCore::new(inside.for_outside(qos), spec)?;
        let (held_back, has_told_of_error) = (AtomicU64::new(0), AtomicBool::new(false));
        let pace = Pace::new(rate.period());
        Ok(Self { core: Arc::new(core), pace, held_back, has_told_of_error })
    }

    /// What finds no room is dropped, and the next one takes its turn.
    pub(super) fn publish(&self, outgoing: &Outgoing<'_>) {
        let now_ns = clock::monotonic_ns();
        let Some(turn) = self.pace.take_turn(now_ns) else {
            self.held_back.fetch_add(1, Ordering::Relaxed);
            return self.show_life(now_ns);
        };
        if let Err(error) = self.core.publish(outgoing) {
            self.pace.give_back(&turn);
            self.tell(&error);
        }
    }

    /// Says once what will hold for later samples too.
    fn tell(&self, error: &Error) {
        let is_passing = may_wait(error.kind()) || self.core.session.is_stopping();
        if !is_passing && !self.has_told_of_error.swap(true, Ordering::Relaxed) {
            told::warn!(topic = %self.core.topic, %error, "not sent to those outside");
        }
    }

    /// Where samples show that the publisher is alive, those that are held back do too.
    fn show_life(&self, now_ns: u64) {
        let Some(lease) = self.core.manual_lease() else { return };
        let last_ns = self.core.last_sign_ns.load(Ordering::Relaxed);
        if after(last_ns, lease / 4) <= now_ns {
            self.core.assert_liveliness();
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
        let second = Arc::clone(&outside.core);
        let inside = Arc::new(Self { outside: Some(Box::new(outside)), ..Self::new(core, spec)? });
        let weak = Arc::downgrade(&inside);
        let _ = second.inside.set(Weak::clone(&weak));
        second.events.note(Arc::new(move |event| {
            if let Some(inside) = weak.upgrade() {
                inside.hear_of_outside(event);
            }
        }));
        Ok(inside)
    }

    /// The publisher that those outside meet, where it is another.
    pub(crate) fn outside(&self) -> Option<&Arc<Self>> {
        self.outside.as_ref().map(|it| &it.core)
    }

    /// This one and the other.
    pub(crate) fn both(&self) -> impl Iterator<Item = &Self> {
        [self].into_iter().chain(self.outside().map(|it| &**it))
    }

    /// Whether somebody listens to its events.
    pub(crate) fn is_heard(&self) -> bool {
        match self.inside.get().and_then(Weak::upgrade) {
            Some(inside) => inside.events.is_heard(),
            None => self.events.is_heard(),
        }
    }

    /// Whoever listens to events of this publisher hears of all its subscriptions.
    fn hear_of_outside(&self, event: &PublisherEvent) {
        match event {
            PublisherEvent::Matched { .. } => {
                // As whoever else counts them, so that the last one told is the newest.
                let _graph_cache = self.session.graph_cache();
                self.tell_matched();
            }
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
        Self { period_ns: nanos(period), next_ns: AtomicU64::new(0) }
    }

    /// A turn, if one is due.
    fn take_turn(&self, now_ns: u64) -> Option<Turn> {
        let next = |due_ns: u64| {
            let next_ns = due_ns.saturating_add(self.period_ns);
            next_ns.max(now_ns.saturating_add(self.period_ns / 2))
        };
        let taken = self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due_ns| {
            (due_ns <= now_ns).then(|| next(due_ns))
        });
        taken.ok().map(|due_ns| Turn { due_ns, next_ns: next(due_ns) })
    }

    /// A turn of which nothing came, unless another was taken since.
    fn give_back(&self, turn: &Turn) {
        let (next_ns, due_ns) = (turn.next_ns, turn.due_ns);
        let _ =
            self.next_ns.compare_exchange(next_ns, due_ns, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// When something was due, and when the next is.
struct Turn {
    due_ns: u64,
    next_ns: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(period_ns: u64, times: impl Iterator<Item = u64>) -> Vec<u64> {
        let pace = Pace::new(Duration::from_nanos(period_ns));
        times.filter(|it| pace.take_turn(*it).is_some()).collect()
    }

    #[test]
    fn a_beat_is_thinned_to_the_rate_whether_it_divides_it_or_not() {
        let beat = |period: u64| (1..=3000).map(move |it| it * period);
        // The first passes whenever it comes.
        assert_eq!(passed(600, beat(100)).len(), 501);
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

    #[test]
    fn a_turn_of_which_nothing_came_is_the_next_ones() {
        let pace = Pace::new(Duration::from_nanos(100));
        let turn = pace.take_turn(1000).unwrap();
        assert!(pace.take_turn(1001).is_none());
        pace.give_back(&turn);
        assert!(pace.take_turn(1001).is_some());
        pace.give_back(&turn);
        assert!(pace.take_turn(1002).is_none(), "it is another one's");
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
