//! What can be seen of the engines of the processes of a domain.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ProcessInfo;

/// A process, and what carries its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessEngines {
    /// The process.
    pub process: ProcessInfo,
    /// All its threads.
    pub threads: u64,
    /// Its resident memory.
    pub resident_bytes: u64,
    /// Its address space.
    pub virtual_bytes: u64,
    /// Its transports, nearest first, and then those that do not work.
    pub engines: Vec<EngineReport>,
}

/// One transport in one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// The transport.
    pub transport: String,
    /// How it stands.
    pub state: EngineState,
    /// What it was started for, or why it does not run.
    pub because: String,
    /// Whether its code is in memory. A library stays there once it is.
    pub is_loaded: bool,
    /// The library's file; `None` for what is part of the program.
    pub library: Option<String>,
    /// What the library says of itself, once it is loaded.
    pub version: Option<String>,
    /// Since when it runs, or has been shut down, in nanoseconds since the Unix epoch.
    pub since_wall_ns: Option<i64>,
    /// How often it has started.
    pub starts: u64,
    /// Writers, readers and others that need it now.
    pub users: u64,
    /// The names of its threads: those that are still there of what began while it started, and while its first
    /// writer and its first reader were opened.
    pub threads: Vec<String>,
    /// By how much the resident memory of the process grew over the same steps. What it takes or gives back later,
    /// such as for samples, is not in it.
    pub resident_bytes: Option<i64>,
    /// Another engine took such a step at the same time, so that what both took stands at each.
    pub is_shared: bool,
    /// How long it stays when nothing needs it; `None` for always, or where there is no engine.
    pub idle_seconds: Option<f64>,
}

/// How a transport stands in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineState {
    /// It is part of tsuji, and has no engine to start.
    #[default]
    BuiltIn,
    /// Its engine runs.
    Running,
    /// Its engine has not been needed.
    NotStarted,
    /// A socket listens for others in its place.
    ListenedTo,
    /// Its engine has run, and nothing needed it any more.
    ShutDown,
    /// It need not be there, and is not.
    NotInstalled,
    /// It does not work.
    Failed,
}

impl fmt::Display for EngineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built in",
            Self::Running => "running",
            Self::NotStarted => "not started",
            Self::ListenedTo => "listened to",
            Self::ShutDown => "shut down",
            Self::NotInstalled => "not installed",
            Self::Failed => "does not work",
        })
    }
}
