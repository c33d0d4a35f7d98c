//! Transports from shared libraries. What a library exports is in `cpp/include/tsuji_transport.h`: few
//! functions in plain C, of an engine that knows nothing of tsuji. What the samples of tsuji need besides
//! is `tsuji-engine`'s, as with the engines that are built in.
//!
//! A library is loaded when a flow first needs it, or before that for what it says of itself, and not
//! unloaded any more.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tsuji_engine::{About, Engine, EngineTransport, Library};
use tsuji_platform::limit::without_file_signal;
use tsuji_transport::deferred::told;
use tsuji_transport::{Error, ErrorKind, PeerId, Result};

mod engine;
mod library;
#[cfg(feature = "raw")]
pub mod raw;
mod search;

pub use library::Plugin;
pub use search::{Located, PATH_VARIABLE, file_name, folders, locate};

use engine::Participant;

/// What a plug-in is told, and what is known of it before it is loaded.
#[derive(Clone, Debug)]
pub struct PluginConfig {
    /// What it is taken to be. The library must be as much when it is loaded, and may be more.
    pub about: About,
    /// The library.
    pub path: PathBuf,
    /// The domain on the network, 0 to 232.
    pub domain: u32,
    /// The names of the interfaces to use; none leaves the choice to the plug-in.
    pub interfaces: Vec<String>,
    /// Addresses of hosts to look for besides those that multicast finds. To ask for names may take long.
    pub hosts: Vec<String>,
    /// Nobody is looked for by multicast.
    pub no_multicast: bool,
    /// Nobody of another host is met.
    pub host_only: bool,
    /// What is announced of the participant.
    pub user_data: Vec<u8>,
    /// Asked for the interfaces before each start, and for the addresses when the interfaces of this host have changed. Where
    /// there is none, what is said here holds for as long as the process lives.
    pub network: Option<Arc<dyn Network>>,
    /// Settings of the policy, by key.
    pub settings: Vec<(String, String)>,
    /// A file that tells of starts that ended their process. Where there is none, nothing does.
    pub starts: Option<PathBuf>,
}

impl PluginConfig {
    /// That library in that domain, with everything left to it.
    pub fn new(about: About, path: PathBuf, domain: u32) -> Self {
        Self {
            about,
            path,
            domain,
            interfaces: Vec::new(),
            hosts: Vec::new(),
            no_multicast: false,
            host_only: false,
            user_data: Vec::new(),
            network: None,
            settings: Vec::new(),
            starts: None,
        }
    }
}

/// Which interfaces of this host are used.
pub trait Network: std::fmt::Debug + Send + Sync {
    /// Answers what holds now.
    fn now(&self) -> NetworkNow;
}

/// Interfaces that are used from a start on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkNow {
    /// As [`PluginConfig::interfaces`].
    pub interfaces: Vec<String>,
    /// As [`PluginConfig::host_only`].
    pub host_only: bool,
    /// The addresses, beside those of loopback: where they have become others, a new start uses these.
    pub addresses: Vec<IpAddr>,
}

/// A library as an engine.
#[derive(Debug)]
pub struct PluginEngine {
    config: PluginConfig,
    plugin: OnceLock<Plugin>,
}

impl PluginEngine {
    /// The transport over it, of process `id`. It loads nothing yet.
    pub fn create(id: PeerId, config: PluginConfig) -> Result<EngineTransport> {
        Self { config, plugin: OnceLock::new() }.open(id)
    }

    /// The same, of a library that was loaded for what it says of itself.
    pub fn create_loaded(
        id: PeerId,
        config: PluginConfig,
        plugin: Plugin,
    ) -> Result<EngineTransport> {
        let transport = Self { config, plugin: plugin.into() };
        transport.open(id)
    }

    fn open(self, id: PeerId) -> Result<EngineTransport> {
        if DOMAIN_MAX < self.config.domain {
            return Err(Error::new(ErrorKind::Invalid, "create a participant")
                .about(format!("domain {}; at most {DOMAIN_MAX}", self.config.domain)));
        }
        EngineTransport::new(id, self)
    }

    fn plugin(&self) -> Result<&Plugin> {
        if let Some(plugin) = self.plugin.get() {
            return Ok(plugin);
        }
        let Self { config, .. } = self;
        let loaded = Plugin::load(&config.path, config.about.id.as_str())?;
        if !loaded.keeps(&config.about) {
            return Err(Error::new(ErrorKind::Invalid, "load a transport").about(format!(
                "{}: it says that it is {:?}; expected {:?}",
                config.path.display(),
                loaded.about(),
                config.about
            )));
        }
        Ok(self.plugin.get_or_init(|| loaded))
    }
}

const DOMAIN_MAX: u32 = 232;

impl Engine for PluginEngine {
    fn about(&self) -> About {
        self.config.about.clone()
    }

    fn library(&self) -> Library {
        let loaded = self.plugin.get();
        Library {
            path: Some(self.config.path.clone()),
            version: loaded.map(|it| it.version().to_owned()),
            is_loaded: loaded.is_some(),
        }
    }

    fn network(&self) -> u32 {
        self.config.domain
    }

    fn trouble(&self) -> Option<String> {
        Note::refusal(self.config.starts.as_deref()?, &self.config.path)
    }

    fn addresses(&self) -> Vec<IpAddr> {
        self.config.network.as_ref().map(|it| it.now().addresses).unwrap_or_default()
    }

    fn join(&self) -> Result<Box<dyn tsuji_engine::Participant>> {
        let mut config = self.config.clone();
        if let Some(network) = &config.network {
            let NetworkNow { interfaces, host_only, .. } = network.now();
            (config.interfaces, config.host_only) = (interfaces, host_only);
        }
        let start = Start::begin(config.starts.as_deref(), &config.path, config.about.id.as_str())?;
        let joined = self.plugin().and_then(|it| Participant::join(it.clone(), &config));
        start.end();
        Ok(Box::new(joined?))
    }
}

impl Plugin {
    /// As [`load`](Self::load), unless that has ended the last processes that did it, of which the file
    /// `starts` tells.
    pub fn load_noting(path: &Path, name: &str, starts: &Path) -> Result<Self> {
        let start = Start::begin(Some(starts), path, name)?;
        let loaded = Self::load(path, name);
        start.end();
        loaded
    }
}

/// Starting a plug-in, which may end the process. Whoever starts it next learns that from a [`Note`].
struct Start(Option<Note>);

impl Start {
    /// Refuses to start what has ended [`DEATHS_MAX`] processes in a row, unless that was long ago, or with another
    /// library. Where it cannot be noted it is started all the same.
    fn begin(path: Option<&Path>, library: &Path, name: &str) -> Result<Self> {
        let Some(path) = path else { return Ok(Self(None)) };
        let mut note = match Note::open(path) {
            Ok(note) => note,
            Err(error) => {
                told::debug!("{}: the start of {name} is not noted: {error}", path.display());
                return Ok(Self(None));
            }
        };
        if note.0.try_lock().is_err() {
            // Another process starts it just now.
            return Ok(Self(None));
        }
        let deaths = note.deaths(library);
        if DEATHS_MAX <= deaths {
            let about = format!("{name}: {}", refusal(deaths, path, library));
            return Err(Error::new(ErrorKind::Unsupported, START).about(about));
        }
        if 0 < deaths {
            told::warn!("the process that started the transport {name} last has died meanwhile");
        }
        Ok(Self(note.write(deaths + 1).is_ok().then_some(note)))
    }

    /// It has started, or has said why not.
    fn end(self) {
        if let Some(mut note) = self.0
            && let Err(error) = note.write(0)
        {
            told::warn!("a start that went well is not noted: {error}");
        }
    }
}

/// A file with the number of processes in a row that a start has ended. The lock on it ends with the process, so
/// what stands there when the lock is free was not ended by its process.
struct Note(File);

impl Note {
    /// A file of this user's own, and nothing that only looks like one.
    fn open(path: &Path) -> io::Result<Self> {
        Self::open_as(path, File::options().write(true).create(true).truncate(false).mode(0o600))
    }

    fn open_as(path: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = options.read(true).custom_flags(flags).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self(file))
    }

    /// Why a start would be refused now.
    fn refusal(path: &Path, library: &Path) -> Option<String> {
        let mut note = Self::open_as(path, &mut File::options()).ok()?;
        let deaths = note.deaths(library);
        // Locked, it counts one that has not ended yet.
        let is_refused = DEATHS_MAX <= deaths && note.0.try_lock_shared().is_ok();
        is_refused.then(|| refusal(deaths, path, library))
    }

    /// How many count. After a while one more may try; a library that came later has ended none.
    fn deaths(&mut self, library: &Path) -> u32 {
        let mut said = [0; 16];
        let len = self.0.read(&mut said).unwrap_or(0);
        let said = std::str::from_utf8(&said[..len]).unwrap_or_default();
        let deaths: u32 = said.trim().parse().unwrap_or(0);
        let Ok(written) = self.0.metadata() else { return deaths };
        let time = |it: &Metadata| (it.mtime(), it.mtime_nsec());
        // When it was put there: its own time may be that of its making.
        let put = library.metadata().map(|it| time(&it).max((it.ctime(), it.ctime_nsec())));
        if put.is_ok_and(|put| time(&written) < put) {
            return 0;
        }
        // A time to come says nothing: the clock was set back.
        let age = written.modified().ok().and_then(|it| it.elapsed().ok());
        let is_recent = age.is_some_and(|age| age < DEATHS_COUNT_FOR);
        if is_recent { deaths } else { deaths.min(DEATHS_MAX - 1) }
    }

    fn write(&mut self, count: u32) -> io::Result<()> {
        self.0.rewind()?;
        self.0.set_len(0)?;
        without_file_signal(|| self.0.write_all(count.to_string().as_bytes()))
    }
}

fn refusal(deaths: u32, note: &Path, library: &Path) -> String {
    format!(
        "the last {deaths} processes that started it have died of it; it is tried again an hour after \
         that, when {} is replaced, or when {} is removed",
        library.display(),
        note.display()
    )
}

const START: &str = "start a transport";

/// Processes that may die of a plug-in's start, in a row. Somebody may have killed one of them.
const DEATHS_MAX: u32 = 2;

/// How long they count. What the library needs may have been mended, and nobody has told.
const DEATHS_COUNT_FOR: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// A note and a library in a folder of their own.
    struct Files(PathBuf);

    impl Files {
        fn new(name: &str) -> Self {
            let name = format!("tsuji-starts-{name}-{}", std::process::id());
            let files = Self(std::env::temp_dir().join(name));
            std::fs::create_dir_all(&files.0).unwrap();
            std::fs::write(files.library(), "").unwrap();
            files
        }

        fn note(&self) -> PathBuf {
            self.0.join("starts-of-x")
        }

        fn library(&self) -> PathBuf {
            self.0.join("x.so")
        }

        fn begin(&self) -> Result<Start> {
            Start::begin(Some(&self.note()), &self.library(), "x")
        }

        /// As by a process that dies.
        fn die(&self) {
            drop(self.begin().unwrap());
        }

        fn trouble(&self) -> Option<String> {
            Note::refusal(&self.note(), &self.library())
        }

        fn written(&self, time: SystemTime) {
            let file = File::options().write(true).open(self.note()).unwrap();
            file.set_modified(time).unwrap();
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_ends_two_processes_is_not_started_by_a_third() {
        let files = Files::new("third");
        for _ in 0..3 {
            files.begin().unwrap().end();
        }
        files.die();
        let second = files.begin().unwrap();
        // Meanwhile another process may start it.
        files.begin().unwrap().end();
        assert_eq!(files.trouble(), None);
        drop(second);
        let error = files.begin().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("the last 2 processes"), "{error}");
        let trouble = files.trouble().unwrap();
        assert!(trouble.contains(files.note().to_str().unwrap()), "{trouble}");
        std::fs::remove_file(files.note()).unwrap();
        assert_eq!(files.trouble(), None);
        files.begin().unwrap().end();
        std::fs::remove_file(files.note()).unwrap();
        // What cannot be noted is started all the same, and nothing is written elsewhere.
        let other = files.0.join("other");
        std::fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, files.note()).unwrap();
        files.begin().unwrap().end();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine");
        Start::begin(Some(Path::new("/nowhere/x")), &files.library(), "x").unwrap().end();
    }

    #[test]
    fn what_ended_processes_long_ago_is_tried_once_more() {
        let files = Files::new("again");
        // By the note alone.
        std::fs::remove_file(files.library()).unwrap();
        (0..2).for_each(|_| files.die());
        files.written(SystemTime::now() - DEATHS_COUNT_FOR / 2);
        assert!(files.begin().is_err() && files.trouble().is_some());
        files.written(SystemTime::now() - DEATHS_COUNT_FOR);
        assert_eq!(files.trouble(), None);
        files.die();
        assert!(files.begin().is_err() && files.trouble().is_some());
        // The clock was set back: nobody knows how long ago it was.
        files.written(SystemTime::now() + DEATHS_COUNT_FOR);
        files.begin().unwrap().end();
        files.die();
        files.begin().unwrap().end();
    }

    #[test]
    fn another_library_is_tried_at_once() {
        let files = Files::new("other");
        (0..2).for_each(|_| files.die());
        // It was put there later than the note was written.
        files.written(SystemTime::now() - Duration::from_secs(10));
        assert_eq!(files.trouble(), None);
        files.die();
        files.die();
        assert!(files.begin().is_err());
    }
}
