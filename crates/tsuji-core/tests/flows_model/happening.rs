//! What happens in a world.

use super::*;

impl World {
    pub(super) fn step(&mut self) {
        self.figures.steps += 1;
        match self.random.below(100) {
            0..30 => self.hear_one(),
            30..45 => {
                let ids: Vec<_> = self.publishers.keys().copied().collect();
                if let Some(id) = self.random.pick(&ids) {
                    self.publish(id);
                }
            }
            45..60 => {
                let queues: Vec<_> = self.queues.keys().copied().collect();
                if let Some((flow, transport)) = self.random.pick(&queues) {
                    self.bring(flow, transport);
                    self.progress(flow);
                }
            }
            60..67 => self.reach_one(),
            67..76 => self.pass_time(),
            76..82 => self.add_endpoint(),
            82..84 => self.remove_endpoint(),
            84..90 => {
                if let Some(process) = self.random_process() {
                    self.something_small(process);
                    self.drain(process);
                }
            }
            90..95 if self.random.chance(self.faults * 8) => self.fail_something(),
            95 => {
                let alive = self.alive();
                let policy = self.new_policy();
                if let Some(process) = self.random.pick(&alive).filter(|_| self.random.chance(40)) {
                    self.processes[process].policy = policy.clone();
                    self.happened(process, Event::PolicyChanged(policy));
                }
            }
            96 => self.pin_something(),
            97 if self.random.chance(10) => self.start_or_kill(),
            98 => self.meet_again(),
            _ => self.go_on_changing(),
        }
    }

    pub(super) fn random_process(&mut self) -> Option<ProcessAt> {
        let alive = self.alive();
        self.random.pick(&alive)
    }

    pub(super) fn random_flow(&mut self, process: ProcessAt) -> Option<Flow> {
        let flows: Vec<Flow> = self.processes[process].flows.iter().map(|(it, _)| it).collect();
        self.random.pick(&flows)
    }

    pub(super) fn hear_one(&mut self) {
        let channels: Vec<_> =
            self.channels.iter().filter(|(_, it)| !it.is_empty()).map(|(it, _)| *it).collect();
        if let Some((from, to)) = self.random.pick(&channels) {
            let word = self.channels.get_mut(&(from, to)).unwrap().pop_front().unwrap();
            self.note(|| format!("{to} hears from {from}: {word:?}"));
            self.hear(from, to, word);
        }
    }

    pub(super) fn reach_one(&mut self) {
        let reaching: Vec<_> =
            self.reaching.iter().filter(|(_, it)| !**it).map(|(it, _)| *it).collect();
        let Some((flow, transport)) = self.random.pick(&reaching) else { return };
        self.reaching.insert((flow, transport), true);
        let process = self.decided_in(flow);
        let id = self.ids[transport].clone();
        self.say(process, process, Word::Happened(Event::GoOn(id)));
    }

    pub(super) fn decided_in(&self, flow: Flow) -> ProcessAt {
        let process = home(flow.publisher);
        if process == FOREIGN { home(flow.subscription) } else { process }
    }

    pub(super) fn pass_time(&mut self) {
        let due = self.next_due().unwrap_or(self.now_ns);
        self.now_ns = match self.random.below(8) {
            0 => self.now_ns + 1_200 * MS,
            1..=4 => self.now_ns.max(due),
            5 => self.now_ns.max(due - 1),
            _ => self.now_ns + self.random.below(60) as u64 * MS,
        };
        for process in self.alive() {
            if self.random.chance(80) {
                self.look_at_time(process);
            }
        }
        let flows: Vec<Flow> = self.queues.keys().map(|(flow, _)| *flow).collect();
        flows.into_iter().for_each(|flow| self.progress(flow));
    }

    pub(super) fn look_at_time(&mut self, process: ProcessAt) {
        let due = self.processes[process].flows.poll_timeout();
        if due.is_some_and(|due_ns| due_ns <= self.now_ns) {
            self.happened(process, Event::Timeout);
        }
    }

    pub(super) fn next_due(&self) -> Option<u64> {
        let alive = self.processes.iter().filter(|it| it.is_alive);
        alive.filter_map(|it| it.flows.poll_timeout()).min()
    }

    pub(super) fn add_endpoint(&mut self) {
        let process = if self.random.chance(self.foreign_share) {
            FOREIGN
        } else {
            self.random.below(self.processes.len())
        };
        let there =
            self.foreign.iter().chain(self.publishers.keys()).chain(self.subscriptions.keys());
        let is_alive = process == FOREIGN || self.processes[process].is_alive;
        if !is_alive || 5 <= there.filter(|it| home(**it) == process).count() {
            return;
        }
        let topic = self.random.pick(&[0, 0, 0, 1, 2]).unwrap();
        let id = named(process, topic, self.random.chance(45), self.named.len() as u32);
        self.named.push(id);
        self.note(|| format!("{} is there", short(id)));
        let everybody: Vec<_> = self.alive().into_iter().filter(|it| *it != process).collect();
        if process == FOREIGN {
            self.foreign.insert(id);
        } else if is_publisher(id) {
            let publisher = Publisher {
                is_keeping: self.random.chance(10),
                size: Size::Small,
                next: 1,
                is_broken: [false; 5],
                readers: BTreeMap::new(),
                trials: BTreeMap::new(),
                left: Vec::new(),
                lost: BTreeSet::new(),
                ready: BTreeMap::new(),
                is_changing: false,
            };
            self.publishers.insert(id, publisher);
            return self.meet(process, id);
        } else {
            self.subscriptions.insert(id, BTreeMap::new());
            self.meet(process, id);
        }
        everybody.into_iter().for_each(|it| self.say(process, it, Word::Announce(id)));
    }

    pub(super) fn remove_endpoint(&mut self) {
        let there =
            self.foreign.iter().chain(self.publishers.keys()).chain(self.subscriptions.keys());
        let there: Vec<EndpointId> = there.copied().collect();
        if let Some(id) = self.random.pick(&there) {
            self.note(|| format!("{} goes", short(id)));
            self.forget(id);
            let process = home(id);
            self.say(process, process, Word::Happened(Event::EndpointGone(id)));
            if process == FOREIGN || !is_publisher(id) {
                let others = self.alive().into_iter().filter(|it| *it != process);
                others
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|it| self.say(process, it, Word::Gone(vec![id])));
            }
        }
    }

    pub(super) fn forget(&mut self, id: EndpointId) {
        self.foreign.remove(&id);
        self.publishers.remove(&id);
        self.subscriptions.remove(&id);
        if !is_publisher(id) {
            self.queues.retain(|(flow, _), _| flow.subscription != id);
        }
    }

    /// What a table may be told at any time.
    pub(super) fn something_small(&mut self, process: ProcessAt) {
        let event = match self.random.below(6) {
            0 | 1 => {
                let ids = self.publishers.keys().copied().filter(|it| home(*it) == process);
                let ids: Vec<_> = ids.collect();
                let Some(publisher) = self.random.pick(&ids) else { return };
                let size = &mut self.publishers.get_mut(&publisher).unwrap().size;
                *size = if *size == Size::Small { Size::Large } else { Size::Small };
                Event::PublisherDoubted {
                    publisher,
                    why: "its samples are of another size".to_owned(),
                }
            }
            2 => {
                let Some(flow) = self.random_flow(process) else { return };
                Event::Doubted { flow, why: "another engine has found it".to_owned() }
            }
            3 | 4 => Event::GoOn(self.ids[self.random.below(5)].clone()),
            _ => Event::Timeout,
        };
        self.tell(process, event);
    }

    pub(super) fn fail_something(&mut self) {
        let Some(process) = self.random_process() else { return };
        let transport = self.random.below(5);
        let ids: Vec<_> =
            self.publishers.keys().copied().filter(|it| home(*it) == process).collect();
        let publisher = self.random.pick(&ids);
        match self.random.below(4) {
            0 | 1 => {
                let exhausted = &mut self.processes[process].exhausted[transport];
                *exhausted = !*exhausted;
                let is_exhausted = *exhausted;
                self.note(|| {
                    format!("{} of {process} has run out: {is_exhausted}", NAMES[transport])
                });
                let is_on = publisher.is_some_and(|it| self.publishers[&it].is_on(transport));
                if is_exhausted && is_on {
                    self.trouble(publisher.unwrap(), transport, false);
                }
            }
            2 => {
                let Some(id) = publisher.filter(|it| self.publishers[it].is_on(transport)) else {
                    return;
                };
                let is_lossy = self.random.chance(50);
                let publisher = self.publishers.get_mut(&id).unwrap();
                publisher.is_broken[transport] = true;
                publisher.left.retain(|(_, it)| *it != transport);
                publisher.tidy();
                let flows = self
                    .queues
                    .keys()
                    .filter(|(flow, at)| flow.publisher == id && *at == transport);
                for (flow, at) in flows.copied().collect::<Vec<_>>() {
                    if is_lossy {
                        self.lose_queue(flow, at);
                    }
                }
                self.trouble(id, transport, true);
            }
            _ => {
                let Some(publisher) = publisher.and_then(|it| self.publishers.get_mut(&it)) else {
                    return;
                };
                let readers: Vec<_> = publisher.readers.iter().map(|(it, at)| (*it, *at)).collect();
                let Some((reader, at)) = self.random.pick(&readers) else { return };
                publisher.lost.insert(reader);
                let flow = Flow::new(
                    ids.iter()
                        .copied()
                        .find(|it| {
                            self.publishers[it].lost.contains(&reader)
                                && self.publishers[it].readers.contains_key(&reader)
                        })
                        .unwrap(),
                    reader,
                );
                self.lose_queue(flow, at);
                self.happened(process, Event::ReaderLost { flow, transport: self.ids[at].clone() });
            }
        }
    }

    pub(super) fn trouble(&mut self, publisher: EndpointId, transport: Transport, is_broken: bool) {
        let reason = if is_broken { "it has failed" } else { "all in use" };
        let trouble =
            Trouble { id: self.ids[transport].clone(), reason: reason.to_owned(), is_broken };
        self.happened(home(publisher), Event::Trouble { publisher, trouble });
    }

    pub(super) fn pin_something(&mut self) {
        let Some(process) = self.random_process() else { return };
        let transport = self.random.below(7);
        let transport = self.ids.get(transport).cloned();
        let topic = Arc::from(TOPICS[self.random.below(3)].0);
        let stamp = self.processes[process].flows.new_stamp([process as u8; 16]);
        let pin = Pin { topic, transport, stamp };
        for other in self.alive().into_iter().filter(|it| *it != process) {
            self.say(process, other, Word::Pin(pin.clone()));
        }
        self.pin(process, pin);
    }

    pub(super) fn start_or_kill(&mut self) {
        let process = self.random.below(self.processes.len());
        if self.processes[process].is_alive {
            self.note(|| format!("{process} dies"));
            self.replay(process);
            self.processes[process].is_alive = false;
            let ids = self.publishers.keys().chain(self.subscriptions.keys()).copied();
            let ids: Vec<_> = ids.filter(|it| home(*it) == process).collect();
            ids.iter().for_each(|id| self.forget(*id));
            self.reaching.retain(|(flow, _), _| {
                self.publishers.contains_key(&flow.publisher)
                    || home(flow.publisher) == FOREIGN && home(flow.subscription) != process
            });
            self.channels.retain(|(from, to), _| *from != process && *to != process);
            // Also of those whose end was not heard.
            let ids = self.named.iter().copied().filter(|it| home(*it) == process);
            let ids: Vec<_> = ids.collect();
            for other in self.alive() {
                self.say(process, other, Word::Gone(ids.clone()));
            }
            return;
        }
        self.note(|| format!("{process} is started"));
        self.processes[process] = self.new_process();
        let there = self.foreign.iter().chain(self.subscriptions.keys());
        for id in there.copied().collect::<Vec<_>>() {
            self.say(home(id), process, Word::Announce(id));
        }
        for other in self.alive().into_iter().filter(|it| *it != process) {
            for pin in self.processes[other].flows.pins().collect::<Vec<_>>() {
                self.say(other, process, Word::Pin(pin));
            }
        }
    }

    /// A flow is over and its ends meet again; or they fit now.
    pub(super) fn meet_again(&mut self) {
        let Some(process) = self.random_process() else { return };
        // What is told follows from how the flow is now.
        self.drain(process);
        let Some(flow) = self.random_flow(process) else { return };
        let Some(route) = self.processes[process].flows.get(flow) else { return };
        let (topic, ends) = (route.topic.clone(), self.ends(process, flow));
        if route.state == RouteState::Incompatible {
            self.tell(process, Event::Unmatched(flow));
        } else if self.random.chance(30) {
            self.tell(process, Event::Ended(flow));
        } else {
            return;
        }
        if self.traits(process, flow).is_some() {
            self.happened(process, Event::Matched { flow, topic, ends });
        }
    }

    /// Tells tables of publishers whose readers go over to another engine.
    pub(super) fn go_on_changing(&mut self) {
        let changing = self.publishers.iter().filter(|(_, it)| it.is_changing);
        for id in changing.map(|(id, _)| *id).collect::<Vec<_>>() {
            if self.is_calm || self.random.chance(70) {
                self.happened(home(id), Event::EngineChanging(id));
            }
        }
    }
}
