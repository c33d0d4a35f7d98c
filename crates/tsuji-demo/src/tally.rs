//! What each end of a flow counted, in the words that processes of the robot tell the operator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tsuji::MessageInfo;

use crate::lock::lock;

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
    samples: AtomicU64,
    wrong: AtomicU64,
    trouble: Mutex<Option<String>>,
    /// In microseconds, of those that came since they were asked for last. Of more than there is room
    /// for, the oldest counts.
    ages: Mutex<Vec<f64>>,
    /// In microseconds, from publish to take, of the first that came since they were asked for last; and the bytes of the last.
    latencies: Mutex<(Vec<f64>, usize)>,
}

/// All tallies of a process, which grow as nodes are loaded.
pub(crate) type Tallies = Arc<Mutex<Vec<Arc<Tally>>>>;

/// A tally at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// How old they were when they came, where that is known: those since the last count.
    pub(crate) ages: Option<Ages>,
    /// How long those took that came since the last count, where that is known.
    pub(crate) latencies: Option<Latencies>,
}

/// How long samples took from being published to being taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latencies {
    /// Of a typical one.
    pub(crate) median_us: f64,
    /// Of the last.
    pub(crate) bytes: usize,
}

/// How old samples were when they came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ages {
    /// Of a typical one.
    pub(crate) median_us: f64,
    /// Of the oldest.
    pub(crate) max_us: f64,
}

impl Tally {
    pub(crate) fn new(topic: &'static str, node: &'static str, end: End) -> Arc<Self> {
        let (samples, wrong, trouble, ages, latencies) = Default::default();
        Arc::new(Self { topic, node, end, samples, wrong, trouble, ages, latencies })
    }

    pub(crate) fn add<E: ToString>(&self, outcome: Result<(), E>) {
        let is_good = outcome.is_ok();
        if let Err(error) = outcome {
            self.note_trouble(error.to_string());
        }
        // What could not be published was not sent.
        if is_good || self.end == End::Received {
            self.samples.fetch_add(1, Ordering::Release);
        }
    }

    /// Something is wrong with a sample that is counted for itself.
    pub(crate) fn note_trouble(&self, trouble: String) {
        lock(&self.trouble).get_or_insert(trouble);
        self.wrong.fetch_add(1, Ordering::Release);
    }

    /// A sample of so many bytes came.
    pub(crate) fn note_latency(&self, info: &MessageInfo, bytes: usize) {
        let Some(latency) = info.latency() else { return };
        let mut latencies = lock(&self.latencies);
        if latencies.0.len() < AGES_MAX {
            latencies.0.push(latency.ns as f64 / 1000.0);
        }
        latencies.1 = bytes;
    }

    /// A sample that came was so old.
    pub(crate) fn note_age(&self, age: Duration) {
        let (mut ages, age_us) = (lock(&self.ages), age.as_secs_f64() * 1e6);
        let is_full = AGES_MAX <= ages.len();
        match ages.last_mut().filter(|_| is_full) {
            Some(last) => *last = last.max(age_us),
            None => ages.push(age_us),
        }
    }

    pub(crate) fn count(&self) -> Count {
        let wrong = self.wrong.load(Ordering::Acquire);
        let (latencies, bytes) = std::mem::take(&mut *lock(&self.latencies));
        let latencies = Ages::of(latencies).map(|it| Latencies { median_us: it.median_us, bytes });
        Count {
            topic: self.topic.to_owned(),
            node: self.node.to_owned(),
            is_sender: self.end == End::Sent,
            samples: self.samples.load(Ordering::Acquire),
            wrong,
            trouble: lock(&self.trouble).clone(),
            ages: Ages::of(std::mem::take(&mut lock(&self.ages))),
            latencies,
        }
    }
}

impl Ages {
    fn of(mut ages_us: Vec<f64>) -> Option<Self> {
        ages_us.sort_by(f64::total_cmp);
        let max_us = *ages_us.last()?;
        Some(Self { median_us: ages_us[ages_us.len() / 2], max_us })
    }
}

const AGES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_once() {
        let tally = Tally::new("/t", "/n", End::Received);
        assert_eq!(tally.count().ages, None);
        for millis in [3, 1, 9] {
            tally.note_age(Duration::from_millis(millis));
        }
        assert_eq!(tally.count().ages, Some(Ages { median_us: 3000.0, max_us: 9000.0 }));
        assert_eq!(tally.count().ages, None);
    }

    #[test]
    fn what_could_not_be_published_was_not_sent() {
        let check = |end, expect| {
            let tally = Tally::new("/t", "/n", end);
            tally.add(Ok::<_, String>(()));
            tally.add(Err("first"));
            tally.add(Err("second"));
            let count = tally.count();
            assert_eq!((count.samples, count.wrong), expect);
            assert_eq!(count.trouble.as_deref(), Some("first"));
        };
        check(End::Sent, (1, 2));
        check(End::Received, (3, 2));
        let tally = Tally::new("/t", "/n", End::Received);
        tally.add(Ok::<_, String>(()));
        tally.note_trouble("odd".to_owned());
        let count = tally.count();
        assert_eq!((count.samples, count.wrong, count.trouble.as_deref()), (1, 1, Some("odd")));
    }
}
