//! Content filters against messages that are decoded whole, and what errors say.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "support/random.rs"]
mod random;

use proptest::prelude::*;
use random::{Random, shapes};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use tsuji_msg::cdr::ByteOrder;
use tsuji_msg::definition::{Base, ScalarKind, Shape};
use tsuji_msg::filter::{EXPRESSION_BYTES_MAX, NESTING_MAX};
use tsuji_msg::{DynamicMessage, Expression, Filter, FilterError, TypeDescription, TypeSet, Value};

const TEXT: &str = "\
Stamp stamp
string name
int8 i8
uint8 u8
int64 i64
uint64 u64
float32 f32
float64 f64
bool flag
char letter
byte raw
wstring wide
Point[] points
float64[3] k
string[<=2] few
int32[] many
Point last
bool like
";

fn ty() -> Arc<TypeDescription> {
    let texts = [
        ("test_pkg/msg/Stamp", "int32 sec\nuint32 nanosec\n"),
        ("test_pkg/msg/Point", "float64 x\nfloat64 y\nstring frame\n"),
    ];
    let texts: HashMap<String, String> =
        texts.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
    TypeSet::new(texts).load_text("test_pkg/msg/Test", TEXT).unwrap()
}

fn filter(expression: &str, parameters: &[&str]) -> Result<Filter, FilterError> {
    Expression::parse(expression)?.compile(&ty(), parameters)
}

/// The expressions pass, or do not, of a message, in both byte orders.
fn check(yaml: &str, passes: &[&str], others: &[&str]) {
    let message = DynamicMessage::from_yaml(&ty(), yaml).unwrap();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let sample = message.encode_as(Vec::new(), order).unwrap();
        for (expressions, expect) in [(passes, true), (others, false)] {
            for expression in expressions {
                let filter = filter(expression, &[]);
                let filter = filter.unwrap_or_else(|error| panic!("{expression}: {error}"));
                assert_eq!(filter.matches(&sample), Ok(expect), "{expression} of {yaml}");
            }
        }
    }
}

#[test]
fn numbers_are_compared_as_numbers() {
    check(
        "{i64: -5, u64: 18446744073709551615, i8: -1, u8: 200, f32: 0.1, f64: 2.5}",
        &[
            "i64 = -5",
            "i64<>5",
            "i64 != 5",
            "-6 < i64",
            "-5 >= i64",
            "i64 < u64",
            "u64 > i64",
            "u64 = 18446744073709551615",
            "u64 = 0xffffffffffffffff",
            "u64 > 18446744073709551614",
            "u8 = 0xC8",
            "u8 > i8",
            "i8 < 1000",
            "f32 = 0.1",
            "f32 < 1",
            "f64 = 2.5e0",
            "f64 = 25E-1",
            "f64 > .5",
            "f64 > u64 OR f64 < u64",
            "i64 = -5.0",
            "f64 BETWEEN 2.5 AND 3",
            "i64 between -5 and -5",
            "i64 NOT BETWEEN -4 AND 10",
            "+1 > i64",
        ],
        &[
            "i64 = 5",
            "i64 < -5",
            "u64 < 18446744073709551615",
            "u64 = i8",
            "f64 = f32",
            "f64 BETWEEN 3 AND 4",
            "f64 NOT BETWEEN 2.5 AND 3",
            "f64 BETWEEN 3 AND 2",
            "u8 > 300",
        ],
    );
}

#[test]
fn nan_is_neither_less_nor_greater() {
    check(
        "{f64: .nan, f32: .inf}",
        &["f64 <> 1", "f64 <> f64", "NOT f64 < 1", "f64 NOT BETWEEN 0 AND 1", "f32 > 1e38"],
        &["f64 = 1", "f64 = f64", "f64 < 1", "f64 >= 1", "f64 BETWEEN 0 AND 1", "f32 < 1e308"],
    );
}

#[test]
fn texts_letters_and_bools() {
    check(
        "{name: wheel_left, wide: größe, flag: true, letter: 97, raw: 7, few: ['it''s', b]}",
        &[
            "name = 'wheel_left'",
            "name = `wheel_left'",
            "name <> 'Wheel_left'",
            "name > 'Wheel_left'",
            "name LIKE 'wheel%'",
            "name like 'wheel?le*'",
            "NOT name LIKE 'wheel'",
            "name MATCH '(wheel|arm)_[a-z]+'",
            "NOT name MATCH 'wheel'",
            "wide = 'größe'",
            "wide LIKE 'gr__e'",
            "wide <> name",
            "flag = TRUE",
            "flag = 1",
            "flag <> FALSE",
            "TRUE = flag",
            "flag = true",
            "letter = 'a'",
            "letter = 97",
            "letter < 'b'",
            "raw = 7",
            "few[0] = 'it''s'",
            "few[1] BETWEEN 'a' AND 'c'",
            "like = FALSE",
            "like = 0 AND name LIKE '%'",
        ],
        &["name = ''", "flag = 0", "letter = 'A'", "name BETWEEN 'a' AND 'b'", "few[1] = few[0]"],
    );
}

#[test]
fn conditions_bind_as_in_sql() {
    check(
        "{i8: 1, u8: 2}",
        &[
            "i8 = 1 OR i8 = 2 AND u8 = 9",
            "(i8 = 1 OR i8 = 2) AND u8 = 2",
            "NOT i8 = 2 AND u8 = 2",
            "NOT (i8 = 1 AND u8 = 3)",
            "NOT NOT i8 = 1",
            " ( ( i8=1 ) )and(u8=2)\n",
            "",
            "  ",
        ],
        &["(i8 = 1 OR i8 = 2) AND u8 = 9", "NOT (i8 = 1 OR u8 = 9)", "NOT i8 = 1 OR u8 = 9"],
    );
}

#[test]
fn elements_are_named_by_their_index() {
    check(
        "{stamp: {sec: 3}, points: [{x: 1, frame: a}, {x: 2, y: 5, frame: bcd}], k: [1, 2, 3], many: [4, 5, 6], \
         last: {y: 9}}",
        &[
            "points[1].x = 2 AND points[0].x = 1",
            "points[1].frame = 'bcd' AND last.y = 9",
            "points[1].x > points[0].x",
            "k[2] = 3 AND k[0] = 1",
            "many[2] = 6 AND last.y = 9 AND stamp.sec = 3",
            "many[9] = 1 OR many[0] = 4",
            "many[0] = 4 OR many[9] = 1",
            "points[7].frame = 'x' OR last.y = 9",
        ],
        // What is not there is neither so nor otherwise.
        &[
            "many[3] = 6",
            "NOT many[3] = 6",
            "many[3] <> 6",
            "many[3] BETWEEN 0 AND 9",
            "many[3] NOT BETWEEN 0 AND 9",
            "few[1] LIKE '%'",
            "points[2].x = points[2].x",
            "NOT (many[3] = 6 AND last.y = 9)",
        ],
    );
}

#[test]
fn parameters_are_constants() {
    let sample = DynamicMessage::from_yaml(&ty(), "{i8: 5, name: left, flag: true}").unwrap();
    let sample = sample.encode().unwrap();
    let check = |expression: &str, parameters: &[&str], expect: bool| {
        let filter = filter(expression, parameters).unwrap();
        assert_eq!(filter.matches(&sample), Ok(expect), "{expression} with {parameters:?}");
    };
    check("i8 = %0", &["5"], true);
    check("%1 <= i8 AND i8 < %0", &[" 6 ", "-0x5"], true);
    check("name = %0", &["'left'"], true);
    check("name LIKE %0", &["'l%'"], true);
    check("name MATCH %12", &[""; 12].into_iter().chain(["'l.*'"]).collect::<Vec<_>>(), true);
    check("flag = %0", &["FALSE"], false);
    check("i8 BETWEEN %0 AND %0", &["5", "not read"], true);
    check("", &["not read"], true);
}

#[test]
fn an_error_says_where_and_what_is_allowed() {
    let check = |expression: &str, parameters: &[&str], expect: &str| {
        let error = filter(expression, parameters).expect_err(expression).to_string();
        assert_eq!(error, expect, "{expression}");
    };
    const OPERAND: &str = "expected a field, a constant or a parameter such as %0";
    check("i8 =", &[], &format!("column 5: found the end of the expression; {OPERAND}"));
    check("= 3", &[], &format!("column 1: found `=`; {OPERAND}"));
    check("i8 = 1 AND", &[], &format!("column 11: found the end of the expression; {OPERAND}"));
    check("i8 = 1 u8", &[], "column 8: found `u8`; expected AND, OR or the end of the expression");
    check("i8 = 1)", &[], "column 7: found `)`; expected AND, OR or the end of the expression");
    check(
        "(i8 = 1",
        &[],
        "column 8: found the end of the expression; expected AND, OR or a closing parenthesis",
    );
    check("i8 == 1", &[], "column 4: found `==`; expected `=`, which compares here");
    check(
        "i8 + 1",
        &[],
        "column 4: found `+`; expected a number such as -5, 0x1f or 2.5e3, within 64 bits if whole",
    );
    check(
        "i8 IS 1",
        &[],
        "column 4: found `IS`; expected a comparison: =, <>, <, <=, >, >=, LIKE, MATCH or BETWEEN",
    );
    check(
        "name NOT LIKE 'a'",
        &[],
        "column 10: found `LIKE`; expected BETWEEN behind NOT; for others NOT stands before the field",
    );
    check(
        "name = 'größe' AND i9 = 1",
        &[],
        "column 20: found no field `i9` in test_pkg/msg/Test; expected one of stamp, name, i8, u8, i64, u64, f32, f64, \
         flag, letter, raw, wide, points, k, few, many, … (did you mean `i8`?)",
    );
    check(
        "last.Y > 1",
        &[],
        "column 6: found no field `Y` in test_pkg/msg/Point; expected one of x, y, frame (did you mean `y`?)",
    );
    check(
        "i8.x = 1",
        &[],
        "column 4: found `x` behind `i8`, which is int8; expected nothing behind it",
    );
    check(
        "k = 1",
        &[],
        "column 1: found `k`, which is float64[3]; expected one of its elements, such as `k[0]`",
    );
    check(
        "points.x = 1",
        &[],
        "column 1: found `points`, which is test_pkg/msg/Point[]; expected one of its elements, such as `points[0]`",
    );
    check(
        "k[3] = 1",
        &[],
        "column 2: found index 3; expected an index below 3, since it is float64[3]",
    );
    check(
        "few[2] = ''",
        &[],
        "column 4: found index 2; expected an index below 2, since it is string[<=2]",
    );
    check(
        "i8[0] = 1",
        &[],
        "column 3: found an index behind `i8`; expected an index behind an array or sequence only",
    );
    check(
        "k[0][0] = 1",
        &[],
        "column 5: found an index behind `k[0]`; expected an index behind an array or sequence only",
    );
    check(
        "last = 1",
        &[],
        "column 1: found `last`, which is test_pkg/msg/Point; expected a field of it: one of x, y, frame",
    );
    check(
        "a..b = 1",
        &[],
        "column 1: found `a..b`; expected a field such as `height`, `pose.position.x` or `poses[3].x`",
    );
    check(
        "name = 5",
        &[],
        "column 8: found `5`; expected a text in quotes such as 'left' to compare to `name`, which is string",
    );
    check(
        "i8 > 'five'",
        &[],
        "column 6: found `'five'`; expected a number to compare to `i8`, which is int8",
    );
    check(
        "f64 = TRUE",
        &[],
        "column 7: found `TRUE`; expected a number to compare to `f64`, which is float64",
    );
    check(
        "flag = 0.5",
        &[],
        "column 8: found `0.5`; expected TRUE, FALSE, 0 or 1 to compare to `flag`, which is bool",
    );
    check(
        "letter = 'ab'",
        &[],
        "column 10: found `'ab'`; expected a whole number or a text of one character such as 'a' to compare to `letter`, \
         which is char",
    );
    check(
        "i8 = name",
        &[],
        "column 6: found `name`, which is string; expected a field to compare to `i8`, which is int8",
    );
    check(
        "1 = 1",
        &[],
        "column 5: found `1`; expected a field, since the other side is a constant",
    );
    check(
        "i8 LIKE '5'",
        &[],
        "column 1: found `i8`, which is int8; expected a field with a text before LIKE and MATCH",
    );
    check(
        "name LIKE wide",
        &[],
        "column 11: found `wide`; expected a constant or a parameter such as %0",
    );
    check("'a' LIKE name", &[], "column 1: found `'a'`; expected a field with a text");
    check(
        "name LIKE 5",
        &[],
        "column 11: found `5`; expected a pattern in quotes such as 'wheel_%'",
    );
    check("5 BETWEEN 1 AND 9", &[], "column 1: found `5`; expected the field of a range");
    check(
        "i8 BETWEEN 1 OR 9",
        &[],
        "column 14: found `OR`; expected AND and the upper end of the range",
    );
    check(
        "name = 'left",
        &[],
        "column 8: found `'left`; expected a text that ends with a quote (')",
    );
    check(
        "i8 = 1.",
        &[],
        "column 6: found `1.`; expected a number such as -5, 0x1f or 2.5e3, within 64 bits if whole",
    );
    for number in
        ["18446744073709551616", "-9223372036854775809", "0x1g", "5m", "1e999", "1e", "-", "1_000"]
    {
        let error = filter(&format!("i8 = {number}"), &[]).expect_err(number);
        assert!(error.expected.starts_with("a number such as"), "{number}: {error}");
    }
    check("i8 = %100", &[], "column 6: found `%100`; expected a parameter from %0 to %99");
    check("i8 = %", &[], "column 6: found `%`; expected a parameter from %0 to %99");
    check("i8 = %0", &[], "column 6: found `%0`; expected no parameter, since none is given");
    check(
        "i8 = %2",
        &["1", "2"],
        "column 6: found `%2`; expected %0 to %1, since 2 parameters are given",
    );
    check(
        "name = %0",
        &["left"],
        "parameter %0, column 1: found `left`; expected one constant: a number, TRUE, FALSE, or a text in quotes such as \
         'left'",
    );
    check(
        "i8 = %1",
        &["", "'five'"],
        "parameter %1, column 1: found `'five'`; expected a number to compare to `i8`, which is int8",
    );
    check("i8 = 1", &["0"; 101], "column 1: found 101 parameters; expected at most 100");
    check(
        "i8 = 1 ; u8 = 2",
        &[],
        "column 8: found `;`; expected a field, a constant, a parameter such as %0, a comparison or a parenthesis",
    );
    let error = filter("name MATCH '['", &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("column 12: found `'['`; expected a regular expression ("),
        "{error}"
    );
}

#[test]
fn limits_are_told() {
    let deep = |depth| format!("{}i8 = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(filter(&deep(NESTING_MAX), &[]).is_ok());
    for too_deep in [deep(NESTING_MAX + 1), "(".repeat(9999), "NOT ".repeat(4000)] {
        let error = filter(&too_deep, &[]).unwrap_err();
        assert_eq!(error.found, "more than 64 conditions inside each other");
    }
    let long = "x".repeat(EXPRESSION_BYTES_MAX + 1);
    let error = filter(&long, &[]).unwrap_err().to_string();
    assert_eq!(error, "column 1: found 16385 bytes; expected at most 16384");
    let matching = |times: usize| filter(&vec!["name MATCH 'a'"; times].join(" OR "), &[]);
    matching(16).expect("a filter");
    let error = matching(17).expect_err("too many").to_string();
    assert_eq!(error, "column 300: found MATCH for the 17th time; expected it at most 16 times");
    let error =
        filter("name LIKE %0", &[&format!("'{}'", "a".repeat(1025))]).expect_err("too long");
    let tail = "expected a pattern of at most 1024 bytes; it has 1025";
    assert!(error.to_string().ends_with(tail), "{error}");
    // As many conditions as fit are no deeper for it.
    let wide = vec!["i8 = 1"; 1200].join(" OR ");
    let sample = DynamicMessage::from_yaml(&ty(), "{i8: 1}").unwrap().encode().unwrap();
    assert_eq!(filter(&wide, &[]).unwrap().matches(&sample), Ok(true));
}

#[test]
fn bytes_that_are_no_sample_are_an_error() {
    let filter = filter("name = 'a'", &[]).unwrap();
    for sample in [&[][..], &[0, 9, 0, 0], &[0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0]] {
        assert!(filter.matches(sample).is_err());
    }
}

/// What an expression that is made at random says, told from the whole message.
#[derive(Debug)]
enum Said {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Compare { path: String, by: &'static str, constant: String },
    Between { path: String, low: String, high: String },
    Fields { left: String, by: &'static str, right: String },
}

/// A field of one value, and what a constant beside it is like.
#[derive(Clone, Debug)]
struct Leaf {
    path: String,
    base: Base<Arc<TypeDescription>>,
}

fn leaves(random: &mut Random, ty: &TypeDescription, before: &str, found: &mut Vec<Leaf>) {
    for field in ty.fields() {
        let mut path = format!("{before}{}", field.name);
        match field.ty.shape {
            Shape::Single => (),
            Shape::Array(max) | Shape::Bounded(max) => {
                path += &format!("[{}]", random.below((max as usize).min(6)));
            }
            Shape::Sequence => path += &format!("[{}]", random.below(6)),
        }
        match &field.ty.base {
            Base::Nested(nested) => leaves(random, nested, &format!("{path}."), found),
            base => found.push(Leaf { path, base: base.clone() }),
        }
    }
}

const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

fn constant(random: &mut Random, message: &DynamicMessage, leaf: &Leaf) -> String {
    // Often the value itself, so that equal ones are met.
    let own = message.get(&leaf.path).ok().filter(|_| random.below(2) == 0);
    match (own.as_deref(), &leaf.base) {
        (Some(Value::Text(text)), _) => format!("'{}'", text.replace('\'', "''")),
        (Some(Value::F32(value)), _) if value.is_finite() => format!("{value:e}"),
        (Some(Value::F64(value)), _) if value.is_finite() => format!("{value:e}"),
        (_, Base::String { .. } | Base::WString { .. }) => {
            ["''", "'a'", "'ä'", "'日本'", "'null'", "''''"][random.below(6)].to_owned()
        }
        (_, Base::Scalar(ScalarKind::Bool)) => {
            ["TRUE", "FALSE", "0", "1", "7"][random.below(5)].to_owned()
        }
        (_, Base::Scalar(ScalarKind::F32 | ScalarKind::F64)) => {
            ["0.5", "-0.5", "0", "1e30", "-7"][random.below(5)].to_owned()
        }
        (Some(value), _) => integer(value).map_or_else(|| "1".to_owned(), |it| it.to_string()),
        _ => {
            ["0", "1", "2", "-1", "0xff", "1.5", "9223372036854775807"][random.below(7)].to_owned()
        }
    }
}

fn said(random: &mut Random, message: &DynamicMessage, leaves: &[Leaf], depth: usize) -> Said {
    let leaf = |random: &mut Random| leaves[random.below(leaves.len())].clone();
    match random.below(if depth == 0 { 4 } else { 7 }) {
        0 => {
            let left = leaf(random);
            let is_text =
                |leaf: &Leaf| matches!(leaf.base, Base::String { .. } | Base::WString { .. });
            let is_bool = |leaf: &Leaf| matches!(leaf.base, Base::Scalar(ScalarKind::Bool));
            let fits =
                |right: &Leaf| is_text(&left) == is_text(right) && is_bool(&left) == is_bool(right);
            let rights: Vec<_> = leaves.iter().filter(|leaf| fits(leaf)).collect();
            let right = rights[random.below(rights.len())].path.clone();
            Said::Fields { left: left.path, by: COMPARISONS[random.below(6)], right }
        }
        1 => {
            let leaf = leaf(random);
            let low = constant(random, message, &leaf);
            Said::Between { low, high: constant(random, message, &leaf), path: leaf.path }
        }
        2 | 3 => {
            let leaf = leaf(random);
            let constant = constant(random, message, &leaf);
            Said::Compare { path: leaf.path, by: COMPARISONS[random.below(6)], constant }
        }
        4 => Said::Not(Box::new(said(random, message, leaves, depth - 1))),
        kind => {
            let count = 2 + random.below(2);
            let several = (0..count).map(|_| said(random, message, leaves, depth - 1)).collect();
            if kind == 5 { Said::All(several) } else { Said::Any(several) }
        }
    }
}

impl Said {
    fn text(&self) -> String {
        let several = |said: &[Self], by: &str| {
            format!("({})", said.iter().map(Self::text).collect::<Vec<_>>().join(by))
        };
        match self {
            Self::All(said) => several(said, " AND "),
            Self::Any(said) => several(said, " or "),
            Self::Not(said) => format!("NOT ({})", said.text()),
            Self::Compare { path, by, constant } => format!("{path} {by} {constant}"),
            Self::Between { path, low, high } => format!("{path} BETWEEN {low} AND {high}"),
            Self::Fields { left, by, right } => format!("{left}{by}{right}"),
        }
    }

    fn holds(&self, message: &DynamicMessage) -> Option<bool> {
        let known = |said: &[Self]| said.iter().map(|it| it.holds(message)).collect::<Vec<_>>();
        let against = |path: &str, by: &str, constant: &str| {
            let value = message.get(path).ok()?;
            Some(is(by, order_constant(&value, constant)))
        };
        match self {
            Self::All(said) => match known(said) {
                known if known.contains(&Some(false)) => Some(false),
                known if known.contains(&None) => None,
                _ => Some(true),
            },
            Self::Any(said) => match known(said) {
                known if known.contains(&Some(true)) => Some(true),
                known if known.contains(&None) => None,
                _ => Some(false),
            },
            Self::Not(said) => said.holds(message).map(|holds| !holds),
            Self::Compare { path, by, constant } => against(path, by, constant),
            Self::Between { path, low, high } => {
                Some(against(path, ">=", low)? && against(path, "<=", high)?)
            }
            Self::Fields { left, by, right } => {
                let (left, right) = (message.get(left).ok()?, message.get(right).ok()?);
                Some(is(by, order(&left, &right)))
            }
        }
    }
}

fn is(by: &str, order: Option<Ordering>) -> bool {
    match by {
        "=" => order == Some(Ordering::Equal),
        "<>" => order != Some(Ordering::Equal),
        "<" => order == Some(Ordering::Less),
        ">" => order == Some(Ordering::Greater),
        "<=" => order.is_some_and(Ordering::is_le),
        _ => order.is_some_and(Ordering::is_ge),
    }
}

fn integer(value: &Value) -> Option<i128> {
    Some(match value {
        Value::Bool(value) => (*value).into(),
        Value::U8(value) => (*value).into(),
        Value::I8(value) => (*value).into(),
        Value::U16(value) => (*value).into(),
        Value::I16(value) => (*value).into(),
        Value::U32(value) => (*value).into(),
        Value::I32(value) => (*value).into(),
        Value::U64(value) => (*value).into(),
        Value::I64(value) => (*value).into(),
        _ => return None,
    })
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::F32(value) => Some((*value).into()),
        Value::F64(value) => Some(*value),
        value => integer(value).map(|it| it as f64),
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => match (integer(left), integer(right)) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => float(left)?.partial_cmp(&float(right)?),
        },
    }
}

fn order_constant(value: &Value, constant: &str) -> Option<Ordering> {
    let whole = match constant {
        "TRUE" => Some(1),
        "FALSE" => Some(0),
        "0xff" => Some(255),
        constant => constant.parse::<i128>().ok(),
    };
    match (value, whole) {
        (Value::Text(text), _) => {
            let inside = constant.strip_prefix('\'')?.strip_suffix('\'')?.replace("''", "'");
            Some(text.as_str().cmp(&inside))
        }
        (Value::F32(value), _) => value.partial_cmp(&constant.parse().unwrap()),
        (Value::F64(value), _) => value.partial_cmp(&constant.parse().unwrap()),
        (value, Some(whole)) => Some(integer(value)?.cmp(&whole)),
        (value, None) => float(value)?.partial_cmp(&constant.parse().unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn bytes_pass_as_the_whole_message_does(seed: u64) {
        let mut random = Random(seed);
        let set = TypeSet::new(shapes());
        let names = ["Scalars", "Texts", "Arrays", "Nested", "Keywords", "Blob"];
        let ty = set.load(&format!("shapes/msg/{}", names[random.below(names.len())])).unwrap();
        let message = random.message(&ty);
        let mut fields = Vec::new();
        leaves(&mut random, &ty, "", &mut fields);
        let said = said(&mut random, &message, &fields, 3);
        let text = said.text();
        let filter = Expression::parse(&text).and_then(|it| it.compile(&ty, &[] as &[&str]));
        let filter = filter.unwrap_or_else(|error| panic!("{text}: {error}"));
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let sample = message.encode_as(Vec::new(), order).unwrap();
            prop_assert_eq!(filter.matches(&sample), Ok(said.holds(&message) == Some(true)), "{} of {:?}", text, message);
            // What is cut off is an error where it is needed, and no panic.
            let _ = filter.matches(&sample[..random.below(sample.len() + 1)]);
        }
    }

    #[test]
    fn any_text_is_a_filter_or_an_error(text in "[ a-z0-9_.()<>=!%'`\\[\\]+-]{0,40}|.{0,20}|(i8|NOT|AND|OR|BETWEEN|[(]|[)]|=|1|%0|'a'| ){0,12}") {
        if let Ok(filter) = filter(&text, &["1"]) {
            let sample = DynamicMessage::new(ty()).encode().unwrap();
            prop_assert!(filter.matches(&sample).is_ok());
        }
    }
}
