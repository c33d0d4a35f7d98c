//! A node with parameters, a log and ROS time, which says every second of its clock what time it is. Ctrl-C ends it.
//!
//! cargo run -p tsuji-node --example whole_node -- --ros-args -p use_sim_time:=true --log-level whole_node:=debug

use std::time::Duration;

use tsuji::{Context, Result};
use tsuji_node::log::Logging;
use tsuji_node::{WholeNode, debug, info};

fn main() -> Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).build()?;
    context.shutdown_on_signals()?;
    let logging = Logging::new(&context);
    logging.install()?;
    let whole = WholeNode::builder(&context, &logging, "whole_node").logger_service().build()?;
    let (clock, logger) = (whole.clock().clone(), whole.logger().clone());
    let ticks = logger.child("ticks");
    let _timer = whole.create_timer(Duration::from_secs(1), move || {
        let now = clock.now();
        info!(logger, "it is {}.{:09}", now.sec, now.nanosec);
        debug!(ticks, simulated = clock.is_simulated(), "ticked");
    })?;
    tsuji::spin(whole.node())
}
