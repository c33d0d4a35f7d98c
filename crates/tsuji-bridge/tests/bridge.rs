//! A bridge and its clients: what they say, and what comes of it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tsuji::action::{ActionServerOptions, GoalStatus};
use tsuji::{History, Qos, RawType};
use tsuji_bridge::protocol::access::{Access, Globs, Permissions, ServerGlobs, Token, User};
use tsuji_bridge::{Bridge, ErrorKind, Place, Protocol, Settings, TlsFiles};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use tsuji_interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::String as Text;
use tungstenite::protocol::Role;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};
use world::{WATCHDOG, World, until};

#[path = "bridge/access.rs"]
mod access;
#[path = "bridge/actions.rs"]
mod actions;
#[path = "bridge/delivery.rs"]
mod delivery;
#[path = "bridge/diagnostics.rs"]
mod diagnostics;
#[path = "bridge/faults.rs"]
mod faults;
#[path = "bridge/latched.rs"]
mod latched;
#[path = "bridge/parameters.rs"]
mod parameters;
#[path = "bridge/pictures.rs"]
mod pictures;
#[path = "bridge/protocol.rs"]
mod protocol;
#[path = "bridge/routes.rs"]
mod routes;
mod world;

const KEEP_ALL: Qos = Qos { history: History::KeepAll, ..Qos::DEFAULT };

fn text(data: &str) -> serde_json::Value {
    json!({ "op": "publish", "topic": "/chatter", "msg": { "data": data } })
}

#[test]
fn what_a_client_publishes_is_received_and_what_is_published_comes_to_a_client() {
    let world = World::new();
    let mut client = world.client();
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    // Nobody can have met yet: what is said before that waits.
    client.say(&json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" }));
    for at in 0..100 {
        client.say(&text(&format!("hello {at} \"\\\u{1f980}")));
    }
    for at in 0..100 {
        let message = until("a message", || heard.take().unwrap());
        assert_eq!(message.view().data, format!("hello {at} \"\\\u{1f980}"));
    }

    client.say(&json!({ "op": "subscribe", "topic": "answers", "type": "std_msgs/msg/String" }));
    let speaker = world.node.create_publisher::<Text>("/answers", KEEP_ALL).unwrap();
    speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
    for at in 0..100 {
        speaker.publish(Text { data: format!("{at}\n") }).unwrap();
    }
    for at in 0..100 {
        let expected =
            json!({ "op": "publish", "topic": "/answers", "msg": { "data": format!("{at}\n") } });
        assert_eq!(client.hear_json(), expected);
    }
}

#[test]
fn one_client_hears_another_in_every_form() {
    let world = World::new();
    let mut speaker = world.client();
    speaker.say(&json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" }));
    let of = |compression: &str| {
        let mut client = world.client();
        client.say(&json!({
            "op": "subscribe", "topic": "/chatter", "type": "std_msgs/String", "compression": compression,
        }));
        client.settle();
        client
    };
    let mut clients = ["none", "png", "cbor", "cbor-raw"].map(of);
    speaker.say(&text("hello"));
    let [plain, picture, cbor, raw] = &mut clients;
    assert_eq!(plain.hear_json(), text("hello"));
    let data = picture.hear_json()["data"].as_str().unwrap().to_owned();
    let json = tsuji_bridge::protocol::read_png(&data, 1000).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&json).unwrap(), text("hello"));
    let Message::Binary(bytes) = cbor.hear() else { panic!() };
    assert!(bytes.ends_with(b"\x63msg\xa1\x64data\x65hello"), "{bytes:?}");
    let Message::Binary(bytes) = raw.hear() else { panic!() };
    assert!(bytes.windows(6).any(|it| it == b"\x65bytes"), "{bytes:?}");
    assert!(bytes.ends_with(b"\x06\0\0\0hello\0"), "{bytes:?}");
}

#[test]
fn where_a_subscription_has_no_room_the_client_waits_and_nothing_is_lost() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    let (mut socket, mut tcp) = (world.client(), world.tcp());
    let advertise = json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" });
    socket.say(&advertise);
    tcp.say(advertise.to_string().as_bytes());
    let long = "x".repeat(1000);
    const COUNT: usize = 20_000;
    let count = std::thread::scope(|scope| {
        scope.spawn(|| (0..COUNT).for_each(|_| socket.say(&text(&long))));
        scope.spawn(|| (0..COUNT).for_each(|_| tcp.say(text(&long).to_string().as_bytes())));
        // Nobody takes until no more is published: then both wait.
        let mut before = 0;
        until("the room is full", || {
            let published = world.bridge.statistics().published;
            std::thread::sleep(Duration::from_millis(50));
            let is_full = 0 < published && published == before;
            before = published;
            is_full.then_some(())
        });
        assert!(before < 2 * COUNT as u64, "all fits, so nobody waits");
        let mut count = 0;
        while count < 2 * COUNT {
            until("a message", || heard.take().unwrap());
            count += 1;
        }
        count
    });
    assert_eq!((count, heard.counters().lost), (2 * COUNT, 0));
}

#[test]
fn long_messages_go_in_pieces_both_ways() {
    let world = World::new();
    let mut client = world.client();
    client.say(&json!({
        "op": "subscribe", "topic": "/chatter", "type": "std_msgs/String", "fragment_size": 40,
    }));
    client.say(&json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" }));
    let whole = text("a text that is longer than forty bytes, and then some").to_string();
    let (begin, end) = whole.split_at(30);
    for (num, data) in [(1, end), (0, begin)] {
        client.say(&json!({ "op": "fragment", "id": "f", "data": data, "num": num, "total": 2 }));
    }
    let mut pieces = Vec::new();
    while pieces.len() < 3 {
        let piece = client.hear_of("fragment");
        assert_eq!(piece["num"], pieces.len());
        pieces.push(piece["data"].as_str().unwrap().to_owned());
    }
    let back: serde_json::Value = serde_json::from_str(&pieces.concat()).unwrap();
    assert_eq!(back.to_string(), whole);
}

#[test]
fn services_go_both_ways() {
    let world = World::new();
    let mut client = world.client();
    let _service = world
        .node
        .create_service::<AddTwoInts>("/add", |request| AddTwoIntsResponse {
            sum: request.a + request.b,
        })
        .unwrap();
    world.spin();
    // Without a type it is that of whoever serves, once he is known.
    let answer = until("the service", || {
        let answer = client.call("/add", json!({ "a": 2, "b": 40 }));
        (answer["result"] == true).then_some(answer)
    });
    assert_eq!(answer["values"], json!({ "sum": 42 }));
    assert_eq!(client.call("/add", json!([1, 2]))["values"], json!({ "sum": 3 }));
    let refused = client.call("/add", json!({ "a": "two" }));
    assert_eq!(refused["result"], false);
    assert!(refused["values"].as_str().unwrap().contains("`a`: found"), "{refused}");
    let none = client.call("/nobody", json!({}));
    assert_eq!(none["values"], "service /nobody does not exist");

    client.say(&json!({
        "op": "advertise_service", "service": "/multiply", "type": "example_interfaces/AddTwoInts",
    }));
    let caller = world.node.create_client::<AddTwoInts>("/multiply").unwrap();
    caller.wait_for_service(WATCHDOG).unwrap();
    let request = tsuji_interfaces::example_interfaces::srv::AddTwoIntsRequest { a: 6, b: 7 };
    let pending = caller.send(request).unwrap();
    let asked = client.hear_of("call_service");
    let (a, b) = (asked["args"]["a"].as_i64().unwrap(), asked["args"]["b"].as_i64().unwrap());
    client.say(&json!({
        "op": "service_response", "service": "/multiply", "id": asked["id"], "result": true,
        "values": { "sum": a * b },
    }));
    assert_eq!(pending.wait(WATCHDOG).unwrap().sum, 42);
}

#[test]
fn goals_are_pursued_with_feedback_cancelled_and_refused() {
    let world = World::new();
    let mut client = world.client();
    let send = |id: &str, order: i32| {
        json!({
            "op": "send_action_goal", "id": id, "action": "/fibonacci", "feedback": true,
            "action_type": "example_interfaces/action/Fibonacci", "args": { "order": order },
        })
    };
    client.say(&send("early", 1));
    let result = client.hear_of("action_result");
    assert_eq!(
        (&result["result"], &result["values"]),
        (&json!(false), &json!("action /fibonacci does not exist"))
    );

    let _server = world
        .node
        .create_action_server(
            ActionServerOptions::<Fibonacci>::new("/fibonacci").on_goal(|_, goal| 0 <= goal.order),
            |handle| {
                let mut sequence = vec![0, 1];
                while (sequence.len() as i32) < handle.goal().order {
                    if handle.is_canceling() {
                        return handle.canceled(FibonacciResult { sequence }).unwrap();
                    }
                    sequence.push(
                        sequence[sequence.len() - 1].wrapping_add(sequence[sequence.len() - 2]),
                    );
                    handle
                        .publish_feedback(FibonacciFeedback { sequence: sequence.clone() })
                        .unwrap();
                    if 10 < handle.goal().order {
                        handle.sleep(Duration::from_millis(1));
                    }
                }
                handle.succeed(FibonacciResult { sequence }).unwrap();
            },
        )
        .unwrap();
    world.spin();
    client.say(&send("g1", 5));
    let feedback = client.hear_of("action_feedback");
    assert_eq!(
        (&feedback["id"], &feedback["values"]["sequence"]),
        (&json!("g1"), &json!([0, 1, 1])),
        "{feedback}"
    );
    let result = client.hear_of("action_result");
    assert_eq!(
        (&result["status"], &result["values"]),
        (&json!(4), &json!({ "sequence": [0, 1, 1, 2, 3] })),
        "{result}"
    );

    client.say(&send("g2", 1_000_000));
    client.hear_of("action_feedback");
    client.say(&json!({ "op": "cancel_action_goal", "id": "g2", "action": "/fibonacci" }));
    let result = client.hear_of("action_result");
    assert_eq!((&result["id"], &result["status"]), (&json!("g2"), &json!(5)), "{result}");

    client.say(&send("g3", -1));
    let result = client.hear_of("action_result");
    assert_eq!(result["values"], "the goal was rejected", "{result}");
    client.say(&json!({ "op": "cancel_action_goal", "id": "g3", "action": "/fibonacci" }));
    assert!(client.hear_of("status")["msg"].as_str().unwrap().contains("has not ended"));
}

#[test]
fn a_client_pursues_goals_of_others() {
    let world = World::new();
    let mut client = world.client();
    client.say(&json!({
        "op": "advertise_action", "action": "/fibonacci", "type": "example_interfaces/action/Fibonacci",
    }));
    let asking = world.node.create_action_client::<Fibonacci>("/fibonacci").unwrap();
    let node = world.node.clone();
    let pursued = std::thread::spawn(move || {
        let send = |order| asking.send_goal(FibonacciGoal { order }, WATCHDOG).unwrap().unwrap();
        let goal = send(3);
        let feedback = goal.next_feedback(WATCHDOG).unwrap().unwrap();
        assert_eq!(feedback.sequence, [0, 1]);
        let first = goal.result(WATCHDOG).unwrap();
        let goal = send(1000);
        assert!(goal.next_feedback(WATCHDOG).unwrap().is_some());
        goal.cancel(WATCHDOG).unwrap();
        let second = goal.result(WATCHDOG).unwrap();
        let goal = send(7);
        assert!(goal.next_feedback(WATCHDOG).unwrap().is_some());
        let third = goal.result(WATCHDOG).unwrap();
        drop(node);
        [first, second, third]
    });
    let mut ids = Vec::new();
    for order in [3, 1000, 7] {
        let goal = client.hear_of("send_action_goal");
        assert_eq!(
            (&goal["action"], &goal["args"]),
            (&json!("/fibonacci"), &json!({ "order": order })),
            "{goal}"
        );
        ids.push(goal["id"].clone());
        let id = &goal["id"];
        client.say(&json!({
            "op": "action_feedback", "id": id, "action": "/fibonacci", "values": { "sequence": [0, 1] },
        }));
        let mut result = json!({
            "op": "action_result", "id": id, "action": "/fibonacci", "values": { "sequence": [0, 1, 1] },
            "status": 4, "result": true,
        });
        if order == 1000 {
            let cancel = client.hear_of("cancel_action_goal");
            assert_eq!(&cancel["id"], id);
            result["status"] = json!(5);
        }
        // The last is left behind by a client that goes.
        if order != 7 {
            client.say(&result);
        }
    }
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 3);
    client.settle();
    drop(client);
    let [first, second, third] = pursued.join().unwrap();
    assert_eq!((first.0, &*first.1.sequence), (GoalStatus::Succeeded, &[0, 1, 1][..]));
    assert_eq!((second.0, &*second.1.sequence), (GoalStatus::Canceled, &[0, 1, 1][..]));
    assert_eq!((third.0, third.1.sequence.len()), (GoalStatus::Aborted, 0));
}

#[test]
fn rosapi_tells_what_there_is() {
    let world = World::new();
    let mut client = world.client();
    let _publisher = world.node.create_publisher::<Image>("/camera", Qos::DEFAULT).unwrap();
    until("the topic", || {
        let topics = client.call("/rosapi/topics", json!({}));
        let all = topics["values"]["topics"].as_array().unwrap();
        all.contains(&json!("/camera")).then_some(())
    });
    let ty = client.call("rosapi/topic_type", json!({ "topic": "/camera" }));
    assert_eq!(ty["values"], json!({ "type": "sensor_msgs/msg/Image" }));
    let nodes = client.call("/rosapi/publishers", json!({ "topic": "/camera" }));
    assert_eq!(nodes["values"], json!({ "publishers": ["/beside"] }));
    let details = client.call("/rosapi/message_details", json!({ "type": "sensor_msgs/Image" }));
    let typedefs = details["values"]["typedefs"].as_array().unwrap();
    assert_eq!(typedefs[0]["fieldtypes"][0], "std_msgs/Header");
    assert_eq!(typedefs[0]["fieldarraylen"].as_array().unwrap().last().unwrap(), 0);
    assert_eq!(typedefs.len(), 3);
}

#[test]
fn what_is_wrong_is_said_and_nothing_else_suffers() {
    let world = World::new();
    let mut client = world.client();
    let said = |client: &mut world::Client, text: &str| {
        client.say_text(text);
        let status = client.hear_json();
        assert_eq!(
            (&status["op"], &status["level"]),
            (&json!("status"), &json!("error")),
            "{status}"
        );
        (status["id"].clone(), status["msg"].as_str().unwrap().to_owned())
    };
    client.say(&json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" }));
    let deep = "{".repeat(1_000_000);
    for (text, expected) in [
        ("", ""),
        ("nonsense", ""),
        (&*deep, ""),
        (r#"{"op":"dance","id":"d"}"#, "dance"),
        (r#"{"op":"publish","id":"p","topic":"/chatter","msg":{"data":7}}"#, "data"),
        (r#"{"op":"publish","id":"p","topic":"/chatter","msg":{"date":"x"}}"#, "date"),
        (r#"{"op":"publish","id":"p","topic":"/unknown","msg":{}}"#, "/unknown"),
        (r#"{"op":"advertise","id":"a","topic":"/x","type":"no_msgs/Nothing"}"#, "no_msgs"),
        (
            r#"{"op":"advertise","id":"a","topic":"/chatter","type":"std_msgs/Int32"}"#,
            "std_msgs/msg/String",
        ),
        (r#"{"op":"subscribe","id":"s","topic":"/nobody"}"#, "type"),
        (r#"{"op":"subscribe","id":"s","topic":"/a b","type":"std_msgs/String"}"#, ""),
        (r#"{"op":"unsubscribe","id":"u","topic":"/nobody"}"#, "/nobody"),
        (r#"{"op":"service_response","id":"r","service":"/x","values":{},"result":true}"#, "id"),
    ] {
        let (_, msg) = said(&mut client, text);
        assert!(msg.contains(expected), "{}: {msg}", &text[..text.len().min(100)]);
    }
    let (id, _) = said(&mut client, r#"{"op":"dance","id":"d"}"#);
    assert_eq!(id, "d");
    client.settle();
    assert_eq!(world.bridge.statistics().refusals, 14);
}

#[test]
fn objects_by_tcp_are_understood_in_any_pieces_and_unaltered() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    let mut tcp = world.tcp();
    tcp.say(br#"{"op":"advertise","topic":"/chatter","type":"std_msgs/String"} "#);
    let data = "  a  b \t{}[]\\\"  ";
    let message = text(data).to_string();
    // One by one, and then many at once.
    for byte in message.as_bytes() {
        tcp.say(&[*byte]);
    }
    tcp.say(message.repeat(50).as_bytes());
    for _ in 0..51 {
        let message = until("a message", || heard.take().unwrap());
        assert_eq!(message.view().data, data);
    }
    tcp.say(br#"rubbish {"op":"call_service","id":1,"service":"/rosapi/get_ros_version"}"#);
    assert_eq!(tcp.hear()["level"], "error");
    let version = tcp.hear();
    assert_eq!((&version["id"], &version["values"]["version"]), (&json!(1), &json!(2)));
}

#[test]
fn datagrams_are_understood_and_answered() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    let udp = world.udp();
    udp.send(br#"{"op":"advertise","topic":"/chatter","type":"std_msgs/String"}"#).unwrap();
    udp.send(text("by datagram").to_string().as_bytes()).unwrap();
    let message = until("a message", || heard.take().unwrap());
    assert_eq!(message.view().data, "by datagram");
    udp.send(br#"{"op":"subscribe","topic":"/back","type":"std_msgs/String"}"#).unwrap();
    let speaker = world.node.create_publisher::<Text>("/back", KEEP_ALL).unwrap();
    speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
    speaker.publish(Text { data: "back".into() }).unwrap();
    let mut buffer = [0; 1000];
    let count = udp.recv(&mut buffer).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&buffer[..count]).unwrap();
    assert_eq!(value["msg"], json!({ "data": "back" }));
}

#[test]
fn a_client_that_does_not_read_loses_its_own_samples_and_no_one_elses() {
    let mut settings = Settings::default();
    settings.limits.client.queue.bytes_max = 4 << 20;
    let world = World::with(settings);
    let subscribe = json!({
        "op": "subscribe", "topic": "/camera", "type": "sensor_msgs/Image", "compression": "cbor",
        "queue_length": 2,
    });
    let (mut slow, mut quick) = (world.client(), world.client());
    for client in [&mut slow, &mut quick] {
        client.say(&subscribe);
        client.settle();
    }
    let camera = world.node.create_publisher::<Image>("/camera", Qos::DEFAULT).unwrap();
    camera.wait_for_subscriptions(1, WATCHDOG).unwrap();
    for at in 0..100_u32 {
        camera.publish(&Image { height: at, data: vec![7; 1 << 20], ..Image::default() }).unwrap();
        let Message::Binary(bytes) = quick.hear() else { panic!() };
        assert!(bytes.len() > 1 << 20, "picture {at}");
    }
    // The slow one gets what was on its way, and then the newest.
    let mut last = Vec::new();
    let mut count = 0;
    while height(&last) != Some(99) {
        let Message::Binary(bytes) = slow.hear() else { panic!() };
        last = bytes[..300].to_vec();
        count += 1;
    }
    assert!(count < 50, "{count} came");
    assert_eq!(world.bridge.statistics().dropped, 100 - count);
}

/// The number of a picture of less than 256.
fn height(cbor: &[u8]) -> Option<u32> {
    let at = cbor.windows(7).position(|it| it == b"\x66height")? + 7;
    Some(if cbor[at] == 0x18 { cbor[at + 1].into() } else { cbor[at].into() })
}

#[test]
fn what_breaks_the_protocol_is_closed_with_a_code_and_others_go_on() {
    let mut settings = Settings::default();
    settings.limits.message_bytes_max = 100_000;
    let world = World::with(settings);
    let mut other = world.client();
    let mut long = world.client();
    long.say(
        &json!({ "op": "publish", "topic": "/chatter", "msg": { "data": "x".repeat(100_000) } }),
    );
    assert_eq!(long.hear_close().unwrap().code, CloseCode::Size);
    let mut broken = world.client();
    // A control frame that goes on in the next.
    broken.raw(&[0x09, 0x80, 0, 0, 0, 0]);
    assert_eq!(broken.hear_close().unwrap().code, CloseCode::Protocol);
    let mut words = world.client();
    words.raw(&[0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28]);
    assert_eq!(words.hear_close().unwrap().code, CloseCode::Invalid);
    let mut lies = world.client();
    // Says that two gigabytes follow.
    lies.raw(&[0x81, 0xff, 0, 0, 0, 0, 0x80, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(lies.hear_close().unwrap().code, CloseCode::Size);
    let mut half = world.client();
    half.raw(&[0x81, 0xfe, 0x10, 0, 1, 2, 3, 4, b'x']);
    drop(half);
    let mut deep = world.tcp();
    deep.say("{\"a\":".repeat(1000).as_bytes());
    assert_eq!(deep.hear()["level"], "error");
    assert_eq!(deep.stream.read(&mut [0; 10]).unwrap(), 0);
    other.settle();
    until("those have gone", || (world.bridge.statistics().disconnected == 6).then_some(()));
}

#[test]
fn what_is_said_last_arrives_though_the_client_has_gone() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    for at in 0..10 {
        let mut client = world.client();
        client.say(&json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" }));
        client.say(&text(&format!("{at}")));
        drop(client);
        let message = until("a message", || heard.take().unwrap());
        assert_eq!(message.view().data, format!("{at}"));
    }
}

#[test]
fn a_topic_has_one_type_however_soon_two_are_asked_for() {
    let world = World::new();
    let speaker = world.node.create_publisher::<Text>("/race", KEEP_ALL).unwrap();
    let mut client = world.client();
    let mut other = world.tcp();
    let subscribe =
        |ty: &str| json!({ "op": "subscribe", "topic": "/race", "type": ty }).to_string();
    client.say_text(&subscribe("std_msgs/String"));
    other.say(subscribe("std_msgs/Int32").as_bytes());
    // Whoever comes second is refused.
    let ask = json!({ "op": "call_service", "id": "t", "service": "/rosapi/get_time" });
    client.say(&ask);
    other.say(ask.to_string().as_bytes());
    let mut refused = [false; 2];
    while client.hear_json()["op"] == "status" {
        refused[0] = true;
    }
    while other.hear()["op"] == "status" {
        refused[1] = true;
    }
    assert_ne!(refused[0], refused[1]);
    if refused[0] {
        return;
    }
    speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
    speaker.publish(Text { data: "text".to_owned() }).unwrap();
    assert_eq!(client.hear_json()["msg"]["data"], "text");
}

#[test]
fn who_has_sent_very_much_and_not_read_is_read_again_when_he_has() {
    let world = World::new();
    let mut tcp = world.tcp();
    let ask = br#"{"op":"call_service","id":"t","service":"/rosapi/get_ros_version"}"#;
    // Far more answers than fit any buffer between both.
    const COUNT: usize = 60_000;
    let mut stream = tcp.stream.try_clone().unwrap();
    let asking = std::thread::spawn(move || {
        for _ in 0..COUNT / 100 {
            std::io::Write::write_all(&mut stream, &ask.repeat(100)).unwrap();
        }
    });
    let answer = tcp.hear().to_string().len();
    let (mut count, mut read) = (1, 0);
    while count < COUNT {
        read += tcp.hear().to_string().len();
        count += 1;
    }
    assert_eq!(read, (COUNT - 1) * answer);
    asking.join().unwrap();
}

#[test]
fn calls_by_datagram_time_out_too() {
    let world = World::new();
    let _mute = world.node.create_polled_raw_service("/mute", trigger()).unwrap();
    let udp = world.udp();
    let mut buffer = [0; 1000];
    let call =
        r#"{"op":"call_service","id":"u","service":"/mute","type":"std_srvs/Trigger","timeout":1}"#;
    udp.send(call.as_bytes()).unwrap();
    let count = udp.recv(&mut buffer).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&buffer[..count]).unwrap();
    assert_eq!((&answer["id"], &answer["result"]), (&json!("u"), &json!(false)), "{answer}");
}

fn trigger() -> RawType {
    RawType::new("std_srvs/srv/Trigger")
}

#[test]
fn who_asks_for_very_much_keeps_nobody_else_waiting() {
    let world = World::new();
    let mut flood = world.tcp().stream;
    let (on, off) = (
        r#"{"op":"subscribe","topic":"/flood","type":"std_msgs/String"}"#,
        r#"{"op":"unsubscribe","topic":"/flood"}"#,
    );
    let many = [on, off].concat().repeat(20_000);
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    flood.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let flooding = std::thread::spawn(move || {
        while !over.load(Ordering::Acquire) {
            // It is not taken as fast as it is said.
            let _ = std::io::Write::write(&mut flood, many.as_bytes());
        }
    });
    let mut client = world.client();
    client.say(&json!({ "op": "subscribe", "topic": "/answers", "type": "std_msgs/String" }));
    let speaker = world.node.create_publisher::<Text>("/answers", KEEP_ALL).unwrap();
    speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
    for at in 0..20 {
        speaker.publish(Text { data: at.to_string() }).unwrap();
        assert_eq!(client.hear_json()["msg"]["data"], at.to_string());
    }
    is_over.store(true, Ordering::Release);
    flooding.join().unwrap();
}

#[test]
fn a_slow_reader_by_tls_gets_the_whole_of_what_is_sent() {
    let world = World::new();
    let (_bridge, stream) = world.by_tls();
    let (mut client, _) = tungstenite::client("wss://localhost/", stream).unwrap();
    let subscribe = json!({
        "op": "subscribe", "topic": "/camera", "type": "sensor_msgs/Image", "compression": "cbor-raw",
    });
    client.send(Message::text(subscribe.to_string())).unwrap();
    let camera = world.node.create_publisher::<Image>("/camera", Qos::DEFAULT).unwrap();
    camera.wait_for_subscriptions(1, WATCHDOG).unwrap();
    for size in [6_000_000, 6_500_001, 7_012_345] {
        camera.publish(&Image { data: vec![7; size], ..Image::default() }).unwrap();
        let mut stream = client.into_inner();
        let mut buffer = vec![0; 16 << 10];
        let mut read = stream.read(&mut buffer).unwrap();
        let told = u64::from_be_bytes(buffer[2..10].try_into().unwrap());
        while (read as u64) < 10 + told {
            // Slower than it is sent.
            std::thread::sleep(Duration::from_micros(300));
            let count = stream.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "closed");
            read += count;
        }
        assert!(size as u64 <= told && read as u64 == 10 + told, "{size} {told} {read}");
        client = WebSocket::from_raw_socket(stream, Role::Client, None);
    }
}

#[test]
fn a_port_that_is_taken_is_said() {
    let world = World::new();
    let place =
        Place { address: [127, 0, 0, 1].into(), port: world.address(Protocol::WebSocket).port() };
    let settings = Settings { websocket: Some(place), ..Settings::default() };
    let error = Bridge::start(&world.node, settings, Box::new(Shipped)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Address);
    assert!(error.to_string().contains("the port is taken"), "{error}");
    let tls = Some(TlsFiles { certificate: "/nowhere.pem".into(), key: "/nowhere.key".into() });
    let settings = Settings { websocket: None, tls, ..Settings::default() };
    let error = Bridge::start(&world.node, settings, Box::new(Shipped)).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere.pem: "), "{error}");
}

#[test]
fn who_has_no_token_may_do_nothing_and_who_has_one_what_it_allows() {
    let globs = |text: &str| Globs::parse(text).unwrap();
    let may = Permissions { publish: globs("[/cmd*]"), ..Permissions::NONE };
    let user = User { may, ..User::unrestricted("operator", Token::new("sesame")) };
    let access = Access::new(ServerGlobs::default(), vec![user]);
    let world = World::with(Settings { access, ..Settings::default() });
    let mut client = world.client();
    let advertise =
        |topic: &str| json!({ "op": "advertise", "topic": topic, "type": "std_msgs/String" });
    client.say(&advertise("/cmd_vel"));
    assert!(client.hear_json()["msg"].as_str().unwrap().contains("not authenticated"));
    client.say(&json!({ "op": "auth", "token": "nonsense" }));
    assert!(client.hear_json()["msg"].as_str().unwrap().contains("nobody"));
    client.say(&json!({ "op": "auth", "token": "sesame" }));
    client.say(&advertise("/cmd_vel"));
    client.say(&advertise("/other"));
    let refused = client.hear_json();
    assert!(refused["msg"].as_str().unwrap().contains("/other"), "{refused}");
    let mut guessing = world.client();
    (0..5).for_each(|at| guessing.say(&json!({ "op": "auth", "token": at.to_string() })));
    assert_eq!(guessing.hear_close().unwrap().code, CloseCode::Policy);
}

#[test]
fn a_message_goes_in_a_thousand_pieces_at_most() {
    let world = World::new();
    let mut client = world.client();
    client.say(&json!({
        "op": "subscribe", "topic": "/long", "type": "std_msgs/String", "fragment_size": 1,
    }));
    client.settle();
    let speaker = world.node.create_publisher::<Text>("/long", Qos::DEFAULT).unwrap();
    speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
    speaker.publish(&Text { data: "x".repeat(1 << 20) }).unwrap();
    let first = client.hear_of("fragment");
    let total = first["total"].as_u64().unwrap();
    assert!((900..=1000).contains(&total), "{total}");
    let mut whole = first["data"].as_str().unwrap().to_owned();
    for _ in 1..total {
        whole += client.hear_of("fragment")["data"].as_str().unwrap();
    }
    let whole: serde_json::Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["msg"]["data"].as_str().unwrap().len(), 1 << 20);
}

#[test]
fn a_client_that_comes_and_goes_leaves_nothing() {
    let world = World::new();
    let speaker = world.node.create_publisher::<Text>("/answers", Qos::DEFAULT).unwrap();
    for _ in 0..20 {
        let mut client = world.client();
        client.say(&json!({ "op": "subscribe", "topic": "/answers", "type": "std_msgs/String" }));
        client.settle();
        drop(client);
    }
    until("all have gone", || (speaker.matched() == 0).then_some(()));
    until("all are counted", || (world.bridge.statistics().disconnected == 20).then_some(()));
}

#[test]
fn throttled_samples_are_left_out() {
    let world = World::new();
    let mut client = world.client();
    client.say(&json!({
        "op": "subscribe", "topic": "/answers", "type": "std_msgs/String", "throttle_rate": 3_600_000,
    }));
    let speaker = world.node.create_publisher::<Text>("/answers", KEEP_ALL).unwrap();
    speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
    for at in 0..10 {
        speaker.publish(Text { data: at.to_string() }).unwrap();
    }
    assert_eq!(client.hear_json()["msg"]["data"], "0");
    until("all have come", || (world.bridge.statistics().received == 10).then_some(()));
    assert_eq!(world.bridge.statistics().throttled, 9);
    // The next that comes is no sample.
    client.say(&json!({ "op": "call_service", "id": "t", "service": "/rosapi/get_time" }));
    assert_eq!(client.hear_json()["op"], "service_response");
}
