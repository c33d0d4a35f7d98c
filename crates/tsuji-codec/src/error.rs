use std::fmt;

/// Why a text or bytes are no message of a type, or no JSON, CBOR or BSON at all: which field, what was found there,
/// and what was expected.
///
/// Boxed inside, so that results on the hot path stay one word.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldError(Box<Detail>);

#[derive(Clone, PartialEq, Eq)]
struct Detail {
    field: String,
    found: String,
    expected: String,
    offset: usize,
}

impl FieldError {
    #[cold]
    pub(crate) fn new(
        offset: usize,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let (found, expected) = (found.into(), expected.into());
        Self(Box::new(Detail { field: String::new(), found, expected, offset }))
    }

    /// Path of the field, such as `pose.position.x` or `data[3]`; empty where the message itself is at fault.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// What was found.
    pub fn found(&self) -> &str {
        &self.0.found
    }

    /// What was expected.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// Byte offset in what was read.
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// The same error seen from the message that holds `field`.
    #[cold]
    #[must_use]
    pub(crate) fn within(mut self, field: &str) -> Self {
        let path = &mut self.0.field;
        let joint = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        *path = format!("{field}{joint}{path}");
        self
    }

    /// The same error seen from the list whose element at `index` it hit.
    #[cold]
    #[must_use]
    pub(crate) fn within_element(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail { field, found, expected, offset } = &*self.0;
        if !field.is_empty() {
            write!(f, "field `{field}`: ")?;
        }
        write!(f, "found {found}; expected {expected} (byte {offset})")
    }
}

impl fmt::Debug for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for FieldError {}

/// The beginning of a text, as errors show it.
pub(crate) fn shortened(text: &[u8]) -> String {
    const SHOWN: usize = 40;
    // A character has at most four bytes, so as many characters as are shown are in these.
    let beginning = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN)]);
    let mut short: String = beginning.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{short}`")
}
