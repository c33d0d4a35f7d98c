//! Definitions of ROS 1 as text, read as genmsg reads them.

use super::{HEADER, Shape, TypeError};
use std::collections::{HashMap, HashSet};
use tsuji_msg::definition::ScalarKind;

/// A parsed definition.
pub(super) struct Spec {
    /// `type NAME=value`, as the MD5 sum has them.
    pub(super) constants: Vec<String>,
    pub(super) fields: Vec<SpecField>,
}

pub(super) struct SpecField {
    pub(super) name: String,
    pub(super) base: SpecType,
    pub(super) shape: Shape,
}

pub(super) enum SpecType {
    Scalar(ScalarKind),
    String,
    Time,
    Duration,
    /// By its full name.
    Message(String),
}

const ALLOWED: &str = "TYPE NAME, TYPE NAME=VALUE, # COMMENT";

/// Parses the text of one definition.
pub(super) fn parse_spec(name: &str, text: &str) -> Result<Spec, TypeError> {
    let package = name.split_once('/').map_or("", |(package, _)| package);
    let mut spec = Spec { constants: Vec::new(), fields: Vec::new() };
    let mut names = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |problem: String, allowed: &str| TypeError::Syntax {
            name: name.into(),
            line: index + 1,
            problem,
            allowed: allowed.into(),
        };
        let code = line.split('#').next().unwrap_or("").trim();
        let Some((type_word, rest)) = code.split_once(char::is_whitespace) else {
            if code.is_empty() {
                continue;
            }
            return Err(wrong(format!("`{code}` is no field"), ALLOWED));
        };
        let element = match rest.split_once('=') {
            Some((name, value)) => {
                let name = name.trim();
                // A text is all that stands behind the `=`, a `#` included.
                let value = match type_word {
                    "string" => line.split_once('=').map_or("", |(_, value)| value),
                    _ => value,
                };
                if !is_constant_type(type_word) {
                    let problem = format!("`{type_word}` is not a type for a constant");
                    return Err(wrong(problem, "numbers, bool, byte, char and string"));
                }
                spec.constants.push(format!("{type_word} {name}={}", value.trim()));
                name
            }
            None => {
                let name = rest.trim();
                let (base, shape) = parse_type(package, type_word).ok_or_else(|| {
                    wrong(
                        format!("`{type_word}` is not a type"),
                        "a built-in type, Name or package/Name, each also as an array T[] or T[N]",
                    )
                })?;
                spec.fields.push(SpecField { name: name.into(), base, shape });
                name
            }
        };
        if !is_identifier(element) {
            let allowed = "a letter, then letters, digits and underscores";
            return Err(wrong(format!("`{element}` is not a name"), allowed));
        }
        if !names.insert(element) {
            let problem = format!("the name `{element}` is there already");
            return Err(wrong(problem, "each name at most once"));
        }
    }
    Ok(spec)
}

fn parse_type(package: &str, word: &str) -> Option<(SpecType, Shape)> {
    let (base, shape) = match word.strip_suffix(']').and_then(|word| word.split_once('[')) {
        Some((base, "")) => (base, Shape::Sequence),
        Some((base, count)) if count.bytes().all(|it| it.is_ascii_digit()) => {
            (base, Shape::Array(count.parse().ok()?))
        }
        Some(_) => return None,
        None => (word, Shape::Single),
    };
    let base = match base {
        "string" => SpecType::String,
        "time" => SpecType::Time,
        "duration" => SpecType::Duration,
        "Header" | "roslib/Header" => SpecType::Message(HEADER.into()),
        _ => match ScalarKind::from_name(base) {
            Some(kind) => SpecType::Scalar(kind),
            None if is_message_name(base) => SpecType::Message(base.into()),
            None if is_identifier(base) => SpecType::Message(format!("{package}/{base}")),
            None => return None,
        },
    };
    Some((base, shape))
}

pub(super) fn is_constant_type(word: &str) -> bool {
    word == "string" || ScalarKind::from_name(word).is_some()
}

/// Whether fields, constants, packages and messages may be called so.
pub(crate) fn is_identifier(word: &str) -> bool {
    word.starts_with(|it: char| it.is_ascii_alphabetic())
        && word.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// Whether it is `package/Name`.
pub(crate) fn is_message_name(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(package, name)| is_identifier(package) && is_identifier(name))
}

/// The text of the type itself and those of the others by name.
pub(super) fn full_text_sections(text: &str) -> (String, HashMap<&str, String>) {
    let mut own = String::new();
    let mut others = HashMap::<&str, String>::new();
    let mut current = None;
    let mut is_name_next = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if 3 <= trimmed.len() && trimmed.bytes().all(|it| it == b'=') {
            is_name_next = true;
            continue;
        }
        if is_name_next && let Some(name) = trimmed.strip_prefix("MSG:") {
            current = Some(name.trim());
            is_name_next = false;
            others.insert(name.trim(), String::new());
            continue;
        }
        let section = current.and_then(|name| others.get_mut(name)).unwrap_or(&mut own);
        section.push_str(line);
    }
    // The line end before a separator belongs to the separator.
    if current.is_some() {
        strip_line_end(&mut own);
    }
    let last = current;
    for (name, text) in &mut others {
        if Some(*name) != last {
            strip_line_end(text);
        }
    }
    (own, others)
}

fn strip_line_end(text: &mut String) {
    if text.ends_with('\n') {
        text.pop();
    }
}

/// What is above and below the `---` of a service.
pub(crate) fn split_service<'a>(
    name: &str,
    text: &'a str,
) -> Result<(&'a str, &'a str), TypeError> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if line.trim_end() == "---" {
            parts.push(&text[start..at]);
            start = next;
        }
        at = next;
    }
    match *parts.as_slice() {
        [request] => Ok((request, &text[start..])),
        _ => Err(TypeError::Syntax {
            name: name.into(),
            line: text.lines().count().max(1),
            problem: format!("{} lines of `---`", parts.len()),
            allowed: "one between request and response".into(),
        }),
    }
}
