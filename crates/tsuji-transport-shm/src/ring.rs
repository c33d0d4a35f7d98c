//! A ring of numbers from one producer to one consumer, in memory that may belong to processes
//! that die at any instruction.
//!
//! An entry holds a value and the low half of its position. The producer replaces the oldest entry
//! by a swap and gets it back if the consumer had not taken it; the consumer takes an entry by a
//! compare-exchange that fails if the producer replaced it. So each value comes out exactly once,
//! on one side or the other, and no state has to be repaired after a death.

use crate::sync::{AtomicU64, Ordering};

/// A view of the shared parts. There is at least one entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring<'a> {
    /// Positions written so far.
    pub tail: &'a AtomicU64,
    /// Values pushed out so far. Counted before it happens: a consumer that finds values gone finds
    /// at least as many counted.
    pub displaced: &'a AtomicU64,
    /// Zero, or `value << 32 | low half of the position`.
    pub entries: &'a [AtomicU64],
}

impl Ring<'_> {
    /// Whether as many entries are still to be taken before position `tail` as there are places,
    /// or `unread_max`.
    pub(crate) fn is_full(&self, tail: u64, unread_max: u64) -> bool {
        let back = unread_max.min(self.entries.len() as u64);
        let Some(position) = tail.checked_sub(back) else { return false };
        let seen = self.entry(position).load(Ordering::Acquire);
        seen != 0 && seen & LOW == position & LOW
    }

    /// Writes `value`, not zero, at position `tail`, which the producer counts. Returns the oldest
    /// value if it had to make room.
    pub(crate) fn push(&self, tail: u64, value: u32) -> Option<u32> {
        let new = (u64::from(value) << 32) | (tail & LOW);
        let entry = self.entry(tail);
        let mut old = 0;
        if entry.compare_exchange(0, new, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            self.displaced.fetch_add(1, Ordering::Relaxed);
            old = entry.swap(new, Ordering::AcqRel);
            if old == 0 {
                // It was taken meanwhile.
                self.displaced.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.tail.store(tail + 1, Ordering::Release);
        (old != 0).then_some((old >> 32) as u32)
    }

    /// Takes the oldest value. `head` is the consumer's next position, and skips what the producer
    /// pushed out.
    pub(crate) fn pop(&self, head: &mut u64) -> Option<u32> {
        let tail = self.tail.load(Ordering::Acquire);
        if tail.wrapping_sub(*head) > self.entries.len() as u64 {
            // Only entries of the last round can still be there. A tail behind the head is the
            // work of a broken producer and ends the same way.
            *head = tail.saturating_sub(self.entries.len() as u64).max(*head);
        }
        while *head < tail {
            let entry = self.entry(*head);
            let seen = entry.load(Ordering::Acquire);
            let is_mine = seen != 0 && seen & LOW == *head & LOW;
            *head += 1;
            // When it is not, the producer has just replaced it with a later one.
            if is_mine
                && entry.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
            {
                return Some((seen >> 32) as u32);
            }
        }
        None
    }

    /// Takes back everything that the consumer has not taken. For the producer, when it leaves.
    pub(crate) fn recall(&self, mut each: impl FnMut(u32)) {
        for entry in self.entries {
            let old = entry.swap(0, Ordering::AcqRel);
            if old != 0 {
                each((old >> 32) as u32);
            }
        }
    }

    fn entry(&self, position: u64) -> &AtomicU64 {
        &self.entries[(position % self.entries.len() as u64) as usize]
    }
}

const LOW: u64 = u32::MAX as u64;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Memory {
        tail: AtomicU64,
        displaced: AtomicU64,
        entries: Vec<AtomicU64>,
    }

    impl Memory {
        fn new(len: usize) -> Self {
            let entries = (0..len).map(|_| AtomicU64::new(0)).collect();
            Self { tail: AtomicU64::new(0), displaced: AtomicU64::new(0), entries }
        }

        fn ring(&self) -> Ring<'_> {
            Ring { tail: &self.tail, displaced: &self.displaced, entries: &self.entries }
        }
    }

    #[test]
    fn values_come_out_in_order() {
        let memory = Memory::new(4);
        let (ring, mut head) = (memory.ring(), 0);
        assert_eq!(ring.pop(&mut head), None);
        for tail in 0..100 {
            assert_eq!(ring.push(tail, tail as u32 + 1), None);
            assert_eq!(ring.pop(&mut head), Some(tail as u32 + 1));
            assert_eq!(ring.pop(&mut head), None);
        }
    }

    #[test]
    fn a_full_ring_gives_the_oldest_back() {
        let memory = Memory::new(4);
        let (ring, mut head) = (memory.ring(), 0);
        for tail in 0..10 {
            assert_eq!(ring.is_full(tail, u64::MAX), 4 <= tail);
            assert_eq!(ring.is_full(tail, 2), 2 <= tail);
            let pushed_out = ring.push(tail, tail as u32 + 1);
            assert_eq!(pushed_out, (4 <= tail).then(|| tail as u32 - 3));
        }
        for expect in 7..=10 {
            assert_eq!(ring.pop(&mut head), Some(expect));
        }
        assert_eq!(ring.pop(&mut head), None);
    }

    #[test]
    fn what_is_recalled_is_not_taken() {
        let memory = Memory::new(4);
        let (ring, mut head) = (memory.ring(), 0);
        ring.push(0, 7);
        ring.push(1, 8);
        assert_eq!(ring.pop(&mut head), Some(7));
        let mut recalled = Vec::new();
        ring.recall(|value| recalled.push(value));
        assert_eq!((recalled, ring.pop(&mut head)), (vec![8], None));
    }

    #[test]
    fn a_nonsense_tail_ends_the_reading() {
        let memory = Memory::new(4);
        let (ring, mut head) = (memory.ring(), 2);
        memory.tail.store(1, Ordering::Relaxed);
        assert_eq!(ring.pop(&mut head), None);
        memory.tail.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(ring.pop(&mut head), None);
    }

    #[test]
    fn miri_each_value_comes_out_once_on_one_side() {
        const COUNT: u64 = if cfg!(miri) { 300 } else { 1_000_000 };
        let memory = Memory::new(8);
        let mut taken = Vec::new();
        let mut given_back = Vec::new();
        std::thread::scope(|scope| {
            let producer = scope.spawn(|| {
                let ring = memory.ring();
                (0..COUNT).filter_map(|tail| ring.push(tail, tail as u32 + 1)).collect::<Vec<_>>()
            });
            let (ring, mut head) = (memory.ring(), 0);
            while head < COUNT {
                let Some(value) = ring.pop(&mut head) else { continue };
                let missing = u64::from(value) - 1 - taken.len() as u64;
                let displaced = memory.displaced.load(Ordering::Relaxed);
                assert!(missing <= displaced, "{missing} missing, {displaced} counted");
                taken.push(value);
            }
            given_back = producer.join().unwrap();
        });
        assert!(taken.is_sorted() && given_back.is_sorted());
        assert_eq!(memory.displaced.into_inner(), given_back.len() as u64);
        let mut all = [taken, given_back].concat();
        all.sort_unstable();
        assert_eq!(all, (1..=COUNT as u32).collect::<Vec<_>>());
    }
}
