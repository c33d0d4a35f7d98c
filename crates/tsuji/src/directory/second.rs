//! A second engine on the wire of plain nodes, beside the one that finds everybody: which flows take it, and
//! how those of a publisher go over to it and back.
//!
//! All that such an engine reaches the first one reaches too, so whoever is sent to by both hears each
//! sample twice. A publisher sends by one of them at a time: by the second while all its subscriptions on
//! that wire can have it, and by the first for all of them as soon as one needs that.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tsuji_core::{Durability, Health, Liveliness, Offer, TransportId, select};
use tsuji_platform::clock;
use tsuji_ros::user_data::ParticipantUserData;
use tsuji_ros::vendor::VendorId;
use tsuji_transport::wire::{Found, FoundParticipant};
use tsuji_transport::{Gid, PeerId, Transport};

use super::{Directory, HalfOpen};
use crate::control::protocol::Flow;
use crate::graph::{Role, RouteState};
use crate::host::Host;
use crate::pacing::after;

/// What is known of the second engine.
#[derive(Default)]
pub(super) struct Second {
    standing: Standing,
    /// The participants that it has found.
    found: HashSet<Gid>,
    /// Plain participants whose flows wait until it has found them, and for how long.
    awaited: HashMap<Gid, u64>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Standing {
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

impl Second {
    /// Whether it has found this participant.
    pub(super) fn has_found(&self, participant: Gid) -> bool {
        self.found.contains(&participant)
    }

    /// Whether flows with this participant wait for it.
    pub(super) fn is_awaited_for(&self, participant: Gid) -> bool {
        self.awaited.contains_key(&participant)
    }

    /// A plain participant of its vendor was found by the first engine.
    fn meet(&mut self, participant: Gid, now_ns: u64) {
        if self.found.contains(&participant) || self.awaited.contains_key(&participant) {
            return;
        }
        let is_near = match self.standing {
            Standing::Idle => {
                self.standing = Standing::Wanted;
                true
            }
            Standing::Wanted | Standing::Joining => true,
            Standing::Joined(name) => is_on_same_host(name, participant),
            Standing::Failed => false,
        };
        if is_near {
            self.awaited.insert(participant, after(now_ns, JOINED_WITHIN));
        }
    }

    /// It has joined under this name. Answers those who need not wait for it.
    fn joined(&mut self, name: Gid, now_ns: u64) -> Vec<Gid> {
        self.standing = Standing::Joined(name);
        self.awaited.values_mut().for_each(|due_ns| *due_ns = after(now_ns, FOUND_WITHIN));
        let far = self.awaited.extract_if(|participant, _| !is_on_same_host(name, *participant));
        far.map(|(participant, _)| participant).collect()
    }

    /// It does not work. Answers those who do not wait for it any more.
    fn failed(&mut self) -> Vec<Gid> {
        self.standing = Standing::Failed;
        self.awaited.drain().map(|(participant, _)| participant).collect()
    }

    /// Those who have waited for long enough.
    fn late(&mut self, now_ns: u64) -> Vec<Gid> {
        let late = self.awaited.extract_if(|_, due_ns| *due_ns <= now_ns);
        late.map(|(participant, _)| participant).collect()
    }

    /// A participant is gone.
    pub(super) fn forget(&mut self, participant: Gid) {
        self.found.remove(&participant);
        self.awaited.remove(&participant);
    }
}

/// Whether Fast DDS takes two participants to be on one host: four bytes of the vendor and of the host's addresses
/// are the same (`GuidPrefix_t`, `is_on_same_host_as`).
fn is_on_same_host(one: Gid, other: Gid) -> bool {
    one.0[..4] == other.0[..4]
}

impl Directory {
    /// Whether the second engine is to join now; once.
    pub(crate) fn wants_second(&mut self) -> bool {
        let standing = &mut self.outside.second.standing;
        let is_wanted = *standing == Standing::Wanted;
        if is_wanted {
            *standing = Standing::Joining;
        }
        is_wanted
    }

    /// The first engine has found a plain participant.
    pub(super) fn meet_for_second(&mut self, host: &Host, participant: Gid, vendor: VendorId) {
        if host.wire_engines().is_some() && vendor == VendorId::FAST {
            self.outside.second.meet(participant, clock::monotonic_ns());
            host.nudge.give();
        }
    }

    /// The second engine has joined.
    pub(super) fn second_joined(&mut self, host: &Host, name: Gid) {
        let released = self.outside.second.joined(name, clock::monotonic_ns());
        self.match_released(host, released);
    }

    /// The second engine could not join.
    pub(crate) fn second_failed(&mut self, host: &Host) {
        let released = self.outside.second.failed();
        self.match_released(host, released);
    }

    /// When flows wait for the second engine no longer.
    pub(super) fn second_due_ns(&self) -> Option<u64> {
        self.outside.second.awaited.values().copied().min()
    }

    /// Flows that have waited long enough go on without the second engine.
    pub(super) fn end_waits_for_second(&mut self, host: &Host, now_ns: u64) {
        let released = self.outside.second.late(now_ns);
        self.match_released(host, released);
    }

    fn match_released(&mut self, host: &Host, released: Vec<Gid>) {
        for participant in released {
            self.match_peer(host, PeerId(participant.0));
        }
    }

    /// Takes note of whom the second engine has found. Their endpoints the first one tells.
    pub(super) fn look_at_second(&mut self, host: &Host, transport: &dyn Transport) {
        let Some(wire) = transport.wire() else { return };
        for found in wire.found() {
            match found {
                Found::Participant(found) => self.found_by_second(host, &found),
                Found::Gone(name) => self.outside.second.forget(name),
                Found::Endpoint(_) => (),
            }
        }
    }

    fn found_by_second(&mut self, host: &Host, found: &FoundParticipant) {
        // What cannot be read says nothing.
        let said = ParticipantUserData::parse(&found.user_data).unwrap_or_default();
        if said.tsuji.is_some() || !self.outside.second.found.insert(found.name) {
            return;
        }
        let peer = PeerId(found.name.0);
        if self.outside.second.awaited.remove(&found.name).is_some() {
            return self.match_peer(host, peer);
        }
        if !self.outside.is_plain(peer) {
            // The first one finds it later.
            return;
        }
        let is_its =
            |gid: [u8; 16]| self.endpoints.get(&Gid(gid)).is_some_and(|it| it.peer == peer);
        let flows =
            self.flows.iter().filter(|(it, _)| is_its(it.publisher) || is_its(it.subscription));
        let flows = flows.map(|(flow, route)| (*flow, route.state));
        for (flow, state) in flows.collect::<Vec<_>>() {
            if state == RouteState::Incompatible {
                // Its services may be understood now.
                self.flows.remove(&flow);
            } else {
                self.doubt(host, flow, "another engine has found the subscription's node");
            }
        }
        self.match_peer(host, peer);
    }

    /// The offers for a flow, as far as its publisher can send by them beside its other flows.
    pub(super) fn offers_together(&self, host: &Host, flow: Flow) -> Vec<Offer> {
        let mut offers = self.offers(host, flow);
        let Some(engines) = host.wire_engines() else { return offers };
        let second = offers.iter_mut().find(|it| it.transport == engines.second);
        if let Some(offer) = second.filter(|it| it.health == Health::Good)
            && let Some(why) = self.needs_first(host, flow, &engines.first)
        {
            offer.health = Health::Failed(why.into());
        }
        offers
    }

    /// Why this flow is to go by the first engine although the second one reaches its subscription.
    fn needs_first(&self, host: &Host, flow: Flow, first: &TransportId) -> Option<String> {
        let publication = self.publications.get(&Gid(flow.publisher))?;
        if publication.role != Role::Topic {
            return None;
        }
        if publication.qos.durability == Durability::TransientLocal {
            return Some(format!("{first} keeps what late joiners are owed"));
        }
        if publication.qos.liveliness == Liveliness::ManualByTopic {
            return Some(format!("{first} shows that the publisher is alive"));
        }
        let mut others = self.flows_beside(flow);
        let needs = |other: &Flow| self.chosen_alone(host, *other).is_some_and(|it| it == *first);
        others.any(|other| needs(&other)).then(|| {
            format!("another subscription needs {first}, and the publisher sends by one of the two")
        })
    }

    /// The other flows of its publisher.
    fn flows_beside(&self, flow: Flow) -> impl Iterator<Item = Flow> + '_ {
        let flows = self.flows.iter().filter(move |(it, route)| {
            it.publisher == flow.publisher
                && **it != flow
                && route.state != RouteState::Incompatible
        });
        flows.map(|(flow, _)| *flow)
    }

    /// What a flow would take if it were its publisher's only one.
    fn chosen_alone(&self, host: &Host, flow: Flow) -> Option<TransportId> {
        self.chosen(host, flow, &self.offers(host, flow))
    }

    fn chosen(&self, host: &Host, flow: Flow, offers: &[Offer]) -> Option<TransportId> {
        let traits = self.traits(host, flow)?;
        let topic = &self.endpoints.get(&Gid(flow.publisher))?.record.topic;
        let policy = self.pins.policy_now(&host.policy(), topic);
        select(&traits, &policy, topic, offers).ok().map(|it| it.transport)
    }

    /// After a decision about one flow of a publisher, decides about the others that share the wire with it.
    pub(super) fn regroup(&mut self, host: &Host, flow: Flow) {
        let Some(engines) = host.wire_engines() else { return };
        let publication = self.publications.get(&Gid(flow.publisher));
        if !publication.is_some_and(|it| it.role == Role::Topic) {
            return;
        }
        for other in self.flows_beside(flow).collect::<Vec<_>>() {
            let Some(route) = self.flows.get(&other) else { continue };
            let Some(now) = route.course.opening().or_else(|| route.course.standing()) else {
                continue;
            };
            if engines.other(now).is_none() {
                continue;
            }
            let best = self.chosen(host, other, &self.offers_together(host, other));
            if best.as_ref() == Some(now) {
                continue;
            }
            if best.as_ref() == Some(&engines.first) {
                // Whoever needs the first waits for it.
                self.decide(host, other, "another subscription needs it");
            } else {
                self.doubt(host, other, "no other subscription needs it any more");
            }
        }
    }

    /// Goes on with the flows of publishers whose readers go over to another engine.
    pub(super) fn go_on_changing_engines(&mut self, host: &Host) {
        if host.wire_engines().is_none() {
            return;
        }
        let changing = self.publications.iter().filter(|(_, it)| it.is_changing_engine());
        for publisher in changing.map(|(gid, _)| *gid).collect::<Vec<_>>() {
            let opening = self.flows.iter().filter_map(|(flow, route)| {
                let half = route.opening.as_ref()?.half.clone()?;
                let id = route.course.opening()?.clone();
                (flow.publisher == publisher.0).then_some((*flow, id, half))
            });
            let opening = opening.filter(|(_, _, half)| !matches!(half, HalfOpen::OnTrial { .. }));
            let opening: Vec<_> = opening.collect();
            if opening.is_empty()
                && let Some(publication) = self.publications.get(&publisher)
            {
                publication.has_changed_engine();
            }
            for (flow, id, half) in opening {
                self.go_on_opening(host, flow, &id, half);
            }
        }
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
        let mut second = Second::default();
        second.meet(participant(1, 1), 0);
        second.meet(participant(2, 1), 0);
        assert!(second.standing == Standing::Wanted);
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
        let mut second = Second::default();
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
