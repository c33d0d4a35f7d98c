//! Recordings that others read and write: the packages `mcap`, `mcap-ros2-support` and `rosbags` of Python. Where
//! `TSUJI_RECORDINGS_PYTHON` does not name a Python that has them (`scripts/recordings`), these tests do nothing.

use std::env;

use serde_json::json;

use crate::support::{Running, World};

const TEXT: &str = "std_msgs/msg/String";
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/peer.py");

/// Runs the peer to its end; `None` where there is none.
fn peer(world: &World, word: &str, file: &str) -> Option<String> {
    let python = env::var("TSUJI_RECORDINGS_PYTHON").ok().filter(|it| !it.is_empty())?;
    let ended = Running::new(&mut world.foreign([python.as_str(), PEER, word, file])).end();
    Some(ended.good())
}

fn is_there() -> bool {
    env::var_os("TSUJI_RECORDINGS_PYTHON").is_some_and(|it| !it.is_empty())
}

#[test]
fn python_reads_what_is_recorded_here() {
    if !is_there() {
        return;
    }
    for compression in ["none", "zstd", "lz4"] {
        let world = World::new();
        let recorder = world.start(&[
            "record",
            "/chatter",
            "/pixels",
            "-o",
            "a.mcap",
            "--compression",
            compression,
            "--json",
        ]);
        let large = format!(
            "{{height: 1, width: 3000, data: [{}]}}",
            ["1", "2", "3"].repeat(1000).join(", ")
        );
        world.publish(20, "/chatter", TEXT, "{data: hello}");
        world.publish(20, "/pixels", "sensor_msgs/msg/Image", &large);
        let ended = recorder.stop();
        assert_eq!((&ended.json()["messages"], ended.code), (&json!(40), Some(0)), "{ended:?}");
        let expect = "/chatter hello 5\n".repeat(20) + &"/pixels 6000 3000\n".repeat(20);
        assert_eq!(peer(&world, "rosbags", "a.mcap"), Some(expect.clone()), "{compression}");
        let expect = expect + "metadata tsuji 20\n";
        assert_eq!(peer(&world, "mcap", "a.mcap"), Some(expect), "{compression}");
    }
}

#[test]
fn python_reads_a_split_recording() {
    if !is_there() {
        return;
    }
    for distro in ["humble", "iron", "jazzy", "kilted"] {
        let world = World::new();
        let words = ["record", "/chatter", "-o", "drive", "--max-bag-size", "60"];
        let recorder = Running::new(world.command(&words).env("ROS_DISTRO", distro));
        let words = "topic pub -w 1 -r 1000 -p 0 -t 20 --keep-alive 1 /chatter";
        let words: Vec<&str> = words.split(' ').chain([TEXT, "{data: hello}"]).collect();
        world.run(&words).good();
        assert_eq!(recorder.stop().code, Some(0));
        assert_eq!(
            peer(&world, "rosbags", "drive"),
            Some("/chatter hello 5\n".repeat(20)),
            "{distro}"
        );
    }
}

#[test]
fn what_python_writes_is_played_here() {
    if !is_there() {
        return;
    }
    for (word, file) in [
        ("write-mcap", "a.mcap"),
        ("write-rosbags", "bag"),
        ("write-rosbags", "before"),
        ("write-rosbags", "packed"),
        ("write-rosbags", "each"),
    ] {
        let world = World::new();
        peer(&world, word, file);
        let info = world.run(&["bag", "info", "--check", "--json", file]);
        assert_eq!((&info.json()["messages"], info.code), (&json!(20), Some(0)), "{info:?}");
        assert_eq!(info.json()["topics"][0]["type"], TEXT);
        let mut echo = world.start(&["topic", "echo", "/chatter", TEXT, "--qos-depth", "100"]);
        let played = world.run(&["play", file, "--wait", "1", "--json"]);
        assert_eq!((&played.json()["messages"], played.code), (&json!(20), Some(0)), "{played:?}");
        (0..20).for_each(|number| echo.out(&format!("data: written {number}")));
        echo.stop();
    }
}
