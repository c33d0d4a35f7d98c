//! Topics whose transport the user has set.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::Flows;
use crate::{Policy, TransportId};

/// Puts what several processes say of a topic in an order that is the same everywhere: counted on from
/// the highest that was seen (Lamport 1978), then by process.
pub type Stamp = (u64, [u8; 16]);

/// The user's word about a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pin {
    /// The topic.
    pub topic: Arc<str>,
    /// The transport that its flows take where it can carry them; with `None` what the policy says.
    pub transport: Option<TransportId>,
    /// Of two words about a topic the one with the higher stamp counts.
    pub stamp: Stamp,
}

/// More topics are to be set than [`Flows::PINS_MAX`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TooManyPins;

impl fmt::Display for TooManyPins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} topics are set", Flows::PINS_MAX)
    }
}

impl Error for TooManyPins {}

/// What the user has set, and the policies that this makes.
#[derive(Debug, Default)]
pub(super) struct Pins {
    by_topic: BTreeMap<Arc<str>, Set>,
    /// The highest count that was seen.
    count: u64,
}

/// What was set last for a topic.
#[derive(Debug)]
struct Set {
    stamp: Stamp,
    /// `None` where it was left to the policy again: an older word must not bring it back.
    transport: Option<TransportId>,
    policy: OnceLock<Arc<Policy>>,
}

impl Pins {
    /// The policy that counts for a topic.
    pub(super) fn policy(&self, policy: &Arc<Policy>, topic: &str) -> Arc<Policy> {
        let Some(Set { transport: Some(transport), policy: pinned, .. }) = self.by_topic.get(topic)
        else {
            return Arc::clone(policy);
        };
        Arc::clone(pinned.get_or_init(|| Arc::new(policy.pinned(topic, transport))))
    }

    /// The policies that were made of an older one.
    pub(super) fn forget_policies(&mut self) {
        self.by_topic.values_mut().for_each(|it| it.policy = OnceLock::new());
    }

    fn is_older(&self, pin: &Pin) -> bool {
        self.by_topic.get(&pin.topic).is_some_and(|known| pin.stamp <= known.stamp)
    }

    /// Whether there is room for this topic, if need be in the place of those that were left to the policy again.
    fn has_room(&self, topic: &str) -> bool {
        let is_set = |it: &Set| it.transport.is_some();
        self.by_topic.contains_key(topic)
            || self.by_topic.len() < Flows::PINS_MAX
            || self.by_topic.values().filter(|it| is_set(it)).count() < Flows::PINS_MAX
    }
}

impl Flows {
    /// Topics that can be set. Beyond so many one more is refused.
    pub const PINS_MAX: usize = 1000;

    /// The stamp of what is set now by this process, later than all that were seen.
    pub fn new_stamp(&mut self, process: [u8; 16]) -> Stamp {
        self.pins.count = self.pins.count.saturating_add(1);
        (self.pins.count, process)
    }

    /// Stamps that are made from now on are later than this one.
    pub fn record_stamp(&mut self, stamp: Stamp) {
        self.pins.count = self.pins.count.max(stamp.0);
    }

    /// Whether the user has said something else of the topic since.
    pub fn is_outdated(&self, pin: &Pin) -> bool {
        self.pins.is_older(pin)
    }

    /// Whether the user's word about a topic can be taken, as [`Event::Pinned`](super::Event::Pinned) does. Answers how many flows
    /// of it are decided here; what was set later is not set back.
    ///
    /// # Errors
    ///
    /// [`TooManyPins`] if there are [`PINS_MAX`](Self::PINS_MAX) others.
    pub fn check_pin(&self, pin: &Pin) -> Result<u32, TooManyPins> {
        if !self.pins.is_older(pin) && !self.pins.has_room(&pin.topic) {
            return Err(TooManyPins);
        }
        Ok(u32::try_from(self.flows_of(Some(&pin.topic)).count()).unwrap_or(u32::MAX))
    }

    pub(super) fn pinned(&mut self, pin: Pin) {
        self.record_stamp(pin.stamp);
        if self.pins.is_older(&pin) || !self.pins.has_room(&pin.topic) {
            return;
        }
        if Self::PINS_MAX <= self.pins.by_topic.len() {
            self.pins.by_topic.retain(|topic, it| it.transport.is_some() || *topic == pin.topic);
        }
        let why = match pin.transport {
            Some(_) => "the user has set it",
            None => "the user has left it to the policy",
        };
        let Pin { topic, transport, stamp } = pin;
        let set = Set { stamp, transport, policy: OnceLock::new() };
        self.pins.by_topic.insert(topic.clone(), set);
        self.decide_again(Some(&topic), why);
    }

    /// What the user has set, to be told to a process that is new.
    pub fn pins(&self) -> impl Iterator<Item = Pin> {
        self.pins.by_topic.iter().map(|(topic, set)| {
            let (transport, stamp) = (set.transport.clone(), set.stamp);
            Pin { topic: topic.clone(), transport, stamp }
        })
    }

    /// What the user has set for a topic.
    pub fn pinned_to(&self, topic: &str) -> Option<&TransportId> {
        self.pins.by_topic.get(topic)?.transport.as_ref()
    }
}
