//! `tsuji ros1 master`, on loopback alone.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tsuji_ros1::http::{Response, encode_request, encode_response, take_request, take_response};
use tsuji_ros1::xmlrpc::{Call, Reply, Value};

use crate::support::{Running, Signal, WATCHDOG, World};

const TYPE: &str = "std_msgs/String";

/// Starts one on a free port; its port.
fn master(world: &World, arguments: &[&str]) -> (Running, u16) {
    let words = ["ros1", "master", "--bind", "127.0.0.1", "--port", "0", "--json"];
    let mut master = world.start(&[&words[..], arguments].concat());
    let told: Json = serde_json::from_str(&master.out_line("listening")).unwrap();
    let port = told["listening"]["port"].as_u64().unwrap();
    assert_eq!(told["listening"]["uri"], json!(format!("http://127.0.0.1:{port}/")));
    (master, u16::try_from(port).unwrap())
}

/// A connection to the master, on which calls are made one after the other.
struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    fn new(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream.set_write_timeout(Some(WATCHDOG)).unwrap();
        Self { stream, received: Vec::new() }
    }

    fn send(&mut self, method: &str, params: Vec<Value>) {
        let call = Call::new(method, params).encode();
        self.stream.write_all(&encode_request("127.0.0.1", "/RPC2", &call)).unwrap();
    }

    fn response(&mut self) -> Response {
        let mut part = [0; 65_536];
        loop {
            let count = self.stream.read(&mut part).unwrap();
            self.received.extend_from_slice(&part[..count]);
            if let Some(response) = take_response(&mut self.received, count == 0).unwrap() {
                return response;
            }
        }
    }

    fn call(&mut self, method: &str, params: &[&str]) -> Result<Value, String> {
        self.send(method, params.iter().map(|it| Value::from(*it)).collect());
        Reply::parse(&self.response().body).unwrap().ros()
    }
}

/// A node: what the master calls.
struct Node {
    listener: TcpListener,
    api: String,
}

impl Node {
    fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let api = format!("http://{}/", listener.local_addr().unwrap());
        Self { listener, api }
    }

    /// Waits for a call, and answers that it is done.
    fn called(&self) -> Call {
        self.listener.set_nonblocking(true).unwrap();
        let began = Instant::now();
        let mut stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    assert!(began.elapsed() < WATCHDOG, "nobody calls");
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        };
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        let (mut received, mut part) = (Vec::new(), [0; 4096]);
        let request = loop {
            let count = stream.read(&mut part).unwrap();
            assert_ne!(count, 0);
            received.extend_from_slice(&part[..count]);
            if let Some(request) = take_request(&mut received).unwrap() {
                break request;
            }
        };
        let reply = Reply::success("", Value::Int(0)).encode();
        stream.write_all(&encode_response(200, &reply, true)).unwrap();
        Call::parse(&request.body).unwrap()
    }
}

fn texts(all: &[&str]) -> Value {
    Value::Array(all.iter().map(|it| Value::from(*it)).collect())
}

fn update(topic: &str, publishers: &[&str]) -> Call {
    Call::new("publisherUpdate", vec!["/master".into(), topic.into(), texts(publishers)])
}

#[test]
fn a_subscriber_is_told_of_publishers() {
    let world = World::new();
    let (mut master, port) = master(&world, &["--verbose"]);
    let (node, other) = (Node::new(), "http://127.0.0.1:1/");
    let mut client = Client::new(port);
    assert_eq!(client.call("registerSubscriber", &["/s", "/t", "*", &node.api]), Ok(texts(&[])));
    let found = client.call("registerPublisher", &["/p", "/t", TYPE, other]);
    assert_eq!(found, Ok(texts(&[&node.api])));
    assert_eq!(node.called(), update("/t", &[other]));
    let count = client.call("unregisterPublisher", &["/p", "/t", other]);
    assert_eq!(count, Ok(Value::Int(1)));
    assert_eq!(node.called(), update("/t", &[]));
    client.call("subscribeParam", &["/s", &node.api, "/a"]).unwrap();
    client.call("setParam", &["/p", "/a", "x"]).unwrap();
    let told =
        Call::new("paramUpdate", texts(&["/master", "/a/", "x"]).as_array().unwrap().to_vec());
    assert_eq!(node.called(), told);
    let event: Json = serde_json::from_str(&master.out_line("registerPublisher")).unwrap();
    let expected =
        json!({ "event": "registerPublisher", "node": "/p", "name": "/t", "uri": other });
    assert_eq!(event, expected);
    master.out("setParam");
    // Another node of the name takes its place.
    client.call("registerSubscriber", &["/s", "/u", "*", other]).unwrap();
    assert_eq!(node.called().method, "shutdown");
    let ended = master.stop();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let counts: Json = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
    assert_eq!((&counts["requests"], &counts["nodes"]), (&json!(6), &json!(1)), "{counts}");
}

#[test]
fn a_node_that_is_gone_stays_registered_and_holds_nobody_up() {
    let world = World::new();
    let (mut master, port) = master(&world, &[]);
    let mut client = Client::new(port);
    // One that is gone, one that accepts and never answers, and one that is well.
    let gone = Node::new().api;
    let (silent, well) = (Node::new(), Node::new());
    for (node, api) in [("/gone", &gone), ("/silent", &silent.api), ("/well", &well.api)] {
        client.call("registerSubscriber", &[node, "/t", "*", api]).unwrap();
    }
    for number in 1..20 {
        let api = format!("http://127.0.0.1:{number}/");
        client.call("registerPublisher", &["/p", "/t", TYPE, &api]).unwrap();
        let told = loop {
            let told = well.called();
            if told != update("/t", &[]) {
                break told;
            }
        };
        assert_eq!(told, update("/t", &[&api]));
    }
    master.err(&format!("the node at {gone} cannot be told of changes; it stays registered"));
    assert_eq!(client.call("lookupNode", &["/x", "/gone"]), Ok(Value::from(gone)));
    assert_eq!(master.stop().code, Some(0));
}

#[test]
fn garbage_and_the_slow_do_not_disturb_others() {
    let world = World::new();
    let (master, port) = master(&world, &[]);
    let mut client = Client::new(port);
    let large = "x".repeat(8 << 20);
    client.call("setParam", &["/n", "/large", &large]).unwrap();
    // They ask for more than fits between, and never read.
    let _never: Vec<Client> = (0..20)
        .map(|_| {
            let mut never = Client::new(port);
            (0..3).for_each(|_| {
                never.send("getParam", texts(&["/n", "/large"]).as_array().unwrap().to_vec())
            });
            never
        })
        .collect();
    let mut half = Client::new(port);
    let request =
        encode_request("127.0.0.1", "/", &Call::new("getPid", vec!["/n".into()]).encode());
    let (first, second) = request.split_at(request.len() - 9);
    half.stream.write_all(first).unwrap();
    for (garbage, status) in [
        ("hello\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\n\r\n", 411),
        ("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
        ("GET / HTTP/1.1\r\n\r\n", 501),
        ("POST /other HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 404),
    ] {
        let mut other = Client::new(port);
        other.stream.write_all(garbage.as_bytes()).unwrap();
        assert_eq!(other.response().status, status, "{garbage:?}");
        assert_eq!(other.stream.read(&mut [0; 1]).unwrap(), 0, "it is closed then");
    }
    let mut other = Client::new(port);
    other.stream.write_all(&encode_request("h", "/", "<methodCall>")).unwrap();
    let reply = Reply::parse(&other.response().body).unwrap();
    assert!(
        matches!(&reply, Reply::Fault { text, .. } if text.contains("not XML-RPC")),
        "{reply:?}"
    );
    let error = other.call("nothing", &[]).unwrap_err();
    assert_eq!(error, "fault 1: method \"nothing\" is not supported");
    assert_eq!(other.call("hasParam", &["/n", "/large"]), Ok(Value::Bool(true)));
    // What it is waited for comes, after all of this.
    half.stream.write_all(second).unwrap();
    let reply = Reply::parse(&half.response().body).unwrap().ros();
    assert_eq!(reply, Ok(Value::Int(i32::try_from(master.id()).unwrap())));
    assert_eq!(master.stop().code, Some(0));
}

#[test]
fn connections_have_a_limit_at_which_idle_ones_go() {
    let world = World::new();
    let (master, port) = master(&world, &[]);
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..520 {
        let mut client = Client::new(port);
        client.call("getUri", &["/n"]).unwrap();
        clients.push(client);
    }
    assert_eq!(clients[0].stream.read(&mut [0; 1]).unwrap(), 0, "the first was idle longest");
    clients[519].call("getUri", &["/n"]).unwrap();
    assert_eq!(master.stop().code, Some(0));
}

#[test]
fn a_node_may_ask_it_to_end() {
    let world = World::new();
    let mut master = world.start(&["ros1", "master", "--bind", "127.0.0.1", "-p", "0"]);
    let line = master.out_line("for nodes: export ROS_MASTER_URI=http://127.0.0.1:");
    let port = line.rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap();
    master.err("Ctrl-C ends it");
    let mut client = Client::new(port);
    client.call("shutdown", &["/n", "enough"]).unwrap();
    let ended = master.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.out.contains("asked to end by [/n] enough\n1 requests, 0 of them refused"),
        "{ended:?}"
    );
}

#[test]
fn it_ends_at_once_by_a_signal() {
    let world = World::new();
    let (first, port) = master(&world, &[]);
    let mut client = Client::new(port);
    // It waits for this node, which holds it up no more than connections do.
    let silent = Node::new();
    client.call("registerSubscriber", &["/s", "/t", "*", &silent.api]).unwrap();
    client.call("registerPublisher", &["/p", "/t", TYPE, "http://127.0.0.1:1/"]).unwrap();
    first.signal(Signal::Terminate);
    assert_eq!(first.end().code, Some(0));
    // The port is free again at once, and the environment says it.
    let uri = format!("http://127.0.0.1:{port}/");
    let mut command = world.command(&["ros1", "master", "--json"]);
    command.env("ROS_MASTER_URI", &uri).env("ROS_IP", "127.0.0.1");
    let mut second = Running::new(&mut command);
    second.out(&uri);
    assert_eq!(second.stop().code, Some(0));
}

#[test]
fn what_cannot_be_is_said() {
    let world = World::new();
    let (first, port) = master(&world, &[]);
    let words = ["ros1", "master", "--bind", "127.0.0.1", "--port"];
    let error = world.run(&[&words[..], &[&port.to_string()]].concat()).bad(1);
    let pid = first.id();
    let by = format!(
        "the port is taken by another ROS 1 master, process {pid}; allowed is another, or 0 for any"
    );
    assert!(error.contains(&by), "{error}");
    let error = world.run(&[&words[..], &["0", "--host", "http://robot:11311"]].concat()).bad(2);
    assert!(error.contains("--host is \"http://robot:11311\"; allowed is a host name"), "{error}");
    let error = world.run_with(&[("ROS_MASTER_URI", "robot")], &words[..4]).bad(2);
    assert!(error.contains("ROS_MASTER_URI=\"robot\": the address has no scheme"), "{error}");
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let closing = std::thread::spawn(move || drop(silent.accept()));
    let error = world.run(&[&words[..], &[&port]].concat()).bad(1);
    assert!(error.contains("the port is taken by another program; allowed is another"), "{error}");
    closing.join().unwrap();
}

#[test]
fn its_parameters_are_read() {
    let world = World::new();
    let (master, port) = master(&world, &[]);
    let mut client = Client::new(port);
    client.call("setParam", &["/rosparam", "/arm/name", "left"]).unwrap();
    let speed = vec![Value::from("/rosparam"), Value::from("/arm/speed"), Value::Double(1.5)];
    client.send("setParam", speed);
    client.response();
    let asked = |words: &[&str]| {
        let words = [&["ros1", "param"], words].concat();
        let mut command = world.command(&words);
        command.env("ROS_MASTER_URI", format!("http://127.0.0.1:{port}"));
        Running::new(&mut command).end()
    };
    let listed = asked(&["list"]);
    assert_eq!((listed.code, &*listed.out), (Some(0), "/arm/name\n/arm/speed\n"));
    assert_eq!(asked(&["get", "/arm/name"]).out, "left\n");
    assert_eq!(asked(&["get", "/arm/name", "--json"]).out, "\"left\"\n");
    let all: Json = serde_json::from_str(&asked(&["get", "/arm"]).out).unwrap();
    assert_eq!(all, json!({ "name": "left", "speed": 1.5 }));
    let none = asked(&["get", "/leg"]);
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("/leg"), "{}", none.err);
    master.interrupt();
    master.end();
    let gone = asked(&["list"]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.err.contains("`tsuji ros1 master` starts one"), "{}", gone.err);
}
