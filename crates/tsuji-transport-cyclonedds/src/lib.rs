//! Samples over RTPS by Cyclone DDS, vendored and static, with raw CDR. It knows no ROS names and no
//! message types, and starts no engine before the first endpoint.
//!
//! A sample's number is read from the RTPS message that brings it, and so is what it relates to. To write that the sources are
//! changed as they are built, in `changes.rs`: a sample may have two forms, of which each reader gets that of its vendor.
//!
//! Participants of this host that are spoken to otherwise are passed over, for which they are changed too
//! (`shim/peer_processes.c`): else each process of a host speaks to each other over loopback.
//!
//! The engine keeps to the addresses that the host had when it joined. It says which it would use now, so that whoever
//! has joined can leave and join anew.

use std::net::IpAddr;
use std::sync::PoisonError;

use tsuji_core::{Peers, Scopes, TransportId};
use tsuji_engine::{About, Engine, Library};
use tsuji_platform::network::{index_of, interfaces};
use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_transport::deferred::told;
use tsuji_transport::wire::{Announcements, Relates};
use tsuji_transport::{Error, ErrorKind, PeerId, Result};

pub use tsuji_engine::EngineTransport;

mod config;
use config::Ports;
pub use config::{CycloneConfig, PeerMarks};

mod engine;
mod extra;
mod ffi;
#[cfg(feature = "raw")]
pub mod raw;

mod security;
pub use security::{DDS_SECURITY_LIBRARY, DdsSecurity};

/// Cyclone DDS, in one domain.
#[derive(Clone, Debug)]
pub struct CycloneDds {
    config: CycloneConfig,
}

impl CycloneDds {
    /// The transport over it, of process `id`. It starts nothing yet.
    pub fn create(id: PeerId, config: &CycloneConfig) -> Result<EngineTransport> {
        if DOMAIN_MAX < config.domain {
            return Err(Error::new(ErrorKind::Invalid, "create a participant")
                .about(format!("domain {}; at most {DOMAIN_MAX}", config.domain)));
        }
        EngineTransport::new(id, Self { config: config.clone() })
    }
}

/// The domain whose ports are the last below 65536 (RTPS 2.5, 9.6.2.3).
const DOMAIN_MAX: u32 = 232;

impl Engine for CycloneDds {
    fn about(&self) -> About {
        // Where another wire leads to other hosts, this one has loopback alone.
        let is_kept_here = self.config.tsuji_only && self.config.interfaces == ["lo"];
        About {
            id: TransportId::new("cyclonedds"),
            scopes: Scopes { intra: false, local: true, remote: !is_kept_here },
            peers: match self.config.tsuji_only {
                true => Peers::TSUJI,
                false => Peers::RTPS,
            },
            sample_bytes_max: SAMPLE_BYTES_MAX,
            relates: match self.config.tsuji_only {
                true => Relates::Never,
                false => Relates::Either,
            },
        }
    }

    fn library(&self) -> Library {
        let version = "Cyclone DDS 11 with changes of tsuji's".to_owned();
        Library { path: None, version: Some(version), is_loaded: true }
    }

    fn network(&self) -> u32 {
        self.config.domain
    }

    fn is_secured(&self) -> bool {
        self.config.security.is_some()
    }

    fn joins_slowly(&self) -> bool {
        self.config.names_hosts()
    }

    fn addresses(&self) -> Vec<IpAddr> {
        self.config.addresses(&interfaces().unwrap_or_default(), index_of)
    }

    fn announcements(&self) -> Result<Announcements, String> {
        let all = interfaces().map_err(|error| error.to_string())?;
        self.config.now(&all).announcements(&all)
    }

    fn join(&self) -> Result<Box<dyn tsuji_engine::Participant>> {
        let peers = self.config.resolve_peers()?;
        let receive_buffer_bytes_max = config::receive_buffer_bytes_max();
        if let Some(warning) = config::buffer_warning(receive_buffer_bytes_max) {
            told::warn!("{warning}");
        }
        let config = self.config.now(&interfaces().unwrap_or_default());
        let join = |ports| {
            let xml = config.to_xml(&peers, receive_buffer_bytes_max, ports);
            engine::Participant::join(
                &xml,
                &self.config.user_data,
                self.config.peer_processes.as_ref(),
                self.config.security.as_ref(),
            )
        };
        let checked = self.config.check_extra(&peers);
        let joined = checked.and_then(|()| join(Ports::OfIndex)).or_else(|error| {
            if !engine::is_crowded(&error) {
                return Err(error);
            }
            let joined = join(Ports::Any)?;
            told::info!("{}", self.config.crowd_note());
            Ok(joined)
        });
        Ok(Box::new(joined.map_err(|error| self.config.explain(error))?))
    }
}

/// Nothing panics while holding these locks, so a poisoned one is still sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a receive buffer of some megabytes can still take without many retransmissions; and what
/// fits the 32 bits in which RTPS counts.
const SAMPLE_BYTES_MAX: u64 = 1 << 30;
