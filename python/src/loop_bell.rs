//! Waking the tasks of an event loop from any thread, without the interpreter.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, Weak};
use std::task;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tsuji_platform::poll;

use crate::waiting::lock;

/// What one event loop watches by a descriptor. Its tasks have numbers.
pub(crate) struct LoopBell {
    descriptor: poll::Waker,
    rung: Mutex<Rung>,
}

/// Who was woken since the loop looked last.
#[derive(Default)]
struct Rung {
    tasks: Vec<u64>,
    are_all: bool,
}

impl LoopBell {
    /// Wakes every task.
    pub(crate) fn ring_for_all(&self) {
        self.ring(|rung| rung.are_all = true);
    }

    fn ring(&self, note: impl FnOnce(&mut Rung)) {
        let mut rung = lock(&self.rung);
        // Whoever was first has made the descriptor readable.
        let is_first = rung.tasks.is_empty() && !rung.are_all;
        note(&mut rung);
        drop(rung);
        if is_first {
            self.descriptor.give();
        }
    }
}

/// Wakes tasks of one event loop.
#[pyclass(frozen, name = "LoopBell", module = "tsuji")]
pub(crate) struct PyLoopBell(Arc<LoopBell>);

#[pymethods]
impl PyLoopBell {
    #[new]
    fn new() -> PyResult<Self> {
        let descriptor = poll::Waker::new().map_err(|error| {
            PyOSError::new_err(format!("a descriptor to wake an event loop by: {error}"))
        })?;
        Ok(Self(Arc::new(LoopBell { descriptor, rung: Mutex::default() })))
    }

    /// The descriptor, which is readable when a task was woken.
    fn fileno(&self) -> RawFd {
        self.0.descriptor.as_fd().as_raw_fd()
    }

    /// What wakes the task of this number.
    fn waker(&self, task: u64) -> LoopWaker {
        LoopWaker { bell: Arc::downgrade(&self.0), task }
    }

    /// The tasks that were woken; None where all were.
    fn take(&self) -> Option<Vec<u64>> {
        // Before the look: who is woken after it makes the descriptor readable again.
        self.0.descriptor.take();
        let Rung { tasks, are_all } = std::mem::take(&mut *lock(&self.0.rung));
        (!are_all).then_some(tasks)
    }
}

/// Wakes a task of an event loop, as long as that is there.
#[pyclass(frozen, from_py_object, module = "tsuji")]
#[derive(Clone)]
pub(crate) struct LoopWaker {
    pub(crate) bell: Weak<LoopBell>,
    task: u64,
}

impl task::Wake for LoopWaker {
    fn wake(self: Arc<Self>) {
        if let Some(bell) = self.bell.upgrade() {
            bell.ring(|rung| rung.tasks.push(self.task));
        }
    }
}
