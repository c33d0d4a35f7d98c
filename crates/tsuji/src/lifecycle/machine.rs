//! The state machine of a managed node, as a value: what may follow what. It calls nobody and reads no clock.

use crate::{Error, ErrorKind};
use tsuji_interfaces::lifecycle_msgs::msg;

/// Where a managed node stands. The numbers and labels are those of `lifecycle_msgs` and rcl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Nothing is known of it.
    Unknown = 0,
    /// It has been made, and nothing more.
    Unconfigured = 1,
    /// It is configured, and does nothing.
    Inactive = 2,
    /// It does its work.
    Active = 3,
    /// It is over.
    Finalized = 4,
    /// From unconfigured to inactive.
    Configuring = 10,
    /// From inactive to unconfigured.
    CleaningUp = 11,
    /// To finalized.
    ShuttingDown = 12,
    /// From inactive to active.
    Activating = 13,
    /// From active to inactive.
    Deactivating = 14,
    /// A callback has failed, and what is to be done about it is done.
    ErrorProcessing = 15,
}

impl State {
    /// All, in the order in which rcl lists them.
    pub const ALL: [Self; 11] = [
        Self::Unknown,
        Self::Unconfigured,
        Self::Inactive,
        Self::Active,
        Self::Finalized,
        Self::Configuring,
        Self::CleaningUp,
        Self::ShuttingDown,
        Self::Activating,
        Self::Deactivating,
        Self::ErrorProcessing,
    ];

    /// The number in `lifecycle_msgs/msg/State`.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The state of a number of `lifecycle_msgs/msg/State`.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.id() == id)
    }

    /// Such as `unconfigured`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Unconfigured => "unconfigured",
            Self::Inactive => "inactive",
            Self::Active => "active",
            Self::Finalized => "finalized",
            Self::Configuring => "configuring",
            Self::CleaningUp => "cleaningup",
            Self::ShuttingDown => "shuttingdown",
            Self::Activating => "activating",
            Self::Deactivating => "deactivating",
            Self::ErrorProcessing => "errorprocessing",
        }
    }

    /// Whether a node is in it between two others, while a callback runs.
    pub fn is_transition(self) -> bool {
        10 <= self.id()
    }

    /// What may be asked for in it.
    pub fn transitions(self) -> impl Iterator<Item = &'static Transition> {
        TRANSITIONS.iter().filter(move |it| it.from == self)
    }
}

/// Its label.
impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.label())
    }
}

impl From<State> for msg::State {
    fn from(state: State) -> Self {
        Self { id: state.id(), label: state.label().to_owned() }
    }
}

/// One step of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The number in `lifecycle_msgs/msg/Transition`.
    pub id: u8,
    /// Such as `configure`. Those of one label are told apart by where they begin.
    pub label: &'static str,
    /// Where it begins.
    pub from: State,
    /// Where it ends.
    pub to: State,
}

impl Transition {
    /// Whether somebody may ask for it; the others are what comes of a callback.
    pub fn is_asked_for(&self) -> bool {
        !self.from.is_transition()
    }
}

impl From<&Transition> for msg::Transition {
    fn from(transition: &Transition) -> Self {
        Self { id: transition.id, label: transition.label.to_owned() }
    }
}

impl From<&Transition> for msg::TransitionDescription {
    fn from(transition: &Transition) -> Self {
        Self {
            transition: transition.into(),
            start_state: transition.from.into(),
            goal_state: transition.to.into(),
        }
    }
}

/// How a callback has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// The transition is made.
    Success = 97,
    /// It is not made: the node is where it was.
    Failure = 98,
    /// What was asked for went wrong in a way that has to be dealt with.
    Error = 99,
}

impl Outcome {
    const fn label(self) -> &'static str {
        match self {
            Self::Success => "transition_success",
            Self::Failure => "transition_failure",
            Self::Error => "transition_error",
        }
    }
}

const fn asked(id: u8, label: &'static str, from: State, to: State) -> Transition {
    Transition { id, label, from, to }
}

/// What comes of the callback of a transition state, numbered from `id` on.
const fn ended(id: u8, outcome: Outcome, from: State, to: State) -> Transition {
    let offset = outcome as u8 - Outcome::Success as u8;
    Transition { id: id + offset, label: outcome.label(), from, to }
}

/// All there are, in the order in which rcl registers them.
pub const TRANSITIONS: [Transition; 25] = {
    use Outcome::{Error, Failure, Success};
    use State::{
        Activating, Active, CleaningUp, Configuring, Deactivating, ErrorProcessing, Finalized,
        Inactive, ShuttingDown, Unconfigured,
    };
    [
        asked(1, "configure", Unconfigured, Configuring),
        ended(10, Success, Configuring, Inactive),
        ended(10, Failure, Configuring, Unconfigured),
        ended(10, Error, Configuring, ErrorProcessing),
        asked(2, "cleanup", Inactive, CleaningUp),
        ended(20, Success, CleaningUp, Unconfigured),
        ended(20, Failure, CleaningUp, Inactive),
        ended(20, Error, CleaningUp, ErrorProcessing),
        asked(3, "activate", Inactive, Activating),
        ended(30, Success, Activating, Active),
        ended(30, Failure, Activating, Inactive),
        ended(30, Error, Activating, ErrorProcessing),
        asked(4, "deactivate", Active, Deactivating),
        ended(40, Success, Deactivating, Inactive),
        ended(40, Failure, Deactivating, Active),
        ended(40, Error, Deactivating, ErrorProcessing),
        asked(5, "shutdown", Unconfigured, ShuttingDown),
        asked(6, "shutdown", Inactive, ShuttingDown),
        asked(7, "shutdown", Active, ShuttingDown),
        ended(50, Success, ShuttingDown, Finalized),
        ended(50, Failure, ShuttingDown, Finalized),
        ended(50, Error, ShuttingDown, ErrorProcessing),
        ended(60, Success, ErrorProcessing, Unconfigured),
        ended(60, Failure, ErrorProcessing, Finalized),
        ended(60, Error, ErrorProcessing, Finalized),
    ]
};

/// Where a node stands, and how it comes elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    state: State,
}

/// What somebody asks for: by its label where there is one, as in rclcpp, else by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted<'a> {
    Label(&'a str),
    Id(u8),
}

impl Machine {
    /// Of a node that has been made.
    pub(super) fn new() -> Self {
        Self { state: State::Unconfigured }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Begins what is asked for. What is not allowed now changes nothing; Invalid says what is. Busy where another
    /// transition is not over.
    pub(super) fn begin(&mut self, wanted: Wanted<'_>) -> Result<&'static Transition, Error> {
        let state = self.state;
        if state.is_transition() {
            let why = format!("another transition is not over: it is {state}");
            return Err(Error::new(ErrorKind::Busy, why));
        }
        let is_wanted = |it: &&Transition| match wanted {
            Wanted::Label(label) => it.label == label,
            Wanted::Id(id) => it.id == id,
        };
        let found = state.transitions().find(is_wanted).ok_or_else(|| {
            let wanted = match wanted {
                Wanted::Label(label) => format!("`{label}`"),
                Wanted::Id(id) => format!("number {id}"),
            };
            let allowed = allowed(state.transitions().map(|it| (it.label, it.id)));
            let why =
                format!("transition {wanted} is not one of state {state}; allowed: {allowed}");
            Error::new(ErrorKind::Invalid, why)
        })?;
        self.state = found.to;
        Ok(found)
    }

    /// The callback of the state that it is in has ended. `None` where none was running.
    pub(super) fn end(&mut self, outcome: Outcome) -> Option<&'static Transition> {
        if !self.state.is_transition() {
            return None;
        }
        let ended = self.state.transitions().find(|it| it.label == outcome.label())?;
        self.state = ended.to;
        Some(ended)
    }
}

/// Transitions for people.
pub(super) fn allowed<'a>(transitions: impl Iterator<Item = (&'a str, u8)>) -> String {
    let all: Vec<String> = transitions.map(|(label, id)| format!("{label} [{id}]")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_those_of_the_messages() {
        use msg::Transition as M;
        let check = |id: u8, from: &str, label: &str, to: &str| {
            let found = TRANSITIONS.iter().find(|it| it.id == id).unwrap();
            assert_eq!((found.from.label(), found.label, found.to.label()), (from, label, to));
        };
        let asked = [
            (M::TRANSITION_CONFIGURE, "unconfigured", "configure", "configuring"),
            (M::TRANSITION_CLEANUP, "inactive", "cleanup", "cleaningup"),
            (M::TRANSITION_ACTIVATE, "inactive", "activate", "activating"),
            (M::TRANSITION_DEACTIVATE, "active", "deactivate", "deactivating"),
            (M::TRANSITION_UNCONFIGURED_SHUTDOWN, "unconfigured", "shutdown", "shuttingdown"),
            (M::TRANSITION_INACTIVE_SHUTDOWN, "inactive", "shutdown", "shuttingdown"),
            (M::TRANSITION_ACTIVE_SHUTDOWN, "active", "shutdown", "shuttingdown"),
        ];
        for (id, from, label, to) in asked {
            check(id, from, label, to);
        }
        let (good, bad, wrong) = ("transition_success", "transition_failure", "transition_error");
        check(M::TRANSITION_ON_CONFIGURE_SUCCESS, "configuring", good, "inactive");
        check(M::TRANSITION_ON_CONFIGURE_FAILURE, "configuring", bad, "unconfigured");
        check(M::TRANSITION_ON_CONFIGURE_ERROR, "configuring", wrong, "errorprocessing");
        check(M::TRANSITION_ON_CLEANUP_SUCCESS, "cleaningup", good, "unconfigured");
        check(M::TRANSITION_ON_CLEANUP_FAILURE, "cleaningup", bad, "inactive");
        check(M::TRANSITION_ON_CLEANUP_ERROR, "cleaningup", wrong, "errorprocessing");
        check(M::TRANSITION_ON_ACTIVATE_SUCCESS, "activating", good, "active");
        check(M::TRANSITION_ON_ACTIVATE_FAILURE, "activating", bad, "inactive");
        check(M::TRANSITION_ON_ACTIVATE_ERROR, "activating", wrong, "errorprocessing");
        check(M::TRANSITION_ON_DEACTIVATE_SUCCESS, "deactivating", good, "inactive");
        check(M::TRANSITION_ON_DEACTIVATE_FAILURE, "deactivating", bad, "active");
        check(M::TRANSITION_ON_DEACTIVATE_ERROR, "deactivating", wrong, "errorprocessing");
        check(M::TRANSITION_ON_SHUTDOWN_SUCCESS, "shuttingdown", good, "finalized");
        check(M::TRANSITION_ON_SHUTDOWN_FAILURE, "shuttingdown", bad, "finalized");
        check(M::TRANSITION_ON_SHUTDOWN_ERROR, "shuttingdown", wrong, "errorprocessing");
        check(M::TRANSITION_ON_ERROR_SUCCESS, "errorprocessing", good, "unconfigured");
        check(M::TRANSITION_ON_ERROR_FAILURE, "errorprocessing", bad, "finalized");
        check(M::TRANSITION_ON_ERROR_ERROR, "errorprocessing", wrong, "finalized");
        let ids: BTreeSet<u8> = TRANSITIONS.iter().map(|it| it.id).collect();
        assert_eq!(ids.len(), TRANSITIONS.len());
        let states = [
            msg::State::PRIMARY_STATE_UNKNOWN,
            msg::State::PRIMARY_STATE_UNCONFIGURED,
            msg::State::PRIMARY_STATE_INACTIVE,
            msg::State::PRIMARY_STATE_ACTIVE,
            msg::State::PRIMARY_STATE_FINALIZED,
            msg::State::TRANSITION_STATE_CONFIGURING,
            msg::State::TRANSITION_STATE_CLEANINGUP,
            msg::State::TRANSITION_STATE_SHUTTINGDOWN,
            msg::State::TRANSITION_STATE_ACTIVATING,
            msg::State::TRANSITION_STATE_DEACTIVATING,
            msg::State::TRANSITION_STATE_ERRORPROCESSING,
        ];
        assert_eq!(State::ALL.map(State::id), states);
        let outcomes = [Outcome::Success, Outcome::Failure, Outcome::Error].map(|it| it as u8);
        let callbacks = [
            M::TRANSITION_CALLBACK_SUCCESS,
            M::TRANSITION_CALLBACK_FAILURE,
            M::TRANSITION_CALLBACK_ERROR,
        ];
        assert_eq!(outcomes, callbacks);
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_what_is() {
        fn refused(machine: &mut Machine, wanted: Wanted<'_>) -> String {
            machine.begin(wanted).unwrap_err().to_string()
        }
        let mut machine = Machine::new();
        assert_eq!(
            refused(&mut machine, Wanted::Label("activate")),
            "transition `activate` is not one of state unconfigured; allowed: configure [1], shutdown [5]"
        );
        // The shutdown of another state.
        assert!(refused(&mut machine, Wanted::Id(7)).contains("number 7"));
        machine.begin(Wanted::Label("configure")).unwrap();
        assert_eq!(
            refused(&mut machine, Wanted::Label("shutdown")),
            "another transition is not over: it is configuring"
        );
        // What a callback answers is nobody else's to say.
        assert!(machine.begin(Wanted::Label("transition_success")).is_err());
        machine.end(Outcome::Success).unwrap();
        machine.begin(Wanted::Label("shutdown")).unwrap();
        machine.end(Outcome::Success).unwrap();
        assert!(refused(&mut machine, Wanted::Id(5)).ends_with("allowed: none"));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Label(usize),
        Id(u8),
        End(Outcome),
    }

    fn step() -> impl Strategy<Value = Step> {
        let outcomes = [Outcome::Success, Outcome::Failure, Outcome::Error];
        prop_oneof![
            (0..TRANSITIONS.len()).prop_map(Step::Label),
            any::<u8>().prop_map(Step::Id),
            prop::sample::select(outcomes.to_vec()).prop_map(Step::End),
        ]
    }

    proptest! {
        /// Whatever is asked for: each step is one of the table that begins where the node stands, what is refused
        /// changes nothing, and after finalized nothing comes.
        #[test]
        fn every_way_is_one_of_the_table(steps in prop::collection::vec(step(), 0..64)) {
            let mut machine = Machine::new();
            for step in steps {
                let before = machine.state();
                let made = match step {
                    Step::Label(at) => machine.begin(Wanted::Label(TRANSITIONS[at].label)).ok(),
                    Step::Id(id) => machine.begin(Wanted::Id(id)).ok(),
                    Step::End(outcome) => machine.end(outcome),
                };
                let Some(made) = made else {
                    prop_assert_eq!(machine.state(), before);
                    continue;
                };
                prop_assert!(TRANSITIONS.contains(made));
                prop_assert_eq!((made.from, made.to), (before, machine.state()));
                prop_assert_ne!(before, State::Finalized);
                prop_assert_eq!(made.is_asked_for(), machine.state().is_transition() && !before.is_transition());
            }
        }

        /// From wherever it is, a node comes to its end in four steps at most.
        #[test]
        fn every_node_can_be_shut_down(steps in prop::collection::vec(step(), 0..64)) {
            let mut machine = Machine::new();
            for step in steps {
                let _ = match step {
                    Step::Label(at) => machine.begin(Wanted::Label(TRANSITIONS[at].label)).ok(),
                    Step::Id(id) => machine.begin(Wanted::Id(id)).ok(),
                    Step::End(outcome) => machine.end(outcome),
                };
            }
            for _ in 0..2 {
                let _ = machine.end(Outcome::Success);
                let _ = machine.begin(Wanted::Label("shutdown"));
            }
            let _ = machine.end(Outcome::Success);
            prop_assert_eq!(machine.state(), State::Finalized);
        }
    }
}
