//! What the arguments of a program say of its log. Nothing here logs: whoever does reads it.

use std::fmt;
use std::str::FromStr;

/// Severity of a line of a log, with the numbers of `rcl_interfaces/msg/Log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Severity {
    /// For whoever looks for a fault.
    Debug = 10,
    /// What goes as it should.
    Info = 20,
    /// What may become a fault.
    Warn = 30,
    /// What went wrong.
    Error = 40,
    /// What the program does not survive.
    Fatal = 50,
}

impl Severity {
    /// All severities, the least grave first.
    pub const ALL: [Self; 5] = [Self::Debug, Self::Info, Self::Warn, Self::Error, Self::Fatal];

    /// Returns the severity of this number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u32 == number)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
        })
    }
}

impl FromStr for Severity {
    type Err = UnknownSeverity;

    fn from_str(word: &str) -> Result<Self, UnknownSeverity> {
        let is_it = |it: &Self| it.to_string().eq_ignore_ascii_case(word);
        let found = Self::ALL.into_iter().find(is_it);
        found.ok_or_else(|| UnknownSeverity(word.chars().take(WORD_SHOWN_MAX).collect()))
    }
}

/// Of a wrong word so much is shown.
const WORD_SHOWN_MAX: usize = 40;

/// A word that is no [`Severity`].
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownSeverity(String);

impl fmt::Display for UnknownSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(word) = self;
        write!(f, "{word:?} is no level; allowed: debug, info, warn, error, fatal")
    }
}

impl std::error::Error for UnknownSeverity {}

/// Levels and outputs of the log, as `--ros-args` gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogArguments {
    /// Levels of `--log-level LEVEL` and, with a logger's name, `--log-level LOGGER:=LEVEL`, in their order: the later counts.
    pub levels: Vec<(Option<String>, Severity)>,
    /// True if the log goes to `/rosout`: `--enable-rosout-logs`, the default, or `--disable-rosout-logs`.
    pub rosout: bool,
    /// True if the log goes to the terminal: `--enable-stdout-logs`, the default, or `--disable-stdout-logs`.
    pub stdout: bool,
}

impl Default for LogArguments {
    fn default() -> Self {
        Self { levels: Vec::new(), rosout: true, stdout: true }
    }
}

impl LogArguments {
    /// Takes what stands after `--log-level`.
    pub(crate) fn add_level(&mut self, words: &str) -> Result<(), String> {
        let (logger, word) = match words.rsplit_once(":=") {
            Some(("", _)) => return Err("the name of the logger is missing before ':='".to_owned()),
            Some((logger, word)) => (Some(logger.to_owned()), word),
            None => (None, words),
        };
        let severity = word.parse().map_err(|error: UnknownSeverity| error.to_string())?;
        self.levels.push((logger, severity));
        Ok(())
    }

    /// Takes a flag, if it is one of these.
    pub(crate) fn set_flag(&mut self, flag: &str) -> bool {
        match flag {
            "--enable-rosout-logs" => self.rosout = true,
            "--disable-rosout-logs" => self.rosout = false,
            "--enable-stdout-logs" => self.stdout = true,
            "--disable-stdout-logs" => self.stdout = false,
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_in_any_case() {
        let mut said = LogArguments::default();
        for words in ["debug", "robot.arm:=WARN", "Fatal"] {
            said.add_level(words).unwrap();
        }
        let arm = Some("robot.arm".to_owned());
        let expect = [(None, Severity::Debug), (arm, Severity::Warn), (None, Severity::Fatal)];
        assert_eq!(said.levels, expect);
        for (words, expect) in [
            ("loud", "\"loud\" is no level; allowed: debug, info, warn, error, fatal"),
            ("", "\"\" is no level; allowed: debug, info, warn, error, fatal"),
            ("arm:=", "\"\" is no level; allowed: debug, info, warn, error, fatal"),
            (":=debug", "the name of the logger is missing before ':='"),
        ] {
            assert_eq!(said.add_level(words), Err(expect.to_owned()), "{words}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_message() {
        for severity in Severity::ALL {
            assert_eq!(Severity::from_number(severity as u32), Some(severity));
        }
        assert_eq!((Severity::from_number(0), Severity::from_number(15)), (None, None));
    }
}
