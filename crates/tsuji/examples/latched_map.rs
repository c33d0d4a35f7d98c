//! A map that is published once and reaches whoever comes later, as long as its publisher lives.
//!
//! ```sh
//! cargo run --example latched_map
//! cargo run --example latched_map -- look
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use tsuji::interfaces::nav_msgs::msg::{MapMetaData, OccupancyGrid};
use tsuji::{Context, Error, ErrorKind, Qos};

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).build()?;
    context.shutdown_on_signals()?;
    let arguments: Vec<&str> = context.arguments().iter().map(String::as_str).collect();
    match arguments[..] {
        [] => serve(&context),
        ["look"] => look(&context),
        _ => Err(Error::new(ErrorKind::Invalid, "usage: latched_map [look] [--ros-args ...]")),
    }
}

fn look(context: &Context) -> tsuji::Result<()> {
    let node = context.node("planner")?;
    let _subscription =
        node.create_subscription::<OccupancyGrid>("map", Qos::LATCHED, |received| {
            let map = received.view();
            println!("A map of {}×{} cells.", map.info.width, map.info.height);
        })?;
    tsuji::spin(&node)
}

fn serve(context: &Context) -> tsuji::Result<()> {
    let node = context.node("map_server")?;
    let publisher = node.create_publisher::<OccupancyGrid>("map", Qos::LATCHED)?;
    let info = MapMetaData { width: 200, height: 100, resolution: 0.05, ..MapMetaData::default() };
    let data = vec![0; 200 * 100];
    publisher.publish(OccupancyGrid { info, data, ..OccupancyGrid::default() })?;
    println!("The map is there for whoever comes.");
    tsuji::spin(&node)
}
