//! What C sees of this library: the layouts of its structures and the names of its functions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const DISTRO: &str = if cfg!(feature = "jazzy") { "JAZZY" } else { "HUMBLE" };

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[track_caller]
fn compiles(language: &str, source: &str, options: &[String]) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(compiler)
        .args(["-fsyntax-only", "-Wall", "-x", language])
        .arg(format!("-DTSUJI_RMW_{DISTRO}"))
        .args(options)
        .arg(here(source))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// The header that the tests in C and C++ use has the layouts of `tests/abi/`.
#[test]
fn the_header_of_the_tests() {
    let folder = format!("-I{}", here("tests/c").display());
    compiles("c", "tests/abi/abi.c", &[folder]);
    compiles("c", "tests/c/rmw_tsuji_test.h", &[]);
    compiles("c++", "tests/c/rmw_tsuji_test.h", &[]);
}

/// So have those of rmw, where `TSUJI_RMW_INCLUDE` names the folders of the distribution's headers,
/// separated by colons.
#[test]
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn the_headers_of_rmw() {
    let Ok(folders) = std::env::var("TSUJI_RMW_INCLUDE") else {
        eprintln!("TSUJI_RMW_INCLUDE is not set: not run");
        return;
    };
    let mut options = vec!["-DTSUJI_RMW_HEADERS".to_owned()];
    options.extend(folders.split(':').map(|folder| format!("-isystem{folder}")));
    compiles("c", "tests/abi/abi.c", &options);
}

/// The library exports what `docs/rmw.md` lists, no less and no more.
#[test]
fn exported_functions() {
    let deps = std::env::current_exe().unwrap();
    let library = deps.with_file_name("librmw_tsuji.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let symbols = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<_> =
        symbols.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect();
    let listed: BTreeSet<_> = listed()
        .into_iter()
        .filter(|it| cfg!(feature = "jazzy") || !it.jazzy_only)
        .map(|it| it.name)
        .collect();
    assert_eq!(listed.len(), if cfg!(feature = "jazzy") { 94 } else { 88 });
    assert_eq!(exported, listed);
}

/// Those that the list calls unsupported are those of `unsupported.rs`.
#[test]
fn unsupported_functions() {
    let source = std::fs::read_to_string(here("src/unsupported.rs")).unwrap();
    let there: BTreeSet<_> = source
        .split("extern \"C\" fn ")
        .skip(1)
        .filter_map(|rest| rest.split('(').next())
        .map(str::to_owned)
        .collect();
    let listed: BTreeSet<_> =
        listed().into_iter().filter(|it| !it.works).map(|it| it.name).collect();
    assert_eq!(listed, there);
}

/// A row of `docs/rmw.md`.
struct Row {
    name: String,
    works: bool,
    jazzy_only: bool,
}

fn listed() -> Vec<Row> {
    let text = std::fs::read_to_string(here("../../docs/rmw.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].strip_prefix("`rmw_")?.strip_suffix('`')?;
        let works = match cells[1] {
            "yes" => true,
            "no" => false,
            other => panic!("{line}: {other}"),
        };
        let jazzy_only = cells[2].starts_with("Jazzy only");
        Some(Row { name: format!("rmw_{name}"), works, jazzy_only })
    });
    rows.collect()
}
