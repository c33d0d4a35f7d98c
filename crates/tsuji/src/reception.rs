//! What stands behind every subscription, whatever its type: one queue over all roads, and what it
//! counts.

use std::any::TypeId;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsuji_core::handover::Epoch;
use tsuji_core::{History, Liveliness, Qos, TransportId};
use tsuji_msg::{CdrError, Message};
use tsuji_platform::clock;
use tsuji_transport::bell::Cell;
use tsuji_transport::{
    Connected, Encoding, Gid, Payload, PeerId, Reader, Sample, Ticket, Transport,
};

use crate::endpoint::EndpointCore;
use crate::events::{Events, SubscriptionEvent};
use crate::graph::{CountHalf, LatencyReport};
use crate::mapping;
use crate::news::Inbox;
use crate::pacing::{DeadlineWatch, nanos};
use crate::statistics::Histogram;
use crate::{Error, ErrorKind, Result, Role};
use changing::{Change, Changing};

mod changing;

/// What a subscription has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriptionCounters {
    /// Samples handed to the user.
    pub received: u64,
    /// Samples pushed out of the full queue by newer ones.
    pub displaced: u64,
    /// Samples whose lifespan had passed.
    pub expired: u64,
    /// Samples that were no valid message of the type.
    pub invalid: u64,
    /// Samples that never came, the displaced ones not counted.
    pub lost: u64,
    /// Samples that came once more and were not delivered.
    pub duplicates: u64,
}

/// Whether bytes are a valid message.
pub(crate) type Check = fn(&[u8]) -> Result<(), CdrError>;

pub(crate) struct Reception {
    core: EndpointCore,
    pub(crate) events: Events<SubscriptionEvent>,
    pub(crate) news: Arc<Cell>,
    pub(crate) value_type: Option<TypeId>,
    /// It wants nothing from publishers of its own participant.
    pub(crate) ignores_local: bool,
    check: Option<Check>,
    /// There is something for the directory in `State::changing`.
    has_change_news: AtomicBool,
    state: Mutex<State>,
}

impl Deref for Reception {
    type Target = EndpointCore;

    fn deref(&self) -> &EndpointCore {
        &self.core
    }
}

struct State {
    roads: Vec<Road>,
    /// The road that stays open for others to see.
    shown: Option<TransportId>,
    /// Samples that were taken off their roads, with what they are put in order by. Used where several
    /// flows share the depth, or one has several roads.
    queue: VecDeque<(u64, Sample)>,
    /// Samples that are not delivered, to be dropped when no lock is held; kept for its memory.
    discarded: Vec<Sample>,
    flows: Flows,
    changing: Changing,
    /// Its `lost` is the most that was seen, and told, so far.
    counters: SubscriptionCounters,
    /// Counted with the next look at this subscription: a callback need not wait for it.
    unbooked: Option<Unbooked>,
    missing: u64,
    /// More was displaced than is missing yet.
    is_loss_hidden: bool,
    /// Samples pushed out of `queue`, and those of roads that were closed.
    displaced: u64,
    /// When the newest sample was sent that has arrived, taken or not, as far as looked at.
    last_sample_ns: u64,
    deadline: DeadlineWatch,
}

/// The receiving end of a transport.
#[derive(Clone)]
struct Road {
    id: TransportId,
    reader: Arc<dyn Reader>,
    /// What was sent on it is there to be taken.
    is_immediate: bool,
    /// Requests and replies carry a header there.
    is_mapped: bool,
    /// How many samples it had displaced when it was opened beside another that brings the same.
    trial_from: Option<u64>,
    /// So many of those that it displaced came by the other.
    uncounted: u64,
}

impl Road {
    /// From here on it alone brings its samples.
    fn end_trial(&mut self) {
        if let Some(from) = self.trial_from.take() {
            self.uncounted += self.reader.displaced().saturating_sub(from);
        }
    }

    /// The samples that it displaced and that nobody else brought.
    fn displaced(&self) -> u64 {
        let all = self.trial_from.unwrap_or_else(|| self.reader.displaced());
        all.saturating_sub(self.uncounted)
    }
}

/// A sample that was handed out and is not counted yet.
struct Unbooked {
    writer: Gid,
    taken_ns: u64,
    latency_ns: u64,
    by_wall: bool,
    bytes: u64,
}

/// What comes from each publisher. There are few, and the one that sends most comes to stand first:
/// looking along a list is then cheaper than hashing.
#[derive(Default)]
struct Flows {
    all: Vec<(Gid, FlowCount)>,
}

impl Flows {
    /// The counts of this publisher, made when they are not there yet.
    fn of(&mut self, writer: Gid) -> &mut FlowCount {
        let at = self.place_of(writer);
        &mut self.all[at].1
    }

    fn place_of(&mut self, writer: Gid) -> usize {
        match self.all.iter().position(|(gid, _)| *gid == writer) {
            Some(at) if at < NEAR => at,
            Some(at) => {
                self.all.swap(at, at / 2);
                at / 2
            }
            None => {
                self.all.push((writer, FlowCount::new()));
                self.all.len() - 1
            }
        }
    }

    fn get_mut(&mut self, writer: Gid) -> Option<&mut FlowCount> {
        self.all.iter_mut().find(|(gid, _)| *gid == writer).map(|(_, flow)| flow)
    }

    fn values(&self) -> impl Iterator<Item = &FlowCount> {
        self.all.iter().map(|(_, flow)| flow)
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut FlowCount> {
        self.all.iter_mut().map(|(_, flow)| flow)
    }
}

/// Places that are looked at soon enough to stay as they are.
const NEAR: usize = 8;

/// What comes from one publisher.
struct FlowCount {
    /// Its road, while it is open at this end.
    road: Option<TransportId>,
    /// Whether replies are counted there for all clients together.
    is_mapped: bool,
    /// The publisher sends on it.
    is_connected: bool,
    /// Which of the flow's roads it is, and what is added to the numbers on it.
    epoch: Epoch,
    shift: u64,
    change: Option<Box<Change>>,
    /// The number from which on its road is the one. What comes on it of before came on the last one too.
    since: u64,
    /// By what the last sample was put in order.
    last_order_ns: u64,
    next: Option<u64>,
    samples: u64,
    bytes: u64,
    missing: u64,
    expired: u64,
    invalid: u64,
    duplicates: u64,
    latency: Option<Histogram>,
    /// It is between the wall clocks of both ends.
    by_wall: bool,
    rate: Rate,
    /// The last sign of life, as far as looked at.
    last_sign_ns: u64,
    manual_lease_ns: Option<u64>,
    /// How long its samples stay valid: the shorter of what the two ends say.
    lifespan_ns: Option<u64>,
    is_alive: bool,
}

/// Counts of the last whole interval of about a second.
#[derive(Default)]
struct Rate {
    from_ns: u64,
    samples: u64,
    bytes: u64,
    last: Option<(f64, f64)>,
}

impl Rate {
    fn add(&mut self, now_ns: u64, samples: u64, bytes: u64) {
        let elapsed = now_ns.saturating_sub(self.from_ns);
        if RATE_NS <= elapsed {
            let seconds = elapsed as f64 / 1e9;
            let is_fresh = self.from_ns != 0 && elapsed < 4 * RATE_NS;
            self.last = is_fresh
                .then(|| (self.samples as f64 / seconds, self.bytes as f64 / seconds))
                .or(if self.from_ns == 0 { None } else { Some((0.0, 0.0)) });
            (self.from_ns, self.samples, self.bytes) = (now_ns, 0, 0);
        }
        self.samples += samples;
        self.bytes += bytes;
    }

    fn now(&mut self, now_ns: u64) -> (f64, f64) {
        let elapsed = now_ns.saturating_sub(self.from_ns);
        if RATE_NS <= elapsed && self.from_ns != 0 {
            self.add(now_ns, 0, 0);
        } else if self.last.is_none() && 0 < elapsed && self.from_ns != 0 {
            let seconds = elapsed as f64 / 1e9;
            return (self.samples as f64 / seconds, self.bytes as f64 / seconds);
        }
        self.last.unwrap_or_default()
    }
}

const RATE_NS: u64 = 1_000_000_000;

/// What a reception needs besides what every endpoint has.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReceptionSpec {
    pub(crate) check: Option<Check>,
    /// The Rust type of values that it takes by reference.
    pub(crate) value_type: Option<TypeId>,
    /// It wants nothing from publishers of its own participant.
    pub(crate) ignores_local: bool,
}

impl ReceptionSpec {
    /// For values of type `M`, and bytes that are one.
    pub(crate) fn of<M: Message>() -> Self {
        Self {
            check: Some(|bytes| M::view_cdr(bytes).map(|_| ())),
            value_type: Some(TypeId::of::<M>()),
            ignores_local: false,
        }
    }
}

impl Reception {
    pub(crate) fn new(core: EndpointCore, spec: ReceptionSpec) -> Result<Self> {
        let state = State {
            roads: Vec::new(),
            shown: None,
            queue: VecDeque::new(),
            discarded: Vec::new(),
            flows: Flows::default(),
            changing: Changing::default(),
            counters: SubscriptionCounters::default(),
            unbooked: None,
            missing: 0,
            is_loss_hidden: false,
            displaced: 0,
            last_sample_ns: clock::monotonic_ns(),
            deadline: DeadlineWatch::new(core.qos.deadline),
        };
        Ok(Self {
            events: Events::new(),
            news: Arc::new(core.host.bells().claim_cell()?),
            core,
            check: spec.check,
            value_type: spec.value_type,
            ignores_local: spec.ignores_local,
            has_change_news: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    /// The oldest valid sample, with the time of this call on the monotonic clock.
    pub(crate) fn take(&self) -> Result<Option<(Sample, u64)>> {
        self.open("take")?;
        let mut state = self.lock();
        state.book();
        let taken = self.take_valid(&mut state);
        self.tell_finished(&state);
        self.discard(state);
        taken
    }

    /// Whether there is a sample to be taken; it may turn out to be invalid. What has come is moved to the
    /// queue for that, and counts for the depth there.
    pub(crate) fn is_ready(&self) -> bool {
        self.waiting(1) != 0
    }

    /// How many samples are there to be taken; where all are kept, no more than `most` are looked for: what
    /// stays on its road holds its publisher back, as it must.
    pub(crate) fn waiting(&self, most: usize) -> usize {
        if self.open("look").is_err() {
            return 0;
        }
        let mut state = self.lock();
        let history = self.history();
        let mut is_wrong = false;
        while history != History::KeepAll || state.queue.len() < most {
            match state.gather(history) {
                // Behind what is dropped there may be more, of which nobody will be told again.
                Ok(true) if history == History::KeepAll || state.queue.is_empty() => (),
                Ok(_) => break,
                Err(error) if error.kind() == tsuji_transport::ErrorKind::Invalid => {
                    self.note_invalid(&mut state, &error);
                }
                // Whoever takes is told.
                Err(_) => {
                    is_wrong = true;
                    break;
                }
            }
        }
        self.tell_finished(&state);
        let waiting = state.queue.len().max(usize::from(is_wrong));
        self.discard(state);
        waiting
    }

    /// Drops what is not delivered. Payloads are the user's, and may do anything when dropped.
    fn discard(&self, mut state: MutexGuard<'_, State>) {
        if state.discarded.is_empty() {
            return;
        }
        let mut discarded = std::mem::take(&mut state.discarded);
        drop(state);
        discarded.clear();
        let mut state = self.lock();
        if state.discarded.capacity() == 0 {
            state.discarded = discarded;
        }
    }

    /// A road had something that was no sample.
    fn note_invalid(&self, state: &mut State, error: &tsuji_transport::Error) {
        state.counters.invalid += 1;
        tracing::warn!(topic = %self.topic, %error, "a sample was dropped");
    }

    fn take_valid(&self, state: &mut State) -> Result<Option<(Sample, u64)>> {
        loop {
            let mut sample = match state.next(self.history()) {
                Ok(Some(sample)) => sample,
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == tsuji_transport::ErrorKind::Invalid => {
                    self.note_invalid(state, &error);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let now_ns = clock::monotonic_ns();
            if self.admit(state, &mut sample, now_ns) {
                return Ok(Some((sample, now_ns)));
            }
            state.discarded.push(sample);
        }
    }

    pub(crate) fn counters(&self) -> SubscriptionCounters {
        // A forked child may find the lock held for ever.
        if !self.host.is_current() {
            return SubscriptionCounters::default();
        }
        let mut state = self.lock();
        state.book();
        self.tell_losses(&mut state);
        SubscriptionCounters { displaced: state.displaced_now(), ..state.counters }
    }

    /// How many publishers are connected.
    pub(crate) fn writers(&self) -> usize {
        if !self.host.is_current() {
            return 0;
        }
        self.lock().flows.values().filter(|flow| flow.is_connected).count()
    }

    /// Opens this end of a flow; or where it has a road, that of another beside it.
    pub(crate) fn accept(
        &self,
        transport: &Arc<dyn Transport>,
        peer: PeerId,
        writer: Gid,
        epoch: Epoch,
        offered: &Qos,
    ) -> Result<Ticket> {
        let (mut state, reader) = self.road(transport, "accept")?;
        let state = &mut *state;
        let known = state.flows.get_mut(writer);
        let is_changing = known.as_ref().is_some_and(|flow| flow.is_connected);
        if is_changing && known.is_some_and(|flow| flow.takes_from(&transport.id())) {
            let why = format!("{}: not all was taken of what it brought before", transport.id());
            return Err(Error::new(ErrorKind::Busy, why));
        }
        let ticket = reader.accept(peer, writer)?;
        if is_changing {
            state.begin_change(writer, epoch, transport.id(), self);
            return Ok(ticket);
        }
        let manual_lease_ns = offered
            .liveliness_lease
            .filter(|_| offered.liveliness == Liveliness::ManualByTopic)
            .map(nanos);
        let flow = self.open_flow(state, transport, writer, offered);
        flow.manual_lease_ns = manual_lease_ns;
        flow.epoch = epoch;
        Ok(ticket)
    }

    /// Opens this end of a flow from a publisher that is not tsuji's. Answers whether it is there, or
    /// else only begun.
    pub(crate) fn accept_plain(
        &self,
        transport: &Arc<dyn Transport>,
        writer: Gid,
        offered: &Qos,
    ) -> Result<bool> {
        let (mut state, reader) = self.road(transport, "accept")?;
        let connected = reader.accept_plain(writer)?;
        if let Some(flow) = state.flows.get_mut(writer).filter(|flow| !flow.is_open()) {
            // It was away: it may have been started anew and count from 1 again.
            flow.next = None;
        }
        // Its manual signs of life reach the engine only, so only its end is seen.
        self.open_flow(&mut state, transport, writer, offered);
        Ok(connected == Connected::Now)
    }

    /// The road of a transport, opened if it is not there yet. That may start an engine, for which whoever takes
    /// from another road need not wait: no lock is held meanwhile. Called by one thread at a time, which has the
    /// directory.
    fn road(
        &self,
        transport: &Arc<dyn Transport>,
        operation: &str,
    ) -> Result<(MutexGuard<'_, State>, Arc<dyn Reader>)> {
        self.open(operation)?;
        let id = transport.id();
        let state = self.lock();
        if let Some(road) = state.roads.iter().find(|road| road.id == id) {
            let reader = Arc::clone(&road.reader);
            return Ok((state, reader));
        }
        drop(state);
        let reader = transport.open_reader(&self.for_transport(false), Arc::clone(&self.news))?;
        let relates = transport.wire().is_some_and(|it| it.relates());
        let road = Road {
            id,
            reader: Arc::clone(&reader),
            is_immediate: transport.capability().immediate,
            is_mapped: self.is_mapped_on(transport) && !relates,
            trial_from: None,
            uncounted: 0,
        };
        let mut state = self.lock();
        state.roads.push(road);
        Ok((state, reader))
    }

    /// Whether requests and replies go to all on the road of this transport.
    fn is_mapped_on(&self, transport: &Arc<dyn Transport>) -> bool {
        self.role != Role::Topic && !transport.capability().directed
    }

    fn open_flow<'a>(
        &self,
        state: &'a mut State,
        transport: &Arc<dyn Transport>,
        writer: Gid,
        offered: &Qos,
    ) -> &'a mut FlowCount {
        let is_mapped = self.is_mapped_on(transport);
        let flow = state.flows.of(writer);
        flow.road = Some(transport.id());
        if flow.is_mapped != is_mapped || flow.shift != 0 {
            // Such roads count in different ways.
            flow.next = None;
        }
        flow.shift = 0;
        flow.is_mapped = is_mapped;
        flow.is_alive = true;
        flow.manual_lease_ns = None;
        flow.lifespan_ns =
            [offered.lifespan, self.qos.lifespan].into_iter().flatten().min().map(nanos);
        flow.last_sign_ns = clock::monotonic_ns();
        flow
    }

    /// Opens the road of a transport for others to see, before anybody sends.
    pub(crate) fn show(&self, transport: &Arc<dyn Transport>) -> Result<()> {
        let (mut state, _) = self.road(transport, "announce")?;
        state.shown = Some(transport.id());
        Ok(())
    }

    /// Closes the roads on which others than those who were met may see it.
    pub(crate) fn leave_wires(&self) {
        let mut state = self.lock();
        let (left, kept) = std::mem::take(&mut state.roads)
            .into_iter()
            .partition(|road| road.reader.wire_name().is_some());
        state.roads = kept;
        drop(state);
        let left: Vec<_> = left;
        drop(left);
    }

    /// What this subscription is called on the wire of a transport.
    pub(crate) fn wire_name(&self, transport: &TransportId) -> Option<Gid> {
        let state = self.lock();
        state.roads.iter().find(|road| road.id == *transport)?.reader.wire_name()
    }

    /// The publisher sends on its road, from the sample `first` on; `None` where its numbers are not
    /// known before they come.
    pub(crate) fn cut(&self, writer: Gid, first: Option<u64>) {
        let mut state = self.lock();
        let is_first = !state.flows.values().any(|flow| flow.is_connected);
        let Some(flow) = state.flows.get_mut(writer).filter(|flow| flow.is_open()) else { return };
        flow.is_connected = true;
        flow.next = match (self.role, flow.next, first) {
            // What was sent during a break was not for this client or server.
            (Role::Request | Role::Reply, Some(next), Some(first)) => Some(next.max(first)),
            (_, next, first) => next.or(first),
        };
        if is_first {
            // Before it nobody could be late.
            state.deadline.begin(clock::monotonic_ns());
        }
        self.tell_matched(&state);
    }

    /// Whether this publisher is connected.
    pub(crate) fn hears(&self, writer: Gid) -> bool {
        let flows = &self.lock().flows.all;
        flows.iter().any(|(gid, flow)| *gid == writer && flow.is_connected)
    }

    /// This publisher sends nothing any more. What it sent is still delivered.
    pub(crate) fn forget(&self, writer: Gid) {
        let mut state = self.lock();
        state.see_arrivals();
        self.end_change(&mut state, writer);
        state.roads.iter().for_each(|road| road.reader.forget(writer));
        let Some(flow) = state.flows.get_mut(writer).filter(|flow| flow.is_open()) else { return };
        let road = flow.road.take();
        flow.is_connected = false;
        // Counts of publishers that left are kept for a while, not for ever.
        if FLOWS_KEPT_MAX < state.flows.all.len() {
            state.flows.all.retain(|(_, flow)| flow.is_open());
        }
        let closed = road.and_then(|road| self.close_idle(&mut state, &road));
        self.tell_matched(&state);
        if !state.queue.is_empty() {
            self.news.ring();
        }
        drop(state);
        // Waits for callbacks of its engine.
        drop(closed);
    }

    /// Closes a road that nobody sends on any more, if others than those who were met may send there
    /// what comes by another road already. What has come stays. That of a client or server stays open:
    /// who takes it for ready just then must not ask in vain.
    fn close_idle(&self, state: &mut State, road: &TransportId) -> Option<Arc<dyn Reader>> {
        let at = state.roads.iter().position(|it| it.id == *road)?;
        state.roads[at].reader.wire_name()?;
        self.close_unused(state, road)
    }

    /// Closes a road that no flow has.
    fn close_unused(&self, state: &mut State, road: &TransportId) -> Option<Arc<dyn Reader>> {
        let is_used = state.flows.values().any(|flow| flow.takes_from(road));
        if is_used || state.shown.as_ref() == Some(road) || self.role != Role::Topic {
            return None;
        }
        let at = state.roads.iter().position(|it| it.id == *road)?;
        let road = state.roads.remove(at);
        let displaced = road.displaced();
        let Road { id, reader, is_mapped, .. } = road;
        while let Ok(Some(sample)) = reader.take() {
            state.sort_in(&id, is_mapped, sample);
        }
        state.displaced = state.displaced.saturating_add(displaced);
        Some(reader)
    }

    /// The publisher showed that it is alive.
    pub(crate) fn alive(&self, writer: Gid) {
        let mut state = self.lock();
        if let Some(flow) = state.flows.get_mut(writer) {
            flow.last_sign_ns = clock::monotonic_ns();
            if !std::mem::replace(&mut flow.is_alive, true) {
                // A lost lease was waited for no longer.
                self.host.nudge.give();
                self.tell_liveliness(&state);
            }
        }
    }

    pub(crate) fn close(&self) {
        self.core.close();
        let mut state = self.lock();
        state.displaced = state.displaced_now();
        let roads = std::mem::take(&mut state.roads);
        let queue = std::mem::take(&mut state.queue);
        let changing = std::mem::take(&mut state.changing);
        let held: Vec<_> = state.flows.values_mut().map(|flow| flow.change.take()).collect();
        drop(state);
        drop((roads, queue, changing, held));
        self.news.ring();
    }

    pub(crate) fn due_ns(&self) -> Option<u64> {
        let mut state = self.lock();
        let change = self.change_due_ns(&state);
        if !self.is_timed(&state) {
            return change;
        }
        state.see_arrivals();
        let deadline = state
            .deadline
            .due_ns(state.last_sample_ns)
            .filter(|_| state.flows.values().any(|flow| flow.is_connected));
        let leases = state.flows.values().filter(|flow| flow.is_connected && flow.is_alive);
        let lease =
            leases.filter_map(|it| Some(it.last_sign_ns.saturating_add(it.manual_lease_ns?))).min();
        [deadline, lease, change].into_iter().flatten().min()
    }

    pub(crate) fn on_time(&self, now_ns: u64) {
        self.go_on_changing(now_ns);
        let mut state = self.lock();
        if !self.is_timed(&state) {
            return;
        }
        state.see_arrivals();
        let newest_ns = state.last_sample_ns;
        if state.flows.values().any(|flow| flow.is_connected)
            && let Some(total) = state.deadline.look(newest_ns, now_ns)
        {
            self.events.push(SubscriptionEvent::DeadlineMissed { total });
        }
        let mut changed = false;
        for flow in state.flows.values_mut().filter(|flow| flow.is_connected) {
            let Some(lease_ns) = flow.manual_lease_ns else { continue };
            let is_alive = now_ns < flow.last_sign_ns.saturating_add(lease_ns);
            changed |= std::mem::replace(&mut flow.is_alive, is_alive) != is_alive;
        }
        if changed {
            self.tell_liveliness(&state);
        }
    }

    pub(crate) fn halves(&self) -> Vec<CountHalf> {
        let now_ns = clock::monotonic_ns();
        let mut state = self.lock();
        state.book();
        let SubscriptionCounters { lost, .. } = state.counters;
        let missing = u128::from(state.missing.max(1));
        let connected = state.flows.all.iter_mut().filter(|(_, flow)| flow.is_connected);
        connected
            .map(|(gid, flow): &mut (Gid, FlowCount)| {
                let (rate_hz, bytes_per_s) = flow.rate.now(now_ns);
                let quantile = |share| {
                    let histogram = flow.latency.as_ref()?;
                    Some(histogram.quantile_ns(share)? as f64 / 1e3)
                };
                let latency = quantile(0.5).zip(quantile(0.99)).zip(flow.latency.as_ref());
                // Roads count what they push out for all writers together: each flow's share of what
                // is lost is its share of what is missing.
                let lost = u128::from(lost) * u128::from(flow.missing) / missing;
                let lost = u64::try_from(lost).unwrap_or(u64::MAX).min(flow.missing);
                CountHalf {
                    publisher: gid.0,
                    subscription: self.gid.0,
                    samples: flow.samples,
                    bytes: flow.bytes,
                    rate_hz,
                    bytes_per_s,
                    latency: latency.map(|((median_us, p99_us), histogram)| LatencyReport {
                        median_us,
                        p99_us,
                        max_us: histogram.max_ns() as f64 / 1e3,
                        clock: if flow.by_wall { "wall" } else { "monotonic" }.to_owned(),
                    }),
                    displaced: flow.missing - lost,
                    expired: flow.expired,
                    invalid: flow.invalid,
                    lost,
                    duplicates: flow.duplicates,
                }
            })
            .collect()
    }

    /// Whether there is a deadline or a lease to watch.
    fn is_timed(&self, state: &State) -> bool {
        state.deadline.is_set() || state.flows.values().any(|flow| flow.manual_lease_ns.is_some())
    }

    /// Counts a sample, and says whether the user gets it.
    fn admit(&self, state: &mut State, sample: &mut Sample, now_ns: u64) -> bool {
        let is_admitted = self.is_due(state, sample)
            && (self.role == Role::Topic || self.is_for_this_end(state, sample))
            && self.is_valid(state, sample);
        if !is_admitted {
            return false;
        }
        // Not every road brings the time of the sender's monotonic clock.
        let by_wall = sample.envelope.mono_ns == 0;
        let latency_ns = if by_wall {
            let wall_ns = clock::wall_ns().saturating_sub(sample.envelope.wall_ns);
            u64::try_from(wall_ns).unwrap_or(0)
        } else {
            now_ns.saturating_sub(sample.envelope.mono_ns)
        };
        let (writer, taken_ns) = (sample.envelope.gid, now_ns);
        let bytes = sample.payload.byte_len().unwrap_or(0) as u64;
        state.unbooked = Some(Unbooked { writer, taken_ns, latency_ns, by_wall, bytes });
        true
    }

    /// Counts a sample, and says whether it is a new one that is still of use.
    fn is_due(&self, state: &mut State, sample: &Sample) -> bool {
        let envelope = &sample.envelope;
        let at = state.flows.place_of(envelope.gid);
        let flow = &mut state.flows.all[at].1;
        let mut newly_missing = 0;
        match flow.next {
            Some(next) if envelope.sequence < next => {
                if flow.since <= envelope.sequence {
                    flow.duplicates += 1;
                    state.counters.duplicates += 1;
                }
                return false;
            }
            Some(next) => newly_missing = envelope.sequence - next,
            None => (),
        }
        flow.next = Some(envelope.sequence.saturating_add(1));
        flow.missing = flow.missing.saturating_add(newly_missing);
        state.missing = state.missing.saturating_add(newly_missing);
        if 0 < newly_missing || state.is_loss_hidden {
            self.tell_losses(state);
        }
        let flow = &mut state.flows.all[at].1;
        let is_expired = flow.lifespan_ns.is_some_and(|lifespan_ns| {
            let age = clock::wall_ns().saturating_sub(envelope.wall_ns);
            u64::try_from(age).is_ok_and(|age_ns| lifespan_ns <= age_ns)
        });
        if is_expired {
            flow.expired += 1;
            state.counters.expired += 1;
        }
        !is_expired
    }

    /// Whether a request or reply is one, and for this end: on some roads all clients get the replies to
    /// any of them.
    fn is_for_this_end(&self, state: &mut State, sample: &mut Sample) -> bool {
        if sample.envelope.encoding == Encoding::Opaque {
            let flow = state.flows.of(sample.envelope.gid);
            flow.invalid += 1;
            state.counters.invalid += 1;
            if flow.invalid == 1 {
                tracing::warn!(service = %self.topic, "dropped what is no request or reply");
            }
            return false;
        }
        let Some((client, number)) = sample.envelope.related.filter(|_| self.role == Role::Reply)
        else {
            return true;
        };
        if client == self.partner {
            return true;
        }
        sample.envelope.related = Some((self.partner, number));
        (client, number) == mapping::related(mapping::client_number(self.partner), number)
    }

    /// Whether a sample is a message of the type.
    fn is_valid(&self, state: &mut State, sample: &Sample) -> bool {
        let (Some(check), Payload::Bytes(payload)) = (self.check, &sample.payload) else {
            return true;
        };
        let checked = match sample.envelope.encoding {
            Encoding::Cdr1 => check(payload).map_err(|it| it.to_string()),
            Encoding::Opaque => Err("not CDR".to_owned()),
        };
        let Err(error) = checked else { return true };
        let publisher = sample.envelope.gid;
        let flow = state.flows.of(publisher);
        flow.invalid += 1;
        state.counters.invalid += 1;
        if flow.invalid == 1 {
            tracing::warn!(topic = %self.topic, %publisher, %error, "an invalid sample was dropped");
        }
        false
    }

    /// Tells of losses that were not told yet. What is displaced is counted before it is missed, and
    /// hides as many losses until then: the total may come late but never goes back.
    fn tell_losses(&self, state: &mut State) {
        let displaced = state.displaced_now();
        let total = state.missing.saturating_sub(displaced);
        if state.counters.lost < total {
            state.counters.lost = total;
            self.events.push(SubscriptionEvent::MessageLost { total });
        }
        state.is_loss_hidden = state.missing < displaced.saturating_add(state.counters.lost);
    }

    fn tell_matched(&self, state: &State) {
        let current = state.flows.values().filter(|flow| flow.is_connected).count();
        self.events.push(SubscriptionEvent::Matched { current });
        self.tell_liveliness(state);
    }

    fn tell_liveliness(&self, state: &State) {
        let mut counts = [0, 0];
        for flow in state.flows.values().filter(|flow| flow.is_connected) {
            counts[usize::from(flow.is_alive)] += 1;
        }
        let [not_alive, alive] = counts;
        self.events.push(SubscriptionEvent::LivelinessChanged { alive, not_alive });
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox for Reception {
    fn cell(&self) -> &Arc<Cell> {
        &self.news
    }

    fn waiting(&self, most: usize) -> usize {
        Self::waiting(self, most)
    }
}

impl State {
    /// Counts the sample that was handed out last.
    fn book(&mut self) {
        let unbooked = self.unbooked.take();
        let Some(Unbooked { writer, taken_ns, latency_ns, by_wall, bytes }) = unbooked else {
            return;
        };
        self.counters.received += 1;
        let Some(flow) = self.flows.get_mut(writer) else { return };
        flow.samples += 1;
        flow.bytes += bytes;
        flow.rate.add(taken_ns, 1, bytes);
        // What two clocks measure is not one distribution.
        if std::mem::replace(&mut flow.by_wall, by_wall) != by_wall {
            flow.latency = None;
        }
        flow.latency.get_or_insert_with(Histogram::new).add(latency_ns);
    }

    /// The oldest sample. One flow alone is read straight off its road, which keeps its depth;
    /// several share one queue of that depth.
    fn next(&mut self, history: History) -> Result<Option<Sample>, tsuji_transport::Error> {
        let is_simple = self.is_simple();
        if !self.queue.is_empty() && history == History::KeepAll {
            return Ok(self.queue.pop_front().map(|(_, sample)| sample));
        }
        if is_simple {
            let Some(road) = self.roads.first() else { return Ok(None) };
            let is_mapped = road.is_mapped;
            let Some(mut sample) = road.reader.take()? else { return Ok(None) };
            if let Some((_, flow)) = self.flows.all.first() {
                sample.envelope.sequence = sample.envelope.sequence.wrapping_add(flow.shift);
            }
            if is_mapped {
                unmap(&mut sample);
            }
            return Ok(Some(sample));
        }
        // Behind what is dropped there may be more, of which nobody will be told again.
        while self.gather(history)? && self.queue.is_empty() {}
        Ok(self.queue.pop_front().map(|(_, sample)| sample))
    }

    /// Takes note of when the newest samples came, taken or not.
    fn see_arrivals(&mut self) {
        for (writer, flow) in self.flows.all.iter_mut().filter(|(_, flow)| flow.is_open()) {
            let newest_ns = self.roads.iter().filter_map(|road| road.reader.newest_ns(*writer));
            let Some(newest_ns) = newest_ns.max() else { continue };
            flow.last_sign_ns = flow.last_sign_ns.max(newest_ns);
            self.last_sample_ns = self.last_sample_ns.max(newest_ns);
        }
    }

    fn is_simple(&self) -> bool {
        self.queue.is_empty()
            && self.roads.len() <= 1
            && self.flows.all.len() <= 1
            && self.changing.is_none()
    }

    /// Takes what all roads have, at most what the depth lets be kept, in the order of sending. Answers whether
    /// they had something.
    fn gather(&mut self, history: History) -> Result<bool, tsuji_transport::Error> {
        let depth = match history {
            History::KeepLast(depth) => depth as usize,
            // Samples that wait on their roads hold their writers back, as they must.
            History::KeepAll => 1,
        };
        let before = self.queue.len();
        let roads = std::mem::take(&mut self.roads);
        let mut result = Ok(false);
        for road in &roads {
            // A fast writer could keep this going for ever; a few rounds are all that can matter.
            for _ in 0..depth.saturating_mul(2 * self.flows.all.len()).max(1) {
                if history == History::KeepAll && self.must_wait(&road.id) {
                    break;
                }
                match road.reader.take() {
                    Ok(Some(sample)) => {
                        self.sort_in(&road.id, road.is_mapped, sample);
                        result = Ok(true);
                    }
                    Ok(None) => break,
                    // What was gathered is not lost for it: the caller asks again.
                    Err(error) if self.queue.len() == before => {
                        result = Err(error);
                        break;
                    }
                    Err(error) => {
                        let is_gone = error.kind() == tsuji_transport::ErrorKind::Invalid;
                        self.counters.invalid += u64::from(is_gone);
                        break;
                    }
                }
            }
            if result.is_err() {
                break;
            }
        }
        self.roads = roads;
        let had_some = result?;
        self.put_in_order(before, history);
        Ok(had_some)
    }

    /// Puts what came behind the first `before` in its place, and keeps as much as the depth lets.
    fn put_in_order(&mut self, before: usize, history: History) {
        if before + 1 < self.queue.len() {
            // Of one writer they are in order already, and what two writers count is not compared.
            self.queue.make_contiguous().sort_by_key(|(order_ns, _)| *order_ns);
        }
        if let History::KeepLast(depth) = history {
            let too_many = self.queue.len().saturating_sub(depth as usize);
            self.discarded.extend(self.queue.drain(..too_many).map(|(_, sample)| sample));
            self.displaced += too_many as u64;
        }
    }

    fn displaced_now(&self) -> u64 {
        let on_roads = self.roads.iter().map(Road::displaced);
        on_roads.fold(self.displaced, u64::saturating_add)
    }
}

impl FlowCount {
    fn is_open(&self) -> bool {
        self.road.is_some()
    }

    /// Whether a transport brings its samples, or may yet.
    fn takes_from(&self, transport: &TransportId) -> bool {
        self.road.as_ref() == Some(transport)
            || self.change.as_ref().is_some_and(|change| change.has(transport))
    }

    fn new() -> Self {
        Self {
            road: None,
            is_mapped: false,
            is_connected: false,
            epoch: Epoch::default(),
            shift: 0,
            change: None,
            since: 0,
            last_order_ns: 0,
            next: None,
            samples: 0,
            bytes: 0,
            missing: 0,
            expired: 0,
            invalid: 0,
            duplicates: 0,
            latency: None,
            by_wall: false,
            rate: Rate::default(),
            last_sign_ns: 0,
            manual_lease_ns: None,
            lifespan_ns: None,
            is_alive: true,
        }
    }
}

/// Takes the header off a request or reply. What has none is no CDR from here on.
fn unmap(sample: &mut Sample) {
    let Payload::Bytes(whole) = &sample.payload else { return };
    match mapping::split(whole) {
        Ok((related, plain)) => {
            sample.payload = Payload::Bytes(plain);
            sample.envelope.related = Some(related);
        }
        Err(_) => sample.envelope.encoding = Encoding::Opaque,
    }
}

/// When a sample was sent, or where that is not known, when it arrived.
fn order_ns(sample: &Sample) -> u64 {
    match sample.envelope.mono_ns {
        0 => sample.envelope.arrived_ns,
        mono_ns => mono_ns,
    }
}

/// Counts of publishers that left, kept for reports. Beyond it they are dropped.
const FLOWS_KEPT_MAX: usize = 256;
