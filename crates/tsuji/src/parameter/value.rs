//! Values of parameters, and how they go into messages.

use std::fmt;

use tsuji_interfaces::rcl_interfaces::msg;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ParameterType {
    /// It has no value.
    #[default]
    NotSet,
    /// `true` or `false`
    Bool,
    /// A whole number of 64 bits.
    Integer,
    /// A floating-point number of 64 bits.
    Double,
    /// A text.
    String,
    /// Bytes.
    ByteArray,
    /// An array of [`Bool`](Self::Bool).
    BoolArray,
    /// An array of [`Integer`](Self::Integer).
    IntegerArray,
    /// An array of [`Double`](Self::Double).
    DoubleArray,
    /// An array of [`String`](Self::String).
    StringArray,
}

impl ParameterType {
    const ALL: [Self; 10] = [
        Self::NotSet,
        Self::Bool,
        Self::Integer,
        Self::Double,
        Self::String,
        Self::ByteArray,
        Self::BoolArray,
        Self::IntegerArray,
        Self::DoubleArray,
        Self::StringArray,
    ];

    /// The number that `rcl_interfaces/msg/ParameterType` gives it.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The type of a number of `rcl_interfaces/msg/ParameterType`.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// In the words of rclcpp.
impl fmt::Display for ParameterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotSet => "not set",
            Self::Bool => "bool",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::String => "string",
            Self::ByteArray => "byte_array",
            Self::BoolArray => "bool_array",
            Self::IntegerArray => "integer_array",
            Self::DoubleArray => "double_array",
            Self::StringArray => "string_array",
        })
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ParameterValue {
    /// None.
    #[default]
    NotSet,
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(String),
    /// Bytes.
    ByteArray(Vec<u8>),
    /// Truth values.
    BoolArray(Vec<bool>),
    /// Whole numbers.
    IntegerArray(Vec<i64>),
    /// Floating-point numbers.
    DoubleArray(Vec<f64>),
    /// Texts.
    StringArray(Vec<String>),
}

impl ParameterValue {
    /// What `[]` is where no type is known. A parameter that is declared as an array of any type takes it as an empty one.
    pub const UNTYPED_EMPTY: Self = Self::BoolArray(Vec::new());

    /// The same value, or the empty array of this type if it is [`UNTYPED_EMPTY`](Self::UNTYPED_EMPTY).
    #[must_use]
    pub fn fitted(self, ty: ParameterType) -> Self {
        match ty {
            _ if self != Self::UNTYPED_EMPTY => self,
            ParameterType::ByteArray => Self::ByteArray(Vec::new()),
            ParameterType::IntegerArray => Self::IntegerArray(Vec::new()),
            ParameterType::DoubleArray => Self::DoubleArray(Vec::new()),
            ParameterType::StringArray => Self::StringArray(Vec::new()),
            _ => self,
        }
    }

    /// Its type.
    pub fn ty(&self) -> ParameterType {
        match self {
            Self::NotSet => ParameterType::NotSet,
            Self::Bool(_) => ParameterType::Bool,
            Self::Integer(_) => ParameterType::Integer,
            Self::Double(_) => ParameterType::Double,
            Self::String(_) => ParameterType::String,
            Self::ByteArray(_) => ParameterType::ByteArray,
            Self::BoolArray(_) => ParameterType::BoolArray,
            Self::IntegerArray(_) => ParameterType::IntegerArray,
            Self::DoubleArray(_) => ParameterType::DoubleArray,
            Self::StringArray(_) => ParameterType::StringArray,
        }
    }
}

/// A value is not of the type that is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WrongType {
    /// What it is.
    pub found: ParameterType,
    /// What is asked for.
    pub expected: ParameterType,
}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found {}; expected {}", self.found, self.expected)
    }
}

impl std::error::Error for WrongType {}

/// A Rust type that a parameter can have.
pub trait ParameterKind: Into<ParameterValue> + TryFrom<ParameterValue, Error = WrongType> {
    /// The type of the parameter.
    const TYPE: ParameterType;
}

macro_rules! kinds {
    ($($variant:ident: $ty:ty),* $(,)?) => {$(
        impl From<$ty> for ParameterValue {
            fn from(value: $ty) -> Self {
                Self::$variant(value)
            }
        }

        impl TryFrom<ParameterValue> for $ty {
            type Error = WrongType;

            fn try_from(value: ParameterValue) -> Result<Self, WrongType> {
                match value {
                    ParameterValue::$variant(value) => Ok(value),
                    other => Err(WrongType { found: other.ty(), expected: Self::TYPE }),
                }
            }
        }

        impl ParameterKind for $ty {
            const TYPE: ParameterType = ParameterType::$variant;
        }
    )*};
}

kinds! {
    Bool: bool,
    Integer: i64,
    Double: f64,
    String: String,
    ByteArray: Vec<u8>,
    BoolArray: Vec<bool>,
    IntegerArray: Vec<i64>,
    DoubleArray: Vec<f64>,
    StringArray: Vec<String>,
}

impl From<&str> for ParameterValue {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<ParameterValue> for msg::ParameterValue {
    fn from(value: ParameterValue) -> Self {
        let mut message = Self { r#type: value.ty().number(), ..Self::default() };
        match value {
            ParameterValue::NotSet => {}
            ParameterValue::Bool(value) => message.bool_value = value,
            ParameterValue::Integer(value) => message.integer_value = value,
            ParameterValue::Double(value) => message.double_value = value,
            ParameterValue::String(value) => message.string_value = value,
            ParameterValue::ByteArray(value) => message.byte_array_value = value,
            ParameterValue::BoolArray(value) => message.bool_array_value = value,
            ParameterValue::IntegerArray(value) => message.integer_array_value = value,
            ParameterValue::DoubleArray(value) => message.double_array_value = value,
            ParameterValue::StringArray(value) => message.string_array_value = value,
        }
        message
    }
}

/// A number that is no type of parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UnknownType(pub u8);

impl fmt::Display for UnknownType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is no type of a parameter; allowed: 0 to 9", self.0)
    }
}

impl std::error::Error for UnknownType {}

impl TryFrom<msg::ParameterValue> for ParameterValue {
    type Error = UnknownType;

    fn try_from(message: msg::ParameterValue) -> Result<Self, UnknownType> {
        let ty = ParameterType::from_number(message.r#type).ok_or(UnknownType(message.r#type))?;
        Ok(match ty {
            ParameterType::NotSet => Self::NotSet,
            ParameterType::Bool => Self::Bool(message.bool_value),
            ParameterType::Integer => Self::Integer(message.integer_value),
            ParameterType::Double => Self::Double(message.double_value),
            ParameterType::String => Self::String(message.string_value),
            ParameterType::ByteArray => Self::ByteArray(message.byte_array_value),
            ParameterType::BoolArray => Self::BoolArray(message.bool_array_value),
            ParameterType::IntegerArray => Self::IntegerArray(message.integer_array_value),
            ParameterType::DoubleArray => Self::DoubleArray(message.double_array_value),
            ParameterType::StringArray => Self::StringArray(message.string_array_value),
        })
    }
}

/// A parameter: its name and its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameter {
    /// The name, whose parts `.` separates.
    pub name: String,
    /// The value.
    pub value: ParameterValue,
}

impl Parameter {
    /// A parameter of this name and value.
    pub fn new(name: impl Into<String>, value: impl Into<ParameterValue>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

impl From<Parameter> for msg::Parameter {
    fn from(parameter: Parameter) -> Self {
        Self { name: parameter.name, value: parameter.value.into() }
    }
}

impl TryFrom<msg::Parameter> for Parameter {
    type Error = UnknownType;

    fn try_from(message: msg::Parameter) -> Result<Self, UnknownType> {
        Ok(Self { name: message.name, value: message.value.try_into()? })
    }
}
