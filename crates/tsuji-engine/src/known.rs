//! Who was told of, so that a participant comes before its endpoints and goes after them. It decides;
//! it takes nothing from the engine.

use std::collections::{BTreeSet, HashMap, VecDeque};

use tsuji_transport::Gid;
use tsuji_transport::deferred::told;
use tsuji_transport::wire::{Found, FoundEndpoint, FoundParticipant};

use crate::engine::participant_of;

/// The participants and endpoints that were told of.
#[derive(Debug, Default)]
pub(crate) struct Known {
    members: HashMap<Gid, Member>,
    endpoints: usize,
    /// Endpoints whose participant is not there. Beyond [`WAITING_MAX`] the oldest are forgotten: of
    /// these nothing is told until they say something else.
    waiting: VecDeque<FoundEndpoint>,
    /// Was it warned that there are too many.
    is_warned: bool,
}

#[derive(Debug)]
struct Member {
    said: FoundParticipant,
    endpoints: BTreeSet<Gid>,
}

/// Beyond either, others are not told of until they say something else, and it is warned once.
pub(crate) const PARTICIPANTS_MAX: usize = 4096;
pub(crate) const ENDPOINTS_MAX: usize = 200_000;
/// Only what comes out of order waits at all.
const WAITING_MAX: usize = 1024;

impl Known {
    /// Takes what the engine has found, and adds to `told` what is to be told.
    pub(crate) fn note(&mut self, found: Found, told: &mut Vec<Found>) {
        match found {
            Found::Participant(said) => self.note_participant(said, told),
            Found::Endpoint(endpoint) => self.note_endpoint(endpoint, told),
            Found::Gone(name) if name == participant_of(name) => self.lose_participant(name, told),
            Found::Gone(name) => self.lose_endpoint(name, told),
        }
    }

    /// Forgets all, and answers those who were told of.
    pub(crate) fn clear(&mut self) -> Vec<Found> {
        let (mut told, names) = (Vec::new(), self.members.keys().copied().collect::<Vec<_>>());
        names.into_iter().for_each(|name| self.lose_participant(name, &mut told));
        *self = Self::default();
        told
    }

    fn note_participant(&mut self, said: FoundParticipant, told: &mut Vec<Found>) {
        let name = said.name;
        if let Some(member) = self.members.get_mut(&name) {
            if member.said != said {
                member.said = said.clone();
                told.push(Found::Participant(said));
            }
            return;
        }
        if PARTICIPANTS_MAX <= self.members.len() {
            return self.warn("participants", PARTICIPANTS_MAX);
        }
        let member = Member { said: said.clone(), endpoints: BTreeSet::new() };
        self.members.insert(name, member);
        told.push(Found::Participant(said));
        let (his, others) = self.waiting.drain(..).partition(|it| it.participant == name);
        self.waiting = others;
        let his: VecDeque<_> = his;
        his.into_iter().for_each(|endpoint| self.note_endpoint(endpoint, told));
    }

    fn note_endpoint(&mut self, endpoint: FoundEndpoint, told: &mut Vec<Found>) {
        let Some(member) = self.members.get_mut(&endpoint.participant) else {
            return self.wait(endpoint);
        };
        if !member.endpoints.contains(&endpoint.name) {
            if ENDPOINTS_MAX <= self.endpoints {
                return self.warn("endpoints", ENDPOINTS_MAX);
            }
            member.endpoints.insert(endpoint.name);
            self.endpoints += 1;
        }
        told.push(Found::Endpoint(endpoint));
    }

    fn wait(&mut self, endpoint: FoundEndpoint) {
        self.waiting.retain(|it| it.name != endpoint.name);
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(endpoint);
    }

    fn lose_participant(&mut self, name: Gid, told: &mut Vec<Found>) {
        self.waiting.retain(|it| it.participant != name);
        let Some(member) = self.members.remove(&name) else { return };
        self.endpoints -= member.endpoints.len();
        told.extend(member.endpoints.into_iter().map(Found::Gone));
        told.push(Found::Gone(name));
    }

    fn lose_endpoint(&mut self, name: Gid, told: &mut Vec<Found>) {
        self.waiting.retain(|it| it.name != name);
        let Some(member) = self.members.get_mut(&participant_of(name)) else { return };
        if member.endpoints.remove(&name) {
            self.endpoints -= 1;
            told.push(Found::Gone(name));
        }
    }

    fn warn(&mut self, what: &str, most: usize) {
        if !std::mem::replace(&mut self.is_warned, true) {
            told::warn!("more than {most} {what} on the network; the others are not seen");
        }
    }
}

#[cfg(test)]
mod tests {
    use tsuji_core::Qos;
    use tsuji_transport::wire::WireQos;

    use super::*;

    fn name(process: u32, entity: u32) -> Gid {
        let mut name = Gid([1; 16]);
        name.0[8..12].copy_from_slice(&process.to_be_bytes());
        name.0[12..].copy_from_slice(&entity.to_be_bytes());
        name
    }

    fn participant(process: u32) -> FoundParticipant {
        FoundParticipant { name: name(process, 0x1c1), ..FoundParticipant::default() }
    }

    fn endpoint(process: u32, entity: u32) -> FoundEndpoint {
        FoundEndpoint {
            name: name(process, entity),
            participant: name(process, 0x1c1),
            is_writer: true,
            topic: "t".to_owned(),
            type_name: "t".to_owned(),
            user_data: Vec::new(),
            qos: WireQos::new(&Qos::DEFAULT).unwrap(),
        }
    }

    fn note(known: &mut Known, found: impl IntoIterator<Item = Found>) -> Vec<Found> {
        let mut told = Vec::new();
        found.into_iter().for_each(|it| known.note(it, &mut told));
        told
    }

    #[test]
    fn a_participant_comes_before_its_endpoints_and_goes_after_them() {
        let known = &mut Known::default();
        let (one, e3, e4) = (participant(1), endpoint(1, 3), endpoint(1, 4));
        let (p, e3, e4) =
            (Found::Participant(one.clone()), Found::Endpoint(e3), Found::Endpoint(e4));
        assert_eq!(note(known, [e4.clone()]), []);
        assert_eq!(note(known, [p.clone(), e3.clone()]), [p.clone(), e4, e3]);
        let gone = |entity| Found::Gone(name(1, entity));
        assert_eq!(note(known, [gone(0x1c1)]), [gone(3), gone(4), gone(0x1c1)]);
        // What the engine says of the endpoints afterwards was said already.
        assert_eq!(note(known, [gone(3), gone(4), gone(0x1c1)]), []);
        assert_eq!((known.endpoints, note(known, [p.clone()])), (0, vec![p]));
    }

    #[test]
    fn what_says_something_else_is_told_again() {
        let known = &mut Known::default();
        let said = participant(1);
        let changed = FoundParticipant { user_data: vec![1], ..said.clone() };
        let (said, changed) = (Found::Participant(said), Found::Participant(changed));
        let all = [said.clone(), said.clone(), changed.clone(), changed.clone()];
        assert_eq!(note(known, all), [said, changed]);
        let (quiet, loud) =
            (endpoint(1, 3), FoundEndpoint { user_data: vec![1], ..endpoint(1, 3) });
        let both = [Found::Endpoint(quiet), Found::Endpoint(loud)];
        assert_eq!(note(known, both.clone()), both);
        assert_eq!(known.endpoints, 1);
    }

    #[test]
    fn an_endpoint_that_goes_while_it_waits_is_not_told() {
        let known = &mut Known::default();
        let (p, gone) = (Found::Participant(participant(1)), Found::Gone(name(1, 3)));
        assert_eq!(note(known, [Found::Endpoint(endpoint(1, 3)), gone, p.clone()]), [p]);
    }

    #[test]
    fn what_is_known_and_what_waits_is_limited() {
        let known = &mut Known::default();
        let all = (0..=PARTICIPANTS_MAX as u32).map(|it| Found::Participant(participant(it)));
        assert_eq!(note(known, all).len(), PARTICIPANTS_MAX);
        let all = (0..=ENDPOINTS_MAX as u32).map(|it| Found::Endpoint(endpoint(0, it << 9)));
        assert_eq!(note(known, all).len(), ENDPOINTS_MAX);
        // There is room again when one goes.
        let next = Found::Endpoint(endpoint(1, 3));
        let gone = Found::Gone(name(0, 0));
        assert_eq!(note(known, [next.clone(), gone.clone(), next.clone()]), [gone, next]);
        let unknown_peer = u32::MAX;
        let waiting =
            (0..2 * WAITING_MAX as u32).map(|it| Found::Endpoint(endpoint(unknown_peer, it)));
        assert_eq!(note(known, waiting), []);
        assert_eq!(known.waiting.len(), WAITING_MAX);
        assert_eq!(known.waiting[0].name, name(unknown_peer, WAITING_MAX as u32));
    }
}
