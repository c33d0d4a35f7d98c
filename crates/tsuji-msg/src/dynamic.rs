//! Messages whose type is only known at run time: for tools that print, take and bridge any topic.

mod cdr;
mod input;
mod json;
mod path;
mod yaml;
mod yaml_text;

pub use cdr::DECODED_BYTES_MAX;
pub(crate) use cdr::write_message;
pub use input::ValueError;
pub use json::{Bytes, JsonStyle};
pub use yaml::Now;
pub use yaml_text::{Detail, EchoStyle, array_summary};

use crate::definition::{Base, Literal, ScalarKind, Shape};
use crate::types::{Field, TypeDescription};
use std::sync::Arc;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// `uint8`, `byte` and `char`
    U8(u8),
    /// `int8`
    I8(i8),
    /// `uint16`
    U16(u16),
    /// `int16`
    I16(i16),
    /// `uint32`
    U32(u32),
    /// `int32`
    I32(i32),
    /// `uint64`
    U64(u64),
    /// `int64`
    I64(i64),
    /// `float32`
    F32(f32),
    /// `float64`
    F64(f64),
    /// `string` and `wstring`
    Text(String),
    /// Another message.
    Message(DynamicMessage),
    /// An array or sequence.
    List(List),
}

/// The elements of an array or sequence, packed by their type.
#[derive(Clone, Debug, PartialEq)]
pub enum List {
    /// `bool[]`
    Bool(Vec<bool>),
    /// `uint8[]`, `byte[]` and `char[]`
    U8(Vec<u8>),
    /// `int8[]`
    I8(Vec<i8>),
    /// `uint16[]`
    U16(Vec<u16>),
    /// `int16[]`
    I16(Vec<i16>),
    /// `uint32[]`
    U32(Vec<u32>),
    /// `int32[]`
    I32(Vec<i32>),
    /// `uint64[]`
    U64(Vec<u64>),
    /// `int64[]`
    I64(Vec<i64>),
    /// `float32[]`
    F32(Vec<f32>),
    /// `float64[]`
    F64(Vec<f64>),
    /// `string[]` and `wstring[]`
    Text(Vec<String>),
    /// Other messages.
    Message(Vec<DynamicMessage>),
}

/// Does the same for every kind of list.
macro_rules! each_list {
    ($list:expr, $items:ident => $result:expr) => {
        match $list {
            List::Bool($items) => $result,
            List::U8($items) => $result,
            List::I8($items) => $result,
            List::U16($items) => $result,
            List::I16($items) => $result,
            List::U32($items) => $result,
            List::I32($items) => $result,
            List::U64($items) => $result,
            List::I64($items) => $result,
            List::F32($items) => $result,
            List::F64($items) => $result,
            List::Text($items) => $result,
            List::Message($items) => $result,
        }
    };
}

impl List {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        each_list!(self, items => items.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the element at `index`.
    pub fn get(&self, index: usize) -> Option<Value> {
        Some(match self {
            Self::Bool(items) => Value::Bool(*items.get(index)?),
            Self::U8(items) => Value::U8(*items.get(index)?),
            Self::I8(items) => Value::I8(*items.get(index)?),
            Self::U16(items) => Value::U16(*items.get(index)?),
            Self::I16(items) => Value::I16(*items.get(index)?),
            Self::U32(items) => Value::U32(*items.get(index)?),
            Self::I32(items) => Value::I32(*items.get(index)?),
            Self::U64(items) => Value::U64(*items.get(index)?),
            Self::I64(items) => Value::I64(*items.get(index)?),
            Self::F32(items) => Value::F32(*items.get(index)?),
            Self::F64(items) => Value::F64(*items.get(index)?),
            Self::Text(items) => Value::Text(items.get(index)?.clone()),
            Self::Message(items) => Value::Message(items.get(index)?.clone()),
        })
    }

    /// Appends a value of the list's own type; gives it back if it is of another.
    ///
    /// # Errors
    ///
    /// The value itself, if it is not of the type of the elements.
    pub fn push(&mut self, value: Value) -> Result<(), Value> {
        match (self, value) {
            (Self::Bool(items), Value::Bool(value)) => items.push(value),
            (Self::U8(items), Value::U8(value)) => items.push(value),
            (Self::I8(items), Value::I8(value)) => items.push(value),
            (Self::U16(items), Value::U16(value)) => items.push(value),
            (Self::I16(items), Value::I16(value)) => items.push(value),
            (Self::U32(items), Value::U32(value)) => items.push(value),
            (Self::I32(items), Value::I32(value)) => items.push(value),
            (Self::U64(items), Value::U64(value)) => items.push(value),
            (Self::I64(items), Value::I64(value)) => items.push(value),
            (Self::F32(items), Value::F32(value)) => items.push(value),
            (Self::F64(items), Value::F64(value)) => items.push(value),
            (Self::Text(items), Value::Text(value)) => items.push(value),
            (Self::Message(items), Value::Message(value)) => items.push(value),
            (_, value) => return Err(value),
        }
        Ok(())
    }

    /// An empty list for elements of a type.
    pub fn empty(base: &Base<Arc<TypeDescription>>) -> Self {
        match base {
            Base::Scalar(kind) => match kind {
                ScalarKind::Bool => Self::Bool(Vec::new()),
                ScalarKind::Byte | ScalarKind::Char | ScalarKind::U8 => Self::U8(Vec::new()),
                ScalarKind::I8 => Self::I8(Vec::new()),
                ScalarKind::U16 => Self::U16(Vec::new()),
                ScalarKind::I16 => Self::I16(Vec::new()),
                ScalarKind::U32 => Self::U32(Vec::new()),
                ScalarKind::I32 => Self::I32(Vec::new()),
                ScalarKind::U64 => Self::U64(Vec::new()),
                ScalarKind::I64 => Self::I64(Vec::new()),
                ScalarKind::F32 => Self::F32(Vec::new()),
                ScalarKind::F64 => Self::F64(Vec::new()),
            },
            Base::String { .. } | Base::WString { .. } => Self::Text(Vec::new()),
            Base::Nested(_) => Self::Message(Vec::new()),
        }
    }

    /// `count` default values of a type.
    fn defaults(base: &Base<Arc<TypeDescription>>, count: usize) -> Self {
        match base {
            Base::Nested(nested) => Self::Message(vec![DynamicMessage::new(nested.clone()); count]),
            _ => {
                let mut list = Self::empty(base);
                match &mut list {
                    Self::Bool(items) => items.resize(count, false),
                    Self::U8(items) => items.resize(count, 0),
                    Self::I8(items) => items.resize(count, 0),
                    Self::U16(items) => items.resize(count, 0),
                    Self::I16(items) => items.resize(count, 0),
                    Self::U32(items) => items.resize(count, 0),
                    Self::I32(items) => items.resize(count, 0),
                    Self::U64(items) => items.resize(count, 0),
                    Self::I64(items) => items.resize(count, 0),
                    Self::F32(items) => items.resize(count, 0.0),
                    Self::F64(items) => items.resize(count, 0.0),
                    Self::Text(items) => items.resize(count, String::new()),
                    Self::Message(_) => {}
                }
                list
            }
        }
    }
}

impl Value {
    /// The default value of a field: what its definition states, else zero, `false`, the empty text
    /// or list.
    pub fn default_of(field: &Field) -> Self {
        if let Some(value) =
            field.default.as_ref().and_then(|literal| Self::from_literal(literal, &field.ty.base))
        {
            return value;
        }
        match field.ty.shape {
            Shape::Single => Self::zero(&field.ty.base),
            Shape::Array(count) => Self::List(List::defaults(&field.ty.base, count as usize)),
            Shape::Sequence | Shape::Bounded(_) => Self::List(List::empty(&field.ty.base)),
        }
    }

    /// The default value of one element.
    fn zero(base: &Base<Arc<TypeDescription>>) -> Self {
        match base {
            Base::Scalar(ScalarKind::Bool) => Self::Bool(false),
            Base::Scalar(ScalarKind::F32) => Self::F32(0.0),
            Base::Scalar(ScalarKind::F64) => Self::F64(0.0),
            // Zero is in the range of every whole number.
            Base::Scalar(kind) => Self::integer(*kind, 0).unwrap_or(Self::U8(0)),
            Base::String { .. } | Base::WString { .. } => Self::Text(String::new()),
            Base::Nested(nested) => Self::Message(DynamicMessage::new(nested.clone())),
        }
    }

    /// A whole number of a type, if the type holds whole numbers and this one.
    fn integer(kind: ScalarKind, value: i128) -> Option<Self> {
        Some(match kind {
            ScalarKind::Byte | ScalarKind::Char | ScalarKind::U8 => {
                Self::U8(value.try_into().ok()?)
            }
            ScalarKind::I8 => Self::I8(value.try_into().ok()?),
            ScalarKind::U16 => Self::U16(value.try_into().ok()?),
            ScalarKind::I16 => Self::I16(value.try_into().ok()?),
            ScalarKind::U32 => Self::U32(value.try_into().ok()?),
            ScalarKind::I32 => Self::I32(value.try_into().ok()?),
            ScalarKind::U64 => Self::U64(value.try_into().ok()?),
            ScalarKind::I64 => Self::I64(value.try_into().ok()?),
            ScalarKind::Bool | ScalarKind::F32 | ScalarKind::F64 => return None,
        })
    }

    /// The value of a constant or default as the definition states it.
    pub fn from_literal(literal: &Literal, base: &Base<Arc<TypeDescription>>) -> Option<Self> {
        Some(match (literal, base) {
            (Literal::Bool(value), Base::Scalar(ScalarKind::Bool)) => Self::Bool(*value),
            (Literal::Integer(value), Base::Scalar(kind)) => Self::integer(*kind, *value)?,
            (Literal::Float(value), Base::Scalar(ScalarKind::F32)) => Self::F32(*value as f32),
            (Literal::Float(value), Base::Scalar(ScalarKind::F64)) => Self::F64(*value),
            (Literal::Text(value), Base::String { .. } | Base::WString { .. }) => {
                Self::Text(value.clone())
            }
            (Literal::List(values), _) => {
                let mut list = List::empty(base);
                for value in values {
                    list.push(Self::from_literal(value, base)?).ok()?;
                }
                Self::List(list)
            }
            _ => return None,
        })
    }
}

/// A message of a type known at run time.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicMessage {
    ty: Arc<TypeDescription>,
    values: Vec<Value>,
}

impl DynamicMessage {
    /// A message with every field at its default.
    pub fn new(ty: Arc<TypeDescription>) -> Self {
        let values = ty.fields().iter().map(Value::default_of).collect();
        Self { ty, values }
    }

    /// The message's type.
    pub fn ty(&self) -> &Arc<TypeDescription> {
        &self.ty
    }

    /// The fields with their values, in their order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&Field, &Value)> {
        self.ty.fields().iter().zip(&self.values)
    }
}
