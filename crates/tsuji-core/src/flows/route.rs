//! What is known of the link of one flow.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Ends, Now, Reach, Refusal, RouteState};
use crate::handover::WriterHandover;
use crate::pacing::{Backoff, after};
use crate::{Choice, Reason, TransportId};

use super::{OPENING_MAX, OPENING_MAX_BROKEN};

/// One flow: the link that it has, the one that it is about to have, and how it came to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its topic.
    pub topic: Arc<str>,
    /// What stands at its ends, and how they are reached.
    pub ends: Ends,
    /// How it stands.
    pub state: RouteState,
    /// The link it has, and the one that it is about to have.
    pub handover: WriterHandover<TransportId>,
    /// Of the link that stands, or if none does, the last decision; `None` before the first.
    pub decision: Option<Decision>,
    /// Why its ends do not fit each other, where it is [`RouteState::Incompatible`].
    pub mismatches: Vec<String>,
    /// The links that it has had, the newest last; at most [`Self::CHANGES_KEPT`].
    pub changes: VecDeque<Change>,
    /// How many samples were published before those that the first link brought; `None` until it is
    /// open.
    pub published_before: Option<u64>,
    /// Since when it stands so, on the wall clock.
    pub since_wall_ns: i64,
    /// The number after which those of its links begin.
    pub last_epoch_before: u32,
    pub(super) opening: Option<Opening>,
    /// Transports that failed for this flow, and why.
    pub(super) excluded: Vec<(TransportId, Refusal)>,
    /// The link that stands carries nothing any more.
    pub(super) is_broken: bool,
    /// So long a broken link is kept when there is no other: that the other end is gone may not have come
    /// yet.
    pub(super) patient_until_ns: Option<u64>,
    /// Why it is to be decided again as soon as the subscription has left old links.
    pub(super) wanted: Option<String>,
    /// Why it is to be decided again, and when.
    pub(super) doubt: Option<(String, u64)>,
    /// When it is decided again because something had run out; nothing is due while a link is being opened.
    pub(super) retry: Option<Backoff>,
    /// When it took the link that stands, on the monotonic clock.
    pub(super) changed_ns: u64,
    /// When its next time-out is due, as the table of time-outs has it.
    pub(super) timeout_ns: Option<u64>,
}

/// A link that is being opened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opening {
    pub(super) decision: Decision,
    /// How far its transport is; `None` until the other end has answered.
    pub(super) progress: Option<Progress>,
    /// Its transport has said that it has only begun to open it.
    pub(super) is_under_way: bool,
    pub(super) since_ns: u64,
    /// What set it off.
    pub(super) why: String,
    /// Something better had run out.
    pub(super) has_run_out: bool,
}

/// A link that its transport has begun to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// To be gone on with by this.
    Reaching(Reach),
    /// It is open, and is to show that it carries until then.
    OnTrial { until_ns: u64 },
}

/// What selection returned, to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The transport; `None` where none can carry the flow.
    pub transport: Option<TransportId>,
    /// Why this one, or why none.
    pub because: String,
    /// The others, each with why not.
    pub rejected: Vec<(String, String)>,
}

/// A link that a flow has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The number of the link.
    pub epoch: u32,
    /// When it carried its first sample, or could have, on the wall clock.
    pub wall_ns: i64,
    /// The transport before; `None` if there was none.
    pub from: Option<TransportId>,
    /// The transport since.
    pub to: TransportId,
    /// What set it off.
    pub why: String,
    /// Why this transport.
    pub because: String,
    /// From the decision until the link carried.
    pub opening_ns: u64,
    /// From there until the subscription had all that came by the one before.
    pub settling_ns: u64,
    /// The most samples that were held at one time meanwhile.
    pub held: u64,
    /// The subscription has all that came by the one before.
    pub is_settled: bool,
}

impl Route {
    /// Changes of a flow's link that are remembered.
    pub const CHANGES_KEPT: usize = 32;

    pub(super) fn new(topic: Arc<str>, ends: Ends, now: Now) -> Self {
        Self {
            topic,
            ends,
            state: RouteState::Opening,
            handover: WriterHandover::default(),
            decision: None,
            mismatches: Vec::new(),
            changes: VecDeque::new(),
            published_before: None,
            since_wall_ns: now.wall_ns,
            last_epoch_before: 0,
            opening: None,
            excluded: Vec::new(),
            is_broken: false,
            patient_until_ns: None,
            wanted: None,
            doubt: None,
            retry: None,
            changed_ns: 0,
            timeout_ns: None,
        }
    }

    /// The transport that it is about to take, in the place of the one it has.
    pub fn handover_to(&self) -> Option<&TransportId> {
        self.handover.current()?;
        self.handover.opening()
    }

    /// Whether the link that stands has failed or run out.
    pub(super) fn is_bad(&self) -> bool {
        let current = self.handover.current();
        self.is_broken || self.excluded.iter().any(|(id, _)| Some(id) == current)
    }

    pub(super) fn is_broken_on(&self, id: &TransportId) -> bool {
        self.is_broken && self.handover.current() == Some(id)
    }

    /// How far the link is that is being opened.
    pub(super) fn progress(&self) -> Option<&Progress> {
        self.opening.as_ref()?.progress.as_ref()
    }

    /// When the link that is being opened is given up. A process that is stopped may answer late, if
    /// there is nothing else.
    pub(super) fn opening_due_ns(&self) -> Option<u64> {
        let opening = self.opening.as_ref()?;
        if let Some(Progress::OnTrial { until_ns }) = opening.progress {
            return Some(until_ns);
        }
        let is_timed = opening.progress.is_some() || self.handover.current().is_some();
        // While the link that stands is broken the publisher waits, with all its other readers.
        let at_most = if self.is_broken { OPENING_MAX_BROKEN } else { OPENING_MAX };
        is_timed.then(|| after(opening.since_ns, at_most))
    }

    /// When it wants to be looked at.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let doubt = self.doubt.as_ref().map(|(_, due_ns)| *due_ns);
        let retry = self.retry.as_ref().and_then(Backoff::due_ns);
        [self.opening_due_ns(), doubt, self.patient_until_ns, retry].into_iter().flatten().min()
    }

    /// Remembers a change.
    pub(super) fn note(&mut self, change: Change) {
        if self.changes.len() == Self::CHANGES_KEPT {
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
