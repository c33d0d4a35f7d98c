//! On which processors those that send and those that receive run.
//!
//! How long a flow takes depends on where its ends lie, for as long as they run. So this says where they do, and a child inherits
//! it from the thread that starts it, whatever program it is.

use std::env;
use std::fmt;
use std::io;

use serde_json::{Value, json};
use tsuji_platform::processor;

/// What a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Placement {
    /// The sender on the first processor, receivers on the others in turn.
    #[default]
    Apart,
    /// All on the first.
    Together,
    /// Wherever the system likes.
    Free,
}

impl Placement {
    /// As a user names it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Apart => "apart",
            Self::Together => "together",
            Self::Free => "free",
        }
    }
}

/// What a child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is no end of a flow whose time counts, or one of many.
    Anywhere,
    Sender,
    /// The receiver of that number, from 0.
    Receiver(usize),
    /// It sends, and a thread of it receives, which says so by [`receive_here`].
    Both,
}

/// Where everybody of a run sits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    placement: Placement,
    /// The processors that this process may use, if they are known.
    allowed: Vec<usize>,
}

impl Places {
    /// On the processors that the calling thread may use. Where the system does not say which, nobody is bound.
    pub(crate) fn new(placement: Placement) -> Self {
        Self::on(placement, processor::allowed().unwrap_or_default())
    }

    fn on(placement: Placement, allowed: Vec<usize>) -> Self {
        let placement = if allowed.is_empty() { Placement::Free } else { placement };
        Self { placement, allowed }
    }

    /// The processor of a place; nothing where the system may choose.
    fn processor(&self, place: Place) -> Option<usize> {
        let [first, others @ ..] = &*self.allowed else { return None };
        match (self.placement, place) {
            (Placement::Free, _) | (_, Place::Anywhere) => None,
            (Placement::Apart, Place::Receiver(number)) if !others.is_empty() => {
                Some(others[number % others.len()])
            }
            _ => Some(*first),
        }
    }

    /// Until the guard is dropped, children of the calling thread are born on the processor of `place`.
    pub(crate) fn take(&self, place: Place) -> io::Result<Taken<'_>> {
        if let Some(it) = self.processor(place) {
            processor::stay_on(&[it])?;
        }
        Ok(Taken(self))
    }

    /// What a child in `place` has in its environment.
    pub(crate) fn variable(&self, place: Place) -> Option<(&'static str, String)> {
        let receives = self.processor(Place::Receiver(0)).filter(|_| place == Place::Both)?;
        Some((RECEIVES_ON, receives.to_string()))
    }

    /// As it stands in a report.
    pub(crate) fn to_json(&self) -> Value {
        let receivers = (0..self.allowed.len().saturating_sub(1).max(1))
            .filter_map(|it| self.processor(Place::Receiver(it)));
        json!({
            "placement": self.placement.word(),
            "sender": self.processor(Place::Sender),
            "receivers": receivers.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: &[usize]| all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        match (self.placement, &*self.allowed) {
            (Placement::Free, _) | (_, []) => {
                f.write_str("Placement free: the system chooses who runs on which processor")
            }
            (Placement::Apart, [first, others @ ..]) if !others.is_empty() => {
                let others = list(others);
                write!(
                    f,
                    "Placement apart: who sends is on processor {first}, who receives on {others}"
                )
            }
            (placement, [first, ..]) => {
                let placement = placement.word();
                write!(
                    f,
                    "Placement {placement}: all who send and receive are on processor {first}"
                )
            }
        }
    }
}

/// Gives the calling thread back all its processors when it goes.
#[derive(Debug)]
#[must_use]
pub(crate) struct Taken<'a>(&'a Places);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // Those that it had before, so this does not fail.
        let _ = processor::stay_on(&self.0.allowed);
    }
}

/// To be called by the thread that receives in a process that sends too, before it does. Threads that it starts stay with it.
pub(crate) fn receive_here() {
    let told = env::var(RECEIVES_ON).ok().and_then(|it| it.parse().ok());
    if let Some(it) = told {
        // Where the system has taken the processor away meanwhile, any other does.
        let _ = processor::stay_on(&[it]);
    }
}

/// The variable with the processor of the thread that receives.
pub(crate) const RECEIVES_ON: &str = "TSUJI_LAB_RECEIVES_ON";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(placement: Placement, allowed: &[usize], expect: [Option<usize>; 4]) {
        let places = Places::on(placement, allowed.to_vec());
        let all = [Place::Anywhere, Place::Sender, Place::Receiver(0), Place::Receiver(1)];
        assert_eq!(all.map(|it| places.processor(it)), expect, "{places}");
        assert_eq!(places.processor(Place::Both), expect[1], "{places}");
        let variable = places.variable(Place::Both);
        assert_eq!(variable.map(|it| it.1), expect[2].map(|it| it.to_string()), "{places}");
    }

    #[test]
    fn everybody_has_a_processor_that_is_allowed() {
        let (apart, together, free) = (Placement::Apart, Placement::Together, Placement::Free);
        check(apart, &[2, 5, 7], [None, Some(2), Some(5), Some(7)]);
        check(apart, &[2, 5], [None, Some(2), Some(5), Some(5)]);
        check(apart, &[3], [None, Some(3), Some(3), Some(3)]);
        check(together, &[2, 5], [None, Some(2), Some(2), Some(2)]);
        check(free, &[2, 5], [None; 4]);
        check(apart, &[], [None; 4]);
    }

    #[test]
    fn it_is_said_who_is_where() {
        let told = |placement, allowed: &[usize]| {
            let places = Places::on(placement, allowed.to_vec());
            (places.to_json(), places.to_string())
        };
        let (json, text) = told(Placement::Apart, &[0, 2, 3]);
        let expect = json!({ "placement": "apart", "sender": 0, "receivers": [2, 3] });
        assert_eq!(json, expect);
        assert!(text.ends_with("who sends is on processor 0, who receives on 2, 3"), "{text}");
        let (json, text) = told(Placement::Apart, &[1]);
        assert_eq!((&json["sender"], &json["receivers"]), (&json!(1), &json!([1])));
        assert!(text.ends_with("all who send and receive are on processor 1"), "{text}");
        let (json, _) = told(Placement::Free, &[0, 1]);
        assert_eq!((&json["sender"], &json["receivers"]), (&Value::Null, &json!([])));
    }

    #[test]
    fn whoever_took_a_place_has_all_processors_back() {
        let places = Places::new(Placement::Together);
        let taken = places.take(Place::Sender).unwrap();
        assert_eq!(processor::allowed().unwrap(), places.allowed[..1]);
        drop(taken);
        assert_eq!(processor::allowed().unwrap(), places.allowed);
    }
}
