//! What can be seen of the engines of the processes of a domain.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ProcessInfo;

/// A process, and the engines that carry its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessEngines {
    /// The process.
    pub process: ProcessInfo,
    /// Number of all its threads.
    pub threads: u64,
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Address space, in bytes.
    pub virtual_bytes: u64,
    /// Transports of the process, nearest first, and then those that do not work.
    pub engines: Vec<EngineReport>,
}

/// A transport and its engine in one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// Name of the transport, such as `cyclonedds`.
    pub transport: String,
    /// State of the engine.
    pub state: EngineState,
    /// Reason why it was started, or why it does not run.
    pub because: String,
    /// True if its code is in memory. A library stays there once it is.
    pub is_loaded: bool,
    /// File of the library; `None` for what is part of the program.
    pub library: Option<String>,
    /// Version that the library says of itself, once it is loaded.
    pub version: Option<String>,
    /// Time since which it runs, or has been shut down, in nanoseconds since the Unix epoch.
    pub since_wall_ns: Option<i64>,
    /// Number of times that it has started.
    pub starts: u64,
    /// Writers, readers and others that need it now.
    pub users: u64,
    /// Names of its threads: those that are still there of what began while it started, and while its first
    /// writer and its first reader were opened.
    pub threads: Vec<String>,
    /// Bytes by which the resident memory of the process grew over the same steps. What it takes or gives back later,
    /// such as for samples, is not in it.
    pub resident_bytes: Option<i64>,
    /// True if another engine took such a step at the same time, so that what both took stands at each.
    pub is_shared: bool,
    /// Seconds that it stays when nothing needs it; `None` for always, or where there is no engine.
    pub idle_seconds: Option<f64>,
}

/// State of a transport's engine in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineState {
    /// Part of tsuji, with no engine to start.
    #[default]
    BuiltIn,
    /// The engine runs.
    Running,
    /// The engine has not been needed.
    NotStarted,
    /// A socket listens for others in the engine's place.
    ListenedTo,
    /// The engine has run, and nothing needed it any more.
    ShutDown,
    /// The transport need not be there, and is not.
    NotInstalled,
    /// This process does without it, since the process is secured and the transport is not.
    LeftOut,
    /// The transport does not work.
    Failed,
}

impl EngineState {
    /// Returns true if the transport can carry samples now, with its engine or without one.
    pub fn is_at_work(self) -> bool {
        matches!(self, Self::BuiltIn | Self::Running)
    }
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
            Self::LeftOut => "left out",
            Self::Failed => "does not work",
        })
    }
}
