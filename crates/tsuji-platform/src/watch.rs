//! News of files that appear in or vanish from a folder, and of one file that changes.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::inotify;
use rustix::io::Errno;

mod file;
pub use file::FileWatch;

/// Watches one folder.
#[derive(Debug)]
pub struct FolderWatch {
    fd: OwnedFd,
}

/// What happened in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderEvent {
    /// A file of this name is there now, whole.
    Appeared(OsString),
    /// A file of this name is gone.
    Vanished(OsString),
    /// The folder itself is gone or news were lost: list it again.
    Unsure,
}

impl FolderWatch {
    /// Watches `folder` from now on.
    pub fn new(folder: &Path) -> io::Result<Self> {
        use inotify::WatchFlags;
        let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        let events = WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&fd, folder, events)?;
        Ok(Self { fd })
    }

    /// The news since the last call. Never blocks.
    pub fn drain(&self) -> Vec<FolderEvent> {
        use inotify::ReadFlags;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        let mut events = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => return events,
            };
            let name = event.file_name().map(|name| OsString::from_vec(name.to_bytes().to_vec()));
            let flags = event.events();
            let appeared = ReadFlags::MOVED_TO | ReadFlags::CLOSE_WRITE;
            let vanished = ReadFlags::MOVED_FROM | ReadFlags::DELETE;
            match name {
                Some(name) if flags.intersects(appeared) => {
                    events.push(FolderEvent::Appeared(name));
                }
                Some(name) if flags.intersects(vanished) => {
                    events.push(FolderEvent::Vanished(name));
                }
                _ => events.push(FolderEvent::Unsure),
            }
        }
    }
}

impl AsFd for FolderWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_comes_and_goes_is_news() {
        let folder = std::env::temp_dir().join(format!("tsuji-watch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let watch = FolderWatch::new(&folder).unwrap();
        std::fs::write(folder.join("a"), "").unwrap();
        std::fs::rename(folder.join("a"), folder.join("b")).unwrap();
        std::fs::remove_file(folder.join("b")).unwrap();
        let names = [
            FolderEvent::Appeared("a".into()),
            FolderEvent::Vanished("a".into()),
            FolderEvent::Appeared("b".into()),
            FolderEvent::Vanished("b".into()),
        ];
        assert_eq!(watch.drain(), names);
        std::fs::remove_dir(&folder).unwrap();
    }
}
