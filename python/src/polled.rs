//! Waiting and taking by hand: what executors stand on that are written in Python, such as those of `tsuji.rclpy`.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use tsuji::action::{ActionServer as RawServer, RawAction};
use tsuji::{Context, RawRequest, RawService, Waitable};

use crate::action::{ActionPlan, ServerGoal};
use crate::error::raised;
use crate::message::{self, Message, Place};
use crate::qos::seconds;
use crate::service::{Client, respond};
use crate::topic::Subscription;
use crate::types::ServicePlan;
use crate::waiting::{Callback, Life, Outside, deadline, lock, step};
use crate::write::message_of;

/// Ends a wait from any thread. Calling it triggers it, so that it can be what a poll is to wake.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct GuardCondition(pub(crate) Outside<tsuji::GuardCondition>);

impl GuardCondition {
    pub(crate) fn new(context: &Context) -> tsuji::Result<Self> {
        tsuji::GuardCondition::new(context).map(|it| Self(Outside::new(it)))
    }
}

#[pymethods]
impl GuardCondition {
    /// Makes the condition ready, until a wait has said so.
    fn trigger(&self) {
        self.0.trigger();
    }

    fn __call__(&self) {
        self.0.trigger();
    }
}

/// Sleeps until one of those is ready that each call names anew.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct WaitList(Mutex<Outside<tsuji::WaitList>>);

impl WaitList {
    pub(crate) fn new(context: &Context) -> tsuji::Result<Self> {
        tsuji::WaitList::new(context).map(|it| Self(Mutex::new(Outside::new(it))))
    }
}

#[pymethods]
impl WaitList {
    /// Waits until something is ready, for `timeout` seconds at most, and returns the places of those that are. They stay ready as
    /// long as there is something to be taken.
    fn wait(
        &self,
        py: Python<'_>,
        entities: Vec<Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Vec<usize>> {
        let mut waitables: Vec<&dyn Waitable> = Vec::with_capacity(entities.len());
        // The place of each among those that were named: some are waited for by several means.
        let mut places = Vec::with_capacity(entities.len());
        for (place, entity) in entities.iter().enumerate() {
            if let Ok(it) = entity.cast::<Subscription>() {
                waitables.push(&*it.get().raw);
            } else if let Ok(it) = entity.cast::<GuardCondition>() {
                waitables.push(&*it.get().0);
            } else if let Ok(it) = entity.cast::<PolledService>() {
                waitables.push(&*it.get().raw);
            } else if let Ok(it) = entity.cast::<Client>() {
                waitables.push(&*it.get().raw);
            } else if let Ok(it) = entity.cast::<PolledActionServer>() {
                waitables.extend(it.get().raw.waitables());
            } else {
                return Err(PyTypeError::new_err(format!("{entity}: it cannot be waited for")));
            }
            places.resize(waitables.len(), place);
        }
        let until = deadline(timeout.map(seconds).transpose()?);
        loop {
            let step = step(until);
            let ready = py.detach(|| {
                let mut list = lock(&self.0);
                list.wait(&waitables, Some(step.unwrap_or_default())).map(<[usize]>::to_vec)
            });
            let ready = ready.map_err(raised)?;
            py.check_signals()?;
            if !ready.is_empty() || step.is_none() {
                let mut ready: Vec<usize> = ready.into_iter().map(|it| places[it]).collect();
                ready.dedup();
                return Ok(ready);
            }
        }
    }
}

/// A server that is asked for its requests.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct PolledService {
    pub(crate) raw: Outside<RawService>,
    pub(crate) plan: Arc<ServicePlan>,
    pub(crate) life: Arc<Life>,
}

#[pymethods]
impl PolledService {
    /// The oldest request that was not taken, with what is to be asked to respond to it; None where there is none.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, PolledRequest)>> {
        self.life.check()?;
        let Some(request) = self.raw.take_bytes().map_err(raised)? else { return Ok(None) };
        let place = Place::whole(request.bytes().clone());
        let asked = Message::received(py, &self.plan.request, place, Some(*request.info()))?;
        let request = Mutex::new(Some(request));
        Ok(Some((asked, PolledRequest { request, plan: Arc::clone(&self.plan) })))
    }

    /// The full name of the service.
    #[getter]
    fn name(&self) -> &str {
        self.raw.name()
    }
}

/// A request that was taken.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct PolledRequest {
    request: Mutex<Option<RawRequest>>,
    plan: Arc<ServicePlan>,
}

#[pymethods]
impl PolledRequest {
    /// Sends the response, once.
    fn respond(&self, py: Python<'_>, response: &Bound<'_, PyAny>) -> PyResult<()> {
        let response = message::encode(message_of(&self.plan.response, response)?)?;
        let Some(request) = lock(&self.request).take() else { return Ok(()) };
        respond(py, request, &response)
    }
}

/// A server of an action that is asked for its goals.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct PolledActionServer {
    pub(crate) raw: Outside<RawServer<RawAction>>,
    pub(crate) plan: Arc<ActionPlan>,
    pub(crate) life: Arc<Life>,
    /// What decide about goals and about their cancelling.
    pub(crate) callbacks: [Callback; 2],
    /// What they raised.
    pub(crate) raised: Arc<Mutex<Option<PyErr>>>,
}

#[pymethods]
impl PolledActionServer {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callbacks.iter().try_for_each(|it| it.traverse(visit))
    }

    fn __clear__(&self) {
        self.callbacks.iter().for_each(Callback::clear);
    }

    /// Handles what has come, and returns the next goal to execute; None where there is none.
    fn take(&self, py: Python<'_>) -> PyResult<Option<ServerGoal>> {
        self.life.check()?;
        let goal = py.detach(|| self.raw.take()).map_err(raised)?;
        if let Some(error) = lock(&self.raised).take() {
            return Err(error);
        }
        Ok(goal.map(|goal| ServerGoal::new(&self.plan, goal)))
    }
}
