//! Samples by reference between threads of one process. The reference implementation of the seam.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tsuji_core::{Capability, History, Reliability, Scopes, TransportId};
use tsuji_platform::fork::Generation;

use crate::bell::Cell;
use crate::{
    Address, Connected, Endpoint, Envelope, Error, ErrorKind, Gid, HeapReserve, Loan, Payload,
    PeerId, Reader, Result, Sample, Sent, Transport, Writer,
};

/// A bus inside this process. Clones share it.
#[derive(Clone, Debug)]
pub struct InProcess {
    bus: Arc<Bus>,
}

#[derive(Debug)]
struct Bus {
    inboxes: Mutex<HashMap<u64, Weak<Inbox>>>,
    inboxes_made: AtomicU64,
    generation: Generation,
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl InProcess {
    /// A bus of its own.
    pub fn new() -> Self {
        let bus = Bus {
            inboxes: Mutex::default(),
            inboxes_made: AtomicU64::new(0),
            generation: Generation::current(),
        };
        Self { bus: Arc::new(bus) }
    }

    fn open(&self, operation: &'static str) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Closed, operation).about("this is a forked child"))
    }

    /// In a forked child a lock may be held by a thread that is not there any more.
    fn is_current(&self) -> bool {
        self.bus.generation.is_current()
    }
}

impl Transport for InProcess {
    fn id(&self) -> TransportId {
        TransportId::new("inproc")
    }

    fn capability(&self) -> Capability {
        Capability {
            scopes: Scopes { intra: true, local: false, remote: false },
            reliable: true,
            loan: true,
            typed: true,
            immediate: true,
            directed: true,
            whole_envelope: true,
            cdr_only: false,
            sample_bytes_max: SAMPLE_BYTES_MAX,
            readers_max: u32::MAX,
        }
    }

    fn is_confined(&self) -> bool {
        true
    }

    fn open_writer(&self, endpoint: &Endpoint, room: Arc<Cell>) -> Result<Arc<dyn Writer>> {
        self.open("open a writer")?;
        let connections = Mutex::default();
        let reserve = HeapReserve::default();
        Ok(Arc::new(InProcessWriter {
            bus: self.clone(),
            gid: endpoint.gid,
            connections,
            room,
            reserve,
        }))
    }

    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        self.open("open a reader")?;
        let limit = match endpoint.qos.history {
            History::KeepLast(depth) => Limit { samples: depth.max(1) as usize, keep_all: false },
            History::KeepAll => Limit {
                samples: endpoint.keep_all_max.max(1) as usize,
                keep_all: endpoint.qos.reliability == Reliability::Reliable,
            },
        };
        let inbox = Inbox {
            limit,
            queue: Mutex::default(),
            arrivals: Mutex::default(),
            filtered_before: AtomicU64::new(0),
            news,
        };
        let inbox = Arc::new(inbox);
        let number = self.bus.inboxes_made.fetch_add(1, Ordering::Relaxed);
        lock(&self.bus.inboxes).insert(number, Arc::downgrade(&inbox));
        Ok(Arc::new(InProcessReader { bus: self.clone(), inbox, number, gid: endpoint.gid }))
    }
}

#[derive(Debug)]
struct InProcessWriter {
    bus: InProcess,
    gid: Gid,
    connections: Mutex<Connections>,
    room: Arc<Cell>,
    /// For loans.
    reserve: HeapReserve,
}

#[derive(Debug, Default)]
struct Connections {
    all: Vec<Connection>,
    /// Each inbox of `all` holds a place for the next sample.
    reserved: bool,
    /// Empty between sends; kept for its memory.
    displaced: Vec<Sample>,
}

#[derive(Clone, Debug)]
struct Connection {
    reader: Gid,
    inbox: Arc<Inbox>,
    arrivals: Arc<Arrivals>,
}

/// What a reader is to know of a writer besides its samples.
#[derive(Debug, Default)]
struct Arrivals {
    /// When its newest sample was sent; 0 before the first.
    newest_ns: AtomicU64,
    /// Samples that it has filtered out.
    filtered: AtomicU64,
}

impl Connection {
    /// Adds a sample for which there is a place, unless the reader is gone.
    fn push(&self, sample: Sample, displaced: &mut Vec<Sample>) -> bool {
        self.arrivals.newest_ns.store(sample.envelope.mono_ns, Ordering::Relaxed);
        self.inbox.push(sample, displaced)
    }

    fn note_filtered(&self, envelope: &Envelope) {
        self.arrivals.newest_ns.store(envelope.mono_ns, Ordering::Relaxed);
        self.arrivals.filtered.fetch_add(1, Ordering::Relaxed);
    }
}

impl InProcessWriter {
    fn reserve_all(&self, connections: &mut Connections) -> Result<()> {
        self.reserve_for(connections, &[])?;
        connections.reserved = true;
        Ok(())
    }

    /// Reserves a place with all readers but these, unless all have one reserved.
    fn reserve_for(&self, connections: &Connections, filtered: &[Gid]) -> Result<()> {
        if connections.reserved {
            return Ok(());
        }
        let wanted = || connections.all.iter().filter(|it| !filtered.contains(&it.reader));
        for (at, connection) in wanted().enumerate() {
            if !connection.inbox.reserve(&self.room) {
                wanted().take(at).for_each(|it| it.inbox.cancel());
                return Err(busy());
            }
        }
        Ok(())
    }
}

impl InProcessWriter {
    fn connection(&self, reader: Gid) -> Option<Connection> {
        lock(&self.connections).all.iter().find(|it| it.reader == reader).cloned()
    }
}

impl Writer for InProcessWriter {
    fn loan(&self, len: usize) -> Result<Loan> {
        self.bus.open("loan")?;
        fits(len)?;
        Ok(self.reserve.loan(len))
    }

    fn reserve(&self, len: usize) -> Result<()> {
        self.bus.open("reserve")?;
        fits(len)?;
        self.reserve_all(&mut lock(&self.connections))
    }

    fn cancel(&self) {
        if !self.bus.is_current() {
            return;
        }
        let mut connections = lock(&self.connections);
        if std::mem::take(&mut connections.reserved) {
            connections.all.iter().for_each(|it| it.inbox.cancel());
        }
    }

    fn send(&self, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        self.send_except(&[], envelope, payload)
    }

    fn send_except(
        &self,
        filtered: &[Gid],
        envelope: &Envelope,
        payload: &Payload,
    ) -> Result<Sent> {
        self.bus.open("send")?;
        if let Payload::Bytes(bytes) = payload {
            fits(bytes.len())?;
        }
        let mut connections = lock(&self.connections);
        self.reserve_for(&connections, filtered)?;
        let was_reserved = std::mem::take(&mut connections.reserved);
        let mut displaced = std::mem::take(&mut connections.displaced);
        let mut sent = Sent::default();
        for connection in &connections.all {
            if filtered.contains(&connection.reader) {
                if was_reserved {
                    connection.inbox.cancel();
                }
                connection.note_filtered(envelope);
                continue;
            }
            let sample = Sample { envelope: *envelope, payload: payload.clone() };
            sent.readers += u32::from(connection.push(sample, &mut displaced));
        }
        sent.displaced = displaced.len() as u32;
        drop(connections);
        // Payloads are the user's, and may do anything when dropped.
        displaced.clear();
        if displaced.capacity() != 0 {
            lock(&self.connections).displaced = displaced;
        }
        Ok(sent)
    }

    fn note_filtered(&self, reader: Gid, envelope: &Envelope) {
        if self.bus.is_current()
            && let Some(connection) = self.connection(reader)
        {
            connection.note_filtered(envelope);
        }
    }

    fn send_to(&self, reader: Gid, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        self.bus.open("send")?;
        let connection = self.connection(reader).ok_or_else(|| not_connected(reader))?;
        if !connection.inbox.reserve(&self.room) {
            return Err(busy());
        }
        let sample = Sample { envelope: *envelope, payload: payload.clone() };
        let mut displaced = Vec::new();
        let readers = u32::from(connection.push(sample, &mut displaced));
        Ok(Sent { readers, displaced: displaced.len() as u32 })
    }

    fn connect(&self, address: &Address) -> Result<Connected> {
        self.bus.open("connect")?;
        let number = <[u8; 8]>::try_from(&*address.bytes).map(u64::from_le_bytes);
        let number = number.map_err(|_| Error::new(ErrorKind::Invalid, "connect"))?;
        let inbox = lock(&self.bus.bus.inboxes).get(&number).and_then(Weak::upgrade);
        let inbox = inbox.ok_or_else(|| not_connected(address.reader))?;
        self.cancel();
        let mut connections = lock(&self.connections);
        connections.all.retain(|it| it.reader != address.reader);
        let arrivals = inbox.arrivals_of(self.gid);
        connections.all.push(Connection { reader: address.reader, inbox, arrivals });
        Ok(Connected::Now)
    }

    fn disconnect(&self, reader: Gid) {
        if !self.bus.is_current() {
            return;
        }
        let mut connections = lock(&self.connections);
        let is_reserved = connections.reserved;
        connections.all.retain(|it| {
            let stays = it.reader != reader;
            if !stays && is_reserved {
                it.inbox.cancel();
            }
            stays
        });
    }

    fn readers(&self) -> usize {
        lock(&self.connections).all.len()
    }
}

impl Drop for InProcessWriter {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[derive(Debug)]
struct InProcessReader {
    bus: InProcess,
    inbox: Arc<Inbox>,
    number: u64,
    gid: Gid,
}

impl Reader for InProcessReader {
    fn accept(&self, peer: PeerId, writer: Gid) -> Result<Address> {
        let _ = writer;
        self.bus.open("accept")?;
        Ok(Address { peer, reader: self.gid, bytes: self.number.to_le_bytes().into() })
    }

    fn forget(&self, writer: Gid) {
        if self.bus.is_current() {
            self.inbox.forget(&mut lock(&self.inbox.arrivals), writer);
        }
    }

    fn take(&self) -> Result<Option<Sample>> {
        self.bus.open("take")?;
        Ok(self.inbox.pop())
    }

    fn displaced(&self) -> u64 {
        lock(&self.inbox.queue).displaced
    }

    fn filtered(&self) -> u64 {
        let arrivals = lock(&self.inbox.arrivals);
        let now = arrivals.iter().map(|(_, it)| it.filtered.load(Ordering::Relaxed));
        now.fold(self.inbox.filtered_before.load(Ordering::Relaxed), u64::saturating_add)
    }

    fn filtered_of(&self, writer: Gid) -> u64 {
        let arrivals = lock(&self.inbox.arrivals);
        let found = arrivals.iter().find(|(gid, _)| *gid == writer);
        found.map_or(0, |(_, it)| it.filtered.load(Ordering::Relaxed))
    }

    fn newest_ns(&self, writer: Gid) -> Option<u64> {
        let arrivals = lock(&self.inbox.arrivals);
        let (_, found) = arrivals.iter().find(|(gid, _)| *gid == writer)?;
        Some(found.newest_ns.load(Ordering::Relaxed)).filter(|ns| *ns != 0)
    }
}

impl Drop for InProcessReader {
    fn drop(&mut self) {
        if !self.bus.is_current() {
            return;
        }
        lock(&self.bus.bus.inboxes).remove(&self.number);
        let mut queue = lock(&self.inbox.queue);
        queue.is_closed = true;
        let samples = std::mem::take(&mut queue.samples);
        queue.waiting.drain(..).for_each(|room| room.ring());
        drop(queue);
        // Payloads are the user's, and may do anything when dropped.
        drop(samples);
    }
}

struct Inbox {
    limit: Limit,
    queue: Mutex<Queue>,
    /// Of each connected writer.
    arrivals: Mutex<Vec<(Gid, Arc<Arrivals>)>>,
    /// Samples that writers filtered out which are forgotten.
    filtered_before: AtomicU64,
    news: Arc<Cell>,
}

#[derive(Clone, Copy)]
struct Limit {
    samples: usize,
    keep_all: bool,
}

#[derive(Default)]
struct Queue {
    /// The reader is gone. What is sent here is dropped.
    is_closed: bool,
    samples: VecDeque<Sample>,
    /// Places promised to writers that have not sent yet. Only where all samples are kept.
    reserved: usize,
    /// Writers that found no place. One that is listed twice is rung once too often.
    waiting: Vec<Arc<Cell>>,
    displaced: u64,
}

impl Inbox {
    fn arrivals_of(&self, writer: Gid) -> Arc<Arrivals> {
        let of_writer = Arc::default();
        let mut arrivals = lock(&self.arrivals);
        self.forget(&mut arrivals, writer);
        arrivals.push((writer, Arc::clone(&of_writer)));
        of_writer
    }

    /// Keeps no more of a writer than how many samples it has filtered out.
    fn forget(&self, arrivals: &mut Vec<(Gid, Arc<Arrivals>)>, writer: Gid) {
        for (_, forgotten) in arrivals.extract_if(.., |(gid, _)| *gid == writer) {
            let filtered = forgotten.filtered.load(Ordering::Relaxed);
            self.filtered_before.fetch_add(filtered, Ordering::Relaxed);
        }
    }

    fn reserve(&self, room: &Arc<Cell>) -> bool {
        if !self.limit.keep_all {
            return true;
        }
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return true;
        }
        if self.limit.samples <= queue.samples.len() + queue.reserved {
            if !queue.waiting.iter().any(|it| Arc::ptr_eq(it, room)) {
                queue.waiting.push(Arc::clone(room));
            }
            return false;
        }
        queue.reserved += 1;
        true
    }

    fn cancel(&self) {
        if self.limit.keep_all {
            let mut queue = lock(&self.queue);
            queue.reserved = queue.reserved.saturating_sub(1);
            queue.waiting.drain(..).for_each(|room| room.ring());
        }
    }

    /// Adds a sample for which there is a place, unless the reader is gone. What it pushes out is
    /// added to `displaced`, for the caller to drop when it holds no lock.
    fn push(&self, sample: Sample, displaced: &mut Vec<Sample>) -> bool {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return false;
        }
        queue.reserved = queue.reserved.saturating_sub(1);
        if !self.limit.keep_all && self.limit.samples <= queue.samples.len() {
            displaced.extend(queue.samples.pop_front());
            queue.displaced += 1;
        }
        queue.samples.push_back(sample);
        drop(queue);
        self.news.ring();
        true
    }

    fn pop(&self) -> Option<Sample> {
        let mut queue = lock(&self.queue);
        let sample = queue.samples.pop_front()?;
        if !queue.waiting.is_empty() {
            queue.waiting.drain(..).for_each(|room| room.ring());
        }
        Some(sample)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("samples", &lock(&self.queue).samples.len()).finish()
    }
}

fn fits(len: usize) -> Result<()> {
    if len as u64 <= SAMPLE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(ErrorKind::TooLarge, "send")
        .about(format!("{len} bytes; at most {SAMPLE_BYTES_MAX}")))
}

fn busy() -> Error {
    Error::new(ErrorKind::Busy, "send").about("a reader that keeps all is full")
}

fn not_connected(reader: Gid) -> Error {
    Error::new(ErrorKind::Closed, "connect").about(format!("reader {reader} is not there"))
}

/// Nothing panics while holding these locks, so a poisoned one is still sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SAMPLE_BYTES_MAX: u64 = 1 << 40;
