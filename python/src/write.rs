//! From Python to CDR, and what of Python a field takes.

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString};
use tsuji_msg::cdr::{Scalar, Sink, Writer};
use tsuji_msg::definition::{ScalarKind, Shape};

use crate::message::Message;
use crate::read::{raised, with_number, with_pod};
use crate::types::{BasePlan, FieldPlan, Plan};
use crate::view::{self, Array, BufferView};

/// What a field takes of `value`, as it is kept: numbers as Python's own, arrays of numbers in memory of their type, lists as
/// lists of their own.
pub(crate) fn convert<'py>(
    field: &FieldPlan,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    convert_field(field, value).map_err(|wrong| wrong.of(&field.name).raised(value.py()))
}

fn convert_field<'py>(field: &FieldPlan, value: &Bound<'py, PyAny>) -> Checked<Bound<'py, PyAny>> {
    if field.shape == Shape::Single {
        return Ok(convert_single(&field.base, value)?);
    }
    let taken = match &field.base {
        BasePlan::Scalar(kind) => convert_numbers(*kind, field.shape, value)?,
        base => {
            if value.is_instance_of::<PyString>() {
                return Err(wrong_type(value, "a sequence").into());
            }
            let list = PyList::empty(value.py());
            for (at, item) in value.try_iter()?.enumerate() {
                let item = convert_single(base, &item?);
                list.append(item.map_err(|error| Wrong::from(error).at(at))?)?;
            }
            // What a program appends to its list later is in the message, as rclpy has it; it is checked when it is written.
            match view::has_plain_sequences() && value.is_instance_of::<PyList>() {
                true => value.clone(),
                false => list.into_any(),
            }
        }
    };
    check_count(field.shape, taken.len()?)?;
    Ok(taken)
}

fn check_count(shape: Shape, count: usize) -> PyResult<()> {
    let allowed = match shape {
        Shape::Array(exact) if count != exact as usize => format!("{exact}"),
        Shape::Bounded(most) if (most as usize) < count => format!("at most {most}"),
        _ => return Ok(()),
    };
    Err(PyValueError::new_err(format!("{count} elements; allowed: {allowed}")))
}

fn convert_single<'py>(base: &BasePlan, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    match base {
        BasePlan::Scalar(ScalarKind::Bool) => {
            Ok(PyBool::new(py, number::<bool>(value, "bool")?).to_owned().into_any())
        }
        BasePlan::Scalar(ScalarKind::F32) => Ok(float32(value)?.into_pyobject(py)?.into_any()),
        BasePlan::Scalar(kind) => with_number!(*kind, Number => {
            let value = number::<Number>(value, view::element_kind(*kind).dtype())?;
            Ok(value.into_pyobject(py)?.to_owned().into_any())
        }),
        BasePlan::Text { is_wide, bound } => {
            let text = value.cast::<PyString>().map_err(|_| wrong_type(value, "str"))?;
            // One with half a surrogate pair has no UTF-8.
            let text = text.to_str()?;
            if let Some(bound) = *bound {
                let len = if *is_wide { text.encode_utf16().count() } else { text.len() };
                if (bound as usize) < len {
                    let unit = if *is_wide { "UTF-16 code units" } else { "bytes" };
                    let text = format!("a text of {len} {unit}; allowed: at most {bound}");
                    return Err(PyValueError::new_err(text));
                }
            }
            Ok(value.clone())
        }
        BasePlan::Message(plan) => {
            nested(plan, value)?;
            Ok(value.clone())
        }
    }
}

/// The message that a field has: of its own type.
fn nested<'a, 'py>(plan: &Plan, value: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, Message>> {
    let message = value.cast::<Message>().map_err(|_| wrong_type(value, &plan.name()))?;
    check_type(plan, message.get().plan())?;
    Ok(message)
}

/// A message of this type.
pub(crate) fn message_of<'a, 'py>(
    plan: &Plan,
    value: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, Message>> {
    let message = value.cast::<Message>();
    let message = message.map_err(|_| wrong_type(value, &format!("a {}", plan.name())))?;
    check_type(plan, message.get().plan())?;
    Ok(message)
}

fn check_type(shall: &Plan, is: &Plan) -> PyResult<()> {
    if is.is_same(shall) {
        return Ok(());
    }
    let (is, shall) = (is.name(), shall.name());
    let also = if is == shall { ", of another definition" } else { "" };
    Err(PyTypeError::new_err(format!("a {is}{also}; allowed: a {shall}")))
}

/// Numbers as they are, where they lie as CDR has them; else in memory of their own.
fn convert_numbers<'py>(
    kind: ScalarKind,
    shape: Shape,
    value: &Bound<'py, PyAny>,
) -> Checked<Bound<'py, PyAny>> {
    let (py, element) = (value.py(), view::element_kind(kind));
    let Some(lent) = BufferView::of(value, element) else {
        return Ok(view::kept(py, shape, numbers_of(kind, value)?)?);
    };
    if !view::is_kept(value, shape) {
        return Ok(view::kept(py, shape, lent.copied(element))?);
    }
    Ok(match lent.is_flat() {
        true => value.clone(),
        false => value.call_method1("reshape", (-1,))?,
    })
}

/// Numbers of a sequence, one by one.
fn numbers_of(kind: ScalarKind, value: &Bound<'_, PyAny>) -> Checked<Array> {
    let element = view::element_kind(kind);
    if value.is_instance_of::<PyString>() {
        return Err(view::no_array(value, element).into());
    }
    let items = value.try_iter().map_err(|_| view::no_array(value, element))?;
    let mut bytes: Vec<u8> = Vec::new();
    for (at, item) in items.enumerate() {
        let item = item?;
        if kind == ScalarKind::F32 {
            let value = float32(&item).map_err(|error| Wrong::from(error).at(at))?;
            bytes.extend_from_slice(&value.to_ne_bytes());
            continue;
        }
        with_number!(kind, Number => {
            let value = number::<Number>(&item, element.dtype());
            let value = value.map_err(|error| Wrong::from(error).at(at))?;
            bytes.extend_from_slice(bytemuck::bytes_of(&value));
        });
    }
    let array = Array::own(bytes.len() / element.size, element);
    array.fill(|own| own.copy_from_slice(&bytes));
    Ok(array)
}

fn number<'py, N: for<'a> FromPyObject<'a, 'py>>(value: &Bound<'py, PyAny>, of: &str) -> PyResult<N>
where
    for<'a> <N as FromPyObject<'a, 'py>>::Error: Into<PyErr>,
{
    value.extract::<N>().map_err(|error| {
        let error: PyErr = error.into();
        let py = value.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            let text = format!("{value}; allowed: what {of} holds");
            return PyOverflowError::new_err(text);
        }
        if error.is_instance_of::<PyTypeError>(py) {
            return wrong_type(value, of);
        }
        error
    })
}

/// What is larger than a float32 holds is told; infinity and not-a-number stay what they are.
fn float32(value: &Bound<'_, PyAny>) -> PyResult<f32> {
    let wide = number::<f64>(value, "float32")?;
    let narrow = wide as f32;
    match wide.is_finite() && narrow.is_infinite() {
        true => Err(PyOverflowError::new_err(format!("{value}; allowed: what float32 holds"))),
        false => Ok(narrow),
    }
}

fn wrong_type(value: &Bound<'_, PyAny>, allowed: &str) -> PyErr {
    let is = value.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("{is}; allowed: {allowed}"))
}

/// What is wrong, and with which field.
pub(crate) struct Wrong {
    path: String,
    error: PyErr,
}

type Checked<T> = Result<T, Wrong>;

impl<E: Into<PyErr>> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self { path: String::new(), error: error.into() }
    }
}

impl Wrong {
    fn of(self, field: &str) -> Self {
        self.behind(field.to_owned())
    }

    fn at(self, index: usize) -> Self {
        self.behind(format!("[{index}]"))
    }

    fn behind(self, mut path: String) -> Self {
        if !self.path.is_empty() && !self.path.starts_with('[') {
            path.push('.');
        }
        path.push_str(&self.path);
        Self { path, error: self.error }
    }

    /// As Python gets it: the same exception, whose text begins with the field; one of another kind has it as a note.
    pub(crate) fn raised(self, py: Python<'_>) -> PyErr {
        let kind = self.error.get_type(py);
        let is_own = [
            py.get_type::<PyTypeError>(),
            py.get_type::<PyValueError>(),
            py.get_type::<PyOverflowError>(),
        ];
        if is_own.iter().any(|it| kind.is(it)) {
            let text = format!("{}: {}", self.path, self.error.value(py));
            return PyErr::from_type(kind, (text,));
        }
        // What a program's own iterators raise stays as it is.
        if let Err(other) = self.error.add_note(py, format!("in the field {}", self.path)) {
            return other;
        }
        self.error
    }
}

/// A sequence of numbers of a message that is filled when the rest was written.
#[derive(Clone)]
pub(crate) struct Room {
    /// The field, by its place in the plan.
    pub(crate) field: usize,
    pub(crate) kind: ScalarKind,
    pub(crate) count: usize,
    /// Where it begins in the sample, once that was written.
    pub(crate) start: usize,
}

/// Bytes of an array that is lent: what the sample's length can say in 32 bits, with room for the rest of it.
const ROOM_BYTES_MAX: usize = (u32::MAX >> 1) as usize;

/// Writes the body of a message.
pub(crate) fn write_message<S: Sink>(
    message: &Bound<'_, Message>,
    writer: &mut Writer<S>,
) -> Checked<()> {
    write_around(message, &mut [], writer)
}

/// The same with room in the place of some of its fields.
pub(crate) fn write_around<S: Sink>(
    message: &Bound<'_, Message>,
    rooms: &mut [Room],
    writer: &mut Writer<S>,
) -> Checked<()> {
    let plan = message.get().plan();
    if plan.fields.is_empty() {
        return Ok(writer.scalar(0_u8).map_err(raised)?);
    }
    for (index, field) in plan.fields.iter().enumerate() {
        let written = match rooms.iter_mut().find(|it| it.field == index) {
            Some(room) => write_room(room, field.shape, writer),
            None => {
                let value = message.get().kept(message.py(), index)?;
                write_field(field, &value, writer)
            }
        };
        written.map_err(|wrong| wrong.of(&field.name))?;
    }
    Ok(())
}

fn write_room<S: Sink>(room: &mut Room, shape: Shape, writer: &mut Writer<S>) -> Checked<()> {
    check_count(shape, room.count)?;
    if ROOM_BYTES_MAX / room.kind.size() < room.count {
        let allowed = ROOM_BYTES_MAX / room.kind.size();
        let text = format!("{} elements; allowed: at most {allowed}", room.count);
        return Err(PyValueError::new_err(text).into());
    }
    writer.length(room.count).map_err(raised)?;
    room.start = writer.skip(room.kind, room.count).map_err(raised)?.start;
    Ok(())
}

fn write_field<S: Sink>(
    field: &FieldPlan,
    value: &Bound<'_, PyAny>,
    writer: &mut Writer<S>,
) -> Checked<()> {
    let is_counted = matches!(field.shape, Shape::Sequence | Shape::Bounded(_));
    match (&field.base, field.shape) {
        (base, Shape::Single) => write_single(base, value, writer),
        (BasePlan::Scalar(kind), _) => {
            let element = view::element_kind(*kind);
            // What a program has made of a list of truth values is looked at anew.
            let listed = match value.cast::<PyList>() {
                Ok(_) => Some(Bound::new(value.py(), numbers_of(*kind, value)?)?.into_any()),
                Err(_) => None,
            };
            let value = listed.as_ref().unwrap_or(value);
            let lent =
                BufferView::of(value, element).ok_or_else(|| view::no_array(value, element))?;
            let count = lent.bytes().len() / element.size;
            check_count(field.shape, count)?;
            if is_counted {
                writer.length(count).map_err(raised)?;
            }
            if *kind == ScalarKind::Bool {
                let values: Vec<bool> = lent.bytes().iter().map(|it| *it != 0).collect();
                return Ok(writer.scalars(&values).map_err(raised)?);
            }
            Ok(with_pod!(*kind, Number => write_numbers::<Number, S>(lent.bytes(), writer))?)
        }
        (base, _) => {
            let list = value.cast::<PyList>()?;
            let count = list.len();
            check_count(field.shape, count)?;
            if is_counted {
                writer.length(count).map_err(raised)?;
            }
            let mut written = 0;
            for (at, item) in list.iter().enumerate() {
                write_single(base, &item, writer).map_err(|wrong| wrong.at(at))?;
                written += 1;
            }
            // What an element runs of Python, or another thread, may have changed it.
            match written == count {
                true => Ok(()),
                false => {
                    Err(PyRuntimeError::new_err("the list changed while it was written").into())
                }
            }
        }
    }
}

fn write_numbers<N: Scalar + Copy + bytemuck::AnyBitPattern, S: Sink>(
    bytes: &[u8],
    writer: &mut Writer<S>,
) -> PyResult<()> {
    if let Ok(numbers) = bytemuck::try_cast_slice::<u8, N>(bytes) {
        return writer.scalars(numbers).map_err(raised);
    }
    let numbers: Vec<N> =
        bytes.chunks_exact(size_of::<N>()).map(bytemuck::pod_read_unaligned).collect();
    writer.scalars(&numbers).map_err(raised)
}

fn write_single<S: Sink>(
    base: &BasePlan,
    value: &Bound<'_, PyAny>,
    writer: &mut Writer<S>,
) -> Checked<()> {
    let written = match base {
        BasePlan::Scalar(kind) => with_number!(*kind, Number => {
            writer.scalar(number::<Number>(value, view::element_kind(*kind).dtype())?)
        }),
        BasePlan::Text { is_wide, .. } => {
            let value = convert_single(base, value)?;
            let text = value.cast::<PyString>()?.to_str()?.to_owned();
            if *is_wide { writer.wstring(&text) } else { writer.string(&text) }
        }
        BasePlan::Message(plan) => return write_message(nested(plan, value)?, writer),
    };
    Ok(written.map_err(raised)?)
}
