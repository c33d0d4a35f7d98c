//! Actions that clients serve: goals go to them, and what they say of these goes back.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji::{
    ErrorKind, Node, PublisherOptions, Qos, RawPublisher, RawRequest, RawService, Waitable,
};
use tsuji_codec::Now;
use tsuji_rosbridge::client::Kind;
use tsuji_rosbridge::{Id, Outgoing, Refusal, Values};

use crate::body::{self, OwnedBody, wall_now};
use crate::connected_client::ConnectedClient;
use crate::plain::Plain;
use crate::types::{ActionType, MessageType, Types};

type GoalId = [u8; 16];

/// All actions that clients serve.
pub(super) struct ServedActions {
    node: Node,
    types: Arc<Types>,
    all: Vec<ServedAction>,
    /// Those that no client serves any more, and when they go.
    leaving: Vec<(Instant, ServedAction)>,
    /// Goals that clients have, by the numbers that these are known by there.
    numbers: HashMap<u64, (Arc<str>, GoalId)>,
    next: u64,
}

/// One action.
struct ServedAction {
    member: Arc<ConnectedClient>,
    name: Arc<str>,
    ty: Arc<ActionType>,
    status_ty: Arc<MessageType>,
    send_goal: RawService,
    get_result: RawService,
    cancel_goal: RawService,
    feedback: RawPublisher,
    status: RawPublisher,
    goals: HashMap<GoalId, Goal>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<GoalId>,
}

/// A goal that a client pursues, or has pursued.
struct Goal {
    id: Id<'static>,
    stamp: Now,
    /// As `action_msgs/GoalStatus` numbers it.
    status: i8,
    /// What `get_result` answers, once it has ended.
    result: Option<Vec<u8>>,
    /// Who has asked for it.
    waiting: Vec<RawRequest>,
}

impl ServedActions {
    pub(super) fn new(node: Node, types: Arc<Types>) -> Self {
        let (all, leaving) = (Vec::new(), Vec::new());
        Self { node, types, all, leaving, numbers: HashMap::new(), next: 0 }
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.all.iter().flat_map(|it| -> [&dyn Waitable; PARTS] {
            [&it.send_goal, &it.get_result, &it.cancel_goal]
        })
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
        let said = |error: tsuji::Error| error.to_string();
        let part = |part: &str| format!("{name}/_action/{part}");
        let service =
            |it: &str, ty| self.node.create_polled_raw_service(part(it), ty).map_err(said);
        let status_ty = self.types.message("action_msgs/msg/GoalStatusArray")?;
        let publisher = |it: &str, ty: &MessageType, qos| {
            let options = PublisherOptions::default().qos(qos).max_blocking(Duration::ZERO);
            self.node.create_raw_publisher(&part(it), ty.raw(), options).map_err(said)
        };
        Ok(ServedAction {
            send_goal: service("send_goal", ty.send_goal.raw.clone())?,
            get_result: service("get_result", ty.get_result.raw.clone())?,
            cancel_goal: service("cancel_goal", ty.cancel_goal.raw.clone())?,
            feedback: publisher("feedback", &ty.feedback_message, Qos::DEFAULT)?,
            status: publisher("status", &status_ty, Qos::LATCHED)?,
            member: Arc::clone(member),
            name: Arc::clone(name),
            ty,
            status_ty,
            goals: HashMap::new(),
            ended: VecDeque::new(),
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
            it.abort_all();
            self.numbers.retain(|_, (name, _)| *name != it.name);
            self.leaving.push((Instant::now() + LEAVES, it));
        }
    }

    /// Whether there are actions that were served, and whose results may still be asked for.
    pub(super) fn waits(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Answers who asks those what has become of a goal, and lets them go that have had their time.
    pub(super) fn look(&mut self) {
        if self.waits() {
            let now = Instant::now();
            self.leaving.retain_mut(|(at, it)| it.take_asked().is_ok() && now < *at);
        }
    }

    /// A goal of which the client will say nothing more.
    pub(super) fn forget(&mut self, number: u64) {
        self.end(number, &OwnedBody::none(), ABORTED, None);
    }

    /// How far a goal has come.
    pub(super) fn feedback(&mut self, member: &ConnectedClient, number: u64, values: &OwnedBody) {
        let Some((name, id)) = self.numbers.get(&number) else { return };
        let Some(served_action) = self.all.iter().find(|it| it.name == *name) else { return };
        let mut cdr = Vec::new();
        if let Err(error) =
            body::read(&served_action.ty.feedback.plan, values.body(), wall_now(), &mut cdr)
        {
            let about = served_action.goals.get(id).map(|it| &it.id);
            return member.refuse(&body::refusal("action_feedback", about, "values", &error));
        }
        // What stands behind the id of 16 bytes is aligned as it is alone.
        let message = [&cdr[..HEADER_BYTES], id, &cdr[HEADER_BYTES..]].concat();
        publish(&served_action.feedback, &message);
    }

    /// What has become of a goal.
    pub(super) fn end(
        &mut self,
        number: u64,
        values: &OwnedBody,
        status: i8,
        told: Option<&ConnectedClient>,
    ) {
        let Some((name, id)) = self.numbers.remove(&number) else { return };
        let Some(served_action) = self.all.iter_mut().find(|it| it.name == name) else { return };
        let about = served_action.goals.get(&id).map(|it| it.id.clone());
        if let Err(why) = served_action.end(&id, values, status)
            && let Some(member) = told
        {
            let (id, expected) = (about.as_ref(), "a result of its type");
            member.refuse(&Refusal::new("action_result", id, Some("values"), why, expected));
        }
    }

    /// Hands on what has come.
    pub(super) fn drain(&mut self, place: usize) {
        let Some(served_action) = self.all.get_mut(place / PARTS) else { return };
        let drained = match place % PARTS {
            0 => served_action.take_goals(&mut self.numbers, &mut self.next),
            1 => served_action.take_asked(),
            _ => served_action.take_cancels(),
        };
        if let Err(error) = drained {
            tracing::warn!(action = %Plain(&served_action.name), error = %Plain(error), "nothing can be taken of an action");
        }
    }
}

impl ServedAction {
    fn take_goals(
        &mut self,
        numbers: &mut HashMap<u64, (Arc<str>, GoalId)>,
        next: &mut u64,
    ) -> tsuji::Result<()> {
        while let Some(request) = self.send_goal.take_bytes()? {
            let bytes = request.bytes();
            let id = bytes.get(HEADER_BYTES..BEHIND_ID).and_then(|it| GoalId::try_from(it).ok());
            let goal = id.and_then(|id| {
                let goal = [&bytes[..HEADER_BYTES], &bytes[BEHIND_ID..]].concat();
                let args = self.ty.goal.written(&goal, self.member.encoding).ok()?;
                (!self.goals.contains_key(&id)).then_some((id, args))
            });
            let begun = goal.and_then(|(goal, args)| {
                let number = *next | GOAL;
                *next += 1;
                let mut state = self.member.lock();
                let id = state.client.served.next_id(Kind::Action, &self.name);
                let asked = &mut state.client.asked;
                asked.begin(Some(id.borrowed()), &self.name, None, number).ok()?;
                Some((goal, args, id, number))
            });
            let stamp = wall_now();
            let answer = [
                &[0, 1, 0, 0, u8::from(begun.is_some()), 0, 0, 0][..],
                &stamp.sec.to_le_bytes(),
                &stamp.nanosec.to_le_bytes(),
            ];
            let told = request.respond_bytes(&answer.concat());
            let Some((goal, args, id, number)) = begun else { continue };
            if let Err(error) = told {
                tracing::debug!(error = %Plain(error), "whoever sent a goal has gone");
            }
            numbers.insert(number, (Arc::clone(&self.name), goal));
            let (result, waiting) = (None, Vec::new());
            let new = Goal { id: id.clone(), stamp, status: EXECUTING, result, waiting };
            self.goals.insert(goal, new);
            self.tell_status();
            self.member.answer(&Outgoing::SendActionGoal {
                id: &id,
                action: &self.name,
                action_type: &self.ty.name,
                args: Values::Encoded(&args),
            });
        }
        Ok(())
    }

    fn take_asked(&mut self) -> tsuji::Result<()> {
        while let Some(request) = self.get_result.take_bytes()? {
            let goal = request.bytes().get(HEADER_BYTES..BEHIND_ID);
            match goal.and_then(|id| self.goals.get_mut(id)) {
                Some(Goal { result: Some(result), .. }) => respond(request, result),
                Some(goal) => goal.waiting.push(request),
                // It is not known here, or was forgotten.
                None => {
                    let mut unknown = Vec::new();
                    let plan = &self.ty.get_result.response.plan;
                    if plan.cdr_from_json(b"{}", wall_now(), &mut unknown).is_ok() {
                        respond(request, &unknown);
                    }
                }
            }
        }
        Ok(())
    }

    fn take_cancels(&mut self) -> tsuji::Result<()> {
        while let Some(request) = self.cancel_goal.take_bytes()? {
            let Some(asked) = request.bytes().get(HEADER_BYTES..BEHIND_ID + TIME_BYTES) else {
                continue;
            };
            let (wanted, time) = asked.split_at(BEHIND_ID - HEADER_BYTES);
            // No id and no time is all of them. By a time alone nobody is known to ask.
            let is_all = wanted.iter().chain(time).all(|it| *it == 0);
            let mut canceling = Vec::new();
            for (id, goal) in &mut self.goals {
                if goal.status == EXECUTING && (is_all || id[..] == *wanted) {
                    goal.status = CANCELING;
                    canceling.push((goal.id.clone(), info(id, goal.stamp)));
                }
            }
            let (ids, infos): (Vec<_>, Vec<_>) = canceling.into_iter().unzip();
            let code = i8::from(infos.is_empty());
            let response = json!({ "return_code": code, "goals_canceling": infos }).to_string();
            let mut cdr = Vec::new();
            let plan = &self.ty.cancel_goal.response.plan;
            if plan.cdr_from_json(response.as_bytes(), wall_now(), &mut cdr).is_ok() {
                respond(request, &cdr);
            }
            if !ids.is_empty() {
                self.tell_status();
            }
            for id in ids {
                self.member.answer(&Outgoing::CancelActionGoal { id: &id, action: &self.name });
            }
        }
        Ok(())
    }

    /// Keeps what has become of a goal, and tells whoever has asked. Where the result is none of its type, the goal is aborted
    /// with one of defaults.
    fn end(&mut self, id: &GoalId, values: &OwnedBody, status: i8) -> Result<(), String> {
        let ty = Arc::clone(&self.ty);
        let made = values.wrapped(status, &ty.get_result.response.plan, wall_now());
        let (status, result) = match &made {
            Ok(result) => (status, result.clone()),
            Err(_) => {
                let none =
                    OwnedBody::none().wrapped(ABORTED, &ty.get_result.response.plan, wall_now());
                (ABORTED, none.unwrap_or_default())
            }
        };
        let Some(goal) = self.goals.get_mut(id) else { return Ok(()) };
        goal.status = status;
        goal.waiting.drain(..).for_each(|it| respond(it, &result));
        goal.result = Some(result);
        self.ended.push_back(*id);
        if ENDED_MAX < self.ended.len()
            && let Some(oldest) = self.ended.pop_front()
        {
            self.goals.remove(&oldest);
        }
        self.tell_status();
        made.map(drop)
    }

    fn abort_all(&mut self) {
        let open: Vec<_> =
            self.goals.iter().filter(|(_, it)| it.result.is_none()).map(|(id, _)| *id).collect();
        for id in open {
            // There is a result of defaults for every type.
            let _ = self.end(&id, &OwnedBody::none(), ABORTED);
        }
    }

    fn tell_status(&self) {
        let list: Vec<_> = self
            .goals
            .iter()
            .map(|(id, goal)| json!({ "goal_info": info(id, goal.stamp), "status": goal.status }))
            .collect();
        let text = json!({ "status_list": list }).to_string();
        let mut cdr = Vec::new();
        if self.status_ty.plan.cdr_from_json(text.as_bytes(), wall_now(), &mut cdr).is_ok() {
            publish(&self.status, &cdr);
        }
    }
}

/// `action_msgs/GoalInfo`.
fn info(id: &GoalId, stamp: Now) -> Value {
    json!({ "goal_id": { "uuid": id.to_vec() }, "stamp": { "sec": stamp.sec, "nanosec": stamp.nanosec } })
}

fn respond(request: RawRequest, cdr: &[u8]) {
    if let Err(error) = request.respond_bytes(cdr) {
        tracing::debug!(error = %Plain(error), "whoever asked has gone");
    }
}

fn publish(publisher: &RawPublisher, cdr: &[u8]) {
    match publisher.publish_bytes(cdr) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::Busy => {
            tracing::warn!(
                topic = %Plain(publisher.topic()),
                "a subscription has no room; what a client said of a goal is lost"
            );
        }
        Err(error) => {
            tracing::warn!(topic = %Plain(publisher.topic()), error = %Plain(error), "not published")
        }
    }
}

/// Whoever has sent a goal asks for its result when it was accepted, which may be after the client has gone.
const LEAVES: Duration = Duration::from_secs(1);

/// What an action waits for.
const PARTS: usize = 3;

/// CDR begins with so many bytes, and the id of a goal with 16 more.
const HEADER_BYTES: usize = 4;
const BEHIND_ID: usize = HEADER_BYTES + 16;
const TIME_BYTES: usize = 8;

/// The numbers of goals have this bit, those of requests to services do not.
const GOAL: u64 = 1 << 63;

/// Goals of an action that have ended and can be asked for. Of more the oldest are forgotten.
const ENDED_MAX: usize = 1000;

/// As `action_msgs/GoalStatus` numbers them.
const EXECUTING: i8 = 2;
const CANCELING: i8 = 3;
const ABORTED: i8 = 6;
