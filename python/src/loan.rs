//! Messages in the memory that will carry them, filled in place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tsuji::LoanedMessage;
use tsuji::dynamic::DynamicMessage;
use tsuji_msg::definition::{ScalarKind, Shape};

use crate::error::raised;
use crate::message::{self, Message};
use crate::read::with_pod;
use crate::topic::Publisher;
use crate::types::BasePlan;
use crate::view::{self, Array};
use crate::waiting::lock;

/// The memory of a loan, which stays while an array of it is held.
pub(crate) struct LoanMemory(Mutex<Option<LoanedMessage<DynamicMessage>>>);

/// A message that is lent, to be filled and published.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct Loan {
    publisher: Py<Publisher>,
    lent: Arc<LoanMemory>,
    template: Py<PyAny>,
    /// The template as it was written into the loan.
    written: Vec<u8>,
    /// The arrays that are filled in place, with their lengths.
    arrays: Vec<(String, usize)>,
    /// It was published, or given up. What arrays of it are held keep its memory.
    is_over: AtomicBool,
}

impl Loan {
    pub(crate) fn of(
        publisher: &Bound<'_, Publisher>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (py, plan) = (publisher.py(), &publisher.get().plan);
        let values = PyDict::new(py);
        let mut arrays = Vec::new();
        for (name, value) in fields.into_iter().flatten() {
            let name: String = name.extract()?;
            let is_array = plan.fields.iter().any(|field| {
                field.name == name
                    && matches!(field.base, BasePlan::Scalar(kind) if kind != ScalarKind::Bool)
                    && matches!(field.shape, Shape::Sequence | Shape::Bounded(_))
            });
            match value.extract::<usize>() {
                Ok(len) if is_array => arrays.push((name, len)),
                _ => values.set_item(name, value)?,
            }
        }
        publisher.get().life.check()?;
        let template = plan.class(py)?.call((), Some(&values))?;
        let is_given = values.contains("data")?;
        if plan.name() == "sensor_msgs/msg/Image"
            && !is_given
            && !arrays.iter().any(|(name, _)| name == "data")
        {
            arrays.push(("data".to_owned(), picture_bytes(&template)?));
        }
        let bytes = message::encode(template.cast::<Message>()?)?;
        let described = DynamicMessage::decode(&plan.ty, &bytes)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let rooms: Vec<(&str, usize)> =
            arrays.iter().map(|(it, len)| (it.as_str(), *len)).collect();
        let raw = &publisher.get().raw;
        let loan = py.detach(|| raw.loan_with(&described, &rooms)).map_err(raised)?;
        Ok(Self {
            publisher: publisher.clone().unbind(),
            lent: Arc::new(LoanMemory(Mutex::new(Some(loan)))),
            template: template.unbind(),
            written: bytes,
            arrays,
            is_over: AtomicBool::new(false),
        })
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
        let plan = &self.publisher.get().plan;
        let Some((_, count)) = self.arrays.iter().find(|(it, _)| it == name) else {
            return self.template.bind(py).getattr(name);
        };
        let kind = plan.fields.iter().find(|it| it.name == name).and_then(|it| match it.base {
            BasePlan::Scalar(kind) => Some(kind),
            _ => None,
        });
        let kind = kind.ok_or_else(|| PyAttributeError::new_err(name.to_owned()))?;
        let mut lent = lock(&self.lent.0);
        let Some(loan) = lent.as_mut().filter(|_| !self.is_over.load(Ordering::Relaxed)) else {
            return Err(over());
        };
        let start = array_start(loan, kind, name)?;
        // Under the lock, for `publish` to see it.
        let held = Arc::clone(&self.lent);
        drop(lent);
        // SAFETY: the memory stays while the array has it, and one array writes where the program has it write.
        let array = unsafe { Array::lent(held, start, *count, view::element_kind(kind)) };
        view::to_python(py, array)
    }

    fn __setattr__(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        // As `loan.data[:] = value` does.
        let array = self.__getattr__(py, name)?;
        if !self.arrays.iter().any(|(it, _)| it == name) {
            return Err(PyAttributeError::new_err(format!(
                "{name}: its bytes are written already; allowed: its value when the message is lent"
            )));
        }
        array.set_item(pyo3::types::PySlice::full(py), value)
    }

    /// Publishes it. Where one of its arrays is still held a copy is published.
    fn publish(&self, py: Python<'_>) -> PyResult<()> {
        self.publisher.get().life.check()?;
        let template = self.template.bind(py).cast::<Message>()?;
        if message::encode(template)? != self.written {
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
        let bytes = tsuji::Bytes::copy_from(loan.bytes());
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

fn array_start(
    loan: &mut LoanedMessage<DynamicMessage>,
    kind: ScalarKind,
    name: &str,
) -> PyResult<*mut u8> {
    if kind == ScalarKind::Bool {
        let text = format!("{name}: truth values are not filled in place");
        return Err(PyAttributeError::new_err(text));
    }
    Ok(with_pod!(kind, Number => {
        loan.array_mut::<Number>(name).map_err(raised)?.as_mut_ptr().cast()
    }))
}

fn over() -> PyErr {
    PyValueError::new_err("the loan is over: it was published, or given up")
}
