//! Processes that are killed or stopped at any instruction: those that live lose nothing by it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use house::{
    Child, Folder, HANG, Random, Watchdog, best_effort, figure, heard, keep_all, keep_last,
};
use house::{take_until, tell, wait_until};
use tsuji::{
    ErrorKind, Executor, PublisherEvent, PublisherOptions, Qos, SubscriptionEvent,
    SubscriptionOptions, WaitSet,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::UInt64;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "publish at full speed" => publish_at_full_speed(Qos::DEFAULT),
        "publish all at full speed" => publish_at_full_speed(keep_all()),
        "hold a loan" => hold_a_loan(),
        "hold 50 views" => hold_views(),
        "receive" => receive(Qos::DEFAULT),
        "receive all" => receive(keep_all()),
        "do not read" => do_not_read(keep_last(10)),
        "do not read but keep all" => do_not_read(keep_all()),
        "do not read by best effort" => do_not_read(best_effort(4)),
        "be there" => {
            let context = house::context();
            let _node = context.node("there").unwrap();
            tell("there");
            heard();
        }
        other => panic!("{other}"),
    }
}

/// Publishes 1, 2, 3, … until it is killed.
fn publish_at_full_speed(qos: Qos) {
    let context = house::context();
    let node = context.node("fast").unwrap();
    let publisher = node
        .create_publisher::<UInt64>("t", PublisherOptions::default().qos(qos).max_blocking(HANG))
        .unwrap();
    let images = node.create_publisher::<Image>("image", keep_last(2)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    tell("publishing");
    let template = Image::default();
    for data in 1.. {
        publisher.publish(UInt64 { data }).unwrap();
        if data % 64 == 0 && images.matched() != 0 {
            let mut loan = images.loan(&template, 300_000).unwrap();
            loan.data_mut().fill(data as u8);
            images.publish(loan).unwrap();
        }
    }
}

fn hold_a_loan() {
    let context = house::context();
    let node = context.node("holder").unwrap();
    let publisher = node.create_publisher::<Image>("image", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let mut loan = publisher.loan(&Image::default(), 1_000_000).unwrap();
    loan.data_mut().fill(1);
    tell("holding");
    heard();
    drop(loan);
}

fn hold_views() {
    let context = house::context();
    let node = context.node("holder").unwrap();
    let subscription = node.create_polled_subscription::<Image>("image", keep_all()).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let mut views = Vec::new();
    take_until(&node, &subscription, |received| {
        views.push(received);
        views.len() == 50
    });
    tell("holding");
    heard();
}

fn receive(qos: Qos) {
    let context = house::context();
    let node = context.node("reader").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", qos).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let mut is_first = true;
    take_until(&node, &subscription, |_| {
        if std::mem::take(&mut is_first) {
            tell("receiving");
        }
        false
    });
}

/// Reads only when told to, and then tells what it got.
fn do_not_read(qos: Qos) {
    let context = house::context();
    let node = context.node("idle").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", qos).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    tell("there");
    while heard() == "read" {
        let mut got = Vec::new();
        while let Some(received) = subscription.take().unwrap() {
            got.push(received.view().data.to_string());
        }
        let counters = subscription.counters();
        tell(&format!("{} {} {}", counters.displaced, counters.lost, got.join(",")));
    }
}

#[test]
fn publishers_killed_at_full_speed_leave_nothing_and_stop_nobody() {
    let watchdog = Watchdog::start("killed publishers");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    let images = node.create_polled_subscription::<Image>("image", Qos::DEFAULT).unwrap();
    // A flow between two that live goes on all the while.
    let other = folder.process();
    let steady = other.node("steady").unwrap();
    let publisher = steady.create_publisher::<UInt64>("steady", keep_all()).unwrap();
    let watcher = node.create_polled_subscription::<UInt64>("steady", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let mut set = WaitSet::new(&context).unwrap();
    let mut random = Random(1);
    let (mut after_first, mut last_steady) = (0, 0);
    let rounds = house::kills();
    for round in 0..rounds {
        watchdog.goes_on();
        let child = Child::start(&folder, "publish at full speed");
        child.expect("publishing");
        let wanted = 1 + random.below(20_000);
        let mut next = 0;
        take_until(&node, &subscription, |received| {
            let data = received.view().data;
            assert!(next <= data, "{data} after {next}");
            next = data + 1;
            // One at a time: to look at a picture takes longer than to send one.
            if let Some(image) = images.take().unwrap() {
                let data = image.view().data;
                assert!(data.iter().all(|byte| *byte == data[0]), "a torn picture");
            }
            wanted <= data
        });
        child.kill();
        // The publisher is gone, with what it sent still there to be taken.
        context
            .wait_for_graph(HANG, |graph| (graph.nodes.len() == 2).then_some(()))
            .unwrap()
            .expect("the death is noticed");
        while let Some(received) = subscription.take().unwrap() {
            assert!(next <= received.view().data);
            next = received.view().data + 1;
        }
        while images.take().unwrap().is_some() {}
        assert_eq!((subscription.matched(), images.matched()), (0, 0));
        publisher.publish(UInt64 { data: round + 1 }).unwrap();
        take_until(&node, &watcher, |received| {
            last_steady = received.view().data;
            true
        });
        assert_eq!(last_steady, round + 1);
        if round == rounds / 4 {
            after_first = figure(&context, "reserved_bytes");
        }
    }
    wait_until("the last of them is parted", || figure(&context, "peers") == 1);
    assert!(
        figure(&context, "reserved_bytes") <= after_first,
        "memory grew from {after_first}: {:?}",
        context.transports()
    );
    set.add(&watcher).unwrap();
    let mappings = house::arenas_mapped();
    assert!(mappings < 60, "{mappings} mappings of arenas are left");
}

/// What leaves less often than it is published has a publisher of its own, which ends with the other.
#[test]
fn publishers_whose_exports_have_a_rate_are_killed_and_leave_nothing() {
    let watchdog = Watchdog::start("killed publishers with a rate");
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let policy = folder.0.join("robot.xml");
    let robot = r#"<tsuji><robot name="r1"/><export topic="/**" rate="1000"/></tsuji>"#;
    std::fs::write(&policy, robot).unwrap();
    let robot = [("TSUJI_POLICY", policy.to_str().unwrap())];
    let context = folder.process();
    let node = context.node("station").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("r1/t", keep_all()).unwrap();
    let mut random = Random(3);
    let mut after_first = 0;
    for round in 0..8 {
        watchdog.goes_on();
        let inside = Child::start_with(&folder, "receive all", &robot);
        let child = Child::start_with(&folder, "publish at full speed", &robot);
        inside.expect("receiving");
        child.expect("publishing");
        let wanted = 1 + random.below(20_000);
        let mut next = 0;
        take_until(&node, &subscription, |received| {
            let data = received.view().data;
            assert!(next <= data, "{data} after {next}");
            next = data + 1;
            wanted <= data
        });
        child.kill();
        inside.kill();
        context
            .wait_for_graph(HANG, |graph| (graph.nodes.len() == 1).then_some(()))
            .unwrap()
            .expect("the deaths are noticed");
        while let Some(received) = subscription.take().unwrap() {
            assert!(next <= received.view().data);
            next = received.view().data + 1;
        }
        assert_eq!((subscription.matched(), subscription.counters().lost), (0, 0));
        if round == 2 {
            after_first = figure(&context, "reserved_bytes");
        }
    }
    wait_until("the last of them is parted", || figure(&context, "peers") == 0);
    assert!(figure(&context, "reserved_bytes") <= after_first, "{:?}", context.transports());
}

#[test]
fn subscribers_killed_while_receiving_leave_nothing_and_stop_nobody() {
    let watchdog = Watchdog::start("killed subscribers");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
    // A reader that keeps all, in another process that lives: it must get each sample.
    let other = folder.process();
    let reader = other.node("reader").unwrap();
    let subscription = reader.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let is_over = AtomicBool::new(false);
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut data = 0;
            while !is_over.load(Ordering::Relaxed) {
                publisher.publish(UInt64 { data }).unwrap();
                data += 1;
                sent.store(data, Ordering::Release);
            }
            publisher.publish(UInt64 { data: u64::MAX }).unwrap();
        });
        scope.spawn(|| {
            let mut next = 0;
            take_until(&reader, &subscription, |received| {
                let data = received.view().data;
                if data == u64::MAX {
                    return true;
                }
                assert_eq!(data, next);
                next += 1;
                false
            });
            assert_eq!(next, sent.load(Ordering::Acquire));
        });
        let _end = house::SetAtEnd(&is_over);
        let mut after_first = 0;
        let mut random = Random(2);
        let rounds = house::kills();
        for round in 0..rounds {
            watchdog.goes_on();
            let role = if round % 2 == 0 { "receive all" } else { "receive" };
            let child = Child::start(&folder, role);
            child.expect("receiving");
            let goal = sent.load(Ordering::Acquire) + random.below(20_000);
            wait_until("the flow goes on", || goal <= sent.load(Ordering::Acquire));
            child.kill();
            context
                .wait_for_graph(HANG, |graph| (graph.nodes.len() == 2).then_some(()))
                .unwrap()
                .expect("the death is noticed");
            assert_eq!(publisher.matched(), 1);
            if round == rounds / 4 {
                after_first = figure(&context, "reserved_bytes");
            }
        }
        let now = figure(&context, "reserved_bytes");
        assert!(now <= 2 * after_first, "memory grew from {after_first} to {now}");
    });
    wait_until("the last of them is parted", || figure(&context, "peers") == 1);
}

#[test]
fn a_publisher_killed_while_it_holds_a_loan_is_only_gone() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let subscription = node.create_polled_subscription::<Image>("image", Qos::DEFAULT).unwrap();
    for _ in 0..5 {
        let child = Child::start(&folder, "hold a loan");
        child.expect("holding");
        child.kill();
        context.wait_for_graph(HANG, |graph| (graph.nodes.len() == 1).then_some(())).unwrap();
        assert_eq!(subscription.matched(), 0);
        assert!(subscription.take().unwrap().is_none());
    }
    let other = folder.process();
    let publisher = other.node("next").unwrap().create_publisher::<Image>("image", Qos::DEFAULT);
    let publisher = publisher.unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(&Image { data: vec![9], ..Image::default() }).unwrap();
    take_until(&node, &subscription, |received| received.view().data == [9]);
}

#[test]
fn memory_held_by_a_killed_process_comes_back() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let publisher = node
        .create_publisher::<Image>(
            "image",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
    let mut reserved = Vec::new();
    for _ in 0..6 {
        let child = Child::start(&folder, "hold 50 views");
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        for number in 0..50u8 {
            let mut loan = publisher.loan(&Image::default(), 200_000).unwrap();
            loan.data_mut().fill(number);
            publisher.publish(loan).unwrap();
        }
        child.expect("holding");
        child.kill();
        context.wait_for_graph(HANG, |graph| (graph.nodes.len() == 1).then_some(())).unwrap();
        reserved.push(figure(&context, "reserved_bytes"));
    }
    assert!(reserved.iter().all(|it| *it <= reserved[0]), "{reserved:?}");
    // What was held is free: 50 loans at once fit into the same memory.
    let loans: Vec<_> = (0..50).map(|_| publisher.loan(&Image::default(), 200_000)).collect();
    assert!(loans.iter().all(Result::is_ok));
    assert_eq!(figure(&context, "reserved_bytes"), reserved[0]);
}

#[test]
fn a_publisher_that_waits_for_a_killed_subscriber_is_released() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
    for _ in 0..5 {
        let child = Child::start(&folder, "do not read but keep all");
        child.expect("there");
        let before = publisher.counters().published;
        let published = || publisher.counters().published - before;
        std::thread::scope(|scope| {
            let publishing = scope.spawn(|| {
                // More than the subscription keeps.
                (0..2000).try_for_each(|data| publisher.publish(UInt64 { data }))
            });
            wait_until("the subscription is full", || published() == 1024);
            child.kill();
            publishing.join().unwrap().unwrap();
        });
        assert_eq!(published(), 2000);
        assert_eq!(publisher.counters().dropped, 0);
    }
}

#[test]
fn all_that_a_killed_publisher_sent_whole_arrives() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    let mut random = Random(3);
    for _ in 0..20 {
        let child = Child::start(&folder, "publish all at full speed");
        child.expect("publishing");
        let (wanted, mut next) = (1 + random.below(30_000), 1);
        let mut check = |received: tsuji::Received<UInt64>| {
            assert_eq!(received.view().data, next, "no gap");
            next += 1;
            wanted < next
        };
        take_until(&node, &subscription, &mut check);
        child.kill();
        context.wait_for_graph(HANG, |graph| (graph.nodes.len() == 1).then_some(())).unwrap();
        while let Some(received) = subscription.take().unwrap() {
            check(received);
        }
    }
    assert_eq!(subscription.counters().lost, 0);
}

#[test]
fn a_subscription_that_does_not_read_keeps_what_its_history_says() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let qos = keep_all();
    let no_wait = Duration::from_millis(1);
    let publisher = node
        .create_publisher::<UInt64>("t", PublisherOptions::default().qos(qos).max_blocking(no_wait))
        .unwrap();
    let mut child = Child::start(&folder, "do not read");
    child.expect("there");
    (0..5000).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    child.say("read");
    assert_eq!(child.line(), "4990 0 4990,4991,4992,4993,4994,4995,4996,4997,4998,4999");
    assert_eq!(publisher.counters().displaced, 4990);
    child.kill();

    let mut child = Child::start(&folder, "do not read but keep all");
    child.expect("there");
    let results: Vec<_> = (0..2000).map(|data| publisher.publish(UInt64 { data })).collect();
    let sent = results.iter().position(Result::is_err).unwrap();
    let refused = results.iter().flat_map(|it| it.as_ref().err());
    assert!(refused.clone().all(|error| error.kind() == ErrorKind::Busy));
    assert_eq!(publisher.counters().dropped, refused.count() as u64);
    child.say("read");
    let all: Vec<_> = (0..sent).map(|it| it.to_string()).collect();
    assert_eq!(child.line(), format!("0 0 {}", all.join(",")));
    child.kill();

    let mut child = Child::start(&folder, "do not read by best effort");
    child.expect("there");
    (0..100).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    child.say("read");
    assert_eq!(child.line(), "96 0 96,97,98,99");
}

#[test]
fn a_stopped_process_goes_on_where_it_was() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(keep_all()).max_blocking(Duration::from_millis(1)),
        )
        .unwrap();
    let mut child = Child::start(&folder, "do not read but keep all");
    let last = Child::start(&folder, "receive");
    child.expect("there");
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    child.stop();
    last.stop();
    let mut sent = 0;
    let error = loop {
        match publisher.publish(UInt64 { data: sent }) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), sent), (ErrorKind::Busy, 1024));
    // Much is said to it meanwhile: endpoints that come and go.
    for number in 0..300 {
        let topic = format!("other_{number}");
        drop(node.create_publisher::<UInt64>(&topic, Qos::DEFAULT).unwrap());
    }
    child.go_on();
    last.go_on();
    last.expect("receiving");
    child.say("read");
    let all: Vec<_> = (0..sent).map(|it| it.to_string()).collect();
    assert_eq!(child.line(), format!("0 0 {}", all.join(",")));
    publisher.publish(UInt64 { data: 77 }).unwrap();
    child.say("read");
    assert_eq!(child.line(), "0 0 77");
    assert_eq!(publisher.matched(), 2);
}

#[test]
fn a_killed_process_leaves_a_socket_that_the_next_start_removes() {
    let folder = Folder::new();
    let child = Child::start(&folder, "be there");
    child.expect("there");
    assert_eq!(folder.sockets().len(), 1);
    child.kill();
    assert_eq!(folder.sockets().len(), 1, "a socket and nothing else");
    let context = folder.process();
    assert_eq!(context.settle(HANG).unwrap(), 0);
    assert_eq!(folder.sockets().len(), 1, "its own");
    assert_eq!(context.unreachable_peers(), []);
    drop(context);
    assert_eq!(folder.sockets().len(), 0);
}

#[test]
fn two_hundred_dead_sockets_do_not_hold_a_start_up() {
    let folder = Folder::new();
    drop(folder.process());
    let domain = folder.0.join(format!("domain-{}", house::DOMAIN));
    let listen = |path: &std::path::Path| {
        drop(house_socket(path));
        // A child that another test is just starting has it too until it runs its program.
        wait_until("nobody listens", || std::os::unix::net::UnixStream::connect(path).is_err());
    };
    (0..200u32).for_each(|number| listen(&domain.join(format!("{number:032x}.sock"))));
    // What a process leaves that is killed while it opens its door.
    let half_open = domain.join(format!("{:032x}.new", 1000));
    listen(&half_open);
    make_old(&half_open);
    assert_eq!(folder.sockets().len(), 201);
    let (one, two) = (folder.process(), folder.process());
    let subscription =
        one.node("a").unwrap().create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    let node = two.node("b").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 1 }).unwrap();
    take_until(&one.node("c").unwrap(), &subscription, |_| true);
    assert_eq!(folder.sockets().len(), 2, "{:?}", folder.sockets());
    assert_eq!(one.unreachable_peers(), []);
}

/// A socket at `path` that nobody listens at any more.
fn house_socket(path: &std::path::Path) -> std::os::unix::net::UnixListener {
    std::os::unix::net::UnixListener::bind(path).unwrap()
}

fn make_old(path: &std::path::Path) {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let long_ago = [libc::timespec { tv_sec: 1_000_000_000, tv_nsec: 0 }; 2];
    // SAFETY: a path that ends with zero, and two times.
    let done = unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), long_ago.as_ptr(), 0) };
    assert_eq!(done, 0);
}

#[test]
fn both_ends_are_told_of_a_death() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let (of_publisher, of_subscription) = (Arc::clone(&told), Arc::clone(&told));
    let lease = Qos { liveliness_lease: Some(Duration::from_secs(3600)), ..Qos::DEFAULT };
    let _publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default()
                .qos(keep_last(1))
                .on_event(move |event| of_publisher.lock().unwrap().push(format!("{event:?}"))),
        )
        .unwrap();
    let _subscription = node
        .create_polled_subscription::<Image>(
            "image",
            SubscriptionOptions::default()
                .qos(Qos { liveliness_lease: None, ..lease })
                .on_event(move |event| of_subscription.lock().unwrap().push(format!("{event:?}"))),
        )
        .unwrap();
    let reader = Child::start(&folder, "receive");
    let writer = Child::start(&folder, "hold a loan");
    writer.expect("holding");
    let mut executor = Executor::new(&context).unwrap();
    executor.add(&node).unwrap();
    let has = |wanted: &[String]| {
        let told = told.lock().unwrap();
        wanted.iter().all(|it| told.contains(it))
    };
    let publisher_has = |current| format!("{:?}", PublisherEvent::Matched { current });
    let subscription_has = |current| format!("{:?}", SubscriptionEvent::Matched { current });
    let liveliness =
        |alive| format!("{:?}", SubscriptionEvent::LivelinessChanged { alive, not_alive: 0 });
    let come = [publisher_has(1), subscription_has(1), liveliness(1)];
    executor.spin_until(|| has(&come)).unwrap();
    told.lock().unwrap().clear();
    reader.kill();
    writer.kill();
    let gone = [publisher_has(0), subscription_has(0), liveliness(0)];
    executor.spin_until(|| has(&gone)).unwrap();
}
