//! Lines of a log on the terminal, in the form of rcutils.

use std::io::{self, IsTerminal, Write};

use crate::Severity;
use tsuji_interfaces::rcl_interfaces::msg::Log;

/// How lines are printed.
pub(crate) struct Console {
    /// With names in braces.
    format: String,
    has_colours: bool,
    by_stdout: bool,
}

/// The form of rcutils where nobody says another.
const FORMAT: &str = "[{severity}] [{time}] [{name}]: {message}";

impl Console {
    /// As the variables of rcutils say.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let by_stdout = variable("RCUTILS_LOGGING_USE_STDOUT").as_deref() == Some("1");
        let is_terminal =
            || if by_stdout { io::stdout().is_terminal() } else { io::stderr().is_terminal() };
        let has_colours = match variable("RCUTILS_COLORIZED_OUTPUT").as_deref() {
            Some("1") => true,
            Some("0") => false,
            _ => is_terminal() && variable("NO_COLOR").is_none_or(|it| it.is_empty()),
        };
        let format = variable("RCUTILS_CONSOLE_OUTPUT_FORMAT").filter(|it| !it.is_empty());
        let format = format.map_or_else(|| FORMAT.to_owned(), |it| unescaped(&it));
        Self { format, has_colours, by_stdout }
    }

    /// Prints one line, at once, so that a crash does not lose it. What cannot be printed is not.
    pub(crate) fn print(&self, line: &Log, severity: Severity, wall_ns: i64) {
        let mut text = self.line(line, severity, wall_ns);
        text.push('\n');
        let _ = match self.by_stdout {
            true => io::stdout().lock().write_all(text.as_bytes()),
            false => io::stderr().lock().write_all(text.as_bytes()),
        };
    }

    fn line(&self, line: &Log, severity: Severity, wall_ns: i64) -> String {
        let mut text = String::with_capacity(self.format.len() + line.msg.len() + 64);
        let colour = match severity {
            Severity::Debug => "\x1b[32m",
            Severity::Info => "\x1b[0m",
            Severity::Warn => "\x1b[33m",
            Severity::Error | Severity::Fatal => "\x1b[31m",
        };
        if self.has_colours {
            text.push_str(colour);
        }
        let mut rest = self.format.as_str();
        while let Some(at) = rest.find('{') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest.find('}').map_or(rest.len(), |it| it + 1);
            match part(&rest[..end], line, severity, wall_ns) {
                Some(part) => {
                    text.push_str(&part);
                    rest = &rest[end..];
                }
                // What is no name stands there as it is.
                None => {
                    text.push('{');
                    rest = &rest[1..];
                }
            }
        }
        text.push_str(rest);
        if self.has_colours {
            text.push_str("\x1b[0m");
        }
        text
    }
}

/// A format with what stands for its escape sequences: `\a`, `\b`, `\n`, `\r`, `\t` and `\x1b`. Others stay as they are.
fn unescaped(format: &str) -> String {
    const ESCAPES: [(&str, char); 7] = [
        ("\\a", '\x07'),
        ("\\b", '\x08'),
        ("\\n", '\n'),
        ("\\r", '\r'),
        ("\\t", '\t'),
        ("\\x1b", '\x1b'),
        ("\\x1B", '\x1b'),
    ];
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape));
        let (letter, bytes) = found.map_or(('\\', 1), |(escape, letter)| (*letter, escape.len()));
        out.push(letter);
        rest = &rest[bytes..];
    }
    out.push_str(rest);
    out
}

/// What stands for a name in braces.
fn part(name: &str, line: &Log, severity: Severity, wall_ns: i64) -> Option<String> {
    Some(match name {
        "{severity}" => severity.to_string(),
        "{time}" => format!("{}.{:09}", line.stamp.sec, line.stamp.nanosec),
        "{time_as_nanoseconds}" => wall_ns.to_string(),
        "{name}" => line.name.clone(),
        "{message}" => line.msg.clone(),
        "{function_name}" => line.function.clone(),
        "{file_name}" => line.file.clone(),
        "{line_number}" => line.line.to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], severity: Severity, expect: &str) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let line = Log {
            stamp: crate::stamp::time(1_700_000_000_000_000_042),
            level: severity as u8,
            name: "robot.drive".into(),
            msg: "a {name} of its own".into(),
            file: "drive.rs".into(),
            function: "drive::turn".into(),
            line: 7,
        };
        let console = Console::from_environment(variable);
        assert_eq!(console.line(&line, severity, 1_700_000_000_000_000_042), expect);
    }

    #[test]
    fn lines_have_the_form_of_rcutils() {
        let plain = ("RCUTILS_COLORIZED_OUTPUT", "0");
        let expect = "[WARN] [1700000000.000000042] [robot.drive]: a {name} of its own";
        check(&[plain], Severity::Warn, expect);
        let colours = ("RCUTILS_COLORIZED_OUTPUT", "1");
        let form = |it| ("RCUTILS_CONSOLE_OUTPUT_FORMAT", it);
        check(
            &[colours, form("{severity} {message}")],
            Severity::Fatal,
            "\x1b[31mFATAL a {name} of its own\x1b[0m",
        );
        let all =
            "{file_name}:{line_number} {function_name} {time_as_nanoseconds} {what} {{name} {";
        let expect = "drive.rs:7 drive::turn 1700000000000000042 {what} {robot.drive {";
        check(&[plain, form(all)], Severity::Info, expect);
        let escapes = "\\x1b[1m{severity}\\x1B[m\\a\\b\\n\\r\\t\\x1 \\q\\";
        let expect = "\x1b[1mINFO\x1b[m\x07\x08\n\r\t\\x1 \\q\\";
        check(&[plain, form(escapes)], Severity::Info, expect);
    }
}
