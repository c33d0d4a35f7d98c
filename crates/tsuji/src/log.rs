//! The log of nodes: events of [`tracing`] on `/rosout` and on the terminal, and levels that others may set.
//!
//! [`Node::logger`](crate::Node::logger) is a node's logger. What the macros of this crate say with it goes to the
//! terminal and to `/rosout`, with the QoS of rcl, and nothing need be installed for it.
//!
//! ```no_run
//! use tsuji::Context;
//!
//! let context = Context::builder().args(std::env::args().skip(1)).build()?;
//! let node = context.node_in("drive", "/robot")?;
//! let logger = node.logger();
//! tsuji::info!(logger, "ready");
//! let speed = 1.5;
//! tsuji::debug!(logger.child("wheels"), speed, "turning");
//! # Ok::<_, tsuji::Error>(())
//! ```
//!
//! **Subscribers.** A thread that has a subscriber of `tracing` gives it what loggers say, and nobody else: add
//! [`Logging::layer`] to it, or [`Logging::rosout_layer`] if it prints by itself, and the log comes to `/rosout` too.
//! [`Logging::install`] is for programs that have none and whose libraries speak by `tracing`. Each context has a log of its own: a
//! program of several adds the layer of each.
//!
//! **Arguments.** What is logged is written out by the thread that logs. An argument does not `await`, and what it logs itself while it is
//! written out is not heard.
//!
//! **Whose an event is.** Each event has a logger by name: that of its field `logger`, which the macros of this crate
//! give ([`debug!`](crate::debug) to [`fatal!`](crate::fatal)), else that of the innermost [span](Logger::span) around it that has
//! such a field, else the event's target with dots (`my_crate::wheels` is `my_crate.wheels`). The logger of the node
//! `/robot/drive` is `robot.drive`, as in rcl, and what its children `robot.drive.wheels` say is of the node too: an event goes
//! to the node whose logger is the longest beginning of its own. What belongs to no node, or to one
//! [without `/rosout`](crate::NodeBuilder::without_rosout), goes to the terminal alone.
//!
//! `info!(logger, target: "my_part", "text")` gives an event a target; its logger stays who says it.
//!
//! **Levels.** A logger's level is its own, else that of the nearest logger above it, else the default, INFO. `--log-level
//! [LOGGER:=]LEVEL` sets them at the start, [`Logging::set_level`] and the services of [a node's logger service](crate::NodeBuilder::logger_service) at any time,
//! for all nodes of a context together. `TRACE`, which ROS does not have, is not taken.
//!
//! **Limits.** Whoever logs never waits for `/rosout`: a line goes into a queue, which a thread publishes. Of each node it holds
//! [`QUEUE_LINES_MAX`] lines and [`QUEUE_BYTES_MAX`] bytes; further ones are dropped, counted, and told in a line once
//! those before are published. A text is cut at [`TEXT_BYTES_MAX`] bytes. What comes of publishing itself is never published.
//! A node that goes waits for its last lines to be published, for 1 s at most. A forked child has no log.

mod console;

mod layer;
pub use layer::LogLayer;

mod levels;
pub use levels::{LEVELS_MAX, NAME_BYTES_MAX};

mod logger;
#[doc(hidden)]
pub use logger::Listening;
pub(crate) use logger::logger_name;
pub use logger::{Logger, Logging};

mod outlet;
pub(crate) use outlet::Rosout;
pub use outlet::{QUEUE_BYTES_MAX, QUEUE_LINES_MAX, RosoutCounters};

mod service;
pub(crate) use service::LoggerService;

pub use crate::{Severity, UnknownSeverity};
#[doc(no_inline)]
pub use tracing;

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
    ($logger:expr, target: $target:expr, $($event:tt)+) => {
        $crate::__event!(
            @ $crate::log::Severity::Fatal, ERROR, $logger, [target: $target,] fatal = true, $($event)+
        )
    };
    ($logger:expr, $($event:tt)+) => {
        $crate::__event!(@ $crate::log::Severity::Fatal, ERROR, $logger, [] fatal = true, $($event)+)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($severity:expr, $level:ident, $logger:expr, target: $target:expr, $($event:tt)+) => {
        $crate::__event!(@ $severity, $level, $logger, [target: $target,] $($event)+)
    };
    ($severity:expr, $level:ident, $logger:expr, $($event:tt)+) => {
        $crate::__event!(@ $severity, $level, $logger, [] $($event)+)
    };
    (@ $severity:expr, $level:ident, $logger:expr, [$($target:tt)*] $($event:tt)+) => {{
        let logger: &$crate::log::Logger = &$logger;
        if logger.is_enabled($severity) {
            let _listening = logger.listen();
            $crate::log::tracing::event!(
                $($target)*
                $crate::log::tracing::Level::$level,
                logger = logger.name(),
                $($event)+
            );
        }
    }};
}
