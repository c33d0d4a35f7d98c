//! Messages from YAML text.
//!
//! `saphyr-parser` gives events with positions and is kept up (`serde_yaml` is archived). No
//! document tree in between guesses types: a field's type decides how a word is read, so `data:
//! 1.10` is the text "1.10" where a string is wanted.

use super::input::{self, Input};
use super::{DynamicMessage, ValueError};
use crate::types::TypeDescription;
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::collections::HashSet;
use std::sync::Arc;

/// Collections inside collections. A deeper text is refused.
const DEPTH_MAX: usize = 64;

/// The time that `auto` and `now` stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Seconds since the epoch.
    pub sec: i32,
    /// Nanoseconds within the second.
    pub nanosec: u32,
}

impl DynamicMessage {
    /// A message from YAML as `ros2 topic pub` takes it: `{linear: {x: 1.0}}`. Fields that are not
    /// named keep their defaults.
    pub fn from_yaml(ty: &Arc<TypeDescription>, text: &str) -> Result<Self, ValueError> {
        input::message(ty, Input::Yaml(&parse(text)?), None)
    }

    /// As [`DynamicMessage::from_yaml`], and `header: auto` or `stamp: now` becomes the time `now`.
    pub fn from_yaml_at(
        ty: &Arc<TypeDescription>,
        text: &str,
        now: Now,
    ) -> Result<Self, ValueError> {
        input::message(ty, Input::Yaml(&parse(text)?), Some(now))
    }
}

/// A value in a YAML text.
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// Line and column, from 1.
    pub(super) place: (usize, usize),
}

pub(super) enum NodeKind {
    Scalar { text: String, plain: bool },
    Sequence(Vec<Node>),
    Mapping(Vec<(String, Node)>),
}

/// A collection that is still open.
struct Open {
    node: Node,
    /// The key that waits for its value.
    key: Option<String>,
    keys: HashSet<String>,
}

fn parse(text: &str) -> Result<Node, ValueError> {
    let mut open: Vec<Open> = Vec::new();
    let mut root: Option<Node> = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let place = (error.marker().line(), error.marker().col() + 1);
            ValueError { place: Some(place), ..ValueError::new("", error.info(), "YAML") }
        })?;
        let place = (span.start.line(), span.start.col() + 1);
        let refuse = |found: &str, expected: &str| {
            Err(ValueError { place: Some(place), ..ValueError::new("", found, expected) })
        };
        let done = match event {
            Event::Scalar(text, style, _, _) => {
                let plain = style == ScalarStyle::Plain;
                Node { kind: NodeKind::Scalar { text: text.into_owned(), plain }, place }
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() >= DEPTH_MAX {
                    return refuse("a deeper nesting", &format!("at most {DEPTH_MAX} levels"));
                }
                let sequence = matches!(event, Event::SequenceStart(..));
                let kind = if sequence {
                    NodeKind::Sequence(Vec::new())
                } else {
                    NodeKind::Mapping(Vec::new())
                };
                open.push(Open { node: Node { kind, place }, key: None, keys: HashSet::new() });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(closed) => closed.node,
                None => continue,
            },
            // Each use of an alias could double the size of the value.
            Event::Alias(_) => return refuse("an alias", "a value written out"),
            Event::DocumentStart(_) if root.is_some() => {
                return refuse("a second document", "one message");
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
            (NodeKind::Mapping(entries), Some(key), done) => entries.push((key, done)),
            (NodeKind::Mapping(_), None, Node { kind: NodeKind::Scalar { text, .. }, .. }) => {
                if !outer.keys.insert(text.clone()) {
                    return refuse(&format!("the name `{text}` again"), "each field at most once");
                }
                outer.key = Some(text);
            }
            _ => {
                let error = ValueError::new("", "a collection as a name", "a field name");
                return Err(ValueError { place: Some(start), ..error });
            }
        }
    }
    let nothing =
        Node { kind: NodeKind::Scalar { text: String::new(), plain: true }, place: (1, 1) };
    Ok(root.unwrap_or(nothing))
}
