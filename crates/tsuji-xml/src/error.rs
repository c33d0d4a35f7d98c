use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::spelling::distance;

/// The most errors that are told of one file; the rest is counted.
pub const ERRORS_MAX: usize = 50;

/// The most characters of a word that a message repeats.
const WORD_LENGTH_MAX: usize = 60;

/// Everything that is wrong with a file and those that it includes.
#[derive(Clone, PartialEq, Eq)]
pub struct XmlErrors {
    /// At least one and at most [`ERRORS_MAX`].
    pub errors: Vec<XmlError>,
    /// How many more there are.
    pub omitted: usize,
}

impl XmlErrors {
    /// In the order of the file; of several files, in the order in which they are named first. There is at least one.
    pub fn new(mut errors: Vec<XmlError>) -> Self {
        let mut files: Vec<Arc<str>> = Vec::new();
        for error in &errors {
            if !files.contains(&error.file) {
                files.push(error.file.clone());
            }
        }
        errors.sort_by_key(|error| {
            let file = files.iter().position(|it| *it == error.file);
            (file, error.line, error.column)
        });
        let omitted = errors.len().saturating_sub(ERRORS_MAX);
        errors.truncate(ERRORS_MAX);
        Self { errors, omitted }
    }
}

impl fmt::Display for XmlErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.errors.iter().enumerate() {
            let separator = if at > 0 { "\n" } else { "" };
            write!(f, "{separator}{error}")?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl fmt::Debug for XmlErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for XmlErrors {}

/// One thing that is wrong, where it is, and what is allowed instead.
///
/// Prints as `camera.xml:4:17: "sharm" is not a transport; allowed: inproc, shm`.
#[derive(Clone, PartialEq, Eq)]
pub struct XmlError {
    /// The file, as messages name it.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
    /// The offending word, shortened if it is long.
    pub word: String,
    /// What is wrong with it.
    pub problem: String,
    /// What is allowed in its place, where that can be listed.
    pub allowed: Vec<String>,
}

impl XmlError {
    /// The allowed word that was most likely meant.
    pub fn suggestion(&self) -> Option<&str> {
        let limit = self.word.chars().count().div_ceil(3).min(3);
        let near = self.allowed.iter().map(|allowed| (distance(&self.word, allowed), allowed));
        let near = near.filter(|(distance, _)| *distance <= limit);
        near.min_by_key(|(distance, _)| *distance).map(|(_, allowed)| allowed.as_str())
    }
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, word, problem, allowed } = self;
        write!(f, "{file}:{line}:{column}: {word:?} {problem}")?;
        if let Some(suggestion) = self.suggestion() {
            write!(f, " (did you mean {suggestion:?}?)")?;
        }
        if !allowed.is_empty() {
            write!(f, "; allowed: {}", allowed.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for XmlError {}

pub(crate) fn shortened(word: &str) -> String {
    match word.char_indices().nth(WORD_LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expect: Option<&str>) {
        let allowed = ["inproc", "shm", "cyclonedds", "fastdds", "zenoh"];
        let error = XmlError {
            file: "t.xml".into(),
            line: 1,
            column: 1,
            word: word.to_owned(),
            problem: String::new(),
            allowed: allowed.map(str::to_owned).to_vec(),
        };
        assert_eq!(error.suggestion(), expect);
    }

    #[test]
    fn suggestions() {
        check("sharm", Some("shm"));
        check("cyclone-dds", Some("cyclonedds"));
        check("zeno", Some("zenoh"));
        check("x", None);
        check("bluetooth", None);
        check("", None);
    }
}
