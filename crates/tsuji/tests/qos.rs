//! What the quality of service promises, and the events that tell when it is not kept.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use house::{Child, Folder, HANG, Watchdog, best_effort, heard, keep_all, keep_last, take_until};
use house::{tell, wait_until};
use tsuji::{Durability, Executor, Liveliness, Node, PublisherEvent, Qos, SubscriptionEvent};
use tsuji_interfaces::std_msgs::msg::UInt64;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "publish when told" => {
            let context = house::context();
            let node = context.node("child").unwrap();
            let publisher = node.create_publisher::<UInt64>("t", manual(HANG)).unwrap();
            publisher.wait_for_subscriptions(1, HANG).unwrap();
            tell("there");
            while heard() == "publish" {
                publisher.publish(UInt64 { data: 1 }).unwrap();
            }
        }
        other => panic!("{other}"),
    }
}

fn manual(lease: Duration) -> Qos {
    Qos { liveliness: Liveliness::ManualByTopic, liveliness_lease: Some(lease), ..keep_last(10) }
}

/// Events, in the order in which they came.
#[derive(Clone)]
struct Told<E>(Arc<Mutex<Vec<E>>>);

impl<E: Send + 'static> Told<E> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn listener(&self) -> impl FnMut(E) + Send + 'static {
        let list = Arc::clone(&self.0);
        move |event| list.lock().unwrap().push(event)
    }

    fn has(&self, wanted: impl Fn(&E) -> bool) -> bool {
        self.0.lock().unwrap().iter().any(wanted)
    }
}

fn executor(node: &Node) -> Executor {
    let mut executor = Executor::new(node.context()).unwrap();
    executor.add(node).unwrap();
    executor
}

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn both_sides_are_told_of_missed_deadlines() {
    let _watchdog = Watchdog::start("deadlines");
    let folder = Folder::new();
    for remote in [false, true] {
        let one = folder.process();
        let two = if remote { folder.process() } else { one.clone() };
        let (writer, reader) = (one.node("w").unwrap(), two.node("r").unwrap());
        let (of_publisher, of_subscription) = (Told::new(), Told::new());
        let qos = Qos { deadline: Some(SHORT), ..Qos::DEFAULT };
        let publisher = writer.publisher::<UInt64>("t").qos(qos).on_event(of_publisher.listener());
        let publisher = publisher.build().unwrap();
        let subscription = reader.subscription::<UInt64>("t").qos(qos);
        let subscription = subscription.on_event(of_subscription.listener()).build().unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        publisher.publish(UInt64 { data: 1 }).unwrap();
        let missed_twice = |event: &PublisherEvent| matches!(event, PublisherEvent::DeadlineMissed { total } if 2 <= *total);
        executor(&writer).spin_until(|| of_publisher.has(missed_twice)).unwrap();
        let missed_twice = |event: &SubscriptionEvent| matches!(event, SubscriptionEvent::DeadlineMissed { total } if 2 <= *total);
        executor(&reader).spin_until(|| of_subscription.has(missed_twice)).unwrap();
        drop(subscription);
        // Nobody to be late for: only the publisher's own promise is left.
        wait_until("it is gone", || publisher.matched() == 0);
    }
}

#[test]
fn manual_liveliness_is_lost_and_comes_back() {
    let _watchdog = Watchdog::start("liveliness");
    let folder = Folder::new();
    for remote in [false, true] {
        let one = folder.process();
        let two = if remote { folder.process() } else { one.clone() };
        let (writer, reader) = (one.node("w").unwrap(), two.node("r").unwrap());
        let (of_publisher, of_subscription) = (Told::new(), Told::new());
        let publisher =
            writer.publisher::<UInt64>("t").qos(manual(SHORT)).on_event(of_publisher.listener());
        let publisher = publisher.build().unwrap();
        let subscription = reader.subscription::<UInt64>("t").qos(manual(SHORT));
        let subscription = subscription.on_event(of_subscription.listener()).build().unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        let (mut writers, mut readers) = (executor(&writer), executor(&reader));
        let changed = |alive, not_alive| {
            let wanted = SubscriptionEvent::LivelinessChanged { alive, not_alive };
            let told = of_subscription.clone();
            move || told.has(|event| *event == wanted)
        };
        readers.spin_until(changed(1, 0)).unwrap();
        readers.spin_until(changed(0, 1)).unwrap();
        let lost = || of_publisher.has(|event| *event == PublisherEvent::LivelinessLost);
        writers.spin_until(lost).unwrap();
        // A sign of life, by asserting it or by publishing.
        for is_published in [false, true] {
            of_subscription.0.lock().unwrap().clear();
            of_publisher.0.lock().unwrap().clear();
            if is_published {
                publisher.publish(UInt64 { data: 1 }).unwrap();
                wait_until("it comes", || subscription.take().unwrap().is_some());
            } else {
                publisher.assert_liveliness().unwrap();
            }
            readers.spin_until(changed(1, 0)).unwrap();
            readers.spin_until(changed(0, 1)).unwrap();
            writers.spin_until(lost).unwrap();
        }
    }
}

#[test]
fn a_killed_publisher_is_not_alive() {
    let _watchdog = Watchdog::start("liveliness of the killed");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("r").unwrap();
    let told = Told::new();
    let subscription = node.subscription::<UInt64>("t").qos(manual(HANG));
    let subscription = subscription.on_event(told.listener()).build().unwrap();
    let mut child = Child::start(&folder, "publish when told");
    child.expect("there");
    child.say("publish");
    take_until(&node, &subscription, |_| true);
    let mut executor = executor(&node);
    let wanted = SubscriptionEvent::LivelinessChanged { alive: 1, not_alive: 0 };
    executor.spin_until(|| told.has(|event| *event == wanted)).unwrap();
    child.kill();
    let gone = SubscriptionEvent::LivelinessChanged { alive: 0, not_alive: 0 };
    let matched = SubscriptionEvent::Matched { current: 0 };
    executor
        .spin_until(|| told.has(|event| *event == gone) && told.has(|event| *event == matched))
        .unwrap();
}

#[test]
fn what_has_outlived_its_lifespan_is_not_delivered_but_counted() {
    let folder = Folder::new();
    for remote in [false, true] {
        let one = folder.process();
        let two = if remote { folder.process() } else { one.clone() };
        let node = one.node("w").unwrap();
        let qos = Qos { lifespan: Some(SHORT), ..keep_all() };
        let publisher = node.create_publisher::<UInt64>("t", qos).unwrap();
        let reader = two.node("r").unwrap();
        let subscription = reader.subscription::<UInt64>("t").qos(keep_all()).build().unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        (0..5).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
        // The passing of time is what is tested.
        std::thread::sleep(2 * SHORT);
        assert!(subscription.take().unwrap().is_none());
        let counters = subscription.counters();
        assert_eq!((counters.expired, counters.received, counters.lost), (5, 0, 0));
        let forever = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
        wait_until("both are connected", || subscription.matched() == 2);
        forever.publish(UInt64 { data: 9 }).unwrap();
        std::thread::sleep(2 * SHORT);
        take_until(&reader, &subscription, |received| received.view().data == 9);
    }
}

#[test]
fn the_depth_is_that_of_the_subscription_over_all_publishers_and_roads() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let own = one.node("own").unwrap();
    let nodes = [own.clone(), one.node("same").unwrap(), two.node("other").unwrap()];
    for depth in [1, 3, 7] {
        let subscription = own.subscription::<UInt64>("t").qos(keep_last(depth)).build().unwrap();
        let publishers: Vec<_> = nodes
            .iter()
            .map(|node| node.create_publisher::<UInt64>("t", keep_last(50)).unwrap())
            .collect();
        publishers.iter().for_each(|it| it.wait_for_subscriptions(1, HANG).unwrap());
        subscription.wait_for_publishers(3, HANG).unwrap();
        for data in 0..60 {
            publishers[data as usize % 3].publish(UInt64 { data }).unwrap();
        }
        let mut got = Vec::new();
        while let Some(received) = subscription.take().unwrap() {
            got.push(received.view().data);
        }
        let newest: Vec<u64> = (60 - u64::from(depth)..60).collect();
        assert_eq!(got, newest, "the newest {depth} of all, in the order of sending");
        let counters = subscription.counters();
        assert_eq!(counters.received + counters.displaced, 60, "{counters:?}");
        assert_eq!(counters.lost, 0, "{counters:?}");
        drop((publishers, subscription));
        one.wait_for_graph(HANG, |graph| graph.endpoints.is_empty().then_some(())).unwrap();
        two.wait_for_graph(HANG, |graph| graph.endpoints.is_empty().then_some(())).unwrap();
    }
}

#[test]
fn a_late_joiner_that_keeps_all_gets_all_that_is_kept() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let latched = |qos| Qos { durability: Durability::TransientLocal, ..qos };
    let node = one.node("w").unwrap();
    let publisher =
        node.publisher::<UInt64>("t").qos(latched(keep_all())).max_blocking(HANG).build().unwrap();
    (0..300).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    for context in [&one, &two] {
        let reader = context.node("r").unwrap();
        let qos = latched(keep_all());
        let subscription = reader.subscription::<UInt64>("t").qos(qos).build().unwrap();
        let mut next = 0;
        take_until(&reader, &subscription, |received| {
            assert_eq!(received.view().data, next);
            next += 1;
            next == 300
        });
        assert_eq!(subscription.counters().lost, 0);
    }
    // While it joins, the publisher goes on: nothing is missed and nothing comes twice.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = house::SetAtEnd(&is_over);
        let publisher = &publisher;
        scope.spawn(|| {
            for data in 300.. {
                publisher.publish(UInt64 { data }).unwrap();
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        for round in 0..20 {
            let context = if round % 2 == 0 { &one } else { &two };
            let reader = context.node("late").unwrap();
            let qos = latched(keep_all());
            let subscription = reader.subscription::<UInt64>("t").qos(qos).build().unwrap();
            let (mut last, mut count) = (None, 0);
            take_until(&reader, &subscription, |received| {
                let data = received.view().data;
                assert!(last.is_none_or(|last| data == last + 1), "{data} after {last:?}");
                last = Some(data);
                count += 1;
                count == 3000
            });
            let counters = subscription.counters();
            assert_eq!((counters.lost, counters.duplicates), (0, 0), "{counters:?}");
        }
    });
}

#[test]
fn matches_are_told_as_they_come_and_go() {
    let _watchdog = Watchdog::start("matches");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (writer, reader) = (one.node("w").unwrap(), two.node("r").unwrap());
    let (of_publisher, of_subscription) = (Told::new(), Told::new());
    let publisher = writer.publisher::<UInt64>("t").on_event(of_publisher.listener());
    let publisher = publisher.build().unwrap();
    let watching = reader.subscription::<UInt64>("t").on_event(of_subscription.listener());
    let _watching = watching.build().unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let other = reader.subscription::<UInt64>("t").build().unwrap();
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    drop(other);
    wait_until("one is gone", || publisher.matched() == 1);
    let is_last = |current: usize| {
        let last = of_publisher.0.lock().unwrap().last().cloned();
        last == Some(PublisherEvent::Matched { current })
    };
    let mut writers = executor(&writer);
    writers.spin_until(|| 3 <= of_publisher.0.lock().unwrap().len() && is_last(1)).unwrap();
    let numbers: Vec<_> = of_publisher.0.lock().unwrap().clone();
    let expect = [1, 2, 1].map(|current| PublisherEvent::Matched { current });
    assert_eq!(numbers, expect);
    drop((writers, publisher));
    let gone = SubscriptionEvent::Matched { current: 0 };
    executor(&reader).spin_until(|| of_subscription.has(|event| *event == gone)).unwrap();
}

#[test]
fn a_best_effort_subscription_never_holds_a_reliable_publisher_back() {
    let folder = Folder::new();
    for remote in [false, true] {
        let one = folder.process();
        let two = if remote { folder.process() } else { one.clone() };
        let node = one.node("w").unwrap();
        let publisher =
            node.publisher::<UInt64>("t").qos(keep_all()).max_blocking(HANG).build().unwrap();
        let reader = two.node("r").unwrap();
        let qos = best_effort(4);
        let subscription = reader.subscription::<UInt64>("t").qos(qos).build().unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        (0..5000).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
        let mut got = Vec::new();
        while let Some(received) = subscription.take().unwrap() {
            got.push(received.view().data);
        }
        assert_eq!(got, [4996, 4997, 4998, 4999]);
        assert_eq!(publisher.counters().displaced, 4996);
        assert_eq!(subscription.counters().displaced, 4996);
    }
}
