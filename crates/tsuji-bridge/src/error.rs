//! What can fail when a bridge is made.

use std::fmt;

/// What is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Something of the settings has to be another.
    Invalid,
    /// A port is taken, or may not be used.
    Address,
    /// The system or the node API refused something.
    Unexpected,
}

/// Why a bridge could not be made. `{:?}` is the same sentence as `{}`, and `{:#?}` shows the fields.
pub struct Error {
    kind: ErrorKind,
    text: String,
}

/// What may fail so.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, text)
    }

    /// What is done about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let Self { kind, text } = self;
        f.debug_struct("Error").field("kind", kind).field("text", text).finish()
    }
}

impl std::error::Error for Error {}

impl From<tsuji::Error> for Error {
    fn from(error: tsuji::Error) -> Self {
        Self::new(ErrorKind::Unexpected, error.to_string())
    }
}
