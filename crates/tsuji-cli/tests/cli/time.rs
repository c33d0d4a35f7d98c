//! Simulated time, as it is turned on and moved from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tsuji::{Context, Qos, TimerOptions};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::geometry_msgs::msg::PointStamped;
use tsuji_interfaces::rosgraph_msgs::msg::Clock;
use tsuji_interfaces::std_msgs::msg::Header;

use crate::support::{World, spun};

/// A hang is cut by the watchdog of the tests.
fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

#[test]
fn a_node_is_driven_by_clock_and_left_to_the_wall() {
    let world = World::new();
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let context = context.unwrap();
    let node = context.node("drive").unwrap();
    let clock = node.clock().unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&calls);
    let count = move || {
        counting.fetch_add(1, Ordering::AcqRel);
    };
    let hour = TimerOptions::new(Duration::from_secs(3600)).clock(&clock);
    let _timer = node.create_timer(hour, count).unwrap();
    let set = |value: &str| world.run(&["param", "set", "/drive", "use_sim_time", value]);
    spun(&node, || {
        let error = set("7").bad(1);
        assert!(error.contains("{use_sim_time} is of type {bool}"), "{error}");
        assert_eq!(set("true").good(), "Set parameter successful\n");
        assert_eq!(clock.now_ns(), 0);
        let publish = |seconds: u32, done: &dyn Fn() -> bool| {
            let words = format!("{{clock: {{sec: {seconds}}}}}");
            let publishing = world.start(&[
                "topic",
                "pub",
                "--rate",
                "50",
                "/clock",
                "rosgraph_msgs/msg/Clock",
                &words,
            ]);
            wait_until(done);
            publishing.stop().good();
        };
        publish(50, &|| clock.now_ns() == 50_000_000_000);
        // Two hours at once are one call.
        publish(7300, &|| calls.load(Ordering::Acquire) == 1);
        assert_eq!(clock.now_ns(), 7_300_000_000_000);
        assert_eq!(set("false").good(), "Set parameter successful\n");
        assert!(!clock.is_simulated());
    });
    assert_eq!(calls.load(Ordering::Acquire), 1);
}

/// Tells a time that goes on by so many seconds every millisecond, and publishes a point with it every tenth time, while
/// `body` runs.
fn simulated(world: &World, step_s: i32, body: impl FnOnce()) {
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = context.unwrap().node("simulator").unwrap();
    let clock = node.create_publisher::<Clock>("/clock", Qos::DEFAULT).unwrap();
    let points = node.create_publisher::<PointStamped>("/points", Qos::DEFAULT).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut time = Time { sec: 1000, nanosec: 0 };
            for count in 0_u32.. {
                if done.load(Ordering::Acquire) {
                    break;
                }
                time.sec += step_s;
                clock.publish(Clock { clock: time }).unwrap();
                if count % 10 == 0 {
                    points
                        .publish(PointStamped {
                            header: Header { stamp: time, ..Header::default() },
                            ..PointStamped::default()
                        })
                        .unwrap();
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        done.store(true, Ordering::Release);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Waits for a line with a number behind `words` that is as wanted.
fn await_number(running: &mut crate::support::Running, words: &str, wanted: impl Fn(f64) -> bool) {
    loop {
        let line = running.out_line(words);
        let number = line.trim_start_matches(words).trim().split(['s', ' ']).next().unwrap();
        if wanted(number.parse().unwrap()) {
            return;
        }
    }
}

#[test]
fn rates_are_of_simulated_time_where_that_is_asked_for() {
    let world = World::new();
    // A point every ten seconds of a time that goes a thousand times as fast as the wall's.
    simulated(&world, 1, || {
        let hz = |more: &[&str]| world.start(&[&["topic", "hz", "/points"], more].concat());
        let (mut by_clock, mut by_wall) = (hz(&["-s"]), hz(&["-s", "--wall-time"]));
        let mut plain = hz(&[]);
        await_number(&mut by_clock, "average rate:", |it| 0.05 < it && it < 0.2);
        await_number(&mut by_wall, "average rate:", |it| 1.0 < it);
        await_number(&mut plain, "average rate:", |it| 1.0 < it);
        // By the wall's clock these stamps are of 1970.
        let mut delay = world.start(&["topic", "delay", "-s", "/points"]);
        await_number(&mut delay, "average delay:", |it| -100.0 < it && it < 1000.0);
        let mut delay = world.start(&["topic", "delay", "/points"]);
        await_number(&mut delay, "average delay:", |it| 1e9 < it);
        let mut bandwidth = world.start(&["topic", "bw", "--use-sim-time", "/points"]);
        bandwidth.out("B/s from");
    });
}

#[test]
fn simulated_time_paces_and_stamps_what_is_published() {
    let world = World::new();
    let publish = [
        "topic",
        "pub",
        "-s",
        "-w",
        "0",
        "-r",
        "0.0001",
        "-t",
        "3",
        "/x",
        "std_msgs/msg/Header",
        "{stamp: now}",
    ];
    // By the wall's clock this would take hours.
    simulated(&world, 5000, || {
        let out = world.run(&publish).good();
        let stamps: Vec<i64> = out
            .split("sec=")
            .skip(1)
            .step_by(2)
            .map(|it| it.split(',').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(stamps.len(), 3, "{out}");
        // The first goes out at once, perhaps before any time was told.
        assert!(stamps[1] % 5000 == 1000 && stamps[1] < stamps[2], "{out}");
        assert!(stamps[2] < 1_000_000_000, "{out}");
    });
}

#[test]
fn several_topics_are_measured_at_once() {
    let world = World::new();
    let publish = |topic: &str| {
        world.start(&[
            "topic",
            "pub",
            "-r",
            "50",
            "-p",
            "0",
            topic,
            "geometry_msgs/msg/PointStamped",
        ])
    };
    let _publishers = [publish("/a"), publish("/b"), publish("/_hidden")];
    world.run_until(&["topic", "list"], |it| it.out == "/a\n/b\n");
    let hidden = ["topic", "--include-hidden-topics", "list"];
    world.run_until(&hidden, |it| it.out == "/_hidden\n/a\n/b\n");
    for (verb, column) in [("hz", "rate"), ("bw", "bandwidth"), ("delay", "delay")] {
        let mut measuring = world.start(&["topic", verb, "/a", "b"]);
        measuring.out_each(&["Subscribed to [/a]", "Subscribed to [/b]"]);
        let title = measuring.out_line("topic");
        assert_eq!(title.split_whitespace().nth(1), Some(column), "{title}");
        measuring.out("/b ");
        let mut all = world.start(&["topic", verb, "--all", "--json"]);
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 2 {
            let line: serde_json::Value = serde_json::from_str(&all.out_line("topic")).unwrap();
            seen.insert(line["topic"].as_str().unwrap().to_owned());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["/a", "/b"]);
    }
}
