//! `tsuji bridge`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tsuji_record::{Compression, RecordingWriter};

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
    assert!(ended.err.contains(r#"may not publish \"/chatter\""#), "{ended:?}");
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

#[test]
fn users_of_a_file_may_do_what_it_says() {
    let world = World::new();
    let text = "users: {arm: {token: sesame, publish: [/arm], subscribe: [/arm], call_service: all, set_route: all}}\n";
    let file = world.write("users.yaml", text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (bridge, port) = bridge(&world, &["--users", file.to_str().unwrap()]);
    let mut client = client(port);
    client
        .write_all(
            br#"{"op":"auth","token":"sesame"}
               {"op":"advertise","topic":"/arm","type":"std_msgs/String"}
               {"op":"advertise","id":"a","topic":"/leg","type":"std_msgs/String"}"#,
        )
        .unwrap();
    let mut buffer = [0; 4096];
    let count = client.read(&mut buffer).unwrap();
    let status: Value = serde_json::from_slice(&buffer[..count]).unwrap();
    assert_eq!((&status["level"], &status["id"]), (&json!("error"), &json!("a")), "{status}");
    let set = br#"{"op":"call_service","service":"/rosapi/tsuji_set_route","args":["/arm","shm"]}"#;
    client.write_all(set).unwrap();
    let count = client.read(&mut buffer).unwrap();
    let answer: Value = serde_json::from_slice(&buffer[..count]).unwrap();
    assert_eq!(answer["result"], true, "{answer}");
    let ended = bridge.stop();
    assert!(ended.err.contains(r#"\"arm\" may not publish \"/leg\""#), "{ended:?}");
    assert!(ended.err.contains(r#"\"arm\" has set \"/arm\" to shm"#), "{ended:?}");
    // Everybody can read it.
    assert!(ended.err.contains("chmod o-rwx"), "{ended:?}");
    assert!(!ended.err.contains("sesame"), "{ended:?}");
}

#[test]
fn what_is_wrong_with_users_secrets_and_limits_is_said() {
    let world = World::new();
    let refused =
        |arguments: &[&str]| world.run(&[&["bridge", "-p", "0"], arguments].concat()).bad(2);
    let users = world.write("users.yaml", "users:\n  arm: {publishes: all}\n");
    let error = refused(&["--users", users.to_str().unwrap()]);
    assert!(error.contains("users.yaml:2:20: arm: found `publishes`; allowed: token"), "{error}");
    let error = refused(&["--users", "nowhere.yaml"]);
    assert!(error.contains("nowhere.yaml: "), "{error}");
    let secret = world.write("secret", "short\n");
    let error = refused(&["--rosauth-secret", secret.to_str().unwrap()]);
    assert!(error.contains("secret:1: found 5 letters; allowed: at least 16"), "{error}");
    let error = refused(&["--token", ""]);
    assert!(error.contains("a text that is not empty"), "{error}");
    let error = refused(&["--max-messages-per-second", "0"]);
    assert!(error.contains("a number of at least 0.001"), "{error}");
    let error = refused(&["--max-nesting", "1000"]);
    assert!(error.contains("1000 is not in 4..=128"), "{error}");
}

#[test]
fn limits_of_a_client_are_as_the_flags_say() {
    let world = World::new();
    let limits = ["--max-nesting", "5", "--max-names", "1", "--delay-between-messages", "0.001"];
    let (bridge, port) = bridge(&world, &limits);
    let mut client = client(port);
    client
        .write_all(
            br#"{"op":"status","level":"info","msg":"deep","a":[[[[[]]]]]}
               {"op":"advertise","topic":"/a","type":"std_msgs/String"}
               {"op":"advertise","topic":"/b","type":"std_msgs/String"}"#,
        )
        .unwrap();
    let mut told = String::new();
    // What is too deep ends the connection.
    client.read_to_string(&mut told).unwrap();
    assert!(told.contains("nested deeper than is allowed"), "{told}");
    let mut client = self::client(port);
    client
        .write_all(
            br#"{"op":"advertise","topic":"/a","type":"std_msgs/String"}
               {"op":"advertise","topic":"/b","type":"std_msgs/String"}"#,
        )
        .unwrap();
    let mut buffer = [0; 4096];
    let count = client.read(&mut buffer).unwrap();
    let status: Value = serde_json::from_slice(&buffer[..count]).unwrap();
    assert!(status["msg"].as_str().unwrap().contains("at most 1 topics"), "{status}");
    assert_eq!(bridge.stop().code, Some(0));
}

/// Says a word again and again, and connects anew whenever the server is gone, as roslib does.
fn speak(port: u16, number: u32, is_back: &AtomicBool, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Acquire) {
        let Ok(mut client) = TcpStream::connect(("127.0.0.1", port)) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let advertise =
            json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" });
        let mut said = client.write_all(advertise.to_string().as_bytes());
        while said.is_ok() && !is_over.load(Ordering::Acquire) {
            let word = if is_back.load(Ordering::Acquire) { "after" } else { "before" };
            let data = format!("{word} {number}");
            let message = json!({ "op": "publish", "topic": "/chatter", "msg": { "data": data } });
            said = client.write_all(message.to_string().as_bytes());
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Ends those who speak, even where a test has failed.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn clients_go_on_when_the_server_was_killed_and_is_back() {
    let world = World::new();
    let (killed, port) = bridge(&world, &[]);
    let mut echo = world.start(&["topic", "echo", "/chatter", "std_msgs/msg/String"]);
    let (is_back, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let _ends = Ends(&is_over);
        for number in 0..3 {
            let (is_back, is_over) = (&is_back, &is_over);
            scope.spawn(move || speak(port, number, is_back, is_over));
        }
        let all = |word: &str| (0..3).map(|at| format!("data: {word} {at}")).collect::<Vec<_>>();
        all("before").iter().for_each(|it| echo.out(it));
        // In the middle of what they say.
        killed.kill();
        let port = port.to_string();
        let mut again = world.start(&["bridge", "--no-websocket", "--tcp-port", &port, "--json"]);
        again.out_line("listening");
        is_back.store(true, Ordering::Release);
        all("after").iter().for_each(|it| echo.out(it));
        let counts: Value = serde_json::from_str(again.stop().out.lines().last().unwrap()).unwrap();
        assert_eq!(counts["refused"], 0, "{counts}");
        assert!(3 <= counts["connected"].as_u64().unwrap(), "{counts}");
    });
    assert_eq!(echo.stop().code, Some(0));
}

#[test]
fn with_json_warnings_are_json_too_and_keep_no_control_characters() {
    let world = World::new();
    let (mut bridge, port) = bridge(&world, &["--services-glob", "[]"]);
    let mut client = client(port);
    client
        .write_all(br#"{"op":"call_service","id":"c","service":"/a\u001b[2J\nb","timeout":-1}"#)
        .unwrap();
    bridge.err("may not");
    let ended = bridge.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in ended.err.lines() {
        let told: Value = serde_json::from_str(line).unwrap();
        assert_eq!(told["level"], "warning", "{line}");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains("\\u{1b}[2J\\nb"), "{message}");
        assert!(!message.chars().any(char::is_control), "{message}");
    }
    assert!(!ended.err.is_empty());
}

#[test]
fn a_time_of_zero_and_less_is_no_time_out() {
    let world = World::new();
    for timeout in ["0", "-1", "-0.5"] {
        let (bridge, _) = bridge(&world, &["--default-call-service-timeout", timeout]);
        assert_eq!(bridge.stop().code, Some(0), "{timeout}");
    }
}

/// One message after the other, as they come by TCP.
struct Heard {
    client: TcpStream,
    read: Vec<u8>,
}

impl Heard {
    fn at(port: u16) -> Self {
        Self { client: client(port), read: Vec::new() }
    }

    fn next(&mut self) -> Value {
        loop {
            let mut values = serde_json::Deserializer::from_slice(&self.read).into_iter::<Value>();
            if let Some(Ok(value)) = values.next() {
                let end = values.byte_offset();
                self.read.drain(..end);
                return value;
            }
            let mut buffer = [0; 4096];
            let count = self.client.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "the bridge has closed");
            self.read.extend_from_slice(&buffer[..count]);
        }
    }

    /// The next number that is published.
    fn number(&mut self) -> i64 {
        loop {
            let value = self.next();
            if value["op"] == "publish" {
                return value["msg"]["first"]["number"].as_i64().unwrap();
            }
        }
    }

    /// What the recording is after `args`.
    fn set(&mut self, args: &Value) -> Value {
        self.call("/rosapi/tsuji_set_playback", args)
    }

    fn call(&mut self, service: &str, args: &Value) -> Value {
        let response = self.response(service, args);
        assert_eq!(response["result"], true, "{response}");
        response["values"].clone()
    }

    /// What is answered, whether it was done or not.
    fn response(&mut self, service: &str, args: &Value) -> Value {
        let call = json!({ "op": "call_service", "service": service, "args": args });
        self.client.write_all(call.to_string().as_bytes()).unwrap();
        loop {
            let value = self.next();
            if value["op"] == "service_response" {
                return value;
            }
        }
    }

    fn until_it_has_ended(&mut self) -> Value {
        loop {
            let told = self.call("/rosapi/tsuji_playback", &json!({}));
            if told["status"] == "ended" {
                return told;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A recording of a type that is nowhere but in it: the numbers from 0 on, a second apart, from 1000 on.
pub(crate) fn numbers(world: &World, name: &str, count: i32) {
    let text = "Half first\n===\nMSG: own_msgs/Half\nint32 number\n";
    let ty = tsuji_msg::load_full_text("own_msgs/msg/Numbers", text).unwrap();
    let writer = RecordingWriter::create(&world.path(name), Compression::None).unwrap();
    for number in 0..count {
        let data = [&[0, 1, 0, 0], &number.to_le_bytes()[..]].concat();
        let time_ns = (1000 + number as u64) * 1_000_000_000;
        writer.write("/numbers", &ty, time_ns, &data).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_recording_is_played_to_clients_that_control_it() {
    let world = World::new();
    numbers(&world, "a.mcap", 4);
    let (bridge, port) = bridge(&world, &["--play", "a.mcap", "--start-paused", "--rate", "1000"]);
    let mut heard = Heard::at(port);
    heard.client.write_all(br#"{"op":"subscribe","topic":"/numbers"}"#).unwrap();
    let told = heard.call("/rosapi/tsuji_playback", &json!({}));
    let [start, end, rate] = ["start", "end", "rate"].map(|it| &told[it]);
    assert_eq!((start, end, rate), (&json!(1000.0), &json!(1003.0), &json!(1000.0)), "{told}");
    // Whose definition is in the file alone, and which nobody publishes but the recording.
    let types = heard.call("/rosapi/topic_type", &json!({ "topic": "/numbers" }));
    assert_eq!(types["type"], "own_msgs/msg/Numbers");
    assert_eq!(heard.set(&json!({ "time": 1002 }))["time"], 1002.0);
    assert_eq!(heard.set(&json!({ "playing": true }))["rate"], 1000.0);
    assert_eq!([heard.number(), heard.number()], [2, 3]);
    assert_eq!(heard.until_it_has_ended()["time"], 1003.0);
    // From its end it goes on from its beginning.
    heard.set(&json!({ "playing": true }));
    assert_eq!([0, 1, 2, 3].map(|_| heard.number()), [0, 1, 2, 3]);
    heard.until_it_has_ended();
    let times = world.run(&["topic", "info", "/clock"]).good();
    assert!(times.contains("rosgraph_msgs/msg/Clock"), "{times}");
    let ended = bridge.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_recording_is_played_again_and_again_until_the_bridge_ends() {
    let world = World::new();
    numbers(&world, "a.mcap", 2);
    let (bridge, port) = bridge(&world, &["--play", "a.mcap", "--loop", "--rate", "1000"]);
    let mut heard = Heard::at(port);
    heard.client.write_all(br#"{"op":"subscribe","topic":"/numbers"}"#).unwrap();
    let first = heard.number();
    for at in 1..20 {
        assert_eq!(heard.number(), (first + at) % 2);
    }
    let ended = bridge.stop();
    assert_eq!((ended.code, ended.err.contains("error")), (Some(0), false), "{ended:?}");
}

#[test]
fn what_cannot_be_played_is_told() {
    let world = World::new();
    let error = world.run(&["bridge", "--port", "0", "--play", "none.mcap"]).bad(1);
    assert!(error.contains("none.mcap"), "{error}");
    let error = world.run(&["bridge", "--port", "0", "--loop"]).bad(2);
    assert!(error.contains("--play"), "{error}");
    numbers(&world, "a.mcap", 20);
    let error = world.run(&["bridge", "--port", "0", "--play", "a.mcap", "--rate", "0"]).bad(2);
    assert!(error.contains("rate 0; allowed: a number above 0"), "{error}");
    // What is damaged is played as far as it is whole, and the exit code says so.
    let whole = fs::read(world.path("a.mcap")).unwrap();
    fs::write(world.path("cut.mcap"), &whole[..whole.len() - 100]).unwrap();
    let (bridge, port) = bridge(&world, &["--play", "cut.mcap", "--rate", "1000"]);
    let mut heard = Heard::at(port);
    heard.until_it_has_ended();
    let ended = bridge.stop();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("the file ends here, in the middle"), "{ended:?}");
}

#[test]
fn a_recording_of_no_length_is_played_again_and_again() {
    let world = World::new();
    numbers(&world, "a.mcap", 1);
    let (bridge, port) = bridge(&world, &["--play", "a.mcap", "--loop"]);
    let mut heard = Heard::at(port);
    heard.client.write_all(br#"{"op":"subscribe","topic":"/numbers"}"#).unwrap();
    assert_eq!([0, 1, 2].map(|_| heard.number()), [0, 0, 0]);
    let ended = bridge.stop();
    assert_eq!((ended.code, ended.err.contains("error")), (Some(0), false), "{ended:?}");
}

#[test]
fn a_recording_that_can_be_read_no_more_has_ended_and_says_why() {
    let world = World::new();
    numbers(&world, "a.mcap", 200_000);
    let (bridge, port) = bridge(&world, &["--play", "a.mcap", "--start-paused"]);
    let mut heard = Heard::at(port);
    assert_eq!(heard.call("/rosapi/tsuji_playback", &json!({}))["trouble"], Value::Null);
    fs::write(world.path("a.mcap"), b"").unwrap();
    // It may be read ahead, or not.
    heard.response("/rosapi/tsuji_set_playback", &json!({ "time": 150_000 }));
    let told = heard.until_it_has_ended();
    assert!(told["trouble"].as_str().unwrap().contains("is not played any more"), "{told}");
    let refused = heard.response("/rosapi/tsuji_set_playback", &json!({ "playing": true }));
    assert_eq!(refused["result"], false, "{refused}");
    assert!(refused["values"].as_str().unwrap().contains("is not played any more"), "{refused}");
    let ended = bridge.stop();
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[test]
fn another_definition_than_is_installed_is_told() {
    let world = World::new();
    let ty = tsuji_msg::load_full_text("std_msgs/msg/Int32", "int32 older\n").unwrap();
    let writer = RecordingWriter::create(&world.path("a.mcap"), Compression::None).unwrap();
    writer.write("/older", &ty, 1, &[0, 1, 0, 0, 7, 0, 0, 0]).unwrap();
    writer.finish().unwrap();
    let (bridge, _) = bridge(&world, &["--play", "a.mcap"]);
    let ended = bridge.stop();
    let why = "std_msgs/msg/Int32: the recording has another definition than is installed";
    assert!(ended.err.contains(why), "{ended:?}");
}

#[test]
fn a_bridge_that_is_killed_as_it_plays_leaves_nothing_in_the_way() {
    let world = World::new();
    numbers(&world, "a.mcap", 1000);
    let play = ["--play", "a.mcap", "--rate", "100", "--jpeg", "/**"];
    let (killed, port) = bridge(&world, &play);
    let mut heard = Heard::at(port);
    heard.client.write_all(br#"{"op":"subscribe","topic":"/numbers"}"#).unwrap();
    heard.number();
    killed.kill();
    world.run_until(&["topic", "list"], |it| !it.out.contains("/numbers"));
    let (again, port) = bridge(&world, &[&play[..], &["--start-paused"]].concat());
    let mut heard = Heard::at(port);
    heard.client.write_all(br#"{"op":"subscribe","topic":"/numbers"}"#).unwrap();
    heard.set(&json!({ "playing": true }));
    let first = heard.number();
    // Whoever subscribes while it begins may have missed the first, and nothing between.
    for next in first + 1..first + 20 {
        assert_eq!(heard.number(), next);
    }
    assert_eq!(again.stop().code, Some(0));
}
