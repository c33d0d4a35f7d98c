//! How a subscription's flows change their links: several at once bring samples, and each is delivered
//! once and in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tsuji_core::handover::{Arrival, Cut, Epoch, ReaderHandover};
use tsuji_core::{History, Reliability, TransportId};
use tsuji_platform::clock;
use tsuji_transport::deferred::{self, told};
use tsuji_transport::{Gid, Reader, Sample};

use super::{Link, State, SubscriptionCore, order_ns, unmap};
use crate::Role;
use crate::pacing::{LINK_IDLE_MAX, after};

/// A flow that has several links.
pub(super) struct Change {
    handover: ReaderHandover<Sample>,
    /// The links, the oldest first. Those that are finished stay until they are left.
    links: Vec<(Epoch, TransportId)>,
    /// Since when it is known where the link that delivers ends.
    ending_since_ns: Option<u64>,
    /// The newest link of which it was told that it carries.
    shown: Epoch,
}

impl Change {
    pub(super) fn has(&self, transport: &TransportId) -> bool {
        self.links.iter().any(|(_, id)| id == transport)
    }

    /// Whether the flow has one link again.
    fn is_over(&self) -> bool {
        self.handover.is_settled() && self.links.len() == 1
    }

    fn epoch_on(&self, transport: &TransportId) -> Option<Epoch> {
        self.links.iter().find(|(_, id)| id == transport).map(|(epoch, _)| *epoch)
    }

    /// Something has come by a link: if it is a new one, it carries.
    fn show(&mut self, writer: Gid, link: &TransportId, shown: &mut Vec<(Gid, Epoch)>) {
        if let Some(epoch) = self.epoch_on(link).filter(|epoch| self.shown < *epoch) {
            self.shown = epoch;
            shown.push((writer, epoch));
        }
    }

    /// The link that delivers.
    fn current(&self) -> Option<&TransportId> {
        let current = self.handover.current();
        self.links.iter().find(|(epoch, _)| *epoch == current).map(|(_, id)| id)
    }
}

/// The changes of a subscription.
#[derive(Default)]
pub(super) struct Handovers {
    flows: usize,
    /// Those that have gone on to a new link, to be told.
    finished: Vec<Finished>,
    /// Links that flows have gone on to, which count alone from then on.
    taken_up: Vec<TransportId>,
    /// Links by which something has come before they were to carry, to be told.
    shown: Vec<(Gid, Epoch)>,
    /// How much was displaced here of which publisher, to be told.
    pub(super) displaced: Vec<(Gid, u64)>,
    /// Links that are closed, to be dropped when no lock is held.
    closed: Vec<Arc<dyn Reader>>,
    /// Links over an engine that no flow has any more, and when they are closed.
    idle: Vec<(TransportId, u64)>,
}

impl Handovers {
    pub(super) fn is_none(&self) -> bool {
        self.flows == 0
    }

    fn has_news(&self) -> bool {
        let is_told =
            self.finished.is_empty() && self.shown.is_empty() && self.displaced.is_empty();
        !(is_told && self.closed.is_empty())
    }
}

/// What changes of a subscription have come to.
pub(crate) struct HandoverEvents {
    pub(crate) finished: Vec<Finished>,
    /// Links that carry, by publisher.
    pub(crate) shown: Vec<(Gid, Epoch)>,
    /// How many samples of a publisher were displaced here after they were sent.
    pub(crate) displaced: Vec<(Gid, u64)>,
}

/// A flow has all that the links before one brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) writer: Gid,
    /// The link that delivers now.
    pub(crate) epoch: Epoch,
    /// The most samples that were held for it.
    pub(crate) held: u64,
}

impl SubscriptionCore {
    /// The publisher sends on another link from here on.
    pub(crate) fn change(&self, writer: Gid, cut: Cut) {
        let mut state = self.lock();
        let Some(change) = state.flows.get_mut(writer).and_then(|it| it.change.as_mut()) else {
            return;
        };
        if change.handover.cut(cut) {
            change.ending_since_ns.get_or_insert_with(clock::monotonic_ns);
        }
        // Under the same lock: what was held goes out before anything that comes behind it.
        self.progress(&mut state, clock::monotonic_ns());
    }

    /// A link that was opened for another is not wanted any more.
    pub(crate) fn withdraw(&self, writer: Gid, epoch: Epoch) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(flow) = state.flows.get_mut(writer) else { return };
        let link = match &mut flow.change {
            Some(change) => {
                let Some(at) = change.links.iter().position(|(it, _)| *it == epoch) else { return };
                change.handover.withdraw(epoch);
                if change.handover.is_open(epoch) {
                    // It carries already.
                    return;
                }
                change.links.remove(at).1
            }
            None if flow.epoch == epoch && !flow.is_connected => {
                let Some(link) = flow.link.take() else { return };
                link
            }
            None => return,
        };
        if let Some(it) = state.links.iter_mut().find(|it| it.id == link) {
            it.forget(writer, state.flows.of(writer));
            it.end_trial();
        }
        self.after_change(state, writer);
        self.leave_link(state, &link);
        self.tell_finished(state);
    }

    /// Takes what the links have that end, and goes on to the next ones where that is all.
    /// Takes what old links have brought, where a flow goes on to another one and nobody else takes it.
    pub(crate) fn drain_old_links(&self, now_ns: u64) {
        let mut state = self.lock_without_marking();
        if !state.changing.is_none() {
            self.progress(&mut state, now_ns);
        }
    }

    pub(super) fn go_on_changing(&self, now_ns: u64) {
        let mut state = self.lock();
        self.progress(&mut state, now_ns);
        self.close_idle_links(&mut state, now_ns);
    }

    fn progress(&self, state: &mut State, now_ns: u64) {
        if state.changing.is_none() {
            return;
        }
        let before = state.queue.len();
        let changing = state.flows.all.iter().filter(|(_, flow)| flow.change.is_some());
        for writer in changing.map(|(writer, _)| *writer).collect::<Vec<_>>() {
            // What the cut has let out.
            self.after_change(state, writer);
            while self.go_on_with(state, writer, now_ns) {}
        }
        state.put_in_order(before, self.history());
        if !state.queue.is_empty() {
            self.news.ring();
        }
    }

    /// Goes on with one flow. Answers whether it is on another link now.
    fn go_on_with(&self, state: &mut State, writer: Gid, now_ns: u64) -> bool {
        let wait = self.wait();
        let Some(change) = state.flows.get_mut(writer).and_then(|it| it.change.as_mut()) else {
            return false;
        };
        if !change.handover.is_ending() {
            return false;
        }
        let epoch = change.handover.current();
        let Some(id) = change.current().cloned() else { return false };
        let is_late = change.ending_since_ns.is_some_and(|since| after(since, wait) <= now_ns);
        let is_immediate = state.drain(&id, self.queue_max());
        let is_late = is_late && state.queue.len() < self.queue_max();
        let flow = state.flows.of(writer);
        let Some(change) = &mut flow.change else { return false };
        if change.handover.current() == epoch && (is_immediate || is_late) {
            if !is_immediate {
                told::warn!(topic = %self.topic, link = %id, "the old link did not bring all in time");
            }
            change.handover.over(epoch);
        }
        let is_new = change.handover.current() != epoch;
        self.after_change(state, writer);
        is_new
    }

    /// Puts out what need not be held any longer, and leaves the links that are finished.
    fn after_change(&self, state: &mut State, writer: Gid) {
        state.put_out(writer);
        let State { flows, links, .. } = state;
        let Some(flow) = flows.get_mut(writer) else { return };
        let Some(change) = &mut flow.change else { return };
        let left: Vec<_> =
            change.links.extract_if(.., |(it, _)| !change.handover.is_open(*it)).collect();
        for (_, id) in &left {
            if let Some(link) = links.iter().find(|link| link.id == *id) {
                link.forget(writer, flow);
            }
        }
        let is_over = flow.change.as_ref().is_some_and(|change| change.is_over());
        if is_over {
            flows.of(writer).change = None;
            state.changing.flows -= 1;
        }
        for (_, id) in &left {
            self.leave_link(state, id);
        }
        self.tell_finished(state);
    }

    /// Closes a link that no flow has; one over an engine, which takes long to open, after a while.
    fn leave_link(&self, state: &mut State, id: &TransportId) {
        if state.links.iter().any(|link| link.id == *id && !link.is_immediate) {
            state.changing.idle.retain(|(idle, _)| idle != id);
            let until_ns = after(clock::monotonic_ns(), LINK_IDLE_MAX);
            state.changing.idle.push((id.clone(), until_ns));
            return self.session.waker.give();
        }
        let closed = self.close_unused(state, id);
        state.changing.closed.extend(closed);
    }

    /// Closes the links that have been idle long enough, and are still.
    fn close_idle_links(&self, state: &mut State, now_ns: u64) {
        let due = state.changing.idle.extract_if(.., |(_, until_ns)| *until_ns <= now_ns);
        for (id, _) in due.collect::<Vec<_>>() {
            let closed = self.close_unused(state, &id);
            state.changing.closed.extend(closed);
        }
        self.tell_finished(state);
    }

    /// Wakes the graph's thread if it has something to tell, or to close.
    pub(super) fn tell_finished(&self, state: &State) {
        if state.is_displacing && !self.is_displacing_woken.swap(true, Ordering::AcqRel) {
            self.session.waker.give();
        }
        if state.changing.has_news() && !self.has_handover_events.swap(true, Ordering::AcqRel) {
            self.session.waker.give();
        }
    }

    /// The publisher is gone: what has come goes out, whatever link it took.
    pub(super) fn end_change(&self, state: &mut State, writer: Gid) {
        let Some(change) = state.flows.get_mut(writer).and_then(|it| it.change.as_ref()) else {
            return;
        };
        let before = state.queue.len();
        for (_, id) in change.links.clone() {
            state.drain(&id, usize::MAX);
        }
        let flow = state.flows.of(writer);
        if let Some(change) = &mut flow.change {
            change.handover.end();
        }
        self.after_change(state, writer);
        state.put_in_order(before, self.history());
    }

    /// Whether there is something to be [taken](Self::take_handover_events).
    pub(crate) fn has_news(&self) -> bool {
        self.has_handover_events.load(Ordering::Acquire)
    }

    /// What the graph is to tell. What is closed is dropped here.
    pub(crate) fn take_handover_events(&self) -> Option<HandoverEvents> {
        if !self.has_handover_events.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.lock();
        let changing = state.flows.all.iter().filter(|(_, flow)| flow.change.is_some());
        for writer in changing.map(|(writer, _)| *writer).collect::<Vec<_>>() {
            self.after_change(&mut state, writer);
        }
        if !state.queue.is_empty() {
            self.news.ring();
        }
        let finished = std::mem::take(&mut state.changing.finished);
        let shown = std::mem::take(&mut state.changing.shown);
        let displaced = std::mem::take(&mut state.changing.displaced);
        let closed = std::mem::take(&mut state.changing.closed);
        let discarded = std::mem::take(&mut state.discarded);
        self.has_handover_events.store(false, Ordering::Release);
        drop(state);
        // Waits for callbacks of an engine; and samples are the user's.
        deferred::drop_later((closed, discarded));
        Some(HandoverEvents { finished, shown, displaced })
    }

    /// When [`go_on_changing`](Self::go_on_changing) wants to be called.
    pub(super) fn change_due_ns(&self, state: &State) -> Option<u64> {
        let idle = state.changing.idle.iter().map(|(_, until_ns)| *until_ns).min();
        if state.changing.is_none() {
            return idle;
        }
        let changes = state.flows.values().filter_map(|flow| flow.change.as_ref());
        let ending = changes.filter_map(|it| it.ending_since_ns).map(|it| after(it, self.wait()));
        ending.chain(idle).min()
    }

    /// How long an old link may take to bring what it owes.
    fn wait(&self) -> Duration {
        match self.qos.reliability {
            Reliability::Reliable => WAIT_RELIABLE,
            Reliability::BestEffort => WAIT_BEST_EFFORT,
        }
    }

    /// How many samples may wait in the queue before nothing more is taken off the links. Of those of
    /// which the last are kept the queue keeps no more anyway.
    fn queue_max(&self) -> usize {
        match self.history() {
            History::KeepLast(_) => usize::MAX,
            History::KeepAll => self.session.keep_all_max() as usize,
        }
    }

    /// How many samples may be held for a flow: as many as may wait.
    fn held_max(&self) -> usize {
        match self.history() {
            History::KeepLast(depth) => depth as usize,
            History::KeepAll => self.session.keep_all_max() as usize,
        }
    }
}

impl State {
    /// Another link is open for a flow that has one.
    pub(super) fn begin_change(
        &mut self,
        writer: Gid,
        epoch: Epoch,
        link: TransportId,
        subscription_core: &SubscriptionCore,
    ) {
        let queued = self.queue.iter().rev().find(|(_, sample)| sample.envelope.gid == writer);
        let queued = queued.map(|(_, sample)| sample.envelope.sequence.saturating_add(1));
        let flow = self.flows.of(writer);
        let Some(join_state) = flow.link.clone() else { return };
        // What was filtered out has come as well.
        let filtered = Some(flow.filtered_next).filter(|it| *it != 0);
        let (next, shift, old) = (flow.next.max(queued).max(filtered), flow.shift, flow.epoch);
        let flows = &mut self.changing.flows;
        let change = flow.change.get_or_insert_with(|| {
            *flows += 1;
            let handover = ReaderHandover::new(old, next, shift, subscription_core.held_max());
            Box::new(Change {
                handover: match subscription_core.role {
                    Role::Reply => handover.counted_apart(),
                    Role::Topic | Role::Request => handover,
                },
                links: vec![(old, join_state)],
                ending_since_ns: None,
                shown: old,
            })
        });
        change.handover.open(epoch);
        if let Some(it) = self.links.iter_mut().find(|it| it.id == link) {
            it.trial_from.get_or_insert_with(|| it.reader.displaced());
        }
        change.links.push((epoch, link));
    }

    /// Takes all that a link has, as long as so many wait at most. Answers whether that is all that was sent on it.
    fn drain(&mut self, link: &TransportId, queue_max: usize) -> bool {
        let Some(link) = self.links.iter().find(|it| it.id == *link) else { return true };
        let Link { id, reader, is_immediate, is_mapped, .. } = link.clone();
        while self.queue.len() < queue_max {
            match reader.take() {
                Ok(Some(sample)) => self.sort_in(&id, is_mapped, sample),
                Ok(None) => return is_immediate,
                Err(error) if error.kind() == tsuji_transport::ErrorKind::Invalid => {
                    self.counters.invalid += 1;
                }
                // It can be looked at later.
                Err(_) => return false,
            }
        }
        false
    }

    /// Whether nothing is to be taken from a link now: too much is held of what it brings.
    pub(super) fn must_wait(&self, link: &TransportId) -> bool {
        if self.changing.is_none() {
            return false;
        }
        let changes = self.flows.values().filter_map(|flow| flow.change.as_ref());
        let mut held = changes.filter(|it| it.has(link) && it.current() != Some(link));
        held.any(|it| it.handover.is_full())
    }

    /// Puts a sample that a link brought into the queue, or holds it, or drops it.
    pub(super) fn sort_in(&mut self, link: &TransportId, is_mapped: bool, mut sample: Sample) {
        if is_mapped {
            unmap(&mut sample);
        }
        let at = self.flows.place_of(sample.envelope.gid);
        let flow = &mut self.flows.all[at].1;
        let Some(change) = &mut flow.change else {
            if flow.link.as_ref().is_some_and(|it| it != link) {
                // A straggler of a link that was left: it has come by that, or was given up.
                return self.discarded.push(sample);
            }
            sample.envelope.sequence = sample.envelope.sequence.wrapping_add(flow.shift);
            return self.put_in(at, sample);
        };
        let (writer, sequence) = (sample.envelope.gid, sample.envelope.sequence);
        let arrival = match change.epoch_on(link) {
            Some(epoch) => change.handover.arrive(epoch, sequence, sample),
            None => Arrival::Repeated(sample),
        };
        match arrival {
            Arrival::Deliver(number, mut sample) => {
                sample.envelope.sequence = number;
                self.put_in(at, sample);
            }
            Arrival::Held(oldest) => {
                change.show(writer, link, &mut self.changing.shown);
                // Before the cut it comes by the old link too.
                self.displaced += u64::from(oldest.is_some() && change.handover.is_ending());
                self.discarded.extend(oldest);
            }
            Arrival::Repeated(sample) => {
                // What a new link brings as well was to show that it carries.
                let is_current = change.current().is_none_or(|current| current == link);
                if is_current && flow.since <= sequence.wrapping_add(flow.shift) {
                    flow.duplicates += 1;
                    self.counters.duplicates += 1;
                }
                change.show(writer, link, &mut self.changing.shown);
                self.discarded.push(sample);
            }
        }
        self.put_out(writer);
    }

    /// Puts a sample at the end of the queue, behind all of its writer.
    fn put_in(&mut self, at: usize, sample: Sample) {
        if self.is_filtered(at, &sample) {
            return self.discarded.push(sample);
        }
        let flow = &mut self.flows.all[at].1;
        flow.last_order_ns = flow.last_order_ns.max(order_ns(&sample));
        self.queue.push_back((flow.last_order_ns, sample));
    }

    /// Puts out what need not be held any longer, and takes note of where the flow is now.
    fn put_out(&mut self, writer: Gid) {
        let at = self.flows.place_of(writer);
        loop {
            let Some(change) = &mut self.flows.all[at].1.change else { return };
            self.discarded.extend(change.handover.discarded());
            let Some((number, mut sample)) = change.handover.next_due() else { break };
            sample.envelope.sequence = number;
            self.put_in(at, sample);
        }
        let flow = &mut self.flows.all[at].1;
        let Some(change) = &mut flow.change else { return };
        let epoch = change.handover.current();
        if flow.epoch != epoch {
            flow.epoch = epoch;
            flow.link = change.current().cloned();
            flow.shift = change.handover.shift();
            flow.since = change.handover.since().unwrap_or(0);
            change.ending_since_ns = change.handover.is_ending().then(clock::monotonic_ns);
            let held = change.handover.held_peak() as u64;
            let link = flow.link.clone();
            self.changing.finished.push(Finished { writer, epoch, held });
            self.changing.taken_up.extend(link);
            self.end_trials();
            // What is told is how late samples come by what carries them now.
            self.book();
            self.flows.all[at].1.latency = None;
        }
    }

    /// Lets links count alone that flows have gone on to. While samples are gathered from all links that is later.
    pub(super) fn end_trials(&mut self) {
        while !self.links.is_empty()
            && let Some(id) = self.changing.taken_up.pop()
        {
            // What waits there, and came by the last link too, would be counted as displaced when it is pushed out.
            if !self.keeps_all {
                self.drain(&id, usize::MAX);
            }
            if let Some(link) = self.links.iter_mut().find(|it| it.id == id) {
                link.end_trial();
            }
        }
    }
}

/// What was sent reliably comes, or its link is broken.
const WAIT_RELIABLE: Duration = Duration::from_secs(2);
/// What was not may be lost.
const WAIT_BEST_EFFORT: Duration = Duration::from_millis(100);
