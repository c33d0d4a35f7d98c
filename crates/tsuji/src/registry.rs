//! The one place that knows which transports exist.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use tsuji_core::flows::WireEngines;
use tsuji_core::{Interop, Peers, Policy, Prefer, RtpsEngine, Scopes, Setting, TransportId};
use tsuji_engine::{About, EngineTransport, IDLE_DEFAULT};
use tsuji_platform::life::Life;
use tsuji_platform::memory::Backing;
use tsuji_platform::network::Interface;
use tsuji_platform::{network as interfaces, process};
use tsuji_policy::units::parse_size;
use tsuji_ros::user_data::{ParticipantUserData, TsujiParticipant};
use tsuji_transport::bell::Bells;
use tsuji_transport::deferred::told;
use tsuji_transport::inproc::InProcess;
use tsuji_transport::wire::{Relates, Wire};
use tsuji_transport::{PeerId, Transport};
use tsuji_transport_cyclonedds::{
    CycloneConfig, CycloneDds, DDS_SECURITY_LIBRARY, DdsSecurity, PeerMarks,
};
use tsuji_transport_plugin::{Located, NetworkNow, Plugin, PluginConfig, PluginEngine};
use tsuji_transport_shm::{SharedMemory, ShmConfig};

use crate::control::listening::place;
use crate::control::protocol;
use crate::network::{Network, Reach};
use crate::security::Security;
use crate::{Error, Result};

/// Names of every transport that a policy may name, in this build or not.
pub const KNOWN: &[&str] = &["inproc", "shm", "cyclonedds", "fastdds", "zenoh", "ros1"];

/// What became of the transports of this build when a process started.
pub(crate) struct Opened {
    /// Those that work, nearest first.
    pub(crate) transports: Vec<Arc<dyn Transport>>,
    /// Those that do not, with the reason.
    pub(crate) failed: Vec<Failed>,
    /// What was asked for, with the engine that it has become.
    pub(crate) network: Network,
    /// What speaks to foreign nodes beside the engine that finds them.
    pub(crate) wire_engines: Option<WireEngines>,
}

impl Opened {
    /// Keeps the transports that reach nobody but whom the control channels have met, or who has proved to be allowed otherwise.
    pub(crate) fn retain_secured(&mut self) {
        let (kept, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.transports)
            .into_iter()
            .partition(|it| it.is_confined() || it.is_secured());
        self.transports = kept;
        self.failed.extend(others.into_iter().map(|it| Failed::left_out(it.id())));
    }
}

/// Returns where the library is that secures RTPS in processes of a keystore.
///
/// # Errors
///
/// Fails with the reason where none is installed, or others may write to it.
pub fn dds_security_library() -> Result<PathBuf, String> {
    let folders = tsuji_transport_plugin::folders();
    let located = tsuji_transport_plugin::locate(DDS_SECURITY_LIBRARY, &folders);
    let located = located.map_err(|why| {
        format!("{why}; the package tsuji-dds-security installs it, which secures RTPS")
    });
    located.map(|it| it.path)
}

/// A transport that does not work.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) transport: TransportId,
    pub(crate) reason: String,
    pub(crate) absence: Absence,
}

/// Kind of reason why a transport does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It should.
    Broken,
    /// Nobody said that it is here.
    NotInstalled,
    /// A secured process does without it.
    LeftOut,
}

impl Failed {
    fn new(name: &str, reason: impl fmt::Display) -> Self {
        Self {
            transport: TransportId::new(name),
            reason: reason.to_string(),
            absence: Absence::Broken,
        }
    }

    /// A transport that a secured process does without.
    fn left_out(transport: TransportId) -> Self {
        let reason = "not secured, as this process is by its keystore".to_owned();
        Self { transport, reason, absence: Absence::LeftOut }
    }
}

/// What a program makes of the transports of this build.
pub(crate) struct Arrange(pub(crate) Box<ArrangeFn>);

type ArrangeFn = dyn FnOnce(Vec<Arc<dyn Transport>>) -> Vec<Arc<dyn Transport>> + Send;

impl fmt::Debug for Arrange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Arrange")
    }
}

/// Opens every transport of this build, with its settings from `policy`. `folder` is that of the domain.
///
/// Where Fast DDS is to speak to foreign nodes it joins here, so that Cyclone DDS does where it cannot.
pub(crate) fn open(
    id: PeerId,
    folder: &Path,
    asked: &Network,
    life: &Arc<Life>,
    bells: &Arc<Bells>,
    policy: &Policy,
    security: Option<&Security>,
) -> Result<Opened> {
    check_idle(policy)?;
    let mut transports: Vec<Arc<dyn Transport>> = vec![Arc::new(InProcess::new())];
    let mut failed = Vec::new();
    match SharedMemory::create(id, life, bells, &shm_config(policy)?) {
        Ok(shm) => transports.push(Arc::new(shm)),
        Err(error) => failed.push(Failed::new("shm", error)),
    }
    check_settings(policy)?;
    if let Some(security) = security {
        let mut kept = vec!["inproc", "shm"];
        if let Some(library) = asked.dds_security() {
            kept.push(CYCLONE);
            let interfaces = &interfaces::interfaces().unwrap_or_default();
            let config = cyclone_config(id, place(folder).ok(), asked, policy, interfaces)?;
            let security = Some(DdsSecurity::of(library.to_owned(), security.files()));
            match cyclone(id, &CycloneConfig { security, ..config }, policy)? {
                Ok(it) => transports.push(Arc::new(it)),
                Err(it) => failed.push(it),
            }
        }
        // No engine is loaded to be left out.
        let known = KNOWN.iter().filter(|it| !kept.contains(it));
        let declared = policy.transports().iter().filter(|it| it.plugin.is_some());
        let names =
            known.map(|it| TransportId::new(it)).chain(declared.map(|it| it.transport.clone()));
        let names: BTreeSet<_> = names.collect();
        failed.extend(names.into_iter().map(Failed::left_out));
        return Ok(Opened { transports, failed, network: asked.clone(), wire_engines: None });
    }
    let folders = tsuji_transport_plugin::folders();
    // Without them the engines make the best of what there is.
    let interfaces = &interfaces::interfaces().unwrap_or_default();
    let plugins = Plugins { id, folder, folders: &folders, interfaces, policy };
    let (network, zenoh) = plugins.zenoh(asked);
    let (network, ros1) = plugins.ros1(&network);
    let (network, speaking) = plugins.engine_of_wire(&network);
    let is_both = speaking.is_some() && network.engine() == RtpsEngine::Both;
    let wire_engines = is_both
        .then(|| WireEngines { first: TransportId::new(CYCLONE), second: TransportId::new(FAST) });
    // Who does not know where it is meets all of this host on the wire too.
    let place = place(folder).ok();
    let config = cyclone_config(id, place, &network, policy, interfaces)?;
    let cyclone = cyclone(id, &config, policy)?;
    let fast = match speaking {
        Some(speaking) => Ok(speaking),
        None => plugins.known(PLUGIN_FAST, &network, Peers::TSUJI),
    };
    let plugged = plugins.declared(&network).into_iter().chain([fast, zenoh]).chain(ros1);
    for opened in [cyclone].into_iter().chain(plugged) {
        match opened {
            Ok(it) => transports.push(Arc::new(it)),
            Err(it) => failed.push(it),
        }
    }
    Ok(Opened { transports, failed, network, wire_engines })
}

/// Cyclone DDS. It starts nothing before the first flow that needs it.
fn cyclone(
    id: PeerId,
    config: &CycloneConfig,
    policy: &Policy,
) -> Result<Result<EngineTransport, Failed>> {
    let idle = idle_of(policy, &TransportId::new(CYCLONE))?;
    let opened = CycloneDds::create(id, config).map_err(|error| Failed::new(CYCLONE, error));
    Ok(opened.map(|it| it.ending_after(idle)))
}

/// The transports of shared libraries: those that the policy declares, and those of [`PLUGINS`] whose library is
/// found. But for the one that speaks to foreign nodes they start with the first flow that needs them.
struct Plugins<'a> {
    id: PeerId,
    folder: &'a Path,
    folders: &'a [PathBuf],
    interfaces: &'a [Interface],
    policy: &'a Policy,
}

impl Plugins<'_> {
    /// The network as it comes out, and Fast DDS if it speaks there.
    fn engine_of_wire(&self, asked: &Network) -> (Network, Option<EngineTransport>) {
        if !asked.speaks_rtps() {
            return (asked.clone(), None);
        }
        let opened = match asked.engine() {
            RtpsEngine::CycloneDds => return (asked.clone(), None),
            RtpsEngine::FastDds => self.joined_fast(asked),
            // It joins when there is somebody for it to speak to.
            RtpsEngine::Both => {
                self.known_file(PLUGIN_FAST, asked, FAST_ALONE).map_err(|it| it.reason)
            }
        };
        match opened {
            Ok(fast) => (asked.clone(), Some(fast)),
            Err(reason) => {
                told::warn!(
                    "Cyclone DDS speaks to foreign ROS 2 nodes alone, and Fast DDS does not as engine={} asks: \
                     {reason}; the package tsuji-transport-fastdds installs its plug-in",
                    asked.engine()
                );
                (asked.by(RtpsEngine::CycloneDds), None)
            }
        }
    }

    /// Fast DDS, if it works.
    fn joined_fast(&self, asked: &Network) -> Result<EngineTransport, String> {
        let fast = self.known(PLUGIN_FAST, asked, RTPS).map_err(|it| it.reason)?;
        let joined = fast.wire().map(Wire::join).transpose();
        joined.map(|_| fast).map_err(|error| error.to_string())
    }

    /// The network as it comes out, and Zenoh.
    fn zenoh(&self, asked: &Network) -> (Network, Result<EngineTransport, Failed>) {
        if !asked.speaks_to(Interop::ZENOH) {
            return (asked.clone(), self.known(PLUGIN_ZENOH, asked, Peers::TSUJI));
        }
        let opened = self.known_file(PLUGIN_ZENOH, asked, ZENOH);
        (without_missing(asked, &opened, Interop::ZENOH, "foreign ROS 2 nodes on Zenoh"), opened)
    }

    /// The same with ROS 1, which only nodes of ROS 1 are met by.
    fn ros1(&self, asked: &Network) -> (Network, Option<Result<EngineTransport, Failed>>) {
        if !asked.speaks_to(Interop::ROS1) {
            return (asked.clone(), None);
        }
        let opened = self.known_file(PLUGIN_ROS1, asked, ROS1);
        (without_missing(asked, &opened, Interop::ROS1, "nodes of ROS 1"), Some(opened))
    }

    fn declared(&self, network: &Network) -> Vec<Result<EngineTransport, Failed>> {
        let all = self.policy.transports().iter();
        let declared = all.filter_map(|it| Some((&it.transport, it.plugin.as_deref()?)));
        let is_known = |name: &TransportId| PLUGINS.iter().any(|(it, _)| *it == name.as_str());
        let others = declared.filter(|(name, _)| !is_known(name));
        others
            .map(|(name, file)| {
                if KNOWN.contains(&name.as_str()) {
                    let why = "tsuji's own; allowed: a name of its own";
                    return Err(Failed::new(name.as_str(), why));
                }
                let located = self.locate(file);
                let located = located.map_err(|reason| Failed::new(name.as_str(), reason))?;
                let opened = self.open(name, located, None, network);
                opened.map_err(|error| Failed::new(name.as_str(), error))
            })
            .collect()
    }

    /// One of [`PLUGINS`], where these are met on its network.
    fn known(
        &self,
        (name, sample_bytes_max): (&str, u64),
        network: &Network,
        peers: Peers,
    ) -> Result<EngineTransport, Failed> {
        let id = TransportId::new(name);
        // Where Zenoh alone leads to other hosts an engine of RTPS has loopback alone.
        let is_kept_here = name == FAST && network.speaks() && !network.speaks_rtps();
        let about = About {
            id: id.clone(),
            scopes: Scopes { intra: false, local: true, remote: !is_kept_here },
            peers,
            sample_bytes_max,
            // Tsuji among itself does with a header in the payload, as by Cyclone DDS.
            relates: match peers == Peers::TSUJI {
                true => Relates::Never,
                false => Relates::Beside,
            },
        };
        let declared = self.policy.settings(&id).and_then(|it| it.plugin.as_deref());
        let file = declared.map_or_else(|| tsuji_transport_plugin::file_name(name), str::to_owned);
        let located = self.locate(&file).map_err(|reason| Failed {
            absence: declared.map_or(Absence::NotInstalled, |_| Absence::Broken),
            ..Failed::new(name, reason)
        })?;
        self.open(&id, located, Some(about), network).map_err(|it| Failed::new(name, it))
    }

    /// The same, where its file is there. What a path names is else looked for with the first flow, which is too late
    /// to go on without.
    fn known_file(
        &self,
        plugin: (&str, u64),
        network: &Network,
        peers: Peers,
    ) -> Result<EngineTransport, Failed> {
        let declared = self.policy.settings(&TransportId::new(plugin.0));
        let declared = declared.and_then(|it| it.plugin.as_deref()).map(Path::new);
        match declared.filter(|it| it.is_absolute() && !it.is_file()) {
            Some(path) => {
                let reason = format!("{}: there is no such file", path.display());
                Err(Failed::new(plugin.0, reason))
            }
            None => self.known(plugin, network, peers),
        }
    }

    fn locate(&self, file: &str) -> Result<Located, String> {
        if Path::new(file).is_absolute() {
            return Ok(Located { path: PathBuf::from(file), hidden: Vec::new() });
        }
        tsuji_transport_plugin::locate(file, self.folders)
    }

    fn open(
        &self,
        name: &TransportId,
        located: Located,
        about: Option<About>,
        network: &Network,
    ) -> tsuji_transport::Result<EngineTransport> {
        for other in &located.hidden {
            told::warn!(
                transport = %name, taken = %located.path.display(), "not taken: {}", other.display()
            );
        }
        let starts = self.folder.with_file_name(format!("starts-of-{name}-{}", process::user_id()));
        let (about, loaded) = match about {
            Some(about) => (about, None),
            // What nobody knows says itself what it can do. What is on its network besides tsuji is met
            // by another engine.
            None => {
                let plugin = Plugin::load_noting(&located.path, name.as_str(), &starts)?;
                let about = About {
                    peers: Peers::TSUJI,
                    relates: Relates::Never,
                    ..plugin.about().clone()
                };
                (about, Some(plugin))
            }
        };
        let config = self.config(about, located.path, network);
        let config = PluginConfig { starts: Some(starts), ..config };
        let opened = match loaded {
            Some(plugin) => PluginEngine::create_loaded(self.id, config, plugin),
            None => PluginEngine::create(self.id, config),
        };
        let idle = idle_of(self.policy, name).unwrap_or(Some(IDLE_DEFAULT));
        opened.map(|it| it.ending_after(idle))
    }

    /// As far as the network is asked for.
    fn config(&self, about: About, path: PathBuf, network: &Network) -> PluginConfig {
        let known = self.interfaces;
        let is_on_wire = about.peers != Peers::TSUJI;
        let is_zenoh = about.id.as_str() == PLUGIN_ZENOH.0;
        // Who is met by a router or a master is not looked for by this host's interfaces.
        let is_met = is_zenoh || about.id.as_str() == PLUGIN_ROS1.0;
        let reach = if is_met { network.reach_of_foreign(known) } else { network.reach(known) };
        let mut reach = reaching(network.domain(), reach);
        let settings = self.policy.settings(&about.id).into_iter().flat_map(|it| &it.settings);
        // Those of the network tsuji itself obeys, as those of Cyclone DDS.
        let is_fast = about.id.as_str() == FAST;
        // What is tsuji's own is not the library's.
        let is_left = |it: &&Setting| {
            &*it.key != IDLE
                && !(is_fast && obey_setting(&mut reach, it))
                && !(is_zenoh && &*it.key == READERS)
        };
        let settings =
            settings.filter(is_left).map(|it| (it.key.to_string(), it.value.to_string()));
        let mut settings: Vec<_> = settings.collect();
        let is_second = about.peers == FAST_ALONE;
        if is_second {
            settings.retain(|(key, _)| key != MEET);
            settings.push((MEET.to_owned(), "host".to_owned()));
        } else if is_on_wire && !is_met {
            warn_if_alone(&reach, known);
        }
        let CycloneConfig { domain, no_multicast, .. } = reach;
        let peers = reach.peers.clone();
        let (hosts, names): (_, Vec<_>) =
            peers.into_iter().partition(|it| it.parse::<Ipv4Addr>().is_ok());
        for name in names.iter().filter(|_| is_on_wire) {
            told::warn!(
                "the host {name:?} is not looked for by {}; allowed: IPv4 addresses",
                about.id
            );
        }
        PluginConfig {
            user_data: match is_on_wire {
                true => user_data(self.id, None, network, is_second),
                false => Vec::new(),
            },
            hosts,
            no_multicast,
            // That goes also on a host that has no other interface.
            network: Some(Arc::new(PluginNetwork { reach, has_router: is_met && is_on_wire })),
            settings,
            ..PluginConfig::new(about, path, domain)
        }
    }
}

/// How far a plug-in reaches, as the interfaces of this host are whenever it starts.
#[derive(Debug)]
struct PluginNetwork {
    reach: CycloneConfig,
    has_router: bool,
}

impl tsuji_transport_plugin::Network for PluginNetwork {
    fn now(&self) -> NetworkNow {
        let mut known = interfaces::interfaces().unwrap_or_default();
        // Fast DDS passes over one that has no carrier when it starts, and does not use it when it has.
        known.retain(|it| it.is_running);
        let CycloneConfig { interfaces, .. } = self.reach.now(&known);
        NetworkNow {
            host_only: interfaces == ["lo"] && !self.has_router,
            interfaces,
            // Those who meet by a router connect to it by its address, and again whenever that fails.
            addresses: match self.has_router {
                true => Vec::new(),
                false => self.reach.addresses(&known, interfaces::index_of),
            },
        }
    }
}

const FAST: &str = "fastdds";

/// The plug-ins that need no policy to be found, with the largest sample of each. The library of one is not loaded to be
/// asked.
const PLUGINS: [(&str, u64); 3] = [PLUGIN_FAST, PLUGIN_ZENOH, PLUGIN_ROS1];
const PLUGIN_FAST: (&str, u64) = (FAST, 1 << 30);
const PLUGIN_ZENOH: (&str, u64) = ("zenoh", 1 << 29);
const PLUGIN_ROS1: (&str, u64) = ("ros1", 1 << 30);

/// Whom Fast DDS meets: `host` for participants of its own on this host.
const MEET: &str = "meet";

/// Who is met on the wire of RTPS, by Fast DDS beside another engine, on that of Zenoh, and beside a master of ROS 1.
const RTPS: Peers = Peers::RTPS;
const FAST_ALONE: Peers = Peers { tsuji: false, fast: true, ..Peers::TSUJI };
const ZENOH: Peers = Peers { zenoh: true, ..Peers::TSUJI };
const ROS1: Peers = Peers { tsuji: false, ros1: true, ..Peers::TSUJI };

/// The network without a wire whose plug-in is missing, which is told.
fn without_missing(
    asked: &Network,
    opened: &Result<EngineTransport, Failed>,
    wire: Interop,
    who: &str,
) -> Network {
    let Err(Failed { reason, .. }) = opened else { return asked.clone() };
    let network = asked.without(wire);
    told::warn!(
        "interop={}, and not {}: {who} are not met: {reason}; the package tsuji-transport-{wire} \
         installs its plug-in",
        network.interop(),
        asked.interop()
    );
    network
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

fn cyclone_config(
    id: PeerId,
    place: Option<u64>,
    network: &Network,
    policy: &Policy,
    interfaces: &[Interface],
) -> Result<CycloneConfig> {
    let mut config = reaching(network.domain(), network.reach(interfaces));
    obey_settings(&mut config, policy, CYCLONE)?;
    let speaks = network.speaks_rtps() && network.engine().first() == RtpsEngine::CycloneDds;
    config.tsuji_only = network.speaks() && !speaks;
    if config.tsuji_only {
        return Ok(config);
    }
    config.user_data = user_data(id, place, network, false);
    config.peer_processes = place.map(|place| PeerMarks {
        claim: TsujiParticipant::place_mark(place),
        key: TsujiParticipant::process_key(),
    });
    config.extra = network.cyclonedds_uri().map(str::to_owned);
    warn_if_alone(&config, interfaces);
    Ok(config)
}

/// Whether the settings are such that the transports of this build could be opened with them.
pub(crate) fn check_settings(policy: &Policy) -> Result<()> {
    shm_config(policy)?;
    check_idle(policy)?;
    [CYCLONE, FAST]
        .iter()
        .try_for_each(|engine| obey_settings(&mut CycloneConfig::default(), policy, engine))?;
    check_readers_of_zenoh(policy)
}

/// The one setting of Zenoh's that is tsuji's own; the others are left to its library.
fn check_readers_of_zenoh(policy: &Policy) -> Result<()> {
    let settings = policy.settings(&TransportId::new(PLUGIN_ZENOH.0));
    let mut settings = settings.into_iter().flat_map(|it| &it.settings);
    let wrong =
        settings.find(|it| &*it.key == READERS && !matches!(&*it.value, AT_ONCE | "when_needed"));
    match wrong {
        None => Ok(()),
        Some(Setting { value, origin, .. }) => Err(Error::invalid(format!(
            "{origin}: {READERS}={value:?} is not a setting of zenoh; allowed: when_needed, {AT_ONCE}"
        ))),
    }
}

/// Obeys what is set for an engine of RTPS. What only Fast DDS can know is left to it.
fn obey_settings(config: &mut CycloneConfig, policy: &Policy, engine: &str) -> Result<()> {
    let settings = policy.settings(&TransportId::new(engine));
    for setting in settings.into_iter().flat_map(|it| &it.settings) {
        let (key, value) = (&*setting.key, &*setting.value);
        let is_its_own = engine == FAST && !OF_THE_NETWORK.contains(&key);
        // Looked at by `idle_of`.
        let is_idle = key == IDLE;
        if !obey_setting(config, setting) && !is_its_own && !is_idle {
            return Err(Error::invalid(format!(
                "{}: {key}={value:?} is not a setting of {engine}; allowed: interfaces=NAMES, \
                 peers=ADDRESSES, each with spaces between, multicast=true, false or default, \
                 {READERS}=when_needed or {AT_ONCE}, {IDLE}=SECONDS or {NEVER}",
                setting.origin
            )));
        }
    }
    Ok(())
}

/// How long the engine of a transport stays when nothing needs it; `None` for always.
fn idle_of(policy: &Policy, transport: &TransportId) -> Result<Option<Duration>> {
    let settings = policy.settings(transport).into_iter().flat_map(|it| &it.settings);
    let Some(setting) = settings.into_iter().find(|it| &*it.key == IDLE) else {
        return Ok(Some(IDLE_DEFAULT));
    };
    if &*setting.value == NEVER {
        return Ok(None);
    }
    let seconds = setting.value.parse::<f64>().ok().filter(|it| 0.0 < *it && *it <= IDLE_MAX_S);
    seconds.map(|it| Some(Duration::from_secs_f64(it))).ok_or_else(|| {
        Error::invalid(format!(
            "{}: {:?} is no {IDLE}; allowed: more than 0 and at most {IDLE_MAX_S} seconds, such as 10 or 0.5, or {NEVER}",
            setting.origin, setting.value
        ))
    })
}

fn check_idle(policy: &Policy) -> Result<()> {
    policy.transports().iter().try_for_each(|it| idle_of(policy, &it.transport).map(drop))
}

const IDLE: &str = "idle_seconds";
const NEVER: &str = "never";
const IDLE_MAX_S: f64 = 86_400.0;
const CYCLONE: &str = "cyclonedds";

/// Whether it is one of the settings that all engines of RTPS have, and allowed.
fn obey_setting(config: &mut CycloneConfig, setting: &Setting) -> bool {
    let (key, value) = (&*setting.key, &*setting.value);
    let words = || value.split_whitespace().map(str::to_owned).collect();
    match (key, value) {
        ("interfaces", _) => config.interfaces = words(),
        ("peers", _) => config.peers = words(),
        ("multicast", "true" | "default" | "false") => {
            (config.force_multicast, config.no_multicast) = (value == "true", value == "false");
        }
        (READERS, AT_ONCE | "when_needed") => {}
        _ => return false,
    }
    true
}

const OF_THE_NETWORK: [&str; 4] = ["interfaces", "peers", "multicast", READERS];

/// Says so if no host but this one can find the engine, nor be found by it.
fn warn_if_alone(config: &CycloneConfig, interfaces: &[Interface]) {
    if is_alone(config, interfaces) {
        told::warn!(
            "other hosts are not found: no interface that leads to them carries multicast, and no \
             peer is named; name them in ROS_STATIC_PEERS, or as root: ip link set NAME multicast on"
        );
    }
}

/// Whether nobody is looked for beyond this host although there is an interface that leads away.
fn is_alone(config: &CycloneConfig, interfaces: &[Interface]) -> bool {
    let is_used =
        |it: &Interface| config.interfaces.is_empty() || config.interfaces.contains(&it.name);
    let leading = || interfaces.iter().filter(|it| it.leads_away() && is_used(it));
    let has_multicast = |it: &Interface| it.has_multicast || config.force_multicast;
    leading().next().is_some()
        && config.peers.is_empty()
        && config.extra.is_none()
        && (config.no_multicast || !leading().any(has_multicast))
}

/// Whether subscriptions are shown to foreign nodes on this transport's wire before there is a foreign publisher. By default
/// by Cyclone DDS, over which processes of a host pass over each other so that nothing comes twice for it, and where memory is
/// not preferred; and always to ROS 1, where a master has to know what is subscribed to and served.
pub(crate) fn shows_subscriptions(policy: &Policy, transport: &TransportId) -> bool {
    let mut settings = policy.settings(transport).into_iter().flat_map(|it| &it.settings);
    match settings.find(|it| &*it.key == READERS) {
        Some(said) => &*said.value == AT_ONCE,
        None => match transport.as_str() {
            CYCLONE => policy.prefer() != Prefer::Memory,
            name => name == PLUGIN_ROS1.0,
        },
    }
}

const READERS: &str = "readers";
const AT_ONCE: &str = "at_once";

/// As rmw_cyclonedds does it (`check_create_domain` in `rmw_node.cpp`), and over loopback alone where
/// it would find nobody.
fn reaching(domain: u32, reach: Reach) -> CycloneConfig {
    let everywhere = CycloneConfig { domain, ..CycloneConfig::default() };
    match reach {
        Reach::Loopback => CycloneConfig::on_loopback(domain),
        Reach::LoopbackAlone { peers } => {
            told::info!(
                "no interface but loopback is up; RTPS is spoken over it alone, with multicast, until another is"
            );
            CycloneConfig { peers, loopback_until_up: true, ..everywhere }
        }
        Reach::Host { mut peers, and_loopback } => {
            peers.push("127.0.0.1".to_owned());
            CycloneConfig { peers, and_loopback, no_multicast: true, ..everywhere }
        }
        Reach::Links { peers } => CycloneConfig { peers, ..everywhere },
    }
}

/// What the participant says of itself, or the second one of this process does; with its place, if its engine can pass over
/// who shares that.
fn user_data(id: PeerId, place: Option<u64>, network: &Network, is_second: bool) -> Vec<u8> {
    // A value has no semicolon and is not empty.
    let host = process::host_name().replace(';', "_");
    let host = if host.is_empty() { "?".to_owned() } else { host };
    let version = protocol::VERSION;
    let tsuji = TsujiParticipant { process: id.0, version, host, is_second, place };
    let enclave = network.speaks().then(|| network.enclave().to_owned());
    // Nothing in it is refused; and what is said here is a help, no condition.
    ParticipantUserData { enclave, tsuji: Some(tsuji) }.write().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Said;
    #[test]
    fn when_subscriptions_are_shown() {
        let check = |text: &str, expect: [bool; 3]| {
            let policy = tsuji_policy::load("p", text.as_bytes(), KNOWN).unwrap();
            let shown = [CYCLONE, FAST, PLUGIN_ZENOH.0]
                .map(|it| shows_subscriptions(&policy, &TransportId::new(it)));
            assert_eq!(shown, expect, "{text}");
        };
        check("<tsuji/>", [true, false, false]);
        check(r#"<tsuji prefer="memory"/>"#, [false, false, false]);
        for name in [CYCLONE, FAST, PLUGIN_ZENOH.0] {
            let said = |value: &str| {
                format!(
                    r#"<tsuji><transport name="{name}"><set key="readers" value="{value}"/></transport></tsuji>"#
                )
            };
            let is = |it: &str| it == name;
            check(&said(AT_ONCE), [true, is(FAST), is(PLUGIN_ZENOH.0)]);
            check(&said("when_needed"), [!is(CYCLONE), false, false]);
        }
    }

    #[test]
    fn what_the_engine_is_told() {
        let policy = |text: &str| tsuji_policy::load("p", text.as_bytes(), KNOWN).unwrap();
        let check = |variables: &[(&str, &str)], text: &str, expect: CycloneConfig| {
            let of = |name: &str| {
                let found = variables.iter().find(|(it, _)| *it == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let policy = policy(text);
            let asked =
                Network::ask(Said { domain: Some(7), ..Said::default() }, &policy, of).unwrap();
            let known = interfaces::interfaces().unwrap();
            let config =
                cyclone_config(PeerId([1; 16]), Some(5), &asked.network, &policy, &known).unwrap();
            // That is as the interfaces of this machine are.
            let config = CycloneConfig { and_loopback: false, ..config };
            let user_data = match config.tsuji_only {
                true => Vec::new(),
                false => user_data(PeerId([1; 16]), Some(5), &asked.network, false),
            };
            let peer_processes = (!config.tsuji_only).then(|| PeerMarks {
                claim: "tsujiplace=0000000000000005;".to_owned(),
                key: "tsujiprocess=".to_owned(),
            });
            let expect = CycloneConfig { user_data, peer_processes, ..expect };
            assert_eq!(config, expect, "{variables:?} {text}");
        };
        let everywhere = CycloneConfig { domain: 7, ..CycloneConfig::default() };
        let local = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        let peers = ("ROS_STATIC_PEERS", "192.0.2.9");
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let host = CycloneConfig {
            no_multicast: true,
            peers: words(&["192.0.2.9", "127.0.0.1"]),
            ..everywhere.clone()
        };
        check(&[local, peers], "<tsuji/>", host.clone());
        let uri = ("CYCLONEDDS_URI", "file:///x");
        let extra = Some("file:///x".to_owned());
        check(&[local, peers, uri], "<tsuji/>", CycloneConfig { extra, ..host });
        let none = CycloneConfig::on_loopback(7);
        check(&[peers, uri], "<tsuji interop=\"none\"/>", none.clone());
        check(&[("TSUJI_INTEROP", "none"), local], "<tsuji/>", none);
        let settings = "<tsuji><transport name=\"cyclonedds\"><set key=\"peers\" value=\"a b\"/>\
                        <set key=\"multicast\" value=\"default\"/></transport></tsuji>";
        let mine = CycloneConfig { peers: words(&["a", "b"]), ..everywhere };
        check(&[local, peers], settings, mine.clone());
        let by_fast = "<tsuji engine=\"fastdds\"><transport name=\"cyclonedds\">";
        let settings = settings.replace("<tsuji><transport name=\"cyclonedds\">", by_fast);
        let tsuji_only = CycloneConfig { tsuji_only: true, ..mine };
        check(&[local, peers, uri], &settings, tsuji_only);
    }

    #[test]
    fn who_is_alone_on_a_network() {
        let link = |name: &str, has_multicast| Interface {
            name: name.to_owned(),
            is_up: true,
            is_running: true,
            is_loopback: name == "lo",
            has_multicast,
            addresses: vec![Ipv4Addr::new(192, 0, 2, 1).into()],
        };
        let (deaf, well) =
            ([link("lo", false), link("a", false)], [link("a", false), link("b", true)]);
        let everywhere = CycloneConfig::default();
        let check = |config: CycloneConfig, expect: [bool; 2]| {
            let found = [is_alone(&config, &deaf), is_alone(&config, &well)];
            assert_eq!(found, expect, "{config:?}");
        };
        check(everywhere.clone(), [true, false]);
        check(CycloneConfig { no_multicast: true, ..everywhere.clone() }, [true, true]);
        check(CycloneConfig { interfaces: vec!["a".into()], ..everywhere.clone() }, [true, true]);
        check(CycloneConfig { force_multicast: true, ..everywhere.clone() }, [false, false]);
        check(CycloneConfig { peers: vec!["b".into()], ..everywhere.clone() }, [false, false]);
        check(CycloneConfig::on_loopback(7), [false, false]);
        assert!(!is_alone(&everywhere, &deaf[..1]));
    }

    #[test]
    fn how_far_the_engine_is_sent() {
        let peers = vec!["192.0.2.9".to_owned()];
        let alone = reaching(7, Reach::LoopbackAlone { peers: peers.clone() });
        let on_loopback = CycloneConfig { peers: peers.clone(), ..CycloneConfig::on_loopback(7) };
        let now = CycloneConfig { loopback_until_up: false, ..alone.now(&[]) };
        assert_eq!((alone.loopback_until_up, now), (true, on_loopback));
        let links = reaching(7, Reach::Links { peers: peers.clone() });
        assert_eq!((links.peers, links.interfaces, links.no_multicast), (peers, vec![], false));
    }

    #[test]
    fn who_the_participant_says_it_is() {
        let said = |interop| {
            let policy = tsuji_policy::builtin_default();
            let enclave = Some("/robot".to_owned());
            let program =
                Said { domain: Some(7), interop: Some(interop), enclave, ..Said::default() };
            let asked = Network::ask(program, &policy, |_| None).unwrap();
            let said = user_data(PeerId([9; 16]), None, &asked.network, false);
            ParticipantUserData::parse(&said).unwrap()
        };
        let (rtps, none) = (said(Interop::RTPS), said(Interop::NONE));
        assert_eq!((rtps.enclave.as_deref(), none.enclave), (Some("/robot"), None));
        assert_eq!(rtps.tsuji.as_ref().map(|it| it.process), Some([9; 16]));
        assert_eq!(rtps.tsuji, none.tsuji);
    }

    #[test]
    fn an_engine_stays_for_as_long_as_is_said() {
        let idle = |value: &str| {
            let set = format!("<set key=\"idle_seconds\" value=\"{value}\"/>");
            let text = format!("<tsuji><transport name=\"fastdds\">{set}</transport></tsuji>");
            let policy = tsuji_policy::load("p", text.as_bytes(), KNOWN).unwrap();
            let checked = check_idle(&policy).map_err(|error| error.to_string());
            checked.map(|()| idle_of(&policy, &TransportId::new(FAST)).unwrap())
        };
        assert_eq!(idle("0.5"), Ok(Some(Duration::from_millis(500))));
        assert_eq!(idle("never"), Ok(None));
        for wrong in ["0", "-1", "inf", "NaN", "86401", "10 s", ""] {
            let error = idle(wrong).unwrap_err();
            assert!(error.contains("p:1: ") && error.contains("allowed: more than 0"), "{error}");
        }
        let policy = tsuji_policy::builtin_default();
        assert_eq!(idle_of(&policy, &TransportId::new(FAST)).unwrap(), Some(IDLE_DEFAULT));
    }
}
