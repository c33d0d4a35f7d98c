//! Times as ROS messages have them.

use tsuji_interfaces::builtin_interfaces::msg::Time;

/// Nanoseconds since 1970 as ROS writes them.
pub(crate) fn time(ns: i64) -> Time {
    let (sec, nanosec) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    Time {
        sec: i32::try_from(sec).unwrap_or(i32::MAX),
        nanosec: u32::try_from(nanosec).unwrap_or_default(),
    }
}
