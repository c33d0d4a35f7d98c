//! What is read, what is refused, and what is written, by example.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::sync::Arc;
use tsuji_codec::{DEFAULT_BYTES_MAX, DEPTH_MAX, FieldError, Format, Now, Plan, Raw, cbor, json};
use tsuji_msg::{TypeDescription, TypeSet};

const NOW: Now = Now { sec: 7, nanosec: 8 };

fn ty(definition: &str) -> Arc<TypeDescription> {
    let texts = [
        ("geometry_msgs/msg/Vector3", "float64 x\nfloat64 y\nfloat64 z\n"),
        ("builtin_interfaces/msg/Time", "int32 sec\nuint32 nanosec\n"),
        ("builtin_interfaces/msg/Duration", "int32 sec\nuint32 nanosec\n"),
        ("std_msgs/msg/Header", "builtin_interfaces/Time stamp\nstring frame_id\n"),
        ("std_msgs/msg/Empty", ""),
        ("huge/msg/Page", "uint8[1000000] data\n"),
    ];
    let texts: HashMap<String, String> =
        texts.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
    TypeSet::new(texts).load_text("test_pkg/msg/Test", definition).unwrap()
}

fn read(definition: &str, format: Format, bytes: &[u8]) -> Result<String, FieldError> {
    let plan = Plan::new(&ty(definition));
    let mut cdr = b"keep".to_vec();
    let result = plan.read(Raw::new(format, bytes), NOW, &mut cdr);
    assert_eq!(&cdr[..4], b"keep");
    if let Err(error) = result {
        assert_eq!(cdr.len(), 4, "nothing is appended when reading fails");
        return Err(error);
    }
    let mut out = Vec::new();
    plan.json_from_cdr(&cdr[4..], &mut out).unwrap();
    Ok(String::from_utf8(out).unwrap())
}

/// Reads JSON, and compares the message as JSON.
fn check(definition: &str, input: &str, expected: &str) {
    match read(definition, Format::Json, input.as_bytes()) {
        Ok(found) => assert_eq!(found, expected, "{definition}: {input}"),
        Err(error) => panic!("{definition}: {input}: {error}"),
    }
}

fn check_error(definition: &str, input: &str, expected: &str) {
    match read(definition, Format::Json, input.as_bytes()) {
        Ok(found) => panic!("{definition}: {input}: {found}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{definition}: {input}"),
    }
}

#[test]
fn a_text_that_is_not_utf_8_is_written_with_replacements() {
    let plan = Plan::new(&ty("string a\nwstring b\nstring[<=2] c\nuint8 d"));
    let mut sample = b"\0\x01\0\0\x04\0\0\0a\xffb\0".to_vec();
    sample.extend(b"\x01\0\0\0\0\xd8\0\0\x01\0\0\0\x02\0\0\0\xfe\0\x07");
    let mut json = Vec::new();
    plan.json_from_cdr(&sample, &mut json).unwrap();
    let expected = "{\"a\":\"a\u{fffd}b\",\"b\":\"\u{fffd}\",\"c\":[\"\u{fffd}\"],\"d\":7}";
    assert_eq!(String::from_utf8(json).unwrap(), expected);
    for format in [Format::Cbor, Format::Bson] {
        let (mut written, mut back) = (Vec::new(), Vec::new());
        plan.write(&sample, format, &mut written).unwrap();
        plan.read(Raw::new(format, &written), NOW, &mut back).unwrap();
        let mut json = Vec::new();
        plan.json_from_cdr(&back, &mut json).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), expected, "{format:?}");
    }
}

#[test]
fn fields_in_any_order_and_not_at_all() {
    let abc = "int32 a 1\nint32 b 2\nint32 c 3";
    check(abc, "{}", r#"{"a":1,"b":2,"c":3}"#);
    check(abc, r#"{"a":4,"b":5,"c":6}"#, r#"{"a":4,"b":5,"c":6}"#);
    check(abc, r#"{"c":6,"b":5,"a":4}"#, r#"{"a":4,"b":5,"c":6}"#);
    check(abc, r#"{"b":5}"#, r#"{"a":1,"b":5,"c":3}"#);
    check(abc, r#"{"a":4,"c":6}"#, r#"{"a":4,"b":2,"c":6}"#);
    check(abc, " { \"a\" : 4 ,\n\t\"\\u0062\" : 5 } \r\n", r#"{"a":4,"b":5,"c":3}"#);
    let nested = "geometry_msgs/Vector3[] v\nstring s";
    check(
        nested,
        r#"{"s":"}]","v":[{"z":1,"x":2},{},{"y":3}]}"#,
        r#"{"v":[{"x":2.0,"y":0.0,"z":1.0},{"x":0.0,"y":0.0,"z":0.0},{"x":0.0,"y":3.0,"z":0.0}],"s":"}]"}"#,
    );
    check("", "{}", "{}");
    check("std_msgs/Empty[] e\nuint8 a", r#"{"e":[{},{}],"a":1}"#, r#"{"e":[{},{}],"a":1}"#);
    check_error(
        abc,
        r#"{"a":1,"d":2}"#,
        "found the name `d`; expected a field of test_pkg/msg/Test: a, b, c (byte 11)",
    );
    check_error(
        "",
        r#"{"d":2}"#,
        "found the name `d`; expected no field, test_pkg/msg/Test is empty (byte 5)",
    );
    check_error(
        abc,
        r#"{"c":1,"b":{},"d":2}"#,
        "found the name `d`; expected a field of test_pkg/msg/Test: a, b, c (byte 18)",
    );
    for twice in [r#"{"a":1,"a":2}"#, r#"{"b":1,"b":2}"#, r#"{"a":1,"c":2,"a":3}"#] {
        let error = read(abc, Format::Json, twice.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(" again; expected each name at most once"), "{error}");
    }
}

#[test]
fn fields_by_their_place() {
    let ab = "int32 a 1\ngeometry_msgs/Vector3 b\nstring c 'x'";
    check(ab, "[]", r#"{"a":1,"b":{"x":0.0,"y":0.0,"z":0.0},"c":"x"}"#);
    check(ab, r#"[2, {"x":1}]"#, r#"{"a":2,"b":{"x":1.0,"y":0.0,"z":0.0},"c":"x"}"#);
    check("", "[]", "{}");
    check_error(
        "int32 a",
        "[1, 2]",
        "found more than 1 values; expected at most 1 values, for the fields of test_pkg/msg/Test (byte 3)",
    );
    check_error(
        ab,
        "[1, [2]]",
        "field `b`: found a list; expected an object with the fields of geometry_msgs/msg/Vector3 (byte 4)",
    );
}

#[test]
fn numbers() {
    check("uint64 a", r#"{"a":18446744073709551615}"#, r#"{"a":18446744073709551615}"#);
    check("int64 a", r#"{"a":-9223372036854775808}"#, r#"{"a":-9223372036854775808}"#);
    check("int8[] a", "[[-128, 127, 0, -0, 3.0, 1e2, 0.5E1]]", r#"{"a":[-128,127,0,0,3,100,5]}"#);
    check("uint16 a", r#"{"a":65535}"#, r#"{"a":65535}"#);
    check(
        "float64[] a",
        "[[1, -0, -0.0, 0.1, 1e300, 5e-324, 1E+2, null, 123456789012345678901234567890, 18446744073709551616]]",
        r#"{"a":[1.0,-0.0,-0.0,0.1,1e+300,5e-324,100.0,null,1.2345678901234568e+29,1.8446744073709552e+19]}"#,
    );
    check("float32[] a", "[[0.1, 16777217, 1e-50, null]]", r#"{"a":[0.1,16777216.0,0.0,null]}"#);
    check("bool[] a\nbool b", "[[true,false],true]", r#"{"a":[true,false],"b":true}"#);
    check("char a\nbyte b", "[65, 255]", r#"{"a":65,"b":255}"#);
    for (definition, value, kind) in [
        ("uint8 a", "256", "uint8, a whole number from 0 to 255"),
        ("uint8 a", "-1", "uint8, a whole number from 0 to 255"),
        ("uint8 a", "1.5", "uint8, a whole number from 0 to 255"),
        ("uint8 a", "null", "uint8, a whole number from 0 to 255"),
        ("uint8 a", "true", "uint8, a whole number from 0 to 255"),
        (
            "uint64 a",
            "18446744073709551616",
            "uint64, a whole number from 0 to 18446744073709551615",
        ),
        (
            "int64 a",
            "1e18",
            "int64, a whole number from -9223372036854775808 to 9223372036854775807",
        ),
        (
            "int64 a",
            "1e999",
            "int64, a whole number from -9223372036854775808 to 9223372036854775807",
        ),
        ("float32 a", "1e39", "float32"),
        ("bool a", "NaN", "bool"),
        ("int8 a", "Infinity", "int8, a whole number from -128 to 127"),
        ("int8 a", "-Infinity", "int8, a whole number from -128 to 127"),
        ("float64 a", "false", "float64"),
        ("bool a", "1", "bool"),
        ("bool a", "null", "bool"),
        ("string a", "1", "string"),
        ("string a", "null", "string"),
    ] {
        check_error(
            definition,
            &format!("{{\"a\":{value}}}"),
            &format!("field `a`: found `{value}`; expected {kind} (byte 5)"),
        );
    }
    for bad in [
        "01", "-", "1.", ".5", "+1", "1e", "1e+", "--1", "0x1", "1_0", "nan", "inf", "-NaN", "-Inf",
    ] {
        let json = format!("{{\"a\":{bad}}}");
        assert!(read("float64 a", Format::Json, json.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn what_is_not_finite_may_be_as_python_writes_it() {
    check(
        "float64[] a",
        r#"{"a":[NaN, Infinity ,-Infinity,null,-1]}"#,
        r#"{"a":[null,null,null,null,-1.0]}"#,
    );
    let cdr = |text: &str| {
        let mut cdr = Vec::new();
        let plan = Plan::new(&ty("float64 a\nfloat32 b"));
        let json = format!(r#"{{"a":{text},"b":{text}}}"#);
        plan.read(Raw::new(Format::Json, json.as_bytes()), NOW, &mut cdr).unwrap();
        let a = f64::from_le_bytes(cdr[4..12].try_into().unwrap());
        let b = f32::from_le_bytes(cdr[12..16].try_into().unwrap());
        (a, b)
    };
    assert_eq!(cdr("Infinity"), (f64::INFINITY, f32::INFINITY));
    assert_eq!(cdr("-Infinity"), (f64::NEG_INFINITY, f32::NEG_INFINITY));
    // So is a number that no float can hold.
    assert_eq!(cdr("1e999"), (f64::INFINITY, f32::INFINITY));
    assert_eq!(cdr("-1.5e400"), (f64::NEG_INFINITY, f32::NEG_INFINITY));
    assert_eq!(cdr(&"9".repeat(400)), (f64::INFINITY, f32::INFINITY));
    let (a, b) = cdr("NaN");
    assert!(a.is_nan() && b.is_nan());
    // Clients of ROS 1 send it in members that are passed over, too.
    check(
        "std_msgs/Header h",
        r#"{"h":{"seq":NaN,"stamp":{"sec":1,"nanosec":2}}}"#,
        r#"{"h":{"stamp":{"sec":1,"nanosec":2},"frame_id":""}}"#,
    );
}

#[test]
fn texts() {
    check(
        "string a",
        r#"{"a":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude81"}"#,
        "{\"a\":\"\\\"\\\\/\\b\\f\\n\\r\\tä🚁\"}",
    );
    check(
        "wstring a\nwstring[] b",
        r#"["日本🚁", ["", "a\n"]]"#,
        r#"{"a":"日本🚁","b":["","a\n"]}"#,
    );
    check("string<=3 a\nwstring<=2 b", r#"["abc", "🚁"]"#, r#"{"a":"abc","b":"🚁"}"#);
    check_error(
        "string<=3 a",
        r#"["ää"]"#,
        "field `a`: found 4 bytes; expected string of at most 3 bytes (byte 7)",
    );
    check_error(
        "wstring<=2 a",
        r#"["abc"]"#,
        "field `a`: found 3 UTF-16 units; expected wstring of at most 2 UTF-16 units (byte 6)",
    );
    let bad = |json: &[u8], expected: &str| {
        let error = read("string a", Format::Json, json).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    bad(
        b"[\"ab\xff\"]",
        "field `a`: found bytes that are not UTF-8; expected a text in UTF-8 (byte 4)",
    );
    bad(
        br#"["ab\ud83d"]"#,
        "field `a`: found one half; expected both halves of a surrogate pair (byte 4)",
    );
    bad(
        br#"["a\x41"]"#,
        r"field `a`: found `\x`; expected one of JSON's escapes, such as `\n` and `\u000a` (byte 3)",
    );
    bad(
        b"[\"a\nb\"]",
        "field `a`: found the control character 10; expected it as an escape (byte 3)",
    );
    bad(br#"["ab"#, "field `a`: found the end; expected a text with a quote at its end (byte 4)");
}

#[test]
fn lists_and_bytes() {
    check("uint8[] a", r#"{"a":"AQL/"}"#, r#"{"a":"AQL/"}"#);
    check("uint8[] a", r#"{"a":"AQL\/"}"#, r#"{"a":"AQL/"}"#);
    check("uint8[] a", r#"{"a":[1,2,255]}"#, r#"{"a":"AQL/"}"#);
    check("byte[2] a\nchar[<=3] b", r#"["AQI", "AQI="]"#, r#"{"a":"AQI=","b":"AQI="}"#);
    check("uint8[] a", r#"{"a":""}"#, r#"{"a":""}"#);
    check("float64[] a\nuint8 b", "[[], 1]", r#"{"a":[],"b":1}"#);
    check("int16[2] a\nstring[<=2] b", r#"[[1,2],["x"]]"#, r#"{"a":[1,2],"b":["x"]}"#);
    for (definition, value, expected) in [
        ("uint8[2] a", "[1]", "found 1 elements; expected exactly 2 (uint8[2]) (byte 8)"),
        (
            "uint8[2] a",
            "[1,2,3]",
            "found more than 2 elements; expected exactly 2 (uint8[2]) (byte 10)",
        ),
        ("uint8[2] a", r#""AQID""#, "found 3 elements; expected exactly 2 (uint8[2]) (byte 11)"),
        (
            "uint8[<=1] a",
            "[1,2]",
            "found more than 1 elements; expected at most 1 (uint8[<=1]) (byte 8)",
        ),
        (
            "uint8[] a",
            r#""?""#,
            "found the text `?`; expected uint8[], as numbers or in base64 (byte 5)",
        ),
        ("uint8[] a", "null", "found `null`; expected uint8[], as numbers or in base64 (byte 5)"),
        ("float32[] a", "1", "found `1`; expected a list (float32[]) (byte 5)"),
        ("string[] a", r#""x""#, "found the text `x`; expected a list (string[]) (byte 5)"),
    ] {
        check_error(definition, &format!("{{\"a\":{value}}}"), &format!("field `a`: {expected}"));
    }
    check_error(
        "uint8[] a",
        r#"{"a":[1,{}]}"#,
        "field `a[1]`: found an object; expected uint8, a whole number from 0 to 255 (byte 8)",
    );
    check_error(
        "geometry_msgs/Vector3[] p",
        r#"{"p":[{"x":1},{"x":"a"}]}"#,
        "field `p[1].x`: found the text `a`; expected float64 (byte 19)",
    );
    check_error(
        "geometry_msgs/Vector3 p",
        r#"{"p":null}"#,
        "field `p`: found `null`; expected an object with the fields of geometry_msgs/msg/Vector3 (byte 5)",
    );
    check_error(
        "uint8 a",
        "null",
        "found `null`; expected an object with the fields of test_pkg/msg/Test (byte 0)",
    );
}

#[test]
fn times_and_headers() {
    let stamped = "std_msgs/Header header\nint32 a";
    let header = |sec, nanosec, frame: &str| {
        format!(
            r#"{{"header":{{"stamp":{{"sec":{sec},"nanosec":{nanosec}}},"frame_id":"{frame}"}},"a":0}}"#
        )
    };
    check(stamped, "{}", &header(0, 0, ""));
    check(stamped, r#"{"header":{}}"#, &header(7, 8, ""));
    check(stamped, r#"{"header":{"frame_id":"map"}}"#, &header(7, 8, "map"));
    check(stamped, r#"{"header":{"frame_id":"map","stamp":{"sec":1}}}"#, &header(1, 0, "map"));
    check(stamped, r#"{"header":{"stamp":"now"}}"#, &header(7, 8, ""));
    check(
        stamped,
        r#"{"header":{"seq":9,"stamp":{"secs":1,"nsecs":2},"frame_id":"map"}}"#,
        &header(1, 2, "map"),
    );
    check(
        stamped,
        r#"{"header":{"frame_id":"map","seq":9,"stamp":{"nsecs":2,"secs":1}}}"#,
        &header(1, 2, "map"),
    );
    let times = "builtin_interfaces/Time t\nbuiltin_interfaces/Duration d";
    check(
        times,
        r#"{"t":"now","d":{"secs":-1,"nsecs":5}}"#,
        r#"{"t":{"sec":7,"nanosec":8},"d":{"sec":-1,"nanosec":5}}"#,
    );
    check_error(
        times,
        r#"{"t":"then"}"#,
        "field `t`: found the text `then`; expected an object with the fields of builtin_interfaces/msg/Time, or \"now\" (byte 5)",
    );
    check_error(
        times,
        r#"{"d":"now"}"#,
        "field `d`: found the text `now`; expected an object with the fields of builtin_interfaces/msg/Duration (byte 5)",
    );
    let error = read(times, Format::Json, br#"{"t":{"sec":1,"secs":2}}"#).unwrap_err();
    assert!(error.to_string().starts_with("field `t`: found the name `secs` again"), "{error}");
}

#[test]
fn what_is_no_json() {
    for (json, expected) in [
        ("", "found the end; expected an object with the fields of test_pkg/msg/Test (byte 0)"),
        ("{", "found the end; expected `,` or `}` (byte 1)"),
        ("{\"a\"", "found the end; expected `:` (byte 4)"),
        ("{\"a\":1", "found the end; expected `,` or `}` (byte 6)"),
        ("{\"a\":1,}", "found `}`; expected a name in quotes (byte 7)"),
        ("{a:1}", "found `a`; expected a name in quotes (byte 1)"),
        ("{,}", "found `,`; expected a name in quotes (byte 1)"),
        ("{\"a\" 1}", "found `1`; expected `:` (byte 5)"),
        ("{\"a\":1 \"b\":2}", "found the text `b`; expected `,` or `}` (byte 7)"),
        ("{\"a\":1}}", "found `}`; expected the end (byte 7)"),
        ("{\"a\":1}{}", "found an object; expected the end (byte 7)"),
        (
            "[1,]",
            "field `b`: found `]`; expected int32, a whole number from -2147483648 to 2147483647 (byte 3)",
        ),
        ("[1 2]", "found `2`; expected `,` or `]` (byte 3)"),
        ("{\"b\":[1,],\"a\":1}", "found `]`; expected a value (byte 8)"),
        ("{\"b\":tru,\"a\":1}", "found `tru`; expected a value (byte 5)"),
    ] {
        check_error("int32 a\nint32 b", json, expected);
    }
}

#[test]
fn a_scanner_passes_over_values() {
    let skip = |json: &str| json::Scanner::new(json.as_bytes()).skip();
    for json in [
        "1",
        "-0.5e+3",
        "\"a\\\"b\"",
        "null",
        "true",
        "[]",
        "{}",
        "[[],{}]",
        "{\"a\":[1,{\"b\":null}]}",
    ] {
        assert_eq!(skip(json).unwrap(), 0..json.len());
        assert_eq!(skip(&format!("  {json}\t1")).unwrap(), 2..2 + json.len());
        for cut in 1..json.len() {
            // A part of a number may be one.
            assert!(skip(&json[..cut]).is_err() || json.starts_with('-'), "{json}");
        }
    }
    for bad in [
        "",
        "]",
        "}",
        "[1}",
        "{\"a\":1]",
        "{1:2}",
        "[1 1]",
        "{\"a\"}",
        "nul",
        "\"\\q\"",
        "\"\u{1}\"",
        "'a'",
    ] {
        assert!(skip(bad).is_err(), "{bad}");
    }
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(skip(&nested(DEPTH_MAX)).is_ok());
    let error = skip(&nested(DEPTH_MAX + 1)).unwrap_err().to_string();
    assert_eq!(
        error,
        "found one more; expected at most 128 objects and lists in each other (byte 129)"
    );
    for opening in ["{", "[", "{\"a\":", "[{\"a\":["] {
        assert!(skip(&opening.repeat(1_000_000)).is_err());
        assert!(read("uint8 a", Format::Json, opening.repeat(1_000_000).as_bytes()).is_err());
    }
}

#[test]
fn members_of_an_envelope() {
    let json =
        br#" {"op":"publish", "latch" : false,"msg":{"data":[1, 2]},"n":12,"x":1.5,"id":null} "#;
    let members: Vec<_> = json::members(json).unwrap().map(Result::unwrap).collect();
    let texts: Vec<_> = members
        .iter()
        .map(|(name, value)| (&**name, str::from_utf8(value.bytes()).unwrap()))
        .collect();
    assert_eq!(
        texts,
        [
            ("op", "\"publish\""),
            ("latch", "false"),
            ("msg", "{\"data\":[1, 2]}"),
            ("n", "12"),
            ("x", "1.5"),
            ("id", "null")
        ]
    );
    let value = |index: usize| members[index].1;
    assert_eq!(value(0).text().unwrap(), "publish");
    assert_eq!(
        value(0).boolean().unwrap_err().to_string(),
        "found the text `publish`; expected true or false (byte 0)"
    );
    assert!(!value(1).boolean().unwrap());
    assert_eq!(value(3).integer().unwrap(), 12);
    assert_eq!(value(4).float().unwrap(), 1.5);
    assert!(value(5).is_null() && !value(4).is_null());
    let mut cdr = Vec::new();
    Plan::new(&ty("uint8[] data")).read(value(2), NOW, &mut cdr).unwrap();
    assert_eq!(cdr, [0, 1, 0, 0, 2, 0, 0, 0, 1, 2]);
    assert!(json::members(b"[]").is_err());
    let errors = |json: &[u8]| json::members(json).unwrap().filter(Result::is_err).count();
    assert_eq!(errors(b"{} {}"), 1);
    assert_eq!(errors(br#"{"a":1,"#), 1);
    assert_eq!(errors(br#"{"a":1,"a":2}"#), 0);
    let cbor = b"\xa2\x62op\x61x\x63msg\xa1\x61a\x01";
    let members: Vec<_> = cbor::members(cbor).unwrap().map(Result::unwrap).collect();
    assert_eq!(members[0].1.text().unwrap(), "x");
    assert_eq!(members[1].1.bytes(), b"\xa1\x61a\x01");
}

/// Reads CBOR, and compares the message as JSON.
fn check_cbor(definition: &str, input: &[u8], expected: &str) {
    match read(definition, Format::Cbor, input) {
        Ok(found) => assert_eq!(found, expected, "{definition}: {input:02x?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{definition}: {input:02x?}"),
    }
}

#[test]
fn cbor_as_others_write_it() {
    check_cbor("int32 a\nint32 b", b"\xa2\x61b\x02\x61a\x20", r#"{"a":-1,"b":2}"#);
    check_cbor("int32 a\nint32 b", b"\xbf\x61b\x02\x61a\x01\xff", r#"{"a":1,"b":2}"#);
    check_cbor("int32 a", b"\xd9\xd9\xf7\xa1\x61a\x01", r#"{"a":1}"#);
    check_cbor("string a", b"\x81\x7f\x62ab\x61c\xff", r#"{"a":"abc"}"#);
    check_cbor("uint8[] a", b"\x81\x5f\x41\x01\x41\x02\xff", r#"{"a":"AQI="}"#);
    check_cbor("uint8[] a", b"\x81\x9f\x01\x02\xff", r#"{"a":"AQI="}"#);
    check_cbor("uint8[] a", b"\x81\x64AQI=", r#"{"a":"AQI="}"#);
    check_cbor("uint8[] a", b"\x81\xd8\x40\x42\x01\x02", r#"{"a":"AQI="}"#);
    check_cbor("uint8[] a", b"\x81\xd8\x48\x42\x01\x02", r#"{"a":"AQI="}"#);
    check_cbor(
        "float64[] a",
        b"\x81\x84\xf9\x3c\x00\xfa\x3f\xc0\x00\x00\x02\xf6",
        r#"{"a":[1.0,1.5,2.0,null]}"#,
    );
    check_cbor("float64[] a", b"\x81\xd8\x54\x44\x00\x3c\x00\xc4", r#"{"a":[1.0,-4.0]}"#);
    check_cbor("float32[] a", b"\x81\xd8\x51\x44\x3f\x80\x00\x00", r#"{"a":[1.0]}"#);
    check_cbor("int32[] a", b"\x81\xd8\x4d\x44\xff\xff\x02\x00", r#"{"a":[-1,2]}"#);
    check_cbor("int32[] a", b"\x81\xd8\x49\x44\xff\xff\x00\x02", r#"{"a":[-1,2]}"#);
    check_cbor("int16[1] a", b"\x81\xd8\x56\x48\0\0\0\0\0\0\x08\x40", r#"{"a":[3]}"#);
    check_cbor(
        "uint64 a",
        b"\x81\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
        r#"{"a":18446744073709551615}"#,
    );
    check_cbor(
        "int64 a",
        b"\x81\x3b\x7f\xff\xff\xff\xff\xff\xff\xff",
        r#"{"a":-9223372036854775808}"#,
    );
    check_cbor(
        "int64 a",
        b"\x81\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
        "field `a`: found `-18446744073709551616`; expected int64, a whole number from -9223372036854775808 to 9223372036854775807 (byte 1)",
    );
    check_cbor("bool a", b"\x81\xf6", "field `a`: found `null`; expected bool (byte 1)");
    check_cbor(
        "uint8[] a",
        b"\x81\xd8\x4d\x42\xff\xff",
        "field `a[0]`: found a number out of range; expected uint8, a whole number from 0 to 255 (byte 6)",
    );
    check_cbor(
        "int32[] a",
        b"\x81\xd8\x4e\x43\0\0\0",
        "field `a`: found 3 bytes; expected a multiple of 4, for an array with tag 78 (byte 4)",
    );
    check_cbor(
        "int32[] a",
        b"\x81\x44\0\0\0\0",
        "field `a`: found bytes; expected a list (int32[]) (byte 1)",
    );
    check_cbor(
        "string a",
        b"\x81\x62a\xff",
        "field `a`: found bytes that are not UTF-8; expected a text in UTF-8 (byte 3)",
    );
    check_cbor(
        "string a",
        b"\x81\x7b\xff\xff\xff\xff\xff\xff\xff\xff",
        "field `a`: found the end; expected the rest of a value (byte 10)",
    );
    check_cbor(
        "int32[] a",
        b"\x81\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        "field `a[1]`: found the end; expected the rest of a value (byte 11)",
    );
    check_cbor("int32 a", b"\xa1\x61a\x01\x00", "found 1 bytes more; expected the end (byte 4)");
    check_cbor("int32 a", b"\xa1\x01\x01", "found `1`; expected a name, which is a text (byte 1)");
    let deep = |byte: u8, count: usize| [b"\xa1\x63msg".as_slice(), &vec![byte; count]].concat();
    let first = |cbor: &[u8]| cbor::members(cbor).unwrap().next().unwrap().map(drop);
    for opening in [0x81, 0x9f, 0xa1, 0xbf, 0xc1, 0xd8] {
        assert!(first(&deep(opening, 1_000_000)).is_err(), "{opening:02x}");
    }
    let mut fits = deep(0x81, DEPTH_MAX);
    fits.push(0);
    assert!(first(&fits).is_ok());
    fits.insert(5, 0x81);
    assert!(first(&fits).is_err());
}

#[test]
fn cbor_as_rosbridge_writes_it() {
    let write = |definition: &str, json: &str| {
        let plan = Plan::new(&ty(definition));
        let (mut cdr, mut cbor) = (Vec::new(), Vec::new());
        plan.cdr_from_json(json.as_bytes(), NOW, &mut cdr).unwrap();
        plan.cbor_from_cdr(&cdr, &mut cbor).unwrap();
        cbor
    };
    assert_eq!(write("uint8[] a", "[[1,2]]"), b"\xa1\x61a\x42\x01\x02");
    assert_eq!(write("bool[] a", "[[true]]"), b"\xa1\x61a\x81\xf5");
    assert_eq!(write("string a\nint32 b", "[\"x\",-500]"), b"\xa2\x61a\x61x\x61b\x39\x01\xf3");
    for (kind, tag, one) in [
        ("uint16", 69, b"\x42\x01\0".as_slice()),
        ("uint32", 70, b"\x44\x01\0\0\0"),
        ("uint64", 71, b"\x48\x01\0\0\0\0\0\0\0"),
        ("int8", 72, b"\x41\x01"),
        ("int16", 77, b"\x42\x01\0"),
        ("int32", 78, b"\x44\x01\0\0\0"),
        ("int64", 79, b"\x48\x01\0\0\0\0\0\0\0"),
        ("float32", 85, b"\x44\0\0\x80\x3f"),
        ("float64", 86, b"\x48\0\0\0\0\0\0\xf0\x3f"),
    ] {
        let expected = [b"\xa1\x61a\xd8".as_slice(), &[tag], one].concat();
        assert_eq!(write(&format!("{kind}[] a"), "[[1]]"), expected, "{kind}");
    }
}

/// A document of members.
fn document(members: &[&[u8]]) -> Vec<u8> {
    let members = members.concat();
    let length = i32::try_from(members.len() + 5).unwrap();
    [&length.to_le_bytes(), members.as_slice(), &[0]].concat()
}

/// Reads BSON, and compares the message as JSON.
fn check_bson(definition: &str, members: &[&[u8]], expected: &str) {
    match read(definition, Format::Bson, &document(members)) {
        Ok(found) => assert_eq!(found, expected, "{definition}: {members:02x?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{definition}: {members:02x?}"),
    }
}

#[test]
fn bson_as_others_write_it() {
    check_bson(
        "int32 a\nint32 b",
        &[b"\x10b\0\x02\0\0\0", b"\x12a\0\x01\0\0\0\0\0\0\0"],
        r#"{"a":1,"b":2}"#,
    );
    check_bson("int32 a\nint32 b", &[b"\x100\0\x02\0\0\0"], r#"{"a":2,"b":0}"#);
    check_bson("uint8 a", &[b"\x01a\0\0\0\0\0\0\0\x08\x40"], r#"{"a":3}"#);
    check_bson("float32 a", &[b"\x0aa\0"], r#"{"a":null}"#);
    check_bson("bool a", &[b"\x08a\0\x01"], r#"{"a":true}"#);
    check_bson("uint8[] a", &[b"\x05a\0\x02\0\0\0\0\x01\x02"], r#"{"a":"AQI="}"#);
    check_bson("uint8[] a", &[b"\x05a\0\x06\0\0\0\x02\x02\0\0\0\x01\x02"], r#"{"a":"AQI="}"#);
    let list = document(&[b"\x100\0\x01\0\0\0", b"\x101\0\x02\0\0\0"]);
    check_bson("uint8[] a", &[b"\x04a\0", &list], r#"{"a":"AQI="}"#);
    check_bson(
        "float64[] a\nint8 b",
        &[b"\x10b\0\x01\0\0\0", b"\x04a\0", &list],
        r#"{"a":[1.0,2.0],"b":1}"#,
    );
    check_bson("string a", &[b"\x02a\0\x02\0\0\0x\0"], r#"{"a":"x"}"#);
    let max = b"\x13a\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\x40\x30";
    check_bson("uint64 a", &[max], r#"{"a":18446744073709551615}"#);
    check_bson("bool a", &[b"\x08a\0\x02"], "field `a`: found [2]; expected 0 or 1 (byte 7)");
    check_bson("bool a", &[b"\x0aa\0"], "field `a`: found `null`; expected bool (byte 7)");
    check_bson(
        "int32 a",
        &[b"\x09a\0\0\0\0\0\0\0\0\0"],
        "field `a`: found a value of the kind 0x09; expected int32, a whole number from -2147483648 to 2147483647 (byte 7)",
    );
    check_bson(
        "string a",
        &[b"\x02a\0\x01\0\0\0x\0"],
        "field `a`: found a text that does not end with 0; expected one that does (byte 11)",
    );
    check_bson(
        "string a",
        &[b"\x02a\0\xff\xff\xff\xff"],
        "field `a`: found a length of -1; expected at least 1 (byte 7)",
    );
    check_bson(
        "int32 b",
        &[b"\x10a\0\x01\0\0\0"],
        "found the name `a`; expected a field of test_pkg/msg/Test: b (byte 7)",
    );
    check_bson(
        "geometry_msgs/Vector3 a",
        &[b"\x03a\0\x06\0\0\0\0"],
        "field `a`: found the end of a document; expected it where its length says (byte 11)",
    );
    check_bson(
        "geometry_msgs/Vector3 a",
        &[b"\x03a\0\x07\0\0\0\0"],
        "field `a`: found a document of 7 bytes; expected one that is whole and ends with 0 (byte 7)",
    );
    check_bson(
        "geometry_msgs/Vector3 a",
        &[b"\x03a\0\x05\0\0\0\0", b"\x00"],
        "found the end of a document; expected it where its length says (byte 12)",
    );
    let inner = [b"\x03a\0\x0f\0\0\0\x01x\0".as_slice(), &[0; 8]].concat();
    check_bson(
        "geometry_msgs/Vector3 a",
        &[&inner],
        "field `a`: found a value beyond its document; expected its end before (byte 22)",
    );
    let longer = [document(&[b"\x10a\0\x01\0\0\0"]), vec![0]].concat();
    assert!(read("int32 a", Format::Bson, &longer).is_err());
}

#[test]
fn defaults_are_bounded() {
    // Few bytes ask for many defaults; what an empty message has is never refused.
    let pages = "huge/Page[] pages\nhuge/Page[20] more";
    let list = |count: usize| format!("{{\"pages\":[{}]}}", vec!["{}"; count].join(","));
    let fits = DEFAULT_BYTES_MAX / 1_000_000;
    let mut cdr = Vec::new();
    let plan = Plan::new(&ty(pages));
    plan.cdr_from_json(b"{}", NOW, &mut cdr).unwrap();
    plan.cdr_from_json(list(fits).as_bytes(), NOW, &mut cdr).unwrap();
    let error = plan.cdr_from_json(list(fits + 1).as_bytes(), NOW, &mut cdr).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field `more`: found too many fields without a value; expected at most 16777216 bytes of default values (byte 62)"
    );
    let error = plan.cdr_from_json(list(1000).as_bytes(), NOW, &mut cdr).unwrap_err();
    assert_eq!(error.field(), "pages[36].data");
}
