//! `tsuji topic` and `tsuji node`.

use std::time::Duration;

use tsuji::{Context, Qos, RawType};

use crate::support::{Running, World, entries, first_line_then_hang_up};

const TEXT: &str = "std_msgs/msg/String";
const TEXT_HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

#[test]
fn echo_prints_what_pub_sends() {
    let world = World::new();
    let mut publisher =
        world.start(&["topic", "pub", "-r", "50", "/chatter", TEXT, "{data: hello}"]);
    publisher.out("publisher: beginning loop");
    assert_eq!(world.run(&["topic", "echo", "--once", "/chatter"]).good(), "data: hello\n---\n");
    assert_eq!(
        world.run(&["topic", "echo", "--once", "chatter", TEXT]).good(),
        "data: hello\n---\n"
    );
    publisher.out("publishing #2: std_msgs.msg.String(data='hello')");
    assert_eq!(publisher.stop().code, Some(0));
}

#[test]
fn pub_once_waits_for_a_subscription() {
    let world = World::new();
    let mut echo = world.start(&["topic", "echo", "--once", "/late", TEXT]);
    echo.err("WARNING: topic [/late] does not appear to be published yet");
    let published =
        world.run(&["topic", "pub", "--once", "/late", TEXT, "{data: \"it's\"}"]).good();
    assert!(
        published.ends_with("publishing #1: std_msgs.msg.String(data=\"it's\")\n\n"),
        "{published}"
    );
    assert_eq!(echo.end().out, "data: it's\n---\n");
}

#[test]
fn pub_says_what_it_waits_for() {
    let world = World::new();
    let mut publisher = world.start(&["topic", "pub", "--once", "-w", "2", "/x", TEXT]);
    publisher.out("Waiting for at least 2 matching subscription(s)...");
    let ended = publisher.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.out.contains("beginning loop"), "{ended:?}");
    let error = world.run(&["topic", "pub", "-1", "--max-wait-time-secs", "0.01", "/x", TEXT]);
    assert!(error.err.contains("Expected 1 subscribers but only got 0 subscribers"), "{error:?}");
    assert_eq!(error.code, Some(1));
}

#[test]
fn pub_counts_and_prints_every_nth() {
    let world = World::new();
    let arguments = ["topic", "pub", "-t", "5", "-w", "0", "-r", "1000", "-p", "2", "/x", TEXT];
    let out = world.run(&arguments).good();
    let printed: Vec<&str> = out.lines().filter(|it| it.starts_with("publishing")).collect();
    assert_eq!(
        printed,
        [
            "publishing #2: std_msgs.msg.String(data='')",
            "publishing #4: std_msgs.msg.String(data='')"
        ]
    );
}

#[test]
fn echo_waits_for_the_topic_and_says_so_once() {
    let world = World::new();
    let mut echo = world.start(&["topic", "echo", "--once", "/later"]);
    echo.err("WARNING: topic [/later] does not appear to be published yet");
    let _publisher =
        world.start(&["topic", "pub", "-r", "50", "/later", "std_msgs/Int32", "{data: 7}"]);
    let ended = echo.end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "data: 7\n---\n"));
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
}

#[test]
fn echo_prints_as_it_is_told() {
    let world = World::new();
    let values = "{header: {frame_id: map}, pose: {position: {x: 1.5}, orientation: {w: 1.0}}}";
    let _pose = world.start(&[
        "topic",
        "pub",
        "-r",
        "50",
        "/pose",
        "geometry_msgs/msg/PoseStamped",
        values,
    ]);
    let _bytes = world.start(&[
        "topic",
        "pub",
        "-r",
        "50",
        "/bytes",
        "std_msgs/msg/UInt8MultiArray",
        "{data: [1, 2, 3]}",
    ]);
    let check = |arguments: &[&str], expect: &str| {
        let ended = world
            .run_until(&[&["topic", "echo", "--once"], arguments].concat(), |it| it.err.is_empty());
        assert_eq!(ended.good(), expect, "{arguments:?}");
    };
    check(&["/pose", "--field", "pose.position"], "x: 1.5\ny: 0.0\nz: 0.0\n---\n");
    check(&["/pose", "--field", "header.frame_id"], "map\n---\n");
    check(&["/pose", "--csv"], "0,0,map,1.5,0.0,0.0,0.0,0.0,0.0,1.0\n");
    check(&["/pose", "--field", "pose.position", "--json"], "{\"x\":1.5,\"y\":0.0,\"z\":0.0}\n");
    check(&["/bytes", "--field", "data"], "[1, 2, 3]\n---\n");
    check(&["/bytes", "--field", "data", "-l", "2"], "[1, 2, ...]\n---\n");
    check(&["/bytes", "--field", "data[1]"], "2\n---\n");
    check(
        &["/bytes", "--no-arr"],
        "layout:\n  dim: '<sequence type: std_msgs/msg/MultiArrayDimension, length: 0>'\n  data_offset: 0\n\
         data: '<sequence type: uint8, length: 3>'\n---\n",
    );
    let refused = world.run(&["topic", "echo", "/pose", "--field", "pose.positon"]).bad(2);
    assert_eq!(
        refused,
        "error: --field pose.positon: geometry_msgs/msg/Pose has no field \"positon\"; allowed: position, orientation\n"
    );
}

#[test]
fn late_joiners_get_what_is_kept_for_them() {
    let world = World::new();
    let arguments = [
        "topic",
        "pub",
        "-r",
        "0.001",
        "--qos-durability",
        "transient_local",
        "/map",
        TEXT,
        "{data: kept}",
    ];
    let mut publisher = world.start(&arguments);
    publisher.out("publishing #1");
    assert_eq!(world.run(&["topic", "echo", "--once", "/map"]).good(), "data: kept\n---\n");
}

#[test]
fn a_robot_has_names_of_its_own_and_its_own_before_them_outside() {
    let world = World::new();
    let _robots = ["r1", "r2"].map(|it| {
        world.start(&[
            "topic",
            "pub",
            "--robot",
            it,
            "-n",
            "talker",
            "/chatter",
            TEXT,
            "{data: hello}",
        ])
    });
    world.run_until(&["topic", "list"], |it| it.out == "/r1/chatter\n/r2/chatter\n");
    world.run_until(&["topic", "list", "--robot", "r2"], |it| it.out == "/chatter\n");
    world.run_until(&["node", "list"], |it| it.out == "/r1/talker\n/r2/talker\n");
    world.run_until(&["node", "list", "--robot=r1"], |it| it.out == "/r2/talker\n/talker\n");
    let of = |variables: &[(&str, &str)], words: &[&str]| {
        let words = [&["topic", "echo", "--once"], words].concat();
        world.run_with(variables, &words).good().to_owned()
    };
    assert_eq!(of(&[], &["/r2/chatter"]), "data: hello\n---\n");
    assert_eq!(of(&[("TSUJI_ROBOT", "r2")], &["/chatter"]), "data: hello\n---\n");
    // An empty name is none, whatever the environment says.
    assert_eq!(of(&[("TSUJI_ROBOT", "r2")], &["--robot", "", "/r1/chatter"]), "data: hello\n---\n");
    let wrong = world.run(&["topic", "list", "--robot", "r-2"]).bad(2);
    let expect =
        "error: invalid value 'r-2' for '--robot <NAME>': no name of a robot; allowed: letters";
    assert!(wrong.starts_with(expect), "{wrong}");
}

#[test]
fn lists_in_the_words_of_ros2() {
    let world = World::new();
    assert_eq!(world.run(&["topic", "list"]).good(), "");
    let _talker = world.start(&["topic", "pub", "-n", "talker", "/b/chatter", TEXT]);
    let _hidden = world.start(&["topic", "pub", "-n", "hider", "/_private/state", TEXT]);
    let _listener = world.start(&["topic", "echo", "/b/chatter", TEXT]);
    world.run_until(&["topic", "list", "-v"], |it| it.out.contains("subscriber"));
    world.run_until(&["node", "list", "-c"], |it| it.out == "2\n");
    world.run_until(&["topic", "list", "--include-hidden-topics"], |it| {
        it.out == "/_private/state\n/b/chatter\n"
    });
    assert_eq!(world.run(&["topic", "list"]).good(), "/b/chatter\n");
    assert_eq!(world.run(&["topic", "list", "-t"]).good(), "/b/chatter [std_msgs/msg/String]\n");
    assert_eq!(world.run(&["topic", "list", "-c"]).good(), "1\n");
    assert_eq!(
        world.run(&["topic", "list", "-v"]).good(),
        "Published topics:\n * /b/chatter [std_msgs/msg/String] 1 publisher\n\n\
         Subscribed topics:\n * /b/chatter [std_msgs/msg/String] 1 subscriber\n\n"
    );
    assert_eq!(world.run(&["node", "list"]).good(), "/hider\n/talker\n");
    assert_eq!(
        world.run(&["node", "info", "/talker"]).good(),
        "/talker\n  Subscribers:\n  Publishers:\n    /b/chatter: std_msgs/msg/String\n  \
         Service Servers:\n  Service Clients:\n  Action Servers:\n  Action Clients:\n"
    );
    assert_eq!(
        world.run(&["node", "info", "/nobody"]).bad(1),
        "error: Unable to find node '/nobody'; `tsuji node list` lists those there are\n"
    );
}

#[test]
fn info_in_the_words_of_ros2() {
    let world = World::new();
    assert_eq!(
        world.run(&["topic", "info", "/chatter"]).bad(1),
        "error: Unknown topic '/chatter'\n"
    );
    let publisher = world.start(&["topic", "pub", "-n", "talker", "/chatter", TEXT]);
    world.run_until(&["topic", "list"], |it| it.out == "/chatter\n");
    let short = "Type: std_msgs/msg/String\nPublisher count: 1\nSubscription count: 0\n";
    assert_eq!(world.run(&["topic", "info", "/chatter"]).good(), short);
    let out = world.run(&["topic", "info", "-v", "/chatter"]).good();
    let json = world.run(&["topic", "info", "--json", "/chatter"]).json();
    let gid = json["publishers"][0]["gid"].as_str().unwrap();
    let host = json["publishers"][0]["process"]["host"].as_str().unwrap();
    assert_eq!(gid.len(), 47, "{gid}");
    let expect = format!(
        "Type: std_msgs/msg/String\n\nPublisher count: 1\n\n\
         Node name: talker\nNode namespace: /\nTopic type: std_msgs/msg/String\nTopic type hash: {TEXT_HASH}\n\
         Endpoint type: PUBLISHER\nGID: {gid}\nQoS profile:\n  Reliability: RELIABLE\n  \
         History (Depth): KEEP_LAST (10)\n  Durability: VOLATILE\n  Lifespan: Infinite\n  Deadline: Infinite\n  \
         Liveliness: AUTOMATIC\n  Liveliness lease duration: Infinite\nProcess: tsuji (pid {} on {host})\n\n\
         Subscription count: 0\n",
        publisher.id()
    );
    assert_eq!(out, expect);
}

#[test]
fn qos_that_does_not_fit_is_told_everywhere() {
    let world = World::new();
    let mut publisher =
        world.start(&["topic", "pub", "-p", "0", "/odd", TEXT, "--qos-reliability", "best_effort"]);
    publisher.out("publisher: beginning loop");
    let mut echo = world.start(&["topic", "echo", "/odd", "--qos-reliability", "reliable"]);
    let reason = "reliability: offered best_effort, requested reliable";
    echo.err(reason);
    publisher.err(reason);
    let info = world.run(&["topic", "info", "/odd"]).good();
    assert!(info.contains("Incompatible pairs: 1\n"), "{info}");
    assert!(info.ends_with(&format!("(tsuji {}): {reason}\n", echo.id())), "{info}");
    let routes = world.run(&["routes", "--json"]).json();
    assert_eq!(routes[0]["state"], "incompatible", "{routes}");
    assert_eq!(routes[0]["mismatches"][0], reason, "{routes}");
    let table = world.run(&["routes"]).good();
    assert!(table.contains("none: QoS") && table.contains(reason), "{table}");
}

#[test]
fn two_types_on_one_topic() {
    let world = World::new();
    let _text = world.start(&["topic", "pub", "/x", TEXT]);
    let _number = world.start(&["topic", "pub", "/x", "std_msgs/msg/Int32"]);
    let _echo = world.start(&["topic", "echo", "/x", TEXT]);
    let table = world.run_until(&["routes"], |it| it.out.contains("none: "));
    assert!(table.out.contains("none: type") && !table.out.contains("QoS"), "{table:?}");
    let both = "/x [std_msgs/msg/Int32, std_msgs/msg/String]\n";
    world.run_until(&["topic", "list", "-t"], |it| it.out == both);
    let info = world.run(&["topic", "info", "/x"]).good();
    assert!(info.starts_with("Type: ['std_msgs/msg/Int32', 'std_msgs/msg/String']\n"), "{info}");
    assert_eq!(
        world.run(&["topic", "echo", "/x"]).bad(2),
        "error: Cannot echo topic '/x', as it contains more than one type: \
         [std_msgs/msg/Int32, std_msgs/msg/String]; name one behind the topic\n"
    );
    assert_eq!(
        world.run(&["topic", "echo", "--once", "/x", "std_msgs/msg/Int32"]).out,
        "data: 0\n---\n"
    );
}

#[test]
fn hz_measures() {
    let world = World::new();
    let _publisher = world.start(&["topic", "pub", "-r", "100", "-p", "0", "/fast", TEXT]);
    let mut hz = world.start(&["topic", "hz", "-w", "10", "/fast"]);
    hz.out("average rate: ");
    hz.out(" window: 10");
    let ended = hz.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rate = ended.out.lines().next().unwrap().strip_prefix("average rate: ").unwrap();
    assert!(rate.parse::<f64>().unwrap() > 0.0, "{rate}");
}

#[test]
fn ctrl_c_ends_well() {
    let world = World::new();
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/x", TEXT]);
    let endless: [(&[&str], &str); 3] = [
        (&["topic", "pub", "/y", TEXT], "publishing #1"),
        (&["topic", "echo", "/x"], "---"),
        (&["routes", "--watch", "-i", "0.05"], "/x"),
    ];
    for (arguments, sign) in endless {
        let _echo = world.start(&["topic", "echo", "/x"]);
        let mut running = world.start(arguments);
        running.out(sign);
        let ended = running.stop();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{arguments:?}: {ended:?}");
    }
    // One that waits for what never comes.
    let mut waiting = world.start(&["topic", "echo", "/never"]);
    waiting.err("WARNING");
    assert_eq!(waiting.stop().code, Some(0));
}

#[test]
fn a_reader_that_hangs_up_is_no_error() {
    let world = World::new();
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/x", TEXT, "{data: hello}"]);
    world.run_until(&["topic", "list"], |it| it.out == "/x\n");
    let (line, ended) = first_line_then_hang_up(&mut world.command(&["topic", "echo", "/x"]));
    assert_eq!(line, "data: hello\n");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let (line, ended) = first_line_then_hang_up(&mut world.command(&["interface", "list"]));
    assert_eq!(line, "Messages:\n");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
}

#[test]
fn nothing_is_left_behind() {
    let world = World::new();
    let mut publisher = world.start(&["topic", "pub", "/x", TEXT]);
    publisher.out("publishing #1");
    world.run(&["topic", "list"]).good();
    assert_eq!(publisher.stop().code, Some(0));
    assert_eq!(entries(&world.run_time().join("domain-0")), [""; 0]);
}

#[test]
fn a_message_that_is_none_stops_nothing_else() {
    let world = World::new();
    let context = Context::builder().isolated().runtime_dir(world.run_time()).build().unwrap();
    let node = context.node("liar").unwrap();
    let raw = RawType::new(TEXT).hash(TEXT_HASH);
    let publisher = node.create_raw_publisher("/x", raw, Qos::DEFAULT).unwrap();
    let mut echo = world.start(&["topic", "echo", "/x"]);
    publisher.wait_for_subscriptions(1, Duration::from_secs(100)).unwrap();
    // It claims more letters than there are bytes.
    publisher.publish_bytes(&[0, 1, 0, 0, 255, 255, 255, 127, b'x', 0]).unwrap();
    publisher.publish_bytes(&[0, 1, 0, 0, 2, 0, 0, 0, b'x', 0]).unwrap();
    echo.out("data: x");
    echo.err("WARNING: a message on /x was no valid std_msgs/msg/String: ");
    assert_eq!(echo.stop().code, Some(0));
}

#[test]
fn a_stopped_process_is_left_out() {
    let world = World::new();
    let mut stopped = world.start(&["topic", "pub", "/stopped", TEXT]);
    stopped.out("publishing #1");
    stopped.freeze();
    let _well = world.start(&["topic", "pub", "-n", "well", "/x", TEXT]);
    let ended = world.run_until(&["topic", "list"], |it| it.out == "/x\n");
    let warning =
        format!("WARNING: tsuji (pid {}) does not answer; what it has is left out\n", stopped.id());
    assert_eq!((ended.code, &ended.err), (Some(0), &warning));
    for command in [["node", "list"], ["routes", "--json"]] {
        let ended = world.run(&command);
        assert_eq!((ended.code, &ended.err), (Some(0), &warning), "{ended:?}");
    }
    let ended = world.run(&["doctor", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    let is_there =
        |key: &str, text: &str| json.as_array().unwrap().iter().any(|it| it[key] == text);
    assert!(is_there("found", "1 other process met") && is_there("what", "no answer"), "{json:#}");
    assert!(is_there("mend", &format!("kill -CONT {}", stopped.id())), "{json:#}");
}

#[test]
fn flags_that_scripts_carry() {
    let world = World::new();
    world.write("two.yaml", "data: one\n---\ndata: \"a: b\"\n---\n");
    let mut publisher = world.start(&[
        "topic",
        "pub",
        "--yaml-file",
        "two.yaml",
        "-n",
        "talker",
        "-r",
        "50",
        "/x",
        TEXT,
        "--qos-liveliness",
        "manual_by_topic",
        "--qos-liveliness-lease-duration",
        "100",
        "--spin-time",
        "2",
        "--no-daemon",
    ]);
    publisher.out("publishing #1: std_msgs.msg.String(data='one')");
    publisher.out("publishing #2: std_msgs.msg.String(data='a: b')");
    publisher.out("publishing #3: std_msgs.msg.String(data='one')");
    let mut echo = world.start(&["topic", "echo", "/x", "--flow-style", "--lost-messages"]);
    echo.out("{data: one}");
    echo.out("{data: 'a: b'}");
    let mut echo = world.start(&["topic", "echo", "/x", "--raw", "--no-lost-messages"]);
    echo.out("b'\\x00\\x01\\x00\\x00\\x04\\x00\\x00\\x00one\\x00'");
    let out = world.run(&["topic", "echo", "/x", "--once", "--include-message-info"]).good();
    let keys: Vec<&str> = out.lines().filter_map(|it| Some(it.split_once(':')?.0)).collect();
    let info = [
        "publication_sequence_number",
        "received_timestamp",
        "reception_sequence_number",
        "source_timestamp",
        "data",
    ];
    assert_eq!(keys, info, "{out}");
    let json = world.run(&["topic", "info", "--json", "/x"]).json();
    let qos = &json["publishers"][0]["qos"];
    assert_eq!(qos["liveliness"], "manual_by_topic");
    assert_eq!(qos["liveliness_lease_ns"], 100_000_000_000_u64);
    let listed = world.run(&["node", "list", "-s", "--no-daemon"]);
    // What depends on no time takes the word and does the same.
    assert!(listed.out.contains("/talker") && listed.err.is_empty(), "{listed:?}");
}

#[test]
fn a_topics_type_and_a_types_topics() {
    let world = World::new();
    let _publisher = world.start(&["topic", "pub", "/x", TEXT]);
    world.run_until(&["topic", "list"], |it| it.out == "/x\n");
    assert_eq!(world.run(&["topic", "type", "/x"]).good(), "std_msgs/msg/String\n");
    assert_eq!(world.run(&["topic", "type", "/y"]).bad(1), "");
    assert_eq!(world.run(&["topic", "find", TEXT]).good(), "/x\n");
    assert_eq!(world.run(&["topic", "find", "-c", TEXT]).good(), "1\n");
    assert_eq!(world.run(&["topic", "find", "std_msgs/msg/Int32"]).good(), "");
}

#[test]
fn bw_measures() {
    let world = World::new();
    let _publisher = world.start(&["topic", "pub", "-r", "100", "-p", "0", "/fast", TEXT]);
    let mut bw = world.start(&["topic", "bw", "-w", "10", "/fast"]);
    bw.out("Subscribed to [/fast]");
    bw.out("/s from 10 messages");
    bw.out("\tMessage size mean: ");
    assert_eq!(bw.stop().code, Some(0));
}

#[test]
fn delay_measures_from_the_stamp() {
    let world = World::new();
    const STAMPED: &str = "geometry_msgs/msg/PoseStamped";
    let fast = ["topic", "pub", "-r", "100", "-p", "0"];
    let _now = world.start(&[&fast[..], &["/now", STAMPED, "{header: auto}"]].concat());
    // Stamped long before it is published.
    let _old =
        world.start(&[&fast[..], &["/old", STAMPED, "{header: {stamp: {sec: 1}}}"]].concat());
    let mut delay = world.start(&["topic", "delay", "-w", "10", "/now"]);
    delay.out("average delay: ");
    delay.out("\tmin: ");
    delay.out("s window: 10");
    assert_eq!(delay.stop().code, Some(0));
    let mut delay = world.start(&["topic", "delay", "--json", "/old"]);
    delay.out("{\"delay_s\":");
    let ended = delay.stop();
    let first: serde_json::Value = serde_json::from_str(ended.out.lines().next().unwrap()).unwrap();
    let number = |key: &str| first[key].as_f64().unwrap();
    // The time since the epoch's first second, which only a clock that is set wrong makes short.
    assert!(number("delay_s") > 1.6e9, "{first}");
    assert!(
        number("min_s") <= number("delay_s") && number("delay_s") <= number("max_s"),
        "{first}"
    );
    assert!(number("window") >= 1.0 && number("std_dev_s") >= 0.0, "{first}");
}

#[test]
fn delay_needs_a_header() {
    let world = World::new();
    let _publisher = world.start(&["topic", "pub", "/x", TEXT]);
    world.run_until(&["topic", "list"], |it| it.out == "/x\n");
    let error = world.run(&["topic", "delay", "/x"]).bad(1);
    let expect = "error: msg does not have header: std_msgs/msg/String has no field `std_msgs/Header header`\n";
    assert_eq!(error, expect);
    // A field of that name may be something else.
    world.write("ros/share/mine/msg/Odd.msg", "string header\n");
    let prefix = world.path("ros");
    let environment = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let mut command = world.command(&["topic", "pub", "/odd", "mine/msg/Odd"]);
    let _odd = Running::new(command.envs(environment));
    world.run_until(&["topic", "list"], |it| it.out.contains("/odd\n"));
    let error = world.run_with(&environment, &["topic", "delay", "/odd"]).bad(1);
    assert!(error.starts_with("error: msg does not have header: mine/msg/Odd"), "{error}");
}

#[test]
fn what_is_measured_as_json() {
    let world = World::new();
    let _publisher = world.start(&["topic", "pub", "-r", "100", "-p", "0", "/fast", TEXT]);
    let measured = [("hz", "rate_hz"), ("bw", "bytes_per_s")];
    for (command, key) in measured {
        let mut running = world.start(&["topic", command, "--json", "/fast"]);
        running.out(key);
        let ended = running.stop();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for line in ended.out.lines() {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(json[key].as_f64().unwrap() > 0.0, "{json}");
        }
    }
}
