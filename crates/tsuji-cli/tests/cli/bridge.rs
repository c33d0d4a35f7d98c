//! `tsuji bridge`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Running, World};

/// Starts one by TCP alone on a free port; its port.
fn bridge(world: &World, arguments: &[&str]) -> (Running, u16) {
    let words = ["bridge", "--no-websocket", "--tcp-port", "0", "--json"];
    let mut bridge = world.start(&[&words[..], arguments].concat());
    let told: Value = serde_json::from_str(&bridge.out_line("listening")).unwrap();
    let port = told["listening"][0]["port"].as_u64().unwrap();
    (bridge, u16::try_from(port).unwrap())
}

fn client(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client
}

#[test]
fn what_a_client_publishes_is_seen_by_other_commands_and_counted() {
    let world = World::new();
    let (bridge, port) = bridge(&world, &[]);
    let mut echo = world.start(&["topic", "echo", "/chatter", "std_msgs/msg/String", "--once"]);
    let mut client = client(port);
    client
        .write_all(
            br#"{"op":"advertise","topic":"/chatter","type":"std_msgs/String"}
               {"op":"publish","topic":"/chatter","msg":{"data":"from the web"}}"#,
        )
        .unwrap();
    echo.out("data: from the web");
    assert_eq!(echo.end().code, Some(0));
    let nodes = world.run(&["node", "list"]).good();
    assert!(nodes.contains("/rosbridge_websocket"), "{nodes}");
    let ended = bridge.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let counts: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
    assert_eq!((&counts["connected"], &counts["published"]), (&json!(1), &json!(1)), "{counts}");
    // Whoever was connected is told that it is over.
    assert_eq!(client.read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn who_may_not_is_told_and_noted() {
    let world = World::new();
    let (bridge, port) = bridge(&world, &["--topics-glob", "[/allowed/*]"]);
    let mut client = client(port);
    client
        .write_all(br#"{"op":"advertise","id":"a","topic":"/chatter","type":"std_msgs/String"}"#)
        .unwrap();
    let mut buffer = [0; 4096];
    let count = client.read(&mut buffer).unwrap();
    let status: Value = serde_json::from_slice(&buffer[..count]).unwrap();
    assert_eq!((&status["level"], &status["id"]), (&json!("error"), &json!("a")), "{status}");
    assert!(status["msg"].as_str().unwrap().contains("[/allowed/*]"), "{status}");
    let ended = bridge.stop();
    assert!(ended.err.contains("may not publish \"/chatter\""), "{ended:?}");
}

#[test]
fn what_cannot_be_is_said() {
    let world = World::new();
    let (first, port) = bridge(&world, &[]);
    let port = port.to_string();
    let error = world.run(&["bridge", "--no-websocket", "--tcp-port", &port]).bad(1);
    assert!(error.contains("the port is taken; allowed is another, or 0 for any"), "{error}");
    drop(first.stop());
    let error = world.run(&["bridge", "--topics-glob", "/a"]).bad(2);
    assert!(error.contains("expected a list like [/a*, /b]"), "{error}");
    let error = world.run(&["bridge", "--certfile", "a.pem"]).bad(2);
    assert!(error.contains("--keyfile"), "{error}");
    let error =
        world.run(&["bridge", "-p", "0", "--certfile", "a.pem", "--keyfile", "a.pem"]).bad(2);
    assert!(error.starts_with("error: a.pem: "), "{error}");
}
