//! A forked child must not touch what its parent uses.
#![cfg(not(any(loom, miri)))]

use std::sync::Arc;

use tsuji_conformance::{World, cases};
use tsuji_transport::faulty::Faulty;
use tsuji_transport::inproc::InProcess;

#[test]
fn a_forked_child_of_inproc_is_refused() {
    cases::fork::a_forked_child_is_refused(World::shared(InProcess::new()), in_child);
}

#[test]
fn a_forked_child_of_faulty_is_refused() {
    let faulty = Faulty::new(Arc::new(InProcess::new()), 1);
    cases::fork::a_forked_child_is_refused(World::shared(faulty), in_child);
}

/// What `body` answers in a forked child; false when the child panics or is killed.
fn in_child(body: &mut dyn FnMut() -> bool) -> bool {
    // SAFETY: `body` takes no lock that another thread of this test binary can hold but the allocator's.
    unsafe { tsuji_platform::fork::run_in_child(body) }
}
