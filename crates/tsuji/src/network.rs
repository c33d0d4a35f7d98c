//! Which plain ROS 2 nodes are spoken to, and how far: what the program, the environment and the
//! policy say of it, as one value.

use std::fmt::Display;

use tsuji_core::{Interop, Policy};
use tsuji_platform::network::Interface;
use tsuji_ros::environment::{DiscoveryRange, Engine, RosEnvironment};
use tsuji_ros::gid::Distro;

use crate::{Error, ErrorKind, Result};

/// Contexts that share a participant have the same.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// `Rtps` or `None`: this build speaks nothing else.
    interop: Interop,
    ros: RosEnvironment,
    /// It is joined at once, whatever the policy prefers.
    joins_at_once: bool,
}

/// What the program itself says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    pub(crate) domain: Option<u32>,
    pub(crate) interop: Option<Interop>,
    pub(crate) range: Option<DiscoveryRange>,
    pub(crate) joins_at_once: bool,
}

/// What is said of the network, and whatever of it is not obeyed, or not as it was said.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) network: Network,
    pub(crate) lines: Vec<String>,
}

/// How soon it is joined makes no other network of it.
impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        (self.interop, &self.ros) == (other.interop, &other.ros)
    }
}

impl Network {
    /// What a program says prevails, then the environment, then the policy. `variable` gives the
    /// value of a variable that is set.
    pub(crate) fn ask(
        program: Said,
        policy: &Policy,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Asked> {
        let Said { domain, interop, range, joins_at_once } = program;
        // Of a domain that is not asked for nothing is an error.
        let visible = |name: &str| domain.is_none() || name != "ROS_DOMAIN_ID";
        let read = |name: &str| variable(name).filter(|it| visible(name) && !it.is_empty());
        let mut ros = RosEnvironment::read(read).map_err(|error| {
            let kind = match error.is_about_security() {
                true => ErrorKind::Unsupported,
                false => ErrorKind::Invalid,
            };
            Error::new(kind, error.to_string())
        })?;
        ros.domain = domain.unwrap_or(ros.domain);
        ros.range = range.unwrap_or(ros.range);
        let mut lines: Vec<String> = ros.lines.drain(..).map(|it| it.to_string()).collect();
        let (peers, passed_over) =
            std::mem::take(&mut ros.static_peers).into_iter().partition(|it| is_of_ipv4(it));
        ros.static_peers = peers;
        let (said, origin) = match (interop, read(INTEROP)) {
            (Some(interop), _) => (interop, "interop"),
            (None, Some(word)) => (word.parse().map_err(not_allowed)?, INTEROP),
            (None, None) => (policy.interop(), "interop of the policy"),
        };
        let (interop, line) = offered(said, ros.range);
        lines.extend(line.map(|line| format!("{origin}={said}: {line}")));
        if interop == Interop::Rtps {
            let unread = ros.lines_without(&[Engine::CycloneDds]);
            lines.extend(unread.iter().map(ToString::to_string));
            let why = "passed over; allowed: names and IPv4 addresses, without a port";
            let passed_over: Vec<String> = passed_over;
            lines.extend(passed_over.iter().map(|it| format!("ROS_STATIC_PEERS={it:?}: {why}")));
        }
        Ok(Asked { network: Self { interop, ros, joins_at_once }, lines })
    }

    /// The domain.
    pub(crate) fn domain(&self) -> u32 {
        self.ros.domain
    }

    /// What comes of what was asked for: `Rtps` or `None`.
    pub(crate) fn interop(&self) -> Interop {
        self.interop
    }

    /// Whether the network is joined at once, whatever the policy prefers.
    pub(crate) fn joins_at_once(&self) -> bool {
        self.joins_at_once
    }

    /// Whether plain ROS 2 nodes on RTPS are spoken to.
    pub(crate) fn speaks_rtps(&self) -> bool {
        self.interop == Interop::Rtps
    }

    /// Whose formats are spoken.
    pub(crate) fn distro(&self) -> Distro {
        self.ros.distro
    }

    /// What the user wrote for an engine. Nothing while no plain node is spoken to: then an engine
    /// carries between processes of this host only, and is no concern of the user's network.
    pub(crate) fn engine_setting(&self, engine: Engine) -> Option<&str> {
        let mut settings = self.ros.engine_settings.iter();
        let found = settings.find(|it| it.engine == engine && self.speaks_rtps());
        found.map(|it| it.value.as_str())
    }

    /// How far an engine of RTPS reaches, on a host with these interfaces.
    pub(crate) fn reach(&self, interfaces: &[Interface]) -> Reach {
        if !self.speaks_rtps() {
            return Reach::Loopback;
        }
        let peers = self.ros.static_peers.clone();
        // Whoever writes to the engine may name loopback, which it takes once only.
        let is_chosen = self.engine_setting(Engine::CycloneDds).is_some();
        match self.ros.range {
            // Not with an interop that speaks.
            DiscoveryRange::Off => Reach::Loopback,
            DiscoveryRange::Localhost => Reach::Host {
                peers,
                // The engine takes an interface once only: where there is no other it chooses it.
                and_loopback: !is_chosen && interfaces.iter().any(leads_away),
            },
            DiscoveryRange::Subnet | DiscoveryRange::SystemDefault => {
                match is_chosen || interfaces.iter().any(leads_away) {
                    true => Reach::Links { peers },
                    false => Reach::LoopbackAlone { peers },
                }
            }
        }
    }
}

/// How far an engine of RTPS reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Processes of tsuji on this host, over loopback.
    Loopback,
    /// The same, and plain nodes there, since no other interface is up.
    LoopbackAlone { peers: Vec<String> },
    /// This host and these peers, by unicast; over loopback beside another interface, or over one.
    Host { peers: Vec<String>, and_loopback: bool },
    /// Whoever multicast finds, and these peers.
    Links { peers: Vec<String> },
}

/// Whether it leads to other hosts by IPv4, which the engine speaks.
pub(crate) fn leads_away(interface: &Interface) -> bool {
    let has_address = interface.addresses.iter().any(|it| it.is_ipv4());
    interface.is_up && !interface.is_loopback && has_address
}

/// Whether it can be what the engine asks for: a name, or an address of IPv4.
fn is_of_ipv4(peer: &str) -> bool {
    !peer.contains([':', '[', ']', '%'])
}

/// What this build has of it, and why not more.
fn offered(said: Interop, range: DiscoveryRange) -> (Interop, Option<&'static str>) {
    match (said, range) {
        (Interop::None, _) => (Interop::None, None),
        (Interop::Zenoh, _) => {
            (Interop::None, Some("zenoh is not in this build; no plain ROS 2 node is spoken to"))
        }
        (Interop::Rtps | Interop::Both, DiscoveryRange::Off) => (
            Interop::None,
            Some("ROS_AUTOMATIC_DISCOVERY_RANGE is OFF; no plain ROS 2 node is spoken to"),
        ),
        (Interop::Both, _) => {
            (Interop::Rtps, Some("zenoh is not in this build; rtps alone is spoken"))
        }
        (Interop::Rtps, _) => (Interop::Rtps, None),
    }
}

fn not_allowed(error: impl Display) -> Error {
    Error::invalid(format!("{INTEROP}: {error}"))
}

/// Names what is spoken, over the policy.
const INTEROP: &str = "TSUJI_INTEROP";

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn ask(
        domain: Option<u32>,
        interop: Option<Interop>,
        variables: &[(&str, &str)],
    ) -> Result<Asked> {
        let program = Said { domain, interop, ..Said::default() };
        Network::ask(program, &tsuji_policy::builtin_default(), |name| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn asked(variables: &[(&str, &str)]) -> Asked {
        ask(None, None, variables).unwrap()
    }

    fn interface(name: &str, address: [u8; 4]) -> Interface {
        Interface {
            name: name.to_owned(),
            is_up: true,
            is_loopback: name == "lo",
            has_multicast: name != "lo",
            addresses: vec![IpAddr::from(address)],
        }
    }

    #[test]
    fn who_is_spoken_to() {
        let check = |variables: &[(&str, &str)], speaks: bool, lines: &[&str]| {
            let asked = asked(variables);
            assert_eq!(asked.network.speaks_rtps(), speaks, "{variables:?}");
            assert_eq!(asked.lines, lines, "{variables:?}");
        };
        check(&[], true, &[]);
        check(&[(INTEROP, "")], true, &[]);
        check(&[(INTEROP, "none")], false, &[]);
        let both = "TSUJI_INTEROP=both: zenoh is not in this build; rtps alone is spoken";
        check(&[(INTEROP, "both")], true, &[both]);
        let zenoh =
            "TSUJI_INTEROP=zenoh: zenoh is not in this build; no plain ROS 2 node is spoken to";
        check(&[(INTEROP, "zenoh")], false, &[zenoh]);
        let off = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF");
        let line = "interop of the policy=rtps: ROS_AUTOMATIC_DISCOVERY_RANGE is OFF; no plain \
                    ROS 2 node is spoken to";
        check(&[off], false, &[line]);
        check(&[off, (INTEROP, "none")], false, &[]);
        let profiles = ("FASTDDS_DEFAULT_PROFILES_FILE", "/x");
        let line = "FASTDDS_DEFAULT_PROFILES_FILE=\"/x\": not obeyed: it is for Fast DDS, which is \
                    not in use";
        check(&[profiles], true, &[line]);
        check(&[profiles, (INTEROP, "none")], false, &[]);
        let line = "ROS_STATIC_PEERS=\"fe80::1\": passed over; allowed: names and IPv4 addresses, \
                    without a port";
        check(&[("ROS_STATIC_PEERS", "fe80::1;far")], true, &[line]);
    }

    #[test]
    fn who_says_it() {
        let none = Some(Interop::None);
        let asked = ask(None, none, &[(INTEROP, "nonsense")]).unwrap();
        assert!(!asked.network.speaks_rtps());
        let error = ask(None, None, &[(INTEROP, "dds")]).unwrap_err();
        let expect = "TSUJI_INTEROP: \"dds\" is not a kind of interop; allowed: rtps, zenoh, both, \
                      none";
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, expect));
        let wrong = [("ROS_DOMAIN_ID", "999")];
        assert_eq!(ask(Some(5), None, &wrong).unwrap().network.domain(), 5);
        assert_eq!(ask(None, None, &wrong).unwrap_err().kind(), ErrorKind::Invalid);
        let enforced = [("ROS_SECURITY_ENABLE", "true"), ("ROS_SECURITY_STRATEGY", "Enforce")];
        assert_eq!(ask(None, none, &enforced).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn equal_words_make_equal_networks() {
        let same = asked(&[("ROS_DISTRO", "foxy")]).network;
        assert_eq!(same, asked(&[("ROS_DISTRO", "jazzy")]).network);
        assert_ne!(same, asked(&[("ROS_DISTRO", "humble")]).network);
        assert_ne!(same, asked(&[("ROS_STATIC_PEERS", "192.0.2.9")]).network);
    }

    #[test]
    fn how_far() {
        let lo = interface("lo", [127, 0, 0, 1]);
        let both = [interface("eth0", [192, 0, 2, 1]), lo.clone()];
        let down = [Interface { is_up: false, ..both[0].clone() }, lo];
        let far = || vec!["192.0.2.9".to_owned()];
        let check = |range: &str, interfaces: &[Interface], expect: Reach| {
            let peers = ("ROS_STATIC_PEERS", "192.0.2.9");
            let asked = asked(&[("ROS_AUTOMATIC_DISCOVERY_RANGE", range), peers]);
            assert_eq!(asked.network.reach(interfaces), expect, "{range}");
        };
        check("SUBNET", &both, Reach::Links { peers: far() });
        check("SUBNET", &down, Reach::LoopbackAlone { peers: far() });
        check("LOCALHOST", &both, Reach::Host { peers: far(), and_loopback: true });
        check("SYSTEM_DEFAULT", &both, Reach::Links { peers: vec![] });
        check("OFF", &both, Reach::Loopback);
        let none = asked(&[(INTEROP, "none"), ("CYCLONEDDS_URI", "<General/>")]).network;
        assert_eq!(none.reach(&both), Reach::Loopback);
        assert_eq!(none.engine_setting(Engine::CycloneDds), None);
        let some = asked(&[("CYCLONEDDS_URI", "<General/>")]).network;
        assert_eq!(some.engine_setting(Engine::CycloneDds), Some("<General/>"));
    }
}
