//! `tsuji routes`.

use crate::support::World;

const TEXT: &str = "std_msgs/msg/String";

#[test]
fn a_flow_between_two_processes() {
    let world = World::new();
    let mut empty = world.run(&["routes"]).good();
    assert_eq!(empty, "No flows: no publisher here has a subscription that matches.\n");
    let publisher = world.start(&[
        "topic",
        "pub",
        "-n",
        "talker",
        "-r",
        "50",
        "/chatter",
        TEXT,
        "{data: hello}",
    ]);
    let echo = world.start(&["topic", "echo", "/chatter", TEXT, "--qos-reliability", "reliable"]);
    let flowing = |it: &crate::support::Ended| {
        let many = |key| it.json()[0][key].as_u64().is_some_and(|it| it > 2);
        many("samples") && many("sent")
    };
    let ended = world.run_until(&["routes", "--json"], flowing);
    let route = &ended.json()[0];
    let text = |key: &str| route[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(text("topic"), "/chatter");
    assert_eq!(text("type_name"), TEXT);
    assert_eq!(text("transport"), "shm");
    assert_eq!(text("state"), "active");
    assert_eq!(text("scope"), "local");
    assert_eq!(text("reliability"), "reliable");
    assert!(
        text("because").starts_with("rule \"on this host\" (builtin:default.xml:25); small"),
        "{route}"
    );
    assert_eq!(route["publisher"]["node"], "/talker");
    assert_eq!(route["publisher"]["pid"], publisher.id());
    assert_eq!(route["subscription"]["pid"], echo.id());
    assert!(route["latency"]["median_us"].as_f64().unwrap() > 0.0, "{route}");
    assert_eq!(route["latency"]["clock"], "monotonic");
    let rejected: Vec<&str> =
        route["rejected"].as_array().unwrap().iter().filter_map(|it| it[0].as_str()).collect();
    assert!(rejected.contains(&"inproc") && rejected.contains(&"zenoh"), "{route}");

    let table = world.run(&["routes"]).good();
    let titles = table.lines().next().unwrap();
    assert!(titles.starts_with("TOPIC ") && titles.ends_with("BECAUSE"), "{table}");
    assert!(titles.contains("  SENT  TAKEN  "), "{table}");
    let widest = table.lines().map(|it| it.chars().count()).max().unwrap();
    // 40 characters may be shortened away, and the two columns are some 13 wide.
    let less = (widest - 40 - 6).to_string();
    let less = world.run_with(&[("COLUMNS", &less)], &["routes"]).good();
    let titles = less.lines().next().unwrap();
    assert!(titles.contains(" BECAUSE") && !titles.contains("SENT"), "{less}");
    assert!(table.contains(&format!("/talker (tsuji {})", publisher.id())), "{table}");
    assert!(
        table.contains(" shm ")
            && table.contains("rule \"on this host\"")
            && table.contains(" Hz "),
        "{table}"
    );

    let why = world.run(&["routes", "--why"]).good();
    assert!(why.contains("    rejected    inproc: out of reach: the peer is local\n"), "{why}");
    assert!(why.contains("    now         small (14 bytes, "), "{why}");
    assert!(why.contains("    sent        ") && why.contains("    received    "), "{why}");
    assert!(
        why.contains("    drops       0 displaced, 0 expired, 0 invalid, 0 lost, 0 duplicates\n"),
        "{why}"
    );

    let narrow = world.run_with(&[("COLUMNS", "80")], &["routes"]).good();
    assert!(narrow.lines().all(|it| it.chars().count() <= 80), "{narrow}");
    assert!(
        narrow.contains("  String, small, local, reliable; rule \"on this host\"\n"),
        "{narrow}"
    );

    empty = world.run(&["routes", "--topic", "/other/**"]).good();
    assert_eq!(empty, "No flows on /other/**.\n");
    assert!(world.run(&["routes", "--topic", "/chat*"]).good().contains("/chatter"));
}

#[test]
fn the_engines_of_each_process() {
    let world = World::new();
    let none = world.run(&["routes", "--engines"]).good();
    assert_eq!(none, "No process of tsuji is in this domain.\n");
    let publisher = world.start(&["topic", "pub", "-r", "50", "/chatter", TEXT, "{data: hello}"]);
    let _echo = world.start(&["topic", "echo", "/chatter", TEXT]);
    let there = |it: &crate::support::Ended| it.json().as_array().is_some_and(|it| it.len() == 2);
    world.run_until(&["routes", "--engines", "--json"], there);
    let of = |all: &serde_json::Value| {
        let process = |it: &&serde_json::Value| it["process"]["pid"] == publisher.id();
        let process = all.as_array().unwrap().iter().find(process).unwrap();
        assert!(process["threads"].as_u64().unwrap() >= 2, "{process}");
        assert!(process["resident_bytes"].as_u64().unwrap() > 1_000_000, "{process}");
        let engines = process["engines"].as_array().unwrap().clone();
        engines.into_iter().find(|it| it["transport"] == "cyclonedds").unwrap()
    };
    let idle =
        of(&serde_json::from_str(&world.run(&["routes", "--engines", "--json"]).good()).unwrap());
    assert_eq!(
        (&idle["state"], &idle["because"]),
        (&"not_started".into(), &"no flow needs it".into())
    );
    assert_eq!((&idle["starts"], &idle["idle_seconds"]), (&0.into(), &10.0.into()), "{idle}");

    let flowing = |it: &crate::support::Ended| it.json()[0]["state"] == "active";
    world.run_until(&["routes", "--json"], flowing);
    world.run(&["route", "set", "/chatter", "cyclonedds"]).good();
    let runs = |it: &crate::support::Ended| of(&it.json())["state"] == "running";
    let engine = of(&world.run_until(&["routes", "--engines", "--json"], runs).json());
    assert_eq!(engine["because"], "a publisher on /chatter");
    let threads = engine["threads"].as_array().unwrap();
    let has = |name: &&str| threads.contains(&(*name).into());
    assert!(["dq.builtins", "recv", "tev"].iter().all(has), "{engine}");
    assert!(engine["since_wall_ns"].as_i64().unwrap() > 0, "{engine}");
    assert!(engine["resident_bytes"].is_i64(), "{engine}");
    assert_eq!((&engine["starts"], &engine["users"]), (&1.into(), &1.into()), "{engine}");

    let table = world.run(&["routes", "--engines"]).good();
    assert!(table.contains(&format!("tsuji {} on ", publisher.id())), "{table}");
    assert!(table.contains("  TRANSPORT ") && table.contains("  USED BY  BECAUSE"), "{table}");
    assert!(
        table.contains(
            "  cyclonedds: Cyclone DDS 11 with changes of tsuji's, a part of the program\n"
        ),
        "{table}"
    );
    let narrow = world.run_with(&[("COLUMNS", "80")], &["routes", "--engines"]).good();
    assert!(narrow.lines().all(|it| it.chars().count() <= 80), "{narrow}");

    let refused = world.run(&["routes", "--engines", "--why"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn watch_shows_it_again_and_again() {
    let world = World::new();
    let mut watch = world.start(&["routes", "--watch", "-i", "0.02"]);
    watch.out("No flows");
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/chatter", TEXT]);
    let _echo = world.start(&["topic", "echo", "/chatter", TEXT]);
    watch.out("/chatter");
    let ended = watch.stop();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    // No terminal, so nothing that moves its cursor.
    assert!(!ended.out.contains('\u{1b}'), "{ended:?}");

    let mut watch = world.start(&["routes", "--watch", "-i", "0.02", "--json"]);
    watch.out("\"topic\":\"/chatter\"");
    assert_eq!(watch.stop().code, Some(0));
}

#[test]
fn a_policy_of_the_user_decides() {
    let world = World::new();
    world.write(
        "mine.xml",
        "<tsuji>\n<forbid name=\"no memory\" topic=\"/chatter\" use=\"shm cyclonedds\"/>\n</tsuji>\n",
    );
    let _publisher =
        world.start(&["topic", "pub", "--policy", "mine.xml", "-r", "50", "/chatter", TEXT]);
    let _echo = world.start(&["topic", "echo", "/chatter", TEXT]);
    let there = |it: &crate::support::Ended| it.json()[0]["state"] == "no_route";
    let route = world.run_until(&["routes", "--json"], there).json();
    let rejected = route[0]["rejected"].as_array().unwrap();
    let shm = rejected.iter().find(|it| it[0] == "shm").unwrap();
    assert_eq!(shm[1], "forbidden by rule \"no memory\" (mine.xml:2)", "{route}");
}
