//! What is refused, and how.

use crate::support::World;

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
        "found the name `liner`; expected a field of geometry_msgs/msg/Twist: linear, angular (line 1, column 9)",
    );
    check(
        "{linear: {x: fast}}",
        "field `linear.x`: found `fast`; expected float64 (line 1, column 14)",
    );
    let malformed = refused("{linear: [1");
    assert!(malformed.contains("expected YAML (line "), "{malformed}");
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
    assert!(error.contains("ROS_SECURITY_STRATEGY=\"Enforce\""), "{error}");
    let warned = world.run_with(&enforced[..1], &["topic", "list"]);
    assert_eq!(warned.code, Some(0));
    assert!(warned.err.starts_with("WARNING: ROS_SECURITY_ENABLE=\"true\""), "{warned:?}");
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
        "doctor",
        "completions",
    ];
    for command in commands {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = world.run(&words).good();
        assert!(help.contains(&format!("  tsuji {command}")), "{help}");
    }
    assert_eq!(
        world.run(&["--version"]).good(),
        concat!("tsuji ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn tuning_has_the_help_of_the_laboratory_and_keeps_what_is_there() {
    let world = World::new();
    let help = world.run(&["tune", "--help"]).good();
    assert!(help.contains("tsuji tune [OPTIONS]"), "{help}");
    let file = world.write("mine.xml", "mine");
    let error = world.run(&["tune", "--output", file.to_str().unwrap()]).bad(1);
    assert!(error.contains("mine.xml is there already; allowed: --force"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn the_laboratory_has_a_help_of_its_own() {
    let world = World::new();
    let help = world.run(&["lab", "--help"]).good();
    assert!(help.contains("Usage: tsuji lab all") && help.contains("tsuji lab passing"), "{help}");
    let error = world.run(&["lab", "nonsense"]).bad(2);
    assert!(error.contains("nonsense"), "{error}");
}
