//! Looks at the camera's pictures where they lie, without a copy.
//!
//! ```sh
//! cargo run --example viewer
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use tsuji::interfaces::sensor_msgs::msg::Image;
use tsuji::{Context, Qos};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    let node = context.node("viewer")?;
    let _subscription =
        node.create_subscription::<Image>("camera/image", Qos::SENSOR_DATA, |received| {
            let image = received.view();
            let sum: u64 = image.data.iter().map(|pixel| u64::from(*pixel)).sum();
            let latency = received.info().latency().map(|it| format!(", {it} on its way"));
            println!(
                "picture {}: {}×{} {}, mean brightness {}{}",
                received.info().sequence,
                image.width,
                image.height,
                image.encoding,
                sum / image.data.len().max(1) as u64,
                latency.unwrap_or_default(),
            );
        })?;
    tsuji::spin(&node)
}
