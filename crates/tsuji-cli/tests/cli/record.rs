//! `tsuji record`, `tsuji play` and `tsuji bag`.

use std::fs;

use serde_json::json;

use crate::support::{Running, World, is_there};

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
    assert!(world.run(&["record", "--all", "-b", "0"]).bad(2).contains("0 is not in 1.."));
    let error = world.run(&["record", "--all", "--max-bag-duration", "1e-10"]).bad(2);
    assert!(error.contains("a number of seconds above 0"), "{error}");
    assert!(world.run(&["play", "drive", "--clock", "0"]).bad(2).contains("clock 0; allowed"));
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
