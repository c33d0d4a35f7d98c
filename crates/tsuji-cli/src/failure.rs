//! How a command ends: what is said, and which exit code follows.

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

use tsuji::ErrorKind;
use tsuji_platform::limit::with_limit;

use crate::output;
use crate::session::is_told_to_end;

/// What was asked for can never be done; exit code 2, as for an unknown flag.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// The command has said itself what is wrong; this exit code and no more words.
#[derive(Debug)]
pub(crate) struct Told(pub(crate) u8);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("told before")
    }
}

impl Error for Told {}

/// Says what went wrong, if anything and if it was not said, and gives the exit code.
pub(crate) fn finish(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if reader_is_gone(&error) {
        // `tsuji … | head -1` has what it wanted.
        return ExitCode::SUCCESS;
    }
    if is_told_to_end() && is_closed(&error) {
        return ExitCode::SUCCESS;
    }
    if let Some(Told(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    output::error(chain(&error));
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

fn reader_is_gone(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|it| it.downcast_ref::<io::Error>());
    causes.into_iter().any(|it| it.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether something was asked of a context that is shut down.
fn is_closed(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|it| it.downcast_ref::<tsuji::Error>())
        .any(|it| it.kind() == ErrorKind::Closed)
}

/// The error and its causes, without those that it quotes already.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(say) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// What a cause says; that a file may not grow any more, with the limit.
fn say(cause: &(dyn Error + 'static)) -> String {
    match cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
        Some(code) => with_limit(io::Error::from_raw_os_error(code)).to_string(),
        None => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("no such file").context("a.xml: no such file");
        assert_eq!(chain(&error), "a.xml: no such file");
        let error = anyhow::anyhow!("no such file").context("cannot read a.xml");
        assert_eq!(chain(&error), "cannot read a.xml: no such file");
    }
}
