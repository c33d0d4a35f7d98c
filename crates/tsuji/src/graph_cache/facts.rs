//! What the core asks for when it decides about a flow: who is at its ends, and which transports are there.

use std::collections::HashMap;
use std::sync::Arc;

use tsuji_core::flows::{EndpointId, View};
use tsuji_core::{Capability, Health, Offer, Qos, Scope, Traits};
use tsuji_ros::gid::Guid;
use tsuji_ros::vendor::VendorId;
use tsuji_transport::{Gid, PeerId};

use super::foreign::Foreign;
use super::{GraphCache, Known};
use crate::control::channel::Channels;
use crate::control::protocol::{EndpointRecord, Flow};
use crate::endpoint::Audience;
use crate::graph::Role;
use crate::publisher_core::{self, OtherEnd, PublisherCore};
use crate::session::Session;
use crate::subscription_core::SubscriptionCore;

/// What is known of this process and of others, to be looked at.
pub(super) struct Facts<'a> {
    pub(super) session: &'a Session,
    pub(super) channels: &'a Channels,
    pub(super) endpoints: &'a HashMap<Gid, Known<EndpointRecord>>,
    pub(super) publisher_cores: &'a HashMap<Gid, Arc<PublisherCore>>,
    pub(super) subscription_cores: &'a HashMap<Gid, Arc<SubscriptionCore>>,
    pub(super) foreign: &'a Foreign,
}

impl GraphCache {
    pub(super) fn facts<'a>(&'a self, session: &'a Session) -> Facts<'a> {
        Facts {
            session,
            channels: &self.channels,
            endpoints: &self.endpoints,
            publisher_cores: &self.publisher_cores,
            subscription_cores: &self.subscription_cores,
            foreign: &self.foreign,
        }
    }
}

impl View for Facts<'_> {
    fn traits(&self, flow: Flow) -> Option<Traits> {
        let subscription = self.endpoints.get(&Gid(flow.subscription))?;
        let publisher = self.endpoints.get(&Gid(flow.publisher))?;
        let reliability = Qos::from(subscription.record.qos).reliability;
        if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
            let far = self.far(subscription.peer);
            return Some(publisher_core.traits(far, reliability, &self.session.policy()));
        }
        let far = self.far(publisher.peer);
        let record = &publisher.record;
        Some(publisher_core::traits_of_another(
            &record.topic,
            &record.type_name,
            far,
            reliability,
            &self.session.policy(),
        ))
    }

    fn offers(&self, flow: Flow) -> Vec<Offer> {
        let session = self.session;
        let publisher_core = self.publisher_cores.get(&Gid(flow.publisher));
        let peer_of = |gid| self.endpoints.get(&gid).map(|known| known.peer);
        let far_end = if publisher_core.is_some() { flow.subscription } else { flow.publisher };
        let peer = peer_of(Gid(far_end)).unwrap_or_default();
        let publisher = self.endpoints.get(&Gid(flow.publisher));
        let role = publisher.map_or(Role::Topic, |it| it.record.role);
        // On a wire its name is that of what leaves.
        let is_inside = publisher_core.is_some_and(|it| it.audience == Audience::Inside);
        let mut offers: Vec<Offer> = Vec::new();
        for transport in session.transports() {
            let id = transport.id();
            let mut offer = Offer::new(id.clone(), transport.capability());
            offer.readers = publisher_core.map_or(0, |it| it.readers_on(&id));
            if let Some(wire) = transport.wire().filter(|_| session.speaks()) {
                offer.peers = wire.peers();
            }
            if let Some(trouble) = transport.trouble() {
                offer.health = Health::Exhausted(trouble.into());
            } else if session.is_second(&id) && self.has_keys(Gid(far_end)) == Some(true) {
                offer.health = Health::Failed("it is not told of keys".into());
            } else if is_inside && offer.capability.scopes.contains(Scope::Remote) {
                offer.health = Health::Failed(BY_ENGINE_OUTSIDE_ALONE.into());
            } else if let Some(obstacle) = self.obstacle(peer, role, &offer) {
                offer.health = Health::Failed(obstacle.into());
            }
            offers.push(offer);
        }
        // Those that do not work at all are named with the reason.
        let failed = session.failed().iter().map(|it| Offer {
            health: Health::Failed(it.reason.as_str().into()),
            ..Offer::new(it.transport.clone(), Capability::ANYTHING)
        });
        offers.extend(failed);
        offers
    }

    fn is_changing_engine(&self, publisher: EndpointId) -> bool {
        self.publisher_cores.get(&Gid(publisher)).is_some_and(|it| it.is_changing_engine())
    }
}

impl Facts<'_> {
    /// Where a process is, and whose it is.
    fn far(&self, peer: PeerId) -> OtherEnd {
        let scope = match () {
            () if peer == self.session.id => Scope::Intra,
            () if self.channels.is_near(peer) => Scope::Local,
            () => Scope::Remote,
        };
        OtherEnd { scope, peer: self.foreign.peer(peer) }
    }

    /// What keeps a transport from reaching this process, if it could as far as its scopes go.
    fn obstacle(&self, peer: PeerId, role: Role, offer: &Offer) -> Option<String> {
        let scope = self.far(peer).scope;
        if peer == self.session.id || !offer.capability.scopes.contains(scope) {
            return None;
        }
        if self.foreign.is_foreign(peer) {
            let is_second = self.session.is_second(&offer.transport);
            return self.foreign.obstacle(peer, &offer.transport, is_second, role);
        }
        self.channels.obstacle(peer, &offer.transport)
    }

    /// Whether an endpoint says that its type has keys; nothing is known of those of other processes of tsuji.
    pub(super) fn has_keys(&self, gid: Gid) -> Option<bool> {
        if let Some(publisher_core) = self.publisher_cores.get(&gid) {
            return Some(publisher_core.announces_keys());
        }
        if let Some(subscription_core) = self.subscription_cores.get(&gid) {
            return Some(subscription_core.announces_keys());
        }
        self.foreign_has_keys(gid)
    }

    pub(super) fn foreign_has_keys(&self, gid: Gid) -> Option<bool> {
        let vendor = self.foreign.vendor_id(self.endpoints.get(&gid)?.peer)?;
        (vendor != VendorId::ZENOH).then(|| Guid(gid.0).has_keys())
    }

    /// Why two ends do not meet of which one alone says that its type has keys.
    pub(super) fn key_mismatch(&self, publisher: Gid, subscription: Gid) -> Option<String> {
        let (offers, asks) = (self.has_keys(publisher)?, self.has_keys(subscription)?);
        let is_foreign =
            |gid| self.endpoints.get(gid).is_some_and(|it| self.foreign.is_foreign(it.peer));
        let (has, has_none) = match (offers, asks) {
            (true, false) => ("publisher", "subscription"),
            (false, true) => ("subscription", "publisher"),
            _ => return None,
        };
        let text =
            || format!("keys: the type of the {has} has keys, that of the {has_none} has none");
        (is_foreign(&publisher) || is_foreign(&subscription)).then(text)
    }
}

/// Of a topic whose export has a rate.
const BY_ENGINE_OUTSIDE_ALONE: &str =
    "what leaves of this topic has a rate, and no engine carries the rest";
