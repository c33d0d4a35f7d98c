//! A process that may have no more threads is refused a participant, or does the work of a thread that it cannot have, and goes
//! on. A process has one limit for it, so this file has one test.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::sync::Arc;

use tsuji_conformance::{Keep, endpoint, watched};
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::Bells;
use tsuji_transport::wire::Wire;
use tsuji_transport::{PeerId, Transport};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds, EngineTransport};

/// Nobody: the superuser has no such limit.
const NOBODY: u32 = 65_534;

/// Sets how many threads the user of this process may have, and returns how many they were before.
fn limit(threads: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for a limit, and a valid one.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NPROC, &raw mut limit), 0);
        let before = std::mem::replace(&mut limit.rlim_cur, threads);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit), 0);
        before
    }
}

/// Which signals this thread holds back.
fn held_back() -> Vec<i32> {
    // SAFETY: a set that is filled before it is read.
    unsafe {
        let mut set = std::mem::zeroed();
        assert_eq!(libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut set), 0);
        (1..32).filter(|signal| libc::sigismember(&raw const set, *signal) == 1).collect()
    }
}

fn join() -> tsuji_transport::Result<EngineTransport> {
    let transport = CycloneDds::create(PeerId([1; 16]), &CycloneConfig::on_loopback(8))?;
    transport.join()?;
    Ok(transport)
}

#[test]
fn without_threads_a_process_goes_on() {
    watched(|| {
        // SAFETY: no file is opened by name behind this, and nothing depends on who the process is.
        let is_limited = unsafe { libc::geteuid() != 0 || libc::setresuid(NOBODY, NOBODY, 0) == 0 };
        if !is_limited {
            let _ = writeln!(std::io::stderr(), "skipped: the superuser has no limit here");
            return;
        }
        let signals = held_back();
        // One thread more each time, so that each of those that a participant has from its start is once the one that is missing.
        let (mut threads, mut refusals) = (1, 0);
        let before = limit(threads);
        let transport = loop {
            let joined = join();
            assert_eq!(held_back(), signals);
            match joined {
                Ok(transport) => break transport,
                Err(error) => assert!(error.to_string().contains("thread"), "{error}"),
            }
            refusals += 1;
            threads += 1;
            limit(threads);
        };
        assert!(refusals >= 3, "{refusals} refusals until {threads} threads");
        drop(transport);
        limit(before);

        let transport = join().unwrap();
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let cell = Arc::new(bells.claim_cell().unwrap());
        let endpoint = endpoint("limited", Keep::Last(10));
        let writer = transport.open_writer(&endpoint, Arc::clone(&cell)).unwrap();
        let reader = transport.open_reader(&endpoint, cell).unwrap();
        limit(1);
        drop((writer, reader));
        drop(transport);
        assert_eq!(held_back(), signals);
        limit(before);
        drop(join().unwrap());
    });
}
