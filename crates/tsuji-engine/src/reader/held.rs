//! Samples that wait until it is said what they are.

use std::collections::VecDeque;

use super::queue::{OWED_BYTES_MAX, OWED_SAMPLES_MAX};
use crate::engine::{Arrived, Guid};

/// They wait for a message, or for the reader being told of their writer. Beyond its limit the oldest
/// are dropped.
#[derive(Debug, Default)]
pub(super) struct Held {
    samples: VecDeque<Arrived>,
    bytes: usize,
}

/// How much is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldLimit {
    samples: usize,
    /// One sample more fits always.
    bytes: usize,
    /// Larger ones are not held.
    sample_bytes: usize,
}

impl HeldLimit {
    /// What a late joiner is owed, which comes all at once; and what waits for its number.
    pub(super) const OWED: Self = Self { samples: 1024, bytes: 16 << 20, sample_bytes: usize::MAX };

    /// The same of one that keeps all: whatever a history has that keeps all.
    pub(super) const OWED_ALL: Self =
        Self { samples: OWED_SAMPLES_MAX, bytes: OWED_BYTES_MAX, sample_bytes: usize::MAX };

    /// The first samples of a writer that the reader will be told of. Most often it never is: they
    /// have come another way too.
    pub(super) const FIRST: Self = Self { samples: 64, bytes: usize::MAX, sample_bytes: 64 << 10 };
}

/// Samples that nobody will take, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) samples: u64,
    pub(crate) bytes: u64,
}

impl Dropped {
    pub(super) fn add(&mut self, bytes: usize) {
        self.samples += 1;
        self.bytes += bytes as u64;
    }
}

impl Held {
    /// Keeps one more, and answers what it dropped for that.
    pub(super) fn push(&mut self, arrived: Arrived, limit: HeldLimit) -> Dropped {
        let mut dropped = Dropped::default();
        if limit.sample_bytes < arrived.bytes.len() {
            dropped.add(arrived.bytes.len());
            return dropped;
        }
        self.keep(arrived);
        while limit.samples < self.samples.len()
            || (limit.bytes < self.bytes && 1 < self.samples.len())
        {
            let Some(oldest) = self.samples.pop_front() else { break };
            self.bytes -= oldest.bytes.len();
            dropped.add(oldest.bytes.len());
        }
        dropped
    }

    /// What a writer sent; the others' stays.
    pub(super) fn take_of(&mut self, writer: Guid) -> Self {
        let all = std::mem::take(self);
        let mut taken = Self::default();
        for arrived in all.samples {
            if arrived.writer == writer { taken.keep(arrived) } else { self.keep(arrived) }
        }
        taken
    }

    /// In the order in which they came.
    pub(super) fn into_samples(self) -> impl Iterator<Item = Arrived> {
        self.samples.into_iter()
    }

    /// All of it is dropped.
    pub(super) fn drop_all(self) -> Dropped {
        Dropped { samples: self.samples.len() as u64, bytes: self.bytes as u64 }
    }

    fn keep(&mut self, arrived: Arrived) {
        self.bytes += arrived.bytes.len();
        self.samples.push_back(arrived);
    }
}

#[cfg(test)]
mod tests {
    use tsuji_transport::Bytes;

    use super::*;

    fn arrived(writer: u8, number: i64, len: usize) -> Arrived {
        let bytes = Bytes::copy_from(&vec![0; len]);
        let writer = [writer; 16];
        Arrived { writer, number, source_ns: 0, is_headed: false, related: None, bytes }
    }

    fn numbers(held: Held) -> Vec<i64> {
        held.into_samples().map(|it| it.number).collect()
    }

    #[test]
    fn of_first_samples_the_last_small_ones_are_held() {
        let mut held = Held::default();
        let mut push = |number, len| held.push(arrived(1, number, len), HeldLimit::FIRST);
        for number in 1..=64 {
            assert_eq!(push(number, 64 << 10), Dropped::default());
        }
        assert_eq!(push(65, (64 << 10) + 1), Dropped { samples: 1, bytes: (64 << 10) + 1 });
        assert_eq!(push(66, 4), Dropped { samples: 1, bytes: 64 << 10 });
        assert_eq!(numbers(held), (2..=64).chain([66]).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_owed_is_held_up_to_its_bytes_and_one_sample_always() {
        let mut held = Held::default();
        assert_eq!(held.push(arrived(1, 1, 20 << 20), HeldLimit::OWED), Dropped::default());
        let dropped = held.push(arrived(1, 2, 16 << 20), HeldLimit::OWED);
        assert_eq!(dropped, Dropped { samples: 1, bytes: 20 << 20 });
        assert_eq!(held.drop_all(), Dropped { samples: 1, bytes: 16 << 20 });
    }

    #[test]
    fn one_writers_samples_are_taken_in_their_order() {
        let mut held = Held::default();
        for (writer, number) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
            held.push(arrived(writer, number, 10), HeldLimit::OWED);
        }
        assert_eq!(numbers(held.take_of([2; 16])), [1, 2]);
        assert_eq!((held.bytes, numbers(held)), (20, vec![1, 2]));
    }
}
