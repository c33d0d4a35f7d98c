//! Two peers, each a process, on this machine's interfaces and on a loopback of their own.
//!
//! What begins with `everywhere_` is run three times: here, and in two network namespaces that have nothing but `lo`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// No test waits longer than this for the next line: then something hangs.
const WATCHDOG: Duration = Duration::from_secs(120);

/// A process of the peer. It is killed when the test has done with it, whatever it does.
struct Process {
    command: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: ChildStderr,
}

impl Process {
    fn start(command: &str) -> Self {
        // Others may be on this machine; the names of the topics keep us apart from those in our domain.
        let domain = (1 + std::process::id() % 100).to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_ros2-client-peer"))
            .args(["--domain", &domain])
            .args(command.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let errors = child.stderr.take().unwrap();
        let input = child.stdin.take();
        Self { command: command.to_owned(), child, input, lines, errors }
    }

    /// One that has its endpoints.
    fn ready(command: &str) -> Self {
        let mut process = Self::start(command);
        process.line_is("ready");
        process
    }

    fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(WATCHDOG) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("`{}` hangs", self.command),
        }
    }

    fn line_is(&mut self, expect: &str) {
        let lines = self.lines_until("");
        assert_eq!(lines, [expect], "`{}`", self.command);
    }

    /// Its lines until one of them holds `part`.
    fn lines_until(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.line() {
            lines.push(line);
            if lines.last().is_some_and(|it| it.contains(part)) {
                return lines;
            }
        }
        let said = self.said();
        panic!("`{}` ended without `{part}`: {lines:?} {said}", self.command);
    }

    fn write_line(&mut self) {
        self.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    fn close_input(&mut self) {
        self.input = None;
    }

    fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// That it ends, and how.
    fn ends(mut self, code: i32) -> String {
        while self.line().is_some() {}
        let status = self.child.wait().unwrap();
        let said = self.said();
        assert_eq!(ExitStatus::code(&status), Some(code), "`{}`: {said}", self.command);
        said
    }

    /// What it said on standard error until it ended.
    fn said(&mut self) -> String {
        let mut said = String::new();
        let _ = self.errors.read_to_string(&mut said);
        said
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A name of this test process only.
fn own(name: &str) -> String {
    format!("/{name}_{}", std::process::id())
}

/// `count` messages from `talk` to `listen`, none lost.
fn check_topic(name: &str, flags: &str, talk_flags: &str, count: u64, bytes_of_last: usize) {
    let topic = own(name);
    let mut listen = Process::ready(&format!("listen {topic} {flags} --count {count}"));
    let talk =
        Process::ready(&format!("talk {topic} {flags} {talk_flags} --count {count} --wait-for 1"));
    let lines = listen.lines_until("done");
    let numbers: Vec<u64> = lines
        .iter()
        .filter_map(|it| it.strip_prefix("received ")?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
    let last = [format!("received {count} {bytes_of_last}"), format!("done {count} lost 0")];
    assert_eq!(lines[lines.len() - 2..], last);
    listen.ends(0);
    talk.ends(0);
}

#[test]
fn everywhere_a_thousand_messages_come_whole_and_in_order() {
    check_topic("chatter", "--type std_msgs/String --reliable", "--rate 500", 1000, 10);
}

#[test]
fn everywhere_images_come_whole_and_in_order() {
    check_topic("image", "--type sensor_msgs/Image --reliable", "--rate 10", 20, 921_600);
}

#[test]
fn everywhere_other_types_and_qos() {
    check_topic("twist", "--type geometry_msgs/Twist --depth 100", "--rate 100", 20, 48);
    check_topic("long", "--type std_msgs/String", "--rate 50 --bytes 100000", 20, 100_000);
}

#[test]
fn everywhere_best_effort_loses_nothing_but_what_it_counts() {
    let topic = own("best_effort");
    let mut listen = Process::ready(&format!("listen {topic} --best-effort --until-gone"));
    let talk =
        Process::ready(&format!("talk {topic} --best-effort --rate 100 --count 50 --wait-for 1"));
    let lines = listen.lines_until("done");
    let received = lines.iter().filter(|it| it.starts_with("received")).count();
    let done = lines.last().unwrap();
    assert!(done.starts_with(&format!("done {received} lost ")), "{done}");
    listen.ends(0);
    talk.ends(0);
}

#[test]
fn everywhere_who_comes_late_hears_what_was_said() {
    let topic = own("late");
    let mut talk = Process::ready(&format!("talk {topic} --transient-local --count 5 --rate 0"));
    talk.line_is("sent 5");
    let mut listen = Process::ready(&format!("listen {topic} --transient-local --count 5"));
    listen.lines_until("done 5 lost 0");
    listen.ends(0);
    talk.close_input();
    talk.ends(0);
}

#[test]
fn everywhere_services_answer() {
    for mapping in ["cyclone", "enhanced"] {
        let name = own(mapping);
        let mut serve = Process::ready(&format!("serve {name} --mapping {mapping}"));
        let mut call = Process::ready(&format!("call {name} -2 44 --count 20 --mapping {mapping}"));
        for _ in 0..20 {
            call.line_is("sum 42");
            serve.line_is("served -2 44");
        }
        call.ends(0);
        serve.close_input();
        serve.ends(0);
    }
}

#[test]
fn everywhere_the_graph_shows_nodes_and_topics() {
    let topic = own("seen");
    let mut talk =
        Process::ready(&format!("talk {topic} --node /robot/eye_{}", std::process::id()));
    let node = format!("/robot{}", own("eye"));
    let mut graph = Process::ready(&format!("graph --until-node {node} --until-topic {topic}"));
    let mut lines = Vec::new();
    while let Some(line) = graph.line() {
        lines.push(line);
    }
    graph.ends(0);
    let has = |parts: &[&str]| lines.iter().any(|line| parts.iter().all(|it| line.contains(it)));
    assert!(has(&["\"vendor\":\"0112\""]), "{lines:#?}");
    let writer = format!("\"writer\":\"rt{topic}\"");
    assert!(has(&[&writer, "std_msgs::msg::dds_::String_", "\"reliable\""]), "{lines:#?}");
    assert!(has(&[&format!("\"node\":\"{node}\"")]), "{lines:#?}");
    talk.close_input();
    talk.ends(0);
}

#[test]
fn everywhere_who_holds_waits_for_a_line() {
    let (topic, service) = (own("held"), own("held_service"));
    let mut listen = Process::ready(&format!("listen {topic} --count 3"));
    let mut talk = Process::ready(&format!("talk {topic} --hold --wait-for 1 --count 3 --rate 0"));
    talk.line_is("matched");
    talk.write_line();
    listen.lines_until("done 3 lost 0");
    listen.ends(0);
    talk.ends(0);
    let _serve = Process::ready(&format!("serve {service}"));
    let mut call = Process::ready(&format!("call {service} 1 2 --hold"));
    call.line_is("matched");
    call.write_line();
    call.line_is("sum 3");
    call.ends(0);
}

#[test]
fn a_peer_ends_when_it_is_told_to() {
    let mut serve = Process::ready(&format!("serve {}", own("told")));
    serve.close_input();
    serve.ends(0);
    let talk = Process::ready(&format!("talk {}", own("told")));
    talk.terminate();
    talk.ends(0);
    let mut listen = Process::ready(&format!("listen {} --count 3", own("told")));
    listen.terminate();
    listen.line_is("done 0 lost 0");
    assert!(listen.ends(4).contains("interrupted: waited for message 1 of 3 on /told"));
}

#[test]
fn a_peer_says_what_it_waited_for() {
    let check = |command: &str, words: &str| {
        let said = Process::ready(&format!("{command} --timeout 0.2")).ends(3);
        assert!(said.contains(&format!("timeout: waited for {words}")), "{said}");
    };
    let name = own("nobody");
    check(&format!("listen {name} --count 3"), &format!("message 1 of 3 on {name}"));
    check(&format!("talk {name} --wait-for 2"), &format!("2 subscriptions of {name}"));
    check(&format!("call {name} 1 2"), &format!("a server of {name}"));
    check(&format!("graph --until-node {name}"), &format!("node {name}"));
    check(&format!("graph --until-topic {name}"), &format!("topic {name}"));
}

#[test]
fn a_wrong_command_line_is_refused() {
    Process::start("listen").ends(2);
    Process::start("talk /a --reliable --best-effort").ends(2);
    Process::start("talk /a --rate -1").ends(2);
    Process::start("talk /not-a-name").ends(1);
}

/// Runs all of `everywhere_` in a network namespace that `setup` has prepared. Never more than 8 participants at once:
/// without multicast RustDDS finds 12.
fn check_namespace(setup: &str) {
    let possible = Command::new("unshare").args(["-rn", "true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|it| it.success()) {
        eprintln!("NOT RUN: this machine allows no network namespace (unshare -rn)");
        return;
    }
    let script = format!("{setup} && exec \"$0\" everywhere_ --test-threads 4");
    let output = Command::new("unshare")
        .args(["-rn", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("8 passed"), "{said}");
}

#[test]
fn loopback_alone() {
    check_namespace("ip link set lo up");
}

#[test]
fn loopback_with_multicast() {
    check_namespace("ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo");
}
