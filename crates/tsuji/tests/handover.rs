//! Flows whose link changes while samples flow: nothing is lost, repeated or out of order.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use house::links::{
    POLICY, Sender, Taker, assert_all_came, breakable, ends, keep_many, local_flows, process,
    route, set, settled_on, start,
};
use house::{Folder, HANG, Random, Watchdog, best_effort, keep_all, keep_last};
use tsuji::{Context, Durability, ErrorKind, PublisherOptions, Qos, RouteChange, RouteReport};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_transport::faulty::Faults;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    house::links::play(&house::role(), &house::context());
}

fn back_and_forth(qos: Qos, between: [&str; 2], processes: usize, changes: usize) {
    let _watchdog = Watchdog::start("back and forth");
    let folder = Folder::new();
    let here = process(&folder);
    let there = if processes == 1 { here.clone() } else { process(&folder) };
    let (publisher, subscription) = ends(&here, &there, qos);
    let sending = Sender::start(publisher, Duration::from_micros(200));
    let taking = Taker::start(subscription, u64::MAX);
    for change in 0..changes {
        let to = between[change % 2];
        set(&there, "/n", Some(to));
        let route = settled_on(&there, "/n", to);
        assert!(route.because.contains("route set"), "{}", route.because);
        taking.wait_for_more();
    }
    let sent = sending.finish();
    let counters = taking.finish(sent).counters();
    assert_eq!((counters.received, counters.lost), (sent, 0), "{counters:?}");
    if qos.durability == Durability::Volatile {
        // Else what late joiners are owed came once more, and pushed itself out.
        assert_eq!((counters.displaced, counters.duplicates), (0, 0), "{counters:?}");
    }
}

#[test]
fn a_flow_goes_from_shared_memory_to_the_network_and_back() {
    back_and_forth(keep_many(), ["cyclonedds", "shm"], 2, 20);
}

#[test]
fn a_flow_that_keeps_all_does_too() {
    back_and_forth(keep_all(), ["cyclonedds", "shm"], 2, 20);
}

#[test]
fn a_flow_of_best_effort_does_too() {
    back_and_forth(best_effort(1000), ["cyclonedds", "shm"], 2, 20);
}

#[test]
fn a_flow_whose_late_joiners_are_owed_the_past_does_too() {
    let qos = Qos { durability: Durability::TransientLocal, ..keep_last(1000) };
    back_and_forth(qos, ["cyclonedds", "shm"], 2, 20);
}

#[test]
fn a_flow_goes_from_a_pointer_to_shared_memory_and_back() {
    back_and_forth(keep_many(), ["shm", "inproc"], 1, 50);
    back_and_forth(keep_all(), ["shm", "inproc"], 1, 50);
}

/// Changes that overtake each other, asked for by both ends at once.
#[test]
fn changes_that_overtake_each_other_lose_nothing() {
    let _watchdog = Watchdog::start("changes that overtake each other");
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_many());
    let sending = Sender::start(publisher, Duration::from_micros(100));
    let taking = Taker::start(subscription, u64::MAX);
    let from = |context: &Context, seed| {
        let (context, mut random) = (context.clone(), Random(seed));
        std::thread::spawn(move || {
            for _ in 0..300 {
                let to = [Some("shm"), Some("cyclonedds"), None][random.below(3) as usize];
                set(&context, "/n", to);
                let pause = random.below(4000);
                std::thread::sleep(Duration::from_micros(pause));
            }
        })
    };
    let asking = [from(&here, 1), from(&there, 2)];
    asking.into_iter().for_each(|it| it.join().unwrap());
    set(&here, "/n", Some("cyclonedds"));
    settled_on(&there, "/n", "cyclonedds");
    taking.wait_for_more();
    let sent = sending.finish();
    assert_all_came(taking.finish(sent).counters(), sent);
}

/// Two publishers and three subscriptions: in one process, on the host, and over the network.
#[test]
fn several_publishers_and_subscriptions_change_their_links() {
    let _watchdog = Watchdog::start("several publishers and subscriptions");
    let folder = Folder::new();
    let (one, two, three) = (process(&folder), process(&folder), process(&folder));
    let publisher = |context: &Context, name: &str| {
        let node = context.node(name).unwrap();
        node.create_publisher::<Image>("many", keep_last(1000)).unwrap()
    };
    let publishers = [publisher(&one, "first"), publisher(&two, "second")];
    let subscriptions: Vec<_> = [&one, &two, &three]
        .iter()
        .map(|context| {
            let node = context.node("taker").unwrap();
            let it = node.create_polled_subscription::<Image>("many", keep_last(1000)).unwrap();
            it.wait_for_publishers(2, HANG).unwrap();
            it
        })
        .collect();
    publishers.iter().for_each(|it| it.wait_for_subscriptions(3, HANG).unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let sending: Vec<_> = publishers
        .into_iter()
        .zip(0u32..)
        .map(|(publisher, who)| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut next = 0;
                while !stop.load(Ordering::Acquire) {
                    let image = Image { width: who, height: next, ..Image::default() };
                    publisher.publish(image).unwrap();
                    next += 1;
                    std::thread::sleep(Duration::from_micros(300));
                }
                (publisher, next)
            })
        })
        .collect();
    let ends = Arc::new(Mutex::new(None::<[u32; 2]>));
    let taking: Vec<_> = subscriptions
        .into_iter()
        .map(|subscription| {
            let ends = Arc::clone(&ends);
            std::thread::spawn(move || {
                let mut next = [0, 0];
                while *ends.lock().unwrap() != Some(next) {
                    let Some(received) = subscription.take().unwrap() else {
                        std::thread::sleep(Duration::from_micros(50));
                        continue;
                    };
                    let image = received.view();
                    let who = image.width as usize;
                    assert_eq!(image.height, next[who], "of publisher {who}");
                    next[who] += 1;
                }
                subscription.counters()
            })
        })
        .collect();
    for to in ["cyclonedds", "shm"].into_iter().cycle().take(20) {
        set(&two, "/many", Some(to));
        house::wait_until("they have changed", || {
            local_flows(&one, "/many")
                .iter()
                .all(|it| it.transport.as_deref() == Some(to) && it.handover_to.is_none())
        });
    }
    stop.store(true, Ordering::Release);
    let sent: Vec<_> = sending.into_iter().map(|it| it.join().unwrap()).collect();
    *ends.lock().unwrap() = Some([sent[0].1, sent[1].1]);
    for counters in taking.into_iter().map(|it| it.join().unwrap()) {
        assert_eq!((counters.lost, counters.displaced), (0, 0), "{counters:?}");
    }
}

/// Breaks the link of a flow between two processes, and mends it again.
fn broken_and_mended(faults: Faults, why: &str) {
    let _watchdog = Watchdog::start("a broken link");
    let folder = Folder::new();
    let ((here, break_it), there) = (breakable(&folder), process(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_many());
    let bytes = publisher.counters();
    assert_eq!(bytes.published, 0);
    let sending = Sender::start(publisher, Duration::from_millis(1));
    let taking = Taker::start(subscription, u64::MAX);
    assert_eq!(settled_on(&there, "/n", "shm").changes.len(), 1);
    for round in 1..=3 {
        taking.wait_for_more();
        break_it("shm", faults);
        let route = settled_on(&there, "/n", "cyclonedds");
        let change = route.changes.last().unwrap();
        assert!(change.why.contains(why), "{change:?}");
        taking.wait_for_more();
        break_it("shm", Faults::default());
        let route = settled_on(&there, "/n", "shm");
        assert_eq!(route.changes.len(), 1 + 2 * round);
    }
    let sent = sending.finish();
    assert_all_came(taking.finish(sent).counters(), sent);
}

#[test]
fn a_flow_goes_on_by_another_link_when_its_own_fails_and_returns() {
    broken_and_mended(Faults { cut: true, ..Faults::default() }, "cut by a fault");
}

#[test]
fn a_flow_goes_on_by_another_link_when_memory_runs_out_and_returns() {
    broken_and_mended(Faults { starved: true, ..Faults::default() }, "starved by a fault");
}

/// A publisher with two links of which one fails in the middle of a send: the reader of that one gets the
/// sample by its next link, the other gets it once.
#[test]
fn a_link_that_fails_beside_another_owes_nothing() {
    let _watchdog = Watchdog::start("a link that fails beside another");
    let folder = Folder::new();
    let ((here, break_it), there) = (breakable(&folder), process(&folder));
    let (publisher, far) = ends(&here, &there, keep_many());
    let node = here.node("near").unwrap();
    let near = node.create_polled_subscription::<UInt64>("n", keep_many()).unwrap();
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    near.wait_for_publishers(1, HANG).unwrap();
    let sending = Sender::start(publisher, Duration::from_micros(100));
    let (near, far) = (Taker::start(near, u64::MAX), Taker::start(far, u64::MAX));
    for _ in 0..5 {
        far.wait_for_more();
        break_it("shm", Faults { cut: true, ..Faults::default() });
        house::wait_until("it takes the network", || {
            local_flows(&there, "/n").iter().all(|it| it.transport.as_deref() == Some("cyclonedds"))
        });
        far.wait_for_more();
        near.wait_for_more();
        break_it("shm", Faults::default());
        house::wait_until("it returns", || {
            local_flows(&there, "/n").iter().all(|it| it.transport.as_deref() == Some("shm"))
        });
    }
    let sent = sending.finish();
    for counters in [near.finish(sent).counters(), far.finish(sent).counters()] {
        assert_eq!((counters.received, counters.lost), (sent, 0), "{counters:?}");
    }
}

/// Real memory that is full because somebody holds what was lent.
#[test]
fn pictures_go_by_the_network_while_shared_memory_is_full() {
    let _watchdog = Watchdog::start("full shared memory");
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let (sender, taker) = (here.node("sender").unwrap(), there.node("taker").unwrap());
    let publisher = sender.create_publisher::<Image>("p", keep_last(10)).unwrap();
    let subscription = taker.create_polled_subscription::<Image>("p", keep_last(10)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let picture =
        |number: u32| Image { height: number, data: vec![7; 5 << 20], ..Image::default() };
    let mut next = 0;
    let mut pass = |held: &mut Vec<_>, holds: bool| {
        while let Err(error) = publisher.publish(picture(next)) {
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        }
        let mut received = None;
        house::wait_until("it comes", || {
            received = subscription.take().unwrap();
            received.is_some()
        });
        let received = received.unwrap();
        let view = received.view();
        assert_eq!((view.height, view.data.len()), (next, 5 << 20));
        next += 1;
        if holds {
            held.push(received);
        }
    };
    let mut held = Vec::new();
    let on = |link: &str| route(&there, "/p").unwrap().transport.as_deref() == Some(link);
    while on("shm") {
        pass(&mut held, true);
    }
    let change = route(&there, "/p").unwrap().changes.pop().unwrap();
    assert!(change.why.contains("no shared memory left"), "{change:?}");
    (0..10).for_each(|_| pass(&mut Vec::new(), false));
    held.clear();
    house::wait_until("it returns", || {
        pass(&mut Vec::new(), false);
        on("shm")
    });
    (0..10).for_each(|_| pass(&mut Vec::new(), false));
    assert_eq!(subscription.counters().lost, 0);
}

/// Samples that become large, and small again.
#[test]
fn a_flow_follows_the_sizes_that_are_really_sent() {
    let _watchdog = Watchdog::start("sizes");
    let folder = Folder::new();
    let text = POLICY.replace(
        "<tsuji>",
        "<tsuji><rule name=\"small\" size=\"small\" scope=\"local\" use=\"cyclonedds\"/>",
    );
    let policy = tsuji_policy::load("test", text.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    let context = || {
        let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
        builder.policy(policy.clone()).isolated().build().unwrap()
    };
    let (here, there) = (context(), context());
    let (sender, taker) = (here.node("sender").unwrap(), there.node("taker").unwrap());
    let publisher = sender.create_publisher::<Image>("p", keep_last(100)).unwrap();
    let subscription = taker.create_polled_subscription::<Image>("p", keep_last(100)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let mut next = 0;
    let mut pass_until_on = |bytes: usize, link: &str| {
        house::wait_until(link, || {
            let image = Image { height: next, data: vec![7; bytes], ..Image::default() };
            publisher.publish(image).unwrap();
            let mut number = None;
            house::wait_until("it comes", || {
                number = subscription.take().unwrap().map(|it| it.view().height);
                number.is_some()
            });
            assert_eq!(number, Some(next));
            next += 1;
            route(&there, "/p").unwrap().transport.as_deref() == Some(link)
        });
    };
    pass_until_on(200_000, "shm");
    pass_until_on(1000, "cyclonedds");
    pass_until_on(200_000, "shm");
    let changes = settled_on(&there, "/p", "shm").changes;
    let why = |it: &RouteChange| it.why.clone();
    let sized = "the samples are of another size";
    assert_eq!(changes.iter().skip(1).map(why).collect::<Vec<_>>(), [sized, sized]);
    assert_eq!(subscription.counters().lost, 0);
}

#[test]
fn calls_are_answered_while_the_links_of_a_service_change() {
    let _watchdog = Watchdog::start("a service");
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let server = there.node("server").unwrap();
    let _service = server
        .create_service::<AddTwoInts>("add", |request| AddTwoIntsResponse {
            sum: request.a + request.b,
        })
        .unwrap();
    std::thread::scope(|scope| {
        let _end = ShutAtEnd(&there);
        scope.spawn(|| {
            let mut executor = tsuji::Executor::new(&there).unwrap();
            executor.add(&server).unwrap();
            executor.spin().unwrap();
        });
        let node = here.node("caller").unwrap();
        let clients = [(); 2].map(|()| node.create_client::<AddTwoInts>("add").unwrap());
        clients.iter().for_each(|it| it.wait_for_service(HANG).unwrap());
        for (round, to) in (0..).zip(["cyclonedds", "shm"].into_iter().cycle().take(20)) {
            set(&here, "/add", Some(to));
            for number in 0..50 {
                for client in &clients {
                    let request = AddTwoIntsRequest { a: round, b: number };
                    assert_eq!(client.call(request, HANG).unwrap().sum, round + number);
                }
            }
            house::wait_until("both ways have changed", || {
                let routes = there.routes(HANG).unwrap();
                let mut ways = routes.iter().filter(|it| it.topic == "/add");
                ways.all(|it| it.transport.as_deref() == Some(to) && it.handover_to.is_none())
            });
        }
    });
}

/// Ends a context when dropped, so that a failed test does not wait for its own threads.
struct ShutAtEnd<'a>(&'a Context);

impl Drop for ShutAtEnd<'_> {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

#[test]
fn a_bystander_that_is_killed_in_a_change_harms_nobody() {
    let _watchdog = Watchdog::start("a bystander that is killed");
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_many());
    let sending = Sender::start(publisher, Duration::from_micros(200));
    let taking = Taker::start(subscription, u64::MAX);
    let mut random = Random(3);
    for round in 0..6 {
        let bystander = start(&folder, "take");
        bystander.expect("there");
        let to = ["cyclonedds", "shm"][round % 2];
        std::thread::scope(|scope| {
            scope.spawn(|| here.set_route("/n", Some(to), HANG).unwrap());
            std::thread::sleep(Duration::from_micros(random.below(5000)));
            bystander.kill();
        });
        house::wait_until("the other has changed", || {
            let mut routes = there.routes(HANG).unwrap();
            routes.retain(|it| it.topic == "/n");
            routes.len() == 1 && routes[0].transport.as_deref() == Some(to)
        });
        taking.wait_for_more();
    }
    let sent = sending.finish();
    let counters = taking.finish(sent).counters();
    assert_eq!((counters.received, counters.lost), (sent, 0), "{counters:?}");
}

#[test]
fn what_a_publisher_sent_that_is_killed_in_a_change_comes_in_order() {
    let _watchdog = Watchdog::start("a publisher that is killed");
    let mut random = Random(5);
    for round in 0..10 {
        let folder = Folder::new();
        let there = process(&folder);
        let node = there.node("taker").unwrap();
        let subscription = node.create_polled_subscription::<UInt64>("n", keep_many()).unwrap();
        let publisher = start(&folder, "publish");
        publisher.expect("there");
        let to = ["cyclonedds", "shm"][round % 2];
        // What is on its way over the network when a process dies does not come.
        let taking = Taker::start_with(subscription, u64::MAX, to == "shm");
        taking.wait_for_more();
        if to == "shm" {
            set(&there, "/n", Some("cyclonedds"));
            settled_on(&there, "/n", "cyclonedds");
        }
        std::thread::scope(|scope| {
            scope.spawn(|| there.set_route("/n", Some(to), HANG).unwrap());
            std::thread::sleep(Duration::from_micros(random.below(6000)));
            publisher.kill();
        });
        house::wait_until("its flow is gone", || route(&there, "/n").is_none());
        // It has checked each number that came; now it ends.
        there.shutdown();
        drop(taking.thread.join().unwrap());
    }
}

#[test]
fn a_subscription_that_is_killed_in_a_change_does_not_hold_its_publisher_up() {
    let _watchdog = Watchdog::start("a subscription that is killed");
    let mut random = Random(7);
    let folder = Folder::new();
    let here = process(&folder);
    let node = here.node("sender").unwrap();
    let publisher = node.create_publisher::<UInt64>("n", keep_last(1000)).unwrap();
    for round in 0..10 {
        let taker = start(&folder, "take");
        taker.expect("there");
        (0..20).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
        let to = ["cyclonedds", "shm"][round % 2];
        std::thread::scope(|scope| {
            scope.spawn(|| here.set_route("/n", Some(to), HANG).unwrap());
            std::thread::sleep(Duration::from_micros(random.below(5000)));
            taker.kill();
        });
        house::wait_until("it is gone", || publisher.matched() == 0);
        (0..20).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    }
    assert_eq!(publisher.counters().dropped, 0);
}

/// Whoever stands still in the middle of a change keeps nobody else from going on.
#[test]
fn a_subscription_that_stands_still_goes_on_where_it_was() {
    let _watchdog = Watchdog::start("a subscription that stands still");
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_many());
    let mut child = start(&folder, "take");
    child.expect("there");
    let sending = Sender::start(publisher, Duration::from_millis(1));
    let taking = Taker::start(subscription, u64::MAX);
    taking.wait_for_more();
    child.stop();
    for to in ["cyclonedds", "shm", "cyclonedds"] {
        let _ = here.set_route("/n", Some(to), Duration::ZERO);
        house::wait_until("the other has changed", || {
            let routes = there.routes(HANG / 100).unwrap();
            let here =
                |it: &&RouteReport| it.topic == "/n" && it.subscription.pid != child.pid as u32;
            let mut routes = routes.iter().filter(here);
            routes.any(|it| it.transport.as_deref() == Some(to))
        });
        taking.wait_for_more();
    }
    child.go_on();
    let seen = taking.seen();
    house::wait_until("it has caught up", || {
        child.say("how far?");
        seen <= child.line().parse::<u64>().unwrap()
    });
    child.say("");
    child.finish();
    let sent = sending.finish();
    let counters = taking.finish(sent).counters();
    assert_eq!((counters.received, counters.lost), (sent, 0), "{counters:?}");
}

#[test]
fn what_cannot_be_set_is_refused_with_the_reason() {
    let folder = Folder::new();
    let context = process(&folder);
    let refused = context.set_route("/n", Some("pigeon"), HANG).unwrap();
    let reason = refused[0].outcome.as_ref().unwrap_err();
    assert!(reason.contains("pigeon is not at work") && reason.contains("shm"), "{reason}");
    let error = context.set_route("no topic", None, HANG).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    // A topic without a flow is remembered.
    let set = context.set_route("/later", Some("shm"), HANG).unwrap();
    assert_eq!(set[0].outcome, Ok(0));
    let node = context.node("a").unwrap();
    let publisher = node.create_publisher::<UInt64>("later", keep_last(1)).unwrap();
    let other = process(&folder);
    let _subscription = other
        .node("b")
        .unwrap()
        .create_polled_subscription::<UInt64>("later", Qos::DEFAULT)
        .unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    assert_eq!(route(&context, "/later").unwrap().pinned.as_deref(), Some("shm"));
}

/// What comes by the new link before it is said that it carries stays in its place.
#[test]
fn a_flow_changes_its_link_at_full_speed() {
    let _watchdog = Watchdog::start("full speed");
    let folder = Folder::new();
    let context = process(&folder);
    let node = context.node("both").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "n",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let sending = Sender::start(publisher, Duration::ZERO);
    let taking = Taker::start(subscription, u64::MAX);
    for change in 0..1000 {
        let to = ["shm", "inproc"][change % 2];
        context.set_route("/n", Some(to), HANG).unwrap();
        settled_on(&context, "/n", to);
    }
    let sent = sending.finish();
    let counters = taking.finish(sent).counters();
    assert_eq!((counters.received, counters.lost, counters.duplicates), (sent, 0, 0));
}

/// Nobody needs to publish for a flow to come to rest on its new link.
#[test]
fn a_flow_settles_in_silence() {
    let _watchdog = Watchdog::start("silence");
    let folder = Folder::new();
    let context = process(&folder);
    let node = context.node("both").unwrap();
    let publisher = node.create_publisher::<UInt64>("n", Qos::DEFAULT).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for (sent, to) in ["shm", "inproc", "shm", "inproc"].into_iter().enumerate() {
        let data = sent as u64;
        publisher.publish(UInt64 { data }).unwrap();
        assert_eq!(subscription.take().unwrap().unwrap().view().data, data);
        context.set_route("/n", Some(to), HANG).unwrap();
        settled_on(&context, "/n", to);
    }
}
