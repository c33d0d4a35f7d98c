//! What is said between processes of different robots, and of one.

use std::os::fd::OwnedFd;

use tsuji_transport::deferred::told;

use super::Keeper;
use super::protocol::{Control, Hello};
use crate::graph_cache::GraphCache;

impl Keeper {
    /// Does what the other end says, unless it is about a topic that is no concern of this process.
    pub(super) fn handle_message(
        &self,
        graph_cache: &mut GraphCache,
        key: u64,
        control: Control,
        fds: Vec<OwnedFd>,
    ) {
        let question = match &control {
            Control::Pin { question, .. } => *question,
            _ => 0,
        };
        let (channels, outward) = (&graph_cache.channels, self.session.outward());
        // Of one robot whose name begins as that of another all names would look like names of both.
        let is_meant = |it: &Control| {
            !channels.is_of_other_robot(key)
                || it.topic().is_none_or(|topic| outward.is_shared(topic))
        };
        let control = control.inward(outward);
        match control.filter(|it| is_meant(it) && !channels.is_withheld(key, it)) {
            Some(control) => self.obey(graph_cache, key, control, fds),
            None if question != 0 => {
                graph_cache.channels.send_by(key, &Control::Pinned { question, outcome: Ok(0) });
            }
            None => {}
        }
    }

    /// Warns once where a process of the same robot has other rules of what leaves it.
    pub(super) fn compare_rules(&self, hello: &Hello) {
        let own = self.session.outward();
        let Some(robot) = own.robot().filter(|it| Some(it.name()) == hello.robot.as_deref()) else {
            return;
        };
        if own.rules() != hello.rules && !self.session.has_told_of_rules() {
            told::warn!(
                robot = robot.name(),
                other = %format!("{} {}", hello.program, hello.pid),
                theirs = %hello.rules,
                own = %own.rules(),
                "another process of this robot shares or exports other topics, and these do not meet; give both one policy"
            );
        }
    }
}
