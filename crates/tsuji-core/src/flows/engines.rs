//! Two engines on one wire: which flows of a publisher take which.
//!
//! All that the second engine reaches the first one reaches too, so whoever is sent to by both hears each
//! sample twice. A publisher sends by one of them at a time: by the second while all its subscriptions on
//! that wire can have it, and by the first for all of them as soon as one needs that.

use super::route::Progress;
use super::{Action, EndpointId, Ends, Flow, Flows, Now, Role, RouteState, View, Way, Work};
use crate::{Health, Offer, TransportId, select};

/// Two engines on one wire.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WireEngines {
    /// It finds everybody.
    pub first: TransportId,
    /// It reaches participants of its vendor on this host, and joins when the first is found.
    pub second: TransportId,
}

impl WireEngines {
    /// The one that is not this one, of the two.
    pub fn other(&self, engine: &TransportId) -> Option<&TransportId> {
        match () {
            () if *engine == self.first => Some(&self.second),
            () if *engine == self.second => Some(&self.first),
            () => None,
        }
    }
}

impl Flows {
    /// The other flows of its publisher. One whose other end was lost a moment ago counts again when it has shown
    /// that it lives.
    fn other_flows(&self, flow: Flow) -> impl Iterator<Item = Flow> {
        let flows = self.of_publisher(flow.publisher).filter(move |(it, route)| {
            *it != flow
                && route.state != RouteState::Incompatible
                && route.patient_until_ns.is_none()
        });
        flows.map(|(flow, _)| flow)
    }

    /// What a flow would take if it were its publisher's only one.
    fn chosen_alone(&self, view: &dyn View, flow: Flow) -> Option<TransportId> {
        self.chosen(view, flow, &self.offers(view, flow))
    }

    fn chosen(&self, view: &dyn View, flow: Flow, offers: &[Offer]) -> Option<TransportId> {
        let topic = &self.routes.get(&flow)?.topic;
        let traits = view.traits(flow)?;
        let policy = self.pins.policy(&self.policy, topic);
        select(&traits, &policy, topic, offers).ok().map(|it| it.transport)
    }

    /// Whether another flow of its publisher needs the first engine.
    pub(super) fn others_need_first(
        &self,
        view: &dyn View,
        flow: Flow,
        first: &TransportId,
    ) -> bool {
        self.other_flows(flow).any(|it| self.chosen_alone(view, it).is_some_and(|it| it == *first))
    }

    /// After a decision about one flow of a publisher, decides about the others that share the wire with it.
    pub(super) fn regroup(&mut self, view: &dyn View, flow: Flow) {
        let Some(engines) = &self.engines else { return };
        let mut beside = self.of_publisher(flow.publisher);
        // A foreign publisher's flows are its own.
        let is_shared = beside.next().is_some_and(|(_, route)| {
            route.ends.role == Role::Topic && route.ends.way != Way::FromForeign
        });
        drop(beside);
        // What is decided here follows from what each flow needs, and not from what the others have: once is enough.
        if self.is_regrouping || !is_shared {
            return;
        }
        let alone = |it: Flow| self.chosen_alone(view, it).map(|chosen| (it, chosen));
        let needs_first = alone(flow).is_some_and(|(_, it)| it == engines.first);
        let others: Vec<_> = self.other_flows(flow).filter_map(alone).collect();
        let needs_first = needs_first || others.iter().any(|(_, it)| *it == engines.first);
        self.is_regrouping = true;
        let works =
            others.into_iter().map(|(flow, wish)| Work::RegroupOne { flow, wish, needs_first });
        let works: Vec<Work> = works.chain([Work::EndRegroup]).collect();
        self.next(works);
    }

    /// The same about one of the others, which would take `wish` if it were alone.
    pub(super) fn regroup_one(
        &mut self,
        now: Now,
        view: &dyn View,
        flow: Flow,
        wish: TransportId,
        needs_first: bool,
    ) {
        let Some(engines) = self.engines.clone() else { return };
        let Some(route) = self.routes.get(&flow) else { return };
        let link = route.handover.opening().or_else(|| route.handover.current());
        let Some(link) = link.filter(|it| engines.other(it).is_some()) else { return };
        // Of what others need only the second engine depends.
        let best = match wish == engines.second {
            true => {
                let offers = self.offers(view, flow);
                let offers =
                    restrict_second_engine(offers, Some(route.ends), &engines, || needs_first);
                self.chosen(view, flow, &offers)
            }
            false => Some(wish),
        };
        match best.filter(|it| it != link) {
            // Whoever needs the first waits for it.
            Some(best) if best == engines.first => {
                self.next([Work::decide(flow, "another subscription needs it")]);
            }
            Some(best) if best == engines.second => {
                let why = "no other subscription needs the other engine any more";
                self.doubt(now, flow, why.to_owned());
            }
            _ => {}
        }
    }

    /// Goes on with the flows of a publisher whose readers go over to another engine.
    pub(super) fn engine_changing(&mut self, publisher: EndpointId) {
        if self.engines.is_none() {
            return;
        }
        let opening = self.of_publisher(publisher).filter(|(_, route)| {
            route.progress().is_some_and(|it| !matches!(it, Progress::OnTrial { .. }))
        });
        let works: Vec<Work> = opening.map(|(flow, _)| Work::GoOn(flow)).collect();
        if works.is_empty() {
            return self.act(Action::EngineChanged(publisher));
        }
        self.next(works);
    }
}

/// The offers for a flow, as far as its publisher can send by them beside its other flows; whether these need the first
/// engine is asked only when it matters.
pub(super) fn restrict_second_engine(
    mut offers: Vec<Offer>,
    ends: Option<Ends>,
    engines: &WireEngines,
    others_need_first: impl FnOnce() -> bool,
) -> Vec<Offer> {
    let second = offers.iter_mut().find(|it| it.transport == engines.second);
    let second = second.filter(|it| it.health == Health::Good);
    let ends = ends.filter(|it| it.role == Role::Topic && it.way != Way::FromForeign);
    if let Some((offer, ends)) = second.zip(ends) {
        let first = &engines.first;
        let why = match () {
            () if ends.keeps => format!("{first} keeps what late joiners are owed"),
            () if ends.is_manual => format!("{first} shows that the publisher is alive"),
            () if others_need_first() => format!(
                "another subscription needs {first}, and the publisher sends by one of the two"
            ),
            () => return offers,
        };
        offer.health = Health::Failed(why.into());
    }
    offers
}
