//! What is found in a sample, and how it is compared.

use std::borrow::Cow;
use std::cmp::Ordering;

/// The value of a field of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// The sequence has no such element.
    Absent,
    Integer(i128),
    Float(f64),
    Text(Cow<'a, str>),
}

/// How two values are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// One of them is not there.
    Unknown,
    /// None where one of them is NaN.
    Ordered(Option<Ordering>),
}

impl Found<'_> {
    pub(super) fn compare(&self, other: &Found<'_>) -> Compared {
        Compared::Ordered(match (self, other) {
            (Self::Absent, _) | (_, Found::Absent) => return Compared::Unknown,
            (Self::Integer(a), Found::Integer(b)) => Some(a.cmp(b)),
            (Self::Text(a), Found::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (a, b) => a.float().zip(b.float()).and_then(|(a, b)| a.partial_cmp(&b)),
        })
    }

    fn float(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Absent | Self::Text(_) => None,
        }
    }
}
