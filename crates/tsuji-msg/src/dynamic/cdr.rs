use super::{DynamicMessage, List, Value};
use crate::cdr::{Bounds, ByteOrder, CdrError, CdrProblem, Count, Reader, Sink, Writer};
use crate::definition::{Base, FieldType, ScalarKind, Shape};
use crate::path::Step;
use crate::types::TypeDescription;
use std::sync::Arc;

type Nested = Arc<TypeDescription>;

/// Memory that the messages in sequences of one sample may take when it is decoded. An empty one is
/// a byte of the sample, and many times that in memory.
pub const DECODED_BYTES_MAX: usize = 1 << 30;

/// What is left of [`DECODED_BYTES_MAX`].
struct Memory {
    left: usize,
}

impl Memory {
    /// Takes the memory for `count` elements of a sequence.
    fn take(&mut self, base: &Base<Nested>, count: usize, offset: usize) -> Result<(), CdrError> {
        if base.nested().is_none() {
            return Ok(());
        }
        let left = self.left.checked_sub(base.memory().saturating_mul(count));
        self.left = left.ok_or_else(|| {
            let allowed = DECODED_BYTES_MAX;
            CdrError::new(offset, CdrProblem::Memory { claimed: count, allowed })
        })?;
        Ok(())
    }
}

impl DynamicMessage {
    /// Reads a sample of either byte order.
    ///
    /// Bytes after the message are taken for padding. The messages in its sequences may take [`DECODED_BYTES_MAX`]
    /// of memory.
    ///
    /// What in a text is not UTF-8, or in a wide one not UTF-16, is U+FFFD then: nothing promises that a text is,
    /// and one that is not leaves the rest of the message readable.
    ///
    /// # Errors
    ///
    /// - [`CdrProblem::Encapsulation`] if the header does not announce plain CDR.
    /// - [`CdrProblem::Truncated`] if the bytes end before the message does.
    /// - [`CdrProblem::Length`] if a sequence or a text claims more than the bytes left can hold.
    /// - [`CdrProblem::Bool`] if a `bool` is neither 0 nor 1; [`CdrProblem::Terminator`] if a string does not end
    ///   with NUL.
    /// - [`CdrProblem::Bound`] if a sequence or a text is longer than its type allows.
    /// - [`CdrProblem::Memory`] if the messages in sequences would take more than [`DECODED_BYTES_MAX`].
    pub fn decode(ty: &Nested, sample: &[u8]) -> Result<Self, CdrError> {
        read_message(ty, &mut Reader::new(sample)?, &mut Memory { left: DECODED_BYTES_MAX })
    }

    /// Returns the sample: header and body, little endian.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::Bound`] if a text or list is longer than its type allows, or an array has another number of
    /// elements; [`CdrProblem::TooLong`] if a text or list has more than a 32-bit count can say;
    /// [`CdrProblem::Type`] if a value is not of the type of its field.
    pub fn encode(&self) -> Result<Vec<u8>, CdrError> {
        self.encode_as(Vec::with_capacity(self.serialized_size()), ByteOrder::Little)
    }

    /// Writes header and body into a sink, such as a [`Slice`](crate::cdr::Slice) of a loan.
    ///
    /// # Errors
    ///
    /// Those of [`encode`](Self::encode) and of [`Sink::put`]. Where the sink only counts, no text and no count is
    /// too long.
    pub fn encode_as<S: Sink>(&self, sink: S, order: ByteOrder) -> Result<S, CdrError> {
        let mut writer = Writer::new(sink, order)?;
        write_message(self, &mut writer)?;
        Ok(writer.into_sink())
    }

    /// Exact bytes that this message takes, header included.
    pub fn serialized_size(&self) -> usize {
        self.encode_as(Count::default(), ByteOrder::Little).map_or(0, |count| count.position())
    }
}

pub(crate) fn write_message<S: Sink>(
    message: &DynamicMessage,
    writer: &mut Writer<S>,
) -> Result<(), CdrError> {
    if message.ty.fields().is_empty() {
        return writer.scalar(0_u8);
    }
    for (field, value) in message.fields() {
        writer.within(Step::Field(&field.name), |writer| write_field(&field.ty, value, writer))?;
    }
    Ok(())
}

fn write_field<S: Sink>(
    ty: &FieldType<Nested>,
    value: &Value,
    writer: &mut Writer<S>,
) -> Result<(), CdrError> {
    match (ty.shape, value) {
        (Shape::Single, Value::List(_)) => Err(wrong_type(writer.position(), &ty.base)),
        (Shape::Single, value) => write_single(&ty.base, value, writer),
        (shape, Value::List(list)) => {
            let room = ty.base.number().zip(writer.room());
            let length = room.map_or(list.len(), |(_, length)| length);
            if room.is_none() || !S::COUNTS {
                check_length(shape, length, writer.position())?;
            }
            if !matches!(shape, Shape::Array(_)) {
                writer.length(length)?;
            }
            match room {
                None => write_list(&ty.base, list, writer),
                Some((kind, length)) => writer.lend(kind, length),
            }
        }
        _ => Err(wrong_type(writer.position(), &ty.base)),
    }
}

fn write_single<S: Sink>(
    base: &Base<Nested>,
    value: &Value,
    writer: &mut Writer<S>,
) -> Result<(), CdrError> {
    use ScalarKind as K;
    match (base, value) {
        (Base::Scalar(K::Bool), Value::Bool(value)) => writer.scalar(*value),
        (Base::Scalar(K::Byte | K::Char | K::U8), Value::U8(value)) => writer.scalar(*value),
        (Base::Scalar(K::I8), Value::I8(value)) => writer.scalar(*value),
        (Base::Scalar(K::U16), Value::U16(value)) => writer.scalar(*value),
        (Base::Scalar(K::I16), Value::I16(value)) => writer.scalar(*value),
        (Base::Scalar(K::U32), Value::U32(value)) => writer.scalar(*value),
        (Base::Scalar(K::I32), Value::I32(value)) => writer.scalar(*value),
        (Base::Scalar(K::U64), Value::U64(value)) => writer.scalar(*value),
        (Base::Scalar(K::I64), Value::I64(value)) => writer.scalar(*value),
        (Base::Scalar(K::F32), Value::F32(value)) => writer.scalar(*value),
        (Base::Scalar(K::F64), Value::F64(value)) => writer.scalar(*value),
        (Base::String { .. } | Base::WString { .. }, Value::Text(text)) => {
            write_text(base, text, writer)
        }
        (Base::Nested(nested), Value::Message(message)) if *message.ty == **nested => {
            write_message(message, writer)
        }
        _ => Err(wrong_type(writer.position(), base)),
    }
}

fn write_list<S: Sink>(
    base: &Base<Nested>,
    list: &List,
    writer: &mut Writer<S>,
) -> Result<(), CdrError> {
    use ScalarKind as K;
    match (base, list) {
        (Base::Scalar(K::Bool), List::Bool(items)) => writer.scalars(items),
        (Base::Scalar(K::Byte | K::Char | K::U8), List::U8(items)) => writer.scalars(items),
        (Base::Scalar(K::I8), List::I8(items)) => writer.scalars(items),
        (Base::Scalar(K::U16), List::U16(items)) => writer.scalars(items),
        (Base::Scalar(K::I16), List::I16(items)) => writer.scalars(items),
        (Base::Scalar(K::U32), List::U32(items)) => writer.scalars(items),
        (Base::Scalar(K::I32), List::I32(items)) => writer.scalars(items),
        (Base::Scalar(K::U64), List::U64(items)) => writer.scalars(items),
        (Base::Scalar(K::I64), List::I64(items)) => writer.scalars(items),
        (Base::Scalar(K::F32), List::F32(items)) => writer.scalars(items),
        (Base::Scalar(K::F64), List::F64(items)) => writer.scalars(items),
        (Base::String { .. } | Base::WString { .. }, List::Text(items)) => {
            each(items, writer, |text, writer| write_text(base, text, writer))
        }
        (Base::Nested(nested), List::Message(items)) => each(items, writer, |message, writer| {
            if *message.ty == **nested {
                write_message(message, writer)
            } else {
                Err(wrong_type(writer.position(), base))
            }
        }),
        _ => Err(wrong_type(writer.position(), base)),
    }
}

fn write_text<S: Sink>(
    base: &Base<Nested>,
    text: &String,
    writer: &mut Writer<S>,
) -> Result<(), CdrError> {
    if !S::COUNTS {
        check_text(base, text, writer.position())?;
    }
    if matches!(base, Base::WString { .. }) { writer.wstring(text) } else { writer.string(text) }
}

fn each<T, S: Sink>(
    items: &[T],
    writer: &mut Writer<S>,
    mut write: impl FnMut(&T, &mut Writer<S>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    for (index, item) in items.iter().enumerate() {
        writer.within(Step::Element(index), |writer| write(item, writer))?;
    }
    Ok(())
}

fn read_message(
    ty: &Nested,
    reader: &mut Reader<'_>,
    memory: &mut Memory,
) -> Result<DynamicMessage, CdrError> {
    if ty.fields().is_empty() {
        reader.scalar::<u8>()?;
    }
    let mut values = Vec::with_capacity(ty.fields().len());
    for field in ty.fields() {
        values.push(
            read_field(&field.ty, reader, memory).map_err(|error| error.within(&field.name))?,
        );
    }
    Ok(DynamicMessage { ty: ty.clone(), values })
}

fn read_field(
    ty: &FieldType<Nested>,
    reader: &mut Reader<'_>,
    memory: &mut Memory,
) -> Result<Value, CdrError> {
    let offset = reader.offset();
    let count = match ty.shape {
        Shape::Single => return read_single(&ty.base, reader, memory),
        Shape::Array(count) => {
            // Memory for the elements is taken only if the bytes for them are there.
            if ty.min_size() > reader.left() {
                return Err(CdrError::new(
                    offset,
                    CdrProblem::Truncated { needed: ty.min_size(), left: reader.left() },
                ));
            }
            count as usize
        }
        Shape::Sequence | Shape::Bounded(_) => {
            let count = reader.length(ty.base.min_size())?;
            memory.take(&ty.base, count, offset)?;
            count
        }
    };
    check_length(ty.shape, count, offset)?;
    read_list(&ty.base, count, reader, memory).map(Value::List)
}

fn read_single(
    base: &Base<Nested>,
    reader: &mut Reader<'_>,
    memory: &mut Memory,
) -> Result<Value, CdrError> {
    use ScalarKind as K;
    Ok(match base {
        Base::Scalar(K::Bool) => Value::Bool(reader.scalar()?),
        Base::Scalar(K::Byte | K::Char | K::U8) => Value::U8(reader.scalar()?),
        Base::Scalar(K::I8) => Value::I8(reader.scalar()?),
        Base::Scalar(K::U16) => Value::U16(reader.scalar()?),
        Base::Scalar(K::I16) => Value::I16(reader.scalar()?),
        Base::Scalar(K::U32) => Value::U32(reader.scalar()?),
        Base::Scalar(K::I32) => Value::I32(reader.scalar()?),
        Base::Scalar(K::U64) => Value::U64(reader.scalar()?),
        Base::Scalar(K::I64) => Value::I64(reader.scalar()?),
        Base::Scalar(K::F32) => Value::F32(reader.scalar()?),
        Base::Scalar(K::F64) => Value::F64(reader.scalar()?),
        Base::String { .. } | Base::WString { .. } => Value::Text(read_text(base, reader)?),
        Base::Nested(nested) => Value::Message(read_message(nested, reader, memory)?),
    })
}

fn read_list(
    base: &Base<Nested>,
    count: usize,
    reader: &mut Reader<'_>,
    memory: &mut Memory,
) -> Result<List, CdrError> {
    let mut list = List::empty(base);
    each_list_read(&mut list, base, count, reader, memory)?;
    Ok(list)
}

fn each_list_read(
    list: &mut List,
    base: &Base<Nested>,
    count: usize,
    reader: &mut Reader<'_>,
    memory: &mut Memory,
) -> Result<(), CdrError> {
    match list {
        List::Bool(items) => *items = reader.scalars(count)?,
        List::U8(items) => *items = reader.scalars(count)?,
        List::I8(items) => *items = reader.scalars(count)?,
        List::U16(items) => *items = reader.scalars(count)?,
        List::I16(items) => *items = reader.scalars(count)?,
        List::U32(items) => *items = reader.scalars(count)?,
        List::I32(items) => *items = reader.scalars(count)?,
        List::U64(items) => *items = reader.scalars(count)?,
        List::I64(items) => *items = reader.scalars(count)?,
        List::F32(items) => *items = reader.scalars(count)?,
        List::F64(items) => *items = reader.scalars(count)?,
        List::Text(items) => {
            items.reserve_exact(count);
            for index in 0..count {
                items.push(read_text(base, reader).map_err(|error| error.within_element(index))?);
            }
        }
        List::Message(items) => {
            // An empty list of messages names no type, so the description does.
            let Base::Nested(nested) = base else { return Err(wrong_type(reader.offset(), base)) };
            items.reserve_exact(count);
            for index in 0..count {
                items.push(
                    read_message(nested, reader, memory)
                        .map_err(|error| error.within_element(index))?,
                );
            }
        }
    }
    Ok(())
}

fn read_text(base: &Base<Nested>, reader: &mut Reader<'_>) -> Result<String, CdrError> {
    let offset = reader.offset();
    let (mut text, length, bound) = match base {
        Base::WString { bound } => {
            let (text, units) = reader.lossy_wstring()?;
            (text, units, *bound)
        }
        Base::String { bound } => {
            let (text, bytes) = reader.lossy_string()?;
            (text.into_owned(), bytes, *bound)
        }
        Base::Scalar(_) | Base::Nested(_) => return Err(wrong_type(offset, base)),
    };
    let Some(bound) = bound.map(|bound| bound as usize) else { return Ok(text) };
    if bound < length {
        return Err(CdrError::new(offset, CdrProblem::Bound { length, bound }));
    }
    if matches!(base, Base::String { .. }) && bound < text.len() {
        // What replaces a byte is longer than that, and what was read can be written.
        let cut = (0..=bound).rfind(|at| text.is_char_boundary(*at));
        text.truncate(cut.unwrap_or_default());
    }
    Ok(text)
}

fn check_length(shape: Shape, length: usize, offset: usize) -> Result<(), CdrError> {
    let (bound, right) = match shape {
        Shape::Array(count) => (count, length == count as usize),
        Shape::Bounded(bound) => (bound, length <= bound as usize),
        Shape::Single | Shape::Sequence => return Ok(()),
    };
    if right {
        Ok(())
    } else {
        Err(CdrError::new(offset, CdrProblem::Bound { length, bound: bound as usize }))
    }
}

fn check_text(base: &Base<Nested>, text: &String, offset: usize) -> Result<(), CdrError> {
    match base {
        Base::String { bound: Some(bound) } => {
            Bounds { items: None, text: Some(*bound as usize) }.check(text, offset)
        }
        Base::WString { bound: Some(bound) } => {
            let length = text.encode_utf16().count();
            let bound = *bound as usize;
            if length <= bound {
                Ok(())
            } else {
                Err(CdrError::new(offset, CdrProblem::Bound { length, bound }))
            }
        }
        _ => Ok(()),
    }
}

fn wrong_type(offset: usize, base: &Base<Nested>) -> CdrError {
    let expected = match base {
        Base::Scalar(kind) => kind.name(),
        Base::String { .. } => "string",
        Base::WString { .. } => "wstring",
        Base::Nested(_) => "message",
    };
    CdrError::new(offset, CdrProblem::Type { expected })
}
