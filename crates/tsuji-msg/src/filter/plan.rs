//! Where in a sample the fields are that an expression names.

use super::value::Found;
use crate::array::{count, skip_field, skip_items};
use crate::cdr::{CdrError, CdrProblem, Reader, Sink};
use crate::definition::{Base, FieldType, ScalarKind};
use crate::path::Step;
use crate::types::TypeDescription;
use std::sync::Arc;

/// The fields of a message that are looked at, in their order, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Visit(Vec<(usize, Wanted)>);

/// What is looked at in a field or an element.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// The value goes to this slot.
    Value(usize),
    Inside(Visit),
    /// Some elements, in their order, by their indices.
    Elements(Visit),
}

/// How far a message or an array is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// To the last value that is wanted: nothing behind it is.
    Last,
    /// To the end.
    End,
}

/// A step to a value: the number of a field, or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Field(usize),
    Element(usize),
}

impl Visit {
    /// Adds a value by the way to it, and answers its slot: `slot`, or the one that it has already.
    pub(super) fn add(&mut self, way: &[Way], slot: usize) -> usize {
        let Some((first, rest)) = way.split_first() else { return slot };
        let (Way::Field(number) | Way::Element(number)) = *first;
        let at = match self.0.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(at) => at,
            Err(at) => {
                let wanted = match rest.first() {
                    None => Wanted::Value(slot),
                    Some(Way::Field(_)) => Wanted::Inside(Self::default()),
                    Some(Way::Element(_)) => Wanted::Elements(Self::default()),
                };
                self.0.insert(at, (number, wanted));
                at
            }
        };
        match &mut self.0[at].1 {
            Wanted::Value(slot) => *slot,
            Wanted::Inside(visit) | Wanted::Elements(visit) => visit.add(rest, slot),
        }
    }

    /// How many fields of the message itself are read or passed over.
    pub(super) fn fields(&self) -> usize {
        self.0.last().map_or(0, |(number, _)| number + 1)
    }

    /// Looks at a message, and goes on to its end where something is wanted behind it.
    pub(super) fn message<'a>(
        &self,
        ty: &TypeDescription,
        reader: &mut Reader<'a>,
        found: &mut [Found<'a>],
        until: Until,
    ) -> Result<(), CdrError> {
        let mut wanted = self.0.iter().peekable();
        for (number, field) in ty.fields().iter().enumerate() {
            let looked = match wanted.next_if(|(wanted, _)| *wanted == number) {
                Some((_, wanted_here)) => {
                    let until = if wanted.peek().is_some() { Until::End } else { until };
                    wanted_here.field(&field.ty, reader, found, until)
                }
                None if wanted.peek().is_none() && until == Until::Last => return Ok(()),
                None => skip_field(&field.ty, reader),
            };
            looked.map_err(|error| error.within(&field.name))?;
        }
        Ok(())
    }
}

impl Wanted {
    fn field<'a>(
        &self,
        ty: &FieldType<Arc<TypeDescription>>,
        reader: &mut Reader<'a>,
        found: &mut [Found<'a>],
        until: Until,
    ) -> Result<(), CdrError> {
        let Self::Elements(Visit(elements)) = self else {
            return self.single(&ty.base, reader, found, until);
        };
        let count = count(ty, reader)?;
        let mut at = 0;
        let mut elements = elements.iter().peekable();
        while let Some((index, wanted)) = elements.next_if(|(index, _)| *index < count) {
            skip_items(&ty.base, index - at, reader)?;
            let is_last = elements.peek().is_none_or(|(index, _)| count <= *index);
            let until = if is_last { until } else { Until::End };
            let looked = wanted.single(&ty.base, reader, found, until);
            looked.map_err(|error| error.within_element(*index))?;
            at = index + 1;
        }
        match until {
            Until::Last => Ok(()),
            Until::End => skip_items(&ty.base, count - at, reader),
        }
    }

    fn single<'a>(
        &self,
        base: &Base<Arc<TypeDescription>>,
        reader: &mut Reader<'a>,
        found: &mut [Found<'a>],
        until: Until,
    ) -> Result<(), CdrError> {
        match (self, base) {
            (Self::Inside(visit), Base::Nested(nested)) => {
                visit.message(nested, reader, found, until)
            }
            (Self::Value(slot), _) => {
                let value = value(base, reader)?;
                if let Some(found) = found.get_mut(*slot) {
                    *found = value;
                }
                Ok(())
            }
            // What is compiled for a type has its shape.
            _ => Ok(()),
        }
    }
}

fn value<'a>(
    base: &Base<Arc<TypeDescription>>,
    reader: &mut Reader<'a>,
) -> Result<Found<'a>, CdrError> {
    Ok(match base {
        Base::Scalar(kind) => match kind {
            ScalarKind::Bool => Found::Integer(reader.scalar::<bool>()?.into()),
            ScalarKind::Byte | ScalarKind::Char | ScalarKind::U8 => {
                Found::Integer(reader.scalar::<u8>()?.into())
            }
            ScalarKind::I8 => Found::Integer(reader.scalar::<i8>()?.into()),
            ScalarKind::I16 => Found::Integer(reader.scalar::<i16>()?.into()),
            ScalarKind::U16 => Found::Integer(reader.scalar::<u16>()?.into()),
            ScalarKind::I32 => Found::Integer(reader.scalar::<i32>()?.into()),
            ScalarKind::U32 => Found::Integer(reader.scalar::<u32>()?.into()),
            ScalarKind::I64 => Found::Integer(reader.scalar::<i64>()?.into()),
            ScalarKind::U64 => Found::Integer(reader.scalar::<u64>()?.into()),
            ScalarKind::F32 => Found::Float(reader.scalar::<f32>()?.into()),
            ScalarKind::F64 => Found::Float(reader.scalar::<f64>()?),
        },
        Base::String { .. } => Found::Text(reader.lossy_string()?.0),
        Base::WString { .. } => Found::Text(reader.lossy_wstring()?.0.into()),
        // No expression compares one.
        Base::Nested(_) => Found::Absent,
    })
}

/// A message is serialised as far as the first fields of it go.
pub(super) struct Prefix {
    bytes: Vec<u8>,
    /// How deep inside the message the writer is, and how many fields of the message itself are to be written yet.
    depth: usize,
    fields_left: usize,
    /// It is at a field that is not wanted any more.
    is_behind: bool,
}

impl Prefix {
    pub(super) fn new(fields: usize) -> Self {
        Self { bytes: Vec::new(), depth: 0, fields_left: fields, is_behind: false }
    }

    /// Whether the writing was ended because all that is wanted is there.
    pub(super) fn is_whole(&self) -> bool {
        self.is_behind
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Ends the writing once there is enough.
    fn check(&self, needed: usize) -> Result<(), CdrError> {
        if self.is_behind {
            let problem = CdrProblem::NoRoom { needed, left: 0 };
            return Err(CdrError::new(self.bytes.len(), problem));
        }
        Ok(())
    }
}

impl Sink for &mut Prefix {
    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.check(bytes.len())?;
        self.bytes.put(bytes)
    }

    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.check(count)?;
        self.bytes.zeros(count)
    }

    fn skip(&mut self, count: usize) -> Result<(), CdrError> {
        self.check(count)?;
        self.bytes.skip(count)
    }

    fn position(&self) -> usize {
        self.bytes.len()
    }

    fn enter(&mut self, _: Step<'_>) {
        self.depth += 1;
        if self.depth == 1 {
            self.is_behind = self.fields_left == 0;
            self.fields_left = self.fields_left.saturating_sub(1);
        }
    }

    fn exit(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}
