//! Nodes of ROS 1 in the laboratory: real ones, under masters of its own. `scripts/ros1` builds them, and `TSUJI_LAB_PEERS` says where
//! they are; without them nothing of this runs, unless `TSUJI_ROS1` is `required`.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it wants and why it did not run"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitStatus;

use serde_json::Value;

#[path = "support/running.rs"]
mod running;

use running::{
    ENDLESS, Lab, check_beat, check_death_of_a_node, check_pattern, kill, list, slept, told,
    wait_for_turns,
};

/// Whether the nodes were built.
fn is_built() -> bool {
    let folder = std::env::var_os("TSUJI_LAB_PEERS").unwrap_or_default();
    let is_built = Path::new(&folder).join("tsuji-lab-ros1").is_file();
    let is_required = std::env::var("TSUJI_ROS1").is_ok_and(|it| it == "required");
    assert!(is_built || !is_required, "TSUJI_ROS1 is required, but TSUJI_LAB_PEERS has no nodes");
    if !is_built {
        println!(
            "not run: the nodes of ROS 1 are not in TSUJI_LAB_PEERS; scripts/ros1 builds them"
        );
    }
    is_built
}

#[test]
fn the_six_patterns_come_whole_beside_tsujis() {
    if !is_built() {
        return;
    }
    let words = "latency --count 6 --blocks 2 --cases one_node,two_nodes,two_components";
    let (status, value) = Lab::start("patterns", words, &[]).end();
    assert_eq!(status.code(), Some(0), "{value}");
    assert!(list(&value, "absent").iter().all(|it| it["what"] != "ros1"), "{value}");
    for (case, transport) in [
        ("one_node", "ros1:roscpp"),
        ("one_node_pointer", "ros1:roscpp-pointer"),
        ("two_nodes", "ros1:roscpp"),
        ("two_nodes_pointer", "ros1:roscpp-pointer"),
        ("two_components", "ros1:nodelet"),
        ("two_components_pointer", "ros1:nodelet-pointer"),
    ] {
        check_pattern(&value, case, transport);
    }
    let article = list(&value, "tables").iter().find(|it| it["rows"][0][0] == "one_node").unwrap();
    assert_eq!(list(article, "rows").len(), 6, "{article}");
    assert!(article["rows"].as_array().unwrap().iter().all(|it| it[4].is_f64()), "{article}");
}

#[test]
fn the_beat_of_the_article_comes_with_and_without_its_option() {
    if !is_built() {
        return;
    }
    check_beat(&["ros1:roscpp", "ros1:roscpp_nodelay"]);
}

#[test]
fn a_node_that_is_killed_ends_its_case_alone() {
    if !is_built() {
        return;
    }
    check_death_of_a_node("roscpp");
}

#[test]
fn a_master_that_is_killed_ends_no_flow_that_is_there() {
    if !is_built() {
        return;
    }
    let mut lab = Lab::start("unmastered", &format!("latency {ENDLESS} --cases two_nodes"), &[]);
    let sender = lab.busy("\"transport\":\"roscpp\"");
    let master = lab.process("rosmaster");
    kill(&master);
    let thread = Path::new("/proc").join(&sender);
    wait_for_turns(&sender, slept(&thread) + 2000);
    // A start that is whole is told.
    while thread.exists() {
        std::thread::yield_now();
    }
    let value = lab.interrupt();
    let is_meant = |it: &&Value| it["transport"] == "ros1:roscpp";
    let row = list(&value, "rows").iter().find(is_meant).unwrap();
    assert_eq!((&row["case"], &row["lost"]), (&"two_nodes".into(), &0.into()), "{row}");
    let skipped: Vec<_> = list(&value, "skipped").iter().map(|it| &it["what"]).collect();
    assert_eq!(skipped, ["the rest"], "{value}");
}

/// Runs the first pattern where this is all that `PATH` has.
fn with_path(name: &str, rosmaster: Option<&str>) -> (ExitStatus, Value) {
    let path = tsuji_platform::process::temporary_path(&format!("tsuji-lab-ros1-{name}"));
    fs::create_dir(&path).unwrap();
    if let Some(text) = rosmaster {
        let file = path.join("rosmaster");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let words = "latency --count 6 --blocks 2 --cases one_node_pointer";
    // A ROS 2 that is sourced has nothing to do with it.
    let variables = [("PATH", path.as_os_str()), ("AMENT_PREFIX_PATH", OsStr::new(""))];
    let ended = Lab::start(name, words, &variables).end();
    fs::remove_dir_all(path).unwrap();
    assert_eq!(list(&ended.1, "rows").len(), 2, "{}", ended.1);
    ended
}

#[test]
fn a_master_that_is_killed_at_once_is_told_and_the_rest_goes_on() {
    if !is_built() {
        return;
    }
    let (status, value) = with_path("stillborn", Some("#!/bin/sh\nkill -KILL $$\n"));
    assert_eq!(status.code(), Some(1), "{value}");
    let skipped = &list(&value, "skipped")[0];
    assert_eq!(skipped["what"], "one_node_pointer ros1:roscpp-pointer");
    assert_eq!(skipped["why"], "rosmaster was ended by signal 9");
}

#[test]
fn without_a_master_ros_1_is_absent() {
    if !is_built() {
        return;
    }
    let (status, value) = with_path("masterless", None);
    assert_eq!(status.code(), Some(0), "{value}");
    let why = told(&value, "absent", "ros1").unwrap();
    assert!(why.contains("apt-get install python3-rosmaster"), "{value}");
}

#[test]
fn a_laboratory_that_is_killed_leaves_neither_nodes_nor_a_master() {
    if !is_built() {
        return;
    }
    let mut lab = Lab::start("orphans", &format!("latency {ENDLESS} --cases one_node"), &[]);
    lab.busy("\"transport\":\"roscpp\"");
    lab.process("rosmaster");
    lab.kill();
}

/// Figures of that case whose servers are those of ROS 1, by what they say.
fn of_rosbridge<'a>(value: &'a Value, what: &str) -> Vec<&'a Value> {
    let is_meant = |it: &&Value| {
        it["what"] == what && it["of"].as_str().unwrap().starts_with("rosbridge_server of ROS 1,")
    };
    list(value, "figures").iter().filter(is_meant).collect()
}

/// The real one, where it is: no package manager of Debian has it.
#[test]
fn the_rosbridge_server_of_ros_1_stands_beside_by_every_transport() {
    let prefixes = std::env::var_os("CMAKE_PREFIX_PATH").unwrap_or_default();
    let program = "lib/rosbridge_server/rosbridge_tcp";
    if !std::env::split_paths(&prefixes).any(|it| it.join(program).is_file()) {
        println!("not run: no {program} in CMAKE_PREFIX_PATH; source a ROS 1 that has it");
        return;
    }
    if !is_built() {
        return;
    }
    let words =
        "bridge --count 300 --blocks 2 --cases in-websocket,in-tcp-1024,in-udp,out,image-cbor-raw";
    let (status, value) = Lab::start("rosbridge", words, &[]).end();
    assert_eq!(status.code(), Some(0), "{value}");
    assert!(list(&value, "skipped").is_empty(), "{value}");
    for what in ["in-websocket", "in-tcp-1024", "in-udp", "out", "image-cbor-raw CPU"] {
        let [figure] = of_rosbridge(&value, what)[..] else { panic!("{what}: {value}") };
        assert!(0.0 < figure["figure"].as_f64().unwrap(), "{figure}");
    }
    let [lost] = of_rosbridge(&value, "in-websocket lost")[..] else { panic!("{value}") };
    assert_eq!(lost["figure"], 0.0, "{lost}");
}

#[test]
fn a_rosbridge_server_that_ends_at_once_is_told_and_the_rest_goes_on() {
    if !is_built() {
        return;
    }
    let name = format!("tsuji-lab-test-{}-catkin", std::process::id());
    let prefix = std::env::temp_dir().join(name);
    let folder = prefix.join("lib/rosbridge_server");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("rosbridge_tcp");
    fs::write(&program, "#!/bin/sh\necho no rospy here >&2\nexit 3\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let words = "bridge --count 300 --blocks 2 --cases in-tcp-1024,in-udp";
    let variables = [("CMAKE_PREFIX_PATH", prefix.as_os_str())];
    let (status, value) = Lab::start("no-rosbridge", words, &variables).end();
    let _ = fs::remove_dir_all(&prefix);
    assert_eq!(status.code(), Some(1), "{value}");
    let why = |case: &str| {
        let what = format!("{case}, rosbridge_server of ROS 1");
        told(&value, "skipped", &what).unwrap_or_else(|| panic!("{what}: {value}"))
    };
    let ended = why("in-tcp-1024");
    assert!(ended.contains("exit status: 3") && ended.contains("no rospy here"), "{value}");
    assert!(why("in-udp").contains("there is no rosbridge_udp in"), "{value}");
    assert!(list(&value, "figures").iter().any(|it| it["of"] == "tsuji bridge, fast client"));
}
