//! Clients that come to a topic when others have it already.
//!
//! A publisher with transient local durability gives what it keeps to each subscription that is new, once. Clients share a
//! subscription, so one that comes later gets a subscription of its own for a while: from it the client has what every late
//! joiner of ROS 2 has, as deep as the publisher keeps it and of nobody who has gone. When it has caught up with the one that is
//! shared, that one serves it, from the first sample on that it has not had.

use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tsuji::{Bytes, Context, Durability, EndpointInfo, EndpointKind, Gid, MessageInfo};
use tsuji::{RawSample, RawSubscription};
use tsuji_platform::clock;
use tsuji_rosbridge::client::StreamKey;

use super::{Form, Listener, Source, Topic};
use crate::Counters;
use crate::connected_client::ConnectedClient;
use crate::hub::Missed;

/// When a client came to a topic.
#[derive(Clone, Debug)]
pub(super) struct Came {
    at: Duration,
    wall_ns: i64,
    /// How far publishers were then.
    seen: HashMap<Gid, u64>,
}

impl Listener {
    pub(super) fn new(
        member: Arc<ConnectedClient>,
        key: StreamKey,
        form: Form,
        now: Duration,
        publishers: &Publishers,
    ) -> Self {
        let came = Came { at: now, wall_ns: clock::wall_ns(), seen: publishers.seen() };
        Self { member, key, form, came, had: HashMap::new(), is_told: Cell::new(false) }
    }

    /// Which of these samples it has not had, and which of them are kept for it.
    pub(super) fn pick(
        &self,
        samples: &[RawSample],
        publishers: &Publishers,
        now: Duration,
    ) -> Vec<(usize, bool)> {
        let fresh = samples.iter().enumerate().filter(|(_, sample)| self.is_new(sample));
        fresh.map(|(at, sample)| (at, publishers.keeps(&sample.info, &self.came, now))).collect()
    }

    /// Whether it has not had that sample.
    #[inline]
    fn is_new(&self, sample: &RawSample) -> bool {
        self.had.is_empty()
            || self.had.get(&sample.info.publisher).is_none_or(|last| *last < sample.info.sequence)
    }
}

/// What is known of who publishes a topic.
#[derive(Debug, Default)]
pub(super) struct Publishers {
    /// Those that keep samples for late joiners.
    keeping: HashMap<Gid, Keeping>,
    /// The others that are known, and the last of them that was asked for.
    others: HashSet<Gid>,
    other: Option<Gid>,
}

#[derive(Debug)]
struct Keeping {
    /// The number of the last sample that the shared subscription had of it; 0 is none.
    seen: u64,
    /// When it was first known.
    met: Duration,
    met_wall_ns: i64,
    /// Whoever has the shared subscription has been given what it keeps, or is being given it.
    is_joined: bool,
}

impl Publishers {
    /// Learns of those that have come, and forgets those that have gone.
    pub(super) fn update(&mut self, endpoints: &[EndpointInfo], now: Duration) {
        let mut before = std::mem::take(&mut self.keeping);
        self.others.clear();
        self.other = None;
        let met_wall_ns = clock::wall_ns();
        for it in endpoints.iter().filter(|it| it.kind == EndpointKind::Publisher) {
            if it.qos.durability == Durability::TransientLocal {
                let new = Keeping { seen: 0, met: now, met_wall_ns, is_joined: false };
                self.keeping.insert(it.gid, before.remove(&it.gid).unwrap_or(new));
            } else {
                self.others.insert(it.gid);
            }
        }
    }

    /// Whether anybody keeps samples.
    pub(super) fn any_keeps(&self) -> bool {
        !self.keeping.is_empty()
    }

    /// Whether this was published before the client came, or before its publisher was known: it is what is kept for it.
    pub(super) fn keeps(&self, info: &MessageInfo, came: &Came, now: Duration) -> bool {
        let Some(keeping) = self.keeping.get(&info.publisher) else { return false };
        let was_seen = came.seen.get(&info.publisher).is_some_and(|last| info.sequence <= *last);
        // Clocks of others may be behind for ever.
        let is_soon = now < came.at.max(keeping.met).saturating_add(SOON);
        was_seen || is_soon && info.source_wall_ns <= came.wall_ns.max(keeping.met_wall_ns)
    }

    /// Whether the publisher keeps samples. What is not known yet is looked up.
    fn is_keeping(&mut self, gid: Gid, look_up: impl FnOnce(&mut Self)) -> bool {
        if self.other == Some(gid) {
            return false;
        }
        if !self.keeping.contains_key(&gid) && !self.others.contains(&gid) {
            look_up(self);
        }
        let keeps = self.keeping.contains_key(&gid);
        if !keeps {
            self.others.insert(gid);
            self.other = Some(gid);
        }
        keeps
    }

    fn seen(&self) -> HashMap<Gid, u64> {
        let seen = self.keeping.iter().filter(|(_, it)| 0 < it.seen);
        seen.map(|(gid, it)| (*gid, it.seen)).collect()
    }
}

/// Clients that have come to a topic at about the same time, until they have caught up.
#[derive(Default)]
pub(super) struct Join {
    /// Who they are, until there is a subscription.
    waiting: Vec<Listener>,
    source: Option<Source>,
    opened: Duration,
    /// How far it is with each publisher that keeps samples.
    passed: HashMap<Gid, u64>,
    /// What has come of those by the shared subscription, until it comes by this one or is known not to.
    held: VecDeque<RawSample>,
    held_bytes: usize,
}

impl Join {
    /// What they get it from, unless they wait for one.
    pub(super) fn subscription(&self) -> Option<&RawSubscription> {
        self.source.as_ref().map(|it| &it.subscription)
    }

    pub(super) fn listeners_mut(&mut self) -> &mut Vec<Listener> {
        match &mut self.source {
            Some(source) => &mut source.listeners,
            None => &mut self.waiting,
        }
    }

    pub(super) fn note_missed(&mut self, counters: &Counters) {
        if let Some(source) = &mut self.source {
            source.note_missed(counters);
        }
    }

    pub(super) fn open(&mut self, subscription: RawSubscription, now: Duration) {
        let listeners = std::mem::take(&mut self.waiting);
        self.source = Some(Source { subscription, missed: Missed::default(), listeners });
        self.opened = now;
    }

    fn listeners(&self) -> &[Listener] {
        self.source.as_ref().map_or(&self.waiting, |it| &it.listeners)
    }

    /// Whether somebody who comes now would get all that those get who are here.
    fn has_begun(&self) -> bool {
        !self.passed.is_empty()
    }

    /// Keeps a sample in its place until it is known whether one before it comes by this subscription. What can be handed on.
    fn hold(&mut self, sample: &RawSample) -> Vec<RawSample> {
        let RawSample { info, bytes } = sample;
        let last = self.last(info.publisher);
        let mut out = Vec::new();
        if info.sequence <= last + 1 {
            // There is none before it that has not been handed on.
            self.next(sample, &mut out);
            return out;
        }
        // The memory it lies in is its publisher's, which may need it.
        self.held.push_back(RawSample { info: *info, bytes: Bytes::copy_from(bytes) });
        self.held_bytes += bytes.len();
        while HELD_SAMPLES_MAX < self.held.len() || HELD_BYTES_MAX < self.held_bytes {
            let Some(oldest) = self.held.pop_front() else { break };
            self.held_bytes -= oldest.bytes.len();
            self.note(&oldest.info);
            out.push(oldest);
        }
        out
    }

    /// The number of the last sample that was handed on of a publisher.
    fn last(&self, publisher: Gid) -> u64 {
        self.passed.get(&publisher).copied().unwrap_or(0)
    }

    /// What was held of publishers that have gone: nothing of them comes any more.
    fn take_of_the_dead(&mut self, publishers: &Publishers) -> Vec<RawSample> {
        let is_dead = |it: &RawSample| !publishers.keeping.contains_key(&it.info.publisher);
        if !self.held.iter().any(is_dead) {
            return Vec::new();
        }
        let (dead, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.held).into_iter().partition(is_dead);
        self.held = others.into();
        self.held_bytes -= dead.iter().map(|it| it.bytes.len()).sum::<usize>();
        dead.iter().for_each(|it| self.note(&it.info));
        dead
    }

    fn note(&mut self, info: &MessageInfo) {
        let passed = self.passed.entry(info.publisher).or_default();
        *passed = info.sequence.max(*passed);
    }

    /// Adds what is to be handed on when a sample has come: what was held before it, itself if it is new, and what was held right
    /// behind it.
    fn next(&mut self, sample: &RawSample, out: &mut Vec<RawSample>) {
        let MessageInfo { publisher, sequence, .. } = sample.info;
        let mut last = self.last(publisher);
        let mut held = std::mem::take(&mut self.held);
        held.retain(|it| {
            let is_later = it.info.publisher != publisher || sequence <= it.info.sequence;
            if !is_later {
                self.held_bytes -= it.bytes.len();
                if last < it.info.sequence {
                    last = it.info.sequence;
                    out.push(it.clone());
                }
            }
            is_later
        });
        // 0 is no number.
        if last < sequence || sequence == 0 {
            last = sequence.max(last);
            out.push(sample.clone());
        }
        held.retain(|it| {
            let is_later = it.info.publisher != publisher || last + 1 < it.info.sequence;
            if !is_later {
                self.held_bytes -= it.bytes.len();
                if last < it.info.sequence {
                    last = it.info.sequence;
                    out.push(it.clone());
                }
            }
            is_later
        });
        self.held = held;
        self.passed.insert(publisher, last);
    }

    /// Whether they have caught up with the shared subscription, or will not any more.
    fn is_over(&self, publishers: &Publishers, now: Duration) -> bool {
        let Some(source) = &self.source else { return false };
        let waited = now.saturating_sub(self.opened);
        let is_level = |(gid, it): (&Gid, &Keeping)| 0 < it.seen && it.seen <= self.last(*gid);
        if publishers.keeping.iter().all(is_level) && self.held.is_empty() {
            return true;
        }
        let is_behind = !self.held.is_empty()
            || source.subscription.matched() < publishers.keeping.len()
            || publishers.keeping.iter().any(|(gid, it)| self.last(*gid) < it.seen);
        // Of a publisher that neither has heard of nobody knows whether there is anything.
        waited > if is_behind { BEHIND_MAX } else { SILENT_MAX }
    }
}

impl Topic {
    /// Whether what clients want of publishers includes what they keep for late joiners.
    fn wants_kept(&self) -> bool {
        self.asked.and_then(|it| it.durability) != Some(Durability::Volatile)
    }

    /// Whether the shared subscription is not given what is kept, though clients want it.
    pub(super) fn leaves_kept_away(&self) -> bool {
        let is_volatile = self.main.subscription.qos().durability == Durability::Volatile;
        is_volatile && self.wants_kept()
    }

    /// Lets a client have samples. The `first` of a topic gets what is kept by the shared subscription, where that is given it.
    pub(super) fn add(
        &mut self,
        listener: Listener,
        first: bool,
        context: &Context,
        now: Duration,
    ) {
        self.publishers.update(&context.endpoints_of(&self.writer.name), now);
        self.join_those_left();
        let is_given = first && !self.leaves_kept_away();
        if is_given || !self.wants_kept() || !self.publishers.any_keeps() {
            self.main.listeners.push(listener);
        } else {
            self.join().listeners_mut().push(listener);
        }
    }

    /// Gives a client what is kept once more.
    pub(super) fn join_again(
        &mut self,
        member: &ConnectedClient,
        key: StreamKey,
        now: Duration,
        context: &Context,
    ) {
        let is_it = |it: &mut Listener| it.member.number == member.number && it.key == key;
        let joining = self.joins.iter_mut().filter(|it| it.has_begun());
        let sources = joining.map(|it| it.listeners_mut());
        let found = std::iter::once(&mut self.main.listeners)
            .chain(sources)
            .find_map(|it| it.extract_if(.., is_it).next());
        if let Some(Listener { member, key, form, .. }) = found {
            let listener = Listener::new(member, key, form, now, &self.publishers);
            self.add(listener, false, context, now);
        }
    }

    /// Lets clients of the shared subscription join where a publisher has come of which it is not given what is kept.
    pub(super) fn join_those_left(&mut self) {
        let is_left = self.publishers.keeping.values().any(|it| !it.is_joined);
        self.publishers.keeping.values_mut().for_each(|it| it.is_joined = true);
        if is_left && self.leaves_kept_away() {
            self.join_all();
        }
    }

    /// Lets all clients of the shared subscription join.
    pub(super) fn join_all(&mut self) {
        let mut all = std::mem::take(&mut self.main.listeners);
        let seen = self.publishers.seen();
        for listener in &mut all {
            for (gid, seen) in &seen {
                let had = listener.had.entry(*gid).or_default();
                *had = seen.max(had).to_owned();
            }
        }
        if !all.is_empty() {
            self.join().listeners_mut().append(&mut all);
        }
    }

    /// Those who are to join next.
    fn join(&mut self) -> &mut Join {
        if self.joins.last().is_none_or(|it| it.has_begun()) {
            self.joins.push(Join::default());
        }
        let last = self.joins.len() - 1;
        &mut self.joins[last]
    }

    /// Forgets how far publishers were that have gone, and how far clients are of those of which all are as far.
    pub(super) fn forget_the_past(&mut self) {
        let keeping = &self.publishers.keeping;
        for listener in &mut self.main.listeners {
            listener.had.retain(|gid, had| keeping.get(gid).is_some_and(|it| it.seen < *had));
        }
        let joining = self.joins.iter_mut().flat_map(|it| it.listeners_mut().iter_mut());
        for listener in self.main.listeners.iter_mut().chain(joining) {
            listener.had.retain(|gid, _| keeping.contains_key(gid));
            listener.came.seen.retain(|gid, _| keeping.contains_key(gid));
        }
    }

    /// Hands on what has come by the shared subscription.
    pub(super) fn pass(
        &mut self,
        samples: &[RawSample],
        now: Duration,
        context: &Context,
        counters: &Counters,
    ) {
        counters.received.fetch_add(samples.len() as u64, Ordering::Relaxed);
        let name = Arc::clone(&self.writer.name);
        let mut keeping = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            let look_up = |it: &mut Publishers| it.update(&context.endpoints_of(&name), now);
            if self.publishers.is_keeping(sample.info.publisher, look_up) {
                keeping.push(at);
            }
        }
        if !keeping.is_empty() {
            // What a publisher that has just come keeps besides is before this.
            self.join_those_left();
        }
        let Self { writer, main, joins, publishers, .. } = self;
        writer.pass(samples, &main.listeners, publishers, now, counters);
        for join in joins {
            let mut out = Vec::new();
            let mut next = keeping.iter().copied().peekable();
            for (at, sample) in samples.iter().enumerate() {
                match next.next_if_eq(&at) {
                    Some(_) => out.append(&mut join.hold(sample)),
                    None => out.push(sample.clone()),
                }
            }
            writer.pass(&out, join.listeners(), publishers, now, counters);
        }
        for sample in keeping.iter().map(|at| &samples[*at]) {
            if let Some(it) = publishers.keeping.get_mut(&sample.info.publisher) {
                it.seen = it.seen.max(sample.info.sequence);
            }
        }
    }

    /// Hands on what has come for those who join.
    pub(super) fn pass_joining(
        &mut self,
        join: usize,
        samples: &[RawSample],
        now: Duration,
        context: &Context,
        counters: &Counters,
    ) {
        let Self { writer, joins, publishers, .. } = self;
        let Some(join) = joins.get_mut(join) else { return };
        let mut out = Vec::with_capacity(samples.len());
        for sample in samples {
            let look_up = |it: &mut Publishers| it.update(&context.endpoints_of(&writer.name), now);
            publishers.is_keeping(sample.info.publisher, look_up);
            join.next(sample, &mut out);
        }
        writer.pass(&out, join.listeners(), publishers, now, counters);
    }

    /// Lets those who have caught up have the shared subscription.
    pub(super) fn settle(&mut self, now: Duration, counters: &Counters) {
        for at in (0..self.joins.len()).rev() {
            let dead = self.joins[at].take_of_the_dead(&self.publishers);
            if !dead.is_empty() {
                let listeners = self.joins[at].listeners();
                self.writer.pass(&dead, listeners, &self.publishers, now, counters);
            }
            if self.joins[at].is_over(&self.publishers, now) {
                self.give_up(at, now, counters);
            }
        }
    }

    /// The same, whether they have or not.
    pub(super) fn give_up(&mut self, at: usize, now: Duration, counters: &Counters) {
        let Self { writer, joins, publishers, main, .. } = self;
        let mut join = joins.remove(at);
        join.note_missed(counters);
        let held = Vec::from(std::mem::take(&mut join.held));
        writer.pass(&held, join.listeners(), publishers, now, counters);
        held.iter().for_each(|it| join.note(&it.info));
        let Join { waiting, source, passed, .. } = join;
        let listeners = source.map_or(waiting, |it| it.listeners);
        main.listeners.extend(listeners.into_iter().map(|mut it| {
            for (gid, passed) in &passed {
                let had = it.had.entry(*gid).or_default();
                *had = (*had).max(*passed);
            }
            // Of the others the shared subscription is as far.
            it.had.retain(|gid, had| publishers.keeping.get(gid).is_some_and(|it| it.seen < *had));
            it
        }));
    }
}

/// Subscriptions of those who join a topic. Whoever comes when there are as many joins when one has ended.
pub(super) const JOINS_MAX: usize = 8;

/// How long it is looked at the time at which a sample was published, to know whether it is from before.
const SOON: Duration = Duration::from_secs(10);

/// How long it is waited for what comes by the shared subscription and by that of a join not yet.
const BEHIND_MAX: Duration = Duration::from_secs(30);

/// How long it is waited for publishers of which nothing has come at all.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// Samples that are held for those who join, of one topic and who came at about the same time. Beyond it the oldest are passed on, and
/// what is older still and comes later is not.
const HELD_SAMPLES_MAX: usize = 1000;
const HELD_BYTES_MAX: usize = 16 << 20;
