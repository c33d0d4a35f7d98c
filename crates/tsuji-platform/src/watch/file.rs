//! News of one file that others replace, by whatever links and folders lead to it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Watches one file: that it is written to and closed, replaced by another, removed, made again;
/// and the same of each link on the way to it, as of the `..data` by which Kubernetes exchanges a
/// whole folder.
///
/// Not noticed is a folder further up that is renamed, and what another host writes to a file that
/// it shares.
#[derive(Debug)]
pub struct FileWatch {
    fd: OwnedFd,
    path: PathBuf,
    places: Vec<Place>,
    /// The names that count in each folder, by the number of its watch.
    watched: BTreeMap<i32, Vec<Place>>,
}

/// A name in a folder that decides which file it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    folder: PathBuf,
    name: OsString,
}

impl FileWatch {
    /// Watches the file at `path`, which is absolute and need not be there, from now on. Fails if
    /// the folder cannot be watched, as when this user has too many watches.
    pub fn new(path: &Path) -> io::Result<Self> {
        let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        let (places, watched) = (Vec::new(), BTreeMap::new());
        let mut watch = Self { fd, path: path.to_owned(), places, watched };
        watch.follow()?;
        Ok(watch)
    }

    /// Whether, since the last call, the file may have become another or been written to. Never
    /// blocks. A file that is only half written is not news, unless it was left so.
    pub fn has_changed(&mut self) -> bool {
        let mut has_changed = false;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    has_changed |= is_news(&self.watched, event.wd(), name, event.events());
                }
                Err(Errno::INTR) => (),
                Err(_) => break,
            }
        }
        if has_changed {
            // What cannot be watched any more is looked at once again at least, and that is now.
            let _ = self.follow();
        }
        has_changed
    }

    /// Watches what leads to the file now.
    fn follow(&mut self) -> io::Result<()> {
        for _ in 0..TRIES_MAX {
            let places = places(&self.path);
            let mut watched = BTreeMap::<i32, Vec<Place>>::new();
            let mut result = Err(io::ErrorKind::NotFound.into());
            for place in &places {
                let added = inotify::add_watch(&self.fd, &place.folder, EVENTS);
                if let Ok(number) = added {
                    watched.entry(number).or_default().push(place.clone());
                }
                result = added.map(|_| ()).map_err(io::Error::from);
            }
            for number in self.watched.keys().filter(|it| !watched.contains_key(it)) {
                // The kernel has removed it already if the folder is gone.
                let _ = inotify::remove_watch(&self.fd, *number);
            }
            self.watched = watched;
            // Whatever has changed before the watches were there makes no news.
            if std::mem::replace(&mut self.places, places) == self.places {
                return result;
            }
        }
        Ok(())
    }
}

impl AsFd for FileWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn is_news(
    watched: &BTreeMap<i32, Vec<Place>>,
    number: i32,
    name: Option<&OsStr>,
    flags: ReadFlags,
) -> bool {
    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
        return true;
    }
    let Some(places) = watched.get(&number) else { return false };
    // Without a name it is about the folder itself.
    let Some(name) = name else { return true };
    let Some(place) = places.iter().find(|it| it.name == name) else { return false };
    if !flags.contains(ReadFlags::CREATE) {
        return true;
    }
    // Whoever makes an ordinary file closes it when it is whole. Of links and folders nothing else
    // is heard.
    let is_being_written = |it: Metadata| it.is_file() && it.nlink() == 1;
    !fs::symlink_metadata(place.folder.join(name)).is_ok_and(is_being_written)
}

/// The links on the way to `path` and the file itself, or the first thing that is missing.
fn places(path: &Path) -> Vec<Place> {
    let mut places = Vec::new();
    let mut at = PathBuf::from("/");
    let mut ahead = steps(path);
    while let Some(step) = ahead.pop() {
        if step == ".." {
            at.pop();
            continue;
        }
        let full = at.join(&step);
        let place = Place { folder: at.clone(), name: step };
        let Ok(metadata) = fs::symlink_metadata(&full) else {
            places.push(place);
            break;
        };
        if metadata.is_symlink() {
            places.push(place);
            let target = fs::read_link(&full).unwrap_or_default();
            if LINKS_MAX < places.len() {
                break;
            }
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            ahead.extend(steps(&target));
        } else if ahead.is_empty() {
            places.push(place);
        } else {
            at = full;
        }
    }
    places
}

/// The names in a path, the last first.
fn steps(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|it| match it {
        Component::Normal(_) | Component::ParentDir => Some(it.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

const EVENTS: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;
/// How often the way to the file may change while it is looked at.
const TRIES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let id = std::process::id();
            let path = std::env::temp_dir().join(format!("tsuji-file-watch-{name}-{id}"));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_that_is_written_replaced_and_removed() {
        let folder = Folder::new("plain");
        let file = folder.path("f");
        let mut watch = FileWatch::new(&file).unwrap();
        let mut check = |what: &str, expect| assert_eq!(watch.has_changed(), expect, "{what}");
        check("nothing", false);
        fs::write(folder.path("other"), "").unwrap();
        check("another file", false);
        let open = fs::File::create(&file).unwrap();
        check("it is being written", false);
        drop(open);
        check("it is written", true);
        check("nothing more", false);
        fs::rename(folder.path("other"), &file).unwrap();
        check("replaced by a rename", true);
        fs::remove_file(&file).unwrap();
        check("removed", true);
        fs::write(folder.path("other"), "").unwrap();
        fs::hard_link(folder.path("other"), &file).unwrap();
        check("a second name of a file", true);
    }

    #[test]
    fn a_folder_behind_a_link_is_exchanged() {
        // As Kubernetes does with what it mounts of a ConfigMap.
        let folder = Folder::new("links");
        for version in ["..1", "..2", "..3"] {
            fs::create_dir(folder.path(version)).unwrap();
            fs::write(folder.path(version).join("f"), version).unwrap();
        }
        symlink("..1", folder.path("..data")).unwrap();
        symlink("..data/f", folder.path("f")).unwrap();
        let mut watch = FileWatch::new(&folder.path("f")).unwrap();
        for version in ["..2", "..3"] {
            symlink(version, folder.path("..new")).unwrap();
            fs::rename(folder.path("..new"), folder.path("..data")).unwrap();
            assert!(watch.has_changed(), "{version}");
            fs::write(folder.path("..1").join("f"), "").unwrap();
            assert!(!watch.has_changed(), "what the link does not lead to any more");
            fs::write(folder.path(version).join("f"), "").unwrap();
            assert!(watch.has_changed(), "what it leads to, {version}");
        }
        fs::remove_file(folder.path("f")).unwrap();
        assert!(watch.has_changed());
        symlink("..1/f", folder.path("f")).unwrap();
        assert!(watch.has_changed(), "a link that is made, and not renamed");
    }

    #[test]
    fn a_folder_that_goes_and_comes_again() {
        let folder = Folder::new("folder");
        let inner = folder.path("inner");
        let mut watch = FileWatch::new(&inner.join("f")).unwrap();
        fs::create_dir(&inner).unwrap();
        assert!(watch.has_changed(), "its folder is there");
        fs::write(inner.join("f"), "").unwrap();
        assert!(watch.has_changed(), "it is there");
        fs::rename(&inner, folder.path("old")).unwrap();
        assert!(watch.has_changed(), "its folder is gone");
        fs::write(folder.path("old").join("f"), "").unwrap();
        assert!(!watch.has_changed(), "it is not that one any more");
        fs::create_dir(folder.path("new")).unwrap();
        fs::write(folder.path("new").join("f"), "").unwrap();
        fs::rename(folder.path("new"), &inner).unwrap();
        assert!(watch.has_changed(), "another folder takes its place");
    }

    #[test]
    fn links_in_a_circle_end() {
        let folder = Folder::new("circle");
        symlink("b", folder.path("a")).unwrap();
        symlink("a", folder.path("b")).unwrap();
        let mut watch = FileWatch::new(&folder.path("a")).unwrap();
        fs::remove_file(folder.path("b")).unwrap();
        fs::write(folder.path("b"), "").unwrap();
        assert!(watch.has_changed());
    }
}
