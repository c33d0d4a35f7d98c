//! What stands where in an arena. All zero is a valid state of everything here.
//!
//! Fields that both ends change while both live are atomics. The rest is written by one end before
//! the other is told where it is.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(not(any(loom, miri)))]
use tsuji_transport::bell::{BELLS_MAX, CELLS_MAX};
use tsuji_transport::{Encoding, Envelope, Gid, LEAD};

/// The first word of every arena: `tsujishm` as bytes.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"tsujishm");

/// Changes with every change of this file, and of the memory of bells. Peers of another version do not meet here.
pub(crate) const VERSION: u32 = 5;

#[cfg(not(any(loom, miri)))]
const _: () = assert!(
    BELLS_MAX == 64 && CELLS_MAX == 65_536,
    "another memory of bells needs another version"
);

/// Readers that one writer can have: bits in a slot's mask of holders.
pub(crate) const READERS_MAX: u32 = 256;

/// Pieces that an arena is reserved in, one after another.
pub(crate) const EXTENTS_MAX: usize = 4096;

/// Where the sample begins behind a slot's header.
pub(crate) const DATA_AT: usize = size_of::<SlotHeader>() + LEAD;

/// Offsets in entries and addresses are counted in this unit.
pub(crate) const UNIT: u64 = 64;

/// The beginning of an arena.
#[repr(C, align(64))]
pub(crate) struct ArenaHeader {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) extent_count: AtomicU32,
    /// Cells, plus one, of writers that wait for memory to be free again.
    pub(crate) hungry: [AtomicU32; HUNGRY],
    /// Where peers write to prove that they share this memory.
    pub(crate) probes: [AtomicU64; PROBES],
    pub(crate) extents: [Extent; EXTENTS_MAX],
}

pub(crate) const HUNGRY: usize = 8;
/// Processes that may be in the middle of being met.
pub(crate) const PROBES: usize = 1024;

/// One reserved piece of an arena. Never changes once it is counted.
#[repr(C)]
pub(crate) struct Extent {
    pub(crate) offset: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl ArenaHeader {
    /// Takes and returns the cells of writers that wait for memory.
    pub(crate) fn feed(&self, mut ring: impl FnMut(u32)) {
        for hungry in &self.hungry {
            if hungry.load(Ordering::Relaxed) != 0 {
                let cell = hungry.swap(0, Ordering::AcqRel);
                if cell != 0 {
                    ring(cell - 1);
                }
            }
        }
    }
}

/// The head of a slot, which holds one sample.
#[repr(C, align(64))]
pub(crate) struct SlotHeader {
    /// One bit for each reader that may still look at the sample. Set by the writer before it
    /// tells the reader, cleared by the reader, or by the writer in place of a dead one.
    holders: [AtomicU64; READERS_MAX as usize / 64],
    pub(crate) meta: UnsafeCell<Meta>,
}

/// What a slot says of its sample, besides the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Meta {
    pub(crate) bytes: u64,
    pub(crate) sequence: u64,
    pub(crate) wall_ns: i64,
    pub(crate) mono_ns: u64,
    pub(crate) related_sequence: u64,
    pub(crate) gid: [u8; 16],
    pub(crate) related_gid: [u8; 16],
    pub(crate) encoding: u32,
    pub(crate) is_related: u32,
}

impl SlotHeader {
    pub(crate) fn hold(&self, bits: &Bits) {
        for (holders, bits) in self.holders.iter().zip(bits.0) {
            if bits != 0 {
                holders.fetch_or(bits, Ordering::AcqRel);
            }
        }
    }

    pub(crate) fn let_go(&self, bit: u32) {
        let (word, mask) = (bit as usize / 64, 1 << (bit % 64));
        if let Some(holders) = self.holders.get(word) {
            holders.fetch_and(!mask, Ordering::AcqRel);
        }
    }

    pub(crate) fn is_held_by(&self, bit: u32) -> bool {
        let (word, mask) = (bit as usize / 64, 1 << (bit % 64));
        self.holders.get(word).is_some_and(|it| it.load(Ordering::Acquire) & mask != 0)
    }

    pub(crate) fn is_held_by_any(&self, bits: &Bits) -> bool {
        let mut words = self.holders.iter().zip(bits.0);
        words.any(|(holders, bits)| holders.load(Ordering::Acquire) & bits != 0)
    }

    pub(crate) fn is_held(&self) -> bool {
        self.holders.iter().any(|holders| holders.load(Ordering::Acquire) != 0)
    }
}

/// A set of readers of one writer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bits([u64; READERS_MAX as usize / 64]);

impl Bits {
    pub(crate) fn one(bit: u32) -> Self {
        let mut bits = Self::default();
        bits.insert(bit);
        bits
    }

    pub(crate) fn insert(&mut self, bit: u32) {
        self.0[bit as usize / 64] |= 1 << (bit % 64);
    }

    pub(crate) fn remove(&mut self, bit: u32) {
        self.0[bit as usize / 64] &= !(1 << (bit % 64));
    }

    /// The lowest number that is in neither set.
    pub(crate) fn first_free(&self, other: &Self) -> Option<u32> {
        let mut words = self.0.iter().zip(other.0).enumerate();
        words.find_map(|(word, (a, b))| {
            let taken = a | b;
            (taken != u64::MAX).then(|| word as u32 * 64 + taken.trailing_ones())
        })
    }
}

impl Meta {
    pub(crate) fn new(envelope: &Envelope, bytes: usize) -> Self {
        let (related_gid, related_sequence) = envelope.related.unwrap_or_default();
        Self {
            bytes: bytes as u64,
            sequence: envelope.sequence,
            wall_ns: envelope.wall_ns,
            mono_ns: envelope.mono_ns,
            related_sequence,
            gid: envelope.gid.0,
            related_gid: related_gid.0,
            encoding: envelope.encoding as u32,
            is_related: u32::from(envelope.related.is_some()),
        }
    }

    /// The envelope, or `None` where the numbers mean nothing.
    pub(crate) fn envelope(&self) -> Option<Envelope> {
        let related = (Gid(self.related_gid), self.related_sequence);
        Some(Envelope {
            gid: Gid(self.gid),
            sequence: self.sequence,
            wall_ns: self.wall_ns,
            mono_ns: self.mono_ns,
            arrived_ns: 0,
            encoding: Encoding::from_number(self.encoding)?,
            related: (self.is_related != 0).then_some(related),
            header: None,
        })
    }
}

/// The head of a ring from one writer to one reader, in the reader's arena. The entries follow.
#[repr(C, align(64))]
pub(crate) struct RingHeader {
    /// Tells this ring from one that stood here before. Zero is no ring.
    pub(crate) serial: AtomicU64,
    /// Entries, at least one. Written by the reader before the writer knows of the ring.
    pub(crate) capacity: AtomicU32,
    /// The reader keeps all: the writer must not push anything out.
    pub(crate) keep_all: AtomicU32,
    /// The reader's cell.
    pub(crate) news_cell: AtomicU32,
    /// The reader is gone: nothing more is to be sent.
    pub(crate) closed: AtomicU32,
    /// The writer's bit in slots that it sends to this reader.
    pub(crate) holder_bit: AtomicU32,
    /// The writer's cell.
    pub(crate) room_cell: AtomicU32,
    /// The writer will never touch this ring again.
    pub(crate) left: AtomicU32,
    /// The producer's half, on lines of its own.
    pub(crate) producer: Producer,
    /// What both look at when the ring is full.
    pub(crate) waiting: Waiting,
}

#[repr(C, align(64))]
pub(crate) struct Producer {
    pub(crate) tail: AtomicU64,
    pub(crate) displaced: AtomicU64,
    /// When the newest sample was sent, by its envelope; 0 before the first.
    pub(crate) newest_ns: AtomicU64,
    /// Samples that the writer has filtered out. Counted before a later one is written.
    pub(crate) filtered: AtomicU64,
}

#[repr(C, align(64))]
pub(crate) struct Waiting {
    /// The writer found the ring full and wants to be rung.
    pub(crate) wanted: AtomicU32,
    /// Since when, on the monotonic clock.
    pub(crate) since_ns: AtomicU64,
}
