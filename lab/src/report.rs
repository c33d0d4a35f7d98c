//! What was measured, as rows, verdicts, tables and JSON.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::crew::Block;
use crate::statistics::{Bar, Interval, Verdict, mean, quantile, sorted};

mod compare;
mod csv;
mod figures;
mod outputs;
mod page;
mod ranges;
mod series;
mod summary;
mod svg;

pub(crate) use compare::{COMPARE, compare};
pub(crate) use csv::of_matrix as matrix_csv;
pub(crate) use outputs::{Document, Outputs, check_writable, is_folder};
pub(crate) use series::{At, Cell, Series, Table};

/// The version of what is written as JSON: another one where a reader of this would misunderstand it.
const SCHEMA: u32 = 2;
/// That of the words before, which is still read.
const SCHEMA_OLD: u32 = 1;

/// All of a run.
#[derive(Debug)]
pub(crate) struct Report {
    /// Which experiment it was.
    experiment: &'static str,
    rows: Vec<Row>,
    judged: Vec<Judged>,
    skipped: Vec<(String, String)>,
    /// What is not on this machine, which is no failure.
    absent: Vec<(String, String)>,
    matrix: Vec<Value>,
    series: Vec<Series>,
    tables: Vec<Table>,
    /// Samples that did not come once and in order where no row counts them.
    astray: u64,
}

/// One transport in one case.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The case.
    pub(crate) case: String,
    /// What carried.
    pub(crate) transport: String,
    /// Bytes of a sample.
    pub(crate) size_bytes: usize,
    /// Samples that should have been sent.
    pub(crate) count: u64,
    /// Samples that did not arrive as they were sent.
    pub(crate) lost: u64,
    /// Those of them that arrived damaged.
    pub(crate) damaged: u64,
    /// Mean, median, 99th percentile and most of the time from `publish` to the callback.
    pub(crate) latency_us: [f64; 4],
    /// Median of the time from the begin of the drawing to the callback.
    pub(crate) draw_and_pass_us: f64,
    /// Processor time of both sides for one sample.
    pub(crate) cpu_us: f64,
}

impl Row {
    /// The row of all blocks of a transport.
    pub(crate) fn of(case: &str, transport: &str, size_bytes: usize, blocks: &[Block]) -> Self {
        let all = |times: fn(&Block) -> &Vec<f64>| {
            sorted(blocks.iter().flat_map(|it| times(it).iter().copied()).collect())
        };
        let latency = all(|it| &it.latency_us);
        let count = blocks.iter().map(|it| it.count).sum();
        Self {
            case: case.to_owned(),
            transport: transport.to_owned(),
            size_bytes,
            count,
            lost: blocks.iter().map(|it| it.lost).sum(),
            damaged: blocks.iter().map(|it| it.damaged).sum(),
            latency_us: [
                mean(&latency),
                quantile(&latency, 0.5),
                quantile(&latency, 0.99),
                quantile(&latency, 1.0),
            ],
            draw_and_pass_us: quantile(&all(|it| &it.whole_us), 0.5),
            cpu_us: blocks.iter().map(|it| it.cpu_us).sum::<f64>() / count as f64,
        }
    }

    fn to_json(&self) -> Value {
        let [mean, median, p99, max] = self.latency_us.map(rounded);
        json!({
            "case": self.case,
            "transport": self.transport,
            "size_bytes": self.size_bytes,
            "count": self.count,
            "lost": self.lost,
            "damaged": self.damaged,
            "mean_us": mean,
            "median_us": median,
            "p99_us": p99,
            "max_us": max,
            "cpu_us_per_sample": rounded(self.cpu_us),
            "draw_and_pass_median_us": rounded(self.draw_and_pass_us),
        })
    }

    /// The words above the rows of a table.
    pub(crate) const HEAD: &str = "case                     transport                   bytes   count  \
        lost   mean µs median µs    p99 µs    max µs  CPU/sample µs  draw+pass µs";

    /// One line of a table.
    pub(crate) fn line(&self) -> String {
        let [mean, median, p99, max] = self.latency_us;
        format!(
            "{:24} {:22} {:>10} {:>7} {:>5} {mean:>9.1} {median:>9.1} {p99:>9.1} {max:>9.1} \
             {:>14.2} {:>13.1}",
            self.case,
            self.transport,
            self.size_bytes,
            self.count,
            self.lost,
            self.cpu_us,
            self.draw_and_pass_us,
        )
    }
}

/// A figure beside its bar, or a figure that has none.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    /// What it is, such as `loan median`.
    pub(crate) what: String,
    /// Of what and against what, such as `tsuji:shm / raw:iceoryx2-loan`.
    pub(crate) of: String,
    /// Bytes of a sample, where that matters.
    pub(crate) size_bytes: Option<usize>,
    /// The figure.
    pub(crate) figure: Interval,
    /// Its unit; `×` for a ratio.
    pub(crate) unit: &'static str,
    /// What it has to keep to.
    pub(crate) bar: Option<Bar>,
}

impl Judged {
    /// What is said of the bar.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.bar.map(|it| it.judge(self.figure))
    }

    fn to_json(&self) -> Value {
        json!({
            "what": self.what,
            "of": self.of,
            "size_bytes": self.size_bytes,
            "figure": rounded(self.figure.middle),
            "low": rounded(self.figure.low),
            "high": rounded(self.figure.high),
            "unit": self.unit,
            "at_most": match self.bar { Some(Bar::AtMost(bar)) => Some(bar), _ => None },
            "at_least": match self.bar { Some(Bar::AtLeast(bar)) => Some(bar), _ => None },
            "verdict": self.verdict().map(|it| it.to_string()),
        })
    }

    /// One line of a table.
    pub(crate) fn line(&self) -> String {
        let Interval { low, middle, high } = self.figure;
        let size = self.size_bytes.map_or(String::new(), |it| it.to_string());
        let mut line = format!("{:36} {size:>8} {:>10} {:3}", self.what, shown(middle), self.unit);
        let interval = format!("[{}, {}]", shown(low), shown(high));
        let interval = if low == high { String::new() } else { interval };
        let _ = write!(line, " {interval:22}");
        if let (Some(bar), Some(verdict)) = (self.bar, self.verdict()) {
            let _ = write!(line, " {:15} {verdict:13}", bar.to_string());
        } else {
            let _ = write!(line, " {:29}", "");
        }
        let _ = write!(line, " {}", self.of);
        line.trim_end().to_owned()
    }
}

/// As many digits as say something.
fn shown(figure: f64) -> String {
    match figure.abs() {
        it if 1000.0 <= it => format!("{figure:.0}"),
        it if 100.0 <= it || figure == 0.0 => format!("{figure:.0}"),
        it if 10.0 <= it => format!("{figure:.1}"),
        it if 0.1 <= it => format!("{figure:.2}"),
        // A ratio may be small: two significant digits.
        it => format!("{figure:.*}", 1 + decimals_before(it)),
    }
}

/// How many places behind the point `figure`, less than 1 and more than 0, has up to its first digit that is not zero.
fn decimals_before(figure: f64) -> usize {
    (-figure.log10()).ceil().clamp(1.0, DECIMALS_MAX) as usize
}

const DECIMALS_MAX: f64 = 12.0;

/// To the nanosecond, which is less than the clock knows; what is less than 1, such as a ratio, to four significant digits.
fn rounded(figure: f64) -> Option<f64> {
    let is_small = 0.0 < figure.abs() && figure.abs() < 1.0;
    let decimals = if is_small { 3 + decimals_before(figure.abs()) } else { 3 };
    let places = 10_f64.powi(decimals as i32);
    figure.is_finite().then(|| (figure * places).round() / places)
}

impl Report {
    /// Of an experiment that begins.
    pub(crate) fn new(experiment: &'static str) -> Self {
        Self {
            experiment,
            rows: Vec::new(),
            judged: Vec::new(),
            skipped: Vec::new(),
            absent: Vec::new(),
            matrix: Vec::new(),
            series: Vec::new(),
            tables: Vec::new(),
            astray: 0,
        }
    }

    /// Keeps and prints a row.
    pub(crate) fn row(&mut self, screen: &mut Screen<'_>, row: Row) {
        if self.rows.is_empty() {
            screen.line(Row::HEAD);
        }
        screen.line(&row.line());
        self.rows.push(row);
    }

    /// The rows so far.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Keeps a figure, and prints it.
    pub(crate) fn judged(&mut self, screen: &mut Screen<'_>, judged: Judged) {
        screen.line(&format!("  {}", judged.line()));
        self.judged.push(judged);
    }

    /// Keeps and says why something was not measured.
    pub(crate) fn skipped(&mut self, screen: &mut Screen<'_>, what: &str, why: &str) {
        screen.line(&format!("{what}: skipped: {why}"));
        self.skipped.push((what.to_owned(), why.to_owned()));
    }

    /// Keeps and says why something is not here to be measured. What is missing is said once in all experiments of a run,
    /// however many cases lack it.
    pub(crate) fn absent(&mut self, screen: &mut Screen<'_>, what: &str, why: &str) {
        static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let is_new = TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(why.to_owned());
        if is_new {
            screen.line(&format!("{what}: {why}"));
        }
        self.absent.push((what.to_owned(), why.to_owned()));
    }

    /// Keeps the cells of a matrix.
    pub(crate) fn matrix(&mut self, cells: Vec<Value>) {
        self.matrix = cells;
    }

    /// Keeps what was measured one by one.
    pub(crate) fn series(&mut self, series: Series) {
        self.series.push(series);
    }

    /// Keeps and prints a table.
    pub(crate) fn table(&mut self, screen: &mut Screen<'_>, table: Table) {
        table.lines().iter().for_each(|line| screen.line(line));
        self.tables.push(table);
    }

    /// Counts samples that were lost, came twice, out of order or damaged, and stand in no row.
    pub(crate) fn astray(&mut self, samples: u64) {
        self.astray += samples;
    }

    /// Whether everything was measured and nothing was lost.
    pub(crate) fn is_whole(&self) -> bool {
        self.skipped.is_empty() && self.lost() == 0
    }

    /// Samples that did not come once, in order and as they were sent.
    fn lost(&self) -> u64 {
        self.rows.iter().map(|it| it.lost).sum::<u64>() + self.astray
    }

    /// All of it, as `docs/lab-report.md` describes it.
    pub(crate) fn to_json(&self, machine: &Value) -> Value {
        let (ratios, figures): (Vec<_>, Vec<_>) = self.judged.iter().partition(|it| it.unit == "×");
        let told = |all: &[(String, String)]| -> Vec<Value> {
            all.iter().map(|(what, why)| json!({ "what": what, "why": why })).collect()
        };
        json!({
            "schema": SCHEMA,
            "experiment": self.experiment,
            "machine": machine,
            "rows": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            "ratios": ratios.into_iter().map(Judged::to_json).collect::<Vec<_>>(),
            "figures": figures.into_iter().map(Judged::to_json).collect::<Vec<_>>(),
            "matrix": self.matrix,
            "series": self.series.iter().map(Series::to_json).collect::<Vec<_>>(),
            "tables": self.tables.iter().map(Table::to_json).collect::<Vec<_>>(),
            "skipped": told(&self.skipped),
            "absent": told(&self.absent),
        })
    }
}

/// The last lines of a run that measured `documents`: questions, figures and verdicts. Of a run that lost samples which stand
/// in no row `report` knows how many.
pub(crate) fn summary(documents: &[Document], report: Option<&Report>, screen: &mut Screen<'_>) {
    screen.line("");
    let lines = summary::Summary::of(documents).lines(report.map_or(0, Report::lost));
    lines.iter().for_each(|line| screen.line(line));
}

/// The entries of that kind; none where there is no list.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// What stands there; `?` where it is no text.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("?")
}

/// Where the user reads: lines, and on a terminal a line of progress below them.
pub(crate) struct Screen<'a> {
    out: &'a mut dyn Write,
    has_progress: bool,
    is_written: bool,
}

impl<'a> Screen<'a> {
    /// Lines go to `out`, progress to the standard error output if that is a terminal.
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, has_progress: io::stderr().is_terminal(), is_written: false }
    }

    /// Prints a line above the progress.
    pub(crate) fn line(&mut self, text: &str) {
        self.clear();
        // A reader that has gone does not end a measurement.
        let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }

    /// Replaces the line of progress.
    pub(crate) fn progress(&mut self, text: &str) {
        if self.has_progress {
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
            self.is_written = true;
        }
    }

    /// Removes the line of progress.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_written) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_sums_up_its_blocks() {
        let block = |times: &[f64], lost| Block {
            latency_us: times.to_vec(),
            whole_us: times.iter().map(|it| it * 2.0).collect(),
            count: times.len() as u64 + lost,
            lost,
            cpu_us: 10.0,
            ..Block::default()
        };
        let row = Row::of("c", "raw:x", 64, &[block(&[1.0, 3.0], 0), block(&[2.0], 1)]);
        assert_eq!((row.count, row.lost), (4, 1));
        assert_eq!(row.latency_us, [2.0, 2.0, 2.98, 3.0]);
        assert_eq!((row.draw_and_pass_us, row.cpu_us), (4.0, 5.0));
        assert_eq!(row.to_json()["p99_us"], 2.98);
    }

    #[test]
    fn nothing_measured_is_null_and_not_a_number_that_is_none() {
        let row = Row::of("c", "raw:x", 64, &[]);
        assert_eq!(row.to_json()["median_us"], Value::Null);
    }

    #[test]
    fn small_figures_keep_their_digits() {
        let all = [1234.4, 123.4, 12.34, 1.234, 0.1234, 0.012_34, 0.001_234, 0.1, 0.01, 0.0];
        let said = ["1234", "123", "12.3", "1.23", "0.12", "0.012", "0.0012", "0.10", "0.010", "0"];
        assert_eq!(all.map(shown), said);
        assert_eq!(shown(-0.012_34), "-0.012");
        assert_eq!(rounded(0.001_234_56), Some(0.001_235));
        assert_eq!(rounded(12.345_67), Some(12.346));
        assert_eq!(rounded(f64::NAN), None);
    }

    #[test]
    fn a_verdict_is_said_with_its_bar() {
        let judged = Judged {
            what: "loan median".to_owned(),
            of: "a / b".to_owned(),
            size_bytes: Some(64),
            figure: Interval { low: 1.0, middle: 1.1, high: 1.2 },
            unit: "×",
            bar: Some(Bar::AtMost(1.3)),
        };
        let line = judged.line();
        assert!(line.contains("[1.00, 1.20]") && line.contains("at most 1.3"), "{line}");
        assert!(line.contains(" met ") && line.ends_with("a / b"), "{line}");
        assert_eq!(judged.to_json()["verdict"], "met");
    }
}
