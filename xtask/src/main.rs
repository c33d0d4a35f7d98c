//! Chores of the workspace: the tidy checks, the watchdog of the tests.
//!
//! Nothing here is part of tsuji or runs where tsuji runs, and it knows the crates of the workspace
//! by name only.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user")]

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

mod circles;
mod inputs;
mod links;
mod manual;
mod metadata;
mod tidy;
mod told;
mod watch;
mod words;

const USAGE: &str = "usage: cargo xtask COMMAND
  tidy                        check what rustc and clippy do not: edges between crates, documents, leftovers
  watch -- PROGRAM ARGUMENT…  run a test binary and cut it when it hangs
  inputs PACKAGE…             print the folders that these packages are built from; a folder with a workspace is one too
  manual FOLDER               write what mdBook makes the manual of into this folder
  book FOLDER                 finish the pages that mdBook has built, and follow every reference of them
  sentences                   print how many words the sentences of each page for users have
  path                        print where this program is";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match command.as_deref().and_then(|it| it.to_str()) {
        Some("tidy") => report(tidy::complaints(&root)),
        Some("watch") => watch::run(arguments),
        Some("inputs") => inputs(&root, arguments),
        Some("manual") => manual(&root, arguments),
        Some("book") => book(arguments),
        Some("sentences") => print(manual::sentences(&root)),
        Some("path") => path(),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn report(found: Result<Vec<String>, String>) -> ExitCode {
    match found {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            for complaint in &complaints {
                eprintln!("error: {complaint}");
            }
            eprintln!("{} complaints", complaints.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn inputs(root: &Path, asked: impl Iterator<Item = OsString>) -> ExitCode {
    let asked: Vec<_> = asked.map(|it| it.to_string_lossy().into_owned()).collect();
    print(inputs::folders(root, &asked).map(|it| it.into_iter().collect()))
}

fn manual(root: &Path, mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let out = arguments.next().ok_or_else(|| "which folder?".to_owned());
    let written = out.and_then(|out| manual::assemble(root, Path::new(&out)));
    print(written.map(|pages| vec![format!("manual: {pages} pages")]))
}

fn book(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let folder = arguments.next().ok_or_else(|| "which folder?".to_owned());
    let found = folder.and_then(|folder| {
        manual::finish::finish(Path::new(&folder))?;
        manual::html::check(Path::new(&folder))
    });
    report(found.map(|found| {
        println!("book: {} files of HTML, {} references", found.pages, found.links);
        found.complaints
    }))
}

fn path() -> ExitCode {
    let found = std::env::current_exe().map(|path| vec![path.display().to_string()]);
    print(found.map_err(|error| error.to_string()))
}

fn print(found: Result<Vec<String>, String>) -> ExitCode {
    match found {
        Ok(lines) => {
            lines.iter().for_each(|it| println!("{it}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
