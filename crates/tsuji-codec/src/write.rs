//! Writing a sample of CDR as any format, in one pass and without a tree.

use crate::number::{Number, each_number};
use crate::plan::{Field, Key, Struct};
use std::sync::Arc;
use tsuji_msg::cdr::{ByteOrder, CdrError, CdrProblem, Reader};
use tsuji_msg::definition::{Base, ScalarKind, Shape};

/// Where values of one format are appended, one behind the other.
pub(crate) trait Target {
    /// What is to be remembered of an object or list until it ends.
    type Frame;

    /// Begins an object of so many members.
    fn open_object(&mut self, members: usize) -> Self::Frame;

    /// Names the next value.
    fn name(&mut self, key: &Key, is_first: bool);

    /// Ends an object.
    fn close_object(&mut self, frame: Self::Frame) -> Result<(), CdrProblem>;

    /// Begins a list of so many elements.
    fn open_list(&mut self, count: usize) -> Self::Frame;

    /// Numbers the next value.
    fn item(&mut self, index: usize);

    /// Ends a list.
    fn close_list(&mut self, frame: Self::Frame) -> Result<(), CdrProblem>;

    fn boolean(&mut self, value: bool);

    fn number<T: Number>(&mut self, value: T);

    fn text(&mut self, text: &str) -> Result<(), CdrProblem>;

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrProblem>;

    /// A list of the numbers that are in bytes of CDR.
    fn numbers<T: Number>(&mut self, bytes: &[u8], order: ByteOrder) -> Result<(), CdrProblem> {
        let frame = self.open_list(bytes.len() / T::SIZE);
        for (index, value) in bytes.chunks_exact(T::SIZE).enumerate() {
            self.item(index);
            // As many bytes as a number has make one, whatever they are.
            self.number(T::from_bytes(value, order).unwrap_or_default());
        }
        self.close_list(frame)
    }
}

/// Appends a sample. What is appended when that fails is worth nothing.
pub(crate) fn write<T: Target>(ty: &Struct, sample: &[u8], target: &mut T) -> Result<(), CdrError> {
    message(ty, &mut Reader::new(sample)?, target)
}

fn message<T: Target>(
    ty: &Struct,
    reader: &mut Reader<'_>,
    target: &mut T,
) -> Result<(), CdrError> {
    let frame = target.open_object(ty.fields.len());
    if ty.fields.is_empty() {
        reader.scalar::<u8>()?;
    }
    for (index, field) in ty.fields.iter().enumerate() {
        target.name(&field.key, index == 0);
        let written = match field.ty.shape {
            Shape::Single => single(&field.ty.base, reader, target),
            shape => list(field, shape, reader, target),
        };
        if let Err(error) = written {
            return Err(error.within(&field.key.name));
        }
    }
    target.close_object(frame).map_err(|problem| CdrError::new(reader.offset(), problem))
}

fn single<T: Target>(
    base: &Base<Arc<Struct>>,
    reader: &mut Reader<'_>,
    target: &mut T,
) -> Result<(), CdrError> {
    match base {
        Base::Scalar(kind) => each_number!(
            *kind,
            bool => target.boolean(reader.scalar()?),
            N => target.number(reader.scalar::<N>()?)
        ),
        Base::String { bound } => {
            let offset = reader.offset();
            // As a web client shows it: one text that is not UTF-8 does not hide the rest of the message.
            let (text, bytes) = reader.lossy_string()?;
            check(bytes, *bound, offset)?;
            target.text(&text).map_err(|problem| CdrError::new(offset, problem))?;
        }
        Base::WString { bound } => {
            let offset = reader.offset();
            let (text, units) = reader.lossy_wstring()?;
            check(units, *bound, offset)?;
            target.text(&text).map_err(|problem| CdrError::new(offset, problem))?;
        }
        Base::Nested(nested) => message(nested, reader, target)?,
    }
    Ok(())
}

fn list<T: Target>(
    field: &Field,
    shape: Shape,
    reader: &mut Reader<'_>,
    target: &mut T,
) -> Result<(), CdrError> {
    let offset = reader.offset();
    let count = match shape {
        Shape::Array(count) => count as usize,
        Shape::Single | Shape::Sequence | Shape::Bounded(_) => reader.length(field.element_min)?,
    };
    if let Shape::Bounded(bound) = shape {
        check(count, Some(bound), offset)?;
    }
    let base = &field.ty.base;
    let problem = |problem| CdrError::new(offset, problem);
    if let Base::Scalar(kind) = base
        && *kind != ScalarKind::Bool
    {
        let order = reader.order();
        return each_number!(*kind, bool => Ok(()), N => {
            let bytes = reader.scalar_bytes::<N>(count)?;
            match kind {
                ScalarKind::U8 | ScalarKind::Byte | ScalarKind::Char => target.bytes(bytes),
                _ => target.numbers::<N>(bytes, order),
            }
        })
        .map_err(problem);
    }
    let frame = target.open_list(count);
    for index in 0..count {
        target.item(index);
        if let Err(error) = single(base, reader, target) {
            return Err(error.within_element(index));
        }
    }
    target.close_list(frame).map_err(problem)
}

fn check(length: usize, bound: Option<u32>, offset: usize) -> Result<(), CdrError> {
    match bound {
        Some(bound) if length > bound as usize => {
            Err(CdrError::new(offset, CdrProblem::Bound { length, bound: bound as usize }))
        }
        _ => Ok(()),
    }
}
