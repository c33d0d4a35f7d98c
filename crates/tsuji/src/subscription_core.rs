//! What stands behind every subscription, whatever its type: one queue over all links, and what it
//! counts.

use std::any::TypeId;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsuji_core::handover::Epoch;
use tsuji_core::{History, Qos, TransportId};
use tsuji_msg::{CdrError, Message};
use tsuji_platform::clock;
use tsuji_platform::ordered::Mutex;
use tsuji_transport::bell::Cell;
use tsuji_transport::deferred::{self, Locked, told};
use tsuji_transport::wire::Relates;
use tsuji_transport::{
    Address, Connected, Encoding, Gid, Payload, PeerId, Reader, Sample, Transport,
};

use crate::arrivals::{Inbox, Tally};
use crate::content_filter::Described;
use crate::endpoint::EndpointCore;
use crate::events::{Events, SubscriptionEvent};
use crate::graph::{CountHalf, LatencyReport};
use crate::latency::{Latency, LatencyClock, Taken};
use crate::mapping;
use crate::pacing::{DeadlineWatch, nanos};
use crate::statistics::Histogram;
use crate::{Error, ErrorKind, Result, Role};
use content::Content;
use handover::{Change, Handovers};
use liveliness::manual_lease;
use rate::Rate;

mod content;
mod displaced;
mod handover;
mod liveliness;
mod rate;

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
    /// Samples that were no valid message of the type, as one with a text that is not UTF-8, and were
    /// dropped.
    pub invalid: u64,
    /// Samples that never came, the displaced ones not counted.
    pub lost: u64,
    /// Samples that came once more and were not delivered.
    pub duplicates: u64,
    /// Samples that the content filter filtered out. They are neither lost nor displaced.
    pub filtered: u64,
}

/// Whether bytes are a valid message.
pub(crate) type Check = fn(&[u8]) -> Result<(), CdrError>;

pub(crate) struct SubscriptionCore {
    core: EndpointCore,
    pub(crate) events: Events<SubscriptionEvent>,
    pub(crate) news: Arc<Cell>,
    pub(crate) value_type: Option<TypeId>,
    /// It wants nothing from publishers of its own participant.
    pub(crate) ignores_local: bool,
    check: Option<Check>,
    /// For content filters.
    described: Described,
    /// There is something for the graph in `State::changing`.
    has_handover_events: AtomicBool,
    /// The graph's thread is to ask what was displaced.
    is_displacing_woken: AtomicBool,
    state: Mutex<State>,
}

impl Deref for SubscriptionCore {
    type Target = EndpointCore;

    fn deref(&self) -> &EndpointCore {
        &self.core
    }
}

struct State {
    /// Nothing of it is displaced, and what is not taken waits on its link.
    keeps_all: bool,
    links: Vec<Link>,
    /// The link that stays open for others to see.
    shown: Option<TransportId>,
    /// Samples that were taken off their links, with what they are put in order by. Used where several
    /// flows share the depth, or one has several links.
    queue: VecDeque<(u64, Sample)>,
    /// Samples that are not delivered, to be dropped when no lock is held; kept for its memory.
    discarded: Vec<Sample>,
    flows: Flows,
    changing: Handovers,
    content: Content,
    /// Its `lost` is the most that was seen, and told, so far.
    counters: SubscriptionCounters,
    /// Counted with the next look at this subscription: a callback need not wait for it.
    unbooked: Option<Unbooked>,
    missing: u64,
    /// More was displaced than is missing yet.
    is_loss_hidden: bool,
    /// When publishers were told last of what was displaced here, on the monotonic clock.
    displaced_told_ns: u64,
    /// Something of a publisher that is there was pushed out of `queue` since.
    is_displacing: bool,
    /// Samples pushed out of `queue`, and those of links that were closed.
    displaced: u64,
    /// Nothing of much that came was to be delivered, and there may be more. Whoever takes is to come again.
    has_more: bool,
    /// Samples that `next` has given, delivered or not.
    handed_out: u64,
    /// When the newest sample was sent that has arrived, taken or not, as far as looked at.
    last_sample_ns: u64,
    deadline: DeadlineWatch,
}

/// The receiving end of a transport.
#[derive(Clone)]
struct Link {
    id: TransportId,
    reader: Arc<dyn Reader>,
    /// What was sent on it is there to be taken.
    is_immediate: bool,
    /// Requests and replies carry a header there, unless what they relate to came beside them.
    is_mapped: bool,
    /// How many samples it had displaced when it was opened beside another that brings the same.
    trial_from: Option<u64>,
    /// So many of those that it displaced came by the other.
    uncounted: u64,
}

impl Link {
    /// From here on it alone brings its samples.
    fn end_trial(&mut self) {
        if let Some(from) = self.trial_from.take() {
            self.uncounted += self.reader.displaced().saturating_sub(from);
        }
    }

    /// This publisher, which has another link, sends nothing here any more. What was displaced here of it stays
    /// counted: it is told how much was in all.
    fn forget(&self, writer: Gid, flow: &mut FlowCount) {
        flow.displaced += self.reader.displaced_of(writer);
        flow.gaps += self.reader.filtered_of(writer);
        self.reader.forget(writer);
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
    sequence: u64,
    taken_ns: u64,
    latency: Option<Latency>,
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
    /// Its link, while it is open at this end.
    link: Option<TransportId>,
    /// Whether replies are counted there for all clients together.
    is_mapped: bool,
    /// The publisher sends on it.
    is_connected: bool,
    /// Which of the flow's links it is, and what is added to the numbers on it.
    epoch: Epoch,
    shift: u64,
    change: Option<Box<Change>>,
    /// The number from which on its link is the one. What comes on it of before came on the last one too.
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
    /// Samples that were filtered out before they were counted, and the number behind the last of them.
    gaps: u64,
    filtered_next: u64,
    /// Its samples that were pushed out of `queue`, and of links that were closed since.
    displaced: u64,
    /// How many were displaced here as its publisher knows.
    displaced_told: u64,
    /// How many were before it connected, which it does not count again.
    displaced_before: u64,
    latency: Option<(LatencyClock, Histogram)>,
    rate: Rate,
    /// The last sign of life, as far as looked at.
    last_sign_ns: u64,
    manual_lease_ns: Option<u64>,
    /// The engine sees whether it asserts its liveliness: a foreign publisher's signs of life reach nobody else.
    is_watched_by_engine: bool,
    /// How long its samples stay valid: the shorter of what the two ends say.
    lifespan_ns: Option<u64>,
    is_alive: bool,
}

/// What a subscription core needs besides what every endpoint has.
#[derive(Clone, Default)]
pub(crate) struct SubscriptionSpec {
    pub(crate) check: Option<Check>,
    /// How its type is known.
    pub(crate) described: Described,
    /// The Rust type of values that it takes by reference.
    pub(crate) value_type: Option<TypeId>,
    /// It wants nothing from publishers of its own participant.
    pub(crate) ignores_local: bool,
}

impl SubscriptionSpec {
    /// For values of type `M`, and bytes that are one.
    pub(crate) fn of<M: Message>() -> Self {
        Self {
            check: Some(|bytes| M::view_cdr(bytes).map(|_| ())),
            described: Described::of::<M>(),
            value_type: Some(TypeId::of::<M>()),
            ignores_local: false,
        }
    }
}

impl SubscriptionCore {
    pub(crate) fn new(core: EndpointCore, spec: SubscriptionSpec) -> Result<Self> {
        core.permit(false)?;
        let state = State {
            keeps_all: core.history() == History::KeepAll,
            links: Vec::new(),
            shown: None,
            queue: VecDeque::new(),
            discarded: Vec::new(),
            flows: Flows::default(),
            changing: Handovers::default(),
            content: Content::default(),
            counters: SubscriptionCounters::default(),
            unbooked: None,
            missing: 0,
            is_loss_hidden: false,
            displaced_told_ns: 0,
            is_displacing: false,
            displaced: 0,
            has_more: false,
            handed_out: 0,
            last_sample_ns: clock::monotonic_ns(),
            deadline: DeadlineWatch::new(core.qos.deadline),
        };
        Ok(Self {
            events: Events::new(),
            news: Arc::new(core.session.bells().claim_cell()?),
            core,
            check: spec.check,
            described: spec.described,
            value_type: spec.value_type,
            ignores_local: spec.ignores_local,
            has_handover_events: AtomicBool::new(false),
            is_displacing_woken: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    /// The oldest valid sample, and when it was taken.
    pub(crate) fn take(&self) -> Result<Option<(Sample, Taken)>> {
        loop {
            self.open("take")?;
            let mut state = self.lock();
            state.book();
            let taken = self.take_due(&mut state);
            let filter = state.content.filter.clone();
            self.tell_finished(&state);
            self.discard(state);
            let Some((sample, taken)) = taken? else { return Ok(None) };
            // The type's own code says whether it is a message, and no lock is held for that.
            let passes = match self.why_invalid(&sample) {
                None => filter.map_or(Ok(true), |filter| filter.passes(&sample)),
                Some(why) => Err(why),
            };
            match passes {
                Ok(true) => return Ok(Some((sample, taken))),
                Ok(false) => self.note_filtered(&sample),
                Err(why) => self.refuse(&sample, why),
            }
        }
    }

    /// Whether there is a sample to be taken; it may turn out to be invalid. What has come is moved to the
    /// queue for that, and counts for the depth there.
    pub(crate) fn is_ready(&self) -> bool {
        self.waiting(1) != 0
    }

    /// How many samples are there to be taken; where all are kept, no more than `most` are looked for: what
    /// stays on its link holds its publisher back, as it must.
    pub(crate) fn waiting(&self, most: usize) -> usize {
        let now = self.tally(most);
        now.waiting.max(usize::from(now.is_wrong))
    }

    /// The same, with how many have left so far, and whether something is no sample.
    pub(crate) fn tally(&self, most: usize) -> Tally {
        if self.open("look").is_err() {
            return Tally::default();
        }
        let mut state = self.lock();
        let history = self.history();
        let (mut is_wrong, mut in_vain) = (false, 0);
        while history != History::KeepAll || state.queue.len() < most {
            let before = state.queue.len();
            match state.gather(history) {
                // Behind what is dropped there may be more, of which nobody will be told again.
                Ok(true) if history == History::KeepAll || state.queue.is_empty() => {
                    in_vain += usize::from(state.queue.len() == before);
                    if ROUNDS_IN_VAIN_MAX <= in_vain {
                        self.news.ring();
                        break;
                    }
                }
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
        let waiting = state.queue.len();
        let left = state.displaced_now().saturating_add(state.handed_out);
        self.discard(state);
        Tally { waiting, left, is_wrong }
    }

    /// Drops what is not delivered. Payloads are the user's, and may do anything when dropped.
    fn discard(&self, mut state: Locked<'_, State>) {
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

    /// A link had something that was no sample.
    fn note_invalid(&self, state: &mut State, error: &tsuji_transport::Error) {
        told::warn!(topic = %self.topic, %error, "a sample was dropped");
        self.count_invalid(state, None, error.to_string());
    }

    /// Counts what was dropped because it is no message, and tells of it.
    fn count_invalid(&self, state: &mut State, publisher: Option<Gid>, why: String) {
        state.counters.invalid += 1;
        let total = state.counters.invalid;
        self.events.push(SubscriptionEvent::InvalidMessage { publisher, why, total });
    }

    fn take_due(&self, state: &mut State) -> Result<Option<(Sample, Taken)>> {
        loop {
            let mut sample = match state.next(self.history()) {
                Ok(Some(sample)) => sample,
                Ok(None) => {
                    if std::mem::take(&mut state.has_more) {
                        self.news.ring();
                    }
                    return Ok(None);
                }
                Err(error) if error.kind() == tsuji_transport::ErrorKind::Invalid => {
                    self.note_invalid(state, &error);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let now_ns = clock::monotonic_ns();
            if let Some(taken) = self.admit(state, &mut sample, now_ns) {
                return Ok(Some((sample, taken)));
            }
            state.discarded.push(sample);
        }
    }

    pub(crate) fn counters(&self) -> SubscriptionCounters {
        // A forked child may find the lock held for ever.
        if !self.session.is_current() {
            return SubscriptionCounters::default();
        }
        let mut state = self.lock();
        state.book();
        self.tell_losses(&mut state);
        let filtered = state.counters.filtered.saturating_add(state.filtered_now());
        SubscriptionCounters { displaced: state.displaced_now(), filtered, ..state.counters }
    }

    /// How many publishers are connected.
    pub(crate) fn writers(&self) -> usize {
        if !self.session.is_current() {
            return 0;
        }
        self.lock().flows.values().filter(|flow| flow.is_connected).count()
    }

    /// Opens this end of a flow; or where it has a link, that of another beside it.
    pub(crate) fn accept(
        &self,
        transport: &Arc<dyn Transport>,
        peer: PeerId,
        writer: Gid,
        epoch: Epoch,
        offered: &Qos,
    ) -> Result<Address> {
        let (mut state, reader) = self.link(transport, "accept")?;
        let state = &mut *state;
        let known = state.flows.get_mut(writer);
        let is_changing = known.as_ref().is_some_and(|flow| flow.is_connected);
        if is_changing && known.is_some_and(|flow| flow.takes_from(&transport.id())) {
            let why = format!("{}: not all was taken of what it brought before", transport.id());
            return Err(Error::new(ErrorKind::Busy, why));
        }
        let address = reader.accept(peer, writer)?;
        if is_changing {
            state.begin_change(writer, epoch, transport.id(), self);
            return Ok(address);
        }
        let flow = self.open_flow(state, transport, writer, offered);
        flow.manual_lease_ns = manual_lease(offered).map(nanos);
        flow.epoch = epoch;
        Ok(address)
    }

    /// Opens this end of a flow from a publisher that is not tsuji's. Answers whether it is there, or
    /// else only begun.
    pub(crate) fn accept_foreign(
        &self,
        transport: &Arc<dyn Transport>,
        writer: Gid,
        offered: &Qos,
    ) -> Result<bool> {
        let (mut state, reader) = self.link(transport, "accept")?;
        let connected = reader.accept_foreign(writer)?;
        if let Some(flow) = state.flows.get_mut(writer).filter(|flow| !flow.is_open()) {
            // It was away: it may have been started anew and count from 1 again.
            flow.next = None;
        }
        let flow = self.open_flow(&mut state, transport, writer, offered);
        if manual_lease(offered).is_some() {
            flow.is_watched_by_engine = true;
            flow.is_alive = reader.is_silent(writer) != Some(true);
        }
        Ok(connected == Connected::Now)
    }

    /// The link of a transport, opened if it is not there yet. That may start an engine, for which whoever takes
    /// from another link need not wait: no lock is held meanwhile. Called by one thread at a time, which has the
    /// graph.
    fn link(
        &self,
        transport: &Arc<dyn Transport>,
        operation: &str,
    ) -> Result<(Locked<'_, State>, Arc<dyn Reader>)> {
        self.open(operation)?;
        let id = transport.id();
        let state = self.lock();
        if let Some(link) = state.links.iter().find(|link| link.id == id) {
            let reader = Arc::clone(&link.reader);
            return Ok((state, reader));
        }
        drop(state);
        let reader = transport.open_reader(&self.for_transport(false), Arc::clone(&self.news))?;
        let relates = transport.wire().map_or(Relates::Never, |it| it.relates());
        let link = Link {
            id,
            reader: Arc::clone(&reader),
            is_immediate: transport.capability().immediate,
            is_mapped: self.is_mapped_on(transport) && relates != Relates::Beside,
            trial_from: None,
            uncounted: 0,
        };
        let mut state = self.lock();
        state.set_filter(&link);
        state.links.push(link);
        Ok((state, reader))
    }

    /// Whether requests and replies go to all on the link of this transport.
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
        let displaced = state.displaced_of(writer);
        let flow = state.flows.of(writer);
        if !flow.is_connected {
            // Its publisher counts from here on, and nothing twice.
            state.changing.displaced.retain(|(gid, _)| *gid != writer);
            (flow.displaced_before, flow.displaced_told) = (displaced, displaced);
        }
        flow.link = Some(transport.id());
        if flow.is_mapped != is_mapped || flow.shift != 0 {
            // Such links count in different ways.
            flow.next = None;
        }
        flow.shift = 0;
        flow.is_mapped = is_mapped;
        flow.is_alive = true;
        flow.manual_lease_ns = None;
        flow.is_watched_by_engine = false;
        flow.lifespan_ns =
            [offered.lifespan, self.qos.lifespan].into_iter().flatten().min().map(nanos);
        flow.last_sign_ns = clock::monotonic_ns();
        flow
    }

    /// Opens the link of a transport for others to see, before anybody sends.
    pub(crate) fn show(&self, transport: &Arc<dyn Transport>) -> Result<()> {
        let (mut state, _) = self.link(transport, "announce")?;
        state.shown = Some(transport.id());
        Ok(())
    }

    /// Closes the links on which others than those who were met may see it: of this transport, or of all.
    pub(crate) fn leave_wires(&self, transport: Option<&TransportId>) {
        let mut state = self.lock();
        let is_left = |link: &Link| {
            link.reader.wire_name().is_some() && transport.is_none_or(|it| link.id == *it)
        };
        let (left, kept) = std::mem::take(&mut state.links).into_iter().partition(is_left);
        state.links = kept;
        let left: Vec<Link> = left;
        deferred::drop_later(left);
    }

    /// What this subscription is called on the wire of a transport.
    pub(crate) fn wire_name(&self, transport: &TransportId) -> Option<Gid> {
        let state = self.lock();
        state.links.iter().find(|link| link.id == *transport)?.reader.wire_name()
    }

    /// The publisher sends on its link, from the sample `first` on; `None` where its numbers are not
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
        state.links.iter().for_each(|link| link.reader.forget(writer));
        let Some(flow) = state.flows.get_mut(writer).filter(|flow| flow.is_open()) else { return };
        let link = flow.link.take();
        flow.is_connected = false;
        // Counts of publishers that left are kept for a while, not for ever.
        if FLOWS_KEPT_MAX < state.flows.all.len() {
            let explained = state.gaps_explained();
            state.flows.all.retain(|(_, flow)| flow.is_open());
            state.content.gaps_explained += explained - state.gaps_explained();
        }
        let closed = link.and_then(|link| self.close_idle(&mut state, &link));
        self.tell_matched(&state);
        if !state.queue.is_empty() {
            self.news.ring();
        }
        // Waits for callbacks of its engine.
        deferred::drop_later(closed);
    }

    /// Closes a link that nobody sends on any more, if others than those who were met may send there
    /// what comes by another link already. What has come stays. That of a client or server stays open:
    /// who takes it for ready just then must not ask in vain.
    fn close_idle(&self, state: &mut State, link: &TransportId) -> Option<Arc<dyn Reader>> {
        let at = state.links.iter().position(|it| it.id == *link)?;
        state.links[at].reader.wire_name()?;
        self.close_unused(state, link)
    }

    /// Closes a link that no flow has.
    fn close_unused(&self, state: &mut State, link: &TransportId) -> Option<Arc<dyn Reader>> {
        let is_used = state.flows.values().any(|flow| flow.takes_from(link));
        if is_used || state.shown.as_ref() == Some(link) || self.role != Role::Topic {
            return None;
        }
        let at = state.links.iter().position(|it| it.id == *link)?;
        let link = state.links.remove(at);
        let (displaced, filtered) = (link.displaced(), link.reader.filtered());
        let Link { id, reader, is_mapped, .. } = link;
        for (writer, flow) in &mut state.flows.all {
            flow.displaced += reader.displaced_of(*writer);
            flow.gaps += reader.filtered_of(*writer);
        }
        while let Ok(Some(sample)) = reader.take() {
            state.sort_in(&id, is_mapped, sample);
        }
        state.displaced = state.displaced.saturating_add(displaced);
        state.content.filtered = state.content.filtered.saturating_add(filtered);
        Some(reader)
    }

    pub(crate) fn close(&self) {
        self.core.close();
        let mut state = self.lock();
        state.displaced = state.displaced_now();
        state.content.filtered = state.filtered_now();
        let links = std::mem::take(&mut state.links);
        let queue = std::mem::take(&mut state.queue);
        let changing = std::mem::take(&mut state.changing);
        let held: Vec<_> = state.flows.values_mut().map(|flow| flow.change.take()).collect();
        let discarded = std::mem::take(&mut state.discarded);
        drop(state);
        deferred::drop_later((links, queue, changing, held, discarded));
        self.news.ring();
    }

    pub(crate) fn due_ns(&self) -> Option<u64> {
        let mut state = self.lock_without_marking();
        self.see_silent(&mut state);
        // Before it is looked: what comes between is seen, or wakes.
        state.heed_displaced();
        let displaced = state.displaced_due_ns();
        if displaced.is_none() {
            // Whoever was to be told has left. The next displacement is to wake this thread again.
            state.is_displacing = false;
            self.is_displacing_woken.store(false, Ordering::Release);
        }
        let change = self.change_due_ns(&state).into_iter().chain(displaced).min();
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
        if state.displaced_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            state.note_displaced(now_ns);
            self.is_displacing_woken.store(false, Ordering::Release);
            self.tell_finished(&state);
        }
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
        // Samples come before the word that they do, so what is open counts.
        let gaps: Vec<_> = state.gaps().collect();
        let all = state.flows.all.iter_mut().zip(gaps);
        all.filter(|((_, flow), _)| flow.is_open())
            .map(|((gid, flow), gaps)| {
                let (rate_hz, bytes_per_s) = flow.rate.now(now_ns);
                let quantile = |share| {
                    let (_, histogram) = flow.latency.as_ref()?;
                    Some(histogram.quantile_ns(share)? as f64 / 1e3)
                };
                let latency = quantile(0.5).zip(quantile(0.99)).zip(flow.latency.as_ref());
                // Links count what they push out for all writers together: each flow's share of what
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
                    latency: latency.map(|((median_us, p99_us), (clock, histogram))| {
                        LatencyReport {
                            median_us,
                            p99_us,
                            max_us: histogram.max_ns() as f64 / 1e3,
                            sum_us: histogram.sum_ns() as f64 / 1e3,
                            counts: histogram
                                .counts(LatencyReport::BOUNDS_US.iter().map(|it| it * 1000)),
                            clock: clock.as_str().to_owned(),
                        }
                    }),
                    displaced: (flow.missing - lost).saturating_sub(gaps),
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

    /// Counts a sample, and says when it was taken if the user gets it.
    fn admit(&self, state: &mut State, sample: &mut Sample, now_ns: u64) -> Option<Taken> {
        let is_admitted = self.is_due(state, sample, now_ns)
            && (self.role == Role::Topic || self.is_for_this_end(state, sample));
        if !is_admitted {
            return None;
        }
        let taken = Taken::at(&sample.envelope, now_ns);
        let (writer, sequence) = (sample.envelope.gid, sample.envelope.sequence);
        let bytes = sample.payload.byte_len().unwrap_or(0) as u64;
        let (taken_ns, latency) = (now_ns, taken.latency);
        state.unbooked = Some(Unbooked { writer, sequence, taken_ns, latency, bytes });
        Some(taken)
    }

    /// Counts a sample, and says whether it is a new one that is still of use.
    fn is_due(&self, state: &mut State, sample: &Sample, now_ns: u64) -> bool {
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
            let age_ns = match envelope.wall_ns {
                // Its publisher says no time: it lives from its arrival on.
                ..=0 => now_ns.saturating_sub(order_ns(sample)),
                wall_ns => u64::try_from(clock::wall_ns().saturating_sub(wall_ns)).unwrap_or(0),
            };
            lifespan_ns <= age_ns
        });
        if is_expired {
            flow.expired += 1;
            state.counters.expired += 1;
        }
        !is_expired
    }

    /// Whether a request or reply is one, and for this end: on some links all clients get the replies to
    /// any of them.
    fn is_for_this_end(&self, state: &mut State, sample: &mut Sample) -> bool {
        if sample.envelope.encoding == Encoding::Opaque {
            let (publisher, why) = (sample.envelope.gid, "no request or reply");
            let flow = state.flows.of(publisher);
            flow.invalid += 1;
            if flow.invalid == 1 {
                told::warn!(service = %self.topic, "dropped what is no request or reply");
            }
            self.count_invalid(state, Some(publisher), why.to_owned());
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

    /// Why a sample is no message of the type.
    fn why_invalid(&self, sample: &Sample) -> Option<String> {
        let (Some(check), Payload::Bytes(payload)) = (self.check, &sample.payload) else {
            return None;
        };
        match sample.envelope.encoding {
            Encoding::Cdr1 => check(payload).err().map(|it| it.to_string()),
            Encoding::Opaque => Some("not CDR".to_owned()),
        }
    }

    /// A sample that was about to be handed out is no message of the type.
    fn refuse(&self, sample: &Sample, why: String) {
        let mut state = self.lock();
        let state = &mut *state;
        state.unbook(sample);
        let publisher = sample.envelope.gid;
        let flow = state.flows.of(publisher);
        flow.invalid += 1;
        if flow.invalid == 1 {
            told::warn!(topic = %self.topic, %publisher, error = why, "an invalid sample was dropped");
        }
        self.count_invalid(state, Some(publisher), why);
    }

    /// Tells of losses that were not told yet. What is displaced or filtered is counted before it is missed, and
    /// hides as many losses until then: the total may come late but never goes back.
    fn tell_losses(&self, state: &mut State) {
        let displaced = state.displaced_now().saturating_add(state.gaps_explained());
        let total = state.missing.saturating_sub(displaced);
        if state.counters.lost < total {
            state.counters.lost = total;
            self.events.push(SubscriptionEvent::MessageLost { total });
        }
        state.is_loss_hidden = state.missing < displaced.saturating_add(state.counters.lost);
    }

    fn tell_matched(&self, state: &State) {
        let current = state.flows.values().filter(|flow| flow.is_connected).count();
        self.session.graph_changed();
        self.events.push(SubscriptionEvent::Matched { current });
        self.tell_liveliness(state);
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

impl Inbox for SubscriptionCore {
    fn cell(&self) -> &Arc<Cell> {
        &self.news
    }

    fn waiting(&self, most: usize) -> usize {
        Self::waiting(self, most)
    }

    fn tally(&self, most: usize) -> Tally {
        Self::tally(self, most)
    }
}

impl State {
    /// Counts the sample that was handed out last.
    fn book(&mut self) {
        let unbooked = self.unbooked.take();
        let Some(Unbooked { writer, taken_ns, latency, bytes, .. }) = unbooked else { return };
        self.counters.received += 1;
        let Some(flow) = self.flows.get_mut(writer) else { return };
        flow.samples += 1;
        flow.bytes += bytes;
        flow.rate.add(taken_ns, 1, bytes);
        let Some(Latency { ns, clock }) = latency else { return };
        // What two clocks measure is not one distribution.
        if flow.latency.as_ref().is_some_and(|(before, _)| *before != clock) {
            flow.latency = None;
        }
        let (_, histogram) = flow.latency.get_or_insert_with(|| (clock, Histogram::new()));
        histogram.add(u64::try_from(ns).unwrap_or(0));
    }

    /// A sample was not handed out after all.
    fn unbook(&mut self, sample: &Sample) {
        let (writer, sequence) = (sample.envelope.gid, sample.envelope.sequence);
        let is_it = |it: &Unbooked| (it.writer, it.sequence) == (writer, sequence);
        if self.unbooked.take_if(|it| is_it(it)).is_some() {
            return;
        }
        // Another thread has taken the next one meanwhile.
        self.counters.received = self.counters.received.saturating_sub(1);
        if let Some(flow) = self.flows.get_mut(writer) {
            let bytes = sample.payload.byte_len().unwrap_or(0) as u64;
            flow.samples = flow.samples.saturating_sub(1);
            flow.bytes = flow.bytes.saturating_sub(bytes);
        }
    }

    /// The oldest sample. One flow alone is read straight off its link, which keeps its depth;
    /// several share one queue of that depth.
    fn next(&mut self, history: History) -> Result<Option<Sample>, tsuji_transport::Error> {
        let next = self.oldest(history)?;
        self.handed_out += u64::from(next.is_some());
        Ok(next)
    }

    fn oldest(&mut self, history: History) -> Result<Option<Sample>, tsuji_transport::Error> {
        let is_simple = self.is_simple();
        if !self.queue.is_empty() && history == History::KeepAll {
            return Ok(self.queue.pop_front().map(|(_, sample)| sample));
        }
        if is_simple {
            let Some(link) = self.links.first() else { return Ok(None) };
            let is_mapped = link.is_mapped;
            let Some(mut sample) = link.reader.take()? else { return Ok(None) };
            if let Some((_, flow)) = self.flows.all.first() {
                sample.envelope.sequence = sample.envelope.sequence.wrapping_add(flow.shift);
            }
            if is_mapped {
                unmap(&mut sample);
            }
            return Ok(Some(sample));
        }
        // Behind what is dropped there may be more, of which nobody will be told again.
        for _ in 0..ROUNDS_IN_VAIN_MAX {
            if !self.gather(history)? || !self.queue.is_empty() {
                return Ok(self.queue.pop_front().map(|(_, sample)| sample));
            }
        }
        self.has_more = true;
        Ok(None)
    }

    /// Takes note of when the newest samples came, taken or not.
    fn see_arrivals(&mut self) {
        for (writer, flow) in self.flows.all.iter_mut().filter(|(_, flow)| flow.is_open()) {
            let newest_ns = self.links.iter().filter_map(|link| link.reader.newest_ns(*writer));
            let Some(newest_ns) = newest_ns.max() else { continue };
            flow.last_sign_ns = flow.last_sign_ns.max(newest_ns);
            self.last_sample_ns = self.last_sample_ns.max(newest_ns);
        }
    }

    fn is_simple(&self) -> bool {
        self.queue.is_empty()
            && self.content.filter.is_none()
            && self.links.len() <= 1
            && self.flows.all.len() <= 1
            && self.changing.is_none()
    }

    /// Takes what all links have, at most what the depth lets be kept, in the order of sending. Answers whether
    /// they had something.
    fn gather(&mut self, history: History) -> Result<bool, tsuji_transport::Error> {
        let depth = match history {
            History::KeepLast(depth) => depth as usize,
            // Samples that wait on their links hold their writers back, as they must.
            History::KeepAll => 1,
        };
        let before = self.queue.len();
        let links = std::mem::take(&mut self.links);
        let mut result = Ok(false);
        for link in &links {
            // A fast writer could keep this going for ever; a few rounds are all that can matter.
            for _ in 0..depth.saturating_mul(2 * self.flows.all.len()).max(1) {
                if history == History::KeepAll && self.must_wait(&link.id) {
                    break;
                }
                match link.reader.take() {
                    Ok(Some(sample)) => {
                        self.sort_in(&link.id, link.is_mapped, sample);
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
                        // Told with the next one of which it is told.
                        self.counters.invalid += u64::from(is_gone);
                        break;
                    }
                }
            }
            if result.is_err() {
                break;
            }
        }
        self.links = links;
        self.end_trials();
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
            for (_, sample) in self.queue.drain(..too_many) {
                if let Some(flow) = self.flows.get_mut(sample.envelope.gid) {
                    flow.displaced += 1;
                    // Nobody else is there to be told.
                    self.is_displacing |= flow.is_connected;
                }
                self.discarded.push(sample);
            }
            self.displaced += too_many as u64;
        }
    }
}

impl FlowCount {
    fn is_open(&self) -> bool {
        self.link.is_some()
    }

    /// Whether a transport brings its samples, or may yet.
    fn takes_from(&self, transport: &TransportId) -> bool {
        self.link.as_ref() == Some(transport)
            || self.change.as_ref().is_some_and(|change| change.has(transport))
    }

    fn new() -> Self {
        Self {
            link: None,
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
            gaps: 0,
            filtered_next: 0,
            displaced: 0,
            displaced_told: 0,
            displaced_before: 0,
            latency: None,
            rate: Rate::default(),
            last_sign_ns: 0,
            manual_lease_ns: None,
            is_watched_by_engine: false,
            lifespan_ns: None,
            is_alive: true,
        }
    }
}

/// Takes the header off a request or reply that has said nothing beside it. What has none is no CDR from here on.
fn unmap(sample: &mut Sample) {
    if sample.envelope.related.is_some() {
        return;
    }
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

/// How often what came is looked through at a time, without finding what is to be delivered. A fast publisher of which all
/// is filtered out could keep this going for ever, and everybody waits for the lock.
const ROUNDS_IN_VAIN_MAX: usize = 64;

/// Counts of publishers that left, kept for reports. Beyond it they are dropped.
const FLOWS_KEPT_MAX: usize = 256;
