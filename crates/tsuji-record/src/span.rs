//! From when to when something is.

/// From the earliest of some times to the latest, in nanoseconds since the Unix epoch. 0 is a time too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span(Option<(u64, u64)>);

impl Span {
    /// Takes in two times, in any order.
    pub(crate) fn extend(&mut self, a: u64, b: u64) {
        let (first, last) = self.0.unwrap_or((a, a));
        self.0 = Some((first.min(a).min(b), last.max(a).max(b)));
    }

    /// Takes in another; nothing if there is nothing in it.
    #[cfg(feature = "node")]
    pub(crate) fn join(&mut self, other: Self) {
        if let Some((first, last)) = other.0 {
            self.extend(first, last);
        }
    }

    /// The earliest, or 0 without any.
    pub(crate) fn first_ns(self) -> u64 {
        self.0.map_or(0, |it| it.0)
    }

    /// The latest, or 0 without any.
    pub(crate) fn last_ns(self) -> u64 {
        self.0.map_or(0, |it| it.1)
    }
}
