//! A forked child must not touch what its parent uses.
#![cfg(not(any(loom, miri)))]

use std::sync::Arc;

use tsuji_conformance::{World, cases};
use tsuji_transport_shm::{SharedMemory, ShmConfig};

#[test]
fn a_forked_child_of_shm_is_refused() {
    let world = World::between(|id, bells| {
        Arc::new(
            SharedMemory::create(id, &tsuji_conformance::life(), bells, &ShmConfig::default())
                .unwrap(),
        )
    });
    cases::fork::a_forked_child_is_refused(world, in_child);
}

/// What `body` answers in a forked child; false when the child panics or is killed.
fn in_child(body: &mut dyn FnMut() -> bool) -> bool {
    // SAFETY: `body` takes no lock that another thread of this test binary can hold but the allocator's.
    unsafe { tsuji_platform::fork::run_in_child(body) }
}
