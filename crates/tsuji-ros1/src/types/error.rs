use std::fmt;

/// Why there is no such type of ROS 1.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeError {
    /// The name is none.
    Name(String),
    /// A line of a definition is not understood.
    Syntax {
        /// The type whose definition it is.
        name: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
        /// What is allowed.
        allowed: String,
    },
    /// A type that another uses has no definition.
    Missing {
        /// The name.
        name: String,
        /// The type that uses it.
        used_by: String,
    },
    /// A message contains itself.
    Cycle {
        /// The way round.
        path: String,
    },
    /// The type goes beyond a limit.
    Limit {
        /// The type.
        name: String,
        /// What is too much.
        what: String,
        /// How much is allowed.
        allowed: String,
    },
    /// A type of ROS 2 has no counterpart in ROS 1.
    NoCounterpart {
        /// The type of ROS 2.
        name: String,
        /// The field in the way; empty if it is the type itself.
        field: String,
        /// Why.
        problem: String,
    },
}

impl TypeError {
    pub(super) fn too_deep(name: &str) -> Self {
        let what = "messages are nested deeper".to_owned();
        let allowed = format!("at most {} levels", tsuji_msg::NESTING_MAX);
        Self::Limit { name: name.into(), what, allowed }
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => {
                write!(f, "`{name}` names no type of ROS 1; allowed: package/Name")
            }
            Self::Syntax { name, line, problem, allowed } => {
                write!(f, "{name}: line {line}: {problem}; allowed: {allowed}")
            }
            Self::Missing { name, used_by } => {
                write!(f, "no ROS 1 definition of {name}, which {used_by} uses")
            }
            Self::Cycle { path } => write!(f, "a message contains itself: {path}"),
            Self::Limit { name, what, allowed } => write!(f, "{name}: {what}; allowed: {allowed}"),
            Self::NoCounterpart { name, field, problem } if field.is_empty() => {
                write!(f, "{name}: {problem}")
            }
            Self::NoCounterpart { name, field, problem } => {
                write!(f, "{name}: field `{field}`: {problem}")
            }
        }
    }
}

impl std::error::Error for TypeError {}

tsuji_msg::__sentences! {
    TypeError,
}
