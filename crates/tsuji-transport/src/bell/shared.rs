//! The bells and cells of a process in memory that processes share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tsuji_platform::memory::{Backing, Mapping, Segment, whole_pages};

use super::{BELLS_MAX, BellMemory, CELLS_IN_PART, CELLS_MAX};
use crate::sync::AtomicU64;

/// All bells of a process, then all its cells. All zero is a page at rest.
#[derive(Debug)]
pub(super) struct Page {
    mapping: Mapping,
}

const CELL_BYTES: u64 = size_of::<AtomicU64>() as u64;

/// By which another process gets at a page.
#[derive(Debug)]
pub(super) struct Share {
    segment: Segment,
}

impl Page {
    const CELLS_AT: usize = BELLS_MAX as usize * size_of::<BellMemory>();

    pub(super) fn create(backing: &Backing) -> io::Result<(Self, Share)> {
        let segment = Segment::create("tsuji-bells", backing)?;
        segment.reserve(0, Self::CELLS_AT as u64 + u64::from(CELLS_IN_PART) * CELL_BYTES)?;
        // So that all of it can be mapped; what lies between takes no memory.
        segment.reserve(Self::bytes() - 1, 1)?;
        Ok((Self { mapping: segment.map(0, Self::bytes())? }, Share { segment }))
    }

    /// The page of another process.
    pub(super) fn open(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { mapping: Segment::from_fd(fd).map(0, Self::bytes())? })
    }

    fn bytes() -> u64 {
        whole_pages(Self::CELLS_AT as u64 + u64::from(CELLS_MAX) * CELL_BYTES)
    }

    /// `index` is below [`BELLS_MAX`].
    pub(super) fn bell(&self, index: u32) -> &BellMemory {
        assert!(index < BELLS_MAX, "bell {index} of {BELLS_MAX}");
        let at = self.mapping.base().cast::<BellMemory>();
        // SAFETY: the page holds `BELLS_MAX` bells from its start, all valid when zeroed, and
        // they are only accessed as atomics.
        unsafe { at.add(index as usize).as_ref() }
    }

    /// `index` is below [`CELLS_MAX`].
    pub(super) fn cell(&self, index: u32) -> &AtomicU64 {
        assert!(index < CELLS_MAX, "cell {index} of {CELLS_MAX}");
        // SAFETY: the page holds `CELLS_MAX` atomics from `CELLS_AT`, which is aligned for them.
        unsafe {
            let cells = self.mapping.base().add(Self::CELLS_AT).cast::<AtomicU64>();
            cells.add(index as usize).as_ref()
        }
    }
}

impl Share {
    /// Makes sure that there is memory for the part of the cells that begins with this one.
    pub(super) fn reserve_cells(&self, first: u32) -> io::Result<()> {
        let at = Page::CELLS_AT as u64 + u64::from(first) * CELL_BYTES;
        self.segment.reserve(at, u64::from(CELLS_IN_PART) * CELL_BYTES)
    }
}

impl AsFd for Share {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.segment.as_fd()
    }
}
