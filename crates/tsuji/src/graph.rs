//! What can be seen of the whole system: nodes, endpoints, routes.

use serde::{Deserialize, Serialize};
use tsuji_core::{Qos, rxo};
use tsuji_transport::Gid;

/// All that a process knows of the others and of itself.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Nodes, by full name.
    pub nodes: Vec<NodeInfo>,
    /// Endpoints of topics, by topic, publishers first.
    pub endpoints: Vec<EndpointInfo>,
    /// Servers and clients, by service, servers first.
    pub services: Vec<EndpointInfo>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its number.
    pub gid: Gid,
    /// Its name, without namespace.
    pub name: String,
    /// Its namespace, `/` or `/robot`.
    pub namespace: String,
    /// Where it lives.
    pub process: ProcessInfo,
    /// Whose middleware it runs on, such as `Cyclone DDS`, if it is not tsuji's.
    pub vendor: Option<String>,
}

impl NodeInfo {
    /// Namespace and name.
    pub fn fully_qualified_name(&self) -> String {
        full_name(&self.namespace, &self.name)
    }
}

pub(crate) fn full_name(namespace: &str, name: &str) -> String {
    format!("{}/{name}", namespace.trim_end_matches('/'))
}

/// A publisher or a subscription, a server or a client.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointInfo {
    /// Its number.
    pub gid: Gid,
    /// What it is.
    pub kind: EndpointKind,
    /// The full topic name, or the service's.
    pub topic: String,
    /// Such as `std_msgs/msg/String` or `std_srvs/srv/SetBool`.
    pub type_name: String,
    /// Such as `RIHS01_…`; empty when it is not known.
    pub type_hash: String,
    /// What it offers or asks for.
    pub qos: Qos,
    /// The node's full name.
    pub node: String,
    /// Where it lives.
    pub process: ProcessInfo,
    /// Whose middleware it runs on, such as `Cyclone DDS`, if it is not tsuji's.
    pub vendor: Option<String>,
}

impl EndpointInfo {
    /// What of type and QoS keeps samples of this publisher from `subscription`; nothing, if they
    /// fit.
    pub fn mismatches(&self, subscription: &Self) -> Vec<String> {
        let type_of = |it: &Self| type_mismatch(self.ty(), it.ty());
        let qos = rxo::check(&self.qos, &subscription.qos).err().into_iter().flatten();
        type_of(subscription).into_iter().chain(qos.map(|it| it.to_string())).collect()
    }

    fn ty(&self) -> TypeOf<'_> {
        TypeOf { name: &self.type_name, hash: &self.type_hash }
    }
}

/// The type of an endpoint.
#[derive(Clone, Copy)]
pub(crate) struct TypeOf<'a> {
    pub(crate) name: &'a str,
    pub(crate) hash: &'a str,
}

/// What is different between two types, if anything. An unknown hash fits any.
pub(crate) fn type_mismatch(offered: TypeOf<'_>, requested: TypeOf<'_>) -> Option<String> {
    let (name, hash) = (offered.name, offered.hash);
    if name != requested.name {
        return Some(format!("{OF_TYPES}: offered {name}, requested {}", requested.name));
    }
    let differ = hash != requested.hash && !hash.is_empty() && !requested.hash.is_empty();
    differ.then(|| format!("{OF_TYPES} hash: offered {hash}, requested {}", requested.hash))
}

/// What a mismatch of types begins with, and none of QoS.
const OF_TYPES: &str = "type";

/// What an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndpointKind {
    /// It sends.
    Publisher,
    /// It receives.
    Subscription,
    /// It answers requests.
    Server,
    /// It sends requests.
    Client,
}

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Messages of a topic.
    Topic,
    /// Requests to a service.
    Request,
    /// A service's replies.
    Reply,
}

/// A process that takes part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Names the process, whatever its id means to whoever looks.
    pub token: String,
    /// Its id, as its own namespace counts.
    pub pid: u32,
    /// Its program's name.
    pub program: String,
    /// Its host's name.
    pub host: String,
}

/// Another process of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Which one; as the kernel knows it until it has introduced itself.
    pub process: ProcessInfo,
    /// It has told all it had when it was met. One that is stopped does not.
    pub is_settled: bool,
}

/// A process in the run-time folder that could not be met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stranger {
    /// Its socket.
    pub path: String,
    /// Why it was not met.
    pub reason: String,
}

/// What a transport of this process can do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransportReport {
    /// Its name.
    pub name: String,
    /// It is there. One that need not be may be missing.
    pub is_installed: bool,
    /// How far it reaches, of intra, local and remote.
    pub scopes: Vec<String>,
    /// Whom it can talk to, of tsuji, cyclone, fast, zenoh and other; to plain nodes where interop
    /// lets it.
    pub peers: Vec<String>,
    /// It delivers reliably.
    pub reliable: bool,
    /// It lends memory.
    pub loan: bool,
    /// It carries values by reference.
    pub typed: bool,
    /// The largest sample it accepts.
    pub sample_bytes_max: u64,
    /// The most readers of one writer.
    pub readers_max: u32,
    /// Why it does not work now.
    pub trouble: Option<String>,
    /// Where the policy prefers memory and others may be on its wire: whether its engine is there, or
    /// only listened for others, and why.
    pub standing: Option<String>,
    /// What it counts.
    pub figures: Vec<(String, u64)>,
}

/// One flow, as seen from both ends, which are asked one after the other: while samples flow, their
/// counts may differ by what was sent in between.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouteReport {
    /// The full topic name, or the service's.
    pub topic: String,
    /// What it carries. Of a service there are two flows for each client and server that fit.
    pub role: Role,
    /// Such as `sensor_msgs/msg/Image`.
    pub type_name: String,
    /// Who sends.
    pub publisher: EndReport,
    /// Who receives.
    pub subscription: EndReport,
    /// How far it has come.
    pub state: RouteState,
    /// The transport that carries it.
    pub transport: Option<String>,
    /// The one that is being opened in its place.
    pub changing_to: Option<String>,
    /// What the user has set for the topic.
    pub pinned: Option<String>,
    /// The roads it has had, of late, the first among them if there were few.
    pub changes: Vec<RouteChange>,
    /// Why this transport, with what was known of the flow when it was decided.
    pub because: String,
    /// Every other transport, and why not.
    pub rejected: Vec<(String, String)>,
    /// What does not fit, when the two ends are incompatible.
    pub mismatches: Vec<String>,
    /// small or large, as is known now; like all traits it may differ from what `because` says.
    pub size: String,
    /// How the size is known.
    pub size_origin: String,
    /// The bytes of a typical sample.
    pub sample_bytes: Option<u64>,
    /// intra, local or remote.
    pub scope: String,
    /// reliable or best_effort.
    pub reliability: String,
    /// Who the other end is.
    pub peer: String,
    /// Counts the routes that the flow has had.
    pub epoch: u32,
    /// Since when it has this route, in nanoseconds since the Unix epoch.
    pub since_wall_ns: i64,
    /// Samples sent to this subscription, 0 if the publisher is a plain node's: those published since the
    /// flow began, and those of before that a late joiner was owed.
    pub sent: u64,
    /// Samples received; this and what follows is 0 if the subscription is a plain node's.
    pub samples: u64,
    /// Bytes received; values by reference count as nothing.
    pub bytes: u64,
    /// Samples a second, of late.
    pub rate_hz: f64,
    /// Bytes a second, of late.
    pub bytes_per_s: f64,
    /// From publish() to the subscription's taking it.
    pub latency: Option<LatencyReport>,
    /// Samples pushed out of the subscription's full queue.
    pub displaced: u64,
    /// Samples whose lifespan had passed.
    pub expired: u64,
    /// Samples that were no valid message of the type.
    pub invalid: u64,
    /// Samples that never came.
    pub lost: u64,
    /// Samples that came once more and were not delivered.
    pub duplicates: u64,
}

impl RouteReport {
    /// Whether the two ends are of different types, so that nothing flows whatever the QoS.
    pub fn has_two_types(&self) -> bool {
        self.mismatches.iter().any(|it| it.starts_with(OF_TYPES))
    }
}

/// One end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// The endpoint's number.
    pub gid: String,
    /// The node's full name.
    pub node: String,
    /// The process id, as its own namespace counts.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// The host.
    pub host: String,
    /// Whose middleware it runs on, such as `Cyclone DDS`, if it is not tsuji's. What such an end
    /// sent, or received, it does not tell.
    pub vendor: Option<String>,
}

/// A flow came to a road.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteChange {
    /// When the road carried its first sample, or could have, in nanoseconds since the Unix epoch.
    pub wall_ns: i64,
    /// Counts the roads that were tried for the flow.
    pub epoch: u32,
    /// The transport before; `None` if this was the first, or the flow had lost it.
    pub from: Option<String>,
    /// The transport since.
    pub to: String,
    /// What made it be decided again.
    pub why: String,
    /// Why this transport.
    pub because: String,
    /// From the decision until the new road carried.
    pub opening_us: f64,
    /// From there until the subscription had all that came by the old one.
    pub settling_us: f64,
    /// The most samples that were held at one time meanwhile.
    pub held: u64,
    /// Whether the subscription has said that it has all of the old road; until then the two before are
    /// 0.
    pub is_settled: bool,
}

/// What a process has done about a road that the user has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteSetting {
    /// The process.
    pub process: ProcessInfo,
    /// How many flows of the topic it decides about; or why it has refused.
    pub outcome: Result<u32, String>,
}

/// How far a flow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteState {
    /// The two ends are agreeing on the road.
    Opening,
    /// Samples flow.
    Active,
    /// QoS or type do not fit.
    Incompatible,
    /// No transport can carry it.
    NoRoute,
}

/// How long samples were on their way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Half of them were faster.
    pub median_us: f64,
    /// One in a hundred was slower.
    pub p99_us: f64,
    /// None was slower.
    pub max_us: f64,
    /// `monotonic` on one host, else `wall`.
    pub clock: String,
}

/// What one end knows of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum RouteHalf {
    /// The publisher's end, which decides.
    Decision(Box<DecisionHalf>),
    /// The subscription's end, which counts.
    Count(CountHalf),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DecisionHalf {
    pub(crate) publisher: [u8; 16],
    pub(crate) subscription: [u8; 16],
    pub(crate) topic: String,
    pub(crate) role: Role,
    pub(crate) type_name: String,
    pub(crate) publisher_end: EndReport,
    pub(crate) subscription_end: EndReport,
    pub(crate) state: RouteState,
    pub(crate) transport: Option<String>,
    pub(crate) changing_to: Option<String>,
    pub(crate) pinned: Option<String>,
    pub(crate) changes: Vec<RouteChange>,
    pub(crate) because: String,
    pub(crate) rejected: Vec<(String, String)>,
    pub(crate) mismatches: Vec<String>,
    pub(crate) size: String,
    pub(crate) size_origin: String,
    pub(crate) sample_bytes: Option<u64>,
    pub(crate) scope: String,
    pub(crate) reliability: String,
    pub(crate) peer: String,
    pub(crate) epoch: u32,
    pub(crate) since_wall_ns: i64,
    pub(crate) sent: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CountHalf {
    pub(crate) publisher: [u8; 16],
    pub(crate) subscription: [u8; 16],
    pub(crate) samples: u64,
    pub(crate) bytes: u64,
    pub(crate) rate_hz: f64,
    pub(crate) bytes_per_s: f64,
    pub(crate) latency: Option<LatencyReport>,
    pub(crate) displaced: u64,
    pub(crate) expired: u64,
    pub(crate) invalid: u64,
    pub(crate) lost: u64,
    pub(crate) duplicates: u64,
}

/// Puts the two halves of each flow together. A flow whose publisher did not answer is left out.
pub(crate) fn join(halves: Vec<RouteHalf>) -> Vec<RouteReport> {
    let mut counts = std::collections::HashMap::new();
    let mut decisions = Vec::new();
    for half in halves {
        match half {
            RouteHalf::Decision(half) => decisions.push(*half),
            RouteHalf::Count(half) => {
                counts.insert((half.publisher, half.subscription), half);
            }
        }
    }
    let mut reports: Vec<RouteReport> = decisions
        .into_iter()
        .map(|half| {
            let key = (half.publisher, half.subscription);
            report(half, counts.remove(&key).unwrap_or_default())
        })
        .collect();
    reports.sort_by(|a, b| {
        let key = |it: &RouteReport| {
            let role = it.role as u8;
            (it.topic.clone(), role, it.publisher.gid.clone(), it.subscription.gid.clone())
        };
        key(a).cmp(&key(b))
    });
    reports
}

fn report(decision: DecisionHalf, count: CountHalf) -> RouteReport {
    RouteReport {
        topic: decision.topic,
        role: decision.role,
        type_name: decision.type_name,
        publisher: decision.publisher_end,
        subscription: decision.subscription_end,
        state: decision.state,
        transport: decision.transport,
        changing_to: decision.changing_to,
        pinned: decision.pinned,
        changes: decision.changes,
        because: decision.because,
        rejected: decision.rejected,
        mismatches: decision.mismatches,
        size: decision.size,
        size_origin: decision.size_origin,
        sample_bytes: decision.sample_bytes,
        scope: decision.scope,
        reliability: decision.reliability,
        peer: decision.peer,
        epoch: decision.epoch,
        since_wall_ns: decision.since_wall_ns,
        sent: decision.sent,
        samples: count.samples,
        bytes: count.bytes,
        rate_hz: count.rate_hz,
        bytes_per_s: count.bytes_per_s,
        latency: count.latency,
        displaced: count.displaced,
        expired: count.expired,
        invalid: count.invalid,
        lost: count.lost,
        duplicates: count.duplicates,
    }
}
