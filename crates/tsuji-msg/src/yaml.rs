//! YAML: values with their places, and words in both directions.
//!
//! `saphyr-parser` gives events with positions and is kept up (`serde_yaml` is archived). [`parse`] guesses
//! no types: whoever takes a value decides how a word is read. [`Word`] says what it is to the commands of ROS 2, which
//! heed tags as well, see [`parse_with_tags`].

use crate::ValueError;
use crate::definition::{parse_float, parse_integer};
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use std::collections::HashSet;
use std::fmt::Write as _;

mod word;
pub use word::{ParameterWord, Word, python_float, python_float_text, python_integer};

/// Collections inside collections. A deeper text is refused.
const DEPTH_MAX: usize = 64;

/// A value in a YAML text.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Line and column, from 1.
    pub place: (usize, usize),
    /// The same of the name before it, where it is a value of a mapping.
    pub name_place: Option<(usize, usize)>,
}

/// What a value in a YAML text is.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A word or a text, without its quotes.
    Scalar {
        /// The text.
        text: String,
        /// Whether it may be a number or a truth value: it stands without quotes, and no `!!str` says that it is
        /// text.
        plain: bool,
    },
    /// `[a, b]`
    Sequence(Vec<Node>),
    /// `{a: b}`, each name once.
    Mapping(Vec<(String, Node)>),
}

impl Node {
    /// What stands there, in the words of an error.
    pub fn describe(&self) -> String {
        match &self.kind {
            NodeKind::Scalar { text, plain: true } if text.is_empty() => "nothing".into(),
            NodeKind::Scalar { text, .. } => shortened(text),
            NodeKind::Sequence(_) => "a sequence".into(),
            NodeKind::Mapping(_) => "a mapping".into(),
        }
    }
}

/// The beginning of a text, as errors show it.
pub(crate) fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{short}`")
}

/// A collection that is still open.
struct Open {
    node: Node,
    /// The key that waits for its value.
    key: Option<(String, (usize, usize))>,
    keys: HashSet<String>,
}

/// Which tags say something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tags {
    /// `!!str` alone; the others are passed over, as nodes do in their files of parameters.
    Text,
    /// All, and those that no value of ROS has are refused.
    All,
}

/// The one document of a text.
///
/// Aliases are refused, since each use of one could double the size of the value. No tag but `!!str` says anything.
///
/// # Errors
///
/// A [`ValueError`] with its place if the text is no YAML, has an alias, a second document, collections nested
/// deeper than 64, a name twice in a mapping, or a collection as a name.
pub fn parse(text: &str) -> Result<Node, ValueError> {
    read(text, Tags::Text)
}

/// Reads the one document of a text as PyYAML's `safe_load` does for the commands of ROS 2: `!!int`, `!!float`,
/// `!!bool` and `!!null` make such a word of a scalar.
///
/// A tag that does not fit, and one that no value of ROS has, such as `!!binary`, is refused.
///
/// # Errors
///
/// Those of [`parse`]; a [`ValueError`] with its place if a tag does not fit its value, or is one that no value of
/// ROS has.
pub fn parse_with_tags(text: &str) -> Result<Node, ValueError> {
    read(text, Tags::All)
}

fn read(text: &str, tags: Tags) -> Result<Node, ValueError> {
    let mut open: Vec<Open> = Vec::new();
    let mut root: Option<Node> = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            // The end of a text is behind its last letter, whether or not a line end is there.
            let last = text.trim_end_matches('\n').split('\n').enumerate().last();
            let end = last.map_or((1, 1), |(at, line)| (at + 1, line.chars().count() + 1));
            let place = (error.marker().line(), error.marker().col() + 1).min(end);
            let found = format!("what YAML does not allow ({})", error.info());
            ValueError { place: Some(place), ..ValueError::new("", found, "YAML") }
        })?;
        let place = (span.start.line(), span.start.col() + 1);
        let refuse = |found: &str, expected: &str| {
            Err(ValueError { place: Some(place), ..ValueError::new("", found, expected) })
        };
        let done = match event {
            Event::Scalar(text, style, _, tag) => {
                let (text, plain) = (text.into_owned(), style == ScalarStyle::Plain);
                let (text, plain) = match tag.as_deref().and_then(told) {
                    Some(tag) if tag == "!!str" => (text, false),
                    Some(tag) if tags == Tags::All => match word::constructed(&tag, &text) {
                        Ok(word) => (word, true),
                        Err(expected) => {
                            let found = format!("{} with the tag `{tag}`", shortened(&text));
                            return refuse(&found, expected);
                        }
                    },
                    _ => (text, plain),
                };
                Node { kind: NodeKind::Scalar { text, plain }, place, name_place: None }
            }
            Event::SequenceStart(_, ref tag) | Event::MappingStart(_, ref tag) => {
                if open.len() >= DEPTH_MAX {
                    return refuse("a deeper nesting", &format!("at most {DEPTH_MAX} levels"));
                }
                let sequence = matches!(event, Event::SequenceStart(..));
                let (what, fitting) =
                    if sequence { ("a sequence", "!!seq") } else { ("a mapping", "!!map") };
                if let Some(tag) = tag.as_deref().and_then(told)
                    && tags == Tags::All
                    && tag != fitting
                {
                    let found = format!("{what} with the tag `{tag}`");
                    return refuse(&found, &format!("{fitting} or no tag"));
                }
                let kind = if sequence {
                    NodeKind::Sequence(Vec::new())
                } else {
                    NodeKind::Mapping(Vec::new())
                };
                open.push(Open {
                    node: Node { kind, place, name_place: None },
                    key: None,
                    keys: HashSet::new(),
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(closed) => closed.node,
                None => continue,
            },
            Event::Alias(_) => return refuse("an alias", "a value written out"),
            Event::DocumentStart(_) if root.is_some() => {
                return refuse("a second document", "one document");
            }
            _ => continue,
        };
        let Some(outer) = open.last_mut() else {
            root = Some(done);
            continue;
        };
        let start = done.place;
        match (&mut outer.node.kind, outer.key.take(), done) {
            (NodeKind::Sequence(items), _, done) => items.push(done),
            (NodeKind::Mapping(entries), Some((key, at)), done) => {
                entries.push((key, Node { name_place: Some(at), ..done }));
            }
            (NodeKind::Mapping(_), None, Node { kind: NodeKind::Scalar { text, .. }, .. }) => {
                if !outer.keys.insert(text.clone()) {
                    return refuse(&format!("the name `{text}` again"), "each name at most once");
                }
                outer.key = Some((text, start));
            }
            _ => {
                let error = ValueError::new("", "a collection as a name", "a name");
                return Err(ValueError { place: Some(start), ..error });
            }
        }
    }
    let nothing = Node {
        kind: NodeKind::Scalar { text: String::new(), plain: true },
        place: (1, 1),
        name_place: None,
    };
    Ok(root.unwrap_or(nothing))
}

/// A tag as it is usually written. `!` alone says nothing.
fn told(tag: &Tag) -> Option<String> {
    let name = format!("{}{}", tag.handle, tag.suffix);
    match name.strip_prefix("tag:yaml.org,2002:") {
        Some(core) => Some(format!("!!{core}")),
        None => (name != "!").then_some(name),
    }
}

/// A truth value in the words of YAML 1.1, which ROS tools read.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// A whole number: decimal, or `0x`, `0o`, `0b`, with `_` between digits.
pub fn integer(text: &str) -> Option<i128> {
    parse_integer(text)
}

/// A number, also `.nan` and `.inf`.
pub fn float(text: &str) -> Option<f64> {
    match text.trim_start_matches(['+', '-']) {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" if text.starts_with('-') => Some(f64::NEG_INFINITY),
        ".inf" | ".Inf" | ".INF" => Some(f64::INFINITY),
        _ => parse_float(text).or_else(|| parse_integer(text).map(|value| value as f64)),
    }
}

/// A number as Python and its YAML writer print it.
pub fn float_text(value: f64) -> String {
    if value.is_nan() {
        return ".nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf".into() } else { "-.inf".into() };
    }
    let scientific = format!("{value:e}");
    // The form of `{:e}` always has an `e` and a whole number behind it.
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let point = if digits.contains('.') { "" } else { ".0" };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}{point}e{sign}{:02}", exponent.abs());
    }
    let mut text = value.to_string();
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

/// A text as a YAML scalar: plain where that reads back as the same text, else quoted.
pub fn quoted(text: &str) -> String {
    let needs_escapes = text.chars().any(|letter| letter.is_control() || is_escaped_beyond(letter));
    if needs_escapes {
        return escaped(text);
    }
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

/// A scalar as it stands inside of `{}` and `[]`, where more letters mean something.
pub fn in_flow(scalar: String) -> String {
    let is_quoted = scalar.starts_with(['\'', '"']);
    if is_quoted || !scalar.contains([',', '?', '[', ']', '{', '}', ':']) {
        return scalar;
    }
    format!("'{}'", scalar.replace('\'', "''"))
}

/// Letters that YAML does not take as they are, and the marks that turn the direction of what follows, by which a text
/// looks like another one.
fn is_escaped_beyond(letter: char) -> bool {
    matches!(
        letter,
        '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{1b}' => out.push_str("\\e"),
            letter if letter.is_control() && u32::from(letter) < 0x100 => {
                // Writing to a String does not fail.
                let _ = write!(out, "\\x{:02X}", u32::from(letter));
            }
            letter if is_escaped_beyond(letter) => {
                let _ = write!(out, "\\u{:04X}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Whether YAML reads a text without quotes as that very text.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let indicator = "#,[]{}&*!|>'\"%@`".contains(first)
        || ("-?:".contains(first) && text[1..].chars().next().is_none_or(char::is_whitespace));
    let inside = text.contains(": ") || text.ends_with(':') || text.contains(" #");
    let edges = text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace);
    let document = text.starts_with("---") || text.starts_with("...");
    !(indicator || inside || edges || document || means_something(text))
}

/// Whether YAML 1.1 or 1.2 reads the word as something else than text.
fn means_something(text: &str) -> bool {
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "~" | "null"
            | "true"
            | "false"
            | "yes"
            | "no"
            | "on"
            | "off"
            | "="
            | "<<"
            | ".nan"
            | ".inf"
            | "nan"
            | "inf"
    );
    if word || !matches!(Word::plain(text), Word::Text(_)) {
        return true;
    }
    let numberlike =
        text.starts_with(|letter: char| letter.is_ascii_digit() || "+-.".contains(letter));
    if !numberlike {
        return false;
    }
    let stripped = text.replace('_', "");
    let unsigned = stripped.trim_start_matches(['+', '-']);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parse_float(&stripped).is_some()
        || parse_integer(&stripped).is_some()
        || matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN")
        // Numbers to the base of 60 and dates.
        || unsigned.split(':').count() > 1 && unsigned.split([':', '.']).all(digits)
        || looks_like_date(text)
}

fn looks_like_date(text: &str) -> bool {
    let head: Vec<&str> = text.splitn(3, '-').collect();
    matches!(*head.as_slice(), [year, month, rest] if year.len() == 4
        && year.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(month.len(), 1 | 2)
        && month.bytes().all(|byte| byte.is_ascii_digit())
        && rest.starts_with(|letter: char| letter.is_ascii_digit()))
}
