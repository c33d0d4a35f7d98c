//! What endpoints tell of themselves, besides samples.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, OnceLock, PoisonError};

use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_transport::bell::Cell;
use tsuji_transport::{Gid, deferred};

/// An event of a publisher, as [`PublisherOptions::on_event`](crate::PublisherOptions::on_event) gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublisherEvent {
    /// A subscription came or went.
    Matched {
        /// Subscriptions that are connected now.
        current: usize,
    },
    /// A subscription asks for more than this publisher offers.
    IncompatibleQos {
        /// Global identifier of the subscription.
        subscription: Gid,
        /// Policies that do not fit, such as `reliability: offered best_effort, requested reliable`.
        mismatches: Vec<String>,
    },
    /// A subscription of this topic has another type.
    IncompatibleType {
        /// Global identifier of the subscription.
        subscription: Gid,
        /// Both types, as a text.
        mismatch: String,
    },
    /// No sample was published within the offered deadline.
    DeadlineMissed {
        /// Deadlines missed so far.
        total: u64,
    },
    /// The publisher did not show in time that it is alive.
    LivelinessLost,
}

/// An event of a subscription, as [`SubscriptionOptions::on_event`](crate::SubscriptionOptions::on_event) gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// A publisher came or went.
    Matched {
        /// Publishers that are connected now.
        current: usize,
    },
    /// A publisher offers less than this subscription asks for.
    IncompatibleQos {
        /// Global identifier of the publisher.
        publisher: Gid,
        /// Policies that do not fit, such as `reliability: offered best_effort, requested reliable`.
        mismatches: Vec<String>,
    },
    /// A publisher of this topic has another type.
    IncompatibleType {
        /// Global identifier of the publisher.
        publisher: Gid,
        /// Both types, as a text.
        mismatch: String,
    },
    /// No sample came within the requested deadline.
    DeadlineMissed {
        /// Deadlines missed so far.
        total: u64,
    },
    /// A publisher became alive, or ceased to be.
    LivelinessChanged {
        /// Matched publishers that are alive.
        alive: usize,
        /// Matched publishers that are not alive.
        not_alive: usize,
    },
    /// Samples did not arrive.
    MessageLost {
        /// Samples lost so far.
        total: u64,
    },
    /// A sample was dropped because it is no valid message of the type.
    InvalidMessage {
        /// Global identifier of the sample's publisher, where that is known.
        publisher: Option<Gid>,
        /// Reason, such as `data: byte 9: a string is not UTF-8`.
        why: String,
        /// Invalid samples so far.
        total: u64,
    },
}

/// An event of a client, as [`ClientOptions::on_event`](crate::ClientOptions::on_event) gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// A server became ready, or left.
    Matched {
        /// Servers that are ready now.
        current: usize,
    },
    /// A server's QoS does not fit.
    IncompatibleQos {
        /// Global identifier of one half of the server.
        server: Gid,
        /// Policies that do not fit, such as `reliability: offered best_effort, requested reliable`.
        mismatches: Vec<String>,
    },
    /// A server of this name has another type.
    IncompatibleType {
        /// Global identifier of one half of the server.
        server: Gid,
        /// Both types, as a text.
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

/// An event of a server, as [`ServiceOptions::on_event`](crate::ServiceOptions::on_event) gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceEvent {
    /// A client came or went.
    Matched {
        /// Clients that are connected now.
        current: usize,
    },
    /// A client's QoS does not fit.
    IncompatibleQos {
        /// Global identifier of one half of the client.
        client: Gid,
        /// Policies that do not fit, such as `reliability: offered best_effort, requested reliable`.
        mismatches: Vec<String>,
    },
    /// A client of this name has another type.
    IncompatibleType {
        /// Global identifier of one half of the client.
        client: Gid,
        /// Both types, as a text.
        mismatch: String,
    },
    /// A request was dropped because it is none of the type. Its client waits in vain.
    InvalidRequest {
        /// Global identifier of one half of the client, where that is known.
        client: Option<Gid>,
        /// Reason, such as `name: byte 9: a string is not UTF-8`.
        why: String,
        /// Invalid requests so far.
        total: u64,
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
            SubscriptionEvent::InvalidMessage { publisher: client, why, total } => {
                Some(Self::InvalidRequest { client, why, total })
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
    notes: OnceLock<Arc<Notes<E>>>,
}

/// Is told of an event when the thread that came upon it holds no lock any more.
pub(crate) type Note<E> = Arc<dyn Fn(&E) + Send + Sync>;

/// Events that [`Note`] is still to be told of, in the order in which they came, by one thread at a time.
struct Notes<E> {
    note: Note<E>,
    untold: Mutex<(VecDeque<E>, bool)>,
}

impl<E> Notes<E> {
    /// Tells what is untold, unless another thread, or this one further out, is at it: that one goes on with it.
    fn tell(&self) {
        let mut untold = self.lock();
        if std::mem::replace(&mut untold.1, true) {
            return;
        }
        while let Some(event) = untold.0.pop_front() {
            drop(untold);
            // A panic was reported when it happened; later events are told all the same.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| (self.note)(&event)));
            untold = self.lock();
        }
        untold.1 = false;
    }

    fn lock(&self) -> MutexGuard<'_, (VecDeque<E>, bool)> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) const EVENTS_MAX: usize = 256;

impl<E: Clone + 'static> Events<E> {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), cell: OnceLock::new(), notes: OnceLock::new() }
    }

    /// From now on events are kept, and `cell` is rung for each.
    pub(crate) fn listen(&self, cell: Arc<Cell>) {
        // A second listener would take the first one's events; there is only ever one.
        let _ = self.cell.set(cell);
    }

    /// From now on `note` is told of each event at once and in their order, by a thread that comes upon one, when that
    /// holds no lock.
    pub(crate) fn note(&self, note: Note<E>) {
        // As above.
        let _ = self.notes.set(Arc::new(Notes { note, untold: Mutex::default() }));
    }

    /// Whether somebody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.cell.get().is_some()
    }

    pub(crate) fn push(&self, event: E) {
        if let Some(notes) = self.notes.get() {
            notes.lock().0.push_back(event.clone());
            let notes = Arc::clone(notes);
            deferred::later(move || notes.tell());
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
