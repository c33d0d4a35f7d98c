//! Goals that clients send to actions.
//!
//! An action is three services and a topic, as [ROS 2 has them](https://design.ros2.org/articles/actions.html). The id of a goal, 16 bytes,
//! stands first in what is sent and in feedback, so that what follows it is aligned as it would be alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tsuji::{Node, Qos, RawClient, RawSubscription, Waitable};
use tsuji_codec::Format;
use tsuji_platform::process;
use tsuji_rosbridge::{Encoding, Level, Outgoing, Values};

use super::service::SERVER_PATIENCE;
use crate::body::{self, OwnedBody, wall_now};
use crate::connected_client::{ConnectedClient, Delivery, Kept, UNKNOWN};
use crate::plain::Plain;
use crate::types::ActionType;

/// A goal of a client.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) member: Arc<ConnectedClient>,
    /// By which the client's state knows it.
    pub(crate) key: u64,
    pub(crate) action: Arc<str>,
    pub(crate) ty: Arc<ActionType>,
    pub(crate) args: OwnedBody,
    /// Whether the client wants to know how far it has come.
    pub(crate) feedback: bool,
    /// How feedback and result are to be sent.
    pub(crate) delivery: Delivery,
}

type GoalId = [u8; 16];

/// A goal that has not ended.
struct Open {
    member: Arc<ConnectedClient>,
    key: u64,
    feedback: bool,
    delivery: Delivery,
    /// The client wants it given up, which is asked for once it is accepted.
    is_cancelled: bool,
    is_accepted: bool,
}

impl Open {
    /// Tells the client how it ended.
    fn end(&self, values: Values<'_>, status: i8, result: bool) {
        let ended = self.member.lock().client.asking.end(self.key);
        let Some(ended) = ended else { return };
        let (id, action) = (ended.id.as_ref(), &*ended.name);
        self.member.answer_by(
            self.delivery,
            &Outgoing::ActionResult { id, action, values, status, result },
        );
    }

    fn fail(&self, why: &str) {
        self.end(Values::Text(why), UNKNOWN, false);
    }

    /// Tells the client that feedback has come which it does not get.
    fn tell_unreadable(&self, action: &str, why: &str) {
        let id = self.member.lock().client.asking.id(self.key).cloned();
        let why = format!("action_feedback: {action}: it is none of its type: {why}");
        self.member.remark(Level::Error, id.as_ref(), &why);
    }
}

/// All actions that clients have sent goals to.
pub(super) struct Goals {
    node: Node,
    all: Vec<Asked>,
}

/// One action.
struct Asked {
    name: Arc<str>,
    ty: Arc<ActionType>,
    send_goal: RawClient,
    get_result: RawClient,
    cancel_goal: RawClient,
    feedback: RawSubscription,
    /// Until a server is ready, but not for long.
    waiting: Vec<(Kept, GoalId, Instant)>,
    /// Of requests that are not answered, by their numbers.
    sent: HashMap<u64, GoalId>,
    asked: HashMap<u64, GoalId>,
    open: HashMap<GoalId, Open>,
}

impl Goals {
    pub(super) fn new(node: Node) -> Self {
        Self { node, all: Vec::new() }
    }

    /// How many [`waitables`](Self::waitables) there are.
    pub(super) fn len(&self) -> usize {
        self.all.len() * PARTS
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.all.iter().flat_map(|it| -> [&dyn Waitable; PARTS] {
            [&it.send_goal, &it.get_result, &it.cancel_goal, &it.feedback]
        })
    }

    /// Whether somebody waits for a server.
    pub(super) fn waits(&self) -> bool {
        self.all.iter().any(|it| !it.waiting.is_empty())
    }

    /// Sends a goal.
    pub(super) fn send(&mut self, goal: Goal) {
        let Goal { member, key, action, ty, args, feedback, delivery } = goal;
        let (is_cancelled, is_accepted) = (false, false);
        let open = Open { member, key, feedback, delivery, is_cancelled, is_accepted };
        let mut cdr = Vec::new();
        if let Err(error) = body::read(&ty.goal.plan, args.body(), wall_now(), &mut cdr) {
            return open.fail(&format!("args: {error}"));
        }
        let id: GoalId = match process::random_token() {
            Ok(id) => id,
            Err(error) => return open.fail(&error.to_string()),
        };
        let mut request = Vec::with_capacity(cdr.len() + id.len());
        request.extend_from_slice(&cdr[..HEADER_BYTES]);
        request.extend_from_slice(&id);
        request.extend_from_slice(&cdr[HEADER_BYTES..]);
        match self.asked(&action, &ty) {
            Ok(asked) => {
                let request = open.member.keep(request);
                asked.open.insert(id, open);
                asked.waiting.push((request, id, Instant::now() + SERVER_PATIENCE));
                asked.look();
            }
            Err(why) => open.fail(&why),
        }
    }

    fn asked(&mut self, action: &Arc<str>, ty: &Arc<ActionType>) -> Result<&mut Asked, String> {
        let same = |it: &Asked| it.name == *action && it.ty.name == ty.name;
        if let Some(at) = self.all.iter().position(same) {
            return Ok(&mut self.all[at]);
        }
        self.all.retain(|it| !it.open.is_empty());
        let node = &self.node;
        let made = || {
            let client =
                |part: &str, ty| node.create_raw_client(format!("{action}/_action/{part}"), ty);
            tsuji::Result::Ok(Asked {
                send_goal: client("send_goal", ty.send_goal.raw.clone())?,
                get_result: client("get_result", ty.get_result.raw.clone())?,
                cancel_goal: client("cancel_goal", ty.cancel_goal.raw.clone())?,
                feedback: node.create_polled_raw_subscription(
                    &format!("{action}/_action/feedback"),
                    ty.feedback_message.raw(),
                    Qos::DEFAULT,
                )?,
                name: Arc::clone(action),
                ty: Arc::clone(ty),
                waiting: Vec::new(),
                sent: HashMap::new(),
                asked: HashMap::new(),
                open: HashMap::new(),
            })
        };
        self.all.push(made().map_err(|error: tsuji::Error| error.to_string())?);
        let last = self.all.len() - 1;
        Ok(&mut self.all[last])
    }

    /// A client wants a goal given up.
    pub(super) fn cancel(&mut self, member: u64, key: u64) {
        for asked in &mut self.all {
            let found =
                asked.open.iter_mut().find(|(_, it)| it.member.number == member && it.key == key);
            if let Some((id, open)) = found {
                open.is_cancelled = true;
                if open.is_accepted {
                    cancel(&asked.cancel_goal, id);
                }
            }
        }
    }

    /// A client has gone. Its goals are pursued all the same, and nobody hears of them.
    pub(super) fn gone(&mut self, member: u64) {
        for asked in &mut self.all {
            asked.open.retain(|_, it| it.member.number != member);
            let open = &asked.open;
            asked.waiting.retain(|(_, id, _)| open.contains_key(id));
        }
    }

    /// Sends what has waited for a server.
    pub(super) fn look(&mut self) {
        self.all.iter_mut().for_each(Asked::look);
    }

    /// Hands on what has come.
    pub(super) fn drain(&mut self, place: usize) {
        let Some(asked) = self.all.get_mut(place / PARTS) else { return };
        let drained = match place % PARTS {
            0 => asked.take_answers(),
            1 => asked.take_results(),
            // How many goals are given up is told by their results.
            2 => asked.cancel_goal.take_bytes().map(drop),
            _ => asked.take_feedback(),
        };
        if let Err(error) = drained {
            tracing::warn!(action = %Plain(&asked.name), error = %Plain(error), "nothing can be taken of an action");
        }
    }
}

impl Asked {
    fn look(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        let is_ready =
            self.send_goal.is_ready() && self.get_result.is_ready() && 0 < self.feedback.matched();
        for (request, id, until) in std::mem::take(&mut self.waiting) {
            if is_ready {
                match self.send_goal.post_bytes(&request) {
                    Ok(number) => drop(self.sent.insert(number, id)),
                    Err(error) => self.fail(&id, &error.to_string()),
                }
            } else if now < until {
                self.waiting.push((request, id, until));
            } else {
                let why = format!("action {} does not exist", self.name);
                self.fail(&id, &why);
            }
        }
    }

    fn fail(&mut self, id: &GoalId, why: &str) {
        if let Some(open) = self.open.remove(id) {
            open.fail(why);
        }
    }

    fn take_answers(&mut self) -> tsuji::Result<()> {
        while let Some((number, sample)) = self.send_goal.take_bytes()? {
            let Some(id) = self.sent.remove(&number) else { continue };
            // The first field of the response.
            let is_accepted = sample.bytes.get(HEADER_BYTES) == Some(&1);
            if !is_accepted {
                self.fail(&id, "the goal was rejected");
                continue;
            }
            // All in one: the header of any order, and the id.
            let request = [&[0, 1, 0, 0][..], &id].concat();
            match self.get_result.post_bytes(&request) {
                Ok(number) => drop(self.asked.insert(number, id)),
                Err(error) => self.fail(&id, &error.to_string()),
            }
            if let Some(open) = self.open.get_mut(&id) {
                open.is_accepted = true;
                if open.is_cancelled {
                    cancel(&self.cancel_goal, &id);
                }
            }
        }
        Ok(())
    }

    fn take_results(&mut self) -> tsuji::Result<()> {
        while let Some((number, sample)) = self.get_result.take_bytes()? {
            // What was said of a goal before it ended is heard before.
            self.take_feedback()?;
            let Some(open) = self.asked.remove(&number).and_then(|id| self.open.remove(&id)) else {
                continue;
            };
            let status = sample.bytes.get(HEADER_BYTES).map_or(UNKNOWN, |it| *it as i8);
            let whole = self.ty.get_result.response.written(&sample.bytes, open.member.encoding);
            match whole.and_then(|it| member(&it, open.member.encoding, "result")) {
                Ok(result) => open.end(Values::Encoded(&result), status, true),
                Err(why) => open.fail(&format!("the result is none of its type: {why}")),
            }
        }
        Ok(())
    }

    fn take_feedback(&mut self) -> tsuji::Result<()> {
        while let Some(sample) = self.feedback.take_bytes()? {
            let id = sample.bytes.get(HEADER_BYTES..HEADER_BYTES + 16);
            let Some(open) = id.and_then(|id| self.open.get(id)).filter(|it| it.feedback) else {
                continue;
            };
            let whole = self.ty.feedback_message.written(&sample.bytes, open.member.encoding);
            let feedback = match whole.and_then(|it| member(&it, open.member.encoding, "feedback"))
            {
                Ok(feedback) => feedback,
                Err(why) => {
                    open.tell_unreadable(&self.name, &why);
                    continue;
                }
            };
            let mut state = open.member.lock();
            let Some((name, _)) = state.client.asking.context(open.key) else { continue };
            let action = name.to_owned();
            let id = state.client.asking.id(open.key).cloned();
            drop(state);
            let values = Values::Encoded(&feedback);
            let (id, action) = (id.as_ref(), &*action);
            open.member.answer_by(open.delivery, &Outgoing::ActionFeedback { id, action, values });
        }
        Ok(())
    }
}

/// Asks for a goal to be given up. The request is the goal's id and a time of 0, for that goal whenever it was accepted.
fn cancel(client: &RawClient, id: &GoalId) {
    let request = [&[0, 1, 0, 0][..], id, &[0; 8]].concat();
    if let Err(error) = client.post_bytes(&request) {
        tracing::warn!(error = %Plain(error), "a goal cannot be cancelled");
    }
}

/// What is written of one member of a message.
fn member(message: &[u8], encoding: Encoding, name: &str) -> Result<Vec<u8>, String> {
    let format = match encoding {
        Encoding::Json => Format::Json,
        Encoding::Cbor => Format::Cbor,
        Encoding::Bson => Format::Bson,
    };
    let members =
        tsuji_codec::Raw::new(format, message).members().map_err(|error| error.to_string())?;
    for it in members {
        let (key, value) = it.map_err(|error| error.to_string())?;
        if key == name {
            return Ok(value.bytes().to_vec());
        }
    }
    Err(format!("it has no {name}"))
}

/// What an action waits for.
const PARTS: usize = 4;

/// CDR begins with so many bytes.
const HEADER_BYTES: usize = 4;
