//! The thread that speaks with the master: it registers what this process has, looks who else is there, and has
//! connections made.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tsuji_engine::Guid;
use tsuji_ros1::uri::Uri;
use tsuji_ros1::xmlrpc::Value;

use crate::graph::{EndpointKey, Prefix, other_half};
use crate::role::Role;
use crate::rpc::{self, Failure};
use crate::state::{
    Pool, Probe, Progress, ServiceType, Shared, State, Target, TargetState, host_of,
};

/// How often the master is asked who is there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How soon it is asked again where something has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How often nodes are asked whether they still are; those that do not answer less and less often.
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBE_MAX: Duration = Duration::from_secs(60);

/// Publishers of a topic that are taken note of.
pub(crate) const PUBLISHERS_MAX: usize = 1000;

/// What of an address says that it is that of a process of tsuji, with whom nothing is spoken here.
pub(crate) const MARK: &str = "/tsuji-";

/// What follows that in the address of a participant, and no other is called.
pub(crate) fn mark_of(prefix: Prefix) -> String {
    prefix[2..].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Services that each node of ROS 1 has and nobody of ROS 2 can call.
const OF_EVERY_NODE: [&str; 2] = ["/get_loggers", "/set_logger_level"];

/// What is registered with the master: a kind, the node and the name, with the type.
type Registrations = BTreeMap<(Entry, String, String), String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Publisher,
    Subscriber,
    Service,
}

impl Entry {
    fn methods(self) -> [&'static str; 2] {
        match self {
            Self::Publisher => ["registerPublisher", "unregisterPublisher"],
            Self::Subscriber => ["registerSubscriber", "unregisterSubscriber"],
            Self::Service => ["registerService", "unregisterService"],
        }
    }
}

/// What the master said last.
#[derive(Default)]
struct MasterState {
    publishers: BTreeMap<String, Vec<String>>,
    subscribers: BTreeMap<String, Vec<String>>,
    services: BTreeMap<String, Vec<String>>,
}

struct Registrar<'a> {
    shared: &'a Arc<Shared>,
    registered: Registrations,
    /// Why the master was not reached last, if it was not.
    master_error: Option<String>,
    polled: Option<Instant>,
    shown: Option<Instant>,
    seen: MasterState,
    /// The types of topics, as the master says.
    types: BTreeMap<String, String>,
    /// What the master refuses to register, each told once, and tried again with the next poll.
    refused: BTreeSet<(Entry, String, String)>,
    is_refused_due: bool,
}

/// Speaks with the master until the participant leaves, and takes back what was registered.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut registrar = Registrar {
        shared,
        registered: Registrations::new(),
        master_error: None,
        polled: None,
        shown: None,
        seen: MasterState::default(),
        types: BTreeMap::new(),
        refused: BTreeSet::new(),
        is_refused_due: false,
    };
    loop {
        let mut state = shared.lock();
        if state.is_leaving {
            break;
        }
        state.is_due = false;
        if std::mem::take(&mut state.is_unregistered) {
            registrar.registered.clear();
            state.aliases.clear();
        }
        let is_doubted = !state.to_probe.is_empty();
        drop(state);
        registrar.register();
        let since = registrar.polled.map(|it| it.elapsed());
        let is_polled = since.is_none_or(|it| LOOK_EVERY <= it || (is_doubted && LOOK_AGAIN <= it));
        if is_polled {
            registrar.poll_master();
        }
        // Of many nodes several at once.
        let is_time = registrar.shown.is_none_or(|it| LOOK_AGAIN <= it.elapsed());
        if is_polled || (is_time && shared.lock().is_probed) {
            shared.lock().is_probed = false;
            registrar.show();
        }
        let next = registrar.connect();
        let state = shared.lock();
        if state.is_due || state.is_leaving {
            continue;
        }
        let again = if state.to_probe.is_empty() { LOOK_EVERY } else { LOOK_AGAIN };
        let polled = registrar.polled.map_or_else(Instant::now, |it| it + again);
        let shown = registrar.shown.filter(|_| state.is_probed).map(|it| it + LOOK_AGAIN);
        let look = shown.map_or(polled, |it| it.min(polled));
        let wait = next.map_or(look, |it| it.min(look)).saturating_duration_since(Instant::now());
        // Woken for nothing it looks for nothing.
        drop(shared.work.wait_timeout(state, wait.max(Duration::from_millis(1))));
    }
    registrar.unregister_all();
}

impl Registrar<'_> {
    /// Registers what is new, and takes back what is gone.
    fn register(&mut self) {
        let wanted = self.wanted();
        let is_refused_due = std::mem::take(&mut self.is_refused_due);
        let gone: Vec<_> =
            self.registered.keys().filter(|it| !wanted.contains_key(*it)).cloned().collect();
        for key in gone {
            if self.unregister(&key).is_err() {
                return;
            }
            self.registered.remove(&key);
        }
        for ((entry, node, name), ty) in wanted {
            let key = (entry, node, name);
            let is_waiting = self.refused.contains(&key) && !is_refused_due;
            if is_waiting || self.registered.get(&key) == Some(&ty) {
                continue;
            }
            let (entry, node, name) = &key;
            let Some(caller) = self.name_for(node) else { return };
            let last = match entry {
                Entry::Service => vec![
                    Value::from(format!("rosrpc://{}:{}", self.shared.host, self.shared.port)),
                    Value::from(self.shared.api.as_str()),
                ],
                Entry::Publisher | Entry::Subscriber => {
                    vec![Value::from(ty.as_str()), Value::from(self.shared.api.as_str())]
                }
            };
            let mut asked = vec![Value::from(caller), Value::from(name.as_str())];
            asked.extend(last);
            let answer = match self.call_master(entry.methods()[0], asked) {
                Ok(answer) => answer,
                // The others are not its fault.
                Err(Failure::SaysNo(why)) => {
                    if self.refused.insert(key.clone()) {
                        let name = &key.2;
                        tracing::warn!("ros1: the master does not register {name}: {why}");
                    }
                    continue;
                }
                Err(_) => return,
            };
            if *entry == Entry::Subscriber {
                let publishers = answer.as_array().unwrap_or_default();
                let publishers = publishers.iter().filter_map(Value::as_str).map(str::to_owned);
                self.shared.note_publishers(name, publishers.collect());
            }
            self.registered.insert(key, ty);
        }
    }

    /// What is to be registered.
    fn wanted(&self) -> Registrations {
        let state = self.shared.lock();
        let mut wanted = Registrations::new();
        let owner = |id| state.owners.get(&id).cloned();
        for (id, it) in &state.writers {
            if let (Some((topic, message)), Some(node)) = (it.topic(), owner(*id)) {
                let ty = message.ros1.name().to_owned();
                wanted.insert((Entry::Publisher, node, topic.to_owned()), ty);
            }
        }
        for (id, it) in &state.readers {
            let Some(node) = owner(*id) else { continue };
            if let Some((topic, message)) = it.topic() {
                let ty = message.ros1.name().to_owned();
                wanted.insert((Entry::Subscriber, node, topic.to_owned()), ty);
            } else if let (Role::Request(half), Some(_)) = (&it.role, &it.service)
                && !half.is_client()
            {
                wanted.insert((Entry::Service, node, half.service.name.clone()), String::new());
            }
        }
        wanted
    }

    /// The name under which a node is registered: its own, unless a node of ROS 1 or of another process has it.
    fn name_for(&mut self, node: &str) -> Option<String> {
        if let Some(known) = self.shared.lock().aliases.get(node) {
            return Some(known.clone());
        }
        // Of two containers both may have the same process id.
        let mark = mark_of(self.shared.prefix);
        let names =
            [node.to_owned(), format!("{node}_{}", process::id()), format!("{node}_{mark}")];
        for name in names {
            if !self.is_free(&name)? {
                continue;
            }
            if name != node {
                tracing::warn!(
                    "ros1: another node is called {node}; with the master this one is {name}"
                );
            }
            self.shared.lock().aliases.insert(node.to_owned(), name.clone());
            return Some(name);
        }
        None
    }

    /// Whether nobody has this name with the master; nothing where the master does not say. To register a name that somebody
    /// has ends that node, so one that does not answer has it still.
    fn is_free(&mut self, name: &str) -> Option<bool> {
        let asked = vec![Value::from(self.shared.caller()), Value::from(name)];
        let api = match self.call_master("lookupNode", asked) {
            Ok(api) => api.as_str().unwrap_or_default().to_owned(),
            Err(Failure::SaysNo(_)) => return Some(true),
            Err(_) => return None,
        };
        if api == self.shared.api {
            return Some(true);
        }
        let Ok(uri) = api.parse() else { return Some(true) };
        let asked = vec![Value::from(self.shared.caller())];
        let answer = rpc::call_within(&uri, "getPid", asked, rpc::PROBE_WITHIN);
        Some(matches!(answer, Err(Failure::Refused(_))))
    }

    fn unregister(&mut self, key: &(Entry, String, String)) -> Result<(), ()> {
        let (entry, node, name) = key;
        let caller = self.shared.lock().registered_name(node).to_owned();
        let api = match entry {
            Entry::Service => format!("rosrpc://{}:{}", self.shared.host, self.shared.port),
            Entry::Publisher | Entry::Subscriber => self.shared.api.clone(),
        };
        let asked = vec![Value::from(caller), Value::from(name.as_str()), Value::from(api)];
        match self.call_master(entry.methods()[1], asked) {
            Ok(_) | Err(Failure::SaysNo(_)) => Ok(()),
            Err(_) => Err(()),
        }
    }

    fn unregister_all(&mut self) {
        for key in std::mem::take(&mut self.registered).into_keys() {
            if self.unregister(&key).is_err() {
                return;
            }
        }
    }

    /// Calls the master. That it cannot be reached is told once.
    fn call_master(&mut self, method: &str, asked: Vec<Value>) -> Result<Value, Failure> {
        let answer = rpc::call(&self.shared.master, method, asked);
        match &answer {
            Ok(_) | Err(Failure::SaysNo(_)) => self.set_master_error(None),
            Err(failure) => self.set_master_error(Some(failure.to_string())),
        }
        answer
    }

    fn set_master_error(&mut self, trouble: Option<String>) {
        match (&self.master_error, &trouble) {
            (None, Some(why)) => tracing::warn!(
                "ros1: the master at {} is not reached: {why}; it is tried again. Start one by `roscore`, or by \
                 `tsuji ros1 master`; ROS_MASTER_URI says where it is",
                self.shared.master
            ),
            (Some(_), None) => {
                tracing::info!("ros1: the master at {} is reached", self.shared.master);
                // It may be another one, which knows nothing.
                self.registered.clear();
                self.shared.lock().is_due = true;
            }
            _ => (),
        }
        self.master_error = trouble;
    }

    /// Asks the master who is there, and has those asked who are to be asked.
    fn poll_master(&mut self) {
        self.polled = Some(Instant::now());
        self.is_refused_due = true;
        let to_probe = std::mem::take(&mut self.shared.lock().to_probe);
        let me = || vec![Value::from(self.shared.caller())];
        let (system, types) = (me(), me());
        let Ok(system) = self.call_master("getSystemState", system) else { return };
        let Ok(types) = self.call_master("getTopicTypes", types) else { return };
        self.seen = read_system(&system);
        self.types = read_pairs(&types);
        self.check_own();
        let nodes: BTreeSet<String> = self.seen.nodes().into_keys().map(str::to_owned).collect();
        let now = Instant::now();
        let mut due = Vec::new();
        let mut state = self.shared.lock();
        state.probes.retain(|node, it| it.is_asked || nodes.contains(node));
        state.service_types.retain(|(_, node), it| it.is_asked || nodes.contains(node));
        for node in nodes {
            let known = state.probes.get_mut(&node);
            let pause = |silent: u32| (PROBE_EVERY * 2_u32.pow(silent.min(4))).min(PROBE_MAX);
            match known {
                Some(it) if it.is_asked => (),
                Some(it) if now < it.at + pause(it.silent) && !to_probe.contains(&node) => (),
                Some(it) => {
                    it.is_asked = true;
                    due.push(node);
                }
                None => {
                    let probe = Probe {
                        api: String::new(),
                        at: now,
                        is_ours: false,
                        is_alive: false,
                        pid: None,
                        is_asked: true,
                        silent: 0,
                    };
                    state.probes.insert(node.clone(), probe);
                    due.push(node);
                }
            }
        }
        drop(state);
        for node in due {
            self.shared.run(Pool::Outgoing, move |shared| shared.probe(&node));
        }
    }

    /// The master has forgotten what is registered here, as one does that was started anew.
    fn check_own(&mut self) {
        let (state, seen) = (self.shared.lock(), &self.seen);
        let is_known = |(entry, node, name): &(Entry, String, String)| {
            let by = match entry {
                Entry::Publisher => seen.publishers.get(name),
                Entry::Subscriber => seen.subscribers.get(name),
                Entry::Service => seen.services.get(name),
            };
            let registered = state.registered_name(node);
            by.is_some_and(|by| by.iter().any(|it| it == registered))
        };
        let lost: Vec<_> = self.registered.keys().filter(|it| !is_known(it)).cloned().collect();
        drop(state);
        for key in &lost {
            self.registered.remove(key);
        }
        if !lost.is_empty() {
            self.shared.lock().is_due = true;
        }
    }

    /// What ROS 2 calls the type of something that a node of ROS 1 has; nothing while nobody says it.
    fn type_of(&self, state: &mut State, node: &str, what: &EndpointKey) -> Option<String> {
        let mapping = self.shared.types.mapping();
        match what {
            EndpointKey::Publishes(topic) | EndpointKey::Subscribes(topic) => {
                mapping.message_to_ros2(self.types.get(topic).filter(|it| *it != "*")?)
            }
            EndpointKey::Serves(service) | EndpointKey::Calls(service) => {
                let key = (service.clone(), node.to_owned());
                let known = state.service_types.get(&key);
                let is_due = known.is_none_or(|it| {
                    !it.is_asked && it.ty.is_none() && it.at + PROBE_EVERY <= Instant::now()
                });
                let ty = known.and_then(|it| it.ty.clone());
                if is_due {
                    let asked = ServiceType { ty: None, at: Instant::now(), is_asked: true };
                    state.service_types.insert(key.clone(), asked);
                    state.due_types.push(key);
                }
                mapping.service_to_ros2(&ty?)
            }
        }
    }

    /// Shows what there is, and no more. What is connected and the master does not know yet stays as it is.
    fn show(&mut self) {
        self.shown = Some(Instant::now());
        let due = self.shared.change(|state, _| {
            let mut wanted: BTreeMap<&str, Vec<(EndpointKey, String)>> = BTreeMap::new();
            for (node, has) in self.seen.nodes() {
                let is_there = |it: &Probe| it.is_alive && !it.is_ours;
                if !state.probes.get(node).is_some_and(is_there) {
                    continue;
                }
                let typed = has.into_iter().filter_map(|what| {
                    let ty = self.type_of(state, node, &what)?;
                    Some((what, ty))
                });
                let typed = typed.collect();
                wanted.insert(node, typed);
            }
            let connected = state.connected_nodes();
            for (node, has) in &wanted {
                let Some(it) = state.probes.get(*node).cloned() else { continue };
                // One that has connected to here is where it says, whatever was found before.
                if !connected.contains(*node) {
                    state.graph.add_node(node, &it.api, &host_of(&it.api), it.pid);
                }
                for (what, ty) in has {
                    let known = state.graph.get(node, what).map(|(guid, _)| guid);
                    // What both ends of a connection have agreed on is not what the master says of the topic.
                    if known.is_none_or(|it| !state.is_connected(it)) {
                        state.graph.add(node, what.clone(), ty);
                    }
                }
            }
            let known: Vec<String> = state.graph.names().map(|(name, _)| name.clone()).collect();
            for node in known {
                let has = wanted.get(node.as_str());
                if has.is_none() && !connected.contains(&node) {
                    state.graph.remove_node(&node);
                    continue;
                }
                for what in state.graph.of_node(&node) {
                    let is_wanted = has.is_some_and(|it| it.iter().any(|(it, _)| *it == what));
                    let guid = state.graph.get(&node, &what).map(|(guid, _)| guid);
                    if !is_wanted && guid.is_some_and(|it| !state.is_connected(it)) {
                        state.graph.remove(&node, &what);
                    }
                }
            }
            state.close_stale();
            std::mem::take(&mut state.due_types)
        });
        for key in due {
            self.shared.run(Pool::Outgoing, move |shared| {
                let ty = shared.type_of_service(&key.0);
                let ty = ty.inspect_err(|failure| {
                    tracing::debug!(service = key.0, "ros1: a service without a type: {failure}");
                });
                shared.change(|state, _| {
                    let known = ServiceType { ty: ty.ok(), at: Instant::now(), is_asked: false };
                    state.service_types.insert(key, known);
                    state.is_probed = true;
                    state.is_due = true;
                });
            });
        }
    }

    /// Has connections made that are wanted and due, and ends those that are not wanted any more. Answers when the next is due.
    fn connect(&self) -> Option<Instant> {
        let shared = self.shared;
        let mut next = None;
        let due: Vec<Target> = shared.change(|state, calls| {
            next = state.expire_callers(calls);
            let wanted: BTreeSet<_> = state.wanted_publishers();
            let wanted: HashSet<Target> = wanted
                .into_iter()
                .map(|(id, api)| Target::Publisher(id, api))
                .chain(state.wanted_servers())
                .collect();
            let gone: Vec<Target> =
                state.targets.keys().filter(|it| !wanted.contains(it)).cloned().collect();
            gone.iter().for_each(|it| state.end_target(it));
            for target in wanted {
                if !state.targets.contains_key(&target) {
                    state.want(target);
                }
            }
            let now = Instant::now();
            let mut due = Vec::new();
            for (target, it) in &mut state.targets {
                match it.progress {
                    Progress::Due(at) if at <= now => {
                        it.progress = Progress::Connecting;
                        due.push(target.clone());
                    }
                    Progress::Due(at) => next = Some(next.map_or(at, |it: Instant| it.min(at))),
                    Progress::Connecting | Progress::Connected(..) => (),
                }
            }
            due
        });
        for target in due {
            shared.run(Pool::Outgoing, move |shared| {
                let state = shared.lock();
                match &target {
                    Target::Publisher(id, api) => {
                        let Some(reader) = state.readers.get(id).cloned() else { return };
                        drop(state);
                        shared.connect_publisher(&reader, api);
                    }
                    Target::Server(id, ..) => {
                        let Some(client) = state.writers.get(id).cloned() else { return };
                        drop(state);
                        shared.connect_server(&client, &target);
                    }
                }
            });
        }
        next
    }
}

impl Shared {
    /// Finds out where a node is, and whether it is there. Runs on a thread of its own.
    fn probe(&self, node: &str) {
        let me = || vec![Value::from(self.caller())];
        let asked = [me(), vec![Value::from(node)]].concat();
        let api = rpc::call(&self.master, "lookupNode", asked);
        let api = api.ok().and_then(|it| it.as_str().map(str::to_owned));
        let is_ours = api.as_deref().is_some_and(is_of_tsuji);
        let uri = api.as_deref().and_then(|it| it.parse::<Uri>().ok());
        let answer = uri
            .filter(|_| !is_ours)
            .map(|uri| rpc::call_within(&uri, "getPid", me(), rpc::PROBE_WITHIN));
        self.change(|state, _| {
            let before = state.probes.get(node).cloned();
            let silent = before.as_ref().map_or(0, |it| it.silent);
            // One that does not answer may be busy, or stopped: it is there until nobody listens.
            let (is_alive, pid, silent) = match answer {
                Some(Ok(pid)) => (true, pid.as_int().and_then(|it| u32::try_from(it).ok()), 0),
                Some(Err(Failure::Refused(_))) => (false, None, 0),
                Some(Err(_)) => (true, before.and_then(|it| it.pid), silent + 1),
                None => (is_ours, None, silent + 1),
            };
            let probe = Probe {
                api: api.unwrap_or_default(),
                at: Instant::now(),
                is_ours,
                is_alive,
                pid,
                is_asked: false,
                silent,
            };
            state.probes.insert(node.to_owned(), probe);
            state.is_probed = true;
            state.is_due = true;
        });
    }
}

impl MasterState {
    /// What each node has that ROS 2 could know.
    fn nodes(&self) -> BTreeMap<&str, Vec<EndpointKey>> {
        let mut nodes: BTreeMap<&str, Vec<EndpointKey>> = BTreeMap::new();
        for (topic, by) in &self.publishers {
            by.iter().for_each(|it| {
                nodes.entry(it).or_default().push(EndpointKey::Publishes(topic.clone()));
            });
        }
        for (topic, by) in &self.subscribers {
            by.iter().for_each(|it| {
                nodes.entry(it).or_default().push(EndpointKey::Subscribes(topic.clone()));
            });
        }
        for (service, by) in &self.services {
            let is_common = OF_EVERY_NODE.iter().any(|it| service.ends_with(it));
            by.iter().filter(|_| !is_common).for_each(|it| {
                nodes.entry(it).or_default().push(EndpointKey::Serves(service.clone()));
            });
        }
        nodes
    }
}

impl State {
    /// The nodes that are connected with this process.
    fn connected_nodes(&self) -> BTreeSet<String> {
        let apis: HashSet<&str> = self
            .targets
            .iter()
            .filter_map(|(target, it)| match target {
                Target::Publisher(_, api) if matches!(it.progress, Progress::Connected(..)) => {
                    Some(api.as_str())
                }
                _ => None,
            })
            .collect();
        let sources = self.graph.names().filter(|(_, it)| apis.contains(it.api.as_str()));
        let sources = sources.map(|(name, _)| name);
        let subscribers = self.subscribers.iter().map(|it| &it.node);
        let callers = self.callers.values().map(|it| &it.node);
        sources.chain(subscribers).chain(callers).cloned().collect()
    }

    /// Whether an endpoint of this name is at the other end of a connection.
    fn is_connected(&self, guid: Guid) -> bool {
        let is_it =
            |it: &TargetState| matches!(it.progress, Progress::Connected(_, of) if of == guid);
        self.subscribers.iter().any(|it| it.guid == guid)
            || self.callers.contains_key(&other_half(guid))
            || self.targets.values().any(is_it)
    }

    /// Takes note of a node that has connected, or was connected to, at this address.
    pub(crate) fn meet_node(&mut self, node: &str, api: &str, pid: Option<u32>) -> bool {
        // What was found of one of its name at another address is of one that is gone.
        if self.probes.get(node).is_some_and(|it| it.api != api && !it.is_asked) {
            self.probes.remove(node);
        }
        let is_there = self.graph.add_node(node, api, &host_of(api), pid);
        self.close_stale();
        is_there
    }

    /// Ends the connections whose other end is not there any more under the name that it had.
    fn close_stale(&mut self) {
        let subscribers = self.subscribers.iter().filter(|it| !self.graph.has(it.guid));
        let mut stale: Vec<u64> = subscribers.map(|it| it.link.key()).collect();
        for (target, it) in &self.targets {
            if let (Target::Publisher(..), Progress::Connected(key, guid)) = (target, &it.progress)
                && !self.graph.has(*guid)
            {
                stale.push(*key);
            }
        }
        self.to_close.extend(stale);
    }

    /// The publishers that readers here want, without those of tsuji.
    fn wanted_publishers(&self) -> BTreeSet<(crate::state::Id, String)> {
        let mut wanted = BTreeSet::new();
        for (id, reader) in &self.readers {
            let Some((topic, _)) = reader.topic() else { continue };
            let apis = self.publishers.get(topic).into_iter().flatten();
            wanted.extend(apis.filter(|it| !is_of_tsuji(it)).map(|it| (*id, it.clone())));
        }
        wanted
    }

    /// A connection is not wanted any more.
    fn end_target(&mut self, target: &Target) {
        let Some(it) = self.targets.get(target) else { return };
        match it.progress {
            // It goes when its connection does.
            Progress::Connected(key, _) => self.to_close.push(key),
            Progress::Due(_) => drop(self.targets.remove(target)),
            // It is ended once it is there.
            Progress::Connecting => (),
        }
    }
}

/// True for the address of a process of tsuji.
fn is_of_tsuji(api: &str) -> bool {
    api.parse().is_ok_and(|it: Uri| it.path.starts_with(MARK))
}

fn read_system(system: &Value) -> MasterState {
    let mut seen = MasterState::default();
    let all = system.as_array().unwrap_or_default();
    let into = [&mut seen.publishers, &mut seen.subscribers, &mut seen.services];
    for (part, into) in all.iter().zip(into) {
        for row in part.as_array().unwrap_or_default() {
            let Some([name, by]) = row.as_array() else { continue };
            let by = by.as_array().unwrap_or_default().iter().filter_map(Value::as_str);
            if let Some(name) = name.as_str() {
                into.insert(name.to_owned(), by.map(str::to_owned).collect());
            }
        }
    }
    seen
}

fn read_pairs(pairs: &Value) -> BTreeMap<String, String> {
    let pairs = pairs.as_array().unwrap_or_default().iter().filter_map(|it| {
        let [name, ty] = it.as_array()? else { return None };
        Some((name.as_str()?.to_owned(), ty.as_str()?.to_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_tsuji_are_known_by_their_mark() {
        assert!(is_of_tsuji("http://robot:4000/tsuji-00ff/"));
        assert!(!is_of_tsuji("http://robot:4000/"));
        assert!(!is_of_tsuji("http://tsuji-robot:4000/"));
        assert!(!is_of_tsuji("tsuji-"));
    }

    #[test]
    fn what_the_master_says_is_read_as_far_as_it_is_understood() {
        let texts =
            |all: &[&str]| Value::from(all.iter().map(|it| Value::from(*it)).collect::<Vec<_>>());
        let row = |name: &str, by: &[&str]| Value::from(vec![Value::from(name), texts(by)]);
        let system = Value::from(vec![
            Value::from(vec![row("/chatter", &["/talker", "/other"]), Value::from(7)]),
            Value::from(vec![row("/rosout", &["/rosout"])]),
            Value::from(vec![row("/add", &["/server"])]),
        ]);
        let seen = read_system(&system);
        assert_eq!(seen.publishers["/chatter"], ["/talker", "/other"]);
        assert_eq!(seen.services["/add"], ["/server"]);
        assert!(read_system(&Value::from(3)).publishers.is_empty());
        let pairs = read_pairs(&Value::from(vec![texts(&["/a", "x/A"]), texts(&["/b"])]));
        assert_eq!(pairs.into_iter().collect::<Vec<_>>(), [("/a".to_owned(), "x/A".to_owned())]);
    }
}
