//! When foreign nodes see a subscription, and that what goes to them too does not come a second time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::net::UdpSocket;

use house::foreign::{Plain, Topic, context, context_with, figure, next};
use house::{Folder, HANG, Watchdog, keep_all, take, wait_until};
use tsuji::{Message, RouteState};
use tsuji_interfaces::std_msgs::msg::String as Text;

fn text(data: impl Into<String>) -> Text {
    Text { data: data.into() }
}

#[test]
fn subscriptions_are_seen_when_somebody_may_send_or_at_once() {
    let _watchdog = Watchdog::start("who is seen");
    let folder = Folder::new();
    let needed = context_with(&folder, 40, r#"<set key="readers" value="when_needed"/>"#);
    let at_once = context(&folder, 40);
    let (quiet, shown) = (Topic::of::<Text>("quiet"), Topic::of::<Text>("shown"));
    let node = needed.node("quiet").unwrap();
    let subscription = node.create_polled_subscription::<Text>("quiet", keep_all()).unwrap();
    let other = at_once.node("shown").unwrap();
    let seen = other.create_polled_subscription::<Text>("shown", keep_all()).unwrap();
    let plain = Plain::join(40);
    wait_until("it is seen at once", || plain.readers(&shown) == 1);
    assert_eq!(plain.readers(&quiet), 0);
    let of_node = || {
        let named = |it: &&tsuji::EndpointInfo| it.topic == "/quiet" && it.vendor.is_some();
        needed.graph().endpoints.iter().filter(named).count()
    };

    for round in 0..5 {
        let talkers = [plain.talker(&quiet, keep_all()), plain.talker(&quiet, keep_all())];
        subscription.wait_for_publishers(2, HANG).unwrap();
        for (at, talker) in talkers.iter().enumerate() {
            talker.wait_for_readers(1);
            talker.say(&text(format!("{round} {at}")));
        }
        wait_until("both have come", || {
            let routes = needed.routes(HANG).unwrap();
            routes.iter().filter(|it| it.topic == "/quiet").count() == 2
                && figure(&needed, "doubled_samples") == 0
        });
        let [first, second] = talkers;
        drop(first);
        wait_until("one is left", || of_node() == 1);
        assert_eq!(plain.readers(&quiet), 1);
        drop(second);
        wait_until("nobody is left", || of_node() == 0);
        wait_until("it is seen no more", || plain.readers(&quiet) == 0);
        // What was sent has arrived, as a writer leaves when all is acknowledged.
        let mut taken: Vec<_> =
            (0..2).map(|_| take(&node, &subscription).data.to_string()).collect();
        taken.sort();
        assert_eq!(taken, [format!("{round} 0"), format!("{round} 1")]);
        assert!(subscription.take().unwrap().is_none());
    }
    let counters = subscription.counters();
    assert_eq!((counters.received, counters.lost, counters.displaced), (10, 0, 0));

    let talker = plain.talker(&shown, keep_all());
    talker.wait_for_readers(1);
    seen.wait_for_publishers(1, HANG).unwrap();
    talker.say(&text("hello"));
    assert_eq!(take(&other, &seen).data.to_string(), "hello");
    drop(talker);
    wait_until("nobody sends", || seen.matched() == 0);
    assert_eq!(plain.readers(&shown), 1);

    // What goes to a foreign node too does not come a second time to whoever is shown.
    let foreign = plain.inlet(&shown, keep_all());
    let publisher = node.create_publisher::<Text>("shown", keep_all()).unwrap();
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    for number in 0..200 {
        publisher.publish(text(number.to_string())).unwrap();
        assert_eq!(take(&other, &seen).data.to_string(), number.to_string());
        next(&*foreign);
    }
    let routes = needed.routes(HANG).unwrap();
    let is_by_shm =
        |it: &&tsuji::RouteReport| it.topic == "/shown" && it.transport.as_deref() == Some("shm");
    assert_eq!(routes.iter().filter(is_by_shm).count(), 1, "{routes:?}");
    assert_eq!(figure(&at_once, "doubled_samples"), 0);
    drop((foreign, publisher));
    drop(seen);
    wait_until("it is gone", || plain.readers(&shown) == 0);
}

/// Packets have addresses of sockets that are there; without a network there are none.
#[test]
fn the_addresses_of_packets_are_told() {
    let _watchdog = Watchdog::start("addresses");
    let folder = Folder::new();
    let context = context(&folder, 49);
    let node = context.node("n").unwrap();
    let publisher = node.create_publisher::<Text>("t", keep_all()).unwrap();
    let subscription = node.create_polled_subscription::<Text>("t", keep_all()).unwrap();
    wait_until("the network is joined", || !publisher.network_addresses().is_empty());
    for all in [publisher.network_addresses(), subscription.network_addresses()] {
        let [address] = all[..] else { panic!("one of the one interface: {all:?}") };
        assert!(address.ip().is_loopback(), "{address}");
        let other = UdpSocket::bind(("0.0.0.0", address.port()));
        assert_eq!(other.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    }
    let alone = folder.process().node("alone").unwrap();
    let publisher = alone.create_publisher::<Text>("t", keep_all()).unwrap();
    assert_eq!(publisher.network_addresses(), []);
}

/// A publisher whose type has keys meets a subscription that was made when it was known; one from before is told of it.
#[test]
fn keys_are_taken_over_from_what_is_there() {
    let _watchdog = Watchdog::start("keys");
    let folder = Folder::new();
    let context = context(&folder, 48);
    let node = context.node("n").unwrap();
    let topic = Topic { is_keyed: true, ..Topic::of::<Text>("keyed") };
    let subscribe = || node.create_polled_subscription::<Text>("keyed", keep_all()).unwrap();
    let before = subscribe();
    let plain = Plain::join(48);
    let talker = plain.talker(&topic, keep_all());
    let why = "keys: the type of the publisher has keys, that of the subscription has none";
    wait_until("that they do not meet is told", || {
        let routes = context.routes(HANG).unwrap();
        routes.iter().any(|it| it.state == RouteState::Incompatible && it.mismatches == [why])
    });
    let after = subscribe();
    talker.wait_for_readers(1);
    after.wait_for_publishers(1, HANG).unwrap();
    talker.say(&text("hello"));
    assert_eq!(take(&node, &after).data.to_string(), "hello");
    assert!(before.take().unwrap().is_none());

    // A publisher likewise.
    let listener = plain.listener(&topic, keep_all());
    wait_until("it is found", || {
        let graph = context.graph();
        graph.endpoints.iter().filter(|it| it.topic == "/keyed" && it.vendor.is_some()).count() == 2
    });
    let publisher = node.create_publisher::<Text>("keyed", keep_all()).unwrap();
    publisher.wait_for_subscriptions(3, HANG).unwrap();
    publisher.publish(text("there")).unwrap();
    assert_eq!(listener.next().1, text("there").to_vec().unwrap());
}
