//! The environment variables that ROS 2 programs know: which are obeyed, which are not, and why.

use std::env;
use std::path::Path;

use super::{Finding, State};

/// Variables of engines that are not in this build.
const OF_ENGINES: &[(&str, &str)] = &[
    ("FASTRTPS_DEFAULT_PROFILES_FILE", "fastdds"),
    ("FASTDDS_DEFAULT_PROFILES_FILE", "fastdds"),
    ("ROS_DISCOVERY_SERVER", "fastdds"),
    ("ZENOH_SESSION_CONFIG_URI", "zenoh"),
    ("ZENOH_ROUTER_CONFIG_URI", "zenoh"),
];

pub(super) fn examine() -> Vec<Finding> {
    let mut findings = vec![domain()];
    findings.extend(
        value("TSUJI_RUNTIME_DIR")
            .map(|it| finding("TSUJI_RUNTIME_DIR", State::Good, format!("{it}: obeyed"))),
    );
    findings.extend(value("TSUJI_POLICY").map(|it| {
        finding("TSUJI_POLICY", State::Good, format!("{it}: obeyed, unless --policy names another"))
    }));
    findings.extend(value("AMENT_PREFIX_PATH").map(|it| ament(&it)));
    findings.extend(security());
    findings.extend(value("RMW_IMPLEMENTATION").map(|it| {
        let text = format!("{it}: no effect; tsuji chooses the road of each flow itself, and this build meets no plain ROS 2 node");
        finding("RMW_IMPLEMENTATION", State::Note, text)
    }));
    findings.extend(value("CYCLONEDDS_URI").map(|it| {
        let text = format!(
            "{it}: no effect; tsuji sets what its engine needs, the rest is in the policy, as in \
             <transport name=\"cyclonedds\"><set key=\"interfaces\" value=\"eth0\"/></transport>"
        );
        finding("CYCLONEDDS_URI", State::Note, text)
    }));
    findings.extend(discovery(value));
    for (name, engine) in OF_ENGINES {
        findings.extend(value(name).map(|it| {
            finding(name, State::Note, format!("{it}: no effect; {engine} is not in this build"))
        }));
    }
    findings
}

/// What says how far discovery reaches beyond this host, to whom it says something.
fn discovery(value: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    const LOCALHOST: &str = "ROS_LOCALHOST_ONLY";
    const RANGE: &str = "ROS_AUTOMATIC_DISCOVERY_RANGE";
    const PEERS: &str = "ROS_STATIC_PEERS";
    const NOT_HERE: &str = "no effect here, this build never leaves the host";
    let mut findings = Vec::new();
    let is_local = value(LOCALHOST).inspect(|it| {
        let text = format!("{it}: {NOT_HERE}; since ROS 2 Iron {RANGE}=LOCALHOST takes its place");
        findings.push(finding(LOCALHOST, State::Note, text));
    });
    let range = value(RANGE);
    if let Some(range) = &range {
        findings.push(match range.as_str() {
            "SUBNET" | "LOCALHOST" | "OFF" | "SYSTEM_DEFAULT" if is_local.as_deref() == Some("1") => {
                let text = format!("{range}: plain ROS 2 nodes obey {LOCALHOST}=1 instead; {NOT_HERE}");
                finding(RANGE, State::Warning, text).mend(format!("unset {LOCALHOST}"))
            }
            "SUBNET" | "LOCALHOST" | "OFF" | "SYSTEM_DEFAULT" => {
                finding(RANGE, State::Note, format!("{range}: {NOT_HERE}"))
            }
            _ => {
                let text = format!(
                    "{range:?} is no range, and plain ROS 2 nodes take LOCALHOST; allowed: SUBNET, LOCALHOST, OFF, SYSTEM_DEFAULT"
                );
                finding(RANGE, State::Warning, text).mend(format!("unset {RANGE}"))
            }
        });
    }
    findings.extend(value(PEERS).map(|peers| {
        if range.as_deref() == Some("OFF") {
            let text =
                format!("{peers}: plain ROS 2 nodes pass over it while {RANGE}=OFF; {NOT_HERE}");
            return finding(PEERS, State::Warning, text).mend(format!("unset {RANGE}"));
        }
        finding(PEERS, State::Note, format!("{peers}: {NOT_HERE}"))
    }));
    findings
}

fn domain() -> Finding {
    const NAME: &str = "ROS_DOMAIN_ID";
    let Some(text) = value(NAME) else {
        return finding(NAME, State::Good, "not set: domain 0");
    };
    match text.parse::<u32>() {
        Ok(domain) if domain <= 232 => finding(NAME, State::Good, format!("{domain}: obeyed")),
        _ => finding(NAME, State::Broken, format!("{text:?} is no domain; allowed: 0 to 232"))
            .mend("unset ROS_DOMAIN_ID"),
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

fn security() -> Option<Finding> {
    const NAME: &str = "ROS_SECURITY_ENABLE";
    let enabled = value(NAME)?;
    if enabled != "true" {
        return Some(finding(NAME, State::Good, format!("{enabled}: security is off")));
    }
    let enforced = value("ROS_SECURITY_STRATEGY").is_some_and(|it| it == "Enforce");
    let found = if enforced {
        finding(
            NAME,
            State::Broken,
            "true, and Enforce: tsuji has no DDS-Security yet and refuses to start",
        )
    } else {
        finding(
            NAME,
            State::Warning,
            "true: tsuji has no DDS-Security yet; messages are protected by the user's rights only",
        )
    };
    Some(found.mend("unset ROS_SECURITY_ENABLE"))
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

    #[test]
    fn how_far_discovery_reaches() {
        let check = |variables: &[(&str, &str)], expect: &[(&str, State, Option<&str>)]| {
            let value = |name: &str| {
                let said = variables.iter().find(|(it, _)| *it == name);
                said.map(|(_, value)| (*value).to_owned())
            };
            let findings = discovery(value);
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
        check(&[(range, "SUBNET")], &[(range, State::Note, None)]);
        check(&[(range, "subnet")], &[(range, State::Warning, unset)]);
        check(
            &[(local, "1"), (range, "SUBNET")],
            &[
                (local, State::Note, None),
                (range, State::Warning, Some("unset ROS_LOCALHOST_ONLY")),
            ],
        );
        check(
            &[(range, "OFF"), (peers, "192.0.2.9;far")],
            &[(range, State::Note, None), (peers, State::Warning, unset)],
        );
    }
}
