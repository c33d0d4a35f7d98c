//! Tsuji with Fast DDS as what speaks RTPS: to foreign ROS 2 nodes of ros2-client, and to tsuji. Where the
//! plug-in was not built (`scripts/fastdds`) these tests do nothing, but with `TSUJI_FASTDDS` set they fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;
#[path = "house/ros2_client.rs"]
mod ros2_client;

use std::path::Path;
use std::thread;
use std::time::Duration;

use house::foreign::{Plain, Topic, next};
use house::links::{ends, settled_on};
use house::log::Log;
use house::{
    Folder, HANG, Peer, Watchdog, best_effort, keep_all, keep_last, ros_wheels, take_until,
    wait_until,
};
use ros2_client::Side;
use tsuji::{Context, Durability, Message, Qos, Role, RouteReport};
use tsuji_core::{
    DraftPolicy, Interop, Origin, Policy, RtpsEngine, TransportId, TransportSettings,
};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::std_msgs::msg::{String as Text, UInt64};

/// What speaks, where its plug-in was built. Beyond domain 101 the ports are among those that the system gives to anybody.
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn side(domain: u32) -> Option<Side> {
    let folder = Folder::new();
    let offered = folder.process().transports();
    let fast = offered.iter().find(|it| it.name == "fastdds").unwrap();
    if !fast.is_installed && std::env::var_os("TSUJI_FASTDDS").is_none() {
        eprintln!("{}: not run", fast.trouble.as_deref().unwrap());
        return None;
    }
    Some(Side { engine: RtpsEngine::FastDds, domain })
}

#[test]
fn a_foreign_talker_is_heard_in_order_and_without_a_gap() {
    let Some(side) = side(70) else { return };
    ros2_client::a_foreign_talker_is_heard_in_order_and_without_a_gap(side);
}

#[test]
fn a_foreign_listener_hears_beside_one_of_tsuji() {
    let Some(side) = side(71) else { return };
    ros2_client::a_foreign_listener_hears_beside_one_of_tsuji(side);
}

#[test]
fn what_comes_by_shared_memory_is_not_delivered_again() {
    let Some(side) = side(72) else { return };
    ros2_client::what_comes_by_shared_memory_is_not_delivered_again(side);
}

#[test]
fn late_joiners_get_what_was_said_before_both_ways() {
    let Some(side) = side(73) else { return };
    ros2_client::late_joiners_get_what_was_said_before_both_ways(side);
}

#[test]
fn pictures_go_both_ways() {
    let Some(side) = side(74) else { return };
    ros2_client::pictures_go_both_ways(side);
}

#[test]
fn a_talker_killed_in_a_picture_leaves_no_trace_of_it() {
    let Some(side) = side(75) else { return };
    ros2_client::a_talker_killed_in_a_picture_leaves_no_trace_of_it(side);
}

#[test]
fn foreign_servers_answer_and_foreign_clients_are_answered() {
    let Some(side) = side(76) else { return };
    ros2_client::foreign_servers_answer_and_foreign_clients_are_answered(side);
}

#[test]
fn each_sees_the_others_nodes_and_topics() {
    let Some(side) = side(77) else { return };
    ros2_client::each_sees_the_others_nodes_and_topics(side);
}

/// The foreign node is on Cyclone DDS, which sees what is said of tsuji's endpoints. That it goes Fast DDS sees
/// at the end of its lease.
#[test]
fn a_foreign_node_on_cyclone_dds_hears_is_heard_and_leaves() {
    let Some(side) = side(80) else { return };
    let _watchdog = Watchdog::start("a foreign node on Cyclone DDS");
    let folder = Folder::new();
    let context = side.context(&folder);
    let node = context.node("here").unwrap();
    let second = Duration::from_secs(1);
    let said = Qos {
        durability: Durability::TransientLocal,
        deadline: Some(2 * second),
        lifespan: Some(20 * second),
        liveliness_lease: Some(5 * second),
        ..keep_last(3)
    };
    let publisher = node.create_publisher::<Text>("ours", said).unwrap();
    let text = |data: &str| Text { data: data.to_owned() };
    publisher.publish(text("before")).unwrap();
    let plain = Plain::join(side.domain);
    let (ours, theirs) = (Topic::of::<Text>("ours"), Topic::of::<Text>("theirs"));
    wait_until("tsuji's writer is found", || plain.found(&ours).len() == 1);
    let found = plain.found(&ours).remove(0);
    let offered = found.qos.offered();
    assert_eq!((offered.deadline, offered.lifespan), (said.deadline, said.lifespan));
    assert_eq!(
        (offered.liveliness_lease, offered.durability),
        (said.liveliness_lease, said.durability)
    );
    let user_data = String::from_utf8_lossy(&found.user_data).into_owned();
    assert!(
        user_data.contains("typehash=RIHS01_") && user_data.contains("tsujigid="),
        "{user_data}"
    );
    let inlet = plain.inlet(&ours, Qos { durability: Durability::TransientLocal, ..keep_all() });
    assert_eq!(next(&*inlet).1[..], text("before").to_vec().unwrap()[..]);
    let talker = plain.talker(&theirs, keep_all());
    for qos in [keep_all(), best_effort(100)] {
        let subscription = node.create_polled_subscription::<Text>("theirs", qos).unwrap();
        talker.wait_for_readers(1);
        subscription.wait_for_publishers(1, HANG).unwrap();
        talker.say(&text("one"));
        take_until(&node, &subscription, |received| received.view().data == "one");
        let routes = context.routes(HANG).unwrap();
        let route = routes.iter().find(|it| it.topic == "/theirs").unwrap();
        assert_eq!((route.transport.as_deref(), route.peer.as_str()), (Some("fastdds"), "cyclone"));
        drop(subscription);
        talker.wait_for_readers(0);
    }
    drop((talker, inlet));
    drop(plain);
    wait_until("it is gone", || context.routes(HANG).unwrap().is_empty());
}

/// A context that has no link to other processes but the one that speaks.
fn alone_on_the_wire(side: Side, folder: &Folder) -> Context {
    let builder = side.builder(folder).transports(|mut built| {
        built.retain(|it| it.id().as_str() == "fastdds");
        built
    });
    builder.build().unwrap()
}

#[test]
fn processes_of_tsuji_call_each_other_over_the_wire() {
    let Some(side) = side(81) else { return };
    let _watchdog = Watchdog::start("services over the wire");
    let folder = Folder::new();
    let (here, there) = (alone_on_the_wire(side, &folder), alone_on_the_wire(side, &folder));
    let served = there.node("adder").unwrap();
    let answer = |it: std::sync::Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b };
    let _service = served.create_service::<AddTwoInts>("add", answer).unwrap();
    let spinner = thread::spawn(move || tsuji::spin(&served));
    // Each gets what it asked for, though all replies come to both.
    thread::scope(|scope| {
        for client in 0..2 {
            let node = here.node(&format!("client_{client}")).unwrap();
            scope.spawn(move || {
                let client = node.create_client::<AddTwoInts>("add").unwrap();
                client.wait_for_service(HANG).unwrap();
                for number in 0..100 {
                    let request = AddTwoIntsRequest { a: number, b: 1000 };
                    assert_eq!(client.call(request, HANG).unwrap().sum, number + 1000);
                }
                let routes = node.context().routes(HANG).unwrap();
                assert!(routes.iter().any(|it| it.topic == "/add"));
                let is_by_it = |it: &RouteReport| it.transport.as_deref() == Some("fastdds");
                assert!(routes.iter().all(is_by_it), "{routes:?}");
            });
        }
    });
    there.shutdown();
    spinner.join().unwrap().unwrap();
}

/// Calls while each half of a service stands still on any link, and while each changes its link alone.
#[test]
fn calls_are_answered_whatever_links_the_halves_of_a_service_take() {
    let Some(side) = side(85) else { return };
    let _watchdog = Watchdog::start("the halves of a service");
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    // Who publishes decides, so requests follow the policy of the client, and replies that of the server.
    let process = |name: &str| {
        let (file, new) = (folder.0.join(name), folder.0.join("new"));
        let write = move |path: &Path, link: &str| {
            let rule = format!(r#"<rule topic="/add" use="{link}"/>"#);
            std::fs::write(path, side.policy(&rule)).unwrap();
        };
        write(&file, "shm");
        let builder = Context::builder().runtime_dir(&folder.0).domain(side.domain);
        let builder = builder.policy_file(&file).interop(Interop::RTPS).isolated();
        let change = move |link: &str| {
            write(&new, link);
            std::fs::rename(&new, &file).unwrap();
        };
        (builder.build().unwrap(), change)
    };
    let ((here, requests_by), (there, replies_by)) = (process("here.xml"), process("there.xml"));
    let served = there.node("adder").unwrap();
    let answer = |it: std::sync::Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b };
    let _service = served.create_service::<AddTwoInts>("add", answer).unwrap();
    let spinner = thread::spawn(move || tsuji::spin(&served));
    let node = here.node("client").unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    let mut number = 0;
    let mut call = || {
        number += 1;
        let request = AddTwoIntsRequest { a: number, b: 1000 };
        assert_eq!(client.call(request, HANG).unwrap().sum, number + 1000);
    };
    let links = ["fastdds", "shm", "cyclonedds"];
    for (requests, replies) in links.into_iter().flat_map(|it| links.map(|other| (it, other))) {
        let halves = [(&requests_by, Role::Request, requests), (&replies_by, Role::Reply, replies)];
        for (change, role, link) in halves {
            change(link);
            let has_changed = || {
                let routes = here.routes(HANG).unwrap();
                let mut half = routes.iter().filter(|it| it.topic == "/add" && it.role == role);
                half.all(|it| it.transport.as_deref() == Some(link) && it.handover_to.is_none())
            };
            while !has_changed() {
                call();
            }
            (0..20).for_each(|_| call());
        }
    }
    there.shutdown();
    spinner.join().unwrap().unwrap();
}

#[test]
fn flows_of_tsuji_go_by_the_wire_and_by_the_engine_beside_it() {
    let Some(side) = side(82) else { return };
    let _watchdog = Watchdog::start("both engines");
    let folder = Folder::new();
    let (here, there) = (side.context(&folder), side.context(&folder));
    // What comes before the foreign node's engine has matched is then owed to it.
    let latched = Qos { durability: Durability::TransientLocal, ..keep_all() };
    let (publisher, subscription) = ends(&here, &there, latched);
    let plain = Plain::join(side.domain);
    let topic = Topic::of::<UInt64>("n");
    let inlet = plain.inlet(&topic, latched);
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let mut number = 0;
    for link in ["fastdds", "cyclonedds", "shm"] {
        let set = here.set_route("/n", Some(link), HANG).unwrap();
        assert!(set.iter().all(|it| it.outcome.is_ok()), "{set:?}");
        let is_on_it = || {
            let routes = here.routes(HANG).unwrap();
            let near = routes.iter().find(|it| it.topic == "/n" && it.peer == "tsuji");
            near.is_some_and(|it| it.transport.as_deref() == Some(link))
        };
        wait_until(link, is_on_it);
        for _ in 0..100 {
            number += 1;
            publisher.publish(UInt64 { data: number }).unwrap();
            wait_until("it comes", || {
                let received = subscription.take().unwrap();
                received.inspect(|it| assert_eq!(it.view().data, number)).is_some()
            });
            // The foreign node gets each once, whatever link there is beside.
            assert_eq!(next(&*inlet).1[4..], number.to_le_bytes());
        }
    }
    assert!(inlet.take().unwrap().is_none());
}

/// They are not on one wire, and have shared memory.
#[test]
fn processes_that_speak_by_different_engines_meet_on_a_host() {
    let Some(side) = side(83) else { return };
    let _watchdog = Watchdog::start("different engines");
    let folder = Folder::new();
    let other = Side { engine: RtpsEngine::CycloneDds, ..side };
    let (here, there) = (side.context(&folder), other.context(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_all());
    publisher.publish(UInt64 { data: 7 }).unwrap();
    wait_until("it comes", || subscription.take().unwrap().is_some());
    let route = settled_on(&here, "/n", "shm");
    assert_eq!(route.scope, "local");
}

/// The node has shared memory, laid out as its own build has it: whoever of another build mapped it would be ended by it.
#[test]
fn a_node_on_another_build_of_fast_dds_hears_and_is_heard() {
    let Some(side) = side(86) else { return };
    let Some(python) = ros_wheels() else { return };
    let _watchdog = Watchdog::start("another build of Fast DDS");
    let folder = Folder::new();
    let node_there = Peer::ros_wheels(&python, "echo", side.domain);
    let context = side.context(&folder);
    let node = context.node("here").unwrap();
    let publisher = node.create_publisher::<Text>("ours", keep_all()).unwrap();
    let subscription = node.create_polled_subscription::<Text>("theirs", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    for number in 0..20 {
        // Each second one has many datagrams.
        let data = format!("{number} {}", "x".repeat(number % 2 * 1_000_000));
        publisher.publish(Text { data: data.clone() }).unwrap();
        take_until(&node, &subscription, |received| received.view().data == data);
    }
    for topic in ["/ours", "/theirs"] {
        let route = settled_on(&context, topic, "fastdds");
        assert_eq!(route.peer, "fast");
    }
    node_there.end();
}

/// Where Fast DDS cannot speak Cyclone DDS does, and says why.
#[test]
fn without_its_plugin_cyclone_dds_speaks() {
    let _watchdog = Watchdog::start("no plug-in");
    let loopback = r#"<tsuji><transport name="cyclonedds">
        <set key="interfaces" value="lo"/><set key="multicast" value="true"/>
    </transport></tsuji>"#;
    let loopback =
        tsuji_policy::load("test", loopback.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    let origin = Origin { file: "test".into(), line: 1 };
    let missing = TransportSettings {
        transport: TransportId::new("fastdds"),
        plugin: Some("/nowhere/libtsuji_transport_fastdds.so".into()),
        settings: Vec::new(),
        origin,
    };
    let mut draft: DraftPolicy = loopback.parts().clone();
    draft.transports.push(missing);
    let policy = Policy::new(draft).unwrap();
    let log = Log::install(tracing::Level::WARN);
    for (count, engine) in (1..).zip([RtpsEngine::FastDds, RtpsEngine::Both]) {
        let folder = Folder::new();
        let builder = Context::builder().runtime_dir(&folder.0).domain(84);
        let builder = builder.policy(policy.clone()).rtps_engine(engine);
        let context = builder.interop(Interop::RTPS).isolated().build().unwrap();
        assert_eq!(context.rtps_engine(), RtpsEngine::CycloneDds);
        let told = log.with("Cyclone DDS speaks to foreign ROS 2 nodes");
        assert_eq!(told.len(), count, "{told:?}");
        let newest = told.last().unwrap();
        assert!(newest.contains("/nowhere/libtsuji_transport_fastdds.so"), "{told:?}");
        assert!(newest.contains("tsuji-transport-fastdds"), "{told:?}");
    }
}
