//! Topics whose transport the user has set.

use tsuji_core::TransportId;
use tsuji_core::flows::{Event, Pin, Stamp};
use tsuji_transport::PeerId;

use super::GraphCache;
use crate::control::protocol::Control;
use crate::session::Session;

impl GraphCache {
    /// The stamp of what is set now, by this process.
    pub(crate) fn new_stamp(&mut self, id: PeerId) -> Stamp {
        self.flows.new_stamp(id.0)
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
        self.flows.record_stamp(stamp);
        let id = transport.map(TransportId::new);
        let pin = Pin { topic: topic.into(), transport: id, stamp };
        if let Some(transport) = transport
            && !self.flows.is_outdated(&pin)
            && session.transport(transport).is_none()
        {
            let known = session.transports().iter().map(|it| it.id().to_string());
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(format!("{transport} is not at work in this process; there are {known}"));
        }
        let flows = self.flows.check_pin(&pin).map_err(|error| error.to_string())?;
        self.handle_flow_event(session, Event::Pinned(pin));
        Ok(flows)
    }

    /// What a new process is told of what the user has set.
    pub(super) fn told_pins(&self) -> impl Iterator<Item = Control> + '_ {
        self.flows.pins().map(|Pin { topic, transport, stamp }| {
            let (topic, transport) = (topic.to_string(), transport.map(|it| it.to_string()));
            Control::Pin { question: 0, topic, transport, stamp }
        })
    }

    /// The policy is another one.
    pub(crate) fn policy_changed(&mut self, session: &Session) {
        let policy = session.policy();
        let line_bytes = policy.size_line_bytes();
        self.publisher_cores.values().for_each(|it| it.set_size_line(line_bytes));
        self.handle_flow_event(session, Event::PolicyChanged(policy));
    }

    /// What the user has set for a topic.
    pub(super) fn pinned(&self, topic: &str) -> Option<String> {
        self.flows.pinned_to(topic).map(ToString::to_string)
    }
}
