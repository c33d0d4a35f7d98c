//! What the tests with real processes share: folders of their own, children that are this same
//! test binary, and watchdogs.
#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]

pub(crate) mod foreign;
pub(crate) mod lan;
pub(crate) mod links;
pub(crate) mod log;
pub(crate) mod relay;
pub(crate) mod world;

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use tsuji::{Context, History, Node, Qos, Reliability, Subscription, WaitSet};

pub(crate) use self::world::child::{Child, heard, role, tell};
pub(crate) use self::world::peer::{Peer, free_port, rclrs, ros_wheels, ros2_client};
pub(crate) use self::world::{DOMAIN, Folder, HANG, SetAtEnd, spun};

impl Folder {
    /// The sockets of those who are there, or were.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.join(format!("domain-{DOMAIN}")));
        let entries = entries.into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        // Locks are no sockets.
        paths.filter(|path| path.extension().is_none_or(|it| it != "lock")).collect()
    }
}

/// A context of this process by the environment, as a user's program makes it.
pub(crate) fn context() -> Context {
    Context::new().unwrap()
}

pub(crate) fn keep_all() -> Qos {
    Qos { history: History::KeepAll, ..Qos::DEFAULT }
}

pub(crate) fn keep_last(depth: u32) -> Qos {
    Qos { history: History::KeepLast(depth), ..Qos::DEFAULT }
}

pub(crate) fn best_effort(depth: u32) -> Qos {
    Qos { reliability: Reliability::BestEffort, ..keep_last(depth) }
}

/// A figure of the shm transport.
pub(crate) fn figure(context: &Context, name: &str) -> u64 {
    let reports = context.transports();
    let shm = reports.iter().find(|it| it.name == "shm").unwrap();
    shm.figures.iter().find(|(it, _)| it == name).unwrap().1
}

/// Takes messages as they come, until `each` has enough.
#[track_caller]
pub(crate) fn take_until<M: tsuji::Message>(
    node: &Node,
    subscription: &Subscription<M>,
    mut each: impl FnMut(tsuji::Received<M>) -> bool,
) {
    let mut set = WaitSet::new(node.context()).unwrap();
    set.add(subscription).unwrap();
    loop {
        match subscription.take().unwrap() {
            Some(received) => {
                if each(received) {
                    return;
                }
            }
            None => assert!(!set.wait(HANG).unwrap().is_empty(), "no message comes"),
        }
    }
}

/// The next message.
#[track_caller]
pub(crate) fn take<M: tsuji::Message>(
    node: &Node,
    subscription: &Subscription<M>,
) -> std::sync::Arc<M> {
    let mut taken = None;
    take_until(node, subscription, |received| {
        taken = Some(received.message());
        true
    });
    taken.unwrap()
}

/// Asks again and again, since there is no event to wait for; a watchdog ends it.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < HANG, "it does not happen: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Aborts the process if the test neither ends nor goes on, so that a hang in a destructor is cut too.
pub(crate) struct Watchdog {
    goes_on: std::sync::mpsc::Sender<()>,
}

impl Watchdog {
    pub(crate) fn start(name: &'static str) -> Self {
        tsuji_conformance::remember_panics();
        let (goes_on, told) = channel::<()>();
        std::thread::spawn(move || {
            loop {
                match told.recv_timeout(HANG + HANG / 2) {
                    Ok(()) => (),
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                        tsuji_conformance::cut(name);
                    }
                }
            }
        });
        Self { goes_on }
    }

    /// A round of the test is over: the next one may take as long again.
    pub(crate) fn goes_on(&self) {
        // It listens as long as this is there.
        let _ = self.goes_on.send(());
    }
}

/// Open descriptors of this process.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Threads of this process.
pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Places of this process's memory where an arena of samples is mapped.
pub(crate) fn arenas_mapped() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("tsuji-arena")).count()
}

/// Kills in each of the long tests: 100 unless the environment says otherwise, as an emulated
/// machine may.
pub(crate) fn kills() -> u64 {
    let said = std::env::var("TSUJI_KILLS").ok().and_then(|it| it.parse().ok());
    said.unwrap_or(100)
}

/// Resident memory of this process in KiB.
pub(crate) fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// A small pseudo-random sequence, the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
