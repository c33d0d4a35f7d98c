//! Processes that are killed while they agree with others on their flows: between the handshake, the
//! address and the connection. Those that live keep nothing of them, and match whoever comes next.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use house::{Child, Folder, HANG, Random, Watchdog, arenas_mapped, descriptors, figure, heard};
use house::{keep_last, kills, take_until, tell, threads, wait_until};
use tsuji::{Context, Node, Publisher, Subscription};
use tsuji_interfaces::std_msgs::msg::UInt64;

const ENDPOINTS: usize = 50;

/// What the children do: make endpoints as fast as they can, and use them when told to.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let role = house::role();
    let context = house::context();
    let node = context.node("child").unwrap();
    match role.as_str() {
        "publish" => {
            let publishers = publishers(&node);
            publishers.iter().for_each(|it| it.wait_for_subscriptions(1, HANG).unwrap());
            tell("matched");
            heard();
            send_on_each(&publishers);
            heard();
        }
        "subscribe" => {
            let subscriptions = subscriptions(&node);
            subscriptions.iter().for_each(|it| it.wait_for_publishers(1, HANG).unwrap());
            tell("matched");
            receive_on_each(&node, &subscriptions);
            tell("received");
        }
        other => panic!("{other}"),
    }
}

fn publishers(node: &Node) -> Vec<Publisher<UInt64>> {
    let topics = (0..ENDPOINTS).map(|number| format!("t{number}"));
    topics.map(|it| node.create_publisher(&it, keep_last(3)).unwrap()).collect()
}

fn subscriptions(node: &Node) -> Vec<Subscription<UInt64>> {
    let topics = (0..ENDPOINTS).map(|number| format!("t{number}"));
    topics.map(|it| node.create_polled_subscription(&it, keep_last(3)).unwrap()).collect()
}

fn send_on_each(publishers: &[Publisher<UInt64>]) {
    for (publisher, data) in publishers.iter().zip(0..) {
        publisher.publish(UInt64 { data }).unwrap();
    }
}

fn receive_on_each(node: &Node, subscriptions: &[Subscription<UInt64>]) {
    for (subscription, data) in subscriptions.iter().zip(0..) {
        take_until(node, subscription, |received| {
            assert_eq!(received.view().data, data);
            true
        });
    }
}

/// The process that lives, with the other end of each flow.
trait Survivor {
    const CHILD: &'static str;
    fn new(node: Node) -> Self;
    fn matched(&self) -> usize;
    /// Sends or receives on every flow with a child that has matched.
    fn exchange(&self, child: Child);
}

struct Receiving {
    node: Node,
    subscriptions: Vec<Subscription<UInt64>>,
}

impl Survivor for Receiving {
    const CHILD: &'static str = "publish";

    fn new(node: Node) -> Self {
        Self { subscriptions: subscriptions(&node), node }
    }

    fn matched(&self) -> usize {
        self.subscriptions.iter().map(|it| it.matched()).sum()
    }

    fn exchange(&self, mut child: Child) {
        child.say("send");
        receive_on_each(&self.node, &self.subscriptions);
        child.finish();
    }
}

struct Sending {
    publishers: Vec<Publisher<UInt64>>,
}

impl Survivor for Sending {
    const CHILD: &'static str = "subscribe";

    fn new(node: Node) -> Self {
        Self { publishers: publishers(&node) }
    }

    fn matched(&self) -> usize {
        self.publishers.iter().map(|it| it.matched()).sum()
    }

    fn exchange(&self, child: Child) {
        send_on_each(&self.publishers);
        child.expect("received");
        child.finish();
    }
}

#[test]
fn publishers_killed_while_they_match_leave_nothing() {
    check::<Receiving>(5);
}

#[test]
fn subscribers_killed_while_they_match_leave_nothing() {
    check::<Sending>(6);
}

fn check<S: Survivor>(seed: u64) {
    // What the whole process has is counted.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let _watchdog = Watchdog::start(S::CHILD);
    let folder = Folder::new();
    let context = folder.process();
    let survivor = S::new(context.node("survivor").unwrap());
    let mut random = Random(seed);
    let (mut matching, mut early) = (Duration::ZERO, None);
    for round in 0..kills() {
        if round % 20 == 0 {
            matching = match_whole(&survivor, &folder);
            wait_until_alone(&survivor, &context);
        }
        let child = Child::start(&folder, S::CHILD);
        if round % 2 == 0 {
            let most = u64::try_from(matching.as_micros()).unwrap();
            std::thread::sleep(Duration::from_micros(random.below(most.max(1))));
        } else {
            // With the flow of the last known endpoint still to be agreed on.
            let known = ENDPOINTS + 1 + random.below(ENDPOINTS as u64) as usize;
            let is_there = context
                .wait_for_graph(HANG, |graph| (known <= graph.endpoints.len()).then_some(()));
            is_there.unwrap().expect("its endpoints come");
        }
        child.kill();
        wait_until_alone(&survivor, &context);
        if round == kills() / 4 {
            early = Some(Left::of(&context));
        }
    }
    let early = early.unwrap();
    // Threads that listen to children take a moment to end.
    wait_until(&format!("no more is left than {early:?}"), || {
        Left::of(&context).is_at_most(&early)
    });
    assert_eq!(context.routes(HANG).unwrap(), []);
    match_whole(&survivor, &folder);
    wait_until_alone(&survivor, &context);
    assert_eq!(context.unreachable_peers(), []);
}

/// A child that is not killed matches on every topic, and samples flow. Answers how long it takes
/// from the child's first word until all is matched.
fn match_whole<S: Survivor>(survivor: &S, folder: &Folder) -> Duration {
    let child = Child::start(folder, S::CHILD);
    let start = Instant::now();
    child.expect("matched");
    let matching = start.elapsed();
    wait_until("both ends know it", || survivor.matched() == ENDPOINTS);
    survivor.exchange(child);
    matching
}

/// Waits until nothing is known of any child.
#[track_caller]
fn wait_until_alone<S: Survivor>(survivor: &S, context: &Context) {
    wait_until("the death is noticed", || {
        let graph = context.graph();
        (graph.nodes.len(), graph.endpoints.len()) == (1, ENDPOINTS)
            && survivor.matched() == 0
            && figure(context, "peers") == 0
    });
}

/// What killed children may have left behind.
#[derive(Debug)]
struct Left {
    reserved_bytes: u64,
    rings: u64,
    writers: u64,
    arenas: usize,
    descriptors: usize,
    threads: usize,
}

impl Left {
    fn of(context: &Context) -> Self {
        Self {
            reserved_bytes: figure(context, "reserved_bytes"),
            rings: figure(context, "rings_of_dropped_readers"),
            writers: figure(context, "writers_with_slots"),
            arenas: arenas_mapped(),
            descriptors: descriptors(),
            threads: threads(),
        }
    }

    fn is_at_most(&self, early: &Self) -> bool {
        self.reserved_bytes <= early.reserved_bytes
            && self.rings <= early.rings
            && self.writers <= early.writers
            && self.arenas <= early.arenas
            && self.descriptors <= early.descriptors
            && self.threads <= early.threads
    }
}
