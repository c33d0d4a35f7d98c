//! Any text read as a filter of any shipped message, whose default and any bytes are asked: a sample that passes is one, and
//! what cannot be read is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use tsuji_interfaces::{Shipped, names};
use tsuji_msg::{DynamicMessage, Expression, TypeDescription, TypeSet};

static TYPES: LazyLock<Vec<(Arc<TypeDescription>, Vec<u8>)>> = LazyLock::new(|| {
    let set = TypeSet::new(Shipped);
    names()
        .filter(|name| name.contains("/msg/"))
        .map(|name| {
            let ty = set.load(name).expect("a shipped message");
            let sample = DynamicMessage::new(ty.clone()).encode().expect("its default");
            (ty, sample)
        })
        .collect()
});

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    // An expression, parameters and a sample, with a zero between them.
    let mut parts = rest.splitn(4, |byte| *byte == 0);
    let mut text = || str::from_utf8(parts.next().unwrap_or_default()).unwrap_or_default();
    let (expression, parameters) = (text(), [text(), text()]);
    let sample = parts.next().unwrap_or_default();
    let Ok(expression) = Expression::parse(expression) else { return };
    let (ty, default) = &TYPES[usize::from(*first) % TYPES.len()];
    let Ok(filter) = expression.compile(ty, &parameters) else { return };
    filter.matches(default).expect("a sample of the type");
    if let Ok(message) = DynamicMessage::decode(ty, sample) {
        let passes = filter.matches(sample).expect("what is read whole is read in part");
        let again = message.encode().expect("what was read can be written");
        assert_eq!(filter.matches(&again), Ok(passes));
    } else {
        let _ = filter.matches(sample);
    }
});
