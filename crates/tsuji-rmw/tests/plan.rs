//! Plans against generated types in C and C++: what `tsuji-msg` says of the same content is what they must say.

#[path = "../../tsuji-msg/tests/support/random.rs"]
#[allow(dead_code, reason = "its definitions are of other tests")]
mod random;
#[path = "plan/ros_types.rs"]
mod ros_types;

use random::Random;
use rmw_tsuji::abi::HUMBLE;
use rmw_tsuji::ffi::rosidl::{rosidl_message_type_support_t, rosidl_runtime_c__String};
use rmw_tsuji::plan::{PlanErrorKind, PlanProblem, definition, of_message, of_service, type_hash};
use ros_types::{LANGUAGES, RosTypes};
use std::ptr;
use std::sync::Arc;
use tsuji_interfaces::{AmentIndex, example_interfaces, geometry_msgs, sensor_msgs, std_msgs};
use tsuji_msg::cdr::ByteOrder;
use tsuji_msg::{CdrProblem, DynamicMessage, Message, TypeSet, Value};

fn definitions(types: &RosTypes) -> TypeSet<AmentIndex> {
    TypeSet::new(AmentIndex::from_env_value(types.root()))
}

#[test]
fn every_type_becomes_the_bytes_that_tsuji_msg_writes_and_comes_back_from_both_byte_orders() {
    let Some(types) = RosTypes::find() else { return };
    let set = definitions(&types);
    for name in types.messages() {
        let ty = set.load(&name).unwrap();
        for language in LANGUAGES {
            // Kept over all rounds: what a message held before must not show.
            let mut reused = types.make(&name, language);
            assert_eq!(reused.plan.type_name(), name);
            assert_eq!(
                reused.plan.fixed_size(),
                ty.fixed_size().map(|_| reused.serialize().unwrap().len()),
                "{name}"
            );
            for seed in 0..40 {
                let case = format!("{name} in {language}, seed {seed}");
                let value = Random(seed).message(&ty);
                let bytes = value.encode().unwrap();
                let mut message = types.make(&name, language);
                message.fill(&value);
                assert_eq!(message.serialize().unwrap(), bytes, "{case}");
                let swapped = value.encode_as(Vec::new(), ByteOrder::Big).unwrap();
                for bytes in [&bytes, &swapped] {
                    let mut fresh = types.make(&name, language);
                    for message in [&mut fresh, &mut reused] {
                        message
                            .deserialize(bytes)
                            .unwrap_or_else(|error| panic!("{case}: {error}"));
                        assert_eq!(message.read(&value), value, "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_new_message_has_its_defaults() {
    let Some(types) = RosTypes::find() else { return };
    let set = definitions(&types);
    for name in types.messages() {
        let value = DynamicMessage::new(set.load(&name).unwrap());
        for language in LANGUAGES {
            let message = types.make(&name, language);
            assert_eq!(message.read(&value), value, "{name} in {language}");
            assert_eq!(
                message.serialize().unwrap(),
                value.encode().unwrap(),
                "{name} in {language}"
            );
        }
    }
}

#[test]
fn typed_messages_agree() {
    let Some(types) = RosTypes::find() else { return };
    let mut image = sensor_msgs::msg::Image {
        height: 4,
        width: 3,
        step: 9,
        encoding: "bgr8".into(),
        data: (0..36).collect(),
        ..Default::default()
    };
    image.header.frame_id = "camera".into();
    let mut transform = geometry_msgs::msg::TransformStamped::default();
    transform.header.stamp.sec = 17;
    transform.header.frame_id = "odom".into();
    transform.child_frame_id = "base_link".into();
    transform.transform.translation.x = 1.25;
    let text = std_msgs::msg::String { data: "hello".into() };
    let sum = example_interfaces::srv::AddTwoIntsRequest { a: 2, b: -3 };
    // 00 01 00 00, the length with its NUL, the text.
    assert_eq!(text.to_vec().unwrap(), b"\x00\x01\x00\x00\x06\x00\x00\x00hello\x00");
    for (name, bytes) in [
        ("sensor_msgs/msg/Image", image.to_vec().unwrap()),
        ("geometry_msgs/msg/TransformStamped", transform.to_vec().unwrap()),
        ("std_msgs/msg/String", text.to_vec().unwrap()),
        ("std_msgs/msg/Empty", vec![0, 1, 0, 0, 0]),
        ("example_interfaces/srv/AddTwoInts_Request", sum.to_vec().unwrap()),
    ] {
        for language in LANGUAGES {
            let mut message = types.make(name, language);
            message.deserialize(&bytes).unwrap();
            assert_eq!(message.serialize().unwrap(), bytes, "{name} in {language}");
        }
    }
}

#[test]
fn bytes_that_end_early_are_refused_at_every_byte() {
    let Some(types) = RosTypes::find() else { return };
    let set = definitions(&types);
    for name in types.messages() {
        let ty = set.load(&name).unwrap();
        for language in LANGUAGES {
            let mut message = types.make(&name, language);
            for seed in 0..2 {
                let value = Random(seed).message(&ty);
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    let bytes = value.encode_as(Vec::new(), order).unwrap();
                    // Of large ones some.
                    let step = bytes.len() / 500 + 1;
                    for length in (0..bytes.len()).step_by(step) {
                        // In memory of its own, so that reading on would be seen by valgrind.
                        let cut = bytes[..length].to_vec();
                        let error = message.deserialize(&cut).unwrap_err();
                        assert_eq!(error.kind(), PlanErrorKind::Invalid, "{name}: {error}");
                    }
                }
            }
        }
    }
}

#[test]
fn changed_bytes_are_judged_as_tsuji_msg_judges_them() {
    let Some(types) = RosTypes::find() else { return };
    let set = definitions(&types);
    let mut random = Random(7);
    let (mut read, mut refused) = (0, 0);
    for name in types.messages() {
        let ty = set.load(&name).unwrap();
        for language in LANGUAGES {
            let mut message = types.make(&name, language);
            for round in 0..150 {
                let value = Random(round).message(&ty);
                let order = if round % 3 == 0 { ByteOrder::Big } else { ByteOrder::Little };
                let mut bytes = value.encode_as(Vec::new(), order).unwrap();
                change(&mut bytes, &mut random);
                let ours = message.deserialize(&bytes);
                match (DynamicMessage::decode(&ty, &bytes), ours) {
                    (Ok(value), Ok(())) => {
                        read += 1;
                        // Text is bytes in ROS 2. What is not UTF-8 tsuji-msg replaces, and cuts at the bound of a text.
                        let (ours, theirs) =
                            (message.serialize().unwrap(), value.encode().unwrap());
                        if ours != theirs && std::str::from_utf8(&ours).is_err() {
                            let again = DynamicMessage::decode(&ty, &ours).unwrap();
                            assert_eq!(again.encode().unwrap(), theirs, "{name} {bytes:x?}");
                            continue;
                        }
                        assert_eq!(ours, theirs, "{name} {bytes:x?}");
                    }
                    // Text is bytes in ROS 2, and UTF-8 in tsuji-msg.
                    (Err(error), ours)
                        if matches!(error.problem(), CdrProblem::Utf8 | CdrProblem::Utf16) =>
                    {
                        if ours.is_ok() {
                            message.serialize().unwrap();
                        }
                    }
                    (Err(_), Err(_)) => refused += 1,
                    // A wide letter that is no UTF-16 is shown there, and no letter of a message here.
                    (Ok(value), Err(_)) if format!("{value:?}").contains('\u{fffd}') => {
                        refused += 1
                    }
                    (theirs, ours) => panic!("{name} {bytes:x?}: {theirs:?}, {ours:?}"),
                }
            }
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} were read, {refused} refused");
}

/// Damages a sample: some bytes, or four that may be a length, or where it ends.
fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        if bytes.len() < 5 {
            return;
        }
        let at = 4 + random.below(bytes.len() - 4);
        match random.below(5) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => {
                let at = at & !3;
                let lie = [0, 1, 0x7fff_ffff, u32::MAX, 0x0100_0000, bytes.len() as u32];
                let lie = lie[random.below(lie.len())].to_le_bytes();
                for (byte, lie) in bytes[at..].iter_mut().zip(lie) {
                    *byte = lie;
                }
            }
            3 => bytes.truncate(at),
            _ => bytes.extend_from_slice(&[0xff; 5]),
        }
    }
}

#[test]
fn noise_is_read_or_refused() {
    let Some(types) = RosTypes::find() else { return };
    let mut random = Random(99);
    for name in types.messages() {
        for language in LANGUAGES {
            let mut message = types.make(&name, language);
            for _ in 0..100 {
                let length = random.below(300);
                let mut bytes = vec![0, (random.next() & 1) as u8, 0, 0];
                let sparse = random.below(3);
                bytes.extend((0..length).map(|_| match sparse {
                    0 => random.next() as u8,
                    // Mostly zeros and small numbers, so that lengths are believed.
                    _ if random.below(4) == 0 => random.below(5) as u8,
                    _ => 0,
                }));
                if message.deserialize(&bytes).is_ok() {
                    message.serialize().unwrap();
                }
            }
        }
    }
}

#[test]
fn bounds_hold_in_both_directions() {
    let Some(types) = RosTypes::find() else { return };
    let set = definitions(&types);
    let strings = set.load("tsuji_test_msgs/msg/Strings").unwrap();
    let wide = set.load("tsuji_test_msgs/msg/WStrings").unwrap();
    // The same fields without bounds make the bytes that break them.
    let loose = |bounded: &str, file: &str| {
        let text = file
            .replace("<=22", "")
            .replace("<=5", "")
            .replace("<=2", "")
            .replace("<=4", "")
            .replace("<=3", "");
        TypeSet::new(AmentIndex::from_env_value(types.root())).load_text(bounded, &text).unwrap()
    };
    let text = |length: usize| Value::Text("x".repeat(length));
    for (ty, field, value, bound) in [
        (&strings, "bounded_string_value", text(23), 22),
        (&strings, "bounded_string_values", list([text(22), text(23)]), 22),
        (&strings, "doubly_bounded_string_values", list([text(5), text(6)]), 5),
        (&strings, "doubly_bounded_string_values", list([text(1), text(1), text(1)]), 2),
        (&strings, "array_of_bounded_string_values", list([text(1), text(6)]), 5),
        (&wide, "bounded_wstring_value", text(5), 4),
        (&wide, "bounded_sequence_of_wstrings", list([text(1), text(1), text(1), text(1)]), 3),
    ] {
        let name = ty.name().to_string();
        let mut broken = DynamicMessage::new(loose(&name, ty.text()));
        broken.set(field, value).unwrap();
        for language in LANGUAGES {
            let mut message = types.make(&name, language);
            let error = message.deserialize(&broken.encode().unwrap()).unwrap_err();
            assert!(error.field().starts_with(field), "{error}");
            assert!(
                matches!(error.problem(), PlanProblem::Bound { bound: b, .. } if *b == bound),
                "{error}"
            );
            let mut message = types.make(&name, language);
            message.fill(&broken);
            let error = message.serialize().unwrap_err();
            assert!(error.field().starts_with(field), "{error}");
            assert!(
                matches!(error.problem(), PlanProblem::Bound { bound: b, .. } if *b == bound),
                "{error}"
            );
        }
    }
}

fn list<const N: usize>(values: [Value; N]) -> Value {
    let mut list = tsuji_msg::List::Text(Vec::new());
    for value in values {
        list.push(value).expect("a text");
    }
    Value::List(list)
}

#[test]
fn what_is_fixed_and_what_is_plain() {
    let Some(types) = RosTypes::find() else { return };
    for (name, fixed, plain) in [
        ("geometry_msgs/msg/Point", Some(28), true),
        ("geometry_msgs/msg/Pose", Some(60), true),
        ("geometry_msgs/msg/PoseWithCovariance", Some(4 + 56 + 288), true),
        ("builtin_interfaces/msg/Time", Some(12), true),
        ("tsuji_test_msgs/msg/Plain", Some(44), true),
        ("std_msgs/msg/Empty", Some(5), false),
        ("std_msgs/msg/Bool", Some(5), false),
        ("tsuji_test_msgs/msg/Small", Some(7), false),
        ("tsuji_test_msgs/msg/BasicTypes", Some(52), false),
        ("tsuji_test_msgs/msg/Padded", None, false),
        ("std_msgs/msg/Header", None, false),
    ] {
        for language in LANGUAGES {
            let message = types.make(name, language);
            assert_eq!(message.plan.fixed_size(), fixed, "{name} in {language}");
            assert_eq!(message.plan.is_plain(), plain, "{name} in {language}");
            if plain {
                let bytes = message.serialize().unwrap();
                // SAFETY: a plain message has no padding.
                let memory = unsafe {
                    std::slice::from_raw_parts(
                        message.at().cast::<u8>(),
                        message.plan.message_size(),
                    )
                };
                assert_eq!(&bytes[4..], memory);
            }
        }
    }
}

#[test]
fn a_service_has_two_plans() {
    let Some(types) = RosTypes::find() else { return };
    for language in LANGUAGES {
        // SAFETY: of generated code.
        let plans = unsafe {
            of_service(types.service("example_interfaces/srv/AddTwoInts", language), &HUMBLE)
        }
        .unwrap();
        assert_eq!(plans.type_name, "example_interfaces/srv/AddTwoInts");
        assert_eq!(plans.request.type_name(), "example_interfaces/srv/AddTwoInts_Request");
        assert_eq!(plans.response.type_name(), "example_interfaces/srv/AddTwoInts_Response");
        assert_eq!(plans.request.fixed_size(), Some(20));
        assert_eq!(plans.response.fixed_size(), Some(12));
    }
}

#[test]
fn a_plan_is_compiled_once_and_for_one_language() {
    let Some(types) = RosTypes::find() else { return };
    let name = "std_msgs/msg/String";
    let c = types.plan(name, "c");
    assert!(Arc::ptr_eq(&c, &types.plan(name, "c")));
    assert!(!Arc::ptr_eq(&c, &types.plan(name, "cpp")));
    // SAFETY: of generated code.
    let direct = unsafe { of_message(types.introspection(name, "c"), &HUMBLE) }.unwrap();
    assert!(Arc::ptr_eq(&c, &direct));
    // SAFETY: as above.
    assert_eq!(unsafe { type_hash(types.message(name, "c"), &HUMBLE) }, None);
}

#[test]
fn a_type_support_that_leads_nowhere_is_refused_without_an_error_left_behind() {
    let Some(types) = RosTypes::find() else { return };
    let mut support: rosidl_message_type_support_t =
        // SAFETY: a type support.
        unsafe { *types.message("std_msgs/msg/String", "c") };
    support.typesupport_identifier = c"another".as_ptr();
    // Looks for its own identifier first, and then for that of the other language.
    support.func = None;
    // SAFETY: a type support with no way on.
    let error = unsafe { of_message(&support, &HUMBLE) }.unwrap_err();
    assert_eq!(error.kind(), PlanErrorKind::Unsupported);
    assert!(matches!(error.problem(), PlanProblem::NoIntrospection(_)));
    // SAFETY: null is allowed.
    let refused = unsafe { of_message(ptr::null(), &HUMBLE) }.unwrap_err();
    assert_eq!(refused.problem(), &PlanProblem::Null);

    // One that does not know its own name sets an error each time it is asked.
    // SAFETY: a type support.
    let mut renamed = unsafe { *types.message("std_msgs/msg/Header", "cpp") };
    renamed.typesupport_identifier = c"another".as_ptr();
    // SAFETY: a type support.
    let error = unsafe { of_message(&renamed, &HUMBLE) }.unwrap_err();
    let PlanProblem::NoIntrospection(why) = error.problem() else { panic!("{error}") };
    assert_eq!(why, "no such type support");
    assert!(error.to_string().contains(why.as_str()), "{error}");
    // SAFETY: the library is loaded with the types.
    unsafe {
        let library =
            libc::dlopen(c"librcutils.so.1d".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        let is_set = libc::dlsym(library, c"rcutils_error_is_set".as_ptr());
        let is_set = std::mem::transmute::<*mut _, unsafe extern "C" fn() -> bool>(is_set);
        assert!(!is_set());
    }
}

#[test]
fn null_pointers_are_empty_or_an_error() {
    let Some(types) = RosTypes::find() else { return };
    let message = types.make("std_msgs/msg/String", "c");
    // SAFETY: the field is a C string.
    let text = unsafe { &mut *message.field("data").cast::<rosidl_runtime_c__String>() };
    let kept = *text;
    *text = rosidl_runtime_c__String { data: ptr::null_mut(), size: 0, capacity: 0 };
    assert_eq!(message.serialize().unwrap(), [0, 1, 0, 0, 1, 0, 0, 0, 0]);
    text.size = 3;
    assert_eq!(
        message.serialize().unwrap_err().to_string(),
        "std_msgs/msg/String, data: byte 4: a null pointer"
    );
    *text = kept;
    // SAFETY: null is allowed.
    unsafe {
        assert_eq!(
            message.plan.serialized_size(ptr::null()).unwrap_err().problem(),
            &PlanProblem::Null
        );
        assert_eq!(
            message.plan.serialize(ptr::null(), &mut []).unwrap_err().problem(),
            &PlanProblem::Null
        );
        assert_eq!(
            message.plan.deserialize(&[], ptr::null_mut()).unwrap_err().problem(),
            &PlanProblem::Null
        );
    }
}

#[test]
fn memory_is_used_again() {
    let Some(types) = RosTypes::find() else { return };
    let message = |length: usize| sensor_msgs::msg::Image {
        data: vec![length as u8; length],
        encoding: "e".repeat(length),
        ..Default::default()
    };
    let mut image = types.make("sensor_msgs/msg/Image", "c");
    image.deserialize(&message(100).to_vec().unwrap()).unwrap();
    // SAFETY: all strings and sequences look alike.
    let sequence = |field| unsafe { *image.field(field).cast::<rosidl_runtime_c__String>() };
    let (data, encoding) = (sequence("data"), sequence("encoding"));
    assert_eq!((data.size, data.capacity), (100, 100));
    image.deserialize(&message(60).to_vec().unwrap()).unwrap();
    // SAFETY: as above.
    let sequence = |field| unsafe { *image.field(field).cast::<rosidl_runtime_c__String>() };
    assert_eq!(sequence("data").data, data.data);
    assert_eq!(sequence("data").size, 60);
    assert_eq!(sequence("data").capacity, 100);
    assert_eq!(sequence("encoding").data, encoding.data);
    assert_eq!(sequence("encoding").size, 60);
}

#[test]
fn an_output_that_is_too_small_is_refused_at_every_size() {
    let Some(types) = RosTypes::find() else { return };
    let set = definitions(&types);
    for name in [
        "tsuji_test_msgs/msg/UnboundedSequences",
        "tsuji_test_msgs/msg/WStrings",
        "tsuji_test_msgs/msg/Padded",
    ] {
        let value = Random(5).message(&set.load(name).unwrap());
        for language in LANGUAGES {
            let mut message = types.make(name, language);
            message.fill(&value);
            let size = message.serialize().unwrap().len();
            for room in 0..size {
                let mut out = vec![0; room];
                // SAFETY: a message of the plan's type.
                let error = unsafe { message.plan.serialize(message.at(), &mut out) }.unwrap_err();
                assert_eq!(error.kind(), PlanErrorKind::NoRoom, "{error}");
            }
        }
    }
}

#[test]
fn an_error_names_type_field_and_byte() {
    let Some(types) = RosTypes::find() else { return };
    for language in LANGUAGES {
        let mut message = types.make("geometry_msgs/msg/PoseStamped", language);
        let error = message
            .deserialize(b"\x00\x01\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x09\x00\x00\x00ab")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "geometry_msgs/msg/PoseStamped, header.frame_id: byte 16: a length of 9 is more than the 2 bytes left can hold"
        );
        let mut message = types.make("tsuji_test_msgs/msg/MultiNested", language);
        let value = DynamicMessage::new(
            definitions(&types).load("tsuji_test_msgs/msg/MultiNested").unwrap(),
        );
        let mut bytes = value.encode().unwrap();
        // The first is a bool.
        bytes[4] = 2;
        let error = message.deserialize(&bytes).unwrap_err();
        assert_eq!(error.field(), "array_of_arrays[0].bool_values");
        assert_eq!(error.problem(), &PlanProblem::Bool(2));
    }
}

/// What introspection says of a type is its definition: its hash is the same as that of the text which it was generated from.
#[test]
fn a_definition_is_told_by_introspection() {
    let Some(types) = RosTypes::find() else { return };
    let set = definitions(&types);
    for name in types.messages() {
        let expect = set.load(&name).unwrap();
        for language in LANGUAGES {
            // SAFETY: of generated code.
            let text = unsafe { definition(types.message(&name, language), &HUMBLE) }.unwrap();
            let told = tsuji_msg::load_full_text(&name, &text).unwrap();
            assert_eq!(told.hash(), expect.hash(), "{name} {language}:\n{text}");
        }
    }
}
