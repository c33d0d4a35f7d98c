//! The pictures of bench.py by the Rust API, for `bench.py --rust`, which says with what arguments it is run.
#![allow(clippy::print_stdout, reason = "bench.py reads it")]

use std::error::Error;
use std::time::{Duration, Instant};

use tsuji::interfaces::sensor_msgs::msg::Image;
use tsuji::interfaces::std_msgs::msg::UInt8MultiArray;
use tsuji::{Context, Qos, WaitSet};
use tsuji_platform::clock::monotonic_ns;

const HEIGHT: u32 = 1024;
const WIDTH: u32 = 768;
const BYTES: usize = (3 * HEIGHT * WIDTH) as usize;
const RATE_HZ: f64 = 30.0;
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = words.iter().position(|it| it == name);
        at.and_then(|at| words.get(at + 1)).ok_or_else(|| format!("{name} is missing"))
    };
    // By the variables of ROS 2, as Python's.
    let context = Context::builder().build()?;
    match value("--role")?.as_str() {
        "far" => receive(&context),
        _ => publish(&context, value("--seconds")?.parse()?, value("--case")? == "loan"),
    }
}

/// Prints how old each picture was when its array was in hand, in milliseconds.
fn receive(context: &Context) -> Result<(), Box<dyn Error>> {
    let node = context.node("far")?;
    let pictures = node.create_polled_subscription::<Image>("/there", Qos::DEFAULT.keep_last(5))?;
    let back = node.create_publisher::<UInt8MultiArray>("/back", Qos::DEFAULT)?;
    back.wait_for_subscriptions(1, PATIENCE)?;
    pictures.wait_for_publishers(1, PATIENCE)?;
    let mut set = WaitSet::new(context)?;
    set.add(&pictures)?;
    back.publish(UInt8MultiArray::default())?;
    let mut ages = Vec::new();
    loop {
        if set.wait(PATIENCE)?.is_empty() {
            return Err("no picture".into());
        }
        while let Some(picture) = pictures.take()? {
            let view = picture.view();
            let stamp = view.data.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let now = monotonic_ns();
            if stamp == 0 {
                println!("{ages:?}");
                return Ok(());
            }
            ages.push((now - stamp) as f64 / 1e6);
        }
    }
}

/// Publishes pictures with the time in their first bytes, and a last one without.
fn publish(context: &Context, seconds: f64, is_lent: bool) -> Result<(), Box<dyn Error>> {
    let node = context.node("near")?;
    let there = node.create_publisher::<Image>("/there", Qos::DEFAULT.keep_last(5))?;
    let back = node.create_polled_subscription::<UInt8MultiArray>("/back", Qos::DEFAULT)?;
    there.wait_for_subscriptions(1, PATIENCE)?;
    back.wait_for_publishers(1, PATIENCE)?;
    let template = Image {
        height: HEIGHT,
        width: WIDTH,
        step: 3 * WIDTH,
        encoding: "rgb8".into(),
        ..Image::default()
    };
    let mut frame = vec![7; BYTES];
    let mut send = |stamp: Option<fn() -> u64>| {
        let now = || stamp.map_or(0, |it| it()).to_le_bytes();
        if is_lent {
            let mut loan = there.loan(&template, BYTES)?;
            loan.data_mut()[8] = 9;
            loan.data_mut()[..8].copy_from_slice(&now());
            return there.publish(loan);
        }
        frame[..8].copy_from_slice(&now());
        there.publish(Image { data: frame.clone(), ..template.clone() })
    };
    let mut set = WaitSet::new(context)?;
    set.add(&back)?;
    if set.wait(PATIENCE)?.is_empty() {
        return Err("nobody receives".into());
    }
    let begun = Instant::now();
    for number in 1..=(seconds * RATE_HZ) as u32 {
        let due = begun + Duration::from_secs_f64(f64::from(number) / RATE_HZ);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        send(Some(monotonic_ns))?;
    }
    send(None)?;
    there.wait_for_acknowledgements(PATIENCE)?;
    Ok(())
}
