//! Who is there of ROS 1, in the terms in which tsuji knows foreign nodes: participants, endpoints under the names of RTPS,
//! messages of who owns what.
//!
//! A node of ROS 1 is a participant with one node. A server is a reader of requests and a writer of replies, a client the
//! other way round; a client is known once it has called.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tsuji_core::{Qos, Reliability};
use tsuji_engine::{Arrived, Guid, ListenerSlot};
use tsuji_msg::cdr::ByteOrder;
use tsuji_ros::gid::{self, Distro};
use tsuji_ros::graph_message::{GIDS_MAX, NodeEntitiesInfo, ParticipantEntitiesInfo};
use tsuji_ros::user_data::{EndpointUserData, ServiceEnd};
use tsuji_ros::vendor::VendorId;
use tsuji_transport::wire::{Found, FoundEndpoint, FoundParticipant, WireQos};
use tsuji_transport::{Bytes, Gid};

use crate::role::{self, Named};

/// Nodes that are taken note of, and endpoints of one. Beyond either others are not, which is warned of once.
const NODES_MAX: usize = 4096;
const ENDPOINTS_MAX: usize = 4096;

/// The first 12 bytes of all names of a participant.
pub(crate) type Prefix = [u8; 12];

/// What a node of ROS 1 has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum EndpointKey {
    Publishes(String),
    Subscribes(String),
    Serves(String),
    Calls(String),
}

/// A node of ROS 1.
#[derive(Debug)]
pub(crate) struct RosNode {
    /// The address of its slave API.
    pub(crate) api: String,
    prefix: Prefix,
    endpoints: BTreeMap<EndpointKey, Known>,
}

#[derive(Debug)]
struct Known {
    number: u32,
    named: Named,
}

/// The nodes of ROS 1 that are there.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: BTreeMap<String, RosNode>,
    found: VecDeque<Found>,
    watcher: Option<Arc<ListenerSlot>>,
    /// Those to be called of nodes that changed, and the nodes that did.
    listeners: Vec<(u64, Arc<ListenerSlot>, BTreeSet<Prefix>)>,
    listeners_made: u64,
    is_warned: bool,
}

/// The name of an endpoint.
pub(crate) fn endpoint_name(prefix: Prefix, number: u32, is_writer: bool) -> Guid {
    gid::Guid::new(prefix, entity(number, is_writer)).0
}

/// The last 4 bytes of the name of an endpoint, with its kind as RTPS has it.
pub(crate) fn entity(number: u32, is_writer: bool) -> [u8; 4] {
    (number << 8 | if is_writer { 0x03 } else { 0x04 }).to_be_bytes()
}

/// The other half of a client or a server, by the name of one.
pub(crate) fn other_half(half: Guid) -> Guid {
    let mut other = half;
    other[15] ^= 0x03 ^ 0x04;
    other
}

fn participant(prefix: Prefix) -> Gid {
    Gid(gid::Guid::new(prefix, gid::Guid::PARTICIPANT).0)
}

/// Splits the name of a node into its namespace and its own.
pub(crate) fn split_name(full: &str) -> (&str, &str) {
    match full.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(split) => split,
        None => ("/", full),
    }
}

/// The FNV-1a hash of texts.
fn fnv<'a>(texts: impl IntoIterator<Item = &'a str>) -> u128 {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in texts.into_iter().flat_map(|it| it.bytes().chain([0])) {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    hash
}

/// A prefix that belongs to this node alone, as far as 96 bits of a hash can say.
fn prefix_of(name: &str, api: &str) -> Prefix {
    let mut prefix = Prefix::default();
    prefix.copy_from_slice(&fnv([name, api]).to_be_bytes()[..12]);
    // As those of DDS begin with a vendor.
    prefix[..2].copy_from_slice(&VendorId::ROS1.0);
    prefix
}

impl Graph {
    /// Calls this listener from now on when something was found.
    pub(crate) fn watch(&mut self, listener: Arc<ListenerSlot>) {
        self.watcher = Some(listener);
    }

    /// What was found since the last call.
    pub(crate) fn take_found(&mut self) -> Vec<Found> {
        self.found.drain(..).collect()
    }

    /// A reader of what nodes there are, which is to be told of all.
    pub(crate) fn listen(&mut self, listener: Arc<ListenerSlot>) -> u64 {
        self.listeners_made += 1;
        let all = self.nodes.values().map(|it| it.prefix).collect();
        self.listeners.push((self.listeners_made, listener, all));
        self.listeners_made
    }

    pub(crate) fn stop_listening(&mut self, listener: u64) {
        self.listeners.retain(|(it, ..)| *it != listener);
    }

    /// A message of the nodes of a participant that has changed.
    pub(crate) fn take_nodes(&mut self, listener: u64, distro: Distro) -> Option<Arrived> {
        let (.., dirty) = self.listeners.iter_mut().find(|(it, ..)| *it == listener)?;
        while let Some(prefix) = dirty.pop_first() {
            let node = self.nodes.iter().find(|(_, it)| it.prefix == prefix);
            let Some(said) = node.and_then(|(name, it)| it.encode(name, distro)) else { continue };
            return Some(Arrived {
                writer: endpoint_name(prefix, 0xff_ffff, true),
                number: 1,
                source_ns: 0,
                is_headed: false,
                related: None,
                bytes: Bytes::copy_from(&said),
            });
        }
        None
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&String, &RosNode)> {
        self.nodes.iter()
    }

    /// Where a node is.
    pub(crate) fn api_of(&self, node: &str) -> Option<&str> {
        self.nodes.get(node).map(|it| it.api.as_str())
    }

    /// Takes note of a node that is there at this address, in place of one of its name at another. False if there are too many.
    pub(crate) fn add_node(&mut self, name: &str, api: &str, host: &str, pid: Option<u32>) -> bool {
        if let Some(known) = self.nodes.get(name) {
            if known.api == api {
                return true;
            }
            self.remove_node(name);
        }
        if NODES_MAX <= self.nodes.len() {
            self.warn(&format!("more than {NODES_MAX} nodes"));
            return false;
        }
        let prefix = prefix_of(name, api);
        let found = FoundParticipant {
            name: participant(prefix),
            vendor: VendorId::ROS1.0,
            user_data: Vec::new(),
            host: Some(host.to_owned()),
            program: None,
            pid,
        };
        self.push_found(Found::Participant(found));
        let node = RosNode { api: api.to_owned(), prefix, endpoints: BTreeMap::new() };
        self.nodes.insert(name.to_owned(), node);
        self.changed(prefix);
        true
    }

    /// A node is gone, with all it has.
    pub(crate) fn remove_node(&mut self, name: &str) {
        let Some(gone) = self.nodes.remove(name) else { return };
        for (what, known) in &gone.endpoints {
            self.push_gone(gone.prefix, what, known.number);
        }
        self.push_found(Found::Gone(participant(gone.prefix)));
    }

    /// Takes note of something that a known node has, and answers its number; that of what is known of it already where that has
    /// the same type.
    pub(crate) fn add(&mut self, node: &str, what: EndpointKey, type_name: &str) -> Option<Guid> {
        let known = self.nodes.get(node)?;
        let (prefix, count) = (known.prefix, known.endpoints.len());
        if let Some(known) = known.endpoints.get(&what) {
            if known.named.type_name == type_name {
                return Some(endpoint_name(prefix, known.number, what.is_writer()));
            }
            self.remove(node, &what);
        } else if ENDPOINTS_MAX <= count {
            self.warn(&format!("more than {ENDPOINTS_MAX} endpoints of the node {node}"));
            return None;
        }
        let node = self.nodes.get_mut(node)?;
        let number = node.free_number(&what, type_name);
        let named = Named { name: what.name().to_owned(), type_name: type_name.to_owned() };
        let found = found_endpoints(prefix, number, &what, &named);
        node.endpoints.insert(what.clone(), Known { number, named });
        found.into_iter().for_each(|it| self.push_found(Found::Endpoint(it)));
        self.changed(prefix);
        Some(endpoint_name(prefix, number, what.is_writer()))
    }

    /// Something that a node had is gone.
    pub(crate) fn remove(&mut self, node: &str, what: &EndpointKey) {
        let Some(node) = self.nodes.get_mut(node) else { return };
        let Some(known) = node.endpoints.remove(what) else { return };
        let prefix = node.prefix;
        self.push_gone(prefix, what, known.number);
        self.changed(prefix);
    }

    /// The endpoint that a node has.
    pub(crate) fn get(&self, node: &str, what: &EndpointKey) -> Option<(Guid, &Named)> {
        let node = self.nodes.get(node)?;
        let known = node.endpoints.get(what)?;
        Some((endpoint_name(node.prefix, known.number, what.is_writer()), &known.named))
    }

    /// Whether an endpoint of this name is there.
    pub(crate) fn has(&self, guid: Guid) -> bool {
        let node = self.nodes.values().find(|it| guid.starts_with(&it.prefix));
        let Some(node) = node else { return false };
        let is_it = |(what, it): (&EndpointKey, &Known)| {
            let name = endpoint_name(node.prefix, it.number, what.is_writer());
            name == guid || (what.is_service() && other_half(name) == guid)
        };
        node.endpoints.iter().any(is_it)
    }

    /// What a node has.
    pub(crate) fn of_node(&self, node: &str) -> Vec<EndpointKey> {
        let node = self.nodes.get(node);
        node.map_or_else(Vec::new, |it| it.endpoints.keys().cloned().collect())
    }

    /// The node at this address, and no other.
    pub(crate) fn at(&self, api: &str) -> Option<&str> {
        self.nodes.iter().find(|(_, it)| it.api == api).map(|(name, _)| name.as_str())
    }

    fn push_gone(&mut self, prefix: Prefix, what: &EndpointKey, number: u32) {
        let is_writer = what.is_writer();
        self.push_found(Found::Gone(Gid(endpoint_name(prefix, number, is_writer))));
        if what.is_service() {
            self.push_found(Found::Gone(Gid(endpoint_name(prefix, number, !is_writer))));
        }
    }

    fn push_found(&mut self, found: Found) {
        self.found.push_back(found);
    }

    fn changed(&mut self, prefix: Prefix) {
        self.listeners.iter_mut().for_each(|(.., dirty)| {
            dirty.insert(prefix);
        });
    }

    /// Those to be called where something was found or changed, once the lock is released.
    pub(crate) fn to_be_called(&self) -> Vec<Arc<ListenerSlot>> {
        let watcher = self.watcher.iter().filter(|_| !self.found.is_empty());
        let listeners = self.listeners.iter().filter(|(.., dirty)| !dirty.is_empty());
        watcher.chain(listeners.map(|(_, listener, _)| listener)).cloned().collect()
    }

    fn warn(&mut self, what: &str) {
        if !std::mem::replace(&mut self.is_warned, true) {
            tracing::warn!("ros1: {what}; the others are not seen");
        }
    }
}

impl EndpointKey {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Publishes(it) | Self::Subscribes(it) | Self::Serves(it) | Self::Calls(it) => it,
        }
    }

    /// Of a service, whether its half for requests is.
    fn is_writer(&self) -> bool {
        matches!(self, Self::Publishes(_) | Self::Calls(_))
    }

    fn is_service(&self) -> bool {
        matches!(self, Self::Serves(_) | Self::Calls(_))
    }
}

impl RosNode {
    /// A number for an endpoint: the same whenever the same node has the same again, so that it has one name in all the
    /// connections to it.
    fn free_number(&self, what: &EndpointKey, type_name: &str) -> u32 {
        let kind = match what {
            EndpointKey::Publishes(_) => "publishes",
            EndpointKey::Subscribes(_) => "subscribes",
            EndpointKey::Serves(_) => "serves",
            EndpointKey::Calls(_) => "calls",
        };
        let hash = fnv([kind, what.name(), type_name]);
        let mut number = (hash ^ (hash >> 32) ^ (hash >> 64) ^ (hash >> 96)) as u32 & 0x7f_ffff;
        let is_taken =
            |number| number == 0 || self.endpoints.values().any(|it| it.number == number);
        while is_taken(number) {
            number = (number + 1) & 0x7f_ffff;
        }
        number
    }

    fn encode(&self, name: &str, distro: Distro) -> Option<Vec<u8>> {
        let (namespace, name) = split_name(name);
        let mut node = NodeEntitiesInfo {
            node_namespace: namespace.to_owned(),
            node_name: name.to_owned(),
            ..NodeEntitiesInfo::default()
        };
        for (what, known) in &self.endpoints {
            let is_writer = what.is_writer();
            let both = [is_writer, !is_writer];
            let halves = if what.is_service() { &both[..] } else { &both[..1] };
            for is_writer in halves {
                let all = if *is_writer { &mut node.writers } else { &mut node.readers };
                if all.len() < GIDS_MAX {
                    all.push(gid::Guid(endpoint_name(self.prefix, known.number, *is_writer)));
                }
            }
        }
        let participant = gid::Guid(participant(self.prefix).0);
        // One whose name ROS 2 forbids has no node there.
        ParticipantEntitiesInfo { participant, nodes: vec![node] }
            .encode(distro, ByteOrder::Little)
            .ok()
    }
}

fn found_endpoints(
    prefix: Prefix,
    number: u32,
    what: &EndpointKey,
    named: &Named,
) -> Vec<FoundEndpoint> {
    let is_writer = what.is_writer();
    let end = format!("ros1.{number}");
    let end = match what {
        EndpointKey::Serves(_) => Some(ServiceEnd::Server(end)),
        EndpointKey::Calls(_) => Some(ServiceEnd::Client(end)),
        EndpointKey::Publishes(_) | EndpointKey::Subscribes(_) => None,
    };
    let user_data = EndpointUserData { service_end: end, ..EndpointUserData::default() };
    let user_data = user_data.write().unwrap_or_default();
    // What a publisher of ROS 1 keeps for late joiners is known when it is connected to, and offering more than is
    // asked for does no harm. A subscriber takes what it gets.
    let qos = match what {
        EndpointKey::Publishes(_) => Qos::LATCHED,
        EndpointKey::Subscribes(_) => Qos { reliability: Reliability::BestEffort, ..Qos::DEFAULT },
        EndpointKey::Serves(_) | EndpointKey::Calls(_) => Qos::DEFAULT,
    };
    let Ok(qos) = WireQos::new(&qos) else { return Vec::new() };
    let endpoint = |is_writer, (topic, type_name)| FoundEndpoint {
        name: Gid(endpoint_name(prefix, number, is_writer)),
        participant: participant(prefix),
        is_writer,
        topic,
        type_name,
        user_data: user_data.clone(),
        qos,
    };
    let names = match what.is_service() {
        true => role::halves(named).map(Vec::from),
        false => role::of_topic(named).map(|it| vec![it]),
    };
    // The first half of a service is that of requests.
    let names = names.unwrap_or_default().into_iter().zip([is_writer, !is_writer]);
    names.map(|(names, is_writer)| endpoint(is_writer, names)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const API: &str = "http://robot:1/";

    fn told(graph: &mut Graph) -> Vec<String> {
        let told = graph.take_found().into_iter().map(|found| match found {
            Found::Participant(it) => format!("node on {:?}", it.host),
            Found::Endpoint(it) => format!("{} writes {}", it.topic, it.is_writer),
            Found::Gone(_) => "gone".to_owned(),
        });
        told.collect()
    }

    #[test]
    fn a_node_comes_before_what_it_has_and_goes_after_it() {
        let mut graph = Graph::default();
        assert_eq!(graph.add("/talker", EndpointKey::Publishes("/a".to_owned()), "x/msg/A"), None);
        assert!(graph.add_node("/talker", API, "robot", Some(7)));
        let publishes = EndpointKey::Publishes("/a".to_owned());
        let first = graph.add("/talker", publishes.clone(), "x/msg/A").unwrap();
        assert_eq!(graph.add("/talker", publishes.clone(), "x/msg/A"), Some(first));
        let served = graph.add("/talker", EndpointKey::Serves("/s".to_owned()), "x/srv/S").unwrap();
        let expect = [
            "node on Some(\"robot\")",
            "rt/a writes true",
            "rq/sRequest writes false",
            "rr/sReply writes true",
        ];
        assert_eq!(told(&mut graph), expect);
        assert_eq!(gid::Guid(first).prefix(), gid::Guid(served).prefix());
        assert_ne!(first, served);
        // Another type is another endpoint.
        assert_ne!(graph.add("/talker", publishes, "x/msg/B"), Some(first));
        assert_eq!(told(&mut graph), ["gone", "rt/a writes true"]);
        graph.remove_node("/talker");
        assert_eq!(told(&mut graph), ["gone"; 4]);
    }

    #[test]
    fn one_of_the_same_name_at_another_address_is_another_node() {
        let mut graph = Graph::default();
        graph.add_node("/talker", API, "robot", None);
        let before = graph.add("/talker", EndpointKey::Subscribes("/a".to_owned()), "x/msg/A");
        graph.add_node("/talker", "http://robot:2/", "robot", None);
        assert_eq!(graph.of_node("/talker"), []);
        let after = graph.add("/talker", EndpointKey::Subscribes("/a".to_owned()), "x/msg/A");
        assert_ne!(before, after);
        assert_eq!(graph.at("http://robot:2/"), Some("/talker"));
        assert_eq!(graph.at(API), None);
    }

    #[test]
    fn nodes_are_told_with_what_they_have() {
        let mut graph = Graph::default();
        let listener = graph.listen(Arc::default());
        graph.add_node("/arm/driver", API, "robot", None);
        let name =
            graph.add("/arm/driver", EndpointKey::Subscribes("/a".to_owned()), "x/msg/A").unwrap();
        let said = graph.take_nodes(listener, Distro::Jazzy).unwrap();
        let said = ParticipantEntitiesInfo::decode(&said.bytes, Distro::Jazzy).unwrap();
        let node = &said.nodes[0];
        assert_eq!((&*node.node_namespace, &*node.node_name), ("/arm", "driver"));
        assert_eq!(node.readers, [gid::Guid(name)]);
        assert!(graph.take_nodes(listener, Distro::Jazzy).is_none());
        // Who listens later is told of all.
        let late = graph.listen(Arc::default());
        assert!(graph.take_nodes(late, Distro::Jazzy).is_some());
    }
}
