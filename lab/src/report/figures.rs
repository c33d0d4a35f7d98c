//! What of a report can be drawn, as values. This decides what is drawn, and draws nothing.

use serde_json::Value;

use super::{list, ranges, text};
use crate::statistics::sorted;

/// What is drawn of all series of a page, histograms left out, in points of lines: some 7 MB. More lines are drawn with fewer
/// points each, down to [`COLUMNS_MIN`] columns, and the page grows from there on.
const POINTS_MAX: usize = 500_000;
/// Columns of a plot, in each of which the least and the largest value are drawn.
const COLUMNS: usize = 800;
const COLUMNS_MIN: usize = 50;
const BINS: usize = 60;
/// From this ratio of the largest to the least on an axis is logarithmic.
pub(super) const WIDE: f64 = 20.0;
/// Where samples begin to be large for the policy of the paper.
const LARGE_BYTES: f64 = 65_536.0;
/// The smallest and the largest values of a distribution that are each drawn.
const ENDS: usize = 100;

/// Plots that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) figures: Vec<Figure>,
}

/// One plot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) shape: Shape,
    pub(super) lines: Vec<Line>,
    /// Of ranges the names of the rows, from above.
    pub(super) rows: Vec<String>,
    /// An upright line with its name.
    pub(super) mark: Option<(f64, &'static str)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// With the unit.
    pub(super) name: String,
    pub(super) scale: Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    Log,
    /// Logarithmic, with powers of two told as bytes.
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// From point to point.
    Line,
    /// From point to point, and each is drawn.
    Dotted,
    /// Each value holds until the next.
    Steps,
    /// Each a dot with its interval, `x` in the row `y`.
    Ranges,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    /// The same for the same name in a whole report.
    pub(super) colour: usize,
    /// By `x`, finite.
    pub(super) points: Vec<(f64, f64)>,
    /// Of ranges from where to where each point may be.
    pub(super) spans: Vec<(f64, f64)>,
    /// How many values these stand for.
    pub(super) values: usize,
}

impl Figure {
    /// Whether less is drawn than was measured.
    pub(super) fn is_thinned(&self) -> bool {
        self.shape == Shape::Line && self.lines.iter().any(|it| it.points.len() < it.values)
    }
}

/// In how many columns a long series is drawn where all of `reports` are on one page.
pub(super) fn columns<'a>(reports: impl IntoIterator<Item = &'a Value>) -> usize {
    let series = reports.into_iter().flat_map(|it| list(it, "series"));
    let lens: Vec<_> = series.map(|it| list(it, "values").len()).collect();
    // Over time and as a distribution a series has two points a column, if it has so many; its histogram is short.
    let points = |columns: usize| lens.iter().map(|len| len.min(&(2 * columns)) * 2).sum::<usize>();
    let mut all = (COLUMNS_MIN..=COLUMNS).rev().step_by(COLUMNS_MIN);
    all.find(|it| points(*it) <= POINTS_MAX).unwrap_or(COLUMNS_MIN)
}

/// All plots of `report`, which is what `--json` wrote, each series in so many columns.
pub(super) fn groups(report: &Value, columns: usize) -> Vec<Group> {
    let mut names = Vec::new();
    let mut groups = ranges::groups(report, &mut names);
    groups.extend(over_size(report, &mut names));
    groups.extend(of_series(report, columns, &mut names));
    groups
}

/// The number of the colour of that name.
pub(super) fn colour(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|it| it == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// Rows of `latency` that have several sizes of a transport, and the cells of a matrix.
fn over_size(report: &Value, names: &mut Vec<String>) -> Vec<Group> {
    type Read = fn(&Value) -> Option<f64>;
    type Key = fn(&Value) -> &str;
    let latencies: [(&str, &str, Read); 2] = [
        ("median latency", "µs", |it| it["median_us"].as_f64()),
        ("99th percentile of the latency", "µs", |it| it["p99_us"].as_f64()),
    ];
    let cells: [(&str, &str, Read); 4] = [
        ("throughput", "10^6 bytes/s", |it| it["throughput_mb_per_s"].as_f64()),
        ("memory of the sender", "MB", |it| it["processes"][0]["vm_rss_mb"].as_f64()),
        ("memory of the receiver", "MB", |it| it["processes"][1]["vm_rss_mb"].as_f64()),
        ("threads of the sender", "threads", |it| it["processes"][0]["threads"].as_f64()),
    ];
    let whole: Vec<_> = latencies.iter().chain(&cells).copied().collect();
    let mut groups = Vec::new();
    let kinds: [(&str, Key, &[_]); 2] =
        [("rows", without_size, &latencies), ("matrix", |it| text(it, "reliability"), &whole)];
    for (kind, key, wanted) in kinds {
        for case in keys(list(report, kind), key) {
            let cells: Vec<_> = list(report, kind).iter().filter(|it| key(it) == case).collect();
            let transports = keys(cells.iter().copied(), |it| text(it, "transport"));
            let mut figures = Vec::new();
            for (what, unit, read) in wanted {
                let mut lines = Vec::new();
                for transport in &transports {
                    let of = cells.iter().filter(|it| text(it, "transport") == *transport);
                    let points = of.filter_map(|it| Some((it["size_bytes"].as_f64()?, read(it)?)));
                    let mut points: Vec<_> = points.filter(|it| 0.0 < it.0).collect();
                    points.sort_by(|a, b| a.0.total_cmp(&b.0));
                    if 1 < points.len() {
                        let colour = colour(names, transport);
                        let values = points.len();
                        let name = (*transport).to_owned();
                        lines.push(Line { name, colour, points, spans: Vec::new(), values });
                    }
                }
                let positive = lines.iter().flat_map(|it| &it.points).all(|it| 0.0 < it.1);
                let log = positive && *unit != "threads" && *unit != "MB";
                if !lines.is_empty() {
                    figures.push(Figure {
                        title: format!("{what} over size"),
                        x: Axis { name: "size of a sample".to_owned(), scale: Scale::Bytes },
                        y: Axis {
                            name: if *unit == "threads" {
                                (*what).to_owned()
                            } else {
                                format!("{what}, {unit}")
                            },
                            scale: if log { Scale::Log } else { Scale::Linear },
                        },
                        shape: Shape::Dotted,
                        lines,
                        rows: Vec::new(),
                        mark: Some((LARGE_BYTES, "64 KiB")),
                    });
                }
            }
            if !figures.is_empty() {
                groups.push(Group { title: case.replace('_', " "), figures });
            }
        }
    }
    groups
}

/// `loan` of `loan-64`, whose samples have 64 bytes.
fn without_size(row: &Value) -> &str {
    let case = text(row, "case");
    let size = row["size_bytes"].as_u64().unwrap_or_default();
    case.strip_suffix(&format!("-{size}")).unwrap_or(case)
}

/// The keys of `all`, each once, in the order of their first.
fn keys<'a>(
    all: impl IntoIterator<Item = &'a Value>,
    key: impl Fn(&'a Value) -> &'a str,
) -> Vec<&'a str> {
    let mut keys = Vec::new();
    for it in all {
        if !keys.contains(&key(it)) {
            keys.push(key(it));
        }
    }
    keys
}

/// A series as it is drawn: `(where, value)`.
struct Read {
    name: String,
    points: Vec<(f64, f64)>,
}

fn of_series(report: &Value, columns: usize, names: &mut Vec<String>) -> Vec<Group> {
    let all = list(report, "series");
    let mut groups = Vec::new();
    let cases: Vec<String> = all.iter().map(without_transport).collect();
    for (at, case) in cases.iter().enumerate() {
        if cases[..at].contains(case) {
            continue;
        }
        let of_case: Vec<_> =
            all.iter().zip(&cases).filter(|it| it.1 == case).map(|it| it.0).collect();
        let mut kinds: Vec<(&str, &str, &str)> = Vec::new();
        for it in &of_case {
            let kind = (subject(text(it, "what")), text(it, "unit"), text(it, "at_unit"));
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let mut figures = Vec::new();
        for kind in kinds {
            let same = of_case.iter().filter(|it| {
                (subject(text(it, "what")), text(it, "unit"), text(it, "at_unit")) == kind
            });
            let same: Vec<&Value> = same.copied().collect();
            let read: Vec<_> =
                same.iter().map(|it| read(it, kind.0)).filter(|it| !it.points.is_empty()).collect();
            if is_time(kind.1) {
                figures.extend(ranges::quantiles(&same, (kind.0, kind.1), names));
            }
            if !read.is_empty() {
                figures.extend(drawn(&read, kind, columns, names));
            }
        }
        if !figures.is_empty() {
            groups.push(Group { title: case.clone(), figures });
        }
    }
    groups
}

/// `queue-10` of `queue-shm-10`, of `tsuji:shm`: transports that are cases of their own are compared in one plot.
fn without_transport(series: &Value) -> String {
    let (case, of) = (text(series, "case"), text(series, "of"));
    let route = of.rsplit(':').next().unwrap_or_default();
    for name in [of, route] {
        if let Some((before, behind)) = case.split_once(&format!("-{name}"))
            && (behind.is_empty() || behind.starts_with('-'))
        {
            return format!("{before}{behind}");
        }
    }
    case.to_owned()
}

/// What is drawn in one plot: user and system time of a processor stand together.
fn subject(what: &str) -> &str {
    if what.starts_with("cpu ") { "cpu" } else { what }
}

fn read(series: &Value, subject: &str) -> Read {
    let part = text(series, "what").strip_prefix(subject).unwrap_or_default().trim();
    let name = match part {
        "" => text(series, "of").to_owned(),
        part => format!("{}, {part}", text(series, "of")),
    };
    let at = series["at"].as_array();
    let values = list(series, "values").iter().enumerate();
    let mut points: Vec<_> = values
        .filter_map(|(turn, value)| {
            let at = match at {
                Some(at) => at.get(turn)?.as_f64()?,
                None => turn as f64,
            };
            Some((at, value.as_f64()?))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Read { name, points }
}

fn is_time(unit: &str) -> bool {
    matches!(unit, "ns" | "µs" | "ms" | "s")
}

/// Over time, and for times how they are distributed.
fn drawn(
    all: &[Read],
    (what, unit, at_unit): (&str, &str, &str),
    columns: usize,
    names: &mut Vec<String>,
) -> Vec<Figure> {
    let at = match at_unit {
        "s" => "time, s",
        "number" => "number of the sample",
        _ => "turn",
    };
    let axis =
        |name: String, log| Axis { name, scale: if log { Scale::Log } else { Scale::Linear } };
    let values: Vec<Vec<f64>> =
        all.iter().map(|it| sorted(it.points.iter().map(|it| it.1).collect())).collect();
    let least = values.iter().map(|it| it[0]).fold(f64::INFINITY, f64::min);
    let most = values.iter().map(|it| it[it.len() - 1]).fold(f64::NEG_INFINITY, f64::max);
    let is_time = is_time(unit);
    let log = is_time && 0.0 < least && WIDE < most / least;
    let colours: Vec<_> = all.iter().map(|it| colour(names, &it.name)).collect();
    let figure = |title: &str, x, y, shape, points: Vec<Vec<(f64, f64)>>| Figure {
        title: title.to_owned(),
        x,
        y,
        shape,
        lines: points
            .into_iter()
            .enumerate()
            .map(|(at, points)| Line {
                name: all[at].name.clone(),
                colour: colours[at],
                points,
                spans: Vec::new(),
                values: all[at].points.len(),
            })
            .collect(),
        rows: Vec::new(),
        mark: None,
    };
    let named = if what == unit { what.to_owned() } else { format!("{what}, {unit}") };
    let over = figure(
        &format!("{what} over time"),
        axis(at.to_owned(), false),
        axis(named.clone(), log),
        Shape::Line,
        all.iter().map(|it| thin(&it.points, columns)).collect(),
    );
    if !is_time {
        return vec![over];
    }
    let edges = edges(least, most, log);
    let histogram = figure(
        &format!("{what}, histogram"),
        axis(named.clone(), log),
        axis("share of the samples, %".to_owned(), false),
        Shape::Steps,
        values.iter().map(|it| histogram(it, &edges)).collect(),
    );
    let distribution = figure(
        &format!("{what}, cumulative distribution"),
        axis(named, log),
        axis("share of the samples up to there, %".to_owned(), false),
        Shape::Steps,
        values.iter().map(|it| ecdf(it, columns)).collect(),
    );
    vec![over, histogram, distribution]
}

/// The least and the largest of each of `columns` equal stretches, so that no outlier is lost.
fn thin(points: &[(f64, f64)], columns: usize) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    if points.len() <= 2 * columns {
        return points.to_vec();
    }
    let width = (last.0 - first.0) / columns as f64;
    let column = |it: &(f64, f64)| (((it.0 - first.0) / width) as usize).min(columns - 1);
    let mut kept = Vec::with_capacity(2 * columns);
    for column in points.chunk_by(|a, b| column(a) == column(b)) {
        let by_value = |a: &(usize, &(f64, f64)), b: &(usize, &(f64, f64))| a.1.1.total_cmp(&b.1.1);
        let least = column.iter().enumerate().min_by(by_value).map(|it| it.0);
        let most = column.iter().enumerate().max_by(by_value).map(|it| it.0);
        let (Some(least), Some(most)) = (least, most) else { continue };
        kept.push(column[least.min(most)]);
        if least != most {
            kept.push(column[least.max(most)]);
        }
    }
    kept
}

fn edges(least: f64, most: f64, log: bool) -> Vec<f64> {
    // A single value has a bin of its own.
    let (least, most) = match (least < most, log) {
        (true, _) => (least, most),
        (false, _) => (least - least.abs().max(1.0) * 0.05, most + most.abs().max(1.0) * 0.05),
    };
    let at = |share: f64| match log {
        true => (least.ln() + share * (most.ln() - least.ln())).exp(),
        false => least + share * (most - least),
    };
    (0..=BINS).map(|it| at(it as f64 / BINS as f64)).collect()
}

/// The share of each bin, in %, from its lower edge.
fn histogram(sorted: &[f64], edges: &[f64]) -> Vec<(f64, f64)> {
    let inner = &edges[1..edges.len() - 1];
    let below = inner.iter().map(|edge| sorted.partition_point(|it| it < edge));
    let mut before = 0;
    let mut points = Vec::with_capacity(edges.len());
    for (until, edge) in below.chain([sorted.len()]).zip(edges) {
        points.push((*edge, (until - before) as f64 * 100.0 / sorted.len() as f64));
        before = until;
    }
    points.push((edges[edges.len() - 1], 0.0));
    points
}

/// Which share of the values, in %, is not larger. The ends are whole.
fn ecdf(sorted: &[f64], columns: usize) -> Vec<(f64, f64)> {
    let ends = ENDS.min(columns / 4);
    let stride = sorted.len().div_ceil(columns).max(1);
    let share = |rank: usize| (rank + 1) as f64 * 100.0 / sorted.len() as f64;
    let kept =
        |rank: &usize| rank.is_multiple_of(stride) || *rank < ends || sorted.len() <= rank + ends;
    (0..sorted.len()).filter(kept).map(|rank| (sorted[rank], share(rank))).collect()
}

/// What is said of a series in words and figures: count, least and most.
pub(super) fn told(series: &Value) -> (usize, f64, f64) {
    let values = || list(series, "values").iter().filter_map(Value::as_f64);
    (values().count(), values().fold(f64::NAN, f64::min), values().fold(f64::NAN, f64::max))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn series(of: &str, what: &str, unit: &str, values: &Value) -> Value {
        json!({ "case": "c", "of": of, "what": what, "unit": unit, "at_unit": "turn", "at": null,
            "values": values })
    }

    #[test]
    fn transports_of_a_case_share_a_plot() {
        let all = [
            series("a", "latency", "µs", &json!([1, null, 3])),
            series("b", "latency", "µs", &json!([2, 4])),
        ];
        let groups = groups(&json!({ "series": all }), COLUMNS);
        assert_eq!(groups.len(), 1);
        let titles: Vec<_> = groups[0].figures.iter().map(|it| it.title.as_str()).collect();
        let expected =
            ["latency over time", "latency, histogram", "latency, cumulative distribution"];
        assert_eq!(titles, expected);
        let lines = &groups[0].figures[0].lines;
        assert_eq!(lines[0].points, [(0.0, 1.0), (2.0, 3.0)]);
        assert_eq!((lines[1].name.as_str(), lines[1].colour), ("b", 1));
    }

    #[test]
    fn routes_that_are_cases_of_their_own_share_a_plot() {
        let of = |case: &str, of: &str| {
            let mut series = series(of, "transmit", "µs", &json!([1, 2]));
            series["case"] = json!(case);
            series
        };
        let all = [of("queue-shm-10", "tsuji:shm"), of("queue-cyclonedds-10", "tsuji:cyclonedds")];
        let groups = groups(&json!({ "series": all }), COLUMNS);
        assert_eq!((groups.len(), groups[0].title.as_str()), (1, "queue-10"));
        assert_eq!(groups[0].figures[0].lines.len(), 2);
        for (case, route, expect) in [
            ("cyclonedds-publish-64", "tsuji:cyclonedds", "cyclonedds-publish-64"),
            ("jitter-raw:zenoh", "raw:zenoh", "jitter"),
            ("jitter-raw:unix-socket-early", "raw:unix-socket", "jitter-early"),
            ("raw-cyclonedds-plain", "cyclonedds-plain", "raw"),
            ("raw-shmem", "shm", "raw-shmem"),
        ] {
            assert_eq!(without_transport(&of(case, route)), expect);
        }
    }

    #[test]
    fn user_and_system_time_stand_together_over_time_alone() {
        let all = [
            series("a", "cpu user", "%", &json!([1, 2])),
            series("a", "cpu system", "%", &json!([2, 4])),
        ];
        let groups = groups(&json!({ "series": all }), COLUMNS);
        assert_eq!(groups[0].figures.len(), 1);
        assert_eq!(groups[0].figures[0].lines[1].name, "a, system");
    }

    #[test]
    fn nothing_measured_is_not_drawn() {
        assert_eq!(groups(&json!({}), COLUMNS), []);
        let all = [series("a", "latency", "µs", &json!([null]))];
        assert_eq!(groups(&json!({ "series": all }), COLUMNS), []);
    }

    #[test]
    fn one_sample_is_drawn() {
        let all = [series("a", "latency", "µs", &json!([5]))];
        let figures = &groups(&json!({ "series": all }), COLUMNS)[0].figures;
        let whole: f64 = figures[1].lines[0].points.iter().map(|it| it.1).sum();
        assert_eq!(whole, 100.0);
        assert_eq!(figures[2].lines[0].points, [(5.0, 100.0)]);
    }

    #[test]
    fn a_wide_range_is_drawn_by_its_logarithm() {
        let all = [series("a", "latency", "µs", &json!([1, 2, 3, 900]))];
        let figures = &groups(&json!({ "series": all }), COLUMNS)[0].figures;
        assert_eq!(figures[1].x.scale, Scale::Log);
        let all = [series("a", "latency", "µs", &json!([0, 2, 3, 900]))];
        let figures = &groups(&json!({ "series": all }), COLUMNS)[0].figures;
        assert_eq!(figures[1].x.scale, Scale::Linear);
    }

    #[test]
    fn many_long_series_share_what_a_page_may_have() {
        let check = |count: usize, len: usize, expect: usize| {
            let all = vec![series("a", "latency", "µs", &json!(vec![1.0; len])); count];
            let report = json!({ "series": all });
            assert_eq!(columns([&report]), expect, "{count} of {len}");
            let half = json!({ "series": all[..count / 2] });
            assert_eq!(columns([&half, &half]), expect, "{count} of {len}");
        };
        check(0, 0, COLUMNS);
        check(100, 5000, COLUMNS);
        check(1000, 90, COLUMNS);
        check(1000, 2000, 100);
        check(5000, 2000, COLUMNS_MIN);
    }

    #[test]
    fn a_million_samples_are_thinned_and_keep_their_outliers() {
        let mut values = vec![10.0; 1_000_000];
        values[123_456] = 5000.0;
        values[654_321] = 0.5;
        let points: Vec<_> = values.iter().enumerate().map(|(at, it)| (at as f64, *it)).collect();
        let thinned = thin(&points, COLUMNS);
        assert!(thinned.len() <= 2 * COLUMNS, "{}", thinned.len());
        assert!(thinned.contains(&(123_456.0, 5000.0)) && thinned.contains(&(654_321.0, 0.5)));
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0));
        let shares = ecdf(&sorted(values), COLUMNS);
        assert!(shares.len() < 2 * COLUMNS, "{}", shares.len());
        assert_eq!((shares[0].0, shares[shares.len() - 1]), (0.5, (5000.0, 100.0)));
    }

    #[test]
    fn several_sizes_of_a_transport_are_drawn_over_size() {
        let row = |transport, size: u64, us: f64| {
            json!({ "case": format!("loan-{size}"), "transport": transport, "size_bytes": size, "median_us": us,
                "p99_us": null })
        };
        let rows = [row("a", 4096, 2.0), row("a", 64, 1.0), row("b", 64, 1.0)];
        let groups = groups(&json!({ "rows": rows }), COLUMNS);
        assert_eq!((groups[0].title.as_str(), groups[0].figures.len()), ("loan", 1));
        let figure = &groups[0].figures[0];
        assert_eq!(figure.lines.len(), 1);
        assert_eq!(figure.lines[0].points, [(64.0, 1.0), (4096.0, 2.0)]);
        assert_eq!(figure.mark, Some((65_536.0, "64 KiB")));
    }
}
