//! What a program itself makes ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tsuji_transport::bell::Cell;

use crate::news::{Inbox, Listener, NewsCallback};
use crate::wait_list::sealed::Source;
use crate::{Context, Result, Waitable};

/// Ends a wait from any thread. Clones are the same condition.
#[derive(Clone)]
pub struct GuardCondition {
    pub(crate) core: Arc<GuardCore>,
    listener: Arc<Listener>,
}

pub(crate) struct GuardCore {
    cell: Arc<Cell>,
    /// How often since a wait has said so, or it was cleared.
    triggered: AtomicUsize,
}

impl GuardCondition {
    /// A condition that is not triggered. Fails when the process has too many endpoints.
    pub fn new(context: &Context) -> Result<Self> {
        let cell = Arc::new(context.host().bells().claim_cell()?);
        let core = Arc::new(GuardCore { cell, triggered: AtomicUsize::new(0) });
        Ok(Self { core, listener: Arc::default() })
    }

    /// Makes it ready, until a wait has said so. Twice is once.
    pub fn trigger(&self) {
        self.core.trigger();
    }

    /// Whether it is ready.
    pub fn is_triggered(&self) -> bool {
        self.core.triggered.load(Ordering::Acquire) != 0
    }

    /// Makes it not ready.
    pub fn clear(&self) {
        self.core.triggered.swap(0, Ordering::AcqRel);
        self.listener.asked_for_all();
    }

    /// From now on `callback` hears how often it was triggered, before it was set too unless it was
    /// [cleared](Self::clear) or waited for since, as
    /// [`RawSubscription::on_news`](crate::RawSubscription::on_news) says. To be ended with `None` before the
    /// condition is dropped.
    pub fn on_news(&self, context: &Context, callback: Option<NewsCallback>) -> Result<()> {
        let inbox = Arc::<GuardCore>::clone(&self.core);
        self.listener.set(context, inbox, callback)
    }
}

impl GuardCore {
    pub(crate) fn trigger(&self) {
        self.triggered.fetch_add(1, Ordering::AcqRel);
        self.cell.ring();
    }
}

impl Inbox for GuardCore {
    fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    fn waiting(&self, _most: usize) -> usize {
        self.triggered.load(Ordering::Acquire)
    }
}

impl Waitable for GuardCondition {}

impl Source for GuardCondition {
    fn cell(&self) -> &Arc<Cell> {
        &self.core.cell
    }

    fn is_ready(&self) -> bool {
        self.is_triggered()
    }

    fn seen(&self) {
        // A swap and not a store: of a trigger that is undone here as well, all that came before it is
        // visible to whoever waited.
        self.core.triggered.swap(0, Ordering::AcqRel);
    }
}

impl std::fmt::Debug for GuardCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardCondition").finish_non_exhaustive()
    }
}
