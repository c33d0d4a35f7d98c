//! What the tests with real processes share: folders of their own, children that are this same
//! test binary, and watchdogs.
//!
//! A test file that starts children has an ignored test named `child` that calls [`role`].
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod lan;
pub(crate) mod log;
pub(crate) mod relay;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tsuji::{Context, History, Node, Qos, Reliability, Subscription, WaitSet};

pub(crate) mod foreign;
pub(crate) mod links;

/// Only there to end a hung test.
pub(crate) const HANG: Duration = Duration::from_secs(30);

/// A run-time folder of its own, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("tsuji-fault-{}-{number}", std::process::id())))
    }

    /// A context that behaves as a process of its own.
    pub(crate) fn process(&self) -> Context {
        Context::builder().runtime_dir(&self.0).domain(DOMAIN).isolated().build().unwrap()
    }

    /// The sockets of those who are there, or were.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.join(format!("domain-{DOMAIN}")));
        let entries = entries.into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        // The lock of whoever watches stays, and is no socket.
        paths.filter(|path| !path.ends_with("watch.lock")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) const DOMAIN: u32 = 7;

/// Starts a program that is spoken with by lines. Of those that it writes come what `said` makes of them.
pub(crate) fn spawn(
    mut command: Command,
    said: impl Fn(String) -> Option<String> + Send + 'static,
) -> (std::process::Child, Option<ChildStdin>, Receiver<String>) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let input = process.stdin.take();
    let output = BufReader::new(process.stdout.take().unwrap());
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok).filter_map(said) {
            let _ = sender.send(line);
        }
    });
    (process, input, lines)
}

/// A child process: this test binary, playing a role. Killed when dropped, and when this process
/// dies.
pub(crate) struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
    input: Option<ChildStdin>,
    /// Its id as it says itself, where no pid namespace is between.
    pub(crate) pid: i32,
}

impl Child {
    pub(crate) fn start(folder: &Folder, role: &str) -> Self {
        Self::start_in(&[], &folder.0, role, &[])
    }

    pub(crate) fn start_with(folder: &Folder, role: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_in(&[], &folder.0, role, environment)
    }

    /// Below another program, such as `unshare -m`.
    pub(crate) fn start_in(
        wrapper: &[&str],
        folder: &Path,
        role: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut command = match wrapper {
            [] => Command::new(own),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(own);
                command
            }
        };
        command.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env("TSUJI_ROLE", role).env("TSUJI_RUNTIME_DIR", folder);
        command.env("ROS_DOMAIN_ID", DOMAIN.to_string());
        command.envs(environment.iter().copied());
        // A line of the harness may stand before what the child says.
        let said = |line: String| line.split_once("@ ").map(|(_, said)| said.to_owned());
        let (process, input, lines) = spawn(command, said);
        let mut child = Self { process, lines, input, pid: 0 };
        child.pid = child.expect("pid ").parse().unwrap();
        child
    }

    /// The next line that the child says.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(HANG).expect("the child says nothing, or died")
    }

    /// The next line, if the child has said one.
    pub(crate) fn line_if_any(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// The rest of the next line, which begins with `prefix`.
    #[track_caller]
    pub(crate) fn expect(&self, prefix: &str) -> String {
        let line = self.line();
        let rest = line.strip_prefix(prefix);
        rest.unwrap_or_else(|| panic!("expected {prefix:?}, the child said {line:?}")).to_owned()
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: a child that was not waited for yet.
        assert_eq!(unsafe { libc::kill(self.process.id() as i32, signal) }, 0);
    }

    /// Kills it, at whatever instruction it is.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// Waits until it has ended in good order.
    pub(crate) fn finish(mut self) {
        self.input = None;
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Whether it lives no more.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Waits until a signal ends it, and says which.
    pub(crate) fn ended_by(mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        self.process.wait().unwrap().signal()
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

/// The role that this process was started to play.
pub(crate) fn role() -> String {
    // SAFETY: only asks to be killed when the parent dies.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    tell(&format!("pid {}", std::process::id()));
    std::env::var("TSUJI_ROLE").unwrap_or_default()
}

/// Tells the parent a line, past the capture of the test harness.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("@ {line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The next line of the parent; empty when it is gone or wants the child to end.
pub(crate) fn heard() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim_end().to_owned()
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

/// Sets a flag when dropped, so that a failed test does not wait for its own threads.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
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
