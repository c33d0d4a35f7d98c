//! The endpoints that the control thread has to check: those whose state may have changed since it did. After an event of an
//! engine, which does not say where, it checks all.
//!
//! An endpoint marks itself dirty whenever its lock is taken, so no change is missed. That costs one load while it is marked
//! already.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tsuji_platform::poll::Waker;
use tsuji_transport::Gid;

/// Endpoints of a process that were marked dirty, until the control thread takes them.
#[derive(Debug)]
pub(crate) struct DirtyEndpoints {
    endpoints: Mutex<Vec<Gid>>,
    waker: Arc<Waker>,
}

impl DirtyEndpoints {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Self { endpoints: Mutex::default(), waker }
    }

    fn add(&self, gid: Gid) {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.push(gid);
        if endpoints.len().is_multiple_of(WAKE_AT) {
            // Many come and go, and nothing else wakes the thread.
            self.waker.give();
        }
    }

    /// Marks an endpoint and wakes the control thread.
    pub(crate) fn mark_and_wake(&self, gid: Gid) {
        self.add(gid);
        self.waker.give();
    }

    /// Takes those that were marked since the last call.
    pub(crate) fn take(&self) -> Vec<Gid> {
        std::mem::take(&mut self.endpoints.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether an endpoint's state may have changed since the control thread checked it.
#[derive(Debug, Default)]
pub(crate) struct DirtyFlag(AtomicBool);

impl DirtyFlag {
    /// Marks the endpoint. To be called with its lock held: whoever checks takes that lock after [`clear`](Self::clear), so
    /// it either sees all that is done under it now, or finds the endpoint marked. What is read without the lock proves
    /// nothing before it has been taken once.
    pub(crate) fn mark(&self, gid: Gid, marked: &DirtyEndpoints) {
        if !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed) {
            marked.add(gid);
        }
    }

    /// Clears the mark, before the endpoint is checked.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Endpoints that the control thread is to check, in two steps each turn: first their news, then when they are due.
#[derive(Debug, Default)]
pub(crate) struct PendingEndpoints {
    endpoints: BTreeSet<Gid>,
    pub(crate) due_times: DueTimes,
}

impl PendingEndpoints {
    /// Adds an endpoint, whether it is marked or not.
    pub(crate) fn add(&mut self, gid: Gid) {
        self.endpoints.insert(gid);
    }

    /// Removes an endpoint that is gone.
    pub(crate) fn remove(&mut self, gid: Gid) {
        self.endpoints.remove(&gid);
        self.due_times.set(gid, None);
    }

    /// Returns those whose news are to be taken. The mark of each is cleared first, so that it can be marked again.
    pub(crate) fn collect(&mut self, marked: &DirtyEndpoints, clear: impl Fn(Gid)) -> Vec<Gid> {
        self.endpoints.extend(marked.take());
        self.endpoints.iter().inspect(|gid| clear(**gid)).copied().collect()
    }

    /// Updates the due times of those that were collected or marked since, and keeps those that have news for the next turn.
    ///
    /// `check` takes the endpoint's lock for the due time, and reads after that whether there are news. Whoever held the lock
    /// while the endpoint was collected has announced its news by then, and whoever takes it later marks the endpoint.
    pub(crate) fn update_due_times(
        &mut self,
        marked: &DirtyEndpoints,
        clear: impl Fn(Gid),
        check: impl Fn(Gid) -> (Option<u64>, bool),
    ) {
        let collected = std::mem::take(&mut self.endpoints);
        let since = self.collect(marked, clear);
        for gid in collected.into_iter().chain(since) {
            let (due_ns, has_news) = check(gid);
            self.due_times.set(gid, due_ns);
            if has_news {
                self.endpoints.insert(gid);
            }
        }
    }
}

/// When each endpoint is to be checked, whatever happens.
#[derive(Debug, Default)]
pub(crate) struct DueTimes {
    by_time: BTreeSet<(u64, Gid)>,
    by_endpoint: HashMap<Gid, u64>,
}

impl DueTimes {
    /// Sets the due time of an endpoint; with `None` it is checked only when it is marked.
    pub(crate) fn set(&mut self, gid: Gid, due_ns: Option<u64>) {
        let before = match due_ns {
            Some(due_ns) => self.by_endpoint.insert(gid, due_ns),
            None => self.by_endpoint.remove(&gid),
        };
        if before == due_ns {
            return;
        }
        before.map(|it| self.by_time.remove(&(it, gid)));
        due_ns.map(|it| self.by_time.insert((it, gid)));
    }

    /// Returns the first due time.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.by_time.first().map(|(due_ns, _)| *due_ns)
    }

    /// Removes and returns the endpoints that are due.
    pub(crate) fn take(&mut self, now_ns: u64) -> Vec<Gid> {
        let due = self.by_time.iter().take_while(|(due_ns, _)| *due_ns <= now_ns);
        let due: Vec<Gid> = due.map(|(_, gid)| *gid).collect();
        due.iter().for_each(|gid| self.set(*gid, None));
        due
    }
}

/// So many marked endpoints wake the control thread.
const WAKE_AT: usize = 1024;

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn an_endpoint_is_marked_once_until_it_is_checked() {
        let marked = DirtyEndpoints::new(Arc::new(Waker::new().unwrap()));
        let (gid, dirty) = (Gid([1; 16]), DirtyFlag::default());
        dirty.mark(gid, &marked);
        dirty.mark(gid, &marked);
        assert_eq!(marked.take(), [gid]);
        dirty.mark(gid, &marked);
        assert!(marked.take().is_empty(), "nobody has checked it");
        dirty.clear();
        dirty.mark(gid, &marked);
        assert_eq!(marked.take(), [gid]);
    }

    /// News come between the two steps of the control thread, from a thread that held the endpoint's lock before the first.
    #[test]
    fn news_that_come_during_a_check_are_not_lost() {
        let marked = DirtyEndpoints::new(Arc::new(Waker::new().unwrap()));
        let (gid, dirty, lock) = (Gid([1; 16]), DirtyFlag::default(), Mutex::new(()));
        let has_news = AtomicBool::new(false);
        let (is_marked, is_collected) = (Barrier::new(2), Barrier::new(2));
        let mut pending = PendingEndpoints::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _lock = lock.lock().unwrap();
                dirty.mark(gid, &marked);
                is_marked.wait();
                is_collected.wait();
                has_news.store(true, Ordering::Release);
            });
            is_marked.wait();
            assert_eq!(pending.collect(&marked, |_| dirty.clear()), [gid]);
            assert!(!has_news.load(Ordering::Acquire), "without the lock nothing is seen yet");
            is_collected.wait();
            let check = |_| {
                drop(lock.lock().unwrap());
                (Some(7), has_news.load(Ordering::Acquire))
            };
            pending.update_due_times(&marked, |_| dirty.clear(), check);
        });
        assert_eq!(pending.due_times.first_ns(), Some(7));
        assert_eq!(pending.collect(&marked, |_| dirty.clear()), [gid], "it is checked again");
        pending.update_due_times(&marked, |_| dirty.clear(), |_| (None, false));
        assert!(pending.collect(&marked, |_| dirty.clear()).is_empty());
    }

    #[test]
    fn what_is_due_first_comes_first() {
        let [a, b] = [Gid([1; 16]), Gid([2; 16])];
        let mut dues = DueTimes::default();
        dues.set(a, Some(20));
        dues.set(b, Some(10));
        assert_eq!(dues.first_ns(), Some(10));
        dues.set(b, Some(30));
        assert_eq!(dues.first_ns(), Some(20));
        assert!(dues.take(19).is_empty());
        assert_eq!(dues.take(30), [a, b]);
        assert_eq!(dues.first_ns(), None);
        dues.set(a, Some(5));
        dues.set(a, None);
        assert_eq!(dues.first_ns(), None);
    }
}
