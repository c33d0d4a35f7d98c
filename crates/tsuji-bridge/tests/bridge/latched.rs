//! What publishers keep for late joiners comes to every client, whenever it comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tsuji::{Durability, History, Publisher, Qos};
use tsuji_bridge::Settings;
use tsuji_bridge::protocol::read_png;
use tsuji_interfaces::example_interfaces::action::{Fibonacci, FibonacciResult};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tungstenite::Message;

use crate::world::{Client, WATCHDOG, World, until};

const fn keeping(depth: u32) -> Qos {
    Qos {
        history: History::KeepLast(depth),
        durability: Durability::TransientLocal,
        ..Qos::DEFAULT
    }
}

fn say(publisher: &Publisher<Text>, data: &str) {
    publisher.publish(Text { data: data.to_owned() }).unwrap();
}

fn subscribe(client: &mut Client, more: Value) {
    let mut subscribe = json!({ "op": "subscribe", "topic": "/map", "type": "std_msgs/String" });
    for (name, value) in more.as_object().unwrap() {
        subscribe[name] = value.clone();
    }
    client.say(&subscribe);
}

/// What comes next.
fn data(client: &mut Client) -> String {
    let sample = client.hear_of("publish");
    sample["msg"]["data"].as_str().unwrap().to_owned()
}

#[test]
fn every_client_gets_what_is_latched_in_every_form_and_by_every_protocol() {
    let world = World::new();
    let map = world.node.create_publisher::<Text>("/map", keeping(1)).unwrap();
    say(&map, "old");
    say(&map, "one");
    let mut clients = Vec::new();
    for _ in 0..3 {
        for (compression, end) in [("cbor", &b"\x64data\x63one"[..]), ("cbor-raw", b"one\0")] {
            let mut client = world.client();
            subscribe(&mut client, json!({ "compression": compression }));
            let Message::Binary(bytes) = client.hear() else { panic!("{compression}") };
            assert!(bytes.ends_with(end), "{compression}: {bytes:?}");
            clients.push(client);
        }
        let mut client = world.client();
        subscribe(&mut client, json!({ "compression": "png" }));
        let picture = client.hear_json();
        let json = read_png(picture["data"].as_str().unwrap(), 10_000).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap()["msg"]["data"], "one");
        clients.push(client);
        let mut client = world.client();
        subscribe(&mut client, json!({ "fragment_size": 20 }));
        assert_eq!(client.hear_json()["op"], "fragment");
        clients.push(client);

        let mut client = world.client();
        subscribe(&mut client, json!({}));
        assert_eq!(data(&mut client), "one");
        clients.push(client);

        let wanted = br#"{"op":"subscribe","topic":"/map","type":"std_msgs/String"}"#;
        let mut tcp = world.tcp();
        tcp.say(wanted);
        assert_eq!(tcp.hear()["msg"]["data"], "one");
        let udp = world.udp();
        udp.send(wanted).unwrap();
        let mut datagram = [0; 1024];
        let count = udp.recv(&mut datagram).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&datagram[..count]).unwrap()["msg"]["data"],
            "one"
        );
    }
}

#[test]
fn what_is_latched_comes_to_every_client_in_bson() {
    let world = World::with(Settings { bson_only: true, ..Settings::default() });
    let map = world.node.create_publisher::<Text>("/map", keeping(1)).unwrap();
    say(&map, "one");
    let text = |name: &str, value: &str| {
        let length = (value.len() as i32 + 1).to_le_bytes();
        [b"\x02", name.as_bytes(), b"\0", &length[..], value.as_bytes(), b"\0"].concat()
    };
    let members =
        [text("op", "subscribe"), text("topic", "/map"), text("type", "std_msgs/String")].concat();
    let length = (members.len() as i32 + 5).to_le_bytes();
    let document = [&length[..], &members, b"\0"].concat();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = world.client();
        client.socket.send(Message::binary(document.clone())).unwrap();
        let Message::Binary(bytes) = client.hear() else { panic!() };
        assert!(bytes.windows(4).any(|it| it == b"one\0"), "{bytes:?}");
        clients.push(client);
    }
}

#[test]
fn what_each_publisher_keeps_comes_whatever_the_throttle_rate_and_the_queue_length() {
    let world = World::new();
    let publishers: Vec<_> = [1, 2, 5]
        .into_iter()
        .map(|depth| world.node.create_publisher::<Text>("/map", keeping(depth)).unwrap())
        .collect();
    for (whose, publisher) in publishers.iter().enumerate() {
        (0..4).for_each(|at| say(publisher, &format!("{whose}.{at}")));
    }
    // The last one of the first, two of the second, all of the third.
    let mut expected = vec!["0.3", "1.2", "1.3", "2.0", "2.1", "2.2", "2.3"];
    let mut clients = Vec::new();
    for options in [
        json!({}),
        json!({ "throttle_rate": 3_600_000 }),
        json!({ "queue_length": 1 }),
        json!({ "queue_length": 1, "throttle_rate": 3_600_000 }),
        json!({ "qos": { "durability": "transient_local" } }),
        json!({ "qos": { "durability": "transient_local" } }),
    ] {
        let mut client = world.client();
        subscribe(&mut client, options.clone());
        let heard: Vec<_> = (0..7).map(|_| data(&mut client)).collect();
        // Of each publisher in order.
        for whose in ["0", "1", "2"] {
            let of = |it: &&str| it.starts_with(whose);
            let expected: Vec<_> = expected.iter().copied().filter(of).collect();
            let heard: Vec<_> = heard.iter().map(String::as_str).filter(of).collect();
            assert_eq!(heard, expected, "{options}");
        }
        clients.push(client);
    }

    // What a publisher has kept goes with it, and nobody gets anything again.
    let mut publishers = publishers.into_iter();
    drop(publishers.next());
    let publishers: Vec<_> = publishers.collect();
    let mut client = world.client();
    until("it has gone", || {
        let answer = client.call("/rosapi/tsuji_routes", json!({}));
        let topics = answer["values"]["topics"].as_array().unwrap();
        topics.iter().any(|it| it["topic"] == "/map" && it["publishers"] == 2).then_some(())
    });
    expected.remove(0);
    subscribe(&mut client, json!({}));
    let mut heard: Vec<_> = (0..6).map(|_| data(&mut client)).collect();
    heard.sort();
    assert_eq!(heard, expected);
    say(&publishers[0], "new");
    assert_eq!(data(&mut client), "new");
    assert_eq!(data(&mut clients[0]), "new");
    assert_eq!(data(&mut clients[2]), "new");
    assert_eq!(data(&mut clients[4]), "new");
}

#[test]
fn who_subscribes_again_gets_it_again_and_who_says_volatile_never() {
    let world = World::new();
    let map = world.node.create_publisher::<Text>("/map", keeping(1)).unwrap();
    say(&map, "one");
    let (mut other, mut client) = (world.client(), world.client());
    subscribe(&mut other, json!({}));
    assert_eq!(data(&mut other), "one");
    for _ in 0..3 {
        subscribe(&mut client, json!({ "id": "a" }));
        assert_eq!(data(&mut client), "one");
        client.say(&json!({ "op": "unsubscribe", "topic": "/map", "id": "a" }));
    }
    // Another one within the same client has heard nothing yet, and the same one in another way has.
    subscribe(&mut client, json!({ "id": "a" }));
    assert_eq!(data(&mut client), "one");
    subscribe(&mut client, json!({ "id": "b" }));
    assert_eq!(data(&mut client), "one");
    subscribe(&mut client, json!({ "id": "b", "queue_length": 7 }));
    client.settle();
    say(&map, "two");
    assert_eq!(data(&mut client), "two");
    assert_eq!(data(&mut other), "two");
    until("all have joined", || (map.matched() == 1).then_some(()));
    let mut current = world.client();
    subscribe(&mut current, json!({ "qos": { "durability": "volatile" } }));
    until("it is met", || (map.matched() == 2).then_some(()));
    say(&map, "three");
    assert_eq!(data(&mut current), "three");
}

#[test]
fn who_joins_loses_nothing_and_gets_nothing_twice() {
    const COUNT: usize = 3000;
    let world = World::new();
    let map = world.node.create_publisher::<Text>("/map", keeping(20)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..COUNT {
                say(&map, &at.to_string());
                std::thread::sleep(Duration::from_micros(300));
            }
            // Whoever has come since has the last.
            while !is_over.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let join = |mut client: Client| {
            let first: usize = data(&mut client).parse().unwrap();
            let mut last = first;
            while last + 1 < COUNT {
                let next = data(&mut client).parse().unwrap();
                assert_eq!(last + 1, next, "from {first} on");
                last = next;
            }
        };
        let joined: Vec<_> = (0..12)
            .map(|_| {
                let mut client = world.client();
                subscribe(&mut client, json!({}));
                std::thread::sleep(Duration::from_millis(40));
                scope.spawn(move || join(client))
            })
            .collect();
        joined.into_iter().for_each(|it| it.join().unwrap());
        is_over.store(true, Ordering::Release);
    });
}

#[test]
fn who_is_there_before_a_publisher_gets_what_it_has_kept() {
    let world = World::new();
    // One that is there keeps nothing, so that the shared subscription asks for nothing.
    let volatile = world.node.create_publisher::<Text>("/map", Qos::DEFAULT).unwrap();
    let mut early = world.client();
    subscribe(&mut early, json!({}));
    volatile.wait_for_subscriptions(1, WATCHDOG).unwrap();
    let map = world.node.create_publisher::<Text>("/map", keeping(3)).unwrap();
    (0..3).for_each(|at| say(&map, &at.to_string()));
    for at in 0..3 {
        assert_eq!(data(&mut early), at.to_string());
    }
    let mut late = world.client();
    subscribe(&mut late, json!({}));
    for at in 0..3 {
        assert_eq!(data(&mut late), at.to_string());
    }
    say(&volatile, "current");
    assert_eq!(data(&mut early), "current");
    assert_eq!(data(&mut late), "current");
    say(&map, "3");
    assert_eq!(data(&mut early), "3");
    assert_eq!(data(&mut late), "3");
}

#[test]
fn the_first_client_gets_what_one_publisher_keeps_and_another_does_not() {
    let world = World::new();
    let map = world.node.create_publisher::<Text>("/map", keeping(1)).unwrap();
    let volatile = world.node.create_publisher::<Text>("/map", Qos::DEFAULT).unwrap();
    say(&map, "kept");
    let mut client = world.client();
    subscribe(&mut client, json!({}));
    assert_eq!(data(&mut client), "kept");
    volatile.wait_for_subscriptions(1, WATCHDOG).unwrap();
    say(&volatile, "current");
    assert_eq!(data(&mut client), "current");
    say(&map, "new");
    assert_eq!(data(&mut client), "new");
}

#[test]
fn every_client_knows_what_has_become_of_goals() {
    let world = World::new();
    let server = world.node.create_action_server::<Fibonacci>("/fibonacci", |handle| {
        handle.succeed(FibonacciResult { sequence: vec![1] }).unwrap();
    });
    let _server = server.unwrap();
    world.spin();
    let mut asking = world.client();
    asking.say(&json!({
        "op": "send_action_goal", "id": "g", "action": "/fibonacci",
        "action_type": "example_interfaces/action/Fibonacci", "args": { "order": 1 },
    }));
    assert_eq!(asking.hear_of("action_result")["status"], 4);
    let mut clients: Vec<_> = (0..3).map(|_| world.client()).collect();
    for client in &mut clients {
        client.say(&json!({ "op": "subscribe", "topic": "/fibonacci/_action/status" }));
        let status = client.hear_of("publish");
        assert_eq!(status["msg"]["status_list"][0]["status"], 4, "{status}");
    }
}

#[test]
fn what_a_client_latches_comes_to_every_other() {
    let world = World::new();
    let mut speaker = world.client();
    speaker.say(&json!({
        "op": "advertise", "topic": "/map", "type": "std_msgs/String", "latch": true, "queue_size": 1,
    }));
    speaker.say(&json!({ "op": "publish", "topic": "/map", "msg": { "data": "one" } }));
    let mut clients: Vec<_> = (0..3).map(|_| world.client()).collect();
    for client in &mut clients {
        subscribe(client, json!({}));
        assert_eq!(data(client), "one");
    }
}
