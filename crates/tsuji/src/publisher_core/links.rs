//! The links of a publisher: who is reached by which, how a reader moves from one to another, and what is
//! wrong with them.

use std::any::TypeId;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use tsuji_core::flows::{Connected, Trouble};
use tsuji_core::{Durability, History, Qos, Reliability, TransportId};
use tsuji_transport::deferred::{self, Locked, told};
use tsuji_transport::wire::Relates;
use tsuji_transport::{
    self as transport, Address, Envelope, ErrorKind as TransportKind, Gid, HeapReserve, Loan,
    Payload, Sent, Transport, Writer,
};

use tsuji_platform::clock;

use super::engine_handover::Crossed;
use super::{PublisherCore, State, TROUBLE_LOOK_NS, is_refused_for_now};
use crate::pacing::{LINK_IDLE_MAX, after};
use crate::{Result, Role, mapping};

/// How soon a link is tried again that has failed while nobody counted on it.
const IDLE_AGAIN_NS: u64 = 1_000_000_000;

/// Which link: of a transport, by value or by bytes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct LinkId {
    pub(super) transport: TransportId,
    pub(super) typed: bool,
}

/// What is known of a reader.
pub(super) struct ReaderOf {
    pub(super) link: LinkId,
    /// Of a client's, where its requests come from.
    pub(super) partner: Gid,
    /// The number of the next reply to it: a client gets its own replies only, and misses none for
    /// what others get.
    pub(super) next: u64,
    /// Replies that were sent to it.
    pub(super) answered: u64,
    /// From which sample of the history on it is still to be sent what it is owed as a late joiner.
    pub(super) owed: Option<u64>,
    /// How many samples were displaced there after they were sent, as far as it has told.
    pub(super) displaced: u64,
}

/// What the graph is to know of a publisher.
#[derive(Debug, Default)]
pub(crate) struct PublisherChange {
    /// Links that do not do what they should.
    pub(crate) troubles: Vec<Trouble>,
    /// Why its links may not be the best any more.
    pub(crate) doubt: Option<&'static str>,
}

/// What became of a reader that was to be connected.
#[derive(Clone, Copy)]
pub(crate) enum Joining {
    /// The transport has only begun to reach it.
    Later,
    /// It is sent everything on this link too, and has still another.
    OnTrial,
    /// This is its link from here on.
    Connected(Connected),
}

/// What a reader that is to be connected asks for.
pub(crate) struct Asking {
    pub(crate) qos: Qos,
    /// The Rust type that it takes by reference.
    pub(crate) value_type: Option<TypeId>,
    /// The other half, if it is a client's or a server's.
    pub(crate) partner: Gid,
    /// The link that it has does not do what it should, so that nothing is to be waited for.
    pub(crate) is_urgent: bool,
}

/// How a reader is reached.
#[derive(Clone, Copy)]
pub(crate) enum Reached<'a> {
    /// Tsuji's, by what it gave.
    Address(&'a Address),
    /// A foreign node's, by its name on the wire.
    Plain(Gid),
}

/// One transport on which this publisher sends.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) id: LinkId,
    /// The place of its transport among those of this build, nearest first.
    pub(super) nearness: usize,
    pub(super) writer: Arc<dyn Writer>,
    /// What late joiners are owed its transport gives them, so it is sent everything.
    pub(super) keeps: bool,
    /// Replies go to all there, and requests and replies carry a header, unless they are related.
    pub(super) is_mapped: bool,
    /// How requests and replies say there which request they are.
    pub(super) relates: Relates,
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

impl Link {
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
        is_idle.then(|| after(self.wanted_ns, LINK_IDLE_MAX))
    }

    /// Whether requests and replies go in the payload with a header.
    pub(super) fn is_headed(&self) -> bool {
        self.is_mapped && self.relates != Relates::Beside
    }

    /// Sends a request or a reply to all there. `number` is what stands in its header, where it has one; the
    /// envelope says what it relates to where that goes beside it.
    pub(super) fn send_mapped(
        &self,
        envelope: &Envelope,
        number: (Gid, u64),
        payload: &Payload,
    ) -> Result<Sent, transport::Error> {
        if self.relates == Relates::Beside {
            return self.writer.send(envelope, payload);
        }
        let refused = || transport::Error::new(TransportKind::Invalid, "send");
        let Payload::Bytes(bytes) = payload else { return Err(refused().about("a typed value")) };
        if self.relates == Relates::Either {
            let header = mapping::header(number, bytes).map_err(|it| refused().because(it))?;
            let envelope = Envelope { header: Some(header), ..*envelope };
            return self.writer.send(&envelope, payload);
        }
        let whole = mapping::join(number, bytes).map_err(|it| refused().because(it))?;
        self.writer.send(envelope, &Payload::Bytes(whole))
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

impl PublisherCore {
    /// How many readers it has on a transport.
    pub(crate) fn readers_on(&self, transport: &TransportId) -> u32 {
        let state = self.lock();
        let links = state.links.iter().filter(|link| link.id.transport == *transport);
        links.map(|link| link.readers as u32).sum()
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
        let (mut state, at) = self.link(transport, typed, "connect")?;
        let state = &mut *state;
        let link = &mut state.links[at];
        link.wanted_ns = clock::monotonic_ns();
        let (gid, connected) = match reached {
            Reached::Address(address) => (address.reader, link.writer.connect(address)),
            Reached::Plain(name) => (name, link.writer.connect_foreign(name)),
        };
        if connected? == transport::Connected::Later {
            self.sort_links(state);
            return Ok(Joining::Later);
        }
        let link = &mut state.links[at];
        if link.readers == 0 {
            // It failed while nobody counted on it, and has connected now.
            link.is_broken = false;
        }
        match self.cross(state, at, gid) {
            Crossed::Alone => {}
            Crossed::Later => {
                self.sort_links(state);
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
                state.links[at].lend(usize::try_from(typical).unwrap_or(usize::MAX), &self.reserve)
            };
            // Room for one sample alone is soon gone again.
            let lent = [lend(), lend()].into_iter().collect::<Result<Vec<_>, _>>();
            if let Err(error) = lent {
                state.links[at].writer.disconnect(gid);
                return Err(error.into());
            }
        }
        let link = &mut state.links[at];
        if !state.trials.contains_key(&gid) {
            link.readers += 1;
        }
        if !is_change {
            let connected = self.begin(state, at, gid, reader);
            self.sort_links(state);
            return Ok(Joining::Connected(connected));
        }
        let link = &state.links[at];
        state.trials.insert(gid, link.id.clone());
        self.sort_links(state);
        let is_shown = transport.capability().immediate || self.role != Role::Topic;
        if !is_shown && !state.is_broken && !reader.is_urgent {
            return Ok(Joining::OnTrial);
        }
        Ok(self.take_over(state, gid).map_or(Joining::Later, Joining::Connected))
    }

    /// Lets a reader move over to the link that was on trial. `None` if there is none.
    pub(crate) fn end_trial(&self, reader: Gid) -> Option<Connected> {
        self.take_over(&mut self.lock(), reader)
    }

    fn take_over(&self, state: &mut State, gid: Gid) -> Option<Connected> {
        let id = state.trials.remove(&gid)?;
        let at = state.links.iter().position(|link| link.id == id)?;
        let left = state.readers.remove(&gid)?;
        let connected = self.move_over(state, at, gid, left);
        self.sort_links(state);
        self.close_idle(state);
        // Whoever waits for room may find it on this link.
        self.room.ring();
        Some(connected)
    }

    /// A subscription has displaced so many samples after they were sent.
    pub(crate) fn note_displaced(&self, reader: Gid, total: u64) {
        let mut state = self.lock();
        let Some(entry) = state.readers.get_mut(&reader) else { return };
        let before = std::mem::replace(&mut entry.displaced, total);
        state.counters.displaced += total.saturating_sub(before);
    }

    /// A reader has all of the links that it has left.
    pub(crate) fn has_left(&self, reader: Gid) {
        let mut state = self.lock();
        self.stop_left(&mut state, |gid, _| gid == reader);
        self.close_idle(&mut state);
    }

    /// Links that readers have left are sent nothing more for their sake.
    pub(super) fn stop_left(&self, state: &mut State, is_meant: impl Fn(Gid, &LinkId) -> bool) {
        let State { left, links, .. } = state;
        for (_, id) in left.extract_if(.., |(gid, id)| is_meant(*gid, id)) {
            if let Some(link) = links.iter_mut().find(|link| link.id == id) {
                link.lose_reader();
            }
        }
    }

    /// A link that was on trial is not wanted any more.
    fn drop_trial(&self, state: &mut State, gid: Gid) {
        let Some(id) = state.trials.remove(&gid) else { return };
        if let Some(link) = state.links.iter_mut().find(|link| link.id == id) {
            link.writer.disconnect(gid);
            link.lose_reader();
        }
    }

    /// Begins to send to a reader on a link, and first what late joiners are owed.
    fn begin(&self, state: &mut State, at: usize, gid: Gid, reader: &Asking) -> Connected {
        let link = state.links[at].clone();
        let mut first = state.next_sequence;
        if link.is_mapped && self.role == Role::Reply {
            first = link.next;
        }
        let partner = reader.partner;
        let entry = ReaderOf {
            link: link.id.clone(),
            partner,
            next: first,
            answered: 0,
            owed: None,
            displaced: 0,
        };
        state.readers.insert(gid, entry);
        if link.is_mapped {
            return Connected { first, ends: None, published_before: state.counters.published };
        }
        if reader.qos.durability == Durability::TransientLocal {
            let wanted = match reader.qos.history {
                History::KeepLast(depth) => depth as usize,
                History::KeepAll => usize::MAX,
            };
            if let Some(oldest) = state.filters.first_of_last(gid, &state.history, wanted) {
                first = first.min(oldest);
                if !link.keeps {
                    self.begin_owed(state, gid, oldest);
                }
            }
        }
        let owed = state.next_sequence - first;
        let published_before = state.counters.published.saturating_sub(owed);
        Connected { first, ends: None, published_before }
    }

    /// Begins to send to a late joiner what it is owed on its link. The graph's thread goes on with it.
    fn begin_owed(&self, state: &mut State, gid: Gid, from: u64) {
        self.send_owed(state, gid, from);
        if state.is_catching_up {
            // What the others do not take is not to make it wait.
            state.owed_again.hurry();
            state.owed_again.later(clock::monotonic_ns());
            self.session.waker.give();
        }
    }

    /// Sends to late joiners what they are owed still, as far as they have room.
    pub(super) fn send_all_owed(&self, state: &mut State) {
        if !state.is_catching_up {
            return;
        }
        state.is_catching_up = false;
        let owed = state.readers.iter().filter_map(|(gid, it)| Some((*gid, it.owed?)));
        for (gid, from) in owed.collect::<Vec<_>>() {
            self.send_owed(state, gid, from);
        }
    }

    /// Sends to a late joiner what it is owed from this sample on. What it has no room for it gets later, before
    /// anything else is published.
    fn send_owed(&self, state: &mut State, gid: Gid, from: u64) {
        let Some(entry) = state.readers.get_mut(&gid) else { return };
        let Some(link) = state.links.iter().find(|link| link.id == entry.link) else { return };
        entry.owed = None;
        if link.is_broken {
            // It goes on by the next one.
            entry.owed = Some(from);
        }
        let rest = state.history.since(from).enumerate();
        for (at, kept) in rest.take_while(|_| !link.is_broken) {
            let Some(payload) = kept.payload(link.id.typed) else { continue };
            if !state.filters.lets_pass(gid, kept) {
                link.writer.note_filtered(gid, &kept.envelope);
                continue;
            }
            match link.writer.send_to(gid, &kept.envelope, payload) {
                Ok(sent) => {
                    state.counters.displaced += u64::from(sent.displaced);
                    // It takes, so there may soon be room again.
                    state.owed_again.hurry();
                }
                Err(error)
                    if is_refused_for_now(error.kind())
                        && self.qos.reliability == Reliability::Reliable =>
                {
                    entry.owed = Some(kept.envelope.sequence);
                    break;
                }
                Err(error) => {
                    let missed = state.history.since(from).count() - at;
                    state.counters.failed += missed as u64;
                    told::warn!(topic = %self.topic, %error, missed, "late joiner does not get all");
                    break;
                }
            }
        }
        // Nobody is woken for it: this is done in each turn of whoever would be.
        state.is_catching_up |= entry.owed.is_some();
    }

    /// Sends to a reader on another link from the next sample on, and on the one before no more.
    pub(super) fn move_over(
        &self,
        state: &mut State,
        at: usize,
        gid: Gid,
        left: ReaderOf,
    ) -> Connected {
        let (mut ends, mut owed) = (state.next_sequence, None);
        if let Some(old) = state.links.iter_mut().find(|it| it.id == left.link) {
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
        if let Some(from) = left.owed {
            // What is still owed to it goes by the new link, the last sample among it.
            (ends, owed) = (from, None);
        }
        let link = state.links[at].clone();
        let mut first = ends;
        if self.role == Role::Reply && link.is_mapped {
            first = link.next;
        }
        if let Some((envelope, payload)) = owed {
            // The others have it; it comes late to this reader, but first on this link.
            (ends, first) = (envelope.sequence, envelope.sequence);
            let sent = match link.writer.send_to(gid, &envelope, &payload) {
                Err(error) if error.kind() == TransportKind::Unsupported => {
                    link.writer.send(&envelope, &payload)
                }
                sent => sent,
            };
            if let Err(error) = sent {
                state.counters.failed += 1;
                told::warn!(topic = %self.topic, link = %link.id.transport, %error, "not sent");
            }
        }
        let owed = left.owed.filter(|_| !link.keeps);
        let entry = ReaderOf { link: link.id, next: first, owed, ..left };
        state.readers.insert(gid, entry);
        if let Some(from) = owed {
            self.begin_owed(state, gid, from);
        }
        Connected { first, ends: Some(ends), published_before: state.counters.published }
    }

    /// The link of a transport, opened if it is not there yet. That may start an engine, for which whoever
    /// publishes on other links need not wait: no lock is held meanwhile. Called by one thread at a time, which
    /// has the graph.
    fn link(
        &self,
        transport: &Arc<dyn Transport>,
        typed: bool,
        operation: &str,
    ) -> Result<(Locked<'_, State>, usize)> {
        self.open(operation)?;
        let id = LinkId { transport: transport.id(), typed };
        let state = self.lock();
        if let Some(at) = state.links.iter().position(|link| link.id == id) {
            return Ok((state, at));
        }
        drop(state);
        let announced = self.for_transport(true);
        let writer = transport.open_writer(&announced, Arc::clone(&self.room))?;
        let is_directed = transport.capability().directed;
        let nearness = self.session.transports().iter().position(|it| it.id() == id.transport);
        let link = Link {
            id,
            nearness: nearness.unwrap_or(usize::MAX),
            writer,
            keeps: self.keeps() && !is_directed,
            is_mapped: self.role != Role::Topic && !is_directed,
            relates: transport.wire().map_or(Relates::Never, |it| it.relates()),
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
        if link.keeps {
            // It gives late joiners what they are owed, so it is given all of it.
            for kept in state.history.since(0) {
                let Some(payload) = kept.payload(link.id.typed) else { continue };
                link.writer.send(&kept.envelope, payload)?;
            }
        }
        let next = if self.role == Role::Reply { state.next_sequence } else { link.next };
        state.links.push(Link { next, ..link });
        let at = state.links.len() - 1;
        Ok((state, at))
    }

    /// Opens the link of a transport for others to see, before anybody listens.
    pub(crate) fn show(&self, transport: &Arc<dyn Transport>) -> Result<()> {
        let (mut state, at) = self.link(transport, false, "announce")?;
        state.links[at].stays = true;
        self.sort_links(&mut state);
        Ok(())
    }

    /// Closes the links on which others than those who were met may see it: of this transport, or of all.
    pub(crate) fn leave_wires(&self, transport: Option<&TransportId>) {
        let mut state = self.lock();
        let is_left = |link: &Link| {
            link.writer.wire_name().is_some() && transport.is_none_or(|it| link.id.transport == *it)
        };
        let (left, kept): (Vec<Link>, _) =
            std::mem::take(&mut state.links).into_iter().partition(is_left);
        state.links = kept;
        self.sort_links(&mut state);
        deferred::drop_later(left);
    }

    /// What this publisher is called on the wire of a transport.
    pub(crate) fn wire_name(&self, transport: &TransportId) -> Option<Gid> {
        let state = self.lock();
        state.links.iter().find(|link| link.id.transport == *transport)?.writer.wire_name()
    }

    /// Does not go on to reach this reader by this transport.
    pub(crate) fn disconnect_from(&self, transport: &TransportId, reader: Gid) {
        let mut state = self.lock();
        if state.trials.get(&reader).is_some_and(|id| id.transport == *transport) {
            self.drop_trial(&mut state, reader);
        }
        self.stop_engine_handover(&mut state, reader);
        let links = state.links.iter().filter(|link| link.id.transport == *transport);
        links.for_each(|link| link.writer.disconnect(reader));
        self.close_idle(&mut state);
        // Whoever waits for a link that has failed may go on without it.
        self.room.ring();
    }

    /// Readers that this transport does not reach any more.
    pub(crate) fn lost_on(&self, transport: &TransportId) -> Vec<Gid> {
        let state = self.lock_without_marking();
        let links = state.links.iter().filter(|link| link.id.transport == *transport);
        links.flat_map(|link| link.writer.lost()).collect()
    }

    /// Closes links that are sent everything and have nobody left: the next one opens them anew, and
    /// gives them the history again.
    pub(super) fn close_idle(&self, state: &mut State) {
        let is_open = |link: &Link| match link.readers {
            0 => link.stays || (!link.is_broken && !link.keeps),
            _ => true,
        };
        // A link that has failed is opened anew if it is wanted again.
        state.drop_links(|link| !is_open(link));
        self.sort_links(state);
        if state.links.iter().any(|link| link.idle_until_ns().is_some()) {
            self.session.waker.give();
        }
    }

    /// Closes the links over engines on which nobody has been for long enough: an engine is kept by them.
    pub(super) fn close_unwanted(&self, state: &mut State, now_ns: u64) {
        let is_due = |link: &mut Link| link.idle_until_ns().is_some_and(|due_ns| due_ns <= now_ns);
        if state.links.iter_mut().any(is_due) {
            state.drop_links(is_due);
            self.sort_links(state);
        }
    }

    /// What has come up, for the graph.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news.load(Ordering::Acquire) || self.is_changing_engine()
    }

    pub(crate) fn take_news(&self) -> Option<PublisherChange> {
        let is_some = self.has_news.swap(false, Ordering::AcqRel);
        is_some.then(|| std::mem::take(&mut self.lock_without_marking().news))
    }

    pub(super) fn tell_news(&self) {
        self.has_news.store(true, Ordering::Release);
        self.session.waker.give();
    }

    /// Tells of links that have run out of something.
    pub(super) fn look_for_trouble(&self, state: &mut State, now_ns: u64) {
        if now_ns < state.trouble_looked_ns.saturating_add(TROUBLE_LOOK_NS) {
            return;
        }
        state.trouble_looked_ns = now_ns;
        let troubles = state.in_use().iter().filter_map(|link| {
            let reason = self.session.transport(link.id.transport.as_str())?.trouble()?;
            Some(Trouble { id: link.id.transport.clone(), reason, is_broken: false })
        });
        let troubles: Vec<_> = troubles.collect();
        if !troubles.is_empty() {
            state.news.troubles.extend(troubles);
            self.tell_news();
        }
    }

    /// A link has failed: nothing goes by it until its readers have another, or are given up. What all
    /// others have is owed to them.
    pub(super) fn break_link(
        &self,
        state: &mut State,
        id: LinkId,
        error: &tsuji_transport::Error,
        owed: Option<(Envelope, Payload)>,
    ) {
        told::debug!(topic = %self.topic, link = %id.transport, %error, "a link has failed");
        self.stop_left(state, |_, left| *left == id);
        if let Some(link) = state.links.iter_mut().find(|link| link.id == id) {
            link.is_broken = true;
            link.broken_ns = clock::monotonic_ns();
            deferred::drop_later(std::mem::replace(&mut link.owed, owed));
            if link.readers == 0 {
                deferred::drop_later(link.owed.take());
            }
        }
        state.sort_links();
        state.news.troubles.push(Trouble {
            id: id.transport,
            reason: error.to_string(),
            is_broken: true,
        });
        self.tell_news();
    }

    /// Tries links again that have failed while nobody counted on them.
    pub(super) fn try_idle_links(&self, state: &mut State, now_ns: u64) {
        for link in state.links.iter_mut().filter(|link| link.is_broken && link.readers == 0) {
            link.is_broken = now_ns < link.broken_ns.saturating_add(IDLE_AGAIN_NS);
        }
        self.sort_links(state);
    }

    /// Whether late joiners are owed what was published before.
    pub(super) fn keeps(&self) -> bool {
        self.qos.durability == Durability::TransientLocal
    }

    /// There is no link to this reader. Whoever waits for one is told.
    pub(crate) fn give_up(&self, reader: Gid) {
        self.lock().given_up += 1;
        self.disconnect(reader);
        self.room.ring();
    }

    /// Sends to this reader no more.
    pub(crate) fn disconnect(&self, reader: Gid) {
        let mut state = self.lock();
        self.drop_trial(&mut state, reader);
        self.stop_engine_handover(&mut state, reader);
        self.stop_left(&mut state, |gid, _| gid == reader);
        state.filters.remove(reader);
        let Some(left) = state.readers.remove(&reader) else { return };
        let mut links = state.links.iter_mut();
        if let Some(link) = links.find(|link| link.id == left.link) {
            link.writer.disconnect(reader);
            link.lose_reader();
        }
        self.close_idle(&mut state);
        drop(state);
        if let Some(parting) = self.parting.get().and_then(Weak::upgrade) {
            parting.left(reader);
        }
    }

    pub(super) fn sort_links(&self, state: &mut State) {
        state.sort_links();
        self.has_readers_by_value.store(state.by_value, Ordering::Relaxed);
    }
}
