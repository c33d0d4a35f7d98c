//! The bells and cells of a process on the heap, for loom and miri, which know no shared memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tsuji_platform::memory::Backing;

use super::{AWAKE, BELLS_MAX, BellMemory, CELLS_MAX};
use crate::sync::{AtomicU64, Word};

#[derive(Debug)]
pub(super) struct Page {
    bells: Vec<BellMemory>,
    cells: Vec<AtomicU64>,
}

#[derive(Debug)]
pub(super) struct Share;

impl Page {
    pub(super) fn create(_: &Backing) -> io::Result<(Self, Share)> {
        let bell = |_| BellMemory {
            state: Word::new(AWAKE),
            summary: AtomicU64::new(0),
            ready: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        let bells = (0..BELLS_MAX).map(bell).collect();
        let cells = (0..CELLS_MAX).map(|_| AtomicU64::new(0)).collect();
        Ok((Self { bells, cells }, Share))
    }

    pub(super) fn open(_: OwnedFd) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn bell(&self, index: u32) -> &BellMemory {
        &self.bells[index as usize]
    }

    pub(super) fn cell(&self, index: u32) -> &AtomicU64 {
        &self.cells[index as usize]
    }
}

impl Share {
    pub(super) fn reserve_cells(&self, _: u32) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Share {
    fn as_fd(&self) -> BorrowedFd<'_> {
        unreachable!("nothing is shared under loom or miri")
    }
}
