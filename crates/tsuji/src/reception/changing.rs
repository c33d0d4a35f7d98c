//! How a subscription's flows change their roads: several at once bring samples, and each is delivered
//! once and in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tsuji_core::handover::{Arrival, Cut, Epoch, Intake};
use tsuji_core::{History, Reliability, TransportId};
use tsuji_platform::clock;
use tsuji_transport::{Gid, Reader, Sample};

use super::{Reception, Road, State, order_ns, unmap};
use crate::Role;
use crate::pacing::{ROAD_IDLE_MAX, after};

/// A flow that has several roads.
pub(super) struct Change {
    intake: Intake<Sample>,
    /// The roads, the oldest first. Those that are finished stay until they are left.
    lanes: Vec<(Epoch, TransportId)>,
    /// Since when it is known where the road that delivers ends.
    ending_since_ns: Option<u64>,
    /// The newest road of which it was told that it carries.
    shown: Epoch,
}

impl Change {
    pub(super) fn has(&self, transport: &TransportId) -> bool {
        self.lanes.iter().any(|(_, id)| id == transport)
    }

    fn epoch_on(&self, transport: &TransportId) -> Option<Epoch> {
        self.lanes.iter().find(|(_, id)| id == transport).map(|(epoch, _)| *epoch)
    }

    /// Something has come by a road: if it is a new one, it carries.
    fn show(&mut self, writer: Gid, road: &TransportId, shown: &mut Vec<(Gid, Epoch)>) {
        if let Some(epoch) = self.epoch_on(road).filter(|epoch| self.shown < *epoch) {
            self.shown = epoch;
            shown.push((writer, epoch));
        }
    }

    /// The road that delivers.
    fn current(&self) -> Option<&TransportId> {
        let current = self.intake.current();
        self.lanes.iter().find(|(epoch, _)| *epoch == current).map(|(_, id)| id)
    }
}

/// The changes of a subscription.
#[derive(Default)]
pub(super) struct Changing {
    flows: usize,
    /// Those that have gone on to a new road, to be told.
    finished: Vec<Finished>,
    /// Roads by which something has come before they were to carry, to be told.
    shown: Vec<(Gid, Epoch)>,
    /// Roads that are closed, to be dropped when no lock is held.
    closed: Vec<Arc<dyn Reader>>,
    /// Roads over an engine that no flow has any more, and when they are closed.
    idle: Vec<(TransportId, u64)>,
}

impl Changing {
    pub(super) fn is_none(&self) -> bool {
        self.flows == 0
    }

    fn has_news(&self) -> bool {
        !(self.finished.is_empty() && self.shown.is_empty() && self.closed.is_empty())
    }
}

/// What changes of a subscription have come to.
pub(crate) struct ChangeNews {
    pub(crate) finished: Vec<Finished>,
    /// Roads that carry, by publisher.
    pub(crate) shown: Vec<(Gid, Epoch)>,
    /// To be dropped when no lock is held.
    pub(crate) discarded: Vec<Sample>,
}

/// A flow has all that the roads before one brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) writer: Gid,
    /// The road that delivers now.
    pub(crate) epoch: Epoch,
    /// The most samples that were held for it.
    pub(crate) held: u64,
}

impl Reception {
    /// The publisher sends on another road from here on.
    pub(crate) fn change(&self, writer: Gid, cut: Cut) {
        let mut state = self.lock();
        let Some(change) = state.flows.get_mut(writer).and_then(|it| it.change.as_mut()) else {
            return;
        };
        if change.intake.cut(cut) {
            change.ending_since_ns.get_or_insert_with(clock::monotonic_ns);
        }
        // Under the same lock: what was held goes out before anything that comes behind it.
        self.progress(&mut state, clock::monotonic_ns());
    }

    /// A road that was opened for another is not wanted any more.
    pub(crate) fn withdraw(&self, writer: Gid, epoch: Epoch) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(flow) = state.flows.get_mut(writer) else { return };
        let road = match &mut flow.change {
            Some(change) => {
                let Some(at) = change.lanes.iter().position(|(it, _)| *it == epoch) else { return };
                change.intake.withdraw(epoch);
                if change.intake.is_open(epoch) {
                    // It carries already.
                    return;
                }
                change.lanes.remove(at).1
            }
            None if flow.epoch == epoch && !flow.is_connected => {
                let Some(road) = flow.road.take() else { return };
                road
            }
            None => return,
        };
        if let Some(it) = state.roads.iter_mut().find(|it| it.id == road) {
            it.reader.forget(writer);
            it.end_trial();
        }
        self.after_change(state, writer);
        self.leave_road(state, &road);
        self.tell_finished(state);
    }

    /// Takes what the roads have that end, and goes on to the next ones where that is all.
    pub(super) fn go_on_changing(&self, now_ns: u64) {
        let mut state = self.lock();
        self.progress(&mut state, now_ns);
        self.close_idle_roads(&mut state, now_ns);
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

    /// Goes on with one flow. Answers whether it is on another road now.
    fn go_on_with(&self, state: &mut State, writer: Gid, now_ns: u64) -> bool {
        let wait = self.wait();
        let Some(change) = state.flows.get_mut(writer).and_then(|it| it.change.as_mut()) else {
            return false;
        };
        if !change.intake.is_ending() {
            return false;
        }
        let epoch = change.intake.current();
        let Some(id) = change.current().cloned() else { return false };
        let is_late = change.ending_since_ns.is_some_and(|since| after(since, wait) <= now_ns);
        let is_immediate = state.drain(&id, self.queue_max());
        let is_late = is_late && state.queue.len() < self.queue_max();
        let flow = state.flows.of(writer);
        let Some(change) = &mut flow.change else { return false };
        if change.intake.current() == epoch && (is_immediate || is_late) {
            if !is_immediate {
                tracing::warn!(topic = %self.topic, road = %id, "the old road did not bring all in time");
            }
            change.intake.over(epoch);
        }
        let is_new = change.intake.current() != epoch;
        self.after_change(state, writer);
        is_new
    }

    /// Puts out what need not be held any longer, and leaves the roads that are finished.
    fn after_change(&self, state: &mut State, writer: Gid) {
        state.put_out(writer);
        let State { flows, roads, .. } = state;
        let Some(change) = flows.get_mut(writer).and_then(|it| it.change.as_mut()) else { return };
        let left: Vec<_> =
            change.lanes.extract_if(.., |(it, _)| !change.intake.is_open(*it)).collect();
        for (_, id) in &left {
            if let Some(road) = roads.iter().find(|road| road.id == *id) {
                road.reader.forget(writer);
            }
        }
        if change.intake.is_settled() && change.lanes.len() == 1 {
            flows.of(writer).change = None;
            state.changing.flows -= 1;
        }
        for (_, id) in &left {
            self.leave_road(state, id);
        }
        self.tell_finished(state);
    }

    /// Closes a road that no flow has; one over an engine, which takes long to open, after a while.
    fn leave_road(&self, state: &mut State, id: &TransportId) {
        if state.roads.iter().any(|road| road.id == *id && !road.is_immediate) {
            state.changing.idle.retain(|(idle, _)| idle != id);
            let until_ns = after(clock::monotonic_ns(), ROAD_IDLE_MAX);
            state.changing.idle.push((id.clone(), until_ns));
            return self.host.nudge.give();
        }
        let closed = self.close_unused(state, id);
        state.changing.closed.extend(closed);
    }

    /// Closes the roads that have been idle long enough, and are still.
    fn close_idle_roads(&self, state: &mut State, now_ns: u64) {
        let due = state.changing.idle.extract_if(.., |(_, until_ns)| *until_ns <= now_ns);
        for (id, _) in due.collect::<Vec<_>>() {
            let closed = self.close_unused(state, &id);
            state.changing.closed.extend(closed);
        }
        self.tell_finished(state);
    }

    /// Wakes the directory's thread if it has something to tell, or to close.
    pub(super) fn tell_finished(&self, state: &State) {
        if state.changing.has_news() && !self.has_change_news.swap(true, Ordering::AcqRel) {
            self.host.nudge.give();
        }
    }

    /// The publisher is gone: what has come goes out, whatever road it took.
    pub(super) fn end_change(&self, state: &mut State, writer: Gid) {
        let Some(change) = state.flows.get_mut(writer).and_then(|it| it.change.as_ref()) else {
            return;
        };
        let before = state.queue.len();
        for (_, id) in change.lanes.clone() {
            state.drain(&id, usize::MAX);
        }
        let flow = state.flows.of(writer);
        if let Some(change) = &mut flow.change {
            change.intake.end();
        }
        self.after_change(state, writer);
        state.put_in_order(before, self.history());
    }

    /// What the directory is to tell. What is closed is dropped here.
    pub(crate) fn take_change_news(&self) -> Option<ChangeNews> {
        if !self.has_change_news.load(Ordering::Acquire) {
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
        let closed = std::mem::take(&mut state.changing.closed);
        let discarded = std::mem::take(&mut state.discarded);
        self.has_change_news.store(false, Ordering::Release);
        drop(state);
        // Waits for callbacks of an engine.
        drop(closed);
        Some(ChangeNews { finished, shown, discarded })
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

    /// How long an old road may take to bring what it owes.
    fn wait(&self) -> Duration {
        match self.qos.reliability {
            Reliability::Reliable => WAIT_RELIABLE,
            Reliability::BestEffort => WAIT_BEST_EFFORT,
        }
    }

    /// How many samples may wait in the queue before nothing more is taken off the roads. Of those of
    /// which the last are kept the queue keeps no more anyway.
    fn queue_max(&self) -> usize {
        match self.history() {
            History::KeepLast(_) => usize::MAX,
            History::KeepAll => self.host.keep_all_max() as usize,
        }
    }

    /// How many samples may be held for a flow: as many as may wait.
    fn held_max(&self) -> usize {
        match self.history() {
            History::KeepLast(depth) => depth as usize,
            History::KeepAll => self.host.keep_all_max() as usize,
        }
    }
}

impl State {
    /// Another road is open for a flow that has one.
    pub(super) fn begin_change(
        &mut self,
        writer: Gid,
        epoch: Epoch,
        road: TransportId,
        reception: &Reception,
    ) {
        let queued = self.queue.iter().rev().find(|(_, sample)| sample.envelope.gid == writer);
        let queued = queued.map(|(_, sample)| sample.envelope.sequence.saturating_add(1));
        let flow = self.flows.of(writer);
        let Some(standing) = flow.road.clone() else { return };
        let (next, shift, old) = (flow.next.max(queued), flow.shift, flow.epoch);
        let flows = &mut self.changing.flows;
        let change = flow.change.get_or_insert_with(|| {
            *flows += 1;
            let intake = Intake::new(old, next, shift, reception.held_max());
            Box::new(Change {
                intake: match reception.role {
                    Role::Reply => intake.counted_apart(),
                    Role::Topic | Role::Request => intake,
                },
                lanes: vec![(old, standing)],
                ending_since_ns: None,
                shown: old,
            })
        });
        change.intake.open(epoch);
        if let Some(it) = self.roads.iter_mut().find(|it| it.id == road) {
            it.trial_from.get_or_insert_with(|| it.reader.displaced());
        }
        change.lanes.push((epoch, road));
    }

    /// Takes all that a road has, as long as so many wait at most. Answers whether that is all that was sent on it.
    fn drain(&mut self, road: &TransportId, queue_max: usize) -> bool {
        let Some(road) = self.roads.iter().find(|it| it.id == *road) else { return true };
        let Road { id, reader, is_immediate, is_mapped, .. } = road.clone();
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

    /// Whether nothing is to be taken from a road now: too much is held of what it brings.
    pub(super) fn must_wait(&self, road: &TransportId) -> bool {
        if self.changing.is_none() {
            return false;
        }
        let changes = self.flows.values().filter_map(|flow| flow.change.as_ref());
        let mut held = changes.filter(|it| it.has(road) && it.current() != Some(road));
        held.any(|it| it.intake.is_full())
    }

    /// Puts a sample that a road brought into the queue, or holds it, or drops it.
    pub(super) fn sort_in(&mut self, road: &TransportId, is_mapped: bool, mut sample: Sample) {
        if is_mapped {
            unmap(&mut sample);
        }
        let at = self.flows.place_of(sample.envelope.gid);
        let flow = &mut self.flows.all[at].1;
        let Some(change) = &mut flow.change else {
            if flow.road.as_ref().is_some_and(|it| it != road) {
                // A straggler of a road that was left: it has come by that, or was given up.
                return self.discarded.push(sample);
            }
            sample.envelope.sequence = sample.envelope.sequence.wrapping_add(flow.shift);
            return self.put_in(at, sample);
        };
        let (writer, sequence) = (sample.envelope.gid, sample.envelope.sequence);
        let arrival = match change.epoch_on(road) {
            Some(epoch) => change.intake.arrive(epoch, sequence, sample),
            None => Arrival::Repeated(sample),
        };
        match arrival {
            Arrival::Deliver(number, mut sample) => {
                sample.envelope.sequence = number;
                self.put_in(at, sample);
            }
            Arrival::Held(oldest) => {
                change.show(writer, road, &mut self.changing.shown);
                // Before the cut it comes by the old road too.
                self.displaced += u64::from(oldest.is_some() && change.intake.is_ending());
                self.discarded.extend(oldest);
            }
            Arrival::Repeated(sample) => {
                // What a new road brings as well was to show that it carries.
                let is_current = change.current().is_none_or(|current| current == road);
                if is_current && flow.since <= sequence.wrapping_add(flow.shift) {
                    flow.duplicates += 1;
                    self.counters.duplicates += 1;
                }
                change.show(writer, road, &mut self.changing.shown);
                self.discarded.push(sample);
            }
        }
        self.put_out(writer);
    }

    /// Puts a sample at the end of the queue, behind all of its writer.
    fn put_in(&mut self, at: usize, sample: Sample) {
        let flow = &mut self.flows.all[at].1;
        flow.last_order_ns = flow.last_order_ns.max(order_ns(&sample));
        self.queue.push_back((flow.last_order_ns, sample));
    }

    /// Puts out what need not be held any longer, and takes note of where the flow is now.
    fn put_out(&mut self, writer: Gid) {
        let at = self.flows.place_of(writer);
        loop {
            let Some(change) = &mut self.flows.all[at].1.change else { return };
            self.discarded.extend(change.intake.discarded());
            let Some((number, mut sample)) = change.intake.next_due() else { break };
            sample.envelope.sequence = number;
            self.put_in(at, sample);
        }
        let flow = &mut self.flows.all[at].1;
        let Some(change) = &mut flow.change else { return };
        let epoch = change.intake.current();
        if flow.epoch != epoch {
            flow.epoch = epoch;
            flow.road = change.current().cloned();
            flow.shift = change.intake.shift();
            flow.since = change.intake.since().unwrap_or(0);
            if let Some(road) = self.roads.iter_mut().find(|it| Some(&it.id) == flow.road.as_ref())
            {
                road.end_trial();
            }
            change.ending_since_ns = change.intake.is_ending().then(clock::monotonic_ns);
            let held = change.intake.held_peak() as u64;
            self.changing.finished.push(Finished { writer, epoch, held });
        }
    }
}

/// What was sent reliably comes, or its road is broken.
const WAIT_RELIABLE: Duration = Duration::from_secs(2);
/// What was not may be lost.
const WAIT_BEST_EFFORT: Duration = Duration::from_millis(100);
