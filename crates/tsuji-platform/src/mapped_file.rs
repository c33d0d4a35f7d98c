//! Files that are read where they are mapped.
//!
//! Who reads a mapped page that the file no longer has, since somebody made it shorter, or that the disk does not give, gets
//! SIGBUS, which ends the process. Here such a page reads as zeros, and [`MappedFile::check`] tells it.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// Fails with `InvalidInput` where the file is empty or no regular one, and with `OutOfMemory` where
    /// [`MAPPED_FILES_MAX`] are mapped.
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

    /// The place that covers this address. Those who read there keep it from being given back.
    fn of(address: usize) -> Option<&'static Self> {
        PLACES.iter().find(|it| {
            let start = it.start.load(Ordering::Acquire);
            start != 0 && start <= address && address < it.end.load(Ordering::Relaxed)
        })
    }
}

/// What heard SIGBUS before. It is set once, before the handler is.
static BEFORE: Before = Before(std::cell::UnsafeCell::new(None));

struct Before(std::cell::UnsafeCell<Option<libc::sigaction>>);

// SAFETY: it is written under a lock, before the handler that reads it is set.
unsafe impl Sync for Before {}

/// Has SIGBUS heard by [`on_bus_error`].
fn watch() -> io::Result<()> {
    static IS_SET: Mutex<bool> = Mutex::new(false);
    let mut is_set = IS_SET.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_set {
        return Ok(());
    }
    // SAFETY: all bytes 0 are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut before = action;
    // SAFETY: asks only.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: nobody reads it, since the handler is not set, and who writes it holds the lock.
    unsafe { *BEFORE.0.get() = Some(before) };
    action.sa_sigaction = on_bus_error as *const () as usize;
    // On the stack for signals where a thread has one, as the handlers of others expect.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: the handler does only what a handler may, and is there as long as the process.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    *is_set = true;
    Ok(())
}

/// Puts zeros where a page of a mapped file is lost. Other errors go to who heard them before.
extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    /// No page at this address: the file ends before it, or could not be read.
    const BUS_ADRERR: c_int = 2;
    // SAFETY: the kernel hands over a valid one, and that of this signal has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code == BUS_ADRERR
        && let Some(place) = Place::of(address)
        && put_zeros(address)
    {
        place.is_lost.store(true, Ordering::Release);
        return;
    }
    // SAFETY: it was written before this handler was set, and is not written again.
    let before = unsafe { *BEFORE.0.get() };
    match before {
        Some(it) if it.sa_sigaction == libc::SIG_IGN && code != BUS_ADRERR => {}
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
        }
        // The process ends as it would have: where the signal is of its own memory, by doing again what raised it.
        _ => {
            // SAFETY: both may be called in a handler.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
}

/// Whether there are zeros now in the page at this address.
fn put_zeros(address: usize) -> bool {
    // SAFETY: sysconf and mmap are system calls or reads of constants, which a handler may do; errno is put back. The page is one of a
    // mapped file that the kernel has no memory for, so nothing is taken from anybody.
    unsafe {
        let errno = *libc::__errno_location();
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let start = (address & !(page - 1)) as *mut c_void;
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let zeros = libc::mmap(start, page, libc::PROT_READ, flags, -1, 0);
        *libc::__errno_location() = errno;
        zeros == start
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

    fn file_of(name: &str, bytes: usize) -> (PathBuf, File) {
        let path = std::env::temp_dir().join(format!("tsuji-mapped-{name}-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        let file = File::open(&path).unwrap();
        (path, file)
    }

    #[test]
    fn a_file_that_is_made_shorter_reads_as_zeros_and_tells_it() {
        let (path, file) = file_of("shorter", 100_000);
        let other = file.try_clone().unwrap();
        let mapped = MappedFile::new(file).unwrap();
        let whole = MappedFile::new(other).unwrap();
        assert_eq!((mapped.len(), mapped[99_999]), (100_000, 7));
        mapped.check().unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(10_000).unwrap();
        assert_eq!((mapped[9_999], mapped[10_000], mapped[99_999]), (7, 0, 0));
        assert!(mapped.check().unwrap_err().to_string().contains("made shorter"));
        // It grows again: what was seen as zeros was lost all the same.
        OpenOptions::new().write(true).open(&path).unwrap().set_len(100_000).unwrap();
        assert!(mapped.check().unwrap_err().to_string().contains("could not be read"));
        whole.check().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(whole[9_999], 7);
        whole.check().unwrap();
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
        const CHILD: &str = "TSUJI_MAPPED_FILE_CHILD";
        if std::env::var_os(CHILD).is_some() {
            let (path, file) = file_of("child", 10);
            std::fs::remove_file(path).unwrap();
            let _mapped = MappedFile::new(file).unwrap();
            let (path, bare) = file_of("bare", 10);
            std::fs::remove_file(path).unwrap();
            // SAFETY: a fresh mapping aliases nothing; to read beyond the file ends this process.
            unsafe {
                let at = rustix::mm::mmap(
                    std::ptr::null_mut(),
                    20_000,
                    ProtFlags::READ,
                    MapFlags::SHARED,
                    &bare,
                    0,
                );
                at.unwrap().cast::<u8>().add(15_000).read_volatile();
            }
            std::process::exit(0);
        }
        use std::os::unix::process::ExitStatusExt;
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "mapped_file::tests::other_bus_errors_end_the_process"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(libc::SIGBUS), "{child:?}");
    }
}
