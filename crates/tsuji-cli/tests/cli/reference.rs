//! The references of the manual that the command itself can tell: docs/reference/options.md is what `--help` says, word for
//! word, and docs/reference/json.md names every field of what `--json` prints. With TSUJI_WRITE_REFERENCE=1 the first is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::{env, fs};

use serde_json::Value;
use tsuji::action::GoalHandle;
use tsuji::lifecycle::Lifecycle;
use tsuji::{Context, Qos, error};
use tsuji_interfaces::example_interfaces::action::{Fibonacci, FibonacciFeedback, FibonacciResult};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::geometry_msgs::msg::PointStamped;
use tsuji_interfaces::std_msgs::msg::Header;

use crate::support::{World, spun};

const OPTIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/options.md");
/// Commands that start another program, which need not be there, and whose help is that program's.
const OF_OTHER_PROGRAMS: [&str; 3] = ["demo", "lab", "tune"];
const JSON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");

#[test]
fn the_reference_of_flags_is_what_the_command_says() {
    let world = World::new();
    let mut page = "# Every command with its flags\n\nThis page is what `tsuji COMMAND --help` prints, in the order of \
                    `tsuji --help`; a test compares the two. [The command tsuji](command.md) is the short list. \
                    `tsuji demo`, `tsuji lab` and `tsuji tune` are programs of their own, and tell theirs with `--help`.\n"
        .to_owned();
    describe(&world, &[], &mut page);
    if env::var_os("TSUJI_WRITE_REFERENCE").is_some() {
        fs::write(OPTIONS, &page).unwrap();
    }
    let written = fs::read_to_string(OPTIONS).unwrap();
    let differs = page.lines().zip(written.lines()).find(|(told, written)| told != written);
    assert!(
        page == written,
        "docs/reference/options.md is stale: {differs:?}; TSUJI_WRITE_REFERENCE=1 cargo test -p tsuji-cli --test cli reference:: writes it"
    );
}

/// Adds what a command says of itself, and then each command below it.
fn describe(world: &World, words: &[&str], page: &mut String) {
    let help = world.run(&[words, &["--help"]].concat()).good();
    let name = [&["tsuji"], words].concat().join(" ");
    let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    let mut commands = help.lines().skip_while(|it| *it != "Commands:").skip(1);
    while let Some(line) = commands.next().filter(|it| !it.is_empty()) {
        // What goes on in the next line stands further to the right.
        let Some(name) = line.strip_prefix("  ").filter(|it| !it.starts_with(' ')) else {
            continue;
        };
        let name = name.split_whitespace().next().unwrap();
        if name != "help" && !OF_OTHER_PROGRAMS.contains(&name) {
            describe(world, &[words, &[name]].concat(), page);
        }
    }
}

/// The fields that were printed under a command's heading, each with the types of its values.
type Fields = BTreeMap<String, BTreeMap<String, BTreeSet<&'static str>>>;

#[test]
fn the_reference_of_json_names_every_field_that_is_printed() {
    let printed = printed();
    let page = fs::read_to_string(JSON).unwrap();
    let mut described = BTreeMap::<_, BTreeMap<_, _>>::new();
    let mut heading = "";
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            heading = name;
        }
        let cells: Vec<_> = line.split(" | ").map(|it| it.trim_matches(['|', ' '])).collect();
        if let [fields, types, _] = cells[..] {
            for field in fields.split(", ").filter_map(|it| it.strip_prefix('`')?.strip_suffix('`'))
            {
                described.entry(heading).or_default().insert(field, types);
            }
        }
    }
    let mut complaints = Vec::new();
    for (command, fields) in &printed {
        let empty = BTreeMap::new();
        let of = described.get(command.as_str()).unwrap_or(&empty);
        for (field, types) in fields {
            let told = of.get(field.as_str()).copied().unwrap_or_default();
            let allowed: Vec<_> = told.split(" or ").collect();
            complaints.extend(types.iter().filter(|it| !allowed.contains(it)).map(|it| {
                format!(
                    "{command}: `{field}` is of type {it}; docs/reference/json.md says {told:?}"
                )
            }));
        }
    }
    for (command, fields) in &described {
        let empty = BTreeMap::new();
        let of = printed.get(*command).unwrap_or(&empty);
        let missing = fields.keys().filter(|it| !of.contains_key(**it));
        complaints.extend(missing.map(|it| {
            format!("{command}: docs/reference/json.md has `{it}`, which is not printed")
        }));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Notes the fields of a value, below `path`. What a message, a parameter or a recording holds is its own affair, and the flows
/// that `route` tells are those of `routes`.
fn note(path: &str, value: &Value, fields: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    const CONTENTS: [&str; 7] =
        ["value", "parameters", "result", "feedback", "metadata", "routes", "damages"];
    let name = path.rsplit('.').next().unwrap_or_default();
    let is_content = CONTENTS.contains(&name);
    let ty = match value {
        Value::Null => "null",
        Value::Bool(_) => "truth value",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(of) => {
            let objects = of.iter().filter(|it| it.is_object() && !is_content);
            objects.for_each(|it| note(&format!("{path}[]"), it, fields));
            "array"
        }
        Value::Object(of) => {
            let dot = if path.is_empty() { "" } else { "." };
            let below = of.iter().filter(|_| !is_content);
            below.for_each(|(name, it)| note(&format!("{path}{dot}{name}"), it, fields));
            "object"
        }
    };
    if !path.is_empty() && !path.ends_with("[]") {
        fields.entry(path.to_owned()).or_default().insert(ty);
    }
}

struct Managed;

impl Lifecycle for Managed {}

fn pursue(handle: GoalHandle<Fibonacci>) {
    let sequence = vec![0, 1];
    handle.publish_feedback(FibonacciFeedback { sequence: sequence.clone() }).unwrap();
    handle.succeed(FibonacciResult { sequence }).unwrap();
}

/// What every command that has `--json` prints of a small robot.
fn printed() -> Fields {
    let world = World::new();
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let context = context.unwrap();
    let _logging = context.logging().install();
    let node = context.node_in("arm", "/robot").unwrap();
    let add = |it: std::sync::Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b };
    let _add = node.create_service::<AddTwoInts>("/add", add).unwrap();
    let _server = node.create_action_server::<Fibonacci>("/fibonacci", pursue).unwrap();
    node.declare_parameter("speed", 1.0).unwrap();
    let _managed = node.manage(Managed).unwrap();
    let points = node.create_publisher::<PointStamped>("/points", Qos::DEFAULT).unwrap();
    let publish = move || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let stamp = tsuji_interfaces::builtin_interfaces::msg::Time {
            sec: now.as_secs() as i32,
            nanosec: now.subsec_nanos(),
        };
        let header = Header { stamp, ..Header::default() };
        let _ = points.publish(PointStamped { header, ..PointStamped::default() });
    };
    let _timer = node.create_timer(std::time::Duration::from_millis(10), publish).unwrap();
    error!(node.logger(), "as an example");
    let mut printed = Fields::new();
    spun(&node, || each(&world, &mut printed));
    printed
}

fn each(world: &World, printed: &mut Fields) {
    let mut told = |command: &str, text: &str| {
        let of = printed.entry(format!("tsuji {command}")).or_default();
        for line in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            note("", &line.unwrap_or_else(|error| panic!("{command}: {error}: {text}")), of);
        }
    };
    let mut run = |command: &str, arguments: &[&str]| {
        let words: Vec<_> = command.split(' ').chain(arguments.iter().copied()).collect();
        let ended = world.run(&[&words[..], &["--json"]].concat());
        assert!(!ended.out.is_empty(), "{command}: {ended:?}");
        told(command, &ended.out);
    };
    run("topic list", &["-t"]);
    run("topic info", &["/points"]);
    run("service list", &[]);
    run("service info", &["/add"]);
    run("action list", &[]);
    run("action info", &["/fibonacci"]);
    run(
        "action send-goal",
        &["/fibonacci", "example_interfaces/action/Fibonacci", "{order: 2}", "-f"],
    );
    run("param list", &[]);
    run("param get", &["/robot/arm", "speed"]);
    run("param set", &["/robot/arm", "speed", "2.0"]);
    run("param set", &["/robot/arm", "speed", "fast"]);
    run("param delete", &["/robot/arm", "speed"]);
    run("param describe", &["/robot/arm", "speed"]);
    run("param dump", &["/robot/arm"]);
    let file = world.write("arm.yaml", "/**:\n  ros__parameters:\n    speed: 3.0\n");
    run("param load", &["/robot/arm", file.to_str().unwrap()]);
    run("lifecycle nodes", &[]);
    run("lifecycle list", &["/robot/arm"]);
    run("lifecycle get", &[]);
    run("node list", &[]);
    run("component types", &[]);
    run("interface list", &[]);
    run("interface packages", &[]);
    run("policy show", &[]);
    let flow =
        ["--topic", "/points", "--size", "small", "--scope", "local", "--reliability", "reliable"];
    run("policy explain", &flow);
    run("doctor", &[]);
    run("security create", &["/talker", "--keystore", "keystore"]);
    run("security explain", &["/talker", "publish", "/points", "--keystore", "keystore"]);
    run("security explain", &["/nobody", "publish", "/points", "--keystore", "keystore"]);
    run("security revoke", &["--keystore", "keystore"]);
    fs::create_dir(world.path("keystore/enclaves/none")).unwrap();
    fs::write(world.path("keystore/enclaves/none/key.pem"), "").unwrap();
    run("security check", &["--keystore", "keystore"]);

    let mut container = world.start(&["component", "container", "--name", "eyes"]);
    container.out("Container '/eyes'");
    run("component load", &["/eyes", "tsuji_components", "Talker"]);
    run("component list", &[]);
    run("component unload", &["/eyes", "1"]);
    run("component unload", &["/eyes", "7"]);

    let echo = world.start(&["topic", "echo", "/points"]);
    world.run_until(&["routes", "--json"], |it| {
        it.code == Some(0)
            && it.json().as_array().is_some_and(|all| {
                all.iter().any(|it| {
                    it["topic"] == "/points"
                        && it["state"] == "active"
                        && it["samples"].as_u64().is_some_and(|it| it > 10)
                })
            })
    });
    run("route set", &["/points", "shm"]);
    run("route set", &["/points", "cyclonedds"]);
    run("routes", &[]);
    run("route auto", &["/points"]);
    run("record", &["/points", "-o", "a.mcap", "--duration", "0.5"]);
    run("bag info", &["a.mcap"]);
    run("play", &["a.mcap", "--rate", "100"]);
    let _ = echo.stop();

    // What does not end by itself.
    let mut first = |command: &str, arguments: &[&str]| {
        let words: Vec<_> = command.split(' ').chain(arguments.iter().copied()).collect();
        let mut running = world.start(&[&words[..], &["--json"]].concat());
        running.out("{");
        let ended = running.stop();
        told(command, &ended.out);
    };
    first("topic hz", &["/points"]);
    first("topic bw", &["/points"]);
    first("topic delay", &["/points"]);
    first("log", &[]);
    first("bridge", &["--port", "0"]);
    let launched = world.write(
        "a.launch.xml",
        "<launch><executable cmd=\"echo hello\" output=\"screen\"/></launch>",
    );
    let logs = world.path("logs");
    let ended = world.run_with(
        &[("ROS_LOG_DIR", logs.to_str().unwrap())],
        &["launch", launched.to_str().unwrap(), "--json"],
    );
    told("launch", &ended.out);
    let engines = world.run(&["routes", "--engines", "--json"]);
    told("routes --engines", &engines.out);
}
