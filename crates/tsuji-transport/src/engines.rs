//! What a transport tells of its engine, for people to read. Nothing is decided on it.

use std::path::PathBuf;
use std::time::Duration;

/// An engine: threads and memory that are there while something needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStatus {
    /// Whether its code is in memory.
    pub is_loaded: bool,
    /// The library. `None` for what is part of the program.
    pub library: Option<PathBuf>,
    /// Of the library, in words; `None` while it is not known.
    pub version: Option<String>,
    /// The run that is on, or else the last one; `None` if it has never run.
    pub run: Option<EngineRun>,
    /// How often it has started.
    pub joins: u64,
    /// How long it stays when nothing needs it; `None` for always.
    pub idle: Option<Duration>,
}

/// One run of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineRun {
    /// What it was started for.
    pub need: Need,
    /// When it had started, in nanoseconds since the Unix epoch.
    pub since_wall_ns: i64,
    /// When it was shut down; `None` if it runs.
    pub left_wall_ns: Option<i64>,
    /// How many writers, readers and others need it now.
    pub users: usize,
    /// Others may see it on the wire, so it stays.
    pub is_on_the_wire: bool,
    /// The names of the threads that began while it started, or while its first writer and its first reader were
    /// opened, and that are still there.
    pub threads: Vec<String>,
    /// By how much the process's resident memory grew over the same steps.
    pub resident_bytes: i64,
    /// Another engine took such a step at the same time, and what it took is in these figures too.
    pub is_shared: bool,
}

/// What needs an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A writer of this topic.
    Writer(String),
    /// A reader of this topic.
    Reader(String),
    /// The wire: somebody wants to be seen there, or to see others.
    Wire,
}
