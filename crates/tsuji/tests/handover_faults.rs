//! What must hold when several things go wrong while a flow changes its link.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use house::links::{
    Sender, Taker, assert_all_came, breakable, ends, policy, process, route, set, settled_on, start,
};
use house::{Child, Folder, HANG, Random, Watchdog, best_effort, keep_all, keep_last, tell};
use tsuji::{Context, Durability, Publisher, PublisherOptions, Qos};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_transport::Transport;
use tsuji_transport::faulty::{Faults, Faulty};

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "count_ticks" => count_ticks(),
        "spam" => spam(),
        role => house::links::play(role, &house::context()),
    }
}

fn starved() -> Faults {
    Faults { starved: true, ..Faults::default() }
}

fn cut() -> Faults {
    Faults { cut: true, ..Faults::default() }
}

/// The link of a topic's flow.
fn on(context: &Context, topic: &str) -> Option<String> {
    route(context, topic).and_then(|it| it.transport)
}

/// A link whose engine takes long to start at one end keeps nobody waiting who publishes, or takes, on the link
/// that the flow has.
fn carries_while_another_link_opens(is_sender_slow: bool) {
    let _watchdog = Watchdog::start("a link opens slowly");
    let folder = Folder::new();
    let ((here, its), (there, theirs)) = (with_an_engine(&folder), with_an_engine(&folder));
    let slow = if is_sender_slow { its } else { theirs };
    slow.set(Faults { slow_to_open: true, ..Faults::NONE });
    let (publisher, subscription) = ends(&here, &there, keep_all());
    let sending = Sender::start(publisher, Duration::from_micros(200));
    let taking = Taker::start(subscription, u64::MAX);
    std::thread::scope(|scope| {
        let setting = scope.spawn(|| set(&there, "/n", Some("cyclonedds")));
        house::wait_until("it is opened", || slow.opening() == 1);
        // More than may wait: as many must be published meanwhile as are taken.
        taking.wait_for(taking.seen() + 2000);
        assert_eq!(slow.opening(), 1);
        slow.set(Faults::NONE);
        setting.join().unwrap();
    });
    settled_on(&there, "/n", "cyclonedds");
    let sent = sending.finish();
    assert_all_came(taking.finish(sent).counters(), sent);
}

/// A process, and its engine, which can be broken.
fn with_an_engine(folder: &Folder) -> (Context, Arc<Faulty>) {
    let engine = Arc::new(OnceLock::new());
    let made = Arc::clone(&engine);
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN).policy(policy());
    let context = builder.transports(move |built| {
        let (engines, mut all): (Vec<_>, Vec<_>) =
            built.into_iter().partition(|it| it.id().as_str() == "cyclonedds");
        let faulty = engines.into_iter().map(|it| Arc::new(Faulty::in_place_of(it, 1)));
        all.extend(faulty.map(|it| Arc::clone(made.get_or_init(|| it)) as Arc<dyn Transport>));
        all
    });
    let context = context.build().unwrap();
    let engine = engine.get().unwrap();
    (context, Arc::clone(engine))
}

#[test]
fn a_flow_is_published_while_its_next_link_opens() {
    carries_while_another_link_opens(true);
}

#[test]
fn a_flow_is_taken_while_its_next_link_opens() {
    carries_while_another_link_opens(false);
}

/// A flow that is decided while shared memory is short comes back when there is memory again.
#[test]
fn decided_while_short_returns() {
    let folder = Folder::new();
    let ((here, fault), there) = (breakable(&folder), process(&folder));
    fault("shm", starved());
    let (publisher, _subscription) = ends(&here, &there, keep_last(10));
    assert_eq!(on(&there, "/n").as_deref(), Some("cyclonedds"));
    fault("shm", Faults::default());
    let begin = Instant::now();
    while on(&there, "/n").as_deref() != Some("shm") {
        assert!(
            begin.elapsed() < Duration::from_secs(22),
            "never back: {:#?}",
            route(&there, "/n")
        );
        let _ = publisher.publish(UInt64 { data: 1 });
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A reliable publisher that does not like to wait leaves a link that has no memory.
#[test]
fn impatient_publisher_leaves_exhausted_link() {
    let folder = Folder::new();
    let ((here, fault), there) = (breakable(&folder), process(&folder));
    let node = here.node("a").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "n",
            PublisherOptions::default().qos(keep_last(10)).max_blocking(Duration::from_millis(5)),
        )
        .unwrap();
    let _s =
        there.node("b").unwrap().create_polled_subscription::<UInt64>("n", keep_last(10)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    fault("shm", starved());
    recovers(&publisher, &there, || publisher.publish(UInt64 { data: 1 }).is_ok());
}

/// So does one of best effort that publishes loans.
#[test]
fn best_effort_loans_leave_exhausted_link() {
    let folder = Folder::new();
    let ((here, fault), there) = (breakable(&folder), process(&folder));
    let (publisher, _s) = ends(&here, &there, best_effort(10));
    fault("shm", starved());
    recovers(&publisher, &there, || publisher.loan_bytes(100).is_ok());
}

/// Tries until it succeeds, which it does before long.
#[track_caller]
fn recovers(publisher: &Publisher<UInt64>, there: &Context, attempt: impl Fn() -> bool) {
    let begin = Instant::now();
    while !attempt() {
        let is_long = Duration::from_secs(5) <= begin.elapsed();
        assert!(!is_long, "{:?} {:?}", publisher.counters(), on(there, "/n"));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Who keeps the last one gets the last one.
#[test]
fn depth_one_is_the_newest_after_a_change() {
    let folder = Folder::new();
    let context = process(&folder);
    let node = context.node("both").unwrap();
    let publisher = node.create_publisher::<UInt64>("n", keep_last(1)).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", keep_last(1)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 0 }).unwrap();
    set(&context, "/n", Some("shm"));
    settled_on(&context, "/n", "shm");
    (1..=100).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    assert_eq!(subscription.take().unwrap().unwrap().view().data, 100);
}

/// A subscription that keeps all and takes nothing holds its publisher back, however often links change.
#[test]
fn keep_all_stays_bounded() {
    let folder = Folder::new();
    let context = process(&folder);
    let node = context.node("both").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "n",
            PublisherOptions::default().qos(keep_all()).max_blocking(Duration::from_millis(30)),
        )
        .unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let mut next = 0;
    for change in 0..20 {
        while publisher.publish(UInt64 { data: next }).is_ok() {
            next += 1;
        }
        // It does not come to rest while nobody takes.
        set(&context, "/n", Some(["shm", "inproc"][change % 2]));
    }
    let mut came = 0;
    while let Some(it) = subscription.take().unwrap() {
        assert_eq!(it.view().data, came);
        came += 1;
    }
    assert!(next <= 3 * 1024, "{next} waited at one time, {came} came");
}

/// A subscription that takes nothing pins no more shared memory than its depth.
#[test]
fn changes_pin_no_memory() {
    let _w = Watchdog::start("t6");
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let publisher = here.node("a").unwrap().create_publisher::<Image>("p", keep_last(4)).unwrap();
    let _s =
        there.node("b").unwrap().create_polled_subscription::<Image>("p", keep_last(4)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for change in 0..40u32 {
        let to = ["shm", "cyclonedds"][change as usize % 2];
        set(&there, "/p", Some(to));
        let begin = Instant::now();
        while on(&there, "/p").as_deref() != Some(to) {
            assert!(
                begin.elapsed() < Duration::from_secs(5),
                "change {change}: {:#?}",
                route(&there, "/p")
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        settled_on(&there, "/p", to);
        for _ in 0..8 {
            if let Err(error) =
                publisher.publish(Image { data: vec![7; 1 << 20], ..Image::default() })
            {
                panic!("change {change}: {error:?} {:#?}", route(&there, "/p"));
            }
        }
        let now = route(&there, "/p").unwrap();
        assert!(now.transport.as_deref() == Some(to), "change {change}: {:#?}", now.changes);
    }
}

/// Two that set a topic at once come to agree.
#[test]
fn two_that_set_at_once_agree() {
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let keep: Vec<_> = [&here, &there]
        .iter()
        .map(|it| {
            let node = it.node("n").unwrap();
            (
                node.create_publisher::<UInt64>("n", Qos::DEFAULT).unwrap(),
                node.create_polled_subscription::<UInt64>("n", Qos::DEFAULT).unwrap(),
            )
        })
        .collect();
    keep.iter().for_each(|it| it.0.wait_for_subscriptions(2, HANG).unwrap());
    for round in 0..100 {
        std::thread::scope(|scope| {
            scope.spawn(|| set(&here, "/n", Some("cyclonedds")));
            scope.spawn(|| set(&there, "/n", Some("shm")));
        });
        std::thread::sleep(Duration::from_millis(20));
        let pins =
            || here.routes(HANG).unwrap().into_iter().map(|it| it.pinned).collect::<Vec<_>>();
        let agree = || {
            let pins = pins();
            pins.iter().all(|it| *it == pins[0])
        };
        if !agree() {
            std::thread::sleep(Duration::from_secs(2));
            assert!(agree(), "round {round}: {:?}", pins());
        }
    }
}

/// A wire that fails while nobody but foreign nodes could listen there does not stop a publisher for ever.
#[test]
fn idle_wire_that_fails_blocks_nobody() {
    let folder = Folder::new();
    let made = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&made);
    let builder = Context::builder()
        .runtime_dir(&folder.0)
        .domain(house::DOMAIN + 60)
        .policy(policy())
        .interop(tsuji::Interop::RTPS);
    let context = builder
        .transports(move |built| {
            let faulty: Vec<_> = built.into_iter().map(|it| Faulty::in_place_of(it, 1)).collect();
            keep.lock().unwrap().clone_from(&faulty);
            faulty.into_iter().map(|it| Arc::new(it) as Arc<dyn Transport>).collect()
        })
        .build()
        .unwrap();
    let fault = |faults| {
        let made = made.lock().unwrap();
        made.iter().find(|it| it.id().as_str() == "cyclonedds").unwrap().set(faults);
    };
    let qos = Qos { durability: Durability::TransientLocal, ..keep_last(10) };
    let node = context.node("both").unwrap();
    let publisher = node.create_publisher::<UInt64>("n", qos).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", qos).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    publisher.publish(UInt64 { data: 0 }).unwrap();
    fault(cut());
    let first = publisher.publish(UInt64 { data: 1 });
    fault(Faults::default());
    let begin = Instant::now();
    while let Err(error) = publisher.publish(UInt64 { data: 2 }) {
        assert!(
            begin.elapsed() < Duration::from_secs(15),
            "first {first:?}, now {error:?}: {:#?}",
            route(&context, "/n")
        );
    }
    assert!(subscription.take().unwrap().is_some());
}

/// One that stands still in a change does not stop the publisher for others when the next link fails.
#[test]
fn stopped_in_a_change_then_broken() {
    let folder = Folder::new();
    let ((here, fault), there) = (breakable(&folder), process(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_last(1000));
    let child = start(&folder, "take");
    child.expect("there");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    publisher.publish(UInt64 { data: 0 }).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    set(&here, "/n", Some("cyclonedds"));
    // Both are on trial now.
    std::thread::sleep(Duration::from_millis(60));
    child.stop();
    std::thread::sleep(Duration::from_millis(600));
    fault("cyclonedds", cut());
    let begin = Instant::now();
    let mut data = 1;
    while let Err(error) = publisher.publish(UInt64 { data }) {
        if Duration::from_secs(20) < begin.elapsed() {
            let now = here.routes(Duration::from_millis(200)).unwrap();
            child.go_on();
            panic!("still {error:?}: {now:#?}");
        }
    }
    data += 1;
    let _ = (data, subscription.take());
}

/// What was published was received, displaced or lost, and only one of them.
#[test]
fn counters_add_up() {
    check_counters(10);
}

#[test]
fn counters_add_up_without_changes() {
    check_counters(0);
}

fn check_counters(changes: usize) {
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_last(5));
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let taking = std::thread::spawn(move || {
        while !told.load(Ordering::Acquire) {
            while subscription.take().unwrap().is_some() {}
            std::thread::sleep(Duration::from_millis(40));
        }
        std::thread::sleep(Duration::from_millis(100));
        while subscription.take().unwrap().is_some() {}
        subscription.counters()
    });
    let sending = Sender::start(publisher, Duration::from_millis(1));
    for change in 0..changes {
        let to = ["cyclonedds", "shm"][change % 2];
        set(&there, "/n", Some(to));
        settled_on(&there, "/n", to);
    }
    if changes == 0 {
        std::thread::sleep(Duration::from_secs(1));
    }
    let sent = sending.finish();
    std::thread::sleep(Duration::from_millis(300));
    stop.store(true, Ordering::Release);
    let counters = taking.join().unwrap();
    assert_eq!(counters.received + counters.displaced + counters.lost, sent, "{counters:?}");
}

/// What is latched comes once, whatever its link.
#[test]
fn latched_comes_once() {
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let qos = Qos { durability: Durability::TransientLocal, ..keep_last(1) };
    let (publisher, subscription) = ends(&here, &there, qos);
    publisher.publish(UInt64 { data: 7 }).unwrap();
    house::wait_until("it comes", || subscription.take().unwrap().is_some());
    for change in 0..6 {
        let to = ["cyclonedds", "shm"][change % 2];
        set(&there, "/n", Some(to));
        settled_on(&there, "/n", to);
        std::thread::sleep(Duration::from_millis(100));
        assert!(subscription.take().unwrap().is_none());
        let late =
            there.node("late").unwrap().create_polled_subscription::<UInt64>("n", qos).unwrap();
        house::wait_until("it comes to a late one", || late.take().unwrap().is_some());
        assert!(late.take().unwrap().is_none());
    }
    publisher.publish(UInt64 { data: 8 }).unwrap();
    house::wait_until("it comes", || subscription.take().unwrap().is_some());
    assert_eq!(
        format!("{:?}", subscription.counters()),
        "SubscriptionCounters { received: 2, displaced: 0, expired: 0, invalid: 0, lost: 0, duplicates: 0, filtered: 0 }"
    );
}

fn control_ticks() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .filter_map(|it| {
            let stat = std::fs::read_to_string(it.path().join("stat")).ok()?;
            if !stat.contains("tsuji-control") {
                return None;
            }
            let rest: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
            Some(rest[11].parse::<u64>().ok()? + rest[12].parse::<u64>().ok()?)
        })
        .sum()
}

/// The control thread sleeps while a change waits for one that stands still.
#[test]
fn nobody_spins() {
    let folder = Folder::new();
    let counting = Child::start(&folder, "count_ticks");
    while let Ok(ticks) = counting.line().parse::<u64>() {
        assert!(ticks < 70, "{ticks} of 700");
    }
}

/// In a process of its own, where no other test has control threads: says how many hundredths of a second they
/// worked in some seconds.
fn count_ticks() {
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let (publisher, _subscription) = ends(&here, &there, keep_all());
    let child = start(&folder, "take");
    child.expect("there");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let mut numbers = 0..;
    let mut publish = || {
        for data in numbers.by_ref().take(50) {
            publisher.publish(UInt64 { data }).unwrap();
        }
    };
    publish();
    child.stop();
    for to in ["cyclonedds", "shm", "cyclonedds"] {
        let _ = here.set_route("/n", Some(to), Duration::ZERO);
        publish();
        let before = control_ticks();
        std::thread::sleep(Duration::from_secs(7));
        tell(&(control_ticks() - before).to_string());
    }
    child.go_on();
    tell("all");
}

/// What waits to be said to one that stands still does not grow with what came and went.
#[test]
fn spam_at_one_that_stands_still() {
    let folder = Folder::new();
    let grown: u64 = Child::start(&folder, "spam").line().parse().unwrap();
    assert!(grown < 2000, "{grown} KiB more");
}

/// In a process of its own, whose memory no other test takes or gives back.
fn spam() {
    let folder = Folder::new();
    let here = process(&folder);
    let child = start(&folder, "publish_nothing");
    child.expect("there");
    house::wait_until("they meet", || here.peer_processes().len() == 1);
    child.stop();
    let spam = |count| {
        (0..count).for_each(|at| {
            let _ = here.set_route(
                "/a_topic_of_some_length",
                Some(["shm", "cyclonedds"][at % 2]),
                Duration::ZERO,
            );
        })
    };
    spam(20_000);
    let before = house::resident_kib();
    spam(200_000);
    let grown = house::resident_kib().saturating_sub(before);
    child.go_on();
    tell(&grown.to_string());
}

/// Calls are answered however often the links change.
#[test]
fn calls_while_links_change() {
    use tsuji_interfaces::example_interfaces::srv::{
        AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
    };
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let server = there.node("server").unwrap();
    let _service = server
        .create_service::<AddTwoInts>("add", |it| AddTwoIntsResponse { sum: it.a + it.b })
        .unwrap();
    let spinning = there.clone();
    let thread = std::thread::spawn(move || {
        let mut executor = tsuji::Executor::new(&spinning).unwrap();
        executor.add(&server).unwrap();
        executor.spin().unwrap();
    });
    let client = here.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    let stop = AtomicBool::new(false);
    let mut failed = Vec::new();
    let mut calls = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(9);
            for change in 0..300 {
                set(&here, "/add", Some(["cyclonedds", "shm"][change % 2]));
                std::thread::sleep(Duration::from_micros(random.below(30_000)));
            }
            stop.store(true, Ordering::Release);
        });
        while !stop.load(Ordering::Acquire) {
            calls += 1;
            match client.call(AddTwoIntsRequest { a: calls, b: 1 }, Duration::from_secs(3)) {
                Ok(it) => assert_eq!(it.sum, calls + 1),
                Err(error) => failed.push(format!("{calls}: {error}")),
            }
        }
    });
    there.shutdown();
    thread.join().unwrap();
    assert!(failed.is_empty(), "of {calls}: {failed:#?}");
}

/// One that stands still does not keep others waiting when their common link fails.
#[test]
fn stopped_and_then_broken() {
    let folder = Folder::new();
    let ((here, fault), there) = (breakable(&folder), process(&folder));
    let (publisher, _subscription) = ends(&here, &there, keep_last(1000));
    let child = start(&folder, "take");
    child.expect("there");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    child.stop();
    publisher.publish(UInt64 { data: 0 }).unwrap();
    fault("shm", cut());
    let begin = Instant::now();
    while publisher.publish(UInt64 { data: 1 }).is_err() {}
    let (took, dropped) = (begin.elapsed(), publisher.counters().dropped);
    child.go_on();
    // Sooner than for a link that is opened while its flow has another.
    assert!(took < Duration::from_secs(5), "{took:?}, {dropped} dropped");
}

/// What is taken back stays taken back when somebody comes who has not heard of it.
#[test]
fn unset_stays_unset() {
    let folder = Folder::new();
    let here = process(&folder);
    let child = start(&folder, "publish_nothing");
    house::wait_until("they meet", || here.peer_processes().len() == 1);
    std::thread::sleep(Duration::from_millis(300));
    set(&here, "/n", Some("cyclonedds"));
    child.stop();
    let _ = here.set_route("/n", None, Duration::ZERO);
    let late = std::thread::scope(|scope| {
        let late = scope.spawn(|| process(&folder));
        std::thread::sleep(Duration::from_millis(500));
        child.go_on();
        late.join().unwrap()
    });
    std::thread::sleep(Duration::from_secs(2));
    let (_p, _s) = ends(&late, &here, keep_last(1));
    assert_eq!(route(&here, "/n").unwrap().pinned, None);
}
