//! Events of publishers and subscriptions, as Python gets them: a dict with the event's name under `event`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tsuji::{PublisherEvent, SubscriptionEvent};

use crate::waiting::lock;

/// An event that a callback gets.
pub(crate) trait Event: Clone + Send + Sync + 'static {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>>;
}

/// A dict of an event, with its fields.
fn dict<'py>(
    py: Python<'py>,
    event: &str,
    fill: impl FnOnce(&Bound<'py, PyDict>) -> PyResult<()>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("event", event)?;
    fill(&dict)?;
    Ok(dict)
}

impl Event for PublisherEvent {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self {
            Self::Matched { current } => dict(py, "matched", |it| it.set_item("current", current)),
            Self::IncompatibleQos { mismatches, .. } => {
                dict(py, "incompatible_qos", |it| it.set_item("mismatches", mismatches))
            }
            Self::IncompatibleType { mismatch, .. } => {
                dict(py, "incompatible_type", |it| it.set_item("mismatch", mismatch))
            }
            Self::DeadlineMissed { total } => {
                dict(py, "deadline_missed", |it| it.set_item("total", total))
            }
            Self::LivelinessLost => dict(py, "liveliness_lost", |_| Ok(())),
            _ => dict(py, "other", |_| Ok(())),
        }
    }
}

impl Event for SubscriptionEvent {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self {
            Self::Matched { current } => dict(py, "matched", |it| it.set_item("current", current)),
            Self::IncompatibleQos { mismatches, .. } => {
                dict(py, "incompatible_qos", |it| it.set_item("mismatches", mismatches))
            }
            Self::IncompatibleType { mismatch, .. } => {
                dict(py, "incompatible_type", |it| it.set_item("mismatch", mismatch))
            }
            Self::DeadlineMissed { total } => {
                dict(py, "deadline_missed", |it| it.set_item("total", total))
            }
            Self::LivelinessChanged { alive, not_alive } => dict(py, "liveliness_changed", |it| {
                it.set_item("alive", alive)?;
                it.set_item("not_alive", not_alive)
            }),
            Self::MessageLost { total } => {
                dict(py, "message_lost", |it| it.set_item("total", total))
            }
            Self::InvalidMessage { why, total, .. } => dict(py, "invalid_message", |it| {
                it.set_item("why", why)?;
                it.set_item("total", total)
            }),
            _ => dict(py, "other", |_| Ok(())),
        }
    }
}

/// Events that wait to be taken.
pub(crate) struct Events<E>(Mutex<VecDeque<E>>);

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Of an endpoint whose events nobody takes. The oldest goes then.
const EVENTS_MAX: usize = 1000;

impl<E: Event> Events<E> {
    /// What keeps each event, and then makes the condition ready.
    pub(crate) fn keeper(
        self: &Arc<Self>,
        guard: tsuji::GuardCondition,
    ) -> impl Fn(&E) + Send + Sync + use<E> {
        let events = Arc::clone(self);
        move |event| {
            let mut kept = lock(&events.0);
            if kept.len() == EVENTS_MAX {
                kept.pop_front();
            }
            kept.push_back(event.clone());
            drop(kept);
            guard.trigger();
        }
    }

    /// Takes all.
    pub(crate) fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let taken = std::mem::take(&mut *lock(&self.0));
        taken.iter().map(|event| event.to_python(py)).collect()
    }
}
