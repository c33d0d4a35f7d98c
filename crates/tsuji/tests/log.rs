//! The log of nodes: what comes to `/rosout`, levels, and what becomes of too much.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;
use tsuji::log::{Logging, Severity, TEXT_BYTES_MAX};
use tsuji::{Durability, ErrorKind, History, Node, Qos, Reliability, Subscription};
use tsuji::{debug, error, fatal, info, warn};
use tsuji_interfaces::rcl_interfaces::msg::{Log, LoggerLevel};
use tsuji_interfaces::rcl_interfaces::srv::{
    GetLoggerLevels, GetLoggerLevelsRequest, SetLoggerLevels, SetLoggerLevelsRequest,
};

#[path = "house/world.rs"]
mod world;
use world::{Folder, HANG, spun, wait_until, with_arguments};

/// Runs `body` with this log and no other, on this thread.
fn logged<T>(logging: &Logging, body: impl FnOnce() -> T) -> T {
    let subscriber = tracing_subscriber::registry().with(logging.rosout_layer());
    tracing::subscriber::with_default(subscriber, body)
}

/// A node with a log, and one that reads it, each as in a process of its own.
struct World {
    node: Node,
    logging: Logging,
    reading: Node,
    lines: Subscription<Log>,
    /// Goes last, when nobody makes anything in it any more.
    folder: Folder,
}

impl World {
    fn new(arguments: &[&str]) -> Self {
        let folder = Folder::new();
        let context = with_arguments(&folder, arguments);
        let logging = context.logging().clone();
        let node = context.node_in("drive", "/robot").unwrap();
        node.logger();
        let reading = folder.process().node("reading").unwrap();
        let lines = read(&reading);
        lines.wait_for_publishers(1, HANG).unwrap();
        Self { node, logging, reading, lines, folder }
    }

    fn next(&self) -> Log {
        next(&self.lines)
    }
}

/// As tools of ROS 2 read it.
fn read(node: &Node) -> Subscription<Log> {
    let qos = Qos {
        history: History::KeepLast(1000),
        durability: Durability::TransientLocal,
        ..Qos::DEFAULT
    };
    node.create_polled_subscription("/rosout", qos).unwrap()
}

fn next(lines: &Subscription<Log>) -> Log {
    loop {
        if let Some(line) = lines.take().unwrap() {
            return line.view().to_message();
        }
        thread::yield_now();
    }
}

#[test]
fn an_event_becomes_a_line_of_rosout() {
    let world = World::new(&["--log-level", "robot.drive:=debug"]);
    let logger = world.node.logger();
    assert_eq!(logger.name(), "robot.drive");
    let endpoints = world.reading.context().graph().endpoints;
    let qos = endpoints.iter().find(|it| it.node == "/robot/drive" && it.topic == "/rosout");
    let qos = qos.unwrap().qos;
    assert_eq!((qos.history, qos.reliability), (History::KeepLast(1000), Reliability::Reliable));
    assert_eq!(qos.durability, Durability::TransientLocal);
    assert_eq!(qos.lifespan, Some(Duration::from_secs(10)));
    let line = logged(&world.logging, || {
        info!(logger, "ready for {}", 7);
        line!() - 1
    });
    let log = world.next();
    assert_eq!(
        (log.level, log.name.as_str(), log.msg.as_str()),
        (20, "robot.drive", "ready for 7")
    );
    assert_eq!((log.file.as_str(), log.line), (file!(), line));
    assert_eq!(log.function, module_path!());
    assert!(1_500_000_000 < log.stamp.sec);
    logged(&world.logging, || {
        let wheels = logger.child("wheels");
        let speed = 1.5;
        debug!(wheels, speed, name = "left", "turning");
        warn!(logger, "slow");
        error!(logger, "stuck");
        fatal!(logger, code = 3, "over");
        // By a field, by a span, and by both.
        tracing::info!(logger = "robot.drive.brake", "held");
        let _entered = logger.span().entered();
        tracing::info!("of a library");
        tracing::info!(logger = "elsewhere", "not of this node");
        let _inner = wheels.span().entered();
        tracing::trace!("finer than ROS has");
        tracing::info!("within");
    });
    for expect in [
        (10, "robot.drive.wheels", "turning speed=1.5 name=\"left\""),
        (30, "robot.drive", "slow"),
        (40, "robot.drive", "stuck"),
        (50, "robot.drive", "over code=3"),
        (20, "robot.drive.brake", "held"),
        (20, "robot.drive", "of a library"),
        (20, "robot.drive.wheels", "within"),
    ] {
        let log = world.next();
        assert_eq!((log.level, log.name.as_str(), log.msg.as_str()), expect);
    }
    // A line is counted when it has been published.
    wait_until(|| world.node.rosout_counters().published == 8);
    let counters = world.node.rosout_counters();
    assert_eq!((counters.published, counters.dropped, counters.failed, counters.cut), (8, 0, 0, 0));
}

#[test]
fn each_node_has_its_own_lines() {
    let world = World::new(&[]);
    let context = world.node.context().clone();
    let arm = context.node_in("arm", "/robot/drive").unwrap();
    let other = context.node("other").unwrap();
    let _ = (arm.logger(), other.logger());
    world.lines.wait_for_publishers(3, HANG).unwrap();
    logged(&world.logging, || {
        for name in
            ["robot.drive", "robot.drive.arm", "robot.drive.arm.x", "robot.drive.b", "other"]
        {
            info!(world.logging.logger(name), "{name}");
        }
        // Of no node, though it begins alike.
        info!(world.logging.logger("others"), "nobody's");
        tracing::warn!("nobody's");
    });
    let mut names: Vec<String> = (0..5).map(|_| world.next().name).collect();
    names.sort();
    let expect = ["other", "robot.drive", "robot.drive.arm", "robot.drive.arm.x", "robot.drive.b"];
    assert_eq!(names, expect);
    // What is read does not say whose it is; what they count does.
    let published = |node: &Node| node.rosout_counters().published;
    wait_until(|| published(&world.node) + published(&arm) + published(&other) == 5);
    assert_eq!((published(&world.node), published(&arm), published(&other)), (2, 2, 1));
    // The node that is gone leaves its lines to the one above it.
    drop(arm);
    logged(&world.logging, || info!(world.logging.logger("robot.drive.arm"), "still"));
    assert_eq!(world.next().msg, "still");
    wait_until(|| published(&world.node) == 3);
}

#[test]
fn late_joiners_get_the_last_lines() {
    let world = World::new(&[]);
    let logger = world.node.logger();
    logged(&world.logging, || (0..5).for_each(|number| info!(logger, "line {number}")));
    (0..5).for_each(|number| assert_eq!(world.next().msg, format!("line {number}")));
    let late = world.folder.process().node("late").unwrap();
    let lines = read(&late);
    (0..5).for_each(|number| assert_eq!(next(&lines).msg, format!("line {number}")));
}

#[test]
fn the_last_lines_of_a_node_are_published() {
    let world = World::new(&[]);
    for round in 0..20 {
        // The one of the round before has gone.
        wait_until(|| world.lines.matched() == 1);
        let again = world.node.context().node_in("drive", "/robot").unwrap();
        let logger = again.logger();
        world.lines.wait_for_publishers(2, HANG).unwrap();
        logged(&world.logging, || info!(logger, "round {round}"));
        drop(again);
        assert_eq!(world.next().msg, format!("round {round}"));
    }
}

#[test]
fn arguments_set_levels_and_the_later_counts() {
    let arguments = ["--log-level", "debug", "--log-level", "robot.drive:=error"];
    let more = ["--log-level", "WARN", "--log-level", "robot.drive.wheels:=Debug"];
    let world = World::new(&[&arguments[..], &more].concat());
    let level = |name: &str| world.logging.level(name);
    assert_eq!(
        (level(""), level("robot"), level("other")),
        (Severity::Warn, Severity::Warn, Severity::Warn)
    );
    assert_eq!(
        (level("robot.drive"), level("robot.drive.wheels.left")),
        (Severity::Error, Severity::Debug)
    );
    let logger = world.node.logger();
    let wheels = logger.child("wheels");
    assert!(!logger.is_enabled(Severity::Warn) && logger.is_enabled(Severity::Error));
    logged(&world.logging, || {
        warn!(logger, "too low");
        // Events that no macro of this crate has looked at are looked at too.
        tracing::warn!(logger = "robot.drive", "too low");
        debug!(wheels, "deep enough");
        error!(logger, "grave enough");
    });
    assert_eq!((world.next().msg, world.next().msg), ("deep enough".into(), "grave enough".into()));
    world.logging.set_level("robot.drive", Some(Severity::Debug)).unwrap();
    world.logging.set_level("robot.drive.wheels", None).unwrap();
    assert!(logger.is_enabled(Severity::Debug) && wheels.is_enabled(Severity::Debug));
    logged(&world.logging, || debug!(logger, "now"));
    assert_eq!(world.next().msg, "now");
    let error = world.logging.set_level(&"x".repeat(2000), Some(Severity::Info)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("allowed: at most 1024"), "{error}");
}

#[test]
fn others_see_and_set_levels() {
    let world = World::new(&[]);
    let serving = Node::builder("drive").namespace("/robot").logger_service();
    let serving = serving.build(world.node.context()).unwrap();
    let logger = world.node.logger();
    let get = world.reading.create_client::<GetLoggerLevels>("/robot/drive/get_logger_levels");
    let set = world.reading.create_client::<SetLoggerLevels>("/robot/drive/set_logger_levels");
    let (get, set) = (get.unwrap(), set.unwrap());
    let levels = |names: &[&str]| {
        let names = names.iter().map(|&it| it.to_owned()).collect();
        let answer = get.call(GetLoggerLevelsRequest { names }, HANG).unwrap();
        answer.levels.iter().map(|it| (it.name.clone(), it.level)).collect::<Vec<_>>()
    };
    let set = |levels: &[(&str, u32)]| {
        let level =
            |(name, level): &(&str, u32)| LoggerLevel { name: (*name).into(), level: *level };
        let levels = levels.iter().map(level).collect();
        let answer = set.call(SetLoggerLevelsRequest { levels }, HANG).unwrap();
        answer.results.iter().map(|it| (it.successful, it.reason.clone())).collect::<Vec<_>>()
    };
    spun(&serving, || {
        assert_eq!(levels(&["robot.drive", ""]), [("robot.drive".into(), 0), (String::new(), 20)]);
        let results = set(&[("robot.drive", 10), ("a", 15), ("b", 40), ("", 30)]);
        let reason = "15 is no level; allowed: 0 for none of its own, 10, 20, 30, 40, 50";
        let good = (true, String::new());
        assert_eq!(results, [good.clone(), (false, reason.into()), good.clone(), good.clone()]);
        assert_eq!(
            levels(&["robot.drive", "a", "b"]).iter().map(|it| it.1).collect::<Vec<_>>(),
            [10, 0, 40]
        );
        assert_eq!(world.logging.level("a"), Severity::Warn);
        logged(&world.logging, || debug!(logger, "heard"));
        assert_eq!(world.next().msg, "heard");
        assert_eq!(set(&[("robot.drive", 0)]), [good]);
        assert!(!logger.is_enabled(Severity::Info));
    });
}

#[test]
fn a_flood_is_dropped_and_counted_and_holds_nobody_up() {
    let world = World::new(&[]);
    let logger = world.node.logger();
    let mut logged_lines = 0;
    logged(&world.logging, || {
        // Until more has come than is published; texts of this size are, slowly.
        while world.node.rosout_counters().dropped == 0 {
            info!(logger, "{}", "x".repeat(20_000));
            logged_lines += 1;
        }
    });
    let settled = || {
        let counters = world.node.rosout_counters();
        // With the line that tells of the loss.
        (logged_lines + 1 == counters.published + counters.dropped).then_some(counters)
    };
    wait_until(|| settled().is_some());
    let counters = settled().unwrap();
    assert!(0 < counters.dropped && counters.failed == 0, "{counters:?}");
    let told = loop {
        let line = world.next();
        if line.level == Severity::Warn as u8 {
            break line;
        }
    };
    assert_eq!(told.name, "robot.drive");
    let expect = format!("{} lines of this log were dropped", counters.dropped);
    assert!(told.msg.starts_with(&expect), "{}", told.msg);
    // Then it goes on.
    logged(&world.logging, || info!(logger, "calm"));
    assert_eq!(world.next().msg, "calm");
}

#[test]
fn a_long_text_is_cut() {
    let world = World::new(&[]);
    let logger = world.node.logger();
    logged(&world.logging, || {
        info!(logger, "{}", "ä".repeat(TEXT_BYTES_MAX));
        info!(logger, more = "z".repeat(TEXT_BYTES_MAX), "x");
        info!(logger, "{}", "y".repeat(TEXT_BYTES_MAX));
    });
    let text = world.next().msg;
    assert_eq!((text.len(), text.chars().last()), (TEXT_BYTES_MAX + '…'.len_utf8(), Some('…')));
    let text = world.next().msg;
    assert!(text.starts_with("x more=\"zz") && text.ends_with("z…"));
    assert_eq!(world.next().msg, "y".repeat(TEXT_BYTES_MAX));
    assert_eq!(world.node.rosout_counters().cut, 2);
}

#[test]
fn a_disabled_rosout_has_nothing() {
    let folder = Folder::new();
    let context = with_arguments(&folder, &["--disable-rosout-logs"]);
    let logging = context.logging().clone();
    let node = context.node("quiet").unwrap();
    logged(&logging, || info!(node.logger(), "unheard"));
    assert_eq!(node.rosout_counters(), Default::default());
    assert!(context.graph().endpoints.iter().all(|it| it.topic != "/rosout"));
}

#[test]
fn what_fails_is_counted() {
    let world = World::new(&[]);
    let logger = world.node.logger();
    world.node.context().shutdown();
    logged(&world.logging, || info!(logger, "too late"));
    wait_until(|| world.node.rosout_counters().failed == 1);
}

#[test]
fn lines_of_many_threads_are_all_published() {
    let world = World::new(&[]);
    let logger = world.node.logger();
    let logging = Arc::new(world.logging.clone());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (logging, logger) = (Arc::clone(&logging), logger.clone());
            thread::spawn(move || {
                logged(&logging, || (0..100).for_each(|line| info!(logger, "{thread} {line}")));
            })
        })
        .collect();
    let mut next_of = [0; 4];
    for _ in 0..400 {
        let text = world.next().msg;
        let (thread, line) = text.split_once(' ').unwrap();
        let thread: usize = thread.parse().unwrap();
        assert_eq!(line.parse::<u32>().unwrap(), next_of[thread], "in order");
        next_of[thread] += 1;
    }
    threads.into_iter().for_each(|it| it.join().unwrap());
}

#[test]
fn a_node_has_all_of_it() {
    let folder = Folder::new();
    let context = with_arguments(&folder, &["-p", "use_sim_time:=true"]);
    let node = Node::builder("drive").namespace("/robot").logger_service();
    let node = node.build(&context).unwrap();
    assert_eq!(node.fully_qualified_name(), "/robot/drive");
    assert!(node.clock().unwrap().is_simulated());
    assert!(node.parameters().unwrap().get::<bool>("use_sim_time").unwrap());
    let logger = node.logger();
    let reading = folder.process().node("reading").unwrap();
    let lines = read(&reading);
    lines.wait_for_publishers(1, HANG).unwrap();
    logged(context.logging(), || info!(logger, "ready"));
    assert_eq!(next(&lines).msg, "ready");
    let servers = context.graph().services;
    assert!(servers.iter().any(|it| it.topic == "/robot/drive/set_logger_levels"));
}

/// What a node is asked for is made then, and nothing else.
#[test]
fn a_node_has_what_it_was_asked_for() {
    let folder = Folder::new();
    let context = with_arguments(&folder, &[]);
    let node = context.node("drive").unwrap();
    let has = || {
        let graph = context.graph();
        let topics = graph.endpoints.iter().map(|it| it.topic.clone());
        let mut all: Vec<String> =
            topics.chain(graph.services.iter().map(|it| it.topic.clone())).collect();
        all.sort();
        all.dedup();
        all
    };
    let nothing: [&str; 0] = [];
    assert_eq!(has(), nothing);
    node.logger();
    assert_eq!(has(), ["/rosout"]);
    assert_eq!(node.declare_parameter("speed", 1.5).unwrap(), 1.5);
    let with_parameters = has();
    assert_eq!(with_parameters.len(), 8, "{with_parameters:?}");
    assert!(!node.parameters().unwrap().has("use_sim_time"));
    // Not simulated, it listens to nothing.
    assert!(!node.clock().unwrap().is_simulated());
    assert!(node.parameters().unwrap().has("use_sim_time"));
    assert_eq!(has(), with_parameters);
    // What was made under the node keeps all of it, and its parameters do not keep the node.
    let parameters = node.parameters().unwrap();
    let publisher = node.create_publisher::<Log>("log", Qos::DEFAULT).unwrap();
    drop(node);
    assert_eq!(has().len(), 9);
    drop(publisher);
    assert_eq!(has().len(), 7, "{:?}", has());
    drop(parameters);
    assert_eq!(has(), nothing);
    assert!(context.graph().nodes.is_empty());
}

#[test]
fn a_node_may_be_made_without_its_parts() {
    let folder = Folder::new();
    let context = with_arguments(&folder, &["-p", "use_sim_time:=true"]);
    let node = Node::builder("drive").without_parameters().without_rosout();
    let node = node.build(&context).unwrap();
    let error = node.declare_parameter("speed", 1.5).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().starts_with("node /drive was made without parameters"), "{error}");
    let clock = node.clock().unwrap();
    assert!(!clock.is_simulated() && 1_500_000_000 < clock.now().sec);
    info!(node.logger(), "to the terminal alone");
    assert!(context.graph().endpoints.is_empty());
}

/// No subscriber of `tracing` is there, and none is installed.
#[test]
fn a_logger_is_heard_without_a_subscriber() {
    let world = World::new(&["--disable-stdout-logs"]);
    let logger = world.node.logger();
    let said = Arc::new(AtomicU64::new(0));
    let count = || said.fetch_add(1, Ordering::Relaxed);
    let line = || {
        info!(logger, number = count(), "ready");
        line!() - 1
    };
    let line = line();
    let log = world.next();
    assert_eq!((log.msg.as_str(), log.line), ("ready number=0", line));
    // What is said is written out once, and not where it is not heard.
    debug!(logger, number = count(), "too low");
    assert_eq!(said.load(Ordering::Relaxed), 1);
    // Others are not heard by that.
    tracing::error!(logger = "robot.drive", "of a library");
    info!(logger.child("wheels"), "turning");
    assert_eq!(world.next().msg, "turning");
    // A thread with a subscriber has what is said, and /rosout what that gives it.
    tracing::subscriber::with_default(tracing_subscriber::registry(), || info!(logger, "theirs"));
    logged(&world.logging, || info!(logger, "both"));
    assert_eq!(world.next().msg, "both");
}

#[test]
fn what_is_fatal_is_heard_where_nothing_else_is() {
    let world = World::new(&["--log-level", "fatal"]);
    let logger = world.node.logger();
    logged(&world.logging, || {
        error!(logger, "too low");
        tracing::error!(logger = "robot.drive", "too low");
        fatal!(logger, "over");
    });
    let line = world.next();
    assert_eq!((line.level, line.msg.as_str()), (50, "over"));
}

/// Counts the events of `TRACE`.
struct Traces(Arc<AtomicU64>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Traces {
    fn on_event(
        &self,
        event: &tracing::Event<'_>,
        _context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        if *event.metadata().level() == tracing::Level::TRACE {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn layers_beside_it_see_what_it_does_not_take() {
    let folder = Folder::new();
    let context = folder.process();
    let logging = context.logging();
    let traces = Arc::new(AtomicU64::new(0));
    let both = tracing_subscriber::registry().with(logging.rosout_layer());
    let both = both.with(Traces(Arc::clone(&traces)));
    tracing::subscriber::with_default(both, || tracing::trace!("for the other"));
    assert_eq!(traces.load(Ordering::Relaxed), 1);
    let both = tracing_subscriber::registry().with(Traces(Arc::clone(&traces)));
    let both = both.with(logging.rosout_layer());
    tracing::subscriber::with_default(both, || tracing::trace!("for the other"));
    assert_eq!(traces.load(Ordering::Relaxed), 2);
}

/// Logs while it is written out.
struct Talkative<'a>(&'a tsuji::log::Logger);

impl std::fmt::Display for Talkative<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        info!(self.0, "within another");
        f.write_str("talkative")
    }
}

#[test]
fn what_logs_while_it_is_logged_harms_nothing() {
    let world = World::new(&["--disable-stdout-logs"]);
    let logger = world.node.logger();
    info!(logger, "{}", Talkative(&logger));
    assert_eq!(world.next().msg, "talkative");
    logged(&world.logging, || info!(logger, "{}", Talkative(&logger)));
    assert_eq!(world.next().msg, "talkative");
    // An argument is not within: what it logs is heard, and warnings of the library come to standard error as ever.
    let argument = || {
        info!(logger, "before");
        assert!(!tsuji_platform::report::is_collected());
        "after"
    };
    info!(logger, "{}", argument());
    assert_eq!((world.next().msg, world.next().msg), ("before".into(), "after".into()));
}

/// Who hears that a part comes may ask for it, though it is just being made.
#[test]
fn whoever_hears_of_a_part_may_ask_for_it() {
    let folder = Folder::new();
    let context = with_arguments(&folder, &[]);
    let (node, other) = (context.node("drive").unwrap(), context.node("other").unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    let asking = node.clone();
    let options = tsuji::SubscriptionOptions::default().qos(Qos::ROSOUT).note_events(move |_| {
        let _ = tell.send(asking.logger().name().to_owned());
    });
    let lines = other.create_polled_subscription::<Log>("/rosout", options).unwrap();
    node.logger();
    assert_eq!(told.recv_timeout(HANG).unwrap(), "drive");
    drop(lines);
}
