//! Single stories of a table of flows: what it is told, and what it does then.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::VecDeque;
use std::sync::Arc;

use tsuji_core::flows::{
    Action, Connected, EndpointId, Ends, Event, Flow, Flows, Now, Outcome, Pin, Refusal, Role,
    RouteState, TooManyPins, Trouble, View, Way, WireEngines,
};
use tsuji_core::{
    Capability, Conditions, DraftPolicy, Health, Offer, Origin, Peer, Peers, Policy, Reliability,
    Rule, Scope, Size, SizeOrigin, Traits, TransportId, Vendor,
};

const MS: u64 = 1_000_000;
/// Of endpoint 1 to endpoint 2.
const FLOW: Flow = Flow { publisher: [1; 16], subscription: [2; 16] };
const OTHER: Flow = Flow { publisher: [1; 16], subscription: [3; 16] };
const BEGINS: Connected = Connected { first: 1, ends: None, published_before: 0 };
const GOES_ON: Connected = Connected { first: 9, ends: Some(9), published_before: 8 };

/// A table, and what is known around it.
struct Table {
    flows: Flows,
    now_ms: u64,
    facts: Facts,
    /// What becomes of the next ends that are connected; then all are.
    opened: VecDeque<Outcome>,
}

struct Facts {
    size: Size,
    /// Transports, and what has become of them.
    transports: Vec<(&'static str, Health)>,
    /// Subscriptions that only the first engine reaches.
    needs_first: Vec<EndpointId>,
    is_foreign: bool,
    is_changing_engine: bool,
}

impl View for Facts {
    fn traits(&self, flow: Flow) -> Option<Traits> {
        let vendor = match self.needs_first.contains(&flow.subscription) {
            true => Vendor::Cyclone,
            false => Vendor::Fast,
        };
        Some(Traits {
            size: self.size,
            size_origin: SizeOrigin::Sent,
            sample_bytes: None,
            scope: Scope::Local,
            reliability: Reliability::Reliable,
            peer: if self.is_foreign { Peer::Foreign(vendor) } else { Peer::Tsuji },
        })
    }

    fn offers(&self, _: Flow) -> Vec<Offer> {
        let offers = self.transports.iter().map(|(name, health)| Offer {
            health: health.clone(),
            peers: if *name == "two" { Peers { fast: true, ..Peers::TSUJI } } else { Peers::ALL },
            ..Offer::new(TransportId::new(name), Capability::ANYTHING)
        });
        offers.collect()
    }

    fn is_changing_engine(&self, _: EndpointId) -> bool {
        self.is_changing_engine
    }
}

/// Small samples take the first of these that can, large ones the last.
fn policy(names: &[&str]) -> Arc<Policy> {
    let rule = |size, names: Vec<&&str>| Rule {
        name: None,
        priority: 0,
        conditions: Conditions { size: Some(size), ..Conditions::default() },
        transports: names.into_iter().map(|name| TransportId::new(name)).collect(),
        origin: Origin { file: "story".into(), line: 1 },
    };
    let small = rule(Size::Small, names.iter().collect());
    let large = rule(Size::Large, names.iter().rev().collect());
    let draft = DraftPolicy { rules: vec![small, large], ..DraftPolicy::default() };
    Arc::new(Policy::new(draft).unwrap())
}

impl Table {
    /// With transports `a` and `b`, of which `a` is the better for small samples.
    fn new() -> Self {
        Self::with(&["a", "b"], None)
    }

    fn with(names: &[&'static str], engines: Option<WireEngines>) -> Self {
        let facts = Facts {
            size: Size::Small,
            transports: names.iter().map(|name| (*name, Health::Good)).collect(),
            needs_first: Vec::new(),
            is_foreign: engines.is_some(),
            is_changing_engine: false,
        };
        let flows = Flows::new(policy(names), engines);
        Self { flows, now_ms: 1_000_000, facts, opened: VecDeque::new() }
    }

    /// Two engines, of which `two` is the better where it reaches the other end.
    fn with_engines() -> Self {
        let (first, second) = (TransportId::new("one"), TransportId::new("two"));
        Self::with(&["two", "one"], Some(WireEngines { first, second }))
    }

    /// Tells it that this has happened, and expects what it does: words with a colon behind the number of the
    /// subscription.
    #[track_caller]
    fn check(&mut self, event: Event, expect: &str) {
        self.flows.handle(event);
        let mut done = Vec::new();
        let now = Now { monotonic_ns: self.now_ms * MS, wall_ns: 0 };
        while let Some(action) = self.flows.poll_action(now, &self.facts) {
            let of = |flow: &Flow| flow.subscription[0];
            done.push(match &action {
                Action::Offer { flow, epoch, is_first, transport } => {
                    let first = if *is_first { " first" } else { "" };
                    format!("{}: offer {epoch} {transport}{first}", of(flow))
                }
                Action::OpenHere { flow, epoch, transport } => {
                    let (flow, epoch) = (*flow, *epoch);
                    self.flows.handle(Event::Answered { flow, epoch, address: Ok(Vec::new()) });
                    format!("{}: open {epoch} {transport}", of(&flow))
                }
                Action::Connect { flow, transport, .. } => {
                    let has_link =
                        self.flows.get(*flow).is_some_and(|it| it.handover.current().is_some());
                    let next = || Outcome::Connected(if has_link { GOES_ON } else { BEGINS });
                    let opened = self.opened.pop_front().unwrap_or_else(next);
                    self.flows.handle(Event::Opened { flow: *flow, opened });
                    format!("{}: connect {transport}", of(flow))
                }
                Action::EndTrial(flow) => {
                    let connected = Some(GOES_ON);
                    self.flows.handle(Event::TrialEnded { flow: *flow, connected });
                    format!("{}: end trial", of(flow))
                }
                Action::Cut { flow, epoch, .. } => format!("{}: cut {epoch}", of(flow)),
                Action::Carries { flow, epoch } => format!("{}: carries {epoch}", of(flow)),
                Action::Withdraw { flow, epoch } => format!("{}: withdraw {epoch}", of(flow)),
                Action::Disconnect { flow, transport } => {
                    format!("{}: disconnect {transport}", of(flow))
                }
                Action::GiveUp(flow) => format!("{}: give up", of(flow)),
                Action::Leave(flow) => format!("{}: leave", of(flow)),
                Action::Close { flow, epoch } => format!("{}: close {epoch}", of(flow)),
                Action::HasLeft(flow) => format!("{}: has left", of(flow)),
                Action::EngineChanged(_) => "engine changed".to_owned(),
                Action::Wake | Action::Log(_) => continue,
            });
        }
        assert_eq!(done.join(", "), expect);
    }

    /// The same when so much time has passed.
    #[track_caller]
    fn check_after(&mut self, ms: u64, expect: &str) {
        self.now_ms += ms;
        self.check(Event::Timeout, expect);
    }

    /// In how many milliseconds it is to be asked again.
    fn due_ms(&self) -> Option<u64> {
        self.flows.poll_timeout().map(|due_ns| (due_ns - self.now_ms * MS) / MS)
    }

    fn state(&self, flow: Flow) -> Option<RouteState> {
        self.flows.get(flow).map(|it| it.state)
    }

    fn set_health(&mut self, name: &str, health: Health) {
        self.facts.transports.iter_mut().find(|it| it.0 == name).unwrap().1 = health;
    }

    /// A flow to another process that has its first link, of transport `a`.
    fn active() -> Self {
        let mut table = Self::new();
        table.check(matched(FLOW, Way::Peer), "2: offer 1 a first");
        table.check(accepted(1), "2: connect a, 2: cut 1");
        table
    }

    /// A flow to a foreign node.
    fn foreign(mut self) -> Self {
        self.facts.is_foreign = true;
        self
    }
}

fn matched(flow: Flow, way: Way) -> Event {
    let ends = Ends { role: Role::Topic, way, keeps: false, is_manual: false };
    Event::Matched { flow, topic: "/t".into(), ends }
}

fn accepted(epoch: u32) -> Event {
    Event::Answered { flow: FLOW, epoch, address: Ok(Vec::new()) }
}

fn refused(epoch: u32, refusal: Refusal) -> Event {
    Event::Answered { flow: FLOW, epoch, address: Err(refusal) }
}

fn done(epoch: u32) -> Event {
    Event::Done { flow: FLOW, epoch, held: 0 }
}

fn pinned(topic: &str, name: Option<&str>, count: u64) -> Event {
    let transport = name.map(TransportId::new);
    Event::Pinned(Pin { topic: topic.into(), transport, stamp: (count, [0; 16]) })
}

fn trouble(name: &str, is_broken: bool) -> Event {
    let trouble = Trouble { id: TransportId::new(name), reason: "it says so".into(), is_broken };
    Event::Trouble { publisher: FLOW.publisher, trouble }
}

fn doubted() -> Event {
    Event::PublisherDoubted { publisher: FLOW.publisher, why: "another size".into() }
}

fn exhausted() -> Health {
    Health::Exhausted("all in use".into())
}

#[test]
fn a_flow_gets_its_first_link() {
    let mut table = Table::active();
    assert_eq!((table.state(FLOW), table.due_ms()), (Some(RouteState::Active), None));
    table.check(matched(OTHER, Way::Here), "3: open 1 a, 3: connect a, 3: cut 1");
    assert_eq!(table.flows.of_publisher(FLOW.publisher).count(), 2);
}

#[test]
fn a_pin_makes_a_flow_go_over() {
    let mut table = Table::active();
    table.check(pinned("/t", Some("b"), 1), "2: offer 2 b");
    assert_eq!(table.flows.get(FLOW).unwrap().handover_to(), Some(&TransportId::new("b")));
    table.check(accepted(2), "2: connect b, 2: cut 2");
    // The old link may be offered again only when the subscription has left it.
    table.check(pinned("/t", None, 2), "");
    table.check(done(2), "2: has left, 2: offer 3 a");
    table.check(accepted(3), "2: connect a, 2: cut 3");
    table.check(done(3), "2: has left");
    let changes = &table.flows.get(FLOW).unwrap().changes;
    assert!(changes.iter().map(|it| it.epoch).eq(1..=3) && changes.iter().all(|it| it.is_settled));
}

#[test]
fn what_is_refused_is_not_offered_again() {
    let mut table = Table::new();
    table.check(matched(FLOW, Way::Peer), "2: offer 1 a first");
    table.check(refused(1, Refusal::lasting("no such build")), "2: offer 2 b first");
    table.opened.push_back(Outcome::Refused(Refusal::lasting("no room")));
    // What the subscription has opened for it is given back.
    table.check(accepted(2), "2: connect b, 2: withdraw 2");
    assert_eq!((table.state(FLOW), table.due_ms()), (Some(RouteState::NoRoute), None));
    table.check(pinned("/t", Some("b"), 1), "");
}

#[test]
fn what_has_run_out_is_tried_again_ever_more_rarely() {
    let mut table = Table::new();
    table.set_health("a", exhausted());
    table.set_health("b", exhausted());
    table.check(matched(FLOW, Way::Peer), "");
    assert_eq!(table.state(FLOW), Some(RouteState::NoRoute));
    for pause_ms in [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000] {
        assert_eq!(table.due_ms(), Some(pause_ms));
        table.check_after(pause_ms, "");
    }
    table.set_health("b", Health::Good);
    table.check_after(10_000, "2: offer 1 b first");
    table.check(accepted(1), "2: connect b, 2: cut 1");
    table.set_health("a", Health::Good);
    let due_ms = table.due_ms().unwrap();
    table.check_after(due_ms, "2: offer 2 a");
}

#[test]
fn a_link_that_has_run_out_carries_what_it_can() {
    let mut table = Table::active();
    table.check(trouble("a", false), "2: offer 2 b");
    table.check(refused(2, Refusal::passing("not now")), "");
    assert_eq!((table.state(FLOW), table.due_ms()), (Some(RouteState::Active), Some(100)));
    // It is known already.
    table.check(trouble("a", false), "");
}

#[test]
fn a_broken_link_is_kept_for_a_moment() {
    let mut table = Table::new();
    table.facts.transports.truncate(1);
    table.check(matched(FLOW, Way::Peer), "2: offer 1 a first");
    table.check(accepted(1), "2: connect a, 2: cut 1");
    table.check(trouble("a", true), "");
    assert_eq!((table.state(FLOW), table.due_ms()), (Some(RouteState::Active), Some(50)));
    table.check_after(49, "");
    table.check_after(1, "2: give up, 2: close 1");
    assert_eq!((table.state(FLOW), table.due_ms()), (Some(RouteState::NoRoute), Some(100)));
    table.check_after(100, "2: offer 2 a first");
}

#[test]
fn a_broken_link_makes_place_for_another() {
    let mut table = Table::active();
    table.check(trouble("a", true), "2: offer 2 b");
    // The publisher waits, so this one is not waited for as long as others.
    table.check_after(50, "");
    assert_eq!(table.due_ms(), Some(50));
    table.check(accepted(2), "2: connect b, 2: cut 2");
    let lost = Event::ReaderLost { flow: FLOW, transport: TransportId::new("b") };
    // Nothing is left to be waited for.
    table.check(lost, "");
    // What had run out first is due again just then.
    table.check_after(50, "2: give up, 2: close 2, 2: offer 3 a first");
}

#[test]
fn a_trial_ends_when_something_has_come_or_in_time() {
    for is_shown in [true, false] {
        let mut table = Table::active();
        table.check(pinned("/t", Some("b"), 1), "2: offer 2 b");
        table.opened.push_back(Outcome::OnTrial);
        table.check(accepted(2), "2: connect b");
        assert_eq!(table.due_ms(), Some(250));
        // It is open already.
        table.check(Event::GoOn(TransportId::new("b")), "");
        table.check(Event::Shown { flow: FLOW, epoch: 1 }, "");
        match is_shown {
            true => table.check(Event::Shown { flow: FLOW, epoch: 2 }, "2: end trial, 2: cut 2"),
            false => table.check_after(250, "2: end trial, 2: cut 2"),
        }
        table.check(Event::Shown { flow: FLOW, epoch: 2 }, "");
    }
}

#[test]
fn an_opening_that_takes_too_long_is_given_up() {
    let mut table = Table::active();
    table.check(pinned("/t", Some("b"), 1), "2: offer 2 b");
    table.opened.extend([Outcome::Later, Outcome::Later]);
    table.check(accepted(2), "2: connect b");
    table.check(Event::GoOn(TransportId::new("a")), "");
    table.check(Event::GoOn(TransportId::new("b")), "2: connect b");
    assert_eq!(table.due_ms(), Some(5_000));
    table.check_after(5_000, "2: disconnect b, 2: withdraw 2");
    assert_eq!((table.state(FLOW), table.due_ms()), (Some(RouteState::Active), Some(100)));
    table.check_after(100, "2: offer 3 b");
    // Not only a slow transport: a subscription may not answer.
    table.check_after(5_000, "2: disconnect b, 2: withdraw 3");
}

#[test]
fn a_process_that_is_stopped_may_answer_late() {
    let mut table = Table::new();
    table.check(matched(FLOW, Way::Peer), "2: offer 1 a first");
    assert_eq!(table.due_ms(), None);
    table.check_after(3_600_000, "");
    table.opened.push_back(Outcome::Later);
    table.check(accepted(1), "2: connect a");
    // Counted from the offer on.
    table.check(Event::Timeout, "2: disconnect a, 2: withdraw 1, 2: offer 2 b first");
}

#[test]
fn an_answer_that_comes_after_a_withdrawal_is_ignored() {
    let mut table = Table::active();
    table.check(pinned("/t", Some("b"), 1), "2: offer 2 b");
    table.check(pinned("/t", None, 2), "2: disconnect b, 2: withdraw 2");
    table.check(accepted(2), "");
    table.check(refused(2, Refusal::lasting("no such build")), "");
    table.check(pinned("/t", Some("b"), 3), "2: offer 3 b");
    table.check(accepted(2), "");
    table.check(accepted(3), "2: connect b, 2: cut 3");
    // An answer counts once.
    table.check(accepted(3), "");
}

#[test]
fn a_flow_keeps_its_link_for_a_while_though_it_is_doubted() {
    let mut table = Table::active();
    table.facts.size = Size::Large;
    table.now_ms += 400;
    table.check(doubted(), "");
    assert_eq!(table.due_ms(), Some(600));
    table.check_after(599, "");
    table.check_after(1, "2: offer 2 b");
    table.check(accepted(2), "2: connect b, 2: cut 2");
    table.check(done(2), "2: has left");
    table.facts.size = Size::Small;
    table.now_ms += 1_000;
    table.check(doubted(), "2: offer 3 a");
}

#[test]
fn a_flow_to_a_foreign_node_keeps_its_wire() {
    let mut table = Table::new().foreign();
    table.check(matched(FLOW, Way::ToForeign), "2: connect a, 2: carries 1");
    table.now_ms += 10_000;
    table.facts.size = Size::Large;
    table.check(doubted(), "");
    table.check(pinned("/t", Some("b"), 1), "");
    table.check(Event::PolicyChanged(policy(&["b", "a"])), "");
    // Unless something is wrong with it.
    table.check(trouble("a", true), "2: connect b, 2: has left, 2: carries 2");
}

#[test]
fn a_foreign_node_that_is_not_reached_is_not_tried_for_ever() {
    let mut table = Table::new().foreign();
    table.facts.transports.truncate(1);
    table.opened.extend(std::iter::repeat_n(Outcome::Later, 6));
    table.check(matched(FLOW, Way::ToForeign), "2: connect a");
    for epoch in 1..6 {
        table.check_after(5_000, &format!("2: disconnect a, 2: withdraw {epoch}"));
        let due_ms = table.due_ms().unwrap();
        table.check_after(due_ms, "2: connect a");
    }
    table.check_after(5_000, "2: disconnect a, 2: withdraw 6");
    assert_eq!((table.state(FLOW), table.due_ms()), (Some(RouteState::NoRoute), None));
}

#[test]
fn a_foreign_publisher_is_heard() {
    let mut table = Table::new().foreign();
    table.opened.extend([Outcome::Later, Outcome::Heard]);
    table.check(matched(FLOW, Way::FromForeign), "2: connect a");
    table.check(Event::GoOn(TransportId::new("a")), "2: connect a, 2: carries 1");
    table.check(Event::EndpointGone(FLOW.publisher), "2: close 1");
}

/// A flow on the second engine whose publisher has another that needs the first: nobody can go over before all can.
fn going_over() -> Table {
    let mut table = Table::with_engines();
    table.check(matched(FLOW, Way::ToForeign), "2: connect two, 2: carries 1");
    table.facts.needs_first.push(OTHER.subscription);
    table.opened.extend([Outcome::Later, Outcome::Later]);
    table.check(matched(OTHER, Way::ToForeign), "3: connect one, 2: connect one");
    table
}

#[test]
fn the_flows_of_a_publisher_share_an_engine() {
    let mut table = going_over();
    table.opened.push_back(Outcome::Connected(GOES_ON));
    let go_on = "2: connect one, 2: has left, 2: carries 2, 3: connect one, 3: carries 1";
    table.check(Event::EngineChanging(FLOW.publisher), go_on);
    table.check(Event::EngineChanging(FLOW.publisher), "engine changed");
    // As soon as nobody needs the first any more, but not too soon.
    table.now_ms += 300;
    table.check(Event::EndpointGone(OTHER.subscription), "3: leave, 3: close 1");
    assert_eq!(table.due_ms(), Some(700));
    table.check_after(700, "2: connect two, 2: has left, 2: carries 3");
}

#[test]
fn who_has_come_over_with_another_is_asked_before_it_is_decided() {
    let mut table = going_over();
    table.facts.is_changing_engine = true;
    let doubt = Event::PolicyChanged(policy(&["two", "one"]));
    let expect = "2: connect one, 2: has left, 2: carries 2, 3: connect one, 3: carries 1";
    table.check(doubt, expect);
}

#[test]
fn a_new_policy_counts_at_once() {
    let mut table = Table::active();
    table.check(Event::PolicyChanged(policy(&["a", "b"])), "");
    table.check(Event::PolicyChanged(policy(&["b", "a"])), "2: offer 2 b");
    table.check(refused(2, Refusal::passing("not now")), "");
    // What was not to be had may be now.
    table.check(Event::PolicyChanged(policy(&["b"])), "2: offer 3 b");
    table.check(Event::PolicyChanged(policy(&["a"])), "2: disconnect b, 2: withdraw 3");
}

#[test]
fn nothing_is_left_of_a_flow_that_has_ended() {
    let mut table = Table::active();
    table.check(pinned("/t", Some("b"), 1), "2: offer 2 b");
    table.check(matched(OTHER, Way::Peer), "3: offer 1 b first");
    table.check(Event::Ended(OTHER), "3: disconnect b, 3: close 1");
    let gone = Event::EndpointGone(FLOW.publisher);
    table.check(gone, "2: disconnect b, 2: leave, 2: close 2");
    assert!(table.flows.iter().next().is_none() && table.due_ms().is_none());
    table.check(accepted(2), "");
    table.check(done(1), "");
}

#[test]
fn ends_that_do_not_fit_may_fit_later() {
    let mut table = Table::new();
    let ends = Ends { role: Role::Topic, way: Way::Here, keeps: false, is_manual: false };
    let mismatches = vec!["reliability".to_owned()];
    table.check(Event::Mismatched { flow: FLOW, topic: "/t".into(), ends, mismatches }, "");
    assert_eq!(table.state(FLOW), Some(RouteState::Incompatible));
    table.check(pinned("/t", Some("b"), 1), "");
    table.check(Event::Unmatched(FLOW), "");
    table.check(matched(FLOW, Way::Here), "2: open 1 b, 2: connect b, 2: cut 1");
}

#[test]
fn an_older_word_of_the_user_does_not_count() {
    let mut table = Table::active();
    table.check(pinned("/t", Some("b"), 5), "2: offer 2 b");
    table.check(pinned("/t", Some("a"), 4), "");
    table.check(pinned("/t", None, 5), "");
    assert_eq!(table.flows.pinned_to("/t"), Some(&TransportId::new("b")));
    let stamp = table.flows.new_stamp([7; 16]);
    assert_eq!(stamp, (6, [7; 16]));
    table.check(pinned("/t", None, 7), "2: disconnect b, 2: withdraw 2");
    // That it was left to the policy is remembered too.
    table.check(pinned("/t", Some("b"), 6), "");
    assert_eq!(table.flows.pins().count(), 1);
}

#[test]
fn no_more_topics_are_set_than_there_is_room_for() {
    let mut table = Table::new();
    let count = Flows::PINS_MAX as u64;
    (1..=count).for_each(|it| table.check(pinned(&format!("/t{it}"), Some("a"), it), ""));
    let pin = |topic: &str, stamp| Pin { topic: topic.into(), transport: None, stamp };
    assert_eq!(table.flows.check_pin(&pin("/more", (count + 1, [0; 16]))), Err(TooManyPins));
    table.check(pinned("/more", Some("a"), count + 1), "");
    assert_eq!(table.flows.pinned_to("/more"), None);
    assert_eq!(table.flows.check_pin(&pin("/t1", (count + 2, [0; 16]))), Ok(0));
    // One that is left to the policy again makes room.
    table.check(pinned("/t1", None, count + 2), "");
    table.check(pinned("/more", Some("a"), count + 3), "");
    assert_eq!(table.flows.pinned_to("/more"), Some(&TransportId::new("a")));
    assert_eq!(table.flows.pins().count(), Flows::PINS_MAX);
}

#[test]
fn nothing_more_is_done_before_an_outcome_is_known() {
    let mut table = Table::new();
    table.flows.handle(matched(FLOW, Way::Here));
    table.flows.handle(matched(OTHER, Way::Here));
    let now = Now { monotonic_ns: table.now_ms * MS, wall_ns: 0 };
    let poll = |table: &mut Table| loop {
        match table.flows.poll_action(now, &table.facts) {
            Some(Action::Log(_)) => {}
            action => return action,
        }
    };
    assert!(matches!(poll(&mut table), Some(Action::OpenHere { flow: FLOW, .. })));
    assert_eq!(poll(&mut table), None);
    table.check(accepted(1), "2: connect a, 2: cut 1, 3: open 1 a, 3: connect a, 3: cut 1");
}

#[test]
fn a_foreign_publisher_that_is_heard_otherwise_has_left_its_old_link() {
    let mut table = Table::new().foreign();
    table.set_health("a", exhausted());
    table.opened.extend([Outcome::Heard, Outcome::Heard]);
    table.check(matched(FLOW, Way::FromForeign), "2: connect b, 2: carries 1");
    table.set_health("a", Health::Good);
    table.now_ms += 100;
    table.flows.handle(Event::Timeout);
    let now = Now { monotonic_ns: table.now_ms * MS, wall_ns: 0 };
    while let Some(action) = table.flows.poll_action(now, &table.facts) {
        if matches!(action, Action::Connect { .. }) {
            table.flows.handle(Event::Opened { flow: FLOW, opened: Outcome::Heard });
        }
    }
    assert!(table.flows.get(FLOW).unwrap().handover.is_settled());
}

#[test]
fn a_flow_that_is_doubted_while_it_is_opened_is_decided_again() {
    let mut table = Table::new();
    table.check(matched(FLOW, Way::Peer), "2: offer 1 a first");
    table.facts.size = Size::Large;
    table.check(doubted(), "");
    table.check(accepted(1), "2: connect a, 2: cut 1");
    table.check_after(1_000, "2: offer 2 b");
}

#[test]
fn a_flow_without_a_route_is_decided_again_when_it_is_doubted() {
    let mut table = Table::new();
    let forbid = Rule {
        name: None,
        priority: 0,
        conditions: Conditions { size: Some(Size::Large), ..Conditions::default() },
        transports: vec![TransportId::new("a"), TransportId::new("b")],
        origin: Origin { file: "story".into(), line: 2 },
    };
    let draft = DraftPolicy { forbids: vec![forbid], ..DraftPolicy::default() };
    table.check(Event::PolicyChanged(Arc::new(Policy::new(draft).unwrap())), "");
    table.facts.size = Size::Large;
    table.check(matched(FLOW, Way::Peer), "");
    assert_eq!(table.state(FLOW), Some(RouteState::NoRoute));
    table.facts.size = Size::Small;
    table.check(doubted(), "2: offer 1 a first");
}

#[test]
fn who_has_come_over_with_another_is_not_cut_off() {
    for is_late in [true, false] {
        let mut table = going_over();
        // Its publisher has let it go over, and the table is not told of that yet.
        table.facts.is_changing_engine = true;
        table.now_ms += 5_000;
        table.flows.handle(if is_late { Event::Timeout } else { trouble("one", false) });
        let now = Now { monotonic_ns: table.now_ms * MS, wall_ns: 0 };
        while let Some(action) = table.flows.poll_action(now, &table.facts) {
            if let Action::Connect { flow, .. } = action {
                let opened = Outcome::Connected(if flow == FLOW { GOES_ON } else { BEGINS });
                table.flows.handle(Event::Opened { flow, opened });
            }
            let is_cut_off = matches!(action, Action::Disconnect { flow: FLOW, .. });
            assert!(!is_cut_off, "its link carries");
        }
    }
}

#[test]
fn what_is_refused_after_a_calm_time_is_tried_ever_more_rarely() {
    let mut table = Table::active();
    table.now_ms += 60_000;
    table.check(pinned("/t", Some("b"), 1), "2: offer 2 b");
    for (epoch, pause_ms) in (2..).zip([100, 200, 400, 800]) {
        table.check(refused(epoch, Refusal::passing("not now")), "");
        assert_eq!(table.due_ms(), Some(pause_ms));
        table.check_after(pause_ms, &format!("2: offer {} b", epoch + 1));
    }
}

#[test]
fn what_runs_out_while_another_is_opened_is_tried_again() {
    let mut table = Table::new();
    table.check(Event::PolicyChanged(policy(&["b", "a"])), "");
    table.check(matched(FLOW, Way::Peer), "2: offer 1 b first");
    table.set_health("a", exhausted());
    table.check(Event::PolicyChanged(policy(&["a", "b"])), "");
    table.check(accepted(1), "2: connect b, 2: cut 1");
    table.set_health("a", Health::Good);
    table.check_after(100, "2: offer 2 a");
}

#[test]
fn what_runs_out_altogether_while_another_is_opened_is_tried_again() {
    let mut table = Table::active();
    table.check(pinned("/t", Some("b"), 1), "2: offer 2 b");
    table.set_health("a", exhausted());
    table.set_health("b", exhausted());
    table.check(pinned("/t", None, 2), "");
    table.check(accepted(2), "2: connect b, 2: cut 2");
    table.check(done(2), "2: has left");
    table.set_health("a", Health::Good);
    table.set_health("b", Health::Good);
    table.check_after(100, "2: offer 3 a");
}

#[test]
fn what_was_said_of_a_flow_that_has_ended_is_ignored() {
    let mut table = Table::new();
    table.check(matched(FLOW, Way::Peer), "2: offer 1 a first");
    table.check(Event::Ended(FLOW), "2: disconnect a, 2: close 1");
    table.check(pinned("/t", Some("b"), 1), "");
    table.check(matched(FLOW, Way::Peer), "2: offer 2 b first");
    // Said before the other end has heard that the first is over.
    table.check(accepted(1), "");
    table.check(accepted(2), "2: connect b, 2: cut 2");
}

#[test]
fn an_outcome_that_never_comes_ends_one_opening_alone() {
    let mut table = Table::new();
    table.check(matched(FLOW, Way::Peer), "2: offer 1 a first");
    let now = Now { monotonic_ns: table.now_ms * MS, wall_ns: 0 };
    table.flows.handle(accepted(1));
    let action = table.flows.poll_action(now, &table.facts);
    assert!(action.is_some_and(|it| it.wants_outcome()));
    // Whatever else happens waits for it.
    table.check(matched(OTHER, Way::Peer), "");
    table.flows.forget_outcome();
    table.check(Event::Timeout, "3: offer 1 a first");
    table.check_after(5000, "2: disconnect a, 2: withdraw 1, 2: offer 2 b first");
}

#[test]
fn a_foreign_node_without_a_route_is_decided_about_again() {
    let mut table = Table::new().foreign();
    let failed = || Health::Failed("forbidden".into());
    table.set_health("a", failed());
    table.set_health("b", failed());
    table.check(matched(FLOW, Way::ToForeign), "");
    assert_eq!(table.state(FLOW), Some(RouteState::NoRoute));
    table.set_health("b", Health::Good);
    table.check(Event::PolicyChanged(policy(&["a", "b"])), "2: connect b, 2: carries 1");
    // It keeps the wire that it has.
    table.set_health("a", Health::Good);
    table.check(Event::PolicyChanged(policy(&["a", "b"])), "");
}
