//! What was sent and what came, matched.

use std::collections::HashMap;

use serde_json::Value;

use crate::statistics::{mean, variance};

/// What both ends of a flow have noted. Times are those of the clock that they share, in ns.
#[derive(Clone, Debug, Default)]
pub(super) struct Beat {
    /// What carried.
    transport: String,
    /// Samples that newer ones pushed out of the queue, where that is known.
    displaced: Option<u64>,
    /// When each was due, and when it was published.
    published: Vec<(u64, u64)>,
    /// The number of each that came, from 0, and when.
    received: Vec<(u64, u64)>,
}

impl Beat {
    /// Puts together what the two said. An error says what is no such answer.
    pub(super) fn read(spoken: &Value, heard: &Value) -> Result<Self, String> {
        let pairs = |value: &Value| -> Result<Vec<(u64, u64)>, String> {
            let all = value.as_array().ok_or_else(|| format!("{value} is no list"))?;
            let pair = |it: &Value| {
                let pair = it[0].as_u64().zip(it[1].as_u64());
                pair.ok_or_else(|| format!("{it} is no pair of numbers"))
            };
            all.iter().map(pair).collect()
        };
        Ok(Self {
            transport: heard["transport"].as_str().unwrap_or("unknown").to_owned(),
            displaced: heard["displaced"].as_u64(),
            published: pairs(&spoken["published"])?,
            received: pairs(&heard["received"])?,
        })
    }

    pub(super) fn published(&self) -> u64 {
        self.published.len() as u64
    }

    pub(super) fn received(&self) -> u64 {
        self.received.len() as u64
    }

    /// How many were published before the subscription had its first.
    pub(super) fn early(&self) -> u64 {
        self.received.iter().map(|it| it.0).min().unwrap_or_else(|| self.published())
    }

    /// Those behind the first that came of which nobody knows where they are.
    pub(super) fn missing(&self) -> u64 {
        let expected = self.published() - self.early().min(self.published());
        expected.saturating_sub(self.received() + self.displaced.unwrap_or_default())
    }

    /// How much later than it was due any was published.
    fn late_us(&self) -> f64 {
        let late = self.published.iter().map(|(due, at)| at.saturating_sub(*due));
        late.max().unwrap_or_default() as f64 / 1000.0
    }

    /// From each to the next.
    fn intervals_us(&self) -> Vec<f64> {
        let pairs = self.published.windows(2);
        pairs.map(|it| (it[1].1 - it[0].1) as f64 / 1000.0).collect()
    }

    /// When each of those intervals ended, since the first was due.
    fn seconds(&self) -> Vec<f64> {
        let begin = self.published.first().map_or(0, |it| it.0);
        let ends = self.published.iter().skip(1);
        ends.map(|it| it.1.saturating_sub(begin) as f64 / 1e9).collect()
    }

    /// The numbers of what came.
    fn numbers(&self) -> Vec<u64> {
        paired(&self.published, &self.received).into_iter().map(|it| it.0).collect()
    }

    /// From the publishing to the callback, of what came.
    fn transmit_us(&self) -> Vec<f64> {
        paired(&self.published, &self.received).into_iter().map(|it| it.1).collect()
    }
}

/// What the starts of a flow brought, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Beats(Vec<Beat>);

impl Beats {
    /// What one more start brought.
    pub(super) fn push(&mut self, beat: Beat) {
        self.0.push(beat);
    }

    /// Whether no start was whole.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What carried in the end.
    pub(super) fn transport(&self) -> &str {
        self.0.last().map_or("", |it| &it.transport)
    }

    /// Samples that newer ones pushed out of the queue, where that is known.
    pub(super) fn displaced(&self) -> Option<u64> {
        self.0.iter().map(|it| it.displaced).sum()
    }

    /// Of all starts together.
    pub(super) fn sum(&self, of: fn(&Beat) -> u64) -> u64 {
        self.0.iter().map(of).sum()
    }

    /// How much later than it was due any was published.
    pub(super) fn late_us(&self) -> f64 {
        self.0.iter().map(Beat::late_us).fold(0.0, f64::max)
    }

    /// From each to the next, of each start.
    pub(super) fn intervals_us(&self) -> Vec<Vec<f64>> {
        self.0.iter().map(Beat::intervals_us).collect()
    }

    /// When each of those intervals ended, as if one start came right after the other.
    pub(super) fn seconds(&self) -> Vec<f64> {
        let (mut all, mut begin) = (Vec::new(), 0.0);
        for beat in &self.0 {
            all.extend(beat.seconds().into_iter().map(|it| begin + it));
            begin = all.last().copied().unwrap_or(begin);
        }
        all
    }

    /// The numbers of what came, which go on from start to start.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let (mut all, mut first) = (Vec::new(), 0);
        for beat in &self.0 {
            all.extend(beat.numbers().into_iter().map(|it| first + it));
            first += beat.published();
        }
        all
    }

    /// From the publishing to the callback, of what came, of each start.
    pub(super) fn transmit_us(&self) -> Vec<Vec<f64>> {
        self.0.iter().map(Beat::transmit_us).collect()
    }
}

/// The number of each that came, and how long it took in µs: by its number, whatever is missing between.
fn paired(published: &[(u64, u64)], received: &[(u64, u64)]) -> Vec<(u64, f64)> {
    let sent: HashMap<u64, u64> = (0..).zip(published.iter().map(|it| it.1)).collect();
    let took = |(number, at): &(u64, u64)| {
        let sent = sent.get(number)?;
        Some((*number, (*at as f64 - *sent as f64) / 1000.0))
    };
    received.iter().filter_map(took).collect()
}

/// Mean, standard deviation (of the values themselves, as `numpy.std` has it) and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) std: f64,
    pub(super) max: f64,
}

impl Spread {
    /// Of no values, it is three times `NaN`.
    pub(super) fn of(values: &[f64]) -> Self {
        let max = values.iter().copied().fold(f64::NAN, f64::max);
        Self { mean: mean(values), std: variance(values).sqrt(), max }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn beat(received: &Value, displaced: u64) -> Beat {
        let published = [[1000, 1000], [11_000, 12_000], [21_000, 21_000], [31_000, 31_000]];
        let heard =
            json!({ "transport": "tsuji:shm", "displaced": displaced, "received": received });
        Beat::read(&json!({ "published": published }), &heard).unwrap()
    }

    #[test]
    fn a_late_subscription_is_matched_by_number() {
        let beat = beat(&json!([[1, 12_500], [3, 31_250]]), 0);
        assert_eq!((beat.early(), beat.received(), beat.missing()), (1, 2, 1));
        assert_eq!((beat.numbers(), beat.transmit_us()), (vec![1, 3], vec![0.5, 0.25]));
        assert_eq!((beat.intervals_us(), beat.late_us()), (vec![11.0, 9.0, 10.0], 1.0));
        assert_eq!(beat.seconds(), [11e-6, 20e-6, 30e-6]);
    }

    #[test]
    fn starts_are_told_one_after_the_other() {
        let mut beats = Beats::default();
        beats.push(beat(&json!([[1, 12_500], [3, 31_250]]), 0));
        beats.push(beat(&json!([[0, 2000], [3, 32_000]]), 2));
        assert_eq!(
            [Beat::published, Beat::received, Beat::early].map(|it| beats.sum(it)),
            [8, 4, 1]
        );
        assert_eq!((beats.sum(Beat::missing), beats.displaced()), (1, Some(2)));
        assert_eq!(beats.numbers(), [1, 3, 4, 7]);
        assert_eq!(beats.transmit_us(), [[0.5, 0.25], [1.0, 1.0]]);
        assert_eq!(beats.seconds(), [11e-6, 20e-6, 30e-6, 41e-6, 50e-6, 60e-6]);
    }

    #[test]
    fn what_was_displaced_is_not_missing() {
        let beat = beat(&json!([[0, 2000], [3, 32_000]]), 2);
        assert_eq!((beat.early(), beat.missing()), (0, 0));
    }

    #[test]
    fn nothing_that_came_is_told_as_such() {
        let beat = beat(&json!([]), 0);
        assert_eq!((beat.early(), beat.received(), beat.missing()), (4, 0, 0));
        assert!(Spread::of(&beat.transmit_us()).mean.is_nan());
    }

    #[test]
    fn an_answer_that_is_none_is_said() {
        let error = Beat::read(&json!({ "published": [[1]] }), &json!({})).unwrap_err();
        assert!(error.contains("[1] is no pair"), "{error}");
    }

    #[test]
    fn the_spread_is_that_of_the_article() {
        assert_eq!(Spread::of(&[2.0, 4.0]), Spread { mean: 3.0, std: 1.0, max: 4.0 });
    }
}
