//! Callbacks that hear how much has come and take nothing themselves, as executors by events want them.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use tsuji_transport::bell::Cell;

use crate::executor::Entity;
use crate::{CallbackGroup, CallbackGroupKind, Context, Result};

/// Hears how many messages, requests or replies have come since it was called last.
pub type NewsCallback = Box<dyn Fn(usize) + Send + Sync>;

/// Where things come to that are taken one by one.
pub(crate) trait Inbox: Send + Sync {
    /// Is rung when something comes.
    fn cell(&self) -> &Arc<Cell>;

    /// How many there are; where looking for more costs memory, no more than `most` are looked for.
    fn waiting(&self, most: usize) -> usize;
}

/// The callback of one inbox, if it has one.
#[derive(Default)]
pub(crate) struct Listener {
    /// A callback is set, or was.
    is_used: AtomicBool,
    entity: Mutex<Option<Arc<NewsEntity>>>,
    told: Arc<Told>,
}

/// What callbacks were told of, whichever it was.
#[derive(Default)]
struct Told(Mutex<Account>);

#[derive(Default)]
struct Account {
    /// What nobody has asked for yet.
    outstanding: usize,
    /// How often somebody has asked.
    asked: u64,
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what was not told of yet, and answers how much that is.
    fn tell(&self, inbox: &dyn Inbox) -> usize {
        loop {
            let asked = self.lock().asked;
            // Without the lock: what is dropped for it is the user's, and may do anything then.
            let waiting = inbox.waiting(AHEAD_MAX);
            let mut account = self.lock();
            // Whoever asked meanwhile may have taken one that was counted.
            if account.asked == asked {
                let untold = waiting.saturating_sub(account.outstanding);
                account.outstanding += untold;
                return untold;
            }
        }
    }
}

impl Listener {
    /// Replaces the callback. When this returns the one before does not run any more, but for a call from
    /// inside it. What that one was told of, and nobody has asked for, its successor is not told of again.
    pub(crate) fn set(
        &self,
        context: &Context,
        inbox: Arc<dyn Inbox>,
        callback: Option<NewsCallback>,
    ) -> Result<()> {
        let Some(callback) = callback else {
            self.end(context);
            return Ok(());
        };
        let waking = context.waking()?;
        self.is_used.store(true, Ordering::Release);
        let mut known = self.lock();
        let before = known.take();
        if let Some(before) = &before {
            waking.detach(&before.as_entity());
        }
        let entity = Arc::new(NewsEntity::new(inbox, callback, Arc::clone(&self.told)));
        let attached = waking.attach(&entity.as_entity());
        *known = attached.is_ok().then_some(entity);
        // The one before may be about to set another itself.
        drop(known);
        before.iter().for_each(|it| it.stop());
        attached
    }

    /// Ends the callback, if there is one.
    pub(crate) fn end(&self, context: &Context) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut known = self.lock();
        let Some(before) = known.take() else { return };
        if let Ok(waking) = context.waking() {
            waking.detach(&before.as_entity());
        }
        // It may be about to set another itself.
        drop(known);
        before.stop();
    }

    /// Asks for the oldest of what `take` brings of which `known` makes something.
    pub(crate) fn take<T, U>(
        &self,
        mut take: impl FnMut() -> Result<Option<T>>,
        known: impl Fn(T) -> Option<U>,
    ) -> Result<Option<U>> {
        let mut taken = None;
        while let Some(something) = take()? {
            taken = known(something);
            if taken.is_some() {
                break;
            }
        }
        self.asked();
        Ok(taken)
    }

    /// Somebody has asked for one, and got it if there was one.
    fn asked(&self) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut account = self.told.lock();
        account.outstanding = account.outstanding.saturating_sub(1);
        account.asked = account.asked.wrapping_add(1);
        let is_last = account.outstanding == 0;
        drop(account);
        // Some may be seen only now.
        let entity = if is_last { self.lock().clone() } else { None };
        if let Some(entity) = entity.filter(|it| it.inbox.waiting(1) != 0) {
            entity.inbox.cell().ring();
        }
    }

    /// Somebody has asked for all.
    pub(crate) fn asked_for_all(&self) {
        let mut account = self.told.lock();
        account.outstanding = 0;
        account.asked = account.asked.wrapping_add(1);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<NewsEntity>>> {
        self.entity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct NewsEntity {
    inbox: Arc<dyn Inbox>,
    callback: NewsCallback,
    group: CallbackGroup,
    told: Arc<Told>,
    state: Mutex<NewsState>,
    has_ended: Condvar,
}

#[derive(Default)]
struct NewsState {
    /// The thread that is in the callback, or about to be.
    running: Option<ThreadId>,
    is_stopped: bool,
}

impl NewsEntity {
    fn new(inbox: Arc<dyn Inbox>, callback: NewsCallback, told: Arc<Told>) -> Self {
        let group = CallbackGroup::new(CallbackGroupKind::Reentrant);
        Self { inbox, callback, group, told, state: Mutex::default(), has_ended: Condvar::new() }
    }

    fn as_entity(self: &Arc<Self>) -> Arc<dyn Entity> {
        Arc::<Self>::clone(self)
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        while state.running.is_some_and(|it| it != thread::current().id()) {
            state = self.has_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, NewsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entity for NewsEntity {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(self.inbox.cell())
    }

    fn run(&self, _more: &mut dyn FnMut()) {
        let mut state = self.lock();
        if state.is_stopped {
            return;
        }
        state.running = Some(thread::current().id());
        drop(state);
        let untold = self.told.tell(&*self.inbox);
        if untold != 0 {
            // A panic was reported when it happened; others are still to be told by this thread.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| (self.callback)(untold)));
        }
        self.lock().running = None;
        self.has_ended.notify_all();
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

/// Of what nobody has asked for so much is told at most, where all is kept; of the rest as that is asked for.
const AHEAD_MAX: usize = 64;
