//! Any text read as a remapping rule, a topic pattern, a type's name and a topic's: no panic, and what is read can be
//! used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_core::TopicPattern;
use tsuji_core::names::RemapRule;
use tsuji_msg::TypeName;

fuzz_target!(|text: &str| {
    let _ = text.parse::<RemapRule>();
    if let Ok(name) = text.parse::<TypeName>() {
        assert!(name.to_string().parse::<TypeName>().is_ok());
    }
    let (pattern, topic) = text.split_once(' ').unwrap_or((text, "/camera/image"));
    if let Ok(pattern) = pattern.parse::<TopicPattern>() {
        let _ = pattern.matches(topic);
    }
});
