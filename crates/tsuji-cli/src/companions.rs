//! `tsuji demo`, `lab` and `tune`: hand over to programs of their own, with flags and a help of their own.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tsuji_platform::process::companion;

/// The laboratory, which is built in a workspace of its own.
const LAB: Companion =
    Companion { program: "tsuji-lab", mend: "the package tsuji-lab installs it" };

const DEMO: Companion = Companion {
    program: "tsuji-demo",
    mend: "packages of tsuji have it; after cargo, `cargo install --locked tsuji-demo` installs it",
};

/// A program beside this one.
struct Companion {
    program: &'static str,
    /// What to do where it is missing.
    mend: &'static str,
}

/// Tells the laboratory the version of the command that hands over to it.
const CALLER: &str = "TSUJI_LAB_CALLER";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What the program is to do; its `--help` says it
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn demo(args: &Args) -> anyhow::Result<()> {
    become_companion(&DEMO, "demo", args.words.iter().cloned())
}

pub(crate) fn lab(args: &Args) -> anyhow::Result<()> {
    become_companion(&LAB, "lab", args.words.iter().cloned())
}

pub(crate) fn tune(args: &Args) -> anyhow::Result<()> {
    let words = [OsString::from("tune")].into_iter().chain(args.words.iter().cloned());
    become_companion(&LAB, "tune", words)
}

/// Puts the program in the place of this one, so that signals and the exit code are its own. Returns if it cannot.
fn become_companion(
    &Companion { program, mend }: &Companion,
    command: &str,
    words: impl Iterator<Item = OsString>,
) -> anyhow::Result<()> {
    let path = companion(program).ok_or_else(|| {
        anyhow::anyhow!(
            "`tsuji {command}` needs the program {program}, which is neither beside tsuji nor in PATH; {mend}"
        )
    })?;
    let error = Command::new(&path).args(words).env(CALLER, env!("CARGO_PKG_VERSION")).exec();
    Err(anyhow::Error::new(error).context(format!("start {}", path.display())))
}

/// Lets the laboratory answer a shell that asks for words behind `tsuji lab` or `tsuji tune`. Returns if none does, or if the
/// program is not here.
pub(crate) fn complete(words: impl Iterator<Item = OsString>, asked: &str) {
    let words: Vec<OsString> = words.collect();
    // This program, `--`, and the line as it is typed.
    let is_meant =
        matches!(&*words, [_, _, _, command, _, ..] if command == "lab" || command == "tune");
    if let Some(program) =
        companion(LAB.program).filter(|_| is_meant && env::var_os(asked).is_some())
    {
        let _ = Command::new(program).args(&words[1..]).exec();
    }
}
