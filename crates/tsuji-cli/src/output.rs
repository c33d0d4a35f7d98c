//! What goes to the terminal: buffered text, colours where they are wanted, the width there is.

use std::borrow::Cow;
use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

/// The narrowest and the shortest terminal that output is fitted to; a smaller one wraps.
const COLUMNS_MIN: usize = 40;
const ROWS_MIN: usize = 5;

/// Standard output. Nothing appears before [`Write::flush`] or a full buffer.
///
/// All text passes [`shown`], also where it does not go to a terminal: what is in a file is shown on one later. So no
/// character of others commands a terminal; the colours of [`Paint`] and [`Output::control`] alone do.
///
/// A reader that is gone shows as [`io::ErrorKind::BrokenPipe`], which `main` takes for a wish to
/// end.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<Stdout>,
    is_terminal: bool,
    /// What was written of a line that has not ended. A letter or a colour may come in pieces.
    pending: Vec<u8>,
    /// Which colours there are.
    pub(crate) paint: Paint,
}

impl Output {
    /// Standard output, with colours if it is a terminal and `NO_COLOR` is not set.
    pub(crate) fn stdout() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        let paint = Paint { on: colours_wanted(is_terminal) };
        Self { out: BufWriter::new(out), is_terminal, pending: Vec::new(), paint }
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

    /// Whether it goes to a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes one line. Line ends inside of it, which are others' doing, are shown as escapes.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        self.put(&text.to_string(), "\t")?;
        self.out.write_all(b"\n")
    }

    /// Writes several lines, and ends the last.
    pub(crate) fn lines(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self, "{text}")
    }

    /// Writes one row of values for programs. Line ends in its values are kept, since programs need them, but carriage
    /// returns only where no terminal obeys them.
    pub(crate) fn row(&mut self, text: &str) -> io::Result<()> {
        self.put(text, if self.is_terminal { "\n\t" } else { "\r\n\t" })?;
        self.out.write_all(b"\n")
    }

    /// Writes a line of a program that the user started. It may colour its text; what else commands a terminal is
    /// shown.
    pub(crate) fn program_line(&mut self, label: impl Display, line: &[u8]) -> io::Result<()> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = coloured(&String::from_utf8_lossy(line));
        self.line(format_args!("{label} {line}"))
    }

    /// Commands the terminal. Nothing of others may be in `sequence`.
    pub(crate) fn control(&mut self, sequence: impl Display) -> io::Result<()> {
        self.put_pending()?;
        write!(self.out, "{sequence}")
    }

    /// Writes what is pending, then `text` without what commands a terminal but the characters of `kept`.
    fn put(&mut self, text: &str, kept: &str) -> io::Result<()> {
        self.put_pending()?;
        self.out.write_all(shown(text, kept).as_bytes())
    }

    fn put_pending(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.out.write_all(shown(&String::from_utf8_lossy(&pending), "\n\t").as_bytes())
    }

    fn size(&self) -> Option<(usize, usize)> {
        let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
        Some((usize::from(width.0), usize::from(height.0)))
    }
}

/// Several lines, of which parts may come one after the other.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let whole = bytes.iter().rposition(|it| *it == b'\n').map_or(0, |at| at + 1);
        self.pending.extend_from_slice(&bytes[..whole]);
        if 0 < whole {
            self.put_pending()?;
        }
        self.pending.extend_from_slice(&bytes[whole..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put_pending()?;
        self.out.flush()
    }
}

/// Says warnings and errors as JSON from now on, each an object on a line of standard error.
pub(crate) fn warn_in_json() {
    IN_JSON.store(true, Ordering::Relaxed);
}

static IN_JSON: AtomicBool = AtomicBool::new(false);

/// Says something that is not the result, on standard error. That nobody reads it is no fault.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", shown(&text.to_string(), "\n\t"));
}

/// Says what clap has rendered, on standard error, with its colours where they are wanted.
pub(crate) fn rendered(text: &clap::builder::StyledStr) {
    let text = match colours_wanted(io::stderr().is_terminal()) {
        true => coloured(&text.ansi().to_string()),
        false => text.to_string(),
    };
    note(text.trim_end());
}

/// Says what went wrong, on standard error.
pub(crate) fn error(text: impl Display) {
    if IN_JSON.load(Ordering::Relaxed) {
        return note(json!({ "level": "error", "message": text.to_string() }));
    }
    let paint = Paint { on: colours_wanted(io::stderr().is_terminal()) };
    note(format_args!("{} {text}", paint.text(Colour::Error, "error:")));
}

/// Says what may surprise in one line, on standard error, in the words that `ros2` begins with.
pub(crate) fn warning(text: impl Display) {
    if IN_JSON.load(Ordering::Relaxed) {
        return note(json!({ "level": "warning", "message": text.to_string() }));
    }
    let paint = Paint { on: colours_wanted(io::stderr().is_terminal()) };
    let text = escaped(&text.to_string(), "\t");
    note(format_args!("{} {text}", paint.text(Colour::Warning, "WARNING:")));
}

/// What others wrote, without the characters that command a terminal, but those of `kept`.
///
/// These are the control characters, DEL and those above it included, and the marks that turn the direction of what
/// follows, by which a text looks like another one. What `\u` stands before may stand in JSON and in YAML's quotes.
pub(crate) fn escaped(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|letter| push_escaped(letter, kept, &mut out));
    out
}

fn push_escaped(letter: char, kept: &str, out: &mut String) {
    match letter {
        letter if !commands(letter) || kept.contains(letter) => out.push(letter),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        letter if letter < ' ' => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
        letter => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
    }
}

/// Whether a terminal obeys a character and does not show it.
fn commands(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// [`escaped`], with the colours of [`Paint`].
fn shown<'a>(text: &'a str, kept: &str) -> Cow<'a, str> {
    // Bytes with which all begins that is not shown as it is.
    let may_command = |byte: u8| byte < b' ' || matches!(byte, 0x7f | 0xc2 | 0xe2 | 0xef);
    if !text.bytes().any(|it| may_command(it) && !kept.as_bytes().contains(&it)) {
        return Cow::Borrowed(text);
    }
    let mark = mark();
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let colour = letters.as_str().strip_prefix(mark).filter(|_| letter == MARK);
        match colour.and_then(|it| it.split_once('m')) {
            Some((code, rest)) => {
                out.extend(["\x1b[", code, "m"]);
                letters = rest.chars();
            }
            None => push_escaped(letter, kept, &mut out),
        }
    }
    Cow::Owned(out)
}

/// What a colour begins with until it is shown. No text has it, since it stands for no character.
const MARK: char = '\u{fdd0}';

/// What follows [`MARK`]: a word that this process alone knows, so that no text of others is coloured by its writer.
fn mark() -> &'static str {
    static WORD: OnceLock<String> = OnceLock::new();
    WORD.get_or_init(|| format!("{:016x}", RandomState::new().build_hasher().finish()))
}

/// The text of a program, whose colours are taken for those of [`Paint`].
fn coloured(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|it: char| !it.is_ascii_digit() && it != ';').unwrap_or(part.len());
        match part[end..].starts_with('m') {
            true => out.extend([&MARK.to_string(), mark(), part]),
            false => out.extend(["\x1b[", part]),
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

    /// Whether there are colours.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

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
        let mark = mark();
        format!("{MARK}{mark}{code}m{text}{MARK}{mark}0m")
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
    terminal && !refused && !is_dumb()
}

/// Whether the terminal can do no more than print.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|it| it == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_commands_no_terminal() {
        let text = "ä\x1b[2J\u{9b}31m\r\n\ta\x07\\\x7f\u{202e}";
        assert_eq!(escaped(text, "\n\t"), "ä\\x1b[2J\\u009b31m\\r\n\ta\\x07\\\\u007f\\u202e");
        assert_eq!(escaped(text, ""), "ä\\x1b[2J\\u009b31m\\r\\n\\ta\\x07\\\\u007f\\u202e");
        for kept in ["", "\n", "\t", "\n\t", "\r\n\t"] {
            assert_eq!(shown(text, kept), escaped(text, kept), "{kept:?}");
        }
        assert_eq!(shown("plain ä €\n", "\n\t"), "plain ä €\n");
    }

    #[test]
    fn own_colours_are_shown_and_no_others() {
        let paint = Paint { on: true };
        let text = paint.text(Colour::Error, "a\x1b[31mb\u{fdd0}31m");
        assert_eq!(shown(&text, ""), "\x1b[1;31ma\\x1b[31mb\u{fdd0}31m\x1b[0m");
        assert_eq!(Paint::PLAIN.text(Colour::Error, "a"), "a");
    }

    #[test]
    fn a_program_may_colour_its_lines() {
        let text = coloured("\x1b[0;31mred\x1b[m \x1b[2Jx\x1b]0;title\x07\x1b[");
        assert_eq!(shown(&text, ""), "\x1b[0;31mred\x1b[m \\x1b[2Jx\\x1b]0;title\\x07\\x1b[");
    }
}
