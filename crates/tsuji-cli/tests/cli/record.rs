//! `tsuji record`, `tsuji play` and `tsuji bag`.

use std::fs;

use serde_json::json;

use crate::support::{AtTerminal, Ended, Running, Signal, World, is_there};

const TEXT: &str = "std_msgs/msg/String";

/// Starts a recorder that has joined, and waits until `/chatter` with `count` messages is in the file.
fn record(world: &World, file: &str, arguments: &[&str], count: u32) -> serde_json::Value {
    let words = ["record", "/chatter", "-o", file, "--json"];
    let recorder = world.start(&[&words[..], arguments].concat());
    world.publish(count, "/chatter", TEXT, "{data: hello}");
    // Whoever published has left, and waits for nobody; what came waits in the recorder, and is written at the end.
    let ended = recorder.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()
}

#[test]
fn what_is_recorded_is_played_under_another_name() {
    let world = World::new();
    let report = record(&world, "a.mcap", &[], 20);
    assert_eq!((&report["messages"], &report["missing"]), (&json!(20), &json!(0)), "{report}");
    assert_eq!(report["topics"][0]["type"], TEXT);

    let info = world.run(&["bag", "info", "a.mcap"]).good();
    assert!(info.starts_with("20 messages of 1 topics in "), "{info}");
    assert!(info.contains("\n  /chatter  std_msgs/msg/String  20 messages\n"), "{info}");

    let mut echo = world.start(&["topic", "echo", "/again", TEXT, "--qos-depth", "100"]);
    echo.err("does not appear to be published yet");
    let play =
        ["play", "a.mcap", "--wait", "1", "--rate", "10", "-m", "/chatter:=/again", "--json"];
    let ended = world.run(&play);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["messages"], 20);
    (0..20).for_each(|_| echo.out("data: hello"));
    assert_eq!(echo.stop().code, Some(0));
}

#[test]
fn a_file_that_exists_is_kept_unless_forced() {
    let world = World::new();
    world.write("a.mcap", "precious");
    let error = world.run(&["record", "--all", "-o", "a.mcap"]).bad(2);
    assert_eq!(error, "error: a.mcap exists; --force replaces it\n");
    assert_eq!(fs::read(world.path("a.mcap")).unwrap(), b"precious");
    let ended = world.run(&["record", "--all", "-o", "a.mcap", "--force", "-d", "0.1"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(world.run(&["bag", "info", "a.mcap"]).good().starts_with("0 messages"));
}

#[test]
fn what_is_no_recording_is_refused() {
    let world = World::new();
    world.write("a.txt", "nothing of the kind");
    let error = world.run(&["play", "a.txt"]).bad(1);
    assert_eq!(error, "error: a.txt is no MCAP file: it does not begin as one\n");
    assert!(
        world.run(&["play", "none.mcap"]).bad(1).contains("cannot read none.mcap: No such file")
    );
    world.write(
        "bag/metadata.yaml",
        "rosbag2_bagfile_information:\n  relative_file_paths:\n    - a.db3\n",
    );
    assert!(world.run(&["play", "bag"]).bad(1).contains("names a.db3; played: files of MCAP"));
    world.write("out/metadata.yaml", "relative_file_paths: [../a.mcap]\n");
    assert!(
        world
            .run(&["play", "out"])
            .bad(1)
            .contains("names ../a.mcap; allowed: files in its folder")
    );
    assert!(world.run(&["record"]).bad(2).contains("<TOPIC>"));
    assert!(world.run(&["record", "/a//b"]).bad(2).contains("a token is missing here"));
}

#[test]
fn unknown_topics_and_names_are_refused_before_anything_is_played() {
    let world = World::new();
    record(&world, "a.mcap", &[], 2);
    let error = world.run(&["play", "a.mcap", "--topics", "/other"]).bad(2);
    assert_eq!(error, "error: no topic of the recording is meant; it has /chatter\n");
    let error = world.run(&["play", "a.mcap", "--remap", "/other:=/x"]).bad(2);
    assert_eq!(error, "error: remap /other: the recording has no such topic\n");
    let error = world.run(&["play", "a.mcap", "--start-offset=-1"]).bad(2);
    assert!(error.contains("a number of seconds, such as 0"), "{error}");
    assert!(world.run(&["play", "a.mcap", "--rate", "0"]).bad(2).contains("rate 0; allowed"));
    assert!(world.run(&["play", "a.mcap", "--rate", "-1"]).bad(2).contains("rate -1; allowed"));
    world.run(&["record", "-a", "-o", "empty.mcap", "-d", "0.1"]);
    let error = world.run(&["play", "empty.mcap", "--topics", "/x"]).bad(2);
    assert_eq!(error, "error: no topic of the recording is meant; it has none\n");
}

#[test]
fn a_file_that_is_cut_off_is_played_as_far_as_it_is_whole() {
    let world = World::new();
    record(&world, "a.mcap", &[], 20);
    let whole = fs::read(world.path("a.mcap")).unwrap();
    fs::write(world.path("cut.mcap"), &whole[..whole.len() - 100]).unwrap();
    let ended = world.run(&["play", "cut.mcap", "--rate", "100", "--json"]);
    assert_eq!((ended.code, &ended.json()["messages"]), (Some(1), &json!(20)), "{ended:?}");
    assert!(
        ended.err.contains("the file ends here, in the middle; what is before is played"),
        "{ended:?}"
    );

    let mut bent = whole;
    let at = bent.windows(5).position(|it| it == b"hello").unwrap();
    bent[at] ^= 1;
    fs::write(world.path("bent.mcap"), bent).unwrap();
    let ended = world.run(&["bag", "info", "--check", "bent.mcap"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("a chunk is left out: its CRC is "), "{ended:?}");
}

#[test]
fn a_recorder_that_is_killed_has_lost_a_second_at_most() {
    let world = World::new();
    let recorder = world.start(&["record", "/chatter", "-o", "a.mcap"]);
    world.publish(20, "/chatter", TEXT, "{data: hello}");
    // Far from a chunk's four megabytes, and nothing more comes.
    let has_all = |it: &Ended| it.out.starts_with("20 messages");
    world.run_until(&["bag", "info", "a.mcap"], has_all);
    recorder.kill();
    let info = world.run(&["bag", "info", "a.mcap"]);
    assert!(info.err.contains("the file ends here, in the middle"), "{info:?}");
    let played = world.run(&["play", "a.mcap", "-r", "1000", "--json"]);
    assert_eq!((&played.json()["messages"], played.code), (&json!(20), Some(1)), "{played:?}");
}

#[test]
fn a_closed_terminal_ends_a_recording_properly() {
    let world = World::new();
    let mut recorder = world.start(&["record", "/chatter", "-o", "a.mcap", "--json"]);
    recorder.err("Ctrl-C ends it");
    recorder.signal(Signal::Hangup);
    let ended = recorder.end();
    assert_eq!((ended.code, &ended.json()["messages"]), (Some(0), &json!(0)), "{ended:?}");
    assert_eq!(world.run(&["bag", "info", "a.mcap"]).code, Some(0));
}

#[test]
fn a_closed_terminal_ends_commands_properly() {
    let world = World::new();
    record(&world, "a.mcap", &[], 1);
    let commands: [(&[&str], &str); 3] = [
        (&["play", "a.mcap", "--wait", "1"], "waiting for"),
        (&["topic", "echo", "/nobody", TEXT], "does not appear to be published yet"),
        (&["bridge", "--port", "0", "--address", "127.0.0.1"], "Ctrl-C ends it"),
    ];
    for (command, is_there) in commands {
        let mut started = world.start(command);
        started.err(is_there);
        started.signal(Signal::Hangup);
        let ended = started.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn a_limit_of_files_ends_a_recording_with_an_error() {
    let world = World::new();
    let program = crate::support::tsuji();
    // 8 MB, in blocks of 512 bytes.
    let script = format!("ulimit -f 16384; exec {program} record /images -o a.mcap");
    let mut recorder = Running::new(&mut world.foreign(["sh", "-c", &script]));
    recorder.err("Ctrl-C ends it");
    let values = format!("{{data: {}}}", "x".repeat(100_000));
    let publisher =
        world.start(&["topic", "pub", "-w", "1", "-r", "500", "-p", "0", "/images", TEXT, &values]);
    let ended = recorder.end();
    drop(publisher);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.err.contains("recording ended after ")
            && ended.err.contains("8388608 bytes, as `ulimit -f` says"),
        "{ended:?}"
    );
    let info = world.run(&["bag", "info", "--check", "--json", "a.mcap"]);
    assert_eq!((info.code, &info.json()["damage_count"]), (Some(0), &json!(0)), "{info:?}");
    assert!(30 < info.json()["messages"].as_u64().unwrap(), "{info:?}");
}

#[test]
fn recordings_have_help_with_examples() {
    let world = World::new();
    for command in ["record", "play", "bag record", "bag play", "bag info"] {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = world.run(&words).good();
        assert!(
            help.contains("Examples:") && help.contains(&format!("  tsuji {command}")),
            "{help}"
        );
        // What changes nothing, or is refused, is no help.
        assert!(!help.contains("--log-level") && !help.contains("--storage-config-file"), "{help}");
    }
}

/// The line of a process's status that is a set of signals; the lowest bit is signal 1. 0 once the process has ended.
fn signals(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let set = status.lines().find_map(|it| it.strip_prefix(name)).unwrap_or("0");
    u64::from_str_radix(set.trim(), 16).unwrap()
}

/// As soon as it hears signals, of which SIGHUP is the last, and which is before it has all that it works with.
#[test]
fn a_command_that_is_ended_at_once_has_not_failed() {
    let world = World::new();
    let commands: [&[&str]; 6] = [
        &["topic", "echo", "/nobody", TEXT],
        &["topic", "pub", "/chatter", TEXT, "{data: hello}"],
        &["topic", "hz", "/nobody"],
        &["service", "call", "/nobody", "std_srvs/srv/Empty"],
        &["param", "list"],
        &["log"],
    ];
    for command in commands {
        for signal in [Signal::Hangup, Signal::Interrupt, Signal::Terminate] {
            let started = world.start(command);
            while signals(started.id(), "SigCgt:") & 1 == 0 {
                std::thread::yield_now();
            }
            started.signal(signal);
            let ended = started.end();
            assert_eq!((ended.code, ended.err.contains("error")), (Some(0), false), "{ended:?}");
        }
    }
}

#[test]
fn a_command_that_reads_its_standard_input_is_ended() {
    let world = World::new();
    let commands: [&[&str]; 4] = [
        &["topic", "pub", "/chatter", TEXT, "--stdin"],
        &["service", "call", "/nobody", "std_srvs/srv/Empty", "--stdin"],
        &["action", "send_goal", "/nobody", "example_interfaces/action/Fibonacci", "--stdin"],
        &["interface", "show", "-"],
    ];
    for command in commands {
        for signal in [Signal::Hangup, Signal::Interrupt, Signal::Terminate] {
            // An input that nobody writes to and that does not end.
            let script = "rm -f input && mkfifo input && exec \"$@\" <> input";
            let started =
                Running::new(&mut world.command_under(&["sh", "-c", script, "sh"], command));
            while signals(started.id(), "SigCgt:") & 1 == 0 {
                std::thread::yield_now();
            }
            started.signal(signal);
            let ended = started.end();
            assert_eq!((ended.code, &*ended.out, &*ended.err), (Some(0), "", ""), "{command:?}");
        }
    }
}

#[test]
fn a_command_that_waits_for_a_datagram_is_ended() {
    if !is_there(&["unshare", "-rn", "true"]) || !is_there(&["ip", "-V"]) {
        return;
    }
    let world = World::new();
    let start = |trap: &str| {
        let network = "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo";
        let script = format!("{network} && {trap} exec \"$@\"");
        let wrapper = ["unshare", "-rn", "sh", "-c", &script, "sh"];
        let command = &mut world.command_under(&wrapper, &["multicast", "receive"]);
        let mut started = Running::new(command);
        started.out("Waiting for UDP multicast datagram...");
        started
    };
    for signal in [Signal::Hangup, Signal::Interrupt, Signal::Terminate] {
        let started = start("");
        started.signal(signal);
        let ended = started.end();
        assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{ended:?}");
    }
    let started = start("trap '' HUP INT;");
    let set = |name| signals(started.id(), name) & 3;
    assert_eq!((set("SigIgn:"), set("SigCgt:")), (3, 0));
    started.signal(Signal::Terminate);
    assert_eq!(started.end().code, Some(0));
}

/// What each command does about a signal that was ignored when it began, as under `nohup` and in the background of a shell
/// without a terminal.
#[test]
fn what_was_ignored_at_the_start_stays_ignored() {
    let world = World::new();
    record(&world, "a.mcap", &[], 1);
    world.write("empty.launch.xml", "<launch><executable cmd=\"sleep 1000\"/></launch>");
    let commands: [(&[&str], &str); 5] = [
        (&["record", "--all", "-o", "b.mcap"], "Ctrl-C ends it"),
        (&["play", "a.mcap", "--wait", "1"], "waiting for"),
        (&["topic", "echo", "/nobody", TEXT], "does not appear to be published yet"),
        (&["bridge", "--port", "0", "--address", "127.0.0.1"], "Ctrl-C ends it"),
        (&["launch", "empty.launch.xml"], "process started with pid"),
    ];
    for (command, is_there) in commands {
        let mut started =
            world.command_under(&["sh", "-c", "trap '' HUP INT; exec \"$@\"", "-"], command);
        let mut started = Running::new(&mut started);
        if command[0] == "launch" {
            started.out(is_there)
        } else {
            started.err(is_there)
        }
        let set = |name| signals(started.id(), name) & 3;
        // SIGHUP is 1 and SIGINT 2, counted from the lowest bit.
        assert_eq!((set("SigIgn:"), set("SigCgt:")), (3, 0), "{command:?}");
        started.signal(Signal::Hangup);
        started.signal(Signal::Interrupt);
        started.signal(Signal::Terminate);
        let ended = started.end();
        assert!(!ended.err.contains("SIGHUP") && !ended.err.contains("SIGINT ("), "{ended:?}");
    }
}

#[test]
fn what_is_in_a_file_commands_no_terminal() {
    let world = World::new();
    record(&world, "a.mcap", &[], 1);
    let mut bent = fs::read(world.path("a.mcap")).unwrap();
    for at in 0..bent.len() {
        if bent[at..].starts_with(b"/chatter") {
            bent[at..at + 8].copy_from_slice(b"/a\x1b[2J\r\n");
        }
    }
    fs::write(world.path("bent.mcap"), bent).unwrap();
    let info = world.run(&["bag", "info", "bent.mcap"]);
    assert!(info.out.contains("\n  /a\\x1b[2J\\r\\n  std_msgs/msg/String  1 messages"), "{info:?}");
    let played = world.run(&["play", "bent.mcap"]);
    assert!(played.err.contains("/a\\x1b[2J\\r\\n is not played: "), "{played:?}");
    assert!(!played.err.contains('\x1b'), "{played:?}");
}

#[test]
fn a_folder_of_rosbag2_is_played_file_by_file() {
    let world = World::new();
    record(&world, "one.mcap", &[], 3);
    record(&world, "two.mcap", &[], 4);
    world.write(
        "bag/metadata.yaml",
        "rosbag2_bagfile_information:\n  version: 9\n  relative_file_paths:\n    - one.mcap\n    - two.mcap\n  \
         duration:\n    nanoseconds: 1\n",
    );
    for name in ["one.mcap", "two.mcap"] {
        fs::rename(world.path(name), world.path("bag").join(name)).unwrap();
    }
    let info = world.run(&["bag", "info", "bag", "--json"]);
    assert_eq!((&info.json()["messages"], info.code), (&json!(7), Some(0)), "{info:?}");
    assert_eq!(world.run(&["play", "bag", "-r", "1000", "--json"]).json()["messages"], 7);
}

#[test]
fn a_split_recording_is_shown_and_played_as_one() {
    let world = World::new();
    let report =
        record(&world, "drive", &["--max-bag-size", "60", "--max-bag-duration", "600"], 10);
    assert_eq!((&report["messages"], &report["file"]), (&json!(10), &json!("drive")), "{report}");
    // A text takes 14 bytes, so four fit.
    for name in ["drive_0.mcap", "drive_1.mcap", "drive_2.mcap", "metadata.yaml"] {
        assert!(world.path("drive").join(name).exists(), "{name}");
    }
    assert!(world.run(&["bag", "info", "drive"]).good().starts_with("10 messages of 1 topics in "));
    let mut clock = world.start(&["topic", "echo", "/clock", "rosgraph_msgs/msg/Clock"]);
    clock.err("does not appear to be published yet");
    // Again and again, as ten texts may be over before the clock is heard.
    let player = world.start(&["play", "drive", "--clock", "100", "--rate", "0.1", "--loop"]);
    clock.out("clock:");
    assert_eq!(player.stop().code, Some(0));
    assert_eq!(clock.stop().code, Some(0));
    let played = world.run(&["play", "drive", "--start-offset", "0", "--json"]);
    assert_eq!(played.json()["messages"], 10, "{played:?}");
    let error = world.run(&["record", "--all", "-o", "drive", "-b", "60"]).bad(2);
    assert_eq!(error, "error: drive exists; a recording of several files makes its folder\n");
    assert!(
        world.run(&["record", "--all", "-f", "-b", "60"]).bad(2).contains("cannot be used with")
    );
    assert!(world.run(&["record", "--all", "-b", "0"]).bad(2).contains("bytes above 0"));
    let error = world.run(&["record", "--all", "--max-bag-duration", "1e-10"]).bad(2);
    assert!(error.contains("a number of seconds above 0"), "{error}");
    assert!(world.run(&["play", "drive", "--clock", "0"]).bad(2).contains("clock 0; allowed"));
}

#[test]
fn the_first_message_comes_to_all_who_are_there() {
    let world = World::new();
    record(&world, "a.mcap", &[], 1);
    let mut listeners: Vec<_> =
        (0..12).map(|_| world.start(&["topic", "echo", "/chatter", TEXT])).collect();
    let all = |it: &Ended| it.out.contains("Subscription count: 12");
    world.run_until(&["topic", "info", "/chatter"], all);
    let played = world.run(&["play", "a.mcap", "--json"]);
    assert_eq!((&played.json()["messages"], &*played.err), (&json!(1), ""), "{played:?}");
    listeners.iter_mut().for_each(|it| it.out("data: hello"));
}

#[test]
fn what_is_recorded_is_chosen_as_in_ros2() {
    let world = World::new();
    let publish = |topic: &str, ty: &str, value: &str| {
        world.start(&["topic", "pub", "-r", "100", "-p", "0", topic, ty, value])
    };
    let topics = ["/camera/image", "/camera/raw", "/lidar", "/_hidden/camera"];
    let _texts = topics.map(|it| publish(it, TEXT, "{data: hello}"));
    let _number = publish("/number", "std_msgs/msg/Int32", "{data: 1}");
    let hidden = ["topic", "list", "--include-hidden-topics"];
    let is_there = |it: &Ended| {
        ["/number", topics[0], topics[1], topics[2], topics[3]]
            .iter()
            .all(|topic| it.out.contains(topic))
    };
    world.run_until(&hidden, is_there);
    let check = |arguments: &[&str], expect: &[&str]| {
        let words =
            [&["record", "-f", "-o", "a.mcap", "--duration", "0.2", "--json"], arguments].concat();
        let ended = world.run(&words);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        let found: Vec<_> = report["topics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["topic"].as_str().unwrap())
            .collect();
        assert_eq!(found, expect, "{arguments:?}");
    };
    check(&["--regex", "camera"], &["/camera/image", "/camera/raw"]);
    check(&["-e", "^/l|cam", "--exclude-regex", "raw$"], &["/camera/image", "/lidar"]);
    check(&["-e", "camera", "--exclude-topics", "/camera/raw"], &["/camera/image"]);
    check(&["--topic-types", "std_msgs/msg/Int32"], &["/number"]);
    check(&["--topics", "/lidar", "number"], &["/lidar", "/number"]);
    check(&["--all-topics", "--exclude-topic-types", TEXT], &["/number"]);
    check(&["-e", "camera", "--include-hidden-topics", "-x", "/camera/*"], &["/_hidden/camera"]);
    check(&["--all-services"], &[]);
    check(&["-a", "--ignore-leaf-topics"], &[]);
    let refused = world.run(&["record", "--regex", "("]).bad(2);
    assert!(refused.contains("unclosed group; allowed: a regular expression"), "{refused}");
    let refused = world.run(&["record", "-a", "--exclude", "/camera.*"]).bad(2);
    assert!(refused.contains("--exclude-regex takes regular expressions"), "{refused}");
}

#[test]
fn a_topic_that_nobody_publishes_is_told() {
    let world = World::new();
    let mut recorder =
        world.start(&["record", "/nobody", "/some*", "--services", "/add", "-o", "a.mcap"]);
    recorder.err("topic [/nobody] does not appear to be published yet");
    recorder.err("topic [/add/_service_event] does not appear to be published yet");
    recorder.err("Ctrl-C ends it");
    let ended = recorder.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("topic [/nobody] was not published"), "{ended:?}");
    assert!(!ended.err.contains("topic [/some"), "{ended:?}");

    let words = ["record", "/some*", "-f", "-o", "a.mcap", "-d", "0.5", "-e", "/nomatch"];
    let more = ["--topics", "/more/**", "--actions", "/fib", "--all-services", "--all-actions"];
    let ended = world.run(&[&words[..], &more, &["--topic-types", "foo_msgs/Bar"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for choice in [
        "pattern [/some*]",
        "pattern [/more/**]",
        "--actions [/fib]",
        "--all-services",
        "--all-actions",
        "--regex [/nomatch]",
        "--topic-types [foo_msgs/msg/Bar]",
    ] {
        for end in ["appears to be published yet", "was published, and none is in the file"] {
            let line = format!("WARNING: {choice}: no topic to record {end}\n");
            assert!(ended.err.contains(&line), "{line}{ended:?}");
        }
    }
    // Nothing is said of what is there.
    let _publisher = world.start(&["topic", "pub", "/chatter", TEXT, "{data: hello}", "-p", "0"]);
    world.run_until(&["topic", "list"], |it| it.out == "/chatter\n");
    let words = ["record", "/chat*", "-f", "-o", "a.mcap", "-d", "0.5", "-e", "chat"];
    let ended = world.run(&[&words[..], &["--topic-types", "std_msgs/String"]].concat());
    assert!(ended.code == Some(0) && !ended.err.contains("WARNING"), "{ended:?}");
}

/// All flags of `ros2 bag record`, `play` and `info` of Jazzy and Kilted that have no place here.
#[test]
fn flags_of_ros2_that_are_not_here_say_what_takes_their_place() {
    let world = World::new();
    record(&world, "a.mcap", &[], 1);
    let record: &[&str] = &["bag", "record", "-a", "-o", "b.mcap"];
    let play: &[&str] = &["bag", "play", "a.mcap"];
    let info: &[&str] = &["bag", "info", "a.mcap"];
    let refused: [(&[&str], &[&str], &str); 24] = [
        (record, &["-s", "sqlite3"], "`ros2 bag convert`"),
        (record, &["--storage-config-file", "x"], "--compression zstd"),
        (record, &["-f", "other"], "cdr"),
        (record, &["--compression-mode", "file"], "--compression zstd"),
        (
            record,
            &["--compression-mode", "message", "--compression-format", "zstd"],
            "--compression zstd",
        ),
        (record, &["--start-paused"], "a recording begins at once"),
        (record, &["--use-sim-time"], "record /clock too"),
        (record, &["--snapshot-mode"], "--max-bag-duration"),
        (record, &["--max-bag-files", "3"], "can be removed"),
        (record, &["--repeat-transient-local", "/map"], "a folder is played as one"),
        (record, &["--repeat-all-transient-local"], "a folder is played as one"),
        (record, &["--static-topics-path", "x"], "--include-unpublished-topics"),
        (record, &["--custom-data", "nothing"], "allowed: KEY=VALUE"),
        (play, &["--storage", "sqlite3"], "`ros2 bag convert`"),
        (play, &["--storage-config-file", "x"], "no settings"),
        (play, &["--message-order", "sent"], "in which they were received"),
        (play, &["--publish-service-requests"], "`tsuji service call`"),
        (play, &["--service-requests-source", "client_introspection"], "`tsuji service call`"),
        (play, &["--send-actions-as-client"], "`tsuji action send_goal`"),
        (play, &["--start-paused"], "needs a terminal"),
        (info, &["-s", "sqlite3"], "`ros2 bag convert`"),
        (&["bag"], &["convert", "-i", "a"], "`ros2 bag convert`"),
        (&["bag"], &["reindex", "a"], "`tsuji play`"),
        (&["bag"], &["burst", "a", "-n", "3"], "--start-paused"),
    ];
    for (command, flags, expect) in refused {
        let error = world.run(&[command, flags].concat()).bad(2);
        assert!(error.starts_with("error: ") && error.contains(expect), "{flags:?}: {error}");
        assert!(!world.path("b.mcap").exists());
    }
    let taken: [(&[&str], &[&str]); 5] = [
        (
            record,
            &[
                "-s",
                "mcap",
                "-f",
                "cdr",
                "-p",
                "100",
                "--max-cache-size",
                "0",
                "--storage-preset-profile",
                "zstd_fast",
            ],
        ),
        (
            record,
            &[
                "--compression-mode",
                "none",
                "--compression-format",
                "",
                "--compression-queue-size",
                "1",
                "--compression-threads",
                "0",
                "--compression-threads-priority",
                "-5",
                "--log-level",
                "info",
                "--disable-keyboard-controls",
                "--no-discovery",
                "--include-unpublished-topics",
                "--node-name",
                "recorder",
                "--custom-data",
                "a=b",
                "c=d=e",
            ],
        ),
        (
            play,
            &[
                "--storage",
                "mcap",
                "--read-ahead-queue-size",
                "1000",
                "--disable-loan-message",
                "--disable-keyboard-controls",
                "--log-level",
                "warn",
                "--message-order",
                "received",
                "--progress-bar-update-rate",
                "0",
                "--progress-bar-separation-lines",
                "2",
                "--wait-for-all-acked",
                "100",
                "--delay",
                "0.01",
                "--playback-duration",
                "10",
                "--playback-until-sec",
                "-1",
                "--exclude-services",
                "/x",
                "--clock-topics-all",
                "-x",
                "nothing",
            ],
        ),
        (&["bag", "play"], &["-i", "a.mcap", "--input", "a.mcap"]),
        (info, &["-s", "mcap", "-v", "--sort", "count"]),
    ];
    for (command, flags) in taken {
        let end: &[&str] = if command == record { &["--duration", "0.1", "--force"] } else { &[] };
        let ended = world.run(&[command, flags, end].concat());
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
    }
    let recorded = world.run(&["bag", "info", "b.mcap", "--json"]).json();
    assert_eq!(recorded["metadata"]["custom_data"], json!({ "a": "b", "c": "d=e" }));
}

#[test]
fn recordings_in_the_words_of_ros2_bag() {
    let world = World::new();
    let recorder =
        world.start(&["bag", "record", "--topics", "/chatter", "-o", "drive", "-d", "600"]);
    world.publish(3, "/chatter", TEXT, "{data: hello}");
    assert_eq!(recorder.stop().code, Some(0));
    for name in ["drive_0.mcap", "metadata.yaml"] {
        assert!(world.path("drive").join(name).exists(), "{name}");
    }
    let list = fs::read_to_string(world.path("drive/metadata.yaml")).unwrap();
    assert!(list.contains("  version: 9\n") && list.contains("ros_distro: 'unknown'"), "{list}");

    // Without a name it is that of the time, and for Humble the list is one that it reads.
    let mut command = world.command(&["bag", "record", "/chatter", "--node-name", "recorder"]);
    let mut recorder = Running::new(command.env("ROS_DISTRO", "humble"));
    recorder.err("recording to rosbag2_2");
    world.run_until(&["node", "list"], |it| it.out.contains("/recorder\n"));
    assert_eq!(recorder.stop().code, Some(0));
    let names: Vec<_> =
        fs::read_dir(world.path("")).unwrap().flatten().map(|it| it.file_name()).collect();
    let name =
        names.iter().filter_map(|it| it.to_str()).find(|it| it.starts_with("rosbag2_")).unwrap();
    let list = fs::read_to_string(world.path(name).join("metadata.yaml")).unwrap();
    assert!(list.contains("  version: 5\n"), "{list}");

    let mut echo = world.start(&["topic", "echo", "/chatter", TEXT]);
    echo.err("does not appear to be published yet");
    let played =
        world.run(&["bag", "play", "drive", "-r", "100", "--exclude-topics", "/other"]).good();
    assert!(played.starts_with("played 3 messages, "), "{played}");
    (0..3).for_each(|_| echo.out("data: hello"));
    let error =
        world.run(&["bag", "play", "drive", "--exclude-topics", "/chatter", "-e", "c"]).bad(2);
    assert!(error.contains("no topic of the recording is meant; it has /chatter"), "{error}");
}

#[test]
fn info_tells_what_ros2_bag_info_tells() {
    let world = World::new();
    record(&world, "a.mcap", &[], 2);
    let json = world.run(&["bag", "info", "a.mcap", "--json"]).json();
    let (first, last) = (json["first_ns"].as_u64().unwrap(), json["last_ns"].as_u64().unwrap());
    let mut command = world.command(&["bag", "info", "a.mcap", "-v"]);
    let info = Running::new(command.env("TZ", "UTC-2:30")).end().good();
    let in_seconds = |ns: u64| format!("({}.{:09})", ns / 1_000_000_000, ns % 1_000_000_000);
    for expect in [
        "\nFiles:         a.mcap\n",
        &format!("({} bytes)\n", json["bytes"]),
        "\nStorage id:    mcap, messages in cdr\n",
        &format!(
            "\nDuration:      {}.{:09} s\n",
            (last - first) / 1_000_000_000,
            (last - first) % 1_000_000_000
        ),
        "\nStart:         20",
        &format!("+02:30 {}\nEnd: ", in_seconds(first)),
        &format!("+02:30 {}\nMessages:      2\n", in_seconds(last)),
        // A text of five letters takes 14 bytes.
        "\n  /chatter  std_msgs/msg/String  2 messages, 28 B\n",
    ] {
        assert!(info.contains(expect), "{expect:?} in {info}");
    }
    assert_eq!(
        (&json["storage"], &json["topics"][0]["serialization_format"]),
        (&json!("mcap"), &json!("cdr"))
    );
    assert!(json["start"].as_str().unwrap().starts_with("20"), "{json}");
    assert_eq!(world.run(&["bag", "info", "-t", "a.mcap"]).good(), "/chatter\n");
}

#[test]
fn qos_is_overridden_as_in_ros2() {
    let world = World::new();
    record(&world, "a.mcap", &[], 1);
    let qos = "/chatter: {durability: transient_local, reliability: reliable, history: keep_all}\n";
    world.write("qos.yaml", qos);
    // Nobody is there before it, and so only who is late can have it.
    let player = world.start(&[
        "play",
        "a.mcap",
        "--qos-profile-overrides-path",
        "qos.yaml",
        "--delay",
        "0.01",
        "--loop",
        "-r",
        "0.01",
    ]);
    let durable =
        ["--qos-durability", "transient_local", "--qos-reliability", "reliable", "--once"];
    let heard = world.run(&[&["topic", "echo", "/chatter", TEXT][..], &durable].concat());
    assert!(heard.out.contains("data: hello"), "{heard:?}");
    assert_eq!(player.stop().code, Some(0));
    world.write("wrong.yaml", "/chatter: {depht: 1}\n");
    let error = world.run(&["play", "a.mcap", "--qos-profile-overrides-path", "wrong.yaml"]).bad(2);
    assert!(
        error.starts_with("error: wrong.yaml: /chatter: \"depht\" is no policy; allowed: "),
        "{error}"
    );
}

/// A recording is played at a terminal of its own, at which `keys` are pressed once it says what they do; and what `stty`
/// says of the terminal before and after.
fn played_at_a_terminal(script: &str, keys: &[&[u8]]) -> Option<String> {
    let world = World::new();
    record(&world, "a.mcap", &[], 3);
    let program = crate::support::tsuji();
    let script = format!("P='{program} play a.mcap --start-paused'\n{script}\n");
    let mut terminal = AtTerminal::start(&world, &script)?;
    terminal.wait("space pauses and goes on");
    for keys in keys {
        terminal.press(keys);
        if *keys == b"\x1a" {
            terminal.wait("stopped");
        }
    }
    terminal.wait("end of it");
    Some(terminal.end())
}

fn has_same_terminal(out: &str, times: usize) {
    let states = out.lines().map(|it| it.trim().rsplit("\x1b[K").next().unwrap());
    let states: Vec<&str> = states.filter(|it| 10 < it.split(':').count()).collect();
    assert_eq!(states.len(), times, "{out}");
    assert!(states.windows(2).all(|it| it[0] == it[1]), "{out}");
}

#[test]
fn space_plays_and_the_terminal_is_as_it_was() {
    // The cursor plays one message, and space the others.
    let Some(out) =
        played_at_a_terminal("stty -g; $P; stty -g; echo end of it", &[b"\x1b[C", b"\x1b[A \n"])
    else {
        return;
    };
    assert!(out.contains("played 3 messages"), "{out}");
    has_same_terminal(&out, 2);
}

#[test]
fn the_terminal_is_as_it_was_after_a_signal() {
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        let by_kill = format!(
            "trap : INT QUIT HUP; stty -g; (while ! stty -F /dev/tty -a | grep -q -e '-icanon'; do :; done; \
             kill -{signal} $(cat pid)) & sh -c 'echo $$ > pid; exec '\"$P\"; stty -g; echo end of it"
        );
        let Some(out) = played_at_a_terminal(&by_kill, &[]) else { return };
        has_same_terminal(&out, 2);
    }
    let Some(out) =
        played_at_a_terminal("trap : INT; stty -g; $P; stty -g; echo end of it", &[b"\x03"])
    else {
        return;
    };
    has_same_terminal(&out, 2);
}

#[test]
fn the_terminal_is_as_it_was_while_it_is_stopped() {
    let script = "set -m; stty -g; $P; echo stopped; stty -g; fg; stty -g; echo end of it";
    let Some(out) = played_at_a_terminal(script, &[b"\x1a", b" "]) else { return };
    assert!(out.contains("played 3 messages"), "{out}");
    has_same_terminal(&out, 3);
}

/// Records to `path` in the folder `disk` until its 8 MB are full, then reads and plays what is there. Answers what `bag info`
/// says and what files there are; nothing where a disk of one's own is not to be had.
fn fill_a_disk(path: &str, arguments: &str) -> Option<(serde_json::Value, String)> {
    if !is_there(&["unshare", "-rm", "true"]) {
        return None;
    }
    let world = World::new();
    fs::create_dir(world.path("disk")).unwrap();
    // Nobody else sees the disk, so what is on it is asked from inside.
    let program = crate::support::tsuji();
    let script = format!(
        "mount -t tmpfs -o size=8m tmpfs disk || exit 77\n\
         {program} record /images -o {path} {arguments}; echo recorded: $?\n\
         {program} bag info --check --json {path}; echo read: $?\n\
         {program} play -r 1000 {path}; echo played: $?\n\
         find disk -type f"
    );
    let mut recorder = Running::new(&mut world.foreign(["unshare", "-rm", "sh", "-c", &script]));
    let values = format!("{{data: {}}}", "x".repeat(100_000));
    let publisher =
        world.start(&["topic", "pub", "-w", "1", "-r", "500", "-p", "0", "/images", TEXT, &values]);
    recorder.err("No space left on device");
    let ended = recorder.end();
    drop(publisher);
    assert!(ended.err.contains("recording ended after "), "{ended:?}");
    assert!(ended.out.contains("recorded: 1\n"), "{ended:?}");
    assert!(ended.out.contains("read: 0\n") && ended.out.contains("played: 0\n"), "{ended:?}");
    let info = ended.out.lines().find(|it| it.starts_with('{')).unwrap();
    let info: serde_json::Value = serde_json::from_str(info).unwrap();
    assert_eq!(info["damage_count"], 0, "{info}");
    // All but the chunk that did not fit.
    assert!(30 < info["messages"].as_u64().unwrap(), "{info}");
    Some((info, ended.out))
}

#[test]
fn a_full_disk_ends_the_recording_and_leaves_it_readable() {
    fill_a_disk("disk/a.mcap", "");
    let Some((info, files)) = fill_a_disk("disk/drive", "-b 2000000") else { return };
    assert_eq!(info["topics"][0]["name"], "/images", "{info}");
    assert!(files.contains("disk/drive/metadata.yaml\n"), "{files}");
    assert!(!files.contains(".metadata.yaml"), "{files}");
}
