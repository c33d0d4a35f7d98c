//! Flows between processes over Cyclone DDS: as two contexts that reach each other by the network
//! only, on the loopback interface.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use house::{Child, Folder, HANG, Watchdog, keep_all, keep_last, take_until, tell};
use tsuji::{
    Context, Durability, ErrorKind, KNOWN_TRANSPORTS, LatencyClock, Message, Node, Publisher,
    PublisherOptions, Qos, RouteState, Subscription,
};
use tsuji_core::Policy;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::UInt64;

const POLICY: &str = r#"<tsuji>
  <rule name="by the network" scope="local" use="cyclonedds"/>
  <transport name="cyclonedds">
    <set key="interfaces" value="lo"/>
    <set key="multicast" value="true"/>
  </transport>
</tsuji>"#;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let role = house::role();
    let Some(last) = role.strip_prefix("view ") else { return };
    let last = last.strip_prefix("until ").map(|it| it.parse::<u8>().unwrap());
    let context = house::context();
    let node = context.node("viewer").unwrap();
    let subscription = node.create_polled_subscription::<Image>("image", keep_all()).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    tell("ready");
    let mut next = 0;
    take_until(&node, &subscription, |received| {
        let view = received.view();
        let Some(last) = last else {
            tell(&format!("got {}", view.data.len()));
            return view.data.len() == 7;
        };
        assert!(view.data.iter().all(|byte| *byte == next), "picture {next}");
        next += 1;
        next == last
    });
    tell("all");
}

/// The other process and its policy, in the domain of the children.
fn beside_a_child(folder: &Folder, role: &str) -> (Child, Context) {
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
    let context = builder.policy(policy()).isolated().build().unwrap();
    let path = folder.0.join("policy.xml");
    std::fs::write(&path, POLICY).unwrap();
    let environment = [("TSUJI_POLICY", path.to_str().unwrap())];
    (Child::start_with(folder, role, &environment), context)
}

#[test]
fn a_process_that_stands_still_makes_the_publisher_wait() {
    let _watchdog = Watchdog::start("a process that stands still");
    let folder = Folder::new();
    let (child, context) = beside_a_child(&folder, "view until 100");
    let node = context.node("camera").unwrap();
    let publisher = node
        .create_publisher::<Image>(
            "image",
            PublisherOptions::default().qos(keep_all()).max_blocking(Duration::ZERO),
        )
        .unwrap();
    child.expect("ready");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    child.stop();
    let picture = |number: u8| Image { data: vec![number; 1_000_000], ..Image::default() };
    let mut next = 0;
    let refused = loop {
        match publisher.publish(picture(next)) {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
        assert!(next < 100, "the engine took everything at once");
    };
    assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    child.go_on();
    while next < 100 {
        match publisher.publish(picture(next)) {
            Ok(()) => next += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
        }
    }
    child.expect("all");
    child.finish();
}

/// A socket that holds one datagram loses most of every picture, which the engine asks for again.
#[test]
fn pictures_arrive_whole_through_a_receive_buffer_that_is_too_small() {
    let _watchdog = Watchdog::start("a small receive buffer");
    let folder = Folder::new();
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
    let builder = builder.policy(policy()).interop(tsuji::Interop::RTPS);
    let context = builder.isolated().build().unwrap();
    let path = folder.0.join("policy.xml");
    std::fs::write(&path, POLICY).unwrap();
    let small = "<Internal><SocketReceiveBufferSize min=\"64kB\" max=\"64kB\"/></Internal>";
    let environment = [
        ("TSUJI_POLICY", path.to_str().unwrap()),
        ("TSUJI_INTEROP", "rtps"),
        ("CYCLONEDDS_URI", small),
    ];
    let child = Child::start_with(&folder, "view until 5", &environment);
    let node = context.node("camera").unwrap();
    let publisher: Publisher<Image> = patient(&node, "image", keep_all());
    child.expect("ready");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let routes = context.routes(HANG).unwrap();
    assert_eq!(routes[0].transport.as_deref(), Some("cyclonedds"), "{routes:?}");
    for number in 0..5 {
        let data = vec![number; 2_360_000];
        publisher.publish(Image { data, ..Image::default() }).unwrap();
    }
    child.expect("all");
    child.finish();
}

#[test]
fn a_patient_publisher_is_woken_when_the_other_goes_on() {
    let _watchdog = Watchdog::start("a patient publisher");
    let folder = Folder::new();
    let (child, context) = beside_a_child(&folder, "view until 100");
    let node = context.node("camera").unwrap();
    let publisher = node
        .create_publisher::<Image>(
            "image",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
    child.expect("ready");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    child.stop();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..100 {
                let data = vec![number; 1_000_000];
                publisher.publish(Image { data, ..Image::default() }).unwrap();
            }
        });
        // 64 MiB may wait, and no more go before the other takes some.
        house::wait_until("the publisher waits", || 60 <= publisher.counters().published);
        child.go_on();
    });
    child.expect("all");
    child.finish();
}

#[test]
fn nothing_is_lost_between_a_near_and_a_far_subscription() {
    let two = Two::start("near and far");
    let (publisher, far, remote_node) = two.flow(keep_all());
    let near_node = two.one.node("near").unwrap();
    let near = near_node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    near.wait_for_publishers(1, HANG).unwrap();
    const LAST: u64 = 50_000;
    std::thread::scope(|scope| {
        scope.spawn(|| (1..=LAST).for_each(|data| publisher.publish(UInt64 { data }).unwrap()));
        scope.spawn(|| assert!(take_to(&near_node, &near, LAST).into_iter().eq(1..=LAST)));
        assert!(take_to(&remote_node, &far, LAST).into_iter().eq(1..=LAST));
    });
    assert_eq!((publisher.counters().failed, far.counters().lost), (0, 0));
}

#[test]
fn pictures_near_and_far_arrive_all() {
    let two = Two::start("pictures near and far");
    let publisher: Publisher<Image> =
        patient(&two.one.node("camera").unwrap(), "image", keep_all());
    let (near_node, remote_node) = (two.one.node("near").unwrap(), two.two.node("far").unwrap());
    let view = |node: &Node| node.create_polled_subscription::<Image>("image", keep_all()).unwrap();
    let (near, far) = (view(&near_node), view(&remote_node));
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    near.wait_for_publishers(1, HANG).unwrap();
    far.wait_for_publishers(1, HANG).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..50 {
                let data = vec![number; 8_000_000];
                publisher.publish(Image { data, ..Image::default() }).unwrap();
            }
        });
        for (node, subscription) in [(&near_node, &near), (&remote_node, &far)] {
            scope.spawn(move || {
                let mut next = 0;
                take_until(node, subscription, |received| {
                    let is_whole = |data: &[u8]| data.iter().all(|byte| *byte == next);
                    assert!(is_whole(received.view().data), "picture {next}");
                    next += 1;
                    next == 50
                });
            });
        }
    });
    assert_eq!((publisher.counters().failed, far.counters().lost), (0, 0));
}

#[test]
fn a_process_killed_in_the_middle_of_a_picture_holds_nobody_up() {
    let _watchdog = Watchdog::start("a killed process");
    let folder = Folder::new();
    let (child, context) = beside_a_child(&folder, "view for ever");
    let publisher: Publisher<Image> =
        patient(&context.node("camera").unwrap(), "image", keep_all());
    child.expect("ready");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let picture = |number: u8| Image { data: vec![number; 2_000_000], ..Image::default() };
    std::thread::scope(|scope| {
        // Pictures are under way when the signal comes, and go on after it.
        let publishing =
            scope.spawn(|| (0..40).for_each(|_| publisher.publish(picture(1)).unwrap()));
        child.expect("got 2000000");
        child.kill();
        publishing.join().unwrap();
    });
    house::wait_until("the killed one is forgotten", || publisher.matched() == 0);
    let path = folder.0.join("policy.xml");
    let environment = [("TSUJI_POLICY", path.to_str().unwrap())];
    let other = Child::start_with(&folder, "view until 20", &environment);
    other.expect("ready");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    (0..20).for_each(|number| publisher.publish(picture(number)).unwrap());
    other.expect("all");
    other.finish();
    assert_eq!(publisher.counters().failed, 0);
}

#[test]
fn a_process_that_is_away_longer_than_its_lease_is_met_again() {
    let _watchdog = Watchdog::start("a process that is away");
    let folder = Folder::new();
    let (child, context) = beside_a_child(&folder, "view for ever");
    let node = context.node("camera").unwrap();
    let publisher = node
        .create_publisher::<Image>(
            "image",
            PublisherOptions::default().qos(keep_all()).max_blocking(Duration::ZERO),
        )
        .unwrap();
    child.expect("ready");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    child.stop();
    let publish = || {
        let _ = publisher.publish(Image { data: vec![1; 100_000], ..Image::default() });
    };
    house::wait_until("the engine gives it up", || {
        publish();
        publisher.matched() == 0
    });
    child.go_on();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(Image { data: vec![2; 7], ..Image::default() }).unwrap();
    while child.line() != "got 7" {}
    child.finish();
}

fn policy() -> Policy {
    tsuji_policy::load("test", POLICY.as_bytes(), KNOWN_TRANSPORTS).unwrap()
}

/// Two processes in a domain that no other test of this process has, and hardly one of another.
struct Two {
    one: Context,
    two: Context,
    _folder: Folder,
    _watchdog: Watchdog,
}

impl Two {
    fn start(what: &'static str) -> Self {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed) + 16 * (std::process::id() % 5);
        let domain = 20 + number;
        let folder = Folder::new();
        let process = || {
            let builder = Context::builder().runtime_dir(&folder.0).domain(domain);
            builder.policy(policy()).isolated().build().unwrap()
        };
        let (one, two) = (process(), process());
        Self { one, two, _folder: folder, _watchdog: Watchdog::start(what) }
    }

    fn flow(&self, qos: Qos) -> (Publisher<UInt64>, Subscription<UInt64>, Node) {
        let publisher = patient(&self.one.node("a").unwrap(), "t", qos);
        let node = self.two.node("b").unwrap();
        let subscription = node.create_polled_subscription::<UInt64>("t", qos).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        subscription.wait_for_publishers(1, HANG).unwrap();
        (publisher, subscription, node)
    }
}

/// A publisher that waits for room for as long as a test may take.
fn patient<M: Message>(node: &Node, topic: &str, qos: Qos) -> Publisher<M> {
    node.create_publisher::<M>(topic, PublisherOptions::default().qos(qos).max_blocking(HANG))
        .unwrap()
}

fn take_to(node: &Node, subscription: &Subscription<UInt64>, last: u64) -> Vec<u64> {
    let mut taken = Vec::new();
    take_until(node, subscription, |received| {
        taken.push(received.view().data);
        taken.ends_with(&[last])
    });
    taken
}

#[test]
fn all_of_a_reliable_flow_arrives_in_order() {
    let two = Two::start("a reliable flow");
    let (publisher, subscription, node) = two.flow(keep_all());
    std::thread::scope(|scope| {
        scope.spawn(|| (1..=20_000).for_each(|data| publisher.publish(UInt64 { data }).unwrap()));
        assert_eq!(take_to(&node, &subscription, 20_000), (1..=20_000).collect::<Vec<_>>());
    });
    let route = two.one.routes(HANG).unwrap().remove(0);
    assert_eq!((route.transport.as_deref(), route.state), (Some("cyclonedds"), RouteState::Active));
    assert!(route.because.contains("by the network"), "{}", route.because);
    // The clock of the sender does not come along; on one host it is the same wall.
    let latency = route.latency.unwrap();
    assert!(latency.clock == "wall" && latency.median_us < 60e6, "{latency:?}");
    let counters = subscription.counters();
    assert_eq!((counters.lost, counters.displaced, counters.duplicates), (0, 0, 0));
}

#[test]
fn the_latency_of_a_message_is_by_the_wall_clock() {
    let two = Two::start("latency");
    let (publisher, subscription, node) = two.flow(keep_all());
    publisher.publish(UInt64 { data: 1 }).unwrap();
    take_until(&node, &subscription, |received| {
        let info = received.info();
        let latency = info.latency().unwrap();
        assert_eq!((info.source_mono_ns, latency.clock), (None, LatencyClock::Wall));
        // Not the time since the machine was started.
        assert!(latency.ns.unsigned_abs() < 60_000_000_000, "{latency}");
        true
    });
}

#[test]
fn pictures_arrive_whole() {
    let two = Two::start("pictures");
    let publisher: Publisher<Image> =
        patient(&two.one.node("camera").unwrap(), "image", keep_all());
    let node = two.two.node("viewer").unwrap();
    let subscription = node.create_polled_subscription::<Image>("image", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    for (round, len) in [1, 1000, 64_999, 65_001, 2_359_296, 8_000_003].into_iter().enumerate() {
        let data = vec![round as u8 + 1; len];
        publisher.publish(Image { data, encoding: "mono8".into(), ..Image::default() }).unwrap();
        take_until(&node, &subscription, |received| {
            let view = received.view();
            assert_eq!((view.encoding, view.data.len()), ("mono8", len));
            assert!(view.data.iter().all(|byte| usize::from(*byte) == round + 1));
            true
        });
    }
}

#[test]
fn large_samples_in_a_burst_wait_for_each_other() {
    let two = Two::start("a burst of large samples");
    let publisher: Publisher<Image> =
        patient(&two.one.node("camera").unwrap(), "image", keep_all());
    let node = two.two.node("viewer").unwrap();
    let subscription = node.create_polled_subscription::<Image>("image", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..40u8 {
                let data = vec![round; 4_000_000];
                publisher.publish(Image { data, ..Image::default() }).unwrap();
            }
        });
        let mut next = 0;
        take_until(&node, &subscription, |received| {
            let view = received.view();
            assert!(view.data.len() == 4_000_000 && view.data.iter().all(|byte| *byte == next));
            next += 1;
            next == 40
        });
    });
    assert_eq!(publisher.counters().dropped, 0);
}

#[test]
fn a_late_joiner_gets_what_it_is_owed_and_what_follows() {
    let two = Two::start("a late joiner");
    let qos = Qos { durability: Durability::TransientLocal, ..keep_last(5) };
    let publisher = two.one.node("a").unwrap().create_publisher::<UInt64>("t", qos).unwrap();
    (1..=8).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    let node = two.two.node("b").unwrap();
    for round in 0..3 {
        let last = 8 + round;
        let subscription = node.create_polled_subscription::<UInt64>("t", qos).unwrap();
        assert_eq!(take_to(&node, &subscription, last), (last - 4..=last).collect::<Vec<_>>());
        publisher.publish(UInt64 { data: last + 1 }).unwrap();
        assert_eq!(take_to(&node, &subscription, last + 1), [last + 1]);
        let counters = subscription.counters();
        assert_eq!((counters.lost, counters.duplicates), (0, 0));
    }
}

#[test]
fn a_late_joiner_that_keeps_all_gets_all() {
    let two = Two::start("a late joiner that keeps all");
    let qos = Qos { durability: Durability::TransientLocal, ..keep_all() };
    let publisher = patient(&two.one.node("a").unwrap(), "t", qos);
    (1..=5000).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    let node = two.two.node("b").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", qos).unwrap();
    assert_eq!(take_to(&node, &subscription, 5000), (1..=5000).collect::<Vec<_>>());
    publisher.publish(UInt64 { data: 5001 }).unwrap();
    assert_eq!(take_to(&node, &subscription, 5001), [5001]);
    let counters = subscription.counters();
    assert_eq!((counters.lost, counters.displaced, counters.duplicates), (0, 0, 0));
}

#[test]
fn what_is_displaced_behind_the_engine_is_counted_at_the_publisher() {
    let two = Two::start("displaced behind the engine");
    let (publisher, subscription, _node) = two.flow(keep_last(2));
    // One by one: of a burst the engine itself keeps the last alone, and what it lets go of is lost.
    let publish = |count| {
        for data in 0..count {
            publisher.publish(UInt64 { data }).unwrap();
            publisher.wait_for_acknowledgements(HANG).unwrap();
        }
    };
    publish(10);
    house::wait_until("all have come", || subscription.counters().displaced == 8);
    house::wait_until("the publisher knows", || publisher.counters().displaced == 8);
    publish(12);
    house::wait_until("the publisher knows of more", || publisher.counters().displaced == 20);
}

#[test]
fn a_full_subscription_makes_the_publisher_wait() {
    let two = Two::start("a full subscription");
    let publisher = two.one.node("a").unwrap();
    let publisher = publisher
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(keep_all()).max_blocking(Duration::from_millis(20)),
        )
        .unwrap();
    let node = two.two.node("b").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let mut sent = 0;
    let error = loop {
        match publisher.publish(UInt64 { data: sent + 1 }) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert_eq!(take_to(&node, &subscription, sent), (1..=sent).collect::<Vec<_>>());
    publisher.publish(UInt64 { data: 7 }).unwrap();
    assert_eq!(take_to(&node, &subscription, 7), [7]);
}

#[test]
fn subscriptions_of_one_topic_take_different_links() {
    let two = Two::start("two links");
    let (publisher, far, remote_node) = two.flow(keep_last(100));
    let near_node = two.one.node("near").unwrap();
    let near = near_node.create_polled_subscription::<UInt64>("t", keep_last(100)).unwrap();
    near.wait_for_publishers(1, HANG).unwrap();
    (1..=100).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    assert_eq!(take_to(&near_node, &near, 100), (1..=100).collect::<Vec<_>>());
    assert_eq!(take_to(&remote_node, &far, 100), (1..=100).collect::<Vec<_>>());
    let mut links: Vec<_> =
        two.one.routes(HANG).unwrap().into_iter().filter_map(|it| it.transport).collect();
    links.sort();
    assert_eq!(links, ["cyclonedds", "inproc"]);
}

#[test]
fn a_process_that_ends_is_forgotten_and_another_takes_its_place() {
    let two = Two::start("an end");
    let Two { one, two: other, .. } = &two;
    let publisher = one.node("a").unwrap().create_publisher::<UInt64>("t", keep_last(10)).unwrap();
    for round in 1..=3 {
        let node = other.node("b").unwrap();
        let subscription = node.create_polled_subscription::<UInt64>("t", keep_last(10)).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        subscription.wait_for_publishers(1, HANG).unwrap();
        publisher.publish(UInt64 { data: round }).unwrap();
        assert_eq!(take_to(&node, &subscription, round), [round]);
        drop((subscription, node));
        house::wait_until("the subscription is forgotten", || publisher.matched() == 0);
    }
}
