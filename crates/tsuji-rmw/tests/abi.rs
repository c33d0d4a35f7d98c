//! What C sees of this library: the layouts of its structures and the names of its functions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rmw_tsuji::abi::Distribution;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn table(distribution: Distribution) -> PathBuf {
    here(&format!("abi/{}.def", distribution.name().to_lowercase()))
}

/// Checks a table by a compiler for this language.
#[track_caller]
fn agrees(language: &str, table: &Path, options: &[String]) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(compiler)
        .args(["-fsyntax-only", "-Wall", "-x", language])
        .arg(format!("-DTABLE=\"{}\"", table.display()))
        .args(options)
        .arg(here("abi/check.h"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{}: {said}", table.display());
}

/// The header that the tests in C and C++ use is as every table says.
#[test]
fn the_header_of_the_tests() {
    for distribution in Distribution::ALL {
        let define = format!("-DTSUJI_RMW_{}", distribution.name().to_uppercase());
        let folder = format!("-I{}", here("tests/c").display());
        agrees("c", &table(distribution), &[define, folder]);
    }
}

/// So are those of ROS 2, where `TSUJI_RMW_INCLUDE` names the folders of a distribution's headers, separated by colons,
/// and `TSUJI_RMW_DISTRIBUTION` which it is, such as `jazzy`.
#[test]
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn the_headers_of_ros() {
    let Ok(folders) = std::env::var("TSUJI_RMW_INCLUDE") else {
        eprintln!("TSUJI_RMW_INCLUDE is not set: not run");
        return;
    };
    let name = std::env::var("TSUJI_RMW_DISTRIBUTION").expect("TSUJI_RMW_DISTRIBUTION is set too");
    let mut options = vec!["-DROS_HEADERS".to_owned()];
    options.extend(folders.split(':').map(|folder| format!("-isystem{folder}")));
    for language in ["c", "c++"] {
        agrees(language, &here(&format!("abi/{name}.def")), &options);
    }
}

/// So are those of Humble's rosidl and rcutils that Debian has.
#[test]
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn the_headers_of_debian() {
    let folders = [
        "rcutils",
        "rosidl_runtime_c",
        "rosidl_runtime_cpp",
        "rosidl_typesupport_interface",
        "rosidl_typesupport_introspection_c",
        "rosidl_typesupport_introspection_cpp",
    ]
    .map(|package| Path::new("/usr/include").join(package));
    if folders.iter().any(|folder| !folder.exists()) {
        eprintln!("the headers of rosidl are not installed: not run");
        return;
    }
    let text = std::fs::read_to_string(table(Distribution::Humble)).unwrap();
    let of_rosidl: Vec<_> = text
        .lines()
        .filter(|line| line.contains("(rosidl_") || line.contains("(rcutils_"))
        .collect();
    assert!(50 < of_rosidl.len());
    let part = Path::new(env!("CARGO_TARGET_TMPDIR")).join("humble-rosidl.def");
    std::fs::write(&part, of_rosidl.join("\n") + "\n").unwrap();
    let mut options = vec!["-DROS_HEADERS".to_owned(), "-DROSIDL_ONLY".to_owned()];
    options.extend(folders.iter().map(|folder| format!("-isystem{}", folder.display())));
    for language in ["c", "c++"] {
        agrees(language, &part, &options);
    }
}

/// The library exports the functions of all distributions, which are those that `docs/rmw.md` lists.
#[test]
fn exported_functions() {
    let deps = std::env::current_exe().unwrap();
    let library = deps.with_file_name("librmw_tsuji.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let symbols = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<_> =
        symbols.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect();
    let looked_up = Distribution::ALL.iter().flat_map(|it| it.abi().functions);
    assert_eq!(exported, looked_up.map(|&it| it.to_owned()).collect());
    assert_eq!(exported, listed().into_iter().map(|it| it.name).collect());
}

/// The list says of each function which distributions look it up, where these are not all.
#[test]
fn since_when_a_function_is_looked_up() {
    for row in listed() {
        let looks_up = |it: &Distribution| it.abi().functions.contains(&row.name.as_str());
        let from = Distribution::ALL.iter().position(looks_up).unwrap();
        let later = Distribution::ALL[from..].iter();
        assert!(later.into_iter().all(looks_up), "{}", row.name);
        let since = (from > 0).then(|| format!("Since {}.", Distribution::ALL[from].name()));
        let said = row.remarks.starts_with("Since ").then(|| {
            row.remarks.split_once('.').map_or(String::new(), |(since, _)| format!("{since}."))
        });
        assert_eq!(said, since, "{}", row.name);
    }
    let counts = Distribution::ALL.map(|it| it.abi().functions.len());
    assert_eq!(counts, [88, 95, 95, 97, 97]);
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
    remarks: String,
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
        Some(Row { name: format!("rmw_{name}"), works, remarks: cells[2].to_owned() })
    });
    rows.collect()
}
