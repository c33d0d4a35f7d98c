//! Timers on the monotonic clock, and on any other whose schedule is kept elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_platform::ordered::Mutex;
use tsuji_transport::bell::Cell;

use crate::executor::Entity;
use crate::pacing::nanos;
use crate::{CallbackGroup, Error, Node, Result, TimerOptions};

/// Calls back again and again by a clock, until dropped.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::Context;
///
/// let node = Context::new()?.node("watchdog")?;
/// let timer = node.create_timer(Duration::from_millis(100), || println!("no sign of life for 100 ms"))?;
/// // A sign of life.
/// timer.reset();
/// tsuji::spin(&node)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[must_use = "it ends when it is dropped"]
pub struct Timer {
    node: Node,
    schedule: Arc<dyn Schedule>,
    entity: Arc<dyn Entity>,
}

impl Timer {
    pub(crate) fn create(
        node: &Node,
        options: TimerOptions,
        callback: Box<dyn FnMut() + Send>,
    ) -> Result<Self> {
        let TimerOptions { period, clock, group } = options;
        if period.is_zero() {
            return Err(Error::invalid("a timer's period is 0; allowed: at least 1 ns"));
        }
        let schedule: Arc<dyn Schedule> = match &clock {
            Some(clock) => clock.schedule(node, period)?,
            None => Arc::new(Periodic::new(period)),
        };
        let group = group.unwrap_or_else(|| node.group().clone());
        let entity: Arc<dyn Entity> =
            Arc::new(TimerEntity::new(Arc::clone(&schedule), group, callback));
        node.run(&entity)?;
        Ok(Self { node: node.clone(), schedule, entity })
    }

    /// Begins a new period now.
    pub fn reset(&self) {
        self.schedule.reset();
        self.node.wake();
    }

    /// Ends the calls, until [`reset`](Self::reset).
    pub fn cancel(&self) {
        self.schedule.cancel();
    }

    /// Returns the time from one call to the next, by the timer's clock.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.schedule.period_ns())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.node.context().session().is_current() {
            self.node.run_no_more(&self.entity);
        }
    }
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").field("period", &self.period()).finish_non_exhaustive()
    }
}

/// Times at which a [`Timer`] calls back, such as by a clock that others move.
///
/// The threads of an executor ask it whenever they look for what is ready, with no lock held, so it should not
/// wait. Whoever makes it due sooner than it has said calls [`Node::wake`] after that.
pub(crate) trait Schedule: Send + Sync {
    /// When it is due next, in nanoseconds of the monotonic clock: 0 is now, `u64::MAX` not before a [`Node::wake`].
    fn due_ns(&self) -> u64;

    /// Whether the timer is to call back now. It is asked before each call, and plans the next where it says so.
    fn begin(&self) -> bool;

    /// Begins a new period.
    fn reset(&self);

    /// Is not due until the next [`reset`](Self::reset).
    fn cancel(&self);

    /// From one call to the next.
    fn period_ns(&self) -> u64;
}

struct TimerEntity {
    schedule: Arc<dyn Schedule>,
    group: CallbackGroup,
    callback: Mutex<Box<dyn FnMut() + Send>>,
}

impl TimerEntity {
    fn new(
        schedule: Arc<dyn Schedule>,
        group: CallbackGroup,
        callback: Box<dyn FnMut() + Send>,
    ) -> Self {
        Self { schedule, group, callback: Mutex::new(callback) }
    }
}

impl Entity for TimerEntity {
    fn cell(&self) -> Option<&Arc<Cell>> {
        None
    }

    fn run(&self, _more: &mut dyn FnMut()) {
        if self.schedule.begin() {
            (self.callback.lock().unwrap_or_else(PoisonError::into_inner))();
        }
    }

    fn due_ns(&self) -> Option<u64> {
        Some(self.schedule.due_ns())
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

/// Due again and again on the monotonic clock.
pub(crate) struct Periodic {
    period_ns: u64,
    /// [`NEVER`] while it is cancelled. One word, so that whoever sees that it is not sees when it is due.
    next_ns: AtomicU64,
}

/// A cancelled timer is still one with a time, only a very late one.
const NEVER: u64 = u64::MAX;

impl Periodic {
    pub(crate) fn new(period: Duration) -> Self {
        let period_ns = nanos(period);
        let next_ns = clock::monotonic_ns().saturating_add(period_ns);
        Self { period_ns, next_ns: AtomicU64::new(next_ns) }
    }
}

impl Schedule for Periodic {
    fn due_ns(&self) -> u64 {
        self.next_ns.load(Ordering::Acquire)
    }

    /// Then it is due again a whole number of periods later.
    fn begin(&self) -> bool {
        let now_ns = clock::monotonic_ns();
        let due_ns = self.next_ns.load(Ordering::Acquire);
        if now_ns < due_ns {
            return false;
        }
        let missed = (now_ns - due_ns) / self.period_ns;
        let next_ns = due_ns.saturating_add((missed + 1).saturating_mul(self.period_ns));
        // Else it was reset or cancelled just now, and that stands.
        let taken =
            self.next_ns.compare_exchange(due_ns, next_ns, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    }

    fn reset(&self) {
        let next_ns = clock::monotonic_ns().saturating_add(self.period_ns);
        self.next_ns.store(next_ns, Ordering::Release);
    }

    fn cancel(&self) {
        self.next_ns.store(NEVER, Ordering::Release);
    }

    fn period_ns(&self) -> u64 {
        self.period_ns
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::CallbackGroupKind;

    /// The executor may look at a timer at any moment of a reset.
    #[test]
    fn a_timer_that_was_reset_waits_for_a_whole_period() {
        let called_ns = Arc::new(AtomicU64::new(0));
        let calling = Arc::clone(&called_ns);
        let note = move || calling.store(clock::monotonic_ns(), Ordering::Release);
        let group = CallbackGroup::new(CallbackGroupKind::MutuallyExclusive);
        let schedule = Arc::new(Periodic::new(Duration::from_micros(20)));
        let timer = TimerEntity::new(schedule, group, Box::new(note));
        let (looks, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut early = None;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    timer.run(&mut || ());
                    looks.fetch_add(1, Ordering::Release);
                }
            });
            for _ in 0..1_000 {
                timer.schedule.cancel();
                // The look that is under way may call back yet, the one after it does not.
                let looked = looks.load(Ordering::Acquire) + 2;
                let passed_ns = clock::monotonic_ns() + timer.schedule.period_ns();
                while looks.load(Ordering::Acquire) < looked || clock::monotonic_ns() < passed_ns {
                    std::hint::spin_loop();
                }
                called_ns.store(0, Ordering::Release);
                let reset_ns = clock::monotonic_ns();
                timer.schedule.reset();
                let mut first_ns = 0;
                while first_ns == 0 {
                    std::hint::spin_loop();
                    first_ns = called_ns.load(Ordering::Acquire);
                }
                if first_ns < reset_ns + timer.schedule.period_ns() {
                    early = Some(first_ns - reset_ns);
                    break;
                }
            }
            is_over.store(true, Ordering::Release);
        });
        assert_eq!(early, None, "ns after it was reset");
    }
}
