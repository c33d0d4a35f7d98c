//! Recording what topics carry.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcap::records::MessageHeader;
use tsuji::{
    Context, EndpointInfo, EndpointKind, GuardCondition, Node, RawSample, RawSubscription, RawType,
    SubscriptionEvent, SubscriptionOptions, WaitList, Waitable,
};
use tsuji_core::{Durability, Qos, TopicPattern};
use tsuji_msg::{Resolver, TypeSet};
use tsuji_platform::clock;

use crate::Result;
use crate::filter::TopicFilter;
use crate::offered::{self, Layout};
use crate::output::{Output, Split};
use crate::write::Compression;

/// What is recorded, and how.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Which topics.
    pub topics: TopicFilter,
    /// How chunks are packed.
    pub compression: Compression,
    /// Messages of a topic that wait to be written. When there are more, the oldest are displaced and counted.
    pub depth: u32,
    /// Whether a file that exists is replaced. A folder never is.
    pub replace: bool,
    /// When it goes on in another file. If it ever does, the path is that of a folder.
    pub split: Split,
    /// What topics are asked for instead of what fits their publishers, by full name; the depth is that of the profile.
    pub qos: BTreeMap<String, Qos>,
    /// Whether topics that appear later are left out.
    pub no_discovery: bool,
    /// Whether topics are recorded that have subscriptions and no publisher yet.
    pub unpublished: bool,
    /// Whether topics are left out that have no subscription but those of recorders.
    pub ignore_leaf_topics: bool,
    /// Which tools of ROS 2 are to read it.
    pub layout: Layout,
    /// The distribution that it says it was recorded with; empty if it does not say.
    pub distro: String,
    /// What the user says of it.
    pub custom_data: BTreeMap<String, String>,
}

impl Default for RecordOptions {
    /// All topics, not packed, 100 messages of each that wait, in one new file for tools of Jazzy and later.
    fn default() -> Self {
        Self {
            topics: TopicFilter::default(),
            compression: Compression::None,
            depth: 100,
            replace: false,
            split: Split::default(),
            qos: BTreeMap::new(),
            no_discovery: false,
            unpublished: false,
            ignore_leaf_topics: false,
            layout: Layout::default(),
            distro: String::new(),
            custom_data: BTreeMap::new(),
        }
    }
}

/// How far a recording has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Messages written.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Of each topic, by name.
    pub topics: BTreeMap<String, TopicCounts>,
}

impl Progress {
    /// Messages that are not in the file: lost on their way, or displaced from a full queue.
    pub fn missing(&self) -> u64 {
        self.topics.values().map(|it| it.lost + it.displaced).sum()
    }
}

/// What came of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicCounts {
    /// Its type.
    pub type_name: String,
    /// Messages written.
    pub received: u64,
    /// Messages that never came.
    pub lost: u64,
    /// Messages that came and were displaced by newer ones before they could be written.
    pub displaced: u64,
}

/// Writes what topics carry to a file. Its thread is the caller's: nothing is written but in [`turn`](Self::turn).
pub struct Recorder {
    context: Context,
    node: Node,
    options: RecordOptions,
    types: TypeSet<Box<dyn Resolver + Send + Sync>>,
    output: Output,
    waits: WaitList,
    graph: GuardCondition,
    stop: Arc<GuardCondition>,
    topics: Vec<Topic>,
    /// Topics that were looked at and are not recorded.
    refused: HashSet<String>,
    /// Whether the topics that were there at the beginning are joined.
    has_looked: bool,
    news: Arc<Mutex<Vec<String>>>,
    messages: u64,
}

struct Topic {
    subscription: RawSubscription,
    /// By place in the output.
    channel: usize,
    /// What the most publishers that were there together offer.
    offers: Vec<Qos>,
    received: u64,
}

/// What is told of faults; when nobody asks, the rest is not kept.
const NEWS_MAX: usize = 1000;

impl Recorder {
    /// Makes the file, or the folder if it is to be split, and joins the topics that are there.
    ///
    /// `definitions` has those of their types. A topic whose type is not known is no error, but one of the
    /// [`warnings`](Self::warnings).
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the file exists and [`RecordOptions::replace`] is not
    ///   set, or the folder exists.
    /// - [`ErrorKind::Disk`](crate::ErrorKind::Disk) if the file, or the folder and its list, cannot be made or
    ///   written.
    /// - [`ErrorKind::Format`](crate::ErrorKind::Format) if MCAP cannot hold what is written.
    /// - [`ErrorKind::Node`](crate::ErrorKind::Node) if tsuji refuses a subscription or the means to wait, or the
    ///   context is shut down.
    pub fn create(
        node: &Node,
        path: &Path,
        options: RecordOptions,
        definitions: Box<dyn Resolver + Send + Sync>,
    ) -> Result<Self> {
        let context = node.context().clone();
        let waits = WaitList::new(&context)?;
        let graph = context.graph_guard()?;
        let stop = Arc::new(GuardCondition::new(&context)?);
        let output = Output::create(path, &options)?;
        let mut recorder = Self {
            context,
            node: node.clone(),
            options,
            types: TypeSet::new(definitions),
            output,
            waits,
            graph,
            stop,
            topics: Vec::new(),
            refused: HashSet::new(),
            has_looked: false,
            news: Arc::default(),
            messages: 0,
        };
        recorder.join()?;
        Ok(recorder)
    }

    /// To be triggered, by any thread, to end the turn that waits.
    pub fn waker(&self) -> Arc<GuardCondition> {
        Arc::clone(&self.stop)
    }

    /// Waits at most so long for something to happen, then writes all that came and joins topics that are new.
    ///
    /// What has come is in the file, and safe from the end of this process, a second later if turns follow each
    /// other. After an error nothing more is written; what was written before it is readable.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Disk`](crate::ErrorKind::Disk) if the disk refuses, or if more is to be written after an
    ///   error.
    /// - [`ErrorKind::Format`](crate::ErrorKind::Format) if MCAP cannot hold what is written.
    /// - [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the next file of a folder exists already.
    /// - [`ErrorKind::Node`](crate::ErrorKind::Node) if tsuji refuses a subscription, a message or to wait, or the
    ///   context is shut down.
    pub fn turn(&mut self, at_most: Duration) -> Result<()> {
        // Of a quiet topic no further message ends the chunk.
        let chunk_ends = self.output.chunk_ends();
        let left = chunk_ends.map(|it| it.saturating_duration_since(Instant::now()));
        let at_most = left.map_or(at_most, |it| it.min(at_most));
        let ready = {
            let mut entities: Vec<&dyn Waitable> = vec![&self.graph, &*self.stop];
            entities.extend(self.topics.iter().map(|it| &it.subscription as &dyn Waitable));
            self.waits.wait(&entities, Some(at_most))?.to_vec()
        };
        for place in ready {
            match place {
                0 => self.join()?,
                1 => {}
                topic => self.drain(topic - 2, A_TURN)?,
            }
        }
        self.output.end_old_chunk(Instant::now())
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        let mut topics = BTreeMap::new();
        for Topic { subscription, received, .. } in &self.topics {
            let counters = subscription.counters();
            let counts = TopicCounts {
                type_name: subscription.type_name().to_owned(),
                received: *received,
                lost: counters.lost,
                displaced: counters.displaced,
            };
            topics.insert(subscription.topic().to_owned(), counts);
        }
        Progress { messages: self.messages, bytes: self.output.bytes(), topics }
    }

    /// What kept or keeps something from being recorded, since the last call; a line each.
    pub fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes what waits, the counts and the end.
    ///
    /// Those who publish faster than the disk writes are not waited for: what came after the call is left out.
    ///
    /// # Errors
    ///
    /// Those of [`turn`](Self::turn), for what is still to be taken and written.
    pub fn finish(mut self) -> Result<Progress> {
        for topic in 0..self.topics.len() {
            self.drain(topic, Duration::MAX)?;
        }
        let progress = self.progress();
        let mut counts = BTreeMap::new();
        for (name, it) in &progress.topics {
            for (what, count) in
                [("received", it.received), ("lost", it.lost), ("displaced", it.displaced)]
            {
                counts.insert(format!("{name} {what}"), count.to_string());
            }
        }
        self.output.finish(counts)?;
        Ok(progress)
    }

    fn drain(&mut self, topic: usize, at_most: Duration) -> Result<()> {
        let Self { topics, output, messages, .. } = self;
        let topic = &mut topics[topic];
        // A publisher that never rests must keep neither the others waiting nor the end.
        let began = Instant::now();
        let mut left = self.options.depth;
        while 0 < left && began.elapsed() < at_most {
            left -= 1;
            let Some(RawSample { info, bytes }) = topic.subscription.take_bytes()? else { break };
            let since_ns = clock::monotonic_ns().saturating_sub(info.received_mono_ns);
            let received_ns = clock::wall_ns().saturating_sub_unsigned(since_ns);
            let header = MessageHeader {
                // The output knows it.
                channel_id: 0,
                sequence: info.sequence as u32,
                log_time: u64::try_from(received_ns).unwrap_or(0),
                publish_time: u64::try_from(info.source_wall_ns).unwrap_or(0),
            };
            output.message(topic.channel, header, &bytes)?;
            topic.received += 1;
            *messages += 1;
        }
        Ok(())
    }

    /// Subscribes to what is published, wanted and not recorded yet, and notes what more publishers offer.
    fn join(&mut self) -> Result<()> {
        let graph = self.context.graph();
        let mut offers: BTreeMap<&str, Vec<&EndpointInfo>> = BTreeMap::new();
        let mut asked: BTreeMap<&str, &EndpointInfo> = BTreeMap::new();
        let own = self.node.fully_qualified_name();
        for it in &graph.endpoints {
            match it.kind {
                EndpointKind::Publisher => offers.entry(&it.topic).or_default().push(it),
                EndpointKind::Subscription if it.node != own => drop(asked.insert(&it.topic, it)),
                _ => {}
            }
        }
        if self.options.unpublished {
            for topic in asked.keys() {
                offers.entry(topic).or_default();
            }
        }
        let mut has_more = false;
        for (name, publishers) in offers {
            if let Some(topic) = self.topics.iter_mut().find(|it| it.subscription.topic() == name) {
                let known = topic.offers.len();
                offered::merge(&mut topic.offers, &offers_of(&publishers));
                if known < topic.offers.len() {
                    self.output.offer(topic.channel, topic.offers.clone());
                    has_more = true;
                }
                continue;
            }
            let Some(first) = publishers.first().or_else(|| asked.get(name)) else { continue };
            if self.refused.contains(name)
                || (self.options.no_discovery && self.has_looked)
                || (self.options.ignore_leaf_topics && !asked.contains_key(name))
                || !self.options.topics.has(name, &first.type_name)
            {
                continue;
            }
            match self.subscribe(name, first, &publishers)? {
                Ok(()) => has_more = true,
                Err(why) => {
                    self.refused.insert(name.to_owned());
                    note(&self.news, format!("{name} is not recorded: {why}"));
                }
            }
        }
        self.has_looked = true;
        if has_more { self.output.write_list() } else { Ok(()) }
    }

    /// Those of the topics that are asked for by their whole names which nobody publishes, as far as is known: not those that
    /// a pattern or an action stands for.
    pub fn unpublished(&self) -> Vec<String> {
        let wanted = self.options.topics.wanted.iter().map(TopicPattern::as_str);
        let names = wanted.filter(|it| !it.contains('*')).map(str::to_owned);
        let of_services =
            self.options.topics.services.iter().map(|it| format!("{it}/_service_event"));
        let is_there = |name: &str| {
            self.refused.contains(name)
                || self.topics.iter().any(|it| it.subscription.topic() == name)
                || self
                    .context
                    .endpoints_of(name)
                    .iter()
                    .any(|it| it.kind == EndpointKind::Publisher)
        };
        names.chain(of_services).filter(|it| !is_there(it)).collect()
    }

    /// Subscribes to one topic; what keeps this one alone from being recorded is the inner error.
    fn subscribe(
        &mut self,
        name: &str,
        first: &EndpointInfo,
        publishers: &[&EndpointInfo],
    ) -> Result<std::result::Result<(), String>> {
        if SUBSCRIPTIONS_MAX <= self.topics.len() {
            return Ok(Err(format!("a recording has at most {SUBSCRIPTIONS_MAX} topics")));
        }
        let ty = match self.types.load(&first.type_name) {
            Ok(ty) => ty,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if !first.type_hash.is_empty() && first.type_hash != ty.hash() {
            return Ok(Err(format!(
                "its {ty} is not the one known here: published {}, known {}",
                first.type_hash,
                ty.hash()
            )));
        }
        let offers = offers_of(publishers);
        let qos = self.options.qos.get(name).copied();
        let qos = qos.unwrap_or_else(|| offered::request(&offers, self.options.depth));
        if qos.durability == Durability::Volatile
            && offers.iter().any(|it| it.durability == Durability::TransientLocal)
            && !self.options.qos.contains_key(name)
        {
            note(
                &self.news,
                format!(
                    "{name}: not all publishers latch, so what was latched before is not recorded"
                ),
            );
        }
        let news = Arc::clone(&self.news);
        let topic = name.to_owned();
        let raw = RawType::new(ty.name().to_string()).hash(ty.hash());
        let tell = move |event: &SubscriptionEvent| {
            let why = match event {
                SubscriptionEvent::IncompatibleQos { mismatches, .. } => mismatches.join("; "),
                SubscriptionEvent::IncompatibleType { mismatch, .. } => mismatch.to_string(),
                _ => return,
            };
            note(&news, format!("{topic}: a publisher is not recorded: {why}"));
        };
        let options = SubscriptionOptions::default().qos(qos).note_events(tell);
        let subscription = self.node.create_polled_raw_subscription(name, raw, options)?;
        let channel = self.output.channel(name, ty, offers.clone())?;
        self.topics.push(Topic { subscription, channel, offers, received: 0 });
        Ok(Ok(()))
    }
}

fn offers_of(publishers: &[&EndpointInfo]) -> Vec<Qos> {
    publishers.iter().map(|it| it.qos).collect()
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("messages", &self.messages).finish_non_exhaustive()
    }
}

/// How long one topic is written before the others have their turn.
const A_TURN: Duration = Duration::from_millis(50);

/// What one thread can wait for.
const SUBSCRIPTIONS_MAX: usize = 4000;

fn note(news: &Mutex<Vec<String>>, line: String) {
    let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
    if news.len() < NEWS_MAX {
        news.push(line);
    }
}
