//! Does what the core decides about flows.

use tsuji_core::TransportId;
use tsuji_core::flows::trace::{Entry, Recorder};
use tsuji_core::flows::{Action, Connected, Event, Note, Now, Outcome, Reach, Refusal};
use tsuji_core::handover::Epoch;
use tsuji_platform::clock;
use tsuji_transport::deferred::told;
use tsuji_transport::{Address, Gid};

use super::GraphCache;
use super::facts::Facts;
use crate::control::protocol::{Control, Flow};
use crate::graph::Role;
use crate::publisher_core::{Asking, Joining, Reached};
use crate::session::Session;

impl GraphCache {
    /// Tells the core what has happened, and does what it decides. What happens by that is told to it too.
    pub(super) fn handle_flow_event(&mut self, session: &Session, event: Event) {
        self.notify_flows(event);
        if std::mem::replace(&mut self.is_acting, true) {
            return;
        }
        let due_ns = self.flows.poll_timeout();
        while let Some(action) = self.next_action(session) {
            self.act(session, action);
        }
        self.is_acting = false;
        let is_sooner = |it: &u64| due_ns.is_none_or(|due_ns| *it < due_ns);
        if self.flows.poll_timeout().as_ref().is_some_and(is_sooner) {
            session.waker.give();
        }
    }

    /// A panic has ended what was being done: it is not waited for any more.
    pub(crate) fn recover(&mut self) {
        if std::mem::take(&mut self.is_acting) {
            self.flows.forget_outcome();
        }
    }

    fn notify_flows(&mut self, event: Event) {
        if self.trace.is_some() {
            self.note(&Entry::Event(event.clone()));
        }
        self.flows.handle(event);
    }

    fn next_action(&mut self, session: &Session) -> Option<Action> {
        let Self {
            flows, channels, endpoints, publisher_cores, subscription_cores, foreign, ..
        } = self;
        let facts =
            Facts { session, channels, endpoints, publisher_cores, subscription_cores, foreign };
        let now = Now { monotonic_ns: clock::monotonic_ns(), wall_ns: clock::wall_ns() };
        if self.trace.is_none() {
            return flows.poll_action(now, &facts);
        }
        let recorder = Recorder::new(&facts);
        let action = flows.poll_action(now, &recorder);
        let answers = recorder.into_answers();
        self.note(&Entry::Polled { now, answers, action: action.clone() });
        action
    }

    fn note(&mut self, entry: &Entry) {
        self.trace.take_if(|trace| !trace.add(entry));
    }

    fn act(&mut self, session: &Session, action: Action) {
        match action {
            Action::Offer { flow, epoch, is_first, transport } => {
                self.offer(session, flow, epoch, is_first, &transport);
            }
            Action::OpenHere { flow, epoch, transport } => {
                let address = self.open_here(session, flow, epoch, &transport);
                self.notify_flows(Event::Answered { flow, epoch, address });
            }
            Action::Connect { flow, transport, reach, is_urgent } => {
                let opened = match reach {
                    Reach::FromForeign => self.accept_from_foreign(session, flow, &transport),
                    reach => self.connect(session, flow, &transport, reach, is_urgent),
                };
                self.notify_flows(Event::Opened { flow, opened });
            }
            Action::EndTrial(flow) => {
                let publisher_core = self.publisher_cores.get(&Gid(flow.publisher));
                let connected = publisher_core.and_then(|it| it.end_trial(Gid(flow.subscription)));
                self.notify_flows(Event::TrialEnded { flow, connected });
            }
            Action::Cut { flow, epoch, connected: Connected { first, ends, .. } } => {
                self.say(session, flow.subscription, Control::Cut { flow, epoch, ends, first });
            }
            Action::Carries { flow, epoch } => self.carries(session, flow, epoch),
            Action::Withdraw { flow, epoch } => {
                self.say(session, flow.subscription, Control::Withdrawn { flow, epoch });
            }
            Action::Disconnect { flow, transport } => self.disconnect(flow, &transport),
            Action::GiveUp(flow) => {
                if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
                    publisher_core.give_up(Gid(flow.subscription));
                    publisher_core.tell_matched();
                }
            }
            Action::Leave(flow) => {
                if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
                    publisher_core.disconnect(Gid(flow.subscription));
                    publisher_core.tell_matched();
                }
            }
            Action::Close { flow, epoch } => self.close(session, flow, epoch),
            Action::HasLeft(flow) => {
                if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
                    publisher_core.has_left(Gid(flow.subscription));
                }
            }
            Action::EngineChanged(publisher) => {
                if let Some(publisher_core) = self.publisher_cores.get(&Gid(publisher)) {
                    publisher_core.has_changed_engine();
                }
            }
            Action::Wake => session.waker.give(),
            Action::Log(note) => log(note),
        }
    }

    fn offer(
        &mut self,
        session: &Session,
        flow: Flow,
        epoch: u32,
        is_first: bool,
        id: &TransportId,
    ) {
        let Some(peer) = self.endpoints.get(&Gid(flow.subscription)).map(|it| it.peer) else {
            return;
        };
        if let Some(transport) = session.transport(id.as_str()) {
            self.meet_on_wire(&**transport, peer);
        }
        let transport = id.to_string();
        self.channels.send(peer, &Control::Offer { flow, epoch, is_first, transport });
    }

    /// Opens the subscription's end of a link both of whose ends are here.
    fn open_here(
        &mut self,
        session: &Session,
        flow: Flow,
        epoch: u32,
        id: &TransportId,
    ) -> Result<Vec<u8>, Refusal> {
        self.meet_self(session, id)?;
        let address = self.accept(session, session.id, flow, Epoch(epoch), id.as_str())?;
        Ok(address.bytes)
    }

    /// Opens the publisher's end, which lives here, or goes on opening it.
    fn connect(
        &mut self,
        session: &Session,
        flow: Flow,
        id: &TransportId,
        reach: Reach,
        is_urgent: bool,
    ) -> Outcome {
        let reader = Gid(flow.subscription);
        let is_foreign = matches!(reach, Reach::ToForeign);
        let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) else {
            return Outcome::Refused(Refusal::lasting("the publisher is gone"));
        };
        let Some(asks) = self.endpoints.get(&reader) else {
            return Outcome::Refused(Refusal::lasting("the subscription is gone"));
        };
        let Some(transport) = session.transport(id.as_str()) else {
            return Outcome::Refused(Refusal::lasting("not in this build"));
        };
        let subscription_core = self.subscription_cores.get(&reader);
        let value_type = subscription_core.and_then(|it| it.value_type);
        let (qos, partner) = (asks.record.qos.into(), Gid(asks.record.partner));
        let asking = Asking { qos, value_type, partner, is_urgent };
        let joined = match reach {
            Reach::Address(bytes) => {
                let address = Address { peer: asks.peer, reader, bytes };
                publisher_core.connect(transport, Reached::Address(&address), &asking)
            }
            _ => publisher_core.connect(transport, Reached::Plain(reader), &asking),
        };
        match joined {
            Ok(Joining::Connected(connected)) => {
                if connected.ends.is_none() {
                    publisher_core.tell_matched();
                }
                if is_foreign {
                    self.foreign.graph_changed(session);
                }
                Outcome::Connected(connected)
            }
            Ok(Joining::Later) => Outcome::Later,
            Ok(Joining::OnTrial) => Outcome::OnTrial,
            Err(error) => {
                publisher_core.disconnect_from(id, reader);
                Outcome::Refused(error.into())
            }
        }
    }

    /// Opens the subscription's end of a link from a publisher of a foreign node, or goes on opening it.
    fn accept_from_foreign(&mut self, session: &Session, flow: Flow, id: &TransportId) -> Outcome {
        let subscription_core = self.subscription_cores.get(&Gid(flow.subscription));
        let offered = self.endpoints.get(&Gid(flow.publisher)).map(|it| it.record.qos.into());
        let ends = subscription_core.zip(offered).zip(session.transport(id.as_str()));
        let Some(((subscription_core, offered), transport)) = ends else { return Outcome::Gone };
        let opened =
            match subscription_core.accept_foreign(transport, Gid(flow.publisher), &offered) {
                Ok(true) => Outcome::Heard,
                Ok(false) => Outcome::Later,
                Err(error) => {
                    subscription_core.forget(Gid(flow.publisher));
                    Outcome::Refused(error.into())
                }
            };
        self.foreign.graph_changed(session);
        opened
    }

    /// A link to or from a foreign node carries.
    fn carries(&mut self, session: &Session, flow: Flow, epoch: u32) {
        if !self.publisher_cores.contains_key(&Gid(flow.publisher)) {
            return self.cut(session, flow, epoch, None, None);
        }
        let publisher = self.endpoints.get(&Gid(flow.publisher));
        let ends = publisher.zip(self.endpoints.get(&Gid(flow.subscription)));
        let Some((server, client)) = ends.map(|(a, b)| (&a.record, &b.record)) else { return };
        if client.role == Role::Reply {
            // A client's: it may ask now.
            let requests = Flow::new(client.partner, server.partner);
            self.match_flow(session, requests);
        }
    }

    fn disconnect(&mut self, flow: Flow, transport: &TransportId) {
        if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
            publisher_core.disconnect_from(transport, Gid(flow.subscription));
        } else if let Some(subscription_core) = self.subscription_cores.get(&Gid(flow.subscription))
        {
            subscription_core.forget(Gid(flow.publisher));
        }
    }

    /// The subscription's end gets nothing any more.
    fn close(&mut self, session: &Session, flow: Flow, epoch: u32) {
        if self.publisher_cores.contains_key(&Gid(flow.publisher)) {
            self.say(session, flow.subscription, Control::Closed { flow, epoch });
        } else {
            // It is a foreign node's.
            self.closed(session, flow);
        }
    }
}

/// Says it to whoever reads the log.
fn log(note: Note) {
    match note {
        Note::Chosen { topic, transport, because } => {
            told::debug!(topic = &*topic, %transport, because, "route");
        }
        Note::NotOpened { transport, reason } => {
            told::warn!(%transport, reason, "a link could not be opened");
        }
        Note::NoRoute { topic, why } => told::warn!(topic = &*topic, "{why}"),
        Note::Changed { topic, from, to, why, opening_ns, settling_ns, held } => {
            told::info!(
                topic = &*topic,
                %from,
                %to,
                why,
                took_us = opening_ns / 1000,
                settled_us = settling_ns / 1000,
                held,
                "route changed"
            );
        }
    }
}
