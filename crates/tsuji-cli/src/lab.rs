//! `tsuji lab` and `tsuji tune`: hand over to the laboratory, which has flags and a help of its own.

use tsuji_lab::Program;

use crate::failure::Told;
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure, and how; `tsuji lab --help` says it
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn run(args: &Args, out: &mut Output) -> anyhow::Result<()> {
    measure(&args.words, out)
}

pub(crate) fn tune(args: &Args, out: &mut Output) -> anyhow::Result<()> {
    let words: Vec<String> = ["tune".to_owned()].into_iter().chain(args.words.clone()).collect();
    measure(&words, out)
}

fn measure(words: &[String], out: &mut Output) -> anyhow::Result<()> {
    // It starts this program again for the processes that it measures.
    let program = Program::current(&["lab"])?;
    match tsuji_lab::main(words, program, None, out) {
        0 => Ok(()),
        code => Err(Told(u8::try_from(code).unwrap_or(1)).into()),
    }
}
