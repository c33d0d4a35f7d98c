use super::{EMPTY_ELEMENTS_BYTES_MAX, MESSAGE_BYTES_MAX, PLAN_FIELDS_MAX};
use std::fmt;
use tsuji_msg::CdrError;

/// Why messages of two types do not convert into each other.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// Both types have fields that the other has not, and no rule lists which belong together.
    Unmatched {
        /// The type of ROS 1.
        ros1: String,
        /// The type of ROS 2.
        ros2: String,
        /// Fields that ROS 1 alone has.
        only_ros1: Vec<String>,
        /// Fields that ROS 2 alone has.
        only_ros2: Vec<String>,
    },
    /// Two fields that belong together have types that do not convert.
    Types {
        /// The field, as ROS 2 names it.
        field: String,
        /// Its type in ROS 1.
        ros1: String,
        /// Its type in ROS 2.
        ros2: String,
    },
    /// A rule of the mapping does not fit the types.
    Rule {
        /// The type of ROS 1.
        ros1: String,
        /// The type of ROS 2.
        ros2: String,
        /// What is wrong.
        problem: String,
    },
    /// The types have more than [`PLAN_FIELDS_MAX`] fields.
    TooLarge {
        /// The type of ROS 2.
        ros2: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmatched { ros1, ros2, only_ros1, only_ros2 } => write!(
                f,
                "{ros1} and {ros2} do not convert: only ROS 1 has {}, only ROS 2 has {}; a mapping rule with \
                 `fields_1_to_2` can say which belong together",
                only_ros1.join(", "),
                only_ros2.join(", ")
            ),
            Self::Types { field, ros1, ros2 } => {
                write!(f, "field `{field}`: {ros1} of ROS 1 and {ros2} of ROS 2 do not convert")
            }
            Self::Rule { ros1, ros2, problem } => {
                write!(f, "the mapping rule for {ros1} and {ros2}: {problem}")
            }
            Self::TooLarge { ros2 } => {
                write!(
                    f,
                    "{ros2}: the type has too many fields; allowed: at most {PLAN_FIELDS_MAX}"
                )
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Why a message does not convert. Boxed inside, so that results on the hot path stay one word.
#[derive(Clone, PartialEq, Eq)]
pub struct ConvertError(Box<Detail>);

#[derive(Clone, PartialEq, Eq)]
struct Detail {
    offset: usize,
    field: String,
    problem: ConvertProblem,
}

/// What is wrong at the offset of a [`ConvertError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertProblem {
    /// The bytes end inside a value.
    Truncated {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A list claims more elements than the remaining bytes can hold.
    Length {
        /// Elements claimed.
        claimed: usize,
        /// Bytes that remain.
        left: usize,
    },
    /// The encapsulation header is not plain CDR in either byte order.
    Encapsulation,
    /// A string in CDR does not end with NUL.
    Terminator,
    /// A string or list is longer than the type of the other side allows.
    Bound {
        /// Length found.
        length: usize,
        /// Length allowed.
        bound: usize,
    },
    /// A list has not the length that the array of the other side has.
    Count {
        /// Length found.
        length: usize,
        /// Length needed.
        needed: usize,
    },
    /// A number does not fit into its type on the other side.
    Range {
        /// The number.
        value: i128,
        /// The type.
        to: &'static str,
    },
    /// A list has too many elements without bytes.
    EmptyElements {
        /// Elements claimed.
        claimed: usize,
    },
    /// The result would be longer than [`MESSAGE_BYTES_MAX`].
    TooLong,
}

impl ConvertError {
    #[cold]
    pub(super) fn new(offset: usize, problem: ConvertProblem) -> Self {
        Self(Box::new(Detail { offset, field: String::new(), problem }))
    }

    #[cold]
    pub(super) fn header(error: CdrError) -> Self {
        use tsuji_msg::CdrProblem::Truncated;
        let problem = match *error.problem() {
            Truncated { needed, left } => ConvertProblem::Truncated { needed, left },
            _ => ConvertProblem::Encapsulation,
        };
        Self::new(error.offset(), problem)
    }

    /// The same error in a field, if it has none yet.
    #[cold]
    pub(super) fn within(mut self, field: &str) -> Self {
        if self.0.field.is_empty() {
            self.0.field.push_str(field);
        }
        self
    }

    /// The same error with `bytes` more before it.
    #[cold]
    pub(super) fn behind(mut self, bytes: usize) -> Self {
        self.0.offset += bytes;
        self
    }

    /// Byte offset in the message that was read.
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// Path of the field, such as `header.stamp` or `poses[].position`; empty for the message itself.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// What is wrong.
    pub fn problem(&self) -> &ConvertProblem {
        &self.0.problem
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.field.is_empty() {
            write!(f, "{}: ", self.0.field)?;
        }
        write!(f, "byte {}: {}", self.0.offset, self.0.problem)
    }
}

impl std::error::Error for ConvertError {}

impl fmt::Display for ConvertProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, left } => {
                write!(f, "the message ends here: {needed} bytes needed, {left} left")
            }
            Self::Length { claimed, left } => {
                write!(f, "a length of {claimed} is more than the {left} bytes left can hold")
            }
            Self::Encapsulation => f.write_str(
                "the encapsulation is not understood; allowed are 00 00 (CDR, big endian) and 00 01 (CDR, little endian)",
            ),
            Self::Terminator => f.write_str("a string does not end with NUL"),
            Self::Bound { length, bound } => {
                write!(f, "a length of {length}; allowed are at most {bound}")
            }
            Self::Count { length, needed } => {
                write!(f, "a length of {length}; allowed is {needed} alone")
            }
            Self::Range { value, to } => write!(f, "the number {value} does not fit into {to}"),
            Self::EmptyElements { claimed } => write!(
                f,
                "{claimed} elements without bytes; allowed are at most {EMPTY_ELEMENTS_BYTES_MAX} bytes of them in CDR"
            ),
            Self::TooLong => {
                write!(f, "the converted message would be longer than {MESSAGE_BYTES_MAX} bytes")
            }
        }
    }
}

tsuji_msg::__sentences! {
    PlanError,
    ConvertError,
}
