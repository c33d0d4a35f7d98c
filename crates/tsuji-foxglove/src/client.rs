//! What clients say.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message of a client in text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request<'a> {
    /// It wants the messages of channels.
    Subscribe {
        /// Each with a number of its own.
        subscriptions: Vec<Subscription>,
    },
    /// It wants them no more.
    Unsubscribe {
        /// The numbers of its subscriptions.
        subscription_ids: Vec<u32>,
    },
    /// It will publish.
    Advertise {
        /// On these channels, which are its own.
        #[serde(borrow)]
        channels: Vec<ClientChannel<'a>>,
    },
    /// It publishes no more.
    Unadvertise {
        /// On these of its channels.
        channel_ids: Vec<u32>,
    },
    /// It wants to know parameters.
    GetParameters {
        /// Those; all if there is none.
        #[serde(default)]
        parameter_names: Vec<String>,
        /// What the answer is known by.
        #[serde(default)]
        id: Option<String>,
    },
    /// It wants parameters to be set. One without a value is to be deleted.
    SetParameters {
        /// Those.
        #[serde(default)]
        parameters: Vec<Parameter>,
        /// What the answer is known by; without it none is wanted.
        #[serde(default)]
        id: Option<String>,
    },
    /// It wants to hear when parameters change.
    SubscribeParameterUpdates {
        /// Those; all if there is none.
        #[serde(default)]
        parameter_names: Vec<String>,
    },
    /// It wants to hear of them no more.
    UnsubscribeParameterUpdates {
        /// Those; all if there is none.
        #[serde(default)]
        parameter_names: Vec<String>,
    },
    /// It wants to know who publishes, subscribes and serves.
    SubscribeConnectionGraph,
    /// It wants to know it no more.
    UnsubscribeConnectionGraph,
    /// It wants a file.
    FetchAsset {
        /// Where that is, such as `package://robot_description/meshes/arm.stl`.
        uri: String,
        /// What the answer is known by.
        request_id: u32,
    },
}

/// A subscription that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// By which the client knows it.
    pub id: u32,
    /// The server's number of the channel.
    pub channel_id: u64,
}

/// A channel of a client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientChannel<'a> {
    /// By which the client knows it.
    pub id: u32,
    /// The topic.
    #[serde(borrow)]
    pub topic: Cow<'a, str>,
    /// How messages are written, such as `cdr`.
    #[serde(borrow)]
    pub encoding: Cow<'a, str>,
    /// The type, such as `std_msgs/msg/String`.
    #[serde(borrow)]
    pub schema_name: Cow<'a, str>,
}

/// A parameter, and its value if it has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What JSON does not tell of the value.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub ty: Option<ParameterType>,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// What JSON does not tell of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterType {
    /// Bytes, in base64.
    ByteArray,
    /// A number that may be none of the integers.
    Float64,
    /// Such numbers.
    Float64Array,
}

/// A message of a client in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary<'a> {
    /// It publishes.
    Message {
        /// On this of its channels.
        channel: u32,
        /// This.
        data: &'a [u8],
    },
    /// It calls a service.
    Call {
        /// The server's number of it.
        service: u32,
        /// What the answer is known by.
        call: u32,
        /// How the request is written, and the response is to be.
        encoding: &'a str,
        /// The request.
        data: &'a [u8],
    },
    /// It controls the recording that is played.
    Playback {
        /// Whether it is to be played, or to be paused.
        plays: bool,
        /// How many times as fast as it was recorded; what number it is was not looked at.
        rate: f32,
        /// Where it is to go, in nanoseconds since 1970; none if it goes on where it is.
        seek_ns: Option<u64>,
        /// What the answer is known by.
        request: &'a str,
    },
}

/// What is wrong with a message.
#[derive(Clone, PartialEq, Eq)]
pub struct Malformed(String);

/// The sentence, as `main` prints what it returns.
impl fmt::Debug for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

impl<'a> Request<'a> {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// What is found in the place of what is expected.
    pub fn parse(text: &'a str) -> Result<Self, Malformed> {
        serde_json::from_str(text).map_err(|error| Malformed(error.to_string()))
    }

    /// How many things are asked for at once.
    pub fn count(&self) -> usize {
        match self {
            Self::Subscribe { subscriptions } => subscriptions.len(),
            Self::Unsubscribe { subscription_ids } => subscription_ids.len(),
            Self::Advertise { channels } => channels.len(),
            Self::Unadvertise { channel_ids } => channel_ids.len(),
            Self::GetParameters { parameter_names, .. }
            | Self::SubscribeParameterUpdates { parameter_names }
            | Self::UnsubscribeParameterUpdates { parameter_names } => parameter_names.len(),
            Self::SetParameters { parameters, .. } => parameters.len(),
            Self::SubscribeConnectionGraph
            | Self::UnsubscribeConnectionGraph
            | Self::FetchAsset { .. } => 1,
        }
    }
}

impl<'a> Binary<'a> {
    /// Reads bytes.
    ///
    /// # Errors
    ///
    /// What is found in the place of what is expected.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (opcode, mut rest) =
            bytes.split_first().ok_or_else(|| Malformed("no opcode".to_owned()))?;
        match opcode {
            1 => Ok(Self::Message { channel: number(&mut rest, "channel")?, data: rest }),
            2 => {
                let (service, call) = (number(&mut rest, "service")?, number(&mut rest, "call")?);
                let encoding = counted_text(&mut rest, "encoding")?;
                Ok(Self::Call { service, call, encoding, data: rest })
            }
            3 => {
                let [command] = take(&mut rest, "command")?;
                let plays = match command {
                    0 => true,
                    1 => false,
                    other => {
                        let why = format!("command {other}; allowed: 0 to play, 1 to pause");
                        return Err(Malformed(why));
                    }
                };
                let rate = f32::from_le_bytes(take(&mut rest, "rate")?);
                let [seeks] = take(&mut rest, "time")?;
                let time = u64::from_le_bytes(take(&mut rest, "time")?);
                let seek_ns = (seeks != 0).then_some(time);
                let request = counted_text(&mut rest, "request")?;
                Ok(Self::Playback { plays, rate, seek_ns, request })
            }
            other => Err(Malformed(format!(
                "opcode {other}; allowed: 1 for a message, 2 for a call of a service, 3 for what is played"
            ))),
        }
    }
}

fn number(rest: &mut &[u8], what: &str) -> Result<u32, Malformed> {
    take(rest, what).map(u32::from_le_bytes)
}

fn take<const N: usize>(rest: &mut &[u8], what: &str) -> Result<[u8; N], Malformed> {
    let Some((taken, behind)) = rest.split_first_chunk() else {
        return Err(Malformed(format!("it ends within the {what}")));
    };
    *rest = behind;
    Ok(*taken)
}

/// A text after its length.
fn counted_text<'a>(rest: &mut &'a [u8], what: &str) -> Result<&'a str, Malformed> {
    let length = number(rest, &format!("length of the {what}"))? as usize;
    let Some((text, behind)) = rest.split_at_checked(length) else {
        let why = format!("{what} of {length} bytes; {} are there", rest.len());
        return Err(Malformed(why));
    };
    *rest = behind;
    str::from_utf8(text).map_err(|error| Malformed(format!("{what}: {error}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Request<'_> {
        Request::parse(text).unwrap()
    }

    #[test]
    fn requests_are_read_as_clients_write_them() {
        let subscribe =
            r#"{"op":"subscribe","subscriptions":[{"id":1,"channelId":18446744073709551615}]}"#;
        let subscriptions = vec![Subscription { id: 1, channel_id: u64::MAX }];
        assert_eq!(parsed(subscribe), Request::Subscribe { subscriptions });
        let advertise = r#"{"op":"advertise","channels":[{"id":10,"topic":"/t\u0031","encoding":"cdr","schemaName":"std_msgs/msg/String","schema":"string data","schemaEncoding":"ros2msg"}]}"#;
        let Request::Advertise { channels } = parsed(advertise) else { panic!() };
        assert_eq!((channels[0].id, &*channels[0].topic), (10, "/t1"));
        assert_eq!(
            (&*channels[0].encoding, &*channels[0].schema_name),
            ("cdr", "std_msgs/msg/String")
        );
        let get = r#"{"op":"getParameters","parameterNames":[]}"#;
        assert_eq!(parsed(get), Request::GetParameters { parameter_names: Vec::new(), id: None });
        let set = r#"{"op":"setParameters","id":"my-id","parameters":[{"name":"empty"},{"name":"f","type":"float64","value":1},{"name":"b","type":"byte_array","value":"ECAw"}]}"#;
        assert_eq!(parsed(set).count(), 3);
        let Request::SetParameters { parameters, id } = parsed(set) else { panic!() };
        assert_eq!(id.as_deref(), Some("my-id"));
        assert_eq!((parameters[0].ty, &parameters[0].value), (None, &None));
        assert_eq!(
            (parameters[1].ty, &parameters[1].value),
            (Some(ParameterType::Float64), &Some(json!(1)))
        );
        assert_eq!(parameters[2].ty, Some(ParameterType::ByteArray));
        assert_eq!(
            parsed(r#"{"op":"subscribeConnectionGraph"}"#),
            Request::SubscribeConnectionGraph
        );
        let fetch = r#"{"op":"fetchAsset","requestId":42,"uri":"package://a/b.urdf"}"#;
        let uri = "package://a/b.urdf".to_owned();
        assert_eq!(parsed(fetch), Request::FetchAsset { uri, request_id: 42 });
    }

    #[test]
    fn what_is_none_is_told() {
        let told = |text| Request::parse(text).unwrap_err().to_string();
        assert!(told("").contains("EOF"), "{}", told(""));
        assert!(told("[]").contains("op") || told("[]").contains("enum"), "{}", told("[]"));
        assert!(told(r#"{"op":"jump"}"#).contains("unknown variant `jump`"));
        assert!(told(r#"{"op":"subscribe"}"#).contains("missing field `subscriptions`"));
        let negative = r#"{"op":"subscribe","subscriptions":[{"id":-1,"channelId":1}]}"#;
        assert!(told(negative).contains("-1"), "{}", told(negative));
    }

    #[test]
    fn bytes_are_read() {
        assert_eq!(
            Binary::parse(b"\x01\x2a\0\0\0data"),
            Ok(Binary::Message { channel: 42, data: b"data" })
        );
        let call = b"\x02\x01\0\0\0\x02\0\0\0\x03\0\0\0cdrrequest";
        let (service, call_number) = (1, 2);
        assert_eq!(
            Binary::parse(call),
            Ok(Binary::Call { service, call: call_number, encoding: "cdr", data: b"request" })
        );
        let told = |bytes| Binary::parse(bytes).unwrap_err().to_string();
        assert_eq!(told(b""), "no opcode");
        assert_eq!(told(b"\x01\0\0\0"), "it ends within the channel");
        assert!(told(b"\x07").starts_with("opcode 7; allowed: 1"));
        let long = b"\x02\x01\0\0\0\x02\0\0\0\xff\xff\xff\xffcdr";
        assert_eq!(told(long), "encoding of 4294967295 bytes; 3 are there");
        assert!(told(b"\x02\x01\0\0\0\x02\0\0\0\x01\0\0\0\xff").contains("utf-8"));
    }

    #[test]
    fn what_is_to_be_played_is_read() {
        // As the SDK of Foxglove writes them: command, rate, whether there is a time, the time, the request.
        let seeks = b"\x03\x00\x00\x00\xc0\x3f\x01\x00\x01\0\0\0\0\0\0\x02\0\0\0r1";
        let request = "r1";
        let (plays, rate) = (true, 1.5);
        let seek_ns = Some(256);
        assert_eq!(Binary::parse(seeks), Ok(Binary::Playback { plays, rate, seek_ns, request }));
        let pauses = b"\x03\x01\x00\x00\x80\x3f\x00\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0a";
        let (plays, rate, seek_ns, request) = (false, 1.0, None, "a");
        assert_eq!(Binary::parse(pauses), Ok(Binary::Playback { plays, rate, seek_ns, request }));
        let told = |bytes| Binary::parse(bytes).unwrap_err().to_string();
        assert_eq!(told(b"\x03\x02"), "command 2; allowed: 0 to play, 1 to pause");
        for (len, what) in
            [(1, "command"), (3, "rate"), (6, "time"), (9, "time"), (17, "length of the request")]
        {
            assert_eq!(told(&seeks[..len]), format!("it ends within the {what}"), "{len}");
        }
        assert_eq!(told(&seeks[..20]), "request of 2 bytes; 1 are there");
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in ".{0,64}") {
            let _ = Binary::parse(&bytes);
            let _ = Request::parse(&text);
        }
    }
}
