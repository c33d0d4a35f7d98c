//! Nodes exchange messages: in one process by reference, between isolated contexts (which behave
//! as processes of their own) by shared memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsuji::{
    Context, Durability, ErrorKind, Executor, History, LatencyClock, PublisherOptions, Qos,
    Reliability, RouteState, SubscriptionOptions,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::{String as Text, UInt64};
use tsuji_transport::Transport;
use tsuji_transport::faulty::{Faults, Faulty};

/// Only there to end a hung test.
const HANG: Duration = Duration::from_secs(60);

/// A run-time folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("tsuji-test-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn process(&self) -> Context {
        Context::builder().runtime_dir(&self.0).domain(7).isolated().build().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn keep_all() -> Qos {
    Qos { history: History::KeepAll, ..Qos::DEFAULT }
}

#[test]
fn a_value_reaches_a_subscription_in_the_process_by_reference() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("both").unwrap();
    let publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT).unwrap();
    let subscription = node.create_polled_subscription::<Text>("/chatter", Qos::DEFAULT).unwrap();
    assert_eq!((publisher.matched(), subscription.matched()), (1, 1));
    let message = Arc::new(Text { data: "hello".into() });
    publisher.publish(Arc::clone(&message)).unwrap();
    let received = subscription.take().unwrap().unwrap();
    assert!(Arc::ptr_eq(&received.message(), &message));
    assert_eq!(received.view().data, "hello");
    assert_eq!(received.info().sequence, 1);
    let latency = received.info().latency().unwrap();
    let sent_ns = received.info().source_mono_ns.unwrap();
    assert_eq!(latency.clock, LatencyClock::Monotonic);
    assert_eq!(latency.ns as u64, received.info().received_mono_ns - sent_ns);
    publisher.publish(&*message).unwrap();
    publisher.publish(Text { data: "again".into() }).unwrap();
    assert_eq!(subscription.take().unwrap().unwrap().view().data, "hello");
    assert_eq!(subscription.take().unwrap().unwrap().view().data, "again");
    assert!(subscription.take().unwrap().is_none());
    let routes = context.routes(HANG).unwrap();
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0].transport.as_deref(), Some("inproc"));
    assert_eq!((routes[0].samples, routes[0].state), (3, RouteState::Active));
}

#[test]
fn a_picture_drawn_in_a_loan_is_seen_in_place_by_another_process() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = one.node("camera").unwrap().create_publisher::<Image>("image", Qos::DEFAULT);
    let publisher = publisher.unwrap();
    let viewer = two.node("viewer").unwrap();
    let subscription = viewer.create_polled_subscription::<Image>("image", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let template = Image { width: 640, height: 480, encoding: "mono8".into(), ..Image::default() };
    let mut set = tsuji::WaitSet::new(&two).unwrap();
    set.add(&subscription).unwrap();
    for round in 0..20u8 {
        let mut loan = publisher.loan(&template, 640 * 480).unwrap();
        loan.data_mut().fill(round);
        publisher.publish(loan).unwrap();
        let received = loop {
            if let Some(received) = subscription.take().unwrap() {
                break received;
            }
            assert!(!set.wait(HANG).unwrap().is_empty());
        };
        let view = received.view();
        assert_eq!((view.width, view.height, view.encoding), (640, 480, "mono8"));
        assert!(view.data.len() == 640 * 480 && view.data.iter().all(|byte| *byte == round));
        assert!(!received.is_by_reference());
        let latency = received.info().latency().unwrap();
        assert_eq!(latency.clock, LatencyClock::Monotonic, "one time namespace");
        assert!(latency.duration() < HANG, "{latency}");
    }
    let routes = one.routes(HANG).unwrap();
    assert_eq!(routes[0].transport.as_deref(), Some("shm"));
    assert_eq!((routes[0].samples, routes[0].lost), (20, 0));
    assert!(routes[0].because.contains("local"), "{}", routes[0].because);
}

#[test]
fn callbacks_run_while_spinning_and_timers_keep_their_pace() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let talker = one.node("talker").unwrap();
    let publisher = talker.create_publisher::<UInt64>("count", keep_all()).unwrap();
    let listener = two.node("listener").unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let _subscription = listener
        .create_subscription::<UInt64>("count", keep_all(), move |message| {
            sink.lock().unwrap().push(message.view().data);
        })
        .unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let mut count = 0;
    let _timer = talker
        .create_timer(Duration::from_millis(1), move || {
            publisher.publish(UInt64 { data: count }).unwrap();
            count += 1;
        })
        .unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| tsuji::spin(&talker).unwrap());
        let mut executor = Executor::new(&two).unwrap().threads(3);
        executor.add(&listener).unwrap();
        executor.spin_until(|| 50 <= seen.lock().unwrap().len()).unwrap();
        one.shutdown();
    });
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, (0..seen.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_late_joiner_gets_what_transient_local_keeps() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let qos = |depth| Qos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(depth),
        ..Qos::DEFAULT
    };
    let publisher = one.node("map").unwrap().create_publisher::<Text>("map", qos(3)).unwrap();
    for number in 0..10 {
        publisher.publish(Text { data: number.to_string() }).unwrap();
    }
    let late = two.node("late").unwrap();
    let same = one.node("same").unwrap();
    for (node, depth, expect) in [(&late, 5, "789"), (&late, 2, "89"), (&same, 10, "789")] {
        let subscription = node.create_polled_subscription::<Text>("map", qos(depth)).unwrap();
        subscription.wait_for_publishers(1, HANG).unwrap();
        let mut set = tsuji::WaitSet::new(node.context()).unwrap();
        set.add(&subscription).unwrap();
        let mut got = String::new();
        while got.len() < expect.len() {
            match subscription.take().unwrap() {
                Some(received) => got.push_str(received.view().data),
                None => assert!(!set.wait(HANG).unwrap().is_empty()),
            }
        }
        assert_eq!(got, expect);
    }
    let volatile =
        two.node("v").unwrap().create_polled_subscription::<Text>("map", Qos::DEFAULT).unwrap();
    volatile.wait_for_publishers(1, HANG).unwrap();
    publisher.publish(Text { data: "new".into() }).unwrap();
    let mut set = tsuji::WaitSet::new(&two).unwrap();
    set.add(&volatile).unwrap();
    let first = loop {
        if let Some(received) = volatile.take().unwrap() {
            break received;
        }
        set.wait(HANG).unwrap();
    };
    assert_eq!(first.view().data, "new");
}

#[test]
fn keep_all_holds_the_publisher_back_and_loses_nothing() {
    const COUNT: u64 = 20_000;
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = one
        .node("fast")
        .unwrap()
        .create_publisher::<UInt64>(
            "flood",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
    let reader = two.node("slow").unwrap();
    let subscription = reader.create_polled_subscription::<UInt64>("flood", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for data in 0..COUNT {
                publisher.publish(UInt64 { data }).unwrap();
            }
        });
        let mut set = tsuji::WaitSet::new(&two).unwrap();
        set.add(&subscription).unwrap();
        let mut next = 0;
        while next < COUNT {
            match subscription.take().unwrap() {
                Some(received) => {
                    assert_eq!(received.view().data, next);
                    next += 1;
                }
                None => assert!(!set.wait(HANG).unwrap().is_empty()),
            }
        }
    });
    let counters = subscription.counters();
    assert_eq!((counters.received, counters.lost, counters.displaced), (COUNT, 0, 0));
}

#[test]
fn a_full_keep_all_subscription_answers_busy_after_the_wait() {
    let folder = Folder::new();
    for remote in [false, true] {
        let one = folder.process();
        let two = if remote { folder.process() } else { one.clone() };
        let publisher = one
            .node("p")
            .unwrap()
            .create_publisher::<UInt64>(
                "t",
                PublisherOptions::default().qos(keep_all()).max_blocking(Duration::from_millis(5)),
            )
            .unwrap();
        let subscription =
            two.node("s").unwrap().create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        let mut sent = 0;
        let error = loop {
            match publisher.publish(UInt64 { data: sent }) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert_eq!(publisher.counters().dropped, 1);
        let mut next = 0;
        while let Some(received) = subscription.take().unwrap() {
            assert_eq!(received.view().data, next);
            next += 1;
        }
        assert_eq!(next, sent);
        publisher.publish(UInt64 { data: 0 }).unwrap();
    }
}

#[test]
fn qos_that_does_not_fit_is_told_to_both_sides() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let told = Arc::new(Mutex::new(Vec::new()));
    let (to_publisher, to_subscription) = (Arc::clone(&told), Arc::clone(&told));
    let talker = one.node("talker").unwrap();
    let best_effort = Qos { reliability: Reliability::BestEffort, ..Qos::DEFAULT };
    let _publisher = talker
        .create_publisher::<Text>(
            "t",
            PublisherOptions::default()
                .qos(best_effort)
                .on_event(move |event| to_publisher.lock().unwrap().push(format!("pub {event:?}"))),
        )
        .unwrap();
    let listener = two.node("listener").unwrap();
    let _subscription = listener
        .create_polled_subscription::<Text>(
            "t",
            SubscriptionOptions::default().on_event(move |event| {
                to_subscription.lock().unwrap().push(format!("sub {event:?}"))
            }),
        )
        .unwrap();
    let is_told = || {
        let told = told.lock().unwrap();
        ["pub Incomp", "sub Incomp"].iter().all(|it| told.iter().any(|line| line.starts_with(it)))
    };
    std::thread::scope(|scope| {
        scope.spawn(|| tsuji::spin(&talker).unwrap());
        let mut executor = Executor::new(&two).unwrap();
        executor.add(&listener).unwrap();
        while !is_told() {
            executor.spin_once(Duration::from_millis(20)).unwrap();
        }
        one.shutdown();
    });
    let told = told.lock().unwrap().join("\n");
    assert!(told.contains("reliability: offered best_effort, requested reliable"), "{told}");
}

#[test]
fn a_topic_with_two_types_does_not_match_and_says_why() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = one.node("a").unwrap().create_publisher::<Text>("t", Qos::DEFAULT).unwrap();
    let _other =
        two.node("b").unwrap().create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    let _good =
        two.node("c").unwrap().create_polled_subscription::<Text>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let routes = one.routes(HANG).unwrap();
    let mut states: Vec<_> = routes.iter().map(|it| (it.state, it.mismatches.join(" "))).collect();
    states.sort_by_key(|(_, mismatches)| mismatches.clone());
    assert_eq!(states[0], (RouteState::Active, String::new()));
    assert_eq!(states[1].0, RouteState::Incompatible);
    assert!(states[1].1.contains("std_msgs/msg/UInt64"), "{}", states[1].1);
}

#[test]
fn the_picture_flow_of_thirty_milliseconds_does_not_stop_after_ten() {
    // ROS 2's in-process path did, see the decision on QoS: here a slow start is all it takes.
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let publisher = node.create_publisher::<Image>("image", Qos::DEFAULT).unwrap();
    let subscription = node.create_polled_subscription::<Image>("image", Qos::DEFAULT).unwrap();
    let image = Arc::new(Image { data: vec![7; 640 * 480 * 3], ..Image::default() });
    let mut received = 0;
    for round in 0..500u64 {
        publisher.publish(Arc::clone(&image)).unwrap();
        // The subscription falls behind by far more than its depth, then goes on.
        if round % 50 == 49 {
            let mut last = 0;
            while let Some(message) = subscription.take().unwrap() {
                received += 1;
                last = message.info().sequence;
            }
            assert_eq!(last, round + 1);
        }
    }
    let counters = subscription.counters();
    assert_eq!((received, counters.displaced, counters.lost), (100, 400, 0));
}

#[test]
fn a_process_that_leaves_is_noticed() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = one.node("a").unwrap().create_publisher::<Text>("t", Qos::DEFAULT).unwrap();
    let subscription =
        two.node("b").unwrap().create_polled_subscription::<Text>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    assert_eq!(one.graph().nodes.len(), 2);
    drop(subscription);
    two.shutdown();
    one.wait_for_graph(HANG, |graph| (graph.nodes.len() == 1).then_some(())).unwrap().unwrap();
    assert_eq!(publisher.matched(), 0);
    publisher.publish(Text::default()).unwrap();
    assert!(two.node("c").is_err());
}

/// Bytes that are published twice are two samples, each held by itself.
#[test]
fn frozen_bytes_are_published_again_and_again() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = one.node("w").unwrap().create_publisher::<UInt64>("t", keep_all()).unwrap();
    let reader = two.node("r").unwrap();
    let subscription = reader.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let cdr = |data: u64| {
        let mut bytes = vec![0, 1, 0, 0];
        bytes.extend(data.to_le_bytes());
        bytes
    };
    let mut loan = publisher.loan_bytes(12).unwrap();
    loan.copy_from_slice(&cdr(7));
    let frozen = loan.freeze();
    (0..2).for_each(|_| publisher.publish_frozen(frozen.clone()).unwrap());
    publisher.publish_frozen(frozen).unwrap();
    for sequence in 1..=3 {
        let received = subscription.take().unwrap().unwrap();
        assert_eq!((received.info().sequence, received.view().data), (sequence, 7));
        drop(received);
        // What is lent now must not be what is still to be taken.
        let loans: Vec<_> = (0..10).map(|_| publisher.loan_bytes(12).unwrap()).collect();
        loans.into_iter().for_each(|mut loan| loan.copy_from_slice(&cdr(8)));
    }
    assert_eq!(subscription.counters().duplicates, 0);
}

/// Keeps all, also for those who join later.
fn keep_all_latched() -> Qos {
    Qos { durability: Durability::TransientLocal, ..keep_all() }
}

fn take_so_many<M: tsuji::Message>(
    subscription: &tsuji::Subscription<M>,
    context: &Context,
    count: usize,
    of: impl Fn(&M) -> u64,
) -> Vec<u64> {
    let mut set = tsuji::WaitSet::new(context).unwrap();
    set.add(subscription).unwrap();
    let mut taken = Vec::new();
    while taken.len() < count {
        match subscription.take().unwrap() {
            Some(received) => taken.push(of(&received.message())),
            None => assert!(!set.wait(HANG).unwrap().is_empty(), "{} of {count}", taken.len()),
        }
    }
    taken
}

#[test]
fn whoever_keeps_all_gets_all_that_was_published_before() {
    const BEFORE: u64 = 5000;
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("map").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(keep_all_latched()).max_blocking(HANG),
        )
        .unwrap();
    (1..=BEFORE).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    for (round, context) in [&one, &two, &one].into_iter().enumerate() {
        let last = BEFORE + round as u64;
        let late = context.node("late").unwrap();
        let subscription =
            late.create_polled_subscription::<UInt64>("t", keep_all_latched()).unwrap();
        std::thread::scope(|scope| {
            // It waits until the late joiner has got what it is owed.
            scope.spawn(|| publisher.publish(UInt64 { data: last + 1 }).unwrap());
            let taken = take_so_many(&subscription, context, last as usize + 1, |it| it.data);
            assert!(taken.iter().copied().eq(1..=last + 1), "{:?}", &taken[..10]);
        });
        let counters = subscription.counters();
        assert_eq!((counters.lost, counters.displaced, counters.duplicates), (0, 0, 0));
    }
    let counters = publisher.counters();
    assert_eq!((counters.failed, counters.displaced, counters.history_displaced), (0, 0, 0));
}

#[test]
fn who_does_not_take_what_it_is_owed_holds_the_publisher_back() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let qos = keep_all_latched();
    let publisher = node.create_publisher::<UInt64>("t", qos).unwrap();
    (1..=3000).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    let late = node.create_polled_subscription::<UInt64>("t", qos).unwrap();
    let error = publisher.publish(UInt64 { data: 0 }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("late joiner"), "{error}: {why}");
    // One that goes holds nobody back.
    drop(late);
    publisher.publish(UInt64 { data: 3001 }).unwrap();
}

#[test]
fn a_history_that_keeps_all_is_full_at_its_limit_and_says_so() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let publisher = node
        .create_publisher::<Image>(
            "t",
            PublisherOptions::default()
                .qos(keep_all_latched())
                .max_blocking(Duration::from_millis(1)),
        )
        .unwrap();
    let picture = |bytes| Image { data: vec![0; bytes], ..Image::default() };
    (0..3).for_each(|_| publisher.publish(picture(80 << 20)).unwrap());
    let error = publisher.publish(picture(80 << 20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("allowed: 100000 samples and 256 MiB"), "{error}: {why}");
    assert_eq!((publisher.counters().published, publisher.counters().dropped), (3, 1));
    publisher.publish(picture(1 << 20)).unwrap();

    // Who takes his chances holds nobody back, and is told what nobody will get any more.
    let qos = Qos { reliability: Reliability::BestEffort, ..keep_all_latched() };
    let publisher = node.create_publisher::<Image>("u", qos).unwrap();
    (0..4).for_each(|_| publisher.publish(picture(80 << 20)).unwrap());
    let counters = publisher.counters();
    assert_eq!((counters.published, counters.history_displaced), (4, 1));
}

#[test]
fn a_text_that_is_not_utf_8_is_counted_and_told() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (node, listener) = (one.node("n").unwrap(), two.node("l").unwrap());
    let raw = tsuji::RawType::new(<Text as tsuji::Message>::TYPE_NAME)
        .hash(<Text as tsuji::Message>::TYPE_HASH);
    let publisher = node.create_raw_publisher("t", raw, Qos::DEFAULT).unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let texts = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&texts);
    let subscription = listener
        .create_subscription::<Text>(
            "t",
            SubscriptionOptions::default().on_event(move |event| told.lock().unwrap().push(event)),
            move |received| heard.lock().unwrap().push(received.view().data.to_owned()),
        )
        .unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish_bytes(b"\0\x01\0\0\x03\0\0\0a\xff\0").unwrap();
    publisher.publish_bytes(b"\0\x01\0\0\x03\0\0\0ok\0").unwrap();
    let mut executor = Executor::new(&two).unwrap();
    executor.add(&listener).unwrap();
    let publisher_gid = publisher.gid();
    let is_told = || {
        let events = events.lock().unwrap();
        events.iter().find_map(|event| match event {
            tsuji::SubscriptionEvent::InvalidMessage { publisher, why, total } => {
                Some((*publisher, why.clone(), *total))
            }
            _ => None,
        })
    };
    executor.spin_until(|| is_told().is_some() && !texts.lock().unwrap().is_empty()).unwrap();
    let why = "data: byte 9: a string is not UTF-8".to_owned();
    assert_eq!(is_told(), Some((Some(publisher_gid), why, 1)));
    assert_eq!(*texts.lock().unwrap(), ["ok"]);
    let counters = subscription.counters();
    assert_eq!((counters.invalid, counters.received, counters.lost), (1, 1, 0));
    let route = one.routes(HANG).unwrap().remove(0);
    assert_eq!((route.invalid, route.samples), (1, 1));
}

#[test]
fn what_a_subscription_displaces_is_counted_at_the_publisher() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let qos = Qos { history: History::KeepLast(3), ..Qos::DEFAULT };
    let (node, far) = (one.node("n").unwrap(), two.node("far").unwrap());
    for reader in [&node, &far] {
        // Of two publishers each has room for as many as are kept, and all together have no more.
        let publishers = [(); 2].map(|()| node.create_publisher::<UInt64>("t", qos).unwrap());
        let subscription = reader.create_polled_subscription::<UInt64>("t", qos).unwrap();
        subscription.wait_for_publishers(2, HANG).unwrap();
        for publisher in &publishers {
            (0..3).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
        }
        assert!(subscription.is_ready());
        assert_eq!(subscription.counters().displaced, 3);
        let displaced = || publishers.iter().map(|it| it.counters().displaced).sum::<u64>();
        let start = std::time::Instant::now();
        while displaced() != 3 {
            assert!(start.elapsed() < HANG, "{}", displaced());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn what_is_displaced_of_one_that_has_left_hides_nothing_of_another() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let qos = Qos { history: History::KeepLast(3), ..Qos::DEFAULT };
    let (node, far) = (one.node("n").unwrap(), two.node("far").unwrap());
    for reader in [&node, &far] {
        let publishers = [(); 3].map(|()| node.create_publisher::<UInt64>("left", qos).unwrap());
        let subscription = reader.create_polled_subscription::<UInt64>("left", qos).unwrap();
        subscription.wait_for_publishers(3, HANG).unwrap();
        let publish = |publisher: &tsuji::Publisher<UInt64>| {
            (0..3).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
            assert!(subscription.is_ready());
        };
        let [leaves, second, third] = publishers;
        publish(&leaves);
        drop(leaves);
        let start = std::time::Instant::now();
        while subscription.matched() != 2 {
            assert!(start.elapsed() < HANG, "it has left");
            std::thread::sleep(Duration::from_millis(1));
        }
        publish(&second);
        assert_eq!(subscription.counters().displaced, 3);
        // Nothing but the next displacement is to wake whoever tells of it.
        std::thread::sleep(Duration::from_millis(50));
        publish(&third);
        assert_eq!(subscription.counters().displaced, 6);
        while second.counters().displaced != 3 {
            assert!(start.elapsed() < HANG, "{}", second.counters().displaced);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(third.counters().displaced, 0);
    }
}

#[test]
fn what_was_displaced_before_a_break_is_not_counted_again() {
    let folder = Folder::new();
    let made = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&made);
    let builder = Context::builder().runtime_dir(&folder.0).domain(7).isolated();
    let builder = builder.transports(move |built| {
        let shm = built.into_iter().filter(|it| it.id().as_str() == "shm");
        let faulty: Vec<_> = shm.map(|it| Faulty::in_place_of(it, 1)).collect();
        keep.lock().unwrap().clone_from(&faulty);
        faulty.into_iter().map(|it| Arc::new(it) as Arc<dyn Transport>).collect()
    });
    let (one, two) = (builder.build().unwrap(), folder.process());
    let qos = Qos { history: History::KeepLast(3), ..Qos::DEFAULT };
    let (node, far) = (one.node("n").unwrap(), two.node("far").unwrap());
    let publishers = [(); 2].map(|()| node.create_publisher::<UInt64>("broken", qos).unwrap());
    let subscription = far.create_polled_subscription::<UInt64>("broken", qos).unwrap();
    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        let start = std::time::Instant::now();
        while !is_so() {
            assert!(start.elapsed() < HANG, "{what}: {:?}", subscription.counters());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for round in 1..=3 {
        wait_until("all have met", &|| {
            subscription.matched() == 2 && publishers.iter().all(|it| it.matched() == 1)
        });
        for publisher in &publishers {
            (0..3).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
            assert!(subscription.is_ready());
        }
        let displaced = || publishers.iter().map(|it| it.counters().displaced).sum::<u64>();
        let expect = subscription.counters().displaced;
        assert!(3 * round <= expect, "{expect}");
        wait_until("all is told", &|| expect <= displaced());
        assert_eq!(displaced(), expect, "round {round}");
        let set = |faults| made.lock().unwrap().iter().for_each(|it: &Faulty| it.set(faults));
        set(Faults { cut: true, ..Faults::NONE });
        // What is refused was not sent.
        publishers.iter().for_each(|it| drop(it.publish(UInt64 { data: 0 })));
        wait_until("all have parted", &|| subscription.matched() == 0);
        set(Faults::NONE);
    }
}
