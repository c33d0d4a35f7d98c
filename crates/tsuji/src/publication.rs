//! What stands behind every publisher, whatever its type: the history, the sequence numbers and
//! the roads it sends on.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tsuji_core::{
    Durability, Estimate, History, Liveliness, Peer, Policy, Reliability, Scope, Size,
    SizeEstimator, SizeFacts, Traits,
};
use tsuji_msg::{CdrError, Message};
use tsuji_platform::clock;
use tsuji_ros::service::REQUEST_HEADER_BYTES;
use tsuji_transport::bell::Cell;
use tsuji_transport::{
    Bytes, Envelope, ErrorKind as TransportKind, Gid, HeapReserve, Loan, Payload,
};

use crate::endpoint::EndpointCore;
use crate::events::{Events, PublisherEvent};
use crate::mapping;
use crate::pacing::{DeadlineWatch, after};
use crate::{Error, ErrorKind, Result, Role};
use crossing::Crossing;
pub(crate) use roads::{Asking, Connected, Joining, PublicationNews, Reached, Trouble};
use roads::{ReaderOf, Road, RoadId};

mod crossing;
mod roads;

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
    /// The request gets this number and is about to go to these servers.
    fn open(&self, number: u64, servers: &mut dyn Iterator<Item = Gid>) -> Opened;

    /// It was not sent after all.
    fn unopen(&self, number: u64);
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Send,
    /// It goes to nobody, and keeps its number.
    Skip,
    Refuse,
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
    /// There is something in `State::news`.
    has_news: AtomicBool,
    /// Some of its readers are about to go over to another engine.
    is_changing_engine: AtomicBool,
    room: Arc<Cell>,
    /// Where no road has memory to lend.
    reserve: HeapReserve,
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
    /// Whether a road that somebody counts on does not carry any more.
    is_broken: bool,
    /// Whether one does not that is there for those who may come.
    has_idle_broken: bool,
    readers: HashMap<Gid, ReaderOf>,
    /// Roads that are to show that they carry, before these readers move over to them.
    trials: HashMap<Gid, RoadId>,
    /// Roads that these readers have left, and may not know of it yet.
    left: Vec<(Gid, RoadId)>,
    /// Readers that go over to the other engine of their wire together.
    crossing: Crossing,
    history: VecDeque<(Envelope, Payload)>,
    estimator: SizeEstimator,
    news: PublicationNews,
    /// Readers to which there was no road any more.
    given_up: u64,
    counters: PublisherCounters,
    /// When was looked last for roads that have run out of something.
    trouble_looked_ns: u64,
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

    /// The place of the road that lends memory, if one does.
    fn lender(&self) -> Option<usize> {
        self.in_use().iter().position(|road| !road.id.typed && !road.is_broken)
    }

    /// To be called when the readers of a road have changed.
    fn sort_roads(&mut self) {
        self.roads.sort_by_key(|road| (!road.is_in_use(), road.nearness));
        self.roads_in_use = self.roads.partition_point(Road::is_in_use);
        self.by_value = self.in_use().iter().any(|road| road.id.typed);
        self.by_bytes = self.in_use().iter().any(|road| !road.id.typed);
        self.is_broken = self.in_use().iter().any(|road| road.is_broken && 0 < road.readers);
        self.has_idle_broken = self.in_use().iter().any(|road| road.is_broken && road.readers == 0);
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

const WALL_FRESH_NS: u64 = 100_000_000;

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
            is_broken: false,
            has_idle_broken: false,
            readers: HashMap::new(),
            trials: HashMap::new(),
            left: Vec::new(),
            crossing: Crossing::default(),
            history: VecDeque::new(),
            estimator: SizeEstimator::new(core.host.policy().size_line_bytes()),
            news: PublicationNews::default(),
            given_up: 0,
            counters: PublisherCounters::default(),
            trouble_looked_ns: 0,
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
            has_news: AtomicBool::new(false),
            is_changing_engine: AtomicBool::new(false),
            reserve: HeapReserve::default(),
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
            Err(error) if is_refused_for_now(error.kind()) => {
                if self.qos.reliability == Reliability::BestEffort {
                    let mut state = self.lock();
                    state.counters.dropped += 1;
                    // Its number is missing where it does not come, and so it is counted as lost.
                    state.next_sequence += 1;
                    self.look_for_trouble(&mut state, mono_ns);
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
            Err(_) => self.note_refusal(),
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
        let sent = self.persist("send a request", patience, || {
            self.try_publish(&mut self.lock(), &mut attempt)
        });
        sent.inspect_err(|_| self.note_refusal())
    }

    /// Sends the reply to a request, to its client and, on most roads, to nobody else.
    pub(crate) fn reply(&self, asked: Asked, outgoing: &Outgoing<'_>) -> Result<()> {
        self.open("reply")?;
        let mut attempt = Attempt::new(outgoing, clock::monotonic_ns());
        let sent = self.persist("reply", self.spec.max_blocking, || {
            self.try_reply(&mut self.lock(), asked, &mut attempt)
        });
        sent.inspect_err(|_| self.note_refusal())
    }

    /// Does something, and where something reliable is refused for now, again as soon as it is not.
    fn persist<T>(
        &self,
        operation: &str,
        patience: Duration,
        mut attempt: impl FnMut() -> Result<T, tsuji_transport::Error>,
    ) -> Result<T> {
        match attempt() {
            Err(error)
                if is_refused_for_now(error.kind())
                    && self.qos.reliability == Reliability::Reliable =>
            {
                self.when_there_is_room(operation, patience, error, attempt)
            }
            done => done.map_err(|error| self.about(operation, error)),
        }
    }

    /// A sample was refused.
    fn note_refusal(&self) {
        let mut state = self.lock();
        state.counters.dropped += 1;
        self.look_for_trouble(&mut state, clock::monotonic_ns());
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
        let lent =
            self.persist("loan", self.spec.max_blocking, || self.try_lend(&mut self.lock(), len));
        lent.inspect_err(|_| self.look_for_trouble(&mut self.lock(), clock::monotonic_ns()))
    }

    pub(crate) fn counters(&self) -> PublisherCounters {
        // A forked child may find the lock held for ever.
        if self.host.is_current() { self.lock().counters } else { PublisherCounters::default() }
    }

    /// How many subscriptions are connected.
    pub(crate) fn readers(&self) -> usize {
        if self.host.is_current() { self.lock().readers.len() } else { 0 }
    }

    /// Whether all that was published has come to every reader, and none waits for another road.
    pub(crate) fn is_acknowledged(&self) -> Result<bool> {
        self.open("wait for acknowledgements")?;
        let state = self.lock();
        Ok(!state.is_broken && state.roads.iter().all(|road| road.writer.is_acknowledged()))
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
        state.trials.clear();
        state.left.clear();
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

    /// From now on samples of so many bytes and more are large.
    pub(crate) fn set_size_line(&self, line_bytes: u64) {
        self.lock().estimator.set_line(line_bytes);
    }

    /// When [`on_time`](Self::on_time) wants to be called, on the monotonic clock.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let last = self.last_sign_ns.load(Ordering::Relaxed);
        let state = self.lock();
        let deadline = state.deadline.due_ns(state.last_publish_ns);
        let lease = self.manual_lease().filter(|_| !state.lease_lost).map(|it| after(last, it));
        let idle = state.roads.iter().filter_map(Road::idle_until_ns).min();
        [deadline, lease, idle, state.crossing.due_ns()].into_iter().flatten().min()
    }

    /// Looks whether a deadline or a lease has passed, and which roads are not wanted any more.
    pub(crate) fn on_time(&self, now_ns: u64) {
        let last = self.last_sign_ns.load(Ordering::Relaxed);
        let mut state = self.lock();
        self.close_unwanted(&mut state, now_ns);
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
        let began_ns = clock::monotonic_ns();
        let give_up_ns = after(began_ns, patience);
        let Some(_turn) = self.turn(give_up_ns) else { return Err(self.about(operation, refused)) };
        let bell = match self.host.bells().claim_bell() {
            // Whoever cannot be woken cannot wait.
            Err(error) if error.kind() == TransportKind::Exhausted => {
                return Err(self.about(operation, refused.because(error)));
            }
            claimed => claimed?,
        };
        self.room.attach(&bell, 0);
        let given_up = self.lock().given_up;
        let result = loop {
            // Whatever rings from here on will be seen by the wait below.
            bell.drain(|_| ());
            let result = self.open(operation).and_then(|()| {
                let done = attempt();
                done.map_err(|error| self.about(operation, error))
            });
            let now_ns = clock::monotonic_ns();
            match result {
                // It went to nobody, and somebody was there when it was to go.
                Ok(_) if self.has_given_up_all_since(given_up) => {
                    let why = "there is no road to those who listened any more";
                    break Err(Error::closed(format!("{operation} on {}: {why}", self.topic)));
                }
                Err(error) if may_wait(error.kind()) && now_ns < give_up_ns => {
                    if began_ns + TROUBLE_LOOK_NS <= now_ns {
                        self.look_for_trouble(&mut self.lock(), now_ns);
                    }
                    let left_ns = (give_up_ns - now_ns).min(TROUBLE_LOOK_NS);
                    bell.wait(Some(Duration::from_nanos(left_ns)));
                }
                done => break done,
            }
        };
        self.room.detach();
        result
    }

    /// Whether readers were given up since so many had been, and none is left.
    fn has_given_up_all_since(&self, given_up: u64) -> bool {
        let state = self.lock();
        state.given_up != given_up && state.readers.is_empty()
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
        let is_held = state.is_broken || state.crossing.is_held();
        if is_held && self.qos.reliability == Reliability::Reliable {
            return Err(being_changed());
        }
        if state.has_idle_broken {
            self.try_idle_roads(state, *mono_ns);
        }
        if state.by_bytes && bytes.is_none() {
            let is_lender_at_fault = std::cell::Cell::new(false);
            let lend = |len| self.lend(state, len).inspect_err(|_| is_lender_at_fault.set(true));
            let made = self.bytes(outgoing, lend);
            *bytes = Some(Payload::Bytes(made.map_err(|error| {
                match state.lender().filter(|_| is_lender_at_fault.get()) {
                    Some(at) => self.blame(state, at, error),
                    None => error,
                }
            })?));
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

        if 1 < state.in_use().len()
            && let Err((at, error)) = reserve_on_all(state.in_use(), len.unwrap_or(0))
        {
            return Err(self.blame(state, at, error));
        }
        let roads = state.in_use();
        let opened = opening.map_or(Opened::Send, |opening| {
            opening.open(envelope.sequence, &mut state.readers.keys().copied())
        });
        if opened != Opened::Send {
            roads.iter().for_each(|road| road.writer.cancel());
            if opened == Opened::Refuse {
                return Err(tsuji_transport::Error::new(TransportKind::Closed, "send"));
            }
            state.next_sequence += 1;
            return Ok(());
        }
        let (mut displaced, mut failed) = (0, Vec::new());
        for (at, road) in roads.iter().enumerate().filter(|(_, road)| !road.is_broken) {
            let payload = if road.id.typed { value.as_ref() } else { bytes.as_ref() };
            let Some(payload) = payload else { continue };
            let sent = if road.is_mapped && road.relates {
                let related = Some((self.partner, 0));
                road.writer.send(&Envelope { related, ..envelope }, payload)
            } else if road.is_mapped {
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
                    return Err(self.blame(state, at, error));
                }
                Err(error) => failed.push((road.id.clone(), error, payload.clone())),
            }
        }
        let is_reliable = self.qos.reliability == Reliability::Reliable;
        for (id, error, payload) in failed {
            if is_fault(error.kind()) {
                let owed = is_reliable.then_some((envelope, payload));
                self.break_road(state, id, &error, owed);
            } else {
                tracing::warn!(topic = %self.topic, road = %id.transport, %error, "not sent");
            }
            state.counters.failed += 1;
        }

        state.next_sequence += 1;
        state.counters.published += 1;
        state.counters.displaced += displaced;
        self.end_lost_lease(state);
        if SILENCE_NS <= mono_ns.saturating_sub(state.last_publish_ns) {
            state.estimator.relearn();
            state.news.doubt = Some("the publisher has resumed");
            self.tell_news();
        }
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

    /// What comes of an error on the road at this place, by which nothing was sent: one that has failed is
    /// given up, and the sample waits for another.
    fn blame(
        &self,
        state: &mut State,
        at: usize,
        error: tsuji_transport::Error,
    ) -> tsuji_transport::Error {
        if !is_fault(error.kind()) || !self.host.is_current() {
            return error;
        }
        let road = &state.in_use()[at];
        let road = road.id.clone();
        self.break_road(state, road, &error, None);
        being_changed().because(error)
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
        let is_road = |road: &&Road| road.id == entry.road;
        let road = state.roads.iter().find(is_road).ok_or_else(gone)?.clone();
        if road.is_broken {
            return Err(being_changed());
        }
        let (reader, id) = (*reader, entry.road.clone());
        let sequence = if road.is_mapped { road.next } else { entry.next };
        if road.id.typed {
            attempt.value = match attempt.outgoing {
                Outgoing::Shared(value) => Some(Payload::Typed(Arc::clone(value))),
                Outgoing::Borrowed(value) if attempt.value.is_none() => {
                    self.spec.codec.map(|codec| Payload::Typed((codec.share)(*value)))
                }
                _ => attempt.value.take(),
            };
        } else if attempt.bytes.is_none() {
            let bytes = self.bytes(attempt.outgoing, |len| road.lend(len, &self.reserve))?;
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
        let payload = if road.id.typed { &attempt.value } else { &attempt.bytes };
        let payload = payload.as_ref().ok_or_else(gone)?;
        let sent = if road.is_mapped && road.relates {
            road.writer.send(&envelope, payload)
        } else if road.is_mapped {
            let (client, number) = asked.number;
            // The request may have come by a road on which its client has its whole name.
            let number = match client == asked.client {
                true => mapping::related(mapping::client_number(client), number),
                false => asked.number,
            };
            road.writer.send(&envelope, &mapped(number, payload)?)
        } else {
            road.writer.send_to(reader, &envelope, payload)
        };
        if let Err(error) = sent {
            // Where it goes to one reader, Closed says that this one has left.
            if error.kind() != TransportKind::Unexpected {
                return Err(error);
            }
            self.break_road(state, id, &error, None);
            return Err(being_changed().because(error));
        }
        if road.is_mapped {
            let mut roads = state.roads.iter_mut();
            if let Some(road) = roads.find(|road| road.id == id) {
                road.next = sequence + 1;
            }
        } else {
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

    /// As [`lend`](Self::lend), but a road that has failed is given up, and the memory waits for another.
    fn try_lend(&self, state: &mut State, len: usize) -> Result<Loan, tsuji_transport::Error> {
        if state.is_broken && self.qos.reliability == Reliability::Reliable {
            return Err(being_changed());
        }
        self.lend(state, len).map_err(|error| match state.lender() {
            Some(at) => self.blame(state, at, error),
            None => error,
        })
    }

    fn lend(&self, state: &State, len: usize) -> Result<Loan, tsuji_transport::Error> {
        match state.lender() {
            Some(at) => state.in_use()[at].lend(len, &self.reserve),
            None => Ok(self.reserve.loan(len)),
        }
    }

    fn as_the_road_takes_it(
        &self,
        road: &Road,
        payload: &Payload,
    ) -> Result<Payload, tsuji_transport::Error> {
        match payload {
            Payload::Typed(value) if !road.id.typed => {
                self.serialise(&**value, |len| road.lend(len, &self.reserve)).map(Payload::Bytes)
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
        let before = state.estimator.class();
        state.estimator.observe(bytes as u64);
        if before != state.estimator.class() {
            state.news.doubt = Some("the samples are of another size");
            self.tell_news();
        }
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
fn reserve_on_all(roads: &[Road], len: usize) -> Result<(), (usize, tsuji_transport::Error)> {
    for (at, road) in roads.iter().enumerate().filter(|(_, road)| !road.is_broken) {
        let header = if road.is_mapped && !road.relates { REQUEST_HEADER_BYTES } else { 0 };
        let len = if road.id.typed { 0 } else { len + header };
        if let Err(error) = road.writer.reserve(len) {
            roads[..at].iter().for_each(|road| road.writer.cancel());
            return Err((at, error));
        }
    }
    Ok(())
}

/// Whether the road itself does not carry any more.
fn is_fault(kind: TransportKind) -> bool {
    matches!(kind, TransportKind::Closed | TransportKind::Unexpected)
}

/// Whether it may go later, or by another road.
fn is_refused_for_now(kind: TransportKind) -> bool {
    matches!(kind, TransportKind::Busy | TransportKind::Exhausted)
}

fn may_wait(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::Exhausted)
}

fn being_changed() -> tsuji_transport::Error {
    tsuji_transport::Error::new(TransportKind::Busy, "send").about("its road is being changed")
}

/// How long a sample finds no room until it is asked whether the road has run out of something, and how
/// often at most that is asked.
const TROUBLE_LOOK_NS: u64 = 20_000_000;
/// So long a silence, and what is sent after it may be of another size.
const SILENCE_NS: u64 = 10_000_000_000;

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
