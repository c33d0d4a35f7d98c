//! How long a message was on its way, and by which clocks.

use std::fmt;
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_transport::Envelope;

/// The time from publish to take, with the clock that measured it.
///
/// Shown as a duration; by the wall clocks, which may disagree, with a word that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Nanoseconds from publish to take. By [`LatencyClock::Wall`] it may be negative: the publisher's
    /// clock is ahead of this host's, or one of them was set meanwhile.
    pub ns: i64,
    /// Clock that measured it.
    pub clock: LatencyClock,
}

/// Names the clock that a [`Latency`] was measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyClock {
    /// The monotonic clock, which both ends share: one process, or two that share memory and a time
    /// namespace.
    Monotonic,
    /// The wall clocks of both ends: whatever came by an engine, and processes of two time namespaces.
    /// It is as exact as these clocks agree.
    Wall,
}

impl LatencyClock {
    /// Returns `monotonic` or `wall`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Monotonic => "monotonic",
            Self::Wall => "wall",
        }
    }
}

impl fmt::Display for LatencyClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Latency {
    /// Returns the latency as a duration. Zero where the wall clocks say that it was taken before it was
    /// published.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.ns).unwrap_or(0))
    }

    /// Of a sample that was taken at this time of the monotonic clock. `None` where its publisher says
    /// no time.
    fn of(envelope: &Envelope, taken_ns: u64) -> Option<Self> {
        let (ns, clock) = match (envelope.mono_ns, envelope.wall_ns) {
            (0, ..=0) => return None,
            (0, wall_ns) => (clock::wall_ns().saturating_sub(wall_ns), LatencyClock::Wall),
            // It was stamped by another thread, which may have read the clock a moment later.
            (mono_ns, _) => {
                let ns = taken_ns.saturating_sub(mono_ns);
                (i64::try_from(ns).unwrap_or(i64::MAX), LatencyClock::Monotonic)
            }
        };
        Some(Self { ns, clock })
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.ns < 0 { "-" } else { "" };
        write!(f, "{sign}{:?}", Duration::from_nanos(self.ns.unsigned_abs()))?;
        match self.clock {
            LatencyClock::Monotonic => Ok(()),
            LatencyClock::Wall => f.write_str(" by the wall clock"),
        }
    }
}

/// When a sample was taken, and how long it was on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// On this host's monotonic clock.
    pub(crate) mono_ns: u64,
    pub(crate) latency: Option<Latency>,
}

impl Taken {
    pub(crate) fn at(envelope: &Envelope, mono_ns: u64) -> Self {
        Self { mono_ns, latency: Latency::of(envelope, mono_ns) }
    }

    pub(crate) fn now(envelope: &Envelope) -> Self {
        Self::at(envelope, clock::monotonic_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mono_ns: u64, wall_ns: i64, expect: Option<(i64, LatencyClock)>) {
        let envelope = Envelope { mono_ns, wall_ns, ..Envelope::default() };
        let got = Taken::at(&envelope, 1000).latency;
        assert_eq!(got.map(|it| it.clock), expect.map(|(_, clock)| clock), "{mono_ns} {wall_ns}");
        let (Some(got), Some((at_least, clock))) = (got, expect) else { return };
        match clock {
            LatencyClock::Monotonic => assert_eq!(got.ns, at_least),
            LatencyClock::Wall => assert!(at_least <= got.ns, "{got:?}"),
        }
    }

    #[test]
    fn the_clock_that_both_ends_share_measures() {
        check(400, 1, Some((600, LatencyClock::Monotonic)));
        check(1001, 1, Some((0, LatencyClock::Monotonic)));
        check(400, 0, Some((600, LatencyClock::Monotonic)));
        check(0, clock::wall_ns() - 5_000_000, Some((5_000_000, LatencyClock::Wall)));
        check(0, 0, None);
        check(0, i64::MIN, None);
    }

    #[test]
    fn a_publisher_whose_clock_is_ahead_has_a_negative_latency() {
        let envelope = Envelope { wall_ns: i64::MAX, ..Envelope::default() };
        let latency = Taken::now(&envelope).latency.unwrap();
        assert!(latency.ns < 0, "{latency:?}");
        assert_eq!(latency.duration(), Duration::ZERO);
    }

    #[test]
    fn what_is_shown_says_which_clock() {
        let show = |ns, clock| Latency { ns, clock }.to_string();
        assert_eq!(show(1_500, LatencyClock::Monotonic), "1.5µs");
        assert_eq!(show(2_000_000, LatencyClock::Wall), "2ms by the wall clock");
        assert_eq!(show(-2_000_000, LatencyClock::Wall), "-2ms by the wall clock");
    }
}
