//! Recording what topics carry.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcap::records::MessageHeader;
use tsuji::{
    Context, EndpointInfo, EndpointKind, GuardCondition, Node, RawSample, RawSubscription, RawType,
    SubscriptionEvent, WaitList, Waitable,
};
use tsuji_core::{Qos, TopicPattern};
use tsuji_msg::{Resolver, TypeSet};
use tsuji_platform::clock;

use crate::output::{Output, Split};
use crate::write::Compression;
use crate::{Result, offered};

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
}

/// Which topics are recorded.
#[derive(Clone, Debug, Default)]
pub struct TopicFilter {
    /// Those that one of these is for; all that are not hidden if there is none.
    pub wanted: Vec<TopicPattern>,
    /// But not those that one of these is for.
    pub excluded: Vec<TopicPattern>,
    /// Whether hidden ones count among all.
    pub hidden: bool,
}

impl TopicFilter {
    /// Whether `topic` is recorded.
    pub fn has(&self, topic: &str) -> bool {
        let any = |of: &[TopicPattern]| of.iter().any(|it| it.matches(topic));
        let is_hidden = topic.split('/').any(|it| it.starts_with('_'));
        let is_wanted =
            if self.wanted.is_empty() { self.hidden || !is_hidden } else { any(&self.wanted) };
        is_wanted && !any(&self.excluded)
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
    news: Arc<Mutex<Vec<String>>>,
    messages: u64,
}

struct Topic {
    subscription: RawSubscription,
    /// By place in the output.
    channel: usize,
    received: u64,
}

/// What is told of faults; when nobody asks, the rest is not kept.
const NEWS_MAX: usize = 1000;

impl Recorder {
    /// Makes the file, or the folder if it is to be split, and joins the topics that are there. `definitions` has those of
    /// their types.
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

    /// Waits at most so long for something to happen, then writes all that came and joins topics that are new. After an
    /// error nothing more is written; what was written before it is readable.
    pub fn turn(&mut self, at_most: Duration) -> Result<()> {
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
        Ok(())
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
    pub fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes what waits, the counts and the end. Those who publish faster than the disk writes are not waited for:
    /// what came after the call is left out.
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
        self.output.finish(METADATA, counts)?;
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

    /// Subscribes to what is published, wanted and not recorded yet.
    fn join(&mut self) -> Result<()> {
        let graph = self.context.graph();
        let mut offers: BTreeMap<&str, Vec<&EndpointInfo>> = BTreeMap::new();
        for it in graph.endpoints.iter().filter(|it| it.kind == EndpointKind::Publisher) {
            offers.entry(&it.topic).or_default().push(it);
        }
        let known = self.topics.len();
        for (name, publishers) in offers {
            let is_known = self.topics.iter().any(|it| it.subscription.topic() == name);
            if is_known || self.refused.contains(name) || !self.options.topics.has(name) {
                continue;
            }
            if let Err(why) = self.subscribe(name, &publishers)? {
                self.refused.insert(name.to_owned());
                note(&self.news, format!("{name} is not recorded: {why}"));
            }
        }
        if known < self.topics.len() { self.output.write_list() } else { Ok(()) }
    }

    /// Subscribes to one topic; what keeps this one alone from being recorded is the inner error.
    fn subscribe(
        &mut self,
        name: &str,
        publishers: &[&EndpointInfo],
    ) -> Result<std::result::Result<(), String>> {
        let first = publishers[0];
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
        let offers: Vec<Qos> = publishers.iter().map(|it| it.qos).collect();
        let news = Arc::clone(&self.news);
        let topic = name.to_owned();
        let raw = RawType { name: ty.name().to_string(), hash: ty.hash().to_owned() };
        let subscription = self
            .node
            .raw_subscription(name, raw)
            .qos(offered::request(&offers, self.options.depth))
            .note_events(move |event| match event {
                SubscriptionEvent::IncompatibleQos { mismatches, .. } => note(
                    &news,
                    format!("{topic}: a publisher is not recorded: {}", mismatches.join("; ")),
                ),
                SubscriptionEvent::IncompatibleType { mismatch, .. } => {
                    note(&news, format!("{topic}: a publisher is not recorded: {mismatch}"));
                }
                _ => {}
            })
            .build()?;
        let channel = self.output.channel(name, ty, offers)?;
        self.topics.push(Topic { subscription, channel, received: 0 });
        Ok(Ok(()))
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("messages", &self.messages).finish_non_exhaustive()
    }
}

/// The name of the record that has the counts.
const METADATA: &str = "tsuji";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_topics() {
        let filter = |wanted: &[&str], excluded: &[&str], hidden| {
            let patterns = |of: &[&str]| of.iter().map(|it| it.parse().unwrap()).collect();
            TopicFilter { wanted: patterns(wanted), excluded: patterns(excluded), hidden }
        };
        let all = filter(&[], &["/c/**"], false);
        assert!(all.has("/a") && !all.has("/_a") && !all.has("/a/_b") && !all.has("/c/d"));
        assert!(filter(&[], &[], true).has("/a/_b"));
        let some = filter(&["/c*/image", "/a"], &["/cx/image"], false);
        assert!(
            some.has("/c1/image") && some.has("/a") && !some.has("/b") && !some.has("/cx/image")
        );
    }
}
