//! Samples, sizes, names and numbers that are wrong or large: an error that says what, where and
//! what is allowed, or a stated behaviour.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::sync::{Arc, Mutex};

use house::{Child, Folder, HANG, Random, best_effort, descriptors, heard, keep_all, keep_last};
use house::{resident_kib, take_until, tell, wait_until};
use tsuji::{Context, ErrorKind, Executor, History, Message, PublisherOptions, Qos, RawType};
use tsuji_interfaces::sensor_msgs::msg::{Image, PointCloud2};
use tsuji_interfaces::std_msgs::msg::{String as Text, UInt64};

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "16 subscriptions" => sixteen_subscriptions(),
        "1000 subscriptions" => thousand_subscriptions(),
        other => panic!("{other}"),
    }
}

fn raw_type<M: Message>() -> RawType {
    RawType::new(M::TYPE_NAME).hash(M::TYPE_HASH)
}

/// Each truncation of a message, and many with flipped bits.
fn lies(valid: &[u8], random: &mut Random) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (4..valid.len()).map(|len| valid[..len].to_vec()).collect();
    for _ in 0..300 {
        let mut flipped = valid.to_vec();
        for _ in 0..=random.below(3) {
            let bit = random.below(8 * flipped.len() as u64) as usize;
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
        all.push(flipped);
    }
    // Lengths that are absurd, wherever a length may stand.
    for at in (4..valid.len().saturating_sub(3)).step_by(4) {
        for lie in [u32::MAX, 1 << 31, 0x7fff_ffff, valid.len() as u32] {
            let mut lying = valid.to_vec();
            lying[at..at + 4].copy_from_slice(&lie.to_le_bytes());
            all.push(lying);
        }
    }
    all
}

fn check_lies<M: Message>(valid: &M, isolated: bool) {
    let folder = Folder::new();
    let one = folder.process();
    let two = if isolated { folder.process() } else { one.clone() };
    let valid = valid.to_vec().unwrap();
    let lies = lies(&valid, &mut Random(7));
    let node = one.node("liar").unwrap();
    let publisher = node.create_raw_publisher("t", raw_type::<M>(), keep_all()).unwrap();
    let listener = two.node("listener").unwrap();
    let seen = Arc::new(Mutex::new(0u64));
    let sink = Arc::clone(&seen);
    let subscription = listener
        .create_subscription::<M>("t", keep_all(), move |received| {
            // What is handed over is a message of the type, whatever its values.
            drop(received.message());
            let _ = received.view();
            *sink.lock().unwrap() += 1;
        })
        .unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let invalid = lies.iter().filter(|bytes| M::view_cdr(bytes).is_err()).count() as u64;
    assert!(lies.len() as u64 / 4 < invalid, "{invalid} of {}", lies.len());
    let total = lies.len() as u64 + lies.len().div_ceil(10) as u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (at, bytes) in lies.iter().enumerate() {
                if at % 10 == 0 {
                    publisher.publish_bytes(&valid).unwrap();
                }
                publisher.publish_bytes(bytes).unwrap();
            }
        });
        let mut executor = Executor::new(&two).unwrap();
        executor.add(&listener).unwrap();
        let all = || subscription.counters().invalid + *seen.lock().unwrap();
        executor.spin_until(|| all() == total).unwrap();
    });
    let counters = subscription.counters();
    assert_eq!((counters.invalid, counters.lost), (invalid, 0));
    let error = publisher.publish_bytes(&valid[..3]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("/t: 3 bytes; allowed"), "{error}");
}

#[test]
fn truncated_and_lying_samples_are_counted_and_never_handed_over() {
    let picture = Image {
        width: 4,
        height: 2,
        encoding: "mono8".into(),
        data: (0..8).collect::<Vec<u8>>(),
        ..Image::default()
    };
    let cloud = PointCloud2 {
        data: vec![1; 32],
        fields: vec![Default::default(); 3],
        ..PointCloud2::default()
    };
    for isolated in [false, true] {
        check_lies(&picture, isolated);
        check_lies(&cloud, isolated);
        check_lies(&Text { data: "some text".into() }, isolated);
        check_lies(&UInt64 { data: 7 }, isolated);
    }
}

#[test]
fn a_message_of_64_megabytes_passes_on_every_link() {
    const BYTES: usize = 64 << 20;
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("large").unwrap();
    let publisher = node.create_publisher::<Image>("image", keep_last(1)).unwrap();
    let near = node.create_polled_subscription::<Image>("image", keep_last(1)).unwrap();
    let remote_node = two.node("far").unwrap();
    let far = remote_node.create_polled_subscription::<Image>("image", keep_last(1)).unwrap();
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let image = Arc::new(Image { data: vec![5; BYTES], ..Image::default() });
    let check = |value: u8| {
        assert_eq!(near.take().unwrap().unwrap().view().data.len(), BYTES);
        take_until(&remote_node, &far, |received| {
            let data = received.view().data;
            data.len() == BYTES && data[0] == value && data[BYTES - 1] == value
        });
    };
    publisher.publish(Arc::clone(&image)).unwrap();
    check(5);
    publisher.publish(&*image).unwrap();
    check(5);
    let mut loan = publisher.loan(&Image::default(), BYTES).unwrap();
    loan.data_mut().fill(6);
    publisher.publish(loan).unwrap();
    check(6);
    // Larger than all memory that may be lent is refused with the limit.
    let error = publisher.loan(&Image::default(), 3 << 30).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(error.to_string().contains("memory_bytes_max"), "{error}");
}

fn sixteen_subscriptions() {
    let context = house::context();
    let node = context.node("many").unwrap();
    let subscriptions: Vec<_> = (0..16)
        .map(|_| node.create_polled_subscription::<Image>("image", keep_all()).unwrap())
        .collect();
    tell("there");
    for subscription in &subscriptions {
        let mut next = 0;
        take_until(&node, subscription, |received| {
            assert_eq!(received.view().width, next);
            assert!(received.view().data.iter().all(|byte| *byte == next as u8));
            next += 1;
            next == 100
        });
        assert_eq!(subscription.counters().lost, 0);
        tell("all came");
    }
    heard();
}

#[test]
fn sixty_four_subscriptions_in_several_processes_get_everything() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("one").unwrap();
    let publisher = node
        .create_publisher::<Image>(
            "image",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
    let mut children: Vec<_> = (0..4).map(|_| Child::start(&folder, "16 subscriptions")).collect();
    children.iter().for_each(|child| drop(child.expect("there")));
    publisher.wait_for_subscriptions(64, HANG).unwrap();
    for number in 0..100u32 {
        let template = Image { width: number, ..Image::default() };
        let mut loan = publisher.loan(&template, 100_000).unwrap();
        loan.data_mut().fill(number as u8);
        publisher.publish(loan).unwrap();
    }
    for _ in 0..16 {
        children.iter().for_each(|child| drop(child.expect("all came")));
    }
    children.iter_mut().for_each(|child| child.say("end"));
    children.into_iter().for_each(Child::finish);
    assert_eq!((publisher.counters().published, publisher.counters().dropped), (100, 0));
}

const TOPICS: usize = 1000;

fn thousand_subscriptions() {
    let context = house::context();
    let node = context.node("many").unwrap();
    let (before, memory) = (descriptors(), resident_kib());
    let subscriptions: Vec<_> = (0..TOPICS)
        .map(|number| {
            node.create_polled_subscription::<UInt64>(&format!("t{number}"), Qos::DEFAULT).unwrap()
        })
        .collect();
    tell("there");
    for (number, subscription) in subscriptions.iter().enumerate() {
        take_until(&node, subscription, |received| {
            assert_eq!(received.view().data, number as u64);
            true
        });
    }
    let more = descriptors().saturating_sub(before);
    tell(&format!("{more} {}", resident_kib().saturating_sub(memory)));
    heard();
}

#[test]
fn a_thousand_topics_between_two_processes_cost_no_descriptors() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("one").unwrap();
    let (before, memory) = (descriptors(), resident_kib());
    let publishers: Vec<_> = (0..TOPICS)
        .map(|number| node.create_publisher::<UInt64>(&format!("t{number}"), keep_all()).unwrap())
        .collect();
    let mut child = Child::start(&folder, "1000 subscriptions");
    child.expect("there");
    for (number, publisher) in publishers.iter().enumerate() {
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        publisher.publish(UInt64 { data: number as u64 }).unwrap();
    }
    let line = child.line();
    let (fds, kib) = line.split_once(' ').unwrap();
    let own = descriptors().saturating_sub(before);
    let figures = format!(
        "{TOPICS} topics: publishing {own} descriptors and {} KiB, receiving {fds} and {kib} KiB",
        resident_kib().saturating_sub(memory)
    );
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{figures}");
    // Those of the two processes, not of topics; the test harness may hold a few more.
    assert!(own < 40 && fds.parse::<usize>().unwrap() < 40, "{figures}");
    assert_eq!(context.routes(HANG).unwrap().len(), TOPICS);
    child.say("end");
    child.finish();
    wait_until("all are parted", || publishers.iter().all(|it| it.matched() == 0));
}

#[track_caller]
fn check_error<T: std::fmt::Debug>(result: tsuji::Result<T>, words: &[&str]) {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text:?} lacks one of {words:?}");
}

#[test]
fn what_can_never_work_is_refused_with_what_is_allowed() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    for wrong in ["", "1st", "with space", "a//b", "trailing/", "dash-ed", "ünï", "~x", "{no}"] {
        let made = node.create_publisher::<UInt64>(wrong, Qos::DEFAULT);
        let text = format!("{wrong:?}");
        check_error(made, &[text.trim_matches('"')]);
        assert!(
            node.create_polled_subscription::<UInt64>(wrong, Qos::DEFAULT).is_err(),
            "{wrong:?}"
        );
    }
    for wrong in ["", "1st", "a/b", "with space", "a-b"] {
        check_error(context.node(wrong), &[wrong]);
    }
    check_error(context.node_in("n", "/a//b"), &["/a//b"]);
    check_error(context.node_in("n", "/1"), &["/1"]);
    let publisher = |qos: Qos| node.create_publisher::<UInt64>("t", qos);
    let long = std::time::Duration::MAX;
    check_error(publisher(keep_last(0)), &["/t", "depth 0", "allowed: 1 to"]);
    check_error(publisher(keep_last(u32::MAX)), &["/t", "depth", "allowed: 1 to"]);
    check_error(publisher(Qos { deadline: Some(long), ..Qos::DEFAULT }), &["/t", "deadline"]);
    let zero = Some(std::time::Duration::ZERO);
    check_error(publisher(Qos { lifespan: zero, ..Qos::DEFAULT }), &["/t", "lifespan", "0"]);
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_last(0));
    check_error(subscription, &["/t", "depth 0", "allowed: 1 to"]);
    for domain in [233, u32::MAX] {
        let built = Context::builder().domain(domain).runtime_dir(&folder.0).build();
        check_error(built, &[&domain.to_string(), "allowed: 0 to 232"]);
    }
    let path = folder.0.join("policy.xml");
    let policies = [
        (
            "<tsuji><rule name=\"x\" usee=\"shm\"/></tsuji>",
            &["policy.xml:1:", "usee", "allowed"][..],
        ),
        ("<tsuji>", &["policy.xml:1:"]),
        ("", &["policy.xml"]),
        ("<tsuji>\n <rule use=\"nothing\"/></tsuji>", &["policy.xml:2:", "nothing", "allowed"]),
        ("\u{0}\u{1}", &["policy.xml"]),
        (
            "<tsuji><transport name=\"shm\"><set key=\"backing\" value=\"here\"/></transport></tsuji>",
            &["policy.xml:1", "backing", "allowed", "memfd"],
        ),
        (
            "<tsuji><transport name=\"shm\"><set key=\"memory_bytes_max\" value=\"1\"/></transport></tsuji>",
            &["policy.xml:1", "memory_bytes_max", "at least"],
        ),
    ];
    for (text, words) in policies {
        std::fs::write(&path, text).unwrap();
        let built = Context::builder().runtime_dir(&folder.0).isolated().policy_file(&path).build();
        check_error(built, words);
    }
    let missing = folder.0.join("missing.xml");
    let built = Context::builder().runtime_dir(&folder.0).policy_file(&missing).build();
    check_error(built, &["missing.xml", "No such file"]);
}

#[test]
fn an_unknown_type_is_carried_as_bytes_and_another_hash_does_not_match() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let unknown = RawType::new("my_msgs/msg/Unknown");
    let writer = one.node("w").unwrap();
    let reader = two.node("r").unwrap();
    let publisher = writer.create_raw_publisher("t", unknown.clone(), Qos::DEFAULT).unwrap();
    let subscription = reader.create_polled_raw_subscription("t", unknown, Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish_bytes(&[0, 1, 0, 0, 1, 2, 3]).unwrap();
    wait_until("it arrives", || {
        subscription.take_bytes().unwrap().is_some_and(|it| it.bytes[4..] == [1, 2, 3])
    });
    let hash = format!("RIHS01_{}", "00".repeat(32));
    let other = RawType { hash: hash.clone(), ..raw_type::<UInt64>() };
    let _wrong = writer.create_raw_publisher("hashed", other, Qos::DEFAULT).unwrap();
    let typed = reader.create_polled_subscription::<UInt64>("hashed", Qos::DEFAULT).unwrap();
    let routes = loop {
        let routes = one.routes(HANG).unwrap();
        if routes.len() == 2 {
            break routes;
        }
        let _ = one.wait_for_graph(std::time::Duration::from_millis(5), |_| None::<()>);
    };
    let hashed = routes.iter().find(|it| it.topic == "/hashed").unwrap();
    assert!(hashed.mismatches[0].contains(&hash), "{:?}", hashed.mismatches);
    assert_eq!(typed.matched(), 0);
}

#[test]
fn best_effort_that_finds_no_room_is_dropped_and_counted() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("w").unwrap();
    let qos = Qos { history: History::KeepAll, ..best_effort(1) };
    let publisher = node.create_publisher::<UInt64>("t", qos).unwrap();
    let reader = two.node("r").unwrap();
    let subscription = reader.create_polled_subscription::<UInt64>("t", qos).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    (0..3000).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    let mut taken = 0;
    while subscription.take().unwrap().is_some() {
        taken += 1;
    }
    let counters = publisher.counters();
    assert_eq!(taken + counters.dropped + counters.displaced, 3000, "{counters:?}");
    assert!(0 < counters.dropped + counters.displaced);
}

#[test]
fn a_type_that_cannot_be_told_of_is_refused() {
    let folder = Folder::new();
    let node = folder.process().node("n").unwrap();
    let long = format!("my_msgs/msg/{}", "A".repeat(300_000));
    let of = |name: &str, hash: &str| RawType::new(name).hash(hash);
    let refused: &[(RawType, &[&str])] = &[
        (of(&long, ""), &["/t", "bytes", "at most 255"]),
        (of("", ""), &["/t", "package/msg/Name"]),
        (of("my msgs/msg/A", ""), &["my msgs/msg/A", "package/msg/Name"]),
        (of("my_msgs/msg/sub/A", ""), &["package/msg/Name"]),
        (of("my_msgs/msg/A", "RIHS01_00"), &["RIHS01_00", "64 hexadecimal digits"]),
        (of("my_msgs/msg/A", &"0".repeat(300_000)), &["64 hexadecimal digits"]),
    ];
    for (raw, words) in refused {
        check_error(node.create_raw_publisher("t", raw.clone(), Qos::DEFAULT), words);
        check_error(node.create_polled_raw_subscription("t", raw.clone(), Qos::DEFAULT), words);
    }
    let short = node.create_raw_publisher("t", of("my_msgs/A", ""), Qos::DEFAULT).unwrap();
    assert_eq!(short.type_name(), "my_msgs/msg/A");
    node.create_raw_publisher("t", of("my_msgs/srv/A_Request", ""), Qos::DEFAULT).unwrap();
}
