//! Quantiles, the bootstrap over blocks and over starts, and what is said of a bar.

use std::fmt;

/// The value below which the share `q` of `sorted` lies, between two neighbours in proportion.
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

/// What is compared between two carriers.
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
    let interval = over_clusters(&clusters, q);
    interval.map(|it| Interval { middle: quantile_of(all, q), ..it })
}

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

impl Interval {
    /// One figure that is what it is.
    pub(crate) fn exactly(figure: f64) -> Self {
        Self { low: figure, middle: figure, high: figure }
    }
}

/// Draws as many of `blocks` blocks as there are, with putting back, many times over, and takes the
/// percentiles 2.5 and 97.5 of what `statistic` says of each draw. The draws are the same each time.
pub(crate) fn bootstrap(blocks: usize, statistic: impl Fn(&[usize]) -> f64) -> Option<Interval> {
    if blocks == 0 {
        return None;
    }
    let all: Vec<usize> = (0..blocks).collect();
    let middle = statistic(&all);
    let mut random = Random(SEED);
    let mut drawn = all;
    let repeated: Vec<f64> = (0..REPETITIONS)
        .map(|_| {
            drawn.iter_mut().for_each(|at| *at = random.below(blocks));
            statistic(&drawn)
        })
        .filter(|it| it.is_finite())
        .collect();
    let repeated = sorted(repeated);
    let (low, high) = (quantile(&repeated, 0.025), quantile(&repeated, 0.975));
    middle.is_finite().then_some(Interval { low, middle, high })
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
    fn quantiles_lie_between_neighbours() {
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
        assert!(3.0 <= low && low <= middle && middle <= high && high < 3.1, "{low} {high}");
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
