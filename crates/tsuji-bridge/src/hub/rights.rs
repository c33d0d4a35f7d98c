//! Which names, flows and processes a user may know of. What decides is what the user may do with a name, never how many flows have been
//! told: one of which the process is silent is none, and a name that nobody has now is still not everybody's to know.

use std::collections::HashSet;

use tsuji::{EndpointInfo, Graph, ProcessEngines, Role, RouteReport};
use tsuji_rosbridge::access::{Access, Act, UserKey};

use crate::observer::Snapshot;

/// A right to do something with a name.
pub(super) type Right<'n> = (Act, &'n str);

/// By what a topic is known, and by what a service is.
const KNOWN_BY: [Act; 2] = [Act::Subscribe, Act::CallService];

/// The acts that what has the name now is known by: that of a topic, that of a service, both, or none if nobody has it.
pub(super) fn acts_of(graph: &Graph, name: &str) -> Vec<Act> {
    let has_name = |all: &[EndpointInfo]| all.iter().any(|it| it.topic == name);
    let is_there = [has_name(&graph.endpoints), has_name(&graph.services)];
    KNOWN_BY
        .into_iter()
        .zip(is_there)
        .filter_map(|(act, is_there)| is_there.then_some(act))
        .collect()
}

/// All rights that a user needs to know of a name that is known by these acts. Without any it may have been a topic or a service, and both
/// are needed.
pub(super) fn rights_needed<'n>(name: &'n str, acts: &[Act]) -> Vec<Right<'n>> {
    let acts = if acts.is_empty() { &KNOWN_BY } else { acts };
    let mut rights: Vec<_> = acts.iter().map(|act| right_needed(name, *act)).collect();
    rights.dedup();
    rights
}

/// The right to know of a name as that of a topic or of a service, or of the action that it is a part of.
fn right_needed(name: &str, act: Act) -> Right<'_> {
    match name.split_once("/_action/") {
        Some((action, _)) => (Act::SendGoal, action),
        None => (act, name),
    }
}

/// Whether a user may know of a name that is known by these acts.
pub(super) fn may_know(access: &Access, user: Option<UserKey>, name: &str, acts: &[Act]) -> bool {
    rights_needed(name, acts).into_iter().all(|it| has_right(access, user, it))
}

/// Whether a user may know of a flow: may hear the topic, call the service, or send goals to the action that it is a part of.
pub(super) fn may_see(access: &Access, user: Option<UserKey>, flow: &RouteReport) -> bool {
    let act = match flow.role {
        Role::Topic => Act::Subscribe,
        Role::Request | Role::Reply => Act::CallService,
    };
    has_right(access, user, right_needed(&flow.topic, act))
}

fn has_right(access: &Access, user: Option<UserKey>, (act, name): Right<'_>) -> bool {
    access.decide(user, act, name).is_ok()
}

/// The flows that a user may know of, and the processes: all of them for who may know of every topic, service and flow, else those at the
/// ends of those flows.
pub(crate) fn visible<'s>(
    seen: &'s Snapshot,
    access: &Access,
    user: Option<UserKey>,
) -> (Vec<&'s RouteReport>, Vec<&'s ProcessEngines>) {
    let flows: Vec<_> = seen.routes.iter().filter(|it| may_see(access, user, it)).collect();
    let sees_all = flows.len() == seen.routes.len() && may_know_all(&seen.graph, access, user);
    let ends = flows.iter().flat_map(|it| [&it.publisher, &it.subscription]);
    let ends: HashSet<(u32, &str)> = ends.map(|it| (it.pid, &*it.host)).collect();
    let is_visible =
        |it: &&ProcessEngines| sees_all || ends.contains(&(it.process.pid, &*it.process.host));
    let processes = seen.processes.iter().filter(is_visible).collect();
    (flows, processes)
}

/// Whether a user may know of every topic and every service, whether anything flows there or not.
fn may_know_all(graph: &Graph, access: &Access, user: Option<UserKey>) -> bool {
    let may_know_each = |all: &[EndpointInfo], act| {
        all.iter().all(|it| has_right(access, user, right_needed(&it.topic, act)))
    };
    may_know_each(&graph.endpoints, Act::Subscribe)
        && may_know_each(&graph.services, Act::CallService)
}

#[cfg(test)]
pub(super) mod tests {
    use tsuji::{EndReport, EndpointKind, Gid, ProcessInfo, Qos, RouteState};
    use tsuji_rosbridge::access::{Globs, Permissions, ServerGlobs, Token, User};

    use super::*;

    /// Who may do so much and no more.
    pub(in crate::hub) fn user_with(may: Permissions) -> (Access, Option<UserKey>) {
        let user = User { may, ..User::unrestricted("user", Token::new("token")) };
        let access = Access::new(ServerGlobs::default(), vec![user]);
        let key = access.user("token");
        (access, key)
    }

    pub(in crate::hub) fn process(pid: u32) -> ProcessInfo {
        ProcessInfo { token: pid.to_string(), pid, program: "robot".into(), host: "host".into() }
    }

    pub(in crate::hub) fn endpoint(kind: EndpointKind, topic: &str, pid: u32) -> EndpointInfo {
        EndpointInfo {
            gid: Gid::default(),
            kind,
            topic: topic.into(),
            type_name: "std_msgs/msg/String".into(),
            type_hash: String::new(),
            qos: Qos::DEFAULT,
            node: "/node".into(),
            process: process(pid),
            vendor: None,
        }
    }

    pub(in crate::hub) fn flow(topic: &str, [from, to]: [u32; 2]) -> RouteReport {
        let end = |pid| EndReport { pid, host: "host".into(), ..EndReport::default() };
        RouteReport {
            topic: topic.into(),
            role: Role::Topic,
            type_name: String::new(),
            publisher: end(from),
            subscription: end(to),
            state: RouteState::Active,
            transport: None,
            handover_to: None,
            pinned: None,
            protection: None,
            changes: Vec::new(),
            because: String::new(),
            rejected: Vec::new(),
            mismatches: Vec::new(),
            size: String::new(),
            size_origin: String::new(),
            sample_bytes: None,
            scope: String::new(),
            reliability: String::new(),
            peer: String::new(),
            epoch: 1,
            since_wall_ns: 0,
            sent: 0,
            is_counted: false,
            samples: 0,
            bytes: 0,
            rate_hz: 0.0,
            bytes_per_s: 0.0,
            latency: None,
            displaced: 0,
            expired: 0,
            invalid: 0,
            lost: 0,
            duplicates: 0,
        }
    }

    /// The processes 1 to 3, of which the user may know these.
    fn seen_pids(
        endpoints: Vec<EndpointInfo>,
        routes: Vec<RouteReport>,
        may: Permissions,
    ) -> Vec<u32> {
        let (services, endpoints) = endpoints
            .into_iter()
            .partition(|it| matches!(it.kind, EndpointKind::Server | EndpointKind::Client));
        let graph = Graph { nodes: Vec::new(), endpoints, services };
        let of = |pid| ProcessEngines { process: process(pid), ..ProcessEngines::default() };
        let snapshot = Snapshot::new(graph, routes, vec![of(1), of(2), of(3)]);
        let (access, user) = user_with(may);
        let (_, processes) = visible(&snapshot, &access, user);
        processes.into_iter().map(|it| it.process.pid).collect()
    }

    pub(in crate::hub) fn only(subscribe: &str, call_service: &str) -> Permissions {
        let [subscribe, call_service] =
            [subscribe, call_service].map(|it| Globs::parse(it).unwrap());
        Permissions { subscribe, call_service, ..Permissions::NONE }
    }

    #[test]
    fn who_may_not_know_of_a_topic_sees_no_more_where_its_flow_is_silent_or_absent() {
        use EndpointKind::{Publisher, Server, Subscription};
        let secret =
            || vec![endpoint(Publisher, "/secret", 1), endpoint(Subscription, "/secret", 2)];
        let open = || endpoint(Publisher, "/open", 3);
        let all_of = |mut ends: Vec<EndpointInfo>| {
            ends.push(open());
            ends
        };
        let of_open = || vec![flow("/open", [3, 3])];
        // The process of the publisher decides, and does not answer: none of its flows is told.
        assert_eq!(seen_pids(secret(), vec![], only("[/map]", "[]")), [0; 0]);
        assert_eq!(seen_pids(all_of(secret()), of_open(), only("[/open]", "[]")), [3]);
        assert_eq!(seen_pids(all_of(secret()), of_open(), only("", "[]")), [1, 2, 3]);
        // The same of a service that nobody calls.
        let vault = || all_of(vec![endpoint(Server, "/vault/open", 1)]);
        assert_eq!(seen_pids(vault(), of_open(), only("", "[]")), [3]);
        assert_eq!(seen_pids(vault(), of_open(), only("", "[/vault/*]")), [1, 2, 3]);
        // And of one that is a part of an action, which its own right makes known.
        let arm = || all_of(vec![endpoint(Server, "/arm/_action/send_goal", 1)]);
        assert_eq!(seen_pids(arm(), of_open(), only("", "")), [3]);
        let goals = Permissions { send_action_goal: Globs::ALL, ..only("", "[]") };
        assert_eq!(seen_pids(arm(), of_open(), goals), [1, 2, 3]);
    }

    #[test]
    fn a_name_that_nobody_has_may_have_been_a_topic_or_a_service() {
        let (access, user) = user_with(only("", "[/open]"));
        let may = |name: &str, acts: &[Act]| may_know(&access, user, name, acts);
        assert!(may("/vault", &[Act::Subscribe]) && !may("/vault", &[]));
        assert!(may("/open", &[]) && !may("/vault", &[Act::Subscribe, Act::CallService]));
        let of_action = rights_needed("/arm/_action/feedback", &[]);
        assert_eq!(of_action, [(Act::SendGoal, "/arm")]);
    }
}
