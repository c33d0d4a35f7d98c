//! What all sessions share on the thread of the connections: the time, the publishers, and the way to the thread of ROS.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tsuji::{Context, Durability, ErrorKind, Node, PublisherEvent, PublisherOptions, RawPublisher};
use tsuji_core::{History, Qos};
use tsuji_rosbridge::StreamSplitter;
use tsuji_rosbridge::access::UserKey;
use tsuji_rosbridge::client::Advertisement;

use crate::clients::Clients;
use crate::connected_client::{ConnectedClient, Dialect, Peer};
use crate::deflate::Inflater;
use crate::foxglove::{Names, is_time_simulated};
use crate::hub::{Mailbox, Order};
use crate::io::READ_BYTES;
use crate::memory::{Held, Memory};
use crate::metrics::{self, Slot};
use crate::page::Page;
use crate::session::Session;
use crate::settings::{Protocol, Settings};
use crate::types::{MessageType, Types};
use crate::wake::Wake;
use crate::{Counters, Statistics};

/// What all sessions share.
pub(crate) struct Desk {
    settings: Arc<Settings>,
    pub(crate) counters: Arc<Counters>,
    context: Context,
    node: Node,
    pub(crate) types: Arc<Types>,
    pub(crate) page: Page,
    /// What clients of Foxglove know by numbers.
    pub(crate) names: Arc<Names>,
    hub: Mailbox,
    wake: Arc<Wake>,
    /// By full name.
    publishers: HashMap<Arc<str>, Publisher>,
    /// Those of which messages wait for a first subscription.
    early: Vec<Arc<str>>,
    early_held: Arc<Held>,
    /// Topics that clients who have gone published on, and when they go, the next first.
    leaving: VecDeque<(Instant, String)>,
    began: Instant,
    now: Instant,
    buffer: Vec<u8>,
    inflater: Option<Inflater>,
    memory: Arc<Memory>,
    next_member: u64,
    clients: Clients,
}

/// A topic that clients publish on.
struct Publisher {
    raw: RawPublisher,
    ty: Arc<MessageType>,
    /// How many clients do.
    users: usize,
    /// Until a subscription is there, but for no longer than a second.
    early: Option<Early>,
}

/// Messages that were published before anybody could have heard of the topic.
struct Early {
    until: Instant,
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    memory: Arc<Memory>,
    /// Those of all topics.
    held: Arc<Held>,
}

/// Why a message was not published.
#[derive(Debug)]
pub(crate) enum NotPublished {
    /// Somebody who keeps all has no room, or too much waits for a first subscription. A later try may succeed.
    Busy,
    /// It will not be.
    Refused(String),
}

impl Desk {
    pub(crate) fn new(
        node: Node,
        settings: Arc<Settings>,
        counters: Arc<Counters>,
        types: Arc<Types>,
        hub: Mailbox,
        wake: Arc<Wake>,
        began: Instant,
    ) -> Self {
        let now = Instant::now();
        let clients = Clients::new(&node);
        Self {
            buffer: vec![0; settings.incoming_buffer.max(READ_BYTES)],
            inflater: None,
            memory: Arc::new(Memory::new(settings.memory_bytes_max)),
            page: Page::new(&settings),
            names: Arc::clone(&hub.names),
            settings,
            counters,
            context: node.context().clone(),
            node,
            types,
            hub,
            wake,
            publishers: HashMap::new(),
            early: Vec::new(),
            early_held: Arc::default(),
            leaving: VecDeque::new(),
            began,
            now,
            next_member: 0,
            clients,
        }
    }

    /// Looks at the clock. All that happens until the next time happens now.
    pub(crate) fn tick(&mut self) {
        self.now = Instant::now();
    }

    /// The time.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// The time as the protocol counts it.
    pub(crate) fn elapsed(&self) -> Duration {
        self.now.duration_since(self.began)
    }

    /// A time as the protocol counts it, as one of the clock.
    pub(crate) fn instant(&self, elapsed: Duration) -> Instant {
        self.began + elapsed
    }

    /// What the bridge was told.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings)
    }

    /// The same, for a look.
    pub(crate) fn settings_ref(&self) -> &Settings {
        &self.settings
    }

    /// Has the metrics written for the connection at `place`, which has a turn when they are there.
    pub(crate) fn write_metrics(&self, place: usize, request: metrics::Request) -> Arc<Slot> {
        let slot = Arc::<Slot>::default();
        let (filled, wake) = (Arc::clone(&slot), Arc::clone(&self.wake));
        let (settings, counters) = (Arc::clone(&self.settings), Arc::clone(&self.counters));
        let (memory, uptime) = (Arc::clone(&self.memory), self.elapsed());
        self.hub.observer.ask(true, move |snapshot| {
            // Whoever has left wants nothing any more.
            if Arc::strong_count(&filled) == 1 {
                return;
            }
            let done = Statistics { held_bytes: memory.bytes() as u64, ..counters.statistics() };
            let write = |it: &_| metrics::write(it, &done, uptime, &settings.access, request);
            filled.put(snapshot.map(write));
            wake.dirty(place);
        });
        slot
    }

    /// Room for what is read of a socket; to be given back.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Takes the room back.
    pub(crate) fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }

    /// What makes messages whole that were deflated; to be given back. The first is made when one comes.
    pub(crate) fn take_inflater(&mut self) -> Inflater {
        self.inflater.take().unwrap_or_default()
    }

    /// Takes it back.
    pub(crate) fn give_inflater(&mut self, inflater: Inflater) {
        self.inflater = Some(inflater);
    }

    /// What waits for all clients.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// For a connection that has no frames.
    pub(crate) fn splitter(&self) -> StreamSplitter {
        let limits = &self.settings.limits;
        let encoding = self.settings.encoding();
        StreamSplitter::new(encoding, limits.message_bytes_max, limits.nesting_max)
    }

    /// A client that has just connected, and has said who it is where it is a user.
    pub(crate) fn session(
        &mut self,
        place: usize,
        peer: SocketAddr,
        protocol: Protocol,
        dialect: Dialect,
        user: Option<UserKey>,
    ) -> Session {
        self.next_member += 1;
        let (wake, counters) = (Arc::clone(&self.wake), Arc::clone(&self.counters));
        let peer = Peer { address: peer, protocol, dialect };
        let memory = Arc::clone(&self.memory);
        let number = self.next_member;
        let member =
            ConnectedClient::new(number, place, peer, &self.settings, wake, counters, memory);
        let member = Arc::new(member);
        self.memory.enter(&member);
        self.clients.enter(number, peer.address.ip());
        Session::new(member, user, self)
    }

    /// Asks the thread of ROS for something for a client.
    pub(crate) fn order(&mut self, member: &Arc<ConnectedClient>, order: Order) {
        self.hub.order(member, order);
    }

    /// Notes that a client has gone.
    pub(crate) fn leave(&mut self, member: u64) {
        self.clients.leave(member);
    }

    /// Ends the thread of ROS.
    pub(crate) fn end(&mut self) {
        self.hub.end();
    }

    /// What ends a turn: the thread of ROS hears of all orders at once.
    pub(crate) fn turn(&mut self) {
        self.hub.flush();
        self.clients.publish();
        while self.leaving.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, topic)) = self.leaving.pop_front() else { break };
            self.close_publisher(&topic);
        }
        if !self.early.is_empty() {
            self.send_early();
        }
    }

    /// When the next turn has to be, whatever happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        let early = self.early.iter().filter_map(|it| self.publishers.get(it)?.early.as_ref());
        early.map(|it| it.until).chain(self.leaving.front().map(|it| it.0)).min()
    }

    /// The type that a topic has, if anybody publishes it or subscribes to it.
    pub(crate) fn type_of(&self, topic: &str) -> Option<String> {
        if let Some(publisher) = self.publishers.get(topic) {
            return Some(publisher.raw.type_name().to_owned());
        }
        self.context.endpoints_of(topic).into_iter().next().map(|it| it.type_name)
    }

    /// Whether anybody publishes simulated time.
    pub(crate) fn is_time_simulated(&self) -> bool {
        is_time_simulated(&self.context)
    }

    /// Lets one more client publish on `topic`.
    pub(crate) fn open_publisher(
        &mut self,
        topic: &Arc<str>,
        ty: &Arc<MessageType>,
        said: &Advertisement,
    ) -> Result<(), String> {
        if let Some(publisher) = self.publishers.get_mut(topic) {
            if publisher.ty.description.name() != ty.description.name() {
                return Err(format!("{topic} has type {} already", publisher.raw.type_name()));
            }
            publisher.users += 1;
            return Ok(());
        }
        let base = Qos {
            history: History::KeepLast(said.queue_size.clamp(1, Qos::DEPTH_MAX)),
            durability: if said.latch { Durability::TransientLocal } else { Durability::Volatile },
            ..Qos::DEFAULT
        };
        let qos = said.qos.map_or(base, |it| it.over(base));
        let wake = Arc::clone(&self.wake);
        let note = move |event: &PublisherEvent| {
            if matches!(event, PublisherEvent::Matched { .. }) {
                wake.now();
            }
        };
        // Who waits keeps all other clients waiting.
        let options = PublisherOptions::default().qos(qos).max_blocking(Duration::ZERO);
        let raw = self.node.create_raw_publisher(topic, ty.raw(), options.note_events(note));
        let raw = raw.map_err(|error| error.to_string())?;
        let early = Early {
            until: self.now + EARLY,
            waiting: VecDeque::new(),
            bytes: 0,
            memory: Arc::clone(&self.memory),
            held: Arc::clone(&self.early_held),
        };
        let ty = Arc::clone(ty);
        self.publishers
            .insert(Arc::clone(topic), Publisher { raw, ty, users: 1, early: Some(early) });
        Ok(())
    }

    /// One client less publishes on `topic`.
    pub(crate) fn close_publisher(&mut self, topic: &str) {
        if let Some(publisher) = self.publishers.get_mut(topic) {
            publisher.users -= 1;
            if publisher.users == 0 {
                self.publishers.remove(topic);
                self.early.retain(|it| **it != *topic);
            }
        }
    }

    /// One client less will publish on `topic`, in a while: what it said last may not have arrived.
    pub(crate) fn leave_publisher(&mut self, topic: String) {
        let at = self.now + self.settings.limits.client.unregister_timeout;
        self.leaving.push_back((at, topic));
    }

    /// The type of a topic that clients publish on.
    pub(crate) fn published_type(&self, topic: &str) -> Option<Arc<MessageType>> {
        self.publishers.get(topic).map(|it| Arc::clone(&it.ty))
    }

    /// Publishes CDR with its header.
    pub(crate) fn publish(&mut self, topic: &str, cdr: &[u8]) -> Result<(), NotPublished> {
        let Some(publisher) = self.publishers.get_mut(topic) else {
            return Err(NotPublished::Refused(format!("{topic} is not advertised")));
        };
        if let Some(early) = &mut publisher.early {
            let has_room = self.memory.spares(&early.held, cdr.len());
            let may_wait = has_room || !early.waiting.is_empty();
            if may_wait && self.now < early.until && publisher.raw.matched() == 0 {
                // It does not go before those that wait already.
                if !has_room || !early.keep(cdr) {
                    return Err(NotPublished::Busy);
                }
                if early.waiting.len() == 1
                    && let Some((topic, _)) = self.publishers.get_key_value(topic)
                {
                    self.early.push(Arc::clone(topic));
                }
                return Ok(());
            }
            if !early.send(&publisher.raw, &self.counters)? {
                return Err(NotPublished::Busy);
            }
            publisher.early = None;
        }
        sent(publisher.raw.publish_bytes(cdr), &self.counters)
    }

    fn send_early(&mut self) {
        let Self { publishers, early: waiting, now, counters, .. } = self;
        waiting.retain(|topic| {
            let Some(publisher) = publishers.get_mut(topic) else { return false };
            let Some(early) = &mut publisher.early else { return false };
            if *now < early.until && publisher.raw.matched() == 0 {
                return true;
            }
            // What is refused is refused for ever.
            if let Ok(false) = early.send(&publisher.raw, counters) {
                early.until = *now + BUSY;
                return true;
            }
            publisher.early = None;
            false
        });
    }
}

impl Early {
    /// Lets a message wait, if there is room.
    fn keep(&mut self, cdr: &[u8]) -> bool {
        let is_room =
            self.waiting.len() < EARLY_MESSAGES_MAX && self.bytes + cdr.len() <= EARLY_BYTES_MAX;
        if is_room || self.waiting.is_empty() {
            self.count(self.bytes + cdr.len());
            self.waiting.push_back(cdr.to_vec());
            return true;
        }
        false
    }

    fn count(&mut self, bytes: usize) {
        self.memory.changed(&self.held, self.bytes, bytes);
        self.bytes = bytes;
    }

    /// Sends all that waits; whether that was possible.
    fn send(&mut self, raw: &RawPublisher, counters: &Counters) -> Result<bool, NotPublished> {
        while let Some(cdr) = self.waiting.front() {
            match sent(raw.publish_bytes(cdr), counters) {
                Ok(()) => {}
                Err(NotPublished::Busy) => return Ok(false),
                Err(refused) => return Err(refused),
            }
            let left = self.bytes - cdr.len();
            self.count(left);
            self.waiting.pop_front();
        }
        Ok(true)
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        self.count(0);
    }
}

fn sent(published: tsuji::Result<()>, counters: &Counters) -> Result<(), NotPublished> {
    match published {
        Ok(()) => {
            counters.published.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::Busy => Err(NotPublished::Busy),
        Err(error) => Err(NotPublished::Refused(error.to_string())),
    }
}

/// After this, what was published while nobody had subscribed is sent to whoever is there.
const EARLY: Duration = Duration::from_secs(1);

/// When a publisher had no room, it is tried again after so long.
pub(crate) const BUSY: Duration = Duration::from_micros(500);

const EARLY_MESSAGES_MAX: usize = 1000;
const EARLY_BYTES_MAX: usize = 16 << 20;
