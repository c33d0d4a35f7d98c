//! An engine that nothing needs any more is shut down: its threads are gone, and come back with the next flow. And who
//! waits for what does not come wakes nobody for it. Alone in its binary, since it counts the threads of the whole
//! process, and how often they wake.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stderr, reason = "children tell where they stand")]

mod house;

use std::path::Path;
use std::time::Duration;

use house::links::{Sender, Taker, assert_all_came, ends, set, settled_on};
use house::{Child, Folder, HANG, Watchdog, keep_all, keep_last, tell, threads, wait_until};
use tsuji::{Context, Durability, EngineReport, EngineState, Qos};
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_platform::process::thread_names;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let role = house::role();
    let folder = Folder::new();
    match role.split_once(": ") {
        None if role == "owes a late joiner" => owes_a_late_joiner(&folder),
        None => stays_on_the_wire(&folder),
        Some(("both ends of", engine)) => goes_and_comes(&folder, engine),
        Some(("one end of", engine)) => one_end_goes_and_comes(&folder, engine),
        Some(("dies in the end of", _)) => dies_in_the_end_of(),
        Some(("displaces by", engine)) => displaces_by(&folder, engine),
        Some(other) => panic!("{other:?}"),
    }
    tell("done");
}

/// A process whose engines end at once when nothing needs them.
fn process(folder: &Folder) -> Context {
    process_in(&folder.0, "0.05")
}

fn process_in(folder: &Path, idle_seconds: &str) -> Context {
    let settings = format!("<set key=\"idle_seconds\" value=\"{idle_seconds}\"/>");
    let text = format!(
        "<tsuji>
           <transport name=\"cyclonedds\">
             <set key=\"interfaces\" value=\"lo\"/><set key=\"multicast\" value=\"true\"/>{settings}
           </transport>
           <transport name=\"fastdds\">{settings}</transport>
         </tsuji>"
    );
    let policy = tsuji_policy::load("test", text.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    let builder = Context::builder().runtime_dir(folder).domain(house::DOMAIN);
    builder.policy(policy).isolated().build().unwrap()
}

/// How an engine stands in each of the processes.
fn engines(context: &Context, name: &str) -> Vec<EngineReport> {
    let all = context.engines(HANG).unwrap().into_iter();
    all.map(|it| it.engines.into_iter().find(|it| it.transport == name).unwrap()).collect()
}

#[track_caller]
fn all_are(context: &Context, name: &str, state: EngineState) {
    wait_until("the engines stand so", || {
        engines(context, name).iter().all(|it| it.state == state)
    });
}

fn goes_and_comes(folder: &Folder, engine: &str) {
    let (here, there) = (process(folder), process(folder));
    let (publisher, subscription) = ends(&here, &there, keep_all());
    settled_on(&here, "/n", "shm");
    let sending = Sender::start(publisher, Duration::from_micros(200));
    let taking = Taker::start(subscription, u64::MAX);
    taking.wait_for_more();
    let before = threads();
    // Two of Cyclone DDS come with their first work.
    let least = if engine == "cyclonedds" { 3 } else { 4 };
    for report in engines(&here, engine) {
        assert_eq!((report.state, report.starts), (EngineState::NotStarted, 0), "{report:?}");
        assert_eq!(report.because, "no flow needs it");
    }
    for turn in 1..=2 {
        set(&there, "/n", Some(engine));
        settled_on(&there, "/n", engine);
        taking.wait_for_more();
        assert!(before + 2 * least <= threads(), "{} threads after {before}", threads());
        for report in engines(&here, engine) {
            assert_eq!((report.state, report.starts), (EngineState::Running, turn), "{report:?}");
            assert!(report.because.ends_with(" /n"), "{report:?}");
            assert!(least <= report.threads.len() && 0 < report.users, "{report:?}");
            assert!(report.version.is_some() && report.since_wall_ns.is_some(), "{report:?}");
        }
        set(&there, "/n", Some("shm"));
        settled_on(&there, "/n", "shm");
        taking.wait_for_more();
        all_are(&here, engine, EngineState::ShutDown);
        wait_until("its threads are gone", || threads() <= before);
        taking.wait_for_more();
    }
    let sent = sending.finish();
    assert_all_came(taking.finish(sent).counters(), sent);
}

/// The other end stays, and knows the one that left by its name and its numbers.
fn one_end_goes_and_comes(folder: &Folder, engine: &str) {
    let (goes, stays) = (process(folder), process_in(&folder.0, "never"));
    let (one, other) = (goes.node("goes").unwrap(), stays.node("stays").unwrap());
    let flows = [("there", &one, &other), ("back", &other, &one)];
    let flows = flows.map(|(topic, from, to)| {
        let publisher = from.create_publisher::<UInt64>(topic, keep_all()).unwrap();
        let subscription = to.create_polled_subscription::<UInt64>(topic, keep_all()).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        subscription.wait_for_publishers(1, HANG).unwrap();
        let sending = Sender::start(publisher, Duration::from_micros(200));
        (sending, Taker::start(subscription, u64::MAX))
    });
    let go_by = |link: &str| {
        for topic in ["/there", "/back"] {
            set(&stays, topic, Some(link));
            settled_on(&stays, topic, link);
        }
        flows.iter().for_each(|(_, taking)| taking.wait_for_more());
    };
    let shown = |context: &Context| {
        let all = context.engines(HANG).unwrap().into_iter();
        let mut all = all.filter(|it| it.process.token == context.token());
        let engines = all.next().unwrap().engines;
        engines.into_iter().find(|it| it.transport == engine).unwrap()
    };
    for turn in 1..=3 {
        go_by(engine);
        let (left, stayed) = (shown(&goes), shown(&stays));
        assert_eq!((left.state, left.starts), (EngineState::Running, turn), "{left:?}");
        assert_eq!((stayed.state, stayed.starts), (EngineState::Running, 1), "{stayed:?}");
        go_by("shm");
        wait_until("it has left", || shown(&goes).state == EngineState::ShutDown);
    }
    for (sending, taking) in flows {
        let sent = sending.finish();
        assert_all_came(taking.finish(sent).counters(), sent);
    }
}

/// What a child does whose engine is to end: it takes numbers until the thread that ends the engine is there.
fn dies_in_the_end_of() {
    let folder = std::env::var_os("TSUJI_RUNTIME_DIR").unwrap();
    let context = process_in(Path::new(&folder), "0.05");
    let node = context.node("dies").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", keep_last(100)).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    tell("there");
    let is_ending = || thread_names().unwrap().values().any(|it| it == "tsuji-end");
    while !is_ending() {
        while subscription.take().unwrap().is_some() {}
        std::thread::sleep(Duration::from_micros(50));
    }
    // SAFETY: it is this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

fn dies_and_harms_nobody(engine: &str) {
    let _watchdog = Watchdog::start("a process that dies while its engine ends");
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_all());
    let sending = Sender::start(publisher, Duration::from_micros(200));
    let taking = Taker::start(subscription, u64::MAX);
    let mut child = Child::start(&folder, &format!("dies in the end of: {engine}"));
    child.expect("there");
    // It may not see the end of its engine, which is short: then there is another.
    while !child.has_ended() {
        set(&here, "/n", Some(engine));
        settled_on(&here, "/n", engine);
        taking.wait_for_more();
        set(&here, "/n", Some("shm"));
        settled_on(&here, "/n", "shm");
        wait_until("its engine ends, or it dies of that", || {
            let all = engines(&here, engine);
            child.has_ended() || all.iter().all(|it| it.state == EngineState::ShutDown)
        });
    }
    assert_eq!(child.ended_by(), Some(libc::SIGKILL));
    wait_until("nobody counts on it", || here.routes(HANG).unwrap().len() == 1);
    taking.wait_for_more();
    // Those that live go by the engine as before.
    set(&here, "/n", Some(engine));
    settled_on(&here, "/n", engine);
    taking.wait_for_more();
    let sent = sending.finish();
    assert_all_came(taking.finish(sent).counters(), sent);
}

fn stays_on_the_wire(folder: &Folder) {
    use tsuji::Interop;
    let text = "<tsuji><transport name=\"cyclonedds\"><set key=\"interfaces\" value=\"lo\"/>
        <set key=\"multicast\" value=\"true\"/><set key=\"idle_seconds\" value=\"0.001\"/></transport></tsuji>";
    let policy = tsuji_policy::load("test", text.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    // Nobody else is there, who would need the engine too.
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN + 1);
    let context = builder.policy(policy).interop(Interop::RTPS).isolated().build().unwrap();
    all_are(&context, "cyclonedds", EngineState::Running);
    let node = context.node("seen").unwrap();
    drop(node.create_publisher::<UInt64>("n", keep_all()).unwrap());
    let shown = || engines(&context, "cyclonedds").remove(0);
    wait_until("the publisher is gone from the wire", || shown().users <= 2);
    // The wire keeps it, however long nothing else does.
    assert_eq!((shown().state, shown().starts), (EngineState::Running, 1), "{:?}", shown());
    assert!(shown().because.contains("foreign ROS 2 nodes"), "{:?}", shown());
}

/// How often the threads of this process that are called so have slept: all, where it is empty.
fn slept(name: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let statuses = tasks.flat_map(|it| std::fs::read_to_string(it.path().join("status")));
    let counts = statuses.filter_map(|status| {
        let of = |key: &str| Some(status.lines().find_map(|it| it.strip_prefix(key))?.trim());
        let is_meant = of("Name:")?.starts_with(name);
        of("voluntary_ctxt_switches:")?.parse::<u64>().ok().filter(|_| is_meant)
    });
    counts.sum()
}

/// How often they have read and written: a thread that wakes itself does not sleep.
fn read_and_wrote() -> u64 {
    let all = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let counts = ["syscr: ", "syscw: "].map(|key| {
        let count = all.lines().find_map(|it| it.strip_prefix(key));
        count.map_or(0, |it| it.parse::<u64>().unwrap())
    });
    counts.iter().sum()
}

fn owes_a_late_joiner(folder: &Folder) {
    const COUNT: u64 = 3000;
    let (here, there) = (process(folder), process(folder));
    let qos = Qos { durability: Durability::TransientLocal, ..keep_all() };
    let publisher = here.node("n").unwrap().create_publisher::<UInt64>("owed", qos).unwrap();
    (1..=COUNT).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    for context in [&here, &there] {
        let node = context.node("late").unwrap();
        let late = node.create_polled_subscription::<UInt64>("owed", qos).unwrap();
        late.wait_for_publishers(1, HANG).unwrap();
        wait_until("nobody is woken for what it does not take", || {
            // The look itself reads much.
            let (slept_before, before) = (slept(""), read_and_wrote());
            std::thread::sleep(Duration::from_secs(1));
            let woken = read_and_wrote() - before;
            woken + slept("") - slept_before < 100
        });
        let mut next = 1;
        house::take_until(&node, &late, |received| {
            assert_eq!(received.view().data, next);
            next += 1;
            COUNT < next
        });
        let counters = late.counters();
        assert_eq!((counters.received, counters.lost, counters.displaced), (COUNT, 0, 0));
    }
    assert_eq!((publisher.counters().failed, publisher.counters().displaced), (0, 0));
}

fn displaces_by(folder: &Folder, engine: &str) {
    const COUNT: u64 = 2000;
    let (here, there) = (process(folder), process(folder));
    let (sender, taker) = (here.node("sender").unwrap(), there.node("taker").unwrap());
    let publisher = sender.create_publisher::<UInt64>("displaced", keep_last(10)).unwrap();
    let subscription = taker.create_polled_subscription::<UInt64>("displaced", keep_last(10));
    let subscription = subscription.unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    set(&there, "/displaced", Some(engine));
    settled_on(&there, "/displaced", engine);
    let before = slept("tsuji-control");
    for data in 0..COUNT {
        publisher.publish(UInt64 { data }).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let woken = slept("tsuji-control") - before;
    assert!(woken < COUNT / 2, "woken {woken} times for {COUNT} samples");
    let mut told = None;
    wait_until("all is counted", || {
        let counters = publisher.counters();
        if told.replace(counters) != Some(counters) {
            eprintln!("{counters:?}");
        }
        counters.displaced == COUNT - 10
    });
    drop(subscription);
}

fn alone(name: &'static str, role: &str) {
    let _watchdog = Watchdog::start(name);
    let folder = Folder::new();
    let child = Child::start(&folder, role);
    child.expect("done");
}

#[test]
fn cyclone_dds_goes_when_nothing_needs_it_and_comes_back() {
    alone("Cyclone DDS goes and comes", "both ends of: cyclonedds");
}

#[test]
fn one_end_of_cyclone_dds_goes_and_comes_back() {
    alone("one end of Cyclone DDS", "one end of: cyclonedds");
}

#[test]
fn what_dies_while_cyclone_dds_ends_harms_nobody() {
    dies_and_harms_nobody("cyclonedds");
}

#[test]
fn fast_dds_goes_when_nothing_needs_it_and_comes_back() {
    if has_fast_dds() {
        alone("Fast DDS goes and comes", "both ends of: fastdds");
    }
}

#[test]
fn one_end_of_fast_dds_goes_and_comes_back() {
    if has_fast_dds() {
        alone("one end of Fast DDS", "one end of: fastdds");
    }
}

#[test]
fn what_dies_while_fast_dds_ends_harms_nobody() {
    if has_fast_dds() {
        dies_and_harms_nobody("fastdds");
    }
}

/// Whether its plug-in was built: `scripts/fastdds`.
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn has_fast_dds() -> bool {
    let folder = Folder::new();
    let offered = folder.process().transports();
    let fast = offered.iter().find(|it| it.name == "fastdds").unwrap();
    let is_there = fast.is_installed || std::env::var_os("TSUJI_FASTDDS").is_some();
    if !is_there {
        eprintln!("{}: not run", fast.trouble.as_deref().unwrap());
    }
    is_there
}

#[test]
fn a_late_joiner_that_does_not_take_wakes_nobody() {
    alone("a late joiner that does not take", "owes a late joiner");
}

#[test]
fn what_is_displaced_by_an_engine_is_not_told_one_by_one() {
    alone("what is displaced by an engine", "displaces by: cyclonedds");
}

#[test]
fn an_engine_by_which_foreign_nodes_are_spoken_to_stays() {
    alone("an engine stays", "on the wire");
}
