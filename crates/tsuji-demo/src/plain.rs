//! A foreign ROS 2 node that nobody here wrote, beside the robot's own: one of ros2-client, which hears
//! the commands over DDS and knows nothing of tsuji.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Result;
use crate::robot::{COMMANDS, COMMANDS_KEPT, PLAIN};
use crate::tally::Count;

/// The node's process. It is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct ForeignNode {
    child: Child,
    /// Closed, it ends the process.
    input: Option<ChildStdin>,
    heard: Arc<AtomicU64>,
    reader: Option<JoinHandle<()>>,
}

impl ForeignNode {
    /// Starts `program`, which is that of `peers/ros2-client`.
    pub(crate) fn start(program: &Path, domain: u32) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["listen", COMMANDS, "--type", "geometry_msgs/Twist", "--node", PLAIN])
            .args(["--depth", &COMMANDS_KEPT.to_string(), "--domain", &domain.to_string()])
            .args(["--address", "127.0.0.1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What its library says of the network at its end means nothing here.
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let input = child.stdin.take();
        let heard = Arc::new(AtomicU64::new(0));
        let reader = child.stdout.take().map(|stdout| {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
                    heard.fetch_add(u64::from(line.starts_with("received ")), Ordering::Relaxed);
                }
            })
        });
        Ok(Self { child, input, heard, reader })
    }

    /// What it has heard so far.
    pub(crate) fn count(&self) -> Count {
        Count {
            topic: COMMANDS.to_owned(),
            node: PLAIN.to_owned(),
            is_sender: false,
            samples: self.heard.load(Ordering::Relaxed),
            wrong: 0,
            trouble: None,
            ages: None,
        }
    }

    /// What is wrong if it has ended without being told to.
    pub(crate) fn dead(&mut self) -> Option<String> {
        let ended = self.child.try_wait().ok()??;
        Some(format!("the foreign node ({}) died: {ended}", self.child.id()))
    }
}

impl Drop for ForeignNode {
    fn drop(&mut self) {
        self.input = None;
        let give_up = Instant::now() + END_MAX;
        while matches!(self.child.try_wait(), Ok(None)) {
            if give_up <= Instant::now() {
                // Fails for one that has ended, which is what is wanted.
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

const END_MAX: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
