//! A report as CSV: one file for each kind of table, RFC 4180.

use std::fmt::Write as _;

use serde_json::Value;

use super::list;

/// The columns of each kind: their names, which are those of an entry's fields, or `name=` and where in an entry it stands.
const ROWS: &str = "case transport size_bytes count lost damaged mean_us median_us p99_us max_us cpu_us_per_sample \
    draw_and_pass_median_us";
const JUDGED: &str = "what of size_bytes figure low high unit at_most at_least verdict";
const MATRIX: &str = "size_bytes reliability transport count lost mean_us median_us p99_us max_us throughput_mb_per_s \
    sender_vm_size_mb=processes/0/vm_size_mb sender_vm_rss_mb=processes/0/vm_rss_mb \
    sender_threads=processes/0/threads receiver_vm_size_mb=processes/1/vm_size_mb \
    receiver_vm_rss_mb=processes/1/vm_rss_mb receiver_threads=processes/1/threads";
const QUANTILES: &str = "case of what unit median=median/figure median_low=median/low median_high=median/high \
    p99=p99/figure p99_low=p99/low p99_high=p99/high";
const TOLD: &str = "what why";

/// The files of `report`: the ends of their names, and what is in them. What is empty has no file.
pub(super) fn files(report: &Value) -> Vec<(String, String)> {
    let list = |name| list(report, name);
    let judged: Vec<Value> = ["ratios", "figures"].into_iter().flat_map(list).cloned().collect();
    let kinds = [
        ("rows", list("rows"), ROWS),
        ("judged", &judged[..], JUDGED),
        ("matrix", list("matrix"), MATRIX),
        ("quantiles", list("series"), QUANTILES),
        ("skipped", list("skipped"), TOLD),
        ("absent", list("absent"), TOLD),
    ];
    let mut files = Vec::new();
    for (name, entries, columns) in kinds {
        if !entries.is_empty() {
            files.push((name.to_owned(), of_entries(entries, columns)));
        }
    }
    if !list("series").is_empty() {
        files.push(("series".to_owned(), of_series(list("series"))));
    }
    for (at, table) in list("tables").iter().enumerate() {
        let lines = [&table["columns"]].into_iter().chain(super::list(table, "rows"));
        let mut text = String::new();
        lines.for_each(|line| {
            let cells = line.as_array().map_or(&[][..], Vec::as_slice);
            record(&mut text, cells.iter().map(cell));
        });
        files.push((format!("table-{}", at + 1), text));
    }
    files
}

/// The cells of a matrix, which are each as the report has them.
pub(crate) fn of_matrix(cells: &[Value]) -> String {
    of_entries(cells, MATRIX)
}

fn of_entries(entries: &[Value], columns: &str) -> String {
    let columns = columns.split(' ').map(|it| it.split_once('=').unwrap_or((it, it)));
    let (names, places): (Vec<_>, Vec<_>) =
        columns.map(|(name, place)| (name.to_owned(), format!("/{place}"))).unzip();
    let mut text = String::new();
    record(&mut text, names);
    for entry in entries {
        record(&mut text, places.iter().map(|it| entry.pointer(it).map_or_else(String::new, cell)));
    }
    text
}

/// One line for each value, so that all series of a run are one table.
fn of_series(all: &[Value]) -> String {
    let mut text = String::new();
    let head = ["case", "of", "what", "unit", "at_unit", "at", "value"];
    record(&mut text, head.map(str::to_owned));
    for series in all {
        let mut same = String::new();
        for name in &head[..5] {
            let _ = write!(same, "{},", quoted(&cell(&series[name])));
        }
        for (turn, value) in list(series, "values").iter().enumerate() {
            let at = series["at"].get(turn).map_or_else(|| turn.to_string(), cell);
            let _ = write!(text, "{same}{},{}\r\n", quoted(&at), quoted(&cell(value)));
        }
    }
    text
}

fn record(text: &mut String, cells: impl IntoIterator<Item = String>) {
    for (at, cell) in cells.into_iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{}", quoted(&cell));
    }
    text.push_str("\r\n");
}

/// Nothing where there is no figure.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// RFC 4180, read by its letter.
    fn parse(text: &str) -> Vec<Vec<String>> {
        let (mut records, mut record, mut cell) = (vec![], vec![], String::new());
        let (mut letters, mut inside) = (text.chars().peekable(), false);
        while let Some(letter) = letters.next() {
            match (letter, inside) {
                ('"', true) if letters.next_if_eq(&'"').is_some() => cell.push('"'),
                ('"', _) => inside = !inside,
                (',', false) => record.push(std::mem::take(&mut cell)),
                ('\r', false) => assert_eq!(letters.peek(), Some(&'\n')),
                ('\n', false) => {
                    record.push(std::mem::take(&mut cell));
                    records.push(std::mem::take(&mut record));
                }
                _ => cell.push(letter),
            }
        }
        assert!(!inside && record.is_empty() && cell.is_empty(), "ends within a record");
        records
    }

    #[test]
    fn what_is_written_is_read_back() {
        let report = json!({
            "ratios": [{ "what": "a, \"b\"\nc", "of": "x / y", "size_bytes": null, "figure": 1.5,
                "verdict": "met" }],
            "series": [
                { "case": "c", "of": "a", "what": "latency", "unit": "µs", "at_unit": "turn",
                    "at": null, "median": { "figure": 1.25, "low": 1.5, "high": 2 }, "values": [1.25, null] },
                { "case": "c", "of": "b", "what": "latency", "unit": "µs", "at_unit": "number",
                    "at": [7], "values": [2] },
            ],
            "tables": [{ "title": "t", "columns": ["transport", "µs"], "rows": [["shm", null]] }],
        });
        let files = files(&report);
        let names: Vec<_> = files.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["judged", "quantiles", "series", "table-1"]);
        let judged = parse(&files[0].1);
        assert_eq!(judged[0].join(" "), JUDGED);
        assert_eq!(judged[1][..4], ["a, \"b\"\nc", "x / y", "", "1.5"]);
        let quantiles = parse(&files[1].1);
        assert_eq!(quantiles[1][4..], ["1.25", "1.5", "2", "", "", ""]);
        let series = parse(&files[2].1);
        assert_eq!(series[1], ["c", "a", "latency", "µs", "turn", "0", "1.25"]);
        assert_eq!(series[2][5..], ["1", ""]);
        assert_eq!(series[3][4..], ["number", "7", "2"]);
        assert_eq!(parse(&files[3].1), [["transport", "µs"], ["shm", ""]]);
    }

    #[test]
    fn an_empty_report_has_no_files() {
        assert_eq!(files(&json!({})), []);
    }
}
