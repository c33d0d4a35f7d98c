//! What one client has asked for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::client::Subscription;

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The number is used already.
    Used,
    /// The channel is subscribed to already, by this subscription.
    Again(u32),
    /// There are so many, and may be no more.
    Full(usize),
}

/// The channels that a client gets, by the numbers of its subscriptions, with what is needed for each.
#[derive(Debug)]
pub struct Subscribed<T> {
    channels: HashMap<u32, (u64, T)>,
    subscriptions: HashMap<u64, u32>,
    max: usize,
}

impl<T> Subscribed<T> {
    /// None yet, and at most so many.
    pub fn new(max: usize) -> Self {
        Self { channels: HashMap::new(), subscriptions: HashMap::new(), max }
    }

    /// Notes one more.
    ///
    /// # Errors
    ///
    /// [`Refused`], if the client has one of the number or of the channel, or too many.
    pub fn subscribe(&mut self, asked: Subscription, what: T) -> Result<(), Refused> {
        if self.channels.contains_key(&asked.id) {
            return Err(Refused::Used);
        }
        if let Some(there) = self.subscriptions.get(&asked.channel_id) {
            return Err(Refused::Again(*there));
        }
        if self.max <= self.channels.len() {
            return Err(Refused::Full(self.max));
        }
        self.channels.insert(asked.id, (asked.channel_id, what));
        self.subscriptions.insert(asked.channel_id, asked.id);
        Ok(())
    }

    /// Takes one back.
    pub fn unsubscribe(&mut self, id: u32) -> Option<T> {
        let (channel, what) = self.channels.remove(&id)?;
        self.subscriptions.remove(&channel);
        Some(what)
    }
}

/// The channels on which a client publishes, by the numbers that it gives them, with what is needed for each.
#[derive(Debug)]
pub struct Published<T> {
    channels: HashMap<u32, T>,
    max: usize,
}

impl<T> Published<T> {
    /// None yet, and at most so many.
    pub fn new(max: usize) -> Self {
        Self { channels: HashMap::new(), max }
    }

    /// Notes one more.
    ///
    /// # Errors
    ///
    /// [`Refused`], if the client has one of that number, or too many.
    pub fn advertise(&mut self, id: u32, what: T) -> Result<(), Refused> {
        let is_full = self.max <= self.channels.len();
        match self.channels.entry(id) {
            Entry::Occupied(_) => Err(Refused::Used),
            Entry::Vacant(_) if is_full => Err(Refused::Full(self.max)),
            Entry::Vacant(vacant) => {
                vacant.insert(what);
                Ok(())
            }
        }
    }

    /// Takes one back.
    pub fn unadvertise(&mut self, id: u32) -> Option<T> {
        self.channels.remove(&id)
    }

    /// One of them.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.channels.get(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_subscribed_to_once() {
        let mut subscribed = Subscribed::new(2);
        let of = |id, channel_id| Subscription { id, channel_id };
        assert_eq!(subscribed.subscribe(of(1, 10), 10), Ok(()));
        assert_eq!(subscribed.subscribe(of(1, 11), 11), Err(Refused::Used));
        assert_eq!(subscribed.subscribe(of(2, 10), 10), Err(Refused::Again(1)));
        assert_eq!(subscribed.subscribe(of(2, 11), 11), Ok(()));
        assert_eq!(subscribed.subscribe(of(3, 12), 12), Err(Refused::Full(2)));
        assert_eq!((subscribed.unsubscribe(1), subscribed.unsubscribe(1)), (Some(10), None));
        assert_eq!(subscribed.subscribe(of(3, 10), 10), Ok(()));
    }

    #[test]
    fn a_number_is_used_once() {
        let mut published = Published::new(1);
        assert_eq!(published.advertise(5, 'a'), Ok(()));
        assert_eq!(published.advertise(5, 'b'), Err(Refused::Used));
        assert_eq!(published.advertise(6, 'b'), Err(Refused::Full(1)));
        assert_eq!((published.get(5), published.get(6)), (Some(&'a'), None));
        assert_eq!(published.unadvertise(5), Some('a'));
        assert_eq!(published.advertise(6, 'b'), Ok(()));
    }
}
