//! Nodes that nobody here wrote, as real processes: those of ros2-client on RustDDS, and those of hiroz with its router.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tsuji_platform::child::{self, Signal};
use tsuji_platform::subprocess::Subprocess;

use super::HANG;

/// Such a node in a process of its own.
pub(crate) struct Peer(Subprocess);

impl Peer {
    /// A node of ros2-client in `domain`, which ends when its input does.
    pub(crate) fn ros2_client(program: &OsStr, domain: u32, arguments: &str) -> Self {
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace()).args(["--domain", &domain.to_string()]);
        command.args(["--address", "127.0.0.1", "--timeout", &HANG.as_secs().to_string()]);
        // One that is killed is taken for alive for 50 s more.
        Self::started(command, HANG)
    }

    /// Any that says "ready" first. Killed when dropped.
    pub(crate) fn of(command: Command) -> Self {
        Self::started(command, Duration::ZERO)
    }

    /// A node of hiroz, or a router. Killed when dropped.
    pub(crate) fn hiroz(arguments: &str, variables: &[(&str, String)]) -> Self {
        let mut command = Command::new(std::env::var_os("TSUJI_PEER_HIROZ").unwrap());
        command.args(arguments.split_whitespace());
        command.envs(variables.iter().map(|(name, value)| (*name, value)));
        Self::started(command, Duration::ZERO)
    }

    /// A node of rclpy in `domain`, by Python with the wheels of ROS 2, which looks for others on this host alone.
    pub(crate) fn ros_wheels(python: &Path, role: &str, domain: u32) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ros_wheels/peer.py");
        let mut command = Command::new(python);
        command.args([script, role]).env("ROS_DOMAIN_ID", domain.to_string());
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        Self::started(command, HANG)
    }

    /// A node of rclrs on this rmw, `tsuji` or `fastrtps`, which ends when its input does. The program is that of scripts/rclrs.
    pub(crate) fn rclrs(program: &OsStr, rmw: &str, runtime_folder: &Path, domain: u32) -> Self {
        let mut command = Command::new(program);
        command.arg(rmw).env("ROS_DOMAIN_ID", domain.to_string());
        command.env("TSUJI_RUNTIME_DIR", runtime_folder);
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        Self::started(command, HANG)
    }

    /// Starts one, and waits until it is ready. What it says before that stays to be read: a late joiner hears while it is
    /// being made.
    fn started(mut command: Command, grace: Duration) -> Self {
        child::bind(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let process = Subprocess::start(&mut command, grace).unwrap();
        process.output.find(HANG, |it| it == "ready").expect("the peer is not ready, or died");
        Self(process)
    }

    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.line_within(HANG).expect("the peer says nothing more, or died")
    }

    /// Its next line, if it says one in this time.
    pub(crate) fn line_within(&self, timeout: Duration) -> Option<String> {
        self.0.output.next(timeout).ok()
    }

    /// The lines that it has said already, each taken when it is asked for.
    pub(crate) fn lines_so_far(&self) -> impl Iterator<Item = String> {
        std::iter::from_fn(|| self.0.output.try_next())
    }

    /// Waits for a line that begins so. Those before it are passed over.
    #[track_caller]
    pub(crate) fn expect(&self, prefix: &str) -> String {
        loop {
            let line = self.line();
            if line.starts_with(prefix) {
                return line;
            }
        }
    }

    /// Its next lines are these.
    #[track_caller]
    pub(crate) fn says(&self, expect: &[&str]) {
        for expect in expect {
            assert_eq!(self.line(), *expect);
        }
    }

    /// Lets one that holds go on.
    pub(crate) fn go_on(&mut self) {
        self.0.tell("").unwrap();
    }

    /// Closes its input, which ends it, and waits until it has.
    pub(crate) fn end(mut self) {
        self.0.close_input();
        self.0.wait().unwrap();
    }

    /// Waits until it has ended by itself, in good order.
    pub(crate) fn finish(mut self) {
        assert!(self.0.wait().unwrap().success());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        assert!(self.0.signal(signal));
    }

    pub(crate) fn kill(mut self) {
        self.0.kill();
    }
}

/// The program of the nodes of ros2-client, unless it is not built. `make test` builds it, and says where it is.
pub(crate) fn ros2_client() -> Option<OsString> {
    let program = named("TSUJI_PEER_ROS2_CLIENT");
    assert!(
        program.is_some() || std::env::var_os("CI").is_none(),
        "TSUJI_PEER_ROS2_CLIENT is not set"
    );
    program
}

/// Python with the wheels of ROS 2, unless none are named.
pub(crate) fn ros_wheels() -> Option<PathBuf> {
    Some(PathBuf::from(named("TSUJI_ROS_WHEELS")?).join("bin/python"))
}

/// The program of a node of rclrs, unless none is named. `scripts/rclrs` makes it.
pub(crate) fn rclrs() -> Option<OsString> {
    named("TSUJI_RCLRS")
}

/// What this variable names; where it names nothing, that is told.
fn named(variable: &str) -> Option<OsString> {
    let value = std::env::var_os(variable);
    if value.is_none() {
        let _ = writeln!(std::io::stderr(), "skipped: {variable} is not set");
    }
    value
}

/// A port for a router that goes and comes back, which no connection is given meanwhile: those have ports from 32768 on.
pub(crate) fn free_port(domain: u32) -> u16 {
    let first = std::process::id().wrapping_mul(101).wrapping_add(domain * 53) % 10_000;
    let all = (0..10_000).map(|it| 20_000 + ((first + it * 97) % 10_000) as u16);
    let mut free = all.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().unwrap()
}
