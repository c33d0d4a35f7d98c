//! `tsuji policy`.

use crate::support::World;

const BAD: &str = r#"<tsuji prefer="speed">
  <rule name="a" size="huge" scope="local far" use="sharm"/>
  <transprt name="shm"/>
</tsuji>
"#;

const BAD_ERRORS: &str = r#"bad.xml:1:16: "speed" is not a preference; allowed: latency, memory
bad.xml:2:24: "huge" is not a size; allowed: small, large
bad.xml:2:43: "far" is not a scope; allowed: intra, local, remote
bad.xml:2:53: "sharm" is not a transport (did you mean "shm"?); allowed: inproc, shm, cyclonedds, fastdds, zenoh, ros1
bad.xml:3:4: "transprt" is not an element here (did you mean "transport"?); allowed: size, topic, rule, forbid, transport, robot, export
error: bad.xml: 5 errors, the whole file is refused
"#;

const GOOD: &str = r#"<tsuji>
  <topic pattern="/camera/**" expected="900KiB"/>
  <rule name="mine" scope="local" size="large" use="zenoh shm"/>
  <forbid topic="/secret" use="shm"/>
</tsuji>
"#;

#[test]
fn check_tells_every_error() {
    let world = World::new();
    world.write("bad.xml", BAD);
    assert_eq!(world.run(&["policy", "check", "bad.xml"]).bad(1), BAD_ERRORS);
    // Whoever runs under it is told the same.
    assert_eq!(world.run(&["topic", "list", "--policy", "bad.xml"]).bad(1), BAD_ERRORS);
    assert_eq!(world.run_with(&[("TSUJI_POLICY", "bad.xml")], &["routes"]).bad(1), BAD_ERRORS);
    let missing = world.run(&["policy", "check", "nix.xml"]).bad(1);
    assert_eq!(
        missing,
        "error: cannot read the policy file nix.xml: No such file or directory (os error 2)\n"
    );
}

#[test]
fn check_knows_the_settings_of_transports() {
    let world = World::new();
    let text =
        "<tsuji>\n<transport name=\"shm\"><set key=\"memry\" value=\"1\"/></transport></tsuji>";
    world.write("odd.xml", text);
    let error = world.run(&["policy", "check", "odd.xml"]).bad(1);
    assert!(
        error.starts_with("error: odd.xml:2: memry=\"1\" is not a setting of shm; allowed: "),
        "{error}"
    );
}

#[test]
fn check_likes_what_is_good() {
    let world = World::new();
    world.write("good.xml", GOOD);
    let out = world.run(&["policy", "check", "good.xml"]).good();
    assert_eq!(out, "good.xml: good (1 rule, 1 forbid, 1 stated size)\n");
}

#[test]
fn check_says_what_is_in_a_file() {
    let world = World::new();
    world.write(
        "r2.xml",
        "<tsuji><robot name=\"r2\"/><export topic=\"/a\"/><rule use=\"shm\"/></tsuji>",
    );
    let good = "r2.xml: good (robot r2, 1 export, 1 rule, 0 forbids, 0 stated sizes)\n";
    assert_eq!(world.run(&["policy", "check", "r2.xml"]).good(), good);
}

#[test]
fn what_this_build_does_not_do_is_said() {
    let world = World::new();
    world.write(
        "far.xml",
        "<tsuji interop=\"both\">\n\
         <transport name=\"shm\"><set key=\"memory_bytes_max\" value=\"1GiB\"/></transport>\n\
         <transport name=\"zenoh\"><set key=\"mode\" value=\"peer\"/></transport>\n\
         <transport name=\"radio\" plugin=\"libradio.so\"/>\n</tsuji>\n",
    );
    let check = world.run(&["policy", "check", "far.xml"]);
    assert_eq!(
        (check.code, check.out.as_str()),
        (
            Some(0),
            "far.xml: good (0 rules, 0 forbids, 0 stated sizes)\n\
             far.xml:1: interop: rtps zenoh: no effect in this build\n"
        )
    );
    // Nothing but that the plug-in is not there.
    assert!(check.err.contains("radio") && check.err.contains("libradio.so"), "{check:?}");
    let out = world.run(&["policy", "show", "--policy", "far.xml"]).out;
    let told: Vec<&str> = out.lines().filter(|it| it.contains("no effect in this build")).collect();
    assert!(told.len() == 1 && told[0].contains("rtps zenoh"), "{out}");
}

#[test]
fn show_says_where_each_rule_comes_from() {
    let world = World::new();
    world.write("good.xml", GOOD);
    let out = world.run(&["policy", "show", "--policy", "good.xml"]).good();
    let line = |word: &str| out.lines().find(|it| it.contains(word)).unwrap().to_owned();
    assert!(line("mine").ends_with("good.xml:3"), "{out}");
    assert!(line("on this host").contains("builtin:default.xml:"), "{out}");
    assert!(line("/camera/**").contains("expected 900KiB"), "{out}");
    assert!(line("prefer").contains("builtin:default.xml:"), "{out}");
    let json =
        world.run_with(&[("TSUJI_POLICY", "good.xml")], &["policy", "show", "--json"]).json();
    let mine = json.as_array().unwrap().iter().find(|it| it["name"] == "mine").unwrap();
    assert_eq!(
        (mine["value"].as_str(), mine["from"]["line"].as_u64()),
        (Some("zenoh shm"), Some(3))
    );
    let xml = world.run(&["policy", "show", "--policy", "good.xml", "--xml"]).good();
    world.write("whole.xml", &xml);
    assert_eq!(world.run(&["policy", "show", "--policy", "whole.xml", "--xml"]).good(), xml);
}

#[test]
fn show_fits_the_terminal() {
    let world = World::new();
    let out = world.run_with(&[("COLUMNS", "80")], &["policy", "show"]).good();
    let widest = out.lines().map(|it| it.chars().count()).max().unwrap();
    assert!(widest <= 80, "{widest}: {out}");
}

#[test]
fn explain_gives_every_reason() {
    let world = World::new();
    world.write("good.xml", GOOD);
    let out = world.run(&[
        "policy",
        "explain",
        "--policy",
        "good.xml",
        "--topic",
        "/camera/image",
        "--scope",
        "local",
    ]);
    let out = out.good();
    // Those of plug-ins are installed here or not.
    let is_of_plugin =
        |line: &&str| ["fastdds", "zenoh"].iter().any(|it| line.trim_start().starts_with(it));
    let (plugins, rest): (Vec<&str>, Vec<&str>) = out.lines().partition(is_of_plugin);
    assert!(plugins.len() == 2, "{plugins:?}");
    assert_eq!(
        rest.join("\n"),
        "/camera/image: large (921600 bytes, the line is 64KiB, as the policy states), local, reliable, peer tsuji\n\
         transport: shm\n\
         because:   rule \"mine\" (good.xml:3)\n\
         rejected:\n  \
         cyclonedds  rule \"mine\" (good.xml:3) chose shm before rule \"on this host\" (builtin:default.xml:25) was reached\n  \
         inproc      out of reach: the peer is local"
    );
}

#[test]
fn explain_without_a_way() {
    let world = World::new();
    let json = world
        .run(&[
            "policy", "explain", "--topic", "/x", "--size", "small", "--scope", "remote", "--peer",
            "zenoh", "--json",
        ])
        .json();
    assert_eq!(json["transport"], serde_json::Value::Null);
    let rejected: Vec<&str> = json["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["transport"].as_str())
        .collect();
    assert_eq!(rejected, ["zenoh", "inproc", "shm", "cyclonedds", "fastdds"]);
}

#[test]
fn explain_needs_to_know_the_flow() {
    let world = World::new();
    let refused = |words: &[&str]| world.run(&[&["policy", "explain"], words].concat()).bad(2);
    let error = refused(&["--topic", "/x", "--scope", "local"]);
    assert!(error.contains("give --size small, --size large or --size BYTES"), "{error}");
    let error = refused(&["--topic", "/x", "--scope", "near", "--size", "1"]);
    assert!(error.contains("\"near\" is not a scope; allowed: intra, local, remote"), "{error}");
    let error = refused(&["--topic", "/x", "--scope", "local", "--size", "big"]);
    assert!(
        error.contains("allowed: small, large, or bytes such as 921600, 900KiB, 1MB"),
        "{error}"
    );
    let error = refused(&["--topic", "x", "--scope", "local", "--size", "1"]);
    assert!(error.contains("a full name is needed"), "{error}");
}
