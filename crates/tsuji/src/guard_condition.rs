//! What a program itself makes ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tsuji_transport::bell::Cell;

use crate::arrivals::{Inbox, Listener, NewMessageCallback, Tally};
use crate::session::Session;
use crate::wait_list::sealed::{Owner, Source};
use crate::{Context, Result, Waitable};

/// Ends a wait from any thread. Clones are the same condition.
///
/// ```no_run
/// use tsuji::{Context, GuardCondition, WaitList};
///
/// let context = Context::new()?;
/// let guard = GuardCondition::new(&context)?;
/// let other = guard.clone();
/// std::thread::spawn(move || other.trigger());
/// assert_eq!(WaitList::new(&context)?.wait(&[&guard], None)?, [0]);
/// assert!(!guard.is_triggered());
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone)]
pub struct GuardCondition {
    pub(crate) core: Arc<GuardCore>,
    session: Arc<Session>,
    listener: Arc<Listener>,
}

pub(crate) struct GuardCore {
    cell: Arc<Cell>,
    /// How often so far.
    triggered: AtomicU64,
    /// The same when a wait said so, or when it was cleared.
    seen: AtomicU64,
    /// No wait clears it.
    is_lasting: bool,
}

impl GuardCondition {
    /// Creates a condition that is not triggered.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exhausted`](crate::ErrorKind::Exhausted) if the process has 65,536 endpoints, conditions and
    /// the like; [`ErrorKind::Closed`](crate::ErrorKind::Closed) in a forked child.
    pub fn new(context: &Context) -> Result<Self> {
        Self::with(context, false)
    }

    /// Creates a condition that stays ready, for every wait, until it is [cleared](Self::clear).
    ///
    /// Where it has a callback, waits find it ready when that has returned.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn lasting(context: &Context) -> Result<Self> {
        Self::with(context, true)
    }

    fn with(context: &Context, is_lasting: bool) -> Result<Self> {
        let cell = Arc::new(context.session().bells().claim_cell()?);
        let (triggered, seen) = (AtomicU64::new(0), AtomicU64::new(0));
        let core = Arc::new(GuardCore { cell, triggered, seen, is_lasting });
        Ok(Self { core, session: Arc::clone(context.session()), listener: Arc::default() })
    }

    /// Makes the condition ready, until a wait has said so. To a wait, twice is once.
    pub fn trigger(&self) {
        self.core.trigger(1);
    }

    /// Makes the condition ready for what has happened `times` times, of which a callback hears. 0 does nothing.
    pub fn trigger_times(&self, times: u64) {
        if times != 0 {
            self.core.trigger(times);
        }
    }

    /// Returns true if the condition is ready.
    pub fn is_triggered(&self) -> bool {
        Inbox::waiting(&*self.core, 1) != 0
    }

    /// Makes the condition not ready.
    pub fn clear(&self) {
        // All that came before the triggers that are undone here is visible to whoever clears.
        let triggered = self.core.triggered.load(Ordering::Acquire);
        self.core.seen.fetch_max(triggered, Ordering::AcqRel);
    }

    /// Sets a callback that hears how often the condition was triggered since it was called last; `None` ends it.
    ///
    /// It hears too of what came before it was set, unless that was [cleared](Self::clear) or waited for since. It
    /// is called as that of [`RawSubscription::on_new_message`](crate::RawSubscription::on_new_message) is. To be
    /// ended with `None` before the condition is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exhausted`](crate::ErrorKind::Exhausted) if the thread that calls it cannot be started, or has
    /// 4095 callbacks already; [`ErrorKind::Closed`](crate::ErrorKind::Closed) if it would be started in a forked
    /// child.
    pub fn on_trigger(
        &self,
        context: &Context,
        callback: Option<NewMessageCallback>,
    ) -> Result<()> {
        let inbox = Arc::<GuardCore>::clone(&self.core);
        self.listener.set(context, inbox, callback)
    }
}

impl GuardCore {
    pub(crate) fn trigger(&self, times: u64) {
        self.triggered.fetch_add(times, Ordering::AcqRel);
        self.cell.ring();
    }
}

impl Inbox for GuardCore {
    fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    fn waiting(&self, most: usize) -> usize {
        self.tally(most).waiting
    }

    fn tally(&self, _most: usize) -> Tally {
        // In this order: what is seen was triggered before.
        let left = self.seen.load(Ordering::Acquire);
        let waiting = self.triggered.load(Ordering::Acquire).saturating_sub(left);
        let waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
        Tally { waiting, left, is_wrong: false }
    }

    fn heard(&self) {
        if self.is_lasting {
            self.cell.ring();
        }
    }
}

impl Waitable for GuardCondition {}

impl Source for GuardCondition {
    fn cell(&self) -> &Arc<Cell> {
        &self.core.cell
    }

    fn owner(&self) -> Owner<'_> {
        Owner(&self.session)
    }

    fn is_ready(&self) -> bool {
        self.is_triggered() && (!self.core.is_lasting || self.listener.has_heard(&*self.core))
    }

    fn seen(&self) {
        if !self.core.is_lasting {
            self.clear();
        }
    }
}

impl std::fmt::Debug for GuardCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardCondition").finish_non_exhaustive()
    }
}
