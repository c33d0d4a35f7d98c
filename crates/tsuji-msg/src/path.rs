//! Paths to values inside messages, such as `poses[3].position.x`.

/// One step on the way into a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// To the field of this name.
    Field(&'a str),
    /// To the element at this index of an array or sequence.
    Element(usize),
}

/// The rest of a path: names with `.` between them and `[index]` behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a>(&'a str);

impl<'a> Path<'a> {
    /// A whole path. What does not read as one leads nowhere.
    pub fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// Whether it ends here.
    #[inline]
    pub fn is_end(self) -> bool {
        self.0.is_empty()
    }

    /// The text that is left of it.
    pub(crate) fn text(self) -> &'a str {
        self.0
    }

    /// The name of a field, if one comes next, and the path behind it.
    pub fn field(self) -> Option<(&'a str, Self)> {
        let (name, rest) = self.0.split_at(self.0.find(['.', '[']).unwrap_or(self.0.len()));
        if name.is_empty() { None } else { Some((name, Self::behind(rest)?)) }
    }

    /// The index of an element, if one comes next, and the path behind it.
    pub fn element(self) -> Option<(usize, Self)> {
        let (digits, rest) = self.0.strip_prefix('[')?.split_once(']')?;
        if !digits.bytes().all(|it| it.is_ascii_digit()) {
            return None;
        }
        Some((digits.parse().ok()?, Self::behind(rest)?))
    }

    /// The path behind `step`, if that comes next.
    pub(crate) fn past(self, step: Step<'_>) -> Option<Self> {
        let (next, rest) = self.step()?;
        (next == step).then_some(rest)
    }

    /// What comes next, and the path behind it.
    pub(crate) fn step(self) -> Option<(Step<'a>, Self)> {
        let field = || self.field().map(|(name, rest)| (Step::Field(name), rest));
        let element = || self.element().map(|(index, rest)| (Step::Element(index), rest));
        field().or_else(element)
    }

    /// What follows a name or an index: nothing, an index, or a point and a name.
    fn behind(rest: &'a str) -> Option<Self> {
        match rest.strip_prefix('.') {
            Some(name) => (!name.is_empty() && !name.starts_with(['.', '['])).then_some(Self(name)),
            None => (rest.is_empty() || rest.starts_with('[')).then_some(Self(rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_step_by_step() {
        use Step::{Element, Field};
        let steps = |text| {
            let (mut path, mut steps) = (Path::new(text), Vec::new());
            while let Some((step, rest)) = path.step() {
                steps.push(step);
                path = rest;
            }
            path.is_end().then_some(steps)
        };
        assert_eq!(steps("ranges"), Some(vec![Field("ranges")]));
        let deep = [Field("poses"), Element(3), Field("position"), Field("x")];
        assert_eq!(steps("poses[3].position.x"), Some(deep.to_vec()));
        assert_eq!(steps("a[0][1]"), Some(vec![Field("a"), Element(0), Element(1)]));
        for bad in [
            ".",
            "a.",
            ".a",
            "a..b",
            "a.[0]",
            "a[",
            "a[]x",
            "a[x]",
            "a[+1]",
            "a[-1]",
            "a[0]b",
            "a]",
            "a[99999999999999999999]",
        ] {
            assert!(
                !matches!(steps(bad), Some(steps) if bad != "a]" || steps != [Field("a]")]),
                "{bad}"
            );
        }
    }
}
