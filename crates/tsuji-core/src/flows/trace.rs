//! What a process was told of its flows, asked and did, kept so that it can be done again.
//!
//! A trace is a list of [`Entry`]s. [`Recorder`] and [`replay`] are the two ends: what the first has kept the second does again
//! in a new table, and says where it differs.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::{Action, EndpointId, Event, Flow, Flows, Now, View, WireEngines};
use crate::{Offer, Policy, Traits};

/// One entry of a trace.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Entry {
    /// The table was made; the first of each trace.
    Begun {
        /// Under this policy.
        policy: Arc<Policy>,
        /// With these engines on one wire.
        engines: Option<WireEngines>,
    },
    /// [`Flows::handle`] was told this.
    Event(Event),
    /// [`Flows::poll_action`] was asked.
    Polled {
        /// At this time.
        now: Now,
        /// What it asked for in turn, and was answered.
        answers: Vec<Answer>,
        /// What it answered.
        action: Option<Action>,
    },
}

/// What a [`View`] has answered.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Answer {
    /// To [`View::traits`].
    Traits(Option<Traits>),
    /// To [`View::offers`].
    Offers(Vec<Offer>),
    /// To [`View::is_changing_engine`].
    IsChangingEngine(bool),
}

/// Keeps what a view answers.
pub struct Recorder<'a> {
    view: &'a dyn View,
    answers: RefCell<Vec<Answer>>,
}

impl<'a> Recorder<'a> {
    /// Asks `view`.
    pub fn new(view: &'a dyn View) -> Self {
        Self { view, answers: RefCell::default() }
    }

    /// All that it has answered.
    pub fn into_answers(self) -> Vec<Answer> {
        self.answers.into_inner()
    }
}

impl View for Recorder<'_> {
    fn traits(&self, flow: Flow) -> Option<Traits> {
        let traits = self.view.traits(flow);
        self.answers.borrow_mut().push(Answer::Traits(traits.clone()));
        traits
    }

    fn offers(&self, flow: Flow) -> Vec<Offer> {
        let offers = self.view.offers(flow);
        self.answers.borrow_mut().push(Answer::Offers(offers.clone()));
        offers
    }

    fn is_changing_engine(&self, publisher: EndpointId) -> bool {
        let is_changing = self.view.is_changing_engine(publisher);
        self.answers.borrow_mut().push(Answer::IsChangingEngine(is_changing));
        is_changing
    }
}

/// Does again what a trace has kept, in a new table, and answers it as it stands at the end.
///
/// # Errors
///
/// [`Divergence`] where something else is asked or done than was kept, or the trace does not begin with
/// [`Entry::Begun`].
pub fn replay(entries: impl IntoIterator<Item = Entry>) -> Result<Flows, Divergence> {
    let mut flows = None;
    for (at, entry) in entries.into_iter().enumerate() {
        let missing = || Divergence { at, what: "the trace does not begin with Begun".to_owned() };
        match entry {
            Entry::Begun { .. } if flows.is_some() => {
                let what = "another table begins in the midst of the trace".to_owned();
                return Err(Divergence { at, what });
            }
            Entry::Begun { policy, engines } => flows = Some(Flows::new(policy, engines)),
            Entry::Event(event) => flows.as_mut().ok_or_else(missing)?.handle(event),
            Entry::Polled { now, answers, action } => {
                let view = RecordedAnswers(RefCell::new(Ok(answers.into())));
                let done = flows.as_mut().ok_or_else(missing)?.poll_action(now, &view);
                let rest = view.0.into_inner().map_err(|what| Divergence { at, what })?;
                if done != action {
                    let what = format!("done: {done:?}; kept: {action:?}");
                    return Err(Divergence { at, what });
                }
                if let Some(answer) = rest.front() {
                    let what = format!("nothing was asked that {answer:?} answers");
                    return Err(Divergence { at, what });
                }
            }
        }
    }
    flows.ok_or_else(|| Divergence { at: 0, what: "the trace is empty".to_owned() })
}

/// Something else was asked or done than a trace has kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The entry, counted from 0.
    pub at: usize,
    /// What differs there.
    pub what: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}: {}", self.at, self.what)
    }
}

impl Error for Divergence {}

/// Answers what was kept, in its order; or why that is not what is asked for.
struct RecordedAnswers(RefCell<Result<VecDeque<Answer>, String>>);

impl RecordedAnswers {
    fn next<T>(&self, what: &str, of: impl Fn(Answer) -> Option<T>) -> Option<T> {
        let mut kept = self.0.borrow_mut();
        let answers = kept.as_mut().ok()?;
        let answer = answers.pop_front().and_then(of);
        if answer.is_none() {
            *kept = Err(format!("{what} was asked for, and something else was kept"));
        }
        answer
    }
}

impl View for RecordedAnswers {
    fn traits(&self, _: Flow) -> Option<Traits> {
        let of = |it| if let Answer::Traits(it) = it { Some(it) } else { None };
        self.next("what is known of a flow", of).flatten()
    }

    fn offers(&self, _: Flow) -> Vec<Offer> {
        let of = |it| if let Answer::Offers(it) = it { Some(it) } else { None };
        self.next("what transports there are", of).unwrap_or_default()
    }

    fn is_changing_engine(&self, _: EndpointId) -> bool {
        let of = |it| if let Answer::IsChangingEngine(it) = it { Some(it) } else { None };
        self.next("whether an engine changes", of).unwrap_or_default()
    }
}
