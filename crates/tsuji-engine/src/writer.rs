//! The sending end of a topic. The engine sends to all that match; who of them may count on it is
//! kept here.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tsuji_core::{Durability, History};
use tsuji_platform::clock;
use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_transport::bell::Cell;
use tsuji_transport::wire::Relates;
use tsuji_transport::{
    Address, Bytes, Connected, Encoding, Endpoint, Envelope, Error, ErrorKind, Gid, Loan, Payload,
    PeerId, Result, Sent, Writer,
};

use crate::engine::{EndpointSpec, EngineWriter, Guid, Listener, Peep, Related};
use crate::flow_message::{Content, FlowMessage};
use crate::introduction::ReaderAddress;
use crate::membership::Lease;
use crate::{HEADER_LEN, Shared};

pub(crate) struct FlowWriter {
    core: Arc<WriterCore>,
}

impl FlowWriter {
    pub(crate) fn new(core: Arc<WriterCore>) -> Self {
        Self { core }
    }
}

pub(crate) struct WriterCore {
    shared: Arc<Shared>,
    gid: Gid,
    guid: Guid,
    peep: Arc<dyn Peep>,
    room: Arc<Cell>,
    /// The engine keeps what late joiners are owed, so everything is written.
    keeps: bool,
    keeps_all: bool,
    state: Mutex<State>,
    engine: Mutex<Option<Arc<dyn EngineWriter>>>,
    // The last: the writer is gone before its participant may go.
    lease: Lease,
}

#[derive(Debug, Default)]
struct State {
    connections: Vec<Connection>,
    /// Readers that are not tsuji's. They get no messages, and nothing waits for them.
    foreign_readers: Vec<Foreign>,
    /// The engine's names of the readers that match, tsuji's and others'.
    matches: Vec<Guid>,
    /// Since when each of them does.
    matched_ns: HashMap<Guid, u64>,
    /// How many samples the engine has numbered.
    written: u64,
    /// From which number of the engine on which sequence number holds, oldest first. Beyond
    /// [`MARKS_MAX`] the oldest are forgotten.
    marks: VecDeque<(u64, u64)>,
    reserved: bool,
    /// Readers that were open and that the engine does not reach any more, to be told.
    lost: Vec<Gid>,
    /// A send or a reservation was refused since room was last announced.
    is_waited_for: bool,
    /// What was written since all was acknowledged, as far as it was asked. Only where all is kept:
    /// elsewhere the engine keeps no more than the depth.
    unacknowledged_bytes: usize,
    /// A thread waits for acknowledgements.
    is_acknowledging: bool,
}

impl State {
    fn open_foreign_readers(&self) -> usize {
        self.foreign_readers.iter().filter(|it| it.is_open).count()
    }
}

/// A reader of another tsuji process.
#[derive(Debug)]
struct Connection {
    address: Address,
    peer: PeerId,
    reader: ReaderAddress,
    /// Its engine has matched the writer.
    is_heard: bool,
    /// The reader is gone.
    is_gone: bool,
    /// It counts on what is sent.
    is_open: bool,
    /// The last number of the engine of which it was told the sequence number.
    marked: Option<(u64, u64)>,
    /// The samples that were sent and not taken, by sequence number and bytes, and their bytes
    /// together. Only where all are kept.
    waiting: VecDeque<(u64, usize)>,
    waiting_bytes: usize,
    /// It was asked for credit and has not answered.
    is_asked: bool,
}

/// A reader that is not tsuji's.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    /// The engine's name of it.
    name: Gid,
    /// It counts on what is sent.
    is_open: bool,
}

impl Connection {
    fn is_full(&self) -> bool {
        let is_full = |capacity| capacity as usize <= self.waiting.len();
        self.reader.capacity.is_some_and(is_full) || WAITING_BYTES_MAX <= self.waiting_bytes
    }

    fn note_sent(&mut self, sequence: u64, bytes: usize) {
        if self.reader.capacity.is_some() {
            self.waiting.push_back((sequence, bytes));
            self.waiting_bytes += bytes;
        }
    }

    /// It has taken all up to this sample.
    fn note_taken(&mut self, last: u64) {
        while let Some((sequence, bytes)) = self.waiting.front()
            && *sequence <= last
        {
            self.waiting_bytes -= bytes;
            self.waiting.pop_front();
        }
        self.is_asked = false;
    }
}

impl WriterCore {
    pub(crate) fn open(
        shared: &Arc<Shared>,
        lease: Lease,
        endpoint: &Endpoint,
        room: Arc<Cell>,
    ) -> Result<Arc<Self>> {
        let mut engine =
            lease.participant().writer(&EndpointSpec::of(endpoint, shared.about.peers))?;
        let core = Arc::new(Self {
            shared: Arc::clone(shared),
            gid: endpoint.gid,
            guid: engine.guid(),
            peep: engine.peep(),
            room,
            keeps: endpoint.qos.durability == Durability::TransientLocal,
            keeps_all: endpoint.qos.history == History::KeepAll,
            state: Mutex::default(),
            engine: Mutex::new(None),
            lease,
        });
        engine.listen(Arc::new(Ear(Arc::downgrade(&core))))?;
        *crate::lock(&core.engine) = Some(Arc::from(engine));
        core.see_matches();
        Ok(core)
    }

    /// A message of a reader.
    pub(crate) fn read(&self, from: PeerId, message: &FlowMessage) {
        let mut state = self.lock();
        let found = state.connections.iter_mut().find(|it| {
            it.peer == from
                && it.address.reader == message.reader
                && it.reader.round == message.round
        });
        let Some(connection) = found else { return };
        match message.content {
            Content::Heard => connection.is_heard = true,
            Content::Gone => connection.is_gone = true,
            Content::Credit(taken) => {
                connection.note_taken(taken);
                self.announce_room(&mut state);
                return;
            }
            Content::Hello(_) | Content::Mark { .. } | Content::End { .. } | Content::Ask => return,
        }
        if connection.is_gone && connection.is_open {
            state.connections.retain(|it| !it.is_gone || !it.is_open);
        }
        self.announce_room(&mut state);
        drop(state);
        self.shared.wake();
    }

    /// A process is gone, and all its readers with it.
    pub(crate) fn part(&self, peer: PeerId) {
        let mut state = self.lock();
        state.connections.retain(|it| it.peer != peer);
        self.announce_room(&mut state);
    }

    fn announce_room(&self, state: &mut State) {
        if state.is_waited_for && !state.connections.iter().any(|it| it.is_open && it.is_full()) {
            state.is_waited_for = false;
            self.room.ring();
        }
    }

    /// Announces room when the readers have caught up with what was written. The engine tells nobody
    /// of that, so a thread of its own waits for it, which there is only where too much was written.
    fn await_acknowledgements(self: &Arc<Self>, state: &mut State, engine: Arc<dyn EngineWriter>) {
        state.is_waited_for = true;
        if std::mem::replace(&mut state.is_acknowledging, true) {
            return;
        }
        let core = Arc::clone(self);
        let spawned = self.shared.apart("tsuji-acks", move || {
            engine.wait_for_acknowledgements(LOOK_AGAIN);
            drop(engine);
            let mut state = core.lock();
            state.is_acknowledging = false;
            core.announce_room(&mut state);
        });
        // Where there is no thread to be had the publisher looks again when its patience ends.
        state.is_acknowledging = spawned.is_ok();
    }

    fn see_matches(&self) {
        let mut state = self.lock();
        // Under the lock, so that what was seen last is what is kept.
        let matches = self.peep.matches();
        let is_lost = |it: &Connection| it.is_open && !matches.contains(&it.reader.guid);
        let lost = state.connections.iter().filter(|it| is_lost(it)).map(|it| it.address.reader);
        let mut lost: Vec<Gid> = lost.collect();
        state.connections.retain(|it| !is_lost(it));
        let is_lost = |it: &Foreign| it.is_open && !matches.contains(&it.name.0);
        lost.extend(state.foreign_readers.iter().filter(|it| is_lost(it)).map(|it| it.name));
        state.foreign_readers.retain(|it| !is_lost(it));
        state.lost.extend(lost);
        state.matched_ns.retain(|it, _| matches.contains(it));
        let now_ns = clock::monotonic_ns();
        for reader in &matches {
            state.matched_ns.entry(*reader).or_insert(now_ns);
        }
        state.matches = matches;
        self.announce_room(&mut state);
        drop(state);
        self.shared.wake();
    }

    /// Makes sure that no reader that counts on it is full.
    fn reserve(self: &Arc<Self>, state: &mut State) -> Result<()> {
        if state.reserved {
            return Ok(());
        }
        let full = state.connections.iter_mut().filter(|it| it.is_open && it.is_full());
        let mut is_full = false;
        for connection in full {
            is_full = true;
            if !std::mem::replace(&mut connection.is_asked, true) {
                self.tell(connection, Content::Ask);
            }
        }
        if is_full {
            state.is_waited_for = true;
            let error = Error::new(ErrorKind::Busy, "send");
            return Err(error.about("a reader that keeps all is full"));
        }
        if UNACKNOWLEDGED_BYTES_MAX / 4 <= state.unacknowledged_bytes
            && let Some(engine) = self.engine()
        {
            if engine.is_acknowledged() {
                state.unacknowledged_bytes = 0;
            } else if UNACKNOWLEDGED_BYTES_MAX <= state.unacknowledged_bytes {
                self.await_acknowledgements(state, engine);
                let error = Error::new(ErrorKind::Busy, "send");
                return Err(error.about("a reader has not acknowledged what it was sent"));
            }
        }
        state.reserved = true;
        Ok(())
    }

    /// Tells a reader which sequence number a sample has that the engine numbers.
    fn mark(&self, connection: &mut Connection, (engine, sequence): (u64, u64)) {
        connection.marked = Some((engine, sequence));
        self.tell(connection, Content::Mark { engine, sequence });
    }

    fn tell(&self, connection: &Connection, content: Content) {
        let (reader, round) = (connection.address.reader, connection.reader.round);
        let message = FlowMessage { writer: self.gid, reader, round, content };
        self.shared.post(connection.peer, message);
    }

    /// What a sample is said to relate to. A reply says what came with its request. A request names who
    /// takes its replies, who is told by which number it will be answered; and nobody while its replies come
    /// by another link.
    fn relate(&self, (gid, number): (Gid, u64), mark: (u64, u64)) -> Option<Related> {
        if number != 0 {
            return Some(Related { name: gid.0, number: number.cast_signed() });
        }
        let replies = self.shared.reader(gid)?;
        replies.note_asked(self.gid, self.guid, mark);
        Some(Related { name: replies.guid(), number: 0 })
    }

    fn engine(&self) -> Option<Arc<dyn EngineWriter>> {
        crate::lock(&self.engine).clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        crate::lock(&self.state)
    }
}

impl fmt::Debug for WriterCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterCore").field("gid", &self.gid).finish_non_exhaustive()
    }
}

impl fmt::Debug for FlowWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl Writer for FlowWriter {
    fn loan(&self, len: usize) -> Result<Loan> {
        let _ = len;
        self.core.shared.open("loan")?;
        Err(Error::new(ErrorKind::Unsupported, "loan"))
    }

    fn reserve(&self, len: usize) -> Result<()> {
        self.core.shared.open("reserve")?;
        self.core.shared.fits(len)?;
        self.core.reserve(&mut self.core.lock())
    }

    fn cancel(&self) {
        if self.core.shared.is_current() {
            self.core.lock().reserved = false;
        }
    }

    fn send(&self, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        let core = &*self.core;
        core.shared.open("send")?;
        let bytes = carried(envelope, payload)?;
        core.shared.fits(bytes.len())?;
        let engine = core.engine().ok_or_else(|| Error::new(ErrorKind::Closed, "send"))?;
        let mut state = core.lock();
        self.core.reserve(&mut state)?;
        state.reserved = false;
        if state.matches.is_empty() && !core.keeps {
            return Ok(Sent::default());
        }
        let number = state.written + 1;
        let mark = (number, envelope.sequence);
        let last = state.marks.back().copied();
        if last.is_none_or(|last| !follows(last, mark)) {
            push_mark(&mut state.marks, mark);
        }
        for connection in state.connections.iter_mut().filter(|it| it.is_open) {
            if connection.marked.is_none_or(|last| !follows(last, mark)) {
                core.mark(connection, mark);
            }
        }
        let is_asked = core.shared.about.relates != Relates::Never;
        let related = envelope.related.filter(|_| is_asked);
        let related = related.and_then(|it| core.relate(it, mark));
        let written = match (core.shared.about.relates, related, &envelope.header) {
            (Relates::Either, related, Some(header)) => {
                engine.write_either(bytes, envelope.wall_ns, header, related)
            }
            (Relates::Beside, Some(related), _) => {
                engine.write_related(bytes, envelope.wall_ns, related)
            }
            _ => engine.write(bytes, envelope.wall_ns),
        };
        if let Err(error) = written {
            if error.kind() == ErrorKind::Busy {
                self.core.await_acknowledgements(&mut state, engine);
            }
            return Err(error);
        }
        state.written = number;
        if core.keeps_all {
            state.unacknowledged_bytes += bytes.len();
        }
        let mut sent = Sent { readers: state.open_foreign_readers() as u32, displaced: 0 };
        for connection in state.connections.iter_mut().filter(|it| it.is_open) {
            connection.note_sent(envelope.sequence, bytes.len());
            sent.readers += 1;
        }
        Ok(sent)
    }

    fn send_to(&self, reader: Gid, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        let _ = (reader, envelope, payload);
        self.core.shared.open("send")?;
        Err(Error::new(ErrorKind::Unsupported, "send to one reader"))
    }

    fn connect(&self, address: &Address) -> Result<Connected> {
        let core = &*self.core;
        core.shared.open("connect")?;
        let mut state = core.lock();
        let known = state.connections.iter().position(|it| it.address == *address);
        let Some(at) = known else {
            drop(state);
            return self.begin(address);
        };
        let is_matched = state.matches.contains(&state.connections[at].reader.guid);
        let State { connections, marks, .. } = &mut *state;
        let connection = &mut connections[at];
        if connection.is_gone {
            connections.remove(at);
            let error = Error::new(ErrorKind::Closed, "connect");
            return Err(error.about(format!("reader {} is gone", address.reader)));
        }
        if !connection.is_heard || !is_matched {
            return Ok(Connected::Later);
        }
        if !std::mem::replace(&mut connection.is_open, true) && core.keeps {
            // What the engine gives a late joiner has numbers already.
            marks.iter().for_each(|mark| core.mark(connection, *mark));
        }
        Ok(Connected::Now)
    }

    fn disconnect(&self, reader: Gid) {
        let core = &*self.core;
        if !core.shared.is_current() {
            return;
        }
        let mut state = core.lock();
        if let Some(at) = state.connections.iter().position(|it| it.address.reader == reader) {
            let connection = state.connections.remove(at);
            core.tell(&connection, Content::End { engine: state.written });
        }
        state.foreign_readers.retain(|it| it.name != reader);
        core.announce_room(&mut state);
    }

    fn assert_liveliness(&self) {
        if let Some(engine) = self.core.engine().filter(|_| self.core.shared.is_current()) {
            engine.assert_liveliness();
        }
    }

    fn wire_name(&self) -> Option<Gid> {
        Some(Gid(self.core.guid))
    }

    fn connect_foreign(&self, reader: Gid) -> Result<Connected> {
        let core = &*self.core;
        core.shared.open("connect")?;
        let mut state = core.lock();
        let state = &mut *state;
        let is_matched = state.matches.contains(&reader.0);
        match state.foreign_readers.iter_mut().find(|it| it.name == reader) {
            Some(plain) => plain.is_open |= is_matched,
            None => {
                state.reserved = false;
                state.foreign_readers.push(Foreign { name: reader, is_open: is_matched });
            }
        }
        Ok(if is_matched { Connected::Now } else { Connected::Later })
    }

    fn lost(&self) -> Vec<Gid> {
        std::mem::take(&mut self.core.lock().lost)
    }

    fn readers(&self) -> usize {
        let state = self.core.lock();
        state.open_foreign_readers() + state.connections.iter().filter(|it| it.is_open).count()
    }

    fn is_acknowledged(&self) -> bool {
        self.core.engine().is_none_or(|engine| engine.is_acknowledged())
    }

    fn matched_for(&self, reader: Gid) -> Duration {
        let since_ns = self.core.lock().matched_ns.get(&reader.0).copied();
        let for_ns = since_ns.map(|it| clock::monotonic_ns().saturating_sub(it));
        Duration::from_nanos(for_ns.unwrap_or(0))
    }

    fn when_acknowledged(&self, timeout: Duration, then: Box<dyn FnOnce() + Send>) {
        let Some(engine) = self.core.engine() else { return then() };
        let lease = self.core.lease.clone();
        let wait = move || {
            engine.wait_for_acknowledgements(timeout);
            // In this order: the writer is gone before its participant may go.
            drop(engine);
            drop(lease);
            then();
        };
        // Where there is no thread to be had the closure is dropped, and whoever asked looks when its patience ends.
        let _ = self.core.shared.apart("tsuji-acks", wait);
    }
}

impl FlowWriter {
    /// Says Hello to a reader, in the place of an earlier connection with it.
    fn begin(&self, address: &Address) -> Result<Connected> {
        let core = &*self.core;
        let refused = |kind, why: String| Err(Error::new(kind, "connect").about(why));
        let Some(secret) = core.shared.secret_of(address.peer) else {
            return refused(ErrorKind::Closed, format!("process {} was not met", address.peer));
        };
        let Some(reader) = ReaderAddress::read(address, secret) else {
            return refused(ErrorKind::Invalid, "not an address of that reader".to_owned());
        };
        let connection = Connection {
            address: address.clone(),
            peer: address.peer,
            reader,
            is_heard: false,
            is_gone: false,
            is_open: false,
            marked: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_asked: false,
        };
        let mut state = core.lock();
        state.reserved = false;
        state.connections.retain(|it| it.address.reader != address.reader);
        core.tell(&connection, Content::Hello(core.guid));
        state.connections.push(connection);
        core.announce_room(&mut state);
        Ok(Connected::Later)
    }
}

impl Drop for FlowWriter {
    fn drop(&mut self) {
        let core = &*self.core;
        if !core.shared.is_current() {
            return;
        }
        core.shared.forget_writer(&self.core);
        let engine = crate::lock(&core.engine).take();
        core.shared.linger(engine, core.lease.clone());
    }
}

/// Whether both numbers grew alike between two samples.
pub(crate) fn follows((engine, sequence): (u64, u64), later: (u64, u64)) -> bool {
    later.0.wrapping_sub(engine) == later.1.wrapping_sub(sequence)
}

/// What a reader that keeps all has waiting of one writer, in bytes; one sample more fits always.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// What is written until all of it is acknowledged. A reader that is dead and that the engine still
/// takes for alive makes the writer wait from here on, until its lease ends.
const UNACKNOWLEDGED_BYTES_MAX: usize = 512 << 20;

/// How long at most until a writer with too much unacknowledged is tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Adds to the changes of numbering, oldest first. Of one number of the engine the last counts;
/// beyond [`MARKS_MAX`] the oldest are forgotten.
pub(crate) fn push_mark(marks: &mut VecDeque<(u64, u64)>, mark: (u64, u64)) {
    if marks.back().is_some_and(|(engine, _)| *engine == mark.0) {
        marks.pop_back();
    } else if marks.len() == MARKS_MAX {
        marks.pop_front();
    }
    marks.push_back(mark);
}

/// Changes of numbering that are remembered.
const MARKS_MAX: usize = 16;

/// The bytes of a sample, if the engine can carry it.
fn carried<'a>(envelope: &Envelope, payload: &'a Payload) -> Result<&'a Bytes> {
    let refused = |kind, why| Err(Error::new(kind, "send").about(why));
    let Payload::Bytes(bytes) = payload else {
        return refused(ErrorKind::Unsupported, "a typed value");
    };
    if envelope.encoding != Encoding::Cdr1 || bytes.len() < HEADER_LEN {
        return refused(ErrorKind::Invalid, "no CDR; allowed: CDR with its header of 4 bytes");
    }
    Ok(bytes)
}

/// What the engine calls. It does not keep the writer.
struct Ear(Weak<WriterCore>);

impl Listener for Ear {
    fn matched(&self) {
        if let Some(core) = self.0.upgrade() {
            core.see_matches();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(capacity: Option<u32>) -> Connection {
        Connection {
            address: Address::default(),
            peer: PeerId::default(),
            reader: ReaderAddress { guid: [0; 16], round: 1, capacity },
            is_heard: true,
            is_gone: false,
            is_open: true,
            marked: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_asked: false,
        }
    }

    #[test]
    fn room_is_counted_in_samples_and_in_bytes() {
        let mut few = connection(Some(2));
        few.note_sent(5, 10);
        assert!(!few.is_full());
        few.note_sent(9, 10);
        assert!(few.is_full());
        few.note_taken(8);
        assert_eq!((few.is_full(), few.waiting_bytes), (false, 10));
        // What was never sent takes nothing away, nor does news that is old.
        few.note_taken(u64::MAX);
        few.note_taken(1);
        assert_eq!((few.waiting.len(), few.waiting_bytes), (0, 0));

        let mut large = connection(Some(1000));
        large.note_sent(1, WAITING_BYTES_MAX - 1);
        assert!(!large.is_full());
        large.note_sent(2, 1);
        assert!(large.is_full());

        let mut newest = connection(None);
        (0..100).for_each(|sequence| newest.note_sent(sequence, WAITING_BYTES_MAX));
        assert!(!newest.is_full());
    }

    #[test]
    fn of_one_number_of_the_engine_the_last_mark_counts() {
        let mut marks = VecDeque::new();
        push_mark(&mut marks, (1, 1));
        (0..100).for_each(|sequence| push_mark(&mut marks, (7, sequence)));
        assert_eq!(marks, [(1, 1), (7, 99)]);
        (8..108).for_each(|engine| push_mark(&mut marks, (engine, 0)));
        assert_eq!((marks.len(), marks.front()), (MARKS_MAX, Some(&(92, 0))));
    }

    #[test]
    fn numbers_that_grow_alike_follow() {
        assert!(follows((1, 5), (3, 7)));
        assert!(!follows((1, 5), (3, 8)));
        assert!(follows((u64::MAX, 5), (0, 6)));
    }
}
