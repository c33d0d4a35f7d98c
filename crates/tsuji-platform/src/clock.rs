//! The two clocks: monotonic for latencies and timers, wall for ROS time stamps.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of the monotonic clock. All processes of one host and one time namespace share it:
/// [`MonotonicClock`] says whether two processes do.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(nanos(now)).unwrap_or(0)
}

/// Nanoseconds since the system began, also of the time that it slept.
pub fn boot_ns() -> u64 {
    u64::try_from(nanos(clock_gettime(ClockId::Boottime))).unwrap_or(0)
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

/// A second of the wall clock as the calendar of this place has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// The year.
    pub year: i64,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
    /// From 0 to 23.
    pub hour: u8,
    /// From 0.
    pub minute: u8,
    /// From 0 to 60.
    pub second: u8,
    /// Seconds that it is ahead of UTC.
    pub ahead_s: i64,
}

/// The local time of so many seconds after 1970 began, by the time zone of this process; `None` for one that no calendar has.
pub fn local(wall_s: i64) -> Option<LocalTime> {
    let mut time = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: reads one number and fills a valid place, which all bytes 0 are a value of as well.
    let time = unsafe {
        if libc::localtime_r(&raw const wall_s, time.as_mut_ptr()).is_null() {
            return None;
        }
        time.assume_init()
    };
    let small = |it: libc::c_int| u8::try_from(it).unwrap_or(0);
    Some(LocalTime {
        year: i64::from(time.tm_year) + 1900,
        month: small(time.tm_mon + 1),
        day: small(time.tm_mday),
        hour: small(time.tm_hour),
        minute: small(time.tm_min),
        second: small(time.tm_sec),
        ahead_s: time.tm_gmtoff,
    })
}

fn nanos(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// The monotonic clock that a process reads: that of its time namespace (`unshare -T`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonotonicClock {
    /// What names the namespace on its host. 0 where the kernel knows no such namespaces, or `/proc` is
    /// not there.
    namespace: u64,
    /// How far the clock is ahead of that of the host's first namespace.
    offset_ns: i64,
}

impl MonotonicClock {
    /// The length of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 16;

    /// The clock of this process. It is asked of `/proc` each time: after `fork` a child may have another.
    pub fn own() -> Self {
        use std::os::unix::fs::MetadataExt;
        let namespace = std::fs::metadata("/proc/self/ns/time").map_or(0, |it| it.ino());
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        Self { namespace, offset_ns: monotonic_offset_ns(&offsets).unwrap_or(0) }
    }

    /// How far the other clock, of a process of the same host, is ahead of this one. `None` where they
    /// are one clock, so that what both tell can be compared as it is.
    pub fn lead_of(&self, other: &Self) -> Option<i64> {
        let is_same = self.namespace == other.namespace;
        (!is_same).then(|| other.offset_ns.saturating_sub(self.offset_ns))
    }

    /// As another process of the same build is told.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.namespace.to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset_ns.to_le_bytes());
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) made.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let whole = u128::from_le_bytes(bytes);
        Self { namespace: whole as u64, offset_ns: (whole >> 64) as i64 }
    }
}

/// What `/proc/PID/timens_offsets` says of the monotonic clock: a line of its name, seconds and nanoseconds.
fn monotonic_offset_ns(offsets: &str) -> Option<i64> {
    let line = offsets.lines().find_map(|line| line.trim_start().strip_prefix("monotonic"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, rest) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_read_from_proc() {
        let shown = "monotonic      -86400 500000000\nboottime       86400         0\n";
        assert_eq!(monotonic_offset_ns(shown), Some(-86_399_500_000_000));
        assert_eq!(monotonic_offset_ns("boottime 1 2\n"), None);
        assert_eq!(monotonic_offset_ns("monotonic one 2\n"), None);
    }

    #[test]
    fn clocks_of_one_namespace_are_one() {
        let here = MonotonicClock { namespace: 7, offset_ns: -5 };
        let there =
            MonotonicClock::from_bytes(MonotonicClock { namespace: 8, offset_ns: 100 }.to_bytes());
        assert_eq!(
            (here.lead_of(&here), here.lead_of(&there), there.lead_of(&here)),
            (None, Some(105), Some(-105))
        );
        let own = MonotonicClock::own();
        assert_eq!(own.lead_of(&MonotonicClock::own()), None);
    }

    #[test]
    fn a_local_time_is_as_far_from_utc_as_it_says() {
        let second = 1_798_761_599;
        let LocalTime { hour, minute, second: rest, ahead_s, .. } = local(second).unwrap();
        let of_day = (second + ahead_s).rem_euclid(86_400);
        assert_eq!(i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(rest), of_day);
        assert_eq!(local(i64::MAX), None);
    }
}
