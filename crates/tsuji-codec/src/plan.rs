//! Types as reading and writing want them.

use crate::number::Number;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tsuji_msg::definition::{Base, FieldType, Literal, ScalarKind, Shape};
use tsuji_msg::{List, TypeDescription, TypeName, Value};

/// A message type.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) role: Role,
    /// Bytes that a default value is counted as; what it takes, but for padding.
    pub(crate) default_bytes: usize,
}

/// What rosbridge knows of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing.
    Plain,
    /// `std_msgs/msg/Header`: a `stamp` that is not named is the time now.
    Header {
        /// The field `stamp`.
        stamp: usize,
    },
    /// `builtin_interfaces/msg/Time`: the word `now` is one, and ROS 1's names are understood.
    Time,
    /// `builtin_interfaces/msg/Duration`: ROS 1's names are understood.
    Duration,
}

/// What a name in an object stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// The field at this index.
    Field(usize),
    /// What ROS 1 had, and nobody needs.
    Ignored,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) key: Key,
    pub(crate) ty: FieldType<Arc<Struct>>,
    /// Fewest bytes of one element.
    pub(crate) element_min: usize,
    pub(crate) preset: Preset,
    /// As [`Struct::default_bytes`].
    pub(crate) default_bytes: usize,
}

/// The name of a field as the formats have it.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    /// `,"name":`
    json: Vec<u8>,
    /// A text.
    pub(crate) cbor: Vec<u8>,
    /// With its terminator.
    pub(crate) bson: Vec<u8>,
}

/// The default value that a definition states.
#[derive(Debug)]
pub(crate) enum Preset {
    /// None: zero, `false`, the empty text or list.
    Zero,
    /// Numbers as CDR has them, and how many.
    Numbers(Vec<u8>, usize),
    /// A text, or a list of them.
    Texts(Vec<String>),
}

impl Struct {
    /// Makes ready a type and what it uses, each once.
    pub(crate) fn new(ty: &Arc<TypeDescription>) -> Arc<Self> {
        Self::shared(ty, &mut HashMap::new())
    }

    fn shared<'t>(
        ty: &'t Arc<TypeDescription>,
        known: &mut HashMap<&'t TypeName, Arc<Self>>,
    ) -> Arc<Self> {
        if let Some(known) = known.get(ty.name()) {
            return known.clone();
        }
        let fields: Vec<Field> = ty.fields().iter().map(|field| Field::new(field, known)).collect();
        let default_bytes =
            fields.iter().map(|field| field.default_bytes).fold(1, usize::saturating_add);
        let name = ty.name().to_string();
        let role = Role::of(&name, &fields);
        let new = Arc::new(Self { name, fields, role, default_bytes });
        known.insert(ty.name(), new.clone());
        new
    }

    /// What a name stands for that is looked for from the field `next` on, where it usually is.
    pub(crate) fn member(&self, name: &str, next: usize) -> Option<Member> {
        let is = |field: &Field| field.key.name == name;
        let (before, after) = self.fields.split_at(next.min(self.fields.len()));
        let found = after.iter().position(is).map(|index| index + before.len());
        if let Some(index) = found.or_else(|| before.iter().position(is)) {
            return Some(Member::Field(index));
        }
        match (self.role, name) {
            (Role::Time | Role::Duration, "secs") => Some(Member::Field(0)),
            (Role::Time | Role::Duration, "nsecs") => Some(Member::Field(1)),
            (Role::Header { .. }, "seq") => Some(Member::Ignored),
            _ => None,
        }
    }

    /// The names of the fields, as errors list them.
    pub(crate) fn names(&self) -> String {
        match self.fields.as_slice() {
            [] => format!("no field, {self} is empty"),
            fields => {
                let names: Vec<_> = fields.iter().map(|field| field.key.name.as_str()).collect();
                format!("a field of {self}: {}", names.join(", "))
            }
        }
    }
}

impl fmt::Display for Struct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Role {
    /// A type of the right name that has other fields is like any other.
    fn of(name: &str, fields: &[Field]) -> Self {
        let is = |field: &Field, name: &str, kind| {
            field.key.name == name
                && field.ty.shape == Shape::Single
                && matches!(field.ty.base, Base::Scalar(it) if it == kind)
        };
        let is_instant = |nanosec| match fields {
            [first, second] => is(first, "sec", ScalarKind::I32) && is(second, "nanosec", nanosec),
            _ => false,
        };
        match name {
            "std_msgs/msg/Header" => {
                let stamp = fields.iter().position(|field| {
                    let is_time = field.ty.base.nested().is_some_and(|it| it.role == Self::Time);
                    field.key.name == "stamp" && field.ty.shape == Shape::Single && is_time
                });
                stamp.map_or(Self::Plain, |stamp| Self::Header { stamp })
            }
            "builtin_interfaces/msg/Time" if is_instant(ScalarKind::U32) => Self::Time,
            "builtin_interfaces/msg/Duration" if is_instant(ScalarKind::U32) => Self::Duration,
            _ => Self::Plain,
        }
    }
}

impl Field {
    fn new<'t>(
        field: &'t tsuji_msg::Field,
        known: &mut HashMap<&'t TypeName, Arc<Struct>>,
    ) -> Self {
        let base = match &field.ty.base {
            Base::Scalar(kind) => Base::Scalar(*kind),
            Base::String { bound } => Base::String { bound: *bound },
            Base::WString { bound } => Base::WString { bound: *bound },
            Base::Nested(nested) => Base::Nested(Struct::shared(nested, known)),
        };
        let preset = field.default.as_ref().map_or(Preset::Zero, |it| Preset::of(it, field));
        let element = match &base {
            Base::Nested(nested) => nested.default_bytes,
            _ => field.ty.base.min_size(),
        };
        let listed = match field.ty.shape {
            Shape::Single => element,
            Shape::Array(count) => element.saturating_mul(count as usize),
            Shape::Sequence | Shape::Bounded(_) => size_of::<u32>(),
        };
        Self {
            key: Key::new(&field.name),
            element_min: field.ty.base.min_size(),
            ty: FieldType { base, shape: field.ty.shape },
            default_bytes: listed.saturating_add(preset.bytes()),
            preset,
        }
    }
}

impl Key {
    fn new(name: &str) -> Self {
        let mut cbor = Vec::new();
        crate::cbor::write_text(name, &mut cbor);
        Self {
            name: name.to_owned(),
            json: format!(",\"{name}\":").into_bytes(),
            cbor,
            bson: format!("{name}\0").into_bytes(),
        }
    }

    /// The name in an object of JSON without white space, with the comma before it or as the first.
    #[inline]
    pub(crate) fn json(&self, is_first: bool) -> &[u8] {
        if is_first { &self.json[1..] } else { &self.json }
    }
}

impl Preset {
    fn of(literal: &Literal, field: &tsuji_msg::Field) -> Self {
        match Value::from_literal(literal, &field.ty.base) {
            Some(Value::Text(text)) => Self::Texts(vec![text]),
            Some(Value::List(List::Text(texts))) => Self::Texts(texts),
            Some(Value::List(list)) => Self::numbers(&list),
            Some(value) => {
                let mut list = List::empty(&field.ty.base);
                // A number made for this very type.
                match list.push(value) {
                    Ok(()) => Self::numbers(&list),
                    Err(_) => Self::Zero,
                }
            }
            None => Self::Zero,
        }
    }

    fn numbers(list: &List) -> Self {
        fn all<T: Number>(items: &[T]) -> Vec<u8> {
            let mut bytes = Vec::with_capacity(size_of_val(items));
            for item in items {
                item.write_cdr(&mut bytes);
            }
            bytes
        }
        let bytes = match list {
            List::Bool(items) => items.iter().map(|item| u8::from(*item)).collect(),
            List::U8(items) => items.clone(),
            List::I8(items) => all(items),
            List::U16(items) => all(items),
            List::I16(items) => all(items),
            List::U32(items) => all(items),
            List::I32(items) => all(items),
            List::U64(items) => all(items),
            List::I64(items) => all(items),
            List::F32(items) => all(items),
            List::F64(items) => all(items),
            List::Text(_) | List::Message(_) => return Self::Zero,
        };
        Self::Numbers(bytes, list.len())
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Zero => 0,
            Self::Numbers(bytes, _) => bytes.len(),
            Self::Texts(texts) => texts.iter().map(|text| 4 * text.len() + 4).sum(),
        }
    }
}

/// What may stand for one value, as errors say it.
pub(crate) fn expectation(base: &Base<Arc<Struct>>) -> String {
    match base {
        Base::Scalar(kind) => match kind.integer_range() {
            Some((min, max)) => format!("{}, a whole number from {min} to {max}", kind.name()),
            None => kind.name().to_owned(),
        },
        Base::String { bound: None } => "string".to_owned(),
        Base::String { bound: Some(bound) } => format!("string of at most {bound} bytes"),
        Base::WString { bound: None } => "wstring".to_owned(),
        Base::WString { bound: Some(bound) } => {
            format!("wstring of at most {bound} UTF-16 units")
        }
        Base::Nested(nested) => format!("an object with the fields of {nested}"),
    }
}
