//! What is still to be said to one process.
//!
//! A process that is stopped, or slow, is not given up: it lives, and what it holds must stay as
//! it is. What waits for it is kept to what is true now, so it grows with what is there and not
//! with what came and went.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::{Discriminant, discriminant};
use std::os::fd::OwnedFd;

use crate::control::protocol::{Control, Flow};
use crate::control::watching::WatchWord;

/// Messages in the order they were said.
#[derive(Default)]
pub(crate) struct Outbox {
    messages: VecDeque<FlowMessage>,
    /// How many are enough to look for those that are out of date.
    full: usize,
}

pub(crate) struct FlowMessage {
    pub(crate) frame: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
    about: Option<(Subject, Part)>,
}

/// What a message speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    Node([u8; 16]),
    Endpoint([u8; 16]),
    Flow(Flow),
    /// What was displaced of a flow.
    Displaced(Flow),
    /// The content filter of a flow.
    Filter(Flow),
    Liveliness([u8; 16]),
    /// What the user has set for a topic, by the hash of its name.
    Pin(u64),
    Question,
    EngineQuestion,
    /// A word about watching, by its kind and the hash of the file's path.
    Watch(Discriminant<WatchWord>, u64),
}

/// Which part of the story of its subject a message is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Beginning,
    Middle,
    End,
    /// All there is to know: what was said before does not matter any more.
    Whole,
}

impl Outbox {
    pub(crate) fn push(&mut self, control: &Control, frame: Vec<u8>, fds: Vec<OwnedFd>) {
        self.messages.push_back(FlowMessage { frame, fds, about: about(control) });
        if self.full.max(FULL_MIN) < self.messages.len() {
            self.drop_old_news();
            self.full = 2 * self.messages.len();
        }
    }

    pub(crate) fn first(&self) -> Option<&FlowMessage> {
        self.messages.front()
    }

    pub(crate) fn remove_first(&mut self) {
        self.messages.pop_front();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.messages.clear();
    }

    /// Drops what is not true any more, and the whole story of what has come and gone meanwhile.
    fn drop_old_news(&mut self) {
        let mut is_old = vec![false; self.messages.len()];
        let mut told: HashMap<Subject, Vec<usize>> = HashMap::new();
        for (at, message) in self.messages.iter().enumerate() {
            let Some((subject, part)) = message.about else { continue };
            let before = told.entry(subject).or_default();
            match part {
                Part::Beginning | Part::Middle => before.push(at),
                Part::Whole => {
                    before.drain(..).for_each(|it| is_old[it] = true);
                    before.push(at);
                }
                Part::End => {
                    let first = before.first().and_then(|it| self.messages[*it].about);
                    is_old[at] = first.is_some_and(|(_, part)| part == Part::Beginning);
                    before.drain(..).for_each(|it| is_old[it] = true);
                    if let Subject::Endpoint(gid) = subject {
                        let signs = told.remove(&Subject::Liveliness(gid)).unwrap_or_default();
                        signs.into_iter().for_each(|it| is_old[it] = true);
                    }
                }
            }
        }
        let mut is_old = is_old.into_iter();
        self.messages.retain(|_| !is_old.next().unwrap_or_default());
    }
}

fn hash(name: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

fn about(control: &Control) -> Option<(Subject, Part)> {
    match control {
        Control::Node(record) => Some((Subject::Node(record.gid), Part::Beginning)),
        Control::NodeGone(gid) => Some((Subject::Node(*gid), Part::End)),
        Control::Endpoint(record) => Some((Subject::Endpoint(record.gid), Part::Beginning)),
        Control::EndpointGone(gid) => Some((Subject::Endpoint(*gid), Part::End)),
        Control::Offer { flow, is_first: true, .. } => {
            Some((Subject::Flow(*flow), Part::Beginning))
        }
        Control::Offer { flow, .. }
        | Control::Cut { flow, .. }
        | Control::Withdrawn { flow, .. } => Some((Subject::Flow(*flow), Part::Middle)),
        Control::Pin { topic, .. } => Some((Subject::Pin(hash(topic)), Part::Whole)),
        Control::Displaced { flow, .. } => Some((Subject::Displaced(*flow), Part::Whole)),
        Control::Filter { flow, .. } => Some((Subject::Filter(*flow), Part::Whole)),
        Control::Done { .. } | Control::Shown { .. } | Control::Pinned { .. } => None,
        Control::Closed { flow, .. } => Some((Subject::Flow(*flow), Part::End)),
        Control::Alive(gid) => Some((Subject::Liveliness(*gid), Part::Whole)),
        // Whoever asks again does not wait for the answer to what it asked before.
        Control::AskRoutes { .. } => Some((Subject::Question, Part::Whole)),
        Control::AskEngines { .. } => Some((Subject::EngineQuestion, Part::Whole)),
        // Each is an occasion to look, and of several that wait one is enough: a file may be written to all the time.
        Control::Watch(word) => {
            let subject = Subject::Watch(discriminant(word), hash(word.path()));
            Some((subject, Part::Whole))
        }
        // What a transport says nobody else can judge. The rest is said once, or as an answer to what
        // the other end said.
        Control::OfTransport { .. } => None,
        Control::Claim(_)
        | Control::ClaimPart(_)
        | Control::Proof(_)
        | Control::Refused(_)
        | Control::Hello(_)
        | Control::Met(_)
        | Control::Parking(_)
        | Control::Settled
        | Control::Answer { .. }
        | Control::Engines { .. }
        | Control::Route { .. } => None,
    }
}

/// Fewer messages are not looked through.
const FULL_MIN: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(number: usize) -> [u8; 16] {
        (number as u128).to_le_bytes()
    }

    fn push(outbox: &mut Outbox, control: &Control) {
        outbox.push(control, Vec::new(), Vec::new());
    }

    #[test]
    fn what_came_and_went_is_not_told() {
        let mut outbox = Outbox::default();
        push(&mut outbox, &Control::NodeGone(gid(0)));
        for number in 1..100_000 {
            let flow = Flow { publisher: gid(number), subscription: gid(1) };
            push(
                &mut outbox,
                &Control::Offer { flow, epoch: 1, is_first: true, transport: "shm".into() },
            );
            push(&mut outbox, &Control::Cut { flow, epoch: 1, ends: None, first: 1 });
            push(&mut outbox, &Control::Alive(gid(7)));
            push(&mut outbox, &Control::Closed { flow, epoch: 1 });
            assert!(outbox.messages.len() <= FULL_MIN);
        }
        outbox.drop_old_news();
        let left: Vec<_> = outbox.messages.iter().map(|it| it.about).collect();
        let gone = (Subject::Node(gid(0)), Part::End);
        assert!(left[0] == Some(gone), "what was told before has to be taken back");
        assert!(left[1..] == [Some((Subject::Liveliness(gid(7)), Part::Whole))]);
    }

    #[test]
    fn of_a_file_that_is_written_all_the_time_little_waits() {
        let mut outbox = Outbox::default();
        let changed = |path: &str| Control::Watch(WatchWord::Changed { path: path.into() });
        push(&mut outbox, &Control::Watch(WatchWord::Watcher));
        for _ in 0..100_000 {
            push(&mut outbox, &changed("/a"));
            push(&mut outbox, &changed("/b"));
            push(&mut outbox, &Control::Watch(WatchWord::SocketGone));
            assert!(outbox.messages.len() <= FULL_MIN);
        }
        push(&mut outbox, &Control::Watch(WatchWord::Refused { path: "/a".into() }));
        outbox.drop_old_news();
        assert_eq!(outbox.messages.len(), 5, "the last of each kind and file");
    }

    #[test]
    fn what_is_there_is_told_whole_and_in_order() {
        let mut outbox = Outbox::default();
        for number in 0..5 * FULL_MIN {
            let flow = Flow { publisher: gid(number), subscription: gid(1) };
            push(&mut outbox, &Control::Closed { flow, epoch: 1 });
            push(
                &mut outbox,
                &Control::Offer { flow, epoch: 2, is_first: true, transport: "shm".into() },
            );
            push(&mut outbox, &Control::Settled);
        }
        assert_eq!(outbox.messages.len(), 15 * FULL_MIN);
    }
}
