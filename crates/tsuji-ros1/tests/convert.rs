//! Conversion between the form of ROS 1 and CDR, against what ROS 1 itself writes.

use proptest::prelude::*;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use tsuji_interfaces::Shipped;
use tsuji_msg::cdr::ByteOrder;
use tsuji_msg::definition::{Base, ScalarKind, Shape};
use tsuji_msg::{CdrProblem, DynamicMessage, Field, List, TypeDescription, TypeSet, Value, load};
use tsuji_ros1::convert::{ConvertProblem, Plan, PlanError};
use tsuji_ros1::mapping::Mapping;
use tsuji_ros1::types::MessageType;

/// A message as rospy's generated code serialises it, with the number 77 in its header.
struct Sample {
    /// Its type in ROS 1.
    name: &'static str,
    /// Its values in ROS 2.
    yaml: &'static str,
    /// Its bytes.
    ros1: &'static str,
}

const SEQ: u32 = 77;

const SAMPLES: &[Sample] = &[
    Sample { name: "std_msgs/String", yaml: r#"{data: "hällo"}"#, ros1: "0600000068c3a46c6c6f" },
    Sample {
        name: "std_msgs/Header",
        yaml: r#"{stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}"#,
        ros1: "4d00000000f1536515cd5b07030000006d6170",
    },
    Sample { name: "std_msgs/Time", yaml: r#"{sec: 12, nanosec: 34}"#, ros1: "0c00000022000000" },
    Sample { name: "std_msgs/Empty", yaml: r#"{}"#, ros1: "" },
    Sample {
        name: "std_msgs/Float64MultiArray",
        yaml: r#"{layout: {dim: [{label: "row", size: 2, stride: 4}, {label: "columns", size: 2, stride: 2}], data_offset: 1}, data: [1.0, 2.0, 3.0, 4.5]}"#,
        ros1: "0200000003000000726f77020000000400000007000000636f6c756d6e730200000002000000010000000400000000000000\
         0000f03f000000000000004000000000000008400000000000001240",
    },
    Sample {
        name: "sensor_msgs/Image",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, height: 2, width: 3, encoding: "mono8", is_bigendian: 0, step: 3, data: [1, 2, 3, 4, 5, 6]}"#,
        ros1: "4d00000000f1536515cd5b07030000006d61700200000003000000050000006d6f6e6f380003000000060000000102030405\
         06",
    },
    Sample {
        name: "sensor_msgs/CameraInfo",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, height: 480, width: 640, distortion_model: "plumb_bob", d: [0.1, -0.2, 0.3], k: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], r: [0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0], p: [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5], binning_x: 1, binning_y: 2, roi: {x_offset: 1, y_offset: 2, height: 3, width: 4, do_rectify: true}}"#,
        ros1: "4d00000000f1536515cd5b07030000006d6170e00100008002000009000000706c756d625f626f62030000009a9999999999\
         b93f9a9999999999c9bf333333333333d33f0000000000000000000000000000f03f00000000000000400000000000000840\
         0000000000001040000000000000144000000000000018400000000000001c40000000000000204000000000000000000000\
         00000000f0bf00000000000000c000000000000008c000000000000010c000000000000014c000000000000018c000000000\
         00001cc000000000000020c00000000000000000000000000000e03f000000000000f03f000000000000f83f000000000000\
         0040000000000000044000000000000008400000000000000c40000000000000104000000000000012400000000000001440\
         000000000000164001000000020000000100000002000000030000000400000001",
    },
    Sample {
        name: "sensor_msgs/LaserScan",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, angle_min: -1.5, angle_max: 1.5, angle_increment: 0.25, time_increment: 0.0, scan_time: 0.125, range_min: 0.5, range_max: 30.0, ranges: [1.0, 2.5, .inf], intensities: []}"#,
        ros1: "4d00000000f1536515cd5b07030000006d61700000c0bf0000c03f0000803e000000000000003e0000003f0000f041030000\
         000000803f000020400000807f00000000",
    },
    Sample {
        name: "sensor_msgs/Range",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, radiation_type: 1, field_of_view: 0.5, min_range: 0.25, max_range: 4.0, range: 2.0}"#,
        ros1: "4d00000000f1536515cd5b07030000006d6170010000003f0000803e0000804000000040",
    },
    Sample {
        name: "sensor_msgs/PointCloud2",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, height: 1, width: 2, fields: [{name: "x", offset: 0, datatype: 7, count: 1}, {name: "rgb", offset: 4, datatype: 6, count: 1}], is_bigendian: false, point_step: 8, row_step: 16, data: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], is_dense: true}"#,
        ros1: "4d00000000f1536515cd5b07030000006d617001000000020000000200000001000000780000000007010000000300000072\
         676204000000060100000000080000001000000010000000000102030405060708090a0b0c0d0e0f01",
    },
    Sample {
        name: "nav_msgs/Odometry",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, child_frame_id: "base", pose: {pose: {position: {x: 1.5, y: 2.25, z: -3.0}, orientation: {x: 0.0, y: 0.5, z: 0.0, w: 0.25}}, covariance: [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.25, 3.5, 3.75, 4.0, 4.25, 4.5, 4.75, 5.0, 5.25, 5.5, 5.75, 6.0, 6.25, 6.5, 6.75, 7.0, 7.25, 7.5, 7.75, 8.0, 8.25, 8.5, 8.75]}, twist: {twist: {linear: {x: 1.0, y: 2.0, z: 3.0}, angular: {x: 4.0, y: 5.0, z: 6.0}}, covariance: [0.0, -0.25, -0.5, -0.75, -1.0, -1.25, -1.5, -1.75, -2.0, -2.25, -2.5, -2.75, -3.0, -3.25, -3.5, -3.75, -4.0, -4.25, -4.5, -4.75, -5.0, -5.25, -5.5, -5.75, -6.0, -6.25, -6.5, -6.75, -7.0, -7.25, -7.5, -7.75, -8.0, -8.25, -8.5, -8.75]}}"#,
        ros1: "4d00000000f1536515cd5b07030000006d61700400000062617365000000000000f83f000000000000024000000000000008\
         c00000000000000000000000000000e03f0000000000000000000000000000d03f0000000000000000000000000000d03f00\
         0000000000e03f000000000000e83f000000000000f03f000000000000f43f000000000000f83f000000000000fc3f000000\
         000000004000000000000002400000000000000440000000000000064000000000000008400000000000000a400000000000\
         000c400000000000000e40000000000000104000000000000011400000000000001240000000000000134000000000000014\
         40000000000000154000000000000016400000000000001740000000000000184000000000000019400000000000001a4000\
         00000000001b400000000000001c400000000000001d400000000000001e400000000000001f400000000000002040000000\
         000080204000000000000021400000000000802140000000000000f03f000000000000004000000000000008400000000000\
         001040000000000000144000000000000018400000000000000000000000000000d0bf000000000000e0bf000000000000e8\
         bf000000000000f0bf000000000000f4bf000000000000f8bf000000000000fcbf00000000000000c000000000000002c000\
         000000000004c000000000000006c000000000000008c00000000000000ac00000000000000cc00000000000000ec0000000\
         00000010c000000000000011c000000000000012c000000000000013c000000000000014c000000000000015c00000000000\
         0016c000000000000017c000000000000018c000000000000019c00000000000001ac00000000000001bc00000000000001c\
         c00000000000001dc00000000000001ec00000000000001fc000000000000020c000000000008020c000000000000021c000\
         000000008021c0",
    },
    Sample {
        name: "geometry_msgs/PoseArray",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, poses: [{position: {x: 1.5, y: 2.25, z: -3.0}, orientation: {x: 0.0, y: 0.5, z: 0.0, w: 0.25}}, {position: {x: 2.5, y: 3.25, z: -4.0}, orientation: {x: 0.0, y: 0.5, z: 0.0, w: 0.25}}, {position: {x: 3.5, y: 4.25, z: -5.0}, orientation: {x: 0.0, y: 0.5, z: 0.0, w: 0.25}}]}"#,
        ros1: "4d00000000f1536515cd5b07030000006d617003000000000000000000f83f000000000000024000000000000008c0000000\
         0000000000000000000000e03f0000000000000000000000000000d03f00000000000004400000000000000a400000000000\
         0010c00000000000000000000000000000e03f0000000000000000000000000000d03f0000000000000c4000000000000011\
         4000000000000014c00000000000000000000000000000e03f0000000000000000000000000000d03f",
    },
    Sample {
        name: "geometry_msgs/Polygon",
        yaml: r#"{points: [{x: 1.0, y: 2.0, z: 3.0}, {x: -1.0, y: -2.0, z: -3.0}]}"#,
        ros1: "020000000000803f0000004000004040000080bf000000c0000040c0",
    },
    Sample {
        name: "visualization_msgs/Marker",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, ns: "n", id: 5, type: 2, action: 0, pose: {position: {x: 4.5, y: 5.25, z: -6.0}, orientation: {x: 0.0, y: 0.5, z: 0.0, w: 0.25}}, scale: {x: 1.0, y: 1.0, z: 1.0}, color: {r: 1.0, g: 0.5, b: 0.25, a: 1.0}, lifetime: {sec: -3, nanosec: 250000000}, frame_locked: true, points: [{x: 1.0, y: 2.0, z: 3.0}], colors: [{r: 0.0, g: 1.0, b: 0.0, a: 0.5}], text: "hi", mesh_resource: "package://a/b.stl", mesh_use_embedded_materials: true}"#,
        ros1: "4d00000000f1536515cd5b07030000006d6170010000006e0500000002000000000000000000000000001240000000000000\
         154000000000000018c00000000000000000000000000000e03f0000000000000000000000000000d03f000000000000f03f\
         000000000000f03f000000000000f03f0000803f0000003f0000803e0000803ffdffffff80b2e60e01010000000000000000\
         00f03f0000000000000040000000000000084001000000000000000000803f000000000000003f0200000068691100000070\
         61636b6167653a2f2f612f622e73746c01",
    },
    Sample {
        name: "diagnostic_msgs/DiagnosticArray",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, status: [{level: 2, name: "motor", message: "hot", hardware_id: "m1", values: [{key: "t", value: "99"}, {key: "", value: ""}]}, {level: 0, name: "", message: "", hardware_id: "", values: []}]}"#,
        ros1: "4d00000000f1536515cd5b07030000006d61700200000002050000006d6f746f7203000000686f74020000006d3102000000\
         010000007402000000393900000000000000000000000000000000000000000000000000",
    },
    Sample {
        name: "rosgraph_msgs/Log",
        yaml: r#"{stamp: {sec: 1700000000, nanosec: 123456789}, level: 40, name: "/n", msg: "bad", file: "a.cpp", function: "f", line: 12}"#,
        ros1: "4d00000000f1536515cd5b070000000008020000002f6e0300000062616405000000612e63707001000000660c0000000000\
         0000",
    },
    Sample {
        name: "tf2_msgs/TFMessage",
        yaml: r#"{transforms: [{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, child_frame_id: "base", transform: {translation: {x: 1.0, y: 2.0, z: 3.0}, rotation: {x: 0.0, y: 0.0, z: 0.0, w: 1.0}}}, {header: {stamp: {sec: 1, nanosec: 2}, frame_id: "base"}, child_frame_id: "l", transform: {translation: {x: 0.0, y: 0.0, z: 0.0}, rotation: {x: 0.0, y: 0.0, z: 1.0, w: 0.0}}}]}"#,
        ros1: "020000000000000000f1536515cd5b07030000006d61700400000062617365000000000000f03f0000000000000040000000\
         0000000840000000000000000000000000000000000000000000000000000000000000f03f00000000010000000200000004\
         00000062617365010000006c0000000000000000000000000000000000000000000000000000000000000000000000000000\
         0000000000000000f03f0000000000000000",
    },
    Sample {
        name: "trajectory_msgs/JointTrajectory",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, joint_names: ["a", "bc"], points: [{positions: [1.0, 2.0], velocities: [], accelerations: [0.5], effort: [], time_from_start: {sec: 1, nanosec: 500000000}}, {positions: [], velocities: [3.0], accelerations: [], effort: [4.0, 5.0], time_from_start: {sec: 2, nanosec: 0}}]}"#,
        ros1: "4d00000000f1536515cd5b07030000006d61700200000001000000610200000062630200000002000000000000000000f03f\
         00000000000000400000000001000000000000000000e03f00000000010000000065cd1d0000000001000000000000000000\
         08400000000002000000000000000000104000000000000014400200000000000000",
    },
    Sample {
        name: "shape_msgs/SolidPrimitive",
        yaml: r#"{type: 1, dimensions: [1.0, 2.0, 3.0]}"#,
        ros1: "0103000000000000000000f03f00000000000000400000000000000840",
    },
    Sample {
        name: "sensor_msgs/BatteryState",
        yaml: r#"{header: {stamp: {sec: 1700000000, nanosec: 123456789}, frame_id: "map"}, voltage: 12.5, temperature: 20.0, current: -1.0, charge: 1.0, capacity: 2.0, design_capacity: 3.0, percentage: 0.5, power_supply_status: 1, power_supply_health: 2, power_supply_technology: 3, present: true, cell_voltage: [4.0], cell_temperature: [1.0, 2.0], location: "slot", serial_number: "7"}"#,
        ros1: "4d00000000f1536515cd5b07030000006d6170000048410000a041000080bf0000803f00000040000040400000003f010203\
         010100000000008040020000000000803f0000004004000000736c6f740100000037",
    },
    Sample { name: "std_msgs/Byte", yaml: r#"{data: 251}"#, ros1: "fb" },
];

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    (0..text.len()).step_by(2).map(digit).collect()
}

fn plan_of(ros2: &Arc<TypeDescription>) -> Plan {
    let mapping = Mapping::builtin();
    let ros1 = MessageType::from_ros2(ros2, &mapping).expect("a type of ROS 1");
    Plan::new(&ros1, ros2, &mapping).expect("types that convert")
}

fn to_ros1(plan: &Plan, cdr: &[u8]) -> Vec<u8> {
    let mut ros1 = Vec::new();
    plan.to_ros1(cdr, SEQ, &mut ros1).expect("a message of ROS 2");
    ros1
}

fn to_cdr(plan: &Plan, ros1: &[u8]) -> Vec<u8> {
    let mut cdr = Vec::new();
    plan.to_cdr(ros1, &mut cdr).expect("a message of ROS 1");
    cdr
}

fn big_endian(message: &DynamicMessage) -> Vec<u8> {
    message.encode_as(Vec::new(), ByteOrder::Big).expect("a valid message")
}

/// Types made up for a test: `name` of ROS 2 and of ROS 1 with these definitions.
fn made_up(name: &str, ros1: &str, ros2: &str) -> (MessageType, Arc<TypeDescription>) {
    let texts: HashMap<String, String> =
        tsuji_msg::definitions_in(&format!("my_msgs/msg/{name}"), ros2);
    let ros1 = MessageType::parse(&format!("my_msgs/{name}"), ros1).expect("a type of ROS 1");
    let set = TypeSet::new(Chained(texts));
    (ros1, set.load(&format!("my_msgs/msg/{name}")).expect("a type of ROS 2"))
}

/// Texts, and then what ships.
struct Chained(HashMap<String, String>);

impl tsuji_msg::Resolver for Chained {
    fn find(
        &self,
        kind: tsuji_msg::Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<tsuji_msg::Definition<'_>>, tsuji_msg::Unreadable> {
        Ok(match self.0.find(kind, package, name)? {
            Some(found) => Some(found),
            None => Shipped.find(kind, package, name)?,
        })
    }
}

#[test]
fn messages_are_what_ros1_writes() {
    let (mapping, set) = (Mapping::builtin(), TypeSet::new(Shipped));
    for Sample { name, yaml, ros1 } in SAMPLES {
        let ros1 = unhex(ros1);
        let ros2 = set.load(&mapping.message_to_ros2(name).expect("a name")).expect(name);
        let plan = plan_of(&ros2);
        let message = DynamicMessage::from_yaml(&ros2, yaml).expect(name);
        let cdr = message.encode().expect(name);
        assert_eq!(to_ros1(&plan, &cdr), ros1, "{name}");
        assert_eq!(to_ros1(&plan, &big_endian(&message)), ros1, "{name}, big endian");
        assert_eq!(to_cdr(&plan, &ros1), cdr, "{name}");

        // The alignment counts from the header, wherever that is.
        let mut out = vec![9; 3];
        plan.to_cdr(&ros1, &mut out).expect(name);
        assert_eq!((&out[..3], &out[3..]), (&[9; 3][..], cdr.as_slice()), "{name}");
        let mut out = vec![9; 3];
        plan.to_ros1(&cdr, SEQ, &mut out).expect(name);
        assert_eq!((&out[..3], &out[3..]), (&[9; 3][..], ros1.as_slice()), "{name}");

        for length in 0..ros1.len() {
            let mut out = vec![9];
            plan.to_cdr(&ros1[..length], &mut out).expect_err("cut short");
            assert_eq!(out, [9], "nothing is appended then");
        }
        for length in 0..cdr.len() {
            let mut out = vec![9];
            // Padding at the end and a terminator that is never looked at do not occur.
            plan.to_ros1(&cdr[..length], SEQ, &mut out).expect_err("cut short");
            assert_eq!(out, [9], "nothing is appended then");
        }
    }
}

#[test]
fn every_shipped_message_converts() {
    let (mapping, set) = (Mapping::builtin(), TypeSet::new(Shipped));
    let mut count = 0;
    for name in tsuji_interfaces::names().filter(|name| name.contains("/msg/")) {
        let ros2 = set.load(name).expect(name);
        let Ok(ros1) = MessageType::from_ros2(&ros2, &mapping) else {
            assert!(ros2.full_text().contains("wstring"), "{name}");
            continue;
        };
        let plan = Plan::new(&ros1, &ros2, &mapping).expect(name);
        for seed in 1..20 {
            let message = Random(seed).message(&ros2);
            let cdr = message.encode().expect(name);
            let there = to_ros1(&plan, &cdr);
            assert_eq!(to_ros1(&plan, &big_endian(&message)), there, "{name}, big endian");
            let back = to_cdr(&plan, &there);
            // What ROS 1 has not is at its default value after one round.
            assert_eq!(to_ros1(&plan, &back), there, "{name}");
            DynamicMessage::decode(&ros2, &back).expect(name);
            let is_partial = [
                "DisparityImage",
                "Range",
                "Marker",
                "MarkerArray",
                "SolidPrimitive",
                "Log",
                "InteractiveMarker",
                "InteractiveMarkerControl",
                "InteractiveMarkerInit",
                "InteractiveMarkerUpdate",
            ];
            if !is_partial.contains(&ros2.name().name()) {
                assert_eq!(back, cdr, "{name}");
            }
        }
        count += 1;
    }
    assert!(100 < count, "{count}");
}

#[test]
fn services_convert() {
    let (mapping, set) = (Mapping::builtin(), TypeSet::new(Shipped));
    let service = set.load_service("std_srvs/srv/SetBool").expect("shipped");
    let ros1 = tsuji_ros1::types::ServiceType::from_ros2(&service, &mapping).expect("a service");
    let request = Plan::new(&ros1.request, &service.request, &mapping).expect("types that convert");
    assert_eq!(to_cdr(&request, &[1]), [0, 1, 0, 0, 1]);
    let response = Plan::new(&ros1.response, &service.response, &mapping).expect("the same");
    assert_eq!(
        to_ros1(&response, &[0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, b'a', 0]),
        [1, 1, 0, 0, 0, b'a']
    );

    let service = set.load_service("std_srvs/srv/Empty").expect("shipped");
    let ros1 = tsuji_ros1::types::ServiceType::from_ros2(&service, &mapping).expect("a service");
    let plan = Plan::new(&ros1.request, &service.request, &mapping).expect("types that convert");
    assert_eq!(
        (to_cdr(&plan, &[]), to_ros1(&plan, &[0, 1, 0, 0, 0])),
        (vec![0, 1, 0, 0, 0], vec![])
    );
}

#[test]
fn levels_of_the_log_mean_the_same() {
    let log = load("rcl_interfaces/msg/Log", &Shipped).expect("shipped");
    let plan = plan_of(&log);
    let level = |ros2: u8| {
        let yaml = format!("{{level: {ros2}}}");
        let message = DynamicMessage::from_yaml(&log, &yaml).expect("a level");
        let ros1 = to_ros1(&plan, &message.encode().expect("a log"));
        let level = ros1[16];
        let back = DynamicMessage::decode(&log, &to_cdr(&plan, &ros1)).expect("a log");
        (level, back.get("level").expect("a level").into_owned())
    };
    assert_eq!(level(10), (1, Value::U8(10)));
    assert_eq!(level(30), (4, Value::U8(30)));
    assert_eq!(level(50), (16, Value::U8(50)));
    // What is between two levels counts as the lower one.
    assert_eq!(level(35), (4, Value::U8(30)));
    assert_eq!(level(0), (1, Value::U8(10)));
    assert_eq!(level(255), (16, Value::U8(50)));

    // The topics, which ROS 2 has not, are passed over.
    let mut ros1 = vec![0; 16];
    ros1.extend([8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]);
    ros1.extend([2, 0, 0, 0, 1, 0, 0, 0, b'/', 0, 0, 0, 0]);
    let back = DynamicMessage::decode(&log, &to_cdr(&plan, &ros1)).expect("a log");
    assert_eq!(back.get("line").expect("a line").into_owned(), Value::U32(7));
    ros1.pop();
    plan.to_cdr(&ros1, &mut Vec::new()).expect_err("a topic is cut short");
}

#[test]
fn times_beyond_the_other_side_become_the_nearest() {
    let time = plan_of(&load("builtin_interfaces/msg/Time", &Shipped).expect("shipped"));
    let words = |first: u32, second: u32| [first.to_le_bytes(), second.to_le_bytes()].concat();
    let cdr = |first: u32, second: u32| [vec![0, 1, 0, 0], words(first, second)].concat();
    assert_eq!(to_ros1(&time, &cdr(-5_i32 as u32, 7)), words(0, 0));
    assert_eq!(to_ros1(&time, &cdr(i32::MAX as u32, 7)), words(i32::MAX as u32, 7));
    assert_eq!(to_cdr(&time, &words(u32::MAX, 7)), cdr(i32::MAX as u32, 999_999_999));

    let duration = plan_of(&load("builtin_interfaces/msg/Duration", &Shipped).expect("shipped"));
    assert_eq!(to_ros1(&duration, &cdr(-5_i32 as u32, 7)), words(-5_i32 as u32, 7));
    assert_eq!(to_cdr(&duration, &words(1, -1_i32 as u32)), cdr(0, 999_999_999));
    assert_eq!(to_cdr(&duration, &words(i32::MIN as u32, -1_i32 as u32)), cdr(i32::MIN as u32, 0));
    assert_eq!(to_ros1(&duration, &cdr(1, 1_500_000_000)), words(2, 500_000_000));
}

#[test]
fn truth_values_are_made_valid() {
    let text = "bool[] many\nbool one\n";
    let (ros1, ros2) = made_up("Flags", text, text);
    let plan = Plan::new(&ros1, &ros2, &Mapping::builtin()).expect("types that convert");
    let cdr = to_cdr(&plan, &[2, 0, 0, 0, 0, 255, 7]);
    assert_eq!(cdr, [0, 1, 0, 0, 2, 0, 0, 0, 0, 1, 1]);
}

#[test]
fn numbers_of_different_types_convert_if_they_fit() {
    let (ros1, ros2) = made_up(
        "Numbers",
        "int32 a\nuint8[] b\nfloat64 c\nbyte d\nfloat32[2] e\nint64[] f",
        "uint16 a\nint32[] b\nfloat32 c\nint8 d\nfloat32[] e\nint64[2] f",
    );
    let plan = Plan::new(&ros1, &ros2, &Mapping::builtin()).expect("types that convert");
    let message = |yaml: &str| DynamicMessage::from_yaml(&ros2, yaml).expect("values");
    let good = message("{a: 65535, b: [0, 255], c: 0.5, d: -1, e: [1.0, 2.0], f: [3, -4]}");
    let cdr = good.encode().expect("values");
    assert_eq!(to_cdr(&plan, &to_ros1(&plan, &cdr)), cdr);
    assert_eq!(to_ros1(&plan, &big_endian(&good)), to_ros1(&plan, &cdr));

    let error = |yaml: &str| {
        let cdr = message(yaml).encode().expect("values");
        plan.to_ros1(&cdr, 0, &mut Vec::new()).expect_err("what does not fit").to_string()
    };
    assert_eq!(
        error("{b: [1, 256], e: [0, 0]}"),
        "b[]: byte 16: the number 256 does not fit into uint8"
    );
    assert_eq!(error("{e: [0, 0, 0]}"), "e: byte 24: a length of 3; allowed is 2 alone");
}

#[test]
fn bounds_of_ros2_are_kept() {
    let (ros1, ros2) = made_up("Bounds", "string a\nint8[] b\n", "string<=3 a\nint8[<=2] b\n");
    let plan = Plan::new(&ros1, &ros2, &Mapping::builtin()).expect("types that convert");
    let error = |ros1: &[u8]| plan.to_cdr(ros1, &mut Vec::new()).expect_err("too long");
    let long_text = error(&[4, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(long_text.field(), "a");
    assert_eq!(*long_text.problem(), ConvertProblem::Bound { length: 4, bound: 3 });
    let long_list = error(&[0, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3]);
    assert_eq!(long_list.to_string(), "b: byte 8: a length of 3; allowed are at most 2");
}

#[test]
fn counts_alone_take_no_memory() {
    let (ros1, ros2) = made_up(
        "Counts",
        "std_msgs/Empty[] nothing\n===\nMSG: std_msgs/Empty\n",
        "std_msgs/Empty[] nothing\n",
    );
    let plan = Plan::new(&ros1, &ros2, &Mapping::builtin()).expect("types that convert");
    assert_eq!(to_cdr(&plan, &[3, 0, 0, 0]), [0, 1, 0, 0, 3, 0, 0, 0, 0, 0, 0]);
    let mut out = Vec::new();
    let error = plan.to_cdr(&[255; 4], &mut out).expect_err("too many");
    assert_eq!(*error.problem(), ConvertProblem::EmptyElements { claimed: u32::MAX as usize });
    assert!(out.capacity() < 1024);

    let fixed = "Part[] parts\n===\nMSG: my_msgs/Part\nstd_msgs/Empty[1000000] nothing\n===\nMSG: std_msgs/Empty\n";
    let (ros1, ros2) =
        made_up("Fixed", fixed, "Part[] parts\n===\nMSG: my_msgs/Part\nstd_msgs/Empty[] nothing\n");
    let plan = Plan::new(&ros1, &ros2, &Mapping::builtin()).expect("types that convert");
    let mut large = Vec::new();
    plan.to_cdr(&[1, 0, 0, 0], &mut large).expect("one is allowed");
    assert_eq!(to_ros1(&plan, &large), [1, 0, 0, 0]);
    let error = plan.to_cdr(&[2, 0, 0, 0], &mut Vec::new()).expect_err("all together are too many");
    assert_eq!(*error.problem(), ConvertProblem::EmptyElements { claimed: 1_000_000 });

    let image = plan_of(&load("std_msgs/msg/Float64MultiArray", &Shipped).expect("shipped"));
    let error = image.to_cdr(&[0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0], &mut out);
    let problem = ConvertProblem::Length { claimed: u32::MAX as usize, left: 1 };
    assert_eq!(*error.expect_err("too many").problem(), problem);
    assert!(out.capacity() < 1024);
}

#[test]
fn fields_on_one_side_alone_have_their_defaults() {
    let (ros1, ros2) = made_up(
        "Wide",
        "int8 a\n",
        "int8 a\nfloat64 b 0.5\nstring c \"hi\"\nint16[] d [1, -2]\nwstring e\ngeometry_msgs/Quaternion f\n\
         std_msgs/Empty g\nstd_msgs/Empty[2] h\nbool[3] i\nuint8[<=3] j\nwstring k \"x\"\n",
    );
    let plan = Plan::new(&ros1, &ros2, &Mapping::builtin()).expect("types that convert");
    let mut expected = DynamicMessage::new(ros2.clone());
    expected.set("a", Value::I8(-3)).expect("a field");
    assert_eq!(to_cdr(&plan, &[253]), expected.encode().expect("defaults"));
    assert_eq!(to_ros1(&plan, &expected.encode().expect("defaults")), [253]);

    let (ros1, ros2) = made_up(
        "Narrow",
        "string[] a\nint8 b\nstd_msgs/Header c\nuint8[] d\n===\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id",
        "int8 b\n",
    );
    let plan = Plan::new(&ros1, &ros2, &Mapping::builtin()).expect("types that convert");
    let ros1 = to_ros1(&plan, &[0, 1, 0, 0, 5]);
    assert_eq!(ros1, [[0; 4].as_slice(), &[5], &[0; 16], &[0; 4]].concat());
    assert_eq!(to_cdr(&plan, &ros1), [0, 1, 0, 0, 5]);
}

#[test]
fn fields_on_both_sides_alone_are_refused_without_a_rule() {
    let (ros1, ros2) =
        made_up("Grip", "float64 maxForce\nint8 x\nint8 extra", "int8 x\nfloat64 max_force\n");
    let mut mapping = Mapping::builtin();
    let error = Plan::new(&ros1, &ros2, &mapping).expect_err("no rule");
    assert_eq!(
        error.to_string(),
        "my_msgs/Grip and my_msgs/msg/Grip do not convert: only ROS 1 has maxForce, extra, only ROS 2 has max_force; \
         a mapping rule with `fields_1_to_2` can say which belong together"
    );
    let rule = |fields: &str| {
        format!(
            "- {{ros1_package_name: my_msgs, ros1_message_name: Grip, ros2_package_name: my_msgs, \
             ros2_message_name: Grip, fields_1_to_2: {fields}}}"
        )
    };
    mapping.add("rules.yaml", &rule("{maxForce: max_force, x: x}")).expect("a rule");
    let plan = Plan::new(&ros1, &ros2, &mapping).expect("a rule lists the fields");
    let message = DynamicMessage::from_yaml(&ros2, "{x: 3, max_force: 0.5}").expect("values");
    let cdr = message.encode().expect("values");
    let there = to_ros1(&plan, &cdr);
    assert_eq!(there, [0.5_f64.to_le_bytes().as_slice(), &[3, 0]].concat());
    assert_eq!(to_cdr(&plan, &there), cdr);

    mapping.add("rules.yaml", &rule("{maxForce: max_speed}")).expect("a rule");
    assert_eq!(
        Plan::new(&ros1, &ros2, &mapping).expect_err("no such field").to_string(),
        "the mapping rule for my_msgs/Grip and my_msgs/msg/Grip: my_msgs/msg/Grip has no field `max_speed`"
    );

    let (ros1, ros2) = made_up("Other", "string a\n", "int32 a\n");
    let error = Plan::new(&ros1, &ros2, &mapping).expect_err("other types");
    assert_eq!(error.to_string(), "field `a`: string of ROS 1 and int32 of ROS 2 do not convert");
    let (ros1, ros2) = made_up("Sizes", "int32[3] a\n", "int32[2] a\n");
    assert!(matches!(Plan::new(&ros1, &ros2, &mapping), Err(PlanError::Types { .. })));
}

/// Numbers that look random and are the same in every run with the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 29)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn message(&mut self, ty: &Arc<TypeDescription>) -> DynamicMessage {
        let mut message = DynamicMessage::new(ty.clone());
        let is_time = ty.name().package() == "builtin_interfaces";
        for field in ty.fields() {
            let value = match (is_time, field.name.as_str()) {
                (true, "sec") => Value::I32((self.next() >> 33) as i32),
                (true, "nanosec") => Value::U32((self.next() % 1_000_000_000) as u32),
                _ => self.value(field),
            };
            let value = match (ty.name().name(), field.name.as_str()) {
                ("Log", "level") => Value::U8(20),
                _ => value,
            };
            message.set(&field.name, value).expect("a value of the field");
        }
        message
    }

    fn value(&mut self, field: &Field) -> Value {
        let count = match field.ty.shape {
            Shape::Single => return self.one(&field.ty.base),
            Shape::Array(count) => count as usize,
            Shape::Sequence => self.below(5),
            Shape::Bounded(bound) => self.below(bound.min(4) as usize + 1),
        };
        let mut list = List::empty(&field.ty.base);
        for _ in 0..count {
            list.push(self.one(&field.ty.base)).expect("an element");
        }
        Value::List(list)
    }

    fn one(&mut self, base: &Base<Arc<TypeDescription>>) -> Value {
        let bits = self.next();
        match base {
            Base::Scalar(kind) => match kind {
                ScalarKind::Bool => Value::Bool(bits & 1 == 1),
                ScalarKind::Byte | ScalarKind::Char | ScalarKind::U8 => Value::U8(bits as u8),
                ScalarKind::I8 => Value::I8(bits as i8),
                ScalarKind::U16 => Value::U16(bits as u16),
                ScalarKind::I16 => Value::I16(bits as i16),
                ScalarKind::U32 => Value::U32(bits as u32),
                ScalarKind::I32 => Value::I32(bits as i32),
                ScalarKind::U64 => Value::U64(bits),
                ScalarKind::I64 => Value::I64(bits as i64),
                ScalarKind::F32 => Value::F32(bits as u16 as f32 / 8.0),
                ScalarKind::F64 => Value::F64(bits as u32 as f64 / 8.0),
            },
            Base::String { bound } | Base::WString { bound } => {
                let count = self.below(bound.unwrap_or(9).min(9) as usize + 1);
                Value::Text((0..count).map(|_| (b'a' + self.below(26) as u8) as char).collect())
            }
            Base::Nested(ty) => Value::Message(self.message(ty)),
        }
    }

    /// A definition with some types that it uses.
    fn type_text(&mut self) -> String {
        let mut texts = Vec::<String>::new();
        for at in 0..1 + self.below(4) {
            let mut text = String::new();
            for field in 0..self.below(7) {
                let base = match self.below(20) {
                    kind @ 0..13 => ScalarKind::ALL[kind].name().to_owned(),
                    13 => "string".into(),
                    14 => "string<=5".into(),
                    15 => "builtin_interfaces/Time".into(),
                    16 => "builtin_interfaces/Duration".into(),
                    17 => "std_msgs/Header".into(),
                    _ if at == 0 => "std_msgs/Empty".into(),
                    _ => format!("T{}", self.below(at)),
                };
                let shape = ["", "", "", "[]", "[]", "[3]", "[<=3]", "[1]"][self.below(8)];
                writeln!(text, "{base}{shape} f{field}").expect("a String takes all");
            }
            texts.push(text);
        }
        let mut full = texts.pop().expect("one type at least");
        for (at, text) in texts.iter().enumerate() {
            writeln!(full, "===\nMSG: my_msgs/T{at}\n{text}").expect("a String takes all");
        }
        full
    }

    /// A full text whose definitions have their fields in another order.
    fn shuffled(&mut self, full: &str) -> String {
        let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
        for line in full.lines() {
            if line.starts_with("===") || line.starts_with("MSG:") {
                blocks.push(vec![line]);
                blocks.push(Vec::new());
            } else if let Some(block) = blocks.last_mut() {
                let at = self.below(block.len() + 1);
                block.insert(at, line);
            }
        }
        blocks.concat().join("\n")
    }

    /// A full text without some of the fields.
    fn thinned(&mut self, full: &str) -> String {
        let mut lines = Vec::new();
        for line in full.lines() {
            let name = line.rsplit(' ').next().unwrap_or_default();
            let is_field = name.strip_prefix('f').is_some_and(|it| it.parse::<u8>().is_ok());
            if !is_field || self.below(3) != 0 {
                lines.push(line);
            }
        }
        lines.join("\n")
    }
}

fn random_type(random: &mut Random) -> (MessageType, Arc<TypeDescription>) {
    let text = random.type_text();
    let texts = tsuji_msg::definitions_in("my_msgs/msg/Main", &text);
    let ros2 = TypeSet::new(Chained(texts)).load("my_msgs/msg/Main").expect("a type");
    let ros1 = MessageType::from_ros2(&ros2, &Mapping::builtin()).expect("a type of ROS 1");
    (ros1, ros2)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_message_of_any_type_comes_back(seed: u64) {
        let random = &mut Random(seed);
        let mapping = Mapping::builtin();
        let (ros1, ros2) = random_type(random);
        let message = random.message(&ros2);
        let cdr = message.encode().expect("a message");
        let plan = Plan::new(&ros1, &ros2, &mapping).expect("types that convert");
        let there = to_ros1(&plan, &cdr);
        prop_assert_eq!(&to_ros1(&plan, &big_endian(&message)), &there);
        prop_assert_eq!(&to_cdr(&plan, &there), &cdr, "{}", ros2.full_text());

        // ROS 1 has the fields in another order.
        let text = random.shuffled(ros1.definition());
        let ros1 = MessageType::parse(ros1.name(), &text).expect("a type");
        let plan = Plan::new(&ros1, &ros2, &mapping).expect("types that convert");
        let there = to_ros1(&plan, &cdr);
        prop_assert_eq!(&to_ros1(&plan, &big_endian(&message)), &there);
        prop_assert_eq!(&to_cdr(&plan, &there), &cdr, "{}\n---\n{}", ros2.full_text(), text);

        // ROS 1 has not all fields.
        let text = random.thinned(&text);
        let ros1 = MessageType::parse(ros1.name(), &text).expect("a type");
        let plan = Plan::new(&ros1, &ros2, &mapping).expect("types that convert");
        let there = to_ros1(&plan, &cdr);
        let back = to_cdr(&plan, &there);
        DynamicMessage::decode(&ros2, &back).expect("a message");
        prop_assert_eq!(&to_ros1(&plan, &back), &there, "{}\n---\n{}", ros2.full_text(), text);
    }

    #[test]
    fn any_bytes_are_a_message_or_refused(seed: u64, bytes: Vec<u8>, change: (usize, u8)) {
        let random = &mut Random(seed);
        let (ros1, ros2) = random_type(random);
        let plan = Plan::new(&ros1, &ros2, &Mapping::builtin()).expect("types that convert");
        let cdr = random.message(&ros2).encode().expect("a message");
        let mut changed1 = to_ros1(&plan, &cdr);
        let mut changed2 = cdr.clone();
        for changed in [&mut changed1, &mut changed2] {
            if !changed.is_empty() {
                let at = change.0 % changed.len();
                changed[at] = change.1;
            }
        }
        for bytes in [&bytes, &changed1] {
            let mut out = Vec::new();
            if plan.to_cdr(bytes, &mut out).is_ok() {
                match DynamicMessage::decode(&ros2, &out) {
                    Ok(_) => {}
                    // ROS 1 does not say how its strings are encoded.
                    Err(error) => prop_assert_eq!(error.problem(), &CdrProblem::Utf8),
                }
            }
            prop_assert!(out.capacity() <= 256 * bytes.len() + (4 << 20));
        }
        let headed = [&[0, 1, 0, 0], bytes.as_slice()].concat();
        for bytes in [&bytes, &headed, &changed2] {
            let mut out = Vec::new();
            if plan.to_ros1(bytes, 0, &mut out).is_ok() {
                // Only the way to ROS 2 minds the bounds.
                if let Err(error) = plan.to_cdr(&out, &mut Vec::new()) {
                    let is_bound = matches!(error.problem(), ConvertProblem::Bound { .. });
                    prop_assert!(is_bound, "{error}");
                }
            }
            prop_assert!(out.capacity() <= 16 * bytes.len() + 1024);
        }
    }
}
