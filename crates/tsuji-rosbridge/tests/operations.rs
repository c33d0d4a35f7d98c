//! Every operation and option, in each encoding, and what is refused.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "support/encodings.rs"]
mod encodings;

use std::time::Duration;

use serde_json::Value;
use tsuji_core::{Durability, History, Qos, Reliability};
use tsuji_rosbridge::*;

/// What an operation says, in a line, but for its body.
fn told(incoming: &Incoming<'_>) -> String {
    let mut incoming = incoming.clone();
    use Operation::*;
    match &mut incoming.operation {
        Publish(it) => it.msg = Body::None,
        CallService(it) => it.args = Body::None,
        ServiceResponse(it) => it.values = Body::None,
        SendActionGoal(it) => it.args = Body::None,
        ActionFeedback(it) => it.values = Body::None,
        ActionResult(it) => it.values = Body::None,
        _ => (),
    }
    format!("{incoming:?}")
}

fn outcome(encoding: Encoding, bytes: &[u8]) -> String {
    match parse(encoding, bytes, NESTING_MAX) {
        Ok(incoming) => told(&incoming),
        Err(Refusal { operation, id, field, expected, .. }) => {
            format!("{operation:?} {id:?} {field:?} {expected}")
        }
    }
}

/// Reads it, and sees that CBOR and BSON of the same say the same.
#[track_caller]
fn read(json: &str) -> Result<Incoming<'_>, Refusal> {
    let tree: Value = serde_json::from_str(json).unwrap();
    let in_json = outcome(Encoding::Json, json.as_bytes());
    let mut cbor = Vec::new();
    encodings::cbor(&tree, &mut cbor);
    assert_eq!(outcome(Encoding::Cbor, &cbor), in_json, "CBOR");
    assert_eq!(outcome(Encoding::Bson, &encodings::bson(&tree)), in_json, "BSON");
    parse_json(json.as_bytes())
}

#[track_caller]
fn check(json: &str, expect: Operation<'_>) {
    let incoming = read(json).unwrap();
    assert_eq!(incoming.operation, expect);
    assert_eq!(incoming.operation.name(), expect.name());
    assert_eq!(incoming.operation.id(), expect.id());
}

#[track_caller]
fn refused(json: &str, expect: &str) {
    assert_eq!(read(json).unwrap_err().to_string(), expect);
}

#[track_caller]
fn broken(json: &str, expect: &str) {
    assert_eq!(parse_json(json.as_bytes()).unwrap_err().to_string(), expect);
}

fn id(text: &str) -> Option<Id<'_>> {
    Some(Id::Text(text.into()))
}

#[test]
fn topics() {
    check(
        r#"{"op":"advertise","id":"advertise:/chatter:1","type":"std_msgs/String","topic":"/chatter","latch":false,"queue_size":100}"#,
        Operation::Advertise(Advertise {
            id: id("advertise:/chatter:1"),
            topic: "/chatter".into(),
            ty: "std_msgs/String".into(),
            latch: false,
            queue_size: 100,
            qos: None,
        }),
    );
    check(
        r#"{"op":"unadvertise","id":7,"topic":"/chatter"}"#,
        Operation::Unadvertise(Unadvertise { id: Some(Id::Integer(7)), topic: "/chatter".into() }),
    );
    check(
        r#" { "latch" : true , "msg" : { "data" : "a \"}{ b" } , "topic" : "/\u0063hatter" , "id" : null, "op" : "publish", "queue_size": 3 } "#,
        Operation::Publish(Publish {
            id: None,
            topic: "/chatter".into(),
            msg: Body::Json(br#"{ "data" : "a \"}{ b" }"#),
            latch: Some(true),
            queue_size: Some(3),
            qos: None,
        }),
    );
    check(
        r#"{"op":"subscribe","id":"s","topic":"/t","type":"a/B","compression":"cbor-raw","throttle_rate":100,"queue_length":2,"fragment_size":1000}"#,
        Operation::Subscribe(Subscribe {
            id: id("s"),
            topic: "/t".into(),
            ty: Some("a/B".into()),
            throttle_rate: Duration::from_millis(100),
            queue_length: 2,
            fragment_size: Some(1000),
            compression: Compression::CborRaw,
            qos: None,
        }),
    );
    check(
        r#"{"op":"subscribe","topic":"/t","throttle_rate":0.5,"type":null,"compression":null}"#,
        Operation::Subscribe(Subscribe {
            id: None,
            topic: "/t".into(),
            ty: None,
            throttle_rate: Duration::from_micros(500),
            queue_length: 0,
            fragment_size: None,
            compression: Compression::None,
            qos: None,
        }),
    );
    check(
        r#"{"op":"unsubscribe","topic":"/t"}"#,
        Operation::Unsubscribe(Unsubscribe { id: None, topic: "/t".into() }),
    );
}

#[test]
fn services() {
    check(
        r#"{"op":"call_service","id":"c","service":"/add","args":[1,[2]],"timeout":2.5,"fragment_size":10,"compression":"png"}"#,
        Operation::CallService(CallService {
            id: id("c"),
            service: "/add".into(),
            ty: None,
            args: Body::Json(b"[1,[2]]"),
            timeout: Some(Duration::from_millis(2500)),
            fragment_size: Some(10),
            compression: Compression::Png,
        }),
    );
    check(
        r#"{"op":"call_service","service":"/rosapi/topics#33","type":"rosapi/Topics","args":{}}"#,
        Operation::CallService(CallService {
            id: id("33"),
            service: "/rosapi/topics".into(),
            ty: Some("rosapi/Topics".into()),
            args: Body::Json(b"{}"),
            timeout: None,
            fragment_size: None,
            compression: Compression::None,
        }),
    );
    check(
        r#"{"op":"advertise_service","type":"t/T","service":"/s"}"#,
        Operation::AdvertiseService(AdvertiseService {
            id: None,
            service: "/s".into(),
            ty: "t/T".into(),
        }),
    );
    check(
        r#"{"op":"unadvertise_service","service":"/s"}"#,
        Operation::UnadvertiseService(UnadvertiseService { id: None, service: "/s".into() }),
    );
    let response = |values, result| {
        Operation::ServiceResponse(ServiceResponse {
            id: id("service_request:/s:1"),
            service: "/s".into(),
            values: Body::Json(values),
            result,
        })
    };
    check(
        r#"{"op":"service_response","id":"service_request:/s:1","service":"/s","values":{"sum":3},"result":true}"#,
        response(br#"{"sum":3}"#, true),
    );
    check(
        r#"{"op":"service_response","id":"service_request:/s:1","service":"/s","values":{}}"#,
        response(b"{}", true),
    );
    check(
        r#"{"op":"service_response","id":"service_request:/s:1","service":"/s","values":"no","result":false}"#,
        response(br#""no""#, false),
    );
}

#[test]
fn actions() {
    check(
        r#"{"op":"advertise_action","type":"t/T","action":"/a"}"#,
        Operation::AdvertiseAction(AdvertiseAction {
            id: None,
            action: "/a".into(),
            ty: "t/T".into(),
        }),
    );
    check(
        r#"{"op":"unadvertise_action","action":"/a"}"#,
        Operation::UnadvertiseAction(UnadvertiseAction { id: None, action: "/a".into() }),
    );
    check(
        r#"{"op":"send_action_goal","id":"g","action":"/a","action_type":"t/T","args":{"order":5},"feedback":true}"#,
        Operation::SendActionGoal(SendActionGoal {
            id: id("g"),
            action: "/a".into(),
            action_type: "t/T".into(),
            args: Body::Json(br#"{"order":5}"#),
            feedback: true,
            fragment_size: None,
            compression: Compression::None,
        }),
    );
    check(
        r#"{"op":"cancel_action_goal","id":"g","action":"/a"}"#,
        Operation::CancelActionGoal(CancelActionGoal {
            id: Id::Text("g".into()),
            action: "/a".into(),
        }),
    );
    check(
        r#"{"op":"action_feedback","id":"g","action":"/a","values":{}}"#,
        Operation::ActionFeedback(ActionFeedback {
            id: Id::Text("g".into()),
            action: "/a".into(),
            values: Body::Json(b"{}"),
        }),
    );
    let result = |status, result, values| {
        Operation::ActionResult(ActionResult {
            id: Id::Text("g".into()),
            action: "/a".into(),
            values,
            status,
            result,
        })
    };
    check(
        r#"{"op":"action_result","id":"g","action":"/a","values":{},"result":true,"status":5}"#,
        result(5, true, Body::Json(b"{}")),
    );
    check(
        r#"{"op":"action_result","id":"g","action":"/a","values":{},"result":true}"#,
        result(4, true, Body::Json(b"{}")),
    );
    check(
        r#"{"op":"action_result","id":"g","action":"/a","result":false}"#,
        result(6, false, Body::None),
    );
}

#[test]
fn the_rest() {
    check(
        r#"{"op":"fragment","id":1,"data":"{\"op\":","num":0,"total":2.75}"#,
        Operation::Fragment(Fragment {
            id: Id::Integer(1),
            data: br#"{"op":"#.into(),
            num: 0,
            total: 2,
        }),
    );
    check(
        r#"{"op":"png","data":"aGk=","id":"p","num":1,"total":3}"#,
        Operation::Png(Png { id: id("p"), data: "aGk=".into(), piece: Some((1, 3)) }),
    );
    check(
        r#"{"op":"auth","mac":"m","client":"c","dest":"d","rand":"r","t":1.5,"level":"user","end":2}"#,
        Operation::Auth(Box::new(Auth {
            id: None,
            token: None,
            mac: "m".into(),
            client: "c".into(),
            dest: "d".into(),
            rand: "r".into(),
            t: 1.5,
            level: "user".into(),
            end: 2.0,
        })),
    );
    check(
        r#"{"op":"auth","token":"secret"}"#,
        Operation::Auth(Box::new(Auth {
            id: None,
            token: Some("secret".into()),
            mac: "".into(),
            client: "".into(),
            dest: "".into(),
            rand: "".into(),
            t: 0.0,
            level: "".into(),
            end: 0.0,
        })),
    );
    check(
        r#"{"op":"set_level","level":"warning"}"#,
        Operation::SetLevel(SetLevel { id: None, level: Level::Warning }),
    );
    check(
        r#"{"op":"status","level":"info","msg":"hello"}"#,
        Operation::Status(Status { id: None, level: Level::Info, msg: "hello".into() }),
    );
}

#[test]
fn options_of_the_session() {
    let check = |json: &str, fragment_size, message_interval, png| {
        let expect = SessionOptions { fragment_size, message_interval, png };
        assert_eq!(read(json).unwrap().session, expect);
    };
    let second = Some(Duration::from_secs(1));
    check(r#"{"op":"publish","topic":"/t"}"#, None, None, None);
    check(r#"{"op":"publish","topic":"/t","fragment_size":9}"#, Some(9), None, None);
    check(r#"{"op":"subscribe","topic":"/t","fragment_size":9}"#, None, None, None);
    check(r#"{"op":"publish","topic":"/t","message_intervall":1}"#, None, second, None);
    check(r#"{"op":"publish","topic":"/t","message_intervall":" 1.0 "}"#, None, second, None);
    check(r#"{"op":"publish","topic":"/t","png":"png"}"#, None, None, Some(true));
}

#[test]
fn what_does_not_fit() {
    refused(r#"{"topic":"/t"}"#, "op: found nothing; expected a text");
    refused(r#"{"op":"publish","id":"p:1"}"#, "publish: topic: found nothing; expected a text");
    assert_eq!(read(r#"{"op":"publish","id":"p:1"}"#).unwrap_err().id, id("p:1"));
    broken(r#"{"op":"publish","id":"p","topic":3}"#, "publish: topic: found 3; expected a text");
    broken(
        r#"{"op":"publish","topic":"/t","latch":"yes"}"#,
        "publish: latch: found \"yes\"; expected true or false",
    );
    broken(
        r#"{"op":"subscribe","topic":"/t","compression":7}"#,
        "subscribe: compression: found 7; expected a text",
    );
    broken(
        r#"{"op":"subscribe","topic":"/t","throttle_rate":"much"}"#,
        "subscribe: throttle_rate: found \"much\"; expected milliseconds",
    );
    broken(
        r#"{"op":"subscribe","topic":"/t","queue_length":"-1"}"#,
        "subscribe: queue_length: found \"-1\"; expected a whole number from 0 to 4294967295",
    );
    broken(
        r#"{"op":"subscribe","topic":"/t","fragment_size":0}"#,
        "subscribe: fragment_size: found 0; expected a number of bytes, at least 1",
    );
    broken(
        r#"{"op":"publish","topic":"\ud800"}"#,
        "publish: topic: found \"\\ud800\"; expected both halves of a surrogate pair",
    );
    broken(
        r#"{"op":"action_result","id":1,"action":"/a","status":9}"#,
        "action_result: status: found 9; expected the number of a goal status, -1 to 6",
    );
    refused(
        r#"{"op":"cancel_action_goal","action":"/a"}"#,
        "cancel_action_goal: id: found nothing; expected a text or a whole number",
    );
    let unknown = read(r#"{"op":"dance","id":4}"#).unwrap_err();
    assert_eq!((unknown.field, unknown.id), (Some("op"), Some(Id::Integer(4))));
    let long = format!(r#"{{"op":"{}"}}"#, "x".repeat(1000));
    assert!(parse_json(long.as_bytes()).unwrap_err().found.len() < 80);
}

#[test]
fn names_and_ids_have_a_length() {
    let id = |length| format!(r#"{{"op":"publish","topic":"/t","id":"{}"}}"#, "x".repeat(length));
    assert!(read(&id(1024)).is_ok());
    let refusal = read(&id(1025)).unwrap_err();
    assert_eq!((refusal.field, refusal.id), (Some("id"), None));
    let topic = format!(r#"{{"op":"subscribe","id":1,"topic":"/{}"}}"#, "x".repeat(1024));
    let refusal = read(&topic).unwrap_err();
    assert_eq!((refusal.field, refusal.id), (Some("topic"), Some(Id::Integer(1))));
}

#[test]
fn durations_end() {
    let json =
        r#"{"op":"call_service","service":"/s","timeout":1e300,"message_intervall":"1e300"}"#;
    let incoming = read(json).unwrap();
    assert_eq!(incoming.session.message_interval, Some(Qos::DURATION_MAX));
    let Operation::CallService(it) = incoming.operation else { panic!() };
    assert_eq!(it.timeout, Some(Qos::DURATION_MAX));
}

#[test]
fn zero_and_less_is_no_time_out() {
    let timeout = |text: &str| {
        let json = format!(r#"{{"op":"call_service","service":"/s","timeout":{text}}}"#);
        let Operation::CallService(it) = parse_json(json.as_bytes()).unwrap().operation else {
            panic!()
        };
        it.timeout
    };
    for none in ["0", "0.0", "-1", "-0.5", "\"-1\"", "\"0\"", "-Infinity"] {
        assert_eq!(timeout(none), Some(Duration::ZERO), "{none}");
    }
    assert_eq!(timeout("null"), None);
    assert_eq!(timeout("Infinity"), Some(Qos::DURATION_MAX));
    assert_eq!(timeout("\"2.5\""), Some(Duration::from_millis(2500)));
    for wrong in ["NaN", "\"x\"", "true"] {
        let json = format!(r#"{{"op":"call_service","service":"/s","timeout":{wrong}}}"#);
        assert_eq!(
            parse_json(json.as_bytes()).unwrap_err().to_string(),
            format!(
                "call_service: timeout: found {wrong}; expected seconds; 0 or less for as long as it takes"
            )
        );
    }
    let nan = parse_json(br#"{"op":"call_service","service":"/s#7","timeout":NaN}"#).unwrap_err();
    // Whoever waits can be told.
    assert_eq!((nan.name.as_deref(), nan.id), (Some("/s"), id("7")));
    let json = br#"{"op":"subscribe","topic":"/t","throttle_rate":-5,"compression":"zip"}"#;
    let Operation::Subscribe(it) = parse_json(json).unwrap().operation else { panic!() };
    assert_eq!((it.throttle_rate, it.compression), (Duration::ZERO, Compression::None));
    for none in ["-5", "-0.5", "0", "null", "-1e999"] {
        let json = format!(r#"{{"op":"subscribe","topic":"/t","queue_length":{none}}}"#);
        let Operation::Subscribe(it) = parse_json(json.as_bytes()).unwrap().operation else {
            panic!()
        };
        assert_eq!(it.queue_length, 0, "{none}");
    }
}

#[test]
fn json_is_known_in_a_binary_frame_and_behind_a_byte_order_mark() {
    for text in [
        r#"{"op":"unsubscribe","topic":"/t"}"#,
        "\u{feff}{\"op\":\"unsubscribe\",\"topic\":\"/t\"}",
        " \t\r\n{\"op\":\"unsubscribe\",\"topic\":\"/t\"}",
        "\u{feff}\n{\"op\":\"unsubscribe\",\"topic\":\"/t\"}",
    ] {
        assert_eq!(Encoding::of_binary(text.as_bytes()), Encoding::Json, "{text:?}");
        assert_eq!(parse_json(text.as_bytes()).unwrap().operation.name(), "unsubscribe");
    }
    for map in [&b"\xa1\x62op\x61x"[..], b"\xbf\xff", b"\xb8\x19", b"", b"[]"] {
        assert_eq!(Encoding::of_binary(map), Encoding::Cbor, "{map:?}");
    }
}

#[test]
fn what_is_no_message() {
    broken("", "found the end, at byte 0; expected an object in braces");
    broken("[]", "found [] at byte 0; expected an object in braces");
    broken(
        r#"{"op":"publish","id":"a","topic":"/t""#,
        "publish: found the end, at byte 37; expected a comma or the closing brace",
    );
    broken(
        r#"{"op":"publish","topic":"/t"}x"#,
        "publish: found x at byte 29; expected nothing after the closing brace",
    );
    broken(r#"{"op":"publish",}"#, "publish: found } at byte 16; expected a name in double quotes");
    broken(r#"{"op":tru}"#, "found tru} at byte 6; expected a value");
    broken(r#"{"n":01}"#, "found 1} at byte 6; expected a comma or the closing brace");
    broken(r#"{"n":1.}"#, "found } at byte 7; expected a digit");
    broken(
        "{\"n\":\"a\nb\"}",
        "found \u{fffd}b\"} at byte 7; expected no control character within a text",
    );
    broken(r#"{"n":"\"}"#, "found the end, at byte 9; expected the closing quote of a text");
    let deep = format!(r#"{{"msg":{}"#, "{".repeat(1_000_000));
    assert!(parse_json(deep.as_bytes()).unwrap_err().to_string().contains("fewer levels"));
    let deep = [&[0xA1, 0x61, b'x'][..], &[0x81; 1_000_000]].concat();
    assert!(parse_cbor(&deep).unwrap_err().to_string().contains("fewer levels"));
    let levels = |count| format!(r#"{{"msg":{}{}}}"#, "[".repeat(count), "]".repeat(count));
    let depth = |text: String| parse_json(text.as_bytes()).unwrap_err().expected;
    assert_eq!(depth(levels(NESTING_MAX - 1)), "a text");
    assert_eq!(depth(levels(NESTING_MAX)), "fewer levels of nesting");
    // However many members are announced, what has not come is not waited or made room for.
    assert!(parse_cbor(&[0xBB, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]).is_err());
    assert!(parse_bson(&[0xFF, 0xFF, 0xFF, 0x7F, 0]).is_err());
    assert!(parse_bson(&[5, 0, 0, 0, 1]).is_err());
}

#[test]
fn the_last_of_a_name_counts() {
    let json = br#"{"op":"publish","topic":"/a","topic":"/b"}"#;
    let Operation::Publish(publish) = parse_json(json).unwrap().operation else { panic!() };
    assert_eq!(publish.topic, "/b");
}

#[test]
fn cbor_that_others_write() {
    let check = |bytes: &[u8], expect: &str| {
        let Operation::Unsubscribe(it) = parse_cbor(bytes).unwrap().operation else { panic!() };
        assert_eq!(it.topic, expect);
    };
    // A map and a text without a length, and a tag.
    let op = b"\x62op\x6bunsubscribe\x65topic";
    check(&[b"\xBF", &op[..], b"\x7F\x62/t\x61u\xFF\xFF"].concat(), "/tu");
    check(&[b"\xA2", &op[..], b"\xD8\x20\x62/t"].concat(), "/t");
    // What JavaScript has not defined.
    check(&[b"\xA3\x62id\xF7", &op[..], b"\x62/t"].concat(), "/t");
    // A throttle rate as a float of 16 bits: 1.5.
    let subscribe = b"\xA3\x62op\x69subscribe\x65topic\x62/t\x6dthrottle_rate\xF9\x3E\x00";
    let Operation::Subscribe(it) = parse_cbor(subscribe).unwrap().operation else { panic!() };
    assert_eq!(it.throttle_rate, Duration::from_micros(1500));
}

#[test]
fn quality_of_service() {
    let qos = |option: &str| {
        let json = format!(r#"{{"op":"subscribe","topic":"/t","qos":{option}}}"#);
        read(&json).map_err(|it| it.to_string()).map(|it| match it.operation {
            Operation::Subscribe(it) => it.qos.unwrap().over(Qos::SENSOR_DATA),
            _ => panic!(),
        })
    };
    let check = |option: &str, expect: Qos| {
        let got = qos(option).unwrap();
        got.validate().unwrap();
        assert_eq!(got, expect, "{option}");
    };
    let base = Qos::SENSOR_DATA;
    let history = |history| Qos { history, ..base };
    check("{}", base);
    check(r#"{"depth":3}"#, history(History::KeepLast(3)));
    check(r#"{"history":"keep_all","depth":3}"#, history(History::KeepAll));
    check(r#"{"history":"keep_last"}"#, history(History::KeepLast(10)));
    check(r#"{"history":"KEEP_LAST","depth":1}"#, history(History::KeepLast(1)));
    check(r#"{"history":2}"#, history(History::KeepAll));
    check(
        r#"{"reliability":"reliable","durability":"transient_local"}"#,
        Qos { reliability: Reliability::Reliable, durability: Durability::TransientLocal, ..base },
    );
    check(r#"{"reliability":"best_available","durability":0}"#, base);
    let second = Some(Duration::from_secs(1));
    check(
        r#"{"deadline":1,"lifespan":{"sec":1}}"#,
        Qos { deadline: second, lifespan: second, ..base },
    );
    let precise = Some(Duration::new(1, 500));
    check(r#"{"deadline":{"secs":1,"nsecs":500}}"#, Qos { deadline: precise, ..base });
    check(r#"{"deadline":"infinite","lifespan":0}"#, base);
    check(r#"{"lifespan":{"sec":9223372036,"nanosec":854775807}}"#, base);
    let refused = |option: &str, expect: &str| assert_eq!(qos(option).unwrap_err(), expect);
    refused(
        r#"{"depth":0}"#,
        "subscribe: depth: found 0; expected a whole number from 1 to 1000000",
    );
    refused(
        r#"{"reliability":"realiable"}"#,
        "subscribe: reliability: found \"realiable\"; \
         expected reliable, best_effort, system_default or best_available",
    );
    refused(
        r#"{"deadline":-1}"#,
        "subscribe: deadline: found -1; \
         expected seconds, {\"sec\": …, \"nanosec\": …} or \"infinite\"",
    );
    let number = parse_json(br#"{"op":"publish","topic":"/t","qos":5}"#).unwrap_err();
    assert_eq!(number.to_string(), "publish: qos: found 5; expected an object");
}

#[test]
fn levels() {
    let check = |level: Level, of: Level, expect| assert_eq!(level.tells(of), expect);
    check(Level::Error, Level::Error, true);
    check(Level::Error, Level::Warning, false);
    check(Level::Info, Level::Warning, true);
    check(Level::None, Level::Error, false);
    check(Level::Info, Level::None, false);
}
