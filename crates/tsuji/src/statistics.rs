//! Numbers that grow while samples flow, at a few nanoseconds each.

/// Latencies in buckets of about 3 %, from 1 ns to hours. Allocates once.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u32]>,
    total: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; BUCKETS].into_boxed_slice(), total: 0, sum_ns: 0, max_ns: 0 }
    }

    pub(crate) fn add(&mut self, ns: u64) {
        let bucket = &mut self.counts[bucket(ns)];
        *bucket = bucket.saturating_add(1);
        self.total += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// The value below which the share `quantile` of all lies, to the bucket's middle.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let rank = (quantile * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            rank <= seen
        })?;
        Some(middle(found).min(self.max_ns))
    }

    pub(crate) fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// How many there are up to each bound and above the one before it, by the buckets' middles, and how many above the last.
    pub(crate) fn counts(&self, bounds_ns: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut rest = self.counts.iter().enumerate().peekable();
        let bounds = bounds_ns.chain([u64::MAX]);
        let up_to = |bound| {
            let within = std::iter::from_fn(|| rest.next_if(|(at, _)| middle(*at) <= bound));
            within.map(|(_, count)| u64::from(*count)).sum()
        };
        bounds.map(up_to).collect()
    }

    pub(crate) fn max_ns(&self) -> u64 {
        self.max_ns
    }
}

/// 16 buckets to each doubling.
const STEPS_LOG2: u32 = 4;
const BUCKETS: usize = 46 << STEPS_LOG2;

fn bucket(ns: u64) -> usize {
    if ns < 1 << STEPS_LOG2 {
        return ns as usize;
    }
    let shift = ns.ilog2() - STEPS_LOG2;
    let step = (ns >> shift) as usize;
    (((shift as usize) << STEPS_LOG2) + step).min(BUCKETS - 1)
}

fn middle(bucket: usize) -> u64 {
    if bucket < 2 << STEPS_LOG2 {
        return bucket as u64;
    }
    let shift = (bucket >> STEPS_LOG2) - 1;
    let step = bucket - (shift << STEPS_LOG2);
    ((step as u64) << shift) + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile_ns(0.5), None);
        (1..=10_000).for_each(|us| histogram.add(us * 1000));
        for (quantile, expect) in [(0.5, 5_000_000.0), (0.99, 9_900_000.0), (1.0, 10_000_000.0)] {
            let got = histogram.quantile_ns(quantile).unwrap() as f64;
            assert!((got / expect - 1.0).abs() < 0.04, "{quantile}: {got}");
        }
        assert_eq!(histogram.max_ns(), 10_000_000);
    }

    #[test]
    fn counts_are_between_their_bounds() {
        let mut histogram = Histogram::new();
        [1, 90, 900, 950, 5_000, 5_000, u64::MAX].into_iter().for_each(|ns| histogram.add(ns));
        let counts = |bounds: &[u64]| histogram.counts(bounds.iter().copied());
        assert_eq!(counts(&[100, 1000, 10_000]), [2, 2, 2, 1]);
        assert_eq!(counts(&[1]), [1, 6]);
        assert_eq!(counts(&[]), [7]);
        assert_eq!(histogram.sum_ns(), u64::MAX);
    }

    #[test]
    fn every_value_has_a_bucket_near_it() {
        for ns in (0..1_000_000).step_by(7).chain([u64::from(u32::MAX), 1 << 45]) {
            let near = middle(bucket(ns)) as f64;
            assert!((near - ns as f64).abs() <= ns as f64 * 0.04, "{ns}: {near}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
