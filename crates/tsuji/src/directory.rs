//! Who is there, who matches whom, and which road each flow has.
//!
//! This file decides and keeps tables; what must be said to other processes it leaves in the
//! outboxes of their links, which the control thread sends.

use std::collections::HashMap;
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::handover::{Cut, Epoch};
use tsuji_core::{Capability, Health, Offer, Qos, Scope, Traits, TransportId, rxo};
use tsuji_platform::clock;
use tsuji_transport::{Gid, PeerId, Ticket, Transport};

use crate::Error;
use crate::control::link::Links;
use crate::control::listening::Standing;
use crate::control::protocol::{Control, EndpointRecord, Flow, NodeRecord, Refusal};
use crate::endpoint::EndpointCore;
use crate::engines::ProcessEngines;
use crate::events::{PublisherEvent, SubscriptionEvent};
use crate::graph::{Role, RouteHalf, RouteState, Stranger, type_mismatch};
use crate::host::Host;
use crate::pacing::{Backoff, after};
use crate::publication::{self, Asking, Connected, Far, Joining, Publication, Reached};
use crate::reception::Reception;
use outside::Outside;
use pins::Pins;
use route::{Decision, HalfOpen, Opening, Route};

mod changing;
mod engines;
mod outside;
mod pins;
mod report;
mod route;
mod second;

/// The tables of one participant.
#[derive(Default)]
pub(crate) struct Directory {
    pub(crate) links: Links,
    nodes: HashMap<Gid, Known<NodeRecord>>,
    endpoints: HashMap<Gid, Known<EndpointRecord>>,
    topics: HashMap<String, Vec<Gid>>,
    publications: HashMap<Gid, Arc<Publication>>,
    receptions: HashMap<Gid, Arc<Reception>>,
    /// Flows whose publisher lives here.
    flows: HashMap<Flow, Route>,
    /// When flows without a route are decided again, because something had run out; nothing is due
    /// while one is being opened.
    retries: HashMap<Flow, Backoff>,
    /// Who is on the wires.
    pub(crate) outside: Outside,
    /// Where memory is preferred, how the wires of the transports were met.
    pub(crate) standings: HashMap<TransportId, Standing>,
    /// Transports on which this process has met itself.
    met_self: Vec<TransportId>,
    pins: Pins,
    pub(crate) strangers: Vec<Stranger>,
    /// Answers to questions that are under way.
    pub(crate) answers: HashMap<u64, Answers>,
    pub(crate) questions: u64,
}

/// What others have answered so far.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) halves: Vec<RouteHalf>,
    pub(crate) settings: Vec<(PeerId, Result<u32, String>)>,
    pub(crate) engines: Vec<ProcessEngines>,
    /// Peers that have not answered all yet.
    pub(crate) waiting: Vec<PeerId>,
}

/// Something, and the process it lives in.
struct Known<T> {
    record: T,
    peer: PeerId,
}

impl Directory {
    pub(crate) fn add_node(&mut self, host: &Host, record: NodeRecord) {
        self.links.broadcast(&Control::Node(record.clone()));
        self.know_node(host.id, record);
        self.outside.graph_changed(host);
    }

    pub(crate) fn remove_node(&mut self, host: &Host, gid: Gid) {
        self.links.broadcast(&Control::NodeGone(gid.0));
        self.nodes.remove(&gid);
        self.outside.graph_changed(host);
    }

    pub(crate) fn add_publication(&mut self, host: &Host, publication: &Arc<Publication>) {
        let record = record(publication, true);
        // The policy may have changed since it was made.
        publication.set_size_line(host.policy().size_line_bytes());
        self.publications.insert(publication.gid, Arc::clone(publication));
        self.show_publication(host, publication);
        self.add_local(host, record);
    }

    pub(crate) fn add_reception(&mut self, host: &Host, reception: &Arc<Reception>) {
        let record = record(reception, false);
        self.receptions.insert(reception.gid, Arc::clone(reception));
        self.show_reception(host, reception);
        self.add_local(host, record);
    }

    pub(crate) fn remove_local(&mut self, host: &Host, gid: Gid) {
        self.forget_endpoint(host, gid);
        // Not before: whoever hears of it takes the memory back that the flows were written to.
        self.links.broadcast(&Control::EndpointGone(gid.0));
        if let Some(publication) = self.publications.remove(&gid) {
            publication.close();
        }
        if let Some(reception) = self.receptions.remove(&gid) {
            reception.close();
        }
        self.outside.graph_changed(host);
    }

    pub(crate) fn know_node(&mut self, peer: PeerId, record: NodeRecord) {
        let known = self.nodes.get(&Gid(record.gid)).map(|it| it.peer);
        if known.is_none() && NODES_MAX <= self.nodes.len() {
            return self.too_many(peer, &format!("nodes; at most {NODES_MAX} are known"));
        }
        if known.is_none_or(|it| it == peer) {
            self.nodes.insert(Gid(record.gid), Known { record, peer });
        }
    }

    /// A node of `peer` is gone.
    pub(crate) fn node_gone(&mut self, peer: PeerId, gid: Gid) {
        if self.nodes.get(&gid).is_some_and(|known| known.peer == peer) {
            self.nodes.remove(&gid);
        }
    }

    /// Whether this endpoint is known, and of `peer`.
    pub(crate) fn lives_in(&self, endpoint: Gid, peer: PeerId) -> bool {
        self.endpoints.get(&endpoint).is_some_and(|known| known.peer == peer)
    }

    /// Takes note of an endpoint, and matches it if its process has been met.
    pub(crate) fn know_endpoint(&mut self, host: &Host, peer: PeerId, record: EndpointRecord) {
        let gid = Gid(record.gid);
        if self.endpoints.contains_key(&gid) {
            return;
        }
        if ENDPOINTS_MAX <= self.endpoints.len() {
            return self.too_many(peer, &format!("endpoints; at most {ENDPOINTS_MAX} are known"));
        }
        if let Err(error) = Qos::from(record.qos).validate() {
            tracing::warn!(topic = %record.topic, %error, "an endpoint of another process is ignored");
            return;
        }
        self.topics.entry(record.topic.clone()).or_default().push(gid);
        self.endpoints.insert(gid, Known { record, peer });
        if peer == host.id || self.is_reachable(peer) {
            self.match_endpoint(host, gid);
        }
    }

    /// Whether flows can begin to and from this process.
    fn is_reachable(&self, peer: PeerId) -> bool {
        self.links.is_met(peer) || (self.outside.is_plain(peer) && !self.outside.is_awaited(peer))
    }

    /// A process has been met: what is known of it can be matched now.
    pub(crate) fn match_peer(&mut self, host: &Host, peer: PeerId) {
        let theirs = self.endpoints.iter().filter(|(_, known)| known.peer == peer);
        let theirs: Vec<Gid> = theirs.map(|(gid, _)| *gid).collect();
        theirs.into_iter().for_each(|gid| self.match_endpoint(host, gid));
    }

    pub(crate) fn forget_endpoint(&mut self, host: &Host, gid: Gid) {
        let Some(known) = self.endpoints.remove(&gid) else { return };
        let topic = &known.record.topic;
        if let Some(endpoints) = self.topics.get_mut(topic) {
            endpoints.retain(|it| *it != gid);
            if endpoints.is_empty() {
                self.topics.remove(topic);
            }
        }
        let flows = self.flows.keys();
        let ended = flows.filter(|flow| flow.publisher == gid.0 || flow.subscription == gid.0);
        for flow in ended.copied().collect::<Vec<_>>() {
            self.end_flow(host, flow);
        }
        self.outside.graph_changed(host);
        if known.record.is_publisher {
            let receptions = self.receptions.values();
            let here = receptions.filter(|it| it.topic == known.record.topic);
            for reception in here.cloned().collect::<Vec<_>>() {
                self.forget_writer(host, &reception, gid, Gid(known.record.partner));
            }
        }
    }

    /// This publisher sends nothing more to `reception`. If it is a server's, whose other half is
    /// `partner`, it cannot answer the client any more.
    fn forget_writer(&mut self, host: &Host, reception: &Reception, gid: Gid, partner: Gid) {
        reception.forget(gid);
        if reception.role == Role::Reply {
            self.end_flow(host, Flow::new(reception.partner, partner));
        }
    }

    /// A process is gone: so is all that lived in it.
    pub(crate) fn forget_peer(&mut self, host: &Host, peer: PeerId) {
        self.nodes.retain(|_, known| known.peer != peer);
        let theirs = self.endpoints.iter().filter(|(_, known)| known.peer == peer);
        for gid in theirs.map(|(gid, _)| *gid).collect::<Vec<_>>() {
            self.forget_endpoint(host, gid);
        }
        for answers in self.answers.values_mut() {
            answers.waiting.retain(|it| *it != peer);
        }
    }

    /// A publisher elsewhere wants this end of a flow opened.
    pub(crate) fn offered(
        &mut self,
        host: &Host,
        peer: PeerId,
        flow: Flow,
        epoch: u32,
        transport: &str,
    ) {
        let ticket = if self.lives_in(Gid(flow.publisher), peer) {
            self.accept(host, peer, flow, Epoch(epoch), transport).map(|ticket| ticket.bytes)
        } else {
            Err(Refusal::lasting("the publisher is not known"))
        };
        self.links.send(peer, &Control::Answer { flow, epoch, ticket });
    }

    /// The subscription's process has opened its end, or says why not.
    pub(crate) fn answered(
        &mut self,
        host: &Host,
        peer: PeerId,
        flow: Flow,
        epoch: u32,
        ticket: Result<Vec<u8>, Refusal>,
    ) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        let is_theirs =
            self.endpoints.get(&Gid(flow.subscription)).is_some_and(|it| it.peer == peer);
        if !is_theirs || route.course.opening_epoch() != Some(Epoch(epoch)) {
            return;
        }
        let is_answered = route.opening.as_ref().is_none_or(|it| it.half.is_some());
        let Some(id) = route.course.opening().filter(|_| !is_answered).cloned() else { return };
        match ticket {
            Ok(bytes) => {
                let ticket = Ticket { peer, reader: Gid(flow.subscription), bytes };
                self.open_end(host, flow, &id, ticket);
            }
            Err(refusal) => self.exclude_and_try_again(host, flow, id, refusal),
        }
    }

    /// Opens the publisher's end, or goes on opening it, and tells the subscription's process.
    fn open_end(&mut self, host: &Host, flow: Flow, id: &TransportId, ticket: Ticket) {
        let epoch = self.epoch(flow);
        match self.connect(host, flow, id, Reached::Ticket(&ticket)) {
            Ok(Joining::Connected(connected)) => self.tell_cut(host, flow, connected),
            Ok(Joining::OnTrial) => {
                let until_ns = after(clock::monotonic_ns(), TRIAL_MAX);
                self.begin_opening(host, flow, HalfOpen::OnTrial { until_ns });
            }
            Ok(Joining::Later) => self.begin_opening(host, flow, HalfOpen::Ticket(ticket)),
            Err(refusal) => {
                // What was accepted for this road is given back.
                self.give_back(host, flow, epoch);
                self.exclude_and_try_again(host, flow, id.clone(), refusal);
            }
        }
    }

    /// Tells the subscription from where on the road carries that was opened last.
    fn tell_cut(&mut self, host: &Host, flow: Flow, connected: Connected) {
        let Connected { first, ends, .. } = connected;
        let epoch = self.epoch(flow);
        self.say(host, flow.subscription, Control::Cut { flow, epoch, ends, first });
    }

    /// Says a word about a flow to the process of one of its ends, which may be this one.
    fn say(&mut self, host: &Host, end: [u8; 16], word: Control) {
        match self.endpoints.get(&Gid(end)).map(|known| known.peer) {
            Some(peer) if peer == host.id => self.hear(host, word),
            Some(peer) => self.links.send(peer, &word),
            None => (),
        }
    }

    /// Does what the other end of a flow says of it.
    pub(crate) fn hear(&mut self, host: &Host, word: Control) {
        match word {
            Control::Cut { flow, epoch, ends, first } => {
                self.cut(host, flow, epoch, ends, Some(first));
            }
            Control::Done { flow, epoch, held } => self.done(host, flow, epoch, held),
            Control::Shown { flow, epoch } => self.shown(host, flow, epoch),
            Control::Withdrawn { flow, epoch } => self.withdrawn(flow, epoch),
            Control::Closed { flow, .. } => self.closed(host, flow),
            // The others are answered, or are not about a flow that is there.
            _ => (),
        }
    }

    /// The transport has begun to open the road of this flow.
    fn begin_opening(&mut self, host: &Host, flow: Flow, half: HalfOpen) {
        if let Some(opening) = self.flows.get_mut(&flow).and_then(|it| it.opening.as_mut()) {
            let is_same = |it: &HalfOpen| discriminant(it) == discriminant(&half);
            let is_news = !opening.half.as_ref().is_some_and(is_same);
            opening.half = Some(half);
            if is_news {
                host.nudge.give();
            }
        }
    }

    fn go_on_opening(&mut self, host: &Host, flow: Flow, id: &TransportId, opening: HalfOpen) {
        match opening {
            HalfOpen::Ticket(ticket) => self.open_end(host, flow, id, ticket),
            HalfOpen::ToPlain => self.open_to_plain(host, flow, id),
            HalfOpen::FromPlain => self.open_from_plain(host, flow, id),
            HalfOpen::OnTrial { .. } => (),
        }
    }

    /// Goes on with the flows that this transport is opening.
    pub(crate) fn go_on(&mut self, host: &Host, transport: &TransportId) {
        for (flow, opening) in self.opening(transport) {
            self.go_on_opening(host, flow, transport, opening);
        }
        let lost = self.publications.iter().flat_map(|(gid, publication)| {
            let lost = publication.lost_on(transport).into_iter();
            lost.map(|reader| Flow::new(*gid, reader))
        });
        for flow in lost.collect::<Vec<_>>() {
            self.reader_lost(host, flow, transport);
        }
    }

    fn opening(&self, transport: &TransportId) -> Vec<(Flow, HalfOpen)> {
        let opening = self.flows.iter().filter_map(|(flow, route)| {
            let half = route.opening.as_ref()?.half.as_ref()?;
            (route.course.opening() == Some(transport)).then(|| (*flow, half.clone()))
        });
        opening.collect()
    }

    /// Gives up roads that take too long to open.
    fn give_up(&mut self, host: &Host, now_ns: u64) {
        let late = self.flows.iter().filter_map(|(flow, route)| {
            let is_late = route.opening_due_ns().is_some_and(|due_ns| due_ns <= now_ns);
            let opening = route.opening.as_ref().filter(|_| is_late)?;
            Some((*flow, route.course.opening()?.clone(), opening.half.clone()))
        });
        for (flow, id, half) in late.collect::<Vec<_>>() {
            if let Some(publication) = self.publications.get(&Gid(flow.publisher)) {
                publication.disconnect_from(&id, Gid(flow.subscription));
            } else if let Some(reception) = self.receptions.get(&Gid(flow.subscription)) {
                reception.forget(Gid(flow.publisher));
            }
            self.give_back(host, flow, self.epoch(flow));
            // The engine of a plain end that has not matched by then sees something that is not seen here.
            let is_plain = matches!(half, Some(HalfOpen::ToPlain | HalfOpen::FromPlain));
            let refusal = Refusal {
                reason: "the other end was not reached in time".to_owned(),
                is_passing: !is_plain || self.epoch(flow) < PLAIN_EPOCHS_MAX,
            };
            self.exclude_and_try_again(host, flow, id, refusal);
        }
    }

    /// From here on a road of this epoch carries; the one before brings nothing from `ends` on.
    pub(crate) fn cut(
        &mut self,
        host: &Host,
        flow: Flow,
        epoch: u32,
        ends: Option<u64>,
        first: Option<u64>,
    ) {
        let Some(reception) = self.receptions.get(&Gid(flow.subscription)) else { return };
        if let Some((ends, first)) = ends.zip(first) {
            return reception.change(Gid(flow.publisher), Cut { epoch: Epoch(epoch), ends, first });
        }
        reception.cut(Gid(flow.publisher), first);
        if reception.role == Role::Reply
            && let Some(server) = self.endpoints.get(&Gid(flow.publisher))
        {
            // Now that it can answer, it may be asked.
            let requests = Flow::new(reception.partner, Gid(server.record.partner));
            self.match_flow(host, requests);
        }
    }

    pub(crate) fn closed(&mut self, host: &Host, flow: Flow) {
        let Some(reception) = self.receptions.get(&Gid(flow.subscription)).cloned() else { return };
        let publisher = Gid(flow.publisher);
        let partner = self.endpoints.get(&publisher).map(|known| Gid(known.record.partner));
        self.forget_writer(host, &reception, publisher, partner.unwrap_or_default());
    }

    /// What keeps each server of this service from answering the client that these are the halves of.
    pub(crate) fn obstacles(&self, requests: Gid, replies: Gid) -> Vec<String> {
        let client = self.endpoints.get(&requests).zip(self.endpoints.get(&replies));
        let Some((asks, takes)) = client.map(|(a, b)| (&a.record, &b.record)) else {
            return Vec::new();
        };
        let here = self.topics.get(&asks.topic).into_iter().flatten();
        let known = here.filter_map(|gid| self.endpoints.get(gid));
        let servers = known.filter_map(|known| {
            let server = &known.record;
            let mut mismatches = match (server.role, server.is_publisher) {
                (Role::Request, false) => mismatches(asks, server),
                (Role::Reply, true) => mismatches(server, takes),
                _ => return None,
            };
            mismatches.extend(self.outside.other_mapping(known.peer));
            Some((server, mismatches))
        });
        let mut obstacles: Vec<String> = servers
            .filter(|(_, mismatches)| !mismatches.is_empty())
            .map(|(server, mismatches)| {
                format!("{}: {}", self.node_name(Gid(server.node)), mismatches.join("; "))
            })
            .collect();
        // A type that differs does so on both halves.
        obstacles.sort();
        obstacles.dedup();
        obstacles
    }

    pub(crate) fn alive(&mut self, publisher: Gid) {
        let Some(known) = self.endpoints.get(&publisher) else { return };
        for gid in self.topics.get(&known.record.topic).into_iter().flatten() {
            if let Some(reception) = self.receptions.get(gid) {
                reception.alive(publisher);
            }
        }
    }

    /// Says to all subscriptions that a publisher is alive.
    pub(crate) fn assert_alive(&mut self, publisher: Gid) {
        self.alive(publisher);
        self.links.broadcast(&Control::Alive(publisher.0));
    }

    /// What a newcomer is told.
    pub(crate) fn introduction(&self, host: &Host) -> Vec<Control> {
        let nodes = self.nodes.values().filter(|known| known.peer == host.id);
        let endpoints = self.endpoints.values().filter(|known| known.peer == host.id);
        let nodes = nodes.map(|known| Control::Node(known.record.clone()));
        let endpoints = endpoints.map(|known| Control::Endpoint(known.record.clone()));
        nodes.chain(endpoints).chain(self.told_pins()).chain([Control::Settled]).collect()
    }

    /// What a process has beyond a limit is left out, and it is said so.
    fn too_many(&mut self, peer: PeerId, what: &str) {
        let (path, reason) = (peer.to_string(), format!("it brings too many {what}"));
        let stranger = Stranger { path, reason };
        if !self.strangers.contains(&stranger) && self.strangers.len() < STRANGERS_MAX {
            tracing::warn!(peer = %stranger.path, reason = %stranger.reason, "left out");
            self.note_stranger(stranger);
        }
    }

    /// Remembers a process that could not be met, to be shown.
    pub(crate) fn note_stranger(&mut self, stranger: Stranger) {
        tracing::debug!(path = %stranger.path, reason = %stranger.reason, "a stranger");
        if !self.strangers.contains(&stranger) && self.strangers.len() < STRANGERS_MAX {
            self.strangers.push(stranger);
        }
    }

    /// Whoever has its socket at `path` has been met after all.
    pub(crate) fn forget_stranger(&mut self, path: &str) {
        self.strangers.retain(|stranger| stranger.path != path);
    }

    /// When [`on_time`](Self::on_time) wants to be called, on the monotonic clock.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let publications = self.publications.values().filter_map(|it| it.due_ns());
        let receptions = self.receptions.values().filter_map(|it| it.due_ns());
        let retries = self.retries.values().filter_map(Backoff::due_ns);
        let opening = self.flows.values().filter_map(Route::due_ns);
        let links = self.links.due_ns().into_iter().chain(self.second_due_ns());
        publications.chain(receptions).chain(retries).chain(opening).chain(links).min()
    }

    pub(crate) fn on_time(&mut self, host: &Host, now_ns: u64) {
        self.publications.values().for_each(|it| it.on_time(now_ns));
        self.receptions.values().for_each(|it| it.on_time(now_ns));
        self.end_trials(host, now_ns);
        self.give_up(host, now_ns);
        self.settle_doubts(host, now_ns);
        self.end_waits_for_second(host, now_ns);
        let retries = self.retries.iter_mut();
        let due = retries.filter(|(_, retry)| retry.is_due(now_ns));
        let due = due.map(|(flow, retry)| {
            retry.tried();
            *flow
        });
        for flow in due.collect::<Vec<_>>() {
            let Some(route) = self.flows.get_mut(&flow) else { continue };
            if route.opening.is_some() {
                // That first.
                self.retry_later(host, flow);
                continue;
            }
            route.excluded.retain(|(_, refusal)| !refusal.is_passing);
            self.find_road(host, flow, "what had run out may be there again");
        }
    }

    /// Something has run out, so that a flow has no route: there may be more of it later.
    fn retry_later(&mut self, host: &Host, flow: Flow) {
        let retry = self.retries.entry(flow);
        retry.or_insert_with(|| Backoff::new(RETRY_FIRST, RETRY_LAST)).later();
        host.nudge.give();
    }

    /// Wakes those who wait for room, to find the end.
    pub(crate) fn wake_publishers(&self) {
        self.publications.values().for_each(|it| it.wake());
    }

    /// How many subscriptions a publisher of this process has.
    pub(crate) fn readers(&self, publisher: Gid) -> usize {
        self.publications.get(&publisher).map_or(0, |it| it.readers())
    }

    /// How many publishers a subscription of this process has.
    pub(crate) fn writers(&self, subscription: Gid) -> usize {
        self.receptions.get(&subscription).map_or(0, |it| it.writers())
    }

    fn add_local(&mut self, host: &Host, record: EndpointRecord) {
        self.links.broadcast(&Control::Endpoint(record.clone()));
        self.know_endpoint(host, host.id, record);
        self.outside.graph_changed(host);
    }

    /// Matches one endpoint with all others of its topic.
    fn match_endpoint(&mut self, host: &Host, gid: Gid) {
        let Some(known) = self.endpoints.get(&gid) else { return };
        let is_publisher = known.record.is_publisher;
        let others = self.topics.get(&known.record.topic).into_iter().flatten().copied();
        for other in others.collect::<Vec<_>>() {
            let flow = if is_publisher { Flow::new(gid, other) } else { Flow::new(other, gid) };
            self.match_flow(host, flow);
        }
    }

    fn match_flow(&mut self, host: &Host, flow: Flow) {
        let (publisher, subscription) = (Gid(flow.publisher), Gid(flow.subscription));
        let known = self.endpoints.get(&publisher).zip(self.endpoints.get(&subscription));
        let Some((offers, asks)) = known else { return };
        let is_mine = |known: &Known<EndpointRecord>| known.peer == host.id;
        let reachable = |it: &Known<EndpointRecord>| is_mine(it) || self.is_reachable(it.peer);
        let is_flow = offers.record.is_publisher
            && !asks.record.is_publisher
            && offers.record.role == asks.record.role;
        if !is_flow
            || !(is_mine(offers) || is_mine(asks))
            || !(reachable(offers) && reachable(asks))
        {
            return;
        }
        let is_unwanted = || self.receptions.get(&subscription).is_some_and(|it| it.ignores_local);
        if self.flows.contains_key(&flow) || (is_mine(offers) && is_unwanted()) {
            return;
        }
        // What half a client or server says tells nothing of whether it can answer or be answered.
        let is_half = |it: &Known<EndpointRecord>| {
            it.record.role != Role::Topic && it.record.partner == [0; 16]
        };
        if is_half(offers) || is_half(asks) {
            return;
        }
        let mismatch = type_mismatch(offers.record.ty(), asks.record.ty());
        let mut mismatches = mismatches(&offers.record, &asks.record);
        if offers.record.role != Role::Topic {
            let peers = [offers.peer, asks.peer].into_iter();
            mismatches.extend(peers.filter_map(|peer| self.outside.other_mapping(peer)));
        }
        if mismatch.is_some() && offers.record.role == Role::Reply {
            // It is told of the requests.
            return;
        }
        if !mismatches.is_empty() {
            self.tell_mismatch(host, flow, mismatch, mismatches);
            return;
        }
        // A server is asked only when its reply will find its way.
        let partners = (Gid(offers.record.partner), Gid(asks.record.partner));
        let can_be_answered = || match self.receptions.get(&partners.0) {
            Some(replies) => replies.hears(partners.1),
            None => self
                .flows
                .get(&Flow::new(partners.1, partners.0))
                .is_some_and(|route| route.state == RouteState::Active),
        };
        let is_decided_here = self.is_decided_here(host, publisher);
        if is_decided_here && (offers.record.role != Role::Request || can_be_answered()) {
            self.flows.insert(flow, Route::new());
            self.find_road(host, flow, "the two ends have met");
        }
    }

    /// Whether flows of this publisher are decided in this process: its own, and those of plain nodes
    /// to it.
    fn is_decided_here(&self, host: &Host, publisher: Gid) -> bool {
        let known = self.endpoints.get(&publisher);
        known.is_some_and(|it| it.peer == host.id || self.outside.is_plain(it.peer))
    }

    fn tell_mismatch(
        &mut self,
        host: &Host,
        flow: Flow,
        mismatch: Option<String>,
        mismatches: Vec<String>,
    ) {
        let (publisher, subscription) = (Gid(flow.publisher), Gid(flow.subscription));
        if let Some(publication) = self.publications.get(&publisher) {
            let topic = &publication.topic;
            if !publication.events.is_heard() {
                let reason = mismatches.join("; ");
                tracing::warn!(%topic, reason, "{} does not fit", counterpart(publication.role, true));
            }
            publication.events.push(match &mismatch {
                Some(mismatch) => {
                    PublisherEvent::IncompatibleType { subscription, mismatch: mismatch.clone() }
                }
                None => {
                    PublisherEvent::IncompatibleQos { subscription, mismatches: mismatches.clone() }
                }
            });
        }
        if self.is_decided_here(host, publisher) {
            let mut route = Route::new();
            route.state = RouteState::Incompatible;
            route.choice = Some(Decision {
                transport: None,
                because: format!("incompatible: {}", mismatches.join("; ")),
                rejected: Vec::new(),
            });
            route.mismatches = mismatches.clone();
            self.flows.insert(flow, route);
        }
        if let Some(reception) = self.receptions.get(&subscription) {
            let topic = &reception.topic;
            if !reception.events.is_heard() {
                let reason = mismatches.join("; ");
                tracing::warn!(%topic, reason, "{} does not fit", counterpart(reception.role, false));
            }
            reception.events.push(match mismatch {
                Some(mismatch) => SubscriptionEvent::IncompatibleType { publisher, mismatch },
                None => SubscriptionEvent::IncompatibleQos { publisher, mismatches },
            });
        }
    }

    /// What is known now of a flow that is decided here.
    fn traits(&self, host: &Host, flow: Flow) -> Option<Traits> {
        let subscription = self.endpoints.get(&Gid(flow.subscription))?;
        let reliability = Qos::from(subscription.record.qos).reliability;
        if let Some(publication) = self.publications.get(&Gid(flow.publisher)) {
            let far = self.far(host, subscription.peer);
            return Some(publication.traits(far, reliability, &host.policy()));
        }
        let publisher = self.endpoints.get(&Gid(flow.publisher))?;
        let far = self.far(host, publisher.peer);
        let record = &publisher.record;
        Some(publication::traits_of_another(
            &record.topic,
            &record.type_name,
            far,
            reliability,
            &host.policy(),
        ))
    }

    /// Where a process is, and whose it is.
    fn far(&self, host: &Host, peer: PeerId) -> Far {
        let scope = match () {
            () if peer == host.id => Scope::Intra,
            () if self.links.is_near(peer) => Scope::Local,
            () => Scope::Remote,
        };
        Far { scope, peer: self.outside.peer(peer) }
    }

    fn offers(&self, host: &Host, flow: Flow) -> Vec<Offer> {
        let publication = self.publications.get(&Gid(flow.publisher));
        let peer_of = |gid| self.endpoints.get(&gid).map(|known| known.peer);
        let far_end = if publication.is_some() { flow.subscription } else { flow.publisher };
        let peer = peer_of(Gid(far_end)).unwrap_or_default();
        let publisher = self.endpoints.get(&Gid(flow.publisher));
        let role = publisher.map_or(Role::Topic, |it| it.record.role);
        let excluded = self.flows.get(&flow).map_or(&[][..], |route| &route.excluded);
        let mut offers: Vec<Offer> = Vec::new();
        for transport in host.transports() {
            let id = transport.id();
            let mut offer = Offer::new(id.clone(), transport.capability());
            offer.readers = publication.map_or(0, |it| it.readers_on(&id));
            if let Some(wire) = transport.wire().filter(|_| host.speaks()) {
                offer.peers = wire.peers();
            }
            let refused = excluded.iter().find(|(it, _)| *it == id).map(|(_, refusal)| refusal);
            if let Some(trouble) = transport.trouble() {
                offer.health = Health::Exhausted(trouble.into());
            } else if let Some(Refusal { reason, is_passing }) = refused {
                let health = if *is_passing { Health::Exhausted } else { Health::Failed };
                offer.health = health(reason.as_str().into());
            } else if let Some(obstacle) = self.obstacle(host, peer, role, &offer) {
                offer.health = Health::Failed(obstacle.into());
            }
            offers.push(offer);
        }
        // Those that do not work at all are named with the reason.
        let failed = host.failed().iter().map(|it| Offer {
            health: Health::Failed(it.reason.as_str().into()),
            ..Offer::new(it.transport.clone(), Capability::ANYTHING)
        });
        offers.extend(failed);
        offers
    }

    /// What keeps a transport from reaching this process, if it could as far as its scopes go.
    fn obstacle(&self, host: &Host, peer: PeerId, role: Role, offer: &Offer) -> Option<String> {
        let scope = self.far(host, peer).scope;
        if peer == host.id || !offer.capability.scopes.contains(scope) {
            return None;
        }
        if self.outside.is_plain(peer) {
            let is_second = host.is_second(&offer.transport);
            return self.outside.obstacle(peer, &offer.transport, is_second, role);
        }
        self.links.obstacle(peer, &offer.transport)
    }

    /// Opens the subscription's end, which lives here.
    fn accept(
        &mut self,
        host: &Host,
        peer: PeerId,
        flow: Flow,
        epoch: Epoch,
        transport: &str,
    ) -> Result<Ticket, Refusal> {
        let (publisher, subscription) = (Gid(flow.publisher), Gid(flow.subscription));
        let reception = self.receptions.get(&subscription);
        let reception = reception.ok_or_else(|| Refusal::lasting("the subscription is gone"))?;
        let transport = host.transport(transport);
        let transport =
            transport.ok_or_else(|| Refusal::lasting("not in the subscription's build"))?;
        let offered = self.endpoints.get(&publisher).map(|known| known.record.qos.into());
        let offered = offered.unwrap_or(Qos::DEFAULT);
        Ok(reception.accept(transport, peer, publisher, epoch, &offered)?)
    }

    /// Opens the publisher's end, which lives here; answers nothing when it is to be gone on with.
    fn connect(
        &mut self,
        host: &Host,
        flow: Flow,
        id: &TransportId,
        reached: Reached<'_>,
    ) -> Result<Joining, Refusal> {
        let publication = self.publications.get(&Gid(flow.publisher));
        let publication = publication.ok_or_else(|| Refusal::lasting("the publisher is gone"))?;
        let asks = self.endpoints.get(&Gid(flow.subscription)).map(|known| &known.record);
        let asks = asks.ok_or_else(|| Refusal::lasting("the subscription is gone"))?;
        let transport: &Arc<dyn Transport> =
            host.transport(id.as_str()).ok_or_else(|| Refusal::lasting("not in this build"))?;
        let reception = self.receptions.get(&Gid(flow.subscription));
        let value_type = reception.and_then(|reception| reception.value_type);
        let is_urgent = self.flows.get(&flow).is_some_and(Route::is_bad);
        let (qos, partner) = (asks.qos.into(), Gid(asks.partner));
        let asking = Asking { qos, value_type, partner, is_urgent };
        let joined = publication.connect(transport, reached, &asking);
        let joined =
            joined.inspect_err(|_| publication.disconnect_from(id, Gid(flow.subscription)))?;
        if let Joining::Connected(connected) = joined {
            if connected.ends.is_none() {
                publication.events.push(PublisherEvent::Matched { current: publication.readers() });
            }
            self.carried(flow, connected.ends.is_none().then_some(connected.published_before));
        }
        Ok(joined)
    }

    fn exclude_and_try_again(
        &mut self,
        host: &Host,
        flow: Flow,
        id: TransportId,
        refusal: Refusal,
    ) {
        let Some(route) = self.flows.get_mut(&flow) else { return };
        if !self.retries.contains_key(&flow) {
            tracing::warn!(transport = %id, reason = refusal.reason, "a road could not be opened");
        }
        if route.course.opening() == Some(&id) {
            route.course.withdraw();
        }
        let why = route.opening.take().map_or_else(|| NOT_TO_BE_HAD.to_owned(), |it| it.why);
        route.excluded.push((id, refusal));
        self.find_road(host, flow, &why);
    }

    fn end_flow(&mut self, host: &Host, flow: Flow) {
        let Some(route) = self.flows.remove(&flow) else { return };
        self.retries.remove(&flow);
        let (publisher, subscription) = (Gid(flow.publisher), Gid(flow.subscription));
        let Some(publication) = self.publications.get(&publisher) else {
            // It is a plain node's.
            return self.closed(host, flow);
        };
        if let Some(id) = route.course.opening() {
            publication.disconnect_from(id, subscription);
        }
        if route.course.standing().is_some() {
            publication.disconnect(subscription);
            publication.events.push(PublisherEvent::Matched { current: publication.readers() });
        }
        self.close_far_end(host, flow, route.course.last().0);
        self.regroup(host, flow);
    }

    /// The subscription's end of this road gets nothing any more.
    fn close_far_end(&mut self, host: &Host, flow: Flow, epoch: u32) {
        self.say(host, flow.subscription, Control::Closed { flow, epoch });
    }

    /// The number of the road that was offered last.
    fn epoch(&self, flow: Flow) -> u32 {
        self.flows.get(&flow).map_or(0, |route| route.course.last().0)
    }

    /// Lets a transport that connects processes connect this one with itself.
    fn meet_self(&mut self, host: &Host, id: &TransportId) -> Result<(), Refusal> {
        if self.met_self.contains(id) {
            return Ok(());
        }
        let transport =
            host.transport(id.as_str()).ok_or_else(|| Refusal::lasting("not in this build"))?;
        let met = transport
            .greeting(host.id)
            .and_then(|greeting| transport.meet(host.id, greeting))
            .and_then(|answer| transport.confirm(host.id, &answer));
        met.map_err(Error::from)?;
        self.met_self.push(id.clone());
        Ok(())
    }
}

/// What stands at the other end of a publication or a reception of this role.
fn counterpart(role: Role, is_publication: bool) -> &'static str {
    match (role, is_publication) {
        (Role::Topic, true) => "a subscription",
        (Role::Topic, false) => "a publisher",
        (Role::Request, true) | (Role::Reply, false) => "a server",
        (Role::Request, false) | (Role::Reply, true) => "a client",
    }
}

/// What of type, or else of QoS, does not fit.
fn mismatches(offers: &EndpointRecord, asks: &EndpointRecord) -> Vec<String> {
    if let Some(mismatch) = type_mismatch(offers.ty(), asks.ty()) {
        return vec![mismatch];
    }
    let checked = rxo::check(&offers.qos.into(), &asks.qos.into());
    checked.err().into_iter().flatten().map(|it| it.to_string()).collect()
}

/// An endpoint of this process, as others see it.
fn record(endpoint: &EndpointCore, is_publisher: bool) -> EndpointRecord {
    EndpointRecord {
        gid: endpoint.gid.0,
        node: endpoint.node.0,
        is_publisher,
        role: endpoint.role,
        partner: endpoint.partner.0,
        topic: endpoint.topic.clone(),
        type_name: endpoint.type_name.clone(),
        type_hash: endpoint.type_hash.clone(),
        qos: endpoint.qos.into(),
    }
}

/// How long a transport may take to reach the other end of a flow.
const OPENING_MAX: Duration = Duration::from_secs(5);
/// The same while nothing goes to it, nor to others.
const OPENING_MAX_BROKEN: Duration = Duration::from_secs(1);
/// Decisions about a flow with a plain node, two for each try, after which it is not tried again.
const PLAIN_EPOCHS_MAX: u32 = 6;
/// How long a road that must show that it carries is waited for. After so long without a sample both
/// ends have said to each other what they need.
const TRIAL_MAX: Duration = Duration::from_millis(250);
/// What set a decision off that nobody else did.
const NOT_TO_BE_HAD: &str = "a road was not to be had";
/// How soon a flow without a route is decided again.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(10);
/// Beyond so many, endpoints of other processes are not taken note of.
const ENDPOINTS_MAX: usize = 200_000;
/// Beyond so many, strangers are only logged.
const STRANGERS_MAX: usize = 100;
/// Beyond so many, nodes of other processes are not taken note of.
const NODES_MAX: usize = 50_000;
