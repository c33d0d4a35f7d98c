//! Messages to clients, appended to a buffer.

use crate::operation::{Encoding, Id, Level};
use crate::refusal::Refusal;
use crate::{bson, cbor, json};

/// What a message carries that was made elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values<'a> {
    /// The member is left out.
    None,
    /// A message of ROS, in the encoding of what is being written: a text of JSON, an item of CBOR, a document of BSON.
    Encoded(&'a [u8]),
    /// What is the matter, in words.
    Text(&'a str),
}

/// Appends `publish` with a sample that is encoded already. All clients that want the same encoding get the same bytes.
pub fn write_publish(out: &mut Vec<u8>, encoding: Encoding, topic: &str, sample: &[u8]) {
    let mut writer = Writer::new(out, encoding);
    writer.text("op", "publish");
    writer.text("topic", topic);
    writer.encoded("msg", sample);
    writer.end();
}

/// Appends `publish` up to the sample, which whoever calls this appends next, and then [what is left](PublishEnd::write).
/// So a sample is written where it is sent from. It is what [`write_publish`] appends.
#[must_use = "without its end the message is none"]
pub fn begin_publish(out: &mut Vec<u8>, encoding: Encoding, topic: &str) -> PublishEnd {
    let mut writer = Writer::new(out, encoding);
    writer.text("op", "publish");
    writer.text("topic", topic);
    writer.name("msg");
    let Writer { start, members, .. } = writer;
    if encoding == Encoding::Bson {
        bson::begin_member(out, "msg");
    }
    PublishEnd { encoding, start, members }
}

/// What is left of a `publish` that was begun.
#[derive(Debug)]
pub struct PublishEnd {
    encoding: Encoding,
    start: usize,
    members: u8,
}

impl PublishEnd {
    /// Appends it.
    pub fn write(self, out: &mut Vec<u8>) {
        let Self { encoding, start, members } = self;
        Writer { out, encoding, start, members }.end();
    }
}

/// Appends `publish` as compression `cbor-raw` has it: the sample is CDR with its four bytes of header, `secs` and `nsecs`
/// are when it came, by the clock of ROS.
pub fn write_publish_raw(out: &mut Vec<u8>, topic: &str, secs: i64, nsecs: u32, cdr: &[u8]) {
    cbor::write_map(out, 3);
    cbor::write_text(out, "op");
    cbor::write_text(out, "publish");
    cbor::write_text(out, "topic");
    cbor::write_text(out, topic);
    cbor::write_text(out, "msg");
    cbor::write_map(out, 3);
    cbor::write_text(out, "secs");
    cbor::write_integer(out, secs);
    cbor::write_text(out, "nsecs");
    cbor::write_integer(out, nsecs.into());
    cbor::write_text(out, "bytes");
    cbor::write_bytes(out, cdr);
}

/// A message to a client other than a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outgoing<'a> {
    /// The answer to a client's `call_service`.
    ServiceResponse {
        /// That of the request, if it had one.
        id: Option<&'a Id<'a>>,
        /// The service.
        service: &'a str,
        /// The response, or what is the matter.
        values: Values<'a>,
        /// Whether it succeeded.
        result: bool,
    },
    /// A request to a client that serves.
    CallService {
        /// By which the response is known.
        id: &'a Id<'a>,
        /// The service.
        service: &'a str,
        /// The request.
        args: Values<'a>,
    },
    /// A goal to a client that pursues goals.
    SendActionGoal {
        /// By which feedback and result are known.
        id: &'a Id<'a>,
        /// The action.
        action: &'a str,
        /// Its type.
        action_type: &'a str,
        /// The goal.
        args: Values<'a>,
    },
    /// A client that pursues a goal is to give it up.
    CancelActionGoal {
        /// That of the goal.
        id: &'a Id<'a>,
        /// The action.
        action: &'a str,
    },
    /// How far a client's goal has come.
    ActionFeedback {
        /// That of the goal, if it had one.
        id: Option<&'a Id<'a>>,
        /// The action.
        action: &'a str,
        /// The feedback.
        values: Values<'a>,
    },
    /// What has become of a client's goal.
    ActionResult {
        /// That of the goal, if it had one.
        id: Option<&'a Id<'a>>,
        /// The action.
        action: &'a str,
        /// The result, or what is the matter.
        values: Values<'a>,
        /// As `action_msgs/GoalStatus` numbers it.
        status: i8,
        /// Whether there is a result.
        result: bool,
    },
    /// What a client is told.
    Status {
        /// That of what it is about.
        id: Option<&'a Id<'a>>,
        /// How grave.
        level: Level,
        /// In words.
        msg: &'a str,
    },
}

impl Outgoing<'_> {
    /// What it answers, if that has an id.
    pub fn id(&self) -> Option<&Id<'_>> {
        match *self {
            Self::ServiceResponse { id, .. }
            | Self::ActionFeedback { id, .. }
            | Self::ActionResult { id, .. }
            | Self::Status { id, .. } => id,
            Self::CallService { id, .. }
            | Self::SendActionGoal { id, .. }
            | Self::CancelActionGoal { id, .. } => Some(id),
        }
    }

    /// Appends it. [`Values::Encoded`] must be of the same encoding.
    pub fn write(&self, out: &mut Vec<u8>, encoding: Encoding) {
        let mut writer = Writer::new(out, encoding);
        match *self {
            Self::ServiceResponse { id, service, values, result } => {
                writer.text("op", "service_response");
                writer.id(id);
                writer.text("service", service);
                writer.values("values", values);
                writer.bool("result", result);
            }
            Self::CallService { id, service, args } => {
                writer.text("op", "call_service");
                writer.id(Some(id));
                writer.text("service", service);
                writer.values("args", args);
            }
            Self::SendActionGoal { id, action, action_type, args } => {
                writer.text("op", "send_action_goal");
                writer.id(Some(id));
                writer.text("action", action);
                writer.text("action_type", action_type);
                writer.values("args", args);
                writer.bool("feedback", true);
            }
            Self::CancelActionGoal { id, action } => {
                writer.text("op", "cancel_action_goal");
                writer.id(Some(id));
                writer.text("action", action);
            }
            Self::ActionFeedback { id, action, values } => {
                writer.text("op", "action_feedback");
                writer.id(id);
                writer.text("action", action);
                writer.values("values", values);
            }
            Self::ActionResult { id, action, values, status, result } => {
                writer.text("op", "action_result");
                writer.id(id);
                writer.text("action", action);
                writer.values("values", values);
                writer.integer("status", status.into());
                writer.bool("result", result);
            }
            Self::Status { id, level, msg } => {
                writer.text("op", "status");
                writer.id(id);
                writer.text("level", level.word());
                writer.text("msg", msg);
            }
        }
        writer.end();
    }
}

/// Appends the `status` of level error that tells a client of a refusal.
pub fn write_refusal(out: &mut Vec<u8>, encoding: Encoding, refusal: &Refusal) {
    let msg = refusal.to_string();
    Outgoing::Status { id: refusal.id.as_ref(), level: Level::Error, msg: &msg }
        .write(out, encoding);
}

/// Writes one object, whose names need no escapes.
struct Writer<'o> {
    out: &'o mut Vec<u8>,
    encoding: Encoding,
    start: usize,
    members: u8,
}

impl<'o> Writer<'o> {
    fn new(out: &'o mut Vec<u8>, encoding: Encoding) -> Self {
        let start = out.len();
        match encoding {
            Encoding::Json => out.push(b'{'),
            // `end` notes how many members have come, of which no message has more than 23.
            Encoding::Cbor => cbor::write_map(out, 0),
            Encoding::Bson => drop(bson::begin_document(out)),
        }
        Self { out, encoding, start, members: 0 }
    }

    fn name(&mut self, name: &str) {
        match self.encoding {
            Encoding::Json => {
                if self.members > 0 {
                    self.out.push(b',');
                }
                self.out.push(b'"');
                self.out.extend_from_slice(name.as_bytes());
                self.out.extend_from_slice(b"\":");
            }
            Encoding::Cbor => cbor::write_text(self.out, name),
            // It stands behind the kind.
            Encoding::Bson => (),
        }
        self.members += 1;
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        match self.encoding {
            Encoding::Json => json::write_text(self.out, text),
            Encoding::Cbor => cbor::write_text(self.out, text),
            Encoding::Bson => bson::write_text(self.out, name, text),
        }
    }

    fn integer(&mut self, name: &str, integer: i64) {
        self.name(name);
        match self.encoding {
            Encoding::Json => self.out.extend_from_slice(integer.to_string().as_bytes()),
            Encoding::Cbor => cbor::write_integer(self.out, integer),
            Encoding::Bson => bson::write_integer(self.out, name, integer),
        }
    }

    fn bool(&mut self, name: &str, value: bool) {
        self.name(name);
        match self.encoding {
            Encoding::Json => {
                self.out.extend_from_slice(if value { b"true" } else { b"false" });
            }
            Encoding::Cbor => cbor::write_bool(self.out, value),
            Encoding::Bson => bson::write_bool(self.out, name, value),
        }
    }

    fn encoded(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        match self.encoding {
            Encoding::Json | Encoding::Cbor => self.out.extend_from_slice(value),
            Encoding::Bson => bson::write_document(self.out, name, value),
        }
    }

    fn values(&mut self, name: &str, values: Values<'_>) {
        match values {
            Values::None => (),
            Values::Encoded(value) => self.encoded(name, value),
            Values::Text(text) => self.text(name, text),
        }
    }

    fn id(&mut self, id: Option<&Id<'_>>) {
        match id {
            None => (),
            Some(Id::Text(text)) => self.text("id", text),
            Some(Id::Integer(integer)) => self.integer("id", *integer),
        }
    }

    fn end(self) {
        match self.encoding {
            Encoding::Json => self.out.push(b'}'),
            Encoding::Cbor => self.out[self.start] |= self.members,
            Encoding::Bson => bson::end_document(self.out, self.start),
        }
    }
}
