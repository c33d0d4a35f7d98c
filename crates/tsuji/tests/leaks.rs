//! What comes and goes leaves nothing: no descriptor, no thread, no memory. Alone in its binary,
//! since it counts what the whole process has.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use house::{Child, Folder, HANG, arenas_mapped, descriptors, figure, heard, keep_all, keep_last};
use house::{resident_kib, take_until, tell, threads, wait_until};
use tsuji::{Durability, Executor, Qos};
use tsuji_interfaces::std_msgs::msg::{String as Text, UInt64};

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    assert_eq!(house::role(), "publish once");
    let context = house::context();
    let node = context.node("once").unwrap();
    let publisher = node.create_publisher::<Text>("never_read", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(Text { data: "x".repeat(5000) }).unwrap();
    tell("published");
    heard();
}

/// One test, so that nothing else runs beside it.
#[test]
fn what_comes_and_goes_leaves_nothing() {
    let (fds, tasks) = (descriptors(), threads());
    ten_thousand_endpoints();
    let _ = std::thread::Builder::new().spawn(|| ()).unwrap().join();
    wait_until("threads are back", || threads() <= tasks);
    assert_eq!(descriptors(), fds);
    a_thousand_contexts();
    wait_until("threads are back", || threads() <= tasks);
    assert_eq!(descriptors(), fds);
    a_subscription_that_is_never_read();
    wait_until("threads are back", || threads() <= tasks + 1);
    assert_eq!(descriptors(), fds);
}

fn ten_thousand_endpoints() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (node, other) = (one.node("a").unwrap(), two.node("b").unwrap());
    let mut executor = Executor::new(&two).unwrap();
    executor.add(&other).unwrap();
    let (mut first, mut early) = (0, [0; 3]);
    const ROUNDS: usize = 100;
    for round in 0..ROUNDS {
        // Pairs of all kinds, 50 publishers and 50 subscriptions a round.
        let mut publishers = Vec::new();
        let mut subscriptions = Vec::new();
        for number in 0..50u32 {
            let qos = match number % 4 {
                0 => keep_all(),
                1 => Qos { durability: Durability::TransientLocal, ..keep_last(3) },
                2 => Qos::SENSOR_DATA,
                _ => keep_last(1 + number),
            };
            let topic = format!("t{}", number % 25);
            publishers.push(node.create_publisher::<Text>(&topic, qos).unwrap());
            subscriptions.push(match number % 2 {
                0 => other.create_polled_subscription::<Text>(&topic, qos).unwrap(),
                _ => other.create_subscription::<Text>(&topic, qos, |_| ()).unwrap(),
            });
        }
        publishers.iter().for_each(|it| it.wait_for_subscriptions(1, HANG).unwrap());
        for publisher in &publishers {
            publisher.publish(Text { data: "hello".repeat(round % 7 * 20 + 1) }).unwrap();
        }
        let mut kept = Vec::new();
        for subscription in subscriptions.iter().step_by(2) {
            kept.extend(subscription.take().unwrap());
        }
        executor.spin_once(std::time::Duration::ZERO).unwrap();
        match round % 3 {
            0 => {
                drop(publishers);
                drop(subscriptions);
            }
            1 => {
                drop(subscriptions);
                drop(publishers);
            }
            _ => {
                publishers.into_iter().zip(subscriptions).for_each(drop);
            }
        }
        drop(kept);
        for context in [&one, &two] {
            let is_empty = |graph: &tsuji::Graph| graph.endpoints.is_empty().then_some(());
            context.wait_for_graph(HANG, is_empty).unwrap().unwrap();
        }
        let reserved = [&one, &two].map(|context| figure(context, "reserved_bytes"));
        if round == ROUNDS / 4 {
            first = resident_kib();
            early = [reserved[0], reserved[1], 0];
        }
        if round == ROUNDS - 1 {
            assert!(
                reserved[0] <= 2 * early[0] && reserved[1] <= 2 * early[1],
                "{early:?} {reserved:?}"
            );
            let now = resident_kib();
            assert!(now < first + 4096, "{first} KiB, then {now} KiB");
        }
    }
    let left = |context| {
        let names = ["writers_with_slots", "rings_of_dropped_readers"];
        names.map(|name| figure(context, name))
    };
    // A last endpoint sweeps what the ones before left.
    drop(node.create_publisher::<Text>("sweep", Qos::DEFAULT).unwrap());
    let _sweep = other.create_polled_subscription::<Text>("sweep", Qos::DEFAULT).unwrap();
    let _near = node.create_polled_subscription::<Text>("sweep", Qos::DEFAULT).unwrap();
    let last = node.create_publisher::<Text>("sweep", Qos::DEFAULT).unwrap();
    last.wait_for_subscriptions(2, HANG).unwrap();
    last.publish(Text::default()).unwrap();
    let all = [left(&one), left(&two)];
    assert!(all.iter().flatten().all(|count| *count <= 2), "{all:?}");
}

fn a_thousand_contexts() {
    let folder = Folder::new();
    let steady = folder.process();
    let node = steady.node("steady").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_last(1)).unwrap();
    let mut early = 0;
    for round in 0..300u64 {
        let context = folder.process();
        let reader = context.node("short").unwrap();
        let subscription = reader.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        publisher.publish(UInt64 { data: round }).unwrap();
        take_until(&reader, &subscription, |_| true);
        drop((subscription, reader, context));
        wait_until("it is parted", || publisher.matched() == 0);
        if round == 100 {
            early = resident_kib();
        }
    }
    let now = resident_kib();
    assert!(now < early + 4096, "{early} KiB, then {now} KiB");
    assert_eq!(folder.sockets().len(), 1);
}

/// Publishers that come and go leave samples in a subscription that nobody reads: of those too, the
/// depth is all that stays.
fn a_subscription_that_is_never_read() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("idle").unwrap();
    let subscription = node.create_polled_subscription::<Text>("never_read", keep_last(3)).unwrap();
    let all = || (arenas_mapped(), descriptors(), figure(&context, "reserved_bytes"));
    let mut early = (0, 0, 0);
    for round in 0..20 {
        let child = Child::start(&folder, "publish once");
        child.expect("published");
        child.kill();
        wait_until("it is parted", || subscription.matched() == 0);
        if round == 5 {
            early = all();
        }
    }
    // Those that leave in good order are no different.
    for round in 0..100 {
        let other = folder.process();
        let publisher = other.node("short").unwrap().create_publisher("never_read", Qos::DEFAULT);
        let publisher = publisher.unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        publisher.publish(Text { data: round.to_string() }).unwrap();
        drop((publisher, other));
        wait_until("it is parted", || subscription.matched() == 0);
    }
    // The last of them may be parted from a moment later.
    wait_until("no more is kept than early on", || {
        let late = all();
        late.0 <= early.0 && late.1 <= early.1 && late.2 <= early.2
    });
    let late = all();
    let mut got = Vec::new();
    while let Some(received) = subscription.take().unwrap() {
        got.push(received.view().data.to_owned());
    }
    assert_eq!(got, ["97", "98", "99"]);
    let counters = subscription.counters();
    assert_eq!((counters.received, counters.displaced, counters.lost), (3, 117, 0));
    wait_until("their memory is given back", || arenas_mapped() + 6 <= late.0);
}
