//! Waits for two topics at once and takes what came, without callbacks.
//!
//! ```sh
//! cargo run --example take
//! cargo run --example talker
//! cargo run --example talker -- --ros-args -r chatter:=news -r __node:=reporter
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use std::time::Duration;

use tsuji::interfaces::std_msgs::msg::String as Text;
use tsuji::{Context, ErrorKind, Qos, WaitSet};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    match listen(&context) {
        Err(error) if error.kind() == ErrorKind::Closed => Ok(()),
        ended => ended,
    }
}

fn listen(context: &Context) -> tsuji::Result<()> {
    let node = context.node("taker")?;
    let mut set = WaitSet::new(context)?;
    let mut subscriptions = Vec::new();
    for topic in ["chatter", "news"] {
        let subscription = node.create_polled_subscription::<Text>(topic, Qos::DEFAULT)?;
        set.add(&subscription)?;
        subscriptions.push(subscription);
    }
    loop {
        let ready = set.wait(Duration::from_secs(5))?;
        if ready.is_empty() {
            println!("Nothing for 5 s.");
        }
        for subscription in ready.into_iter().map(|number| &subscriptions[number]) {
            while let Some(received) = subscription.take()? {
                println!("{}: '{}'", subscription.topic(), received.view().data);
            }
        }
    }
}
