//! What each end of a flow counted, in the words that processes of the robot tell the operator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// Which end of a topic counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// The publisher's.
    Sent,
    /// The subscription's.
    Received,
}

/// Counts samples at one end. Counted only when all is done that a sample brings about, so that
/// what it made another node publish is never missing from a later count.
#[derive(Debug)]
pub(crate) struct Tally {
    topic: &'static str,
    node: &'static str,
    end: End,
    good: AtomicU64,
    wrong: AtomicU64,
    trouble: Mutex<Option<String>>,
}

/// A tally at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    /// The topic.
    pub(crate) topic: String,
    /// The node's full name.
    pub(crate) node: String,
    /// Whether it published them.
    pub(crate) is_sender: bool,
    /// How many there were, good or wrong.
    pub(crate) samples: u64,
    /// Those that were not what was expected, or could not be published.
    pub(crate) wrong: u64,
    /// What was wrong with the first of them.
    pub(crate) trouble: Option<String>,
}

impl Tally {
    pub(crate) fn new(topic: &'static str, node: &'static str, end: End) -> Arc<Self> {
        let (good, wrong, trouble) = Default::default();
        Arc::new(Self { topic, node, end, good, wrong, trouble })
    }

    pub(crate) fn add<E: ToString>(&self, outcome: Result<(), E>) {
        let Err(error) = outcome else {
            self.good.fetch_add(1, Ordering::Release);
            return;
        };
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert_with(|| error.to_string());
        self.wrong.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn count(&self) -> Count {
        let wrong = self.wrong.load(Ordering::Acquire);
        let is_sender = self.end == End::Sent;
        // What could not be published was not sent.
        let counted = if is_sender { 0 } else { wrong };
        Count {
            topic: self.topic.to_owned(),
            node: self.node.to_owned(),
            is_sender,
            samples: self.good.load(Ordering::Acquire) + counted,
            wrong,
            trouble: self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
