//! Worlds of their own, and nodes that are spun.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tsuji::{Context, Executor, Node};

/// Only there to end a hung test.
pub(crate) const HANG: Duration = Duration::from_secs(30);
pub(crate) const DOMAIN: u32 = 7;

/// A run-time folder of its own.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("tsuji-node-{}-{number}", std::process::id())))
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

/// Spins `node` on a thread of its own while `body` runs.
pub(crate) fn spun<T>(node: &Node, body: impl FnOnce() -> T) -> T {
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let done = AtomicBool::new(false);
    let mut executor = Executor::new(node.context()).unwrap();
    executor.add(node).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                executor.spin_once(Duration::from_millis(20)).unwrap();
            }
        });
        let _end = End(&done);
        body()
    })
}
