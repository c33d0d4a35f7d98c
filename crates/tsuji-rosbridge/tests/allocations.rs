//! Reading and splitting what comes most often allocates nothing. Alone in its binary, since it counts the allocations of the whole
//! process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use tsuji_rosbridge::{Encoding, Operation, Piece, Splitter, parse_json, write_publish};

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
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many allocations there are while it runs; other threads of the test harness may add some, so the least of many runs counts.
fn allocations(mut run: impl FnMut()) -> u64 {
    let once = || {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        run();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    std::iter::repeat_with(once).take(10).min().unwrap_or_default()
}

#[test]
fn a_publish_is_read_split_and_written_without_allocating() {
    let message = br#"{"op":"publish","id":"publish:/chatter:12","topic":"/chatter","msg":{"data":"a \"quoted\" text"},"latch":false}"#;
    let stream = message.repeat(100);
    let mut splitter = Splitter::new(1 << 20, 64);
    let mut out = Vec::with_capacity(1 << 20);
    let mut found = 0;
    let count = allocations(|| {
        out.clear();
        let mut chunk = stream.as_slice();
        while let Some(piece) = splitter.next(&mut chunk) {
            let Piece::Message(message) = piece else { continue };
            let Ok(Operation::Publish(it)) = parse_json(message).map(|it| it.operation) else {
                continue;
            };
            write_publish(&mut out, Encoding::Json, &it.topic, b"{}");
            found += 1;
        }
    });
    assert_eq!((count, found), (0, 1000));
}
