use std::fmt::Write as _;

use tsuji_core::{Policy, Rule, Sourced};

use crate::show::{conditions, words};
use crate::units::format_size;

/// A file that resolves to this policy by itself: with `builtin="off"`, whatever came from the
/// built-in default is written out. Origins and comments are not kept.
pub fn to_xml(policy: &Policy) -> String {
    let parts = policy.parts();
    let mut out = String::new();
    let root = [
        ("prefer", parts.prefer.value.to_string()),
        ("interop", parts.interop.value.to_string()),
        ("engine", parts.engine.value.to_string()),
        ("builtin", "off".to_owned()),
    ];
    element(&mut out, 0, "tsuji", &root, ">");
    element(&mut out, 1, "size", &[("line", format_size(parts.size_line_bytes.value))], "/>");
    if let Some(Sourced { value: robot, .. }) = &parts.robot {
        let mut attributes = vec![("name", robot.name().to_owned())];
        let shared = words(robot.shared());
        attributes.extend((!shared.is_empty()).then_some(("shared", shared)));
        element(&mut out, 1, "robot", &attributes, "/>");
    }
    for export in &parts.exports {
        let mut attributes = vec![("topic", export.topic.to_string())];
        attributes.extend(export.rate.map(|rate| ("rate", rate.to_string())));
        element(&mut out, 1, "export", &attributes, "/>");
    }
    for stated in &parts.stated_sizes {
        let mut attributes = vec![("pattern", stated.topic.to_string())];
        attributes.extend(stated.size.map(|size| ("size", size.to_string())));
        attributes.extend(stated.expected_bytes.map(|bytes| ("expected", format_size(bytes))));
        element(&mut out, 1, "topic", &attributes, "/>");
    }
    for rule in &parts.forbids {
        element(&mut out, 1, "forbid", &rule_attributes(rule, None), "/>");
    }
    for rule in &parts.rules {
        element(&mut out, 1, "rule", &rule_attributes(rule, Some(rule.priority)), "/>");
    }
    for transport in &parts.transports {
        let mut attributes = vec![("name", transport.transport.to_string())];
        attributes.extend(transport.plugin.iter().map(|path| ("plugin", path.to_string())));
        element(&mut out, 1, "transport", &attributes, ">");
        for setting in &transport.settings {
            let pair = [("key", setting.key.to_string()), ("value", setting.value.to_string())];
            element(&mut out, 2, "set", &pair, "/>");
        }
        out.push_str("  </transport>\n");
    }
    out.push_str("</tsuji>\n");
    out
}

fn rule_attributes(rule: &Rule, priority: Option<i32>) -> Vec<(&'static str, String)> {
    let mut attributes = Vec::new();
    attributes.extend(rule.name.iter().map(|name| ("name", name.to_string())));
    attributes.extend(priority.filter(|it| *it != 0).map(|it| ("priority", it.to_string())));
    attributes.extend(conditions(&rule.conditions));
    let transports: Vec<&str> = rule.transports.iter().map(|it| it.as_str()).collect();
    attributes.push(("use", transports.join(" ")));
    attributes
}

fn element(
    out: &mut String,
    depth: usize,
    name: &str,
    attributes: &[(&'static str, String)],
    end: &str,
) {
    let _ = write!(out, "{:indent$}<{name}", "", indent = depth * 2);
    for (key, value) in attributes {
        let _ = write!(out, " {key}=\"");
        for c in value.chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '"' => out.push_str("&quot;"),
                // A parser makes a space of these where they are not written as references.
                '\t' | '\n' | '\r' => {
                    let _ = write!(out, "&#{};", u32::from(c));
                }
                _ => out.push(c),
            }
        }
        out.push('"');
    }
    let _ = writeln!(out, "{end}");
}
