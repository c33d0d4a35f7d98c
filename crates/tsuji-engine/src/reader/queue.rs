//! Samples that were not taken yet, oldest first.

use std::collections::VecDeque;

use tsuji_core::{Durability, History, Reliability};
use tsuji_transport::{Endpoint, Gid, Sample};

/// How many samples a reader keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) samples: usize,
    /// The writers wait for room, those of tsuji.
    pub(super) keeps_all: bool,
    /// Samples of foreign writers, which do not wait, that are kept where all are.
    pub(super) foreign_samples: usize,
    /// Bytes of these samples. One alone is kept however large it is.
    pub(super) foreign_bytes: usize,
}

impl Limit {
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        match endpoint.qos.history {
            History::KeepLast(depth) => {
                let samples = depth.max(1) as usize;
                Self {
                    samples,
                    keeps_all: false,
                    foreign_samples: samples,
                    foreign_bytes: usize::MAX,
                }
            }
            History::KeepAll => {
                let samples = endpoint.keep_all_max.max(1) as usize;
                let is_owed = endpoint.qos.durability == Durability::TransientLocal;
                Self {
                    samples,
                    keeps_all: endpoint.qos.reliability == Reliability::Reliable,
                    // What a late joiner is owed comes at once, and nobody sends it again.
                    foreign_samples: if is_owed { samples.max(OWED_SAMPLES_MAX) } else { samples },
                    foreign_bytes: if is_owed { OWED_BYTES_MAX } else { usize::MAX },
                }
            }
        }
    }
}

/// Samples that a late joiner which keeps all may be owed.
pub(super) const OWED_SAMPLES_MAX: usize = 100_000;

/// Bytes of these samples.
pub(super) const OWED_BYTES_MAX: usize = 256 << 20;

/// Who sent a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A writer of tsuji. One that must not lose samples waits for credit.
    Tsuji,
    /// Another, which knows of no credit.
    Foreign,
}

/// Where the last are kept, the oldest of all are displaced. Where all are kept, the oldest of foreign
/// writers are, when so many of these alone wait, or so many bytes of them.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<(Sample, From)>,
    plain: usize,
    foreign_bytes: usize,
}

impl Queue {
    /// Displaces one where there is no room for this one, and answers whose it was. To be asked until it answers that
    /// there is room.
    pub(super) fn displace_for(
        &mut self,
        sample: &Sample,
        from: From,
        limit: Limit,
    ) -> Option<Gid> {
        let is_full = match (limit.keeps_all, from) {
            (false, _) => limit.samples <= self.waiting.len(),
            (true, From::Tsuji) => false,
            (true, From::Foreign) => {
                limit.foreign_samples <= self.plain
                    || limit.foreign_bytes < self.foreign_bytes.saturating_add(bytes(sample))
            }
        };
        let displaced = if is_full { self.displace(limit) } else { None };
        displaced.map(|it| it.envelope.gid)
    }

    /// Adds one for which there is room.
    pub(super) fn push(&mut self, sample: Sample, from: From) {
        if from == From::Foreign {
            self.plain += 1;
            self.foreign_bytes += bytes(&sample);
        }
        self.waiting.push_back((sample, from));
    }

    pub(super) fn pop(&mut self) -> Option<Sample> {
        self.remove(0)
    }

    /// Drops what a writer of tsuji sent behind its end.
    pub(super) fn drop_beyond(&mut self, writer: Gid, last: u64) {
        self.waiting.retain(|(it, from)| {
            let is_of = *from == From::Tsuji && it.envelope.gid == writer;
            !is_of || it.envelope.sequence <= last
        });
    }

    fn displace(&mut self, limit: Limit) -> Option<Sample> {
        if !limit.keeps_all {
            return self.pop();
        }
        let at = self.waiting.iter().position(|(_, from)| *from == From::Foreign)?;
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Option<Sample> {
        let (sample, from) = self.waiting.remove(at)?;
        if from == From::Foreign {
            self.plain -= 1;
            self.foreign_bytes -= bytes(&sample);
        }
        Some(sample)
    }
}

fn bytes(sample: &Sample) -> usize {
    sample.payload.byte_len().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tsuji_core::Qos;
    use tsuji_transport::{Bytes, Envelope, Payload};

    use super::From::{Foreign, Tsuji};
    use super::*;

    /// Pushes samples of so many bytes as each has in third place, and answers how many were displaced.
    fn push_sized(queue: &mut Queue, limit: Limit, samples: &[(u64, From, usize)]) -> usize {
        let push = |(sequence, from, len): &(u64, From, usize)| {
            let gid = Gid([u8::from(*from == Foreign); 16]);
            let envelope = Envelope { gid, sequence: *sequence, ..Envelope::default() };
            let payload = Payload::Bytes(Bytes::copy_from(&vec![0; *len]));
            let sample = Sample { envelope, payload };
            let displaced = std::iter::from_fn(|| queue.displace_for(&sample, *from, limit));
            let displaced = displaced.count();
            queue.push(sample, *from);
            displaced
        };
        samples.iter().map(push).sum()
    }

    fn push(queue: &mut Queue, limit: Limit, samples: &[(u64, From)]) -> usize {
        let samples: Vec<_> =
            samples.iter().map(|(sequence, from)| (*sequence, *from, 4)).collect();
        push_sized(queue, limit, &samples)
    }

    fn left(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|it| it.envelope.sequence).collect()
    }

    fn check(keeps_all: bool, samples: &[(u64, From)], kept: &[u64], displaced: usize) {
        let mut queue = Queue::default();
        let limit = Limit { samples: 2, keeps_all, foreign_samples: 2, foreign_bytes: usize::MAX };
        assert_eq!(push(&mut queue, limit, samples), displaced, "{samples:?}");
        assert_eq!(left(&mut queue), kept, "{samples:?}");
        assert_eq!((queue.plain, queue.foreign_bytes), (0, 0), "{samples:?}");
    }

    #[test]
    fn the_last_are_kept_whoever_sent_them() {
        check(false, &[(1, Tsuji), (2, Foreign)], &[1, 2], 0);
        check(false, &[(1, Tsuji), (2, Foreign), (3, Tsuji), (4, Foreign)], &[3, 4], 2);
    }

    #[test]
    fn where_all_are_kept_only_foreign_writers_displace_and_only_their_own() {
        check(true, &[(1, Tsuji), (2, Tsuji), (3, Tsuji)], &[1, 2, 3], 0);
        let mixed = [(1, Tsuji), (2, Foreign), (3, Tsuji), (4, Foreign), (5, Foreign), (6, Tsuji)];
        check(true, &mixed, &[1, 3, 4, 5, 6], 1);
    }

    #[test]
    fn where_all_are_kept_foreign_writers_have_so_many_bytes() {
        let check = |samples: &[(u64, From, usize)], kept: &[u64], displaced| {
            let mut queue = Queue::default();
            let limit =
                Limit { samples: 9, keeps_all: true, foreign_samples: 9, foreign_bytes: 10 };
            assert_eq!(push_sized(&mut queue, limit, samples), displaced, "{samples:?}");
            assert_eq!(left(&mut queue), kept, "{samples:?}");
            assert_eq!((queue.plain, queue.foreign_bytes), (0, 0), "{samples:?}");
        };
        check(&[(1, Foreign, 5), (2, Foreign, 5)], &[1, 2], 0);
        check(&[(1, Foreign, 5), (2, Foreign, 6)], &[2], 1);
        // A large one displaces several, and no sample of a writer of tsuji, whose bytes do not count.
        let mixed =
            [(1, Foreign, 3), (2, Tsuji, 20), (3, Foreign, 3), (4, Foreign, 3), (5, Foreign, 7)];
        check(&mixed, &[2, 4, 5], 2);
        check(&[(1, Foreign, 3), (2, Foreign, 11), (3, Tsuji, 1)], &[2, 3], 1);
        check(&[(1, Foreign, 11), (2, Foreign, 1)], &[2], 1);
    }

    #[test]
    fn only_whoever_is_owed_a_history_has_so_many_samples_and_a_limit_in_bytes() {
        let limit = |durability, history| {
            let qos = Qos { durability, history, ..Qos::DEFAULT };
            let it = Limit::of(&Endpoint {
                topic: "/map".to_owned(),
                type_name: String::new(),
                gid: Gid::default(),
                qos,
                keep_all_max: 7,
                announced: None,
            });
            (it.foreign_samples, it.foreign_bytes)
        };
        use Durability::{TransientLocal, Volatile};
        assert_eq!(limit(TransientLocal, History::KeepAll), (OWED_SAMPLES_MAX, OWED_BYTES_MAX));
        assert_eq!(limit(Volatile, History::KeepAll), (7, usize::MAX));
        assert_eq!(limit(TransientLocal, History::KeepLast(3)), (3, usize::MAX));
    }

    #[test]
    fn beyond_its_end_a_writer_has_nothing() {
        let mut queue = Queue::default();
        let limit =
            Limit { samples: 9, keeps_all: false, foreign_samples: 9, foreign_bytes: usize::MAX };
        push(&mut queue, limit, &[(1, Tsuji), (1, Foreign), (2, Tsuji), (2, Foreign), (3, Tsuji)]);
        queue.drop_beyond(Gid([0; 16]), 1);
        assert_eq!(left(&mut queue).len(), 3);
    }
}
