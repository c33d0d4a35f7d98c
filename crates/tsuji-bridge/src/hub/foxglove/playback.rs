//! The recording that is played: clients are told how far it is, and have it controlled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tsuji::GuardCondition;
use tsuji_foxglove::{PlaybackState, PlaybackStatus, write_playback};

use crate::connected_client::ConnectedClient;
use crate::foxglove::written;
use crate::frame::{Frame, Kind};
use crate::playback::{self, Playback, PlaybackWish};

/// What plays it, and who is told.
pub(super) struct Player {
    playback: Arc<dyn Playback>,
    has_changed: Arc<AtomicBool>,
    /// When all were told last.
    told: Option<Instant>,
    listeners: Vec<Listener>,
}

/// A client that may control it.
struct Listener {
    client: Arc<ConnectedClient>,
    /// Of the times that it has gone to another, how many the client was told of.
    told_jumps: u64,
}

impl Player {
    /// `news` wakes the thread that looks.
    pub(super) fn new(playback: Arc<dyn Playback>, news: GuardCondition) -> Self {
        let has_changed = Arc::<AtomicBool>::default();
        let changed = Arc::clone(&has_changed);
        playback.when_changed(Box::new(move || {
            changed.store(true, Ordering::Release);
            news.trigger();
        }));
        Self { playback, has_changed, told: None, listeners: Vec::new() }
    }

    /// Tells a client that has come, and from now on.
    pub(super) fn enter(&mut self, client: &Arc<ConnectedClient>) {
        let state = self.playback.state();
        client.say(frame(state, false, ""));
        let client = Arc::clone(client);
        self.listeners.push(Listener { client, told_jumps: state.jumps });
    }

    /// A client has gone.
    pub(super) fn gone(&mut self, number: u64) {
        self.listeners.retain(|it| it.client.number != number);
    }

    /// Does what one client wants, and answers it. The others are told a moment later.
    pub(super) fn control(&mut self, wish: &PlaybackWish, by: &ConnectedClient, request: &str) {
        self.playback.control(wish);
        let state = self.playback.state();
        if let Some(it) = self.listeners.iter_mut().find(|it| it.client.number == by.number) {
            it.told_jumps = state.jumps;
        }
        by.say(frame(state, wish.seek_ns.is_some(), request));
        self.has_changed.store(true, Ordering::Release);
    }

    /// Whether there is something to tell.
    pub(super) fn waits(&self) -> bool {
        self.has_changed.load(Ordering::Acquire)
    }

    /// Tells all, where something has changed. However often it does, that is not done more often than clients can use.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        let is_early = self.told.is_some_and(|it| now < it + TOLD_EVERY);
        if is_early || !self.has_changed.swap(false, Ordering::AcqRel) {
            return;
        }
        self.told = Some(now);
        let state = self.playback.state();
        let frames = [false, true].map(|did_seek| frame(state, did_seek, ""));
        for it in &mut self.listeners {
            let did_seek = std::mem::replace(&mut it.told_jumps, state.jumps) != state.jumps;
            it.client.say(Arc::clone(&frames[usize::from(did_seek)]));
        }
    }
}

fn frame(state: playback::PlaybackState, did_seek: bool, request: &str) -> Arc<Frame> {
    let status = match state.status {
        playback::PlaybackStatus::Playing => PlaybackStatus::Playing,
        playback::PlaybackStatus::Paused => PlaybackStatus::Paused,
        playback::PlaybackStatus::Waiting => PlaybackStatus::Buffering,
        playback::PlaybackStatus::Ended => PlaybackStatus::Ended,
    };
    let (time_ns, rate) = (state.time_ns, state.rate as f32);
    let state = PlaybackState { status, time_ns, rate, did_seek, request };
    written(Kind::Binary, |out| write_playback(out, &state))
}

/// Clients are told of changes no more often, but for the answers to their own wishes.
const TOLD_EVERY: Duration = Duration::from_millis(50);
