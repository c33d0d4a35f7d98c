//! Robots: their names inside and outside, and what leaves them. Each context here is a process of its own to the others.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use house::foreign::{Plain, Topic, next};
use house::log::Log;
use house::{Folder, HANG, Watchdog, keep_all, take, wait_until};
use tsuji::{
    Context, Durability, EndpointKind, ErrorKind, Interop, Liveliness, Message, Node, Publisher,
    PublisherEvent, PublisherOptions, Qos, Subscription, SubscriptionEvent, SubscriptionOptions,
};
use tsuji_core::Policy;
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_ros::gid::Distro;
use tsuji_ros::graph_message::{self, ParticipantEntitiesInfo};

/// With the elements of a policy file; where nothing else is said, nodes of other makes are spoken to over loopback.
fn policy(elements: &str) -> Policy {
    let text = format!(
        r#"<tsuji>{elements}<transport name="cyclonedds">
            <set key="interfaces" value="lo"/><set key="multicast" value="true"/>
        </transport></tsuji>"#
    );
    tsuji_policy::load("test", text.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap()
}

/// A process that meets those of tsuji alone, or in a domain of its own others too.
fn process(folder: &Folder, domain: Option<u32>, elements: &str) -> Context {
    let interop = domain.map_or(Interop::NONE, |_| Interop::RTPS);
    let builder = Context::builder().runtime_dir(&folder.0).domain(domain.unwrap_or(60));
    builder.interop(interop).policy(policy(elements)).isolated().build().unwrap()
}

const R1: &str = r#"<robot name="r1" shared="/fleet/**"/>"#;
const R2: &str = r#"<robot name="r2" shared="/fleet/**"/>"#;

fn publisher(node: &Node, topic: &str) -> Publisher<Text> {
    node.create_publisher(topic, keep_all()).unwrap()
}

fn subscription(node: &Node, topic: &str) -> Subscription<Text> {
    node.create_polled_subscription(topic, keep_all()).unwrap()
}

fn say(publisher: &Publisher<Text>, data: &str) {
    publisher.publish(Text { data: data.into() }).unwrap();
}

#[track_caller]
fn hears(node: &Node, subscription: &Subscription<Text>, expect: &[&str]) {
    let heard: BTreeSet<String> =
        expect.iter().map(|_| take(node, subscription).data.to_string()).collect();
    assert_eq!(heard, expect.iter().map(|it| (*it).to_owned()).collect());
}

/// The names of the topics that a process knows, but for those that every node has.
fn topics(context: &Context) -> Vec<String> {
    let graph = context.graph();
    let names = graph.endpoints.iter().map(|it| it.topic.clone());
    let names: BTreeSet<String> = names.filter(|it| !it.contains("rosout")).collect();
    names.into_iter().collect()
}

fn nodes(context: &Context) -> Vec<String> {
    let mut nodes: Vec<String> =
        context.graph().nodes.iter().map(|it| it.fully_qualified_name()).collect();
    nodes.sort();
    nodes
}

#[test]
fn robots_of_one_kind_keep_apart_and_a_process_outside_knows_both() {
    let _watchdog = Watchdog::start("robots of one kind");
    let folder = Folder::new();
    // Both have the same nodes and topics.
    let all = [R1, R2].map(|robot| {
        let (talks, listens) = (process(&folder, None, robot), process(&folder, None, robot));
        let (talker, listener) = (talks.node("talker").unwrap(), listens.node("listener").unwrap());
        let publishers = [publisher(&talker, "chatter"), publisher(&talker, "fleet/status")];
        let subscriptions = [subscription(&listener, "chatter"), subscription(&listener, "cmd")];
        (publishers, subscriptions, talker, listener)
    });
    let outside = process(&folder, None, "");
    let fleet = outside.node("fleet").unwrap();
    let [heard_1, heard_2, status] =
        ["r1/chatter", "r2/chatter", "fleet/status"].map(|it| subscription(&fleet, it));
    let command = publisher(&fleet, "r2/cmd");

    status.wait_for_publishers(2, HANG).unwrap();
    heard_1.wait_for_publishers(1, HANG).unwrap();
    heard_2.wait_for_publishers(1, HANG).unwrap();
    command.wait_for_subscriptions(1, HANG).unwrap();
    for ((publishers, subscriptions, ..), name) in all.iter().zip(["r1", "r2"]) {
        publishers[0].wait_for_subscriptions(2, HANG).unwrap();
        subscriptions[0].wait_for_publishers(1, HANG).unwrap();
        say(&publishers[0], &format!("I am {name}"));
        say(&publishers[1], &format!("{name} is well"));
    }
    say(&command, "go");
    hears(&fleet, &heard_1, &["I am r1"]);
    hears(&fleet, &heard_2, &["I am r2"]);
    hears(&fleet, &status, &["r1 is well", "r2 is well"]);
    for ((_, subscriptions, _, listener), name) in all.iter().zip(["r1", "r2"]) {
        hears(listener, &subscriptions[0], &[&format!("I am {name}")]);
        assert!(subscriptions[0].take().unwrap().is_none());
    }
    hears(&all[1].3, &all[1].1[1], &["go"]);
    assert_eq!(all[0].1[1].matched(), 0);

    assert_eq!(
        topics(&outside),
        ["/fleet/status", "/r1/chatter", "/r1/cmd", "/r2/chatter", "/r2/cmd"]
    );
    assert_eq!(
        nodes(&outside),
        ["/fleet", "/r1/listener", "/r1/talker", "/r2/listener", "/r2/talker"]
    );
    let inside = all[1].3.context();
    assert_eq!(inside.robot(), Some("r2"));
    assert_eq!(topics(inside), ["/chatter", "/cmd", "/fleet/status"]);
    // Each names the nodes as it knows them, whoever tells of a flow.
    let ends = |context: &Context, topic: &str| -> BTreeSet<[String; 2]> {
        let routes = context.routes(HANG).unwrap().into_iter().filter(|it| it.topic == topic);
        routes.map(|it| [it.publisher.node, it.subscription.node]).collect()
    };
    let expect =
        |all: &[[&str; 2]]| -> BTreeSet<_> { all.iter().map(|it| it.map(str::to_owned)).collect() };
    let status = [["/r1/talker", "/fleet"], ["/r2/talker", "/fleet"]];
    assert_eq!(ends(&outside, "/fleet/status"), expect(&status));
    let own = [["/r1/talker", "/fleet"], ["/talker", "/fleet"]];
    assert_eq!(ends(inside, "/fleet/status"), expect(&own));
    let chatter = [["/talker", "/listener"], ["/talker", "/fleet"]];
    assert_eq!(ends(inside, "/chatter"), expect(&chatter));
    assert_eq!(ends(inside, "/cmd"), expect(&[["/fleet", "/listener"]]));
    let all = ["/fleet", "/listener", "/r1/listener", "/r1/talker", "/talker"];
    wait_until("all nodes are known", || nodes(inside) == all);
}

#[test]
fn the_transport_of_a_robots_topic_is_set_from_outside_and_from_another_it_is_not() {
    let _watchdog = Watchdog::start("set from outside");
    let folder = Folder::new();
    let [one, two] = [R1, R2].map(|robot| process(&folder, None, robot));
    let outside = process(&folder, None, "");
    let (talker, listener) = (two.node("talker").unwrap(), two.node("listener").unwrap());
    let (publisher, subscription) = (publisher(&talker, "a"), subscription(&listener, "a"));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let transport = || {
        let routes = two.routes(HANG).unwrap();
        routes.iter().find(|it| it.topic == "/a").unwrap().transport.clone().unwrap()
    };
    assert_eq!(transport(), "inproc");
    wait_until("it is known outside", || topics(&outside).contains(&"/r2/a".to_owned()));
    let flows = |context: &Context, topic: &str| -> u32 {
        let settings = context.set_route(topic, Some("shm"), HANG).unwrap();
        settings.into_iter().map(|it| it.outcome.unwrap()).sum()
    };
    assert_eq!((flows(&one, "/a"), flows(&outside, "/a"), &*transport()), (0, 0, "inproc"));
    assert_eq!(flows(&outside, "/r2/a"), 1);
    wait_until("it goes over", || transport() == "shm");
    say(&publisher, "by shm");
    hears(&listener, &subscription, &["by shm"]);
    let shown = |context: &Context| -> Vec<[String; 3]> {
        let routes = context.routes(HANG).unwrap().into_iter();
        routes.map(|it| [it.topic, it.publisher.node, it.subscription.node]).collect()
    };
    assert_eq!(shown(&outside), [["/r2/a", "/r2/talker", "/r2/listener"]]);
    assert_eq!(shown(&two), [["/a", "/talker", "/listener"]]);
    assert!(shown(&one).is_empty());
}

#[test]
fn services_are_called_from_outside_by_the_robots_name() {
    let _watchdog = Watchdog::start("services");
    let folder = Folder::new();
    let domain = Some(61);
    let robots = [R1, R2].map(|robot| process(&folder, domain, robot));
    let serving = robots.iter().zip([10, 20]).map(|(context, more)| {
        let node = context.node("adder").unwrap();
        let add = move |it: Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b + more };
        let service = node.create_service::<AddTwoInts>("add", add).unwrap();
        let spun = node.clone();
        (service, std::thread::spawn(move || tsuji::spin(&spun)))
    });
    let serving: Vec<_> = serving.collect();
    let outside = process(&folder, domain, "");
    let (node, own) = (outside.node("asks").unwrap(), robots[1].node("asks").unwrap());
    for (node, service, expect) in
        [(&node, "/r1/add", 13), (&node, "/r2/add", 23), (&own, "/add", 23)]
    {
        let client = node.create_client::<AddTwoInts>(service).unwrap();
        client.wait_for_service(HANG).unwrap();
        let response = client.call(AddTwoIntsRequest { a: 1, b: 2 }, HANG).unwrap();
        assert_eq!(response.sum, expect, "{service}");
    }
    // What has no robot's name before it is of nobody outside.
    let client = node.create_client::<AddTwoInts>("/add").unwrap();
    assert_eq!(client.wait_for_service(Duration::ZERO).unwrap_err().kind(), ErrorKind::NoServer);
    robots.iter().for_each(Context::shutdown);
    for (service, thread) in serving {
        drop(service);
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn foreign_nodes_know_a_robot_by_its_name() {
    let _watchdog = Watchdog::start("foreign nodes");
    let folder = Folder::new();
    let robot = process(&folder, Some(62), R2);
    let node = robot.node_in("arm", "left").unwrap();
    let (publisher, listened) = (publisher(&node, "/chatter"), subscription(&node, "/cmd"));
    let shared = subscription(&node, "/fleet/orders");
    let plain = Plain::join(62);
    let topic = |name: &str| Topic::of::<Text>(name);
    let listener = plain.listener(&topic("r2/chatter"), keep_all());
    let [meant, another, order] =
        ["r2/cmd", "cmd", "fleet/orders"].map(|it| plain.talker(&topic(it), keep_all()));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    listened.wait_for_publishers(1, HANG).unwrap();
    shared.wait_for_publishers(1, HANG).unwrap();
    meant.wait_for_readers(1);
    order.wait_for_readers(1);
    say(&publisher, "out");
    another.say(&Text { data: "not for it".into() });
    meant.say(&Text { data: "in".into() });
    order.say(&Text { data: "for all".into() });
    assert_eq!(Text::deserialize(&listener.next().1).unwrap().data.to_string(), "out");
    hears(&node, &listened, &["in"]);
    hears(&node, &shared, &["for all"]);
    assert!(listened.take().unwrap().is_none());
    assert_eq!(topics(&robot), ["/chatter", "/cmd", "/fleet/orders"]);

    // Its nodes are told with its name, and those of others known by theirs.
    let said = Topic::new(graph_message::TOPIC.to_owned(), graph_message::TYPE_NAME.to_owned());
    let inlet = plain.inlet(&said, graph_message::READER_QOS);
    let is_told = || {
        let said = ParticipantEntitiesInfo::decode(&next(&*inlet).1, Distro::Jazzy).unwrap();
        said.nodes.iter().any(|it| (&*it.node_namespace, &*it.node_name) == ("/r2/left", "arm"))
    };
    while !is_told() {}
    let said = plain.node("driver", &[meant.name()]);
    let _says = plain.say_nodes(Distro::Jazzy, &said);
    wait_until("the other's node is known", || nodes(&robot).contains(&"/driver".to_owned()));
    // Nothing of it has a name without the robot's on the wire.
    let announced = plain.found(&topic("chatter"));
    assert!(announced.is_empty(), "{announced:?}");
}

#[test]
fn what_is_not_exported_is_seen_inside_alone() {
    let _watchdog = Watchdog::start("exports");
    let folder = Folder::new();
    let exports = format!(r#"{R2}<export topic="/camera/**"/><export topic="/fleet/status"/>"#);
    let (talks, listens) =
        (process(&folder, Some(63), &exports), process(&folder, Some(63), &exports));
    let (talker, listener) = (talks.node("talker").unwrap(), listens.node("listener").unwrap());
    let names = ["camera/left", "fleet/status", "fleet/secret", "odom"];
    let publishers = names.map(|it| publisher(&talker, it));
    let inside = names.map(|it| subscription(&listener, it));
    let outside = process(&folder, Some(63), "");
    let node = outside.node("outside").unwrap();
    let outer = ["r2/camera/left", "fleet/status", "fleet/secret", "r2/odom"];
    let heard = outer.map(|it| subscription(&node, it));
    let plain = Plain::join(63);
    let listeners = outer.map(|it| plain.listener(&Topic::of::<Text>(it), keep_all()));

    for (publisher, all) in publishers.iter().zip([3, 3, 1, 1]) {
        publisher.wait_for_subscriptions(all, HANG).unwrap();
    }
    publishers.iter().zip(names).for_each(|(publisher, name)| say(publisher, name));
    inside.iter().zip(names).for_each(|(it, name)| hears(&listener, it, &[name]));
    for at in [0, 1] {
        hears(&node, &heard[at], &[names[at]]);
        let taken = listeners[at].next().1;
        assert_eq!(Text::deserialize(&taken).unwrap().data.to_string(), names[at]);
    }
    // Who is outside does not see the others, and is not seen by them.
    assert_eq!(publishers.each_ref().map(|it| it.matched()), [3, 3, 1, 1]);
    assert_eq!((heard[2].matched(), heard[3].matched()), (0, 0));
    for (at, topic) in outer.iter().enumerate() {
        let found = plain.found(&Topic::of::<Text>(topic));
        let writers = found.iter().filter(|it| it.is_writer).count();
        assert_eq!(writers, usize::from(at < 2), "{topic}");
    }
    let shown: BTreeSet<String> =
        outside.routes(HANG).unwrap().into_iter().map(|it| it.topic).collect();
    assert_eq!(shown, ["/fleet/status", "/r2/camera/left"].map(str::to_owned).into());
    let theirs = publisher(&node, "fleet/secret");
    // What was made after it on the same channel is known, and so it would be.
    let after = publisher(&node, "r2/camera/left");
    inside[0].wait_for_publishers(2, HANG).unwrap();
    assert_eq!(inside[2].matched(), 1);
    drop(after);
    say(&theirs, "an intruder");
    say(&publishers[2], "the owner");
    hears(&listener, &inside[2], &["the owner"]);

    // Nor is it set from outside; and where an engine carries it, the network sees a number.
    outside.set_route("/r2/odom", Some("cyclonedds"), HANG).unwrap();
    outside.set_route("/fleet/secret", Some("cyclonedds"), HANG).unwrap();
    let transport = |topic: &str| {
        let routes = talks.routes(HANG).unwrap();
        let own = routes.into_iter().find(|it| it.topic == topic && it.publisher.node == "/talker");
        own.unwrap().transport.unwrap()
    };
    assert_eq!((&*transport("/odom"), &*transport("/fleet/secret")), ("shm", "shm"));
    talks.set_route("/odom", Some("cyclonedds"), HANG).unwrap();
    wait_until("it goes over", || transport("/odom") == "cyclonedds");
    say(&publishers[3], "by an engine");
    hears(&listener, &inside[3], &["by an engine"]);
    wait_until("it is found", || plain.topics().iter().any(|it| it.starts_with("tsuji/inside/")));
    // By their names it has those of the process outside: two readers and a writer.
    let mut shown = plain.topics();
    shown.retain(|it| it.contains("odom") || it.contains("secret"));
    shown.sort();
    assert_eq!(shown, ["rt/fleet/secret", "rt/fleet/secret", "rt/r2/odom"]);
}

#[test]
fn what_leaves_less_often_is_whole_inside_and_lacks_nothing_outside() {
    let _watchdog = Watchdog::start("an export with a rate");
    let folder = Folder::new();
    let exports = format!(r#"{R2}<export topic="/camera/**" rate="2"/><export topic="/odom"/>"#);
    let (talks, listens) =
        (process(&folder, Some(66), &exports), process(&folder, Some(66), &exports));
    let (talker, listener) = (talks.node("talker").unwrap(), listens.node("listener").unwrap());
    let pictures = publisher(&talker, "camera/left");
    let odometry = publisher(&talker, "odom");
    let own = subscription(&talker, "camera/left");
    let [inside, moved] = ["camera/left", "odom"].map(|it| subscription(&listener, it));
    let outside = process(&folder, Some(66), "");
    let station = outside.node("station").unwrap();
    let heard = subscription(&station, "r2/camera/left");
    let plain = Plain::join(66);
    let wire = Topic::of::<Text>("r2/camera/left");
    let plain_listener = plain.listener(&wire, keep_all());

    pictures.wait_for_subscriptions(4, HANG).unwrap();
    odometry.wait_for_subscriptions(1, HANG).unwrap();
    wait_until("each is met", || [&own, &inside, &heard].map(|it| it.matched()) == [1, 1, 1]);
    let publishers = |context: &Context, topic: &str| -> Vec<_> {
        let endpoints = context.graph().endpoints.into_iter();
        let all = endpoints.filter(|it| it.topic == topic && it.kind == EndpointKind::Publisher);
        all.map(|it| it.gid).collect()
    };
    for context in [&talks, &listens] {
        assert_eq!(publishers(context, "/camera/left"), [pictures.gid()]);
    }
    let [seen] = publishers(&outside, "/r2/camera/left")[..] else { panic!("one is seen") };
    assert_ne!(seen, pictures.gid());
    let writers = || plain.found(&wire).iter().filter(|it| it.is_writer).count();
    wait_until("it is found", || writers() == 1);

    // The two inside meet on the wire too, by another topic: what leaves is not heard inside.
    let transport = |topic: &str, node: &str| {
        let routes = talks.routes(HANG).unwrap();
        let is_meant = |it: &tsuji::RouteReport| it.topic == topic && it.subscription.node == node;
        routes.into_iter().find(is_meant).and_then(|it| it.transport)
    };
    for topic in ["/odom", "/camera/left"] {
        talks.set_route(topic, Some("cyclonedds"), HANG).unwrap();
    }
    for (topic, node) in [("/odom", "/listener"), ("/camera/left", "/station")] {
        wait_until(topic, || transport(topic, node).as_deref() == Some("cyclonedds"));
    }
    say(&odometry, "moved");
    hears(&listener, &moved, &["moved"]);
    assert_eq!(transport("/camera/left", "/listener").as_deref(), Some("shm"));

    let take_all = |subscription: &Subscription<Text>, to: &mut Vec<String>| {
        while let Some(received) = subscription.take().unwrap() {
            to.push(received.message().data.to_string());
        }
    };
    let (mut sent, mut came) = (Vec::new(), [const { Vec::new() }; 3]);
    let begun = Instant::now();
    while came[2].len() < 4 {
        let number = sent.len().to_string();
        say(&pictures, &number);
        sent.push(number);
        for (subscription, came) in [&own, &inside, &heard].into_iter().zip(&mut came) {
            take_all(subscription, came);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let at_most = begun.elapsed().as_millis() / 500 + 2;
    let counters = pictures.counters();
    let left = sent.len() - counters.held_back as usize;
    assert!(left < sent.len() && left as u128 <= at_most, "{left} of {}: {at_most}", sent.len());
    assert_eq!((counters.published, counters.dropped), (sent.len() as u64, 0));
    pictures.wait_for_acknowledgements(HANG).unwrap();
    for (subscription, (came, count)) in
        [&own, &inside, &heard].into_iter().zip(came.iter_mut().zip([sent.len(), sent.len(), left]))
    {
        wait_until("all has come", || {
            take_all(subscription, came);
            count <= came.len()
        });
        assert_eq!(subscription.counters().lost, 0);
    }
    assert_eq!((&came[0], &came[1]), (&sent, &sent));
    assert_eq!(came[2][0], "0");
    for picture in &came[2] {
        let next = Text::deserialize(&plain_listener.next().1).unwrap().data.to_string();
        assert_eq!(&next, picture);
    }

    drop(pictures);
    wait_until("nobody publishes", || [&own, &inside, &heard].map(|it| it.matched()) == [0; 3]);
    wait_until("the wire forgets it", || writers() == 0);
}

#[test]
fn what_an_export_with_a_rate_cannot_offer_is_told_and_what_is_kept_leaves_at_once() {
    let _watchdog = Watchdog::start("what a rate cannot offer");
    let folder = Folder::new();
    let robot = process(&folder, None, &format!(r#"{R2}<export topic="/**" rate="0.5"/>"#));
    let (node, outside) = (robot.node("node").unwrap(), process(&folder, None, ""));
    let station = outside.node("station").unwrap();
    let prompt = Qos { deadline: Some(Duration::from_millis(500)), ..Qos::DEFAULT };
    let told = Arc::<Mutex<Vec<PublisherEvent>>>::default();
    let telling = Arc::clone(&told);
    let options = PublisherOptions::default()
        .qos(prompt)
        .note_events(move |event| telling.lock().unwrap().push(event.clone()));
    let publisher = node.create_publisher::<Text>("odom", options).unwrap();
    let near = node.create_polled_subscription::<Text>("odom", prompt).unwrap();
    let far = station.create_polled_subscription::<Text>("r2/odom", prompt).unwrap();
    let patient = Qos { deadline: Some(Duration::from_millis(2500)), ..prompt };
    let patient = station.create_polled_subscription::<Text>("r2/odom", patient).unwrap();
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let misfits = || -> Vec<Vec<String>> {
        let told = told.lock().unwrap();
        let misfits = told.iter().filter_map(|it| match it {
            PublisherEvent::IncompatibleQos { mismatches, .. } => Some(mismatches.clone()),
            _ => None,
        });
        misfits.collect()
    };
    wait_until("it is told", || !misfits().is_empty());
    assert_eq!(misfits(), [["deadline: offered 2.5s, requested 500ms"]]);
    wait_until("two are met", || [&near, &far, &patient].map(|it| it.matched()) == [1, 0, 1]);
    let matched = |count| PublisherEvent::Matched { current: count };
    let is_told = |event: &PublisherEvent| told.lock().unwrap().contains(event);
    wait_until("both are told of", || is_told(&matched(2)));
    drop(patient);
    wait_until("one is left", || told.lock().unwrap().last() == Some(&matched(1)));

    // A state is known everywhere as it is, to whoever comes late too.
    let kept = Qos { durability: Durability::TransientLocal, ..keep_all() };
    let map = node.create_publisher::<Text>("map", kept).unwrap();
    let early = station.create_polled_subscription::<Text>("r2/map", kept).unwrap();
    early.wait_for_publishers(1, HANG).unwrap();
    for text in ["a", "b", "c"] {
        say(&map, text);
    }
    let late = station.create_polled_subscription::<Text>("r2/map", kept).unwrap();
    for subscription in [&early, &late] {
        for text in ["a", "b", "c"] {
            assert_eq!(take(&station, subscription).data.to_string(), text);
        }
    }
    assert_eq!(map.counters().held_back, 0);
}

#[test]
fn samples_that_are_held_back_show_that_their_publisher_is_alive() {
    let _watchdog = Watchdog::start("liveliness beside a rate");
    let folder = Folder::new();
    let robot = process(&folder, None, &format!(r#"{R2}<export topic="/**" rate="0.1"/>"#));
    let (node, outside) = (robot.node("node").unwrap(), process(&folder, None, ""));
    let station = outside.node("station").unwrap();
    let lease = Duration::from_secs(2);
    let manual = Qos {
        liveliness: Liveliness::ManualByTopic,
        liveliness_lease: Some(lease),
        ..Qos::DEFAULT
    };
    let dead = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&dead);
    let options = SubscriptionOptions::default().qos(manual).note_events(move |event| {
        if let SubscriptionEvent::LivelinessChanged { not_alive: 1.., .. } = event {
            counting.fetch_add(1, Ordering::Relaxed);
        }
    });
    let far = station.create_polled_subscription::<Text>("r2/odom", options).unwrap();
    let publisher = node.create_publisher::<Text>("odom", manual).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let (begun, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    while begun.elapsed() < 2 * lease {
        say(&publisher, "well");
        longest = longest.max(last.elapsed());
        last = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(publisher.counters().held_back != 0 && far.matched() == 1);
    // Unless this thread stood still.
    assert!(dead.load(Ordering::Relaxed) == 0 || lease / 2 < longest, "{longest:?}");
    wait_until("its silence is seen", || dead.load(Ordering::Relaxed) != 0);
}

#[test]
fn robots_of_which_one_has_the_others_name_before_it_keep_apart() {
    let _watchdog = Watchdog::start("nested names");
    let folder = Folder::new();
    let fleet = process(&folder, None, r#"<robot name="f" shared="/all"/>"#);
    let robot = process(&folder, None, r#"<robot name="f/r2" shared="/all"/>"#);
    let (node, other) = (fleet.node("n").unwrap(), robot.node("n").unwrap());
    let (_a, _b) = (publisher(&node, "r2/cmd"), publisher(&other, "cmd"));
    let (shared, heard) = (publisher(&node, "all"), subscription(&other, "all"));
    heard.wait_for_publishers(1, HANG).unwrap();
    shared.wait_for_subscriptions(1, HANG).unwrap();
    assert_eq!(topics(&fleet), ["/all", "/r2/cmd"]);
    assert_eq!(topics(&robot), ["/all", "/cmd"]);
    let count = |context: &Context, topic: &str| {
        context.graph().endpoints.iter().filter(|it| it.topic == topic).count()
    };
    assert_eq!((count(&fleet, "/r2/cmd"), count(&robot, "/cmd")), (1, 1));
}

#[test]
fn processes_of_a_robot_with_other_rules_are_told_so_and_those_of_others_are_not() {
    let _watchdog = Watchdog::start("other rules");
    let log = Log::install(tracing::Level::WARN);
    let folder = Folder::new();
    let _all = [R1, R2, ""].map(|it| process(&folder, None, it));
    let _same = process(&folder, None, R2);
    let _other = process(&folder, None, r#"<robot name="r2"/><export topic="/a"/>"#);
    log.wait_for("shared /fleet/**, exported - ");
    log.wait_for("shared -, exported /a");
}

#[test]
fn contexts_of_one_process_are_of_one_robot() {
    let folder = Folder::new();
    let context = |robot: &str| {
        let builder = Context::builder().runtime_dir(&folder.0).domain(64).policy(policy(R2));
        builder.interop(Interop::NONE).robot(robot).build()
    };
    let one = context("r2").unwrap();
    assert_eq!(context("r2").unwrap().robot(), Some("r2"));
    let error = context("r3").unwrap_err();
    assert!(
        error.to_string().contains("or is of another robot; allowed: the same robot"),
        "{error}"
    );
    drop(one);
    assert_eq!(context("").unwrap().robot(), None);
}

#[test]
fn what_is_no_robots_name_is_refused() {
    for name in ["r-2", "/r2", "2r"] {
        let error = Context::builder().robot(name).isolated().build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let expect = format!("robot: {name:?} is no name of a robot; allowed: letters, digits");
        assert!(error.to_string().starts_with(&expect), "{error}");
    }
}
