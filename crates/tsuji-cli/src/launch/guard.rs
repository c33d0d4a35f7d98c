//! A process beside a launch that ends what the launch has started when it is killed itself.
//!
//! The system kills the children of a launch with it, but not what these have started. So the launch tells the guard of
//! each group by a pipe, whose end is the news of its own.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use tsuji_platform::child::{self, Signal};

/// The guard, as its launch sees it. Where it cannot be started or has died, nothing but its help is missing.
#[derive(Debug)]
pub(super) struct Guard {
    process: Option<(Child, ChildStdin)>,
}

impl Guard {
    pub(super) fn start() -> Self {
        let started = env::current_exe().and_then(|program| {
            // In a group of its own Ctrl-C does not reach it.
            let mut command = Command::new(program);
            command.args(["launch", "--guard"]).process_group(0);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        });
        let process = started.ok().and_then(|mut process| {
            let pipe = process.stdin.take()?;
            Some((process, pipe))
        });
        Self { process }
    }

    /// Its process id.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.as_ref().map(|(process, _)| process.id())
    }

    /// A group has begun.
    pub(super) fn began(&mut self, group: u32) {
        self.tell('+', group);
    }

    /// Nothing is left of a group, whose number may be another's from now on.
    pub(super) fn ended(&mut self, group: u32) {
        self.tell('-', group);
    }

    fn tell(&mut self, what: char, group: u32) {
        if let Some((_, pipe)) = &mut self.process {
            // Where it has died there is nobody to be told.
            let _ = pipe.write_all(format!("{what}{group}\n").as_bytes());
        }
    }
}

/// What the guard does: hears of groups to the end of `launch`, and kills those that are left.
pub(super) fn watch(launch: impl BufRead) {
    let mut groups = BTreeSet::new();
    for line in launch.lines().map_while(Result::ok) {
        let group = line.get(1..).and_then(|it| it.parse::<u32>().ok());
        match (line.as_bytes().first(), group) {
            (Some(b'+'), Some(group)) => {
                groups.insert(group);
            }
            (Some(b'-'), Some(group)) => {
                groups.remove(&group);
            }
            _ => {}
        }
    }
    for group in groups {
        child::tell_group(group, Signal::Kill);
    }
}
