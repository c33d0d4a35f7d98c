//! Whether datagrams come so fast that it is better to wait for some more than for the next one. This decides, and neither waits
//! nor reads a clock.
//!
//! Each datagram wakes who waits for it, who publishes it and so wakes who listens: that is some microseconds of both
//! processors for each, several times what its message takes. Who sends pays for the first, and so each is alone again. What has
//! gathered meanwhile is taken by one call, and published in a row.

use std::time::{Duration, Instant};

/// What is known of the datagrams of late.
#[derive(Debug)]
pub(super) struct Flood {
    /// When all that had come was dealt with last.
    rested: Instant,
    /// Datagrams since then.
    taken: u32,
    /// So often in a row they came fast.
    fast: u32,
}

impl Flood {
    pub(super) fn new(now: Instant) -> Self {
        Self { rested: now, taken: 0, fast: 0 }
    }

    /// So many have been taken.
    pub(super) fn took(&mut self, count: usize) {
        self.taken = self.taken.saturating_add(count as u32);
    }

    /// All that had come at `now` has been dealt with: whether some more are to gather before any is taken.
    pub(super) fn lets_gather(&mut self, now: Instant) -> bool {
        let long = now.saturating_duration_since(std::mem::replace(&mut self.rested, now));
        // A system that sleeps for long would keep all others waiting.
        let is_fast = long < (FAST * std::mem::take(&mut self.taken)).min(GATHERED_MAX);
        self.fast = if is_fast { self.fast.saturating_add(1) } else { 0 };
        FAST_TIMES <= self.fast
    }
}

/// From one to the next, on an average: to be woken takes about as long.
const FAST: Duration = Duration::from_micros(10);

/// Where gathering took longer than that, it is not done again until datagrams have come fast as often anew.
const GATHERED_MAX: Duration = Duration::from_micros(500);

/// So often in a row before it is a flood: a few in a row are answered each at once.
const FAST_TIMES: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many each time, so far apart; how often the rest were to gather.
    fn check(times: u32, taken: usize, apart_us: u64, gathers: u32) {
        let mut now = Instant::now();
        let mut flood = Flood::new(now);
        let mut seen = 0;
        for _ in 0..times {
            now += Duration::from_micros(apart_us);
            flood.took(taken);
            seen += u32::from(flood.lets_gather(now));
        }
        assert_eq!(seen, gathers, "{taken} every {apart_us} µs");
        // Nothing for a moment, and it is over.
        assert!(!flood.lets_gather(now + FAST));
    }

    #[test]
    fn only_many_in_a_row_are_a_flood() {
        check(100, 1, 3, 85);
        check(15, 1, 3, 0);
        check(100, 1, 10, 0);
        check(100, 0, 1, 0);
    }

    #[test]
    fn it_is_one_as_long_as_as_many_gather() {
        check(100, 20, 100, 85);
        check(100, 10, 100, 0);
        check(100, 2000, 10_000, 0);
    }
}
