//! A sample for which the reader has no address space waits until it has. A process has one limit
//! for it, so this file has one test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use tsuji_conformance::{Keep, World};
use tsuji_transport::ErrorKind;
use tsuji_transport_shm::{SharedMemory, ShmConfig};

/// The address space that this process takes now, in bytes.
fn address_space() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

fn limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a valid limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// An emulator may take the limit and not keep to it.
fn is_kept() -> bool {
    limit(address_space() + (4 << 20));
    let mut memory: Vec<u8> = Vec::new();
    let refused = memory.try_reserve_exact(64 << 20);
    std::hint::black_box(&memory);
    limit(libc::RLIM_INFINITY);
    refused.is_err()
}

#[test]
fn a_sample_that_cannot_be_mapped_is_taken_later() {
    if !is_kept() {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: a limit of address space is not kept here");
        return;
    }
    let world = World::between(|id, bells| {
        let life = tsuji_conformance::life();
        let config = ShmConfig { memory_bytes_max: 64 << 20, ..ShmConfig::default() };
        Arc::new(SharedMemory::create(id, &life, bells, &config).unwrap())
    });
    let (writer, reader) = world.pair("unmapped", Keep::All(4));
    writer.send(16 << 20);
    writer.send(100);
    limit(address_space() + (4 << 20));
    let refused = [reader.reader.take(), reader.reader.take()];
    limit(libc::RLIM_INFINITY);
    for result in refused {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
    }
    assert_eq!(reader.numbers(), [1, 2]);
    // Nothing of it is held any more.
    for _ in 0..10 {
        writer.send(16 << 20);
        assert!(reader.take().is_some());
    }
    // A reader that goes leaves nothing behind but what it could not look at.
    writer.send(24 << 20);
    writer.send(100);
    limit(address_space() + (4 << 20));
    drop(reader);
    limit(libc::RLIM_INFINITY);
    let other = world.reader("unmapped", Keep::All(4));
    writer.connect(&other);
    writer.send(100);
    assert!(other.take().is_some());
}
