//! Playing a recording.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tsuji::{
    Context, EndpointInfo, EndpointKind, ErrorKind as NodeErrorKind, GuardCondition, Node,
    RawPublisher, RawType, WaitList,
};
use tsuji_core::names;
use tsuji_core::{Qos, TopicPattern};

use crate::filter::TopicFilter;
use crate::played_clock::{CLOCK, PlayedClock};
use crate::{Error, ErrorKind, Recording, Result, offered};

/// What is played, and how.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// How many times as fast as it was recorded; above 0. Below 0.01 it is 0.01, above a million a million.
    pub rate: f64,
    /// How much is left out at the beginning.
    pub start_offset: Duration,
    /// When it ends, in nanoseconds since the Unix epoch; with the last message if nothing is said.
    pub until_ns: Option<u64>,
    /// Which topics, by their recorded names, in full.
    pub topics: TopicFilter,
    /// Other names for some.
    pub remap: Vec<Remap>,
    /// What is offered instead of what was when it was recorded, by the recorded name, in full.
    pub qos: BTreeMap<String, Qos>,
    /// How long is waited before each time it is played.
    pub delay: Duration,
    /// Whether it begins paused.
    pub paused: bool,
    /// How often a second the time of the recording is published on `/clock`, above 0 and at most
    /// [`CLOCK_HZ_MAX`](crate::CLOCK_HZ_MAX); never if nothing is said. What was recorded there is left out then.
    pub clock_hz: Option<f64>,
    /// Of which topics each message is preceded by its time on `/clock`.
    pub clock_topics: Vec<TopicPattern>,
    /// How long subscriptions that are there before the first message have to match.
    pub match_patience: Duration,
}

impl Default for PlayOptions {
    /// All of it once, as it was recorded.
    fn default() -> Self {
        Self {
            rate: 1.0,
            start_offset: Duration::ZERO,
            until_ns: None,
            topics: TopicFilter { hidden: true, ..TopicFilter::default() },
            remap: Vec::new(),
            qos: BTreeMap::new(),
            delay: Duration::ZERO,
            paused: false,
            clock_hz: None,
            clock_topics: Vec::new(),
            match_patience: Duration::from_secs(3),
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
    publishers: HashMap<usize, Playing>,
    skipped: Vec<String>,
    clock: Option<PlayedClock>,
    waits: WaitList,
    controls: Controls,
    has_met: bool,
}

struct Playing {
    publisher: RawPublisher,
    /// Whether each message is preceded by its time.
    tells_time: bool,
}

/// A wait for subscriptions to have all that was sent.
const LEAVE_PATIENCE: Duration = Duration::from_secs(5);

/// The slowest and the fastest that it is played.
const RATE_MIN: f64 = 0.01;
const RATE_MAX: f64 = 1_000_000.0;

/// How often is looked for subscriptions that have come to be known.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Player {
    /// Makes a publisher of each topic, with what was offered when it was recorded.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if [`PlayOptions::rate`] or [`PlayOptions::clock_hz`] is out of range, a topic that
    /// is to be remapped is not in the recording, or none of those that [`PlayOptions::topics`] asks for is there
    /// and can be played; [`ErrorKind::Node`] if tsuji refuses a publisher, such as one whose name or QoS is not
    /// valid, or the means to wait, or the context is shut down.
    pub fn new(node: &Node, recording: Recording, options: PlayOptions) -> Result<Self> {
        if !(options.rate.is_finite() && 0.0 < options.rate) {
            let text = format!("rate {}; allowed: a number above 0", options.rate);
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let tells_time = options.clock_hz.is_some() || !options.clock_topics.is_empty();
        let clock = tells_time.then(|| PlayedClock::new(node, options.clock_hz)).transpose()?;
        let context = node.context().clone();
        let mut publishers = HashMap::new();
        let mut skipped = Vec::new();
        for (place, topic) in recording.topics().iter().enumerate() {
            let full = topic.full_name();
            if !options.topics.has(&full, &topic.type_name) {
                continue;
            }
            if let Some(why) = &topic.unplayable {
                skipped.push(format!("{} is not played: {why}", topic.name));
                continue;
            }
            let remap = options.remap.iter().find(|it| it.from == full);
            let name = remap.map_or(&*full, |it| &it.to);
            if clock.is_some() && name == CLOCK {
                skipped.push(format!("{} is not played: the time is told on {CLOCK}", topic.name));
                continue;
            }
            let raw = RawType::new(topic.type_name.clone()).hash(topic.type_hash.clone());
            let said = options.qos.get(&*full).copied();
            let qos = said.unwrap_or_else(|| offered::together(&topic.offered));
            let publisher = node.create_raw_publisher(name, raw, qos)?;
            let tells_time = options.clock_topics.iter().any(|it| it.matches(&full));
            publishers.insert(place, Playing { publisher, tells_time });
        }
        let is_there = |name: &str| recording.topics().iter().any(|it| it.full_name() == name);
        if let Some(Remap { from, .. }) = options.remap.iter().find(|it| !is_there(&it.from)) {
            let text = format!("remap {from}: the recording has no such topic");
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        if publishers.is_empty() && !options.topics.says_nothing() {
            let names: Vec<_> = recording.topics().iter().map(|it| it.full_name()).collect();
            let text = format!("no topic of the recording is meant; it has {}", names.join(", "));
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let waits = WaitList::new(&context)?;
        let controls = Controls::new(&context, &options, &recording)?;
        let has_met = false;
        Ok(Self {
            context,
            recording,
            options,
            publishers,
            skipped,
            clock,
            waits,
            controls,
            has_met,
        })
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
        self.publishers.values().map(|it| it.publisher.matched()).min().unwrap_or(usize::MAX)
    }

    /// What pauses it, from any thread, and tells how far it is.
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Waits until every subscription that is known and fits is matched, so that it has the first message; at most
    /// [`PlayOptions::match_patience`]. Answers which topics had some that did not, a line each. [`play`](Self::play) does it
    /// before the first message if nobody has.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Node`] if tsuji refuses to wait. To be late, or that the context is shut down, is no error.
    pub fn meet(&mut self) -> Result<Vec<String>> {
        self.has_met = true;
        let deadline = Instant::now().checked_add(self.options.match_patience);
        let mut missed = Vec::new();
        for Playing { publisher, .. } in self.publishers.values() {
            loop {
                let expected = self.fitting(publisher);
                let left =
                    deadline.map_or(LOOK_AGAIN, |it| it.saturating_duration_since(Instant::now()));
                if expected <= publisher.matched() || !self.context.is_ok() {
                    break;
                }
                if left.is_zero() {
                    let (topic, matched) = (publisher.topic(), publisher.matched());
                    let seconds = self.options.match_patience.as_secs_f64();
                    missed.push(format!(
                        "{topic}: {matched} of {expected} subscriptions that are there matched within {seconds} s; the others \
                         may miss the first messages",
                    ));
                    break;
                }
                // Those that are known may become more or fewer meanwhile.
                match publisher.wait_for_subscriptions(expected, left.min(LOOK_AGAIN)) {
                    Err(error) if error.kind() == NodeErrorKind::Timeout => {}
                    Err(error) if error.kind() == NodeErrorKind::Closed => break,
                    result => result?,
                }
            }
        }
        missed.sort();
        Ok(missed)
    }

    /// How many subscriptions are known that a publisher is to match.
    fn fitting(&self, publisher: &RawPublisher) -> usize {
        let endpoints = self.context.endpoints_of(publisher.topic());
        let is_own = |it: &EndpointInfo| it.gid == publisher.gid();
        let Some(own) = endpoints.iter().find(|it| is_own(it)) else { return 0 };
        let subscriptions = endpoints.iter().filter(|it| it.kind == EndpointKind::Subscription);
        subscriptions.filter(|it| own.mismatches(it).is_empty()).count()
    }

    /// Plays all of it once, from where [`Controls::seek`] has it or else from its beginning; or until the context is shut down.
    /// Where it is to go meanwhile, it goes. What a subscription keeps all of waits for it.
    ///
    /// # Errors
    ///
    /// Those of [`meet`](Self::meet) and of [`Recording::check`]; [`ErrorKind::Node`] if tsuji refuses to publish
    /// or to wait. A message that is not valid is counted, and is no error.
    pub fn play(&mut self) -> Result<Played> {
        if !self.has_met {
            self.meet()?;
        }
        let mut played = Played::default();
        let (mut from_ns, _) = self.controls.span_ns();
        let mut delay = self.options.delay;
        self.controls.begin(from_ns);
        if let Some(sought_ns) = self.controls.take_seek() {
            (from_ns, delay) = (sought_ns, Duration::ZERO);
        }
        loop {
            match self.play_from(from_ns, delay, &mut played)? {
                Waited::Sought => {
                    from_ns = self.controls.take_seek().unwrap_or(from_ns);
                    delay = Duration::ZERO;
                }
                Waited::Due => {
                    self.controls.end();
                    return Ok(played);
                }
                Waited::Closed => return Ok(played),
            }
        }
    }

    /// Plays what comes from `from_ns` on, until it has ended, is to go elsewhere, or the context is shut down.
    fn play_from(&mut self, from_ns: u64, delay: Duration, played: &mut Played) -> Result<Waited> {
        let Self { context, recording, options, publishers, clock, waits, controls, .. } = self;
        let is_whole = from_ns <= recording.summary().first_ns;
        let until_ns = options.until_ns.unwrap_or(u64::MAX);
        let mut messages = recording.messages(if is_whole { 0 } else { from_ns }).peekable();
        // To read as far as the first message takes a while, which is not of the recording's time.
        messages.peek();
        let mut pace = Pace { began: Instant::now(), clock, waits, controls };
        if !delay.is_zero() {
            match pace.sleep(delay)? {
                Waited::Due => {}
                other => return Ok(other),
            }
        }
        if !pace.begin(from_ns) {
            return Ok(Waited::Sought);
        }
        for message in messages {
            let message = message?;
            // Asked here too, as what nobody wants is not waited for.
            if !context.is_ok() {
                return Ok(Waited::Closed);
            }
            if pace.controls.is_sought() {
                return Ok(Waited::Sought);
            }
            if until_ns < message.log_ns {
                break;
            }
            let Some(Playing { publisher, tells_time }) = publishers.get(&message.topic) else {
                continue;
            };
            match pace.wait_until(message.log_ns)? {
                Waited::Due => {}
                other => return Ok(other),
            }
            let told = match &mut pace.clock {
                Some(clock) if *tells_time => clock.tell(message.log_ns),
                _ => Ok(()),
            };
            let controls = pace.controls;
            match told.and_then(|()| publish(context, publisher, message.data(), controls)) {
                Ok(()) => {
                    played.messages += 1;
                    played.bytes += message.data().len() as u64;
                }
                Err(_) if !context.is_ok() => return Ok(Waited::Closed),
                Err(error) if error.kind() == NodeErrorKind::Busy => return Ok(Waited::Sought),
                Err(error) if error.kind() == NodeErrorKind::Invalid => played.refused += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Waited::Due)
    }

    /// Waits, after all of it was played, until it is to be played again from elsewhere: by [`Controls::seek`], or because it is
    /// to go on, which is from its beginning then. `false` when the time is up, if there is one, or once the context is shut down.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Node`] if tsuji refuses to wait.
    pub fn wait_for_seek(&mut self, timeout: Option<Duration>) -> Result<bool> {
        let deadline = timeout.and_then(|it| Instant::now().checked_add(it));
        while !self.controls.is_sought() {
            let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
            if left.is_some_and(|it| it.is_zero()) || !self.context.is_ok() {
                return Ok(false);
            }
            match self.waits.wait(&[&*self.controls.waker], left) {
                Ok(_) => {}
                Err(error) if error.kind() == NodeErrorKind::Closed => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Waits, for a while, until every subscription has all that was played.
    pub fn leave(&self) {
        self.leave_within(Some(LEAVE_PATIENCE));
    }

    /// The same for so long at most, or without an end. Answers whether all have it.
    pub fn leave_within(&self, patience: Option<Duration>) -> bool {
        let deadline = patience.and_then(|it| Instant::now().checked_add(it));
        let mut have_all = true;
        for Playing { publisher, .. } in self.publishers.values() {
            loop {
                let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
                // What is not shut down is looked at again and again where there is no end.
                let result = publisher.wait_for_acknowledgements(left.unwrap_or(LEAVE_PATIENCE));
                let is_late = result.as_ref().is_err_and(|it| it.kind() == NodeErrorKind::Timeout);
                if !is_late || left.is_some() || !self.context.is_ok() {
                    have_all &= result.is_ok();
                    break;
                }
            }
        }
        have_all
    }
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player").field("recording", &self.recording).finish_non_exhaustive()
    }
}

/// Pauses what is played and goes on, changes how fast it is, goes to another time, and tells how far it is. All of one player are the
/// same.
#[derive(Clone)]
pub struct Controls {
    state: Arc<Mutex<State>>,
    /// Ends the wait for the next message.
    waker: Arc<GuardCondition>,
    /// Whom to tell of a change.
    changed: Arc<Mutex<Option<Tell>>>,
}

type Tell = Arc<dyn Fn() + Send + Sync>;

/// Where it is in the time of the recording.
#[derive(Clone, Copy, Debug)]
struct State {
    /// It was there at this time, and goes on from there at this rate unless it is paused.
    at_ns: u64,
    since: Instant,
    rate: f64,
    paused: bool,
    /// Whether it is played; before, while it is delayed, and after its end its time stands still.
    runs: bool,
    ended: bool,
    /// Messages that are to be played although it is paused.
    steps: u32,
    /// Where it can be: what is to be played of the recording.
    span_ns: (u64, u64),
    /// Where it is to go.
    seek: Option<u64>,
    jumps: u64,
}

impl State {
    fn now_ns(&self) -> u64 {
        if self.paused || !self.runs {
            return self.at_ns;
        }
        let since_ns = self.since.elapsed().as_secs_f64() * self.rate * 1e9;
        self.at_ns.saturating_add(since_ns as u64).min(self.span_ns.1.max(self.at_ns))
    }

    /// Goes on from where it is, after `change`.
    fn change(&mut self, change: impl FnOnce(&mut Self)) {
        (self.at_ns, self.since) = (self.now_ns(), Instant::now());
        change(self);
    }

    /// It is to go there. Until it has, its time stands still.
    fn go_to(&mut self, at_ns: u64) {
        let at_ns = at_ns.clamp(self.span_ns.0, self.span_ns.1);
        (self.at_ns, self.since) = (at_ns, Instant::now());
        (self.runs, self.ended, self.steps) = (false, false, 0);
        self.seek = Some(at_ns);
        self.jumps += 1;
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// The time of the recording, in nanoseconds since the Unix epoch.
    pub at_ns: u64,
    /// How many times as fast it is played as it was recorded.
    pub rate: f64,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether it has not begun yet.
    pub waits: bool,
    /// Whether all of it was played.
    pub ended: bool,
    /// How often it has gone to another time so far.
    pub jumps: u64,
}

/// What is to be changed of a recording that is played. What is not said stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControlChange {
    /// Whether it is to be paused, or to go on.
    pub paused: Option<bool>,
    /// How many times as fast it is to be played as it was recorded: 0.01 to a million, to which it is bounded.
    pub rate: Option<f64>,
    /// To which time it is to go, in nanoseconds since the Unix epoch.
    pub seek_ns: Option<u64>,
}

impl Controls {
    fn new(context: &Context, options: &PlayOptions, recording: &Recording) -> Result<Self> {
        let (first_ns, last_ns) = (recording.summary().first_ns, recording.summary().last_ns);
        let offset_ns = u64::try_from(options.start_offset.as_nanos()).unwrap_or(u64::MAX);
        let from_ns = first_ns.saturating_add(offset_ns);
        let until_ns = options.until_ns.unwrap_or(u64::MAX).min(last_ns);
        let state = State {
            at_ns: from_ns,
            since: Instant::now(),
            rate: options.rate.clamp(RATE_MIN, RATE_MAX),
            paused: options.paused,
            runs: false,
            ended: false,
            steps: 0,
            span_ns: (from_ns, until_ns.max(from_ns)),
            seek: None,
            jumps: 0,
        };
        let waker = Arc::new(GuardCondition::new(context)?);
        Ok(Self { state: Arc::new(Mutex::new(state)), waker, changed: Arc::default() })
    }

    /// How far it is.
    pub fn position(&self) -> Position {
        let state = self.lock();
        let State { rate, paused, runs, ended, jumps, .. } = *state;
        let waits = !runs && !ended;
        Position { at_ns: state.now_ns(), rate, paused, waits, ended, jumps }
    }

    /// Where it begins and where it ends, in nanoseconds since the Unix epoch.
    pub fn span_ns(&self) -> (u64, u64) {
        self.lock().span_ns
    }

    /// Changes what `change` says, all of it at once.
    pub fn set(&self, change: &ControlChange) {
        let ControlChange { paused, rate, seek_ns } = *change;
        self.lock().change(|it| {
            if let Some(rate) = rate.filter(|it| it.is_finite()) {
                it.rate = rate.clamp(RATE_MIN, RATE_MAX);
            }
            if let Some(paused) = paused {
                (it.paused, it.steps) = (paused, 0);
            }
            match seek_ns {
                Some(at_ns) => it.go_to(at_ns),
                // What has ended goes on from its beginning.
                None if paused == Some(false) && it.ended => it.go_to(it.span_ns.0),
                None => {}
            }
        });
        self.tell();
    }

    /// Pauses it, or goes on with it. Where it has ended it goes on from its beginning, if somebody
    /// [waits for that](Player::wait_for_seek).
    pub fn set_paused(&self, paused: bool) {
        self.set(&ControlChange { paused: Some(paused), ..ControlChange::default() });
    }

    /// Pauses it if it goes on, and goes on if it is paused.
    pub fn toggle_paused(&self) {
        let paused = self.lock().paused;
        self.set_paused(!paused);
    }

    /// Changes how many times as fast it is played; slower than a hundredth it does not become, nor faster than a million times.
    pub fn set_rate(&self, rate: f64) {
        self.set(&ControlChange { rate: Some(rate), ..ControlChange::default() });
    }

    /// Goes to a time of the recording, in nanoseconds since the Unix epoch; before its beginning to that, behind its end to that.
    /// The next message is the first that was received then or later.
    pub fn seek(&self, at_ns: u64) {
        self.set(&ControlChange { seek_ns: Some(at_ns), ..ControlChange::default() });
    }

    /// Plays the next message while it is paused. Answers whether it is.
    pub fn play_next(&self) -> bool {
        let mut state = self.lock();
        if state.paused {
            state.steps = state.steps.saturating_add(1);
        }
        let paused = state.paused;
        drop(state);
        self.tell();
        paused
    }

    /// Has `tell` called, by whichever thread, after each change of what [`position`](Self::position) answers, unless only time has
    /// passed. Of several calls the last one counts.
    pub fn when_changed(&self, tell: impl Fn() + Send + Sync + 'static) {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(tell));
    }

    fn tell(&self) {
        self.waker.trigger();
        let tell = self.changed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(tell) = tell {
            tell();
        }
    }

    /// It is played once more, from `at_ns` unless it is to go elsewhere.
    fn begin(&self, at_ns: u64) {
        let mut state = self.lock();
        if state.seek.is_none() {
            // Again from its beginning.
            state.jumps += u64::from(state.ended);
            (state.at_ns, state.since) = (at_ns, Instant::now());
        }
        (state.runs, state.ended) = (false, false);
    }

    /// It goes on from `at_ns`; `false` if it is to go elsewhere.
    fn run(&self, at_ns: u64, now: Instant) -> bool {
        let mut state = self.lock();
        if state.seek.is_some() {
            return false;
        }
        (state.at_ns, state.since, state.runs) = (at_ns, now, true);
        drop(state);
        self.tell();
        true
    }

    /// All of it was played, unless it is to go elsewhere.
    fn end(&self) {
        let mut state = self.lock();
        if state.seek.is_none() {
            (state.at_ns, state.runs, state.ended) = (state.span_ns.1, false, true);
        }
        drop(state);
        self.tell();
    }

    fn is_sought(&self) -> bool {
        self.lock().seek.is_some()
    }

    fn take_seek(&self) -> Option<u64> {
        self.lock().seek.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long until it is `log_ns` in the recording; never while it is paused. A step takes it there at once.
    fn left(&self, log_ns: u64) -> Option<Duration> {
        let mut state = self.lock();
        if state.paused {
            if state.steps == 0 {
                return None;
            }
            state.steps -= 1;
            state.at_ns = state.at_ns.max(log_ns);
            return Some(Duration::ZERO);
        }
        let left_ns = log_ns.saturating_sub(state.now_ns());
        let left_s = left_ns as f64 / 1e9 / state.rate;
        Some(Duration::try_from_secs_f64(left_s).unwrap_or(Duration::MAX))
    }
}

impl std::fmt::Debug for Controls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controls").field("position", &self.position()).finish_non_exhaustive()
    }
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// It is time.
    Due,
    /// It is to go to another time.
    Sought,
    /// The context is shut down.
    Closed,
}

/// When what is played.
struct Pace<'a> {
    began: Instant,
    clock: &'a mut Option<PlayedClock>,
    waits: &'a mut WaitList,
    controls: &'a Controls,
}

impl Pace<'_> {
    /// It is played from now on, from `from_ns` in the recording; `false` if it is to go elsewhere.
    fn begin(&mut self, from_ns: u64) -> bool {
        self.began = Instant::now();
        if let Some(clock) = self.clock {
            clock.begin();
        }
        self.controls.run(from_ns, self.began)
    }

    /// Waits so long before it begins.
    fn sleep(&mut self, delay: Duration) -> Result<Waited> {
        let began = Instant::now();
        self.wait(|_| Some(delay.saturating_sub(began.elapsed())), None)
    }

    /// Waits until it is `log_ns` in the recording, and tells the time meanwhile.
    fn wait_until(&mut self, log_ns: u64) -> Result<Waited> {
        self.wait(|it| it.left(log_ns), Some(log_ns))
    }

    /// Waits until nothing is left, as `left` says, which is asked again after every change. The time that is told is none
    /// after `last_ns`.
    fn wait(
        &mut self,
        mut left: impl FnMut(&Controls) -> Option<Duration>,
        last_ns: Option<u64>,
    ) -> Result<Waited> {
        loop {
            if self.controls.is_sought() {
                return Ok(Waited::Sought);
            }
            let due = left(self.controls);
            match self.step(due, last_ns) {
                Ok(true) => return Ok(Waited::Due),
                Ok(false) => {}
                Err(error) if error.kind() == NodeErrorKind::Closed => return Ok(Waited::Closed),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Tells the time if that is due, then waits for what comes next; `true` once nothing is left.
    fn step(&mut self, left: Option<Duration>, last_ns: Option<u64>) -> tsuji::Result<bool> {
        let mut at_most = left;
        if let (Some(clock), Some(last_ns)) = (&mut self.clock, last_ns) {
            let since = self.began.elapsed();
            clock.tick(since, self.controls.position().at_ns.min(last_ns))?;
            if let Some(next) = clock.next() {
                let next = next.saturating_sub(since);
                at_most = Some(at_most.map_or(next, |it| it.min(next)));
            }
        }
        if left == Some(Duration::ZERO) {
            return Ok(true);
        }
        self.waits.wait(&[&*self.controls.waker], at_most).map(|_| false)
    }
}

/// Publishes one message, however long a subscription that keeps all makes it wait; but for where the recording is to go elsewhere.
fn publish(
    context: &Context,
    publisher: &RawPublisher,
    bytes: &[u8],
    controls: &Controls,
) -> tsuji::Result<()> {
    loop {
        match publisher.publish_bytes(bytes) {
            Err(error)
                if error.kind() == NodeErrorKind::Busy
                    && context.is_ok()
                    && !controls.is_sought() => {}
            result => return result,
        }
    }
}
