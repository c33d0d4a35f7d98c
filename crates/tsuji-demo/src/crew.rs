//! The robot's processes as the operator has them: started, asked, ended by their own ids.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::Result;
use crate::robot::{COUNT, Role};
use crate::tally::Count;

/// All processes of the robot. Those that still run when this is dropped are killed.
#[derive(Debug)]
pub(crate) struct Crew {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    role: Role,
    child: Child,
    /// Closed, it ends the process.
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Crew {
    /// Starts all, to meet below `runtime_dir`.
    pub(crate) fn start(runtime_dir: &Path) -> Result<Self> {
        let mut crew = Self { members: Vec::new() };
        for role in Role::ALL {
            crew.members.push(Member::start(role, runtime_dir)?);
        }
        Ok(crew)
    }

    /// Says a line to all.
    pub(crate) fn tell(&mut self, order: &str) {
        for member in &mut self.members {
            member.tell(order);
        }
    }

    /// What all have counted. Those that do not answer are left out.
    pub(crate) fn counts(&mut self) -> Vec<Count> {
        self.tell(COUNT);
        let counts = |member: &Member| -> Option<Vec<Count>> {
            serde_json::from_str(&member.answers.recv_timeout(ANSWER_MAX).ok()?).ok()
        };
        self.members.iter().filter_map(counts).flatten().collect()
    }

    /// Those that have ended without being told to.
    pub(crate) fn dead(&mut self) -> Vec<String> {
        self.members.iter_mut().filter_map(Member::dead).collect()
    }

    /// Ends all, and answers what did not end as it should.
    pub(crate) fn end(&mut self) -> Vec<String> {
        for member in &mut self.members {
            member.orders = None;
        }
        let give_up = Instant::now() + END_MAX;
        self.members.iter_mut().filter_map(|member| member.wait(give_up)).collect()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            // Fails for one that has ended, which is what is wanted.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

impl Member {
    fn start(role: Role, runtime_dir: &Path) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--role", role.name()])
            .env("TSUJI_RUNTIME_DIR", runtime_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the operator, who ends the others when all is counted.
            .process_group(0)
            .spawn()?;
        let orders = child.stdin.take();
        let (sender, answers) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Self { role, child, orders, answers })
    }

    fn tell(&mut self, order: &str) {
        if let Some(orders) = &mut self.orders {
            // One that has ended is noticed by its exit code.
            let _ = writeln!(orders, "{order}");
        }
    }

    fn dead(&mut self) -> Option<String> {
        let ended = self.child.try_wait().ok()??;
        Some(format!("the {} process ({}) died: {ended}", self.role.name(), self.child.id()))
    }

    fn wait(&mut self, give_up: Instant) -> Option<String> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return None,
                Ok(Some(_)) => return self.dead(),
                Ok(None) if Instant::now() < give_up => std::thread::sleep(LOOK_AGAIN),
                Ok(None) => break,
                Err(error) => return Some(error.to_string()),
            }
        }
        Some(format!("the {} process ({}) did not end", self.role.name(), self.child.id()))
    }
}

const ANSWER_MAX: Duration = Duration::from_secs(5);
const END_MAX: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
