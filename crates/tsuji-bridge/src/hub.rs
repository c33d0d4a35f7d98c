//! The thread of ROS: it takes samples, requests and replies, writes each once in every way that clients want, and puts it
//! where they wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use tsuji::{
    Context, GuardCondition, Node, RawSubscription, SubscriptionCounters, WaitList, Waitable,
};
use tsuji_rosbridge::Id;
use tsuji_rosbridge::access::UserKey;
use tsuji_rosbridge::client::{StreamKey, StreamSettings};

use crate::body::OwnedBody;
use crate::connected_client::ConnectedClient;
use crate::foxglove::{Names, Wish};
use crate::observer::Observer;
use crate::plain::Plain;
use crate::settings::Settings;
use crate::types::{ActionType, ServiceType, Types};
use crate::{Counters, Result};

mod diagnostics;
mod foxglove;
mod goal;
mod overview;
mod parameter;
mod playback;
mod rights;
mod rosapi;
mod route;
mod served_action;
mod service;
mod topic;

use diagnostics::Diagnostics;
use foxglove::Foxglove;
pub(crate) use goal::Goal;
use goal::Goals;
use overview::Overview;
pub(crate) use rights::visible;
use served_action::ServedActions;
pub(crate) use service::{Call, GONE, LATE, tells};
use service::{Callers, Servers};
use topic::Topics;
pub(crate) use topic::{Subscription, offers, request};

/// What the thread of ROS is asked to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Samples of a topic for a client, or the same in another way.
    Subscribe(Subscription),
    /// The samples of a topic in another way.
    Resettle { member: Arc<ConnectedClient>, key: StreamKey, settings: StreamSettings },
    /// No more of them.
    Unsubscribe { member: u64, key: StreamKey, topic: Arc<str> },
    /// A request to a service.
    Call(Call),
    /// A goal of an action.
    SendGoal(Goal),
    /// It is to be given up.
    CancelGoal { member: u64, key: u64 },
    /// A client serves.
    Serve {
        member: Arc<ConnectedClient>,
        service: Arc<str>,
        ty: Arc<ServiceType>,
        id: Option<Id<'static>>,
    },
    /// It serves no more.
    ServeNoMore { member: u64, service: Arc<str> },
    /// What a client that serves has answered.
    Respond {
        member: Arc<ConnectedClient>,
        number: u64,
        id: Option<Id<'static>>,
        values: OwnedBody,
        result: bool,
    },
    /// A client serves an action.
    Pursue {
        member: Arc<ConnectedClient>,
        action: Arc<str>,
        ty: Arc<ActionType>,
        id: Option<Id<'static>>,
    },
    /// It serves it no more.
    PursueNoMore { member: u64, action: Arc<str> },
    /// How far a goal has come that a client pursues.
    Feedback { member: Arc<ConnectedClient>, number: u64, values: OwnedBody },
    /// What has become of it.
    Result { member: Arc<ConnectedClient>, number: u64, values: OwnedBody, status: i8 },
    /// A request or a goal that no client will answer.
    Forget { number: u64, why: &'static str },
    /// What a client of Foxglove wants beside.
    Foxglove { member: Arc<ConnectedClient>, user: Option<UserKey>, wish: Wish },
    /// A client has gone, with all that it had.
    Gone { member: Arc<ConnectedClient> },
}

impl Order {
    /// What it takes while it waits, about.
    fn bytes(&self) -> usize {
        let body = match self {
            Self::Call(call) => call.args.bytes(),
            Self::SendGoal(goal) => goal.args.bytes(),
            Self::Respond { values, .. }
            | Self::Feedback { values, .. }
            | Self::Result { values, .. } => values.bytes(),
            Self::Foxglove { wish, .. } => wish.bytes(),
            _ => 0,
        };
        ORDER_BYTES + body
    }
}

/// An order on its way.
struct Placed {
    order: Order,
    member: Arc<ConnectedClient>,
    bytes: usize,
}

/// The way to the thread of ROS.
pub(crate) struct Mailbox {
    /// Flows and processes, for whoever wants to know.
    pub(crate) observer: Arc<Observer>,
    /// What clients of Foxglove know by numbers.
    pub(crate) names: Arc<Names>,
    orders: Sender<Placed>,
    news: GuardCondition,
    is_over: Arc<AtomicBool>,
    is_pending: bool,
}

impl Mailbox {
    /// Puts an order of a client there; the thread hears of it by the next [`flush`](Self::flush).
    pub(crate) fn order(&mut self, member: &Arc<ConnectedClient>, order: Order) {
        let (member, bytes) = (Arc::clone(member), order.bytes());
        member.ordered(bytes);
        // Where the thread has ended, so does the bridge.
        let _ = self.orders.send(Placed { order, member, bytes });
        self.is_pending = true;
    }

    /// Ends the thread, whatever it still has to do.
    pub(crate) fn end(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.news.trigger();
    }

    /// Wakes the thread if there are orders.
    pub(crate) fn flush(&mut self) {
        if std::mem::take(&mut self.is_pending) {
            self.news.trigger();
        }
    }
}

impl Drop for Mailbox {
    /// Nobody asks for anything any more.
    fn drop(&mut self) {
        self.end();
    }
}

/// What of a subscription never came, or was pushed out of its queue before it was taken, as far as it is counted.
#[derive(Default)]
struct Missed(u64);

impl Missed {
    /// Counts what is new of it.
    fn note(&mut self, subscription: &RawSubscription, counters: &Counters) {
        let SubscriptionCounters { lost, displaced, .. } = subscription.counters();
        let before = std::mem::replace(&mut self.0, lost + displaced);
        counters.missed.fetch_add(self.0.saturating_sub(before), Ordering::Relaxed);
    }
}

/// All that clients have of ROS, but for what they publish.
pub(crate) struct Hub {
    context: Context,
    waits: WaitList,
    graph: GuardCondition,
    news: GuardCondition,
    orders: Receiver<Placed>,
    is_over: Arc<AtomicBool>,
    topics: Topics,
    callers: Callers,
    servers: Servers,
    goals: Goals,
    served_actions: ServedActions,
    foxglove: Foxglove,
    diagnostics: Option<Diagnostics>,
    /// When what publishers offer was looked at, and when it is to be.
    reconsidered: Instant,
    reconsider_at: Option<Instant>,
    /// When it is looked once more which calls are lost: what a server still says may come after it has left the graph.
    look_for_lost_at: Option<Instant>,
    began: Instant,
}

impl Hub {
    /// A thread's work, and the way to it. `began` is when the time of the protocol begins.
    pub(crate) fn new(
        node: &Node,
        settings: &Arc<Settings>,
        counters: &Arc<Counters>,
        types: &Arc<Types>,
        began: Instant,
    ) -> Result<(Self, Mailbox)> {
        let context = node.context().clone();
        let news = GuardCondition::new(&context)?;
        let (news_of_goals, news_of_playback) = (news.clone(), news.clone());
        let (sender, orders) = mpsc::channel();
        let is_over = Arc::<AtomicBool>::default();
        let observer = Arc::new(Observer::new(context.clone()));
        let names = Arc::new(Names::new(settings.playback.clone()));
        let mailbox = Mailbox {
            observer: Arc::clone(&observer),
            names: Arc::clone(&names),
            orders: sender,
            news: news.clone(),
            is_over: Arc::clone(&is_over),
            is_pending: false,
        };
        let diagnostics = settings
            .diagnostics
            .then(|| Diagnostics::new(node, Arc::clone(&observer), Arc::clone(counters)));
        let hub = Self {
            diagnostics: diagnostics.transpose()?,
            waits: WaitList::new(&context)?,
            graph: context.graph_guard()?,
            news,
            orders,
            is_over,
            topics: Topics::new(
                node.clone(),
                context.clone(),
                Arc::clone(settings),
                Arc::clone(counters),
                Arc::clone(&names),
            ),
            callers: Callers::new(
                node.clone(),
                Arc::clone(types),
                Arc::clone(settings),
                Overview::new(Arc::clone(settings), Arc::clone(counters), observer),
            ),
            servers: Servers::new(node.clone()),
            goals: Goals::new(node.clone(), news_of_goals),
            served_actions: ServedActions::new(node.clone()),
            foxglove: Foxglove::new(
                node.clone(),
                Arc::clone(settings),
                Arc::clone(types),
                Arc::clone(counters),
                names,
                news_of_playback,
            ),
            context,
            reconsidered: began,
            // Who hears of the health of all may have been there before.
            reconsider_at: settings.diagnostics.then_some(began),
            look_for_lost_at: None,
            began,
        };
        Ok((hub, mailbox))
    }

    /// Serves until it is told to end, or the context is shut down.
    pub(crate) fn run(mut self) {
        while !self.is_over.load(Ordering::Acquire) {
            let ready = {
                let mut entities: Vec<&dyn Waitable> = vec![&self.graph, &self.news];
                entities.extend(self.topics.waitables());
                entities.extend(self.callers.waitables());
                entities.extend(self.servers.waitables());
                entities.extend(self.foxglove.waitables());
                entities.extend(self.served_actions.waitables());
                let waits = self.callers.waits() || self.goals.waits();
                let leaves = self.served_actions.waits() || self.topics.waits();
                let leaves = leaves || self.foxglove.waits();
                let leaves = leaves.then_some(LOOK_AT_LEAVING);
                let tells_at = self.diagnostics.as_ref().and_then(Diagnostics::next);
                let next = [self.reconsider_at, self.look_for_lost_at, tells_at];
                let next = next.into_iter().flatten().min();
                let next = next.map(|it| it.saturating_duration_since(Instant::now()));
                let patience = [waits.then_some(LOOK).or(leaves), next];
                let patience = patience.into_iter().flatten().min();
                match self.waits.wait(&entities, patience) {
                    Ok(ready) => ready.to_vec(),
                    Err(error) => {
                        tracing::error!(error = %Plain(error), "the thread of ROS ends, and the bridge with it");
                        return;
                    }
                }
            };
            let now = self.began.elapsed();
            let ends = [
                self.topics.len(),
                self.callers.len(),
                self.servers.len(),
                self.foxglove.len(),
                usize::MAX,
            ];
            // Orders change places, so they come last.
            for place in ready.iter().filter_map(|it| it.checked_sub(2)) {
                self.drain(place, ends, now);
            }
            if ready.first() == Some(&0) {
                self.callers.end_lost();
                self.look_for_lost_at.get_or_insert_with(|| Instant::now() + RECONSIDER_EVERY);
                self.reconsider_at.get_or_insert_with(|| self.reconsidered + RECONSIDER_EVERY);
            }
            self.reconsider();
            if self.look_for_lost_at.is_some_and(|it| it <= Instant::now()) {
                self.look_for_lost_at = None;
                self.callers.end_lost();
            }
            self.callers.look(&self.context);
            self.goals.look();
            self.served_actions.look();
            self.obey_some();
            self.ask_nodes();
            for unanswered in self.servers.take_unanswered() {
                self.callers.end_unanswered(unanswered);
            }
            self.topics.look(self.began.elapsed());
            if let Some(diagnostics) = &mut self.diagnostics {
                diagnostics.look();
            }
        }
    }

    /// Looks at what publishers offer, where that has changed: many changes in a row are one.
    fn reconsider(&mut self) {
        let now = Instant::now();
        if self.reconsider_at.is_some_and(|it| it <= now) {
            self.reconsider_at = None;
            self.topics.reconsider(self.began.elapsed());
            self.foxglove.refresh(&self.context);
            if let Some(diagnostics) = &mut self.diagnostics {
                diagnostics.reconsider();
            }
            self.reconsidered = now;
        }
    }

    /// Asks nodes for clients of Foxglove, and hands on what they have answered.
    fn ask_nodes(&mut self) {
        let began = Instant::now();
        loop {
            for question in self.foxglove.questions() {
                self.callers.ask_for(question, &self.context);
            }
            let answers = self.callers.take_answers();
            if answers.is_empty() {
                break;
            }
            for (ticket, reply) in answers {
                self.foxglove.answered(ticket, reply.as_ref());
            }
            if A_TURN < began.elapsed() {
                self.news.trigger();
                break;
            }
        }
        self.foxglove.look();
    }

    /// Does what is asked, but for no longer than a turn: samples of others wait meanwhile.
    fn obey_some(&mut self) {
        let began = Instant::now();
        while let Ok(Placed { order, member, bytes }) = self.orders.try_recv() {
            // What a client that has gone still wants is not done; what it leaves behind is.
            if !member.is_gone() || matches!(order, Order::Gone { .. } | Order::Forget { .. }) {
                self.obey(order);
            }
            member.obeyed(bytes);
            if A_TURN < began.elapsed() {
                self.news.trigger();
                return;
            }
        }
    }

    /// Hands on what has come at a place: topics stand first, then what clients call and serve, what changes of parameters and time, and what
    /// clients pursue, each so many.
    fn drain(&mut self, mut place: usize, ends: [usize; 5], now: Duration) {
        for (whose, count) in ends.into_iter().enumerate() {
            if count <= place {
                place -= count;
                continue;
            }
            return match whose {
                0 => {
                    // What comes was published after the time that is told.
                    self.foxglove.hear_time();
                    self.topics.drain(place, now);
                }
                1 => self.callers.drain(place),
                2 => self.servers.drain(place, now),
                3 => self.foxglove.drain(),
                _ => self.served_actions.drain(place),
            };
        }
    }

    /// Does what is asked.
    fn obey(&mut self, order: Order) {
        match order {
            Order::Subscribe(subscription) => {
                self.topics.subscribe(subscription, self.began.elapsed());
            }
            Order::Resettle { member, key, settings } => {
                self.topics.resettle(&member, key, settings);
            }
            Order::Unsubscribe { member, key, topic } => {
                self.topics.unsubscribe(member, key, &topic);
            }
            Order::Call(call) => self.callers.call(call, &self.context),
            Order::SendGoal(goal) => self.goals.send(goal),
            Order::CancelGoal { member, key } => self.goals.cancel(member, key),
            Order::Serve { member, service, ty, id } => self.servers.open(member, service, ty, id),
            Order::ServeNoMore { member, service } => self.servers.close(member, &service),
            Order::Respond { member, number, id, values, result } => {
                self.servers.respond(&member, number, id.as_ref(), &values, result);
            }
            Order::Pursue { member, action, ty, id } => {
                self.served_actions.open(member, action, ty, id)
            }
            Order::PursueNoMore { member, action } => self.served_actions.close(member, &action),
            Order::Feedback { member, number, values } => {
                self.served_actions.feedback(&member, number, &values);
            }
            Order::Result { member, number, values, status } => {
                self.served_actions.end(&member, number, &values, status);
            }
            Order::Forget { number, .. } if ServedActions::is_goal(number) => {
                self.served_actions.forget(number);
            }
            Order::Forget { number, why } => self.servers.forget(number, why),
            Order::Foxglove { member, user, wish } => {
                self.foxglove.obey(member, user, wish, &self.context);
            }
            Order::Gone { member } => {
                self.foxglove.gone(member.number, &self.context);
                self.topics.gone(member.number);
                self.callers.gone(member.number);
                self.goals.gone(member.number);
                self.servers.gone(member.number);
                self.served_actions.gone(member.number);
            }
        }
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

/// How long one topic or service is read before the others have their turn.
const A_TURN: Duration = Duration::from_millis(2);

/// How often it is looked whether a server is ready, while somebody waits for one: that wakes nobody.
const LOOK: Duration = Duration::from_millis(2);

/// Looking at what publishers offer takes as long as there are topics, so it is not done more often.
const RECONSIDER_EVERY: Duration = Duration::from_millis(50);

/// What an order takes besides a message in it.
const ORDER_BYTES: usize = 1024;

/// How often it is looked whether what was served may go, and who has joined a topic.
const LOOK_AT_LEAVING: Duration = Duration::from_millis(20);
