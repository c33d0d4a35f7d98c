//! The demonstration as its user runs it, with real processes.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tsuji::{Context, Qos};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_platform::child::{self, Signal};
use tsuji_platform::subprocess::{Ended, Subprocess};

/// Only there to end a hung test.
const HANG: Duration = Duration::from_secs(120);

/// A demonstration, killed when it hangs. Its own processes end with it.
struct Demo {
    process: Subprocess,
}

impl Demo {
    fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_program(env!("CARGO_BIN_EXE_tsuji-demo").as_ref(), arguments, environment)
    }

    fn start_program(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_remove("TSUJI_RUNTIME_DIR")
            .env_remove("TSUJI_POLICY")
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self { process: Subprocess::start(&mut command, Duration::ZERO).unwrap() }
    }

    fn runtime_dir(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/tsuji-demo-{}", self.process.id()))
    }

    /// Presses Ctrl-C.
    fn interrupt(&self) {
        assert!(self.process.signal(Signal::Interrupt));
    }

    /// The domain that it has taken, once it has.
    fn domain(&self) -> Option<u32> {
        let mut entries = std::fs::read_dir(self.runtime_dir()).ok()?.flatten();
        entries.find_map(|it| it.file_name().to_str()?.strip_prefix("domain-")?.parse().ok())
    }

    /// Waits until pictures have come, and answers the ids of the robot's processes.
    fn processes_at_work(&self) -> Vec<u32> {
        let begun = Instant::now();
        let domain = loop {
            assert!(begun.elapsed() < HANG);
            if let Some(domain) = self.domain() {
                break domain;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let context = Context::builder().runtime_dir(self.runtime_dir()).domain(domain).isolated();
        let context = context.build().unwrap();
        loop {
            assert!(begun.elapsed() < HANG);
            let routes = context.routes(HANG).unwrap();
            let at_work = routes.iter().filter(|it| 3 < it.samples).count();
            if at_work == 5 {
                let ends = routes.iter().flat_map(|it| [it.publisher.pid, it.subscription.pid]);
                let mut pids: Vec<u32> = ends.filter(|pid| *pid != self.process.id()).collect();
                pids.sort_unstable();
                pids.dedup();
                return pids;
            }
        }
    }

    fn end(mut self) -> Ended {
        let ended = self.process.finish(HANG).expect("the demonstration hangs");
        assert!(!self.runtime_dir().exists());
        ended
    }
}

/// A run-time folder, removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn is_alive(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

fn json(ended: &Ended) -> Value {
    let text = ended.output.join("\n");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[track_caller]
fn check_nothing_lost(summary: &Value, flows: usize) {
    assert_eq!(summary["ok"], true, "{summary:#}");
    assert_eq!(summary["flows"].as_array().unwrap().len(), flows);
    for flow in summary["flows"].as_array().unwrap() {
        assert_eq!((&flow["lost"], &flow["wrong"]), (&0.into(), &0.into()), "{flow:#}");
        assert_eq!(flow["sent"], flow["received"], "{flow:#}");
        assert!(flow["sent"].as_u64().unwrap() > 0, "{flow:#}");
    }
}

#[test]
fn a_plain_node_beside_it_hears_all_commands() {
    if std::env::var_os("TSUJI_PEER_ROS2_CLIENT").is_none() {
        assert!(std::env::var_os("CI").is_none(), "TSUJI_PEER_ROS2_CLIENT is not set");
        let _ = writeln!(std::io::stderr(), "skipped: TSUJI_PEER_ROS2_CLIENT is not set");
        return;
    }
    let ended = Demo::start_with(&["--seconds", "3", "--json"], &[("TSUJI_INTEROP", "rtps")]).end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, 6);
    let flows = summary["flows"].as_array().unwrap();
    let plain = flows.iter().find(|it| it["to"] == "/plain_listener").unwrap();
    assert_eq!(plain["route"]["transport"], "cyclonedds", "{plain:#}");
    assert_eq!(plain["route"]["subscription"]["vendor"], "RustDDS", "{plain:#}");
}

#[test]
fn it_ends_by_itself_and_nothing_is_lost() {
    let ended = Demo::start(&["--seconds", "3", "--json"]).end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, 5);
    let transport = |from: &str, to: &str| {
        let flows = summary["flows"].as_array().unwrap();
        let flow = flows.iter().find(|it| it["from"] == from && it["to"] == to).unwrap();
        flow["route"]["transport"].as_str().unwrap().to_owned()
    };
    assert_eq!(transport("/camera", "/detector"), "inproc");
    for (from, to) in [
        ("/camera", "/viewer"),
        ("/detector", "/viewer"),
        ("/viewer", "/operator"),
        ("/commander", "/base"),
    ] {
        assert_eq!(transport(from, to), "shm", "{from} {to}");
    }
}

#[test]
fn flows_change_their_transports_in_every_act_and_nothing_is_lost() {
    let ended = Demo::start(&["--seconds", "25", "--json"]).end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, 5);
    let acts = summary["story"]["acts"].as_array().unwrap();
    let transports = |act: &Value, to: &str| -> Vec<String> {
        let changes = act["changes"].as_array().unwrap().iter();
        let changes = changes.filter(|it| it["to"] == to && it["topic"] == "/camera/image");
        changes.map(|it| it["change"]["to"].as_str().unwrap().to_owned()).collect()
    };
    let there_and_back = ["cyclonedds", "shm"];
    for (at, (name, expect)) in [
        ("policy file", &there_and_back[..]),
        ("size", &there_and_back),
        ("memory", &[]),
        ("engine", &["cyclonedds", "shm", "cyclonedds", "shm"]),
        ("second viewer", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(acts[at]["name"], name);
        let found = transports(&acts[at], "/viewer");
        if name == "memory" {
            // On a busy machine readers give memory back meanwhile, and the flow comes and goes.
            let ends = [found.first(), found.last()].map(|it| it.map(String::as_str));
            assert_eq!(ends, [Some("cyclonedds"), Some("shm")], "{summary:#}");
        } else {
            assert_eq!(found, expect, "{name}: {summary:#}");
        }
    }
    assert_eq!(transports(&acts[4], "/guest"), ["inproc"], "{summary:#}");
    assert_eq!(summary["left_out"], Value::Array(Vec::new()));
}

#[test]
fn a_policy_of_the_users_own_is_left_alone() {
    let folder = Folder(std::env::temp_dir().join(format!("tsuji-own-{}", std::process::id())));
    std::fs::create_dir(&folder.0).unwrap();
    let policy = folder.0.join("policy.xml");
    let text = r#"<tsuji><rule scope="local" topic="/camera/image" use="cyclonedds"/></tsuji>"#;
    std::fs::write(&policy, text).unwrap();
    let arguments = ["--seconds", "25", "--json"];
    let demo = Demo::start_with(&arguments, &[("TSUJI_POLICY", policy.to_str().unwrap())]);
    demo.processes_at_work();
    demo.interrupt();
    let ended = demo.end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, 5);
    let left_out = summary["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 4, "{summary:#}");
    assert!(left_out.iter().all(|it| it["why"].as_str().unwrap().contains("TSUJI_POLICY")));
    let flows = summary["flows"].as_array().unwrap();
    let flow = flows.iter().find(|it| it["to"] == "/viewer" && it["topic"] == "/camera/image");
    assert_eq!(flow.unwrap()["route"]["transport"], "cyclonedds", "{summary:#}");
}

#[test]
fn without_a_terminal_it_prints_plain_text() {
    let ended = Demo::start(&["--seconds", "1"]).end();
    let text = ended.output.join("\n");
    assert!(ended.status.success(), "{text}");
    assert!(text.contains("Nothing lost") && !text.contains('\x1b'), "{text}");
    // Nobody has said how wide it may be.
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(80), "{text}");
}

#[test]
fn the_command_that_it_tells_looks_at_its_robot() {
    // A command of another name, to see with what it is started.
    let folder = Folder(std::env::temp_dir().join(format!("tsuji-command-{}", std::process::id())));
    std::fs::create_dir(&folder.0).unwrap();
    let program = folder.0.join("tsuji-demo");
    std::fs::copy(env!("CARGO_BIN_EXE_tsuji-demo"), &program).unwrap();
    let command = folder.0.join("tsuji");
    let text =
        "#!/bin/sh\necho \"$TSUJI_RUNTIME_DIR $ROS_AUTOMATIC_DISCOVERY_RANGE $ROS_DOMAIN_ID $@\"\n";
    std::fs::write(&command, text).unwrap();
    std::fs::set_permissions(&command, std::fs::Permissions::from_mode(0o755)).unwrap();
    let demo = Demo::start_program(&program, &["--seconds", "3600", "--plain"], &[]);
    let told = demo.process.output.find(HANG, |it| it.contains("routes --why")).unwrap();
    let shown = Command::new("sh").args(["-c", &told]).output().unwrap();
    let expect = format!("{} LOCALHOST ", demo.runtime_dir().display());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.starts_with(&expect) && shown.ends_with(" routes --why\n"), "{shown}");
    demo.processes_at_work();
    demo.interrupt();
    let ended = demo.end();
    assert!(ended.output.iter().any(|it| it.contains("Nothing lost")));
    assert!(ended.status.success());
}

#[test]
fn ctrl_c_ends_all_of_it_with_a_summary() {
    let demo = Demo::start(&["--seconds", "3600", "--json"]);
    let processes = demo.processes_at_work();
    assert_eq!(processes.len(), 4);
    // Twice, as from a terminal and from a program in between that passes it on.
    demo.interrupt();
    demo.interrupt();
    let ended = demo.end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, 5);
    assert!(processes.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_process_that_dies_is_told_and_ends_it() {
    let demo = Demo::start(&["--seconds", "3600", "--json"]);
    let processes = demo.processes_at_work();
    assert!(child::tell(processes[0], Signal::Kill));
    let ended = demo.end();
    assert_eq!(ended.status.code(), Some(1));
    let summary = json(&ended);
    assert_eq!(summary["ok"], false);
    let trouble = summary["troubles"][0].as_str().unwrap();
    assert!(trouble.contains("died") && trouble.contains("SIGKILL"), "{summary:#}");
    assert!(processes.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_killed_operator_leaves_no_process() {
    let demo = Demo::start(&["--seconds", "3600", "--json"]);
    let processes = demo.processes_at_work();
    assert!(demo.process.signal(Signal::Kill));
    let begun = Instant::now();
    while processes.iter().any(|pid| is_alive(*pid)) {
        assert!(begun.elapsed() < HANG);
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_dir_all(demo.runtime_dir()).unwrap();
}

#[test]
fn one_loan_reaches_both_the_process_and_the_other() {
    let folder = Folder(std::env::temp_dir().join(format!("tsuji-loan-{}", std::process::id())));
    let process =
        || Context::builder().runtime_dir(&folder.0).domain(9).isolated().build().unwrap();
    let (one, two) = (process(), process());
    let publisher =
        one.node("camera").unwrap().create_publisher::<Image>("image", Qos::DEFAULT).unwrap();
    let same = one
        .node("detector")
        .unwrap()
        .create_polled_subscription::<Image>("image", Qos::DEFAULT)
        .unwrap();
    let other = two
        .node("viewer")
        .unwrap()
        .create_polled_subscription::<Image>("image", Qos::DEFAULT)
        .unwrap();
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let mut loan = publisher.loan(&Image::default(), 100_000).unwrap();
    loan.data_mut().fill(7);
    let drawn_at = loan.bytes().as_ptr();
    publisher.publish(loan).unwrap();
    let received = same.take().unwrap().unwrap();
    assert_eq!(received.bytes().unwrap().as_ptr(), drawn_at);
    let mut set = tsuji::WaitSet::new(&two).unwrap();
    set.add(&other).unwrap();
    let received = loop {
        if let Some(received) = other.take().unwrap() {
            break received;
        }
        set.wait(HANG).unwrap();
    };
    assert!(received.view().data.iter().all(|byte| *byte == 7));
}
