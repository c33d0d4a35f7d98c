use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use crate::operation::{Compression, Id, Subscribe, Unsubscribe};
use crate::qos::QosRequest;
use crate::refusal::Refusal;

/// How much may wait to be sent to one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Samples of a topic whose `queue_length` is 0, which is what roslib says when its user says nothing.
    pub samples_max: usize,
    /// Bytes of all topics. A sample that does not fit pushes out older ones of its topic, and if there are none it is dropped;
    /// one alone always fits.
    pub bytes_max: usize,
}

impl Default for QueueLimits {
    /// 10,000 samples, 64 MiB.
    fn default() -> Self {
        Self { samples_max: 10_000, bytes_max: 64 << 20 }
    }
}

/// The topics that a client gets, each as one stream however often it has subscribed.
///
/// A stream keeps the newest samples, as many as its `queue_length`; what it pushes out is counted. Where `queue_length` is 0
/// and there is a `throttle_rate`, a sample that comes too early is dropped at once, as in rosbridge. What publishers keep for
/// those who come later is [offered](Self::offer_kept) beside all that.
#[derive(Debug)]
pub struct Subscriptions<T> {
    topics: HashMap<String, StreamKey>,
    slots: Vec<Slot<T>>,
    /// Slots without a stream.
    free: Vec<u32>,
    /// Streams of which a sample may go now, each once, in turn.
    ready: VecDeque<StreamKey>,
    /// Streams of which the next sample waits for its time.
    timed: BTreeSet<(Duration, StreamKey)>,
    limits: QueueLimits,
    /// How many subscriptions there are to all topics.
    ids: usize,
    names_max: usize,
    ids_max: usize,
    bytes: usize,
}

/// Names the stream of a topic, from its first subscription to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey {
    slot: u32,
    /// Which of those that had the slot, so that the key of one that is gone names none.
    generation: u32,
}

/// Where a stream is, or was.
#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    stream: Option<Stream<T>>,
}

/// How a stream is sent, which is what fits all subscriptions of the client to the topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSettings {
    /// The least time between two samples: the lowest that was asked for.
    pub throttle_rate: Duration,
    /// How many samples wait: the least that was asked for.
    pub queue_length: u32,
    /// The longest text in one piece: the least that was asked for.
    pub fragment_size: Option<u32>,
    /// The first that was asked for of cbor-raw, cbor, png, none.
    pub compression: Compression,
}

/// What happened to the samples of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStatus {
    /// How many wait.
    pub waiting: usize,
    /// How many were taken, to be sent.
    pub taken: u64,
    /// How many were pushed out by newer ones, because the client is slow.
    pub dropped: u64,
    /// How many came before their time while none may wait, or were pushed out by newer ones before it.
    pub throttled: u64,
}

/// What became of a `subscribe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscribed {
    /// Open a subscription.
    Opened {
        /// The stream of the topic.
        key: StreamKey,
        /// How it is sent.
        settings: StreamSettings,
    },
    /// The subscription is there, and is now sent like this.
    Joined {
        /// The stream of the topic.
        key: StreamKey,
        /// How it is sent.
        settings: StreamSettings,
        /// Whether another quality of service was asked for than by the first, which stands: a warning.
        qos_differs: bool,
        /// Whether it is one more, and not in the place of one with the same id.
        is_more: bool,
    },
}

/// What became of an `unsubscribe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsubscribed {
    /// The client had not subscribed, or not with that id.
    Unknown,
    /// Other subscriptions are left, and the stream is now sent like this.
    Remains {
        /// The stream of the topic.
        key: StreamKey,
        /// How it is sent.
        settings: StreamSettings,
    },
    /// None is left. Close the subscription; what waited is gone.
    Closed {
        /// The stream that was.
        key: StreamKey,
    },
}

#[derive(Debug)]
struct Stream<T> {
    topic: String,
    ty: Option<String>,
    qos: Option<QosRequest>,
    asked: HashMap<Option<Id<'static>>, StreamSettings>,
    settings: StreamSettings,
    /// The oldest first.
    queue: VecDeque<Waiting<T>>,
    /// How many of them are kept.
    kept: usize,
    /// When a sample was let through last.
    last: Option<Duration>,
    /// Since when a sample may go, if one may.
    ready: Duration,
    /// Where the stream is listed, if a sample waits.
    listed: Option<Listed>,
    status: StreamStatus,
}

#[derive(Debug)]
struct Waiting<T> {
    sample: T,
    bytes: usize,
    /// Neither the queue length nor the throttle rate keeps it from being sent.
    is_kept: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Ready,
    At(Duration),
}

impl<T> Subscriptions<T> {
    pub(super) fn new(names_max: usize, ids_max: usize, limits: QueueLimits) -> Self {
        Self {
            topics: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            timed: BTreeSet::new(),
            limits,
            ids: 0,
            names_max,
            ids_max,
            bytes: 0,
        }
    }

    /// Notes a subscription. One with an id that is there takes its place. Another type than the client gave before is refused.
    pub fn subscribe(
        &mut self,
        now: Duration,
        asked: &Subscribe<'_>,
    ) -> Result<Subscribed, Refusal> {
        let refuse = |field, found: String, expected: String| {
            Err(Refusal::new("subscribe", asked.id.as_ref(), Some(field), found, expected))
        };
        let settings = StreamSettings {
            throttle_rate: asked.throttle_rate,
            queue_length: asked.queue_length,
            fragment_size: asked.fragment_size,
            compression: asked.compression,
        };
        let ids_allowed = format!("at most {} subscriptions", self.ids_max);
        let id = asked.id.clone().map(Id::into_owned);
        let qos = asked.qos.as_deref().copied();
        if let Some(&key) = self.topics.get(&*asked.topic) {
            let Some(stream) = stream_of(&mut self.slots, key) else {
                return refuse("topic", "a stream that is gone".to_owned(), "one".to_owned());
            };
            if let (Some(there), Some(wanted)) = (&stream.ty, &asked.ty)
                && there != wanted
            {
                let expected = format!("{there}, as {} was subscribed before", asked.topic);
                return refuse("type", wanted.clone().into_owned(), expected);
            }
            if self.ids >= self.ids_max && !stream.asked.contains_key(&id) {
                return refuse("id", "one more".to_owned(), ids_allowed);
            }
            let is_more = stream.asked.insert(id, settings).is_none();
            self.ids += usize::from(is_more);
            let qos_differs = qos.is_some() && qos != stream.qos;
            let settings = self.settle(now, key);
            return Ok(Subscribed::Joined { key, settings, qos_differs, is_more });
        }
        if self.topics.len() >= self.names_max {
            let expected = format!("at most {} topics", self.names_max);
            return refuse("topic", "one more".to_owned(), expected);
        }
        if self.ids >= self.ids_max {
            return refuse("id", "one more".to_owned(), ids_allowed);
        }
        self.ids += 1;
        let topic = asked.topic.clone().into_owned();
        let stream = Stream {
            topic: topic.clone(),
            ty: asked.ty.clone().map(|it| it.into_owned()),
            qos,
            asked: HashMap::from([(id, settings)]),
            settings,
            queue: VecDeque::new(),
            kept: 0,
            last: None,
            ready: Duration::ZERO,
            listed: None,
            status: StreamStatus::default(),
        };
        let key = self.insert(stream);
        self.topics.insert(topic, key);
        Ok(Subscribed::Opened { key, settings })
    }

    /// Takes a subscription back, or without an id all of the topic.
    pub fn unsubscribe(&mut self, now: Duration, asked: &Unsubscribe<'_>) -> Unsubscribed {
        let Some(&key) = self.topics.get(&*asked.topic) else { return Unsubscribed::Unknown };
        let Some(stream) = stream_of(&mut self.slots, key) else { return Unsubscribed::Unknown };
        match asked.id.clone().map(Id::into_owned) {
            None => {
                self.ids -= stream.asked.len();
                stream.asked.clear();
            }
            id => {
                if stream.asked.remove(&id).is_none() {
                    return Unsubscribed::Unknown;
                }
                self.ids -= 1;
            }
        }
        if !stream.asked.is_empty() {
            return Unsubscribed::Remains { key, settings: self.settle(now, key) };
        }
        self.unlist(key);
        self.topics.remove(&*asked.topic);
        if let Some(stream) = self.remove(key) {
            self.bytes -= stream.bytes();
        }
        Unsubscribed::Closed { key }
    }

    /// How many of `count` samples, the first of them, [`Self::offer`] would take now, so that none is encoded for nothing. Those
    /// that it would not are counted as throttled.
    pub fn wants(&mut self, now: Duration, key: StreamKey, count: usize) -> usize {
        let Some(stream) = stream_of(&mut self.slots, key) else { return 0 };
        let StreamSettings { queue_length, throttle_rate, .. } = stream.settings;
        let wanted = match queue_length {
            0 if stream.due(now) > now => 0,
            0 if !throttle_rate.is_zero() => count.min(1),
            _ => count,
        };
        stream.status.throttled += (count - wanted) as u64;
        wanted
    }

    /// Lets a sample wait, of `bytes` bytes; `false` where it was dropped because it came before its time.
    pub fn offer(&mut self, now: Duration, key: StreamKey, sample: T, bytes: usize) -> bool {
        let Some(stream) = stream_of(&mut self.slots, key) else { return false };
        if stream.settings.queue_length == 0 && stream.due(now) > now {
            stream.status.throttled += 1;
            return false;
        }
        self.push(now, key, Waiting { sample, bytes, is_kept: false })
    }

    /// Lets a sample wait that its publisher keeps for those who come later. Whoever misses it may never get another, so that it is
    /// sent whatever the throttle rate, and no newer one pushes it out for the queue length: only where as many wait as may where
    /// `queue_length` is 0, or too many bytes.
    pub fn offer_kept(&mut self, now: Duration, key: StreamKey, sample: T, bytes: usize) -> bool {
        let samples_max = self.limits.samples_max;
        let Some(stream) = stream_of(&mut self.slots, key) else { return false };
        let is_kept = stream.kept < samples_max;
        self.push(now, key, Waiting { sample, bytes, is_kept })
    }

    fn push(&mut self, now: Duration, key: StreamKey, waiting: Waiting<T>) -> bool {
        let Some(stream) = stream_of(&mut self.slots, key) else { return false };
        let bytes = waiting.bytes;
        while self.bytes + bytes > self.limits.bytes_max && self.bytes > 0 {
            let Some(freed) = stream.pop() else {
                stream.status.dropped += 1;
                return false;
            };
            self.bytes -= freed.bytes;
            stream.status.dropped += 1;
        }
        if stream.settings.queue_length == 0 {
            stream.last = Some(now);
        }
        stream.kept += usize::from(waiting.is_kept);
        stream.queue.push_back(waiting);
        self.bytes += bytes;
        self.bytes -= stream.shorten(now, self.limits.samples_max);
        if matches!(stream.listed, Some(Listed::At(_))) && stream.goes_now() {
            self.unlist(key);
        }
        self.list(now, key);
        true
    }

    /// The next sample to be sent, topics taking turns; `None` when none waits or its time has not come.
    pub fn take(&mut self, now: Duration) -> Option<(StreamKey, T)> {
        while let Some(&(at, key)) = self.timed.first()
            && at <= now
        {
            self.timed.pop_first();
            if let Some(stream) = stream_of(&mut self.slots, key) {
                stream.listed = Some(Listed::Ready);
                stream.ready = at;
                self.ready.push_back(key);
            }
        }
        let key = self.ready.pop_front()?;
        let stream = stream_of(&mut self.slots, key)?;
        stream.listed = None;
        let Waiting { sample, bytes, .. } = stream.pop()?;
        stream.status.taken += 1;
        if stream.settings.queue_length > 0 {
            stream.last = Some(now);
        }
        self.bytes -= bytes;
        if !stream.queue.is_empty() {
            self.list(now, key);
        }
        Some((key, sample))
    }

    /// Drops about `bytes` of what waits, the oldest samples of the topic of which the most waits, and then of the next; how many.
    pub fn shed(&mut self, bytes: usize) -> u64 {
        let (mut left, mut count) = (bytes, 0);
        while 0 < left {
            let waiting = self.slots.iter().map(|it| it.stream.as_ref().map_or(0, Stream::bytes));
            let most = waiting.enumerate().max_by_key(|(_, bytes)| *bytes);
            let Some((at, 1..)) = most else { break };
            let slot = &mut self.slots[at];
            let key = StreamKey { slot: at as u32, generation: slot.generation };
            let Some(stream) = &mut slot.stream else { break };
            while 0 < left
                && let Some(Waiting { bytes, .. }) = stream.pop()
            {
                left = left.saturating_sub(bytes);
                self.bytes -= bytes;
                stream.status.dropped += 1;
                count += 1;
            }
            if stream.queue.is_empty() {
                self.unlist(key);
            }
        }
        count
    }

    /// Whether [`Self::take`] would answer one.
    pub fn is_ready(&self, now: Duration) -> bool {
        !self.ready.is_empty() || self.timed.first().is_some_and(|(at, _)| *at <= now)
    }

    /// When the next sample may be taken that waits for its time.
    pub fn timeout(&self) -> Option<Duration> {
        self.timed.first().map(|(at, _)| *at)
    }

    /// How a stream is sent.
    pub fn settings(&self, key: StreamKey) -> Option<StreamSettings> {
        self.stream(key).map(|it| it.settings)
    }

    /// What happened to the samples of a stream.
    pub fn status(&self, key: StreamKey) -> Option<StreamStatus> {
        let stream = self.stream(key)?;
        Some(StreamStatus { waiting: stream.queue.len(), ..stream.status })
    }

    /// The stream of a topic.
    pub fn key(&self, topic: &str) -> Option<StreamKey> {
        self.topics.get(topic).copied()
    }

    /// The topic of a stream.
    pub fn topic(&self, key: StreamKey) -> Option<&str> {
        self.stream(key).map(|it| it.topic.as_str())
    }

    /// Every stream with its topic, for a report and for when the client has gone.
    pub fn streams(&self) -> impl Iterator<Item = (StreamKey, &str)> {
        self.topics.iter().map(|(topic, key)| (*key, topic.as_str()))
    }

    /// Bounds what waits from now on.
    pub(super) fn limit_bytes(&mut self, bytes_max: usize) {
        self.limits.bytes_max = bytes_max;
    }

    /// What waits, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    fn insert(&mut self, stream: Stream<T>) -> StreamKey {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, stream: None });
            // There are as many as there may be topics.
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        place.stream = Some(stream);
        StreamKey { slot, generation: place.generation }
    }

    fn remove(&mut self, key: StreamKey) -> Option<Stream<T>> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.slot);
        slot.stream.take()
    }

    fn stream(&self, key: StreamKey) -> Option<&Stream<T>> {
        let slot = self.slots.get(key.slot as usize)?;
        slot.stream.as_ref().filter(|_| slot.generation == key.generation)
    }

    /// Finds what fits all subscriptions to the topic, after they have changed.
    fn settle(&mut self, now: Duration, key: StreamKey) -> StreamSettings {
        let Some(stream) = stream_of(&mut self.slots, key) else {
            return StreamSettings::default();
        };
        let merged = stream.asked.values().copied().reduce(|a, b| StreamSettings {
            throttle_rate: a.throttle_rate.min(b.throttle_rate),
            queue_length: a.queue_length.min(b.queue_length),
            fragment_size: a.fragment_size.into_iter().chain(b.fragment_size).min(),
            compression: a.compression.max(b.compression),
        });
        stream.settings = merged.unwrap_or_default();
        let settings = stream.settings;
        self.bytes -= stream.shorten(now, self.limits.samples_max);
        self.unlist(key);
        self.list(now, key);
        settings
    }

    /// Lists a stream of which a sample waits.
    fn list(&mut self, now: Duration, key: StreamKey) {
        let Some(stream) = stream_of(&mut self.slots, key) else { return };
        if stream.queue.is_empty() || stream.listed.is_some() {
            return;
        }
        let due = if stream.goes_now() { now } else { stream.due(now) };
        if due > now {
            stream.listed = Some(Listed::At(due));
            self.timed.insert((due, key));
        } else {
            stream.listed = Some(Listed::Ready);
            stream.ready = now;
            self.ready.push_back(key);
        }
    }

    fn unlist(&mut self, key: StreamKey) {
        let Some(stream) = stream_of(&mut self.slots, key) else { return };
        match stream.listed.take() {
            Some(Listed::Ready) => self.ready.retain(|it| *it != key),
            Some(Listed::At(at)) => drop(self.timed.remove(&(at, key))),
            None => (),
        }
    }
}

/// The stream, of the slots alone, since the other members of [`Subscriptions`] are needed beside it.
fn stream_of<T>(slots: &mut [Slot<T>], key: StreamKey) -> Option<&mut Stream<T>> {
    let slot = slots.get_mut(key.slot as usize)?;
    slot.stream.as_mut().filter(|_| slot.generation == key.generation)
}

impl<T> Stream<T> {
    /// When the next sample may go.
    fn due(&self, now: Duration) -> Duration {
        let throttle_rate = self.settings.throttle_rate;
        match self.last {
            Some(last) if !throttle_rate.is_zero() => last.saturating_add(throttle_rate),
            _ => now,
        }
    }

    /// Whether the first that waits need not wait for its time. What may not wait was let through when it came.
    fn goes_now(&self) -> bool {
        self.settings.queue_length == 0 || self.queue.front().is_some_and(|it| it.is_kept)
    }

    /// The oldest.
    fn pop(&mut self) -> Option<Waiting<T>> {
        let waiting = self.queue.pop_front()?;
        self.kept -= usize::from(waiting.is_kept);
        Some(waiting)
    }

    /// What waits.
    fn bytes(&self) -> usize {
        self.queue.iter().map(|it| it.bytes).sum()
    }

    /// Drops the oldest that are too many; how many bytes that frees.
    fn shorten(&mut self, now: Duration, samples_max: usize) -> usize {
        let samples_max = match self.settings.queue_length {
            0 => samples_max,
            length => usize::try_from(length).unwrap_or(usize::MAX),
        };
        let excess = (self.queue.len() - self.kept).saturating_sub(samples_max.max(1));
        // Within the time in which the client wants no more than one, the newest takes the place of the others.
        let throttle_rate = self.settings.throttle_rate;
        let is_early = match self.listed {
            Some(Listed::At(_)) => true,
            Some(Listed::Ready) => now < self.ready.saturating_add(throttle_rate),
            None => !throttle_rate.is_zero(),
        };
        match is_early {
            true => self.status.throttled += excess as u64,
            false => self.status.dropped += excess as u64,
        }
        if self.kept == 0 {
            return self.queue.drain(..excess).map(|it| it.bytes).sum();
        }
        let mut freed = 0;
        for _ in 0..excess {
            let oldest = self.queue.iter().position(|it| !it.is_kept);
            freed += oldest.and_then(|at| self.queue.remove(at)).map_or(0, |it| it.bytes);
        }
        freed
    }
}
