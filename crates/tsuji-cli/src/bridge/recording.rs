//! The recording that `tsuji bridge --play` plays, and that clients control.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tsuji::Context;
use tsuji_bridge::{Playback, PlaybackState, PlaybackStatus, PlaybackWish};
use tsuji_msg::{Resolver, definitions_in};
use tsuji_record::{Controls, ErrorKind, PlayOptions, Player, Position, Recording};

use super::Args;
use crate::failure::{Told, Usage};
use crate::output::{self, escaped};
use crate::play::tell_damages;
use crate::session::Session;

/// How often a second the time of the recording is told. Clients have it with their messages.
const CLOCK_HZ: f64 = 100.0;

/// A recording that is about to be played.
pub(super) struct PlayedRecording {
    player: Player,
    controls: Controls,
    context: Context,
    definitions: HashMap<String, String>,
    again: bool,
}

impl PlayedRecording {
    /// Opens what the flags name.
    pub(super) fn open(args: &Args, session: &Session) -> anyhow::Result<Self> {
        let recording = Recording::open_all(&args.play)?;
        let mut definitions = HashMap::new();
        for topic in recording.topics() {
            let Some(text) = topic.definition() else { continue };
            // Where two files differ the first counts, as it does for whoever reads them.
            for (name, text) in definitions_in(&topic.type_name, text) {
                definitions.entry(name).or_insert(text);
            }
        }
        let options = PlayOptions {
            rate: args.rate,
            paused: args.start_paused,
            clock_hz: Some(CLOCK_HZ),
            ..PlayOptions::default()
        };
        let node = session.hidden_node()?;
        let player =
            Player::new(&node, recording, options).map_err(|error| match error.kind() {
                ErrorKind::Invalid => Usage(escaped(&error.to_string(), "")).into(),
                _ => anyhow::Error::from(error),
            })?;
        player.skipped().iter().for_each(|it| output::warning(escaped(it, "")));
        let controls = player.controls();
        let (context, again) = (session.context.clone(), args.again);
        Ok(Self { player, controls, context, definitions, again })
    }

    /// The definitions that are in it.
    pub(super) fn take_definitions(&mut self) -> Box<dyn Resolver + Send + Sync> {
        Box::new(std::mem::take(&mut self.definitions))
    }

    /// What clients control.
    pub(super) fn playback(&self) -> Arc<dyn Playback> {
        Arc::new(Controlled(self.controls.clone()))
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
            let text = format!("the recording is not played any more: {error}");
            output::error(escaped(&text, ""));
            return Err(Told(1).into());
        }
        tell_damages(self.player.recording().summary())
    }

    fn play_on(&mut self) -> tsuji_record::Result<()> {
        loop {
            let played = self.player.play()?;
            let is_again = self.again && played.messages != 0 && self.context.is_ok();
            if !is_again && !self.player.wait_for_seek()? {
                return Ok(());
            }
        }
    }
}

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
#[derive(Debug)]
struct Controlled(Controls);

impl Playback for Controlled {
    fn span_ns(&self) -> (u64, u64) {
        self.0.span_ns()
    }

    fn state(&self) -> PlaybackState {
        let Position { at_ns, rate, paused, waits, ended, jumps } = self.0.position();
        let status = match (ended, paused, waits) {
            (true, _, _) => PlaybackStatus::Ended,
            (_, true, _) => PlaybackStatus::Paused,
            (_, _, true) => PlaybackStatus::Waiting,
            _ => PlaybackStatus::Playing,
        };
        let (_, end_ns) = self.0.span_ns();
        PlaybackState { status, time_ns: at_ns.min(end_ns), rate, jumps }
    }

    fn control(&self, wish: &PlaybackWish) {
        if let Some(rate) = wish.rate {
            self.0.set_rate(rate);
        }
        // Before it goes on, so that one that has ended goes on from there.
        if let Some(seek_ns) = wish.seek_ns {
            self.0.seek(seek_ns);
        }
        if let Some(plays) = wish.plays {
            self.0.set_paused(!plays);
        }
    }

    fn when_changed(&self, tell: Box<dyn Fn() + Send + Sync>) {
        self.0.when_changed(tell);
    }
}
