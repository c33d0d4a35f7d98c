//! Memory that is full, small, private or read-only, namespaces that share one thing and not the
//! other, and users that are not the same: the links that can work do, the others say why not.
//!
//! What changes mounts or users needs privileges. Where they lack, a test says so and does nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use house::{Child, Folder, HANG, heard, keep_all, take_until, tell};
use tsuji::{
    Context, ErrorKind, Executor, LatencyClock, PublisherOptions, Qos, RouteState,
    SubscriptionEvent, SubscriptionOptions,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::UInt64;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "fill the memory" => fill_the_memory(),
        "find no memory" => find_no_memory(),
        "send pictures back" => send_pictures_back(),
        "try to start" => match Context::new() {
            Ok(_) => tell("started"),
            Err(error) => tell(&format!("{:?} {error}", error.kind())),
        },
        "set a route" => set_a_route(),
        "speak from another time" => speak_from_another_time(),
        other => panic!("{other}"),
    }
}

/// Sets the link of a topic whose publisher is another user's, and says what each process answers.
fn set_a_route() {
    let context = house::context();
    let node = context.node("meddler").unwrap();
    let subscription = node.create_polled_subscription::<Image>("theirs", Qos::DEFAULT).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    for setting in context.set_route("/theirs", Some("cyclonedds"), HANG).unwrap() {
        if setting.process.pid != std::process::id() {
            tell(&setting.outcome.map_or_else(|reason| reason, |flows| format!("{flows} flows")));
        }
    }
    tell("all");
    heard();
}

/// Publishes a number and, when it was heard, hears one. Its monotonic clock is another.
fn speak_from_another_time() {
    let context = house::context();
    let node = context.node("another_time").unwrap();
    let publisher = node.create_publisher::<UInt64>("from", timed()).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("to", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 1 }).unwrap();
    take_until(&node, &subscription, |received| {
        let latency = received.info().latency().unwrap();
        tell(&format!("{} {}", latency.clock, latency.ns));
        true
    });
    heard();
}

/// What promises a sample in every tenth of a second.
fn timed() -> Qos {
    Qos { deadline: Some(Duration::from_millis(100)), ..keep_all() }
}

/// Whether this machine lets the test do what it needs.
fn is_allowed(wrapper: &[&str]) -> bool {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(own).arg("--list").stdout(Stdio::null());
    let is_allowed = command.status().is_ok_and(|status| status.success());
    if !is_allowed {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: not allowed here: {wrapper:?}");
    }
    is_allowed
}

/// Runs the rest of the command line with a file system of its own mounted.
macro_rules! mounted {
    ($script:literal) => {
        &["unshare", "-m", "sh", "-c", concat!("set -e; ", $script, "; exec \"$@\""), "sh"]
    };
}

fn policy(folder: &Folder, backing: &str) -> std::path::PathBuf {
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = folder.0.join("policy.xml");
    let set = format!("<set key=\"backing\" value=\"{backing}\"/>");
    let text = format!("<tsuji><transport name=\"shm\">{set}</transport></tsuji>");
    std::fs::write(&path, text).unwrap();
    path
}

fn large(mebibytes: usize) -> Image {
    Image { data: vec![7; mebibytes << 20], ..Image::default() }
}

fn fill_the_memory() {
    let (one, two) = two_contexts();
    let node = one.node("writer").unwrap();
    let qos = keep_all();
    let publisher = node
        .create_publisher::<Image>(
            "image",
            PublisherOptions::default().qos(qos).max_blocking(Duration::ZERO),
        )
        .unwrap();
    let reader = two.node("reader").unwrap();
    let subscription = reader.create_polled_subscription::<Image>("image", qos).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let picture = large(5);
    let mut refused = 0;
    for _ in 0..3 {
        let mut sent = 0;
        let error = loop {
            match publisher.publish(&picture) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error.kind(), ErrorKind::Exhausted | ErrorKind::Busy), "{error}");
        assert!(error.to_string().contains("/image"), "{error}");
        assert!((8..13).contains(&sent), "{sent}");
        refused += 1;
        assert_eq!(publisher.counters().dropped, refused, "what is refused is counted");
        // A loan finds no memory either, nor does a picture that is larger than all of it.
        assert!(publisher.loan(&Image::default(), 5 << 20).is_err());
        let error = publisher.publish(large(100)).unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");
        refused += 1;
        // Small samples and the pointer link do not need what is full.
        let inside = node.create_polled_subscription::<Image>("inside", Qos::DEFAULT).unwrap();
        let publisher_inside = node.create_publisher::<Image>("inside", Qos::DEFAULT).unwrap();
        publisher_inside.publish(picture.clone()).unwrap();
        assert!(inside.take().unwrap().unwrap().is_by_reference());
        // All that was sent is there, and the memory comes back when it was read.
        for _ in 0..sent {
            assert_eq!(subscription.take().unwrap().unwrap().view().data.len(), 5 << 20);
        }
        assert!(subscription.take().unwrap().is_none());
    }
    tell("fine");
}

fn two_contexts() -> (Context, Context) {
    let build = || Context::builder().isolated().build().unwrap();
    (build(), build())
}

fn find_no_memory() {
    let (one, two) = two_contexts();
    let trouble = one.transports().into_iter().find_map(|it| it.trouble).unwrap();
    let node = one.node("writer").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    let reader = two.node("reader").unwrap();
    let _subscription = reader.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    let route = loop {
        one.settle(HANG).unwrap();
        let route = one.routes(HANG).unwrap().pop();
        if let Some(route) = route.filter(|route| route.state != RouteState::Opening) {
            break route;
        }
        let _ = one.wait_for_graph(Duration::from_millis(10), |_| None::<()>);
    };
    // The next link is taken, and it is said why not this one.
    assert_eq!(route.transport.as_deref(), Some("cyclonedds"), "{route:?}");
    let (_, rejected) = route.rejected.iter().find(|(it, _)| it == "shm").unwrap();
    publisher.publish(UInt64 { data: 1 }).unwrap();
    let inside = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.publish(UInt64 { data: 2 }).unwrap();
    assert_eq!(inside.take().unwrap().unwrap().view().data, 2);
    assert!(rejected.contains(&trouble), "{rejected}, but {trouble}");
    tell(&trouble);
}

#[test]
fn samples_memory_on_a_small_file_system_gets_full_and_is_never_a_signal() {
    let wrapper: &[&str] = mounted!("mount -t tmpfs -o size=64m tsuji-test /mnt");
    if !is_allowed(wrapper) {
        return;
    }
    let folder = Folder::new();
    let policy = policy(&folder, "/mnt");
    // Else the flow goes on over the network.
    let text = std::fs::read_to_string(&policy).unwrap();
    let forbidden = "<tsuji><forbid name=\"memory alone\" use=\"cyclonedds\"/>";
    std::fs::write(&policy, text.replacen("<tsuji>", forbidden, 1)).unwrap();
    let environment = [("TSUJI_POLICY", policy.to_str().unwrap())];
    let child = Child::start_in(wrapper, &folder.0, "fill the memory", &environment);
    child.expect("fine");
    child.finish();
}

#[test]
fn a_folder_that_gives_no_memory_is_told_with_its_reason() {
    let wrappers: [(&[&str], &str); 3] = [
        (mounted!("mount -t tmpfs -o size=64k x /mnt; head -c 64k /dev/zero > /mnt/a"), "space"),
        (mounted!("mount -t tmpfs -o ro x /mnt"), "Read-only"),
        (mounted!("mount -t proc x /mnt"), "/mnt"),
    ];
    for (wrapper, word) in wrappers {
        if !is_allowed(wrapper) {
            return;
        }
        let folder = Folder::new();
        let policy = policy(&folder, "/mnt");
        let environment = [("TSUJI_POLICY", policy.to_str().unwrap())];
        let child = Child::start_in(wrapper, &folder.0, "find no memory", &environment);
        let told = child.line();
        assert!(told.contains(word), "{told}");
        child.finish();
    }
    let folder = Folder::new();
    let policy = policy(&folder, "/nowhere/at/all");
    let environment = [("TSUJI_POLICY", policy.to_str().unwrap())];
    let child = Child::start_with(&folder, "find no memory", &environment);
    let told = child.line();
    assert!(told.contains("/nowhere/at/all: "), "{told}");
    child.finish();
}

/// Sends each picture back until it is told to end.
fn send_pictures_back() {
    let context = house::context();
    let node = context.node("mirror").unwrap();
    let publisher = node.create_publisher::<Image>("back", keep_all()).unwrap();
    let subscription = node.create_polled_subscription::<Image>("there", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    take_until(&node, &subscription, |received| {
        publisher.publish_bytes(received.bytes().unwrap()).unwrap();
        received.view().width == 1
    });
    tell("done");
    heard();
}

/// Exchanges pictures with a child below `wrapper`, and proves that they go by shared memory.
#[track_caller]
fn check_exchange(wrapper: &[&str], folder: &Folder, context: &Context) {
    if !is_allowed(wrapper) {
        return;
    }
    let node = context.node("one").unwrap();
    let publisher = node.create_publisher::<Image>("there", keep_all()).unwrap();
    let subscription = node.create_polled_subscription::<Image>("back", keep_all()).unwrap();
    let mut child = Child::start_in(wrapper, &folder.0, "send pictures back", &[]);
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for number in (1..=5u32).rev() {
        publisher.publish(Image { width: number, ..large(3) }).unwrap();
        take_until(&node, &subscription, |received| {
            assert_eq!(received.view().width, number);
            assert!(received.view().data.iter().all(|byte| *byte == 7));
            true
        });
    }
    child.expect("done");
    let routes = context.routes(HANG).unwrap();
    let mut topics = Vec::new();
    for route in &routes {
        assert_eq!(route.transport.as_deref(), Some("shm"), "{route:?}");
        assert_eq!((&*route.scope, route.samples), ("local", 5), "{route:?}");
        topics.push(&*route.topic);
    }
    assert_eq!(topics, ["/back", "/there"], "{:?}", context.unreachable_peers());
    child.say("end");
    child.finish();
}

#[test]
fn dev_shm_is_not_needed() {
    let folder = Folder::new();
    let context = folder.process();
    // Full, read-only, and private to the child, while the network is shared.
    let wrappers: [&[&str]; 3] = [
        mounted!("mount -t tmpfs -o size=64k x /dev/shm; head -c 64k /dev/zero > /dev/shm/a"),
        mounted!("mount -t tmpfs -o ro x /dev/shm"),
        mounted!("mount -t tmpfs x /dev/shm"),
    ];
    for wrapper in wrappers {
        check_exchange(wrapper, &folder, &context);
    }
}

#[test]
fn a_network_of_its_own_is_no_hindrance() {
    let folder = Folder::new();
    check_exchange(&["unshare", "-n"], &folder, &folder.process());
}

#[test]
fn two_pid_namespaces_share_memory() {
    let folder = Folder::new();
    let wrapper = ["unshare", "-p", "-f", "--kill-child"];
    check_exchange(&wrapper, &folder, &folder.process());
}

#[test]
fn another_user_is_refused_with_the_reason() {
    let wrapper = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"];
    if !is_allowed(&wrapper) {
        return;
    }
    let folder = Folder::new();
    let context = folder.process();
    let child = Child::start_in(&wrapper, &folder.0, "try to start", &[]);
    let told = child.line();
    assert!(told.starts_with("Invalid run-time folder"), "{told}");
    assert!(told.contains(folder.0.to_str().unwrap()), "{told}");
    child.finish();
    assert_eq!(context.settle(HANG).unwrap(), 0);
    // A folder of that other user, which this user could write to but which is not its own.
    let other = Folder::new();
    std::fs::create_dir(&other.0).unwrap();
    std::os::unix::fs::chown(&other.0, Some(12345), None).unwrap();
    let error = Context::builder().runtime_dir(&other.0).isolated().build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("owner 12345"), "{error}");
    assert!(error.to_string().contains("TSUJI_RUNTIME_DIR"), "{error}");
}

/// Whoever is first could make the folder that another user did not choose, and wait there.
#[test]
fn a_default_folder_of_somebody_else_is_refused() {
    let wrapper = ["setpriv", "--reuid", "12348", "--regid", "12348", "--clear-groups"];
    if !is_allowed(&wrapper) {
        return;
    }
    let trap = Folder(std::path::PathBuf::from("/tmp/tsuji-12348"));
    std::fs::create_dir(&trap.0).unwrap();
    std::os::unix::fs::chown(&trap.0, None, Some(12348)).unwrap();
    std::fs::set_permissions(&trap.0, std::fs::Permissions::from_mode(0o2770)).unwrap();
    let by_default = [("TSUJI_RUNTIME_DIR", "")];
    let child = Child::start_in(&wrapper, &trap.0, "try to start", &by_default);
    let said = child.line();
    assert!(said.contains("/tmp/tsuji-12348: owner 0, mode 2770; allowed:"), "{said}");
    // Said by name it is a group's folder.
    let child = Child::start(&trap, "try to start");
    child.expect("started");
}

/// A folder of group 23456.
fn group_folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(&folder.0).unwrap();
    std::os::unix::fs::chown(&folder.0, None, Some(23456)).unwrap();
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o2770)).unwrap();
    folder
}

#[test]
fn users_of_a_group_meet_in_the_groups_folder() {
    let one = ["setpriv", "--reuid", "12345", "--regid", "23456", "--clear-groups"];
    let two = ["setpriv", "--reuid", "12346", "--regid", "23456", "--clear-groups"];
    let foreign = ["setpriv", "--reuid", "12347", "--regid", "12347", "--clear-groups"];
    if !is_allowed(&one) {
        return;
    }
    let folder = group_folder();
    let context = folder.process();
    // This process was there before, which the other user must be able to connect to.
    check_exchange(&one, &folder, &context);
    check_exchange(&two, &folder, &context);
    let child = Child::start_in(&foreign, &folder.0, "try to start", &[]);
    let told = child.line();
    assert!(told.starts_with("Invalid run-time folder"), "{told}");
    child.finish();
    for path in folder.sockets() {
        let metadata = std::fs::metadata(path).unwrap();
        assert_eq!((metadata.gid(), metadata.mode() & 0o777), (23456, 0o770));
    }
}

#[test]
fn a_user_of_the_group_sets_no_links_of_others() {
    let other = ["setpriv", "--reuid", "12345", "--regid", "23456", "--clear-groups"];
    if !is_allowed(&other) {
        return;
    }
    let folder = group_folder();
    let context = folder.process();
    let node = context.node("one").unwrap();
    let publisher = node.create_publisher::<Image>("theirs", keep_all()).unwrap();
    let mut child = Child::start_in(&other, &folder.0, "set a route", &[]);
    // SAFETY: it asks for a number.
    let own = unsafe { libc::getuid() };
    assert_eq!(child.line(), format!("it comes from user 12345; allowed: user {own}"));
    child.expect("all");
    assert_eq!(publisher.matched(), 1);
    let routes = context.routes(HANG).unwrap();
    assert_eq!((routes.len(), routes[0].pinned.as_deref()), (1, None));
    assert_eq!(routes[0].transport.as_deref(), Some("shm"));
    child.say("end");
    child.finish();
}

#[track_caller]
fn check_folder(path: &Path, words: &[&str]) {
    let error = Context::builder().runtime_dir(path).isolated().build().unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn a_run_time_folder_that_is_not_safe_is_refused_and_named() {
    let folder = Folder::new();
    std::fs::create_dir(&folder.0).unwrap();
    let make = |name: &str, mode: u32| {
        let path = folder.0.join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    check_folder(&make("open", 0o777), &["mode 777", "others cannot write"]);
    check_folder(&make("like-tmp", 0o1777), &["mode 1777"]);
    let target = make("good", 0o700);
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    check_folder(&link, &["symbolic link"]);
    let file = folder.0.join("file");
    std::fs::write(&file, "").unwrap();
    check_folder(&file, &["run-time folder"]);
    check_folder(&file.join("below"), &["Not a directory"]);
    assert!(std::fs::read_dir(&target).unwrap().next().is_none());
    let long = folder.0.join("x".repeat(120));
    check_folder(&long, &["too long"]);
}

#[test]
fn a_read_only_run_time_folder_is_an_error_that_says_so() {
    for wrapper in [
        mounted!("mount -t tmpfs -o ro,mode=700 x /mnt") as &[&str],
        // The folder is there, but no socket can be made in it.
        mounted!(
            "mount -t tmpfs -o mode=700 x /mnt; mkdir /mnt/domain-7; mount -o remount,ro /mnt"
        ),
    ] {
        if !is_allowed(wrapper) {
            return;
        }
        let child = Child::start_in(wrapper, Path::new("/mnt"), "try to start", &[]);
        let told = child.line();
        assert!(told.contains("Read-only") && told.contains("/mnt"), "{told}");
        child.finish();
    }
}

#[test]
fn processes_of_two_time_namespaces_do_not_compare_their_monotonic_clocks() {
    const AHEAD: &[&str] = &["unshare", "-T", "--monotonic", "100000"];
    if !is_allowed(AHEAD) {
        return;
    }
    let _watchdog = house::Watchdog::start("two time namespaces");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("here").unwrap();
    let (events, told) = std::sync::mpsc::channel();
    let options = SubscriptionOptions::default().qos(timed()).on_event(move |event| {
        let _ = events.send(event);
    });
    let subscription = node.create_polled_subscription::<UInt64>("from", options).unwrap();
    let publisher = node.create_publisher::<UInt64>("to", keep_all()).unwrap();
    let mut child = Child::start_in(AHEAD, &folder.0, "speak from another time", &[]);

    take_until(&node, &subscription, |received| {
        let info = received.info();
        let latency = info.latency().unwrap();
        assert_eq!((info.source_mono_ns, latency.clock), (None, LatencyClock::Wall));
        assert!(latency.ns.unsigned_abs() < 60_000_000_000, "{latency}");
        true
    });
    let routes = context.routes(HANG).unwrap();
    let route = routes.iter().find(|it| it.topic == "/from").unwrap();
    assert_eq!(route.transport.as_deref(), Some("shm"), "{}", route.because);
    let latency = route.latency.as_ref().unwrap();
    assert!(latency.clock == "wall" && latency.max_us < 60e6, "{latency:?}");

    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 2 }).unwrap();
    let line = child.line();
    let (clock, ns) = line.split_once(' ').unwrap();
    assert_eq!(clock, "wall");
    assert!(ns.parse::<i64>().unwrap().unsigned_abs() < 60_000_000_000, "{ns}");

    // By its own clock the sample was sent in the far future, and the deadline would never pass.
    let mut executor = Executor::new(&context).unwrap();
    executor.add(&node).unwrap();
    house::wait_until("the deadline is missed", || {
        executor.spin_once(Duration::from_millis(100)).unwrap();
        told.try_iter().any(|it| matches!(it, SubscriptionEvent::DeadlineMissed { .. }))
    });
    child.say("");
    child.finish();
}
