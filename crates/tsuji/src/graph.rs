//! What can be seen of the whole system: nodes, endpoints, routes.

use serde::{Deserialize, Serialize};
pub use tsuji_core::flows::{Role, RouteState};
use tsuji_core::{Qos, rxo};
use tsuji_transport::Gid;

/// All nodes and endpoints that a process knows, its own among them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Nodes, in the order of their full names.
    pub nodes: Vec<NodeInfo>,
    /// Endpoints of topics, in the order of the topics, publishers first.
    pub endpoints: Vec<EndpointInfo>,
    /// Servers and clients, in the order of the services, servers first.
    pub services: Vec<EndpointInfo>,
}

/// A node in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Global identifier of the node (16 bytes).
    pub gid: Gid,
    /// Name of the node, without namespace.
    pub name: String,
    /// Namespace of the node, `/` or such as `/robot`.
    pub namespace: String,
    /// Security enclave of the node, `/` by default.
    pub enclave: String,
    /// Process that the node lives in.
    pub process: ProcessInfo,
    /// Middleware that the node runs on, such as `Cyclone DDS`; `None` for tsuji.
    pub vendor: Option<String>,
}

impl NodeInfo {
    /// Returns namespace and name, such as `/robot/camera`.
    pub fn fully_qualified_name(&self) -> String {
        full_name(&self.namespace, &self.name)
    }
}

pub(crate) fn full_name(namespace: &str, name: &str) -> String {
    format!("{}/{name}", namespace.trim_end_matches('/'))
}

/// A publisher or a subscription, a server or a client in the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointInfo {
    /// Global identifier of the endpoint (16 bytes).
    pub gid: Gid,
    /// Kind of the endpoint.
    pub kind: EndpointKind,
    /// Full name of the topic or of the service.
    pub topic: String,
    /// Name of the type, such as `std_msgs/msg/String` or `std_srvs/srv/SetBool`.
    pub type_name: String,
    /// Hash of the type, such as `RIHS01_…`; empty when it is not known.
    pub type_hash: String,
    /// QoS that the endpoint offers or asks for.
    pub qos: Qos,
    /// Full name of the node.
    pub node: String,
    /// Process that the endpoint lives in.
    pub process: ProcessInfo,
    /// Middleware that the endpoint runs on, such as `Cyclone DDS`; `None` for tsuji.
    pub vendor: Option<String>,
}

impl EndpointInfo {
    /// Returns what of type and QoS keeps samples of this publisher from `subscription`; nothing, if they
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

/// Kind of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndpointKind {
    /// Sends messages.
    Publisher,
    /// Receives messages.
    Subscription,
    /// Answers requests.
    Server,
    /// Sends requests.
    Client,
}

/// A process that takes part in the domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Random name of the process, which tells it from all others whatever its id is.
    pub token: String,
    /// Process id, as the process's own namespace counts.
    pub pid: u32,
    /// Name of the program.
    pub program: String,
    /// Name of the host.
    pub host: String,
}

/// Another process of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerProcess {
    /// The process; as the kernel knows it until it has introduced itself.
    pub process: ProcessInfo,
    /// True once the process has told all it had when it was met. One that is stopped does not.
    pub is_settled: bool,
}

/// A process in the run-time folder that could not be met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreachablePeer {
    /// Path of the process's socket.
    pub path: String,
    /// Reason why it was not met.
    pub reason: String,
}

/// Abilities and state of a transport of this process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransportReport {
    /// Name of the transport, such as `shm`.
    pub name: String,
    /// False for a transport that need not be there and is not.
    pub is_installed: bool,
    /// True for a transport that this process does without, since the process is secured and the transport is not.
    pub is_left_out: bool,
    /// Distances that it covers, of intra, local and remote.
    pub scopes: Vec<String>,
    /// Peers that it can talk to, of tsuji, cyclone, fast, zenoh and other; to foreign nodes where interop
    /// lets it.
    pub peers: Vec<String>,
    /// True if it delivers reliably.
    pub reliable: bool,
    /// True if it lends memory.
    pub loan: bool,
    /// True if it carries values by reference.
    pub typed: bool,
    /// Largest sample that it accepts, in bytes.
    pub sample_bytes_max: u64,
    /// Most readers of one writer.
    pub readers_max: u32,
    /// Reason why it does not work now.
    pub trouble: Option<String>,
    /// State of its engine and the reason, where the policy prefers memory and others may be on its wire: whether it is
    /// there, or is only listened for others.
    pub activity: Option<String>,
    /// Counts of the transport, with their names.
    pub figures: Vec<(String, u64)>,
}

/// A flow and its route, as seen from both ends, which are asked one after the other: while samples flow, their
/// counts may differ by what was sent in between.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouteReport {
    /// Full name of the topic or of the service.
    pub topic: String,
    /// Kind of the samples. Of a service there are two flows for each client and server that fit.
    pub role: Role,
    /// Name of the type, such as `sensor_msgs/msg/Image`.
    pub type_name: String,
    /// End that sends.
    pub publisher: EndReport,
    /// End that receives.
    pub subscription: EndReport,
    /// State of the route.
    pub state: RouteState,
    /// Transport that carries the flow.
    pub transport: Option<String>,
    /// Transport that is being opened in its place.
    pub handover_to: Option<String>,
    /// Transport that the user has set for the topic.
    pub pinned: Option<String>,
    /// Protection of the samples on their way, if this process is secured: `confined` to memory that only processes have which have
    /// proved their keys, or by governance `encrypted`, `signed` or `not protected`. `None` in clear.
    pub protection: Option<String>,
    /// Latest routes of the flow, the first among them if there were few.
    pub changes: Vec<RouteChange>,
    /// Reason for this transport, with what was known of the flow when it was decided.
    pub because: String,
    /// Other transports, each with the reason why not.
    pub rejected: Vec<(String, String)>,
    /// Types or policies that do not fit, when the two ends are incompatible.
    pub mismatches: Vec<String>,
    /// Size of the samples as is known now, small or large; like all traits it may differ from what `because` says.
    pub size: String,
    /// Source that the size is known from.
    pub size_origin: String,
    /// Bytes of a typical sample.
    pub sample_bytes: Option<u64>,
    /// Distance of the two ends: intra, local or remote.
    pub scope: String,
    /// Reliability of the flow, reliable or best_effort.
    pub reliability: String,
    /// Kind of the other end, such as tsuji.
    pub peer: String,
    /// Number of routes that the flow has had.
    pub epoch: u32,
    /// Time since which it has this route, in nanoseconds since the Unix epoch.
    pub since_wall_ns: i64,
    /// Samples sent to this subscription, 0 if the publisher is a foreign node's: those published since the
    /// flow began, and those of before that a late joiner was owed.
    pub sent: u64,
    /// True if the subscription's process has told what it counts. A foreign node's does not, nor one that did not answer in time.
    pub is_counted: bool,
    /// Samples received; this and what follows is 0 if it is not counted.
    pub samples: u64,
    /// Bytes received; values by reference count as nothing.
    pub bytes: u64,
    /// Samples received a second, of late.
    pub rate_hz: f64,
    /// Bytes received a second, of late.
    pub bytes_per_s: f64,
    /// Time from publish() to the subscription's taking it, of the samples since the last handover; `None` until there is one.
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
    /// Returns true if the two ends are of different types, so that nothing flows whatever the QoS.
    pub fn has_two_types(&self) -> bool {
        self.mismatches.iter().any(|it| it.starts_with(OF_TYPES))
    }

    /// Returns the number of samples that the subscription's user does not get, by cause: `displaced`, `expired`, `invalid`, `lost`
    /// and `duplicate`.
    pub fn drops(&self) -> [(&'static str, u64); 5] {
        [
            ("displaced", self.displaced),
            ("expired", self.expired),
            ("invalid", self.invalid),
            ("lost", self.lost),
            ("duplicate", self.duplicates),
        ]
    }

    /// Returns what decided, such as `rule "on this host"`, without the place of the rule and the traits of the flow; of two
    /// ends that do not fit, what does not.
    pub fn reason(&self) -> String {
        if !self.mismatches.is_empty() {
            return self.mismatches.join("; ");
        }
        basis(&self.because).to_owned()
    }
}

/// What decided, without what follows it.
fn basis(because: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = because.char_indices().find(|(at, letter)| {
        let rest = &because[*at..];
        let is_end = !is_quoted && (rest.starts_with("; ") || rest.starts_with(" ("));
        // The name of a rule stands in quotes, and may have anything in it.
        is_quoted ^= *letter == '"' && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        is_end
    });
    end.map_or(because, |(at, _)| &because[..at])
}

/// One end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// Global identifier of the endpoint, as text.
    pub gid: String,
    /// Full name of the node.
    pub node: String,
    /// Process id, as the process's own namespace counts.
    pub pid: u32,
    /// Name of the program.
    pub program: String,
    /// Name of the host.
    pub host: String,
    /// Middleware that the end runs on, such as `Cyclone DDS`; `None` for tsuji. What such an end
    /// sent, or received, it does not tell.
    pub vendor: Option<String>,
    /// Certificate by which the end has proved who it is; `None` where it is not secured.
    pub certificate: Option<CertificateReport>,
}

/// Certificate by which an end of a flow has proved who it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateReport {
    /// Whom it is for, such as `CN=/talker`.
    pub subject: String,
    /// Time until which it and the permissions beside it count, in nanoseconds since the Unix epoch.
    pub expires_wall_ns: i64,
}

impl EndReport {
    /// Returns true if the end is on another middleware, and does not tell what it sends or receives.
    pub fn is_foreign(&self) -> bool {
        self.vendor.is_some()
    }
}

/// A change of a flow's route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteChange {
    /// Time when the link carried its first sample, or could have, in nanoseconds since the Unix epoch.
    pub wall_ns: i64,
    /// Number of links that were tried for the flow.
    pub epoch: u32,
    /// Transport before; `None` if this was the first, or the flow had lost it.
    pub from: Option<String>,
    /// Transport since.
    pub to: String,
    /// Event that made it be decided again.
    pub why: String,
    /// Reason for this transport.
    pub because: String,
    /// Microseconds from the decision until the new link carried.
    pub opening_us: f64,
    /// Microseconds from there until the subscription had all that came by the old one.
    pub settling_us: f64,
    /// Most samples that were held at one time meanwhile.
    pub held: u64,
    /// True once the subscription has said that it has all of the old link; until then the two before are
    /// 0.
    pub is_settled: bool,
}

/// Answer of a process to [`Context::set_route`](crate::Context::set_route).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteSetting {
    /// Process that answers.
    pub process: ProcessInfo,
    /// Number of flows of the topic that it decides about; or why it has refused.
    pub outcome: Result<u32, String>,
}

/// Latencies of a flow's samples, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Median, in microseconds.
    pub median_us: f64,
    /// Latency that one sample in a hundred exceeded, in microseconds.
    pub p99_us: f64,
    /// Longest latency, in microseconds.
    pub max_us: f64,
    /// Sum of all latencies, in microseconds.
    pub sum_us: f64,
    /// Number of samples by latency: up to each of [`BOUNDS_US`](Self::BOUNDS_US) and above the one before it, then
    /// those above the last. A sample within 3 % of a bound may stand on its other side.
    pub counts: Vec<u64>,
    /// Clock that measured: `monotonic` on one host, else `wall`.
    pub clock: String,
}

impl LatencyReport {
    /// Bounds of [`counts`](Self::counts), in microseconds.
    pub const BOUNDS_US: [u64; 13] =
        [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
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
    pub(crate) handover_to: Option<String>,
    pub(crate) pinned: Option<String>,
    pub(crate) protection: Option<String>,
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
            report(half, counts.remove(&key))
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

fn report(decision: DecisionHalf, count: Option<CountHalf>) -> RouteReport {
    let is_counted = count.is_some();
    let count = count.unwrap_or_default();
    RouteReport {
        topic: decision.topic,
        role: decision.role,
        type_name: decision.type_name,
        publisher: decision.publisher_end,
        subscription: decision.subscription_end,
        state: decision.state,
        transport: decision.transport,
        handover_to: decision.handover_to,
        pinned: decision.pinned,
        protection: decision.protection,
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
        is_counted,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_what_stands_before_place_and_traits_whatever_a_rule_is_called() {
        for (because, reason) in [
            ("rule \"on this host\" (default.xml:4); small, on this host", "rule \"on this host\""),
            (r#"rule "a; b (c" (t.xml:1); small"#, r#"rule "a; b (c""#),
            (r#"rule "q\" (x\\" (at run time)"#, r#"rule "q\" (x\\""#),
            ("no rule; the default", "no rule"),
            ("", ""),
        ] {
            assert_eq!(basis(because), reason);
        }
    }
}
