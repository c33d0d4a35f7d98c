use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use crate::operation::Id;

/// Why a message of a client was not obeyed: what in it, and what would have been.
///
/// What it says goes to the client as a `status` message of level error.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The operation, where it came so far.
    pub operation: Option<&'static str>,
    /// The id of the message, where it has one.
    pub id: Option<Id<'static>>,
    /// The service that was called, or the action that a goal was sent to: these are answered, in whatever way they fail.
    pub name: Option<Box<str>>,
    /// The member at fault.
    pub field: Option<&'static str>,
    /// What stands there, shortened.
    pub found: String,
    /// What may stand there.
    pub expected: Cow<'static, str>,
}

/// How much of what a client wrote a refusal repeats, in bytes.
pub(crate) const FOUND_BYTES_MAX: usize = 64;

impl Refusal {
    /// One that names an operation, for whoever finds out later: a type that is unknown, a field that does not fit.
    pub fn new(
        operation: &'static str,
        id: Option<&Id<'_>>,
        field: Option<&'static str>,
        found: impl Into<String>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        let id = id.map(|id| id.clone().into_owned());
        Self {
            operation: Some(operation),
            id,
            name: None,
            field,
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// The same of a service that was called, or an action that a goal was sent to.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.operation, self.field) {
            (Some(operation), Some(field)) => write!(f, "{operation}: {field}: ")?,
            (Some(operation), None) => write!(f, "{operation}: ")?,
            (None, Some(field)) => write!(f, "{field}: ")?,
            (None, None) => (),
        }
        write!(f, "found {}; expected {}", self.found, self.expected)
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Refusal {}

/// What stands in a message, shortened and without what a terminal would obey.
pub(crate) fn excerpt(raw: &[u8]) -> String {
    let short = &raw[..raw.len().min(FOUND_BYTES_MAX)];
    let mut text: String = String::from_utf8_lossy(short)
        .chars()
        .map(|it| if it.is_control() { char::REPLACEMENT_CHARACTER } else { it })
        .collect();
    if short.len() < raw.len() {
        text.push('…');
    }
    text
}
