//! Any text read as the YAML of a message: no panic, and what reads prints and reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use tsuji_interfaces::Shipped;
use tsuji_msg::{DynamicMessage, EchoStyle, TypeDescription, TypeSet};

static TYPE: LazyLock<Arc<TypeDescription>> = LazyLock::new(|| {
    let text = "bool b\nuint8[] u\nfloat64 f\nstring s\nwstring<=5 w\nbyte y\nstd_msgs/Header h\nstring[<=3] t\n\
                geometry_msgs/Point[2] p\n";
    TypeSet::new(Shipped).load_text("fuzz_pkg/msg/Fuzz", text).expect("a definition")
});

fuzz_target!(|text: &str| {
    let Ok(message) = DynamicMessage::from_yaml(&TYPE, text) else { return };
    let yaml = message.to_yaml(EchoStyle::default());
    let back = DynamicMessage::from_yaml(&TYPE, &yaml).expect("what was printed can be read");
    assert_eq!(back.to_yaml(EchoStyle::default()), yaml);
    message.encode().expect("what was read can be written");
});
