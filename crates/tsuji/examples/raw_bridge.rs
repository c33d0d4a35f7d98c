//! Carries a topic of any type to another one, as bytes, and counts them. The type is given by name
//! when it is run; nothing here knows what is inside.
//!
//! ```sh
//! cargo run --example raw_bridge -- chatter std_msgs/msg/String copy
//! cargo run --example talker
//! cargo run --example listener -- --ros-args -r chatter:=copy
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tsuji::{Context, Error, ErrorKind, Qos, RawType};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).build()?;
    context.shutdown_on_signals()?;
    let [from, type_name, to] = context.arguments() else {
        let usage = "usage: raw_bridge FROM TYPE TO [--ros-args ...]";
        return Err(Error::new(ErrorKind::Invalid, usage));
    };
    // No hash: whatever the publisher's definition of the type is.
    let of = RawType::new(type_name.clone());
    let node = context.node("bridge")?;
    let publisher = node.create_raw_publisher(to, of.clone(), Qos::DEFAULT)?;
    let carried = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&carried);
    let _subscription = node.create_raw_subscription(from, of, Qos::DEFAULT, move |sample| {
        counter.fetch_add(sample.bytes.len() as u64, Ordering::Relaxed);
        // The same memory goes on; it is copied only where the other link cannot reach it.
        if let Err(error) = publisher.publish_frozen(sample.bytes) {
            eprintln!("{error}");
        }
    })?;
    let _timer = node.create_timer(Duration::from_secs(1), move || {
        println!("{} bytes in the last second", carried.swap(0, Ordering::Relaxed));
    })?;
    tsuji::spin(&node)
}
