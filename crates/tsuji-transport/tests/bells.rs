//! Bells that are opened or rung wrongly.
#![cfg(not(any(loom, miri)))]

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use tsuji_platform::memory::{Backing, Segment};
use tsuji_transport::bell::{Bells, CELLS_MAX, RemoteBells};

#[test]
fn what_is_no_page_of_bells_is_refused() {
    let segment = |bytes: u64| -> OwnedFd {
        let segment = Segment::create("tsuji-test", &Backing::Anonymous).unwrap();
        if 0 < bytes {
            segment.reserve(0, bytes).unwrap();
        }
        segment.as_fd().try_clone_to_owned().unwrap()
    };
    let wrong: [OwnedFd; 7] = [
        File::open("/dev/null").unwrap().into(),
        File::options().read(true).write(true).open("/dev/zero").unwrap().into(),
        File::open("/").unwrap().into(),
        File::open("/proc/self/exe").unwrap().into(),
        std::io::pipe().unwrap().0.into(),
        segment(0),
        segment(4096),
    ];
    for fd in wrong {
        let shown = format!("{fd:?}");
        assert!(RemoteBells::open(fd).is_err(), "{shown} was opened");
    }
}

#[test]
fn numbers_out_of_range_ring_nothing() {
    let bells = Bells::create(&Backing::Anonymous).unwrap();
    let bell = bells.claim_bell().unwrap();
    let cell = bells.claim_cell().unwrap();
    cell.attach(&bell, u16::MAX);
    assert!(!bell.is_rung(), "an entity that a bell cannot tell apart");
    cell.attach(&bell, 0);
    bell.drain(|_| ());
    let remote = RemoteBells::open(bells.as_fd().try_clone_to_owned().unwrap()).unwrap();
    for number in [CELLS_MAX, CELLS_MAX + 1, u32::MAX] {
        bells.ring(number);
        remote.ring(number);
    }
    assert!(!bell.is_rung());
}

#[test]
fn a_page_outlives_its_maker_in_whoever_rings_it() {
    let bells = Bells::create(&Backing::Anonymous).unwrap();
    let cell = bells.claim_cell().unwrap();
    let remote = RemoteBells::open(bells.as_fd().try_clone_to_owned().unwrap()).unwrap();
    let number = cell.index();
    drop((cell, bells));
    remote.ring(number);
}
