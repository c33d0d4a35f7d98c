//! Processes of tsuji on different hosts: they find each other by RTPS, agree over the wire, and what
//! flows between them arrives whatever becomes of the network.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::collections::HashMap;
use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use house::lan::{LINK, Machine, two_machines, two_machines_with_a_link};
use house::log::Log;
use house::relay::{self, LinkSpec};
use house::wait_until;
use house::{Child, Folder, HANG, Watchdog, heard, keep_all, keep_last, take_until, tell};
use tsuji::{Client, Durability, Node, Publisher, PublisherOptions, Qos, Service, Subscription};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::sensor_msgs::msg::Image;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "hold" => drop(heard()),
        "relay" => relay::play(),
        name => obey(name),
    }
}

/// A request with it is not answered.
const NEVER_ANSWERED: i64 = 1_000_000;

/// What a process has made so far.
struct Actor {
    node: Node,
    publishers: HashMap<String, Arc<Publisher<Image>>>,
    subscriptions: HashMap<String, Subscription<Image>>,
    clients: HashMap<String, Client<AddTwoInts>>,
    publishing: HashMap<String, JoinHandle<u64>>,
}

/// Does what the parent says, one line after the other, and answers each with a line.
fn obey(name: &str) {
    let log = Log::install(tracing::Level::DEBUG);
    let context = house::context();
    let node = context.node(name).unwrap();
    let served = context.node(&format!("{name}_server")).unwrap();
    let adding = |it: Arc<AddTwoIntsRequest>| {
        if it.a == NEVER_ANSWERED {
            loop {
                std::thread::park();
            }
        }
        AddTwoIntsResponse { sum: it.a + it.b }
    };
    let service: Service<AddTwoInts> =
        served.create_service(&format!("{name}/add"), adding).unwrap();
    let spinning = std::thread::spawn(move || tsuji::spin(&served));
    let mut actor = Actor {
        node,
        publishers: HashMap::new(),
        subscriptions: HashMap::new(),
        clients: HashMap::new(),
        publishing: HashMap::new(),
    };
    loop {
        let line = heard();
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            [] => break,
            ["log", ..] => log.wait_for(line.split_once(' ').unwrap().1),
            _ => actor.obey(&words),
        };
        tell(&answer);
    }
    context.shutdown();
    let _ = spinning.join();
    drop(service);
}

impl Actor {
    fn obey(&mut self, words: &[&str]) -> String {
        let context = self.node.context().clone();
        let number = |word: &str| word.parse::<u64>().unwrap();
        match words {
            ["advertise", topic] => {
                self.publishers.insert(
                    (*topic).into(),
                    Arc::new(
                        self.node
                            .create_publisher(
                                topic,
                                PublisherOptions::default().qos(qos(topic)).max_blocking(HANG),
                            )
                            .unwrap(),
                    ),
                );
            }
            ["subscribe", topic] => {
                let subscription = self.node.create_polled_subscription(topic, qos(topic)).unwrap();
                self.subscriptions.insert((*topic).into(), subscription);
            }
            ["subscribe_to_many", first, last] => {
                for number in number(first)..=number(last) {
                    let topic = format!("many{number}");
                    let subscription =
                        self.node.create_polled_subscription(&topic, Qos::DEFAULT).unwrap();
                    self.subscriptions.insert(topic, subscription);
                }
            }
            ["endpoints", count] => {
                let count = number(count) as usize;
                let enough = context
                    .wait_for_graph(HANG, |graph| (graph.endpoints.len() == count).then_some(()));
                assert!(enough.unwrap().is_some(), "{}", context.graph().endpoints.len());
            }
            ["readers", topic, count] => {
                let publisher = &self.publishers[*topic];
                let count = number(count) as usize;
                wait_until("its readers", || publisher.matched() == count);
            }
            ["writers", topic, count] => {
                let subscription = &self.subscriptions[*topic];
                let count = number(count) as usize;
                wait_until("its writers", || subscription.matched() == count);
            }
            // Publishes on a thread of its own, so that this one can take.
            ["publish", topic, first, last, bytes] => {
                let publisher = Arc::clone(&self.publishers[*topic]);
                let (all, bytes) = (number(first)..=number(last), number(bytes) as usize);
                let publish = move || {
                    all.map(|it| u64::from(publisher.publish(picture(it, bytes)).is_err())).sum()
                };
                self.publishing.insert((*topic).into(), std::thread::spawn(publish));
            }
            ["published", topic] => {
                return self.publishing.remove(*topic).unwrap().join().unwrap().to_string();
            }
            ["take", topic, first, last, bytes] => {
                let (mut next, last) = (number(first), number(last));
                take_until(&self.node, &self.subscriptions[*topic], |received| {
                    let view = received.view();
                    let is_whole = view.data.iter().all(|byte| *byte == next as u8);
                    assert!(is_whole && view.data.len() as u64 == number(bytes), "{topic} {next}");
                    assert_eq!(u64::from(view.width), next, "{topic}");
                    next += 1;
                    last < next
                });
            }
            ["empty", topic] => {
                let taken = self.subscriptions[*topic].take().unwrap();
                assert!(taken.is_none(), "{:?}", taken.map(|it| it.view().width));
            }
            ["sent", topic] => return format!("{:?}", self.publishers[*topic].counters()),
            ["received", topic] => return format!("{:?}", self.subscriptions[*topic].counters()),
            ["close", topic] => {
                self.publishers.remove(*topic);
                self.subscriptions.remove(*topic);
            }
            ["call", service, a, b] => {
                let node = &self.node;
                let client = self.clients.entry((*service).into());
                let client = client.or_insert_with(|| node.create_client(*service).unwrap());
                client.wait_for_service(HANG).unwrap();
                let request = AddTwoIntsRequest { a: number(a) as i64, b: number(b) as i64 };
                return match client.call(request, HANG) {
                    Ok(response) => response.sum.to_string(),
                    Err(error) => format!("{:?}", error.kind()),
                };
            }
            ["routes", topic] => {
                let mut said = String::new();
                let routes = context.routes(HANG).unwrap().into_iter();
                for it in routes.filter(|it| it.topic == format!("/{topic}")) {
                    let clock = it.latency.as_ref().map_or("none", |it| &it.clock);
                    let transport = it.transport.as_deref().unwrap_or("none");
                    let _ = write!(
                        said,
                        "[{} {transport} {} {} {clock} to {} sent {} samples {} lost {} \
                         duplicates {}]",
                        it.scope,
                        it.peer,
                        state(&it.state),
                        it.subscription.node,
                        it.sent,
                        it.samples,
                        it.lost,
                        it.duplicates
                    );
                    assert!(!it.because.is_empty(), "{it:?}");
                }
                return said;
            }
            ["nodes", count] => {
                let found = context.wait_for_graph(HANG, |graph| {
                    let nodes = graph.nodes.iter();
                    let nodes = nodes.map(|it| {
                        let (name, process) = (it.fully_qualified_name(), &it.process);
                        format!("{name} {} {}", process.pid, process.program)
                    });
                    let nodes: Vec<_> = nodes.collect();
                    (nodes.len() as u64 == number(count)).then_some(nodes)
                });
                return found.unwrap().expect("so many nodes").join("; ");
            }
            ["holds"] => return holds(),
            ["holds", ..] => {
                let expect = words[1..].join(" ");
                // Whoever let something go a moment before may still have had a thread for it.
                let is_no_more = || {
                    let (now, then) = (numbers(&holds()), numbers(&expect));
                    now.iter().zip(&then).all(|(now, then)| now <= then)
                };
                wait_until(&format!("{expect}, not {}", holds()), is_no_more);
            }
            ["shut_down"] => context.shutdown(),
            ["settle"] => return context.settle(HANG).unwrap().to_string(),
            ["peers"] => return context.peer_processes().len().to_string(),
            ["unreachable_peers"] => return format!("{:?}", context.unreachable_peers()),
            other => panic!("{other:?}"),
        }
        "done".to_owned()
    }
}

/// What grows when something is forgotten.
fn holds() -> String {
    format!("{} threads {} descriptors", house::threads(), house::descriptors())
}

/// The numbers in what [`holds`] says.
fn numbers(said: &str) -> Vec<u64> {
    said.split_whitespace().filter_map(|it| it.parse().ok()).collect()
}

fn state(state: &impl Debug) -> String {
    format!("{state:?}").to_lowercase()
}

/// A topic is named after what it promises.
fn qos(topic: &str) -> Qos {
    match topic.starts_with("latched") {
        true => Qos { durability: Durability::TransientLocal, ..keep_last(100) },
        false => keep_all(),
    }
}

fn picture(number: u64, bytes: usize) -> Image {
    Image { width: number as u32, data: vec![number as u8; bytes], ..Image::default() }
}

/// A process on one of the hosts, as the test sees it.
struct Process(Child);

impl Process {
    fn on(machine: &Machine, name: &str) -> Self {
        Self::with(machine, name, &[])
    }

    fn with(machine: &Machine, name: &str, environment: &[(&str, &str)]) -> Self {
        Self(machine.start_process(name, environment))
    }

    #[track_caller]
    fn ask(&mut self, line: &str) -> String {
        self.0.say(line);
        self.0.line()
    }

    #[track_caller]
    fn does(&mut self, line: &str) {
        assert_eq!(self.ask(line), "done", "{line}");
    }

    #[track_caller]
    fn all_do(&mut self, lines: &[&str]) {
        lines.iter().for_each(|line| self.does(line));
    }
}

/// Lets `from` publish pictures and `to` take them, all and in order.
#[track_caller]
fn exchange(from: &mut Process, to: &mut Process, topic: &str, range: [u32; 2], bytes: usize) {
    let [first, last] = range;
    from.does(&format!("publish {topic} {first} {last} {bytes}"));
    to.does(&format!("take {topic} {first} {last} {bytes}"));
    assert_eq!(from.ask(&format!("published {topic}")), "0");
    to.does(&format!("empty {topic}"));
}

/// What two hosts do that have found each other.
#[track_caller]
fn check_all(a: &mut Process, b: &mut Process) {
    a.all_do(&["advertise there", "subscribe back"]);
    b.all_do(&["subscribe there", "advertise back"]);
    for (one, publishes) in [(&mut *a, "there"), (&mut *b, "back")] {
        let takes = if publishes == "there" { "back" } else { "there" };
        one.does(&format!("readers {publishes} 1"));
        one.does(&format!("writers {takes} 1"));
    }
    // Both ways at once.
    a.does("publish there 1 2000 8");
    b.does("publish back 1 2000 8");
    a.0.say("take back 1 2000 8");
    b.does("take there 1 2000 8");
    assert_eq!(a.0.line(), "done");
    assert_eq!([a.ask("published there"), b.ask("published back")], ["0", "0"]);
    exchange(a, b, "there", [2001, 2020], PICTURE);
    exchange(b, a, "back", [2001, 2020], PICTURE);
    for (topic, to) in [("there", "/two"), ("back", "/one")] {
        let expect = format!(
            "[remote cyclonedds tsuji active wall to {to} sent 2020 samples 2020 lost 0 duplicates 0]"
        );
        let asked = format!("routes {topic}");
        assert_eq!([a.ask(&asked), b.ask(&asked)], [&*expect, &expect], "{topic}");
    }
    let nodes = [a.ask("nodes 4"), b.ask("nodes 4")];
    assert_eq!(nodes[0], nodes[1]);
    for (name, process) in [("/one ", &*a), ("/two_server ", &*b)] {
        let expect = format!("{name}{} hosts-", process.0.pid);
        assert!(nodes[0].contains(&expect), "{expect}: {nodes:?}");
    }
    for number in 0..20 {
        let sum = (2 * number + 1).to_string();
        assert_eq!(a.ask(&format!("call two/add {number} {}", number + 1)), sum);
        assert_eq!(b.ask(&format!("call one/add {} {number}", number + 1)), sum);
    }
    assert_eq!([a.ask("unreachable_peers"), b.ask("unreachable_peers")], ["[]", "[]"]);
}

const PICTURE: usize = 2_360_000;

#[test]
fn two_hosts_meet_by_multicast() {
    let _watchdog = Watchdog::start("two hosts with multicast");
    let Some((one, two)) = two_machines() else { return };
    check_all(&mut Process::on(&one, "one"), &mut Process::on(&two, "two"));
}

/// Neither host can use multicast.
fn without_multicast() -> Option<(Machine, Machine)> {
    let machines = two_machines()?;
    for machine in [&machines.0, &machines.1] {
        machine.run(&format!("ip link set {LINK} multicast off"));
    }
    Some(machines)
}

fn with_peer(machine: &Machine, name: &str, peer: &Machine) -> Process {
    Process(machine.start_process(name, &[("ROS_STATIC_PEERS", peer.address)]))
}

#[test]
fn two_hosts_meet_as_static_peers() {
    let _watchdog = Watchdog::start("two hosts with static peers");
    let Some((one, two)) = without_multicast() else { return };
    check_all(&mut with_peer(&one, "one", &two), &mut with_peer(&two, "two", &one));
}

#[test]
fn it_is_enough_that_one_names_the_other() {
    let _watchdog = Watchdog::start("one static peer");
    let Some((one, two)) = without_multicast() else { return };
    check_all(&mut with_peer(&one, "one", &two), &mut Process::on(&two, "two"));
}

#[test]
fn a_peer_that_starts_later_is_found_by_who_names_it() {
    let _watchdog = Watchdog::start("a static peer that starts later");
    let Some((one, two)) = without_multicast() else { return };
    let mut a = with_peer(&one, "one", &two);
    // By then it has looked for its peers, and found none.
    assert_eq!(a.ask("settle"), "0");
    check_all(&mut a, &mut Process::on(&two, "two"));
}

#[test]
fn without_multicast_and_peers_each_host_is_alone() {
    let _watchdog = Watchdog::start("hosts that are alone");
    let Some((one, two)) = without_multicast() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    let mut c = Process::on(&one, "three");
    for process in [&mut a, &mut b] {
        process.does("advertise t");
    }
    c.does("subscribe t");
    a.does("readers t 1");
    exchange(&mut a, &mut c, "t", [1, 100], 8);
    assert_eq!([a.ask("settle"), b.ask("settle")], ["1", "0"]);
    b.does("readers t 0");
    assert_eq!([a.ask("peers"), b.ask("peers")], ["1", "0"]);
    let said = b.ask("log multicast");
    assert!(said.contains("ROS_STATIC_PEERS"), "{said}");
}

#[test]
fn who_comes_late_gets_the_history() {
    let _watchdog = Watchdog::start("late joiners of another host");
    let Some((one, two)) = two_machines() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    a.all_do(&["advertise latched", "publish latched 1 50 8"]);
    assert_eq!(a.ask("published latched"), "0");
    b.all_do(&["subscribe latched", "take latched 1 50 8", "empty latched"]);
    a.does("readers latched 1");
    exchange(&mut a, &mut b, "latched", [51, 150], 100_000);
    // Another process of that host gets what a newcomer is owed, and the first nothing twice.
    let mut c = Process::on(&two, "three");
    c.all_do(&["subscribe latched", "take latched 51 150 100000", "empty latched"]);
    a.all_do(&["readers latched 2", "publish latched 151 160 8"]);
    b.does("take latched 151 160 8");
    c.does("take latched 151 160 8");
    b.does("empty latched");
    for process in [&mut b, &mut c] {
        let said = process.ask("received latched");
        assert!(said.contains("lost: 0, duplicates: 0"), "{said}");
    }
}

/// Publishes to nobody while `a` does not reach `b`, and again when it does.
#[track_caller]
fn check_return(a: &mut Process, b: &mut Process, leave: impl Fn(), come_back: impl Fn()) {
    a.all_do(&["advertise t", "subscribe back"]);
    b.all_do(&["subscribe t", "advertise back"]);
    a.all_do(&["readers t 1", "writers back 1"]);
    b.all_do(&["readers back 1", "writers t 1"]);
    exchange(a, b, "t", [1, 100], 1000);
    exchange(b, a, "back", [1, 100], 1000);
    leave();
    a.all_do(&["readers t 0", "publish t 101 110 8"]);
    assert_eq!(a.ask("published t"), "0");
    b.does("readers back 0");
    come_back();
    a.does("readers t 1");
    b.does("readers back 1");
    exchange(a, b, "t", [111, 300], 1000);
    a.does("writers back 1");
    exchange(b, a, "back", [101, 300], 1000);
    // What was published to nobody is missing at the one who has been away.
    let received = b.ask("received t");
    assert!(received.contains("received: 290,"), "{received}");
    assert!(received.contains("lost: 10, duplicates: 0"), "{received}");
    let received = a.ask("received back");
    assert!(received.contains("received: 300,"), "{received}");
    assert!(received.contains("lost: 0, duplicates: 0"), "{received}");
    assert_eq!(a.ask("call two/add 20 22"), "42");
    assert_eq!(b.ask("call one/add 20 22"), "42");
}

#[test]
fn a_host_that_returns_is_met_again() {
    let _watchdog = Watchdog::start("a host that returns");
    let Some((one, two)) = two_machines() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    let leave = || two.run(&format!("ip link set {LINK} down"));
    let come_back = || two.run(&format!("ip link set {LINK} up"));
    check_return(&mut a, &mut b, leave, come_back);
}

#[test]
fn a_peer_that_returns_is_met_again() {
    let _watchdog = Watchdog::start("a static peer that returns");
    let Some((one, two)) = without_multicast() else { return };
    let (mut a, mut b) = (with_peer(&one, "one", &two), Process::on(&two, "two"));
    let leave = || two.run(&format!("ip link set {LINK} down"));
    let come_back = || two.run(&format!("ip link set {LINK} up"));
    check_return(&mut a, &mut b, leave, come_back);
}

#[test]
fn a_short_break_costs_nothing() {
    let _watchdog = Watchdog::start("a short break");
    let Some((one, two)) = two_machines() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    a.does("advertise t");
    b.does("subscribe t");
    a.does("readers t 1");
    b.does("writers t 1");
    exchange(&mut a, &mut b, "t", [1, 100], 1000);
    for round in 0..3 {
        let first = 101 + round * 200;
        two.run(&format!("ip link set {LINK} down"));
        a.does(&format!("publish t {first} {} 10000", first + 199));
        // As much as fits is under way, to nobody.
        std::thread::sleep(Duration::from_millis(500));
        two.run(&format!("ip link set {LINK} up"));
        b.does(&format!("take t {first} {} 10000", first + 199));
        assert_eq!(a.ask("published t"), "0");
    }
    let received = b.ask("received t");
    assert!(received.contains("received: 700,"), "{received}");
    assert!(received.contains("lost: 0, duplicates: 0"), "{received}");
}

/// More than a point cloud of a large lidar.
const CLOUD: usize = 6_000_000;

#[test]
fn large_samples_arrive_over_a_link_that_loses() {
    let _watchdog = Watchdog::start("a link that loses");
    let Some((one, two, mut link)) = two_machines_with_a_link() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    a.does("advertise t");
    b.does("subscribe t");
    a.does("readers t 1");
    b.does("writers t 1");
    link.set(LinkSpec { lost_per_mille: 50, delay_us: 2000, rate: 0 });
    // As many as would use up the memory for datagrams in parts.
    exchange(&mut a, &mut b, "t", [1, 20], CLOUD);
    let [_, lost] = link.set(LinkSpec::default());
    assert!(0 < lost);
    let received = b.ask("received t");
    assert!(received.contains("lost: 0, duplicates: 0"), "{received}");
}

#[test]
fn a_command_does_not_wait_for_large_samples() {
    let _watchdog = Watchdog::start("a slow link");
    let Some((one, two, mut link)) = two_machines_with_a_link() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    let mut c = Process::on(&two, "three");
    a.all_do(&["advertise clouds", "advertise command"]);
    b.does("subscribe clouds");
    c.does("subscribe command");
    a.all_do(&["readers clouds 1", "readers command 1"]);
    b.does("writers clouds 1");
    c.does("writers command 1");
    // Each cloud takes two seconds at least.
    link.set(LinkSpec { lost_per_mille: 0, delay_us: 2000, rate: 20_000_000 });
    a.does(&format!("publish clouds 1 2 {CLOUD}"));
    b.0.say(&format!("take clouds 1 2 {CLOUD}"));
    let mut commands = 0;
    let taken = loop {
        commands += 1;
        exchange(&mut a, &mut c, "command", [commands, commands], 16);
        if let Some(line) = b.0.line_if_any() {
            break line;
        }
    };
    assert_eq!(taken, "done");
    assert!(10 < commands, "{commands} commands while large samples were under way");
    let [_, lost] = link.set(LinkSpec::default());
    assert!(0 < lost, "the link was never full");
    assert_eq!(a.ask("published clouds"), "0");
    for (process, topic) in [(&mut b, "clouds"), (&mut c, "command")] {
        let received = process.ask(&format!("received {topic}"));
        assert!(received.contains("lost: 0, duplicates: 0"), "{received}");
    }
}

#[test]
fn a_process_killed_on_another_host_holds_nobody_up() {
    let _watchdog = Watchdog::start("a killed process of another host");
    let Some((one, two)) = two_machines() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    a.does("advertise t");
    b.does("subscribe t");
    a.does("readers t 1");
    b.does("writers t 1");
    // Pictures are under way when the signal comes, and go on after it.
    a.does("publish t 1 60 4000000");
    b.does("take t 1 1 4000000");
    assert_eq!(a.ask("call two/add 1 2"), "3");
    a.0.say(&format!("call two/add {NEVER_ANSWERED} 2"));
    b.0.kill();
    assert_eq!(a.0.line(), "ServerLost", "who has called learns it too");
    assert_eq!(a.ask("published t"), "0");
    a.does("readers t 0");
    let mut c = Process::on(&two, "three");
    c.does("subscribe t");
    a.does("readers t 1");
    c.does("writers t 1");
    exchange(&mut a, &mut c, "t", [61, 65], 4_000_000);
    // The killed one, and what it had, is forgotten.
    let nodes = a.ask("nodes 4");
    assert!(nodes.contains("/three ") && !nodes.contains("/two "), "{nodes}");
}

#[test]
fn a_publisher_has_subscriptions_here_and_there() {
    let _watchdog = Watchdog::start("here and there");
    let Some((one, two)) = two_machines() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    let mut c = Process::on(&one, "three");
    a.does("advertise t");
    b.does("subscribe t");
    c.does("subscribe t");
    a.does("readers t 2");
    b.does("writers t 1");
    c.does("writers t 1");
    for (range, bytes) in [("1 1000", 8), ("1001 1020", PICTURE)] {
        a.does(&format!("publish t {range} {bytes}"));
        b.0.say(&format!("take t {range} {bytes}"));
        c.does(&format!("take t {range} {bytes}"));
        assert_eq!(b.0.line(), "done");
        assert_eq!(a.ask("published t"), "0");
    }
    for process in [&mut b, &mut c] {
        process.does("empty t");
        let received = process.ask("received t");
        assert!(received.contains("received: 1020,"), "{received}");
        assert!(received.contains("lost: 0, duplicates: 0"), "{received}");
    }
    let routes = a.ask("routes t");
    let tail = "sent 1020 samples 1020 lost 0 duplicates 0]";
    for head in [
        "[local shm tsuji active monotonic to /three",
        "[remote cyclonedds tsuji active wall to /two",
    ] {
        assert!(routes.contains(&format!("{head} {tail}")), "{routes}");
    }
    // Whoever asks hears of all flows that end at its own host or at those that it knows.
    assert_eq!(b.ask("routes t").matches("samples 1020").count(), 2);
}

#[test]
fn two_folders_of_one_host_meet_over_the_wire() {
    let _watchdog = Watchdog::start("two folders of one host");
    let Some((one, _two)) = two_machines() else { return };
    let folder = Folder::new();
    let mut a = Process::on(&one, "one");
    let mut b = Process(one.start_process_in(&folder, "two", &[]));
    check_all(&mut a, &mut b);
}

/// Loses all that one host sends to the other, until that one has given it up, and then no more.
#[track_caller]
fn lose_one_way(from: &Machine, to: &Machine, until: impl FnOnce()) {
    // It goes to a card that is not there.
    let (to, nobody) = (to.address, "02:00:00:00:00:99");
    from.run(&format!("ip neigh replace {to} lladdr {nobody} dev {LINK} nud permanent"));
    until();
    from.run(&format!("ip neigh del {to} dev {LINK}"));
}

#[test]
fn a_publisher_that_is_not_heard_for_a_while_is_heard_again() {
    let _watchdog = Watchdog::start("loss in one direction");
    let Some((one, two)) = without_multicast() else { return };
    let (mut a, mut b) = (with_peer(&one, "one", &two), with_peer(&two, "two", &one));
    a.does("advertise t");
    b.does("subscribe t");
    a.does("readers t 1");
    b.does("writers t 1");
    exchange(&mut a, &mut b, "t", [1, 100], 1000);
    lose_one_way(&one, &two, || {
        b.does("writers t 0");
        // The other way it is seen to be there, and is sent to.
        a.does("publish t 101 110 8");
        assert_eq!(a.ask("published t"), "0");
    });
    b.does("writers t 1");
    a.does("readers t 1");
    exchange(&mut a, &mut b, "t", [111, 300], 1000);
    let received = b.ask("received t");
    assert!(received.contains("received: 290,"), "{received}");
    assert!(received.contains("lost: 10, duplicates: 0"), "{received}");
    assert_eq!(a.ask("call two/add 20 22"), "42");
    assert_eq!(b.ask("call one/add 20 22"), "42");
}

#[test]
fn a_subscription_that_is_not_heard_for_a_while_is_sent_to_again() {
    let _watchdog = Watchdog::start("loss in the other direction");
    let Some((one, two)) = without_multicast() else { return };
    let (mut a, mut b) = (with_peer(&one, "one", &two), with_peer(&two, "two", &one));
    a.does("advertise t");
    b.does("subscribe t");
    a.does("readers t 1");
    b.does("writers t 1");
    exchange(&mut a, &mut b, "t", [1, 100], 1000);
    lose_one_way(&two, &one, || {
        a.does("readers t 0");
        a.does("publish t 101 110 8");
        assert_eq!(a.ask("published t"), "0");
    });
    a.does("readers t 1");
    exchange(&mut a, &mut b, "t", [111, 300], 1000);
    let received = b.ask("received t");
    assert!(received.contains("received: 290,"), "{received}");
    assert!(received.contains("lost: 10, duplicates: 0"), "{received}");
    assert_eq!(a.ask("call two/add 20 22"), "42");
    assert_eq!(b.ask("call one/add 20 22"), "42");
}

#[test]
fn whoever_is_on_either_host_meets_all() {
    let _watchdog = Watchdog::start("all with all");
    let Some((one, two)) = two_machines() else { return };
    let names = ["k", "l", "m", "n", "o", "p"];
    let on = |at: usize| [&one, &two][at % 2];
    let mut all: Vec<Process> =
        names.iter().enumerate().map(|(at, name)| Process::on(on(at), name)).collect();
    for (process, own) in all.iter_mut().zip(names) {
        process.does(&format!("advertise {own}"));
        names.iter().for_each(|it| process.does(&format!("subscribe {it}")));
    }
    for (process, own) in all.iter_mut().zip(names) {
        process.does(&format!("readers {own} 6"));
        names.iter().for_each(|it| process.does(&format!("writers {it} 1")));
    }
    for (process, own) in all.iter_mut().zip(names) {
        process.does(&format!("publish {own} 1 300 5000"));
    }
    for name in names {
        all.iter_mut().for_each(|it| it.0.say(&format!("take {name} 1 300 5000")));
        all.iter().for_each(|it| assert_eq!(it.0.line(), "done"));
    }
    for (process, own) in all.iter_mut().zip(names) {
        assert_eq!(process.ask(&format!("published {own}")), "0");
        for name in names {
            process.does(&format!("empty {name}"));
            let received = process.ask(&format!("received {name}"));
            assert!(received.contains("received: 300,"), "{received}");
            assert!(received.contains("lost: 0, duplicates: 0"), "{received}");
        }
        process.ask("nodes 12");
    }
}

/// Its participant lives as long as something of the context is held.
#[test]
fn a_context_that_is_shut_down_is_gone_for_other_hosts() {
    let _watchdog = Watchdog::start("a context that is shut down");
    let Some((one, two)) = two_machines() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    a.all_do(&["advertise t", "subscribe back"]);
    b.all_do(&["subscribe t", "advertise back"]);
    a.all_do(&["readers t 1", "writers back 1"]);
    b.does("shut_down");
    a.all_do(&["readers t 0", "writers back 0"]);
    a.ask("nodes 2");
    // Nobody is waited for.
    a.does("publish t 1 2000 8");
    assert_eq!(a.ask("published t"), "0");
    let mut c = Process::on(&two, "three");
    c.does("subscribe t");
    a.does("readers t 1");
    c.does("writers t 1");
    exchange(&mut a, &mut c, "t", [2001, 2100], 8);
}

#[test]
fn processes_of_another_host_that_come_and_go_leave_nothing() {
    let _watchdog = Watchdog::start("processes that come and go");
    let Some((one, two)) = two_machines() else { return };
    let mut a = Process::on(&one, "one");
    a.all_do(&["advertise t", "advertise latched", "subscribe back"]);
    let mut held = String::new();
    for round in 0..6 {
        let mut b = Process::on(&two, "two");
        b.all_do(&["subscribe t", "subscribe latched", "advertise back"]);
        a.all_do(&["readers t 1", "readers latched 1", "writers back 1"]);
        b.all_do(&["readers back 1", "writers t 1"]);
        exchange(&mut a, &mut b, "t", [1, 20], 100_000);
        exchange(&mut b, &mut a, "back", [1, 20], 100_000);
        assert_eq!(a.ask("call two/add 1 2"), "3");
        match round % 2 {
            0 => b.0.finish(),
            _ => b.0.kill(),
        }
        a.all_do(&["readers t 0", "readers latched 0", "writers back 0"]);
        a.ask("nodes 2");
        match round {
            // What is made once is there by then.
            0 | 1 => held = a.ask("holds"),
            _ => a.does(&format!("holds {held}")),
        }
    }
}

/// Runs a test with what makes processes meet, and flows go, by the plug-in over Fast DDS, where it was built.
fn by_fast_dds(test: impl FnOnce(&[(&str, &str)])) {
    if std::env::var_os("TSUJI_FASTDDS").is_none() {
        eprintln!("not run: TSUJI_FASTDDS is not set");
        return;
    }
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let policy = folder.0.join("policy.xml");
    let rule = r#"<tsuji><rule name="far" scope="remote" use="fastdds"/></tsuji>"#;
    std::fs::write(&policy, rule).unwrap();
    test(&[("TSUJI_RTPS_ENGINE", "fastdds"), ("TSUJI_POLICY", policy.to_str().unwrap())]);
}

/// The engine keeps the address that it had when it joined, so the network is joined anew.
#[test]
fn an_address_that_changes_is_joined_anew() {
    change_address(&[]);
}

#[test]
fn an_address_that_changes_is_joined_anew_by_fast_dds() {
    by_fast_dds(change_address);
}

fn change_address(environment: &[(&str, &str)]) {
    let _watchdog = Watchdog::start("an address that changes");
    let Some((one, two)) = two_machines() else { return };
    let (mut a, mut b) =
        (Process::with(&one, "one", environment), Process::with(&two, "two", environment));
    let mut c = Process::with(&one, "three", environment);
    a.all_do(&["advertise t", "advertise near", "advertise latched"]);
    a.does("publish latched 1 50 1000");
    assert_eq!(a.ask("published latched"), "0");
    b.does("subscribe t");
    c.does("subscribe near");
    a.all_do(&["readers t 1", "readers near 1"]);
    b.does("writers t 1");
    exchange(&mut a, &mut b, "t", [1, 100], 1000);
    let change = |from: &str, to: &str| {
        one.run(&format!("ip addr del {from}/24 dev {LINK}; ip addr add {to}/24 dev {LINK}"));
    };
    for (round, [from, to]) in (0..).zip([[one.address, "10.77.0.11"], ["10.77.0.11", one.address]])
    {
        change(from, to);
        b.does("writers t 0");
        exchange(&mut a, &mut c, "near", [1 + 100 * round, 100 + 100 * round], PICTURE);
        assert_eq!(a.ask("call three/add 1 2"), "3");
        a.does("readers t 1");
        b.does("writers t 1");
        exchange(&mut a, &mut b, "t", [101 + 100 * round, 200 + 100 * round], 1000);
        assert_eq!(a.ask("call two/add 1 2"), "3");
        assert_eq!(b.ask("call one/add 1 2"), "3");
    }
    b.all_do(&["subscribe latched", "take latched 1 50 1000", "empty latched"]);
}

#[test]
fn a_process_that_is_there_before_its_network_meets_others_later() {
    meet_later(&[]);
}

#[test]
fn a_process_that_is_there_before_its_network_meets_others_later_by_fast_dds() {
    by_fast_dds(meet_later);
}

fn meet_later(environment: &[(&str, &str)]) {
    let _watchdog = Watchdog::start("a network that comes later");
    let Some((one, two)) = two_machines() else { return };
    one.run(&format!("ip addr flush dev {LINK}; ip link set {LINK} down"));
    let (mut a, mut b) =
        (Process::with(&one, "one", environment), Process::with(&two, "two", environment));
    let mut c = Process::with(&one, "three", environment);
    a.all_do(&["advertise t", "subscribe back", "advertise latched", "advertise near"]);
    b.all_do(&["subscribe t", "advertise back", "subscribe latched"]);
    c.does("subscribe near");
    a.all_do(&["publish latched 1 50 1000", "readers near 1"]);
    assert_eq!(a.ask("published latched"), "0");
    exchange(&mut a, &mut c, "near", [1, 100], 1000);
    a.does("readers t 0");
    one.run(&format!("ip addr add {}/24 dev {LINK}; ip link set {LINK} up", one.address));
    a.all_do(&["readers t 1", "writers back 1"]);
    b.all_do(&["readers back 1", "writers t 1"]);
    b.does("take latched 1 50 1000");
    exchange(&mut a, &mut b, "t", [1, 100], 1000);
    let engine = if environment.is_empty() { "cyclonedds" } else { "fastdds" };
    let routes = a.ask("routes t");
    assert!(routes.contains(engine), "{routes}");
    exchange(&mut b, &mut a, "back", [1, 100], 1000);
    exchange(&mut a, &mut c, "near", [101, 200], 1000);
    assert_eq!(a.ask("call two/add 1 2"), "3");
    assert_eq!(b.ask("call one/add 1 2"), "3");
}

#[test]
fn what_is_not_exported_stays_on_its_host() {
    let _watchdog = Watchdog::start("exports between hosts");
    let Some((one, two)) = two_machines() else { return };
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let policy = folder.0.join("robot.xml");
    let exports = r#"<export topic="/there"/><export topic="/seldom" rate="0.001"/>"#;
    std::fs::write(&policy, format!(r#"<tsuji><robot name="r1"/>{exports}</tsuji>"#)).unwrap();
    let robot = [("TSUJI_POLICY", policy.to_str().unwrap())];
    let mut arm = Process::with(&one, "arm", &robot);
    let mut beside = Process::with(&one, "beside", &robot);
    let mut head = Process::with(&two, "head", &robot);
    // What is told later on a channel is known later.
    for process in [&mut beside, &mut head] {
        process.all_do(&["subscribe seldom", "subscribe kept", "subscribe there"]);
    }
    arm.all_do(&[
        "advertise seldom",
        "readers seldom 2",
        "advertise kept",
        "advertise there",
        "readers there 2",
        "readers kept 1",
    ]);
    head.all_do(&["writers there 1", "writers kept 0"]);
    arm.all_do(&["publish kept 1 3 8", "publish there 1 3 8"]);
    for process in [&mut beside, &mut head] {
        process.does("take there 1 3 8");
    }
    beside.does("take kept 1 3 8");
    head.does("empty kept");
    // The first leaves, and the next in a quarter of an hour.
    head.does("writers seldom 1");
    arm.does("publish seldom 1 3 8");
    beside.does("take seldom 1 3 8");
    head.does("take seldom 1 1 8");
    arm.does("publish there 4 4 8");
    head.all_do(&["take there 4 4 8", "empty seldom"]);
    assert_eq!([arm.ask("published kept"), arm.ask("published there")], ["0", "0"]);
}

#[test]
fn a_robot_on_two_hosts_is_one_and_another_beside_it_is_apart() {
    let _watchdog = Watchdog::start("robots on two hosts");
    let Some((one, two)) = two_machines() else { return };
    let robot = |name| [("TSUJI_ROBOT", name)];
    let mut arm = Process::with(&one, "arm", &robot("r1"));
    let mut head = Process::with(&two, "head", &robot("r1"));
    let mut other = Process::with(&two, "head", &robot("r2"));
    let mut outside = Process::on(&one, "outside");
    arm.all_do(&["advertise there", "subscribe latched"]);
    head.all_do(&["subscribe there", "advertise latched"]);
    other.all_do(&["subscribe there", "advertise latched", "subscribe latched"]);
    outside.all_do(&["subscribe r1/there", "subscribe there"]);
    arm.all_do(&["readers there 2", "writers latched 1"]);
    head.does("writers there 1");
    other.does("writers latched 1");
    outside.does("writers r1/there 1");
    arm.does("publish there 1 20 100000");
    head.does("take there 1 20 100000");
    outside.does("take r1/there 1 20 100000");
    assert_eq!(arm.ask("published there"), "0");
    other.does("publish latched 1 5 8");
    other.does("take latched 1 5 8");
    assert_eq!(other.ask("published latched"), "0");
    head.does("publish latched 6 9 8");
    arm.does("take latched 6 9 8");
    arm.all_do(&["empty latched", "readers there 2"]);
    other.all_do(&["empty there", "writers there 0"]);
    outside.all_do(&["empty there", "writers there 0"]);
    // Each has a node that serves beside it.
    let nodes = |said: String| -> Vec<String> {
        let names = said.split("; ").map(|it| it.split(' ').next().unwrap().to_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let expect = ["arm", "arm_server", "head", "head_server"].map(|it| format!("/{it}"));
    let others = ["/outside", "/outside_server", "/r2/head", "/r2/head_server"];
    let expect: Vec<_> = expect.into_iter().chain(others.map(str::to_owned)).collect();
    assert_eq!(nodes(head.ask("nodes 8")), expect);
    assert_eq!(outside.ask("call r2/head/add 20 3"), "23");
    assert_eq!(arm.ask("call head/add 4 5"), "9");
}

/// What a new process is told is more than the wire keeps for whoever is slow to listen.
#[test]
fn a_process_with_very_many_endpoints_is_met() {
    let watchdog = Watchdog::start("very many endpoints");
    let Some((one, two)) = two_machines() else { return };
    let (mut a, mut b) = (Process::on(&one, "one"), Process::on(&two, "two"));
    for first in (1..14_000).step_by(1000) {
        a.does(&format!("subscribe_to_many {first} {}", first + 999));
        watchdog.goes_on();
    }
    let mut c = Process::on(&two, "three");
    for process in [&mut b, &mut c] {
        process.does("endpoints 14000");
        watchdog.goes_on();
    }
}
