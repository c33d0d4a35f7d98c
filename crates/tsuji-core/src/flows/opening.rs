//! How the link of a flow that was chosen comes to carry, or does not.

use std::time::Duration;

use super::route::{Change, Progress};
use super::{Action, Connected, Flow, Flows, Note, Now, Outcome, Reach, Refusal, RouteState, Way};
use crate::handover::Epoch;
use crate::pacing::after;

impl Flows {
    /// The subscription's end of an offered link is open, or is not to be had.
    pub(super) fn answered(&mut self, flow: Flow, epoch: u32, address: Result<Vec<u8>, Refusal>) {
        let Some(route) = self.routes.get(&flow) else { return };
        // It is answered once; what was withdrawn meanwhile is given back by what was said then.
        let is_asked = route.opening.as_ref().is_some_and(|it| it.progress.is_none());
        if !is_asked || route.handover.opening_epoch() != Some(Epoch(epoch)) {
            return;
        }
        match address {
            Ok(address) => self.connect(flow, Reach::Address(address)),
            Err(refusal) => {
                if route.ends.way == Way::Here {
                    self.act(Action::Withdraw { flow, epoch });
                }
                self.exclude_opening(flow, refusal);
            }
        }
    }

    /// Opens the publisher's end of the link that is being opened, or goes on opening it.
    pub(super) fn connect(&mut self, flow: Flow, reach: Reach) {
        let Some(route) = self.route(flow) else { return };
        let is_urgent = route.is_bad();
        let Some(transport) = route.handover.opening().cloned() else { return };
        let Some(opening) = &mut route.opening else { return };
        // An answer that comes again says nothing new.
        opening.progress.get_or_insert_with(|| Progress::Reaching(reach.clone()));
        self.act(Action::Connect { flow, transport, reach, is_urgent });
    }

    /// Goes on with a link that its transport is opening.
    pub(super) fn go_on(&mut self, flow: Flow) {
        let progress = self.progress_of(flow);
        if let Some(Progress::Reaching(reach)) = progress {
            let reach = reach.clone();
            self.connect(flow, reach);
        }
    }

    /// What became of an end that was to be connected.
    pub(super) fn opened(&mut self, now: Now, flow: Flow, opened: Outcome) {
        let Some(route) = self.route(flow) else { return };
        let epoch = route.handover.last().0;
        let had_link = route.handover.current().is_some();
        let Some(Progress::Reaching(reach)) = route.progress().cloned() else { return };
        match opened {
            Outcome::Connected(connected) => {
                let is_first = connected.ends.is_none();
                self.complete_opening(now, flow, is_first.then_some(connected.published_before));
                if let Reach::Address(_) = reach {
                    return self.act(Action::Cut { flow, epoch, connected });
                }
                if !is_first {
                    // It has all that came by the other engine, as far as that could be known.
                    self.done(now, flow, epoch, 0);
                }
                self.act(Action::Carries { flow, epoch });
            }
            Outcome::Heard => {
                self.complete_opening(now, flow, None);
                if had_link {
                    // Nothing more is waited for by the one before: nobody over there is told.
                    self.done(now, flow, epoch, 0);
                }
                self.act(Action::Carries { flow, epoch });
            }
            Outcome::OnTrial if matches!(reach, Reach::Address(_)) => {
                let until_ns = after(now.monotonic_ns, TRIAL_MAX);
                self.record_progress(flow, Progress::OnTrial { until_ns });
            }
            Outcome::OnTrial | Outcome::Later => {
                self.record_progress(flow, Progress::Reaching(reach))
            }
            Outcome::Gone => {}
            Outcome::Refused(refusal) => {
                if let Reach::Address(_) = reach {
                    // What was accepted for this link is given back.
                    self.act(Action::Withdraw { flow, epoch });
                }
                self.exclude_opening(flow, refusal);
            }
        }
    }

    /// The transport has begun to open the link of this flow.
    fn record_progress(&mut self, flow: Flow, progress: Progress) {
        let Some(opening) = self.route(flow).and_then(|it| it.opening.as_mut()) else { return };
        let was_on_trial = matches!(opening.progress, Some(Progress::OnTrial { .. }));
        let is_on_trial = matches!(progress, Progress::OnTrial { .. });
        let is_news = !opening.is_under_way || was_on_trial != is_on_trial;
        (opening.progress, opening.is_under_way) = (Some(progress), true);
        if is_news {
            self.act(Action::Wake);
        }
    }

    fn exclude_opening(&mut self, flow: Flow, refusal: Refusal) {
        let id = self.routes.get(&flow).and_then(|it| it.handover.opening()).cloned();
        if let Some(id) = id {
            self.exclude(flow, id, refusal);
        }
    }

    /// Gives up a link that takes too long to open.
    pub(super) fn give_up_late(&mut self, now: Now, flow: Flow) {
        let Some(route) = self.routes.get(&flow) else { return };
        if route.opening_due_ns().is_none_or(|due_ns| now.monotonic_ns < due_ns) {
            return;
        }
        let Some(transport) = route.handover.opening().cloned() else { return };
        let epoch = route.handover.last().0;
        // The engine of a foreign end that has not matched by then sees something that is not seen here.
        let is_foreign = matches!(route.ends.way, Way::ToForeign | Way::FromForeign);
        let refusal = Refusal {
            reason: "the other end was not reached in time".to_owned(),
            is_passing: !is_foreign || epoch - route.last_epoch_before < FOREIGN_EPOCHS_MAX,
        };
        self.act(Action::Disconnect { flow, transport: transport.clone() });
        self.act(Action::Withdraw { flow, epoch });
        self.exclude(flow, transport, refusal);
    }

    /// The link that was being opened carries. `published_before` is told of the first.
    fn complete_opening(&mut self, now: Now, flow: Flow, published_before: Option<u64>) {
        let Some(route) = self.route(flow) else { return };
        let Some(epoch) = route.handover.opening_epoch() else { return };
        let from = route.handover.current().cloned();
        route.handover.carry(epoch);
        let Some(opening) = route.opening.take() else { return };
        let Some(to) = opening.decision.transport.clone() else { return };
        route.state = RouteState::Active;
        route.is_broken = false;
        route.patient_until_ns = None;
        route.changed_ns = now.monotonic_ns;
        route.since_wall_ns = now.wall_ns;
        route.published_before = published_before.or(route.published_before);
        route.note(Change {
            epoch: epoch.0,
            wall_ns: now.wall_ns,
            is_settled: from.is_none(),
            from,
            to,
            why: opening.why,
            because: opening.decision.because.clone(),
            opening_ns: now.monotonic_ns.saturating_sub(opening.since_ns),
            settling_ns: 0,
            held: 0,
        });
        route.decision = Some(opening.decision);
        let has_run_out = opening.has_run_out || !route.excluded.is_empty();
        if let Some(retry) = route.retry.as_mut().filter(|_| !has_run_out) {
            retry.tried();
        }
    }

    /// How far the link is that is being opened.
    pub(super) fn progress_of(&self, flow: Flow) -> Option<&Progress> {
        self.routes.get(&flow)?.progress()
    }

    /// The link that is on trial is to carry, whether it has shown that it does or not.
    pub(super) fn end_trial(&mut self, flow: Flow) {
        let progress = self.progress_of(flow);
        if let Some(Progress::OnTrial { .. }) = progress {
            self.act(Action::EndTrial(flow));
        }
    }

    /// The same, where it has lasted long enough.
    pub(super) fn end_due_trial(&mut self, now: Now, flow: Flow) {
        let progress = self.progress_of(flow);
        if matches!(progress, Some(Progress::OnTrial { until_ns }) if *until_ns <= now.monotonic_ns)
        {
            self.act(Action::EndTrial(flow));
        }
    }

    /// What became of a trial that was to end.
    pub(super) fn trial_ended(&mut self, now: Now, flow: Flow, connected: Option<Connected>) {
        let progress = self.progress_of(flow);
        let (Some(Progress::OnTrial { .. }), Some(connected)) = (progress, connected) else {
            return;
        };
        self.complete_opening(now, flow, None);
        let epoch = self.routes.get(&flow).map_or(0, |it| it.handover.last().0);
        self.act(Action::Cut { flow, epoch, connected });
    }

    /// The subscription has all that came before the link of this number.
    pub(super) fn done(&mut self, now: Now, flow: Flow, epoch: u32, held: u64) {
        let Some(route) = self.route(flow) else { return };
        route.handover.done(Epoch(epoch));
        let settling_ns = now.monotonic_ns.saturating_sub(route.changed_ns);
        let mut notes = Vec::new();
        for change in route.changes.iter_mut().filter(|it| it.epoch <= epoch && !it.is_settled) {
            (change.is_settled, change.held, change.settling_ns) = (true, held, settling_ns);
            // A first link has nothing to settle.
            let Some(from) = change.from.clone() else { continue };
            notes.push(Note::Changed {
                topic: route.topic.clone(),
                from,
                to: change.to.clone(),
                why: change.why.clone(),
                opening_ns: change.opening_ns,
                settling_ns,
                held,
            });
        }
        let wanted = route.wanted.take();
        let has_left_all = route.handover.is_settled();
        notes.into_iter().for_each(|note| self.act(Action::Log(note)));
        if has_left_all {
            self.act(Action::HasLeft(flow));
        }
        if let Some(why) = wanted {
            self.find_link(flow, why);
        }
    }
}

/// How long a link that must show that it carries is waited for. After so long without a sample both
/// ends have said to each other what they need.
const TRIAL_MAX: Duration = Duration::from_millis(250);
/// Decisions about a flow with a foreign node, two for each try, after which it is not tried again.
const FOREIGN_EPOCHS_MAX: u32 = 6;
