//! What the server remembers of one client. Time is an argument: how long ago any fixed instant was, by a clock that only goes on.

use std::time::Duration;

use crate::fragments::{Assembly, FragmentLimits};
use crate::operation::Level;

mod advertisements;
pub use advertisements::{Advertised, Advertisement, Advertisements, Unadvertised};

mod pending;
pub use pending::{Ended, Pending};

mod served;
pub use served::{Kind, Served, ServedName};

mod subscriptions;
pub use subscriptions::{
    QueueLimits, StreamKey, StreamSettings, StreamStatus, Subscribed, Subscriptions, Unsubscribed,
};

/// How much one client may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Topics advertised, topics subscribed to, services and actions served: of each so many. One more is refused.
    pub names_max: usize,
    /// Advertisements, and subscriptions, by their ids, of all topics. One more is refused.
    pub ids_max: usize,
    /// Calls, and goals, under way at a time, each way. One more is refused.
    pub pending_max: usize,
    /// What waits to be sent.
    pub queue: QueueLimits,
    /// What comes in pieces.
    pub fragments: FragmentLimits,
    /// How long a topic stays advertised that no advertisement is left of.
    pub unregister_timeout: Duration,
}

impl Default for ClientLimits {
    /// 1,000 names of each kind, 2,000 ids, 1,000 calls under way, 10 s, and the defaults of queues and fragments.
    fn default() -> Self {
        Self {
            names_max: 1000,
            ids_max: 2000,
            pending_max: 1000,
            queue: QueueLimits::default(),
            fragments: FragmentLimits::default(),
            unregister_timeout: Duration::from_secs(10),
        }
    }
}

/// The state of one client. `T` is a sample that waits to be sent, an `Arc` of what all clients get; `C` is what the server
/// needs to go on with a call or a goal when it has ended.
#[derive(Debug)]
pub struct Client<T, C> {
    /// What it publishes.
    pub advertisements: Advertisements,
    /// What it gets.
    pub subscriptions: Subscriptions<T>,
    /// The services and actions that it serves.
    pub served: Served,
    /// Requests and goals of others, which it is to answer.
    pub asked: Pending<C>,
    /// Its own calls and goals.
    pub asking: Pending<C>,
    /// What has come of its messages in pieces.
    pub fragments: Assembly,
    /// What it is told.
    pub level: Level,
}

impl<T, C> Client<T, C> {
    /// One that has just connected.
    pub fn new(limits: ClientLimits) -> Self {
        let ClientLimits { names_max, ids_max, pending_max, unregister_timeout, .. } = limits;
        Self {
            advertisements: Advertisements::new(names_max, ids_max, unregister_timeout),
            subscriptions: Subscriptions::new(names_max, ids_max, limits.queue),
            served: Served::new(names_max),
            asked: Pending::new(pending_max),
            asking: Pending::new(pending_max),
            fragments: Assembly::new(limits.fragments),
            level: Level::default(),
        }
    }

    /// When the next thing is due of [`Advertisements::expire`], [`Pending::expire`], [`Assembly::expire`] or
    /// [`Subscriptions::take`] of a sample that waits for its throttle rate.
    pub fn timeout(&self) -> Option<Duration> {
        self.expiry().into_iter().chain(self.subscriptions.timeout()).min()
    }

    /// The same without the samples, for when none can be sent.
    pub fn expiry(&self) -> Option<Duration> {
        [
            self.advertisements.timeout(),
            self.asked.timeout(),
            self.asking.timeout(),
            self.fragments.timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Bounds what waits to be sent, and what has come in pieces, from now on. What is there stays.
    pub fn limit_bytes(&mut self, waiting_max: usize, fragments_max: usize) {
        self.subscriptions.limit_bytes(waiting_max);
        self.fragments.limit_bytes(fragments_max);
    }

    /// What waits to be sent and what has come in pieces, in bytes. It is bounded by the limits of both.
    pub fn held_bytes(&self) -> usize {
        self.subscriptions.held_bytes() + self.fragments.held_bytes()
    }
}
