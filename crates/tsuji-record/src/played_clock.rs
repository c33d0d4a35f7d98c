//! The time of a recording on `/clock`, as it is played.

use std::time::Duration;

use tsuji::{Node, Publisher, Qos};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::rosgraph_msgs::msg::Clock;

use crate::{Error, ErrorKind, Result};

/// The most that `/clock` is published a second.
pub const CLOCK_HZ_MAX: f64 = 10_000.0;

pub(crate) const CLOCK: &str = "/clock";

/// Publishes the time at even steps.
pub(crate) struct PlayedClock {
    publisher: Publisher<Clock>,
    /// No steps if there is none.
    period_ns: Option<u64>,
    /// When the next step is, since it began to be played.
    next_ns: u64,
}

impl PlayedClock {
    pub(crate) fn new(node: &Node, hz: Option<f64>) -> Result<Self> {
        if let Some(hz) = hz.filter(|it| !(0.0 < *it && *it <= CLOCK_HZ_MAX)) {
            let text = format!("clock {hz}; allowed: above 0, and at most {CLOCK_HZ_MAX} Hz");
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let publisher = node.create_publisher::<Clock>(CLOCK, Qos::CLOCK)?;
        Ok(Self { publisher, period_ns: hz.map(|it| (1e9 / it) as u64), next_ns: 0 })
    }

    /// It is played from the beginning.
    pub(crate) fn begin(&mut self) {
        self.next_ns = 0;
    }

    /// How long after the beginning the next step is, if there are any.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.period_ns.map(|_| Duration::from_nanos(self.next_ns))
    }

    /// Publishes `time_ns` if a step is due. Steps that were missed are not made up for.
    pub(crate) fn tick(&mut self, since: Duration, time_ns: u64) -> tsuji::Result<()> {
        let Some(period_ns) = self.period_ns else { return Ok(()) };
        let since_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        if since_ns < self.next_ns {
            return Ok(());
        }
        self.next_ns = (since_ns / period_ns + 1).saturating_mul(period_ns);
        self.tell(time_ns)
    }

    /// Publishes `time_ns`.
    pub(crate) fn tell(&mut self, time_ns: u64) -> tsuji::Result<()> {
        let (sec, nanosec) = (time_ns / 1_000_000_000, (time_ns % 1_000_000_000) as u32);
        let sec = i32::try_from(sec).unwrap_or(i32::MAX);
        self.publisher.publish(Clock { clock: Time { sec, nanosec } })
    }
}
