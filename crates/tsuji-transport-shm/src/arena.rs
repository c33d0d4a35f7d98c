//! This process's shared memory: one file, reserved piece by piece as it is needed.

use std::collections::HashMap;
use std::error::Error as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsuji_platform::memory::{Backing, Mapping, Segment, whole_pages};
use tsuji_transport::{Error, ErrorKind, Result};

use crate::layout::{ArenaHeader, EXTENTS_MAX, MAGIC, UNIT, VERSION};
use crate::shortage::{Refusal, Shortage};

/// The shared memory that this process owns and lends.
#[derive(Debug)]
pub(crate) struct Arena {
    segment: Segment,
    header: Mapping,
    bytes_max: u64,
    state: Mutex<State>,
    /// What a writer was refused last.
    pub(crate) shortage: Shortage,
}

#[derive(Debug)]
struct State {
    extents: Vec<OwnExtent>,
    /// Where the next extent begins.
    end: u64,
    /// Bytes that the system holds for this arena.
    reserved: u64,
    /// The unused rest of the newest extent for small blocks.
    rest: Option<(u64, u64)>,
    next_extent: u64,
    free: HashMap<u64, Vec<FreeBlock>>,
}

#[derive(Debug)]
struct OwnExtent {
    offset: u64,
    mapping: Mapping,
}

#[derive(Debug)]
struct FreeBlock {
    offset: u64,
    /// Its memory was given back to the system.
    is_hollow: bool,
}

/// A piece of the arena, until given back by [`Arena::free`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) start: NonNull<u8>,
}

// SAFETY: a block is an address range; who may touch it is decided by whoever holds it.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// Whether memory can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// It can.
    Good,
    /// It cannot.
    Bad,
    /// This process's limit allows it. What the system has left is not known.
    SystemUnknown,
}

impl Arena {
    pub(crate) fn create(backing: &Backing, bytes_max: u64) -> Result<Arc<Self>> {
        let header_bytes = whole_pages(size_of::<ArenaHeader>() as u64);
        let segment = Segment::create("tsuji-arena", backing).map_err(failed)?;
        segment.reserve(0, header_bytes).map_err(failed)?;
        let header = segment.map(0, header_bytes).map_err(failed)?;
        let state = State {
            extents: Vec::new(),
            end: header_bytes,
            reserved: header_bytes,
            rest: None,
            next_extent: SMALL_EXTENT_MIN,
            free: HashMap::new(),
        };
        let (state, shortage) = (Mutex::new(state), Shortage::default());
        let arena = Self { segment, header, bytes_max, state, shortage };
        arena.header().magic.store(MAGIC, Ordering::Relaxed);
        arena.header().version.store(VERSION, Ordering::Release);
        Ok(Arc::new(arena))
    }

    pub(crate) fn header(&self) -> &ArenaHeader {
        // SAFETY: the mapping begins with the header, which is valid when zeroed, and all its
        // fields are atomics.
        unsafe { self.header.base().cast::<ArenaHeader>().as_ref() }
    }

    /// The most bytes that are given in one piece: half of all, since rings and small samples
    /// need memory too, and a flow of one sample at a time stands still.
    pub(crate) fn block_bytes_max(&self) -> u64 {
        (self.bytes_max / 2).min(OFFSET_MAX / 2)
    }

    /// Bytes that the system holds for this arena.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.lock().reserved
    }

    /// The most bytes that the system is asked to hold.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// A block of at least `bytes`, aligned to [`UNIT`], holding what it held before.
    ///
    /// Busy when the limit is reached, Exhausted when the system has no more.
    pub(crate) fn alloc(&self, bytes: u64) -> Result<Block> {
        let class = class(bytes);
        let mut state = self.lock();
        if let Some(block) = self.reuse(&mut state, class)? {
            return Ok(block);
        }
        if class < LARGE {
            return self.alloc_small(&mut state, class);
        }
        let offset = self.add_extent(&mut state, whole_pages(class), true)?;
        state.block(offset, class)
    }

    /// Gives a block back. Nobody may touch it any more.
    pub(crate) fn free(&self, block: Block) {
        let mut state = self.lock();
        let is_hollow = LARGE <= block.bytes && self.hollow(&mut state, block.offset, block.bytes);
        let offset = block.offset;
        state.free.entry(block.bytes).or_default().push(FreeBlock { offset, is_hollow });
    }

    /// Takes note that a writer was refused a block of this class, if that was for want of memory.
    pub(crate) fn note_refusal(&self, now_ns: u64, class: u64, error: &Error) {
        let why = match (error.kind(), error.source()) {
            (ErrorKind::Busy, _) => {
                let [reserved, max] = [self.reserved_bytes(), self.bytes_max].map(mib);
                format!("no shared memory left for {class} bytes: {reserved} of {max} are in use")
            }
            (ErrorKind::Exhausted, Some(source)) => {
                format!("the system has no more shared memory: {source}")
            }
            (ErrorKind::Exhausted, None) => error.to_string(),
            _ => return,
        };
        let is_by_system = error.kind() == ErrorKind::Exhausted;
        self.shortage.begin(Refusal { class, why, is_by_system, at_ns: now_ns });
    }

    /// Whether a block of this class can be had once blocks are given back that hold `idle_bytes` of
    /// the system's memory. Allocates nothing.
    pub(crate) fn outlook(&self, class: u64, idle_bytes: u64) -> Outlook {
        // Whoever allocates or frees just now is not waited for.
        let Ok(state) = self.state.try_lock() else { return Outlook::Bad };
        let Some(bytes) = state.bytes_taken_by(class) else { return Outlook::Bad };
        let bytes = bytes.saturating_sub(idle_bytes);
        if bytes == 0 {
            return Outlook::Good;
        }
        if self.bytes_max < state.reserved + bytes {
            return Outlook::Bad;
        }
        match self.segment.bytes_left() {
            Ok(Some(left)) if left < bytes => Outlook::Bad,
            Ok(Some(_)) => Outlook::Good,
            Ok(None) | Err(_) => Outlook::SystemUnknown,
        }
    }

    fn reuse(&self, state: &mut State, class: u64) -> Result<Option<Block>> {
        let Some(free) = state.free.get_mut(&class).and_then(Vec::pop) else { return Ok(None) };
        if free.is_hollow {
            let bytes = whole_pages(class);
            let fits = state.reserved + bytes <= self.bytes_max;
            let reserved = if fits {
                self.segment.reserve(free.offset, bytes).map_err(failed)
            } else {
                Err(full(self.bytes_max))
            };
            if let Err(error) = reserved {
                state.free.entry(class).or_default().push(free);
                return Err(error);
            }
            state.reserved += bytes;
        }
        state.block(free.offset, class).map(Some)
    }

    fn alloc_small(&self, state: &mut State, class: u64) -> Result<Block> {
        let (offset, bytes) = match state.rest {
            Some((offset, bytes)) if class <= bytes => (offset, bytes),
            _ => {
                let bytes = state.next_extent.max(whole_pages(class));
                let offset = self.add_extent(state, bytes, false)?;
                state.next_extent = (state.next_extent * 2).min(SMALL_EXTENT_MAX);
                (offset, bytes)
            }
        };
        state.rest = Some((offset + class, bytes - class));
        state.block(offset, class)
    }

    fn add_extent(&self, state: &mut State, bytes: u64, populate: bool) -> Result<u64> {
        let number = state.extents.len();
        if number == EXTENTS_MAX || OFFSET_MAX < state.end + bytes {
            return Err(Error::new(ErrorKind::Exhausted, "reserve shared memory")
                .about(format!("at most {EXTENTS_MAX} pieces and {OFFSET_MAX} bytes")));
        }
        if self.bytes_max < state.reserved + bytes {
            return Err(full(self.bytes_max));
        }
        let offset = state.end;
        self.segment.reserve(offset, bytes).map_err(failed)?;
        let mapping = self.segment.map(offset, bytes).map_err(failed)?;
        if populate {
            mapping.populate();
        }
        let extent = &self.header().extents[number];
        extent.offset.store(offset, Ordering::Relaxed);
        extent.bytes.store(bytes, Ordering::Relaxed);
        self.header().extent_count.store(number as u32 + 1, Ordering::Release);
        state.extents.push(OwnExtent { offset, mapping });
        state.end += bytes;
        state.reserved += bytes;
        Ok(offset)
    }

    /// Gives the memory of an unused block back to the system, if there is much of it.
    fn hollow(&self, state: &mut State, offset: u64, bytes: u64) -> bool {
        let bytes = whole_pages(bytes);
        let done = self.segment.release(offset, bytes).is_ok();
        if done {
            state.reserved = state.reserved.saturating_sub(bytes);
        }
        done
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Arena {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.segment.as_fd()
    }
}

impl State {
    /// The bytes that the system would be asked for to get a block of this class; `None` when there
    /// is no place for more. In the order in which [`Arena::alloc`] looks for one.
    fn bytes_taken_by(&self, class: u64) -> Option<u64> {
        if let Some(free) = self.free.get(&class).and_then(|free| free.last()) {
            return Some(if free.is_hollow { whole_pages(class) } else { 0 });
        }
        if class < LARGE && self.rest.is_some_and(|(_, bytes)| class <= bytes) {
            return Some(0);
        }
        let least = if class < LARGE { self.next_extent } else { 0 };
        let bytes = whole_pages(class).max(least);
        let fits = self.extents.len() < EXTENTS_MAX && self.end + bytes <= OFFSET_MAX;
        fits.then_some(bytes)
    }

    fn at<T>(&self, offset: u64) -> Option<NonNull<T>> {
        let after = self.extents.partition_point(|extent| extent.offset <= offset);
        let extent = &self.extents[after.checked_sub(1)?];
        extent.mapping.at(usize::try_from(offset - extent.offset).ok()?)
    }

    fn block(&self, offset: u64, bytes: u64) -> Result<Block> {
        let start = self.at(offset).ok_or_else(|| {
            Error::new(ErrorKind::Unexpected, "reserve shared memory")
                .about(format!("offset {offset} is not mapped"))
        })?;
        Ok(Block { offset, bytes, start })
    }
}

/// The bytes that a block of at least `bytes` really has: four steps to each doubling, so that
/// samples of varying size find each other's blocks and at most a fifth is wasted.
pub(crate) fn class(bytes: u64) -> u64 {
    if bytes <= CLASS_MIN {
        return CLASS_MIN;
    }
    let step = (bytes - 1).ilog2() - 2;
    let class = bytes.next_multiple_of(1 << step);
    if LARGE <= class { whole_pages(class) } else { class.next_multiple_of(UNIT) }
}

/// The bytes of the system's memory that a block of this class gives back when it is freed.
pub(crate) fn bytes_given_back(class: u64) -> u64 {
    if class < LARGE { 0 } else { whole_pages(class) }
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn full(bytes_max: u64) -> Error {
    Error::new(ErrorKind::Busy, "reserve shared memory")
        .about(format!("all of memory_bytes_max = {bytes_max} bytes is in use"))
}

fn failed(error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull
        | io::ErrorKind::OutOfMemory
        | io::ErrorKind::QuotaExceeded
        | io::ErrorKind::FileTooLarge => ErrorKind::Exhausted,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, "reserve shared memory").because(error)
}

const CLASS_MIN: u64 = 256;
/// Blocks from this size on have an extent of their own.
const LARGE: u64 = 256 * 1024;
const SMALL_EXTENT_MIN: u64 = 64 * 1024;
const SMALL_EXTENT_MAX: u64 = 2 * 1024 * 1024;
/// An offset in units of 64 bytes fits 32 bits.
const OFFSET_MAX: u64 = UNIT << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_at_most_a_quarter() {
        for bytes in (1..200_000).chain((200_000..20_000_000).step_by(4097)) {
            let class = class(bytes);
            assert!(bytes <= class && class.is_multiple_of(UNIT), "{bytes}: {class}");
            assert!(class <= 256 || class <= bytes + bytes / 4 + 4096, "{bytes}: {class}");
            assert_eq!(super::class(class), class, "{bytes}");
        }
    }

    #[test]
    fn the_limit_is_busy_and_freed_blocks_come_back() {
        let arena = Arena::create(&Backing::Anonymous, 8 << 20).unwrap();
        let mut blocks = Vec::new();
        let error = loop {
            match arena.alloc(1 << 20) {
                Ok(block) => blocks.push(block),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(blocks.len(), 7);
        blocks.drain(..).for_each(|block| arena.free(block));
        assert!(arena.reserved_bytes() < 1 << 20);
        // Memory given back serves other sizes.
        let big = arena.alloc(6 << 20).unwrap();
        arena.free(big);
        assert!(arena.alloc(1 << 20).is_ok());
    }

    #[test]
    fn the_outlook_is_what_an_allocation_finds() {
        let arena = Arena::create(&Backing::Anonymous, 2 << 20).unwrap();
        let can_have = |bytes| arena.outlook(class(bytes), 0) != Outlook::Bad;
        let (mut blocks, mut refused) = (Vec::new(), 0);
        for step in 0_u64..2000 {
            let most = if step % 3 == 0 { 600_000 } else { 5000 };
            let bytes = step * 7919 % most;
            let outlook = can_have(bytes);
            let found = arena.alloc(bytes);
            assert_eq!(outlook, found.is_ok(), "{bytes} bytes in step {step}");
            refused += usize::from(found.is_err());
            blocks.extend(found);
            if step % 5 == 0 && !blocks.is_empty() {
                arena.free(blocks.swap_remove(step as usize % blocks.len()));
            }
        }
        assert!((100..1900).contains(&refused), "{refused}");
    }

    #[test]
    fn what_is_idle_counts_as_free() {
        let arena = Arena::create(&Backing::Anonymous, 4 << 20).unwrap();
        let held = [(); 3].map(|()| arena.alloc(1 << 20).unwrap());
        assert_eq!(arena.outlook(1 << 20, 0), Outlook::Bad);
        assert_eq!(arena.outlook(1 << 20, bytes_given_back(1 << 20)), Outlook::Good);
        assert_eq!(arena.outlook(2 << 20, bytes_given_back(1 << 20)), Outlook::Bad);
        held.into_iter().for_each(|block| arena.free(block));
        assert_eq!(arena.outlook(1 << 20, 0), Outlook::SystemUnknown);
    }

    #[test]
    fn a_full_file_system_is_known_to_be_full() {
        let Some(folder) = small_tmpfs("outlook") else { return };
        let arena = Arena::create(&Backing::Folder(folder.clone()), 1 << 40).unwrap();
        assert_eq!(arena.outlook(1 << 20, 0), Outlook::Good);
        let mut blocks = Vec::new();
        let error = loop {
            match arena.alloc(1 << 20) {
                Ok(block) => blocks.push(block),
                Err(error) => break error,
            }
        };
        assert_eq!(arena.outlook(1 << 20, 0), Outlook::Bad);
        arena.note_refusal(7, 1 << 20, &error);
        let refusal = arena.shortage.refusal().unwrap();
        assert!(refusal.why.starts_with("the system has no more shared memory: No space left"));
        blocks.pop().map(|block| arena.free(block)).unwrap();
        assert_eq!(arena.outlook(1 << 20, 0), Outlook::Good);
        drop(arena);
        unmount(&folder);
    }

    #[test]
    fn a_full_file_system_is_an_error() {
        let Some(folder) = small_tmpfs("error") else { return };
        let arena = Arena::create(&Backing::Folder(folder.clone()), 1 << 40).unwrap();
        let error = loop {
            if let Err(error) = arena.alloc(1 << 20) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::Exhausted);
        drop(arena);
        unmount(&folder);
    }

    fn unmount(folder: &std::path::Path) {
        // A process that another test is just starting may still have its files open.
        let status = std::process::Command::new("umount").arg("--lazy").arg(folder).status();
        assert!(status.unwrap().success(), "{}", folder.display());
        std::fs::remove_dir(folder).unwrap();
    }

    /// A tmpfs of 4 MiB, where this user may mount one. The end-to-end tests force the same in a
    /// namespace of their own.
    fn small_tmpfs(name: &str) -> Option<std::path::PathBuf> {
        let folder = format!("tsuji-tmpfs-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).ok()?;
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tsuji-test"]).arg(&folder);
        mount.stderr(std::process::Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(folder);
        }
        std::fs::remove_dir(&folder).ok()?;
        None
    }
}
