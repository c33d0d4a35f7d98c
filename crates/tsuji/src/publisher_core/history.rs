//! What a publisher keeps for those who join later.

use std::collections::VecDeque;

use tsuji_core::{History as Keeps, Qos};
use tsuji_transport::{Envelope, Payload};

/// Samples that a history keeps which keeps all.
pub(crate) const SAMPLES_MAX: usize = 100_000;
/// Bytes of their messages. One sample fits always.
pub(crate) const BYTES_MAX: usize = 256 << 20;

/// The samples that late joiners are owed, oldest first.
#[derive(Default)]
pub(super) struct History {
    samples: VecDeque<Kept>,
    /// Bytes of their messages.
    bytes: usize,
}

/// One of them, both as bytes and, where it was shared, as the value.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) envelope: Envelope,
    bytes: Option<Payload>,
    value: Option<Payload>,
}

impl Kept {
    pub(super) fn new(envelope: Envelope, bytes: Option<Payload>, value: Option<Payload>) -> Self {
        Self { envelope, bytes, value }
    }

    /// What a link takes that takes values, or else bytes.
    pub(super) fn payload(&self, typed: bool) -> Option<&Payload> {
        let value = self.value.as_ref().filter(|_| typed);
        value.or(self.bytes.as_ref())
    }

    fn len(&self) -> usize {
        self.bytes.as_ref().and_then(Payload::byte_len).unwrap_or(0)
    }
}

impl History {
    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The samples from this number on.
    pub(super) fn since(&self, sequence: u64) -> impl Iterator<Item = &Kept> {
        let at = self.samples.partition_point(|it| it.envelope.sequence < sequence);
        self.samples.range(at..)
    }

    /// The number of the oldest of the last so many.
    pub(super) fn first_of_last(&self, count: usize) -> Option<u64> {
        let at = self.samples.len().saturating_sub(count);
        self.samples.get(at).map(|it| it.envelope.sequence)
    }

    /// The number of the oldest of the last so many that are wanted.
    pub(super) fn first_of_last_that(
        &self,
        count: usize,
        is_wanted: impl Fn(&Kept) -> bool,
    ) -> Option<u64> {
        let wanted = self.samples.iter().rev().filter(|kept| is_wanted(kept)).take(count);
        wanted.last().map(|it| it.envelope.sequence)
    }

    /// Whether one more sample of so many bytes can be kept without one being pushed out that is to be kept.
    pub(super) fn has_room(&self, qos: &Qos, len: usize) -> bool {
        match qos.history {
            Keeps::KeepLast(_) => true,
            Keeps::KeepAll => {
                let bytes = self.bytes.saturating_add(len);
                self.samples.is_empty() || (self.samples.len() < SAMPLES_MAX && bytes <= BYTES_MAX)
            }
        }
    }

    /// Takes out what was published before this time of the wall clock.
    pub(super) fn expire(&mut self, before_ns: i64) -> Vec<Kept> {
        let expired = self.samples.iter().take_while(|it| it.envelope.wall_ns < before_ns).count();
        let expired: Vec<Kept> = self.samples.drain(..expired).collect();
        self.bytes -= expired.iter().map(Kept::len).sum::<usize>();
        expired
    }

    /// Adds one, and answers what had to go for it.
    pub(super) fn push(&mut self, qos: &Qos, kept: Kept) -> Vec<Kept> {
        let mut outlived = Vec::new();
        let is_full = |it: &Self| match qos.history {
            Keeps::KeepLast(depth) => depth as usize <= it.samples.len(),
            Keeps::KeepAll => !it.has_room(qos, kept.len()),
        };
        while is_full(self) {
            let Some(oldest) = self.samples.pop_front() else { break };
            self.bytes -= oldest.len();
            outlived.push(oldest);
        }
        self.bytes += kept.len();
        self.samples.push_back(kept);
        outlived
    }
}

#[cfg(test)]
mod tests {
    use tsuji_transport::Bytes;

    use super::*;

    const ALL: Qos = Qos { history: Keeps::KeepAll, ..Qos::DEFAULT };

    fn kept(sequence: u64, len: usize) -> Kept {
        let wall_ns = sequence as i64 * 10;
        let envelope = Envelope { sequence, wall_ns, ..Envelope::default() };
        Kept::new(envelope, Some(Payload::Bytes(Bytes::copy_from(&vec![0; len]))), None)
    }

    fn numbers<'a>(kept: impl IntoIterator<Item = &'a Kept>) -> Vec<u64> {
        kept.into_iter().map(|it| it.envelope.sequence).collect()
    }

    #[test]
    fn a_history_that_keeps_all_has_room_up_to_its_limits() {
        let mut history = History::default();
        for sequence in 1..=SAMPLES_MAX as u64 {
            assert!(history.has_room(&ALL, 8));
            assert!(history.push(&ALL, kept(sequence, 8)).is_empty());
        }
        assert!(!history.has_room(&ALL, 8));
        assert_eq!(numbers(&history.push(&ALL, kept(0, 8))), [1], "whoever cannot wait displaces");

        let mut large = History::default();
        assert!(large.has_room(&ALL, BYTES_MAX + 1), "one fits always");
        large.push(&ALL, kept(1, BYTES_MAX - 8));
        assert!(large.has_room(&ALL, 8) && !large.has_room(&ALL, 9));
    }

    #[test]
    fn what_has_expired_makes_room() {
        let mut history = History::default();
        (1..=5).for_each(|sequence| drop(history.push(&ALL, kept(sequence, 100))));
        assert_eq!(numbers(&history.expire(30)), [1, 2]);
        assert_eq!((history.len(), history.bytes), (3, 300));
    }

    #[test]
    fn the_last_are_kept_and_found_by_their_numbers() {
        let qos = Qos { history: Keeps::KeepLast(3), ..Qos::DEFAULT };
        let mut history = History::default();
        (1..=5).for_each(|sequence| drop(history.push(&qos, kept(sequence, 1))));
        assert_eq!((history.len(), history.bytes), (3, 3));
        assert_eq!(numbers(history.since(4)), [4, 5]);
        assert_eq!(numbers(history.since(0)), [3, 4, 5]);
        assert_eq!(history.first_of_last(2), Some(4));
        assert_eq!(history.first_of_last(usize::MAX), Some(3));
        assert_eq!(History::default().first_of_last(1), None);
    }
}
