//! Tsuji beside nodes of ROS 1, those of Debian's rospy, as real processes, with its rosmaster. Where they are not installed
//! (`scripts/ros1`) these tests do nothing, but with `TSUJI_ROS1` set they fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use house::log::Log;
use house::{Folder, HANG, Peer, Watchdog, keep_all, keep_last, take, take_until, wait_until};
use tracing::Level;
use tsuji::{
    Context, Durability, EndpointKind, Interop, Node, PublisherOptions, Qos, RouteReport,
    RouteState,
};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::rcl_interfaces::msg::Log as Line;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::{Header, String as Text};
use tsuji_interfaces::std_srvs::srv::{SetBool, SetBoolRequest, SetBoolResponse};
use tsuji_platform::child::{self, Signal};
use tsuji_platform::subprocess::Subprocess;

const ROSMASTER: &str = "/usr/bin/rosmaster";
const PYTHON: &str = "/usr/bin/python3";

/// What all tests are told; each looks for what names its own.
static LOG: LazyLock<Log> = LazyLock::new(|| Log::install(Level::WARN));

/// A master of ROS 1, and where it is.
struct Side {
    port: u16,
    folder: Folder,
    /// That of the nodes of ROS 1.
    home: Folder,
    master: Option<Subprocess>,
}

impl Side {
    #[allow(clippy::print_stderr, reason = "says that it did not run")]
    fn start() -> Option<Self> {
        let rospy = "/usr/lib/python3/dist-packages/rospy";
        let is_there = Path::new(ROSMASTER).exists() && Path::new(rospy).exists();
        if !is_there && std::env::var_os("TSUJI_ROS1").is_none() {
            eprintln!("no rosmaster, or no rospy: not run");
            return None;
        }
        LazyLock::force(&LOG);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut side = Self { port, folder: Folder::new(), home: Folder::new(), master: None };
        side.open();
        Some(side)
    }

    fn open(&mut self) {
        let mut command = Command::new(PYTHON);
        command.args([ROSMASTER, "--core", "-p", &self.port.to_string()]);
        self.prepare(&mut command);
        child::bind(command.stdin(Stdio::null()).stdout(Stdio::null()));
        self.master = Some(Subprocess::start(&mut command, Duration::ZERO).unwrap());
        wait_until("the master is there", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    fn prepare(&self, command: &mut Command) {
        let folder = &self.home.0;
        command.env("ROS_MASTER_URI", self.uri()).env("ROS_IP", "127.0.0.1");
        command.env("ROS_HOME", folder).env("ROS_LOG_DIR", folder.join("log"));
    }

    fn uri(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn peer(&self, arguments: &str) -> Peer {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ros1/peer.py");
        let mut command = Command::new(PYTHON);
        command.arg(script).args(arguments.split_whitespace());
        self.prepare(&mut command);
        Peer::of(command)
    }

    fn context(&self) -> Context {
        self.context_in(&self.folder)
    }

    fn context_in(&self, folder: &Folder) -> Context {
        let policy = format!(
            r#"<tsuji><transport name="ros1"><set key="master" value="{}"/><set key="host" value="127.0.0.1"/></transport>
            </tsuji>"#,
            self.uri()
        );
        let policy =
            tsuji_policy::load("test", policy.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
        let builder = Context::builder().runtime_dir(&folder.0).policy(policy);
        let context = builder.interop(Interop::ROS1).isolated().build().unwrap();
        assert_eq!(context.interop(), Interop::ROS1);
        context
    }
}

fn routes(context: &Context, topic: &str) -> Vec<RouteReport> {
    let mut routes = context.routes(HANG).unwrap();
    routes.retain(|route| route.topic == topic);
    routes
}

fn assert_is_of_ros1(route: &RouteReport) {
    assert_eq!(route.state, RouteState::Active, "{route:?}");
    assert_eq!(route.transport.as_deref(), Some("ros1"));
    assert_eq!(route.peer.as_str(), "ros1");
    assert!(route.because.contains("nodes of ROS 1"), "{}", route.because);
}

fn text(data: &str) -> Text {
    Text { data: data.to_owned() }
}

fn reliably() -> PublisherOptions {
    PublisherOptions::default().qos(keep_all()).max_blocking(HANG)
}

const LATCHED: Qos = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };

#[test]
fn a_talker_of_ros_1_is_heard_in_order_and_without_a_gap() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("a talker of ROS 1");
    let context = side.context();
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let mut talker = side.peer("talk /chatter 300");
    subscription.wait_for_publishers(1, HANG).unwrap();
    talker.expect("matched");
    talker.go_on();
    let mut number = 0;
    take_until(&node, &subscription, |received| {
        number += 1;
        assert_eq!(received.view().data.to_string(), format!("hello {number}"));
        number == 300
    });
    let [route] = &routes(&context, "/chatter")[..] else { panic!("one flow") };
    assert_is_of_ros1(route);
    assert_eq!(route.publisher.vendor.as_deref(), Some("ROS 1"));
    assert_eq!((route.samples, route.lost, route.duplicates), (300, 0, 0));
    talker.kill();
    // Nobody listens at its address any more, which is seen when its connection ends.
    wait_until("it is gone", || routes(&context, "/chatter").is_empty());
    let endpoints = context.graph().endpoints;
    assert!(
        !endpoints.iter().any(|it| it.topic == "/chatter" && it.kind == EndpointKind::Publisher)
    );
}

#[test]
fn a_listener_of_ros_1_hears_beside_one_of_tsuji_and_each_message_once() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("a listener of ROS 1");
    let (here, there) = (side.context(), side.context());
    let node = here.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("chatter", reliably()).unwrap();
    let near_node = there.node("near").unwrap();
    let near = near_node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let listener = side.peer("listen /chatter");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    near.wait_for_publishers(1, HANG).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=500 {
                publisher.publish(text(&format!("hello {number}"))).unwrap();
            }
        });
        let mut number = 0;
        take_until(&near_node, &near, |received| {
            number += 1;
            assert_eq!(received.view().data.to_string(), format!("hello {number}"));
            number == 500
        });
    });
    for number in 1..=500 {
        assert_eq!(listener.expect("heard"), format!("heard hello {number}"));
    }
    let mut routes = routes(&here, "/chatter");
    routes.sort_by_key(|route| route.transport.clone());
    // Two processes of tsuji beside the same master do not meet by it.
    let [of_ros1, near] = &routes[..] else { panic!("two flows: {routes:?}") };
    assert_is_of_ros1(of_ros1);
    assert_eq!(near.transport.as_deref(), Some("shm"));
}

#[test]
fn late_joiners_get_what_was_latched_in_the_other_world() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("latched texts");
    let context = side.context();
    let node = context.node("map").unwrap();
    let ours = node.create_publisher::<Text>("ours", LATCHED).unwrap();
    (1..=3).for_each(|number| ours.publish(text(&format!("kept {number}"))).unwrap());
    let listener = side.peer("listen /ours");
    (1..=3).for_each(|number| assert_eq!(listener.line(), format!("heard kept {number}")));
    ours.publish(text("new")).unwrap();
    assert_eq!(listener.line(), "heard new");
    let _latched = side.peer("latch /theirs told");
    let theirs = node.create_polled_subscription::<Text>("theirs", LATCHED).unwrap();
    assert_eq!(take(&node, &theirs).data, "told");
    let volatile = node.create_polled_subscription::<Text>("theirs", Qos::DEFAULT).unwrap();
    assert_eq!(take(&node, &volatile).data, "told");
}

#[test]
fn headers_have_their_number_in_ros_1_and_none_here() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("headers");
    let context = side.context();
    let node = context.node("stamps").unwrap();
    let publisher = node.create_publisher::<Header>("ours", reliably()).unwrap();
    let listener = side.peer("headers /ours");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for number in 1..=3 {
        let stamp = Time { sec: number, nanosec: 7 };
        publisher.publish(Header { stamp, frame_id: "odom".to_owned() }).unwrap();
        assert_eq!(
            listener.line(),
            format!("header {number} {} odom", i64::from(number) * 1_000_000_000 + 7)
        );
    }
    let subscription = node.create_polled_subscription::<Header>("theirs", keep_all()).unwrap();
    let mut talker = side.peer("stamped /theirs 3");
    subscription.wait_for_publishers(1, HANG).unwrap();
    talker.expect("matched");
    talker.go_on();
    for number in 1..=3 {
        let header = take(&node, &subscription);
        assert_eq!((header.stamp.sec, header.stamp.nanosec, &*header.frame_id), (number, 5, "map"));
    }
}

#[test]
fn pictures_arrive_whole_both_ways() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("pictures");
    let context = side.context();
    let node = context.node("camera").unwrap();
    let publisher = node.create_publisher::<Image>("ours", reliably()).unwrap();
    let viewer = side.peer("look /ours");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for number in 1..=20_u8 {
        let picture = Image {
            height: 768,
            width: 1024,
            step: 3072,
            encoding: "bgr8".to_owned(),
            data: vec![number; 3072 * 768],
            ..Image::default()
        };
        publisher.publish(picture).unwrap();
        assert_eq!(viewer.line(), format!("picture 1024 768 bgr8 2359296 {number} {number}"));
    }
    let subscription = node.create_polled_subscription::<Image>("theirs", keep_all()).unwrap();
    let mut camera = side.peer("pictures /theirs 20");
    subscription.wait_for_publishers(1, HANG).unwrap();
    camera.expect("matched");
    camera.go_on();
    let mut number = 0;
    take_until(&node, &subscription, |received| {
        number += 1;
        let picture = received.message();
        assert_eq!((picture.header.stamp.sec, &*picture.header.frame_id), (number, "camera"));
        assert_eq!((picture.width, picture.height, picture.step), (1024, 768, 3072));
        assert_eq!(picture.data.len(), 3072 * 768);
        assert!(picture.data.iter().all(|it| i32::from(*it) == number % 251));
        number == 20
    });
}

fn flip(it: Arc<SetBoolRequest>) -> SetBoolResponse {
    SetBoolResponse { success: it.data, message: format!("flipped to {}", it.data) }
}

#[test]
fn servers_of_ros_1_answer_and_clients_of_ros_1_are_answered() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("services of ROS 1");
    let context = side.context();
    let node = context.node("flipper").unwrap();
    let client = node.create_client::<SetBool>("theirs").unwrap();
    let server = side.peer("serve /theirs");
    client.wait_for_service(HANG).unwrap();
    for _ in 0..200 {
        let response = client.call(SetBoolRequest { data: true }, HANG).unwrap();
        assert_eq!((response.success, &*response.message), (true, "it is on"));
    }
    routes(&context, "/theirs").iter().for_each(assert_is_of_ros1);
    // What fails there has no answer here, and a line that says why.
    let short = Duration::from_millis(300);
    client.call(SetBoolRequest { data: false }, short).unwrap_err();
    LOG.wait_for("a call has no answer: the server says");
    // And the next one has its own.
    let response = client.call(SetBoolRequest { data: true }, HANG).unwrap();
    assert_eq!(&*response.message, "it is on");

    let _service = node.create_service::<SetBool>("ours", flip).unwrap();
    let spinning = node.clone();
    let spinner = thread::spawn(move || tsuji::spin(&spinning));
    let callers = [side.peer("call /ours 50"), side.peer("call /ours 50")];
    for number in 0..100 {
        let expect = match number % 2 == 0 {
            true => "answer True flipped to true",
            false => "answer False flipped to false",
        };
        callers.iter().for_each(|it| assert_eq!(it.expect("answer"), expect));
    }
    callers.iter().for_each(|it| drop(it.expect("done")));
    server.kill();
    wait_until("the server is gone", || routes(&context, "/theirs").is_empty());
    context.shutdown();
    spinner.join().unwrap().unwrap();
}

#[test]
fn a_connection_that_ends_and_comes_back_loses_nothing_that_is_sent_after_it() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("a connection comes back");
    let context = side.context();
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let mut talker = side.peer("cut /chatter 100");
    let take_to = |last: usize| {
        let mut number = last - 100;
        take_until(&node, &subscription, |received| {
            number += 1;
            assert_eq!(received.view().data.to_string(), format!("hello {number}"));
            number == last
        });
    };
    subscription.wait_for_publishers(1, HANG).unwrap();
    talker.expect("matched");
    talker.go_on();
    take_to(100);
    talker.expect("matched");
    talker.go_on();
    talker.expect("matched");
    talker.go_on();
    take_to(200);
}

#[test]
fn a_node_that_is_started_again_at_once_is_heard_whole() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("a node is started again");
    let context = side.context();
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    for _ in 0..3 {
        let mut talker = side.peer("named talker /chatter 100");
        talker.expect("matched");
        talker.go_on();
        let mut number = 0;
        take_until(&node, &subscription, |received| {
            number += 1;
            assert_eq!(received.view().data.to_string(), format!("hello {number}"));
            number == 100
        });
        talker.kill();
    }
}

#[test]
fn each_reads_the_others_log() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("logs of both worlds");
    let context = side.context();
    let node = context.node("logger").unwrap();
    let lines = node.create_polled_subscription::<Line>("/rosout", keep_all()).unwrap();
    let peer = side.peer("log");
    take_until(&node, &lines, |received| {
        let line = received.message();
        let is_theirs = line.msg == "from ROS 1";
        assert!(!is_theirs || (line.level == Line::WARN && line.name.starts_with("/peer_log")));
        is_theirs
    });
    let rosout = node.create_publisher::<Line>("/rosout", reliably()).unwrap();
    // That of this process is one too.
    rosout.wait_for_subscriptions(2, HANG).unwrap();
    let line = Line {
        level: Line::ERROR,
        name: "logger".to_owned(),
        msg: "from tsuji".to_owned(),
        ..Line::default()
    };
    rosout.publish(line).unwrap();
    // 8 is the error of ROS 1.
    assert_eq!(peer.expect("log 8"), "log 8 logger from tsuji");
}

#[test]
#[ignore = "minutes; a part of make soak"]
fn soak_a_hundred_thousand_calls_each_way() {
    const CALLS: usize = 100_000;
    let Some(side) = Side::start() else { return };
    let watchdog = Watchdog::start("a hundred thousand calls");
    let context = side.context();
    let node = context.node("flipper").unwrap();
    let client = node.create_client::<SetBool>("theirs").unwrap();
    let _server = side.peer("serve /theirs");
    client.wait_for_service(HANG).unwrap();
    for number in 0..CALLS {
        let response = client.call(SetBoolRequest { data: true }, HANG).unwrap();
        assert!(response.success);
        if number % 1000 == 0 {
            watchdog.goes_on();
        }
    }
    let _service = node.create_service::<SetBool>("ours", flip).unwrap();
    let spinning = node.clone();
    let spinner = thread::spawn(move || tsuji::spin(&spinning));
    let caller = side.peer(&format!("ask /ours {CALLS}"));
    let expect = format!("asked {CALLS}");
    while caller.line_within(HANG / 4).is_none_or(|it| it != expect) {
        watchdog.goes_on();
    }
    context.shutdown();
    spinner.join().unwrap().unwrap();
}

#[test]
fn each_sees_the_others_nodes_and_topics() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("graphs of both worlds");
    let context = side.context();
    let watcher = side.peer("graph /robot/image");
    let _unknown = side.peer("unknown /statistics");
    let found = context.wait_for_graph(HANG, |graph| {
        let theirs = graph.endpoints.iter().find(|it| it.topic == "/statistics")?;
        theirs.node.starts_with("/peer_unknown").then(|| theirs.clone())
    });
    let theirs = found.unwrap().expect("its topic");
    assert_eq!(theirs.type_name, "rosgraph_msgs/msg/TopicStatistics");
    assert_eq!((theirs.kind, theirs.vendor.as_deref()), (EndpointKind::Publisher, Some("ROS 1")));
    let node = context.node_in("camera", "/robot").unwrap();
    let publisher = node.create_publisher::<Text>("image", Qos::DEFAULT).unwrap();
    assert_eq!(watcher.expect("publishers /"), "publishers /robot/camera");
    drop((publisher, node));
    watcher.expect("publishers");
}

#[test]
fn a_name_that_a_node_of_ros_1_has_stays_its_own() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("one name for two");
    let owner = side.peer("name talker");
    let watcher = side.peer("graph /chatter");
    let context = side.context();
    let node = context.node("talker").unwrap();
    let _publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT).unwrap();
    let expect = format!("publishers /talker_{}", std::process::id());
    assert_eq!(watcher.expect("publishers /"), expect);
    // It was not ended, as a second node of its name would have done.
    assert_eq!(owner.line_within(Duration::from_millis(200)), None);
    owner.end();
}

#[test]
fn a_node_that_does_not_answer_keeps_its_name() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("a name of one that is stopped");
    let owner = side.peer("name talker");
    let watcher = side.peer("graph /chatter");
    owner.signal(Signal::Stop);
    let context = side.context();
    let node = context.node("talker").unwrap();
    let _publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT).unwrap();
    let expect = format!("publishers /talker_{}", std::process::id());
    assert_eq!(watcher.expect("publishers /"), expect);
    owner.signal(Signal::Continue);
    // Of one that was told to end, the input is nobody's any more.
    owner.end();
}

/// Registers a publisher with the master that takes connections and says nothing.
fn register_silent(side: &Side, node: &str, topic: &str) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let api = format!("http://{}/", listener.local_addr().unwrap());
    let answer = call_master(side, "registerPublisher", &[node, topic, "std_msgs/String", &api]);
    assert!(answer.contains("Registered"), "{answer}");
    listener
}

#[test]
fn nodes_that_never_answer_keep_nobody_from_the_others() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("nodes that never answer");
    let topics = ["/other", "/chatter"];
    let silent = (0..20).map(|it| register_silent(&side, &format!("/silent{it}"), topics[it % 2]));
    let _silent: Vec<TcpListener> = silent.collect();
    let context = side.context();
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let mut talker = side.peer("talk /chatter 100");
    talker.expect("matched");
    talker.go_on();
    let mut number = 0;
    take_until(&node, &subscription, |received| {
        number += 1;
        assert_eq!(received.view().data.to_string(), format!("hello {number}"));
        number == 100
    });
    let publisher = node.create_publisher::<Text>("back", reliably()).unwrap();
    let listener = side.peer("listen /back");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(text("hello")).unwrap();
    assert_eq!(listener.line(), "heard hello");
}

#[test]
fn a_master_that_ends_and_comes_back_finds_all_again() {
    let Some(mut side) = Side::start() else { return };
    let _watchdog = Watchdog::start("a master comes back");
    let context = side.context();
    let node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("chatter", reliably()).unwrap();
    let listener = side.peer("listen /chatter");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    side.master.take().unwrap().kill();
    LOG.wait_for(&format!("the master at {} is not reached", side.uri()));
    // Who is connected goes on.
    publisher.publish(text("without")).unwrap();
    assert_eq!(listener.line(), "heard without");
    side.open();
    let late = side.peer("listen /chatter");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    publisher.publish(text("with")).unwrap();
    assert_eq!(late.line(), "heard with");
    assert_eq!(listener.line(), "heard with");
}

/// What a raw subscriber says and is answered.
fn subscribe_raw(address: (&str, u16), fields: &[(&str, &str)]) -> (TcpStream, Vec<u8>) {
    let mut header = Vec::new();
    for (name, value) in fields {
        header.extend((name.len() as u32 + 1 + value.len() as u32).to_le_bytes());
        header.extend(format!("{name}={value}").bytes());
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    stream.write_all(&(header.len() as u32).to_le_bytes()).unwrap();
    stream.write_all(&header).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut answer).unwrap();
    (stream, answer)
}

/// What the master answers to a call.
fn call_master(side: &Side, method: &str, params: &[&str]) -> String {
    let params = params.iter().map(|it| format!("<param><value>{it}</value></param>"));
    let params: String = params.collect();
    let body = format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>{method}</methodName><params>{params}</params></methodCall>"
    );
    let mut stream = TcpStream::connect(("127.0.0.1", side.port)).unwrap();
    let head = "POST / HTTP/1.0\r\nContent-Type: text/xml\r\n";
    let length = body.len();
    write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The address where this process is connected to, as the master says.
fn address_of(side: &Side, node: &str) -> u16 {
    let mut port = None;
    wait_until("it is registered", || {
        let answer = call_master(side, "lookupNode", &["/test", node]);
        let uri = answer.split_once("http://127.0.0.1:").map(|(_, it)| it.to_owned());
        port = uri.and_then(|it| it.split_once('/')?.0.parse().ok());
        port.is_some()
    });
    port.unwrap()
}

const SUM_OF_STRING: &str = "992ce8a1687cec8c8bd883ec73ca41d1";

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("connections that are refused");
    let context = side.context();
    let node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("chatter", reliably()).unwrap();
    let port = address_of(&side, "/talker");
    let refused = |fields: &[(&str, &str)]| {
        let (_, answer) = subscribe_raw(("127.0.0.1", port), fields);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.split_once("error=").map(|(_, why)| why.to_owned()).unwrap_or(answer)
    };
    let of =
        |topic, md5, ty| [("callerid", "/raw"), ("topic", topic), ("md5sum", md5), ("type", ty)];
    let other = refused(&of("/chatter", "d41d8cd98f00b204e9800998ecf8427e", "std_msgs/String"));
    assert!(other.contains("has the MD5 sum d41d8cd98f00b204e9800998ecf8427e"), "{other}");
    assert!(other.contains(SUM_OF_STRING), "{other}");
    let nobody = refused(&of("/other", SUM_OF_STRING, "std_msgs/String"));
    assert_eq!(nobody, "nobody publishes /other here");
    assert_eq!(refused(&[("topic", "/chatter")]), "its header has no md5sum");
    assert!(refused(&[("service", "/none"), ("md5sum", "*")]).contains("nobody serves /none here"));
    // Lengths that lie, and what is no header, end the connection, and nothing else.
    for bytes in
        [&[0xff; 64][..], &[8, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4], b"POST / x\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // It may be reset with what it has not read.
        let _ = stream.read_to_end(&mut rest);
    }
    let endless: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all(&[0xff, 0xff, 0, 0, b'a']).unwrap();
            stream
        })
        .collect();
    let listener = side.peer("listen /chatter");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(text("still here")).unwrap();
    assert_eq!(listener.line(), "heard still here");
    drop(endless);
}

#[test]
fn one_that_never_reads_loses_what_is_old_and_keeps_nobody_waiting() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("one that never reads");
    let context = side.context();
    let node = context.node("camera").unwrap();
    let options = PublisherOptions::default().qos(keep_last(2));
    let publisher = node.create_publisher::<Image>("pictures", options).unwrap();
    let port = address_of(&side, "/camera");
    let fields = [
        ("callerid", "/stalled"),
        ("topic", "/pictures"),
        ("md5sum", "*"),
        ("type", "sensor_msgs/Image"),
    ];
    let (stalled, _) = subscribe_raw(("127.0.0.1", port), &fields);
    let viewer = side.peer("look /pictures");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    for number in 1..=30_u8 {
        let picture = Image { data: vec![number; 1 << 20], ..Image::default() };
        publisher.publish(picture).unwrap();
        assert_eq!(viewer.line(), format!("picture 0 0  1048576 {number} {number}"));
    }
    LOG.wait_for("the oldest messages are displaced");
    drop(stalled);
    wait_until("it is gone", || routes(&context, "/pictures").len() == 1);
}

#[test]
fn one_for_which_all_is_kept_and_that_never_reads_is_left() {
    let Some(side) = Side::start() else { return };
    let watchdog = Watchdog::start("one that never reads, and all is kept");
    let context = side.context();
    let node = context.node("recorder").unwrap();
    let publisher = node.create_publisher::<Image>("kept", reliably()).unwrap();
    let port = address_of(&side, "/recorder");
    let fields = [
        ("callerid", "/stalled"),
        ("topic", "/kept"),
        ("md5sum", "*"),
        ("type", "sensor_msgs/Image"),
    ];
    let (_stalled, _) = subscribe_raw(("127.0.0.1", port), &fields);
    let viewer = side.peer("look /kept");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    // More than may wait for it: a publish waits until it is left, and nothing is lost for the other.
    for number in 1..=100_u8 {
        publisher.publish(Image { data: vec![number; 1 << 20], ..Image::default() }).unwrap();
        watchdog.goes_on();
    }
    for number in 1..=100_u8 {
        assert_eq!(viewer.line(), format!("picture 0 0  1048576 {number} {number}"));
    }
    LOG.wait_for("while all is kept for it; its connection is ended");
    wait_until("it is gone", || routes(&context, "/kept").len() == 1);
}

#[test]
fn who_comes_while_the_master_stands_still_is_served() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("a master that stands still");
    let context = side.context();
    let node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("chatter", reliably()).unwrap();
    let port = address_of(&side, "/talker");
    // It takes connections still, and answers none: nobody says where this subscriber has its address.
    let master = side.master.as_ref().unwrap();
    master.signal(Signal::Stop);
    let fields = [
        ("callerid", "/stranger"),
        ("topic", "/chatter"),
        ("md5sum", SUM_OF_STRING),
        ("type", "std_msgs/String"),
    ];
    let (mut stream, _) = subscribe_raw(("127.0.0.1", port), &fields);
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(text("hello")).unwrap();
    let mut frame = [0; 13];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(frame, *b"\x09\0\0\0\x05\0\0\0hello");
    master.signal(Signal::Continue);
}

#[test]
fn without_a_master_all_else_works_and_the_reason_is_told() {
    let Some(mut side) = Side::start() else { return };
    let _watchdog = Watchdog::start("no master");
    side.master.take().unwrap().kill();
    let (here, there) = (side.context(), side.context());
    let node = here.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("chatter", reliably()).unwrap();
    let other = there.node("listener").unwrap();
    let subscription = other.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(text("hello")).unwrap();
    assert_eq!(take(&other, &subscription).data, "hello");
    LOG.wait_for(&format!("the master at {} is not reached", side.uri()));
    // One that comes later is found.
    side.open();
    let listener = side.peer("listen /chatter");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    publisher.publish(text("late")).unwrap();
    assert_eq!(listener.line(), "heard late");
}

#[test]
fn leaving_takes_back_what_was_registered_and_takes_no_time() {
    let Some(side) = Side::start() else { return };
    let _watchdog = Watchdog::start("leaving");
    let watcher = side.peer("graph /chatter");
    let context = side.context();
    let node: Node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("chatter", reliably()).unwrap();
    assert_eq!(watcher.expect("publishers /"), "publishers /talker");
    drop((publisher, node));
    let start = Instant::now();
    drop(context);
    assert!(start.elapsed() < HANG);
    assert_eq!(watcher.line(), "publishers");
}
