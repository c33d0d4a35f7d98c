//! The threads that pursue goals.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use tsuji_platform::ordered::{Condvar, Mutex};
use tsuji_platform::report;

use super::{ActionForm, GoalHandle};
use crate::lock;

/// How long a thread waits for another goal. To start one takes longer than many goals do.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Gives each goal a thread of its own. Threads that have nothing to do wait for a while, and end with this.
pub(super) struct Pursuers<A: ActionForm>(Arc<Shared<A>>);

struct Shared<A: ActionForm> {
    pursue: Box<Pursue<A>>,
    state: Mutex<State<A>>,
    /// A goal is there for a thread that waits, or no more will come.
    news: Condvar,
}

type Pursue<A> = dyn Fn(GoalHandle<A>) + Send + Sync;

struct State<A: ActionForm> {
    /// Each is for one of the threads that wait.
    goals: VecDeque<GoalHandle<A>>,
    waiting: usize,
    is_over: bool,
}

impl<A: ActionForm> Pursuers<A> {
    pub(super) fn new(pursue: impl Fn(GoalHandle<A>) + Send + Sync + 'static) -> Self {
        let state = State { goals: VecDeque::new(), waiting: 0, is_over: false };
        let (state, news) = (Mutex::new(state), Condvar::new());
        Self(Arc::new(Shared { pursue: Box::new(pursue), state, news }))
    }

    /// Hands a goal to a thread. One that gets none is dropped, and aborted by that.
    pub(super) fn pursue(&self, goal: GoalHandle<A>) {
        let mut state = lock(&self.0.state);
        if 0 < state.waiting {
            state.waiting -= 1;
            state.goals.push_back(goal);
            drop(state);
            self.0.news.notify_one();
            return;
        }
        drop(state);
        let shared = Arc::clone(&self.0);
        let spawned = thread::Builder::new().name("tsuji-action".to_owned());
        if let Err(error) = spawned.spawn(move || shared.work(goal)) {
            report::warn!(%error, "a goal is aborted: no thread for it");
        }
    }
}

impl<A: ActionForm> Drop for Pursuers<A> {
    fn drop(&mut self) {
        lock(&self.0.state).is_over = true;
        self.0.news.notify_all();
    }
}

impl<A: ActionForm> Shared<A> {
    /// Pursues this goal and those that come for it. Where one panics the thread ends, and the goal is aborted.
    fn work(&self, first: GoalHandle<A>) {
        let mut next = Some(first);
        while let Some(goal) = next {
            (self.pursue)(goal);
            next = self.wait();
        }
    }

    fn wait(&self) -> Option<GoalHandle<A>> {
        let mut state = lock(&self.state);
        state.waiting += 1;
        let is_idle = |state: &mut State<A>| state.goals.is_empty() && !state.is_over;
        let waited = self.news.wait_timeout_while(state, IDLE_MAX, is_idle);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let next = state.goals.pop_front();
        if next.is_none() {
            state.waiting -= 1;
        }
        next
    }
}
