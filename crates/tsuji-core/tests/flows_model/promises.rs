//! What must hold, of a table that has nothing to do and of a world that has come to rest.

use super::*;

impl World {
    /// Of a table that has nothing to do.
    pub(super) fn check(&mut self, process: ProcessAt) {
        let mut wrong = Vec::new();
        for (flow, transport) in std::mem::take(&mut self.suspected) {
            let on = self
                .publishers
                .get(&flow.publisher)
                .and_then(|it| it.readers.get(&flow.subscription));
            if on == Some(&transport) {
                wrong.push(format!("the link that carries {flow:?} is cut off"));
            }
        }
        let state = &self.processes[process];
        let timeout = state.flows.poll_timeout();
        let mut is_timed = false;
        for (flow, route) in state.flows.iter() {
            let (current, opening) = (route.handover.current(), route.handover.opening());
            let epoch = route.handover.opening_epoch().map(|it| it.0);
            let offered = state.offered.get(&flow).cloned().unwrap_or_default();
            let open = offered
                .into_iter()
                .filter(|it| Some(*it) == epoch || !state.refused.contains(&(flow, *it)));
            if (route.state == RouteState::Active) != current.is_some() {
                wrong.push(format!("{flow:?} is {:?} on {current:?}", route.state));
            }
            if current.is_some() && current == opening {
                wrong.push(format!("{flow:?} opens what it has"));
            }
            if !open.eq(epoch) {
                wrong.push(format!(
                    "{flow:?} opens {epoch:?}, and offered are {:?}",
                    state.offered.get(&flow)
                ));
            }
            if route.ends.way != Way::FromForeign
                && let Some(publisher) = self.publishers.get(&flow.publisher)
            {
                let on = publisher.readers.get(&flow.subscription).map(|it| &self.ids[*it]);
                let has_come_over = publisher.is_changing && on == opening && on.is_some();
                if on != current && !has_come_over {
                    wrong.push(format!("{flow:?} is on {current:?}, its reader on {on:?}"));
                }
                let trial = publisher.trials.get(&flow.subscription).map(|it| &self.ids[*it]);
                if trial.is_some() && trial != opening {
                    wrong.push(format!("{flow:?} is on trial on {trial:?}, opening {opening:?}"));
                }
            }
            let is_waiting = current.is_some() && opening.is_some();
            let has_no_route = route.state == RouteState::NoRoute
                && route
                    .decision
                    .iter()
                    .flat_map(|it| &it.rejected)
                    .any(|(_, it)| it.starts_with("exhausted"));
            // Of an end that is gone the word is under way.
            is_timed |= (is_waiting || has_no_route) && self.traits(process, flow).is_some();
            if route.state == RouteState::Opening
                && opening.is_none()
                && self.traits(process, flow).is_some()
            {
                wrong.push(format!("{flow:?} is opening nothing"));
            }
        }
        // Nothing is looked at more rarely than what has run out.
        let latest_ns = self.now_ns + 10_000 * MS;
        if is_timed && timeout.is_none_or(|due_ns| latest_ns < due_ns) {
            let waiting = state.flows.iter().find(|(_, it)| it.state == RouteState::NoRoute);
            wrong.push(format!("a flow waits for ever: {waiting:?}"));
        }
        if state.flows.iter().next().is_none() && timeout.is_some() {
            wrong.push("a table without flows has a time-out".to_owned());
        }
        let on_both = |it: &Publisher| it.is_on(ONE) && it.is_on(TWO);
        if self
            .publishers
            .iter()
            .any(|(id, it)| role_of(*id) == Role::Topic && self.engines.is_some() && on_both(it))
        {
            wrong.push("a publisher sends by both engines".to_owned());
        }
        if self.log.is_some() {
            let shown: Vec<String> = state
                .flows
                .iter()
                .map(|(flow, route)| {
                    format!(
                        "{}>{} {:?} {:?}+{:?}",
                        short(flow.publisher),
                        short(flow.subscription),
                        route.state,
                        route.handover.current(),
                        route.handover.opening()
                    )
                })
                .collect();
            let now = (self.now_ns / MS) % 1_000_000;
            self.note(|| {
                format!(
                    "  {process} at {now}: {} until {:?}",
                    shown.join(", "),
                    timeout.map(|it| it / MS % 1_000_000)
                )
            });
        }
        if let Some(wrong) = wrong.into_iter().next() {
            self.blame(wrong);
        }
    }

    /// A trace does the same again.
    pub(super) fn replay(&mut self, process: ProcessAt) {
        self.drain(process);
        let state = &self.processes[process];
        self.figures.entries += state.trace.len() as u64;
        let again = match trace::replay(state.trace.iter().cloned()) {
            Ok(again) => again,
            Err(divergence) => return self.blame(divergence.to_string()),
        };
        if !again.iter().eq(state.flows.iter())
            || again.poll_timeout() != state.flows.poll_timeout()
        {
            return self.blame("a trace ends otherwise when it is done again");
        }
        if !again.pins().eq(state.flows.pins()) {
            self.blame("a trace ends with other pins when it is done again");
        }
    }

    /// Nothing goes wrong any more, and everything arrives.
    pub(super) fn calm_down(&mut self) {
        self.is_calm = true;
        self.note(|| "from here on nothing goes wrong".to_owned());
        self.processes.iter_mut().for_each(|it| it.exhausted = [false; 5]);
        for publisher in self.publishers.values_mut() {
            // Who has lost a reader has told it.
            publisher.tidy();
        }
        let from_ns = self.now_ns;
        self.alive().into_iter().for_each(|it| self.drain(it));
        for _ in 0..100_000 {
            if self.fault.is_some() || self.is_odd_one {
                return;
            }
            if self.settle() {
                continue;
            }
            let ends = self.subscriptions.values().flat_map(|it| it.values());
            let waits = ends.filter_map(|it| Some(it.change.as_ref()?.ending_since_ns? + WAIT_NS));
            let Some(due) = waits.chain(self.next_due()).min() else { return };
            if from_ns + REST_MAX_NS < self.now_ns {
                let publishers: Vec<_> = self.publishers.keys().copied().collect();
                if publishers.into_iter().any(|it| self.is_odd(home(it), it)) {
                    self.is_odd_one = true;
                    return;
                }
                return self.blame("it does not come to rest");
            }
            self.now_ns = self.now_ns.max(due);
            for process in self.alive() {
                self.look_at_time(process);
            }
        }
        self.blame("it does not come to rest soon");
    }

    /// Lets everything arrive. Answers whether something did.
    pub(super) fn settle(&mut self) -> bool {
        let mut is_something = false;
        while let Some(at) = self.channels.iter().find(|(_, it)| !it.is_empty()).map(|(at, _)| *at)
        {
            is_something = true;
            let word = self.channels.get_mut(&at).unwrap().pop_front().unwrap();
            self.note(|| format!("{} hears from {}: {word:?}", at.1, at.0));
            self.hear(at.0, at.1, word);
        }
        while let Some(at) = self.reaching.iter().find(|(_, it)| !**it).map(|(it, _)| *it) {
            is_something = true;
            self.reaching.insert(at, true);
            let id = self.ids[at.1].clone();
            self.happened(self.decided_in(at.0), Event::GoOn(id));
        }
        let changing = self.publishers.values().filter(|it| it.is_changing).count();
        self.go_on_changing();
        is_something |= self.publishers.values().filter(|it| it.is_changing).count() != changing;
        for (flow, transport) in self.queues.keys().copied().collect::<Vec<_>>() {
            while self.bring(flow, transport) {
                is_something = true;
            }
        }
        let heard = self.subscriptions.iter().flat_map(|(subscription, it)| {
            it.keys().map(|publisher| Flow { publisher: *publisher, subscription: *subscription })
        });
        for flow in heard.collect::<Vec<_>>() {
            self.progress(flow);
        }
        is_something || self.channels.values().any(|it| !it.is_empty())
    }

    /// What a world that has come to rest must be like.
    pub(super) fn check_rest(&mut self) {
        for process in self.alive() {
            let state = &self.processes[process];
            let mut wrong = Vec::new();
            let mut is_let_pass = false;
            for (flow, route) in state.flows.iter() {
                let Some(traits) = self.traits(process, flow) else {
                    wrong.push(format!("{flow:?} is remembered"));
                    continue;
                };
                if route.state == RouteState::Incompatible {
                    continue;
                }
                let current = route.handover.current();
                if route.handover.opening().is_some() || !route.handover.is_settled() {
                    let heard = self
                        .subscriptions
                        .get(&flow.subscription)
                        .and_then(|it| it.get(&flow.publisher));
                    wrong.push(format!(
                        "{flow:?} has not come to rest: {:?}, {heard:?}",
                        route.handover
                    ));
                }
                let expected = self.expected(process, flow, &traits);
                let keeps_wire = match route.ends.way {
                    Way::FromForeign => true,
                    Way::ToForeign => self.engines.is_none() || route.ends.role != Role::Topic,
                    _ => false,
                };
                // One that keeps its wire is decided again only when something is wrong with it.
                let is_right = keeps_wire
                    || current == expected.as_ref()
                    || self.is_odd(process, flow.publisher);
                if !is_right && is_unpromised(route, expected.as_ref()) {
                    is_let_pass = true;
                    continue;
                }
                if !is_right {
                    wrong.push(format!(
                        "{flow:?} is on {current:?} and not on {expected:?}: {:?}",
                        route.decision
                    ));
                }
            }
            if let Some(wrong) = wrong.into_iter().next() {
                self.blame(wrong);
            }
            let flows = &self.processes[process].flows;
            let is_found = |it: EndpointId| {
                let all = flows.iter().map(|(flow, _)| flow);
                let of = all.filter(|flow| flow.publisher == it || flow.subscription == it);
                flows.of_endpoint(it).count() == of.count()
            };
            if !self.named.iter().all(|it| is_found(*it)) {
                self.blame("flows of an endpoint are not found by it");
            }
            self.is_odd_one |= is_let_pass;
            self.replay(process);
        }
        let mut heard = self.subscriptions.values().flat_map(|it| it.values());
        let is_owed = heard.clone().any(|it| !it.owed.is_empty());
        let is_changing = heard.any(|it| it.change.is_some());
        if is_owed {
            self.blame("a sample is not delivered");
        } else if is_changing {
            self.blame("a subscription has not finished its change");
        }
    }

    /// The first engine, which is to reach all, does not reach a reader of this publisher.
    pub(super) fn is_odd(&self, process: ProcessAt, publisher: EndpointId) -> bool {
        let mut flows = self.processes[process].flows.of_publisher(publisher);
        self.engines.is_some() && flows.any(|(it, _)| self.is_excluded(process, it, &self.ids[ONE]))
    }

    /// What the table says of a transport that is not to be had for good.
    pub(super) fn is_excluded(
        &self,
        process: ProcessAt,
        flow: Flow,
        transport: &TransportId,
    ) -> bool {
        let route = self.processes[process].flows.get(flow);
        let rejected = route.and_then(|it| it.decision.as_ref()).map(|it| &it.rejected);
        let reason = rejected.and_then(|it| it.iter().find(|(id, _)| *id == transport.as_str()));
        reason.is_some_and(|(_, it)| it.contains(LASTING) || it.contains(LATE))
    }

    pub(super) fn chosen(
        &self,
        process: ProcessAt,
        flow: Flow,
        traits: &Traits,
        without: Option<Transport>,
    ) -> Option<TransportId> {
        let mut offers = self.offers(process, flow);
        for offer in &mut offers {
            if self.is_excluded(process, flow, &offer.transport)
                || without.is_some_and(|it| self.ids[it] == offer.transport)
            {
                offer.health = Health::Failed("excluded".into());
            }
        }
        let state = &self.processes[process];
        let topic = TOPICS[topic_of(flow.publisher)].0;
        let pinned = state.flows.pinned_to(topic).map(|it| state.policy.pinned(topic, it));
        let policy = pinned.as_ref().unwrap_or(&state.policy);
        select(traits, policy, topic, &offers).ok().map(|it| it.transport)
    }

    /// What a flow is to take.
    pub(super) fn expected(
        &self,
        process: ProcessAt,
        flow: Flow,
        traits: &Traits,
    ) -> Option<TransportId> {
        let alone = self.chosen(process, flow, traits, None)?;
        let is_shared = self.engines.is_some() && role_of(flow.publisher) == Role::Topic;
        if alone != self.ids[TWO] || !is_shared || home(flow.publisher) == FOREIGN {
            return Some(alone);
        }
        let needs_first = |(it, route): (Flow, &Route)| {
            it != flow
                && route.state != RouteState::Incompatible
                && self
                    .traits(process, it)
                    .and_then(|traits| self.chosen(process, it, &traits, None))
                    .is_some_and(|it| it == self.ids[ONE])
        };
        let others = self.processes[process].flows.of_publisher(flow.publisher);
        let is_keeping = self.publishers[&flow.publisher].is_keeping;
        match is_keeping || others.into_iter().any(needs_first) {
            true => self.chosen(process, flow, traits, Some(TWO)),
            false => Some(alone),
        }
    }
}

/// That it is not on the best link is not against what is promised.
fn is_unpromised(route: &Route, expected: Option<&TransportId>) -> bool {
    let mut rejected = route.decision.iter().flat_map(|it| &it.rejected);
    rejected.any(|(id, why)| {
        expected.is_some_and(|it| *id == it.as_str()) && why.contains("another subscription needs")
    })
}
