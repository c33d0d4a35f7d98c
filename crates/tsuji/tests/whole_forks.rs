//! A forked child has no log and no time of simulations, and harms nothing by ending.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tracing_subscriber::layer::SubscriberExt;
use tsuji::ErrorKind;
use tsuji::log::Severity;
use tsuji_platform::fork::run_in_child;
use tsuji_platform::process::thread_names;

#[path = "house/world.rs"]
mod world;
use world::{Folder, with_arguments};

/// Knows whether it was written out.
struct Spy(AtomicBool);

impl fmt::Debug for Spy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.store(true, Ordering::Relaxed);
        f.write_str("spy")
    }
}

#[test]
fn a_child_logs_nothing_and_drops_a_node() {
    let folder = Folder::new();
    let context = with_arguments(&folder, &["-p", "use_sim_time:=true"]);
    let node = context.node("drive").unwrap();
    let clock = node.clock().unwrap();
    let logger = node.logger();
    let subscriber = tracing_subscriber::registry().with(context.logging().rosout_layer());
    let node = ManuallyDrop::new(node);
    tracing::subscriber::with_default(subscriber, || {
        let speak = |spy: &Spy| tracing::error!(logger = "drive", ?spy, "spoken");
        let spy = Spy(AtomicBool::new(false));
        speak(&spy);
        assert!(spy.0.swap(false, Ordering::Relaxed) && logger.is_enabled(Severity::Info));
        let mut body = || {
            // SAFETY: in the child this copy is the only one; the parent's is in another memory.
            let node = unsafe { std::ptr::read(&*node) };
            let is_enabled = [&logger, &node.logger()].map(|it| it.is_enabled(Severity::Fatal));
            let is_closed = node.parameters().is_err_and(|it| it.kind() == ErrorKind::Closed)
                && node.clock().is_err();
            speak(&spy);
            tsuji::error!(logger, ?spy, "spoken");
            drop(node);
            is_enabled == [false; 2] && is_closed && !spy.0.load(Ordering::Relaxed)
        };
        // SAFETY: the other threads are those of tsuji, whose locks a child does not take, and that of the test harness,
        // which waits.
        assert!(unsafe { run_in_child(&mut body) });
        speak(&spy);
        assert!(spy.0.load(Ordering::Relaxed));
    });
    // The parent's goes on.
    assert!(clock.is_simulated());
    drop(ManuallyDrop::into_inner(node));
    assert!(!clock.is_simulated());
}

/// Lines that wait keep what publishes them, and who publishes the last of them ends it.
#[test]
fn a_log_that_is_left_with_lines_in_it_ends() {
    for _ in 0..20 {
        let folder = Folder::new();
        let context = with_arguments(&folder, &["--disable-stdout-logs"]);
        let node = context.node("drive").unwrap();
        let logger = node.logger();
        (0..1000).for_each(|line| tsuji::info!(logger, "line {line}"));
        context.shutdown();
        drop((logger, node, context));
    }
    let publishes = || thread_names().unwrap().values().filter(|it| **it == "tsuji-rosout").count();
    while publishes() != 0 {
        thread::yield_now();
    }
}
