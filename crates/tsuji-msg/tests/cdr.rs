//! CDR bytes known from elsewhere, lengths that lie, and limits of types.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::sync::Arc;
use tsuji_msg::cdr::{ByteOrder, CdrProblem, Reader, Slice, Writer};
use tsuji_msg::{DynamicMessage, List, LoadError, TypeDescription, TypeSet, Value, load};

fn ty(text: &str) -> Arc<TypeDescription> {
    TypeSet::new(HashMap::new()).load_text("test_pkg/msg/Test", text).unwrap()
}

/// Bytes written as hexadecimal digits, with blanks between them.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len() / 2)
        .map(|index| u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).unwrap())
        .collect()
}

/// Reads YAML, expects these bytes little endian and those big endian, and reads both back.
fn check(definition: &str, yaml: &str, little: &str, big: &str) {
    let ty = ty(definition);
    let message = DynamicMessage::from_yaml(&ty, yaml).unwrap();
    assert_eq!(message.encode().unwrap(), bytes(little), "{definition} {yaml}");
    assert_eq!(
        message.encode_as(Vec::new(), ByteOrder::Big).unwrap(),
        bytes(big),
        "{definition} {yaml}"
    );
    assert_eq!(DynamicMessage::decode(&ty, &bytes(little)).unwrap(), message);
    assert_eq!(DynamicMessage::decode(&ty, &bytes(big)).unwrap(), message);
}

#[test]
fn known_bytes() {
    check(
        "string data",
        "data: hello",
        "00010000 06000000 68656c6c6f 00",
        "00000000 00000006 68656c6c6f 00",
    );
    check("", "", "00010000 00", "00000000 00");
    check(
        "uint8 a\nuint16 b\nuint8 c\nuint32 d\nuint8 e\nfloat64 f",
        "{a: 1, b: 2, c: 3, d: 4, e: 5, f: 1.0}",
        "00010000 01 00 0200 03 000000 04000000 05 000000 000000000000f03f",
        "00000000 01 00 0002 03 000000 00000004 05 000000 3ff0000000000000",
    );
    check(
        "wstring w\nuint8 x",
        "{w: a日🚁, x: 7}",
        "00010000 04000000 61000000 e5650000 3dd80000 81de0000 07",
        "00000000 00000004 00000061 000065e5 0000d83d 0000de81 07",
    );
    check(
        "bool[] a\nfloat64[] b\nuint16[2] c\nstring[<=2] d",
        "{a: [true, false], b: [], c: [1, 2], d: ['', x]}",
        "00010000 02000000 01 00 0000 00000000 0100 0200 02000000 01000000 00 000000 02000000 78 00",
        "00000000 00000002 01 00 0000 00000000 0001 0002 00000002 00000001 00 000000 00000002 78 00",
    );
    // An element aligned to 8 behind a count aligned to 4.
    check(
        "uint8 a\nint64[] b",
        "{a: 1, b: [-2]}",
        "00010000 01 000000 01000000 feffffffffffffff",
        "00000000 01 000000 00000001 fffffffffffffffe",
    );
}

#[test]
fn lengths_that_lie() {
    let problem = |definition: &str, hex: &str| {
        let error = DynamicMessage::decode(&ty(definition), &bytes(hex)).unwrap_err();
        (error.field().to_owned(), error.offset(), error.problem().clone())
    };
    let huge = usize::try_from(u32::MAX).unwrap();
    assert_eq!(
        problem("uint64[] a", "00010000 ffffffff 0000"),
        ("a".into(), 8, CdrProblem::Length { claimed: huge, left: 2 })
    );
    assert_eq!(
        problem("string[] a", "00010000 02000000 01000000"),
        ("a".into(), 8, CdrProblem::Length { claimed: 2, left: 4 })
    );
    assert_eq!(
        problem("uint8[400] a", "00010000 00"),
        ("a".into(), 4, CdrProblem::Truncated { needed: 400, left: 1 })
    );
    assert_eq!(
        problem("string a", "00010000 02000000 6161"),
        ("a".into(), 9, CdrProblem::Terminator)
    );
    assert_eq!(problem("bool[3] a", "00010000 010002"), ("a".into(), 6, CdrProblem::Bool(2)));
    assert_eq!(
        problem("uint8[<=1] a", "00010000 02000000 0000").2,
        CdrProblem::Bound { length: 2, bound: 1 }
    );
    assert_eq!(problem("uint8 a", "00030000 00").2, CdrProblem::Encapsulation([0, 3]));
    assert_eq!(problem("uint8 a", "000100").2, CdrProblem::Truncated { needed: 4, left: 3 });
    assert_eq!(problem("uint8 a", "").2, CdrProblem::Truncated { needed: 4, left: 0 });
}

#[test]
fn a_text_that_is_none_is_shown_and_hides_nothing_else() {
    let read = |definition: &str, hex: &str| {
        let ty = ty(definition);
        let message = DynamicMessage::decode(&ty, &bytes(hex)).unwrap();
        // What was read can be written, and read again.
        let again = DynamicMessage::decode(&ty, &message.encode().unwrap()).unwrap();
        assert_eq!(again, message);
        assert_eq!(*message.get("b").unwrap(), Value::U8(7), "{definition}");
        message.get("a").unwrap().into_owned()
    };
    let text = |text: &str| Value::Text(text.into());
    assert_eq!(read("string a\nuint8 b", "00010000 04000000 61ff6200 07"), text("a\u{fffd}b"));
    // As Python does with `replace`: one for what could have begun a character.
    assert_eq!(read("string a\nuint8 b", "00010000 04000000 e2826200 07"), text("\u{fffd}b"));
    assert_eq!(read("string a\nuint8 b", "00010000 03000000 fffe00 07"), text("\u{fffd}\u{fffd}"));
    assert_eq!(
        read("string[] a\nuint8 b", "00010000 02000000 02000000 ff00 0000 02000000 6100 07"),
        Value::List(List::Text(vec!["\u{fffd}".into(), "a".into()]))
    );
    // Half a surrogate pair, and a unit of more than 16 bits.
    assert_eq!(read("wstring a\nuint8 b", "00010000 01000000 00d80000 07"), text("\u{fffd}"));
    assert_eq!(read("wstring a\nuint8 b", "00010000 01000000 00000100 07"), text("\u{fffd}"));
    // A bound counts what came; what replaces it has no more room.
    assert_eq!(read("string<=4 a\nuint8 b", "00010000 04000000 61ffff00 07"), text("a\u{fffd}"));
    let error = DynamicMessage::decode(&ty("string<=1 a"), &bytes("00010000 03000000 ffff00"));
    assert_eq!(*error.unwrap_err().problem(), CdrProblem::Bound { length: 2, bound: 1 });
}

#[test]
fn what_other_writers_do_is_read() {
    // An empty string without a terminator, options in the header, padding at the end.
    let ty = ty("string a\nwstring b\nuint8 c");
    let sample = bytes("00010003 00000000 01000000 61000000 05 000000");
    let message = DynamicMessage::decode(&ty, &sample).unwrap();
    assert_eq!(*message.get("a").unwrap(), Value::Text(String::new()));
    assert_eq!(*message.get("b").unwrap(), Value::Text("a".into()));
    assert_eq!(*message.get("c").unwrap(), Value::U8(5));
}

#[test]
fn a_wide_string_has_no_terminator() {
    // A NUL at its end is a character, as it is for rmw_cyclonedds and the type support of Fast
    // DDS.
    let ty = ty("wstring a");
    let sample = bytes("00010000 02000000 61000000 00000000");
    let message = DynamicMessage::decode(&ty, &sample).unwrap();
    assert_eq!(*message.get("a").unwrap(), Value::Text("a\0".into()));
    assert_eq!(message.encode().unwrap(), sample);
}

#[test]
fn a_slice_without_room_is_an_error() {
    let mut out = [0; 10];
    let mut writer = Writer::new(Slice::new(&mut out), ByteOrder::Little).unwrap();
    writer.scalar(1_u8).unwrap();
    let error = writer.scalar(1_u64).unwrap_err();
    assert_eq!(*error.problem(), CdrProblem::NoRoom { needed: 7, left: 5 });
    assert!(Writer::new(Slice::new(&mut [0; 3]), ByteOrder::Little).is_err());
}

#[test]
fn padding_is_zeroed() {
    let mut out = [0xff; 16];
    let mut writer = Writer::new(Slice::new(&mut out), ByteOrder::Little).unwrap();
    writer.scalar(1_u8).unwrap();
    writer.scalar(u64::MAX).unwrap_err();
    assert_eq!(out[..5], [0, 1, 0, 0, 1]);
    let mut writer = Writer::new(Slice::new(&mut out), ByteOrder::Little).unwrap();
    writer.scalar(1_u8).unwrap();
    writer.scalar(2_u32).unwrap();
    assert_eq!(out[..12], [0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn a_reader_at_the_end_stays_there() {
    let mut reader = Reader::new(&[0, 1, 0, 0, 9]).unwrap();
    assert_eq!(reader.scalar::<u8>().unwrap(), 9);
    for _ in 0..3 {
        assert!(reader.scalar::<u64>().is_err());
        assert_eq!(reader.left(), 0);
    }
}

#[test]
fn a_reader_goes_on_where_it_is_told() {
    let sample = bytes("00 01 00 00 07 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00");
    let mut reader = Reader::new(&sample).unwrap();
    reader.scalar::<u8>().unwrap();
    let offset = reader.offset();
    assert_eq!((offset, reader.scalar::<u32>().unwrap()), (5, 1));
    // Aligned from where it is, as before.
    reader.seek(offset);
    assert_eq!(reader.scalar::<u64>().unwrap(), 2);
    reader.seek(0);
    assert_eq!(reader.scalar::<u32>().unwrap(), 7);
    reader.seek(1000);
    assert_eq!((reader.offset(), reader.left()), (20, 0));
    assert!(reader.scalar::<u8>().is_err());
}

fn texts(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn types_are_loaded_once_and_by_either_name() {
    let set = TypeSet::new(texts(&[
        ("a/msg/A", "B b\nb/C[] c\n"),
        ("a/msg/B", "uint8 x\n"),
        ("b/msg/C", "a/B b\n"),
    ]));
    let first = set.load("a/A").unwrap();
    assert!(Arc::ptr_eq(&first, &set.load("a/msg/A").unwrap()));
    let names: Vec<_> = first.referenced().iter().map(|ty| ty.name().to_string()).collect();
    assert_eq!(names, ["a/msg/B", "b/msg/C"]);
    assert!(first.full_text().ends_with(&format!("{}\nMSG: b/C\na/B b\n", "=".repeat(80))));
    assert_eq!(first.name().dds(), "a::msg::dds_::A_");
}

#[test]
fn bad_types_are_refused() {
    let message = |pairs: &[(&str, &str)]| load("a/msg/A", &texts(pairs)).unwrap_err().to_string();
    assert_eq!(message(&[]), "no definition of a/msg/A");
    assert_eq!(message(&[("a/msg/A", "B b\n")]), "no definition of a/msg/B, which a/msg/A uses");
    assert_eq!(
        message(&[("a/msg/A", "B b\n"), ("a/msg/B", "A[] a\n")]),
        "a message contains itself: a/msg/A > a/msg/B > a/msg/A"
    );
    assert_eq!(
        message(&[("a/msg/A", "B b\n"), ("a/msg/B", "uint8 X\n")]).split(';').next().unwrap(),
        "a/msg/B: line 1, column 7: `X`: not a name for a field"
    );
    assert!(
        message(&[("a/msg/A", "B[60000] b\n"), ("a/msg/B", "uint8[60000] x\n")])
            .contains("3600000000 bytes")
    );
    assert!(
        message(&[
            ("a/msg/A", "B[4294967295] b\n"),
            ("a/msg/B", "B2[4294967295] x\n"),
            ("a/msg/B2", "A3[4294967295] z\n"),
            ("a/msg/A3", "uint8[4294967295] z\n")
        ])
        .contains("bytes")
    );
    for name in ["A", "a/b/A", "a/msg/a", "A/msg/A", "a//A", "a/msg/A/B", "../msg/A", ""] {
        assert!(matches!(load(name, &texts(&[])), Err(LoadError::Name(_))), "{name}");
    }
    assert!(matches!(load("a/srv/A", &texts(&[])), Err(LoadError::Kind { .. })));
}

#[test]
fn nesting_has_a_limit() {
    let chain = |length: usize| -> HashMap<String, String> {
        let text = |index: usize| {
            if index + 1 == length { "uint8 x\n".into() } else { format!("L{} x\n", index + 1) }
        };
        (0..length).map(|index| (format!("a/msg/L{index}"), text(index))).collect()
    };
    assert!(load("a/L0", &chain(32)).is_ok());
    assert!(matches!(load("a/L0", &chain(33)), Err(LoadError::TooDeep { .. })));
    // Loading from the bottom up must not slip past the limit.
    let set = TypeSet::new(chain(40));
    let refused = (0..40).rev().filter(|index| set.load(&format!("a/L{index}")).is_err()).count();
    assert_eq!(refused, 8);
}

#[test]
fn long_arrays_of_messages_are_measured_without_a_walk() {
    let set = TypeSet::new(texts(&[
        ("a/msg/A", "uint8 t\nP[1000000] p\n"),
        ("a/msg/P", "float64 x\nuint8 t\n"),
    ]));
    // Each point takes 16 bytes but for the last, whose padding behind it does not count.
    assert_eq!(set.load("a/A").unwrap().fixed_size(), Some(4 + 8 + 16 * 1_000_000 - 7));
    let set = TypeSet::new(texts(&[
        ("a/msg/A", "P[3] p\nuint8 z\n"),
        ("a/msg/P", "uint16 x\nuint8 t\n"),
    ]));
    assert_eq!(set.load("a/A").unwrap().fixed_size(), Some(4 + 12));
}

#[test]
fn memory_is_bounded_and_not_only_bytes() {
    let texts = HashMap::from([
        ("std_msgs/msg/Empty".to_owned(), String::new()),
        ("p/msg/Long".to_owned(), format!("string text \"{}\"\n", "x".repeat(1 << 12))),
    ]);
    let types = TypeSet::new(texts);
    let load = |text: &str| types.load_text("p/msg/Test", text);
    for text in ["std_msgs/Empty[268435456] a", "p/Long[65536] a"] {
        assert!(matches!(load(text), Err(LoadError::TooLarge { .. })), "{text}");
    }
    assert!(load("uint8[200000000] a\nstd_msgs/Empty[1000000] b").is_ok());

    let ty = load("std_msgs/Empty[] a").unwrap();
    let sample = |count: u32| {
        let mut sample = [&[0, 1, 0, 0], &count.to_le_bytes()[..]].concat();
        sample.resize(sample.len() + count as usize, 0);
        sample
    };
    assert!(DynamicMessage::decode(&ty, &sample(1000)).is_ok());
    // Each is a byte here, and more than 16 in memory.
    let error = DynamicMessage::decode(&ty, &sample(64 << 20)).unwrap_err();
    assert!(matches!(error.problem(), CdrProblem::Memory { .. }), "{error}");
}
