//! A client of an action.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use crate::{Client, Error, ErrorKind, Node, Pending, Qos, Result, ServiceType, Subscription};
use tsuji_interfaces::action_msgs::msg::{GoalInfo, GoalStatusArray};
use tsuji_interfaces::action_msgs::srv::{CancelGoal, CancelGoalRequest, CancelGoalResponse};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::unique_identifier_msgs::msg::UUID;
use tsuji_msg::Action;
use tsuji_platform::process;

use super::{GoalId, GoalStatus, STATUS_QOS, part};
use crate::changes::Changes;
use crate::deadline::Deadline;
use crate::lock;

/// Feedback of one goal that nobody has taken. Beyond it the oldest is dropped, and counted.
const FEEDBACK_MAX: usize = 1024;

/// How often whoever waits for feedback looks whether there is still a server.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What somebody who asked for a goal to be given up was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It will be.
    Canceling,
    /// The server does not want to.
    Rejected,
    /// The server does not know the goal.
    UnknownGoal,
    /// It has ended already.
    Ended,
}

impl CancelOutcome {
    fn of(code: i8) -> Self {
        match code {
            CancelGoalResponse::ERROR_NONE => Self::Canceling,
            CancelGoalResponse::ERROR_UNKNOWN_GOAL_ID => Self::UnknownGoal,
            CancelGoalResponse::ERROR_GOAL_TERMINATED => Self::Ended,
            _ => Self::Rejected,
        }
    }
}

impl fmt::Display for CancelOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Canceling => "it is being canceled",
            Self::Rejected => "the server refused to cancel it",
            Self::UnknownGoal => "the server does not know it",
            Self::Ended => "it has ended already",
        })
    }
}

/// Asks servers of an action for goals. Its node need not be spun: feedback is taken by a thread that the context
/// has from the first client on.
#[must_use = "its goals are heard of no more when it is dropped"]
pub struct ActionClient<A: Action> {
    core: Arc<Core<A>>,
}

struct Core<A: Action> {
    name: String,
    send_goal: Client<A::SendGoal>,
    cancel_goal: Client<CancelGoal>,
    get_result: Client<A::GetResult>,
    feedback: Subscription<A::FeedbackMessage>,
    status: Subscription<GoalStatusArray>,
    heard: Mutex<HashMap<GoalId, Heard<A>>>,
    changed: Changes,
    /// Whether the status is heard as it comes: from when somebody waits for what it says. Until then nobody is woken
    /// for it, who would only be in the way of answers.
    hears_status: OnceLock<()>,
}

/// What has come of one goal.
struct Heard<A: Action> {
    feedback: VecDeque<A::Feedback>,
    dropped: u64,
    status: GoalStatus,
}

impl<A: Action> ActionClient<A> {
    pub(crate) fn new(node: &Node, name: &str) -> Result<Self> {
        let core = Arc::new(Core {
            name: name.to_owned(),
            send_goal: node.create_client(part(name, "send_goal"))?,
            cancel_goal: node.create_client(part(name, "cancel_goal"))?,
            get_result: node.create_client(part(name, "get_result"))?,
            feedback: node.create_polled_subscription(&part(name, "feedback"), Qos::DEFAULT)?,
            status: node.create_polled_subscription(&part(name, "status"), STATUS_QOS)?,
            heard: Mutex::default(),
            changed: Changes::default(),
            hears_status: OnceLock::new(),
        });
        let weak = Arc::downgrade(&core);
        core.feedback.on_new_message(Some(Box::new(move |count| {
            gather(&weak, count, Core::hear_feedback)
        })))?;
        Ok(Self { core })
    }

    /// Returns the action's name, as it was given.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Waits until a server is there with all that belongs to it: services and topics.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoServer`] if a service is missing after `timeout`, [`ErrorKind::Timeout`] if a topic is;
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn wait_for_server(&self, timeout: Duration) -> Result<()> {
        let core = &*self.core;
        let deadline = Deadline::after(timeout);
        deadline.step(|left| core.send_goal.wait_for_service(left))?;
        deadline.step(|left| core.cancel_goal.wait_for_service(left))?;
        deadline.step(|left| core.get_result.wait_for_service(left))?;
        deadline.step(|left| core.feedback.wait_for_publishers(1, left))?;
        deadline.step(|left| core.status.wait_for_publishers(1, left))
    }

    /// Asks for a goal, and waits for at most `timeout` until a server is there and has decided. `None`: it was
    /// rejected.
    ///
    /// # Errors
    ///
    /// Those of [`wait_for_server`](Self::wait_for_server) and [`Client::call`]; [`ErrorKind::Invalid`] if several
    /// servers are there, since all of them would pursue it.
    pub fn send_goal(&self, goal: A::Goal, timeout: Duration) -> Result<Option<ClientGoal<A>>> {
        let id = process::random_token().map(GoalId).map_err(|error| {
            Error::new(ErrorKind::Unexpected, format!("name a goal of {}: {error}", self.core.name))
        })?;
        let deadline = Deadline::after(timeout);
        self.wait_for_server(timeout)?;
        let servers = self.core.send_goal.servers();
        if 1 < servers {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "send a goal to {}: {servers} servers are there; allowed: one",
                    self.core.name
                ),
            ));
        }
        // What is said of it may come before the answer.
        let heard = Heard { feedback: VecDeque::new(), dropped: 0, status: GoalStatus::Unknown };
        lock(&self.core.heard).insert(id, heard);
        let (core, stamp) = (Arc::clone(&self.core), Duration::ZERO);
        let mut goal_of = ClientGoal { core, id, stamp, early: Mutex::default() };
        let request = A::join_goal(id.0, goal);
        let answer = deadline.step(|left| self.core.send_goal.call(request, left))?;
        let (is_accepted, (sec, nanosec)) = A::split_answer(&answer);
        goal_of.stamp = Duration::new(u64::try_from(sec).unwrap_or_default(), nanosec);
        if is_accepted {
            // Where there is no room for it now, whoever wants the result asks for it.
            lock(&goal_of.early).pending = self.core.get_result.send(A::join_asked(id.0)).ok();
        }
        Ok(is_accepted.then_some(goal_of))
    }

    /// Asks for all goals of the action to be given up, whoever has asked for them, and returns those that will be.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub fn cancel_all(&self, timeout: Duration) -> Result<Vec<GoalId>> {
        let response = self.core.cancel_goal.call(CancelGoalRequest::default(), timeout)?;
        Ok(response.goals_canceling.iter().map(|it| GoalId(it.goal_id.uuid)).collect())
    }
}

impl<A: Action> fmt::Debug for ActionClient<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionClient").field("name", &self.core.name).finish_non_exhaustive()
    }
}

/// Takes what has come, once for each that was told of.
fn gather<A: Action>(core: &Weak<Core<A>>, count: usize, take: fn(&Core<A>) -> Result<bool>) {
    let Some(core) = core.upgrade() else { return };
    for _ in 0..count {
        // An error says that it is closed; whoever closed it knows.
        if take(&core).is_err() {
            return;
        }
    }
}

impl<A: Action> Core<A> {
    /// Takes one message, if there is one. Answers whether there was.
    fn hear_feedback(&self) -> Result<bool> {
        let Some(received) = self.feedback.take()? else { return Ok(false) };
        let message = received.message();
        let (id, feedback) = A::split_feedback(&message);
        // Most is of goals of others.
        if lock(&self.heard).contains_key(&GoalId(id)) {
            // Feedback is the user's: no lock is held while it is copied or dropped.
            let (feedback, mut outlived) = (feedback.clone(), None);
            if let Some(heard) = lock(&self.heard).get_mut(&GoalId(id)) {
                if heard.feedback.len() == FEEDBACK_MAX {
                    outlived = heard.feedback.pop_front();
                    heard.dropped += 1;
                }
                heard.feedback.push_back(feedback);
            }
            drop(outlived);
        }
        self.changed.tell();
        Ok(true)
    }

    /// From now on the status is heard as it comes.
    fn listen_to_status(self: &Arc<Self>) -> Result<()> {
        if self.hears_status.get().is_some() {
            return Ok(());
        }
        let weak = Arc::downgrade(self);
        self.status
            .on_new_message(Some(Box::new(move |count| gather(&weak, count, Self::hear_status))))?;
        let _ = self.hears_status.set(());
        while self.hear_status()? {}
        Ok(())
    }

    /// Takes what was said of the status of goals, if there is something. Answers whether there was.
    fn hear_status(&self) -> Result<bool> {
        let Some(received) = self.status.take()? else { return Ok(false) };
        let message = received.message();
        // What was said before a goal ended is heard before.
        while self.hear_feedback()? {}
        let mut heard = lock(&self.heard);
        for said in &message.status_list {
            if let Some(heard) = heard.get_mut(&GoalId(said.goal_info.goal_id.uuid)) {
                let status = GoalStatus::from_number(said.status);
                // Servers of one name may speak in any order.
                if !heard.status.is_terminal() {
                    heard.status = status;
                }
            }
        }
        drop(heard);
        self.changed.tell();
        Ok(true)
    }
}

/// A goal that was accepted. Dropped it is heard of no more, and pursued all the same.
///
/// Its result is asked for at once, so how it ended is learned whenever somebody looks, though the server has long
/// forgotten it.
#[must_use = "it is heard of no more when it is dropped"]
pub struct ClientGoal<A: Action> {
    core: Arc<Core<A>>,
    id: GoalId,
    stamp: Duration,
    early: Mutex<Early<A>>,
}

/// The result that was asked for when the goal was accepted.
struct Early<A: Action> {
    pending: Option<Pending<A::GetResult>>,
    come: Option<(GoalStatus, A::Result)>,
}

impl<A: Action> Default for Early<A> {
    fn default() -> Self {
        Self { pending: None, come: None }
    }
}

impl<A: Action> ClientGoal<A> {
    /// Returns the goal's name, a UUID.
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// Returns when the goal was accepted, since 1970 on the server's clock.
    pub fn stamp(&self) -> Duration {
        self.stamp
    }

    /// Returns the goal's status, as far as the server has told.
    pub fn status(&self) -> GoalStatus {
        // An error says that it is closed; what was told before stands.
        while self.core.hear_status().unwrap_or(false) {}
        self.hear_result();
        lock(&self.core.heard).get(&self.id).map_or(GoalStatus::Unknown, |it| it.status)
    }

    /// Returns how many feedback messages were dropped because nobody took them: beyond 1024 the oldest is.
    pub fn dropped(&self) -> u64 {
        lock(&self.core.heard).get(&self.id).map_or(0, |it| it.dropped)
    }

    /// Takes the oldest feedback that was not taken; waits for it. `None` when the goal has ended and all was taken.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if none has come within `timeout`, [`ErrorKind::ServerLost`] if the server has left,
    /// [`ErrorKind::Exhausted`] if the thread that listens to the status cannot be started.
    pub fn next_feedback(&self, timeout: Duration) -> Result<Option<A::Feedback>> {
        let deadline = Deadline::after(timeout);
        self.core.listen_to_status()?;
        self.hear_result();
        let mut all = lock(&self.core.heard);
        loop {
            let Some(heard) = all.get_mut(&self.id) else { return Ok(None) };
            if let Some(feedback) = heard.feedback.pop_front() {
                return Ok(Some(feedback));
            }
            if heard.status.is_terminal() {
                return Ok(None);
            }
            if !self.core.get_result.is_ready() {
                return Err(Error::new(
                    ErrorKind::ServerLost,
                    format!(
                        "feedback of goal {} of {}: its server has left",
                        self.id, self.core.name
                    ),
                ));
            }
            let left = deadline.left();
            if left.is_zero() {
                let what = format!("feedback of goal {} of {}: none", self.id, self.core.name);
                return Err(Error::new(ErrorKind::Timeout, what).within(timeout));
            }
            drop(self.core.changed.wait(all, left.min(LOOK_AGAIN)));
            self.hear_result();
            all = lock(&self.core.heard);
        }
    }

    /// Takes the result if it has come.
    fn hear_result(&self) {
        // Results are the user's: no lock is held while one is read.
        let Some(pending) = lock(&self.early).pending.take() else { return };
        match pending.wait_for(Duration::ZERO) {
            Ok(None) => {
                let mut early = lock(&self.early);
                if early.pending.is_none() && early.come.is_none() {
                    early.pending = Some(pending);
                }
            }
            // Whoever wants the result asks for it once more, and is told.
            Err(_) => (),
            Ok(Some(response)) => {
                let Some(come) = Self::known(response) else { return };
                let status = come.0;
                let before = lock(&self.early).come.replace(come);
                drop(before);
                self.has_ended(status);
            }
        }
    }

    fn has_ended(&self, status: GoalStatus) {
        // What was said before it ended is heard before. An error says that it is closed.
        while self.core.hear_feedback().unwrap_or(false) {}
        if let Some(heard) = lock(&self.core.heard).get_mut(&self.id) {
            heard.status = status;
        }
        self.core.changed.tell();
    }

    /// Asks for the goal to be given up, and waits for at most `timeout` until the server has decided.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoServer`] if the server has left, [`ErrorKind::ServerLost`] if it leaves meanwhile; else as
    /// [`Client::call`].
    pub fn cancel(&self, timeout: Duration) -> Result<CancelOutcome> {
        let goal_info = GoalInfo { goal_id: UUID { uuid: self.id.0 }, stamp: Time::default() };
        let request = CancelGoalRequest { goal_info };
        let response = self.core.cancel_goal.send(request)?.wait(timeout)?;
        Ok(CancelOutcome::of(response.return_code))
    }

    /// Waits for at most `timeout` until the goal has ended, and returns how, with the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoServer`] if the server has left, [`ErrorKind::ServerLost`] if it leaves meanwhile,
    /// [`ErrorKind::Invalid`] if it does not know the goal, or not any more; else as [`Client::call`].
    pub fn result(&self, timeout: Duration) -> Result<(GoalStatus, A::Result)> {
        let deadline = Deadline::after(timeout);
        let (come, pending) = {
            let mut early = lock(&self.early);
            (early.come.take(), early.pending.take())
        };
        if let Some(come) = come {
            return Ok(come);
        }
        let mut answer = None;
        if let Some(pending) = pending {
            match pending.wait_for(timeout)? {
                Some(response) => answer = Self::known(response),
                None => {
                    lock(&self.early).pending.get_or_insert(pending);
                    let what = format!("result of goal {} of {}: none", self.id, self.core.name);
                    return Err(Error::new(ErrorKind::Timeout, what).within(timeout));
                }
            }
        }
        if answer.is_none() {
            let asked = self.core.get_result.send(A::join_asked(self.id.0))?;
            answer = Self::known(deadline.step(|left| asked.wait(left))?);
        }
        let Some((status, result)) = answer else {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "result of goal {} of {}: the server does not know it, or not any more",
                    self.id, self.core.name
                ),
            ));
        };
        self.has_ended(status);
        Ok((status, result))
    }

    /// What an answer says, unless the server did not know the goal.
    fn known(response: <A::GetResult as ServiceType>::Response) -> Option<(GoalStatus, A::Result)> {
        let (status, result) = A::split_result(response);
        let status = GoalStatus::from_number(status);
        (status != GoalStatus::Unknown).then_some((status, result))
    }
}

impl<A: Action> Drop for ClientGoal<A> {
    fn drop(&mut self) {
        // Dropped after the lock: feedback is the user's.
        let _heard = lock(&self.core.heard).remove(&self.id);
    }
}

impl<A: Action> fmt::Debug for ClientGoal<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientGoal").field("id", &self.id).finish_non_exhaustive()
    }
}
