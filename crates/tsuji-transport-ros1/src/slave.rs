//! The slave API of this process: what the master and nodes of ROS 1 ask of it.
//!
//! The methods and what they answer are those of <http://wiki.ros.org/ROS/Slave_API>.

use std::process;

use tsuji_ros1::xmlrpc::{Call, Reply, Value};

use crate::registration::PUBLISHERS_MAX;
use crate::state::Shared;

impl Shared {
    /// Answers a call.
    pub(crate) fn answer(&self, call: &Call) -> Reply {
        let text = |at: usize| call.params.get(at).and_then(Value::as_str);
        match call.method.as_str() {
            "getPid" => {
                Reply::success("", Value::from(i32::try_from(process::id()).unwrap_or_default()))
            }
            "getMasterUri" => Reply::success("", Value::from(self.master.to_string())),
            "publisherUpdate" => {
                let publishers = call.params.get(2).and_then(Value::as_array);
                let (Some(topic), Some(publishers)) = (text(1), publishers) else {
                    return Reply::failure(
                        -1,
                        "publisherUpdate: allowed: caller, topic, publishers",
                    );
                };
                let publishers = publishers.iter().filter_map(Value::as_str).map(str::to_owned);
                self.note_publishers(topic, publishers.collect());
                Reply::success("", Value::from(0))
            }
            "requestTopic" => self.request_topic(text(1).unwrap_or_default(), call.params.get(2)),
            "paramUpdate" => Reply::success("", Value::from(0)),
            "shutdown" => {
                // The master says so when another node takes the name of one of this process. The process itself is
                // not the master's to end.
                let why = text(1).unwrap_or_default();
                tracing::warn!(
                    "ros1: the master ends the registrations of this process ({why}); they are made anew, \
                     under another name where somebody else has it"
                );
                self.change(|state, _| {
                    state.is_unregistered = true;
                    state.is_due = true;
                });
                Reply::success("", Value::from(0))
            }
            "getSubscriptions" => {
                Reply::success("", pairs(self.lock().readers.values().filter_map(|it| it.topic())))
            }
            "getPublications" => {
                Reply::success("", pairs(self.lock().writers.values().filter_map(|it| it.topic())))
            }
            "getBusStats" => {
                let none = || Value::from(Vec::new());
                Reply::success("", Value::from(vec![none(), none(), none()]))
            }
            "getBusInfo" => Reply::success("", self.bus_info()),
            other => Reply::Fault { code: -1, text: format!("there is no method {other:?}") },
        }
    }

    /// The master says who publishes a topic.
    pub(crate) fn note_publishers(&self, topic: &str, mut publishers: Vec<String>) {
        if PUBLISHERS_MAX < publishers.len() {
            let count = publishers.len();
            tracing::warn!(
                topic,
                count,
                "ros1: more than {PUBLISHERS_MAX} publishers; the others are not heard"
            );
            publishers.truncate(PUBLISHERS_MAX);
        }
        self.change(|state, _| {
            // One that nobody here subscribes to any more.
            if !state.readers.values().any(|it| it.topic().is_some_and(|(it, _)| it == topic)) {
                return;
            }
            state.publishers.insert(topic.to_owned(), publishers);
            state.is_due = true;
        });
    }

    fn request_topic(&self, topic: &str, protocols: Option<&Value>) -> Reply {
        let protocols = protocols.and_then(Value::as_array).unwrap_or_default();
        let is_tcp = |it: &Value| {
            let first = it.as_array().and_then(|it| it.first());
            first.and_then(Value::as_str) == Some("TCPROS")
        };
        if self.lock().writers_of(topic).is_empty() {
            return Reply::failure(0, &format!("nobody publishes {topic} here"));
        }
        if !protocols.iter().any(is_tcp) {
            return Reply::failure(0, "no protocol that is spoken here; allowed: TCPROS");
        }
        let port = Value::from(i32::from(self.port));
        let offered = vec![Value::from("TCPROS"), Value::from(self.host.as_str()), port];
        Reply::success("", Value::from(offered))
    }

    /// Connections as rosnode shows them: a number, the other end, the direction, the protocol, the topic, and whether it is up.
    fn bus_info(&self) -> Value {
        let state = self.lock();
        let out =
            state.subscribers.iter().map(|it| (it.link.key(), it.node.clone(), "o", &it.topic));
        let into = state.targets.iter().filter_map(|(target, it)| match (target, &it.progress) {
            (
                crate::state::Target::Publisher(id, api),
                crate::state::Progress::Connected(key, _),
            ) => Some((*key, api.clone(), "i", id)),
            _ => None,
        });
        let into = into.filter_map(|(key, api, direction, id)| {
            let (topic, _) = state.readers.get(id)?.topic()?;
            Some((key, api, direction, topic))
        });
        let row = |(key, other, direction, topic): (u64, String, &str, &str)| {
            let number = Value::from(i32::try_from(key).unwrap_or(i32::MAX));
            Value::from(vec![
                number,
                Value::from(other),
                Value::from(direction),
                Value::from("TCPROS"),
                Value::from(topic),
                Value::from(true),
            ])
        };
        let out = out.map(|(key, other, direction, topic)| (key, other, direction, topic.as_str()));
        Value::from(out.chain(into).map(row).collect::<Vec<_>>())
    }
}

fn pairs<'a>(
    topics: impl Iterator<Item = (&'a str, &'a std::sync::Arc<crate::types::Message>)>,
) -> Value {
    let mut all: Vec<(&str, &str)> =
        topics.map(|(topic, message)| (topic, message.ros1.name())).collect();
    all.sort_unstable();
    all.dedup();
    let pair = |(topic, ty): (&str, &str)| Value::from(vec![Value::from(topic), Value::from(ty)]);
    Value::from(all.into_iter().map(pair).collect::<Vec<_>>())
}
