//! The page of real reports in a real browser: every plot is drawn, and nothing is complained of.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it wants, what it saw and why it did not run"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

/// Names an environment variable: the program that opens pages, Chromium or what takes its options.
const BROWSER: &str = "TSUJI_CHROMIUM";

/// Each experiment, with counts too small to mean anything.
const EXPERIMENTS: [&str; 7] = [
    "latency --count 8 --blocks 2 --cases one_node,loan --sizes 64,4096,65536",
    "budgets --quick --count 20 --blocks 2 --cases probe,parameters,footprint-shm",
    "handover --quick --handovers 2 --cases inside-64",
    "matrix --quick --count 4 --blocks 2 --sizes 256,4096 --transports inproc,shm,raw:condvar",
    "jitter --quick --count 40 --cases jitter,queue",
    "camera --quick --count 20 --transports inproc,shm",
    "tune --quick --count 2",
];

/// A page of a full run may have so many bytes.
const BYTES_MAX: u64 = 10_000_000;

/// The values of a full run in each series, and how many series it has: those of `matrix`.
const VALUES: usize = 3000;
const SERIES: usize = 300;

#[test]
fn every_experiment_is_drawn() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("drawn");
    let mut files = Vec::new();
    for words in EXPERIMENTS {
        let file = folder.0.join(format!("{}.json", words.split(' ').next().unwrap()));
        let mut lab = lab();
        lab.current_dir(&folder.0).args(words.split(' ')).arg("--json").arg(&file);
        let output = lab.output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        files.push(file);
    }
    let page = page_of(&folder, &files);
    check(&browser, &folder, &page, EXPERIMENTS.len());
}

/// A real series, repeated until there is as much of it as a full run has.
#[test]
fn a_page_of_a_full_run_is_small_and_whole() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("full");
    let file = folder.0.join("latency.json");
    let words = "latency --count 100 --blocks 2 --cases one_node_pointer";
    let output = lab().args(words.split(' ')).arg("--json").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let short = report["series"][0]["values"].as_array().unwrap().clone();
    let values: Vec<_> = short.iter().cycle().take(VALUES).cloned().collect();
    let series = (0..SERIES).map(|at| {
        let mut series = report["series"][0].clone();
        series["case"] = format!("case-{}", at / 10).into();
        series["of"] = format!("transport-{at}").into();
        series["values"] = values.clone().into();
        series
    });
    report["series"] = series.collect();
    fs::write(&file, report.to_string()).unwrap();
    let page = page_of(&folder, &[file]);
    let bytes = fs::metadata(&page).unwrap().len();
    println!("{} values: a page of {bytes} bytes", VALUES * SERIES);
    assert!(bytes < BYTES_MAX, "{bytes}");
    check(&browser, &folder, &page, 1);
}

/// The page draws a plot when it comes near, or all of them before it is printed, which a copy of it does at once.
const AS_PRINTED: &str = "<script>dispatchEvent(new Event('beforeprint'));</script>";

/// Opens the page, and looks at what its script has made of it.
fn check(browser: &Path, folder: &Folder, page: &Path, documents: usize) {
    let printed = folder.0.join("printed.html");
    fs::write(&printed, fs::read_to_string(page).unwrap() + AS_PRINTED).unwrap();
    let begin = Instant::now();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--disable-quic", "--enable-logging=stderr", "--log-level=0"])
        .args(["--window-size=1280,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.0.join("browser").display()))
        .arg(format!("file://{}", printed.display()))
        .output()
        .unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let drawn = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<_> = drawn.split("<figure class=\"plot\"").skip(1).collect();
    println!(
        "{} plots of {documents} reports, {seconds:.1} s with the browser's start",
        figures.len()
    );
    assert!(documents <= figures.len(), "{drawn}");
    for figure in figures {
        let figure = figure.split("</figure>").next().unwrap();
        let title = figure.split("<figcaption>").nth(1).unwrap_or(figure);
        // Axes and lines.
        assert!(figure.contains("<svg") && figure.contains("<path"), "not drawn: {title:.200}");
    }
    let told: Vec<_> = complaints.lines().filter(|it| it.contains("CONSOLE")).collect();
    assert!(told.is_empty(), "{told:#?}");
}

/// The page that `tsuji lab report` makes of these.
fn page_of(folder: &Folder, files: &[PathBuf]) -> PathBuf {
    let page = folder.0.join("page.html");
    let output = lab().arg("report").args(files).arg("--html").arg(&page).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    page
}

fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tsuji-lab"))
}

fn browser() -> Option<PathBuf> {
    let browser = std::env::var_os(BROWSER).filter(|it| !it.is_empty());
    if browser.is_none() {
        println!("not run: {BROWSER} names no browser");
    }
    browser.map(PathBuf::from)
}

/// A folder that is removed with what is in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = tsuji_platform::process::temporary_path(&format!("tsuji-lab-page-{name}"));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over is in the temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}
