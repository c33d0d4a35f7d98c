//! A node with parameters, a log and ROS time, which says every second of its clock what time it is. Ctrl-C ends it.
//!
//! cargo run -p tsuji --example driven_node -- --ros-args -p use_sim_time:=true --log-level driven_node:=debug

use std::time::Duration;

use tsuji::{Context, Node, Result, TimerOptions, debug, info};

fn main() -> Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    let node = Node::builder("driven_node").logger_service().build(&context)?;
    let (clock, logger) = (node.clock()?, node.logger());
    let ticks = logger.child("ticks");
    let every_second = TimerOptions::new(Duration::from_secs(1)).clock(&clock);
    let _timer = node.create_timer(every_second, move || {
        let now = clock.now();
        info!(logger, "it is {}.{:09}", now.sec, now.nanosec);
        debug!(ticks, simulated = clock.is_simulated(), "ticked");
    })?;
    tsuji::spin(&node)
}
