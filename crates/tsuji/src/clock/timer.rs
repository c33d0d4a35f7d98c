//! When timers by ROS time are due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Node;
use crate::timer::Schedule;
use tsuji_platform::ordered::Mutex;

use super::plan::Plan;
use super::ros_time::{Now, RosTime, monotonic_ns};
use crate::lock;

/// What a timer goes by.
pub(crate) struct Clocked {
    /// Without its parts: who moves the time may be the last to have this.
    node: Node,
    time: Arc<RosTime>,
    state: Mutex<State>,
    /// What executors are told, in one word: they ask often.
    due_ns: AtomicU64,
}

struct State {
    plan: Plan,
    /// Whether the plan counts by simulated time. Changes a moment after the time itself.
    is_simulated: bool,
}

/// What is due as soon as somebody looks.
const NOW: u64 = 0;
/// What is not due before the node is woken.
const NEVER: u64 = u64::MAX;

impl Clocked {
    /// That of a timer that is to be made under `node`.
    pub(crate) fn add(node: &Node, time: &Arc<RosTime>, period_ns: i64) -> Arc<Self> {
        time.add_timer(|now| Self::new(node, time, period_ns, now))
    }

    fn new(node: &Node, time: &Arc<RosTime>, period_ns: i64, now: Now) -> Arc<Self> {
        let (is_simulated, now_ns) = match now {
            Now::System => (false, monotonic_ns()),
            Now::Simulated(ns) => (true, ns),
        };
        let state = State { plan: Plan::new(period_ns, now_ns), is_simulated };
        let due_ns = AtomicU64::new(state.due_ns(now_ns));
        Arc::new(Self { node: node.bare(), time: Arc::clone(time), state: state.into(), due_ns })
    }

    /// What the clock shows that the plan counts by; `None` in the moment in which another begins to.
    fn now_ns(&self, state: &State) -> Option<i64> {
        if !state.is_simulated {
            return Some(monotonic_ns());
        }
        match self.time.now() {
            Now::Simulated(ns) => Some(ns),
            Now::System => None,
        }
    }

    /// Simulated time is `now_ns`.
    pub(crate) fn moved(&self, now_ns: i64) {
        let mut state = lock(&self.state);
        state.plan.moved(now_ns);
        self.tell(&state, now_ns);
    }

    /// Another clock counts.
    pub(crate) fn change_clock(&self, before: Now, now: Now) {
        let mut state = lock(&self.state);
        let before_ns = match before {
            Now::System => monotonic_ns(),
            Now::Simulated(ns) => ns,
        };
        let now_ns = match now {
            Now::System => monotonic_ns(),
            Now::Simulated(ns) => ns,
        };
        if !state.is_simulated && now == Now::System {
            // It was reset after the time changed.
            return;
        }
        state.is_simulated = matches!(now, Now::Simulated(_));
        match now {
            // Nobody knows yet when the simulation is.
            Now::Simulated(0) => state.plan.await_clock(),
            // It has not begun, and with it no period.
            _ if before == Now::Simulated(0) => state.plan.reset_if_running(now_ns),
            _ => state.plan.change_clock(before_ns, now_ns),
        }
        self.tell(&state, now_ns);
    }

    /// Tells the executor when to look again, and wakes it where that may be sooner.
    fn tell(&self, state: &State, now_ns: i64) {
        let due_ns = state.due_ns(now_ns);
        let before_ns = self.due_ns.swap(due_ns, Ordering::AcqRel);
        if due_ns < before_ns {
            self.node.wake();
        }
    }
}

impl State {
    /// On the monotonic clock.
    fn due_ns(&self, now_ns: i64) -> u64 {
        match self.plan.due_ns() {
            Some(due_ns) if !self.is_simulated => u64::try_from(due_ns).unwrap_or(NOW),
            Some(_) if self.plan.is_due(now_ns) => NOW,
            _ => NEVER,
        }
    }
}

impl Schedule for Clocked {
    fn due_ns(&self) -> u64 {
        self.due_ns.load(Ordering::Acquire)
    }

    fn begin(&self) -> bool {
        let mut state = lock(&self.state);
        let Some(now_ns) = self.now_ns(&state) else { return false };
        let begins = state.plan.begin(now_ns);
        self.due_ns.store(state.due_ns(now_ns), Ordering::Release);
        begins
    }

    fn reset(&self) {
        let mut state = lock(&self.state);
        let now_ns = self.now_ns(&state).unwrap_or_else(|| {
            // The time is the system's already, which the timer is about to be told.
            state.is_simulated = false;
            monotonic_ns()
        });
        state.plan.reset(now_ns);
        if state.is_simulated && now_ns == 0 {
            // The period begins when time does.
            state.plan.await_clock();
        }
        self.tell(&state, now_ns);
    }

    fn cancel(&self) {
        let mut state = lock(&self.state);
        state.plan.cancel();
        self.due_ns.store(NEVER, Ordering::Release);
    }

    fn period_ns(&self) -> u64 {
        lock(&self.state).plan.period_ns().unsigned_abs()
    }
}

impl std::fmt::Debug for Clocked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clocked").field("node", &self.node).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::Context;

    use super::*;

    #[test]
    fn a_reset_while_the_clock_changes_begins_a_period() {
        let folder = std::env::temp_dir().join(format!("tsuji-timer-{}", std::process::id()));
        let context = Context::builder().runtime_dir(&folder).domain(7).isolated().build().unwrap();
        let node = context.node("timed").unwrap();
        // It counts by a simulation, whose end it is not told of yet.
        let (time, before) = (RosTime::new(), Now::Simulated(5));
        let clocked = Clocked::new(&node, &time, 1_000_000_000, before);
        clocked.cancel();
        clocked.reset();
        let due_ns = clocked.due_ns();
        assert!(due_ns != NEVER && due_ns != NOW);
        clocked.change_clock(before, Now::System);
        assert_eq!(clocked.due_ns(), due_ns);
        drop((clocked, node, context));
        let _ = std::fs::remove_dir_all(&folder);
    }
}
