//! A forked child must not touch what its parent uses.

use std::panic::{AssertUnwindSafe, catch_unwind};
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
    // SAFETY: the child runs `body`, which takes no lock that another thread of this test binary
    // can hold but the allocator's, which libc makes usable; then it ends without returning.
    let child = unsafe { libc::fork() };
    assert!(0 <= child, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let is_right = catch_unwind(AssertUnwindSafe(body)).unwrap_or(false);
        // SAFETY: ends the child, running nothing of the parent's.
        unsafe { libc::_exit(i32::from(!is_right)) }
    }
    let mut status = 0;
    // SAFETY: `child` is a child of this process that nobody else waits for.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "{}", std::io::Error::last_os_error());
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}
