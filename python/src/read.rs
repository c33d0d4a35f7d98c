//! From CDR to Python, field by field.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString};
use tsuji::Bytes;
use tsuji_msg::CdrError;
use tsuji_msg::cdr::{CdrProblem, Reader};
use tsuji_msg::definition::{ScalarKind, Shape};

use crate::message::{Message, Place};
use crate::types::{BasePlan, FieldPlan, Plan};
use crate::view::{self, Array};

/// Does the same with the Rust type of a kind of numbers; a truth value is a byte here, of which not every one is one.
macro_rules! with_pod {
    ($kind:expr, $number:ident => $result:expr) => {{
        use ScalarKind as K;
        match $kind {
            K::Bool | K::Byte | K::Char | K::U8 => {
                type $number = u8;
                $result
            }
            K::I8 => {
                type $number = i8;
                $result
            }
            K::U16 => {
                type $number = u16;
                $result
            }
            K::I16 => {
                type $number = i16;
                $result
            }
            K::U32 => {
                type $number = u32;
                $result
            }
            K::I32 => {
                type $number = i32;
                $result
            }
            K::U64 => {
                type $number = u64;
                $result
            }
            K::I64 => {
                type $number = i64;
                $result
            }
            K::F32 => {
                type $number = f32;
                $result
            }
            K::F64 => {
                type $number = f64;
                $result
            }
        }
    }};
}
pub(crate) use with_pod;

/// The same with truth values as such.
macro_rules! with_number {
    ($kind:expr, $number:ident => $result:expr) => {
        match $kind {
            ScalarKind::Bool => {
                type $number = bool;
                $result
            }
            kind => with_pod!(kind, $number => $result),
        }
    };
}
pub(crate) use with_number;

/// Where each field of a message begins in the sample, and where the message ends.
pub(crate) fn field_offsets(plan: &Plan, place: &Place) -> Result<Vec<usize>, CdrError> {
    let mut reader = Reader::new(&place.bytes)?;
    reader.seek(place.offset);
    let mut offsets = Vec::with_capacity(plan.fields.len() + 1);
    for field in &plan.fields {
        offsets.push(reader.offset());
        skip_field(field, &mut reader).map_err(|error| error.within(&field.name))?;
    }
    offsets.push(reader.offset());
    Ok(offsets)
}

fn skip_message(plan: &Plan, reader: &mut Reader<'_>) -> Result<(), CdrError> {
    if plan.fields.is_empty() {
        reader.scalar::<u8>()?;
    }
    plan.fields.iter().try_for_each(|field| skip_field(field, reader))
}

fn skip_field(field: &FieldPlan, reader: &mut Reader<'_>) -> Result<(), CdrError> {
    let count = count(field, reader)?;
    match &field.base {
        BasePlan::Scalar(kind) => {
            with_number!(*kind, Number => reader.scalar_bytes::<Number>(count)).map(drop)
        }
        BasePlan::Text { is_wide: false, .. } => (0..count).try_for_each(|_| {
            let len = reader.length(1)?;
            reader.scalar_bytes::<u8>(len).map(drop)
        }),
        BasePlan::Text { is_wide: true, .. } => (0..count).try_for_each(|_| {
            let len = reader.length(4)?;
            reader.scalar_bytes::<u32>(len).map(drop)
        }),
        BasePlan::Message(plan) => (0..count).try_for_each(|_| skip_message(plan, reader)),
    }
}

/// How many elements the field has; of one that is no array 1.
fn count(field: &FieldPlan, reader: &mut Reader<'_>) -> Result<usize, CdrError> {
    match field.shape {
        Shape::Single => Ok(1),
        Shape::Array(count) => Ok(count as usize),
        Shape::Sequence => reader.length(field.element_min),
        Shape::Bounded(most) => {
            let offset = reader.offset();
            let count = reader.length(field.element_min)?;
            let (length, bound) = (count, most as usize);
            match length <= bound {
                true => Ok(count),
                false => Err(CdrError::new(offset, CdrProblem::Bound { length, bound })),
            }
        }
    }
}

/// The value of a field that begins at `offset`.
pub(crate) fn read_field<'py>(
    py: Python<'py>,
    field: &FieldPlan,
    bytes: &Bytes,
    offset: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = Reader::new(bytes).map_err(raised)?;
    reader.seek(offset);
    if field.shape == Shape::Single {
        return read_single(py, &field.base, bytes, &mut reader);
    }
    let count = count(field, &mut reader).map_err(raised)?;
    if let BasePlan::Scalar(kind) = &field.base {
        let numbers = read_numbers(*kind, count, bytes, &mut reader).map_err(raised)?;
        return view::field_to_python(py, field.shape, numbers);
    }
    let list = PyList::empty(py);
    for _ in 0..count {
        list.append(read_single(py, &field.base, bytes, &mut reader)?)?;
    }
    Ok(list.into_any())
}

fn read_numbers(
    kind: ScalarKind,
    count: usize,
    bytes: &Bytes,
    reader: &mut Reader<'_>,
) -> Result<Array, CdrError> {
    let element = view::element_kind(kind);
    let part = with_number!(kind, Number => reader.scalar_bytes::<Number>(count))?;
    if reader.order().is_native() && (part.as_ptr() as usize).is_multiple_of(element.size) {
        return Ok(Array::received(bytes, part, element));
    }
    let array = Array::own(count, element);
    array.fill(|own| {
        own.copy_from_slice(part);
        if !reader.order().is_native() {
            own.chunks_exact_mut(element.size).for_each(<[u8]>::reverse);
        }
    });
    // As one that is read where it lies.
    Ok(array.read_only())
}

fn read_single<'py>(
    py: Python<'py>,
    base: &BasePlan,
    bytes: &Bytes,
    reader: &mut Reader<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match base {
        BasePlan::Scalar(ScalarKind::Bool) => {
            PyBool::new(py, reader.scalar::<bool>().map_err(raised)?).to_owned().into_any()
        }
        BasePlan::Scalar(kind) => with_number!(*kind, Number => {
            reader.scalar::<Number>().map_err(raised)?.into_pyobject(py)?.to_owned().into_any()
        }),
        BasePlan::Text { is_wide: false, .. } => {
            PyString::new(py, &reader.lossy_string().map_err(raised)?.0).into_any()
        }
        BasePlan::Text { is_wide: true, .. } => {
            PyString::new(py, &reader.lossy_wstring().map_err(raised)?.0).into_any()
        }
        BasePlan::Message(plan) => {
            let place = Place { bytes: bytes.clone(), offset: reader.offset(), is_whole: false };
            skip_message(plan, reader).map_err(raised)?;
            Message::received(py, plan, place, None)?
        }
    })
}

/// A message that came and is none of its type.
pub(crate) fn raised(error: CdrError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
