//! A second engine on the wire of foreign nodes, beside the one that finds everybody: which flows take it, and
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

use super::{GraphCache, HalfOpen};
use crate::control::protocol::Flow;
use crate::graph::{Role, RouteState};
use crate::pacing::after;
use crate::registry::WireEngines;
use crate::session::Session;

/// What is known of the second engine.
#[derive(Default)]
pub(super) struct SecondEngine {
    progress: Progress,
    /// The participants that it has found, until it tells that they are gone: as many as an engine tells at most.
    found: HashSet<Gid>,
    /// Foreign participants whose flows wait until it has found them, and for how long.
    awaited: HashMap<Gid, u64>,
    /// The flows of a publisher are being decided again.
    is_regrouping: bool,
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
        let is_its =
            |gid: [u8; 16]| self.endpoints.get(&Gid(gid)).is_some_and(|it| it.peer == peer);
        let flows =
            self.flows.iter().filter(|(it, _)| is_its(it.publisher) || is_its(it.subscription));
        let is_service = |it: &Flow| {
            let publisher = self.endpoints.get(&Gid(it.publisher));
            publisher.is_some_and(|it| it.record.role != Role::Topic)
        };
        let flows = flows.map(|(flow, route)| (*flow, route.state, is_service(flow)));
        for (flow, state, is_service) in flows.collect::<Vec<_>>() {
            if state == RouteState::Incompatible {
                if is_service {
                    // It may be understood now.
                    self.flows.remove(&flow);
                }
            } else {
                self.doubt(session, flow, "another engine has found the subscription's node");
            }
        }
        self.match_peer(session, peer);
    }

    /// The offers for a flow, as far as its publisher can send by them beside its other flows.
    pub(super) fn offers_together(&self, session: &Session, flow: Flow) -> Vec<Offer> {
        let Some(engines) = session.wire_engines() else { return self.offers(session, flow) };
        let others_need = || {
            let needs =
                |it: Flow| self.chosen_alone(session, it).is_some_and(|it| it == engines.first);
            self.flows_beside(flow).any(needs)
        };
        self.offers_beside(session, flow, engines, others_need)
    }

    /// The same, where it is asked only when it matters whether other flows need the first engine.
    fn offers_beside(
        &self,
        session: &Session,
        flow: Flow,
        engines: &WireEngines,
        others_need_first: impl FnOnce() -> bool,
    ) -> Vec<Offer> {
        let mut offers = self.offers(session, flow);
        let publisher_core = self.publisher_cores.get(&Gid(flow.publisher));
        let second = offers.iter_mut().find(|it| it.transport == engines.second);
        let second = second.filter(|it| it.health == Health::Good);
        if let Some((offer, publisher_core)) = second.zip(publisher_core)
            && publisher_core.role == Role::Topic
        {
            let first = &engines.first;
            let why = match () {
                () if publisher_core.qos.durability == Durability::TransientLocal => {
                    format!("{first} keeps what late joiners are owed")
                }
                () if publisher_core.qos.liveliness == Liveliness::ManualByTopic => {
                    format!("{first} shows that the publisher is alive")
                }
                () if others_need_first() => format!(
                    "another subscription needs {first}, and the publisher sends by one of the two"
                ),
                () => return offers,
            };
            offer.health = Health::Failed(why.into());
        }
        offers
    }

    /// The other flows of its publisher. One whose other end was lost a moment ago counts again when it has shown
    /// that it lives.
    fn flows_beside(&self, flow: Flow) -> impl Iterator<Item = Flow> + '_ {
        let flows = self.flows.iter().filter(move |(it, route)| {
            it.publisher == flow.publisher
                && **it != flow
                && route.state != RouteState::Incompatible
                && route.patient_until_ns.is_none()
        });
        flows.map(|(flow, _)| *flow)
    }

    /// What a flow would take if it were its publisher's only one.
    fn chosen_alone(&self, session: &Session, flow: Flow) -> Option<TransportId> {
        self.chosen(session, flow, &self.offers(session, flow))
    }

    fn chosen(&self, session: &Session, flow: Flow, offers: &[Offer]) -> Option<TransportId> {
        let traits = self.traits(session, flow)?;
        let topic = &self.endpoints.get(&Gid(flow.publisher))?.record.topic;
        let policy = self.pins.policy(&session.policy(), topic);
        select(&traits, &policy, topic, offers).ok().map(|it| it.transport)
    }

    /// After a decision about one flow of a publisher, decides about the others that share the wire with it.
    pub(super) fn regroup(&mut self, session: &Session, flow: Flow) {
        let Some(engines) = session.wire_engines() else { return };
        let publisher_core = self.publisher_cores.get(&Gid(flow.publisher));
        // What is decided here follows from what each flow needs, and not from what the others have: once is enough.
        if self.foreign.second.is_regrouping
            || !publisher_core.is_some_and(|it| it.role == Role::Topic)
        {
            return;
        }
        self.foreign.second.is_regrouping = true;
        let alone = |it: Flow| self.chosen_alone(session, it).map(|chosen| (it, chosen));
        let needs_first = alone(flow).is_some_and(|(_, it)| it == engines.first);
        let others: Vec<_> = self.flows_beside(flow).filter_map(alone).collect();
        let needs_first = needs_first || others.iter().any(|(_, it)| *it == engines.first);
        for (other, wish) in others {
            let Some(route) = self.flows.get(&other) else { continue };
            let now = route.handover.opening().or_else(|| route.handover.current());
            let Some(now) = now.filter(|it| engines.other(it).is_some()) else { continue };
            // Of what others need only the second engine depends.
            let best = match wish == engines.second {
                true => {
                    let offers = self.offers_beside(session, other, engines, || needs_first);
                    self.chosen(session, other, &offers)
                }
                false => Some(wish),
            };
            match best.filter(|it| it != now) {
                // Whoever needs the first waits for it.
                Some(best) if best == engines.first => {
                    self.decide(session, other, "another subscription needs it");
                }
                Some(best) if best == engines.second => {
                    self.doubt(
                        session,
                        other,
                        "no other subscription needs the other engine any more",
                    );
                }
                _ => {}
            }
        }
        self.foreign.second.is_regrouping = false;
    }

    /// Brings a flow up to what its publisher core has done: its reader may have come over to the other engine with
    /// another one.
    pub(super) fn catch_up(&mut self, session: &Session, flow: Flow) {
        let publisher_core = self.publisher_cores.get(&Gid(flow.publisher));
        if session.wire_engines().is_none()
            || !publisher_core.is_some_and(|it| it.is_changing_engine())
        {
            return;
        }
        let Some(route) = self.flows.get(&flow) else { return };
        let half = route.opening.as_ref().and_then(|it| it.half.clone());
        let opening = route.handover.opening().cloned().zip(half);
        if let Some((id, half @ HalfOpen::ToPlain)) = opening {
            self.go_on_opening(session, flow, &id, half);
        }
    }

    /// Goes on with the flows of publishers whose readers go over to another engine.
    pub(super) fn go_on_changing_engines(&mut self, session: &Session) {
        if session.wire_engines().is_none() {
            return;
        }
        let changing = self.publisher_cores.iter().filter(|(_, it)| it.is_changing_engine());
        for publisher in changing.map(|(gid, _)| *gid).collect::<Vec<_>>() {
            let opening = self.flows.iter().filter_map(|(flow, route)| {
                let half = route.opening.as_ref()?.half.clone()?;
                let id = route.handover.opening()?.clone();
                (flow.publisher == publisher.0).then_some((*flow, id, half))
            });
            let opening = opening.filter(|(_, _, half)| !matches!(half, HalfOpen::OnTrial { .. }));
            let opening: Vec<_> = opening.collect();
            if opening.is_empty()
                && let Some(publisher_core) = self.publisher_cores.get(&publisher)
            {
                publisher_core.has_changed_engine();
            }
            for (flow, id, half) in opening {
                self.go_on_opening(session, flow, &id, half);
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
