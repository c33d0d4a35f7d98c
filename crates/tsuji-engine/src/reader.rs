//! The receiving end of a topic: samples go from the engine into one queue as they arrive.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

use tsuji_core::Durability;
use tsuji_platform::clock;
use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_transport::bell::Cell;
use tsuji_transport::wire::Relates;
use tsuji_transport::{
    Address, ByteFilter, Connected, Encoding, Endpoint, Envelope, Error, ErrorKind, Gid, Payload,
    PeerId, Reader, Result, Sample,
};

use crate::Shared;
use crate::engine::{Arrived, EndpointSpec, EngineReader, Guid, Listener, Related, Tap};
use crate::flow_message::{Content, FlowMessage};
use crate::introduction::ReaderAddress;
use crate::membership::Lease;
use crate::writer::{follows, push_mark};
use crate::{HEADER_LEN, is_plain_cdr};

mod held;
pub(crate) use held::Dropped;
use held::{Held, HeldLimit};

mod queue;
use queue::{From, Limit, Queue};

mod filtering;
use filtering::Filtering;

pub(crate) struct FlowReader {
    core: Arc<ReaderCore>,
}

impl FlowReader {
    pub(crate) fn new(core: Arc<ReaderCore>) -> Self {
        Self { core }
    }
}

pub(crate) struct ReaderCore {
    shared: Arc<Shared>,
    gid: Gid,
    guid: Guid,
    tap: Arc<dyn Tap>,
    news: Arc<Cell>,
    limit: Limit,
    waits_for_history: bool,
    state: Mutex<State>,
    /// `None` before it is made and after the reader is gone.
    engine: Mutex<Option<Box<dyn EngineReader>>>,
    // The last: the reader is gone before its participant may go.
    _lease: Lease,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    displaced: u64,
    /// More was since it was heeded.
    is_displacing: bool,
    /// Whoever heeds it is woken for that.
    is_woken: bool,
    flows: HashMap<Gid, Flow>,
    /// The flows by the engine's names of their writers.
    by_guid: HashMap<Guid, Gid>,
    /// Foreign writers that the reader takes from, with the time of the newest arrival.
    foreign_readers: HashMap<Gid, Option<u64>>,
    /// What is filtered out of that.
    filtering: Filtering,
    /// Of writers that the reader was not told of. Those of tsuji send what late joiners are owed
    /// before they say Hello, and foreign ones anything before they are accepted.
    early: Held,
    /// When the first sample came from each writer that the reader was not told of.
    unknown: HashMap<Guid, u64>,
    /// Arrivals are told apart by their times.
    last_arrival_ns: u64,
    /// The reader's own name, where samples say what they relate to.
    relating: Option<Guid>,
    /// Whose replies come here, if it has asked for any by this engine.
    asking: Option<Asking>,
}

/// The writer of this process to whose requests replies come.
#[derive(Debug)]
struct Asking {
    gid: Gid,
    guid: Guid,
    /// From which number of the engine on which sequence number holds, oldest first.
    marks: VecDeque<(u64, u64)>,
}

impl Asking {
    /// The request that the engine has numbered so.
    fn request(&self, number: u64) -> Option<(Gid, u64)> {
        let mark = self.marks.iter().rev().find(|(engine, _)| *engine <= number);
        mark.map(|(engine, sequence)| (self.gid, sequence.saturating_add(number - engine)))
    }
}

/// What comes from one accepted writer.
#[derive(Debug)]
struct Flow {
    peer: PeerId,
    round: u32,
    guid: Option<Guid>,
    is_heard: bool,
    /// From which number of the engine on which sequence number holds, oldest first.
    marks: VecDeque<(u64, u64)>,
    /// The last number that is for this reader.
    end: Option<u64>,
    /// Arrived before the first mark.
    held: Held,
    newest_ns: Option<u64>,
    /// The last sequence number taken, and how many were taken since the writer was told.
    taken: u64,
    uncredited: u64,
    /// The writer waits for credit.
    is_asked: bool,
    /// Its samples that were pushed out of the queue.
    displaced: u64,
}

/// How long samples of a writer wait for the reader to be told of it, which takes a moment where it is.
const HELD_FOR_NS: u64 = 3_000_000_000;

/// Writers that nobody told of, that are remembered.
const UNKNOWN_MAX: usize = 1024;

impl ReaderCore {
    pub(crate) fn open(
        shared: &Arc<Shared>,
        lease: Lease,
        endpoint: &Endpoint,
        news: Arc<Cell>,
    ) -> Result<Arc<Self>> {
        let spec = EndpointSpec::of(endpoint, shared.about.peers);
        let mut engine = lease.participant().reader(&spec)?;
        // Who is not announced to others has no requests of theirs.
        let relates = shared.about.relates != Relates::Never && endpoint.announced.is_some();
        let relating = relates.then(|| engine.guid());
        let core = Arc::new(Self {
            shared: Arc::clone(shared),
            gid: endpoint.gid,
            guid: engine.guid(),
            tap: engine.tap(),
            news,
            limit: Limit::of(endpoint),
            waits_for_history: endpoint.qos.durability == Durability::TransientLocal,
            state: Mutex::new(State { relating, ..State::default() }),
            engine: Mutex::new(None),
            _lease: lease,
        });
        engine.listen(Arc::new(Ear(Arc::downgrade(&core))))?;
        *crate::lock(&core.engine) = Some(engine);
        // What came before anybody listened.
        core.gather();
        Ok(core)
    }

    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    /// A writer of this process sends a request, whose reply will come here: the engine's number for it,
    /// and the sequence number.
    pub(crate) fn note_asked(&self, gid: Gid, guid: Guid, mark: (u64, u64)) {
        let mut state = self.lock();
        if state.asking.as_ref().is_none_or(|it| it.guid != guid) {
            state.asking = Some(Asking { gid, guid, marks: VecDeque::new() });
        }
        let Some(asking) = &mut state.asking else { return };
        if asking.marks.back().is_none_or(|last| !follows(*last, mark)) {
            push_mark(&mut asking.marks, mark);
        }
    }

    /// A message of a writer.
    pub(crate) fn read(&self, from: PeerId, message: &FlowMessage) {
        let mut state = self.lock();
        let known = state.flows.get_mut(&message.writer);
        let Some(flow) = known.filter(|it| it.peer == from && it.round == message.round) else {
            drop(state);
            if matches!(message.content, Content::Hello(_)) {
                self.shared.post(from, FlowMessage { content: Content::Gone, ..*message });
            }
            return;
        };
        match message.content {
            Content::Hello(guid) => {
                flow.guid = Some(guid);
                let held = state.early.take_of(guid);
                state.unknown.remove(&guid);
                state.by_guid.insert(guid, message.writer);
                if !self.waits_for_history {
                    // It counts from Heard on.
                    self.shared.figures.count_doubled(held.drop_all());
                } else if let Some(flow) = state.flows.get_mut(&message.writer) {
                    flow.held = held;
                }
                drop(state);
                self.hear();
            }
            Content::Mark { engine, sequence } => {
                push_mark(&mut flow.marks, (engine, sequence));
                let held = std::mem::take(&mut flow.held);
                let mut news = false;
                for arrived in held.into_samples() {
                    news |=
                        state.arrive(message.writer, arrived, self.limit, self.waits_for_history);
                }
                if news {
                    self.news.ring();
                }
            }
            Content::End { engine } => {
                flow.end = Some(engine);
                state.drop_beyond_end(message.writer, engine);
            }
            Content::Ask => {
                flow.is_asked = true;
                self.credit(message.writer, flow);
            }
            Content::Heard | Content::Gone | Content::Credit(_) => (),
        }
    }

    /// A process is gone, and all its writers with it. What they sent is still delivered.
    pub(crate) fn part(&self, peer: PeerId) {
        let mut state = self.lock();
        let gone: Vec<Gid> =
            state.flows.iter().filter(|(_, flow)| flow.peer == peer).map(|(gid, _)| *gid).collect();
        gone.into_iter().for_each(|gid| state.forget(gid));
    }

    /// Tells the writers that the engine has matched by now.
    fn hear(&self) {
        let matches = self.tap.matches();
        let mut state = self.lock();
        for (writer, flow) in &mut state.flows {
            let is_matched = flow.guid.is_some_and(|guid| matches.contains(&guid));
            if is_matched && !std::mem::replace(&mut flow.is_heard, true) {
                self.tell(*writer, flow, Content::Heard);
            }
        }
        if !state.foreign_readers.is_empty() {
            self.shared.wake();
        }
    }

    /// Tells a writer how many of its samples were taken: at once if it asked, else seldom.
    fn credit(&self, writer: Gid, flow: &mut Flow) {
        let is_owed = flow.is_asked || self.limit.samples as u64 / 4 <= flow.uncredited;
        if 0 < flow.uncredited && is_owed {
            flow.uncredited = 0;
            flow.is_asked = false;
            self.tell(writer, flow, Content::Credit(flow.taken));
        }
    }

    fn tell(&self, writer: Gid, flow: &Flow, content: Content) {
        let (reader, round) = (self.gid, flow.round);
        self.shared.post(flow.peer, FlowMessage { writer, reader, round, content });
    }

    /// Takes from the engine what has arrived.
    fn gather(&self) {
        let mut news = false;
        let mut state = self.lock();
        // An error here means that the reader is about to go.
        while let Ok(Some(arrived)) = self.tap.take() {
            if arrived.bytes.len() < HEADER_LEN {
                self.shared.figures.count_invalid();
            } else if let Some(writer) = state.by_guid.get(&arrived.writer).copied() {
                news |= state.arrive(writer, arrived, self.limit, self.waits_for_history);
            } else if state.foreign_readers.contains_key(&Gid(arrived.writer)) {
                news |= self.arrive_foreign(&mut state, arrived);
            } else {
                self.hold(&mut state, arrived);
            }
        }
        let is_to_be_asked = state.is_displacing && !std::mem::replace(&mut state.is_woken, true);
        // Whoever is woken wants the lock: ringing under it would wake a thread that must wait again.
        drop(state);
        if is_to_be_asked {
            self.shared.wake();
        }
        if news {
            self.news.ring();
        }
    }

    /// Keeps a sample of a writer that the reader was not told of, for a while.
    fn hold(&self, state: &mut State, arrived: Arrived) {
        let writer = arrived.writer;
        let now_ns = clock::monotonic_ns();
        if UNKNOWN_MAX <= state.unknown.len() && !state.unknown.contains_key(&writer) {
            // They are told apart anew.
            state.unknown.clear();
        }
        let since_ns = *state.unknown.entry(writer).or_insert(now_ns);
        if HELD_FOR_NS < now_ns - since_ns {
            // Nobody will tell of this writer any more.
            let mut dropped = state.early.take_of(writer).drop_all();
            dropped.add(arrived.bytes.len());
            return self.shared.figures.count_doubled(dropped);
        }
        // Whoever keeps all loses no first sample, however large.
        let is_owed = self.waits_for_history || self.limit.keeps_all;
        let limit = match is_owed {
            true => self.limit.held(self.waits_for_history),
            false => HeldLimit::FIRST,
        };
        self.shared.figures.count_doubled(state.early.push(arrived, limit));
    }

    /// Takes a sample of an accepted foreign writer, and answers whether there is something new.
    fn arrive_foreign(&self, state: &mut State, arrived: Arrived) -> bool {
        if !is_plain_cdr(&arrived.bytes) {
            // Its number is missing then, and so it is counted as lost.
            self.shared.figures.count_invalid();
            return false;
        }
        let writer = Gid(arrived.writer);
        let now_ns = state.arrival_ns();
        if let Some(newest_ns) = state.foreign_readers.get_mut(&writer) {
            *newest_ns = Some(now_ns);
        }
        if state.filtering.rejects(writer, &arrived.bytes) {
            return false;
        }
        let sequence = u64::try_from(arrived.number).unwrap_or(0);
        let related = state.relation(&arrived, None);
        let sample = sample(writer, sequence, arrived, now_ns, related);
        state.enqueue(sample, From::Foreign, self.limit);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        crate::lock(&self.state)
    }
}

impl fmt::Debug for ReaderCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderCore").field("gid", &self.gid).finish_non_exhaustive()
    }
}

impl fmt::Debug for FlowReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl Limit {
    /// What of known writers waits for its number, or for them.
    fn held(self, waits_for_history: bool) -> HeldLimit {
        if waits_for_history && self.keeps_all { HeldLimit::OWED_ALL } else { HeldLimit::OWED }
    }
}

impl State {
    /// Whether there is something new to take.
    fn arrive(
        &mut self,
        writer: Gid,
        arrived: Arrived,
        limit: Limit,
        waits_for_history: bool,
    ) -> bool {
        let Some(flow) = self.flows.get_mut(&writer) else { return false };
        let number = u64::try_from(arrived.number).unwrap_or(0);
        let Some((first, _)) = flow.marks.front() else {
            self.displaced += flow.held.push(arrived, limit.held(waits_for_history)).samples;
            return false;
        };
        // Before its first mark it was not for this reader, nor is it behind the end.
        if number < *first || flow.end.is_some_and(|end| end < number) {
            return false;
        }
        let mark = flow.marks.iter().rev().find(|(engine, _)| *engine <= number);
        let sequence =
            mark.map_or(0, |(engine, sequence)| sequence.saturating_add(number - engine));
        let now_ns = self.arrival_ns();
        if let Some(flow) = self.flows.get_mut(&writer) {
            flow.newest_ns = Some(now_ns);
        }
        let related = self.relation(&arrived, Some((writer, sequence)));
        let sample = sample(writer, sequence, arrived, now_ns, related);
        self.enqueue(sample, From::Tsuji, limit);
        true
    }

    /// Adds a sample to those to be taken, and counts those that make room for it.
    fn enqueue(&mut self, sample: Sample, from: From, limit: Limit) {
        while let Some(writer) = self.queue.displace_for(&sample, from, limit) {
            self.count_displaced(writer);
        }
        self.queue.push(sample, from);
    }

    /// A sample of this writer was pushed out.
    fn count_displaced(&mut self, writer: Gid) {
        self.displaced += 1;
        if let Some(flow) = self.flows.get_mut(&writer) {
            flow.displaced += 1;
            self.is_displacing = true;
        }
    }

    /// The time of an arrival, later than that of the one before.
    fn arrival_ns(&mut self) -> u64 {
        self.last_arrival_ns = clock::monotonic_ns().max(self.last_arrival_ns + 1);
        self.last_arrival_ns
    }

    /// What a sample relates to: a reply to a request, a request to who asks and by which number. `asked` is
    /// that of a writer of tsuji, whose client knows its number on every link by which the reply may go. `None`
    /// where it is in the payload.
    fn relation(&self, arrived: &Arrived, asked: Option<(Gid, u64)>) -> Option<(Gid, u64)> {
        let own = self.relating.filter(|_| !arrived.is_headed)?;
        let number_of = |number| u64::try_from(number).unwrap_or(0);
        let said = arrived.related.filter(|it| it.name != Guid::default());
        let Some(Related { name, number }) = said.filter(|it| 0 < it.number) else {
            // Who does not say who takes the replies takes them itself.
            let name = said.map_or(arrived.writer, |it| it.name);
            return asked.or_else(|| Some((Gid(name), number_of(arrived.number))));
        };
        let asking = self.asking.as_ref().filter(|it| [own, it.guid].contains(&name));
        let request = asking.and_then(|it| it.request(number_of(number)));
        request.or_else(|| Some((Gid(name), number_of(number))))
    }

    /// The end came later than what is behind it.
    fn drop_beyond_end(&mut self, writer: Gid, end: u64) {
        let Some(flow) = self.flows.get(&writer) else { return };
        let mark = flow.marks.iter().rev().find(|(engine, _)| *engine <= end);
        let Some((engine, sequence)) = mark else { return };
        let last = sequence.saturating_add(end - engine);
        self.queue.drop_beyond(writer, last);
    }

    fn forget(&mut self, writer: Gid) {
        // Nobody heeds what was displaced of it, and that is not to hide what will be of others.
        (self.is_displacing, self.is_woken) = (false, false);
        self.foreign_readers.remove(&writer);
        self.filtering.forget(writer);
        if let Some(guid) = self.flows.remove(&writer).and_then(|flow| flow.guid) {
            self.by_guid.remove(&guid);
        }
    }
}

fn sample(
    gid: Gid,
    sequence: u64,
    arrived: Arrived,
    arrived_ns: u64,
    related: Option<(Gid, u64)>,
) -> Sample {
    let envelope = Envelope {
        gid,
        sequence,
        wall_ns: arrived.source_ns,
        mono_ns: 0,
        arrived_ns,
        encoding: Encoding::Cdr1,
        related,
        header: None,
    };
    Sample { envelope, payload: Payload::Bytes(arrived.bytes) }
}

impl Reader for FlowReader {
    fn accept(&self, peer: PeerId, writer: Gid) -> Result<Address> {
        let core = &*self.core;
        core.shared.open("accept")?;
        if peer == core.shared.id() {
            return Err(Error::new(ErrorKind::Unsupported, "accept").about("it is this process"));
        }
        if core.shared.secret_of(peer).is_none() {
            let error = Error::new(ErrorKind::Closed, "accept");
            return Err(error.about(format!("process {peer} was not met")));
        }
        let mut state = core.lock();
        state.forget(writer);
        let round = core.shared.next_round();
        state.flows.insert(writer, Flow::new(peer, round));
        drop(state);
        let capacity = core.limit.keeps_all.then_some(core.limit.samples as u32);
        let address = ReaderAddress { guid: core.guid, round, capacity };
        Ok(address.to_address(core.shared.secret(), core.shared.id(), core.gid))
    }

    fn wire_name(&self) -> Option<Gid> {
        Some(Gid(self.core.guid))
    }

    fn accept_foreign(&self, writer: Gid) -> Result<Connected> {
        let core = &*self.core;
        core.shared.open("accept")?;
        let mut state = core.lock();
        let is_new = !state.foreign_readers.contains_key(&writer);
        if is_new {
            state.foreign_readers.insert(writer, None);
            let mut news = false;
            state.unknown.remove(&writer.0);
            for arrived in state.early.take_of(writer.0).into_samples() {
                news |= core.arrive_foreign(&mut state, arrived);
            }
            if news {
                core.news.ring();
            }
        }
        drop(state);
        // A match that comes after this look finds the writer above, and wakers.
        let is_matched = core.tap.matches().contains(&writer.0);
        Ok(if is_matched { Connected::Now } else { Connected::Later })
    }

    fn forget(&self, writer: Gid) {
        if self.core.shared.is_current() {
            self.core.lock().forget(writer);
        }
    }

    fn take(&self) -> Result<Option<Sample>> {
        let core = &*self.core;
        core.shared.open("take")?;
        let mut state = core.lock();
        let Some(sample) = state.queue.pop() else { return Ok(None) };
        if core.limit.keeps_all
            && let Some(flow) = state.flows.get_mut(&sample.envelope.gid)
        {
            flow.taken = sample.envelope.sequence;
            flow.uncredited += 1;
            core.credit(sample.envelope.gid, flow);
        }
        Ok(Some(sample))
    }

    fn displaced(&self) -> u64 {
        self.core.lock().displaced
    }

    fn displaced_of(&self, writer: Gid) -> u64 {
        self.core.lock().flows.get(&writer).map_or(0, |flow| flow.displaced)
    }

    fn set_filter(&self, filter: Option<ByteFilter>) {
        self.core.lock().filtering.set(filter);
    }

    fn filtered(&self) -> u64 {
        self.core.lock().filtering.filtered()
    }

    fn filtered_of(&self, writer: Gid) -> u64 {
        self.core.lock().filtering.filtered_of(writer)
    }

    fn is_silent(&self, writer: Gid) -> Option<bool> {
        self.core.tap.is_silent(writer.0)
    }

    fn heed_displaced(&self) {
        let mut state = self.core.lock();
        (state.is_displacing, state.is_woken) = (false, false);
    }

    fn newest_ns(&self, writer: Gid) -> Option<u64> {
        let state = self.core.lock();
        match state.flows.get(&writer) {
            Some(flow) => flow.newest_ns,
            None => state.foreign_readers.get(&writer).copied().flatten(),
        }
    }
}

impl Drop for FlowReader {
    fn drop(&mut self) {
        let core = &*self.core;
        if !core.shared.is_current() {
            return;
        }
        core.shared.forget_reader(&self.core);
        let engine = crate::lock(&core.engine).take();
        // Waits for callbacks, which lock what is behind the reader.
        drop(engine);
        let mut state = core.lock();
        let flows = std::mem::take(&mut state.flows);
        let early = std::mem::take(&mut state.early);
        drop(state);
        core.shared.figures.count_doubled(early.drop_all());
        for (writer, flow) in flows {
            core.tell(writer, &flow, Content::Gone);
        }
    }
}

impl Flow {
    fn new(peer: PeerId, round: u32) -> Self {
        Self {
            peer,
            round,
            guid: None,
            is_heard: false,
            marks: VecDeque::new(),
            end: None,
            held: Held::default(),
            newest_ns: None,
            taken: 0,
            uncredited: 0,
            is_asked: false,
            displaced: 0,
        }
    }
}

/// What the engine calls. It does not keep the reader.
struct Ear(Weak<ReaderCore>);

impl Listener for Ear {
    fn data_available(&self) {
        if let Some(core) = self.0.upgrade() {
            core.gather();
        }
    }

    fn matched(&self) {
        if let Some(core) = self.0.upgrade() {
            core.hear();
        }
    }
}

#[cfg(test)]
mod tests {
    use tsuji_transport::Bytes;

    use super::*;

    #[test]
    fn what_samples_relate_to() {
        let (own, writer, other) = ([1; 16], [2; 16], [3; 16]);
        let (client, theirs) = (Gid([9; 16]), [4; 16]);
        let marks = VecDeque::from([(1, 11), (5, 20)]);
        let asking = Some(Asking { gid: client, guid: writer, marks });
        let state = State { relating: Some(own), asking, ..State::default() };
        let arrived = || Arrived {
            writer: theirs,
            number: 7,
            source_ns: 0,
            is_headed: false,
            related: None,
            bytes: Bytes::copy_from(&[0; 4]),
        };
        let relation_of = |asked: Option<(Gid, u64)>, related: Option<(Guid, i64)>| {
            let related = related.map(|(name, number)| Related { name, number });
            let arrived = Arrived { related, ..arrived() };
            state.relation(&arrived, asked)
        };
        let relation = |related| relation_of(None, related);
        // Requests, of those who say who takes the replies and of those who do not.
        assert_eq!(relation(None), Some((Gid(theirs), 7)));
        assert_eq!(relation(Some(([0; 16], 0))), Some((Gid(theirs), 7)));
        assert_eq!(relation(Some((other, -1 << 32))), Some((Gid(other), 7)));
        // Those of tsuji have their number on every link.
        let asked = Some((Gid([8; 16]), 70));
        assert_eq!(relation_of(asked, None), asked);
        assert_eq!(relation_of(asked, Some((other, 0))), asked);
        assert_eq!(relation_of(asked, Some((client.0, 12))), Some((client, 12)));
        // Replies, to this process by either of its names, and to another.
        assert_eq!(relation(Some((own, 2))), Some((client, 12)));
        assert_eq!(relation(Some((writer, 6))), Some((client, 21)));
        assert_eq!(relation(Some((other, 6))), Some((Gid(other), 6)));
        let related = Some(Related { name: own, number: 2 });
        // What stands in the payload is not looked for beside it.
        let headed = Arrived { related, is_headed: true, ..arrived() };
        assert_eq!(state.relation(&headed, asked), None);
        let arrived = Arrived { related, ..arrived() };
        assert_eq!(State::default().relation(&arrived, asked), None);
    }
}
