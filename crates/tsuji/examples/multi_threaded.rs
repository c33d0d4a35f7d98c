//! Two threads, so that a slow callback does not hold up a quick one. Callbacks of one mutually
//! exclusive group never overlap; these two are in groups of their own.
//!
//! ```sh
//! cargo run --example multi_threaded
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use std::thread;
use std::time::{Duration, Instant};

use tsuji::interfaces::std_msgs::msg::UInt64;
use tsuji::{CallbackGroupKind, Context, Executor, SubscriptionOptions, TimerOptions};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    let node = context.node("both")?;
    let begun = Instant::now();

    let publisher = node.create_publisher::<UInt64>("count", tsuji::Qos::DEFAULT)?;
    let slow = node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
    let _subscription = node.create_subscription::<UInt64>(
        "count",
        SubscriptionOptions::default().group(&slow),
        move |received| {
            let number = received.view().data;
            println!("{:6.2} s  {number}: slow work begins", begun.elapsed().as_secs_f32());
            thread::sleep(Duration::from_millis(1500));
            println!("{:6.2} s  {number}: slow work ends", begun.elapsed().as_secs_f32());
        },
    )?;

    let quick = node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
    let mut count = 0;
    let _timer = node.create_timer(
        TimerOptions::new(Duration::from_millis(500)).group(&quick),
        move || {
            count += 1;
            println!("{:6.2} s  tick {count}", begun.elapsed().as_secs_f32());
            if count % 4 == 0
                && let Err(error) = publisher.publish(UInt64 { data: count })
            {
                eprintln!("{error}");
            }
        },
    )?;

    let mut executor = Executor::new(&context)?.threads(2);
    executor.add(&node)?;
    executor.spin()
}
