//! What is refused, and how.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Running, World, tsuji};

#[test]
fn a_domain_out_of_range() {
    let world = World::new();
    let error = world.run_with(&[("ROS_DOMAIN_ID", "999")], &["topic", "list"]).bad(1);
    assert!(error.contains("999") && error.contains("allowed: 0 to 232"), "{error}");
    let error = world.run_with(&[("ROS_DOMAIN_ID", "one")], &["topic", "list"]).bad(1);
    assert!(error.contains("ROS_DOMAIN_ID=\"one\": allowed: 0 to 232"), "{error}");
    let error = world.run(&["--domain-id", "999", "topic", "list"]).bad(2);
    assert!(error.contains("999 is not in 0..=232"), "{error}");
}

#[test]
fn domains_are_apart() {
    let world = World::new();
    let _publisher =
        world.start(&["topic", "pub", "--domain-id", "7", "/x", "std_msgs/msg/String"]);
    world.run_until(&["topic", "list", "--domain-id", "7"], |it| it.out == "/x\n");
    assert_eq!(world.run_with(&[("ROS_DOMAIN_ID", "7")], &["topic", "list"]).good(), "/x\n");
    assert_eq!(world.run(&["topic", "list"]).good(), "");
}

#[test]
fn an_unknown_type() {
    let world = World::new();
    for command in [["topic", "pub", "/x"], ["topic", "echo", "/x"]] {
        let error = world.run(&[&command[..], &["std_msgs/msg/Sting"]].concat()).bad(2);
        assert!(
            error.starts_with(
                "error: unknown interface \"std_msgs/msg/Sting\"; did you mean std_msgs/msg/String"
            ),
            "{error}"
        );
    }
}

#[test]
fn values_that_are_none() {
    let world = World::new();
    let refused =
        |values: &str| world.run(&["topic", "pub", "/x", "geometry_msgs/msg/Twist", values]).bad(2);
    let check = |values: &str, expect: &str| {
        assert_eq!(
            refused(values),
            format!("error: the values are no geometry_msgs/msg/Twist: {expect}\n")
        );
    };
    check(
        "{liner: {x: 1}}",
        "found the name `liner`; expected a field of geometry_msgs/msg/Twist: linear, angular (line 1, column 2)",
    );
    check(
        "{linear: {x: fast}}",
        "field `linear.x`: found `fast`; expected float64 (line 1, column 14)",
    );
    check(
        "{linear: [1",
        "found what YAML does not allow (while parsing a flow sequence, expected ',' or ']'); expected YAML \
         (line 1, column 12)",
    );
}

#[test]
fn names_that_ros_forbids() {
    let world = World::new();
    let error = world.run(&["topic", "pub", "/a b", "std_msgs/msg/String"]).bad(2);
    assert!(error.contains("character 3"), "{error}");
    let error = world.run(&["topic", "pub", "-n", "1st", "/x", "std_msgs/msg/String"]).bad(1);
    assert!(error.contains("1st"), "{error}");
}

#[test]
fn qos_flags_that_contradict() {
    let world = World::new();
    let error = world.run(&[
        "topic",
        "echo",
        "/x",
        "std_msgs/msg/String",
        "--qos-history",
        "keep_all",
        "--qos-depth",
        "5",
    ]);
    assert!(
        error.err.ends_with(
            "error: --qos-depth has no meaning with --qos-history keep_all; leave one out\n"
        ),
        "{error:?}"
    );
    assert_eq!(error.code, Some(2));
    let error = world.run(&["topic", "echo", "/x", "--qos-reliability", "sometimes"]).bad(2);
    assert!(error.contains("[possible values: reliable, best_effort, system_default]"), "{error}");
}

#[test]
fn security_is_never_left_out_silently() {
    let world = World::new();
    let enforced = [("ROS_SECURITY_ENABLE", "true"), ("ROS_SECURITY_STRATEGY", "Enforce")];
    let error = world.run_with(&enforced, &["topic", "list"]).bad(1);
    assert!(
        error.contains("security is enforced, and ROS_SECURITY_KEYSTORE is not set"),
        "{error}"
    );
    let warned = world.run_with(&enforced[..1], &["topic", "list"]);
    assert_eq!(warned.code, Some(0));
    let expect =
        "WARNING: ROS_SECURITY_ENABLE=true: ROS_SECURITY_KEYSTORE is not set; nothing is secured";
    assert!(warned.err.starts_with(expect), "{warned:?}");
}

#[test]
fn every_command_has_help_with_an_example() {
    let world = World::new();
    let commands = [
        "topic list",
        "topic info",
        "topic echo",
        "topic pub",
        "topic hz",
        "topic bw",
        "topic delay",
        "topic type",
        "topic find",
        "service info",
        "service echo",
        "action type",
        "action find",
        "param get",
        "param delete",
        "pkg list",
        "pkg executables",
        "pkg prefix",
        "pkg xml",
        "run",
        "multicast send",
        "multicast receive",
        "ros1 master",
        "ros1 param list",
        "ros1 param get",
        "component list",
        "component load",
        "component unload",
        "component types",
        "component container",
        "component standalone",
        "lifecycle nodes",
        "lifecycle list",
        "lifecycle get",
        "lifecycle set",
        "node list",
        "node info",
        "interface show",
        "interface list",
        "interface package",
        "interface packages",
        "interface proto",
        "route set",
        "route auto",
        "routes",
        "policy check",
        "policy show",
        "policy explain",
        "security create",
        "security check",
        "security explain",
        "doctor",
        "completions",
        "man",
    ];
    for command in commands {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = world.run(&words).good();
        assert!(help.contains(&format!("  tsuji {command}")), "{help}");
    }
    let version = concat!("tsuji ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(world.run(&["-V"]).good(), version);
    let said = world.run(&["--version"]).good();
    assert!(said.starts_with(version), "{said}");
    assert!(said.contains(std::env::consts::ARCH) && said.contains("Cyclone DDS"), "{said}");
}

#[test]
fn every_help_fits_its_terminal() {
    let world = World::new();
    let mut commands = vec![Vec::new()];
    let mut wide = Vec::new();
    let mut seen = 0;
    while let Some(command) = commands.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let help = |columns| world.run_with(&[("COLUMNS", columns)], &words).good();
        for (columns, width) in [("80", 80), ("300", 100)] {
            let help = help(columns);
            let lines = help.lines().filter(|it| width < it.chars().count());
            wide.extend(lines.map(|it| format!("{words:?} at {columns}: {it}")));
        }
        // No example is broken, so that each can be copied.
        let examples = |help: &str| Some(help.split_once("\nExample")?.1.to_owned());
        if examples(&help("80")) != examples(&help("300")) {
            wide.push(format!("{words:?}: an example is broken"));
        }
        let help = help("80");
        let below = help.lines().skip_while(|it| *it != "Commands:").skip(1);
        let below = below.take_while(|it| !it.is_empty()).filter(|it| !it.starts_with("   "));
        for name in below.filter_map(|it| it.split_whitespace().next()) {
            // The demo and the laboratory have a help of their own, and `help` that of the others.
            if !["demo", "lab", "tune", "help"].contains(&name) {
                commands.push([&command[..], &[name.to_owned()]].concat());
            }
        }
        seen += 1;
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
    assert!(80 < seen, "{seen}");
}

/// A copy of the command in `folder`, and the words that start it.
fn copied(folder: &Path) -> Vec<String> {
    std::fs::create_dir(folder).unwrap();
    let copy = folder.join("tsuji");
    let words = tsuji();
    let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let original = words.pop().unwrap();
    // On another file system a link is refused.
    if std::fs::hard_link(&original, &copy).is_err() {
        std::fs::copy(&original, &copy).unwrap();
    }
    words.push(copy.to_str().unwrap().to_owned());
    words
}

/// A program in the place of another that says what it was given.
fn stand_in(folder: &Path, program: &str, name: &str) {
    let text = format!("#!/bin/sh\nprintf '%s|' {name} \"$TSUJI_LAB_CALLER\" \"$@\"\nexit 7\n");
    let path = folder.join(program);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_demo_and_the_laboratory_are_programs_of_their_own() {
    let world = World::new();
    let own = world.path("own");
    let tsuji = copied(&own);
    let path = world.path("path");
    std::fs::create_dir(&path).unwrap();
    let searched = format!("{}:/usr/bin:/bin", path.to_str().unwrap());
    let run = |words: &[&str]| {
        let words = tsuji.iter().map(String::as_str).chain(words.iter().copied());
        Running::new(world.foreign(words).env("PATH", &searched)).end()
    };
    for (command, program) in [("lab", "tsuji-lab"), ("tune", "tsuji-lab"), ("demo", "tsuji-demo")]
    {
        let error = run(&[command, "--help"]).bad(1);
        let said = format!("`tsuji {command}` needs the program {program}");
        assert!(error.contains(&said) && error.contains("package"), "{error}");
    }
    stand_in(&path, "tsuji-lab", "path");
    let version = env!("CARGO_PKG_VERSION");
    let ended = run(&["lab", "latency", "--quick", "--json=a b", "-h"]);
    assert_eq!(ended.out, format!("path|{version}|latency|--quick|--json=a b|-h|\n"), "{ended:?}");
    assert_eq!(ended.code, Some(7), "{ended:?}");
    stand_in(&own, "tsuji-lab", "own");
    let ended = run(&["tune", "--force"]);
    assert_eq!(ended.out, format!("own|{version}|tune|--force|\n"), "{ended:?}");
    stand_in(&own, "tsuji-demo", "demo");
    let ended = run(&["demo", "--seconds", "5"]);
    assert_eq!(ended.out, format!("demo|{version}|--seconds|5|\n"), "{ended:?}");
    // The laboratory completes its own words.
    let words = tsuji.iter().map(String::as_str).chain(["--", "tsuji", "lab", "la"]);
    let ended = Running::new(world.foreign(words).env("TSUJI_COMPLETE", "bash")).end();
    assert_eq!(ended.out, "own||--|tsuji|lab|la|\n", "{ended:?}");
}

#[test]
fn each_command_has_a_manual_page() {
    let world = World::new();
    let folder = world.path("man/man1");
    let said = world.run(&["man", folder.to_str().unwrap()]).good();
    assert!(said.contains("man/man1"), "{said}");
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(page("tsuji.1").contains("tsuji\\-topic(1)"));
    let echo = page("tsuji-topic-echo.1");
    assert!(echo.contains("\\-\\-filter") && echo.contains("tsuji topic echo /"), "{echo}");
    // What is refused has none.
    assert!(!folder.join("tsuji-daemon.1").exists());
    let wrong = world.run(&["man", "/proc/none"]).bad(1);
    assert!(wrong.contains("/proc/none"), "{wrong}");
}
