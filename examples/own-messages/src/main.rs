//! Publishes a message of its own type twice a second, and says what came, until three have come.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use own_messages::my_robot_msgs::msg::{Battery, Cell};
use tsuji::{Context, Executor, Qos};
use tsuji_interfaces::std_msgs::msg::Header;

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    let node = context.node("own_messages")?;

    let came = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&came);
    let _subscription =
        node.create_subscription::<Battery>("battery", Qos::DEFAULT, move |received| {
            let battery = received.view();
            println!(
                "{} of {}: {:.0} %, {} cells, the first of {} {}",
                battery.serial,
                battery.header.frame_id,
                battery.charge * 100.0,
                battery.cells.len(),
                battery.cells.iter().next().map_or(0.0, |cell| cell.voltage),
                Battery::UNIT,
            );
            count.fetch_add(1, Ordering::Relaxed);
        })?;

    let publisher = node.create_publisher::<Battery>("battery", Qos::DEFAULT)?;
    let mut charge = 1.0;
    let _timer = node.create_timer(Duration::from_millis(500), move || {
        let battery = Battery {
            // The very type of tsuji-interfaces.
            header: Header { frame_id: "base_link".into(), ..Header::default() },
            state: Battery::STATE_IN_USE,
            serial: "B-0042".into(),
            charge,
            cells: vec![Cell { voltage: 3.7, ..Cell::default() }; 4],
            ..Battery::default()
        };
        charge -= 0.01;
        if let Err(error) = publisher.publish(battery) {
            eprintln!("{error}");
        }
    })?;

    let mut executor = Executor::new(&context)?;
    executor.add(&node)?;
    executor.spin_until(|| 3 <= came.load(Ordering::Relaxed))
}
