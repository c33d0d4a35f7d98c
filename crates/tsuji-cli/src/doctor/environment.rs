//! The environment variables that ROS 2 programs know: which are obeyed, which are not, and why.

use std::env;
use std::path::Path;
use std::time::SystemTime;

use tsuji_core::{Interop, Robot, RtpsEngine};
use tsuji_ros::environment::{DiscoveryRange, EnvironmentError, RosEnvironment};
use tsuji_security::Enclave;

use super::{Finding, State};
use crate::figures;
use crate::security::Expiry;

/// Variables for engines, and what becomes of them.
const OF_ENGINES: &[(&str, &str)] = &[
    ("FASTRTPS_DEFAULT_PROFILES_FILE", SET_BY_TSUJI),
    ("FASTDDS_DEFAULT_PROFILES_FILE", SET_BY_TSUJI),
    (
        "ROS_DISCOVERY_SERVER",
        "no effect; discovery servers are not supported; Fast DDS does not join with it",
    ),
    (
        "TSUJI_FASTDDS_SHM",
        "read where Fast DDS starts; with 1 it has its own shared memory, which may end the process beside Fast DDS of another build",
    ),
    (
        "ZENOH_SESSION_CONFIG_URI",
        "read where a flow takes zenoh, unless the policy has settings for it or nobody of another host is met",
    ),
    ("ZENOH_ROUTER_CONFIG_URI", "no effect; tsuji starts no router"),
];

const KEYSTORE: &str = "ROS_SECURITY_KEYSTORE";
const OPEN_MAX: &str = "TSUJI_CHANNELS_OPEN_MAX";

const SET_BY_TSUJI: &str = "no effect; tsuji sets all that Fast DDS does itself";

const TO_NOBODY: &str = "no effect while no foreign ROS 2 node is spoken to";

/// `interop` and `engine` are what came of what was asked for, where a context could be made.
pub(super) fn examine(interop: Option<Interop>, engine: Option<RtpsEngine>) -> Vec<Finding> {
    let engine = engine.unwrap_or(RtpsEngine::CycloneDds);
    let speaks_rtps = interop.is_none_or(|it| it.contains(Interop::RTPS));
    let mut findings = vec![domain()];
    findings.extend(
        value("TSUJI_RUNTIME_DIR")
            .map(|it| finding("TSUJI_RUNTIME_DIR", State::Good, format!("{it}: obeyed"))),
    );
    findings.extend(value(OPEN_MAX).map(|it| match it.parse::<usize>() {
        Ok(count) => {
            let text = format!("{it}: obeyed; a process holds sockets for {count} others of its host, and for two at least");
            finding(OPEN_MAX, State::Good, text)
        }
        Err(_) => finding(
            OPEN_MAX,
            State::Warning,
            format!("{it:?} is no number of channels; programs warn, and take their own"),
        )
        .mend(format!("unset {OPEN_MAX}")),
    }));
    findings.extend(value("TSUJI_TRACE").map(|it| {
        let text =
            format!("{it}: obeyed; each process writes what it decides of flows to {it}.PID");
        finding("TSUJI_TRACE", State::Good, text)
    }));
    findings.extend(value("TSUJI_POLICY").map(|it| {
        finding("TSUJI_POLICY", State::Good, format!("{it}: obeyed, unless --policy names another"))
    }));
    findings.extend(value("TSUJI_ROBOT").map(|it| robot(&it)));
    findings.push(self::interop(value("TSUJI_INTEROP").as_deref(), interop, engine));
    findings.extend(value(ENGINE).map(|it| self::engine(&it, speaks_rtps, engine)));
    findings.extend(value("ROS_DISTRO").map(|it| distro(&it)));
    findings.extend(value("AMENT_PREFIX_PATH").map(|it| ament(&it)));
    findings.extend(security());
    findings.extend(value(KEYSTORE).map(|it| keystore(&it)));
    findings.extend(value("RMW_IMPLEMENTATION").map(|it| {
        let text = format!("{it}: no effect; tsuji chooses the transport of each flow itself");
        finding("RMW_IMPLEMENTATION", State::Note, text)
    }));
    findings.extend(value("CYCLONEDDS_URI").map(|it| match engine {
        RtpsEngine::CycloneDds | RtpsEngine::Both => cyclone(&it, speaks_rtps),
        RtpsEngine::FastDds => {
            let text = format!("{it}: no effect; Fast DDS speaks to foreign ROS 2 nodes");
            finding("CYCLONEDDS_URI", State::Note, text)
        }
    }));
    findings.extend(discovery(value, speaks_rtps));
    for (name, comes) in OF_ENGINES {
        let said = value(name);
        findings.extend(said.map(|it| finding(name, State::Note, format!("{it}: {comes}"))));
    }
    findings
}

/// What is said of the robot that programs started here are of.
fn robot(name: &str) -> Finding {
    const NAME: &str = "TSUJI_ROBOT";
    match Robot::new(name, Vec::new()) {
        Ok(_) => {
            let text = format!(
                "{name}: obeyed; outside of it /chatter of a program started here is /{name}/chatter"
            );
            finding(NAME, State::Good, text)
        }
        Err(error) => {
            let text = format!("{name:?} is {error}");
            finding(NAME, State::Broken, text).mend(format!("unset {NAME}"))
        }
    }
}

/// Which foreign ROS 2 nodes are spoken to.
fn interop(said: Option<&str>, came: Option<Interop>, engine: RtpsEngine) -> Finding {
    const NAME: &str = "TSUJI_INTEROP";
    let word = said.map(str::parse::<Interop>).transpose();
    let asked = match word {
        Ok(asked) => asked,
        Err(error) => {
            return finding(NAME, State::Broken, error.to_string()).mend(format!("unset {NAME}"));
        }
    };
    let from = match asked {
        Some(asked) => format!("{asked}: obeyed"),
        None => "not set: as the policy says".to_owned(),
    };
    let comes = came.map_or_else(String::new, |it| spoken_to(it, engine));
    let is_off = matches!(came, Some(Interop::NONE));
    let missing =
        |wire| asked.zip(came).is_some_and(|(asked, came)| asked.without(came).contains(wire));
    let plugins = [(Interop::ZENOH, "over Zenoh"), (Interop::ROS1, "for ROS 1")];
    let absent = plugins.iter().find(|(wire, _)| missing(*wire));
    match (asked, absent) {
        (Some(asked), _) if is_off && asked.contains(Interop::RTPS) => {
            let text = format!("{asked}: not obeyed while ROS_AUTOMATIC_DISCOVERY_RANGE is OFF");
            finding(NAME, State::Warning, text).mend("unset ROS_AUTOMATIC_DISCOVERY_RANGE")
        }
        (Some(asked), Some((wire, plugin))) => {
            let why = if is_off { ", or ROS_AUTOMATIC_DISCOVERY_RANGE is OFF" } else { "" };
            let text = format!("{asked}: the plug-in {plugin} is not found{why}{comes}");
            let mend = format!("install the package tsuji-transport-{wire}");
            finding(NAME, State::Warning, text).mend(mend)
        }
        _ => finding(NAME, State::Good, format!("{from}{comes}")),
    }
}

/// Who is spoken to, as a clause.
fn spoken_to(interop: Interop, engine: RtpsEngine) -> String {
    if interop == Interop::NONE {
        return "; no foreign ROS 2 node is spoken to".to_owned();
    }
    let mut by = Vec::new();
    if interop.contains(Interop::RTPS) {
        by.push(format!("by RTPS, with {}", product(engine)));
    }
    if interop.contains(Interop::ZENOH) {
        by.push("by Zenoh".to_owned());
    }
    let mut parts = Vec::new();
    if !by.is_empty() {
        parts.push(format!("foreign ROS 2 nodes are spoken to {}", by.join(", and ")));
    }
    if interop.contains(Interop::ROS1) {
        parts.push("nodes of ROS 1 by TCPROS".to_owned());
    }
    format!("; {}", parts.join("; "))
}

fn product(engine: RtpsEngine) -> &'static str {
    match engine {
        RtpsEngine::CycloneDds => "Cyclone DDS",
        RtpsEngine::FastDds => "Fast DDS",
        RtpsEngine::Both => "Cyclone DDS, beside it Fast DDS for nodes on Fast DDS of this host",
    }
}

const ENGINE: &str = "TSUJI_RTPS_ENGINE";

/// What speaks RTPS, beside what was asked for.
fn engine(said: &str, speaks_rtps: bool, came: RtpsEngine) -> Finding {
    match said.parse::<RtpsEngine>() {
        Err(error) => {
            finding(ENGINE, State::Broken, error.to_string()).mend(format!("unset {ENGINE}"))
        }
        Ok(_) if !speaks_rtps => finding(ENGINE, State::Note, format!("{said}: {TO_NOBODY}")),
        Ok(asked) if asked != came => {
            let came = product(came);
            let text =
                format!("{said}: {came} speaks to foreign ROS 2 nodes, since Fast DDS cannot");
            finding(ENGINE, State::Warning, text)
                .mend("install the package tsuji-transport-fastdds")
        }
        Ok(_) => finding(ENGINE, State::Good, format!("{said}: obeyed")),
    }
}

fn distro(said: &str) -> Finding {
    const NAME: &str = "ROS_DISTRO";
    match read_alone(&[NAME], |_| Some(said.to_owned())) {
        Err(error) => broken(&error),
        Ok(RosEnvironment { lines, .. }) => match lines.first() {
            Some(line) => {
                let text = format!("{said:?}: {}", line.why);
                finding(NAME, State::Warning, text).mend("export ROS_DISTRO=jazzy")
            }
            None => {
                let text = format!("{said}: obeyed; foreign ROS 2 nodes are taken for this one's");
                finding(NAME, State::Good, text)
            }
        },
    }
}

fn cyclone(said: &str, speaks_rtps: bool) -> Finding {
    const NAME: &str = "CYCLONEDDS_URI";
    if !speaks_rtps {
        return finding(NAME, State::Note, format!("{said}: {TO_NOBODY}"));
    }
    let is_file = !said.trim_start().starts_with(['<', ',']);
    let file = said.split(',').next().unwrap_or_default().trim();
    let file = file.strip_prefix("file://").unwrap_or(file);
    if is_file && !Path::new(file).is_file() {
        let text = format!("{said}: no such file, so Cyclone DDS will refuse to join");
        return finding(NAME, State::Warning, text).mend(format!("unset {NAME}"));
    }
    let text = format!(
        "{said}: obeyed; Cyclone DDS reads it after what tsuji sets. What is under a <Domain Id=\"…\"> with a number \
         is passed over"
    );
    finding(NAME, State::Good, text)
}

/// What says how far discovery reaches, to whom it says something.
fn discovery(value: impl Fn(&str) -> Option<String>, speaks_rtps: bool) -> Vec<Finding> {
    const LOCALHOST: &str = "ROS_LOCALHOST_ONLY";
    const RANGE: &str = "ROS_AUTOMATIC_DISCOVERY_RANGE";
    const PEERS: &str = "ROS_STATIC_PEERS";
    let environment = match read_alone(&[LOCALHOST, RANGE, PEERS], &value) {
        Ok(environment) => environment,
        Err(error) => return vec![broken(&error)],
    };
    let is_local = value(LOCALHOST).is_some_and(|it| it.starts_with('1'));
    let is_off = environment.range == DiscoveryRange::Off;
    let reaches = match environment.range {
        DiscoveryRange::Subnet => "whoever multicast finds is met",
        DiscoveryRange::Localhost => {
            "this host and static peers are met, by unicast without multicast"
        }
        DiscoveryRange::Off => "no foreign ROS 2 node is spoken to",
        DiscoveryRange::SystemDefault => {
            "whoever multicast finds is met, static peers are not asked"
        }
    };
    let mut findings = Vec::new();
    for name in [LOCALHOST, RANGE, PEERS] {
        let Some(said) = value(name) else { continue };
        let lines = environment.lines.iter().filter(|it| it.variable == name);
        let troubles: Vec<String> =
            lines.map(|it| format!("{}: {}", it.value, it.why)).take(LINES_SHOWN_MAX).collect();
        if !troubles.is_empty() {
            let culprit = match name {
                RANGE | PEERS if is_local => LOCALHOST,
                PEERS if is_off || environment.range == DiscoveryRange::SystemDefault => RANGE,
                _ => name,
            };
            let text = troubles.join("; ");
            findings.push(finding(name, State::Warning, text).mend(format!("unset {culprit}")));
        } else if !(speaks_rtps || name == RANGE && is_off) {
            findings.push(finding(name, State::Note, format!("{said}: {TO_NOBODY}")));
        } else if name == LOCALHOST && !is_local {
            findings.push(finding(name, State::Note, format!("{said}: no effect; 1 has one")));
        } else if name == LOCALHOST {
            let text = format!(
                "{said}: obeyed; {reaches}; since ROS 2 Iron {RANGE}=LOCALHOST takes its place"
            );
            findings.push(finding(name, State::Note, text));
        } else if name == PEERS {
            findings.push(finding(name, State::Good, format!("{said}: obeyed; they are asked")));
        } else {
            findings.push(finding(name, State::Good, format!("{said}: obeyed; {reaches}")));
        }
    }
    findings
}

/// Troubles of one variable that are shown.
const LINES_SHOWN_MAX: usize = 4;

/// What only these variables ask for.
fn read_alone(
    names: &[&str],
    value: impl Fn(&str) -> Option<String>,
) -> Result<RosEnvironment, EnvironmentError> {
    RosEnvironment::read(|name| value(name).filter(|_| names.contains(&name)))
}

fn broken(error: &EnvironmentError) -> Finding {
    let text = format!("{:?}: {}", error.value, error.problem);
    finding(error.variable, State::Broken, text).mend(format!("unset {}", error.variable))
}

fn domain() -> Finding {
    const NAME: &str = "ROS_DOMAIN_ID";
    let Some(text) = value(NAME) else {
        return finding(NAME, State::Good, "not set: domain 0");
    };
    match read_alone(&[NAME], value) {
        Ok(RosEnvironment { domain, .. }) if domain.to_string() == text => {
            finding(NAME, State::Good, format!("{domain}: obeyed"))
        }
        Ok(RosEnvironment { domain, .. }) => {
            finding(NAME, State::Good, format!("{text}: obeyed; domain {domain}"))
        }
        Err(error) => broken(&error),
    }
}

fn ament(path: &str) -> Finding {
    const NAME: &str = "AMENT_PREFIX_PATH";
    let folders: Vec<&str> = path.split(':').filter(|it| !it.is_empty()).collect();
    let missing: Vec<&str> = folders.iter().copied().filter(|it| !Path::new(it).is_dir()).collect();
    if missing.is_empty() {
        return finding(
            NAME,
            State::Good,
            format!("interfaces are looked for in {} folders first", folders.len()),
        );
    }
    finding(NAME, State::Warning, format!("no such folder: {}", missing.join(", ")))
        .mend("source the setup file of the workspace again")
}

/// Whether processes are secured that are started here.
fn security() -> Option<Finding> {
    const NAME: &str = "ROS_SECURITY_ENABLE";
    let enabled = value(NAME)?;
    if enabled != "true" {
        let state = if enabled == "false" { State::Good } else { State::Warning };
        return Some(finding(NAME, state, format!("{enabled}: nothing is secured")));
    }
    let enforced = value("ROS_SECURITY_STRATEGY").is_some_and(|it| it == "Enforce");
    let missing = match (value(KEYSTORE), value("ROS_SECURITY_ENCLAVE_OVERRIDE")) {
        (None, _) => format!("{KEYSTORE} is not set"),
        (Some(keystore), Some(enclave)) if !Enclave::is_in(Path::new(&keystore), &enclave) => {
            format!("{keystore} has no enclave {enclave}")
        }
        (Some(keystore), enclave) => {
            let enclave = enclave.unwrap_or_else(|| "the enclave that it names".to_owned());
            let others = match tsuji::dds_security_library() {
                Ok(library) => format!("others over RTPS by {}", library.display()),
                Err(why) => format!("no other hosts and no nodes on other middlewares: {why}"),
            };
            let text = format!(
                "true: a process is secured by {enclave} of {keystore}, and meets {others}"
            );
            return Some(finding(NAME, State::Good, text));
        }
    };
    let (state, so) = match enforced {
        true => (State::Broken, "so no process starts, as ROS_SECURITY_STRATEGY=Enforce says"),
        false => (State::Warning, "so processes start in clear"),
    };
    let found = finding(NAME, state, format!("true, and {missing}, {so}"));
    Some(found.mend(format!("set {KEYSTORE}, or unset {NAME}")))
}

/// The keystore of the nodes of ROS 2 here. Whoever renews keys wants to know in time.
fn keystore(folder: &str) -> Finding {
    let now = SystemTime::now();
    let names = tsuji_security::enclaves(Path::new(folder));
    let read = names.iter().map(|it| Enclave::read(Path::new(folder), it, now));
    let (whole, refused): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
    let all = figures::count(names.len(), "enclave", "enclaves");
    if let Some(Err(first)) = refused.into_iter().next() {
        let count = names.len() - whole.len();
        let text = format!("{count} of {all} refused: {first}");
        return finding(KEYSTORE, State::Warning, text).mend("tsuji security check says more");
    }
    let first = whole.iter().flatten().min_by_key(|it| (&it.expiries()[0], it.name()));
    let Some(first) = first else {
        let text = format!("{folder}: there are no enclaves in it");
        return finding(KEYSTORE, State::Warning, text).mend("tsuji security create makes them");
    };
    let Expiry { left, file, is_soon } = Expiry::of(first, now);
    let text = format!("{folder}: {all}; {file} of {} expires in {left}", first.name());
    match is_soon {
        true => finding(KEYSTORE, State::Warning, text).mend("renew it in time"),
        false => finding(KEYSTORE, State::Good, text),
    }
}

fn finding(name: &str, state: State, found: impl Into<String>) -> Finding {
    Finding::new("environment", name, state, found)
}

fn value(name: &str) -> Option<String> {
    env::var_os(name).map(|it| it.to_string_lossy().into_owned()).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            let said = variables.iter().find(|(it, _)| *it == name);
            said.map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn how_far_discovery_reaches() {
        let check = |variables: &[(&str, &str)], expect: &[(&str, State, Option<&str>)]| {
            let findings = discovery(of(variables), true);
            let found: Vec<_> = findings
                .iter()
                .map(|it| (it.what.as_str(), it.state, it.mend.as_deref()))
                .collect();
            assert_eq!(found, expect, "{findings:#?}");
        };
        let (local, range, peers) =
            ("ROS_LOCALHOST_ONLY", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS");
        let unset = Some("unset ROS_AUTOMATIC_DISCOVERY_RANGE");
        check(&[], &[]);
        check(&[(range, "SUBNET")], &[(range, State::Good, None)]);
        check(&[(range, "subnet")], &[(range, State::Warning, unset)]);
        check(&[(local, "0")], &[(local, State::Note, None)]);
        check(
            &[(local, "1"), (range, "SUBNET")],
            &[
                (local, State::Note, None),
                (range, State::Warning, Some("unset ROS_LOCALHOST_ONLY")),
            ],
        );
        check(
            &[(range, "OFF"), (peers, "192.0.2.9;far")],
            &[(range, State::Good, None), (peers, State::Warning, unset)],
        );
        check(&[(peers, "192.0.2.9;far")], &[(peers, State::Good, None)]);
        check(&[(peers, "a b")], &[(peers, State::Warning, Some("unset ROS_STATIC_PEERS"))]);
        let findings = discovery(of(&[(peers, "far")]), false);
        assert_eq!(findings[0].found, "far: no effect while no foreign ROS 2 node is spoken to");
    }

    #[test]
    fn who_is_spoken_to() {
        let check = |said: Option<&str>, came: Option<Interop>, state: State, text: &str| {
            let finding = interop(said, came, RtpsEngine::CycloneDds);
            assert_eq!((finding.state, finding.found.as_str()), (state, text), "{said:?}");
            assert_eq!(finding.mend.is_some(), state != State::Good, "{finding:?}");
        };
        let (rtps, none) = (Some(Interop::RTPS), Some(Interop::NONE));
        let by_rtps = "not set: as the policy says; foreign ROS 2 nodes are spoken to by RTPS, with \
                       Cyclone DDS";
        check(None, rtps, State::Good, by_rtps);
        let to_nobody = "none: obeyed; no foreign ROS 2 node is spoken to";
        check(Some("none"), none, State::Good, to_nobody);
        let both = "rtps zenoh: the plug-in over Zenoh is not found; foreign ROS 2 nodes are spoken to by RTPS, \
                    with Cyclone DDS";
        check(Some("both"), rtps, State::Warning, both);
        let both = "rtps zenoh: obeyed; foreign ROS 2 nodes are spoken to by RTPS, with Cyclone DDS, and by Zenoh";
        check(Some("both"), Some(Interop::RTPS.and(Interop::ZENOH)), State::Good, both);
        let zenoh = "zenoh: obeyed; foreign ROS 2 nodes are spoken to by Zenoh";
        check(Some("zenoh"), Some(Interop::ZENOH), State::Good, zenoh);
        let missing = "zenoh: the plug-in over Zenoh is not found, or ROS_AUTOMATIC_DISCOVERY_RANGE is OFF; \
                       no foreign ROS 2 node is spoken to";
        check(Some("zenoh"), none, State::Warning, missing);
        let ros1 = "rtps ros1: obeyed; foreign ROS 2 nodes are spoken to by RTPS, with Cyclone DDS; nodes of \
                    ROS 1 by TCPROS";
        check(Some("rtps ros1"), Some(Interop::RTPS.and(Interop::ROS1)), State::Good, ros1);
        let missing = "ros1: the plug-in for ROS 1 is not found, or ROS_AUTOMATIC_DISCOVERY_RANGE is OFF; no \
                       foreign ROS 2 node is spoken to";
        check(Some("ros1"), none, State::Warning, missing);
        let off = "rtps: not obeyed while ROS_AUTOMATIC_DISCOVERY_RANGE is OFF";
        check(Some("rtps"), none, State::Warning, off);
        let wrong = "\"dds\" is not a kind of interop; allowed: rtps, zenoh, ros1, both, none";
        check(Some("dds"), None, State::Broken, wrong);
    }

    #[test]
    fn what_speaks() {
        let (cyclone, fast) = (RtpsEngine::CycloneDds, RtpsEngine::FastDds);
        let check = |said: &str, speaks_rtps, came, state: State, text: &str| {
            let finding = engine(said, speaks_rtps, came);
            assert_eq!((finding.state, finding.found.as_str()), (state, text), "{said}");
        };
        check("fastdds", true, fast, State::Good, "fastdds: obeyed");
        let other = "fastdds: Cyclone DDS speaks to foreign ROS 2 nodes, since Fast DDS cannot";
        check("fastdds", true, cyclone, State::Warning, other);
        let nobody = "fastdds: no effect while no foreign ROS 2 node is spoken to";
        check("fastdds", false, fast, State::Note, nobody);
        let wrong = "\"fast\" is not a known engine; allowed: cyclonedds, fastdds, both";
        check("fast", true, cyclone, State::Broken, wrong);
        let by_fast = "rtps: obeyed; foreign ROS 2 nodes are spoken to by RTPS, with Fast DDS";
        assert_eq!(interop(Some("rtps"), Some(Interop::RTPS), fast).found, by_fast);
    }

    #[test]
    fn what_is_meant_for_cyclone() {
        let state = |said: &str, speaks_rtps| cyclone(said, speaks_rtps).state;
        assert_eq!(state("<General/>", true), State::Good);
        assert_eq!(state("file:///no/such/file", true), State::Warning);
        assert_eq!(state("file:///no/such/file", false), State::Note);
        let own = env::current_exe().unwrap();
        assert_eq!(state(&format!("{},<General/>", own.display()), true), State::Good);
    }

    #[test]
    fn whose_formats() {
        assert_eq!(distro("humble").state, State::Good);
        let foxy = distro("foxy");
        assert_eq!(foxy.state, State::Warning);
        assert!(foxy.found.starts_with("\"foxy\": not known, jazzy is taken"), "{foxy:?}");
    }
}
