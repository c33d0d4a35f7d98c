//! What happens where a protocol, the memory or a thread of the bridge gives out.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::ErrorKind::WouldBlock;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::json;
use tsuji::{History, Qos};
use tsuji_bridge::{Bridge, ErrorKind, Place, Protocol, Settings, TlsFiles};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_msg::{Definition, Kind, Resolver, Unreadable};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message};
use world::{Client, WATCHDOG, World, until};

mod world;

const KEEP_ALL: Qos = Qos { history: History::KeepAll, ..Qos::DEFAULT };

/// Which timer the system has set for the server's end of a connection: `02` is that of keepalive.
fn timer(server: SocketAddr, client: SocketAddr) -> Option<String> {
    let connections = fs::read_to_string("/proc/self/net/tcp").unwrap();
    let ends = |address: SocketAddr| format!(":{:04X}", address.port());
    let line = connections
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words[1].ends_with(&ends(server)) && words[2].ends_with(&ends(client)))?;
    Some(line[5].split(':').next()?.to_owned())
}

#[test]
fn a_connection_that_is_silent_is_asked_whether_it_is_there() {
    let world = World::new();
    for protocol in [Protocol::Tcp, Protocol::WebSocket] {
        let server = world.address(protocol);
        let client = TcpStream::connect(server).unwrap();
        let client = client.local_addr().map(|it| (client, it)).unwrap();
        until("keepalive", || (timer(server, client.1)? == "02").then_some(()));
    }
    let world = World::with(Settings { keepalive: Duration::ZERO, ..Settings::default() });
    let mut tcp = world.tcp();
    tcp.say(br#"{"op":"call_service","service":"/rosapi/get_time"}"#);
    tcp.hear();
    let client = tcp.stream.local_addr().unwrap();
    until("no timer", || (timer(world.address(Protocol::Tcp), client)? == "00").then_some(()));
}

#[test]
fn datagrams_that_the_system_drops_are_counted_and_all_others_are_published() {
    let world = World::with(Settings { udp_receive_buffer: 1, ..Settings::default() });
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    let udp = world.udp();
    udp.send(br#"{"op":"advertise","topic":"/chatter","type":"std_msgs/String"}"#).unwrap();
    let message =
        json!({ "op": "publish", "topic": "/chatter", "msg": { "data": "x".repeat(500) } });
    let message = message.to_string();
    udp.send(message.as_bytes()).unwrap();
    until("the first", || heard.take().unwrap());
    let (mut sent, mut taken) = (1, 1);
    until("too much for the system", || {
        for _ in 0..1000 {
            udp.send(message.as_bytes()).unwrap();
        }
        sent += 1000;
        while heard.take().unwrap().is_some() {
            taken += 1;
        }
        (0 < world.bridge.statistics().datagrams_dropped).then_some(())
    });
    until("all are read or dropped", || {
        while heard.take().unwrap().is_some() {
            taken += 1;
        }
        let told = world.bridge.statistics();
        (told.datagrams_dropped + taken == sent && told.published == taken).then_some(())
    });
    assert!(1 < taken && taken < sent, "{taken} of {sent}");
}

#[test]
fn a_certificate_that_is_not_valid_now_is_refused() {
    let world = World::new();
    let [certificate, key] = ["server.pem", "server.key"].map(|it| world.folder().join(it));
    let place = Some(Place { address: [127, 0, 0, 1].into(), port: 0 });
    let tls = Some(TlsFiles { certificate: certificate.clone(), key: key.clone() });
    let start = |from: i32, to: i32| {
        let pair = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        fs::write(&certificate, params.self_signed(&pair).unwrap().pem()).unwrap();
        fs::write(&key, pair.serialize_pem()).unwrap();
        let settings = Settings { websocket: place, tls: tls.clone(), ..Settings::default() };
        Bridge::start(&world.node, settings, Box::new(Shipped))
    };
    for (from, to, expected) in [
        (2000, 2010, "server.pem: certificate 1 of 1 has expired on Jan  1 00:00:00 2010"),
        (2500, 2510, "server.pem: certificate 1 of 1 is not valid before Jan  1 00:00:00 2500"),
    ] {
        let error = start(from, to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(expected), "{error}");
    }
    drop(start(2000, 2500).unwrap());
}

/// Asks for pictures, and returns when the bridge has subscribed.
fn watch(client: &mut Client) {
    client.say(&json!({
        "op": "subscribe", "topic": "/camera", "type": "sensor_msgs/Image", "compression": "cbor-raw",
    }));
    client.settle();
}

#[test]
fn whoever_has_the_most_makes_room_when_all_have_too_much() {
    const MAX: usize = 8 << 20;
    let world = World::with(Settings { memory_bytes_max: MAX, ..Settings::default() });
    let (mut slow, mut quick) = (world.client(), world.client());
    watch(&mut slow);
    watch(&mut quick);
    let camera = world.node.create_publisher::<Image>("/camera", KEEP_ALL).unwrap();
    camera.wait_for_subscriptions(1, WATCHDOG).unwrap();
    let mut count = 0;
    while world.bridge.statistics().crowded_out < 20 {
        camera.publish(&Image { data: vec![7; 100_000], ..Image::default() }).unwrap();
        count += 1;
        let Message::Binary(bytes) = quick.hear() else { panic!() };
        assert!(100_000 < bytes.len());
        let held = world.bridge.statistics().held_bytes as usize;
        assert!(held <= MAX + 1_000_000, "{held}");
    }
    // Nobody else is let in meanwhile.
    let mut late = world.client();
    assert_eq!(late.hear_close().unwrap().code, CloseCode::Again);
    assert_eq!(world.bridge.statistics().refused, 1);
    // The slow one gets all but what it lost.
    for _ in 0..count - world.bridge.statistics().crowded_out {
        assert!(matches!(slow.hear(), Message::Binary(_)));
    }
    slow.settle();
    assert_eq!(world.bridge.statistics().dropped, 0);
    until("there is room", || (world.bridge.statistics().held_bytes < 100_000).then_some(()));
    world.client().settle();
    drop((slow, quick, late));
    until("nothing is left", || (world.bridge.statistics().held_bytes == 0).then_some(()));
}

#[test]
fn whoever_has_the_most_and_no_samples_is_closed() {
    let world = World::with(Settings { memory_bytes_max: 8 << 20, ..Settings::default() });
    let (mut greedy, mut other) = (world.client(), world.client());
    let piece = "x".repeat(1 << 20);
    for at in 0..6 {
        greedy.say(&json!({
            "op": "fragment", "id": at.to_string(), "data": piece, "num": 0, "total": 2,
        }));
    }
    greedy.settle();
    assert!(6 << 20 <= world.bridge.statistics().held_bytes);
    other.settle();
    let more = "x".repeat(2 << 20);
    greedy.say(&json!({ "op": "fragment", "id": "last", "data": more, "num": 0, "total": 2 }));
    assert_eq!(greedy.hear_close().unwrap().code, CloseCode::Again);
    other.settle();
    assert_eq!(world.bridge.statistics().cut_off, 1);
    drop((greedy, other));
    until("nothing is left", || (world.bridge.statistics().held_bytes == 0).then_some(()));
}

#[test]
fn nobody_else_is_closed_for_what_goes_with_one() {
    let world = World::with(Settings { memory_bytes_max: 8 << 20, ..Settings::default() });
    let mut other = world.client();
    other.settle();
    // Messages whose end does not come; the room of one that is closed is only had when it has gone.
    let mut greedy: Vec<_> = (0..3).map(|_| world.tcp()).collect();
    for it in &mut greedy {
        let begun = format!("{{\"op\":\"status\",\"msg\":\"{}", "x".repeat(3 << 20));
        // Whoever is closed need not take all of it.
        let _ = std::io::Write::write_all(&mut it.stream, begun.as_bytes());
    }
    until("one is closed", || (world.bridge.statistics().cut_off != 0).then_some(()));
    until("there is room", || {
        let held = world.bridge.statistics().held_bytes;
        (held <= 8 << 20).then_some(())
    });
    other.settle();
    assert_eq!(world.bridge.statistics().cut_off, 1);
}

#[test]
fn calls_that_wait_for_a_server_take_room_too() {
    let world = World::with(Settings { memory_bytes_max: 8 << 20, ..Settings::default() });
    let (mut greedy, mut other) = (world.client(), world.client());
    let call = json!({
        "op": "call_service", "service": "/nobody", "type": "rcl_interfaces/GetParameters",
        "args": { "names": ["x".repeat(1 << 20)] },
    });
    let call = Message::text(call.to_string());
    // The runner's watchdog ends it.
    while greedy.socket.send(call.clone()).is_ok() {}
    other.settle();
    assert_eq!(world.bridge.statistics().cut_off, 1);
    drop((greedy, other));
    until("nothing is left", || (world.bridge.statistics().held_bytes == 0).then_some(()));
}

#[test]
fn what_waits_for_a_first_subscription_takes_room_and_waits_for_none() {
    let world = World::with(Settings { memory_bytes_max: 8 << 20, ..Settings::default() });
    let mut client = world.client();
    let data = "x".repeat(1 << 19);
    let held = || world.bridge.statistics().held_bytes;
    let mut publish = |at: u32| {
        let topic = format!("/early_{at}");
        client.say(&json!({ "op": "advertise", "topic": topic, "type": "std_msgs/String" }));
        client.say(&json!({ "op": "publish", "topic": topic, "msg": { "data": data } }));
        client.settle();
        held()
    };
    // The runner's watchdog ends it.
    let full = (0..).find(|at| 3 << 19 <= publish(*at)).unwrap();
    for at in 1..=10 {
        publish(full + at);
        // What came is still counted when it has just been answered.
        until("no more waits than may", || (held() <= 2 << 20).then_some(()));
    }
    until("nothing is left", || (held() == 0).then_some(()));
    let statistics = world.bridge.statistics();
    assert_eq!(statistics.published, u64::from(full) + 11);
    assert_eq!((statistics.cut_off, statistics.crowded_out), (0, 0));
}

#[test]
fn a_bridge_whose_thread_ends_says_so_and_leaves_nobody_waiting() {
    let world = World::new();
    let (mut client, tcp) = (world.client(), world.tcp());
    client.settle();
    assert!(!world.bridge.is_over());
    let (over, is_over) = mpsc::channel();
    world.bridge.when_over(move || over.send(()).unwrap());
    world.shut_down();
    is_over.recv_timeout(WATCHDOG).unwrap();
    assert!(world.bridge.is_over());
    assert_eq!(client.hear_close().unwrap().code, CloseCode::Away);
    let mut tcp = tcp.stream;
    assert_eq!(std::io::Read::read(&mut tcp, &mut [0; 10]).unwrap(), 0);
    // Whoever asks later is told at once.
    let (over, is_over) = mpsc::channel();
    world.bridge.when_over(move || over.send(()).unwrap());
    is_over.recv_timeout(Duration::ZERO).unwrap();
}

/// Definitions with a fault that nobody thought of.
struct Faulty;

impl Resolver for Faulty {
    fn find(
        &self,
        _: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        panic!("asked for {package}/{name}")
    }
}

#[test]
fn a_bridge_whose_connections_panic_says_so_and_leaves_nobody_waiting() {
    let world = World::new();
    let place = Place { address: [127, 0, 0, 1].into(), port: 0 };
    let settings = Settings { websocket: Some(place), ..Settings::default() };
    let bridge = Bridge::start(&world.node, settings, Box::new(Faulty)).unwrap();
    let (over, is_over) = mpsc::channel();
    bridge.when_over(move || over.send(()).unwrap());
    let connect = || {
        let stream = TcpStream::connect(bridge.bound()[0].address).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        tungstenite::client("ws://localhost/", stream).unwrap().0
    };
    let (mut other, mut client) = (connect(), connect());
    let advertise = json!({ "op": "advertise", "topic": "/t", "type": "std_msgs/String" });
    client.send(Message::text(advertise.to_string())).unwrap();
    is_over.recv_timeout(WATCHDOG).unwrap();
    assert!(bridge.is_over());
    for it in [&mut other, &mut client] {
        let error = it.read().unwrap_err();
        assert!(!matches!(&error, Error::Io(it) if it.kind() == WouldBlock), "{error}");
    }
    let address = bridge.bound()[0].address;
    until("nobody listens", || TcpStream::connect(address).is_err().then_some(()));
    // It can still be dropped, and another takes its place.
    drop(bridge);
    let again = Bridge::start(&world.node, Settings::default(), Box::new(Shipped)).unwrap();
    assert!(!again.is_over());
}
