//! Samples for clients.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tsuji::{
    Bytes, Context, Durability, EndpointInfo, EndpointKind, Gid, Node, RawSample, RawSubscription,
    Reliability, Waitable,
};
use tsuji_core::{History, Qos, rxo};
use tsuji_foxglove::write_message_head;
use tsuji_rosbridge::client::{StreamKey, StreamSettings, Subscriptions};
use tsuji_rosbridge::{
    Compression, Encoding, Id, Level, QosRequest, Refusal, Unsubscribe, begin_publish, write_png,
    write_publish_raw,
};

mod join;

use self::join::{Came, JOINS_MAX, Join, Publishers};
use super::{A_TURN, Missed};
use crate::Counters;
use crate::connected_client::{ConnectedClient, Delivery, too_large};
use crate::foxglove::Names;
use crate::frame::{Frame, Kind};
use crate::plain::Plain;
use crate::settings::Settings;
use crate::types::MessageType;

/// What a client wants of a topic.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) member: Arc<ConnectedClient>,
    pub(crate) key: StreamKey,
    pub(crate) settings: StreamSettings,
    pub(crate) topic: Arc<str>,
    pub(crate) ty: Arc<MessageType>,
    pub(crate) qos: Option<QosRequest>,
    /// Whether it is one more of this client, and not in the place of one.
    pub(crate) is_more: bool,
    /// That of the operation, for what has to be said of it.
    pub(crate) id: Option<Id<'static>>,
    /// By which a client of Foxglove knows it.
    pub(crate) foxglove: Option<u32>,
}

/// All topics that clients get.
pub(super) struct Topics {
    node: Node,
    context: Context,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    names: Arc<Names>,
    all: Vec<Topic>,
    /// Room for samples.
    taken: Vec<RawSample>,
}

/// One, as all clients get it that ask for the same quality of service.
///
/// They share one subscription. What publishers keep for late joiners it has been given once, so whoever comes later
/// [joins](Join) by a subscription of its own first.
struct Topic {
    writer: Writer,
    asked: Option<QosRequest>,
    main: Source,
    /// Those that have a subscription stand first.
    joins: Vec<Join>,
    publishers: Publishers,
}

/// A subscription, and who gets what comes by it.
struct Source {
    subscription: RawSubscription,
    missed: Missed,
    listeners: Vec<Listener>,
}

struct Listener {
    member: Arc<ConnectedClient>,
    key: StreamKey,
    form: Form,
    /// When it came: what was published before is kept for it.
    came: Came,
    /// What it has already had, of publishers of which the subscription is not as far yet.
    had: HashMap<Gid, u64>,
    /// It knows that there are samples that it does not get.
    is_told: Cell<bool>,
}

impl Listener {
    /// Tells the client why it does not get a sample: of the first, since the others will be no better.
    fn tell_once(&self, topic: &str, why: &str) {
        if !self.is_told.replace(true) {
            self.member.remark(Level::Error, None, &format!("subscribe: {topic}: {why}"));
        }
    }
}

/// What is written of a topic.
struct Writer {
    name: Arc<str>,
    ty: Arc<MessageType>,
    names: Arc<Names>,
}

/// How samples are written for a client. Those with the same form get the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    encoding: Encoding,
    compression: Compression,
    fragment_size: Option<u32>,
    foxglove: Option<Foxglove>,
}

/// A sample as it is, for a client of Foxglove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Foxglove {
    subscription: u32,
    /// Not from where it lies, which its publisher may need again before a slow client has taken it.
    is_copied: bool,
}

impl Form {
    fn new(encoding: Encoding, settings: StreamSettings, foxglove: Option<u32>) -> Self {
        let StreamSettings { compression, fragment_size, .. } = settings;
        let foxglove = foxglove.map(|subscription| Foxglove { subscription, is_copied: false });
        Self { encoding, compression, fragment_size, foxglove }
    }

    /// Where so many samples of the topic wait for the client, with those that come.
    fn behind(mut self, waiting: usize) -> Self {
        if let Some(foxglove) = &mut self.foxglove {
            foxglove.is_copied = LENT_MAX < waiting;
        }
        self
    }

    /// With what holds for all that the client is sent, where the stream says nothing.
    fn within(self, general: Delivery) -> Self {
        let Self { encoding, compression, fragment_size, foxglove } = self;
        let compression = match compression {
            Compression::None if general.is_png => Compression::Png,
            other => other,
        };
        let fragment_size = fragment_size.or(general.fragment_size);
        Self { encoding, compression, fragment_size, foxglove }
    }
}

impl Topics {
    pub(super) fn new(
        node: Node,
        context: Context,
        settings: Arc<Settings>,
        counters: Arc<Counters>,
        names: Arc<Names>,
    ) -> Self {
        Self { node, context, settings, counters, names, all: Vec::new(), taken: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.iter().map(Topic::sources).sum()
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.all.iter().flat_map(|topic| {
            let joins = topic.joins.iter().filter_map(|it| it.subscription());
            std::iter::once(&topic.main.subscription).chain(joins).map(|it| it as &dyn Waitable)
        })
    }

    /// Whether somebody joins, which has to be looked at.
    pub(super) fn waits(&self) -> bool {
        self.all.iter().any(|it| !it.joins.is_empty())
    }

    /// Lets a client have the samples of a topic.
    pub(super) fn subscribe(&mut self, wanted: Subscription, now: Duration) {
        let Subscription { member, key, settings, topic, ty, qos, is_more, id, foxglove } = wanted;
        let form = Form::new(member.encoding, settings, foxglove);
        // Joined: the same stream in another way.
        for there in &mut self.all {
            if there.resettle(&member, key, form) {
                if is_more {
                    // Whoever it is within the client has heard nothing yet.
                    there.join_again(&member, key, now, &self.context);
                }
                return;
            }
        }
        let refuse = |member: &ConnectedClient, why: String, expected: &'static str| {
            let unsubscribe = Unsubscribe { id: None, topic: Cow::Borrowed(&*topic) };
            member.lock().client.subscriptions.unsubscribe(now, &unsubscribe);
            member.refuse(&Refusal::new("subscribe", id.as_ref(), Some("topic"), why, expected));
        };
        let type_of = |it: &Topic| it.writer.ty.description.name().to_string();
        let is_other = |it: &&Topic| {
            it.writer.name == topic && type_of(it) != ty.description.name().to_string()
        };
        if let Some(other) = self.all.iter().find(is_other) {
            let found = format!("{topic}, which has {}", type_of(other));
            return refuse(&member, found, "a topic of the type that is asked for");
        }
        let same = |it: &&mut Topic| it.writer.name == topic && it.asked == qos;
        if let Some(there) = self.all.iter_mut().find(same) {
            let listener = Listener::new(member, key, form, now, &there.publishers);
            return there.add(listener, false, &self.context, now);
        }
        let offers = offers(&self.context.endpoints_of(&topic));
        match self.open(&topic, &ty, request(qos, offers, self.settings.depth)) {
            Ok(subscription) => {
                let mut topic = Topic {
                    writer: Writer { name: topic, ty, names: Arc::clone(&self.names) },
                    asked: qos,
                    main: Source { subscription, missed: Missed::default(), listeners: Vec::new() },
                    joins: Vec::new(),
                    publishers: Publishers::default(),
                };
                let listener = Listener::new(member, key, form, now, &topic.publishers);
                topic.add(listener, true, &self.context, now);
                self.all.push(topic);
            }
            Err(error) => refuse(&member, error.to_string(), "a topic that can be subscribed to"),
        }
    }

    fn open(&self, topic: &str, ty: &MessageType, qos: Qos) -> tsuji::Result<RawSubscription> {
        self.node.create_polled_raw_subscription(topic, ty.raw(), qos)
    }

    /// Writes samples in another way from now on.
    pub(super) fn resettle(
        &mut self,
        member: &ConnectedClient,
        key: StreamKey,
        settings: StreamSettings,
    ) {
        // One of Foxglove has one subscription to a topic, which is never sent in another way.
        let form = Form::new(member.encoding, settings, None);
        self.all.iter_mut().any(|it| it.resettle(member, key, form));
    }

    /// Ends one stream.
    pub(super) fn unsubscribe(&mut self, member: u64, key: StreamKey, topic: &str) {
        self.retain(|name, it| *name != *topic || it.member.number != member || it.key != key);
    }

    /// Ends all streams of a client.
    pub(super) fn gone(&mut self, member: u64) {
        self.retain(|_, it| it.member.number != member);
    }

    fn retain(&mut self, stays: impl Fn(&str, &Listener) -> bool) {
        self.all.retain_mut(|topic| {
            let name = &*topic.writer.name;
            topic.main.listeners.retain(|it| stays(name, it));
            topic.joins.retain_mut(|join| {
                join.listeners_mut().retain(|it| stays(name, it));
                !join.listeners_mut().is_empty()
            });
            !topic.main.listeners.is_empty() || !topic.joins.is_empty()
        });
    }

    /// Asks anew of publishers that offer less than what was asked for, where no client said what it wants; and of those that have
    /// come and keep something for late joiners, where what was asked for leaves that away.
    pub(super) fn reconsider(&mut self, now: Duration) {
        for at in 0..self.all.len() {
            let topic = &mut self.all[at];
            let endpoints = self.context.endpoints_of(&topic.writer.name);
            topic.publishers.update(&endpoints, now);
            topic.forget_the_past();
            topic.join_those_left();
            let offers = offers(&endpoints);
            let asked = *topic.main.subscription.qos();
            if offers.iter().all(|offer| rxo::check(offer, &asked).is_ok()) {
                continue;
            }
            let qos = request(topic.asked, offers, self.settings.depth);
            if qos == asked {
                continue;
            }
            // What has come by the old one is not lost.
            self.drain_source(at, 0, now);
            let topic = &self.all[at];
            match self.open(&topic.writer.name, &topic.writer.ty, qos) {
                Ok(subscription) => {
                    let topic = &mut self.all[at];
                    topic.main.note_missed(&self.counters);
                    topic.main.subscription = subscription;
                    topic.main.missed = Missed::default();
                    if topic.publishers.any_keeps() && topic.leaves_kept_away() {
                        topic.join_all();
                    }
                }
                Err(error) => {
                    tracing::warn!(topic = %Plain(&topic.writer.name), error = %Plain(error), "not subscribed anew");
                }
            }
        }
    }

    /// Opens the subscriptions of those who join, and ends those of whom has joined.
    pub(super) fn look(&mut self, now: Duration) {
        for at in 0..self.all.len() {
            if self.all[at].joins.is_empty() {
                continue;
            }
            self.all[at].settle(now, &self.counters);
            let topic = &self.all[at];
            let opened = topic.sources() - 1;
            if opened == topic.joins.len() || JOINS_MAX <= opened {
                continue;
            }
            let offers = offers(&self.context.endpoints_of(&topic.writer.name));
            let kept: Vec<_> = offers
                .into_iter()
                .filter(|it| it.durability == Durability::TransientLocal)
                .collect();
            let qos = Qos {
                durability: Durability::TransientLocal,
                ..request(topic.asked, kept, self.settings.depth)
            };
            match self.open(&topic.writer.name, &topic.writer.ty, qos) {
                Ok(subscription) => self.all[at].joins[opened].open(subscription, now),
                Err(error) => {
                    let name = &*topic.writer.name;
                    tracing::warn!(topic = %Plain(name), error = %Plain(error), "what is kept for late joiners is not asked for");
                    self.all[at].give_up(opened, now, &self.counters);
                }
            }
        }
    }

    /// Hands on what has come.
    pub(super) fn drain(&mut self, mut place: usize, now: Duration) {
        for at in 0..self.all.len() {
            let sources = self.all[at].sources();
            if place < sources {
                return self.drain_source(at, place, now);
            }
            place -= sources;
        }
    }

    /// The same, of a topic by its shared subscription, which is 0, or by that of who joins.
    fn drain_source(&mut self, at: usize, source: usize, now: Duration) {
        let topic = &mut self.all[at];
        topic.note_missed(source, &self.counters);
        let began = Instant::now();
        let mut is_more = true;
        while is_more && began.elapsed() < A_TURN {
            let Some(subscription) = topic.subscription(source) else { return };
            is_more = take(subscription, &mut self.taken);
            match source {
                0 => topic.pass(&self.taken, now, &self.context, &self.counters),
                _ => {
                    topic.pass_joining(source - 1, &self.taken, now, &self.context, &self.counters)
                }
            }
            self.taken.clear();
        }
    }
}

impl Source {
    /// Counts what did not come since the last time.
    fn note_missed(&mut self, counters: &Counters) {
        self.missed.note(&self.subscription, counters);
    }
}

/// Takes some of what has come; whether there may be more.
fn take(subscription: &RawSubscription, taken: &mut Vec<RawSample>) -> bool {
    let mut bytes = 0;
    while taken.len() < SAMPLES_AT_ONCE && bytes < BYTES_AT_ONCE {
        match subscription.take_bytes() {
            Ok(Some(sample)) => {
                bytes += sample.bytes.len();
                taken.push(sample);
            }
            Ok(None) => return false,
            Err(error) => {
                tracing::warn!(topic = %Plain(subscription.topic()), error = %Plain(error), "a sample could not be taken");
                return false;
            }
        }
    }
    true
}

impl Topic {
    /// How many subscriptions it has.
    fn sources(&self) -> usize {
        1 + self.joins.iter().filter(|it| it.subscription().is_some()).count()
    }

    fn subscription(&self, source: usize) -> Option<&RawSubscription> {
        match source.checked_sub(1) {
            None => Some(&self.main.subscription),
            Some(join) => self.joins.get(join)?.subscription(),
        }
    }

    fn note_missed(&mut self, source: usize, counters: &Counters) {
        match source.checked_sub(1) {
            None => self.main.note_missed(counters),
            Some(join) => {
                if let Some(join) = self.joins.get_mut(join) {
                    join.note_missed(counters);
                }
            }
        }
    }

    fn listeners_mut(&mut self) -> impl Iterator<Item = &mut Listener> {
        let joining = self.joins.iter_mut().flat_map(|it| it.listeners_mut().iter_mut());
        self.main.listeners.iter_mut().chain(joining)
    }

    /// Writes samples of a stream in another way from now on; whether it is one of this topic.
    fn resettle(&mut self, member: &ConnectedClient, key: StreamKey, form: Form) -> bool {
        let is_it = |it: &&mut Listener| it.member.number == member.number && it.key == key;
        match self.listeners_mut().find(is_it) {
            Some(listener) => {
                listener.form = form;
                true
            }
            None => false,
        }
    }
}

impl Writer {
    /// Writes each sample once in each form, and puts it where clients wait that have not had it.
    fn pass(
        &self,
        samples: &[RawSample],
        listeners: &[Listener],
        publishers: &Publishers,
        now: Duration,
        counters: &Counters,
    ) {
        let mut written = Written { writer: self, samples, counters, forms: Vec::new() };
        for it in listeners {
            // Most often it is all of them, and nothing is kept.
            let is_all = it.had.is_empty() && !publishers.any_keeps();
            let mut picked = (!is_all).then(|| it.pick(samples, publishers, now));
            let is_other = |it: &&(usize, bool)| !it.1;
            let others =
                picked.as_ref().map_or(samples.len(), |it| it.iter().filter(is_other).count());
            let mut state = it.member.lock();
            let wanted = state.client.subscriptions.wants(now, it.key, others);
            let form = it.form.within(state.delivery);
            let form = match form.foxglove {
                None => form,
                Some(_) => {
                    let waiting = state.client.subscriptions.status(it.key);
                    form.behind(waiting.map_or(0, |it| it.waiting) + others)
                }
            };
            drop(state);
            counters.throttled.fetch_add((others - wanted) as u64, Ordering::Relaxed);
            if let Some(picked) = &mut picked {
                let mut left = wanted;
                picked.retain(|(_, is_kept)| {
                    let stays = *is_kept || left > 0;
                    left -= usize::from(!is_kept && stays);
                    stays
                });
            }
            let count = picked.as_ref().map_or(wanted, Vec::len);
            let pick = |at: usize| picked.as_ref().map_or((at, false), |it| it[at]);
            let place = written.place(form);
            for at in 0..count {
                match written.frame(place, pick(at).0) {
                    Ok(frame) => match it.member.is_too_large(frame) {
                        None if it.member.deflates() => frame.deflate_all(),
                        None => {}
                        Some(bytes) => {
                            counters.datagrams_lost.fetch_add(1, Ordering::Relaxed);
                            it.tell_once(&self.name, &too_large(bytes));
                        }
                    },
                    Err(why) => it.tell_once(&self.name, why),
                }
            }
            let mut state = it.member.lock();
            let subscriptions = &mut state.client.subscriptions;
            let left_out = |of: &Subscriptions<_>| {
                of.status(it.key).map_or((0, 0), |it| (it.dropped, it.throttled))
            };
            let before = left_out(subscriptions);
            let mut is_taken = false;
            for (at, is_kept) in (0..count).map(pick) {
                let Ok(frame) = written.frame(place, at) else { continue };
                if it.member.is_too_large(frame).is_some() {
                    continue;
                }
                let (frame, bytes) = (Arc::clone(frame), frame.cost_bytes());
                is_taken |= match is_kept {
                    true => subscriptions.offer_kept(now, it.key, frame, bytes),
                    false => subscriptions.offer(now, it.key, frame, bytes),
                };
            }
            let after = left_out(subscriptions);
            counters.dropped.fetch_add(after.0.saturating_sub(before.0), Ordering::Relaxed);
            counters.throttled.fetch_add(after.1.saturating_sub(before.1), Ordering::Relaxed);
            if is_taken {
                it.member.tell(state);
            }
        }
    }

    /// A sample as it is sent, or why it is none of its type.
    fn frame(&self, form: Form, sample: &RawSample, counters: &Counters) -> Encoded {
        if let Some(foxglove) = form.foxglove {
            return Ok(Arc::new(as_it_is(foxglove, self.names.now_ns(), sample)));
        }
        match self.write(form, sample) {
            Ok(frame) if form.fragment_size.is_some() => {
                let id = Id::Text(format!("{}#{}", self.name, sample.info.sequence).into());
                Ok(Arc::new(frame.in_pieces(form.fragment_size, &id)))
            }
            Ok(frame) => Ok(Arc::new(frame)),
            Err(error) => {
                counters.invalid.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(topic = %Plain(&self.name), error = %Plain(&error), "a sample that is none of its type");
                Err(format!("a sample is none of its type: {error}").into())
            }
        }
    }

    fn write(&self, form: Form, sample: &RawSample) -> Result<Frame, tsuji_msg::CdrError> {
        let plan = &self.ty.plan;
        let text = |out: &mut Vec<u8>| {
            let end = begin_publish(out, Encoding::Json, &self.name);
            plan.json_from_cdr(&sample.bytes, out)?;
            end.write(out);
            Ok(())
        };
        match (form.encoding, form.compression) {
            (Encoding::Bson, _) => Frame::encode(Kind::Binary, |out| {
                let end = begin_publish(out, Encoding::Bson, &self.name);
                plan.bson_from_cdr(&sample.bytes, out)?;
                end.write(out);
                Ok(())
            }),
            (_, Compression::None) => Frame::encode(Kind::Text, text),
            (_, Compression::Png) => Frame::encode(Kind::Text, |out| {
                let mut json = Vec::new();
                text(&mut json)?;
                // The writer of JSON writes UTF-8.
                write_png(out, std::str::from_utf8(&json).unwrap_or_default());
                Ok(())
            }),
            (_, Compression::Cbor) => Frame::encode(Kind::Binary, |out| {
                let end = begin_publish(out, Encoding::Cbor, &self.name);
                plan.cbor_from_cdr(&sample.bytes, out)?;
                end.write(out);
                Ok(())
            }),
            (_, Compression::CborRaw) => Frame::encode(Kind::Binary, |out| {
                let ns = tsuji_platform::clock::wall_ns();
                let (secs, nsecs) = (ns.div_euclid(SECOND_NS), ns.rem_euclid(SECOND_NS));
                write_publish_raw(out, &self.name, secs, nsecs as u32, &sample.bytes);
                Ok(())
            }),
        }
    }
}

fn as_it_is(form: Foxglove, now_ns: u64, sample: &RawSample) -> Frame {
    let tail = if form.is_copied { Bytes::copy_from(&sample.bytes) } else { sample.bytes.clone() };
    Frame::with_tail(|out| write_message_head(out, form.subscription, now_ns), tail)
}

/// Samples in the forms that are wanted of them.
struct Written<'a> {
    writer: &'a Writer,
    samples: &'a [RawSample],
    counters: &'a Counters,
    /// Of each form, each sample that was wanted.
    forms: Vec<(Form, Vec<Option<Encoded>>)>,
}

/// A sample as it is sent, or why it is not.
type Encoded = Result<Arc<Frame>, Arc<str>>;

impl Written<'_> {
    /// Where the samples of a form are.
    fn place(&mut self, form: Form) -> usize {
        let known = self.forms.iter().position(|(known, _)| *known == form);
        known.unwrap_or_else(|| {
            self.forms.push((form, vec![None; self.samples.len()]));
            self.forms.len() - 1
        })
    }

    fn frame(&mut self, place: usize, at: usize) -> &Encoded {
        let Self { writer, samples, counters, forms } = self;
        let (form, frames) = &mut forms[place];
        frames[at].get_or_insert_with(|| writer.frame(*form, &samples[at], counters))
    }
}

/// What the publishers of a topic offer that has these endpoints.
pub(crate) fn offers(endpoints: &[EndpointInfo]) -> Vec<Qos> {
    let publishers = endpoints.iter().filter(|it| it.kind == EndpointKind::Publisher);
    publishers.map(|it| it.qos).collect()
}

/// What to ask for so that every one of `offers` is received, but for what the client asks itself.
pub(crate) fn request(asked: Option<QosRequest>, offers: Vec<Qos>, depth: u32) -> Qos {
    let all = |is: fn(&Qos) -> bool| offers.iter().all(is);
    let reliable = all(|it| it.reliability == Reliability::Reliable);
    let latched = !offers.is_empty() && all(|it| it.durability == Durability::TransientLocal);
    let base = Qos {
        history: History::KeepLast(depth),
        reliability: if reliable { Reliability::Reliable } else { Reliability::BestEffort },
        durability: if latched { Durability::TransientLocal } else { Durability::Volatile },
        ..Qos::DEFAULT
    };
    asked.map_or(base, |it| it.over(base))
}

/// So much of a topic is taken before it is handed on.
const SAMPLES_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 64 << 10;

/// So many samples of a topic wait for a client of Foxglove where their publisher has put them; those behind them are copied.
const LENT_MAX: usize = 4;

const SECOND_NS: i64 = 1_000_000_000;
