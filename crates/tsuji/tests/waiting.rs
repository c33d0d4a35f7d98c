//! Waiting for what each call names, callbacks that only hear how much has come, and replies that are collected:
//! what a plug-in for rmw stands on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use house::links::{set, settled_on, start};
use house::{Child, Folder, HANG, Random, Watchdog, keep_all, keep_last, tell, wait_until};
use tsuji::{
    Context, ErrorKind, GuardCondition, Node, Qos, RawClient, RawPublisher, RawService,
    RawSubscription, RawType, SubscriptionOptions, WaitList, Waitable,
};
use tsuji_interfaces::std_msgs::msg::UInt64;

fn text() -> RawType {
    RawType::new("std_msgs/msg/String")
}

fn adding() -> RawType {
    RawType::new("example_interfaces/srv/AddTwoInts")
}

fn publisher(node: &Node, topic: &str, qos: Qos) -> RawPublisher {
    node.create_raw_publisher(topic, text(), qos).unwrap()
}

fn subscription(node: &Node, topic: &str, qos: Qos) -> RawSubscription {
    node.create_polled_raw_subscription(topic, text(), qos).unwrap()
}

fn message(number: u32) -> [u8; 8] {
    let mut bytes = [0, 1, 0, 0, 0, 0, 0, 0];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[4..8].try_into().unwrap())
}

/// What a child does.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "serve two of three" => serve_two_of_three(),
        role => house::links::play(role, &house::context()),
    }
}

/// Answers the first two requests, says so, and holds the third until it is killed.
fn serve_two_of_three() {
    let context = house::context();
    let server = context.node("server").unwrap();
    let service = server.create_polled_raw_service("add", adding()).unwrap();
    let mut list = WaitList::new(&context).unwrap();
    let mut held = Vec::new();
    while held.is_empty() {
        list.wait(&[&service], Some(HANG)).unwrap();
        while let Some(request) = service.take_bytes().unwrap() {
            if number(request.bytes()) == 2 {
                held.push(request);
                continue;
            }
            let answer = message(100 + number(request.bytes()));
            request.respond_bytes(&answer).unwrap();
        }
    }
    tell("it holds one");
    house::heard();
}

/// The places that are ready.
fn ready(list: &mut WaitList, entities: &[&dyn Waitable], timeout: Duration) -> Vec<usize> {
    list.wait(entities, Some(timeout)).unwrap().to_vec()
}

#[test]
fn something_is_ready_as_long_as_there_is_something_to_take() {
    let _watchdog = Watchdog::start("readiness");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let writer = one.node("writer").unwrap();
    // In the same process, in another, and both.
    for (at, (context, writers)) in [(&one, 1), (&two, 1), (&two, 2)].into_iter().enumerate() {
        let topic = format!("t{at}");
        let reader = context.node("reader").unwrap();
        let publishers: Vec<_> =
            (0..writers).map(|_| publisher(&writer, &topic, keep_last(10))).collect();
        let subscription = subscription(&reader, &topic, keep_last(10));
        publishers.iter().for_each(|it| it.wait_for_subscriptions(1, HANG).unwrap());
        let mut list = WaitList::new(context).unwrap();
        assert!(ready(&mut list, &[&subscription], Duration::ZERO).is_empty());
        for _ in 0..3 {
            publishers.iter().for_each(|it| it.publish_bytes(&message(7)).unwrap());
        }
        for _ in 0..3 * writers {
            assert_eq!(ready(&mut list, &[&subscription], HANG), [0]);
            assert_eq!(ready(&mut list, &[&subscription], HANG), [0], "as often as it is asked");
            assert!(subscription.take_bytes().unwrap().is_some());
        }
        assert!(ready(&mut list, &[&subscription], Duration::ZERO).is_empty());
        assert!(subscription.take_bytes().unwrap().is_none());
    }
}

#[test]
fn whoever_looks_sees_the_newest_that_the_depth_lets_be_kept() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = publisher(&one.node("writer").unwrap(), "t", keep_last(2));
    let subscription = subscription(&two.node("reader").unwrap(), "t", keep_last(2));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for number in 0..10 {
        publisher.publish_bytes(&message(number)).unwrap();
        assert!(subscription.is_ready());
    }
    let taken: Vec<_> = std::iter::from_fn(|| subscription.take_bytes().unwrap())
        .map(|it| number(&it.bytes))
        .collect();
    assert_eq!(taken, [8, 9]);
    let counters = subscription.counters();
    assert_eq!((counters.received, counters.displaced, counters.lost), (2, 8, 0));
}

#[test]
fn a_guard_condition_is_ready_once_for_each_wait() {
    let folder = Folder::new();
    let context = folder.process();
    let guard = GuardCondition::new(&context).unwrap();
    let mut list = WaitList::new(&context).unwrap();
    guard.trigger();
    guard.trigger();
    assert_eq!(ready(&mut list, &[&guard], HANG), [0]);
    assert!(ready(&mut list, &[&guard], Duration::ZERO).is_empty());
    // Whoever goes elsewhere and comes back has missed nothing.
    assert!(ready(&mut list, &[], Duration::ZERO).is_empty());
    guard.trigger();
    assert_eq!(ready(&mut list, &[&guard], HANG), [0]);
}

/// Whoever misses one of two triggers that follow each other closely waits for ever.
#[test]
fn a_trigger_while_the_last_one_is_told_is_seen_too() {
    const ROUNDS: usize = 300_000;
    let _watchdog = Watchdog::start("triggers");
    let folder = Folder::new();
    let context = folder.process();
    let guard = GuardCondition::new(&context).unwrap();
    let mut list = WaitList::new(&context).unwrap();
    let (state, seen) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                state.store(2 * round - 1, Ordering::Relaxed);
                guard.trigger();
                (0..round % 32).for_each(|_| std::hint::spin_loop());
                state.store(2 * round, Ordering::Relaxed);
                guard.trigger();
                while seen.load(Ordering::Relaxed) < 2 * round {
                    std::thread::yield_now();
                }
            }
        });
        while seen.load(Ordering::Relaxed) < 2 * ROUNDS {
            assert_eq!(ready(&mut list, &[&guard], HANG), [0]);
            seen.store(state.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    });
}

#[test]
fn what_one_list_names_no_more_wakes_the_other() {
    const ROUNDS: usize = 20_000;
    let _watchdog = Watchdog::start("from list to list");
    let folder = Folder::new();
    let context = folder.process();
    let guard = GuardCondition::new(&context).unwrap();
    let (given, woken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut list = WaitList::new(&context).unwrap();
    let until = |at: &AtomicUsize, round| {
        while at.load(Ordering::Acquire) < round {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut list = WaitList::new(&context).unwrap();
            for round in 1..=ROUNDS {
                assert!(ready(&mut list, &[&guard], Duration::ZERO).is_empty());
                given.store(round, Ordering::Release);
                (0..round % 64).for_each(|_| std::hint::spin_loop());
                assert!(ready(&mut list, &[], Duration::ZERO).is_empty());
                guard.trigger();
                until(&woken, round);
            }
        });
        for round in 1..=ROUNDS {
            until(&given, round);
            assert_eq!(ready(&mut list, &[&guard], HANG), [0]);
            woken.store(round, Ordering::Release);
        }
    });
}

#[test]
fn what_is_named_twice_is_ready_twice() {
    let _watchdog = Watchdog::start("twice");
    let folder = Folder::new();
    let context = folder.process();
    let guard = GuardCondition::new(&context).unwrap();
    let mut list = WaitList::new(&context).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| ready(&mut list, &[&guard, &guard], HANG));
        guard.trigger();
        assert_eq!(waiting.join().unwrap(), [0, 1]);
    });
    assert!(ready(&mut list, &[&guard, &guard], Duration::ZERO).is_empty());
}

#[test]
fn what_is_named_may_change_with_every_call() {
    let _watchdog = Watchdog::start("changing names");
    let folder = Folder::new();
    let context = folder.process();
    let guards: Vec<_> = (0..1000).map(|_| GuardCondition::new(&context).unwrap()).collect();
    let (mut list, mut other) =
        (WaitList::new(&context).unwrap(), WaitList::new(&context).unwrap());
    let mut random = Random(5);
    for round in 0..300 {
        let count = 1 + random.below(1000) as usize;
        let first = random.below(1000) as usize;
        let mut named: Vec<&dyn Waitable> = Vec::new();
        named.extend(guards.iter().cycle().skip(first).take(count).map(|it| it as &dyn Waitable));
        if round % 3 == 0 {
            named.reverse();
        }
        let list = if round % 7 == 0 { &mut other } else { &mut list };
        assert!(ready(list, &named, Duration::ZERO).is_empty());
        let place = random.below(count as u64) as usize;
        let at = if round % 3 == 0 { count - 1 - place } else { place };
        guards[(first + at) % 1000].trigger();
        assert_eq!(ready(list, &named, HANG), [place]);
    }
}

#[test]
fn too_many_are_refused_and_the_end_of_the_context_ends_a_wait() {
    let folder = Folder::new();
    let context = folder.process();
    let guard = GuardCondition::new(&context).unwrap();
    let mut list = WaitList::new(&context).unwrap();
    let named = vec![&guard as &dyn Waitable; 4096];
    let error = list.wait(&named, Some(Duration::ZERO)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| list.wait(&[&guard], None).map(<[usize]>::len));
        context.shutdown();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn no_wake_up_is_lost() {
    let _watchdog = Watchdog::start("wake-ups");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = publisher(&one.node("writer").unwrap(), "t", keep_all());
    let subscription = subscription(&two.node("reader").unwrap(), "t", keep_all());
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let guard = GuardCondition::new(&two).unwrap();
    let mut list = WaitList::new(&two).unwrap();
    let handed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20_000 {
                publisher.publish_bytes(&message(number)).unwrap();
                // The next one when the last was taken: whoever misses it waits for ever.
                while !handed.swap(false, Ordering::AcqRel) {
                    std::thread::yield_now();
                }
                if number % 2 == 0 {
                    guard.trigger();
                    while !handed.swap(false, Ordering::AcqRel) {
                        std::thread::yield_now();
                    }
                }
            }
        });
        let (mut taken, mut triggered) = (0, 0);
        while taken < 20_000 || triggered < 10_000 {
            let places = ready(&mut list, &[&guard, &subscription], HANG);
            assert_eq!(places.len(), 1, "{taken} {triggered}");
            if places == [0] {
                triggered += 1;
            } else {
                assert_eq!(number(&subscription.take_bytes().unwrap().unwrap().bytes), taken);
                taken += 1;
            }
            handed.store(true, Ordering::Release);
        }
    });
}

#[test]
fn a_change_of_the_graph_ends_a_wait() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let guard = one.graph_guard().unwrap();
    let mut list = WaitList::new(&one).unwrap();
    let node = two.node("passer_by").unwrap();
    let mut see = |is_there: bool| {
        while one.graph().nodes.iter().any(|it| it.name == "passer_by") != is_there {
            assert_eq!(ready(&mut list, &[&guard], HANG), [0]);
        }
    };
    see(true);
    drop(node);
    see(false);
}

/// After each change one wait ends, and the next does not: nothing else makes a program look at the graph again.
#[test]
fn a_change_of_the_graph_ends_one_wait() {
    let _watchdog = Watchdog::start("one wait");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("stays").unwrap();
    let guard = context.graph_guard().unwrap();
    let mut list = WaitList::new(&context).unwrap();
    let mut told = |at_most: Duration| !ready(&mut list, &[&guard], at_most).is_empty();
    let quiet = Duration::from_millis(200);
    let mut once = |what: &str| {
        assert!(told(HANG), "{what}");
        assert!(!told(quiet), "{what}: told twice");
    };
    let passer_by = context.node("passer_by").unwrap();
    once("a node comes");
    drop(passer_by);
    once("a node goes");
    let publisher = publisher(&node, "t", keep_last(1));
    once("a publisher comes");
    let subscription = subscription(&node, "t", keep_last(1));
    once("a subscription comes");
    // That is not of the graph.
    publisher.publish_bytes(&message(1)).unwrap();
    drop(publisher);
    once("a publisher goes");
    drop(subscription);
    once("a subscription goes");
    let service = node.create_polled_raw_service("add", adding()).unwrap();
    once("a server comes");
    let client = node.create_raw_client("add", adding()).unwrap();
    once("a client comes");
    drop(service);
    once("a server goes");
    drop(client);
    once("a client goes");
}

#[test]
fn local_publishers_are_ignored_where_that_is_asked() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("both").unwrap();
    let here = publisher(&node, "t", keep_last(10));
    let there = publisher(&two.node("other").unwrap(), "t", keep_last(10));
    let subscription = node
        .create_polled_raw_subscription(
            "t",
            text(),
            SubscriptionOptions::default().qos(keep_last(10)).ignore_local(true),
        )
        .unwrap();
    there.wait_for_subscriptions(1, HANG).unwrap();
    here.publish_bytes(&message(1)).unwrap();
    there.publish_bytes(&message(2)).unwrap();
    wait_until("a message", || subscription.is_ready());
    assert_eq!(number(&subscription.take_bytes().unwrap().unwrap().bytes), 2);
    assert!(subscription.take_bytes().unwrap().is_none());
    assert_eq!(here.matched(), 0);
}

#[test]
fn what_was_published_is_acknowledged_by_those_who_have_it() {
    let _watchdog = Watchdog::start("acknowledgements");
    let folder = Folder::new();
    let one = house::links::process(&folder);
    let node = one.node("writer").unwrap();
    let publisher = node.create_publisher::<UInt64>("n", keep_last(1000)).unwrap();
    publisher.wait_for_acknowledgements(Duration::ZERO).unwrap();
    let child = start(&folder, "take");
    child.expect("there");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    // What is put into memory that the other shares is there.
    child.stop();
    publisher.publish(UInt64 { data: 0 }).unwrap();
    publisher.wait_for_acknowledgements(Duration::ZERO).unwrap();
    child.go_on();
    set(&one, "/n", Some("cyclonedds"));
    settled_on(&one, "/n", "cyclonedds");
    (1..100).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    publisher.wait_for_acknowledgements(HANG).unwrap();
    child.stop();
    // Until it stands still it may acknowledge some.
    let mut numbers = 100..;
    wait_until("something is not acknowledged", || {
        publisher.publish(UInt64 { data: numbers.next().unwrap() }).unwrap();
        let waited = publisher.wait_for_acknowledgements(Duration::from_millis(20));
        waited.is_err_and(|error| error.kind() == ErrorKind::Timeout)
    });
    child.go_on();
    publisher.wait_for_acknowledgements(HANG).unwrap();
}

/// Takes as often as it is told to, on another thread, as executors by events do.
struct Teller {
    told: Arc<AtomicUsize>,
}

impl Teller {
    fn new() -> (Self, tsuji::NewMessageCallback) {
        let told = Arc::new(AtomicUsize::new(0));
        let teller = Self { told: Arc::clone(&told) };
        let callback = move |count| {
            told.fetch_add(count, Ordering::AcqRel);
        };
        (teller, Box::new(callback))
    }

    /// What `take` answers, as often as was told, until there are so many.
    fn take<T>(&self, count: usize, mut take: impl FnMut() -> Option<T>) -> Vec<T> {
        let mut taken = Vec::new();
        wait_until("all are told of", || {
            for _ in 0..self.told.swap(0, Ordering::AcqRel) {
                taken.extend(take());
            }
            count <= taken.len()
        });
        taken
    }
}

#[test]
fn a_callback_hears_of_every_message() {
    let _watchdog = Watchdog::start("news");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    for qos in [keep_last(1000), keep_all()] {
        let publisher = publisher(&one.node("writer").unwrap(), "t", qos);
        let subscription = subscription(&two.node("reader").unwrap(), "t", qos);
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        (0..3).for_each(|at| publisher.publish_bytes(&message(at)).unwrap());
        wait_until("some wait", || subscription.is_ready());
        let (teller, callback) = Teller::new();
        subscription.on_new_message(Some(callback)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (3..500).for_each(|at| publisher.publish_bytes(&message(at)).unwrap()));
            let taken =
                teller.take(500, || Some(number(&subscription.take_bytes().unwrap()?.bytes)));
            assert!(taken.into_iter().eq(0..500));
        });
        subscription.on_new_message(None).unwrap();
        publisher.publish_bytes(&message(500)).unwrap();
        wait_until("it is there", || subscription.is_ready());
        assert_eq!(teller.told.load(Ordering::Acquire), 0);
    }
}

#[test]
fn a_callback_hears_of_no_more_than_what_came() {
    const ROUNDS: usize = 3000;
    let _watchdog = Watchdog::start("counting news");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    for qos in [keep_last(100), keep_all()] {
        let publisher = publisher(&one.node("writer").unwrap(), "t", qos);
        let subscription = subscription(&two.node("reader").unwrap(), "t", qos);
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        let (teller, callback) = Teller::new();
        subscription.on_new_message(Some(callback)).unwrap();
        for _ in 0..ROUNDS {
            (0..3).for_each(|at| publisher.publish_bytes(&message(at)).unwrap());
            let mut taken = 0;
            while taken < 3 {
                for _ in 0..teller.told.swap(0, Ordering::AcqRel) {
                    assert!(
                        subscription.take_bytes().unwrap().is_some(),
                        "told of what is not there"
                    );
                    taken += 1;
                }
            }
        }
    }
}

#[test]
fn a_callback_hears_of_what_is_taken_with_its_type() {
    let _watchdog = Watchdog::start("news of typed messages");
    let folder = Folder::new();
    let node = folder.process().node("both").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_last(10)).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_last(10)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let (teller, callback) = Teller::new();
    subscription.on_new_message(Some(callback)).unwrap();
    for data in 0..10 {
        publisher.publish(UInt64 { data }).unwrap();
        teller.take(1, || subscription.take().unwrap());
    }
    // What goes to another callback is not told of.
    let called = node.create_subscription::<UInt64>("t", keep_last(10), |_| ()).unwrap();
    let error = called.on_new_message(Some(Box::new(|_| ()))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn a_callback_that_panics_keeps_nobody_from_being_told() {
    let _watchdog = Watchdog::start("panic");
    let folder = Folder::new();
    let node = folder.process().node("both").unwrap();
    let publisher = publisher(&node, "t", keep_last(1));
    let panics = subscription(&node, "t", keep_last(1));
    let is_called = Arc::new(AtomicBool::new(false));
    let called = Arc::clone(&is_called);
    let callback = move |_| {
        called.store(true, Ordering::Release);
        panic!("on purpose");
    };
    panics.on_new_message(Some(Box::new(callback))).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish_bytes(&message(0)).unwrap();
    wait_until("it is called", || is_called.load(Ordering::Acquire));
    panics.on_new_message(None).unwrap();
    assert!(panics.take_bytes().unwrap().is_some());
    let (teller, callback) = Teller::new();
    panics.on_new_message(Some(callback)).unwrap();
    publisher.publish_bytes(&message(1)).unwrap();
    teller.take(1, || panics.take_bytes().unwrap());
}

#[test]
fn a_callback_replaces_itself_while_another_thread_takes_it_away() {
    let _watchdog = Watchdog::start("replaced inside");
    let folder = Folder::new();
    let node = folder.process().node("both").unwrap();
    let publisher = publisher(&node, "t", keep_last(1));
    let subscription = Arc::new(subscription(&node, "t", keep_last(1)));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let (weak, is_inside) = (Arc::downgrade(&subscription), Arc::new(AtomicBool::new(false)));
    let (inside, other) = (Arc::clone(&is_inside), Arc::new(AtomicUsize::new(0)));
    let thread = Arc::clone(&other);
    let callback = move |_| {
        inside.store(true, Ordering::Release);
        wait_until("the other waits for this", || sleeps(thread.load(Ordering::Acquire)));
        weak.upgrade().unwrap().on_new_message(Some(Box::new(|_| ()))).unwrap();
    };
    subscription.on_new_message(Some(Box::new(callback))).unwrap();
    publisher.publish_bytes(&message(0)).unwrap();
    wait_until("it is called", || is_inside.load(Ordering::Acquire));
    // SAFETY: it asks for a number.
    other.store(unsafe { libc::gettid() } as usize, Ordering::Release);
    subscription.on_new_message(None).unwrap();
}

/// Whether a thread of this process sleeps.
fn sleeps(thread: usize) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|it| it.contains(") S "))
}

#[test]
fn what_one_callback_was_told_of_the_next_is_not() {
    let _watchdog = Watchdog::start("told once");
    let folder = Folder::new();
    let node = folder.process().node("both").unwrap();
    let publisher = publisher(&node, "t", keep_last(100));
    let subscription = subscription(&node, "t", keep_last(100));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let told = |teller: &Teller, count| {
        wait_until("it is told", || teller.told.load(Ordering::Acquire) == count);
    };
    let publish = |count| (0..count).for_each(|at| publisher.publish_bytes(&message(at)).unwrap());
    publish(2);
    let (first, callback) = Teller::new();
    subscription.on_new_message(Some(callback)).unwrap();
    told(&first, 2);
    subscription.on_new_message(None).unwrap();
    publish(3);
    // One that is asked for while nobody is told is one less.
    assert!(subscription.take_bytes().unwrap().is_some());
    let (second, callback) = Teller::new();
    subscription.on_new_message(Some(callback)).unwrap();
    told(&second, 3);
    let guard = GuardCondition::new(node.context()).unwrap();
    (0..3).for_each(|_| guard.trigger());
    let (third, callback) = Teller::new();
    guard.on_trigger(node.context(), Some(callback)).unwrap();
    told(&third, 3);
    guard.trigger();
    told(&third, 4);
    guard.clear();
    guard.trigger();
    told(&third, 5);
    guard.on_trigger(node.context(), None).unwrap();
    assert_eq!((first.told.load(Ordering::Acquire), second.told.load(Ordering::Acquire)), (2, 3));
}

#[test]
fn a_server_killed_with_a_request_in_its_hands_loses_that_one_alone() {
    let _watchdog = Watchdog::start("a killed server");
    let folder = Folder::new();
    let context = folder.process();
    let client = context.node("client").unwrap().create_raw_client("add", adding()).unwrap();
    for round in 1..=3 {
        let server = Child::start(&folder, "serve two of three");
        client.wait_for_service(HANG).unwrap();
        let numbers: Vec<_> = (0..3).map(|at| client.post_bytes(&message(at)).unwrap()).collect();
        server.expect("it holds one");
        server.kill();
        wait_until("the request is lost", || client.counters().lost == round);
        // What it answered before is there, in order, and nothing else.
        let replies = std::iter::from_fn(|| client.take_bytes().unwrap());
        let replies: Vec<_> = replies.map(|(at, reply)| (at, number(&reply.bytes))).collect();
        assert_eq!(replies, [(numbers[0], 100), (numbers[1], 101)]);
        wait_until("it is gone", || !client.is_ready());
    }
    let counters = client.counters();
    assert_eq!((counters.sent, counters.replied, counters.open, counters.late), (9, 6, 0, 0));
}

#[test]
fn a_request_that_nobody_hears_keeps_its_number() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let client = one.node("client").unwrap().create_raw_client("add", adding()).unwrap();
    assert_eq!(client.post_bytes(&message(0)).unwrap(), 1);
    assert_eq!(client.post_bytes(&message(0)).unwrap(), 2);
    let service = two.node("server").unwrap().create_polled_raw_service("add", adding()).unwrap();
    client.wait_for_service(HANG).unwrap();
    assert_eq!(client.post_bytes(&message(0)).unwrap(), 3);
    assert_eq!(ready(&mut WaitList::new(&two).unwrap(), &[&service], HANG), [0]);
    let request = service.take_bytes().unwrap().unwrap();
    assert_eq!(request.id(), (client.gid(), 3));
    request.respond_bytes(&message(7)).unwrap();
    wait_until("its reply", || client.take_bytes().unwrap().is_some_and(|(number, _)| number == 3));
    let counters = client.counters();
    assert_eq!((counters.open, counters.lost, counters.late), (0, 0, 0));
}

#[test]
fn a_callback_that_is_taken_away_does_not_run_any_more() {
    let _watchdog = Watchdog::start("taking away");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = publisher(&one.node("writer").unwrap(), "t", keep_last(1));
    let subscription = subscription(&two.node("reader").unwrap(), "t", keep_last(1));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let late = Arc::new(AtomicUsize::new(0));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                publisher.publish_bytes(&message(0)).unwrap();
                let _ = subscription.take_bytes().unwrap();
            }
        });
        for _ in 0..500 {
            let is_gone = Arc::new(AtomicBool::new(false));
            let (seen, late) = (Arc::clone(&is_gone), Arc::clone(&late));
            let callback = move |_| {
                late.fetch_add(usize::from(seen.load(Ordering::Acquire)), Ordering::AcqRel);
            };
            subscription.on_new_message(Some(Box::new(callback))).unwrap();
            subscription.on_new_message(None).unwrap();
            is_gone.store(true, Ordering::Release);
        }
        stop.store(true, Ordering::Release);
    });
    assert_eq!(late.load(Ordering::Acquire), 0);
    // From inside itself it can be taken away too.
    let subscription = Arc::new(subscription);
    let (inside, called) = (Arc::downgrade(&subscription), Arc::new(Mutex::new(0)));
    let calls = Arc::clone(&called);
    let callback = move |_| {
        *calls.lock().unwrap() += 1;
        inside.upgrade().unwrap().on_new_message(None).unwrap();
    };
    publisher.publish_bytes(&message(0)).unwrap();
    subscription.on_new_message(Some(Box::new(callback))).unwrap();
    wait_until("it is called", || *called.lock().unwrap() == 1);
}

fn service_ends(client: &Context, server: &Context) -> (RawClient, RawService) {
    let service =
        server.node("server").unwrap().create_polled_raw_service("add", adding()).unwrap();
    let client = client.node("client").unwrap().create_raw_client("add", adding()).unwrap();
    client.wait_for_service(HANG).unwrap();
    (client, service)
}

#[test]
fn replies_are_collected_in_the_order_in_which_they_come() {
    let _watchdog = Watchdog::start("collecting");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (client, service) = service_ends(&one, &two);
    let numbers: Vec<_> = (0..4).map(|at| client.post_bytes(&message(at)).unwrap()).collect();
    let mut list = WaitList::new(&two).unwrap();
    let mut requests = Vec::new();
    while requests.len() < 4 {
        assert_eq!(ready(&mut list, &[&service], HANG), [0]);
        let request = service.take_bytes().unwrap().unwrap();
        assert_eq!(request.id(), (client.gid(), numbers[requests.len()]));
        requests.push(request);
    }
    assert!(ready(&mut list, &[&service], Duration::ZERO).is_empty());
    let mut list = WaitList::new(&one).unwrap();
    assert!(ready(&mut list, &[&client], Duration::ZERO).is_empty());
    for at in [2, 0, 3, 1] {
        let request =
            requests.remove(requests.iter().position(|it| it.id().1 == numbers[at]).unwrap());
        request.respond_bytes(&message(100 + at as u32)).unwrap();
        assert_eq!(ready(&mut list, &[&client], HANG), [0]);
        let (sequence, reply) = client.take_bytes().unwrap().unwrap();
        assert_eq!((sequence, number(&reply.bytes)), (numbers[at], 100 + at as u32));
    }
    assert!(client.take_bytes().unwrap().is_none());
    assert_eq!((client.counters().replied, client.counters().open), (4, 0));
}

#[test]
fn requests_that_nobody_answers_make_room_for_others() {
    let _watchdog = Watchdog::start("unanswered");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (client, service) = service_ends(&one, &two);
    let mut last = 0;
    for _ in 0..3000 {
        last = client.post_bytes(&message(1)).unwrap();
        drop(service.take_bytes().unwrap());
    }
    let counters = client.counters();
    assert_eq!((counters.open, counters.forgotten), (1024, 3000 - 1024));
    let number = client.post_bytes(&message(2)).unwrap();
    assert_eq!(number, last + 1);
    let request = loop {
        match service.take_bytes().unwrap() {
            Some(request) if request.id().1 == number => break request,
            _ => std::thread::yield_now(),
        }
    };
    request.respond_bytes(&message(3)).unwrap();
    wait_until("the reply", || client.take_bytes().unwrap().is_some());
    // Those that a server cannot answer any more are forgotten with it.
    drop(service);
    wait_until("it is gone", || client.counters().open == 0);
}

#[test]
fn callbacks_hear_of_requests_and_replies() {
    let _watchdog = Watchdog::start("news of services");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (client, service) = service_ends(&one, &two);
    let (requests, callback) = Teller::new();
    service.on_new_request(Some(callback)).unwrap();
    let (replies, callback) = Teller::new();
    client.on_new_response(Some(callback)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..200 {
                client.post_bytes(&message(at)).unwrap();
            }
        });
        scope.spawn(|| {
            requests.take(200, || {
                let request = service.take_bytes().unwrap()?;
                let bytes = request.bytes().to_vec();
                request.respond_bytes(&bytes).unwrap();
                Some(())
            })
        });
        let got = replies.take(200, || Some(number(&client.take_bytes().unwrap()?.1.bytes)));
        assert!(got.into_iter().eq(0..200));
    });
}

/// Beside a list that takes, callbacks hear of all that comes, whichever was first there.
#[test]
fn a_callback_hears_of_all_that_a_list_takes() {
    const ALL: usize = 20;
    let _watchdog = Watchdog::start("a callback beside a list");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    for is_set_first in [true, false] {
        for qos in [keep_last(10), keep_all()] {
            let publisher = publisher(&one.node("writer").unwrap(), "t", qos);
            let subscription = subscription(&two.node("reader").unwrap(), "t", qos);
            let (client, service) = service_ends(&two, &two);
            publisher.wait_for_subscriptions(1, HANG).unwrap();
            let set = || {
                [0, 1, 2].map(|at| {
                    let (teller, callback) = Teller::new();
                    let set = match at {
                        0 => subscription.on_new_message(Some(callback)),
                        1 => service.on_new_request(Some(callback)),
                        _ => client.on_new_response(Some(callback)),
                    };
                    set.unwrap();
                    teller
                })
            };
            let mut list = WaitList::new(&two).unwrap();
            let first = is_set_first.then(set);
            assert!(
                ready(&mut list, &[&subscription, &service, &client], Duration::ZERO).is_empty()
            );
            let tellers = first.unwrap_or_else(set);
            for at in 0..ALL {
                publisher.publish_bytes(&message(at as u32)).unwrap();
                assert_eq!(ready(&mut list, &[&subscription, &service, &client], HANG), [0]);
                assert_eq!(number(&subscription.take_bytes().unwrap().unwrap().bytes), at as u32);
                client.post_bytes(&message(at as u32)).unwrap();
                assert_eq!(ready(&mut list, &[&subscription, &service, &client], HANG), [1]);
                let request = service.take_bytes().unwrap().unwrap();
                request.respond_bytes(&message(at as u32)).unwrap();
                assert_eq!(ready(&mut list, &[&subscription, &service, &client], HANG), [2]);
                assert!(client.take_bytes().unwrap().is_some());
            }
            for teller in &tellers {
                wait_until("all are told", || teller.told.load(Ordering::Acquire) == ALL);
            }
            // A list that is gone takes nothing away, and what nobody takes is told too.
            drop(list);
            (0..3 * ALL as u32).for_each(|at| publisher.publish_bytes(&message(at)).unwrap());
            wait_until("the rest is told", || tellers[0].told.load(Ordering::Acquire) == 4 * ALL);
        }
    }
}

/// Whoever waits for what lasts is told, however many they are.
#[test]
fn what_lasts_wakes_every_list_and_the_callback() {
    const ROUNDS: usize = 2000;
    const LISTS: usize = 3;
    let _watchdog = Watchdog::start("several lists");
    let folder = Folder::new();
    let context = folder.process();
    let guard = GuardCondition::lasting(&context).unwrap();
    let (teller, callback) = Teller::new();
    let turn = std::sync::Barrier::new(LISTS + 1);
    std::thread::scope(|scope| {
        for _ in 0..LISTS {
            scope.spawn(|| {
                let mut list = WaitList::new(&context).unwrap();
                for _ in 0..ROUNDS {
                    assert_eq!(ready(&mut list, &[&guard], HANG), [0]);
                    assert_eq!(ready(&mut list, &[&guard], HANG), [0], "until it is cleared");
                    turn.wait();
                    turn.wait();
                }
            });
        }
        guard.on_trigger(&context, Some(callback)).unwrap();
        for round in 1..=ROUNDS {
            guard.trigger();
            turn.wait();
            wait_until("it is told", || teller.told.load(Ordering::Acquire) == round);
            guard.clear();
            turn.wait();
        }
    });
    guard.on_trigger(&context, None).unwrap();
}

/// What is taken while nobody is told is not told later.
#[test]
fn a_callback_begins_with_what_waits() {
    let _watchdog = Watchdog::start("beginning again");
    let folder = Folder::new();
    let node = folder.process().node("both").unwrap();
    let publisher = publisher(&node, "t", keep_last(5));
    let subscription = subscription(&node, "t", keep_last(5));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let publish = |count| (0..count).for_each(|at| publisher.publish_bytes(&message(at)).unwrap());
    for _ in 0..3 {
        publish(9);
        while subscription.take_bytes().unwrap().is_some() {}
        publish(7);
        let (teller, callback) = Teller::new();
        subscription.on_new_message(Some(callback)).unwrap();
        let told = |count| {
            wait_until("it is told", || teller.told.load(Ordering::Acquire) == count);
        };
        assert_eq!(teller.told.load(Ordering::Acquire), 5, "at once");
        publish(4);
        told(9);
        while subscription.take_bytes().unwrap().is_some() {}
        publish(1);
        told(10);
        subscription.on_new_message(None).unwrap();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        std::thread::park();
    }
}

/// Awaited, in wait sets and with a callback at once.
#[test]
fn who_awaits_a_message_is_woken_beside_others() {
    let _watchdog = Watchdog::start("awaiting beside others");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("both").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let mut set = tsuji::WaitSet::new(&context).unwrap();
    assert_eq!(set.add(&subscription).unwrap(), 0);
    assert_eq!(set.add(&subscription).unwrap(), 1);
    let (teller, callback) = Teller::new();
    subscription.on_new_message(Some(callback)).unwrap();
    for round in 1..=50 {
        while !set.wait(Duration::ZERO).unwrap().is_empty() {}
        std::thread::scope(|scope| {
            let awaiting = scope.spawn(|| block_on(subscription.recv()).unwrap());
            publisher.publish(UInt64 { data: round as u64 }).unwrap();
            assert_eq!(set.wait(HANG).unwrap(), [0, 1]);
            assert_eq!(awaiting.join().unwrap().message().data, round as u64);
        });
        wait_until("it is told", || teller.told.load(Ordering::Acquire) == round);
    }
}

/// Whoever asks a client for anything reads the replies that have come, on any thread.
#[test]
fn replies_are_collected_in_order_whoever_has_read_them() {
    const ALL: u32 = 2_000;
    let _watchdog = Watchdog::start("replies in order");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (client, service) = service_ends(&one, &two);
    let is_over = AtomicBool::new(false);
    let got = std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..ALL {
                client.post_bytes(&message(at)).unwrap();
                while 5 <= client.counters().open {
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            let mut answered = 0;
            while answered < ALL {
                let Some(request) = service.take_bytes().unwrap() else {
                    std::thread::yield_now();
                    continue;
                };
                let bytes = request.bytes().to_vec();
                request.respond_bytes(&bytes).unwrap();
                answered += 1;
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                client.counters();
            }
        });
        let mut got = Vec::new();
        wait_until("all are collected", || {
            while let Some((_, reply)) = client.take_bytes().unwrap() {
                got.push(number(&reply.bytes));
            }
            got.len() == ALL as usize
        });
        is_over.store(true, Ordering::Release);
        got
    });
    let disorder = got.windows(2).find(|pair| pair[1] != pair[0] + 1);
    assert_eq!(disorder, None);
}

#[test]
fn a_wait_finds_what_lasts_ready_when_its_callback_has_returned() {
    let _watchdog = Watchdog::start("heard first");
    let folder = Folder::new();
    let context = folder.process();
    let guard = GuardCondition::lasting(&context).unwrap();
    let mut list = WaitList::new(&context).unwrap();
    let [is_inside, may_return, has_heard] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
    let theirs = [&is_inside, &may_return, &has_heard].map(Arc::clone);
    let callback = move |_| {
        theirs[0].store(true, Ordering::Release);
        wait_until("it may return", || theirs[1].load(Ordering::Acquire));
        theirs[2].store(true, Ordering::Release);
    };
    guard.on_trigger(&context, Some(Box::new(callback))).unwrap();
    guard.trigger();
    wait_until("it is called", || is_inside.load(Ordering::Acquire));
    assert!(ready(&mut list, &[&guard], Duration::ZERO).is_empty());
    std::thread::scope(|scope| {
        scope.spawn(|| may_return.store(true, Ordering::Release));
        assert_eq!(ready(&mut list, &[&guard], HANG), [0]);
    });
    assert!(has_heard.load(Ordering::Acquire));
    guard.clear();
    assert!(ready(&mut list, &[&guard], Duration::ZERO).is_empty());
    for _ in 0..1000 {
        has_heard.store(false, Ordering::Release);
        guard.trigger();
        assert_eq!(ready(&mut list, &[&guard], HANG), [0]);
        assert!(has_heard.load(Ordering::Acquire));
        guard.clear();
    }
    guard.on_trigger(&context, None).unwrap();
    guard.trigger();
    assert_eq!(ready(&mut list, &[&guard], Duration::ZERO), [0]);
}

/// One list waits for what belongs to contexts of several domains.
#[test]
fn a_list_waits_for_several_domains() {
    let _watchdog = Watchdog::start("several domains");
    let folder = Folder::new();
    let [one, two] = [21, 22]
        .map(|domain| Context::builder().runtime_dir(&folder.0).domain(domain).build().unwrap());
    let ends = [&one, &two].map(|context| {
        let node = context.node("both").unwrap();
        let ends = (publisher(&node, "t", keep_last(10)), subscription(&node, "t", keep_last(10)));
        ends.0.wait_for_subscriptions(1, HANG).unwrap();
        ends
    });
    let guards = [&one, &two].map(|context| GuardCondition::new(context).unwrap());
    for context in [&one, &two] {
        let mut list = WaitList::new(context).unwrap();
        for round in 0..200 {
            let (at, other) = (round % 2, 1 - round % 2);
            let entities: [&dyn Waitable; 4] =
                [&ends[0].1, &guards[other], &ends[1].1, &guards[at]];
            assert!(ready(&mut list, &entities, Duration::ZERO).is_empty());
            std::thread::scope(|scope| {
                scope.spawn(|| ends[at].0.publish_bytes(&message(round as u32)).unwrap());
                assert_eq!(ready(&mut list, &entities, HANG), [2 * at]);
            });
            assert_eq!(number(&ends[at].1.take_bytes().unwrap().unwrap().bytes), round as u32);
            std::thread::scope(|scope| {
                scope.spawn(|| guards[at].trigger());
                assert_eq!(ready(&mut list, &entities, HANG), [3]);
            });
        }
    }
    let node = two.node("lonely").unwrap();
    let error = tsuji::Executor::new(&one).unwrap().add(&node).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(tsuji::WaitSet::new(&one).unwrap().add(&ends[1].1).is_err());
}

/// A task is woken by a message, and by the end.
#[test]
fn a_task_polls_for_bytes() {
    struct Woken(AtomicUsize);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _watchdog = Watchdog::start("polls for bytes");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let publisher = publisher(&one.node("n").unwrap(), "t", keep_last(10));
    let subscription = subscription(&two.node("n").unwrap(), "t", keep_last(10));
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = std::task::Waker::from(Arc::clone(&woken));
    let poll = || subscription.poll_bytes(&mut std::task::Context::from_waker(&waker));
    for round in 0..100 {
        assert!(poll().is_pending());
        let before = woken.0.load(Ordering::SeqCst);
        publisher.publish_bytes(&message(round)).unwrap();
        wait_until("it is woken", || before < woken.0.load(Ordering::SeqCst));
        let std::task::Poll::Ready(sample) = poll() else { panic!("it was woken for nothing") };
        assert_eq!(number(&sample.unwrap().bytes), round);
    }
    assert!(poll().is_pending());
    let before = woken.0.load(Ordering::SeqCst);
    two.shutdown();
    wait_until("it is woken", || before < woken.0.load(Ordering::SeqCst));
    let std::task::Poll::Ready(Err(error)) = poll() else { panic!("it goes on") };
    assert_eq!(error.kind(), ErrorKind::Closed);
}
