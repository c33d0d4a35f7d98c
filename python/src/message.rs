//! Messages as Python sees them: objects of a class for each type, whose fields are read when they are asked for.

use std::ffi::c_void;
use std::fmt::Write as _;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PyTuple, PyType};
use tsuji::{Bytes, MessageInfo};
use tsuji_msg::cdr::{ByteOrder, Count, Sink, Slice, Writer};
use tsuji_msg::definition::{ScalarKind, Shape};

use crate::types::{BasePlan, FieldPlan, Plan, plan_of_class};
use crate::view::{self, Array};
use crate::write::Room;
use crate::{read, waiting, write};

/// A message of some type. Its class is made from the definition of the type.
#[pyclass(subclass, frozen, weakref, module = "tsuji")]
pub(crate) struct Message {
    plan: Arc<Plan>,
    state: Mutex<State>,
}

struct State {
    /// Where the fields are that nobody has asked for.
    place: Option<Place>,
    offsets: Option<Arc<[usize]>>,
    values: Box<[Option<Py<PyAny>>]>,
    /// Of one that came by itself.
    info: Option<MessageInfo>,
}

/// Where a message begins in a sample.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) bytes: Bytes,
    pub(crate) offset: usize,
    /// There is nothing else in the sample.
    pub(crate) is_whole: bool,
}

impl Place {
    /// Of a message that is the whole sample.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { bytes, offset: 4, is_whole: true }
    }
}

impl Message {
    /// One that came.
    pub(crate) fn received<'py>(
        py: Python<'py>,
        plan: &Arc<Plan>,
        place: Place,
        info: Option<MessageInfo>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::received_as(&plan.class(py)?, place, info)
    }

    fn received_as<'py>(
        class: &Bound<'py, PyType>,
        place: Place,
        info: Option<MessageInfo>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = new_instance(class)?;
        // Only here does anybody have it.
        let this = made.cast::<Self>()?.get();
        let mut state = this.lock();
        (state.place, state.info) = (Some(place), info);
        drop(state);
        Ok(made)
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding it, and no Python runs.
        waiting::lock(&self.state)
    }

    /// The value of a field, as programs get it.
    pub(crate) fn value<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let array = match self.kept(py, index)?.cast_into::<Array>() {
            Ok(array) => array,
            Err(other) => return Ok(other.into_inner()),
        };
        let shown = view::shown(array.clone())?;
        let mut state = self.lock();
        // Python has run meanwhile, and may have set the field or cleared the message: that stays.
        match state.values.get_mut(index) {
            Some(Some(kept)) if kept.is(&array) => {
                let before = std::mem::replace(kept, shown.clone().unbind());
                drop(state);
                drop(before);
                Ok(shown)
            }
            Some(Some(_)) => {
                drop(state);
                self.value(py, index)
            }
            _ => Ok(shown),
        }
    }

    /// The value of a field, read or made when it is asked for first. What was copied from a program's numbers is an [`Array`] until
    /// a program asks for it.
    pub(crate) fn kept<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let state = self.lock();
        if let Some(value) = state.values.get(index).and_then(Option::as_ref) {
            return Ok(value.bind(py).clone());
        }
        let (place, offsets) = (state.place.clone(), state.offsets.clone());
        drop(state);
        let field = &self.plan.fields[index];
        let value = match place {
            None => default_of(py, &self.plan, index)?,
            Some(place) => {
                let offsets = match offsets {
                    Some(offsets) => offsets,
                    None => {
                        let found =
                            read::field_offsets(&self.plan, &place).map_err(read::raised)?;
                        let found: Arc<[usize]> = found.into();
                        self.lock().offsets = Some(Arc::clone(&found));
                        found
                    }
                };
                read::read_field(py, field, &place.bytes, offsets[index])?
            }
        };
        let mut state = self.lock();
        // Another thread may have been faster; all get the same. The collector may have cleared it.
        match state.values.get_mut(index) {
            Some(kept) => Ok(kept.get_or_insert_with(|| value.clone().unbind()).bind(py).clone()),
            None => Ok(value),
        }
    }

    fn set(&self, index: usize, value: Bound<'_, PyAny>) -> PyResult<()> {
        let value = write::convert(&self.plan.fields[index], &value)?;
        let before = self.lock().values.get_mut(index).map(|kept| kept.replace(value.unbind()));
        // Not under the lock: what it held may run Python.
        drop(before);
        Ok(())
    }

    /// The message in CDR, if nobody has looked into it since it came: as it came.
    pub(crate) fn as_it_came(&self) -> Option<Bytes> {
        let state = self.lock();
        let place = state.place.as_ref().filter(|it| it.is_whole)?;
        state.values.iter().all(Option::is_none).then(|| place.bytes.clone())
    }
}

/// As `class.__new__(class)`, without a look for the name.
fn new_instance<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    // SAFETY: a class of messages has the slot of `Message`, which takes the class, a tuple of arguments, and no dict or one.
    unsafe {
        let slot = ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_new);
        let new = std::mem::transmute::<*mut c_void, ffi::newfunc>(slot);
        let arguments = PyTuple::empty(py);
        Bound::from_owned_ptr_or_err(
            py,
            new(class.as_type_ptr(), arguments.as_ptr(), ptr::null_mut()),
        )
    }
}

/// The bytes of a message in CDR, header included.
pub(crate) fn size(message: &Bound<'_, Message>) -> PyResult<usize> {
    write_to(Count::default(), message, &mut [])
}

/// Writes a message with room in the place of some of its fields, and answers how many bytes it has.
pub(crate) fn write_to<S: Sink>(
    sink: S,
    message: &Bound<'_, Message>,
    rooms: &mut [Room],
) -> PyResult<usize> {
    Ok(written_to(sink, message, rooms)?.position())
}

fn written_to<S: Sink>(
    sink: S,
    message: &Bound<'_, Message>,
    rooms: &mut [Room],
) -> PyResult<Writer<S>> {
    let mut writer = Writer::new(sink, ByteOrder::Little).map_err(read::raised)?;
    write::write_around(message, rooms, &mut writer).map_err(|wrong| wrong.raised(message.py()))?;
    Ok(writer)
}

/// Writes a message into memory, with room in the place of some of its fields, and answers how many bytes it has; none where there
/// is no room for it: another thread may have set a field since it was measured.
pub(crate) fn write_into(
    message: &Bound<'_, Message>,
    rooms: &mut [Room],
    bytes: &mut [u8],
) -> PyResult<Option<usize>> {
    if let Ok(written) = write_to(Slice::new(bytes), message, rooms) {
        return Ok(Some(written));
    }
    // It grew, or is wrong, which memory that grows with it tells: by now it may have any size again.
    write_to(Vec::new(), message, rooms)?;
    Ok(None)
}

pub(crate) fn encode(message: &Bound<'_, Message>) -> PyResult<Vec<u8>> {
    encode_of_size(message, size(message)?)
}

/// The same of a message that was measured already. It may have another size by now.
pub(crate) fn encode_of_size(message: &Bound<'_, Message>, size: usize) -> PyResult<Vec<u8>> {
    Ok(written_to(Vec::with_capacity(size), message, &mut [])?.into_sink())
}

/// What a field is before anybody sets it.
fn default_of<'py>(py: Python<'py>, plan: &Plan, index: usize) -> PyResult<Bound<'py, PyAny>> {
    let field = &plan.fields[index];
    if let Some(default) = &plan.ty.fields()[index].default {
        return write::convert(field, &crate::types::literal(py, default)?);
    }
    let single = || -> PyResult<Bound<'py, PyAny>> {
        Ok(match &field.base {
            BasePlan::Scalar(ScalarKind::Bool) => false.into_pyobject(py)?.to_owned().into_any(),
            BasePlan::Scalar(ScalarKind::F32 | ScalarKind::F64) => {
                0.0_f64.into_pyobject(py)?.into_any()
            }
            BasePlan::Scalar(_) => 0_u8.into_pyobject(py)?.into_any(),
            BasePlan::Text { .. } => "".into_pyobject(py)?.into_any(),
            BasePlan::Message(plan) => plan.class(py)?.call0()?,
        })
    };
    let count = match field.shape {
        Shape::Single => return single(),
        Shape::Array(count) => count as usize,
        Shape::Sequence | Shape::Bounded(_) => 0,
    };
    if let BasePlan::Scalar(kind) = &field.base {
        return view::kept(py, field.shape, Array::own(count, view::element_kind(*kind)));
    }
    let list = PyList::empty(py);
    for _ in 0..count {
        list.append(single()?)?;
    }
    Ok(list.into_any())
}

#[pymethods]
impl Message {
    #[new]
    #[classmethod]
    #[pyo3(signature = (*_arguments, **_values))]
    fn new(
        class: &Bound<'_, PyType>,
        _arguments: &Bound<'_, PyTuple>,
        _values: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let plan = plan_of_class(class).map_err(|_| {
            PyTypeError::new_err(
                "Message is what all messages are; allowed: the class of a type, by tsuji.load()",
            )
        })?;
        let values = (0..plan.fields.len()).map(|_| None).collect();
        let state = State { place: None, offsets: None, values, info: None };
        Ok(Self { plan, state: Mutex::new(state) })
    }

    #[pyo3(signature = (**values))]
    fn __init__(slf: &Bound<'_, Self>, values: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let this = slf.get();
        for (name, value) in values.into_iter().flatten() {
            let name: String = name.extract()?;
            let index = this.index_of(&name)?;
            this.set(index, value)?;
        }
        Ok(())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let name = this.plan.ty.name();
        let mut text = format!("{}.{}.{}(", name.package(), name.kind(), name.name());
        for (index, field) in this.plan.fields.iter().enumerate() {
            let value = this.value(slf.py(), index)?;
            let before = if index == 0 { "" } else { ", " };
            let _ = write!(text, "{before}{}={}", field.name, format_value(field, &value)?);
        }
        text.push(')');
        Ok(text)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let other = match (op, other.cast::<Self>()) {
            (CompareOp::Eq | CompareOp::Ne, Ok(other)) => other,
            _ => return Ok(py.NotImplemented()),
        };
        let is_equal = is_equal(slf, other)?;
        let answer = is_equal != matches!(op, CompareOp::Ne);
        Ok(answer.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
        Err(PyTypeError::new_err(format!(
            "unhashable type: '{}': it can change",
            slf.get_type().name()?
        )))
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        let made = slf.get_type().call0()?;
        let copy = made.cast::<Self>()?.get();
        let state = this.lock();
        let place = (state.place.clone(), state.offsets.clone());
        let values = state.values.iter().map(|it| it.as_ref().map(|it| it.clone_ref(slf.py())));
        let values = values.collect();
        drop(state);
        let mut state = copy.lock();
        (state.place, state.offsets) = place;
        let before = std::mem::replace(&mut state.values, values);
        drop(state);
        drop(before);
        Ok(made)
    }

    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let made = new_instance(&slf.get_type())?;
        let copy = made.cast::<Self>()?.get();
        let deepcopy = py.import("copy")?.getattr("deepcopy")?;
        for (index, field) in slf.get().plan.fields.iter().enumerate() {
            let value = slf.get().value(py, index)?;
            let value = match &field.base {
                BasePlan::Scalar(kind) if field.shape != Shape::Single => {
                    view::copied(*kind, field.shape, &value)?
                }
                _ => deepcopy.call1((value, memo))?,
            };
            copy.lock().values[index] = Some(value.unbind());
        }
        Ok(made)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector stops nobody who holds it, and comes again.
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        state.values.iter().flatten().try_for_each(|value| visit.call(value))
    }

    fn __clear__(&self) {
        let values = std::mem::take(&mut self.lock().values);
        drop(values);
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let py = slf.py();
        let rebuild = py.import("tsuji")?.getattr("_rebuild")?;
        let ty = &slf.get().plan.ty;
        let bytes = PyBytes::new(py, &encode(slf)?);
        Ok((rebuild, (ty.name().to_string(), ty.full_text(), bytes)))
    }

    /// The message as a dict of dicts, lists, numbers and texts; arrays of numbers as they are.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        let dict = PyDict::new(py);
        for (index, field) in this.plan.fields.iter().enumerate() {
            let value = this.value(py, index)?;
            dict.set_item(&field.name, as_dict(&value)?)?;
        }
        Ok(dict)
    }

    /// A message of this class from a dict as `to_dict` makes it. Fields that are not in it have their defaults.
    #[classmethod]
    fn from_dict<'py>(
        class: &Bound<'py, PyType>,
        dict: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        from_dict(&plan_of_class(class)?, dict)
    }

    /// The fields with their types, as rclpy says them, such as `sequence<double>`.
    #[classmethod]
    fn get_fields_and_field_types<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(class.py());
        for field in &plan_of_class(class)?.fields {
            dict.set_item(&field.name, field.rclpy_type())?;
        }
        Ok(dict)
    }

    /// The message in CDR, with its header of 4 bytes.
    fn to_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        match slf.get().as_it_came() {
            Some(bytes) => Ok(PyBytes::new(slf.py(), &bytes)),
            None => Ok(PyBytes::new(slf.py(), &encode(slf)?)),
        }
    }

    /// A message of this class from CDR with its header of 4 bytes. Its fields are read when they are asked for.
    #[classmethod]
    fn from_bytes<'py>(class: &Bound<'py, PyType>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let place = Place::whole(Bytes::copy_from(bytes));
        let plan = plan_of_class(class)?;
        read::field_offsets(&plan, &place).map_err(read::raised)?;
        Self::received_as(class, place, None)
    }
}

impl Message {
    fn index_of(&self, name: &str) -> PyResult<usize> {
        let found = self.plan.fields.iter().position(|field| field.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.plan.fields.iter().map(|it| it.name.as_str()).collect();
            let (of, names) = (self.plan.name(), names.join(", "));
            PyAttributeError::new_err(format!("{of} has no field {name:?}; allowed: {names}"))
        })
    }
}

/// When a message came and from whom, as a dict; None of a message that was made here. Times are in seconds since 1970.
/// `latency` is in seconds from publish to take; `latency_clock` says by which clock: `monotonic`, which both ends share, or
/// `wall`, by which it may be negative, as the clocks of two hosts disagree. Both are None where the publisher says no time.
#[pyfunction]
pub(crate) fn info<'py>(message: &Bound<'py, Message>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(info) = message.get().lock().info else { return Ok(None) };
    let dict = PyDict::new(message.py());
    dict.set_item("sequence", info.sequence)?;
    dict.set_item("source_time", info.source_wall_ns as f64 / 1e9)?;
    dict.set_item("publisher", info.publisher.to_string())?;
    let latency = info.latency();
    dict.set_item("latency", latency.map(|it| it.ns as f64 / 1e9))?;
    dict.set_item("latency_clock", latency.map(|it| it.clock.as_str()))?;
    Ok(Some(dict))
}

/// What pickle asks for: a function, and what it is to be called with.
type Reduced<'py> = (Bound<'py, PyAny>, (String, String, Bound<'py, PyBytes>));

fn from_dict<'py>(plan: &Arc<Plan>, dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let made = plan.class(dict.py())?.call0()?;
    let message = made.cast::<Message>()?.get();
    for (name, value) in dict {
        let name: String = name.extract()?;
        let index = message.index_of(&name)?;
        let value = match &plan.fields[index].base {
            BasePlan::Message(nested) => from_dicts(nested, value)?,
            _ => value,
        };
        message.set(index, value)?;
    }
    Ok(made)
}

/// Messages in the place of dicts, alone or in a list.
fn from_dicts<'py>(plan: &Arc<Plan>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return from_dict(plan, dict);
    }
    let Ok(items) = value.cast::<PyList>() else { return Ok(value) };
    let list = PyList::empty(value.py());
    for item in items {
        list.append(from_dicts(plan, item)?)?;
    }
    Ok(list.into_any())
}

fn as_dict<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(message) = value.cast::<Message>() {
        return Ok(Message::to_dict(message)?.into_any());
    }
    let Ok(items) = value.cast::<PyList>() else { return Ok(value.clone()) };
    let list = PyList::empty(value.py());
    for item in items {
        list.append(as_dict(&item)?)?;
    }
    Ok(list.into_any())
}

fn is_equal(one: &Bound<'_, Message>, other: &Bound<'_, Message>) -> PyResult<bool> {
    let (py, plan) = (one.py(), &one.get().plan);
    if !plan.is_same(&other.get().plan) {
        return Ok(false);
    }
    for (index, field) in plan.fields.iter().enumerate() {
        let (a, b) = (one.get().value(py, index)?, other.get().value(py, index)?);
        let is_array = !matches!(field.shape, Shape::Single);
        let is_equal = match &field.base {
            BasePlan::Scalar(_) if is_array && !a.is_instance_of::<PyList>() => {
                PyMemoryView::from(&a)?.eq(PyMemoryView::from(&b)?)?
            }
            _ => a.eq(&b)?,
        };
        if !is_equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A value in the text of a message: of many numbers only how many there are.
fn format_value(field: &FieldPlan, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let is_array = !matches!(field.shape, Shape::Single);
    if let BasePlan::Scalar(kind) = &field.base
        && is_array
    {
        let count = value.len()?;
        return match count <= NUMBERS_SHOWN {
            true if value.is_instance_of::<PyList>() => Ok(value.repr()?.to_string()),
            true => Ok(value.call_method0("tolist")?.repr()?.to_string()),
            false => Ok(format!("<{count} {}>", view::element_kind(*kind).dtype())),
        };
    }
    Ok(value.repr()?.to_string())
}

/// Beyond so many numbers in a field the text of a message does not have them.
const NUMBERS_SHOWN: usize = 16;

/// A field of a class of messages.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct FieldOf {
    pub(crate) index: usize,
    pub(crate) name: String,
}

#[pymethods]
impl FieldOf {
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        message: Option<&Bound<'py, PyAny>>,
        _class: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match message.filter(|it| !it.is_none()) {
            Some(message) => message.cast::<Message>()?.get().value(slf.py(), slf.get().index),
            None => Ok(slf.clone().into_any()),
        }
    }

    fn __set__(&self, message: &Bound<'_, Message>, value: Bound<'_, PyAny>) -> PyResult<()> {
        message.get().set(self.index, value)
    }

    fn __delete__(&self, _message: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyAttributeError::new_err(format!("the field {} stays", self.name)))
    }

    fn __repr__(&self) -> String {
        format!("<field {}>", self.name)
    }
}
