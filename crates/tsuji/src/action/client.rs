//! A client of an action.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{self, Poll, Wake, Waker};
use std::time::Duration;

use crate::{
    Client, ClientOptions, EndpointInfo, EndpointKind, Error, ErrorKind, Node, Pending, Qos,
    RawClient, RawPending, RawSubscription, Result, Subscription,
};
use tsuji_interfaces::action_msgs::msg::{GoalInfo, GoalStatusArray};
use tsuji_interfaces::action_msgs::srv::{CancelGoal, CancelGoalRequest, CancelGoalResponse};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::unique_identifier_msgs::msg::UUID;
use tsuji_platform::ordered::Mutex;
use tsuji_platform::process;
use tsuji_transport::Sample;

use super::form::ServiceForm;
use super::{ActionForm, GoalId, GoalStatus, STATUS_QOS, part};
use crate::changes::Changes;
use crate::deadline::Deadline;
use crate::lock;
use crate::publisher_core::MAX_BLOCKING_DEFAULT;
use crate::turn::Turn;

/// Feedback of one goal that nobody has taken. Beyond it the oldest is dropped, and counted.
const FEEDBACK_MAX: usize = 1024;

/// Tasks that await what comes of one goal.
const WAKERS_MAX: usize = 64;

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
pub struct ActionClient<A: ActionForm> {
    core: Arc<Core<A>>,
}

struct Core<A: ActionForm> {
    name: String,
    ty: A::Type,
    send_goal: RawClient,
    cancel_goal: Client<CancelGoal>,
    get_result: RawClient,
    feedback: RawSubscription,
    status: Subscription<GoalStatusArray>,
    heard: Mutex<HashMap<GoalId, Heard<A>>>,
    /// Each is held from when a message is taken until what it says is written down: several threads hear, and what came
    /// first is heard first. The status comes before the feedback.
    feedback_turn: Turn,
    status_turn: Turn,
    changed: Changes,
    /// Whether the status is heard as it comes: from when somebody waits for what it says. Until then nobody is woken
    /// for it, who would only be in the way of answers.
    hears_status: OnceLock<()>,
    /// Whether every server that the graph knows was ready once; from then on those that are ready are all.
    has_met: AtomicBool,
}

/// What has come of one goal.
struct Heard<A: ActionForm> {
    feedback: VecDeque<A::Feedback>,
    dropped: u64,
    status: GoalStatus,
    /// The tasks that await what comes, the longest ago first.
    wakers: Vec<Waker>,
}

impl<A: ActionForm> ActionClient<A> {
    pub(crate) fn new(node: &Node, name: &str, ty: A::Type) -> Result<Self> {
        let client = |part_of: &str, form: ServiceForm| {
            RawClient::create(node, ClientOptions::new(part(name, part_of)), &form.of, form.asks)
        };
        let form = A::feedback_form(&ty);
        let (topic, qos) = (part(name, "feedback"), Qos::DEFAULT.into());
        let feedback = RawSubscription::create(node, &topic, form.of, qos, form.subscribes, None)?;
        let core = Arc::new(Core {
            name: name.to_owned(),
            send_goal: client("send_goal", A::send_goal_form(&ty))?,
            cancel_goal: node.create_client(part(name, "cancel_goal"))?,
            get_result: client("get_result", A::get_result_form(&ty))?,
            feedback,
            status: node.create_polled_subscription(&part(name, "status"), STATUS_QOS)?,
            ty,
            heard: Mutex::default(),
            feedback_turn: Turn::default(),
            status_turn: Turn::default(),
            changed: Changes::default(),
            hears_status: OnceLock::new(),
            has_met: AtomicBool::new(false),
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

    /// Returns true if a server is there with all that belongs to it: services and topics.
    pub fn is_ready(&self) -> bool {
        let Core { send_goal, cancel_goal, get_result, feedback, status, .. } = &*self.core;
        let has_services = send_goal.is_ready() && cancel_goal.is_ready() && get_result.is_ready();
        has_services && 0 < feedback.matched() && 0 < status.matched()
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

    /// Returns what of type or QoS keeps servers that are there from taking this client's goals, with the name of each
    /// server's node.
    pub fn obstacles(&self) -> Vec<String> {
        self.core.send_goal.obstacles()
    }

    /// Asks for a goal, and waits for at most `timeout` until a server is there and has decided. `None`: it was
    /// rejected.
    ///
    /// # Errors
    ///
    /// Those of [`wait_for_server`](Self::wait_for_server) and [`Client::call`]; [`ErrorKind::Invalid`] if several
    /// servers are there, since all of them would pursue it.
    pub fn send_goal(&self, goal: A::Goal, timeout: Duration) -> Result<Option<ClientGoal<A>>> {
        let deadline = Deadline::after(timeout);
        self.wait_for_server(timeout)?;
        let mut asked = deadline.step(|left| self.start_goal_within(goal, left))?;
        let answer = deadline.step(|left| asked.answer.wait_for_sample(left))?;
        asked.answered(answer)
    }

    /// Asks for a goal, and neither waits for a server nor until it has decided, which can be awaited.
    ///
    /// # Errors
    ///
    /// Those of [`Client::send`]; [`ErrorKind::Invalid`] if several servers are there, since all of them would pursue
    /// it, or if the goal breaks a limit of its type.
    pub fn start_goal(&self, goal: A::Goal) -> Result<PendingGoal<A>> {
        self.start_goal_within(goal, MAX_BLOCKING_DEFAULT)
    }

    fn start_goal_within(&self, goal: A::Goal, patience: Duration) -> Result<PendingGoal<A>> {
        let core = &self.core;
        let id = process::random_token().map(GoalId).map_err(|error| {
            Error::new(ErrorKind::Unexpected, format!("name a goal of {}: {error}", core.name))
        })?;
        let servers = core.servers();
        if 1 < servers {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("send a goal to {}: {servers} servers are there; allowed: one", core.name),
            ));
        }
        let request = A::join_goal(&core.ty, id, goal)?;
        // What is said of it may come before the answer.
        let (feedback, status) = (VecDeque::new(), GoalStatus::Unknown);
        lock(&core.heard).insert(id, Heard { feedback, dropped: 0, status, wakers: Vec::new() });
        let (core, stamp) = (Arc::clone(core), Duration::ZERO);
        let goal = ClientGoal { core, id, stamp, early: Mutex::new(Early::NotAsked) };
        let answer = goal.core.send_goal.send(&request.outgoing(), patience)?;
        Ok(PendingGoal { answer, goal: Some(goal) })
    }

    /// Asks for a goal to be given up, whoever has asked for it, and waits for at most `timeout` until the server has
    /// decided.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub fn cancel_goal(&self, id: GoalId, timeout: Duration) -> Result<CancelOutcome> {
        let response = self.core.cancel_goal.call(cancel_request(id), timeout)?;
        Ok(CancelOutcome::of(response.return_code))
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

impl<A: ActionForm> fmt::Debug for ActionClient<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionClient").field("name", &self.core.name).finish_non_exhaustive()
    }
}

/// Asks for one goal, whenever it was accepted.
fn cancel_request(id: GoalId) -> CancelGoalRequest {
    let goal_id = UUID { uuid: id.0 };
    CancelGoalRequest { goal_info: GoalInfo { goal_id, stamp: Time::default() } }
}

/// A goal that was asked for. Whether it is accepted is awaited, by any runtime: `None` if it was rejected. Dropped
/// before that, its feedback and result are not received; the server executes it all the same if it accepts it.
///
/// Awaiting fails as [`Client::call`] does, but has no time-out of its own.
#[must_use = "what the server decides is dropped with it"]
pub struct PendingGoal<A: ActionForm> {
    answer: RawPending,
    /// Until it is answered.
    goal: Option<ClientGoal<A>>,
}

impl<A: ActionForm> PendingGoal<A> {
    /// What becomes of it by the server's answer.
    fn answered(&mut self, answer: Sample) -> Result<Option<ClientGoal<A>>> {
        let Some(mut goal) = self.goal.take() else {
            return Err(Error::invalid("a goal is awaited once more; allowed: once"));
        };
        let (is_accepted, Time { sec, nanosec }) = A::split_answer(answer)?;
        if !is_accepted {
            return Ok(None);
        }
        goal.stamp = Duration::new(u64::try_from(sec).unwrap_or_default(), nanosec);
        // Where there is no room for it now, whoever wants the result asks for it.
        if let Ok(pending) = goal.ask_result() {
            *lock(&goal.early) = Early::Asked(pending);
        }
        Ok(Some(goal))
    }
}

/// Nothing of it is pinned.
impl<A: ActionForm> Unpin for PendingGoal<A> {}

impl<A: ActionForm> Future for PendingGoal<A> {
    type Output = Result<Option<ClientGoal<A>>>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.answer.poll_reply(context).map(|answer| this.answered(answer?))
    }
}

impl<A: ActionForm> fmt::Debug for PendingGoal<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingGoal").field("goal", &self.goal).finish_non_exhaustive()
    }
}

/// A goal that was asked to be given up. What the server decides is awaited, by any runtime; dropped before that it is decided
/// all the same.
///
/// Awaiting fails as [`ClientGoal::cancel`] does, but has no time-out of its own.
pub struct PendingCancel {
    answer: Pending<CancelGoal>,
}

impl Future for PendingCancel {
    type Output = Result<CancelOutcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer.map_ok(|response| CancelOutcome::of(response.return_code))
    }
}

impl fmt::Debug for PendingCancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCancel").field("answer", &self.answer).finish()
    }
}

/// Takes what has come, once for each that was told of.
fn gather<A: ActionForm>(core: &Weak<Core<A>>, count: usize, take: fn(&Core<A>) -> Result<bool>) {
    let Some(core) = core.upgrade() else { return };
    for _ in 0..count {
        // An error says that it is closed; whoever closed it knows.
        if take(&core).is_err() {
            return;
        }
    }
}

impl<A: ActionForm> Core<A> {
    /// How many servers would pursue a goal. Of two one may be ready before the other; whoever was met before is in
    /// the graph.
    fn servers(&self) -> usize {
        let ready = self.send_goal.servers();
        if self.has_met.load(Ordering::Relaxed) {
            return ready;
        }
        let graph = self.feedback.node().context().graph();
        let (name, ty) = (self.send_goal.name(), self.send_goal.type_name());
        let is_it = |it: &&EndpointInfo| {
            it.kind == EndpointKind::Server && it.topic == name && it.type_name == ty
        };
        let known = graph.services.iter().filter(is_it).count();
        self.has_met.store(0 < ready && known <= ready, Ordering::Relaxed);
        ready.max(known)
    }

    /// Takes one message, if there is one. Answers whether there was.
    fn hear_feedback(&self) -> Result<bool> {
        let Some(turn) = self.feedback_turn.take() else { return Ok(false) };
        // Most is of goals of others.
        let wanted = |id: GoalId| lock(&self.heard).contains_key(&id);
        let split = |sample| Some(A::split_feedback(&self.ty, sample, &wanted));
        let Some(split) = self.feedback.take_as(|sample, _| split(sample))? else {
            return Ok(false);
        };
        // Feedback is the user's: what it does when it is copied or dropped finds no lock but the turn, which it may ask for.
        let (mut outlived, mut wakers) = (None, Vec::new());
        if let Some((id, feedback)) = split
            && let Some(heard) = lock(&self.heard).get_mut(&id)
        {
            if heard.feedback.len() == FEEDBACK_MAX {
                outlived = heard.feedback.pop_front();
            }
            heard.dropped += u64::from(outlived.is_some() || feedback.is_none());
            heard.feedback.extend(feedback);
            wakers = std::mem::take(&mut heard.wakers);
        }
        drop(turn);
        drop(outlived);
        self.changed.tell();
        wakers.into_iter().for_each(Waker::wake);
        Ok(true)
    }

    /// Wakes the tasks that await what comes of a goal.
    fn wake(&self, id: GoalId) {
        let wakers = lock(&self.heard).get_mut(&id).map(|it| std::mem::take(&mut it.wakers));
        wakers.into_iter().flatten().for_each(Waker::wake);
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
        let Some(turn) = self.status_turn.take() else { return Ok(false) };
        let Some(received) = self.status.take()? else { return Ok(false) };
        let message = received.message();
        // What was said before a goal ended is heard before.
        while self.hear_feedback()? {}
        let mut wakers = Vec::new();
        let mut heard = lock(&self.heard);
        for said in &message.status_list {
            if let Some(heard) = heard.get_mut(&GoalId(said.goal_info.goal_id.uuid)) {
                let status = GoalStatus::from_number(said.status);
                // Servers of one name may speak in any order.
                if !heard.status.is_terminal() {
                    heard.status = status;
                    wakers.append(&mut heard.wakers);
                }
            }
        }
        drop(heard);
        drop(turn);
        self.changed.tell();
        wakers.into_iter().for_each(Waker::wake);
        Ok(true)
    }
}

/// A goal that was accepted. Dropped it is heard of no more, and pursued all the same.
///
/// Its result is asked for at once, so how it ended is learned whenever somebody looks, though the server has long
/// forgotten it.
#[must_use = "it is heard of no more when it is dropped"]
pub struct ClientGoal<A: ActionForm> {
    core: Arc<Core<A>>,
    id: GoalId,
    stamp: Duration,
    early: Mutex<Early<A>>,
}

/// The result that was asked for when the goal was accepted.
enum Early<A: ActionForm> {
    /// It was not, or nothing came of that, or it was handed over.
    NotAsked,
    Asked(RawPending),
    /// A thread looks whether it has come; somebody else wanted to meanwhile, or not.
    LookedFor {
        again: bool,
    },
    Come(GoalStatus, A::Result),
}

/// Wakes the tasks that await what comes of a goal.
struct GoalWaker<A: ActionForm> {
    core: Weak<Core<A>>,
    id: GoalId,
}

impl<A: ActionForm> Wake for GoalWaker<A> {
    fn wake(self: Arc<Self>) {
        if let Some(core) = self.core.upgrade() {
            core.wake(self.id);
        }
    }
}

impl<A: ActionForm> ClientGoal<A> {
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

    /// Returns how many feedback messages were dropped: because nobody took them, beyond 1024 the oldest, or because they
    /// could not be read.
    pub fn dropped(&self) -> u64 {
        lock(&self.core.heard).get(&self.id).map_or(0, |it| it.dropped)
    }

    /// Takes the oldest feedback that was not taken; waits for it. `None` when the goal has ended and all was taken.
    ///
    /// RTPS keeps no order between topics and services, so feedback of a foreign server may come behind the result: whoever asks
    /// again after `None` gets it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if none has come within `timeout`, [`ErrorKind::ServerLost`] if the server has left,
    /// [`ErrorKind::Exhausted`] if the thread that listens to the status cannot be started, [`ErrorKind::Closed`] when
    /// the context is shut down or in a forked child.
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
            let is_served = self.core.get_result.is_ready();
            // Asked after that: when the context ends, all servers go out of its sight.
            self.core.get_result.open("wait for feedback")?;
            if !is_served {
                return Err(self.server_has_left());
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

    /// Takes the oldest feedback that was not taken, or lets the task be woken when there is some or the goal has ended.
    /// `None` when it has ended and all was taken.
    ///
    /// At most 64 tasks are woken; of more, the one that asked the longest ago is woken to ask again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ServerLost`] if the server has left, [`ErrorKind::Exhausted`] if the thread that listens to the
    /// status cannot be started; else as [`result`](Self::result).
    pub fn poll_feedback(
        &self,
        context: &mut task::Context<'_>,
    ) -> Poll<Result<Option<A::Feedback>>> {
        self.core.listen_to_status()?;
        self.wake_later(context.waker());
        if let Some(next) = self.take_feedback() {
            return Poll::Ready(Ok(next));
        }
        let looked = self.look_for_result();
        match (self.take_feedback(), looked) {
            (Some(next), _) => Poll::Ready(Ok(next)),
            (None, Ok(())) => Poll::Pending,
            (None, Err(error)) if error.kind() == ErrorKind::NoServer => {
                Poll::Ready(Err(self.server_has_left()))
            }
            (None, Err(error)) => Poll::Ready(Err(error)),
        }
    }

    fn server_has_left(&self) -> Error {
        let (id, name) = (self.id, &self.core.name);
        let what = format!("feedback of goal {id} of {name}: its server has left");
        Error::new(ErrorKind::ServerLost, what)
    }

    /// The oldest feedback, or that there will be none; `None` if there may be.
    fn take_feedback(&self) -> Option<Option<A::Feedback>> {
        let mut all = lock(&self.core.heard);
        let Some(heard) = all.get_mut(&self.id) else { return Some(None) };
        match heard.feedback.pop_front() {
            Some(feedback) => Some(Some(feedback)),
            None => heard.status.is_terminal().then_some(None),
        }
    }

    /// Lets a task be woken when something comes of the goal.
    fn wake_later(&self, waker: &Waker) {
        // A waker is the user's, and may do anything when it is copied, woken or dropped.
        let waker = waker.clone();
        let mut oldest = None;
        let mut all = lock(&self.core.heard);
        let Some(heard) = all.get_mut(&self.id) else { return };
        if heard.wakers.iter().any(|it| it.will_wake(&waker)) {
            drop(all);
            return;
        }
        if WAKERS_MAX <= heard.wakers.len() {
            oldest = Some(heard.wakers.remove(0));
        }
        heard.wakers.push(waker);
        drop(all);
        oldest.into_iter().for_each(Waker::wake);
    }

    /// Takes the result if it has come.
    fn hear_result(&self) {
        let is_asked = matches!(*lock(&self.early), Early::Asked(_));
        if is_asked {
            // An error: whoever wants the result asks for it once more, and is told.
            let _ = self.take_early(|pending| pending.try_wait(Duration::ZERO));
        }
    }

    /// The same, and lets the tasks that await something of the goal be woken when it comes. Asks for it where nobody has.
    fn look_for_result(&self) -> Result<()> {
        let is_asked = !matches!(*lock(&self.early), Early::NotAsked);
        if !is_asked {
            let asked = self.ask_result()?;
            let mut early = lock(&self.early);
            if matches!(*early, Early::NotAsked) {
                *early = Early::Asked(asked);
            }
        }
        let (core, id) = (Arc::downgrade(&self.core), self.id);
        let waker = Waker::from(Arc::new(GoalWaker { core, id }));
        self.take_early(|pending| match pending.poll_reply(&task::Context::from_waker(&waker)) {
            Poll::Ready(answer) => answer.map(Some),
            Poll::Pending => Ok(None),
        })
    }

    /// Takes the result that was asked for, if `come` finds that it has come. Whoever comes meanwhile is woken afterwards.
    fn take_early(&self, come: impl FnOnce(&RawPending) -> Result<Option<Sample>>) -> Result<()> {
        // Results are the user's: no lock is held while one is read or dropped.
        let mut early = lock(&self.early);
        let pending = match std::mem::replace(&mut *early, Early::LookedFor { again: false }) {
            Early::Asked(pending) => pending,
            Early::LookedFor { .. } => {
                *early = Early::LookedFor { again: true };
                return Ok(());
            }
            other => {
                *early = other;
                return Ok(());
            }
        };
        drop(early);
        let looked = come(&pending).and_then(|it| it.map(|answer| self.known(answer)).transpose());
        let (next, ended) = match looked {
            Ok(None) => (Early::Asked(pending), Ok(None)),
            Ok(Some((status, result))) => (Early::Come(status, result), Ok(Some(status))),
            Err(error) => (Early::NotAsked, Err(error)),
        };
        self.put_early(next, ended.is_err());
        if let Ok(Some(status)) = ended {
            self.has_ended(status);
        }
        ended.map(drop)
    }

    /// Ends that a thread looks for the result. Whoever wanted to look meanwhile is woken to look again, and everybody if
    /// it will not come.
    fn put_early(&self, next: Early<A>, is_lost: bool) {
        let before = std::mem::replace(&mut *lock(&self.early), next);
        if is_lost || matches!(before, Early::LookedFor { again: true }) {
            self.core.wake(self.id);
        }
    }

    fn has_ended(&self, status: GoalStatus) {
        // What was said before it ended is heard before. An error says that it is closed.
        while self.core.hear_feedback().unwrap_or(false) {}
        if let Some(heard) = lock(&self.core.heard).get_mut(&self.id) {
            heard.status = status;
        }
        self.core.changed.tell();
        self.core.wake(self.id);
    }

    /// Asks for the goal to be given up, and waits for at most `timeout` until the server has decided.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoServer`] if the server has left, [`ErrorKind::ServerLost`] if it leaves meanwhile; else as
    /// [`Client::call`].
    pub fn cancel(&self, timeout: Duration) -> Result<CancelOutcome> {
        let response = self.start_cancel()?.answer.wait(timeout)?;
        Ok(CancelOutcome::of(response.return_code))
    }

    /// Asks for the goal to be given up. What the server decides is awaited, or dropped: the goal's status and result
    /// tell what has become of it.
    ///
    /// # Errors
    ///
    /// Those of [`Client::send`].
    pub fn start_cancel(&self) -> Result<PendingCancel> {
        let answer = self.core.cancel_goal.send(cancel_request(self.id))?;
        Ok(PendingCancel { answer })
    }

    /// Waits for at most `timeout` until the goal has ended, and returns how, with the result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoServer`] if the server has left, [`ErrorKind::ServerLost`] if it leaves meanwhile,
    /// [`ErrorKind::Invalid`] if it does not know the goal, or not any more; else as [`Client::call`].
    pub fn result(&self, timeout: Duration) -> Result<(GoalStatus, A::Result)> {
        let deadline = Deadline::after(timeout);
        let mut come = None;
        match self.take_asked() {
            Early::Come(status, result) => return Ok((status, result)),
            Early::Asked(pending) => match pending.try_wait(timeout) {
                Ok(Some(answer)) => {
                    come = self.known(answer).ok();
                    self.put_early(Early::NotAsked, come.is_none());
                }
                Ok(None) => {
                    self.put_early(Early::Asked(pending), false);
                    let what = format!("result of goal {} of {}: none", self.id, self.core.name);
                    return Err(Error::new(ErrorKind::Timeout, what).within(timeout));
                }
                Err(error) => {
                    self.put_early(Early::NotAsked, true);
                    return Err(error);
                }
            },
            Early::NotAsked | Early::LookedFor { .. } => (),
        }
        let (status, result) = match come {
            Some(come) => come,
            None => {
                let asked = self.ask_result()?;
                self.known(deadline.step(|left| asked.wait_for_sample(left))?)?
            }
        };
        self.has_ended(status);
        Ok((status, result))
    }

    /// The result that was asked for, for this thread to wait for, or that has come.
    fn take_asked(&self) -> Early<A> {
        let mut early = lock(&self.early);
        let (left, taken) = match std::mem::replace(&mut *early, Early::NotAsked) {
            Early::Asked(pending) => (Early::LookedFor { again: false }, Early::Asked(pending)),
            Early::LookedFor { again } => (Early::LookedFor { again }, Early::NotAsked),
            other => (Early::NotAsked, other),
        };
        *early = left;
        taken
    }

    /// Returns how the goal has ended, with the result, or lets the task be woken when it has. Whoever asks once more
    /// after that asks the server again.
    ///
    /// At most 64 tasks are woken; of more, the one that asked the longest ago is woken to ask again.
    ///
    /// # Errors
    ///
    /// Those of [`result`](Self::result).
    pub fn poll_result(
        &self,
        context: &mut task::Context<'_>,
    ) -> Poll<Result<(GoalStatus, A::Result)>> {
        self.wake_later(context.waker());
        let looked = self.look_for_result();
        let mut early = lock(&self.early);
        match std::mem::replace(&mut *early, Early::NotAsked) {
            Early::Come(status, result) => Poll::Ready(Ok((status, result))),
            other => {
                *early = other;
                drop(early);
                looked.map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
            }
        }
    }

    fn ask_result(&self) -> Result<RawPending> {
        self.core.get_result.send(&A::join_asked(self.id).outgoing(), MAX_BLOCKING_DEFAULT)
    }

    /// What an answer says, unless the server did not know the goal.
    fn known(&self, answer: Sample) -> Result<(GoalStatus, A::Result)> {
        let come = A::split_result(&self.core.ty, answer)?;
        if come.0 == GoalStatus::Unknown {
            let (id, name) = (self.id, &self.core.name);
            let why = "the server does not know it, or not any more";
            return Err(Error::invalid(format!("result of goal {id} of {name}: {why}")));
        }
        Ok(come)
    }
}

impl<A: ActionForm> Drop for ClientGoal<A> {
    fn drop(&mut self) {
        // Dropped after the lock: feedback is the user's.
        let _heard = lock(&self.core.heard).remove(&self.id);
    }
}

impl<A: ActionForm> fmt::Debug for ClientGoal<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientGoal").field("id", &self.id).finish_non_exhaustive()
    }
}
