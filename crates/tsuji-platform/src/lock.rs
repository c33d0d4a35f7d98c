//! A lock that one process has, until it drops it or is dead.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::fork::Unshared;

/// A lock that this process has. Gone in a forked child.
#[derive(Debug)]
pub struct FileLock {
    file: (u64, u64),
    _fd: Unshared,
}

impl FileLock {
    /// Takes the lock of the file at `path`, which is made with `mode` if it is not there; `None` while somebody has it.
    pub fn try_take(path: &Path, mode: u32) -> io::Result<Option<Self>> {
        let (fd, file) = open(path, mode)?;
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let lock = Self { file, _fd: fd };
        Ok(lock.is_of(path).then_some(lock))
    }

    /// Whether the lock is of the file that is at `path` now. It may have been removed, and made again by others.
    pub fn is_of(&self, path: &Path) -> bool {
        is_at(path, self.file)
    }
}

/// Opens the file at `path`, which is made with `mode` if it is not there, to be locked. Answers its device and number too.
pub(crate) fn open(path: &Path, mode: u32) -> io::Result<(Unshared, (u64, u64))> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(mode).custom_flags(flags);
    let file = options.open(path)?;
    // The mask of this process may have left the group out. That of somebody else's file is its own affair.
    let _ = file.set_permissions(Permissions::from_mode(mode));
    let it = file.metadata()?;
    Ok((Unshared::new(OwnedFd::from(file)), (it.dev(), it.ino())))
}

/// Whether this file is at `path` now.
pub(crate) fn is_at(path: &Path, file: (u64, u64)) -> bool {
    path.symlink_metadata().is_ok_and(|it| (it.dev(), it.ino()) == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_until_it_is_dropped() {
        let path = std::env::temp_dir().join(format!("tsuji-lock-{}", std::process::id()));
        let take = || FileLock::try_take(&path, 0o600).unwrap();
        let first = take().unwrap();
        assert!(take().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(!first.is_of(&path));
        let second = take().unwrap();
        assert!(second.is_of(&path) && !first.is_of(&path));
        drop(second);
        // A child that another test is just forking holds it for a moment; the runner's watchdog ends this if it is longer.
        while take().is_none() {
            std::thread::yield_now();
        }
        std::fs::remove_file(&path).unwrap();
    }
}
