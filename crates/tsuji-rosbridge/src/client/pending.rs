use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::operation::Id;

/// Calls or goals that have not ended, by their ids. `C` is what the server needs to go on with one.
#[derive(Debug)]
pub struct Pending<C> {
    entries: HashMap<u64, Entry<C>>,
    by_id: HashMap<Id<'static>, u64>,
    by_time: BTreeSet<(Duration, u64)>,
    pending_max: usize,
    next: u64,
}

#[derive(Debug)]
struct Entry<C> {
    id: Option<Id<'static>>,
    name: String,
    expires: Option<Duration>,
    context: C,
}

/// A call or a goal that has ended without an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended<C> {
    /// Its id, if it had one.
    pub id: Option<Id<'static>>,
    /// The service or action.
    pub name: String,
    /// What was kept for it.
    pub context: C,
}

impl<C> Pending<C> {
    pub(super) fn new(pending_max: usize) -> Self {
        let (entries, by_id, by_time) = (HashMap::new(), HashMap::new(), BTreeSet::new());
        Self { entries, by_id, by_time, pending_max, next: 0 }
    }

    /// Notes one that was begun, and answers its key; gives `context` back where there are as many as may be.
    ///
    /// Ids are the client's own. Where one comes again, [`Self::key`] is that of the last.
    pub fn begin(
        &mut self,
        id: Option<Id<'_>>,
        name: &str,
        expires: Option<Duration>,
        context: C,
    ) -> Result<u64, C> {
        if self.entries.len() >= self.pending_max {
            return Err(context);
        }
        let key = self.next;
        self.next += 1;
        let id = id.map(Id::into_owned);
        if let Some(id) = &id {
            self.by_id.insert(id.clone(), key);
        }
        if let Some(at) = expires {
            self.by_time.insert((at, key));
        }
        self.entries.insert(key, Entry { id, name: name.to_owned(), expires, context });
        Ok(key)
    }

    /// The key of the one with that id.
    pub fn key(&self, id: &Id<'_>) -> Option<u64> {
        self.by_id.get(id).copied()
    }

    /// What is kept for one, and of which service or action it is.
    pub fn context(&mut self, key: u64) -> Option<(&str, &mut C)> {
        let entry = self.entries.get_mut(&key)?;
        Some((&entry.name, &mut entry.context))
    }

    /// The id of one, if it has one.
    pub fn id(&self, key: u64) -> Option<&Id<'static>> {
        self.entries.get(&key)?.id.as_ref()
    }

    /// Takes the one with that key, which has ended.
    pub fn end(&mut self, key: u64) -> Option<Ended<C>> {
        let Entry { id, name, expires, context } = self.entries.remove(&key)?;
        if let Some(id) = &id
            && self.by_id.get(id) == Some(&key)
        {
            self.by_id.remove(id);
        }
        if let Some(at) = expires {
            self.by_time.remove(&(at, key));
        }
        Some(Ended { id, name, context })
    }

    /// Takes the one with that id of that service or action, which has ended.
    pub fn answer(&mut self, id: &Id<'_>, name: &str) -> Option<Ended<C>> {
        let key = self.key(id)?;
        let right = self.entries.get(&key).is_some_and(|it| it.name == name);
        if right { self.end(key) } else { None }
    }

    /// Takes all of a service or action, which is gone.
    pub fn end_all(&mut self, name: &str) -> Vec<Ended<C>> {
        let mut keys: Vec<_> =
            self.entries.iter().filter(|(_, it)| it.name == name).map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.into_iter().filter_map(|key| self.end(key)).collect()
    }

    /// Takes what has waited for too long.
    pub fn expire(&mut self, now: Duration) -> Vec<Ended<C>> {
        let mut ended = Vec::new();
        while let Some(&(at, key)) = self.by_time.first()
            && at <= now
        {
            self.by_time.pop_first();
            ended.extend(self.end(key));
        }
        ended
    }

    /// When to call [`Self::expire`].
    pub fn timeout(&self) -> Option<Duration> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes everything, for when the client has gone.
    pub fn drain(&mut self) -> Vec<Ended<C>> {
        let mut keys: Vec<_> = self.entries.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().filter_map(|key| self.end(key)).collect()
    }

    /// The service or action of each.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.values().map(|it| &*it.name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
