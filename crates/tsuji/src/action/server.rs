//! The server of an action.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::{
    CallbackGroup, Error, ErrorKind, GuardCondition, Node, Publisher, PublisherOptions, Qos,
    RawPublisher, RawService, Result, Service, ServiceOptions, Timer, TimerOptions, Waitable,
};
use tsuji_interfaces::action_msgs::msg::{GoalInfo, GoalStatus as StatusMessage, GoalStatusArray};
use tsuji_interfaces::action_msgs::srv::{CancelGoal, CancelGoalRequest, CancelGoalResponse};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::unique_identifier_msgs::msg::UUID;
use tsuji_platform::clock;
use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_transport::Sample;

use super::form::{Said, ServiceForm};
use super::goals::{Asked, Event, Goals, Meant};
use super::pursuers::Pursuers;
use super::{ActionForm, GoalId, GoalStatus, STATUS_QOS, part};
use crate::changes::Changes;
use crate::deadline::Deadline;
use crate::lock;
use crate::publisher_core::MAX_BLOCKING_DEFAULT;
use crate::service::{Each, Held};
use crate::stamp::time;

/// How long the result of a goal that has ended can be asked for, if not said: as in ROS 2 since Iron.
pub const RESULT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// What becomes of a goal that comes while another is pursued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManyGoals {
    /// All are pursued side by side, as in ROS 2.
    #[default]
    Parallel,
    /// It is rejected.
    Reject,
    /// It waits for its turn; rejected where so many wait already.
    Queue(usize),
    /// The other is asked to be given up, and the new one begins when that has ended. One that waits for this
    /// and is overtaken ends as canceled.
    Preempt,
}

/// What a server of an action has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActionCounters {
    /// Goals that were accepted.
    pub accepted: u64,
    /// Goals that were rejected.
    pub rejected: u64,
    /// Goals that were reached.
    pub succeeded: u64,
    /// Goals that were given up because somebody asked for it.
    pub canceled: u64,
    /// Goals that the server gave up.
    pub aborted: u64,
    /// Of those aborted: whoever pursued them dropped them without a word, or panicked.
    pub abandoned: u64,
}

/// Pursues goals of an action, while its node is spun, or, of one that is [polled](crate::Node::create_polled_raw_action_server),
/// whenever it is [asked](Self::take) for them.
///
/// A client that leaves changes nothing for its goals: others may ask for their results. At most 1024 goals are
/// known at once; those that have ended give way first, and beyond it goals are rejected. The status tells of those
/// that have not ended and of the 64 that ended last; of any other a client learns by asking for its result.
#[must_use = "it leaves the action when it is dropped"]
pub struct ActionServer<A: ActionForm> {
    core: Arc<Core<A>>,
    send_goal: RawService,
    cancel_goal: Service<CancelGoal>,
    get_result: RawService,
}

impl<A: ActionForm> ActionServer<A> {
    /// A server whose goals a thread of their own pursues.
    pub(crate) fn pursue(
        node: &Node,
        options: ActionServerOptions<A>,
        ty: A::Type,
        pursue: impl Fn(GoalHandle<A>) + Send + Sync + 'static,
    ) -> Result<Self> {
        let pursuers = Pursuers::new(pursue);
        Self::begin(node, options, ty, move |handle| pursuers.pursue(handle))
    }

    /// A server whose goals `begin` gets.
    pub(crate) fn begin(
        node: &Node,
        options: ActionServerOptions<A>,
        ty: A::Type,
        begin: impl Fn(GoalHandle<A>) + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::create(node, options, ty, Some(Box::new(begin)))
    }

    /// A server that is asked for its goals.
    pub(crate) fn polled(
        node: &Node,
        options: ActionServerOptions<A>,
        ty: A::Type,
    ) -> Result<Self> {
        Self::create(node, options, ty, None)
    }

    fn create(
        node: &Node,
        options: ActionServerOptions<A>,
        ty: A::Type,
        begin: Option<Box<OnAccepted<A>>>,
    ) -> Result<Self> {
        let ActionServerOptions { name, group, many, result_timeout, max_blocking, .. } = options;
        let said = |qos: Qos| PublisherOptions::default().qos(qos).max_blocking(max_blocking);
        let (form, topic) = (A::feedback_form(&ty), part(&name, "feedback"));
        let feedback =
            RawPublisher::create(node, &topic, form.of, said(Qos::DEFAULT), form.publishes)?;
        let status = node.create_publisher(&part(&name, "status"), said(STATUS_QOS))?;
        let (goal_form, result_form) = (A::send_goal_form(&ty), A::get_result_form(&ty));
        let is_polled = begin.is_none();
        let core = Arc::new(Core {
            name: name.clone(),
            ty,
            many,
            result_timeout,
            is_patient: !max_blocking.is_zero(),
            feedback,
            status,
            told: Mutex::new(None),
            on_goal: Mutex::new(options.on_goal),
            on_cancel: Mutex::new(options.on_cancel),
            on_accepted: match begin {
                Some(begin) => OnTurn::Begin(begin),
                None => OnTurn::Keep(GuardCondition::new(node.context())?),
            },
            state: Mutex::new(State {
                goals: Goals::new(),
                waiting: VecDeque::new(),
                begun: VecDeque::new(),
                is_over: false,
                is_beginning: false,
                counters: ActionCounters::default(),
            }),
            changed: Changes::default(),
            timer: OnceLock::new(),
        });
        let group = group.as_ref();
        if !is_polled {
            let weak: Weak<Core<A>> = Arc::downgrade(&core);
            let look = move || {
                if let Some(core) = weak.upgrade() {
                    core.forget_old();
                }
            };
            let period = result_timeout.clamp(Duration::from_millis(10), Duration::from_secs(1));
            let timer = node.create_timer(TimerOptions::new(period).group(group), look)?;
            timer.cancel();
            // Nobody else has set it.
            let _ = core.timer.set(timer);
        }
        let options = |name_of: &str| ServiceOptions::new(part(&name, name_of)).group(group);
        let service = |name_of: &str, form: ServiceForm, take: fn(&Arc<Core<A>>, Sample, Held)| {
            let core = Arc::clone(&core);
            let each: Each = Box::new(move |sample, _, held| take(&core, sample, held));
            let each = Some(each).filter(|_| !is_polled);
            RawService::create(node, options(name_of), &form.of, form.answers, each)
        };
        let get_result = service("get_result", result_form, Core::ask)?;
        let canceled = Arc::clone(&core);
        let cancel_goal = match is_polled {
            true => node.create_polled_service(options("cancel_goal"))?,
            false => node.create_service::<CancelGoal>(options("cancel_goal"), move |request| {
                canceled.cancel(&request)
            })?,
        };
        // Goals come last, when all that belongs to them is there.
        let send_goal = service("send_goal", goal_form, Core::take_goal)?;
        core.tell_status();
        Ok(Self { core, send_goal, cancel_goal, get_result })
    }

    /// Takes the next goal to execute of a polled server, if there is one, and handles the requests for goals, results
    /// and cancelling that have come.
    ///
    /// It is to be called whenever one of the [`waitables`](Self::waitables) is ready, until there is none. A reply
    /// waits for at most 100 ms for a client that has no room for it, and the first to a client that accepts a goal for at most
    /// 200 ms until that can hear feedback. What has ended is forgotten here, once its time is
    /// over.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if goals go to a callback; [`ErrorKind::Closed`] when the context is shut down or in a
    /// forked child; [`ErrorKind::Unexpected`] if an engine fails.
    pub fn take(&self) -> Result<Option<GoalHandle<A>>> {
        let core = &self.core;
        if matches!(core.on_accepted, OnTurn::Begin(_)) {
            let why = format!("take a goal of {}: they go to a callback", core.name);
            return Err(Error::invalid(format!("{why}; allowed: of a polled server")));
        }
        while let Some((sample, held)) = self.get_result.take_sample()? {
            core.ask(sample, held);
        }
        while let Some((sample, held)) = self.send_goal.take_sample()? {
            core.take_goal(sample, held);
        }
        // Whoever sent a goal may want it given up at once.
        while let Some(request) = self.cancel_goal.take()? {
            let response = core.cancel(&request.message());
            // Whoever left needs no answer; it is counted.
            let _ = request.respond(response);
        }
        core.forget_old();
        Ok(lock(&core.state).begun.pop_front())
    }

    /// Returns what a polled server is to be waited for by, with a [`WaitList`](crate::WaitList): requests, and goals
    /// whose turn has come. One that is not polled has nothing to wait for.
    pub fn waitables(&self) -> Vec<&dyn Waitable> {
        match &self.core.on_accepted {
            OnTurn::Begin(_) => Vec::new(),
            OnTurn::Keep(news) => {
                vec![&self.send_goal, &*self.cancel_goal, &self.get_result, news]
            }
        }
    }

    /// Returns what the server has done so far.
    pub fn counters(&self) -> ActionCounters {
        lock(&self.core.state).counters
    }

    /// Returns the goals that the server knows, the oldest first: those that are pursued or wait, and those whose
    /// result can still be asked for.
    pub fn goals(&self) -> Vec<(GoalId, GoalStatus)> {
        self.core.kept().goals.all()
    }
}

impl<A: ActionForm> Drop for ActionServer<A> {
    fn drop(&mut self) {
        // What waits for its turn would never get it. Those that are pursued end as whoever pursues them says.
        let mut state = lock(&self.core.state);
        state.is_over = true;
        let left = (std::mem::take(&mut state.waiting), std::mem::take(&mut state.begun));
        drop(state);
        drop(left);
    }
}

impl<A: ActionForm> fmt::Debug for ActionServer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionServer").field("name", &self.core.name).finish_non_exhaustive()
    }
}

type OnGoal<A> = dyn FnMut(GoalId, &<A as ActionForm>::Goal) -> bool + Send;
type OnCancel = dyn FnMut(GoalId) -> bool + Send;
type OnAccepted<A> = dyn Fn(GoalHandle<A>) + Send + Sync;

/// Options of an action's server, with its name. A name alone will do.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::Context;
/// use tsuji::action::{ActionServerOptions, ManyGoals};
/// use tsuji::interfaces::example_interfaces::action::{Fibonacci, FibonacciResult};
///
/// let node = Context::new()?.node("counting")?;
/// let options = ActionServerOptions::<Fibonacci>::new("fibonacci")
///     .many_goals(ManyGoals::Queue(4))
///     .on_goal(|_, goal| goal.order < 47);
/// let _server = node.create_action_server(options, |goal| {
///     if let Err(error) = goal.succeed(FibonacciResult { sequence: vec![0, 1] }) {
///         eprintln!("{error}");
///     }
/// })?;
/// tsuji::spin(&node)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[must_use = "options take effect in the server that is made with them"]
pub struct ActionServerOptions<A: ActionForm> {
    name: String,
    group: Option<CallbackGroup>,
    many: ManyGoals,
    result_timeout: Duration,
    max_blocking: Duration,
    on_goal: Box<OnGoal<A>>,
    on_cancel: Box<OnCancel>,
}

impl<A: ActionForm> ActionServerOptions<A> {
    /// Creates the options of a server of the action `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            group: None,
            many: ManyGoals::default(),
            result_timeout: RESULT_TIMEOUT_DEFAULT,
            max_blocking: MAX_BLOCKING_DEFAULT,
            on_goal: Box::new(|_, _| true),
            on_cancel: Box::new(|_| true),
        }
    }

    /// Sets the callback group. Default, and with `None`, the node's own, which is mutually exclusive.
    pub fn group<'g>(mut self, group: impl Into<Option<&'g CallbackGroup>>) -> Self {
        self.group = group.into().cloned();
        self
    }

    /// Sets what becomes of a goal that comes while another is pursued. Default [`ManyGoals::Parallel`].
    pub fn many_goals(mut self, many: ManyGoals) -> Self {
        self.many = many;
        self
    }

    /// Sets how long a result can be asked for. Default [`RESULT_TIMEOUT_DEFAULT`].
    pub fn result_timeout(mut self, at_most: Duration) -> Self {
        self.result_timeout = at_most;
        self
    }

    /// Sets how long feedback and status wait for subscriptions that have no room. Default 100 ms. With zero an answer does not
    /// wait either for a client whose subscription to feedback is not connected yet.
    pub fn max_blocking(mut self, at_most: Duration) -> Self {
        self.max_blocking = at_most;
        self
    }

    /// Sets what decides whether a goal is accepted. Default all are.
    pub fn on_goal(
        mut self,
        decide: impl FnMut(GoalId, &A::Goal) -> bool + Send + 'static,
    ) -> Self {
        self.on_goal = Box::new(decide);
        self
    }

    /// Sets what decides whether a goal is given up where somebody asks for it. Default always.
    pub fn on_cancel(mut self, decide: impl FnMut(GoalId) -> bool + Send + 'static) -> Self {
        self.on_cancel = Box::new(decide);
        self
    }
}

impl<A: ActionForm> From<&str> for ActionServerOptions<A> {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl<A: ActionForm> From<&String> for ActionServerOptions<A> {
    fn from(name: &String) -> Self {
        Self::new(name)
    }
}

impl<A: ActionForm> From<String> for ActionServerOptions<A> {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl<A: ActionForm> fmt::Debug for ActionServerOptions<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionServerOptions").field("name", &self.name).finish_non_exhaustive()
    }
}

struct Core<A: ActionForm> {
    name: String,
    ty: A::Type,
    many: ManyGoals,
    result_timeout: Duration,
    /// Whoever executes goals may wait for their clients.
    is_patient: bool,
    feedback: RawPublisher,
    status: Publisher<GoalStatusArray>,
    /// Which state of all goals was told last; held while it is told, so that the newest is told last.
    told: Mutex<Option<u64>>,
    on_goal: Mutex<Box<OnGoal<A>>>,
    on_cancel: Mutex<Box<OnCancel>>,
    on_accepted: OnTurn<A>,
    state: Mutex<State<A>>,
    /// A goal stands elsewhere than before.
    changed: Changes,
    /// Runs while there are goals to be forgotten.
    timer: OnceLock<Timer>,
}

/// What is done with a goal whose turn it is.
enum OnTurn<A: ActionForm> {
    Begin(Box<OnAccepted<A>>),
    /// It waits for being asked for, of which this tells.
    Keep(GuardCondition),
}

struct State<A: ActionForm> {
    goals: Goals<A::Kept, Held>,
    /// Goals that wait for their turn.
    waiting: VecDeque<GoalHandle<A>>,
    /// Goals of a polled server whose turn it is.
    begun: VecDeque<GoalHandle<A>>,
    /// The server has left.
    is_over: bool,
    /// Somebody is beginning those whose turn it is.
    is_beginning: bool,
    counters: ActionCounters,
}

impl<A: ActionForm> Core<A> {
    fn take_goal(self: &Arc<Self>, request: Sample, held: Held) {
        let Some((id, goal)) = A::split_goal(&self.ty, request) else {
            lock(&self.state).counters.rejected += 1;
            return answer_at_once(held, &A::join_answer(false, Time::default()));
        };
        let stamp_ns = clock::wall_ns();
        let has_place = self.has_place(&lock(&self.state));
        let is_wanted = has_place && lock(&self.on_goal)(id, &goal);
        let mut state = lock(&self.state);
        // Another one may have come while that was decided.
        let is_accepted =
            is_wanted && self.has_place(&state) && state.goals.accept(id, stamp_ns).is_ok();
        match is_accepted {
            true => state.counters.accepted += 1,
            false => state.counters.rejected += 1,
        }
        let forgotten = state.goals.take_forgotten();
        drop(state);
        drop(forgotten);
        if !is_accepted {
            return answer_at_once(held, &A::join_answer(false, Time::default()));
        }
        let handle = GoalHandle { core: Arc::clone(self), id, goal, is_over: false };
        let accepted = A::join_answer(true, time(stamp_ns));
        match self.is_patient {
            true => answer(held, &accepted),
            false => answer_at_once(held, &accepted),
        }
        // Whoever waits for the answer or pursues the goal comes before those who only look on.
        self.line_up(handle);
        self.tell_status();
    }

    /// Whether one more goal fits what may be pursued at once.
    fn has_place(&self, state: &State<A>) -> bool {
        match self.many {
            ManyGoals::Parallel | ManyGoals::Preempt => true,
            ManyGoals::Reject => state.goals.active().next().is_none(),
            ManyGoals::Queue(most) => {
                state.goals.active().next().is_none() || state.waiting.len() < most
            }
        }
    }

    /// Lets an accepted goal begin, now or when it is its turn.
    fn line_up(self: &Arc<Self>, handle: GoalHandle<A>) {
        let mut state = lock(&self.state);
        let mut overtaken = Vec::new();
        if self.many == ManyGoals::Preempt {
            overtaken.extend(state.waiting.drain(..));
            let others: Vec<GoalId> = state.goals.active().filter(|it| *it != handle.id).collect();
            for id in others {
                // One that is being given up already stays so.
                let _ = state.goals.apply(id, Event::Cancel);
            }
        }
        state.waiting.push_back(handle);
        drop(state);
        self.changed.tell();
        for handle in overtaken {
            handle.end_with_default(Event::GiveUp);
        }
        self.begin_next();
    }

    /// Begins those whose turn it is.
    fn begin_next(&self) {
        loop {
            let mut state = lock(&self.state);
            if state.is_beginning {
                // Whoever is at it looks again.
                return;
            }
            let pursued = state.goals.active().len().saturating_sub(state.waiting.len());
            let may_begin = self.many == ManyGoals::Parallel || pursued == 0;
            let Some(handle) = may_begin.then(|| state.waiting.pop_front()).flatten() else {
                return;
            };
            state.is_beginning = true;
            let has_begun = state.goals.apply(handle.id, Event::Execute).is_some();
            drop(state);
            let guard = Beginning(self);
            match &self.on_accepted {
                _ if !has_begun => handle.end_with_default(Event::GiveUp),
                OnTurn::Begin(begin) => begin(handle),
                OnTurn::Keep(news) => {
                    let mut state = lock(&self.state);
                    let left = if state.is_over {
                        Some(handle)
                    } else {
                        state.begun.push_back(handle);
                        None
                    };
                    drop(state);
                    drop(left);
                    news.trigger();
                }
            }
            drop(guard);
            self.tell_status();
        }
    }

    fn cancel(&self, request: &CancelGoalRequest) -> CancelGoalResponse {
        let GoalInfo { goal_id, stamp } = &request.goal_info;
        let until_ns = i64::from(stamp.sec) * 1_000_000_000 + i64::from(stamp.nanosec);
        let meant = self.kept().goals.meant(GoalId(goal_id.uuid), until_ns);
        let these = match meant {
            Meant::These(these) => these,
            Meant::Unknown => return refusal(CancelGoalResponse::ERROR_UNKNOWN_GOAL_ID),
            Meant::Ended => return refusal(CancelGoalResponse::ERROR_GOAL_TERMINATED),
        };
        let asked = these.len();
        let mut decide = lock(&self.on_cancel);
        let wanted: Vec<GoalId> = these.into_iter().filter(|id| decide(*id)).collect();
        drop(decide);
        let mut state = lock(&self.state);
        // One that was being given up already is so because of this too.
        let canceling: Vec<GoalId> = wanted
            .into_iter()
            .filter(|id| {
                state.goals.apply(*id, Event::Cancel).is_some()
                    || state.goals.status(*id) == GoalStatus::Canceling
            })
            .collect();
        let (not_begun, waiting): (VecDeque<_>, VecDeque<_>) =
            state.waiting.drain(..).partition(|it| canceling.contains(&it.id));
        state.waiting = waiting;
        let goals_canceling: Vec<GoalInfo> =
            canceling.iter().map(|id| info(*id, state.goals.stamp_ns(*id))).collect();
        drop(state);
        self.changed.tell();
        self.tell_status();
        for handle in not_begun {
            handle.end_with_default(Event::GiveUp);
        }
        if goals_canceling.is_empty() && asked != 0 {
            return refusal(CancelGoalResponse::ERROR_REJECTED);
        }
        CancelGoalResponse { return_code: CancelGoalResponse::ERROR_NONE, goals_canceling }
    }

    fn ask(self: &Arc<Self>, request: Sample, held: Held) {
        let asked = match A::split_asked(request) {
            Some(id) => self.kept().goals.ask(id, held),
            None => Asked::Unknown(held),
        };
        match asked {
            Asked::Waits => (),
            Asked::Ended(status, result, held) => answer(held, &A::join_result(status, &result)),
            Asked::Unknown(held) => {
                answer(held, &A::join_result(GoalStatus::Unknown, &A::no_result(&self.ty)));
            }
        }
    }

    fn end(&self, id: GoalId, event: Event, result: A::Kept, is_abandoned: bool) -> Result<()> {
        let result = Arc::new(result);
        let mut state = lock(&self.state);
        let now_ns = clock::monotonic_ns();
        let Some((status, waiting)) = state.goals.end(id, event, Arc::clone(&result), now_ns)
        else {
            let status = state.goals.status(id);
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "end goal {id} of {}: it is {status}; allowed: canceled where it is canceling, the \
                     others where it is executing or canceling",
                    self.name
                ),
            ));
        };
        let counters = &mut state.counters;
        match status {
            GoalStatus::Succeeded => counters.succeeded += 1,
            GoalStatus::Canceled => counters.canceled += 1,
            _ => counters.aborted += 1,
        }
        counters.abandoned += u64::from(is_abandoned);
        drop(state);
        self.changed.tell();
        for held in waiting {
            answer(held, &A::join_result(status, &result));
        }
        self.tell_status();
        if let Some(timer) = self.timer.get() {
            timer.reset();
        }
        self.begin_next();
        Ok(())
    }

    /// The goals without those whose results need not be kept any more, whenever the timer runs next.
    fn kept(&self) -> MutexGuard<'_, State<A>> {
        let kept_ns = u64::try_from(self.result_timeout.as_nanos()).unwrap_or(u64::MAX);
        loop {
            let mut state = lock(&self.state);
            state.goals.forget_before(clock::monotonic_ns().saturating_sub(kept_ns));
            let forgotten = state.goals.take_forgotten();
            if forgotten.is_empty() {
                return state;
            }
            drop(state);
            drop(forgotten);
        }
    }

    fn forget_old(&self) {
        let has_more = self.kept().goals.has_ended();
        self.tell_status();
        if let Some(timer) = self.timer.get().filter(|_| !has_more) {
            timer.cancel();
            // One may have ended in between.
            if lock(&self.state).goals.has_ended() {
                timer.reset();
            }
        }
    }

    /// Tells where all goals stand, unless somebody else has since.
    fn tell_status(&self) {
        let mut told = lock(&self.told);
        let state = lock(&self.state);
        let changes = Some(state.goals.changes());
        if *told == changes {
            return;
        }
        let status_list = state.goals.told().map(|(id, stamp_ns, status)| StatusMessage {
            goal_info: info(id, stamp_ns),
            status: status.number(),
        });
        let message = GoalStatusArray { status_list: status_list.collect() };
        drop(state);
        let published = self.status.publish(message);
        if published.is_ok() {
            *told = changes;
        }
        drop(told);
        if let Err(error) = published {
            tracing::debug!(action = self.name, %error, "its status is not told");
        }
    }
}

/// Lets go of [`State::is_beginning`], whatever happens.
struct Beginning<'a, A: ActionForm>(&'a Core<A>);

impl<A: ActionForm> Drop for Beginning<'_, A> {
    fn drop(&mut self) {
        lock(&self.0.state).is_beginning = false;
    }
}

/// A goal that is to be pursued, from any thread, and ended. Dropped before that it is aborted, with a result of
/// defaults.
pub struct GoalHandle<A: ActionForm> {
    core: Arc<Core<A>>,
    id: GoalId,
    goal: A::Goal,
    is_over: bool,
}

impl<A: ActionForm> GoalHandle<A> {
    /// Returns the goal's name, a UUID.
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// Returns what is asked for.
    pub fn goal(&self) -> &A::Goal {
        &self.goal
    }

    /// Returns true if the goal is to be given up. Then it is for whoever pursues it to end it, as canceled or
    /// otherwise.
    pub fn is_canceling(&self) -> bool {
        lock(&self.core.state).goals.status(self.id) == GoalStatus::Canceling
    }

    /// Sleeps for `time`, or until the goal is to be given up, and returns whether it is.
    pub fn sleep(&self, time: Duration) -> bool {
        let deadline = Deadline::after(time);
        let mut state = lock(&self.core.state);
        loop {
            if state.goals.status(self.id) == GoalStatus::Canceling {
                return true;
            }
            let left = deadline.left();
            if left.is_zero() {
                return false;
            }
            state = self.core.changed.wait(state, left);
        }
    }

    /// Publishes feedback to whoever listens.
    ///
    /// # Errors
    ///
    /// Those of [`Publisher::publish`]; [`ErrorKind::Invalid`] if it is none of the action's type.
    pub fn publish_feedback(&self, feedback: A::Feedback) -> Result<()> {
        let message = A::join_feedback(&self.core.ty, self.id, feedback)?;
        self.core.feedback.publish_said(&message.outgoing())
    }

    /// Ends the goal as reached.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the goal has ended already, or the result is none of the action's type: then the goal
    /// is aborted.
    pub fn succeed(self, result: A::Result) -> Result<()> {
        self.end(Event::Succeed, result)
    }

    /// Ends the goal as given up without having been asked for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the goal has ended already, or the result is none of the action's type: then the goal
    /// is aborted.
    pub fn abort(self, result: A::Result) -> Result<()> {
        self.end(Event::Abort, result)
    }

    /// Ends the goal as given up as was asked for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if nobody has asked for it, or the result is none of the action's type; the goal is aborted
    /// then.
    pub fn canceled(self, result: A::Result) -> Result<()> {
        self.end(Event::GiveUp, result)
    }

    fn end(mut self, event: Event, result: A::Result) -> Result<()> {
        let result = A::keep(&self.core.ty, result)?;
        let ended = self.core.end(self.id, event, result, false);
        self.is_over = ended.is_ok();
        ended
    }

    /// Of one that was never begun.
    fn end_with_default(mut self, event: Event) {
        // Where it is being given up already that stands.
        let _ = lock(&self.core.state).goals.apply(self.id, Event::Cancel);
        let none = A::no_result(&self.core.ty);
        self.is_over = self.core.end(self.id, event, none, false).is_ok();
    }
}

impl<A: ActionForm> Drop for GoalHandle<A> {
    fn drop(&mut self) {
        if !self.is_over {
            // It stands where it can be aborted, or has ended otherwise.
            let none = A::no_result(&self.core.ty);
            let _ = self.core.end(self.id, Event::Abort, none, true);
        }
    }
}

impl<A: ActionForm> fmt::Debug for GoalHandle<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoalHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

fn answer_at_once(held: Held, response: &Said) {
    let _ = held.respond_at_once(&response.outgoing());
}

fn answer(held: Held, response: &Said) {
    // Whoever left needs no answer; it is counted.
    let _ = held.respond(&response.outgoing());
}

fn refusal(return_code: i8) -> CancelGoalResponse {
    CancelGoalResponse { return_code, goals_canceling: Vec::new() }
}

fn info(id: GoalId, stamp_ns: i64) -> GoalInfo {
    GoalInfo { goal_id: UUID { uuid: id.0 }, stamp: time(stamp_ns) }
}
