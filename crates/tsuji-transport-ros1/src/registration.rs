//! The thread that speaks with the master: it registers what this process has, looks who else is there, and has
//! connections made.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tsuji_ros1::uri::Uri;
use tsuji_ros1::xmlrpc::Value;

use crate::graph::What;
use crate::role::Role;
use crate::rpc::{self, Failure};
use crate::state::{Progress, Shared, State, Target, host_of};

/// How often the master is asked who is there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often nodes are asked whether they still are.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// What of an address says that it is that of a process of tsuji, with whom nothing is spoken here.
pub(crate) const MARK: &str = "/tsuji-";

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
struct Seen {
    publishers: BTreeMap<String, Vec<String>>,
    subscribers: BTreeMap<String, Vec<String>>,
    services: BTreeMap<String, Vec<String>>,
}

/// What is known of the address of a node.
struct Probed {
    api: String,
    at: Instant,
    /// It is this process, or another of tsuji.
    is_ours: bool,
    is_alive: bool,
    pid: Option<u32>,
}

struct Registrar<'a> {
    shared: &'a Arc<Shared>,
    registered: Registrations,
    /// Why the master was not reached last, if it was not.
    trouble: Option<String>,
    looked: Option<Instant>,
    probed: HashMap<String, Probed>,
    /// The types of services of ROS 1, by name and node.
    types: HashMap<(String, String), Result<String, Instant>>,
}

/// Speaks with the master until the participant leaves, and takes back what was registered.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut registrar = Registrar {
        shared,
        registered: Registrations::new(),
        trouble: None,
        looked: None,
        probed: HashMap::new(),
        types: HashMap::new(),
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
        let is_doubted = !state.doubted.is_empty();
        drop(state);
        registrar.register();
        let is_time = registrar.looked.is_none_or(|it| it + LOOK_EVERY <= Instant::now());
        if is_time || is_doubted {
            registrar.look();
        }
        let next = registrar.connect();
        let state = shared.lock();
        if state.is_due || state.is_leaving {
            continue;
        }
        let look = registrar.looked.map_or_else(Instant::now, |it| it + LOOK_EVERY);
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
            if self.registered.get(&key) == Some(&ty) {
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
            let Some(answer) = self.call_master(entry.methods()[0], asked) else { return };
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

    /// The name under which a node is registered: its own, unless a living node of ROS 1 or of another process has it.
    fn name_for(&mut self, node: &str) -> Option<String> {
        if let Some(known) = self.shared.lock().aliases.get(node) {
            return Some(known.clone());
        }
        let asked = vec![Value::from(self.shared.caller()), Value::from(node)];
        let found = match rpc::call(&self.shared.master, "lookupNode", asked) {
            Ok(found) => found.as_str().map(str::to_owned),
            // That it knows none is an answer too.
            Err(Failure::Other(_)) => None,
            Err(failure @ Failure::Refused(_)) => {
                self.note_trouble(Some(failure.to_string()));
                return None;
            }
        };
        let other = found.filter(|it| *it != self.shared.api);
        let is_taken = other.is_some_and(|api| self.shared.pid_of(&api).is_some());
        let name = match is_taken {
            true => format!("{node}_{}", process::id()),
            false => node.to_owned(),
        };
        if is_taken {
            tracing::warn!(
                "ros1: another node is called {node}; with the master this one is {name}"
            );
        }
        self.shared.lock().aliases.insert(node.to_owned(), name.clone());
        Some(name)
    }

    fn unregister(&mut self, key: &(Entry, String, String)) -> Result<(), ()> {
        let (entry, node, name) = key;
        let caller = self.shared.lock().registered_name(node).to_owned();
        let api = match entry {
            Entry::Service => format!("rosrpc://{}:{}", self.shared.host, self.shared.port),
            Entry::Publisher | Entry::Subscriber => self.shared.api.clone(),
        };
        let asked = vec![Value::from(caller), Value::from(name.as_str()), Value::from(api)];
        self.call_master(entry.methods()[1], asked).map(drop).ok_or(())
    }

    fn unregister_all(&mut self) {
        for key in std::mem::take(&mut self.registered).into_keys() {
            if self.unregister(&key).is_err() {
                return;
            }
        }
    }

    /// Calls the master. Nothing where it cannot be reached, which is told once.
    fn call_master(&mut self, method: &str, asked: Vec<Value>) -> Option<Value> {
        match rpc::call(&self.shared.master, method, asked) {
            Ok(answer) => {
                self.note_trouble(None);
                Some(answer)
            }
            Err(failure) => {
                self.note_trouble(Some(failure.to_string()));
                None
            }
        }
    }

    fn note_trouble(&mut self, trouble: Option<String>) {
        match (&self.trouble, &trouble) {
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
        self.trouble = trouble;
    }

    /// Looks who is there.
    fn look(&mut self) {
        self.looked = Some(Instant::now());
        let doubted = std::mem::take(&mut self.shared.lock().doubted);
        let me = || Value::from(self.shared.caller());
        let asked = vec![me()];
        let Some(system) = self.call_master("getSystemState", asked) else { return };
        let types = vec![me()];
        let Some(types) = self.call_master("getTopicTypes", types) else { return };
        let seen = read_system(&system);
        let types = read_pairs(&types);
        self.check_own(&seen);
        let mut nodes: BTreeMap<&str, Vec<What>> = BTreeMap::new();
        for (topic, by) in &seen.publishers {
            by.iter().for_each(|it| {
                nodes.entry(it).or_default().push(What::Publishes(topic.clone()));
            });
        }
        for (topic, by) in &seen.subscribers {
            by.iter().for_each(|it| {
                nodes.entry(it).or_default().push(What::Subscribes(topic.clone()));
            });
        }
        for (service, by) in &seen.services {
            let is_common = OF_EVERY_NODE.iter().any(|it| service.ends_with(it));
            by.iter().filter(|_| !is_common).for_each(|it| {
                nodes.entry(it).or_default().push(What::Serves(service.clone()));
            });
        }
        self.probed.retain(|node, _| nodes.contains_key(node.as_str()));
        self.types.retain(|(_, node), _| nodes.contains_key(node.as_str()));
        for node in nodes.keys() {
            self.probe(node, doubted.contains(*node));
        }
        let mut wanted: Vec<(&str, What, String)> = Vec::new();
        for (node, has) in &nodes {
            let is_there = self.probed.get(*node).is_some_and(|it| it.is_alive && !it.is_ours);
            for what in has.iter().filter(|_| is_there) {
                if let Some(ty) = self.type_of(node, what, &types) {
                    wanted.push((node, what.clone(), ty));
                }
            }
        }
        self.shared.change(|state, _| self.show(state, &wanted));
    }

    /// The master has forgotten what is registered here, as one does that was started anew.
    fn check_own(&mut self, seen: &Seen) {
        let state = self.shared.lock();
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

    /// Finds out where a node is, and whether it is there.
    fn probe(&mut self, node: &str, is_doubted: bool) {
        let is_fresh = |it: &Probed| it.at + PROBE_EVERY > Instant::now();
        if self.probed.get(node).is_some_and(is_fresh) && !is_doubted {
            return;
        }
        let asked = vec![Value::from(self.shared.caller()), Value::from(node)];
        let Some(api) = self.call_master("lookupNode", asked) else { return };
        let Some(api) = api.as_str().map(str::to_owned) else { return };
        let is_ours = is_of_tsuji(&api);
        let (mut is_alive, mut pid) = (true, None);
        if !is_ours {
            match self.ask_pid(&api) {
                Ok(it) => pid = it,
                // One that does not answer may be busy, or stopped: it is there until nobody listens.
                Err(Failure::Other(_)) => (),
                Err(Failure::Refused(_)) => is_alive = false,
            }
        }
        let probed = Probed { api, at: Instant::now(), is_ours, is_alive, pid };
        self.probed.insert(node.to_owned(), probed);
    }

    fn ask_pid(&self, api: &str) -> Result<Option<u32>, Failure> {
        let uri: Uri = api.parse().map_err(|error| Failure::Other(format!("{error}")))?;
        let pid = rpc::call(&uri, "getPid", vec![Value::from(self.shared.caller())])?;
        Ok(pid.as_int().and_then(|it| u32::try_from(it).ok()))
    }

    /// What ROS 2 calls the type of something that a node of ROS 1 has; nothing while nobody says it.
    fn type_of(
        &mut self,
        node: &str,
        what: &What,
        types: &BTreeMap<String, String>,
    ) -> Option<String> {
        let mapping = self.shared.types.mapping();
        match what {
            What::Publishes(topic) | What::Subscribes(topic) => {
                mapping.message_to_ros2(types.get(topic).filter(|it| *it != "*")?)
            }
            What::Serves(service) | What::Calls(service) => {
                let key = (service.clone(), node.to_owned());
                let known = self.types.get(&key);
                let is_due = match known {
                    None => true,
                    Some(Err(at)) => *at + PROBE_EVERY <= Instant::now(),
                    Some(Ok(_)) => false,
                };
                if is_due {
                    let asked = self.shared.type_of_service(service);
                    let found = asked.map_err(|failure| {
                        tracing::debug!(service, "ros1: a service without a type: {failure}");
                        Instant::now()
                    });
                    self.types.insert(key.clone(), found);
                }
                let ty = self.types.get(&key)?.as_ref().ok()?;
                mapping.service_to_ros2(ty)
            }
        }
    }

    /// Shows what there is, and no more. What has connected to here and the master does not know yet stays.
    fn show(&self, state: &mut State, wanted: &[(&str, What, String)]) {
        let names: BTreeSet<&str> = wanted.iter().map(|(node, ..)| *node).collect();
        for node in &names {
            if let Some(it) = self.probed.get(*node) {
                state.graph.add_node(node, &it.api, &host_of(&it.api), it.pid);
            }
        }
        for (node, what, ty) in wanted {
            state.graph.add(node, what.clone(), ty);
        }
        let is_connected = |state: &State, node: &str| {
            let api = state.graph.names().find(|(name, _)| *name == node).map(|(_, it)| &it.api);
            let is_source = |(target, it): (&Target, &crate::state::TargetState)| {
                matches!(target, Target::Publisher(_, of) if Some(of) == api)
                    && matches!(it.progress, Progress::Connected(..))
            };
            state.subscribers.iter().any(|it| it.node == node)
                || state.callers.values().any(|it| it.node == node)
                || state.targets.iter().any(is_source)
        };
        let known: Vec<String> = state.graph.names().map(|(name, _)| name.clone()).collect();
        for node in known {
            if is_connected(state, &node) {
                continue;
            }
            if !names.contains(node.as_str()) {
                state.graph.remove_node(&node);
                continue;
            }
            for what in state.graph.of_node(&node) {
                if !wanted.iter().any(|(of, it, _)| *of == node && *it == what) {
                    state.graph.remove(&node, &what);
                }
            }
        }
    }

    /// Has connections made that are wanted and due, and ends those that are not wanted any more. Answers when the next is due.
    fn connect(&self) -> Option<Instant> {
        let shared = self.shared;
        let mut next = None;
        let due: Vec<Target> = shared.change(|state, calls| {
            next = state.expire_callers(calls);
            let wanted: BTreeSet<_> = state.wanted_publishers();
            let wanted: Vec<Target> = wanted
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
            shared.run(move |shared| {
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

impl State {
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

fn read_system(system: &Value) -> Seen {
    let mut seen = Seen::default();
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
