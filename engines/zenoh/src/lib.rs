//! Samples over Zenoh, with the keys and attachments of rmw_zenoh. It knows no message types, and
//! opens no session before the first endpoint. ROS names it knows where nodes of rmw_zenoh are met, which `wire` shows
//! as tsuji knows foreign nodes.
//!
//! Endpoints are found by their tokens. A writer's end alone decides which readers of tsuji match, and
//! says so to each reader's end behind which the samples come; so the two never disagree.
//!
//! Zenoh sends no sample again, but it loses none on its way that waits for room: samples of a reliable
//! writer wait. So that no caller waits with them, what is large, or comes while much is on its
//! way, waits with its writer, and threads of the participant send of each writer in turn. Readers
//! acknowledge what they have, and a writer answers Busy where too much is not acknowledged.
//!
//! So that what is small does not wait for what is large, a writer that has written more than 64 KiB at once is large from
//! then on: its samples go by another thread, and with a lower of Zenoh's priorities, so that Zenoh sends others between
//! their fragments. Whoever receives leaves it to a thread to put them together. Both threads
//! begin with the first large sample.
//!
//! Limits: a participant that is stopped, and not killed, keeps those threads, and so all writers'
//! samples, for up to the 5 s after which Zenoh gives it up. Zenoh runs its threads
//! once a process: a child forked after its first session has none and is refused.
#![deny(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use tsuji_core::{Peers, Scopes, TransportId};
use tsuji_engine::{About, Engine};
use tsuji_transport::wire::Relates;
use tsuji_transport::{Error, ErrorKind, PeerId, Result};

pub use tsuji_engine::EngineTransport;

mod asked;
mod config;
pub use config::{Endpoints, Meeting, ZenohConfig};

mod control;
mod endpoint;
mod engine;
mod format;
mod library;
mod role;
#[cfg(test)]
mod tests;
mod wire;

/// Zenoh, in one domain.
#[derive(Clone, Debug)]
pub struct Zenoh {
    config: ZenohConfig,
}

impl Zenoh {
    /// The transport over it, of process `id`. It starts nothing yet.
    pub fn create(id: PeerId, config: &ZenohConfig) -> Result<EngineTransport> {
        EngineTransport::new(id, Self::new(config.clone())?)
    }

    fn new(config: ZenohConfig) -> Result<Self> {
        if DOMAIN_MAX < config.domain {
            return Err(Error::new(ErrorKind::Invalid, "open a session")
                .about(format!("domain {}; at most {DOMAIN_MAX}", config.domain)));
        }
        Ok(Self { config })
    }
}

const SCOPES: Scopes = Scopes { intra: false, local: true, remote: true };

/// Who can be met.
const PEERS: Peers = Peers { zenoh: true, ..Peers::TSUJI };

/// As on RTPS, so that a domain is one on every wire.
const DOMAIN_MAX: u32 = 232;

impl Engine for Zenoh {
    fn about(&self) -> About {
        About {
            id: TransportId::new("zenoh"),
            scopes: SCOPES,
            peers: if self.config.user_data.is_empty() { Peers::TSUJI } else { PEERS },
            sample_bytes_max: SAMPLE_BYTES_MAX,
            relates: match self.config.user_data.is_empty() {
                true => Relates::Never,
                false => Relates::Beside,
            },
        }
    }

    fn network(&self) -> u32 {
        self.config.domain
    }

    fn joins_slowly(&self) -> bool {
        self.config.names_hosts()
    }

    fn join(&self) -> Result<Box<dyn tsuji_engine::Participant>> {
        Ok(Box::new(engine::Participant::join(&self.config)?))
    }
}

/// Nothing panics while holding these locks, so a poisoned one is still sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Zenoh's receivers drop messages of more than 1 GiB, with all that stands around a sample.
const SAMPLE_BYTES_MAX: u64 = 1 << 29;
