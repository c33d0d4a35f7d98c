//! Two runs of one experiment side by side: which of their figures agree.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Cell, Document, Judged, Report, Screen, Table};
use crate::statistics::{Bar, Interval};

/// The name of this among the experiments.
pub(crate) const COMPARE: &str = "compare";

/// Compares what two documents say. An error says why they cannot be.
pub(crate) fn compare(
    first: &Document,
    second: &Document,
    screen: &mut Screen<'_>,
) -> Result<Value, String> {
    let (a, b) = (first.experiment(), second.experiment());
    if a != b {
        let (first, second) = (&first.name, &second.name);
        return Err(format!(
            "{first} is of {a}, {second} of {b}; allowed are two runs of one experiment"
        ));
    }
    let [a, b] = [first, second].map(|it| figures(&it.report));
    let both: Vec<_> = a.iter().filter_map(|(name, it)| Some((name, *it, *b.get(name)?))).collect();
    if both.is_empty() {
        return Err("no figure that has an interval is in both; short runs have none".to_owned());
    }
    let mut report = Report::new(COMPARE);
    let differing = both.iter().filter(|(_, a, b)| !agree(*a, *b));
    let rows: Vec<_> = differing.map(|(name, a, b)| row(name, *a, *b)).collect();
    let agreeing = both.len() - rows.len();
    if !rows.is_empty() {
        let columns =
            ["figure", "first", "its interval", "second", "its interval", "second / first"];
        report.table(screen, Table::new("Figures that differ", &columns, rows, ""));
    }
    let only =
        |of: &Figures, other: &Figures| of.keys().filter(|it| !other.contains_key(*it)).count();
    for (file, count) in [(&first.name, only(&a, &b)), (&second.name, only(&b, &a))] {
        if count != 0 {
            report.skipped(screen, file, &format!("{count} figures are in this one alone"));
        }
    }
    for it in [first, second] {
        if let Some(why) = crate::machine::others(&it.report["machine"]) {
            report.skipped(screen, &format!("{} as one of an idle machine", it.name), &why);
        }
    }
    let judged = Judged {
        what: "figures that agree".to_owned(),
        of: format!("{agreeing} of {}", both.len()),
        size_bytes: None,
        figure: Interval::exactly(agreeing as f64 / both.len() as f64 * 100.0),
        unit: "%",
        bar: Some(Bar::AtLeast(AGREEING_MIN_PERCENT)),
    };
    report.judged(screen, judged);
    Ok(report.to_json(&second.report["machine"]))
}

/// So many have to agree: the intervals are of 95 %.
const AGREEING_MIN_PERCENT: f64 = 95.0;

type Figures = BTreeMap<String, Interval>;

/// All figures that have an interval, by what they are: those of the report, and the quantiles of its series.
fn figures(report: &Value) -> Figures {
    let list = |name| super::list(report, name);
    let judged = list("ratios").iter().chain(list("figures")).filter_map(|it| {
        let interval = interval(it).filter(|it| it.low < it.high)?;
        // What stands behind the semicolon was measured, and is another in every run.
        let of = it["of"].as_str().unwrap_or_default().split("; ").next().unwrap_or_default();
        let size = it["size_bytes"].as_u64().map_or(String::new(), |it| format!("{it} B, "));
        let [what, unit] = ["what", "unit"].map(|field| it[field].as_str().unwrap_or_default());
        Some((format!("{what}, {size}{of}, {unit}"), interval))
    });
    let quantiles = list("series").iter().flat_map(|it| {
        let words = ["case", "of", "what", "unit"];
        let name = words.map(|field| it[field].as_str().unwrap_or_default()).join(", ");
        ["median", "p99"].into_iter().filter_map(move |quantile| {
            Some((format!("{name}, {quantile}"), interval(&it[quantile])?))
        })
    });
    judged.chain(quantiles).collect()
}

fn interval(told: &Value) -> Option<Interval> {
    let figure = |field: &str| told[field].as_f64();
    Some(Interval { low: figure("low")?, middle: figure("figure")?, high: figure("high")? })
}

/// Whether the intervals have something in common.
fn agree(a: Interval, b: Interval) -> bool {
    a.low <= b.high && b.low <= a.high
}

fn row(name: &str, a: Interval, b: Interval) -> Vec<Cell> {
    let told = |it: Interval| {
        let text = format!("{}–{}", super::shown(it.low), super::shown(it.high));
        [Cell::Number(it.middle), Cell::Text(text)]
    };
    let name = [Cell::Text(name.to_owned())];
    let ratio = [Cell::Number(b.middle / a.middle)];
    name.into_iter().chain(told(a)).chain(told(b)).chain(ratio).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(experiment: &str, ratio: [f64; 3], median: Option<[f64; 3]>) -> Document {
        let told =
            |[low, figure, high]: [f64; 3]| json!({ "low": low, "figure": figure, "high": high });
        let mut of_loan = told(ratio);
        of_loan["what"] = json!("loan median");
        of_loan["of"] = json!("a / b");
        let mut lost = told([0.0; 3]);
        lost["what"] = json!("lost");
        let report = json!({ "schema": 2, "experiment": experiment, "machine": {},
            "ratios": [of_loan], "figures": [lost],
            "series": [{ "case": "loan", "of": "a", "what": "latency", "unit": "µs",
                "median": median.map(told), "p99": null }] });
        Document { name: format!("{experiment}.json"), report }
    }

    fn compared(a: &Document, b: &Document) -> Result<Value, String> {
        compare(a, b, &mut Screen::new(&mut Vec::new()))
    }

    #[test]
    fn figures_agree_where_their_intervals_meet() {
        let first = document("latency", [1.0, 1.1, 1.2], Some([4.0, 5.0, 6.0]));
        let second = document("latency", [1.2, 1.3, 1.4], Some([4.0, 5.0, 6.0]));
        let told = compared(&first, &second).unwrap();
        assert_eq!(told["figures"][0]["figure"], 100.0, "{told}");
        assert_eq!(told["figures"][0]["of"], "2 of 2");
        let third = document("latency", [1.2, 1.3, 1.4], Some([6.5, 7.0, 7.5]));
        let told = compared(&first, &third).unwrap();
        assert_eq!(
            (&told["figures"][0]["figure"], &told["figures"][0]["verdict"]),
            (&json!(50.0), &json!("not met"))
        );
        assert_eq!(told["tables"][0]["rows"][0][0], "loan, a, latency, µs, median");
        assert_eq!(told["tables"][0]["rows"][0][5], 1.4);
    }

    #[test]
    fn each_size_is_a_figure_of_its_own() {
        let document = |of_small: f64| {
            let ratio = |size: u64, figure: f64, medians: &str| {
                json!({ "what": "reliable median", "of": format!("a / b; {medians}"), "unit": "×",
                    "size_bytes": size, "low": figure - 0.1, "figure": figure, "high": figure + 0.1 })
            };
            let ratios = [ratio(64, of_small, &of_small.to_string()), ratio(4096, 1.0, "5 µs")];
            let report = json!({ "experiment": "matrix", "ratios": ratios });
            Document { name: String::new(), report }
        };
        let told = compared(&document(1.0), &document(2.0)).unwrap();
        assert_eq!(told["figures"][0]["of"], "1 of 2", "{told}");
        assert_eq!(told["tables"][0]["rows"][0][0], "reliable median, 64 B, a / b, ×");
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let one = document("latency", [1.0, 1.1, 1.2], None);
        let error = compared(&one, &document("matrix", [1.0, 1.1, 1.2], None)).unwrap_err();
        assert!(error.contains("latency.json is of latency, matrix.json of matrix"), "{error}");
        let none = document("latency", [1.0; 3], None);
        assert!(compared(&none, &none).unwrap_err().contains("no figure"));
    }

    #[test]
    fn what_one_run_alone_has_is_told() {
        let one = document("latency", [1.0, 1.1, 1.2], Some([4.0, 5.0, 6.0]));
        let other = document("latency", [1.0, 1.1, 1.2], None);
        let told = compared(&one, &other).unwrap();
        assert_eq!(told["skipped"][0]["why"], "1 figures are in this one alone");
    }
}
