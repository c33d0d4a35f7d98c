//! Chores of the workspace: the tidy checks, the watchdog of the tests.
//!
//! Nothing here is part of tsuji or runs where tsuji runs, and it knows the crates of the workspace
//! by name only.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user")]

use std::path::Path;
use std::process::ExitCode;

mod metadata;
mod tidy;
mod watch;
mod words;

const USAGE: &str = "usage: cargo xtask COMMAND
  tidy                        check what rustc and clippy do not: edges between crates, documents, leftovers
  watch -- PROGRAM ARGUMENT…  run a test binary and cut it when it hangs
  path                        print where this program is";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match command.as_deref().and_then(|it| it.to_str()) {
        Some("tidy") => report(tidy::complaints(&root)),
        Some("watch") => watch::run(arguments),
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

fn path() -> ExitCode {
    match std::env::current_exe() {
        Ok(path) => {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
