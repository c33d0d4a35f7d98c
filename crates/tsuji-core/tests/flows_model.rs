//! Random walks of several processes whose flows are decided by the code that ships.
//!
//! A [`World`] has processes, each with a table of [`Flows`], the channels between them, transports, and what stands at
//! the ends of flows. [`walk`] lets things happen to it in an order that a seed gives, and then lets it come to
//! rest. Of what must hold all is tried when a table has nothing to do, and the rest at the end. A walk that fails
//! says its seed: `TSUJI_MODEL_SEED` makes it again alone, and `TSUJI_MODEL_WALKS` says how many there are.
#![allow(clippy::print_stderr, reason = "it says how much was tried, and what went wrong")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(clippy::disallowed_methods, reason = "the seed of a walk that is made again is told to it")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tsuji_core::flows::trace::{self, Entry, Recorder};
use tsuji_core::flows::{
    Action, Connected, EndpointId, Ends, Event, Flow, RouteState, Flows, Now, Opened, Pin, Reach,
    Refusal, Role, Trouble, View, Way, WireEngines,
};
use tsuji_core::handover::{Arrival, Cut, Epoch, ReaderHandover};
use tsuji_core::{
    Capability, Conditions, DraftPolicy, Health, Offer, Origin, Peer, Peers, Policy, Reliability,
    Rule, Scope, Scopes, Size, SizeOrigin, Traits, TransportId, Vendor, select,
};

/// A place in the list of transports.
type Transport = usize;
/// A place in the list of processes; [`FOREIGN`] is where foreign nodes are.
type ProcessAt = usize;

const MS: u64 = 1_000_000;
const FOREIGN: ProcessAt = 9;
const NAMES: [&str; 5] = ["mem", "shm", "net", "one", "two"];
const ONE: Transport = 3;
const TWO: Transport = 4;
const TOPICS: [(&str, Role); 3] = [("/a", Role::Topic), ("/b", Role::Topic), ("/c", Role::Request)];
const LASTING: &str = "never";
const LATE: &str = "the other end was not reached in time";
/// How long an old link may take to bring what it owes.
const WAIT_NS: u64 = 2_000 * MS;
/// So long a calm world may take at most to come to rest.
const REST_MAX_NS: u64 = 600_000 * MS;

/// Numbers that look random: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// In so many of 100 cases.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.below(from.len())])
    }
}

/// What an endpoint's name tells: where it lives and what it is.
fn named(process: ProcessAt, topic: usize, is_publisher: bool, number: u32) -> EndpointId {
    let mut id = [0; 16];
    (id[0], id[1], id[2]) = (process as u8, topic as u8, u8::from(is_publisher));
    id[4..8].copy_from_slice(&number.to_be_bytes());
    id
}

fn home(id: EndpointId) -> ProcessAt {
    id[0].into()
}

fn topic_of(id: EndpointId) -> usize {
    id[1].into()
}

fn is_publisher(id: EndpointId) -> bool {
    id[2] == 1
}

/// Half of the foreign nodes are of the vendor that the second engine speaks to.
fn vendor(id: EndpointId) -> Vendor {
    if id[7].is_multiple_of(2) { Vendor::Fast } else { Vendor::Cyclone }
}

fn role_of(id: EndpointId) -> Role {
    TOPICS[topic_of(id)].1
}

/// Whether all that is sent on it is there at once.
fn is_immediate(transport: Transport) -> bool {
    transport < 2
}

/// Whether it sends to each reader by itself.
fn is_directed(transport: Transport) -> bool {
    matches!(transport, 0 | 2)
}

fn is_engine(transport: Transport) -> bool {
    transport == ONE || transport == TWO
}

fn short(id: EndpointId) -> String {
    let kind = if is_publisher(id) { 'p' } else { 's' };
    format!("{kind}{}.{}{}", u32::from_be_bytes([0, 0, id[6], id[7]]), home(id), TOPICS[topic_of(id)].0)
}

/// What processes say to each other, and what one finds out by itself.
#[derive(Clone, Debug)]
enum Word {
    /// A subscription is there, or a foreign node's endpoint.
    Announce(EndpointId),
    Gone(Vec<EndpointId>),
    Offer { flow: Flow, epoch: u32, transport: Transport },
    Withdrawn { flow: Flow, epoch: u32 },
    Cut { flow: Flow, epoch: u32, connected: Connected },
    Closed { flow: Flow },
    Pin(Pin),
    Happened(Event),
}

struct Process {
    flows: Flows,
    trace: Vec<Entry>,
    is_alive: bool,
    policy: Arc<Policy>,
    /// Endpoints that live elsewhere.
    known: BTreeSet<EndpointId>,
    /// Links that were offered and have not ended, by number.
    offered: BTreeMap<Flow, BTreeSet<u32>>,
    /// Those that were refused.
    refused: BTreeSet<(Flow, u32)>,
    exhausted: [bool; 5],
}

#[derive(Clone, Debug)]
struct Publisher {
    is_keeping: bool,
    size: Size,
    next: u64,
    is_broken: [bool; 5],
    readers: BTreeMap<EndpointId, Transport>,
    trials: BTreeMap<EndpointId, Transport>,
    /// Links that go on for readers that have left them.
    left: Vec<(EndpointId, Transport)>,
    /// Readers that their link does not reach any more.
    lost: BTreeSet<EndpointId>,
    /// Readers that another engine has reached.
    ready: BTreeMap<EndpointId, Transport>,
    is_changing: bool,
}

#[derive(Debug, Default)]
struct Heard {
    link: Option<Transport>,
    is_connected: bool,
    epoch: Epoch,
    next: Option<u64>,
    change: Option<Change>,
    /// The newest sample that was delivered.
    last: Option<u64>,
    /// Samples that are to come.
    owed: BTreeSet<u64>,
}

#[derive(Debug)]
struct Change {
    handover: ReaderHandover<u64>,
    links: Vec<(Epoch, Transport)>,
    ending_since_ns: Option<u64>,
    shown: Epoch,
}

#[derive(Default)]
struct Figures {
    steps: u64,
    actions: u64,
    samples: u64,
    cuts: u64,
    crossings: u64,
    entries: u64,
}

struct World {
    random: Random,
    now_ns: u64,
    ids: Vec<TransportId>,
    engines: Option<WireEngines>,
    processes: Vec<Process>,
    publishers: BTreeMap<EndpointId, Publisher>,
    /// What each subscription hears of each publisher.
    subscriptions: BTreeMap<EndpointId, BTreeMap<EndpointId, Heard>>,
    foreign: BTreeSet<EndpointId>,
    channels: BTreeMap<(ProcessAt, ProcessAt), VecDeque<Word>>,
    /// What a link has not brought yet, and whether it is by this that the flow has it.
    queues: BTreeMap<(Flow, Transport), VecDeque<(u64, bool)>>,
    /// Ends that a slow transport is opening, and whether it has.
    reaching: BTreeMap<(Flow, Transport), bool>,
    named: Vec<EndpointId>,
    is_calm: bool,
    /// An action is being done.
    is_acting: bool,
    /// Flows that were doubted before they were open.
    early: BTreeSet<Flow>,
    /// How often what can go wrong does, of 100.
    faults: usize,
    log: Option<VecDeque<String>>,
    fault: Option<String>,
    figures: Figures,
}

struct Facts<'a>(&'a World, ProcessAt);

impl View for Facts<'_> {
    fn traits(&self, flow: Flow) -> Option<Traits> {
        self.0.traits(self.1, flow)
    }

    fn offers(&self, flow: Flow) -> Vec<Offer> {
        self.0.offers(self.1, flow)
    }

    fn is_changing_engine(&self, publisher: EndpointId) -> bool {
        self.0.publishers.get(&publisher).is_some_and(|it| it.is_changing)
    }
}

impl World {
    fn new(seed: u64, is_told: bool) -> Self {
        let mut random = Random(seed);
        let has_engines = random.chance(40);
        let ids: Vec<TransportId> = NAMES.iter().map(|name| TransportId::new(name)).collect();
        let engines = WireEngines { first: ids[ONE].clone(), second: ids[TWO].clone() };
        let faults = [0, 3, 12][random.below(3)];
        let count = 1 + random.below(3);
        let mut world = Self {
            random,
            now_ns: 1_000_000 * MS,
            ids,
            engines: has_engines.then_some(engines),
            processes: Vec::new(),
            publishers: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            foreign: BTreeSet::new(),
            channels: BTreeMap::new(),
            queues: BTreeMap::new(),
            reaching: BTreeMap::new(),
            named: Vec::new(),
            is_calm: false,
            is_acting: false,
            early: BTreeSet::new(),
            faults,
            log: is_told.then(VecDeque::new),
            fault: None,
            figures: Figures::default(),
        };
        for _ in 0..count {
            let process = world.new_process();
            world.processes.push(process);
        }
        world
    }

    fn new_process(&mut self) -> Process {
        let policy = self.new_policy();
        let engines = self.engines.clone();
        let begun = Entry::Begun { policy: policy.clone(), engines: engines.clone() };
        Process {
            flows: Flows::new(policy.clone(), engines),
            trace: vec![begun],
            is_alive: true,
            policy,
            known: BTreeSet::new(),
            offered: BTreeMap::new(),
            refused: BTreeSet::new(),
            exhausted: [false; 5],
        }
    }

    fn new_policy(&mut self) -> Arc<Policy> {
        let (ids, random) = (&self.ids, &mut self.random);
        let rule = |random: &mut Random, size| {
            let mut transports = ids.clone();
            for at in 1..transports.len() {
                transports.swap(at, random.below(at + 1));
            }
            transports.truncate(1 + random.below(transports.len()));
            Rule {
                name: None,
                priority: 0,
                conditions: Conditions { size, ..Conditions::default() },
                transports,
                origin: Origin { file: "model".into(), line: 1 },
            }
        };
        let rules = vec![rule(random, Some(Size::Large)), rule(random, None)];
        let forbids = match random.chance(10) {
            true => vec![rule(random, Some(Size::Large))],
            false => Vec::new(),
        };
        Arc::new(Policy::new(DraftPolicy { rules, forbids, ..DraftPolicy::default() }).unwrap())
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push_back(what());
            if 3000 < log.len() {
                log.pop_front();
            }
        }
    }

    /// A text with short names of endpoints.
    fn shortened(&self, text: String) -> String {
        let ids = self.named.iter().map(|id| (format!("{id:?}"), short(*id)));
        let text = ids.fold(text, |text, (long, short)| text.replace(&long, &short));
        text.replace("Flow { publisher: ", "{").replace(", subscription: ", ">")
    }

    /// Something is as it must not be.
    fn blame(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.note(|| format!("WRONG: {what}"));
        self.fault.get_or_insert(what);
    }

    fn place(&self, id: &TransportId) -> Transport {
        self.ids.iter().position(|it| it == id).unwrap()
    }

    fn goes_wrong(&mut self) -> bool {
        !self.is_calm && self.random.chance(self.faults)
    }

    fn alive(&self) -> Vec<ProcessAt> {
        (0..self.processes.len()).filter(|at| self.processes[*at].is_alive).collect()
    }

    fn say(&mut self, from: ProcessAt, to: ProcessAt, word: Word) {
        if self.processes.get(to).is_some_and(|it| it.is_alive) {
            self.channels.entry((from, to)).or_default().push_back(word);
        }
    }

    fn is_known(&self, process: ProcessAt, id: EndpointId) -> bool {
        match home(id) == process {
            true => self.publishers.contains_key(&id) || self.subscriptions.contains_key(&id),
            false => self.processes[process].known.contains(&id),
        }
    }

    fn traits(&self, process: ProcessAt, flow: Flow) -> Option<Traits> {
        let is_known = self.is_known(process, flow.publisher) && self.is_known(process, flow.subscription);
        let far = if home(flow.publisher) == process { flow.subscription } else { flow.publisher };
        let scope = match home(far) {
            it if it == process => Scope::Intra,
            // The third process is on another host.
            FOREIGN => Scope::Local,
            it if it == 2 || process == 2 => Scope::Remote,
            _ => Scope::Local,
        };
        let peer = if home(far) == FOREIGN { Peer::Foreign(vendor(far)) } else { Peer::Tsuji };
        is_known.then(|| Traits {
            size: self.publishers.get(&flow.publisher).map_or(Size::Small, |it| it.size),
            size_origin: SizeOrigin::Sent,
            sample_bytes: None,
            scope,
            reliability: Reliability::Reliable,
            peer,
        })
    }

    fn offers(&self, process: ProcessAt, flow: Flow) -> Vec<Offer> {
        let publisher = self.publishers.get(&flow.publisher);
        let there = (0..self.ids.len()).filter(|at| self.engines.is_some() || *at != TWO);
        let offers = there.map(|at| {
            let scopes = match at {
                0 => Scopes { intra: true, ..Scopes::default() },
                1 => Scopes { intra: true, local: true, remote: false },
                _ => Scopes::ALL,
            };
            let capability = Capability {
                scopes,
                immediate: is_immediate(at),
                directed: is_directed(at),
                typed: at == 0,
                loan: at == 1,
                ..Capability::ANYTHING
            };
            let peers = match at {
                ONE => Peers::ALL,
                TWO => Peers { fast: true, ..Peers::default() },
                _ => Peers::TSUJI,
            };
            let health = match self.processes[process].exhausted[at] {
                true => Health::Exhausted("all in use".into()),
                false => Health::Good,
            };
            let readers = publisher.map_or(0, |it| it.readers.values().filter(|it| **it == at).count());
            Offer { peers, health, readers: readers as u32, ..Offer::new(self.ids[at].clone(), capability) }
        });
        offers.collect()
    }

    fn ends(&self, process: ProcessAt, flow: Flow) -> Ends {
        let way = match (home(flow.publisher), home(flow.subscription)) {
            (FOREIGN, _) => Way::FromForeign,
            (_, FOREIGN) => Way::ToForeign,
            (_, it) if it == process => Way::Here,
            _ => Way::Peer,
        };
        let keeps = self.publishers.get(&flow.publisher).is_some_and(|it| it.is_keeping);
        Ends { role: role_of(flow.publisher), way, keeps, is_manual: false }
    }

    /// Tells a table what has happened, without asking what is to be done.
    fn tell(&mut self, process: ProcessAt, event: Event) {
        self.note(|| format!("{process} is told {event:?}"));
        self.processes[process].trace.push(Entry::Told(event.clone()));
        self.processes[process].flows.handle(event);
    }

    /// Tells a table what has happened, and does mostly at once what it says.
    fn happened(&mut self, process: ProcessAt, event: Event) {
        self.tell(process, event);
        if self.is_calm || self.random.chance(85) {
            self.drain(process);
        }
    }

    fn drain(&mut self, process: ProcessAt) {
        for _ in 0..20_000 {
            if self.fault.is_some() {
                return;
            }
            let now = Now { monotonic_ns: self.now_ns, wall_ns: self.now_ns as i64 };
            let mut flows = std::mem::take(&mut self.processes[process].flows);
            let facts = Facts(self, process);
            let recorder = Recorder::new(&facts);
            let action = flows.poll_action(now, &recorder);
            let answers = recorder.into_answers();
            let state = &mut self.processes[process];
            state.flows = flows;
            state.trace.push(Entry::Polled { now, answers, action: action.clone() });
            let Some(action) = action else { return self.check(process) };
            self.figures.actions += 1;
            self.note(|| format!("{process} does {action:?}"));
            self.perform(process, action);
        }
        self.blame("a table is never quiet");
    }

    fn perform(&mut self, process: ProcessAt, action: Action) {
        if action.wants_outcome() && !self.is_calm && self.random.chance(3) {
            // Something happens meanwhile.
            self.is_acting = true;
            self.something_small(process);
            self.is_acting = false;
        }
        match action {
            Action::Offer { flow, epoch, is_first, transport } => {
                self.offered(process, flow, epoch);
                let transport = self.place(&transport);
                if is_first != self.publishers.get(&flow.publisher).is_none_or(|it| !it.readers.contains_key(&flow.subscription)) {
                    self.blame("an offer is not as first as it says");
                }
                self.say(process, home(flow.subscription), Word::Offer { flow, epoch, transport });
            }
            Action::OpenHere { flow, epoch, transport } => {
                self.offered(process, flow, epoch);
                let transport = self.place(&transport);
                let address = self.accept(flow, epoch, transport);
                if address.is_err() {
                    self.processes[process].refused.insert((flow, epoch));
                }
                self.tell(process, Event::Answered { flow, epoch, address });
            }
            Action::Connect { flow, transport, reach, is_urgent } => {
                let transport = self.place(&transport);
                let route = self.processes[process].flows.get(flow);
                let Some(epoch) = route.and_then(|it| it.handover.opening_epoch()) else {
                    return self.blame("what is connected is not being opened");
                };
                match &reach {
                    Reach::Address(address) if *address != address_of(transport, epoch.0) => {
                        return self.blame("connected by the address of another link");
                    }
                    Reach::Address(_) => {}
                    _ => {
                        let offered = self.processes[process].offered.entry(flow).or_default();
                        if !offered.contains(&epoch.0) {
                            self.offered(process, flow, epoch.0);
                        }
                    }
                }
                let opened = self.connect(process, flow, transport, &reach, is_urgent);
                if matches!(opened, Opened::Refused(_)) {
                    self.processes[process].refused.insert((flow, epoch.0));
                }
                self.tell(process, Event::Opened { flow, opened });
            }
            Action::EndTrial(flow) => {
                let connected = self.take_over(flow);
                self.tell(process, Event::TrialEnded { flow, connected });
            }
            Action::Cut { flow, epoch, connected } => {
                self.figures.cuts += 1;
                self.ended(process, flow, epoch);
                self.say_of(process, flow, Word::Cut { flow, epoch, connected });
            }
            Action::Carries { flow, epoch } => {
                self.ended(process, flow, epoch);
                if let Some(heard) = self.heard(flow) {
                    heard.is_connected = true;
                }
            }
            Action::Withdraw { flow, epoch } => {
                self.ended(process, flow, epoch);
                self.say_of(process, flow, Word::Withdrawn { flow, epoch });
            }
            Action::Disconnect { flow, transport } => {
                let transport = self.place(&transport);
                self.disconnect_from(flow, transport);
            }
            Action::GiveUp(flow) | Action::Leave(flow) => self.disconnect(flow),
            Action::Close { flow, .. } => {
                self.processes[process].offered.remove(&flow);
                if home(flow.publisher) == FOREIGN {
                    self.reaching.retain(|(it, _), _| *it != flow);
                }
                self.say_of(process, flow, Word::Closed { flow });
            }
            Action::HasLeft(flow) => {
                if let Some(publisher) = self.publishers.get_mut(&flow.publisher) {
                    publisher.left.retain(|(reader, _)| *reader != flow.subscription);
                    publisher.tidy();
                }
            }
            Action::EngineChanged(publisher) => {
                if let Some(publisher) = self.publishers.get_mut(&publisher) {
                    publisher.is_changing = false;
                    publisher.ready.clear();
                }
            }
            Action::Wake | Action::Tell(_) => {}
        }
    }

    fn offered(&mut self, process: ProcessAt, flow: Flow, epoch: u32) {
        if !self.processes[process].offered.entry(flow).or_default().insert(epoch) {
            self.blame("a link is offered twice under one number");
        }
    }

    fn ended(&mut self, process: ProcessAt, flow: Flow, epoch: u32) {
        let state = &mut self.processes[process];
        state.refused.remove(&(flow, epoch));
        if !state.offered.get_mut(&flow).is_some_and(|it| it.remove(&epoch)) {
            self.blame(format!("link {epoch} of {flow:?} ends that was not offered, or has ended"));
        }
    }

    /// Says a word of a flow to its subscription, which may be in the same process.
    fn say_of(&mut self, process: ProcessAt, flow: Flow, word: Word) {
        match home(flow.subscription) {
            FOREIGN => {}
            it if it == process => self.hear(process, process, word),
            it => self.say(process, it, word),
        }
    }

    fn hear(&mut self, from: ProcessAt, process: ProcessAt, word: Word) {
        match word {
            Word::Announce(id) => {
                self.processes[process].known.insert(id);
                self.meet(process, id);
            }
            Word::Gone(ids) => {
                for id in ids {
                    self.processes[process].known.remove(&id);
                    if is_publisher(id) {
                        let here: Vec<_> = self.subscriptions.keys().copied().filter(|it| home(*it) == process).collect();
                        here.into_iter().for_each(|it| self.close(Flow::new(id, it), false));
                    }
                    self.happened(process, Event::EndpointGone(id));
                }
            }
            Word::Offer { flow, epoch, transport } => {
                let address = self.accept(flow, epoch, transport);
                if address.is_err() {
                    self.processes[from].refused.insert((flow, epoch));
                }
                self.say(process, from, Word::Happened(Event::Answered { flow, epoch, address }));
            }
            Word::Withdrawn { flow, epoch } => self.withdraw(flow, epoch),
            Word::Cut { flow, epoch, connected } => self.cut(flow, epoch, connected),
            Word::Closed { flow } => self.close(flow, true),
            Word::Pin(pin) => self.pin(process, pin),
            Word::Happened(event) => self.happened(process, event),
        }
    }

    fn pin(&mut self, process: ProcessAt, pin: Pin) {
        self.processes[process].flows.may_pin(&pin).unwrap();
        self.happened(process, Event::Pinned(pin));
    }

    /// An endpoint is new: what fits it is matched with it.
    fn meet(&mut self, process: ProcessAt, id: EndpointId) {
        let others = self.publishers.keys().chain(self.subscriptions.keys()).chain(&self.processes[process].known);
        let fits = |it: &EndpointId| {
            topic_of(*it) == topic_of(id)
                && is_publisher(*it) != is_publisher(id)
                && self.is_known(process, *it)
        };
        let others: BTreeSet<EndpointId> = others.filter(|it| fits(it)).copied().collect();
        for other in others {
            let (publisher, subscription) = if is_publisher(id) { (id, other) } else { (other, id) };
            let flow = Flow { publisher, subscription };
            let is_decided_here = home(publisher) == process
                || (home(publisher) == FOREIGN && home(subscription) == process);
            if !is_decided_here || self.processes[process].flows.get(flow).is_some() {
                continue;
            }
            let (topic, ends) = (Arc::from(TOPICS[topic_of(id)].0), self.ends(process, flow));
            let event = match self.random.chance(4) {
                true => Event::Mismatched { flow, topic, ends, mismatches: vec!["depth".to_owned()] },
                false => Event::Matched { flow, topic, ends },
            };
            self.happened(process, event);
        }
    }
}

fn address_of(transport: Transport, epoch: u32) -> Vec<u8> {
    let mut address = vec![transport as u8];
    address.extend(epoch.to_be_bytes());
    address
}

/// The publisher's end.
impl Publisher {
    fn is_on(&self, transport: Transport) -> bool {
        let also = self.left.iter().map(|(_, it)| it);
        self.readers.values().chain(self.trials.values()).chain(also).any(|it| *it == transport)
    }

    /// A link that has failed is opened anew when it is wanted again.
    fn tidy(&mut self) {
        for at in 0..5 {
            self.is_broken[at] &= self.is_on(at);
        }
    }

    fn counted(&self) -> Connected {
        Connected { first: self.next, ends: Some(self.next), published_before: self.next - 1 }
    }

    fn move_over(&mut self, reader: EndpointId, transport: Transport) {
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
    fn connect(&mut self, process: ProcessAt, flow: Flow, transport: Transport, reach: &Reach, is_urgent: bool) -> Opened {
        if self.goes_wrong() {
            self.disconnect_from(flow, transport);
            return Opened::Refused(match self.random.chance(15) {
                true => Refusal::lasting(LASTING),
                false => Refusal::passing("not now"),
            });
        }
        if *reach == Reach::FromForeign {
            if !self.is_known(process, flow.publisher) || !self.is_known(process, flow.subscription) {
                return Opened::Gone;
            }
            if !is_immediate(transport) && !self.has_reached(flow, transport) {
                return Opened::Later;
            }
            let heard = self.subscriptions.get_mut(&flow.subscription).unwrap().entry(flow.publisher).or_default();
            heard.link = Some(transport);
            return Opened::Heard;
        }
        if !self.publishers.contains_key(&flow.publisher) || !self.is_known(process, flow.subscription) {
            return Opened::Refused(Refusal::lasting("one of the ends is gone"));
        }
        if !is_immediate(transport) && !self.has_reached(flow, transport) {
            return Opened::Later;
        }
        let reader = flow.subscription;
        let publisher = self.publishers.get_mut(&flow.publisher).unwrap();
        if publisher.is_broken[transport] {
            self.disconnect_from(flow, transport);
            return Opened::Refused(Refusal::passing("it has failed"));
        }
        match self.cross(flow, transport) {
            Some(Opened::Gone) | None => {}
            Some(opened) => return opened,
        }
        let publisher = self.publishers.get_mut(&flow.publisher).unwrap();
        let Some(_) = publisher.readers.get(&reader) else {
            publisher.readers.insert(reader, transport);
            return Opened::Connected(Connected { ends: None, ..publisher.counted() });
        };
        publisher.trials.insert(reader, transport);
        let is_shown = is_immediate(transport) || role_of(reader) != Role::Topic;
        let is_broken = publisher.readers.values().any(|it| publisher.is_broken[*it]);
        if !is_shown && !is_broken && !is_urgent {
            return Opened::OnTrial;
        }
        self.take_over(flow).map_or(Opened::Later, Opened::Connected)
    }

    /// Whether a slow transport has reached the other end.
    fn has_reached(&mut self, flow: Flow, transport: Transport) -> bool {
        *self.reaching.entry((flow, transport)).or_insert(false)
    }

    /// Brings the readers of the other engine over to this one if it reaches them all. `None` if nobody is there.
    fn cross(&mut self, flow: Flow, transport: Transport) -> Option<Opened> {
        if self.engines.is_none() || !is_engine(transport) || role_of(flow.publisher) != Role::Topic {
            return None;
        }
        let is_waited_for = !self.is_calm && self.random.chance(30);
        let reader = flow.subscription;
        let publisher = self.publishers.get_mut(&flow.publisher)?;
        let other = ONE + TWO - transport;
        if publisher.readers.get(&reader) == Some(&transport) {
            return Some(Opened::Connected(publisher.counted()));
        }
        let on_other = publisher.readers.iter().filter(|(_, it)| **it == other);
        let on_other: Vec<EndpointId> = on_other.map(|(reader, _)| *reader).collect();
        let is_left = publisher.left.iter().filter(|(it, _)| !on_other.contains(it)).map(|(_, it)| it);
        let is_busy = is_left.chain(publisher.trials.values()).any(|it| *it == other);
        if on_other.is_empty() && !is_busy {
            return None;
        }
        let was_there = on_other.contains(&reader);
        if was_there {
            publisher.ready.insert(reader, transport);
        }
        publisher.is_changing = true;
        if is_busy || !on_other.iter().all(|it| publisher.ready.get(it) == Some(&transport)) || is_waited_for {
            return Some(Opened::Later);
        }
        for reader in on_other {
            publisher.move_over(reader, transport);
            publisher.left.retain(|(it, _)| *it != reader);
        }
        publisher.ready.clear();
        publisher.tidy();
        let counted = publisher.counted();
        self.figures.crossings += 1;
        self.note(|| format!("all readers of {} go over to {}", short(flow.publisher), NAMES[transport]));
        was_there.then_some(Opened::Connected(counted))
    }

    fn take_over(&mut self, flow: Flow) -> Option<Connected> {
        let publisher = self.publishers.get_mut(&flow.publisher)?;
        let transport = publisher.trials.remove(&flow.subscription)?;
        let connected = publisher.counted();
        publisher.move_over(flow.subscription, transport);
        publisher.tidy();
        Some(connected)
    }

    fn disconnect_from(&mut self, flow: Flow, transport: Transport) {
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
            self.blame(format!("the link that carries {flow:?} is cut off"));
        }
    }

    fn disconnect(&mut self, flow: Flow) {
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

    fn publish(&mut self, id: EndpointId) {
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
    fn heard(&mut self, flow: Flow) -> Option<&mut Heard> {
        self.subscriptions.get_mut(&flow.subscription)?.get_mut(&flow.publisher)
    }

    /// Opens this end of a flow; or where it has a link, that of another beside it.
    fn accept(&mut self, flow: Flow, epoch: u32, transport: Transport) -> Result<Vec<u8>, Refusal> {
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
    fn drop_queue(&mut self, flow: Flow, transport: Transport) {
        let queue = self.queues.remove(&(flow, transport)).unwrap_or_default();
        let owed = self.heard(flow).map(|it| it.owed.clone()).unwrap_or_default();
        if queue.iter().any(|(number, is_owed)| *is_owed && owed.contains(number)) {
            self.blame(format!("what {} owes to {flow:?} is thrown away", NAMES[transport]));
        }
    }

    /// What is on a link is lost there.
    fn lose_queue(&mut self, flow: Flow, transport: Transport) {
        let queue = self.queues.remove(&(flow, transport)).unwrap_or_default();
        if let Some(heard) = self.heard(flow) {
            for (number, _) in queue.iter().filter(|(_, is_owed)| *is_owed) {
                heard.owed.remove(number);
            }
        }
    }

    fn deliver(&mut self, flow: Flow, number: u64) {
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

    fn cut(&mut self, flow: Flow, epoch: u32, connected: Connected) {
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

    fn withdraw(&mut self, flow: Flow, epoch: u32) {
        let Some(heard) = self.heard(flow) else { return };
        let link = match &mut heard.change {
            Some(change) => {
                let Some(at) = change.links.iter().position(|(it, _)| it.0 == epoch) else { return };
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
    fn close(&mut self, flow: Flow, is_told: bool) {
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
    fn bring(&mut self, flow: Flow, transport: Transport) -> bool {
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

    fn answer(&mut self, flow: Flow, event: Event) {
        self.say(home(flow.subscription), home(flow.publisher), Word::Happened(event));
    }

    /// Delivers what need not be held any longer, and leaves the links that are finished.
    fn after_change(&mut self, flow: Flow) {
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
    fn progress(&mut self, flow: Flow) {
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

/// What happens.
impl World {
    fn step(&mut self) {
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

    fn random_process(&mut self) -> Option<ProcessAt> {
        let alive = self.alive();
        self.random.pick(&alive)
    }

    fn random_flow(&mut self, process: ProcessAt) -> Option<Flow> {
        let flows: Vec<Flow> = self.processes[process].flows.iter().map(|(it, _)| it).collect();
        self.random.pick(&flows)
    }

    fn hear_one(&mut self) {
        let channels: Vec<_> = self.channels.iter().filter(|(_, it)| !it.is_empty()).map(|(it, _)| *it).collect();
        if let Some((from, to)) = self.random.pick(&channels) {
            let word = self.channels.get_mut(&(from, to)).unwrap().pop_front().unwrap();
            self.note(|| format!("{to} hears from {from}: {word:?}"));
            self.hear(from, to, word);
        }
    }

    fn reach_one(&mut self) {
        let reaching: Vec<_> = self.reaching.iter().filter(|(_, it)| !**it).map(|(it, _)| *it).collect();
        let Some((flow, transport)) = self.random.pick(&reaching) else { return };
        self.reaching.insert((flow, transport), true);
        let process = self.decided_in(flow);
        let id = self.ids[transport].clone();
        self.say(process, process, Word::Happened(Event::GoOn(id)));
    }

    fn decided_in(&self, flow: Flow) -> ProcessAt {
        let process = home(flow.publisher);
        if process == FOREIGN { home(flow.subscription) } else { process }
    }

    fn pass_time(&mut self) {
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

    fn look_at_time(&mut self, process: ProcessAt) {
        let due = self.processes[process].flows.poll_timeout();
        if due.is_some_and(|due_ns| due_ns <= self.now_ns) {
            self.happened(process, Event::Timeout);
        }
    }

    fn next_due(&self) -> Option<u64> {
        let alive = self.processes.iter().filter(|it| it.is_alive);
        alive.filter_map(|it| it.flows.poll_timeout()).min()
    }

    fn add_endpoint(&mut self) {
        let process = if self.random.chance(25) { FOREIGN } else { self.random.below(self.processes.len()) };
        let there = self.foreign.iter().chain(self.publishers.keys()).chain(self.subscriptions.keys());
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

    fn remove_endpoint(&mut self) {
        let there = self.foreign.iter().chain(self.publishers.keys()).chain(self.subscriptions.keys());
        let there: Vec<EndpointId> = there.copied().collect();
        if let Some(id) = self.random.pick(&there) {
            self.note(|| format!("{} goes", short(id)));
            self.forget(id);
            let process = home(id);
            self.say(process, process, Word::Happened(Event::EndpointGone(id)));
            if process == FOREIGN || !is_publisher(id) {
                let others = self.alive().into_iter().filter(|it| *it != process);
                others.collect::<Vec<_>>().into_iter().for_each(|it| self.say(process, it, Word::Gone(vec![id])));
            }
        }
    }

    fn forget(&mut self, id: EndpointId) {
        self.foreign.remove(&id);
        self.publishers.remove(&id);
        self.subscriptions.remove(&id);
        if !is_publisher(id) {
            self.queues.retain(|(flow, _), _| flow.subscription != id);
        }
    }

    /// What a table may be told at any time.
    fn something_small(&mut self, process: ProcessAt) {
        let event = match self.random.below(6) {
            0 | 1 => {
                let ids = self.publishers.keys().copied().filter(|it| home(*it) == process);
                let ids: Vec<_> = ids.collect();
                let Some(publisher) = self.random.pick(&ids) else { return };
                let size = &mut self.publishers.get_mut(&publisher).unwrap().size;
                *size = if *size == Size::Small { Size::Large } else { Size::Small };
                let flows = self.processes[process].flows.of_publisher(publisher);
                let early = flows.filter(|(_, it)| it.state != RouteState::Active || self.is_acting);
                self.early.extend(early.map(|(flow, _)| flow));
                Event::PublisherDoubted { publisher, why: "its samples are of another size".to_owned() }
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

    fn fail_something(&mut self) {
        let Some(process) = self.random_process() else { return };
        let transport = self.random.below(5);
        let ids: Vec<_> = self.publishers.keys().copied().filter(|it| home(*it) == process).collect();
        let publisher = self.random.pick(&ids);
        match self.random.below(4) {
            0 | 1 => {
                let exhausted = &mut self.processes[process].exhausted[transport];
                *exhausted = !*exhausted;
                let is_exhausted = *exhausted;
                self.note(|| format!("{} of {process} has run out: {is_exhausted}", NAMES[transport]));
                let is_on = publisher.is_some_and(|it| self.publishers[&it].is_on(transport));
                if is_exhausted && is_on {
                    self.trouble(publisher.unwrap(), transport, false);
                }
            }
            2 => {
                let Some(id) = publisher.filter(|it| self.publishers[it].is_on(transport)) else { return };
                let is_lossy = self.random.chance(50);
                let publisher = self.publishers.get_mut(&id).unwrap();
                publisher.is_broken[transport] = true;
                publisher.left.retain(|(_, it)| *it != transport);
                publisher.tidy();
                let flows = self.queues.keys().filter(|(flow, at)| flow.publisher == id && *at == transport);
                for (flow, at) in flows.copied().collect::<Vec<_>>() {
                    if is_lossy {
                        self.lose_queue(flow, at);
                    }
                }
                self.trouble(id, transport, true);
            }
            _ => {
                let Some(publisher) = publisher.and_then(|it| self.publishers.get_mut(&it)) else { return };
                let readers: Vec<_> = publisher.readers.iter().map(|(it, at)| (*it, *at)).collect();
                let Some((reader, at)) = self.random.pick(&readers) else { return };
                publisher.lost.insert(reader);
                let flow = Flow::new(ids.iter().copied().find(|it| self.publishers[it].lost.contains(&reader) && self.publishers[it].readers.contains_key(&reader)).unwrap(), reader);
                self.lose_queue(flow, at);
                self.happened(process, Event::ReaderLost { flow, transport: self.ids[at].clone() });
            }
        }
    }

    fn trouble(&mut self, publisher: EndpointId, transport: Transport, is_broken: bool) {
        let reason = if is_broken { "it has failed" } else { "all in use" };
        let trouble = Trouble { id: self.ids[transport].clone(), reason: reason.to_owned(), is_broken };
        self.happened(home(publisher), Event::Trouble { publisher, trouble });
    }

    fn pin_something(&mut self) {
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

    fn start_or_kill(&mut self) {
        let process = self.random.below(self.processes.len());
        if self.processes[process].is_alive {
            self.note(|| format!("{process} dies"));
            self.replay(process);
            self.processes[process].is_alive = false;
            let ids = self.publishers.keys().chain(self.subscriptions.keys()).copied();
            let ids: Vec<_> = ids.filter(|it| home(*it) == process).collect();
            ids.iter().for_each(|id| self.forget(*id));
            self.reaching.retain(|(flow, _), _| self.publishers.contains_key(&flow.publisher) || home(flow.publisher) == FOREIGN && home(flow.subscription) != process);
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
    fn meet_again(&mut self) {
        let Some(process) = self.random_process() else { return };
        let Some(flow) = self.random_flow(process) else { return };
        let Some(route) = self.processes[process].flows.get(flow) else { return };
        let (topic, ends) = (route.topic.clone(), self.ends(process, flow));
        if route.state == RouteState::Incompatible {
            self.tell(process, Event::Unmatched(flow));
        } else if ends.way != Way::Peer && self.random.chance(30) {
            self.tell(process, Event::Ended(flow));
        } else {
            return;
        }
        if self.traits(process, flow).is_some() {
            self.happened(process, Event::Matched { flow, topic, ends });
        }
    }

    /// Tells tables of publishers whose readers go over to another engine.
    fn go_on_changing(&mut self) {
        let changing = self.publishers.iter().filter(|(_, it)| it.is_changing);
        for id in changing.map(|(id, _)| *id).collect::<Vec<_>>() {
            if self.is_calm || self.random.chance(70) {
                self.happened(home(id), Event::EngineChanging(id));
            }
        }
    }
}

/// What must hold.
impl World {
    /// Of a table that has nothing to do.
    fn check(&mut self, process: ProcessAt) {
        let mut wrong = Vec::new();
        let state = &self.processes[process];
        let timeout = state.flows.poll_timeout();
        let mut is_timed = false;
        for (flow, route) in state.flows.iter() {
            let (current, opening) = (route.handover.current(), route.handover.opening());
            let epoch = route.handover.opening_epoch().map(|it| it.0);
            let offered = state.offered.get(&flow).cloned().unwrap_or_default();
            let open = offered.into_iter().filter(|it| Some(*it) == epoch || !state.refused.contains(&(flow, *it)));
            if (route.state == RouteState::Active) != current.is_some() {
                wrong.push(format!("{flow:?} is {:?} on {current:?}", route.state));
            }
            if current.is_some() && current == opening {
                wrong.push(format!("{flow:?} opens what it has"));
            }
            if !open.eq(epoch) {
                wrong.push(format!("{flow:?} opens {epoch:?}, and offered are {:?}", state.offered.get(&flow)));
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
                && route.decision.iter().flat_map(|it| &it.rejected).any(|(_, it)| it.starts_with("exhausted"));
            // Of an end that is gone the word is under way.
            is_timed |= (is_waiting || has_no_route) && self.traits(process, flow).is_some();
            if route.state == RouteState::Opening && opening.is_none() && self.traits(process, flow).is_some() {
                wrong.push(format!("{flow:?} is opening nothing"));
            }
        }
        if is_timed && timeout.is_none() {
            let waiting = state.flows.iter().find(|(_, it)| it.state == RouteState::NoRoute);
            wrong.push(format!("a flow waits for ever: {waiting:?}"));
        }
        if state.flows.iter().next().is_none() && timeout.is_some() {
            wrong.push("a table without flows has a time-out".to_owned());
        }
        let on_both = |it: &Publisher| it.is_on(ONE) && it.is_on(TWO);
        if self.publishers.iter().any(|(id, it)| role_of(*id) == Role::Topic && self.engines.is_some() && on_both(it)) {
            wrong.push("a publisher sends by both engines".to_owned());
        }
        if self.log.is_some() {
            let shown: Vec<String> = state.flows.iter().map(|(flow, route)| format!(
                "{}>{} {:?} {:?}+{:?}", short(flow.publisher), short(flow.subscription), route.state,
                route.handover.current(), route.handover.opening())).collect();
            let now = (self.now_ns / MS) % 1_000_000;
            self.note(|| format!("  {process} at {now}: {} until {:?}", shown.join(", "), timeout.map(|it| it / MS % 1_000_000)));
        }
        if let Some(wrong) = wrong.into_iter().next() {
            self.blame(wrong);
        }
    }

    /// A trace does the same again.
    fn replay(&mut self, process: ProcessAt) {
        self.drain(process);
        let state = &self.processes[process];
        self.figures.entries += state.trace.len() as u64;
        let again = match trace::replay(state.trace.iter().cloned()) {
            Ok(again) => again,
            Err(divergence) => return self.blame(divergence.to_string()),
        };
        if !again.iter().eq(state.flows.iter()) || again.poll_timeout() != state.flows.poll_timeout() {
            return self.blame("a trace ends otherwise when it is done again");
        }
        if !again.pins().eq(state.flows.pins()) {
            self.blame("a trace ends with other pins when it is done again");
        }
    }

    /// Nothing goes wrong any more, and everything arrives.
    fn calm_down(&mut self) {
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
            if self.fault.is_some() {
                return;
            }
            if self.settle() {
                continue;
            }
            let ends = self.subscriptions.values().flat_map(|it| it.values());
            let waits = ends.filter_map(|it| Some(it.change.as_ref()?.ending_since_ns? + WAIT_NS));
            let Some(due) = waits.chain(self.next_due()).min() else { return };
            if from_ns + REST_MAX_NS < self.now_ns {
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
    fn settle(&mut self) -> bool {
        let mut is_something = false;
        while let Some(at) = self.channels.iter().find(|(_, it)| !it.is_empty()).map(|(at, _)| *at) {
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
        let heard = self.subscriptions.iter().flat_map(|(subscription, it)| it.keys().map(|publisher| Flow { publisher: *publisher, subscription: *subscription }));
        for flow in heard.collect::<Vec<_>>() {
            self.progress(flow);
        }
        is_something || self.channels.values().any(|it| !it.is_empty())
    }

    /// What a world that has come to rest must be like.
    fn check_rest(&mut self) {
        for process in self.alive() {
            let state = &self.processes[process];
            let mut wrong = Vec::new();
            for (flow, route) in state.flows.iter() {
                let Some(traits) = self.traits(process, flow) else {
                    wrong.push(format!("{flow:?} is remembered"));
                    continue;
                };
                if route.state == RouteState::Incompatible {
                    continue;
                }
                let current = route.handover.current();
                if route.handover.opening().is_some()
                    || !(route.handover.is_settled() || route.ends.way == Way::FromForeign) {
                    let heard = self.subscriptions.get(&flow.subscription).and_then(|it| it.get(&flow.publisher));
                    wrong.push(format!("{flow:?} has not come to rest: {:?}, {heard:?}", route.handover));
                }
                let expected = self.expected(process, flow, &traits);
                let keeps_wire = match route.ends.way {
                    Way::FromForeign => true,
                    Way::ToForeign => self.engines.is_none() || route.ends.role != Role::Topic,
                    _ => false,
                };
                let is_right = match keeps_wire {
                    // It is decided again only when something is wrong with it.
                    true => true,
                    false => current == expected.as_ref() || self.early.contains(&flow),
                };
                if !is_right {
                    wrong.push(format!("{flow:?} is on {current:?} and not on {expected:?}: {:?}", route.decision));
                }
            }
            if let Some(wrong) = wrong.into_iter().next() {
                self.blame(wrong);
            }
            let is_met = |flow: Flow| self.decided_in(flow) != process || self.processes[process].flows.get(flow).is_some();
            let publishers = self.publishers.keys().chain(self.foreign.iter().filter(|it| is_publisher(**it)));
            let met = publishers.flat_map(|it| self.subscriptions.keys().map(|to| Flow::new(*it, *to)));
            let mut met = met.filter(|it| topic_of(it.publisher) == topic_of(it.subscription));
            if let Some(flow) = met.find(|it| !is_met(*it) && self.traits(process, *it).is_some()) {
                self.note(|| format!("{flow:?} is not there"));
            }
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

    /// What the table says of a transport that is not to be had for good.
    fn is_excluded(&self, process: ProcessAt, flow: Flow, transport: &TransportId) -> bool {
        let route = self.processes[process].flows.get(flow);
        let rejected = route.and_then(|it| it.decision.as_ref()).map(|it| &it.rejected);
        let reason = rejected.and_then(|it| it.iter().find(|(id, _)| *id == transport.as_str()));
        reason.is_some_and(|(_, it)| it.contains(LASTING) || it.contains(LATE))
    }

    fn chosen(&self, process: ProcessAt, flow: Flow, traits: &Traits, without: Option<Transport>) -> Option<TransportId> {
        let mut offers = self.offers(process, flow);
        for offer in &mut offers {
            if self.is_excluded(process, flow, &offer.transport) || without.is_some_and(|it| self.ids[it] == offer.transport) {
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
    fn expected(&self, process: ProcessAt, flow: Flow, traits: &Traits) -> Option<TransportId> {
        let alone = self.chosen(process, flow, traits, None)?;
        let is_shared = self.engines.is_some() && role_of(flow.publisher) == Role::Topic;
        if alone != self.ids[TWO] || !is_shared || home(flow.publisher) == FOREIGN {
            return Some(alone);
        }
        let needs_first = |(it, route): (Flow, &tsuji_core::flows::Route)| {
            it != flow
                && route.state != RouteState::Incompatible
                && self.traits(process, it).and_then(|traits| self.chosen(process, it, &traits, None)).is_some_and(|it| it == self.ids[ONE])
        };
        let others = self.processes[process].flows.of_publisher(flow.publisher);
        let is_keeping = self.publishers[&flow.publisher].is_keeping;
        match is_keeping || others.into_iter().any(needs_first) {
            true => self.chosen(process, flow, traits, Some(TWO)),
            false => Some(alone),
        }
    }
}

/// One walk. Answers what was done, or what went wrong, with what happened last.
fn walk(seed: u64, steps: u64, is_told: bool) -> Result<Figures, (String, Vec<String>)> {
    let mut world = World::new(seed, is_told);
    while world.figures.steps < steps && world.fault.is_none() {
        world.step();
    }
    if world.fault.is_none() {
        world.calm_down();
    }
    if world.fault.is_none() {
        world.check_rest();
    }
    let Some(fault) = world.fault.take() else { return Ok(world.figures) };
    let told = world.log.take().into_iter().flatten().map(|it| world.shortened(it)).collect();
    Err((world.shortened(fault), told))
}

fn number_from(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Says the seed of a walk in which something panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TSUJI_MODEL_SEED={}", self.0);
        }
    }
}

fn try_walks(walks: u64, steps: u64) {
    let seeds = match number_from("TSUJI_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_from("TSUJI_MODEL_WALKS").unwrap_or(walks),
    };
    let mut all = Figures::default();
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        let _seed = Seed(seed);
        match walk(seed, steps, false) {
            Ok(figures) => {
                all.steps += figures.steps;
                all.actions += figures.actions;
                all.samples += figures.samples;
                all.cuts += figures.cuts;
                all.crossings += figures.crossings;
                all.entries += figures.entries;
            }
            Err((fault, _)) => failed.push((seed, fault)),
        }
    }
    let Figures { steps: done, actions, samples, cuts, crossings, entries } = all;
    eprintln!("{} walks: {done} steps, {actions} actions, {samples} samples, {cuts} cuts, {crossings} crossings, {entries} entries", seeds.end - seeds.start);
    if let Some((seed, fault)) = failed.first() {
        let again = walk(*seed, steps, true).err().map(|(_, log)| log).unwrap_or_default();
        eprintln!("{}", again.join("\n"));
        let mut kinds = BTreeMap::<String, Vec<u64>>::new();
        for (seed, fault) in &failed {
            let kind = fault.split(": ").next().unwrap_or_default();
            let kind = kind.chars().filter(|it| !it.is_ascii_digit()).collect();
            kinds.entry(kind).or_default().push(*seed);
        }
        for (kind, seeds) in kinds {
            eprintln!("{}x {kind}: {:?}", seeds.len(), &seeds[..seeds.len().min(5)]);
        }
        let seeds: Vec<u64> = failed.iter().map(|(seed, _)| *seed).take(20).collect();
        panic!("{fault}\n{} walks failed: {seeds:?}; TSUJI_MODEL_SEED={seed} makes the first again", failed.len());
    }
}

#[test]
fn flows_keep_their_promises() {
    try_walks(100, 500);
}

#[test]
#[ignore = "it takes minutes"]
fn soak_flows_ten_million_steps() {
    try_walks(10_000, 1000);
}
