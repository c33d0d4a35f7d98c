//! Both engines on the wire of RTPS, `engine="both"`, with foreign nodes on each of them. Where the plug-in over Fast DDS
//! was not built (`scripts/fastdds`) these tests do nothing, but with `TSUJI_FASTDDS` set they fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;
#[path = "house/ros2_client.rs"]
#[allow(dead_code, reason = "of the peers only the settings are used here")]
mod ros2_client;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use house::foreign::{Listener, Plain, Topic, next};
use house::links::Sender;
use house::{
    Child, Folder, HANG, SetAtEnd, Watchdog, best_effort, heard, keep_all, keep_last, take_until,
    tell, wait_until,
};
use ros2_client::Side;
use tsuji::{Context, Durability, Message, PublisherOptions, Qos, Role, RouteReport, RouteState};
use tsuji::{Policy, RtpsEngine};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::std_msgs::msg::{UInt64, UInt64MultiArray};
use tsuji_platform::process::thread_names;
use tsuji_transport::Gid;
use tsuji_transport::wire::Inlet;

/// To nodes on Fast DDS by their own engine, where that can be.
const BY_VENDOR: &str = r#"<rule peer="fast" use="fastdds cyclonedds"/>"#;

/// A process with both engines and these rules, where the plug-in was built.
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn process(folder: &Folder, domain: u32, rules: &str) -> Option<Context> {
    let side = Side { engine: RtpsEngine::Both, domain };
    let policy = side.policy(rules);
    let policy = tsuji_policy::load("test", policy.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    let context = side.builder(folder).policy(policy).build().unwrap();
    if context.rtps_engine() != RtpsEngine::Both && std::env::var_os("TSUJI_FASTDDS").is_none() {
        eprintln!("the plug-in over Fast DDS was not built: not run");
        return None;
    }
    assert_eq!(context.rtps_engine(), RtpsEngine::Both);
    Some(context)
}

/// The flows to or from nodes on an engine, but those that cannot be.
fn flows(context: &Context, vendor: &str) -> Vec<RouteReport> {
    let mut routes = context.routes(HANG).unwrap();
    routes.retain(|it| it.peer == vendor && it.state != RouteState::Incompatible);
    routes
}

#[track_caller]
fn wait_for_link(context: &Context, vendor: &str, link: &str) {
    wait_until(link, || {
        let flows = flows(context, vendor);
        let is_on = |it: &RouteReport| it.transport.as_deref() == Some(link);
        !flows.is_empty() && flows.iter().all(|it| is_on(it) && it.handover_to.is_none())
    });
}

/// Takes numbers on a thread of its own, and checks that each follows the one before.
struct Ear {
    next: Arc<AtomicU64>,
    is_done: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Ear {
    fn start(inlet: Box<dyn Inlet>) -> Self {
        Self::start_at(inlet, 4)
    }

    /// Of samples with the number at this place.
    fn start_at(inlet: Box<dyn Inlet>, number_at: usize) -> Self {
        let (next, is_done) =
            (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicBool::new(false)));
        let (told, done) = (Arc::clone(&next), Arc::clone(&is_done));
        let take = move || {
            let (mut next, mut before) = (None, Gid::default());
            while !done.load(Ordering::Acquire) {
                let Some((writer, bytes)) = inlet.take().unwrap() else {
                    thread::sleep(Duration::from_micros(100));
                    continue;
                };
                let number = u64::from_le_bytes(bytes[number_at..][..8].try_into().unwrap());
                let expected = next.unwrap_or(number);
                assert_eq!(
                    number, expected,
                    "each once and in order; by {writer}, the one before by {before}"
                );
                before = writer;
                next = Some(number + 1);
                told.store(number + 1, Ordering::Release);
            }
        };
        Self { next, is_done, thread: Some(thread::spawn(take)) }
    }

    fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    #[track_caller]
    fn wait_for_more(&self) {
        self.wait_for(50);
    }

    /// Waits for so many more.
    #[track_caller]
    fn wait_for(&self, count: u64) {
        wait_until("it hears something", || self.next() != u64::MAX);
        let enough = self.next() + count;
        wait_until("it goes on", || {
            enough <= self.next() || self.thread.as_ref().unwrap().is_finished()
        });
        assert!(enough <= self.next());
    }

    /// Waits until it has heard all.
    #[track_caller]
    fn finish(mut self, sent: u64) {
        wait_until("all has come", || {
            self.next() == sent || self.thread.as_ref().unwrap().is_finished()
        });
        self.is_done.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap();
        assert_eq!(self.next(), sent);
    }
}

/// A listener on Fast DDS alone is sent to by Fast DDS. When one on Cyclone DDS comes both are by Cyclone DDS, and when
/// it has gone the first goes back; nobody misses a sample, or hears one twice.
#[test]
fn listeners_go_over_to_the_engine_that_all_of_them_hear() {
    let _watchdog = Watchdog::start("over and back");
    let folder = Folder::new();
    let Some(context) = process(&folder, 60, BY_VENDOR) else { return };
    let node = context.node("talker").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "n",
            PublisherOptions::default().qos(keep_last(2000)).max_blocking(HANG),
        )
        .unwrap();
    let topic = Topic::of::<UInt64>("n");
    let (fast, cyclone) = (Plain::join_fast(60), Plain::join(60));
    let near = Ear::start(fast.inlet(&topic, keep_all()));
    wait_for_link(&context, "fast", "fastdds");
    let sending = Sender::start(publisher, Duration::from_micros(500));
    near.wait_for_more();
    for _ in 0..3 {
        let other = Ear::start(cyclone.inlet(&topic, keep_all()));
        wait_for_link(&context, "cyclone", "cyclonedds");
        wait_for_link(&context, "fast", "cyclonedds");
        let route = flows(&context, "fast").remove(0);
        let why = route.rejected.iter().find(|(it, _)| it == "fastdds").unwrap();
        assert!(why.1.contains("another subscription needs cyclonedds"), "{why:?}");
        near.wait_for_more();
        other.wait_for_more();
        drop(other);
        wait_for_link(&context, "fast", "fastdds");
        near.wait_for_more();
    }
    let history = flows(&context, "fast").remove(0).changes;
    assert_eq!(history.len(), 7, "{history:?}");
    assert!(history.iter().all(|it| it.is_settled), "{history:?}");
    near.finish(sending.finish());
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok());
        }
    }
}

/// The user sets the engine again and again, beside two listeners on Fast DDS, of which one is best effort.
#[test]
fn the_user_sets_the_engine_while_samples_flow() {
    let _watchdog = Watchdog::start("set");
    let folder = Folder::new();
    let Some(context) = process(&folder, 61, BY_VENDOR) else { return };
    let node = context.node("talker").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "n",
            PublisherOptions::default().qos(keep_last(2000)).max_blocking(HANG),
        )
        .unwrap();
    let topic = Topic::of::<UInt64>("n");
    let foreign_readers = [Plain::join_fast(61), Plain::join_fast(61)];
    let ears = foreign_readers.each_ref().map(|it| Ear::start(it.inlet(&topic, keep_all())));
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let loose = foreign_readers[0].inlet(&topic, best_effort(1000));
    publisher.wait_for_subscriptions(3, HANG).unwrap();
    wait_for_link(&context, "fast", "fastdds");
    let sending = Sender::start(publisher, Duration::from_micros(500));
    for change in 0..10 {
        let link = ["cyclonedds", "fastdds"][change % 2];
        let set = context.set_route("/n", Some(link), HANG).unwrap();
        assert!(set.iter().all(|it| it.outcome == Ok(3)), "{set:?}");
        wait_for_link(&context, "fast", link);
        ears.iter().for_each(Ear::wait_for_more);
    }
    let sent = sending.finish();
    for ear in ears {
        ear.finish(sent);
    }
    // It may miss some, and hears none twice.
    let mut heard = Vec::new();
    while let Some((_, bytes)) = loose.take().unwrap() {
        heard.push(u64::from_le_bytes(bytes[4..].try_into().unwrap()));
    }
    let count = heard.len();
    heard.sort_unstable();
    heard.dedup();
    assert_eq!(heard.len(), count);
}

/// A large sample that goes by UDP is still on its way when the next one has come through shared memory.
#[test]
fn large_samples_keep_their_order_while_the_engine_changes() {
    /// Behind the header: no dimensions, no offset, so many elements, and four bytes for their alignment.
    const ELEMENTS_AT: usize = 20;
    const ELEMENTS: usize = 250_000;
    /// Fewer than either end keeps.
    const UNDER_WAY: u64 = 8;
    let _watchdog = Watchdog::start("large samples");
    let folder = Folder::new();
    let Some(context) = process(&folder, 66, BY_VENDOR) else { return };
    let node = context.node("talker").unwrap();
    let publisher = node
        .create_publisher::<UInt64MultiArray>(
            "n",
            PublisherOptions::default().qos(keep_last(20)).max_blocking(HANG),
        )
        .unwrap();
    let fast = Plain::join_fast(66);
    let inlet = fast.inlet(&Topic::of::<UInt64MultiArray>("n"), keep_all());
    wait_for_link(&context, "fast", "fastdds");
    let sample = |number: u64| {
        let data = vec![number; ELEMENTS];
        UInt64MultiArray { data, ..UInt64MultiArray::default() }
    };
    let ear = Ear::start_at(inlet, ELEMENTS_AT);
    let is_done = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let publish = || {
            let mut sent = 0;
            while !is_done.load(Ordering::Acquire) {
                let heard = ear.next();
                // Until it hears the first it may miss some.
                if heard == u64::MAX || sent < heard + UNDER_WAY {
                    publisher.publish(sample(sent)).unwrap();
                    sent += 1;
                }
                thread::sleep(Duration::from_millis(1));
            }
            sent
        };
        let publishing = scope.spawn(publish);
        let at_end = SetAtEnd(&is_done);
        for change in 0..10 {
            let link = ["cyclonedds", "fastdds"][change % 2];
            let set = context.set_route("/n", Some(link), HANG).unwrap();
            assert!(set.iter().all(|it| it.outcome.is_ok()), "{set:?}");
            wait_for_link(&context, "fast", link);
            ear.wait_for(20);
        }
        drop(at_end);
        publishing.join().unwrap()
    });
    ear.finish(sent);
}

/// A publisher with several listeners on Fast DDS goes, and so do listeners of another, when they have stood for longer
/// than a link is kept at least.
#[test]
fn publishers_and_listeners_end_whatever_stands_beside_them() {
    let _watchdog = Watchdog::start("ends");
    let folder = Folder::new();
    let Some(context) = process(&folder, 68, BY_VENDOR) else { return };
    let node = context.node("talker").unwrap();
    let publish = |topic| node.create_publisher::<UInt64>(topic, keep_all()).unwrap();
    let (going, staying) = (publish("going"), publish("staying"));
    let fast = Plain::join_fast(68);
    let listen = |topic| fast.inlet(&Topic::of::<UInt64>(topic), keep_all());
    let inlets: Vec<_> = (0..4).flat_map(|_| [listen("going"), listen("staying")]).collect();
    going.wait_for_subscriptions(4, HANG).unwrap();
    staying.wait_for_subscriptions(4, HANG).unwrap();
    wait_for_link(&context, "fast", "fastdds");
    let calm = flows(&context, "fast").iter().map(|it| it.since_wall_ns).max().unwrap();
    wait_until("they have stood", || calm + 1_100_000_000 < tsuji_platform::clock::wall_ns());
    drop(going);
    wait_until("its flows end", || flows(&context, "fast").len() == 4);
    drop(inlets);
    wait_until("all flows end", || flows(&context, "fast").is_empty());
    staying.publish(UInt64 { data: 1 }).unwrap();
}

/// Nodes of their own processes.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "talk, and exit" => talk_and_exit(),
        domain => listen(domain.parse().unwrap()),
    }
}

fn listen(domain: u32) {
    let fast = Plain::join_fast(domain);
    let inlet = fast.inlet(&Topic::of::<UInt64>("n"), keep_all());
    let _other = fast.inlet(&Topic::of::<UInt64>("staying"), best_effort(1));
    tell("there");
    next(&*inlet);
    tell("hears");
    heard();
}

/// Exits while one publisher waits for the acknowledgement of what it sent, and threads publish with another, make and end
/// more, and hear what another participant says.
fn talk_and_exit() {
    let folder = Folder::new();
    let context = process(&folder, EXITING, BY_VENDOR).unwrap();
    let node = context.node("talker").unwrap();
    let qos = keep_last(2000);
    let publish = |topic| node.create_publisher::<UInt64>(topic, qos).unwrap();
    let (going, staying) = (publish("n"), publish("staying"));
    let hearing = node.create_polled_subscription::<UInt64>("back", qos).unwrap();
    let topic = Topic::of::<UInt64>("back");
    let speaking: &Plain = Box::leak(Box::new(Plain::join_fast(EXITING)));
    let voice = speaking.talker(&topic, qos);
    going.wait_for_subscriptions(1, HANG).unwrap();
    staying.wait_for_subscriptions(1, HANG).unwrap();
    hearing.wait_for_publishers(1, HANG).unwrap();
    wait_for_link(&context, "fast", "fastdds");
    going.publish(UInt64 { data: 1 }).unwrap();
    tell("speaks");
    heard();
    going.publish(UInt64 { data: 2 }).unwrap();
    drop(going);
    wait_until("it waits", || thread_names().unwrap().values().any(|it| it == "tsuji-linger"));
    let (made, came) = (AtomicU64::new(0), AtomicU64::new(0));
    let _sending = Sender::start(staying, Duration::from_micros(10));
    thread::scope(|scope| -> ! {
        scope.spawn(|| {
            loop {
                voice.say(&UInt64 { data: 3 });
                thread::sleep(Duration::from_micros(100));
            }
        });
        scope.spawn(|| {
            loop {
                // While the process exits there are none any more.
                let Ok(publisher) = node.create_publisher::<UInt64>("staying", qos) else { return };
                let _none_yet = publisher.wait_for_subscriptions(1, Duration::from_millis(20));
                made.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            while let Ok(taken) = hearing.take() {
                came.fetch_add(u64::from(taken.is_some()), Ordering::Relaxed);
            }
        });
        wait_until("all that goes on", || {
            2 <= made.load(Ordering::Relaxed) && 100 <= came.load(Ordering::Relaxed)
        });
        std::process::exit(0)
    })
}

const EXITING: u32 = 70;

/// A process exits whatever its publishers and threads do: those of an engine's library and ours are not in each other's
/// way.
#[test]
fn a_process_exits_while_a_publisher_is_waited_for() {
    let _watchdog = Watchdog::start("exit");
    let folder = Folder::new();
    if process(&folder, EXITING, BY_VENDOR).is_none() {
        return;
    }
    let mut listener = Child::start(&folder, &EXITING.to_string());
    listener.expect("there");
    let mut talker = Child::start(&folder, "talk, and exit");
    talker.expect("speaks");
    listener.expect("hears");
    listener.stop();
    talker.say("go on");
    talker.finish();
    listener.go_on();
    listener.say("end");
    listener.finish();
}

/// A listener that is killed while all go over acknowledges nothing any more; the others go over without it, and back, and
/// the publisher goes on.
#[test]
fn a_listener_killed_on_the_way_over_costs_the_others_nothing() {
    let _watchdog = Watchdog::start("killed on the way over");
    let folder = Folder::new();
    let Some(context) = process(&folder, 69, BY_VENDOR) else { return };
    let node = context.node("talker").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "n",
            PublisherOptions::default().qos(keep_last(5000)).max_blocking(HANG),
        )
        .unwrap();
    let fast = Plain::join_fast(69);
    let ear = Ear::start(fast.inlet(&Topic::of::<UInt64>("n"), keep_all()));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let dying = Child::start(&folder, "69");
    dying.expect("there");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    wait_for_link(&context, "fast", "fastdds");
    let sending = Sender::start(publisher, Duration::from_micros(500));
    dying.expect("hears");
    // Nothing is waited for before the first has matched for long enough, so it dies before, or while that is done.
    let set = context.set_route("/n", Some("cyclonedds"), HANG).unwrap();
    assert!(set.iter().all(|it| it.outcome == Ok(2)), "{set:?}");
    dying.kill();
    let is_over = || {
        let routes = flows(&context, "fast");
        routes.iter().any(|it| it.transport.as_deref() == Some("cyclonedds"))
    };
    wait_until("one is over", is_over);
    ear.wait_for_more();
    let set = context.set_route("/n", Some("fastdds"), HANG).unwrap();
    assert!(set.iter().all(|it| it.outcome.is_ok()), "{set:?}");
    ear.wait_for_more();
    ear.finish(sending.finish());
}

/// What is kept for late joiners stays with one engine.
#[test]
fn what_late_joiners_are_owed_stays_with_the_first_engine() {
    let _watchdog = Watchdog::start("late joiners");
    let folder = Folder::new();
    let Some(context) = process(&folder, 62, BY_VENDOR) else { return };
    let node = context.node("talker").unwrap();
    let latched = Qos { durability: Durability::TransientLocal, ..keep_all() };
    let publisher = node.create_publisher::<UInt64>("n", latched).unwrap();
    publisher.publish(UInt64 { data: 5 }).unwrap();
    let fast = Plain::join_fast(62);
    let inlet = fast.inlet(&Topic::of::<UInt64>("n"), latched);
    assert_eq!(next(&*inlet).1[4..], 5_u64.to_le_bytes());
    wait_for_link(&context, "fast", "cyclonedds");
    let route = flows(&context, "fast").remove(0);
    let why = route.rejected.iter().find(|(it, _)| it == "fastdds").unwrap();
    assert!(why.1.contains("late joiners"), "{why:?}");
}

/// A talker on Fast DDS is heard by Fast DDS, one on Cyclone DDS by that, each sample once.
#[test]
fn talkers_are_heard_by_their_own_engines() {
    const SAID: u64 = 300;
    let _watchdog = Watchdog::start("talkers");
    let folder = Folder::new();
    let Some(context) = process(&folder, 63, BY_VENDOR) else { return };
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", keep_all()).unwrap();
    let topic = Topic::of::<UInt64>("n");
    let (fast, cyclone) = (Plain::join_fast(63), Plain::join(63));
    let talkers = [fast.talker(&topic, keep_all()), cyclone.talker(&topic, keep_all())];
    subscription.wait_for_publishers(2, HANG).unwrap();
    wait_for_link(&context, "fast", "fastdds");
    wait_for_link(&context, "cyclone", "cyclonedds");
    // The one on Fast DDS is heard by both engines.
    talkers[0].wait_for_readers(2);
    talkers[1].wait_for_readers(1);
    thread::scope(|scope| {
        for talker in &talkers {
            scope.spawn(|| (0..SAID).for_each(|number| talker.say(&UInt64 { data: number })));
        }
        let mut nexts = [0, 0];
        take_until(&node, &subscription, |received| {
            let from = received.info().publisher;
            let at = talkers.iter().position(|it| it.name() == from).unwrap();
            assert_eq!(received.view().data, nexts[at]);
            nexts[at] += 1;
            nexts == [SAID, SAID]
        });
    });
    assert!(subscription.take().unwrap().is_none());
}

/// Services with nodes on Fast DDS go by the engine that speaks to everybody, in their mapping, and they see one server and
/// one client.
#[test]
fn services_of_both_mappings_are_spoken() {
    let _watchdog = Watchdog::start("services");
    let folder = Folder::new();
    // Also by the default rules, which name Cyclone DDS first for all.
    let Some(context) = process(&folder, 64, "") else { return };
    let fast = Plain::join_fast(64);
    let ty = AddTwoIntsRequest::TYPE_NAME.trim_end_matches("_Request");
    let body = |it: &[u8]| i64::from_le_bytes(it[4..12].try_into().unwrap());
    // Ours is asked.
    let node = context.node("server").unwrap();
    let answer = |it: Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b };
    let _service = node.create_service::<AddTwoInts>("ours", answer).unwrap();
    let spinner = thread::spawn(move || tsuji::spin(&node));
    let asks = fast.talker(&Topic::requests("ours", ty), keep_all());
    let replies = fast.listener(&Topic::replies("ours", ty), keep_all());
    asks.wait_for_readers(1);
    wait_for_link(&context, "fast", "cyclonedds");
    for number in 1..=20 {
        let request = AddTwoIntsRequest { a: number, b: 1000 };
        asks.write_related(&request.to_vec().unwrap(), Some((Listener::GID, 0)));
        let (related, reply) = replies.next();
        assert!(related.is_some());
        assert_eq!(body(&reply), number + 1000);
    }
    // Theirs is asked.
    let taken = fast.listener(&Topic::requests("theirs", ty), keep_all());
    let answers = fast.talker(&Topic::replies("theirs", ty), keep_all());
    let client_node = context.node("client").unwrap();
    let client = client_node.create_client::<AddTwoInts>("theirs").unwrap();
    client.wait_for_service(HANG).unwrap();
    // A server answers once it knows whom: as rmw_fastrtps_cpp does.
    answers.wait_for_readers(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=20 {
                let request = AddTwoIntsRequest { a: number, b: 2000 };
                assert_eq!(client.call(request, HANG).unwrap().sum, number + 2000);
            }
        });
        for _ in 1..=20 {
            let (related, request) = taken.next();
            let sum = body(&request) + 2000;
            answers.write_related(&AddTwoIntsResponse { sum }.to_vec().unwrap(), related);
        }
    });
    let services = context.routes(HANG).unwrap();
    assert!(services.iter().any(|it| it.role == Role::Request && it.topic == "/theirs"));
    let is_first = |it: &RouteReport| it.transport.as_deref() == Some("cyclonedds");
    assert!(services.iter().all(is_first), "{services:?}");
    // By one of each alone: a node of rmw_fastrtps_cpp takes a service for there as soon as both halves are as many.
    let seen = |topic: Topic| fast.found(&topic).len();
    assert_eq!(seen(Topic::requests("ours", ty)), 1);
    assert_eq!(seen(Topic::replies("ours", ty)), 1);
    context.shutdown();
    spinner.join().unwrap().unwrap();
}

/// A library that is none: nodes on Fast DDS are spoken to by Cyclone DDS.
#[test]
fn where_the_second_engine_does_not_work_the_first_goes_on() {
    let _watchdog = Watchdog::start("no second engine");
    let folder = Folder::new();
    if process(&folder, 67, "").is_none() {
        return;
    }
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("libnone.so");
    std::fs::write(&file, "none").unwrap();
    let side = Side { engine: RtpsEngine::Both, domain: 67 };
    let policy = side.policy(BY_VENDOR);
    let policy = tsuji_policy::load("test", policy.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    let mut draft = policy.parts().clone();
    let fast = draft.transports.iter_mut().find(|it| it.transport.as_str() == "fastdds");
    fast.unwrap().plugin = Some(file.to_str().unwrap().into());
    let policy = Policy::new(draft).unwrap();
    let context = side.builder(&folder).policy(policy).build().unwrap();
    let node = context.node("talker").unwrap();
    let publisher = node.create_publisher::<UInt64>("n", keep_all()).unwrap();
    let ty = AddTwoIntsRequest::TYPE_NAME.trim_end_matches("_Request");
    let client = node.create_client::<AddTwoInts>("theirs").unwrap();
    let fast = Plain::join_fast(67);
    let inlet = fast.inlet(&Topic::of::<UInt64>("n"), keep_all());
    let _server = (
        fast.listener(&Topic::requests("theirs", ty), keep_all()),
        fast.talker(&Topic::replies("theirs", ty), keep_all()),
    );
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    wait_for_link(&context, "fast", "cyclonedds");
    wait_until("it listens", || {
        publisher.publish(UInt64 { data: 1 }).unwrap();
        inlet.take().unwrap().is_some()
    });
    client.wait_for_service(HANG).unwrap();
}

/// Without a node on Fast DDS it is not started, and two processes of tsuji meet once.
#[test]
fn the_second_engine_starts_when_there_is_somebody_for_it() {
    let _watchdog = Watchdog::start("starts");
    let folder = Folder::new();
    let Some(here) = process(&folder, 65, BY_VENDOR) else { return };
    let there = process(&folder, 65, BY_VENDOR).unwrap();
    let (publisher, subscription) = house::links::ends(&here, &there, keep_all());
    let cyclone = Plain::join(65);
    let inlet = cyclone.inlet(&Topic::of::<UInt64>("n"), keep_all());
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let is_running = |context: &Context| {
        let engines = context.engines(HANG).unwrap();
        let engines = engines.into_iter().flat_map(|it| it.engines);
        let running = engines.filter(|it| it.transport == "fastdds" && 0 < it.starts);
        running.count()
    };
    assert_eq!(is_running(&here), 0);
    let fast = Plain::join_fast(65);
    let near = fast.inlet(&Topic::of::<UInt64>("n"), keep_all());
    publisher.wait_for_subscriptions(3, HANG).unwrap();
    wait_until("both start it", || is_running(&here) == 2);
    // The node on Cyclone DDS keeps the topic with that.
    wait_for_link(&here, "fast", "cyclonedds");
    for number in 0..100_u64 {
        publisher.publish(UInt64 { data: number }).unwrap();
        for plain in [&inlet, &near] {
            assert_eq!(next(&**plain).1[4..], number.to_le_bytes());
        }
        wait_until("it comes", || {
            let received = subscription.take().unwrap();
            received.inspect(|it| assert_eq!(it.view().data, number)).is_some()
        });
    }
    assert!(inlet.take().unwrap().is_none() && near.take().unwrap().is_none());
    let of_tsuji = here.routes(HANG).unwrap().into_iter().filter(|it| it.peer == "tsuji");
    assert_eq!(of_tsuji.map(|it| it.transport.unwrap()).collect::<Vec<_>>(), ["shm"]);
    drop((near, fast));
    // Whoever is left hears on.
    wait_until("it has gone", || flows(&here, "fast").is_empty());
}
