//! Content filters of subscriptions: what passes comes, whatever transport brings it, and nothing else does anything.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use house::foreign::{self, Plain, Topic};
use house::links::{set, settled_on};
use house::{Folder, HANG, Watchdog, keep_all, keep_last, take_until, wait_until};
use tsuji::dynamic::{DynamicMessage, TypeSet};
use tsuji::{
    ContentFilterOptions, Context, Durability, ErrorKind, Executor, Publisher, Qos, RawType,
    Subscription, SubscriptionOptions,
};
use tsuji_interfaces::std_msgs::msg::{String as Text, UInt64};

const DOMAIN_OF_FOREIGN: u32 = 47;

/// Two ends and the transport between them.
struct Ends {
    transport: &'static str,
    publisher: Publisher<UInt64>,
    subscription: Subscription<UInt64>,
    here: Context,
    there: Context,
    _folder: Folder,
}

const TRANSPORTS: [&str; 3] = ["inproc", "shm", "cyclonedds"];
/// Those that send to each reader by itself, so that its filter is looked at before.
const DIRECTED: [&str; 2] = ["inproc", "shm"];

impl Ends {
    fn new(transport: &'static str, qos: Qos, filter: &str) -> Self {
        let folder = Folder::new();
        let here = house::links::process(&folder);
        let there =
            if transport == "inproc" { here.clone() } else { house::links::process(&folder) };
        let publisher = here.node("sender").unwrap().create_publisher::<UInt64>("n", qos).unwrap();
        let options = SubscriptionOptions::default().qos(qos).content_filter(filter, ["90"]);
        let node = there.node("taker").unwrap();
        let subscription = node.create_polled_subscription::<UInt64>("n", options).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        subscription.wait_for_publishers(1, HANG).unwrap();
        if transport == "cyclonedds" {
            set(&here, "/n", Some("cyclonedds"));
        }
        settled_on(&here, "/n", transport);
        Self { transport, publisher, subscription, here, there, _folder: folder }
    }

    fn publish(&self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|data| self.publisher.publish(UInt64 { data }).unwrap());
    }

    /// All that comes up to the number `last`.
    fn take_to(&self, last: u64) -> Vec<u64> {
        let node = self.there.node("waits").unwrap();
        let mut taken = Vec::new();
        take_until(&node, &self.subscription, |received| {
            taken.push(received.view().data);
            taken.last() == Some(&last)
        });
        taken
    }

    fn filtered(&self) -> u64 {
        let counters = self.subscription.counters();
        assert_eq!(
            (counters.lost, counters.duplicates),
            (0, 0),
            "{}: {counters:?}",
            self.transport
        );
        counters.filtered
    }
}

#[test]
fn what_passes_comes_and_the_rest_is_counted() {
    let _watchdog = Watchdog::start("what passes");
    for transport in TRANSPORTS {
        for qos in [keep_last(200), keep_all()] {
            let ends = Ends::new(transport, qos, "data > %0");
            ends.publish(0..100);
            assert_eq!(ends.take_to(99), (91..100).collect::<Vec<_>>(), "{transport}");
            assert_eq!(ends.filtered(), 91, "{transport}");
            assert_eq!(ends.subscription.counters().displaced, 0, "{transport}");
            assert_eq!(ends.publisher.counters().displaced, 0, "{transport}");
            assert!(ends.subscription.take().unwrap().is_none(), "{transport}");
            settled_on(&ends.here, "/n", transport);
        }
    }
}

#[test]
fn what_does_not_pass_pushes_nothing_out() {
    let _watchdog = Watchdog::start("pushes out");
    for transport in DIRECTED {
        let ends = Ends::new(transport, keep_last(1), "data > %0");
        ends.publish([95]);
        wait_until("it comes", || ends.subscription.is_ready());
        ends.publish(0..50);
        assert_eq!(ends.take_to(95), [95], "{transport}");
        ends.publish([91, 92, 93]);
        ends.publish(0..50);
        ends.publish([99]);
        assert_eq!(ends.take_to(99).last(), Some(&99), "{transport}");
        assert_eq!(ends.filtered(), 100, "{transport}");
    }
}

#[test]
fn what_does_not_pass_wakes_nobody() {
    let _watchdog = Watchdog::start("wakes nobody");
    for transport in DIRECTED {
        let ends = Ends::new(transport, keep_last(10), "data > %0");
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let note = move |new| {
            count.fetch_add(new, Ordering::AcqRel);
        };
        ends.subscription.on_new_message(Some(Box::new(note))).unwrap();
        ends.publish(0..50);
        ends.publish([97]);
        wait_until("it is told", || told.load(Ordering::Acquire) != 0);
        ends.publish(0..50);
        ends.publish([98]);
        wait_until("both are told", || told.load(Ordering::Acquire) == 2);
        assert_eq!(ends.take_to(98), [97, 98], "{transport}");
        assert!(!ends.subscription.is_ready(), "{transport}");
        assert_eq!(told.load(Ordering::Acquire), 2, "{transport}");
        assert_eq!(ends.filtered(), 100, "{transport}");
    }
}

#[test]
fn a_flow_keeps_its_filter_when_it_changes_its_link() {
    let _watchdog = Watchdog::start("changes of the link");
    let folder = Folder::new();
    let (here, there) = (house::links::process(&folder), house::links::process(&folder));
    let qos = house::links::keep_many();
    let publisher = here.node("sender").unwrap().create_publisher::<Text>("n", qos).unwrap();
    let node = there.node("taker").unwrap();
    let options = SubscriptionOptions::default().qos(qos).content_filter("data LIKE '%7'", [""; 0]);
    let subscription = node.create_polled_subscription::<Text>("n", options).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let is_over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut next = 0_u64;
            while !is_over.load(Ordering::Acquire) {
                publisher.publish(Text { data: next.to_string() }).unwrap();
                next += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            next
        });
        for transport in ["cyclonedds", "shm", "cyclonedds", "shm"] {
            set(&here, "/n", Some(transport));
            settled_on(&here, "/n", transport);
        }
        is_over.store(true, Ordering::Release);
        sender.join().unwrap()
    });
    publisher.publish(Text { data: "the last 7".into() }).unwrap();
    let mut taken = Vec::new();
    take_until(&node, &subscription, |received| {
        taken.push(received.view().data.to_string());
        taken.last().is_some_and(|last| last == "the last 7")
    });
    taken.pop();
    let expect: Vec<_> = (7..sent).step_by(10).map(|it| it.to_string()).collect();
    assert_eq!(taken, expect);
    let counters = subscription.counters();
    assert_eq!((counters.lost, counters.displaced, counters.duplicates), (0, 0, 0), "{counters:?}");
    assert_eq!(counters.filtered, sent - expect.len() as u64, "{counters:?}");
}

#[test]
fn foreign_nodes_are_filtered_as_they_arrive() {
    let _watchdog = Watchdog::start("foreign nodes");
    let folder = Folder::new();
    let context = foreign::context(&folder, DOMAIN_OF_FOREIGN);
    let node = context.node("taker").unwrap();
    let options =
        SubscriptionOptions::default().qos(keep_last(1)).content_filter("data > %0", ["90"]);
    let subscription = node.create_polled_subscription::<UInt64>("n", options).unwrap();
    let plain = Plain::join(DOMAIN_OF_FOREIGN);
    let talker = plain.talker(&Topic::of::<UInt64>("n"), keep_last(100));
    subscription.wait_for_publishers(1, HANG).unwrap();
    talker.wait_for_readers(1);
    let say = |data| talker.say(&UInt64 { data });
    let filtered =
        |count| wait_until("it is counted", || subscription.counters().filtered == count);
    say(95);
    (0..30).for_each(say);
    filtered(30);
    assert_eq!(house::take(&node, &subscription).data, 95);
    assert!(!subscription.is_ready());
    // From here on others pass.
    subscription.set_content_filter("data < 5", [""; 0]).unwrap();
    [3, 6, 99].into_iter().for_each(say);
    filtered(32);
    assert_eq!(house::take(&node, &subscription).data, 3);
    subscription.set_content_filter("", [""; 0]).unwrap();
    say(50);
    assert_eq!(house::take(&node, &subscription).data, 50);
    let counters = subscription.counters();
    assert_eq!((counters.lost, counters.displaced, counters.filtered), (0, 0, 32), "{counters:?}");
}

#[test]
fn callbacks_and_raw_subscriptions_get_what_passes() {
    let _watchdog = Watchdog::start("callbacks");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher =
        one.node("talker").unwrap().create_publisher::<Text>("t", keep_last(50)).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut subscriptions: Vec<Box<dyn std::any::Any>> = Vec::new();
    let mut executors = Vec::new();
    for context in [&one, &two] {
        let node = context.node("listener").unwrap();
        let options = || {
            SubscriptionOptions::default()
                .qos(keep_last(50))
                .content_filter("data LIKE '%!'", [""; 0])
        };
        let list = Arc::clone(&heard);
        let typed = node.create_subscription::<Text>("t", options(), move |received| {
            list.lock().unwrap().push(received.message().data.clone());
        });
        let list = Arc::clone(&heard);
        let raw =
            node.create_raw_subscription("t", RawType::of::<Text>(), options(), move |sample| {
                let text = <Text as tsuji::Message>::deserialize(&sample.bytes).unwrap();
                list.lock().unwrap().push(text.data);
            });
        subscriptions.push(Box::new((typed.unwrap(), raw.unwrap())));
        let mut executor = Executor::new(context).unwrap();
        executor.add(&node).unwrap();
        executors.push(executor);
    }
    publisher.wait_for_subscriptions(4, HANG).unwrap();
    for text in ["no", "yes!", "! no", "oh!"] {
        publisher.publish(Text { data: text.into() }).unwrap();
    }
    wait_until("all have heard", || {
        executors.iter_mut().for_each(|it| it.spin_once(Duration::from_millis(1)).unwrap());
        8 <= heard.lock().unwrap().len()
    });
    let mut heard = heard.lock().unwrap().clone();
    heard.sort_unstable();
    assert_eq!(heard, ["oh!", "oh!", "oh!", "oh!", "yes!", "yes!", "yes!", "yes!"]);
}

#[test]
fn a_filter_is_set_and_ended_while_messages_come() {
    let _watchdog = Watchdog::start("set and ended");
    for transport in TRANSPORTS {
        let ends = Ends::new(transport, keep_last(1000), "");
        let subscription = &ends.subscription;
        assert_eq!(subscription.content_filter(), None);
        assert!(!subscription.is_content_filtered());
        ends.publish(0..5);
        assert_eq!(ends.take_to(4), [0, 1, 2, 3, 4], "{transport}");
        // What waits must pass too.
        ends.publish(5..10);
        wait_until("they come", || subscription.is_ready());
        subscription.set_content_filter("data > %0 AND data <> %1", ["7", "0x9"]).unwrap();
        let set = ContentFilterOptions::new("data > %0 AND data <> %1", ["7", "0x9"]);
        assert_eq!(subscription.content_filter(), Some(set.clone()));
        assert!(subscription.is_content_filtered());
        ends.publish([3, 20]);
        assert_eq!(ends.take_to(20), [8, 20], "{transport}");
        assert_eq!(ends.filtered(), 5, "{transport}");
        // One that cannot be is not set.
        for (expression, parameters) in
            [("date > 1", &[][..]), ("data > %1", &["1"]), ("data >", &[])]
        {
            let error =
                subscription.set_content_filter(expression, parameters.to_vec()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert_eq!(subscription.content_filter(), Some(set.clone()));
        }
        subscription.set_content_filter("", [""; 0]).unwrap();
        assert_eq!(subscription.content_filter(), None);
        // The publisher of another process hears of it a moment later.
        wait_until("all come again", || {
            ends.publish([1]);
            subscription.take().unwrap().is_some()
        });
        ends.publish([2, 30]);
        let taken = ends.take_to(30);
        assert!(taken.ends_with(&[2, 30]), "{transport}: {taken:?}");
    }
}

#[test]
fn who_joins_late_gets_the_last_that_pass() {
    let _watchdog = Watchdog::start("late joiners");
    let folder = Folder::new();
    let (one, two) = (house::links::process(&folder), house::links::process(&folder));
    let latched = |depth| Qos { durability: Durability::TransientLocal, ..keep_last(depth) };
    let publisher = one.node("map").unwrap().create_publisher::<UInt64>("n", latched(20)).unwrap();
    (0..20).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    for context in [&one, &two] {
        let node = context.node("late").unwrap();
        let options =
            SubscriptionOptions::default().qos(latched(2)).content_filter("data < %0", ["10"]);
        let subscription = node.create_polled_subscription::<UInt64>("n", options).unwrap();
        let mut taken = Vec::new();
        take_until(&node, &subscription, |received| {
            taken.push(received.view().data);
            taken.len() == 2
        });
        assert_eq!(taken, [8, 9]);
        publisher.publish(UInt64 { data: 50 }).unwrap();
        publisher.publish(UInt64 { data: 5 }).unwrap();
        take_until(&node, &subscription, |received| received.view().data == 5);
        let counters = subscription.counters();
        assert_eq!((counters.lost, counters.displaced), (0, 0), "{counters:?}");
        // For the next one.
        (0..20).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    }
}

#[test]
fn a_raw_subscription_must_know_its_type() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("raw").unwrap();
    let options = || SubscriptionOptions::default().content_filter("size > %0", ["3"]);
    let create = |of: RawType, options| node.create_polled_raw_subscription("t", of, options);
    let of = || RawType::new("my_msgs/msg/Box");
    let error = create(of(), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "/t: a content filter needs the definition of my_msgs/msg/Box, and tsuji does not ship it; give it by \
         SubscriptionOptions::type_description"
    );
    let types = TypeSet::new(HashMap::new());
    let ty = types.load_text("my_msgs/msg/Box", "string name\nfloat32 size\n").unwrap();
    let other = types.load_text("my_msgs/msg/Bag", "float32 size\n").unwrap();
    let error = create(of(), options().type_description(other)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let another = RawType { hash: format!("RIHS01_{}", "0".repeat(64)), ..of() };
    let error = create(another, options().type_description(ty.clone())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");

    let subscription = create(of(), options().type_description(ty.clone())).unwrap();
    let publisher = node.create_raw_publisher("t", of(), keep_last(10)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for size in ["1.5", "4.5", "2"] {
        let message =
            DynamicMessage::from_yaml(&ty, &format!("{{name: box, size: {size}}}")).unwrap();
        publisher.publish_bytes(&message.encode().unwrap()).unwrap();
    }
    // What cannot be looked at is no message.
    publisher.publish_bytes(&[0, 1, 0, 0, 9, 0, 0, 0]).unwrap();
    let taken = subscription.take_bytes().unwrap().unwrap();
    let taken = DynamicMessage::decode(&ty, &taken.bytes).unwrap();
    assert_eq!(*taken.get("size").unwrap(), tsuji::dynamic::Value::F32(4.5));
    assert!(subscription.take_bytes().unwrap().is_none());
    let counters = subscription.counters();
    assert_eq!((counters.filtered, counters.invalid, counters.lost), (2, 1, 0), "{counters:?}");
}

#[test]
fn a_filter_that_cannot_be_makes_no_subscription() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("wrong").unwrap();
    let create = |expression: &str| {
        let options = SubscriptionOptions::default().content_filter(expression, ["1"]);
        node.create_polled_subscription::<UInt64>("n", options).map(drop).unwrap_err()
    };
    let error = create("dat = %0");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "/n: content filter: column 1: found no field `dat` in std_msgs/msg/UInt64; expected one of data (did you mean \
         `data`?)"
    );
    assert_eq!(create("data = %0 OR").kind(), ErrorKind::Invalid);
    assert_eq!(context.graph().endpoints.len(), 0);
}
