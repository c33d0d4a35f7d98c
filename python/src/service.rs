//! Servers and clients.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use pyo3::exceptions::PyTimeoutError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use tsuji::{Bytes, ErrorKind, RawClient, RawPending, RawRequest, RawService};

use crate::error::raised;
use crate::message::{self, Message, Place};
use crate::qos::seconds;
use crate::topic::{received, wait_until};
use crate::types::ServicePlan;
use crate::waiting::{Callback, Life, Outside, Wake, block_on, lock, poll_once};
use crate::write::message_of;

/// A server of services. It leaves the graph when it is dropped.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct Service {
    pub(crate) raw: Outside<RawService>,
    pub(crate) callback: Callback,
}

#[pymethods]
impl Service {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callback.traverse(visit)
    }

    fn __clear__(&self) {
        self.callback.clear();
    }

    /// Calls back no more.
    fn end(&self) {
        self.callback.clear();
    }

    /// The full name of the service.
    #[getter]
    fn name(&self) -> &str {
        self.raw.name()
    }

    /// How many clients can send requests.
    #[getter]
    fn clients(&self) -> usize {
        self.raw.clients()
    }
}

/// Lets `callback` answer a request.
pub(crate) fn answer_request(
    py: Python<'_>,
    plan: &ServicePlan,
    request: RawRequest,
    callback: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let place = Place::whole(request.bytes().clone());
    let asked = Message::received(py, &plan.request, place, None)?;
    let response = callback.call1((asked,))?;
    let response = message::encode(message_of(&plan.response, &response)?)?;
    respond(py, request, &response)
}

/// Sends a response.
pub(crate) fn respond(py: Python<'_>, request: RawRequest, response: &[u8]) -> PyResult<()> {
    match py.detach(|| request.respond_bytes(response)) {
        // A client that has left needs no answer; it is counted.
        Err(error) if error.kind() == ErrorKind::Closed => Ok(()),
        answered => answered.map_err(raised),
    }
}

/// Calls services of one type.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct Client {
    pub(crate) raw: Outside<RawClient>,
    pub(crate) plan: Arc<ServicePlan>,
    pub(crate) life: Arc<Life>,
}

#[pymethods]
impl Client {
    /// The class of requests.
    #[getter]
    fn request_class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.plan.request.class(py)?.into_any())
    }

    /// Sends a request and waits for the response.
    #[pyo3(signature = (request, timeout = None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        request: &Bound<'py, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        message_of(&self.plan.request, request)?;
        let asked = Instant::now();
        self.wait_for_service(py, timeout)?;
        let pending = self.send_request(py, request)?;
        let timeout = timeout.map(seconds).transpose()?;
        let timeout = timeout.map(|it| it.saturating_sub(asked.elapsed()));
        match block_on(py, &self.life, pending, timeout)? {
            Some(response) => response_of(py, &self.plan, response.map_err(raised)?),
            None => Err(PyTimeoutError::new_err(format!("call {}: no reply", self.raw.name()))),
        }
    }

    /// Sends a request; what is returned is asked for the response.
    fn send(&self, py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let pending = self.send_request(py, request)?;
        let (plan, life) = (Arc::clone(&self.plan), Arc::clone(&self.life));
        Ok(Pending { pending: Mutex::new(Some(pending)), plan, life })
    }

    /// Sends a request whose response `take` will bring, and returns its number. Where no server is there it has none.
    fn post(&self, py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<u64> {
        let request = self.encoded(request)?;
        py.detach(|| self.raw.post_bytes(&request)).map_err(raised)
    }

    /// The oldest response to a request that was posted, with the request's number; None where there is none.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, Bound<'py, PyAny>)>> {
        self.life.check()?;
        let Some((number, sample)) = self.raw.take_bytes().map_err(raised)? else {
            return Ok(None);
        };
        let response = received(py, &self.plan.response, sample)?;
        Ok(Some((number, response)))
    }

    /// Waits until there is a server.
    #[pyo3(signature = (timeout = None))]
    fn wait_for_service(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let passing = [ErrorKind::NoServer, ErrorKind::Timeout];
        wait_until(py, &self.life, timeout, &passing, |step| self.raw.wait_for_service(step))
    }

    /// Raises once the node is shut down.
    fn check_open(&self) -> PyResult<()> {
        self.life.check()
    }

    /// How many servers there are.
    #[getter]
    fn servers(&self) -> usize {
        self.raw.servers()
    }

    /// The full name of the service.
    #[getter]
    fn name(&self) -> &str {
        self.raw.name()
    }
}

impl Client {
    fn send_request(&self, py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<RawPending> {
        let request = self.encoded(request)?;
        py.detach(|| self.raw.send_bytes(&request)).map_err(raised)
    }

    fn encoded(&self, request: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        self.life.check()?;
        message::encode(message_of(&self.plan.request, request)?)
    }
}

fn response_of<'py>(
    py: Python<'py>,
    plan: &ServicePlan,
    bytes: Bytes,
) -> PyResult<Bound<'py, PyAny>> {
    Message::received(py, &plan.response, Place::whole(bytes), None)
}

/// A request that was sent.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct Pending {
    pending: Mutex<Option<RawPending>>,
    plan: Arc<ServicePlan>,
    life: Arc<Life>,
}

#[pymethods]
impl Pending {
    /// The response is wanted no more.
    fn forget(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.pending).take()));
    }

    /// The response, if it has come; else `wake` is woken when it is worth asking again.
    fn poll<'py>(&self, py: Python<'py>, wake: Wake) -> PyResult<Option<Bound<'py, PyAny>>> {
        let response = poll_once(py, &self.life, &self.pending, &wake)?;
        let response = response.transpose().map_err(raised)?;
        response.map(|bytes| response_of(py, &self.plan, bytes)).transpose()
    }
}
