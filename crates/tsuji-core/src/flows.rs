//! The life of flows, from when two ends have met until one is gone: which link each has, and how it comes to
//! another. No clock, no lock and no I/O.
//!
//! [`Flows`] is the table of the flows that are decided in one process: those of its publishers, and those of foreign
//! nodes' publishers to it. Its owner tells what happens by [`Flows::handle`], and then does what
//! [`Flows::poll_action`] answers until that answers nothing. [`Flows::poll_timeout`] says then when
//! [`Event::Timeout`] is due at the latest.
//!
//! ```text
//! Matched ─▶ (decided) ─▶ Offer ──────▶ Answered ─▶ Connect ─▶ Opened ─▶ Cut ─▶ Done
//!                │        OpenHere ───────┘            ▲ │
//!                └── to or from a foreign node ────────┘ └─▶ Later, OnTrial: GoOn, Shown, Timeout
//! ```
//!
//! Some actions have an outcome, which the owner tells at once: until then `poll_action` answers nothing more, so
//! that whatever follows is decided knowing it ([`Action::wants_outcome`]). Facts that change by themselves are not told but
//! asked for, by [`View`]; [`trace`] keeps what was told, asked and done, and does it again.
//!
//! What holds between two calls of `poll_action` that answered nothing, whatever the order of events;
//! `tests/flows_model.rs` tries it in random walks of several processes:
//!
//! - **One link carries**: a flow has one link that stands and at most one that is being opened, of another transport.
//!   [`RouteState::Active`] is a flow whose link stands.
//! - **What is offered ends**: every number of a link that was offered to a subscription of tsuji's is cut to or withdrawn, once,
//!   unless the subscription's end has refused it, or the flow was closed meanwhile.
//! - **Nothing waits for ever**: a link that its transport is opening, one on trial, a doubt, a broken link that is
//!   kept and a try that is planned each have a time-out. A flow without a link has a try planned unless no
//!   transport is able or may carry it. A first offer alone may be answered at any time: a process that is stopped may go on.
//! - **No engine twice**: of two engines on one wire a publisher's flows use one, but while they go over.
//! - **It remembers nothing of a flow that has ended.**

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::handover::{Epoch, WriterHandover};
use crate::{Offer, Policy, Traits, TransportId};

mod deciding;
mod engines;
mod opening;
mod pins;
mod route;
pub mod trace;

pub use engines::WireEngines;
pub use pins::{Pin, Stamp, TooManyPins};
pub use route::{Change, Decision, Route};

use pins::Pins;

/// Names an endpoint: 16 bytes, as in the ROS graph.
pub type EndpointId = [u8; 16];

/// A publisher and a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Flow {
    /// The publisher.
    pub publisher: EndpointId,
    /// The subscription.
    pub subscription: EndpointId,
}

impl Flow {
    /// The flow between these two.
    pub fn new(publisher: impl Into<EndpointId>, subscription: impl Into<EndpointId>) -> Self {
        Self { publisher: publisher.into(), subscription: subscription.into() }
    }
}

/// What time it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Now {
    /// On a clock that never goes back, in nanoseconds.
    pub monotonic_ns: u64,
    /// In nanoseconds since the Unix epoch.
    pub wall_ns: i64,
}

/// Kind of the samples that a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Role {
    /// Messages of a topic.
    Topic,
    /// Requests to a service.
    Request,
    /// Replies of a service.
    Reply,
}

/// State of a flow's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RouteState {
    /// The two ends are agreeing on the link.
    Opening,
    /// Samples flow.
    Active,
    /// QoS or type do not fit.
    Incompatible,
    /// No transport can carry it.
    NoRoute,
}

/// What stands at the ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ends {
    /// What it carries.
    pub role: Role,
    /// How the two ends agree.
    pub way: Way,
    /// The publisher keeps samples for late joiners.
    pub keeps: bool,
    /// The publisher says itself that it is alive.
    pub is_manual: bool,
}

/// How the two ends of a flow agree on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Way {
    /// Both are here.
    Here,
    /// The subscription lives in another process of tsuji, which is asked.
    Peer,
    /// The subscription is a foreign node's, which is not asked.
    ToForeign,
    /// The publisher is a foreign node's, which is not asked.
    FromForeign,
}

/// Why one end of a flow was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Refusal {
    /// In a sentence without a full stop.
    pub reason: String,
    /// Something has run out, of which there may be more later.
    pub is_passing: bool,
}

impl Refusal {
    /// There is no use in trying again.
    pub fn lasting(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_passing: false }
    }

    /// There may be later.
    pub fn passing(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_passing: true }
    }
}

/// What is wrong with a link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Trouble {
    /// Its transport.
    pub id: TransportId,
    /// What it says.
    pub reason: String,
    /// It carries nothing any more; else it has only run out of something.
    pub is_broken: bool,
}

/// What a link brings to a reader that was just connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Connected {
    /// The number of the first sample.
    pub first: u64,
    /// The number on the link that the reader had before, from which on that brings nothing.
    pub ends: Option<u64>,
    /// How many were published before that one.
    pub published_before: u64,
}

/// How a publisher's end reaches the other, or is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reach {
    /// By the address that the subscription's end gave, in its transport's own form.
    Address(Vec<u8>),
    /// The subscription is a foreign node's.
    ToForeign,
    /// The publisher is a foreign node's: the subscription's end is opened.
    FromForeign,
}

/// What became of an end that was to be connected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Outcome {
    /// The transport has only begun to reach the other end.
    Later,
    /// It is sent everything on this link too, and has still another.
    OnTrial,
    /// This is its link from here on.
    Connected(Connected),
    /// What a foreign publisher sends comes from here on.
    Heard,
    /// Its end is not there any more; what ends the flow is under way.
    Gone,
    /// It is not to be had.
    Refused(Refusal),
}

/// Something has happened.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Event {
    /// Two ends have met that fit each other.
    Matched {
        /// The flow between them.
        flow: Flow,
        /// Its topic.
        topic: Arc<str>,
        /// What they are.
        ends: Ends,
    },
    /// Two ends have met that do not fit each other.
    Mismatched {
        /// The flow that is not between them.
        flow: Flow,
        /// Its topic.
        topic: Arc<str>,
        /// What they are.
        ends: Ends,
        /// What does not fit.
        mismatches: Vec<String>,
    },
    /// A flow is forgotten of which the other end knows nothing, so that its ends can meet again.
    Unmatched(Flow),
    /// One end of this flow is gone, or it is over for another reason.
    Ended(Flow),
    /// An endpoint is gone, with all flows to and from it.
    EndpointGone(EndpointId),
    /// The subscription's end of an offered link is open, or why it is not.
    Answered {
        /// Of this flow.
        flow: Flow,
        /// The number of the link.
        epoch: u32,
        /// The address of that end, in its transport's own form.
        address: Result<Vec<u8>, Refusal>,
    },
    /// What became of [`Action::Connect`].
    Opened {
        /// Of this flow.
        flow: Flow,
        /// Became of it.
        opened: Outcome,
    },
    /// What became of [`Action::EndTrial`]; `None` if there was no trial.
    TrialEnded {
        /// Of this flow.
        flow: Flow,
        /// What the link brings.
        connected: Option<Connected>,
    },
    /// The subscription has got something by a link on trial.
    Shown {
        /// Of this flow.
        flow: Flow,
        /// The number of the link.
        epoch: u32,
    },
    /// The subscription has all that came before a link.
    Done {
        /// Of this flow.
        flow: Flow,
        /// The number of the link.
        epoch: u32,
        /// The most samples that it held at one time.
        held: u64,
    },
    /// A link of a publisher does not do what it should.
    Trouble {
        /// The publisher.
        publisher: EndpointId,
        /// What is wrong.
        trouble: Trouble,
    },
    /// The link of a flow does not reach its end any more.
    ReaderLost {
        /// The flow.
        flow: Flow,
        /// The transport of that link.
        transport: TransportId,
    },
    /// The links of a publisher may not be the best any more, for example since its samples are of another size.
    PublisherDoubted {
        /// The publisher.
        publisher: EndpointId,
        /// What makes it so.
        why: String,
    },
    /// The link of a flow may not be the best any more.
    Doubted {
        /// The flow.
        flow: Flow,
        /// What makes it so.
        why: String,
    },
    /// A transport may have gone on with what it is opening.
    GoOn(TransportId),
    /// Readers of this publisher are about to go over to another engine, or have done so.
    EngineChanging(EndpointId),
    /// From now on this is the policy.
    PolicyChanged(Arc<Policy>),
    /// The user has set a topic's transport, or left it to the policy again.
    Pinned(Pin),
    /// Time has passed: what is due is done.
    Timeout,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Action {
    /// Offer a link to the process of the subscription, which [answers](Event::Answered).
    Offer {
        /// The flow.
        flow: Flow,
        /// The number of the link.
        epoch: u32,
        /// The flow has no other.
        is_first: bool,
        /// Its transport.
        transport: TransportId,
    },
    /// Open the subscription's end, which lives here. Outcome: [`Event::Answered`].
    OpenHere {
        /// The flow.
        flow: Flow,
        /// The number of the link.
        epoch: u32,
        /// Its transport.
        transport: TransportId,
    },
    /// Connect the publisher's end, or go on connecting it; of a foreign publisher the subscription's end. Outcome:
    /// [`Event::Opened`]. What is refused leaves nothing open at that end.
    Connect {
        /// The flow.
        flow: Flow,
        /// The transport of the link.
        transport: TransportId,
        /// How the other end is reached.
        reach: Reach,
        /// The link that it has does not do what it should, so nothing is to be waited for.
        is_urgent: bool,
    },
    /// Let the reader move over to the link that is on trial. Outcome: [`Event::TrialEnded`].
    EndTrial(Flow),
    /// Tell the subscription from where on a link carries.
    Cut {
        /// The flow.
        flow: Flow,
        /// The number of the link.
        epoch: u32,
        /// What the link brings.
        connected: Connected,
    },
    /// A link to or from a foreign node carries; nobody over there is told.
    Carries {
        /// The flow.
        flow: Flow,
        /// The number of the link.
        epoch: u32,
    },
    /// Tell the subscription that a link is not wanted after all.
    Withdraw {
        /// The flow.
        flow: Flow,
        /// The number of the link.
        epoch: u32,
    },
    /// Do not go on to reach the other end by this transport.
    Disconnect {
        /// The flow.
        flow: Flow,
        /// The transport of the link.
        transport: TransportId,
    },
    /// The flow has no link any more. Whoever waits for one is told.
    GiveUp(Flow),
    /// The publisher sends to this reader no more, which has gone.
    Leave(Flow),
    /// Tell the subscription that the flow is over, or begins anew.
    Close {
        /// The flow.
        flow: Flow,
        /// The number of its last link.
        epoch: u32,
    },
    /// The reader has all of the links that it has left.
    HasLeft(Flow),
    /// All readers of the publisher have been told that they have gone over to another engine.
    EngineChanged(EndpointId),
    /// Look again soon whether what was begun can be gone on with.
    Wake,
    /// Say it to whoever reads the log.
    Log(Note),
}

impl Action {
    /// Whether the owner tells what became of it before it asks for the next.
    pub fn wants_outcome(&self) -> bool {
        self.awaits_outcome_of().is_some()
    }

    fn awaits_outcome_of(&self) -> Option<Flow> {
        match self {
            Self::OpenHere { flow, .. } | Self::Connect { flow, .. } | Self::EndTrial(flow) => {
                Some(*flow)
            }
            _ => None,
        }
    }
}

/// Something to be told to people.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Note {
    /// A link is going to be opened.
    Chosen {
        /// The topic of the flow.
        topic: Arc<str>,
        /// The transport.
        transport: TransportId,
        /// Why this one.
        because: String,
    },
    /// A link could not be opened.
    NotOpened {
        /// Its transport.
        transport: TransportId,
        /// Why not.
        reason: String,
    },
    /// No transport can carry a flow.
    NoRoute {
        /// The topic of the flow.
        topic: Arc<str>,
        /// Why none can.
        why: String,
    },
    /// A flow has come over to another link, and has all of the one before.
    Changed {
        /// The topic of the flow.
        topic: Arc<str>,
        /// The transport before.
        from: TransportId,
        /// The transport since.
        to: TransportId,
        /// What set it off.
        why: String,
        /// How long it took to open.
        opening_ns: u64,
        /// How long the subscription took to get all of the link before.
        settling_ns: u64,
        /// The most samples that were held.
        held: u64,
    },
}

/// What is asked for when a decision needs it, as it is at that time.
pub trait View {
    /// What is known of a flow; `None` if one of its ends is not known.
    fn traits(&self, flow: Flow) -> Option<Traits>;

    /// The transports that are there for a flow, nearest first, whatever became of them before.
    fn offers(&self, flow: Flow) -> Vec<Offer>;

    /// Whether readers of this publisher are about to go over to another engine.
    fn is_changing_engine(&self, publisher: EndpointId) -> bool;
}

/// The flows that are decided in one process. See the [module](self).
#[derive(Debug, Default)]
pub struct Flows {
    /// The highest number of a link that ended flows had. Those of the same two ends count on from there, so that what is
    /// said late of one is not taken for the next.
    last_epoch: Epoch,
    /// By publisher, then by subscription.
    routes: BTreeMap<Flow, Route>,
    /// The same by subscription, then by publisher.
    by_subscription: BTreeSet<(EndpointId, EndpointId)>,
    /// Those whose links their transports are opening.
    opening: BTreeSet<Flow>,
    /// When each flow wants to be looked at.
    timeouts: BTreeSet<(u64, Flow)>,
    /// Flows that may belong into other places of the two tables above.
    touched: BTreeSet<Flow>,
    policy: Arc<Policy>,
    pins: Pins,
    engines: Option<WireEngines>,
    /// The flows of a publisher are being decided again.
    is_regrouping: bool,
    /// What is still to be thought about, in this order.
    work: VecDeque<Work>,
    /// What is to be done before that.
    actions: VecDeque<Action>,
    /// The flow whose outcome is awaited.
    awaited: Option<Flow>,
}

/// A step to be thought about.
#[derive(Clone, Debug)]
enum Work {
    Event(Event),
    /// Choose a link for a flow and begin to open it; then look at the other flows of the publisher.
    FindLink {
        flow: Flow,
        why: String,
    },
    /// The same without a look at the others.
    Decide {
        flow: Flow,
        why: String,
        /// What the publisher's end has done meanwhile is known.
        is_caught_up: bool,
    },
    Regroup(Flow),
    RegroupOne {
        flow: Flow,
        wish: TransportId,
        needs_first: bool,
    },
    EndRegroup,
    GoOn(Flow),
    LeaveBadLink {
        flow: Flow,
        trouble: Trouble,
        /// As in [`Self::Decide`].
        is_caught_up: bool,
    },
    Doubt(Flow, String),
    End(Flow),
    EndDueTrial(Flow),
    GiveUpLate {
        flow: Flow,
        /// As in [`Self::Decide`].
        is_caught_up: bool,
    },
    SettleDoubt(Flow),
    Retry(Flow),
}

impl Flows {
    /// No flows yet, under this policy. `engines` are named where two speak on one wire.
    pub fn new(policy: Arc<Policy>, engines: Option<WireEngines>) -> Self {
        Self { policy, engines, ..Self::default() }
    }

    /// Takes note of something that has happened.
    pub fn handle(&mut self, event: Event) {
        let may_be_outcome_of = match &event {
            Event::Answered { flow, .. }
            | Event::Opened { flow, .. }
            | Event::TrialEnded { flow, .. } => Some(*flow),
            _ => None,
        };
        if self.awaited.is_some() && self.awaited == may_be_outcome_of {
            // Whatever else waits is decided knowing it.
            self.awaited = None;
            self.work.push_front(Work::Event(event));
        } else {
            self.work.push_back(Work::Event(event));
        }
    }

    /// What is to be done next; `None` if nothing is, or if the outcome of the last action is still to be told.
    pub fn poll_action(&mut self, now: Now, view: &dyn View) -> Option<Action> {
        loop {
            if self.awaited.is_some() {
                return None;
            }
            if let Some(action) = self.actions.pop_front() {
                self.awaited = action.awaits_outcome_of();
                return Some(action);
            }
            let Some(work) = self.work.pop_front() else {
                self.index_touched();
                return None;
            };
            self.work_on(now, view, work);
        }
    }

    /// The outcome of the last action will never be told, since whoever was to do it has panicked.
    pub fn forget_outcome(&mut self) {
        self.awaited = None;
    }

    /// When [`Event::Timeout`] is due, on the monotonic clock. Ask when [`poll_action`](Self::poll_action) has answered nothing.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.timeouts.first().map(|(due_ns, _)| *due_ns)
    }

    /// What is known of a flow.
    pub fn get(&self, flow: Flow) -> Option<&Route> {
        self.routes.get(&flow)
    }

    /// All flows, in the order of their publishers.
    pub fn iter(&self) -> impl Iterator<Item = (Flow, &Route)> {
        self.routes.iter().map(|(flow, route)| (*flow, route))
    }

    /// The flows of a publisher.
    pub fn of_publisher(&self, publisher: EndpointId) -> impl Iterator<Item = (Flow, &Route)> {
        let first = Flow { publisher, subscription: [0; 16] };
        let last = Flow { publisher, subscription: [0xff; 16] };
        self.routes.range(first..=last).map(|(flow, route)| (*flow, route))
    }

    /// The flows to and from an endpoint.
    pub fn of_endpoint(&self, endpoint: EndpointId) -> impl Iterator<Item = Flow> {
        let to = self.by_subscription.range((endpoint, [0; 16])..=(endpoint, [0xff; 16]));
        let to = to.map(|(subscription, publisher)| Flow {
            publisher: *publisher,
            subscription: *subscription,
        });
        self.of_publisher(endpoint).map(|(flow, _)| flow).chain(to)
    }

    fn work_on(&mut self, now: Now, view: &dyn View, work: Work) {
        let Some(work) = self.caught_up(view, work) else { return };
        match work {
            Work::Event(event) => self.on_event(now, event),
            Work::FindLink { flow, why } => {
                self.next([Work::decide(flow, why), Work::Regroup(flow)]);
            }
            Work::Decide { flow, why, .. } => self.decide(now, view, flow, why),
            Work::Regroup(flow) => self.regroup(view, flow),
            Work::RegroupOne { flow, wish, needs_first } => {
                self.regroup_one(now, view, flow, wish, needs_first);
            }
            Work::EndRegroup => self.is_regrouping = false,
            Work::GoOn(flow) => self.go_on(flow),
            Work::LeaveBadLink { flow, trouble, .. } => self.leave_bad_link(now, flow, trouble),
            Work::Doubt(flow, why) => self.doubt(now, flow, why),
            Work::End(flow) => self.end_flow(flow),
            Work::EndDueTrial(flow) => self.end_due_trial(now, flow),
            Work::GiveUpLate { flow, .. } => self.give_up_late(now, flow),
            Work::SettleDoubt(flow) => self.settle_doubt(now, flow),
            Work::Retry(flow) => self.retry(now, flow),
        }
    }

    /// The work, where all is known that it depends on. Where the publisher's end may have come over to another engine with others,
    /// of which nothing is known here yet, that is asked first, and the work is left for after what comes of it.
    fn caught_up(&mut self, view: &dyn View, mut work: Work) -> Option<Work> {
        let (Work::Decide { flow, is_caught_up, .. }
        | Work::LeaveBadLink { flow, is_caught_up, .. }
        | Work::GiveUpLate { flow, is_caught_up }) = &mut work
        else {
            return Some(work);
        };
        let flow = *flow;
        if std::mem::replace(is_caught_up, true) || !self.may_have_come_over(view, flow) {
            return Some(work);
        }
        self.work.push_front(work);
        self.connect(flow, Reach::ToForeign);
        None
    }

    fn on_event(&mut self, now: Now, event: Event) {
        match event {
            // They may have met again while that was told.
            Event::Matched { flow, .. } | Event::Mismatched { flow, .. }
                if self.routes.contains_key(&flow) => {}
            Event::Matched { flow, topic, ends } => {
                self.add(flow, Route::new(topic, ends, now));
                self.find_link(flow, "the two ends have met");
            }
            Event::Mismatched { flow, topic, ends, mismatches } => {
                let because = format!("incompatible: {}", mismatches.join("; "));
                let decision = Decision { transport: None, because, rejected: Vec::new() };
                self.add(
                    flow,
                    Route {
                        state: RouteState::Incompatible,
                        decision: Some(decision),
                        mismatches,
                        ..Route::new(topic, ends, now)
                    },
                );
            }
            Event::Unmatched(flow) => drop(self.remove(flow)),
            Event::Ended(flow) => self.end_flow(flow),
            Event::EndpointGone(endpoint) => {
                let ended = self.of_endpoint(endpoint).map(Work::End);
                self.next(ended.collect::<Vec<_>>());
            }
            Event::Answered { flow, epoch, address } => self.answered(flow, epoch, address),
            Event::Opened { flow, opened } => self.opened(now, flow, opened),
            Event::TrialEnded { flow, connected } => self.trial_ended(now, flow, connected),
            Event::Shown { flow, epoch } => {
                let route = self.routes.get(&flow);
                if route.is_some_and(|it| it.handover.opening_epoch() == Some(Epoch(epoch))) {
                    self.end_trial(flow);
                }
            }
            Event::Done { flow, epoch, held } => self.done(now, flow, epoch, held),
            Event::Trouble { publisher, trouble } => {
                let flows = self.of_publisher(publisher);
                let left = flows.map(|(flow, _)| Work::leave_bad_link(flow, trouble.clone()));
                self.next(left.collect::<Vec<_>>());
            }
            Event::ReaderLost { flow, transport } => {
                let reason = "the other end is not reached any more".to_owned();
                let trouble = Trouble { id: transport, reason, is_broken: true };
                self.next([Work::leave_bad_link(flow, trouble)]);
            }
            Event::PublisherDoubted { publisher, why } => {
                let flows = self.of_publisher(publisher);
                let doubted = flows.map(|(flow, _)| Work::Doubt(flow, why.clone()));
                self.next(doubted.collect::<Vec<_>>());
            }
            Event::Doubted { flow, why } => self.doubt(now, flow, why),
            Event::GoOn(transport) => {
                let is_its = |it: &&Flow| {
                    let route = self.routes.get(it);
                    route.is_some_and(|it| it.handover.opening() == Some(&transport))
                };
                let opening = self.opening.iter().filter(is_its).copied().map(Work::GoOn);
                self.next(opening.collect::<Vec<_>>());
            }
            Event::EngineChanging(publisher) => self.engine_changing(publisher),
            Event::PolicyChanged(policy) => {
                self.policy = policy;
                self.pins.forget_policies();
                self.decide_again(None, "the policy file has changed");
            }
            Event::Pinned(pin) => self.pinned(pin),
            Event::Timeout => self.time_out(now),
        }
    }

    /// Does this next, before anything else that waits.
    fn next(&mut self, works: impl IntoIterator<Item = Work, IntoIter: DoubleEndedIterator>) {
        for work in works.into_iter().rev() {
            self.work.push_front(work);
        }
    }

    fn find_link(&mut self, flow: Flow, why: impl Into<String>) {
        self.next([Work::FindLink { flow, why: why.into() }]);
    }

    fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    fn add(&mut self, flow: Flow, mut route: Route) {
        route.handover = WriterHandover::following(self.last_epoch);
        route.last_epoch_before = self.last_epoch.0;
        self.by_subscription.insert((flow.subscription, flow.publisher));
        self.routes.insert(flow, route);
        self.touched.insert(flow);
    }

    fn remove(&mut self, flow: Flow) -> Option<Route> {
        let route = self.routes.remove(&flow)?;
        self.last_epoch = self.last_epoch.max(route.handover.last());
        self.by_subscription.remove(&(flow.subscription, flow.publisher));
        self.opening.remove(&flow);
        if let Some(due_ns) = route.timeout_ns {
            self.timeouts.remove(&(due_ns, flow));
        }
        Some(route)
    }

    /// What is known of a flow, to be changed.
    fn route(&mut self, flow: Flow) -> Option<&mut Route> {
        let route = self.routes.get_mut(&flow)?;
        self.touched.insert(flow);
        Some(route)
    }

    /// Puts flows that were changed into their places.
    fn index_touched(&mut self) {
        for flow in std::mem::take(&mut self.touched) {
            let Some(route) = self.routes.get_mut(&flow) else { continue };
            match route.progress() {
                Some(_) => self.opening.insert(flow),
                None => self.opening.remove(&flow),
            };
            let due_ns = route.due_ns();
            let before_ns = std::mem::replace(&mut route.timeout_ns, due_ns);
            if before_ns != due_ns {
                before_ns.map(|it| self.timeouts.remove(&(it, flow)));
                due_ns.map(|it| self.timeouts.insert((it, flow)));
            }
        }
    }

    fn time_out(&mut self, now: Now) {
        let due = self.timeouts.iter().take_while(|(due_ns, _)| *due_ns <= now.monotonic_ns);
        let due: Vec<Flow> = due.map(|(_, flow)| *flow).collect();
        // Each is looked at once for each of these, and is put into its place again afterwards.
        let works = due.into_iter().flat_map(|flow| {
            self.touched.insert(flow);
            [
                Work::EndDueTrial(flow),
                Work::GiveUpLate { flow, is_caught_up: false },
                Work::SettleDoubt(flow),
                Work::Retry(flow),
            ]
        });
        let works: Vec<Work> = works.collect();
        self.next(works);
    }

    /// The flow is over.
    fn end_flow(&mut self, flow: Flow) {
        let Some(route) = self.remove(flow) else { return };
        let epoch = route.handover.last().0;
        if route.ends.way != Way::FromForeign {
            if let Some(id) = route.handover.opening() {
                self.act(Action::Disconnect { flow, transport: id.clone() });
            }
            if route.handover.current().is_some() {
                self.act(Action::Leave(flow));
            }
            self.next([Work::Regroup(flow)]);
        }
        self.act(Action::Close { flow, epoch });
    }
}

impl Work {
    fn decide(flow: Flow, why: impl Into<String>) -> Self {
        Self::Decide { flow, why: why.into(), is_caught_up: false }
    }

    fn leave_bad_link(flow: Flow, trouble: Trouble) -> Self {
        Self::LeaveBadLink { flow, trouble, is_caught_up: false }
    }
}

/// How long a transport may take to reach the other end of a flow.
const OPENING_MAX: Duration = Duration::from_secs(5);
/// The same while nothing goes to it, nor to others.
const OPENING_MAX_BROKEN: Duration = Duration::from_secs(1);
