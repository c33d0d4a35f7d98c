//! After warm-up nothing is allocated for a sample, neither by pointer nor by loan. Alone in its
//! binary, since it counts the allocations of the whole process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use house::{Folder, HANG, keep_last};
use tsuji::{Executor, WaitSet};
use tsuji_interfaces::sensor_msgs::msg::Image;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const SAMPLES: u64 = 2000;

/// Allocations of the whole process while `round` runs [`SAMPLES`] times, after as many to warm up.
/// The threads of the test harness sleep meanwhile; should one of them allocate, a later try is
/// without it, while what is allocated for each sample is there in all.
fn count(mut round: impl FnMut(u64)) -> u64 {
    (0..SAMPLES).for_each(&mut round);
    let tries = (0..3).map(|_| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        (0..SAMPLES).for_each(&mut round);
        ALLOCATIONS.load(Ordering::Relaxed) - before
    });
    tries.min().unwrap()
}

#[test]
fn nothing_is_allocated_for_a_sample() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("writer").unwrap();
    let image = Arc::new(Image { data: vec![1; 100_000], ..Image::default() });

    let publisher = node.create_publisher::<Image>("near", keep_last(4)).unwrap();
    let near = node.create_polled_subscription::<Image>("near", keep_last(4)).unwrap();
    let allocated = count(|_| {
        publisher.publish(Arc::clone(&image)).unwrap();
        assert!(near.take().unwrap().unwrap().is_by_reference());
    });
    assert_eq!(allocated, 0, "by pointer, taken");
    drop(near);

    let seen = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&seen);
    let called = node.create_subscription::<Image>("near", keep_last(4), move |received| {
        counted.fetch_add(u64::from(received.view().data[0]), Ordering::Relaxed);
    });
    let called = called.unwrap();
    let mut executor = Executor::new(&one).unwrap();
    executor.add(&node).unwrap();
    let mut wanted = 0;
    let allocated = count(|_| {
        wanted += 1;
        publisher.publish(Arc::clone(&image)).unwrap();
        while seen.load(Ordering::Relaxed) < wanted {
            executor.spin_once(HANG).unwrap();
        }
    });
    assert_eq!(allocated, 0, "by pointer, to a callback");
    drop((called, executor));

    let publisher = node.create_publisher::<Image>("far", keep_last(4)).unwrap();
    let reader = two.node("reader").unwrap();
    let far = reader.create_polled_subscription::<Image>("far", keep_last(4)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    far.wait_for_publishers(1, HANG).unwrap();
    let template = Image { width: 10, encoding: "mono8".into(), ..Image::default() };
    let mut set = WaitSet::new(&two).unwrap();
    set.add(&far).unwrap();
    let take = || {
        loop {
            match far.take().unwrap() {
                Some(received) => return u64::from(received.view().data[0]),
                None => drop(set.wait(HANG).unwrap()),
            }
        }
    };
    let allocated = count(|number| {
        let mut loan = publisher.loan(&template, 100_000).unwrap();
        loan.data_mut()[0] = number as u8;
        publisher.publish(loan).unwrap();
        assert_eq!(take(), number % 256);
    });
    assert_eq!(allocated, 0, "by loan");
    let allocated = count(|_| {
        publisher.publish(&*image).unwrap();
        assert_eq!(take(), 1);
    });
    assert_eq!(allocated, 0, "serialised once into shared memory");
}
