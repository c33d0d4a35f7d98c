//! Any bytes read as any shipped message: what reads must write the same message again, and its arrays of numbers are found in
//! place as they are read.
#![no_main]

#[path = "../../crates/tsuji-msg/tests/support/arrays.rs"]
mod arrays;

use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use tsuji_interfaces::{Shipped, names};
use tsuji_msg::{ArrayLayout, DynamicMessage, EchoStyle, Field, JsonStyle, TypeDescription, TypeSet};

static TYPES: LazyLock<Vec<Arc<TypeDescription>>> = LazyLock::new(|| {
    let set = TypeSet::new(Shipped);
    names()
        .filter(|name| name.contains("/msg/"))
        .map(|name| set.load(name).expect("a shipped message"))
        .collect()
});

fuzz_target!(|data: &[u8]| {
    let Some((first, sample)) = data.split_first() else { return };
    let ty = &TYPES[usize::from(*first) % TYPES.len()];
    let layout = ArrayLayout::from(ty.clone());
    let message = match DynamicMessage::decode(ty, sample) {
        Ok(message) => message,
        Err(_) => {
            // Behind what is wrong as well as before it.
            for Field { name, .. } in ty.fields() {
                let _ = layout.array::<u8>(sample, name);
                let _ = layout.array::<f64>(sample, name);
            }
            return;
        }
    };
    arrays::check_found(&layout, sample, &message);
    arrays::check_written(&message, &message);
    let bytes = message.encode().expect("what was read can be written");
    assert_eq!(bytes.len(), message.serialized_size());
    let again = DynamicMessage::decode(ty, &bytes).expect("what was written can be read");
    // Compared as bytes: a NaN is not equal to itself.
    assert_eq!(again.encode().expect("again"), bytes);
    let _ = message.to_json(JsonStyle::default());
    let yaml = message.to_yaml(EchoStyle::default());
    let back = DynamicMessage::from_yaml(ty, &yaml).expect("what was printed can be read");
    assert_eq!(back.to_yaml(EchoStyle::default()), yaml);
});
