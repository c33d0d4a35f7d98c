//! What others write never commands a terminal, in any command.

use std::process::Command;

use tracing_subscriber::layer::SubscriberExt;
use tsuji::Context;
use tsuji::error;

use crate::support::{Ended, Running, World, is_there, spun, tsuji};

/// Clears the screen, by a C0 and by a C1 character, rings, overwrites its line, and turns what follows around.
const NASTY: &str = "a\u{1b}[2J\u{9b}2Jb\u{7}\r\u{7f}\u{202e}c";

#[track_caller]
fn harmless(text: &str) {
    let commands = |it: char| {
        it.is_control() && it != '\n' && it != '\t'
            || matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(commands), "{text:?}");
}

#[track_caller]
fn shows(ended: &Ended) {
    harmless(&ended.out);
    harmless(&ended.err);
    let both = format!("{}{}", ended.out, ended.err);
    assert!(["\\x1b[2J", "\\e[2J", "\\u001b[2J"].iter().any(|it| both.contains(it)), "{both}");
}

#[test]
fn texts_in_messages() {
    let world = World::new();
    let values = serde_json::json!({ "data": NASTY }).to_string();
    let _publisher = world.start(&[
        "topic",
        "pub",
        "/x",
        "std_msgs/msg/String",
        &values,
        "-p",
        "0",
        "--qos-durability",
        "transient_local",
    ]);
    let echo = ["topic", "echo", "/x", "--once"];
    for style in [
        &[][..],
        &["--flow-style"],
        &["--json"],
        &["--field", "data"],
        &["--field", "data", "--json"],
        &["--raw"],
    ] {
        let ended = world.run(&[&echo[..], style].concat());
        shows(&ended);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let json = world.run(&[&echo[..], &["--json"]].concat()).json();
    assert_eq!(json["data"], NASTY);
    let yaml = world.run(&echo).good();
    assert_eq!(yaml, "data: \"a\\e[2J\\x9B2Jb\\a\\r\\x7F\\u202Ec\"\n---\n");
    // Rows are for programs, to which a carriage return in quotes is a part of the text.
    let row = world.run(&[&echo[..], &["--csv"]].concat()).good();
    assert_eq!(row, "\"a\\x1b[2J\\u009b2Jb\\x07\r\\u007f\\u202ec\"\n");
    // What is sent is shown as well.
    let sent = ["topic", "pub", "--once", "-w", "0", "/y", "std_msgs/msg/String", &values];
    harmless(&world.run(&sent).good());
}

#[test]
fn names_of_programs() {
    let world = World::new();
    let name = "prog\u{1b}[2J\u{9b}2J\nforged";
    let program = world.path(name);
    let words = tsuji();
    let real = words.split_whitespace().last().unwrap();
    if words.split_whitespace().count() > 1 {
        return;
    }
    std::fs::copy(real, &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["topic", "pub", "/x", "std_msgs/msg/String", "-n", "talker", "-p", "0"]);
    command.env("TSUJI_RUNTIME_DIR", world.run_time()).env("TSUJI_INTEROP", "none");
    let talker = Running::new(&mut command);
    world.run_until(&["topic", "list"], |it| it.out == "/x\n");
    let _listener = world.start(&["topic", "echo", "/x"]);
    world.run_until(&["topic", "info", "/x"], |it| it.out.contains("Subscription count: 1"));
    let said = world.run(&["topic", "info", "-v", "/x"]);
    shows(&said);
    assert!(!said.out.lines().any(|it| it.starts_with("forged")), "{said:?}");
    for command in [
        &["node", "list", "--json"][..],
        &["routes"],
        &["routes", "--json"],
        &["routes", "--engines"],
    ] {
        let said = world.run(command);
        harmless(&said.out);
        assert!(
            said.code == Some(0) && !said.out.lines().any(|it| it.starts_with("forged")),
            "{said:?}"
        );
    }
    talker.freeze();
    let said = world.run(&["node", "list"]);
    shows(&said);
    assert!(said.err.contains("does not answer"), "{said:?}");
    assert!(!said.err.lines().any(|it| it.starts_with("forged")), "{said:?}");
}

#[test]
fn parameters_and_logs() {
    let world = World::new();
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let context = context.unwrap();
    let node = context.node("drive").unwrap();
    node.declare_parameter("text", NASTY.to_owned()).unwrap();
    node.declare_parameter("texts", vec![NASTY.to_owned()]).unwrap();
    let subscriber = tracing_subscriber::registry().with(context.logging().rosout_layer());
    tracing::subscriber::with_default(subscriber, || {
        spun(&node, || {
            error!(node.logger(), "{NASTY}");
            let mut log = world.start(&["log"]);
            let line = log.out_line("[ERROR]");
            harmless(&line);
            assert!(line.contains("a\\x1b[2J\\u009b2Jb\\x07\\r"), "{line}");
            for command in [
                &["param", "get", "/drive", "text"][..],
                &["param", "get", "/drive", "texts"],
                &["param", "get", "/drive", "text", "--hide-type"],
                &["param", "get", "/drive", "text", "--json"],
                &["param", "dump", "/drive"],
                &["param", "dump", "/drive", "--json"],
            ] {
                shows(&world.run(command));
            }
        });
    });
}

#[test]
fn definitions_and_files() {
    let world = World::new();
    let file = world.write(
        "ros/share/my_msgs/msg/Nasty.msg",
        &format!("# {}\nstring data\n", NASTY.replace('\r', "")),
    );
    let prefix = world.path("ros");
    let ros = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    shows(&world.run_with(&ros, &["interface", "show", "my_msgs/msg/Nasty"]));
    std::fs::write(&file, format!("string {NASTY}\n")).unwrap();
    let told = world.run_with(&ros, &["interface", "show", "my_msgs/msg/Nasty"]);
    harmless(&told.bad(1));
    let policy = world.write("policy.xml", &format!("<policy name=\"{}\"/>", "a\u{9b}2Jb"));
    harmless(&world.run(&["policy", "check", policy.to_str().unwrap()]).err);
}

#[test]
fn words_that_are_refused() {
    let world = World::new();
    let nasty = "/x\u{1b}[31m\u{1b}]0;title\u{7}\u{202e}";
    for command in [&["topic", "info"][..], &["topic", "info", "/x"], &["topic"], &["--domain-id"]]
    {
        let words = [command, &[nasty]].concat();
        let ended = world.run(&words);
        harmless(&ended.err);
        assert!(matches!(ended.code, Some(1 | 2)) && !ended.err.is_empty(), "{ended:?}");
        assert!(ended.err.contains("\\x1b"), "{ended:?}");
        assert!(ended.out.is_empty(), "{ended:?}");
    }
    let option = format!("--x{nasty}");
    let ended = world.run(&["routes", &option]);
    harmless(&ended.err);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

/// On a terminal colours are the command's own, and a carriage return in a row of CSV is shown.
#[test]
fn a_terminal_is_commanded_by_the_command_alone() {
    if !is_there(&["script", "--version"]) {
        return;
    }
    let world = World::new();
    let values = serde_json::json!({ "data": NASTY }).to_string();
    let _publisher =
        world.start(&["topic", "pub", "/x", "std_msgs/msg/String", &values, "-p", "0"]);
    world.run_until(&["topic", "list"], |it| it.out == "/x\n");
    let on_terminal = |words: &str| {
        let line = format!("{} {words}", tsuji());
        let mut command = world.foreign(["script", "-qec", &line, "/dev/null"]);
        command.env("TERM", "xterm");
        let ended = Running::new(&mut command).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.out
    };
    let row = on_terminal("topic echo /x std_msgs/msg/String --once --csv");
    harmless(&row);
    assert!(row.contains("\"a\\x1b[2J\\u009b2Jb\\x07\\r\\u007f\\u202ec\""), "{row}");
    let listed = on_terminal("topic list -v");
    assert!(listed.contains("\x1b[1mPublished topics:\x1b[0m"), "{listed:?}");
    let cleared = on_terminal("topic echo /x std_msgs/msg/String --once --clear --field data");
    let text = cleared.split("\x1b[H\x1b[2J").nth(1);
    harmless(text.unwrap_or_else(|| panic!("{cleared:?}")));
}
