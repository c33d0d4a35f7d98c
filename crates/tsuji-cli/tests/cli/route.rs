//! `tsuji route`, and what `tsuji routes` shows of transports that change.

use std::fs;

use serde_json::Value as Json;

use crate::support::{Ended, Running, World, flow};

const TEXT: &str = "std_msgs/msg/String";

fn transport(ended: &Ended) -> Json {
    ended.json()[0]["transport"].clone()
}

#[test]
fn a_topic_is_set_and_left_to_the_policy_again() {
    let world = World::new();
    let [publisher, _echo] = flow(&world, &[]);
    let set = world.run(&["route", "set", "chatter", "cyclonedds"]).good();
    let expect = format!(
        "/chatter: cyclonedds is set, for 1 flow\n  tsuji {}: decides 1 flow\n  \
         1 other process: no flow to decide; remembered\n\nFROM ",
        publisher.id()
    );
    assert!(set.starts_with(&expect), "{set}");
    assert!(set.contains("  cyclonedds  from shm: opened in "), "{set}");
    let why = world.run(&["routes", "--why"]).good();
    assert!(why.contains("    set         cyclonedds, by the user; "), "{why}");

    let narrow = world.run_with(&[("COLUMNS", "60")], &["route", "set", "/chatter", "shm"]).good();
    assert!(narrow.lines().all(|it| it.chars().count() <= 60), "{narrow}");
    assert!(narrow.contains("\n  from cyclonedds: opened in "), "{narrow}");

    let left = world.run(&["route", "auto", "/chatter", "--json"]);
    assert_eq!(left.code, Some(0), "{left:?}");
    let left = left.json();
    assert_eq!((&left["topic"], &left["transport"]), (&"/chatter".into(), &Json::Null));
    let flows: Vec<_> =
        left["processes"].as_array().unwrap().iter().map(|it| &it["flows"]).collect();
    assert!(flows.contains(&&1.into()) && flows.contains(&&0.into()), "{left}");
    assert_eq!((&left["settled"], &left["routes"][0]["pinned"]), (&true.into(), &Json::Null));
    assert!(!world.run(&["routes", "--why"]).good().contains("    set  "));

    let history = world.run(&["routes", "--history"]).good();
    let transports: Vec<Vec<&str>> =
        history.lines().skip(2).map(|it| it.split_whitespace().skip(1).take(2).collect()).collect();
    assert_eq!(
        transports,
        [["-", "shm"], ["shm", "cyclonedds"], ["cyclonedds", "shm"]],
        "{history}"
    );
    assert!(history.starts_with("/chatter  /talker (tsuji "), "{history}");
    assert!(history.contains("the user has set it\n"), "{history}");
    let narrow = world.run_with(&[("COLUMNS", "80")], &["routes", "--history"]).good();
    assert!(narrow.lines().all(|it| it.chars().count() <= 80), "{narrow}");
    assert!(narrow.contains("\n    the user has set it\n"), "{narrow}");
    let changes = world.run(&["routes", "--history", "--json"]).json();
    assert_eq!(changes[0]["changes"][1]["to"], "cyclonedds", "{changes}");
}

#[test]
fn what_cannot_be_set_is_said() {
    let world = World::new();
    let nobody = world.run(&["route", "set", "/x", "shm"]);
    let expect = "/x: nothing is set: no other process is here\n";
    assert_eq!((nobody.code, &*nobody.out, &*nobody.err), (Some(1), expect, ""));
    let [publisher, _echo] = flow(&world, &[]);
    let refused = world.run(&["route", "set", "/chatter", "fastdds"]);
    assert_eq!((refused.code, &*refused.err), (Some(1), ""), "{refused:?}");
    let expect = format!(
        "/chatter: nothing is set: every process refuses\n  tsuji {}: refused: fastdds is not at work",
        publisher.id()
    );
    assert!(refused.out.starts_with(&expect), "{refused:?}");
    let unable = world.run(&["route", "set", "/chatter", "inproc"]).good();
    assert!(
        unable.contains("  shm        not inproc: out of reach: the peer is local\n"),
        "{unable}"
    );
    let unknown = world.run(&["route", "set", "/later", "shm"]);
    let expect =
        "/later: no flow here; shm is set in 2 processes, for as long as one of them lives\n";
    assert_eq!((unknown.code, &*unknown.out), (Some(1), expect));
    let error = world.run(&["route", "set", "/a b", "shm"]).bad(2);
    assert!(error.contains("character 3"), "{error}");
}

#[test]
fn what_was_set_before_a_flow_begins_counts() {
    let world = World::new();
    let _echo = world.start(&["topic", "echo", "/chatter", TEXT]);
    world.run_until(&["topic", "list"], |it| it.out == "/chatter\n");
    assert_eq!(world.run(&["route", "set", "/chatter", "cyclonedds"]).code, Some(1));
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/chatter", TEXT]);
    world.run_until(&["routes", "--json"], |it| transport(it) == "cyclonedds");
}

#[test]
fn a_policy_file_that_is_edited_moves_the_flow_and_watch_shows_it() {
    let world = World::new();
    let file = world.write("mine.xml", "<tsuji/>");
    let [mut publisher, _echo] = flow(&world, &["--policy", "mine.xml"]);
    // The next look that shows all is an hour away.
    let mut watch = world.start(&["routes", "--watch", "-i", "3600"]);
    watch.out("/chatter");
    fs::write(&file, r#"<tsuji><rule name="mine" priority="5" use="cyclonedds"/></tsuji>"#)
        .unwrap();
    watch.out("Z  shm → cyclonedds: the policy file has changed; ");
    world.run_until(&["routes", "--json"], |it| transport(it) == "cyclonedds");
    fs::write(&file, "<tsuji><rool/></tsuji>").unwrap();
    publisher.err("WARNING: mine.xml:1:9: \"rool\" is not an element here");
    assert_eq!(transport(&world.run(&["routes", "--json"])), "cyclonedds");
    assert_eq!(watch.stop().code, Some(0));
}

#[test]
fn what_was_decided_is_decided_again_from_its_trace() {
    let world = World::new();
    let trace = world.path("trace");
    let mut publish = world.command(&["topic", "pub", "-r", "50", "/chatter", TEXT]);
    let publisher = Running::new(publish.env("TSUJI_TRACE", &trace));
    let echo = world.start(&["topic", "echo", "/chatter", TEXT]);
    world.run_until(&["routes", "--json"], |it| it.json()[0]["state"] == "active");
    world.run(&["route", "set", "/chatter", "cyclonedds"]).good();
    let file = format!("{}.{}", trace.display(), publisher.id());
    let replay = |file: &str| world.run(&["route", "replay", file]);

    // While it is written, with the flow in it.
    let shown = replay(&file).good();
    assert!(shown.contains(" 1 flow at the end; decided again as it was\n"), "{shown}");
    assert!(shown.contains("  shm → cyclonedds   the user has set it\n"), "{shown}");
    let narrow = world.run_with(&[("COLUMNS", "80")], &["route", "replay", &file]).good();
    assert!(narrow.lines().skip(1).all(|it| it.chars().count() <= 80), "{narrow}");
    drop(echo);
    assert_eq!(publisher.stop().code, Some(0));
    let json = world.run(&["route", "replay", &file, "--json"]).json();
    assert_eq!((&json[0]["flows"], &json[0]["difference"]), (&0.into(), &Json::Null), "{json}");

    // Cut off where a process was killed, changed, not a trace, not there.
    let whole = fs::read_to_string(&file).unwrap();
    let cut = world.write("cut", &whole[..whole.trim_end().len() - 1]);
    assert!(replay(cut.to_str().unwrap()).good().contains("decided again as it was"));
    let torn = whole.replacen("}\n", "\n", 1);
    let torn = replay(world.write("torn", &torn).to_str().unwrap()).bad(1);
    assert!(torn.contains("torn: line 1: "), "{torn}");
    let twice = world.write("twice", &[whole.as_str(), &whole].concat());
    assert!(replay(twice.to_str().unwrap()).out.contains("another table begins"));
    let other = world.write("other", &whole.replace("\"epoch\":2", "\"epoch\":3"));
    let other = replay(other.to_str().unwrap());
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.out.contains("not decided as it was\n  entry "), "{other:?}");
    let rubbish = world.write("rubbish", "{}\n");
    let told = replay(rubbish.to_str().unwrap()).bad(1);
    assert!(told.contains("rubbish: line 1: "), "{told}");
    let empty = world.write("empty", "");
    assert_eq!(replay(empty.to_str().unwrap()).code, Some(1));
    assert!(replay("nowhere").bad(1).contains("nowhere: No such file"), "not there");
}
