//! Simulated time, as it is turned on and moved from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tsuji::Context;
use tsuji_node::WholeNode;
use tsuji_node::log::Logging;

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
    let logging = Logging::new(&context);
    let whole = WholeNode::builder(&context, &logging, "drive").build().unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&calls);
    let count = move || {
        counting.fetch_add(1, Ordering::AcqRel);
    };
    let _timer = whole.create_timer(Duration::from_secs(3600), count).unwrap();
    let set = |value: &str| world.run(&["param", "set", "/drive", "use_sim_time", value]);
    spun(whole.node(), || {
        let error = set("7").bad(1);
        assert!(error.contains("{use_sim_time} is of type {bool}"), "{error}");
        assert_eq!(set("true").good(), "Set parameter successful\n");
        assert_eq!(whole.clock().now_ns(), 0);
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
        let clock = whole.clock();
        publish(50, &|| clock.now_ns() == 50_000_000_000);
        // Two hours at once are one call.
        publish(7300, &|| calls.load(Ordering::Acquire) == 1);
        assert_eq!(clock.now_ns(), 7_300_000_000_000);
        assert_eq!(set("false").good(), "Set parameter successful\n");
        assert!(!clock.is_simulated());
    });
    assert_eq!(calls.load(Ordering::Acquire), 1);
}
