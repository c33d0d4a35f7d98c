//! Whether numbers come one after the other.

/// The numbers of a topic's samples, as they come.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// `None` while any will do.
    wanted: Option<u64>,
}

impl Sequence {
    pub(crate) fn from_first(number: u64) -> Self {
        Self { wanted: Some(number) }
    }

    pub(crate) fn next(&mut self, what: &str, number: u64) -> Result<(), String> {
        match self.wanted.replace(number + 1) {
            Some(wanted) if number < wanted => {
                // It may be that one came again; those that follow are in order.
                self.wanted = Some(wanted);
                Err(format!("{what} {number} came again or too late, {wanted} was next"))
            }
            Some(wanted) if wanted < number => {
                Err(format!("{what} {number} came instead of {wanted}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_order_are_told_once_each() {
        let mut order = Sequence::from_first(0);
        let mut told = Vec::new();
        for number in [0, 1, 3, 4, 4, 2, 5] {
            told.extend(order.next("frame", number).err());
        }
        assert_eq!(
            told,
            [
                "frame 3 came instead of 2",
                "frame 4 came again or too late, 5 was next",
                "frame 2 came again or too late, 5 was next",
            ]
        );
        let mut any = Sequence::default();
        assert!(any.next("frame", 7).is_ok() && any.next("frame", 9).is_err());
    }
}
