//! From loosely typed input, YAML or JSON, to values of a type.

use super::yaml::Now;
use super::{DynamicMessage, List, Value};
use crate::definition::{Base, FieldType, ScalarKind, Shape};
use crate::types::TypeDescription;
use crate::yaml::{Node, NodeKind, Word, python_float, python_integer, shortened};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

type Nested = Arc<TypeDescription>;

/// Why a text is no value of a type: which field, what was found, what was expected.
#[derive(Clone, PartialEq, Eq)]
pub struct ValueError {
    /// Path of the field, such as `linear.x`; empty for the message itself.
    pub field: String,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// Line and column in the text, from 1, where there is a text.
    pub place: Option<(usize, usize)>,
}

impl ValueError {
    pub(crate) fn new(field: &str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { field: field.into(), found: found.into(), expected: expected.into(), place: None }
    }

    pub(super) fn unknown_field(path: &str, name: &str, ty: &TypeDescription) -> Self {
        let names: Vec<_> = ty.fields().iter().map(|field| field.name.as_str()).collect();
        let expected = match names.as_slice() {
            [] => format!("no field, {} is empty", ty.name()),
            names => format!("a field of {}: {}", ty.name(), names.join(", ")),
        };
        Self::new(path, format!("the name `{name}`"), expected)
    }

    fn within(mut self, outer: &str) -> Self {
        let joint = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{outer}{joint}{}", self.field);
        self
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "field `{}`: ", self.field)?;
        }
        write!(f, "found {}; expected {}", self.found, self.expected)?;
        match self.place {
            Some((line, column)) => write!(f, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ValueError {}

/// A value whose type is to be told by the field that takes it.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    Yaml(&'a Node),
    Json(&'a serde_json::Value),
}

/// Makes a message; fields that the input does not name keep their defaults.
pub(super) fn message(
    ty: &Nested,
    input: Input<'_>,
    now: Option<Now>,
) -> Result<DynamicMessage, ValueError> {
    if let (Some(now), Some(text)) = (now, input.scalar_text())
        && let Some(message) = stamped(ty, text, now)
    {
        return Ok(message);
    }
    let mut message = DynamicMessage::new(ty.clone());
    let Some(entries) = input.entries() else {
        return Err(input.error(format!("a mapping with the fields of {}", ty.name())));
    };
    for (name, value) in entries {
        let Some((position, field)) = ty.field(name) else {
            return Err(ValueError {
                place: value.name_place(),
                ..ValueError::unknown_field("", name, ty)
            });
        };
        message.values[position] =
            field_value(&field.ty, value, now).map_err(|error| error.within(name))?;
    }
    Ok(message)
}

/// What `ros2 topic pub` fills in itself: `auto` for a header, `now` for a time.
fn stamped(ty: &Nested, text: &str, now: Now) -> Option<DynamicMessage> {
    let name = ty.name().to_string();
    let mut message = DynamicMessage::new(ty.clone());
    match (name.as_str(), text) {
        ("std_msgs/msg/Header", "auto") => {
            message.set("stamp.sec", Value::I32(now.sec)).ok()?;
            message.set("stamp.nanosec", Value::U32(now.nanosec)).ok()?;
        }
        ("builtin_interfaces/msg/Time", "now") => {
            message.set("sec", Value::I32(now.sec)).ok()?;
            message.set("nanosec", Value::U32(now.nanosec)).ok()?;
        }
        _ => return None,
    }
    Some(message)
}

fn field_value(
    ty: &FieldType<Nested>,
    input: Input<'_>,
    now: Option<Now>,
) -> Result<Value, ValueError> {
    if ty.shape == Shape::Single {
        return single(&ty.base, input, now, Position::Field);
    }
    let list = list(ty, input, now)?;
    let (right, allowed) = match ty.shape {
        Shape::Array(count) => (list.len() == count as usize, format!("exactly {count}")),
        Shape::Bounded(bound) => (list.len() <= bound as usize, format!("at most {bound}")),
        Shape::Single | Shape::Sequence => (true, String::new()),
    };
    if right {
        return Ok(Value::List(list));
    }
    let found = format!("{} elements", list.len());
    Err(ValueError {
        place: input.place(),
        ..ValueError::new("", found, format!("{allowed} ({ty})"))
    })
}

fn list(ty: &FieldType<Nested>, input: Input<'_>, now: Option<Now>) -> Result<List, ValueError> {
    if let (Base::Scalar(kind), Input::Json(serde_json::Value::String(text))) = (&ty.base, input)
        && matches!(kind, ScalarKind::U8 | ScalarKind::Char | ScalarKind::Byte)
    {
        let expected = || input.error(format!("{ty}, as numbers or in base64"));
        return super::json::from_base64(text).map(List::U8).ok_or_else(expected);
    }
    let Some(items) = input.items() else { return Err(input.error(format!("a sequence ({ty})"))) };
    let mut list = List::empty(&ty.base);
    for (index, item) in items.enumerate() {
        let value = single(&ty.base, item, now, Position::Element)
            .map_err(|error| error.within(&format!("[{index}]")))?;
        // The value was made for this very type.
        if list.push(value).is_err() {
            return Err(item.error(ty.base.to_string()));
        }
    }
    Ok(list)
}

/// Where a value stands: `ros2` turns words into texts and quoted texts into numbers in fields, and not in arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Field,
    Element,
}

fn single(
    base: &Base<Nested>,
    input: Input<'_>,
    now: Option<Now>,
    position: Position,
) -> Result<Value, ValueError> {
    let value = match base {
        Base::Scalar(ScalarKind::Bool) => input.boolean().map(Value::Bool),
        Base::Scalar(ScalarKind::F32) => {
            let value = input.float(position).map(|value| (value, value as f32));
            value
                .filter(|(value, single)| single.is_finite() || !value.is_finite())
                .map(|(_, single)| Value::F32(single))
        }
        Base::Scalar(ScalarKind::F64) => input.float(position).map(Value::F64),
        Base::Scalar(ScalarKind::Byte) => {
            // A quoted digit is the byte that `ros2 topic echo` prints so.
            let number = input.integer(Position::Element);
            let number = number.and_then(|value| Value::integer(ScalarKind::Byte, value));
            number.or_else(|| input.byte().map(Value::U8))
        }
        Base::Scalar(kind) => {
            input.integer(position).and_then(|value| Value::integer(*kind, value))
        }
        Base::String { bound } | Base::WString { bound } => {
            let text = input.text(position).filter(|text| within(base, *bound, text));
            text.map(|text| Value::Text(text.into_owned()))
        }
        Base::Nested(nested) => return message(nested, input, now).map(Value::Message),
    };
    value.ok_or_else(|| match base {
        Base::Scalar(kind) => match kind.integer_range() {
            Some((min, max)) => {
                input.error(format!("{}, a whole number from {min} to {max}", kind.name()))
            }
            None => input.error(kind.name()),
        },
        _ if input.is_word_of_another_type() => {
            input.error(format!("{base}; a text like this stands in quotes"))
        }
        _ => input.error(base.to_string()),
    })
}

fn within(base: &Base<Nested>, bound: Option<u32>, text: &str) -> bool {
    let Some(bound) = bound else { return true };
    let length =
        if matches!(base, Base::WString { .. }) { text.encode_utf16().count() } else { text.len() };
    length <= bound as usize
}

impl fmt::Display for Base<Nested> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(kind) => f.write_str(kind.name()),
            Self::String { bound: None } => f.write_str("string"),
            Self::String { bound: Some(bound) } => write!(f, "string of at most {bound} bytes"),
            Self::WString { bound: None } => f.write_str("wstring"),
            Self::WString { bound: Some(bound) } => {
                write!(f, "wstring of at most {bound} UTF-16 units")
            }
            Self::Nested(nested) => nested.fmt(f),
        }
    }
}

impl<'a> Input<'a> {
    fn error(self, expected: impl Into<String>) -> ValueError {
        ValueError {
            field: String::new(),
            found: self.describe(),
            expected: expected.into(),
            place: self.place(),
        }
    }

    /// Where the name of this value stands.
    fn name_place(self) -> Option<(usize, usize)> {
        match self {
            Self::Yaml(node) => node.name_place.or(Some(node.place)),
            Self::Json(_) => None,
        }
    }

    fn place(self) -> Option<(usize, usize)> {
        match self {
            Self::Yaml(node) => Some(node.place),
            Self::Json(_) => None,
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Yaml(node) => node.describe(),
            Self::Json(serde_json::Value::Array(_)) => "an array".into(),
            Self::Json(serde_json::Value::Object(_)) => "an object".into(),
            Self::Json(value) => shortened(&value.to_string()),
        }
    }

    /// The entries of a mapping. Nothing at all counts as an empty one, as in `ros2 topic pub topic
    /// type`.
    fn entries(self) -> Option<Box<dyn Iterator<Item = (&'a str, Self)> + 'a>> {
        match self {
            Self::Yaml(Node { kind: NodeKind::Mapping(entries), .. }) => {
                Some(Box::new(entries.iter().map(|(name, node)| (name.as_str(), Self::Yaml(node)))))
            }
            Self::Yaml(Node { kind: NodeKind::Scalar { text, plain: true }, .. })
                if text.is_empty() =>
            {
                Some(Box::new(std::iter::empty()))
            }
            Self::Json(serde_json::Value::Object(entries)) => Some(Box::new(
                entries.iter().map(|(name, value)| (name.as_str(), Self::Json(value))),
            )),
            _ => None,
        }
    }

    fn items(self) -> Option<Box<dyn Iterator<Item = Self> + 'a>> {
        match self {
            Self::Yaml(Node { kind: NodeKind::Sequence(items), .. }) => {
                Some(Box::new(items.iter().map(Self::Yaml)))
            }
            Self::Json(serde_json::Value::Array(items)) => {
                Some(Box::new(items.iter().map(Self::Json)))
            }
            _ => None,
        }
    }

    /// A scalar of YAML, quoted or not.
    fn scalar_text(self) -> Option<&'a str> {
        match self {
            Self::Yaml(Node { kind: NodeKind::Scalar { text, .. }, .. }) => Some(text),
            _ => None,
        }
    }

    /// What a scalar of YAML is to the commands of ROS 2.
    fn word(self) -> Option<Word<'a>> {
        match self {
            Self::Yaml(node) => Word::of(node),
            Self::Json(_) => None,
        }
    }

    /// Whether it is a word of YAML that stands for something else than a text.
    fn is_word_of_another_type(self) -> bool {
        self.word().is_some_and(|word| !matches!(word, Word::Text(_)))
            && self.scalar_text().is_some_and(|text| !text.is_empty())
    }

    /// The text of a scalar of YAML that may be read as a number: of any in a field, in an array of one without quotes.
    fn number_text(self, position: Position) -> Option<&'a str> {
        match self {
            Self::Yaml(Node { kind: NodeKind::Scalar { text, plain }, .. })
                if *plain || position == Position::Field =>
            {
                Some(text)
            }
            _ => None,
        }
    }

    fn boolean(self) -> Option<bool> {
        match self {
            Self::Json(value) => value.as_bool(),
            Self::Yaml(_) => match self.word()? {
                Word::Bool(value) => Some(value),
                Word::Integer(0) => Some(false),
                Word::Integer(1) => Some(true),
                _ => None,
            },
        }
    }

    fn integer(self, position: Position) -> Option<i128> {
        let whole = |value: f64| {
            (value.fract() == 0.0 && value.abs() <= 2_f64.powi(53)).then_some(value as i128)
        };
        match self {
            Self::Json(value) => {
                let signed = value.as_i64().map(i128::from);
                signed
                    .or_else(|| value.as_u64().map(i128::from))
                    .or_else(|| value.as_f64().and_then(whole))
            }
            Self::Yaml(_) => match self.word()? {
                Word::Integer(value) => Some(value),
                Word::Float(value) => whole(value),
                Word::Text(_) => python_integer(self.number_text(position)?),
                _ => None,
            },
        }
    }

    fn float(self, position: Position) -> Option<f64> {
        match self {
            // JSON has no word for it, and rosbridge writes null.
            Self::Json(serde_json::Value::Null) => Some(f64::NAN),
            Self::Json(value) => value.as_f64(),
            Self::Yaml(_) => match self.word()? {
                Word::Integer(value) => Some(value as f64),
                Word::Float(value) => Some(value),
                // YAML 1.1 takes `1e3` for a text, and Python reads it.
                Word::Text(_) => python_float(self.number_text(position)?),
                _ => None,
            },
        }
    }

    /// A `byte` as the one character that `ros2 topic echo` prints it as.
    fn byte(self) -> Option<u8> {
        let mut letters = self.scalar_text()?.chars();
        let letter = letters.next()?;
        letters.next().is_none().then(|| u8::try_from(u32::from(letter)).ok())?
    }

    fn text(self, position: Position) -> Option<Cow<'a, str>> {
        match self {
            Self::Json(serde_json::Value::String(text)) => Some(Cow::Borrowed(text)),
            Self::Json(_) => None,
            Self::Yaml(_) => match self.word()? {
                Word::Text(text) => Some(Cow::Borrowed(text)),
                // A date is taken as Python prints it, where that is how it is written.
                Word::Date(text) if position == Position::Field && text.len() == 10 => {
                    Some(Cow::Owned(text))
                }
                word if position == Position::Field => word.python_text(),
                _ => None,
            },
        }
    }
}
