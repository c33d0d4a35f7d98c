//! Who is on the wires of the transports without a control channel to here: foreign ROS 2 nodes.
//!
//! What a foreign node has becomes endpoints as any other, whose flows are decided here at both ends:
//! nobody over there knows of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::flows::{Event, Route};
use tsuji_core::{Peer, Qos, TransportId};
use tsuji_msg::cdr::ByteOrder;
use tsuji_platform::clock;
use tsuji_ros::gid::{Distro, Guid};
use tsuji_ros::graph_message::{self, NodeEntitiesInfo, ParticipantEntitiesInfo};
use tsuji_ros::user_data::{EndpointUserData, ParticipantUserData, ServiceEnd};
use tsuji_ros::vendor::VendorId;
use tsuji_transport::deferred::told;
use tsuji_transport::wire::{
    ChannelSpec, Found, FoundEndpoint, FoundParticipant, Inlet, Outlet, Relates, Treatment, Wire,
};
use tsuji_transport::{Bytes, Gid, PeerId, Transport};

use super::GraphCache;
use super::second_engine::SecondEngine;
use crate::Result;
use crate::announcement::{ForeignEndpoint, foreign_endpoint};
use crate::control::listening_socket::socket_of;
use crate::control::protocol::{self, EndpointRecord, Flow, NodeRecord};
use crate::control::remote::{self, RemoteChannel};
use crate::endpoint::{Audience, EndpointCore};
use crate::graph::{ProcessInfo, Role, UnreachablePeer};
use crate::pacing::{FullPass, after};
use crate::publisher_core::PublisherCore;
use crate::session::Session;
use crate::subscription_core::SubscriptionCore;

/// The wires, and who is on them.
#[derive(Default)]
pub(crate) struct Foreign {
    /// Those that this process has joined.
    joined: Vec<Joined>,
    participants: HashMap<Gid, Participant>,
    /// By which participant each process of tsuji is spoken to over a wire, and since when.
    far: HashMap<PeerId, (Gid, u64)>,
    /// The nodes of foreign participants, as they say themselves.
    nodes: graph_message::Graph,
    /// Which client or server the halves of foreign nodes are of, if they say so.
    ends: HashMap<Gid, ServiceEnd>,
    /// Participants whose graph messages have been complained of.
    complained: Vec<Gid>,
    /// Participants that write graph messages, of which none has come yet.
    nameless: BTreeSet<Gid>,
    /// Those of them on Fast DDS that are still to be asked, and when they are.
    unasked: BTreeSet<Gid>,
    ask_ns: Option<u64>,
    /// Graph messages of participants that were not found yet, or have left meanwhile: the newest of
    /// each. Beyond [`EARLY_MAX`] the oldest are forgotten.
    early: VecDeque<(Gid, Bytes)>,
    /// The second engine on the wire of foreign nodes.
    pub(super) second: SecondEngine,
}

/// A wire on which this process is.
struct Joined {
    transport: TransportId,
    /// This participant's name there.
    name: Gid,
    since_ns: u64,
    /// When somebody or something was found last.
    found_ns: u64,
    nodes_out: Box<dyn Outlet>,
    /// Where nodes are heard of.
    nodes_in: Option<Box<dyn Inlet>>,
    /// What processes of tsuji on other hosts say to this one. Opened when the first is found.
    remote_in: Option<Box<dyn Inlet>>,
    /// What was said last of the nodes here.
    said: Option<Vec<u8>>,
    telling: FullPass,
}

/// A participant of a wire.
struct Participant {
    transport: TransportId,
    vendor: VendorId,
    process: ProcessInfo,
    who: Who,
    /// How requests and replies say on its wire which request they are.
    relates: Relates,
    enclave: String,
    /// When it was found first.
    found_ns: u64,
    /// Something that it has was found.
    has_endpoints: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Plain,
    /// A process of tsuji.
    Tsuji(PeerId),
    /// Another participant of a process of tsuji, which is met by the first.
    SecondEngine,
}

impl Foreign {
    /// Whether this is a foreign participant.
    pub(crate) fn is_foreign(&self, peer: PeerId) -> bool {
        self.plain(peer).is_some()
    }

    /// Whose this process is.
    pub(crate) fn peer(&self, peer: PeerId) -> Peer {
        self.plain(peer).map_or(Peer::Tsuji, |it| Peer::Foreign(it.vendor.vendor()))
    }

    /// Whose middleware a foreign participant runs.
    pub(crate) fn vendor_id(&self, peer: PeerId) -> Option<VendorId> {
        self.plain(peer).map(|it| it.vendor)
    }

    /// What a foreign participant runs on.
    pub(crate) fn vendor(&self, peer: PeerId) -> Option<String> {
        self.plain(peer).map(|it| it.vendor.to_string())
    }

    /// What a foreign participant says of its process.
    pub(crate) fn process(&self, peer: PeerId) -> Option<ProcessInfo> {
        self.plain(peer).map(|it| it.process.clone())
    }

    /// Why this transport, which may be the second engine of the wire, does not reach a foreign participant for what has
    /// this role.
    pub(crate) fn obstacle(
        &self,
        peer: PeerId,
        transport: &TransportId,
        is_second: bool,
        role: Role,
    ) -> Option<String> {
        let plain = self.plain(peer)?;
        if is_second && !self.second.has_found(Gid(peer.0)) {
            return Some("it has not found it on this host".to_owned());
        }
        if !is_second && plain.transport != *transport {
            return Some(format!("it was found by {}", plain.transport));
        }
        if role == Role::Topic {
            return None;
        }
        match (is_second, plain.relates) {
            // It finds everybody and speaks to each, who would be asked twice by both.
            (true, Relates::Either) => Some(format!("services go by {}", plain.transport)),
            (true, _) => other_mapping(plain.vendor, Relates::Beside),
            (false, relates) => other_mapping(plain.vendor, relates),
        }
    }

    /// What keeps services of a foreign participant from being understood.
    pub(crate) fn other_mapping(&self, peer: PeerId) -> Option<String> {
        let Participant { vendor, relates, .. } = *self.plain(peer)?;
        other_mapping(vendor, relates)
    }

    /// Whether flows with this foreign participant wait until the second engine has found it.
    pub(crate) fn is_awaited(&self, peer: PeerId) -> bool {
        self.second.is_awaited_for(Gid(peer.0))
    }

    /// Something about the nodes here, or their endpoints, is other than before.
    pub(crate) fn graph_changed(&mut self, session: &Session) {
        for wire in &mut self.joined {
            wire.telling.want();
            session.waker.give();
        }
    }

    /// Whether those who were there before have been found, as far as can be known: nobody says that
    /// nobody else is there.
    pub(crate) fn is_settled(&self, now_ns: u64) -> bool {
        let is_settled = |wire: &Joined| {
            after(wire.since_ns, ANNOUNCED_WITHIN) <= now_ns
                && after(wire.found_ns, QUIET) <= now_ns
        };
        // One on Fast DDS tells what it has a second after it was found.
        let is_awaited = |it: &Participant| {
            it.who == Who::Plain
                && it.vendor == VendorId::FAST
                && !it.has_endpoints
                && now_ns < after(it.found_ns, ENDPOINTS_WITHIN)
        };
        !self.joined.is_empty()
            && self.joined.iter().all(is_settled)
            && !self.participants.values().any(is_awaited)
    }

    /// The processes of foreign participants that tell of their nodes and have not done so yet.
    pub(crate) fn nameless(&self) -> Vec<ProcessInfo> {
        let known = self.nameless.iter().filter_map(|name| self.plain(PeerId(name.0)));
        known.map(|it| it.process.clone()).collect()
    }

    /// The oldest that somebody says by this wire, with the name of its writer.
    pub(crate) fn remote_said(&mut self, transport: &TransportId) -> Option<(Gid, Bytes)> {
        let joined = self.joined.iter().find(|it| it.transport == *transport)?;
        joined.remote_in.as_ref()?.take().ok()?
    }

    /// Whether what this writer says is said by this process of tsuji.
    pub(crate) fn speaks_for(&self, writer: Gid, peer: PeerId) -> bool {
        let participant = Gid(Guid(writer.0).participant().0);
        self.far.get(&peer).is_some_and(|(it, _)| *it == participant)
    }

    /// A process of tsuji ends, before its participant does.
    pub(crate) fn forget_process(&mut self, process: PeerId) {
        self.participants.retain(|_, it| it.who != Who::Tsuji(process));
        self.far.remove(&process);
    }

    /// The processes of tsuji that were found, each with the wire, those found last first: a process that joins anew may be
    /// found before its participant of before is gone.
    fn found_tsuji(&self) -> Vec<(PeerId, Gid, TransportId)> {
        let found = self.participants.iter().filter_map(|(name, it)| match it.who {
            Who::Tsuji(peer) => Some((it.found_ns, (peer, *name, it.transport.clone()))),
            Who::Plain | Who::SecondEngine => None,
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(found_ns, _)| Reverse(*found_ns));
        found.into_iter().map(|(_, it)| it).collect()
    }

    fn plain(&self, peer: PeerId) -> Option<&Participant> {
        self.participants.get(&Gid(peer.0)).filter(|it| it.who == Who::Plain)
    }

    /// Keeps what a participant that is not known says of its nodes.
    fn hold_early(&mut self, participant: Gid, said: Bytes) {
        self.early.retain(|(of, _)| *of != participant);
        if EARLY_BYTES_MAX < said.len() {
            return;
        }
        if self.early.len() == EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back((participant, said));
    }

    /// The node that owns this endpoint, by its number here.
    fn node_of(&self, endpoint: Gid) -> Option<[u8; 16]> {
        let node = self.nodes.node_of(Guid(endpoint.0))?;
        let participant = Guid(endpoint.0).participant();
        let mut nodes = self.nodes.nodes().filter(|(of, _)| of.prefix() == participant.prefix());
        let at = nodes.position(|(_, it)| std::ptr::eq(it, node))?;
        Some(node_gid(participant, at))
    }
}

/// The number of the `at`th node of a participant.
fn node_gid(participant: Guid, at: usize) -> [u8; 16] {
    let at = u32::try_from(at).unwrap_or(u32::MAX);
    Guid::new(participant.prefix(), at.to_be_bytes()).0
}

impl GraphCache {
    /// This process has joined the wire of a transport. Where the topics of nodes cannot be opened there it is to be called
    /// again: nothing else tries it.
    pub(crate) fn joined(
        &mut self,
        session: &Session,
        transport: &dyn Transport,
        name: Gid,
    ) -> tsuji_transport::Result<()> {
        let Some(wire) = transport.wire().filter(|_| !session.is_stopping()) else { return Ok(()) };
        let is_second = session.is_second(&transport.id());
        let (nodes_out, nodes_in) = open_nodes(wire, session.distro(), !is_second)?;
        let now_ns = clock::monotonic_ns();
        self.foreign.joined.push(Joined {
            transport: transport.id(),
            name,
            since_ns: now_ns,
            found_ns: now_ns,
            nodes_out,
            nodes_in,
            remote_in: None,
            said: None,
            telling: FullPass::costing_others(TELLING_RESTS),
        });
        if is_second {
            self.second_joined(session, name);
        } else {
            self.publisher_cores.values().for_each(|it| self.show_publisher_core(session, it));
            self.subscription_cores
                .values()
                .for_each(|it| self.show_subscription_core(session, it));
        }
        session.waker.give();
        Ok(())
    }

    /// Opens a subscription on the wires, for foreign nodes to see, if that is asked for.
    pub(super) fn show_subscription_core(
        &self,
        session: &Session,
        subscription_core: &SubscriptionCore,
    ) {
        self.show(session, &subscription_core.topic, |transport| {
            if session.shows_subscriptions(&transport.id()) {
                subscription_core.show(transport)
            } else {
                Ok(())
            }
        });
    }

    /// An endpoint that is new here announces keys if a foreign one at the other end of its topic does: a definition in the
    /// language of `.msg` does not say so.
    pub(super) fn take_over_keys(&self, session: &Session, core: &EndpointCore, publishes: bool) {
        if core.role != Role::Topic || !session.network().announces_keys() {
            return;
        }
        let is_other_end = |gid: &&Gid| {
            self.endpoints.get(*gid).map(|it| &it.record).is_some_and(|it| {
                it.is_publisher != publishes
                    && it.role == Role::Topic
                    && it.type_name == core.type_name
            })
        };
        let mut others = self.topics.get(&core.topic).into_iter().flatten().filter(is_other_end);
        let facts = self.facts(session);
        if others.any(|it| facts.foreign_has_keys(*it) == Some(true)) {
            core.announce_keys();
        }
    }

    /// Opens a publisher on the wires, for foreign nodes to see.
    pub(super) fn show_publisher_core(&self, session: &Session, publisher_core: &PublisherCore) {
        if publisher_core.audience != Audience::Inside {
            self.show(session, &publisher_core.topic, |transport| publisher_core.show(transport));
        }
    }

    fn show(&self, session: &Session, topic: &str, on: impl Fn(&Arc<dyn Transport>) -> Result<()>) {
        if !session.outward().is_exported(topic) {
            return;
        }
        // The second engine is heard by those alone who hear the first.
        let wires = self.foreign.joined.iter().filter(|it| !session.is_second(&it.transport));
        for wire in wires {
            let Some(transport) = session.transport(wire.transport.as_str()) else { continue };
            if let Err(error) = on(transport) {
                told::warn!(topic, %error, "foreign nodes do not see it");
            }
        }
    }

    /// Looks at what has happened on the wire of a transport. Answers whether there is more to look at.
    pub(crate) fn look_at_wire(&mut self, session: &Session, transport: &dyn Transport) -> bool {
        let id = transport.id();
        if session.is_second(&id) {
            self.look_at_second(session, transport);
            return false;
        }
        let joined = self.foreign.joined.iter_mut().find(|it| it.transport == id);
        let (Some(joined), Some(wire)) = (joined, transport.wire()) else { return false };
        let found = wire.found();
        if !found.is_empty() {
            joined.found_ns = clock::monotonic_ns();
        }
        for found in found {
            match found {
                Found::Participant(found) => self.find_participant(session, &id, found),
                Found::Endpoint(found) => self.find_endpoint(session, &found),
                Found::Gone(name) => self.lose(session, name),
            }
        }
        let is_more = self.hear_of_nodes(session, &id);
        self.meet_remote(session);
        is_more
    }

    /// Opens channels to the processes of tsuji that were found and are not on this host, as far as
    /// can be seen.
    pub(crate) fn meet_remote(&mut self, session: &Session) {
        if session.security().is_some() {
            return;
        }
        let now_ns = clock::monotonic_ns();
        for (peer, participant, transport) in self.foreign.found_tsuji() {
            // One that was spoken to a moment ago and begins anew tries to connect again.
            let opened_ns = self.foreign.far.get(&peer).map(|(_, since_ns)| *since_ns);
            let is_soon = opened_ns.is_some_and(|it| now_ns < after(it, REOPEN_MIN));
            let has_listening_socket = || socket_of(session.folder(), peer).exists();
            let is_left_out = peer == session.id
                || is_soon
                || self.channels.remote_to(peer).is_some()
                || self.channels.is_refused_remote(peer)
                || self.channels.is_near(peer)
                || self.channels.ours_to(peer).is_some()
                || (!self.channels.is_refused(peer) && has_listening_socket());
            if is_left_out {
                continue;
            }
            self.foreign.far.insert(peer, (participant, now_ns));
            if let Err(error) = self.open_remote(session, peer, &transport) {
                told::warn!(%peer, %error, "a process of another host is not met");
            }
        }
    }

    /// Says how a process of this host is treated on all wires.
    pub(crate) fn treat_on_wires(&self, session: &Session, peer: PeerId, treatment: Treatment) {
        let wires = session.transports().iter().filter_map(|it| it.wire());
        wires.for_each(|wire| wire.treat(peer, treatment));
    }

    /// A flow with this process takes this transport, so they meet on its wire if it has one.
    pub(super) fn meet_on_wire(&self, transport: &dyn Transport, peer: PeerId) {
        if self.channels.is_near(peer)
            && let Some(wire) = transport.wire()
        {
            wire.treat(peer, Treatment::Meet);
        }
    }

    /// There will be no talking to this process of this host but on a wire.
    pub(crate) fn refuse_near(&mut self, session: &Session, peer: PeerId) {
        self.channels.refuse(peer);
        self.treat_on_wires(session, peer, Treatment::Meet);
    }

    /// Leaves the wires, so that nobody out there takes for living what is about to end.
    pub(crate) fn leave_wires(&mut self, session: &Session) {
        for wire in std::mem::take(&mut self.foreign.joined) {
            let none =
                ParticipantEntitiesInfo { participant: Guid(wire.name.0), nodes: Vec::new() };
            if let Ok(bytes) = none.encode(session.distro(), ByteOrder::Little) {
                // Whoever does not hear it sees the participant leave a moment later.
                let _ = wire.nodes_out.write(&bytes);
            }
        }
        self.publisher_cores.values().for_each(|it| it.leave_wires(None));
        self.subscription_cores.values().for_each(|it| it.leave_wires(None));
    }

    /// Leaves the wire of a transport, to be joined anew. Whoever was found there is gone; flows of this process by it are
    /// decided again.
    pub(crate) fn leave_wire(&mut self, session: &Session, transport: &dyn Transport) {
        let Some(wire) = transport.wire() else { return };
        let id = transport.id();
        for found in wire.leave() {
            if let Found::Gone(name) = found {
                self.lose(session, name);
            }
        }
        self.foreign.joined.retain(|it| it.transport != id);
        let is_by_it = |route: &Route| {
            route.handover.current() == Some(&id) || route.handover.opening() == Some(&id)
        };
        let flows = self.flows.iter().filter(|(_, route)| is_by_it(route));
        let flows: Vec<Flow> = flows.map(|(flow, _)| flow).collect();
        flows.iter().for_each(|flow| self.handle_flow_event(session, Event::Ended(*flow)));
        self.publisher_cores.values().for_each(|it| it.leave_wires(Some(&id)));
        self.subscription_cores.values().for_each(|it| it.leave_wires(Some(&id)));
        flows.into_iter().for_each(|flow| self.match_flow(session, flow));
    }

    /// The transports whose wires this process has joined.
    pub(crate) fn joined_wires(&self) -> Vec<TransportId> {
        self.foreign.joined.iter().map(|it| it.transport.clone()).collect()
    }

    fn open_remote(
        &mut self,
        session: &Session,
        peer: PeerId,
        transport: &TransportId,
    ) -> tsuji_transport::Result<()> {
        let joined = self.foreign.joined.iter_mut().find(|it| it.transport == *transport);
        let wire = session.transport(transport.as_str()).and_then(|it| it.wire());
        let (Some(joined), Some(wire)) = (joined, wire) else { return Ok(()) };
        if joined.remote_in.is_none() {
            joined.remote_in = Some(remote::open_inlet(wire, session.id)?);
        }
        self.channels.add_remote(RemoteChannel::open(wire, session.id, peer)?, peer);
        session.waker.give();
        Ok(())
    }

    fn find_participant(
        &mut self,
        session: &Session,
        transport: &TransportId,
        found: FoundParticipant,
    ) {
        let vendor = VendorId(found.vendor);
        let who = self.who(session, &found, vendor);
        let process = ProcessInfo {
            token: found.name.to_string(),
            pid: found.pid.unwrap_or(0),
            program: found.program.unwrap_or_else(|| vendor.to_string()),
            host: found.host.unwrap_or_else(|| "?".to_owned()),
        };
        if self.is_like_a_token(session, found.name) {
            let reason = "its name begins as a process of tsuji".to_owned();
            return self.note_unreachable_peer(UnreachablePeer {
                path: unreachable_peer_path(found.name),
                reason,
            });
        }
        let known = self.foreign.participants.get(&found.name).map(|it| it.who);
        if known.is_some_and(|known| known != who) {
            self.lose(session, found.name);
        }
        if known.is_none() && PARTICIPANTS_MAX <= self.foreign.participants.len() {
            let what = format!("participants; at most {PARTICIPANTS_MAX} are known");
            return self.too_many(PeerId(found.name.0), &what);
        }
        let transport = transport.clone();
        let wire = session.transport(transport.as_str()).and_then(|it| it.wire());
        let relates = wire.map_or(Relates::Never, |it| it.relates());
        let said = ParticipantUserData::parse(&found.user_data).unwrap_or_default();
        let enclave = said.enclave.unwrap_or_else(|| "/".to_owned());
        let before = self.foreign.participants.get(&found.name);
        let found_ns = before.map_or_else(clock::monotonic_ns, |it| it.found_ns);
        let has_endpoints = before.is_some_and(|it| it.has_endpoints);
        let participant = Participant {
            transport,
            vendor,
            process,
            who,
            relates,
            enclave,
            found_ns,
            has_endpoints,
        };
        self.foreign.participants.insert(found.name, participant);
        if who == Who::Plain {
            self.meet_for_second(session, found.name, vendor);
        }
        if let Some(at) = self.foreign.early.iter().position(|(of, _)| *of == found.name)
            && let Some((_, said)) = self.foreign.early.remove(at)
        {
            self.hear_nodes_of(session, found.name, &said);
        }
    }

    /// Whether endpoints of this participant could be taken for those of a process of tsuji, whose
    /// numbers begin with its token.
    fn is_like_a_token(&self, session: &Session, participant: Gid) -> bool {
        let mut tokens = self.channels.peers().chain([session.id]);
        tokens.any(|token| token.0[..12] == participant.0[..12])
    }

    /// Whose participant it is. A process of tsuji that cannot be spoken to is a foreign one; and so is one that is not on this host where
    /// this process is secured, since control channels to other hosts prove nothing and the engine does.
    fn who(&mut self, session: &Session, found: &FoundParticipant, vendor: VendorId) -> Who {
        // What cannot be read says nothing.
        let said = ParticipantUserData::parse(&found.user_data).unwrap_or_default();
        let Some(tsuji) = said.tsuji else { return Who::Plain };
        if tsuji.is_second {
            return Who::SecondEngine;
        }
        let is_near = || socket_of(session.folder(), PeerId(tsuji.process)).exists();
        if session.security().is_some() && !is_near() {
            return Who::Plain;
        }
        if tsuji.version == protocol::VERSION {
            return Who::Tsuji(PeerId(tsuji.process));
        }
        self.note_unreachable_peer(UnreachablePeer {
            path: unreachable_peer_path(found.name),
            reason: format!(
                "{vendor} on {}: it speaks version {} of the control protocol, this is {}; treated as \
                 a foreign peer",
                tsuji.host,
                tsuji.version,
                protocol::VERSION
            ),
        });
        Who::Plain
    }

    fn find_endpoint(&mut self, session: &Session, found: &FoundEndpoint) {
        if !self.foreign.is_foreign(PeerId(found.participant.0)) {
            return;
        }
        if let Some(participant) = self.foreign.participants.get_mut(&found.participant) {
            participant.has_endpoints = true;
        }
        if found.is_writer && found.topic == graph_message::TOPIC {
            let name = Guid(found.participant.0);
            let has_told = || {
                self.foreign.nodes.has_told(name)
                    || self.foreign.complained.contains(&found.participant)
            };
            if !has_told() && self.foreign.nameless.len() < PARTICIPANTS_MAX {
                self.foreign.nameless.insert(found.participant);
                let plain = self.foreign.plain(PeerId(found.participant.0));
                if plain.is_some_and(|it| it.vendor == VendorId::FAST) {
                    self.foreign.unasked.insert(found.participant);
                    let due_ns = after(clock::monotonic_ns(), ASK_AFTER);
                    self.foreign.ask_ns.get_or_insert(due_ns);
                }
            }
        }
        let plain = match foreign_endpoint(found) {
            Ok(Some(plain)) => inward(session, plain),
            Ok(None) => None,
            Err(error) => {
                let error = format!("{}: {error}", found.topic);
                return self.complain(found.participant, &error);
            }
        };
        let Some(plain) = plain else { return };
        if let Some(known) = self.endpoints.get(&found.name)
            && is_same(&known.record, &plain.record)
            && self.foreign.ends.get(&found.name) == plain.end.as_ref()
        {
            return;
        }
        self.forget_foreign(session, found.name);
        self.know_foreign(session, PeerId(found.participant.0), plain);
    }

    fn know_foreign(&mut self, session: &Session, peer: PeerId, plain: ForeignEndpoint) {
        let ForeignEndpoint { mut record, end } = plain;
        let gid = Gid(record.gid);
        record.node = self.foreign.node_of(gid).unwrap_or_default();
        if let Some(end) = end {
            self.foreign.ends.insert(gid, end);
        }
        self.know_endpoint(session, peer, record);
        self.pair(session, gid);
    }

    /// Brings the halves of a client or a server together, which match only then.
    fn pair(&mut self, session: &Session, gid: Gid) {
        let Some(partner) = self.partner_of(gid) else { return };
        for (half, other) in [(gid, partner), (partner, gid)] {
            if let Some(known) = self.endpoints.get_mut(&half) {
                known.record.partner = other.0;
            }
        }
        self.match_endpoint(session, gid);
        self.match_endpoint(session, partner);
    }

    /// An endpoint of a foreign node is gone. What is left of its client or server waits for another
    /// half.
    fn forget_foreign(&mut self, session: &Session, gid: Gid) {
        let known = self.endpoints.get(&gid).filter(|it| self.foreign.is_foreign(it.peer));
        let Some(partner) = known.map(|it| Gid(it.record.partner)) else { return };
        self.foreign.ends.remove(&gid);
        self.forget_endpoint(session, gid);
        let left = self.endpoints.get_mut(&partner).filter(|it| it.record.partner == gid.0);
        let Some(left) = left else { return };
        left.record.partner = [0; 16];
        self.handle_flow_event(session, Event::EndpointGone(partner.0));
        self.pair(session, partner);
    }

    /// The other half of a client or a server: of the same participant and service, and of the same
    /// end if both say of which they are. A client writes requests and reads replies.
    fn partner_of(&self, gid: Gid) -> Option<Gid> {
        let known = self.endpoints.get(&gid)?;
        let (peer, record) = (known.peer, &known.record);
        if record.role == Role::Topic || record.partner != [0; 16] {
            return None;
        }
        let end = self.foreign.ends.get(&gid);
        let here = self.topics.get(&record.topic)?.iter().copied();
        here.into_iter().find(|gid| {
            self.endpoints.get(gid).is_some_and(|it| {
                it.peer == peer
                    && it.record.partner == [0; 16]
                    && it.record.role != record.role
                    && it.record.role != Role::Topic
                    && it.record.is_publisher != record.is_publisher
                    && self.foreign.ends.get(gid) == end
            })
        })
    }

    /// A participant or an endpoint is gone.
    fn lose(&mut self, session: &Session, name: Gid) {
        if let Some(gone) = self.foreign.participants.remove(&name) {
            self.foreign.second.forget(name);
            // Another may say that it is the same process; only one of them does not lie.
            let is_there = self.foreign.participants.values().any(|it| it.who == gone.who);
            if let Who::Tsuji(peer) = gone.who {
                self.lose_remote(peer, name, is_there);
            }
            self.foreign.nodes.remove(Guid(name.0));
            self.foreign.nameless.remove(&name);
            self.foreign.unasked.remove(&name);
            self.foreign.complained.retain(|it| *it != name);
            self.forget_unreachable_peer(&unreachable_peer_path(name));
            self.forget_peer(session, PeerId(name.0));
            self.foreign.ends.retain(|of, _| Guid(of.0).prefix() != Guid(name.0).prefix());
            return;
        }
        self.forget_foreign(session, name);
    }

    /// A participant that said to be this process is gone.
    fn lose_remote(&mut self, peer: PeerId, participant: Gid, is_there: bool) {
        let is_its = self.foreign.far.get(&peer).is_some_and(|(it, _)| *it == participant);
        if is_its || !is_there {
            self.foreign.far.remove(&peer);
            if let Some(key) = self.channels.remote_to(peer) {
                self.channels.give_up(key);
            }
        }
        if !is_there {
            self.channels.forgive_remote(peer);
        }
    }

    /// Hears what foreign participants say of their nodes. Answers whether they say more.
    fn hear_of_nodes(&mut self, session: &Session, transport: &TransportId) -> bool {
        // One with very much to say must not keep the others waiting.
        for _ in 0..READ_BATCH {
            let joined = self.foreign.joined.iter().find(|it| it.transport == *transport);
            let nodes_in = joined.and_then(|it| it.nodes_in.as_ref());
            let Some(Ok(Some((writer, bytes)))) = nodes_in.map(|it| it.take()) else {
                return false;
            };
            let participant = Gid(Guid(writer.0).participant().0);
            if self.foreign.participants.contains_key(&participant) {
                self.hear_nodes_of(session, participant, &bytes);
            } else {
                // Of one that has left nothing would ever take its nodes away.
                self.foreign.hold_early(participant, bytes);
            }
        }
        true
    }

    /// Hears what a participant that was found says of its nodes.
    fn hear_nodes_of(&mut self, session: &Session, participant: Gid, said: &Bytes) {
        // Those of tsuji are told over the control channel.
        if !self.foreign.is_foreign(PeerId(participant.0)) {
            return;
        }
        self.foreign.nameless.remove(&participant);
        self.foreign.unasked.remove(&participant);
        match ParticipantEntitiesInfo::decode(said, session.distro()) {
            Ok(said) if said.participant.prefix() == Guid(participant.0).prefix() => {
                self.learn_nodes(session, said);
            }
            Ok(said) => {
                let of = said.participant;
                let error = format!("graph message: of participant {of}; allowed: its own");
                self.complain(participant, &error);
            }
            Err(error) => self.complain(participant, &error.to_string()),
        }
    }

    /// Takes the nodes of a foreign participant, which speaks for itself, in place of those before.
    fn learn_nodes(&mut self, session: &Session, said: ParticipantEntitiesInfo) {
        let participant = said.participant;
        let peer = PeerId(participant.participant().0);
        let nodes = said.nodes.clone();
        let enclave =
            self.foreign.plain(peer).map_or_else(|| "/".to_owned(), |it| it.enclave.clone());
        if let Err(error) = self.foreign.nodes.update(said) {
            return self.complain(Gid(peer.0), &error.to_string());
        }
        self.nodes.retain(|_, known| known.peer != peer);
        session.graph_changed();
        for (at, node) in nodes.into_iter().enumerate() {
            let NodeEntitiesInfo { node_namespace, node_name, .. } = node;
            let gid = node_gid(participant, at);
            let (name, namespace, enclave) = (node_name, node_namespace, enclave.clone());
            let record = NodeRecord { gid, name, namespace, enclave };
            self.know_node(session, peer, record);
        }
        let theirs = self.endpoints.iter_mut().filter(|(_, known)| known.peer == peer);
        for (gid, known) in theirs {
            known.record.node = self.foreign.node_of(*gid).unwrap_or_default();
        }
    }

    /// When [`Self::ask_for_nodes`] is due.
    pub(super) fn ask_due_ns(&self) -> Option<u64> {
        self.foreign.ask_ns
    }

    /// Hears of nodes by a new reader where participants on Fast DDS have not told theirs. Such a participant says what it has
    /// when it finds a reader, which is before this engine knows its writer, and again after 3 s; to a reader that comes
    /// later it says so at once.
    pub(super) fn ask_for_nodes(&mut self, session: &Session, now_ns: u64) {
        if self.foreign.ask_ns.is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }
        self.foreign.ask_ns = None;
        let unasked = std::mem::take(&mut self.foreign.unasked);
        let wires = unasked.iter().filter_map(|name| self.foreign.participants.get(name));
        let wires: BTreeSet<TransportId> = wires.map(|it| it.transport.clone()).collect();
        for id in wires {
            let wire = session.transport(id.as_str()).and_then(|it| it.wire());
            let opened = wire.map(|wire| {
                wire.open_inlet(&nodes_channel(session.distro(), graph_message::READER_QOS))
            });
            let joined = self.foreign.joined.iter_mut().find(|it| it.transport == id);
            match (opened, joined) {
                // The old one only after: nothing is missed, and what is heard twice is the same.
                (Some(Ok(inlet)), Some(joined)) => joined.nodes_in = Some(inlet),
                (Some(Err(error)), _) => tracing::debug!(%error, "nodes are told a moment later"),
                _ => {}
            }
        }
        session.waker.give();
    }

    /// Says once of a participant that its nodes are not understood.
    fn complain(&mut self, participant: Gid, error: &str) {
        if self.foreign.complained.contains(&participant) {
            return;
        }
        if self.foreign.complained.len() < PARTICIPANTS_MAX {
            self.foreign.complained.push(participant);
        }
        told::warn!(%participant, error, "what it says of its nodes is left out");
        let path = unreachable_peer_path(participant);
        self.note_unreachable_peer(UnreachablePeer { path, reason: error.to_owned() });
    }

    /// When [`tell_nodes`](Self::tell_nodes) is due, where it was put off.
    pub(super) fn tell_due_ns(&self) -> Option<u64> {
        self.foreign.joined.iter().filter_map(|it| it.telling.due_ns()).min()
    }

    /// Says what nodes are here and which endpoints they have, where that is other than before.
    pub(crate) fn tell_nodes(&mut self, session: &Session) {
        let endpoints = self.own_endpoints();
        for at in 0..self.foreign.joined.len() {
            if self.foreign.joined[at].telling.begin(clock::monotonic_ns()) {
                self.tell_nodes_on(session, at);
                self.foreign.joined[at].telling.end(clock::monotonic_ns(), endpoints);
            }
        }
    }

    /// The same on the wire at this place.
    fn tell_nodes_on(&mut self, session: &Session, at: usize) {
        let said = self.own_nodes(session, &self.foreign.joined[at]);
        let encoded = said.encode(session.distro(), ByteOrder::Little);
        let wire = &mut self.foreign.joined[at];
        let written = match &encoded {
            Ok(bytes) if wire.said.as_ref() == Some(bytes) => return,
            Ok(bytes) => wire.nodes_out.write(bytes).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        // What was not told is told with the next change.
        wire.said = encoded.ok().filter(|_| written.is_ok());
        if let Err(error) = written {
            told::warn!(error, "foreign nodes are not told of the nodes here");
        }
    }

    /// The nodes here; on the wire of the second engine those with endpoints there, for they are shown twice.
    fn own_nodes(&self, session: &Session, wire: &Joined) -> ParticipantEntitiesInfo {
        let is_second = session.is_second(&wire.transport);
        let nodes = self.nodes.iter().filter(|(_, known)| known.peer == session.id);
        let nodes: BTreeMap<Gid, &NodeRecord> =
            nodes.map(|(gid, known)| (*gid, &known.record)).collect();
        let writers = self.publisher_cores.values();
        let mut writers = by_node(
            writers.map(|it| (it.node, it.wire_name(&wire.transport).map(|it| Guid(it.0)))),
        );
        let readers = self.subscription_cores.values();
        let mut readers = by_node(
            readers.map(|it| (it.node, it.wire_name(&wire.transport).map(|it| Guid(it.0)))),
        );
        let nodes = nodes.into_iter().map(|(gid, record)| NodeEntitiesInfo {
            node_namespace: record.namespace.clone(),
            node_name: record.name.clone(),
            readers: readers.remove(&gid).unwrap_or_default(),
            writers: writers.remove(&gid).unwrap_or_default(),
        });
        let is_shown =
            |it: &NodeEntitiesInfo| !is_second || !it.readers.is_empty() || !it.writers.is_empty();
        let nodes = nodes.filter(is_shown).collect();
        ParticipantEntitiesInfo { participant: Guid(wire.name.0), nodes }
    }
}

/// The names on a wire of the endpoints that have one, in order, by the node that has them.
fn by_node(endpoints: impl Iterator<Item = (Gid, Option<Guid>)>) -> BTreeMap<Gid, Vec<Guid>> {
    let mut all: BTreeMap<Gid, Vec<Guid>> = BTreeMap::new();
    for (node, name) in endpoints {
        all.entry(node).or_default().extend(name);
    }
    all.values_mut().for_each(|it| it.sort_unstable());
    all
}

/// What a participant that is not understood is shown as.
fn unreachable_peer_path(participant: Gid) -> String {
    format!("participant {participant}")
}

/// Whether a foreign endpoint says the same as before; what is known of it from others does not count.
fn is_same(known: &EndpointRecord, found: &EndpointRecord) -> bool {
    *known == EndpointRecord { node: known.node, partner: known.partner, ..found.clone() }
}

/// Where nodes are told of, and where they are heard of.
type OpenedNodes = (Box<dyn Outlet>, Option<Box<dyn Inlet>>);

/// Opens the topic on which ROS 2 nodes say who they are, to say it and, if it `hears`, to hear it.
fn open_nodes(
    wire: &dyn Wire,
    distro: Distro,
    hears: bool,
) -> tsuji_transport::Result<OpenedNodes> {
    let spec = |qos| nodes_channel(distro, qos);
    let outlet = wire.open_outlet(&spec(graph_message::WRITER_QOS))?;
    let inlet = hears.then(|| wire.open_inlet(&spec(graph_message::READER_QOS))).transpose()?;
    Ok((outlet, inlet))
}

/// The topic on which ROS 2 nodes say who they are.
fn nodes_channel(distro: Distro, qos: Qos) -> ChannelSpec {
    let has_hash = distro.has_type_hash() && distro.gid_bytes() == 16;
    let said = EndpointUserData {
        type_hash: has_hash.then(|| graph_message::TYPE_HASH.to_owned()),
        ..EndpointUserData::default()
    };
    ChannelSpec {
        topic: graph_message::TOPIC.to_owned(),
        type_name: graph_message::TYPE_NAME.to_owned(),
        qos,
        // It is a hash that this crate knows, so it can be written.
        user_data: said.write().unwrap_or_default(),
    }
}

/// The same, by the name that its topic has here; nothing, if it is of another robot, or a topic that is not exported.
fn inward(session: &Session, mut plain: ForeignEndpoint) -> Option<ForeignEndpoint> {
    let outward = session.outward();
    let topic = outward.topic_here(&plain.record.topic)?.into_owned();
    plain.record.topic = topic;
    outward.is_exported(&plain.record.topic).then_some(plain)
}

/// What keeps services of a vendor from being understood where samples are related so.
fn other_mapping(vendor: VendorId, relates: Relates) -> Option<String> {
    let (cyclone, fast) = (vendor.has_services_of_cyclone(), vendor.has_services_of_fast());
    let (is_same, spoken) = match relates {
        Relates::Never => (cyclone, "Cyclone DDS, which speaks"),
        Relates::Beside => (fast, "Fast DDS, which speaks"),
        Relates::Either => (cyclone || fast, "Cyclone DDS and Fast DDS, as which speak"),
    };
    let why = format!("in another way than {spoken} for tsuji");
    let line = || format!("service mapping: {vendor} relates replies to requests {why}");
    (!is_same).then(line)
}

/// How long those who are there take to say so to a new process, and to say all they have.
const ANNOUNCED_WITHIN: Duration = Duration::from_millis(400);
const QUIET: Duration = Duration::from_millis(150);
/// The same for what a participant on Fast DDS has.
const ENDPOINTS_WITHIN: Duration = Duration::from_secs(2);

/// A participant is found about when its first message comes. Larger messages are not kept.
const EARLY_MAX: usize = 64;
const EARLY_BYTES_MAX: usize = 1 << 20;

/// How long after the nodes were told they are not told again, for each endpoint, where these are very many: each time all
/// of them are.
const TELLING_RESTS: Duration = Duration::from_micros(10);

/// How long those who were just found have to tell their nodes before they are asked, several at once.
const ASK_AFTER: Duration = Duration::from_millis(150);

/// How soon a far process is spoken to anew at the earliest.
const REOPEN_MIN: Duration = Duration::from_millis(100);

/// Messages about nodes that are read before others are looked at.
const READ_BATCH: usize = 256;

/// Beyond so many, participants of wires are not taken note of.
const PARTICIPANTS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn participant(vendor: VendorId, who: Who) -> Participant {
        let transport = TransportId::new("cyclonedds");
        let process = ProcessInfo::default();
        Participant {
            transport,
            vendor,
            process,
            who,
            relates: Relates::Never,
            enclave: "/".to_owned(),
            found_ns: 0,
            has_endpoints: false,
        }
    }

    #[test]
    fn services_of_another_mapping_are_named() {
        let mut foreign = Foreign::default();
        let peer = |number| PeerId([number; 16]);
        let [connext, splice] = [VendorId([1, 1]), VendorId([1, 2])];
        let vendors = [VendorId::CYCLONE, VendorId::RUST, VendorId::FAST, connext, splice];
        for (number, vendor) in (0..).zip(vendors) {
            foreign.participants.insert(Gid([number; 16]), participant(vendor, Who::Plain));
        }
        let tsuji = participant(VendorId::FAST, Who::Tsuji(peer(9)));
        foreign.participants.insert(Gid([7; 16]), tsuji);
        let said = |number| foreign.other_mapping(peer(number));
        assert_eq!((said(0), said(1), said(7)), (None, None, None));
        assert!(said(2).unwrap().contains("Fast DDS relates replies to requests in another way"));
        assert!(said(3).unwrap().contains("RTI Connext DDS"));
        let all = |foreign: &mut Foreign, relates| {
            foreign.participants.values_mut().for_each(|it| it.relates = relates);
        };
        all(&mut foreign, Relates::Beside);
        let said = |number| foreign.other_mapping(peer(number));
        assert_eq!((said(1), said(2), said(7)), (None, None, None));
        assert!(
            said(0).unwrap().contains("Cyclone DDS relates replies to requests in another way")
        );
        all(&mut foreign, Relates::Either);
        let said = |number| foreign.other_mapping(peer(number));
        assert_eq!([said(0), said(1), said(2), said(3), said(7)], [const { None }; 5]);
        assert!(said(4).unwrap().contains("OpenSplice relates replies"));
    }

    #[test]
    fn a_process_is_spoken_for_by_its_own_participant_only() {
        let mut foreign = Foreign::default();
        let guid = |number: u8, entity| Guid::new([number; 12], entity);
        let name = Gid(guid(1, Guid::PARTICIPANT).0);
        let who = Who::Tsuji(PeerId([5; 16]));
        foreign.participants.insert(name, participant(VendorId::CYCLONE, who));
        // Another one says the same.
        let liar = Gid(guid(2, Guid::PARTICIPANT).0);
        foreign.participants.insert(liar, participant(VendorId::CYCLONE, who));
        foreign.far.insert(PeerId([5; 16]), (name, 0));
        let writer = |number| Gid(guid(number, [0, 0, 9, 3]).0);
        assert!(foreign.speaks_for(writer(1), PeerId([5; 16])));
        assert!(!foreign.speaks_for(writer(1), PeerId([6; 16])));
        assert!(!foreign.speaks_for(writer(2), PeerId([5; 16])));
    }
}
