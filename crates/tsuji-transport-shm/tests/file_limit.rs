//! A sample for which this process may not have so large a file is refused with an error, and no signal ends the process.
//! A process has one limit for it, so this file has one test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use tsuji_conformance::{Keep, World};
use tsuji_transport::ErrorKind;
use tsuji_transport_shm::{SharedMemory, ShmConfig};

fn limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a valid limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
}

#[test]
fn a_sample_beyond_the_file_limit_is_refused() {
    limit(8 << 20);
    let world = World::between(|id, bells| {
        let life = tsuji_conformance::life();
        let config = ShmConfig { memory_bytes_max: 64 << 20, ..ShmConfig::default() };
        Arc::new(SharedMemory::create(id, &life, bells, &config).unwrap())
    });
    let (writer, reader) = world.pair("limited", Keep::All(4));
    writer.send(100);
    let error = writer.writer.reserve(16 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("8388608 bytes, as `ulimit -f` says"), "{source}");
    writer.send(1 << 20);
    assert_eq!(reader.numbers(), [1, 2]);
    limit(libc::RLIM_INFINITY);
    // It waits a little before it asks the system again.
    while writer.writer.reserve(16 << 20).is_err() {
        std::thread::yield_now();
    }
}
