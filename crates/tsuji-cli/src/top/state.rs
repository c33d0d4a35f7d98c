//! What is shown and what keys do, without a terminal.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use tsuji::{KNOWN_TRANSPORTS, ProcessEngines, ProcessInfo, RouteReport, RouteSetting};
use tsuji_core::TopicPattern;
use tsuji_platform::terminal::Key;

use super::watcher::{Order, Report, Snapshot};
use crate::figures::count;
use crate::output::Colour;
use crate::routes;

/// How long a message stands.
const MESSAGE_STANDS: Duration = Duration::from_secs(8);

/// Snapshots whose figures are kept of each flow.
const TREND: usize = 120;

/// The shortest and the longest time between two snapshots.
pub(super) const EVERY: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(60));

/// What a key is for beyond what is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    End,
    Order(Order),
}

/// A column that flows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum FlowColumn {
    #[default]
    Topic,
    Transport,
    Rate,
    /// Bytes a second
    Bytes,
    /// Median of the latency
    Median,
    /// 99th percentile of the latency
    P99,
    Drops,
}

/// A column that processes are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ProcessColumn {
    #[default]
    Program,
    Pid,
    Host,
    /// Share of a core of late
    Cpu,
    Threads,
    Memory,
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Flows,
    Processes,
}

/// How much of the screen tells about what is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Details {
    None,
    Some,
    All,
}

/// What keys are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The table.
    Table,
    /// The text that rows must have in them.
    Filter,
    /// The transports of a topic.
    Transports(Choice),
    /// What the keys are for.
    Help,
}

/// A transport is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) topic: String,
    /// Transports, each with what speaks for or against it; the first is the choice of the policy.
    pub(super) offered: Vec<(Option<String>, String)>,
    pub(super) at: usize,
}

/// A topic that was set.
#[derive(Debug)]
struct Setting {
    topic: String,
    /// What it was set to before, by whomever.
    before: Option<String>,
    /// What it is set to since.
    transport: Option<String>,
}

/// What an order is that was not answered yet.
#[derive(Debug, PartialEq, Eq)]
enum PendingSet {
    /// One of the user's, with what the topic was set to before.
    New { before: Option<String> },
    /// The last setting taken back.
    Undo,
}

/// The two ends of a flow, which tell it from all others.
pub(super) type FlowKey = (String, String);

fn key(flow: &RouteReport) -> FlowKey {
    (flow.publisher.gid.clone(), flow.subscription.gid.clone())
}

/// A row that is chosen, followed when rows come and go.
#[derive(Debug)]
struct Selection<K> {
    key: Option<K>,
    at: usize,
}

impl<K: Clone + PartialEq> Selection<K> {
    const fn first() -> Self {
        Self { key: None, at: 0 }
    }

    /// Where the row is that was chosen, or the one that took its place.
    fn at(&self, keys: &[K]) -> Option<usize> {
        let found = self.key.as_ref().and_then(|key| keys.iter().position(|it| it == key));
        found.or_else(|| keys.len().checked_sub(1).map(|last| last.min(self.at)))
    }

    fn choose(&mut self, at: usize, keys: &[K]) {
        let at = at.min(keys.len().saturating_sub(1));
        *self = Self { key: keys.get(at).cloned(), at };
    }

    /// What was chosen is chosen still; if it is gone, what stands there now.
    fn follow(&mut self, keys: &[K]) {
        if let Some(at) = self.at(keys) {
            self.choose(at, keys);
        }
    }
}

/// Figures of a flow at one moment: its rate in hertz, and the median of its latency in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) rate_hz: f64,
    pub(super) median_us: Option<f64>,
}

/// What is shown, and what was done here.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) page: Page,
    pub(super) details: Details,
    pub(super) mode: Mode,
    pub(super) filter: String,
    pub(super) flow_column: FlowColumn,
    pub(super) process_column: ProcessColumn,
    pub(super) is_reversed: bool,
    pub(super) every: Duration,
    pub(super) is_paused: bool,
    /// Lines of the details that are above the screen.
    pub(super) scrolled: usize,
    /// Rows of the table that are above the screen.
    pub(super) above: usize,
    /// Rows that there is room for, as was last drawn.
    pub(super) rows: usize,
    pattern: Option<TopicPattern>,
    flows: Vec<RouteReport>,
    /// `None` until they have been asked for and have answered.
    processes: Option<Vec<ProcessEngines>>,
    /// The share of a core that processes have taken of late, by their tokens.
    shares: HashMap<String, f64>,
    others: Vec<ProcessInfo>,
    is_known: bool,
    flow: Selection<FlowKey>,
    process: Selection<String>,
    trends: HashMap<FlowKey, VecDeque<Point>>,
    message: Option<(Instant, Colour, String)>,
    /// What was done here and not taken back, the last one at the end.
    settings: Vec<Setting>,
    /// What topics were set to since the last snapshot, which does not show it yet.
    fresh: BTreeMap<String, Option<String>>,
    pending: Option<PendingSet>,
}

impl Top {
    pub(super) fn new(
        pattern: Option<TopicPattern>,
        every: Duration,
        flow_column: FlowColumn,
    ) -> Self {
        Self {
            page: Page::Flows,
            details: Details::Some,
            mode: Mode::Table,
            filter: String::new(),
            flow_column,
            process_column: ProcessColumn::default(),
            is_reversed: false,
            every,
            is_paused: false,
            scrolled: 0,
            above: 0,
            rows: 1,
            pattern,
            flows: Vec::new(),
            processes: None,
            shares: HashMap::new(),
            others: Vec::new(),
            is_known: false,
            flow: Selection::first(),
            process: Selection::first(),
            trends: HashMap::new(),
            message: None,
            settings: Vec::new(),
            fresh: BTreeMap::new(),
            pending: None,
        }
    }

    /// Topics that are set to a transport by what was done here, as far as is known.
    pub(super) fn set_here(&self) -> impl Iterator<Item = (&str, &str)> {
        let last: BTreeMap<_, _> =
            self.settings.iter().map(|it| (&*it.topic, it.transport.as_deref())).collect();
        let last = last.into_iter().filter(|(topic, transport)| {
            self.pinned(topic).is_none_or(|pinned| pinned == *transport)
        });
        last.filter_map(|(topic, transport)| Some((topic, transport?)))
    }

    /// Whether a setting was not answered yet.
    pub(super) fn is_setting(&self) -> bool {
        self.pending.is_some()
    }

    /// What a topic is set to; nothing if it has no flow.
    fn pinned(&self, topic: &str) -> Option<Option<&str>> {
        let fresh = || self.fresh.get(topic).map(Option::as_deref);
        let seen = || self.flows.iter().find(|it| it.topic == topic).map(|it| it.pinned.as_deref());
        fresh().or_else(seen)
    }

    /// All flows of the pattern.
    pub(super) fn all_flows(&self) -> &[RouteReport] {
        &self.flows
    }

    /// All other processes.
    pub(super) fn others(&self) -> &[ProcessInfo] {
        &self.others
    }

    /// Whether anything has been seen.
    pub(super) fn is_known(&self) -> bool {
        match self.page {
            Page::Flows => self.is_known,
            Page::Processes => self.processes.is_some(),
        }
    }

    /// The flows that are shown, in their order.
    pub(super) fn flows(&self) -> Vec<&RouteReport> {
        let has = |flow: &&RouteReport| {
            let transport = flow.transport.as_deref().unwrap_or_default();
            let ends = [&flow.publisher, &flow.subscription];
            let ends = ends.into_iter().flat_map(|it| [&*it.node, &*it.program]);
            self.is_shown(ends.chain([&*flow.topic, &*flow.type_name, transport]))
        };
        let mut flows: Vec<_> = self.flows.iter().filter(has).collect();
        flows.sort_by(|a, b| {
            let order = self.flow_column.compare(a, b);
            let order = if self.is_reversed { order.reverse() } else { order };
            order.then_with(|| FlowColumn::Topic.compare(a, b)).then_with(|| key(a).cmp(&key(b)))
        });
        flows
    }

    /// The processes that are shown, in their order.
    pub(super) fn processes(&self) -> Vec<&ProcessEngines> {
        let has = |it: &&ProcessEngines| {
            let engines = it.engines.iter().filter(|it| it.state.is_at_work());
            let engines = engines.map(|it| &*it.transport);
            self.is_shown(engines.chain([&*it.process.program, &*it.process.host]))
        };
        let mut processes: Vec<_> = self.processes.iter().flatten().filter(has).collect();
        processes.sort_by(|a, b| {
            let order = self.process_column.compare(a, b, |it| self.share(it));
            let order = if self.is_reversed { order.reverse() } else { order };
            order.then_with(|| a.process.token.cmp(&b.process.token))
        });
        processes
    }

    /// The share of a core that a process has taken between the last two looks; nothing where that is not known.
    pub(super) fn share(&self, of: &ProcessEngines) -> Option<f64> {
        self.shares.get(&of.process.token).copied()
    }

    fn is_shown<'a>(&self, mut texts: impl Iterator<Item = &'a str>) -> bool {
        let wanted = self.filter.to_lowercase();
        wanted.is_empty() || texts.any(|it| it.to_lowercase().contains(&wanted))
    }

    /// Where the row is that is chosen.
    pub(super) fn chosen(&self) -> Option<usize> {
        match self.page {
            Page::Flows => self.flow.at(&self.flow_keys()),
            Page::Processes => self.process.at(&self.process_keys()),
        }
    }

    /// The flow that is chosen.
    pub(super) fn chosen_flow(&self) -> Option<&RouteReport> {
        let flows = self.flows();
        let keys: Vec<_> = flows.iter().copied().map(key).collect();
        flows.get(self.flow.at(&keys)?).copied()
    }

    /// The process that is chosen.
    pub(super) fn chosen_process(&self) -> Option<&ProcessEngines> {
        let processes = self.processes();
        let keys: Vec<_> = processes.iter().map(|it| it.process.token.clone()).collect();
        processes.get(self.process.at(&keys)?).copied()
    }

    /// Figures of a flow, the newest last.
    pub(super) fn trend(&self, flow: &RouteReport) -> impl Iterator<Item = Point> {
        self.trends.get(&key(flow)).into_iter().flatten().copied()
    }

    /// What is said now.
    pub(super) fn message(&self) -> Option<(Colour, &str)> {
        self.message.as_ref().map(|(_, colour, text)| (*colour, &**text))
    }

    /// Forgets a message that has stood long enough; whether there was one.
    pub(super) fn forget_message(&mut self, now: Instant) -> bool {
        self.message.take_if(|(since, ..)| *since + MESSAGE_STANDS <= now).is_some()
    }

    fn set_message(&mut self, now: Instant, colour: Colour, text: impl Into<String>) {
        self.message = Some((now, colour, text.into()));
    }

    fn flow_keys(&self) -> Vec<FlowKey> {
        self.flows().into_iter().map(key).collect()
    }

    fn process_keys(&self) -> Vec<String> {
        self.processes().into_iter().map(|it| it.process.token.clone()).collect()
    }

    /// Takes in what the watcher has found out.
    pub(super) fn on_report(&mut self, now: Instant, report: Report) {
        match report {
            Report::Snapshot(snapshot) => self.on_snapshot(snapshot),
            Report::Set { topic, transport, answers } => {
                self.on_answers(now, topic, transport, &answers);
            }
        }
    }

    fn on_snapshot(&mut self, snapshot: Snapshot) {
        self.is_known = true;
        self.fresh.clear();
        self.flows = snapshot.flows;
        self.flows
            .retain(|it| self.pattern.as_ref().is_none_or(|pattern| pattern.matches(&it.topic)));
        self.others = snapshot.others;
        if snapshot.processes.is_some() {
            self.processes = snapshot.processes;
            self.shares = snapshot.shares;
        }
        let mut trends = HashMap::new();
        for flow in self.flows.iter().filter(|it| it.is_counted) {
            let mut trend = self.trends.remove(&key(flow)).unwrap_or_default();
            if trend.len() == TREND {
                trend.pop_front();
            }
            let median_us = flow.latency.as_ref().map(|it| it.median_us);
            trend.push_back(Point { rate_hz: flow.rate_hz, median_us });
            trends.insert(key(flow), trend);
        }
        self.trends = trends;
        self.follow();
    }

    fn follow(&mut self) {
        let keys = self.flow_keys();
        self.flow.follow(&keys);
        let keys = self.process_keys();
        self.process.follow(&keys);
    }

    fn on_answers(
        &mut self,
        now: Instant,
        topic: String,
        transport: Option<String>,
        answers: &[RouteSetting],
    ) {
        let pending = self.pending.take();
        let flows: Vec<u32> =
            answers.iter().filter_map(|it| it.outcome.as_ref().ok().copied()).collect();
        let mut refusals = answers.iter().filter_map(|it| it.outcome.as_ref().err());
        let refusal = refusals.next().map(|reason| (1 + refusals.count(), reason));
        if let (true, Some((_, reason))) = (flows.is_empty(), refusal) {
            let text = format!("{topic}: nothing is set: {reason}");
            return self.set_message(now, Colour::Error, text);
        }
        let what = match &transport {
            Some(transport) => format!("set to {transport}"),
            None => "left to the policy".to_owned(),
        };
        let (colour, text) = match (&*flows, flows.iter().sum::<u32>()) {
            // One that is stopped does it when it goes on.
            ([], _) => {
                (Colour::Warning, format!("{topic}: {what}, but no process has answered yet"))
            }
            (_, 0) => (Colour::Good, format!("{topic}: {what}; it has no flow now")),
            (_, flows) => {
                let flows = count(flows as usize, "flow", "flows");
                (Colour::Good, format!("{topic}: {what}, for {flows}"))
            }
        };
        match refusal {
            None => self.set_message(now, colour, text),
            Some((refusals, reason)) => {
                let refuse = count(refusals, "process refuses", "processes refuse");
                self.set_message(now, Colour::Warning, format!("{text}; {refuse}: {reason}"));
            }
        }
        self.fresh.insert(topic.clone(), transport.clone());
        match pending {
            Some(PendingSet::New { before }) => {
                self.settings.push(Setting { topic, before, transport });
            }
            Some(PendingSet::Undo) => drop(self.settings.pop()),
            None => {}
        }
    }

    /// What a key does.
    pub(super) fn press(&mut self, now: Instant, key: Key) -> Wish {
        match &self.mode {
            Mode::Table => self.press_in_table(now, key),
            Mode::Filter => self.press_in_filter(key),
            Mode::Transports(_) => self.press_in_transports(key),
            Mode::Help => {
                self.mode = Mode::Table;
                Wish::Nothing
            }
        }
    }

    fn press_in_table(&mut self, now: Instant, key: Key) -> Wish {
        match key {
            Key::Char('q') => return Wish::End,
            Key::Char('?' | 'h') => self.mode = Mode::Help,
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Escape => self.change_filter(String::clear),
            Key::Tab | Key::BackTab => return self.turn_page(),
            Key::Enter => self.show_details(),
            Key::Char('<') | Key::Left => self.sort_by(-1),
            Key::Char('>' | 's') | Key::Right => self.sort_by(1),
            Key::Char('r') => {
                self.is_reversed = !self.is_reversed;
                self.follow();
            }
            Key::Char(' ') => {
                self.is_paused = !self.is_paused;
                return Wish::Order(Order::Every((!self.is_paused).then_some(self.every)));
            }
            Key::Char('+') => return self.set_interval(self.every / 2),
            Key::Char('-') => return self.set_interval(self.every * 2),
            Key::Char('t') => self.offer_transports(now),
            Key::Char('a') => return self.leave_to_policy(now),
            Key::Char('u') => return self.undo(now),
            key => self.go(key),
        }
        Wish::Nothing
    }

    fn press_in_filter(&mut self, key: Key) -> Wish {
        match key {
            Key::Enter => self.mode = Mode::Table,
            Key::Escape => {
                self.mode = Mode::Table;
                self.change_filter(String::clear);
            }
            Key::Backspace => self.change_filter(|it| {
                it.pop();
            }),
            Key::Char(letter) => self.change_filter(|it| it.push(letter)),
            _ => {}
        }
        Wish::Nothing
    }

    fn press_in_transports(&mut self, key: Key) -> Wish {
        let Mode::Transports(choice) = &mut self.mode else { return Wish::Nothing };
        let last = choice.offered.len().saturating_sub(1);
        match key {
            Key::Up | Key::Char('k') => choice.at = choice.at.saturating_sub(1),
            Key::Down | Key::Char('j') => choice.at = (choice.at + 1).min(last),
            Key::Home => choice.at = 0,
            Key::End => choice.at = last,
            Key::Escape | Key::Char('q' | 't') => self.mode = Mode::Table,
            Key::Enter => {
                let Choice { topic, mut offered, at } = choice.clone();
                let (transport, _) = offered.swap_remove(at);
                self.mode = Mode::Table;
                return self.set(topic, transport);
            }
            _ => {}
        }
        Wish::Nothing
    }

    /// Goes to another row, or through the details where they are all that is shown.
    fn go(&mut self, key: Key) {
        let page = self.rows.max(1);
        let to = |at: usize, end: usize| match key {
            Key::Up | Key::Char('k') => at.saturating_sub(1),
            Key::Down | Key::Char('j') => at.saturating_add(1),
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown => at.saturating_add(page),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => end,
            _ => at,
        };
        if self.details == Details::All {
            // What is drawn says where the end is.
            self.scrolled = to(self.scrolled, usize::MAX);
            return;
        }
        match self.page {
            Page::Flows => {
                let keys = self.flow_keys();
                let at = self.flow.at(&keys).unwrap_or(0);
                self.flow.choose(to(at, keys.len()), &keys);
            }
            Page::Processes => {
                let keys = self.process_keys();
                let at = self.process.at(&keys).unwrap_or(0);
                self.process.choose(to(at, keys.len()), &keys);
            }
        }
    }

    fn change_filter(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        self.follow();
    }

    fn turn_page(&mut self) -> Wish {
        self.page = match self.page {
            Page::Flows => Page::Processes,
            Page::Processes => Page::Flows,
        };
        (self.scrolled, self.above) = (0, 0);
        // What nobody looks at is not asked for.
        self.processes = None;
        Wish::Order(Order::Processes(self.page == Page::Processes))
    }

    fn show_details(&mut self) {
        self.details = match self.details {
            Details::None => Details::Some,
            Details::Some => Details::All,
            Details::All => Details::None,
        };
        self.scrolled = 0;
    }

    fn sort_by(&mut self, step: isize) {
        match self.page {
            Page::Flows => self.flow_column = beside(self.flow_column, step),
            Page::Processes => self.process_column = beside(self.process_column, step),
        }
        self.is_reversed = false;
        self.follow();
    }

    fn set_interval(&mut self, every: Duration) -> Wish {
        self.every = every.clamp(EVERY.0, EVERY.1);
        self.is_paused = false;
        Wish::Order(Order::Every(Some(self.every)))
    }

    /// The flow whose topic is to be set; `None`, with a message, where that is none or cannot be.
    fn flow_to_set(&mut self, now: Instant) -> Option<RouteReport> {
        if self.page != Page::Flows {
            self.set_message(now, Colour::Warning, "Topics are set on the page of flows (Tab).");
            return None;
        }
        if self.pending.is_some() {
            self.set_message(now, Colour::Warning, NOT_ANSWERED);
            return None;
        }
        let flow = self.chosen_flow().cloned()?;
        let ends = [&flow.publisher, &flow.subscription];
        if let Some(vendor) = ends.into_iter().find_map(|it| it.vendor.clone()) {
            let why = format!("a flow with a foreign node ({vendor}) keeps its transport");
            self.set_message(now, Colour::Warning, format!("{}: {why}", flow.topic));
            return None;
        }
        Some(flow)
    }

    fn offer_transports(&mut self, now: Instant) {
        let Some(flow) = self.flow_to_set(now) else { return };
        let taken = flow.transport.iter().map(|it| (it.clone(), "carries it now".to_owned()));
        let mut offered: Vec<_> = taken.chain(flow.rejected).collect();
        // Always in one order, whatever carries the flow now.
        offered.sort_by_cached_key(|(it, _)| {
            let known = KNOWN_TRANSPORTS.iter().position(|known| known == it);
            (known.unwrap_or(KNOWN_TRANSPORTS.len()), it.clone())
        });
        let at = offered.iter().position(|(it, _)| Some(it) == flow.transport.as_ref());
        let at = at.map_or(0, |at| at + 1);
        let offered = offered.into_iter().map(|(it, why)| (Some(it), why));
        let offered: Vec<_> =
            std::iter::once((None, "as the policy says".to_owned())).chain(offered).collect();
        self.mode = Mode::Transports(Choice { topic: flow.topic, offered, at });
    }

    fn leave_to_policy(&mut self, now: Instant) -> Wish {
        match self.flow_to_set(now) {
            Some(flow) => self.set(flow.topic, None),
            None => Wish::Nothing,
        }
    }

    fn set(&mut self, topic: String, transport: Option<String>) -> Wish {
        let before = self.pinned(&topic).flatten().map(str::to_owned);
        self.pending = Some(PendingSet::New { before });
        Wish::Order(Order::Set { topic, transport })
    }

    /// Sets the topic that was set last to what it was set to before, unless somebody else has set it since.
    fn undo(&mut self, now: Instant) -> Wish {
        if self.pending.is_some() {
            self.set_message(now, Colour::Warning, NOT_ANSWERED);
            return Wish::Nothing;
        }
        let Some(Setting { topic, before, transport }) = self.settings.last() else {
            self.set_message(now, Colour::Warning, "Nothing was set here.");
            return Wish::Nothing;
        };
        let (topic, before) = (topic.clone(), before.clone());
        let pinned = self.pinned(&topic);
        if pinned.is_some_and(|it| it != transport.as_deref()) {
            let pinned = pinned.flatten().unwrap_or("the policy");
            let text =
                format!("{topic}: another command has chosen {pinned} since; nothing is undone");
            self.set_message(now, Colour::Warning, text);
            self.settings.pop();
            return Wish::Nothing;
        }
        self.pending = Some(PendingSet::Undo);
        Wish::Order(Order::Set { topic, transport: before })
    }
}

const NOT_ANSWERED: &str = "The last setting is not answered yet.";

/// The column so many further, the first after the last.
fn beside<C: ValueEnum + PartialEq>(column: C, step: isize) -> C {
    let all = C::value_variants();
    let at = all.iter().position(|it| *it == column).unwrap_or(0);
    let to = (at as isize + step).rem_euclid(all.len() as isize);
    all[to as usize].clone()
}

impl FlowColumn {
    /// Whether the greatest comes first, unless the order is reversed.
    pub(super) fn is_downwards(self) -> bool {
        !matches!(self, Self::Topic | Self::Transport)
    }

    fn compare(self, a: &RouteReport, b: &RouteReport) -> Ordering {
        // What a foreign subscription does not tell comes last.
        let number = |pick: fn(&RouteReport) -> Option<f64>| {
            let known = |it: &RouteReport| pick(it).filter(|_| it.is_counted);
            downwards(known(a), known(b))
        };
        match self {
            Self::Topic => (&a.topic, a.role as u8).cmp(&(&b.topic, b.role as u8)),
            Self::Transport => a.transport.cmp(&b.transport),
            Self::Rate => number(|it| Some(it.rate_hz)),
            Self::Bytes => number(|it| Some(it.bytes_per_s)),
            Self::Median => number(|it| Some(it.latency.as_ref()?.median_us)),
            Self::P99 => number(|it| Some(it.latency.as_ref()?.p99_us)),
            Self::Drops => number(|it| Some(routes::drops(it) as f64)),
        }
    }
}

impl ProcessColumn {
    /// Whether the greatest comes first, unless the order is reversed.
    pub(super) fn is_downwards(self) -> bool {
        matches!(self, Self::Cpu | Self::Threads | Self::Memory)
    }

    /// Compares two by what this shows. A process does not tell its share of a core itself.
    fn compare(
        self,
        a: &ProcessEngines,
        b: &ProcessEngines,
        share: impl Fn(&ProcessEngines) -> Option<f64>,
    ) -> Ordering {
        let by_name = |it: &ProcessEngines| (it.process.program.clone(), it.process.pid);
        match self {
            Self::Program => by_name(a).cmp(&by_name(b)),
            Self::Pid => a.process.pid.cmp(&b.process.pid),
            Self::Host => a.process.host.cmp(&b.process.host),
            Self::Cpu => downwards(share(a), share(b)),
            Self::Threads => b.threads.cmp(&a.threads),
            Self::Memory => b.resident_bytes.cmp(&a.resident_bytes),
        }
    }
}

/// The greatest first, and what is not known last.
fn downwards(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{answer, flow, press, process, snapshot, top};
    use super::*;

    fn letter(top: &mut Top, letter: char) -> Wish {
        press(top, Key::Char(letter))
    }

    fn see(top: &mut Top, flows: Vec<RouteReport>) {
        top.on_report(Instant::now(), Report::Snapshot(snapshot(flows)));
    }

    fn topics(top: &Top) -> Vec<&str> {
        top.flows().iter().map(|it| &*it.topic).collect()
    }

    fn chosen(top: &Top) -> Option<&str> {
        top.chosen_flow().map(|it| &*it.topic)
    }

    #[test]
    fn names_go_upwards_and_numbers_downwards_and_the_unknown_is_last() {
        let mut foreign = flow("/b", 2);
        foreign.is_counted = false;
        let mut slow = flow("/c", 3);
        slow.rate_hz = 5.0;
        let mut top = top(vec![slow, foreign, flow("/a", 1)]);
        assert_eq!(topics(&top), ["/a", "/b", "/c"]);
        letter(&mut top, 'r');
        assert_eq!(topics(&top), ["/c", "/b", "/a"]);
        letter(&mut top, '>');
        letter(&mut top, '>');
        assert_eq!(top.flow_column, FlowColumn::Rate);
        assert_eq!(topics(&top), ["/a", "/c", "/b"]);
        letter(&mut top, '<');
        letter(&mut top, '<');
        letter(&mut top, '<');
        assert_eq!(top.flow_column, FlowColumn::Drops);
    }

    #[test]
    fn what_is_chosen_is_followed_and_its_place_is_when_it_goes() {
        let mut top = top(vec![flow("/b", 2), flow("/d", 4)]);
        press(&mut top, Key::Down);
        assert_eq!(chosen(&top), Some("/d"));
        let more = vec![flow("/a", 1), flow("/b", 2), flow("/c", 3), flow("/d", 4), flow("/e", 5)];
        see(&mut top, more);
        assert_eq!((chosen(&top), top.chosen()), (Some("/d"), Some(3)));
        see(&mut top, vec![flow("/a", 1), flow("/c", 3)]);
        assert_eq!(chosen(&top), Some("/c"));
        see(&mut top, Vec::new());
        assert_eq!((chosen(&top), top.chosen()), (None, None));
        for code in [Key::End, Key::Up, Key::PageDown, Key::Char('t')] {
            assert_eq!(press(&mut top, code), Wish::Nothing);
        }
        see(&mut top, vec![flow("/a", 1)]);
        assert_eq!(chosen(&top), Some("/a"));
    }

    #[test]
    fn a_filter_is_of_topics_types_ends_and_transports() {
        let mut other = flow("/other", 2);
        other.transport = Some("zenoh".to_owned());
        let mut top = top(vec![flow("/chatter", 1), other]);
        let find = |top: &mut Top, text: &str| {
            letter(top, '/');
            text.chars().for_each(|it| drop(letter(top, it)));
            press(top, Key::Enter);
            let found: Vec<String> = topics(top).into_iter().map(str::to_owned).collect();
            press(top, Key::Escape);
            found
        };
        assert_eq!(find(&mut top, "CHATT"), ["/chatter"]);
        assert_eq!(find(&mut top, "zeno"), ["/other"]);
        assert_eq!(find(&mut top, "std_msgs"), ["/chatter", "/other"]);
        assert_eq!(find(&mut top, "/talker1"), ["/chatter"]);
        assert!(find(&mut top, "nowhere").is_empty());
        assert_eq!(topics(&top).len(), 2);
        // In the text, keys are letters.
        letter(&mut top, '/');
        assert_eq!(letter(&mut top, 'q'), Wish::Nothing);
        press(&mut top, Key::Backspace);
        press(&mut top, Key::Backspace);
        assert_eq!(top.filter, "");
        press(&mut top, Key::Escape);
        assert_eq!(letter(&mut top, 'q'), Wish::End);
    }

    /// Chooses the transport at this place of those that are offered.
    fn set(top: &mut Top, at: usize) -> Wish {
        letter(top, 't');
        press(top, Key::Home);
        (0..at).for_each(|_| drop(press(top, Key::Down)));
        press(top, Key::Enter)
    }

    fn ordered(topic: &str, transport: Option<&str>) -> Wish {
        let (topic, transport) = (topic.to_owned(), transport.map(str::to_owned));
        Wish::Order(Order::Set { topic, transport })
    }

    fn answered(top: &mut Top, wish: Wish, outcomes: &[Result<u32, &str>], is_seen: bool) {
        let Wish::Order(Order::Set { topic, transport }) = wish else { panic!("{wish:?}") };
        let answers = outcomes.iter().map(|it| answer(*it)).collect();
        let pinned = transport.clone();
        let report = Report::Set { topic: topic.clone(), transport, answers };
        top.on_report(Instant::now(), report);
        if is_seen {
            let mut flows = top.flows.clone();
            let of_topic = flows.iter_mut().filter(|it| it.topic == topic);
            of_topic.for_each(|it| it.pinned = pinned.clone());
            see(top, flows);
        }
    }

    #[test]
    fn what_is_set_is_taken_back_step_by_step_to_what_was_there_before() {
        // Whether the routes are read between two settings must not matter.
        for is_seen in [true, false] {
            let mut there = flow("/x", 1);
            there.pinned = Some("zenoh".to_owned());
            let mut top = top(vec![there]);
            // Offered are the policy's choice, what carries it now, and the two that were not taken.
            let wish = set(&mut top, 2);
            assert_eq!(wish, ordered("/x", Some("cyclonedds")));
            // One at a time.
            assert_eq!(letter(&mut top, 'u'), Wish::Nothing);
            assert_eq!(letter(&mut top, 'a'), Wish::Nothing);
            answered(&mut top, wish, &[Ok(1), Ok(0)], is_seen);
            assert_eq!(top.message(), Some((Colour::Good, "/x: set to cyclonedds, for 1 flow")));
            let wish = set(&mut top, 1);
            assert_eq!(wish, ordered("/x", Some("shm")));
            answered(&mut top, wish, &[Ok(2)], is_seen);
            let wish = letter(&mut top, 'a');
            assert_eq!(wish, ordered("/x", None));
            answered(&mut top, wish, &[Ok(1)], is_seen);
            assert_eq!(top.set_here().count(), 0);
            for (before, set_here) in [("shm", 1), ("cyclonedds", 1), ("zenoh", 0)] {
                let wish = letter(&mut top, 'u');
                assert_eq!(wish, ordered("/x", Some(before)));
                answered(&mut top, wish, &[Ok(1)], is_seen);
                assert_eq!(top.set_here().count(), set_here, "{before}");
            }
            assert_eq!(letter(&mut top, 'u'), Wish::Nothing);
            assert_eq!(top.message(), Some((Colour::Warning, "Nothing was set here.")));
        }
    }

    #[test]
    fn what_is_refused_is_not_taken_back() {
        let mut top = top(vec![flow("/x", 1)]);
        let wish = set(&mut top, 3);
        assert_eq!(wish, ordered("/x", Some("fastdds")));
        answered(&mut top, wish, &[Err("fastdds is not at work")], false);
        let refused = "/x: nothing is set: fastdds is not at work";
        assert_eq!(top.message(), Some((Colour::Error, refused)));
        assert_eq!(letter(&mut top, 'u'), Wish::Nothing);
        let wish = set(&mut top, 1);
        answered(&mut top, wish, &[Ok(0), Err("of another user")], true);
        let set_now = "/x: set to shm; it has no flow now; 1 process refuses: of another user";
        assert_eq!(top.message(), Some((Colour::Warning, set_now)));
        assert!(top.set_here().eq([("/x", "shm")]));
    }

    #[test]
    fn what_nobody_has_answered_may_yet_be_done_and_is_taken_back() {
        let mut top = top(vec![flow("/x", 1)]);
        let wish = set(&mut top, 1);
        answered(&mut top, wish, &[], false);
        let told = "/x: set to shm, but no process has answered yet";
        assert_eq!(top.message(), Some((Colour::Warning, told)));
        assert!(top.set_here().eq([("/x", "shm")]));
        assert_eq!(letter(&mut top, 'u'), ordered("/x", None));
    }

    #[test]
    fn what_another_command_has_set_since_is_left() {
        let mut top = top(vec![flow("/x", 1)]);
        let wish = set(&mut top, 1);
        answered(&mut top, wish, &[Ok(1)], true);
        let mut changed = flow("/x", 1);
        changed.pinned = Some("cyclonedds".to_owned());
        see(&mut top, vec![changed]);
        assert_eq!(top.set_here().count(), 0);
        assert_eq!(letter(&mut top, 'u'), Wish::Nothing);
        let told = "/x: another command has chosen cyclonedds since; nothing is undone";
        assert_eq!(top.message(), Some((Colour::Warning, told)));
        letter(&mut top, 'u');
        assert_eq!(top.message(), Some((Colour::Warning, "Nothing was set here.")));
    }

    #[test]
    fn flows_of_foreign_nodes_are_not_set() {
        let mut foreign = flow("/x", 1);
        foreign.publisher.vendor = Some("Fast DDS".to_owned());
        let mut top = top(vec![foreign]);
        letter(&mut top, 't');
        assert_eq!(top.mode, Mode::Table);
        let told = "/x: a flow with a foreign node (Fast DDS) keeps its transport";
        assert_eq!(top.message(), Some((Colour::Warning, told)));
        let later = Instant::now() + MESSAGE_STANDS;
        assert!(top.forget_message(later) && !top.forget_message(later));
    }

    #[test]
    fn processes_are_asked_for_while_they_are_shown() {
        let mut top = top(vec![flow("/x", 1)]);
        let asked = |is| Wish::Order(Order::Processes(is));
        assert_eq!(press(&mut top, Key::Tab), asked(true));
        assert!(!top.is_known());
        let mut seen = snapshot(vec![flow("/x", 1)]);
        seen.processes = Some(vec![process("b", 2), process("a", 30)]);
        top.on_report(Instant::now(), Report::Snapshot(seen));
        let pids = |top: &Top| top.processes().iter().map(|it| it.process.pid).collect::<Vec<_>>();
        assert_eq!(pids(&top), [30, 2]);
        letter(&mut top, '>');
        assert_eq!(pids(&top), [2, 30]);
        // Not on this page.
        letter(&mut top, 't');
        assert_eq!(top.mode, Mode::Table);
        assert_eq!(press(&mut top, Key::Tab), asked(false));
    }

    #[test]
    fn processes_are_sorted_by_what_they_take_of_a_core_and_the_unknown_is_last() {
        let mut top = top(Vec::new());
        press(&mut top, Key::Tab);
        let mut see = |shares: &[(&str, f64)], columns: u32, expect: [u32; 3]| {
            let mut seen = snapshot(Vec::new());
            seen.processes = Some(vec![process("p", 1), process("p", 2), process("p", 3)]);
            seen.shares = shares.iter().map(|(it, share)| ((*it).to_owned(), *share)).collect();
            top.on_report(Instant::now(), Report::Snapshot(seen));
            (0..columns).for_each(|_| drop(letter(&mut top, '>')));
            let pids: Vec<u32> = top.processes().iter().map(|it| it.process.pid).collect();
            assert_eq!(pids, expect);
        };
        see(&[("p2", 0.1), ("p3", 2.0)], 3, [3, 2, 1]);
        // Of those that have gone nothing is left.
        see(&[("p1", 0.0), ("p9", 9.0)], 0, [1, 2, 3]);
        assert_eq!(top.process_column, ProcessColumn::Cpu);
        assert!(top.process_column.is_downwards());
        assert_eq!(top.shares.len(), 2);
    }

    #[test]
    fn how_often_is_looked_has_limits() {
        let mut top = top(Vec::new());
        let every = |ms| Wish::Order(Order::Every(Some(Duration::from_millis(ms))));
        assert_eq!(letter(&mut top, '+'), every(500));
        (0..9).for_each(|_| drop(letter(&mut top, '+')));
        assert_eq!(letter(&mut top, '+'), every(100));
        assert_eq!(letter(&mut top, ' '), Wish::Order(Order::Every(None)));
        assert_eq!(letter(&mut top, ' '), every(100));
        (0..20).for_each(|_| drop(letter(&mut top, '-')));
        assert_eq!(letter(&mut top, '-'), every(60_000));
    }
}
