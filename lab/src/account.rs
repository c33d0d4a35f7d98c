//! What has come of a publisher's samples, by the numbers inside them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::picture::{Damaged, Pictures};

/// The samples of one publisher, which numbers them from 0, at one reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// The number that is to come.
    next: u64,
    /// Numbers that others have overtaken, at most [`MISSING_MAX`]; beyond it the oldest count as lost for
    /// ever.
    missing: BTreeSet<u64>,
    given_up: u64,
    wrong: Wrong,
}

/// What was not as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wrong {
    /// Samples that did not come.
    pub(crate) lost: u64,
    /// Samples that came once more.
    pub(crate) repeated: u64,
    /// Samples that came behind a later one.
    pub(crate) disordered: u64,
    /// Samples that were not as they were drawn.
    pub(crate) damaged: u64,
}

impl Account {
    /// Enters a picture. Answers its number if it can be read.
    pub(crate) fn enter(&mut self, pictures: &Pictures, seen: &[u8]) -> Option<u64> {
        match pictures.check(seen) {
            Ok(number) => {
                self.count(number);
                Some(number)
            }
            Err(Damaged) => {
                self.wrong.damaged += 1;
                None
            }
        }
    }

    fn count(&mut self, number: u64) {
        if number < self.next {
            match self.missing.remove(&number) {
                true => self.wrong.disordered += 1,
                false => self.wrong.repeated += 1,
            }
            return;
        }
        let first_kept = number.saturating_sub(MISSING_MAX).max(self.next);
        self.given_up += first_kept - self.next;
        self.missing.extend(first_kept..number);
        while MISSING_MAX < self.missing.len() as u64 {
            self.missing.pop_first();
            self.given_up += 1;
        }
        self.next = number + 1;
    }

    /// The number that is to come.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// What was wrong up to the newest sample that has come.
    pub(crate) fn wrong(&self) -> Wrong {
        Wrong { lost: self.given_up + self.missing.len() as u64, ..self.wrong }
    }
}

const MISSING_MAX: u64 = 10_000;

impl Wrong {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            lost: self.lost + other.lost,
            repeated: self.repeated + other.repeated,
            disordered: self.disordered + other.disordered,
            damaged: self.damaged + other.damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[u64], expect: [u64; 3]) {
        let pictures = Pictures::new(64);
        let mut account = Account::default();
        let mut canvas = [0; 64];
        for number in numbers {
            pictures.draw(*number, &mut canvas);
            assert_eq!(account.enter(&pictures, &canvas), Some(*number));
        }
        let Wrong { lost, repeated, disordered, .. } = account.wrong();
        assert_eq!([lost, repeated, disordered], expect, "{numbers:?}");
    }

    #[test]
    fn what_is_lost_repeated_and_disordered_is_told_apart() {
        check(&[0, 1, 2], [0, 0, 0]);
        check(&[0, 2], [1, 0, 0]);
        check(&[2], [2, 0, 0]);
        check(&[0, 1, 1, 0, 2], [0, 2, 0]);
        check(&[0, 2, 1, 3], [0, 0, 1]);
        check(&[0, 2, 1, 1], [0, 1, 1]);
        check(&[0, 50_000], [49_999, 0, 0]);
    }

    #[test]
    fn a_damaged_picture_has_no_number() {
        let mut account = Account::default();
        assert_eq!(account.enter(&Pictures::new(64), &[1; 64]), None);
        assert_eq!((account.wrong().damaged, account.next()), (1, 0));
    }

    #[test]
    fn what_was_wrong_of_two_is_added() {
        let wrong = Wrong { lost: 1, repeated: 2, disordered: 3, damaged: 4 };
        assert_eq!(wrong.and(wrong).lost, 2);
    }
}
