//! What stands behind every publisher, whatever its type: the history, the sequence numbers and
//! the links it sends on.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tsuji_core::{
    Durability, Estimate, History, Liveliness, Peer, Policy, Reliability, Scope, Size,
    SizeEstimator, SizeFacts, Traits,
};
use tsuji_msg::{CdrError, Message};
use tsuji_platform::clock;
use tsuji_platform::ordered::{Condvar, Mutex};
use tsuji_ros::service::REQUEST_HEADER_BYTES;
use tsuji_transport::bell::Cell;
use tsuji_transport::deferred::{self, Locked, told};
use tsuji_transport::{
    Bytes, Envelope, ErrorKind as TransportKind, Gid, HeapReserve, Loan, Payload,
};

use crate::content_filter::{self, ValuePasses};
use crate::endpoint::EndpointCore;
use crate::events::{Events, PublisherEvent};
use crate::mapping;
use crate::pacing::{Backoff, DeadlineWatch, after};
use crate::{Error, ErrorKind, Result, Role};
pub(crate) use attempt::Outgoing;
use attempt::{Attempt, Needs, Step};
use engine_handover::EngineHandover;
use history::Kept;
pub(crate) use history::SAMPLES_MAX as HISTORY_SAMPLES_MAX;
pub(crate) use links::{Asking, Joining, PublisherChange, Reached};
use links::{Link, LinkId, ReaderOf};
use outside::Outside;
use reader_filters::ReaderFilters;

mod attempt;
mod engine_handover;
mod history;
mod links;
mod outside;
mod reader_filters;

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
    /// Whether a value passes a content filter.
    pub(crate) passes: ValuePasses,
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
            passes: content_filter::value_passes::<M>,
        }
    }
}

/// Whoever waits for the answer to a request. Called with the publisher core's lock held.
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

/// Whoever must know that a reader is there no more. Called with the graph's lock held.
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
    /// Samples given up: best effort that found no room, or reliable ones answered with an error; of a topic whose export has a rate, also
    /// what found no room on its way out, whatever the answer.
    pub dropped: u64,
    /// Older samples that these, or what a late joiner was owed, pushed out of full subscriptions. What a
    /// subscription of tsuji displaces only after it was sent, as by an engine, is known up to 0.1 s later, and
    /// of foreign ROS 2 nodes never.
    pub displaced: u64,
    /// Older samples that these pushed out of a full history which keeps all, so that nobody who joins
    /// later gets them. Best effort only: where it is reliable, publish answers Busy.
    pub history_displaced: u64,
    /// Samples that did not leave the host or the robot, as the export of the topic has a rate.
    pub held_back: u64,
    /// Sends that a link failed at, the other links notwithstanding; and of what a late joiner was owed
    /// each sample that it does not get.
    pub failed: u64,
}

pub(crate) struct PublisherCore {
    core: EndpointCore,
    pub(crate) events: Events<PublisherEvent>,
    spec: PublisherSpec,
    /// Somebody in this process wants values by reference.
    has_readers_by_value: AtomicBool,
    /// There is something in `State::news`.
    has_news: AtomicBool,
    /// Some of its readers are about to go over to another engine.
    is_changing_engine: AtomicBool,
    room: Arc<Cell>,
    /// Where no link has memory to lend.
    reserve: HeapReserve,
    /// Whether somebody sleeps on the room cell, which one at a time does.
    is_room_awaited: Mutex<bool>,
    room_is_yours: Condvar,
    last_sign_ns: AtomicU64,
    parting: OnceLock<Weak<dyn Parting>>,
    /// What those outside hear, where that is less.
    outside: Option<Box<Outside>>,
    /// Of such a one, the publisher that those inside meet.
    inside: OnceLock<Weak<Self>>,
    state: Mutex<State>,
}

impl Deref for PublisherCore {
    type Target = EndpointCore;

    fn deref(&self) -> &EndpointCore {
        &self.core
    }
}

struct State {
    next_sequence: u64,
    /// Those with readers come first, and of them the nearest: it lends the memory, and its readers need
    /// not wait for what the others take.
    links: Vec<Link>,
    links_in_use: usize,
    /// Whether a link in use takes values, and whether one takes bytes.
    by_value: bool,
    by_bytes: bool,
    /// Whether a link that somebody counts on does not carry any more.
    is_broken: bool,
    /// Whether one does not that is there for those who may come.
    has_idle_broken: bool,
    readers: HashMap<Gid, ReaderOf>,
    filters: ReaderFilters,
    /// Links that are to show that they carry, before these readers move over to them.
    trials: HashMap<Gid, LinkId>,
    /// Links that these readers have left, and may not know of it yet.
    left: Vec<(Gid, LinkId)>,
    /// Readers that go over to the other engine of their wire together.
    engine_handover: EngineHandover,
    history: history::History,
    /// A late joiner has not got yet all that it is owed.
    is_catching_up: bool,
    /// When it is looked at again.
    owed_again: Backoff,
    estimator: SizeEstimator,
    news: PublisherChange,
    /// Readers to which there was no link any more.
    given_up: u64,
    counters: PublisherCounters,
    /// When was looked last for links that have run out of something.
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
    /// The links that have readers.
    fn in_use(&self) -> &[Link] {
        &self.links[..self.links_in_use]
    }

    /// The place of the link that lends memory, if one does.
    fn lender(&self) -> Option<usize> {
        self.in_use().iter().position(|link| !link.id.typed && !link.is_broken)
    }

    /// Closes links, when no lock is held: an engine's may take long, and what is owed on one is the user's.
    fn drop_links(&mut self, is_meant: impl FnMut(&mut Link) -> bool) {
        let dropped: Vec<Link> = self.links.extract_if(.., is_meant).collect();
        deferred::drop_later(dropped);
    }

    /// To be called when the readers of a link have changed.
    fn sort_links(&mut self) {
        self.links.sort_by_key(|link| (!link.is_in_use(), link.nearness));
        self.links_in_use = self.links.partition_point(Link::is_in_use);
        self.by_value = self.in_use().iter().any(|link| link.id.typed);
        self.by_bytes = self.in_use().iter().any(|link| !link.id.typed);
        self.is_broken = self.in_use().iter().any(|link| link.is_broken && 0 < link.readers);
        self.has_idle_broken = self.in_use().iter().any(|link| link.is_broken && link.readers == 0);
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
    far: OtherEnd,
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
pub(crate) struct OtherEnd {
    pub(crate) scope: Scope,
    pub(crate) peer: Peer,
}

impl OtherEnd {
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

/// What a publisher core needs besides what every endpoint has.
#[derive(Clone, Copy)]
pub(crate) struct PublisherSpec {
    pub(crate) codec: Option<Codec>,
    pub(crate) fixed_bytes: Option<u64>,
    pub(crate) expected_bytes: Option<u64>,
    pub(crate) max_blocking: Duration,
}

/// How long a publish waits for room where nobody says.
pub(crate) const MAX_BLOCKING_DEFAULT: Duration = Duration::from_millis(100);

impl Default for PublisherSpec {
    fn default() -> Self {
        let max_blocking = MAX_BLOCKING_DEFAULT;
        Self { codec: None, fixed_bytes: None, expected_bytes: None, max_blocking }
    }
}

impl PublisherSpec {
    /// For values of type `M`.
    pub(crate) fn of<M: Message>() -> Self {
        let fixed_bytes = M::FIXED_SIZE.map(|bytes| bytes as u64);
        Self { codec: Some(Codec::of::<M>()), fixed_bytes, ..Self::default() }
    }
}

impl PublisherCore {
    pub(crate) fn new(core: EndpointCore, spec: PublisherSpec) -> Result<Self> {
        core.permit(true)?;
        let now = clock::monotonic_ns();
        let state = State {
            next_sequence: 1,
            links: Vec::new(),
            links_in_use: 0,
            by_value: false,
            by_bytes: false,
            is_broken: false,
            has_idle_broken: false,
            readers: HashMap::new(),
            filters: ReaderFilters::default(),
            trials: HashMap::new(),
            left: Vec::new(),
            engine_handover: EngineHandover::default(),
            history: history::History::default(),
            is_catching_up: false,
            owed_again: Backoff::new(OWED_AGAIN, OWED_AGAIN_MAX),
            estimator: SizeEstimator::new(core.session.policy().size_line_bytes()),
            news: PublisherChange::default(),
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
            room: Arc::new(core.session.bells().claim_cell()?),
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
            outside: None,
            inside: OnceLock::new(),
            state: Mutex::new(state),
        })
    }

    /// Sends one sample to everybody who listens, or to nobody and answers why. From those outside it may be held back.
    pub(crate) fn publish(&self, outgoing: &Outgoing<'_>) -> Result<()> {
        self.publish_to_own(outgoing)?;
        if let Some(outside) = &self.outside {
            outside.publish(outgoing);
        }
        Ok(())
    }

    fn publish_to_own(&self, outgoing: &Outgoing<'_>) -> Result<()> {
        let mono_ns = clock::monotonic_ns();
        self.open("publish")?;
        let last_sign_ns = self.last_sign_ns.load(Ordering::Relaxed);
        let mut attempt = Attempt::new(outgoing, mono_ns);
        let tried = self.work(&mut attempt, |state, attempt| self.try_publish(state, attempt));
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
                    self.work(&mut attempt, |state, attempt| self.try_publish(state, attempt))
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
            self.work(&mut attempt, |state, attempt| self.try_publish(state, attempt))
        });
        sent.inspect_err(|_| self.note_refusal())
    }

    /// Sends the reply to a request, to its client and, on most links, to nobody else.
    pub(crate) fn reply(&self, asked: Asked, outgoing: &Outgoing<'_>) -> Result<()> {
        self.open("reply")?;
        let mut attempt = Attempt::new(outgoing, clock::monotonic_ns());
        let sent = self.persist("reply", self.spec.max_blocking, || {
            self.work(&mut attempt, |state, attempt| self.try_reply(state, asked, attempt))
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

    /// Whether this client has been sent a reply, or is gone.
    pub(crate) fn has_answered(&self, client: Gid) -> bool {
        let state = self.lock();
        state.readers.values().find(|it| it.partner == client).is_none_or(|it| it.answered != 0)
    }

    /// Lends memory of the link that will carry the sample, or of the heap when there is none.
    pub(crate) fn loan(&self, len: usize) -> Result<Loan> {
        self.open("loan")?;
        let lent =
            self.persist("loan", self.spec.max_blocking, || self.try_lend(&mut self.lock(), len));
        lent.inspect_err(|_| self.look_for_trouble(&mut self.lock(), clock::monotonic_ns()))
    }

    pub(crate) fn counters(&self) -> PublisherCounters {
        // A forked child may find the lock held for ever.
        if !self.session.is_current() {
            return PublisherCounters::default();
        }
        let mut counters = self.lock().counters;
        self.outside.iter().for_each(|it| it.add_to(&mut counters));
        counters
    }

    /// How many subscriptions are connected.
    pub(crate) fn readers(&self) -> usize {
        if !self.session.is_current() {
            return 0;
        }
        self.both().map(|it| it.lock().readers.len()).sum()
    }

    /// Tells how many subscriptions are connected, where that has changed.
    pub(crate) fn tell_matched(&self) {
        self.session.graph_changed();
        self.events.push(PublisherEvent::Matched { current: self.readers() });
    }

    /// Whether all that was published has come to every reader, and none waits for another link.
    pub(crate) fn is_acknowledged(&self) -> Result<bool> {
        self.open("wait for acknowledgements")?;
        Ok(self.both().all(Self::is_own_acknowledged))
    }

    fn is_own_acknowledged(&self) -> bool {
        let mut state = self.lock();
        self.send_all_owed(&mut state);
        let is_under_way = state.is_broken || state.is_catching_up;
        !is_under_way && state.links.iter().all(|link| link.writer.is_acknowledged())
    }

    /// Whether a value is better shared than looked at.
    pub(crate) fn has_readers_by_value(&self) -> bool {
        self.has_readers_by_value.load(Ordering::Relaxed)
            || self.qos.durability == Durability::TransientLocal
    }

    /// Shows all subscriptions that the publisher is alive.
    pub(crate) fn assert_liveliness(&self) {
        let mut state = self.lock();
        self.last_sign_ns.store(clock::monotonic_ns(), Ordering::Relaxed);
        self.end_lost_lease(&mut state);
        if self.qos.liveliness == Liveliness::ManualByTopic {
            state.links.iter().for_each(|link| link.writer.assert_liveliness());
        }
        drop(state);
        self.session.graph_cache().assert_alive(self.gid);
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
        let links = std::mem::take(&mut state.links);
        state.sort_links();
        let history = std::mem::take(&mut state.history);
        deferred::drop_later((links, history));
    }

    /// What is known of a flow to a subscription of this scope and reliability.
    pub(crate) fn traits(
        &self,
        far: OtherEnd,
        reliability: Reliability,
        policy: &Policy,
    ) -> Traits {
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
        let state = self.lock_without_marking();
        let deadline = state.deadline.due_ns(state.last_publish_ns);
        let lease = self.manual_lease().filter(|_| !state.lease_lost).map(|it| after(last, it));
        let idle = state.links.iter().filter_map(Link::idle_until_ns).min();
        let owed = state.owed_again.due_ns().filter(|_| state.is_catching_up);
        [deadline, lease, idle, owed, state.engine_handover.due_ns()].into_iter().flatten().min()
    }

    /// Looks whether a deadline or a lease has passed, and which links are not wanted any more.
    pub(crate) fn on_time(&self, now_ns: u64) {
        let last = self.last_sign_ns.load(Ordering::Relaxed);
        let mut state = self.lock();
        self.close_unwanted(&mut state, now_ns);
        if state.owed_again.is_due(now_ns) {
            state.owed_again.tried();
            self.send_all_owed(&mut state);
            if state.is_catching_up {
                state.owed_again.later(clock::monotonic_ns());
            }
        }
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
            self.session.waker.give();
        }
    }

    /// Tells the subscriptions that it is alive again, if they may have seen the lease that began
    /// at `last_sign_ns` pass. The clock is read when the sample has arrived: whoever looks later
    /// than that sees the sample itself.
    fn tell_if_back(&self, last_sign_ns: u64) {
        let Some(lease) = self.manual_lease() else { return };
        if after(last_sign_ns, lease) <= clock::monotonic_ns() {
            self.session.graph_cache().assert_alive(self.gid);
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
        let bell = match self.session.bells().claim_bell() {
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
                    let why = "there is no link to those who listened any more";
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
        self.room.detach_from(&bell);
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

    /// Takes a step until it is done. What it needs of the user's value is asked while no lock is held.
    fn work<T>(
        &self,
        attempt: &mut Attempt<'_>,
        mut step: impl FnMut(&mut State, &mut Attempt<'_>) -> Result<Step<T>, tsuji_transport::Error>,
    ) -> Result<T, tsuji_transport::Error> {
        let fixed_bytes = || self.spec.fixed_bytes.and_then(|it| usize::try_from(it).ok());
        attempt.len = attempt.len.or_else(fixed_bytes);
        loop {
            let taken = step(&mut self.lock(), attempt)?;
            match taken {
                Step::Done(done) => return Ok(done),
                Step::Needs(needs) => self.ask_value(needs, attempt)?,
            }
        }
    }

    fn ask_value(
        &self,
        needs: Needs,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), tsuji_transport::Error> {
        let refused = || tsuji_transport::Error::new(TransportKind::Invalid, "serialise");
        let asked = self.spec.codec.zip(attempt.value());
        let (codec, value) = asked.ok_or_else(|| refused().about("a value without a type"))?;
        match needs {
            Needs::Size => attempt.len = Some((codec.size)(value)),
            Needs::Filtering => attempt.filtered = Some(self.ask_filters(value)),
            Needs::Shared => attempt.value = Some(Payload::Typed((codec.share)(value))),
            Needs::Bytes => {
                let mut loan = attempt.loan.take().ok_or_else(|| refused().about("no memory"))?;
                let value = attempt.value().unwrap_or(&());
                let written = (codec.write)(value, &mut loan);
                loan.truncate(written.map_err(|error| refused().because(error))?);
                attempt.bytes = Some(Payload::Bytes(loan.freeze()));
            }
        }
        Ok(())
    }

    /// Whether the value is to be measured because nothing else tells how large the samples are.
    fn is_to_be_measured(&self, state: &State, attempt: &Attempt<'_>) -> bool {
        let is_due = state.next_sequence <= 16 || state.next_sequence.is_multiple_of(16);
        let is_unknown = self.spec.fixed_bytes.is_none() && attempt.len.is_none();
        is_due && is_unknown && self.spec.codec.is_some() && attempt.value().is_some()
    }

    fn try_publish(
        &self,
        state: &mut State,
        attempt: &mut Attempt<'_>,
    ) -> Result<Step<()>, tsuji_transport::Error> {
        let is_held = state.is_broken || state.engine_handover.is_held();
        let is_reliable = self.qos.reliability == Reliability::Reliable;
        if is_held && is_reliable {
            return Err(being_changed());
        }
        if state.has_idle_broken {
            self.try_idle_links(state, attempt.mono_ns);
        }
        self.send_all_owed(state);
        if state.is_catching_up && is_reliable {
            return Err(owing());
        }
        if self.is_to_be_measured(state, attempt) {
            return Ok(Step::Needs(Needs::Size));
        }
        let keeps = self.keeps();
        if state.by_bytes || keeps {
            let is_lender_at_fault = std::cell::Cell::new(false);
            let lend = |len| self.lend(state, len).inspect_err(|_| is_lender_at_fault.set(true));
            match attempt.find_bytes(lend) {
                Ok(None) => (),
                Ok(Some(needs)) => return Ok(Step::Needs(needs)),
                Err(error) => {
                    return Err(match state.lender().filter(|_| is_lender_at_fault.get()) {
                        Some(at) => self.blame(state, at, error),
                        None => error,
                    });
                }
            }
        }
        // Elsewhere nobody is sent to by himself.
        let filtered = match state.in_use().iter().any(|link| link.is_directed) {
            true => state.filters.filter(attempt, &state.trials),
            false => Some(Vec::new()),
        };
        let Some(filtered) = filtered else { return Ok(Step::Needs(Needs::Filtering)) };
        let Attempt { outgoing, mono_ns, len: value_len, bytes, value, outlived, opening, .. } =
            attempt;
        if state.by_value && value.is_none() {
            *value = match outgoing {
                Outgoing::Shared(value) => Some(Payload::Typed(Arc::clone(value))),
                Outgoing::Bytes(bytes) => Some(Payload::Bytes(bytes.clone())),
                Outgoing::Copied(message) => Some(match bytes {
                    Some(bytes) => bytes.clone(),
                    None => Payload::Bytes(Bytes::copy_from(message)),
                }),
                Outgoing::Borrowed(_) if state.by_bytes => bytes.clone(),
                Outgoing::Borrowed(_) if self.spec.codec.is_none() => None,
                Outgoing::Borrowed(_) => return Ok(Step::Needs(Needs::Shared)),
            };
        }
        if keeps && is_reliable {
            let len = bytes.as_ref().and_then(Payload::byte_len).unwrap_or(0);
            self.make_room(state, len, outlived)?;
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
        let links = state.in_use();
        let opened = opening.map_or(Opened::Send, |opening| {
            opening.open(envelope.sequence, &mut state.readers.keys().copied())
        });
        if opened != Opened::Send {
            links.iter().for_each(|link| link.writer.cancel());
            if opened == Opened::Refuse {
                return Err(tsuji_transport::Error::new(TransportKind::Closed, "send"));
            }
            state.next_sequence += 1;
            return Ok(Step::Done(()));
        }
        let (mut displaced, mut failed) = (0, Vec::new());
        // Whoever is on this host does not wait for what goes by the wire.
        let which = |is_directed| {
            let links = links.iter().enumerate();
            links.filter(move |(_, link)| link.is_directed == is_directed && !link.is_broken)
        };
        for (at, link) in which(true).chain(which(false)) {
            let payload = if link.id.typed { value.as_ref() } else { bytes.as_ref() };
            let Some(payload) = payload else { continue };
            let sent = if link.is_mapped {
                let number = mapping::related(mapping::client_number(self.gid), envelope.sequence);
                let related = Some((self.partner, 0));
                link.send_mapped(&Envelope { related, ..envelope }, number, payload)
            } else if link.is_directed && !filtered.is_empty() {
                link.writer.send_except(&filtered, &envelope, payload)
            } else {
                link.writer.send(&envelope, payload)
            };
            match sent {
                Ok(sent) => displaced += u64::from(sent.displaced),
                Err(error) if links.len() == 1 => {
                    if let Some(opening) = opening {
                        opening.unopen(envelope.sequence);
                    }
                    return Err(self.blame(state, at, error));
                }
                // Bytes go by any other link, a value only by one that takes values.
                Err(error) => {
                    let payload = bytes.as_ref().unwrap_or(payload).clone();
                    failed.push((link.id.clone(), error, payload));
                }
            }
        }
        for (id, error, payload) in failed {
            if is_fault(error.kind()) {
                let owed = is_reliable.then_some((envelope, payload));
                self.break_link(state, id, &error, owed);
            } else {
                told::warn!(topic = %self.topic, link = %id.transport, %error, "not sent");
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
        self.observe_size(state, outgoing, len.or(*value_len));
        if keeps {
            let shared = match outgoing {
                Outgoing::Shared(value) => Some(Payload::Typed(Arc::clone(value))),
                _ => value.take().filter(|it| matches!(it, Payload::Typed(_))),
            };
            let kept = Kept::new(envelope, bytes.take().map(|it| self.to_keep(state, it)), shared);
            let gone = state.history.push(&self.qos, kept);
            if self.qos.history == History::KeepAll {
                state.counters.history_displaced += gone.len() as u64;
            }
            outlived.extend(gone);
        }
        Ok(Step::Done(()))
    }

    /// Makes sure that a history which keeps all can keep one more sample of so many bytes.
    fn make_room(
        &self,
        state: &mut State,
        len: usize,
        outlived: &mut Vec<Kept>,
    ) -> Result<(), tsuji_transport::Error> {
        if state.history.has_room(&self.qos, len) {
            return Ok(());
        }
        if let Some(lifespan) = self.qos.lifespan {
            let lifespan_ns = i64::try_from(lifespan.as_nanos()).unwrap_or(i64::MAX);
            outlived.extend(state.history.expire(clock::wall_ns().saturating_sub(lifespan_ns)));
        }
        if state.history.has_room(&self.qos, len) {
            return Ok(());
        }
        Err(tsuji_transport::Error::new(TransportKind::Busy, "send").about(format!(
            "the history keeps all for late joiners and is full: {} samples; allowed: {} samples and {} MiB; \
             use keep last, a lifespan, or volatile durability",
            state.history.len(),
            history::SAMPLES_MAX,
            history::BYTES_MAX >> 20
        )))
    }

    /// Bytes as the history keeps them. A transport's memory is for samples on their way: what keeps all
    /// has memory of its own.
    fn to_keep(&self, state: &State, payload: Payload) -> Payload {
        let is_lent = self.qos.history == History::KeepAll && state.lender().is_some();
        match payload {
            Payload::Bytes(bytes) if is_lent => Payload::Bytes(Bytes::copy_from(&bytes)),
            payload => payload,
        }
    }

    /// What comes of an error on the link at this place, by which nothing was sent: one that has failed is
    /// given up, and the sample waits for another.
    fn blame(
        &self,
        state: &mut State,
        at: usize,
        error: tsuji_transport::Error,
    ) -> tsuji_transport::Error {
        if !is_fault(error.kind()) || !self.session.is_current() {
            return error;
        }
        let link = &state.in_use()[at];
        let link = link.id.clone();
        self.break_link(state, link, &error, None);
        being_changed().because(error)
    }

    /// Sends one reply on the link of its client.
    fn try_reply(
        &self,
        state: &mut State,
        asked: Asked,
        attempt: &mut Attempt<'_>,
    ) -> Result<Step<()>, tsuji_transport::Error> {
        let gone = || {
            tsuji_transport::Error::new(TransportKind::Closed, "send").about("the client has left")
        };
        let found = state.readers.iter().find(|(_, it)| it.partner == asked.client);
        let (reader, entry) = found.ok_or_else(gone)?;
        let is_link = |link: &&Link| link.id == entry.link;
        let link = state.links.iter().find(is_link).ok_or_else(gone)?.clone();
        if link.is_broken {
            return Err(being_changed());
        }
        let (reader, id) = (*reader, entry.link.clone());
        let sequence = if link.is_mapped { link.next } else { entry.next };
        if self.is_to_be_measured(state, attempt) {
            return Ok(Step::Needs(Needs::Size));
        }
        if !link.id.typed {
            if let Some(needs) = attempt.find_bytes(|len| link.lend(len, &self.reserve))? {
                return Ok(Step::Needs(needs));
            }
        } else if attempt.value.is_none() {
            match attempt.outgoing {
                Outgoing::Shared(value) => attempt.value = Some(Payload::Typed(Arc::clone(value))),
                Outgoing::Borrowed(_) => return Ok(Step::Needs(Needs::Shared)),
                Outgoing::Bytes(_) | Outgoing::Copied(_) => (),
            }
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
        let payload = if link.id.typed { &attempt.value } else { &attempt.bytes };
        let payload = payload.as_ref().ok_or_else(gone)?;
        let sent = if link.is_mapped {
            let (client, number) = asked.number;
            // The request may have come by a link on which its client has its whole name.
            let number = match client == asked.client {
                true => mapping::related(mapping::client_number(client), number),
                false => asked.number,
            };
            link.send_mapped(&envelope, number, payload)
        } else {
            link.writer.send_to(reader, &envelope, payload)
        };
        if let Err(error) = sent {
            // Where it goes to one reader, Closed says that this one has left.
            if error.kind() != TransportKind::Unexpected {
                return Err(error);
            }
            self.break_link(state, id, &error, None);
            return Err(being_changed().because(error));
        }
        if link.is_mapped {
            let mut links = state.links.iter_mut();
            if let Some(link) = links.find(|link| link.id == id) {
                link.next = sequence + 1;
            }
        }
        // A client that comes back, maybe by a link that was opened anew, is sent numbers that it has not seen.
        state.next_sequence = state.next_sequence.max(sequence + 1);
        if let Some(entry) = state.readers.get_mut(&reader) {
            entry.next = sequence + 1;
            entry.answered += 1;
        }
        state.counters.published += 1;
        state.last_publish_ns = mono_ns;
        self.last_sign_ns.store(mono_ns, Ordering::Relaxed);
        let len = attempt.bytes.as_ref().and_then(Payload::byte_len).or(attempt.len);
        self.observe_size(state, attempt.outgoing, len);
        Ok(Step::Done(()))
    }

    /// As [`lend`](Self::lend), but a link that has failed is given up, and the memory waits for another.
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

    /// What is not serialised is measured now and then only.
    fn observe_size(&self, state: &mut State, outgoing: &Outgoing<'_>, len: Option<usize>) {
        if self.spec.fixed_bytes.is_some() {
            return;
        }
        let bytes = match (len, outgoing) {
            (Some(len), _) => len,
            (None, Outgoing::Bytes(bytes)) => bytes.len(),
            (None, Outgoing::Copied(message)) => message.len(),
            (None, Outgoing::Shared(_) | Outgoing::Borrowed(_)) => return,
        };
        let before = state.estimator.class();
        state.estimator.observe(bytes as u64);
        if before != state.estimator.class() {
            state.news.doubt = Some("the samples are of another size");
            self.tell_news();
        }
    }

    fn about(&self, operation: &str, error: tsuji_transport::Error) -> Error {
        let kind = Error::from(error);
        Error::new(kind.kind(), format!("{operation} on {}", self.topic)).because(kind)
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> Locked<'_, State> {
        let state = self.lock_without_marking();
        self.mark_dirty();
        state
    }

    /// For the control thread, whose checks change nothing that it would have to check.
    fn lock_without_marking(&self) -> Locked<'_, State> {
        deferred::lock(&self.state)
    }
}

/// Who waits for room. Ends by letting the next one wait.
struct Turn<'a>(&'a PublisherCore);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.is_room_awaited.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.room_is_yours.notify_one();
    }
}

/// Reserves room for the next sample on all links, or on none.
fn reserve_on_all(links: &[Link], len: usize) -> Result<(), (usize, tsuji_transport::Error)> {
    for (at, link) in links.iter().enumerate().filter(|(_, link)| !link.is_broken) {
        let header = if link.is_headed() { REQUEST_HEADER_BYTES } else { 0 };
        let len = if link.id.typed { 0 } else { len + header };
        if let Err(error) = link.writer.reserve(len) {
            links[..at].iter().for_each(|link| link.writer.cancel());
            return Err((at, error));
        }
    }
    Ok(())
}

/// Whether the link itself does not carry any more.
fn is_fault(kind: TransportKind) -> bool {
    matches!(kind, TransportKind::Closed | TransportKind::Unexpected)
}

/// Whether it may go later, or by another link.
fn is_refused_for_now(kind: TransportKind) -> bool {
    matches!(kind, TransportKind::Busy | TransportKind::Exhausted)
}

fn may_wait(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::Exhausted)
}

fn being_changed() -> tsuji_transport::Error {
    tsuji_transport::Error::new(TransportKind::Busy, "send").about("its link is being changed")
}

fn owing() -> tsuji_transport::Error {
    let error = tsuji_transport::Error::new(TransportKind::Busy, "send");
    error.about("a late joiner that keeps all has not taken yet what it is owed")
}

/// How soon a late joiner that is full is looked at again while nobody publishes: a publisher that waits is
/// woken.
const OWED_AGAIN: Duration = Duration::from_millis(5);
/// And how seldom at last, if it takes nothing: it is to wake nobody.
const OWED_AGAIN_MAX: Duration = Duration::from_millis(500);

/// How long a sample finds no room until it is asked whether the link has run out of something, and how
/// often at most that is asked.
const TROUBLE_LOOK_NS: u64 = 20_000_000;
/// So long a silence, and what is sent after it may be of another size.
const SILENCE_NS: u64 = 10_000_000_000;

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
