//! Writers and readers, as the contract has them.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tsuji_core::{Durability, History};
use tsuji_engine::{
    Arrived, EndpointSpec, EngineReader, EngineWriter, Guid, Listener, Peep, Related, Tap,
};
use tsuji_platform::fork::Generation;
use tsuji_ros::gid::Distro;
use tsuji_ros::graph_message::ParticipantEntitiesInfo;
use tsuji_transport::{Bytes, Error, ErrorKind, Result};

use crate::graph::Graph;
use crate::link::Room;
use crate::role::{self, Role};
use crate::state::{Id, ReaderCore, Shared, WriterCore};

/// How long a writer waits at its end for its subscribers to have all.
const CLOSE_WAITS: Duration = Duration::from_secs(1);

/// How soon whoever waits for subscribers looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

pub(crate) struct Ros1Writer {
    shared: Arc<Shared>,
    core: Arc<WriterCore>,
    generation: Generation,
}

impl Ros1Writer {
    pub(crate) fn open(shared: &Arc<Shared>, spec: &EndpointSpec<'_>) -> Self {
        let role = role::of(spec);
        let (message, service) = shared.types_of(&role);
        let id = shared.lock().new_id(true);
        let keeps = spec.qos.durability == Durability::TransientLocal;
        let (room, kept_max) = match spec.qos.history {
            History::KeepLast(depth) => (Room::Last(depth as usize), depth as usize),
            History::KeepAll => (Room::All, spec.keep_all_max as usize),
        };
        let core = Arc::new(WriterCore {
            id,
            role,
            ear: Arc::default(),
            message,
            service,
            room,
            kept_max: if keeps { kept_max } else { 0 },
            endpoint: Mutex::default(),
        });
        shared.change(|state, calls| {
            if let Some((topic, _)) = core.topic() {
                let all = state.subscribers.iter().filter(|it| it.topic == topic);
                all.filter(|it| core.is_of(&it.known)).for_each(|it| core.attach(it));
            }
            // Its clients that are known already.
            let known = state.callers.iter();
            let known: Vec<Guid> = match &core.role {
                Role::Reply(half) if !half.is_client() => known
                    .filter(|(_, it)| it.service == half.service.name)
                    .map(|(it, _)| *it)
                    .collect(),
                _ => Vec::new(),
            };
            for replies in known {
                crate::lock(&core.endpoint).links.insert(replies, crate::service::no_link());
            }
            calls.matched.push(Arc::clone(&core.ear));
            state.writers.insert(id, Arc::clone(&core));
            state.is_due = true;
        });
        Self { shared: Arc::clone(shared), core, generation: Generation::current() }
    }

    fn is_done(&self) -> bool {
        let endpoint = crate::lock(&self.core.endpoint);
        endpoint.links.values().filter_map(|it| it.out.as_ref()).all(|it| it.is_done())
    }
}

impl EngineWriter for Ros1Writer {
    fn guid(&self) -> Guid {
        self.shared.own_name(self.core.id)
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        self.core.ear.open(listener);
        Ok(())
    }

    fn write(&self, bytes: &Bytes, source_ns: i64) -> Result<()> {
        let _ = source_ns;
        match &self.core.role {
            Role::Topic(_) => self.core.publish(bytes),
            Role::Nodes(distro) => self.shared.announce_nodes(bytes, *distro),
            Role::Request(_) => self.core.request(bytes),
            Role::Reply(_) | Role::Hidden => {
                crate::lock(&self.core.endpoint).written += 1;
                Ok(())
            }
        }
    }

    fn write_related(&self, bytes: &Bytes, source_ns: i64, related: Related) -> Result<()> {
        match &self.core.role {
            Role::Reply(half) if !half.is_client() => {
                self.shared.reply(&self.core, bytes, related);
                Ok(())
            }
            _ => self.write(bytes, source_ns),
        }
    }

    fn is_acknowledged(&self) -> bool {
        self.is_done()
    }

    fn wait_for_acknowledgements(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        while !self.is_done() && Instant::now() < deadline {
            std::thread::sleep(LOOK_AGAIN.min(deadline.saturating_duration_since(Instant::now())));
        }
    }

    fn peep(&self) -> Arc<dyn Peep> {
        Arc::new(WriterEnd(Arc::downgrade(&self.core)))
    }
}

impl Drop for Ros1Writer {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            return;
        }
        self.wait_for_acknowledgements(CLOSE_WAITS);
        self.core.ear.close();
        self.shared.change(|state, _| {
            state.writers.remove(&self.core.id);
            state.owners.remove(&self.core.id);
            state.is_due = true;
            // Nobody else publishes the topic here.
            if let Some((topic, _)) = self.core.topic()
                && state.writers_of(topic).is_empty()
            {
                let of_topic = state.subscribers.iter().filter(|it| it.topic == topic);
                let keys: Vec<u64> = of_topic.map(|it| it.link.key()).collect();
                state.to_close.extend(keys);
            }
        });
    }
}

pub(crate) struct Ros1Reader {
    shared: Arc<Shared>,
    core: Arc<ReaderCore>,
    /// Of a reader of what nodes there are: its number, and in whose message it is told.
    nodes: Option<(u64, Distro)>,
    generation: Generation,
}

impl Ros1Reader {
    pub(crate) fn open(shared: &Arc<Shared>, spec: &EndpointSpec<'_>) -> Self {
        let role = role::of(spec);
        let (message, service) = shared.types_of(&role);
        let id = shared.lock().new_id(false);
        let core = Arc::new(ReaderCore {
            id,
            role,
            ear: Arc::default(),
            message,
            service,
            endpoint: Mutex::default(),
        });
        let nodes = shared.change(|state, calls| {
            if let Role::Nodes(distro) = core.role {
                return Some((state.graph.listen(Arc::clone(&core.ear)), distro));
            }
            // Clients of its service that are known already.
            if let Role::Request(half) = &core.role
                && !half.is_client()
            {
                let known = state.callers.iter().filter(|(_, it)| it.service == half.service.name);
                let mut endpoint = crate::lock(&core.endpoint);
                endpoint.sources.extend(known.map(|(it, _)| crate::graph::other_half(*it)));
            }
            calls.matched.push(Arc::clone(&core.ear));
            state.readers.insert(id, Arc::clone(&core));
            state.is_due = true;
            None
        });
        Self { shared: Arc::clone(shared), core, nodes, generation: Generation::current() }
    }
}

impl EngineReader for Ros1Reader {
    fn guid(&self) -> Guid {
        self.shared.own_name(self.core.id)
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        self.core.ear.open(listener);
        Ok(())
    }

    fn tap(&self) -> Arc<dyn Tap> {
        Arc::new(ReaderEnd {
            shared: Arc::downgrade(&self.shared),
            core: Arc::downgrade(&self.core),
            nodes: self.nodes,
        })
    }
}

impl Drop for Ros1Reader {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            return;
        }
        self.core.ear.close();
        self.shared.change(|state, _| {
            if let Some((listener, _)) = self.nodes {
                state.graph.stop_listening(listener);
            }
            state.readers.remove(&self.core.id);
            state.owners.remove(&self.core.id);
            if let Some((topic, _)) = self.core.topic() {
                let is_other = |it: &Arc<ReaderCore>| it.topic().is_some_and(|(it, _)| it == topic);
                if !state.readers.values().any(is_other) {
                    state.publishers.remove(topic);
                }
            }
            state.is_due = true;
        });
    }
}

/// Looks at a writer that may be gone.
struct WriterEnd(Weak<WriterCore>);

impl Peep for WriterEnd {
    fn matches(&self) -> Vec<Guid> {
        let core = self.0.upgrade();
        core.map_or_else(Vec::new, |it| crate::lock(&it.endpoint).links.keys().copied().collect())
    }
}

/// Looks at a reader that may be gone.
struct ReaderEnd {
    shared: Weak<Shared>,
    core: Weak<ReaderCore>,
    nodes: Option<(u64, Distro)>,
}

impl Tap for ReaderEnd {
    fn matches(&self) -> Vec<Guid> {
        let core = self.core.upgrade();
        core.map_or_else(Vec::new, |it| crate::lock(&it.endpoint).sources.iter().copied().collect())
    }

    fn take(&self) -> Result<Option<Arrived>> {
        let gone = || Error::new(ErrorKind::Closed, "take").about("the reader is gone");
        if let Some((listener, distro)) = self.nodes {
            let shared = self.shared.upgrade().ok_or_else(gone)?;
            let graph: &mut Graph = &mut shared.lock().graph;
            return Ok(graph.take_nodes(listener, distro));
        }
        let core = self.core.upgrade().ok_or_else(gone)?;
        Ok(crate::lock(&core.endpoint).arrived.pop_front())
    }
}

impl Shared {
    /// What both worlds have of the type of an endpoint. What ROS 1 has no counterpart of is told, and not shown there.
    fn types_of(
        &self,
        role: &Role,
    ) -> (Option<Arc<crate::types::Message>>, Option<Arc<crate::types::Service>>) {
        let (message, service, named) = match role {
            Role::Topic(named) => (Some(self.types.message(&named.type_name)), None, named),
            Role::Request(half) | Role::Reply(half) => {
                let service = self.types.service(&half.service.type_name);
                (None, Some(service), &half.service)
            }
            Role::Nodes(_) | Role::Hidden => return (None, None),
        };
        let why = |why: String| {
            let name = &named.name;
            tracing::warn!("ros1: nodes of ROS 1 do not see {name} ({}): {why}", named.type_name);
        };
        (message.and_then(|it| it.map_err(why).ok()), service.and_then(|it| it.map_err(why).ok()))
    }

    /// What nodes this process has, and whose its endpoints are.
    fn announce_nodes(&self, said: &[u8], distro: Distro) -> Result<()> {
        let said = ParticipantEntitiesInfo::decode(said, distro);
        let said = said.map_err(|error| Error::new(ErrorKind::Invalid, "write").because(error))?;
        self.change(|state, _| {
            state.owners.clear();
            for node in said.nodes {
                let name = match node.node_namespace.as_str() {
                    "/" => format!("/{}", node.node_name),
                    namespace => format!("{namespace}/{}", node.node_name),
                };
                let own = node.readers.into_iter().chain(node.writers);
                let own = own.filter(|it| it.prefix() == self.prefix).map(|it| it.entity());
                let own: Vec<Id> = own.collect();
                state.owners.extend(own.into_iter().map(|it| (it, name.clone())));
            }
            state.is_due = true;
        });
        Ok(())
    }
}
