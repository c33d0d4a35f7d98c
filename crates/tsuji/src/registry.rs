//! The one place that knows which transports exist.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tsuji_core::{Policy, TransportId};
use tsuji_platform::life::Life;
use tsuji_platform::memory::Backing;
use tsuji_policy::units::parse_size;
use tsuji_transport::bell::Bells;
use tsuji_transport::inproc::InProcess;
use tsuji_transport::{PeerId, Transport};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds};
use tsuji_transport_shm::{SharedMemory, ShmConfig};

use crate::{Error, Result};

/// Every transport that a policy may name, in this build or not.
pub const KNOWN: &[&str] = &["inproc", "shm", "cyclonedds", "fastdds", "zenoh"];

/// What became of the transports of this build when a process started.
pub(crate) struct Opened {
    /// Those that work, nearest first.
    pub(crate) transports: Vec<Arc<dyn Transport>>,
    /// Those that do not, with the reason.
    pub(crate) failed: Vec<(TransportId, String)>,
}

/// What a program makes of the transports of this build.
pub(crate) struct Arrange(pub(crate) Box<ArrangeFn>);

type ArrangeFn = dyn FnOnce(Vec<Arc<dyn Transport>>) -> Vec<Arc<dyn Transport>> + Send;

impl fmt::Debug for Arrange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Arrange")
    }
}

/// Opens every transport of this build, with its settings from `policy`.
pub(crate) fn open(
    id: PeerId,
    domain: u32,
    life: &Arc<Life>,
    bells: &Arc<Bells>,
    policy: &Policy,
) -> Result<Opened> {
    let mut transports: Vec<Arc<dyn Transport>> = vec![Arc::new(InProcess::new())];
    let mut failed = Vec::new();
    match SharedMemory::create(id, life, bells, &shm_config(policy)?) {
        Ok(shm) => transports.push(Arc::new(shm)),
        Err(error) => failed.push((TransportId::new("shm"), error.to_string())),
    }
    // It starts nothing before the first flow that needs it.
    match CycloneDds::create(id, &cyclone_config(domain, policy)?) {
        Ok(cyclone) => transports.push(Arc::new(cyclone)),
        Err(error) => failed.push((TransportId::new("cyclonedds"), error.to_string())),
    }
    Ok(Opened { transports, failed })
}

/// Where the memory that wakes threads comes from.
pub(crate) fn bells_backing(policy: &Policy) -> Result<Backing> {
    // The doorbells are a few pages and must work even where the samples' memory is full.
    shm_config(policy).map(|_| Backing::Anonymous)
}

fn shm_config(policy: &Policy) -> Result<ShmConfig> {
    let mut config = ShmConfig::default();
    let Some(settings) = policy.settings(&TransportId::new("shm")) else { return Ok(config) };
    for setting in &settings.settings {
        let (key, value) = (&*setting.key, &*setting.value);
        match key {
            "memory_bytes_max" => {
                let parsed = parse_size(value).filter(|bytes| MEMORY_MIN <= *bytes);
                config.memory_bytes_max = parsed.ok_or_else(|| {
                    Error::invalid(format!(
                        "{}: {value:?} is not a memory_bytes_max; allowed: a size of at least \
                         {MEMORY_MIN}B, such as 256MiB",
                        setting.origin
                    ))
                })?;
            }
            "backing" if value == "memfd" => config.backing = Backing::Anonymous,
            "backing" if value.starts_with('/') => {
                config.backing = Backing::Folder(PathBuf::from(value));
            }
            _ => {
                return Err(Error::invalid(format!(
                    "{}: {key}={value:?} is not a setting of shm; allowed: memory_bytes_max=SIZE, \
                     backing=memfd or the path of a folder on a tmpfs",
                    setting.origin
                )));
            }
        }
    }
    Ok(config)
}

const MEMORY_MIN: u64 = 1 << 20;

fn cyclone_config(domain: u32, policy: &Policy) -> Result<CycloneConfig> {
    // While nobody finds endpoints of other hosts, nothing of this one is announced to them.
    let mut config = CycloneConfig::on_loopback(domain);
    let Some(settings) = policy.settings(&TransportId::new("cyclonedds")) else {
        return Ok(config);
    };
    for setting in &settings.settings {
        let (key, value) = (&*setting.key, &*setting.value);
        let words = || value.split_whitespace().map(str::to_owned).collect();
        match (key, value) {
            ("interfaces", _) => config.interfaces = words(),
            ("peers", _) => config.peers = words(),
            ("multicast", "true" | "default" | "false") => {
                (config.force_multicast, config.no_multicast) = (value == "true", value == "false");
            }
            _ => {
                return Err(Error::invalid(format!(
                    "{}: {key}={value:?} is not a setting of cyclonedds; allowed: interfaces=NAMES, \
                     peers=ADDRESSES, each with spaces between, multicast=true, false or default",
                    setting.origin
                )));
            }
        }
    }
    Ok(config)
}
