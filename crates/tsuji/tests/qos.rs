//! What the quality of service promises, and the events that tell when it is not kept.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use house::{Child, Folder, HANG, Watchdog, best_effort, heard, keep_all, keep_last, take_until};
use house::{tell, wait_until};
use tsuji::{
    Context, Durability, ErrorKind, Executor, Liveliness, Node, Publisher, PublisherEvent,
    PublisherOptions, Qos, Subscription, SubscriptionEvent, SubscriptionOptions,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
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
        let publisher = writer
            .create_publisher::<UInt64>(
                "t",
                PublisherOptions::default().qos(qos).on_event(of_publisher.listener()),
            )
            .unwrap();
        let subscription = reader
            .create_polled_subscription::<UInt64>(
                "t",
                SubscriptionOptions::default().qos(qos).on_event(of_subscription.listener()),
            )
            .unwrap();
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
        let publisher = writer
            .create_publisher::<UInt64>(
                "t",
                PublisherOptions::default().qos(manual(SHORT)).on_event(of_publisher.listener()),
            )
            .unwrap();
        let subscription = reader
            .create_polled_subscription::<UInt64>(
                "t",
                SubscriptionOptions::default()
                    .qos(manual(SHORT))
                    .on_event(of_subscription.listener()),
            )
            .unwrap();
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

/// A publisher and a subscription with the same deadline and lease.
struct Promise {
    publisher: Publisher<UInt64>,
    subscription: Subscription<UInt64>,
    told: Told<SubscriptionEvent>,
    executor: Executor,
    reader: Node,
}

/// What a subscription was told so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Late {
    misses: usize,
    lapses: usize,
    returns: usize,
}

impl Promise {
    /// Once in one process, and once in two.
    fn check(period: Duration, check: impl Fn(&mut Self)) {
        let folder = Folder::new();
        for remote in [false, true] {
            let one = folder.process();
            let two = if remote { folder.process() } else { one.clone() };
            let (writer, reader) = (one.node("w").unwrap(), two.node("r").unwrap());
            let lease = manual(period);
            let qos = Qos { deadline: Some(period), history: keep_last(1000).history, ..lease };
            let told = Told::new();
            let publisher = writer.create_publisher("t", qos).unwrap();
            let subscription = reader
                .create_polled_subscription(
                    "t",
                    SubscriptionOptions::default().qos(qos).on_event(told.listener()),
                )
                .unwrap();
            publisher.wait_for_subscriptions(1, HANG).unwrap();
            subscription.wait_for_publishers(1, HANG).unwrap();
            let executor = executor(&reader);
            check(&mut Self { publisher, subscription, told, executor, reader });
        }
    }

    fn publish(&self) -> Instant {
        let start = Instant::now();
        self.publisher.publish(UInt64 { data: 1 }).unwrap();
        start
    }

    /// Hands over what there is to tell, for a moment.
    fn look(&mut self) -> Late {
        self.executor.spin_once(Duration::from_millis(1)).unwrap();
        let mut late = Late::default();
        for event in self.told.0.lock().unwrap().iter() {
            match event {
                SubscriptionEvent::DeadlineMissed { .. } => late.misses += 1,
                SubscriptionEvent::LivelinessChanged { alive: 0, not_alive: 1 } => late.lapses += 1,
                SubscriptionEvent::LivelinessChanged { alive: 1, .. } => late.returns += 1,
                _ => (),
            }
        }
        late
    }

    fn wait_until(&mut self, is_so: impl Fn(Late) -> bool) {
        while !is_so(self.look()) {}
    }
}

#[test]
fn samples_in_time_keep_deadline_and_lease_though_nobody_takes_them() {
    let _watchdog = Watchdog::start("untaken samples");
    const PERIOD: Duration = Duration::from_millis(100);
    Promise::check(PERIOD, |promise| {
        // What is late because this thread is proves nothing: then it begins anew.
        let late = loop {
            let start = promise.publish();
            // Whoever looked before this sample came has told by now what it saw.
            promise.reader.context().graph();
            let before = (0..20).map(|_| promise.look()).last().unwrap();
            let mut last = start;
            let is_steady = loop {
                let this = promise.publish();
                if PERIOD <= last.elapsed() {
                    break false;
                }
                if 4 * PERIOD < start.elapsed() {
                    break true;
                }
                last = this;
                promise.look();
            };
            if is_steady {
                let late = promise.look();
                break (late.misses - before.misses, late.lapses - before.lapses);
            }
        };
        assert_eq!(late, (0, 0));
        // It is looked after all the same.
        let now = promise.look();
        promise.wait_until(|late| now.misses < late.misses && now.lapses < late.lapses);
    });
}

#[test]
fn old_samples_taken_later_are_neither_in_time_nor_a_sign_of_life() {
    let _watchdog = Watchdog::start("old samples");
    Promise::check(SHORT, |promise| {
        for _ in 0..1000 {
            promise.publish();
        }
        // More often than every period there is one to take.
        let before = promise.look();
        let mut late = before;
        while late.misses == before.misses || late.lapses == before.lapses {
            assert!(promise.subscription.take().unwrap().is_some(), "{before:?}, {late:?}");
            late = promise.look();
        }
        while promise.subscription.take().unwrap().is_some() {}
        promise.wait_until(|now| late.misses + 5 < now.misses);
        assert_eq!(promise.look().returns, late.returns);
    });
}

#[test]
fn a_publisher_is_alive_again_when_its_sample_arrives() {
    let _watchdog = Watchdog::start("alive again");
    Promise::check(SHORT, |promise| {
        let mut before = Late::default();
        for _ in 0..10 {
            promise.wait_until(|late| before.lapses < late.lapses);
            before = promise.look();
            promise.publish();
            promise.wait_until(|late| before.returns < late.returns);
        }
    });
}

#[test]
fn a_killed_publisher_is_not_alive() {
    let _watchdog = Watchdog::start("liveliness of the killed");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("r").unwrap();
    let told = Told::new();
    let subscription = node
        .create_polled_subscription::<UInt64>(
            "t",
            SubscriptionOptions::default().qos(manual(HANG)).on_event(told.listener()),
        )
        .unwrap();
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
        let subscription = reader.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
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
fn the_depth_is_that_of_the_subscription_over_all_publishers_and_links() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let own = one.node("own").unwrap();
    let nodes = [own.clone(), one.node("same").unwrap(), two.node("other").unwrap()];
    for depth in [1, 3, 7] {
        let subscription = own.create_polled_subscription::<UInt64>("t", keep_last(depth)).unwrap();
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
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(latched(keep_all())).max_blocking(HANG),
        )
        .unwrap();
    (0..300).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    for context in [&one, &two] {
        let reader = context.node("r").unwrap();
        let qos = latched(keep_all());
        let subscription = reader.create_polled_subscription::<UInt64>("t", qos).unwrap();
        let mut next = 0;
        take_until(&reader, &subscription, |received| {
            assert_eq!(received.view().data, next);
            next += 1;
            next == 300
        });
        assert_eq!(subscription.counters().lost, 0);
    }
    // While it joins, another publisher goes on that keeps as many as find room: nothing is missed and nothing comes
    // twice.
    let publisher = node
        .create_publisher::<UInt64>(
            "u",
            PublisherOptions::default().qos(latched(keep_last(1000))).max_blocking(HANG),
        )
        .unwrap();
    (0..300).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
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
            let subscription = reader.create_polled_subscription::<UInt64>("u", qos).unwrap();
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
    let publisher = writer
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().on_event(of_publisher.listener()),
        )
        .unwrap();
    let _watching = reader
        .create_polled_subscription::<UInt64>(
            "t",
            SubscriptionOptions::default().on_event(of_subscription.listener()),
        )
        .unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let other = reader.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
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
fn links_that_come_and_go_bring_each_subscription_all_from_its_beginning_on() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("w").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
    let readers = [one.node("near").unwrap(), two.node("far").unwrap()];
    let mut subscriptions = [None, None];
    let mut sent = 0;
    // Each round one of the two joins or leaves.
    for round in 0..40 {
        let which = [0, 1, 0, 1, 1, 0, 1, 0][round % 8];
        if subscriptions[which].take().is_none() {
            subscriptions[which] = Some((
                readers[which].create_polled_subscription::<UInt64>("t", keep_all()).unwrap(),
                sent,
            ));
        }
        let count = subscriptions.iter().flatten().count();
        wait_until("all are matched", || publisher.matched() == count);
        for _ in 0..3 {
            publisher.publish(UInt64 { data: sent }).unwrap();
            sent += 1;
        }
        for (subscription, next) in subscriptions.iter_mut().flatten() {
            while let Some(received) = subscription.take().unwrap() {
                assert_eq!(received.view().data, *next);
                *next += 1;
            }
            assert_eq!(*next, sent);
        }
    }
}

#[test]
fn a_best_effort_subscription_never_holds_a_reliable_publisher_back() {
    let folder = Folder::new();
    for remote in [false, true] {
        let one = folder.process();
        let two = if remote { folder.process() } else { one.clone() };
        let node = one.node("w").unwrap();
        let publisher = node
            .create_publisher::<UInt64>(
                "t",
                PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
            )
            .unwrap();
        let reader = two.node("r").unwrap();
        let qos = best_effort(4);
        let subscription = reader.create_polled_subscription::<UInt64>("t", qos).unwrap();
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

/// A process that lends little memory.
fn modest_process(folder: &Folder) -> Context {
    let policy = folder.0.join("modest.xml");
    std::fs::create_dir_all(&folder.0).unwrap();
    let setting = "<set key=\"memory_bytes_max\" value=\"16MiB\"/>";
    // Else a flow that finds no memory goes on over the network.
    let forbidden = "<forbid name=\"shared memory alone\" use=\"cyclonedds\"/>";
    let text = format!("<tsuji>{forbidden}<transport name=\"shm\">{setting}</transport></tsuji>");
    std::fs::write(&policy, text).unwrap();
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN).isolated();
    builder.policy_file(policy).build().unwrap()
}

const LARGE: usize = 3 << 20;

/// So many samples of that size have room in such a process.
const LARGE_MAX: usize = 4;

/// Fills all memory with samples that the subscription holds, and answers the refusal of the next.
fn hold_all_memory(
    publisher: &Publisher<Image>,
    subscription: &Subscription<Image>,
    held: &mut Vec<tsuji::Received<Image>>,
) -> tsuji::Error {
    loop {
        match publisher.loan(&Image::default(), LARGE) {
            Ok(loan) => publisher.publish(loan).unwrap(),
            Err(error) => return error,
        }
        held.extend(subscription.take().unwrap());
    }
}

#[test]
fn a_reliable_loan_waits_for_memory_and_one_of_best_effort_does_not() {
    let _watchdog = Watchdog::start("loans");
    let folder = Folder::new();
    let (one, two) = (modest_process(&folder), folder.process());
    let (writer, reader) = (one.node("w").unwrap(), two.node("r").unwrap());
    let subscription = reader.create_polled_subscription::<Image>("t", best_effort(8)).unwrap();
    let publisher = |qos, max_blocking| {
        let publisher = writer
            .create_publisher::<Image>(
                "t",
                PublisherOptions::default().qos(qos).max_blocking(max_blocking),
            )
            .unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        publisher
    };
    let mut held = Vec::new();
    let hasty = publisher(keep_last(8), SHORT);
    // A flow that begins without memory takes another link.
    let careless = publisher(best_effort(8), Duration::MAX);
    let patient = publisher(keep_last(8), Duration::MAX);
    let error = hold_all_memory(&hasty, &subscription, &mut held);
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    let all = held.len();
    let start = Instant::now();
    let error = hasty.loan(&Image::default(), LARGE).unwrap_err();
    assert!(SHORT <= start.elapsed(), "it did not wait: {error}");
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert_eq!(hasty.counters().dropped, 0, "nothing was published");

    // It would wait for ever: the watchdog would cut it.
    let error = careless.loan(&Image::default(), LARGE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");

    // What another publisher sent and the subscription lets go of is room.
    for _ in 0..20 {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| patient.loan(&Image::default(), LARGE));
            held.pop();
            patient.publish(waiting.join().unwrap().unwrap()).unwrap();
        });
        wait_until("it comes", || {
            held.extend(subscription.take().unwrap());
            held.len() == all
        });
    }

    // Whoever waits when all ends is told.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| patient.loan(&Image::default(), LARGE));
        one.shutdown();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn what_best_effort_gives_up_is_lost_to_its_subscriptions() {
    let _watchdog = Watchdog::start("best effort without memory");
    let folder = Folder::new();
    let (one, two) = (modest_process(&folder), folder.process());
    let (writer, reader) = (one.node("w").unwrap(), two.node("r").unwrap());
    let subscription = reader.create_polled_subscription::<Image>("t", best_effort(8)).unwrap();
    let publisher = |qos| {
        let publisher = writer
            .create_publisher::<Image>(
                "t",
                PublisherOptions::default().qos(qos).max_blocking(SHORT),
            )
            .unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        publisher
    };
    let (reliable, careless) = (publisher(keep_last(8)), publisher(best_effort(8)));
    subscription.wait_for_publishers(2, HANG).unwrap();
    let mut held = Vec::new();
    hold_all_memory(&reliable, &subscription, &mut held);
    let sent = reliable.counters().published;
    let image = Image { data: vec![1; LARGE], ..Image::default() };
    let mut bytes = vec![0; LARGE];
    bytes[1] = 1;

    careless.publish(&image).unwrap();
    careless.publish_bytes(&bytes).unwrap();
    let counters = careless.counters();
    assert_eq!((counters.published, counters.dropped), (0, 2));
    for refused in [reliable.publish(&image), reliable.publish_bytes(&bytes)] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Busy);
    }
    assert_eq!(reliable.counters().dropped, 2);

    held.clear();
    for publisher in [&careless, &reliable] {
        publisher.publish(&image).unwrap();
        // The flow may have left memory for the network by now, and that takes a moment.
        wait_until("it comes", || subscription.is_ready());
        let received = subscription.take().unwrap().unwrap();
        let expect = if publisher.gid() == careless.gid() { 3 } else { sent + 1 };
        assert_eq!(received.info().sequence, expect);
    }
    assert_eq!(subscription.counters().lost, 2);
}

#[test]
fn a_late_joiner_gets_the_history_when_there_is_memory_for_it() {
    let _watchdog = Watchdog::start("a history that does not fit");
    let folder = Folder::new();
    let (one, two) = (modest_process(&folder), folder.process());
    let (writer, reader) = (one.node("w").unwrap(), two.node("r").unwrap());
    let latched = Qos { durability: Durability::TransientLocal, ..keep_last(8) };
    let publisher = writer.create_publisher::<Image>("latched", latched).unwrap();
    // Nobody listens, so it is kept on the heap.
    publisher.publish(Image { data: vec![1; LARGE], ..Image::default() }).unwrap();

    let greedy = reader.create_polled_subscription::<Image>("t", keep_last(8)).unwrap();
    let filler = writer
        .create_publisher::<Image>(
            "t",
            PublisherOptions::default().qos(keep_last(8)).max_blocking(SHORT),
        )
        .unwrap();
    filler.wait_for_subscriptions(1, HANG).unwrap();
    // No more fit, but nobody was refused: a flow that begins after that takes another link.
    let mut held = Vec::new();
    for _ in 0..LARGE_MAX {
        filler.publish(filler.loan(&Image::default(), LARGE).unwrap()).unwrap();
        held.extend(greedy.take().unwrap());
    }

    let late = reader.create_polled_subscription::<Image>("latched", latched).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    assert_eq!((publisher.matched(), publisher.counters().failed), (1, 0));
    held.clear();
    publisher.publish(Image { height: 2, ..Image::default() }).unwrap();
    let mut heights = Vec::new();
    take_until(&reader, &late, |received| {
        heights.push(received.view().height);
        heights.ends_with(&[2])
    });
    assert_eq!(heights, [0, 2]);
    drop(late);
    wait_until("it has left", || publisher.matched() == 0);
}

#[test]
fn a_sign_of_life_is_no_sample_in_time() {
    let _watchdog = Watchdog::start("signs of life without samples");
    let folder = Folder::new();
    let node = folder.process().node("w").unwrap();
    let told = Told::new();
    let qos = Qos { deadline: Some(SHORT), ..manual(HANG) };
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(qos).on_event(told.listener()),
        )
        .unwrap();
    let mut executor = executor(&node);
    let missed_often = |event: &PublisherEvent| matches!(event, PublisherEvent::DeadlineMissed { total } if 5 <= *total);
    while !told.has(missed_often) {
        publisher.assert_liveliness().unwrap();
        executor.spin_once(Duration::from_millis(1)).unwrap();
    }
    assert!(!told.has(|event| *event == PublisherEvent::LivelinessLost));
}
