//! The laboratory whole, with counts too small to mean anything: rows come out and nothing is lost.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it wants and why it did not run"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Runs it with these words, and reads the JSON that it wrote.
fn check(words: &str) -> Option<(Value, String)> {
    if std::env::var_os("TSUJI_TEST_RUNNER").is_some_and(|it| !it.is_empty()) {
        println!("not run: under emulation the laboratory cannot start itself");
        return None;
    }
    let json = json_path(words);
    let output = Command::new(env!("CARGO_BIN_EXE_tsuji-lab"))
        .args(words.split_whitespace())
        .arg("--json")
        .arg(&json)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}\n{complaints}");
    let value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    fs::remove_file(json).unwrap();
    Some((value, text))
}

fn json_path(words: &str) -> PathBuf {
    let name: String = words.chars().filter(|it| it.is_ascii_alphanumeric()).collect();
    std::env::temp_dir().join(format!("tsuji-lab-test-{}-{name}.json", std::process::id()))
}

#[test]
fn every_pattern_and_every_way_brings_rows_and_loses_nothing() {
    let words = "passing --quick --count 6 --blocks 2 --sizes 64,70000";
    let Some((value, text)) = check(words) else { return };
    let rows = value["rows"].as_array().unwrap();
    // Six patterns, and five ways in two sizes; each by two carriers.
    assert_eq!(rows.len(), (6 + 5 * 2) * 2, "{text}");
    for row in rows {
        assert_eq!(row["lost"], 0, "{row}");
        assert_eq!(row["count"], 6, "{row}");
        for field in ["case", "carrier"] {
            assert!(row[field].is_string(), "{row}");
        }
        for field in ["mean_us", "median_us", "p99_us", "max_us", "cpu_us_per_sample"] {
            assert!(row[field].is_f64(), "{field} of {row}");
        }
    }
    let carried = |case: &str, carrier: &str| {
        rows.iter().any(|it| it["case"] == case && it["carrier"] == carrier)
    };
    assert!(carried("one_node_pointer", "tsuji:inproc"), "{text}");
    assert!(carried("two_nodes_pointer", "tsuji:shm"), "{text}");
    assert!(carried("loan-70000", "raw:iceoryx2-loan"), "{text}");
    for way in ["loan", "publish"] {
        assert!(carried(&format!("cyclonedds-{way}-70000"), "tsuji:cyclonedds"), "{text}");
    }
    assert!(carried("cyclonedds-loan-64", "raw:cyclonedds-in-place"), "{text}");
    assert!(carried("cyclonedds-publish-64", "raw:cyclonedds-copy"), "{text}");
    assert_ne!(value["machine"]["cpu"], Value::Null);
    let ratios = value["ratios"].as_array().unwrap();
    assert!(ratios.iter().any(|it| it["what"] == "loan-64 median" && it["verdict"].is_string()));
}

#[test]
fn the_other_figures_come_out() {
    let words = "limits --quick --count 20 --blocks 2 --cases small,allocations,footprint,startup,idle,echo";
    let Some((value, text)) = check(words) else { return };
    let figures = value["figures"].as_array().unwrap();
    let figure = |what: &str| {
        let found = figures.iter().find(|it| it["what"] == what);
        found.unwrap_or_else(|| panic!("{what} in {text}"))["figure"].as_f64().unwrap()
    };
    for what in ["small lost", "echo lost", "echo doubled"] {
        assert_eq!(figure(what), 0.0, "{what}");
    }
    for what in [
        "small",
        "allocations-loan",
        "footprint-shm-cyclonedds RSS",
        "footprint-shm-cyclonedds threads",
        "footprint-shm-200 RSS",
        "startup-cyclonedds",
        "wake-ups in 2 s",
        "idle-rtps CPU",
        "idle-rtps wake-ups",
        "echo CPU/sample",
    ] {
        assert!(0.0 <= figure(what));
    }
    let ratios = value["ratios"].as_array().unwrap();
    for what in ["echo p99, less one send", "echo CPU, less one send"] {
        assert!(ratios.iter().any(|it| it["what"] == what && it["verdict"].is_string()), "{what}");
    }
}

#[test]
fn wrong_usage_is_said_with_what_is_allowed() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tsuji-lab")).args(["passing", "--fast"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("`--fast` is no option"));
}

#[test]
fn an_interrupt_keeps_what_is_measured_and_leaves_nothing() {
    if std::env::var_os("TSUJI_TEST_RUNNER").is_some_and(|it| !it.is_empty()) {
        println!("not run: under emulation the laboratory cannot start itself");
        return;
    }
    let json = json_path("interrupt");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tsuji-lab"))
        .args(["passing", "--blocks", "2", "--count", "4", "--json"])
        .arg(&json)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The machine, the head of the table, and the first row.
    for _ in 0..3 {
        lines.next().unwrap().unwrap();
    }
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let value: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    fs::remove_file(json).unwrap();
    assert!(!value["rows"].as_array().unwrap().is_empty());
    assert!(!std::env::temp_dir().join(format!("tsuji-lab-{id}-0")).exists());
}
