//! What is told of each flow: what it was decided on, what is seen now, what was sent and received.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use house::{Folder, HANG, keep_last};
use tsuji::{Context, Durability, Qos, RouteReport, RouteState};
use tsuji_interfaces::std_msgs::msg::String as Text;

/// The flow of the only topic.
fn route(context: &Context) -> RouteReport {
    let mut routes = context.routes(HANG).unwrap();
    assert_eq!(routes.len(), 1, "{routes:?}");
    routes.remove(0)
}

fn text(bytes: usize) -> Text {
    Text { data: "x".repeat(bytes) }
}

#[test]
fn traits_are_those_of_now_and_the_reason_keeps_those_of_the_decision() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = one.node("a").unwrap().create_publisher::<Text>("t", Qos::DEFAULT).unwrap();
    let _subscription =
        two.node("b").unwrap().create_polled_subscription::<Text>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let before = route(&two);
    assert_eq!((&*before.size, &*before.size_origin), ("small", "a prior by type"));
    assert_eq!(before.sample_bytes, None);
    assert!(before.because.contains("small (a prior by type"), "{}", before.because);

    (0..10).for_each(|_| publisher.publish(text(300_000)).unwrap());
    let now = route(&two);
    assert_eq!((&*now.size, &*now.size_origin), ("large", "what was really sent"));
    assert!(now.sample_bytes.is_some_and(|it| (300_000..300_100).contains(&it)), "{now:?}");
    assert_eq!((&*now.scope, &*now.reliability, &*now.peer), ("local", "reliable", "tsuji"));
    assert_eq!(now.because, before.because);
    assert_eq!(now.epoch, before.epoch);
}

#[test]
fn flows_without_a_link_have_traits_too() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher =
        one.node("a").unwrap().create_publisher::<Text>("t", house::best_effort(5)).unwrap();
    let reader = two.node("b").unwrap();
    let _subscription = reader.create_polled_subscription::<Text>("t", Qos::DEFAULT).unwrap();
    let _fits = reader.create_polled_subscription::<Text>("t", house::best_effort(5)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    (0..10).for_each(|_| publisher.publish(text(300_000)).unwrap());
    let routes = one.routes(HANG).unwrap();
    let incompatible = routes.iter().find(|it| it.state == RouteState::Incompatible).unwrap();
    assert_eq!((&*incompatible.size, &*incompatible.scope), ("large", "local"));
    assert_eq!(incompatible.reliability, "reliable");
    assert_eq!((incompatible.sent, incompatible.samples), (0, 0));
}

#[test]
fn what_was_sent_stands_beside_what_was_received() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = one.node("a").unwrap().create_publisher::<Text>("t", Qos::DEFAULT).unwrap();
    // Nobody was there to whom it could be sent.
    (0..5).for_each(|_| publisher.publish(text(1)).unwrap());
    let node = two.node("b").unwrap();
    let subscription = node.create_polled_subscription::<Text>("t", keep_last(10)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let counts = || {
        let it = route(&one);
        (it.sent, it.samples, it.displaced, it.lost)
    };
    assert_eq!(counts(), (0, 0, 0, 0));
    (0..30).for_each(|_| publisher.publish(text(1)).unwrap());
    assert_eq!(counts().0, 30);
    let mut taken = 0;
    house::take_until(&node, &subscription, |_| {
        taken += 1;
        taken == 10
    });
    assert_eq!(counts(), (30, 10, 20, 0));
}

#[test]
fn what_a_late_joiner_is_owed_counts_as_sent_to_it() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let latched = Qos { durability: Durability::TransientLocal, ..keep_last(3) };
    let publisher = one.node("a").unwrap().create_publisher::<Text>("t", latched).unwrap();
    (0..5).for_each(|_| publisher.publish(text(1)).unwrap());
    let node = two.node("b").unwrap();
    let subscription = node.create_polled_subscription::<Text>("t", latched).unwrap();
    let mut taken = 0;
    house::take_until(&node, &subscription, |_| {
        taken += 1;
        taken == 3
    });
    publisher.publish(text(1)).unwrap();
    house::take_until(&node, &subscription, |_| true);
    let route = route(&one);
    assert_eq!((route.sent, route.samples, route.lost), (4, 4, 0));
}
