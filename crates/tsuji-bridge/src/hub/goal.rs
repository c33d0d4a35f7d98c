//! Goals that clients send to actions.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{self, Poll, Wake, Waker};
use std::time::Instant;

use tsuji::action::{ActionClient, ClientGoal, GoalStatus, PendingGoal, RawAction};
use tsuji::{GuardCondition, Node};
use tsuji_codec::Format;
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

/// A goal that has not ended.
struct Open {
    asker: Asker,
    /// The client wants it given up, which is asked for once it is accepted.
    is_cancelled: bool,
    progress: Progress,
}

/// The client that wants a goal.
struct Asker {
    member: Arc<ConnectedClient>,
    key: u64,
    feedback: bool,
    delivery: Delivery,
}

/// How far a goal has come.
enum Progress {
    /// Until a server is ready, but not for long.
    Waits { goal: Kept, until: Instant },
    /// The server decides.
    Asked(PendingGoal<RawAction>),
    /// It is pursued.
    Accepted(ClientGoal<RawAction>),
}

impl Asker {
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

    fn tell_result(&self, action: &Action, status: GoalStatus, result: &[u8]) {
        let encoding = self.member.encoding;
        let whole = action.ty.get_result.response.written(result, encoding);
        match whole.and_then(|it| member(&it, encoding, "result")) {
            Ok(result) => self.end(Values::Encoded(&result), status.number(), true),
            Err(why) => self.fail(&format!("the result is none of its type: {why}")),
        }
    }

    fn tell_feedback(&self, action: &Action, feedback: &[u8]) {
        if !self.feedback {
            return;
        }
        let feedback = match action.ty.feedback.written(feedback, self.member.encoding) {
            Ok(feedback) => feedback,
            Err(why) => return self.tell_unreadable(&action.name, &why),
        };
        let mut state = self.member.lock();
        let Some((name, _)) = state.client.asking.context(self.key) else { return };
        let action = name.to_owned();
        let id = state.client.asking.id(self.key).cloned();
        drop(state);
        let (id, action, values) = (id.as_ref(), &*action, Values::Encoded(&feedback));
        let told = Outgoing::ActionFeedback { id, action, values };
        self.member.answer_by(self.delivery, &told);
    }

    /// Tells the client that feedback has come which it does not get.
    fn tell_unreadable(&self, action: &str, why: &str) {
        let id = self.member.lock().client.asking.id(self.key).cloned();
        let why = format!("action_feedback: {action}: it is none of its type: {why}");
        self.member.remark(Level::Error, id.as_ref(), &why);
    }
}

impl Open {
    /// Takes it as far as it goes now. Answers whether it is still open.
    fn go_on(&mut self, action: &Action, context: &mut task::Context<'_>) -> bool {
        loop {
            let next = match &mut self.progress {
                Progress::Waits { goal, until } => match action.client.is_ready() {
                    false if Instant::now() < *until => return true,
                    false => Err(format!("action {} does not exist", action.name)),
                    true => {
                        let asked = action.client.start_goal(goal.to_vec());
                        asked.map(Progress::Asked).map_err(|error| error.to_string())
                    }
                },
                Progress::Asked(pending) => match Pin::new(pending).poll(context) {
                    Poll::Pending => return true,
                    Poll::Ready(Ok(Some(goal))) => {
                        if self.is_cancelled {
                            cancel(&goal);
                        }
                        Ok(Progress::Accepted(goal))
                    }
                    Poll::Ready(Ok(None)) => Err("the goal was rejected".to_owned()),
                    Poll::Ready(Err(error)) => Err(error.to_string()),
                },
                Progress::Accepted(goal) => {
                    for _ in 0..FEEDBACK_A_TURN {
                        match goal.poll_feedback(context) {
                            Poll::Ready(Ok(Some(feedback))) => {
                                self.asker.tell_feedback(action, &feedback);
                            }
                            Poll::Ready(Err(error)) => {
                                self.asker.fail(&error.to_string());
                                return false;
                            }
                            Poll::Ready(Ok(None)) | Poll::Pending => break,
                        }
                    }
                    let ended = goal.poll_result(context);
                    if ended.is_ready() {
                        // What was said of a goal before it ended is heard before.
                        while let Poll::Ready(Ok(Some(feedback))) = goal.poll_feedback(context) {
                            self.asker.tell_feedback(action, &feedback);
                        }
                    } else if let Poll::Ready(Ok(Some(feedback))) = goal.poll_feedback(context) {
                        // The others have their turn before there is more.
                        self.asker.tell_feedback(action, &feedback);
                        context.waker().wake_by_ref();
                    }
                    match ended {
                        Poll::Pending => return true,
                        Poll::Ready(Err(error)) => Err(error.to_string()),
                        Poll::Ready(Ok((status, result))) => {
                            self.asker.tell_result(action, status, &result);
                            return false;
                        }
                    }
                }
            };
            match next {
                Ok(next) => self.progress = next,
                Err(why) => {
                    self.asker.fail(&why);
                    return false;
                }
            }
        }
    }
}

/// All actions that clients have sent goals to.
pub(super) struct Goals {
    node: Node,
    arrivals: Arc<Arrivals>,
    all: Vec<Asked>,
}

/// Whether something has come of a goal, of which the thread of ROS is told.
struct Arrivals {
    has_come: AtomicBool,
    news: GuardCondition,
}

impl Wake for Arrivals {
    fn wake(self: Arc<Self>) {
        self.has_come.store(true, Ordering::Release);
        self.news.trigger();
    }
}

/// One action, with the goals that have not ended.
struct Asked {
    action: Action,
    open: Vec<Open>,
}

struct Action {
    name: Arc<str>,
    ty: Arc<ActionType>,
    client: ActionClient<RawAction>,
}

impl Goals {
    /// `news` wakes the thread of ROS.
    pub(super) fn new(node: Node, news: GuardCondition) -> Self {
        let arrivals = Arc::new(Arrivals { has_come: AtomicBool::new(false), news });
        Self { node, arrivals, all: Vec::new() }
    }

    /// Whether somebody waits for a server.
    pub(super) fn waits(&self) -> bool {
        let mut open = self.all.iter().flat_map(|it| &it.open);
        open.any(|it| matches!(it.progress, Progress::Waits { .. }))
    }

    /// Sends a goal.
    pub(super) fn send(&mut self, goal: Goal) {
        let Goal { member, key, action, ty, args, feedback, delivery } = goal;
        let mut cdr = Vec::new();
        let read = body::read(&ty.goal.plan, args.body(), wall_now(), &mut cdr);
        let goal = member.keep(cdr);
        let asker = Asker { member, key, feedback, delivery };
        if let Err(error) = read {
            return asker.fail(&format!("args: {error}"));
        }
        let progress = Progress::Waits { goal, until: Instant::now() + SERVER_PATIENCE };
        let mut open = Open { asker, is_cancelled: false, progress };
        let waker = Waker::from(Arc::clone(&self.arrivals));
        let context = &mut task::Context::from_waker(&waker);
        match self.asked(&action, &ty) {
            Ok(asked) => {
                if open.go_on(&asked.action, context) {
                    asked.open.push(open);
                }
            }
            Err(why) => open.asker.fail(&why),
        }
    }

    fn asked(&mut self, action: &Arc<str>, ty: &Arc<ActionType>) -> Result<&mut Asked, String> {
        let same = |it: &Asked| it.action.name == *action && it.action.ty.name == ty.name;
        if let Some(at) = self.all.iter().position(same) {
            return Ok(&mut self.all[at]);
        }
        self.all.retain(|it| !it.open.is_empty());
        let client = self.node.create_raw_action_client(action, ty.raw.clone());
        let client = client.map_err(|error| error.to_string())?;
        let action = Action { name: Arc::clone(action), ty: Arc::clone(ty), client };
        self.all.push(Asked { action, open: Vec::new() });
        let last = self.all.len() - 1;
        Ok(&mut self.all[last])
    }

    /// A client wants a goal given up.
    pub(super) fn cancel(&mut self, member: u64, key: u64) {
        let mut open = self.all.iter_mut().flat_map(|it| &mut it.open);
        let Some(open) = open.find(|it| it.asker.member.number == member && it.asker.key == key)
        else {
            return;
        };
        open.is_cancelled = true;
        if let Progress::Accepted(goal) = &open.progress {
            cancel(goal);
        }
    }

    /// A client has gone. Its goals are pursued all the same, and nobody hears of them.
    pub(super) fn gone(&mut self, member: u64) {
        for asked in &mut self.all {
            asked.open.retain(|it| it.asker.member.number != member);
        }
    }

    /// Sends what has waited for a server, and hands on what has come.
    pub(super) fn look(&mut self) {
        if !self.arrivals.has_come.swap(false, Ordering::Acquire) && !self.waits() {
            return;
        }
        let waker = Waker::from(Arc::clone(&self.arrivals));
        let context = &mut task::Context::from_waker(&waker);
        for Asked { action, open } in &mut self.all {
            open.retain_mut(|it| it.go_on(action, context));
        }
    }
}

fn cancel(goal: &ClientGoal<RawAction>) {
    if let Err(error) = goal.start_cancel() {
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

/// Feedback of one goal that is handed on before the others have their turn.
const FEEDBACK_A_TURN: usize = 32;
