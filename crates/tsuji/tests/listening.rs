//! Where memory is preferred no engine is loaded before somebody is there to speak with: a socket
//! listens in its place.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::{Command, Stdio};

use house::{Child, Folder, HANG, Watchdog, heard, keep_all, take_until, tell, wait_until};
use tsuji::Interop;
use tsuji::{Context, KNOWN_TRANSPORTS, Publisher, PublisherOptions, Qos};
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_platform::multicast::GroupSocket;
use tsuji_platform::process::thread_names;

const LISTENS: &str = "listens for others; no engine yet";

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "be alone, then not" => be_alone_then_not(),
        "send" => send(),
        "receive" => receive(),
        other => panic!("{other}"),
    }
}

/// A policy that prefers memory, with settings of the transport.
fn policy(settings: &[(&str, &str)]) -> String {
    let mut text = "<tsuji prefer=\"memory\"><transport name=\"cyclonedds\">".to_owned();
    for (key, value) in settings {
        write!(text, "<set key=\"{key}\" value=\"{value}\"/>").unwrap();
    }
    text + "</transport></tsuji>"
}

const ON_LOOPBACK: &[(&str, &str)] = &[("interfaces", "lo"), ("multicast", "true")];

/// A process that speaks to foreign nodes.
fn process(folder: &Folder, domain: u32, policy: &str) -> Context {
    let policy = tsuji_policy::load("test", policy.as_bytes(), KNOWN_TRANSPORTS).unwrap();
    let builder = Context::builder().runtime_dir(&folder.0).domain(domain).policy(policy);
    builder.interop(Interop::RTPS).isolated().build().unwrap()
}

fn activity(context: &Context) -> Option<String> {
    let reports = context.transports();
    reports.into_iter().find(|it| it.name == "cyclonedds").unwrap().activity
}

/// Waits until the wire is joined, and answers why it was.
#[track_caller]
fn joined(context: &Context) -> String {
    wait_until("the wire is joined", || activity(context).unwrap() != LISTENS);
    activity(context).unwrap()
}

/// A process of another folder that has joined from the beginning, with a publisher.
fn other(folder: &Folder, domain: u32) -> (Context, Publisher<UInt64>) {
    let context = process(folder, domain, &policy(ON_LOOPBACK).replace("memory", "latency"));
    let node = context.node("other").unwrap();
    (
        context,
        node.create_publisher::<UInt64>(
            "other",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap(),
    )
}

#[track_caller]
fn check_other_is_found(context: &Context) {
    let found = context.wait_for_graph(HANG, |graph| {
        graph.endpoints.iter().any(|it| it.topic == "/other").then_some(())
    });
    assert!(found.unwrap().is_some(), "{:?}", context.graph());
}

/// The group of a domain, as whoever is on loopback hears it.
fn group(domain: u16) -> GroupSocket {
    let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7400 + 250 * domain);
    GroupSocket::join(group, &["lo".to_owned()], 1).unwrap()
}

/// Whether a thread of the engine is there, by the names that it gives them.
fn has_engine() -> bool {
    let names = thread_names().unwrap().into_values();
    names.into_iter().any(|name| ["recv", "recvMC", "tev", "gc"].contains(&name.as_str()))
}

fn be_alone_then_not() {
    let context = house::context();
    let node = context.node("alone").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    let other = node.create_polled_subscription::<UInt64>("other", keep_all()).unwrap();
    // What stays in the process, and looking for others, needs no engine.
    publisher.publish(UInt64 { data: 1 }).unwrap();
    assert_eq!(subscription.take().unwrap().unwrap().view().data, 1);
    assert_eq!(context.settle(HANG).unwrap(), 0);
    assert_eq!((activity(&context).as_deref(), has_engine()), (Some(LISTENS), false));
    let (threads, resident_kib) = (house::threads(), house::resident_kib());
    tell("alone");
    let why = joined(&context);
    assert!(why.starts_with("joined because a participant"), "{why}");
    assert!(why.ends_with("was heard (Cyclone DDS)"), "{why}");
    take_until(&node, &other, |received| received.view().data == 7);
    let (threads, resident_kib) =
        (house::threads() - threads, house::resident_kib().saturating_sub(resident_kib));
    assert!(has_engine() && 4 <= threads, "{threads} threads more");
    eprintln!("the engine took {threads} threads and {resident_kib} KiB");
    tell("not alone");
}

#[test]
fn no_engine_is_there_before_anybody_else_is() {
    let _watchdog = Watchdog::start("no engine before anybody else");
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("policy.xml");
    std::fs::write(&file, policy(ON_LOOPBACK)).unwrap();
    let private = folder.0.join("run");
    let environment = [
        ("ROS_DOMAIN_ID", "45"),
        ("TSUJI_INTEROP", "rtps"),
        ("TSUJI_POLICY", file.to_str().unwrap()),
    ];
    let child = Child::start_in(&[], &private, "be alone, then not", &environment);
    child.expect("alone");
    let there = Folder::new();
    let (_context, publisher) = other(&there, 45);
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 7 }).unwrap();
    child.expect("not alone");
    child.finish();
}

#[test]
fn two_who_only_listen_find_each_other_by_their_connect_attempts() {
    let _watchdog = Watchdog::start("two who only listen");
    let (here, there) = (Folder::new(), Folder::new());
    let one = process(&here, 46, &policy(ON_LOOPBACK));
    // In the folder of the first nobody has to be woken.
    let near = process(&here, 46, &policy(ON_LOOPBACK));
    assert_eq!(near.settle(HANG).unwrap(), 1);
    assert_eq!(activity(&one).as_deref(), Some(LISTENS));
    assert_eq!(activity(&near).as_deref(), Some(LISTENS));
    let node = one.node("one").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    let two = process(&there, 46, &policy(ON_LOOPBACK));
    let publisher = two.node("two").unwrap().create_publisher::<UInt64>("t", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 5 }).unwrap();
    take_until(&node, &subscription, |received| received.view().data == 5);
    assert_eq!(publisher.matched(), 1);
    let why = [joined(&one), joined(&near), joined(&two)];
    assert!(why.iter().any(|it| it.contains("another process of tsuji")), "{why:?}");
}

#[test]
fn garbage_is_passed_over() {
    let _watchdog = Watchdog::start("garbage is passed over");
    let folder = Folder::new();
    let context = process(&folder, 47, &policy(ON_LOOPBACK));
    let group = group(47);
    let huge = vec![0x52; 60_000];
    let rtps_3 = b"RTPS\x03\x00\x01\x10tsjixxxxxxxx\x15\x01\x00\x00";
    let too_short = b"RTPS\x02\x01\x01\x10xxxxxxxxxxx";
    let garbage: [&[u8]; 6] = [b"", b"RTPS", too_short, &[0; 20], &huge, rtps_3];
    // More than are read at once, and no more than a socket keeps.
    for datagram in garbage.iter().chain(std::iter::repeat_n(&garbage[1], 150)) {
        group.send(datagram).unwrap();
    }
    assert_eq!(context.settle(HANG).unwrap(), 0);
    assert_eq!(activity(&context).as_deref(), Some(LISTENS));
    // What comes after all that is the first to be heeded.
    group.send(b"RTPS\x02\x01\0\0tsji________").unwrap();
    let why = joined(&context);
    assert_eq!(why, "joined because another process of tsuji at 127.0.0.1 tried to connect");
}

#[test]
fn a_port_that_somebody_keeps_is_told() {
    let _watchdog = Watchdog::start("a port that somebody keeps");
    let folder = Folder::new();
    let port = 7400 + 250 * 48;
    let _alone = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
    let why = activity(&process(&folder, 48, &policy(ON_LOOPBACK))).unwrap();
    let expect = format!("joined at once because nothing can be heard at 239.255.0.1:{port}: ");
    assert!(why.starts_with(&expect), "{why}");
    assert!(why.contains("in use"), "{why}");
}

#[test]
fn whoever_cannot_hear_others_joins_at_once() {
    let _watchdog = Watchdog::start("whoever cannot hear others");
    let (folder, there) = (Folder::new(), Folder::new());
    let check = |policy: &str, expect: Option<&str>| {
        let context = process(&folder, 49, policy);
        assert_eq!(activity(&context).as_deref(), expect, "{policy}");
        // It has.
        let (_context, _publisher) = other(&there, 49);
        check_other_is_found(&context);
    };
    let peers = [ON_LOOPBACK, &[("peers", "127.0.0.1")]].concat();
    check(&policy(&peers), Some("joined at once because peers are named: 127.0.0.1"));
    check(&policy(ON_LOOPBACK).replace("memory", "latency"), None);
}

#[test]
fn a_flow_that_needs_the_engine_ends_the_listening() {
    let _watchdog = Watchdog::start("a flow that needs the engine");
    let (folder, there) = (Folder::new(), Folder::new());
    let rule = "<rule name=\"r\" scope=\"local\" use=\"cyclonedds\"/><transport";
    let policy = policy(ON_LOOPBACK).replace("<transport", rule);
    let (one, two) = (process(&folder, 50, &policy), process(&folder, 50, &policy));
    let node = two.node("two").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    let publisher = one.node("one").unwrap().create_publisher::<UInt64>("t", keep_all()).unwrap();
    assert_eq!(two.settle(HANG).unwrap(), 1);
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 3 }).unwrap();
    take_until(&node, &subscription, |received| received.view().data == 3);
    let why = [joined(&one), joined(&two)];
    // The other may have heard the first before its own began.
    assert!(why.contains(&"joined because its engine has started".to_owned()), "{why:?}");
    // From then on others are found.
    let (_context, _publisher) = other(&there, 50);
    check_other_is_found(&one);
    check_other_is_found(&two);
}

/// Answers why it joined, when the flow was up.
fn tell_why(context: &Context) {
    tell(&joined(context));
    heard();
}

fn send() {
    // The network is made meanwhile.
    heard();
    let context = house::context();
    assert_eq!(activity(&context).as_deref(), Some(LISTENS));
    tell("listens");
    let node = context.node("sender").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 11 }).unwrap();
    tell_why(&context);
}

fn receive() {
    heard();
    let context = house::context();
    let node = context.node("receiver").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    take_until(&node, &subscription, |received| received.view().data == 11);
    tell_why(&context);
}

/// Runs a program in the network of a process.
#[track_caller]
fn in_network_of(child: &Child, command: &str) {
    let pid = child.pid.to_string();
    let words = ["-t", &pid, "-n"].into_iter().chain(command.split_whitespace());
    assert!(Command::new("nsenter").args(words).status().unwrap().success(), "{command}");
}

/// Whether this machine lets the test have networks of its own.
fn is_allowed() -> bool {
    let script = "ip link add v type veth peer name w && nsenter -t $$ -n ip link show v";
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", script]).stdout(Stdio::null());
    let is_allowed = command.status().is_ok_and(|status| status.success());
    if !is_allowed {
        eprintln!("skipped: not allowed here: unshare -n, ip, nsenter");
    }
    is_allowed
}

/// The two networks, and the link between them, are gone with the children.
#[test]
fn two_hosts_where_both_only_listen_find_each_other() {
    if !is_allowed() {
        return;
    }
    let _watchdog = Watchdog::start("two hosts");
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("policy.xml");
    std::fs::write(&file, "<tsuji prefer=\"memory\"/>").unwrap();
    let environment = [
        ("ROS_DOMAIN_ID", "51"),
        ("TSUJI_INTEROP", "rtps"),
        ("TSUJI_POLICY", file.to_str().unwrap()),
    ];
    let start =
        |role: &str| Child::start_in(&["unshare", "-n"], &folder.0.join(role), role, &environment);
    let (mut one, mut two) = (start("send"), start("receive"));
    let link = format!("ip link add eth0 type veth peer name eth0 netns {}", two.pid);
    in_network_of(&one, &link);
    for (child, address) in [(&one, "10.45.0.1/24"), (&two, "10.45.0.2/24")] {
        in_network_of(child, "ip link set lo up");
        in_network_of(child, &format!("ip addr add {address} dev eth0"));
        in_network_of(child, "ip link set eth0 up");
    }
    one.say("go");
    one.expect("listens");
    two.say("go");
    let why = [one.line(), two.line()];
    assert!(why[0].contains(" at 10.45.0.2 ") && why[1].contains(" at 10.45.0.1 "), "{why:?}");
    // The first may try again when the second has just begun to listen.
    assert!(why.iter().any(|it| it.ends_with("tried to connect")), "{why:?}");
    for mut child in [one, two] {
        child.say("end");
        child.finish();
    }
}
