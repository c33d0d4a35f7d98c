//! Worlds of their own, and nodes that are spun.
#![allow(dead_code, reason = "each test binary uses its part")]

#[path = "child.rs"]
pub(crate) mod child;
#[path = "peer.rs"]
pub(crate) mod peer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tsuji::{Context, Executor, Node};

/// Only there to end a hung test.
pub(crate) const HANG: Duration = Duration::from_secs(60);
pub(crate) const DOMAIN: u32 = 7;

/// A run-time folder of its own.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tsuji_platform::process::temporary_path("tsuji-node"))
    }

    /// A context as of a process of its own.
    pub(crate) fn process(&self) -> Context {
        Context::builder().runtime_dir(&self.0).domain(DOMAIN).isolated().build().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A context with these arguments.
pub(crate) fn with_arguments(folder: &Folder, arguments: &[&str]) -> Context {
    let arguments = ["program", "--ros-args"].iter().chain(arguments).map(|&it| it.to_owned());
    let builder = Context::builder().runtime_dir(&folder.0).domain(DOMAIN).isolated();
    builder.args(arguments).build().unwrap()
}

/// A hang is cut by the watchdog of the tests.
pub(crate) fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

/// Spins `node` on a thread of its own while `body` runs.
pub(crate) fn spun<T>(node: &Node, body: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    let mut executor = Executor::new(node.context()).unwrap();
    executor.add(node).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                executor.spin_once(Duration::from_millis(20)).unwrap();
            }
        });
        let _end = SetAtEnd(&done);
        body()
    })
}

/// Sets a flag when dropped, so that a failed test does not wait for its own threads.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
