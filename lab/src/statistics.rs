//! Quantiles, the bootstrap over blocks and over starts, and what is said of a bar.

use std::fmt;

/// The value below which the share `q` of `sorted` lies, between the two beside it, in proportion.
/// Nothing is `NaN`.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

/// The same of values in any order, in a time proportional to their number.
pub(crate) fn quantile_of(mut values: Vec<f64>, q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = at.floor() as usize;
    let (_, found, larger) = values.select_nth_unstable_by(below, f64::total_cmp);
    let next = larger.iter().copied().min_by(f64::total_cmp).unwrap_or(*found);
    *found + (next - *found) * (at - below as f64)
}

/// The mean. Of nothing, it is `NaN`.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance of the values themselves, as `numpy.var`.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let middle = mean(values);
    mean(&values.iter().map(|it| (it - middle).powi(2)).collect::<Vec<_>>())
}

/// The same values from the smallest to the largest.
pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// What is compared between two transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    /// The median of the ratios of the blocks' medians.
    Median,
    /// The ratio of the 99th percentiles over all samples of the blocks that were drawn. A block
    /// alone is too short to have a 99th percentile.
    P99,
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Median => "median",
            Self::P99 => "p99",
        })
    }
}

/// The ratio of `ours` to `theirs`, where a block of one stands beside the same block of the other.
/// `None` when there is no pair of blocks with samples on both sides.
pub(crate) fn ratio(
    statistic: Statistic,
    ours: &[Vec<f64>],
    theirs: &[Vec<f64>],
) -> Option<Interval> {
    let pairs = || ours.iter().zip(theirs).filter(|(a, b)| !a.is_empty() && !b.is_empty());
    match statistic {
        Statistic::Median => {
            let median = |block: &Vec<f64>| quantile(&sorted(block.clone()), 0.5);
            let ratios: Vec<f64> = pairs().map(|(a, b)| median(a) / median(b)).collect();
            interval_of_median(&ratios)
        }
        Statistic::P99 => {
            let pairs: Vec<_> = pairs().collect();
            let p99 = |all: Vec<f64>| quantile(&sorted(all), 0.99);
            bootstrap(pairs.len(), |drawn| {
                let ours = drawn.iter().flat_map(|at| pairs[*at].0.iter().copied());
                let theirs = drawn.iter().flat_map(|at| pairs[*at].1.iter().copied());
                p99(ours.collect()) / p99(theirs.collect())
            })
        }
    }
}

/// The median of one value a block, with its interval.
pub(crate) fn interval_of_median(blocks: &[f64]) -> Option<Interval> {
    bootstrap(blocks.len(), |drawn| {
        quantile(&sorted(drawn.iter().map(|at| blocks[*at]).collect()), 0.5)
    })
}

/// The quantile over the values of all starts, with its interval over whole starts: what one start has in common, such as where
/// its threads lie, is another in the next.
///
/// And it is wider than these by [`UNSEEN`] at each end: what a whole run has in common is another in the next run.
///
/// Of one start alone it is over twentieths, one after the other, since what disturbs one value disturbs those beside it
/// too; what another start would bring it does not know.
pub(crate) fn interval_of_quantile(starts: &[&[f64]], q: f64) -> Option<Interval> {
    const TWENTIETHS: usize = 20;
    // Of very many, one in so many says as much, and sooner.
    const MANY: usize = 10_000;
    let all = starts.concat();
    let stride = all.len().div_ceil(MANY).max(1);
    let thinned = starts.iter().filter(|it| !it.is_empty());
    let thinned = thinned.map(|it| it.iter().copied().step_by(stride).collect::<Vec<_>>());
    let thinned: Vec<Vec<f64>> = thinned.collect();
    let clusters: Vec<&[f64]> = match &*thinned {
        [one] => one.chunks(one.len().div_ceil(TWENTIETHS).max(1)).collect(),
        several => several.iter().map(Vec::as_slice).collect(),
    };
    let unseen = if thinned.len() == 1 { 0.0 } else { UNSEEN };
    let Interval { low, high, .. } = over_clusters(&clusters, q)?;
    let (low, high) = (low * (1.0 - unseen), high * (1.0 + unseen));
    Some(Interval { low, middle: quantile_of(all, q), high })
}

/// By how much a time of one run differs from that of another on an idle machine for reasons that no start of either shows, such
/// as the clock rate of the processors: so far apart were runs of one and the same calculation.
const UNSEEN: f64 = 0.02;

/// The quantile over all values of the clusters, with its interval over clusters that are drawn whole.
pub(crate) fn over_clusters<C: AsRef<[f64]>>(clusters: &[C], q: f64) -> Option<Interval> {
    bootstrap(clusters.len(), |drawn| {
        quantile_of(drawn.iter().flat_map(|at| clusters[*at].as_ref()).copied().collect(), q)
    })
}

/// An estimate and the bounds between which 95 of 100 repetitions put it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// The lower bound.
    pub(crate) low: f64,
    /// The estimate from what was measured.
    pub(crate) middle: f64,
    /// The upper bound.
    pub(crate) high: f64,
}

/// What can be told as a figure: an interval where there is one, or a number that is what it is.
pub(crate) trait Figure {
    /// The interval; nothing where nothing was measured.
    fn interval(self) -> Option<Interval>;
}

impl Figure for Option<Interval> {
    fn interval(self) -> Option<Interval> {
        self
    }
}

impl Figure for f64 {
    fn interval(self) -> Option<Interval> {
        Some(Interval::exactly(self))
    }
}

impl Figure for u64 {
    fn interval(self) -> Option<Interval> {
        (self as f64).interval()
    }
}

impl Interval {
    /// One figure that is what it is.
    pub(crate) fn exactly(figure: f64) -> Self {
        Self { low: figure, middle: figure, high: figure }
    }
}

/// Draws as many of `blocks` blocks as there are, with putting back, and takes of what `statistic` says of the draws the
/// percentiles between which 95 of 100 repetitions lie. Few blocks are drawn in every way that there is, many in a thousand that are
/// the same each time.
///
/// The percentiles are not 2.5 and 97.5: of few blocks those are too near to each other, by a third with five. They are the expanded
/// ones of Hesterberg, "What Teachers Should Know About the Bootstrap" (The American Statistician 69, 2015), Φ(−√(n/(n−1))·t), with
/// Student's t of n − 1 degrees of freedom.
pub(crate) fn bootstrap(blocks: usize, statistic: impl Fn(&[usize]) -> f64) -> Option<Interval> {
    if blocks == 0 {
        return None;
    }
    let all: Vec<usize> = (0..blocks).collect();
    let middle = statistic(&all);
    let mut told: Vec<(f64, f64)> = Vec::new();
    let mut tell = |drawn: &[usize], weight: f64| {
        let value = statistic(drawn);
        if value.is_finite() {
            told.push((value, weight));
        }
    };
    if blocks <= EVERY_DRAW_MAX {
        every_draw(blocks, &mut tell);
    } else {
        let mut random = Random(SEED);
        let mut drawn = all;
        for _ in 0..REPETITIONS {
            drawn.iter_mut().for_each(|at| *at = random.below(blocks));
            tell(&drawn, 1.0);
        }
    }
    told.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let beyond = told.iter().map(|it| it.1).sum::<f64>() * tail(blocks);
    let (low, high) = (bound(told.iter(), beyond)?, bound(told.iter().rev(), beyond)?);
    middle.is_finite().then_some(Interval { low, middle, high })
}

/// The first value with more than `beyond` of the weights up to it.
fn bound<'a>(mut told: impl Iterator<Item = &'a (f64, f64)>, mut beyond: f64) -> Option<f64> {
    let found = told.find(|(_, weight)| {
        beyond -= weight;
        beyond < 0.0
    });
    found.map(|it| it.0)
}

/// Tells each way in which `blocks` of `blocks` can be drawn, in order, with its share of all draws.
fn every_draw(blocks: usize, tell: &mut impl FnMut(&[usize], f64)) {
    let factorial = |of: usize| (1..=of).map(|it| it as f64).product::<f64>();
    let ways = (blocks as f64).powi(blocks as i32) / factorial(blocks);
    let mut drawn = vec![0; blocks];
    loop {
        let alike = drawn.chunk_by(|a, b| a == b).map(|it| factorial(it.len())).product::<f64>();
        tell(&drawn, 1.0 / alike / ways);
        // The next one after these in order.
        let Some(at) = drawn.iter().rposition(|it| it + 1 < blocks) else { return };
        let next = drawn[at] + 1;
        drawn[at..].fill(next);
    }
}

/// So many blocks are drawn in every way: 1716 of them with seven.
const EVERY_DRAW_MAX: usize = 7;

/// The share of the draws beyond each bound.
fn tail(blocks: usize) -> f64 {
    /// With 2 blocks, 3 and so on.
    const TAILS: [f64; 19] = [
        0.0, 0.0, 0.000_119, 0.000_954, 0.002_432, 0.004_109, 0.005_738, 0.007_225, 0.008_550,
        0.009_723, 0.010_756, 0.011_672, 0.012_482, 0.013_207, 0.013_857, 0.014_439, 0.014_967,
        0.015_446, 0.015_882,
    ];
    let known = blocks.checked_sub(2).and_then(|at| TAILS.get(at)).copied();
    // Right to 1 % of it from there on.
    known.unwrap_or_else(|| 0.025 - 0.19 / blocks.max(20) as f64)
}

const REPETITIONS: usize = 1000;
const SEED: u64 = 0x7475_6a69_6c61_6200;

/// SplitMix64, which needs no more than a counter.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }
}

/// What a figure has to keep to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

impl Bar {
    /// Met when the whole interval keeps to the bar, not met when none of it does.
    pub(crate) fn judge(self, figure: Interval) -> Verdict {
        let (good, bad) = match self {
            Self::AtMost(bar) => (figure.high <= bar, bar < figure.low),
            Self::AtLeast(bar) => (bar <= figure.low, figure.high < bar),
        };
        match (good, bad) {
            (true, _) => Verdict::Met,
            (_, true) => Verdict::NotMet,
            _ => Verdict::Inconclusive,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bar) => write!(f, "at most {bar}"),
            Self::AtLeast(bar) => write!(f, "at least {bar}"),
        }
    }
}

/// What is said of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The whole interval keeps to it.
    Met,
    /// The whole interval breaks it.
    NotMet,
    /// The interval lies on both sides.
    Inconclusive,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::Inconclusive => "inconclusive",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_quantile(values: &[f64], q: f64, expect: f64) {
        assert_eq!(quantile(&sorted(values.to_vec()), q), quantile_of(values.to_vec(), q));
        let found = quantile(&sorted(values.to_vec()), q);
        assert!((found - expect).abs() < 1e-9, "{values:?} at {q}: {found}, not {expect}");
    }

    #[test]
    fn quantiles_lie_between_values() {
        check_quantile(&[5.0], 0.99, 5.0);
        check_quantile(&[3.0, 1.0, 2.0], 0.5, 2.0);
        check_quantile(&[4.0, 1.0, 2.0, 3.0], 0.5, 2.5);
        let hundred: Vec<f64> = (0..=100).map(f64::from).collect();
        check_quantile(&hundred, 0.99, 99.0);
        check_quantile(&hundred, 0.0, 0.0);
        check_quantile(&hundred, 1.0, 100.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn the_same_blocks_are_one_to_one() {
        let blocks: Vec<Vec<f64>> =
            (0..20).map(|block| (0..50).map(|at| f64::from(at + block)).collect()).collect();
        for statistic in [Statistic::Median, Statistic::P99] {
            assert_eq!(ratio(statistic, &blocks, &blocks), Some(Interval::exactly(1.0)));
        }
    }

    #[test]
    fn a_ratio_is_found_through_noise_that_both_share() {
        let mut random = Random(1);
        let mut noisy = |scale: f64, weather: f64| -> Vec<f64> {
            (0..50).map(|_| scale * weather * (1.0 + random.below(100) as f64 / 1000.0)).collect()
        };
        let weather: Vec<f64> =
            (0..20).map(|block| if block % 3 == 0 { 9.0 } else { 1.0 }).collect();
        let ours: Vec<_> = weather.iter().map(|it| noisy(1.2, *it)).collect();
        let theirs: Vec<_> = weather.iter().map(|it| noisy(1.0, *it)).collect();
        let found = ratio(Statistic::Median, &ours, &theirs).unwrap();
        assert!(1.15 < found.low && found.high < 1.25, "{found:?}");
        assert!(found.low <= found.middle && found.middle <= found.high, "{found:?}");
        assert_eq!(Bar::AtMost(1.3).judge(found), Verdict::Met);
        assert_eq!(Bar::AtMost(1.1).judge(found), Verdict::NotMet);
        assert_eq!(Bar::AtMost(found.middle).judge(found), Verdict::Inconclusive);
        assert_eq!(Bar::AtLeast(1.1).judge(found), Verdict::Met);
        assert_eq!(Bar::AtLeast(1.3).judge(found), Verdict::NotMet);
    }

    #[test]
    fn the_bootstrap_is_the_same_each_time() {
        let blocks = [1.0, 5.0, 2.0, 8.0, 3.0, 9.0, 4.0];
        let once = interval_of_median(&blocks);
        assert_eq!(once, interval_of_median(&blocks));
        let once = once.unwrap();
        assert_eq!(once.middle, 4.0);
        assert!(1.0 <= once.low && once.high <= 9.0 && once.low < once.high, "{once:?}");
    }

    #[test]
    fn blocks_without_samples_are_left_out() {
        let ours = [vec![], vec![2.0], vec![2.0]];
        let theirs = [vec![1.0], vec![], vec![1.0]];
        for statistic in [Statistic::Median, Statistic::P99] {
            assert_eq!(ratio(statistic, &ours, &theirs), Some(Interval::exactly(2.0)));
            assert_eq!(ratio(statistic, &ours[..1], &theirs[..1]), None);
        }
    }

    #[test]
    fn a_quantile_of_neighbours_has_an_interval() {
        assert_eq!(interval_of_quantile(&[], 0.5), None);
        assert_eq!(interval_of_quantile(&[&[]], 0.5), None);
        assert_eq!(interval_of_quantile(&[&[3.0; 50]], 0.99), Some(Interval::exactly(3.0)));
        let weather: Vec<f64> = (0..400).map(|at| f64::from(at / 100)).collect();
        let Interval { low, middle, high } = interval_of_quantile(&[&weather], 0.5).unwrap();
        assert_eq!(middle, 1.5);
        assert!(low <= 1.0 && 2.0 <= high, "{low} {high}");
    }

    /// Values that differ little, around `level`.
    fn start(level: f64) -> Vec<f64> {
        (0..200).map(|at| level * (1.0 + f64::from(at * 7 % 20) / 1000.0)).collect()
    }

    fn of_starts(levels: &[f64], q: f64) -> Interval {
        let starts: Vec<_> = levels.iter().map(|it| start(*it)).collect();
        let starts: Vec<_> = starts.iter().map(Vec::as_slice).collect();
        interval_of_quantile(&starts, q).unwrap()
    }

    #[test]
    fn starts_that_differ_are_both_in_the_interval() {
        for q in [0.5, 0.99] {
            let Interval { low, high, .. } = of_starts(&[3.0, 23.0], q);
            assert!(low < 3.1 && 23.0 <= high, "{q}: {low} {high}");
        }
        let Interval { low, middle, high } = of_starts(&[3.0, 23.0, 3.0, 3.0, 23.0], 0.5);
        assert!(low < 3.1 && middle < 3.1 && 23.0 <= high, "{low} {middle} {high}");
    }

    #[test]
    fn starts_that_are_alike_leave_a_narrow_interval() {
        let Interval { low, middle, high } = of_starts(&[3.0, 3.003, 3.002, 3.001, 3.0], 0.5);
        assert!(2.94 <= low && low <= middle && middle <= high && high < 3.15, "{low} {high}");
    }

    #[test]
    fn every_draw_is_told_once_and_all_are_the_whole() {
        for (blocks, count) in [(1, 1), (2, 3), (3, 10), (5, 126), (7, 1716)] {
            let (mut told, mut whole) = (Vec::new(), 0.0);
            every_draw(blocks, &mut |drawn, weight| {
                assert!(drawn.is_sorted() && drawn.len() == blocks);
                told.push(drawn.to_vec());
                whole += weight;
            });
            told.dedup();
            assert_eq!(told.len(), count);
            assert!((whole - 1.0_f64).abs() < 1e-12, "{blocks}: {whole}");
        }
        let mut of_two = Vec::new();
        every_draw(2, &mut |drawn, weight| of_two.push((drawn.to_vec(), weight)));
        assert_eq!(of_two, [(vec![0, 0], 0.25), (vec![0, 1], 0.5), (vec![1, 1], 0.25)]);
    }

    /// How often the interval of the median of `blocks` values has the true one in it, of values that are as likely above as below.
    fn covered(blocks: usize) -> f64 {
        let mut random = Random(blocks as u64);
        // The sum of twelve is nearly normal.
        let mut normal = || (0..12).map(|_| random.below(1000) as f64).sum::<f64>();
        let runs = 2000;
        let hits = (0..runs).filter(|_| {
            let values: Vec<f64> = (0..blocks).map(|_| normal()).collect();
            let found = bootstrap(blocks, |drawn| {
                mean(&drawn.iter().map(|at| values[*at]).collect::<Vec<_>>())
            });
            let Interval { low, high, .. } = found.unwrap();
            low <= 5994.0 && 5994.0 <= high
        });
        hits.count() as f64 / f64::from(runs)
    }

    #[test]
    fn few_blocks_have_the_truth_in_their_interval_as_often_as_many() {
        for blocks in [5, 7, 10, 20] {
            let covered = covered(blocks);
            assert!((0.91..0.97).contains(&covered), "{blocks}: {covered}");
        }
    }

    #[test]
    fn a_start_that_brought_nothing_is_no_start() {
        let (some, none) = (start(3.0), Vec::new());
        let told = |starts: &[&[f64]]| interval_of_quantile(starts, 0.5);
        assert_eq!(told(&[&some, &none, &some]), told(&[&some, &some]));
    }

    #[test]
    fn a_ratio_of_starts_that_differ_is_told_as_such() {
        let starts = |levels: [f64; 4]| levels.map(start).to_vec();
        let (ours, theirs) = (starts([3.0, 23.0, 3.0, 23.0]), starts([3.0; 4]));
        for statistic in [Statistic::Median, Statistic::P99] {
            let found = ratio(statistic, &ours, &theirs).unwrap();
            assert!(found.low < 1.1 && 7.0 < found.high, "{statistic}: {found:?}");
        }
        let found = ratio(Statistic::Median, &theirs, &theirs).unwrap();
        assert_eq!(found, Interval::exactly(1.0));
    }

    #[test]
    fn equality_keeps_to_a_bar() {
        assert_eq!(Bar::AtMost(1.5).judge(Interval::exactly(1.5)), Verdict::Met);
        assert_eq!(Bar::AtLeast(0.9).judge(Interval::exactly(0.9)), Verdict::Met);
    }
}
