//! Memory that processes share: a growable file without a name, and mappings of parts of it.
//!
//! The file lives as long as somebody holds a descriptor or a mapping, so a killed process leaves
//! nothing behind. Every byte is reserved before it can be touched: a full memory is an error
//! here, never a signal later.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};

use crate::limit::{with_limit, without_file_signal};

/// The unit of mapping, in bytes. Offsets and lengths are multiples of it.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// `bytes` rounded up to whole pages.
pub fn whole_pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(page_bytes())
}

/// Where shared memory comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// The kernel's anonymous shared memory. Independent of any mounted file system.
    #[default]
    Anonymous,
    /// A file without a name in this folder, which should be of a tmpfs, such as `/dev/shm`. Its
    /// size limit then holds.
    Folder(PathBuf),
}

/// A file of shared memory that has no name.
#[derive(Debug)]
pub struct Segment {
    fd: OwnedFd,
}

impl Segment {
    /// An empty segment. `name` is seen in `/proc/PID/maps` only.
    pub fn create(name: &str, backing: &Backing) -> io::Result<Self> {
        let fd = match backing {
            Backing::Anonymous => {
                let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
                let fd = rustix::fs::memfd_create(name, flags)?;
                rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK)?;
                fd
            }
            Backing::Folder(folder) => unnamed_file(folder)?,
        };
        Ok(Self { fd })
    }

    /// A segment that another process created and sent.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// The bytes that are reserved.
    pub fn bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstat(&self.fd)?;
        u64::try_from(stat.st_size).map_err(io::Error::other)
    }

    /// Reserves `bytes` at `offset`, zeroed if they were not reserved before.
    ///
    /// Fails with `StorageFull` or `OutOfMemory` when the memory is not to be had, and with `FileTooLarge` when this
    /// process may not have files so large.
    pub fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        without_file_signal(|| {
            rustix::io::retry_on_intr(|| {
                rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), offset, bytes)
            })
        })
        .map_err(|error| with_limit(error.into()))
    }

    /// Gives the memory of `bytes` at `offset` back to the system. It reads as zero until it is
    /// reserved again.
    pub fn release(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.fd, flags, offset, bytes)?;
        Ok(())
    }

    /// The bytes that the file system still has to give, or `None` where it has no limit of its own.
    pub fn bytes_left(&self) -> io::Result<Option<u64>> {
        let stat = rustix::fs::fstatvfs(&self.fd)?;
        Ok((stat.f_blocks != 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    /// Maps `bytes` at `offset`, both multiples of [`page_bytes`] and reserved before.
    pub fn map(&self, offset: u64, bytes: u64) -> io::Result<Mapping> {
        let end = offset.checked_add(bytes).ok_or_else(|| io::Error::other("offset overflows"))?;
        if bytes == 0 || self.bytes()? < end {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a mapping up to byte {end} of a segment of {} bytes", self.bytes()?),
            ));
        }
        let len = usize::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &self.fd,
                offset,
            )
        }?;
        let base = NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Mapping { base, len })
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn unnamed_file(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
        io::Error::new(
            io::Error::from(error).kind(),
            format!("{}: cannot create shared memory: {error}", folder.display()),
        )
    })
}

/// Part of a segment, mapped for reading and writing until dropped.
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory; what is shared in it is accessed through atomics or under
// the protocol of whoever lays it out.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The bytes mapped.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Makes every page present now, so that the first touch later costs nothing.
    pub fn populate(&self) {
        const MADV_POPULATE_WRITE: i32 = 23;
        // SAFETY: the range is this mapping. Older kernels answer EINVAL and nothing is lost.
        unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, MADV_POPULATE_WRITE) };
    }

    /// Whether [`map_more`](Self::map_more) can be used: not under an emulator that has no such mapping, and not where the memory of
    /// this process is locked, since all before what is mapped would be locked for a moment too.
    pub fn can_map_more(&self) -> bool {
        // SAFETY: the range is this mapping, of which nothing is changed.
        let is_locked =
            unsafe { libc::msync(self.base.as_ptr().cast(), self.len, libc::MS_INVALIDATE) } != 0;
        !is_locked && self.map_more(0, page_bytes()).is_ok()
    }

    /// Maps `bytes` at `offset` of the segment whose start this maps, with no descriptor of it. Both are multiples of
    /// [`page_bytes`], and reserved before; what lies beyond the end of the segment is refused where the kernel can tell
    /// (Linux 5.14).
    pub fn map_more(&self, offset: u64, bytes: u64) -> io::Result<Self> {
        const MADV_POPULATE_READ: i32 = 22;
        let page = page_bytes();
        let invalid =
            || io::Error::new(io::ErrorKind::InvalidInput, "not whole pages of a segment");
        let end = offset.checked_add(bytes).filter(|_| bytes != 0).ok_or_else(invalid)?;
        if !offset.is_multiple_of(page) || !bytes.is_multiple_of(page) {
            return Err(invalid());
        }
        let usize = |it: u64| usize::try_from(it).map_err(io::Error::other);
        let (offset, len, end) = (usize(offset)?, usize(bytes)?, usize(end)?);
        // SAFETY: of a shared mapping no byte is moved: the same pages are mapped once more, at an address of the kernel's
        // choice.
        let start =
            unsafe { rustix::mm::mremap(self.base.as_ptr().cast(), 0, end, MremapFlags::MAYMOVE) }?;
        if offset != 0 {
            // SAFETY: the range was mapped just now, and nobody has seen it.
            if let Err(error) = unsafe { rustix::mm::munmap(start, offset) } {
                // SAFETY: as above. What cannot be unmapped in part can be as a whole.
                let _ = unsafe { rustix::mm::munmap(start, end) };
                return Err(error.into());
            }
        }
        // SAFETY: inside what was mapped just now.
        let base = unsafe { start.cast::<u8>().add(offset) };
        let base = NonNull::new(base).ok_or_else(|| io::Error::other("mapped at 0"))?;
        let mapping = Self { base, len };
        // SAFETY: the last page of this mapping, which is only read. Older kernels answer EINVAL.
        let told = unsafe {
            let last = base.add(len - page as usize).as_ptr();
            libc::madvise(last.cast(), page as usize, MADV_POPULATE_READ)
        };
        if told != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a mapping up to byte {end} is beyond the end of the segment"),
            ));
        }
        Ok(mapping)
    }

    /// A pointer to a `T` at `offset`, or `None` where it would not fit or not be aligned.
    pub fn at<T>(&self, offset: usize) -> Option<NonNull<T>> {
        let end = offset.checked_add(size_of::<T>())?;
        if self.len < end {
            return None;
        }
        // SAFETY: `offset` is inside the mapping, as was just checked.
        let pointer = unsafe { self.base.add(offset) }.cast::<T>();
        pointer.is_aligned().then_some(pointer)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping and nobody can refer to it any more. Unmapping in a
        // forked child only affects the child.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("bytes", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn two_mappings_of_one_segment_are_the_same_memory() {
        let segment = Segment::create("test", &Backing::Anonymous).unwrap();
        segment.reserve(0, page_bytes()).unwrap();
        let one = segment.map(0, page_bytes()).unwrap();
        let two = segment.map(0, page_bytes()).unwrap();
        let (one, two) = (one.at::<AtomicU64>(8).unwrap(), two.at::<AtomicU64>(8).unwrap());
        // SAFETY: both point into live mappings.
        unsafe {
            one.as_ref().store(7, Ordering::Relaxed);
            assert_eq!(two.as_ref().load(Ordering::Relaxed), 7);
        }
    }

    #[test]
    fn a_mapping_is_enough_to_map_more() {
        let (page, segment) = (page_bytes(), Segment::create("test", &Backing::Anonymous).unwrap());
        segment.reserve(0, page).unwrap();
        let first = segment.map(0, page).unwrap();
        segment.reserve(4 * page, 2 * page).unwrap();
        let late = segment.map(4 * page, 2 * page).unwrap();
        drop(segment);
        if !first.can_map_more() {
            // An emulator.
            assert!(first.map_more(0, page).is_err());
            return;
        }
        let more = first.map_more(4 * page, 2 * page).unwrap();
        assert_eq!(more.bytes() as u64, 2 * page);
        let (late, more) = (late.at::<AtomicU64>(8).unwrap(), more.at::<AtomicU64>(8).unwrap());
        // SAFETY: both point into live mappings.
        unsafe {
            late.as_ref().store(7, Ordering::Relaxed);
            assert_eq!(more.as_ref().load(Ordering::Relaxed), 7);
        }
        assert!(first.map_more(4 * page, 3 * page).is_err(), "beyond the end");
        for (offset, bytes) in [(1, page), (0, 0), (0, page - 1), (u64::MAX - 1, page)] {
            assert!(first.map_more(offset, bytes).is_err(), "{bytes} at {offset}");
        }
    }

    #[test]
    fn anonymous_memory_has_no_limit_of_its_own() {
        let segment = Segment::create("test", &Backing::Anonymous).unwrap();
        assert_eq!(segment.bytes_left().unwrap(), None);
    }

    #[test]
    fn what_is_not_reserved_cannot_be_mapped() {
        let segment = Segment::create("test", &Backing::Anonymous).unwrap();
        segment.reserve(0, page_bytes()).unwrap();
        assert!(segment.map(0, 2 * page_bytes()).is_err());
        assert!(segment.map(0, 0).is_err());
        assert!(segment.map(u64::MAX - 1, page_bytes()).is_err());
    }

    #[test]
    fn a_pointer_outside_or_unaligned_is_refused() {
        let segment = Segment::create("test", &Backing::Anonymous).unwrap();
        segment.reserve(0, page_bytes()).unwrap();
        let mapping = segment.map(0, page_bytes()).unwrap();
        let end = mapping.bytes();
        assert!(mapping.at::<u64>(end - 8).is_some());
        assert!(mapping.at::<u64>(end - 4).is_none());
        assert!(mapping.at::<u64>(4).is_none());
        assert!(mapping.at::<u64>(usize::MAX).is_none());
    }
}
