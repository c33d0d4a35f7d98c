//! Says hello twice a second. In two terminals, in any order:
//!
//! ```sh
//! cargo run --example talker
//! cargo run --example listener
//! ```
//!
//! As with ROS 2, `--ros-args -r chatter:=news` renames the topic. Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use std::time::Duration;

use tsuji::interfaces::std_msgs::msg::String as Text;
use tsuji::{Context, Qos};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    let node = context.node("talker")?;
    let publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT)?;
    let mut count = 0;
    let _timer = node.create_timer(Duration::from_millis(500), move || {
        count += 1;
        let message = Text { data: format!("Hello World: {count}") };
        println!("Publishing: '{}'", message.data);
        if let Err(error) = publisher.publish(message) {
            eprintln!("{error}");
        }
    })?;
    tsuji::spin(&node)
}
