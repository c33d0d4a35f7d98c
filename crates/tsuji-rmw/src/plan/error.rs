use std::fmt;

/// Why a type has no plan, or a message did not become bytes or the other way round.
///
/// Boxed inside, so that results on the hot path stay one word.
#[derive(Clone, PartialEq, Eq)]
pub struct PlanError(Box<Detail>);

#[derive(Clone, PartialEq, Eq)]
struct Detail {
    ty: String,
    field: String,
    offset: Option<usize>,
    problem: PlanProblem,
}

/// What a caller can do about a [`PlanError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanErrorKind {
    /// The type cannot be carried.
    Unsupported,
    /// The bytes are not such a message, or the message breaks a limit of its type.
    Invalid,
    /// There is no memory.
    NoMemory,
    /// The output is too small.
    NoRoom,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanProblem {
    /// The type support leads to no introspection, neither for C nor for C++.
    /// What it said itself is in it, such as that a library could not be loaded; empty where it said nothing.
    NoIntrospection(String),
    /// The introspection contradicts itself: it is of another ROS distribution than this library.
    Table(&'static str),
    /// A field has a type that messages in CDR do not have here.
    Type(&'static str),
    /// The bytes end inside a value.
    Truncated {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A length claims more elements than the remaining bytes can hold.
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
    /// A string does not end with NUL.
    Terminator,
    /// A character of a wide string has more than 16 bits.
    Wide(u32),
    /// More elements or characters than the type allows.
    Bound {
        /// Length found.
        length: usize,
        /// Length allowed.
        bound: usize,
    },
    /// More elements or characters than a 32-bit count can say.
    TooLong(usize),
    /// A string or sequence of a C message, or the message itself, is a null pointer.
    Null,
    /// The elements of a sequence are elsewhere than in the processor's memory.
    Elsewhere,
    /// There is no memory.
    NoMemory,
    /// The output has no room for the next value.
    NoRoom {
        /// Bytes that the value needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
}

impl PlanError {
    /// An error of a type.
    #[cold]
    pub(super) fn new(problem: PlanProblem) -> Self {
        let (ty, field) = Default::default();
        Self(Box::new(Detail { ty, field, offset: None, problem }))
    }

    /// An error at a byte of a sample, counted from its header.
    #[cold]
    pub(super) fn at(offset: usize, problem: PlanProblem) -> Self {
        let mut error = Self::new(problem);
        error.0.offset = Some(offset);
        error
    }

    /// The same error seen from the message that holds `field`.
    #[cold]
    pub(super) fn within(mut self, field: &str) -> Self {
        let path = &mut self.0.field;
        if path.is_empty() {
            path.push_str(field);
        } else {
            let joint = if path.starts_with('[') { "" } else { "." };
            *path = format!("{field}{joint}{path}");
        }
        self
    }

    /// The same error seen from the array or sequence whose element it hit.
    #[cold]
    pub(super) fn within_element(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    /// The same error, of a message of this type.
    #[cold]
    pub(super) fn of(mut self, ty: &str) -> Self {
        self.0.ty = ty.to_owned();
        self
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> PlanErrorKind {
        match self.0.problem {
            PlanProblem::NoIntrospection(_) | PlanProblem::Table(_) | PlanProblem::Type(_) => {
                PlanErrorKind::Unsupported
            }
            PlanProblem::Elsewhere => PlanErrorKind::Unsupported,
            PlanProblem::NoMemory => PlanErrorKind::NoMemory,
            PlanProblem::NoRoom { .. } => PlanErrorKind::NoRoom,
            _ => PlanErrorKind::Invalid,
        }
    }

    /// The type's name, such as `std_msgs/msg/String`; empty when it could not be told.
    pub fn ty(&self) -> &str {
        &self.0.ty
    }

    /// Path of the field, such as `header.stamp.sec`; empty when the whole is at fault.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// What is wrong.
    pub fn problem(&self) -> &PlanProblem {
        &self.0.problem
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail { ty, field, offset, problem } = &*self.0;
        if !ty.is_empty() {
            f.write_str(ty)?;
            if !field.is_empty() {
                write!(f, ", {field}")?;
            }
            f.write_str(": ")?;
        }
        if let Some(offset) = offset {
            write!(f, "byte {offset}: ")?;
        }
        problem.fmt(f)
    }
}

impl fmt::Debug for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlanError({self})")
    }
}

impl std::error::Error for PlanError {}

impl fmt::Display for PlanProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoIntrospection(why) => {
                f.write_str("the type support has no introspection")?;
                if !why.is_empty() {
                    write!(f, ": {why}")?;
                }
                f.write_str(
                    "; allowed: messages generated with rosidl_typesupport_introspection_c or _cpp, whose libraries can be \
                     loaded",
                )
            }
            Self::Table(what) => write!(
                f,
                "the introspection of the type contradicts itself ({what}); is it of another ROS distribution?"
            ),
            Self::Type(what) => write!(f, "{what} cannot be carried"),
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
            Self::Terminator => f.write_str("a string does not end with NUL"),
            Self::Wide(unit) => {
                write!(f, "a character of a wide string is {unit:#x}; allowed are 16 bits")
            }
            Self::Bound { length, bound } => {
                write!(f, "a length of {length}; allowed are at most {bound}")
            }
            Self::TooLong(length) => {
                write!(f, "a length of {length} is more than CDR can count")
            }
            Self::Null => f.write_str("a null pointer"),
            Self::Elsewhere => f.write_str(
                "a buffer outside of the processor's memory; allowed: subscriptions that accept the backend \"cpu\", and \
                 messages that hold their numbers themselves",
            ),
            Self::NoMemory => f.write_str("no memory"),
            Self::NoRoom { needed, left } => {
                write!(f, "the output has no room: {needed} bytes needed, {left} left")
            }
        }
    }
}
