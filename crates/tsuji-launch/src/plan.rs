use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a launch file asks for, with nothing left open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order of the file, which is that of their start.
    pub processes: Vec<Process>,
    /// What is to be loaded into containers, in the order of the file.
    pub components: Vec<Component>,
    /// What the file has to say, in its order, before the first process is started.
    pub messages: Vec<(String, Place)>,
}

/// One process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// The name of the executable and the number of the process, as in `talker-1`.
    pub label: String,
    /// The program, by a path, and its arguments.
    pub argv: Vec<String>,
    /// How the environment differs from that of the launch: values, and `None` for what is taken away.
    pub env: BTreeMap<String, Option<String>>,
    /// The working directory; that of the launch if not said.
    pub cwd: Option<PathBuf>,
    /// Where its output goes.
    pub output: Output,
    /// Whether it is started again when it ends.
    pub respawn: Option<Respawn>,
    /// Its end is that of the launch.
    pub shuts_down: bool,
    /// How long it may take to end.
    pub patience: Patience,
    /// The full name that the file gives to its node, if it gives one.
    pub node: Option<String>,
    /// The parameters among its arguments, for whoever checks their values.
    pub parameters: Vec<ParameterSource>,
    /// Where the file asks for it.
    pub place: Place,
}

/// A node that a container is asked to load.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// The full name of the container.
    pub container: String,
    /// Its package.
    pub package: String,
    /// The class of the package's library.
    pub plugin: String,
    /// The node's name; the component's own if it is empty.
    pub name: String,
    /// The node's namespace, empty or beginning with a slash.
    pub namespace: String,
    /// Remappings, each `FROM:=TO`.
    pub remappings: Vec<String>,
    /// Its parameters.
    pub parameters: Vec<ParameterSource>,
    /// Arguments of the container for it, each `NAME:=VALUE`.
    pub extra: Vec<(String, Place)>,
    /// Where the file asks for it.
    pub place: Place,
}

/// Where parameters come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterSource {
    /// `NAME:=VALUE`, whose value is YAML.
    Assign(String, Place),
    /// A file of parameters.
    File(PathBuf, Place),
}

/// Where the output of a process goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// To the terminal.
    Screen,
    /// To a file, and what it says on standard error to the terminal as well.
    #[default]
    Log,
    /// To both.
    Both,
}

impl Output {
    /// The words of a launch file.
    pub const WORDS: &[&str] = &["screen", "log", "both"];

    /// Whether a stream goes to the terminal.
    pub fn is_shown(self, is_standard_error: bool) -> bool {
        is_standard_error || self != Self::Log
    }

    /// Whether a stream goes to a file.
    pub fn is_kept(self) -> bool {
        self != Self::Screen
    }
}

/// How a process is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Respawn {
    /// From its end to its next start.
    pub delay: Duration,
    /// How often; any number of times if not said.
    pub retries_max: Option<u32>,
}

/// How long a process may take to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From SIGINT to SIGTERM.
    pub until_terminate: Duration,
    /// From SIGTERM to SIGKILL.
    pub until_kill: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { until_terminate: Duration::from_secs(5), until_kill: Duration::from_secs(5) }
    }
}

/// An argument that a file declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it is if it is not given, as it is written; `None` where it must be given.
    pub default: Option<String>,
    /// What it is for.
    pub description: String,
    /// What it may be; anything if empty.
    pub choices: Vec<String>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as messages name it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
