//! What is logged in this process, kept for a test to look at.

#![allow(clippy::print_stderr, reason = "a person who looks for a fault asks for it")]

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata};

use super::wait_until;

/// Lines of this level and graver ones: the level, then each field as `name=value`.
#[derive(Clone)]
pub(crate) struct Log {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    /// Keeps all that is logged from now on. Once in a process.
    pub(crate) fn install(level: Level) -> Self {
        let log = Self { level, lines: Arc::default() };
        tracing::subscriber::set_global_default(log.clone()).unwrap();
        log
    }

    /// The lines so far that have this word.
    pub(crate) fn with(&self, word: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.contains(word)).cloned().collect()
    }

    /// The first line that has this word.
    pub(crate) fn wait_for(&self, word: &str) -> String {
        wait_until("a line of the log", || !self.with(word).is_empty());
        self.with(word).swap_remove(0)
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                let _ = write!(self.0, " {field}={value:?}");
            }
        }
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        if std::env::var_os("TSUJI_TEST_LOG").is_some() {
            eprintln!("{} {}", std::process::id(), line.0);
        }
        self.lines.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
