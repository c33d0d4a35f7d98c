//! Publishers and subscriptions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::exceptions::{PyTimeoutError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use tsuji::{
    Bytes, Context, ErrorKind, PublisherEvent, RawPublisher, RawSample, RawSubscription,
    SubscriptionEvent, WaitSet,
};
use tsuji_msg::cdr;

use crate::error::raised;
use crate::event::Events;
use crate::loan::Loan;
use crate::loop_wakers::TaskWaker;
use crate::message::{self, Message, Place};
use crate::qos::seconds;
use crate::types::Plan;
use crate::waiting::{Callback, Life, Outside, Wake, attach, deadline, lock, poll_with, step};
use crate::write::message_of;

/// Publishes messages of one type on a topic.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct Publisher {
    pub(crate) raw: Outside<RawPublisher>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) life: Arc<Life>,
    /// What gets the events.
    pub(crate) on_event: Callback,
    /// Those that are to be taken.
    pub(crate) events: Arc<Events<PublisherEvent>>,
}

/// Messages of this size and more are written into the memory that will carry them.
const LARGE: usize = 64 << 10;

#[pymethods]
impl Publisher {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.on_event.traverse(visit)
    }

    fn __clear__(&self) {
        self.on_event.clear();
    }

    /// Takes the events that are kept.
    fn take_events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.events.take(py)
    }

    /// Tells that the publisher is alive, of one whose liveliness is manual.
    fn assert_liveliness(&self, py: Python<'_>) -> PyResult<()> {
        self.life.check()?;
        py.detach(|| self.raw.assert_liveliness()).map_err(raised)
    }

    /// For annotations: `Publisher[…]` is the class.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        _of: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyType> {
        class.clone()
    }

    /// Publishes a message of the publisher's type, or one of that type made of these fields.
    #[pyo3(signature = (message = None, /, **fields))]
    fn publish(
        &self,
        py: Python<'_>,
        message: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        self.life.check()?;
        let made;
        let message = match (message, fields) {
            (Some(_), Some(_)) => {
                return Err(PyTypeError::new_err("a message and fields; allowed: one of both"));
            }
            (Some(message), None) => message,
            (None, fields) => {
                made = self.plan.class(py)?.call((), fields)?;
                &made
            }
        };
        let message = message_of(&self.plan, message)?;
        let raw = &*self.raw;
        if let Some(bytes) = message.get().as_it_came() {
            // A message of a recording may start at any address, and is copied to where its readers have it aligned.
            let is_aligned = bytes.as_ptr() as usize % 16 == cdr::HEADER_OFFSET_MOD_16;
            return py
                .detach(|| match is_aligned {
                    true => raw.publish_frozen(bytes),
                    false => raw.publish_bytes(&bytes),
                })
                .map_err(raised);
        }
        let size = message::size(message)?;
        if size < LARGE {
            let bytes = message::encode_of_size(message, size)?;
            return py.detach(|| raw.publish_bytes(&bytes)).map_err(raised);
        }
        let mut loan = py.detach(|| raw.loan_bytes(size)).map_err(raised)?;
        // Another thread may have set a field meanwhile.
        match message::write_into(message, &mut [], &mut loan)? {
            Some(written) => {
                loan.truncate(written);
                py.detach(|| raw.publish_loan(loan)).map_err(raised)
            }
            None => {
                let bytes = message::encode(message)?;
                py.detach(|| raw.publish_bytes(&bytes)).map_err(raised)
            }
        }
    }

    /// Publishes CDR with its header of 4 bytes.
    fn publish_bytes(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        self.life.check()?;
        let bytes = Bytes::copy_from(bytes);
        py.detach(|| self.raw.publish_frozen(bytes)).map_err(raised)
    }

    /// Lends a message in the memory that will carry it. Arrays of numbers are given by their lengths and filled in place;
    /// the other fields are given by their values. Leaving the `with` publishes it.
    #[pyo3(signature = (**fields))]
    fn loan(slf: &Bound<'_, Self>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Loan> {
        Loan::of(slf, fields)
    }

    /// Waits until at least `count` subscriptions are connected.
    #[pyo3(signature = (count = 1, timeout = None))]
    fn wait_for_subscriptions(
        &self,
        py: Python<'_>,
        count: usize,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        wait_until(py, &self.life, timeout, &[ErrorKind::Timeout], |step| {
            self.raw.wait_for_subscriptions(count, step)
        })
    }

    /// Waits until every subscription has received all that was published.
    #[pyo3(signature = (timeout = None))]
    fn wait_for_acknowledgements(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        wait_until(py, &self.life, timeout, &[ErrorKind::Timeout], |step| {
            self.raw.wait_for_acknowledgements(step)
        })
    }

    /// Number of connected subscriptions.
    #[getter]
    fn matched(&self) -> usize {
        self.raw.matched()
    }

    /// The full name of the topic.
    #[getter]
    fn topic(&self) -> &str {
        self.raw.topic()
    }

    /// Counters: messages published, dropped, failed, displaced, and held back by the rate of an export.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.raw.counters();
        let dict = PyDict::new(py);
        dict.set_item("published", counters.published)?;
        dict.set_item("dropped", counters.dropped)?;
        dict.set_item("failed", counters.failed)?;
        dict.set_item("displaced", counters.displaced)?;
        dict.set_item("held_back", counters.held_back)?;
        Ok(dict)
    }
}

/// Waits in steps, between which Ctrl-C and the end of the node are heard. What goes on to be missing is an error of `passing`
/// kinds.
pub(crate) fn wait_until(
    py: Python<'_>,
    life: &Life,
    timeout: Option<f64>,
    passing: &[ErrorKind],
    wait: impl Fn(Duration) -> tsuji::Result<()> + Sync,
) -> PyResult<()> {
    let timeout = timeout.map(seconds).transpose()?;
    let until = deadline(timeout);
    loop {
        life.check()?;
        let step = step(until);
        match py.detach(|| wait(step.unwrap_or_default())) {
            Ok(()) => return Ok(()),
            Err(error) if passing.contains(&error.kind()) && step.is_some() => {}
            // As the whole wait was asked for, and not its last step.
            Err(error) => return Err(raised(error.of_whole(timeout.unwrap_or_default()))),
        }
        py.check_signals()?;
    }
}

/// Receives messages of one type from a topic. They go to a callback while the node is spun, or are taken.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct Subscription {
    pub(crate) raw: Outside<RawSubscription>,
    pub(crate) plan: Arc<Plan>,
    context: Context,
    pub(crate) life: Arc<Life>,
    /// What gets the messages, or hears of them.
    callback: Mutex<Callback>,
    /// What gets the events.
    on_event: Callback,
    /// Those that are to be taken.
    events: Arc<Events<SubscriptionEvent>>,
    /// What `recv` waits by; a thread has one while it waits.
    waits: Mutex<Vec<WaitSet>>,
}

impl Subscription {
    pub(crate) fn new(
        context: Context,
        raw: RawSubscription,
        plan: Arc<Plan>,
        (callback, on_event): (Callback, Callback),
        events: Arc<Events<SubscriptionEvent>>,
        life: Arc<Life>,
    ) -> Self {
        let (raw, callback) = (Outside::new(raw), Mutex::new(callback));
        Self { raw, plan, context, life, callback, on_event, events, waits: Mutex::default() }
    }
}

/// A message as Python gets it.
pub(crate) fn received<'py>(
    py: Python<'py>,
    plan: &Arc<Plan>,
    sample: RawSample,
) -> PyResult<Bound<'py, PyAny>> {
    Message::received(py, plan, Place::whole(sample.bytes), Some(sample.info))
}

#[pymethods]
impl Subscription {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector stops nobody who holds it, and comes again.
        if let Ok(callback) = self.callback.try_lock() {
            callback.traverse(visit)?;
        }
        self.on_event.traverse(visit)
    }

    fn __clear__(&self) {
        let callback = lock(&self.callback).clone();
        callback.clear();
        self.on_event.clear();
    }

    /// Takes the events that are kept.
    fn take_events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.events.take(py)
    }

    /// Lets only messages pass that fulfil an expression such as `temperature > %0`, with the parameters of it; an empty one lets
    /// all pass.
    #[pyo3(signature = (expression, parameters = Vec::new()))]
    fn set_content_filter(
        &self,
        py: Python<'_>,
        expression: &str,
        parameters: Vec<String>,
    ) -> PyResult<()> {
        self.life.check()?;
        py.detach(|| self.raw.set_content_filter(expression, parameters)).map_err(raised)
    }

    /// Ends the callbacks.
    fn end(&self) {
        self.__clear__();
    }

    /// The oldest message that was not taken, if there is one; else `wake` is woken when it is worth asking again.
    fn poll<'py>(&self, py: Python<'py>, wake: TaskWaker) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.life.check()?;
        let wake = Wake::InLoop(wake);
        let polled = poll_with(py, &self.life, &wake, |context| self.raw.poll_bytes(context))?;
        let sample = polled.transpose().map_err(raised)?;
        sample.map(|sample| received(py, &self.plan, sample)).transpose()
    }

    /// Takes the oldest message that was not taken, or None.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.life.check()?;
        let sample = self.raw.take_bytes().map_err(raised)?;
        sample.map(|sample| received(py, &self.plan, sample)).transpose()
    }

    /// Takes the newest message and drops those before it; None where there is none.
    fn latest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.life.check()?;
        let mut newest = None;
        while let Some(sample) = self.raw.take_bytes().map_err(raised)? {
            newest = Some(sample);
        }
        newest.map(|sample| received(py, &self.plan, sample)).transpose()
    }

    /// Waits for the next message and takes it.
    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let until = deadline(timeout.map(seconds).transpose()?);
        loop {
            if let Some(message) = self.take(py)? {
                return Ok(message);
            }
            let Some(step) = step(until) else {
                return Err(PyTimeoutError::new_err(format!("{}: no message", self.raw.topic())));
            };
            py.detach(|| self.wait(step)).map_err(raised)?;
            py.check_signals()?;
        }
    }

    /// Calls back with how many messages have come since the last call; None ends it.
    fn on_new_message(&self, py: Python<'_>, callback: Option<Py<PyAny>>) -> PyResult<()> {
        let callback = callback.map(Callback::new);
        let before =
            std::mem::replace(&mut *lock(&self.callback), callback.clone().unwrap_or_default());
        drop(before);
        let callback = callback.map(|callback| -> tsuji::NewMessageCallback {
            Box::new(move |count| {
                attach(|py| {
                    let Some(callback) = callback.get(py) else { return };
                    if let Err(error) = callback.call1((count,)) {
                        error.write_unraisable(py, Some(&callback));
                    }
                });
            })
        });
        py.detach(|| self.raw.on_new_message(callback)).map_err(raised)
    }

    /// Waits until at least `count` publishers are connected.
    #[pyo3(signature = (count = 1, timeout = None))]
    fn wait_for_publishers(
        &self,
        py: Python<'_>,
        count: usize,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        wait_until(py, &self.life, timeout, &[ErrorKind::Timeout], |step| {
            self.raw.wait_for_publishers(count, step)
        })
    }

    /// Number of connected publishers.
    #[getter]
    fn matched(&self) -> usize {
        self.raw.matched()
    }

    /// The full name of the topic.
    #[getter]
    fn topic(&self) -> &str {
        self.raw.topic()
    }

    /// Counters: messages received, lost, displaced, invalid and expired.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.raw.counters();
        let dict = PyDict::new(py);
        dict.set_item("received", counters.received)?;
        dict.set_item("lost", counters.lost)?;
        dict.set_item("displaced", counters.displaced)?;
        dict.set_item("invalid", counters.invalid)?;
        dict.set_item("expired", counters.expired)?;
        Ok(dict)
    }
}

impl Subscription {
    fn wait(&self, step: Duration) -> tsuji::Result<()> {
        let known = lock(&self.waits).pop();
        let set = match known {
            Some(set) => set,
            None => {
                let mut set = WaitSet::new(&self.context)?;
                set.add(&self.raw)?;
                set
            }
        };
        let waited = set.wait(step);
        lock(&self.waits).push(set);
        waited.map(drop)
    }
}
