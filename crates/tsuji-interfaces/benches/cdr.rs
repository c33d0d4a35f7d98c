//! What serialising costs beside a plain copy. `cargo bench -p tsuji-interfaces`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its figures and fails as tests do"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};
use tsuji_interfaces::{Shipped, geometry_msgs, sensor_msgs, std_msgs};
use tsuji_msg::{DynamicMessage, JsonStyle, Message, TypeSet};

fn main() {
    let image = sensor_msgs::msg::Image {
        height: 768,
        width: 1024,
        step: 3072,
        encoding: "bgr8".into(),
        data: vec![7; 2_359_296],
        ..Default::default()
    };
    let bytes = image.to_vec().unwrap();
    let mut out = vec![0_u8; bytes.len()];
    measure("image 2.36 MB: memcpy into a buffer", || {
        black_box(&mut out).copy_from_slice(black_box(&bytes))
    });
    measure("image 2.36 MB: serialize_into a buffer", || {
        drop(black_box(&image).serialize_into(black_box(&mut out)))
    });
    measure("image 2.36 MB: a copy of the bytes (allocates)", || {
        drop(black_box(black_box(&bytes).clone()))
    });
    measure("image 2.36 MB: to_vec (allocates)", || drop(black_box(black_box(&image).to_vec())));
    measure("image 2.36 MB: deserialize (allocates)", || {
        drop(black_box(sensor_msgs::msg::Image::deserialize(black_box(&bytes))));
    });
    measure("image 2.36 MB: view_cdr", || {
        drop(black_box(sensor_msgs::msg::Image::view_cdr(black_box(&bytes))))
    });
    measure("image 2.36 MB: serialized_size", || {
        black_box(black_box(&image).serialized_size());
    });

    let text = std_msgs::msg::String { data: "Test msg".into() };
    let bytes = text.to_vec().unwrap();
    measure("String: serialize_into", || {
        drop(black_box(&text).serialize_into(black_box(&mut out)))
    });
    measure("String: deserialize", || {
        drop(black_box(std_msgs::msg::String::deserialize(black_box(&bytes))))
    });
    measure("String: view_cdr", || {
        drop(black_box(std_msgs::msg::String::view_cdr(black_box(&bytes))))
    });
    let twist = geometry_msgs::msg::Twist::default();
    let twist_bytes = twist.to_vec().unwrap();
    measure("Twist: serialize_into", || {
        drop(black_box(&twist).serialize_into(black_box(&mut out)))
    });
    measure("Twist: deserialize", || {
        drop(black_box(geometry_msgs::msg::Twist::deserialize(black_box(&twist_bytes))))
    });

    let ty = TypeSet::new(Shipped).load("std_msgs/msg/String").unwrap();
    let json = serde_json::json!({"data": "Test msg"});
    measure("String, dynamic: JSON value to CDR", || {
        let message = DynamicMessage::from_json(black_box(&ty), black_box(&json)).unwrap();
        black_box(message.encode().unwrap());
    });
    measure("String, dynamic: CDR to JSON value", || {
        let message = DynamicMessage::decode(black_box(&ty), black_box(&bytes)).unwrap();
        black_box(message.to_json(JsonStyle::default()));
    });
}

/// Prints the median time of one call over many rounds.
fn measure(what: &str, mut call: impl FnMut()) {
    let start = Instant::now();
    call();
    let calls = (Duration::from_millis(5).as_nanos() / start.elapsed().as_nanos().max(20))
        .clamp(1, 100_000) as u32;
    let mut rounds: Vec<_> = (0..31)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..calls {
                call();
            }
            start.elapsed().as_nanos() as f64 / f64::from(calls)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{what:48} {:>12.1} ns", rounds[rounds.len() / 2]);
}
