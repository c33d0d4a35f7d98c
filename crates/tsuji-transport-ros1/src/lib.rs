//! Nodes of ROS 1 as peers: topics and services by TCPROS, beside a master, in a shared library that tsuji loads where
//! `interop` names it.
//!
//! A process of tsuji is to a master what a node of ROS 1 is: each of its nodes is registered by its name, with the one
//! server of the process behind it. Nodes of ROS 1 are shown to tsuji as it knows foreign nodes: participants, endpoints
//! under the names of RTPS, messages of who owns what. Messages are converted where they come from or go to ROS 1, by a plan
//! made once for a type.
//!
//! Processes of tsuji never speak to each other here: the address that a process registers says that it is tsuji's. So a
//! message that came from ROS 1 never goes back there.
//!
//! One thread serves all connections, another speaks with the master, and short-lived ones connect to nodes, which may take
//! as long as a host that does not answer.
//!
//! Limits: a subscription has a connection of its own to each publisher of ROS 1. A node of ROS 1 says nothing when it
//! has ended by force; it is gone when its address refuses a connection, for which it is asked every 5 s. A server that says
//! that a call has failed gives no answer: there is none in ROS 2 to give. A subscriber for which all is kept and that takes nothing for
//! 10 s is left. IPv4 alone.
#![forbid(unsafe_op_in_unsafe_fn)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use tsuji_core::{Peers, Scopes, TransportId};
use tsuji_engine::{About, Engine};
use tsuji_transport::wire::Relates;
use tsuji_transport::{PeerId, Result};

pub use tsuji_engine::EngineTransport;

mod config;
mod converter;
pub use config::Ros1Config;

mod endpoint;
mod graph;
mod io;
mod library;
mod link;
mod participant;
mod registration;
mod role;
mod rpc;
mod service;
mod slave;
mod state;
mod topic;
mod types;

/// Nodes of ROS 1 beside a master.
#[derive(Clone, Debug)]
pub struct Ros1 {
    config: Ros1Config,
}

impl Ros1 {
    /// Creates the transport of process `id`. It starts nothing yet.
    ///
    /// # Errors
    ///
    /// As [`EngineTransport::new`].
    pub fn create(id: PeerId, config: &Ros1Config) -> Result<EngineTransport> {
        EngineTransport::new(id, Self { config: config.clone() })
    }
}

const SCOPES: Scopes = Scopes { intra: false, local: true, remote: true };

/// Who can be met.
const PEERS: Peers = Peers { tsuji: false, ros1: true, ..Peers::TSUJI };

/// The longest message that is sent or taken, in bytes. TCPROS has 4 bytes for a length, and roscpp takes 1 GB.
const SAMPLE_BYTES_MAX: u64 = 1 << 30;

impl Engine for Ros1 {
    fn about(&self) -> About {
        About {
            id: TransportId::new("ros1"),
            scopes: SCOPES,
            peers: PEERS,
            sample_bytes_max: SAMPLE_BYTES_MAX,
            relates: Relates::Beside,
        }
    }

    /// ROS 1 has no domains: who has the same master meets.
    fn network(&self) -> u32 {
        0
    }

    fn joins_slowly(&self) -> bool {
        true
    }

    fn join(&self) -> Result<Box<dyn tsuji_engine::Participant>> {
        Ok(Box::new(participant::Participant::join(&self.config)?))
    }
}

/// Nothing panics while holding these locks, so a poisoned one is still sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
