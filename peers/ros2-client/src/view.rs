//! What this participant knows of the others, as RustDDS tells it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ros2_client::dds::rustdds::policy::{Durability, Reliability};
use ros2_client::dds::rustdds::{
    DomainParticipantStatusEvent as Event, EndpointDescription, GUID, QosPolicies,
};
use serde_json::{Value, json};

/// More than RustDDS has in store at a time.
const NEWS_MAX: usize = 4096;

/// Remote endpoints, and which of them are matched with one of ours.
///
/// ros2-client's own account of matches, in its `Spinner`, tells of them through a channel of 8 events and drops what
/// does not fit; so this program reads the events of RustDDS itself and runs no `Spinner`.
#[derive(Default)]
pub(crate) struct View {
    own_participant: Option<GUID>,
    participants: BTreeSet<[u8; 12]>,
    readers: BTreeMap<GUID, EndpointDescription>,
    writers: BTreeMap<GUID, EndpointDescription>,
    matched: BTreeSet<GUID>,
    /// Whose QoS does not fit ours, as long as they are there.
    unfit: BTreeSet<GUID>,
    /// What came since it was last taken. Only `graph` takes it; the oldest goes when there are too many.
    news: VecDeque<Value>,
}

impl View {
    pub(crate) fn new(own_participant: GUID) -> Self {
        Self { own_participant: Some(own_participant), ..Self::default() }
    }

    pub(crate) fn apply(&mut self, event: Event) {
        match event {
            Event::ParticipantDiscovered { dpd: it }
                if self.is_foreign(it.guid) && self.participants.insert(prefix(it.guid)) =>
            {
                self.tell(json!({
                    "participant": hex(&it.guid.to_bytes()),
                    "vendor": hex(&it.vendor_id.as_bytes()),
                    "name": it.entity_name,
                }));
            }
            Event::ParticipantLost { id, reason } => {
                let stays = |guid: &GUID| guid.prefix != id;
                self.readers.retain(|guid, _| stays(guid));
                self.writers.retain(|guid, _| stays(guid));
                self.matched.retain(stays);
                self.unfit.retain(stays);
                let gone = prefix(GUID { prefix: id, ..GUID::GUID_UNKNOWN });
                if self.participants.remove(&gone) {
                    self.tell(json!({ "gone": hex(&gone), "because": format!("{reason:?}") }));
                }
            }
            Event::ReaderDetected { reader: it } if self.is_foreign(it.guid) => {
                let news = endpoint("reader", &it);
                if self.readers.insert(it.guid, it).is_none() {
                    self.tell(news);
                }
            }
            Event::WriterDetected { writer: it } if self.is_foreign(it.guid) => {
                let news = endpoint("writer", &it);
                if self.writers.insert(it.guid, it).is_none() {
                    self.tell(news);
                }
            }
            Event::RemoteReaderMatched { remote_reader: guid, .. }
            | Event::RemoteWriterMatched { remote_writer: guid, .. }
                if self.is_foreign(guid) =>
            {
                self.matched.insert(guid);
            }
            Event::ReaderLost { guid, .. } | Event::WriterLost { guid, .. } => {
                self.matched.remove(&guid);
                self.unfit.remove(&guid);
                let reader = self.readers.remove(&guid).is_some();
                let writer = self.writers.remove(&guid).is_some();
                if reader || writer {
                    self.tell(json!({ "gone": hex(&guid.to_bytes()) }));
                }
            }
            // RustDDS says it again with every announcement.
            Event::RemoteReaderQosIncompatible {
                remote_reader: guid,
                requested_qos,
                offered_qos,
                ..
            }
            | Event::RemoteWriterQosIncompatible {
                remote_writer: guid,
                requested_qos,
                offered_qos,
                ..
            } if self.unfit.insert(guid) => {
                let guid = hex(&guid.to_bytes());
                let (asked, offered) = (words(&requested_qos), words(&offered_qos));
                log::error!("{guid} does not fit: asked is {asked}, offered is {offered}");
                self.tell(json!({ "unfit": guid, "asked": asked, "offered": offered }));
            }
            _ => (),
        }
    }

    /// Foreign readers of the topic, by its name on DDS, that are matched with our writer of it.
    pub(crate) fn readers_matched(&self, topic: &str) -> usize {
        self.readers_matched_of(topic, |_| true)
    }

    /// Those of the participants whose GUIDs begin as said.
    pub(crate) fn readers_matched_of(
        &self,
        topic: &str,
        whose: impl Fn(&[u8; 16]) -> bool,
    ) -> usize {
        let matched = self.readers.values().filter(|it| self.matched.contains(&it.guid));
        matched.filter(|it| it.topic_name == topic && whose(&it.guid.to_bytes())).count()
    }

    /// Foreign writers of the topic, by its name on DDS, that are matched with our reader of it.
    pub(crate) fn writers_matched(&self, topic: &str) -> usize {
        let matched = self.writers.values().filter(|it| self.matched.contains(&it.guid));
        matched.filter(|it| it.topic_name == topic).count()
    }

    /// Whether anybody else has an endpoint on the topic, by its name on DDS.
    pub(crate) fn knows_topic(&self, topic: &str) -> bool {
        self.readers.values().chain(self.writers.values()).any(|it| it.topic_name == topic)
    }

    /// Whether a participant is there whose GUIDs begin with these bytes.
    pub(crate) fn knows_participant(&self, begins: &[u8]) -> bool {
        self.participants.iter().any(|it| it.starts_with(begins))
    }

    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    pub(crate) fn take_news(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.news).into()
    }

    fn tell(&mut self, news: Value) {
        if self.news.len() == NEWS_MAX {
            self.news.pop_front();
        }
        self.news.push_back(news);
    }

    /// A participant of RustDDS discovers itself, too.
    fn is_foreign(&self, guid: GUID) -> bool {
        self.own_participant.is_none_or(|own| own.prefix != guid.prefix)
    }
}

fn prefix(guid: GUID) -> [u8; 12] {
    std::array::from_fn(|at| guid.to_bytes()[at])
}

fn endpoint(kind: &str, it: &EndpointDescription) -> Value {
    json!({
        kind: it.topic_name,
        "type": it.type_name,
        "guid": hex(&it.guid.to_bytes()),
        "reliability": reliability(&it.qos),
        "durability": durability(&it.qos),
        "user_data": String::from_utf8_lossy(&it.user_data),
    })
}

fn words(qos: &QosPolicies) -> String {
    let words = [reliability(qos), durability(qos)];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn reliability(qos: &QosPolicies) -> Option<&'static str> {
    qos.reliability().map(|it| match it {
        Reliability::Reliable { .. } => "reliable",
        Reliability::BestEffort => "best_effort",
    })
}

fn durability(qos: &QosPolicies) -> Option<&'static str> {
    qos.durability().map(|it| match it {
        Durability::Volatile => "volatile",
        Durability::TransientLocal => "transient_local",
        Durability::Transient => "transient",
        Durability::Persistent => "persistent",
    })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}
