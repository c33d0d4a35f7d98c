//! Which foreign ROS 2 nodes are spoken to, and how far: what the program, the environment and the
//! policy say of it, as one value.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tsuji_core::{Interop, Outward, Policy, RtpsEngine, names};
use tsuji_platform::network::Interface;
use tsuji_ros::environment::{self, DiscoveryRange, Engine, Line, RosEnvironment};
use tsuji_ros::gid::Distro;

use crate::{Error, Result};

/// Contexts that share a participant have the same.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// What comes of what was asked for.
    interop: Interop,
    /// What speaks RTPS, if it works.
    engine: RtpsEngine,
    ros: RosEnvironment,
    /// It is joined at once, whatever the policy prefers.
    joins_at_once: bool,
    /// Its security enclave.
    enclave: String,
    /// The robot that is said beside the policy.
    robot: Option<String>,
    outward: Arc<Outward>,
    is_secured: bool,
    /// What secures RTPS, in a secured process that speaks it.
    dds_security: Option<PathBuf>,
}

/// What the program itself says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) domain: Option<u32>,
    pub(crate) interop: Option<Interop>,
    pub(crate) engine: Option<RtpsEngine>,
    pub(crate) range: Option<DiscoveryRange>,
    pub(crate) static_peers: Option<Vec<String>>,
    pub(crate) distro: Option<Distro>,
    pub(crate) joins_at_once: bool,
    pub(crate) enclave: Option<String>,
    /// Empty for none.
    pub(crate) robot: Option<String>,
}

/// What is said of the network, and whatever of it is not obeyed, or not as it was said. What is said
/// to engines is not among that: see [`Network::lines_of_engines`].
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) network: Network,
    pub(crate) lines: Vec<String>,
}

/// How soon it is joined makes no other network of it.
impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        let said = |it: &Self| (it.interop, it.engine, it.is_secured);
        said(self) == said(other) && self.ros == other.ros && self.outward == other.outward
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
        let Said {
            domain,
            interop,
            engine,
            range,
            static_peers,
            distro,
            joins_at_once,
            enclave,
            robot,
        } = program;
        let read = |name: &str| match name {
            // Of a domain that is not asked for nothing is an error.
            "ROS_DOMAIN_ID" if domain.is_some() => None,
            // Peers of the program are read as those of the environment are, and beside its range.
            "ROS_STATIC_PEERS" if static_peers.is_some() => {
                static_peers.as_ref().map(|peers| peers.join(";"))
            }
            "ROS_AUTOMATIC_DISCOVERY_RANGE" if static_peers.is_some() && range.is_some() => {
                range.map(|range| range.to_string())
            }
            "ROS_DISTRO" if distro.is_some() => distro.map(|distro| distro.to_string()),
            "ROS_LOCALHOST_ONLY" if static_peers.is_some() && range.is_some() => None,
            _ => variable(name),
        };
        let read = |name: &str| read(name).filter(|value| !value.is_empty());
        let mut ros =
            RosEnvironment::read(read).map_err(|error| Error::invalid(error.to_string()))?;
        // As in rcl: it prevails over what a program says.
        let overriding = ros.security.as_ref().and_then(|it| it.enclave.as_deref());
        let overriding = overriding.map(enclave_of).transpose()?;
        let enclave = overriding.or(enclave).unwrap_or_else(|| "/".to_owned());
        ros.domain = domain.unwrap_or(ros.domain);
        ros.range = range.unwrap_or(ros.range);
        let mut lines: Vec<String> = ros.lines.drain(..).map(|it| it.to_string()).collect();
        let (peers, passed_over) =
            std::mem::take(&mut ros.static_peers).into_iter().partition(|it| is_of_ipv4(it));
        ros.static_peers = peers;
        let (said, origin) = match (interop, read(INTEROP)) {
            (Some(interop), _) => (interop, "interop"),
            (None, Some(word)) => (word.parse().map_err(|it| not_allowed(INTEROP, it))?, INTEROP),
            (None, None) => (policy.interop(), "interop of the policy"),
        };
        let (interop, line) = offered(said, ros.range);
        lines.extend(line.map(|line| format!("{origin}={said}: {line}")));
        let engine = match (engine, read(ENGINE)) {
            (Some(engine), _) => engine,
            (None, Some(word)) => word.parse().map_err(|it| not_allowed(ENGINE, it))?,
            (None, None) => policy.engine(),
        };
        if interop.contains(Interop::RTPS) {
            let why = "passed over; allowed: names and IPv4 addresses, without a port";
            let passed_over: Vec<String> = passed_over;
            lines.extend(passed_over.iter().map(|it| format!("ROS_STATIC_PEERS={it:?}: {why}")));
        }
        let (robot, origin) = match robot {
            Some(robot) => (Some(robot), "robot"),
            // An empty one says that there is none, whatever the policy says.
            None => (variable(ROBOT), ROBOT),
        };
        let outward = match &robot {
            Some(name) => policy
                .outward()
                .named(name)
                .map_err(|error| Error::invalid(format!("{origin}: {name:?} is {error}")))?,
            None => policy.outward(),
        };
        let outward = Arc::new(outward);
        Ok(Asked {
            network: Self {
                interop,
                engine,
                ros,
                joins_at_once,
                enclave,
                robot,
                outward,
                is_secured: false,
                dds_security: None,
            },
            lines,
        })
    }

    /// What is to secure the messages, if that is enabled.
    pub(crate) fn security(&self) -> Option<&environment::Security> {
        self.ros.security.as_ref()
    }

    /// The same, where messages go by nothing but what is secured: of foreign nodes those are spoken to that are on RTPS, by Cyclone DDS,
    /// where the library that secures it is there. With a line that says who is not.
    pub(crate) fn secured(
        &self,
        enclave: &str,
        library: Result<PathBuf, String>,
        lines: &mut Vec<String>,
    ) -> Self {
        let missing = match (&library, self.interop.without(Interop::RTPS)) {
            (Err(why), _) if self.speaks() => Some((
                "processes of tsuji on this host",
                format!("other hosts and other ROS 2 nodes are not: {why}"),
            )),
            (Ok(_), others) if others != Interop::NONE => Some((
                "nodes on RTPS",
                format!("those on {others} are not, since no engine for that is secured"),
            )),
            _ => None,
        };
        // A program that only looks who is there need not say it each time.
        if let Some((who, missing)) = missing.filter(|_| !self.joins_at_once) {
            lines.push(format!(
                "ROS_SECURITY_ENABLE=true: {who} are met by the keystore, as {enclave:?}; {missing}"
            ));
        }
        let speaks_rtps = library.is_ok() && self.speaks_rtps();
        if speaks_rtps && self.engine != RtpsEngine::CycloneDds {
            lines.push(format!(
                "engine={}: not obeyed, since a secured process speaks RTPS by Cyclone DDS",
                self.engine
            ));
        }
        Self {
            interop: if speaks_rtps { Interop::RTPS } else { Interop::NONE },
            engine: RtpsEngine::CycloneDds,
            is_secured: true,
            dds_security: library.ok().filter(|_| speaks_rtps),
            enclave: enclave.to_owned(),
            ..self.clone()
        }
    }

    /// Where the library is that secures RTPS, if this process is secured and speaks it.
    pub(crate) fn dds_security(&self) -> Option<&Path> {
        self.dds_security.as_deref()
    }

    /// The same, spoken by this engine.
    pub(crate) fn by(&self, engine: RtpsEngine) -> Self {
        Self { engine, ..self.clone() }
    }

    /// The same, where what speaks this does not work.
    pub(crate) fn without(&self, wire: Interop) -> Self {
        Self { interop: self.interop.without(wire), ..self.clone() }
    }

    /// What is said to engines and not obeyed, as lines for people.
    pub(crate) fn lines_of_engines(&self) -> Vec<String> {
        if !self.speaks_rtps() {
            return Vec::new();
        }
        // What is for Zenoh its plug-in reads.
        let mut lines = self.ros.lines_without(&[self.settings_for(), Engine::Zenoh]);
        lines.extend(self.ros.engine_settings.iter().filter_map(|it| {
            // Of what is for Cyclone DDS all is obeyed.
            let is_passed_over = it.engine == self.settings_for() && it.engine == Engine::FastDds;
            is_passed_over.then(|| Line {
                variable: it.variable,
                value: it.value.clone(),
                why: "not obeyed: tsuji sets all that Fast DDS does here itself".to_owned(),
            })
        }));
        lines.iter().map(ToString::to_string).collect()
    }

    /// Whose settings are read.
    fn settings_for(&self) -> Engine {
        match self.engine {
            RtpsEngine::CycloneDds | RtpsEngine::Both => Engine::CycloneDds,
            RtpsEngine::FastDds => Engine::FastDds,
        }
    }

    /// The security enclave that foreign nodes see it in.
    pub(crate) fn enclave(&self) -> &str {
        &self.enclave
    }

    /// Whether nothing is different but perhaps what a policy says of it: the interop, the engine, the robot and what is exported.
    pub(crate) fn has_same_environment(&self, other: &Self) -> bool {
        (&self.ros, &self.robot) == (&other.ros, &other.robot)
    }

    /// What the outside sees of this process.
    pub(crate) fn outward(&self) -> &Arc<Outward> {
        &self.outward
    }

    /// The domain.
    pub(crate) fn domain(&self) -> u32 {
        self.ros.domain
    }

    /// What comes of what was asked for.
    pub(crate) fn interop(&self) -> Interop {
        self.interop
    }

    /// What is to speak RTPS.
    pub(crate) fn engine(&self) -> RtpsEngine {
        self.engine
    }

    /// Whether the network is joined at once, whatever the policy prefers.
    pub(crate) fn joins_at_once(&self) -> bool {
        self.joins_at_once
    }

    /// Whether what speaks RTPS can announce that a type has keys: engines from libraries are not told of it.
    pub(crate) fn announces_keys(&self) -> bool {
        self.engine.first() == RtpsEngine::CycloneDds
    }

    /// Whether foreign ROS 2 nodes on RTPS are spoken to.
    pub(crate) fn speaks_rtps(&self) -> bool {
        self.speaks_to(Interop::RTPS)
    }

    /// Whether foreign nodes on this wire are spoken to.
    pub(crate) fn speaks_to(&self, wire: Interop) -> bool {
        self.interop.contains(wire)
    }

    /// Whether any foreign nodes are.
    pub(crate) fn speaks(&self) -> bool {
        self.interop != Interop::NONE
    }

    /// Whose formats are spoken.
    pub(crate) fn distro(&self) -> Distro {
        self.ros.distro
    }

    /// What the user wrote for Cyclone DDS. Nothing where it speaks to no foreign node: then it carries
    /// between processes of tsuji only, and is no concern of the user's network.
    pub(crate) fn cyclonedds_uri(&self) -> Option<&str> {
        let is_asked = self.speaks_rtps() && self.settings_for() == Engine::CycloneDds;
        let mut settings = self.ros.engine_settings.iter();
        let found = settings.find(|it| it.engine == Engine::CycloneDds && is_asked);
        found.map(|it| it.value.as_str())
    }

    /// How far an engine of RTPS reaches, on a host with these interfaces.
    pub(crate) fn reach(&self, interfaces: &[Interface]) -> Reach {
        if !self.speaks_rtps() {
            return Reach::Loopback;
        }
        self.reach_of_foreign(interfaces)
    }

    /// How far foreign nodes are looked for, whatever speaks to them.
    pub(crate) fn reach_of_foreign(&self, interfaces: &[Interface]) -> Reach {
        if !self.speaks() {
            return Reach::Loopback;
        }
        let peers = self.ros.static_peers.clone();
        // Whoever writes to the engine may name loopback, which it takes once only.
        let is_chosen = self.cyclonedds_uri().is_some();
        match self.ros.range {
            // Not with an interop that speaks.
            DiscoveryRange::Off => Reach::Loopback,
            DiscoveryRange::Localhost => Reach::Host { peers, and_loopback: !is_chosen },
            DiscoveryRange::Subnet | DiscoveryRange::SystemDefault => {
                match is_chosen || interfaces.iter().any(Interface::leads_away) {
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
    /// The same, and foreign nodes there, since no other interface is up.
    LoopbackAlone { peers: Vec<String> },
    /// This host and these peers, by unicast; over loopback beside another interface, or over one.
    Host { peers: Vec<String>, and_loopback: bool },
    /// Whoever multicast finds, and these peers.
    Links { peers: Vec<String> },
}

/// Whether it can be what the engine asks for: a name, or an address of IPv4.
fn is_of_ipv4(peer: &str) -> bool {
    !peer.contains([':', '[', ']', '%'])
}

/// What there is of it, and why not more.
fn offered(said: Interop, range: DiscoveryRange) -> (Interop, Option<&'static str>) {
    match (said, range) {
        (Interop::NONE, _) => (Interop::NONE, None),
        (_, DiscoveryRange::Off) => (
            Interop::NONE,
            Some("ROS_AUTOMATIC_DISCOVERY_RANGE is OFF; no foreign ROS 2 node is spoken to"),
        ),
        (said, _) => (said, None),
    }
}

/// The enclave that the environment names, with its slash before it or without.
fn enclave_of(said: &str) -> Result<String> {
    let enclave = format!("/{}", said.trim_start_matches('/'));
    names::validate_namespace(&enclave)
        .map_err(|error| Error::invalid(format!("ROS_SECURITY_ENCLAVE_OVERRIDE: {error}")))?;
    Ok(enclave)
}

fn not_allowed(variable: &str, error: impl Display) -> Error {
    Error::invalid(format!("{variable}: {error}"))
}

/// Names the robot, over the policy.
const ROBOT: &str = "TSUJI_ROBOT";

/// Names what is spoken, over the policy.
const INTEROP: &str = "TSUJI_INTEROP";

/// Names what speaks RTPS, over the policy.
const ENGINE: &str = "TSUJI_RTPS_ENGINE";

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use crate::ErrorKind;

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
            is_running: true,
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
            let said = [asked.lines, asked.network.lines_of_engines()].concat();
            assert_eq!(said, lines, "{variables:?}");
        };
        check(&[], true, &[]);
        check(&[(INTEROP, "")], true, &[]);
        check(&[(INTEROP, "none")], false, &[]);
        check(&[(INTEROP, "both")], true, &[]);
        check(&[(INTEROP, "zenoh")], false, &[]);
        let off = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF");
        let line = "interop of the policy=rtps: ROS_AUTOMATIC_DISCOVERY_RANGE is OFF; no foreign \
                    ROS 2 node is spoken to";
        check(&[off], false, &[line]);
        check(&[off, (INTEROP, "none")], false, &[]);
        let profiles = ("FASTDDS_DEFAULT_PROFILES_FILE", "/x");
        let line = "FASTDDS_DEFAULT_PROFILES_FILE=\"/x\": not obeyed: it is for Fast DDS, which is \
                    not the engine here";
        check(&[profiles], true, &[line]);
        check(&[profiles, (INTEROP, "none")], false, &[]);
        let line = "FASTDDS_DEFAULT_PROFILES_FILE=\"/x\": not obeyed: tsuji sets all that Fast DDS \
                    does here itself";
        check(&[profiles, (ENGINE, "fastdds")], true, &[line]);
        let uri = ("CYCLONEDDS_URI", "/x");
        check(&[uri], true, &[]);
        let line = "CYCLONEDDS_URI=\"/x\": not obeyed: it is for Cyclone DDS, which is not the engine here";
        check(&[uri, (ENGINE, "fastdds")], true, &[line]);
        check(&[("ZENOH_SESSION_CONFIG_URI", "/x")], true, &[]);
        let line = "ROS_STATIC_PEERS=\"fe80::1\": passed over; allowed: names and IPv4 addresses, \
                    without a port";
        check(&[("ROS_STATIC_PEERS", "fe80::1;far")], true, &[line]);
    }

    #[test]
    fn who_is_spoken_to_by_zenoh() {
        let check = |said: &str, expect: [bool; 3], without: Interop| {
            let network = asked(&[(INTEROP, said)]).network;
            assert_eq!(
                [network.speaks_rtps(), network.speaks_to(Interop::ZENOH), network.speaks()],
                expect
            );
            assert_eq!(network.without(Interop::ZENOH).interop(), without, "{said}");
        };
        check("rtps", [true, false, true], Interop::RTPS);
        check("zenoh", [false, true, true], Interop::NONE);
        check("both", [true, true, true], Interop::RTPS);
        check("none", [false, false, false], Interop::NONE);
        let off = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF");
        let asked = asked(&[off, (INTEROP, "zenoh")]);
        assert!(!asked.network.speaks() && asked.lines.len() == 1, "{:?}", asked.lines);
    }

    #[test]
    fn who_says_it() {
        let none = Some(Interop::NONE);
        let asked = ask(None, none, &[(INTEROP, "nonsense")]).unwrap();
        assert!(!asked.network.speaks_rtps());
        let error = ask(None, None, &[(INTEROP, "dds")]).unwrap_err();
        let expect = "TSUJI_INTEROP: \"dds\" is not a kind of interop; allowed: rtps, zenoh, ros1, \
                      both, none";
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, expect));
        let error = ask(None, None, &[(ENGINE, "rustdds")]).unwrap_err();
        let expect = "TSUJI_RTPS_ENGINE: \"rustdds\" is not a known engine; allowed: cyclonedds, fastdds, \
             both";
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, expect));
        let wrong = [("ROS_DOMAIN_ID", "999")];
        assert_eq!(ask(Some(5), None, &wrong).unwrap().network.domain(), 5);
        assert_eq!(ask(None, None, &wrong).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn what_is_secured_speaks_rtps_alone() {
        let enabled = ("ROS_SECURITY_ENABLE", "true");
        let named = |name| ask(None, None, &[enabled, ("ROS_SECURITY_ENCLAVE_OVERRIDE", name)]);
        let asked = named("a").unwrap();
        let error = named("a b").unwrap_err().to_string();
        assert!(error.starts_with("ROS_SECURITY_ENCLAVE_OVERRIDE: "), "{error}");
        assert_eq!((asked.lines.len(), asked.network.enclave()), (0, "/a"));
        assert!(asked.network.speaks() && !asked.network.is_secured);
        let mut lines = Vec::new();
        let missing = || Err("it is not there".to_owned());
        let secured = asked.network.secured("/a", missing(), &mut lines);
        assert!(secured.is_secured && !secured.speaks() && secured != asked.network);
        assert!(secured.dds_security().is_none());
        let expect = "as \"/a\"; other hosts and other ROS 2 nodes are not: it is not there";
        assert!(lines[0].ends_with(expect), "{lines:?}");
        assert!(lines[0].contains("processes of tsuji on this host are met"), "{lines:?}");
        let (count, _) = (lines.len(), secured.secured("/a", missing(), &mut lines));
        assert_eq!(lines.len(), count, "nobody is missed where nobody is spoken to");
        // By the library RTPS is spoken, and nothing else.
        let library = || Ok(PathBuf::from("/lib"));
        let secured = asked.network.secured("/a", library(), &mut lines);
        assert!(secured.is_secured && secured.speaks_rtps());
        assert_eq!((secured.dds_security(), lines.len()), (Some(Path::new("/lib")), count));
        let all = ask(None, None, &[enabled, (INTEROP, "rtps zenoh")]).unwrap();
        let secured = all.network.secured("/a", library(), &mut lines);
        assert_eq!(secured.interop(), Interop::RTPS);
        assert!(lines[count].contains("those on zenoh are not"), "{lines:?}");
        let zenoh = ask(None, None, &[enabled, (INTEROP, "zenoh")]).unwrap();
        let secured = zenoh.network.secured("/a", library(), &mut lines);
        assert!(!secured.speaks() && secured.dds_security().is_none());
    }

    #[test]
    fn what_speaks() {
        let check = |program, variables: &[(&str, &str)], policy: &str, expect| {
            let policy = tsuji_policy::load("p", policy.as_bytes(), &[]).unwrap();
            let said = Said { engine: program, ..Said::default() };
            let asked = Network::ask(said, &policy, |name| {
                let found = variables.iter().find(|(it, _)| *it == name);
                found.map(|(_, value)| (*value).to_owned())
            });
            assert_eq!(asked.unwrap().network.engine(), expect, "{variables:?} {policy:?}");
        };
        let (cyclone, fast) = (RtpsEngine::CycloneDds, RtpsEngine::FastDds);
        check(None, &[], "<tsuji builtin='off'/>", cyclone);
        check(None, &[(ENGINE, "")], "<tsuji builtin='off' engine='fastdds'/>", fast);
        check(None, &[(ENGINE, "cyclonedds")], "<tsuji builtin='off' engine='fastdds'/>", cyclone);
        check(Some(fast), &[(ENGINE, "nonsense")], "<tsuji builtin='off'/>", fast);
    }

    #[test]
    fn which_robot() {
        let of = |program: Option<&str>, variable: &str, policy: &str| {
            let policy = tsuji_policy::load("p", policy.as_bytes(), &[]).unwrap();
            let said = Said { robot: program.map(str::to_owned), ..Said::default() };
            Network::ask(said, &policy, |name| (name == ROBOT).then(|| variable.to_owned()))
        };
        let check = |program, variable, policy, topic: &str| {
            let network = of(program, variable, policy).unwrap().network;
            let topics = [network.outward().topic("/a"), network.outward().topic("/clock")];
            assert_eq!(topics, [topic, "/clock"], "{program:?} {variable:?} {policy}");
        };
        const NONE: &str = "<tsuji builtin='off'><export topic='/clock'/></tsuji>";
        const R1: &str = "<tsuji builtin='off'><robot name='r1' shared='/clock'/></tsuji>";
        check(None, "r2", R1, "/r2/a");
        check(Some("r3"), "r2", R1, "/r3/a");
        check(Some("r3"), "nonsense!", R1, "/r3/a");
        assert_eq!(of(None, "r2", NONE).unwrap().network.outward().topic("/a"), "/r2/a");
        for (program, variable, policy) in [(Some(""), "r2", R1), (None, "", R1), (None, "", NONE)]
        {
            let network = of(program, variable, policy).unwrap().network;
            assert_eq!(network.outward().topic("/a"), "/a");
        }
        let error = of(None, "r-2", NONE).unwrap_err();
        let expect = "TSUJI_ROBOT: \"r-2\" is no name of a robot; allowed: letters, digits";
        assert!(error.to_string().starts_with(expect), "{error}");

        // A policy that has changed since is no other network, and another name is.
        let network = |program: Option<&str>, policy: &str| {
            let policy = tsuji_policy::load("p", policy.as_bytes(), &[]).unwrap();
            let said = Said { robot: program.map(str::to_owned), ..Said::default() };
            Network::ask(said, &policy, |_| None).unwrap().network
        };
        assert_eq!(network(None, R1).outward().topic("/a"), "/r1/a");
        assert_ne!(network(None, R1), network(None, NONE));
        assert!(network(None, R1).has_same_environment(&network(None, NONE)));
        assert!(!network(None, R1).has_same_environment(&network(Some("r1"), R1)));
    }

    #[test]
    fn equal_words_make_equal_networks() {
        let same = asked(&[("ROS_DISTRO", "foxy")]).network;
        assert_eq!(same, asked(&[("ROS_DISTRO", "jazzy")]).network);
        let humble = asked(&[("ROS_DISTRO", "humble")]).network;
        assert_ne!(same, humble);
        let said = Said { distro: Some(Distro::Humble), ..Said::default() };
        let policy = tsuji_policy::builtin_default();
        let of = |name: &str| (name == "ROS_DISTRO").then(|| "jazzy".to_owned());
        assert_eq!(Network::ask(said, &policy, of).unwrap().network.distro(), humble.distro());
        assert_ne!(same, asked(&[("ROS_STATIC_PEERS", "192.0.2.9")]).network);
        assert_ne!(same, same.by(RtpsEngine::FastDds));
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
        assert_eq!(none.reach_of_foreign(&both), Reach::Loopback);
        // RTPS is then for processes of tsuji on this host.
        let zenoh = asked(&[(INTEROP, "zenoh")]).network;
        assert_eq!(zenoh.reach(&both), Reach::Loopback);
        assert_eq!(zenoh.reach_of_foreign(&both), Reach::Links { peers: vec![] });
        assert_eq!(none.cyclonedds_uri(), None);
        let some = asked(&[("CYCLONEDDS_URI", "<General/>")]).network;
        assert_eq!(some.cyclonedds_uri(), Some("<General/>"));
        assert_eq!(some.by(RtpsEngine::FastDds).cyclonedds_uri(), None);
    }
}
