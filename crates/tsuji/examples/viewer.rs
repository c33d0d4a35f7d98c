//! Looks at the camera's pictures where they lie, without a copy.
//!
//! ```sh
//! cargo run --example viewer
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use tsuji::{Context, Qos};
use tsuji_interfaces::sensor_msgs::msg::Image;

fn main() -> tsuji::Result<()> {
    let context = Context::new()?;
    context.shutdown_on_signals()?;
    let node = context.node("viewer")?;
    let _subscription =
        node.create_subscription::<Image>("camera/image", Qos::SENSOR_DATA, |received| {
            let image = received.view();
            let sum: u64 = image.data.iter().map(|pixel| u64::from(*pixel)).sum();
            println!(
                "picture {}: {}×{} {}, mean brightness {}, {:?} on its way",
                received.info().sequence,
                image.width,
                image.height,
                image.encoding,
                sum / image.data.len().max(1) as u64,
                received.info().latency(),
            );
        })?;
    tsuji::spin(&node)
}
