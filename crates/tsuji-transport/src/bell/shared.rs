//! The bells and cells of a process in memory that processes share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tsuji_platform::memory::{Backing, Mapping, Segment, whole_pages};

use super::{BELLS_MAX, BellMemory, CELLS_MAX};
use crate::sync::AtomicU64;

/// All bells of a process, then all its cells. All zero is a page at rest.
#[derive(Debug)]
pub(super) struct Page {
    mapping: Mapping,
}

/// By which another process gets at a page.
#[derive(Debug)]
pub(super) struct Share {
    segment: Segment,
}

impl Page {
    const CELLS_AT: usize = BELLS_MAX as usize * size_of::<BellMemory>();

    pub(super) fn create(backing: &Backing) -> io::Result<(Self, Share)> {
        let segment = Segment::create("tsuji-bells", backing)?;
        segment.reserve(0, Self::bytes())?;
        Ok((Self { mapping: segment.map(0, Self::bytes())? }, Share { segment }))
    }

    /// The page of another process.
    pub(super) fn open(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { mapping: Segment::from_fd(fd).map(0, Self::bytes())? })
    }

    fn bytes() -> u64 {
        whole_pages((Self::CELLS_AT + CELLS_MAX as usize * size_of::<AtomicU64>()) as u64)
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

impl AsFd for Share {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.segment.as_fd()
    }
}
