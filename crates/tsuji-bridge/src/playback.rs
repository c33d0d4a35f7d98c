//! A recording that is played beside the bridge, as clients see it and control it.

use std::fmt;

use tsuji_rosbridge::access::{Access, Act, UserKey};

/// What plays a recording. A bridge tells its clients how far it is, and hands on what they want of it.
pub trait Playback: fmt::Debug + Send + Sync {
    /// When it begins and when it ends, in nanoseconds since 1970.
    fn span_ns(&self) -> (u64, u64);

    /// How far it is.
    fn state(&self) -> PlaybackState;

    /// Does what a client wants, or begins to. What it refuses stays as it is.
    fn control(&self, wish: &PlaybackWish);

    /// Why it can be played no more, if that is so. It has ended then.
    fn trouble(&self) -> Option<String>;

    /// Has `tell` called after each change of the state, unless only time has passed. Of several calls the last one counts.
    fn when_changed(&self, tell: Box<dyn Fn() + Send + Sync>);
}

/// What becomes of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaybackStatus {
    /// It is played.
    Playing,
    /// It is paused.
    Paused,
    /// It is not played yet, or is on its way to another time.
    Waiting,
    /// All of it was played.
    Ended,
}

impl PlaybackStatus {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Playing => "playing",
            Self::Paused => "paused",
            Self::Waiting => "waiting",
            Self::Ended => "ended",
        }
    }
}

/// How far a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaybackState {
    /// What becomes of it.
    pub status: PlaybackStatus,
    /// The time of the recording, in nanoseconds since 1970.
    pub time_ns: u64,
    /// How many times as fast it is played as it was recorded.
    pub rate: f64,
    /// How often it has gone to another time so far.
    pub jumps: u64,
}

/// What a client wants of a recording. What is not said stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlaybackWish {
    /// Whether it is to be played, or to be paused.
    pub plays: Option<bool>,
    /// How many times as fast as it was recorded; above 0.
    pub rate: Option<f64>,
    /// To which time it is to go, in nanoseconds since 1970.
    pub seek_ns: Option<u64>,
}

/// Whether a user may control it: whoever may call the service by which clients of rosbridge do.
pub(crate) fn may_control(access: &Access, user: Option<UserKey>) -> bool {
    access.decide(user, Act::CallService, SET_PLAYBACK).is_ok()
}

/// That service.
pub(crate) const SET_PLAYBACK: &str = "/rosapi/tsuji_set_playback";

/// Why there is nothing to control.
pub(crate) const NOTHING_IS_PLAYED: &str =
    "this bridge plays no recording; `tsuji bridge --play FILE` plays one";

/// What is wrong with a rate, if anything is.
pub(crate) fn check_rate(rate: f64) -> Result<f64, String> {
    match rate.is_finite() && 0.0 < rate {
        true => Ok(rate),
        false => Err(format!("rate: found {rate}; expected a number above 0")),
    }
}
