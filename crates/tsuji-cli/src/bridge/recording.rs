//! The recording that `tsuji bridge --play` plays, and that clients control.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tsuji::Context;
use tsuji_bridge::{Playback, PlaybackState, PlaybackStatus, PlaybackWish};
use tsuji_msg::{Resolver, TypeSet, definitions_in, load_full_text};
use tsuji_record::{ControlChange, Controls, PlayOptions, Player, Position, Recording};

use super::Args;
use crate::failure::Told;
use crate::output::{self, escaped};
use crate::play::{self, tell_damages};
use crate::session::Session;

/// How often a second the time of the recording is told. Clients have it with their messages.
const CLOCK_HZ: f64 = 100.0;

/// A recording that is about to be played.
pub(super) struct PlayedRecording {
    player: Player,
    controlled: Controlled,
    context: Context,
    definitions: HashMap<String, String>,
    again: bool,
}

impl PlayedRecording {
    /// Opens what the flags name. `installed` has the definitions that others use.
    pub(super) fn open(
        args: &Args,
        session: &Session,
        installed: &dyn Resolver,
    ) -> anyhow::Result<Self> {
        let recording = Recording::open_all(&args.play)?;
        let options = PlayOptions {
            rate: args.rate,
            paused: args.start_paused,
            clock_hz: Some(CLOCK_HZ),
            // Clients have the time of each message from what is told just before it.
            clock_topics: vec!["/**".parse()?],
            ..PlayOptions::default()
        };
        let definitions = definitions(&recording, installed);
        let node = session.hidden_node()?;
        let player = play::player(&node, recording, options)?;
        let controlled = Controlled { controls: player.controls(), trouble: Arc::default() };
        let (context, again) = (session.context.clone(), args.again);
        Ok(Self { player, controlled, context, definitions, again })
    }

    /// The definitions that are in it.
    pub(super) fn take_definitions(&mut self) -> Box<dyn Resolver + Send + Sync> {
        Box::new(std::mem::take(&mut self.definitions))
    }

    /// What clients control.
    pub(super) fn playback(&self) -> Arc<dyn Playback> {
        Arc::new(self.controlled.clone())
    }

    /// Plays it by a thread.
    pub(super) fn start(self) -> anyhow::Result<Playing> {
        let work = move || self.play();
        Ok(Playing(thread::Builder::new().name("player".to_owned()).spawn(work)?))
    }

    /// Plays it, as often as is asked for, until the context is shut down.
    fn play(mut self) -> anyhow::Result<()> {
        if let Err(error) = self.play_on() {
            // Told now: the bridge goes on.
            let text = escaped(&format!("the recording is not played any more: {error}"), "");
            output::error(&text);
            self.controlled.fail(text);
            return Err(Told(1).into());
        }
        tell_damages(self.player.recording().summary())
    }

    fn play_on(&mut self) -> tsuji_record::Result<()> {
        loop {
            let began = Instant::now();
            let played = self.player.play()?;
            let round = if played.messages == 0 { EMPTY_ROUND_MIN } else { ROUND_MIN };
            let patience = self.again.then(|| round.saturating_sub(began.elapsed()));
            let is_sought = self.player.wait_for_seek(patience)?;
            if !self.context.is_ok() || !is_sought && !self.again {
                return Ok(());
            }
        }
    }
}

/// The definitions that a recording has, where they are any. Where two topics differ the first counts, as it does for whoever reads
/// them. Clients have all topics of such a type by this one, so it is said where others use another.
fn definitions(recording: &Recording, installed: &dyn Resolver) -> HashMap<String, String> {
    let mut all = HashMap::new();
    for topic in recording.topics() {
        let Some(text) = topic.definition() else { continue };
        let name = &topic.type_name;
        if let Err(error) = load_full_text(name, text) {
            let topic = &topic.name;
            let text =
                format!("{topic}: the definition of {name} in the recording is none: {error}");
            output::warning(escaped(&text, ""));
            continue;
        }
        for (name, text) in definitions_in(name, text) {
            all.entry(name).or_insert(text);
        }
    }
    let mut names: Vec<&String> = all.keys().collect();
    names.sort();
    let (own, others) = (TypeSet::new(&all), TypeSet::new(installed));
    for name in names {
        if let (Ok(own), Ok(other)) = (own.load(name), others.load(name))
            && own.hash() != other.hash()
        {
            let text = format!(
                "{name}: the recording has another definition than is installed; clients get no topics of the installed one"
            );
            output::warning(escaped(&text, ""));
        }
    }
    all
}

/// A round of what is played again and again takes so long at least, and where nothing was played.
const ROUND_MIN: Duration = Duration::from_millis(100);
const EMPTY_ROUND_MIN: Duration = Duration::from_secs(1);

/// A recording that is being played.
pub(super) struct Playing(JoinHandle<anyhow::Result<()>>);

impl Playing {
    /// Waits for its end, which the end of the context is, and says what was wrong.
    pub(super) fn end(self) -> anyhow::Result<()> {
        match self.0.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("the thread that plays the recording has panicked"),
        }
    }
}

/// What plays it, as the bridge knows that.
#[derive(Clone, Debug)]
struct Controlled {
    controls: Controls,
    /// Why it is played no more.
    trouble: Arc<OnceLock<String>>,
}

impl Controlled {
    fn fail(&self, why: String) {
        let _ = self.trouble.set(why);
        // Tells those who look on, too.
        self.controls.set_paused(true);
    }
}

impl Playback for Controlled {
    fn span_ns(&self) -> (u64, u64) {
        self.controls.span_ns()
    }

    fn state(&self) -> PlaybackState {
        let Position { at_ns, rate, paused, waits, ended, jumps } = self.controls.position();
        let status = match (ended || self.trouble.get().is_some(), paused, waits) {
            (true, _, _) => PlaybackStatus::Ended,
            (_, true, _) => PlaybackStatus::Paused,
            (_, _, true) => PlaybackStatus::Waiting,
            _ => PlaybackStatus::Playing,
        };
        PlaybackState { status, time_ns: at_ns, rate, jumps }
    }

    fn control(&self, wish: &PlaybackWish) {
        if self.trouble.get().is_none() {
            let PlaybackWish { plays, rate, seek_ns } = *wish;
            self.controls.set(&ControlChange { paused: plays.map(|it| !it), rate, seek_ns });
        }
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.get().cloned()
    }

    fn when_changed(&self, tell: Box<dyn Fn() + Send + Sync>) {
        self.controls.when_changed(tell);
    }
}
