//! A forked child must not touch what its parent uses.

use std::sync::Arc;

use tsuji_conformance::{World, cases};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds};

#[test]
fn a_forked_child_of_cyclonedds_is_refused() {
    let config = CycloneConfig::on_loopback(9);
    let world = World::settled(move |id, _| {
        Arc::new(CycloneDds::create(id, &config).expect("a participant"))
    });
    cases::fork::a_forked_child_is_refused(world, in_child);
}

/// What `body` answers in a forked child; false when the child panics or is killed.
fn in_child(body: &mut dyn FnMut() -> bool) -> bool {
    // SAFETY: `body` takes no lock that another thread of this test binary can hold but the allocator's.
    unsafe { tsuji_platform::fork::run_in_child(body) }
}
