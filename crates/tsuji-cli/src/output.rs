//! What goes to the terminal: buffered text, colours where they are wanted, the width there is.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// The narrowest and the shortest terminal that output is fitted to; a smaller one wraps.
const COLUMNS_MIN: usize = 40;
const ROWS_MIN: usize = 5;

/// Standard output. Nothing appears before [`Write::flush`] or a full buffer.
///
/// A reader that is gone shows as [`io::ErrorKind::BrokenPipe`], which `main` takes for a wish to
/// end.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<Stdout>,
    /// Which colours there are.
    pub(crate) paint: Paint,
}

impl Output {
    /// Standard output, with colours if it is a terminal and `NO_COLOR` is not set.
    pub(crate) fn stdout() -> Self {
        let out = io::stdout();
        let paint = Paint { on: colours_wanted(out.is_terminal()) };
        Self { out: BufWriter::new(out), paint }
    }

    /// Columns to fit the output into; `None` where it does not go to a terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        // Said explicitly, as by `COLUMNS=100 tsuji routes | less`, it counts everywhere.
        let said = std::env::var("COLUMNS").ok().and_then(|it| it.parse::<usize>().ok());
        let columns = said.or_else(|| Some(self.size()?.0))?;
        Some(columns.max(COLUMNS_MIN))
    }

    /// Rows to fit output into that is redrawn; `None` where it does not go to a terminal.
    pub(crate) fn rows(&self) -> Option<usize> {
        Some(self.size()?.1.max(ROWS_MIN))
    }

    /// Writes one line.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    fn size(&self) -> Option<(usize, usize)> {
        let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
        Some((usize::from(width.0), usize::from(height.0)))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Says something that is not the result, on standard error. That nobody reads it is no fault.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Says what went wrong, on standard error.
pub(crate) fn error(text: impl Display) {
    let paint = Paint { on: colours_wanted(io::stderr().is_terminal()) };
    note(format_args!("{} {text}", paint.text(Colour::Error, "error:")));
}

/// Says what may surprise, on standard error, in the words that `ros2` begins with.
pub(crate) fn warning(text: impl Display) {
    let paint = Paint { on: colours_wanted(io::stderr().is_terminal()) };
    note(format_args!("{} {text}", paint.text(Colour::Warning, "WARNING:")));
}

/// What others wrote, without the characters that command a terminal, but those of `kept`.
pub(crate) fn escaped(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if !letter.is_control() || kept.contains(letter) => out.push(letter),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
        }
    }
    out
}

/// Puts colour around text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// No colours.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { on: false };

    /// `text` in a colour.
    pub(crate) fn text(self, colour: Colour, text: impl Display) -> String {
        let code = match colour {
            Colour::Plain => return text.to_string(),
            _ if !self.on => return text.to_string(),
            Colour::Dim => "2",
            Colour::Strong => "1",
            Colour::Good => "32",
            Colour::Warning => "33",
            Colour::Error => "1;31",
            Colour::Name => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// What a colour says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Nothing.
    #[default]
    Plain,
    /// Less important.
    Dim,
    /// A heading.
    Strong,
    /// All is well.
    Good,
    /// May surprise.
    Warning,
    /// Is wrong.
    Error,
    /// The name of a thing, for example of a transport.
    Name,
}

/// <https://no-color.org>: any value that is not empty turns colours off.
fn colours_wanted(terminal: bool) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|it| it == "dumb");
    terminal && !refused && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_commands_no_terminal() {
        let text = "ä\x1b[2J\u{9b}31m\r\n\ta\x07\\";
        assert_eq!(escaped(text, "\n\t"), "ä\\x1b[2J\\x9b31m\\r\n\ta\\x07\\");
        assert_eq!(escaped(text, ""), "ä\\x1b[2J\\x9b31m\\r\\n\\ta\\x07\\");
    }
}
