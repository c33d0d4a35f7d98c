//! The threads of a participant: each is there once it has something to do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::thread;

use tsuji_conformance::{Keep, endpoint, watched};
use tsuji_platform::memory::Backing;
use tsuji_platform::process::thread_names;
use tsuji_transport::bell::Bells;
use tsuji_transport::wire::{Found, Wire};
use tsuji_transport::{PeerId, Transport};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds};

/// Those of this process that the engine has named.
fn threads() -> Vec<String> {
    let is_of_engine =
        |name: &String| ["recv", "tev", "gc"].contains(&name.as_str()) || name.starts_with("dq.");
    let mut names: Vec<_> = thread_names().unwrap().into_values().filter(is_of_engine).collect();
    names.sort();
    names
}

#[test]
fn a_thread_comes_with_its_first_work() {
    watched(|| {
        let config = CycloneConfig::on_loopback(8);
        let transport = CycloneDds::create(PeerId([1; 16]), &config).unwrap();
        transport.join().unwrap();
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let cell = Arc::new(bells.claim_cell().unwrap());
        let writer = transport.open_writer(&endpoint("threads", Keep::Last(10)), cell).unwrap();
        // Each names itself.
        while threads().len() < 3 {
            thread::yield_now();
        }
        let mut expected = vec!["dq.builtins", "recv", "tev"];
        if threads().len() > 3 {
            // Another process's participant is watched by the thread that collects.
            let others = transport.found().into_iter().filter(|found| match found {
                Found::Participant(it) => it.pid != Some(std::process::id()),
                _ => false,
            });
            assert_ne!(others.count(), 0, "{:?}", threads());
            expected.insert(1, "gc");
        }
        assert_eq!(threads(), expected);
        drop(writer);
        // What was a writer is collected.
        while !threads().contains(&"gc".to_owned()) {
            thread::yield_now();
        }
        drop(transport);
        // The system lists what has ended a little longer.
        while !threads().is_empty() {
            thread::yield_now();
        }
    });
}
