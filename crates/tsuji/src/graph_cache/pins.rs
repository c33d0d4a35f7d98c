//! Topics whose transport the user has set.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tsuji_core::{Policy, TransportId};
use tsuji_transport::PeerId;

use super::GraphCache;
use crate::control::protocol::Control;
use crate::session::Session;

/// What the user has set, and the policies that this makes.
#[derive(Default)]
pub(super) struct Pins {
    by_topic: HashMap<String, Pin>,
    /// The highest count that was seen.
    count: u64,
}

/// What was set last for a topic.
struct Pin {
    stamp: Stamp,
    /// `None` where it was left to the policy again: an older word must not bring it back.
    transport: Option<TransportId>,
    policy: OnceLock<Arc<Policy>>,
}

/// Puts what several processes say of a topic in an order that is the same everywhere: counted on from
/// the highest that was seen (Lamport 1978), then by process.
pub(crate) type Stamp = (u64, [u8; 16]);

impl Pins {
    /// The policy that counts for a topic.
    pub(super) fn policy(&self, policy: &Arc<Policy>, topic: &str) -> Arc<Policy> {
        let Some(Pin { transport: Some(transport), policy: pinned, .. }) = self.by_topic.get(topic)
        else {
            return Arc::clone(policy);
        };
        Arc::clone(pinned.get_or_init(|| Arc::new(policy.pinned(topic, transport))))
    }
}

impl GraphCache {
    /// The stamp of what is set now, by this process.
    pub(crate) fn new_stamp(&mut self, id: PeerId) -> Stamp {
        self.pins.count = self.pins.count.saturating_add(1);
        (self.pins.count, id.0)
    }

    /// From now on the flows of this topic take this transport where it can carry them, or again what
    /// the policy says. Answers how many flows that are decided here there are, or why it is refused.
    /// What was set later is not set back.
    pub(crate) fn pin(
        &mut self,
        session: &Session,
        topic: &str,
        transport: Option<&str>,
        stamp: Stamp,
    ) -> Result<u32, String> {
        self.pins.count = self.pins.count.max(stamp.0);
        if self.pins.by_topic.get(topic).is_some_and(|known| stamp <= known.stamp) {
            return Ok(self.count_flows(session, topic));
        }
        if let Some(transport) = transport
            && session.transport(transport).is_none()
        {
            let known = session.transports().iter().map(|it| it.id().to_string());
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(format!("{transport} is not at work in this process; there are {known}"));
        }
        if PINS_MAX <= self.pins.by_topic.len() && !self.pins.by_topic.contains_key(topic) {
            self.pins.by_topic.retain(|_, it| it.transport.is_some());
            if PINS_MAX <= self.pins.by_topic.len() {
                return Err(format!("more than {PINS_MAX} topics are set"));
            }
        }
        let why = match transport {
            Some(_) => "the user has set it",
            None => "the user has left it to the policy",
        };
        let pin =
            Pin { stamp, transport: transport.map(TransportId::new), policy: OnceLock::new() };
        self.pins.by_topic.insert(topic.to_owned(), pin);
        Ok(self.decide_again(session, Some(topic), why))
    }

    /// What a new process is told of what the user has set.
    pub(super) fn told_pins(&self) -> impl Iterator<Item = Control> + '_ {
        self.pins.by_topic.iter().map(|(topic, pin)| {
            let (topic, stamp) = (topic.clone(), pin.stamp);
            let transport = pin.transport.as_ref().map(ToString::to_string);
            Control::Pin { question: 0, topic, transport, stamp }
        })
    }

    /// The policy is another one.
    pub(crate) fn policy_changed(&mut self, session: &Session) {
        self.pins.by_topic.values_mut().for_each(|pin| pin.policy = OnceLock::new());
        let line_bytes = session.policy().size_line_bytes();
        self.publisher_cores.values().for_each(|it| it.set_size_line(line_bytes));
        self.decide_again(session, None, "the policy file has changed");
    }

    /// What the user has set for a topic.
    pub(super) fn pinned(&self, topic: &str) -> Option<String> {
        self.pins.by_topic.get(topic)?.transport.as_ref().map(ToString::to_string)
    }
}

/// Topics that can be set.
const PINS_MAX: usize = 1000;
