//! What it takes to hear of one file that others replace, by whatever links and folders lead to it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::inotify::{self, ReadFlags, WatchFlags};

/// One of the files that a [`Watch`](super::Watch) follows: that it is written to and closed, replaced by another, removed,
/// made again; and the same of each link on the way to it, as of the `..data` by which Kubernetes exchanges a whole folder.
#[derive(Debug)]
pub(super) struct Followed {
    path: PathBuf,
    places: Vec<Place>,
    /// The names that count in each folder, by the number of its watch.
    watched: BTreeMap<i32, Vec<Place>>,
    /// What the file was when it was looked at last, where nothing tells of it.
    seen: Option<Signature>,
}

/// A name in a folder that decides which file it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    folder: PathBuf,
    name: OsString,
}

/// What tells a file from another, and from itself after it was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signature {
    file: (u64, u64),
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Followed {
    pub(super) fn new(path: &Path) -> Self {
        let (places, watched) = (Vec::new(), BTreeMap::new());
        Self { path: path.to_owned(), places, watched, seen: signature(path) }
    }

    /// The numbers of the watches that it needs.
    pub(super) fn numbers(&self) -> impl Iterator<Item = i32> {
        self.watched.keys().copied()
    }

    /// Whether what has happened in a watched folder may have made it another, or written to it. A file that is only half
    /// written is not news, unless it was left so.
    pub(super) fn is_news(&self, number: i32, name: Option<&OsStr>, flags: ReadFlags) -> bool {
        let Some(places) = self.watched.get(&number) else { return false };
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

    /// Watches what leads to the file now.
    pub(super) fn follow(&mut self, fd: &OwnedFd) -> io::Result<()> {
        for _ in 0..TRIES_MAX {
            let places = places(&self.path);
            let mut watched = BTreeMap::<i32, Vec<Place>>::new();
            let mut result = Err(io::ErrorKind::NotFound.into());
            for place in &places {
                let added = inotify::add_watch(fd, &place.folder, EVENTS);
                if let Ok(number) = added {
                    watched.entry(number).or_default().push(place.clone());
                }
                result = added.map(|_| ()).map_err(io::Error::from);
            }
            self.watched = watched;
            // Whatever has changed before the watches were there makes no news.
            if std::mem::replace(&mut self.places, places) == self.places {
                return result;
            }
        }
        Ok(())
    }

    /// Whether it is another than when it was looked at last, or was written to since.
    pub(super) fn has_changed(&mut self) -> bool {
        let seen = signature(&self.path);
        std::mem::replace(&mut self.seen, seen) != seen
    }
}

fn signature(path: &Path) -> Option<Signature> {
    let it = fs::metadata(path).ok()?;
    Some(Signature {
        file: (it.dev(), it.ino()),
        bytes: it.size(),
        written: (it.mtime(), it.mtime_nsec()),
        changed: (it.ctime(), it.ctime_nsec()),
    })
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

pub(super) const EVENTS: WatchFlags = WatchFlags::CLOSE_WRITE
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
    use crate::watch::{Watch, WatchEvent};

    /// A watch of one file.
    struct FileWatch(Watch);

    impl FileWatch {
        fn new(path: &Path) -> io::Result<Self> {
            let mut watch = Watch::new();
            assert!(watch.fd().is_some(), "no more inotify instances");
            watch.add_file(path);
            Ok(Self(watch))
        }

        fn has_changed(&mut self) -> bool {
            self.0.events().iter().any(|it| matches!(it, WatchEvent::File(_)))
        }
    }

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
