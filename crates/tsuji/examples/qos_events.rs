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

use tsuji::{Context, Qos, Reliability};
use tsuji_interfaces::std_msgs::msg::UInt64;

fn main() -> tsuji::Result<()> {
    let context = Context::new()?;
    context.shutdown_on_signals()?;
    let mut qos = Qos { deadline: Some(Duration::from_secs(1)), ..Qos::DEFAULT };
    let is_said = |word: &str| std::env::args().any(|argument| argument == word);
    if is_said("best_effort") {
        qos.reliability = Reliability::BestEffort;
    }
    if !is_said("talk") {
        let node = context.node("watcher")?;
        let _subscription = node
            .subscription::<UInt64>("heartbeat")
            .qos(qos)
            .on_event(|event| println!("subscription: {event:?}"))
            .callback(|received| println!("heartbeat {}", received.view().data))?;
        return tsuji::spin(&node);
    }
    let node = context.node("heart")?;
    let publisher = node
        .publisher::<UInt64>("heartbeat")
        .qos(qos)
        .on_event(|event| println!("publisher: {event:?}"))
        .build()?;
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
