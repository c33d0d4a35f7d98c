//! Any bytes read as what a client of Foxglove says, in text and in bytes: no panic, and a reason that can be told.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_foxglove::{Binary, Level, Message, Request, negotiate, text};

fuzz_target!(|bytes: &[u8]| {
    let tell = |why: String| {
        let status = Message::Status { level: Level::Error, message: &why, id: None };
        assert!(text(&status).contains("\"op\":\"status\""), "{why}");
    };
    match Binary::parse(bytes) {
        Ok(Binary::Playback { .. }) => {}
        Ok(Binary::Message { data, .. } | Binary::Call { data, .. }) => {
            assert!(data.len() < bytes.len())
        }
        Err(why) => tell(why.to_string()),
    }
    if let Ok(said) = str::from_utf8(bytes) {
        negotiate([said]);
        if let Err(why) = Request::parse(said) {
            tell(why.to_string());
        }
    }
});
