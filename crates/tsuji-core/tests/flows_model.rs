//! Random walks of several processes whose flows are decided by the code that ships.
//!
//! A [`World`] has processes, each with a table of [`Flows`], the channels between them, transports, and what stands at
//! the ends of flows. [`walk`] lets things happen to it in an order that a seed gives, and then lets it come to
//! rest. What must hold at any time is tried whenever a table has nothing to do, and the rest at the end. A walk that
//! fails says its seed: `TSUJI_MODEL_SEED` makes it again alone, and `TSUJI_MODEL_WALKS` says how many there are.
//!
//! One thing is not promised: that a flow comes back which took the first of two engines since another flow of its publisher needed that
//! only while something had run out. A walk that ends so is counted as left off.
#![allow(clippy::print_stderr, reason = "it says how much was tried, and what went wrong")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(
    clippy::disallowed_methods,
    reason = "the seed of a walk that is made again is told to it"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tsuji_core::flows::trace::{self, Entry, Recorder};
use tsuji_core::flows::{
    Action, Connected, EndpointId, Ends, Event, Flow, Flows, Now, Outcome, Pin, Reach, Refusal,
    Role, Route, RouteState, Trouble, View, Way, WireEngines,
};
use tsuji_core::handover::{Arrival, Cut, Epoch, ReaderHandover};
use tsuji_core::{
    Capability, Conditions, DraftPolicy, Health, Offer, Origin, Peer, Peers, Policy, Reliability,
    Rule, Scope, Scopes, Size, SizeOrigin, Traits, TransportId, Vendor, select,
};

#[path = "flows_model/ends.rs"]
mod ends;
#[path = "flows_model/happening.rs"]
mod happening;
#[path = "flows_model/promises.rs"]
mod promises;

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

/// Most foreign nodes are of the vendor that the second engine speaks to.
fn vendor(id: EndpointId) -> Vendor {
    if id[7] % 4 == 3 { Vendor::Cyclone } else { Vendor::Fast }
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
    format!(
        "{kind}{}.{}{}",
        u32::from_be_bytes([0, 0, id[6], id[7]]),
        home(id),
        TOPICS[topic_of(id)].0
    )
}

/// What processes say to each other, and what one finds out by itself.
#[derive(Clone, Debug)]
enum Word {
    /// A subscription is there, or a foreign node's endpoint.
    Announce(EndpointId),
    Gone(Vec<EndpointId>),
    Offer {
        flow: Flow,
        epoch: u32,
        transport: Transport,
    },
    Withdrawn {
        flow: Flow,
        epoch: u32,
    },
    Cut {
        flow: Flow,
        epoch: u32,
        connected: Connected,
    },
    Closed {
        flow: Flow,
    },
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
    /// It was not gone on with.
    is_left_off: bool,
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
    /// So many endpoints of 100 are foreign nodes'.
    foreign_share: usize,
    /// Links that carry and were not to be gone on with.
    suspected: BTreeSet<(Flow, Transport)>,
    /// It has come upon what is not promised, and is left off.
    is_odd_one: bool,
    /// An action is being done.
    is_acting: bool,
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
        let has_engines = random.chance(50);
        let foreign = if has_engines { random.below(70) } else { 20 };
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
            foreign_share: foreign,
            suspected: BTreeSet::new(),
            is_odd_one: false,
            is_acting: false,
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
            if random.chance(30) {
                // The second engine before the first, before all others.
                transports.sort_by_key(|it| (*it != ids[TWO], *it != ids[ONE]));
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
        let is_known =
            self.is_known(process, flow.publisher) && self.is_known(process, flow.subscription);
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
            let readers =
                publisher.map_or(0, |it| it.readers.values().filter(|it| **it == at).count());
            Offer {
                peers,
                health,
                readers: readers as u32,
                ..Offer::new(self.ids[at].clone(), capability)
            }
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
        self.processes[process].trace.push(Entry::Event(event.clone()));
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
                if is_first
                    != self
                        .publishers
                        .get(&flow.publisher)
                        .is_none_or(|it| !it.readers.contains_key(&flow.subscription))
                {
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
                if matches!(opened, Outcome::Refused(_)) {
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
            Action::Wake | Action::Log(_) => {}
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
                        let here: Vec<_> = self
                            .subscriptions
                            .keys()
                            .copied()
                            .filter(|it| home(*it) == process)
                            .collect();
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
        self.processes[process].flows.check_pin(&pin).unwrap();
        self.happened(process, Event::Pinned(pin));
    }

    /// An endpoint is new: what fits it is matched with it.
    fn meet(&mut self, process: ProcessAt, id: EndpointId) {
        let others = self
            .publishers
            .keys()
            .chain(self.subscriptions.keys())
            .chain(&self.processes[process].known);
        let fits = |it: &EndpointId| {
            topic_of(*it) == topic_of(id)
                && is_publisher(*it) != is_publisher(id)
                && self.is_known(process, *it)
        };
        let others: BTreeSet<EndpointId> = others.filter(|it| fits(it)).copied().collect();
        for other in others {
            let (publisher, subscription) =
                if is_publisher(id) { (id, other) } else { (other, id) };
            let flow = Flow { publisher, subscription };
            let is_decided_here = home(publisher) == process
                || (home(publisher) == FOREIGN && home(subscription) == process);
            if !is_decided_here || self.processes[process].flows.get(flow).is_some() {
                continue;
            }
            let (topic, ends) = (Arc::from(TOPICS[topic_of(id)].0), self.ends(process, flow));
            let event = match self.random.chance(4) {
                true => {
                    Event::Mismatched { flow, topic, ends, mismatches: vec!["depth".to_owned()] }
                }
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
/// One walk. Answers what was done, or what went wrong, with what happened last.
fn walk(seed: u64, steps: u64, is_told: bool) -> Result<Figures, (String, Vec<String>)> {
    let mut world = World::new(seed, is_told);
    while world.figures.steps < steps && world.fault.is_none() && !world.is_odd_one {
        world.step();
    }
    if world.fault.is_none() && !world.is_odd_one {
        world.calm_down();
    }
    if world.fault.is_none() && !world.is_odd_one {
        world.check_rest();
    }
    world.figures.is_left_off = world.is_odd_one;
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
    let mut left_off = 0;
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
                left_off += u64::from(figures.is_left_off);
            }
            Err((fault, _)) => failed.push((seed, fault)),
        }
    }
    let Figures { steps: done, actions, samples, cuts, crossings, entries, .. } = all;
    eprintln!(
        "{} walks: {done} steps, {actions} actions, {samples} samples, {cuts} cuts, \
         {crossings} crossings, {entries} entries, {left_off} walks left off",
        seeds.end - seeds.start
    );
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
        panic!(
            "{fault}\n{} walks failed: {seeds:?}; TSUJI_MODEL_SEED={seed} makes the first again",
            failed.len()
        );
    }
    assert!(left_off <= 1 + (seeds.end - seeds.start) / 10, "{left_off} walks were left off");
}

#[test]
fn flows_keep_their_promises() {
    try_walks(1200, 500);
}

#[test]
#[ignore = "it takes a minute in a release build"]
fn soak_flows_ten_million_steps() {
    try_walks(20_000, 500);
}
