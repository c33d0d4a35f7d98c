//! What a server says.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client::Parameter;
use crate::graph::Provided;

/// What a server can do beside sending messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Capability {
    /// Clients may publish.
    ClientPublish,
    /// They may read and set parameters.
    Parameters,
    /// They may hear when these change.
    ParametersSubscribe,
    /// It tells the time.
    Time,
    /// They may call services.
    Services,
    /// They may know who publishes, subscribes and serves.
    ConnectionGraph,
    /// They may fetch files.
    Assets,
    /// A recording is played, and they may control that.
    RangedPlayback,
}

/// A time as JSON has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub sec: u32,
    /// Nanoseconds of that second.
    pub nsec: u32,
}

impl Timestamp {
    /// Of nanoseconds since 1970.
    pub fn from_ns(ns: u64) -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        let sec = u32::try_from(ns / SECOND_NS).unwrap_or(u32::MAX);
        Self { sec, nsec: (ns % SECOND_NS) as u32 }
    }
}

/// What a server says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it can do.
    pub capabilities: &'a [Capability],
    /// How clients may write messages and requests.
    pub supported_encodings: &'a [&'a str],
    /// More that may be known of it.
    pub metadata: &'a BTreeMap<&'a str, &'a str>,
    /// The same for as long as its numbers mean the same.
    pub session_id: &'a str,
    /// When the recording begins that is played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_start_time: Option<Timestamp>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_end_time: Option<Timestamp>,
}

/// A channel of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel<'a> {
    /// Its number.
    pub id: u64,
    /// The topic.
    pub topic: &'a str,
    /// How messages are written.
    pub encoding: &'a str,
    /// The type.
    pub schema_name: &'a str,
    /// The definition.
    pub schema: &'a str,
    /// How that is written.
    pub schema_encoding: &'a str,
}

/// A service that a server offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Service<'a> {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: &'a str,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: &'a str,
    /// What is asked.
    pub request: Schema<'a>,
    /// What is answered.
    pub response: Schema<'a>,
}

/// A half of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schema<'a> {
    /// How it is written.
    pub encoding: &'a str,
    /// The type.
    pub schema_name: &'a str,
    /// The definition.
    pub schema: &'a str,
    /// How that is written.
    pub schema_encoding: &'a str,
}

/// How grave a status is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It is told.
    Info,
    /// Something is not as it was asked for.
    Warning,
    /// Something is not done.
    Error,
}

impl Serialize for Level {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// A message of a server in text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Message<'a> {
    /// What it is.
    ServerInfo(ServerInfo<'a>),
    /// Channels that have come.
    Advertise {
        /// Those.
        channels: &'a [Channel<'a>],
    },
    /// Channels that are gone.
    Unadvertise {
        /// Their numbers.
        channel_ids: &'a [u64],
    },
    /// Services that have come.
    AdvertiseServices {
        /// Those.
        services: &'a [Service<'a>],
    },
    /// Services that are gone.
    UnadvertiseServices {
        /// Their numbers.
        service_ids: &'a [u32],
    },
    /// Something that the user should know.
    Status {
        /// How grave it is.
        level: Level,
        /// What it is.
        message: &'a str,
        /// By which it can be taken back.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
    },
    /// The same is so no more.
    RemoveStatus {
        /// By which it was told.
        status_ids: &'a [String],
    },
    /// Parameters, asked for or changed.
    ParameterValues {
        /// Those.
        parameters: &'a [Parameter],
        /// By which they were asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
    },
    /// What has changed of who publishes, subscribes and serves.
    ConnectionGraphUpdate {
        /// Who publishes which topic.
        published_topics: Vec<Publishers<'a>>,
        /// Who subscribes to which topic.
        subscribed_topics: Vec<Subscribers<'a>>,
        /// Who serves which service.
        advertised_services: Vec<Providers<'a>>,
        /// Topics that nobody has any more.
        removed_topics: &'a [String],
        /// Services that nobody has any more.
        removed_services: &'a [String],
    },
    /// A call that has no response.
    ServiceCallFailure {
        /// The number of the service.
        service_id: u32,
        /// That of the call.
        call_id: u32,
        /// Why.
        message: &'a str,
    },
}

/// Who publishes a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Publishers<'a> {
    name: &'a str,
    publisher_ids: &'a [String],
}

/// Who subscribes to a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscribers<'a> {
    name: &'a str,
    subscriber_ids: &'a [String],
}

/// Who serves a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Providers<'a> {
    name: &'a str,
    provider_ids: &'a [String],
}

impl<'a> Message<'a> {
    /// What has changed of who publishes, subscribes and serves.
    pub fn graph(update: &'a crate::GraphUpdate) -> Self {
        let each = |all: &'a [Provided]| all.iter().map(|it| (&*it.name, &*it.by));
        Self::ConnectionGraphUpdate {
            published_topics: each(&update.published)
                .map(|(name, publisher_ids)| Publishers { name, publisher_ids })
                .collect(),
            subscribed_topics: each(&update.subscribed)
                .map(|(name, subscriber_ids)| Subscribers { name, subscriber_ids })
                .collect(),
            advertised_services: each(&update.served)
                .map(|(name, provider_ids)| Providers { name, provider_ids })
                .collect(),
            removed_topics: &update.removed_topics,
            removed_services: &update.removed_services,
        }
    }
}

/// A message as it is sent.
pub fn text(message: &Message<'_>) -> String {
    // Plain data, which can always be written.
    serde_json::to_string(message).unwrap_or_default()
}

/// Bytes before the data of a message.
pub const MESSAGE_HEAD_BYTES: usize = 13;

/// Appends what stands before the data of a message: of this subscription, at this time in nanoseconds since 1970.
pub fn write_message_head(out: &mut Vec<u8>, subscription: u32, time_ns: u64) {
    out.push(1);
    out.extend(subscription.to_le_bytes());
    out.extend(time_ns.to_le_bytes());
}

/// Appends the time, in nanoseconds since 1970 or since the simulation began.
pub fn write_time(out: &mut Vec<u8>, time_ns: u64) {
    out.push(2);
    out.extend(time_ns.to_le_bytes());
}

/// Appends what a service has answered.
pub fn write_response(out: &mut Vec<u8>, service: u32, call: u32, encoding: &str, data: &[u8]) {
    out.push(3);
    out.extend(service.to_le_bytes());
    out.extend(call.to_le_bytes());
    out.extend((encoding.len() as u32).to_le_bytes());
    out.extend_from_slice(encoding.as_bytes());
    out.extend_from_slice(data);
}

/// Appends a file that was asked for.
pub fn write_asset(out: &mut Vec<u8>, request: u32, data: &[u8]) {
    out.push(4);
    out.extend(request.to_le_bytes());
    out.push(0);
    out.extend(0u32.to_le_bytes());
    out.extend_from_slice(data);
}

/// Appends why there is no such file.
pub fn write_no_asset(out: &mut Vec<u8>, request: u32, why: &str) {
    out.push(4);
    out.extend(request.to_le_bytes());
    out.push(1);
    out.extend((why.len() as u32).to_le_bytes());
    out.extend_from_slice(why.as_bytes());
}

/// What becomes of a recording that is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaybackStatus {
    /// It is played.
    Playing = 0,
    /// It is paused.
    Paused = 1,
    /// It is not played yet.
    Buffering = 2,
    /// All of it was played.
    Ended = 3,
}

/// How far a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaybackState<'a> {
    /// What becomes of it.
    pub status: PlaybackStatus,
    /// Where it is, in nanoseconds since 1970.
    pub time_ns: u64,
    /// How many times as fast as it was recorded.
    pub rate: f32,
    /// Whether it has gone to another time.
    pub did_seek: bool,
    /// By which that was asked for; empty where it was not.
    pub request: &'a str,
}

/// Appends how far a recording is played.
pub fn write_playback(out: &mut Vec<u8>, state: &PlaybackState<'_>) {
    out.push(5);
    out.push(state.status as u8);
    out.extend(state.time_ns.to_le_bytes());
    out.extend(state.rate.to_le_bytes());
    out.push(state.did_seek.into());
    out.extend((state.request.len() as u32).to_le_bytes());
    out.extend_from_slice(state.request.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::GraphUpdate;
    use crate::client::ParameterType;

    fn written(message: &Message<'_>) -> Value {
        serde_json::from_str(&text(message)).unwrap()
    }

    #[test]
    fn texts_are_written_as_clients_read_them() {
        let metadata = BTreeMap::from([("ROS_DISTRO", "jazzy")]);
        let info = Message::ServerInfo(ServerInfo {
            name: "n",
            capabilities: &[
                Capability::ClientPublish,
                Capability::ParametersSubscribe,
                Capability::RangedPlayback,
            ],
            supported_encodings: &["cdr"],
            metadata: &metadata,
            session_id: "7",
            data_start_time: None,
            data_end_time: Some(Timestamp::from_ns(2_000_000_003)),
        });
        assert_eq!(
            written(&info),
            json!({
                "op": "serverInfo", "name": "n",
                "capabilities": ["clientPublish", "parametersSubscribe", "rangedPlayback"],
                "supportedEncodings": ["cdr"], "metadata": { "ROS_DISTRO": "jazzy" }, "sessionId": "7",
                "dataEndTime": { "sec": 2, "nsec": 3 },
            })
        );
        let channel = Channel {
            id: 1,
            topic: "/t",
            encoding: "cdr",
            schema_name: "a/msg/B",
            schema: "int8 x\n",
            schema_encoding: "ros2msg",
        };
        assert_eq!(
            written(&Message::Advertise { channels: &[channel] }),
            json!({ "op": "advertise", "channels": [{
                "id": 1, "topic": "/t", "encoding": "cdr", "schemaName": "a/msg/B", "schema": "int8 x\n",
                "schemaEncoding": "ros2msg",
            }] })
        );
        let half = |schema_name| Schema {
            encoding: "cdr",
            schema_name,
            schema: "",
            schema_encoding: "ros2msg",
        };
        let service = Service {
            id: 3,
            name: "/s",
            ty: "a/srv/C",
            request: half("a/srv/C_Request"),
            response: half("a/srv/C_Response"),
        };
        let half = |name| json!({ "encoding": "cdr", "schemaName": name, "schema": "", "schemaEncoding": "ros2msg" });
        assert_eq!(
            written(&Message::AdvertiseServices { services: &[service] }),
            json!({ "op": "advertiseServices", "services": [{
                "id": 3, "name": "/s", "type": "a/srv/C",
                "request": half("a/srv/C_Request"), "response": half("a/srv/C_Response"),
            }] })
        );
        assert_eq!(
            written(&Message::Unadvertise { channel_ids: &[1] }),
            json!({ "op": "unadvertise", "channelIds": [1] })
        );
        assert_eq!(
            written(&Message::UnadvertiseServices { service_ids: &[3] }),
            json!({ "op": "unadvertiseServices", "serviceIds": [3] })
        );
        assert_eq!(
            written(&Message::Status { level: Level::Warning, message: "m", id: None }),
            json!({ "op": "status", "level": 1, "message": "m" })
        );
        assert_eq!(
            written(&Message::RemoveStatus { status_ids: &["i".to_owned()] }),
            json!({ "op": "removeStatus", "statusIds": ["i"] })
        );
        let parameters = [
            Parameter {
                name: "f".to_owned(),
                ty: Some(ParameterType::Float64Array),
                value: Some(json!([1.5])),
            },
            Parameter { name: "none".to_owned(), ty: None, value: None },
        ];
        assert_eq!(
            written(&Message::ParameterValues { parameters: &parameters, id: Some("i") }),
            json!({ "op": "parameterValues", "id": "i", "parameters": [
                { "name": "f", "type": "float64_array", "value": [1.5] }, { "name": "none" },
            ] })
        );
        assert_eq!(
            written(&Message::ServiceCallFailure { service_id: 3, call_id: 4, message: "m" }),
            json!({ "op": "serviceCallFailure", "serviceId": 3, "callId": 4, "message": "m" })
        );
        let one = |name: &str| vec![Provided { name: name.to_owned(), by: vec!["/n".to_owned()] }];
        let update = GraphUpdate {
            published: one("/p"),
            subscribed: one("/s"),
            served: one("/v"),
            removed_topics: vec!["/gone".to_owned()],
            removed_services: Vec::new(),
        };
        assert_eq!(
            written(&Message::graph(&update)),
            json!({
                "op": "connectionGraphUpdate",
                "publishedTopics": [{ "name": "/p", "publisherIds": ["/n"] }],
                "subscribedTopics": [{ "name": "/s", "subscriberIds": ["/n"] }],
                "advertisedServices": [{ "name": "/v", "providerIds": ["/n"] }],
                "removedTopics": ["/gone"], "removedServices": [],
            })
        );
    }

    #[test]
    fn bytes_are_written_as_clients_read_them() {
        let bytes = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            out
        };
        let head = bytes(&|out| write_message_head(out, 2, 3));
        assert_eq!(head, b"\x01\x02\0\0\0\x03\0\0\0\0\0\0\0");
        assert_eq!(head.len(), MESSAGE_HEAD_BYTES);
        assert_eq!(bytes(&|out| write_time(out, 256)), b"\x02\0\x01\0\0\0\0\0\0");
        assert_eq!(
            bytes(&|out| write_response(out, 1, 2, "cdr", b"xy")),
            b"\x03\x01\0\0\0\x02\0\0\0\x03\0\0\0cdrxy"
        );
        assert_eq!(bytes(&|out| write_asset(out, 9, b"data")), b"\x04\x09\0\0\0\0\0\0\0\0data");
        assert_eq!(bytes(&|out| write_no_asset(out, 9, "no")), b"\x04\x09\0\0\0\x01\x02\0\0\0no");
        let state = PlaybackState {
            status: PlaybackStatus::Ended,
            time_ns: 256,
            rate: 1.5,
            did_seek: true,
            request: "r1",
        };
        assert_eq!(
            bytes(&|out| write_playback(out, &state)),
            b"\x05\x03\0\x01\0\0\0\0\0\0\0\0\xc0\x3f\x01\x02\0\0\0r1"
        );
    }
}
