//! A forked child has no log and no time of simulations, and harms nothing by ending.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing_subscriber::layer::SubscriberExt;
use tsuji_node::WholeNode;
use tsuji_node::log::{Logging, Severity};
use tsuji_platform::fork::run_in_child;

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
fn a_child_logs_nothing_and_drops_a_whole_node() {
    let folder = Folder::new();
    let context = with_arguments(&folder, &["-p", "use_sim_time:=true"]);
    let logging = Logging::new(&context);
    let whole = WholeNode::builder(&context, &logging, "drive").build().unwrap();
    let subscriber = tracing_subscriber::registry().with(logging.rosout_layer());
    let whole = ManuallyDrop::new(whole);
    tracing::subscriber::with_default(subscriber, || {
        let speak = |spy: &Spy| tracing::error!(logger = "drive", ?spy, "spoken");
        let spy = Spy(AtomicBool::new(false));
        speak(&spy);
        assert!(spy.0.swap(false, Ordering::Relaxed) && whole.logger().is_enabled(Severity::Info));
        let mut body = || {
            // SAFETY: in the child this copy is the only one; the parent's is in another memory.
            let whole = unsafe { std::ptr::read(&*whole) };
            let is_enabled = whole.logger().is_enabled(Severity::Fatal);
            speak(&spy);
            drop(whole);
            !is_enabled && !spy.0.load(Ordering::Relaxed)
        };
        // SAFETY: the other threads are those of tsuji, whose locks a child does not take, and that of the test harness,
        // which waits.
        assert!(unsafe { run_in_child(&mut body) });
        speak(&spy);
        assert!(spy.0.load(Ordering::Relaxed));
    });
    // The parent's goes on.
    assert!(whole.clock().is_simulated());
    drop(ManuallyDrop::into_inner(whole));
}
