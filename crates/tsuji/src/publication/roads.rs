//! The roads of a publisher: who is reached by which, how a reader moves from one to another, and what is
//! wrong with them.

use std::any::TypeId;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Weak};

use tsuji_core::{Durability, History, Qos, TransportId};
use tsuji_transport::{
    self as transport, Envelope, ErrorKind as TransportKind, Gid, HeapReserve, Loan, Payload,
    Ticket, Transport, Writer,
};

use tsuji_platform::clock;

use super::crossing::Crossed;
use super::{Publication, State, TROUBLE_LOOK_NS};
use crate::pacing::{ROAD_IDLE_MAX, after};
use crate::{Result, Role};

/// How soon a road is tried again that has failed while nobody counted on it.
const IDLE_AGAIN_NS: u64 = 1_000_000_000;

/// Which road: of a transport, by value or by bytes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct RoadId {
    pub(super) transport: TransportId,
    pub(super) typed: bool,
}

/// What is known of a reader.
pub(super) struct ReaderOf {
    pub(super) road: RoadId,
    /// Of a client's, where its requests come from.
    pub(super) partner: Gid,
    /// The number of the next reply to it: a client gets its own replies only, and misses none for
    /// what others get.
    pub(super) next: u64,
    /// Replies that were sent to it.
    pub(super) answered: u64,
}

/// What the directory is to know of a publisher.
#[derive(Debug, Default)]
pub(crate) struct PublicationNews {
    /// Roads that do not do what they should.
    pub(crate) troubles: Vec<Trouble>,
    /// Why its roads may not be the best any more.
    pub(crate) doubt: Option<&'static str>,
}

/// What is wrong with a road.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) id: TransportId,
    pub(crate) reason: String,
    /// It carries nothing any more; else it has only run out of something.
    pub(crate) is_broken: bool,
}

/// What a road brings to a reader that was just connected.
#[derive(Clone, Copy)]
pub(crate) struct Connected {
    /// The number of the first sample.
    pub(crate) first: u64,
    /// The number on the road that the reader had before, from which on that brings nothing.
    pub(crate) ends: Option<u64>,
    /// How many were published before that one.
    pub(crate) published_before: u64,
}

/// What became of a reader that was to be connected.
#[derive(Clone, Copy)]
pub(crate) enum Joining {
    /// The transport has only begun to reach it.
    Later,
    /// It is sent everything on this road too, and has still another.
    OnTrial,
    /// This is its road from here on.
    Connected(Connected),
}

/// What a reader that is to be connected asks for.
pub(crate) struct Asking {
    pub(crate) qos: Qos,
    /// The Rust type that it takes by reference.
    pub(crate) value_type: Option<TypeId>,
    /// The other half, if it is a client's or a server's.
    pub(crate) partner: Gid,
    /// The road that it has does not do what it should, so that nothing is to be waited for.
    pub(crate) is_urgent: bool,
}

/// How a reader is reached.
#[derive(Clone, Copy)]
pub(crate) enum Reached<'a> {
    /// Tsuji's, by what it gave.
    Ticket(&'a Ticket),
    /// A plain node's, by its name on the wire.
    Plain(Gid),
}

/// One transport on which this publisher sends.
#[derive(Clone)]
pub(super) struct Road {
    pub(super) id: RoadId,
    /// The place of its transport among those of this build, nearest first.
    pub(super) nearness: usize,
    pub(super) writer: Arc<dyn Writer>,
    /// What late joiners are owed its transport gives them, so it is sent everything.
    pub(super) keeps: bool,
    /// Replies go to all there, and requests and replies carry a header, unless they are related.
    pub(super) is_mapped: bool,
    /// What a sample relates to goes beside it.
    pub(super) relates: bool,
    /// It stays open without readers, for others to see.
    pub(super) stays: bool,
    /// It opens at once. One that does not, over an engine, is kept for a while when no reader is on it.
    pub(super) is_immediate: bool,
    /// When a reader was wanted on it last, or left it.
    pub(super) wanted_ns: u64,
    pub(super) readers: usize,
    /// The number of the next reply on it, where replies go to all.
    pub(super) next: u64,
    /// What it sends goes to each reader by itself.
    pub(super) is_directed: bool,
    /// It has failed, and carries nothing until its readers have left it.
    pub(super) is_broken: bool,
    /// When it failed.
    pub(super) broken_ns: u64,
    /// The sample that its readers miss while all others have it.
    pub(super) owed: Option<(Envelope, Payload)>,
}

impl Road {
    pub(super) fn is_in_use(&self) -> bool {
        self.keeps || 0 < self.readers
    }

    fn lose_reader(&mut self) {
        self.readers = self.readers.saturating_sub(1);
        self.wanted_ns = clock::monotonic_ns();
    }

    /// When it is closed if no reader comes, where nobody is on it.
    pub(super) fn idle_until_ns(&self) -> Option<u64> {
        let is_idle = self.readers == 0 && !self.stays && !self.is_immediate;
        is_idle.then(|| after(self.wanted_ns, ROAD_IDLE_MAX))
    }

    /// Memory of its own, or of the publisher's where it has none to lend.
    pub(super) fn lend(
        &self,
        len: usize,
        reserve: &HeapReserve,
    ) -> Result<Loan, tsuji_transport::Error> {
        match self.writer.loan(len) {
            Err(error) if error.kind() == TransportKind::Unsupported => Ok(reserve.loan(len)),
            other => other,
        }
    }
}

impl Publication {
    /// How many readers it has on a transport.
    pub(crate) fn readers_on(&self, transport: &TransportId) -> u32 {
        let state = self.lock();
        let roads = state.roads.iter().filter(|road| road.id.transport == *transport);
        roads.map(|road| road.readers as u32).sum()
    }

    /// Sends to this reader too, from now on, and first what late joiners are owed. Answers nothing
    /// when the transport has only begun to reach it.
    pub(crate) fn connect(
        &self,
        transport: &Arc<dyn Transport>,
        reached: Reached<'_>,
        reader: &Asking,
    ) -> Result<Joining> {
        let codec_type = self.spec.codec.map(|codec| codec.value_type);
        let same_type = reader.value_type.is_some() && reader.value_type == codec_type;
        let typed = same_type && transport.capability().typed;
        let (mut state, at) = self.road(transport, typed, "connect")?;
        let state = &mut *state;
        let road = &mut state.roads[at];
        road.wanted_ns = clock::monotonic_ns();
        let (gid, connected) = match reached {
            Reached::Ticket(ticket) => (ticket.reader, road.writer.connect(ticket)),
            Reached::Plain(name) => (name, road.writer.connect_plain(name)),
        };
        if connected? == transport::Connected::Later {
            self.sort_roads(state);
            return Ok(Joining::Later);
        }
        let road = &mut state.roads[at];
        if road.readers == 0 {
            // It failed while nobody counted on it, and has connected now.
            road.is_broken = false;
        }
        match self.cross(state, at, gid) {
            Crossed::Alone => {}
            Crossed::Later => {
                self.sort_roads(state);
                return Ok(Joining::Later);
            }
            Crossed::Over(connected) => {
                self.close_idle(state);
                return Ok(Joining::Connected(connected));
            }
        }
        let is_change = state.readers.contains_key(&gid);
        if is_change && !typed {
            let typical = state.estimator.typical_bytes().unwrap_or(0);
            let lend = || {
                state.roads[at].lend(usize::try_from(typical).unwrap_or(usize::MAX), &self.reserve)
            };
            // Room for one sample alone is soon gone again.
            let lent = [lend(), lend()].into_iter().collect::<Result<Vec<_>, _>>();
            if let Err(error) = lent {
                state.roads[at].writer.disconnect(gid);
                return Err(error.into());
            }
        }
        let road = &mut state.roads[at];
        if !state.trials.contains_key(&gid) {
            road.readers += 1;
        }
        if !is_change {
            let connected = self.begin(state, at, gid, reader);
            self.sort_roads(state);
            return Ok(Joining::Connected(connected));
        }
        let road = &state.roads[at];
        state.trials.insert(gid, road.id.clone());
        self.sort_roads(state);
        let is_shown = transport.capability().immediate || self.role != Role::Topic;
        if !is_shown && !state.is_broken && !reader.is_urgent {
            return Ok(Joining::OnTrial);
        }
        Ok(self.take_over(state, gid).map_or(Joining::Later, Joining::Connected))
    }

    /// Lets a reader move over to the road that was on trial. `None` if there is none.
    pub(crate) fn end_trial(&self, reader: Gid) -> Option<Connected> {
        self.take_over(&mut self.lock(), reader)
    }

    fn take_over(&self, state: &mut State, gid: Gid) -> Option<Connected> {
        let id = state.trials.remove(&gid)?;
        let at = state.roads.iter().position(|road| road.id == id)?;
        let left = state.readers.remove(&gid)?;
        let connected = self.move_over(state, at, gid, left);
        self.sort_roads(state);
        self.close_idle(state);
        // Whoever waits for room may find it on this road.
        self.room.ring();
        Some(connected)
    }

    /// A reader has all of the roads that it has left.
    pub(crate) fn has_left(&self, reader: Gid) {
        let mut state = self.lock();
        self.stop_left(&mut state, |gid, _| gid == reader);
        self.close_idle(&mut state);
    }

    /// Roads that readers have left are sent nothing more for their sake.
    pub(super) fn stop_left(&self, state: &mut State, is_meant: impl Fn(Gid, &RoadId) -> bool) {
        let State { left, roads, .. } = state;
        for (_, id) in left.extract_if(.., |(gid, id)| is_meant(*gid, id)) {
            if let Some(road) = roads.iter_mut().find(|road| road.id == id) {
                road.lose_reader();
            }
        }
    }

    /// A road that was on trial is not wanted any more.
    fn drop_trial(&self, state: &mut State, gid: Gid) {
        let Some(id) = state.trials.remove(&gid) else { return };
        if let Some(road) = state.roads.iter_mut().find(|road| road.id == id) {
            road.writer.disconnect(gid);
            road.lose_reader();
        }
    }

    /// Begins to send to a reader on a road, and first what late joiners are owed.
    fn begin(&self, state: &mut State, at: usize, gid: Gid, reader: &Asking) -> Connected {
        let road = state.roads[at].clone();
        let mut first = state.next_sequence;
        if road.is_mapped && self.role == Role::Reply {
            first = road.next;
        }
        let partner = reader.partner;
        let entry = ReaderOf { road: road.id.clone(), partner, next: first, answered: 0 };
        state.readers.insert(gid, entry);
        if road.is_mapped {
            return Connected { first, ends: None, published_before: state.counters.published };
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
                    .and_then(|payload| road.writer.send_to(gid, envelope, &payload));
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
        Connected { first, ends: None, published_before }
    }

    /// Sends to a reader on another road from the next sample on, and on the one before no more.
    pub(super) fn move_over(
        &self,
        state: &mut State,
        at: usize,
        gid: Gid,
        left: ReaderOf,
    ) -> Connected {
        let (mut ends, mut owed) = (state.next_sequence, None);
        if let Some(old) = state.roads.iter_mut().find(|it| it.id == left.road) {
            if self.role == Role::Reply {
                ends = if old.is_mapped { old.next } else { left.next };
            }
            old.writer.disconnect(gid);
            if old.is_directed || old.is_broken {
                old.lose_reader();
            } else {
                // It goes on without a gap until the reader has heard of the cut: what came behind a gap
                // would seem to follow on what came before.
                state.left.push((gid, old.id.clone()));
            }
            owed = old.owed.clone();
        }
        let road = state.roads[at].clone();
        let mut first = ends;
        if self.role == Role::Reply && road.is_mapped {
            first = road.next;
        }
        if let Some((envelope, payload)) = owed {
            // The others have it; it comes late to this reader, but first on this road.
            (ends, first) = (envelope.sequence, envelope.sequence);
            let sent = self.as_the_road_takes_it(&road, &payload).and_then(|payload| {
                match road.writer.send_to(gid, &envelope, &payload) {
                    Err(error) if error.kind() == TransportKind::Unsupported => {
                        road.writer.send(&envelope, &payload)
                    }
                    sent => sent,
                }
            });
            if let Err(error) = sent {
                state.counters.failed += 1;
                tracing::warn!(topic = %self.topic, road = %road.id.transport, %error, "not sent");
            }
        }
        let entry = ReaderOf { road: road.id, next: first, ..left };
        state.readers.insert(gid, entry);
        Connected { first, ends: Some(ends), published_before: state.counters.published }
    }

    /// The road of a transport, opened if it is not there yet. That may start an engine, for which whoever
    /// publishes on other roads need not wait: no lock is held meanwhile. Called by one thread at a time, which
    /// has the directory.
    fn road(
        &self,
        transport: &Arc<dyn Transport>,
        typed: bool,
        operation: &str,
    ) -> Result<(MutexGuard<'_, State>, usize)> {
        self.open(operation)?;
        let id = RoadId { transport: transport.id(), typed };
        let state = self.lock();
        if let Some(at) = state.roads.iter().position(|road| road.id == id) {
            return Ok((state, at));
        }
        drop(state);
        let announced = self.for_transport(true);
        let writer = transport.open_writer(&announced, Arc::clone(&self.room))?;
        let is_directed = transport.capability().directed;
        let nearness = self.host.transports().iter().position(|it| it.id() == id.transport);
        let road = Road {
            id,
            nearness: nearness.unwrap_or(usize::MAX),
            writer,
            keeps: self.keeps() && !is_directed,
            is_mapped: self.role != Role::Topic && !is_directed,
            relates: transport.wire().is_some_and(|it| it.relates()),
            stays: false,
            is_immediate: transport.capability().immediate,
            wanted_ns: clock::monotonic_ns(),
            readers: 0,
            next: 1,
            is_directed,
            is_broken: false,
            broken_ns: 0,
            owed: None,
        };
        let mut state = self.lock();
        if road.keeps {
            // It gives late joiners what they are owed, so it is given all of it.
            for (envelope, payload) in &state.history {
                let payload = self.as_the_road_takes_it(&road, payload)?;
                road.writer.send(envelope, &payload)?;
            }
        }
        state.roads.push(road);
        let at = state.roads.len() - 1;
        Ok((state, at))
    }

    /// Opens the road of a transport for others to see, before anybody listens.
    pub(crate) fn show(&self, transport: &Arc<dyn Transport>) -> Result<()> {
        let (mut state, at) = self.road(transport, false, "announce")?;
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
        state.roads.iter().find(|road| road.id.transport == *transport)?.writer.wire_name()
    }

    /// Does not go on to reach this reader by this transport.
    pub(crate) fn disconnect_from(&self, transport: &TransportId, reader: Gid) {
        let mut state = self.lock();
        if state.trials.get(&reader).is_some_and(|id| id.transport == *transport) {
            self.drop_trial(&mut state, reader);
        }
        self.stop_crossing(&mut state, reader);
        let roads = state.roads.iter().filter(|road| road.id.transport == *transport);
        roads.for_each(|road| road.writer.disconnect(reader));
        self.close_idle(&mut state);
        // Whoever waits for a road that has failed may go on without it.
        self.room.ring();
    }

    /// Readers that this transport does not reach any more.
    pub(crate) fn lost_on(&self, transport: &TransportId) -> Vec<Gid> {
        let state = self.lock();
        let roads = state.roads.iter().filter(|road| road.id.transport == *transport);
        roads.flat_map(|road| road.writer.lost()).collect()
    }

    /// Closes roads that are sent everything and have nobody left: the next one opens them anew, and
    /// gives them the history again.
    pub(super) fn close_idle(&self, state: &mut State) {
        let is_open = |road: &Road| match road.readers {
            0 => road.stays || (!road.is_broken && !road.keeps),
            _ => true,
        };
        // A road that has failed is opened anew if it is wanted again.
        state.roads.retain(is_open);
        self.sort_roads(state);
        if state.roads.iter().any(|road| road.idle_until_ns().is_some()) {
            self.host.nudge.give();
        }
    }

    /// Closes the roads over engines on which nobody has been for long enough: an engine is kept by them.
    pub(super) fn close_unwanted(&self, state: &mut State, now_ns: u64) {
        let is_due = |road: &Road| road.idle_until_ns().is_some_and(|due_ns| due_ns <= now_ns);
        if state.roads.iter().any(is_due) {
            state.roads.retain(|road| !is_due(road));
            self.sort_roads(state);
        }
    }

    /// What has come up, for the directory.
    pub(crate) fn take_news(&self) -> Option<PublicationNews> {
        let is_some = self.has_news.swap(false, Ordering::AcqRel);
        is_some.then(|| std::mem::take(&mut self.lock().news))
    }

    pub(super) fn tell_news(&self) {
        self.has_news.store(true, Ordering::Release);
        self.host.nudge.give();
    }

    /// Tells of roads that have run out of something.
    pub(super) fn look_for_trouble(&self, state: &mut State, now_ns: u64) {
        if now_ns < state.trouble_looked_ns.saturating_add(TROUBLE_LOOK_NS) {
            return;
        }
        state.trouble_looked_ns = now_ns;
        let troubles = state.in_use().iter().filter_map(|road| {
            let reason = self.host.transport(road.id.transport.as_str())?.trouble()?;
            Some(Trouble { id: road.id.transport.clone(), reason, is_broken: false })
        });
        let troubles: Vec<_> = troubles.collect();
        if !troubles.is_empty() {
            state.news.troubles.extend(troubles);
            self.tell_news();
        }
    }

    /// A road has failed: nothing goes by it until its readers have another, or are given up. What all
    /// others have is owed to them.
    pub(super) fn break_road(
        &self,
        state: &mut State,
        id: RoadId,
        error: &tsuji_transport::Error,
        owed: Option<(Envelope, Payload)>,
    ) {
        tracing::debug!(topic = %self.topic, road = %id.transport, %error, "a road has failed");
        self.stop_left(state, |_, left| *left == id);
        if let Some(road) = state.roads.iter_mut().find(|road| road.id == id) {
            road.is_broken = true;
            road.broken_ns = clock::monotonic_ns();
            road.owed = owed.filter(|_| 0 < road.readers);
        }
        state.sort_roads();
        state.news.troubles.push(Trouble {
            id: id.transport,
            reason: error.to_string(),
            is_broken: true,
        });
        self.tell_news();
    }

    /// Tries roads again that have failed while nobody counted on them.
    pub(super) fn try_idle_roads(&self, state: &mut State, now_ns: u64) {
        for road in state.roads.iter_mut().filter(|road| road.is_broken && road.readers == 0) {
            road.is_broken = now_ns < road.broken_ns.saturating_add(IDLE_AGAIN_NS);
        }
        self.sort_roads(state);
    }

    /// Whether late joiners are owed what was published before.
    pub(super) fn keeps(&self) -> bool {
        self.qos.durability == Durability::TransientLocal
    }

    /// There is no road to this reader. Whoever waits for one is told.
    pub(crate) fn give_up(&self, reader: Gid) {
        self.lock().given_up += 1;
        self.disconnect(reader);
        self.room.ring();
    }

    /// Sends to this reader no more.
    pub(crate) fn disconnect(&self, reader: Gid) {
        let mut state = self.lock();
        self.drop_trial(&mut state, reader);
        self.stop_crossing(&mut state, reader);
        self.stop_left(&mut state, |gid, _| gid == reader);
        let Some(left) = state.readers.remove(&reader) else { return };
        let mut roads = state.roads.iter_mut();
        if let Some(road) = roads.find(|road| road.id == left.road) {
            road.writer.disconnect(reader);
            road.lose_reader();
        }
        self.close_idle(&mut state);
        drop(state);
        if let Some(parting) = self.parting.get().and_then(Weak::upgrade) {
            parting.left(reader);
        }
    }

    pub(super) fn sort_roads(&self, state: &mut State) {
        state.sort_roads();
        self.has_readers_by_value.store(state.by_value, Ordering::Relaxed);
    }
}
