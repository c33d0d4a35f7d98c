//! How fast samples come.

/// Counts of the last whole interval of about a second.
#[derive(Default)]
pub(super) struct Rate {
    from_ns: u64,
    samples: u64,
    bytes: u64,
    last: Option<(f64, f64)>,
}

impl Rate {
    pub(super) fn add(&mut self, now_ns: u64, samples: u64, bytes: u64) {
        let elapsed = now_ns.saturating_sub(self.from_ns);
        if RATE_NS <= elapsed {
            let seconds = elapsed as f64 / 1e9;
            let is_fresh = self.from_ns != 0 && elapsed < 4 * RATE_NS;
            self.last = is_fresh
                .then(|| (self.samples as f64 / seconds, self.bytes as f64 / seconds))
                .or(if self.from_ns == 0 { None } else { Some((0.0, 0.0)) });
            (self.from_ns, self.samples, self.bytes) = (now_ns, 0, 0);
        }
        self.samples += samples;
        self.bytes += bytes;
    }

    pub(super) fn now(&mut self, now_ns: u64) -> (f64, f64) {
        let elapsed = now_ns.saturating_sub(self.from_ns);
        if RATE_NS <= elapsed && self.from_ns != 0 {
            self.add(now_ns, 0, 0);
        } else if self.last.is_none() && 0 < elapsed && self.from_ns != 0 {
            let seconds = elapsed as f64 / 1e9;
            return (self.samples as f64 / seconds, self.bytes as f64 / seconds);
        }
        self.last.unwrap_or_default()
    }
}

const RATE_NS: u64 = 1_000_000_000;
