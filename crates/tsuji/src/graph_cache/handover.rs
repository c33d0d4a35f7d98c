//! When the link of a flow is decided again, and how it comes to another.

use std::time::Duration;

use tsuji_core::handover::{Begun, Epoch};
use tsuji_core::{Choice, NoRoute, Reason, TransportId, select};
use tsuji_platform::clock;
use tsuji_transport::Gid;
use tsuji_transport::deferred::told;

use super::route::shown;
use super::{Decision, GraphCache, HalfOpen, Opening};
use crate::control::protocol::{Control, Flow, Refusal};
use crate::graph::{Role, RouteChange, RouteState};
use crate::pacing::after;
use crate::publisher_core::Trouble;
use crate::session::Session;

impl GraphCache {
    /// Chooses a link for a flow that is decided here, and begins to open it beside the one it has.
    pub(super) fn find_link(&mut self, session: &Session, flow: Flow, why: &str) {
        self.decide(session, flow, why);
        self.regroup(session, flow);
    }

    /// The same, without a look at the other flows of the publisher.
    pub(super) fn decide(&mut self, session: &Session, flow: Flow, why: &str) {
        self.catch_up(session, flow);
        let ends = self.endpoints.get(&Gid(flow.publisher));
        let ends = ends.zip(self.endpoints.get(&Gid(flow.subscription)));
        let Some((offering, asking)) = ends else { return };
        let (sender, peer) = (offering.peer, asking.peer);
        let topic = offering.record.topic.clone();
        let Some(traits) = self.traits(session, flow) else { return };
        let offers = self.offers_together(session, flow);
        let policy = self.pins.policy(&session.policy(), &topic);
        let chosen = select(&traits, &policy, &topic, &offers);
        let Some(route) = self.flows.get_mut(&flow) else { return };
        route.doubt = None;
        let choice = match chosen {
            Ok(choice) => choice,
            Err(none) => return self.has_no_link(session, flow, &topic, &none),
        };
        let id = choice.transport.clone();
        self.plan_return(session, flow, has_run_out(&choice));
        if self.is_broken_on(flow, &id) {
            // The same transport anew.
            self.lose_link(session, flow);
        }
        let Some(route) = self.flows.get_mut(&flow) else { return };
        match route.handover.begin(id.clone()) {
            Begun::Stands { withdrawn } => {
                route.choice = Some(Decision::of(&choice));
                self.withdraw(session, flow, withdrawn);
            }
            Begun::UnderWay => {
                if let Some(opening) = &mut route.opening {
                    opening.decision = Decision::of(&choice);
                }
                if route.is_bad() {
                    self.end_trial(session, flow);
                }
            }
            Begun::NotYet if route.is_broken => {
                // Nothing is left to be waited for: it begins anew.
                self.lose_link(session, flow);
                self.decide(session, flow, why);
            }
            Begun::NotYet => route.wanted = Some(why.to_owned()),
            Begun::Offer { epoch, withdrawn } => {
                told::debug!(topic, transport = %id, because = %choice.because, "route");
                self.withdraw(session, flow, withdrawn);
                self.begin_link(flow, &choice, why);
                if self.foreign.is_foreign(sender) {
                    self.open_from_foreign(session, flow, &id);
                } else if self.foreign.is_foreign(peer) {
                    self.open_to_foreign(session, flow, &id);
                } else if peer != session.id {
                    let is_first = self.current(flow).is_none();
                    if let Some(transport) = session.transport(id.as_str()) {
                        self.meet_on_wire(&**transport, peer);
                    }
                    let (epoch, transport) = (epoch.0, id.to_string());
                    self.channels.send(peer, &Control::Offer { flow, epoch, is_first, transport });
                } else {
                    self.open_here(session, flow, epoch, &id);
                }
            }
        }
    }

    /// Takes note of a link that is to be opened.
    fn begin_link(&mut self, flow: Flow, choice: &Choice, why: &str) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let decision = Decision::of(choice);
        if route.handover.current().is_none() {
            route.state = RouteState::Opening;
            route.since_wall_ns = clock::wall_ns();
            route.choice = Some(Decision::of(choice));
        }
        let since_ns = clock::monotonic_ns();
        let has_run_out = has_run_out(choice);
        let why = why.to_owned();
        route.opening = Some(Opening { decision, half: None, since_ns, why, has_run_out });
    }

    /// Opens a link both of whose ends are here.
    fn open_here(&mut self, session: &Session, flow: Flow, epoch: Epoch, id: &TransportId) {
        let accepted = self.meet_self(session, id);
        match accepted.and_then(|()| self.accept(session, session.id, flow, epoch, id.as_str())) {
            Ok(address) => self.open_end(session, flow, id, address),
            Err(refusal) => {
                self.give_back(session, flow, epoch.0);
                self.exclude_and_try_again(session, flow, id.clone(), refusal);
            }
        }
    }

    /// Where something better has run out, it is asked for again later, ever more rarely while it comes
    /// and goes.
    fn plan_return(&mut self, session: &Session, flow: Flow, is_passing: bool) {
        let Some(route) = self.flows.get(&flow) else { return };
        let is_calm = after(route.changed_ns, CALM) <= clock::monotonic_ns();
        if is_passing && self.retries.get(&flow).is_none_or(|it| it.due_ns().is_none()) {
            self.retry_later(session, flow);
        } else if !is_passing && is_calm {
            self.retries.remove(&flow);
        }
    }

    fn has_no_link(&mut self, session: &Session, flow: Flow, topic: &str, none: &NoRoute) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let is_passing = none.rejected.iter().any(|(_, it)| matches!(it, Reason::Exhausted { .. }));
        let join_state = route.handover.current();
        let is_tired = |(id, reason): &(TransportId, Reason)| {
            Some(id) == join_state && matches!(reason, Reason::Exhausted { .. })
        };
        if !route.is_broken && none.rejected.iter().any(is_tired) {
            // It still carries what it can.
            return self.retry_later(session, flow);
        }
        if route.patient_until_ns.is_some_and(|until_ns| clock::monotonic_ns() < until_ns) {
            // Whoever publishes waits.
            return;
        }
        if !self.retries.contains_key(&flow) {
            told::warn!(topic, "{none}");
        }
        self.lose_link(session, flow);
        let Some(route) = self.flows.get_mut(&flow) else { return };
        route.state = RouteState::NoRoute;
        route.since_wall_ns = clock::wall_ns();
        route.choice = Some(Decision {
            transport: None,
            because: none.to_string(),
            rejected: shown(&none.rejected),
        });
        if is_passing {
            self.retry_later(session, flow);
        }
    }

    /// The flow has no link any more.
    fn lose_link(&mut self, session: &Session, flow: Flow) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let withdrawn = route.handover.withdraw();
        let had_link = route.handover.current().is_some();
        let epoch = route.handover.last();
        self.withdraw(session, flow, withdrawn);
        if let Some(route) = self.flows.get_mut(&flow) {
            route.handover.end();
            route.is_broken = false;
            route.patient_until_ns = None;
        }
        if !had_link {
            return;
        }
        if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
            publisher_core.give_up(Gid(flow.subscription));
            publisher_core.tell_matched();
        }
        self.close_remote_end(session, flow, epoch.0);
    }

    /// A link that was being opened is not wanted any more.
    fn withdraw(&mut self, session: &Session, flow: Flow, withdrawn: Option<Epoch>) {
        let Some(epoch) = withdrawn else { return };
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let opening = route.opening.take();
        let publisher_core = self.publisher_cores.get(&Gid(flow.publisher));
        let id = opening.and_then(|it| it.decision.transport);
        if let Some((publisher_core, id)) = publisher_core.zip(id) {
            publisher_core.disconnect_from(&id, Gid(flow.subscription));
        }
        self.give_back(session, flow, epoch.0);
    }

    /// The subscription's end of a link that carries nothing yet is not needed.
    pub(super) fn give_back(&mut self, session: &Session, flow: Flow, epoch: u32) {
        self.say(session, flow.subscription, Control::Withdrawn { flow, epoch });
    }

    /// A link that was opened here is not wanted after all.
    pub(super) fn withdrawn(&mut self, flow: Flow, epoch: u32) {
        if let Some(subscription_core) = self.subscription_cores.get(&Gid(flow.subscription)) {
            subscription_core.withdraw(Gid(flow.publisher), Epoch(epoch));
        }
    }

    /// The link that was being opened carries. `published_before` is told of the first.
    pub(super) fn carried(&mut self, flow: Flow, published_before: Option<u64>) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let Some(epoch) = route.handover.opening_epoch() else { return };
        let from = route.handover.current().map(ToString::to_string);
        route.handover.carry(epoch);
        let Some(opening) = route.opening.take() else { return };
        let now_ns = clock::monotonic_ns();
        route.state = RouteState::Active;
        route.is_broken = false;
        route.patient_until_ns = None;
        route.changed_ns = now_ns;
        route.since_wall_ns = clock::wall_ns();
        route.published_before = published_before.or(route.published_before);
        let change = RouteChange {
            wall_ns: route.since_wall_ns,
            epoch: epoch.0,
            is_settled: from.is_none(),
            from,
            to: opening.decision.transport.as_ref().map(ToString::to_string).unwrap_or_default(),
            why: opening.why,
            because: opening.decision.because.clone(),
            opening_us: now_ns.saturating_sub(opening.since_ns) as f64 / 1e3,
            settling_us: 0.0,
            held: 0,
        };
        route.note(change);
        route.choice = Some(opening.decision);
        let has_run_out = opening.has_run_out || !route.excluded.is_empty();
        if let Some(retry) = self.retries.get_mut(&flow)
            && !has_run_out
        {
            retry.tried();
        }
    }

    /// Something has come by the link of this epoch, which is to carry from here on.
    pub(super) fn shown(&mut self, session: &Session, flow: Flow, epoch: u32) {
        let route = self.flows.get(&flow);
        if route.is_some_and(|it| it.handover.opening_epoch() == Some(Epoch(epoch))) {
            self.end_trial(session, flow);
        }
    }

    /// The link that is on trial is to carry, whether it has shown that it does or not.
    fn end_trial(&mut self, session: &Session, flow: Flow) {
        let half = self.flows.get(&flow).and_then(|it| it.opening.as_ref()?.half.as_ref());
        let Some(HalfOpen::OnTrial { .. }) = half else { return };
        let publisher_core = self.publisher_cores.get(&Gid(flow.publisher));
        let connected = publisher_core.and_then(|it| it.end_trial(Gid(flow.subscription)));
        if let Some(connected) = connected {
            self.carried(flow, None);
            self.tell_cut(session, flow, connected);
        }
    }

    /// Ends the trials that have lasted long enough.
    pub(super) fn end_trials(&mut self, session: &Session, now_ns: u64) {
        let is_due =
            |route: &super::Route| match route.opening.as_ref().and_then(|it| it.half.as_ref()) {
                Some(HalfOpen::OnTrial { until_ns }) => *until_ns <= now_ns,
                _ => false,
            };
        let due = self.flows.iter().filter(|(_, route)| is_due(route)).map(|(flow, _)| *flow);
        for flow in due.collect::<Vec<_>>() {
            self.end_trial(session, flow);
        }
    }

    /// The subscription has all that came before this link.
    pub(super) fn done(&mut self, session: &Session, flow: Flow, epoch: u32, held: u64) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        route.handover.done(Epoch(epoch));
        let has_left_all = route.handover.is_settled();
        let now_ns = clock::monotonic_ns();
        let settling_us = now_ns.saturating_sub(route.changed_ns) as f64 / 1e3;
        for change in route.changes.iter_mut().filter(|it| it.epoch <= epoch && !it.is_settled) {
            (change.is_settled, change.held, change.settling_us) = (true, held, settling_us);
            let topic = self.endpoints.get(&Gid(flow.publisher)).map(|it| &*it.record.topic);
            told::info!(
                topic = topic.unwrap_or_default(),
                from = change.from.as_deref().unwrap_or_default(),
                to = change.to,
                why = change.why,
                took_us = change.opening_us.round() as u64,
                settled_us = settling_us.round() as u64,
                held,
                "route changed"
            );
        }
        let wanted = route.wanted.take();
        if has_left_all && let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher))
        {
            publisher_core.has_left(Gid(flow.subscription));
        }
        if let Some(why) = wanted {
            self.find_link(session, flow, &why);
        }
    }

    /// Does what publishers and subscriptions of this process have come upon.
    pub(crate) fn mend(&mut self, session: &Session) {
        let news =
            self.publisher_cores.iter().filter_map(|(gid, it)| Some((*gid, it.take_news()?)));
        for (publisher, news) in news.collect::<Vec<_>>() {
            let flows = self.flows.keys().filter(|flow| flow.publisher == publisher.0);
            for flow in flows.copied().collect::<Vec<_>>() {
                for trouble in &news.troubles {
                    self.leave_bad_link(session, flow, trouble);
                }
                if let Some(why) = news.doubt {
                    self.doubt(session, flow, why);
                }
            }
        }
        self.go_on_changing_engines(session);
        let news = self.subscription_cores.values();
        let news = news.filter_map(|it| Some((it.gid, it.take_handover_events()?)));
        for (subscription, news) in news.collect::<Vec<_>>() {
            for (writer, epoch) in news.shown {
                let (flow, epoch) = (Flow::new(writer, subscription), epoch.0);
                self.say(session, flow.publisher, Control::Shown { flow, epoch });
            }
            for (writer, total) in news.displaced {
                let flow = Flow::new(writer, subscription);
                self.say(session, flow.publisher, Control::Displaced { flow, total });
            }
            for finished in news.finished {
                let flow = Flow::new(finished.writer, subscription);
                let (epoch, held) = (finished.epoch.0, finished.held);
                self.say(session, flow.publisher, Control::Done { flow, epoch, held });
            }
        }
    }

    /// A link does not do what it should: another is looked for.
    fn leave_bad_link(&mut self, session: &Session, flow: Flow, trouble: &Trouble) {
        if self.flows.get(&flow).is_some_and(|it| it.handover.opening() == Some(&trouble.id)) {
            let epoch = self.epoch(flow);
            if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
                publisher_core.disconnect_from(&trouble.id, Gid(flow.subscription));
            }
            self.give_back(session, flow, epoch);
            let refusal = Refusal { reason: trouble.reason.clone(), is_passing: true };
            return self.exclude_and_try_again(session, flow, trouble.id.clone(), refusal);
        }
        if self.current(flow) != Some(&trouble.id) {
            return;
        }
        let Some(route) = self.flows.get_mut(&flow) else { return };
        if trouble.is_broken && !std::mem::replace(&mut route.is_broken, true) {
            route.patient_until_ns = Some(after(clock::monotonic_ns(), PATIENCE));
        }
        let known = route.excluded.iter().any(|(id, _)| *id == trouble.id);
        if !known {
            let refusal = Refusal { reason: trouble.reason.clone(), is_passing: true };
            route.excluded.push((trouble.id.clone(), refusal));
        }
        if !known || trouble.is_broken {
            self.find_link(session, flow, &format!("{}: {}", trouble.id, trouble.reason));
        }
    }

    /// The link of a flow does not reach its end any more.
    pub(super) fn reader_lost(&mut self, session: &Session, flow: Flow, transport: &TransportId) {
        let reason = "the other end is not reached any more".to_owned();
        let trouble = Trouble { id: transport.clone(), reason, is_broken: true };
        self.leave_bad_link(session, flow, &trouble);
    }

    /// The link of a flow may not be the best any more. It is decided again, but not too soon after the
    /// last change.
    pub(super) fn doubt(&mut self, session: &Session, flow: Flow, why: &str) {
        if self.keeps_its_wire(session, flow) {
            return;
        }
        let Some(route) = self.flows.get_mut(&flow) else { return };
        if route.state != RouteState::Active {
            return;
        }
        let due_ns = after(route.changed_ns, DWELL);
        if due_ns <= clock::monotonic_ns() {
            return self.find_link(session, flow, why);
        }
        route.doubt = Some((why.to_owned(), due_ns));
    }

    /// Decides again where the time for it has come.
    pub(super) fn settle_doubts(&mut self, session: &Session, now_ns: u64) {
        let due = self.flows.iter_mut().filter_map(|(flow, route)| {
            if route.patient_until_ns.take_if(|until_ns| *until_ns <= now_ns).is_some()
                && route.is_broken
            {
                return Some((*flow, "its link has failed".to_owned()));
            }
            let (why, due_ns) = route.doubt.as_ref()?;
            (*due_ns <= now_ns).then(|| (*flow, why.clone()))
        });
        for (flow, why) in due.collect::<Vec<_>>() {
            self.find_link(session, flow, &why);
        }
    }

    /// Decides again about all flows of a topic, or of all, at once. Answers how many there are.
    pub(super) fn decide_again(
        &mut self,
        session: &Session,
        topic: Option<&str>,
        why: &str,
    ) -> u32 {
        let flows = self.flows_of(session, topic);
        for flow in &flows {
            if let Some(route) = self.flows.get_mut(flow) {
                // What was not to be had may be now.
                route.excluded.retain(|(_, refusal)| !refusal.is_passing);
            }
            self.find_link(session, *flow, why);
        }
        flows.len() as u32
    }

    /// How many flows of a topic are decided here.
    pub(super) fn count_flows(&self, session: &Session, topic: &str) -> u32 {
        self.flows_of(session, Some(topic)).len() as u32
    }

    /// The flows of a topic, or all, whose links can change.
    fn flows_of(&self, session: &Session, topic: Option<&str>) -> Vec<Flow> {
        let is_meant = |flow: &Flow| {
            let known = self.endpoints.get(&Gid(flow.publisher));
            known.is_some_and(|it| topic.is_none_or(|topic| it.record.topic == topic))
        };
        let flows = self.flows.iter().filter(|(flow, route)| {
            route.state != RouteState::Incompatible
                && is_meant(flow)
                && !self.keeps_its_wire(session, **flow)
        });
        flows.map(|(flow, _)| *flow).collect()
    }

    /// Whether one of its ends is a foreign node's, and nothing else could carry it.
    fn keeps_its_wire(&self, session: &Session, flow: Flow) -> bool {
        let publisher_core = self.publisher_cores.get(&Gid(flow.publisher));
        if session.wire_engines().is_some()
            && publisher_core.is_some_and(|it| it.role == Role::Topic)
        {
            return false;
        }
        let ends = [flow.publisher, flow.subscription].into_iter();
        let mut peers = ends.filter_map(|gid| self.endpoints.get(&Gid(gid)));
        peers.any(|known| self.foreign.is_foreign(known.peer))
    }

    fn is_broken_on(&self, flow: Flow, id: &TransportId) -> bool {
        let route = self.flows.get(&flow);
        route.is_some_and(|it| it.is_broken && it.handover.current() == Some(id))
    }

    fn current(&self, flow: Flow) -> Option<&TransportId> {
        self.flows.get(&flow)?.handover.current()
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
