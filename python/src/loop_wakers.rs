//! Waking the tasks of an event loop from any thread, without the interpreter.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, Weak};
use std::task;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tsuji_platform::poll;

use crate::waiting::lock;

/// What one event loop watches by a descriptor. Its tasks have numbers.
pub(crate) struct LoopWakers {
    descriptor: poll::Waker,
    woken: Mutex<Woken>,
}

/// Who was woken since the loop looked last.
#[derive(Default)]
struct Woken {
    tasks: Vec<u64>,
    are_all: bool,
}

impl LoopWakers {
    /// Wakes every task.
    pub(crate) fn wake_all(&self) {
        self.wake_with(|woken| woken.are_all = true);
    }

    fn wake_with(&self, note: impl FnOnce(&mut Woken)) {
        let mut woken = lock(&self.woken);
        // Whoever was first has made the descriptor readable.
        let is_first = woken.tasks.is_empty() && !woken.are_all;
        note(&mut woken);
        drop(woken);
        if is_first {
            self.descriptor.give();
        }
    }
}

/// Wakes tasks of one event loop.
#[pyclass(frozen, name = "LoopWakers", module = "tsuji")]
pub(crate) struct PyLoopWakers(Arc<LoopWakers>);

#[pymethods]
impl PyLoopWakers {
    #[new]
    fn new() -> PyResult<Self> {
        let descriptor = poll::Waker::new().map_err(|error| {
            PyOSError::new_err(format!("a descriptor to wake an event loop by: {error}"))
        })?;
        Ok(Self(Arc::new(LoopWakers { descriptor, woken: Mutex::default() })))
    }

    /// The descriptor, which is readable when a task was woken.
    fn fileno(&self) -> RawFd {
        self.0.descriptor.as_fd().as_raw_fd()
    }

    /// What wakes the task of this number.
    fn waker(&self, task: u64) -> TaskWaker {
        TaskWaker { wakers: Arc::downgrade(&self.0), task }
    }

    /// The tasks that were woken; None where all were.
    fn take(&self) -> Option<Vec<u64>> {
        // Before the look: who is woken after it makes the descriptor readable again.
        self.0.descriptor.take();
        let Woken { tasks, are_all } = std::mem::take(&mut *lock(&self.0.woken));
        (!are_all).then_some(tasks)
    }
}

/// Wakes a task of an event loop, as long as that is there.
#[pyclass(frozen, from_py_object, module = "tsuji")]
#[derive(Clone)]
pub(crate) struct TaskWaker {
    pub(crate) wakers: Weak<LoopWakers>,
    task: u64,
}

impl TaskWaker {
    pub(crate) fn waker(&self) -> task::Waker {
        task::Waker::from(Arc::new(self.clone()))
    }
}

impl task::Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if let Some(wakers) = self.wakers.upgrade() {
            wakers.wake_with(|woken| woken.tasks.push(self.task));
        }
    }
}
