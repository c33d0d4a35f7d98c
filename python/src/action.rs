//! Actions: clients that send goals, and servers that execute them.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pyo3::exceptions::{PyTimeoutError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;
use tsuji::Bytes;
use tsuji::action::{
    ActionClient as RawClient, ActionServer as RawServer, CancelOutcome, ClientGoal, GoalHandle,
    GoalStatus, PendingCancel as RawPendingCancel, PendingGoal as RawPendingGoal, RawAction,
    RawActionType,
};
use tsuji_msg::ActionDescription;

use crate::error::raised;
use crate::message::{self, Message, Place};
use crate::qos::seconds;
use crate::topic::wait_until;
use crate::types::{self, Plan};
use crate::waiting::{Callback, Life, Outside, Wake, block_on, lock, poll_once, poll_with};
use crate::write::message_of;

/// How the messages of an action are read and written.
pub(crate) struct ActionPlan {
    description: ActionDescription,
    pub(crate) goal: Arc<Plan>,
    pub(crate) result: Arc<Plan>,
    pub(crate) feedback: Arc<Plan>,
    /// The result with the goal's status before it, as it is sent.
    response: Arc<Plan>,
}

impl ActionPlan {
    /// Of what a program may say for an action: its name, or what has its classes.
    pub(crate) fn of(said: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let name: String = match said.extract() {
            Ok(name) => name,
            Err(_) => said.getattr("_action").and_then(|it| it.extract()).map_err(|_| {
                PyTypeError::new_err(format!("{said}; allowed: an action, or its name"))
            })?,
        };
        let found = types::set()?.load_action(&name);
        let found = found.map_err(types::not_found)?;
        Ok(Arc::new(Self {
            goal: Plan::of(&found.goal),
            result: Plan::of(&found.result),
            feedback: Plan::of(&found.feedback),
            response: Plan::of(&found.get_result.response),
            description: found,
        }))
    }

    pub(crate) fn raw(&self) -> RawActionType {
        RawActionType::from(&self.description)
    }

    /// The bytes of a result, as it is sent.
    fn response_of(&self, result: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let result = message_of(&self.result, result)?;
        let response = self.response.class(result.py())?.call0()?;
        response.setattr("result", result)?;
        message::encode(response.cast::<Message>()?)
    }
}

/// The classes of an action's goal, result and feedback.
#[pyfunction]
pub(crate) fn load_action<'py>(
    py: Python<'py>,
    name: &str,
) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyType>, Bound<'py, PyType>)> {
    let plan = ActionPlan::of(&pyo3::types::PyString::new(py, name).into_any())?;
    Ok((plan.goal.class(py)?, plan.result.class(py)?, plan.feedback.class(py)?))
}

pub(crate) fn read<'py>(
    py: Python<'py>,
    plan: &Arc<Plan>,
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let place = Place::whole(Bytes::copy_from(bytes));
    Message::received(py, plan, place, None)
}

fn name_of(status: GoalStatus) -> &'static str {
    match status {
        GoalStatus::Accepted => "accepted",
        GoalStatus::Executing => "executing",
        GoalStatus::Canceling => "canceling",
        GoalStatus::Succeeded => "succeeded",
        GoalStatus::Canceled => "canceled",
        GoalStatus::Aborted => "aborted",
        _ => "unknown",
    }
}

/// Sends goals to the server of an action.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct ActionClient {
    pub(crate) raw: Outside<RawClient<RawAction>>,
    pub(crate) plan: Arc<ActionPlan>,
    pub(crate) life: Arc<Life>,
}

#[pymethods]
impl ActionClient {
    /// For annotations: `ActionClient[…]` is the class.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        _of: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyType> {
        class.clone()
    }

    /// Waits until there is a server.
    #[pyo3(signature = (timeout = None))]
    fn wait_for_server(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let passing = [tsuji::ErrorKind::NoServer, tsuji::ErrorKind::Timeout];
        wait_until(py, &self.life, timeout, &passing, |step| self.raw.wait_for_server(step))
    }

    /// Sends a goal and waits until the server has taken it; None where it has refused it.
    #[pyo3(signature = (goal, timeout = None))]
    fn send_goal(
        &self,
        py: Python<'_>,
        goal: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Goal>> {
        let goal = self.encoded(goal)?;
        let asked = Instant::now();
        self.wait_for_server(py, timeout)?;
        let pending = py.detach(|| self.raw.start_goal(goal)).map_err(raised)?;
        let timeout = timeout.map(seconds).transpose()?;
        let timeout = timeout.map(|it| it.saturating_sub(asked.elapsed()));
        let Some(answer) = block_on(py, &self.life, pending, timeout)? else {
            let text = format!("send a goal to {}: no answer", self.raw.name());
            return Err(PyTimeoutError::new_err(text));
        };
        let goal = answer.map_err(raised)?;
        Ok(goal.map(|goal| Goal::new(goal, &self.plan, &self.life)))
    }

    /// Sends a goal; what is returned is asked whether the server has taken it.
    fn start_goal(&self, py: Python<'_>, goal: &Bound<'_, PyAny>) -> PyResult<PendingGoal> {
        let goal = self.encoded(goal)?;
        let pending = py.detach(|| self.raw.start_goal(goal)).map_err(raised)?;
        let (plan, life) = (Arc::clone(&self.plan), Arc::clone(&self.life));
        Ok(PendingGoal { pending: Mutex::new(Some(pending)), plan, life })
    }

    /// Raises once the node is shut down.
    fn check_open(&self) -> PyResult<()> {
        self.life.check()
    }

    /// True if there is a server.
    #[getter]
    fn is_ready(&self) -> bool {
        self.raw.is_ready()
    }

    /// The action's name, as it was given.
    #[getter]
    fn name(&self) -> &str {
        self.raw.name()
    }
}

impl ActionClient {
    fn encoded(&self, goal: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        self.life.check()?;
        message::encode(message_of(&self.plan.goal, goal)?)
    }
}

/// A goal that was sent.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct PendingGoal {
    pending: Mutex<Option<RawPendingGoal<RawAction>>>,
    plan: Arc<ActionPlan>,
    life: Arc<Life>,
}

#[pymethods]
impl PendingGoal {
    /// The goal that the server has taken, or None if it has refused it, alone in a tuple; while there is no answer `wake` is
    /// woken when it is worth asking again.
    fn poll(&self, py: Python<'_>, wake: Wake) -> PyResult<Option<(Option<Goal>,)>> {
        let goal = poll_once(py, &self.life, &self.pending, &wake)?.transpose().map_err(raised)?;
        Ok(goal.map(|goal| (goal.map(|goal| Goal::new(goal, &self.plan, &self.life)),)))
    }
}

/// That a goal is to be canceled was asked.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct PendingCancel {
    pending: Mutex<Option<RawPendingCancel>>,
    life: Arc<Life>,
}

#[pymethods]
impl PendingCancel {
    /// What the server has decided: canceling, rejected, ended or unknown goal; while there is no answer `wake` is woken when it is
    /// worth asking again.
    fn poll(&self, py: Python<'_>, wake: Wake) -> PyResult<Option<&'static str>> {
        let outcome = poll_once(py, &self.life, &self.pending, &wake)?;
        let outcome = outcome.transpose().map_err(raised)?;
        Ok(outcome.map(name_of_outcome))
    }
}

fn name_of_outcome(outcome: CancelOutcome) -> &'static str {
    match outcome {
        CancelOutcome::Canceling => "canceling",
        CancelOutcome::Rejected => "rejected",
        CancelOutcome::UnknownGoal => "unknown goal",
        CancelOutcome::Ended => "ended",
    }
}

/// A goal that the server has taken.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct Goal {
    raw: Outside<ClientGoal<RawAction>>,
    plan: Arc<ActionPlan>,
    life: Arc<Life>,
}

#[pymethods]
impl Goal {
    /// For annotations: `Goal[…]` is the class.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        _of: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyType> {
        class.clone()
    }

    /// Identifier of the goal, a UUID.
    #[getter]
    fn id(&self) -> String {
        self.raw.id().to_string()
    }

    /// Last status that the server has sent: accepted, executing, canceling, succeeded, canceled, aborted or unknown.
    #[getter]
    fn status(&self) -> &'static str {
        name_of(self.raw.status())
    }

    /// Waits for the next feedback; None when the goal has ended and all was taken.
    #[pyo3(signature = (timeout = None))]
    fn feedback<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let goal = &*self.raw;
        let next = poll_fn(|context| goal.poll_feedback(context));
        let Some(next) = block_on(py, &self.life, next, timeout.map(seconds).transpose()?)? else {
            return Err(PyTimeoutError::new_err(format!("goal {}: no feedback", goal.id())));
        };
        let next = next.map_err(raised)?;
        next.map(|bytes| read(py, &self.plan.feedback, &bytes)).transpose()
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.feedback(py, None)
    }

    /// Waits until the goal has ended, and returns how (succeeded, canceled or aborted) with the result.
    #[pyo3(signature = (timeout = None))]
    fn result<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let goal = &*self.raw;
        let result = poll_fn(|context| goal.poll_result(context));
        let Some(result) = block_on(py, &self.life, result, timeout.map(seconds).transpose()?)?
        else {
            return Err(PyTimeoutError::new_err(format!("goal {}: no result", goal.id())));
        };
        self.ended(py, result.map_err(raised)?)
    }

    /// Asks the server to cancel the goal. Returns canceling, rejected, ended or unknown goal.
    #[pyo3(signature = (timeout = 5.0))]
    fn cancel(&self, py: Python<'_>, timeout: f64) -> PyResult<&'static str> {
        let timeout = seconds(timeout)?;
        py.detach(|| self.raw.cancel(timeout)).map(name_of_outcome).map_err(raised)
    }

    /// Asks the server to cancel the goal; what is returned is asked what it has decided.
    fn start_cancel(&self, py: Python<'_>) -> PyResult<PendingCancel> {
        let pending = py.detach(|| self.raw.start_cancel()).map_err(raised)?;
        let life = Arc::clone(&self.life);
        Ok(PendingCancel { pending: Mutex::new(Some(pending)), life })
    }

    /// The next feedback, or None when the goal has ended and all was taken, alone in a tuple; else `wake` is woken when it is worth
    /// asking again.
    fn poll_feedback<'py>(
        &self,
        py: Python<'py>,
        wake: Wake,
    ) -> PyResult<Option<(Option<Bound<'py, PyAny>>,)>> {
        let polled = poll_with(py, &self.life, &wake, |context| self.raw.poll_feedback(context))?;
        let Some(next) = polled else { return Ok(None) };
        let next = next.map_err(raised)?;
        Ok(Some((next.map(|bytes| read(py, &self.plan.feedback, &bytes)).transpose()?,)))
    }

    /// How the goal has ended, with the result; else `wake` is woken when it is worth asking again.
    fn poll_result<'py>(
        &self,
        py: Python<'py>,
        wake: Wake,
    ) -> PyResult<Option<(&'static str, Bound<'py, PyAny>)>> {
        let polled = poll_with(py, &self.life, &wake, |context| self.raw.poll_result(context))?;
        let Some(result) = polled else { return Ok(None) };
        self.ended(py, result.map_err(raised)?).map(Some)
    }
}

impl Goal {
    fn new(goal: ClientGoal<RawAction>, plan: &Arc<ActionPlan>, life: &Arc<Life>) -> Self {
        Self { raw: Outside::new(goal), plan: Arc::clone(plan), life: Arc::clone(life) }
    }

    fn ended<'py>(
        &self,
        py: Python<'py>,
        (status, bytes): (GoalStatus, Vec<u8>),
    ) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let response = read(py, &self.plan.response, &bytes)?;
        Ok((name_of(status), response.getattr("result")?))
    }
}

/// Executes goals, each in a thread of its own. It leaves the graph when it is dropped.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct ActionServer {
    pub(crate) raw: Outside<RawServer<RawAction>>,
    pub(crate) callback: Callback,
}

#[pymethods]
impl ActionServer {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callback.traverse(visit)
    }

    fn __clear__(&self) {
        self.callback.clear();
    }

    /// Stops accepting goals.
    fn end(&self) {
        self.callback.clear();
    }

    /// Known goals with their status.
    fn goals(&self) -> Vec<(String, &'static str)> {
        let goals = self.raw.goals();
        goals.into_iter().map(|(id, status)| (id.to_string(), name_of(status))).collect()
    }
}

/// A goal that is being executed.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct ServerGoal {
    handle: Mutex<Option<GoalHandle<RawAction>>>,
    plan: Arc<ActionPlan>,
}

impl ServerGoal {
    pub(crate) fn new(plan: &Arc<ActionPlan>, handle: GoalHandle<RawAction>) -> Self {
        Self { handle: Mutex::new(Some(handle)), plan: Arc::clone(plan) }
    }

    fn with<T>(&self, use_of: impl FnOnce(&GoalHandle<RawAction>) -> PyResult<T>) -> PyResult<T> {
        let handle = lock(&self.handle);
        use_of(handle.as_ref().ok_or_else(ended)?)
    }

    fn end(
        &self,
        py: Python<'_>,
        result: Option<&Bound<'_, PyAny>>,
        end: impl FnOnce(GoalHandle<RawAction>, Vec<u8>) -> tsuji::Result<()> + Send,
    ) -> PyResult<()> {
        let result = match result {
            Some(result) => self.plan.response_of(result)?,
            None => self.plan.response_of(&self.plan.result.class(py)?.call0()?)?,
        };
        let handle = lock(&self.handle).take();
        let handle = handle.ok_or_else(ended)?;
        py.detach(|| end(handle, result)).map_err(raised)
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the goal has ended")
}

#[pymethods]
impl ServerGoal {
    /// For annotations: `ServerGoal[…]` is the class.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        _of: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyType> {
        class.clone()
    }

    /// The goal message.
    #[getter]
    fn request<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.with(|handle| Ok(handle.goal().clone()))?;
        read(py, &self.plan.goal, &bytes)
    }

    /// True until the goal has ended.
    #[getter]
    fn is_active(&self) -> bool {
        lock(&self.handle).is_some()
    }

    /// Identifier of the goal, a UUID.
    #[getter]
    fn id(&self) -> PyResult<String> {
        self.with(|handle| Ok(handle.id().to_string()))
    }

    /// True if a client has asked to cancel the goal.
    #[getter]
    fn is_cancel_requested(&self) -> PyResult<bool> {
        self.with(|handle| Ok(handle.is_canceling()))
    }

    /// Publishes feedback.
    fn publish_feedback(&self, py: Python<'_>, feedback: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = message::encode(message_of(&self.plan.feedback, feedback)?)?;
        let published = py.detach(|| {
            let handle = lock(&self.handle);
            handle.as_ref().map(|handle| handle.publish_feedback(bytes))
        });
        published.ok_or_else(ended)?.map_err(raised)?;
        py.check_signals()
    }

    /// Ends the goal as succeeded.
    #[pyo3(signature = (result = None))]
    fn succeed(&self, py: Python<'_>, result: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.end(py, result, GoalHandle::succeed)
    }

    /// Ends the goal as aborted: given up by the server.
    #[pyo3(signature = (result = None))]
    fn abort(&self, py: Python<'_>, result: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.end(py, result, GoalHandle::abort)
    }

    /// Ends the goal as canceled, as a client has asked.
    #[pyo3(signature = (result = None))]
    fn canceled(&self, py: Python<'_>, result: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.end(py, result, GoalHandle::canceled)
    }
}

/// Hands a goal to `callback`, which begins to execute it.
pub(crate) fn begun(
    plan: &Arc<ActionPlan>,
    handle: GoalHandle<RawAction>,
    callback: &Bound<'_, PyAny>,
) -> PyResult<()> {
    callback.call1((ServerGoal::new(plan, handle),)).map(drop)
}
