//! Files that are read where they are mapped.
//!
//! Whoever reads a mapped page that the file no longer has, since somebody made it shorter, or that the disk does not give, gets
//! SIGBUS, which ends the process. Here that page and those behind it read as zeros, and [`MappedFile::check`] tells it. A system
//! call that is handed such memory fails with `EFAULT` instead. A handler of SIGBUS that others set is called for what is no mapped
//! file; one that they set later takes the place of this one until the next file is mapped.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use libc::{c_int, c_void, siginfo_t};
use rustix::mm::{MapFlags, ProtFlags};

/// Mappings that can be at a time. More are refused.
pub const MAPPED_FILES_MAX: usize = 1024;

/// A file, mapped from its beginning to its end at that time, for reading.
///
/// What others write to the file meanwhile is seen or not. Its bytes are memory that another process may change, so whoever
/// looks twice may see two things.
#[derive(Debug)]
pub struct MappedFile {
    file: File,
    base: NonNull<u8>,
    len: usize,
    place: &'static Place,
}

// SAFETY: nobody in this process writes to the memory, which stays where it is until this is dropped.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps a file.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the file is empty or no regular one, `OutOfMemory` if [`MAPPED_FILES_MAX`] are mapped.
    pub fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        if !metadata.is_file() {
            return Err(invalid("it is no regular file"));
        }
        let len = usize::try_from(metadata.len()).map_err(io::Error::other)?;
        if len == 0 {
            return Err(invalid("it is empty"));
        }
        watch()?;
        let place = Place::take().ok_or_else(|| {
            let text = format!("{MAPPED_FILES_MAX} files are mapped already");
            io::Error::new(io::ErrorKind::OutOfMemory, text)
        })?;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let mapped = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &file, 0)
        };
        let base = mapped.map_err(io::Error::from).and_then(|it| {
            NonNull::new(it.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at 0"))
        });
        let base = base.inspect_err(|_| place.give_back())?;
        place.cover(base.as_ptr() as usize, len);
        Ok(Self { file, base, len, place })
    }

    /// Whether all that was mapped is still there.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the file was made shorter, or some of it that was looked at could not be read.
    pub fn check(&self) -> io::Result<()> {
        let text = if self.file.metadata()?.len() < self.len as u64 {
            "it was made shorter while it was read"
        } else if self.place.is_lost.load(Ordering::Acquire) {
            "a part of it could not be read"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is mapped as long as this is there, and pages that are lost are replaced by others.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // Before somebody else's memory can be there.
        self.place.give_back();
        // SAFETY: the range was mapped by `new`, and nobody has a part of it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

/// Where a file is mapped, as the handler of the signal sees it.
#[derive(Debug)]
struct Place {
    is_taken: AtomicBool,
    /// 0 while it covers nothing.
    start: AtomicUsize,
    end: AtomicUsize,
    is_lost: AtomicBool,
}

static PLACES: [Place; MAPPED_FILES_MAX] = [const {
    Place {
        is_taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_lost: AtomicBool::new(false),
    }
}; MAPPED_FILES_MAX];

impl Place {
    fn take() -> Option<&'static Self> {
        PLACES.iter().find(|it| !it.is_taken.swap(true, Ordering::AcqRel))
    }

    fn cover(&self, start: usize, len: usize) {
        self.is_lost.store(false, Ordering::Relaxed);
        self.end.store(start + len, Ordering::Relaxed);
        self.start.store(start, Ordering::Release);
    }

    fn give_back(&self) {
        self.start.store(0, Ordering::Release);
        self.is_taken.store(false, Ordering::Release);
    }

    /// The place that covers this address, and where it ends. Those who read there keep it from being given back.
    fn of(address: usize) -> Option<(&'static Self, usize)> {
        PLACES.iter().find_map(|it| {
            let start = it.start.load(Ordering::Acquire);
            let end = it.end.load(Ordering::Acquire);
            let is_within = start != 0 && start <= address && address < end;
            // It may have been given to another mapping in between.
            (is_within && it.start.load(Ordering::Acquire) == start).then_some((it, end))
        })
    }
}

/// What hears SIGBUS besides. It is never freed, since a handler may be reading it.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// Whether that has been called: it may call this handler again, as `faulthandler` of Python does.
static IS_HANDED_ON: AtomicBool = AtomicBool::new(false);

/// Has SIGBUS heard by [`on_bus_error`], also where somebody else has set a handler since.
fn watch() -> io::Result<()> {
    static SETTING: Mutex<()> = Mutex::new(());
    let _setting = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    let own = on_bus_error as *const () as usize;
    // SAFETY: all bytes 0 are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut before = action;
    // SAFETY: asks only.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if before.sa_sigaction == own {
        return Ok(());
    }
    BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
    action.sa_sigaction = own;
    // On the stack for signals where a thread has one, as the handlers of others expect.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: the handler does only what a handler may, and is there as long as the process.
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts zeros where a page of a mapped file is lost. Other errors go to what heard them before.
extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    /// No page at this address: the file ends before it, or could not be read.
    const BUS_ADRERR: c_int = 2;
    // SAFETY: the kernel hands over a valid one, and that of this signal has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code == BUS_ADRERR
        && let Some((place, end)) = Place::of(address)
    {
        // Before anybody can read the zeros.
        place.is_lost.store(true, Ordering::Release);
        if put_zeros(address, end) {
            return;
        }
    }
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: it was leaked.
    let before = unsafe { before.as_ref() };
    let before = before.filter(|_| !IS_HANDED_ON.swap(true, Ordering::AcqRel));
    // What the kernel says of an access is positive.
    let is_of_access = 0 < code;
    match before {
        Some(it) if it.sa_sigaction == libc::SIG_IGN && !is_of_access => {
            IS_HANDED_ON.store(false, Ordering::Release);
        }
        Some(it) if !matches!(it.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) => {
            if it.sa_flags & libc::SA_SIGINFO == 0 {
                // SAFETY: a handler without SA_SIGINFO is such a function.
                let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(it.sa_sigaction) };
                handler(signal);
            } else {
                // SAFETY: a handler with SA_SIGINFO is such a function.
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(it.sa_sigaction) };
                handler(signal, info, context);
            }
            IS_HANDED_ON.store(false, Ordering::Release);
        }
        // The process ends as it would have. An access is tried again, so that what is left of it tells where it was.
        _ => {
            // SAFETY: both may be called in a handler.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if !is_of_access {
                    libc::raise(signal);
                }
            }
        }
    }
}

/// Whether there are zeros now from the page at this address to the end of its mapping, which is lost with it where a file was made
/// shorter. A page alone would be a mapping of its own, of which a process may have some thousands.
fn put_zeros(address: usize, end: usize) -> bool {
    // SAFETY: sysconf and mmap are system calls or reads of constants, which a handler may do; errno is put back. The pages are of one
    // mapped file, whose memory nobody in this process writes to.
    unsafe {
        let errno = *libc::__errno_location();
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let start = address & !(page - 1);
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = start as *mut c_void;
        let zeros = libc::mmap(at, end - start, libc::PROT_READ, flags, -1, 0);
        *libc::__errno_location() = errno;
        zeros == at
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::process::own_test;

    fn file_of(name: &str, bytes: usize) -> (PathBuf, File) {
        let path = crate::process::temporary_path(&format!("tsuji-mapped-{name}"));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        let file = File::open(&path).unwrap();
        (path, file)
    }

    fn file_at(path: &Path) -> File {
        OpenOptions::new().write(true).open(path).unwrap()
    }

    /// The signal that ends a test of these in a process of its own.
    fn end_of(child: &str) -> Option<c_int> {
        let ended = own_test(&format!("mapped_file::tests::{child}")).output().unwrap();
        assert_eq!(ended.status.code(), None, "{ended:?}");
        ended.status.signal()
    }

    #[test]
    fn a_file_that_is_made_shorter_reads_as_zeros_and_tells_it() {
        let (path, file) = file_of("shorter", 100_000);
        let other = file.try_clone().unwrap();
        let mapped = MappedFile::new(file).unwrap();
        let whole = MappedFile::new(other).unwrap();
        assert_eq!((mapped.len(), mapped[99_999]), (100_000, 7));
        mapped.check().unwrap();
        file_at(&path).set_len(10_000).unwrap();
        assert_eq!((mapped[9_999], mapped[10_000], mapped[99_999]), (7, 0, 0));
        assert!(mapped.check().unwrap_err().to_string().contains("made shorter"));
        // It grows again: what was seen as zeros was lost all the same.
        file_at(&path).set_len(100_000).unwrap();
        assert!(mapped.check().unwrap_err().to_string().contains("could not be read"));
        whole.check().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(whole[9_999], 7);
        whole.check().unwrap();
    }

    #[test]
    fn pages_with_gaps_between_them_take_no_mapping_each() {
        let (path, file) = file_of("gaps", 1);
        let page = crate::memory::page_bytes() as usize;
        // More than a process may have mappings.
        let pages = 70_000;
        file_at(&path).set_len((pages * page) as u64).unwrap();
        let mapped = MappedFile::new(file).unwrap();
        file_at(&path).set_len(0).unwrap();
        assert!((0..pages).rev().step_by(2).all(|it| mapped[it * page] == 0));
        assert!(mapped.check().is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_handler_that_is_set_later_is_called_and_not_for_mapped_files() {
        assert_eq!(end_of("child_sets_a_handler"), Some(libc::SIGBUS));
    }

    #[test]
    #[ignore = "run by another test in a process of its own"]
    fn child_sets_a_handler() {
        extern "C" fn later(signal: c_int) {
            // As faulthandler of Python does: what was before hears it again.
            // SAFETY: both may be called in a handler.
            unsafe { libc::raise(signal) };
        }
        let (path, file) = file_of("later", 100_000);
        let first = MappedFile::new(file.try_clone().unwrap()).unwrap();
        // SAFETY: the handler does what one may.
        unsafe { libc::signal(libc::SIGBUS, later as *const () as usize) };
        let second = MappedFile::new(file).unwrap();
        file_at(&path).set_len(0).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!((first[50_000], second[50_000]), (0, 0));
        // SAFETY: ends this process.
        unsafe { libc::raise(libc::SIGBUS) };
        std::process::exit(0);
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let (path, empty) = file_of("empty", 0);
        assert_eq!(MappedFile::new(empty).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        std::fs::remove_file(&path).unwrap();
        let folder = File::open(std::env::temp_dir()).unwrap();
        assert_eq!(MappedFile::new(folder).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn places_are_used_again() {
        let (path, first) = file_of("again", 10);
        for _ in 0..3 * MAPPED_FILES_MAX {
            MappedFile::new(first.try_clone().unwrap()).unwrap();
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn other_bus_errors_end_the_process() {
        assert_eq!(end_of("child_reads_beyond_another_file"), Some(libc::SIGBUS));
    }

    #[test]
    #[ignore = "run by another test in a process of its own"]
    fn child_reads_beyond_another_file() {
        let (path, file) = file_of("child", 10);
        std::fs::remove_file(path).unwrap();
        let _mapped = MappedFile::new(file).unwrap();
        let (path, bare) = file_of("bare", 10);
        std::fs::remove_file(path).unwrap();
        // SAFETY: a fresh mapping aliases nothing; to read beyond the file ends this process.
        unsafe {
            let page = crate::memory::page_bytes() as usize;
            let at = rustix::mm::mmap(
                std::ptr::null_mut(),
                2 * page,
                ProtFlags::READ,
                MapFlags::SHARED,
                &bare,
                0,
            );
            at.unwrap().cast::<u8>().add(page).read_volatile();
        }
        std::process::exit(0);
    }
}
