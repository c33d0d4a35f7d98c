//! What others wrote, as a line of a log may have it.

use std::fmt::{self, Display, Write};

/// Shows a value without the characters that command a terminal, end its line or turn its direction.
pub(crate) struct Plain<T>(pub(crate) T);

impl<T: Display> Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if is_commanding(letter) {
                write!(self.0, "{}", letter.escape_default())?;
            } else {
                self.0.write_char(letter)?;
            }
        }
        Ok(())
    }
}

fn is_commanding(letter: char) -> bool {
    let turns = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns || matches!(letter, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_escaped() {
        let shown = |text: &str| Plain(text).to_string();
        assert_eq!(shown("/chätter 🚁 a\\b"), "/chätter 🚁 a\\b");
        assert_eq!(shown("\x1b[2J\x07a\r\nb\t\x7f"), "\\u{1b}[2J\\u{7}a\\r\\nb\\t\\u{7f}");
        assert_eq!(shown("\u{9b}31m\u{202e}x\u{2028}"), "\\u{9b}31m\\u{202e}x\\u{2028}");
    }
}
