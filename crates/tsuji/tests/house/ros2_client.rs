//! Foreign ROS 2 nodes that nobody here wrote, those of ros2-client on RustDDS, as real processes, and what
//! they and tsuji do together, whatever engine speaks for tsuji. The program is built by `make test`, which
//! says where it is in `TSUJI_PEER_ROS2_CLIENT`; without it nothing is done, but in CI that fails.

use std::thread;
use std::time::Duration;

use tsuji::{
    Context, ContextBuilder, Durability, EndpointKind, Message, PublisherOptions, Qos, RouteReport,
    RouteState, Subscription,
};
use tsuji::{Interop, RtpsEngine};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::String as Text;

use crate::house::{
    self, Folder, HANG, Peer, Watchdog, keep_all, keep_last, take_until, wait_until,
};

/// OtherEnd longer than a call takes.
const A_WHILE: Duration = Duration::from_secs(5);

impl Peer {
    /// Starts one in `domain`; `None` where the program is not built.
    pub(crate) fn start(domain: u32, arguments: &str) -> Option<Self> {
        house::ros2_client().map(|program| Self::ros2_client(&program, domain, arguments))
    }

    /// Lets a talker that holds begin, when both sides have matched and the subscription has so many publishers.
    pub(crate) fn begin<M: Message>(&mut self, subscription: &Subscription<M>, publishers: usize) {
        subscription.wait_for_publishers(publishers, HANG).unwrap();
        self.expect("matched");
        self.go_on();
    }
}

/// What speaks for tsuji, and where.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    pub(crate) engine: RtpsEngine,
    pub(crate) domain: u32,
}

impl Side {
    /// The policy of those who speak to foreign nodes over loopback, with these rules.
    #[allow(dead_code, reason = "each test binary uses its part")]
    pub(crate) fn policy(self, rules: &str) -> String {
        let transport = |name: &str| {
            format!(
                r#"<transport name="{name}">
                <set key="interfaces" value="lo"/><set key="multicast" value="true"/>
                </transport>"#
            )
        };
        let all = [transport("cyclonedds"), transport("fastdds")].concat();
        format!(r#"<tsuji engine="{}">{all}{rules}</tsuji>"#, self.engine)
    }

    /// A context that speaks to foreign nodes over loopback.
    pub(crate) fn builder(self, folder: &Folder) -> ContextBuilder {
        let policy = self.policy("");
        let policy =
            tsuji_policy::load("test", policy.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
        let builder = Context::builder().runtime_dir(&folder.0).domain(self.domain).policy(policy);
        builder.interop(Interop::RTPS).isolated()
    }

    pub(crate) fn context(self, folder: &Folder) -> Context {
        let context = self.builder(folder).build().unwrap();
        assert_eq!(context.rtps_engine(), self.engine);
        context
    }

    /// An engine is called as its transport is.
    fn transport(self) -> String {
        self.engine.to_string()
    }

    /// How services of the peer must be to be understood.
    fn mapping(self) -> &'static str {
        match self.engine {
            RtpsEngine::CycloneDds | RtpsEngine::Both => "--mapping cyclone",
            RtpsEngine::FastDds => "--mapping enhanced",
        }
    }

    #[track_caller]
    pub(crate) fn assert_is_foreign(self, route: &RouteReport) {
        assert_eq!(route.state, RouteState::Active, "{route:?}");
        assert_eq!(route.transport, Some(self.transport()));
        assert_eq!((route.peer.as_str(), route.scope.as_str()), ("other", "remote"));
        assert!(route.because.contains("foreign nodes on other DDS"), "{}", route.because);
    }
}

/// The flows of a topic, as `context` knows them.
pub(crate) fn routes(context: &Context, topic: &str) -> Vec<RouteReport> {
    let mut routes = context.routes(HANG).unwrap();
    routes.retain(|route| route.topic == topic);
    routes
}

/// RustDDS sends the news of a message ahead of the message. Where it is the first news that a reader
/// gets, the engine takes the message for one of before, as it must for volatile ones; so the first may
/// be missing, and nothing after it.
pub(crate) fn a_foreign_talker_is_heard_in_order_and_without_a_gap(side: Side) {
    let _watchdog = Watchdog::start("a plain talker");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let arguments = "talk chatter --rate 500 --count 300 --wait-for 1 --hold";
    let Some(mut peer) = Peer::start(side.domain, arguments) else { return };
    peer.begin(&subscription, 1);
    let mut next = 0;
    take_until(&node, &subscription, |received| {
        let said = received.view().data.to_string();
        if next == 0 {
            next = if said == "hello 2" { 2 } else { 1 };
        }
        assert_eq!(said, format!("hello {next}"));
        next += 1;
        next == 301
    });
    let [route] = &routes(&context, "/chatter")[..] else { panic!("one flow") };
    side.assert_is_foreign(route);
    assert_eq!(route.publisher.vendor.as_deref(), Some("RustDDS"));
    assert!((299..=300).contains(&route.samples), "{route:?}");
    assert_eq!((route.lost, route.duplicates), (0, 0));
    assert_eq!(route.latency.as_ref().unwrap().clock, "wall");
    drop(peer);
    // Fast DDS does not read what RustDDS says when an endpoint ends: a key without its hash. It takes the
    // peer for there until its lease ends, which is 50 s.
    if side.engine.first() == RtpsEngine::CycloneDds {
        wait_until("it is gone", || routes(&context, "/chatter").is_empty());
    }
}

pub(crate) fn a_foreign_listener_hears_beside_one_of_tsuji(side: Side) {
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
    let Some(peer) = Peer::start(side.domain, "listen chatter --count 500 --depth 1000") else {
        return;
    };
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    near.wait_for_publishers(1, HANG).unwrap();
    // The peer leaves as soon as it has all.
    let mut routes = routes(&here, "/chatter");
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=500 {
                publisher.publish(Text { data: format!("hello {number}") }).unwrap();
            }
        });
        let mut next = 1;
        take_until(&near_node, &near, |received| {
            assert_eq!(received.view().data.to_string(), format!("hello {next}"));
            next += 1;
            next == 501
        });
    });
    assert_eq!(peer.expect("done"), "done 500 lost 0");
    routes.sort_by_key(|route| route.transport.clone());
    let [plain, near] = &routes[..] else { panic!("two flows: {routes:?}") };
    side.assert_is_foreign(plain);
    assert_eq!(plain.subscription.vendor.as_deref(), Some("RustDDS"));
    assert_eq!(near.transport.as_deref(), Some("shm"));
}

pub(crate) fn what_comes_by_shared_memory_is_not_delivered_again(side: Side) {
    let _watchdog = Watchdog::start("doubled samples");
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
    // The talker makes the subscription listen on RTPS; the listener makes the publisher write there.
    let Some(_talker) = Peer::start(side.domain, "talk chatter --rate 1") else { return };
    let Some(listener) = Peer::start(side.domain, "listen chatter --depth 1000") else { return };
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    near.wait_for_publishers(2, HANG).unwrap();
    let figure = |name: &str| {
        let reports = there.transports();
        let engine = reports.iter().find(|it| it.name == side.transport()).unwrap();
        engine.figures.iter().find(|(it, _)| it == name).unwrap().1
    };
    let mut next = 1;
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=400 {
                publisher.publish(Text { data: format!("ours {number}") }).unwrap();
            }
        });
        take_until(&near_node, &near, |received| {
            let said = received.view().data.to_string();
            if said.starts_with("ours") {
                assert_eq!(said, format!("ours {next}"));
                next += 1;
            }
            next == 401
        });
    });
    (0..400).for_each(|_| drop(listener.expect("received")));
    assert_eq!(near.counters().duplicates, 0);
    if side.transport() == "cyclonedds" {
        // By it the two do not even hear each other.
        assert_eq!(figure("doubled_samples"), 0);
        return;
    }
    // They are held until nobody can be expected to tell of their writer any more.
    wait_until("the doubled are counted", || {
        publisher.publish(Text { data: "more".to_owned() }).unwrap();
        while near.take().unwrap().is_some() {}
        400 <= figure("doubled_samples")
    });
}

pub(crate) fn late_joiners_get_what_was_said_before_both_ways(side: Side) {
    let _watchdog = Watchdog::start("late joiners");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("map").unwrap();
    let latched = Qos { durability: Durability::TransientLocal, ..keep_last(10) };
    let publisher = node.create_publisher::<Text>("ours", latched).unwrap();
    for number in 1..=3 {
        publisher.publish(Text { data: format!("hello {number}") }).unwrap();
    }
    let Some(listener) = Peer::start(side.domain, "listen ours --count 3 --transient-local") else {
        return;
    };
    assert_eq!(listener.expect("done"), "done 3 lost 0");

    let arguments = "talk theirs --count 3 --rate 100 --transient-local";
    let Some(talker) = Peer::start(side.domain, arguments) else { return };
    talker.expect("sent 3");
    // The peer keeps more than its depth.
    let asked = Qos { history: tsuji::History::KeepAll, ..latched };
    let subscription = node.create_polled_subscription::<Text>("theirs", asked).unwrap();
    let mut next = 1;
    take_until(&node, &subscription, |received| {
        assert_eq!(received.view().data.to_string(), format!("hello {next}"));
        next += 1;
        next == 4
    });
}

pub(crate) fn pictures_go_both_ways(side: Side) {
    let _watchdog = Watchdog::start("pictures both ways");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("viewer").unwrap();
    let subscription = node.create_polled_subscription::<Image>("theirs", keep_all()).unwrap();
    let arguments = "talk theirs --type sensor_msgs/Image --bytes 921600 --rate 20 --count 25 --wait-for 1 --hold";
    let Some(mut talker) = Peer::start(side.domain, arguments) else { return };
    talker.begin(&subscription, 1);
    let mut taken = 0;
    take_until(&node, &subscription, |received| {
        assert_eq!(received.view().data.len(), 921_600);
        taken += 1;
        taken == 20
    });

    let publisher = node.create_publisher::<Image>("ours", keep_last(20)).unwrap();
    let arguments = "listen ours --type sensor_msgs/Image --count 20 --depth 20";
    let Some(listener) = Peer::start(side.domain, arguments) else { return };
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for _ in 0..20 {
        publisher.publish(Image { data: vec![7; 921_600], ..Image::default() }).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    listener.expect("done 20");
}

pub(crate) fn a_talker_killed_in_a_picture_leaves_no_trace_of_it(side: Side) {
    let _watchdog = Watchdog::start("killed in a picture");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("viewer").unwrap();
    let subscription = node.create_polled_subscription::<Image>("image", keep_all()).unwrap();
    for round in 0..3 {
        let arguments =
            "talk image --type sensor_msgs/Image --bytes 4000000 --rate 0 --wait-for 1 --hold";
        let Some(mut talker) = Peer::start(side.domain, arguments) else { return };
        talker.begin(&subscription, round + 1);
        take_until(&node, &subscription, |received| received.view().data.len() == 4_000_000);
        talker.kill();
        while let Some(received) = subscription.take().unwrap() {
            assert_eq!(received.view().data.len(), 4_000_000);
        }
    }
    assert_eq!(subscription.counters().invalid, 0);
}

pub(crate) fn foreign_servers_answer_and_foreign_clients_are_answered(side: Side) {
    let _watchdog = Watchdog::start("foreign services");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("adder").unwrap();
    let client = node.create_client::<AddTwoInts>("theirs").unwrap();
    let mapping = side.mapping();
    let Some(_server) = Peer::start(side.domain, &format!("serve theirs {mapping}")) else {
        return;
    };
    client.wait_for_service(HANG).unwrap();
    // The peer may match later than it is matched, and misses what was sent before.
    let first = || client.call(AddTwoIntsRequest { a: 1, b: 2 }, Duration::from_secs(5)).is_ok();
    assert!((0..5).any(|_| first()));
    for number in 0..20 {
        let request = AddTwoIntsRequest { a: number, b: 1000 };
        let response = client.call(request, HANG).unwrap();
        assert_eq!(response.sum, number + 1000);
    }
    let answer = |it: std::sync::Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b };
    let _service = node.create_service::<AddTwoInts>("ours", answer).unwrap();
    let spinning = node.clone();
    let spinner = thread::spawn(move || tsuji::spin(&spinning));
    // A first request may be missed as a first message is, and then the peer waits for ever.
    let is_answered = (0..5).any(|_| {
        let call = format!("call ours 2 3 --count 20 --hold {mapping}");
        let Some(mut caller) = Peer::start(side.domain, &call) else {
            return true;
        };
        caller.expect("matched");
        wait_until("the client is there", || {
            let routes = routes(&context, "/ours");
            routes.iter().filter(|it| it.state == RouteState::Active).count() == 2
        });
        caller.go_on();
        if caller.line_within(A_WHILE).is_none() {
            return false;
        }
        (1..20).for_each(|_| assert_eq!(caller.line(), "sum 5"));
        true
    });
    assert!(is_answered);
    context.shutdown();
    spinner.join().unwrap().unwrap();
}

pub(crate) fn each_sees_the_others_nodes_and_topics(side: Side) {
    let _watchdog = Watchdog::start("graphs");
    let folder = Folder::new();
    let context = side.context(&folder);
    let arguments = "graph --until-node /robot/camera --until-topic /robot/image --node /watcher";
    let Some(peer) = Peer::start(side.domain, arguments) else { return };
    let found = context.wait_for_graph(HANG, |graph| {
        let node = graph.nodes.iter().find(|it| it.fully_qualified_name() == "/watcher")?;
        let theirs = graph.endpoints.iter().find(|it| it.topic == "/rosout")?;
        Some((node.clone(), theirs.clone()))
    });
    let (_, rosout) = found.unwrap().expect("its node and its topic");
    assert_eq!((rosout.kind, rosout.node.as_str()), (EndpointKind::Publisher, "/watcher"));
    assert_eq!(rosout.vendor.as_deref(), Some("RustDDS"));
    let node = context.node_in("camera", "/robot").unwrap();
    let _publisher = node.create_publisher::<Image>("image", Qos::DEFAULT).unwrap();
    // It ends when it has seen ours.
    peer.finish();
}
