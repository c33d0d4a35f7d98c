//! When the link of a flow is decided again, and what becomes of that.

use std::time::Duration;

use super::engines::restrict_second_engine;
use super::route::{Opening, Progress, shown};
use super::{
    Action, Decision, Ends, Flow, Flows, Note, Now, Reach, Refusal, Role, RouteState, Trouble,
    View, Way, Work,
};
use crate::handover::{Begun, Epoch};
use crate::pacing::{Backoff, after};
use crate::{Choice, Health, NoRoute, Offer, Reason, TransportId, select};

impl Flows {
    /// Chooses a link for a flow, and begins to open it beside the one it has.
    pub(super) fn decide(&mut self, now: Now, view: &dyn View, flow: Flow, why: String) {
        let Some(route) = self.routes.get(&flow) else { return };
        let (topic, way) = (route.topic.clone(), route.ends.way);
        let Some(traits) = view.traits(flow) else { return };
        let offers = self.offers_together(view, flow);
        let policy = self.pins.policy(&self.policy, &topic);
        let chosen = select(&traits, &policy, &topic, &offers);
        let Some(route) = self.route(flow) else { return };
        route.doubt = None;
        let choice = match chosen {
            Ok(choice) => choice,
            Err(none) => return self.has_no_link(now, flow, &none),
        };
        let (id, has_run_out) = (choice.transport.clone(), has_run_out(&choice));
        self.plan_return(now, flow, &id, has_run_out);
        let Some(route) = self.route(flow) else { return };
        if route.is_broken_on(&id) {
            // The same transport anew.
            self.lose_link(flow);
        }
        let Some(route) = self.route(flow) else { return };
        let decision = Decision::of(&choice);
        match route.handover.begin(id.clone()) {
            Begun::Stands { withdrawn } => {
                route.decision = Some(decision);
                self.withdraw(flow, withdrawn);
            }
            Begun::UnderWay => {
                if let Some(opening) = &mut route.opening {
                    opening.decision = decision;
                    opening.has_run_out = has_run_out;
                }
                if route.is_bad() {
                    self.end_trial(flow);
                }
            }
            Begun::NotYet if route.is_broken => {
                // Nothing is left to be waited for: it begins anew.
                self.lose_link(flow);
                self.next([Work::decide(flow, why)]);
            }
            Begun::NotYet => route.wanted = Some(why),
            Begun::Offer { epoch, withdrawn } => {
                let is_first = route.handover.current().is_none();
                let because = decision.because.clone();
                self.act(Action::Log(Note::Chosen { topic, transport: id.clone(), because }));
                self.withdraw(flow, withdrawn);
                self.begin_link(now, flow, decision, has_run_out, why);
                let (epoch, transport) = (epoch.0, id);
                match way {
                    Way::FromForeign => self.connect(flow, Reach::FromForeign),
                    Way::ToForeign => self.connect(flow, Reach::ToForeign),
                    Way::Peer => self.act(Action::Offer { flow, epoch, is_first, transport }),
                    Way::Here => self.act(Action::OpenHere { flow, epoch, transport }),
                }
            }
        }
    }

    /// Takes note of a link that is to be opened.
    fn begin_link(
        &mut self,
        now: Now,
        flow: Flow,
        decision: Decision,
        has_run_out: bool,
        why: String,
    ) {
        let Some(route) = self.route(flow) else { return };
        if route.handover.current().is_none() {
            route.state = RouteState::Opening;
            route.since_wall_ns = now.wall_ns;
            route.decision = Some(decision.clone());
        }
        let since_ns = now.monotonic_ns;
        route.opening = Some(Opening {
            decision,
            progress: None,
            is_under_way: false,
            since_ns,
            why,
            has_run_out,
        });
    }

    /// The transports for a flow, and what became of them for it before.
    pub(super) fn offers(&self, view: &dyn View, flow: Flow) -> Vec<Offer> {
        let mut offers = view.offers(flow);
        let excluded = self.routes.get(&flow).map_or(&[][..], |route| &route.excluded);
        // What one has run out of it says itself.
        let open = offers.iter_mut().filter(|it| !matches!(it.health, Health::Exhausted(_)));
        for offer in open {
            let refused = excluded.iter().find(|(it, _)| *it == offer.transport);
            if let Some((_, Refusal { reason, is_passing })) = refused {
                let health = if *is_passing { Health::Exhausted } else { Health::Failed };
                offer.health = health(reason.as_str().into());
            }
        }
        offers
    }

    /// Where something better than this has run out, it is asked for again later, ever more rarely while it comes
    /// and goes.
    fn plan_return(&mut self, now: Now, flow: Flow, id: &TransportId, is_passing: bool) {
        let Some(route) = self.route(flow) else { return };
        let is_calm = after(route.changed_ns, CALM) <= now.monotonic_ns;
        if is_passing {
            self.retry_later(now, flow);
        } else if is_calm && route.handover.current() == Some(id) {
            // One that is asked for anew may still refuse.
            route.retry = None;
        }
    }

    fn has_no_link(&mut self, now: Now, flow: Flow, none: &NoRoute) {
        let Some(route) = self.route(flow) else { return };
        let is_passing = none.rejected.iter().any(|(_, it)| matches!(it, Reason::Exhausted { .. }));
        let current = route.handover.current();
        let is_exhausted = |(id, reason): &(TransportId, Reason)| {
            Some(id) == current && matches!(reason, Reason::Exhausted { .. })
        };
        if !route.is_broken && none.rejected.iter().any(is_exhausted) {
            // It still carries what it can.
            if let Some(opening) = &mut route.opening {
                opening.has_run_out = true;
            }
            return self.retry_later(now, flow);
        }
        if route.patient_until_ns.is_some_and(|until_ns| now.monotonic_ns < until_ns) {
            // Whoever publishes waits.
            return;
        }
        let note = Note::NoRoute { topic: route.topic.clone(), why: none.to_string() };
        if route.retry.is_none() {
            self.act(Action::Log(note));
        }
        self.lose_link(flow);
        let Some(route) = self.route(flow) else { return };
        route.state = RouteState::NoRoute;
        route.since_wall_ns = now.wall_ns;
        route.decision = Some(Decision {
            transport: None,
            because: none.to_string(),
            rejected: shown(&none.rejected),
        });
        if is_passing {
            self.retry_later(now, flow);
        }
    }

    /// The flow has no link any more.
    pub(super) fn lose_link(&mut self, flow: Flow) {
        let Some(route) = self.route(flow) else { return };
        let withdrawn = route.handover.withdraw();
        let had_link = route.handover.current().is_some();
        let epoch = route.handover.last().0;
        self.withdraw(flow, withdrawn);
        let Some(route) = self.route(flow) else { return };
        route.handover.end();
        route.is_broken = false;
        route.patient_until_ns = None;
        if had_link {
            self.act(Action::GiveUp(flow));
            self.act(Action::Close { flow, epoch });
        }
    }

    /// A link that was being opened is not wanted any more.
    pub(super) fn withdraw(&mut self, flow: Flow, withdrawn: Option<Epoch>) {
        let Some(Epoch(epoch)) = withdrawn else { return };
        let Some(route) = self.route(flow) else { return };
        let transport = route.opening.take().and_then(|it| it.decision.transport);
        // What a foreign publisher sends the subscription's end gives back by itself.
        let transport = transport.filter(|_| route.ends.way != Way::FromForeign);
        if let Some(transport) = transport {
            self.act(Action::Disconnect { flow, transport });
        }
        self.act(Action::Withdraw { flow, epoch });
    }

    /// A transport is not to be had for a flow: another is looked for.
    pub(super) fn exclude(&mut self, flow: Flow, id: TransportId, refusal: Refusal) {
        let Some(route) = self.route(flow) else { return };
        let note = Note::NotOpened { transport: id.clone(), reason: refusal.reason.clone() };
        let is_known = route.retry.is_some();
        if route.handover.opening() == Some(&id) {
            route.handover.withdraw();
        }
        let why = route.opening.take().map_or_else(|| NOT_TO_BE_HAD.to_owned(), |it| it.why);
        route.excluded.push((id, refusal));
        if !is_known {
            self.act(Action::Log(note));
        }
        self.find_link(flow, why);
    }

    /// A link does not do what it should: another is looked for.
    pub(super) fn leave_bad_link(&mut self, now: Now, flow: Flow, trouble: Trouble) {
        let Some(route) = self.routes.get(&flow) else { return };
        let Trouble { id, reason, is_broken } = trouble;
        if route.handover.opening() == Some(&id) {
            let epoch = route.handover.last().0;
            self.act(Action::Disconnect { flow, transport: id.clone() });
            self.act(Action::Withdraw { flow, epoch });
            return self.exclude(flow, id, Refusal::passing(reason));
        }
        if route.handover.current() != Some(&id) {
            return;
        }
        let Some(route) = self.route(flow) else { return };
        if is_broken && !std::mem::replace(&mut route.is_broken, true) {
            route.patient_until_ns = Some(after(now.monotonic_ns, PATIENCE));
        }
        let is_known = route.excluded.iter().any(|(it, _)| *it == id);
        if !is_known {
            route.excluded.push((id.clone(), Refusal::passing(reason.clone())));
        }
        if !is_known || is_broken {
            self.find_link(flow, format!("{id}: {reason}"));
        }
    }

    /// The link of a flow may not be the best any more. It is decided again, but not too soon after the
    /// last change.
    pub(super) fn doubt(&mut self, now: Now, flow: Flow, why: String) {
        let has_engines = self.engines.is_some();
        let Some(route) = self.route(flow) else { return };
        if keeps_its_wire(&route.ends, has_engines) {
            return;
        }
        let due_ns = match route.state {
            RouteState::Incompatible => return,
            RouteState::NoRoute => now.monotonic_ns,
            // What it is being opened for may be outdated when that is done.
            RouteState::Opening => after(now.monotonic_ns, DWELL),
            RouteState::Active => after(route.changed_ns, DWELL),
        };
        if due_ns <= now.monotonic_ns {
            return self.find_link(flow, why);
        }
        route.doubt = Some((why, due_ns));
    }

    /// Decides again where the time for it has come.
    pub(super) fn settle_doubt(&mut self, now: Now, flow: Flow) {
        let Some(route) = self.route(flow) else { return };
        let is_over = |until_ns: &mut u64| *until_ns <= now.monotonic_ns;
        if route.patient_until_ns.take_if(is_over).is_some() && route.is_broken {
            return self.find_link(flow, "its link has failed");
        }
        if let Some((why, _)) = route.doubt.take_if(|(_, due_ns)| *due_ns <= now.monotonic_ns) {
            self.find_link(flow, why);
        }
    }

    /// Decides again about all flows of a topic, or of all, at once.
    pub(super) fn decide_again(&mut self, topic: Option<&str>, why: &str) {
        let flows: Vec<Flow> = self.flows_of(topic).collect();
        for flow in &flows {
            if let Some(route) = self.route(*flow) {
                // What was not to be had may be now.
                route.excluded.retain(|(_, refusal)| !refusal.is_passing);
            }
        }
        self.next(flows.into_iter().map(|flow| Work::FindLink { flow, why: why.to_owned() }));
    }

    /// The flows of a topic, or all, whose links can change.
    pub(super) fn flows_of(&self, topic: Option<&str>) -> impl Iterator<Item = Flow> {
        let flows = self.routes.iter().filter(move |(_, route)| {
            route.state != RouteState::Incompatible
                && topic.is_none_or(|topic| *route.topic == *topic)
                // What has no wire yet keeps none.
                && (route.state == RouteState::NoRoute
                    || !keeps_its_wire(&route.ends, self.engines.is_some()))
        });
        flows.map(|(flow, _)| *flow)
    }

    /// Something had run out that may be there again.
    pub(super) fn retry(&mut self, now: Now, flow: Flow) {
        let Some(route) = self.route(flow) else { return };
        let Some(retry) = route.retry.as_mut().filter(|it| it.is_due(now.monotonic_ns)) else {
            return;
        };
        retry.tried();
        if route.opening.is_some() {
            // That first.
            return self.retry_later(now, flow);
        }
        route.excluded.retain(|(_, refusal)| !refusal.is_passing);
        self.find_link(flow, "what had run out may be there again");
    }

    /// Something has run out, so that a flow has no route: there may be more of it later.
    fn retry_later(&mut self, now: Now, flow: Flow) {
        let Some(route) = self.route(flow) else { return };
        let retry = route.retry.get_or_insert_with(|| Backoff::new(RETRY_FIRST, RETRY_LAST));
        if retry.due_ns().is_none() {
            retry.later(now.monotonic_ns);
        }
    }

    /// Whether the publisher's end may have come over to another engine, of which nothing is known here yet.
    pub(super) fn may_have_come_over(&self, view: &dyn View, flow: Flow) -> bool {
        let progress = self.progress_of(flow);
        self.engines.is_some()
            && progress == Some(&Progress::Reaching(Reach::ToForeign))
            && view.is_changing_engine(flow.publisher)
    }

    /// The offers for a flow, as far as its publisher can send by them beside its other flows.
    fn offers_together(&self, view: &dyn View, flow: Flow) -> Vec<Offer> {
        let offers = self.offers(view, flow);
        match &self.engines {
            None => offers,
            Some(engines) => {
                let others_need_first = || self.others_need_first(view, flow, &engines.first);
                let ends = self.routes.get(&flow).map(|it| it.ends);
                restrict_second_engine(offers, ends, engines, others_need_first)
            }
        }
    }
}

/// Whether one of its ends is a foreign node's, and nothing else could carry it.
fn keeps_its_wire(ends: &Ends, has_engines: bool) -> bool {
    match ends.way {
        Way::Here | Way::Peer => false,
        Way::ToForeign => !has_engines || ends.role != Role::Topic,
        Way::FromForeign => true,
    }
}

/// Whether a transport was left out that has run out of something.
fn has_run_out(choice: &Choice) -> bool {
    choice.rejected.iter().any(|(_, reason)| matches!(reason, Reason::Exhausted { .. }))
}

/// How long a flow keeps a link at least, if nothing is wrong with it.
const DWELL: Duration = Duration::from_secs(1);
/// How long a link that has failed is kept when there is no other. Less than a publisher waits for room.
const PATIENCE: Duration = Duration::from_millis(50);
/// A flow that has kept its link so long starts from new with what it may try again.
const CALM: Duration = Duration::from_secs(30);
/// What set a decision off that nobody else did.
const NOT_TO_BE_HAD: &str = "a link was not to be had";
/// How soon a flow without a route is decided again.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(10);
