//! Where a report goes besides the screen, and reports that are read again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{SCHEMA, SCHEMA_OLD, csv, figures, page, svg};
use crate::arguments::Options;
use crate::renamed::renew_report;

/// A larger file is refused, before it takes several times as much memory.
const BYTES_MAX: u64 = 1 << 30;

/// What one run measured, as its JSON says it.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Where it came from, for readers.
    pub(super) name: String,
    pub(super) report: Value,
}

impl Document {
    /// Of a run that has ended just now.
    pub(crate) fn new(report: Value) -> Self {
        Self { name: String::new(), report }
    }

    /// Of an experiment that brought nothing, and why.
    pub(crate) fn unmeasured(experiment: &str, why: &str) -> Self {
        let skipped = [json!({ "what": experiment, "why": why })];
        Self::new(json!({ "schema": SCHEMA, "experiment": experiment, "skipped": skipped }))
    }

    /// Writes what is read again.
    pub(crate) fn write_json(&self, path: &Path) -> Result<(), String> {
        fs::write(path, format!("{}\n", self.report)).map_err(failed("write", path))
    }

    /// Reads what `--json` wrote. An error says which file, what is wrong and what is allowed.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let failed = |error: io::Error| format!("read {name}: {error}");
        let bytes = fs::metadata(path).map_err(failed)?.len();
        if BYTES_MAX < bytes {
            return Err(format!(
                "{name}: {bytes} bytes are too many; at most {BYTES_MAX} are read"
            ));
        }
        Self::of_text(name.clone(), &fs::read(path).map_err(failed)?)
    }

    fn of_text(name: String, text: &[u8]) -> Result<Self, String> {
        let mut report: Value =
            serde_json::from_slice(text).map_err(|error| format!("{name}: not JSON: {error}"))?;
        if !report["schema"].is_number() || !report["experiment"].is_string() {
            return Err(format!(
                "{name}: no report of the laboratory, as it has no `schema` and `experiment`; allowed is what \
                 `tsuji lab` writes with --json"
            ));
        }
        if report["schema"] == SCHEMA_OLD {
            renew_report(&mut report);
            report["schema"] = SCHEMA.into();
        }
        if report["schema"] != SCHEMA {
            let found = &report["schema"];
            return Err(format!("{name}: schema {found}; known are {SCHEMA_OLD} and {SCHEMA}"));
        }
        Ok(Self { name, report })
    }

    pub(super) fn experiment(&self) -> &str {
        self.report["experiment"].as_str().unwrap_or("report")
    }
}

/// What is to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outputs {
    /// One page for all reports.
    html: Option<PathBuf>,
    /// A folder for the plots.
    svg: Option<PathBuf>,
    /// A folder for the tables and series.
    csv: Option<PathBuf>,
}

impl Outputs {
    /// What was asked of `experiment`; the cells of a matrix may go to a file, which it writes itself.
    pub(crate) fn new(options: &Options, experiment: &str) -> Self {
        let csv = options.csv.clone().filter(|it| experiment != "matrix" || is_folder(it));
        Self { html: options.html.clone(), svg: options.svg.clone(), csv }
    }

    /// The same, and a page beside the first of `files` if nothing else was asked for.
    pub(crate) fn or_page(mut self, files: &[PathBuf]) -> Self {
        if self == Self::default() {
            self.html = files.first().map(|it| it.with_extension("html"));
        }
        self
    }

    /// Whether all of it can be written, as far as is known before anything is measured.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.folders()?;
        self.html.as_deref().map_or(Ok(()), check_writable)
    }

    fn folders(&self) -> Result<(), String> {
        let mut folders = self.svg.iter().chain(&self.csv);
        folders.try_for_each(|it| fs::create_dir_all(it).map_err(failed("create the folder", it)))
    }

    /// Writes it. The answer is what was written.
    pub(crate) fn write(&self, documents: &[Document]) -> Result<Vec<PathBuf>, String> {
        self.folders()?;
        let mut written = Vec::new();
        let mut write = |path: PathBuf, text: String| {
            fs::write(&path, text).map_err(failed("write", &path))?;
            written.push(path);
            Ok::<_, String>(())
        };
        if let Some(path) = &self.html {
            write(path.clone(), page::page(documents))?;
        }
        for (document, stem) in documents.iter().zip(stems(documents)) {
            if let Some(folder) = &self.csv {
                for (name, text) in csv::files(&document.report) {
                    write(folder.join(format!("{stem}-{name}.csv")), text)?;
                }
            }
            if let Some(folder) = &self.svg {
                let columns = figures::columns([&document.report]);
                let groups = figures::groups(&document.report, columns);
                let all = groups.iter().flat_map(|it| it.figures.iter().map(move |fig| (it, fig)));
                for (at, (group, figure)) in all.enumerate() {
                    let name = word(&format!("{} {}", group.title, figure.title));
                    let path = folder.join(format!("{stem}-{:03}-{name}.svg", at + 1));
                    write(path, svg::svg(&group.title, figure))?;
                }
            }
        }
        Ok(written)
    }
}

/// Whether a file can be written, as far as is known before there is anything to write.
pub(crate) fn check_writable(path: &Path) -> Result<(), String> {
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(failed("write", path))
}

/// Whether a user means a folder: there is one, or the path ends as one.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn failed<'a>(what: &'a str, path: &'a Path) -> impl Fn(io::Error) -> String + 'a {
    move |error| format!("{what} {}: {error}", path.display())
}

/// How the files of each document begin: its file's name or its experiment, numbered where two are the same.
fn stems(documents: &[Document]) -> Vec<String> {
    let mut stems: Vec<String> = Vec::new();
    for document in documents {
        let file = Path::new(&document.name).file_stem().and_then(|it| it.to_str());
        let stem = word(file.unwrap_or_else(|| document.experiment()));
        let numbered = (2..).map(|it| format!("{stem}-{it}"));
        let free = [stem.clone()].into_iter().chain(numbered).find(|it| !stems.contains(it));
        stems.extend(free);
    }
    stems
}

/// A part of a file's name, whatever a report says.
fn word(text: &str) -> String {
    const LETTERS_MAX: usize = 80;
    let letters = text.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' });
    let text: String = letters.take(LETTERS_MAX).collect();
    let parts: Vec<_> = text.split('-').filter(|it| !it.is_empty()).collect();
    if parts.is_empty() { "report".to_owned() } else { parts.join("-") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, part: &str) {
        let error = Document::of_text("a.json".to_owned(), text.as_bytes()).unwrap_err();
        assert!(error.starts_with("a.json: ") && error.contains(part), "{error}");
    }

    #[test]
    fn what_is_no_report_is_refused_with_what_is_allowed() {
        check("{", "not JSON: EOF");
        check("\u{0}", "not JSON");
        check("[]", "allowed is what `tsuji lab` writes with --json");
        check("7", "no report");
        check(r#"{"schema": 1}"#, "no report");
        check(r#"{"schema": 3, "experiment": "latency"}"#, "schema 3; known are 1 and 2");
        check(r#"{"schema": 1.5, "experiment": "latency"}"#, "schema 1.5; known are 1 and 2");
        let old = br#"{"schema": 1, "experiment": "passing"}"#;
        let old = Document::of_text("a.json".to_owned(), old).unwrap();
        assert_eq!((&old.report["schema"], old.experiment()), (&2.into(), "latency"));
        let error = Document::read(Path::new("/nowhere/a.json")).unwrap_err();
        assert!(error.starts_with("read /nowhere/a.json: No such file"), "{error}");
    }

    #[test]
    fn what_cannot_be_written_is_said_before_anything_is_measured() {
        let html = Some("/nowhere/a.html".into());
        let error = Outputs { html, ..Outputs::default() }.check().unwrap_err();
        assert!(error.starts_with("write /nowhere/a.html: No such file"), "{error}");
        let svg = Some("/dev/null/plots".into());
        let error = Outputs { svg, ..Outputs::default() }.check().unwrap_err();
        assert!(error.starts_with("create the folder /dev/null/plots: "), "{error}");
        // A device that is always full.
        let full = Outputs { html: Some("/dev/full".into()), ..Outputs::default() };
        let error = full.write(&[]).unwrap_err();
        assert!(error.starts_with("write /dev/full: No space left"), "{error}");
    }

    #[test]
    fn names_of_files_come_from_those_of_reports_and_lead_nowhere_else() {
        let document = |name: &str| Document {
            name: name.to_owned(),
            report: json!({ "experiment": "../../etc" }),
        };
        let all = [document(""), document("x/a b.json"), document("y/a b.json")];
        assert_eq!(stems(&all), ["etc", "a-b", "a-b-2"]);
        assert_eq!(word("…"), "report");
    }

    #[test]
    fn a_run_is_written_in_every_form() {
        let folder = std::env::temp_dir().join(format!("tsuji-lab-report-{}", std::process::id()));
        let outputs = Outputs {
            html: Some(folder.join("a.html")),
            svg: Some(folder.join("plots")),
            csv: Some(folder.clone()),
        };
        let report = json!({ "schema": 2, "experiment": "latency", "series": [{ "case": "loan-64",
            "of": "tsuji:shm", "what": "latency", "unit": "µs", "at_unit": "turn", "values": [1, 2] }] });
        let written = outputs.write(&[Document::new(report)]);
        let _ = fs::remove_dir_all(&folder);
        let names: Vec<_> = written
            .unwrap()
            .iter()
            .map(|it| it.strip_prefix(&folder).unwrap().display().to_string())
            .collect();
        let expected = [
            "a.html",
            "latency-quantiles.csv",
            "latency-series.csv",
            "plots/latency-001-loan-64-latency-over-time.svg",
            "plots/latency-002-loan-64-latency-histogram.svg",
            "plots/latency-003-loan-64-latency-cumulative-distribution.svg",
        ];
        assert_eq!(names, expected);
    }
}
