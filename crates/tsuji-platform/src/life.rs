//! A sign of life: others find out whether its holder is gone, however it went.
//!
//! It is a lock on one byte of a file that all share who have to know of each other. The system gives it back with the
//! process. Whoever asks needs no descriptor of the other's, and so can have any number of others.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use crate::fork::{Generation, Unshared};
use crate::lock::{is_at, open};

/// Lasts until it is dropped or its process is dead. A forked child does not prolong it.
#[derive(Debug)]
pub struct Life {
    path: PathBuf,
    sign: LifeSign,
    /// None where the file system has no such locks: then nothing can be told of it, nor of others.
    fd: Option<Unshared>,
    generation: Generation,
}

/// What another process needs to ask about a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeSign {
    /// The device and the number of the file; zeros for none.
    pub file: (u64, u64),
    /// The byte in it.
    pub at: u64,
}

impl Life {
    /// A life that begins, at the byte of the file at `path` that `token` leads to. The file is made with `mode` if it is not
    /// there.
    pub fn begin(path: &Path, mode: u32, token: [u8; 16]) -> io::Result<Self> {
        let word = <[u8; 8]>::try_from(&token[..8]).map_or(0, u64::from_le_bytes);
        let at = word % AT_MAX;
        let life = |fd, file| Self {
            path: path.to_owned(),
            sign: LifeSign { file, at },
            fd,
            generation: Generation::current(),
        };
        // Again where the last who had one removes the file just now.
        for _ in 0..TRIES {
            let (fd, number) = open(path, mode)?;
            match lock(&fd, libc::F_OFD_SETLK, libc::F_WRLCK, at..at + 1) {
                Ok(_) if is_at(path, number) => return Ok(life(Some(fd), number)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => {
                    tracing::debug!(%error, path = %path.display(), "no sign of life can be locked here");
                    return Ok(life(None, (0, 0)));
                }
            }
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "somebody else has locked it"))
    }

    /// What others need to ask about this one.
    pub fn sign(&self) -> LifeSign {
        self.sign
    }

    /// Whether the life of this sign is over; `None` if that cannot be told, because somebody has removed the file and it was made
    /// again, or because its file system has no such locks.
    pub fn is_over(&self, sign: LifeSign) -> Option<bool> {
        let fd = self.fd.as_ref().filter(|_| sign.file == self.sign.file && sign.at < AT_MAX)?;
        lock(fd, libc::F_OFD_GETLK, libc::F_WRLCK, sign.at..sign.at + 1).ok()
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let Some(fd) = self.fd.as_ref().filter(|_| self.generation.is_current()) else { return };
        // Of several that end at once the last gets the lock of all; whoever begins meanwhile has to try again.
        let _ = lock(fd, libc::F_OFD_SETLK, libc::F_UNLCK, self.sign.at..self.sign.at + 1);
        let is_last = lock(fd, libc::F_OFD_SETLK, libc::F_WRLCK, 0..AT_MAX).is_ok();
        if is_last && is_at(&self.path, self.sign.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Beyond the bytes that lives lock.
const AT_MAX: u64 = 1 << 62;

/// How often it is tried to begin.
const TRIES: u32 = 1000;

/// Takes the lock of these bytes, gives it back or asks about it. Answers whether it is, or was, free.
fn lock(fd: &impl AsFd, command: i32, kind: i32, bytes: Range<u64>) -> io::Result<bool> {
    let length = bytes.end.saturating_sub(bytes.start);
    // SAFETY: plain numbers, of which all bits may be zero.
    let mut wanted: libc::flock = unsafe { std::mem::zeroed() };
    wanted.l_type = kind as libc::c_short;
    wanted.l_whence = libc::SEEK_SET as libc::c_short;
    wanted.l_start = bytes.start.try_into().map_err(io::Error::other)?;
    wanted.l_len = length.try_into().map_err(io::Error::other)?;
    // SAFETY: `wanted` is what these commands read and write, and lives as long as the call.
    let done = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), command, &raw mut wanted) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(command == libc::F_OFD_SETLK || i32::from(wanted.l_type) == libc::F_UNLCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test's own, with where its lives are.
    fn place(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tsuji-life-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("life.lock")
    }

    fn life(path: &Path, number: u8) -> Life {
        Life::begin(path, 0o600, [number; 16]).unwrap()
    }

    /// A child that another test forks just now holds every descriptor for a moment; the runner's watchdog ends this if it is for
    /// longer.
    fn wait_for_end(of: LifeSign, asked: &Life) {
        while asked.is_over(of) != Some(true) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn its_end_is_seen() {
        let path = place("end");
        let (one, two) = (life(&path, 1), life(&path, 2));
        let sign = two.sign();
        assert_eq!(one.is_over(sign), Some(false));
        drop(two);
        wait_for_end(sign, &one);
        let again = life(&path, 2);
        assert_eq!((again.sign(), one.is_over(sign)), (sign, Some(false)));
        drop(one);
        assert!(path.exists(), "the last has not gone yet");
        drop(again);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn of_many_that_end_at_once_nothing_is_left() {
        let path = place("many");
        let begin = |number: u8| {
            let path = path.clone();
            move || (0..50).for_each(|_| drop(life(&path, number)))
        };
        std::thread::scope(|scope| {
            (1..5).for_each(|number| drop(scope.spawn(begin(number))));
        });
        // A child that another test forks just now may hold one for a moment.
        while path.exists() {
            drop(life(&path, 9));
        }
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn of_another_file_nothing_is_known() {
        let path = place("other");
        let one = life(&path, 1);
        std::fs::remove_file(&path).unwrap();
        let two = life(&path, 2);
        assert_eq!((one.is_over(two.sign()), two.is_over(one.sign())), (None, None));
        drop(one);
        assert!(path.exists(), "it is another's by now");
        drop(two);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_child_does_not_prolong_it() {
        let path = place("child");
        let (one, two) = (life(&path, 1), life(&path, 2));
        let (started, start) = io::pipe().unwrap();
        // SAFETY: the child only waits to be killed.
        let child = unsafe { libc::fork() };
        assert!(0 <= child);
        if child == 0 {
            let _ = rustix::io::write(&start, b"1");
            loop {
                // SAFETY: sleeps until a signal.
                unsafe { libc::pause() };
            }
        }
        drop(start);
        io::Read::read_exact(&mut &started, &mut [0]).unwrap();
        let sign = two.sign();
        drop(two);
        wait_for_end(sign, &one);
        // SAFETY: a child of this process that was not waited for yet.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        drop(one);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
