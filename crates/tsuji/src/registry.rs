//! The one place that knows which transports exist.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tsuji_core::{Policy, TransportId};
use tsuji_platform::life::Life;
use tsuji_platform::memory::Backing;
use tsuji_platform::network::Interface;
use tsuji_platform::{network as interfaces, process};
use tsuji_policy::units::parse_size;
use tsuji_ros::environment::Engine;
use tsuji_ros::user_data::{ParticipantUserData, TsujiParticipant};
use tsuji_transport::bell::Bells;
use tsuji_transport::inproc::InProcess;
use tsuji_transport::{PeerId, Transport};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds};
use tsuji_transport_shm::{SharedMemory, ShmConfig};

use crate::control::protocol;
use crate::network::{Network, Reach, leads_away};
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
    network: &Network,
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
    match CycloneDds::create(id, &cyclone_config(id, network, policy)?) {
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

fn cyclone_config(id: PeerId, network: &Network, policy: &Policy) -> Result<CycloneConfig> {
    // Without them the engine makes the best of what there is.
    let interfaces = interfaces::interfaces().unwrap_or_default();
    let mut config = reaching(network.domain(), network.reach(&interfaces));
    config.user_data = user_data(id, network);
    config.extra = network.engine_setting(Engine::CycloneDds).map(str::to_owned);
    let settings = policy.settings(&TransportId::new("cyclonedds"));
    for setting in settings.into_iter().flat_map(|it| &it.settings) {
        let (key, value) = (&*setting.key, &*setting.value);
        let words = || value.split_whitespace().map(str::to_owned).collect();
        match (key, value) {
            ("interfaces", _) => config.interfaces = words(),
            ("peers", _) => config.peers = words(),
            ("multicast", "true" | "default" | "false") => {
                (config.force_multicast, config.no_multicast) = (value == "true", value == "false");
            }
            (READERS, AT_ONCE | "when_needed") => {}
            _ => {
                return Err(Error::invalid(format!(
                    "{}: {key}={value:?} is not a setting of cyclonedds; allowed: interfaces=NAMES, \
                     peers=ADDRESSES, each with spaces between, multicast=true, false or default, \
                     {READERS}=when_needed or {AT_ONCE}",
                    setting.origin
                )));
            }
        }
    }
    warn_if_alone(&config, &interfaces);
    Ok(config)
}

/// Says so if no host but this one can find the engine, nor be found by it.
fn warn_if_alone(config: &CycloneConfig, interfaces: &[Interface]) {
    if is_alone(config, interfaces) {
        tracing::warn!(
            "other hosts are not found: no interface that leads to them carries multicast, and no \
             peer is named; name them in ROS_STATIC_PEERS, or as root: ip link set NAME multicast on"
        );
    }
}

/// Whether nobody is looked for beyond this host although there is an interface that leads away.
fn is_alone(config: &CycloneConfig, interfaces: &[Interface]) -> bool {
    let is_used =
        |it: &Interface| config.interfaces.is_empty() || config.interfaces.contains(&it.name);
    let leading = || interfaces.iter().filter(|it| leads_away(it) && is_used(it));
    let has_multicast = |it: &Interface| it.has_multicast || config.force_multicast;
    leading().next().is_some()
        && config.peers.is_empty()
        && config.extra.is_none()
        && (config.no_multicast || !leading().any(has_multicast))
}

/// Whether subscriptions are shown to plain nodes before there is a publisher out there.
pub(crate) fn shows_subscriptions(policy: &Policy) -> bool {
    let settings = policy.settings(&TransportId::new("cyclonedds"));
    let mut settings = settings.into_iter().flat_map(|it| &it.settings);
    settings.any(|it| (&*it.key, &*it.value) == (READERS, AT_ONCE))
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
            tracing::info!(
                "no interface but loopback is up; RTPS is spoken over it alone, with multicast"
            );
            CycloneConfig { peers, ..CycloneConfig::on_loopback(domain) }
        }
        Reach::Host { mut peers, and_loopback } => {
            peers.push("127.0.0.1".to_owned());
            CycloneConfig { peers, and_loopback, no_multicast: true, ..everywhere }
        }
        Reach::Links { peers } => CycloneConfig { peers, ..everywhere },
    }
}

/// What the participant says of itself.
fn user_data(id: PeerId, network: &Network) -> Vec<u8> {
    // A value has no semicolon and is not empty.
    let host = process::host_name().replace(';', "_");
    let host = if host.is_empty() { "?".to_owned() } else { host };
    let tsuji = TsujiParticipant { process: id.0, version: protocol::VERSION, host };
    let enclave = network.speaks_rtps().then(|| "/".to_owned());
    // Nothing in it is refused; and what is said here is a help, no condition.
    ParticipantUserData { enclave, tsuji: Some(tsuji) }.write().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Said;
    use tsuji_core::Interop;

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
            let config = cyclone_config(PeerId([1; 16]), &asked.network, &policy).unwrap();
            // That is as the interfaces of this machine are.
            let config = CycloneConfig { and_loopback: false, ..config };
            let user_data = user_data(PeerId([1; 16]), &asked.network);
            assert_eq!(config, CycloneConfig { user_data, ..expect }, "{variables:?} {text}");
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
        check(&[local, peers], settings, mine);
    }

    #[test]
    fn who_is_alone_on_a_network() {
        let link = |name: &str, has_multicast| Interface {
            name: name.to_owned(),
            is_up: true,
            is_loopback: name == "lo",
            has_multicast,
            addresses: vec![std::net::Ipv4Addr::new(192, 0, 2, 1).into()],
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
        assert_eq!(alone, CycloneConfig { peers: peers.clone(), ..CycloneConfig::on_loopback(7) });
        let links = reaching(7, Reach::Links { peers: peers.clone() });
        assert_eq!((links.peers, links.interfaces, links.no_multicast), (peers, vec![], false));
    }

    #[test]
    fn who_the_participant_says_it_is() {
        let said = |interop| {
            let policy = tsuji_policy::builtin_default();
            let program = Said { domain: Some(7), interop: Some(interop), ..Said::default() };
            let asked = Network::ask(program, &policy, |_| None).unwrap();
            ParticipantUserData::parse(&user_data(PeerId([9; 16]), &asked.network)).unwrap()
        };
        let (rtps, none) = (said(Interop::Rtps), said(Interop::None));
        assert_eq!((rtps.enclave.as_deref(), none.enclave), (Some("/"), None));
        assert_eq!(rtps.tsuji.as_ref().map(|it| it.process), Some([9; 16]));
        assert_eq!(rtps.tsuji, none.tsuji);
    }
}
