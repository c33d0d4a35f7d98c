use crate::path::Step;
use std::fmt;

/// Why bytes could not be read as a message, or a message could not be written as bytes.
///
/// Boxed inside, so that results on the hot path stay one word.
#[derive(Clone, PartialEq)]
pub struct CdrError(Box<Detail>);

#[derive(Clone, PartialEq)]
struct Detail {
    offset: usize,
    field: String,
    problem: CdrProblem,
}

/// What is wrong at the offset of a [`CdrError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CdrProblem {
    /// The bytes end inside a value.
    Truncated {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A sequence claims more elements than the remaining bytes can hold.
    Length {
        /// Elements claimed.
        claimed: usize,
        /// Bytes that remain.
        left: usize,
    },
    /// The encapsulation header is not plain CDR in either byte order.
    Encapsulation([u8; 2]),
    /// A `bool` is neither 0 nor 1.
    Bool(u8),
    /// A string is not UTF-8.
    Utf8,
    /// A wide string is not UTF-16.
    Utf16,
    /// A string does not end with NUL.
    Terminator,
    /// More elements or characters than the type allows.
    Bound {
        /// Length found.
        length: usize,
        /// Length allowed.
        bound: usize,
    },
    /// A string or sequence has more elements than a 32-bit count can say.
    TooLong {
        /// Length found.
        length: usize,
    },
    /// The messages in the sequences of one sample would take more memory than is allowed.
    Memory {
        /// Elements claimed.
        claimed: usize,
        /// Bytes allowed to all sequences together.
        allowed: usize,
    },
    /// The output has no room for the next value.
    NoRoom {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// The value does not have the type that the description names.
    Type {
        /// The type that the description names.
        expected: &'static str,
    },
}

impl CdrError {
    /// An error at a byte offset, counted from the encapsulation header.
    #[cold]
    pub fn new(offset: usize, problem: CdrProblem) -> Self {
        Self(Box::new(Detail { offset, field: String::new(), problem }))
    }

    /// Byte offset from the start of the sample, its header included.
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// Path of the field, such as `header.stamp.sec`; empty when the sample itself is at fault.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// What is wrong.
    pub fn problem(&self) -> &CdrProblem {
        &self.0.problem
    }

    /// The same error seen from the message that holds `field`.
    #[cold]
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        let path = &mut self.0.field;
        if path.is_empty() {
            path.push_str(field);
        } else {
            let joint = if path.starts_with('[') { "" } else { "." };
            *path = format!("{field}{joint}{path}");
        }
        self
    }

    /// The same error seen from the array whose element at `index` it hit.
    #[cold]
    #[must_use]
    pub fn within_element(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    /// The same error seen from where `step` leads from.
    #[cold]
    #[must_use]
    pub(crate) fn within_step(self, step: Step<'_>) -> Self {
        match step {
            Step::Field(name) => self.within(name),
            Step::Element(index) => self.within_element(index),
        }
    }
}

impl fmt::Display for CdrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.field.is_empty() {
            write!(f, "{}: ", self.0.field)?;
        }
        write!(f, "byte {}: {}", self.0.offset, self.0.problem)
    }
}

impl fmt::Debug for CdrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CdrError {}

impl fmt::Display for CdrProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, left } => {
                write!(f, "the message ends here: {needed} bytes needed, {left} left")
            }
            Self::Length { claimed, left } => {
                write!(f, "a length of {claimed} is more than the {left} bytes left can hold")
            }
            Self::Encapsulation([first, second]) => write!(
                f,
                "encapsulation {first:02x} {second:02x} is not understood; allowed are 00 00 (CDR, big endian) \
                 and 00 01 (CDR, little endian)"
            ),
            Self::Bool(byte) => write!(f, "a bool is {byte}; allowed are 0 and 1"),
            Self::Memory { claimed, allowed } => write!(
                f,
                "{claimed} messages more would take the sequences beyond {allowed} bytes of memory"
            ),
            Self::Utf8 => f.write_str("a string is not UTF-8"),
            Self::Utf16 => f.write_str("a wide string is not UTF-16"),
            Self::Terminator => f.write_str("a string does not end with NUL"),
            Self::Bound { length, bound } => {
                write!(f, "a length of {length}; allowed are at most {bound}")
            }
            Self::TooLong { length } => {
                write!(f, "a length of {length}; allowed are at most {} in CDR", u32::MAX)
            }
            Self::NoRoom { needed, left } => {
                write!(f, "the output has no room: {needed} bytes needed, {left} left")
            }
            Self::Type { expected } => write!(f, "the value is not of type {expected}"),
        }
    }
}
