//! What is written to clients, and that it can be read back.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "support/encodings.rs"]
mod encodings;

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tsuji_rosbridge::*;

/// As JSON it is `expect`; as CBOR and BSON it is what others make of the same.
#[track_caller]
fn check(expect: Value, values: Value, write: impl Fn(&mut Vec<u8>, Encoding, &[u8])) {
    let mut out = b"before".to_vec();
    write(&mut out, Encoding::Json, values.to_string().as_bytes());
    let text = std::str::from_utf8(&out).unwrap().strip_prefix("before").unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expect);

    let (mut sample, mut out) = (Vec::new(), Vec::new());
    encodings::cbor(&values, &mut sample);
    write(&mut out, Encoding::Cbor, &sample);
    let theirs = in_cbor(&expect);
    assert_eq!(told(parse_cbor(&out)), told(parse_cbor(&theirs)));

    let mut out = Vec::new();
    write(&mut out, Encoding::Bson, &encodings::bson(&values));
    assert_eq!(told(parse_bson(&out)), told(parse_bson(&encodings::bson(&expect))));
}

fn in_cbor(tree: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encodings::cbor(tree, &mut out);
    out
}

fn told(incoming: Result<Incoming<'_>, Refusal>) -> String {
    format!("{:?}", incoming.unwrap())
}

#[test]
fn samples() {
    let sample = json!({"data": "hi"});
    check(
        json!({"op": "publish", "topic": "/a\"\\\u{1}é", "msg": {"data": "hi"}}),
        sample,
        |out, encoding, sample| write_publish(out, encoding, "/a\"\\\u{1}é", sample),
    );
    let mut out = Vec::new();
    write_publish(&mut out, Encoding::Json, "/t", b"{\"data\":1}");
    assert_eq!(out, br#"{"op":"publish","topic":"/t","msg":{"data":1}}"#);
}

#[test]
fn raw_samples() {
    let mut out = Vec::new();
    write_publish_raw(&mut out, "/t", 300, 70_000, &[0, 1, 0, 0, 9]);
    let expect = b"\xA3\x62op\x67publish\x65topic\x62/t\x63msg\
        \xA3\x64secs\x19\x01\x2C\x65nsecs\x1A\x00\x01\x11\x70\x65bytes\x45\x00\x01\x00\x00\x09";
    assert_eq!(out, expect);
}

#[test]
fn answers() {
    let id = Id::Text("c:1".into());
    let number = Id::Integer(-5);
    check(
        json!({"op": "service_response", "id": "c:1", "service": "/s", "values": {"sum": 3}, "result": true}),
        json!({"sum": 3}),
        |out, encoding, values| {
            let values = Values::Encoded(values);
            let id = Some(&id);
            Outgoing::ServiceResponse { id, service: "/s", values, result: true }
                .write(out, encoding);
        },
    );
    check(
        json!({"op": "service_response", "service": "/s", "values": "no such\nservice", "result": false}),
        json!({}),
        |out, encoding, _| {
            let values = Values::Text("no such\nservice");
            Outgoing::ServiceResponse { id: None, service: "/s", values, result: false }
                .write(out, encoding);
        },
    );
    check(
        json!({"op": "call_service", "id": "c:1", "service": "/s", "args": {}}),
        json!({}),
        |out, encoding, args| {
            let args = Values::Encoded(args);
            Outgoing::CallService { id: &id, service: "/s", args }.write(out, encoding);
        },
    );
    check(
        json!({"op": "send_action_goal", "id": "c:1", "action": "/a", "action_type": "t/T", "args": {"x": [1]}, "feedback": true}),
        json!({"x": [1]}),
        |out, encoding, args| {
            let args = Values::Encoded(args);
            Outgoing::SendActionGoal { id: &id, action: "/a", action_type: "t/T", args }
                .write(out, encoding);
        },
    );
    check(
        json!({"op": "cancel_action_goal", "id": -5, "action": "/a"}),
        json!({}),
        |out, encoding, _| {
            Outgoing::CancelActionGoal { id: &number, action: "/a" }.write(out, encoding);
        },
    );
    check(
        json!({"op": "action_feedback", "id": -5, "action": "/a", "values": {"p": 1.5}}),
        json!({"p": 1.5}),
        |out, encoding, values| {
            let values = Values::Encoded(values);
            let id = Some(&number);
            Outgoing::ActionFeedback { id, action: "/a", values }.write(out, encoding);
        },
    );
    check(
        json!({"op": "action_result", "id": "c:1", "action": "/a", "values": {}, "status": 4, "result": true}),
        json!({}),
        |out, encoding, values| {
            let values = Values::Encoded(values);
            let id = Some(&id);
            Outgoing::ActionResult { id, action: "/a", values, status: 4, result: true }
                .write(out, encoding);
        },
    );
    let refusal = parse_json(br#"{"op":"publish","id":"c:1"}"#).unwrap_err();
    check(
        json!({"op": "status", "id": "c:1", "level": "error", "msg": "publish: topic: found nothing; expected a text"}),
        json!({}),
        |out, encoding, _| write_refusal(out, encoding, &refusal),
    );
}

#[test]
fn pictures() {
    for text in ["{}", "{\"a\":\"é😀\"}", &format!("{{\"a\":\"{}\"}}", "long ".repeat(5000))] {
        let mut out = Vec::new();
        write_png(&mut out, text);
        let Operation::Png(png) = parse_json(&out).unwrap().operation else { panic!() };
        let message = read_png(&png.data, 1_000_000).unwrap();
        assert!(message.is_ascii());
        let tree = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
        assert_eq!(tree(&message), tree(text.as_bytes()));
    }
}

#[test]
fn pictures_that_are_none() {
    let check = |data: &str, expect: &str| {
        assert_eq!(read_png(data, 10_000).unwrap_err().expected, expect);
    };
    check("%", "base64");
    check("aGVsbG8=", "a picture");
    let mut out = Vec::new();
    write_png(&mut out, &"{}".repeat(50_000));
    let Operation::Png(png) = parse_json(&out).unwrap().operation else { panic!() };
    assert!(out.len() < 10_000, "it packs well: {}", out.len());
    check(&png.data, "a picture no larger than a message may be");
    let half = &png.data[..png.data.len() / 8 * 4];
    assert!(read_png(half, 1_000_000).is_err());
}

fn limits() -> FragmentLimits {
    FragmentLimits {
        messages_max: 2,
        message_bytes_max: 10_000,
        bytes_max: 4000,
        pieces_max: 50,
        timeout: Duration::from_secs(10),
    }
}

fn fragment(id: &str, num: u32, total: u32, data: &str) -> Fragment<'static> {
    let id = Id::Text(id.to_owned().into());
    Fragment { id, data: data.to_owned().into_bytes().into(), num, total }
}

const NOW: Duration = Duration::from_secs(100);

#[test]
fn fragments_that_do_not_fit() {
    let mut assembly = Assembly::new(limits());
    let mut add = |it: Fragment<'_>| match assembly.add(NOW, &it) {
        Ok(None) => "more".to_owned(),
        Ok(Some(text)) => String::from_utf8(text).unwrap(),
        Err(refusal) => refusal.to_string(),
    };
    let mut check = |it, expect: &str| assert_eq!(add(it), expect);
    check(fragment("one", 0, 1, "whole"), "whole");
    check(fragment("a", 0, 0, ""), "fragment: total: found 0; expected 1 to 50");
    check(fragment("a", 0, 51, ""), "fragment: total: found 51; expected 1 to 50");
    check(fragment("a", 2, 2, ""), "fragment: num: found 2; expected 0 to 1");
    check(fragment("a", 1, 2, "y"), "more");
    check(fragment("a", 1, 2, "y"), "fragment: num: found 1, again; expected each number once");
    check(fragment("a", 0, 3, "y"), "fragment: total: found 3; expected 2, as before");
    check(fragment("b", 1, 2, "z"), "more");
    check(
        fragment("c", 1, 2, "z"),
        "fragment: id: found the first fragment of message 3; expected at most 2 messages under way",
    );
    check(fragment("a", 0, 2, "x"), "xy");
    let large = "x".repeat(4000);
    check(
        fragment("b", 0, 2, &large),
        "fragment: data: found 4000 bytes more; expected at most 4000 bytes under way",
    );
    assert_eq!((assembly.held_bytes(), assembly.forgotten()), (0, 1));
    assert_eq!(assembly.timeout(), None);
}

#[test]
fn a_picture_in_pieces() {
    let mut out = Vec::new();
    write_png(&mut out, r#"{"op":"unsubscribe","topic":"/t"}"#);
    let Operation::Png(png) = parse_json(&out).unwrap().operation else { panic!() };
    assert_eq!(png.fragment(), None);
    let (first, second) = png.data.split_at(20);
    let mut assembly = Assembly::new(limits());
    let mut add = |data: &str, num| {
        let id = Some(Id::Integer(1));
        let piece = Png { id, data: data.into(), piece: Some((num, 2)) };
        assembly.add(NOW, &piece.fragment().unwrap()).unwrap()
    };
    assert_eq!(add(second, 1), None);
    let whole = String::from_utf8(add(first, 0).unwrap()).unwrap();
    assert_eq!(read_png(&whole, 10_000).unwrap(), br#"{"op":"unsubscribe","topic":"/t"}"#);
}

#[test]
fn fragments_that_do_not_come() {
    let mut assembly = Assembly::new(limits());
    assembly.add(NOW, &fragment("a", 0, 3, "x")).unwrap();
    let later = NOW + Duration::from_secs(5);
    assembly.add(later, &fragment("a", 1, 3, "y")).unwrap();
    let end = later + Duration::from_secs(10);
    assert_eq!(assembly.timeout(), Some(end));
    assert!(assembly.expire(end - Duration::from_nanos(1)).is_empty());
    let expired = assembly.expire(end);
    assert_eq!(
        expired[0].to_string(),
        "fragment: found 2 of 3 fragments; expected all, with less than 10s between two"
    );
    assert_eq!((expired.len(), assembly.held_bytes(), assembly.forgotten()), (1, 0, 1));
}

#[test]
fn fragments_that_javascript_cut_within_a_character() {
    let mut assembly = Assembly::new(limits());
    let halves = [
        r#"{"op":"fragment","id":"a","data":"{\"a\":\"\ud83d","num":0,"total":2}"#,
        r#"{"op":"fragment","id":"a","data":"\ude00\"}","num":1,"total":2}"#,
    ];
    let mut whole = None;
    for half in halves {
        let Operation::Fragment(it) = parse_json(half.as_bytes()).unwrap().operation else {
            panic!()
        };
        whole = assembly.add(NOW, &it).unwrap();
    }
    assert_eq!(whole.unwrap(), "{\"a\":\"😀\"}".as_bytes());
}

#[test]
fn not_more_pieces_than_may_be() {
    let text = "x".repeat(25_000);
    let mut fragments = Fragments::new(&text, Id::Integer(1), 1).unwrap();
    assert_eq!(fragments.total(), 8334);
    let mut count = 0;
    let mut out = Vec::new();
    while fragments.write_next(&mut out) {
        count += 1;
    }
    assert_eq!(count, 8334);
    assert!(Fragments::new("short", Id::Integer(1), 5).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fragments_in_any_order(
        text in "[a\"\\\\\n é😀{}]{1,200}",
        size in 1..40u32,
        seed in any::<u64>(),
    ) {
        let Some(mut fragments) = Fragments::new(&text, Id::Text("f".into()), size) else {
            prop_assert!(text.len() <= size as usize);
            return Ok(());
        };
        let mut sent = Vec::new();
        let mut out = Vec::new();
        while fragments.write_next(&mut out) {
            sent.push(std::mem::take(&mut out));
        }
        prop_assert_eq!(sent.len(), fragments.total());
        let mut order: Vec<_> = (0..sent.len()).collect();
        order.sort_by_key(|at| (*at as u64 + 1).wrapping_mul(seed | 1).rotate_left(29));
        let limits = FragmentLimits { pieces_max: 1000, bytes_max: 1_000_000, ..limits() };
        let mut assembly = Assembly::new(limits);
        for (count, at) in (1..).zip(&order) {
            let Operation::Fragment(it) = parse_json(&sent[*at]).unwrap().operation else {
                return Err(TestCaseError::fail("no fragment"));
            };
            prop_assert!(it.data.len() <= size as usize + 3);
            let whole = assembly.add(NOW, &it).unwrap();
            if count < order.len() {
                prop_assert!(whole.is_none());
            } else {
                prop_assert_eq!(whole.unwrap(), text.as_bytes());
            }
        }
        prop_assert_eq!(assembly.held_bytes(), 0);
    }
}
