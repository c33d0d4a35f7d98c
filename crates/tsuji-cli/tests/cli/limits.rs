//! What a process may use at most: an error with the limit in it, and never a signal.

use crate::support::{Running, World, is_there};

const TEXT: &str = "std_msgs/msg/String";
const FILE_BYTES: &str = "--fsize=1048576";

/// Whether the limits of a process can be set here, which the shell calls differently everywhere.
fn can_limit() -> bool {
    is_there(&["prlimit", "--version"])
}

#[test]
fn a_file_that_standard_output_fills() {
    if !can_limit() {
        return;
    }
    let world = World::new();
    let program = crate::support::tsuji();
    let script =
        format!("exec prlimit {FILE_BYTES} {program} topic echo --full-length /x {TEXT} > out");
    let mut echo = Running::new(&mut world.foreign(["sh", "-c", &script]));
    echo.err("does not appear to be published yet");
    let long = format!("{{data: {}}}", "x".repeat(10_000));
    world.publish(300, "/x", TEXT, &long);
    let ended = echo.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("1048576 bytes, as `ulimit -f` says"), "{ended:?}");
    let bytes = std::fs::metadata(world.path("out")).unwrap().len();
    assert_eq!(bytes, 1 << 20);
}

#[test]
fn a_recording_that_may_not_grow() {
    if !can_limit() {
        return;
    }
    let world = World::new();
    let words = ["record", "/x", "-o", "a.mcap"];
    let recorder = Running::new(&mut world.command_under(&["prlimit", FILE_BYTES], &words));
    let long = format!("{{data: {}}}", "x".repeat(100_000));
    world.publish(60, "/x", TEXT, &long);
    let ended = recorder.stop();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("1048576 bytes, as `ulimit -f` says"), "{ended:?}");
    // What fitted is whole.
    assert_eq!(world.run(&["bag", "info", "a.mcap"]).code, Some(0));
}

#[test]
fn doctor_knows_the_limits() {
    if !can_limit() {
        return;
    }
    let world = World::new();
    let limits = ["prlimit", FILE_BYTES, "--nofile=512:512"];
    let ended = Running::new(&mut world.command_under(&limits, &["doctor", "--json"])).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    let finding = |what: &str| {
        let found = json.as_array().unwrap().iter().find(|it| it["what"] == what).unwrap();
        (found["state"].clone(), found["found"].to_string())
    };
    let (state, found) = finding("file size");
    assert!(state == "warning" && found.contains("`ulimit -f`"), "{found}");
    let (state, found) = finding("open files");
    assert!(state == "warning" && found.contains("at most 512"), "{found}");
}

#[test]
fn how_many_channels_are_open_is_a_number() {
    let world = World::new();
    for (asked, state, says) in
        [("5", "ok", "obeyed"), ("some", "warning", "no number of channels")]
    {
        let mut command = world.command(&["doctor", "--json"]);
        let ended = Running::new(command.env("TSUJI_CHANNELS_OPEN_MAX", asked)).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let json = ended.json();
        let mut all = json.as_array().unwrap().iter();
        let found = all.find(|it| it["what"] == "TSUJI_CHANNELS_OPEN_MAX").unwrap();
        assert_eq!(found["state"], state, "{found}");
        assert!(found["found"].as_str().unwrap().contains(says), "{found}");
    }
}

#[test]
fn doctor_knows_that_nothing_can_be_watched() {
    let script = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"";
    let wrapper = ["unshare", "-Ur", "sh", "-c", script, "sh"];
    if !is_there(&[&wrapper[..], &["true"]].concat()) {
        return;
    }
    let world = World::new();
    let ended = Running::new(&mut world.command_under(&wrapper, &["doctor", "--json"])).end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let json = ended.json();
    let found = json.as_array().unwrap().iter().find(|it| it["what"] == "inotify").unwrap();
    assert_eq!(found["state"], "note", "{found}");
}
