//! ROS 1 beside tsuji: nodes and nodelets of another program, under a master of their own.

use std::env;

use crate::crew::{Child, Program, Stage, Stop};

/// ROS 1 on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Ros1 {
    /// Its nodes, in `peers/ros1`.
    nodes: Program,
}

impl Ros1 {
    /// Looks for the nodes beside `own`, and for a master. An error says what is missing and what brings it.
    pub(crate) fn find(own: &Program) -> Result<Self, String> {
        let nodes = own.peer(NODES).ok_or_else(|| {
            format!(
                "not built: {NODES} is neither beside the laboratory nor in the folders of {}; scripts/ros1 builds it",
                Program::PEERS
            )
        })?;
        let path = env::var_os("PATH").unwrap_or_default();
        if !env::split_paths(&path).any(|it| it.join(MASTER).is_file()) {
            return Err(format!(
                "not installed: {MASTER} is not on PATH; apt-get install python3-rosmaster, or source a ROS 1"
            ));
        }
        Ok(Self { nodes })
    }

    /// Starts a master on a free port of loopback, for nodes that are started with `words` before their own.
    pub(crate) fn room(&self, stage: &Stage, words: &[&str]) -> Result<Room, Stop> {
        let nodes = of_this_run(self.nodes.clone(), stage);
        let mut master = Child::start_with(&stage.with_program(nodes.clone()), ["--master", "{}"])?;
        let uri = master.answer()?["uri"].as_str().unwrap_or_default().to_owned();
        let nodes = nodes.with_words(words).with_variable(MASTER_URI, &uri);
        Ok(Room { stage: stage.with_program(nodes), uri, _master: master })
    }
}

/// The same where its children are reached on this host, and what they write goes with the run.
fn of_this_run(program: Program, stage: &Stage) -> Program {
    let folder = stage.folder().join("ros1");
    let program = program.with_variable("ROS_IP", "127.0.0.1");
    program.with_variable("ROS_HOME", &folder).with_variable("ROS_LOG_DIR", &folder)
}

/// The program of the nodes.
const NODES: &str = "tsuji-lab-ros1";

/// What nodes find each other by.
const MASTER: &str = "rosmaster";

/// The variable that says where that is.
const MASTER_URI: &str = "ROS_MASTER_URI";

/// A master of ROS 1, which ends with this.
#[derive(Debug)]
pub(crate) struct Room {
    /// Its children are nodes of that master.
    pub(crate) stage: Stage,
    uri: String,
    _master: Child,
}

impl Room {
    /// The same where its children are nodes of that master too.
    pub(crate) fn with(&self, program: Program) -> Program {
        of_this_run(program, &self.stage).with_variable(MASTER_URI, &self.uri)
    }
}
