//! What the graph shows of itself: nodes, endpoints, flows.

use tsuji_core::TransportId;
use tsuji_core::flows::{Change, Route, View};
use tsuji_transport::{Gid, PeerId};

use super::{GraphCache, Known};
use crate::control::protocol::{EndpointRecord, Flow};
use crate::endpoint::Audience;
use crate::graph::{
    CertificateReport, DecisionHalf, EndReport, EndpointInfo, EndpointKind, Graph, NodeInfo,
    ProcessInfo, Role, RouteChange, RouteHalf, full_name,
};
use crate::security::report_of;
use crate::session::Session;

impl GraphCache {
    pub(crate) fn graph(&self, session: &Session) -> Graph {
        let mut nodes: Vec<NodeInfo> = self
            .nodes
            .iter()
            .map(|(gid, known)| NodeInfo {
                gid: *gid,
                name: known.record.name.clone(),
                namespace: session.outward().namespace_here(&known.record.namespace).into_owned(),
                enclave: known.record.enclave.clone(),
                process: self.process(session, known.peer),
                vendor: self.foreign.vendor(known.peer),
            })
            .collect();
        nodes.sort_by_key(|node| (node.fully_qualified_name(), node.gid));
        let mut endpoints = self.shown_as(session, self.endpoints.keys(), Role::Topic);
        // A client or a server is shown by its half for requests.
        let mut services = self.shown_as(session, self.endpoints.keys(), Role::Request);
        let order = |a: &EndpointInfo, b: &EndpointInfo| {
            (&a.topic, a.kind, a.gid).cmp(&(&b.topic, b.kind, b.gid))
        };
        endpoints.sort_by(order);
        services.sort_by(order);
        Graph { nodes, endpoints, services }
    }

    /// What [`graph`](Self::graph) shows of one topic.
    pub(crate) fn endpoints_of(&self, session: &Session, topic: &str) -> Vec<EndpointInfo> {
        let here = self.topics.get(topic).into_iter().flatten();
        let mut endpoints = self.shown_as(session, here, Role::Topic);
        endpoints.sort_by_key(|it| (it.kind, it.gid));
        endpoints
    }

    /// Those of `gids` that have this role.
    fn shown_as<'a>(
        &self,
        session: &Session,
        gids: impl Iterator<Item = &'a Gid>,
        role: Role,
    ) -> Vec<EndpointInfo> {
        let known = gids.filter_map(|gid| Some((gid, self.endpoints.get(gid)?)));
        // Those inside know the publisher that is for them.
        let is_shown = |gid: Gid| self.audience(gid) != Audience::Outside;
        let shown = known.filter(|(gid, it)| it.record.role == role && is_shown(**gid));
        shown
            .map(|(gid, known)| EndpointInfo {
                gid: *gid,
                kind: kind(&known.record),
                topic: known.record.topic.clone(),
                type_name: known.record.type_name.clone(),
                type_hash: known.record.type_hash.clone(),
                qos: known.record.qos.into(),
                node: session
                    .outward()
                    .node_here(&self.node_name(Gid(known.record.node)))
                    .into_owned(),
                process: self.process(session, known.peer),
                vendor: self.foreign.vendor(known.peer),
            })
            .collect()
    }

    /// What this process knows of flows. Their nodes have their names outside.
    pub(crate) fn halves(&self, session: &Session) -> Vec<RouteHalf> {
        let facts = self.facts(session);
        let decisions = self.flows.iter().filter_map(|(flow, route)| {
            let publisher = self.endpoints.get(&Gid(flow.publisher))?;
            // As they are now: what the decision was made on is told in its reason.
            let traits = facts.traits(flow)?;
            let choice = route.decision.as_ref()?;
            Some(RouteHalf::Decision(Box::new(DecisionHalf {
                publisher: flow.publisher,
                subscription: flow.subscription,
                topic: publisher.record.topic.clone(),
                role: publisher.record.role,
                type_name: publisher.record.type_name.clone(),
                publisher_end: self.end(session, Gid(flow.publisher)),
                subscription_end: self.end(session, Gid(flow.subscription)),
                state: route.state,
                transport: choice.transport.as_ref().map(ToString::to_string),
                handover_to: route.handover_to().map(ToString::to_string),
                pinned: self.pinned(&publisher.record.topic),
                protection: choice
                    .transport
                    .as_ref()
                    .and_then(|transport| protection(session, transport, publisher)),
                changes: route.changes.iter().map(|it| change(route, it)).collect(),
                because: choice.because.clone(),
                rejected: choice.rejected.clone(),
                mismatches: route.mismatches.clone(),
                size: traits.size.to_string(),
                size_origin: traits.size_origin.to_string(),
                sample_bytes: traits.sample_bytes,
                scope: traits.scope.to_string(),
                reliability: traits.reliability.to_string(),
                peer: traits.peer.to_string(),
                epoch: route.handover.last().0 - route.last_epoch_before,
                since_wall_ns: route.since_wall_ns,
                sent: self.sent(flow, route),
            })))
        });
        let counts = self
            .subscription_cores
            .values()
            .flat_map(|subscription_core| subscription_core.halves());
        decisions.chain(counts.map(RouteHalf::Count)).collect()
    }

    /// How many samples were sent on a flow since it has its link, as far as this process knows.
    fn sent(&self, flow: Flow, route: &Route) -> u64 {
        let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) else { return 0 };
        // What a server sends, each client gets for itself.
        publisher_core.answered(Gid(flow.subscription)).unwrap_or_else(|| {
            let published = publisher_core.counters().published;
            route.published_before.map_or(0, |before| published.saturating_sub(before))
        })
    }

    fn end(&self, session: &Session, gid: Gid) -> EndReport {
        let Some(known) = self.endpoints.get(&gid) else { return EndReport::default() };
        let process = self.process(session, known.peer);
        EndReport {
            gid: gid.to_string(),
            node: self.node_name(Gid(known.record.node)),
            pid: process.pid,
            program: process.program,
            host: process.host,
            vendor: self.foreign.vendor(known.peer),
            certificate: self.certificate(session, known.peer),
        }
    }

    /// The certificate by which a process has proved who it is, if this one is secured.
    fn certificate(&self, session: &Session, peer: PeerId) -> Option<CertificateReport> {
        let security = session.security()?;
        if peer == session.id {
            return Some(security.certificate());
        }
        self.channels.proved(peer).map(|it| report_of(it.certificate(), it.expiry()))
    }

    /// The full name of a node outside.
    pub(super) fn node_name(&self, gid: Gid) -> String {
        let node = self.nodes.get(&gid).map(|known| &known.record);
        node.map_or_else(|| "?".to_owned(), |node| full_name(&node.namespace, &node.name))
    }

    fn process(&self, session: &Session, peer: PeerId) -> ProcessInfo {
        if peer == session.id {
            return session.info.clone();
        }
        self.foreign.process(peer).unwrap_or_else(|| self.channels.process(peer))
    }
}

/// What protects the samples of a publisher by a transport, where this process is secured.
fn protection(
    session: &Session,
    transport: &TransportId,
    publisher: &Known<EndpointRecord>,
) -> Option<String> {
    let security = session.security()?;
    let transport = session.transport(transport.as_str())?;
    if transport.is_confined() {
        return Some("confined".to_owned());
    }
    let topic = session.outward().topic(&publisher.record.topic);
    Some(security.protection(publisher.record.role, &topic).to_string())
}

/// A change of a flow's link, whose number counts those of this flow.
fn change(route: &Route, change: &Change) -> RouteChange {
    let us = |ns: u64| ns as f64 / 1e3;
    RouteChange {
        wall_ns: change.wall_ns,
        epoch: change.epoch - route.last_epoch_before,
        from: change.from.as_ref().map(ToString::to_string),
        to: change.to.to_string(),
        why: change.why.clone(),
        because: change.because.clone(),
        opening_us: us(change.opening_ns),
        settling_us: us(change.settling_ns),
        held: change.held,
        is_settled: change.is_settled,
    }
}

/// What an endpoint is to those who look.
fn kind(record: &EndpointRecord) -> EndpointKind {
    match (record.role, record.is_publisher) {
        (Role::Topic, true) => EndpointKind::Publisher,
        (Role::Topic, false) => EndpointKind::Subscription,
        (Role::Request, true) | (Role::Reply, false) => EndpointKind::Client,
        (Role::Request, false) | (Role::Reply, true) => EndpointKind::Server,
    }
}
