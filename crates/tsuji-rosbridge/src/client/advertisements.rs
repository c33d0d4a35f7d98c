use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use crate::operation::{Advertise, Id, Unadvertise};
use crate::qos::QosRequest;
use crate::refusal::Refusal;

/// The topics that a client publishes.
#[derive(Debug)]
pub struct Advertisements {
    topics: HashMap<String, Advertisement>,
    leaving: BTreeSet<(Duration, String)>,
    /// How many advertisements there are of all topics.
    ids: usize,
    names_max: usize,
    ids_max: usize,
    unregister_timeout: Duration,
}

/// A topic that a client publishes.
#[derive(Debug)]
pub struct Advertisement {
    /// As the client wrote it first.
    pub ty: String,
    /// Whether late subscribers get the last sample.
    pub latch: bool,
    /// How many samples wait to be sent.
    pub queue_size: u32,
    /// What was asked of the quality of service.
    pub qos: Option<QosRequest>,
    ids: HashSet<Option<Id<'static>>>,
    ends: Option<Duration>,
}

/// What became of an `advertise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advertised {
    /// Open a publisher.
    Opened,
    /// The publisher is there. Latch, queue size and QoS stay as they were when it was opened.
    Joined,
}

/// What became of an `unadvertise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unadvertised {
    /// The client had not advertised it, or not with that id.
    Unknown,
    /// Other advertisements of the topic are left.
    Remains,
    /// None is left. The publisher goes when [`Advertisements::expire`] says so, unless the client advertises again.
    Leaving {
        /// When.
        at: Duration,
    },
}

impl Advertisements {
    pub(super) fn new(names_max: usize, ids_max: usize, unregister_timeout: Duration) -> Self {
        let (topics, leaving) = (HashMap::new(), BTreeSet::new());
        Self { topics, leaving, ids: 0, names_max, ids_max, unregister_timeout }
    }

    /// Notes an advertisement. Another type than the client gave before is refused; spell it alike, as ROS 2 does, before.
    pub fn advertise(&mut self, asked: &Advertise<'_>) -> Result<Advertised, Refusal> {
        let refuse = |field, found: String, expected: String| {
            Err(Refusal::new("advertise", asked.id.as_ref(), Some(field), found, expected))
        };
        let ids_allowed = format!("at most {} advertisements", self.ids_max);
        let id = asked.id.clone().map(Id::into_owned);
        if let Some(there) = self.topics.get_mut(&*asked.topic) {
            if there.ty != asked.ty {
                let expected = format!("{}, as {} was advertised before", there.ty, asked.topic);
                return refuse("type", asked.ty.clone().into_owned(), expected);
            }
            if self.ids >= self.ids_max && !there.ids.contains(&id) {
                return refuse("id", "one more".to_owned(), ids_allowed);
            }
            self.ids += usize::from(there.ids.insert(id));
            if let Some(at) = there.ends.take() {
                self.leaving.remove(&(at, asked.topic.clone().into_owned()));
            }
            return Ok(Advertised::Joined);
        }
        if self.topics.len() >= self.names_max {
            let expected = format!("at most {} topics", self.names_max);
            return refuse("topic", "one more".to_owned(), expected);
        }
        if self.ids >= self.ids_max {
            return refuse("id", "one more".to_owned(), ids_allowed);
        }
        self.ids += 1;
        let advertisement = Advertisement {
            ty: asked.ty.clone().into_owned(),
            latch: asked.latch,
            queue_size: asked.queue_size,
            qos: asked.qos.as_deref().copied(),
            ids: HashSet::from([id]),
            ends: None,
        };
        self.topics.insert(asked.topic.clone().into_owned(), advertisement);
        Ok(Advertised::Opened)
    }

    /// Takes an advertisement back, or without an id all of the topic.
    pub fn unadvertise(&mut self, now: Duration, asked: &Unadvertise<'_>) -> Unadvertised {
        let Some(there) = self.topics.get_mut(&*asked.topic) else { return Unadvertised::Unknown };
        if there.ends.is_some() {
            return Unadvertised::Unknown;
        }
        match asked.id.clone().map(Id::into_owned) {
            None => {
                self.ids -= there.ids.len();
                there.ids.clear();
            }
            id => {
                if !there.ids.remove(&id) {
                    return Unadvertised::Unknown;
                }
                self.ids -= 1;
            }
        }
        if !there.ids.is_empty() {
            return Unadvertised::Remains;
        }
        let at = now.saturating_add(self.unregister_timeout);
        there.ends = Some(at);
        self.leaving.insert((at, asked.topic.clone().into_owned()));
        Unadvertised::Leaving { at }
    }

    /// Takes an advertisement back at once, whose publisher could not be opened.
    pub fn forget(&mut self, topic: &str) {
        if let Some(there) = self.topics.remove(topic)
            && let Some(at) = there.ends
        {
            self.leaving.remove(&(at, topic.to_owned()));
        }
    }

    /// The topics whose publishers are to go now.
    pub fn expire(&mut self, now: Duration) -> Vec<String> {
        let mut gone = Vec::new();
        while let Some((at, _)) = self.leaving.first()
            && *at <= now
        {
            let Some((_, topic)) = self.leaving.pop_first() else { break };
            self.topics.remove(&topic);
            gone.push(topic);
        }
        gone
    }

    /// When to call [`Self::expire`].
    pub fn timeout(&self) -> Option<Duration> {
        self.leaving.first().map(|(at, _)| *at)
    }

    /// What the client said of a topic, also while it is leaving.
    pub fn topic(&self, topic: &str) -> Option<&Advertisement> {
        self.topics.get(topic)
    }

    /// Every topic, for when the client has gone; leaving ones as well.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.topics.keys().map(String::as_str)
    }
}
