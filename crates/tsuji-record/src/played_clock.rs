//! The time of a recording on `/clock`, as it is played.

use std::time::Duration;

use tsuji::{History, Node, Publisher, Qos, Reliability};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::rosgraph_msgs::msg::Clock;

use crate::{Error, ErrorKind, Result};

/// The most that `/clock` is published a second.
pub const CLOCK_HZ_MAX: f64 = 10_000.0;

pub(crate) const CLOCK: &str = "/clock";

/// As rclcpp has it.
const QOS: Qos =
    Qos { history: History::KeepLast(1), reliability: Reliability::BestEffort, ..Qos::DEFAULT };

/// Publishes the time at even steps.
pub(crate) struct PlayedClock {
    publisher: Publisher<Clock>,
    period_ns: u64,
    /// When the next step is, since it began to be played.
    next_ns: u64,
}

impl PlayedClock {
    pub(crate) fn new(node: &Node, hz: f64) -> Result<Self> {
        if !(0.0 < hz && hz <= CLOCK_HZ_MAX) {
            let text = format!("clock {hz}; allowed: above 0, and at most {CLOCK_HZ_MAX} Hz");
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let publisher = node.create_publisher::<Clock>(CLOCK, QOS)?;
        Ok(Self { publisher, period_ns: (1e9 / hz) as u64, next_ns: 0 })
    }

    /// It is played from the beginning.
    pub(crate) fn begin(&mut self) {
        self.next_ns = 0;
    }

    /// How long after the beginning the next step is.
    pub(crate) fn next(&self) -> Duration {
        Duration::from_nanos(self.next_ns)
    }

    /// Publishes `time_ns` if a step is due. Steps that were missed are not made up for.
    pub(crate) fn tick(&mut self, since: Duration, time_ns: u64) -> tsuji::Result<()> {
        let since_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        if since_ns < self.next_ns {
            return Ok(());
        }
        self.next_ns = (since_ns / self.period_ns + 1).saturating_mul(self.period_ns);
        let (sec, nanosec) = (time_ns / 1_000_000_000, (time_ns % 1_000_000_000) as u32);
        let sec = i32::try_from(sec).unwrap_or(i32::MAX);
        self.publisher.publish(Clock { clock: Time { sec, nanosec } })
    }
}
