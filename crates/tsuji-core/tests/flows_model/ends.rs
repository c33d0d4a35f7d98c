//! What stands at the two ends of a flow.

use super::*;

/// The publisher's end.
impl Publisher {
    pub(super) fn is_on(&self, transport: Transport) -> bool {
        let also = self.left.iter().map(|(_, it)| it);
        self.readers.values().chain(self.trials.values()).chain(also).any(|it| *it == transport)
    }

    /// A link that has failed is opened anew when it is wanted again.
    pub(super) fn tidy(&mut self) {
        for at in 0..5 {
            self.is_broken[at] &= self.is_on(at);
        }
    }

    pub(super) fn counted(&self) -> Connected {
        Connected { first: self.next, ends: Some(self.next), published_before: self.next - 1 }
    }

    pub(super) fn move_over(&mut self, reader: EndpointId, transport: Transport) {
        self.lost.remove(&reader);
        if let Some(old) = self.readers.insert(reader, transport)
            && !is_directed(old)
            && !self.is_broken[old]
        {
            self.left.push((reader, old));
        }
    }
}

impl World {
    pub(super) fn connect(
        &mut self,
        process: ProcessAt,
        flow: Flow,
        transport: Transport,
        reach: &Reach,
        is_urgent: bool,
    ) -> Outcome {
        let publisher = self.publishers.get(&flow.publisher);
        let has_come_over =
            publisher.is_some_and(|it| it.readers.get(&flow.subscription) == Some(&transport));
        if !has_come_over && self.goes_wrong() {
            self.disconnect_from(flow, transport);
            return Outcome::Refused(match self.random.chance(15) {
                true => Refusal::lasting(LASTING),
                false => Refusal::passing("not now"),
            });
        }
        if *reach == Reach::FromForeign {
            if !self.is_known(process, flow.publisher) || !self.is_known(process, flow.subscription)
            {
                return Outcome::Gone;
            }
            if !is_immediate(transport) && !self.has_reached(flow, transport) {
                return Outcome::Later;
            }
            let heard = self
                .subscriptions
                .get_mut(&flow.subscription)
                .unwrap()
                .entry(flow.publisher)
                .or_default();
            heard.link = Some(transport);
            return Outcome::Heard;
        }
        if !self.publishers.contains_key(&flow.publisher)
            || !self.is_known(process, flow.subscription)
        {
            return Outcome::Refused(Refusal::lasting("one of the ends is gone"));
        }
        if !is_immediate(transport) && !self.has_reached(flow, transport) {
            return Outcome::Later;
        }
        let reader = flow.subscription;
        let publisher = self.publishers.get_mut(&flow.publisher).unwrap();
        if publisher.is_broken[transport] && !has_come_over {
            self.disconnect_from(flow, transport);
            return Outcome::Refused(Refusal::passing("it has failed"));
        }
        match self.cross(flow, transport) {
            Some(Outcome::Gone) | None => {}
            Some(opened) => return opened,
        }
        let publisher = self.publishers.get_mut(&flow.publisher).unwrap();
        let Some(_) = publisher.readers.get(&reader) else {
            publisher.readers.insert(reader, transport);
            return Outcome::Connected(Connected { ends: None, ..publisher.counted() });
        };
        publisher.trials.insert(reader, transport);
        let is_shown = is_immediate(transport) || role_of(reader) != Role::Topic;
        let is_broken = publisher.readers.values().any(|it| publisher.is_broken[*it]);
        if !is_shown && !is_broken && !is_urgent {
            return Outcome::OnTrial;
        }
        self.take_over(flow).map_or(Outcome::Later, Outcome::Connected)
    }

    /// Whether a slow transport has reached the other end.
    pub(super) fn has_reached(&mut self, flow: Flow, transport: Transport) -> bool {
        *self.reaching.entry((flow, transport)).or_insert(false)
    }

    /// Brings the readers of the other engine over to this one if it reaches them all. `None` if nobody is there.
    pub(super) fn cross(&mut self, flow: Flow, transport: Transport) -> Option<Outcome> {
        if self.engines.is_none() || !is_engine(transport) || role_of(flow.publisher) != Role::Topic
        {
            return None;
        }
        let is_waited_for = !self.is_calm && self.random.chance(30);
        let reader = flow.subscription;
        let publisher = self.publishers.get_mut(&flow.publisher)?;
        let other = ONE + TWO - transport;
        if publisher.readers.get(&reader) == Some(&transport) {
            return Some(Outcome::Connected(publisher.counted()));
        }
        let on_other = publisher.readers.iter().filter(|(_, it)| **it == other);
        let on_other: Vec<EndpointId> = on_other.map(|(reader, _)| *reader).collect();
        let is_left =
            publisher.left.iter().filter(|(it, _)| !on_other.contains(it)).map(|(_, it)| it);
        let is_busy = is_left.chain(publisher.trials.values()).any(|it| *it == other);
        if on_other.is_empty() && !is_busy {
            return None;
        }
        let was_there = on_other.contains(&reader);
        if was_there {
            publisher.ready.insert(reader, transport);
        }
        publisher.is_changing = true;
        if is_busy
            || !on_other.iter().all(|it| publisher.ready.get(it) == Some(&transport))
            || is_waited_for
        {
            return Some(Outcome::Later);
        }
        for reader in on_other {
            publisher.move_over(reader, transport);
            publisher.left.retain(|(it, _)| *it != reader);
        }
        publisher.ready.clear();
        publisher.tidy();
        let counted = publisher.counted();
        self.figures.crossings += 1;
        self.note(|| {
            format!("all readers of {} go over to {}", short(flow.publisher), NAMES[transport])
        });
        was_there.then_some(Outcome::Connected(counted))
    }

    pub(super) fn take_over(&mut self, flow: Flow) -> Option<Connected> {
        let publisher = self.publishers.get_mut(&flow.publisher)?;
        let transport = publisher.trials.remove(&flow.subscription)?;
        let connected = publisher.counted();
        publisher.move_over(flow.subscription, transport);
        publisher.tidy();
        Some(connected)
    }

    pub(super) fn disconnect_from(&mut self, flow: Flow, transport: Transport) {
        self.reaching.remove(&(flow, transport));
        let Some(publisher) = self.publishers.get_mut(&flow.publisher) else {
            if home(flow.publisher) == FOREIGN {
                self.close(flow, false);
            }
            return;
        };
        if publisher.trials.get(&flow.subscription) == Some(&transport) {
            publisher.trials.remove(&flow.subscription);
        }
        publisher.ready.remove(&flow.subscription);
        publisher.tidy();
        if publisher.readers.get(&flow.subscription) == Some(&transport) {
            // Unless it is left with that.
            self.suspected.insert((flow, transport));
        }
    }

    pub(super) fn disconnect(&mut self, flow: Flow) {
        self.reaching.retain(|(it, _), _| *it != flow);
        let Some(publisher) = self.publishers.get_mut(&flow.publisher) else { return };
        let reader = flow.subscription;
        publisher.trials.remove(&reader);
        publisher.readers.remove(&reader);
        publisher.ready.remove(&reader);
        publisher.lost.remove(&reader);
        publisher.left.retain(|(it, _)| *it != reader);
        publisher.tidy();
    }

    pub(super) fn publish(&mut self, id: EndpointId) {
        let Some(publisher) = self.publishers.get_mut(&id) else { return };
        if publisher.readers.values().any(|it| publisher.is_broken[*it]) {
            // It waits until they have another link.
            return;
        }
        let number = publisher.next;
        publisher.next += 1;
        self.figures.samples += 1;
        let publisher = publisher.clone();
        let owed = publisher.readers.iter().map(|(reader, link)| (*reader, *link, true));
        let trials = publisher.trials.iter().map(|(reader, link)| (*reader, *link, false));
        let left = publisher.left.iter().map(|(reader, link)| (*reader, *link, false));
        let mut copies = BTreeMap::<EndpointId, usize>::new();
        for (reader, link, is_owed) in owed.chain(trials).chain(left) {
            if is_owed && publisher.lost.contains(&reader) {
                continue;
            }
            let flow = Flow::new(id, reader);
            if home(reader) == FOREIGN {
                *copies.entry(reader).or_default() += 1;
                continue;
            }
            let heard = self.subscriptions.get_mut(&reader).and_then(|it| it.get_mut(&id));
            if let Some(heard) = heard {
                self.queues.entry((flow, link)).or_default().push_back((number, is_owed));
                if is_owed {
                    heard.owed.insert(number);
                }
            }
        }
        if role_of(id) == Role::Topic && copies.values().any(|it| 1 < *it) {
            self.blame("a foreign node hears a sample twice");
        }
    }
}

/// The subscription's end.
impl World {
    pub(super) fn heard(&mut self, flow: Flow) -> Option<&mut Heard> {
        self.subscriptions.get_mut(&flow.subscription)?.get_mut(&flow.publisher)
    }

    /// Opens this end of a flow; or where it has a link, that of another beside it.
    pub(super) fn accept(
        &mut self,
        flow: Flow,
        epoch: u32,
        transport: Transport,
    ) -> Result<Vec<u8>, Refusal> {
        if self.goes_wrong() {
            return Err(match self.random.chance(15) {
                true => Refusal::lasting(LASTING),
                false => Refusal::passing("no room"),
            });
        }
        let subscription = self.subscriptions.get_mut(&flow.subscription);
        let Some(subscription) = subscription else { return Err(Refusal::lasting("it is gone")) };
        let heard = subscription.entry(flow.publisher).or_default();
        if !heard.is_connected {
            (heard.link, heard.epoch) = (Some(transport), Epoch(epoch));
        } else {
            let is_taken = heard.link == Some(transport)
                || heard.change.iter().flat_map(|it| &it.links).any(|(_, it)| *it == transport);
            if is_taken {
                self.blame("a link is offered from which is still taken");
                return Err(Refusal::passing("not all was taken"));
            }
            let (old, next, link) = (heard.epoch, heard.next, heard.link.unwrap());
            let change = heard.change.get_or_insert_with(|| Change {
                handover: ReaderHandover::new(old, next, 0, 1 << 20),
                links: vec![(old, link)],
                ending_since_ns: None,
                shown: old,
            });
            change.handover.open(Epoch(epoch));
            change.links.push((Epoch(epoch), transport));
            if !change.handover.is_open(Epoch(epoch)) {
                self.blame("more links are open than a handover has");
            }
        }
        self.drop_queue(flow, transport);
        Ok(address_of(transport, epoch))
    }

    /// What is still on a link comes to nobody.
    pub(super) fn drop_queue(&mut self, flow: Flow, transport: Transport) {
        let queue = self.queues.remove(&(flow, transport)).unwrap_or_default();
        let owed = self.heard(flow).map(|it| it.owed.clone()).unwrap_or_default();
        if queue.iter().any(|(number, is_owed)| *is_owed && owed.contains(number)) {
            self.blame(format!("what {} owes to {flow:?} is thrown away", NAMES[transport]));
        }
    }

    /// What is on a link is lost there.
    pub(super) fn lose_queue(&mut self, flow: Flow, transport: Transport) {
        let queue = self.queues.remove(&(flow, transport)).unwrap_or_default();
        if let Some(heard) = self.heard(flow) {
            for (number, _) in queue.iter().filter(|(_, is_owed)| *is_owed) {
                heard.owed.remove(number);
            }
        }
    }

    pub(super) fn deliver(&mut self, flow: Flow, number: u64) {
        let Some(heard) = self.heard(flow) else { return };
        let is_in_order = heard.last.is_none_or(|last| last < number);
        let is_all = heard.owed.first().is_none_or(|first| number <= *first);
        heard.owed.remove(&number);
        heard.last = Some(number);
        heard.next = Some(number + 1);
        if !is_in_order {
            self.blame(format!("{number} is not delivered once and in order to {flow:?}"));
        } else if !is_all {
            self.blame(format!("a sample before {number} is not delivered to {flow:?}"));
        }
    }

    pub(super) fn cut(&mut self, flow: Flow, epoch: u32, connected: Connected) {
        let now_ns = self.now_ns;
        let Connected { first, ends, .. } = connected;
        let Some(heard) = self.heard(flow) else { return };
        if let Some(ends) = ends {
            let Some(change) = &mut heard.change else { return };
            if change.handover.cut(Cut { epoch: Epoch(epoch), ends, first }) {
                change.ending_since_ns.get_or_insert(now_ns);
            }
            self.after_change(flow);
            self.progress(flow);
        } else if heard.link.is_some() {
            heard.is_connected = true;
            heard.next = heard.next.or(Some(first));
        }
    }

    pub(super) fn withdraw(&mut self, flow: Flow, epoch: u32) {
        let Some(heard) = self.heard(flow) else { return };
        let link = match &mut heard.change {
            Some(change) => {
                let Some(at) = change.links.iter().position(|(it, _)| it.0 == epoch) else {
                    return;
                };
                change.handover.withdraw(Epoch(epoch));
                if change.handover.is_open(Epoch(epoch)) {
                    return;
                }
                change.links.remove(at).1
            }
            None if heard.epoch.0 == epoch && !heard.is_connected => {
                let Some(link) = heard.link.take() else { return };
                link
            }
            None => return,
        };
        self.drop_queue(flow, link);
        self.after_change(flow);
    }

    /// The publisher sends nothing any more; what has come is delivered.
    pub(super) fn close(&mut self, flow: Flow, is_told: bool) {
        let Some(heard) = self.heard(flow) else { return };
        let links: Vec<Transport> = match &heard.change {
            Some(change) => change.links.iter().map(|(_, it)| *it).collect(),
            None => heard.link.into_iter().collect(),
        };
        for link in links {
            while self.bring(flow, link) {}
        }
        let Some(heard) = self.heard(flow) else { return };
        if let Some(change) = &mut heard.change {
            change.handover.end();
            self.after_change(flow);
        }
        for at in 0..5 {
            self.queues.remove(&(flow, at));
        }
        let Some(heard) = self.heard(flow) else { return };
        let is_missing = is_told && !heard.owed.is_empty();
        heard.owed.clear();
        heard.change = None;
        (heard.link, heard.is_connected) = (None, false);
        if is_missing {
            self.blame(format!("{flow:?} is over, and not all of it was delivered"));
        }
    }

    /// Lets a link bring its oldest sample. Answers whether there was one.
    pub(super) fn bring(&mut self, flow: Flow, transport: Transport) -> bool {
        let Some(queue) = self.queues.get_mut(&(flow, transport)) else { return false };
        let Some((number, _)) = queue.pop_front() else { return false };
        let Some(heard) = self.heard(flow) else { return true };
        let Some(change) = &mut heard.change else {
            if heard.link == Some(transport) && heard.next.is_none_or(|next| next <= number) {
                self.deliver(flow, number);
            }
            return true;
        };
        let epoch = change.links.iter().find(|(_, it)| *it == transport).map(|(epoch, _)| *epoch);
        let Some(epoch) = epoch else { return true };
        let arrival = change.handover.arrive(epoch, number, number);
        let is_shown = change.shown < epoch;
        if let Arrival::Deliver(number, _) = arrival {
            self.deliver(flow, number);
        } else if is_shown {
            change.shown = epoch;
            self.answer(flow, Event::Shown { flow, epoch: epoch.0 });
        }
        self.after_change(flow);
        true
    }

    pub(super) fn answer(&mut self, flow: Flow, event: Event) {
        self.say(home(flow.subscription), home(flow.publisher), Word::Happened(event));
    }

    /// Delivers what need not be held any longer, and leaves the links that are finished.
    pub(super) fn after_change(&mut self, flow: Flow) {
        let now_ns = self.now_ns;
        loop {
            let Some(change) = self.heard(flow).and_then(|it| it.change.as_mut()) else { return };
            change.handover.discarded();
            let Some((number, _)) = change.handover.next_due() else { break };
            self.deliver(flow, number);
        }
        let Some(heard) = self.heard(flow) else { return };
        let Some(change) = &mut heard.change else { return };
        let epoch = change.handover.current();
        let is_new = heard.epoch != epoch;
        let current = change.links.iter().find(|(it, _)| *it == epoch).map(|(_, it)| *it);
        let left = change.links.extract_if(.., |(it, _)| !change.handover.is_open(*it));
        let left: Vec<(Epoch, Transport)> = left.collect();
        let held = change.handover.held_peak() as u64;
        if is_new {
            change.ending_since_ns = change.handover.is_ending().then_some(now_ns);
            (heard.epoch, heard.link) = (epoch, current);
        }
        if change.handover.is_settled() && change.links.len() == 1 {
            heard.change = None;
        }
        if is_new {
            self.answer(flow, Event::Done { flow, epoch: epoch.0, held });
        }
        for (_, link) in left {
            self.drop_queue(flow, link);
        }
    }

    /// Goes on to the next link where the one that delivers has brought all, or was waited for long enough.
    pub(super) fn progress(&mut self, flow: Flow) {
        loop {
            let now_ns = self.now_ns;
            let Some(change) = self.heard(flow).and_then(|it| it.change.as_ref()) else { return };
            let epoch = change.handover.current();
            let link = change.links.iter().find(|(it, _)| *it == epoch).map(|(_, it)| *it);
            let Some(link) = link.filter(|_| change.handover.is_ending()) else { return };
            let is_late = change.ending_since_ns.is_some_and(|since| since + WAIT_NS <= now_ns);
            if !is_late && !is_immediate(link) {
                return;
            }
            while self.bring(flow, link) {}
            if let Some(change) = self.heard(flow).and_then(|it| it.change.as_mut())
                && change.handover.current() == epoch
            {
                change.handover.over(epoch);
            }
            self.after_change(flow);
        }
    }
}
