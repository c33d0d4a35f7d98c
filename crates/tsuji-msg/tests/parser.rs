//! Definitions: what is read, and where and why a text is refused.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use tsuji_msg::definition::{
    Base, Literal, ParseError, ScalarKind, Shape, parse_action, parse_message, parse_service,
};

fn error(text: &str) -> ParseError {
    parse_message(text).expect_err(text)
}

/// `line:column word`
fn place(text: &str) -> String {
    let ParseError { line, column, word, problem, allowed } = error(text);
    assert!(!problem.is_empty() && !allowed.is_empty(), "{text}");
    format!("{line}:{column} {word}")
}

#[test]
fn fields_of_every_shape() {
    let spec = parse_message(
        "int32 a\nstring<=10 b\nwstring c\nuint8[] d\nfloat64[36] e\nuint16[<=5] f\nHeader g\nstd_msgs/Header[] h\n\
         string<=3[<=2] i\nwstring<=7[4] j\n",
    )
    .unwrap();
    let types: Vec<_> = spec.fields.iter().map(|field| field.ty.to_string()).collect();
    assert_eq!(
        types,
        [
            "int32",
            "string<=10",
            "wstring",
            "uint8[]",
            "float64[36]",
            "uint16[<=5]",
            "Header",
            "std_msgs/Header[]",
            "string<=3[<=2]",
            "wstring<=7[4]"
        ]
    );
    assert_eq!(spec.fields[3].ty.shape, Shape::Sequence);
    assert_eq!(spec.fields[1].ty.base, Base::String { bound: Some(10) });
}

#[test]
fn constants_and_defaults() {
    let spec = parse_message(
        "uint8 A=1\nint32   B_2 =  -0x10 # why\nstring C=\"a # b\"\nstring D=plain words\nstring E=\nbool F=True\n\
         float64 G=1e-3\nbyte H=255\nint8[] list [1, -2]\nstring[<=3] names ['a, b', \"c\", d]\nfloat32 f 1.5\n\
         string s 'it\\'s # fine'   # a comment\nstring t don't # stop\nwstring w \"x\"\nint64 big 9_000\n",
    )
    .unwrap();
    let constants: Vec<_> = spec.constants.iter().map(|constant| constant.value.clone()).collect();
    let text = |text: &str| Literal::Text(text.into());
    assert_eq!(
        constants,
        [
            Literal::Integer(1),
            Literal::Integer(-16),
            text("a # b"),
            text("plain words"),
            text(""),
            Literal::Bool(true),
            Literal::Float(1e-3),
            Literal::Integer(255)
        ]
    );
    let defaults: Vec<_> = spec.fields.iter().map(|field| field.default.clone().unwrap()).collect();
    assert_eq!(defaults[0], Literal::List(vec![Literal::Integer(1), Literal::Integer(-2)]));
    assert_eq!(defaults[1], Literal::List(vec![text("a, b"), text("c"), text("d")]));
    assert_eq!(defaults[2], Literal::Float(1.5));
    assert_eq!(defaults[3], text("it's # fine"));
    assert_eq!(defaults[4], text("don't"));
    assert_eq!(defaults[6], Literal::Integer(9000));
}

#[test]
fn line_ends_tabs_blanks_and_a_byte_order_mark() {
    for text in [
        "\u{feff}uint8\ta\r\n\r\nstring  b\r\n",
        "  uint8 a\rstring b",
        "\n\nuint8 a   \nstring\t\tb\t1\n",
    ] {
        let spec = parse_message(text).unwrap();
        assert_eq!(
            spec.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(),
            ["a", "b"],
            "{text:?}"
        );
    }
    assert!(parse_message("").unwrap().fields.is_empty());
    assert!(parse_message("# only words\n").unwrap().fields.is_empty());
}

#[test]
fn comments_go_where_they_belong() {
    let spec = parse_message(
        "# The message.\n#   Indented.\n\n# Above a.\nuint8 a  # Behind a.\n         # Below a.\n\n# Above B.\nuint8 B=1\n",
    )
    .unwrap();
    assert_eq!(spec.comment, ["The message.", "Indented."]);
    assert_eq!(spec.fields[0].comment, ["Above a.", "Behind a.", "Below a."]);
    assert_eq!(spec.constants[0].comment, ["Above B."]);
}

#[test]
fn errors_name_the_place_and_the_word() {
    for (text, expected) in [
        ("uint8 a\nfloat b", "2:1 float"),
        ("uint8", "1:1 uint8"),
        ("uint8[", "1:1 uint8["),
        ("uint8] a", "1:1 uint8]"),
        ("uint8[0] a", "1:7 0"),
        ("uint8[<=] a", "1:7 <="),
        ("uint8[4294967296] a", "1:7 4294967296"),
        ("uint8[-1] a", "1:7 -1"),
        ("string<=0 a", "1:9 0"),
        ("string<=x a", "1:9 x"),
        ("uint8 A", "1:7 A"),
        ("uint8 a__b", "1:7 a__b"),
        ("uint8 a_", "1:7 a_"),
        ("uint8 1a", "1:7 1a"),
        ("uint8 ä", "1:7 ä"),
        ("uint8 low=1", "1:7 low"),
        ("uint8 BAD_=1", "1:7 BAD_"),
        ("uint8 A=256", "1:9 256"),
        ("uint8 A= -1", "1:10 -1"),
        ("int8 a 128", "1:8 128"),
        ("uint8 A=", "1:7 A"),
        ("bool a maybe", "1:8 maybe"),
        ("float32 a x", "1:11 x"),
        ("uint8[2] a [1]", "1:12 [1]"),
        ("uint8[<=2] a [1,2,3]", "1:14 [1,2,3]"),
        ("uint8[] a [1, 300]", "1:15 300"),
        ("uint8[] a 1", "1:11 1"),
        ("string<=2 a abc", "1:13 abc"),
        ("Header h 1", "1:10 1"),
        ("uint8[3] A=1", "1:1 uint8[3]"),
        ("Header A=1", "1:1 Header"),
        ("string<=3 A=x", "1:1 string<=3"),
        ("uint8 a\nint8 a", "2:6 a"),
        ("uint8 A=1\nuint8 A=2", "2:7 A"),
        ("time t", "1:1 time"),
        ("Std_msgs/Header h", "1:1 Std_msgs"),
        ("std_msgs/msg/Header h", "1:10 msg/Header"),
        ("std_msgs/header h", "1:10 header"),
        ("uint8 a\n---\nuint8 b", "2:1 ---"),
        ("string a 'open' end'", "1:10 'open' end'"),
        ("日本 a", "1:1 日本"),
        ("string a \"日\"\nuint8 日", "2:7 日"),
    ] {
        assert_eq!(place(text), expected, "{text}");
    }
    assert_eq!(
        error("bool a maybe").to_string(),
        "line 1, column 8: `maybe`: not a bool; allowed: true, false, 1, 0"
    );
}

#[test]
fn services_and_actions() {
    let service = parse_service("int64 a\n---\nint64 a\n").unwrap();
    assert_eq!((service.request.fields.len(), service.response.fields.len()), (1, 1));
    assert_eq!(parse_service("---").unwrap().request.fields.len(), 0);
    assert_eq!(parse_service("int8 a").unwrap_err().word, "---");
    assert_eq!(parse_service("---\n---").unwrap_err().line, 2);
    let action =
        parse_action("int32 order\n---\nint32[] sequence\n---\nint32[] partial\n").unwrap();
    assert_eq!(action.feedback.fields[0].name, "partial");
    assert!(parse_action("---\n").is_err());
}

#[test]
fn a_huge_text_is_refused() {
    assert!(parse_message(&"#".repeat((1 << 20) + 1)).is_err());
}

#[test]
fn scalar_names_read_back() {
    for kind in ScalarKind::ALL {
        assert_eq!(ScalarKind::from_name(kind.name()), Some(kind));
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        let _ = parse_message(&text);
        let _ = parse_service(&text);
        let _ = parse_action(&text);
    }

    #[test]
    fn no_nearly_right_text_panics(text in "([a-zA-Z0-9_/<=\\[\\]\"'# \\n\\\\,.+-]|string|uint8|bool|---){0,40}") {
        let _ = parse_message(&text);
        let _ = parse_service(&text);
    }
}
