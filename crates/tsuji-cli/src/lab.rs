//! `tsuji lab` and `tsuji tune`: hand over to `tsuji-lab`, a program of its own with flags and a help of its own.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tsuji_platform::process::companion;

/// The program, which is built in a workspace of its own.
const PROGRAM: &str = "tsuji-lab";

/// Tells the program the version of the command that hands over to it.
const CALLER: &str = "TSUJI_LAB_CALLER";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure, and how; `tsuji lab --help` says it
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    become_lab("lab", args.words.iter().cloned())
}

pub(crate) fn tune(args: &Args) -> anyhow::Result<()> {
    become_lab("tune", [OsString::from("tune")].into_iter().chain(args.words.iter().cloned()))
}

/// Puts the program in the place of this one, so that signals and the exit code are its own. Returns if it cannot.
fn become_lab(command: &str, words: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let program = companion(PROGRAM).ok_or_else(|| {
        anyhow::anyhow!(
            "`tsuji {command}` needs the program {PROGRAM}, which is neither beside tsuji nor in PATH; \
             in the sources of tsuji, `cargo install --locked --path lab` installs it"
        )
    })?;
    let error = Command::new(&program).args(words).env(CALLER, env!("CARGO_PKG_VERSION")).exec();
    Err(anyhow::Error::new(error).context(format!("start {}", program.display())))
}

/// Lets the program answer a shell that asks for words behind `tsuji lab` or `tsuji tune`. Returns if none does, or if the
/// program is not here.
pub(crate) fn complete(words: impl Iterator<Item = OsString>, asked: &str) {
    let words: Vec<OsString> = words.collect();
    // This program, `--`, and the line as it is typed.
    let is_meant =
        matches!(&*words, [_, _, _, command, _, ..] if command == "lab" || command == "tune");
    if let Some(program) = companion(PROGRAM).filter(|_| is_meant && env::var_os(asked).is_some()) {
        let _ = Command::new(program).args(&words[1..]).exec();
    }
}
