//! Nodes of rclcpp in the laboratory: real ones, on each middleware of the ROS 2 that is sourced. `scripts/rclcpp` builds them, and
//! `TSUJI_LAB_PEERS` says where they are; without them nothing of this runs, unless `TSUJI_RCLCPP` is `required`.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it wants and why it did not run"
)]

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

#[path = "support/running.rs"]
mod running;

use running::{ENDLESS, Lab, check_beat, check_death_of_a_node, check_pattern, list, told};

/// The variable with the folders of the ROS 2 that is sourced.
const PREFIXES: &str = "AMENT_PREFIX_PATH";

/// Where middlewares are registered in such a folder.
const INDEX: &str = "share/ament_index/resource_index/rmw_typesupport";

/// The middlewares of the ROS 2 that is sourced; none where it is not, or the nodes were not built.
fn middlewares() -> BTreeSet<String> {
    let folder = env::var_os("TSUJI_LAB_PEERS").unwrap_or_default();
    let is_built = Path::new(&folder).join("tsuji-lab-rclcpp").is_file();
    let prefixes = env::var_os(PREFIXES).unwrap_or_default();
    let files = env::split_paths(&prefixes)
        .flat_map(|it| fs::read_dir(it.join(INDEX)).into_iter().flatten().flatten());
    let names = files.map(|it| it.file_name().into_string().unwrap());
    // It only leads on to one of the others.
    let names: BTreeSet<_> = names.filter(|it| it != "rmw_implementation").collect();
    if is_built && !names.is_empty() {
        return names;
    }
    let is_required = env::var("TSUJI_RCLCPP").is_ok_and(|it| it == "required");
    assert!(
        !is_required,
        "TSUJI_RCLCPP is required, but TSUJI_LAB_PEERS has no nodes or {PREFIXES} no middleware"
    );
    println!(
        "not run: the nodes of rclcpp are not in TSUJI_LAB_PEERS, or no ROS 2 is sourced; scripts/rclcpp builds them"
    );
    BTreeSet::new()
}

#[test]
fn every_pattern_comes_whole_on_every_middleware() {
    let names = middlewares();
    if names.is_empty() {
        return;
    }
    let words = "latency --count 6 --blocks 2 --cases one_node,two_nodes,two_components";
    let (status, value) = Lab::start("patterns", words, &[]).end();
    assert_eq!(status.code(), Some(0), "{value}");
    assert_eq!(told(&value, "absent", "rclcpp"), None, "{value}");
    for name in names {
        let (by_value, by_pointer) = (format!("rclcpp:{name}"), format!("rclcpp:{name}-pointer"));
        let by_loan = format!("rclcpp:{name}-loan");
        for (case, transport) in [
            ("one_node", &by_value),
            ("one_node_pointer", &by_pointer),
            ("two_nodes", &by_value),
            ("two_nodes_pointer", &by_loan),
            ("two_components", &by_value),
            ("two_components_pointer", &by_pointer),
        ] {
            if told(&value, "absent", transport).is_some() {
                assert_eq!(transport, &by_loan, "{value}");
                assert_ne!(name, "rmw_tsuji", "{value}");
                continue;
            }
            check_pattern(&value, case, transport);
        }
    }
}

#[test]
fn every_size_is_published_and_those_of_a_message_are_lent() {
    let names = middlewares();
    if names.is_empty() {
        return;
    }
    let words = "latency --count 6 --blocks 2 --cases loan,publish --sizes 64,1001,8388608";
    let (status, value) = Lab::start("sizes", words, &[]).end();
    assert_eq!(status.code(), Some(0), "{value}");
    for name in names {
        let lends = told(&value, "absent", &format!("rclcpp:{name}-loan")).is_none();
        for (way, size, is_carried) in [
            ("publish", 64, true),
            ("publish", 1001, true),
            ("publish", 8_388_608, true),
            ("loan", 64, lends),
            // No message has this size.
            ("loan", 1001, false),
            ("loan", 8_388_608, lends),
        ] {
            let ending = if way == "loan" { "-loan" } else { "" };
            let transport = format!("rclcpp:{name}{ending}");
            let case = format!("{way}-{size}");
            let mut rows = list(&value, "rows").iter();
            let row = rows.find(|it| it["case"] == case && it["transport"] == transport);
            assert_eq!(row.is_some(), is_carried, "{case} by {transport}: {value}");
            assert!(row.is_none_or(|it| it["lost"] == 0), "{row:?}");
        }
    }
}

#[test]
fn the_beat_comes_on_every_middleware() {
    let names = middlewares();
    if names.is_empty() {
        return;
    }
    let transports: Vec<_> = names.iter().map(|it| format!("rclcpp:{it}")).collect();
    check_beat(&transports.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_node_that_is_killed_ends_its_case_alone() {
    if middlewares().is_empty() {
        return;
    }
    check_death_of_a_node("rclcpp");
}

#[test]
fn a_middleware_that_cannot_be_loaded_is_told_and_the_rest_goes_on() {
    let names = middlewares();
    if names.is_empty() {
        return;
    }
    let folder = env::temp_dir().join(format!("tsuji-lab-rclcpp-broken-{}", std::process::id()));
    fs::create_dir_all(folder.join(INDEX)).unwrap();
    fs::write(folder.join(INDEX).join("rmw_broken"), "").unwrap();
    let own = env::var_os(PREFIXES).unwrap();
    let all = env::join_paths([folder.clone()].into_iter().chain(env::split_paths(&own))).unwrap();
    let words = "latency --count 6 --blocks 2 --cases one_node_pointer";
    let (status, value) = Lab::start("broken", words, &[(PREFIXES, &all)]).end();
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(status.code(), Some(1), "{value}");
    let why = told(&value, "skipped", "rclcpp:rmw_broken").unwrap();
    assert!(why.contains("rmw_broken"), "{value}");
    let transports = list(&value, "rows").iter().filter_map(|it| it["transport"].as_str());
    let transports: BTreeSet<_> = transports.filter(|it| it.starts_with("rclcpp:")).collect();
    assert_eq!(transports.len(), names.len(), "{value}");
}

#[test]
fn without_a_ros_2_rclcpp_is_absent() {
    if middlewares().is_empty() {
        return;
    }
    let empty = env::temp_dir();
    for (name, prefixes, expected) in [
        ("unsourced", OsStr::new(""), "no ROS 2 is sourced"),
        ("bare", empty.as_os_str(), "no middleware is installed"),
    ] {
        let words = "latency --count 6 --blocks 2 --cases one_node_pointer";
        let (status, value) = Lab::start(name, words, &[(PREFIXES, prefixes)]).end();
        assert_eq!(status.code(), Some(0), "{value}");
        assert!(told(&value, "absent", "rclcpp").unwrap().contains(expected), "{value}");
    }
}

#[test]
fn a_laboratory_that_is_killed_leaves_no_node() {
    if middlewares().is_empty() {
        return;
    }
    let mut lab = Lab::start("orphans", &format!("latency {ENDLESS} --cases one_node"), &[]);
    lab.busy("\"transport\":\"rclcpp\"");
    lab.kill();
}
