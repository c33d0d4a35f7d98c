//! The ring's code itself, explored by loom over all interleavings of its two ends.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;

use ring::Ring;
use sync::{AtomicU64, Ordering};

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[path = "../src/ring.rs"]
#[allow(dead_code, reason = "the models do not use all of it")]
mod ring;

struct Memory {
    tail: AtomicU64,
    displaced: AtomicU64,
    entries: [AtomicU64; 2],
}

fn memory() -> Arc<Memory> {
    let zero = || AtomicU64::new(0);
    Arc::new(Memory { tail: zero(), displaced: zero(), entries: [zero(), zero()] })
}

fn ring(memory: &Memory) -> Ring<'_> {
    Ring { tail: &memory.tail, displaced: &memory.displaced, entries: &memory.entries }
}

#[test]
fn loom_each_value_comes_out_once_on_one_side() {
    loom::model(|| {
        let ours = memory();
        let theirs = Arc::clone(&ours);
        let producer = thread::spawn(move || {
            let push = |tail| ring(&theirs).push(tail, tail as u32 + 1);
            (0..4).filter_map(push).collect::<Vec<_>>()
        });
        let mut head = 0;
        let mut taken: Vec<u32> = Vec::new();
        for _ in 0..2 {
            let Some(value) = ring(&ours).pop(&mut head) else { continue };
            let missing = u64::from(value) - 1 - taken.len() as u64;
            assert!(missing <= ours.displaced.load(Ordering::Relaxed), "{value} after {taken:?}");
            taken.push(value);
        }
        let given_back = producer.join().unwrap();
        taken.extend(std::iter::from_fn(|| ring(&ours).pop(&mut head)));
        assert!(taken.is_sorted(), "{taken:?}");
        assert_eq!(ours.displaced.load(Ordering::Relaxed), given_back.len() as u64);
        let mut all = [taken, given_back].concat();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4]);
    });
}

#[test]
fn loom_what_the_producer_recalls_is_not_taken_too() {
    loom::model(|| {
        let ours = memory();
        ring(&ours).push(0, 1);
        ring(&ours).push(1, 2);
        let theirs = Arc::clone(&ours);
        let producer = thread::spawn(move || {
            let mut recalled = Vec::new();
            ring(&theirs).recall(|value| recalled.push(value));
            recalled
        });
        let mut head = 0;
        let mut all: Vec<u32> = (0..2).filter_map(|_| ring(&ours).pop(&mut head)).collect();
        all.extend(producer.join().unwrap());
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}
