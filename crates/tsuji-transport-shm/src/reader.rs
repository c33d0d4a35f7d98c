//! The receiving end: a ring for each writer, and views of what they sent.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsuji_core::{History, Reliability};
use tsuji_platform::clock;
use tsuji_transport::bell::Cell;
use tsuji_transport::{
    Address, Endpoint, Error, ErrorKind, FORGOTTEN_MAX, Gid, Payload, PeerId, Reader, Result,
    Sample,
};

use crate::Shared;
use crate::address::{CAPACITY_MAX, RingAddress};
use crate::arena::Block;
use crate::peer::Peer;
use crate::slot::RemoteSlot;

#[derive(Debug)]
pub(crate) struct ShmReader {
    shared: Arc<Shared>,
    gid: Gid,
    capacity: u32,
    keep_all: bool,
    news: Arc<Cell>,
    displaced_before: AtomicU64,
    filtered_before: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    flows: Vec<Flow>,
    /// The flow to look at first, so that none waits for ever.
    next: usize,
    unread: Unread,
}

impl ShmReader {
    pub(crate) fn open(shared: Arc<Shared>, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Self> {
        let (wanted, keep_all) = match endpoint.qos.history {
            History::KeepLast(depth) => (depth, false),
            // Whoever takes its chances holds nobody back: at the limit its oldest goes.
            History::KeepAll => {
                (endpoint.keep_all_max, endpoint.qos.reliability == Reliability::Reliable)
            }
        };
        if CAPACITY_MAX < wanted {
            return Err(Error::new(ErrorKind::Unsupported, "open a reader")
                .about(format!("a history of {wanted} samples; at most {CAPACITY_MAX}")));
        }
        Ok(Self {
            shared,
            gid: endpoint.gid,
            capacity: wanted.max(1),
            keep_all,
            news,
            displaced_before: AtomicU64::new(0),
            filtered_before: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a flow; what it brought is kept as the history allows.
    fn finish(&self, mut flow: Flow, unread: &mut Unread) {
        let samples = flow.close().collect();
        let samples_max = if self.keep_all { usize::MAX } else { self.capacity as usize };
        let displaced = flow.displaced().saturating_add(unread.add(samples, samples_max));
        let before = self.displaced_before.load(Ordering::Relaxed);
        self.displaced_before.store(before.saturating_add(displaced), Ordering::Relaxed);
        self.filtered_before.fetch_add(flow.filtered(), Ordering::Relaxed);
        self.shared.drop_ring(flow.peer.id, flow.ring, flow.block);
    }
}

impl Reader for ShmReader {
    fn accept(&self, peer: PeerId, writer: Gid) -> Result<Address> {
        self.shared.open("accept")?;
        let known = self.shared.peer(peer)?;
        self.forget(writer);
        self.shared.sweep();
        let block = self.shared.arena.alloc(RingAddress::bytes(self.capacity))?;
        let ring = RingAddress::create(block, self.capacity, self.keep_all, self.news.index());
        let bytes = ring.encode(block.offset);
        let slots = HashMap::default();
        let flow = Flow { writer, peer: known, ring, block, head: 0, refused: None, slots };
        self.lock().flows.push(flow);
        Ok(Address { peer: self.shared.id(), reader: self.gid, bytes })
    }

    fn forget(&self, writer: Gid) {
        // A forked child would take what its parent has not read.
        if !self.shared.generation.is_current() {
            return;
        }
        let mut state = self.lock();
        let State { flows, unread, .. } = &mut *state;
        for flow in flows.extract_if(.., |flow| flow.writer == writer) {
            self.finish(flow, unread);
        }
        drop(state);
        // Whoever waits for samples finds out that the last ones are here, or none.
        self.news.ring();
    }

    fn take(&self) -> Result<Option<Sample>> {
        self.shared.open("take")?;
        let mut state = self.lock();
        let state = &mut *state;
        // A writer may have come back: what it sent before comes first.
        if let Some(sample) = state.unread.pop() {
            return Ok(Some(sample));
        }
        for _ in 0..state.flows.len() {
            if state.flows.len() <= state.next {
                state.next = 0;
            }
            let flow = &mut state.flows[state.next];
            state.next += 1;
            if let Some(sample) = flow.take()? {
                return Ok(Some(sample));
            }
        }
        Ok(None)
    }

    fn displaced(&self) -> u64 {
        let state = self.lock();
        let before = self.displaced_before.load(Ordering::Relaxed);
        state.flows.iter().map(Flow::displaced).fold(before, u64::saturating_add)
    }

    fn filtered(&self) -> u64 {
        let state = self.lock();
        let before = self.filtered_before.load(Ordering::Relaxed);
        state.flows.iter().map(Flow::filtered).fold(before, u64::saturating_add)
    }

    fn filtered_of(&self, writer: Gid) -> u64 {
        let state = self.lock();
        state.flows.iter().find(|flow| flow.writer == writer).map_or(0, Flow::filtered)
    }

    fn newest_ns(&self, writer: Gid) -> Option<u64> {
        let state = self.lock();
        let flow = state.flows.iter().find(|flow| flow.writer == writer)?;
        let newest_ns = flow.ring.header().producer.newest_ns.load(Ordering::Relaxed);
        (newest_ns != 0).then(|| flow.peer.own_ns(newest_ns))
    }
}

impl Drop for ShmReader {
    fn drop(&mut self) {
        if !self.shared.generation.is_current() {
            return;
        }
        for mut flow in std::mem::take(&mut self.lock().flows) {
            flow.close().for_each(drop);
            self.shared.drop_ring(flow.peer.id, flow.ring, flow.block);
        }
    }
}

/// What forgotten writers have left, each one's in its order.
#[derive(Debug, Default)]
struct Unread {
    /// The writer forgotten first comes first; none is empty.
    writers: VecDeque<VecDeque<Sample>>,
}

impl Unread {
    fn pop(&mut self) -> Option<Sample> {
        let samples = self.writers.front_mut()?;
        let sample = samples.pop_front();
        if samples.is_empty() {
            self.writers.pop_front();
        }
        sample
    }

    /// Adds what one writer has left, and answers how many samples were displaced by it.
    fn add(&mut self, samples: VecDeque<Sample>, samples_max: usize) -> u64 {
        if samples.is_empty() {
            return 0;
        }
        self.writers.push_back(samples);
        let mut displaced = 0;
        if FORGOTTEN_MAX < self.writers.len() {
            displaced += self.writers.pop_front().map_or(0, |samples| samples.len());
        }
        let mut left: usize = self.writers.iter().map(VecDeque::len).sum();
        while samples_max < left {
            self.pop_oldest();
            left -= 1;
            displaced += 1;
        }
        displaced as u64
    }

    fn pop_oldest(&mut self) {
        let age = |at: &usize| {
            let envelope = &self.writers[*at].front()?.envelope;
            Some(if envelope.mono_ns == 0 { envelope.arrived_ns } else { envelope.mono_ns })
        };
        let Some(at) = (0..self.writers.len()).min_by_key(age) else { return };
        self.writers[at].pop_front();
        if self.writers[at].is_empty() {
            self.writers.remove(at);
        }
    }
}

/// What comes from one writer.
#[derive(Debug)]
struct Flow {
    writer: Gid,
    peer: Arc<Peer>,
    ring: RingAddress,
    block: Block,
    head: u64,
    /// Taken off the ring and not looked at yet, for want of memory to map it.
    refused: Option<u32>,
    /// Slots seen so far, by number.
    slots: HashMap<u32, Arc<RemoteSlot>, NumberHasher>,
}

impl Flow {
    fn take(&mut self) -> Result<Option<Sample>> {
        let number = match self.refused.take() {
            Some(number) => number,
            None => {
                let Some(number) = self.ring.ring().pop(&mut self.head) else { return Ok(None) };
                self.make_room_known();
                number
            }
        };
        let slot = match self.slot(number) {
            Err(error) if error.kind() == ErrorKind::Exhausted => {
                self.refused = Some(number);
                return Err(error);
            }
            slot => slot?,
        };
        let (mut envelope, bytes) = slot.view()?;
        if self.peer.has_other_clock() {
            envelope.arrived_ns = self.peer.own_ns(envelope.mono_ns);
            envelope.mono_ns = 0;
        }
        Ok(Some(Sample { envelope, payload: Payload::Bytes(bytes) }))
    }

    /// Takes nothing more from the writer, and hands out what it has sent.
    fn close(&mut self) -> impl Iterator<Item = Sample> {
        self.ring.header().closed.store(1, Ordering::SeqCst);
        std::iter::from_fn(|| {
            loop {
                match self.take() {
                    Ok(sample) => return sample,
                    // No sample, or none that can be looked at: it is missing then.
                    Err(_) => self.refused = None,
                }
            }
        })
    }

    fn slot(&mut self, number: u32) -> Result<&Arc<RemoteSlot>> {
        if SLOTS_MAX <= self.slots.len() && !self.slots.contains_key(&number) {
            self.slots.retain(|_, slot| slot.is_in_use());
        }
        match self.slots.entry(number) {
            std::collections::hash_map::Entry::Occupied(known) => Ok(known.into_mut()),
            std::collections::hash_map::Entry::Vacant(new) => {
                let bit = self.ring.header().holder_bit.load(Ordering::Relaxed);
                Ok(new.insert(Arc::new(RemoteSlot::open(&self.peer, number, bit)?)))
            }
        }
    }

    /// Rings a writer that waits for room: at once if half the ring is free or it has waited for
    /// a while, so that it neither wakes for each sample nor waits for a slow reader.
    fn make_room_known(&self) {
        fence(Ordering::SeqCst);
        let header = self.ring.header();
        let waiting = &header.waiting;
        if waiting.wanted.load(Ordering::Relaxed) == 0 {
            return;
        }
        let ring = self.ring.ring();
        let unread = ring.tail.load(Ordering::Relaxed).saturating_sub(self.head);
        let since_ns = self.peer.own_ns(waiting.since_ns.load(Ordering::Relaxed));
        let is_patient = (ring.entries.len() as u64 / 2) < unread
            && clock::monotonic_ns().saturating_sub(since_ns) < PATIENCE_NS;
        if !is_patient && waiting.wanted.swap(0, Ordering::AcqRel) != 0 {
            self.peer.bells.ring(header.room_cell.load(Ordering::Relaxed));
        }
    }

    fn displaced(&self) -> u64 {
        self.ring.header().producer.displaced.load(Ordering::Relaxed)
    }

    fn filtered(&self) -> u64 {
        self.ring.header().producer.filtered.load(Ordering::Relaxed)
    }
}

/// Slots remembered for each flow. Beyond it, those that are not in use are forgotten.
const SLOTS_MAX: usize = 8192;

const PATIENCE_NS: u64 = 200_000;

/// Slot numbers are spread well enough by one multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl std::hash::BuildHasher for NumberHasher {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl std::hash::Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
