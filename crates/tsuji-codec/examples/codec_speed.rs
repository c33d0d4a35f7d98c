//! What a message costs each way in each format, and how often that is in what a tree of values costs.
//!
//! ```sh
//! cargo run --release -p tsuji-codec --example codec_speed [WORD]
//! ```
//!
//! A word behind it picks the messages whose names have it. The tree is `serde_json::Value` and `DynamicMessage`, in the same run. Each figure is the least of several rounds.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "it measures and speaks to its user, and fails as tests do"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tsuji_codec::{Format, Now, Plan, Raw};
use tsuji_interfaces::Shipped;
use tsuji_msg::{Bytes, DynamicMessage, JsonStyle, List, TypeDescription, TypeSet, Value};

const NOW: Now = Now { sec: 1, nanosec: 2 };
const ROUNDS: usize = 150;
/// So short that other work on the machine leaves some of them alone.
const ROUND: Duration = Duration::from_millis(1);

fn main() {
    println!(
        "| message | bytes of CDR | format | read ns | write ns | of the tree: read | write |"
    );
    println!("|---|--:|---|--:|--:|--:|--:|");
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (name, message) in messages().into_iter().filter(|(name, _)| name.contains(&wanted)) {
        measure(name, &message);
    }
    if "envelope".contains(&wanted) {
        envelope();
    }
}

/// A published String as rosbridge sends it: what finding its parts costs, and that with its message.
fn envelope() {
    let json = br#"{"op":"publish","topic":"/chatter","msg":{"data":"the quick brown fox jumps over the dog"}}"#;
    let plan = Plan::new(&TypeSet::new(Shipped).load("std_msgs/msg/String").unwrap());
    let part = |wanted: &str| {
        let members = tsuji_codec::json::members(black_box(json)).unwrap();
        members.map(Result::unwrap).filter(|(name, _)| name == wanted).last().unwrap().1
    };
    let parts = nanoseconds(|| {
        black_box(part("msg"));
    });
    let mut cdr = Vec::new();
    let whole = nanoseconds(|| {
        cdr.clear();
        plan.read(part("msg"), NOW, &mut cdr).unwrap();
        black_box(&cdr);
    });
    println!(
        "\nenvelope of {} bytes: parts {parts:.0} ns, with its message {whole:.0} ns",
        json.len()
    );
}

fn measure(name: &str, message: &DynamicMessage) {
    let plan = Plan::new(message.ty());
    let sample = message.encode().unwrap();
    let json = serde_json::to_vec(&message.to_json(JsonStyle { bytes: Bytes::Base64 })).unwrap();
    let tree_read = nanoseconds(|| {
        let tree = serde_json::from_slice(black_box(&json)).unwrap();
        drop(black_box(DynamicMessage::from_json(message.ty(), &tree).unwrap().encode().unwrap()));
    });
    let tree_write = nanoseconds(|| {
        let read = DynamicMessage::decode(message.ty(), black_box(&sample)).unwrap();
        let tree = read.to_json(JsonStyle { bytes: Bytes::Base64 });
        drop(black_box(serde_json::to_vec(&tree).unwrap()));
    });
    let (mut bytes, mut cdr) = (Vec::new(), Vec::new());
    for format in [Format::Json, Format::Cbor, Format::Bson] {
        let write = nanoseconds(|| {
            bytes.clear();
            plan.write(black_box(&sample), format, &mut bytes).unwrap();
            black_box(&bytes);
        });
        let read = nanoseconds(|| {
            cdr.clear();
            plan.read(Raw::new(format, black_box(&bytes)), NOW, &mut cdr).unwrap();
            black_box(&cdr);
        });
        assert_eq!(cdr, sample);
        println!(
            "| {name} | {} | {format:?} | {read:.0} | {write:.0} | 1/{:.1} | 1/{:.1} |",
            sample.len(),
            tree_read / read,
            tree_write / write
        );
    }
}

/// The least that one turn takes on average, over rounds.
fn nanoseconds(mut turn: impl FnMut()) -> f64 {
    let mut turns = 1_u32;
    let mut round = |turns: u32| {
        let start = Instant::now();
        for _ in 0..turns {
            turn();
        }
        start.elapsed()
    };
    while round(turns) < ROUND {
        turns *= 2;
    }
    let least = (0..ROUNDS).map(|_| round(turns)).min().unwrap_or_default();
    least.as_nanos() as f64 / f64::from(turns)
}

fn messages() -> Vec<(&'static str, DynamicMessage)> {
    let types = TypeSet::new(Shipped);
    let message = |name: &str, json: &str| {
        let ty: Arc<TypeDescription> = types.load(name).unwrap();
        let mut cdr = Vec::new();
        Plan::new(&ty).cdr_from_json(json.as_bytes(), NOW, &mut cdr).unwrap();
        DynamicMessage::decode(&ty, &cdr).unwrap()
    };
    let text = "the quick brown fox jumps over the lazy dog and runs 42 miles";
    let string = message("std_msgs/msg/String", &format!(r#"{{"data":"{text}"}}"#));
    let imu = message(
        "sensor_msgs/msg/Imu",
        r#"{"header": {"frame_id": "imu_link"}, "orientation": {"x": 0.0123, "y": -0.98, "z": 0.1, "w": 0.17},
            "angular_velocity": {"x": 0.001, "y": 0.002, "z": -0.013}, "linear_acceleration": {"x": 0.1, "z": 9.81}}"#,
    );
    let odometry = message(
        "nav_msgs/msg/Odometry",
        r#"{"header": {"frame_id": "odom"}, "child_frame_id": "base_link",
            "pose": {"pose": {"position": {"x": 12.345678901234567, "y": -3.2}, "orientation": {"w": 1}}},
            "twist": {"twist": {"linear": {"x": 0.5}, "angular": {"z": 0.125}}}}"#,
    );
    let floats = {
        let mut message = message("std_msgs/msg/Float64MultiArray", "{}");
        let values = (0..1000).map(|index| (f64::from(index) * 0.37).sin()).collect();
        message.set("data", Value::List(List::F64(values))).unwrap();
        message
    };
    let image = {
        let mut message = message(
            "sensor_msgs/msg/Image",
            r#"{"header":{"frame_id":"camera"},"height":480,"width":640,"encoding":"rgb8","step":1920}"#,
        );
        message.set("data", Value::List(List::U8(noise(640 * 480 * 3)))).unwrap();
        message
    };
    let cloud = {
        let mut message = message(
            "sensor_msgs/msg/PointCloud2",
            r#"{"header":{"frame_id":"lidar"},"height":1,"width":65536,"point_step":16,"row_step":1048576,"is_dense":true,
                "fields":[{"name":"x","offset":0,"datatype":7,"count":1},{"name":"y","offset":4,"datatype":7,"count":1},
                {"name":"z","offset":8,"datatype":7,"count":1},{"name":"intensity","offset":12,"datatype":7,"count":1}]}"#,
        );
        message.set("data", Value::List(List::U8(noise(1 << 20)))).unwrap();
        message
    };
    vec![
        ("String of 61 letters", string),
        ("Imu", imu),
        ("Odometry", odometry),
        ("1000 float64", floats),
        ("Image 640 × 480", image),
        ("PointCloud2 of 1 MiB", cloud),
    ]
}

/// Bytes that follow no rule that a predictor could learn.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}
