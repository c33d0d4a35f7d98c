//! Samples in shared memory, as seen from the two ends.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use tsuji_platform::fork::Generation;
use tsuji_transport::bell::Bells;
use tsuji_transport::{Bytes, Envelope, Error, ErrorKind, Loan, Owner, Result};

use crate::arena::{Arena, Block};
use crate::layout::{Bits, DATA_AT, Meta, SlotHeader, UNIT};
use crate::peer::Peer;

/// A slot of a writer in this process. Made once, lent again and again.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Keeps the memory mapped.
    arena: Arc<Arena>,
    bells: Arc<Bells>,
    block: Block,
    /// Who may send it without a copy: the bits in its header are this writer's.
    writer: u64,
    /// Values of this process that hold it.
    refs: AtomicU32,
    generation: Generation,
}

impl Slot {
    pub(crate) fn new(arena: Arc<Arena>, bells: Arc<Bells>, block: Block, writer: u64) -> Self {
        let refs = AtomicU32::new(0);
        Self { arena, bells, block, writer, refs, generation: Generation::current() }
    }

    pub(crate) fn block(&self) -> Block {
        self.block
    }

    pub(crate) fn belongs_to(&self, writer: u64) -> bool {
        self.writer == writer
    }

    /// The number by which readers find it.
    pub(crate) fn number(&self) -> u32 {
        (self.block.offset / UNIT) as u32
    }

    pub(crate) fn capacity(&self) -> usize {
        self.block.bytes as usize - DATA_AT
    }

    /// Whether nobody can look at it any more.
    pub(crate) fn is_free(&self) -> bool {
        self.refs.load(Ordering::Acquire) == 0 && !self.header().is_held()
    }

    pub(crate) fn header(&self) -> &SlotHeader {
        // SAFETY: the block is at least as long as a header, aligned for it, and mapped while the
        // arena lives; every bit pattern is valid.
        unsafe { self.block.start.cast::<SlotHeader>().as_ref() }
    }

    /// Lends `len` bytes of a free slot.
    pub(crate) fn lend(self: &Arc<Self>, len: usize) -> Loan {
        debug_assert!(len <= self.capacity() && self.is_free());
        self.refs.store(1, Ordering::Relaxed);
        let owner: Arc<dyn Owner> = Arc::<Self>::clone(self);
        // SAFETY: the data is inside the block and initialised memory; the slot was free, and the
        // reference just counted keeps it from being lent again.
        unsafe { Loan::from_owner(owner, self.block.start.add(DATA_AT), len) }
    }

    /// Writes what readers need to know of the sample, and answers whether `targets` may be told of
    /// it. They may not while one of them holds it already, since a bit stands for one entry of a
    /// ring, nor while anybody holds it as another sample.
    pub(crate) fn label(&self, meta: &Meta, targets: &Bits) -> bool {
        let own = self.header().meta.get();
        if !self.header().is_held() {
            // SAFETY: nobody holds it, so that no reader looks at it before it is told of the slot,
            // and only the writer, which is locked, tells.
            unsafe { own.write(*meta) };
            return true;
        }
        // SAFETY: it was written before the first holder was told, and is not written while there is
        // one. Only the writer adds holders.
        let known = unsafe { own.read() };
        known == *meta && !self.header().is_held_by_any(targets)
    }
}

impl Owner for Slot {
    fn retain(&self) {
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) {
        if !self.generation.is_current() {
            return;
        }
        if self.refs.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::SeqCst);
            self.arena.header().feed(|cell| self.bells.ring(cell));
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A slot of a writer in another process. Made once, taken again and again.
#[derive(Debug)]
pub(crate) struct RemoteSlot {
    peer: Arc<Peer>,
    header: NonNull<SlotHeader>,
    /// Bytes that follow the header, at most.
    room: usize,
    /// This reader's bit.
    bit: u32,
    refs: AtomicU32,
    generation: Generation,
}

// SAFETY: the header is shared memory that the peer value keeps mapped; it is accessed as atomics,
// and its meta only by a reader that holds the slot.
unsafe impl Send for RemoteSlot {}
// SAFETY: as above.
unsafe impl Sync for RemoteSlot {}

impl RemoteSlot {
    pub(crate) fn open(peer: &Arc<Peer>, number: u32, bit: u32) -> Result<Self> {
        let span = peer.span(u64::from(number) * UNIT, DATA_AT).map_err(not_seen)?;
        Ok(Self {
            peer: Arc::clone(peer),
            header: span.start.cast(),
            room: span.bytes - DATA_AT,
            bit,
            refs: AtomicU32::new(0),
            generation: Generation::current(),
        })
    }

    /// Whether values of this process hold it.
    pub(crate) fn is_in_use(&self) -> bool {
        self.refs.load(Ordering::Relaxed) != 0
    }

    fn header(&self) -> &SlotHeader {
        // SAFETY: `open` checked that a header fits there, and the peer keeps it mapped.
        unsafe { self.header.as_ref() }
    }

    /// The sample in it. The writer has set this reader's bit, so it stays as it is.
    pub(crate) fn view(self: &Arc<Self>) -> Result<(Envelope, Bytes)> {
        // SAFETY: the writer wrote it before it told of the slot, and writes again only after the
        // bit is cleared.
        let meta = unsafe { self.header().meta.get().read() };
        let envelope = meta.envelope();
        let len = usize::try_from(meta.bytes).ok().filter(|len| *len <= self.room);
        let (Some(envelope), Some(len)) = (envelope, len) else {
            self.header().let_go(self.bit);
            return Err(lies(std::io::Error::other(format!(
                "a sample of {} bytes in a slot of {}",
                meta.bytes, self.room
            ))));
        };
        self.refs.fetch_add(1, Ordering::Relaxed);
        let owner: Arc<dyn Owner> = Arc::<Self>::clone(self);
        // SAFETY: the bytes are inside the mapping, as was just checked, and the bit keeps the
        // writer from changing them until the last release.
        let bytes = unsafe { Bytes::from_owner(owner, self.header.cast::<u8>().add(DATA_AT), len) };
        Ok((envelope, bytes))
    }
}

impl Owner for RemoteSlot {
    fn retain(&self) {
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) {
        if !self.generation.is_current() {
            return;
        }
        if self.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.header().let_go(self.bit);
            fence(Ordering::SeqCst);
            self.peer.header().feed(|cell| self.peer.bells.ring(cell));
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What finds no place in this process's memory may find one on another try.
fn not_seen(error: std::io::Error) -> Error {
    if error.kind() != std::io::ErrorKind::OutOfMemory {
        return lies(error);
    }
    Error::new(ErrorKind::Exhausted, "take").about("to map the writer's memory").because(error)
}

fn lies(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Invalid, "take").about("the writer's memory").because(error)
}
