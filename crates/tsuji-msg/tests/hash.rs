//! Type hashes known from elsewhere. Those of the shipped interfaces are tested where they ship.

use std::collections::HashMap;
use tsuji_msg::{Kind, TypeName, TypeSet};

fn set(pairs: &[(&str, &str)]) -> TypeSet<HashMap<String, String>> {
    TypeSet::new(
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
    )
}

#[test]
fn messages() {
    let set = set(&[
        ("std_msgs/msg/String", "string data\n"),
        ("std_msgs/msg/Empty", ""),
        ("std_msgs/msg/Header", "builtin_interfaces/Time stamp\nstring frame_id\n"),
        ("geometry_msgs/msg/Vector3", "float64 x\nfloat64 y\nfloat64 z\n"),
        // Comments, constants and defaults are no part of a type's identity.
        (
            "geometry_msgs/msg/Quaternion",
            "# Words.\nuint8 C=1\nfloat64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1\n",
        ),
    ]);
    for (name, hash) in [
        (
            "std_msgs/msg/String",
            "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
        ),
        (
            "std_msgs/msg/Empty",
            "RIHS01_20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312",
        ),
        (
            "std_msgs/msg/Header",
            "RIHS01_f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01",
        ),
        (
            "geometry_msgs/msg/Quaternion",
            "RIHS01_8a765f66778c8ff7c8ab94afcc590a2ed5325a1d9a076ffff38fbce36f458684",
        ),
        (
            "builtin_interfaces/msg/Time",
            "RIHS01_b106235e25a4c5ed35098aa0a61a3ee9c9b18d197f398b0e4206cea9acf9c197",
        ),
    ] {
        assert_eq!(set.load(name).unwrap().hash(), hash, "{name}");
    }
}

#[test]
fn services() {
    let set = set(&[("example_interfaces/srv/AddTwoInts", "int64 a\nint64 b\n---\nint64 sum\n")]);
    assert_eq!(
        set.load_service("example_interfaces/srv/AddTwoInts").unwrap().hash,
        "RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a"
    );
}

#[test]
fn actions() {
    let text = "int32 order\n---\nint32[] sequence\n---\nint32[] partial_sequence\n";
    let set = set(&[
        ("action_tutorials_interfaces/action/Fibonacci", text),
        ("example_interfaces/action/Fibonacci", text),
    ]);
    let action = set.load_action("action_tutorials_interfaces/action/Fibonacci").unwrap();
    assert_eq!(
        action.get_result.hash,
        "RIHS01_8b47e383f1e31f6d8df6417ab54957e7d5ea24dad315646ad711ac3fdea81d58"
    );
    assert_eq!(
        set.load("example_interfaces/action/Fibonacci_Goal").unwrap().hash(),
        "RIHS01_226cb437e4355dcd3e914f930382a3b0cc1da81545bd319ed554e95a03255f51"
    );
    assert_eq!(action.feedback_message.fields()[0].name, "goal_id");
    assert_eq!(action.send_goal.response.fields()[1].ty.to_string(), "builtin_interfaces/msg/Time");
}

#[test]
fn names() {
    let name: TypeName = "sensor_msgs/Image".parse().unwrap();
    assert_eq!(name.to_string(), "sensor_msgs/msg/Image");
    assert_eq!(TypeName::from_dds(&name.dds()).unwrap(), name);
    let request = TypeName::from_dds("std_srvs::srv::dds_::SetBool_Request_").unwrap();
    assert_eq!((request.kind(), request.name()), (Kind::Service, "SetBool_Request"));
    for bad in [
        "",
        "::",
        "a::b",
        "sensor_msgs::msg::dds_::Image",
        "sensor_msgs::msg::Image_",
        "a::msg::dds_::_",
    ] {
        assert!(TypeName::from_dds(bad).is_err(), "{bad}");
    }
}
