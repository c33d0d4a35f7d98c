//! The recording that is played: clients are told how far it is, and have it controlled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsuji::GuardCondition;
use tsuji_foxglove::{PlaybackState, PlaybackStatus, write_playback};

use crate::connected_client::ConnectedClient;
use crate::foxglove::written;
use crate::frame::Kind;
use crate::playback::{self, Playback, PlaybackWish};

/// What plays it, and what clients know of it.
pub(super) struct Player {
    playback: Arc<dyn Playback>,
    has_changed: Arc<AtomicBool>,
    /// Of the times that it has gone to another, how many they were told of.
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
        let told_jumps = playback.state().jumps;
        Self { playback, has_changed, told_jumps }
    }

    /// Tells a client that has come.
    pub(super) fn greet(&self, client: &ConnectedClient) {
        tell(client, self.playback.state(), false, "");
    }

    /// Does what one client wants, and tells all.
    pub(super) fn control<'a>(
        &mut self,
        wish: &PlaybackWish,
        by: u64,
        request: &str,
        clients: impl Iterator<Item = &'a Arc<ConnectedClient>>,
    ) {
        self.playback.control(wish);
        self.has_changed.store(false, Ordering::Release);
        self.tell(clients, |it| if it.number == by { request } else { "" });
    }

    /// Tells all, where something has changed.
    pub(super) fn look<'a>(&mut self, clients: impl Iterator<Item = &'a Arc<ConnectedClient>>) {
        if self.has_changed.swap(false, Ordering::AcqRel) {
            self.tell(clients, |_| "");
        }
    }

    fn tell<'a, 'r>(
        &mut self,
        clients: impl Iterator<Item = &'a Arc<ConnectedClient>>,
        request: impl Fn(&ConnectedClient) -> &'r str,
    ) {
        let state = self.playback.state();
        let did_seek = std::mem::replace(&mut self.told_jumps, state.jumps) != state.jumps;
        clients.for_each(|it| tell(it, state, did_seek, request(it)));
    }
}

fn tell(client: &ConnectedClient, state: playback::PlaybackState, did_seek: bool, request: &str) {
    if !client.peer.dialect.knows_playback() {
        return;
    }
    let status = match state.status {
        playback::PlaybackStatus::Playing => PlaybackStatus::Playing,
        playback::PlaybackStatus::Paused => PlaybackStatus::Paused,
        playback::PlaybackStatus::Waiting => PlaybackStatus::Buffering,
        playback::PlaybackStatus::Ended => PlaybackStatus::Ended,
    };
    let (time_ns, rate) = (state.time_ns, state.rate as f32);
    let state = PlaybackState { status, time_ns, rate, did_seek, request };
    client.say(written(Kind::Binary, |out| write_playback(out, &state)));
}
