//! ROS time of a node: what it shows, and who is told when it moves.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::GuardCondition;
use tsuji_platform::clock;
use tsuji_platform::ordered::Mutex;
use tsuji_platform::report;

use super::timer::Clocked;
use crate::lock;

/// How ROS time has jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeJump {
    /// Whether another clock counts.
    pub kind: JumpKind,
    /// Nanoseconds forward, or back where negative; 0 where another clock counts, as in rcl.
    pub delta_ns: i64,
}

/// Whether another clock counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpKind {
    /// The same one has moved.
    Moved,
    /// Time is simulated from now on.
    Activated,
    /// Time is the system's from now on.
    Deactivated,
}

/// Which jumps are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpThreshold {
    /// Whether those are to another clock.
    pub on_clock_change: bool,
    /// Those forward by so much or more; `None` for none of them.
    pub min_forward: Option<Duration>,
    /// Those back by so much or more; `None` for none of them.
    pub min_backward: Option<Duration>,
}

impl JumpThreshold {
    fn is_reached(&self, jump: &TimeJump) -> bool {
        let by = Duration::from_nanos(jump.delta_ns.unsigned_abs());
        match jump.kind {
            JumpKind::Moved if 0 < jump.delta_ns => self.min_forward.is_some_and(|it| it <= by),
            JumpKind::Moved if jump.delta_ns < 0 => self.min_backward.is_some_and(|it| it <= by),
            JumpKind::Moved => false,
            JumpKind::Activated | JumpKind::Deactivated => self.on_clock_change,
        }
    }
}

/// Keeps a callback, which is called no more for jumps that begin after this is dropped.
#[must_use = "the callback is called no more when it is dropped"]
pub struct JumpCallback {
    time: Weak<RosTime>,
    kept: Option<Arc<Kept>>,
}

impl JumpCallback {
    pub(crate) fn of_nothing() -> Self {
        Self { time: Weak::new(), kept: None }
    }
}

impl Drop for JumpCallback {
    fn drop(&mut self) {
        if let (Some(time), Some(kept)) = (self.time.upgrade(), &self.kept) {
            lock(&time.callbacks).retain(|it| !Arc::ptr_eq(it, kept));
        }
    }
}

impl fmt::Debug for JumpCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JumpCallback").finish_non_exhaustive()
    }
}

type OnJump = dyn FnMut(&TimeJump) + Send;

struct Kept {
    threshold: JumpThreshold,
    callback: Mutex<Box<OnJump>>,
    pending: Mutex<Pending>,
}

/// What a callback is still to be told. Whoever is in it tells it the rest, so that nobody waits for it: the one who set
/// the time, and is waited for by the callback, least of all.
#[derive(Default)]
struct Pending {
    jumps: VecDeque<TimeJump>,
    is_running: bool,
}

/// The jumps that may wait for a callback. Further ones are dropped, which a warning says.
const PENDING_MAX: usize = 1024;

impl Kept {
    fn tell(&self, jump: TimeJump) {
        let mut pending = lock(&self.pending);
        if PENDING_MAX <= pending.jumps.len() {
            // Whoever takes events may ask the time.
            drop(pending);
            report::warn!(?jump, "a callback of jumps of time is too slow to be told of one");
            return;
        }
        pending.jumps.push_back(jump);
        if std::mem::replace(&mut pending.is_running, true) {
            return;
        }
        while let Some(jump) = pending.jumps.pop_front() {
            drop(pending);
            if catch_unwind(AssertUnwindSafe(|| lock(&self.callback)(&jump))).is_err() {
                report::warn!("a callback of jumps of time panicked");
            }
            pending = lock(&self.pending);
        }
        pending.is_running = false;
    }
}

/// What ROS time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    /// That of the system.
    System,
    /// So many nanoseconds.
    Simulated(i64),
}

pub(crate) struct RosTime {
    /// [`SYSTEM`] while time is the system's.
    simulated_ns: AtomicI64,
    /// How often another clock began to count.
    changes: AtomicU64,
    /// Messages on `/clock` that were no time.
    pub(crate) invalid: AtomicU64,
    moving: Mutex<Moving>,
    /// The last to come is the first.
    callbacks: Mutex<Vec<Arc<Kept>>>,
}

/// Who is told while time moves.
#[derive(Default)]
struct Moving {
    timers: Vec<Weak<Clocked>>,
    sleepers: Vec<(i64, GuardCondition, u64)>,
    sleeps: u64,
}

/// No simulation counts from before 1970.
const SYSTEM: i64 = i64::MIN;

impl RosTime {
    /// The system's time.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            simulated_ns: AtomicI64::new(SYSTEM),
            changes: AtomicU64::new(0),
            invalid: AtomicU64::new(0),
            moving: Mutex::default(),
            callbacks: Mutex::default(),
        })
    }

    pub(crate) fn now(&self) -> Now {
        match self.simulated_ns.load(Ordering::Acquire) {
            SYSTEM => Now::System,
            ns => Now::Simulated(ns),
        }
    }

    /// From now on time is simulated, and 0 until it is [moved](Self::advance).
    pub(crate) fn simulate(&self) -> Untold {
        self.change(0, JumpKind::Activated)
    }

    /// From now on time is the system's.
    pub(crate) fn follow_system(&self) -> Untold {
        self.change(SYSTEM, JumpKind::Deactivated)
    }

    fn change(&self, to_ns: i64, kind: JumpKind) -> Untold {
        let mut moving = lock(&self.moving);
        let before = self.now();
        if (before == Now::System) == (to_ns == SYSTEM) {
            return Untold(None);
        }
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.simulated_ns.store(to_ns, Ordering::Release);
        let timers = moving.timers();
        for timer in &timers {
            timer.change_clock(before, self.now());
        }
        moving.sleepers.iter().for_each(|(_, guard, _)| guard.trigger());
        // Who lets go of a timer last ends what it keeps, which may ask for the time.
        drop(moving);
        drop(timers);
        Untold(Some(TimeJump { kind, delta_ns: 0 }))
    }

    /// Simulated time is `now_ns`, at least 0. Without effect while time is the system's.
    pub(crate) fn advance(&self, now_ns: i64) {
        let mut moving = lock(&self.moving);
        let Now::Simulated(before_ns) = self.now() else { return };
        self.simulated_ns.store(now_ns, Ordering::Release);
        let timers = moving.timers();
        for timer in &timers {
            timer.moved(now_ns);
        }
        let due = moving.sleepers.iter().filter(|(until_ns, ..)| *until_ns <= now_ns);
        due.for_each(|(_, guard, _)| guard.trigger());
        drop(moving);
        drop(timers);
        let delta_ns = now_ns.saturating_sub(before_ns);
        if delta_ns != 0 {
            self.tell(Untold(Some(TimeJump { kind: JumpKind::Moved, delta_ns })));
        }
    }

    /// `make` a timer that is told of every move from `now` on.
    pub(crate) fn add_timer(&self, make: impl FnOnce(Now) -> Arc<Clocked>) -> Arc<Clocked> {
        let mut moving = lock(&self.moving);
        let timer = make(self.now());
        moving.timers.retain(|it| 0 < it.strong_count());
        moving.timers.push(Arc::downgrade(&timer));
        timer
    }

    /// Triggers `guard` when time is what `until_ns` says of now or another clock counts, while the answer is kept.
    /// Of all that comes after now it is told.
    pub(crate) fn sleep<'a>(
        &'a self,
        until_ns: impl FnOnce(Now) -> i64,
        guard: &GuardCondition,
    ) -> Sleeper<'a> {
        let mut moving = lock(&self.moving);
        let until_ns = until_ns(self.now());
        moving.sleeps += 1;
        let number = moving.sleeps;
        moving.sleepers.push((until_ns, guard.clone(), number));
        Sleeper { time: self, until_ns, number, changes: self.changes.load(Ordering::Acquire) }
    }

    pub(crate) fn on_jump(
        self: &Arc<Self>,
        threshold: JumpThreshold,
        callback: Box<OnJump>,
    ) -> JumpCallback {
        let kept =
            Arc::new(Kept { threshold, callback: Mutex::new(callback), pending: Mutex::default() });
        lock(&self.callbacks).insert(0, Arc::clone(&kept));
        JumpCallback { time: Arc::downgrade(self), kept: Some(kept) }
    }

    /// Without a lock of the time, or of whoever sets it: a callback may ask it and change it.
    pub(crate) fn tell(&self, Untold(jump): Untold) {
        let Some(jump) = jump else { return };
        let callbacks = lock(&self.callbacks).clone();
        for kept in callbacks.iter().filter(|it| it.threshold.is_reached(&jump)) {
            kept.tell(jump);
        }
    }
}

/// A jump that was made, if there was one, and is to be [told](RosTime::tell).
#[must_use = "callbacks are to be told of it"]
pub(crate) struct Untold(Option<TimeJump>);

impl Moving {
    /// Those that are still there.
    fn timers(&mut self) -> Vec<Arc<Clocked>> {
        self.timers.retain(|it| 0 < it.strong_count());
        self.timers.iter().filter_map(Weak::upgrade).collect()
    }
}

pub(crate) struct Sleeper<'a> {
    time: &'a RosTime,
    until_ns: i64,
    number: u64,
    changes: u64,
}

impl Sleeper<'_> {
    pub(crate) fn until_ns(&self) -> i64 {
        self.until_ns
    }

    /// Whether another clock counts than at the beginning.
    pub(crate) fn has_changed(&self) -> bool {
        self.time.changes.load(Ordering::Acquire) != self.changes
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        lock(&self.time.moving).sleepers.retain(|(.., number)| *number != self.number);
    }
}

/// Steady time, which a timer counts by where ROS time is that of the system too.
pub(crate) fn monotonic_ns() -> i64 {
    i64::try_from(clock::monotonic_ns()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_told_beyond_their_threshold() {
        let time = RosTime::new();
        let told = Arc::new(Mutex::new(Vec::new()));
        let callback = |name: &'static str| {
            let told = Arc::clone(&told);
            Box::new(move |jump: &TimeJump| lock(&told).push((name, jump.kind, jump.delta_ns)))
        };
        let ns = |ns| Some(Duration::from_nanos(ns));
        let none = JumpThreshold { on_clock_change: false, min_forward: None, min_backward: None };
        let changes = JumpThreshold { on_clock_change: true, ..none };
        let _changes = time.on_jump(changes, callback("change"));
        let _forward =
            time.on_jump(JumpThreshold { min_forward: ns(10), ..none }, callback("forward"));
        let back = time.on_jump(JumpThreshold { min_backward: ns(5), ..none }, callback("back"));
        time.advance(7);
        assert_eq!(time.now(), Now::System);
        time.tell(time.simulate());
        time.tell(time.simulate());
        assert_eq!(time.now(), Now::Simulated(0));
        for now_ns in [9, 19, 19, 15, 10, 30, 20] {
            time.advance(now_ns);
        }
        drop(back);
        time.advance(0);
        time.tell(time.follow_system());
        time.tell(time.follow_system());
        let expect = [
            ("change", JumpKind::Activated, 0),
            ("forward", JumpKind::Moved, 10),
            ("back", JumpKind::Moved, -5),
            ("forward", JumpKind::Moved, 20),
            ("back", JumpKind::Moved, -10),
            ("change", JumpKind::Deactivated, 0),
        ];
        assert_eq!(*lock(&told), expect);
    }

    #[test]
    fn a_callback_that_panics_or_moves_time_keeps_nobody_from_being_told() {
        let time = RosTime::new();
        let told = Arc::new(AtomicU64::new(0));
        let all = JumpThreshold {
            on_clock_change: true,
            min_forward: Some(Duration::from_nanos(1)),
            min_backward: None,
        };
        let telling = Arc::clone(&told);
        let count = Box::new(move |_: &TimeJump| {
            telling.fetch_add(1, Ordering::Relaxed);
        });
        let _count = time.on_jump(all, count);
        let _panics = time.on_jump(all, Box::new(|_| panic!("on purpose")));
        let moving = Arc::clone(&time);
        let _moves = time.on_jump(all, Box::new(move |_| moving.advance(1000)));
        time.tell(time.simulate());
        assert_eq!(time.now(), Now::Simulated(1000));
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }
}
