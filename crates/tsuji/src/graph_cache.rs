//! Who is there and who matches whom.
//!
//! This file keeps tables. Which link each flow has is decided by the core's [`Flows`], whose actions `acting.rs` does; what
//! must be said to other processes is left in the outboxes of their channels, which the control thread sends.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tsuji_core::flows::{Ends, Event, Flows, Way};
use tsuji_core::handover::{Cut, Epoch};
use tsuji_core::{Durability, Liveliness, Policy, Qos, TransportId, rxo};
use tsuji_platform::clock;
use tsuji_transport::deferred::told;
use tsuji_transport::{Address, Gid, PeerId};

use crate::Error;
use crate::control::channel::Channels;
use crate::control::listening::JoinState;
use crate::control::protocol::{Control, EndpointRecord, Flow, NodeRecord, Refusal};
use crate::control::watching::WatchWord;
use crate::dirty::PendingEndpoints;
use crate::endpoint::{Audience, EndpointCore};
use crate::engines::ProcessEngines;
use crate::events::{PublisherEvent, SubscriptionEvent};
use crate::graph::{Role, RouteHalf, RouteState, UnreachablePeer, type_mismatch};
use crate::pacing::FullPass;
use crate::publisher_core::PublisherCore;
use crate::registry::WireEngines;
use crate::session::Session;
use crate::subscription_core::SubscriptionCore;
use foreign::Foreign;
use trace_file::TraceFile;

mod acting;
mod engines;
mod facts;
mod filters;
mod foreign;
mod pins;
mod report;
mod second_engine;
mod trace_file;

/// The tables of one participant.
#[derive(Default)]
pub(crate) struct GraphCache {
    pub(crate) channels: Channels,
    nodes: HashMap<Gid, Known<NodeRecord>>,
    endpoints: HashMap<Gid, Known<EndpointRecord>>,
    /// Those of others that their permissions do not allow.
    ignored: HashMap<Gid, Known<EndpointRecord>>,
    topics: HashMap<String, Vec<Gid>>,
    publisher_cores: HashMap<Gid, Arc<PublisherCore>>,
    subscription_cores: HashMap<Gid, Arc<SubscriptionCore>>,
    /// Flows whose publisher lives here, or is a foreign node's.
    flows: Flows,
    /// Endpoints of this process that the control thread is to check.
    pending: PendingEndpoints,
    /// A check of all of them: a transport does not say in which something happened.
    full_check: FullPass,
    /// The transports with events since.
    transports_with_events: BTreeSet<TransportId>,
    /// Publishers whose readers go over to another engine.
    changing_engines: BTreeSet<Gid>,
    /// What the flows want done is being done.
    is_acting: bool,
    /// Where what they are told and decide is written, if that is asked for.
    trace: Option<TraceFile>,
    /// Who is on the wires.
    pub(crate) foreign: Foreign,
    /// Where memory is preferred, how the wires of the transports were met.
    pub(crate) join_states: HashMap<TransportId, JoinState>,
    /// Why the wires of transports could not be joined, until they are.
    pub(crate) join_troubles: HashMap<TransportId, String>,
    /// How often the network of this host has changed.
    pub(crate) network_changes: u64,
    /// Transports on which this process has met itself.
    met_self: Vec<TransportId>,
    pub(crate) unreachable_peers: Vec<UnreachablePeer>,
    /// Answers to questions that are under way.
    pub(crate) answers: HashMap<u64, Answers>,
    pub(crate) questions: u64,
    /// What other processes of this host have said of watching, until the control thread has taken it.
    pub(crate) watch_words: Vec<(PeerId, WatchWord)>,
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

impl GraphCache {
    /// Nothing is known yet.
    pub(crate) fn new(policy: Arc<Policy>, engines: Option<WireEngines>) -> Self {
        let trace = TraceFile::begin(&policy, engines.as_ref());
        Self { flows: Flows::new(policy, engines), trace, ..Self::default() }
    }

    pub(crate) fn add_node(&mut self, session: &Session, mut record: NodeRecord) {
        // It is known here too by its name outside, which no other has.
        record.namespace = session.outward().namespace(&record.namespace).into_owned();
        self.channels.broadcast(&Control::Node(record.clone()));
        self.know_node(session, session.id, record);
        self.foreign.graph_changed(session);
    }

    pub(crate) fn remove_node(&mut self, session: &Session, gid: Gid) {
        self.channels.broadcast(&Control::NodeGone(gid.0));
        self.nodes.remove(&gid);
        session.graph_changed();
        self.foreign.graph_changed(session);
    }

    pub(crate) fn add_publisher_core(
        &mut self,
        session: &Session,
        publisher_core: &Arc<PublisherCore>,
    ) {
        let record = record(publisher_core, true);
        // The policy may have changed since it was made.
        publisher_core.set_size_line(session.policy().size_line_bytes());
        self.publisher_cores.insert(publisher_core.gid, Arc::clone(publisher_core));
        self.pending.add(publisher_core.gid);
        self.take_over_keys(session, publisher_core, true);
        self.show_publisher_core(session, publisher_core);
        self.add_local(session, record);
        if let Some(outside) = publisher_core.outside() {
            self.add_publisher_core(session, outside);
        }
    }

    pub(crate) fn add_subscription_core(
        &mut self,
        session: &Session,
        subscription_core: &Arc<SubscriptionCore>,
    ) {
        let record = record(subscription_core, false);
        self.subscription_cores.insert(subscription_core.gid, Arc::clone(subscription_core));
        self.pending.add(subscription_core.gid);
        self.take_over_keys(session, subscription_core, false);
        self.show_subscription_core(session, subscription_core);
        self.add_local(session, record);
    }

    /// Forgets an endpoint of this process, if it is not forgotten yet.
    pub(crate) fn remove_local(&mut self, session: &Session, gid: Gid) {
        if !self.publisher_cores.contains_key(&gid) && !self.subscription_cores.contains_key(&gid) {
            return;
        }
        self.forget_endpoint(session, gid);
        // Not before: whoever hears of it takes the memory back that the flows were written to.
        self.channels.broadcast(&Control::EndpointGone(gid.0));
        self.pending.remove(gid);
        self.changing_engines.remove(&gid);
        if let Some(publisher_core) = self.publisher_cores.remove(&gid) {
            publisher_core.close();
            if let Some(outside) = publisher_core.outside() {
                self.remove_local(session, outside.gid);
            }
        }
        if let Some(subscription_core) = self.subscription_cores.remove(&gid) {
            subscription_core.close();
        }
        self.foreign.graph_changed(session);
    }

    pub(crate) fn know_node(&mut self, session: &Session, peer: PeerId, mut record: NodeRecord) {
        if let Some(proved) = self.channels.proved(peer) {
            // By its own word it could be of any other.
            let subject = proved.certificate().subject();
            if subject.strip_prefix("CN=") != Some(&record.enclave) {
                subject.clone_into(&mut record.enclave);
            }
        }
        let known = self.nodes.get(&Gid(record.gid)).map(|it| it.peer);
        if known.is_none() && NODES_MAX <= self.nodes.len() {
            return self.too_many(peer, &format!("nodes; at most {NODES_MAX} are known"));
        }
        if known.is_none_or(|it| it == peer) {
            self.nodes.insert(Gid(record.gid), Known { record, peer });
            session.graph_changed();
        }
    }

    /// A node of `peer` is gone.
    pub(crate) fn node_gone(&mut self, session: &Session, peer: PeerId, gid: Gid) {
        if self.nodes.get(&gid).is_some_and(|known| known.peer == peer) {
            self.nodes.remove(&gid);
            session.graph_changed();
        }
    }

    /// Whether this endpoint is known, and of `peer`.
    pub(crate) fn lives_in(&self, endpoint: Gid, peer: PeerId) -> bool {
        self.endpoints.get(&endpoint).is_some_and(|known| known.peer == peer)
    }

    /// Takes note of an endpoint, and matches it if its process has been met.
    pub(crate) fn know_endpoint(
        &mut self,
        session: &Session,
        peer: PeerId,
        record: EndpointRecord,
    ) {
        let gid = Gid(record.gid);
        if self.endpoints.contains_key(&gid) {
            return;
        }
        if ENDPOINTS_MAX <= self.endpoints.len() + self.ignored.len() {
            return self.too_many(peer, &format!("endpoints; at most {ENDPOINTS_MAX} are known"));
        }
        if let Err(error) = Qos::from(record.qos).validate() {
            told::warn!(topic = %record.topic, %error, "an endpoint of another process is ignored");
            return;
        }
        if let Some(why) = self.denied_by_permissions(session, peer, &record) {
            if self.ignored.insert(gid, Known { record, peer }).is_none() {
                let topic = &self.ignored[&gid].record.topic;
                told::warn!(%topic, why, "an endpoint of another process is ignored");
            }
            return;
        }
        self.topics.entry(record.topic.clone()).or_default().push(gid);
        self.endpoints.insert(gid, Known { record, peer });
        session.graph_changed();
        if peer == session.id || self.is_reachable(peer) {
            self.match_endpoint(session, gid);
        }
    }

    /// Another process has proved again who it is, maybe with other permissions: what they do not allow is forgotten, and
    /// what was ignored until now is known.
    pub(crate) fn apply_permissions(&mut self, session: &Session, peer: PeerId) {
        let theirs = self.endpoints.iter().filter(|(_, known)| known.peer == peer);
        let theirs: Vec<_> = theirs.map(|(gid, known)| (*gid, known.record.clone())).collect();
        for (gid, record) in theirs {
            if let Some(why) = self.denied_by_permissions(session, peer, &record) {
                told::warn!(topic = %record.topic, why, "an endpoint of another process is ignored from now on");
                self.forget_endpoint(session, gid);
                self.ignored.insert(gid, Known { record, peer });
            }
        }
        let ignored = self.ignored.iter().filter(|(_, known)| known.peer == peer);
        let allowed = ignored
            .filter(|(_, it)| self.denied_by_permissions(session, peer, &it.record).is_none());
        for gid in allowed.map(|(gid, _)| *gid).collect::<Vec<_>>() {
            let record = self.ignored.remove(&gid).map(|known| known.record);
            record.into_iter().for_each(|record| self.know_endpoint(session, peer, record));
        }
    }

    /// Why another process may not say what carries a topic, where this one is secured: it may neither publish nor subscribe.
    pub(crate) fn denial_of_pin(
        &self,
        session: &Session,
        peer: PeerId,
        topic: &str,
    ) -> Option<String> {
        let security = session.security()?;
        let Some(proved) = self.channels.proved(peer) else {
            return Some("it is not proved who asks".to_owned());
        };
        let topic = session.outward().topic(topic);
        let ways = [true, false].map(|it| security.denial(proved, Role::Topic, it, &topic));
        let calls = [true, false].map(|it| security.denial(proved, Role::Request, it, &topic));
        let denials: Option<Vec<String>> = ways.into_iter().chain(calls).collect();
        denials.and_then(|it| it.into_iter().next())
    }

    /// An endpoint of another process is gone that its permissions did not allow.
    pub(crate) fn forget_ignored(&mut self, gid: Gid, peer: PeerId) {
        if self.ignored.get(&gid).is_some_and(|known| known.peer == peer) {
            self.ignored.remove(&gid);
        }
    }

    /// Why the permissions of another process do not allow an endpoint that it tells of, where this one is secured.
    fn denied_by_permissions(
        &self,
        session: &Session,
        peer: PeerId,
        record: &EndpointRecord,
    ) -> Option<String> {
        // What a foreign one may have its engine has asked.
        let is_asked = peer == session.id || self.foreign.is_foreign(peer);
        let security = session.security().filter(|_| !is_asked)?;
        match self.channels.proved(peer) {
            Some(proved) => {
                let topic = session.outward().topic(&record.topic);
                security.denial(proved, record.role, record.is_publisher, &topic)
            }
            None => Some("it is not proved who has it".to_owned()),
        }
    }

    /// Whether flows can begin to and from this process.
    fn is_reachable(&self, peer: PeerId) -> bool {
        self.channels.is_met(peer)
            || (self.foreign.is_foreign(peer) && !self.foreign.is_awaited(peer))
    }

    /// A process has been met: what is known of it can be matched now.
    pub(crate) fn match_peer(&mut self, session: &Session, peer: PeerId) {
        let theirs = self.endpoints.iter().filter(|(_, known)| known.peer == peer);
        let theirs: Vec<Gid> = theirs.map(|(gid, _)| *gid).collect();
        theirs.into_iter().for_each(|gid| self.match_endpoint(session, gid));
    }

    pub(crate) fn forget_endpoint(&mut self, session: &Session, gid: Gid) {
        let Some(known) = self.endpoints.remove(&gid) else { return };
        session.graph_changed();
        let topic = &known.record.topic;
        if let Some(endpoints) = self.topics.get_mut(topic) {
            endpoints.retain(|it| *it != gid);
            if endpoints.is_empty() {
                self.topics.remove(topic);
            }
        }
        self.handle_flow_event(session, Event::EndpointGone(gid.0));
        self.foreign.graph_changed(session);
        if known.record.is_publisher {
            let here = self.topics.get(&known.record.topic).into_iter().flatten();
            let here = here.filter_map(|it| self.subscription_cores.get(it));
            for subscription_core in here.cloned().collect::<Vec<_>>() {
                self.forget_writer(session, &subscription_core, gid, Gid(known.record.partner));
            }
        }
    }

    /// This publisher sends nothing more to `subscription_core`. If it is a server's, whose other half is
    /// `partner`, it cannot answer the client any more.
    fn forget_writer(
        &mut self,
        session: &Session,
        subscription_core: &SubscriptionCore,
        gid: Gid,
        partner: Gid,
    ) {
        subscription_core.forget(gid);
        if subscription_core.role == Role::Reply {
            let replies = Flow::new(subscription_core.partner, partner);
            self.handle_flow_event(session, Event::Ended(replies));
        }
    }

    /// A process is gone: so is all that lived in it.
    pub(crate) fn forget_peer(&mut self, session: &Session, peer: PeerId) {
        self.nodes.retain(|_, known| known.peer != peer);
        self.ignored.retain(|_, known| known.peer != peer);
        session.graph_changed();
        let theirs = self.endpoints.iter().filter(|(_, known)| known.peer == peer);
        for gid in theirs.map(|(gid, _)| *gid).collect::<Vec<_>>() {
            self.forget_endpoint(session, gid);
        }
        for answers in self.answers.values_mut() {
            answers.waiting.retain(|it| *it != peer);
        }
    }

    /// A publisher elsewhere wants this end of a flow opened.
    pub(crate) fn offered(
        &mut self,
        session: &Session,
        peer: PeerId,
        flow: Flow,
        epoch: u32,
        transport: &str,
    ) {
        let address = if self.lives_in(Gid(flow.publisher), peer) {
            self.accept(session, peer, flow, Epoch(epoch), transport).map(|address| address.bytes)
        } else {
            Err(Refusal::lasting("the publisher is not known"))
        };
        self.channels.send(peer, &Control::Answer { flow, epoch, address });
    }

    /// The subscription's process has opened its end, or says why not.
    pub(crate) fn answered(
        &mut self,
        session: &Session,
        peer: PeerId,
        flow: Flow,
        epoch: u32,
        address: Result<Vec<u8>, Refusal>,
    ) {
        let known = self.endpoints.get(&Gid(flow.subscription));
        if known.is_some_and(|it| it.peer == peer) {
            self.handle_flow_event(session, Event::Answered { flow, epoch, address });
        }
    }

    /// Says a word about a flow to the process of one of its ends, which may be this one.
    fn say(&mut self, session: &Session, end: [u8; 16], word: Control) {
        match self.endpoints.get(&Gid(end)).map(|known| known.peer) {
            Some(peer) if peer == session.id => self.hear(session, word),
            Some(peer) => self.channels.send(peer, &word),
            None => (),
        }
    }

    /// Does what the other end of a flow says of it.
    pub(crate) fn hear(&mut self, session: &Session, word: Control) {
        match word {
            Control::Cut { flow, epoch, ends, first } => {
                self.cut(session, flow, epoch, ends, Some(first));
            }
            Control::Done { flow, epoch, held } => {
                self.handle_flow_event(session, Event::Done { flow, epoch, held });
            }
            Control::Shown { flow, epoch } => {
                self.handle_flow_event(session, Event::Shown { flow, epoch })
            }
            Control::Withdrawn { flow, epoch } => self.withdrawn(flow, epoch),
            Control::Closed { flow, .. } => self.closed(session, flow),
            Control::Displaced { flow, total } => {
                if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
                    publisher_core.note_displaced(Gid(flow.subscription), total);
                }
            }
            Control::Filter { flow, filter } => self.heard_filter(flow, filter.as_ref()),
            // The others are answered, or are not about a flow that is there.
            _ => (),
        }
    }

    /// Goes on with the flows that this transport is opening, and has all endpoints of this process be checked.
    pub(crate) fn go_on(&mut self, session: &Session, transport: &TransportId) {
        self.handle_flow_event(session, Event::GoOn(transport.clone()));
        self.full_check.want();
        self.transports_with_events.insert(transport.clone());
    }

    /// Checks all endpoints of this process in this turn, where that is due.
    fn begin_full_check(&mut self, session: &Session) {
        if !self.full_check.begin(clock::monotonic_ns()) {
            return;
        }
        for transport in std::mem::take(&mut self.transports_with_events) {
            let lost = self.publisher_cores.iter().flat_map(|(gid, publisher_core)| {
                let lost = publisher_core.lost_on(&transport).into_iter();
                lost.map(|reader| Flow::new(*gid, reader))
            });
            for flow in lost.collect::<Vec<_>>() {
                let transport = transport.clone();
                self.handle_flow_event(session, Event::ReaderLost { flow, transport });
            }
        }
        let all = self.publisher_cores.keys().chain(self.subscription_cores.keys());
        all.for_each(|gid| self.pending.add(*gid));
    }

    /// How many endpoints this process has.
    fn own_endpoints(&self) -> usize {
        self.publisher_cores.len() + self.subscription_cores.len()
    }

    /// A link that was opened here is not wanted after all.
    fn withdrawn(&mut self, flow: Flow, epoch: u32) {
        if let Some(subscription_core) = self.subscription_cores.get(&Gid(flow.subscription)) {
            subscription_core.withdraw(Gid(flow.publisher), Epoch(epoch));
        }
    }

    /// Does what publishers and subscriptions of this process have come upon.
    pub(crate) fn mend(&mut self, session: &Session) {
        self.begin_full_check(session);
        let Self { publisher_cores, subscription_cores, pending, .. } = &mut *self;
        let clear = |gid| clear_dirty(publisher_cores, subscription_cores, gid);
        let pending = pending.collect(&session.dirty_endpoints, clear);
        let publisher_cores = pending.iter().filter_map(|gid| self.publisher_cores.get(gid));
        if session.wire_engines().is_some() {
            let changing = publisher_cores.clone().filter(|it| it.is_changing_engine());
            self.changing_engines.extend(changing.map(|it| it.gid));
        }
        let news = publisher_cores.filter_map(|it| Some((it.gid.0, it.take_news()?)));
        for (publisher, news) in news.collect::<Vec<_>>() {
            for trouble in news.troubles {
                self.handle_flow_event(session, Event::Trouble { publisher, trouble });
            }
            if let Some(why) = news.doubt {
                let why = why.to_owned();
                self.handle_flow_event(session, Event::PublisherDoubted { publisher, why });
            }
        }
        self.go_on_changing_engines(session);
        let subscription_cores = pending.iter().filter_map(|gid| self.subscription_cores.get(gid));
        let now_ns = clock::monotonic_ns();
        subscription_cores.clone().for_each(|it| it.drain_old_links(now_ns));
        let news = subscription_cores.filter_map(|it| Some((it.gid, it.take_handover_events()?)));
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

    /// From here on a link of this epoch carries; the one before brings nothing from `ends` on.
    pub(crate) fn cut(
        &mut self,
        session: &Session,
        flow: Flow,
        epoch: u32,
        ends: Option<u64>,
        first: Option<u64>,
    ) {
        let Some(subscription_core) = self.subscription_cores.get(&Gid(flow.subscription)) else {
            return;
        };
        if let Some((ends, first)) = ends.zip(first) {
            return subscription_core
                .change(Gid(flow.publisher), Cut { epoch: Epoch(epoch), ends, first });
        }
        subscription_core.cut(Gid(flow.publisher), first);
        if subscription_core.role == Role::Reply
            && let Some(server) = self.endpoints.get(&Gid(flow.publisher))
        {
            // Now that it can answer, it may be asked.
            let requests = Flow::new(subscription_core.partner, Gid(server.record.partner));
            self.match_flow(session, requests);
        }
    }

    pub(crate) fn closed(&mut self, session: &Session, flow: Flow) {
        let Some(subscription_core) = self.subscription_cores.get(&Gid(flow.subscription)).cloned()
        else {
            return;
        };
        let publisher = Gid(flow.publisher);
        let partner = self.endpoints.get(&publisher).map(|known| Gid(known.record.partner));
        self.forget_writer(session, &subscription_core, publisher, partner.unwrap_or_default());
    }

    fn go_on_changing_engines(&mut self, session: &Session) {
        for publisher in self.changing_engines.clone() {
            let publisher_core = self.publisher_cores.get(&publisher);
            if publisher_core.is_some_and(|it| it.is_changing_engine()) {
                self.handle_flow_event(session, Event::EngineChanging(publisher.0));
            } else {
                self.changing_engines.remove(&publisher);
            }
        }
    }

    /// What keeps each server of this service from answering the client that these are the halves of.
    pub(crate) fn obstacles(&self, session: &Session, requests: Gid, replies: Gid) -> Vec<String> {
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
            mismatches.extend(self.foreign.other_mapping(known.peer));
            Some((server, mismatches))
        });
        let mut obstacles: Vec<String> = servers
            .filter(|(_, mismatches)| !mismatches.is_empty())
            .map(|(server, mismatches)| {
                let node = self.node_name(Gid(server.node));
                format!("{}: {}", session.outward().node_here(&node), mismatches.join("; "))
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
            if let Some(subscription_core) = self.subscription_cores.get(gid) {
                subscription_core.alive(publisher);
            }
        }
    }

    /// Says to all subscriptions that a publisher is alive.
    pub(crate) fn assert_alive(&mut self, publisher: Gid) {
        self.alive(publisher);
        self.channels.broadcast(&Control::Alive(publisher.0));
    }

    /// What a new process is told, which is outside or not.
    pub(crate) fn introduction(&self, session: &Session, is_outside: bool) -> Vec<Control> {
        let nodes = self.nodes.values().filter(|known| known.peer == session.id);
        let endpoints = self.endpoints.values().filter(|known| known.peer == session.id);
        let nodes = nodes.map(|known| Control::Node(known.record.clone()));
        let endpoints = endpoints.filter(|it| self.audience(Gid(it.record.gid)).has(|| is_outside));
        let endpoints = endpoints.map(|known| Control::Endpoint(known.record.clone()));
        nodes.chain(endpoints).chain(self.told_pins()).chain([Control::Settled]).collect()
    }

    /// What a process has beyond a limit is left out, and it is said so.
    fn too_many(&mut self, peer: PeerId, what: &str) {
        let (path, reason) = (peer.to_string(), format!("it brings too many {what}"));
        let unreachable_peer = UnreachablePeer { path, reason };
        if !self.unreachable_peers.contains(&unreachable_peer)
            && self.unreachable_peers.len() < UNREACHABLE_PEERS_MAX
        {
            told::warn!(peer = %unreachable_peer.path, reason = %unreachable_peer.reason, "left out");
            self.note_unreachable_peer(unreachable_peer);
        }
    }

    /// Remembers a process that could not be met, to be shown.
    pub(crate) fn note_unreachable_peer(&mut self, unreachable_peer: UnreachablePeer) {
        told::debug!(path = %unreachable_peer.path, reason = %unreachable_peer.reason, "an unreachable_peer");
        if self.is_new_unreachable_peer(&unreachable_peer) {
            self.unreachable_peers.push(unreachable_peer);
        }
    }

    /// Whether this was not noted before, and there is room for it.
    pub(crate) fn is_new_unreachable_peer(&self, unreachable_peer: &UnreachablePeer) -> bool {
        !self.unreachable_peers.contains(unreachable_peer)
            && self.unreachable_peers.len() < UNREACHABLE_PEERS_MAX
    }

    /// Whoever has its socket at `path` has been met after all.
    pub(crate) fn forget_unreachable_peer(&mut self, path: &str) {
        self.unreachable_peers.retain(|unreachable_peer| unreachable_peer.path != path);
    }

    /// When [`on_time`](Self::on_time) wants to be called, on the monotonic clock.
    pub(crate) fn due_ns(&mut self, session: &Session) -> Option<u64> {
        let Self { publisher_cores, subscription_cores, pending, .. } = &mut *self;
        let check = |gid| match publisher_cores.get(&gid) {
            Some(it) => (it.due_ns(), it.has_news()),
            None => match subscription_cores.get(&gid) {
                Some(it) => (it.due_ns(), it.has_news()),
                None => (None, false),
            },
        };
        let clear = |gid| clear_dirty(publisher_cores, subscription_cores, gid);
        pending.update_due_times(&session.dirty_endpoints, clear, check);
        let endpoints = self.own_endpoints();
        self.full_check.end(clock::monotonic_ns(), endpoints);
        let flows = self.flows.poll_timeout().into_iter();
        let channels = self.channels.due_ns().into_iter().chain(self.second_due_ns());
        let channels = channels.chain(self.ask_due_ns()).chain(self.tell_due_ns());
        let channels = channels.chain(self.full_check.due_ns());
        flows.chain(channels).chain(self.pending.due_times.first_ns()).min()
    }

    pub(crate) fn on_time(&mut self, session: &Session, now_ns: u64) {
        for gid in self.pending.due_times.take(now_ns) {
            // When it is due again is asked before this thread sleeps.
            self.pending.add(gid);
            if let Some(publisher_core) = self.publisher_cores.get(&gid) {
                publisher_core.on_time(now_ns);
            } else if let Some(subscription_core) = self.subscription_cores.get(&gid) {
                subscription_core.on_time(now_ns);
            }
        }
        if self.flows.poll_timeout().is_some_and(|due_ns| due_ns <= now_ns) {
            self.handle_flow_event(session, Event::Timeout);
        }
        self.end_waits_for_second(session, now_ns);
        self.ask_for_nodes(session, now_ns);
    }

    /// Wakes those who wait for room, to find the end.
    pub(crate) fn wake_publishers(&self) {
        self.publisher_cores.values().for_each(|it| it.wake());
    }

    /// How many subscriptions a publisher of this process has.
    pub(crate) fn readers(&self, publisher: Gid) -> usize {
        self.publisher_cores.get(&publisher).map_or(0, |it| it.readers())
    }

    /// How many publishers a subscription of this process has.
    pub(crate) fn writers(&self, subscription: Gid) -> usize {
        self.subscription_cores.get(&subscription).map_or(0, |it| it.writers())
    }

    /// Whether a client of an action may hear its feedback soon and does not yet: `client` is its publisher of goals. Its process
    /// is taken for one whose clients have a subscription to the feedback each.
    pub(crate) fn awaits_feedback(&self, session: &Session, client: Gid, feedback: &str) -> bool {
        let of_topic = |topic: &str| self.topics.get(topic).into_iter().flatten().copied();
        let Some(known) = self.endpoints.get(&client) else { return false };
        let publishers: Vec<Gid> =
            of_topic(feedback).filter(|it| self.publisher_cores.contains_key(it)).collect();
        // What is of this process is connected when it is made.
        if known.peer == session.id || publishers.is_empty() {
            return false;
        }
        let theirs = |topic, is_publisher| {
            of_topic(topic).filter(move |gid| {
                self.endpoints.get(gid).is_some_and(|it| {
                    it.peer == known.peer && it.record.is_publisher == is_publisher
                })
            })
        };
        let is_settled = |subscription: &Gid| {
            let flows = publishers.iter().map(|it| Flow::new(*it, *subscription));
            let mut routes = flows.filter_map(|flow| self.flows.get(flow));
            routes.any(|it| it.state != RouteState::Opening)
        };
        let goals = known.record.topic.as_str();
        theirs(feedback, false).filter(is_settled).count() < theirs(goals, true).count()
    }

    fn add_local(&mut self, session: &Session, record: EndpointRecord) {
        let audience = self.audience(Gid(record.gid));
        self.channels.broadcast_to(audience, &Control::Endpoint(record.clone()));
        self.know_endpoint(session, session.id, record);
        self.foreign.graph_changed(session);
    }

    /// For whom an endpoint of this process is.
    pub(super) fn audience(&self, gid: Gid) -> Audience {
        self.publisher_cores.get(&gid).map(|it| it.audience).unwrap_or_default()
    }

    /// Whether a process is on another host, of another robot, or none of tsuji.
    fn is_outside(&self, session: &Session, peer: PeerId) -> bool {
        peer != session.id && (self.foreign.is_foreign(peer) || self.channels.is_outside(peer))
    }

    /// Matches one endpoint with all others of its topic.
    fn match_endpoint(&mut self, session: &Session, gid: Gid) {
        let Some(known) = self.endpoints.get(&gid) else { return };
        let is_publisher = known.record.is_publisher;
        let others = self.topics.get(&known.record.topic).into_iter().flatten().copied();
        for other in others.collect::<Vec<_>>() {
            let flow = if is_publisher { Flow::new(gid, other) } else { Flow::new(other, gid) };
            self.match_flow(session, flow);
        }
    }

    fn match_flow(&mut self, session: &Session, flow: Flow) {
        let (publisher, subscription) = (Gid(flow.publisher), Gid(flow.subscription));
        let known = self.endpoints.get(&publisher).zip(self.endpoints.get(&subscription));
        let Some((offers, asks)) = known else { return };
        let is_mine = |known: &Known<EndpointRecord>| known.peer == session.id;
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
        let is_unwanted =
            || self.subscription_cores.get(&subscription).is_some_and(|it| it.ignores_local);
        let is_meant = || self.audience(publisher).has(|| self.is_outside(session, asks.peer));
        if self.flows.get(flow).is_some() || (is_mine(offers) && (is_unwanted() || !is_meant())) {
            return;
        }
        // What half a client or server says tells nothing of whether it can answer or be answered.
        let is_half = |it: &Known<EndpointRecord>| {
            it.record.role != Role::Topic && it.record.partner == [0; 16]
        };
        if is_half(offers) || is_half(asks) {
            return;
        }
        let mut mismatch = type_mismatch(offers.record.ty(), asks.record.ty());
        let mut mismatches = mismatches(&offers.record, &asks.record);
        if mismatch.is_none() {
            mismatch = self.facts(session).key_mismatch(publisher, subscription);
            mismatches.extend(mismatch.clone());
        }
        if offers.record.role != Role::Topic {
            let peers = [offers.peer, asks.peer].into_iter();
            mismatches.extend(peers.filter_map(|peer| self.foreign.other_mapping(peer)));
        }
        if mismatch.is_some() && offers.record.role == Role::Reply {
            // It is told of the requests.
            return;
        }
        if !mismatches.is_empty() {
            self.tell_mismatch(session, flow, mismatch, mismatches);
            return;
        }
        // A server is asked only when its reply will find its way.
        let partners = (Gid(offers.record.partner), Gid(asks.record.partner));
        let can_be_answered = || match self.subscription_cores.get(&partners.0) {
            Some(replies) => replies.hears(partners.1),
            None => self
                .flows
                .get(Flow::new(partners.1, partners.0))
                .is_some_and(|route| route.state == RouteState::Active),
        };
        let is_decided_here = self.is_decided_here(session, publisher);
        if is_decided_here && (offers.record.role != Role::Request || can_be_answered()) {
            let (topic, ends) =
                (Arc::from(&*offers.record.topic), self.ends(session, offers, asks));
            self.handle_flow_event(session, Event::Matched { flow, topic, ends });
        }
    }

    /// Whether flows of this publisher are decided in this process: its own, and those of foreign nodes
    /// to it.
    fn is_decided_here(&self, session: &Session, publisher: Gid) -> bool {
        let known = self.endpoints.get(&publisher);
        known.is_some_and(|it| it.peer == session.id || self.foreign.is_foreign(it.peer))
    }

    /// What the ends of a flow are that is decided here.
    fn ends(
        &self,
        session: &Session,
        offers: &Known<EndpointRecord>,
        asks: &Known<EndpointRecord>,
    ) -> Ends {
        let way = match () {
            () if self.foreign.is_foreign(offers.peer) => Way::FromForeign,
            () if self.foreign.is_foreign(asks.peer) => Way::ToForeign,
            () if asks.peer == session.id => Way::Here,
            () => Way::Peer,
        };
        let qos = Qos::from(offers.record.qos);
        Ends {
            role: offers.record.role,
            way,
            keeps: qos.durability == Durability::TransientLocal,
            is_manual: qos.liveliness == Liveliness::ManualByTopic,
        }
    }

    fn tell_mismatch(
        &mut self,
        session: &Session,
        flow: Flow,
        mismatch: Option<String>,
        mismatches: Vec<String>,
    ) {
        let (publisher, subscription) = (Gid(flow.publisher), Gid(flow.subscription));
        if let Some(publisher_core) = self.publisher_cores.get(&publisher) {
            let topic = &publisher_core.topic;
            if !publisher_core.is_heard() {
                let reason = mismatches.join("; ");
                told::warn!(%topic, reason, "{} does not fit", counterpart(publisher_core.role, true));
            }
            publisher_core.events.push(match &mismatch {
                Some(mismatch) => {
                    PublisherEvent::IncompatibleType { subscription, mismatch: mismatch.clone() }
                }
                None => {
                    PublisherEvent::IncompatibleQos { subscription, mismatches: mismatches.clone() }
                }
            });
        }
        let known = self.endpoints.get(&publisher).zip(self.endpoints.get(&subscription));
        if let Some((offers, asks)) = known
            && self.is_decided_here(session, publisher)
        {
            let (topic, ends) =
                (Arc::from(&*offers.record.topic), self.ends(session, offers, asks));
            let mismatches = mismatches.clone();
            self.handle_flow_event(session, Event::Mismatched { flow, topic, ends, mismatches });
        }
        if let Some(subscription_core) = self.subscription_cores.get(&subscription) {
            let topic = &subscription_core.topic;
            if !subscription_core.events.is_heard() {
                let reason = mismatches.join("; ");
                told::warn!(%topic, reason, "{} does not fit", counterpart(subscription_core.role, false));
            }
            subscription_core.events.push(match mismatch {
                Some(mismatch) => SubscriptionEvent::IncompatibleType { publisher, mismatch },
                None => SubscriptionEvent::IncompatibleQos { publisher, mismatches },
            });
        }
    }

    /// Opens the subscription's end, which lives here.
    fn accept(
        &mut self,
        session: &Session,
        peer: PeerId,
        flow: Flow,
        epoch: Epoch,
        transport: &str,
    ) -> Result<Address, Refusal> {
        let (publisher, subscription) = (Gid(flow.publisher), Gid(flow.subscription));
        let transport = session.transport(transport);
        // Also where it is refused: the publisher's side does so.
        if let Some(transport) = transport {
            self.meet_on_wire(&**transport, peer);
        }
        let subscription_core = self.subscription_cores.get(&subscription).cloned();
        let subscription_core =
            subscription_core.ok_or_else(|| Refusal::lasting("the subscription is gone"))?;
        let transport =
            transport.ok_or_else(|| Refusal::lasting("not in the subscription's build"))?;
        let offered = self.endpoints.get(&publisher).map(|known| &known.record);
        if offered.is_some_and(|it| {
            (it.is_publisher, &it.topic, it.role)
                != (true, &subscription_core.topic, subscription_core.role)
        }) {
            return Err(Refusal::lasting("the two ends are not of one topic"));
        }
        let offered = offered.map_or(Qos::DEFAULT, |it| it.qos.into());
        let address = subscription_core.accept(transport, peer, publisher, epoch, &offered)?;
        // Before it sends anything.
        self.tell_filter(session, flow, &subscription_core);
        Ok(address)
    }

    /// Lets a transport that connects processes connect this one with itself.
    fn meet_self(&mut self, session: &Session, id: &TransportId) -> Result<(), Refusal> {
        if self.met_self.contains(id) {
            return Ok(());
        }
        let transport =
            session.transport(id.as_str()).ok_or_else(|| Refusal::lasting("not in this build"))?;
        let met = transport
            .handshake(session.id)
            .and_then(|handshake| transport.meet(session.id, handshake))
            .and_then(|answer| transport.confirm(session.id, &answer));
        met.map_err(Error::from)?;
        self.met_self.push(id.clone());
        Ok(())
    }
}

/// Clears the mark of an endpoint of this process, before it is checked.
fn clear_dirty(
    publisher_cores: &HashMap<Gid, Arc<PublisherCore>>,
    subscription_cores: &HashMap<Gid, Arc<SubscriptionCore>>,
    gid: Gid,
) {
    if let Some(publisher_core) = publisher_cores.get(&gid) {
        publisher_core.clear_dirty();
    } else if let Some(subscription_core) = subscription_cores.get(&gid) {
        subscription_core.clear_dirty();
    }
}

/// What stands at the other end of a publisher core or a subscription core of this role.
fn counterpart(role: Role, is_publisher_core: bool) -> &'static str {
    match (role, is_publisher_core) {
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

/// Beyond so many, endpoints of other processes are not taken note of.
const ENDPOINTS_MAX: usize = 200_000;
/// Beyond so many, unreachable peers are only logged.
const UNREACHABLE_PEERS_MAX: usize = 100;
/// Beyond so many, nodes of other processes are not taken note of.
const NODES_MAX: usize = 50_000;
