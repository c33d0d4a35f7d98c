//! What a message in memory costs to serialise and back, beside a plain copy of its bytes. The types are those of
//! `scripts/ros-types`. `cargo bench -p tsuji-rmw --bench plan`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its figures and fails as tests do"
)]

#[path = "../tests/plan/ros_types.rs"]
mod ros_types;

fn main() {
    use ros_types::{LANGUAGES, RosTypes};
    use std::hint::black_box;
    use tsuji_interfaces::{AmentIndex, sensor_msgs};
    use tsuji_msg::{DynamicMessage, Message, TypeSet, Value};

    let Some(types) = RosTypes::find() else { return };
    let set = TypeSet::new(AmentIndex::from_env_value(types.root()));
    let mut measured = DynamicMessage::new(set.load("tsuji_test_msgs/msg/Measured").unwrap());
    measured.set("header.frame_id", Value::Text("base_link".into())).unwrap();
    let measured = measured.encode().unwrap();
    let image = sensor_msgs::msg::Image {
        height: 768,
        width: 1024,
        step: 3072,
        encoding: "bgr8".into(),
        data: vec![7; 2_359_296],
        ..Default::default()
    };
    let image = image.to_vec().unwrap();
    for (name, bytes) in
        [("tsuji_test_msgs/msg/Measured", measured), ("sensor_msgs/msg/Image", image)]
    {
        let mut out = vec![0_u8; bytes.len()];
        let short = name.rsplit('/').next().unwrap();
        let what = |what: &str| format!("{short}, {} bytes, {what}", bytes.len());
        measure(&what("memcpy"), || black_box(&mut out).copy_from_slice(black_box(&bytes)));
        for language in LANGUAGES {
            let mut message = types.make(name, language);
            message.deserialize(&bytes).unwrap();
            let (plan, at) = (message.plan.clone(), message.at());
            measure(&what(&format!("{language}: serialized_size")), || {
                // SAFETY: a message of the plan's type.
                black_box(unsafe { plan.serialized_size(black_box(at)) }).unwrap();
            });
            measure(&what(&format!("{language}: serialize")), || {
                // SAFETY: as above.
                black_box(unsafe { plan.serialize(black_box(at), black_box(&mut out)) }).unwrap();
            });
            measure(&what(&format!("{language}: deserialize, memory kept")), || {
                black_box(message.deserialize(black_box(&bytes))).unwrap();
            });
            let mut fresh = vec![0_u64; plan.message_size().div_ceil(8) + 1];
            measure(&what(&format!("{language}: init, deserialize, fini")), || {
                let at = fresh.as_mut_ptr().cast();
                // SAFETY: memory of that size, aligned for any field.
                unsafe {
                    plan.init(at);
                    black_box(plan.deserialize(black_box(&bytes), at)).unwrap();
                    plan.fini(at);
                }
            });
            assert_eq!(out, bytes);
        }
        measure(&what("memcpy again"), || black_box(&mut out).copy_from_slice(black_box(&bytes)));
        for language in LANGUAGES {
            let mut message = types.make(name, language);
            message.deserialize(&bytes).unwrap();
            let mut copy = vec![0_u8; bytes.len()];
            let ratios = compare(
                || black_box(&mut copy).copy_from_slice(black_box(&bytes)),
                || {
                    // SAFETY: a message of the plan's type.
                    black_box(unsafe { message.plan.serialize(message.at(), black_box(&mut out)) })
                        .unwrap();
                },
            );
            println!("{:64} {ratios:>12.3} x memcpy", what(&format!("{language}: serialize")));
        }
        let support = types.message(name, "cpp");
        measure(&what("of_message, known"), || {
            // SAFETY: of generated code.
            drop(black_box(unsafe {
                rmw_tsuji::plan::of_message(black_box(support), &rmw_tsuji::abi::HUMBLE)
            }));
        });
    }
}

/// Prints the median time of one call over many rounds.
fn measure(what: &str, mut call: impl FnMut()) {
    use std::time::{Duration, Instant};
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
    println!("{what:64} {:>12.1} ns", rounds[rounds.len() / 2]);
}

/// How many times as long as the first call the second takes: the median over rounds in which both run, so that the
/// machine's moods are the same for both.
fn compare(mut first: impl FnMut(), mut second: impl FnMut()) -> f64 {
    use std::time::Instant;
    const CALLS: u32 = 8;
    let mut ratios: Vec<f64> = (0..301)
        .map(|_| {
            let time = |call: &mut dyn FnMut()| {
                let start = Instant::now();
                for _ in 0..CALLS {
                    call();
                }
                start.elapsed().as_secs_f64()
            };
            let first = time(&mut first);
            time(&mut second) / first
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}
