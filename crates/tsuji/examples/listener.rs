//! Prints what the talker says, and how long it was on its way.
//!
//! ```sh
//! cargo run --example listener
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use tsuji::interfaces::std_msgs::msg::String as Text;
use tsuji::{Context, Qos};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    let node = context.node("listener")?;
    let _subscription = node.create_subscription::<Text>("chatter", Qos::DEFAULT, |received| {
        let text = received.view().data;
        match received.info().latency() {
            Some(latency) => println!("I heard: '{text}' after {latency}"),
            // A publisher that is not tsuji's need not say when it published.
            None => println!("I heard: '{text}'"),
        }
    })?;
    tsuji::spin(&node)
}
