//! How a writer finds the ring that a reader made for it.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tsuji_transport::{Error, ErrorKind, Result};

use crate::arena::Block;
use crate::layout::RingHeader;
use crate::peer::Peer;
use crate::ring::Ring;

/// In a ring's serial: a writer has connected.
const CONNECTED: u64 = 1 << 63;
/// Serials count from a number that no other word of an arena is likely to hold, since a late address
/// may name memory that serves for something else by now.
const FIRST_SERIAL: u64 = 0x2d72_696e_6700_0000;

/// The most entries of one ring.
pub(crate) const CAPACITY_MAX: u32 = 1 << 20;

/// A ring in somebody's arena, checked once.
#[derive(Debug)]
pub(crate) struct RingAddress {
    header: NonNull<RingHeader>,
    entries: NonNull<AtomicU64>,
    capacity: usize,
    /// Keeps the memory mapped, where it is another process's.
    _peer: Option<Arc<Peer>>,
}

// SAFETY: it points to shared memory that stays mapped and is accessed as atomics.
unsafe impl Send for RingAddress {}
// SAFETY: as above.
unsafe impl Sync for RingAddress {}

impl RingAddress {
    /// The bytes that a ring of `capacity` takes.
    pub(crate) fn bytes(capacity: u32) -> u64 {
        size_of::<RingHeader>() as u64 + u64::from(capacity) * size_of::<AtomicU64>() as u64
    }

    /// Makes an empty ring in `block`, which nobody else knows yet.
    pub(crate) fn create(block: Block, capacity: u32, keep_all: bool, news_cell: u32) -> Self {
        debug_assert!(0 < capacity && Self::bytes(capacity) <= block.bytes);
        // SAFETY: the block is as long as the ring, and nobody else looks at it. All zero is an
        // empty ring.
        unsafe { block.start.write_bytes(0, Self::bytes(capacity) as usize) };
        static SERIALS: AtomicU64 = AtomicU64::new(FIRST_SERIAL);
        let ring = Self::at(block.start, capacity, None);
        let header = ring.header();
        header.serial.store(SERIALS.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        header.capacity.store(capacity, Ordering::Relaxed);
        header.keep_all.store(u32::from(keep_all), Ordering::Relaxed);
        header.news_cell.store(news_cell, Ordering::Release);
        ring
    }

    /// What to send to the writer of the ring at `offset`.
    pub(crate) fn encode(&self, offset: u64) -> Vec<u8> {
        let serial = self.header().serial.load(Ordering::Relaxed);
        [offset, serial].map(u64::to_le_bytes).concat()
    }

    /// Its reader uses this ring no more: whoever still holds an address is refused. False when a
    /// writer has connected, which may touch the ring until it leaves.
    pub(crate) fn retire_unless_connected(&self) -> bool {
        self.header().serial.swap(0, Ordering::AcqRel) & CONNECTED == 0
    }

    /// The ring that a peer's address names. From now on its reader knows that it is in use.
    pub(crate) fn decode(bytes: &[u8], peer: &Arc<Peer>) -> Result<Self> {
        let lies = |what: String| Error::new(ErrorKind::Invalid, "connect").about(what);
        let words = <[u8; 16]>::try_from(bytes).map(u128::from_le_bytes);
        let words = words.map_err(|_| lies(format!("an address of {} bytes", bytes.len())))?;
        let (offset, serial) = (words as u64, (words >> 64) as u64);
        let span = peer.span(offset, size_of::<RingHeader>());
        let span = span.map_err(|error| lies(error.to_string()))?;
        // SAFETY: the span holds a header, aligned because offsets are.
        let header = unsafe { span.start.cast::<RingHeader>().as_ref() };
        let capacity = header.capacity.load(Ordering::Acquire);
        let is_sound =
            (1..=CAPACITY_MAX).contains(&capacity) && Self::bytes(capacity) <= span.bytes as u64;
        if !is_sound {
            return Err(lies(format!("a ring of {capacity} entries in {} bytes", span.bytes)));
        }
        let is_serial = (FIRST_SERIAL..CONNECTED).contains(&serial);
        let is_known = |known: u64| known & !CONNECTED == serial;
        let serial_word = &header.serial;
        // In one step with the look at the serial: else a reader that is dropped now would not know
        // whether the ring is free at once.
        let taken = serial_word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| {
            (is_serial && is_known(known)).then_some(known | CONNECTED)
        });
        let is_closed = header.closed.load(Ordering::Acquire) != 0;
        if taken.is_ok() && is_closed {
            header.left.store(1, Ordering::Release);
        }
        if taken.is_err() || is_closed {
            return Err(Error::new(ErrorKind::Closed, "connect").about("the reader is gone"));
        }
        Ok(Self::at(span.start, capacity, Some(Arc::clone(peer))))
    }

    fn at(start: NonNull<u8>, capacity: u32, peer: Option<Arc<Peer>>) -> Self {
        // SAFETY: whoever calls this made sure that header and entries are there.
        let entries = unsafe { start.add(size_of::<RingHeader>()) }.cast();
        Self { header: start.cast(), entries, capacity: capacity as usize, _peer: peer }
    }

    pub(crate) fn header(&self) -> &RingHeader {
        // SAFETY: checked when it was made; all fields are atomics.
        unsafe { self.header.as_ref() }
    }

    pub(crate) fn ring(&self) -> Ring<'_> {
        // SAFETY: checked when it was made; the capacity is the one that was checked.
        let entries = unsafe { std::slice::from_raw_parts(self.entries.as_ptr(), self.capacity) };
        let producer = &self.header().producer;
        Ring { tail: &producer.tail, displaced: &producer.displaced, entries }
    }
}
