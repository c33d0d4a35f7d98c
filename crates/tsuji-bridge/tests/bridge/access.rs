//! Users, what they may do and how much of it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};
use tsuji_bridge::protocol::Rate;
use tsuji_bridge::protocol::access::{Access, Rosauth, ServerGlobs};
use tsuji_bridge::{Settings, Users};
use tungstenite::protocol::frame::coding::CloseCode;

use crate::world::{Client, WATCHDOG, World, until};

fn world(users: &str) -> World {
    let Users { named, anonymous } = Users::parse(users).unwrap();
    let mut access = Access::new(ServerGlobs::default(), named);
    if let Some(anonymous) = anonymous {
        access = access.with_anonymous(anonymous);
    }
    World::with(Settings { access, ..Settings::default() })
}

fn advertise(topic: &str) -> Value {
    json!({ "op": "advertise", "topic": topic, "type": "std_msgs/String" })
}

/// What a client is told of a refusal.
fn refused(client: &mut Client, operation: &Value) -> String {
    client.say(operation);
    client.hear_of("status")["msg"].as_str().unwrap().to_owned()
}

#[test]
fn a_user_may_do_what_the_file_says_and_anybody_else_what_anonymous_may() {
    let world = world(
        "
users:
  operator:
    token: sesame
    publish: ['/cmd*']
    call_service: [/rosapi/*]
    get_param: all
    send_action_goal: [/dance]
    advertise_action: none
anonymous:
  subscribe: [/map]
  call_service: [/rosapi/get_time]
",
    );
    let mut client = world.client();
    client.say(&json!({ "op": "subscribe", "topic": "/map", "type": "std_msgs/String" }));
    client.settle();
    let told = refused(&mut client, &advertise("/cmd_vel"));
    assert!(told.contains("\"anonymous\" may not publish \"/cmd_vel\""), "{told}");
    client.say(&json!({ "op": "auth", "token": "sesame" }));
    client.say(&advertise("/cmd_vel"));
    let told = refused(&mut client, &advertise("/other"));
    assert!(told.contains("\"operator\" may not publish \"/other\""), "{told}");
    let subscribe = json!({ "op": "subscribe", "topic": "/map", "type": "std_msgs/String" });
    let told = refused(&mut client, &subscribe);
    assert!(told.contains("\"operator\" may not subscribe \"/map\""), "{told}");
    let serve = json!({
        "op": "advertise_action", "action": "/dance", "type": "example_interfaces/action/Fibonacci",
    });
    let told = refused(&mut client, &serve);
    assert!(told.contains("\"operator\" may not advertise_action \"/dance\""), "{told}");
    let set = json!({ "name": "/a:b", "value": "1" });
    let answer = client.call("/rosapi/set_param", set);
    let expected = "\"operator\" may not set_param \"/a:b\": this user is allowed []";
    assert_eq!((&answer["result"], &answer["values"]), (&json!(false), &json!(expected)));
    // What may not be subscribed to is not told of either.
    until("the topic of this client", || {
        let topics = client.call("/rosapi/topics", json!({}))["values"]["topics"].clone();
        assert_eq!(topics, json!([]));
        let node = client.call("/rosapi/nodes", json!({}))["values"]["nodes"].clone();
        node.as_array().unwrap().contains(&json!("/bridge")).then_some(())
    });
}

#[test]
fn a_user_is_held_to_a_rate_of_its_own() {
    let world = world(
        "
users:
  slow: {token: slow, call_service: all, limits: {messages_per_second: 20}}
  quick: {token: quick, call_service: all}
",
    );
    let ask = |token: &str| {
        let mut client = world.client();
        client.say(&json!({ "op": "auth", "token": token }));
        let began = Instant::now();
        let call = json!({ "op": "call_service", "service": "/rosapi/get_time" });
        (0..30).for_each(|_| client.say(&call));
        (0..30).for_each(|_| drop(client.hear_of("service_response")));
        began.elapsed()
    };
    ask("quick");
    // A second's worth at once, and the others at their time; the last of them is read before it.
    let took = ask("slow");
    assert!(Duration::from_millis(400) <= took, "{took:?}");
}

#[test]
fn a_user_whose_answers_may_not_wait_is_cut_off_and_others_are_not() {
    let world = world(
        "
users:
  small: {token: small, call_service: all, limits: {memory_bytes: 1000000}}
  other: {token: other, call_service: all}
",
    );
    let mut other = world.client();
    other.say(&json!({ "op": "auth", "token": "other" }));
    let mut small = world.tcp();
    small.say(br#"{"op":"auth","token":"small"}"#);
    let ask = br#"{"op":"call_service","service":"/rosapi/message_details","args":{"type":"sensor_msgs/Image"}}"#;
    small.stream.set_write_timeout(Some(WATCHDOG)).unwrap();
    // It asks and never reads, until nobody listens. What is said while the connection ends is passed over.
    let began = Instant::now();
    while std::io::Write::write_all(&mut small.stream, ask).is_ok() {
        assert!(began.elapsed() < WATCHDOG, "it may go on for ever");
    }
    until("it is cut off", || (world.bridge.statistics().disconnected == 1).then_some(()));
    other.settle();
}

/// What rosauth has a client say: the same as `printf %s … | sha512sum`.
fn auth(secret: &str, level: &str, t: u64, end: u64) -> Value {
    let (client, dest, rand) = ("192.168.1.101", "192.168.1.111", "xyzabc");
    let hash = Sha512::digest(format!("{secret}{client}{dest}{rand}{t}{level}{end}"));
    let mac: String = hash.iter().map(|it| format!("{it:02x}")).collect();
    json!({
        "op": "auth", "mac": mac, "client": client, "dest": dest, "rand": rand, "t": t,
        "level": level, "end": end,
    })
}

fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs()
}

#[test]
fn who_has_the_hash_of_rosauth_may_go_on_until_its_end() {
    const SECRET: &str = "abcdefghijklmnop";
    let access = Access::new(ServerGlobs::default(), Vec::new());
    let access = access.with_rosauth(Rosauth::new(SECRET));
    let world = World::with(Settings { access, ..Settings::default() });
    let mut client = world.client();
    let told = refused(&mut client, &advertise("/a"));
    assert!(told.contains("has not authenticated"), "{told}");
    let told = refused(&mut client, &auth("another secret !", "admin", now(), now() + 60));
    assert!(told.starts_with("auth: mac: "), "{told}");
    let told = refused(&mut client, &auth(SECRET, "admin", now() - 60, now() + 60));
    assert!(told.starts_with("auth: t: "), "{told}");
    let began = now();
    client.say(&auth(SECRET, "admin", began, began + 3));
    client.say(&advertise("/a"));
    client.settle();
    let closed = client.hear_close().unwrap();
    assert_eq!(
        (closed.code, closed.reason.as_str()),
        (CloseCode::Policy, "its permission has ended")
    );
    assert!(began + 1 < now());
}

#[test]
fn datagrams_beyond_a_rate_are_dropped_and_counted_and_those_of_others_are_not() {
    let mut settings = Settings::default();
    settings.limits.messages = Some(Rate { per_second: 0.001, burst: 2.0 });
    let world = World::with(settings);
    let (flood, other) = (world.udp(), world.udp());
    let call = br#"{"op":"call_service","id":1,"service":"/rosapi/get_time"}"#;
    for _ in 0..50 {
        flood.send(call).unwrap();
    }
    until("the others are dropped", || (world.bridge.statistics().excess == 48).then_some(()));
    other.send(call).unwrap();
    let mut buffer = [0; 1000];
    assert_ne!(other.recv(&mut buffer).unwrap(), 0);
}
