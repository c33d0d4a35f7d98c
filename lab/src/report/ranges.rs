//! Figures with their intervals, one below the other: medians of the transports of a case, figures beside their bars, samples
//! around handovers.

use serde_json::Value;

use super::figures::{Axis, Figure, Group, Line, Scale, Shape, WIDE, colour};
use super::summary::{BARS, HANDOVERS, judged, share_of_bar};
use super::{list, text};
use crate::statistics::Interval;

/// Figures beside their bars that are drawn: those nearest to them, and beyond.
const BARS_MAX: usize = 16;

/// A figure, and from where to where it may be: what it is, where that is not told.
fn range_of(told: &Value) -> Option<Interval> {
    let middle = told["figure"].as_f64()?;
    let bound = |field: &str| told[field].as_f64().unwrap_or(middle);
    Some(Interval { low: bound("low"), middle, high: bound("high") })
}

/// Collects ranges by the row and by the line that they are of, both in the order in which they come.
#[derive(Default)]
struct Ranges {
    rows: Vec<String>,
    lines: Vec<(String, Vec<(usize, Interval)>)>,
}

impl Ranges {
    fn add(&mut self, row: String, line: &str, range: Interval) {
        let at = self.rows.iter().position(|it| *it == row).unwrap_or_else(|| {
            self.rows.push(row);
            self.rows.len() - 1
        });
        match self.lines.iter_mut().find(|it| it.0 == line) {
            Some(it) => it.1.push((at, range)),
            None => self.lines.push((line.to_owned(), vec![(at, range)])),
        }
    }

    fn drawn(self, title: String, axis: String, names: &mut Vec<String>) -> Option<Figure> {
        let all = || self.lines.iter().flat_map(|it| &it.1).map(|it| it.1);
        let bounds = all().flat_map(|it| [it.low, it.middle, it.high]);
        // What is 0 lies on the left edge.
        let positive = bounds.filter(|it| 0.0 < *it);
        let (least, most) = positive
            .fold((f64::INFINITY, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
        let scale = if WIDE < most / least { Scale::Log } else { Scale::Linear };
        let lines = self.lines.iter().map(|(name, ranges)| Line {
            name: name.clone(),
            colour: colour(names, name),
            points: ranges.iter().map(|it| (it.1.middle, it.0 as f64)).collect(),
            spans: ranges.iter().map(|it| (it.1.low, it.1.high)).collect(),
            values: ranges.len(),
        });
        let lines: Vec<_> = lines.collect();
        (!lines.is_empty()).then(|| Figure {
            title,
            x: Axis { name: axis, scale },
            y: Axis { name: String::new(), scale: Scale::Linear },
            shape: Shape::Ranges,
            lines,
            rows: self.rows,
            mark: None,
        })
    }
}

/// What is told of figures alone: the samples around handovers, and figures beside their bars.
pub(super) fn groups(report: &Value, names: &mut Vec<String>) -> Vec<Group> {
    let handovers = ["median", "p99"].into_iter().filter_map(|it| around(report, it, names));
    let handovers = Group { title: HANDOVERS.to_owned(), figures: handovers.collect() };
    let bars = Group { title: BARS.to_owned(), figures: bars(report).into_iter().collect() };
    [handovers, bars].into_iter().filter(|it| !it.figures.is_empty()).collect()
}

/// How late samples are around a handover, beside those of each transport in peace.
fn around(report: &Value, quantile: &str, names: &mut Vec<String>) -> Option<Figure> {
    let mut ranges = Ranges::default();
    for it in list(report, "figures") {
        let Some(what) = text(it, "what").strip_suffix(quantile) else { continue };
        let Some(range) = range_of(it) else { continue };
        if let Some(case) = what.strip_suffix(" in peace ") {
            ranges.add(case.to_owned(), &format!("in peace by {}", text(it, "of")), range);
        } else if let Some(case) = what.strip_suffix(" around ") {
            ranges.add(case.to_owned(), "around a handover", range);
        }
    }
    let title = match quantile {
        "median" => "median latency around a handover and in peace",
        _ => "99th percentile of the latency around a handover and in peace",
    };
    ranges.drawn(title.to_owned(), "latency, µs".to_owned(), names)
}

/// The figures nearest to their bars, those beyond first.
fn bars(report: &Value) -> Option<Figure> {
    let shares = judged(report).filter_map(|it| {
        let Interval { low, middle, high } = range_of(it)?;
        let percent = |figure| share_of_bar(it, figure).map(|share| share * 100.0);
        let (a, middle, b) = (percent(low)?, percent(middle)?, percent(high)?);
        Some((it, Interval { low: a.min(b), middle, high: a.max(b) }))
    });
    let mut shares: Vec<_> = shares.collect();
    shares.sort_by(|a, b| b.1.middle.total_cmp(&a.1.middle));
    let title = match shares.len() {
        it if it <= BARS_MAX => "figures beside their bars".to_owned(),
        it => format!("the {BARS_MAX} of {it} figures that are nearest to their bars"),
    };
    let mut ranges = Ranges::default();
    for (it, range) in shares.into_iter().take(BARS_MAX) {
        let what = text(it, "what");
        let size = it["size_bytes"].as_u64().filter(|size| !what.contains(&size.to_string()));
        let size = size.map_or(String::new(), |it| format!(", {it} B"));
        let of = it["of"].as_str().filter(|it| !it.is_empty());
        let of = of.map_or(String::new(), |it| format!(": {it}"));
        ranges.add(format!("{what}{size}{of}"), text(it, "verdict"), range);
    }
    let axis = "share of what the bar allows, %".to_owned();
    let mut figure = ranges.drawn(title, axis, &mut Vec::new())?;
    for line in &mut figure.lines {
        line.colour = colour_of_verdict(&line.name);
    }
    Some(Figure { mark: Some((100.0, "bar")), ..figure })
}

/// Green, orange and brown of the plots' colours, near to those of the verdicts.
fn colour_of_verdict(verdict: &str) -> usize {
    match verdict {
        "met" => 2,
        "not met" => 1,
        _ => 4,
    }
}

/// Median and 99th percentile of each of these series of times, which are of one case.
pub(super) fn quantiles(
    all: &[&Value],
    (what, unit): (&str, &str),
    names: &mut Vec<String>,
) -> Option<Figure> {
    let mut ranges = Ranges::default();
    for series in all {
        for (field, name) in [("median", "median"), ("p99", "99th percentile")] {
            if let Some(range) = range_of(&series[field]) {
                ranges.add(text(series, "of").to_owned(), name, range);
            }
        }
    }
    let title = format!("{what}, median and 99th percentile");
    ranges.drawn(title, format!("{what}, {unit}"), names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(what: &str, of: &str, figures: [f64; 3], at_most: Option<f64>) -> Value {
        let [low, figure, high] = figures;
        json!({ "what": what, "of": of, "figure": figure, "low": low, "high": high, "unit": "µs",
            "at_most": at_most, "verdict": at_most.map(|_| "met") })
    }

    #[test]
    fn samples_around_handovers_stand_beside_those_in_peace() {
        let all = [
            judged("processes-64 in peace median", "shm", [9.0, 10.0, 11.0], None),
            judged("processes-64 around median", "cut to settled", [20.0, 30.0, 40.0], None),
            judged("inside-64 in peace median", "inproc", [1.0, 2.0, 3.0], None),
            judged("processes-64 before median", "set to cut", [1.0, 1.0, 1.0], None),
        ];
        let groups = groups(&json!({ "figures": all }), &mut Vec::new());
        assert_eq!((groups.len(), groups[0].title.as_str()), (1, HANDOVERS));
        let figure = &groups[0].figures[0];
        assert_eq!(figure.rows, ["processes-64", "inside-64"]);
        let lines: Vec<_> = figure.lines.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(lines, ["in peace by shm", "around a handover", "in peace by inproc"]);
        assert_eq!(figure.lines[1].points, [(30.0, 0.0)]);
        assert_eq!(figure.lines[1].spans, [(20.0, 40.0)]);
    }

    #[test]
    fn the_figure_farthest_beyond_its_bar_is_first() {
        let least = json!({ "what": "rate", "of": "", "figure": 10.0, "low": 10.0, "high": 10.0,
            "unit": "k/s", "at_least": 80.0, "verdict": "not met" });
        let all = [
            judged("loan median", "a / b", [1.0, 1.2, 1.3], Some(2.0)),
            least,
            judged("lost", "", [0.0, 0.0, 0.0], Some(0.0)),
        ];
        let groups = groups(&json!({ "figures": all }), &mut Vec::new());
        let figure = &groups[0].figures[0];
        assert_eq!(figure.rows, ["rate", "loan median: a / b"]);
        assert_eq!(figure.lines[0].points, [(800.0, 0.0)]);
        assert_eq!(figure.lines[1].spans, [(50.0, 65.0)]);
        assert_eq!(figure.lines.iter().map(|it| it.colour).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(figure.mark, Some((100.0, "bar")));
    }

    #[test]
    fn without_quantiles_nothing_is_drawn() {
        assert_eq!(quantiles(&[&json!({ "of": "a" })], ("latency", "µs"), &mut Vec::new()), None);
        assert_eq!(groups(&json!({}), &mut Vec::new()), []);
    }
}
