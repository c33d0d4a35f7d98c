//! What a process may use at most, and errors instead of the signal by which the system says so.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Something that the system counts for each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Bytes of a file that is written to, memory files included (`ulimit -f`).
    FileBytes,
    /// Open descriptors (`ulimit -n`).
    Descriptors,
    /// Bytes of address space (`ulimit -v`).
    AddressBytes,
    /// Bytes that are locked into memory (`ulimit -l`).
    LockedBytes,
    /// Threads of this user, of all processes together (`ulimit -u`).
    Threads,
}

impl Counted {
    fn resource(self) -> Resource {
        match self {
            Self::FileBytes => Resource::Fsize,
            Self::Descriptors => Resource::Nofile,
            Self::AddressBytes => Resource::As,
            Self::LockedBytes => Resource::Memlock,
            Self::Threads => Resource::Nproc,
        }
    }
}

/// How much of something a process may use. `None` stands for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What holds now.
    pub soft: Option<u64>,
    /// How far the process may raise it by itself.
    pub hard: Option<u64>,
}

/// The limit of this process.
pub fn limit(counted: Counted) -> Limit {
    let Rlimit { current, maximum } = getrlimit(counted.resource());
    Limit { soft: current, hard: maximum }
}

/// Raises the limit of this process, and of the processes that it starts, as far as it may. Returns what holds then.
///
/// Meant for programs. A library leaves the limits of its process alone, but for descriptors where these run short: see
/// [`keep_room_for_descriptors`].
pub fn raise(counted: Counted) -> io::Result<Limit> {
    let Limit { soft, hard } = limit(counted);
    if soft != hard {
        setrlimit(counted.resource(), Rlimit { current: hard, maximum: hard })?;
    }
    Ok(limit(counted))
}

/// Raises the limit of descriptors when more than half of them are in use, as `number`, the newest, says: to twice as many, and to
/// no more than the process may have.
///
/// [`Listener::accept`](crate::socket::Listener::accept) and [`Connection::connect`](crate::socket::Connection::connect) do it
/// in whatever process they are called, also where that is a user's. A program that uses few descriptors keeps the limit that it
/// was given. One that uses `select` must not get a descriptor from 1024 on, and does not while its hard limit is 1024.
pub fn keep_room_for_descriptors(number: impl AsFd) {
    let Limit { soft: Some(soft), hard } = limit(Counted::Descriptors) else { return };
    let number = u64::try_from(number.as_fd().as_raw_fd()).unwrap_or(0);
    let more = (2 * soft).min(hard.unwrap_or(u64::MAX));
    if soft / 2 < number && soft < more {
        // Where it is refused, running out of them is the error.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(more), maximum: hard });
    }
}

/// Calls `write`, in which a file that would grow beyond the limit of this process is an error, `FileTooLarge`, and not a
/// signal that ends the process.
///
/// The signal is held back in this thread only, and only where the process has such a limit. One that was already
/// waiting before the call still waits after it.
pub fn without_file_signal<T>(write: impl FnOnce() -> T) -> T {
    // Without a limit this is one short system call.
    let _held = limit(Counted::FileBytes).soft.map(|_| HeldSignal::hold());
    write()
}

/// Turns the signal of [`Counted::FileBytes`] into the error `FileTooLarge` of whatever is written, everywhere in this
/// process. Whoever chose something else for that signal keeps it, and processes that this one starts have the system's default.
///
/// Meant for programs. A library leaves the signals of its process alone and uses [`without_file_signal`].
pub fn end_file_signal() {
    // A handler rather than `SIG_IGN`, which children would inherit.
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zeroed is a valid `sigaction`, which the calls read and fill; the handler does nothing.
    unsafe {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        if libc::sigaction(libc::SIGXFSZ, ptr::null(), &raw mut before) != 0
            || before.sa_sigaction != libc::SIG_DFL
        {
            return;
        }
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, ptr::null_mut());
    }
}

/// The signal, held back in this thread until dropped. What came of it meanwhile is taken away.
struct HeldSignal {
    before: libc::sigset_t,
    was_waiting: bool,
}

impl HeldSignal {
    fn hold() -> Self {
        let set = file_signal();
        let mut before = MaybeUninit::zeroed();
        // SAFETY: both sets are valid for the call, which fills the second. It cannot fail with these arguments.
        let before = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr());
            before.assume_init()
        };
        Self { before, was_waiting: is_waiting() }
    }
}

impl Drop for HeldSignal {
    fn drop(&mut self) {
        let set = file_signal();
        if !self.was_waiting && is_waiting() {
            let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the set and the time are valid; nothing is asked for about the signal.
            unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const now) };
        }
        // SAFETY: the set is the one that was in force before.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

fn file_signal() -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: the first call makes it an empty set, to which the second adds a signal that exists.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
        set.assume_init()
    }
}

/// Whether the signal waits for this thread or for the process.
fn is_waiting() -> bool {
    let mut waiting = MaybeUninit::zeroed();
    // SAFETY: the call fills the set, which is then asked about.
    unsafe {
        libc::sigpending(waiting.as_mut_ptr()) == 0
            && libc::sigismember(waiting.as_ptr(), libc::SIGXFSZ) == 1
    }
}

/// A file that is written to under [`without_file_signal`], and says the limit where it is reached.
#[derive(Debug)]
pub struct LimitedFile(pub File);

impl Write for LimitedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        without_file_signal(|| self.0.write(bytes)).map_err(with_limit)
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        without_file_signal(|| self.0.write_vectored(parts)).map_err(with_limit)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Read for LimitedFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Seek for LimitedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// The same error, which names the limit of this process if that was reached.
pub fn with_limit(error: io::Error) -> io::Error {
    let kind = error.kind();
    let text = match error.raw_os_error() {
        Some(libc::EFBIG) => match limit(Counted::FileBytes).soft {
            Some(bytes) => format!(
                "the file would be larger than this process may write: {bytes} bytes, as `ulimit -f` says"
            ),
            None => "the file would be larger than its file system allows".to_owned(),
        },
        Some(libc::EMFILE) => match limit(Counted::Descriptors).soft {
            Some(count) => {
                format!(
                    "this process has all the descriptors that it may have: {count}, as `ulimit -n` says"
                )
            }
            None => return error,
        },
        Some(libc::ENFILE) => {
            "the system has no more descriptors, as `sysctl fs.file-max` says".to_owned()
        }
        _ => return error,
    };
    io::Error::new(kind, text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use super::*;
    use crate::process::own_test;

    /// Runs the ignored test `name` of this file in a process of its own, whose limit is 8 KiB.
    fn under_limit(name: &str) {
        let mut command = own_test(&format!("limit::tests::{name}"));
        let bytes = Rlimit { current: Some(8192), maximum: Some(8192) };
        let limit = move || {
            // What a shell or Python has ignored for this process, it has not for that one.
            // SAFETY: sets no handler.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
            Ok(setrlimit(Resource::Fsize, bytes)?)
        };
        // SAFETY: between `fork` and `exec` there are two system calls.
        unsafe { command.pre_exec(limit) };
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.signal(), None, "{said}");
        assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    }

    fn unnamed() -> File {
        File::from(rustix::fs::memfd_create("limit", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
    }

    #[test]
    fn a_file_beyond_the_limit_is_an_error() {
        under_limit("child_writes_a_file");
    }

    #[test]
    #[ignore = "run by another test under a limit"]
    fn child_writes_a_file() {
        let mut file = LimitedFile(unnamed());
        file.write_all(&[1; 8192]).unwrap();
        let error = file.write_all(&[1; 1]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("8192 bytes, as `ulimit -f` says"), "{error}");
        assert!(without_file_signal(|| file.0.set_len(9000)).is_err());
        assert!(!is_waiting(), "what came of the signal is taken away");
    }

    #[test]
    fn a_program_can_do_without_the_signal() {
        under_limit("child_ends_the_signal");
    }

    #[test]
    #[ignore = "run by another test under a limit"]
    fn child_ends_the_signal() {
        end_file_signal();
        let mut file = unnamed();
        file.seek(SeekFrom::Start(8192)).unwrap();
        assert_eq!(file.write(&[1]).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        // And a program that it starts has the signal.
        let script = "exec head -c 9000 /dev/zero > \"$0\"";
        let path = std::env::temp_dir().join(format!("tsuji-limit-{}", std::process::id()));
        let ended = Command::new("sh").args(["-c", script]).arg(&path).status().unwrap();
        let _ = std::fs::remove_file(&path);
        assert_eq!(ended.signal(), Some(libc::SIGXFSZ), "{ended}");
    }

    #[test]
    fn what_waited_before_still_waits() {
        let thread = std::thread::spawn(|| {
            let _held = HeldSignal::hold();
            // SAFETY: sends this thread a signal that it holds back.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGXFSZ) };
            drop(HeldSignal::hold());
            is_waiting()
        });
        assert!(thread.join().unwrap());
    }

    #[test]
    fn room_for_descriptors_is_made() {
        under_limit("child_makes_room");
    }

    #[test]
    #[ignore = "run by another test in a process of its own"]
    fn child_makes_room() {
        let Limit { hard, .. } = limit(Counted::Descriptors);
        let maximum = hard.map_or(300, |it| it.min(300));
        let set = |current| {
            let limit = Rlimit { current: Some(current), maximum: Some(maximum) };
            setrlimit(Resource::Nofile, limit).unwrap();
        };
        set(100);
        let mut open: Vec<File> = Vec::new();
        while open.len() < 200 {
            let file = unnamed();
            keep_room_for_descriptors(&file);
            open.push(file);
        }
        assert_eq!(limit(Counted::Descriptors).soft, Some(maximum));
        let error = loop {
            match open[0].try_clone() {
                Ok(file) => open.push(file),
                Err(error) => break with_limit(error),
            }
        };
        drop(open);
        assert!(error.to_string().ends_with("300, as `ulimit -n` says"), "{error}");
    }

    #[test]
    fn limits_are_read() {
        let descriptors = limit(Counted::Descriptors);
        assert!(descriptors.soft.is_none_or(|it| 0 < it));
        assert!(descriptors.hard.is_none() || descriptors.soft <= descriptors.hard);
    }
}
