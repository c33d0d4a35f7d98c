//! Who watches the run-time folder of a domain, and the policy files of its processes: one process for all of them.
//!
//! A user has few instances of inotify, and other programs need them too. So a lock decides which process of a folder
//! watches. It tells the others when their socket was removed, or when a file has changed that they follow. When it ends,
//! another takes the lock. One that is only stopped keeps it, and nobody is told of anything until it goes on.
//!
//! This file decides that, and watches; what follows from it is left to the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tsuji_platform::clock;
use tsuji_platform::lock::FileLock;
use tsuji_platform::poll::Poll;
use tsuji_platform::watch::{Watch, WatchEvent};
use tsuji_transport::PeerId;

use super::peer_of;
use crate::pacing::{Backoff, after};

/// What processes of one folder say to each other about watching.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WatchWord {
    /// I watch.
    Watcher,
    /// Tell me when this file changes. Its folder has these numbers, if we see the same files.
    Follow { path: Vec<u8>, folder: Option<(u64, u64)> },
    /// The file may have changed, or is followed from now on.
    Changed { path: Vec<u8> },
    /// The file cannot be followed for you.
    Refused { path: Vec<u8> },
    /// Your socket may be gone.
    SocketGone,
}

impl WatchWord {
    /// The file that it is about.
    pub(crate) fn path(&self) -> Option<&[u8]> {
        match self {
            Self::Follow { path, .. } | Self::Changed { path } | Self::Refused { path } => {
                Some(path)
            }
            Self::Watcher | Self::SocketGone => None,
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Make the socket of this process again if it is gone.
    LookForSocket,
    /// Read the policy file of this process again.
    ReadPolicy,
    /// Say this to a process.
    Tell(PeerId, WatchWord),
    /// Say this to all processes of the folder; that sockets may be gone, to those who can be told.
    TellAll(WatchWord),
}

/// This process among those of its folder.
pub(crate) struct Watching {
    folder: PathBuf,
    lock_mode: u32,
    /// Its name, as the sockets are called.
    own: OsString,
    /// The policy file that this process follows.
    file: Option<PathBuf>,
    role: Role,
    poll: Arc<Poll>,
    key: u64,
    /// When the lock is tried.
    tries: Backoff,
    /// Since when nobody is known who watches.
    seeks_since_ns: u64,
    /// When a watch that nobody tells is to be looked at.
    look_due_ns: Option<u64>,
    /// What this process watches: all as the watcher, else its own file if nobody does.
    watch: Option<Watch>,
    /// Whether the watch is in the poll.
    is_polled: bool,
}

enum Role {
    /// It is not known who watches.
    Seeking,
    /// This process does not: that one does.
    Follower(PeerId),
    /// This process watches, for these others too.
    Watcher { lock: FileLock, followers: BTreeMap<PathBuf, BTreeSet<PeerId>> },
}

impl Watching {
    /// Takes part, under `key` in `poll`. The lock is tried at once.
    pub(crate) fn begin(
        socket: &Path,
        lock_mode: u32,
        file: Option<PathBuf>,
        poll: &Arc<Poll>,
        key: u64,
    ) -> Self {
        let mut watching = Self {
            folder: socket.parent().unwrap_or(socket).to_owned(),
            lock_mode,
            own: socket.file_name().unwrap_or_default().to_owned(),
            file,
            role: Role::Seeking,
            poll: Arc::clone(poll),
            key,
            tries: Backoff::new(TRY_FIRST, TRY_LAST),
            seeks_since_ns: clock::monotonic_ns(),
            look_due_ns: None,
            watch: None,
            is_polled: false,
        };
        watching.try_lock();
        watching
    }

    pub(crate) fn is_watcher(&self) -> bool {
        matches!(self.role, Role::Watcher { .. })
    }

    pub(crate) fn due_ns(&self) -> Option<u64> {
        [self.tries.due_ns(), self.look_due_ns].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(crate) fn on_time(&mut self, now_ns: u64) -> Vec<Deed> {
        let mut deeds = Vec::new();
        if self.tries.is_due(now_ns) {
            deeds = self.try_lock();
        }
        if self.look_due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            deeds.extend(self.on_new_message());
        }
        deeds
    }

    /// Looks at what has happened to what this process watches.
    pub(crate) fn on_new_message(&mut self) -> Vec<Deed> {
        let Some(watch) = &mut self.watch else { return Vec::new() };
        let mut deeds = Vec::new();
        for news in watch.events() {
            match news {
                WatchEvent::Vanished(name) if name == self.own => deeds.push(Deed::LookForSocket),
                WatchEvent::Vanished(name) => {
                    let peer = peer_of(Path::new(&name));
                    deeds.extend(peer.map(|peer| Deed::Tell(peer, WatchWord::SocketGone)));
                }
                WatchEvent::FolderUnsure => {
                    deeds.extend([Deed::LookForSocket, Deed::TellAll(WatchWord::SocketGone)]);
                }
                WatchEvent::File(path) => {
                    if let Role::Watcher { followers, .. } = &self.role {
                        let followers = followers.get(&path).into_iter().flatten();
                        let changed = || WatchWord::Changed { path: bytes(&path) };
                        deeds.extend(followers.map(|peer| Deed::Tell(*peer, changed())));
                    }
                    if self.file.as_ref() == Some(&path) {
                        deeds.push(Deed::ReadPolicy);
                    }
                }
            }
        }
        self.watch_changed();
        deeds
    }

    /// Takes what other processes have said, and looks whether whoever watches is still there. `is_there` answers who is
    /// still met.
    pub(crate) fn on_words(
        &mut self,
        words: Vec<(PeerId, WatchWord)>,
        is_there: impl Fn(PeerId) -> bool,
    ) -> Vec<Deed> {
        let words = words.into_iter();
        let deeds = words.flat_map(|(peer, word)| self.on_word(peer, word, &is_there)).collect();
        // Afterwards: a watcher that has gone since it said so must not be followed.
        self.check(is_there);
        deeds
    }

    /// Takes a word of another process.
    fn on_word(
        &mut self,
        peer: PeerId,
        word: WatchWord,
        is_there: impl Fn(PeerId) -> bool,
    ) -> Vec<Deed> {
        match word {
            WatchWord::Watcher => self.follow(peer),
            WatchWord::Follow { path, folder } => self.followed_by(peer, path, folder, is_there),
            WatchWord::Changed { path } | WatchWord::Refused { path }
                if self.file.as_deref().map(bytes) != Some(path.clone()) =>
            {
                Vec::new()
            }
            WatchWord::Changed { .. } => vec![Deed::ReadPolicy],
            WatchWord::Refused { .. } => self.watch_alone(),
            WatchWord::SocketGone => vec![Deed::LookForSocket],
        }
    }

    /// Looks whether whoever watches is still there.
    fn check(&mut self, is_there: impl Fn(PeerId) -> bool) {
        if let Role::Follower(watcher) = self.role
            && !is_there(watcher)
        {
            self.seek();
        }
    }

    /// The socket was made again, maybe in a new folder.
    pub(crate) fn socket_made_again(&mut self) {
        let path = self.lock_path();
        let Role::Watcher { lock, .. } = &mut self.role else { return };
        if !lock.is_of(&path) {
            match FileLock::try_take(&path, self.lock_mode) {
                Ok(Some(taken)) => *lock = taken,
                // Somebody was faster in the new folder.
                Ok(None) | Err(_) => return self.seek(),
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.set_folder(&self.folder);
        }
    }

    /// Ends it, and leaves nothing behind.
    pub(crate) fn end(&mut self) {
        self.drop_watch();
        if let Role::Watcher { lock, .. } = &self.role
            && lock.is_of(&self.lock_path())
        {
            // Whoever has it open already sees that it is not there any more, and makes it again.
            let _ = std::fs::remove_file(self.lock_path());
        }
        self.role = Role::Seeking;
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.join(LOCK)
    }

    fn seek(&mut self) {
        self.drop_watch();
        self.role = Role::Seeking;
        self.seeks_since_ns = clock::monotonic_ns();
        self.tries.hurry();
        self.tries.later(clock::monotonic_ns());
    }

    fn try_lock(&mut self) -> Vec<Deed> {
        self.tries.tried();
        if !matches!(self.role, Role::Seeking) {
            return Vec::new();
        }
        let taken = FileLock::try_take(&self.lock_path(), self.lock_mode);
        let lock = match taken {
            Ok(Some(lock)) => lock,
            refused => {
                if let Err(error) = refused {
                    tracing::debug!(%error, "no lock for watching the run-time folder");
                }
                self.tries.later(clock::monotonic_ns());
                let is_alone = after(self.seeks_since_ns, ALONE_AFTER) <= clock::monotonic_ns();
                return if is_alone { self.watch_alone() } else { Vec::new() };
            }
        };
        self.role = Role::Watcher { lock, followers: BTreeMap::new() };
        let mut watch = self.watch.take().unwrap_or_default();
        watch.set_folder(&self.folder);
        self.file.iter().for_each(|file| watch.add_file(file));
        self.watch = Some(watch);
        self.watch_changed();
        // What happened while nobody watched.
        let policy = self.file.as_ref().map(|_| Deed::ReadPolicy);
        let deeds = [Deed::TellAll(WatchWord::Watcher), Deed::LookForSocket];
        deeds.into_iter().chain(policy).collect()
    }

    /// Another process watches.
    fn follow(&mut self, peer: PeerId) -> Vec<Deed> {
        // Somebody removed the lock, and it was taken twice. Whoever has that which is there watches.
        if let Role::Watcher { lock, .. } = &self.role
            && lock.is_of(&self.lock_path())
        {
            return Vec::new();
        }
        self.drop_watch();
        self.tries.tried();
        self.role = Role::Follower(peer);
        let asked = self.file.iter().map(|file| {
            let (path, folder) = (bytes(file), folder_of(file));
            Deed::Tell(peer, WatchWord::Follow { path, folder })
        });
        asked.collect()
    }

    /// Another process follows a file.
    fn followed_by(
        &mut self,
        peer: PeerId,
        path: Vec<u8>,
        folder: Option<(u64, u64)>,
        is_there: impl Fn(PeerId) -> bool,
    ) -> Vec<Deed> {
        let refused = |path| vec![Deed::Tell(peer, WatchWord::Refused { path })];
        let (Role::Watcher { followers, .. }, Some(watch)) = (&mut self.role, &mut self.watch)
        else {
            return refused(path);
        };
        let file = PathBuf::from(OsString::from_vec(path.clone()));
        followers.retain(|file, followers| {
            followers.retain(|it| is_there(*it));
            if followers.is_empty() && self.file.as_ref() != Some(file) {
                watch.remove_file(file);
            }
            !followers.is_empty()
        });
        // In another mount namespace the same path may lead elsewhere.
        let is_same = folder.is_some() && folder == folder_of(&file);
        let is_full = FILES_MAX <= followers.len() && !followers.contains_key(&file);
        if !is_same || is_full {
            return refused(path);
        }
        if !followers.contains_key(&file) && self.file.as_ref() != Some(&file) {
            watch.add_file(&file);
        }
        followers.entry(file).or_default().insert(peer);
        // It may have changed before it was watched.
        vec![Deed::Tell(peer, WatchWord::Changed { path })]
    }

    /// Watches its own file, since nobody does it for this process.
    fn watch_alone(&mut self) -> Vec<Deed> {
        let Some(file) = self.file.as_ref().filter(|_| self.watch.is_none()) else {
            return Vec::new();
        };
        let mut watch = Watch::new();
        watch.add_file(file);
        self.watch = Some(watch);
        self.watch_changed();
        vec![Deed::ReadPolicy]
    }

    /// Lets the poll tell of the watch, or plans to look at it.
    fn watch_changed(&mut self) {
        let Some(watch) = &self.watch else { return };
        if let Some(fd) = watch.fd().filter(|_| !self.is_polled) {
            self.is_polled = self.poll.add(fd, self.key).is_ok();
        }
        let now_ns = clock::monotonic_ns();
        self.look_due_ns = match (watch.period(), self.is_polled) {
            (Some(period), _) => Some(after(now_ns, period)),
            (None, true) => None,
            (None, false) => Some(after(now_ns, ALONE_AFTER)),
        };
    }

    fn drop_watch(&mut self) {
        let Some(watch) = self.watch.take() else { return };
        if let Some(fd) = watch.fd().filter(|_| self.is_polled) {
            // Dropping the descriptor would do it too, unless a child shares it.
            let _ = self.poll.remove(fd.as_fd());
        }
        (self.is_polled, self.look_due_ns) = (false, None);
    }
}

fn bytes(path: impl AsRef<Path>) -> Vec<u8> {
    path.as_ref().as_os_str().as_bytes().to_vec()
}

/// The numbers of the folder that a file is in.
fn folder_of(file: &Path) -> Option<(u64, u64)> {
    let it = file.parent()?.metadata().ok()?;
    Some((it.dev(), it.ino()))
}

/// Whoever has the lock of this file in the folder of the sockets watches.
const LOCK: &str = "watch.lock";

/// How soon the lock is tried again: whoever had it may be ending.
const TRY_FIRST: Duration = Duration::from_millis(20);
const TRY_LAST: Duration = Duration::from_secs(30);
/// After so long without a watcher a process watches its own file.
const ALONE_AFTER: Duration = Duration::from_secs(1);
/// Different files that are followed for others. Beyond them each process watches its own.
const FILES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    struct Process {
        watching: Watching,
        id: PeerId,
    }

    fn process(folder: &Path, number: u8, file: Option<&Path>) -> Process {
        let id = PeerId([number; 16]);
        let poll = Arc::new(Poll::new().unwrap());
        let socket = folder.join(format!("{id}.sock"));
        std::fs::write(&socket, "").unwrap();
        let file = file.map(Path::to_owned);
        Process { watching: Watching::begin(&socket, 0o600, file, &poll, 1), id }
    }

    impl Process {
        fn hear(&mut self, from: &Self, word: WatchWord) -> Vec<Deed> {
            self.watching.on_word(from.id, word, |_| true)
        }

        fn at_last(&mut self) -> Vec<Deed> {
            self.watching.on_time(u64::MAX)
        }
    }

    fn folder(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("tsuji-watching-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn one_watches_and_the_next_takes_its_place() {
        let folder = folder("one");
        let file = folder.join("policy.xml");
        std::fs::write(&file, "1").unwrap();
        let mut one = process(&folder, 1, None);
        let mut two = process(&folder, 2, Some(&file));
        assert!(one.watching.is_watcher() && !two.watching.is_watcher());
        let asked = two.hear(&one, WatchWord::Watcher);
        let [Deed::Tell(to, follow @ WatchWord::Follow { .. })] = &asked[..] else {
            panic!("{asked:?}")
        };
        assert_eq!(*to, one.id);
        let changed = Deed::Tell(two.id, WatchWord::Changed { path: bytes(&file) });
        assert_eq!(one.hear(&two, follow.clone()), std::slice::from_ref(&changed));
        assert_eq!(two.hear(&one, WatchWord::Changed { path: bytes(&file) }), [Deed::ReadPolicy]);
        assert_eq!(two.watching.due_ns(), None, "nobody wakes it");
        std::fs::write(&file, "22").unwrap();
        assert_eq!(one.watching.on_new_message(), [changed]);
        // Its socket is removed.
        std::fs::remove_file(folder.join(format!("{}.sock", two.id))).unwrap();
        let gone = Deed::Tell(two.id, WatchWord::SocketGone);
        assert_eq!(one.watching.on_new_message(), [gone]);
        assert_eq!(two.hear(&one, WatchWord::SocketGone), [Deed::LookForSocket]);
        // The watcher ends.
        one.watching.end();
        two.watching.check(|_| false);
        let told = [Deed::TellAll(WatchWord::Watcher), Deed::LookForSocket, Deed::ReadPolicy];
        assert_eq!(two.at_last(), told);
        assert!(two.watching.is_watcher());
        two.watching.end();
        assert!(!folder.join(LOCK).exists(), "nothing is left behind");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_watcher_that_is_gone_already_is_not_followed() {
        let folder = folder("gone");
        let mut one = process(&folder, 1, None);
        let mut two = process(&folder, 2, Some(&folder.join("policy.xml")));
        // It said so, and its connection ended, before any of it was looked at.
        two.watching.on_words(vec![(one.id, WatchWord::Watcher)], |_| false);
        assert!(matches!(two.watching.role, Role::Seeking));
        assert!(two.watching.tries.due_ns().is_some(), "the lock is tried again");
        one.watching.end();
        two.at_last();
        assert!(two.watching.is_watcher());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_the_watcher_does_not_see_is_watched_alone() {
        let folder = folder("alone");
        let file = folder.join("policy.xml");
        std::fs::write(&file, "1").unwrap();
        let (mut one, mut two) = (process(&folder, 1, None), process(&folder, 2, Some(&file)));
        two.hear(&one, WatchWord::Watcher);
        let elsewhere = WatchWord::Follow { path: bytes(&file), folder: Some((1, 1)) };
        let refused = WatchWord::Refused { path: bytes(&file) };
        assert_eq!(one.hear(&two, elsewhere), [Deed::Tell(two.id, refused.clone())]);
        assert_eq!(two.hear(&one, refused), [Deed::ReadPolicy]);
        std::fs::write(&file, "22").unwrap();
        assert_eq!(two.watching.on_new_message(), [Deed::ReadPolicy]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_is_made_again_has_one_watcher() {
        let folder = folder("again");
        let mut one = process(&folder, 1, None);
        std::fs::remove_dir_all(&folder).unwrap();
        let deeds = one.watching.on_new_message();
        assert!(deeds.contains(&Deed::LookForSocket), "{deeds:?}");
        std::fs::create_dir_all(&folder).unwrap();
        // A new process is faster.
        let mut two = process(&folder, 2, None);
        one.watching.socket_made_again();
        assert!(two.watching.is_watcher() && !one.watching.is_watcher());
        assert_eq!(two.hear(&one, WatchWord::Watcher), [], "it has the lock that is there");
        one.hear(&two, WatchWord::Watcher);
        assert!(matches!(one.watching.role, Role::Follower(it) if it == two.id));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
