//! A second engine on the wire of foreign nodes, beside the one that finds everybody: when it joins, whom it has
//! found, and which flows wait for that. Which of them take it the core decides.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tsuji_core::flows::Event;
use tsuji_platform::clock;
use tsuji_ros::user_data::ParticipantUserData;
use tsuji_ros::vendor::VendorId;
use tsuji_transport::wire::{Found, FoundParticipant};
use tsuji_transport::{Gid, PeerId, Transport};

use super::GraphCache;
use crate::graph::{Role, RouteState};
use crate::pacing::after;
use crate::session::Session;

/// What is known of the second engine.
#[derive(Default)]
pub(super) struct SecondEngine {
    progress: Progress,
    /// The participants that it has found, until it tells that they are gone: as many as an engine tells at most.
    found: HashSet<Gid>,
    /// Foreign participants whose flows wait until it has found them, and for how long.
    awaited: HashMap<Gid, u64>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Progress {
    /// Nobody was found whom it could reach.
    #[default]
    Idle,
    /// Somebody was.
    Wanted,
    /// It is asked to join.
    Joining,
    /// It has, under this name.
    Joined(Gid),
    /// It does not work, and is tried again.
    Failed,
}

impl SecondEngine {
    /// Whether it has found this participant.
    pub(super) fn has_found(&self, participant: Gid) -> bool {
        self.found.contains(&participant)
    }

    /// Whether flows with this participant wait for it.
    pub(super) fn is_awaited_for(&self, participant: Gid) -> bool {
        self.awaited.contains_key(&participant)
    }

    /// A foreign participant of its vendor was found by the first engine.
    fn meet(&mut self, participant: Gid, now_ns: u64) {
        if self.found.contains(&participant) || self.awaited.contains_key(&participant) {
            return;
        }
        let is_near = match self.progress {
            Progress::Idle => {
                self.progress = Progress::Wanted;
                true
            }
            Progress::Wanted | Progress::Joining => true,
            Progress::Joined(name) => is_on_same_host(name, participant),
            Progress::Failed => false,
        };
        if is_near {
            self.awaited.insert(participant, after(now_ns, JOINED_WITHIN));
        }
    }

    /// It has joined under this name. Answers those who need not wait for it.
    fn joined(&mut self, name: Gid, now_ns: u64) -> Vec<Gid> {
        self.progress = Progress::Joined(name);
        self.awaited.values_mut().for_each(|due_ns| *due_ns = after(now_ns, FOUND_WITHIN));
        let far = self.awaited.extract_if(|participant, _| !is_on_same_host(name, *participant));
        far.map(|(participant, _)| participant).collect()
    }

    /// It does not work. Answers those who do not wait for it any more.
    fn failed(&mut self) -> Vec<Gid> {
        self.progress = Progress::Failed;
        self.awaited.drain().map(|(participant, _)| participant).collect()
    }

    /// Those who have waited for long enough.
    fn late(&mut self, now_ns: u64) -> Vec<Gid> {
        let late = self.awaited.extract_if(|_, due_ns| *due_ns <= now_ns);
        late.map(|(participant, _)| participant).collect()
    }

    /// The first engine knows a participant no more. This one may still, and would not tell it again.
    pub(super) fn forget(&mut self, participant: Gid) {
        self.awaited.remove(&participant);
    }
}

/// Whether Fast DDS takes two participants to be on one host: four bytes of the vendor and of the host's addresses
/// are the same (`GuidPrefix_t`, `is_on_same_host_as`).
fn is_on_same_host(one: Gid, other: Gid) -> bool {
    one.0[..4] == other.0[..4]
}

impl GraphCache {
    /// Whether the second engine is to join now; once.
    pub(crate) fn wants_second(&mut self) -> bool {
        let progress = &mut self.foreign.second.progress;
        let is_wanted = *progress == Progress::Wanted;
        if is_wanted {
            *progress = Progress::Joining;
        }
        is_wanted
    }

    /// The first engine has found a foreign participant.
    pub(super) fn meet_for_second(
        &mut self,
        session: &Session,
        participant: Gid,
        vendor: VendorId,
    ) {
        if session.wire_engines().is_some() && vendor == VendorId::FAST {
            self.foreign.second.meet(participant, clock::monotonic_ns());
            session.waker.give();
        }
    }

    /// The second engine has joined.
    pub(super) fn second_joined(&mut self, session: &Session, name: Gid) {
        let released = self.foreign.second.joined(name, clock::monotonic_ns());
        self.match_released(session, released);
    }

    /// The second engine could not join.
    pub(crate) fn second_failed(&mut self, session: &Session) {
        let released = self.foreign.second.failed();
        self.match_released(session, released);
    }

    /// When flows wait for the second engine no longer.
    pub(super) fn second_due_ns(&self) -> Option<u64> {
        self.foreign.second.awaited.values().copied().min()
    }

    /// Flows that have waited long enough go on without the second engine.
    pub(super) fn end_waits_for_second(&mut self, session: &Session, now_ns: u64) {
        let released = self.foreign.second.late(now_ns);
        self.match_released(session, released);
    }

    fn match_released(&mut self, session: &Session, released: Vec<Gid>) {
        for participant in released {
            self.match_peer(session, PeerId(participant.0));
        }
    }

    /// Takes note of whom the second engine has found. Their endpoints the first one tells.
    pub(super) fn look_at_second(&mut self, session: &Session, transport: &dyn Transport) {
        let Some(wire) = transport.wire() else { return };
        for found in wire.found() {
            match found {
                Found::Participant(found) => self.found_by_second(session, &found),
                Found::Gone(name) => drop(self.foreign.second.found.remove(&name)),
                Found::Endpoint(_) => (),
            }
        }
    }

    fn found_by_second(&mut self, session: &Session, found: &FoundParticipant) {
        // What cannot be read says nothing.
        let said = ParticipantUserData::parse(&found.user_data).unwrap_or_default();
        if said.tsuji.is_some() || !self.foreign.second.found.insert(found.name) {
            return;
        }
        let peer = PeerId(found.name.0);
        if self.foreign.second.awaited.remove(&found.name).is_some() {
            return self.match_peer(session, peer);
        }
        if !self.foreign.is_foreign(peer) {
            // The first one finds it later.
            return;
        }
        let theirs = self.endpoints.iter().filter(|(_, it)| it.peer == peer);
        let flows = theirs.flat_map(|(gid, _)| self.flows.of_endpoint(gid.0));
        for flow in flows.collect::<Vec<_>>() {
            let Some(route) = self.flows.get(flow) else { continue };
            if route.state != RouteState::Incompatible {
                let why = "another engine has found the subscription's node".to_owned();
                self.handle_flow_event(session, Event::Doubted { flow, why });
            } else if route.ends.role != Role::Topic {
                // It may be understood now.
                self.handle_flow_event(session, Event::Unmatched(flow));
            }
        }
        self.match_peer(session, peer);
    }
}

/// How long flows wait for the second engine to join, and then for it to find their other end.
const JOINED_WITHIN: Duration = Duration::from_secs(3);
const FOUND_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn participant(host: u8, process: u8) -> Gid {
        let mut name = [0; 16];
        name[..4].copy_from_slice(&[1, 0x0f, host, host]);
        name[4] = process;
        Gid(name)
    }

    #[test]
    fn participants_of_the_host_are_awaited_until_they_are_found() {
        let mut second = SecondEngine::default();
        second.meet(participant(1, 1), 0);
        second.meet(participant(2, 1), 0);
        assert!(second.progress == Progress::Wanted);
        assert!(
            second.is_awaited_for(participant(1, 1)) && second.is_awaited_for(participant(2, 1))
        );
        // Which host is this one is known only then.
        assert_eq!(second.joined(participant(1, 9), 5), [participant(2, 1)]);
        assert!(second.is_awaited_for(participant(1, 1)));
        second.meet(participant(2, 2), 5);
        assert!(!second.is_awaited_for(participant(2, 2)));
        let due_ns = after(5, FOUND_WITHIN);
        assert!(second.late(due_ns - 1).is_empty());
        assert_eq!(second.late(due_ns), [participant(1, 1)]);
        assert!(!second.is_awaited_for(participant(1, 1)));
    }

    #[test]
    fn nobody_waits_for_an_engine_that_does_not_work() {
        let mut second = SecondEngine::default();
        second.meet(participant(1, 1), 0);
        assert_eq!(second.failed(), [participant(1, 1)]);
        second.meet(participant(1, 2), 0);
        assert!(second.awaited.is_empty());
        // It was tried again.
        assert!(second.joined(participant(1, 9), 0).is_empty());
        second.meet(participant(1, 3), 0);
        assert!(second.is_awaited_for(participant(1, 3)));
        second.forget(participant(1, 3));
        assert!(second.awaited.is_empty());
    }
}
