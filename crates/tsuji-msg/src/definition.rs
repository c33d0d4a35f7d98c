//! Interface definitions: the text of `.msg`, `.srv` and `.action` files, parsed.

mod idl;
mod literal;
mod parse;

pub use idl::definition_of_idl;
pub use literal::Literal;
pub(crate) use literal::{parse_float, parse_integer};
pub use parse::{ParseError, TEXT_BYTES_MAX, parse_action, parse_message, parse_service};
pub(crate) use parse::{SUFFIXES, is_message_name, is_package_name};

use std::fmt;

/// What an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A message, `.msg`.
    Message,
    /// A service, `.srv`.
    Service,
    /// An action, `.action`.
    Action,
}

impl Kind {
    /// The word in type names, which is also the folder and the file extension: `msg`, `srv`,
    /// `action`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Message => "msg",
            Self::Service => "srv",
            Self::Action => "action",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A number, `bool`, `byte` or `char`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarKind {
    /// `bool`
    Bool,
    /// `byte`: eight bits without a meaning of their own.
    Byte,
    /// `char`: in ROS 2 an unsigned number of eight bits.
    Char,
    /// `int8`
    I8,
    /// `uint8`
    U8,
    /// `int16`
    I16,
    /// `uint16`
    U16,
    /// `int32`
    I32,
    /// `uint32`
    U32,
    /// `int64`
    I64,
    /// `uint64`
    U64,
    /// `float32`
    F32,
    /// `float64`
    F64,
}

impl ScalarKind {
    /// Every scalar, in the order of their ROS names' usual listing.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::Byte,
        Self::Char,
        Self::F32,
        Self::F64,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
    ];

    /// The name in definitions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Byte => "byte",
            Self::Char => "char",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::U16 => "uint16",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// The type in Rust.
    pub fn rust_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Byte | Self::Char | Self::U8 => "u8",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The number that it is in Rust: of `byte`, `char` and `uint8` the same. None if it is a `bool`.
    pub fn number(self) -> Option<Self> {
        match self {
            Self::Bool => None,
            Self::Byte | Self::Char => Some(Self::U8),
            kind => Some(kind),
        }
    }

    /// The scalar of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Size and alignment in CDR.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::Byte | Self::Char | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The least and greatest value, if it is a whole number.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Byte | Self::Char | Self::U8 => (0, u8::MAX.into()),
            Self::I8 => (i8::MIN.into(), i8::MAX.into()),
            Self::I16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::I32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::I64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
            Self::Bool | Self::F32 | Self::F64 => return None,
        })
    }
}

/// What a field holds one of or many of. `N` is how another message is referred to: by name in a
/// parsed definition, by its description in a resolved one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base<N> {
    /// A number or `bool`.
    Scalar(ScalarKind),
    /// `string`, or `string<=bound`.
    String {
        /// Most bytes.
        bound: Option<u32>,
    },
    /// `wstring`, or `wstring<=bound`.
    WString {
        /// Most UTF-16 code units.
        bound: Option<u32>,
    },
    /// Another message.
    Nested(N),
}

/// How many of it a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One.
    Single,
    /// `T[n]`: always so many.
    Array(u32),
    /// `T[]`: any number.
    Sequence,
    /// `T[<=n]`: at most so many.
    Bounded(u32),
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldType<N> {
    /// What it holds.
    pub base: Base<N>,
    /// How many of it.
    pub shape: Shape,
}

impl<N: fmt::Display> fmt::Display for FieldType<N> {
    /// As in a definition: `string<=10[<=5]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.base {
            Base::Scalar(kind) => f.write_str(kind.name())?,
            Base::String { bound: None } => f.write_str("string")?,
            Base::String { bound: Some(bound) } => write!(f, "string<={bound}")?,
            Base::WString { bound: None } => f.write_str("wstring")?,
            Base::WString { bound: Some(bound) } => write!(f, "wstring<={bound}")?,
            Base::Nested(name) => name.fmt(f)?,
        }
        match self.shape {
            Shape::Single => Ok(()),
            Shape::Array(count) => write!(f, "[{count}]"),
            Shape::Sequence => f.write_str("[]"),
            Shape::Bounded(bound) => write!(f, "[<={bound}]"),
        }
    }
}

/// Another message as a definition names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The package, if the definition names one; else the package of the definition itself.
    pub package: Option<String>,
    /// The message.
    pub name: String,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.package {
            Some(package) => write!(f, "{package}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A constant of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name, in capitals.
    pub name: String,
    /// Its type, a scalar or an unbounded text.
    pub base: Base<Reference>,
    /// Its value.
    pub value: Literal,
    /// The comment above and behind it, line by line.
    pub comment: Vec<String>,
}

/// A field as a definition states it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: FieldType<Reference>,
    /// Its default value, if the definition states one.
    pub default: Option<Literal>,
    /// The comment above and behind it, line by line.
    pub comment: Vec<String>,
}

/// A parsed message definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageSpec {
    /// The comment at the head of the text, line by line.
    pub comment: Vec<String>,
    /// The constants in their order.
    pub constants: Vec<Constant>,
    /// The fields in their order.
    pub fields: Vec<FieldSpec>,
    /// The text that was parsed.
    pub text: String,
}

/// A parsed service definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceSpec {
    /// What is above the `---`.
    pub request: MessageSpec,
    /// What is below it.
    pub response: MessageSpec,
}

/// A parsed action definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionSpec {
    /// What is above the first `---`.
    pub goal: MessageSpec,
    /// What is between the two.
    pub result: MessageSpec,
    /// What is below the second.
    pub feedback: MessageSpec,
}
