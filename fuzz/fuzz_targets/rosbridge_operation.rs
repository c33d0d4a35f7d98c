//! Any bytes read as a message of a client in each encoding: no panic, and a refusal that can be told. Pictures are unpacked within their limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_rosbridge::{Encoding, Operation, parse, parse_json, read_png, write_refusal};

fuzz_target!(|bytes: &[u8]| {
    for encoding in [Encoding::Json, Encoding::Cbor, Encoding::Bson] {
        match parse(encoding, bytes, 16) {
            Ok(incoming) => {
                if let Operation::Png(png) = incoming.operation
                    && let Ok(message) = read_png(&png.data, 100_000)
                {
                    assert!(message.len() <= 100_000);
                }
            }
            Err(refusal) => {
                let mut out = Vec::new();
                write_refusal(&mut out, Encoding::Json, &refusal);
                assert!(parse_json(&out).is_ok(), "{}", String::from_utf8_lossy(&out));
                assert!(refusal.found.len() < 1000);
            }
        }
    }
});
