//! Random messages of any type: what is written is read back to the byte, and dynamic messages agree.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "../../tsuji-msg/tests/support/random.rs"]
mod random;

use proptest::prelude::*;
use random::{Random, SHAPES, shapes};
use serde_json::Value as Json;
use std::sync::{Arc, LazyLock};
use tsuji_codec::{Format, Now, Plan, Raw};
use tsuji_interfaces::{Shipped, names};
use tsuji_msg::cdr::ByteOrder;
use tsuji_msg::{Bytes, DynamicMessage, JsonStyle, TypeDescription, TypeSet};

const NOW: Now = Now { sec: 7, nanosec: 8 };
const FORMATS: [Format; 3] = [Format::Json, Format::Cbor, Format::Bson];

static TYPES: LazyLock<Vec<Arc<TypeDescription>>> = LazyLock::new(|| {
    let shapes = TypeSet::new(shapes());
    let own = SHAPES.iter().filter(|(name, _)| name.contains("/msg/"));
    let own = own.map(|(name, _)| shapes.load(name).unwrap());
    let shipped = TypeSet::new(Shipped);
    let others = names().filter(|name| name.contains("/msg/"));
    let others = others.map(|name| shipped.load(name).unwrap());
    own.chain(others).collect()
});

/// A random message of one of the types; the shapes, which come first, are as likely as all others together.
fn message(seed: u64) -> DynamicMessage {
    let mut random = Random(seed);
    let count = if random.below(2) == 0 { SHAPES.len() - 2 } else { TYPES.len() };
    let ty = &TYPES[random.below(count)];
    random.message(ty)
}

fn read(plan: &Plan, format: Format, bytes: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    let result = plan.read(Raw::new(format, bytes), NOW, &mut out);
    result.unwrap_or_else(|error| panic!("{}: {format:?}: {error}", plan.ty()));
    assert_eq!(&out[..6], b"before");
    out.split_off(6)
}

fn written(plan: &Plan, format: Format, sample: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    plan.write(sample, format, &mut out).unwrap();
    assert_eq!(&out[..6], b"before");
    out.split_off(6)
}

fn tree(json: &[u8]) -> Json {
    serde_json::from_slice(json).unwrap()
}

/// Whether two trees are the same, but for how `float32` is written there and rounded where it is parsed.
fn alike(found: &Json, expected: &Json) -> bool {
    match (found, expected) {
        (Json::Object(found), Json::Object(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(a, b)| a.0 == b.0 && alike(a.1, b.1))
        }
        (Json::Array(found), Json::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| alike(a, b))
        }
        (Json::Number(a), Json::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            // Half a unit in the last place of the smallest numbers is a large part of them.
            a == b || (a - b).abs() <= b.abs() * f64::from(f32::EPSILON) || a as f32 == b as f32
        }
        (found, expected) => found == expected,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(seed: u64) {
        let message = message(seed);
        let plan = Plan::new(message.ty());
        let sample = message.encode().unwrap();
        let big = message.encode_as(Vec::new(), ByteOrder::Big).unwrap();
        for format in FORMATS {
            let bytes = written(&plan, format, &sample);
            prop_assert_eq!(read(&plan, format, &bytes), &*sample, "{:?}", format);
            prop_assert_eq!(written(&plan, format, &big), bytes, "{:?}", format);
        }
    }

    #[test]
    fn dynamic_messages_agree(seed: u64) {
        let message = message(seed);
        let plan = Plan::new(message.ty());
        let sample = message.encode().unwrap();
        let json = written(&plan, Format::Json, &sample);
        let (found, expected) = (tree(&json), message.to_json(JsonStyle { bytes: Bytes::Base64 }));
        prop_assert!(alike(&found, &expected), "{} {}", found, expected);
        // A map of serde_json is sorted by name, so its fields are in another order than the definition's.
        for bytes in [Bytes::Base64, Bytes::Numbers] {
            let tree = message.to_json(JsonStyle { bytes });
            let close = serde_json::to_vec(&tree).unwrap();
            prop_assert_eq!(read(&plan, Format::Json, &close), &*sample);
            let wide = serde_json::to_vec_pretty(&tree).unwrap();
            prop_assert_eq!(read(&plan, Format::Json, &wide), &*sample);
        }
    }

    #[test]
    fn a_part_of_the_bytes_is_refused(seed: u64, cut: prop::sample::Index) {
        let message = message(seed);
        let plan = Plan::new(message.ty());
        let sample = message.encode().unwrap();
        for format in FORMATS {
            let bytes = written(&plan, format, &sample);
            let part = &bytes[..cut.index(bytes.len())];
            let mut out = Vec::new();
            prop_assert!(plan.read(Raw::new(format, part), NOW, &mut out).is_err());
            prop_assert!(out.is_empty());
        }
    }

    #[test]
    fn members_are_the_fields(seed: u64) {
        let message = message(seed);
        let plan = Plan::new(message.ty());
        let sample = message.encode().unwrap();
        for format in FORMATS {
            let bytes = written(&plan, format, &sample);
            let members = Raw::new(format, &bytes).members().unwrap();
            let names: Vec<_> = members.map(|member| member.unwrap().0.into_owned()).collect();
            let expected: Vec<_> =
                message.fields().map(|(field, _)| field.name.clone()).collect();
            prop_assert_eq!(names, expected);
        }
    }
}

#[test]
fn a_message_of_defaults() {
    for ty in TYPES.iter() {
        let plan = Plan::new(ty);
        // Nothing in a shipped type is stamped below the top but headers, which are not there.
        let is_header = ty.name().to_string() == "std_msgs/msg/Header";
        let expected = DynamicMessage::new(ty.clone()).encode().unwrap();
        for (format, empty) in [
            (Format::Json, b"{}".as_slice()),
            (Format::Json, b" [ ] "),
            (Format::Cbor, b"\xa0"),
            (Format::Cbor, b"\xbf\xff"),
            (Format::Cbor, b"\x80"),
            (Format::Bson, b"\x05\0\0\0\0"),
        ] {
            let found = read(&plan, format, empty);
            if !is_header {
                assert_eq!(found, expected, "{ty}");
            }
        }
    }
}
