//! Which endpoints the control thread has to look at: those alone in which something has happened since it did. After an event of an
//! engine, which does not say where, it looks at all.
//!
//! An endpoint stirs whenever its lock is taken, so nothing that happens in one is missed. That costs it one load, until the control
//! thread has looked.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tsuji_platform::poll::Waker;
use tsuji_transport::Gid;

/// The endpoints of a process that have stirred.
#[derive(Debug)]
pub(crate) struct StirredEndpoints {
    endpoints: Mutex<Vec<Gid>>,
    waker: Arc<Waker>,
}

impl StirredEndpoints {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Self { endpoints: Mutex::default(), waker }
    }

    fn add(&self, gid: Gid) {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.push(gid);
        if endpoints.len().is_multiple_of(TAKEN_AT) {
            // Many come and go, and nothing else wakes the thread.
            self.waker.give();
        }
    }

    /// Has the control thread look at an endpoint now.
    pub(crate) fn wake(&self, gid: Gid) {
        self.add(gid);
        self.waker.give();
    }

    /// Those that have stirred since this was asked.
    pub(crate) fn take(&self) -> Vec<Gid> {
        std::mem::take(&mut self.endpoints.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether an endpoint has stirred since the control thread looked.
#[derive(Debug, Default)]
pub(crate) struct Stirs(AtomicBool);

impl Stirs {
    /// To be called with the endpoint's lock held. Whoever looks takes that lock after [`settle`](Self::settle), so
    /// either sees all that is done under it now, or is told of it. What is read without the lock says nothing until
    /// it has been taken once.
    pub(crate) fn stir(&self, gid: Gid, stirred: &StirredEndpoints) {
        if !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed) {
            stirred.add(gid);
        }
    }

    /// It is going to be looked at.
    pub(crate) fn settle(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The endpoints that the control thread is to look at, in two steps each turn: what they have come upon, and then when they are due.
#[derive(Debug, Default)]
pub(crate) struct Restless {
    endpoints: BTreeSet<Gid>,
    pub(crate) dues: Dues,
}

impl Restless {
    /// This one is to be looked at, whether it has stirred or not.
    pub(crate) fn add(&mut self, gid: Gid) {
        self.endpoints.insert(gid);
    }

    /// This one is gone.
    pub(crate) fn remove(&mut self, gid: Gid) {
        self.endpoints.remove(&gid);
        self.dues.set(gid, None);
    }

    /// Those of which it is to be asked what they have come upon. Each is settled first, so that it stirs again.
    pub(crate) fn collect(&mut self, stirred: &StirredEndpoints, settle: impl Fn(Gid)) -> Vec<Gid> {
        self.endpoints.extend(stirred.take());
        self.endpoints.iter().inspect(|gid| settle(**gid)).copied().collect()
    }

    /// Asks when each is due that was collected, or has stirred since, and whether it has come upon something.
    ///
    /// `look` takes the endpoint's lock for the first and answers the second after that. Whoever had the lock while it was collected has told
    /// by then what it has come upon, and whoever takes it later stirs. Those that have are collected once more.
    pub(crate) fn find_dues(
        &mut self,
        stirred: &StirredEndpoints,
        settle: impl Fn(Gid),
        look: impl Fn(Gid) -> (Option<u64>, bool),
    ) {
        let collected = std::mem::take(&mut self.endpoints);
        let since = self.collect(stirred, settle);
        for gid in collected.into_iter().chain(since) {
            let (due_ns, has_news) = look(gid);
            self.dues.set(gid, due_ns);
            if has_news {
                self.endpoints.insert(gid);
            }
        }
    }
}

/// When each endpoint wants to be looked at, whatever happens.
#[derive(Debug, Default)]
pub(crate) struct Dues {
    by_time: BTreeSet<(u64, Gid)>,
    by_endpoint: HashMap<Gid, u64>,
}

impl Dues {
    /// From now on this one does then, or with `None` only when it stirs.
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

    /// When the first does.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.by_time.first().map(|(due_ns, _)| *due_ns)
    }

    /// Takes out those that do by now.
    pub(crate) fn take(&mut self, now_ns: u64) -> Vec<Gid> {
        let due = self.by_time.iter().take_while(|(due_ns, _)| *due_ns <= now_ns);
        let due: Vec<Gid> = due.map(|(_, gid)| *gid).collect();
        due.iter().for_each(|gid| self.set(*gid, None));
        due
    }
}

/// So many wake the control thread.
const TAKEN_AT: usize = 1024;

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn an_endpoint_that_stirs_is_told_once_until_it_is_looked_at() {
        let stirred = StirredEndpoints::new(Arc::new(Waker::new().unwrap()));
        let (gid, stirs) = (Gid([1; 16]), Stirs::default());
        stirs.stir(gid, &stirred);
        stirs.stir(gid, &stirred);
        assert_eq!(stirred.take(), [gid]);
        stirs.stir(gid, &stirred);
        assert!(stirred.take().is_empty(), "nobody has looked");
        stirs.settle();
        stirs.stir(gid, &stirred);
        assert_eq!(stirred.take(), [gid]);
    }

    /// Something happens in an endpoint between the two looks of the control thread, by one who had its lock before the first.
    #[test]
    fn what_happens_while_it_is_looked_at_is_not_lost() {
        let stirred = StirredEndpoints::new(Arc::new(Waker::new().unwrap()));
        let (gid, stirs, lock) = (Gid([1; 16]), Stirs::default(), Mutex::new(()));
        let has_news = AtomicBool::new(false);
        let (has_stirred, has_looked) = (Barrier::new(2), Barrier::new(2));
        let mut restless = Restless::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _lock = lock.lock().unwrap();
                stirs.stir(gid, &stirred);
                has_stirred.wait();
                has_looked.wait();
                has_news.store(true, Ordering::Release);
            });
            has_stirred.wait();
            assert_eq!(restless.collect(&stirred, |_| stirs.settle()), [gid]);
            assert!(!has_news.load(Ordering::Acquire), "without the lock nothing is seen yet");
            has_looked.wait();
            let look = |_| {
                drop(lock.lock().unwrap());
                (Some(7), has_news.load(Ordering::Acquire))
            };
            restless.find_dues(&stirred, |_| stirs.settle(), look);
        });
        assert_eq!(restless.dues.first_ns(), Some(7));
        assert_eq!(restless.collect(&stirred, |_| stirs.settle()), [gid], "it is looked at again");
        restless.find_dues(&stirred, |_| stirs.settle(), |_| (None, false));
        assert!(restless.collect(&stirred, |_| stirs.settle()).is_empty());
    }

    #[test]
    fn what_is_due_first_comes_first() {
        let [a, b] = [Gid([1; 16]), Gid([2; 16])];
        let mut dues = Dues::default();
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
