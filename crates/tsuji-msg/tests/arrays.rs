//! Arrays of numbers by name, in samples of types known at run time.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "support/arrays.rs"]
mod arrays;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "not all definitions are needed")]
mod random;

use arrays::{check_found, check_written};
use proptest::prelude::*;
use random::Random;
use std::collections::HashMap;
use std::sync::Arc;
use tsuji_msg::cdr::{ByteOrder, CdrProblem};
use tsuji_msg::definition::ScalarKind;
use tsuji_msg::{
    ArrayError, ArrayLayout, DynamicMessage, Room, Template, TypeDescription, TypeSet,
};

const SCAN: &str = "string frame\nfloat32[] ranges\nfloat32[] intensities\nfloat64[9] k\nuint16[<=4] few\nChannel[] \
                    channels\nbool[] flags\nstring[] names\nint32 single\n";

fn scan() -> Arc<TypeDescription> {
    let texts = [("test_pkg/msg/Channel", "string name\nint64[] values\n")];
    let texts: HashMap<_, _> = texts.map(|(name, text)| (name.into(), text.into())).into();
    TypeSet::new(texts).load_text("test_pkg/msg/Scan", SCAN).unwrap()
}

fn message(yaml: &str) -> DynamicMessage {
    DynamicMessage::from_yaml(&scan(), yaml).unwrap()
}

/// Where a sample lies in memory.
enum Place {
    Aligned,
    Displaced,
}

/// Memory with a sample in it, and the range where that is.
fn place(sample: &[u8], place: Place) -> (Vec<u8>, std::ops::Range<usize>) {
    let wanted = match place {
        Place::Aligned => 12,
        Place::Displaced => 13,
    };
    let mut memory = vec![0; sample.len() + 16];
    let start = (0..16).find(|at| (memory.as_ptr().addr() + at) % 16 == wanted).unwrap();
    let range = start..start + sample.len();
    memory[range.clone()].copy_from_slice(sample);
    (memory, range)
}

#[test]
fn arrays_are_slices_where_memory_allows_it() {
    let message =
        message("{frame: f, ranges: [1, 2, 3], few: [7], channels: [{}, {values: [-5]}]}");
    let layout = ArrayLayout::from(scan());
    let sample = message.encode().unwrap();
    let (memory, range) = place(&sample, Place::Aligned);
    let aligned = &memory[range];
    let view = layout.array::<f32>(aligned, "ranges").unwrap();
    assert_eq!(view.as_slice(), Some(&[1.0, 2.0, 3.0][..]));
    assert_eq!(
        layout.array::<i64>(aligned, "channels[1].values").unwrap().as_slice(),
        Some(&[-5][..])
    );
    assert_eq!(layout.array::<f32>(aligned, "intensities").unwrap().as_slice(), Some(&[][..]));
    assert_eq!(layout.array::<f64>(aligned, "k").unwrap().as_slice(), Some(&[0.0; 9][..]));

    let (mut memory, range) = place(&sample, Place::Displaced);
    let displaced = &mut memory[range];
    let view = layout.array::<f32>(displaced, "ranges").unwrap();
    assert_eq!((view.as_slice(), view.get(2), view.len()), (None, Some(3.0), 3));
    let error = layout.array_mut::<f32>(displaced, "ranges").unwrap_err().to_string();
    assert!(error.contains("`ranges`: found an array that does not lie aligned"), "{error}");
    // Where there is nothing, nothing can be displaced.
    assert!(layout.array_mut::<f32>(displaced, "intensities").unwrap().is_empty());

    let mut big = message.encode_as(Vec::new(), ByteOrder::Big).unwrap();
    let view = layout.array::<f32>(&big, "ranges").unwrap();
    assert_eq!((view.as_slice(), view.to_vec()), (None, vec![1.0, 2.0, 3.0]));
    let error = layout.array_mut::<f32>(&mut big, "ranges").unwrap_err().to_string();
    assert!(error.contains("`ranges`: found numbers in the other byte order"), "{error}");
}

#[test]
fn several_arrays_are_written_at_once() {
    let (layout, template) = (ArrayLayout::from(scan()), message("{frame: laser, single: 4}"));
    let mut rooms = [Room::new("ranges", 2), Room::new("few", 3), Room::new("intensities", 2)];
    let (mut memory, range) =
        place(&vec![0xaa; template.size_around(&mut rooms).unwrap()], Place::Aligned);
    let sample = &mut memory[range];
    template.serialize_around(&mut rooms, sample).unwrap();
    let [ranges, intensities] =
        layout.arrays_mut::<f32, 2>(sample, ["ranges", "intensities"]).unwrap();
    (ranges[1], intensities[0]) = (0.5, 0.25);
    (ranges[0], intensities[1]) = (1.0, 2.0);
    layout.array_mut::<u16>(sample, "few").unwrap().copy_from_slice(&[1, 2, 3]);
    // What has no room is as the template has it, and can be written as well.
    layout.array_mut::<f64>(sample, "k").unwrap()[8] = 1.0;
    let expected = message(
        "{frame: laser, single: 4, ranges: [1, 0.5], intensities: [0.25, 2], few: [1, 2, 3],
          k: [0, 0, 0, 0, 0, 0, 0, 0, 1]}",
    );
    assert_eq!(DynamicMessage::decode(&scan(), sample).unwrap(), expected);

    let error = layout.arrays_mut::<f32, 2>(sample, ["ranges", "ranges"]).unwrap_err().to_string();
    assert!(error.contains("found the same array twice"), "{error}");
}

#[test]
fn errors_say_what_there_is() {
    const HAS: &str = "expected one that this test_pkg/msg/Scan has: ranges (f32), intensities (f32), k (f64), few (u16), \
                       channels[0].values (i64)";
    let message = message("{frame: f, channels: [{}]}");
    let (layout, sample) = (ArrayLayout::from(scan()), message.encode().unwrap());
    let paths = [
        "",
        "rangez",
        "ranges.x",
        "ranges[0]",
        "frame",
        "flags",
        "names",
        "single",
        "channels",
        "channels[0]",
        "channels[1].values",
        "channels[0].",
        "channels.values",
        ".ranges",
        "[0]",
        "channels[0].name",
    ];
    for path in paths {
        let field = if path.is_empty() { String::new() } else { format!("field `{path}`: ") };
        let error = layout.array::<f32>(&sample, path).unwrap_err().to_string();
        assert_eq!(error, format!("{field}found no array of f32; {HAS}"));
        let error = message.size_around(&mut [Room::new(path, 1)]).unwrap_err().to_string();
        assert_eq!(error, format!("{field}found no array of numbers; {HAS}"));
    }
    let error = layout.array::<u8>(&sample, "ranges").unwrap_err().to_string();
    assert_eq!(error, format!("field `ranges`: found no array of u8; {HAS}"));
    let twice = &mut [Room::new("few", 1), Room::new("few", 2)];
    let error = message.size_around(twice).unwrap_err().to_string();
    assert_eq!(error, format!("field `few`: found the same array twice; {HAS}"));

    let none = TypeSet::new(HashMap::new()).load_text("test_pkg/msg/None", "bool a\n").unwrap();
    let error = ArrayLayout::from(none).array::<u8>(&[0, 1, 0, 0, 1], "a").unwrap_err();
    let expected = "field `a`: found no array of u8; expected nothing: this test_pkg/msg/None has no array of numbers";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn limits_of_types_are_kept() {
    let message = message("{}");
    for (path, elements, allowed) in [("few", 5, 4), ("k", 8, 9), ("k", 10, 9)] {
        let rooms = &mut [Room::new(path, elements)];
        let mut out = vec![0; message.size_around(rooms).unwrap()];
        let Err(ArrayError::Cdr(error)) = message.serialize_around(rooms, &mut out) else {
            panic!("{elements} elements of {path}");
        };
        assert_eq!(error.field(), path);
        assert_eq!(*error.problem(), CdrProblem::Bound { length: elements, bound: allowed });
    }
    // A size beyond all memory is an error and no overflow.
    let rooms = &mut [Room::new("ranges", usize::MAX)];
    assert!(message.size_around(rooms).unwrap() >= usize::MAX / 2);
    assert!(message.serialize_around(rooms, &mut [0; 64]).is_err());
    let rooms = &mut [Room::new("ranges", 3)];
    assert!(message.serialize_around(rooms, &mut [0; 20]).is_err());

    // Four elements are read where three are allowed.
    let four = message_of("uint16[] few", "few: [1, 2, 3, 4]").encode().unwrap();
    let ty =
        TypeSet::new(HashMap::new()).load_text("test_pkg/msg/Test", "uint16[<=3] few\n").unwrap();
    let Err(ArrayError::Cdr(error)) = ArrayLayout::from(ty).array::<u16>(&four, "few") else {
        panic!("a limit of the type was passed over");
    };
    assert_eq!(*error.problem(), CdrProblem::Bound { length: 4, bound: 3 });
}

fn message_of(text: &str, yaml: &str) -> DynamicMessage {
    let ty = TypeSet::new(HashMap::new()).load_text("test_pkg/msg/Test", text).unwrap();
    DynamicMessage::from_yaml(&ty, yaml).unwrap()
}

/// A type of random fields, some of which are messages of such types.
fn random_type(random: &mut Random) -> Arc<TypeDescription> {
    let mut texts = HashMap::new();
    for number in 0..4 {
        let mut text = String::new();
        for field in 0..random.below(6) {
            let base = match random.below(8) {
                0 => "string".into(),
                1 => "wstring".into(),
                2 | 3 if number > 0 => format!("T{}", random.below(number)),
                _ => ScalarKind::ALL[random.below(ScalarKind::ALL.len())].name().to_owned(),
            };
            let shape = match random.below(6) {
                0 | 1 => "[]".into(),
                2 => format!("[{}]", 1 + random.below(5)),
                3 => format!("[<={}]", 1 + random.below(5)),
                _ => String::new(),
            };
            text += &format!("{base}{shape} f{field}\n");
        }
        texts.insert(format!("random/msg/T{number}"), text);
    }
    TypeSet::new(texts).load("random/msg/T3").unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_in_place_is_what_is_decoded(seed: u64) {
        let mut random = Random(seed);
        let ty = random_type(&mut random);
        let message = random.message(&ty);
        let layout = ArrayLayout::from(ty);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            check_found(&layout, &message.encode_as(Vec::new(), order).unwrap(), &message);
        }
        check_written(&message, &message);
    }

    #[test]
    fn wrong_bytes_never_panic(seed: u64) {
        let mut random = Random(seed);
        let ty = random_type(&mut random);
        let message = random.message(&ty);
        let mut sample = message.encode().unwrap();
        let layout = ArrayLayout::from(ty.clone());
        for _ in 0..8 {
            let at = random.below(sample.len());
            sample[at] = random.next() as u8;
            let cut = &sample[..random.below(sample.len() + 1)];
            for sample in [&sample, cut] {
                if let Ok(message) = DynamicMessage::decode(&ty, sample) {
                    check_found(&layout, sample, &message);
                }
                for path in ["f0", "f1", "f2[0].f0", "f3[1].f2", "f4.f0", "f5", "f1.f1[0].f1"] {
                    let _ = layout.array::<u8>(sample, path);
                    let _ = layout.array::<f64>(sample, path);
                }
            }
        }
    }
}
