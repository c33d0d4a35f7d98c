//! From which level on each logger is heard, as a value.

use std::collections::BTreeMap;

use crate::Severity;

/// Loggers with a level of their own. Further ones are refused.
pub const LEVELS_MAX: usize = 4096;

/// The most bytes of the name of a logger whose level is set.
pub const NAME_BYTES_MAX: usize = 1024;

/// From which level on each logger is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    default: Severity,
    own: BTreeMap<String, Severity>,
}

/// What stands between a logger and its child.
pub(crate) const SEPARATOR: char = '.';

/// The level of what nobody has said anything of, as in rcutils.
const DEFAULT: Severity = Severity::Info;

impl Levels {
    pub(crate) fn new() -> Self {
        Self { default: DEFAULT, own: BTreeMap::new() }
    }

    /// What was set for this very logger; for the empty name the default.
    pub(crate) fn own(&self, logger: &str) -> Option<Severity> {
        if logger.is_empty() { Some(self.default) } else { self.own.get(logger).copied() }
    }

    /// Sets the level of a logger, or with `None` leaves it to those above it; of the empty name the default.
    pub(crate) fn set(&mut self, logger: &str, level: Option<Severity>) -> Result<(), String> {
        match level {
            _ if logger.is_empty() => self.default = level.unwrap_or(DEFAULT),
            None => {
                self.own.remove(logger);
            }
            Some(_) if NAME_BYTES_MAX < logger.len() => {
                return Err(format!(
                    "a logger's name of {} bytes; allowed: at most {NAME_BYTES_MAX}",
                    logger.len()
                ));
            }
            Some(_) if self.own.len() == LEVELS_MAX && !self.own.contains_key(logger) => {
                return Err(format!("level of {logger}: {LEVELS_MAX} loggers have one already"));
            }
            Some(level) => {
                self.own.insert(logger.to_owned(), level);
            }
        }
        Ok(())
    }

    /// From which level on a logger is heard.
    pub(crate) fn effective(&self, logger: &str) -> Severity {
        ancestors(logger).find_map(|it| self.own.get(it).copied()).unwrap_or(self.default)
    }

    /// What is below this is heard of no logger.
    pub(crate) fn lowest(&self) -> Severity {
        self.own.values().copied().fold(self.default, Ord::min)
    }
}

/// A logger, then the one above it, and so on.
pub(crate) fn ancestors(logger: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(logger), |it| Some(it.rsplit_once(SEPARATOR)?.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_nearest_above_counts() {
        let mut levels = Levels::new();
        assert_eq!(levels.effective("a.b"), Severity::Info);
        levels.set("a", Some(Severity::Error)).unwrap();
        levels.set("a.b.c", Some(Severity::Debug)).unwrap();
        levels.set("", Some(Severity::Warn)).unwrap();
        for (logger, expect) in [
            ("a", Severity::Error),
            ("a.b", Severity::Error),
            ("a.b.c", Severity::Debug),
            ("a.b.c.d", Severity::Debug),
            ("a.bc", Severity::Error),
            ("ab", Severity::Warn),
            ("", Severity::Warn),
        ] {
            assert_eq!(levels.effective(logger), expect, "{logger}");
        }
        assert_eq!(levels.lowest(), Severity::Debug);
        assert_eq!((levels.own("a.b"), levels.own("a")), (None, Some(Severity::Error)));
        levels.set("a.b.c", None).unwrap();
        levels.set("", None).unwrap();
        assert_eq!(levels.lowest(), Severity::Info);
        assert_eq!(levels.effective("a.b.c"), Severity::Error);
    }

    #[test]
    fn too_many_and_too_long_are_refused() {
        let mut levels = Levels::new();
        for number in 0..LEVELS_MAX {
            levels.set(&format!("l{number}"), Some(Severity::Warn)).unwrap();
        }
        let error = levels.set("one.more", Some(Severity::Warn)).unwrap_err();
        assert_eq!(error, "level of one.more: 4096 loggers have one already");
        levels.set("l7", Some(Severity::Debug)).unwrap();
        levels.set("l7", None).unwrap();
        levels.set("one.more", Some(Severity::Warn)).unwrap();
        let error = levels.set(&"x".repeat(1025), Some(Severity::Warn)).unwrap_err();
        assert_eq!(error, "a logger's name of 1025 bytes; allowed: at most 1024");
    }

    proptest! {
        /// Nobody is heard below the lowest, and whoever has a level of its own has that.
        #[test]
        fn levels_keep_to_what_was_set(
            set in prop::collection::vec(("[ab](\\.[ab]){0,3}", prop::option::of(0..5usize)), 0..20),
            asked in "[ab](\\.[ab]){0,3}",
        ) {
            let mut levels = Levels::new();
            for (logger, level) in set {
                levels.set(&logger, level.map(|it| Severity::ALL[it])).unwrap();
            }
            let effective = levels.effective(&asked);
            prop_assert!(levels.lowest() <= effective);
            let above = asked.rsplit_once('.').map_or("", |(above, _)| above);
            prop_assert_eq!(effective, levels.own(&asked).unwrap_or_else(|| levels.effective(above)));
        }
    }
}
