//! Another process's arena and bells, as this process sees them.
//!
//! The other process is trusted not to be malicious, only to crash: offsets and lengths that it
//! wrote are read once and checked before anything behind them is touched.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use tsuji_platform::life::Life;
use tsuji_platform::memory::{Mapping, Segment, whole_pages};
use tsuji_transport::PeerId;
use tsuji_transport::bell::RemoteBells;

use crate::layout::{ArenaHeader, EXTENTS_MAX, MAGIC, UNIT, VERSION};

/// Another process that shares memory with this one.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) id: PeerId,
    pub(crate) bells: RemoteBells,
    /// How far its monotonic clock is ahead, where it has another than this process.
    clock_lead_ns: Option<i64>,
    /// This process is not gone for the other while it may look at or change its memory.
    _own_life: Arc<Life>,
    /// What the rest of its memory is mapped by: a descriptor for each peer would be many.
    header: Mapping,
    /// What it is mapped by where that is not possible.
    segment: Option<Segment>,
    extents: Mutex<Vec<SeenExtent>>,
}

#[derive(Debug)]
struct SeenExtent {
    offset: u64,
    bytes: u64,
    /// Mapped when first needed, then for as long as the peer is known.
    mapping: Option<Mapping>,
}

/// Memory of a peer, checked to be mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: NonNull<u8>,
    /// Bytes from `start` to the end of what is mapped.
    pub(crate) bytes: usize,
}

impl Peer {
    pub(crate) fn open(
        id: PeerId,
        arena: OwnedFd,
        bells: OwnedFd,
        own_life: Arc<Life>,
        clock_lead_ns: Option<i64>,
    ) -> io::Result<Self> {
        let segment = Segment::from_fd(arena);
        let header = segment.map(0, whole_pages(size_of::<ArenaHeader>() as u64))?;
        let bells = RemoteBells::open(bells)?;
        let extents = Mutex::default();
        let segment = Some(segment).filter(|_| !header.can_map_more());
        let peer = Self { id, bells, clock_lead_ns, _own_life: own_life, header, segment, extents };
        let version = peer.header().version.load(Ordering::Acquire);
        if peer.header().magic.load(Ordering::Relaxed) != MAGIC || version != VERSION {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("its arena has version {version}, ours has {VERSION}"),
            ));
        }
        Ok(peer)
    }

    pub(crate) fn header(&self) -> &ArenaHeader {
        // SAFETY: the mapping is long enough for the header, and all its fields are atomics.
        unsafe { self.header.base().cast::<ArenaHeader>().as_ref() }
    }

    /// Whether it reads another monotonic clock than this process.
    pub(crate) fn has_other_clock(&self) -> bool {
        self.clock_lead_ns.is_some()
    }

    /// A time of its monotonic clock, on that of this process.
    pub(crate) fn own_ns(&self, its_ns: u64) -> u64 {
        match self.clock_lead_ns {
            Some(lead_ns) => its_ns.saturating_add_signed(lead_ns.saturating_neg()),
            None => its_ns,
        }
    }

    /// The memory at `offset`, if there are at least `bytes` of it.
    pub(crate) fn span(&self, offset: u64, bytes: usize) -> io::Result<Span> {
        let lies = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        if !offset.is_multiple_of(UNIT) {
            return Err(lies(format!("offset {offset} is not a multiple of {UNIT}")));
        }
        let mut extents = self.extents.lock().unwrap_or_else(PoisonError::into_inner);
        self.see_new(&mut extents);
        let after = extents.partition_point(|extent| extent.offset <= offset);
        let extent = after.checked_sub(1).and_then(|at| extents.get_mut(at));
        let extent = extent.ok_or_else(|| lies(format!("offset {offset} is in no extent")))?;
        let at = offset - extent.offset;
        let left = extent.bytes.saturating_sub(at);
        if left < bytes as u64 {
            return Err(lies(format!("{bytes} bytes at offset {offset}, where there are {left}")));
        }
        let mapping = match &extent.mapping {
            Some(mapping) => mapping,
            None => {
                let mapping = match &self.segment {
                    Some(segment) => segment.map(extent.offset, extent.bytes)?,
                    None => self.header.map_more(extent.offset, extent.bytes)?,
                };
                if POPULATE <= extent.bytes {
                    mapping.populate();
                }
                extent.mapping.insert(mapping)
            }
        };
        // SAFETY: `at` is below the extent's bytes, which are all mapped.
        let start = unsafe { mapping.base().add(at as usize) };
        Ok(Span { start, bytes: left as usize })
    }

    fn see_new(&self, extents: &mut Vec<SeenExtent>) {
        let count = self.header().extent_count.load(Ordering::Acquire) as usize;
        for extent in self.header().extents.iter().take(count.min(EXTENTS_MAX)).skip(extents.len())
        {
            let offset = extent.offset.load(Ordering::Relaxed);
            let bytes = extent.bytes.load(Ordering::Relaxed);
            extents.push(SeenExtent { offset, bytes, mapping: None });
        }
    }
}

/// Extents from this size on hold large samples, which would otherwise be touched page by page.
const POPULATE: u64 = 256 * 1024;
