//! Which endpoints the control thread has to look at: those alone in which something has happened since it did.
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
pub(crate) struct Stirred {
    endpoints: Mutex<Vec<Gid>>,
    waker: Arc<Waker>,
}

impl Stirred {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        Self { endpoints: Mutex::default(), waker }
    }

    fn add(&self, gid: Gid) {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).push(gid);
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
    /// To be said with the endpoint's lock held: whoever looks takes that lock after
    /// [`settle`](Self::settle), so either sees what is done under it now, or is told of it.
    pub(crate) fn stir(&self, gid: Gid, stirred: &Stirred) {
        if !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed) {
            stirred.add(gid);
        }
    }

    /// It is going to be looked at.
    pub(crate) fn settle(&self) {
        self.0.store(false, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_stirs_is_told_once_until_it_is_looked_at() {
        let stirred = Stirred::new(Arc::new(Waker::new().unwrap()));
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
