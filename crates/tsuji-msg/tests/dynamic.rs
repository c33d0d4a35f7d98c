//! Dynamic messages: YAML, JSON, paths.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "support/random.rs"]
mod random;

use proptest::prelude::*;
use random::{Random, SHAPES, shapes};
use serde_json::json;
use std::sync::Arc;
use tsuji_msg::{
    Bytes, Detail, DynamicMessage, EchoStyle, JsonStyle, List, Now, TypeDescription, TypeSet, Value,
};

fn ty(text: &str) -> Arc<TypeDescription> {
    let mut texts = shapes();
    texts.insert("geometry_msgs/msg/Vector3".into(), "float64 x\nfloat64 y\nfloat64 z\n".into());
    texts.insert("builtin_interfaces/msg/Time".into(), "int32 sec\nuint32 nanosec\n".into());
    texts.insert(
        "std_msgs/msg/Header".into(),
        "builtin_interfaces/Time stamp\nstring frame_id\n".into(),
    );
    TypeSet::new(texts).load_text("test_pkg/msg/Test", text).unwrap()
}

fn twist() -> Arc<TypeDescription> {
    ty("geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n")
}

fn echo(definition: &str, yaml: &str) -> String {
    DynamicMessage::from_yaml(&ty(definition), yaml).unwrap().to_yaml(EchoStyle::default())
}

#[test]
fn yaml_as_topic_pub_takes_it() {
    let message =
        DynamicMessage::from_yaml(&twist(), "{linear: {x: 1.0}, angular: {z: 0.5}}").unwrap();
    assert_eq!(*message.get("linear.x").unwrap(), Value::F64(1.0));
    assert_eq!(*message.get("angular.z").unwrap(), Value::F64(0.5));
    assert_eq!(
        message.to_yaml(EchoStyle::default()),
        "linear:\n  x: 1.0\n  y: 0.0\n  z: 0.0\nangular:\n  x: 0.0\n  y: 0.0\n  z: 0.5\n"
    );
    for empty in ["", "{}", "---\n", "# nothing\n"] {
        assert_eq!(
            DynamicMessage::from_yaml(&twist(), empty).unwrap(),
            DynamicMessage::new(twist()),
            "{empty:?}"
        );
    }
    let block =
        DynamicMessage::from_yaml(&twist(), "linear:\n  x: 1\n  y: -2e3\nangular: {z: .inf}\n")
            .unwrap();
    assert_eq!(*block.get("linear.y").unwrap(), Value::F64(-2000.0));
    assert_eq!(*block.get("angular.z").unwrap(), Value::F64(f64::INFINITY));
}

#[test]
fn a_word_is_read_as_ros2_topic_pub_reads_it() {
    let words = [
        // YAML reads a value, and Python's str() makes a text of it.
        ("string a", "a: 1.10", Value::Text("1.1".into())),
        ("string a", "a: '1.10'", Value::Text("1.10".into())),
        ("string a", "a: !!str 1.10", Value::Text("1.10".into())),
        ("string a", "a: true", Value::Text("True".into())),
        ("string a", "a: off", Value::Text("False".into())),
        ("string a", "a: 010", Value::Text("8".into())),
        ("string a", "a: 1.0e+20", Value::Text("1e+20".into())),
        ("string a", "a: 1e3", Value::Text("1e3".into())),
        ("string a", "a: .inf", Value::Text("inf".into())),
        ("string a", "a: 1:30", Value::Text("90".into())),
        ("string a", "a: 2024-01-31", Value::Text("2024-01-31".into())),
        ("string a", "a: ''", Value::Text(String::new())),
        ("string a", "a: 'null'", Value::Text("null".into())),
        ("int32 a", "a: 010", Value::I32(8)),
        ("int32 a", "a: 08", Value::I32(8)),
        ("int32 a", "a: '010'", Value::I32(10)),
        ("int32 a", "a: 1_000", Value::I32(1000)),
        ("int32 a", "a: 0b101", Value::I32(5)),
        ("int32 a", "a: 1:30", Value::I32(90)),
        ("int32 a", "a: 2.0", Value::I32(2)),
        ("int32[] a", "a: [010, 0x10]", Value::List(List::I32(vec![8, 16]))),
        ("float64 a", "a: '1'", Value::F64(1.0)),
        ("float64 a", "a: 010", Value::F64(8.0)),
        ("float64 a", "a: -.5", Value::F64(-0.5)),
        ("float64 a", "a: -inf", Value::F64(f64::NEG_INFINITY)),
        ("float64[] a", "a: [1, 1e-3]", Value::List(List::F64(vec![1.0, 1e-3]))),
        ("float32 a", "a: .inf", Value::F32(f32::INFINITY)),
        ("bool a", "a: 1", Value::Bool(true)),
        ("bool a", "a: 0", Value::Bool(false)),
        ("byte a", "a: '5'", Value::U8(b'5')),
        ("string a", "a: \"x\\ny\"", Value::Text("x\ny".into())),
        ("bool a", "a: yes", Value::Bool(true)),
        ("bool a", "a: False", Value::Bool(false)),
        ("uint8 a", "a: 0xff", Value::U8(255)),
        ("int64 a", "a: -9223372036854775808", Value::I64(i64::MIN)),
        ("uint64 a", "a: 18446744073709551615", Value::U64(u64::MAX)),
        ("float32 a", "a: 1", Value::F32(1.0)),
        ("float64 a", "a: 1e-7", Value::F64(1e-7)),
        ("byte a", "a: \"\\0\"", Value::U8(0)),
        ("byte a", "a: \"\\x80\"", Value::U8(128)),
        ("byte a", "a: 5", Value::U8(5)),
        ("char a", "a: 65", Value::U8(65)),
        ("uint8[] a", "a: [1, 2]", Value::List(List::U8(vec![1, 2]))),
        ("string[] a", "a: ['1', b c]", Value::List(List::Text(vec!["1".into(), "b c".into()]))),
    ];
    for (definition, yaml, expected) in words {
        let message = DynamicMessage::from_yaml(&ty(definition), yaml).unwrap();
        assert_eq!(*message.get("a").unwrap(), expected, "{definition}: {yaml}");
    }
}

#[test]
fn yaml_errors_name_the_field_and_what_was_expected() {
    for (definition, yaml, expected) in [
        (
            "uint8 a",
            "a: 256",
            "field `a`: found `256`; expected uint8, a whole number from 0 to 255 (line 1, column 4)",
        ),
        (
            "uint8 a",
            "b: 1",
            "found the name `b`; expected a field of test_pkg/msg/Test: a (line 1, column 1)",
        ),
        (
            "",
            "b: 1",
            "found the name `b`; expected no field, test_pkg/msg/Test is empty (line 1, column 1)",
        ),
        ("bool a", "a: 2", "field `a`: found `2`; expected bool (line 1, column 4)"),
        ("float64 a", "a: x", "field `a`: found `x`; expected float64 (line 1, column 4)"),
        ("float64 a", "\na: 'x'", "field `a`: found `x`; expected float64 (line 2, column 4)"),
        ("float64[] a", "a: ['1']", "field `a[0]`: found `1`; expected float64 (line 1, column 5)"),
        (
            "float32 a",
            "a: 1.0e+39",
            "field `a`: found `1.0e+39`; expected float32 (line 1, column 4)",
        ),
        ("int32 a", "a: 1.5", "field `a`: found `1.5`; expected int32, a whole number from"),
        ("int32 a", "a: 0o17", "field `a`: found `0o17`; expected int32, a whole number from"),
        ("bool a", "a: 'false'", "field `a`: found `false`; expected bool (line 1, column 4)"),
        (
            "string a",
            "a: null",
            "field `a`: found `null`; expected string; a text like this stands in quotes (line 1, column 4)",
        ),
        (
            "string a",
            "a: 2024-01-31T12:00:00",
            "field `a`: found `2024-01-31T12:00:00`; expected string; a text like this stands in quotes",
        ),
        (
            "string[] a",
            "a: [b, 1]",
            "field `a[1]`: found `1`; expected string; a text like this stands in quotes (line 1, column 8)",
        ),
        ("string a", "a: [1]", "field `a`: found a sequence; expected string (line 1, column 4)"),
        ("string a", "a:", "field `a`: found nothing; expected string"),
        (
            "uint8[] a",
            "a: 1",
            "field `a`: found `1`; expected a sequence (uint8[]) (line 1, column 4)",
        ),
        (
            "uint8[2] a",
            "a: [1]",
            "field `a`: found 1 elements; expected exactly 2 (uint8[2]) (line 1, column 4)",
        ),
        (
            "uint8[<=1] a",
            "a: [1, 2]",
            "field `a`: found 2 elements; expected at most 1 (uint8[<=1]) (line 1, column 4)",
        ),
        (
            "uint8[] a",
            "a: [1, x]",
            "field `a[1]`: found `x`; expected uint8, a whole number from 0 to 255 (line 1, column 8)",
        ),
        (
            "string<=2 a",
            "a: abc",
            "field `a`: found `abc`; expected string of at most 2 bytes (line 1, column 4)",
        ),
        (
            "geometry_msgs/Vector3[] p",
            "p: [{x: 1}, {x: a}]",
            "field `p[1].x`: found `a`; expected float64 (line 1, column 17)",
        ),
        (
            "geometry_msgs/Vector3 p",
            "p: 1",
            "field `p`: found `1`; expected a mapping with the fields of geometry_msgs/msg/Vector3 (line 1, column 4)",
        ),
        (
            "uint8 a",
            "{a: 1, a: 2}",
            "found the name `a` again; expected each name at most once (line 1, column 8)",
        ),
        ("uint8 a", "a: &x 1", ""),
        (
            "uint8 a\nuint8 b",
            "{a: &x 1, b: *x}",
            "found an alias; expected a value written out (line 1, column 14)",
        ),
        (
            "uint8 a",
            "? [a]\n: 1",
            "found a collection as a name; expected a name (line 1, column 3)",
        ),
        (
            "uint8 a",
            "a: 1\n---\na: 2",
            "found a second document; expected one document (line 2, column 1)",
        ),
    ] {
        let found =
            DynamicMessage::from_yaml(&ty(definition), yaml).map_err(|error| error.to_string());
        let found = found.err().unwrap_or_default();
        assert!(
            found.starts_with(expected),
            "{definition}: {yaml}\n  found: {found}\n  expected: {expected}"
        );
        assert_eq!(found.is_empty(), expected.is_empty(), "{yaml}: {found}");
    }
    assert!(
        DynamicMessage::from_yaml(&ty("uint8 a"), "{a: 1")
            .unwrap_err()
            .to_string()
            .contains("expected YAML")
    );
    let deep = "[".repeat(1000);
    assert!(DynamicMessage::from_yaml(&ty("uint8 a"), &deep).is_err());
}

#[test]
fn now_and_auto() {
    let header = ty("std_msgs/Header header\nbuiltin_interfaces/Time time\n");
    let now = Now { sec: 7, nanosec: 8 };
    let message = DynamicMessage::from_yaml_at(&header, "{header: auto, time: now}", now).unwrap();
    assert_eq!(*message.get("header.stamp.sec").unwrap(), Value::I32(7));
    assert_eq!(*message.get("time.nanosec").unwrap(), Value::U32(8));
    let message =
        DynamicMessage::from_yaml_at(&header, "{header: {stamp: now, frame_id: map}}", now)
            .unwrap();
    assert_eq!(*message.get("header.stamp.nanosec").unwrap(), Value::U32(8));
    assert!(DynamicMessage::from_yaml(&header, "{header: auto}").is_err());
}

#[test]
fn tags_of_yaml_are_heeded_or_refused() {
    let tag = "no tag, or one of !!str, !!int, !!float, !!bool and !!null";
    for (definition, yaml, expected) in [
        ("string a", "{a: !!str 1}", Ok("a: '1'\n")),
        ("string a", "{a: !!float 1}", Ok("a: '1.0'\n")),
        ("string a", "{a: !!int 010}", Ok("a: '8'\n")),
        ("string a", "{a: !!bool 'yes'}", Ok("a: 'True'\n")),
        ("string a", "{a: ! x}", Ok("a: x\n")),
        ("int32 a", "{a: !<tag:yaml.org,2002:int> '1:30'}", Ok("a: 90\n")),
        ("float64 a", "!!map {!!str a: !!float 1e3}", Ok("a: 1000.0\n")),
        ("bool[] a", "a: !!seq [!!bool On]", Ok("a:\n- true\n")),
        (
            "string a",
            "{a: !!binary aGVsbG8=}",
            Err(format!("found `aGVsbG8=` with the tag `!!binary`; expected {tag} (line 1, column 5)")),
        ),
        (
            "string a",
            "a:\n  !foo x",
            Err(format!("found `x` with the tag `!foo`; expected {tag} (line 2, column 3)")),
        ),
        (
            "string a",
            "{!foo a: x}",
            Err(format!("found `a` with the tag `!foo`; expected {tag} (line 1, column 2)")),
        ),
        (
            "int32 a",
            "{a: !!int 1.5}",
            Err("found `1.5` with the tag `!!int`; expected a whole number (line 1, column 5)".into()),
        ),
        (
            "string a",
            "{a: !!null x}",
            Err("field `a`: found `null`; expected string; a text like this stands in quotes (line 1, column 5)".into()),
        ),
        (
            "int32[] a",
            "{a: !!set [1]}",
            Err("found a sequence with the tag `!!set`; expected !!seq or no tag (line 1, column 5)".into()),
        ),
        (
            "int32[] a",
            "!!seq {a: [1]}",
            Err("found a mapping with the tag `!!seq`; expected !!map or no tag (line 1, column 1)".into()),
        ),
    ] {
        let found = DynamicMessage::from_yaml(&ty(definition), yaml);
        let found = found.map(|it| it.to_yaml(EchoStyle::default())).map_err(|it| it.to_string());
        assert_eq!(found, expected.map(str::to_owned), "{yaml}");
    }
}

#[test]
fn yaml_as_topic_echo_prints_it() {
    assert_eq!(echo("", ""), "{}\n");
    for (text, printed) in [
        ("hello", "hello"),
        ("", "''"),
        ("hello world", "hello world"),
        ("1", "'1'"),
        ("1.5", "'1.5'"),
        ("true", "'true'"),
        ("Null", "'Null'"),
        ("~", "'~'"),
        ("it's", "it's"),
        ("'", "''''"),
        ("a: b", "'a: b'"),
        ("a:", "'a:'"),
        ("a:b", "a:b"),
        ("- a", "'- a'"),
        ("-a", "-a"),
        ("#a", "'#a'"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("[a", "'[a'"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("日本", "日本"),
        ("2024-01-02", "'2024-01-02'"),
        ("12:30", "'12:30'"),
        ("a\nb", "\"a\\nb\""),
        ("\t", "\"\\t\""),
        ("\0", "\"\\0\""),
        ("\u{1}", "\"\\x01\""),
        ("...", "'...'"),
        ("<tag>", "<tag>"),
    ] {
        let mut message = DynamicMessage::new(ty("string data"));
        message.set("data", Value::Text(text.into())).unwrap();
        let yaml = message.to_yaml(EchoStyle::default());
        assert_eq!(yaml, format!("data: {printed}\n"));
        assert_eq!(DynamicMessage::from_yaml(message.ty(), &yaml).unwrap(), message);
    }
    for (number, printed) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (1e15, "1000000000000000.0"),
        (1e16, "1.0e+16"),
        (1.5e300, "1.5e+300"),
        (1e-4, "0.0001"),
        (1e-5, "1.0e-05"),
        (-1.25e-7, "-1.25e-07"),
        (f64::INFINITY, ".inf"),
        (f64::NEG_INFINITY, "-.inf"),
        (f64::NAN, ".nan"),
    ] {
        let mut message = DynamicMessage::new(ty("float64 data"));
        message.set("data", Value::F64(number)).unwrap();
        assert_eq!(message.to_yaml(EchoStyle::default()), format!("data: {printed}\n"));
    }
    assert_eq!(
        echo("float32 a\nbyte b\nchar c\nbool d", "{a: 0.1, b: 0, c: 65, d: true}"),
        "a: 0.10000000149011612\nb: \"\\0\"\nc: 65\nd: true\n"
    );
    assert_eq!(
        echo(
            "uint8[] a\nstring[] b\ngeometry_msgs/Vector3[] c\nfloat64[2] d\nshapes/Empty e\nshapes/Empty[] f",
            "{a: [1, 2], c: [{x: 1}, {}], f: [{}]}"
        ),
        "a:\n- 1\n- 2\nb: []\nc:\n- x: 1.0\n  y: 0.0\n  z: 0.0\n- x: 0.0\n  y: 0.0\n  z: 0.0\nd:\n- 0.0\n- 0.0\ne: {}\nf:\n- {}\n"
    );
}

#[test]
fn echo_cuts_and_summarises() {
    let ty =
        ty("uint8[] a\nstring s\nfloat64[3] b\nbool[<=4] c\ngeometry_msgs/Vector3[] p\nstring[] t");
    let yaml = "{a: [1, 2, 3, 4], s: 'abcdé', c: [true], p: [{}, {}, {}], t: [abcdef]}";
    let message = DynamicMessage::from_yaml(&ty, yaml).unwrap();
    let cut = message.to_yaml(EchoStyle { limit: Some(2), ..EchoStyle::default() });
    assert!(
        cut.starts_with(
            "a:\n- 1\n- 2\n- '...'\ns: ab...\nb:\n- 0.0\n- 0.0\n- '...'\nc:\n- true\np:\n- x: 0.0\n"
        ),
        "{cut}"
    );
    assert!(cut.ends_with("- '...'\nt:\n- ab...\n"), "{cut}");
    let short = message.to_yaml(EchoStyle {
        limit: None,
        arrays: Detail::Summary,
        strings: Detail::Summary,
    });
    assert_eq!(
        short,
        "a: '<sequence type: uint8, length: 4>'\ns: '<string length: <5>>'\nb: '<array type: double[3]>'\n\
         c: '<sequence type: boolean[4], length: 1>'\np: '<sequence type: geometry_msgs/msg/Vector3, length: 3>'\n\
               t: '<sequence type: string, length: 1>'\n"
    );
}

#[test]
fn json_both_ways() {
    let ty = ty(
        "uint8[] data\nfloat64 f\nuint64 u\nint64 i\nstring s\nbool b\ngeometry_msgs/Vector3[] p\nfloat32[] g",
    );
    let text = json!({
        "data": [1, 2, 255], "f": null, "u": u64::MAX, "i": i64::MIN, "s": "x", "b": true, "p": [{"x": 1.5}], "g": [1, 0.5]
    });
    let message = DynamicMessage::from_json(&ty, &text).unwrap();
    assert!(matches!(*message.get("f").unwrap(), Value::F64(value) if value.is_nan()));
    let back = message.to_json(JsonStyle::default());
    let expected = json!({
        "data": [1, 2, 255], "f": null, "u": u64::MAX, "i": i64::MIN, "s": "x", "b": true,
        "p": [{"x": 1.5, "y": 0.0, "z": 0.0}], "g": [1.0, 0.5]
    });
    assert_eq!(back, expected);
    let base64 = message.to_json(JsonStyle { bytes: Bytes::Base64 });
    assert_eq!(base64["data"], "AQL/");
    assert_eq!(
        DynamicMessage::from_json(&ty, &json!({"u": 3.0})).unwrap().get("u").unwrap().as_ref(),
        &Value::U64(3)
    );
    for (json, expected) in [
        (
            json!({"data": "A"}),
            "field `data`: found `\"A\"`; expected uint8[], as numbers or in base64",
        ),
        (
            json!({"data": [256]}),
            "field `data[0]`: found `256`; expected uint8, a whole number from 0 to 255",
        ),
        (
            json!({"u": -1}),
            "field `u`: found `-1`; expected uint64, a whole number from 0 to 18446744073709551615",
        ),
        (
            json!({"u": 1.5}),
            "field `u`: found `1.5`; expected uint64, a whole number from 0 to 18446744073709551615",
        ),
        (
            json!({"u": "1"}),
            "field `u`: found `\"1\"`; expected uint64, a whole number from 0 to 18446744073709551615",
        ),
        (json!({"s": 1}), "field `s`: found `1`; expected string"),
        (
            json!({"p": [{"q": 1}]}),
            "field `p[0]`: found the name `q`; expected a field of geometry_msgs/msg/Vector3: x, y, z",
        ),
        (
            json!({"p": {}}),
            "field `p`: found an object; expected a sequence (geometry_msgs/msg/Vector3[])",
        ),
        (json!([]), "found an array; expected a mapping with the fields of test_pkg/msg/Test"),
    ] {
        assert_eq!(DynamicMessage::from_json(&ty, &json).unwrap_err().to_string(), expected);
    }
}

#[test]
fn base64_of_every_length() {
    let ty = ty("uint8[] data");
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
    ] {
        let message = DynamicMessage::from_json(&ty, &json!({"data": text})).unwrap();
        assert_eq!(*message.get("data").unwrap(), Value::List(List::U8(bytes.into())));
        assert_eq!(message.to_json(JsonStyle { bytes: Bytes::Base64 }), json!({"data": text}));
        let bare =
            DynamicMessage::from_json(&ty, &json!({"data": text.trim_end_matches('=')})).unwrap();
        assert_eq!(bare, message);
    }
    for bad in ["Zg=", "Z", "Zg==Zg==", "Z===", "Zm 9v", "====", "=", "Zé=="] {
        assert!(DynamicMessage::from_json(&ty, &json!({"data": bad})).is_err(), "{bad}");
    }
}

#[test]
fn paths() {
    let ty = ty("geometry_msgs/Vector3[] p\nuint8[] a\nstd_msgs/Header h\nstring[2] s");
    let mut message = DynamicMessage::from_yaml(&ty, "{p: [{x: 1}, {x: 2}], a: [5, 6]}").unwrap();
    assert_eq!(*message.get("p[1].x").unwrap(), Value::F64(2.0));
    assert_eq!(*message.get("a[1]").unwrap(), Value::U8(6));
    assert_eq!(*message.get("h.stamp.sec").unwrap(), Value::I32(0));
    assert!(matches!(*message.get("p[0]").unwrap(), Value::Message(_)));
    message.set("p[1].x", Value::F64(9.0)).unwrap();
    message.set("a[0]", Value::U8(1)).unwrap();
    message.set("h.stamp.sec", Value::I32(4)).unwrap();
    message.set("s", Value::List(List::Text(vec!["a".into(), "b".into()]))).unwrap();
    assert_eq!(*message.get("p[1].x").unwrap(), Value::F64(9.0));
    assert_eq!(*message.get("a").unwrap(), Value::List(List::U8(vec![1, 6])));
    for path in [
        "",
        ".",
        "p.",
        "p[",
        "p[x]",
        "p[1",
        "p[0]y",
        "q",
        "p[2]",
        "p[2].x",
        "a[9]",
        "a[0].x",
        "h.stamp.sec.x",
        "h.stamp.sec[0]",
        "p.x",
        "h.q",
        "a[0][0]",
    ] {
        assert!(message.get(path).is_err(), "{path}");
        assert!(message.set(path, Value::U8(1)).is_err(), "{path}");
    }
    for (path, value) in [
        ("p", Value::U8(1)),
        ("p", Value::List(List::U8(vec![]))),
        ("p[0]", Value::Message(DynamicMessage::new(twist()))),
        ("a", Value::List(List::I8(vec![]))),
        ("a[0]", Value::U16(1)),
        ("s", Value::List(List::Text(vec![]))),
        ("h", Value::Message(DynamicMessage::new(twist()))),
        ("h.frame_id", Value::Bool(true)),
    ] {
        assert!(message.set(path, value.clone()).is_err(), "{path} {value:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn yaml_and_json_come_back(seed: u64) {
        let set = TypeSet::new(shapes());
        for (name, _) in SHAPES.iter().filter(|(name, _)| name.contains("/msg/")) {
            let ty = set.load(name).unwrap();
            let message = Random(seed).message(&ty);
            let yaml = message.to_yaml(EchoStyle::default());
            prop_assert_eq!(&DynamicMessage::from_yaml(&ty, &yaml).unwrap(), &message, "{}", yaml);
            for bytes in [Bytes::Numbers, Bytes::Base64] {
                // Infinities become null in JSON and come back as NaN, so the texts are compared.
                let json = message.to_json(JsonStyle { bytes });
                let back = DynamicMessage::from_json(&ty, &json).unwrap();
                prop_assert_eq!(back.to_json(JsonStyle { bytes }), json);
            }
        }
    }

    #[test]
    fn no_yaml_panics(text in "(?s).{0,100}", shaped in "([a-z]: |[\\[\\]{},:\n -]|[0-9]+|'|\"|&a |\\*a|\\||>|!!x |true){0,30}") {
        let ty = ty("uint8 a\nstring b\nfloat64[] c\ngeometry_msgs/Vector3 d");
        let _ = DynamicMessage::from_yaml(&ty, &text);
        let _ = DynamicMessage::from_yaml(&ty, &shaped);
    }
}

#[test]
fn yaml_in_one_line() {
    let definition =
        "string a\nuint8[] b\ngeometry_msgs/Vector3 c\nshapes/Empty d\nstring[] e\nfloat64[2] f";
    let yaml = "{a: \"x: y\", b: [1, 2, 3], c: {x: .5}, e: [\"a,b\", \"it's\"]}";
    let message = DynamicMessage::from_yaml(&ty(definition), yaml).unwrap();
    let style = EchoStyle { limit: Some(2), ..EchoStyle::default() };
    assert_eq!(
        message.to_yaml_flow(style),
        "{a: 'x:...', b: [1, 2, '...'], c: {x: 0.5, y: 0.0, z: 0.0}, d: {}, e: ['a,...', it...], f: [0.0, 0.0]}\n"
    );
    let text = message.to_yaml_flow(EchoStyle::default());
    assert_eq!(DynamicMessage::from_yaml(message.ty(), &text).unwrap(), message);
}
