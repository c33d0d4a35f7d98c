//! The demonstration as its user runs it, with real processes.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tsuji::action::GoalStatus;
use tsuji::parameter::{Parameter, ParameterClient, ParameterValue};
use tsuji::{Context, Node, Qos, WaitSet};
use tsuji_interfaces::geometry_msgs::msg::{Point, Twist};
use tsuji_interfaces::nav_msgs::msg::Odometry;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_srvs::srv::{SetBool, SetBoolRequest};
use tsuji_interfaces::tsuji_demo_msgs::action::{DriveTo, DriveToGoal};
use tsuji_platform::child::{self, Signal};
use tsuji_platform::subprocess::{Ended, Subprocess};

/// The topics of the robot, and how many flows they have without a foreign node.
const TOPICS: [&str; 6] = ["/camera/image", "/car", "/viewer/small", "/cmd_vel", "/odom", "/scan"];
const FLOWS: usize = 8;

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

    /// A context among its processes.
    fn context(&self) -> Context {
        let begun = Instant::now();
        let domain = loop {
            assert!(begun.elapsed() < HANG);
            if let Some(domain) = self.domain() {
                break domain;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let builder = Context::builder().runtime_dir(self.runtime_dir()).domain(domain);
        builder.isolated().build().unwrap()
    }

    /// Waits until pictures have come, and answers the ids of the robot's processes.
    fn processes_at_work(&self) -> Vec<u32> {
        let (begun, context) = (Instant::now(), self.context());
        loop {
            assert!(begun.elapsed() < HANG);
            let mut routes = context.routes(HANG).unwrap();
            routes.retain(|it| TOPICS.contains(&&*it.topic));
            let at_work = routes.iter().filter(|it| 3 < it.samples).count();
            if at_work == FLOWS {
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

/// The command of tsuji beside the demo. Where it is not built, the test says so.
fn command_beside() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_tsuji-demo")).with_file_name("tsuji");
    if beside.is_file() {
        return Some(beside);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is not built", beside.display());
    let _ = writeln!(std::io::stderr(), "skipped: {} is not built", beside.display());
    None
}

/// Waits for so many odometry messages in a row that are as wanted.
fn wait_for_odometry(
    context: &Context,
    node: &Node,
    in_a_row: u32,
    mut is_wanted: impl FnMut(Twist, Point) -> bool,
) {
    let odometry = node.create_polled_subscription::<Odometry>("/odom", Qos::DEFAULT).unwrap();
    let mut set = WaitSet::new(context).unwrap();
    set.add(&odometry).unwrap();
    let (begun, mut found) = (Instant::now(), 0);
    while found < in_a_row {
        assert!(begun.elapsed() < HANG);
        set.wait(HANG).unwrap();
        while let Some(received) = odometry.take().unwrap() {
            let (twist, place) = (received.view().twist.twist, received.view().pose.pose.position);
            found = if is_wanted(twist, place) { found + 1 } else { 0 };
        }
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
fn a_foreign_node_beside_it_hears_all_commands() {
    if std::env::var_os("TSUJI_PEER_ROS2_CLIENT").is_none() {
        assert!(std::env::var_os("CI").is_none(), "TSUJI_PEER_ROS2_CLIENT is not set");
        let _ = writeln!(std::io::stderr(), "skipped: TSUJI_PEER_ROS2_CLIENT is not set");
        return;
    }
    let ended = Demo::start_with(&["--seconds", "3", "--json"], &[("TSUJI_INTEROP", "rtps")]).end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, FLOWS + 1);
    let flows = summary["flows"].as_array().unwrap();
    let foreign = flows.iter().find(|it| it["to"] == "/foreign").unwrap();
    assert_eq!(foreign["route"]["transport"], "cyclonedds", "{foreign:#}");
    assert_eq!(foreign["route"]["subscription"]["vendor"], "RustDDS", "{foreign:#}");
}

#[test]
fn it_ends_by_itself_and_nothing_is_lost() {
    let ended = Demo::start(&["--seconds", "3", "--json"]).end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, FLOWS);
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
        ("/driver", "/base"),
        ("/base", "/driver"),
        ("/base", "/camera"),
    ] {
        assert_eq!(transport(from, to), "shm", "{from} {to}");
    }
}

#[test]
fn flows_change_their_transports_in_every_act_and_nothing_is_lost() {
    let ended = Demo::start(&["--seconds", "27", "--json"]).end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, FLOWS);
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
    for transport in ["inproc", "shm", "cyclonedds"] {
        let took = summary["story"]["picture_latency_us"][transport].as_f64();
        assert!(took.is_some_and(|it| 0.0 < it), "{transport}: {summary:#}");
    }
    let tour = &summary["tour"];
    assert!(0 < tour["places"].as_u64().unwrap() && tour["missed"] == 0, "{tour}");
}

#[test]
fn as_components_it_is_the_same_robot_in_one_process() {
    let ended = Demo::start(&["--seconds", "3", "--components", "--json"]).end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, FLOWS);
    for flow in summary["flows"].as_array().unwrap() {
        // The operator is no part of the robot.
        let expect = if flow["to"] == "/operator" { "shm" } else { "inproc" };
        assert_eq!(flow["route"]["transport"], expect, "{flow:#}");
    }
    assert_eq!(summary["left_out"].as_array().unwrap().len(), 5, "{summary:#}");
}

#[test]
fn the_robot_drives_where_anybody_sends_it_obeys_a_parameter_and_stands_without_motors() {
    let demo = Demo::start(&["--seconds", "3600", "--json", "--no-page"]);
    demo.processes_at_work();
    let context = demo.context();
    let node = context.node("visitor").unwrap();
    let client = node.create_action_client::<DriveTo>("/drive_to").unwrap();
    let drive = |x: f64, y: f64| {
        let target = Point { x, y, z: 0.0 };
        client.send_goal(DriveToGoal { target }, HANG).unwrap()
    };
    assert!(drive(3.2, 2.2).is_none(), "there are houses");
    // Not far from where it starts, so that it is there before the guide has sent it elsewhere.
    let (x, y) = (-6.4, -3.4);
    let arrived = loop {
        let goal = drive(x, y).unwrap();
        if let (GoalStatus::Succeeded, result) = goal.result(HANG).unwrap() {
            break result;
        }
    };
    let off = (arrived.position.x - x).hypot(arrived.position.y - y);
    assert!(off < 0.2, "{arrived:?}");

    let speed = |value| Parameter::new("speed", ParameterValue::Double(value));
    let parameters = ParameterClient::new(&node, "/driver");
    let set = |value| parameters.set(vec![speed(value)], HANG).unwrap();
    assert!(set(99.0)[0].is_err());
    // The guide sends it on. It is faster than it will be.
    wait_for_odometry(&context, &node, 1, |twist, _| 1.0 < twist.linear.x);
    assert!(set(0.5)[0].is_ok());
    // For longer than a command counts, and than it has this speed while it slows down.
    wait_for_odometry(&context, &node, 50, |twist, _| (0.49..=0.5).contains(&twist.linear.x));

    // Who steers beside the driver is obeyed, and is nothing that was lost or doubled.
    let steering = node.create_publisher::<Twist>("/cmd_vel", Qos::DEFAULT).unwrap();
    steering.wait_for_subscriptions(1, HANG).unwrap();
    steering.publish(Twist::default()).unwrap();

    let motors = node.create_client::<SetBool>("/motors").unwrap();
    let answer = motors.call(SetBoolRequest { data: false }, HANG).unwrap();
    assert!(answer.success, "{answer:?}");
    // It stands as soon as a command no longer moves it; else it turns where it stands.
    let mut last = None;
    wait_for_odometry(&context, &node, 10, |twist, place| {
        let is_still = (twist.linear.x, twist.angular.z) == (0.0, 0.0);
        last.replace(place) == Some(place) && is_still
    });
    drop((steering, client, motors, parameters, node));
    drop(context);
    demo.interrupt();
    let ended = demo.end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, FLOWS);
}

#[test]
fn what_its_tutorial_has_typed_works() {
    let Some(_) = command_beside() else { return };
    let page = std::fs::read_to_string("../../docs/tutorial/demo.md").unwrap();
    let block = page.split("```sh\n").find(|it| it.starts_with("tsuji routes --why")).unwrap();
    let lines: Vec<&str> = block.split("```").next().unwrap().lines().collect();
    let demo = Demo::start(&["--seconds", "3600", "--json", "--no-page"]);
    demo.processes_at_work();
    let command = demo.runtime_dir().join("tsuji");
    for line in &lines {
        let (_, words) = line.split_once(' ').unwrap();
        let end = match words {
            // For a terminal, which it has not.
            "top" => continue,
            // Else for ever.
            _ if words.starts_with("topic echo") => " --once",
            _ => "",
        };
        let line = format!("'{}' {words}{end}", command.display());
        let done = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert!(done.status.success() && !done.stdout.is_empty(), "{line}: {done:?}");
    }
    assert!(5 < lines.len());
    demo.interrupt();
    let summary = json(&demo.end());
    check_nothing_lost(&summary, FLOWS);
}

#[test]
fn two_demos_have_two_robots() {
    let demos = [0, 1].map(|_| Demo::start(&["--seconds", "3600", "--json", "--no-page"]));
    demos.iter().for_each(|demo| drop(demo.processes_at_work()));
    let [one, other] = [0, 1].map(|at| demos[at].domain());
    assert_ne!(one, other);
    for demo in demos {
        demo.interrupt();
        check_nothing_lost(&json(&demo.end()), FLOWS);
    }
}

#[test]
fn its_page_is_served_for_as_long_as_it_runs() {
    let Some(_) = command_beside() else { return };
    for signal in [Signal::Interrupt, Signal::Kill] {
        let demo = Demo::start(&["--seconds", "3600", "--plain", "--port", "0"]);
        let told = demo.process.output.find(HANG, |it| it.contains("in a browser: ")).unwrap();
        let address = told.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        let mut page = TcpStream::connect(&address).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        page.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        page.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("<title>"), "{text}");
        demo.processes_at_work();
        assert!(demo.process.signal(signal));
        if signal == Signal::Interrupt {
            let ended = demo.end();
            assert!(ended.status.success(), "{ended:?}");
        } else {
            let folder = demo.runtime_dir();
            drop(demo);
            // The next demo takes away what this one has left.
            let ended = Demo::start(&["--seconds", "1", "--json", "--no-page"]).end();
            assert!(ended.status.success() && !folder.exists(), "{ended:?}");
        }
        let begun = Instant::now();
        while TcpStream::connect(&address).is_ok() {
            assert!(begun.elapsed() < HANG, "the page outlives its robot");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_policy_of_the_users_own_is_left_alone() {
    let folder = Folder(tsuji_platform::process::temporary_path("tsuji-own"));
    std::fs::create_dir(&folder.0).unwrap();
    let policy = folder.0.join("policy.xml");
    let text = r#"<tsuji><rule scope="local" topic="/camera/image" use="cyclonedds"/></tsuji>"#;
    std::fs::write(&policy, text).unwrap();
    let arguments = ["--seconds", "27", "--json"];
    let demo = Demo::start_with(&arguments, &[("TSUJI_POLICY", policy.to_str().unwrap())]);
    demo.processes_at_work();
    demo.interrupt();
    let ended = demo.end();
    let summary = json(&ended);
    assert!(ended.status.success(), "{summary:#}");
    check_nothing_lost(&summary, FLOWS);
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
    let folder = Folder(tsuji_platform::process::temporary_path("tsuji-command"));
    std::fs::create_dir(&folder.0).unwrap();
    let program = folder.0.join("tsuji-demo");
    std::fs::copy(env!("CARGO_BIN_EXE_tsuji-demo"), &program).unwrap();
    let command = folder.0.join("tsuji");
    let text =
        "#!/bin/sh\necho \"$TSUJI_RUNTIME_DIR $ROS_AUTOMATIC_DISCOVERY_RANGE $ROS_DOMAIN_ID $@\"\n";
    std::fs::write(&command, text).unwrap();
    std::fs::set_permissions(&command, std::fs::Permissions::from_mode(0o755)).unwrap();
    let demo = Demo::start_program(&program, &["--seconds", "3600", "--plain", "--no-page"], &[]);
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
    check_nothing_lost(&summary, FLOWS);
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
    let [trouble] = &summary["troubles"].as_array().unwrap()[..] else {
        panic!("not told once: {summary:#}")
    };
    let trouble = trouble.as_str().unwrap();
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
    // Unless another demo has.
    let _ = std::fs::remove_dir_all(demo.runtime_dir());
}

#[test]
fn one_loan_reaches_both_the_process_and_the_other() {
    let folder = Folder(tsuji_platform::process::temporary_path("tsuji-loan"));
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
    let mut set = WaitSet::new(&two).unwrap();
    set.add(&other).unwrap();
    let received = loop {
        if let Some(received) = other.take().unwrap() {
            break received;
        }
        set.wait(HANG).unwrap();
    };
    assert!(received.view().data.iter().all(|byte| *byte == 7));
}
