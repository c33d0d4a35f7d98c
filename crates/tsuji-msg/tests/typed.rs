//! Generated types against the dynamic messages of the same definitions, over every shape of field.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "support/arrays.rs"]
mod arrays;
#[path = "support/random.rs"]
mod random;

// Written by `UPDATE=1 cargo test -p tsuji-msg --test codegen`, and checked by that test.
include!("data/shapes.rs");

use arrays::{check_found, check_written};
use proptest::prelude::*;
use random::{Random, shapes as definitions};
use shapes::msg::{Arrays, Blob, Empty, Keywords, Nested, Point, Scalars, Texts};
use shapes::srv::{Ask, AskRequest, AskResponse, NothingRequest};
use std::sync::Arc;
use tsuji_msg::cdr::{ByteOrder, CdrProblem};
use tsuji_msg::{
    ArrayLayout, CdrError, DynamicMessage, Expression, InPlace, Message, Service, TypeDescription,
    TypeSet, Value, encode_as,
};

/// Does the same for every generated message.
macro_rules! each_type {
    ($check:ident $(, $argument:expr)*) => {{
        $check::<Arrays>($($argument),*);
        $check::<Blob>($($argument),*);
        $check::<Empty>($($argument),*);
        $check::<Keywords>($($argument),*);
        $check::<Nested>($($argument),*);
        $check::<Point>($($argument),*);
        $check::<Scalars>($($argument),*);
        $check::<Texts>($($argument),*);
        $check::<AskRequest>($($argument),*);
        $check::<AskResponse>($($argument),*);
        $check::<NothingRequest>($($argument),*);
    }};
}

fn description<M: Message>() -> Arc<TypeDescription> {
    TypeSet::new(definitions()).load(M::TYPE_NAME).unwrap()
}

#[test]
fn constants_agree_with_the_dynamic_path() {
    fn check<M: Message>() {
        let ty = description::<M>();
        assert_eq!(M::TYPE_HASH, ty.hash());
        assert_eq!(M::FIXED_SIZE, ty.fixed_size());
        assert_eq!(M::DEFINITION, ty.full_text());
        assert_eq!(M::MIN_SIZE, ty.min_size());
    }
    each_type!(check);
    let ask = TypeSet::new(definitions()).load_service(Ask::TYPE_NAME).unwrap();
    assert_eq!(Ask::TYPE_HASH, ask.hash);
    assert_eq!(<Ask as Service>::Request::TYPE_NAME, "shapes/srv/Ask_Request");
    assert_eq!(Keywords::TYPE + Keywords::NAME.len() as u8, 2);
    assert!(Keywords::FAR.is_infinite());
}

#[test]
fn a_filter_asks_a_value_for_no_more_than_it_looks_at() {
    let ty = description::<Texts>();
    // It breaks a limit of its type, behind what one filter looks at and before what the other does.
    let wrong = Texts { short: "more than ten".into(), ..Texts::default() };
    let filter = |text| Expression::parse(text).unwrap().compile(&ty, &[] as &[&str]).unwrap();
    assert_eq!(filter("plain LIKE 'hello%'").matches_message(&wrong), Ok(true));
    assert_eq!(filter("wide <> ''").matches_message(&wrong).unwrap_err().field(), "short");
}

#[test]
fn defaults_are_those_of_the_definitions() {
    fn check<M: Message>() {
        let bytes = M::default().to_vec().unwrap();
        assert_eq!(
            bytes,
            DynamicMessage::new(description::<M>()).encode().unwrap(),
            "{}",
            M::TYPE_NAME
        );
    }
    each_type!(check);
    assert_eq!(Texts::default().short, "it's");
    assert_eq!(Texts::default().plain, "hello # world");
    assert_eq!(Arrays::default().data, [1, 2, 255]);
    assert_eq!(Keywords::default().crate_, 5);
    assert_eq!(Scalars::default().u64, u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A value of Rust is serialised only as far as a filter looks, and passes as its sample does.
    #[test]
    fn a_value_passes_a_filter_as_its_sample_does(seed: u64) {
        let ty = description::<Nested>();
        let nested = Nested::deserialize(&Random(seed).message(&ty).encode().unwrap()).unwrap();
        for expression in [
            "scalars.u8 > 100",
            "scalars.i8 < 0 AND point.x > 0",
            "texts[0].many[1] = 'a' OR two[1].a_bool = TRUE",
            "arrays[1].page[1999] < 128",
            "point.y > point.x",
            "NOT triangle[2].tag = 0",
            "",
        ] {
            let filter = Expression::parse(expression).unwrap().compile(&ty, &[] as &[&str]);
            let filter = filter.unwrap();
            let expect = filter.matches(&nested.to_vec().unwrap());
            prop_assert_eq!(filter.matches_message(&nested), expect, "{}", expression);
        }
    }

    /// One value, four ways to read it, two byte orders, four sinks: all agree.
    #[test]
    fn typed_and_dynamic_agree(seed: u64) {
        fn check<M: Message>(seed: u64) {
            let ty = description::<M>();
            let dynamic = Random(seed).message(&ty);
            let bytes = dynamic.encode().unwrap();
            assert_eq!(bytes.len(), dynamic.serialized_size());

            let typed = M::deserialize(&bytes).unwrap();
            assert_eq!(typed.to_vec().unwrap(), bytes);
            assert_eq!(typed.serialized_size(), bytes.len());
            let mut exact = vec![0xee; bytes.len()];
            assert_eq!(typed.serialize_into(&mut exact).unwrap(), bytes.len());
            assert_eq!(exact, bytes);
            let mut appended = vec![1, 2, 3];
            typed.serialize_onto(&mut appended).unwrap();
            assert_eq!(appended[3..], bytes);
            for short in 0..bytes.len() {
                let problem = typed.serialize_into(&mut exact[..short]).unwrap_err();
                assert!(matches!(problem.problem(), CdrProblem::NoRoom { .. }));
            }

            let big = encode_as(&typed, Vec::new(), ByteOrder::Big).unwrap();
            assert_eq!(big.len(), bytes.len());
            assert_eq!(dynamic.encode_as(Vec::new(), ByteOrder::Big).unwrap(), big);
            assert_eq!(M::deserialize(&big).unwrap(), typed);
            assert_eq!(DynamicMessage::decode(&ty, &big).unwrap(), dynamic);
            assert_eq!(DynamicMessage::decode(&ty, &bytes).unwrap(), dynamic);

            // Views print the same whatever they stand over.
            let seen = format!("{:?}", typed.view());
            assert_eq!(format!("{:?}", M::view_cdr(&bytes).unwrap()), seen);
            assert_eq!(format!("{:?}", M::view_cdr(&big).unwrap()), seen);
            for view in [typed.view(), M::view_cdr(&bytes).unwrap(), M::view_cdr(&big).unwrap()] {
                assert_eq!(M::from_view(&view), typed);
            }

            let mut padded = bytes;
            padded.extend([0, 0, 0]);
            assert_eq!(M::deserialize(&padded).unwrap(), typed);
        }
        each_type!(check, seed);
    }

    /// By value, in samples of two byte orders, and in samples that are written around them.
    #[test]
    fn arrays_are_found_by_their_names(seed: u64) {
        fn check<M: Message>(seed: u64) {
            let dynamic = Random(seed).message(&description::<M>());
            let bytes = dynamic.encode().unwrap();
            let typed = M::deserialize(&bytes).unwrap();
            let big = encode_as(&typed, Vec::new(), ByteOrder::Big).unwrap();
            for layout in [ArrayLayout::of::<M>(), description::<M>().into()] {
                check_found(&layout, &bytes, &dynamic);
                check_found(&layout, &big, &dynamic);
            }
            check_written(&dynamic, &dynamic);
            check_written(&typed, &dynamic);
        }
        each_type!(check, seed);
        let message = Random(seed).message(&description::<Nested>());
        let nested = Nested::deserialize(&message.encode().unwrap()).unwrap();
        for (index, arrays) in nested.arrays.iter().enumerate() {
            let path = |field| format!("arrays[{index}].{field}");
            prop_assert_eq!(nested.array::<f32>(&path("floats")).unwrap(), arrays.floats.as_slice());
            prop_assert_eq!(nested.array::<f64>(&path("matrix")).unwrap(), arrays.matrix.as_slice());
            prop_assert!(nested.array::<u8>(&path("bools")).is_err());
        }
    }

    #[test]
    fn a_cut_message_is_an_error(seed: u64) {
        fn check<M: Message>(seed: u64) {
            let ty = description::<M>();
            let bytes = Random(seed).message(&ty).encode().unwrap();
            for end in 0..bytes.len() {
                let cut = &bytes[..end];
                assert!(M::deserialize(cut).is_err(), "{} cut at {end} of {}", M::TYPE_NAME, bytes.len());
                assert!(M::view_cdr(cut).is_err());
                assert!(DynamicMessage::decode(&ty, cut).is_err());
            }
        }
        each_type!(check, seed);
    }

    #[test]
    fn random_bytes_are_read_alike_and_never_panic(seed: u64, order in 0_u8..2, len in 0_usize..400) {
        fn check<M: Message>(bytes: &[u8]) {
            let ty = description::<M>();
            let typed = M::deserialize(bytes);
            let view = M::view_cdr(bytes);
            let dynamic = DynamicMessage::decode(&ty, bytes);
            assert_eq!(typed.is_ok(), view.is_ok(), "{typed:?} {view:?}");
            expect_alike(&typed, &dynamic);
            if let Ok(view) = view {
                let _ = format!("{view:?}");
            }
            for path in ["data", "small", "five", "arrays[0].ids", "texts[1].many", "samples", "fn"] {
                let _ = ArrayLayout::of::<M>().array::<u8>(bytes, path);
                let _ = ArrayLayout::of::<M>().array::<u64>(bytes, path);
            }
        }
        let mut random = Random(seed);
        let mut bytes = vec![0, order, 0, 0];
        // Small values make lengths that are sometimes right.
        bytes.extend((0..len).map(|_| if random.below(3) > 0 { 0 } else { random.below(4) as u8 }));
        each_type!(check, &bytes);
    }

    #[test]
    fn one_wrong_byte_never_panics(seed: u64) {
        fn check<M: Message>(seed: u64) {
            let ty = description::<M>();
            let mut random = Random(seed);
            let mut bytes = random.message(&ty).encode().unwrap();
            for _ in 0..8 {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
                if let Ok(view) = M::view_cdr(&bytes) {
                    let _ = format!("{view:?}");
                }
                let decoded = DynamicMessage::decode(&ty, &bytes);
                expect_alike(&M::deserialize(&bytes), &decoded);
                if let (Ok(message), Ok(_)) = (decoded, M::view_cdr(&bytes)) {
                    check_found(&ArrayLayout::of::<M>(), &bytes, &message);
                }
            }
        }
        each_type!(check, seed);
    }
}

/// What one reads the other does, but for texts: a dynamic message has U+FFFD where a typed one is refused.
fn expect_alike<M: Message>(
    typed: &Result<M, CdrError>,
    dynamic: &Result<DynamicMessage, CdrError>,
) {
    match typed {
        Err(error) if matches!(error.problem(), CdrProblem::Utf8 | CdrProblem::Utf16) => (),
        typed => assert_eq!(typed.is_ok(), dynamic.is_ok(), "{typed:?} {dynamic:?}"),
    }
}

#[test]
fn views_borrow_in_place() {
    let blob = Blob { samples: vec![1, 2, 3], unit: "m".into(), ..Blob::default() };
    let bytes = aligned(&blob.to_vec().unwrap());
    let bytes = bytes.sample();
    let view = Blob::view_cdr(bytes).unwrap();
    let samples = view.samples.as_slice().unwrap();
    assert_eq!(samples, [1, 2, 3]);
    let range = bytes.as_ptr_range();
    assert!(range.contains(&samples.as_ptr().cast()));
    assert!(range.contains(&view.unit.as_ptr()));
    assert_eq!(blob.view().samples.as_slice(), Some(&[1, 2, 3][..]));
    assert_eq!(view.samples.get(2), Some(3));
    assert_eq!(view.samples.get(3), None);
    assert_eq!(view.samples.get(usize::MAX), None);
    assert_eq!(view.samples.to_vec(), blob.samples);

    let unaligned = [&[0][..], bytes].concat();
    let view = Blob::view_cdr(&unaligned[1..]).unwrap();
    assert_eq!(view.samples.iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(view.samples.to_vec(), blob.samples);
    let big = encode_as(&blob, Vec::new(), ByteOrder::Big).unwrap();
    let view = Blob::view_cdr(&big).unwrap();
    assert_eq!(view.samples.as_slice(), None);
    assert_eq!(view.samples.iter().rev().collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn sequences_of_messages_are_walked_in_place() {
    let point = |x| Point { tag: 1, x, y: 2.0 };
    let nested = Nested {
        points: vec![point(0.0), point(1.0), point(2.0)],
        texts: vec![Texts { many: vec!["a".into(), "b".into()], ..Texts::default() }],
        ..Nested::default()
    };
    let bytes = nested.to_vec().unwrap();
    for view in [nested.view(), Nested::view_cdr(&bytes).unwrap()] {
        assert_eq!(view.points.len(), 3);
        assert_eq!(view.points.iter().map(|point| point.x).sum::<f64>(), 3.0);
        assert_eq!(view.points.get(2), Some(point(2.0)));
        assert!(view.points.get(3).is_none());
        assert_eq!(view.points.iter().len(), 3);
        let text = view.texts.get(0).unwrap();
        assert_eq!(text.many.iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(text.wide, "日本");
        assert!(!view.points.is_empty() && view.empties.is_empty());
    }
}

#[test]
fn a_part_of_a_view_becomes_a_value() {
    let texts = Texts { plain: "frame".into(), many: vec!["a".into()], ..Texts::default() };
    let nested = Nested {
        points: vec![Point { tag: 1, x: 1.5, y: 2.0 }],
        texts: vec![Texts::default(), texts.clone()],
        ..Nested::default()
    };
    let bytes = nested.to_vec().unwrap();
    for view in [nested.view(), Nested::view_cdr(&bytes).unwrap()] {
        assert_eq!(view.to_message(), nested);
        assert_eq!(view.texts.get(1).unwrap().to_message(), texts);
        let all: Vec<Texts> = view.texts.iter().map(|it| it.to_message()).collect();
        assert_eq!(all, nested.texts);
        // A message of fixed size is its own view.
        assert_eq!(view.points.get(0), Some(nested.points[0]));
    }
}

#[test]
fn an_array_of_a_value_is_named_like_that_of_a_sample() {
    let blob = Blob { samples: vec![1, 2], ..Blob::default() };
    assert_eq!(blob.array::<u16>("samples"), Ok(&[1, 2][..]));
    let layout = ArrayLayout::of::<Blob>();
    assert_eq!(format!("{layout:?}"), "ArrayLayout(shapes/msg/Blob)");
    let bytes = blob.to_vec().unwrap();
    for path in ["sample", "samples[0]", "origin", "origin.x", "unit", ""] {
        assert_eq!(
            blob.array::<u16>(path).unwrap_err(),
            layout.array::<u16>(&bytes, path).unwrap_err()
        );
    }
    let error = blob.array::<i16>("samples").unwrap_err().to_string();
    let has = "expected one that this shapes/msg/Blob has: samples (u16)";
    assert_eq!(error, format!("field `samples`: found no array of i16; {has}"));
    assert_eq!(<Blob as InPlace>::ARRAY, "samples");
    assert_eq!(<Keywords as InPlace>::ARRAY, "fn");
}

#[test]
fn limits_of_types_are_kept_on_both_sides() {
    let long = Texts { short: "eleven bytes".into(), ..Texts::default() };
    assert!(long.serialized_size() > 0);
    let error = long.serialize_into(&mut [0; 256]).unwrap_err();
    assert_eq!(error.field(), "short");
    assert_eq!(*error.problem(), CdrProblem::Bound { length: 12, bound: 10 });
    let wide = Texts { wide_short: "🚁🚁a".into(), ..Texts::default() };
    assert_eq!(*wide.to_vec().unwrap_err().problem(), CdrProblem::Bound { length: 5, bound: 4 });
    let many = Texts { bounded: vec!["a".into(); 3], ..Texts::default() };
    assert_eq!(many.to_vec().unwrap_err().field(), "bounded");
    let item = Texts { bounded: vec!["abcd".into()], ..Texts::default() };
    assert!(item.to_vec().is_err());

    // The same bytes read by a type without the limits show what a limited type refuses.
    let mut message = DynamicMessage::new(description::<Texts>());
    message.set("short", Value::Text("eleven bytes".into())).unwrap();
    assert!(message.encode().is_err());
    let loose = TypeSet::new(definitions()).load_text("shapes/msg/Loose", LOOSE_TEXTS).unwrap();
    let mut message = DynamicMessage::new(loose);
    message.set("short", Value::Text("eleven bytes".into())).unwrap();
    let bytes = message.encode().unwrap();
    assert_eq!(Texts::deserialize(&bytes).unwrap_err().field(), "short");
    assert_eq!(Texts::view_cdr(&bytes).unwrap_err().field(), "short");
    assert_eq!(
        DynamicMessage::decode(&description::<Texts>(), &bytes).unwrap_err().field(),
        "short"
    );
}

const LOOSE_TEXTS: &str = "string plain\nstring short\nwstring wide\nwstring wide_short\nstring[] many\nstring[] bounded\n\
                           string[2] pair\nwstring[] wides\nstring[2] short_pair\n";

#[test]
fn errors_name_the_field() {
    let nested = Nested { texts: vec![Texts::default(); 2], ..Nested::default() };
    let bytes = nested.to_vec().unwrap();
    let error = Nested::deserialize(&bytes[..bytes.len() - 1]).unwrap_err();
    assert_eq!(error.field(), "forty[39]");
    let mut bad = Scalars::default().to_vec().unwrap();
    bad[4] = 2;
    assert_eq!(
        Scalars::deserialize(&bad).unwrap_err().to_string(),
        "a_bool: byte 4: a bool is 2; allowed are 0 and 1"
    );
}

#[test]
fn a_text_that_is_not_utf_8_is_refused_or_replaced() {
    let mut bytes = Texts { plain: "ab".into(), ..Texts::default() }.to_vec().unwrap();
    bytes[8] = 0xff;
    let error = Texts::deserialize(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "plain: byte 8: a string is not UTF-8");
    assert!(Texts::view_cdr(&bytes).is_err());
    let shown = Texts::deserialize_lossy(&bytes).unwrap();
    assert_eq!(shown, Texts { plain: "\u{fffd}b".into(), ..Texts::default() });
}

/// A sample whose header lies at 12 modulo 16.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn sample(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

fn aligned(sample: &[u8]) -> Aligned {
    let mut memory = vec![0; sample.len() + 32];
    let start = (0..16).find(|start| (memory.as_ptr() as usize + start) % 16 == 12).unwrap();
    memory[start..start + sample.len()].copy_from_slice(sample);
    Aligned { memory, start, len: sample.len() }
}
