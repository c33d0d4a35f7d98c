use crate::{Size, SizeOrigin, StatedSize};

/// Finds the size class of a publisher's samples from what it really sends.
///
/// The class follows the 90th percentile of recent samples against the policy's line, with
/// hysteresis in both directions, so that a flow at the line keeps its class:
///
/// - The first sample at or above the upper edge (1.25 × the line) among the first
///   [`Self::LEARNED`] makes the flow large at once. If none comes, the largest of these decides.
/// - A small flow becomes large when more than a tenth of its recent samples (a decaying window of
///   about 64) are at or above the upper edge: after at most [`Self::FOUND_LARGE`] such samples in
///   a row.
/// - A large flow becomes small when [`Self::FOUND_SMALL`] samples in a row are below the lower
///   edge (0.8 × the line). The way down is long on purpose: a large sample on a link for small
///   ones costs more than the other way round.
///
/// Observing allocates nothing and takes a few nanoseconds.
#[derive(Clone, Debug)]
pub struct SizeEstimator {
    line_bytes: u64,
    upper_edge_bytes: u64,
    lower_edge_bytes: u64,
    /// What the samples showed; `None` until there are enough.
    class: Option<Size>,
    /// Samples seen, up to [`Self::LEARNED`].
    seen: u32,
    /// The largest of the first [`Self::LEARNED`] samples.
    first_max_bytes: u64,
    /// The share of recent samples at or above the upper edge, of [`SHARE_ONE`].
    large_share: i32,
    /// Samples below the lower edge since the last that was not.
    small_run: u32,
    recent: Recent,
    /// The class before [`Self::relearn`], and the bytes of a typical sample then. It holds while
    /// there is no `class`.
    before: Option<(Size, Option<u64>)>,
}

impl SizeEstimator {
    /// So many samples outrank what was expected, stated or assumed.
    pub const LEARNED: u32 = 8;

    /// A small flow that becomes large is found within so many samples.
    pub const FOUND_LARGE: u32 = 7;

    /// A large flow that becomes small is found within so many samples.
    pub const FOUND_SMALL: u32 = 256;

    /// An estimator for one publisher, under a policy whose line is `line_bytes`.
    pub fn new(line_bytes: u64) -> Self {
        let line_bytes = line_bytes.max(1);
        Self {
            line_bytes,
            upper_edge_bytes: line_bytes.saturating_add(line_bytes / 4),
            lower_edge_bytes: line_bytes - line_bytes / 5,
            class: None,
            seen: 0,
            first_max_bytes: 0,
            large_share: 0,
            small_run: 0,
            recent: Recent::new(),
            before: None,
        }
    }

    /// What is sent from here on is measured anew, as after a long silence: the class stays until the
    /// next samples decide it as the first ones did. Without effect while these are still awaited, so
    /// that a flow with a silence before each sample is measured too.
    pub fn relearn(&mut self) {
        if let Some(size) = self.class {
            let before = Some((size, self.recent.percentile_90()));
            *self = Self { before, ..Self::new(self.line_bytes) };
        }
    }

    /// The class that the samples showed, or `None` until there are enough.
    pub fn class(&self) -> Option<Size> {
        self.class.or_else(|| self.before.map(|(size, _)| size))
    }

    /// From now on this line counts. What was sent lately is judged by it at once.
    pub fn set_line(&mut self, line_bytes: u64) {
        let line_bytes = line_bytes.max(1);
        if line_bytes == self.line_bytes {
            return;
        }
        let class_of = |bytes| if bytes >= line_bytes { Size::Large } else { Size::Small };
        let shown = self.class.and_then(|_| self.recent.percentile_90());
        let (seen, first_max_bytes) = (self.seen, self.first_max_bytes);
        let recent = std::mem::replace(&mut self.recent, Recent::new());
        let class = shown.map(class_of);
        let before = self.before.map(|(size, bytes)| (bytes.map_or(size, class_of), bytes));
        *self = Self { class, seen, first_max_bytes, recent, before, ..Self::new(line_bytes) };
    }

    /// Takes note of one sample that was sent.
    pub fn observe(&mut self, bytes: u64) {
        self.recent.add(bytes);
        let above = bytes >= self.upper_edge_bytes;
        let goal = if above { SHARE_ONE } else { 0 };
        self.large_share += (goal - self.large_share) >> SHARE_SHIFT;
        self.small_run =
            if bytes < self.lower_edge_bytes { self.small_run.saturating_add(1) } else { 0 };
        self.class = match self.class {
            None => self.learn(bytes, above),
            Some(Size::Small) if self.large_share > SHARE_ONE / 10 => Some(Size::Large),
            Some(Size::Large) if self.small_run >= Self::FOUND_SMALL => {
                // The old share would bring the flow back up with fewer samples than stated.
                self.large_share = 0;
                Some(Size::Small)
            }
            unchanged => unchanged,
        };
    }

    /// The bytes of a typical sample of those that were sent lately.
    pub fn typical_bytes(&self) -> Option<u64> {
        self.recent.percentile_90().or_else(|| self.before?.1)
    }

    /// The class by the strongest source there is, and which that was.
    pub fn classify(&self, facts: &SizeFacts<'_>) -> Estimate {
        let class_of =
            |bytes: u64| if bytes >= self.line_bytes { Size::Large } else { Size::Small };
        if let Some(bytes) = facts.fixed_bytes {
            let (size, origin) = (class_of(bytes), SizeOrigin::FixedType);
            return Estimate { size, origin, bytes: Some(bytes) };
        }
        let shown = self.class.map(|size| (size, self.recent.percentile_90()));
        if let Some((size, bytes)) = shown.or(self.before) {
            return Estimate { size, origin: SizeOrigin::Sent, bytes };
        }
        if let Some(bytes) = facts.expected_bytes {
            let (size, origin) = (class_of(bytes), SizeOrigin::Expected);
            return Estimate { size, origin, bytes: Some(bytes) };
        }
        if let Some(stated) = facts.stated
            && let Some(size) = stated.size.or_else(|| stated.expected_bytes.map(class_of))
        {
            return Estimate { size, origin: SizeOrigin::Stated, bytes: stated.expected_bytes };
        }
        Estimate { size: facts.prior, origin: SizeOrigin::Prior, bytes: None }
    }

    fn learn(&mut self, bytes: u64, above: bool) -> Option<Size> {
        self.seen += 1;
        self.first_max_bytes = self.first_max_bytes.max(bytes);
        if above {
            return Some(Size::Large);
        }
        if self.seen < Self::LEARNED {
            return None;
        }
        Some(if self.first_max_bytes >= self.line_bytes { Size::Large } else { Size::Small })
    }
}

/// What is known of a publisher's sizes beside what it sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeFacts<'a> {
    /// The serialised size, where the type has a fixed one.
    pub fixed_bytes: Option<u64>,
    /// The publisher's `expected_size`.
    pub expected_bytes: Option<u64>,
    /// What the policy states for the topic.
    pub stated: Option<&'a StatedSize>,
    /// The prior by type.
    pub prior: Size,
}

/// What [`SizeEstimator::classify`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The class.
    pub size: Size,
    /// How it came to be known.
    pub origin: SizeOrigin,
    /// The bytes of a typical sample, where a number is known.
    pub bytes: Option<u64>,
}

/// A whole, in the fixed point of the share of large samples.
const SHARE_ONE: i32 = 1 << 16;

/// Each sample moves the share by 1/64 of its distance.
const SHARE_SHIFT: u32 = 6;

/// Recent sample sizes: one bucket for each power of two, counts that decay by halves, and the
/// largest size that each bucket holds, so that a flow of one size is told exactly.
#[derive(Clone, Debug)]
struct Recent {
    counts: [u8; BUCKETS],
    max_bytes: [u64; BUCKETS],
    total: u32,
}

/// A size of 2^47 bytes (128 TiB) and more falls into the last bucket.
const BUCKETS: usize = 48;

/// Counts are halved when there are so many, which also keeps each within its byte.
const RECENT_MAX: u32 = 128;

impl Recent {
    fn new() -> Self {
        Self { counts: [0; BUCKETS], max_bytes: [0; BUCKETS], total: 0 }
    }

    fn add(&mut self, bytes: u64) {
        let bucket = (u64::BITS - bytes.leading_zeros()) as usize;
        let bucket = bucket.min(BUCKETS - 1);
        self.counts[bucket] += 1;
        self.max_bytes[bucket] = self.max_bytes[bucket].max(bytes);
        self.total += 1;
        if self.total == RECENT_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.total = 0;
        for (count, max_bytes) in self.counts.iter_mut().zip(&mut self.max_bytes) {
            *count /= 2;
            self.total += u32::from(*count);
            if *count == 0 {
                *max_bytes = 0;
            }
        }
    }

    fn percentile_90(&self) -> Option<u64> {
        let mut above = 0;
        for (count, max_bytes) in self.counts.iter().zip(&self.max_bytes).rev() {
            above += u32::from(*count);
            if above * 10 > self.total {
                return Some(*max_bytes);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Origin;

    const LINE: u64 = 64 * 1024;
    const NOTHING: SizeFacts<'_> =
        SizeFacts { fixed_bytes: None, expected_bytes: None, stated: None, prior: Size::Small };

    #[track_caller]
    fn check(facts: SizeFacts<'_>, sent: &[u64], expect: &str) {
        let mut estimator = SizeEstimator::new(LINE);
        for bytes in sent {
            estimator.observe(*bytes);
        }
        let Estimate { size, origin, bytes } = estimator.classify(&facts);
        let bytes = bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
        assert_eq!(format!("{size}, {bytes} bytes, {origin}"), expect);
    }

    #[test]
    fn another_line_judges_what_was_sent() {
        let mut estimator = SizeEstimator::new(LINE);
        estimator.set_line(1000);
        assert_eq!(estimator.class(), None, "nothing was sent");
        estimator.set_line(LINE);
        (0..20).for_each(|_| estimator.observe(2000));
        let mut check = |line, expect| {
            estimator.set_line(line);
            assert_eq!(estimator.class(), Some(expect), "{line}");
            assert_eq!(estimator.typical_bytes(), Some(2000));
            // The edges have moved with it.
            (0..SizeEstimator::FOUND_SMALL).for_each(|_| estimator.observe(2000));
            assert_eq!(estimator.class(), Some(expect), "{line}");
        };
        check(LINE, Size::Small);
        check(2000, Size::Large);
        check(2001, Size::Small);
        check(1000, Size::Large);
    }

    #[test]
    fn the_strongest_source_counts() {
        let stated = StatedSize {
            topic: "/a".parse().unwrap(),
            size: Some(Size::Large),
            expected_bytes: None,
            origin: Origin { file: "t.xml".into(), line: 1 },
        };
        let by_bytes = StatedSize { size: None, expected_bytes: Some(LINE), ..stated.clone() };
        let facts = SizeFacts { stated: Some(&stated), ..NOTHING };
        check(NOTHING, &[], "small, ? bytes, a prior by type");
        check(SizeFacts { prior: Size::Large, ..NOTHING }, &[], "large, ? bytes, a prior by type");
        check(facts, &[], "large, ? bytes, the policy states it");
        check(
            SizeFacts { stated: Some(&by_bytes), ..NOTHING },
            &[],
            "large, 65536 bytes, the policy states it",
        );
        let facts = SizeFacts { expected_bytes: Some(100), ..facts };
        check(facts, &[], "small, 100 bytes, the publisher's expected_size");
        check(facts, &[900_000], "large, 900000 bytes, what was really sent");
        let facts = SizeFacts { fixed_bytes: Some(8), ..facts };
        check(facts, &[900_000], "small, 8 bytes, the type has a fixed size");
    }

    #[test]
    fn a_few_small_samples_prove_nothing_yet() {
        let facts = SizeFacts { expected_bytes: Some(900_000), ..NOTHING };
        check(facts, &[8; 7], "large, 900000 bytes, the publisher's expected_size");
        check(facts, &[8; 8], "small, 8 bytes, what was really sent");
    }

    #[test]
    fn the_line_itself_is_large() {
        check(NOTHING, &[LINE; 8], "large, 65536 bytes, what was really sent");
        check(NOTHING, &[LINE - 1; 8], "small, 65535 bytes, what was really sent");
        check(NOTHING, &[0; 8], "small, 0 bytes, what was really sent");
        check(NOTHING, &[u64::MAX; 300], "large, 18446744073709551615 bytes, what was really sent");
    }

    #[test]
    fn one_large_sample_in_twenty_is_not_what_a_flow_is() {
        let sent: Vec<u64> = (1..2000).map(|n| if n % 20 == 0 { 1 << 20 } else { 100 }).collect();
        check(NOTHING, &sent, "small, 100 bytes, what was really sent");
    }

    /// What is known after `before`, a silence, and `after`.
    #[track_caller]
    fn check_relearned(before: &[u64], after: &[u64], expect: &str) {
        let mut estimator = SizeEstimator::new(LINE);
        before.iter().for_each(|bytes| estimator.observe(*bytes));
        estimator.relearn();
        after.iter().for_each(|bytes| estimator.observe(*bytes));
        let Estimate { size, origin, bytes } = estimator.classify(&NOTHING);
        let bytes = bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
        assert_eq!(format!("{size}, {bytes} bytes, {origin}"), expect);
        let shown = (origin == SizeOrigin::Sent).then_some(size);
        assert_eq!(estimator.class(), shown);
    }

    #[test]
    fn after_a_silence_a_few_samples_decide_again() {
        let (large, small) = ([900_000; 500], [8; 500]);
        check_relearned(&large, &[], "large, 900000 bytes, what was really sent");
        check_relearned(&large, &[8; 7], "large, 900000 bytes, what was really sent");
        check_relearned(&large, &[8; 8], "small, 8 bytes, what was really sent");
        check_relearned(&large, &[8, 8, 500_000], "large, 500000 bytes, what was really sent");
        check_relearned(&small, &[], "small, 8 bytes, what was really sent");
        check_relearned(&small, &[500_000], "large, 500000 bytes, what was really sent");
        check_relearned(&small, &[LINE; 7], "small, 8 bytes, what was really sent");
        check_relearned(&small, &[LINE; 8], "large, 65536 bytes, what was really sent");
    }

    #[test]
    fn a_silence_before_enough_is_known_forgets_nothing() {
        check_relearned(&[8; 7], &[], "small, ? bytes, a prior by type");
        check_relearned(&[8; 7], &[8], "small, 8 bytes, what was really sent");
        let mut estimator = SizeEstimator::new(LINE);
        estimator.observe(900_000);
        for _ in 0..SizeEstimator::LEARNED {
            estimator.relearn();
            assert_eq!(estimator.class(), Some(Size::Large));
            estimator.observe(8);
        }
        assert_eq!(estimator.class(), Some(Size::Small));
    }

    fn changes(estimator: &mut SizeEstimator, sent: impl Iterator<Item = u64>) -> usize {
        let mut before = estimator.classify(&NOTHING).size;
        let mut changes = 0;
        for bytes in sent {
            estimator.observe(bytes);
            let now = estimator.classify(&NOTHING).size;
            changes += usize::from(now != before);
            before = now;
        }
        changes
    }

    proptest! {
        #[test]
        fn a_flow_around_the_line_changes_at_most_once(
            below in 0..LINE,
            above in LINE..10 * LINE,
            pattern in prop::collection::vec(any::<bool>(), 1..8),
            rounds in 1_usize..300,
        ) {
            let sizes = pattern.iter().map(|large| if *large { above } else { below });
            let sizes: Vec<u64> = [below, above].into_iter().chain(sizes).collect();
            let sent = sizes.iter().copied().cycle().take(rounds * sizes.len());
            prop_assert!(changes(&mut SizeEstimator::new(LINE), sent) <= 1);
        }

        #[test]
        fn noise_inside_the_band_changes_at_most_once(
            sent in prop::collection::vec(LINE * 4 / 5 + 1..LINE * 5 / 4, 1..1000),
        ) {
            prop_assert!(changes(&mut SizeEstimator::new(LINE), sent.into_iter()) <= 1);
        }

        #[test]
        fn a_flow_that_moves_is_found(
            history in prop::collection::vec(0..10 * LINE, 0..600),
            small in 0..LINE * 4 / 5,
            large in LINE * 5 / 4..100 * LINE,
        ) {
            let mut estimator = SizeEstimator::new(LINE);
            for bytes in history {
                estimator.observe(bytes);
            }
            for _ in 0..SizeEstimator::FOUND_SMALL {
                estimator.observe(small);
            }
            prop_assert_eq!(estimator.classify(&NOTHING).size, Size::Small);
            for _ in 0..SizeEstimator::FOUND_LARGE {
                estimator.observe(large);
            }
            prop_assert_eq!(estimator.classify(&NOTHING).size, Size::Large);
        }

        #[test]
        fn after_a_silence_only_what_is_sent_then_decides(
            before in prop::collection::vec(0..10 * LINE, 8..600),
            after in prop::collection::vec(0..10 * LINE, 8..600),
        ) {
            let (mut old, mut new) = (SizeEstimator::new(LINE), SizeEstimator::new(LINE));
            before.into_iter().for_each(|bytes| old.observe(bytes));
            old.relearn();
            for bytes in after {
                old.observe(bytes);
                new.observe(bytes);
            }
            prop_assert_eq!(old.classify(&NOTHING), new.classify(&NOTHING));
            prop_assert_eq!(old.class(), new.class());
        }

        #[test]
        fn a_flow_of_one_size_is_told_exactly(bytes: u64, count in 8_usize..500) {
            let mut estimator = SizeEstimator::new(LINE);
            (0..count).for_each(|_| estimator.observe(bytes));
            prop_assert_eq!(estimator.classify(&NOTHING).bytes, Some(bytes));
        }
    }
}
