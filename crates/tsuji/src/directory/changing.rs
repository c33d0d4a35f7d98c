//! When the road of a flow is decided again, and how it comes to another.

use std::time::Duration;

use tsuji_core::handover::{Begun, Epoch};
use tsuji_core::{Choice, NoRoute, Reason, TransportId, select};
use tsuji_platform::clock;
use tsuji_transport::{Gid, Sample};

use super::route::shown;
use super::{Decision, Directory, HalfOpen, Opening};
use crate::control::protocol::{Control, Flow, Refusal};
use crate::events::PublisherEvent;
use crate::graph::{Role, RouteChange, RouteState};
use crate::host::Host;
use crate::pacing::after;
use crate::publication::Trouble;

impl Directory {
    /// Chooses a road for a flow that is decided here, and begins to open it beside the one it has.
    pub(super) fn find_road(&mut self, host: &Host, flow: Flow, why: &str) {
        self.decide(host, flow, why);
        self.regroup(host, flow);
    }

    /// The same, without a look at the other flows of the publisher.
    pub(super) fn decide(&mut self, host: &Host, flow: Flow, why: &str) {
        self.catch_up(host, flow);
        let ends = self.endpoints.get(&Gid(flow.publisher));
        let ends = ends.zip(self.endpoints.get(&Gid(flow.subscription)));
        let Some((offering, asking)) = ends else { return };
        let (sender, peer) = (offering.peer, asking.peer);
        let topic = offering.record.topic.clone();
        let Some(traits) = self.traits(host, flow) else { return };
        let offers = self.offers_together(host, flow);
        let policy = self.pins.policy(&host.policy(), &topic);
        let chosen = select(&traits, &policy, &topic, &offers);
        let Some(route) = self.flows.get_mut(&flow) else { return };
        route.doubt = None;
        let choice = match chosen {
            Ok(choice) => choice,
            Err(none) => return self.has_no_road(host, flow, &topic, &none),
        };
        let id = choice.transport.clone();
        self.plan_return(host, flow, has_run_out(&choice));
        if self.is_broken_on(flow, &id) {
            // The same transport anew.
            self.lose_road(host, flow);
        }
        let Some(route) = self.flows.get_mut(&flow) else { return };
        match route.course.begin(id.clone()) {
            Begun::Stands { withdrawn } => {
                route.choice = Some(Decision::of(&choice));
                self.withdraw(host, flow, withdrawn);
            }
            Begun::UnderWay => {
                if let Some(opening) = &mut route.opening {
                    opening.decision = Decision::of(&choice);
                }
                if route.is_bad() {
                    self.end_trial(host, flow);
                }
            }
            Begun::NotYet if route.is_broken => {
                // Nothing is left to be waited for: it begins anew.
                self.lose_road(host, flow);
                self.decide(host, flow, why);
            }
            Begun::NotYet => route.wanted = Some(why.to_owned()),
            Begun::Offer { epoch, withdrawn } => {
                tracing::debug!(topic, transport = %id, because = %choice.because, "route");
                self.withdraw(host, flow, withdrawn);
                self.begin_road(flow, &choice, why);
                if self.outside.is_plain(sender) {
                    self.open_from_plain(host, flow, &id);
                } else if self.outside.is_plain(peer) {
                    self.open_to_plain(host, flow, &id);
                } else if peer != host.id {
                    let is_first = self.standing(flow).is_none();
                    let (epoch, transport) = (epoch.0, id.to_string());
                    self.links.send(peer, &Control::Offer { flow, epoch, is_first, transport });
                } else {
                    self.open_here(host, flow, epoch, &id);
                }
            }
        }
    }

    /// Takes note of a road that is to be opened.
    fn begin_road(&mut self, flow: Flow, choice: &Choice, why: &str) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let decision = Decision::of(choice);
        if route.course.standing().is_none() {
            route.state = RouteState::Opening;
            route.since_wall_ns = clock::wall_ns();
            route.choice = Some(Decision::of(choice));
        }
        let since_ns = clock::monotonic_ns();
        let has_run_out = has_run_out(choice);
        let why = why.to_owned();
        route.opening = Some(Opening { decision, half: None, since_ns, why, has_run_out });
    }

    /// Opens a road both of whose ends are here.
    fn open_here(&mut self, host: &Host, flow: Flow, epoch: Epoch, id: &TransportId) {
        let accepted = self.meet_self(host, id);
        match accepted.and_then(|()| self.accept(host, host.id, flow, epoch, id.as_str())) {
            Ok(ticket) => self.open_end(host, flow, id, ticket),
            Err(refusal) => {
                self.give_back(host, flow, epoch.0);
                self.exclude_and_try_again(host, flow, id.clone(), refusal);
            }
        }
    }

    /// Where something better has run out, it is asked for again later, ever more rarely while it comes
    /// and goes.
    fn plan_return(&mut self, host: &Host, flow: Flow, is_passing: bool) {
        let Some(route) = self.flows.get(&flow) else { return };
        let is_calm = after(route.changed_ns, CALM) <= clock::monotonic_ns();
        if is_passing && self.retries.get(&flow).is_none_or(|it| it.due_ns().is_none()) {
            self.retry_later(host, flow);
        } else if !is_passing && is_calm {
            self.retries.remove(&flow);
        }
    }

    fn has_no_road(&mut self, host: &Host, flow: Flow, topic: &str, none: &NoRoute) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let is_passing = none.rejected.iter().any(|(_, it)| matches!(it, Reason::Exhausted { .. }));
        let standing = route.course.standing();
        let is_tired = |(id, reason): &(TransportId, Reason)| {
            Some(id) == standing && matches!(reason, Reason::Exhausted { .. })
        };
        if !route.is_broken && none.rejected.iter().any(is_tired) {
            // It still carries what it can.
            return self.retry_later(host, flow);
        }
        if route.patient_until_ns.is_some_and(|until_ns| clock::monotonic_ns() < until_ns) {
            // Whoever publishes waits.
            return;
        }
        if !self.retries.contains_key(&flow) {
            tracing::warn!(topic, "{none}");
        }
        self.lose_road(host, flow);
        let Some(route) = self.flows.get_mut(&flow) else { return };
        route.state = RouteState::NoRoute;
        route.since_wall_ns = clock::wall_ns();
        route.choice = Some(Decision {
            transport: None,
            because: none.to_string(),
            rejected: shown(&none.rejected),
        });
        if is_passing {
            self.retry_later(host, flow);
        }
    }

    /// The flow has no road any more.
    fn lose_road(&mut self, host: &Host, flow: Flow) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let withdrawn = route.course.withdraw();
        let had_road = route.course.standing().is_some();
        let epoch = route.course.last();
        self.withdraw(host, flow, withdrawn);
        if let Some(route) = self.flows.get_mut(&flow) {
            route.course.end();
            route.is_broken = false;
            route.patient_until_ns = None;
        }
        if !had_road {
            return;
        }
        if let Some(publication) = self.publications.get(&Gid(flow.publisher)) {
            publication.give_up(Gid(flow.subscription));
            publication.events.push(PublisherEvent::Matched { current: publication.readers() });
        }
        self.close_far_end(host, flow, epoch.0);
    }

    /// A road that was being opened is not wanted any more.
    fn withdraw(&mut self, host: &Host, flow: Flow, withdrawn: Option<Epoch>) {
        let Some(epoch) = withdrawn else { return };
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let opening = route.opening.take();
        let publication = self.publications.get(&Gid(flow.publisher));
        let id = opening.and_then(|it| it.decision.transport);
        if let Some((publication, id)) = publication.zip(id) {
            publication.disconnect_from(&id, Gid(flow.subscription));
        }
        self.give_back(host, flow, epoch.0);
    }

    /// The subscription's end of a road that carries nothing yet is not needed.
    pub(super) fn give_back(&mut self, host: &Host, flow: Flow, epoch: u32) {
        self.say(host, flow.subscription, Control::Withdrawn { flow, epoch });
    }

    /// A road that was opened here is not wanted after all.
    pub(super) fn withdrawn(&mut self, flow: Flow, epoch: u32) {
        if let Some(reception) = self.receptions.get(&Gid(flow.subscription)) {
            reception.withdraw(Gid(flow.publisher), Epoch(epoch));
        }
    }

    /// The road that was being opened carries. `published_before` is told of the first.
    pub(super) fn carried(&mut self, flow: Flow, published_before: Option<u64>) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let Some(epoch) = route.course.opening_epoch() else { return };
        let from = route.course.standing().map(ToString::to_string);
        route.course.carry(epoch);
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

    /// Something has come by the road of this epoch, which is to carry from here on.
    pub(super) fn shown(&mut self, host: &Host, flow: Flow, epoch: u32) {
        let route = self.flows.get(&flow);
        if route.is_some_and(|it| it.course.opening_epoch() == Some(Epoch(epoch))) {
            self.end_trial(host, flow);
        }
    }

    /// The road that is on trial is to carry, whether it has shown that it does or not.
    fn end_trial(&mut self, host: &Host, flow: Flow) {
        let half = self.flows.get(&flow).and_then(|it| it.opening.as_ref()?.half.as_ref());
        let Some(HalfOpen::OnTrial { .. }) = half else { return };
        let publication = self.publications.get(&Gid(flow.publisher));
        let connected = publication.and_then(|it| it.end_trial(Gid(flow.subscription)));
        if let Some(connected) = connected {
            self.carried(flow, None);
            self.tell_cut(host, flow, connected);
        }
    }

    /// Ends the trials that have lasted long enough.
    pub(super) fn end_trials(&mut self, host: &Host, now_ns: u64) {
        let is_due =
            |route: &super::Route| match route.opening.as_ref().and_then(|it| it.half.as_ref()) {
                Some(HalfOpen::OnTrial { until_ns }) => *until_ns <= now_ns,
                _ => false,
            };
        let due = self.flows.iter().filter(|(_, route)| is_due(route)).map(|(flow, _)| *flow);
        for flow in due.collect::<Vec<_>>() {
            self.end_trial(host, flow);
        }
    }

    /// The subscription has all that came before this road.
    pub(super) fn done(&mut self, host: &Host, flow: Flow, epoch: u32, held: u64) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        route.course.done(Epoch(epoch));
        let has_left_all = route.course.is_settled();
        let now_ns = clock::monotonic_ns();
        let settling_us = now_ns.saturating_sub(route.changed_ns) as f64 / 1e3;
        for change in route.changes.iter_mut().filter(|it| it.epoch <= epoch && !it.is_settled) {
            (change.is_settled, change.held, change.settling_us) = (true, held, settling_us);
            let topic = self.endpoints.get(&Gid(flow.publisher)).map(|it| &*it.record.topic);
            tracing::info!(
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
        if has_left_all && let Some(publication) = self.publications.get(&Gid(flow.publisher)) {
            publication.has_left(Gid(flow.subscription));
        }
        if let Some(why) = wanted {
            self.find_road(host, flow, &why);
        }
    }

    /// Does what publishers and subscriptions of this process have come upon.
    ///
    /// Answers samples that nobody wants, to be dropped when no lock is held: they are the user's.
    pub(crate) fn mend(&mut self, host: &Host) -> Vec<Sample> {
        let news = self.publications.iter().filter_map(|(gid, it)| Some((*gid, it.take_news()?)));
        for (publisher, news) in news.collect::<Vec<_>>() {
            let flows = self.flows.keys().filter(|flow| flow.publisher == publisher.0);
            for flow in flows.copied().collect::<Vec<_>>() {
                for trouble in &news.troubles {
                    self.leave_bad_road(host, flow, trouble);
                }
                if let Some(why) = news.doubt {
                    self.doubt(host, flow, why);
                }
            }
        }
        self.go_on_changing_engines(host);
        let news = self.receptions.values();
        let news = news.filter_map(|it| Some((it.gid, it.take_change_news()?)));
        let mut discarded = Vec::new();
        for (subscription, news) in news.collect::<Vec<_>>() {
            discarded.extend(news.discarded);
            for (writer, epoch) in news.shown {
                let (flow, epoch) = (Flow::new(writer, subscription), epoch.0);
                self.say(host, flow.publisher, Control::Shown { flow, epoch });
            }
            for finished in news.finished {
                let flow = Flow::new(finished.writer, subscription);
                let (epoch, held) = (finished.epoch.0, finished.held);
                self.say(host, flow.publisher, Control::Done { flow, epoch, held });
            }
        }
        discarded
    }

    /// A road does not do what it should: another is looked for.
    fn leave_bad_road(&mut self, host: &Host, flow: Flow, trouble: &Trouble) {
        if self.flows.get(&flow).is_some_and(|it| it.course.opening() == Some(&trouble.id)) {
            let epoch = self.epoch(flow);
            if let Some(publication) = self.publications.get(&Gid(flow.publisher)) {
                publication.disconnect_from(&trouble.id, Gid(flow.subscription));
            }
            self.give_back(host, flow, epoch);
            let refusal = Refusal { reason: trouble.reason.clone(), is_passing: true };
            return self.exclude_and_try_again(host, flow, trouble.id.clone(), refusal);
        }
        if self.standing(flow) != Some(&trouble.id) {
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
            self.find_road(host, flow, &format!("{}: {}", trouble.id, trouble.reason));
        }
    }

    /// The road of a flow does not reach its end any more.
    pub(super) fn reader_lost(&mut self, host: &Host, flow: Flow, transport: &TransportId) {
        let reason = "the other end is not reached any more".to_owned();
        let trouble = Trouble { id: transport.clone(), reason, is_broken: true };
        self.leave_bad_road(host, flow, &trouble);
    }

    /// The road of a flow may not be the best any more. It is decided again, but not too soon after the
    /// last change.
    pub(super) fn doubt(&mut self, host: &Host, flow: Flow, why: &str) {
        if self.keeps_its_wire(host, flow) {
            return;
        }
        let Some(route) = self.flows.get_mut(&flow) else { return };
        if route.state != RouteState::Active {
            return;
        }
        let due_ns = after(route.changed_ns, DWELL);
        if due_ns <= clock::monotonic_ns() {
            return self.find_road(host, flow, why);
        }
        route.doubt = Some((why.to_owned(), due_ns));
    }

    /// Decides again where the time for it has come.
    pub(super) fn settle_doubts(&mut self, host: &Host, now_ns: u64) {
        let due = self.flows.iter_mut().filter_map(|(flow, route)| {
            if route.patient_until_ns.take_if(|until_ns| *until_ns <= now_ns).is_some()
                && route.is_broken
            {
                return Some((*flow, "its road has failed".to_owned()));
            }
            let (why, due_ns) = route.doubt.as_ref()?;
            (*due_ns <= now_ns).then(|| (*flow, why.clone()))
        });
        for (flow, why) in due.collect::<Vec<_>>() {
            self.find_road(host, flow, &why);
        }
    }

    /// Decides again about all flows of a topic, or of all, at once. Answers how many there are.
    pub(super) fn decide_again(&mut self, host: &Host, topic: Option<&str>, why: &str) -> u32 {
        let flows = self.flows_of(host, topic);
        for flow in &flows {
            if let Some(route) = self.flows.get_mut(flow) {
                // What was not to be had may be now.
                route.excluded.retain(|(_, refusal)| !refusal.is_passing);
            }
            self.find_road(host, *flow, why);
        }
        flows.len() as u32
    }

    /// How many flows of a topic are decided here.
    pub(super) fn count_flows(&self, host: &Host, topic: &str) -> u32 {
        self.flows_of(host, Some(topic)).len() as u32
    }

    /// The flows of a topic, or all, whose roads can change.
    fn flows_of(&self, host: &Host, topic: Option<&str>) -> Vec<Flow> {
        let is_meant = |flow: &Flow| {
            let known = self.endpoints.get(&Gid(flow.publisher));
            known.is_some_and(|it| topic.is_none_or(|topic| it.record.topic == topic))
        };
        let flows = self.flows.iter().filter(|(flow, route)| {
            route.state != RouteState::Incompatible
                && is_meant(flow)
                && !self.keeps_its_wire(host, **flow)
        });
        flows.map(|(flow, _)| *flow).collect()
    }

    /// Whether one of its ends is a plain node's, and nothing else could carry it.
    fn keeps_its_wire(&self, host: &Host, flow: Flow) -> bool {
        let publication = self.publications.get(&Gid(flow.publisher));
        if host.wire_engines().is_some() && publication.is_some_and(|it| it.role == Role::Topic) {
            return false;
        }
        let ends = [flow.publisher, flow.subscription].into_iter();
        let mut peers = ends.filter_map(|gid| self.endpoints.get(&Gid(gid)));
        peers.any(|known| self.outside.is_plain(known.peer))
    }

    fn is_broken_on(&self, flow: Flow, id: &TransportId) -> bool {
        let route = self.flows.get(&flow);
        route.is_some_and(|it| it.is_broken && it.course.standing() == Some(id))
    }

    fn standing(&self, flow: Flow) -> Option<&TransportId> {
        self.flows.get(&flow)?.course.standing()
    }
}

/// Whether a transport was left out that has run out of something.
fn has_run_out(choice: &Choice) -> bool {
    choice.rejected.iter().any(|(_, reason)| matches!(reason, Reason::Exhausted { .. }))
}

/// How long a flow keeps a road at least, if nothing is wrong with it.
const DWELL: Duration = Duration::from_secs(1);
/// How long a road that has failed is kept when there is no other. Less than a publisher waits for room.
const PATIENCE: Duration = Duration::from_millis(50);
/// A flow that has kept its road so long starts from new with what it may try again.
const CALM: Duration = Duration::from_secs(30);
