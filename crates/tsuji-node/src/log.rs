//! The log of nodes: events of [`tracing`] on `/rosout` and on the terminal, and levels that others may set.
//!
//! A program makes one [`Logging`] for its context and installs its [layer](Logging::layer), for no library does that by
//! itself. [`Logging::rosout`] lets a node's log go to `/rosout`, with the QoS of rcl.
//!
//! ```no_run
//! use tsuji::Context;
//! use tsuji_node::log::Logging;
//!
//! let context = Context::builder().args(std::env::args()).build()?;
//! let logging = Logging::new(&context);
//! logging.install()?;
//! let node = context.node_in("drive", "/robot")?;
//! let _rosout = logging.rosout(&node)?;
//! let logger = logging.node_logger(&node);
//! tsuji_node::info!(logger, "ready");
//! let speed = 1.5;
//! tsuji_node::debug!(logger.child("wheels"), speed, "turning");
//! # Ok::<_, tsuji::Error>(())
//! ```
//!
//! **Whose an event is.** Each event has a logger by name: that of its field `logger`, which the macros of this crate
//! give ([`debug!`](crate::debug) to [`fatal!`](crate::fatal)), else that of the innermost [span](Logger::span) around it that has
//! such a field, else the event's target with dots (`my_crate::wheels` is `my_crate.wheels`). The logger of the node
//! `/robot/drive` is `robot.drive`, as in rcl, and what its children `robot.drive.wheels` say is of the node too: an event goes
//! to the node whose logger is the longest beginning of its own. What belongs to no node, or to one without
//! [`Rosout`], goes to the terminal alone.
//!
//! **Levels.** A logger's level is its own, else that of the nearest logger above it, else the default, INFO. `--log-level
//! [LOGGER:=]LEVEL` sets them at the start, [`Logging::set_level`] and the services of [`LoggerService`] at any time, for all
//! nodes of one `Logging` together. `TRACE`, which ROS does not have, is not taken.
//!
//! **Limits.** Whoever logs never waits for `/rosout`: a line goes into a queue, which a thread publishes. Of each node it holds
//! [`QUEUE_LINES_MAX`] lines and [`QUEUE_BYTES_MAX`] bytes; further ones are dropped, counted, and told in a line once
//! those before are published. A text is cut at [`TEXT_BYTES_MAX`] bytes. What comes of publishing itself is never published.
//! A forked child has no log.

mod console;

mod layer;
pub use layer::LogLayer;

mod levels;
pub use levels::{LEVELS_MAX, NAME_BYTES_MAX};

mod logger;
pub(crate) use logger::logger_name;
pub use logger::{Logger, Logging};

mod outlet;
pub use outlet::{QUEUE_BYTES_MAX, QUEUE_LINES_MAX, Rosout, RosoutCounters};

mod service;
pub use service::LoggerService;

#[doc(no_inline)]
pub use tracing;
pub use tsuji::{Severity, UnknownSeverity};

/// The most bytes of one text of a log; the rest is cut off, and counted.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Logs at DEBUG: `debug!(logger, "text")`, with fields as in [`tracing::event!`].
#[macro_export]
macro_rules! debug {
    ($logger:expr, $($event:tt)+) => {
        $crate::__event!($crate::log::Severity::Debug, DEBUG, $logger, $($event)+)
    };
}

/// Logs at INFO: `info!(logger, "text")`, with fields as in [`tracing::event!`].
#[macro_export]
macro_rules! info {
    ($logger:expr, $($event:tt)+) => {
        $crate::__event!($crate::log::Severity::Info, INFO, $logger, $($event)+)
    };
}

/// Logs at WARN: `warn!(logger, "text")`, with fields as in [`tracing::event!`].
#[macro_export]
macro_rules! warn {
    ($logger:expr, $($event:tt)+) => {
        $crate::__event!($crate::log::Severity::Warn, WARN, $logger, $($event)+)
    };
}

/// Logs at ERROR: `error!(logger, "text")`, with fields as in [`tracing::event!`].
#[macro_export]
macro_rules! error {
    ($logger:expr, $($event:tt)+) => {
        $crate::__event!($crate::log::Severity::Error, ERROR, $logger, $($event)+)
    };
}

/// Logs at FATAL, which is an ERROR of `tracing` with the field `fatal`: `fatal!(logger, "text")`.
#[macro_export]
macro_rules! fatal {
    ($logger:expr, $($event:tt)+) => {
        $crate::__event!($crate::log::Severity::Fatal, ERROR, $logger, fatal = true, $($event)+)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($severity:expr, $level:ident, $logger:expr, $($event:tt)+) => {{
        let logger: &$crate::log::Logger = &$logger;
        if logger.is_enabled($severity) {
            $crate::log::tracing::event!(
                $crate::log::tracing::Level::$level,
                logger = logger.name(),
                $($event)+
            );
        }
    }};
}
