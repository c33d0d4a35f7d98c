//! A map that is published once and reaches whoever comes later, as long as its publisher lives.
//!
//! ```sh
//! cargo run --example latched_map
//! cargo run --example latched_map -- look
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use tsuji::{Context, Durability, History, Qos};
use tsuji_interfaces::nav_msgs::msg::{MapMetaData, OccupancyGrid};

const LATCHED: Qos =
    Qos { durability: Durability::TransientLocal, history: History::KeepLast(1), ..Qos::DEFAULT };

fn main() -> tsuji::Result<()> {
    let context = Context::new()?;
    context.shutdown_on_signals()?;
    if std::env::args().any(|argument| argument == "look") {
        let node = context.node("planner")?;
        let _subscription =
            node.create_subscription::<OccupancyGrid>("map", LATCHED, |received| {
                let map = received.view();
                println!("A map of {}×{} cells.", map.info.width, map.info.height);
            })?;
        return tsuji::spin(&node);
    }
    let node = context.node("map_server")?;
    let publisher = node.create_publisher::<OccupancyGrid>("map", LATCHED)?;
    let info = MapMetaData { width: 200, height: 100, resolution: 0.05, ..MapMetaData::default() };
    let data = vec![0; 200 * 100];
    publisher.publish(OccupancyGrid { info, data, ..OccupancyGrid::default() })?;
    println!("The map is there for whoever comes.");
    tsuji::spin(&node)
}
