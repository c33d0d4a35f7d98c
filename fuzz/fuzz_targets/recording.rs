//! Any bytes read as a recording, whole and cut: no panic, no error but that it is none, and every message of a topic that is told.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_record::{ErrorKind, Recording};

fuzz_target!(|bytes: &[u8]| {
    // What begins as no recording is refused at once, so it always begins as one.
    let bytes = [b"\x89MCAP0\r\n", bytes].concat();
    match Recording::read(bytes) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Format, "{error}"),
        Ok(mut recording) => {
            let mut places = Vec::new();
            for message in recording.messages(0) {
                let message = message.expect("what is in memory can be read");
                places.push(message.topic);
            }
            let topics = recording.topics();
            assert!(places.iter().all(|it| *it < topics.len()));
            // What `tsuji bag info` shows.
            topics.iter().for_each(|it| drop((it.definition(), format!("{it:?}"))));
            let summary = recording.summary();
            assert!(summary.damages.len() as u64 <= summary.damage_count);
            summary.damages.iter().for_each(|it| drop(it.to_string()));
        }
    }
});
