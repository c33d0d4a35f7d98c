//! WatchEvent of files that vanish from a folder, and of files that change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, ReadFlags};
use rustix::io::Errno;

mod file;

use file::{EVENTS, Followed};

/// Watches one folder and any number of files.
///
/// A user has few instances of inotify (`fs.inotify.max_user_instances`, 128 by default). Where none is left, or none can be
/// had at all, [`Watch::period`] says how often [`Watch::events`] is to be asked instead, and finds the same.
///
/// Not noticed is a folder further up that is renamed, and what another host writes to a file that it shares.
#[derive(Debug)]
pub struct Watch {
    fd: Option<OwnedFd>,
    /// Answers another instance, if there is one to be had.
    instance: fn() -> Option<OwnedFd>,
    folder: Option<Folder>,
    files: BTreeMap<PathBuf, Followed>,
    /// The numbers of all watches of the instance.
    numbers: BTreeSet<i32>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    number: Option<i32>,
    /// What was in it when it was looked at last, where nothing tells of it.
    seen: BTreeSet<OsString>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// A file of this name is gone from the folder.
    Vanished(OsString),
    /// The folder itself is gone, or news of it were lost.
    FolderUnsure,
    /// The file at this path may be another, or was written to.
    File(PathBuf),
}

impl Watch {
    /// Watches nothing yet.
    pub fn new() -> Self {
        Self::with(instance)
    }

    fn with(instance: fn() -> Option<OwnedFd>) -> Self {
        let (folder, files, numbers) = (None, BTreeMap::new(), BTreeSet::new());
        Self { fd: instance(), instance, folder, files, numbers }
    }

    /// Readable when there may be news; `None` where the system tells of none.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// How often to ask for news where the system tells of none.
    pub fn period(&self) -> Option<Duration> {
        self.fd.is_none().then_some(PERIOD)
    }

    /// Watches what vanishes from `folder` from now on, in place of the folder before.
    pub fn set_folder(&mut self, folder: &Path) {
        let number = self.fd.as_ref().and_then(|fd| inotify::add_watch(fd, folder, EVENTS).ok());
        self.folder = Some(Folder { path: folder.to_owned(), number, seen: names(folder) });
        self.tidy();
    }

    /// Watches the file at `path`, which is absolute and need not be there, from now on.
    pub fn add_file(&mut self, path: &Path) {
        let mut followed = Followed::new(path);
        if let Some(fd) = &self.fd {
            // What cannot be watched is seen to be there or not when its folder changes.
            let _ = followed.follow(fd);
        }
        self.files.insert(path.to_owned(), followed);
        self.tidy();
    }

    /// Watches the file at `path` no longer.
    pub fn remove_file(&mut self, path: &Path) {
        self.files.remove(path);
        self.tidy();
    }

    /// What happened since the last call. Never blocks.
    pub fn events(&mut self) -> Vec<WatchEvent> {
        if self.fd.is_some() { self.told() } else { self.seen() }
    }

    /// What the system tells.
    fn told(&mut self) -> Vec<WatchEvent> {
        let Some(fd) = &self.fd else { return Vec::new() };
        let (mut news, mut files) = (Vec::new(), BTreeSet::new());
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(fd, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => break,
            };
            let (number, flags) = (event.wd(), event.events());
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                news.push(WatchEvent::FolderUnsure);
                files.extend(self.files.keys().cloned());
                continue;
            }
            if self.folder.as_ref().is_some_and(|it| it.number == Some(number)) {
                let is_gone = flags.intersects(ReadFlags::MOVED_FROM | ReadFlags::DELETE);
                match name {
                    Some(name) if is_gone => news.push(WatchEvent::Vanished(name.to_owned())),
                    Some(_) => {}
                    None => news.push(WatchEvent::FolderUnsure),
                }
            }
            let changed = self.files.iter().filter(|(_, it)| it.is_news(number, name, flags));
            files.extend(changed.map(|(path, _)| path.clone()));
        }
        for path in &files {
            if let Some(file) = self.files.get_mut(path) {
                // What cannot be watched any more is looked at once again at least, and that is now.
                let _ = file.follow(fd);
            }
        }
        self.tidy();
        news.extend(files.into_iter().map(WatchEvent::File));
        news
    }

    /// What a look finds. Afterwards the system is asked again whether it can tell.
    fn seen(&mut self) -> Vec<WatchEvent> {
        let mut news = Vec::new();
        self.fd = (self.instance)();
        if let Some(folder) = &mut self.folder {
            let fd = self.fd.as_ref();
            folder.number = fd.and_then(|fd| inotify::add_watch(fd, &folder.path, EVENTS).ok());
            // After it is watched, so that nothing is missed in between.
            let there = names(&folder.path);
            let gone = folder.seen.difference(&there).cloned();
            news.extend(gone.map(WatchEvent::Vanished));
            if !folder.path.exists() {
                news.push(WatchEvent::FolderUnsure);
            }
            folder.seen = there;
        }
        for (path, file) in &mut self.files {
            if let Some(fd) = &self.fd {
                let _ = file.follow(fd);
            }
            // Likewise.
            if file.has_changed() {
                news.push(WatchEvent::File(path.clone()));
            }
        }
        self.tidy();
        news
    }

    /// Ends the watches that nothing needs any more.
    fn tidy(&mut self) {
        let Some(fd) = &self.fd else { return };
        let of_folder = self.folder.as_ref().and_then(|it| it.number);
        let needed: BTreeSet<i32> =
            self.files.values().flat_map(Followed::numbers).chain(of_folder).collect();
        for number in self.numbers.difference(&needed) {
            // The kernel has removed it already if the folder is gone.
            let _ = inotify::remove_watch(fd, *number);
        }
        self.numbers = needed;
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether another instance of inotify can be had. It is given back at once.
pub fn is_to_be_had() -> bool {
    instance().is_some()
}

fn instance() -> Option<OwnedFd> {
    inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok()
}

fn names(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.file_name()).collect()
}

/// How often is looked where nothing tells.
const PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("tsuji-watch-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn check(&self, watch: &mut Watch) {
            let (file, other) = (self.0.join("f"), self.0.join("other"));
            fs::write(&file, "one").unwrap();
            watch.set_folder(&self.0);
            watch.add_file(&file);
            assert_eq!(watch.events(), []);
            fs::write(&other, "").unwrap();
            assert_eq!(watch.events(), []);
            fs::remove_file(&other).unwrap();
            assert_eq!(watch.events(), [WatchEvent::Vanished("other".into())]);
            fs::write(&file, "other").unwrap();
            assert_eq!(watch.events(), [WatchEvent::File(file.clone())]);
            fs::remove_file(&file).unwrap();
            let both = [WatchEvent::Vanished("f".into()), WatchEvent::File(file.clone())];
            assert_eq!(watch.events(), both);
            fs::write(&file, "again").unwrap();
            assert_eq!(watch.events(), [WatchEvent::File(file.clone())]);
            watch.remove_file(&file);
            fs::write(&file, "more").unwrap();
            assert_eq!(watch.events(), []);
            fs::remove_dir_all(&self.0).unwrap();
            assert!(watch.events().contains(&WatchEvent::FolderUnsure));
        }
    }

    #[test]
    fn a_folder_and_a_file_are_news() {
        let mut watch = Watch::new();
        assert!(watch.fd().is_some() && watch.period().is_none());
        Place::new("told").check(&mut watch);
    }

    #[test]
    fn without_an_instance_a_look_finds_the_same() {
        let mut watch = Watch::with(|| None);
        assert!(watch.fd().is_none() && watch.period().is_some());
        Place::new("seen").check(&mut watch);
    }

    #[test]
    fn an_instance_is_taken_when_there_is_one() {
        let mut watch = Watch::with(|| None);
        let place = Place::new("taken");
        watch.set_folder(&place.0);
        watch.add_file(&place.0.join("f"));
        watch.instance = instance;
        fs::write(place.0.join("f"), "").unwrap();
        assert_eq!(watch.events(), [WatchEvent::File(place.0.join("f"))]);
        assert!(watch.fd().is_some());
        fs::remove_dir_all(&place.0).unwrap();
        let gone = WatchEvent::Vanished("f".into());
        assert!(watch.events().contains(&gone));
    }

    #[test]
    fn what_vanishes_while_an_instance_is_taken_is_news() {
        fn other() -> PathBuf {
            std::env::temp_dir().join(format!("tsuji-watch-late-{}/other", std::process::id()))
        }
        let mut watch = Watch::with(|| None);
        let place = Place::new("late");
        fs::write(other(), "").unwrap();
        watch.set_folder(&place.0);
        watch.instance = || {
            fs::remove_file(other()).unwrap();
            instance()
        };
        assert_eq!(watch.events(), [WatchEvent::Vanished("other".into())]);
        fs::remove_dir_all(&place.0).unwrap();
    }
}
