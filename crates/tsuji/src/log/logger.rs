//! Loggers, and what the nodes of a program have in common.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use crate::{Error, ErrorKind, LogArguments, Node, Result, Severity};
use tracing::Dispatch;
use tracing::dispatcher::DefaultGuard;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tsuji_platform::fork::Generation;
use tsuji_platform::ordered::Mutex;
use tsuji_platform::report;

use super::console::Console;
use super::layer::{LOGGER, LogLayer};
use super::levels::{Levels, SEPARATOR, ancestors};
use super::outlet::{Outlet, Queue, Rosout};
use crate::lock;

/// The log of a program's nodes: levels, `/rosout`, the terminal. Clones are the same.
///
/// As in rcl, levels are common to all nodes of a context, so one is [the context's](crate::Context::logging).
///
/// ```no_run
/// use tsuji::{Context, Severity};
///
/// let context = Context::builder().args(std::env::args().skip(1)).build()?;
/// // What libraries say by `tracing` comes to the terminal too, in the form of ROS 2.
/// context.logging().install()?;
/// context.logging().set_level("drive.wheels", Some(Severity::Debug))?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone)]
pub struct Logging {
    core: Arc<Core>,
    /// Takes what loggers say where the program has no subscriber.
    own: Dispatch,
}

impl Logging {
    /// By the arguments of a context: `--log-level`, `--disable-rosout-logs`, `--disable-stdout-logs`.
    pub(crate) fn new(said: &LogArguments) -> Self {
        let mut levels = Levels::new();
        for (logger, level) in &said.levels {
            if let Err(why) = levels.set(logger.as_deref().unwrap_or_default(), Some(*level)) {
                report::warn!("--log-level: {why}");
            }
        }
        let core = Core {
            lowest: AtomicU8::new(levels.lowest() as u8),
            levels: Mutex::new(Known { levels, loggers: Vec::new() }),
            outlets: Mutex::default(),
            queue: Arc::default(),
            console: Console::from_environment(|name| {
                std::env::var_os(name).map(|it| it.to_string_lossy().into_owned())
            }),
            rosout: said.rosout,
            stdout: said.stdout,
            made_in: Generation::current(),
        };
        let core = Arc::new(core);
        // Of nothing else: the call sites of the whole program are told of it.
        let of_loggers = filter_fn(|it| it.fields().field(LOGGER).is_some());
        let of_loggers = of_loggers.with_max_level_hint(LevelFilter::DEBUG);
        let layer = LogLayer::new(&core, core.stdout);
        let own = Dispatch::new(tracing_subscriber::registry().with(of_loggers).with(layer));
        Self { core, own }
    }

    /// Returns the layer that takes the program's events to `/rosout` and, unless `--disable-stdout-logs` says otherwise, to the
    /// terminal, in the form of rcutils: `[INFO] [1700000000.123456789] [robot.drive]: ready`, by standard error.
    ///
    /// `RCUTILS_CONSOLE_OUTPUT_FORMAT`, `RCUTILS_COLORIZED_OUTPUT` and `RCUTILS_LOGGING_USE_STDOUT` are obeyed; of the
    /// format all names but `{date_time_with_ms}`, which stays as it is, and `\a`, `\b`, `\n`, `\r`, `\t` and `\x1b`.
    pub fn layer(&self) -> LogLayer {
        LogLayer::new(&self.core, self.core.stdout)
    }

    /// Returns the layer that takes them to `/rosout` alone, for programs that print otherwise.
    pub fn rosout_layer(&self) -> LogLayer {
        LogLayer::new(&self.core, false)
    }

    /// Makes [`layer`](Self::layer) the whole subscriber of this process, so that what libraries say by `tracing` is
    /// part of the log too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the process has one already: add the layer to that.
    pub fn install(&self) -> Result<()> {
        // What is finer than ROS has is never taken: nobody shall make it.
        let subscriber = tracing_subscriber::registry().with(LevelFilter::DEBUG).with(self.layer());
        tracing::subscriber::set_global_default(subscriber).map_err(|_| {
            let what = "install a log: this process has a subscriber of tracing already; add the layer of Logging to it";
            Error::new(ErrorKind::Invalid, what)
        })
    }

    /// Returns a logger of any name, of the node that the name begins with, or of none.
    pub fn logger(&self, name: &str) -> Logger {
        Logger::new(self, name)
    }

    /// Lets the log of `node` go to `/rosout` for as long as the answer is kept; with `--disable-rosout-logs`
    /// nothing does.
    ///
    /// Of two nodes of one name the later has what both say, until it goes; then nobody has.
    pub(crate) fn rosout(&self, node: &Node) -> Result<Option<Rosout>> {
        if !self.core.rosout {
            return Ok(None);
        }
        Rosout::new(&self.core, node, logger_name(node)).map(Some)
    }

    /// Returns from which level on a logger is heard.
    pub fn level(&self, logger: &str) -> Severity {
        lock(&self.core.levels).levels.effective(logger)
    }

    /// Returns what was set for this very logger; for the empty name the default of all.
    pub fn own_level(&self, logger: &str) -> Option<Severity> {
        lock(&self.core.levels).levels.own(logger)
    }

    /// Sets from which level on a logger is heard, or with `None` leaves that to those above it. The empty name is the
    /// default of all.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the name is longer than [`NAME_BYTES_MAX`](super::NAME_BYTES_MAX) bytes, or
    /// [`LEVELS_MAX`](super::LEVELS_MAX) loggers have a level already.
    pub fn set_level(&self, logger: &str, level: Option<Severity>) -> Result<()> {
        let set = self.core.set_level(logger, level);
        set.map_err(|why| {
            Error::new(ErrorKind::Invalid, format!("set the level of a logger: {why}"))
        })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl fmt::Debug for Logging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logging").finish_non_exhaustive()
    }
}

/// Who says something, by name. Clones are the same.
#[derive(Clone)]
pub struct Logger {
    logging: Logging,
    core: Arc<LoggerCore>,
}

struct LoggerCore {
    name: String,
    /// From which number on it is heard.
    level: AtomicU8,
}

impl Logger {
    fn new(logging: &Logging, name: &str) -> Self {
        if !logging.core.is_of_this_process() {
            // It is never heard, and the lock may be held by a thread that is not there.
            let level = AtomicU8::new(Severity::Fatal as u8);
            let core = Arc::new(LoggerCore { name: name.to_owned(), level });
            return Self { logging: logging.clone(), core };
        }
        let mut known = lock(&logging.core.levels);
        let level = AtomicU8::new(known.levels.effective(name) as u8);
        let core = Arc::new(LoggerCore { name: name.to_owned(), level });
        known.loggers.retain(|it| 0 < it.strong_count());
        known.loggers.push(Arc::downgrade(&core));
        drop(known);
        Self { logging: logging.clone(), core }
    }

    /// Returns the logger's name, such as `robot.drive`.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The logger of this name below this one: `robot.drive.wheels` of `robot.drive`. Keep it rather than make it
    /// for each line.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self::new(&self.logging, &format!("{}{SEPARATOR}{name}", self.core.name))
    }

    /// Returns true if the logger is heard at this level, which in a forked child it never is.
    ///
    /// It is a look at two words, for what costs something to find out.
    pub fn is_enabled(&self, severity: Severity) -> bool {
        self.core.level.load(Ordering::Relaxed) <= severity as u8
            && self.logging.core.is_of_this_process()
    }

    /// Until the answer is dropped the thread's events come to the log by themselves, where it has no subscriber to take
    /// them there. The macros say what they say within it.
    #[doc(hidden)]
    pub fn listen(&self) -> Option<Listening> {
        // None while this thread writes another event: then nobody may be set, and nothing is heard.
        tracing_core::dispatcher::get_current(|_| ())?;
        (!report::is_collected()).then(|| Listening {
            _own: tracing::dispatcher::set_default(&self.logging.own),
            _marked: report::Listening::new(),
        })
    }

    /// A span in which all events are this logger's that name no other, such as those of libraries.
    pub fn span(&self) -> tracing::Span {
        // Whatever is let through, spans of nodes are.
        tracing::error_span!("node", logger = self.name())
    }
}

/// While it is there a thread without a subscriber has that of the log.
#[doc(hidden)]
#[derive(Debug)]
pub struct Listening {
    _own: DefaultGuard,
    _marked: report::Listening,
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Logger").field(&self.core.name).finish()
    }
}

pub(crate) struct Core {
    levels: Mutex<Known>,
    /// What is below this number is heard of nobody.
    lowest: AtomicU8,
    /// By the names of their loggers.
    outlets: Mutex<HashMap<String, Weak<Outlet>>>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) console: Console,
    rosout: bool,
    stdout: bool,
    made_in: Generation,
}

struct Known {
    levels: Levels,
    /// Those that keep their level by them.
    loggers: Vec<Weak<LoggerCore>>,
}

impl Core {
    /// False in a forked child, where a lock may be held by a thread that is not there.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.made_in.is_current()
    }

    pub(crate) fn set_level(&self, logger: &str, level: Option<Severity>) -> Result<(), String> {
        let mut known = lock(&self.levels);
        known.levels.set(logger, level)?;
        self.lowest.store(known.levels.lowest() as u8, Ordering::Relaxed);
        for logger in known.loggers.iter().filter_map(Weak::upgrade) {
            let level = known.levels.effective(&logger.name);
            logger.level.store(level as u8, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether anybody might be heard at this level.
    pub(crate) fn may_be_heard(&self, severity: Severity) -> bool {
        self.lowest.load(Ordering::Relaxed) <= severity as u8
    }

    pub(crate) fn is_heard(&self, logger: &str, severity: Severity) -> bool {
        lock(&self.levels).levels.effective(logger) <= severity
    }

    pub(crate) fn add_outlet(&self, logger: &str, outlet: &Arc<Outlet>) {
        lock(&self.outlets).insert(logger.to_owned(), Arc::downgrade(outlet));
    }

    pub(crate) fn remove_outlet(&self, logger: &str, outlet: &Arc<Outlet>) {
        let mut outlets = lock(&self.outlets);
        if outlets.get(logger).is_some_and(|it| std::ptr::eq(it.as_ptr(), Arc::as_ptr(outlet))) {
            outlets.remove(logger);
        }
    }

    /// The `/rosout` of the node that a logger is of.
    pub(crate) fn outlet_of(&self, logger: &str) -> Option<Arc<Outlet>> {
        let outlets = lock(&self.outlets);
        ancestors(logger).find_map(|it| outlets.get(it)?.upgrade())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.is_of_this_process() {
            self.queue.end();
        }
    }
}

/// The name of a node's logger: `robot.drive` of `/robot/drive`.
pub(crate) fn logger_name(node: &Node) -> String {
    node.fully_qualified_name().trim_start_matches('/').replace('/', ".")
}
