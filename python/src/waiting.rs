//! Waiting as Python has it: without the interpreter, and ended by Ctrl-C.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{self, Context, Poll, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::error::ClosedError;
use crate::loop_wakers::{LoopWakers, TaskWaker};

/// How often whoever waits looks for signals.
pub(crate) const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// When a wait ends; never where no timeout is given.
pub(crate) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|it| Instant::now().checked_add(it))
}

/// How long the next step of a wait may take; none where its time is over.
pub(crate) fn step(deadline: Option<Instant>) -> Option<Duration> {
    let Some(deadline) = deadline else { return Some(SIGNALS_EVERY) };
    let left = deadline.saturating_duration_since(Instant::now());
    (!left.is_zero()).then(|| left.min(SIGNALS_EVERY))
}

struct Unpark(Thread);

impl task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for what is to come; `None` where it has not come by then. It ends with the node.
pub(crate) fn block_on<F: Future + Unpin + Send>(
    py: Python<'_>,
    life: &Life,
    mut future: F,
    timeout: Option<Duration>,
) -> PyResult<Option<F::Output>>
where
    F::Output: Send,
{
    let until = deadline(timeout);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        let polled = py.detach(|| {
            let mut context = Context::from_waker(&waker);
            match Pin::new(&mut future).poll(&mut context) {
                Poll::Ready(it) => Some(it),
                Poll::Pending => None,
            }
        });
        if polled.is_some() {
            return Ok(polled);
        }
        life.check()?;
        let Some(step) = step(until) else { return Ok(None) };
        py.detach(|| thread::park_timeout(step));
        py.check_signals()?;
    }
}

/// How many threads of tsuji are running Python, and whether the interpreter is about to end.
struct Attachments {
    count: usize,
    is_ending: bool,
}

static ATTACHED: Mutex<Attachments> = Mutex::new(Attachments { count: 0, is_ending: false });
static DETACHED: Condvar = Condvar::new();

/// Runs Python in a thread of tsuji; not once the interpreter is about to end, where such a thread would be ended in the middle.
pub(crate) fn attach(run: impl FnOnce(Python<'_>)) {
    struct Running;
    impl Drop for Running {
        fn drop(&mut self) {
            lock(&ATTACHED).count -= 1;
            DETACHED.notify_all();
        }
    }
    let mut attached = lock(&ATTACHED);
    if attached.is_ending {
        return;
    }
    attached.count += 1;
    drop(attached);
    let _running = Running;
    Python::attach(run);
}

/// From now on no thread of tsuji begins to run Python.
pub(crate) fn end_attaching() {
    lock(&ATTACHED).is_ending = true;
}

/// Waits until those that were running Python have come back, for `patience` at most.
pub(crate) fn wait_for_attachments(patience: Duration) {
    let until = Instant::now() + patience;
    let mut attached = lock(&ATTACHED);
    while attached.count != 0 {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let waited = DETACHED.wait_timeout(attached, left);
        attached = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Nothing panics while holding one of these, so a poisoned one is still sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a node has been shut down, which others of its participant do not share.
#[derive(Default)]
pub(crate) struct Life {
    is_over: AtomicBool,
    /// Event loops in which its subscriptions were awaited. Their tasks are woken when the node ends.
    loops: Mutex<Vec<Weak<LoopWakers>>>,
}

impl Life {
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn check(&self) -> PyResult<()> {
        match self.is_over() {
            true => Err(ClosedError::new_err("the node is shut down")),
            false => Ok(()),
        }
    }

    /// Ends it. Answers whether it was not over.
    pub(crate) fn end(&self) -> bool {
        let is_first = !self.is_over.swap(true, Ordering::AcqRel);
        let loops = std::mem::take(&mut *lock(&self.loops));
        loops.iter().filter_map(Weak::upgrade).for_each(|wakers| wakers.wake_all());
        is_first
    }

    /// Wakes the tasks of this event loop at the end too.
    pub(crate) fn wake_at_end(&self, wakers: &Weak<LoopWakers>) {
        let mut loops = lock(&self.loops);
        if !loops.iter().any(|it| it.ptr_eq(wakers)) {
            loops.retain(|it| it.strong_count() != 0);
            loops.push(Weak::clone(wakers));
        }
    }
}

/// What is woken when it is worth asking again.
#[derive(FromPyObject)]
pub(crate) enum Wake {
    /// A task of an event loop.
    #[pyo3(transparent)]
    InLoop(TaskWaker),
    /// A function, which is called in any thread.
    #[pyo3(transparent)]
    Call(Py<PyAny>),
}

impl Wake {
    pub(crate) fn waker(&self, py: Python<'_>) -> Waker {
        match self {
            Self::InLoop(it) => it.waker(),
            Self::Call(it) => Waker::from(Arc::new(CallWhenReady(it.clone_ref(py)))),
        }
    }
}

struct CallWhenReady(Py<PyAny>);

impl task::Wake for CallWhenReady {
    fn wake(self: Arc<Self>) {
        attach(|py| {
            if let Err(error) = self.0.call0(py) {
                error.write_unraisable(py, None);
            }
        });
    }
}

/// What is there of something that is polled; where there is nothing `wake` is woken when it is worth asking again, or the node
/// has ended.
pub(crate) fn poll_with<T: Send>(
    py: Python<'_>,
    life: &Life,
    wake: &Wake,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T> + Send,
) -> PyResult<Option<T>> {
    let waker = wake.waker(py);
    if let Poll::Ready(it) = py.detach(|| poll(&mut Context::from_waker(&waker))) {
        return Ok(Some(it));
    }
    if let Wake::InLoop(task) = wake {
        life.wake_at_end(&task.wakers);
    }
    // It may have ended before it was to wake this one.
    life.check().map(|()| None)
}

/// The same of a future, which is asked no more when it is done.
pub(crate) fn poll_once<F: Future + Unpin + Send>(
    py: Python<'_>,
    life: &Life,
    future: &Mutex<Option<F>>,
    wake: &Wake,
) -> PyResult<Option<F::Output>>
where
    F::Output: Send,
{
    poll_with(py, life, wake, |context| {
        let mut asked = lock(future);
        let Some(it) = asked.as_mut() else { return Poll::Pending };
        let polled = Pin::new(it).poll(context);
        if polled.is_ready() {
            *asked = None;
        }
        polled
    })
}

/// Something of tsuji whose end may wait for a callback, which needs the interpreter.
pub(crate) struct Outside<T: Send>(ManuallyDrop<T>);

impl<T: Send> Outside<T> {
    pub(crate) fn new(inside: T) -> Self {
        Self(ManuallyDrop::new(inside))
    }
}

impl<T: Send> Deref for Outside<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> DerefMut for Outside<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Send> Drop for Outside<T> {
    fn drop(&mut self) {
        // SAFETY: it is dropped once, here.
        let inside = unsafe { ManuallyDrop::take(&mut self.0) };
        Python::attach(|py| py.detach(|| drop(inside)));
    }
}

/// What a program wants to have called, where the garbage collector of Python sees it: it often has the node that it is called by.
#[derive(Clone, Default)]
pub(crate) struct Callback(Arc<Mutex<Option<Py<PyAny>>>>);

impl Callback {
    pub(crate) fn new(callback: Py<PyAny>) -> Self {
        Self(Arc::new(Mutex::new(Some(callback))))
    }

    /// The callback, unless the collector has taken it.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let callback = lock(&self.0);
        callback.as_ref().map(|it| it.bind(py).clone())
    }

    pub(crate) fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector stops nobody who holds it, and comes again.
        match self.0.try_lock() {
            Ok(callback) => callback.as_ref().map_or(Ok(()), |it| visit.call(it)),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn clear(&self) {
        let callback = lock(&self.0).take();
        drop(callback);
    }
}
