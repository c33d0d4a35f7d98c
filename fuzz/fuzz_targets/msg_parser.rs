//! Any text read as a definition: no panic, and what loads can make a default message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_interfaces::Shipped;
use tsuji_msg::definition::{parse_action, parse_service};
use tsuji_msg::{DynamicMessage, TypeSet};

fuzz_target!(|text: &str| {
    let _ = parse_service(text);
    let _ = parse_action(text);
    let Ok(ty) = TypeSet::new(Shipped).load_text("fuzz_pkg/msg/Fuzz", text) else { return };
    // A valid type may be large; a default of it is made only where that is cheap.
    if ty.min_size() < 1 << 16 {
        let bytes = DynamicMessage::new(ty.clone()).encode();
        if let Ok(bytes) = bytes {
            DynamicMessage::decode(&ty, &bytes).expect("a default reads back");
        }
    }
});
