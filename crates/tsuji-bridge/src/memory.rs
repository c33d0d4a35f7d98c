//! What all clients together may keep waiting here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::connected_client::{ConnectedClient, State};

/// How much waits for and of all clients: samples, answers, messages of which the end has not come, requests that are not done. At its
/// limit the client of which the most waits makes room, by its oldest samples; where it has none, it is closed.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes_max: usize,
    bytes: AtomicUsize,
    members: Mutex<HashMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    held: Arc<Held>,
    member: Weak<ConnectedClient>,
}

/// What waits for and of one client.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: AtomicUsize,
    /// It is going, and has nothing more to give.
    is_spent: AtomicBool,
}

impl Held {
    /// Notes that there is nothing more to be had of it until it has gone.
    pub(crate) fn spend(&self) {
        self.is_spent.store(true, Ordering::Release);
    }
}

impl Memory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: AtomicUsize::new(0), members: Mutex::default() }
    }

    /// Lets a client be among those that are looked at when there is no room.
    pub(crate) fn enter(&self, member: &Arc<ConnectedClient>) {
        let entry = Entry { held: Arc::clone(member.held()), member: Arc::downgrade(member) };
        self.lock().insert(member.number, entry);
    }

    /// Forgets a client with all that waits.
    pub(crate) fn leave(&self, number: u64, held: &Held) {
        self.lock().remove(&number);
        self.bytes.fetch_sub(held.bytes.swap(0, Ordering::AcqRel), Ordering::AcqRel);
    }

    /// Notes that of a client `now` bytes wait where `before` did.
    pub(crate) fn changed(&self, held: &Held, before: usize, now: usize) {
        if before < now {
            held.bytes.fetch_add(now - before, Ordering::AcqRel);
            self.bytes.fetch_add(now - before, Ordering::AcqRel);
        } else if now < before {
            held.bytes.fetch_sub(before - now, Ordering::AcqRel);
            self.bytes.fetch_sub(before - now, Ordering::AcqRel);
        }
    }

    /// What waits of all, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether so little room is left that nobody new is let in.
    pub(crate) fn is_tight(&self) -> bool {
        self.bytes_max - self.bytes_max / 8 < self.bytes()
    }

    /// Whether there is room for `bytes` more of what can as well not wait: of that a quarter of all at most.
    pub(crate) fn spares(&self, held: &Held, bytes: usize) -> bool {
        let is_little = held.bytes.load(Ordering::Acquire) + bytes <= self.bytes_max / 4;
        is_little && self.bytes() + bytes <= self.bytes_max - self.bytes_max / 8
    }

    /// Whether more waits than may.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes_max < self.bytes()
    }

    /// Makes room, where there is none, at the cost of whoever has the most. The caller has locked the state of `own`.
    pub(crate) fn relieve(&self, own: &ConnectedClient, state: &mut State) {
        loop {
            let excess = self.excess();
            if excess == 0 {
                return;
            }
            // A little more than is needed, or everything that comes would do it anew.
            let wanted = excess.max(self.bytes_max / 16);
            let Some(largest) = self.largest() else { return };
            if largest.number == own.number {
                own.give(state, wanted);
            } else if !largest.try_give(wanted) {
                // Whoever has locked it comes here after that.
                return;
            }
        }
    }

    /// What is too much, but for what goes with those who are going: nobody else is charged for that.
    fn excess(&self) -> usize {
        if !self.is_over() {
            return 0;
        }
        let members = self.lock();
        let going = members.values().filter(|it| it.held.is_spent.load(Ordering::Acquire));
        let going: usize = going.map(|it| it.held.bytes.load(Ordering::Acquire)).sum();
        self.bytes().saturating_sub(going).saturating_sub(self.bytes_max)
    }

    /// Who has the most, of those that have anything to give.
    fn largest(&self) -> Option<Arc<ConnectedClient>> {
        let members = self.lock();
        let may_give = members.values().filter(|it| !it.held.is_spent.load(Ordering::Acquire));
        let held = may_give.map(|it| (it.held.bytes.load(Ordering::Acquire), it));
        let (_, largest) = held.filter(|it| it.0 != 0).max_by_key(|it| it.0)?;
        let member = largest.member.upgrade();
        // Before the member goes, which may be its end.
        drop(members);
        member
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
