//! Samples for clients.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tsuji::{
    Context, Durability, EndpointInfo, EndpointKind, Node, RawSample, RawSubscription, Reliability,
    SubscriptionCounters, Waitable,
};
use tsuji_core::{History, Qos, rxo};
use tsuji_rosbridge::client::{StreamKey, StreamSettings, Subscriptions};
use tsuji_rosbridge::{
    Compression, Encoding, Id, QosRequest, Refusal, Unsubscribe, begin_publish, write_png,
    write_publish_raw,
};

use super::A_TURN;
use crate::Counters;
use crate::frame::{Frame, Kind};
use crate::member::{Delivery, Member};
use crate::settings::Settings;
use crate::types::MessageType;

/// What a client wants of a topic.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) member: Arc<Member>,
    pub(crate) key: StreamKey,
    pub(crate) settings: StreamSettings,
    pub(crate) topic: Arc<str>,
    pub(crate) ty: Arc<MessageType>,
    pub(crate) qos: Option<QosRequest>,
    /// That of the operation, for what has to be said of it.
    pub(crate) id: Option<Id<'static>>,
}

/// All topics that clients get.
pub(super) struct Topics {
    node: Node,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    all: Vec<Topic>,
    /// Room for samples.
    taken: Vec<RawSample>,
}

/// One, as all clients get it that ask for the same quality of service.
struct Topic {
    name: Arc<str>,
    ty: Arc<MessageType>,
    asked: Option<QosRequest>,
    subscription: RawSubscription,
    /// What never came, or was pushed out of the queue before it could be written, as far as it is counted.
    missed: u64,
    listeners: Vec<Listener>,
}

struct Listener {
    member: Arc<Member>,
    key: StreamKey,
    form: Form,
}

/// How samples are written for a client. Those with the same form get the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    encoding: Encoding,
    compression: Compression,
    fragment_size: Option<u32>,
}

impl Form {
    fn new(encoding: Encoding, settings: StreamSettings) -> Self {
        let StreamSettings { compression, fragment_size, .. } = settings;
        Self { encoding, compression, fragment_size }
    }

    /// With what holds for all that the client is sent, where the stream says nothing.
    fn within(self, general: Delivery) -> Self {
        let Self { encoding, compression, fragment_size } = self;
        let compression = match compression {
            Compression::None if general.is_png => Compression::Png,
            other => other,
        };
        Self { encoding, compression, fragment_size: fragment_size.or(general.fragment_size) }
    }
}

impl Topics {
    pub(super) fn new(node: Node, settings: Arc<Settings>, counters: Arc<Counters>) -> Self {
        Self { node, settings, counters, all: Vec::new(), taken: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.all.iter().map(|it| &it.subscription as &dyn Waitable)
    }

    /// Lets a client have the samples of a topic.
    pub(super) fn subscribe(&mut self, wanted: Subscription, context: &Context, now: Duration) {
        let Subscription { member, key, settings, topic, ty, qos, id } = wanted;
        let form = Form::new(member.encoding, settings);
        // Joined: the same stream in another way.
        for there in &mut self.all {
            for it in &mut there.listeners {
                if it.member.number == member.number && it.key == key {
                    it.form = form;
                    return;
                }
            }
        }
        let refuse = |member: &Member, why: String, expected: &'static str| {
            let unsubscribe = Unsubscribe { id: None, topic: Cow::Borrowed(&*topic) };
            member.lock().client.subscriptions.unsubscribe(now, &unsubscribe);
            member.refuse(&Refusal::new("subscribe", id.as_ref(), Some("topic"), why, expected));
        };
        let is_other =
            |it: &&Topic| it.name == topic && it.ty.description.name() != ty.description.name();
        if let Some(other) = self.all.iter().find(is_other) {
            let found = format!("{topic}, which has {}", other.ty.description.name());
            return refuse(&member, found, "a topic of the type that is asked for");
        }
        let listener = Listener { member, key, form };
        if let Some(there) = self.all.iter_mut().find(|it| it.name == topic && it.asked == qos) {
            there.listeners.push(listener);
            return;
        }
        let offers = offers(&context.endpoints_of(&topic));
        match self.open(&topic, &ty, request(qos, offers, self.settings.depth)) {
            Ok(subscription) => {
                let listeners = vec![listener];
                let missed = 0;
                self.all.push(Topic {
                    name: topic,
                    ty,
                    asked: qos,
                    subscription,
                    missed,
                    listeners,
                });
            }
            Err(error) => {
                refuse(&listener.member, error.to_string(), "a topic that can be subscribed to");
            }
        }
    }

    fn open(&self, topic: &str, ty: &MessageType, qos: Qos) -> tsuji::Result<RawSubscription> {
        self.node.raw_subscription(topic, ty.raw()).qos(qos).build()
    }

    /// Writes samples in another way from now on.
    pub(super) fn resettle(
        &mut self,
        member: u64,
        key: StreamKey,
        settings: StreamSettings,
        topic: &str,
    ) {
        for there in self.all.iter_mut().filter(|it| *it.name == *topic) {
            for it in &mut there.listeners {
                if it.member.number == member && it.key == key {
                    it.form = Form::new(it.member.encoding, settings);
                }
            }
        }
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
            topic.listeners.retain(|it| stays(&topic.name, it));
            !topic.listeners.is_empty()
        });
    }

    /// Asks anew of publishers that offer less than what was asked for, where no client said what it wants.
    pub(super) fn reconsider(&mut self, context: &Context) {
        for at in 0..self.all.len() {
            let topic = &self.all[at];
            let offers = offers(&context.endpoints_of(&topic.name));
            let asked = *topic.subscription.qos();
            if offers.iter().all(|offer| rxo::check(offer, &asked).is_ok()) {
                continue;
            }
            let qos = request(topic.asked, offers, self.settings.depth);
            if qos == asked {
                continue;
            }
            match self.open(&topic.name, &topic.ty, qos) {
                Ok(subscription) => {
                    self.all[at].note_missed(&self.counters);
                    self.all[at].subscription = subscription;
                    self.all[at].missed = 0;
                }
                Err(error) => tracing::warn!(topic = &*topic.name, %error, "not subscribed anew"),
            }
        }
    }

    /// Hands on what has come.
    pub(super) fn drain(&mut self, place: usize, now: Duration) {
        let Some(topic) = self.all.get_mut(place) else { return };
        topic.note_missed(&self.counters);
        let began = Instant::now();
        let mut is_more = true;
        while is_more && began.elapsed() < A_TURN {
            is_more = topic.take(&mut self.taken);
            topic.pass(&self.taken, now, &self.counters);
            self.taken.clear();
        }
    }
}

impl Topic {
    /// Counts what did not come since the last time.
    fn note_missed(&mut self, counters: &Counters) {
        let SubscriptionCounters { lost, displaced, .. } = self.subscription.counters();
        let before = std::mem::replace(&mut self.missed, lost + displaced);
        counters.missed.fetch_add(self.missed.saturating_sub(before), Ordering::Relaxed);
    }

    /// Takes some of what has come; whether there may be more.
    fn take(&self, taken: &mut Vec<RawSample>) -> bool {
        let mut bytes = 0;
        while taken.len() < SAMPLES_AT_ONCE && bytes < BYTES_AT_ONCE {
            match self.subscription.take_bytes() {
                Ok(Some(sample)) => {
                    bytes += sample.bytes.len();
                    taken.push(sample);
                }
                Ok(None) => return false,
                Err(error) => {
                    tracing::warn!(topic = &*self.name, %error, "a sample could not be taken");
                    return false;
                }
            }
        }
        true
    }

    /// Writes each sample once in each form, and puts it where clients wait.
    fn pass(&self, samples: &[RawSample], now: Duration, counters: &Counters) {
        counters.received.fetch_add(samples.len() as u64, Ordering::Relaxed);
        let mut written: Vec<(Form, Vec<Option<Arc<Frame>>>)> = Vec::new();
        for it in &self.listeners {
            let mut state = it.member.lock();
            let wanted = state.client.subscriptions.wants(now, it.key, samples.len());
            let form = it.form.within(state.delivery);
            drop(state);
            counters.throttled.fetch_add((samples.len() - wanted) as u64, Ordering::Relaxed);
            let known = written.iter().position(|(known, _)| *known == form);
            let at = known.unwrap_or_else(|| {
                written.push((form, Vec::with_capacity(wanted)));
                written.len() - 1
            });
            let frames = &mut written[at].1;
            let missing = samples.iter().take(wanted).skip(frames.len());
            frames.extend(missing.map(|sample| self.frame(form, sample, counters)));
            if it.member.deflates() {
                frames.iter().take(wanted).flatten().for_each(|it| it.deflate_all());
            }
            let mut state = it.member.lock();
            let subscriptions = &mut state.client.subscriptions;
            let dropped = |of: &Subscriptions<_>| of.status(it.key).map_or(0, |it| it.dropped);
            let before = dropped(subscriptions);
            let mut is_taken = false;
            for frame in frames.iter().take(wanted).flatten() {
                is_taken |= subscriptions.offer(now, it.key, Arc::clone(frame), frame.cost_bytes());
            }
            let more = dropped(subscriptions).saturating_sub(before);
            counters.dropped.fetch_add(more, Ordering::Relaxed);
            if is_taken {
                it.member.tell(state);
            }
        }
    }

    /// A sample as it is sent; nothing where it is none of its type.
    fn frame(&self, form: Form, sample: &RawSample, counters: &Counters) -> Option<Arc<Frame>> {
        match self.write(form, sample) {
            Ok(frame) if form.fragment_size.is_some() => {
                let id = Id::Text(format!("{}#{}", self.name, sample.info.sequence).into());
                Some(Arc::new(frame.in_pieces(form.fragment_size, &id)))
            }
            Ok(frame) => Some(Arc::new(frame)),
            Err(error) => {
                counters.invalid.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(topic = &*self.name, %error, "a sample that is none of its type");
                None
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

/// What the publishers of a topic offer that has these endpoints.
fn offers(endpoints: &[EndpointInfo]) -> Vec<Qos> {
    let publishers = endpoints.iter().filter(|it| it.kind == EndpointKind::Publisher);
    publishers.map(|it| it.qos).collect()
}

/// What to ask for so that every one of `offers` is received, but for what the client asks itself.
fn request(asked: Option<QosRequest>, offers: Vec<Qos>, depth: u32) -> Qos {
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

const SECOND_NS: i64 = 1_000_000_000;
