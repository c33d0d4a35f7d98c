//! Small enough to be interpreted by miri, which looks for undefined behaviour and data races.
#![cfg(not(loom))]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use tsuji_conformance::{Keep, World};
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::Bells;
use tsuji_transport::inproc::InProcess;
use tsuji_transport::{Bytes, HeapReserve, Loan, Owner, Payload};

#[test]
fn miri_heap_loans_are_filled_shared_and_freed() {
    for len in [0, 1, 4, 5, 100] {
        let mut loan = Loan::on_heap(len);
        loan.fill(7);
        if let Ok(part) = loan.part_mut(1..3) {
            part.fill(9);
        }
        loan.truncate(50);
        let bytes = loan.freeze();
        std::thread::scope(|scope| {
            for clone in [bytes.clone(), bytes.clone()] {
                scope.spawn(move || assert_eq!(clone.first(), (0 < len).then_some(&7)));
            }
        });
        assert!(bytes.get(1..3).is_none_or(|part| part == [9, 9]));
    }
}

#[test]
fn miri_kept_memory_goes_from_sample_to_sample() {
    const LEN: usize = 64 * 1024;
    let reserve = HeapReserve::default();
    for round in 0..4u8 {
        let mut loan = reserve.loan(LEN);
        loan[usize::from(round)] = round;
        let bytes = loan.freeze();
        std::thread::scope(|scope| {
            let clone = bytes.clone();
            scope.spawn(move || assert_eq!(clone[usize::from(round)], round));
        });
    }
}

#[test]
fn miri_an_owner_counts_its_holders() {
    struct Pool {
        memory: NonNull<[u8]>,
        holders: AtomicIsize,
    }
    // SAFETY: the memory is only written through the one loan.
    unsafe impl Send for Pool {}
    // SAFETY: as above.
    unsafe impl Sync for Pool {}
    impl Owner for Pool {
        fn retain(&self) {
            self.holders.fetch_add(1, Ordering::Relaxed);
        }
        fn release(&self) {
            self.holders.fetch_sub(1, Ordering::AcqRel);
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }
    impl Drop for Pool {
        fn drop(&mut self) {
            // SAFETY: leaked from a box below, and no holder is left.
            drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
        }
    }
    let memory = NonNull::from(Box::leak(vec![0; 64].into_boxed_slice()));
    let pool = Arc::new(Pool { memory, holders: AtomicIsize::new(0) });
    for round in 0..3 {
        pool.holders.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the pool keeps 64 writable bytes, and nobody holds them at this point.
        let mut loan = unsafe { Loan::from_owner(Arc::<Pool>::clone(&pool), memory.cast(), 64) };
        loan.fill(round);
        let bytes = loan.freeze();
        assert!(bytes.owner().is::<Pool>());
        let clones: Vec<Bytes> = (0..3).map(|_| bytes.clone()).collect();
        assert_eq!(pool.holders.load(Ordering::Acquire), 4);
        std::thread::scope(|scope| {
            for clone in clones {
                scope.spawn(move || assert_eq!(*clone, [round; 64]));
            }
        });
        drop(bytes);
        assert_eq!(pool.holders.load(Ordering::Acquire), 0);
    }
}

#[test]
fn miri_a_bell_wakes_a_sleeper() {
    let bells = Bells::create(&Backing::Anonymous).unwrap();
    let bell = bells.claim_bell().unwrap();
    let cells = [0, 100].map(|entity| {
        let cell = bells.claim_cell().unwrap();
        cell.attach(&bell, entity);
        cell
    });
    let flags = [const { AtomicBool::new(false) }; 2];
    std::thread::scope(|scope| {
        for (cell, flag) in cells.iter().zip(&flags) {
            scope.spawn(|| {
                flag.store(true, Ordering::Relaxed);
                cell.ring();
            });
        }
        while !flags.iter().all(|it| it.load(Ordering::Relaxed)) {
            bell.wait(None);
            bell.drain(|_| ());
        }
    });
}

#[test]
fn miri_samples_pass_between_threads() {
    let world = World::shared(InProcess::new());
    let (writer, reader) = world.pair("miri", Keep::All(2));
    let last = world.reader("miri", Keep::Last(1));
    writer.connect(&last);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bell = reader.bell();
            let mut held = Vec::new();
            for sequence in 1..=20 {
                let sample = reader.take_when_there_is_one(&bell);
                assert_eq!(sample.envelope.sequence, sequence);
                if sequence % 3 == 0 {
                    held.push(sample);
                }
            }
        });
        let room = writer.bell();
        for _ in 0..20 {
            writer.send_when_there_is_room(&room, 40);
        }
    });
    assert_eq!(last.numbers(), [20]);
    writer.writer.send(&writer.envelope(), &Payload::Typed(Arc::new(5))).unwrap();
    writer.writer.disconnect(reader.gid);
    drop(writer);
    assert!(matches!(last.reader.take().unwrap().unwrap().payload, Payload::Typed(_)));
}
