//! Tells what happens to a subscription besides messages: publishers that come and go, a deadline
//! of one second that is missed, an offer that does not fit.
//!
//! ```sh
//! cargo run --example qos_events
//! cargo run --example qos_events -- talk                a publisher that stops after 3 s
//! cargo run --example qos_events -- talk best_effort    one that offers too little
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use std::time::Duration;

use tsuji::interfaces::std_msgs::msg::UInt64;
use tsuji::{Context, Error, ErrorKind, PublisherOptions, Qos, SubscriptionOptions};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).build()?;
    context.shutdown_on_signals()?;
    let qos = Qos::default().deadline(Duration::from_secs(1));
    let arguments: Vec<&str> = context.arguments().iter().map(String::as_str).collect();
    match arguments[..] {
        [] => watch(&context, qos),
        ["talk"] => talk(&context, qos),
        ["talk", "best_effort"] => talk(&context, qos.best_effort()),
        _ => Err(Error::new(
            ErrorKind::Invalid,
            "usage: qos_events [talk [best_effort]] [--ros-args ...]",
        )),
    }
}

fn watch(context: &Context, qos: Qos) -> tsuji::Result<()> {
    let node = context.node("watcher")?;
    let _subscription = node.create_subscription::<UInt64>(
        "heartbeat",
        SubscriptionOptions::default()
            .qos(qos)
            .on_event(|event| println!("subscription: {event:?}")),
        |received| println!("heartbeat {}", received.view().data),
    )?;
    tsuji::spin(&node)
}

fn talk(context: &Context, qos: Qos) -> tsuji::Result<()> {
    let node = context.node("heart")?;
    let publisher = node.create_publisher::<UInt64>(
        "heartbeat",
        PublisherOptions::default().qos(qos).on_event(|event| println!("publisher: {event:?}")),
    )?;
    let mut count = 0;
    let _timer = node.create_timer(Duration::from_millis(500), move || {
        count += 1;
        if count <= 6
            && let Err(error) = publisher.publish(UInt64 { data: count })
        {
            eprintln!("{error}");
        }
    })?;
    tsuji::spin(&node)
}
