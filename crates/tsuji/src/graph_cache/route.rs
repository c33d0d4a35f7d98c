//! What is known of the link of one flow.

use std::collections::VecDeque;

use tsuji_core::handover::WriterHandover;
use tsuji_core::{Choice, Reason, TransportId};
use tsuji_platform::clock;
use tsuji_transport::Address;

use super::{OPENING_MAX, OPENING_MAX_BROKEN};
use crate::control::protocol::Refusal;
use crate::graph::{RouteChange, RouteState};
use crate::pacing::after;

/// A flow whose publisher lives here, or is a foreign node's.
pub(super) struct Route {
    pub(super) state: RouteState,
    /// The link it has, and the one that it is about to have.
    pub(super) handover: WriterHandover<TransportId>,
    /// Of the link that stands, or if none does, the last one.
    pub(super) choice: Option<Decision>,
    pub(super) opening: Option<Opening>,
    /// Transports that failed for this flow, and why.
    pub(super) excluded: Vec<(TransportId, Refusal)>,
    pub(super) mismatches: Vec<String>,
    /// The link that stands carries nothing any more.
    pub(super) is_broken: bool,
    /// So long a broken link is kept when there is no other: that the other end is gone may not have come
    /// yet.
    pub(super) patient_until_ns: Option<u64>,
    /// Why it is to be decided again as soon as the subscription has left old links.
    pub(super) wanted: Option<String>,
    /// Why it is to be decided again, and when.
    pub(super) doubt: Option<(String, u64)>,
    /// When it took the link that stands, on the monotonic clock.
    pub(super) changed_ns: u64,
    pub(super) changes: VecDeque<RouteChange>,
    /// How many samples were published before those that the first link brought; `None` until it is
    /// open.
    pub(super) published_before: Option<u64>,
    pub(super) since_wall_ns: i64,
}

/// A link that is being opened.
pub(super) struct Opening {
    pub(super) decision: Decision,
    /// What its transport is to go on with.
    pub(super) half: Option<HalfOpen>,
    pub(super) since_ns: u64,
    /// What set it off.
    pub(super) why: String,
    /// Something better had run out.
    pub(super) has_run_out: bool,
}

/// A link that its transport has begun to open.
#[derive(Clone)]
pub(super) enum HalfOpen {
    /// To or from an endpoint of tsuji's.
    Address(Address),
    /// To a subscription of a foreign node.
    ToPlain,
    /// From a publisher of a foreign node.
    FromPlain,
    /// It is open, and is to show that it carries until then.
    OnTrial { until_ns: u64 },
}

/// What selection returned, kept to be shown.
pub(super) struct Decision {
    pub(super) transport: Option<TransportId>,
    pub(super) because: String,
    pub(super) rejected: Vec<(String, String)>,
}

impl Route {
    pub(super) fn new() -> Self {
        Self {
            state: RouteState::Opening,
            handover: WriterHandover::default(),
            choice: None,
            opening: None,
            excluded: Vec::new(),
            mismatches: Vec::new(),
            is_broken: false,
            patient_until_ns: None,
            wanted: None,
            doubt: None,
            changed_ns: 0,
            changes: VecDeque::new(),
            published_before: None,
            since_wall_ns: clock::wall_ns(),
        }
    }

    /// Whether the link that stands has failed or run out.
    pub(super) fn is_bad(&self) -> bool {
        let join_state = self.handover.current();
        self.is_broken || self.excluded.iter().any(|(id, _)| Some(id) == join_state)
    }

    /// When the link that is being opened is given up. A process that is stopped may answer late, if
    /// there is nothing else.
    pub(super) fn opening_due_ns(&self) -> Option<u64> {
        let opening = self.opening.as_ref()?;
        if let Some(HalfOpen::OnTrial { until_ns }) = opening.half {
            return Some(until_ns);
        }
        let is_timed = opening.half.is_some() || self.handover.current().is_some();
        // While the link that stands is broken the publisher waits, with all its other readers.
        let at_most = if self.is_broken { OPENING_MAX_BROKEN } else { OPENING_MAX };
        is_timed.then(|| after(opening.since_ns, at_most))
    }

    /// When it wants to be looked at.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let doubt = self.doubt.as_ref().map(|(_, due_ns)| *due_ns);
        [self.opening_due_ns(), doubt, self.patient_until_ns].into_iter().flatten().min()
    }

    /// The transport that it is about to take, in the place of the one it has.
    pub(super) fn handover_to(&self) -> Option<String> {
        self.handover.current()?;
        self.handover.opening().map(ToString::to_string)
    }

    /// Remembers a change.
    pub(super) fn note(&mut self, change: RouteChange) {
        if self.changes.len() == CHANGES_KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }
}

impl Decision {
    pub(super) fn of(choice: &Choice) -> Self {
        Self {
            transport: Some(choice.transport.clone()),
            because: choice.because.to_string(),
            rejected: shown(&choice.rejected),
        }
    }
}

/// As text.
pub(super) fn shown(rejected: &[(TransportId, Reason)]) -> Vec<(String, String)> {
    rejected.iter().map(|(id, reason)| (id.to_string(), reason.to_string())).collect()
}

/// Changes of a flow's link that are remembered.
const CHANGES_KEPT: usize = 32;
