//! What was measured one by one, and tables of what follows from it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::rounded;
use crate::statistics::{Interval, interval_of_quantile};

/// Values as they came, none left out.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The case of the experiment.
    pub(crate) case: String,
    /// Of what, such as the transport.
    pub(crate) of: String,
    /// What was measured, such as `latency`.
    pub(crate) what: &'static str,
    /// The unit of the values.
    pub(crate) unit: &'static str,
    /// Where each stands.
    pub(crate) at: At,
    /// The values of each start, one after the other. What is not finite is told as `null`.
    pub(crate) starts: Vec<Vec<f64>>,
}

/// Where the values of a series stand.
#[derive(Clone, Debug)]
pub(crate) enum At {
    /// One after the other, from 0.
    Turn,
    /// By the number of the sample, as its publisher counts from 0.
    Number(Vec<u64>),
    /// In seconds since the case began.
    Seconds(Vec<f64>),
}

impl Series {
    /// How long each sample took, in µs, start after start.
    pub(crate) fn latency<'a>(
        case: impl Into<String>,
        of: impl Into<String>,
        starts_us: impl IntoIterator<Item = &'a Vec<f64>>,
    ) -> Self {
        let starts = starts_us.into_iter().cloned().collect();
        let (case, of) = (case.into(), of.into());
        Self { case, of, what: "latency", unit: "µs", at: At::Turn, starts }
    }

    pub(super) fn to_json(&self) -> Value {
        let (at_unit, at) = match &self.at {
            At::Turn => ("turn", Value::Null),
            At::Number(numbers) => ("number", json!(numbers)),
            At::Seconds(seconds) => ("s", seconds.iter().map(|it| micros(*it)).collect::<Value>()),
        };
        let finite = |start: &Vec<f64>| -> Vec<f64> {
            start.iter().copied().filter(|it| it.is_finite()).collect()
        };
        let finite: Vec<Vec<f64>> = self.starts.iter().map(finite).collect();
        let finite: Vec<&[f64]> = finite.iter().map(Vec::as_slice).collect();
        // What is followed over time is no sample of anything.
        let is_sample = !matches!(self.at, At::Seconds(_));
        let quantile = |q| {
            let interval = interval_of_quantile(&finite, q).filter(|_| is_sample);
            interval.map(|Interval { low, middle, high }| {
                json!({ "figure": rounded(middle), "low": rounded(low), "high": rounded(high) })
            })
        };
        json!({
            "case": self.case,
            "of": self.of,
            "what": self.what,
            "unit": self.unit,
            "median": quantile(0.5),
            "p99": quantile(0.99),
            "at_unit": at_unit,
            "at": at,
            "starts": self.starts.iter().map(Vec::len).collect::<Vec<_>>(),
            "values": self.starts.iter().flatten().map(|it| rounded(*it)).collect::<Value>(),
        })
    }
}

/// Seconds to the microsecond.
fn micros(seconds: f64) -> Option<f64> {
    seconds.is_finite().then(|| (seconds * 1e6).round() / 1e6)
}

/// Rows under one head.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// What it shows.
    pub(crate) title: String,
    /// The names of its columns, with their units.
    pub(crate) columns: Vec<String>,
    /// As many cells a row as there are columns.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// What is to be known of it, such as whose figures stand beside.
    pub(crate) note: Option<String>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Number(f64),
    /// Nothing was measured, or published.
    Nothing,
}

impl Table {
    /// With as many cells in each of `rows` as there are columns.
    pub(crate) fn new(
        title: impl Into<String>,
        columns: &[&str],
        rows: Vec<Vec<Cell>>,
        note: impl Into<String>,
    ) -> Self {
        let columns = columns.iter().map(|it| (*it).to_owned()).collect();
        let note = Some(note.into()).filter(|it| !it.is_empty());
        Self { title: title.into(), columns, rows, note }
    }

    pub(super) fn to_json(&self) -> Value {
        let cell = |it: &Cell| match it {
            Cell::Text(text) => json!(text),
            Cell::Number(number) => json!(rounded(*number)),
            Cell::Nothing => Value::Null,
        };
        let row = |row: &Vec<Cell>| row.iter().map(cell).collect::<Value>();
        json!({
            "title": self.title,
            "columns": self.columns,
            "rows": self.rows.iter().map(row).collect::<Value>(),
            "note": self.note,
        })
    }

    /// As it is read on a terminal.
    pub(super) fn lines(&self) -> Vec<String> {
        let shown = |it: &Cell| match it {
            Cell::Text(text) => text.clone(),
            Cell::Number(number) if number.fract() == 0.0 => format!("{number:.0}"),
            Cell::Number(number) => super::shown(*number),
            Cell::Nothing => "–".to_owned(),
        };
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
        let width = |at: usize| {
            let cells = rows.iter().filter_map(|row| row.get(at)).chain(self.columns.get(at));
            cells.map(|it| it.chars().count()).max().unwrap_or_default()
        };
        let is_text =
            |at: usize| self.rows.iter().all(|row| !matches!(row.get(at), Some(Cell::Number(_))));
        let line = |cells: &Vec<String>| {
            let mut line = String::new();
            for (at, cell) in cells.iter().enumerate() {
                let width = width(at);
                // Writing to text cannot fail.
                let _ = match is_text(at) {
                    true => write!(line, "{cell:width$}  "),
                    false => write!(line, "{cell:>width$}  "),
                };
            }
            line.trim_end().to_owned()
        };
        let mut lines = vec![self.title.clone(), line(&self.columns)];
        lines.extend(rows.iter().map(line));
        lines.extend(self.note.clone());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_says_where_its_values_stand() {
        let series = |at| Series {
            case: "c".to_owned(),
            of: "tsuji:shm".to_owned(),
            what: "latency",
            unit: "µs",
            at,
            starts: vec![vec![1.0004, f64::NAN], vec![1.0]],
        };
        let told = series(At::Turn).to_json();
        assert_eq!((&told["at"], &told["values"]), (&Value::Null, &json!([1.0, null, 1.0])));
        assert_eq!(told["starts"], json!([2, 1]));
        assert_eq!(told["median"], json!({ "figure": 1.0, "low": 0.98, "high": 1.02 }));
        let told = series(At::Number(vec![3, 5])).to_json();
        assert_eq!((&told["at_unit"], &told["at"]), (&json!("number"), &json!([3, 5])));
        let told = series(At::Seconds(vec![0.000_001_4, 2.0])).to_json();
        assert_eq!((&told["at_unit"], &told["at"]), (&json!("s"), &json!([0.000_001, 2.0])));
        assert_eq!(told["p99"], Value::Null);
    }

    #[test]
    fn a_table_stands_in_columns() {
        let table = Table {
            title: "Pictures".to_owned(),
            columns: vec!["transport".to_owned(), "mean µs".to_owned()],
            rows: vec![
                vec![Cell::Text("shm".to_owned()), Cell::Number(9.25)],
                vec![Cell::Text("cyclonedds".to_owned()), Cell::Nothing],
            ],
            note: Some("of 2019".to_owned()),
        };
        let lines = table.lines();
        let expected = [
            "Pictures",
            "transport   mean µs",
            "shm            9.25",
            "cyclonedds        –",
            "of 2019",
        ];
        assert_eq!(lines, expected);
        assert_eq!(table.to_json()["rows"], json!([["shm", 9.25], ["cyclonedds", null]]));
    }
}
