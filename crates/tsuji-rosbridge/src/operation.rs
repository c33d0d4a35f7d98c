use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::json;
use crate::qos::QosRequest;

/// How a message of the protocol is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Text, as a client speaks that asks for nothing else.
    Json,
    /// Binary, of RFC 8949.
    Cbor,
    /// Binary, of servers in `bson_only_mode` and their clients.
    Bson,
}

impl Encoding {
    /// How a binary frame is written of a client that may write JSON or CBOR: clients of Unity and .NET send JSON so.
    pub fn of_binary(bytes: &[u8]) -> Self {
        if json::begins_object(bytes) { Self::Json } else { Self::Cbor }
    }
}

/// A message from a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming<'a> {
    /// What is asked for.
    pub operation: Operation<'a>,
    /// What any message may say about all that is sent from then on.
    pub session: SessionOptions,
}

/// Options of the connection that any message may carry. What is absent stays as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionOptions {
    /// The longest text to send in one piece, in bytes. Where the operation itself has a `fragment_size`, it is that one's.
    pub fragment_size: Option<u32>,
    /// `message_intervall`: the time between two messages.
    pub message_interval: Option<Duration>,
    /// Whether what is sent as JSON is sent as a picture.
    pub png: Option<bool>,
}

/// One operation of the protocol, with every option that it has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is named as on the wire and documented at its type")]
pub enum Operation<'a> {
    Advertise(Advertise<'a>),
    Unadvertise(Unadvertise<'a>),
    Publish(Publish<'a>),
    Subscribe(Subscribe<'a>),
    Unsubscribe(Unsubscribe<'a>),
    CallService(CallService<'a>),
    ServiceResponse(ServiceResponse<'a>),
    AdvertiseService(AdvertiseService<'a>),
    UnadvertiseService(UnadvertiseService<'a>),
    AdvertiseAction(AdvertiseAction<'a>),
    UnadvertiseAction(UnadvertiseAction<'a>),
    SendActionGoal(SendActionGoal<'a>),
    CancelActionGoal(CancelActionGoal<'a>),
    ActionFeedback(ActionFeedback<'a>),
    ActionResult(ActionResult<'a>),
    Fragment(Fragment<'a>),
    Png(Png<'a>),
    Auth(Box<Auth<'a>>),
    SetLevel(SetLevel<'a>),
    Status(Status<'a>),
}

impl Operation<'_> {
    /// What stands under `op`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Advertise(_) => "advertise",
            Self::Unadvertise(_) => "unadvertise",
            Self::Publish(_) => "publish",
            Self::Subscribe(_) => "subscribe",
            Self::Unsubscribe(_) => "unsubscribe",
            Self::CallService(_) => "call_service",
            Self::ServiceResponse(_) => "service_response",
            Self::AdvertiseService(_) => "advertise_service",
            Self::UnadvertiseService(_) => "unadvertise_service",
            Self::AdvertiseAction(_) => "advertise_action",
            Self::UnadvertiseAction(_) => "unadvertise_action",
            Self::SendActionGoal(_) => "send_action_goal",
            Self::CancelActionGoal(_) => "cancel_action_goal",
            Self::ActionFeedback(_) => "action_feedback",
            Self::ActionResult(_) => "action_result",
            Self::Fragment(_) => "fragment",
            Self::Png(_) => "png",
            Self::Auth(_) => "auth",
            Self::SetLevel(_) => "set_level",
            Self::Status(_) => "status",
        }
    }

    /// The id that answers to it carry.
    pub fn id(&self) -> Option<&Id<'_>> {
        match self {
            Self::Advertise(it) => it.id.as_ref(),
            Self::Unadvertise(it) => it.id.as_ref(),
            Self::Publish(it) => it.id.as_ref(),
            Self::Subscribe(it) => it.id.as_ref(),
            Self::Unsubscribe(it) => it.id.as_ref(),
            Self::CallService(it) => it.id.as_ref(),
            Self::ServiceResponse(it) => it.id.as_ref(),
            Self::AdvertiseService(it) => it.id.as_ref(),
            Self::UnadvertiseService(it) => it.id.as_ref(),
            Self::AdvertiseAction(it) => it.id.as_ref(),
            Self::UnadvertiseAction(it) => it.id.as_ref(),
            Self::SendActionGoal(it) => it.id.as_ref(),
            Self::CancelActionGoal(it) => Some(&it.id),
            Self::ActionFeedback(it) => Some(&it.id),
            Self::ActionResult(it) => Some(&it.id),
            Self::Fragment(it) => Some(&it.id),
            Self::Png(it) => it.id.as_ref(),
            Self::Auth(it) => it.id.as_ref(),
            Self::SetLevel(it) => it.id.as_ref(),
            Self::Status(it) => it.id.as_ref(),
        }
    }
}

/// What tells one request of a client from another. Answers carry it as it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id<'a> {
    /// As roslib writes it: `publish:/chatter:4`.
    Text(Cow<'a, str>),
    /// As some clients count.
    Integer(i64),
}

impl Id<'_> {
    /// The same, owning its text.
    pub fn into_owned(self) -> Id<'static> {
        match self {
            Self::Text(text) => Id::Text(Cow::Owned(text.into_owned())),
            Self::Integer(integer) => Id::Integer(integer),
        }
    }

    /// The same, borrowing its text.
    pub fn borrowed(&self) -> Id<'_> {
        match self {
            Self::Text(text) => Id::Text(Cow::Borrowed(text)),
            Self::Integer(integer) => Id::Integer(*integer),
        }
    }

    /// How many bytes of text it holds.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Integer(_) => 0,
        }
    }
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Integer(integer) => fmt::Display::fmt(integer, f),
        }
    }
}

/// A message of ROS as it came, unread; it is checked by whoever knows its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The member is absent or null.
    None,
    /// The text of a value.
    Json(&'a [u8]),
    /// One item.
    Cbor(&'a [u8]),
    /// A value without its name.
    Bson {
        /// What it is, as BSON numbers it: 3 is a document, 4 a list.
        kind: u8,
        /// Its bytes.
        value: &'a [u8],
    },
}

/// How the samples of a subscription are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// As JSON.
    #[default]
    None,
    /// As JSON in the pixels of a picture, in base64.
    Png,
    /// As CBOR.
    Cbor,
    /// As CDR within CBOR.
    CborRaw,
}

impl Compression {
    /// Every word, in the order of what wins where subscriptions are merged, the last first.
    pub const WORDS: &[&str] = &["none", "png", "cbor", "cbor-raw"];

    /// The compression of that name.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "png" => Some(Self::Png),
            "cbor" => Some(Self::Cbor),
            "cbor-raw" => Some(Self::CborRaw),
            _ => None,
        }
    }
}

/// How much of what happens a client is told in `status` messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing.
    None,
    /// What was refused.
    #[default]
    Error,
    /// And what was done otherwise than it may have been meant.
    Warning,
    /// And what was done.
    Info,
}

impl Level {
    /// Every word.
    pub const WORDS: &[&str] = &["none", "error", "warning", "info"];

    /// The level of that name.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "error" => Some(Self::Error),
            "warning" | "warn" => Some(Self::Warning),
            "info" => Some(Self::Info),
            _ => None,
        }
    }

    /// As it stands on the wire.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Whether a client that asked for this level is told of what is as grave as `of`.
    pub fn tells(self, of: Self) -> bool {
        of != Self::None && of <= self
    }
}

/// `advertise`: the client is going to publish.
#[derive(Clone, Debug, PartialEq)]
pub struct Advertise<'a> {
    /// By which this one is taken back.
    pub id: Option<Id<'a>>,
    /// The topic.
    pub topic: Cow<'a, str>,
    /// As the client has it: `std_msgs/String` or `std_msgs/msg/String`.
    pub ty: Cow<'a, str>,
    /// Whether late subscribers get the last sample.
    pub latch: bool,
    /// How many samples wait to be sent, 100 where the client does not say.
    pub queue_size: u32,
    /// What is asked of the quality of service.
    pub qos: Option<Box<QosRequest>>,
}

/// What `queue_size` is where a client does not say.
pub const QUEUE_SIZE: u32 = 100;

/// `unadvertise`: the client is not going to publish any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Unadvertise<'a> {
    /// Which advertisement ends; all of the topic without it.
    pub id: Option<Id<'a>>,
    /// The topic.
    pub topic: Cow<'a, str>,
}

/// `publish`: one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Publish<'a> {
    /// For `status` messages.
    pub id: Option<Id<'a>>,
    /// The topic.
    pub topic: Cow<'a, str>,
    /// The sample; without it every field has its default.
    pub msg: Body<'a>,
    /// As in [`Advertise`], for a topic that was not advertised.
    pub latch: Option<bool>,
    /// As in [`Advertise`], for a topic that was not advertised.
    pub queue_size: Option<u32>,
    /// As in [`Advertise`], for a topic that was not advertised.
    pub qos: Option<Box<QosRequest>>,
}

/// `subscribe`: samples of a topic are to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscribe<'a> {
    /// By which this one is taken back.
    pub id: Option<Id<'a>>,
    /// The topic.
    pub topic: Cow<'a, str>,
    /// The type that is expected; without it that of the topic.
    pub ty: Option<Cow<'a, str>>,
    /// The least time between two samples.
    pub throttle_rate: Duration,
    /// How many samples wait, the newest; 0 where the client does not say.
    pub queue_length: u32,
    /// The longest text to send in one piece, in bytes.
    pub fragment_size: Option<u32>,
    /// How samples are written.
    pub compression: Compression,
    /// What is asked of the quality of service.
    pub qos: Option<Box<QosRequest>>,
}

/// `unsubscribe`: samples are not to be sent any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsubscribe<'a> {
    /// Which subscription ends; all of the topic without it.
    pub id: Option<Id<'a>>,
    /// The topic.
    pub topic: Cow<'a, str>,
}

/// `call_service`: a request to a service of ROS.
#[derive(Clone, Debug, PartialEq)]
pub struct CallService<'a> {
    /// What the response carries. Where it is absent and the service is written `/name#id`, it is taken from there.
    pub id: Option<Id<'a>>,
    /// The service, without `#id`.
    pub service: Cow<'a, str>,
    /// Its type, which roslibpy does not say.
    pub ty: Option<Cow<'a, str>>,
    /// The request, an object, or a list of its fields in order.
    pub args: Body<'a>,
    /// How long to wait for the response, zero for as long as it takes; without it as long as the server is set to.
    pub timeout: Option<Duration>,
    /// The longest text of the response to send in one piece, in bytes.
    pub fragment_size: Option<u32>,
    /// How the response is written: as JSON or as a picture; others are written as JSON.
    pub compression: Compression,
}

/// `service_response`: what a client that serves answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceResponse<'a> {
    /// That of the request. It is absent where the request's was.
    pub id: Option<Id<'a>>,
    /// The service.
    pub service: Cow<'a, str>,
    /// The response, or where it failed what is the matter, a text.
    pub values: Body<'a>,
    /// Whether it succeeded. A JavaScript callback that returns nothing leaves it out and has succeeded.
    pub result: bool,
}

/// `advertise_service`: the client serves.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvertiseService<'a> {
    /// For `status` messages.
    pub id: Option<Id<'a>>,
    /// The service.
    pub service: Cow<'a, str>,
    /// Its type.
    pub ty: Cow<'a, str>,
}

/// `unadvertise_service`: the client serves no more.
#[derive(Clone, Debug, PartialEq)]
pub struct UnadvertiseService<'a> {
    /// For `status` messages.
    pub id: Option<Id<'a>>,
    /// The service.
    pub service: Cow<'a, str>,
}

/// `advertise_action`: the client pursues goals.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvertiseAction<'a> {
    /// For `status` messages.
    pub id: Option<Id<'a>>,
    /// The action.
    pub action: Cow<'a, str>,
    /// Its type.
    pub ty: Cow<'a, str>,
}

/// `unadvertise_action`: the client pursues no more.
#[derive(Clone, Debug, PartialEq)]
pub struct UnadvertiseAction<'a> {
    /// For `status` messages.
    pub id: Option<Id<'a>>,
    /// The action.
    pub action: Cow<'a, str>,
}

/// `send_action_goal`: a goal for an action of ROS.
#[derive(Clone, Debug, PartialEq)]
pub struct SendActionGoal<'a> {
    /// What feedback and result carry, and by which it is cancelled. Taken from `/name#id` as in [`CallService`].
    pub id: Option<Id<'a>>,
    /// The action, without `#id`.
    pub action: Cow<'a, str>,
    /// Its type.
    pub action_type: Cow<'a, str>,
    /// The goal, an object, or a list of its fields in order.
    pub args: Body<'a>,
    /// Whether feedback is to be sent.
    pub feedback: bool,
    /// The longest text of feedback and result to send in one piece, in bytes.
    pub fragment_size: Option<u32>,
    /// As in [`CallService`].
    pub compression: Compression,
}

/// `cancel_action_goal`: a goal is to be given up.
#[derive(Clone, Debug, PartialEq)]
pub struct CancelActionGoal<'a> {
    /// That of the goal.
    pub id: Id<'a>,
    /// The action.
    pub action: Cow<'a, str>,
}

/// `action_feedback`: how far a client that pursues a goal has come.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionFeedback<'a> {
    /// That of the goal.
    pub id: Id<'a>,
    /// The action.
    pub action: Cow<'a, str>,
    /// The feedback.
    pub values: Body<'a>,
}

/// `action_result`: what has become of a goal that a client pursued.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionResult<'a> {
    /// That of the goal.
    pub id: Id<'a>,
    /// The action.
    pub action: Cow<'a, str>,
    /// The result.
    pub values: Body<'a>,
    /// As `action_msgs/GoalStatus` numbers it. roslib before 2 says none: then 4, succeeded, or 6, aborted, by `result`.
    pub status: i8,
    /// Whether there is a result; where not, the goal is aborted.
    pub result: bool,
}

/// `fragment`: a piece of the text of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment<'a> {
    /// Of which message.
    pub id: Id<'a>,
    /// The piece. JavaScript may have cut within a character, so it is text only when all pieces are together.
    pub data: Cow<'a, [u8]>,
    /// Which piece, from 0.
    pub num: u32,
    /// Of how many.
    pub total: u32,
}

/// `png`: a message as JSON in the pixels of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Png<'a> {
    /// Where the picture comes in pieces, of which one.
    pub id: Option<Id<'a>>,
    /// The picture, or a piece of it, in base64.
    pub data: Cow<'a, str>,
    /// Where the picture comes in pieces, which one this is and of how many.
    pub piece: Option<(u32, u32)>,
}

impl Png<'_> {
    /// A piece of a picture as a fragment of its `data`, to be put together as those of a message are.
    pub fn fragment(&self) -> Option<Fragment<'_>> {
        let (num, total) = self.piece?;
        let id = self.id.as_ref()?.borrowed();
        Some(Fragment { id, data: Cow::Borrowed(self.data.as_bytes()), num, total })
    }
}

/// `auth`: who the client is, by a hash as rosauth has it, or by a token.
#[derive(Clone, Debug, PartialEq)]
pub struct Auth<'a> {
    /// For `status` messages.
    pub id: Option<Id<'a>>,
    /// A token, which is tsuji's addition; the other members are absent then.
    pub token: Option<Cow<'a, str>>,
    /// SHA-512 of the secret and the members that follow, in hexadecimal.
    pub mac: Cow<'a, str>,
    /// The address of the client.
    pub client: Cow<'a, str>,
    /// The address of the server.
    pub dest: Cow<'a, str>,
    /// A random text.
    pub rand: Cow<'a, str>,
    /// The wall time of the request, in seconds.
    pub t: f64,
    /// What the client may do.
    pub level: Cow<'a, str>,
    /// When its permission ends, wall time in seconds.
    pub end: f64,
}

/// `set_level`: of what the client is to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct SetLevel<'a> {
    /// For `status` messages.
    pub id: Option<Id<'a>>,
    /// Of this and what is graver.
    pub level: Level,
}

/// `status`: what a client tells the server, which only notes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Status<'a> {
    /// What it is about.
    pub id: Option<Id<'a>>,
    /// How grave.
    pub level: Level,
    /// In words.
    pub msg: Cow<'a, str>,
}
