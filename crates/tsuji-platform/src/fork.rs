//! Tells a process from its forked children.
//!
//! A child shares its parent's mapped memory and descriptors, so a destructor that runs in the
//! child would release what the parent still uses. Owners of such things keep the [`Generation`]
//! they were made in and do nothing in another one.
//!
//! A child also keeps its parent's sockets open, so that nobody would notice the parent's death.
//! Sockets whose hang-up is news are therefore `Unshared`: a child finds nothing behind them.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static INSTALL: Once = Once::new();

/// A bit for each descriptor that a child must not share. A handler may neither lock nor allocate.
static UNSHARED: [AtomicU64; DESCRIPTORS_MAX / 64] =
    [const { AtomicU64::new(0) }; DESCRIPTORS_MAX / 64];
/// Words of [`UNSHARED`] that were ever used.
static UNSHARED_WORDS: AtomicUsize = AtomicUsize::new(0);
/// Descriptors from this number on stay shared with children, as if they were not [`Unshared`].
const DESCRIPTORS_MAX: usize = 1 << 20;
/// In a child that could put nothing in their place: its copies own nothing.
static ARE_CLOSED: AtomicBool = AtomicBool::new(false);

/// The process, as counted by forks since the first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u32);

impl Generation {
    /// The calling process.
    pub fn current() -> Self {
        install();
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether the calling process is the one this value was made in, and not a child of it.
    #[inline]
    pub fn is_current(self) -> bool {
        GENERATION.load(Ordering::Relaxed) == self.0
    }
}

/// A descriptor that a forked child does not share: there it is `/dev/null`, or closed where that
/// cannot be opened.
#[derive(Debug)]
pub(crate) struct Unshared(ManuallyDrop<OwnedFd>);

impl Unshared {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        install();
        if let Some((at, bit)) = place(&fd) {
            UNSHARED_WORDS.fetch_max(at + 1, Ordering::Relaxed);
            UNSHARED[at].fetch_or(bit, Ordering::Relaxed);
        }
        Self(ManuallyDrop::new(fd))
    }
}

impl AsFd for Unshared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Unshared {
    fn drop(&mut self) {
        // The number may be another descriptor's as soon as this one is closed.
        let is_own = match place(&self.0) {
            Some((at, bit)) => {
                let is_of_this_process = UNSHARED[at].fetch_and(!bit, Ordering::Relaxed) & bit != 0;
                is_of_this_process || !ARE_CLOSED.load(Ordering::Relaxed)
            }
            None => true,
        };
        if is_own {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

fn place(fd: &OwnedFd) -> Option<(usize, u64)> {
    let number = usize::try_from(fd.as_raw_fd()).ok().filter(|it| *it < DESCRIPTORS_MAX)?;
    Some((number / 64, 1 << (number % 64)))
}

/// Has a forked child know that it is one.
pub(crate) fn install() {
    INSTALL.call_once(|| {
        // SAFETY: the handler only changes atomics and makes system calls, which is safe in a
        // freshly forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    crate::exit::forget();
    let words = UNSHARED_WORDS.load(Ordering::Relaxed);
    if words == 0 {
        return;
    }
    // SAFETY: a path that ends with zero.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if null < 0 {
        ARE_CLOSED.store(true, Ordering::Relaxed);
    }
    for (at, word) in UNSHARED.iter().take(words).enumerate() {
        let mut bits = word.swap(0, Ordering::Relaxed);
        while bits != 0 {
            let fd = (at * 64) as i32 + bits.trailing_zeros() as i32;
            bits &= bits - 1;
            // SAFETY: the number is one that an `Unshared` owns. Its copy in this child goes on
            // owning what is put there; where nothing is, it will not close the number, which may
            // be another's by then.
            unsafe {
                if null < 0 {
                    libc::close(fd);
                } else {
                    libc::dup3(null, fd, libc::O_CLOEXEC);
                }
            }
        }
    }
    if 0 <= null {
        // SAFETY: opened above, and nobody else knows of it.
        unsafe { libc::close(null) };
    }
}

/// What `body` answers in a forked child; false when the child panics or is killed. For tests of what a child
/// is refused.
///
/// # Safety
///
/// `body` takes no lock that another thread of this process can hold, but the allocator's, which libc makes usable.
///
/// # Panics
///
/// Where there is no child to be had.
pub unsafe fn run_in_child(body: &mut dyn FnMut() -> bool) -> bool {
    // SAFETY: the child runs `body`, of which the caller promises it; then it ends without returning.
    let child = unsafe { libc::fork() };
    assert!(0 <= child, "{}", io::Error::last_os_error());
    if child == 0 {
        let is_right = catch_unwind(AssertUnwindSafe(body)).unwrap_or(false);
        // SAFETY: ends the child, running nothing of the parent's.
        unsafe { libc::_exit(i32::from(!is_right)) }
    }
    let mut status = 0;
    // SAFETY: `child` is a child of this process that nobody else waits for.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "{}", io::Error::last_os_error());
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_childs_life_does_not_keep_an_unshared_descriptor_open() {
        let (mut kept, given) = UnixStream::pair().unwrap();
        let (mut stop, stopper) = UnixStream::pair().unwrap();
        let given = Unshared::new(given.into());
        // SAFETY: the child only reads a descriptor and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(stopper);
            let _ = stop.read(&mut [0]);
            // SAFETY: ends the child, running nothing of the parent's.
            unsafe { libc::_exit(0) };
        }
        drop(given);
        assert_eq!(kept.read(&mut [0]).unwrap(), 0, "the other end is closed");
        drop(stopper);
        let mut status = 0;
        // SAFETY: a child that nobody else waits for.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }
}
