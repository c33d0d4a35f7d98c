use std::fmt;
use std::io;

/// What goes wrong with a recording, and where. `{:?}` is the same sentence as `{}`, and `{:#?}` shows the fields.
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

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let Self { kind, text, source } = self;
        let mut fields = f.debug_struct("Error");
        fields.field("kind", kind).field("text", text).field("source", source).finish()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_sentence_where_main_returns_it() {
        let cause = io::Error::from_raw_os_error(28);
        let expect = format!("walk.mcap: {cause}");
        let error = Error::disk("walk.mcap", cause);
        assert_eq!((format!("{error:?}"), error.to_string()), (expect.clone(), expect));
        assert!(format!("{error:#?}").contains("kind: Disk"), "{error:#?}");
    }
}
