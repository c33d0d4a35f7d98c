use std::error::Error as StdError;
use std::fmt;

/// The result of a call on a transport.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and whether trying again can help.
pub struct Error {
    kind: ErrorKind,
    operation: &'static str,
    context: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` met during `operation`.
    pub fn new(kind: ErrorKind, operation: &'static str) -> Self {
        Self { kind, operation, context: None, source: None }
    }

    /// The same error, saying what it is about and what would be allowed.
    #[must_use]
    pub fn about(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// The same error, with the one that caused it.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What the caller can act on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.kind)?;
        if let Some(context) = &self.context {
            write!(f, ": {context}")?;
        }
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// What the caller can act on. One kind per reaction, not one per cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No room now; a later try may succeed, and the room cell rings when it may.
    Busy,
    /// The endpoint, the peer or the transport is gone; reopen or take another link.
    Closed,
    /// The sample is larger than the transport accepts.
    TooLarge,
    /// Asked for something that the capability does not declare.
    Unsupported,
    /// An argument that can never work.
    Invalid,
    /// The machine has no more of something (memory, descriptors, cells); another link may have.
    Exhausted,
    /// The system failed in a way nobody foresaw; see the source.
    Unexpected,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "no room now",
            Self::Closed => "the other side is gone",
            Self::TooLarge => "sample too large",
            Self::Unsupported => "not supported by this transport",
            Self::Invalid => "invalid",
            Self::Exhausted => "the machine has no more of it",
            Self::Unexpected => "unexpected failure",
        })
    }
}
