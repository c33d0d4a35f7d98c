//! The sending end: slots to lend, and the rings of those who listen.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tsuji_platform::clock;
use tsuji_transport::bell::{Bells, Cell};
use tsuji_transport::{
    Address, Connected, Envelope, Error, ErrorKind, Gid, Loan, Payload, PeerId, Result, Sent,
    Writer,
};

use crate::Shared;
use crate::address::RingAddress;
use crate::arena::{Arena, class};
use crate::layout::{Bits, DATA_AT, Meta, READERS_MAX, RingHeader, SlotHeader};
use crate::peer::Peer;
use crate::reader::NumberHasher;
use crate::ring::Ring;
use crate::slot::Slot;

/// A writer. When it is dropped its slots stay until the last reader has let go of them.
#[derive(Debug)]
pub(crate) struct ShmWriter {
    shared: Arc<Shared>,
    core: Arc<WriterCore>,
}

impl ShmWriter {
    pub(crate) fn open(shared: Arc<Shared>, room: Arc<Cell>) -> Self {
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        let core = Arc::new(WriterCore {
            number: WRITERS.fetch_add(1, Ordering::Relaxed),
            arena: Arc::clone(&shared.arena),
            bells: Arc::clone(&shared.bells),
            room,
            shared: Arc::downgrade(&shared),
            state: Mutex::default(),
        });
        shared.remember_writer(&core);
        Self { shared, core }
    }
}

impl Writer for ShmWriter {
    fn loan(&self, len: usize) -> Result<Loan> {
        self.shared.open("loan")?;
        let mut state = self.core.lock();
        let slot = self.core.slot(&mut state, len)?;
        Ok(slot.lend(len))
    }

    fn reserve(&self, len: usize) -> Result<()> {
        self.shared.open("reserve")?;
        let mut state = self.core.lock();
        self.core.room_for(state.connections.iter(), len)?;
        // Rings only get emptier until the next send, and the slot that is free now stays free.
        let slot = self.core.slot(&mut state, len)?;
        state.lent.pop_back();
        state.free.push(slot);
        state.is_reserved = true;
        Ok(())
    }

    fn cancel(&self) {
        self.core.lock().is_reserved = false;
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
        self.shared.open("send")?;
        let mut state = self.core.lock();
        let state = &mut *state;
        state.is_reserved = false;
        let is_wanted = |it: &Connection| !filtered.contains(&it.reader);
        let mut listening = state.listening;
        for connection in state.connections.iter().filter(|it| !is_wanted(it)) {
            listening.remove(connection.bit);
        }
        let mut sent = Sent::default();
        if state.connections.iter().any(is_wanted) {
            let bytes = if let Payload::Bytes(bytes) = payload { bytes.len() } else { 0 };
            self.core.room_for(state.connections.iter().filter(|it| is_wanted(it)), bytes)?;
            let slot = self.core.filled(state, envelope, payload, &listening)?;
            slot.header().hold(&listening);
            for connection in state.connections.iter_mut().filter(|it| is_wanted(it)) {
                let pushed = connection.push(&slot, envelope.mono_ns, &state.slots);
                sent.readers += pushed.readers;
                sent.displaced += pushed.displaced;
            }
        }
        for connection in &state.connections {
            if is_wanted(connection) {
                connection.ring_news();
            } else {
                connection.note_filtered(envelope);
            }
        }
        Ok(sent)
    }

    fn note_filtered(&self, reader: Gid, envelope: &Envelope) {
        // A forked child would count in its parent's place.
        if !self.shared.generation.is_current() {
            return;
        }
        let state = self.core.lock();
        let found = state.connections.iter().find(|it| it.reader == reader);
        if let Some(connection) = found {
            connection.note_filtered(envelope);
        }
    }

    fn send_to(&self, reader: Gid, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        self.shared.open("send")?;
        let mut state = self.core.lock();
        let state = &mut *state;
        let found = state.connections.iter().position(|it| it.reader == reader);
        let at = found.ok_or_else(|| not_connected(reader))?;
        if state.connections[at].is_full(u64::MAX) {
            return Err(busy());
        }
        let target = Bits::one(state.connections[at].bit);
        let slot = self.core.filled(state, envelope, payload, &target)?;
        slot.header().hold(&target);
        let connection = &mut state.connections[at];
        let sent = connection.push(&slot, envelope.mono_ns, &state.slots);
        connection.ring_news();
        Ok(sent)
    }

    fn connect(&self, address: &Address) -> Result<Connected> {
        self.shared.open("connect")?;
        let peer = self.shared.peer(address.peer)?;
        self.disconnect(address.reader);
        let mut state = self.core.lock();
        self.core.retire(&mut state);
        let bit = state.listening.first_free(&state.retired_bits()).ok_or_else(|| {
            Error::new(ErrorKind::Exhausted, "connect")
                .about(format!("a writer has at most {READERS_MAX} readers"))
        })?;
        let connection = Connection::open(peer, address, bit, self.core.room.index())?;
        state.listening.insert(bit);
        state.connections.push(connection);
        Ok(Connected::Now)
    }

    fn disconnect(&self, reader: Gid) {
        // A forked child would leave in its parent's place.
        if !self.shared.generation.is_current() {
            return;
        }
        let mut state = self.core.lock();
        let found = state.connections.iter().position(|it| it.reader == reader);
        if let Some(at) = found {
            let connection = state.connections.remove(at);
            self.core.leave(&mut state, &connection);
        }
    }

    fn readers(&self) -> usize {
        self.core.lock().connections.len()
    }
}

impl Drop for ShmWriter {
    fn drop(&mut self) {
        if !self.shared.generation.is_current() {
            return;
        }
        let mut state = self.core.lock();
        for connection in std::mem::take(&mut state.connections) {
            self.core.leave(&mut state, &connection);
        }
        drop(state);
        self.shared.sweep();
    }
}

/// What outlives the writer while readers hold its samples.
#[derive(Debug)]
pub(crate) struct WriterCore {
    number: u64,
    arena: Arc<Arena>,
    bells: Arc<Bells>,
    room: Arc<Cell>,
    shared: Weak<Shared>,
    state: Mutex<State>,
}

type Slots = HashMap<u32, Arc<Slot>, NumberHasher>;

#[derive(Debug, Default)]
struct State {
    connections: Vec<Connection>,
    /// The bits of `connections`.
    listening: Bits,
    /// Bits of readers that left, with their processes. A view may still hold a slot by them.
    retired: Vec<(u32, PeerId)>,
    /// All of `free` and `lent`, by number.
    slots: Slots,
    /// Slots known to be free, the warmest last.
    free: Vec<Arc<Slot>>,
    /// Slots that were lent, the longest ago first.
    lent: VecDeque<Arc<Slot>>,
    /// One of the free slots is promised to the next send.
    is_reserved: bool,
}

impl State {
    fn retired_bits(&self) -> Bits {
        let mut bits = Bits::default();
        self.retired.iter().for_each(|(bit, _)| bits.insert(*bit));
        bits
    }
}

impl WriterCore {
    /// A slot for `len` bytes that nobody holds.
    fn slot(&self, state: &mut State, len: usize) -> Result<Arc<Slot>> {
        let need = (len as u64).saturating_add(DATA_AT as u64);
        if self.arena.block_bytes_max() < need {
            return Err(Error::new(ErrorKind::TooLarge, "loan")
                .about(format!("{len} bytes; memory_bytes_max = {}", self.arena.bytes_max())));
        }
        let class = class(need);
        let slot = match self.free_slot(state, class) {
            Some(slot) => slot,
            None => self.new_slot(state, class).inspect_err(|error| {
                self.arena.note_refusal(clock::monotonic_ns(), class, error);
            })?,
        };
        self.arena.shortage.given(class);
        state.lent.push_back(Arc::clone(&slot));
        Ok(slot)
    }

    /// A free slot of this class, if there is one.
    fn free_slot(&self, state: &mut State, class: u64) -> Option<Arc<Slot>> {
        // A large slot that was lent lately and is free again is still in the cache.
        if LARGE <= class {
            let mut latest = state.lent.iter().enumerate().rev().take(LATEST);
            let found = latest.find(|(_, slot)| slot.block().bytes == class && slot.is_free());
            if let Some((at, _)) = found {
                return state.lent.remove(at);
            }
        }
        // The oldest is nearly always free already; if not, all are looked at before more memory
        // is asked for.
        for _ in 0..state.lent.len() {
            let Some(slot) = state.lent.pop_front() else { break };
            if !slot.is_free() {
                state.lent.push_back(slot);
            } else if slot.block().bytes == class {
                return Some(slot);
            } else {
                state.free.push(slot);
            }
        }
        let at = state.free.iter().rposition(|slot| slot.block().bytes == class)?;
        Some(state.free.remove(at))
    }

    fn new_slot(&self, state: &mut State, class: u64) -> Result<Arc<Slot>> {
        // The size of the samples has changed: what is free is of the wrong size.
        let State { free, slots, .. } = state;
        free.drain(..).for_each(|slot| self.give_back(slots, &slot));
        let mut found = self.arena.alloc(class);
        if found.is_err() && self.collect() {
            found = self.arena.alloc(class);
        }
        let block = match found {
            Err(error) if error.kind() == ErrorKind::Busy => {
                self.starve();
                // A slot that came free before the wish was known would ring nobody.
                return self.free_slot(state, class).ok_or(error);
            }
            other => other?,
        };
        let header = block.start.cast::<SlotHeader>();
        // SAFETY: the block is longer than a header, aligned for it, and new to everybody. All
        // zero is a header that nobody holds.
        unsafe { header.write_bytes(0, 1) };
        let slot = Slot::new(Arc::clone(&self.arena), Arc::clone(&self.bells), block, self.number);
        let slot = Arc::new(slot);
        state.slots.insert(slot.number(), Arc::clone(&slot));
        Ok(slot)
    }

    /// Gives the memory of a slot that nobody looks at back to the arena.
    fn give_back(&self, slots: &mut Slots, slot: &Slot) {
        slots.remove(&slot.number());
        self.arena.free(slot.block());
    }

    /// Takes the free slots of the other writers of this process back into the arena, and says
    /// whether there were any. Whoever is busy just now is left alone: nobody waits for a lock here
    /// while holding another.
    fn collect(&self) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let writers = shared.writers_now();
        let mut is_any = false;
        for writer in writers.iter().filter(|it| it.number != self.number) {
            let Ok(mut state) = writer.state.try_lock() else { continue };
            if !state.is_reserved {
                let before = state.free.len() + state.lent.len();
                writer.empty(&mut state);
                is_any |= state.free.len() + state.lent.len() < before;
            }
        }
        is_any
    }

    /// Calls `see` with the class of each slot that [`collect`](Self::collect) would take from this
    /// writer.
    pub(crate) fn see_idle(&self, mut see: impl FnMut(u64)) {
        let Ok(state) = self.state.try_lock() else { return };
        if !state.is_reserved {
            let lent = state.lent.iter().filter(|slot| slot.is_free());
            state.free.iter().chain(lent).for_each(|slot| see(slot.block().bytes));
        }
    }

    /// Asks to be rung when somebody lets go of a slot.
    fn starve(&self) {
        let cell = self.room.index() + 1;
        let hungry = &self.arena.header().hungry;
        let known = hungry.iter().any(|it| it.load(Ordering::Relaxed) == cell);
        let placed = known
            || hungry.iter().any(|it| {
                it.compare_exchange(0, cell, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            });
        if !placed {
            // Whoever waited there is rung, and asks again.
            let other = hungry[0].swap(cell, Ordering::AcqRel);
            if other != 0 {
                self.bells.ring(other - 1);
            }
        }
        fence(Ordering::SeqCst);
    }

    /// Busy if one of these readers keeps all and is full, in samples or in bytes; then the room cell will
    /// ring.
    fn room_for<'c>(
        &self,
        mut connections: impl Iterator<Item = &'c Connection>,
        len: usize,
    ) -> Result<()> {
        let unread_max = (KEEP_ALL_BYTES_MAX / len.saturating_add(DATA_AT)).max(UNREAD_MIN) as u64;
        let is_full = connections.any(|it| it.is_full(unread_max));
        if is_full { Err(busy()) } else { Ok(()) }
    }

    /// A labelled slot that holds `payload` and that `targets` may be told of: its own, or a copy.
    fn filled(
        &self,
        state: &mut State,
        envelope: &Envelope,
        payload: &Payload,
        targets: &Bits,
    ) -> Result<Arc<Slot>> {
        let Payload::Bytes(bytes) = payload else {
            return Err(Error::new(ErrorKind::Unsupported, "send").about("a value by reference"));
        };
        let meta = Meta::new(envelope, bytes.len());
        let own = bytes.owner().downcast_ref::<Slot>().filter(|it| it.belongs_to(self.number));
        if let Some(slot) = own.and_then(|own| state.slots.get(&own.number()))
            && slot.label(&meta, targets)
        {
            return Ok(Arc::clone(slot));
        }
        let slot = self.slot(state, bytes.len())?;
        let mut loan = slot.lend(bytes.len());
        loan.copy_from_slice(bytes);
        let is_labelled = slot.label(&meta, targets);
        debug_assert!(is_labelled, "it was free");
        Ok(slot)
    }

    /// Ends a connection in good order. What was sent is still to be taken, and what was taken may
    /// still be held, so slots keep the reader's bit.
    fn leave(&self, state: &mut State, connection: &Connection) {
        if connection.header().closed.load(Ordering::Acquire) != 0 {
            connection.recall(&state.slots);
        }
        connection.header().left.store(1, Ordering::Release);
        state.listening.remove(connection.bit);
        state.retired.push((connection.bit, connection.peer.id));
        self.retire(state);
    }

    /// Forgets the bits that no slot carries any more.
    fn retire(&self, state: &mut State) {
        let State { retired, lent, .. } = state;
        retired.retain(|(bit, _)| lent.iter().any(|slot| slot.header().is_held_by(*bit)));
    }

    /// Takes from a dead process what it held.
    pub(crate) fn part(&self, peer: PeerId) {
        let mut state = self.lock();
        let state = &mut *state;
        let mut bits: Vec<u32> = Vec::new();
        state.connections.retain(|connection| {
            let is_dead = connection.peer.id == peer;
            if is_dead {
                bits.push(connection.bit);
            }
            !is_dead
        });
        bits.iter().for_each(|bit| state.listening.remove(*bit));
        bits.extend(state.retired.extract_if(.., |(_, id)| *id == peer).map(|(bit, _)| bit));
        for slot in &state.lent {
            bits.iter().for_each(|bit| slot.header().let_go(*bit));
        }
        if !bits.is_empty() {
            self.room.ring();
        }
    }

    /// Gives the slots of a closed writer back, and says whether all are.
    pub(crate) fn dissolve(&self) -> bool {
        let mut state = self.lock();
        self.empty(&mut state);
        state.lent.is_empty()
    }

    /// Gives all free slots back to the arena.
    fn empty(&self, state: &mut State) {
        let State { lent, free, slots, .. } = state;
        free.drain(..).for_each(|slot| self.give_back(slots, &slot));
        lent.retain(|slot| {
            let is_free = slot.is_free();
            if is_free {
                self.give_back(slots, slot);
            }
            !is_free
        });
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One reader that listens.
#[derive(Debug)]
struct Connection {
    reader: Gid,
    peer: Arc<Peer>,
    ring: RingAddress,
    keep_all: bool,
    news_cell: u32,
    bit: u32,
    tail: u64,
}

impl Connection {
    fn open(peer: Arc<Peer>, address: &Address, bit: u32, room_cell: u32) -> Result<Self> {
        let ring = RingAddress::decode(&address.bytes, &peer)?;
        let header = ring.header();
        let keep_all = header.keep_all.load(Ordering::Relaxed) != 0;
        let news_cell = header.news_cell.load(Ordering::Relaxed);
        header.holder_bit.store(bit, Ordering::Relaxed);
        header.room_cell.store(room_cell, Ordering::Relaxed);
        Ok(Self { reader: address.reader, peer, ring, keep_all, news_cell, bit, tail: 0 })
    }

    fn header(&self) -> &RingHeader {
        self.ring.header()
    }

    fn ring(&self) -> Ring<'_> {
        self.ring.ring()
    }

    /// Whether nothing can be sent without pushing out what must be kept. If so, the reader will
    /// ring the room cell.
    fn is_full(&self, unread_max: u64) -> bool {
        if !self.keep_all || !self.ring().is_full(self.tail, unread_max) {
            return false;
        }
        let header = self.header();
        if header.closed.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let waiting = &header.waiting;
        waiting.since_ns.store(clock::monotonic_ns(), Ordering::Relaxed);
        waiting.wanted.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        self.ring().is_full(self.tail, unread_max)
    }

    /// Hands a slot over that carries this reader's bit.
    fn push(&mut self, slot: &Slot, mono_ns: u64, slots: &Slots) -> Sent {
        if self.header().closed.load(Ordering::Relaxed) != 0 {
            slot.header().let_go(self.bit);
            return Sent::default();
        }
        self.header().producer.newest_ns.store(mono_ns, Ordering::Relaxed);
        let pushed_out = self.ring().push(self.tail, slot.number());
        self.tail += 1;
        let Some(old) = pushed_out else { return Sent { readers: 1, displaced: 0 } };
        self.let_go(old, slots);
        Sent { readers: 1, displaced: 1 }
    }

    fn note_filtered(&self, envelope: &Envelope) {
        let producer = &self.header().producer;
        producer.newest_ns.store(envelope.mono_ns, Ordering::Relaxed);
        producer.filtered.fetch_add(1, Ordering::Relaxed);
    }

    fn recall(&self, slots: &Slots) {
        self.ring().recall(|number| self.let_go(number, slots));
    }

    /// Entries that may still be in the ring are slots of this writer; whatever else a broken reader
    /// put there is nobody's.
    fn let_go(&self, number: u32, slots: &Slots) {
        if let Some(slot) = slots.get(&number) {
            slot.header().let_go(self.bit);
        }
    }

    fn ring_news(&self) {
        self.peer.bells.ring(self.news_cell);
    }
}

/// Slots from this size on are worth finding warm.
const LARGE: u64 = 64 * 1024;

/// So many of the slots lent last are looked at for it.
const LATEST: usize = 8;

/// Bytes that wait for a reader that keeps all before the writer is Busy.
const KEEP_ALL_BYTES_MAX: usize = 64 << 20;

/// Samples that may wait however large they are.
const UNREAD_MIN: usize = 8;

fn busy() -> Error {
    Error::new(ErrorKind::Busy, "send").about("a reader that keeps all is full")
}

fn not_connected(reader: Gid) -> Error {
    Error::new(ErrorKind::Closed, "send").about(format!("reader {reader} is not connected"))
}
