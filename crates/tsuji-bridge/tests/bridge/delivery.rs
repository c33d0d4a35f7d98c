//! How answers come to clients: in pieces, as pictures, at intervals, in BSON.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji_bridge::Settings;
use tsuji_bridge::protocol::{Encoding, Level, Outgoing, read_png, write_png};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tungstenite::Message;

use crate::world::{Client, World, until};
use crate::{KEEP_ALL, text};

/// Asks rosapi what cannot change, with more members.
fn ask(client: &mut Client, more: Value) {
    let mut call = json!({ "op": "call_service", "id": "v", "service": "/rosapi/get_ros_version" });
    for (name, value) in more.as_object().unwrap() {
        call[name] = value.clone();
    }
    client.say(&call);
}

/// What comes in pieces, put together, and of how many it was.
fn pieces(client: &mut Client) -> (Value, usize) {
    let mut data = String::new();
    for num in 0.. {
        let piece = client.hear_json();
        assert_eq!((&piece["op"], &piece["num"]), (&json!("fragment"), &json!(num)), "{piece}");
        data.push_str(piece["data"].as_str().unwrap());
        if num + 1 == piece["total"].as_u64().unwrap() {
            return (serde_json::from_str(&data).unwrap(), num as usize + 1);
        }
    }
    unreachable!()
}

fn picture(message: &Value) -> Value {
    assert_eq!(message["op"], "png", "{message}");
    let json = read_png(message["data"].as_str().unwrap(), 10_000).unwrap();
    serde_json::from_slice(&json).unwrap()
}

#[test]
fn responses_come_in_pieces_and_as_pictures_where_that_is_asked() {
    let world = World::new();
    let mut client = world.client();
    ask(&mut client, json!({}));
    let plain = client.hear_json();
    assert_eq!(plain["values"]["version"], 2);
    ask(&mut client, json!({ "fragment_size": 30 }));
    let (whole, count) = pieces(&mut client);
    assert_eq!((&whole, count), (&plain, plain.to_string().len().div_ceil(30)));
    ask(&mut client, json!({ "compression": "png" }));
    assert_eq!(picture(&client.hear_json()), plain);
    ask(&mut client, json!({ "compression": "png", "fragment_size": 100 }));
    assert_eq!(picture(&pieces(&mut client).0), plain);
    // What was asked of one holds for that one.
    ask(&mut client, json!({}));
    assert_eq!(client.hear_json(), plain);
}

#[test]
fn what_becomes_of_a_goal_comes_in_pieces_too() {
    let world = World::new();
    let mut client = world.client();
    client.say(&json!({
        "op": "send_action_goal", "id": "g", "action": "/nobody", "fragment_size": 25,
        "action_type": "example_interfaces/action/Fibonacci", "args": { "order": 1 },
    }));
    let (result, count) = pieces(&mut client);
    assert_eq!((&result["op"], &result["id"]), (&json!("action_result"), &json!("g")));
    assert_eq!(result["values"], "action /nobody does not exist");
    assert!(4 < count, "{count}");
}

#[test]
fn what_any_message_says_of_sending_holds_from_then_on() {
    let world = World::new();
    let mut client = world.client();
    client.say(&json!({ "op": "set_level", "level": "error", "fragment_size": 40 }));
    ask(&mut client, json!({}));
    assert_eq!(pieces(&mut client).0["id"], "v");
    client.say(&json!({ "op": "unsubscribe", "topic": "/nobody" }));
    assert_eq!(pieces(&mut client).0["level"], "error");
    // A subscription that says nothing of it has it as well.
    client.say(&json!({ "op": "subscribe", "topic": "/chatter", "type": "std_msgs/String" }));
    let speaker = world.node.create_publisher::<Text>("/chatter", KEEP_ALL).unwrap();
    speaker.wait_for_subscriptions(1, crate::world::WATCHDOG).unwrap();
    speaker.publish(Text { data: "x".repeat(50) }).unwrap();
    assert_eq!(pieces(&mut client).0, text(&"x".repeat(50)));
    client
        .say(&json!({ "op": "set_level", "level": "error", "fragment_size": 10_000, "png": true }));
    ask(&mut client, json!({}));
    assert_eq!(picture(&client.hear_json())["id"], "v");
    speaker.publish(Text { data: "as a picture".to_owned() }).unwrap();
    assert_eq!(picture(&client.hear_json()), text("as a picture"));
    client.say(&json!({ "op": "set_level", "level": "error", "png": false }));
    ask(&mut client, json!({}));
    assert_eq!(client.hear_json()["id"], "v");
}

#[test]
fn between_two_messages_there_is_the_time_that_was_asked_for() {
    const INTERVAL: Duration = Duration::from_millis(20);
    const COUNT: u32 = 10;
    let asks = |client: &mut Client| {
        let began = Instant::now();
        (0..COUNT).for_each(|_| ask(client, json!({})));
        (0..COUNT).for_each(|_| drop(client.hear_json()));
        began.elapsed()
    };
    // The clock of the server is looked at before it reads.
    let least = INTERVAL * (COUNT - 2);
    let message_interval = INTERVAL;
    let slow = World::with(Settings { message_interval, ..Settings::default() });
    let took = asks(&mut slow.client());
    assert!(least <= took, "as the server is set: {took:?}");

    let world = World::new();
    let mut client = world.client();
    client.say(&json!({ "op": "set_level", "level": "error", "message_intervall": 0.02 }));
    let took = asks(&mut client);
    assert!(least <= took, "as the client said: {took:?}");
    // Pieces are messages.
    let began = Instant::now();
    ask(&mut client, json!({ "fragment_size": 10 }));
    let (_, count) = pieces(&mut client);
    assert!(INTERVAL * (count as u32 - 2) <= began.elapsed());
    client.say(&json!({ "op": "set_level", "level": "error", "message_intervall": 0 }));
    asks(&mut client);
}

#[test]
fn a_client_is_told_as_much_as_it_wants_to_know() {
    let world = World::new();
    let mut client = world.client();
    let subscribe = json!({
        "op": "subscribe", "id": "s", "topic": "/chatter", "type": "std_msgs/String",
    });
    client.say(&json!({ "op": "set_level", "level": "none" }));
    client.say(&json!({ "op": "unsubscribe", "topic": "/nobody" }));
    ask(&mut client, json!({}));
    assert_eq!(client.hear_json()["op"], "service_response");
    client.say(&json!({ "op": "set_level", "level": "warning" }));
    client.say(&subscribe);
    ask(&mut client, json!({ "compression": "cbor" }));
    let warned = client.hear_json();
    assert_eq!((&warned["op"], &warned["id"]), (&json!("status"), &json!("v")), "{warned}");
    assert_eq!(warned["level"], "warning");
    assert_eq!(client.hear_json()["op"], "service_response");
    client.say(&json!({ "op": "set_level", "level": "info" }));
    client.say(&subscribe);
    let told = client.hear_json();
    let expected = json!({ "op": "status", "id": "s", "level": "info", "msg": "subscribe: taken" });
    assert_eq!(told, expected);
}

#[test]
fn a_picture_may_come_in_pieces() {
    let world = World::new();
    let mut client = world.client();
    let mut call = Vec::new();
    let asked = r#"{"op":"call_service","id":"p","service":"/rosapi/get_ros_version"}"#;
    write_png(&mut call, asked);
    let whole: Value = serde_json::from_slice(&call).unwrap();
    let data = whole["data"].as_str().unwrap();
    let (begin, end) = data.split_at(data.len() / 2);
    for (num, data) in [(1, end), (0, begin)] {
        client.say(&json!({ "op": "png", "id": "x", "data": data, "num": num, "total": 2 }));
    }
    assert_eq!(client.hear_json()["id"], "p");
}

/// A document of texts, as the specification has it.
fn bson(members: &[(&str, &str)], args: Option<&[(&str, &str)]>) -> Vec<u8> {
    let mut out = vec![0; 4];
    for (name, text) in members {
        out.push(2);
        out.extend([name.as_bytes(), &[0], &(text.len() as i32 + 1).to_le_bytes()].concat());
        out.extend([text.as_bytes(), &[0]].concat());
    }
    if let Some(args) = args {
        out.extend(b"\x03args\0");
        out.extend(bson(args, None));
    }
    out.push(0);
    let length = out.len() as i32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

fn contains(message: &[u8], part: &[u8]) -> bool {
    message.windows(part.len()).any(|it| it == part)
}

#[test]
fn rosapi_answers_in_bson_by_every_protocol() {
    let world = World::with(Settings { bson_only: true, ..Settings::default() });
    let mut client = world.client();
    let call = bson(
        &[("op", "call_service"), ("id", "b"), ("service", "/rosapi/message_details")],
        Some(&[("type", "std_msgs/String")]),
    );
    client.socket.send(Message::binary(call.clone())).unwrap();
    let Message::Binary(answer) = client.hear() else { panic!() };
    assert!(contains(&answer, b"\x02op\0\x11\0\0\0service_response\0"), "{answer:?}");
    assert!(contains(&answer, b"\x04typedefs\0"), "{answer:?}");
    assert!(contains(&answer, b"\x02type\0\x10\0\0\0std_msgs/String\0"), "{answer:?}");
    assert!(contains(&answer, b"\x08result\0\x01"), "{answer:?}");
    // Cut anywhere, and two in one.
    let mut tcp = world.tcp().stream;
    for byte in &call {
        tcp.write_all(&[*byte]).unwrap();
    }
    tcp.write_all(&call.repeat(2)).unwrap();
    let mut read = vec![0; 3 * answer.len()];
    tcp.read_exact(&mut read).unwrap();
    assert_eq!(read, answer.repeat(3));
    let udp = world.udp();
    udp.send(&call).unwrap();
    let mut datagram = [0; 1000];
    let count = udp.recv(&mut datagram).unwrap();
    assert_eq!(datagram[..count], answer[..]);
    // A length that no document has ends a connection.
    tcp.write_all(&[0xff; 8]).unwrap();
    tcp.read_to_end(&mut Vec::new()).unwrap();
    until("it is gone", || (world.bridge.statistics().disconnected == 1).then_some(()));
    let mut refusal = Vec::new();
    let msg = "unsubscribe: topic: found /x; expected a topic that this client has subscribed to";
    Outgoing::Status { id: None, level: Level::Error, msg }.write(&mut refusal, Encoding::Bson);
    let unsubscribe = bson(&[("op", "unsubscribe"), ("topic", "/x")], None);
    client.socket.send(Message::binary(unsubscribe)).unwrap();
    assert_eq!(client.hear().into_data(), refusal);
}
