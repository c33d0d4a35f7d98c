//! What endpoints tell of themselves, besides samples.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tsuji_transport::Gid;
use tsuji_transport::bell::Cell;

/// Something that a publisher should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublisherEvent {
    /// A subscription came or went.
    Matched {
        /// How many there are now.
        current: usize,
    },
    /// A subscription asks for more than this publisher offers.
    IncompatibleQos {
        /// The subscription.
        subscription: Gid,
        /// What does not fit, such as `reliability: offered best_effort, requested reliable`.
        mismatches: Vec<String>,
    },
    /// A subscription of this topic has another type.
    IncompatibleType {
        /// The subscription.
        subscription: Gid,
        /// Both types.
        mismatch: String,
    },
    /// No sample was published within the offered deadline.
    DeadlineMissed {
        /// How often so far.
        total: u64,
    },
    /// The publisher did not show in time that it is alive.
    LivelinessLost,
}

/// Something that a subscription should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// A publisher came or went.
    Matched {
        /// How many there are now.
        current: usize,
    },
    /// A publisher offers less than this subscription asks for.
    IncompatibleQos {
        /// The publisher.
        publisher: Gid,
        /// What does not fit, such as `reliability: offered best_effort, requested reliable`.
        mismatches: Vec<String>,
    },
    /// A publisher of this topic has another type.
    IncompatibleType {
        /// The publisher.
        publisher: Gid,
        /// Both types.
        mismatch: String,
    },
    /// No sample came within the requested deadline.
    DeadlineMissed {
        /// How often so far.
        total: u64,
    },
    /// A publisher became alive, or ceased to be.
    LivelinessChanged {
        /// Matched publishers that are alive.
        alive: usize,
        /// Matched publishers that are not.
        not_alive: usize,
    },
    /// Samples did not arrive.
    MessageLost {
        /// How many so far.
        total: u64,
    },
}

/// Something that a client should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// A server became ready, or left.
    Matched {
        /// How many are ready now.
        current: usize,
    },
    /// A server's QoS does not fit.
    IncompatibleQos {
        /// One half of the server.
        server: Gid,
        /// What does not fit, such as `reliability: offered best_effort, requested reliable`.
        mismatches: Vec<String>,
    },
    /// A server of this name has another type.
    IncompatibleType {
        /// One half of the server.
        server: Gid,
        /// Both types.
        mismatch: String,
    },
}

impl ClientEvent {
    /// What an event of its requests is to a client.
    pub(crate) fn of_requests(event: PublisherEvent) -> Option<Self> {
        match event {
            PublisherEvent::Matched { current } => Some(Self::Matched { current }),
            PublisherEvent::IncompatibleQos { subscription: server, mismatches } => {
                Some(Self::IncompatibleQos { server, mismatches })
            }
            PublisherEvent::IncompatibleType { subscription: server, mismatch } => {
                Some(Self::IncompatibleType { server, mismatch })
            }
            _ => None,
        }
    }

    /// What an event of the replies to it is to a client.
    pub(crate) fn of_replies(event: SubscriptionEvent) -> Option<Self> {
        match event {
            SubscriptionEvent::IncompatibleQos { publisher: server, mismatches } => {
                Some(Self::IncompatibleQos { server, mismatches })
            }
            _ => None,
        }
    }
}

/// Something that a server should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceEvent {
    /// A client came or went.
    Matched {
        /// How many there are now.
        current: usize,
    },
    /// A client's QoS does not fit.
    IncompatibleQos {
        /// One half of the client.
        client: Gid,
        /// What does not fit, such as `reliability: offered best_effort, requested reliable`.
        mismatches: Vec<String>,
    },
    /// A client of this name has another type.
    IncompatibleType {
        /// One half of the client.
        client: Gid,
        /// Both types.
        mismatch: String,
    },
}

impl ServiceEvent {
    /// What an event of the requests to it is to a server.
    pub(crate) fn of_requests(event: SubscriptionEvent) -> Option<Self> {
        match event {
            SubscriptionEvent::Matched { current } => Some(Self::Matched { current }),
            SubscriptionEvent::IncompatibleQos { publisher: client, mismatches } => {
                Some(Self::IncompatibleQos { client, mismatches })
            }
            SubscriptionEvent::IncompatibleType { publisher: client, mismatch } => {
                Some(Self::IncompatibleType { client, mismatch })
            }
            _ => None,
        }
    }

    /// What an event of its replies is to a server.
    pub(crate) fn of_replies(event: PublisherEvent) -> Option<Self> {
        match event {
            PublisherEvent::IncompatibleQos { subscription: client, mismatches } => {
                Some(Self::IncompatibleQos { client, mismatches })
            }
            _ => None,
        }
    }
}

/// Events that wait for their handler. At most [`EVENTS_MAX`]: the oldest is dropped first, and
/// since each carries totals nothing is lost but a step.
pub(crate) struct Events<E> {
    waiting: Mutex<VecDeque<E>>,
    cell: OnceLock<Arc<Cell>>,
    note: OnceLock<Note<E>>,
}

/// Is told of an event by the thread that comes upon it.
pub(crate) type Note<E> = Box<dyn Fn(&E) + Send + Sync>;

pub(crate) const EVENTS_MAX: usize = 256;

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), cell: OnceLock::new(), note: OnceLock::new() }
    }

    /// From now on events are kept, and `cell` is rung for each.
    pub(crate) fn listen(&self, cell: Arc<Cell>) {
        // A second listener would take the first one's events; there is only ever one.
        let _ = self.cell.set(cell);
    }

    /// From now on `note` is told of each event at once.
    pub(crate) fn note(&self, note: Note<E>) {
        // As above.
        let _ = self.note.set(note);
    }

    /// Whether somebody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.cell.get().is_some()
    }

    pub(crate) fn push(&self, event: E) {
        if let Some(note) = self.note.get() {
            note(&event);
        }
        let Some(cell) = self.cell.get() else { return };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if EVENTS_MAX <= waiting.len() {
            waiting.pop_front();
        }
        waiting.push_back(event);
        drop(waiting);
        cell.ring();
    }

    /// The oldest event that means something, those before it forgotten.
    pub(crate) fn find_pop<T>(&self, meaning: impl Fn(E) -> Option<T>) -> Option<T> {
        loop {
            if let Some(found) = meaning(self.pop()?) {
                return Some(found);
            }
        }
    }

    pub(crate) fn pop(&self) -> Option<E> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl<E> std::fmt::Debug for Events<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
