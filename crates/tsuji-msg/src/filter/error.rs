//! Why an expression is no filter.

use std::fmt;

/// Why an expression is no filter: where, what was found, what was expected.
#[derive(Clone, PartialEq, Eq)]
pub struct FilterError {
    /// Column in the expression, or in the parameter, in characters from 1.
    pub column: usize,
    /// The parameter that is at fault, if it is not the expression.
    pub parameter: Option<usize>,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl FilterError {
    pub(super) fn new(
        column: usize,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self { column, parameter: None, found: found.into(), expected: expected.into() }
    }

    pub(super) fn in_parameter(self, number: usize) -> Self {
        Self { parameter: Some(number), ..self }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.parameter {
            write!(f, "parameter %{number}, ")?;
        }
        let Self { column, found, expected, .. } = self;
        write!(f, "column {column}: found {found}; expected {expected}")
    }
}

impl std::error::Error for FilterError {}

/// A piece of text as errors show it: short, and without what a terminal would act on.
pub(super) fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    let mut shown: String = text.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if SHOWN_MAX < text.chars().count() {
        shown.push('…');
    }
    // A quote is shown as it was written.
    format!("`{}`", shown.replace("\\'", "'"))
}

/// The name that was probably meant: the nearest one, if it is near enough.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far_max = 1 + name.chars().count() / 4;
    let distances = names.map(|it| (distance(&name.to_lowercase(), &it.to_lowercase()), it));
    distances.filter(|(far, _)| *far <= far_max).min_by_key(|(far, _)| *far).map(|(_, it)| it)
}

/// How many letters must be put in, left out or changed to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
