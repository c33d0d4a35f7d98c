//! Messages in the memory that will carry them, filled in place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tsuji::Loan as RawLoan;
use tsuji_msg::cdr::{CdrError, Count, Sink};
use tsuji_msg::definition::{ScalarKind, Shape};

use crate::error::raised;
use crate::message::{self, Message};
use crate::topic::Publisher;
use crate::types::{BasePlan, Plan};
use crate::view::{self, Array};
use crate::waiting::lock;
use crate::write::Room;

/// The memory of a loan, which stays while an array of it is held.
pub(crate) struct LoanMemory(Mutex<Option<RawLoan>>);

/// A message that is lent, to be filled and published.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct Loan {
    publisher: Py<Publisher>,
    lent: Arc<LoanMemory>,
    /// Has the other fields.
    template: Py<PyAny>,
    /// What was written of it.
    written: Vec<u8>,
    /// The arrays that are filled in place, in the order of the message.
    rooms: Box<[Room]>,
    /// It was published, or given up. What arrays of it are held keep its memory.
    is_over: AtomicBool,
}

impl Loan {
    pub(crate) fn of(
        publisher: &Bound<'_, Publisher>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (py, plan) = (publisher.py(), &publisher.get().plan);
        publisher.get().life.check()?;
        let values = PyDict::new(py);
        let mut rooms = Vec::new();
        for (name, value) in fields.into_iter().flatten() {
            let count = || value.extract::<usize>().ok();
            match room_of(plan, name.cast::<PyString>()?.to_str()?, count) {
                Some(room) => rooms.push(room),
                None => values.set_item(name, value)?,
            }
        }
        let template = plan.class(py)?.call((), Some(&values))?;
        if plan.is_image
            && !values.contains("data")?
            && !rooms.iter().any(|it| plan.fields[it.field].name == "data")
        {
            let bytes = picture_bytes(&template)?;
            rooms.extend(room_of(plan, "data", || Some(bytes)));
        }
        let message = template.cast::<Message>()?;
        let raw = &publisher.get().raw;
        let loan = loop {
            let size = message::write_to(Count::default(), message, &mut rooms)?;
            let mut loan = py.detach(|| raw.loan_bytes(size)).map_err(raised)?;
            // Another thread may have set a part of it meanwhile.
            if message::write_into(message, &mut rooms, &mut loan)? == Some(size) {
                break loan;
            }
        };
        rooms.sort_by_key(|it| it.field);
        Ok(Self {
            written: without_rooms(&rooms, &loan),
            publisher: publisher.clone().unbind(),
            lent: Arc::new(LoanMemory(Mutex::new(Some(loan)))),
            template: template.unbind(),
            rooms: rooms.into(),
            is_over: AtomicBool::new(false),
        })
    }

    fn room(&self, name: &str) -> Option<&Room> {
        let fields = &self.publisher.get().plan.fields;
        self.rooms.iter().find(|it| fields[it.field].name == name)
    }

    /// Whether the other fields are as they were written.
    fn is_as_written(&self, py: Python<'_>) -> PyResult<bool> {
        let mut same = Same { rest: &self.written, position: 0, is_same: true };
        let template = self.template.bind(py).cast::<Message>()?;
        message::write_to(&mut same, template, &mut self.rooms.clone())?;
        Ok(same.is_same && same.rest.is_empty())
    }
}

/// A sample without its rooms, which are in the order of the message.
fn without_rooms(rooms: &[Room], sample: &[u8]) -> Vec<u8> {
    let mut written = Vec::new();
    let mut from = 0;
    for room in rooms {
        written.extend_from_slice(&sample[from..room.start]);
        from = room.start + room.count * room.kind.size();
    }
    written.extend_from_slice(&sample[from..]);
    written
}

/// The room that a field has, if it is a sequence of numbers that are filled in place.
fn room_of(plan: &Plan, name: &str, count: impl FnOnce() -> Option<usize>) -> Option<Room> {
    let field = plan.fields.iter().position(|it| it.name == name)?;
    match (&plan.fields[field].base, plan.fields[field].shape) {
        (BasePlan::Scalar(kind), Shape::Sequence | Shape::Bounded(_))
            if *kind != ScalarKind::Bool =>
        {
            Some(Room { field, kind: *kind, count: count()?, start: 0 })
        }
        _ => None,
    }
}

/// Compares what is written to what was written.
struct Same<'a> {
    rest: &'a [u8],
    position: usize,
    is_same: bool,
}

impl Sink for &mut Same<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        match self.rest.strip_prefix(bytes) {
            Some(rest) => self.rest = rest,
            None => self.is_same = false,
        }
        self.position += bytes.len();
        Ok(())
    }

    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        // Padding, and what ends a text.
        (0..count).try_for_each(|_| self.put(&[0]))
    }

    fn skip(&mut self, count: usize) -> Result<(), CdrError> {
        self.position += count;
        Ok(())
    }

    fn position(&self) -> usize {
        self.position
    }
}

/// How many bytes a picture of this size has; its `step` is set where it is 0.
fn picture_bytes(template: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = |name: &str| template.getattr(name)?.extract::<usize>();
    let (height, width, mut step) = (number("height")?, number("width")?, number("step")?);
    if step == 0 {
        let encoding: String = template.getattr("encoding")?.extract()?;
        step = width * bytes_per_pixel(&encoding)?;
        template.setattr("step", step)?;
    }
    Ok(height * step)
}

/// As in `sensor_msgs/image_encodings.hpp`.
fn bytes_per_pixel(encoding: &str) -> PyResult<usize> {
    Ok(match encoding {
        "rgb8" | "bgr8" | "8UC3" | "8SC3" => 3,
        "rgba8" | "bgra8" | "8UC4" | "8SC4" | "32FC1" | "32SC1" | "16UC2" | "16SC2" => 4,
        "mono8" | "8UC1" | "8SC1" | "bayer_rggb8" | "bayer_bggr8" | "bayer_gbrg8"
        | "bayer_grbg8" => 1,
        "mono16" | "16UC1" | "16SC1" | "8UC2" | "8SC2" | "yuv422" | "yuv422_yuy2" | "uyvy"
        | "yuyv" => 2,
        "rgb16" | "bgr16" | "16UC3" | "16SC3" => 6,
        "rgba16" | "bgra16" | "16UC4" | "16SC4" | "32FC2" | "32SC2" | "64FC1" => 8,
        "32FC3" | "32SC3" => 12,
        "32FC4" | "32SC4" | "64FC2" => 16,
        "64FC3" => 24,
        "64FC4" => 32,
        other => {
            return Err(PyValueError::new_err(format!(
                "the bytes of a pixel of {other:?} are not known; allowed: step, or the length of data"
            )));
        }
    })
}

#[pymethods]
impl Loan {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some(room) = self.room(name) else {
            return self.template.bind(py).getattr(name);
        };
        let mut lent = lock(&self.lent.0);
        let Some(loan) = lent.as_mut().filter(|_| !self.is_over.load(Ordering::Relaxed)) else {
            return Err(over());
        };
        let start = loan[room.start..].as_mut_ptr();
        // Under the lock, for `publish` to see it.
        let held = Arc::clone(&self.lent);
        drop(lent);
        // SAFETY: the memory stays while the array has it, and one array writes where the program has it write.
        let array = unsafe { Array::lent(held, start, room.count, view::element_kind(room.kind)) };
        view::to_python(py, array)
    }

    fn __setattr__(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        // As `loan.data[:] = value` does.
        let array = self.__getattr__(py, name)?;
        if self.room(name).is_none() {
            return Err(PyAttributeError::new_err(format!(
                "{name}: its bytes are written already; allowed: its value when the message is lent"
            )));
        }
        array.set_item(pyo3::types::PySlice::full(py), value)
    }

    /// Publishes it. Where one of its arrays is still held a copy is published.
    fn publish(&self, py: Python<'_>) -> PyResult<()> {
        self.publisher.get().life.check()?;
        if !self.is_as_written(py)? {
            return Err(PyValueError::new_err(
                "a field was changed whose bytes are written already; allowed: its value when the message is lent",
            ));
        }
        if self.is_over.swap(true, Ordering::Relaxed) {
            return Err(over());
        }
        let mut lent = lock(&self.lent.0);
        let raw = &self.publisher.get().raw;
        // Whoever holds an array of it holds its memory.
        if Arc::strong_count(&self.lent) == 1 {
            let loan = lent.take().ok_or_else(over)?;
            drop(lent);
            return py.detach(|| raw.publish_loan(loan)).map_err(raised);
        }
        let loan = lent.as_ref().ok_or_else(over)?;
        let bytes = tsuji::Bytes::copy_from(loan);
        drop(lent);
        py.detach(|| raw.publish_frozen(bytes)).map_err(raised)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        error: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        match error.is_none() && !self.is_over.load(Ordering::Relaxed) {
            true => self.publish(py)?,
            false => {
                self.is_over.store(true, Ordering::Relaxed);
                let mut lent = lock(&self.lent.0);
                // Its memory is given back, unless an array of it is held.
                let given_back = lent.take_if(|_| Arc::strong_count(&self.lent) == 1);
                drop(lent);
                drop(given_back);
            }
        }
        Ok(false)
    }
}

fn over() -> PyErr {
    PyValueError::new_err("the loan is over: it was published, or given up")
}
