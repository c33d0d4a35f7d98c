//! Playing a recording.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tsuji::{
    Context, ErrorKind as NodeErrorKind, GuardCondition, Node, RawPublisher, RawType, WaitList,
};
use tsuji_core::TopicPattern;
use tsuji_core::names;

use crate::played_clock::{CLOCK, PlayedClock};
use crate::{Error, ErrorKind, Recording, Result, offered};

/// What is played, and how.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// How many times as fast as it was recorded; above 0.
    pub rate: f64,
    /// How much is left out at the beginning.
    pub start_offset: Duration,
    /// Which topics, by their recorded names; all if there is none.
    pub topics: Vec<TopicPattern>,
    /// Other names for some.
    pub remap: Vec<Remap>,
    /// How often a second the time of the recording is published on `/clock`, above 0 and at most
    /// [`CLOCK_HZ_MAX`](crate::CLOCK_HZ_MAX); never if nothing is said. What was recorded there is left out then.
    pub clock_hz: Option<f64>,
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            rate: 1.0,
            start_offset: Duration::ZERO,
            topics: Vec::new(),
            remap: Vec::new(),
            clock_hz: None,
        }
    }
}

/// Another name for a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The recorded name.
    pub from: String,
    /// The name that it is played under.
    pub to: String,
}

impl std::str::FromStr for Remap {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let Some((from, to)) = text.split_once(":=") else {
            return Err("allowed: old:=new, such as /camera/image:=/played/image".to_owned());
        };
        let full =
            |it: &str| names::expand_topic(it, "tsuji", "/").map_err(|error| error.to_string());
        Ok(Self { from: full(from)?, to: full(to)? })
    }
}

/// What was played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Messages published.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Messages that are none, such as empty ones, and were left out.
    pub refused: u64,
}

/// Publishes what was recorded, at the pace at which it came.
pub struct Player {
    context: Context,
    recording: Recording,
    options: PlayOptions,
    /// By place of the topic.
    publishers: HashMap<usize, RawPublisher>,
    skipped: Vec<String>,
    clock: Option<PlayedClock>,
    waits: WaitList,
    never: GuardCondition,
}

/// A wait for subscriptions to have all that was sent.
const LEAVE_PATIENCE: Duration = Duration::from_secs(5);

impl Player {
    /// Makes a publisher of each topic, with what was offered when it was recorded.
    pub fn new(node: &Node, recording: Recording, options: PlayOptions) -> Result<Self> {
        if !(options.rate.is_finite() && 0.0 < options.rate) {
            let text = format!("rate {}; allowed: a number above 0", options.rate);
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let clock = options.clock_hz.map(|hz| PlayedClock::new(node, hz)).transpose()?;
        let context = node.context().clone();
        let mut publishers = HashMap::new();
        let mut skipped = Vec::new();
        for (place, topic) in recording.topics().iter().enumerate() {
            if !options.topics.is_empty()
                && !options.topics.iter().any(|it| it.matches(&topic.name))
            {
                continue;
            }
            if let Some(why) = &topic.unplayable {
                skipped.push(format!("{} is not played: {why}", topic.name));
                continue;
            }
            let remap = options.remap.iter().find(|it| it.from == topic.name);
            let name = remap.map_or(&topic.name, |it| &it.to);
            if clock.is_some() && name == CLOCK {
                skipped.push(format!("{} is not played: the time is told on {CLOCK}", topic.name));
                continue;
            }
            let raw = RawType { name: topic.type_name.clone(), hash: topic.type_hash.clone() };
            let qos = offered::together(&topic.offered);
            publishers.insert(place, node.raw_publisher(name, raw).qos(qos).build()?);
        }
        let unknown =
            options.remap.iter().find(|it| recording.topics().iter().all(|t| t.name != it.from));
        if let Some(Remap { from, .. }) = unknown {
            let text = format!("remap {from}: the recording has no such topic");
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        if publishers.is_empty() && !options.topics.is_empty() {
            let names: Vec<&str> = recording.topics().iter().map(|it| it.name.as_str()).collect();
            let text = format!("no topic of the recording is meant; it has {}", names.join(", "));
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let (waits, never) = (WaitList::new(&context)?, GuardCondition::new(&context)?);
        Ok(Self { context, recording, options, publishers, skipped, clock, waits, never })
    }

    /// Why topics are not played, a line each.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// What is played.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The fewest subscriptions that a topic has which is played; `usize::MAX` if none is played, so that nobody waits for some.
    pub fn matched(&self) -> usize {
        self.publishers.values().map(RawPublisher::matched).min().unwrap_or(usize::MAX)
    }

    /// Plays all of it once, or until the context is shut down. What a subscription keeps all of waits for it.
    pub fn play(&mut self) -> Result<Played> {
        let mut played = Played::default();
        let Self { context, recording, options, publishers, clock, waits, never, .. } = self;
        let first_ns = recording.summary().first_ns;
        let offset_ns = u64::try_from(options.start_offset.as_nanos()).unwrap_or(u64::MAX);
        let from_ns = first_ns.saturating_add(offset_ns);
        let mut messages = recording.messages(if offset_ns == 0 { 0 } else { from_ns }).peekable();
        // To read as far as the first message takes a while, which is not of the recording's time.
        messages.peek();
        if let Some(clock) = clock {
            clock.begin();
        }
        let began = Instant::now();
        let mut pace = Pace { began, from_ns, rate: options.rate, clock, waits, never };
        for message in messages {
            let message = message?;
            // Asked here too, as what nobody wants is not waited for.
            if !context.is_ok() {
                break;
            }
            let Some(publisher) = publishers.get(&message.topic) else { continue };
            if !pace.wait_until(message.log_ns)? {
                break;
            }
            match publish(context, publisher, message.data()) {
                Ok(()) => {
                    played.messages += 1;
                    played.bytes += message.data().len() as u64;
                }
                Err(_) if !context.is_ok() => break,
                Err(error) if error.kind() == NodeErrorKind::Invalid => played.refused += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(played)
    }

    /// Waits, for a while, until every subscription has all that was played.
    pub fn leave(&self) {
        // Whoever did not take it in so long does not any more.
        for publisher in self.publishers.values().filter(|_| self.context.is_ok()) {
            let _ = publisher.wait_for_acknowledgements(LEAVE_PATIENCE);
        }
    }
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player").field("recording", &self.recording).finish_non_exhaustive()
    }
}

/// When what is played.
struct Pace<'a> {
    began: Instant,
    /// The time of the recording when it began.
    from_ns: u64,
    rate: f64,
    clock: &'a mut Option<PlayedClock>,
    waits: &'a mut WaitList,
    never: &'a GuardCondition,
}

impl Pace<'_> {
    /// Waits until it is `log_ns` in the recording, and tells the time meanwhile. `false` when the context is shut down.
    fn wait_until(&mut self, log_ns: u64) -> Result<bool> {
        let after_s = log_ns.saturating_sub(self.from_ns) as f64 / 1e9 / self.rate;
        let due = Duration::try_from_secs_f64(after_s).unwrap_or(Duration::MAX);
        loop {
            match self.step(due) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.kind() == NodeErrorKind::Closed => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Tells the time if that is due, then waits for what comes next; `true` once `due` has come.
    fn step(&mut self, due: Duration) -> tsuji::Result<bool> {
        let since = self.began.elapsed();
        let mut left = due.saturating_sub(since);
        if let Some(clock) = &mut self.clock {
            let played_ns = (since.min(due).as_secs_f64() * self.rate * 1e9) as u64;
            clock.tick(since, self.from_ns.saturating_add(played_ns))?;
            left = left.min(clock.next().saturating_sub(since));
        }
        if due <= since {
            return Ok(true);
        }
        self.waits.wait(&[self.never], Some(left)).map(|_| false)
    }
}

/// Publishes one message, however long a subscription that keeps all makes it wait.
fn publish(context: &Context, publisher: &RawPublisher, bytes: &[u8]) -> tsuji::Result<()> {
    loop {
        match publisher.publish_bytes(bytes) {
            Err(error) if error.kind() == NodeErrorKind::Busy && context.is_ok() => {}
            result => return result,
        }
    }
}
