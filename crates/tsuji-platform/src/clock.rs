//! The two clocks: monotonic for latencies and timers, wall for ROS time stamps.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of the monotonic clock. All processes of one host share it.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(nanos(now)).unwrap_or(0)
}

/// Nanoseconds since the Unix epoch.
pub fn wall_ns() -> i64 {
    nanos(clock_gettime(ClockId::Realtime))
}

/// Nanoseconds of processor time that the calling thread has used.
pub fn thread_cpu_ns() -> u64 {
    u64::try_from(nanos(clock_gettime(ClockId::ThreadCPUTime))).unwrap_or(0)
}

/// Nanoseconds of processor time that the whole process has used.
pub fn process_cpu_ns() -> u64 {
    u64::try_from(nanos(clock_gettime(ClockId::ProcessCPUTime))).unwrap_or(0)
}

fn nanos(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}
