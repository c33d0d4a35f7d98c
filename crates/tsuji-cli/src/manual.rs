//! `tsuji man`: the manual page of each command, as packages carry them.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory;

use crate::output::Output;
use crate::{Cli, help};

pub(crate) const EXAMPLES: &str = "\
Examples:
  tsuji man ~/.local/share/man/man1
  man tsuji-topic-echo";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder to write them to, made where it is not there
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(crate) fn run(args: &Args, out: &mut Output) -> anyhow::Result<()> {
    let folder = &args.folder;
    let written = || format!("write the manual to {}", folder.display());
    fs::create_dir_all(folder).with_context(written)?;
    clap_mangen::generate_to(help::reflowed(Cli::command()), folder).with_context(written)?;
    writeln!(out, "The manual pages of all commands are in {}", folder.display())?;
    Ok(())
}
