//! Samples that were not taken yet, oldest first.

use std::collections::VecDeque;

use tsuji_core::{History, Reliability};
use tsuji_transport::{Endpoint, Gid, Sample};

/// How many samples a reader keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) samples: usize,
    /// The writers wait for room, those of tsuji.
    pub(super) keeps_all: bool,
}

impl Limit {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        match endpoint.qos.history {
            History::KeepLast(depth) => Self { samples: depth.max(1) as usize, keeps_all: false },
            History::KeepAll => Self {
                samples: endpoint.keep_all_max.max(1) as usize,
                keeps_all: endpoint.qos.reliability == Reliability::Reliable,
            },
        }
    }
}

/// Who sent a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A writer of tsuji. One that must not lose samples waits for credit.
    Tsuji,
    /// Another, which knows of no credit.
    Plain,
}

/// Where the last are kept, the oldest of all are displaced. Where all are kept, the oldest of plain
/// writers are, when so many of these alone wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<(Sample, From)>,
    plain: usize,
}

impl Queue {
    /// Adds one, and answers how many it displaced.
    pub(super) fn push(&mut self, sample: Sample, from: From, limit: Limit) -> u64 {
        let is_full = match (limit.keeps_all, from) {
            (false, _) => limit.samples <= self.waiting.len(),
            (true, From::Tsuji) => false,
            (true, From::Plain) => limit.samples <= self.plain,
        };
        if is_full {
            self.displace(limit);
        }
        self.plain += usize::from(from == From::Plain);
        self.waiting.push_back((sample, from));
        u64::from(is_full)
    }

    pub(super) fn pop(&mut self) -> Option<Sample> {
        let (sample, from) = self.waiting.pop_front()?;
        self.plain -= usize::from(from == From::Plain);
        Some(sample)
    }

    /// Drops what a writer of tsuji sent behind its end.
    pub(super) fn drop_beyond(&mut self, writer: Gid, last: u64) {
        self.waiting.retain(|(it, from)| {
            let is_of = *from == From::Tsuji && it.envelope.gid == writer;
            !is_of || it.envelope.sequence <= last
        });
    }

    fn displace(&mut self, limit: Limit) {
        if !limit.keeps_all {
            self.pop();
        } else if let Some(at) = self.waiting.iter().position(|(_, from)| *from == From::Plain) {
            self.waiting.remove(at);
            self.plain -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use tsuji_transport::{Bytes, Envelope, Payload};

    use super::From::{Plain, Tsuji};
    use super::*;

    fn push(queue: &mut Queue, limit: Limit, samples: &[(u64, From)]) -> u64 {
        let push = |(sequence, from): &(u64, From)| {
            let gid = Gid([u8::from(*from == Plain); 16]);
            let envelope = Envelope { gid, sequence: *sequence, ..Envelope::default() };
            let payload = Payload::Bytes(Bytes::copy_from(&[0; 4]));
            queue.push(Sample { envelope, payload }, *from, limit)
        };
        samples.iter().map(push).sum()
    }

    fn check(keeps_all: bool, samples: &[(u64, From)], kept: &[u64], displaced: u64) {
        let mut queue = Queue::default();
        let limit = Limit { samples: 2, keeps_all };
        assert_eq!(push(&mut queue, limit, samples), displaced, "{samples:?}");
        let left: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let left: Vec<_> = left.iter().map(|it| it.envelope.sequence).collect();
        assert_eq!((left.as_slice(), queue.plain), (kept, 0), "{samples:?}");
    }

    #[test]
    fn the_last_are_kept_whoever_sent_them() {
        check(false, &[(1, Tsuji), (2, Plain)], &[1, 2], 0);
        check(false, &[(1, Tsuji), (2, Plain), (3, Tsuji), (4, Plain)], &[3, 4], 2);
    }

    #[test]
    fn where_all_are_kept_only_plain_writers_displace_and_only_their_own() {
        check(true, &[(1, Tsuji), (2, Tsuji), (3, Tsuji)], &[1, 2, 3], 0);
        let mixed = [(1, Tsuji), (2, Plain), (3, Tsuji), (4, Plain), (5, Plain), (6, Tsuji)];
        check(true, &mixed, &[1, 3, 4, 5, 6], 1);
    }

    #[test]
    fn beyond_its_end_a_writer_has_nothing() {
        let mut queue = Queue::default();
        let limit = Limit { samples: 9, keeps_all: false };
        push(&mut queue, limit, &[(1, Tsuji), (1, Plain), (2, Tsuji), (2, Plain), (3, Tsuji)]);
        queue.drop_beyond(Gid([0; 16]), 1);
        let left: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(left.len(), 3);
    }
}
