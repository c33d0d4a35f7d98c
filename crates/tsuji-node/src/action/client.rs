//! A client of an action.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use tsuji::{Client, Error, ErrorKind, Node, Pending, Qos, Result, ServiceType, Subscription};
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
    /// A client of the action `name` under `node`.
    pub fn new(node: &Node, name: &str) -> Result<Self> {
        let core = Arc::new(Core {
            name: name.to_owned(),
            send_goal: node.create_client(&part(name, "send_goal"))?,
            cancel_goal: node.create_client(&part(name, "cancel_goal"))?,
            get_result: node.create_client(&part(name, "get_result"))?,
            feedback: node.subscription(&part(name, "feedback")).qos(Qos::DEFAULT).build()?,
            status: node.subscription(&part(name, "status")).qos(STATUS_QOS).build()?,
            heard: Mutex::default(),
            changed: Changes::default(),
            hears_status: OnceLock::new(),
        });
        let weak = Arc::downgrade(&core);
        core.feedback
            .on_news(Some(Box::new(move |count| gather(&weak, count, Core::hear_feedback))))?;
        Ok(Self { core })
    }

    /// The action's name, as it was given.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Waits until a server is there with all that belongs to it: services and topics. NoServer when there is none
    /// in time.
    pub fn wait_for_server(&self, timeout: Duration) -> Result<()> {
        let core = &*self.core;
        let deadline = Deadline::after(timeout);
        core.send_goal.wait_for_service(deadline.left())?;
        core.cancel_goal.wait_for_service(deadline.left())?;
        core.get_result.wait_for_service(deadline.left())?;
        core.feedback.wait_for_publishers(1, deadline.left())?;
        core.status.wait_for_publishers(1, deadline.left())
    }

    /// Asks for a goal, and waits for at most `timeout` until a server is there and has decided. `None`: it was rejected.
    /// Fails as [`Client::call`] does, and Invalid where several servers are there: all of them would pursue it.
    pub fn send_goal(&self, goal: A::Goal, timeout: Duration) -> Result<Option<ClientGoal<A>>> {
        let id = process::random_token().map(GoalId).map_err(|error| {
            Error::new(ErrorKind::Unexpected, format!("name a goal of {}: {error}", self.core.name))
        })?;
        let deadline = Deadline::after(timeout);
        self.wait_for_server(timeout)?;
        let timeout = deadline.left();
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
        let answer = self.core.send_goal.call(A::join_goal(id.0, goal), timeout)?;
        let (is_accepted, (sec, nanosec)) = A::split_answer(&answer);
        goal_of.stamp = Duration::new(u64::try_from(sec).unwrap_or_default(), nanosec);
        if is_accepted {
            // Where there is no room for it now, whoever wants the result asks for it.
            lock(&goal_of.early).pending = self.core.get_result.send(A::join_asked(id.0)).ok();
        }
        Ok(is_accepted.then_some(goal_of))
    }

    /// Asks for all goals of the action to be given up, whoever has asked for them. Answers those that will be. Fails as
    /// [`Client::call`] does.
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
        if let Some(heard) = lock(&self.heard).get_mut(&GoalId(id)) {
            if heard.feedback.len() == FEEDBACK_MAX {
                heard.feedback.pop_front();
                heard.dropped += 1;
            }
            heard.feedback.push_back(feedback.clone());
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
            .on_news(Some(Box::new(move |count| gather(&weak, count, Self::hear_status))))?;
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
    /// Its name.
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// When it was accepted: since 1970, on the server's clock.
    pub fn stamp(&self) -> Duration {
        self.stamp
    }

    /// Where it stands, as far as the server has told.
    pub fn status(&self) -> GoalStatus {
        // An error says that it is closed; what was told before stands.
        while self.core.hear_status().unwrap_or(false) {}
        self.hear_result();
        lock(&self.core.heard).get(&self.id).map_or(GoalStatus::Unknown, |it| it.status)
    }

    /// Feedback that was dropped because nobody took it: beyond 1024 the oldest is.
    pub fn dropped(&self) -> u64 {
        lock(&self.core.heard).get(&self.id).map_or(0, |it| it.dropped)
    }

    /// The oldest feedback that was not taken; waits for it. `None` when the goal has ended and all was taken. Timeout
    /// when nothing came in time, and ServerLost when the server has left.
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
                return Err(Error::new(
                    ErrorKind::Timeout,
                    format!(
                        "feedback of goal {} of {}: none within {timeout:?}",
                        self.id, self.core.name
                    ),
                ));
            }
            drop(self.core.changed.wait(all, left.min(LOOK_AGAIN)));
            self.hear_result();
            all = lock(&self.core.heard);
        }
    }

    /// Takes the result if it has come.
    fn hear_result(&self) {
        let mut early = lock(&self.early);
        let Some(pending) = &early.pending else { return };
        match pending.wait_for(Duration::ZERO) {
            Ok(None) => (),
            // Whoever wants the result asks for it once more, and is told.
            Err(_) => early.pending = None,
            Ok(Some(response)) => {
                early.pending = None;
                let Some((status, result)) = Self::known(response) else { return };
                early.come = Some((status, result));
                drop(early);
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

    /// Asks for it to be given up, and waits for at most `timeout` until the server has decided. NoServer when that has
    /// left, and ServerLost when it leaves meanwhile.
    pub fn cancel(&self, timeout: Duration) -> Result<CancelOutcome> {
        let goal_info = GoalInfo { goal_id: UUID { uuid: self.id.0 }, stamp: Time::default() };
        let request = CancelGoalRequest { goal_info };
        let response = self.core.cancel_goal.send(request)?.wait(timeout)?;
        Ok(CancelOutcome::of(response.return_code))
    }

    /// Waits for at most `timeout` until it has ended; answers how, with the result. NoServer when the server has left,
    /// ServerLost when it leaves meanwhile, and Invalid where it does not know the goal, or not any more.
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
                    return Err(Error::new(
                        ErrorKind::Timeout,
                        format!(
                            "result of goal {} of {}: none within {timeout:?}",
                            self.id, self.core.name
                        ),
                    ));
                }
            }
        }
        if answer.is_none() {
            let asked = self.core.get_result.send(A::join_asked(self.id.0))?;
            answer = Self::known(asked.wait(deadline.left())?);
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
        lock(&self.core.heard).remove(&self.id);
    }
}

impl<A: Action> fmt::Debug for ClientGoal<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientGoal").field("id", &self.id).finish_non_exhaustive()
    }
}
