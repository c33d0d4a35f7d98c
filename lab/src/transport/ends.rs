//! The two ends of a flow of messages that are numbered, by tsuji or by a peer without: who sends waits for who listens, and who
//! listens notes when each came.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tsuji::{Message, Node, Publisher, Qos, Received, Subscription};
use tsuji_platform::clock::monotonic_ns;

use super::peer::{self, Failure, Line, Peer, Talker};
use crate::child::said;
use crate::pace::until_last;

/// How long a publisher waits for room, and both ends for each other.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The end that sends.
pub(crate) enum Sends<M: Message> {
    Tsuji(Publisher<M>),
    Alone(Box<dyn Talker>),
}

impl<M: Message> Sends<M> {
    /// Waits until somebody listens.
    pub(crate) fn meet(&mut self) -> Result<(), String> {
        match self {
            Self::Tsuji(it) => it.wait_for_subscriptions(1, PATIENCE).map_err(said),
            Self::Alone(it) => peer::meet(&mut **it),
        }
    }
}

/// What the end that listens has noted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Came {
    /// The number of each that came, from 0, and when.
    pub(crate) received: Vec<(u64, u64)>,
    /// Those that are not as they were sent.
    pub(crate) damaged: u64,
    /// Those that newer ones pushed out of the queue, where that is known.
    pub(crate) displaced: Option<u64>,
    /// What carried, as far as that is known.
    pub(crate) transport: Option<String>,
}

/// The end that listens.
pub(crate) struct Hears<M: Message> {
    by: By<M>,
    came: Arc<Mutex<Came>>,
}

enum By<M: Message> {
    Tsuji(Node, Subscription<M>),
    Alone(Failure),
}

impl<M: Message> Hears<M> {
    /// By tsuji. `number` tells the number of a message that is as it was sent, and `then` is called when that has been noted.
    pub(crate) fn by_tsuji(
        node: &Node,
        topic: &str,
        qos: Qos,
        number: impl Fn(&Received<M>) -> Option<u64> + Send + 'static,
        then: impl Fn(u64) + Send + 'static,
    ) -> Result<Self, String> {
        let came = Arc::<Mutex<Came>>::default();
        let noting = Arc::clone(&came);
        let subscription = node.create_subscription::<M>(topic, qos, move |received| {
            let at_ns = monotonic_ns();
            let number = number(&received);
            note(&noting, number, at_ns);
            number.into_iter().for_each(&then);
        });
        Ok(Self { by: By::Tsuji(node.clone(), subscription.map_err(said)?), came })
    }

    /// Without tsuji, in a thread that ends with the process. `number` tells the number of a sample that is as it was sent.
    pub(crate) fn alone(
        peer: Peer,
        line: Line,
        number: impl Fn(&[u8]) -> Option<u64> + Send + 'static,
    ) -> Result<Self, String> {
        let came = Arc::<Mutex<Came>>::default();
        let noting = Arc::clone(&came);
        let failure = peer::listen(peer, line, move |sample| {
            let at_ns = monotonic_ns();
            note(&noting, number(sample), at_ns);
        });
        Ok(Self { by: By::Alone(failure?), came })
    }

    /// Waits until somebody sends, where that can be known.
    pub(crate) fn meet(&self) -> Result<(), String> {
        match &self.by {
            By::Tsuji(_, it) => it.wait_for_publishers(1, PATIENCE).map_err(said),
            By::Alone(_) => Ok(()),
        }
    }

    /// The topic, as tsuji names it.
    pub(crate) fn topic(&self) -> Option<&str> {
        match &self.by {
            By::Tsuji(_, it) => Some(it.topic()),
            By::Alone(_) => None,
        }
    }

    /// Waits until the last before the number `end` has come, or nothing does any more, and tells what came.
    pub(crate) fn heard(&self, end: u64) -> Result<Came, String> {
        until_last(|| {
            let received = &lock(&self.came).received;
            (received.len(), received.iter().any(|it| it.0 + 1 == end))
        });
        let mut came = lock(&self.came).clone();
        match &self.by {
            By::Tsuji(node, subscription) => {
                came.displaced = Some(subscription.counters().displaced);
                let routes = node.context().routes(PATIENCE).unwrap_or_default();
                let own = routes.into_iter().find(|it| it.topic == subscription.topic());
                came.transport = own.and_then(|it| it.transport);
            }
            By::Alone(failure) => failure.get().map_or(Ok(()), |it| Err(it.clone()))?,
        }
        Ok(came)
    }
}

fn lock(came: &Mutex<Came>) -> MutexGuard<'_, Came> {
    came.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(came: &Mutex<Came>, number: Option<u64>, at_ns: u64) {
    let mut came = lock(came);
    match number {
        Some(number) => came.received.push((number, at_ns)),
        None => came.damaged += 1,
    }
}
