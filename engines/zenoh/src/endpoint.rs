//! Writers and readers, as the contract has them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tsuji_core::Durability;
use tsuji_engine::{
    Arrived, EndpointSpec, EngineReader, EngineWriter, Guid, Listener, ListenerSlot, Peep, Related,
    Tap,
};
use tsuji_platform::fork::Generation;
use tsuji_ros::gid::Distro;
use tsuji_transport::{Bytes, Error, ErrorKind, Result};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::Queryable;

use crate::control::name;
use crate::engine::{Calls, Own, ReaderState, Shared, State, WriterState};
use crate::format::{Entity, Kind};
use crate::role::{self, Role};

/// How long a writer waits at its end for its readers to have all.
const CLOSE_WAITS: Duration = Duration::from_secs(1);

pub(crate) struct ZenohWriter {
    shared: Arc<Shared>,
    id: [u8; 4],
    ear: Arc<ListenerSlot>,
    /// What others ask of it.
    asked: Vec<Own<Queryable<()>>>,
    tokens: Vec<Own<LivelinessToken>>,
    /// It writes of what nodes there are, in whose message.
    nodes: Option<Distro>,
    generation: Generation,
}

impl ZenohWriter {
    pub(crate) fn open(shared: &Arc<Shared>, spec: &EndpointSpec<'_>) -> Result<Self> {
        let (role, announced) = role::of(spec, shared.is_on_wire);
        let id = shared.new_id(Kind::Writer);
        let mut writer = Self {
            shared: Arc::clone(shared),
            id,
            ear: Arc::default(),
            asked: Vec::new(),
            tokens: Vec::new(),
            nodes: None,
            generation: Generation::current(),
        };
        if let Role::Nodes(distro) = role {
            writer.nodes = Some(distro);
            return Ok(writer);
        }
        let publishers = shared.publishers(&announced)?;
        writer.tokens.push(shared.token(id, Kind::Writer, &announced)?);
        let keeps = role == Role::Topic && spec.qos.durability == Durability::TransientLocal;
        let (entity, server) = match &role {
            Role::Topic => (Some(Entity::Writer(announced.clone())), None),
            Role::Request(half) => (Some(Entity::Client(half.service.clone())), None),
            Role::Reply(half) => (Some(Entity::Server(half.service.clone())), Some(half.clone())),
            Role::Own | Role::Nodes(_) => (None, None),
        };
        let kept_of = announced.clone();
        let ear = Arc::clone(&writer.ear);
        shared.add_writer(id, WriterState::new(spec, (role, announced), publishers, ear));
        if keeps {
            let (queryable, token) = shared.keeper(id, &kept_of)?;
            writer.asked.push(queryable);
            writer.tokens.push(token);
        }
        if let Some(half) = server {
            let key = half.service.data_key(shared.domain);
            shared.lock().wire.serve(id, half, key.clone());
            writer.asked.push(shared.queryable(id, &key)?);
        }
        // Whoever finds its token can ask.
        if let Some(entity) = entity {
            shared.lock().wire.show(id, entity);
        }
        Ok(writer)
    }
}

impl EngineWriter for ZenohWriter {
    fn guid(&self) -> Guid {
        name(self.shared.prefix, self.id)
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        self.ear.open(listener);
        Ok(())
    }

    fn write(&self, bytes: &Bytes, source_ns: i64) -> Result<()> {
        match self.nodes {
            Some(distro) => self.shared.tell_nodes(bytes, distro),
            None => self.shared.write(self.id, bytes, source_ns, None),
        }
    }

    fn write_related(&self, bytes: &Bytes, source_ns: i64, related: Related) -> Result<()> {
        self.shared.write(self.id, bytes, source_ns, Some(related))
    }

    fn is_acknowledged(&self) -> bool {
        self.shared.is_acknowledged(self.id)
    }

    fn wait_for_acknowledgements(&self, timeout: Duration) {
        self.shared.wait_for(self.id, timeout, WriterState::is_acknowledged);
    }

    fn peep(&self) -> Arc<dyn Peep> {
        Arc::new(End { shared: Arc::downgrade(&self.shared), id: self.id })
    }
}

impl Drop for ZenohWriter {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            return;
        }
        self.shared.wait_for(self.id, CLOSE_WAITS, WriterState::is_done);
        self.ear.close();
        self.shared.remove_writer(self.id);
        self.tokens.clear();
        self.asked.clear();
    }
}

pub(crate) struct ZenohReader {
    shared: Arc<Shared>,
    id: [u8; 4],
    ear: Arc<ListenerSlot>,
    // In this order: whoever finds the token may count on the subscriber.
    token: Option<Own<LivelinessToken>>,
    subscriber: Option<Own<Subscriber<()>>>,
    generation: Generation,
}

impl ZenohReader {
    pub(crate) fn open(shared: &Arc<Shared>, spec: &EndpointSpec<'_>) -> Result<Self> {
        let (role, announced) = role::of(spec, shared.is_on_wire);
        let id = shared.new_id(Kind::Reader);
        let ear = Arc::new(ListenerSlot::default());
        let is_of_nodes = matches!(role, Role::Nodes(_));
        let is_of_topic = role == Role::Topic;
        let mut calls = Calls::default();
        let mut state = shared.lock();
        let mut reader = ReaderState::new(role, announced.clone(), Arc::clone(&ear));
        reader.match_plains(id, shared.domain, &state.wire, &mut calls.asks);
        if is_of_nodes {
            reader.dirty = state.wire.all_sessions();
        }
        state.readers.insert(id, reader);
        shared.take_early_requests(&mut state, &mut calls);
        drop(state);
        let mut reader = Self {
            shared: Arc::clone(shared),
            id,
            ear,
            token: None,
            subscriber: None,
            generation: Generation::current(),
        };
        if is_of_nodes {
            return Ok(reader);
        }
        reader.subscriber = Some(shared.subscriber(id, &announced)?);
        reader.token = Some(shared.token(id, Kind::Reader, &announced)?);
        if is_of_topic {
            shared.lock().wire.show(id, Entity::Reader(announced));
        }
        // What was kept is asked for once what is new comes.
        shared.make(calls);
        Ok(reader)
    }
}

impl EngineReader for ZenohReader {
    fn guid(&self) -> Guid {
        name(self.shared.prefix, self.id)
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        self.ear.open(listener);
        Ok(())
    }

    fn tap(&self) -> Arc<dyn Tap> {
        Arc::new(End { shared: Arc::downgrade(&self.shared), id: self.id })
    }
}

impl Drop for ZenohReader {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            return;
        }
        self.ear.close();
        self.token = None;
        self.subscriber = None;
        self.shared.remove_reader(self.id);
    }
}

/// Looks at an endpoint that may be gone.
struct End {
    shared: Weak<Shared>,
    id: [u8; 4],
}

impl Peep for End {
    fn matches(&self) -> Vec<Guid> {
        let Some(shared) = self.shared.upgrade() else { return Vec::new() };
        let state = shared.lock();
        let writer = state.writers.get(&self.id);
        writer.map_or_else(Vec::new, |it| it.readers.keys().copied().collect())
    }
}

impl Tap for End {
    fn matches(&self) -> Vec<Guid> {
        let Some(shared) = self.shared.upgrade() else { return Vec::new() };
        let state = shared.lock();
        let reader = state.readers.get(&self.id);
        reader.map_or_else(Vec::new, |it| {
            it.writers.keys().chain(it.foreign_sources.keys()).copied().collect()
        })
    }

    fn take(&self) -> Result<Option<Arrived>> {
        let gone = || Error::new(ErrorKind::Closed, "take").about("the reader is gone");
        let shared = self.shared.upgrade().ok_or_else(gone)?;
        let mut state = shared.lock();
        let State { readers, wire, .. } = &mut *state;
        let reader = readers.get_mut(&self.id).ok_or_else(gone)?;
        Ok(match reader.role {
            Role::Nodes(distro) => wire.take_nodes(&mut reader.dirty, distro),
            _ => reader.arrived.pop_front(),
        })
    }
}
