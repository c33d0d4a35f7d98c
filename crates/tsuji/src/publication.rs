//! What stands behind every publisher, whatever its type: the history, the sequence numbers and
//! the roads it sends on.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tsuji_core::{
    Durability, Estimate, History, Liveliness, Peer, Policy, Qos, Reliability, Scope, Size,
    SizeEstimator, SizeFacts, Traits, TransportId,
};
use tsuji_msg::{CdrError, Message};
use tsuji_platform::clock;
use tsuji_ros::service::REQUEST_HEADER_BYTES;
use tsuji_transport::bell::Cell;
use tsuji_transport::{
    self as transport, Bytes, Envelope, ErrorKind as TransportKind, Gid, Loan, Payload, Ticket,
    Transport, Writer,
};

use crate::endpoint::EndpointCore;
use crate::events::{Events, PublisherEvent};
use crate::mapping;
use crate::pacing::{DeadlineWatch, after};
use crate::{Error, ErrorKind, Result, Role};

/// How values of one Rust type become bytes, and shared values.
#[derive(Clone, Copy)]
pub(crate) struct Codec {
    /// The Rust type.
    pub(crate) value_type: TypeId,
    /// The exact bytes of a value.
    pub(crate) size: fn(&dyn Any) -> usize,
    /// Writes a value into memory of just that size.
    pub(crate) write: fn(&dyn Any, &mut [u8]) -> Result<usize, CdrError>,
    /// A shared copy.
    pub(crate) share: fn(&dyn Any) -> Arc<dyn Any + Send + Sync>,
}

impl Codec {
    /// How values of type `M` do.
    pub(crate) fn of<M: Message>() -> Self {
        Self {
            value_type: TypeId::of::<M>(),
            size: |value| value.downcast_ref::<M>().map_or(0, M::serialized_size),
            write: |value, out| match value.downcast_ref::<M>() {
                Some(message) => message.serialize_into(out),
                None => unreachable!("a publisher's values have its type"),
            },
            share: |value| match value.downcast_ref::<M>() {
                Some(message) => Arc::new(message.clone()),
                None => unreachable!("a publisher's values have its type"),
            },
        }
    }
}

/// A sample as its user hands it over.
pub(crate) enum Outgoing<'a> {
    Shared(Arc<dyn Any + Send + Sync>),
    Borrowed(&'a (dyn Any + Send + Sync)),
    Bytes(Bytes),
    Copied(&'a [u8]),
}

/// A sample on its way out, over several tries.
struct Attempt<'a> {
    outgoing: &'a Outgoing<'a>,
    mono_ns: u64,
    /// Its bytes, once they were needed.
    bytes: Option<Payload>,
    /// The shared value, once it was needed.
    value: Option<Payload>,
    /// What it pushed out of the history. Payloads are the user's and may do anything when dropped,
    /// so that is done when no lock is held.
    outlived: Option<Payload>,
    /// What is told of a request before anybody can answer it.
    opening: Option<&'a dyn Opening>,
}

impl<'a> Attempt<'a> {
    fn new(outgoing: &'a Outgoing<'a>, mono_ns: u64) -> Self {
        Self { outgoing, mono_ns, bytes: None, value: None, outlived: None, opening: None }
    }
}

/// Whoever waits for the answer to a request. Called with the publication's lock held.
pub(crate) trait Opening {
    /// The request gets this number and goes to these servers. `false` if it must not.
    fn open(&self, number: u64, servers: &mut dyn Iterator<Item = Gid>) -> bool;

    /// It was not sent after all.
    fn unopen(&self, number: u64);
}

/// A request that is to be answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Where it came from.
    pub(crate) client: Gid,
    /// What the reply relates to.
    pub(crate) number: (Gid, u64),
}

/// Whoever must know that a reader is there no more. Called with the directory's lock held.
pub(crate) trait Parting: Send + Sync {
    /// This reader gets nothing any more.
    fn left(&self, reader: Gid);
}

/// What a publisher has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherCounters {
    /// Samples published, with or without somebody to receive them.
    pub published: u64,
    /// Samples given up: best effort that found no room, or reliable ones answered with an error.
    pub dropped: u64,
    /// Older samples that these pushed out of full subscriptions.
    pub displaced: u64,
    /// Sends that a road failed at, the other roads notwithstanding.
    pub failed: u64,
}

pub(crate) struct Publication {
    core: EndpointCore,
    pub(crate) events: Events<PublisherEvent>,
    spec: PublicationSpec,
    /// Somebody in this process wants values by reference.
    has_readers_by_value: AtomicBool,
    room: Arc<Cell>,
    /// Whether somebody sleeps on the room cell, which one at a time does.
    is_room_awaited: Mutex<bool>,
    room_is_yours: Condvar,
    last_sign_ns: AtomicU64,
    parting: OnceLock<Weak<dyn Parting>>,
    state: Mutex<State>,
}

impl Deref for Publication {
    type Target = EndpointCore;

    fn deref(&self) -> &EndpointCore {
        &self.core
    }
}

struct State {
    next_sequence: u64,
    /// Those with readers come first, and of them the nearest: it lends the memory, and its readers need
    /// not wait for what the others take.
    roads: Vec<Road>,
    roads_in_use: usize,
    /// Whether a road in use takes values, and whether one takes bytes.
    by_value: bool,
    by_bytes: bool,
    readers: HashMap<Gid, ReaderOf>,
    history: VecDeque<(Envelope, Payload)>,
    estimator: SizeEstimator,
    counters: PublisherCounters,
    /// When the last sample was published. Later samples are not stamped earlier.
    last_publish_ns: u64,
    deadline: DeadlineWatch,
    lease_lost: bool,
    /// How far the wall clock is ahead of the monotonic one, and when that was seen.
    wall_ahead_ns: i64,
    wall_seen_ns: u64,
}

impl State {
    /// The roads that have readers.
    fn in_use(&self) -> &[Road] {
        &self.roads[..self.roads_in_use]
    }

    /// To be called when the readers of a road have changed.
    fn sort_roads(&mut self) {
        self.roads.sort_by_key(|road| (!road.is_in_use(), road.nearness));
        self.roads_in_use = self.roads.partition_point(Road::is_in_use);
        self.by_value = self.in_use().iter().any(|road| road.typed);
        self.by_bytes = self.in_use().iter().any(|road| !road.typed);
    }

    /// The wall clock at `mono_ns`. The distance of the two clocks is looked at ten times a second,
    /// which costs less than a second clock for every sample.
    fn wall_ns(&mut self, mono_ns: u64) -> i64 {
        if WALL_FRESH_NS <= mono_ns.saturating_sub(self.wall_seen_ns) {
            self.wall_seen_ns = mono_ns;
            self.wall_ahead_ns = clock::wall_ns().saturating_sub_unsigned(clock::monotonic_ns());
        }
        self.wall_ahead_ns.saturating_add_unsigned(mono_ns)
    }
}

/// What is known of a flow from a publisher that tells nothing of itself.
pub(crate) fn traits_of_another(
    topic: &str,
    type_name: &str,
    far: Far,
    reliability: Reliability,
    policy: &Policy,
) -> Traits {
    let facts = SizeFacts {
        fixed_bytes: None,
        expected_bytes: None,
        stated: policy.stated_size(topic),
        prior: prior(type_name),
    };
    far.traits(SizeEstimator::new(policy.size_line_bytes()).classify(&facts), reliability)
}

/// Where the other end of a flow is, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Far {
    pub(crate) scope: Scope,
    pub(crate) peer: Peer,
}

impl Far {
    fn traits(self, size: Estimate, reliability: Reliability) -> Traits {
        Traits {
            size: size.size,
            size_origin: size.origin,
            sample_bytes: size.bytes,
            scope: self.scope,
            reliability,
            peer: self.peer,
        }
    }
}

/// What is known of a reader.
struct ReaderOf {
    /// Its road: a transport, by value or by bytes.
    id: TransportId,
    typed: bool,
    /// Of a client's, where its requests come from.
    partner: Gid,
    /// The number of the next reply to it: a client gets its own replies only, and misses none for
    /// what others get.
    next: u64,
    /// Replies that were sent to it.
    answered: u64,
}

const WALL_FRESH_NS: u64 = 100_000_000;

/// What a road brings to a reader that was just connected.
#[derive(Clone, Copy)]
pub(crate) struct Connected {
    /// The sequence number of the first sample.
    pub(crate) first: u64,
    /// How many were published before that one.
    pub(crate) published_before: u64,
}

/// What a reader that is to be connected asks for.
pub(crate) struct Asking {
    pub(crate) qos: Qos,
    /// The Rust type that it takes by reference.
    pub(crate) value_type: Option<TypeId>,
    /// The other half, if it is a client's or a server's.
    pub(crate) partner: Gid,
    /// It is not tsuji's.
    pub(crate) is_plain: bool,
}

/// One transport on which this publisher sends.
#[derive(Clone)]
struct Road {
    id: TransportId,
    /// The place of its transport among those of this build, nearest first.
    nearness: usize,
    writer: Arc<dyn Writer>,
    typed: bool,
    /// What late joiners are owed its transport gives them, so it is sent everything.
    keeps: bool,
    /// Requests and replies carry a header there, and replies go to all.
    is_mapped: bool,
    /// It stays open without readers, for others to see.
    stays: bool,
    readers: usize,
    /// The number of the next reply on it, where replies go to all.
    next: u64,
}

impl Road {
    fn is_in_use(&self) -> bool {
        self.keeps || 0 < self.readers
    }

    fn is_of(&self, id: &TransportId, typed: bool) -> bool {
        self.id == *id && self.typed == typed
    }

    /// Memory of its own, or of the heap where it has none to lend.
    fn lend(&self, len: usize) -> Result<Loan, tsuji_transport::Error> {
        match self.writer.loan(len) {
            Err(error) if error.kind() == TransportKind::Unsupported => Ok(Loan::on_heap(len)),
            other => other,
        }
    }
}

/// What a publication needs besides what every endpoint has.
pub(crate) struct PublicationSpec {
    pub(crate) codec: Option<Codec>,
    pub(crate) fixed_bytes: Option<u64>,
    pub(crate) expected_bytes: Option<u64>,
    pub(crate) max_blocking: Duration,
}

impl Publication {
    pub(crate) fn new(core: EndpointCore, spec: PublicationSpec) -> Result<Self> {
        let now = clock::monotonic_ns();
        let state = State {
            next_sequence: 1,
            roads: Vec::new(),
            roads_in_use: 0,
            by_value: false,
            by_bytes: false,
            readers: HashMap::new(),
            history: VecDeque::new(),
            estimator: SizeEstimator::new(core.host.policy().size_line_bytes()),
            counters: PublisherCounters::default(),
            last_publish_ns: now,
            deadline: DeadlineWatch::new(core.qos.deadline),
            lease_lost: false,
            wall_ahead_ns: 0,
            wall_seen_ns: 0,
        };
        Ok(Self {
            events: Events::new(),
            room: Arc::new(core.host.bells().claim_cell()?),
            core,
            spec,
            has_readers_by_value: AtomicBool::new(false),
            is_room_awaited: Mutex::new(false),
            room_is_yours: Condvar::new(),
            last_sign_ns: AtomicU64::new(now),
            parting: OnceLock::new(),
            state: Mutex::new(state),
        })
    }

    /// Sends one sample to everybody who listens, or to nobody and answers why.
    pub(crate) fn publish(&self, outgoing: &Outgoing<'_>) -> Result<()> {
        let mono_ns = clock::monotonic_ns();
        self.open("publish")?;
        let last_sign_ns = self.last_sign_ns.load(Ordering::Relaxed);
        let mut attempt = Attempt::new(outgoing, mono_ns);
        let tried = self.try_publish(&mut self.lock(), &mut attempt);
        let published = match tried {
            Err(error) if error.kind() == TransportKind::Busy => {
                if self.qos.reliability == Reliability::BestEffort {
                    let mut state = self.lock();
                    state.counters.dropped += 1;
                    // Its number is missing where it does not come, and so it is counted as lost.
                    state.next_sequence += 1;
                    return Ok(());
                }
                self.when_there_is_room("publish", self.spec.max_blocking, error, || {
                    self.try_publish(&mut self.lock(), &mut attempt)
                })
            }
            other => other.map_err(|error| self.about("publish", error)),
        };
        match published {
            Ok(()) => self.tell_if_back(last_sign_ns),
            Err(_) => self.lock().counters.dropped += 1,
        }
        published
    }

    /// Sends a request to all servers that are ready, of which `opening` hears first, and waits for
    /// room for at most `patience`.
    pub(crate) fn request(
        &self,
        outgoing: &Outgoing<'_>,
        opening: &dyn Opening,
        patience: Duration,
    ) -> Result<()> {
        self.open("send a request")?;
        let mut attempt = Attempt::new(outgoing, clock::monotonic_ns());
        attempt.opening = Some(opening);
        let tried = self.try_publish(&mut self.lock(), &mut attempt);
        self.persist("send a request", patience, tried, || {
            self.try_publish(&mut self.lock(), &mut attempt)
        })
    }

    /// Sends the reply to a request, to its client and, on most roads, to nobody else.
    pub(crate) fn reply(&self, asked: Asked, outgoing: &Outgoing<'_>) -> Result<()> {
        self.open("reply")?;
        let mut attempt = Attempt::new(outgoing, clock::monotonic_ns());
        let tried = self.try_reply(&mut self.lock(), asked, &mut attempt);
        self.persist("reply", self.spec.max_blocking, tried, || {
            self.try_reply(&mut self.lock(), asked, &mut attempt)
        })
    }

    /// Tries again what was refused as Busy, where something reliable is to be sent.
    fn persist(
        &self,
        operation: &str,
        patience: Duration,
        tried: Result<(), tsuji_transport::Error>,
        attempt: impl FnMut() -> Result<(), tsuji_transport::Error>,
    ) -> Result<()> {
        let done = match tried {
            Err(error)
                if error.kind() == TransportKind::Busy
                    && self.qos.reliability == Reliability::Reliable =>
            {
                self.when_there_is_room(operation, patience, error, attempt)
            }
            done => done.map_err(|error| self.about(operation, error)),
        };
        if done.is_err() {
            self.lock().counters.dropped += 1;
        }
        done
    }

    /// From now on `parting` hears of each reader that leaves.
    pub(crate) fn tell_partings(&self, parting: Weak<dyn Parting>) {
        // There is only ever one.
        let _ = self.parting.set(parting);
    }

    /// How many samples were sent to this reader, if they are counted for each.
    pub(crate) fn answered(&self, reader: Gid) -> Option<u64> {
        let state = self.lock();
        state.readers.get(&reader).map(|it| it.answered).filter(|_| self.role == Role::Reply)
    }

    /// Lends memory of the road that will carry the sample, or of the heap when there is none.
    pub(crate) fn loan(&self, len: usize) -> Result<Loan> {
        self.open("loan")?;
        let tried = self.lend(&self.lock(), len);
        match tried {
            Err(error)
                if error.kind() == TransportKind::Busy
                    && self.qos.reliability == Reliability::Reliable =>
            {
                self.when_there_is_room("loan", self.spec.max_blocking, error, || {
                    self.lend(&self.lock(), len)
                })
            }
            done => done.map_err(|error| self.about("loan", error)),
        }
    }

    pub(crate) fn counters(&self) -> PublisherCounters {
        // A forked child may find the lock held for ever.
        if self.host.is_current() { self.lock().counters } else { PublisherCounters::default() }
    }

    /// How many subscriptions are connected.
    pub(crate) fn readers(&self) -> usize {
        if self.host.is_current() { self.lock().readers.len() } else { 0 }
    }

    /// Whether a value is better shared than looked at.
    pub(crate) fn has_readers_by_value(&self) -> bool {
        self.has_readers_by_value.load(Ordering::Relaxed)
            || self.qos.durability == Durability::TransientLocal
    }

    /// Shows that the publisher is alive.
    pub(crate) fn assert_liveliness(&self) {
        let mut state = self.lock();
        self.last_sign_ns.store(clock::monotonic_ns(), Ordering::Relaxed);
        self.end_lost_lease(&mut state);
    }

    /// Wakes a publish that waits for room.
    pub(crate) fn wake(&self) {
        self.room.ring();
    }

    pub(crate) fn close(&self) {
        self.core.close();
        self.room.ring();
        let mut state = self.lock();
        state.readers.clear();
        let roads = std::mem::take(&mut state.roads);
        state.sort_roads();
        let history = std::mem::take(&mut state.history);
        drop(state);
        drop((roads, history));
    }

    /// What is known of a flow to a subscription of this scope and reliability.
    pub(crate) fn traits(&self, far: Far, reliability: Reliability, policy: &Policy) -> Traits {
        let facts = SizeFacts {
            fixed_bytes: self.spec.fixed_bytes,
            expected_bytes: self.spec.expected_bytes,
            stated: policy.stated_size(&self.topic),
            prior: prior(&self.type_name),
        };
        far.traits(self.lock().estimator.classify(&facts), reliability)
    }

    /// How many readers it has on a transport.
    pub(crate) fn readers_on(&self, transport: &TransportId) -> u32 {
        let state = self.lock();
        let roads = state.roads.iter().filter(|road| road.id == *transport);
        roads.map(|road| road.readers as u32).sum()
    }

    /// Sends to this reader too, from now on, and first what late joiners are owed. Answers nothing
    /// when the transport has only begun to reach it.
    pub(crate) fn connect(
        &self,
        transport: &Arc<dyn Transport>,
        ticket: &Ticket,
        reader: &Asking,
    ) -> Result<Option<Connected>> {
        self.open("connect")?;
        let mut state = self.lock();
        let state = &mut *state;
        let id = transport.id();
        let codec_type = self.spec.codec.map(|codec| codec.value_type);
        let same_type = reader.value_type.is_some() && reader.value_type == codec_type;
        let typed = same_type && transport.capability().typed;
        let at = self.road(state, transport, typed)?;
        let road = &mut state.roads[at];
        let connected = match reader.is_plain {
            true => road.writer.connect_plain(ticket.reader),
            false => road.writer.connect(ticket),
        };
        if connected? == transport::Connected::Later {
            self.sort_roads(state);
            return Ok(None);
        }
        road.readers += 1;
        let road = road.clone();
        self.sort_roads(state);
        let mut first = state.next_sequence;
        if road.is_mapped && self.role == Role::Reply {
            first = road.next;
        }
        let entry = ReaderOf { id, typed, partner: reader.partner, next: first, answered: 0 };
        state.readers.insert(ticket.reader, entry);
        if road.is_mapped {
            return Ok(Some(Connected { first, published_before: state.counters.published }));
        }
        if reader.qos.durability == Durability::TransientLocal {
            let wanted = match reader.qos.history {
                History::KeepLast(depth) => depth as usize,
                History::KeepAll => usize::MAX,
            };
            let skip = state.history.len().saturating_sub(wanted);
            for (envelope, payload) in state.history.iter().skip(skip) {
                if road.keeps {
                    first = first.min(envelope.sequence);
                    break;
                }
                let sent = self
                    .as_the_road_takes_it(&road, payload)
                    .and_then(|payload| road.writer.send_to(ticket.reader, envelope, &payload));
                if let Err(error) = sent {
                    state.counters.failed += 1;
                    tracing::warn!(topic = %self.topic, %error, "late joiner does not get all");
                    break;
                }
                first = first.min(envelope.sequence);
            }
        }
        let owed = state.next_sequence - first;
        let published_before = state.counters.published.saturating_sub(owed);
        Ok(Some(Connected { first, published_before }))
    }

    /// The road of a transport, opened if it is not there yet.
    fn road(
        &self,
        state: &mut State,
        transport: &Arc<dyn Transport>,
        typed: bool,
    ) -> Result<usize, tsuji_transport::Error> {
        let id = transport.id();
        if let Some(at) = state.roads.iter().position(|road| road.is_of(&id, typed)) {
            return Ok(at);
        }
        let announced = self.for_transport(true);
        let writer = transport.open_writer(&announced, Arc::clone(&self.room))?;
        let is_directed = transport.capability().directed;
        let nearness = self.host.transports().iter().position(|it| it.id() == id);
        let road = Road {
            id,
            nearness: nearness.unwrap_or(usize::MAX),
            writer,
            typed,
            keeps: self.keeps() && !is_directed,
            is_mapped: self.role != Role::Topic && !is_directed,
            stays: false,
            readers: 0,
            next: 1,
        };
        if road.keeps {
            // It gives late joiners what they are owed, so it is given all of it.
            for (envelope, payload) in &state.history {
                let payload = self.as_the_road_takes_it(&road, payload)?;
                road.writer.send(envelope, &payload)?;
            }
        }
        state.roads.push(road);
        Ok(state.roads.len() - 1)
    }

    /// Opens the road of a transport for others to see, before anybody listens.
    pub(crate) fn show(&self, transport: &Arc<dyn Transport>) -> Result<()> {
        self.open("announce")?;
        let mut state = self.lock();
        let at = self.road(&mut state, transport, false)?;
        state.roads[at].stays = true;
        self.sort_roads(&mut state);
        Ok(())
    }

    /// Closes the roads on which others than those who were met may see it.
    pub(crate) fn leave_wires(&self) {
        let mut state = self.lock();
        let (left, kept): (Vec<Road>, _) = std::mem::take(&mut state.roads)
            .into_iter()
            .partition(|road| road.writer.wire_name().is_some());
        state.roads = kept;
        self.sort_roads(&mut state);
        drop(state);
        drop(left);
    }

    /// What this publisher is called on the wire of a transport.
    pub(crate) fn wire_name(&self, transport: &TransportId) -> Option<Gid> {
        let state = self.lock();
        state.roads.iter().find(|road| road.id == *transport)?.writer.wire_name()
    }

    /// Does not go on to reach this reader by this transport.
    pub(crate) fn disconnect_from(&self, transport: &TransportId, reader: Gid) {
        let mut state = self.lock();
        let roads = state.roads.iter().filter(|road| road.id == *transport);
        roads.for_each(|road| road.writer.disconnect(reader));
        self.close_idle(&mut state);
    }

    /// Readers that this transport does not reach any more.
    pub(crate) fn lost_on(&self, transport: &TransportId) -> Vec<Gid> {
        let state = self.lock();
        let roads = state.roads.iter().filter(|road| road.id == *transport);
        roads.flat_map(|road| road.writer.lost()).collect()
    }

    /// Closes roads that are sent everything and have nobody left: the next one opens them anew, and
    /// gives them the history again.
    fn close_idle(&self, state: &mut State) {
        state.roads.retain(|road| !road.keeps || road.stays || 0 < road.readers);
        self.sort_roads(state);
    }

    /// Whether late joiners are owed what was published before.
    fn keeps(&self) -> bool {
        self.qos.durability == Durability::TransientLocal
    }

    /// Sends to this reader no more.
    pub(crate) fn disconnect(&self, reader: Gid) {
        let mut state = self.lock();
        let Some(left) = state.readers.remove(&reader) else { return };
        let mut roads = state.roads.iter_mut();
        if let Some(road) = roads.find(|road| road.is_of(&left.id, left.typed)) {
            road.writer.disconnect(reader);
            road.readers = road.readers.saturating_sub(1);
        }
        self.close_idle(&mut state);
        drop(state);
        if let Some(parting) = self.parting.get().and_then(Weak::upgrade) {
            parting.left(reader);
        }
    }

    fn sort_roads(&self, state: &mut State) {
        state.sort_roads();
        self.has_readers_by_value.store(state.by_value, Ordering::Relaxed);
    }

    /// When [`on_time`](Self::on_time) wants to be called, on the monotonic clock.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let last = self.last_sign_ns.load(Ordering::Relaxed);
        let state = self.lock();
        let deadline = state.deadline.due_ns(state.last_publish_ns);
        let lease = self.manual_lease().filter(|_| !state.lease_lost).map(|it| after(last, it));
        [deadline, lease].into_iter().flatten().min()
    }

    /// Looks whether a deadline or a lease has passed.
    pub(crate) fn on_time(&self, now_ns: u64) {
        let last = self.last_sign_ns.load(Ordering::Relaxed);
        let mut state = self.lock();
        let newest_ns = state.last_publish_ns;
        if let Some(total) = state.deadline.look(newest_ns, now_ns) {
            self.events.push(PublisherEvent::DeadlineMissed { total });
        }
        if let Some(lease) = self.manual_lease()
            && !state.lease_lost
            && after(last, lease) <= now_ns
        {
            state.lease_lost = true;
            self.events.push(PublisherEvent::LivelinessLost);
        }
    }

    /// A new lease begins if the last one was lost.
    fn end_lost_lease(&self, state: &mut State) {
        if std::mem::take(&mut state.lease_lost) {
            // A lost lease was waited for no longer.
            self.host.nudge.give();
        }
    }

    /// Tells the subscriptions that it is alive again, if they may have seen the lease that began
    /// at `last_sign_ns` pass. The clock is read when the sample has arrived: whoever looks later
    /// than that sees the sample itself.
    fn tell_if_back(&self, last_sign_ns: u64) {
        let Some(lease) = self.manual_lease() else { return };
        if after(last_sign_ns, lease) <= clock::monotonic_ns() {
            self.host.directory().assert_alive(self.gid);
        }
    }

    fn manual_lease(&self) -> Option<Duration> {
        self.qos.liveliness_lease.filter(|_| self.qos.liveliness == Liveliness::ManualByTopic)
    }

    /// Does what was refused as Busy as soon as it is not, for at most `patience`.
    fn when_there_is_room<T>(
        &self,
        operation: &str,
        patience: Duration,
        refused: tsuji_transport::Error,
        mut attempt: impl FnMut() -> Result<T, tsuji_transport::Error>,
    ) -> Result<T> {
        let give_up_ns = after(clock::monotonic_ns(), patience);
        let Some(_turn) = self.turn(give_up_ns) else { return Err(self.about(operation, refused)) };
        let bell = match self.host.bells().claim_bell() {
            // Whoever cannot be woken cannot wait.
            Err(error) if error.kind() == TransportKind::Exhausted => {
                return Err(self.about(operation, refused.because(error)));
            }
            claimed => claimed?,
        };
        self.room.attach(&bell, 0);
        let result = loop {
            // Whatever rings from here on will be seen by the wait below.
            bell.drain(|_| ());
            let result = self.open(operation).and_then(|()| {
                let done = attempt();
                done.map_err(|error| self.about(operation, error))
            });
            let now_ns = clock::monotonic_ns();
            match result {
                Err(error) if error.kind() == ErrorKind::Busy && now_ns < give_up_ns => {
                    bell.wait(Some(Duration::from_nanos(give_up_ns - now_ns)));
                }
                done => break done,
            }
        };
        self.room.detach();
        result
    }

    /// The turn to wait for room, or `None` when it does not come in time.
    fn turn(&self, give_up_ns: u64) -> Option<Turn<'_>> {
        let mut is_taken = self.is_room_awaited.lock().unwrap_or_else(PoisonError::into_inner);
        while *is_taken {
            let left_ns = give_up_ns.checked_sub(clock::monotonic_ns())?;
            let waited = self.room_is_yours.wait_timeout(is_taken, Duration::from_nanos(left_ns));
            is_taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_taken = true;
        Some(Turn(self))
    }

    fn try_publish(
        &self,
        state: &mut State,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), tsuji_transport::Error> {
        let Attempt { outgoing, mono_ns, bytes, value, outlived, opening } = attempt;
        if state.by_bytes && bytes.is_none() {
            *bytes = Some(Payload::Bytes(self.bytes(outgoing, |len| self.lend(state, len))?));
        }
        let keeps = self.keeps();
        let wants_value = state.by_value || (keeps && !state.by_bytes);
        if wants_value && value.is_none() {
            *value = match outgoing {
                Outgoing::Shared(value) => Some(Payload::Typed(Arc::clone(value))),
                Outgoing::Bytes(bytes) => Some(Payload::Bytes(bytes.clone())),
                Outgoing::Copied(message) => Some(match bytes {
                    Some(bytes) => bytes.clone(),
                    None => Payload::Bytes(Bytes::copy_from(message)),
                }),
                Outgoing::Borrowed(_) if bytes.is_some() => bytes.clone(),
                Outgoing::Borrowed(value) => {
                    self.spec.codec.map(|codec| Payload::Typed((codec.share)(*value)))
                }
            };
        }
        let mono_ns = state.last_publish_ns.max(*mono_ns);
        let envelope = Envelope {
            gid: self.gid,
            sequence: state.next_sequence,
            wall_ns: state.wall_ns(mono_ns),
            mono_ns,
            ..Envelope::default()
        };
        let len = bytes.as_ref().and_then(Payload::byte_len);

        let roads = state.in_use();
        if 1 < roads.len() {
            reserve_on_all(roads, len.unwrap_or(0))?;
        }
        if let Some(opening) = opening
            && !opening.open(envelope.sequence, &mut state.readers.keys().copied())
        {
            roads.iter().for_each(|road| road.writer.cancel());
            return Err(tsuji_transport::Error::new(TransportKind::Closed, "send"));
        }
        let (mut displaced, mut failed) = (0, 0);
        for road in roads {
            let payload = if road.typed { value.as_ref() } else { bytes.as_ref() };
            let Some(payload) = payload else { continue };
            let sent = if road.is_mapped {
                let number = mapping::related(mapping::client_number(self.gid), envelope.sequence);
                mapped(number, payload).and_then(|it| road.writer.send(&envelope, &it))
            } else {
                road.writer.send(&envelope, payload)
            };
            match sent {
                Ok(sent) => displaced += u64::from(sent.displaced),
                Err(error) if roads.len() == 1 => {
                    if let Some(opening) = opening {
                        opening.unopen(envelope.sequence);
                    }
                    return Err(error);
                }
                Err(error) => {
                    failed += 1;
                    tracing::warn!(topic = %self.topic, road = %road.id, %error, "not sent");
                }
            }
        }

        state.next_sequence += 1;
        state.counters.published += 1;
        state.counters.displaced += displaced;
        state.counters.failed += failed;
        self.end_lost_lease(state);
        state.last_publish_ns = mono_ns;
        // It may have been asserted while this waited for room.
        let last_sign_ns = self.last_sign_ns.load(Ordering::Relaxed).max(mono_ns);
        self.last_sign_ns.store(last_sign_ns, Ordering::Relaxed);
        self.observe_size(state, outgoing, len);
        if keeps && let Some(payload) = bytes.take().or_else(|| value.take()) {
            let depth = match self.qos.history {
                History::KeepLast(depth) => depth as usize,
                History::KeepAll => self.host.keep_all_max() as usize,
            };
            if depth <= state.history.len() {
                *outlived = state.history.pop_front().map(|(_, payload)| payload);
            }
            state.history.push_back((envelope, payload));
        }
        Ok(())
    }

    /// Sends one reply on the road of its client.
    fn try_reply(
        &self,
        state: &mut State,
        asked: Asked,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), tsuji_transport::Error> {
        let gone = || {
            tsuji_transport::Error::new(TransportKind::Closed, "send").about("the client has left")
        };
        let found = state.readers.iter().find(|(_, it)| it.partner == asked.client);
        let (reader, entry) = found.ok_or_else(gone)?;
        let is_road = |road: &&Road| road.is_of(&entry.id, entry.typed);
        let road = state.roads.iter().find(is_road).ok_or_else(gone)?.clone();
        let (reader, typed, id) = (*reader, entry.typed, entry.id.clone());
        let sequence = if road.is_mapped { road.next } else { entry.next };
        if road.typed {
            attempt.value = match attempt.outgoing {
                Outgoing::Shared(value) => Some(Payload::Typed(Arc::clone(value))),
                Outgoing::Borrowed(value) if attempt.value.is_none() => {
                    self.spec.codec.map(|codec| Payload::Typed((codec.share)(*value)))
                }
                _ => attempt.value.take(),
            };
        } else if attempt.bytes.is_none() {
            let bytes = self.bytes(attempt.outgoing, |len| road.lend(len))?;
            attempt.bytes = Some(Payload::Bytes(bytes));
        }
        let mono_ns = state.last_publish_ns.max(attempt.mono_ns);
        let envelope = Envelope {
            gid: self.gid,
            sequence,
            wall_ns: state.wall_ns(mono_ns),
            mono_ns,
            related: Some(asked.number),
            ..Envelope::default()
        };
        let payload = if road.typed { &attempt.value } else { &attempt.bytes };
        let payload = payload.as_ref().ok_or_else(gone)?;
        if road.is_mapped {
            road.writer.send(&envelope, &mapped(asked.number, payload)?)?;
            let mut roads = state.roads.iter_mut();
            if let Some(road) = roads.find(|road| road.is_of(&id, typed)) {
                road.next = sequence + 1;
            }
        } else {
            road.writer.send_to(reader, &envelope, payload)?;
            // A client that comes back is sent numbers that it has not seen.
            state.next_sequence = state.next_sequence.max(sequence + 1);
        }
        if let Some(entry) = state.readers.get_mut(&reader) {
            entry.next = sequence + 1;
            entry.answered += 1;
        }
        state.counters.published += 1;
        state.last_publish_ns = mono_ns;
        self.last_sign_ns.store(mono_ns, Ordering::Relaxed);
        let len = attempt.bytes.as_ref().and_then(Payload::byte_len);
        self.observe_size(state, attempt.outgoing, len);
        Ok(())
    }

    fn bytes(
        &self,
        outgoing: &Outgoing<'_>,
        lend: impl FnOnce(usize) -> Result<Loan, tsuji_transport::Error>,
    ) -> Result<Bytes, tsuji_transport::Error> {
        let value: &dyn Any = match outgoing {
            Outgoing::Bytes(bytes) => return Ok(bytes.clone()),
            Outgoing::Copied(message) => {
                let mut loan = lend(message.len())?;
                loan.copy_from_slice(message);
                return Ok(loan.freeze());
            }
            Outgoing::Shared(value) => &**value,
            Outgoing::Borrowed(value) => *value,
        };
        self.serialise(value, lend)
    }

    fn serialise(
        &self,
        value: &dyn Any,
        lend: impl FnOnce(usize) -> Result<Loan, tsuji_transport::Error>,
    ) -> Result<Bytes, tsuji_transport::Error> {
        let refused = || tsuji_transport::Error::new(TransportKind::Invalid, "serialise");
        let codec = self.spec.codec.ok_or_else(|| refused().about("a value without a type"))?;
        let mut loan = lend((codec.size)(value))?;
        let written = (codec.write)(value, &mut loan).map_err(|error| refused().because(error))?;
        loan.truncate(written);
        Ok(loan.freeze())
    }

    fn lend(&self, state: &State, len: usize) -> Result<Loan, tsuji_transport::Error> {
        match state.in_use().iter().find(|road| !road.typed) {
            Some(road) => road.lend(len),
            None => Ok(Loan::on_heap(len)),
        }
    }

    fn as_the_road_takes_it(
        &self,
        road: &Road,
        payload: &Payload,
    ) -> Result<Payload, tsuji_transport::Error> {
        match payload {
            Payload::Typed(value) if !road.typed => {
                self.serialise(&**value, |len| road.lend(len)).map(Payload::Bytes)
            }
            payload => Ok(payload.clone()),
        }
    }

    /// What is not serialised is measured now and then only.
    fn observe_size(&self, state: &mut State, outgoing: &Outgoing<'_>, len: Option<usize>) {
        if self.spec.fixed_bytes.is_some() {
            return;
        }
        let bytes = match (len, outgoing) {
            (Some(len), _) => len,
            (None, Outgoing::Bytes(bytes)) => bytes.len(),
            (None, Outgoing::Copied(message)) => message.len(),
            (None, _) if 16 < state.next_sequence && !state.next_sequence.is_multiple_of(16) => {
                return;
            }
            (None, Outgoing::Shared(value)) => self.size_of(&**value),
            (None, Outgoing::Borrowed(value)) => self.size_of(*value),
        };
        state.estimator.observe(bytes as u64);
    }

    fn size_of(&self, value: &dyn Any) -> usize {
        self.spec.codec.map_or(0, |codec| (codec.size)(value))
    }

    fn about(&self, operation: &str, error: tsuji_transport::Error) -> Error {
        let kind = Error::from(error);
        Error::new(kind.kind(), format!("{operation} on {}", self.topic)).because(kind)
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who waits for room. Ends by letting the next one wait.
struct Turn<'a>(&'a Publication);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.is_room_awaited.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.room_is_yours.notify_one();
    }
}

/// Reserves room for the next sample on all roads, or on none.
fn reserve_on_all(roads: &[Road], len: usize) -> Result<(), tsuji_transport::Error> {
    for (at, road) in roads.iter().enumerate() {
        let header = if road.is_mapped { REQUEST_HEADER_BYTES } else { 0 };
        let len = if road.typed { 0 } else { len + header };
        if let Err(error) = road.writer.reserve(len) {
            roads[..at].iter().for_each(|road| road.writer.cancel());
            return Err(error);
        }
    }
    Ok(())
}

/// A request or reply as it goes over a road that has no place for its number.
fn mapped(number: (Gid, u64), payload: &Payload) -> Result<Payload, tsuji_transport::Error> {
    let refused = || tsuji_transport::Error::new(TransportKind::Invalid, "send");
    let Payload::Bytes(bytes) = payload else { return Err(refused().about("a typed value")) };
    let whole = mapping::join(number, bytes).map_err(|error| refused().because(error))?;
    Ok(Payload::Bytes(whole))
}

/// Types whose samples are large as a rule, before the first one shows it.
fn prior(type_name: &str) -> Size {
    const LARGE: &[&str] = &[
        "sensor_msgs/msg/Image",
        "sensor_msgs/msg/CompressedImage",
        "sensor_msgs/msg/PointCloud",
        "sensor_msgs/msg/PointCloud2",
        "nav_msgs/msg/OccupancyGrid",
        "stereo_msgs/msg/DisparityImage",
    ];
    if LARGE.contains(&type_name) { Size::Large } else { Size::Small }
}
