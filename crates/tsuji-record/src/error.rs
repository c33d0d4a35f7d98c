use std::fmt;
use std::io;

/// What goes wrong with a recording, and where.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked for can never be done.
    Invalid,
    /// The disk refused; it may be full.
    Disk,
    /// The file is no recording, or none that is understood.
    Format,
    /// tsuji refused.
    Node,
}

/// The result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), source: None }
    }

    pub(crate) fn disk(what: impl fmt::Display, source: io::Error) -> Self {
        Self {
            kind: ErrorKind::Disk,
            text: format!("{what}: {source}"),
            source: Some(source.into()),
        }
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|it| &**it as _)
    }
}

#[cfg(feature = "node")]
impl From<tsuji::Error> for Error {
    fn from(error: tsuji::Error) -> Self {
        Self { kind: ErrorKind::Node, text: error.to_string(), source: Some(Box::new(error)) }
    }
}
