//! From the bytes of one message to an operation.

use std::borrow::Cow;
use std::time::Duration;

use tsuji_core::Qos;

use crate::fields::{Broken, Field, Kind, Members, Value};
use crate::json;
use crate::operation::{
    ActionFeedback, ActionResult, Advertise, AdvertiseAction, AdvertiseService, Auth, Body,
    CallService, CancelActionGoal, Compression, Encoding, Fragment, Id, Incoming, Level, Operation,
    Png, Publish, QUEUE_SIZE, SendActionGoal, ServiceResponse, SessionOptions, SetLevel, Status,
    Subscribe, Unadvertise, UnadvertiseAction, UnadvertiseService, Unsubscribe,
};
use crate::qos::{self, QosRequest};
use crate::refusal::{Refusal, excerpt};

/// How many levels of objects and lists a message may have where nothing else is set.
pub const NESTING_MAX: usize = 64;

/// Reads one message of JSON, at most [`NESTING_MAX`] deep.
pub fn parse_json(text: &[u8]) -> Result<Incoming<'_>, Refusal> {
    parse(Encoding::Json, text, NESTING_MAX)
}

/// Reads one message of CBOR, at most [`NESTING_MAX`] deep.
pub fn parse_cbor(bytes: &[u8]) -> Result<Incoming<'_>, Refusal> {
    parse(Encoding::Cbor, bytes, NESTING_MAX)
}

/// Reads one document of BSON.
pub fn parse_bson(bytes: &[u8]) -> Result<Incoming<'_>, Refusal> {
    parse(Encoding::Bson, bytes, NESTING_MAX)
}

/// Reads one message, at most `nesting_max` deep; of BSON whoever reads the body counts the levels.
///
/// Members that no operation knows are passed over. `null` is as good as absent. Bodies are handed on unread, so what is
/// wrong within them is found by whoever reads them.
pub fn parse(
    encoding: Encoding,
    bytes: &[u8],
    nesting_max: usize,
) -> Result<Incoming<'_>, Refusal> {
    let mut reading =
        Reading { members: Members::new(encoding, bytes), operation: None, nesting_max };
    if let Err(broken) = reading.members.find(nesting_max) {
        return Err(reading.broken(broken));
    }
    let mut incoming =
        Incoming { operation: reading.operation()?, session: SessionOptions::default() };
    if reading.has_session_options() {
        incoming.session = reading.session()?;
    }
    Ok(incoming)
}

const OPERATIONS: &str = "advertise, unadvertise, publish, subscribe, unsubscribe, call_service, \
    service_response, advertise_service, unadvertise_service, advertise_action, unadvertise_action, \
    send_action_goal, cancel_action_goal, action_feedback, action_result, fragment, png, auth, \
    set_level or status";

/// Names every operation, with its spelling on the wire and how its members are read.
macro_rules! operations {
    ($($op:ident = $name:literal => $read:ident,)*) => {
        /// An operation without its members.
        #[derive(Clone, Copy)]
        enum Op { $($op),* }

        impl Op {
            fn of(name: &[u8]) -> Option<Self> {
                match name {
                    $($name => Some(Self::$op),)*
                    _ => None,
                }
            }

            fn name(self) -> &'static str {
                match self {
                    $(Self::$op => stringify!($read),)*
                }
            }
        }

        impl<'a> Reading<'a> {
            fn read(&self, op: Op) -> Result<Operation<'a>, Refusal> {
                match op {
                    $(Op::$op => self.$read(),)*
                }
            }
        }
    };
}

operations! {
    Publish = b"publish" => publish,
    CallService = b"call_service" => call_service,
    ServiceResponse = b"service_response" => service_response,
    Fragment = b"fragment" => fragment,
    ActionFeedback = b"action_feedback" => action_feedback,
    Subscribe = b"subscribe" => subscribe,
    Unsubscribe = b"unsubscribe" => unsubscribe,
    Advertise = b"advertise" => advertise,
    Unadvertise = b"unadvertise" => unadvertise,
    AdvertiseService = b"advertise_service" => advertise_service,
    UnadvertiseService = b"unadvertise_service" => unadvertise_service,
    AdvertiseAction = b"advertise_action" => advertise_action,
    UnadvertiseAction = b"unadvertise_action" => unadvertise_action,
    SendActionGoal = b"send_action_goal" => send_action_goal,
    CancelActionGoal = b"cancel_action_goal" => cancel_action_goal,
    ActionResult = b"action_result" => action_result,
    Png = b"png" => png,
    Auth = b"auth" => auth,
    SetLevel = b"set_level" => set_level,
    Status = b"status" => status,
}

/// A message whose members were found.
struct Reading<'a> {
    members: Members<'a>,
    operation: Option<&'static str>,
    nesting_max: usize,
}

impl<'a> Reading<'a> {
    fn operation(&mut self) -> Result<Operation<'a>, Refusal> {
        let op = match self.op() {
            Some(op) => op,
            None if self.members.text(Field::Op).is_some() => {
                return Err(self.refuse(Field::Op, OPERATIONS));
            }
            None => return Err(self.refuse(Field::Op, TEXT)),
        };
        self.operation = Some(op.name());
        self.read(op)
    }

    #[inline]
    fn op(&self) -> Option<Op> {
        match self.members.plain_text(Field::Op) {
            Some(name) => Op::of(name),
            None => self.members.text(Field::Op).and_then(|it| Op::of(it.as_bytes())),
        }
    }

    #[inline]
    fn publish(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::Publish(Publish {
            id: self.id()?,
            topic: self.name(Field::Topic)?,
            msg: self.body(Field::Msg),
            latch: self.flag(Field::Latch)?,
            queue_size: self.count(Field::QueueSize)?,
            qos: self.qos()?,
        }))
    }

    fn advertise(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::Advertise(Advertise {
            id: self.id()?,
            topic: self.name(Field::Topic)?,
            ty: self.name(Field::Type)?,
            latch: self.flag(Field::Latch)?.unwrap_or(false),
            queue_size: self.count(Field::QueueSize)?.unwrap_or(QUEUE_SIZE),
            qos: self.qos()?,
        }))
    }

    fn unadvertise(&self) -> Result<Operation<'a>, Refusal> {
        let (id, topic) = (self.id()?, self.name(Field::Topic)?);
        Ok(Operation::Unadvertise(Unadvertise { id, topic }))
    }

    fn subscribe(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::Subscribe(Subscribe {
            id: self.id()?,
            topic: self.name(Field::Topic)?,
            ty: self.optional_name(Field::Type)?,
            throttle_rate: self.throttle_rate()?,
            queue_length: self.queue_length()?,
            fragment_size: self.fragment_size()?,
            compression: self.compression()?,
            qos: self.qos()?,
        }))
    }

    fn unsubscribe(&self) -> Result<Operation<'a>, Refusal> {
        let (id, topic) = (self.id()?, self.name(Field::Topic)?);
        Ok(Operation::Unsubscribe(Unsubscribe { id, topic }))
    }

    fn call_service(&self) -> Result<Operation<'a>, Refusal> {
        let (id, service) = self.id_and_name(Field::Service)?;
        Ok(Operation::CallService(CallService {
            id,
            service,
            ty: self.optional_name(Field::Type)?,
            args: self.body(Field::Args),
            timeout: self.timeout()?,
            fragment_size: self.fragment_size()?,
            compression: self.compression()?,
        }))
    }

    fn service_response(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::ServiceResponse(ServiceResponse {
            id: self.id()?,
            service: self.name(Field::Service)?,
            values: self.body(Field::Values),
            result: self.flag(Field::Result)?.unwrap_or(true),
        }))
    }

    fn advertise_service(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::AdvertiseService(AdvertiseService {
            id: self.id()?,
            service: self.name(Field::Service)?,
            ty: self.name(Field::Type)?,
        }))
    }

    fn unadvertise_service(&self) -> Result<Operation<'a>, Refusal> {
        let (id, service) = (self.id()?, self.name(Field::Service)?);
        Ok(Operation::UnadvertiseService(UnadvertiseService { id, service }))
    }

    fn advertise_action(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::AdvertiseAction(AdvertiseAction {
            id: self.id()?,
            action: self.name(Field::Action)?,
            ty: self.name(Field::Type)?,
        }))
    }

    fn unadvertise_action(&self) -> Result<Operation<'a>, Refusal> {
        let (id, action) = (self.id()?, self.name(Field::Action)?);
        Ok(Operation::UnadvertiseAction(UnadvertiseAction { id, action }))
    }

    fn send_action_goal(&self) -> Result<Operation<'a>, Refusal> {
        let (id, action) = self.id_and_name(Field::Action)?;
        Ok(Operation::SendActionGoal(SendActionGoal {
            id,
            action,
            action_type: self.name(Field::ActionType)?,
            args: self.body(Field::Args),
            feedback: self.flag(Field::Feedback)?.unwrap_or(false),
            fragment_size: self.fragment_size()?,
            compression: self.compression()?,
        }))
    }

    fn cancel_action_goal(&self) -> Result<Operation<'a>, Refusal> {
        let (id, action) = self.id_and_name(Field::Action)?;
        let id = id.ok_or_else(|| self.refuse(Field::Id, ID))?;
        Ok(Operation::CancelActionGoal(CancelActionGoal { id, action }))
    }

    fn action_feedback(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::ActionFeedback(ActionFeedback {
            id: self.needed_id()?,
            action: self.name(Field::Action)?,
            values: self.body(Field::Values),
        }))
    }

    fn action_result(&self) -> Result<Operation<'a>, Refusal> {
        const STATUS: &str = "the number of a goal status, -1 to 6";
        const SUCCEEDED: i8 = 4;
        const ABORTED: i8 = 6;
        let result = self.flag(Field::Result)?.unwrap_or(true);
        let status = match self.value(Field::Status)? {
            Value::Null => Some(if result { SUCCEEDED } else { ABORTED }),
            Value::Integer(it) => i8::try_from(it).ok().filter(|it| (-1..=ABORTED).contains(it)),
            _ => None,
        };
        Ok(Operation::ActionResult(ActionResult {
            id: self.needed_id()?,
            action: self.name(Field::Action)?,
            values: self.body(Field::Values),
            status: status.ok_or_else(|| self.refuse(Field::Status, STATUS))?,
            result,
        }))
    }

    fn fragment(&self) -> Result<Operation<'a>, Refusal> {
        let data = match self.members.encoding {
            Encoding::Json => self.pieced_text()?,
            _ => match self.text(Field::Data)? {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            },
        };
        Ok(Operation::Fragment(Fragment {
            id: self.needed_id()?,
            data,
            num: self.needed_count(Field::Num)?,
            total: self.needed_count(Field::Total)?,
        }))
    }

    fn pieced_text(&self) -> Result<Cow<'a, [u8]>, Refusal> {
        let raw = self.members.raw(Field::Data);
        let kind = match raw.first() {
            Some(b'"') if raw.contains(&b'\\') => Kind::EscapedText,
            Some(b'"') => Kind::Text,
            _ => return Err(self.refuse(Field::Data, TEXT)),
        };
        json::text_in_pieces(raw, kind).map_err(|expected| self.refuse(Field::Data, expected))
    }

    fn png(&self) -> Result<Operation<'a>, Refusal> {
        let piece = self.count(Field::Num)?.zip(self.count(Field::Total)?);
        Ok(Operation::Png(Png { id: self.id()?, data: self.text(Field::Data)?, piece }))
    }

    fn auth(&self) -> Result<Operation<'a>, Refusal> {
        let token = self.optional_text(Field::Token)?;
        let needed = |field| match &token {
            Some(_) => Ok(self.optional_text(field)?.unwrap_or_default()),
            None => self.text(field),
        };
        let time = |field| match self.value(field)? {
            Value::Integer(it) => Ok(it as f64),
            Value::Float(it) => Ok(it),
            Value::Null if token.is_some() => Ok(0.0),
            _ => Err(self.refuse(field, "a time in seconds")),
        };
        Ok(Operation::Auth(Box::new(Auth {
            id: self.id()?,
            mac: needed(Field::Mac)?,
            client: needed(Field::Client)?,
            dest: needed(Field::Dest)?,
            rand: needed(Field::Rand)?,
            t: time(Field::T)?,
            level: needed(Field::Level)?,
            end: time(Field::End)?,
            token,
        })))
    }

    fn set_level(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::SetLevel(SetLevel { id: self.id()?, level: self.level()? }))
    }

    fn status(&self) -> Result<Operation<'a>, Refusal> {
        Ok(Operation::Status(Status {
            id: self.id()?,
            level: self.level()?,
            msg: self.text(Field::Msg)?,
        }))
    }

    fn has_session_options(&self) -> bool {
        [Field::FragmentSize, Field::MessageIntervall, Field::Png]
            .into_iter()
            .any(|field| self.members.has(field))
    }

    #[cold]
    fn session(&self) -> Result<SessionOptions, Refusal> {
        let owns_fragment_size =
            matches!(self.operation, Some("subscribe" | "call_service" | "send_action_goal"));
        // An operation that is itself a picture has no such option.
        let png = match self.operation {
            Some("png") => None,
            _ => match self.value(Field::Png)? {
                Value::Null => None,
                Value::Bool(it) => Some(it),
                Value::Text(word) => Some(word == "png"),
                _ => return Err(self.refuse(Field::Png, "true, false or \"png\"")),
            },
        };
        Ok(SessionOptions {
            fragment_size: if owns_fragment_size { None } else { self.fragment_size()? },
            message_interval: self.seconds(Field::MessageIntervall)?,
            png,
        })
    }

    fn value(&self, field: Field) -> Result<Value<'a>, Refusal> {
        self.members.value(field).map_err(|expected| self.refuse(field, expected))
    }

    fn text(&self, field: Field) -> Result<Cow<'a, str>, Refusal> {
        self.optional_text(field)?.ok_or_else(|| self.refuse(field, TEXT))
    }

    /// A name, which is kept as long as the client is there.
    #[inline]
    fn name(&self, field: Field) -> Result<Cow<'a, str>, Refusal> {
        self.optional_name(field)?.ok_or_else(|| self.refuse(field, TEXT))
    }

    #[inline]
    fn optional_name(&self, field: Field) -> Result<Option<Cow<'a, str>>, Refusal> {
        let name = self.optional_text(field)?;
        match &name {
            Some(text) if text.len() > NAME_BYTES_MAX => Err(self.refuse(field, SHORT_TEXT)),
            _ => Ok(name),
        }
    }

    #[inline]
    fn optional_text(&self, field: Field) -> Result<Option<Cow<'a, str>>, Refusal> {
        if !self.members.has(field) {
            return Ok(None);
        }
        match self.members.text(field) {
            Some(text) => Ok(Some(text)),
            None => Err(self.not_text(field)),
        }
    }

    #[cold]
    fn not_text(&self, field: Field) -> Refusal {
        let expected = match self.members.value(field) {
            Err(expected) => expected,
            Ok(_) => TEXT,
        };
        self.refuse(field, expected)
    }

    #[inline]
    fn id(&self) -> Result<Option<Id<'a>>, Refusal> {
        if let Some(text) = self.members.text(Field::Id) {
            if text.len() > NAME_BYTES_MAX {
                return Err(self.refuse(Field::Id, SHORT_TEXT));
            }
            return Ok(Some(Id::Text(text)));
        }
        match self.value(Field::Id)? {
            Value::Integer(it) => Ok(Some(Id::Integer(it))),
            Value::Null => Ok(None),
            _ => Err(self.refuse(Field::Id, ID)),
        }
    }

    fn needed_id(&self) -> Result<Id<'a>, Refusal> {
        self.id()?.ok_or_else(|| self.refuse(Field::Id, ID))
    }

    /// A name that may have the id behind a `#`, as ROS 1 clients of old write it.
    fn id_and_name(&self, field: Field) -> Result<(Option<Id<'a>>, Cow<'a, str>), Refusal> {
        let id = self.id()?;
        let name = self.name(field)?;
        let Some(hash) = name.find('#') else { return Ok((id, name)) };
        let (id, name) = match name {
            Cow::Borrowed(text) => (
                id.or_else(|| Some(Id::Text(Cow::Borrowed(&text[hash + 1..])))),
                Cow::Borrowed(&text[..hash]),
            ),
            Cow::Owned(text) => (
                id.or_else(|| Some(Id::Text(Cow::Owned(text[hash + 1..].to_owned())))),
                Cow::Owned(text[..hash].to_owned()),
            ),
        };
        Ok((id, name))
    }

    #[inline]
    fn flag(&self, field: Field) -> Result<Option<bool>, Refusal> {
        match self.members.kind(field) {
            Kind::True => Ok(Some(true)),
            Kind::False => Ok(Some(false)),
            Kind::Absent | Kind::Null => Ok(None),
            _ => Err(self.refuse(field, "true or false")),
        }
    }

    /// A whole number. Python's `3.5` as a total of fragments, which rosbridge writes itself, is 3.
    #[inline]
    fn count(&self, field: Field) -> Result<Option<u32>, Refusal> {
        if !self.members.has(field) {
            return Ok(None);
        }
        let count = match self.value(field)? {
            Value::Integer(it) => u32::try_from(it).ok(),
            Value::Float(it) if (0.0..=f64::from(u32::MAX)).contains(&it) => Some(it as u32),
            _ => None,
        };
        count.map(Some).ok_or_else(|| self.refuse(field, COUNT))
    }

    fn needed_count(&self, field: Field) -> Result<u32, Refusal> {
        self.count(field)?.ok_or_else(|| self.refuse(field, COUNT))
    }

    fn fragment_size(&self) -> Result<Option<u32>, Refusal> {
        match self.count(Field::FragmentSize)? {
            Some(0) => Err(self.refuse(Field::FragmentSize, "a number of bytes, at least 1")),
            size => Ok(size),
        }
    }

    /// How many samples wait; fewer than none is none, as in rosbridge.
    fn queue_length(&self) -> Result<u32, Refusal> {
        match self.value(Field::QueueLength)? {
            Value::Integer(..0) => Ok(0),
            Value::Float(it) if it < 0.0 => Ok(0),
            _ => Ok(self.count(Field::QueueLength)?.unwrap_or(0)),
        }
    }

    fn throttle_rate(&self) -> Result<Duration, Refusal> {
        let milliseconds = match self.value(Field::ThrottleRate)? {
            Value::Null => return Ok(Duration::ZERO),
            Value::Integer(..0) => return Ok(Duration::ZERO),
            Value::Float(it) if it < 0.0 => return Ok(Duration::ZERO),
            Value::Integer(it) => u64::try_from(it).ok().map(Duration::from_millis),
            value => qos::seconds(&value).map(|it| it / 1000),
        };
        milliseconds
            .map(|it| it.min(Qos::DURATION_MAX))
            .ok_or_else(|| self.refuse(Field::ThrottleRate, "milliseconds"))
    }

    /// How long to wait; zero and less is for ever.
    fn timeout(&self) -> Result<Option<Duration>, Refusal> {
        let seconds = match self.value(Field::Timeout)? {
            Value::Integer(it) => Some(it as f64),
            Value::Float(it) => Some(it),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        match seconds {
            Some(seconds) if seconds <= 0.0 => Ok(Some(Duration::ZERO)),
            _ => self.seconds_or(Field::Timeout, "seconds; 0 or less for as long as it takes"),
        }
    }

    /// Seconds; a text of a number is one too, as in rosbridge.
    fn seconds(&self, field: Field) -> Result<Option<Duration>, Refusal> {
        self.seconds_or(field, "seconds, which are not negative")
    }

    fn seconds_or(
        &self,
        field: Field,
        expected: &'static str,
    ) -> Result<Option<Duration>, Refusal> {
        if !self.members.has(field) {
            return Ok(None);
        }
        let seconds = match self.value(field)? {
            Value::Text(text) => {
                text.trim().parse().ok().and_then(|it| qos::seconds(&Value::Float(it)))
            }
            value => qos::seconds(&value),
        };
        seconds
            .map(|it| Some(it.min(Qos::DURATION_MAX)))
            .ok_or_else(|| self.refuse(field, expected))
    }

    /// A word that is none of them is as good as `none`, as in rosbridge.
    fn compression(&self) -> Result<Compression, Refusal> {
        let word = self.optional_text(Field::Compression)?;
        Ok(word.and_then(|word| Compression::of(&word)).unwrap_or_default())
    }

    fn level(&self) -> Result<Level, Refusal> {
        Level::of(&self.text(Field::Level)?)
            .ok_or_else(|| self.refuse(Field::Level, "none, error, warning or info"))
    }

    #[inline]
    fn qos(&self) -> Result<Option<Box<QosRequest>>, Refusal> {
        if !self.members.has(Field::Qos) {
            return Ok(None);
        }
        if self.value(Field::Qos)? != Value::Object {
            return Err(self.refuse(Field::Qos, "an object"));
        }
        let members = self
            .members
            .object(Field::Qos, self.nesting_max)
            .map_err(|broken| self.refuse(Field::Qos, broken.expected))?;
        let qos = qos::read(&members, self.nesting_max).map_err(|fault| Refusal {
            field: Some(fault.field),
            found: fault.found,
            expected: fault.expected.into(),
            ..self.refuse(Field::Qos, "")
        })?;
        Ok(Some(Box::new(qos)))
    }

    #[inline]
    fn body(&self, field: Field) -> Body<'a> {
        self.members.body(field)
    }

    #[cold]
    fn refuse(&self, field: Field, expected: &'static str) -> Refusal {
        let found = if self.members.has(field) {
            excerpt(self.members.raw(field))
        } else {
            "nothing".to_owned()
        };
        Refusal {
            operation: self.operation,
            id: self.readable_id(),
            name: self.readable_name(),
            field: Some(field.name()),
            found,
            expected: expected.into(),
        }
    }

    #[cold]
    fn broken(&mut self, broken: Broken) -> Refusal {
        self.operation = self.op().map(Op::name);
        let rest = self.members.bytes.get(broken.at..).unwrap_or_default();
        let found = match (rest, self.members.encoding) {
            ([], _) => format!("the end, at byte {}", broken.at),
            (rest, Encoding::Json) => {
                format!("{} at byte {}", excerpt(&rest[..rest.len().min(16)]), broken.at)
            }
            ([byte, ..], _) => format!("{byte:#04x} at byte {}", broken.at),
        };
        Refusal {
            operation: self.operation,
            id: self.readable_id(),
            name: self.readable_name(),
            field: None,
            found,
            expected: broken.expected.into(),
        }
    }

    /// The service or action of an operation that is answered.
    fn readable_name(&self) -> Option<Box<str>> {
        let field = match self.operation {
            Some("call_service") => Field::Service,
            Some("send_action_goal") => Field::Action,
            _ => return None,
        };
        let name = self.members.text(field).filter(|it| it.len() <= NAME_BYTES_MAX)?;
        Some(name.split('#').next().unwrap_or_default().into())
    }

    /// The id of what is refused, which may stand behind the name.
    fn readable_id(&self) -> Option<Id<'static>> {
        let behind = || {
            let field = match self.operation {
                Some("call_service") => Field::Service,
                Some("send_action_goal") => Field::Action,
                _ => return None,
            };
            let name = self.members.text(field).filter(|it| it.len() <= NAME_BYTES_MAX)?;
            let (_, id) = name.split_once('#')?;
            Some(Id::Text(Cow::Owned(id.to_owned())))
        };
        if !self.members.has(Field::Id) {
            return behind();
        }
        match self.members.value(Field::Id) {
            // A status message repeats it, so that it is no way to have much sent.
            Ok(Value::Text(text)) if text.len() <= NAME_BYTES_MAX => {
                Some(Id::Text(Cow::Owned(text.into_owned())))
            }
            Ok(Value::Integer(it)) => Some(Id::Integer(it)),
            _ => None,
        }
    }
}

/// The longest id or name, in bytes; names of ROS have at most 255.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

const TEXT: &str = "a text";
const SHORT_TEXT: &str = "a text of at most 1024 bytes";
const ID: &str = "a text or a whole number";
const COUNT: &str = "a whole number from 0 to 4294967295";
