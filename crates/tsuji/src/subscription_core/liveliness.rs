//! Which publishers assert their liveliness, and that it is told.

use std::time::Duration;

use tsuji_core::{Liveliness, Qos};
use tsuji_platform::clock;
use tsuji_transport::Gid;

use super::{State, SubscriptionCore};
use crate::events::SubscriptionEvent;

/// Within which time a publisher shows by itself that it is alive, if it offers that.
pub(super) fn manual_lease(offered: &Qos) -> Option<Duration> {
    offered.liveliness_lease.filter(|_| offered.liveliness == Liveliness::ManualByTopic)
}

impl SubscriptionCore {
    /// The publisher showed that it is alive.
    pub(crate) fn alive(&self, writer: Gid) {
        let mut state = self.lock();
        if let Some(flow) = state.flows.get_mut(writer) {
            flow.last_sign_ns = clock::monotonic_ns();
            if !std::mem::replace(&mut flow.is_alive, true) {
                // A lost lease was waited for no longer.
                self.session.waker.give();
                self.tell_liveliness(&state);
            }
        }
    }

    /// Tells of foreign publishers that no longer assert their liveliness, or do so again. Their engine wakes the thread that
    /// asks when something is due.
    pub(super) fn see_silent(&self, state: &mut State) {
        let State { flows, links, .. } = &mut *state;
        let mut changed = false;
        let watched =
            flows.all.iter_mut().filter(|(_, it)| it.is_watched_by_engine && it.is_connected);
        for (writer, flow) in watched {
            let link = links.iter().find(|link| flow.takes_from(&link.id));
            let Some(is_silent) = link.and_then(|it| it.reader.is_silent(*writer)) else {
                continue;
            };
            changed |= std::mem::replace(&mut flow.is_alive, !is_silent) == is_silent;
        }
        if changed {
            self.tell_liveliness(state);
        }
    }

    pub(super) fn tell_liveliness(&self, state: &State) {
        let mut counts = [0, 0];
        for flow in state.flows.values().filter(|flow| flow.is_connected) {
            counts[usize::from(flow.is_alive)] += 1;
        }
        let [not_alive, alive] = counts;
        self.events.push(SubscriptionEvent::LivelinessChanged { alive, not_alive });
    }
}
