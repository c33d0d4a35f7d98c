//! The wires: joined on threads of their own, and anew where what they were joined by is no more what counts.

use std::sync::Arc;
use std::time::Duration;

use tsuji_security::Identity;
use tsuji_transport::Transport;
use tsuji_transport::deferred::told;

use super::Keeper;
use crate::graph_cache::GraphCache;
use crate::security::Security;
use crate::session::Session;

/// How soon what could not be joined is tried again.
const JOIN_FIRST: Duration = Duration::from_secs(1);
const JOIN_LAST: Duration = Duration::from_secs(60);

/// Why a wire is joined anew.
const RENEWED: &str = "the keystore was renewed";

/// Joins the wire of a transport, if it has one, on a thread of its own: the names of hosts may take
/// long to resolve. Answers whether that has begun.
pub(super) fn join(session: &Arc<Session>, transport: &Arc<dyn Transport>) -> bool {
    if transport.wire().is_none() {
        return false;
    }
    let (session, transport) = (Arc::clone(session), Arc::clone(transport));
    let is_second = session.is_second(&transport.id());
    let spawned = std::thread::Builder::new()
        .name("tsuji-join".to_owned())
        .stack_size(256 * 1024)
        .spawn(move || {
            let mut pause = JOIN_FIRST;
            while !session.is_stopping() {
                let Some(wire) = transport.wire() else { return };
                let changes = session.graph_cache().network_changes;
                let identity = identity_for(&session, &*transport);
                let joined = wire.join();
                let mut graph_cache = session.graph_cache();
                // Nobody else looks at a wire that is not joined yet, so what changed meanwhile is asked for here. One of
                // which only the topics could not be opened may be older than that.
                let may_be_old = graph_cache.network_changes != changes || JOIN_FIRST < pause;
                let is_renewed = || is_renewed(&session, &*transport, identity.as_ref());
                let why = if is_renewed() {
                    Some(RENEWED.to_owned())
                } else {
                    may_be_old.then(|| wire.moved()).flatten()
                };
                if let (Ok(_), Some(why)) = (&joined, why) {
                    told::info!(transport = %transport.id(), "the network is joined anew: {why}");
                    graph_cache.leave_wire(&session, &*transport);
                    drop(graph_cache);
                    session.tell();
                    pause = JOIN_FIRST;
                    continue;
                }
                let joined = joined.and_then(|name| graph_cache.joined(&session, &*transport, name));
                let before = match &joined {
                    Ok(()) => graph_cache.join_troubles.remove(&transport.id()),
                    Err(error) => graph_cache.join_troubles.insert(transport.id(), error.to_string()),
                };
                drop(graph_cache);
                match joined {
                    Ok(()) => return session.tell(),
                    Err(error) if is_second => {
                        if pause == JOIN_FIRST {
                            told::warn!(transport = %transport.id(), %error, "nodes on it are spoken to by the first engine alone");
                        }
                        session.graph_cache().second_failed(&session);
                        session.tell();
                    }
                    // Once for each reason: it is tried again without end.
                    Err(error) if before.as_deref() != Some(&error.to_string()) => {
                        told::warn!(transport = %transport.id(), %error, "foreign ROS 2 nodes are not met");
                    }
                    Err(_) => (),
                }
                // Ends with the participant, and when the network of this host or the keystore changes.
                let _ = session.wait_for(pause, |graph_cache| {
                    (graph_cache.network_changes != changes || is_renewed()).then_some(())
                });
                pause = JOIN_LAST.min(2 * pause);
            }
        });
    if let Err(error) = &spawned {
        told::warn!(%error, "foreign ROS 2 nodes are not met");
    }
    spawned.is_ok()
}

/// By whom this process would join, where the engine secures what it carries.
fn identity_for(session: &Session, transport: &dyn Transport) -> Option<Arc<Identity>> {
    session.security().filter(|_| transport.is_secured()).map(Security::identity)
}

/// Whether the keystore was renewed since this was who it would join by.
fn is_renewed(
    session: &Session,
    transport: &dyn Transport,
    before: Option<&Arc<Identity>>,
) -> bool {
    let now = identity_for(session, transport);
    now.as_ref().map(Arc::as_ptr) != before.map(Arc::as_ptr)
}

impl Keeper {
    /// Joins anew by the keys and the permissions that the keystore has now: an engine has them as it joins.
    pub(super) fn follow_keystore(&self, graph_cache: &mut GraphCache) {
        self.join_anew(graph_cache, |transport| transport.is_secured().then(|| RENEWED.to_owned()));
    }

    /// Joins anew where the addresses of this host are others than those that an engine uses.
    pub(super) fn follow_network(&mut self) {
        let session = Arc::clone(&self.session);
        let mut graph_cache = session.graph_cache();
        graph_cache.network_changes += 1;
        self.join_anew(&mut graph_cache, |transport| transport.wire()?.moved());
        drop(graph_cache);
        for at in 0..session.transports().len() {
            let transport = &*session.transports()[at];
            self.end_listening(at, |listening| {
                let why = || "the interfaces of this host have changed".to_owned();
                listening.has_moved(transport).then(why)
            });
        }
        // Whoever could not join tries again.
        session.tell();
    }

    /// Leaves the wires for which there is a reason, and joins them again.
    fn join_anew(
        &self,
        graph_cache: &mut GraphCache,
        reason: impl Fn(&dyn Transport) -> Option<String>,
    ) {
        let session = &self.session;
        for id in graph_cache.joined_wires() {
            let Some(transport) = session.transport(id.as_str()) else { continue };
            let Some(why) = reason(&**transport) else { continue };
            told::info!(transport = %id, "the network is joined anew: {why}");
            graph_cache.leave_wire(session, &**transport);
            join(session, transport);
        }
    }
}
