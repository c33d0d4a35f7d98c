//! Types of ROS 1: their definitions, and the MD5 sums by which nodes of ROS 1 recognise each other's types.
//!
//! A type comes from the text that a connection header carries, see [`MessageType::parse`], or is what ROS 1 has for a
//! type of ROS 2, see [`MessageType::from_ros2`].

mod derive;
mod error;
mod text;

pub use error::TypeError;

use crate::mapping::Mapping;
use md5::{Digest as _, Md5};
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::sync::{Arc, OnceLock};
use text::{SpecType, full_text_sections, parse_spec};
pub(crate) use text::{is_identifier, is_message_name, split_service};
use tsuji_msg::definition::ScalarKind;
use tsuji_msg::{NESTING_MAX, ServiceDescription, TYPE_BYTES_MAX, TypeDescription};

/// Bytes of a definition with those of the types that it uses. A longer text is refused.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// The type of the header that most messages begin with.
pub(crate) const HEADER: &str = "std_msgs/Header";

/// A ROS 1 message type with everything that it uses. A clone is cheap.
#[derive(Clone)]
pub struct MessageType(Arc<Type>);

pub(crate) struct Type {
    name: String,
    md5: String,
    /// What the MD5 sum is of.
    md5_text: String,
    /// The text of this definition alone.
    text: String,
    full_text: OnceLock<String>,
    fields: Vec<Field>,
    /// Messages inside messages, this one included.
    depth: usize,
    /// Fewest bytes of a message.
    min_size: usize,
    /// Bytes of a message, if always the same.
    fixed_size: Option<usize>,
}

/// A field of a message type of ROS 1.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) base: Base,
    pub(crate) shape: Shape,
}

/// What a field holds one or many of.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    Scalar(ScalarKind),
    String,
    Time,
    Duration,
    Message(MessageType),
}

/// How many of it a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Single,
    Array(u32),
    Sequence,
}

impl Base {
    pub(crate) fn min_size(&self) -> usize {
        match self {
            Self::Scalar(kind) => kind.size(),
            Self::String => 4,
            Self::Time | Self::Duration => 8,
            Self::Message(ty) => ty.0.min_size,
        }
    }

    pub(crate) fn fixed_size(&self) -> Option<usize> {
        match self {
            Self::Scalar(_) | Self::Time | Self::Duration => Some(self.min_size()),
            Self::String => None,
            Self::Message(ty) => ty.0.fixed_size,
        }
    }
}

impl fmt::Display for Base {
    /// As in a definition.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar(kind) => kind.name(),
            Self::String => "string",
            Self::Time => "time",
            Self::Duration => "duration",
            Self::Message(ty) => ty.name(),
        })
    }
}

impl Field {
    /// Fewest bytes that it takes in a message.
    pub(crate) fn min_size(&self) -> usize {
        match self.shape {
            Shape::Single => self.base.min_size(),
            Shape::Array(count) => self.base.min_size().saturating_mul(count as usize),
            Shape::Sequence => 4,
        }
    }

    /// Bytes that it takes in a message, if always the same.
    pub(crate) fn fixed_size(&self) -> Option<usize> {
        match self.shape {
            Shape::Single => self.base.fixed_size(),
            Shape::Array(count) => self.base.fixed_size()?.checked_mul(count as usize),
            Shape::Sequence => None,
        }
    }

    /// Its type as in a definition.
    pub(crate) fn type_text(&self) -> String {
        match self.shape {
            Shape::Single => self.base.to_string(),
            Shape::Array(count) => format!("{}[{count}]", self.base),
            Shape::Sequence => format!("{}[]", self.base),
        }
    }
}

impl MessageType {
    /// Parses a definition with those of the types that it uses, as the `message_definition` of a connection header
    /// has it: the text of the type, then for each type that it uses a line of `=`, a line `MSG: package/Name` and
    /// its text.
    ///
    /// # Errors
    ///
    /// A [`TypeError`] if a name is none, a line is no field, constant or comment, a definition is missing, a message
    /// contains itself, or the type goes beyond [`TEXT_BYTES_MAX`], [`NESTING_MAX`] or [`TYPE_BYTES_MAX`].
    pub fn parse(name: &str, full_text: &str) -> Result<Self, TypeError> {
        if TEXT_BYTES_MAX < full_text.len() {
            let what = format!("the definition has {} bytes", full_text.len());
            let allowed = format!("at most {TEXT_BYTES_MAX} bytes");
            return Err(TypeError::Limit { name: name.into(), what, allowed });
        }
        let (own, others) = full_text_sections(full_text);
        let mut find = |name: &str| others.get(name).map(|text| Source::Text((*text).to_owned()));
        Builder::new(&mut find).named(name, &own)
    }

    /// Derives what ROS 1 has for a type of ROS 2.
    ///
    /// Where the mapping states a definition of ROS 1, that is taken. Else the fields and constants are those of ROS 2
    /// under the names that the mapping gives them, and bounds and default values are left out.
    ///
    /// # Errors
    ///
    /// A [`TypeError`] if the type has no name in ROS 1, or has a `wstring`, which ROS 1 has not; if the mapping
    /// selects fields of fields and states no definition; else those of [`parse`](Self::parse).
    pub fn from_ros2(ros2: &Arc<TypeDescription>, mapping: &Mapping) -> Result<Self, TypeError> {
        derive::message(ros2, mapping)
    }

    /// The name, such as `std_msgs/String`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The MD5 sum: 32 hexadecimal digits.
    pub fn md5(&self) -> &str {
        &self.0.md5
    }

    /// The definition with those of the types that it uses, as `message_definition` of a connection header has it.
    pub fn definition(&self) -> &str {
        self.0.full_text.get_or_init(|| full_text(&self.0.text, &self.0.fields))
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.0.fields
    }
}

impl fmt::Debug for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.name(), self.md5())
    }
}

impl PartialEq for MessageType {
    /// Whether name and MD5 sum are the same, which is what ROS 1 compares.
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.md5() == other.md5()
    }
}

/// A ROS 1 service type.
#[derive(Clone, Debug)]
pub struct ServiceType {
    /// The name, such as `std_srvs/SetBool`.
    pub name: String,
    /// The MD5 sum: 32 hexadecimal digits.
    pub md5: String,
    /// What a client sends, such as `std_srvs/SetBoolRequest`.
    pub request: MessageType,
    /// What a server answers, such as `std_srvs/SetBoolResponse`.
    pub response: MessageType,
}

impl ServiceType {
    /// Derives what ROS 1 has for a service of ROS 2.
    ///
    /// # Errors
    ///
    /// Those of [`MessageType::from_ros2`], for the request and the response.
    pub fn from_ros2(ros2: &ServiceDescription, mapping: &Mapping) -> Result<Self, TypeError> {
        derive::service(ros2, mapping)
    }

    /// Parses the text of a `.srv` file. `find` returns the texts of the messages that it uses, by names such as
    /// `std_msgs/Header`.
    ///
    /// # Errors
    ///
    /// A [`TypeError`] if there is not exactly one line of `---`; else those of [`MessageType::parse`].
    pub fn parse(
        name: &str,
        text: &str,
        find: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, TypeError> {
        let (request, response) = split_service(name, text)?;
        let mut find = |name: &str| find(name).map(Source::Text);
        let mut builder = Builder::new(&mut find);
        let request = builder.named(&format!("{name}Request"), request)?;
        let response = builder.named(&format!("{name}Response"), response)?;
        Ok(Self::of(name, request, response))
    }

    fn of(name: &str, request: MessageType, response: MessageType) -> Self {
        let md5 = md5(&[&request.0.md5_text, &response.0.md5_text]);
        Self { name: name.into(), md5, request, response }
    }
}

/// Where the definition of a type comes from.
enum Source {
    Text(String),
    /// From there it could not be had.
    Refused(TypeError),
}

/// Builds types out of texts, each once.
struct Builder<'a> {
    find: &'a mut dyn FnMut(&str) -> Option<Source>,
    known: HashMap<String, MessageType>,
    open: Vec<String>,
}

impl<'a> Builder<'a> {
    fn new(find: &'a mut dyn FnMut(&str) -> Option<Source>) -> Self {
        Self { find, known: HashMap::new(), open: Vec::new() }
    }

    /// A type whose text is at hand.
    fn named(&mut self, name: &str, text: &str) -> Result<MessageType, TypeError> {
        if !is_message_name(name) {
            return Err(TypeError::Name(name.into()));
        }
        if NESTING_MAX <= self.open.len() {
            return Err(TypeError::too_deep(name));
        }
        self.open.push(name.to_owned());
        let built = self.build(name, text);
        self.open.pop();
        built
    }

    /// A type that another uses.
    fn used(&mut self, name: &str) -> Result<MessageType, TypeError> {
        if let Some(known) = self.known.get(name) {
            return Ok(known.clone());
        }
        if self.open.iter().any(|open| open == name) {
            let path = [&self.open.join(" > "), name].join(" > ");
            return Err(TypeError::Cycle { path });
        }
        let used_by = || self.open.last().cloned().unwrap_or_default();
        let text = match (self.find)(name) {
            Some(Source::Text(text)) => text,
            Some(Source::Refused(error)) => return Err(error),
            None => return Err(TypeError::Missing { name: name.into(), used_by: used_by() }),
        };
        let built = self.named(name, &text)?;
        self.known.insert(name.to_owned(), built.clone());
        Ok(built)
    }

    fn build(&mut self, name: &str, text: &str) -> Result<MessageType, TypeError> {
        let spec = parse_spec(name, text)?;
        let mut fields = Vec::with_capacity(spec.fields.len());
        for field in spec.fields {
            let base = match field.base {
                SpecType::Scalar(kind) => Base::Scalar(kind),
                SpecType::String => Base::String,
                SpecType::Time => Base::Time,
                SpecType::Duration => Base::Duration,
                SpecType::Message(name) => Base::Message(self.used(&name)?),
            };
            fields.push(Field { name: field.name, base, shape: field.shape });
        }
        let mut md5_text = String::new();
        for constant in &spec.constants {
            push_line(&mut md5_text, format_args!("{constant}"));
        }
        for field in &fields {
            match &field.base {
                Base::Message(ty) => {
                    push_line(&mut md5_text, format_args!("{} {}", ty.md5(), field.name));
                }
                _ => {
                    push_line(&mut md5_text, format_args!("{} {}", field.type_text(), field.name));
                }
            }
        }
        Type::finish(name, text, md5_text, fields).map(MessageType)
    }
}

/// Appends a line; a line end is between lines only.
fn push_line(text: &mut String, line: fmt::Arguments<'_>) {
    if !text.is_empty() {
        text.push('\n');
    }
    // Writing to a String does not fail.
    let _ = text.write_fmt(line);
}

impl Type {
    fn finish(
        name: &str,
        text: &str,
        md5_text: String,
        fields: Vec<Field>,
    ) -> Result<Arc<Self>, TypeError> {
        let nested = fields.iter().filter_map(|field| match &field.base {
            Base::Message(ty) => Some(ty.0.depth),
            _ => None,
        });
        let depth = 1 + nested.max().unwrap_or(0);
        if NESTING_MAX < depth {
            return Err(TypeError::too_deep(name));
        }
        let min_size = fields.iter().map(Field::min_size).fold(0, usize::saturating_add);
        if TYPE_BYTES_MAX < min_size {
            let what = format!("one message has at least {min_size} bytes");
            let allowed = format!("at most {TYPE_BYTES_MAX} bytes");
            return Err(TypeError::Limit { name: name.into(), what, allowed });
        }
        let fixed_size = fields
            .iter()
            .try_fold(0, |size: usize, field| Some(size.saturating_add(field.fixed_size()?)));
        let (name, text) = (name.to_owned(), text.to_owned());
        let md5 = md5(&[&md5_text]);
        Ok(Arc::new(Self {
            name,
            md5,
            md5_text,
            text,
            full_text: OnceLock::new(),
            fields,
            depth,
            min_size,
            fixed_size,
        }))
    }
}

/// The text of a definition with those of the types that it uses, in the order in which they are met.
fn full_text(text: &str, fields: &[Field]) -> String {
    fn collect<'a>(fields: &'a [Field], seen: &mut HashSet<&'a str>, list: &mut Vec<&'a Type>) {
        for field in fields {
            if let Base::Message(ty) = &field.base
                && seen.insert(ty.name())
            {
                list.push(&ty.0);
                collect(ty.fields(), seen, list);
            }
        }
    }
    let mut list = Vec::new();
    collect(fields, &mut HashSet::new(), &mut list);
    let mut full = text.to_owned();
    for ty in list {
        push_line(&mut full, format_args!("{}\nMSG: {}\n{}", "=".repeat(80), ty.name, ty.text));
    }
    full
}

fn md5(parts: &[&str]) -> String {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part.as_bytes()));
    let mut digits = String::with_capacity(32);
    for byte in hash.finalize() {
        // Writing to a String does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
