//! What the environment of a ROS 2 process asks for.
//!
//! From rcl: `init.c` (which variable prevails), `discovery_options.c`, `domain_id.c`, `localhost.c`,
//! `security.c`; from rmw_cyclonedds, `rmw_node.cpp`, what the engines do with it. An empty variable
//! is as one that is not set, as in rcutils.
//!
//! | variable | is |
//! |---|---|
//! | `ROS_DISTRO` | the distribution whose formats are spoken; jazzy if not set, or not known |
//! | `ROS_DOMAIN_ID` | 0 to 232; hexadecimal after `0x` and octal after `0`, as in rcl. Anything else is an error |
//! | `ROS_AUTOMATIC_DISCOVERY_RANGE` | a [`DiscoveryRange`], `SUBNET` if not set; anything else is `LOCALHOST`, as in rcl |
//! | `ROS_STATIC_PEERS` | addresses and host names, separated by `;` |
//! | `ROS_LOCALHOST_ONLY` | deprecated; a value that begins with `1` (Humble: only `1`) sets `LOCALHOST` and no peers, whatever the two above say |
//! | `ROS_SECURITY_ENABLE`, `ROS_SECURITY_STRATEGY` | only `true` enables, and only `Enforce` enforces, as in rcl |
//! | `ROS_SECURITY_KEYSTORE`, `ROS_SECURITY_ENCLAVE_OVERRIDE` | see [`Security`]; nothing where security is not enabled |
//! | `CYCLONEDDS_URI` and others | handed on, see [`EngineSetting`] |

use std::error::Error;
use std::fmt;

use crate::gid::Distro;

/// The highest domain: the ports of RTPS end there.
pub const DOMAIN_MAX: u32 = 232;

/// The most static peers. Those after are passed over, with a line.
pub const STATIC_PEERS_MAX: usize = 256;

/// The most bytes of a static peer, as in rmw, `discovery_options.h`. A longer one is passed over,
/// with a line.
pub const STATIC_PEER_BYTES_MAX: usize = 255;

/// The most bytes of a variable. A longer one is an error.
pub const VALUE_BYTES_MAX: usize = 65_536;

/// What the environment asks for, as far as it is obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosEnvironment {
    /// Whose formats are spoken.
    pub distro: Distro,
    /// The domain, 0 to [`DOMAIN_MAX`].
    pub domain: u32,
    /// Whom to find unasked.
    pub range: DiscoveryRange,
    /// Whom to ask: addresses and host names of letters, digits and `.:-_%[]` only, so that they can
    /// stand in a configuration. Empty unless the range is `SUBNET` or `LOCALHOST`.
    pub static_peers: Vec<String>,
    /// What is meant for engines.
    pub engine_settings: Vec<EngineSetting>,
    /// What secures the messages, if that is enabled.
    pub security: Option<Security>,
    /// What is not obeyed, or not as it was written, and why. For people.
    pub lines: Vec<Line>,
}

/// What is to secure the messages of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// Whether nothing starts without an enclave. Else a process without one goes on in clear, as in rcl; one whose enclave is
    /// there and not whole does not start in either case.
    pub is_enforced: bool,
    /// The folder of the keystore.
    pub keystore: Option<String>,
    /// The enclave, whatever the program says.
    pub enclave: Option<String>,
}

impl RosEnvironment {
    /// Reads the environment through `variable`, which gives the value of a variable that is set.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let variables = Variables { of: &variable };
        let mut lines = Vec::new();
        let (range, static_peers) = discovery(&variables, &mut lines)?;
        Ok(Self {
            distro: distro(&variables, &mut lines)?,
            domain: domain(&variables)?,
            range,
            static_peers,
            engine_settings: engine_settings(&variables)?,
            security: security(&variables, &mut lines)?,
            lines,
        })
    }

    /// The lines about settings for engines that are not in `engines`, and so are not obeyed.
    pub fn lines_without(&self, engines: &[Engine]) -> Vec<Line> {
        let unread = self.engine_settings.iter().filter(|it| !engines.contains(&it.engine));
        let line = |setting: &EngineSetting| Line {
            variable: setting.variable,
            value: setting.value.clone(),
            why: format!("not obeyed: it is for {}, which is not the engine here", setting.engine),
        };
        unread.map(line).collect()
    }
}

/// Whom a participant finds without being told of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiscoveryRange {
    /// Nobody, not even on this host.
    Off,
    /// Those of this host: unicast to it, and no multicast.
    Localhost,
    /// Those that multicast reaches.
    Subnet,
    /// As the engine's own configuration says; static peers are then not asked.
    SystemDefault,
}

impl DiscoveryRange {
    const ALL: [(Self, &str); 4] = [
        (Self::Subnet, "SUBNET"),
        (Self::Localhost, "LOCALHOST"),
        (Self::Off, "OFF"),
        (Self::SystemDefault, "SYSTEM_DEFAULT"),
    ];

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, it)| *it == name).map(|(range, _)| range)
    }
}

/// As `ROS_AUTOMATIC_DISCOVERY_RANGE` calls it.
impl fmt::Display for DiscoveryRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.into_iter().find(|(range, _)| range == self).map(|(_, name)| name);
        f.pad(name.unwrap_or_default())
    }
}

/// What carries the wire of foreign ROS 2 nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Eclipse Cyclone DDS.
    CycloneDds,
    /// eProsima Fast DDS.
    FastDds,
    /// Eclipse Zenoh.
    Zenoh,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CycloneDds => "Cyclone DDS",
            Self::FastDds => "Fast DDS",
            Self::Zenoh => "Zenoh",
        })
    }
}

/// A variable that an engine reads: whoever runs that engine obeys it or says that it does not.
///
/// Fast DDS reads its variables by itself. Cyclone DDS does so only where its domain is made
/// implicitly; whoever makes one from a text appends the value after a comma, as rmw_cyclonedds does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSetting {
    /// Which engine.
    pub engine: Engine,
    /// `CYCLONEDDS_URI`, `FASTDDS_DEFAULT_PROFILES_FILE` (before Fast DDS 3
    /// `FASTRTPS_DEFAULT_PROFILES_FILE`), `ROS_DISCOVERY_SERVER` or `ZENOH_SESSION_CONFIG_URI`.
    pub variable: &'static str,
    /// As it was written.
    pub value: String,
}

/// A variable that is not obeyed, or not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The variable.
    pub variable: &'static str,
    /// Its value, or the part of it that is meant.
    pub value: String,
    /// What becomes of it, and why.
    pub why: String,
}

/// `ROS_DISTRO="foxy": not known; …`
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}: {}", self.variable, self.value, self.why)
    }
}

/// A variable with which nothing may start.
#[derive(Clone, PartialEq, Eq)]
pub struct EnvironmentError {
    /// The variable.
    pub variable: &'static str,
    /// Its value, at most 64 characters of it.
    pub value: String,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}: {}", self.variable, self.value, self.problem)
    }
}

impl Error for EnvironmentError {}

const DISTRO: &str = "ROS_DISTRO";
const DOMAIN: &str = "ROS_DOMAIN_ID";
const RANGE: &str = "ROS_AUTOMATIC_DISCOVERY_RANGE";
const PEERS: &str = "ROS_STATIC_PEERS";
const LOCALHOST: &str = "ROS_LOCALHOST_ONLY";
const SECURITY: &str = "ROS_SECURITY_ENABLE";
const STRATEGY: &str = "ROS_SECURITY_STRATEGY";
const KEYSTORE: &str = "ROS_SECURITY_KEYSTORE";
const ENCLAVE: &str = "ROS_SECURITY_ENCLAVE_OVERRIDE";

const FOR_ENGINES: [(Engine, &str); 5] = [
    (Engine::CycloneDds, "CYCLONEDDS_URI"),
    (Engine::FastDds, "FASTRTPS_DEFAULT_PROFILES_FILE"),
    (Engine::FastDds, "FASTDDS_DEFAULT_PROFILES_FILE"),
    (Engine::FastDds, "ROS_DISCOVERY_SERVER"),
    (Engine::Zenoh, "ZENOH_SESSION_CONFIG_URI"),
];

struct Variables<'a> {
    of: &'a dyn Fn(&str) -> Option<String>,
}

impl Variables<'_> {
    /// The value of a variable, if it is set and not empty.
    fn value(&self, variable: &'static str) -> Result<Option<String>, EnvironmentError> {
        match (self.of)(variable).filter(|value| !value.is_empty()) {
            Some(value) if value.len() > VALUE_BYTES_MAX => {
                let problem = format!("{} bytes; allowed: {VALUE_BYTES_MAX}", value.len());
                Err(error(variable, &value, problem))
            }
            value => Ok(value),
        }
    }
}

fn error(variable: &'static str, value: &str, problem: String) -> EnvironmentError {
    EnvironmentError { variable, value: value.chars().take(64).collect(), problem }
}

fn security(
    variables: &Variables<'_>,
    lines: &mut Vec<Line>,
) -> Result<Option<Security>, EnvironmentError> {
    let mut odd = |variable, value: &str, why: &str| {
        let value = value.chars().take(64).collect();
        lines.push(Line { variable, value, why: why.to_owned() });
    };
    match variables.value(SECURITY)?.as_deref() {
        Some("true") => {}
        Some(other) if other != "false" => {
            odd(SECURITY, other, "not known, and nothing is secured; allowed: true, false");
            return Ok(None);
        }
        _ => return Ok(None),
    }
    let strategy = variables.value(STRATEGY)?;
    if let Some(other) = strategy.as_deref().filter(|it| !matches!(*it, "Enforce" | "Permissive")) {
        odd(STRATEGY, other, "not known, Permissive is taken; allowed: Enforce, Permissive");
    }
    Ok(Some(Security {
        is_enforced: strategy.as_deref() == Some("Enforce"),
        keystore: variables.value(KEYSTORE)?,
        enclave: variables.value(ENCLAVE)?,
    }))
}

fn distro(variables: &Variables<'_>, lines: &mut Vec<Line>) -> Result<Distro, EnvironmentError> {
    let Some(name) = variables.value(DISTRO)? else { return Ok(Distro::default()) };
    Ok(Distro::from_name(&name).unwrap_or_else(|unknown| {
        let assumed = Distro::default();
        let why = format!("not known, {assumed} is taken; allowed: {}", unknown.allowed.join(", "));
        lines.push(Line { variable: DISTRO, value: name, why });
        assumed
    }))
}

fn domain(variables: &Variables<'_>) -> Result<u32, EnvironmentError> {
    let Some(text) = variables.value(DOMAIN)? else { return Ok(0) };
    let domain = match text.trim() {
        digits if digits.starts_with("0x") || digits.starts_with("0X") => number(&digits[2..], 16),
        digits if digits.starts_with('0') => number(digits, 8),
        digits => number(digits, 10),
    };
    domain
        .filter(|domain| *domain <= DOMAIN_MAX)
        .ok_or_else(|| error(DOMAIN, &text, format!("allowed: 0 to {DOMAIN_MAX}")))
}

/// A number without a sign.
fn number(digits: &str, radix: u32) -> Option<u32> {
    let is_unsigned = digits.starts_with(|digit: char| digit.is_digit(radix));
    u32::from_str_radix(digits, radix).ok().filter(|_| is_unsigned)
}

fn discovery(
    variables: &Variables<'_>,
    lines: &mut Vec<Line>,
) -> Result<(DiscoveryRange, Vec<String>), EnvironmentError> {
    let range = variables.value(RANGE)?;
    let peers = variables.value(PEERS)?;
    if variables.value(LOCALHOST)?.is_some_and(|value| value.starts_with('1')) {
        let why = "ignored: ROS_LOCALHOST_ONLY prevails";
        for (variable, value) in [(RANGE, range), (PEERS, peers)] {
            lines.extend(value.map(|value| Line { variable, value, why: why.to_owned() }));
        }
        return Ok((DiscoveryRange::Localhost, Vec::new()));
    }
    let range = match range {
        None => DiscoveryRange::Subnet,
        Some(name) => DiscoveryRange::from_name(&name).unwrap_or_else(|| {
            let allowed = DiscoveryRange::ALL.map(|(_, name)| name).join(", ");
            let why = format!("not known, LOCALHOST is taken; allowed: {allowed}");
            lines.push(Line { variable: RANGE, value: name, why });
            DiscoveryRange::Localhost
        }),
    };
    let Some(peers) = peers else { return Ok((range, Vec::new())) };
    if matches!(range, DiscoveryRange::Off | DiscoveryRange::SystemDefault) {
        let why = format!("ignored: {RANGE} is {range}");
        lines.push(Line { variable: PEERS, value: peers, why });
        return Ok((range, Vec::new()));
    }
    Ok((range, static_peers(&peers, lines)))
}

fn static_peers(text: &str, lines: &mut Vec<Line>) -> Vec<String> {
    let mut peers = Vec::new();
    let mut surplus = 0;
    for peer in text.split(';').filter(|peer| !peer.is_empty()) {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".:-_%[]".contains(&byte);
        let why = if peer.len() > STATIC_PEER_BYTES_MAX {
            format!("passed over: {} bytes; allowed: {STATIC_PEER_BYTES_MAX}", peer.len())
        } else if !peer.bytes().all(fits) {
            "passed over: no address or host name; allowed: letters, digits and .:-_%[]".to_owned()
        } else if peers.len() < STATIC_PEERS_MAX {
            peers.push(peer.to_owned());
            continue;
        } else {
            surplus += 1;
            continue;
        };
        // As many as there may be peers, so that a text of nonsense does not fill the log.
        if lines.len() < STATIC_PEERS_MAX {
            let value = peer.chars().take(64).collect();
            lines.push(Line { variable: PEERS, value, why });
        }
    }
    if surplus > 0 {
        let why = format!("the last {surplus} are passed over; allowed: {STATIC_PEERS_MAX}");
        lines.push(Line { variable: PEERS, value: text.chars().take(64).collect(), why });
    }
    peers
}

fn engine_settings(variables: &Variables<'_>) -> Result<Vec<EngineSetting>, EnvironmentError> {
    let mut settings = Vec::new();
    for (engine, variable) in FOR_ENGINES {
        let value = variables.value(variable)?;
        settings.extend(value.map(|value| EngineSetting { engine, variable, value }));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<RosEnvironment, EnvironmentError> {
        RosEnvironment::read(|name| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn lines(environment: &RosEnvironment) -> Vec<String> {
        environment.lines.iter().map(Line::to_string).collect()
    }

    #[test]
    fn nothing_set() {
        let nothing = RosEnvironment {
            distro: Distro::Jazzy,
            domain: 0,
            range: DiscoveryRange::Subnet,
            static_peers: vec![],
            engine_settings: vec![],
            security: None,
            lines: vec![],
        };
        assert_eq!(read(&[]), Ok(nothing.clone()));
        assert_eq!(
            read(&[DISTRO, DOMAIN, RANGE, PEERS, LOCALHOST].map(|it| (it, ""))),
            Ok(nothing)
        );
    }

    #[test]
    fn distributions() {
        assert_eq!(read(&[(DISTRO, "humble")]).unwrap().distro, Distro::Humble);
        let foxy = read(&[(DISTRO, "foxy")]).unwrap();
        assert_eq!(foxy.distro, Distro::Jazzy);
        let expect = "ROS_DISTRO=\"foxy\": not known, jazzy is taken; \
                      allowed: humble, iron, jazzy, kilted, lyrical, rolling";
        assert_eq!(lines(&foxy), [expect]);
    }

    #[test]
    fn domains() {
        let check = |text: &str, expect: u32| {
            assert_eq!(read(&[(DOMAIN, text)]).unwrap().domain, expect, "{text}");
        };
        check("0", 0);
        check("42", 42);
        check(" 232 ", 232);
        check("0x10", 16);
        check("010", 8);
        for text in ["233", "-1", "+1", "7abc", "seven", "0x", "0x+1", "09", " ", "99999999999"] {
            let error = read(&[(DOMAIN, text)]).unwrap_err();
            let expect = format!("ROS_DOMAIN_ID={text:?}: allowed: 0 to 232");
            assert_eq!(error.to_string(), expect);
        }
    }

    #[track_caller]
    fn discovers(
        variables: &[(&str, &str)],
        range: DiscoveryRange,
        peers: &[&str],
        expect: &[&str],
    ) {
        let found = read(variables).unwrap();
        assert_eq!(found.range, range);
        assert_eq!(found.static_peers, peers);
        assert_eq!(lines(&found), expect);
    }

    #[test]
    fn ranges_and_peers() {
        use DiscoveryRange::{Localhost, Off, Subnet, SystemDefault};
        discovers(&[(RANGE, "SUBNET")], Subnet, &[], &[]);
        discovers(&[(RANGE, "OFF")], Off, &[], &[]);
        discovers(
            &[(RANGE, "LOCALHOST"), (PEERS, ";192.168.0.7;;robot-1.local;[fe80::1%eth0];")],
            Localhost,
            &["192.168.0.7", "robot-1.local", "[fe80::1%eth0]"],
            &[],
        );
        discovers(
            &[(RANGE, "localhost")],
            Localhost,
            &[],
            &["ROS_AUTOMATIC_DISCOVERY_RANGE=\"localhost\": not known, LOCALHOST is taken; \
               allowed: SUBNET, LOCALHOST, OFF, SYSTEM_DEFAULT"],
        );
        for (name, range) in [("OFF", Off), ("SYSTEM_DEFAULT", SystemDefault)] {
            let expect =
                format!("ROS_STATIC_PEERS=\"a\": ignored: ROS_AUTOMATIC_DISCOVERY_RANGE is {name}");
            discovers(&[(RANGE, name), (PEERS, "a")], range, &[], &[&expect]);
        }
        discovers(
            &[(PEERS, "a;\"/><Peer;b c")],
            Subnet,
            &["a"],
            &[
                "ROS_STATIC_PEERS=\"\\\"/><Peer\": passed over: no address or host name; \
                 allowed: letters, digits and .:-_%[]",
                "ROS_STATIC_PEERS=\"b c\": passed over: no address or host name; \
                 allowed: letters, digits and .:-_%[]",
            ],
        );
    }

    #[test]
    fn too_many_peers_and_too_long_ones() {
        let long = "a".repeat(256);
        let found = read(&[(PEERS, &format!("{long};b"))]).unwrap();
        assert_eq!(found.static_peers, ["b"]);
        assert_eq!(found.lines[0].why, "passed over: 256 bytes; allowed: 255");
        let found = read(&[(PEERS, &"a;".repeat(258))]).unwrap();
        assert_eq!(found.static_peers.len(), 256);
        assert_eq!(found.lines[0].why, "the last 2 are passed over; allowed: 256");
        let nonsense = read(&[(PEERS, &"?;".repeat(30_000))]).unwrap();
        assert_eq!(nonsense.lines.len(), STATIC_PEERS_MAX);
    }

    #[test]
    fn localhost_only_prevails_if_it_is_on() {
        use DiscoveryRange::{Localhost, Subnet};
        discovers(&[(LOCALHOST, "1")], Localhost, &[], &[]);
        discovers(&[(LOCALHOST, "0"), (PEERS, "a")], Subnet, &["a"], &[]);
        discovers(&[(LOCALHOST, "true")], Subnet, &[], &[]);
        discovers(
            &[(LOCALHOST, "1"), (RANGE, "SUBNET"), (PEERS, "a")],
            Localhost,
            &[],
            &[
                "ROS_AUTOMATIC_DISCOVERY_RANGE=\"SUBNET\": ignored: ROS_LOCALHOST_ONLY prevails",
                "ROS_STATIC_PEERS=\"a\": ignored: ROS_LOCALHOST_ONLY prevails",
            ],
        );
    }

    #[test]
    fn security_is_never_dropped_in_silence() {
        let keystore = ("ROS_SECURITY_KEYSTORE", "/keys");
        let security = |is_enforced, enclave: Option<&str>| Security {
            is_enforced,
            keystore: Some("/keys".to_owned()),
            enclave: enclave.map(str::to_owned),
        };
        let found = read(&[(SECURITY, "true"), (STRATEGY, "Enforce"), keystore]).unwrap();
        assert_eq!((found.security, found.lines), (Some(security(true, None)), vec![]));
        let enclave = ("ROS_SECURITY_ENCLAVE_OVERRIDE", "/a");
        let found =
            read(&[(SECURITY, "true"), (STRATEGY, "Permissive"), keystore, enclave]).unwrap();
        assert_eq!((found.security, found.lines), (Some(security(false, Some("/a"))), vec![]));
        let found = read(&[(SECURITY, "true"), (STRATEGY, "enforce"), keystore]).unwrap();
        let expect = "ROS_SECURITY_STRATEGY=\"enforce\": not known, Permissive is taken; allowed: Enforce, Permissive";
        assert_eq!(lines(&found), [expect]);
        assert_eq!(found.security, Some(security(false, None)));
        for (value, expect) in [
            (
                "TRUE",
                vec![
                    "ROS_SECURITY_ENABLE=\"TRUE\": not known, and nothing is secured; allowed: true, false",
                ],
            ),
            ("false", vec![]),
            ("", vec![]),
        ] {
            let found = read(&[(SECURITY, value), (STRATEGY, "Enforce"), keystore]).unwrap();
            assert_eq!(
                (lines(&found), &found.security),
                (expect.iter().map(|it| (*it).to_owned()).collect(), &None)
            );
        }
    }

    #[test]
    fn settings_for_engines() {
        let found = read(&[
            ("CYCLONEDDS_URI", "file:///c.xml"),
            ("ROS_DISCOVERY_SERVER", "10.0.0.1:11811"),
            ("FASTDDS_DEFAULT_PROFILES_FILE", "p.xml"),
        ])
        .unwrap();
        assert_eq!(found.engine_settings.len(), 3);
        assert_eq!(found.lines, []);
        let without = |engines: &[Engine]| -> Vec<String> {
            found.lines_without(engines).iter().map(Line::to_string).collect()
        };
        assert_eq!(without(&[Engine::CycloneDds, Engine::FastDds]), [""; 0]);
        assert_eq!(
            without(&[Engine::CycloneDds]),
            [
                "FASTDDS_DEFAULT_PROFILES_FILE=\"p.xml\": \
                 not obeyed: it is for Fast DDS, which is not the engine here",
                "ROS_DISCOVERY_SERVER=\"10.0.0.1:11811\": \
                 not obeyed: it is for Fast DDS, which is not the engine here",
            ]
        );
        let long = "a".repeat(VALUE_BYTES_MAX + 1);
        let error = read(&[("CYCLONEDDS_URI", &long)]).unwrap_err();
        assert_eq!(error.problem, "65537 bytes; allowed: 65536");
    }

    proptest! {
        #[test]
        fn any_environment_is_read_or_refused(values in prop::collection::vec(any::<String>(), 7)) {
            let names = [DISTRO, DOMAIN, RANGE, PEERS, LOCALHOST, SECURITY, STRATEGY];
            let variables: Vec<(&str, &str)> =
                names.into_iter().zip(values.iter().map(String::as_str)).collect();
            if let Ok(found) = read(&variables) {
                prop_assert!(found.domain <= DOMAIN_MAX);
            }
        }

        #[test]
        fn any_domain_is_in_range_or_refused(text in "[ 0-9a-fxX+-]{0,8}") {
            if let Ok(found) = read(&[(DOMAIN, &text)]) {
                prop_assert!(found.domain <= DOMAIN_MAX);
            }
        }

        #[test]
        fn any_peer_that_is_taken_can_stand_in_a_configuration(text in "[a-z0-9.:;<\"& é]{0,40}") {
            for peer in read(&[(PEERS, &text)]).unwrap().static_peers {
                prop_assert!(!peer.is_empty());
                prop_assert!(!peer.contains(['<', '"', '&', ' ', ';']));
            }
        }
    }
}
