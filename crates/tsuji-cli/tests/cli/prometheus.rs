//! The dashboard and the alerts of packages/metrics, and the setting that the manual shows, with a real Prometheus. Where `TSUJI_PROMETHEUS` does
//! not name the folder that has its programs (`scripts/prometheus`), only the names of metrics are looked at.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use std::{env, fs, thread};

use serde_json::Value;

use crate::support::{Running, World};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const RULES: &str = "packages/metrics/tsuji.rules.yml";
const DASHBOARD: &str = "packages/metrics/tsuji-dashboard.json";

fn read(path: &str) -> String {
    fs::read_to_string(format!("{ROOT}/{path}")).unwrap()
}

/// A program of Prometheus, where it is.
fn prometheus(program: &str) -> Option<String> {
    let folder = env::var("TSUJI_PROMETHEUS").ok().filter(|it| !it.is_empty())?;
    Some(format!("{folder}/{program}"))
}

/// A flow, and a bridge that tells of it.
struct Robot {
    world: World,
    _flow: [Running; 2],
    bridge: Running,
    port: u16,
}

impl Robot {
    fn start(flags: &[&str]) -> Self {
        let world = World::new();
        let publisher = world.start(&[
            "topic",
            "pub",
            "-p",
            "0",
            "-r",
            "50",
            "/chatter",
            "std_msgs/msg/String",
        ]);
        // Whoever comes before the publisher asks for less.
        let reliable = ["topic", "echo", "--qos-reliability", "reliable", "/chatter"];
        let mut echo = world.start(&[&reliable[..], &["std_msgs/msg/String"]].concat());
        echo.out("data: ");
        world.run_until(&["routes", "--json"], |it| it.json()[0]["latency"].is_object());
        let mut bridge = world.start(&[&["bridge", "--port", "0", "--json"], flags].concat());
        let told: Value = serde_json::from_str(&bridge.out_line("listening")).unwrap();
        let port = told["listening"][0]["port"].as_u64().unwrap() as u16;
        Self { world, _flow: [publisher, echo], bridge, port }
    }
}

/// What a server answers to a question, as JSON or as text.
fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// What Prometheus answers, of which `is_so` is to hold sooner or later: it looks every second.
fn until(port: u16, path: &str, is_so: impl Fn(&Value) -> bool) {
    for _ in 0..60 {
        let answer: Value = serde_json::from_str(&get(port, path)).unwrap();
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        if is_so(&answer["data"]) {
            return;
        }
        thread::sleep(Duration::from_secs(1));
    }
    panic!("{path}: nothing in a minute");
}

/// A question in the language of Prometheus.
fn query(expression: &str) -> String {
    let encoded: String = expression.bytes().map(|it| format!("%{it:02x}")).collect();
    format!("/api/v1/query?query={encoded}")
}

/// The questions of the dashboard, as Grafana would ask them.
fn asked_by_dashboard() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|it| it["targets"].as_array().unwrap());
    let expressions = targets.map(|it| it["expr"].as_str().unwrap());
    let filled =
        [("$job", "robot"), ("$instance", ".*"), ("$topic", ".*"), ("$__rate_interval", "5s")];
    expressions
        .map(|it| {
            filled.iter().fold(it.to_owned(), |text, (name, value)| text.replace(name, value))
        })
        .collect()
}

/// Words that begin as metrics of tsuji do.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    words.filter(|it| it.starts_with("tsuji_")).map(str::to_owned).collect()
}

/// What is asked of labels, such as `cause="lost"`, but for those that Prometheus or the alerts themselves give.
fn labels_in(text: &str) -> BTreeSet<String> {
    let pieces: Vec<&str> = text.split('"').collect();
    let asked = pieces.windows(2).filter_map(|it| {
        let name = it[0].strip_suffix('=')?.rsplit([' ', '{', ',']).next()?;
        Some(format!("{name}=\"{}\"", it[1]))
    });
    asked.filter(|it| !it.starts_with("job=")).collect()
}

#[test]
fn dashboard_and_alerts_ask_for_what_the_bridge_tells() {
    let robot = Robot::start(&[]);
    let rate = ["topic", "pub", "-p", "0", "-r", "50", "--qos-reliability", "best_effort"];
    let _scan = robot.world.start(&[&rate[..], &["/scan", "std_msgs/msg/String"]].concat());
    let echo = ["topic", "echo", "--qos-reliability", "best_effort", "/scan"];
    let mut echo = robot.world.start(&[&echo[..], &["std_msgs/msg/String"]].concat());
    echo.out("data: ");
    let told = get(robot.port, "/metrics");
    let asked = asked_by_dashboard().join("\n") + &read(RULES);
    let names = metrics_in(&told);
    let unknown: Vec<_> = metrics_in(&asked).difference(&names).cloned().collect();
    assert_eq!(unknown, Vec::<String>::new());
    let labels = labels_in(&asked);
    assert!(labels.contains("cause=\"lost\"") && labels.contains("reliability=\"best_effort\""));
    let unknown: Vec<_> = labels.iter().filter(|it| !told.contains(*it)).collect();
    assert_eq!(unknown, Vec::<&String>::new());
    assert_eq!(robot.bridge.stop().code, Some(0));
}

#[test]
fn alerts_are_for_what_they_say() {
    let Some(promtool) = prometheus("promtool") else { return };
    let world = World::new();
    world.write("tsuji.rules.yml", &read(RULES));
    let test =
        world.write("rules.test.yml", &read("crates/tsuji-cli/tests/prometheus/rules.test.yml"));
    let said =
        Running::new(&mut world.foreign([&*promtool, "test", "rules", test.to_str().unwrap()]));
    assert!(said.end().good().contains("SUCCESS"));
}

#[test]
fn a_prometheus_as_the_manual_sets_it_answers_the_dashboard() {
    let Some(program) = prometheus("prometheus") else { return };
    let robot = Robot::start(&["--token", "sesame"]);
    let manual = read("docs/bridge.md");
    let block = manual.split("```yaml\n").find(|it| it.starts_with("scrape_configs:")).unwrap();
    let setting = block.split("```").next().unwrap();
    assert!(setting.contains("robot:9090"));
    let setting = setting.replace("robot:9090", &format!("127.0.0.1:{}", robot.port));
    let rules = robot.world.write("tsuji.rules.yml", &read(RULES));
    let global = "global: { scrape_interval: 1s, evaluation_interval: 1s }\n";
    let setting = format!("{global}rule_files: [{}]\n{setting}", rules.display());
    let setting = robot.world.write("prometheus.yml", &setting);
    let words = [
        &*program,
        &format!("--config.file={}", setting.display()),
        &format!("--storage.tsdb.path={}", robot.world.path("data").display()),
        "--web.listen-address=127.0.0.1:0",
    ];
    let mut server = Running::new(&mut robot.world.foreign(words));
    let listening = server.err_line("Listening on");
    let port = listening.rsplit_once(':').unwrap().1.parse().unwrap();
    server.err("Server is ready");
    until(port, &query("up{job=\"robot\"} == 1"), |it| it["result"][0].is_object());
    for expression in asked_by_dashboard() {
        // Nothing is dropped here, and no engine runs.
        let may_be_empty = expression.ends_with("> 0") || expression.contains("tsuji_engine_");
        until(port, &query(&expression), |it| may_be_empty || it["result"][0].is_object());
    }
    until(port, "/api/v1/rules", |it| {
        let rules = it["groups"][0]["rules"].as_array().unwrap();
        rules.len() == read(RULES).matches("- alert:").count()
            && rules.iter().all(|it| it["health"] == "ok")
    });
    server.stop();
    assert_eq!(robot.bridge.stop().code, Some(0));
}
