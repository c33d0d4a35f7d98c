//! A foreign ROS 2 node that nobody here wrote, beside the robot's own: one of ros2-client, which hears
//! the commands over DDS and knows nothing of tsuji.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tsuji_platform::subprocess::Subprocess;

use crate::Result;
use crate::robot::{COMMANDS, COMMANDS_KEPT, FOREIGN};
use crate::tally::Count;

/// The node's process. It is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct ForeignNode {
    process: Subprocess,
    received: u64,
    is_told_dead: bool,
}

impl ForeignNode {
    /// Starts `program`, which is that of `peers/ros2-client`.
    pub(crate) fn start(program: &Path, domain: u32) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(["listen", COMMANDS, "--type", "geometry_msgs/Twist", "--node", FOREIGN])
            .args(["--depth", &COMMANDS_KEPT.to_string(), "--domain", &domain.to_string()])
            .args(["--address", "127.0.0.1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What its library says of the network at its end means nothing here.
            .stderr(Stdio::null())
            .process_group(0);
        let process = Subprocess::start(&mut command, END_MAX);
        let process = process.map_err(|error| format!("{}: {error}", program.display()))?;
        Ok(Self { process, received: 0, is_told_dead: false })
    }

    /// What it has heard so far.
    pub(crate) fn count(&mut self) -> Count {
        self.read_lines();
        Count {
            topic: COMMANDS.to_owned(),
            node: FOREIGN.to_owned(),
            samples: self.received,
            ..Count::default()
        }
    }

    /// What is wrong if it has ended without being told to, once. Asked for again and again, it also keeps what the node says short.
    pub(crate) fn dead(&mut self) -> Option<String> {
        self.read_lines();
        if self.is_told_dead {
            return None;
        }
        let ended = self.process.try_wait().ok()??;
        self.is_told_dead = true;
        Some(format!("the foreign node ({}) died: {ended}", self.process.id()))
    }

    /// Whether [`dead`](Self::dead) has told of its end.
    pub(crate) fn is_told_dead(&self) -> bool {
        self.is_told_dead
    }

    fn read_lines(&mut self) {
        while let Some(line) = self.process.output.try_next() {
            self.received += u64::from(line.starts_with("received "));
        }
    }
}

/// How long it may take to end once it is told to.
const END_MAX: Duration = Duration::from_secs(10);
