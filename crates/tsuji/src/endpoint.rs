//! What every endpoint has, be it of a publisher or of a subscription, of a topic or of a service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsuji_core::{Durability, History, Qos};
use tsuji_transport::deferred::told;
use tsuji_transport::{Announced, Endpoint, Gid};

use crate::announcement::Announcement;
use crate::dirty::DirtyFlag;
use crate::publisher_core::HISTORY_SAMPLES_MAX;
use crate::session::Session;
use crate::{Error, RawType, Result, Role};

/// Who is told of an endpoint and meets it, of those that may know its topic at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Audience {
    #[default]
    Everybody,
    Inside,
    Outside,
}

impl Audience {
    /// Whether somebody is meant, who is asked where it matters whether that is outside.
    pub(crate) fn has(self, is_outside: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Everybody => true,
            Self::Inside => !is_outside(),
            Self::Outside => is_outside(),
        }
    }
}

pub(crate) struct EndpointCore {
    pub(crate) gid: Gid,
    pub(crate) node: Gid,
    pub(crate) role: Role,
    /// The other half of a client or of a server; nobody's number for a topic.
    pub(crate) partner: Gid,
    /// The full topic name, or the service's.
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) type_hash: String,
    announces_keys: AtomicBool,
    pub(crate) qos: Qos,
    pub(crate) audience: Audience,
    pub(crate) session: Arc<Session>,
    is_closed: AtomicBool,
    dirty: DirtyFlag,
}

impl EndpointCore {
    pub(crate) fn new(
        session: &Arc<Session>,
        node: Gid,
        topic: String,
        of: RawType,
        qos: Qos,
    ) -> Self {
        Self {
            gid: session.new_gid(),
            node,
            role: Role::Topic,
            partner: Gid::default(),
            topic,
            type_name: of.name,
            type_hash: of.hash,
            announces_keys: AtomicBool::new(
                of.is_keyed
                    && session.distro().announces_keys()
                    && session.network().announces_keys(),
            ),
            qos,
            audience: Audience::Everybody,
            session: Arc::clone(session),
            is_closed: AtomicBool::new(false),
            dirty: DirtyFlag::default(),
        }
    }

    /// Another of the same topic, for those outside.
    pub(crate) fn for_outside(&self, qos: Qos) -> Self {
        Self {
            gid: self.session.new_gid(),
            node: self.node,
            role: self.role,
            partner: self.partner,
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
            type_hash: self.type_hash.clone(),
            announces_keys: AtomicBool::new(self.announces_keys()),
            qos,
            audience: Audience::Outside,
            session: Arc::clone(&self.session),
            is_closed: AtomicBool::new(false),
            dirty: DirtyFlag::default(),
        }
    }

    /// Whether foreign nodes are told that the type has keys.
    pub(crate) fn announces_keys(&self) -> bool {
        self.announces_keys.load(Ordering::Relaxed)
    }

    /// Has foreign nodes be told that the type has keys. It counts for what is announced after this.
    pub(crate) fn announce_keys(&self) {
        self.announces_keys.store(true, Ordering::Relaxed);
    }

    /// Makes the two halves of one client or of one server of these.
    pub(crate) fn pair(requests: &mut Self, replies: &mut Self) {
        (requests.role, requests.partner) = (Role::Request, replies.gid);
        (replies.role, replies.partner) = (Role::Reply, requests.gid);
    }

    /// Has the control thread check it. To be called with its lock held.
    pub(crate) fn mark_dirty(&self) {
        self.dirty.mark(self.gid, &self.session.dirty_endpoints);
    }

    /// Clears the mark, before the control thread checks it.
    pub(crate) fn clear_dirty(&self) {
        self.dirty.clear();
    }

    /// What is kept, whatever is announced: of requests and replies all, so that none is lost without
    /// a word.
    pub(crate) fn history(&self) -> History {
        if self.role == Role::Topic { self.qos.history } else { History::KeepAll }
    }

    /// Fails when the endpoint is closed, as well as when its participant is.
    pub(crate) fn open(&self, operation: &str) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed(format!("{operation} on {}: it was closed", self.topic)));
        }
        self.session.open(operation)
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Fails where the permissions of this process do not allow it.
    pub(crate) fn permit(&self, is_publisher: bool) -> Result<()> {
        let Some(security) = self.session.security() else { return Ok(()) };
        security.permit(self.role, is_publisher, &self.session.outward().topic(&self.topic))
    }

    /// What transports are told.
    pub(crate) fn for_transport(&self, is_publisher: bool) -> Endpoint {
        let topic = self.session.outward().topic(&self.topic);
        Endpoint {
            type_name: self.type_name.clone(),
            gid: self.gid,
            qos: Qos { history: self.history(), ..self.qos },
            keep_all_max: match self.qos.durability {
                // A publisher refuses what its history has no room for, and so does an engine's that has a copy.
                Durability::TransientLocal if is_publisher => HISTORY_SAMPLES_MAX as u32,
                _ => self.session.keep_all_max(),
            },
            announced: self.announced(is_publisher, &topic),
            topic: topic.into_owned(),
        }
    }

    /// What it is called where others than tsuji may be. Outside of the robot its topic is `topic`.
    fn announced(&self, is_publisher: bool, topic: &str) -> Option<Announced> {
        let announcement = Announcement {
            gid: self.gid,
            partner: self.partner,
            role: self.role,
            is_publisher,
            topic,
            type_name: &self.type_name,
            type_hash: &self.type_hash,
            is_keyed: self.announces_keys(),
            is_for_zenoh: self.session.network().speaks_to(tsuji_core::Interop::ZENOH),
        };
        if !self.session.speaks() {
            return announcement.for_tsuji();
        }
        if !self.session.outward().is_exported(&self.topic) {
            return Some(announcement.for_inside());
        }
        match announcement.for_ros(self.session.distro()) {
            Ok(announced) => Some(announced),
            Err(error) => {
                told::warn!(topic = %self.topic, error, "foreign ROS 2 nodes do not see this");
                announcement.for_tsuji()
            }
        }
    }
}
