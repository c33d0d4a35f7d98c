//! Time: clocks that simulation may move, timers and sleeps by them.
//!
//! A node's ROS time is the system's until its parameter `use_sim_time` says otherwise; then it is what arrives on
//! `/clock`, and 0 before the first message, as in rclcpp. The parameter is declared when [`Node::clock`] is first
//! asked for, may change at any time, and while it is true the node listens to `/clock` by a thread of its own:
//! simulated time goes on while callbacks of the node run, or wait for it. It ends with the node; then the time is the
//! system's.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use tsuji::{Context, TimerOptions};
//!
//! let context = Context::builder().args(std::env::args().skip(1)).build()?;
//! let node = context.node("drive")?;
//! let clock = node.clock()?;
//! let options = TimerOptions::new(Duration::from_millis(100)).clock(&clock);
//! let _timer = node.create_timer(options, move || println!("at {} ns", clock.now_ns()))?;
//! tsuji::spin(&node)?;
//! # Ok::<_, tsuji::Error>(())
//! ```
//!
//! **Timers.** While ROS time is the system's, a timer by it runs on the monotonic clock, so that nobody who sets the
//! system's clock moves it. While it is simulated the timer is due as `/clock` moves, and rests while that rests. As in
//! rcl, time that jumps forward over several calls is one call; time that jumps back before the last call begins a new
//! period, so that no timer waits longer than one. A timer that is made before the first message has its first call with
//! that. When `use_sim_time` changes, a timer waits what was left of its period; where simulated time has not begun, a whole
//! period from when it does.

mod plan;

mod ros_time;
pub use ros_time::{JumpCallback, JumpKind, JumpThreshold, TimeJump};

mod source;
pub(crate) use source::TimeSource;

mod timer;
use timer::Clocked;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::stamp::time;
use crate::timer::{Periodic, Schedule};
use crate::{Context, Error, ErrorKind, GuardCondition, Node, Result, WaitList};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_platform::clock;

use ros_time::{Now, RosTime, monotonic_ns};

/// Kind of time that a [`Clock`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockKind {
    /// Nanoseconds since 1970, or of a simulation.
    Ros,
    /// Nanoseconds of the monotonic clock, which nobody sets.
    Steady,
    /// Nanoseconds since 1970 by the system's clock.
    System,
}

/// A clock. Clones are the same.
#[derive(Clone)]
pub struct Clock {
    context: Context,
    by: By,
}

#[derive(Clone)]
enum By {
    Ros(Arc<RosTime>),
    Steady,
    System,
}

impl Clock {
    /// Creates a clock that counts the monotonic clock.
    pub fn steady(context: &Context) -> Self {
        Self { context: context.clone(), by: By::Steady }
    }

    /// Creates a clock that counts the system's.
    pub fn system(context: &Context) -> Self {
        Self { context: context.clone(), by: By::System }
    }

    /// ROS time that is never simulated.
    pub(crate) fn system_of_ros(context: &Context) -> Self {
        Self::ros(context, &RosTime::new())
    }

    fn ros(context: &Context, time: &Arc<RosTime>) -> Self {
        Self { context: context.clone(), by: By::Ros(Arc::clone(time)) }
    }

    /// Returns what the clock counts.
    pub fn kind(&self) -> ClockKind {
        match self.by {
            By::Ros(_) => ClockKind::Ros,
            By::Steady => ClockKind::Steady,
            By::System => ClockKind::System,
        }
    }

    /// Returns the time in nanoseconds. Of simulated time 0 before the first message on `/clock`.
    pub fn now_ns(&self) -> i64 {
        match &self.by {
            By::Ros(time) => shown_ns(time.now()),
            By::Steady => monotonic_ns(),
            By::System => clock::wall_ns(),
        }
    }

    /// Returns the time as messages have it.
    pub fn now(&self) -> Time {
        time(self.now_ns())
    }

    /// Returns how many messages on `/clock` were no time and without effect: before 1970, or with more than
    /// 999,999,999 nanoseconds.
    pub fn invalid_messages(&self) -> u64 {
        match &self.by {
            By::Ros(time) => time.invalid.load(Ordering::Relaxed),
            By::Steady | By::System => 0,
        }
    }

    /// Returns true if it is ROS time that `/clock` moves.
    pub fn is_simulated(&self) -> bool {
        matches!(&self.by, By::Ros(time) if matches!(time.now(), Now::Simulated(_)))
    }

    /// Sleeps until the clock shows `until_ns`, or more, and returns true.
    ///
    /// It returns false where simulated time began or ended meanwhile, since what is waited for may never come
    /// then. With simulated time that rests it sleeps as long.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child, [`ErrorKind::Exhausted`] as
    /// [`WaitList::new`].
    pub fn sleep_until(&self, until_ns: i64) -> Result<bool> {
        self.sleep(|_| until_ns)
    }

    /// Until what `until_ns` says of the time at the beginning.
    fn sleep(&self, until_ns: impl FnOnce(i64) -> i64) -> Result<bool> {
        let mut list = WaitList::new(&self.context)?;
        let By::Ros(time) = &self.by else {
            let until_ns = until_ns(self.now_ns());
            loop {
                let left_ns = until_ns.saturating_sub(self.now_ns());
                if left_ns <= 0 {
                    return Ok(true);
                }
                list.wait(&[], Some(Duration::from_nanos(left_ns.unsigned_abs())))?;
            }
        };
        let guard = GuardCondition::new(&self.context)?;
        let sleeper = time.sleep(|now| until_ns(shown_ns(now)), &guard);
        let until_ns = sleeper.until_ns();
        loop {
            let left = match time.now() {
                _ if sleeper.has_changed() => return Ok(false),
                Now::Simulated(now_ns) if until_ns <= now_ns => return Ok(true),
                Now::Simulated(_) => None,
                Now::System => match until_ns.saturating_sub(clock::wall_ns()) {
                    ..=0 => return Ok(true),
                    left_ns => Some(Duration::from_nanos(left_ns.unsigned_abs())),
                },
            };
            list.wait(&[&guard], left)?;
        }
    }

    /// Sleeps for so long by this clock, as [`sleep_until`](Self::sleep_until) does.
    ///
    /// # Errors
    ///
    /// Those of [`sleep_until`](Self::sleep_until).
    pub fn sleep_for(&self, duration: Duration) -> Result<bool> {
        self.sleep(|now_ns| now_ns.saturating_add(nanos(duration)))
    }

    /// Calls `callback` after each jump of ROS time beyond `threshold`, for as long as the answer is kept. Other
    /// clocks do not jump.
    ///
    /// It is called by a thread that has moved the time. What it is not told of while it runs it is told
    /// afterwards, and one that panics is reported and called again.
    pub fn on_jump(
        &self,
        threshold: JumpThreshold,
        callback: impl FnMut(&TimeJump) + Send + 'static,
    ) -> JumpCallback {
        match &self.by {
            By::Ros(time) => time.on_jump(threshold, Box::new(callback)),
            By::Steady | By::System => JumpCallback::of_nothing(),
        }
    }

    /// When a timer of this clock is due.
    pub(crate) fn schedule(&self, node: &Node, period: Duration) -> Result<Arc<dyn Schedule>> {
        Ok(match &self.by {
            By::Ros(time) => Clocked::add(node, time, nanos(period)),
            By::Steady => Arc::new(Periodic::new(period)),
            By::System => {
                let what = "a timer by the system's clock; allowed: ROS or steady time";
                return Err(Error::new(ErrorKind::Invalid, what));
            }
        })
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

/// What ROS time shows.
fn shown_ns(now: Now) -> i64 {
    match now {
        Now::System => clock::wall_ns(),
        Now::Simulated(ns) => ns,
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// Whatever a sleeper reads of the time, it is told of what comes after.
    #[test]
    fn a_sleep_ends_though_simulated_time_begins_meanwhile() {
        let folder = std::env::temp_dir().join(format!("tsuji-sleep-{}", std::process::id()));
        let context = Context::builder().runtime_dir(&folder).domain(7).isolated().build().unwrap();
        for _ in 0..300 {
            let time = RosTime::new();
            let clock = Clock::ros(&context, &time);
            let begin = Barrier::new(2);
            thread::scope(|scope| {
                let sleeping = scope.spawn(|| {
                    begin.wait();
                    clock.sleep_for(Duration::from_micros(1)).unwrap()
                });
                begin.wait();
                time.tell(time.simulate());
                // The beginning of a sleep by simulated time may be after this.
                while !sleeping.is_finished() {
                    let Now::Simulated(now_ns) = time.now() else { unreachable!() };
                    time.advance(now_ns + 1_000_000);
                    thread::yield_now();
                }
                sleeping.join().unwrap();
            });
        }
        drop(context);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
