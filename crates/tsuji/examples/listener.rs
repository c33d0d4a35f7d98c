//! Prints what the talker says, and how long it was on its way.
//!
//! ```sh
//! cargo run --example listener
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use tsuji::{Context, Qos};
use tsuji_interfaces::std_msgs::msg::String as Text;

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).build()?;
    context.shutdown_on_signals()?;
    let node = context.node("listener")?;
    let _subscription = node.create_subscription::<Text>("chatter", Qos::DEFAULT, |received| {
        let text = received.view().data;
        println!("I heard: '{text}' after {:?}", received.info().latency());
    })?;
    tsuji::spin(&node)
}
