//! Parameters of a node, and those of others.

use std::sync::Mutex;

use pyo3::exceptions::{PyLookupError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList};
use tsuji::parameter::{
    Parameter, ParameterCallback, ParameterClient, ParameterDescriptor, ParameterRange,
    ParameterValue, Parameters,
};

use crate::error::raised;
use crate::qos::seconds;
use crate::waiting::{Callback, Outside, attach};

/// The value of a parameter, from what Python has for it.
pub(crate) fn value_of(value: &Bound<'_, PyAny>) -> PyResult<ParameterValue> {
    // A bool is a whole number too.
    if value.is_none() {
        return Ok(ParameterValue::NotSet);
    }
    // numpy's too.
    if let Ok(value) = value.extract::<bool>() {
        return Ok(ParameterValue::Bool(value));
    }
    if let Ok(value) = value.cast::<PyBytes>() {
        return Ok(ParameterValue::ByteArray(value.as_bytes().to_vec()));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(ParameterValue::String(text));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(ParameterValue::Integer(number));
    }
    if value.is_instance_of::<PyInt>() {
        return Err(PyOverflowError::new_err(format!("{value} as a parameter; allowed: 64 bits")));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(ParameterValue::Double(number));
    }
    let items: Vec<Bound<'_, PyAny>> = match value.try_iter() {
        Ok(items) => items.collect::<PyResult<_>>()?,
        Err(_) => return Err(wrong(value)),
    };
    if items.is_empty() {
        // It takes the type that the parameter has.
        return Ok(ParameterValue::UNTYPED_EMPTY);
    }
    let is_bools = !items.is_empty() && items.iter().all(|it| it.is_instance_of::<PyBool>());
    if is_bools {
        return Ok(ParameterValue::BoolArray(value.extract()?));
    }
    if let Ok(texts) = value.extract::<Vec<String>>()
        && !items.is_empty()
    {
        return Ok(ParameterValue::StringArray(texts));
    }
    if let Ok(numbers) = value.extract::<Vec<i64>>() {
        return Ok(ParameterValue::IntegerArray(numbers));
    }
    value.extract::<Vec<f64>>().map(ParameterValue::DoubleArray).map_err(|_| wrong(value))
}

fn wrong(value: &Bound<'_, PyAny>) -> PyErr {
    let is = value.get_type().name().map(|it| it.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "{is} as a parameter; allowed: None, bool, int, float, str, bytes, and lists of one of bool, int, float and str"
    ))
}

pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: ParameterValue,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ParameterValue::NotSet => py.None().into_bound(py),
        ParameterValue::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        ParameterValue::Integer(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::Double(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::String(value) => value.into_pyobject(py)?.into_any(),
        ParameterValue::ByteArray(value) => PyBytes::new(py, &value).into_any(),
        ParameterValue::BoolArray(values) => PyList::new(py, values)?.into_any(),
        ParameterValue::IntegerArray(values) => PyList::new(py, values)?.into_any(),
        ParameterValue::DoubleArray(values) => PyList::new(py, values)?.into_any(),
        ParameterValue::StringArray(values) => PyList::new(py, values)?.into_any(),
    })
}

/// What is allowed of a parameter of this default.
pub(crate) fn descriptor(
    default: &ParameterValue,
    range: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    description: &str,
    read_only: bool,
    dynamic_typing: bool,
) -> PyResult<ParameterDescriptor> {
    let range = match (range, default) {
        (None, _) => None,
        (Some((from, to)), ParameterValue::Integer(_)) => {
            Some(ParameterRange::Integer { from: from.extract()?, to: to.extract()?, step: 0 })
        }
        (Some((from, to)), ParameterValue::Double(_)) => {
            let (from, to) = (from.extract()?, to.extract()?);
            Some(ParameterRange::FloatingPoint { from, to, step: 0.0 })
        }
        _ => {
            let text =
                format!("a range for a parameter of type {}; allowed: for numbers", default.ty());
            return Err(PyValueError::new_err(text));
        }
    };
    Ok(ParameterDescriptor {
        description: description.to_owned(),
        read_only,
        dynamic_typing,
        range,
        ..ParameterDescriptor::default()
    })
}

/// Declares a parameter of the type of its default.
pub(crate) fn declare(
    parameters: &Parameters,
    name: &str,
    default: ParameterValue,
    descriptor: ParameterDescriptor,
) -> tsuji::Result<ParameterValue> {
    use ParameterValue as V;
    match default {
        V::NotSet => {
            parameters.declare_unset(name, tsuji::parameter::ParameterType::NotSet, descriptor)
        }
        V::Bool(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
        V::Integer(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
        V::Double(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
        V::String(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
        V::ByteArray(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
        V::BoolArray(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
        V::IntegerArray(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
        V::DoubleArray(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
        V::StringArray(it) => parameters.declare_with(name, it, descriptor).map(Into::into),
    }
}

/// The value of a parameter that is declared.
pub(crate) fn get<'py>(
    py: Python<'py>,
    parameters: &Parameters,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    match parameters.value(name) {
        Some(value) => to_python(py, value),
        None => Err(PyLookupError::new_err(format!("the parameter {name} is not declared"))),
    }
}

/// Is asked before parameters are set, as long as it is held.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct OnSet {
    _kept: Outside<Mutex<ParameterCallback>>,
    callback: Callback,
}

#[pymethods]
impl OnSet {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callback.traverse(visit)
    }

    fn __clear__(&self) {
        self.callback.clear();
    }

    /// Stops asking the callback.
    fn end(&self) {
        self.callback.clear();
    }
}

impl OnSet {
    /// What `callback` raises of a `ValueError` refuses what is about to be set; it gets a dict of it.
    pub(crate) fn new(parameters: &Parameters, callback: Py<PyAny>) -> Self {
        let callback = Callback::new(callback);
        let called = callback.clone();
        let kept = parameters.on_set(move |set: &[Parameter]| {
            let mut answer = Ok(());
            attach(|py| {
                let Some(callback) = called.get(py) else { return };
                let ask = || -> PyResult<()> {
                    let dict = PyDict::new(py);
                    for parameter in set {
                        dict.set_item(&parameter.name, to_python(py, parameter.value.clone())?)?;
                    }
                    callback.call1((dict,)).map(drop)
                };
                answer = ask().map_err(|error| {
                    // What is no refusal is told where the program looks.
                    if !error.is_instance_of::<PyValueError>(py) {
                        error.clone_ref(py).write_unraisable(py, Some(&callback));
                    }
                    error.value(py).to_string()
                });
            });
            answer
        });
        Self { _kept: Outside::new(Mutex::new(kept)), callback }
    }
}

/// Reads and sets the parameters of another node.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct RemoteParameters {
    client: Outside<ParameterClient>,
}

impl RemoteParameters {
    pub(crate) fn new(asking: &tsuji::Node, of: &str) -> Self {
        Self { client: Outside::new(ParameterClient::new(asking, of)) }
    }
}

#[pymethods]
impl RemoteParameters {
    /// Names of all parameters.
    #[pyo3(signature = (timeout = 5.0))]
    fn list(&self, py: Python<'_>, timeout: f64) -> PyResult<Vec<String>> {
        let timeout = seconds(timeout)?;
        Ok(py.detach(|| self.client.list(&[], 0, timeout)).map_err(raised)?.names)
    }

    /// Value of a parameter; None if it is not set.
    #[pyo3(signature = (name, timeout = 5.0))]
    fn get<'py>(&self, py: Python<'py>, name: &str, timeout: f64) -> PyResult<Bound<'py, PyAny>> {
        let timeout = seconds(timeout)?;
        let values = py.detach(|| self.client.get(&[name], timeout)).map_err(raised)?;
        to_python(py, values.into_iter().next().unwrap_or_default())
    }

    /// Sets a parameter. Raises `ValueError` with the reason if the node refuses it.
    #[pyo3(signature = (name, value, timeout = 5.0))]
    fn set(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        timeout: f64,
    ) -> PyResult<()> {
        let timeout = seconds(timeout)?;
        let parameter = Parameter::new(name, value_of(value)?);
        let set = py.detach(|| self.client.set(vec![parameter], timeout)).map_err(raised)?;
        match set.into_iter().next() {
            Some(Err(why)) => Err(PyValueError::new_err(why)),
            _ => Ok(()),
        }
    }
}
