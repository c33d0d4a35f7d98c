//! Nodes of rmw_zenoh, in the terms in which tsuji knows foreign nodes: participants, endpoints under the names of RTPS,
//! messages of who owns what. And what tsuji's nodes are to them: tokens.
//!
//! A session is a participant. A server is a reader of requests and a writer of replies, a client the other way
//! round; what goes between them are queries. Which endpoint a sample is of, its attachment does not say in a way that
//! all agree upon: rmw_zenoh_cpp calls an endpoint by a hash of its token, others by anything. So what
//! is no such hash is taken for the one endpoint of its key that has not been heard of.
//!
//! Nobody waits for these nodes: they acknowledge nothing. What they say is checked, and left out with a line in the
//! log where it is not understood.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::{Durability, History};
use tsuji_engine::{Arrived, Guid, ListenerSlot, Related};
use tsuji_msg::cdr::ByteOrder;
use tsuji_ros::gid::{self, Distro};
use tsuji_ros::graph_message::{GIDS_MAX, NODES_MAX, NodeEntitiesInfo, ParticipantEntitiesInfo};
use tsuji_ros::user_data::{EndpointUserData, ServiceEnd};
use tsuji_ros::vendor::VendorId;
use tsuji_transport::wire::{Found, FoundEndpoint, FoundParticipant, WireQos};
use tsuji_transport::{Bytes, Error, ErrorKind, Gid, Result};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::liveliness::LivelinessToken;
use zenoh::qos::Priority;
use zenoh::query::{ConsolidationMode, Query, QueryTarget, Reply, ReplyKeyExpr};
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::session::ZenohId;

use crate::config::is_own;
use crate::control::{Prefix, name};
use crate::engine::{
    Calls, Job, Link, Own, ReaderState, Shared, State, To, WriterState, bytes_of, failed, own_name,
    payload_of, prefix,
};
use crate::format::{Announced, Attachment, Entity, ID_MAX, Kind, NodeName, TOKENS, Token, gid_of};
use crate::role::{Half, Role, halves};

/// Sessions, and nodes and endpoints of all of them, that are taken note of. Beyond either others are not, and it is
/// warned once.
const SESSIONS_MAX: usize = 4096;
const ENTITIES_MAX: usize = 200_000;

/// What a reader, or a server, holds of writers, or clients, whose tokens have not come yet, and of those that it waits
/// for what they have kept. Beyond either the oldest are dropped.
const EARLY_MAX: usize = 1024;
const EARLY_BYTES_MAX: usize = 16 << 20;

/// Requests of foreign clients that a server has not answered. Beyond it the oldest end without an answer.
const PENDING_MAX: usize = 4096;

/// A server has this time to answer. Rmw_zenoh waits without end; a client that has left ends its
/// requests at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// How long late joiners wait for what a writer has kept.
const HISTORY_WITHIN: Duration = Duration::from_secs(10);

/// What is known of the nodes of rmw_zenoh, and what is shown to them.
#[derive(Default)]
pub(crate) struct Wire {
    lookout: Option<Arc<ListenerSlot>>,
    found: VecDeque<Found>,
    sessions: HashMap<Prefix, Session>,
    entities: usize,
    /// The endpoints by what rmw_zenoh_cpp calls them in attachments.
    hashed: HashMap<Guid, Guid>,
    /// The endpoints by what they call themselves there, once something has come of them.
    bound: HashMap<Guid, Bound>,
    shown: HashMap<[u8; 4], Shown>,
    nodes: Vec<OwnNode>,
    servers: HashMap<[u8; 4], Server>,
    is_warned: bool,
    is_complained: bool,
}

/// A session of rmw_zenoh.
#[derive(Default)]
struct Session {
    name: String,
    entities: BTreeMap<(u32, bool), Plain>,
}

/// A node or an endpoint of one.
struct Plain {
    node: NodeName,
    entity: Entity,
    hash: Guid,
}

struct Bound {
    endpoint: Guid,
    /// It was not found by the hash, but was the only one left.
    guessed: Option<Announced>,
}

/// An endpoint of this process, which has a token once it is known whose it is.
struct Shown {
    entity: Entity,
    node: Option<NodeName>,
    token: Option<Own<LivelinessToken>>,
}

/// A node of this process.
struct OwnNode {
    node: NodeName,
    token: Option<Own<LivelinessToken>>,
}

/// A server of this process.
struct Server {
    half: Half,
    key: String,
    /// How many requests came of each client.
    asked: HashMap<Guid, i64>,
    pending: HashMap<(Guid, i64), (Own<Query>, Attachment)>,
    order: VecDeque<(Guid, i64)>,
    /// Of clients that are not known, or before the requests' half is open.
    early: VecDeque<(Own<Query>, Attachment)>,
}

/// Samples of unknown writers.
#[derive(Default)]
pub(crate) struct Early {
    samples: VecDeque<(Attachment, Bytes)>,
    bytes: usize,
}

impl Early {
    fn push(&mut self, attachment: Attachment, bytes: Bytes) {
        self.bytes += bytes.len();
        self.samples.push_back((attachment, bytes));
        while EARLY_MAX < self.samples.len()
            || (EARLY_BYTES_MAX < self.bytes && 1 < self.samples.len())
        {
            let Some((_, bytes)) = self.samples.pop_front() else { return };
            self.bytes -= bytes.len();
        }
    }

    fn take(&mut self) -> VecDeque<(Attachment, Bytes)> {
        self.bytes = 0;
        std::mem::take(&mut self.samples)
    }
}

/// A foreign writer that matches a reader here.
#[derive(Default)]
pub(crate) struct PlainSource {
    /// What it calls itself.
    gid: Option<Guid>,
    last: Option<i64>,
    /// Some number their samples from 0.
    offset: i64,
    /// What came since it was asked for what it has kept; `None` where nothing is awaited.
    awaiting: Option<Early>,
}

/// A question for what a writer has kept for late joiners.
pub(crate) struct HistoryAsk {
    reader: [u8; 4],
    writer: Guid,
    selector: String,
}

/// A request that is on its way to servers of rmw_zenoh.
pub(crate) struct Request {
    key: String,
    end: ServiceEnd,
    number: i64,
    /// The reader of requests of one of the servers, which is taken for the one that answers.
    server: Guid,
}

/// What endpoints of this process an entity of a plain session matches, by which name.
fn matched(
    kind: Kind,
    role: &Role,
    announced: &Announced,
    prefix: Prefix,
    id: u32,
    entity: &Entity,
) -> Option<Guid> {
    let is_match = match (kind, role, entity) {
        (Kind::Writer, Role::Topic, Entity::Reader(theirs)) => announced.reaches(theirs),
        (Kind::Reader, Role::Topic, Entity::Writer(theirs)) => theirs.reaches(announced),
        (Kind::Writer, Role::Request(half), Entity::Server(theirs))
        | (Kind::Reader, Role::Reply(half), Entity::Server(theirs))
        | (Kind::Writer, Role::Reply(half), Entity::Client(theirs))
        | (Kind::Reader, Role::Request(half), Entity::Client(theirs)) => {
            half.service.is_same(theirs)
        }
        _ => false,
    };
    let theirs = match kind {
        Kind::Writer => Kind::Reader,
        Kind::Reader => Kind::Writer,
    };
    is_match.then(|| name(prefix, own_name(id, theirs)))
}

/// The other half of a client or a server, by the name of one.
fn other_half(half: Guid) -> Guid {
    let mut other = half;
    other[15] ^= own_name(0, Kind::Writer)[3] ^ own_name(0, Kind::Reader)[3];
    other
}

/// The endpoints as which an entity is found, each with its names of topic and type, and whether it writes.
fn endpoints(entity: &Entity) -> Vec<(bool, String, String)> {
    let topic = |it: &Announced| (format!("rt{}", it.topic), it.type_name.clone());
    let service = |it: &Announced, is_client: bool| {
        let [(asks, asked), (answers, answered)] = halves(it);
        vec![(is_client, asks, asked), (!is_client, answers, answered)]
    };
    match entity {
        Entity::Node => Vec::new(),
        Entity::Writer(it) | Entity::Reader(it) => {
            let (topic, type_name) = topic(it);
            vec![(matches!(entity, Entity::Writer(_)), topic, type_name)]
        }
        Entity::Server(it) => service(it, false),
        Entity::Client(it) => service(it, true),
    }
}

fn user_data(session: &str, id: u32, entity: &Entity) -> Vec<u8> {
    let Some(announced) = entity.announced() else { return Vec::new() };
    let end = format!("{session}.{id}");
    let hash = Some(announced.hash.clone());
    let said = match entity {
        Entity::Server(_) => EndpointUserData {
            service_end: Some(ServiceEnd::Server(end)),
            service_hash: hash,
            ..EndpointUserData::default()
        },
        Entity::Client(_) => EndpointUserData {
            service_end: Some(ServiceEnd::Client(end)),
            service_hash: hash,
            ..EndpointUserData::default()
        },
        _ => EndpointUserData { type_hash: hash, ..EndpointUserData::default() },
    };
    // What is no hash is left out.
    let without = EndpointUserData { type_hash: None, service_hash: None, ..said.clone() };
    said.write().or_else(|_| without.write()).unwrap_or_default()
}

fn participant(prefix: Prefix) -> Gid {
    Gid(name(prefix, gid::Guid::PARTICIPANT))
}

impl Wire {
    /// What was found since the last call.
    pub(crate) fn take_found(&mut self) -> Vec<Found> {
        self.found.drain(..).collect()
    }

    pub(crate) fn look_out(&mut self, ear: Arc<ListenerSlot>) {
        self.lookout = Some(ear);
    }

    fn tell(&mut self, found: Found, calls: &mut Calls) {
        self.found.push_back(found);
        calls.news.extend(self.lookout.clone());
    }

    fn is_foreign(&self, name: &Guid) -> bool {
        name.first_chunk().is_some_and(|prefix| self.sessions.contains_key(prefix))
    }

    /// Which endpoint calls itself so in attachments.
    fn resolve(&mut self, gid: Guid, is_it: impl Fn(&Entity) -> bool, kind: Kind) -> Option<Guid> {
        if let Some(bound) = self.bound.get(&gid) {
            return Some(bound.endpoint);
        }
        if let Some(endpoint) = self.hashed.get(&gid).copied() {
            self.bound.retain(|_, it| it.endpoint != endpoint);
            self.bound.insert(gid, Bound { endpoint, guessed: None });
            return Some(endpoint);
        }
        let all = self.sessions.iter().flat_map(|(prefix, session)| {
            session.entities.iter().map(move |((id, _), it)| (*prefix, *id, it))
        });
        let all = all.filter(|(.., it)| is_it(&it.entity));
        let all = all.map(|(prefix, id, it)| (name(prefix, own_name(id, kind)), it));
        let is_free = |endpoint: &Guid| !self.bound.values().any(|it| it.endpoint == *endpoint);
        let free =
            all.filter(|(endpoint, _)| is_free(endpoint)).min_by_key(|(endpoint, _)| *endpoint);
        let (endpoint, plain) = free?;
        let guessed = plain.entity.announced().cloned();
        self.bound.insert(gid, Bound { endpoint, guessed });
        Some(endpoint)
    }

    /// An endpoint is gone. What was guessed of others of its key may have been wrong.
    fn unbind(&mut self, prefix: Prefix, id: u32, gone: &Plain) {
        self.hashed.remove(&gone.hash);
        let Some(announced) = gone.entity.announced() else { return };
        let names = [Kind::Writer, Kind::Reader].map(|kind| name(prefix, own_name(id, kind)));
        self.bound.retain(|_, it| {
            let is_doubted = it.guessed.as_ref().is_some_and(|it| it.is_same(announced));
            !names.contains(&it.endpoint) && !is_doubted
        });
    }

    /// What a session says of its nodes.
    fn nodes_of(&self, prefix: Prefix, distro: Distro) -> Option<Vec<u8>> {
        let session = self.sessions.get(&prefix)?;
        let mut nodes: BTreeMap<&NodeName, NodeEntitiesInfo> = BTreeMap::new();
        for ((id, _), plain) in &session.entities {
            if nodes.len() == NODES_MAX && !nodes.contains_key(&plain.node) {
                continue;
            }
            let node = nodes.entry(&plain.node).or_insert_with(|| NodeEntitiesInfo {
                node_namespace: plain.node.namespace.clone(),
                node_name: plain.node.name.clone(),
                ..NodeEntitiesInfo::default()
            });
            for (is_writer, ..) in endpoints(&plain.entity) {
                let kind = if is_writer { Kind::Writer } else { Kind::Reader };
                let all = if is_writer { &mut node.writers } else { &mut node.readers };
                if all.len() < GIDS_MAX {
                    all.push(gid::Guid(name(prefix, own_name(*id, kind))));
                }
            }
        }
        let participant = gid::Guid(participant(prefix).0);
        let said = ParticipantEntitiesInfo { participant, nodes: nodes.into_values().collect() };
        // All its names were checked.
        said.encode(distro, ByteOrder::Little).ok()
    }

    /// A message of the nodes of a session that has changed, for a reader of them.
    pub(crate) fn take_nodes(
        &self,
        dirty: &mut BTreeSet<Prefix>,
        distro: Distro,
    ) -> Option<Arrived> {
        while let Some(prefix) = dirty.pop_first() {
            if let Some(said) = self.nodes_of(prefix, distro) {
                let writer = name(prefix, own_name(ID_MAX, Kind::Writer));
                let bytes = Bytes::copy_from(&said);
                return Some(Arrived {
                    writer,
                    number: 1,
                    source_ns: 0,
                    is_headed: false,
                    related: None,
                    bytes,
                });
            }
        }
        None
    }

    pub(crate) fn all_sessions(&self) -> BTreeSet<Prefix> {
        self.sessions.keys().copied().collect()
    }

    /// This endpoint is to be shown once it is known whose it is.
    pub(crate) fn show(&mut self, id: [u8; 4], entity: Entity) {
        self.shown.insert(id, Shown { entity, node: None, token: None });
    }

    /// What is dropped outside of the lock.
    pub(crate) fn hide(&mut self, id: [u8; 4]) -> impl Sized + use<> {
        (self.shown.remove(&id).map(|it| it.token), self.servers.remove(&id))
    }

    pub(crate) fn serve(&mut self, id: [u8; 4], half: Half, key: String) {
        let (asked, pending) = (HashMap::new(), HashMap::new());
        let (order, early) = (VecDeque::new(), VecDeque::new());
        self.servers.insert(id, Server { half, key, asked, pending, order, early });
    }
}

impl WriterState {
    /// Matches what is known of plain sessions.
    pub(crate) fn match_plains(&mut self, wire: &Wire) {
        for (prefix, session) in &wire.sessions {
            for ((id, _), plain) in &session.entities {
                self.match_foreign(*prefix, *id, &plain.entity);
            }
        }
    }

    fn match_foreign(&mut self, prefix: Prefix, id: u32, entity: &Entity) -> bool {
        let found = matched(Kind::Writer, &self.role, &self.announced, prefix, id, entity);
        let link = Link { is_reliable: false, is_foreign: true, acknowledged: 0 };
        found.is_some_and(|theirs| self.readers.insert(theirs, link).is_none())
    }
}

impl ReaderState {
    /// The same. Answers whom to ask for what they have kept.
    pub(crate) fn match_plains(
        &mut self,
        own: [u8; 4],
        domain: u32,
        wire: &Wire,
        asks: &mut Vec<HistoryAsk>,
    ) {
        for (prefix, session) in &wire.sessions {
            for ((id, _), plain) in &session.entities {
                let asked =
                    self.match_foreign((own, domain), *prefix, &session.name, *id, &plain.entity);
                asks.extend(asked.flatten());
            }
        }
    }

    fn match_foreign(
        &mut self,
        (own, domain): ([u8; 4], u32),
        prefix: Prefix,
        session: &str,
        id: u32,
        entity: &Entity,
    ) -> Option<Option<HistoryAsk>> {
        let found = matched(Kind::Reader, &self.role, &self.announced, prefix, id, entity)?;
        if self.foreign_sources.contains_key(&found) {
            return None;
        }
        let is_owed =
            self.role == Role::Topic && self.announced.qos.durability == Durability::TransientLocal;
        let awaiting = is_owed.then(Early::default);
        self.foreign_sources.insert(found, PlainSource { awaiting, ..PlainSource::default() });
        let max = match self.announced.qos.history {
            History::KeepLast(depth) => format!("?_max={depth}"),
            History::KeepAll => String::new(),
        };
        let key = self.announced.data_key(domain);
        // As zenoh-ext has it, by which rmw_zenoh keeps samples for late joiners.
        let selector = format!("{key}/@adv/pub/{session}/**{max}");
        Some(is_owed.then_some(HistoryAsk { reader: own, writer: found, selector }))
    }

    /// Puts a sample of a foreign writer where the reader takes it from, unless it came before.
    fn push_foreign(&mut self, writer: Guid, attachment: Attachment, bytes: Bytes) -> bool {
        let Some(source) = self.foreign_sources.get_mut(&writer) else { return false };
        let Attachment { number, source_ns, writer: gid } = attachment;
        if source.gid != Some(gid) {
            (source.gid, source.last) = (Some(gid), None);
            source.offset = i64::from(number == 0);
        }
        if let Some(awaiting) = &mut source.awaiting {
            awaiting.push(attachment, bytes);
            return false;
        }
        if source.last.is_some_and(|last| number <= last) {
            return false;
        }
        source.last = Some(number);
        let number = number.saturating_add(source.offset).max(1);
        self.arrived.push_back(Arrived {
            writer,
            number,
            source_ns,
            is_headed: false,
            related: None,
            bytes,
        });
        true
    }
}

impl Shared {
    /// Something that is not understood is left out.
    fn complain(&self, state: &mut State, what: &str) {
        if std::mem::replace(&mut state.wire.is_complained, true) {
            tracing::debug!("zenoh: {what} is left out");
        } else {
            tracing::warn!("zenoh: {what} is left out; more of that is told as debugging messages");
        }
    }

    /// Another process of tsuji says who it is, or is gone.
    pub(crate) fn see_tsuji(&self, sample: &Sample) {
        let key = sample.key_expr();
        let mut parts = key.as_str().rsplit('/');
        let (Some(said), Some(session)) = (parts.next(), parts.next()) else { return };
        let Some(theirs) = session.parse::<ZenohId>().ok().map(prefix) else { return };
        if theirs == self.prefix {
            return;
        }
        let mut calls = Calls::default();
        let mut state = self.lock();
        let name = participant(theirs);
        match (sample.kind(), from_hex(said)) {
            (SampleKind::Delete, _) => state.wire.tell(Found::Gone(name), &mut calls),
            (SampleKind::Put, Some(user_data)) => {
                let vendor = VendorId::ZENOH.0;
                let found =
                    FoundParticipant { name, vendor, user_data, ..FoundParticipant::default() };
                state.wire.tell(Found::Participant(found), &mut calls);
            }
            (SampleKind::Put, None) => self.complain(&mut state, "what a process says of itself"),
        }
        drop(state);
        self.make(calls);
    }

    /// A token of rmw_zenoh has come, or is gone.
    pub(crate) fn see_foreign(&self, sample: &Sample) {
        let key = sample.key_expr().as_str();
        let session = key.split('/').nth(2).and_then(|it| it.parse::<ZenohId>().ok());
        if session.is_some_and(|it| is_own(&it.to_le_bytes())) {
            return;
        }
        let mut calls = Calls::default();
        let mut state = self.lock();
        match session.zip(Token::read(TOKENS, key)) {
            None => self.complain(&mut state, &format!("the token {key:?}")),
            Some((session, token)) => {
                let prefix = prefix(session);
                match sample.kind() {
                    SampleKind::Put => {
                        self.add_foreign(&mut state, prefix, token, gid_of(key), &mut calls);
                    }
                    SampleKind::Delete => {
                        let at = (token.id, token.entity == Entity::Node);
                        self.remove_foreign(&mut state, prefix, at, &mut calls);
                    }
                }
            }
        }
        drop(state);
        self.make(calls);
    }

    fn add_foreign(
        &self,
        state: &mut State,
        prefix: Prefix,
        token: Token,
        hash: Guid,
        calls: &mut Calls,
    ) {
        let Token { session: session_name, id, node, entity, .. } = token;
        let at = (id, entity == Entity::Node);
        let known = state.wire.sessions.get(&prefix).and_then(|it| it.entities.get(&at));
        match known {
            Some(known) if known.entity == entity && known.node == node => return,
            Some(_) => self.remove_foreign(state, prefix, at, calls),
            None => (),
        }
        let qos = entity.announced().and_then(|it| WireQos::new(&it.qos).ok());
        if qos.is_none() && entity != Entity::Node {
            return self.complain(state, "an endpoint with a QoS that none has");
        }
        let State { wire, writers, readers, .. } = state;
        let is_new = !wire.sessions.contains_key(&prefix);
        if (is_new && SESSIONS_MAX <= wire.sessions.len()) || ENTITIES_MAX <= wire.entities {
            if !std::mem::replace(&mut wire.is_warned, true) {
                tracing::warn!(
                    "zenoh: more than {SESSIONS_MAX} sessions or {ENTITIES_MAX} nodes and endpoints; \
                     the others are not seen"
                );
            }
            return;
        }
        if is_new {
            let vendor = VendorId::ZENOH.0;
            let name = participant(prefix);
            let found = FoundParticipant { name, vendor, ..FoundParticipant::default() };
            wire.tell(Found::Participant(found), calls);
        }
        for (is_writer, topic, type_name) in endpoints(&entity) {
            let kind = if is_writer { Kind::Writer } else { Kind::Reader };
            let Some(qos) = qos else { continue };
            let found = FoundEndpoint {
                name: Gid(name(prefix, own_name(id, kind))),
                participant: participant(prefix),
                is_writer,
                topic,
                type_name,
                user_data: user_data(&session_name, id, &entity),
                qos,
            };
            wire.tell(Found::Endpoint(found), calls);
        }
        for writer in writers.values_mut() {
            if writer.match_foreign(prefix, id, &entity) {
                calls.matched.push(Arc::clone(&writer.ear));
            }
        }
        let mut early = Vec::new();
        for (own, reader) in readers.iter_mut() {
            let place = (*own, self.domain);
            if let Some(ask) = reader.match_foreign(place, prefix, &session_name, id, &entity) {
                calls.matched.push(Arc::clone(&reader.ear));
                calls.asks.extend(ask);
                early.extend(reader.early.take().into_iter().map(|it| (*own, it)));
            }
        }
        wire.hashed.insert(hash, name(prefix, own_name(id, Kind::Writer)));
        wire.entities += 1;
        let session = wire.sessions.entry(prefix).or_default();
        session.name = session_name;
        session.entities.insert(at, Plain { node, entity, hash });
        for (reader, (attachment, bytes)) in early {
            self.deliver_foreign(state, reader, attachment, bytes, calls);
        }
        self.nodes_changed(state, prefix, calls);
        self.take_early_requests(state, calls);
    }

    fn remove_foreign(
        &self,
        state: &mut State,
        prefix: Prefix,
        at: (u32, bool),
        calls: &mut Calls,
    ) {
        let wire = &mut state.wire;
        let Some(session) = wire.sessions.get_mut(&prefix) else { return };
        let Some(gone) = session.entities.remove(&at) else { return };
        let is_last = session.entities.is_empty();
        wire.entities -= 1;
        wire.unbind(prefix, at.0, &gone);
        if is_last {
            wire.sessions.remove(&prefix);
        }
        for (is_writer, ..) in endpoints(&gone.entity) {
            let kind = if is_writer { Kind::Writer } else { Kind::Reader };
            let gone = name(prefix, own_name(at.0, kind));
            let State { wire, writers, readers, .. } = &mut *state;
            wire.tell(Found::Gone(Gid(gone)), calls);
            for writer in writers.values_mut().filter(|_| !is_writer) {
                if writer.readers.remove(&gone).is_some() {
                    calls.matched.push(Arc::clone(&writer.ear));
                }
            }
            for reader in readers.values_mut().filter(|_| is_writer) {
                if reader.foreign_sources.remove(&gone).is_some() {
                    calls.matched.push(Arc::clone(&reader.ear));
                }
            }
            for server in wire.servers.values_mut() {
                server.asked.remove(&gone);
                let ended = server.pending.extract_if(|(client, _), _| *client == gone);
                calls.ended.extend(ended.map(|(_, (query, _))| query));
                server.order.retain(|(client, _)| *client != gone);
            }
        }
        let wire = &mut state.wire;
        if is_last {
            wire.tell(Found::Gone(participant(prefix)), calls);
        } else {
            self.nodes_changed(state, prefix, calls);
        }
    }

    fn nodes_changed(&self, state: &mut State, prefix: Prefix, calls: &mut Calls) {
        for reader in state.readers.values_mut() {
            if matches!(reader.role, Role::Nodes(_)) {
                reader.dirty.insert(prefix);
                calls.news.push(Arc::clone(&reader.ear));
            }
        }
    }

    /// A sample that is not of a writer of tsuji which the reader knows.
    pub(crate) fn arrive_foreign(&self, reader: [u8; 4], attachment: Attachment, payload: &ZBytes) {
        // Of tsuji, but not for this reader.
        let is_tsujis = |state: &State| {
            let prefix = attachment.writer.first_chunk();
            prefix.is_some_and(|it| *it == self.prefix || state.remotes.contains_key(it))
        };
        if is_tsujis(&self.lock()) {
            return;
        }
        let bytes = bytes_of(payload);
        let mut calls = Calls::default();
        self.deliver_foreign(&mut self.lock(), reader, attachment, bytes, &mut calls);
        self.make(calls);
    }

    fn deliver_foreign(
        &self,
        state: &mut State,
        id: [u8; 4],
        attachment: Attachment,
        bytes: Bytes,
        calls: &mut Calls,
    ) {
        let State { wire, readers, .. } = state;
        let Some(reader) = readers.get_mut(&id) else { return };
        let announced = &reader.announced;
        let is_it = |it: &Entity| matches!(it, Entity::Writer(it) if it.is_same(announced));
        match wire.resolve(attachment.writer, is_it, Kind::Writer) {
            None => reader.early.push(attachment, bytes),
            Some(writer) => {
                if reader.push_foreign(writer, attachment, bytes) {
                    calls.news.push(Arc::clone(&reader.ear));
                }
            }
        }
    }

    /// What came without an attachment that is understood.
    pub(crate) fn refuse_sample(&self, key: &str) {
        self.complain(
            &mut self.lock(),
            &format!("a sample of {key:?} without rmw_zenoh's attachment"),
        );
    }

    /// Asks a writer for what it has kept. What comes meanwhile waits for the answer.
    pub(crate) fn ask_history(&self, ask: HistoryAsk) {
        let HistoryAsk { reader, writer, selector } = ask;
        let kept = Kept { shared: self.me.clone(), reader, writer, samples: Vec::new() };
        let kept = std::sync::Mutex::new(kept);
        let callback = move |reply: Reply| {
            let Ok(sample) = reply.into_result() else { return };
            let Some(attachment) = sample.attachment() else { return };
            let Some(attachment) = Attachment::read(&attachment.to_bytes()) else { return };
            crate::lock(&kept).samples.push((attachment, bytes_of(sample.payload())));
        };
        let asked = self.session().get(selector.as_str()).target(QueryTarget::All);
        let asked = asked.consolidation(ConsolidationMode::None).accept_replies(ReplyKeyExpr::Any);
        let asked = asked.timeout(HISTORY_WITHIN).allowed_destination(Locality::Remote);
        if let Err(error) = asked.callback(callback).wait() {
            // The answer, which is empty, came by dropping the callback.
            tracing::warn!("zenoh: nobody is asked for what was kept for late joiners: {error}");
        }
    }

    /// All has come that a writer has kept.
    fn end_history(&self, id: [u8; 4], writer: Guid, mut kept: Vec<(Attachment, Bytes)>) {
        let mut calls = Calls::default();
        let mut state = self.lock();
        let State { wire, readers, .. } = &mut *state;
        let Some(reader) = readers.get_mut(&id) else { return };
        let announced = &reader.announced;
        let is_it = |it: &Entity| matches!(it, Entity::Writer(it) if it.is_same(announced));
        // Another writer of that session has answered as well.
        kept.retain(|(it, _)| wire.resolve(it.writer, is_it, Kind::Writer) == Some(writer));
        let source = reader.foreign_sources.get_mut(&writer);
        let Some(live) = source.and_then(|it| it.awaiting.take()) else { return };
        let mut live = live;
        kept.extend(live.take());
        kept.sort_by_key(|(it, _)| it.number);
        for (attachment, bytes) in kept {
            reader.push_foreign(writer, attachment, bytes);
        }
        calls.news.push(Arc::clone(&reader.ear));
        drop(state);
        self.make(calls);
    }

    /// Writes a request to servers of rmw_zenoh, or a reply to a client. Answers whether that was all.
    pub(crate) fn write_foreign(
        &self,
        state: &mut State,
        id: [u8; 4],
        bytes: &Bytes,
        source_ns: i64,
        number: i64,
        related: Option<Related>,
    ) -> bool {
        let State { writers, wire, .. } = &mut *state;
        let Some(writer) = writers.get_mut(&id) else { return false };
        match &writer.role {
            Role::Request(half) => {
                let servers = writer.readers.iter().filter(|(_, it)| it.is_foreign);
                let Some(server) = servers.map(|(name, _)| *name).min() else { return false };
                let attachment = Attachment { number, source_ns, writer: name(self.prefix, id) };
                let key = half.service.data_key(self.domain);
                let to = To::Ask(Request { key, end: half.end.clone(), number, server });
                let is_all = writer.readers.values().all(|it| it.is_foreign);
                let attachment = attachment.to_bytes().to_vec();
                let job = Job {
                    writer: id,
                    to,
                    payload: payload_of(bytes),
                    attachment,
                    bytes: 0,
                    stamp: None,
                };
                self.enqueue(state, job);
                is_all
            }
            Role::Reply(_) => {
                let Some(Related { name, number }) = related else { return false };
                if !wire.is_foreign(&name) {
                    // Its client may have left.
                    return false;
                }
                let Some(server) = wire.servers.get_mut(&id) else { return true };
                let Some((query, attachment)) = server.pending.remove(&(name, number)) else {
                    return true;
                };
                server.order.retain(|it| *it != (name, number));
                let to = To::Answer(Box::new(query), server.key.clone());
                let attachment = Attachment { source_ns, ..attachment }.to_bytes().to_vec();
                let job = Job {
                    writer: id,
                    to,
                    payload: payload_of(bytes),
                    attachment,
                    bytes: 0,
                    stamp: None,
                };
                self.enqueue(state, job);
                true
            }
            _ => false,
        }
    }

    /// Asks servers of rmw_zenoh.
    pub(crate) fn ask(
        &self,
        request: Request,
        payload: ZBytes,
        attachment: &[u8],
        priority: Priority,
    ) {
        let shared = self.me.clone();
        let key = request.key.clone();
        let callback = move |reply: Reply| {
            if let (Some(shared), Ok(sample)) = (shared.upgrade(), reply.into_result()) {
                shared.answered(&request, &sample);
            }
        };
        let asked = self.session().get(&key).payload(payload).attachment(attachment);
        let asked = asked.target(QueryTarget::All).consolidation(ConsolidationMode::None);
        let asked =
            asked.priority(priority).timeout(ANSWER_WITHIN).allowed_destination(Locality::Remote);
        if let Err(error) = asked.callback(callback).wait() {
            tracing::warn!("zenoh: nobody is asked on {key}: {error}");
        }
    }

    fn answered(&self, request: &Request, sample: &Sample) {
        let attachment = sample.attachment().and_then(|it| Attachment::read(&it.to_bytes()));
        let mut calls = Calls::default();
        let bytes = bytes_of(sample.payload());
        let mut state = self.lock();
        let Some(attachment) = attachment.filter(|it| it.number == request.number) else {
            return self.complain(&mut state, "a reply without the attachment of its request");
        };
        let is_it =
            |it: &ReaderState| matches!(&it.role, Role::Reply(half) if half.end == request.end);
        let Some((id, reader)) = state.readers.iter_mut().find(|(_, it)| is_it(it)) else { return };
        reader.answers += 1;
        let related = Related { name: name(self.prefix, *id), number: request.number };
        reader.arrived.push_back(Arrived {
            writer: other_half(request.server),
            number: reader.answers,
            source_ns: attachment.source_ns,
            is_headed: false,
            related: Some(related),
            bytes,
        });
        calls.news.push(Arc::clone(&reader.ear));
        drop(state);
        self.make(calls);
    }

    /// A client asks a server of this process.
    pub(crate) fn asked(&self, server: [u8; 4], query: Own<Query>) {
        let attachment = query.attachment().and_then(|it| Attachment::read(&it.to_bytes()));
        let mut calls = Calls::default();
        let mut state = self.lock();
        match attachment {
            None => {
                self.complain(&mut state, "a request without rmw_zenoh's attachment");
                calls.ended.push(query);
            }
            Some(attachment) => {
                let prefix = attachment.writer.first_chunk();
                // Processes of tsuji ask by samples.
                let is_tsujis =
                    prefix.is_some_and(|it| *it == self.prefix || state.remotes.contains_key(it));
                if is_tsujis {
                    calls.ended.push(query);
                } else {
                    self.take_request(&mut state, server, query, attachment, &mut calls);
                }
            }
        }
        drop(state);
        self.make(calls);
    }

    fn take_request(
        &self,
        state: &mut State,
        id: [u8; 4],
        query: Own<Query>,
        attachment: Attachment,
        calls: &mut Calls,
    ) {
        let State { wire, readers, .. } = state;
        let Some(server) = wire.servers.get(&id) else { return calls.ended.push(query) };
        let half = server.half.clone();
        let is_it = |it: &Entity| matches!(it, Entity::Client(it) if it.is_same(&half.service));
        let client = wire.resolve(attachment.writer, is_it, Kind::Writer);
        let reader = readers.values_mut();
        let mut reader =
            reader.filter(|it| matches!(&it.role, Role::Request(theirs) if theirs.end == half.end));
        let Some(server) = wire.servers.get_mut(&id) else { return calls.ended.push(query) };
        let (Some(client), Some(reader)) = (client, reader.next()) else {
            if server.early.len() == EARLY_MAX {
                calls.ended.extend(server.early.pop_front().map(|(query, _)| query));
            }
            return server.early.push_back((query, attachment));
        };
        let replies = other_half(client);
        let count = server.asked.entry(replies).or_default();
        *count += 1;
        let number = *count;
        let bytes = query.payload().map_or_else(|| Bytes::copy_from(&[]), bytes_of);
        if server.order.len() == PENDING_MAX
            && let Some(oldest) = server.order.pop_front()
        {
            calls.ended.extend(server.pending.remove(&oldest).map(|(query, _)| query));
        }
        server.order.push_back((replies, number));
        server.pending.insert((replies, number), (query, attachment));
        let related = Some(Related { name: replies, number: 0 });
        let source_ns = attachment.source_ns;
        reader.arrived.push_back(Arrived {
            writer: client,
            number,
            source_ns,
            is_headed: false,
            related,
            bytes,
        });
        calls.news.push(Arc::clone(&reader.ear));
    }

    /// Looks again at requests of clients that were not known, or that no reader was there for.
    pub(crate) fn take_early_requests(&self, state: &mut State, calls: &mut Calls) {
        let servers = state.wire.servers.iter_mut();
        let early: Vec<_> = servers.map(|(id, it)| (*id, std::mem::take(&mut it.early))).collect();
        for (id, requests) in early {
            for (query, attachment) in requests {
                self.take_request(state, id, query, attachment, calls);
            }
        }
    }

    /// What nodes this process has, and whose its endpoints are.
    pub(crate) fn tell_nodes(&self, said: &[u8], distro: Distro) -> Result<()> {
        let said = ParticipantEntitiesInfo::decode(said, distro);
        let said = said.map_err(|error| Error::new(ErrorKind::Invalid, "write").because(error))?;
        let mut gone = Vec::new();
        let mut state = self.lock();
        let State { wire, endpoints_made, .. } = &mut *state;
        let mut before = std::mem::take(&mut wire.nodes);
        for NodeEntitiesInfo { node_namespace, node_name, readers, writers } in said.nodes {
            let is_it =
                |it: &OwnNode| (&it.node.namespace, &it.node.name) == (&node_namespace, &node_name);
            let own = match before.iter().position(is_it) {
                Some(at) => before.remove(at),
                None => {
                    *endpoints_made = (*endpoints_made + 1) & ID_MAX;
                    let id = *endpoints_made;
                    let node = NodeName { id, namespace: node_namespace, name: node_name };
                    OwnNode { node, token: None }
                }
            };
            for endpoint in readers.into_iter().chain(writers) {
                let shown = wire.shown.get_mut(&endpoint.entity());
                let shown = shown.filter(|it| {
                    endpoint.prefix() == self.prefix && it.node.as_ref() != Some(&own.node)
                });
                if let Some(shown) = shown {
                    gone.extend(shown.token.take());
                    shown.node = Some(own.node.clone());
                }
            }
            wire.nodes.push(own);
        }
        drop(state);
        drop((gone, before));
        self.declare_due()
    }

    /// Declares the tokens that are missing: of nodes, then of endpoints whose node is known.
    fn declare_due(&self) -> Result<()> {
        let token = |id, node: &NodeName, entity: &Entity| Token {
            domain: self.domain,
            session: self.session_name.clone(),
            id,
            node: node.clone(),
            entity: entity.clone(),
        };
        let state = self.lock();
        let nodes = state.wire.nodes.iter().filter(|it| it.token.is_none());
        let nodes: Vec<Token> =
            nodes.map(|it| token(it.node.id, &it.node, &Entity::Node)).collect();
        let shown = state.wire.shown.iter().filter(|(_, it)| it.token.is_none());
        let shown = shown.filter_map(|(id, it)| {
            Some((*id, token(u32::from_be_bytes(*id) >> 8, it.node.as_ref()?, &it.entity)))
        });
        let shown: Vec<([u8; 4], Token)> = shown.collect();
        drop(state);
        let declare = |token: &Token| {
            let declared = self.session().liveliness().declare_token(token.to_key(TOKENS)).wait();
            declared.map(Own::new).map_err(failed("announce an endpoint"))
        };
        for token in nodes {
            let declared = declare(&token)?;
            let mut state = self.lock();
            let node = state.wire.nodes.iter_mut().find(|it| it.node == token.node);
            let left = place(node.map(|it| &mut it.token), declared);
            drop(state);
            drop(left);
        }
        for (id, token) in shown {
            let declared = declare(&token)?;
            let mut state = self.lock();
            let shown = state.wire.shown.get_mut(&id);
            let shown = shown.filter(|it| it.node.as_ref() == Some(&token.node));
            let left = place(shown.map(|it| &mut it.token), declared);
            drop(state);
            drop(left);
        }
        Ok(())
    }
}

/// Puts a token where it belongs. Answers it where that is gone.
fn place<T>(place: Option<&mut Option<T>>, token: T) -> Option<T> {
    match place {
        Some(place) => place.replace(token),
        None => Some(token),
    }
}

/// What a writer has kept, while it comes. Dropping it ends the question.
struct Kept {
    shared: std::sync::Weak<Shared>,
    reader: [u8; 4],
    writer: Guid,
    samples: Vec<(Attachment, Bytes)>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.end_history(self.reader, self.writer, std::mem::take(&mut self.samples));
        }
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len().is_multiple_of(2) && text.bytes().all(|it| it.is_ascii_hexdigit());
    let byte = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    is_hex.then(|| (0..text.len()).step_by(2).map(byte).collect())?
}
