//! The members of one object that the protocol knows: where each value lies, found in one pass and read when it is wanted.

use std::borrow::Cow;

use crate::operation::{Body, Encoding};
use crate::{bson, cbor, json};

/// Names every member that means something, with its spelling on the wire.
macro_rules! fields {
    ($($field:ident = $name:literal,)*) => {
        /// A member that some operation, or an option within it, knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Field { $($field),* }

        impl Field {
            const NAMES: &[&str] = &[$(text($name)),*];

            /// The member of that name. Any other is passed over.
            pub(crate) fn of(key: &[u8]) -> Option<Self> {
                match key {
                    $($name => Some(Self::$field),)*
                    _ => None,
                }
            }
        }
    };
}

fields! {
    Op = b"op",
    Id = b"id",
    Topic = b"topic",
    Type = b"type",
    Msg = b"msg",
    Latch = b"latch",
    QueueSize = b"queue_size",
    Qos = b"qos",
    ThrottleRate = b"throttle_rate",
    QueueLength = b"queue_length",
    FragmentSize = b"fragment_size",
    Compression = b"compression",
    Service = b"service",
    Args = b"args",
    Timeout = b"timeout",
    Values = b"values",
    Result = b"result",
    Action = b"action",
    ActionType = b"action_type",
    Feedback = b"feedback",
    Status = b"status",
    Data = b"data",
    Num = b"num",
    Total = b"total",
    Mac = b"mac",
    Client = b"client",
    Dest = b"dest",
    Rand = b"rand",
    T = b"t",
    Level = b"level",
    End = b"end",
    Token = b"token",
    MessageIntervall = b"message_intervall",
    Png = b"png",
    History = b"history",
    Depth = b"depth",
    Reliability = b"reliability",
    Durability = b"durability",
    Deadline = b"deadline",
    Lifespan = b"lifespan",
    Sec = b"sec",
    Nanosec = b"nanosec",
    Secs = b"secs",
    Nsecs = b"nsecs",
    Seconds = b"seconds",
    Nanoseconds = b"nanoseconds",
}

const fn text(name: &'static [u8]) -> &'static str {
    match std::str::from_utf8(name) {
        Ok(text) => text,
        Err(_) => "",
    }
}

impl Field {
    const COUNT: usize = Self::NAMES.len();

    /// As it stands on the wire.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// What a value is, as far as one pass tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Absent,
    Null,
    False,
    True,
    /// Of JSON or CBOR, which say by themselves which.
    Number,
    /// The three numbers of BSON.
    Double,
    Int32,
    Int64,
    Text,
    /// A JSON text with a backslash in it.
    EscapedText,
    Bytes,
    Object,
    Array,
    /// What no operation uses: a date, a regular expression.
    Other,
}

/// A message that is no message, and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) at: usize,
    pub(crate) expected: &'static str,
}

/// One value, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
    Object,
    Array,
    Other,
}

/// The known members of one object. A key that comes twice counts where it comes last, as in `JSON.parse`.
pub(crate) struct Members<'a> {
    pub(crate) encoding: Encoding,
    pub(crate) bytes: &'a [u8],
    kinds: [Kind; Field::COUNT],
    /// Where each whole value starts and ends as it stands: a JSON text with its quotes, a BSON text with its length. Apart from
    /// the kinds, so that all is made empty at one stroke.
    starts: [u32; Field::COUNT],
    ends: [u32; Field::COUNT],
}

impl<'a> Members<'a> {
    #[inline]
    pub(crate) fn new(encoding: Encoding, bytes: &'a [u8]) -> Self {
        Self {
            encoding,
            bytes,
            kinds: [Kind::Absent; Field::COUNT],
            starts: [0; Field::COUNT],
            ends: [0; Field::COUNT],
        }
    }

    /// Finds the members. What was found before the place that is broken stays found.
    pub(crate) fn find(&mut self, nesting_max: usize) -> Result<(), Broken> {
        if u32::try_from(self.bytes.len()).is_err() {
            return Err(Broken { at: 0, expected: "a message of less than 4 GiB" });
        }
        let (encoding, bytes) = (self.encoding, self.bytes);
        // All places fit, as was just seen.
        let mut found = |field: Field, start: usize, end: usize, kind| {
            self.kinds[field as usize] = kind;
            self.starts[field as usize] = start as u32;
            self.ends[field as usize] = end as u32;
        };
        match encoding {
            Encoding::Json => json::members(bytes, nesting_max, &mut found),
            Encoding::Cbor => cbor::members(bytes, nesting_max, &mut found),
            Encoding::Bson => bson::members(bytes, &mut found),
        }
    }

    fn place(&self, field: Field) -> std::ops::Range<usize> {
        self.starts[field as usize] as usize..self.ends[field as usize] as usize
    }

    /// What the value is.
    #[inline]
    pub(crate) fn kind(&self, field: Field) -> Kind {
        self.kinds[field as usize]
    }

    /// Whether the member is there and says something; `null` says nothing.
    #[inline]
    pub(crate) fn has(&self, field: Field) -> bool {
        !matches!(self.kind(field), Kind::Absent | Kind::Null)
    }

    /// The value as it stands.
    #[inline]
    pub(crate) fn raw(&self, field: Field) -> &'a [u8] {
        self.bytes.get(self.place(field)).unwrap_or_default()
    }

    /// The value handed on unread.
    pub(crate) fn body(&self, field: Field) -> Body<'a> {
        if !self.has(field) {
            return Body::None;
        }
        let raw = self.raw(field);
        match self.encoding {
            Encoding::Json => Body::Json(raw),
            Encoding::Cbor => Body::Cbor(raw),
            Encoding::Bson => Body::Bson { kind: bson::kind_byte(self.kind(field)), value: raw },
        }
    }

    /// What stands between the quotes of a JSON text without escapes, which is what every client writes.
    #[inline]
    pub(crate) fn plain_text(&self, field: Field) -> Option<&'a [u8]> {
        if self.encoding != Encoding::Json || self.kind(field) != Kind::Text {
            return None;
        }
        let place = self.place(field);
        self.bytes.get(place.start + 1..place.end - 1)
    }

    /// A text; `None` where it is absent or something else, for which see [`Self::value`].
    #[inline]
    pub(crate) fn text(&self, field: Field) -> Option<Cow<'a, str>> {
        if let Some(text) = self.plain_text(field) {
            return std::str::from_utf8(text).ok().map(Cow::Borrowed);
        }
        match self.value(field) {
            Ok(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The value read; `Null` where it is absent. The error says what is wrong with it.
    pub(crate) fn value(&self, field: Field) -> Result<Value<'a>, &'static str> {
        let raw = self.raw(field);
        match self.kind(field) {
            Kind::Absent | Kind::Null => Ok(Value::Null),
            Kind::False => Ok(Value::Bool(false)),
            Kind::True => Ok(Value::Bool(true)),
            Kind::Object => Ok(Value::Object),
            Kind::Array => Ok(Value::Array),
            Kind::Other => Ok(Value::Other),
            kind => match self.encoding {
                Encoding::Json => json::value(raw, kind),
                Encoding::Cbor => cbor::value(raw),
                Encoding::Bson => bson::value(raw, kind),
            },
        }
    }

    /// The members of the value, which is an object.
    pub(crate) fn object(&self, field: Field, nesting_max: usize) -> Result<Self, Broken> {
        let mut members = Self::new(self.encoding, self.raw(field));
        members.find(nesting_max)?;
        Ok(members)
    }
}
