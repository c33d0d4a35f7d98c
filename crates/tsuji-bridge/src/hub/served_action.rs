//! Actions that clients serve: goals go to them, and what they say of these goes back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tsuji::action::{ActionServer, ActionServerOptions, GoalHandle, GoalId, GoalStatus, RawAction};
use tsuji::{ErrorKind, Node, Waitable};
use tsuji_rosbridge::client::Kind;
use tsuji_rosbridge::{Id, Outgoing, Refusal, Values};

use crate::body::{self, OwnedBody, wall_now};
use crate::connected_client::ConnectedClient;
use crate::plain::Plain;
use crate::types::ActionType;

/// All actions that clients serve.
pub(super) struct ServedActions {
    node: Node,
    all: Vec<ServedAction>,
    /// Those that no client serves any more, and when they go.
    leaving: Vec<(Instant, ServedAction)>,
    /// What the next goal is known by.
    next: Arc<AtomicU64>,
}

/// One action.
struct ServedAction {
    member: Arc<ConnectedClient>,
    name: Arc<str>,
    ty: Arc<ActionType>,
    server: ActionServer<RawAction>,
    /// Goals that the client is to be told of.
    wanted: Arc<Mutex<HashMap<GoalId, Wanted>>>,
    /// No client serves it any more.
    is_left: Arc<AtomicBool>,
    /// Goals that the client pursues, by the numbers that these are known by there.
    goals: HashMap<u64, Pursued>,
}

/// A goal that was asked for.
struct Wanted {
    id: Id<'static>,
    number: u64,
    args: Vec<u8>,
}

/// A goal that a client pursues. Dropped it is aborted, with a result of defaults.
struct Pursued {
    id: Id<'static>,
    handle: GoalHandle<RawAction>,
    /// The client knows that it is to be given up.
    is_canceling: bool,
}

impl ServedActions {
    pub(super) fn new(node: Node) -> Self {
        Self { node, all: Vec::new(), leaving: Vec::new(), next: Arc::default() }
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.all.iter().flat_map(|it| it.server.waitables())
    }

    /// Whether a number is that of a goal, and not of a request to a service.
    pub(super) fn is_goal(number: u64) -> bool {
        number & GOAL != 0
    }

    /// Lets a client serve an action.
    pub(super) fn open(
        &mut self,
        member: Arc<ConnectedClient>,
        name: Arc<str>,
        ty: Arc<ActionType>,
        id: Option<Id<'static>>,
    ) {
        // Two servers of one name would both be asked.
        self.leaving.retain(|(_, it)| it.name != name);
        let opened = match self.all.iter().any(|it| it.name == name) {
            true => Err("another client serves it".to_owned()),
            false => self.served_action(&member, &name, ty),
        };
        match opened {
            Ok(served_action) => self.all.push(served_action),
            Err(why) => {
                member.lock().client.served.unadvertise(Kind::Action, &name);
                let expected = "an action that can be served";
                let (id, field) = (id.as_ref(), Some("action"));
                member.refuse(&Refusal::new("advertise_action", id, field, why, expected));
            }
        }
    }

    fn served_action(
        &self,
        member: &Arc<ConnectedClient>,
        name: &Arc<str>,
        ty: Arc<ActionType>,
    ) -> Result<ServedAction, String> {
        let wanted = Arc::<Mutex<HashMap<GoalId, Wanted>>>::default();
        let is_left = Arc::<AtomicBool>::default();
        let takes = Takes {
            member: Arc::clone(member),
            name: Arc::clone(name),
            ty: Arc::clone(&ty),
            wanted: Arc::clone(&wanted),
            is_left: Arc::clone(&is_left),
            next: Arc::clone(&self.next),
        };
        let options = ActionServerOptions::<RawAction>::new(&**name)
            .max_blocking(Duration::ZERO)
            .on_goal(move |id, goal| takes.take(id, goal));
        let server = self.node.create_polled_raw_action_server(options, ty.raw.clone());
        Ok(ServedAction {
            server: server.map_err(|error| error.to_string())?,
            member: Arc::clone(member),
            name: Arc::clone(name),
            ty,
            wanted,
            is_left,
            goals: HashMap::new(),
        })
    }

    /// A client serves an action no more. Its goals are aborted.
    pub(super) fn close(&mut self, member: u64, name: &str) {
        self.retain(|it| it.member.number != member || *it.name != *name);
    }

    /// A client has gone.
    pub(super) fn gone(&mut self, member: u64) {
        self.retain(|it| it.member.number != member);
    }

    fn retain(&mut self, stays: impl Fn(&ServedAction) -> bool) {
        for mut it in self.all.extract_if(.., |it| !stays(it)) {
            it.is_left.store(true, Ordering::Relaxed);
            it.goals.clear();
            self.leaving.push((Instant::now() + LEAVES, it));
        }
    }

    /// Whether there are actions that were served, and whose results may still be asked for.
    pub(super) fn waits(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Answers who asks those what has become of a goal, and lets them go that have had their time.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        // No goal is accepted any more, so none comes.
        self.leaving.retain(|(at, it)| it.server.take().is_ok() && now < *at);
    }

    /// The action of a goal that a client pursues.
    fn of(&mut self, number: u64) -> Option<&mut ServedAction> {
        self.all.iter_mut().find(|it| it.goals.contains_key(&number))
    }

    /// A goal of which the client will say nothing more.
    pub(super) fn forget(&mut self, number: u64) {
        if let Some(served_action) = self.of(number) {
            served_action.goals.remove(&number);
        }
    }

    /// How far a goal has come.
    pub(super) fn feedback(&mut self, member: &ConnectedClient, number: u64, values: &OwnedBody) {
        let Some(served_action) = self.of(number) else { return };
        let Some(Pursued { id, handle, .. }) = served_action.goals.get(&number) else { return };
        let mut cdr = Vec::new();
        if let Err(error) =
            body::read(&served_action.ty.feedback.plan, values.body(), wall_now(), &mut cdr)
        {
            return member.refuse(&body::refusal("action_feedback", Some(id), "values", &error));
        }
        match handle.publish_feedback(cdr) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Busy => {
                tracing::warn!(
                    action = %Plain(&served_action.name),
                    "a subscription has no room; feedback of a client is lost"
                );
            }
            Err(error) => {
                tracing::warn!(action = %Plain(&served_action.name), error = %Plain(error), "feedback is not published");
            }
        }
    }

    /// What has become of a goal. Where the result is none of its type, it is aborted with one of defaults.
    pub(super) fn end(
        &mut self,
        member: &ConnectedClient,
        number: u64,
        values: &OwnedBody,
        status: i8,
    ) {
        let Some(served_action) = self.of(number) else { return };
        let Some(Pursued { id, handle, .. }) = served_action.goals.remove(&number) else { return };
        let plan = &served_action.ty.get_result.response.plan;
        match values.wrapped(status, plan, wall_now()) {
            Ok(result) => end(handle, GoalStatus::from_number(status), result),
            Err(why) => {
                drop(handle);
                let (id, expected) = (Some(&id), "a result of its type");
                member.refuse(&Refusal::new("action_result", id, Some("values"), why, expected));
            }
        }
    }

    /// Hands on what has come.
    pub(super) fn drain(&mut self, place: usize) {
        let Some(served_action) = self.all.get_mut(place / PARTS) else { return };
        if let Err(error) = served_action.take() {
            tracing::warn!(action = %Plain(&served_action.name), error = %Plain(error), "nothing can be taken of an action");
        }
    }
}

/// Ends a goal. One that nobody wanted given up is aborted and not canceled.
fn end(handle: GoalHandle<RawAction>, status: GoalStatus, result: Vec<u8>) {
    let ended = match status {
        GoalStatus::Succeeded => handle.succeed(result),
        GoalStatus::Canceled if handle.is_canceling() => handle.canceled(result),
        _ => handle.abort(result),
    };
    if let Err(error) = ended {
        tracing::debug!(error = %Plain(error), "a goal has ended otherwise");
    }
}

/// Takes goals for a client.
struct Takes {
    member: Arc<ConnectedClient>,
    name: Arc<str>,
    ty: Arc<ActionType>,
    wanted: Arc<Mutex<HashMap<GoalId, Wanted>>>,
    is_left: Arc<AtomicBool>,
    next: Arc<AtomicU64>,
}

impl Takes {
    /// Whether the client can be told of a goal.
    fn take(&self, goal_id: GoalId, goal: &[u8]) -> bool {
        // One that is known already the server refuses, which would be told of this one's number.
        if self.is_left.load(Ordering::Relaxed) || lock(&self.wanted).contains_key(&goal_id) {
            return false;
        }
        let Ok(args) = self.ty.goal.written(goal, self.member.encoding) else { return false };
        let number = self.next.fetch_add(1, Ordering::Relaxed) | GOAL;
        let mut state = self.member.lock();
        let id = state.client.served.next_id(Kind::Action, &self.name);
        let begun = state.client.asked.begin(Some(id.borrowed()), &self.name, None, number).is_ok();
        drop(state);
        if begun {
            lock(&self.wanted).insert(goal_id, Wanted { id, number, args });
        }
        begun
    }
}

impl ServedAction {
    fn take(&mut self) -> tsuji::Result<()> {
        while let Some(handle) = self.server.take()? {
            let Some(Wanted { id, number, args }) = lock(&self.wanted).remove(&handle.id()) else {
                continue;
            };
            self.member.answer(&Outgoing::SendActionGoal {
                id: &id,
                action: &self.name,
                action_type: &self.ty.name,
                args: Values::Encoded(&args),
            });
            self.goals.insert(number, Pursued { id, handle, is_canceling: false });
        }
        // The server has refused these all the same: it knows them already, or too many.
        for (_, Wanted { id, .. }) in lock(&self.wanted).drain() {
            self.member.lock().client.asked.answer(&id, &self.name);
        }
        for Pursued { id, handle, is_canceling } in self.goals.values_mut() {
            if !*is_canceling && handle.is_canceling() {
                *is_canceling = true;
                self.member.answer(&Outgoing::CancelActionGoal { id, action: &self.name });
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whoever has sent a goal asks for its result when it was accepted, which may be after the client has gone.
const LEAVES: Duration = Duration::from_secs(1);

/// What an action waits for.
const PARTS: usize = 4;

/// The numbers of goals have this bit, those of requests to services do not.
const GOAL: u64 = 1 << 63;
