//! The mapping file that `docs/how-to/ros1.md` shows, read as it stands there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use tsuji_ros1::mapping::Mapping;

#[test]
fn the_mapping_of_the_manual_is_read() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/ros1.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, behind) = page.split_once("```yaml\n").unwrap();
    let (text, _) = behind.split_once("```").unwrap();
    let mut mapping = Mapping::builtin();
    mapping.add("types.yaml", text).unwrap();
    let there = mapping.message_to_ros2("old_msgs/Wheel");
    assert_eq!(there.as_deref(), Some("robot_msgs/msg/WheelState"));
    let back = mapping.message_to_ros1("robot_msgs/msg/WheelState");
    assert_eq!(back.as_deref(), Some("old_msgs/Wheel"));
}
