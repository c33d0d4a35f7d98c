//! Timers on the monotonic clock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_transport::bell::Cell;

use crate::executor::Entity;
use crate::pacing::nanos;
use crate::{CallbackGroup, Node};

/// Calls back again and again, until dropped.
#[must_use = "it ends when it is dropped"]
pub struct Timer {
    node: Node,
    entity: Arc<TimerEntity>,
}

impl Timer {
    pub(crate) fn new(node: Node, entity: Arc<TimerEntity>) -> Self {
        Self { node, entity }
    }

    /// Begins a new period now.
    pub fn reset(&self) {
        self.entity.is_cancelled.store(false, Ordering::Release);
        let next = clock::monotonic_ns() + self.entity.period_ns;
        self.entity.next_ns.store(next, Ordering::Release);
        self.node.wake();
    }

    /// Calls back no more, until [`reset`](Self::reset).
    pub fn cancel(&self) {
        self.entity.is_cancelled.store(true, Ordering::Release);
    }

    /// The time from one call to the next.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.entity.period_ns)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if !self.node.context().host().is_current() {
            return;
        }
        let entity: Arc<dyn Entity> = Arc::<TimerEntity>::clone(&self.entity);
        self.node.run_no_more(&entity);
    }
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").field("period", &self.period()).finish_non_exhaustive()
    }
}

pub(crate) struct TimerEntity {
    period_ns: u64,
    next_ns: AtomicU64,
    is_cancelled: AtomicBool,
    group: CallbackGroup,
    callback: Mutex<Box<dyn FnMut() + Send>>,
}

impl TimerEntity {
    pub(crate) fn new(
        period: Duration,
        group: CallbackGroup,
        callback: Box<dyn FnMut() + Send>,
    ) -> Self {
        let period_ns = nanos(period);
        Self {
            period_ns,
            next_ns: AtomicU64::new(clock::monotonic_ns().saturating_add(period_ns)),
            is_cancelled: AtomicBool::new(false),
            group,
            callback: Mutex::new(callback),
        }
    }
}

impl Entity for TimerEntity {
    fn cell(&self) -> Option<&Arc<Cell>> {
        None
    }

    fn run(&self, _more: &mut dyn FnMut()) {
        let now_ns = clock::monotonic_ns();
        let due_ns = self.next_ns.load(Ordering::Acquire);
        if self.is_cancelled.load(Ordering::Acquire) || now_ns < due_ns {
            return;
        }
        let missed = (now_ns - due_ns) / self.period_ns;
        let next = due_ns.saturating_add((missed + 1).saturating_mul(self.period_ns));
        self.next_ns.store(next, Ordering::Release);
        (self.callback.lock().unwrap_or_else(PoisonError::into_inner))();
    }

    fn due_ns(&self) -> Option<u64> {
        // A cancelled timer is still one with a time, only a very late one.
        let is_cancelled = self.is_cancelled.load(Ordering::Acquire);
        Some(if is_cancelled { u64::MAX } else { self.next_ns.load(Ordering::Acquire) })
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}
