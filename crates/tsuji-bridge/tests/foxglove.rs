//! Clients that speak Foxglove's protocol, on the port of those that speak rosbridge's.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tsuji::{History, Message as _, Node, Qos};
use tsuji_bridge::protocol::access::{Access, ServerGlobs};
use tsuji_bridge::{
    Playback, PlaybackState, PlaybackStatus, PlaybackWish, Protocol, Settings, Users,
};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::nav_msgs::msg::Odometry;
use tsuji_interfaces::rcl_interfaces::srv::GetParameters;
use tsuji_interfaces::rosgraph_msgs::msg::Clock;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::String as Text;
use tungstenite::client::IntoClientRequest;
use tungstenite::http::StatusCode;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Error, Message, WebSocket};
use world::{WATCHDOG, World, until};

mod world;

const SDK: &str = "foxglove.sdk.v1";
const BEFORE: &str = "foxglove.websocket.v1";
const LATCHED: Qos = Qos::LATCHED;
const KEEP_ALL: Qos = Qos { history: History::KeepAll, ..Qos::DEFAULT };

/// A client, which has been greeted.
struct Client {
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    greeting: Value,
    /// The channels and services that are advertised.
    known: Vec<Value>,
}

/// What a connection is answered that asks for these subprotocols.
fn connect(
    world: &World,
    subprotocols: &str,
    query: &str,
    headers: &[(&'static str, &str)],
) -> Result<(WebSocket<MaybeTlsStream<TcpStream>>, Option<String>), Error> {
    let address = world.address(Protocol::WebSocket);
    let mut request = format!("ws://{address}/{query}").into_client_request().unwrap();
    let said = [("sec-websocket-protocol", subprotocols)];
    for (name, value) in headers.iter().chain(said.iter().filter(|it| !it.1.is_empty())) {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (socket, response) = tungstenite::connect(request)?;
    let MaybeTlsStream::Plain(stream) = socket.get_ref() else { unreachable!() };
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    let agreed = response.headers().get("sec-websocket-protocol");
    Ok((socket, agreed.map(|it| it.to_str().unwrap().to_owned())))
}

/// Why there is no connection.
fn refused(
    found: Result<(WebSocket<MaybeTlsStream<TcpStream>>, Option<String>), Error>,
) -> (StatusCode, String) {
    match found {
        Err(Error::Http(response)) => {
            let body = response.body().clone().unwrap_or_default();
            (response.status(), String::from_utf8(body).unwrap())
        }
        Err(other) => panic!("{other}"),
        Ok((_, agreed)) => panic!("let in by {agreed:?}"),
    }
}

impl Client {
    fn new(world: &World) -> Self {
        Self::greeted(connect(world, SDK, "", &[]).unwrap().0)
    }

    fn greeted(socket: WebSocket<MaybeTlsStream<TcpStream>>) -> Self {
        let mut client = Self { socket, greeting: Value::Null, known: Vec::new() };
        client.greeting = client.hear_of("serverInfo");
        client
    }

    fn say(&mut self, value: &Value) {
        self.socket.send(Message::text(value.to_string())).unwrap();
    }

    fn send(&mut self, bytes: &[&[u8]]) {
        self.socket.send(Message::binary(bytes.concat())).unwrap();
    }

    fn hear(&mut self) -> Message {
        loop {
            match self.socket.read().unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => {
                    self.note(&message);
                    return message;
                }
            }
        }
    }

    fn note(&mut self, message: &Message) {
        let Message::Text(text) = message else { return };
        let told: Value = serde_json::from_str(text).unwrap();
        let all = |field: &str| told[field].as_array().unwrap().clone();
        match told["op"].as_str().unwrap() {
            "advertise" => self.known.extend(all("channels")),
            "advertiseServices" => self.known.extend(all("services")),
            "unadvertise" => {
                let gone = all("channelIds");
                self.known.retain(|it| it["topic"].is_null() || !gone.contains(&it["id"]));
            }
            _ => {}
        }
    }

    /// The next text of this operation; what comes before it is passed over.
    fn hear_of(&mut self, operation: &str) -> Value {
        loop {
            if let Message::Text(text) = self.hear() {
                let value: Value = serde_json::from_str(&text).unwrap();
                if value["op"] == operation {
                    return value;
                }
            }
        }
    }

    /// What its user is told next.
    fn status(&mut self) -> (u64, String) {
        let status = self.hear_of("status");
        (status["level"].as_u64().unwrap(), status["message"].as_str().unwrap().to_owned())
    }

    /// The next bytes, without their opcode; what comes before them is passed over.
    fn bytes_of(&mut self, opcode: u8) -> Vec<u8> {
        loop {
            if let Message::Binary(bytes) = self.hear()
                && bytes[0] == opcode
            {
                return bytes[1..].to_vec();
            }
        }
    }

    /// The channel of a topic, once it is advertised.
    fn channel(&mut self, topic: &str) -> Value {
        self.advertised("topic", topic)
    }

    /// A service, once it is advertised.
    fn service(&mut self, name: &str) -> Value {
        self.advertised("name", name)
    }

    fn advertised(&mut self, field: &str, name: &str) -> Value {
        loop {
            if let Some(found) = self.known.iter().find(|it| it[field] == name) {
                return found.clone();
            }
            self.hear();
        }
    }

    fn subscribe(&mut self, id: u32, channel: &Value) {
        let channel = &channel["id"];
        self.say(
            &json!({ "op": "subscribe", "subscriptions": [{ "id": id, "channelId": channel }] }),
        );
    }

    /// The next message: of which subscription, when and what.
    fn message(&mut self) -> (u32, u64, Vec<u8>) {
        let bytes = self.bytes_of(1);
        let subscription = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let time = u64::from_le_bytes(bytes[4..12].try_into().unwrap());
        (subscription, time, bytes[12..].to_vec())
    }

    /// Calls a service, and waits for what it answers: how that is written, and what it is.
    fn call(
        &mut self,
        service: &Value,
        call: u32,
        encoding: &str,
        data: &[u8],
    ) -> (String, Vec<u8>) {
        let id = service["id"].as_u64().unwrap() as u32;
        self.ask(id, call, encoding, data);
        let bytes = self.bytes_of(3);
        assert_eq!(bytes[..8], [id.to_le_bytes(), call.to_le_bytes()].concat());
        let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        let (encoding, data) = bytes[12..].split_at(length);
        (String::from_utf8(encoding.to_vec()).unwrap(), data.to_vec())
    }

    fn ask(&mut self, service: u32, call: u32, encoding: &str, data: &[u8]) {
        let numbers = [service, call, encoding.len() as u32].map(u32::to_le_bytes).concat();
        self.send(&[&[2], &numbers, encoding.as_bytes(), data]);
    }

    fn publish(&mut self, channel: u32, data: &[u8]) {
        self.send(&[&[1], &channel.to_le_bytes(), data]);
    }
}

fn text(data: &str) -> Text {
    Text { data: data.to_owned() }
}

fn cdr<M: tsuji::Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.serialize_onto(&mut bytes).unwrap();
    bytes
}

#[test]
fn one_port_serves_both_protocols() {
    let world = World::new();
    for (offered, agreed) in
        [(SDK, SDK), (BEFORE, BEFORE), ("foxglove.websocket.v9, foxglove.websocket.v1", BEFORE)]
    {
        let (socket, found) = connect(&world, offered, "", &[]).unwrap();
        assert_eq!(found.as_deref(), Some(agreed));
        let greeting = Client::greeted(socket).greeting;
        assert_eq!(greeting["supportedEncodings"], json!(["cdr", "json"]));
        assert_eq!(greeting["metadata"]["ROS_DISTRO"], "jazzy");
        let can = greeting["capabilities"].as_array().unwrap();
        for capability in ["clientPublish", "parameters", "services", "connectionGraph", "assets"] {
            assert!(can.contains(&json!(capability)), "{capability}: {can:?}");
        }
    }
    let (status, why) = refused(connect(&world, "foxglove.sdk.v7", "", &[]));
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(why.contains(SDK) && why.contains(BEFORE), "{why}");
    let mut rosbridge = world.client();
    rosbridge.settle();
    let world = World::with(Settings { bson_only: true, ..Settings::default() });
    assert_eq!(refused(connect(&world, SDK, "", &[])).0, StatusCode::BAD_REQUEST);
}

#[test]
fn channels_come_with_their_definitions_and_go() {
    let world = World::new();
    let mut client = Client::new(&world);
    let publisher = world.node.create_publisher::<Image>("/camera", Qos::DEFAULT).unwrap();
    let channel = client.channel("/camera");
    assert_eq!(
        (&channel["encoding"], &channel["schemaName"]),
        (&json!("cdr"), &json!("sensor_msgs/msg/Image"))
    );
    assert_eq!(channel["schemaEncoding"], "ros2msg");
    let schema = channel["schema"].as_str().unwrap();
    assert!(schema.contains("uint8[] data") && schema.contains("MSG: std_msgs/Header"), "{schema}");
    // Whoever comes later is told the same number.
    assert_eq!(Client::new(&world).channel("/camera"), channel);
    drop(publisher);
    until("the channel goes", || {
        let gone = client.hear_of("unadvertise")["channelIds"].clone();
        gone.as_array().unwrap().contains(&channel["id"]).then_some(())
    });
    // One that comes again is another.
    let _publisher = world.node.create_publisher::<Image>("/camera", Qos::DEFAULT).unwrap();
    assert_ne!(client.channel("/camera")["id"], channel["id"]);
    let raw = tsuji::RawType::new("nowhere_msgs/msg/Nothing");
    let _unknown = world.node.create_raw_publisher("/strange", raw, Qos::DEFAULT).unwrap();
    let (level, why) = client.status();
    assert!(
        level == 1 && why.contains("nowhere_msgs/msg/Nothing") && why.contains("/strange"),
        "{why}"
    );
}

#[test]
fn messages_are_sent_as_they_are() {
    let world = World::new();
    let latched = world.node.create_publisher::<Text>("/latched", LATCHED).unwrap();
    latched.publish(text("kept")).unwrap();
    let mut clients = [Client::new(&world), Client::new(&world)];
    let camera = world.node.create_publisher::<Image>("/camera", KEEP_ALL).unwrap();
    for (at, client) in clients.iter_mut().enumerate() {
        let channel = client.channel("/latched");
        client.subscribe(7 + at as u32, &channel);
        let (subscription, time, data) = client.message();
        assert_eq!((subscription, data), (7 + at as u32, cdr(&text("kept"))));
        let now = now_ns();
        assert!(time <= now && now - time < 60_000_000_000, "{time}");
        let channel = client.channel("/camera");
        client.subscribe(1, &channel);
    }
    until("both are there", || (camera.matched() == 1).then_some(()));
    let picture = |at: u8| Image { data: vec![at; 1 << 20], ..Image::default() };
    // They share one subscription, and the second may be a moment later.
    until("the second hears it", || {
        camera.publish(picture(0)).unwrap();
        clients[1].socket.get_ref().is_readable().then_some(())
    });
    for at in 1..20 {
        camera.publish(picture(at)).unwrap();
    }
    for client in &mut clients {
        let mut last = 0;
        while last < 19 {
            let (subscription, _, data) = client.message();
            let image = Image::deserialize(&data).unwrap();
            assert_eq!((subscription, image.data.len()), (1, 1 << 20));
            let at = image.data[0];
            assert!(
                image.data.iter().all(|it| *it == at) && (at == 0 || at == last + 1),
                "{last} {at}"
            );
            last = at;
        }
    }
}

/// Whether there is something to read.
trait Readable {
    fn is_readable(&self) -> bool;
}

impl Readable for MaybeTlsStream<TcpStream> {
    fn is_readable(&self) -> bool {
        let Self::Plain(stream) = self else { unreachable!() };
        stream.set_nonblocking(true).unwrap();
        let is_readable = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).unwrap();
        is_readable
    }
}

fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(now.unwrap().as_nanos()).unwrap()
}

#[test]
fn what_is_wrong_with_a_subscription_is_told() {
    let world = World::new();
    let publisher = world.node.create_publisher::<Text>("/chatter", KEEP_ALL).unwrap();
    let mut client = Client::new(&world);
    let channel = client.channel("/chatter");
    client.subscribe(1, &json!({ "id": 4_000_000_000_000_u64 }));
    assert!(client.status().1.contains("found 4000000000000"));
    client.subscribe(1, &channel);
    client.subscribe(1, &channel);
    assert!(client.status().1.contains("id: found 1"));
    client.subscribe(2, &channel);
    assert!(client.status().1.contains("subscription 1 has already"));
    until("it is heard", || (publisher.matched() == 1).then_some(()));
    publisher.publish(text("one")).unwrap();
    assert_eq!(client.message().2, cdr(&text("one")));
    client.say(&json!({ "op": "unsubscribe", "subscriptionIds": [1, 5] }));
    assert!(client.status().1.contains("found 5"));
    until("nobody hears it", || (publisher.matched() == 0).then_some(()));
    client.subscribe(2, &channel);
    until("it is heard again", || (publisher.matched() == 1).then_some(()));
    publisher.publish(text("two")).unwrap();
    assert_eq!(client.message().0, 2);
    for (said, why) in [
        (Message::text("{"), "EOF"),
        (Message::text(r#"{"op":"fly"}"#), "unknown variant `fly`"),
        (Message::binary(vec![9]), "opcode 9"),
        (Message::binary(Vec::new()), "no opcode"),
    ] {
        client.socket.send(said).unwrap();
        let (level, told) = client.status();
        assert!(level == 2 && told.contains(why), "{told}");
    }
}

#[test]
fn clients_publish_in_cdr_and_json() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Text>("/said", KEEP_ALL).unwrap();
    let mut client = Client::new(&world);
    let channel = |id: u32, topic: &str, encoding: &str, ty: &str| json!({ "id": id, "topic": topic, "encoding": encoding, "schemaName": ty });
    client.say(&json!({ "op": "advertise", "channels": [
        channel(1, "/said", "cdr", "std_msgs/msg/String"),
        channel(2, "/said", "json", "std_msgs/String"),
        channel(3, "/said", "protobuf", "std_msgs/String"),
        channel(1, "/other", "cdr", "std_msgs/String"),
        channel(4, "/other", "cdr", "nowhere_msgs/msg/Nothing"),
        channel(5, "/said", "cdr", "sensor_msgs/msg/Image"),
    ] }));
    for why in [
        "encoding: found \"protobuf\"; allowed: cdr, json",
        "id: found 1",
        "Nothing",
        "/said has std_msgs/msg/String",
    ] {
        let (level, told) = client.status();
        assert!(level == 2 && told.contains(why), "{told}");
    }
    client.publish(1, &cdr(&text("bytes")));
    client.publish(2, br#"{"data":"text"}"#);
    let taken = |expected: &str| {
        let taken = until("it is heard", || heard.take().unwrap());
        assert_eq!(taken.view().data, expected);
    };
    taken("bytes");
    taken("text");
    client.publish(9, b"");
    assert!(client.status().1.contains("found channel 9"));
    client.publish(1, b"no CDR");
    assert!(client.status().1.contains("expected CDR with its header"));
    client.publish(2, br#"{"data":7}"#);
    let (_, told) = client.status();
    assert!(told.contains("data"), "{told}");
    client.say(&json!({ "op": "unadvertise", "channelIds": [1, 77] }));
    assert!(client.status().1.contains("found 77"));
    client.publish(1, &cdr(&text("late")));
    assert!(client.status().1.contains("found channel 1"));
    client.publish(2, br#"{"data":"still"}"#);
    taken("still");
}

#[test]
fn services_are_called_in_cdr_and_json() {
    let world = World::new();
    let adds = world
        .node
        .create_service::<AddTwoInts>("/add", |request| AddTwoIntsResponse {
            sum: request.a + request.b,
        })
        .unwrap();
    world.spin();
    let mut client = Client::new(&world);
    let service = client.service("/add");
    assert_eq!(service["type"], "example_interfaces/srv/AddTwoInts");
    assert_eq!(service["request"]["schemaName"], "example_interfaces/srv/AddTwoInts_Request");
    assert!(service["request"]["schema"].as_str().unwrap().contains("int64 a"));
    assert!(service["response"]["schema"].as_str().unwrap().contains("int64 sum"));
    let (encoding, answer) =
        client.call(&service, 1, "cdr", &cdr(&AddTwoIntsRequest { a: 3, b: 4 }));
    assert_eq!((&*encoding, AddTwoIntsResponse::deserialize(&answer).unwrap().sum), ("cdr", 7));
    let (encoding, answer) = client.call(&service, u32::MAX, "json", br#"{"a":5,"b":6}"#);
    assert_eq!(
        (&*encoding, serde_json::from_slice::<Value>(&answer).unwrap()),
        ("json", json!({ "sum": 11 }))
    );
    let number = service["id"].as_u64().unwrap() as u32;
    for (service, encoding, data, why) in [
        (
            number + 1000,
            "cdr",
            &cdr(&AddTwoIntsRequest::default())[..],
            "expected one that is advertised",
        ),
        (number, "xml", b"", "allowed: cdr, json"),
        (number, "cdr", b"", "expected CDR with its header"),
        (number, "json", br#"{"a":"x"}"#, "args"),
    ] {
        client.ask(service, 5, encoding, data);
        let failure = client.hear_of("serviceCallFailure");
        assert_eq!((&failure["serviceId"], &failure["callId"]), (&json!(service), &json!(5)));
        let told = failure["message"].as_str().unwrap();
        assert!(told.contains(why), "{told}");
    }
    drop(adds);
    until("the service goes", || {
        let gone = client.hear_of("unadvertiseServices")["serviceIds"].clone();
        gone.as_array().unwrap().contains(&service["id"]).then_some(())
    });
}

#[test]
fn parameters_are_read_set_and_followed() {
    let mut world = World::new();
    let parameters = world.serve_parameters();
    parameters.declare("counts.all", vec![1_i64, 2]).unwrap();
    let mut client = Client::new(&world);
    client.service("/beside/list_parameters");
    client.say(&json!({ "op": "getParameters", "parameterNames": [], "id": "all" }));
    let all = client.hear_of("parameterValues");
    let gain = json!({ "name": "/beside.gain", "type": "float64", "value": 0.5 });
    let name = json!({ "name": "/beside.name", "value": "left" });
    let counts = json!({ "name": "/beside.counts.all", "value": [1, 2] });
    assert_eq!(all["id"], "all");
    let values = all["parameters"].as_array().unwrap();
    for it in [&gain, &name, &counts] {
        assert!(values.contains(it), "{it} of {values:?}");
    }
    let ask = json!({ "op": "getParameters", "id": "2",
        "parameterNames": ["/beside.counts.all", "/beside.none", "beside"] });
    client.say(&ask);
    assert!(client.status().1.contains("found \"beside\"; expected /NODE.PARAMETER"));
    let some = client.hear_of("parameterValues");
    assert_eq!((&some["id"], &some["parameters"]), (&json!("2"), &json!([counts])));

    client.say(&json!({ "op": "subscribeParameterUpdates", "parameterNames": ["/beside.gain"] }));
    let set = json!({ "op": "setParameters", "id": "3", "parameters": [
        { "name": "/beside.gain", "type": "float64", "value": 2 },
        { "name": "/beside.counts.all", "value": "no list" },
        { "name": "/nobody.x", "value": 1 },
    ] });
    client.say(&set);
    let (mut told, mut followed) = (Vec::new(), None);
    let values = loop {
        let Message::Text(text) = client.hear() else { continue };
        let said: Value = serde_json::from_str(&text).unwrap();
        match said["op"].as_str().unwrap() {
            "status" => told.push(said["message"].as_str().unwrap().to_owned()),
            "parameterValues" if said["id"] == "3" => break said,
            "parameterValues" => followed = Some(said),
            _ => {}
        }
    };
    let changed = json!({ "name": "/beside.gain", "type": "float64", "value": 2.0 });
    assert_eq!(values["parameters"], json!([counts, changed]));
    assert_eq!(parameters.get::<f64>("gain").unwrap(), 2.0);
    assert!(told.iter().any(|it| it.contains("/beside.counts.all")), "{told:?}");
    assert!(told.iter().any(|it| it.contains("node /nobody has none")), "{told:?}");
    let followed = followed.unwrap_or_else(|| client.hear_of("parameterValues"));
    assert_eq!((&followed["id"], &followed["parameters"]), (&Value::Null, &json!([changed])));
    // By whomever it is set.
    parameters.set("name", "right".to_owned()).unwrap();
    parameters.set("gain", 3.5).unwrap();
    let followed = client.hear_of("parameterValues");
    assert_eq!(
        followed["parameters"][0],
        json!({ "name": "/beside.gain", "type": "float64", "value": 3.5 })
    );
    client.say(&json!({ "op": "unsubscribeParameterUpdates", "parameterNames": ["/beside.gain"] }));
    let fresh = json!({ "name": "/beside.fresh", "value": true });
    client.say(&json!({ "op": "setParameters", "id": "4", "parameters": [fresh] }));
    let set = client.hear_of("parameterValues");
    assert_eq!((&set["id"], &set["parameters"]), (&json!("4"), &json!([fresh])));
    let none = json!({ "name": "/beside.fresh" });
    client.say(&json!({ "op": "setParameters", "id": "5", "parameters": [none] }));
    let deleted = client.hear_of("parameterValues");
    assert_eq!((&deleted["id"], &deleted["parameters"]), (&json!("5"), &json!([])));
    assert!(!parameters.has("fresh"));
}

#[test]
fn who_has_to_do_with_what_is_told_as_it_changes() {
    let world = World::new();
    let publisher = world.node.create_publisher::<Text>("/chatter", Qos::DEFAULT).unwrap();
    let mut client = Client::new(&world);
    client.channel("/chatter");
    client.say(&json!({ "op": "subscribeConnectionGraph" }));
    let first = client.hear_of("connectionGraphUpdate");
    let publishes = json!({ "name": "/chatter", "publisherIds": ["/beside"] });
    assert!(first["publishedTopics"].as_array().unwrap().contains(&publishes), "{first}");
    assert_eq!(first["removedTopics"], json!([]));
    let subscription =
        world.node.create_polled_subscription::<Text>("/chatter", Qos::DEFAULT).unwrap();
    let subscribes = json!({ "name": "/chatter", "subscriberIds": ["/beside"] });
    let second = client.hear_of("connectionGraphUpdate");
    assert_eq!(
        (&second["subscribedTopics"], &second["publishedTopics"]),
        (&json!([subscribes]), &json!([]))
    );
    drop((publisher, subscription));
    until("it is gone", || {
        let update = client.hear_of("connectionGraphUpdate");
        update["removedTopics"].as_array().unwrap().contains(&json!("/chatter")).then_some(())
    });
    client.say(&json!({ "op": "unsubscribeConnectionGraph" }));
}

#[test]
fn files_that_are_not_of_a_package_are_not_read() {
    let world = World::new();
    let mut client = Client::new(&world);
    for uri in ["package://../../etc/passwd", "file:///etc/passwd", "package://none_such/a.stl"] {
        client.say(&json!({ "op": "fetchAsset", "uri": uri, "requestId": 3 }));
        let answer = client.bytes_of(4);
        assert_eq!(answer[..5], [3, 0, 0, 0, 1]);
        let length = u32::from_le_bytes(answer[5..9].try_into().unwrap()) as usize;
        let why = str::from_utf8(&answer[9..]).unwrap();
        assert!(why.len() == length && why.starts_with(uri), "{why}");
    }
}

/// A recording of ten seconds from a thousand on, that goes wherever it is to go.
#[derive(Debug)]
struct Tape(Mutex<PlaybackState>, Changed);

type Changed = Mutex<Option<Watcher>>;

struct Watcher(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

const SET_PLAYBACK: &str = "/rosapi/tsuji_set_playback";
const SECOND_NS: u64 = 1_000_000_000;

impl Tape {
    fn new() -> Arc<Self> {
        let (status, time_ns) = (PlaybackStatus::Playing, 1000 * SECOND_NS);
        let state = PlaybackState { status, time_ns, rate: 1.0, jumps: 0 };
        Arc::new(Self(Mutex::new(state), Mutex::default()))
    }

    fn set(&self, change: impl FnOnce(&mut PlaybackState)) {
        change(&mut self.0.lock().unwrap());
        if let Some(Watcher(tell)) = &*self.1.lock().unwrap() {
            tell();
        }
    }
}

impl Playback for Tape {
    fn span_ns(&self) -> (u64, u64) {
        (1000 * SECOND_NS, 1010 * SECOND_NS + 5)
    }

    fn state(&self) -> PlaybackState {
        *self.0.lock().unwrap()
    }

    fn control(&self, wish: &PlaybackWish) {
        self.set(|state| {
            let status =
                |plays| if plays { PlaybackStatus::Playing } else { PlaybackStatus::Paused };
            state.status = wish.plays.map_or(state.status, status);
            state.rate = wish.rate.unwrap_or(state.rate);
            state.jumps += u64::from(wish.seek_ns.is_some());
            state.time_ns = wish.seek_ns.unwrap_or(state.time_ns);
        });
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn when_changed(&self, tell: Box<dyn Fn() + Send + Sync>) {
        *self.1.lock().unwrap() = Some(Watcher(tell));
    }
}

/// What a client is told next of the recording: status, time, rate, whether it has gone elsewhere, and who asked.
fn playback(client: &mut Client) -> (u8, u64, f32, bool, String) {
    let bytes = client.bytes_of(5);
    let length = u32::from_le_bytes(bytes[14..18].try_into().unwrap()) as usize;
    assert_eq!(bytes.len(), 18 + length);
    let time = u64::from_le_bytes(bytes[1..9].try_into().unwrap());
    let rate = f32::from_le_bytes(bytes[9..13].try_into().unwrap());
    let request = String::from_utf8(bytes[18..].to_vec()).unwrap();
    (bytes[0], time, rate, bytes[13] == 1, request)
}

/// Waits until a client is told this, and answers how often it was told of something else before.
fn told(client: &mut Client, expected: (u8, u64, f32, bool, &str)) -> usize {
    let mut before = 0;
    loop {
        let (status, time, rate, did_seek, request) = playback(client);
        if (status, time, rate, did_seek, &*request) == expected {
            return before;
        }
        before += 1;
    }
}

impl Client {
    fn control(&mut self, command: u8, rate: f32, seek_ns: Option<u64>, request: &str) {
        let (seeks, time) = (u8::from(seek_ns.is_some()), seek_ns.unwrap_or(0).to_le_bytes());
        let length = (request.len() as u32).to_le_bytes();
        self.send(&[
            &[3, command],
            &rate.to_le_bytes(),
            &[seeks],
            &time,
            &length,
            request.as_bytes(),
        ]);
    }
}

/// What a client of rosbridge is answered, or why it is not.
fn called(client: &mut world::Client, service: &str, args: Value) -> Result<Value, String> {
    let response = client.call(service, args);
    match response["result"] == true {
        true => Ok(response["values"].clone()),
        false => Err(response["values"].as_str().unwrap().to_owned()),
    }
}

#[test]
fn a_recording_that_is_played_is_controlled() {
    let tape = Tape::new();
    let playback_of_it = Some(Arc::clone(&tape) as Arc<dyn Playback>);
    let world = World::with(Settings { playback: playback_of_it, ..Settings::default() });
    let mut clients = [Client::new(&world), Client::new(&world)];
    for client in &mut clients {
        let can = client.greeting["capabilities"].as_array().unwrap();
        assert!(can.contains(&json!("rangedPlayback")), "{can:?}");
        let [begin, end] = ["dataStartTime", "dataEndTime"].map(|it| &client.greeting[it]);
        assert_eq!(
            (begin, end),
            (&json!({ "sec": 1000, "nsec": 0 }), &json!({ "sec": 1010, "nsec": 5 }))
        );
        let begun = (0, 1000 * SECOND_NS, 1.0, false, String::new());
        assert_eq!(playback(client), begun);
    }
    let [one, other] = &mut clients;
    one.control(1, 2.5, Some(1003 * SECOND_NS), "r1");
    told(one, (1, 1003 * SECOND_NS, 2.5, true, "r1"));
    told(other, (1, 1003 * SECOND_NS, 2.5, true, ""));
    // Of 32 bits, and meant as it is written.
    other.control(0, 0.1, None, "r2");
    told(other, (0, 1003 * SECOND_NS, 0.1, false, "r2"));
    told(one, (0, 1003 * SECOND_NS, 0.1, false, ""));
    assert_eq!(tape.state().rate, 0.1);
    // What nobody here asked for is told as well.
    tape.set(|it| (it.status, it.time_ns) = (PlaybackStatus::Ended, 1010 * SECOND_NS));
    for client in [&mut *one, &mut *other] {
        told(client, (3, 1010 * SECOND_NS, 0.1, false, ""));
    }
    // However often one changes it, the others have it as it is, and no queue of what it was.
    for at in 0..10_000 {
        one.control(1, 2.5, Some(1000 * SECOND_NS + at), "");
    }
    assert!(told(other, (1, 1000 * SECOND_NS + 9999, 2.5, true, "")) < 1000);
    told(one, (1, 1000 * SECOND_NS + 9999, 2.5, true, ""));
    tape.set(|it| it.status = PlaybackStatus::Ended);
    for (rate, request, why) in [
        (f32::NAN, "r", "rate: found NaN; expected a number above 0"),
        (0.0, "r", "rate: found 0; expected a number above 0"),
        (1.0, &*"r".repeat(1025), "request: found 1025 bytes; allowed: 1024"),
    ] {
        one.control(0, rate, None, request);
        let (level, told) = one.status();
        assert!(level == 2 && told.contains(why), "{told}");
    }
    assert_eq!(tape.state().status, PlaybackStatus::Ended);
    // Clients of the older protocol take bytes that they do not know for an error.
    let mut before = Client::greeted(connect(&world, BEFORE, "", &[]).unwrap().0);
    let can = before.greeting["capabilities"].as_array().unwrap();
    assert!(!can.contains(&json!("rangedPlayback")), "{can:?}");
    assert!(before.greeting.get("dataStartTime").is_none());
    one.control(1, 1.0, None, "r3");
    told(one, (1, 1000 * SECOND_NS + 9999, 1.0, false, "r3"));
    before.say(&json!({ "op": "unsubscribe", "subscriptionIds": [77] }));
    loop {
        match before.hear() {
            Message::Binary(bytes) => assert_ne!(bytes[0], 5),
            Message::Text(text) if text.contains("found 77") => break,
            _ => {}
        }
    }
    // Clients of rosbridge have the same by services.
    let mut rosbridge = world.client();
    let answer = called(&mut rosbridge, SET_PLAYBACK, json!({ "time": 1004.5, "rate": 1 }));
    let paused = json!({
        "status": "paused", "time": 1004.5, "start": 1000.0, "end": 1_010.000_000_005, "rate": 1.0,
        "trouble": null, "may_set": true,
    });
    assert_eq!(answer, Ok(paused.clone()));
    assert_eq!(called(&mut rosbridge, "/rosapi/tsuji_playback", json!({})), Ok(paused.clone()));
    let bridge = called(&mut rosbridge, "/rosapi/tsuji_bridge", json!({})).unwrap();
    assert_eq!(bridge["playback"], paused);
    told(one, (1, 1_004_500_000_000, 1.0, true, ""));
    let refused = called(&mut rosbridge, SET_PLAYBACK, json!({ "rate": -1 }));
    let why = refused.unwrap_err();
    assert!(why.contains("rate: found -1; expected a number above 0"), "{why}");
}

#[test]
fn a_recording_is_controlled_by_whom_may_and_where_there_is_one() {
    let Users { named, .. } =
        Users::parse("users: {viewer: {token: sesame, subscribe: all}}").unwrap();
    let access = Access::new(ServerGlobs::default(), named);
    let tape = Tape::new();
    let playback_of_it = Some(Arc::clone(&tape) as Arc<dyn Playback>);
    let settings = Settings { access, playback: playback_of_it, ..Settings::default() };
    let world = World::with(settings);
    let mut viewer = Client::greeted(connect(&world, SDK, "?token=sesame", &[]).unwrap().0);
    let can = viewer.greeting["capabilities"].as_array().unwrap();
    assert!(!can.contains(&json!("rangedPlayback")), "{can:?}");
    viewer.control(1, 1.0, None, "r");
    let (level, why) = viewer.status();
    assert!(level == 2 && why.contains("may not control it"), "{why}");
    assert_eq!(tape.state().status, PlaybackStatus::Playing);
    let world = World::new();
    let mut client = Client::new(&world);
    client.control(1, 1.0, None, "r");
    let (_, why) = client.status();
    assert!(why.contains("plays no recording; `tsuji bridge --play FILE` plays one"), "{why}");
    let why = called(&mut world.client(), "/rosapi/tsuji_playback", json!({})).unwrap_err();
    assert!(why.contains("plays no recording"), "{why}");
}

#[test]
fn users_see_what_they_may_see() {
    let Users { named, .. } = Users::parse(
        "
users:
  viewer:
    token: 'open, sesame&b'
    subscribe: ['/map*']
",
    )
    .unwrap();
    let access = Access::new(ServerGlobs::default(), named);
    let world = World::with(Settings { access, ..Settings::default() });
    let _hidden = world.node.create_publisher::<Text>("/hidden", Qos::DEFAULT).unwrap();
    let _map = world.node.create_publisher::<Text>("/map", Qos::DEFAULT).unwrap();
    let secret = tsuji::RawType::new("secret_msgs/msg/Plan");
    let _secret = world.node.create_raw_publisher("/secret", secret, Qos::DEFAULT).unwrap();
    let (status, why) = refused(connect(&world, SDK, "", &[]));
    assert!(status == StatusCode::UNAUTHORIZED && why.contains("?token=TOKEN"), "{why}");
    assert_eq!(refused(connect(&world, SDK, "?token=open", &[])).0, StatusCode::UNAUTHORIZED);
    let bearer = [("authorization", "Bearer open, sesame&b")];
    for (query, headers) in [("?layout=a&token=open%2C%20sesame%26b", &[][..]), ("", &bearer)] {
        let (socket, _) = connect(&world, SDK, query, headers).unwrap();
        let mut client = Client::greeted(socket);
        until("the map", || {
            let told = client.hear_of("advertise");
            let topics = told["channels"].as_array().unwrap().iter().map(|it| &it["topic"]);
            let topics: Vec<_> = topics.collect();
            assert!(!topics.contains(&&json!("/hidden")), "{topics:?}");
            topics.contains(&&json!("/map")).then_some(())
        });
        // Numbers can be guessed, and tell nothing.
        for id in 1..30 {
            client.subscribe(id, &json!({ "id": id }));
        }
        client.ask(1, 1, "json", b"{}");
        client.say(&json!({ "op": "advertise", "channels": [
            { "id": 1, "topic": "/map", "encoding": "cdr", "schemaName": "std_msgs/msg/String" },
        ] }));
        until("what it may not", || {
            let (_, told) = client.status();
            assert!(!told.contains("/hidden") && !told.contains("/secret"), "{told}");
            told.contains("\"viewer\" may not publish \"/map\"").then_some(())
        });
        client.say(&json!({ "op": "getParameters", "parameterNames": ["/a.b"], "id": "1" }));
        let (_, told) = client.status();
        assert!(told.contains("\"viewer\" may not get_param \"/a:b\""), "{told}");
    }
}

#[test]
fn one_that_does_not_read_keeps_nothing_from_others() {
    let world = World::new();
    let camera = world.node.create_publisher::<Image>("/camera", Qos::DEFAULT).unwrap();
    let (mut stalled, mut reads) = (Client::new(&world), Client::new(&world));
    for client in [&mut stalled, &mut reads] {
        let channel = client.channel("/camera");
        client.subscribe(1, &channel);
    }
    until("they are heard", || (camera.matched() == 1).then_some(()));
    let picture =
        |at: usize| Image { height: at as u32, data: vec![at as u8; 1 << 20], ..Image::default() };
    let mut last = 0;
    // More than any queue keeps, and more than the memory of the publisher.
    for at in 1..400 {
        camera.publish(picture(at)).unwrap();
        if reads.socket.get_ref().is_readable() {
            let image = Image::deserialize(&reads.message().2).unwrap();
            assert!(last < image.height);
            last = image.height;
        }
    }
    until("the last", || {
        let image = Image::deserialize(&reads.message().2).unwrap();
        (image.height == 399).then_some(())
    });
    let statistics = world.bridge.statistics();
    assert!(0 < statistics.dropped, "{statistics:?}");
    // What waits for it is bounded, and it is told what is newest when it reads again.
    assert!(statistics.held_bytes < 80 << 20, "{statistics:?}");
    until("the newest", || {
        let image = Image::deserialize(&stalled.message().2).unwrap();
        (image.height == 399).then_some(())
    });
}

#[test]
fn one_name_that_a_node_does_not_know_hides_no_other() {
    let mut world = World::new();
    world.node = Node::builder("strict").build(world.node.context()).unwrap();
    let parameters = world.node.parameters().unwrap();
    parameters.declare("a", 1_i64).unwrap();
    parameters.declare("b", true).unwrap();
    world.spin();
    let mut client = Client::new(&world);
    client.service("/strict/get_parameters");
    let names = ["/strict.a", "/strict.none", "/strict.b"];
    client.say(&json!({ "op": "getParameters", "parameterNames": names, "id": "1" }));
    let values = client.hear_of("parameterValues");
    let expected =
        [json!({ "name": "/strict.a", "value": 1 }), json!({ "name": "/strict.b", "value": true })];
    assert_eq!(values["parameters"], json!(expected));
}

#[test]
fn a_node_that_does_not_answer_keeps_no_other_from_it() {
    let settings =
        Settings { call_timeout: std::time::Duration::from_millis(300), ..Settings::default() };
    let mut world = World::with(settings);
    let parameters = world.serve_parameters();
    let mute = world.node.context().node("mute").unwrap();
    // Nobody spins it.
    let _mute = mute
        .create_service::<tsuji_interfaces::rcl_interfaces::srv::ListParameters>(
            "/mute/list_parameters",
            |_| Default::default(),
        )
        .unwrap();
    let mut client = Client::new(&world);
    client.service("/mute/list_parameters");
    client.service("/beside/list_parameters");
    client.say(&json!({ "op": "getParameters", "parameterNames": [], "id": "1" }));
    assert!(client.status().1.contains("node /mute does not answer"));
    let values = client.hear_of("parameterValues");
    let gain = json!({ "name": "/beside.gain", "type": "float64", "value": 0.5 });
    assert!(values["parameters"].as_array().unwrap().contains(&gain), "{values}");
    drop(parameters);
}

#[test]
fn simulated_time_is_told_where_there_is_one() {
    let world = World::new();
    let publisher = world.node.create_publisher::<Clock>("/clock", Qos::CLOCK).unwrap();
    let chatter = world.node.create_publisher::<Text>("/chatter", KEEP_ALL).unwrap();
    let mut client = until("the bridge knows of it", || {
        let mut client = Client::new(&world);
        client.channel("/clock");
        client.greeting["capabilities"]
            .as_array()
            .unwrap()
            .contains(&json!("time"))
            .then_some(client)
    });
    until("it is heard", || (publisher.matched() == 1).then_some(()));
    publisher.publish(Clock { clock: Time { sec: 1000, nanosec: 5 } }).unwrap();
    assert_eq!(client.bytes_of(2), 1_000_000_000_005_u64.to_le_bytes());
    let channel = client.channel("/chatter");
    client.subscribe(1, &channel);
    until("the topic is heard", || (chatter.matched() == 1).then_some(()));
    chatter.publish(text("then")).unwrap();
    assert_eq!(client.message().1, 1_000_000_000_005);
    drop(publisher);
    until("it is over", || {
        chatter.publish(text("now")).unwrap();
        (1_000_000_000_005 < client.message().1).then_some(())
    });
    drop(client);
    let client = until("nobody tells the time", || {
        let client = Client::new(&world);
        (!client.greeting["capabilities"].as_array().unwrap().contains(&json!("time")))
            .then_some(client)
    });
    drop(client);
}

#[test]
fn one_message_asks_for_so_much_and_no_more() {
    let mut world =
        World::with(Settings { call_timeout: std::time::Duration::ZERO, ..Settings::default() });
    let _parameters = world.serve_parameters();
    let mut client = Client::new(&world);
    client.service("/beside/list_parameters");
    let names = |count: usize| (0..count).map(|it| format!("/n{it}.x")).collect::<Vec<_>>();
    client.say(&json!({ "op": "getParameters", "parameterNames": names(1001) }));
    let (_, told) = client.status();
    assert!(told.contains("found 1001 things at once; allowed: 1000"), "{told}");
    client.say(&json!({ "op": "fetchAsset", "requestId": 1, "uri": "x".repeat(1 << 20) }));
    let (_, told) = client.status();
    assert!(told.contains("allowed: 1048576"), "{told}");
    for count in [1000, 500] {
        client.say(&json!({ "op": "subscribeParameterUpdates", "parameterNames": names(count) }));
    }
    client.say(&json!({ "op": "subscribeParameterUpdates", "parameterNames": ["/other.x"] }));
    let (_, told) = client.status();
    assert!(told.contains("1 names are left out; allowed: 1000"), "{told}");
    client.say(&json!({ "op": "unsubscribeParameterUpdates", "parameterNames": names(1000) }));
    // Names of nodes that are not there are told so, and what is asked has an end.
    client.say(&json!({ "op": "getParameters", "parameterNames": names(1000), "id": "none" }));
    assert_eq!(client.status().1, "parameters: node /n0 has none, nor have 999 others");
    let none = client.hear_of("parameterValues");
    assert_eq!((&none["id"], &none["parameters"]), (&json!("none"), &json!([])));
    // Whoever waits for calls without end still gets what is there.
    client.say(&json!({ "op": "getParameters", "parameterNames": ["/beside.gain"], "id": "one" }));
    let one = client.hear_of("parameterValues");
    assert_eq!(one["parameters"][0]["value"], 0.5);
    let mute = world.node.context().node("mute").unwrap();
    let _mute =
        mute.create_service::<GetParameters>("/mute/get_parameters", |_| Default::default());
    client.service("/mute/get_parameters");
    for at in 0..9 {
        client.say(&json!({ "op": "getParameters", "parameterNames": ["/mute.x"], "id": format!("m{at}") }));
    }
    let (level, told) = client.status();
    assert!(level == 2 && told.contains("ask later"), "{told}");
    let last = client.hear_of("parameterValues");
    assert_eq!((&last["id"], &last["parameters"]), (&json!("m8"), &json!([])));
    // Others are not kept from it.
    let mut other = Client::new(&world);
    other.say(&json!({ "op": "getParameters", "parameterNames": ["/beside.gain"], "id": "two" }));
    assert_eq!(other.hear_of("parameterValues")["parameters"][0]["value"], 0.5);
}

#[test]
fn all_that_there_is_is_no_reason_to_cut_a_client_off() {
    let Users { anonymous, .. } =
        Users::parse("anonymous: {subscribe: all, limits: {memory_bytes: 1000000}}").unwrap();
    let access = Access::new(ServerGlobs::default(), Vec::new()).with_anonymous(anonymous.unwrap());
    let world = World::with(Settings { access, ..Settings::default() });
    let odometry =
        |it| world.node.create_publisher::<Odometry>(&format!("/c{it}"), Qos::DEFAULT).unwrap();
    let topics: Vec<_> = (0..400).map(odometry).collect();
    for _ in 0..3 {
        let mut client = Client::new(&world);
        client.channel("/c0");
        client.channel("/c399");
    }
    drop(topics);
}
