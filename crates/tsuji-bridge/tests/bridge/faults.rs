//! What clients send that is wrong, too much, or never whole.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use tsuji_bridge::Settings;
use tsuji_interfaces::std_msgs::msg::String as Text;

use crate::world::{WATCHDOG, World, until};
use crate::{KEEP_ALL, text};

fn fragment(num: u32, data: &str) -> Value {
    json!({ "op": "fragment", "id": "f", "data": data, "num": num, "total": 2 })
}

#[test]
fn a_client_that_vanishes_within_a_fragment_leaves_nothing_to_the_next() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    let (first, second) = (text("of one").to_string(), text("of the other").to_string());
    let mut gone = world.client();
    gone.say(&fragment(0, &first[..20]));
    gone.settle();
    drop(gone);
    until("it has gone", || (world.bridge.statistics().disconnected == 1).then_some(()));
    let mut client = world.client();
    client.say(&json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" }));
    client.say(&fragment(1, &second[20..]));
    client.say(&fragment(0, &second[..20]));
    let message = until("a message", || heard.take().unwrap());
    assert_eq!(message.view().data, "of the other");
    client.settle();
    assert_eq!(world.bridge.statistics().refusals, 0);
}

#[test]
fn a_message_whose_last_piece_does_not_come_is_forgotten_and_told_of() {
    let mut settings = Settings::default();
    settings.limits.client.fragments.timeout = Duration::from_millis(20);
    let world = World::with(settings);
    let mut client = world.client();
    client.say(&fragment(0, "{"));
    let told = client.hear_of("status");
    assert_eq!(told["id"], "f");
    let expected =
        "fragment: found 1 of 2 fragments; expected all, with less than 20ms between two";
    assert_eq!(told["msg"], expected);
}

#[test]
fn a_message_by_tcp_that_is_too_long_is_passed_over_and_the_next_understood() {
    let mut settings = Settings::default();
    settings.limits.message_bytes_max = 1000;
    let world = World::with(settings);
    let mut tcp = world.tcp();
    let long = text(&"x".repeat(3_000_000)).to_string();
    tcp.say(long.as_bytes());
    tcp.say(br#"{"op":"call_service","id":1,"service":"/rosapi/get_ros_version"}"#);
    let told = tcp.hear();
    assert!(told["msg"].as_str().unwrap().contains("larger than is allowed"), "{told}");
    assert_eq!(tcp.hear()["values"]["version"], 2);
}

#[test]
fn a_million_braces_by_tcp_end_their_connection_and_no_other() {
    let world = World::new();
    let mut other = world.client();
    let mut tcp = world.tcp();
    // It may be closed before all is sent.
    let _ = tcp.stream.write_all("{".repeat(1_000_000).as_bytes());
    let told = tcp.hear();
    assert!(told["msg"].as_str().unwrap().contains("nested deeper than is allowed"), "{told}");
    let _ = tcp.stream.read_to_end(&mut Vec::new());
    until("it has gone", || (world.bridge.statistics().disconnected == 1).then_some(()));
    other.settle();
}

#[test]
fn half_a_message_is_no_message() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    let advertise = json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" });
    let whole = text("whole").to_string();
    // By TCP it is waited for until nobody is left to send the rest.
    let mut tcp = world.tcp();
    tcp.say(advertise.to_string().as_bytes());
    tcp.say(&whole.as_bytes()[..30]);
    drop(tcp);
    until("it has gone", || (world.bridge.statistics().disconnected == 1).then_some(()));
    // By UDP the rest cannot come.
    let udp = world.udp();
    udp.send(&whole.as_bytes()[..30]).unwrap();
    let mut buffer = [0; 1000];
    let count = udp.recv(&mut buffer).unwrap();
    let told: Value = serde_json::from_slice(&buffer[..count]).unwrap();
    assert!(told["msg"].as_str().unwrap().contains("ends within a message"), "{told}");
    udp.send(b"no object").unwrap();
    let count = udp.recv(&mut buffer).unwrap();
    let told: Value = serde_json::from_slice(&buffer[..count]).unwrap();
    assert!(told["msg"].as_str().unwrap().contains("no object begins here"), "{told}");
    udp.send(advertise.to_string().as_bytes()).unwrap();
    udp.send(whole.as_bytes()).unwrap();
    let message = until("a message", || heard.take().unwrap());
    assert_eq!(message.view().data, "whole");
    assert!(heard.take().unwrap().is_none());
}

#[test]
fn a_client_that_goes_with_a_goal_or_a_call_under_way_is_forgotten() {
    let world = World::new();
    let mut gone = world.client();
    gone.say(&json!({ "op": "call_service", "service": "/nobody", "type": "std_srvs/Trigger" }));
    gone.say(&json!({
        "op": "send_action_goal", "id": "g", "action": "/nobody",
        "action_type": "example_interfaces/action/Fibonacci",
    }));
    gone.say(&json!({ "op": "call_service", "service": "/rosapi/get_param_names" }));
    drop(gone);
    until("it has gone", || (world.bridge.statistics().disconnected == 1).then_some(()));
    let mut client = world.client();
    client.settle();
    let speaker = world.node.create_publisher::<Text>("/answers", KEEP_ALL).unwrap();
    client.say(&json!({ "op": "subscribe", "topic": "/answers", "type": "std_msgs/String" }));
    speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
}
