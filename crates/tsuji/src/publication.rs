//! What stands behind every publisher, whatever its type: the history, the sequence numbers and
//! the roads it sends on.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tsuji_core::{
    Durability, History, Liveliness, Policy, Qos, Reliability, Scope, Size, SizeEstimator,
    SizeFacts, Traits, TransportId,
};
use tsuji_msg::CdrError;
use tsuji_platform::clock;
use tsuji_transport::bell::Cell;
use tsuji_transport::{
    Bytes, Endpoint, Envelope, ErrorKind as TransportKind, Gid, Loan, Payload, Ticket, Transport,
    Writer,
};

use crate::events::{Events, PublisherEvent};
use crate::host::Host;
use crate::{Error, ErrorKind, Result};

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

/// A sample as its user hands it over.
pub(crate) enum Outgoing<'a> {
    Shared(Arc<dyn Any + Send + Sync>),
    Borrowed(&'a (dyn Any + Send + Sync)),
    Bytes(Bytes),
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
    pub(crate) gid: Gid,
    pub(crate) node: Gid,
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) type_hash: String,
    pub(crate) qos: Qos,
    pub(crate) events: Events<PublisherEvent>,
    host: Arc<Host>,
    codec: Option<Codec>,
    fixed_bytes: Option<u64>,
    expected_bytes: Option<u64>,
    max_blocking: Duration,
    room: Arc<Cell>,
    /// One publish at a time sleeps on the room cell.
    sleeping: Mutex<()>,
    is_closed: AtomicBool,
    last_sign_ns: AtomicU64,
    state: Mutex<State>,
}

struct State {
    next_sequence: u64,
    roads: Vec<Road>,
    /// Each reader, with its road: a transport, by value or by bytes.
    readers: HashMap<Gid, (TransportId, bool)>,
    history: VecDeque<(Envelope, Payload)>,
    estimator: SizeEstimator,
    counters: PublisherCounters,
    deadline_missed: u64,
    /// The end of the last period that was missed.
    deadline_from_ns: u64,
    lease_lost: bool,
    /// How far the wall clock is ahead of the monotonic one, and when that was seen.
    wall_ahead_ns: i64,
    wall_seen_ns: u64,
}

impl State {
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

const WALL_FRESH_NS: u64 = 100_000_000;

/// One transport on which this publisher sends.
struct Road {
    id: TransportId,
    writer: Arc<dyn Writer>,
    typed: bool,
    readers: usize,
}

/// What is needed to make a publication.
pub(crate) struct PublicationSpec {
    pub(crate) gid: Gid,
    pub(crate) node: Gid,
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) type_hash: String,
    pub(crate) qos: Qos,
    pub(crate) codec: Option<Codec>,
    pub(crate) fixed_bytes: Option<u64>,
    pub(crate) expected_bytes: Option<u64>,
    pub(crate) max_blocking: Duration,
}

impl Publication {
    pub(crate) fn new(host: &Arc<Host>, spec: PublicationSpec) -> Result<Self> {
        let now = clock::monotonic_ns();
        let state = State {
            next_sequence: 1,
            roads: Vec::new(),
            readers: HashMap::new(),
            history: VecDeque::new(),
            estimator: SizeEstimator::new(host.policy().size_line_bytes()),
            counters: PublisherCounters::default(),
            deadline_missed: 0,
            deadline_from_ns: 0,
            lease_lost: false,
            wall_ahead_ns: 0,
            wall_seen_ns: 0,
        };
        Ok(Self {
            gid: spec.gid,
            node: spec.node,
            topic: spec.topic,
            type_name: spec.type_name,
            type_hash: spec.type_hash,
            qos: spec.qos,
            events: Events::new(),
            host: Arc::clone(host),
            codec: spec.codec,
            fixed_bytes: spec.fixed_bytes,
            expected_bytes: spec.expected_bytes,
            max_blocking: spec.max_blocking,
            room: Arc::new(host.bells().claim_cell()?),
            sleeping: Mutex::new(()),
            is_closed: AtomicBool::new(false),
            last_sign_ns: AtomicU64::new(now),
            state: Mutex::new(state),
        })
    }

    /// Sends one sample to everybody who listens, or to nobody and answers why.
    pub(crate) fn publish(&self, outgoing: &Outgoing<'_>) -> Result<()> {
        let mono_ns = clock::monotonic_ns();
        self.open("publish")?;
        let mut ready = None;
        let tried = self.try_publish(&mut self.lock(), outgoing, &mut ready, mono_ns);
        match tried {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == TransportKind::Busy => (),
            Err(error) => {
                self.lock().counters.dropped += 1;
                return Err(self.about(error));
            }
        }
        if self.qos.reliability == Reliability::BestEffort {
            self.lock().counters.dropped += 1;
            return Ok(());
        }
        self.publish_when_there_is_room(outgoing, ready, mono_ns)
    }

    /// Lends memory of the road that will carry the sample, or of the heap when there is none.
    pub(crate) fn loan(&self, len: usize) -> Result<Loan> {
        self.open("loan")?;
        self.lend(&self.lock(), len).map_err(|error| self.about(error))
    }

    pub(crate) fn counters(&self) -> PublisherCounters {
        // A forked child may find the lock held for ever.
        if self.host.is_current() { self.lock().counters } else { PublisherCounters::default() }
    }

    /// How many subscriptions are connected.
    pub(crate) fn readers(&self) -> usize {
        if self.host.is_current() { self.lock().readers.len() } else { 0 }
    }

    /// Whether somebody in this process wants values by reference.
    pub(crate) fn has_readers_by_value(&self) -> bool {
        if !self.host.is_current() {
            return false;
        }
        let state = self.lock();
        let by_value = state.roads.iter().any(|road| road.typed && 0 < road.readers);
        by_value || self.qos.durability == Durability::TransientLocal
    }

    /// Shows that the publisher is alive.
    pub(crate) fn assert_liveliness(&self) {
        self.last_sign_ns.store(clock::monotonic_ns(), Ordering::Relaxed);
        self.end_lost_lease(&mut self.lock());
    }

    /// Wakes a publish that waits for room.
    pub(crate) fn wake(&self) {
        self.room.ring();
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.room.ring();
        let mut state = self.lock();
        state.readers.clear();
        let roads = std::mem::take(&mut state.roads);
        let history = std::mem::take(&mut state.history);
        drop(state);
        drop((roads, history));
    }

    /// What is known of a flow to a subscription of this scope and reliability.
    pub(crate) fn traits(&self, scope: Scope, reliability: Reliability, policy: &Policy) -> Traits {
        let facts = SizeFacts {
            fixed_bytes: self.fixed_bytes,
            expected_bytes: self.expected_bytes,
            stated: policy.stated_size(&self.topic),
            prior: prior(&self.type_name),
        };
        let estimate = self.lock().estimator.classify(&facts);
        Traits {
            size: estimate.size,
            size_origin: estimate.origin,
            sample_bytes: estimate.bytes,
            scope,
            reliability,
            peer: tsuji_core::Peer::Tsuji,
        }
    }

    /// How many readers it has on a transport.
    pub(crate) fn readers_on(&self, transport: &TransportId) -> u32 {
        let state = self.lock();
        let roads = state.roads.iter().filter(|road| road.id == *transport);
        roads.map(|road| road.readers as u32).sum()
    }

    /// Sends to this reader too, from now on, and first what late joiners are owed. Answers the
    /// first sequence number that the road brings.
    pub(crate) fn connect(
        &self,
        transport: &Arc<dyn Transport>,
        ticket: &Ticket,
        reader: &Qos,
        value_type: Option<TypeId>,
    ) -> Result<u64> {
        self.open("connect")?;
        let mut state = self.lock();
        let state = &mut *state;
        let id = transport.id();
        let codec_type = self.codec.map(|codec| codec.value_type);
        let same_type = value_type.is_some() && value_type == codec_type;
        let typed = same_type && transport.capability().typed;
        let is_road = |road: &Road| road.id == id && road.typed == typed;
        let at = match state.roads.iter().position(is_road) {
            Some(at) => at,
            None => {
                let writer = transport.open_writer(&self.endpoint(), Arc::clone(&self.room))?;
                state.roads.push(Road { id: id.clone(), writer, typed, readers: 0 });
                state.roads.len() - 1
            }
        };
        let road = &mut state.roads[at];
        road.writer.connect(ticket)?;
        road.readers += 1;
        state.readers.insert(ticket.reader, (id, typed));
        let mut first = state.next_sequence;
        if reader.durability == Durability::TransientLocal {
            let wanted = match reader.history {
                History::KeepLast(depth) => depth as usize,
                History::KeepAll => usize::MAX,
            };
            let skip = state.history.len().saturating_sub(wanted);
            let road = &state.roads[at];
            for (envelope, payload) in state.history.iter().skip(skip) {
                let payload = self.as_the_road_takes_it(road, payload)?;
                let sent = road.writer.send_to(ticket.reader, envelope, &payload);
                if let Err(error) = sent {
                    state.counters.failed += 1;
                    tracing::warn!(topic = %self.topic, %error, "late joiner does not get all");
                    break;
                }
                first = first.min(envelope.sequence);
            }
        }
        Ok(first)
    }

    /// Sends to this reader no more.
    pub(crate) fn disconnect(&self, reader: Gid) {
        let mut state = self.lock();
        let Some((id, typed)) = state.readers.remove(&reader) else { return };
        let mut roads = state.roads.iter_mut();
        if let Some(road) = roads.find(|road| road.id == id && road.typed == typed) {
            road.writer.disconnect(reader);
            road.readers = road.readers.saturating_sub(1);
        }
    }

    /// When [`on_time`](Self::on_time) wants to be called, on the monotonic clock.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let last = self.last_sign_ns.load(Ordering::Relaxed);
        let state = self.lock();
        let deadline = self.qos.deadline.map(|it| after(last.max(state.deadline_from_ns), it));
        let lease = self.manual_lease().filter(|_| !state.lease_lost).map(|it| after(last, it));
        [deadline, lease].into_iter().flatten().min()
    }

    /// Looks whether a deadline or a lease has passed.
    pub(crate) fn on_time(&self, now_ns: u64) {
        let last = self.last_sign_ns.load(Ordering::Relaxed);
        let mut state = self.lock();
        if let Some(deadline) = self.qos.deadline {
            let from = last.max(state.deadline_from_ns);
            let missed = now_ns.saturating_sub(from) / nanos(deadline);
            if 0 < missed {
                state.deadline_from_ns = from + missed * nanos(deadline);
                state.deadline_missed += missed;
                let total = state.deadline_missed;
                self.events.push(PublisherEvent::DeadlineMissed { total });
            }
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

    fn manual_lease(&self) -> Option<Duration> {
        self.qos.liveliness_lease.filter(|_| self.qos.liveliness == Liveliness::ManualByTopic)
    }

    fn publish_when_there_is_room(
        &self,
        outgoing: &Outgoing<'_>,
        mut ready: Option<Bytes>,
        mono_ns: u64,
    ) -> Result<()> {
        let _one_at_a_time = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        let give_up_ns = after(clock::monotonic_ns(), self.max_blocking);
        let bell = self.host.bells().claim_bell()?;
        self.room.attach(&bell, 0);
        let result = loop {
            // Whatever rings from here on will be seen by the wait below.
            bell.drain(|_| ());
            let result = self.open("publish").and_then(|()| {
                let done = self.try_publish(&mut self.lock(), outgoing, &mut ready, mono_ns);
                done.map_err(|error| self.about(error))
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
        if result.is_err() {
            self.lock().counters.dropped += 1;
        }
        result
    }

    /// `ready` keeps the bytes over several tries, so that a sample is serialised once.
    fn try_publish(
        &self,
        state: &mut State,
        outgoing: &Outgoing<'_>,
        ready: &mut Option<Bytes>,
        mono_ns: u64,
    ) -> Result<(), tsuji_transport::Error> {
        let by_value = |road: &Road| road.typed && 0 < road.readers;
        let by_bytes = |road: &Road| !road.typed && 0 < road.readers;
        let needs_bytes = state.roads.iter().any(by_bytes);
        if needs_bytes && ready.is_none() {
            *ready = Some(self.bytes(state, outgoing)?);
        }
        let keeps = self.qos.durability == Durability::TransientLocal;
        let value = match outgoing {
            Outgoing::Shared(value) => Some(Payload::Typed(Arc::clone(value))),
            Outgoing::Bytes(bytes) => Some(Payload::Bytes(bytes.clone())),
            Outgoing::Borrowed(_) if needs_bytes => ready.clone().map(Payload::Bytes),
            Outgoing::Borrowed(value) if keeps || state.roads.iter().any(by_value) => {
                self.codec.map(|codec| Payload::Typed((codec.share)(*value)))
            }
            Outgoing::Borrowed(_) => None,
        };
        let envelope = Envelope {
            gid: self.gid,
            sequence: state.next_sequence,
            wall_ns: state.wall_ns(mono_ns),
            mono_ns,
            ..Envelope::default()
        };
        let bytes = ready.clone().map(Payload::Bytes);
        let len = ready.as_ref().map_or(0, |bytes| bytes.len());

        let active = state.roads.iter().filter(|road| 0 < road.readers).count();
        if 1 < active {
            self.reserve_on_all(state, len)?;
        }
        let (mut displaced, mut failed) = (0, 0);
        for road in state.roads.iter().filter(|road| 0 < road.readers) {
            let payload = if road.typed { value.as_ref() } else { bytes.as_ref() };
            let Some(payload) = payload else { continue };
            match road.writer.send(&envelope, payload) {
                Ok(sent) => displaced += u64::from(sent.displaced),
                Err(error) if active == 1 => return Err(error),
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
        self.last_sign_ns.store(mono_ns, Ordering::Relaxed);
        self.observe_size(state, outgoing, ready.as_ref());
        if keeps && let Some(payload) = bytes.or(value) {
            let depth = match self.qos.history {
                History::KeepLast(depth) => depth as usize,
                History::KeepAll => self.host.keep_all_max() as usize,
            };
            while depth <= state.history.len() {
                state.history.pop_front();
            }
            state.history.push_back((envelope, payload));
        }
        Ok(())
    }

    fn reserve_on_all(&self, state: &State, len: usize) -> Result<(), tsuji_transport::Error> {
        let active = || state.roads.iter().filter(|road| 0 < road.readers);
        for (at, road) in active().enumerate() {
            let len = if road.typed { 0 } else { len };
            if let Err(error) = road.writer.reserve(len) {
                active().take(at).for_each(|road| road.writer.cancel());
                return Err(error);
            }
        }
        Ok(())
    }

    fn bytes(
        &self,
        state: &State,
        outgoing: &Outgoing<'_>,
    ) -> Result<Bytes, tsuji_transport::Error> {
        let value: &dyn Any = match outgoing {
            Outgoing::Bytes(bytes) => return Ok(bytes.clone()),
            Outgoing::Shared(value) => &**value,
            Outgoing::Borrowed(value) => *value,
        };
        let refused = |why: String| {
            tsuji_transport::Error::new(TransportKind::Invalid, "serialise").about(why)
        };
        let codec = self.codec.ok_or_else(|| refused("a value without a type".to_owned()))?;
        let mut loan = self.lend(state, (codec.size)(value))?;
        let written =
            (codec.write)(value, &mut loan).map_err(|error| refused(error.to_string()))?;
        loan.truncate(written);
        Ok(loan.freeze())
    }

    fn lend(&self, state: &State, len: usize) -> Result<Loan, tsuji_transport::Error> {
        let mut roads = state.roads.iter().filter(|road| !road.typed && 0 < road.readers);
        match roads.next() {
            Some(road) => match road.writer.loan(len) {
                Err(error) if error.kind() == TransportKind::Unsupported => Ok(Loan::on_heap(len)),
                other => other,
            },
            None => Ok(Loan::on_heap(len)),
        }
    }

    fn as_the_road_takes_it(
        &self,
        road: &Road,
        payload: &Payload,
    ) -> Result<Payload, tsuji_transport::Error> {
        let (Payload::Typed(value), Some(codec)) = (payload, self.codec) else {
            return Ok(payload.clone());
        };
        if road.typed {
            return Ok(payload.clone());
        }
        let mut loan = road.writer.loan((codec.size)(&**value))?;
        let written = (codec.write)(&**value, &mut loan).map_err(|error| {
            tsuji_transport::Error::new(TransportKind::Invalid, "serialise").because(error)
        })?;
        loan.truncate(written);
        Ok(Payload::Bytes(loan.freeze()))
    }

    /// What is not serialised is measured now and then only.
    fn observe_size(&self, state: &mut State, outgoing: &Outgoing<'_>, ready: Option<&Bytes>) {
        if self.fixed_bytes.is_some() {
            return;
        }
        let bytes = match (ready, outgoing) {
            (Some(bytes), _) | (None, Outgoing::Bytes(bytes)) => bytes.len(),
            (None, _) if 16 < state.next_sequence && !state.next_sequence.is_multiple_of(16) => {
                return;
            }
            (None, Outgoing::Shared(value)) => self.codec.map_or(0, |it| (it.size)(&**value)),
            (None, Outgoing::Borrowed(value)) => self.codec.map_or(0, |it| (it.size)(*value)),
        };
        state.estimator.observe(bytes as u64);
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
            gid: self.gid,
            qos: self.qos,
            keep_all_max: self.host.keep_all_max(),
        }
    }

    fn open(&self, operation: &str) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed(format!("{operation} on {}: it was closed", self.topic)));
        }
        self.host.open(operation)
    }

    fn about(&self, error: tsuji_transport::Error) -> Error {
        let kind = Error::from(error);
        Error::new(kind.kind(), format!("publish on {}", self.topic)).because(kind)
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// The time `period` after `start_ns`.
pub(crate) fn after(start_ns: u64, period: Duration) -> u64 {
    start_ns.saturating_add(nanos(period))
}
