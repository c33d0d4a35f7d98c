use std::error::Error as StdError;
use std::fmt;

use tsuji_transport::ErrorKind as TransportKind;

/// The result of a call on the node API.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, about what, and what is allowed.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind`; `what` says where and what is allowed.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), source: None }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, what)
    }

    pub(crate) fn closed(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Closed, what)
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
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
        f.write_str(&self.what)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<tsuji_transport::Error> for Error {
    fn from(error: tsuji_transport::Error) -> Self {
        let kind = match error.kind() {
            TransportKind::Busy => ErrorKind::Busy,
            TransportKind::Closed => ErrorKind::Closed,
            TransportKind::TooLarge => ErrorKind::TooLarge,
            TransportKind::Unsupported => ErrorKind::Unsupported,
            TransportKind::Invalid => ErrorKind::Invalid,
            TransportKind::Exhausted => ErrorKind::Exhausted,
            _ => ErrorKind::Unexpected,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<tsuji_msg::CdrError> for Error {
    fn from(error: tsuji_msg::CdrError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// What the caller can act on. One kind per reaction, not one per cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument that can never work: a name, a QoS, a value.
    Invalid,
    /// A subscription that keeps all, or the memory, is full; a later try may succeed.
    Busy,
    /// What was waited for did not happen in time. Of a call: the request was sent, and may have been
    /// or may yet be performed.
    Timeout,
    /// No server was ready, or not in time. Nothing was sent; there may be one later.
    NoServer,
    /// Every server that had the request left before it answered. It may have been performed.
    ServerLost,
    /// The context is shut down, or this is a forked child of the process that made it.
    Closed,
    /// The sample is larger than any road of this publisher carries.
    TooLarge,
    /// The machine has no more of something: memory, descriptors, disk.
    Exhausted,
    /// Not in this build or not for this type.
    Unsupported,
    /// The system failed in a way nobody foresaw; see the source.
    Unexpected,
}
