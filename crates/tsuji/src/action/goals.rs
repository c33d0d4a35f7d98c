//! What a server knows of its goals. No I/O, no clock: times come in, decisions go out.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// Names a goal: a UUID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GoalId(pub [u8; 16]);

impl fmt::Display for GoalId {
    /// As a UUID is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// Where a goal stands, with the numbers of `action_msgs/msg/GoalStatus`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GoalStatus {
    /// The server does not know the goal, or not any more.
    #[default]
    Unknown = 0,
    /// Accepted, and not begun yet.
    Accepted = 1,
    /// Pursued.
    Executing = 2,
    /// Asked to be given up.
    Canceling = 3,
    /// Reached.
    Succeeded = 4,
    /// Given up because somebody asked for it.
    Canceled = 5,
    /// Given up by the server.
    Aborted = 6,
}

impl GoalStatus {
    /// Whether nothing more becomes of the goal.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Canceled | Self::Aborted)
    }

    /// The status of this number. Numbers that mean nothing are unknown.
    pub fn from_number(number: i8) -> Self {
        match number {
            1 => Self::Accepted,
            2 => Self::Executing,
            3 => Self::Canceling,
            4 => Self::Succeeded,
            5 => Self::Canceled,
            6 => Self::Aborted,
            _ => Self::Unknown,
        }
    }

    /// The number of it.
    pub fn number(self) -> i8 {
        self as i8
    }

    /// What becomes of a goal that stands here.
    fn after(self, event: Event) -> Option<Self> {
        Some(match (self, event) {
            (Self::Accepted, Event::Execute) => Self::Executing,
            (Self::Accepted | Self::Executing, Event::Cancel) => Self::Canceling,
            (Self::Executing | Self::Canceling, Event::Succeed) => Self::Succeeded,
            (Self::Accepted | Self::Executing | Self::Canceling, Event::Abort) => Self::Aborted,
            (Self::Canceling, Event::GiveUp) => Self::Canceled,
            _ => return None,
        })
    }
}

impl fmt::Display for GoalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "unknown",
            Self::Accepted => "accepted",
            Self::Executing => "executing",
            Self::Canceling => "canceling",
            Self::Succeeded => "succeeded",
            Self::Canceled => "canceled",
            Self::Aborted => "aborted",
        })
    }
}

/// What happens to a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is begun.
    Execute,
    /// Somebody asks for it to be given up.
    Cancel,
    /// It is reached.
    Succeed,
    /// The server gives it up.
    Abort,
    /// It is given up because somebody asked for it.
    GiveUp,
}

/// When a goal was accepted, on the server's wall clock, in nanoseconds.
pub(crate) type StampNs = i64;

/// All goals of a server: those that are pursued, and those that have ended a while ago. `R` is a result, and
/// `W` somebody who waits for one.
pub(crate) struct Goals<R, W> {
    known: HashMap<GoalId, Goal<R, W>>,
    /// Those that have not ended, in the order in which they were accepted.
    active: Vec<GoalId>,
    /// The others, in the order in which they ended.
    ended: VecDeque<GoalId>,
    /// How many have been accepted so far.
    accepted: u64,
    /// How often anything has become different for those who are told of all goals.
    changes: u64,
    /// Those that were forgotten. Results are the user's, and may do anything when dropped: for when no lock is held.
    forgotten: Vec<Goal<R, W>>,
}

pub(crate) struct Goal<R, W> {
    number: u64,
    stamp_ns: StampNs,
    status: GoalStatus,
    waiting: Vec<W>,
    /// When it ended, on the monotonic clock, and how.
    ended: Option<(u64, Arc<R>)>,
}

/// Why a goal is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is one of this name.
    Known,
    /// There are too many.
    TooMany,
}

/// What whoever asks for a result gets.
pub(crate) enum Asked<R, W> {
    /// He waits.
    Waits,
    /// It is there.
    Ended(GoalStatus, Arc<R>, W),
    /// Nobody knows the goal.
    Unknown(W),
}

/// Which goals somebody wants to be given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    /// These can be.
    These(Vec<GoalId>),
    /// The one named is not known.
    Unknown,
    /// The one named has ended.
    Ended,
}

/// Goals that a server knows at once, those included that have ended and whose result is still kept.
pub(crate) const GOALS_MAX: usize = 1024;

/// Of the goals that have ended, so many are told of with those that have not: the last.
const ENDED_TOLD: usize = 64;

/// Who waits for the result of one goal.
pub(crate) const WAITING_MAX: usize = 64;

impl<R, W> Goals<R, W> {
    pub(crate) fn new() -> Self {
        Self {
            known: HashMap::new(),
            active: Vec::new(),
            ended: VecDeque::new(),
            accepted: 0,
            changes: 0,
            forgotten: Vec::new(),
        }
    }

    /// What was forgotten since this was asked last, to be dropped when no lock is held.
    pub(crate) fn take_forgotten(&mut self) -> Vec<Goal<R, W>> {
        std::mem::take(&mut self.forgotten)
    }

    /// Takes a goal that was accepted. Where there are too many, the one that ended first is forgotten.
    pub(crate) fn accept(&mut self, id: GoalId, stamp_ns: StampNs) -> Result<(), Refused> {
        if self.known.contains_key(&id) {
            return Err(Refused::Known);
        }
        if GOALS_MAX <= self.known.len() {
            let oldest = self.ended.pop_front().ok_or(Refused::TooMany)?;
            self.forgotten.extend(self.known.remove(&oldest));
        }
        let (number, status) = (self.accepted, GoalStatus::Accepted);
        self.known.insert(id, Goal { number, stamp_ns, status, waiting: Vec::new(), ended: None });
        self.active.push(id);
        self.accepted += 1;
        self.changes += 1;
        Ok(())
    }

    pub(crate) fn status(&self, id: GoalId) -> GoalStatus {
        self.known.get(&id).map_or(GoalStatus::Unknown, |it| it.status)
    }

    /// What becomes of a goal that does not end with it. `None` if that cannot happen to it.
    pub(crate) fn apply(&mut self, id: GoalId, event: Event) -> Option<GoalStatus> {
        let goal = self.known.get_mut(&id)?;
        goal.status = goal.status.after(event).filter(|it| !it.is_terminal())?;
        self.changes += 1;
        Some(goal.status)
    }

    /// A goal ends. Answers how, and who has waited for it. `None` if that cannot happen to it.
    pub(crate) fn end(
        &mut self,
        id: GoalId,
        event: Event,
        result: Arc<R>,
        now_ns: u64,
    ) -> Option<(GoalStatus, Vec<W>)> {
        let goal = self.known.get_mut(&id)?;
        goal.status = goal.status.after(event).filter(|it| it.is_terminal())?;
        goal.ended = Some((now_ns, result));
        self.active.retain(|it| *it != id);
        self.ended.push_back(id);
        self.changes += 1;
        Some((goal.status, std::mem::take(&mut goal.waiting)))
    }

    /// Somebody asks for the result of a goal. Where too many wait already he is told that nobody knows it.
    pub(crate) fn ask(&mut self, id: GoalId, who: W) -> Asked<R, W> {
        match self.known.get_mut(&id) {
            Some(Goal { status, ended: Some((_, result)), .. }) => {
                Asked::Ended(*status, Arc::clone(result), who)
            }
            Some(goal) if goal.waiting.len() < WAITING_MAX => {
                goal.waiting.push(who);
                Asked::Waits
            }
            _ => Asked::Unknown(who),
        }
    }

    /// Which goals are meant by one that is named, unless the name is all zeros, and a time up to which those that
    /// were accepted are meant too, unless it is 0. Neither: all.
    pub(crate) fn meant(&self, id: GoalId, until_ns: StampNs) -> Meant {
        let is_named = id != GoalId::default();
        if is_named && until_ns == 0 {
            match self.known.get(&id) {
                None => return Meant::Unknown,
                Some(it) if it.status.is_terminal() => return Meant::Ended,
                Some(_) => return Meant::These(vec![id]),
            }
        }
        let is_all = !is_named && until_ns == 0;
        let these = self.active().filter(|it| {
            let is_in_time = |goal: &Goal<R, W>| until_ns != 0 && goal.stamp_ns <= until_ns;
            is_all || *it == id || self.known.get(it).is_some_and(is_in_time)
        });
        Meant::These(these.collect())
    }

    /// Those that have not ended, the oldest first.
    pub(crate) fn active(&self) -> impl ExactSizeIterator<Item = GoalId> {
        self.active.iter().copied()
    }

    /// Forgets goals that ended before then. Answers how many.
    pub(crate) fn forget_before(&mut self, then_ns: u64) -> usize {
        let known = self.known.len();
        while let Some(oldest) = self.ended.front() {
            let ended = self.known.get(oldest).and_then(|it| it.ended.as_ref());
            if ended.is_some_and(|(at_ns, _)| then_ns <= *at_ns) {
                break;
            }
            self.forgotten.extend(self.known.remove(oldest));
            self.changes += u64::from(self.ended.len() <= ENDED_TOLD);
            self.ended.pop_front();
        }
        known - self.known.len()
    }

    /// Whether there are goals that have ended.
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// All that are known, the oldest first.
    pub(crate) fn all(&self) -> Vec<(GoalId, GoalStatus)> {
        let mut all: Vec<_> = self.known.iter().collect();
        all.sort_unstable_by_key(|(_, goal)| goal.number);
        all.into_iter().map(|(id, goal)| (*id, goal.status)).collect()
    }

    /// What everybody is told: those that have not ended, and before them the last that have.
    pub(crate) fn told(&self) -> impl Iterator<Item = (GoalId, StampNs, GoalStatus)> {
        let old = self.ended.len().saturating_sub(ENDED_TOLD);
        let ids = self.ended.range(old..).chain(&self.active);
        ids.filter_map(|id| self.known.get(id).map(|it| (*id, it.stamp_ns, it.status)))
    }

    /// When a goal was accepted.
    pub(crate) fn stamp_ns(&self, id: GoalId) -> StampNs {
        self.known.get(&id).map_or(0, |it| it.stamp_ns)
    }

    /// A number that is another one whenever something else is to be told.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: u8) -> GoalId {
        GoalId([number; 16])
    }

    fn goals(count: u8) -> Goals<(), u8> {
        let mut goals = Goals::new();
        (1..=count).for_each(|it| goals.accept(id(it), i64::from(it)).unwrap());
        goals
    }

    #[test]
    fn uuids_are_written_as_such() {
        let mut bytes = [0; 16];
        (0..16).for_each(|it| bytes[usize::from(it)] = it);
        assert_eq!(GoalId(bytes).to_string(), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn a_result_is_given_to_all_who_wait_and_to_who_asks_later() {
        let mut goals = goals(1);
        assert!(matches!(goals.ask(id(1), 5), Asked::Waits));
        assert!(matches!(goals.ask(id(1), 6), Asked::Waits));
        assert_eq!(goals.end(id(1), Event::Succeed, Arc::new(()), 9), None, "it has not begun");
        assert_eq!(goals.apply(id(1), Event::Execute), Some(GoalStatus::Executing));
        let ended = goals.end(id(1), Event::Succeed, Arc::new(()), 9);
        assert_eq!(ended, Some((GoalStatus::Succeeded, vec![5, 6])));
        assert_eq!(goals.end(id(1), Event::Abort, Arc::new(()), 9), None, "it ends once");
        assert!(matches!(goals.ask(id(1), 7), Asked::Ended(GoalStatus::Succeeded, _, 7)));
        assert!(matches!(goals.ask(id(2), 8), Asked::Unknown(8)));
        assert_eq!(goals.forget_before(9), 0);
        assert_eq!(goals.forget_before(10), 1);
        assert!(matches!(goals.ask(id(1), 7), Asked::Unknown(7)));
    }

    #[test]
    fn who_is_meant_follows_name_and_time() {
        let mut goals = goals(4);
        goals.end(id(4), Event::Abort, Arc::new(()), 1).unwrap();
        let none = GoalId::default();
        assert_eq!(goals.meant(none, 0), Meant::These(vec![id(1), id(2), id(3)]));
        assert_eq!(goals.meant(none, 2), Meant::These(vec![id(1), id(2)]));
        assert_eq!(goals.meant(id(3), 0), Meant::These(vec![id(3)]));
        assert_eq!(goals.meant(id(3), 1), Meant::These(vec![id(1), id(3)]));
        assert_eq!(goals.meant(id(4), 0), Meant::Ended);
        assert_eq!(goals.meant(id(9), 0), Meant::Unknown);
    }

    #[test]
    fn beyond_the_limit_ended_goals_give_way_and_others_do_not() {
        let mut goals = Goals::<(), ()>::new();
        let id = |number: usize| GoalId((number as u128 + 1).to_le_bytes());
        (0..GOALS_MAX).for_each(|it| goals.accept(id(it), 1).unwrap());
        assert_eq!(goals.accept(id(GOALS_MAX), 1), Err(Refused::TooMany));
        goals.end(id(3), Event::Abort, Arc::new(()), 5).unwrap();
        goals.end(id(2), Event::Abort, Arc::new(()), 6).unwrap();
        goals.accept(id(GOALS_MAX), 1).unwrap();
        assert_eq!(goals.status(id(3)), GoalStatus::Unknown);
        assert_eq!(goals.status(id(2)), GoalStatus::Aborted);
        assert_eq!(goals.accept(id(2), 1), Err(Refused::Known));
    }

    #[test]
    fn of_what_has_ended_only_the_last_is_told() {
        let mut goals = Goals::<(), ()>::new();
        let id = |number: usize| GoalId((number as u128 + 1).to_le_bytes());
        (0..2 * ENDED_TOLD).for_each(|it| goals.accept(id(it), 1).unwrap());
        let mut changes = goals.changes();
        for ended in 1..=ENDED_TOLD + 1 {
            goals.end(id(ended), Event::Abort, Arc::new(()), ended as u64).unwrap();
            assert_ne!(std::mem::replace(&mut changes, goals.changes()), goals.changes());
        }
        let told: Vec<_> = goals.told().map(|(id, ..)| id).collect();
        assert_eq!(told.len(), 2 * ENDED_TOLD - 1);
        assert_eq!((told[0], told[ENDED_TOLD - 1]), (id(2), id(ENDED_TOLD + 1)));
        assert_eq!((told[ENDED_TOLD], goals.all().len()), (id(0), 2 * ENDED_TOLD));
        assert_eq!(goals.all()[1], (id(1), GoalStatus::Aborted));
        assert_eq!((goals.forget_before(1), goals.changes()), (0, changes));
    }

    proptest! {
        #[test]
        fn whatever_happens_a_goal_ends_at_most_once_and_nobody_is_forgotten(
            events in prop::collection::vec((1u8..5, 0u8..7), 0..200)
        ) {
            let mut goals = Goals::<(), u16>::new();
            let (mut waiting, mut answered, mut ended) = (0usize, 0usize, HashMap::new());
            for (now_ns, (which, what)) in (1u64..).zip(events) {
                let it = id(which);
                match what {
                    0 => drop(goals.accept(it, 1)),
                    1 => match goals.ask(it, 0) {
                        Asked::Waits => waiting += 1,
                        Asked::Ended(status, ..) => prop_assert!(status.is_terminal()),
                        Asked::Unknown(_) => prop_assert!(!ended.contains_key(&which)),
                    },
                    2 => drop(goals.apply(it, Event::Execute)),
                    3 => drop(goals.apply(it, Event::Cancel)),
                    _ => {
                        let event = [Event::Succeed, Event::Abort, Event::GiveUp][usize::from(what) - 4];
                        if let Some((status, told)) = goals.end(it, event, Arc::new(()), now_ns) {
                            prop_assert!(status.is_terminal());
                            prop_assert!(ended.insert(which, status).is_none());
                            answered += told.len();
                        }
                    }
                }
                for (which, status) in &ended {
                    prop_assert_eq!(goals.status(id(*which)), *status);
                }
                let left: usize = goals.known.values().map(|it| it.waiting.len()).sum();
                prop_assert_eq!(waiting, answered + left);
                prop_assert_eq!(goals.active.len() + goals.ended.len(), goals.known.len());
                prop_assert!(goals.active().all(|it| !goals.status(it).is_terminal()));
                prop_assert_eq!(goals.told().count(), goals.known.len());
            }
        }
    }
}
