//! Tsuji on rmw_zenoh's wire, with nodes that nobody here wrote, those of hiroz, as real processes, and a router. Where
//! the plug-in (`scripts/zenoh`) or the peer (`build_hiroz` in scripts/peers.sh) was not built these tests do nothing,
//! but with `TSUJI_ZENOH` set they fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::sync::Arc;
use std::thread;

use house::foreign::{Plain, Topic, next};
use house::log::Log;
use house::{Folder, HANG, Peer, Watchdog, free_port, keep_all, keep_last, take_until, wait_until};
use tsuji::{
    Context, ContextBuilder, Durability, EndpointKind, Message, PublisherOptions, Qos, RouteReport,
    RouteState,
};
use tsuji_core::{DraftPolicy, Interop, Origin, Policy, TransportId, TransportSettings};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::std_msgs::msg::String as Text;

/// A router, and where it is.
struct Side {
    port: u16,
    domain: u32,
    router: Option<Peer>,
}

impl Side {
    #[allow(clippy::print_stderr, reason = "says that it did not run")]
    fn start(domain: u32) -> Option<Self> {
        let folder = Folder::new();
        let offered = folder.process().transports();
        let zenoh = offered.iter().find(|it| it.name == "zenoh").unwrap();
        let is_built = zenoh.is_installed && std::env::var_os("TSUJI_PEER_HIROZ").is_some();
        if !is_built && std::env::var_os("TSUJI_ZENOH").is_none() {
            eprintln!("{:?}: not run", zenoh.trouble);
            return None;
        }
        let mut side = Self { port: free_port(domain), domain, router: None };
        side.open();
        Some(side)
    }

    fn open(&mut self) {
        self.router = Some(Peer::hiroz(&format!("router {}", self.port), &[]));
    }

    fn peer(&self, arguments: &str) -> Peer {
        let router = format!("tcp/127.0.0.1:{}", self.port);
        let variables = [("HIROZ_ROUTER", router), ("HIROZ_DOMAIN", self.domain.to_string())];
        Peer::hiroz(arguments, &variables)
    }

    fn policy(&self) -> Policy {
        let policy = format!(
            r#"<tsuji>
            <transport name="zenoh"><set key="connect" value="tcp/127.0.0.1:{}"/></transport>
            <transport name="cyclonedds">
                <set key="interfaces" value="lo"/><set key="multicast" value="true"/>
            </transport></tsuji>"#,
            self.port
        );
        tsuji_policy::load("test", policy.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap()
    }

    fn builder(&self, folder: &Folder) -> ContextBuilder {
        let builder = Context::builder().runtime_dir(&folder.0).domain(self.domain);
        builder.policy(self.policy()).interop(Interop::ZENOH).isolated()
    }

    fn context(&self, folder: &Folder) -> Context {
        let context = self.builder(folder).build().unwrap();
        assert_eq!(context.interop(), Interop::ZENOH);
        context
    }

    /// A context that has no link to other processes but Zenoh.
    fn alone(&self, folder: &Folder) -> Context {
        let builder = self.builder(folder).transports(|mut built| {
            built.retain(|it| it.id().as_str() == "zenoh");
            built
        });
        builder.build().unwrap()
    }
}

fn routes(context: &Context, topic: &str) -> Vec<RouteReport> {
    let mut routes = context.routes(HANG).unwrap();
    routes.retain(|route| route.topic == topic);
    routes
}

fn assert_is_foreign(route: &RouteReport) {
    assert_eq!(route.state, RouteState::Active, "{route:?}");
    assert_eq!(route.transport.as_deref(), Some("zenoh"));
    assert_eq!((route.peer.as_str(), route.scope.as_str()), ("zenoh", "remote"));
    assert!(route.because.contains("foreign nodes on Zenoh"), "{}", route.because);
}

fn text(data: &str) -> Text {
    Text { data: data.to_owned() }
}

fn adder(it: Arc<AddTwoIntsRequest>) -> AddTwoIntsResponse {
    AddTwoIntsResponse { sum: it.a + it.b }
}

const LATCHED: Qos = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };

#[test]
fn a_foreign_talker_is_heard_in_order_and_without_a_gap() {
    let Some(side) = Side::start(60) else { return };
    let _watchdog = Watchdog::start("a plain talker");
    let folder = Folder::new();
    let context = side.context(&folder);
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
    assert_is_foreign(route);
    assert_eq!(route.publisher.vendor.as_deref(), Some("Zenoh"));
    assert_eq!((route.samples, route.lost, route.duplicates), (300, 0, 0));
    talker.kill();
    // The end of its connection is seen at once.
    wait_until("it is gone", || routes(&context, "/chatter").is_empty());
}

#[test]
fn a_foreign_listener_hears_beside_one_of_tsuji() {
    let Some(side) = Side::start(61) else { return };
    let _watchdog = Watchdog::start("a plain listener");
    let folder = Folder::new();
    let (here, there) = (side.context(&folder), side.context(&folder));
    let node = here.node("talker").unwrap();
    let publisher = node
        .create_publisher::<Text>(
            "chatter",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
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
    let [near, plain] = &routes[..] else { panic!("two flows: {routes:?}") };
    assert_is_foreign(plain);
    assert_eq!(near.transport.as_deref(), Some("shm"));
}

#[test]
fn two_foreign_talkers_of_one_topic_are_told_apart() {
    let Some(side) = Side::start(62) else { return };
    let _watchdog = Watchdog::start("two talkers");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let mut talkers = [side.peer("talk /chatter 100"), side.peer("talk /chatter 100")];
    subscription.wait_for_publishers(2, HANG).unwrap();
    for talker in &mut talkers {
        talker.expect("matched");
        talker.go_on();
    }
    let mut taken = 0;
    take_until(&node, &subscription, |_| {
        taken += 1;
        taken == 200
    });
    let [first, second] = talkers;
    first.end();
    wait_until("one is gone", || routes(&context, "/chatter").len() == 1);
    second.end();
    wait_until("both are gone", || routes(&context, "/chatter").is_empty());
    assert_eq!(subscription.counters().duplicates, 0);
}

#[test]
fn foreign_late_joiners_get_what_was_said_before() {
    let Some(side) = Side::start(63) else { return };
    let _watchdog = Watchdog::start("late joiners");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("map").unwrap();
    let publisher = node.create_publisher::<Text>("ours", Qos { ..LATCHED }).unwrap();
    for number in 1..=3 {
        publisher.publish(text(&format!("hello {number}"))).unwrap();
    }
    // The publisher is known out there, so whoever comes now is late.
    let watcher = side.peer("graph map /ours /none");
    watcher.expect("sees the topic");
    let listener = side.peer("late /ours");
    for number in 1..=3 {
        assert_eq!(listener.expect("heard"), format!("heard hello {number}"));
    }
    // And what follows, once.
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(text("hello 4")).unwrap();
    assert_eq!(listener.expect("heard"), "heard hello 4");

    // One that was there before, too.
    let early = side.peer("late /later");
    let later = node.create_publisher::<Text>("later", LATCHED).unwrap();
    for number in 1..=20 {
        later.publish(text(&format!("hello {number}"))).unwrap();
    }
    for number in 1..=20 {
        let line = early.line();
        if number == 1 && line != "heard hello 1" {
            // What was published before anybody was found is kept as far as the depth goes.
            let first: u32 = line.trim_start_matches("heard hello ").parse().unwrap();
            assert!(first <= 11, "{line}");
            (first + 1..=20)
                .for_each(|it| assert_eq!(early.expect(""), format!("heard hello {it}")));
            break;
        }
        assert_eq!(line, format!("heard hello {number}"));
    }
}

#[test]
fn late_joiners_get_what_foreign_talkers_said_before() {
    let Some(side) = Side::start(58) else { return };
    let _watchdog = Watchdog::start("what plain talkers said before");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("map").unwrap();
    let talker = side.peer("latch /theirs 3");
    talker.expect("sent 3");
    let subscription = node.create_polled_subscription::<Text>("theirs", LATCHED).unwrap();
    let mut number = 0;
    take_until(&node, &subscription, |received| {
        number += 1;
        assert_eq!(received.view().data.to_string(), format!("hello {number}"));
        number == 3
    });
}

#[test]
fn foreign_servers_answer_and_foreign_clients_are_answered() {
    let Some(side) = Side::start(64) else { return };
    let _watchdog = Watchdog::start("foreign services");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("adder").unwrap();
    let client = node.create_client::<AddTwoInts>("theirs").unwrap();
    let server = side.peer("serve /theirs");
    client.wait_for_service(HANG).unwrap();
    for number in 0..50 {
        let response = client.call(AddTwoIntsRequest { a: number, b: 1000 }, HANG).unwrap();
        assert_eq!(response.sum, number + 1000);
        assert_eq!(server.expect("asked"), format!("asked {number} 1000"));
    }
    routes(&context, "/theirs").iter().for_each(assert_is_foreign);

    let _service = node.create_service::<AddTwoInts>("ours", adder).unwrap();
    let spinning = node.clone();
    let spinner = thread::spawn(move || tsuji::spin(&spinning));
    let callers = [side.peer("call /ours 50"), side.peer("call /ours 50")];
    for number in 1..=50 {
        for caller in &callers {
            assert_eq!(caller.expect("sum"), format!("sum {}", number + 1000));
        }
    }
    server.kill();
    wait_until("the server is gone", || routes(&context, "/theirs").is_empty());
    context.shutdown();
    spinner.join().unwrap().unwrap();
}

#[test]
fn each_sees_the_others_nodes_topics_and_services() {
    let Some(side) = Side::start(65) else { return };
    let _watchdog = Watchdog::start("graphs");
    let folder = Folder::new();
    let context = side.context(&folder);
    let watcher = side.peer("graph camera /robot/image /robot/add");
    let talker = side.peer("talk /theirs 1");
    let found = context.wait_for_graph(HANG, |graph| {
        let node = graph.nodes.iter().find(|it| it.fully_qualified_name() == "/hiroz_peer")?;
        let theirs = graph.endpoints.iter().find(|it| it.topic == "/theirs")?;
        (theirs.node == "/hiroz_peer").then(|| (node.clone(), theirs.clone()))
    });
    let (_, theirs) = found.unwrap().expect("its node and its topic");
    assert_eq!(theirs.kind, EndpointKind::Publisher);
    assert_eq!(theirs.vendor.as_deref(), Some("Zenoh"));
    let node = context.node_in("camera", "/robot").unwrap();
    let publisher = node.create_publisher::<Text>("image", Qos::DEFAULT).unwrap();
    let service = node.create_service::<AddTwoInts>("add", adder).unwrap();
    for line in ["sees the node", "sees the topic", "found"] {
        watcher.expect(line);
    }
    drop((service, publisher, node));
    watcher.expect("gone");
    drop(talker);
    let is_gone = context.wait_for_graph(HANG, |graph| {
        let is_there = graph.endpoints.iter().any(|it| it.topic == "/theirs");
        (!is_there).then_some(())
    });
    is_gone.unwrap().expect("it goes");
}

#[test]
fn a_router_may_go_and_come_back() {
    let Some(mut side) = Side::start(66) else { return };
    let _watchdog = Watchdog::start("a router");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("ours", keep_last(10)).unwrap();
    let first = side.peer("listen /ours");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(text("one")).unwrap();
    assert_eq!(first.expect("heard"), "heard one");
    side.router.take().unwrap().kill();
    side.open();
    // Who comes now is met by the new router.
    let second = side.peer("listen /ours");
    wait_until("both hear", || {
        publisher.publish(text("more")).unwrap();
        [&first, &second].iter().all(|it| it.lines_so_far().any(|line| line == "heard more"))
    });
}

/// Nobody needs the processes of tsuji to meet by anything else, and nobody hears twice.
#[test]
fn processes_of_tsuji_meet_and_call_each_other_over_the_wire() {
    let Some(side) = Side::start(67) else { return };
    let _watchdog = Watchdog::start("tsuji over the wire");
    let folder = Folder::new();
    let (here, there) = (side.alone(&folder), side.alone(&folder));
    let served = there.node("adder").unwrap();
    let _service = served.create_service::<AddTwoInts>("add", adder).unwrap();
    let heard = there.node("listener").unwrap();
    let subscription = heard.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let spinner = thread::spawn(move || tsuji::spin(&served));
    let node = here.node("client").unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    for number in 0..100 {
        let response = client.call(AddTwoIntsRequest { a: number, b: 1000 }, HANG).unwrap();
        assert_eq!(response.sum, number + 1000);
    }
    let publisher = node.create_publisher::<Text>("chatter", keep_all()).unwrap();
    let plain = side.peer("listen /chatter");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    for number in 1..=100 {
        publisher.publish(text(&format!("hello {number}"))).unwrap();
        wait_until("it comes", || {
            let received = subscription.take().unwrap();
            received.is_some_and(|it| it.view().data == &*format!("hello {number}"))
        });
        assert_eq!(plain.expect("heard"), format!("heard hello {number}"));
    }
    assert_eq!(subscription.counters().duplicates, 0);
    assert!(subscription.take().unwrap().is_none());
    let is_by_it = |it: &RouteReport| it.transport.as_deref() == Some("zenoh");
    let routes = here.routes(HANG).unwrap();
    assert!(routes.iter().all(is_by_it), "{routes:?}");
    there.shutdown();
    spinner.join().unwrap().unwrap();
}

/// As on two hosts: what tells that they are on one is not there.
#[test]
fn processes_of_tsuji_on_other_hosts_are_met_over_the_wire() {
    let Some(side) = Side::start(59) else { return };
    let _watchdog = Watchdog::start("far over the wire");
    let folders = [Folder::new(), Folder::new()];
    let [here, there] = [side.context(&folders[0]), side.context(&folders[1])];
    let node = here.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("far", keep_all()).unwrap();
    let heard = there.node("listener").unwrap();
    let subscription = heard.create_polled_subscription::<Text>("far", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let mut number = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=300 {
                publisher.publish(text(&format!("hello {number}"))).unwrap();
            }
        });
        take_until(&heard, &subscription, |received| {
            number += 1;
            assert_eq!(received.view().data.to_string(), format!("hello {number}"));
            number == 300
        });
    });
    let [route] = &routes(&here, "/far")[..] else { panic!("one flow") };
    assert_eq!((route.transport.as_deref(), route.peer.as_str()), (Some("zenoh"), "tsuji"));
    assert_eq!(route.scope, "remote");
}

#[test]
fn one_publisher_feeds_nodes_on_dds_and_on_zenoh() {
    let Some(side) = Side::start(68) else { return };
    let _watchdog = Watchdog::start("both wires");
    let folder = Folder::new();
    let context = side.builder(&folder).interop(Interop::RTPS.and(Interop::ZENOH)).build().unwrap();
    assert_eq!(context.interop(), Interop::RTPS.and(Interop::ZENOH));
    let node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<Text>("ours", keep_all()).unwrap();
    let subscription = node.create_polled_subscription::<Text>("theirs", keep_all()).unwrap();
    let on_dds = Plain::join(side.domain);
    let inlet = on_dds.inlet(&Topic::of::<Text>("ours"), keep_all());
    let talker = on_dds.talker(&Topic::of::<Text>("theirs"), keep_all());
    let on_zenoh = side.peer("listen /ours");
    let mut zenoh_talker = side.peer("talk /theirs 1");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    subscription.wait_for_publishers(2, HANG).unwrap();
    for number in 1..=100 {
        let said = text(&format!("hello {number}"));
        publisher.publish(said.clone()).unwrap();
        assert_eq!(next(&*inlet).1[..], said.to_vec().unwrap()[..]);
        assert_eq!(on_zenoh.expect("heard"), format!("heard hello {number}"));
    }
    assert!(inlet.take().unwrap().is_none());
    talker.wait_for_readers(1);
    talker.say(&text("by DDS"));
    take_until(&node, &subscription, |received| received.view().data == "by DDS");
    zenoh_talker.expect("matched");
    zenoh_talker.go_on();
    take_until(&node, &subscription, |received| received.view().data == "hello 1");
    let mut by: Vec<String> =
        routes(&context, "/ours").into_iter().filter_map(|it| it.transport).collect();
    by.sort_unstable();
    assert_eq!(by, ["cyclonedds", "zenoh"]);
}

/// Without the plug-in the rest works, and it says what to do.
#[test]
fn without_its_plugin_the_rest_speaks() {
    let _watchdog = Watchdog::start("no plug-in");
    let log = Log::install(tracing::Level::WARN);
    let folder = Folder::new();
    let missing = TransportSettings {
        transport: TransportId::new("zenoh"),
        plugin: Some("/nowhere/libtsuji_transport_zenoh.so".into()),
        settings: Vec::new(),
        origin: Origin { file: "test".into(), line: 1 },
    };
    let mut draft: DraftPolicy = tsuji_policy::builtin_default().parts().clone();
    draft.transports.push(missing);
    let policy = Policy::new(draft).unwrap();
    for (asked, came) in
        [(Interop::RTPS.and(Interop::ZENOH), Interop::RTPS), (Interop::ZENOH, Interop::NONE)]
    {
        let builder = Context::builder().runtime_dir(&folder.0).domain(69).policy(policy.clone());
        let context = builder.interop(asked).isolated().build().unwrap();
        assert_eq!(context.interop(), came);
    }
    let told = log.with("foreign ROS 2 nodes on Zenoh are not met");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("/nowhere/libtsuji_transport_zenoh.so"), "{told:?}");
    assert!(told[0].contains("tsuji-transport-zenoh"), "{told:?}");
}
