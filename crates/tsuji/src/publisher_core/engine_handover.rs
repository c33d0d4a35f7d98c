//! How the readers of a publisher go over from one engine of a wire to the other.
//!
//! Whoever reads on that wire hears both engines, so they all go at once: when each is matched with the new
//! writer and has acknowledged what came by the old one. A reliable publisher waits for that, which takes as
//! long as an acknowledgement; readers that do not give one in time may get late what they were sent before.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tsuji_core::flows::Connected;
use tsuji_core::{Reliability, TransportId};
use tsuji_platform::clock;
use tsuji_transport::{Gid, deferred};

use super::links::LinkId;
use super::{PublisherCore, State};
use crate::Role;
use crate::pacing::after;

/// Readers that are about to go over.
#[derive(Default)]
pub(super) struct EngineHandover {
    /// Those that the new link has reached, and which it is.
    ready: HashMap<Gid, LinkId>,
    /// When all of them will have matched too, if nothing else is missing.
    settled_ns: Option<u64>,
    /// Nothing is sent until the old link has brought everything, or until then.
    held_until_ns: Option<u64>,
}

impl EngineHandover {
    /// Whether nothing is to be sent now.
    pub(super) fn is_held(&self) -> bool {
        self.held_until_ns.is_some_and(|until_ns| clock::monotonic_ns() < until_ns)
    }

    /// When it is to be gone on with.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.settled_ns.into_iter().chain(self.held_until_ns).min()
    }

    /// Nothing is waited for.
    fn rest(&mut self) {
        (self.settled_ns, self.held_until_ns) = (None, None);
    }
}

/// What became of a reader that is to be reached by an engine of a wire with two.
pub(super) enum Crossed {
    /// Nobody is on the other one.
    Alone,
    /// Others are, or it is itself, and they cannot go over yet.
    Later,
    /// It was on the other one, and is here now.
    Over(Connected),
}

impl PublisherCore {
    /// Whether readers are about to go over to another engine, or have just done so and are to be told.
    pub(crate) fn is_changing_engine(&self) -> bool {
        self.is_changing_engine.load(Ordering::Acquire)
    }

    /// All have been told.
    pub(crate) fn has_changed_engine(&self) {
        self.is_changing_engine.store(false, Ordering::Release);
        self.lock().engine_handover = EngineHandover::default();
        self.room.ring();
    }

    /// Brings the readers of the other engine over to the link at this place, which reaches `gid`, if it
    /// reaches them all.
    pub(super) fn cross(&self, state: &mut State, at: usize, gid: Gid) -> Crossed {
        let id = state.links[at].id.clone();
        let engines = self.session.wire_engines().filter(|_| self.role == Role::Topic);
        let Some(other) = engines.and_then(|it| it.other(&id.transport)) else {
            return Crossed::Alone;
        };
        if state.readers.get(&gid).is_some_and(|it| it.link == id) {
            // It came over with another one.
            return Crossed::Over(counted(state));
        }
        let on_other = state.readers.iter().filter(|(_, it)| it.link.transport == *other);
        let on_other: Vec<Gid> = on_other.map(|(gid, _)| *gid).collect();
        // Somebody may still be sent to there until it has heard that it has another link.
        let is_left = state.left.iter().filter(|(it, _)| !on_other.contains(it));
        let mut also = is_left.map(|(_, link)| link).chain(state.trials.values());
        let is_busy = also.any(|link| link.transport == *other);
        if on_other.is_empty() && !is_busy {
            return Crossed::Alone;
        }
        let was_there = on_other.contains(&gid);
        if was_there {
            state.engine_handover.ready.insert(gid, id.clone());
        }
        self.is_changing_engine.store(true, Ordering::Release);
        let is_ready = |it: &Gid| state.engine_handover.ready.get(it) == Some(&id);
        if is_busy || !on_other.iter().all(is_ready) {
            state.engine_handover.rest();
            self.room.ring();
            return Crossed::Later;
        }
        let matched_for = on_other.iter().map(|it| state.links[at].writer.matched_for(*it)).min();
        let unsettled =
            matched_for.and_then(|it| SETTLES.checked_sub(it)).filter(|it| !it.is_zero());
        let is_broken = state.links.iter().any(|it| it.id.transport == *other && it.is_broken);
        if let Some(unsettled) = unsettled.filter(|_| !is_broken) {
            state.engine_handover.settled_ns = Some(after(clock::monotonic_ns(), unsettled));
            return Crossed::Later;
        }
        state.engine_handover.settled_ns = None;
        if !self.has_arrived(state, other) {
            return Crossed::Later;
        }
        for reader in on_other {
            self.bring_over(state, at, reader);
        }
        state.engine_handover = EngineHandover::default();
        // Whoever waits for room may go on, and those who came along or waited for this are to be told.
        self.room.ring();
        self.session.waker.give();
        match was_there {
            true => Crossed::Over(counted(state)),
            false => Crossed::Alone,
        }
    }

    /// Whether all that was sent has come to the readers of an engine, or was waited for long enough.
    fn has_arrived(&self, state: &mut State, engine: &TransportId) -> bool {
        if self.qos.reliability != Reliability::Reliable {
            return true;
        }
        let State { links, engine_handover, .. } = state;
        let link = links.iter().find(|link| link.id.transport == *engine && !link.is_broken);
        let Some(link) = link.filter(|link| !link.writer.is_acknowledged()) else { return true };
        let now_ns = clock::monotonic_ns();
        if let Some(until_ns) = engine_handover.held_until_ns {
            return until_ns <= now_ns;
        }
        engine_handover.held_until_ns = Some(after(now_ns, HELD_MAX));
        let (dirty, gid) = (Arc::clone(&self.session.dirty_endpoints), self.gid);
        link.writer.when_acknowledged(HELD_MAX, Box::new(move || dirty.mark_and_wake(gid)));
        false
    }

    /// From the next sample on a reader of the other engine is sent to by the link at this place alone.
    fn bring_over(&self, state: &mut State, at: usize, reader: Gid) {
        let Some(left) = state.readers.remove(&reader) else { return };
        let from = left.link.clone();
        state.links[at].readers += 1;
        self.move_over(state, at, reader, left);
        // It hears both, so nothing more may go by the other one.
        self.stop_left(state, |gid, _| gid == reader);
        if let Some(link) = state.links.iter_mut().find(|link| link.id == from) {
            // What it owed has gone to all.
            deferred::drop_later(link.owed.take());
        }
    }

    /// This reader stays where it is, or goes.
    pub(super) fn stop_engine_handover(&self, state: &mut State, reader: Gid) {
        if state.engine_handover.ready.remove(&reader).is_some() {
            state.engine_handover.rest();
            self.room.ring();
        }
    }
}

/// A reader has another link from the next sample on.
fn counted(state: &State) -> Connected {
    let first = state.next_sequence;
    Connected { first, ends: Some(first), published_before: state.counters.published }
}

/// How long after a new writer has matched a reader that has matched it too. Nobody says when that is: the reader's
/// engine hears of the writer within milliseconds, or when it is told again, and what is sent before that a volatile
/// reader does not get.
const SETTLES: Duration = Duration::from_secs(2);

/// How long a publisher waits at most for the readers of the engine that it leaves. Less than it waits for room.
const HELD_MAX: Duration = Duration::from_millis(50);
