//! Places in YAML are those of the words, whatever stands before them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use tsuji_msg::yaml::{self, Node, NodeKind};

const WORD: &str = "wrong";

/// The places of all values that are the word.
fn told(node: &Node, places: &mut Vec<(usize, usize)>) {
    match &node.kind {
        NodeKind::Scalar { text, .. } if text == WORD => places.push(node.place),
        NodeKind::Scalar { .. } => (),
        NodeKind::Sequence(items) => items.iter().for_each(|it| told(it, places)),
        NodeKind::Mapping(entries) => entries.iter().for_each(|(_, it)| told(it, places)),
    }
}

/// Where the word stands, as an editor shows it.
fn shown(text: &str) -> Vec<(usize, usize)> {
    let place = |(at, _): (usize, &str)| {
        let before = &text[..at];
        let line = before.rsplit('\n').next().unwrap_or_default();
        (before.matches('\n').count() + 1, line.trim_start_matches('\u{feff}').chars().count() + 1)
    };
    text.match_indices(WORD).map(place).collect()
}

#[test]
fn places_are_those_of_the_words() {
    let check = |text: &str| {
        let mut places = Vec::new();
        told(&yaml::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}")), &mut places);
        assert_eq!(places, shown(text), "{text:?}");
    };
    let names = ["a", "ä", "辻", "🦀🦀", "e\u{301}", "\"q \\u00e4\"", "'q''q'"];
    for end in ["\n", "\r\n"] {
        for name in names {
            for text in [
                format!("{name}: wrong"),
                format!("\u{feff}{name}: wrong"),
                format!("# {name}{end}{name}:   wrong{end}"),
                format!(
                    "{name}:{end}  - {name}{end}  - wrong{end}x: [{name}, wrong, \twrong]{end}"
                ),
                format!(
                    "x: {{{name}: 1, y: wrong}}{end}z: |{end}  {name}{end}  {name}{end}u: wrong{end}"
                ),
                format!("x:{end}{end}  # {name}{end}  {name}:{end}    wrong{end}"),
            ] {
                check(&text);
            }
        }
    }
}
