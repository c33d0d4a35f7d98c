use tsuji_core::{Conditions, Origin, Peer, Peers, Policy, Scope, Scopes, Sourced, TopicPattern};

use crate::units::format_size;

/// One line of what is in force, in columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is: `set`, `export`, `topic`, `rule`, `forbid`, `transport`.
    pub kind: &'static str,
    /// What it is called, for example a rule's name.
    pub name: String,
    /// For which flows it is, or for which topics.
    pub when: String,
    /// What it says, for example a rule's transports.
    pub value: String,
    /// A rule's priority.
    pub priority: Option<i32>,
    /// Where it is written; `None` where nobody set it.
    pub origin: Option<Origin>,
}

/// The policy in force and where each part comes from, rules in the order in which they are tried.
pub fn show(policy: &Policy) -> Vec<Row> {
    let parts = policy.parts();
    let set = |name: &str, value: String, origin: &Option<Origin>| Row {
        kind: "set",
        name: name.to_owned(),
        when: String::new(),
        value,
        priority: None,
        origin: origin.clone(),
    };
    let mut rows = vec![
        set("prefer", parts.prefer.value.to_string(), &parts.prefer.origin),
        set("interop", parts.interop.value.to_string(), &parts.interop.origin),
        set("engine", parts.engine.value.to_string(), &parts.engine.origin),
        set("size line", format_size(parts.size_line_bytes.value), &parts.size_line_bytes.origin),
    ];
    if let Some(Sourced { value: robot, origin }) = &parts.robot {
        let mut value = robot.name().to_owned();
        if !robot.shared().is_empty() {
            value += &format!(", shared {}", words(robot.shared()));
        }
        rows.push(set("robot", value, origin));
    }
    for export in &parts.exports {
        rows.push(Row {
            kind: "export",
            name: String::new(),
            when: export.topic.to_string(),
            value: export.rate.map(|rate| format!("at most {rate} Hz")).unwrap_or_default(),
            priority: None,
            origin: Some(export.origin.clone()),
        });
    }
    for stated in &parts.stated_sizes {
        let mut value = Vec::new();
        value.extend(stated.size.map(|size| size.to_string()));
        value.extend(stated.expected_bytes.map(|bytes| format!("expected {}", format_size(bytes))));
        rows.push(Row {
            kind: "topic",
            name: String::new(),
            when: stated.topic.to_string(),
            value: value.join(", "),
            priority: None,
            origin: Some(stated.origin.clone()),
        });
    }
    for (kind, rules) in [("forbid", &parts.forbids), ("rule", &parts.rules)] {
        for rule in rules {
            let transports: Vec<&str> = rule.transports.iter().map(|it| it.as_str()).collect();
            rows.push(Row {
                kind,
                name: rule.name.as_deref().unwrap_or_default().to_owned(),
                when: when(&rule.conditions),
                value: transports.join(" "),
                priority: (kind == "rule").then_some(rule.priority),
                origin: Some(rule.origin.clone()),
            });
        }
    }
    for transport in &parts.transports {
        let row = |value, origin: &Origin| Row {
            kind: "transport",
            name: transport.transport.to_string(),
            when: String::new(),
            value,
            priority: None,
            origin: Some(origin.clone()),
        };
        if let Some(plugin) = &transport.plugin {
            rows.push(row(format!("plugin {plugin}"), &transport.origin));
        }
        for setting in &transport.settings {
            rows.push(row(format!("{} = {}", setting.key, setting.value), &setting.origin));
        }
    }
    rows
}

/// Patterns as they stand in a list.
pub(crate) fn words(patterns: &[TopicPattern]) -> String {
    let words: Vec<&str> = patterns.iter().map(TopicPattern::as_str).collect();
    words.join(" ")
}

/// A rule's conditions as attributes: pairs of name and value, those that are given.
pub(crate) fn conditions(conditions: &Conditions) -> Vec<(&'static str, String)> {
    let Conditions { size, scope, reliability, peer, topic, prefer } = conditions;
    let mut pairs = Vec::new();
    pairs.extend(size.map(|size| ("size", size.to_string())));
    pairs.extend(scope.map(|scopes| ("scope", scope_words(scopes).join(" "))));
    pairs.extend(reliability.map(|it| ("reliability", it.to_string())));
    pairs.extend(peer.map(|peers| ("peer", peer_words(peers).join(" "))));
    pairs.extend(topic.as_ref().map(|topic| ("topic", topic.to_string())));
    pairs.extend(prefer.map(|prefer| ("prefer", prefer.to_string())));
    pairs
}

fn when(conditions: &Conditions) -> String {
    let pairs = self::conditions(conditions);
    if pairs.is_empty() {
        return "always".to_owned();
    }
    let words: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.join(", ")
}

fn scope_words(scopes: Scopes) -> Vec<String> {
    Scope::ALL.iter().filter(|it| scopes.contains(**it)).map(ToString::to_string).collect()
}

fn peer_words(peers: Peers) -> Vec<String> {
    if Peers::FOREIGN.union(peers) == peers {
        let tsuji = peers.tsuji.then(|| Peer::Tsuji.to_string());
        return tsuji.into_iter().chain(["foreign".to_owned()]).collect();
    }
    Peer::ALL.iter().filter(|it| peers.contains(**it)).map(ToString::to_string).collect()
}
