//! The receiving end of a topic: samples go from the engine into one queue as they arrive.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tsuji_core::{Durability, History, Reliability};
use tsuji_platform::clock;
use tsuji_transport::bell::Cell;
use tsuji_transport::{
    Encoding, Endpoint, Envelope, Error, ErrorKind, Gid, Payload, PeerId, Reader, Result, Sample,
    Ticket,
};

use crate::Shared;
use crate::engine::{Arrived, EndpointSpec, EngineReader, Guid, Listener, Participant, Tap};
use crate::introduction::ReaderTicket;
use crate::letter::{Content, Letter};
use crate::writer::push_mark;

pub(crate) struct CycloneReader {
    core: Arc<ReaderCore>,
}

impl CycloneReader {
    pub(crate) fn new(core: Arc<ReaderCore>) -> Self {
        Self { core }
    }
}

pub(crate) struct ReaderCore {
    shared: Arc<Shared>,
    gid: Gid,
    guid: Guid,
    tap: Tap,
    news: Arc<Cell>,
    limit: Limit,
    waits_for_history: bool,
    state: Mutex<State>,
    /// `None` before it is made and after the reader is gone.
    engine: Mutex<Option<EngineReader>>,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    samples: usize,
    keeps_all: bool,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Sample>,
    displaced: u64,
    flows: HashMap<Gid, Flow>,
    /// The flows by the engine's names of their writers.
    by_guid: HashMap<Guid, Gid>,
    rounds: u32,
    /// Of writers that are not known yet. Only where they keep what late joiners are owed, which comes
    /// before they say Hello.
    early: Held,
    /// Arrivals are told apart by their times.
    last_arrival_ns: u64,
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
}

/// Samples that wait for a letter that says what they are.
#[derive(Debug, Default)]
struct Held {
    samples: VecDeque<Arrived>,
    bytes: usize,
}

impl Held {
    /// Keeps one more, and answers how many of the oldest it dropped for that.
    fn push(&mut self, arrived: Arrived) -> u64 {
        self.bytes += arrived.bytes.len();
        self.samples.push_back(arrived);
        let mut dropped = 0;
        while HELD_MAX < self.samples.len()
            || (HELD_BYTES_MAX < self.bytes && 1 < self.samples.len())
        {
            let oldest = self.samples.pop_front();
            self.bytes -= oldest.map_or(0, |it| it.bytes.len());
            dropped += 1;
        }
        dropped
    }

    /// What a writer sent; the others' stays.
    fn take_of(&mut self, writer: Guid) -> Self {
        let all = std::mem::take(self);
        let mut taken = Self::default();
        for arrived in all.samples {
            if arrived.writer == writer {
                taken.push(arrived)
            } else {
                self.push(arrived)
            };
        }
        taken
    }
}

/// Beyond either, the oldest are dropped and counted as displaced.
const HELD_MAX: usize = 1024;
const HELD_BYTES_MAX: usize = 16 << 20;

impl ReaderCore {
    pub(crate) fn open(
        shared: &Arc<Shared>,
        participant: &Participant,
        endpoint: &Endpoint,
        news: Arc<Cell>,
    ) -> Result<Arc<Self>> {
        let limit = match endpoint.qos.history {
            History::KeepLast(depth) => Limit { samples: depth.max(1) as usize, keeps_all: false },
            History::KeepAll => Limit {
                samples: endpoint.keep_all_max.max(1) as usize,
                keeps_all: endpoint.qos.reliability == Reliability::Reliable,
            },
        };
        let spec = EndpointSpec::of(endpoint);
        let mut engine = participant.reader(&spec)?;
        let core = Arc::new(Self {
            shared: Arc::clone(shared),
            gid: endpoint.gid,
            guid: engine.guid(),
            tap: engine.tap(),
            news,
            limit,
            waits_for_history: endpoint.qos.durability == Durability::TransientLocal,
            state: Mutex::default(),
            engine: Mutex::new(None),
        });
        engine.listen(Arc::new(Ear(Arc::downgrade(&core))))?;
        *crate::lock(&core.engine) = Some(engine);
        // What came before anybody listened.
        core.gather();
        Ok(core)
    }

    /// A letter of a writer.
    pub(crate) fn read(&self, from: PeerId, letter: &Letter) {
        let mut state = self.lock();
        let known = state.flows.get_mut(&letter.writer);
        let Some(flow) = known.filter(|it| it.peer == from && it.round == letter.round) else {
            drop(state);
            if matches!(letter.content, Content::Hello(_)) {
                self.shared.post(from, Letter { content: Content::Gone, ..*letter });
            }
            return;
        };
        match letter.content {
            Content::Hello(guid) => {
                flow.guid = Some(guid);
                let held = state.early.take_of(guid);
                state.by_guid.insert(guid, letter.writer);
                if let Some(flow) = state.flows.get_mut(&letter.writer) {
                    flow.held = held;
                }
                drop(state);
                self.hear();
            }
            Content::Mark { engine, sequence } => {
                push_mark(&mut flow.marks, (engine, sequence));
                let held = std::mem::take(&mut flow.held);
                let mut news = false;
                for arrived in held.samples {
                    news |= state.arrive(letter.writer, arrived, self.limit);
                }
                if news {
                    self.news.ring();
                }
            }
            Content::End { engine } => {
                flow.end = Some(engine);
                state.drop_beyond_end(letter.writer, engine);
            }
            Content::Ask => {
                flow.is_asked = true;
                self.credit(letter.writer, flow);
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
        self.shared.post(flow.peer, Letter { writer, reader, round, content });
    }

    /// Takes from the engine what has arrived.
    fn gather(&self) {
        let mut news = false;
        let mut state = self.lock();
        // An error here means that the reader is about to go.
        while let Ok(Some(arrived)) = self.tap.take() {
            match state.by_guid.get(&arrived.writer).copied() {
                Some(writer) => news |= state.arrive(writer, arrived, self.limit),
                None if self.waits_for_history => state.displaced += state.early.push(arrived),
                None => (),
            }
        }
        // Before anybody can see that it has arrived.
        if news {
            self.news.ring();
        }
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

impl fmt::Debug for CycloneReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl State {
    /// Whether there is something new to take.
    fn arrive(&mut self, writer: Gid, arrived: Arrived, limit: Limit) -> bool {
        let Some(flow) = self.flows.get_mut(&writer) else { return false };
        let number = u64::try_from(arrived.number).unwrap_or(0);
        let Some((first, _)) = flow.marks.front() else {
            self.displaced += flow.held.push(arrived);
            return false;
        };
        // Before its first mark it was not for this reader, nor is it behind the end.
        if number < *first || flow.end.is_some_and(|end| end < number) {
            return false;
        }
        let mark = flow.marks.iter().rev().find(|(engine, _)| *engine <= number);
        let sequence =
            mark.map_or(0, |(engine, sequence)| sequence.saturating_add(number - engine));
        let now_ns = clock::monotonic_ns().max(self.last_arrival_ns + 1);
        self.last_arrival_ns = now_ns;
        flow.newest_ns = Some(now_ns);
        let envelope = Envelope {
            gid: writer,
            sequence,
            wall_ns: arrived.source_ns,
            mono_ns: 0,
            encoding: Encoding::Cdr1,
            related: None,
        };
        if !limit.keeps_all && limit.samples <= self.queue.len() {
            self.queue.pop_front();
            self.displaced += 1;
        }
        self.queue.push_back(Sample { envelope, payload: Payload::Bytes(arrived.bytes) });
        true
    }

    /// The end came later than what is behind it.
    fn drop_beyond_end(&mut self, writer: Gid, end: u64) {
        let Some(flow) = self.flows.get(&writer) else { return };
        let mark = flow.marks.iter().rev().find(|(engine, _)| *engine <= end);
        let Some((engine, sequence)) = mark else { return };
        let last = sequence.saturating_add(end - engine);
        self.queue.retain(|it| it.envelope.gid != writer || it.envelope.sequence <= last);
    }

    fn forget(&mut self, writer: Gid) {
        if let Some(guid) = self.flows.remove(&writer).and_then(|flow| flow.guid) {
            self.by_guid.remove(&guid);
        }
    }
}

impl Reader for CycloneReader {
    fn accept(&self, peer: PeerId, writer: Gid) -> Result<Ticket> {
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
        state.rounds = state.rounds.wrapping_add(1);
        let round = state.rounds;
        state.flows.insert(writer, Flow::new(peer, round));
        drop(state);
        let capacity = core.limit.keeps_all.then_some(core.limit.samples as u32);
        let ticket = ReaderTicket { guid: core.guid, round, capacity };
        Ok(ticket.to_ticket(core.shared.secret(), core.shared.id(), core.gid))
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
        let Some(sample) = state.queue.pop_front() else { return Ok(None) };
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

    fn newest_ns(&self, writer: Gid) -> Option<u64> {
        self.core.lock().flows.get(&writer)?.newest_ns
    }
}

impl Drop for CycloneReader {
    fn drop(&mut self) {
        let core = &*self.core;
        if !core.shared.is_current() {
            return;
        }
        core.shared.forget_reader(core.gid);
        let engine = crate::lock(&core.engine).take();
        // Waits for callbacks, which lock what is behind the reader.
        drop(engine);
        let flows = std::mem::take(&mut core.lock().flows);
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
        }
    }
}

/// What the engine calls. It does not keep the reader.
struct Ear(Weak<ReaderCore>);

impl Listener for Ear {
    fn news(&self) {
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
