//! Why no types were generated.

use std::fmt;
use tsuji_msg::Unreadable;

/// Why no Rust types were generated: the file or package, the line where there is one, and the reason.
///
/// `Debug` shows the same text as `Display`, because that is what cargo shows of a build script that returns it.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
