//! Callbacks that hear how much has come and take nothing themselves, as executors by events want them.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, ThreadId};

use tsuji_platform::ordered::{Condvar, Mutex, MutexGuard};
use tsuji_transport::bell::Cell;

use crate::executor::Entity;
use crate::{CallbackGroup, CallbackGroupKind, Context, Result};

/// Callback that hears how many messages, requests or replies have come since it was called last.
pub type NewMessageCallback = Box<dyn Fn(usize) + Send + Sync>;

/// Where things come to that are taken one by one.
pub(crate) trait Inbox: Send + Sync {
    /// Is rung when something comes.
    fn cell(&self) -> &Arc<Cell>;

    /// How many there are; where looking for more costs memory, no more than `most` are looked for.
    fn waiting(&self, most: usize) -> usize;

    /// The same with what has left, both of one moment.
    fn tally(&self, most: usize) -> Tally;

    /// The callback has heard of all that came, or there is none any more.
    fn heard(&self) {}
}

/// What is in an [`Inbox`] at one moment, and what was.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) waiting: usize,
    /// How many have left from the first on: taken, by whomever, and pushed out by newer ones.
    pub(crate) left: u64,
    /// Whoever takes is told of something that is no message.
    pub(crate) is_wrong: bool,
}

impl Tally {
    /// How many have come from the first on. It never becomes less.
    fn come(self) -> u64 {
        self.left.saturating_add(self.waiting as u64)
    }
}

/// The callback of one inbox, if it has one.
#[derive(Default)]
pub(crate) struct Listener {
    /// A callback is set, or was.
    is_used: AtomicBool,
    entity: Mutex<Option<Arc<ArrivalEntity>>>,
    told: Arc<Told>,
}

/// What callbacks were told of, whichever it was.
#[derive(Default)]
struct Told(Mutex<Account>);

#[derive(Default)]
struct Account {
    /// Of how many callbacks were told, those included that came while there was none.
    told: u64,
    /// A callback was told of what is wrong now.
    is_wrong_told: bool,
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to tell: of what waits, unless it was told of before, and of what comes from here on.
    fn begin(&self, inbox: &dyn Inbox) {
        // Without the lock: what is dropped for it is the user's, and may do anything then.
        let now = inbox.tally(AHEAD_MAX);
        let mut account = self.lock();
        account.told = account.told.max(now.left);
    }

    /// Takes note of what was not told of yet, and answers how much that is. What others took meanwhile, or
    /// newer ones pushed out, is part of it.
    fn tell(&self, inbox: &dyn Inbox) -> usize {
        let now = inbox.tally(AHEAD_MAX);
        let mut account = self.lock();
        // Another thread may have told of more since this one looked.
        let untold = now.come().saturating_sub(account.told);
        account.told += untold;
        let is_wrong_told = std::mem::replace(&mut account.is_wrong_told, now.is_wrong);
        let wrong = usize::from(now.is_wrong && !is_wrong_told && untold == 0);
        usize::try_from(untold).unwrap_or(usize::MAX).max(wrong)
    }

    /// Whether [`tell`](Self::tell) would take note of something.
    fn is_due(&self, inbox: &dyn Inbox) -> bool {
        let now = inbox.tally(AHEAD_MAX);
        let account = self.lock();
        account.told < now.come() || account.is_wrong_told != now.is_wrong
    }

    /// Whether there is more than was told of.
    fn is_behind(&self, inbox: &dyn Inbox) -> bool {
        let now = inbox.tally(1);
        self.lock().told < now.come()
    }
}

impl Listener {
    /// Replaces the callback. When this returns the new one was told of what waits, and the one before does not run any
    /// more, but for a call from inside it. What that one was told of, and nobody has asked for, its successor is not told of again.
    pub(crate) fn set(
        &self,
        context: &Context,
        inbox: Arc<dyn Inbox>,
        callback: Option<NewMessageCallback>,
    ) -> Result<()> {
        let Some(callback) = callback else {
            self.end(context);
            return Ok(());
        };
        let waking = context.waking()?;
        self.is_used.store(true, Ordering::Release);
        let entity = Arc::new(ArrivalEntity::new(inbox, callback, Arc::clone(&self.told)));
        let before = self.lock().replace(Arc::clone(&entity));
        // The one before may be about to set another itself.
        match before {
            Some(before) => {
                waking.detach(&before.as_entity());
                before.stop();
            }
            None => self.told.begin(&*entity.inbox),
        }
        // What waits already is told before this returns, as executors by events rely on, and nobody else tells yet.
        entity.tell();
        let mut known = self.lock();
        // It may have been ended, or have set another.
        if !known.as_ref().is_some_and(|it| Arc::ptr_eq(it, &entity)) {
            return Ok(());
        }
        let attached = waking.attach(&entity.as_entity());
        if attached.is_err() {
            *known = None;
            drop(known);
            entity.inbox.heard();
        }
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
        before.inbox.heard();
    }

    /// Whether the callback has returned from all that came, or there is none. Where it has not, [`Inbox::heard`] says
    /// when it has. Inside the callback itself what it was told of is heard.
    pub(crate) fn has_heard(&self, inbox: &dyn Inbox) -> bool {
        if !self.is_used.load(Ordering::Acquire) {
            return true;
        }
        let Some(entity) = self.lock().clone() else { return true };
        // In this order: it runs before it counts as told.
        !self.told.is_behind(inbox) && !entity.is_running_elsewhere()
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

    /// Somebody has asked for one. Of what stayed on its way as long as that waited nobody was told.
    fn asked(&self) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let entity = self.lock().clone();
        if let Some(entity) = entity.filter(|it| self.told.is_behind(&*it.inbox)) {
            entity.inbox.cell().ring();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<ArrivalEntity>>> {
        self.entity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ArrivalEntity {
    inbox: Arc<dyn Inbox>,
    callback: NewMessageCallback,
    group: CallbackGroup,
    told: Arc<Told>,
    state: Mutex<ArrivalState>,
    has_ended: Condvar,
}

#[derive(Default)]
struct ArrivalState {
    /// The thread that is in the callback, or about to be.
    running: Option<ThreadId>,
    is_stopped: bool,
}

impl ArrivalEntity {
    fn new(inbox: Arc<dyn Inbox>, callback: NewMessageCallback, told: Arc<Told>) -> Self {
        let group = CallbackGroup::new(CallbackGroupKind::Reentrant);
        Self { inbox, callback, group, told, state: Mutex::default(), has_ended: Condvar::new() }
    }

    fn as_entity(self: &Arc<Self>) -> Arc<dyn Entity> {
        Arc::<Self>::clone(self)
    }

    /// Calls the callback, if there is something that was not told yet.
    fn tell(&self) {
        // Waits look for what runs. One that saw a look here that finds nothing would sleep, and nobody would wake it.
        if !self.told.is_due(&*self.inbox) {
            return;
        }
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
        self.inbox.heard();
    }

    fn is_running_elsewhere(&self) -> bool {
        self.lock().running.is_some_and(|it| it != thread::current().id())
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        while state.running.is_some_and(|it| it != thread::current().id()) {
            state = self.has_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ArrivalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entity for ArrivalEntity {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(self.inbox.cell())
    }

    fn run(&self, _more: &mut dyn FnMut()) {
        self.tell();
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

/// Of what nobody has taken so much is told at most, where all is kept; of the rest as that is taken.
const AHEAD_MAX: usize = 64;
