//! The words that docs/glossary.md has retired: none is left in a public name, a doc comment or a document.

/// As words of prose and as parts of names, in lower case, each with what is said in its place. Words that are also good
/// English for something else are not among them.
const RETIRED: &[(&str, &str)] = &[
    ("road", "transport, route or link"),
    ("roads", "transports, routes or links"),
    ("lane", "link"),
    ("lanes", "links"),
    ("journey", "flow"),
    ("journeys", "flows"),
    ("intake", "reader handover"),
    ("neighbour", "peer process"),
    ("neighbours", "peer processes"),
    ("stranger", "unreachable peer"),
    ("strangers", "unreachable peers"),
    ("knock", "connect attempt"),
    ("knocks", "connect attempts"),
    ("greeting", "handshake"),
    ("greetings", "handshakes"),
    ("nudge", "waker"),
    ("nudges", "wakers"),
    ("newcomer", "late joiner"),
    ("newcomers", "late joiners"),
    ("pursuit", "served action"),
    ("troop", "workload"),
];

/// Parts of public names alone: in prose they say something else.
const RETIRED_NAMES: &[(&str, &str)] = &[
    ("carrier", "transport or protocol"),
    ("directory", "graph"),
    ("news", "on_new_message"),
    ("publication", "publisher"),
    ("reception", "subscription"),
    ("standing", "route"),
    ("ticket", "address"),
];

/// Several words that stand beside each other.
const RETIRED_PAIRS: &[(&str, &str)] = &[
    ("plain node", "foreign node"),
    ("plain nodes", "foreign nodes"),
    ("plain ros 2", "foreign ROS 2"),
    ("plain participant", "foreign participant"),
    ("plain participants", "foreign participants"),
];

/// Where a retired word is quoted, or is a word of somebody else: the glossary, the history, and what rmw calls so.
const MAY_QUOTE: &[&str] = &[
    "CHANGELOG.md",
    "docs/decisions/0026-words-of-the-glossary.md",
    "docs/glossary.md",
    "xtask/src/words.rs",
    "crates/tsuji-rmw/",
];

/// The retired words of a file.
pub(crate) fn retired(path: &str, text: &str) -> Vec<String> {
    if MAY_QUOTE.iter().any(|it| path.starts_with(it)) {
        return Vec::new();
    }
    let is_document = path.ends_with(".md");
    let is_source = path.ends_with(".rs") && path.contains("/src/");
    if !is_document && !is_source {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let is_doc = ["///", "//!"].iter().any(|it| trimmed.starts_with(it));
        let mut note = |(word, now): &(&str, &str)| {
            let number = at + 1;
            found.push(format!("{path}:{number}: {word:?} is retired; say {now}"));
        };
        if is_document || is_doc {
            let words: Vec<String> = words(trimmed);
            let has = |it: &&(&str, &str)| words.iter().any(|word| word == it.0);
            RETIRED.iter().filter(has).for_each(&mut note);
            let joined = format!(" {} ", words.join(" "));
            let has = |it: &&(&str, &str)| joined.contains(&format!(" {} ", it.0));
            RETIRED_PAIRS.iter().filter(has).for_each(&mut note);
        } else if let Some(name) = public_name(trimmed) {
            let words = words(name);
            let has = |it: &&(&str, &str)| words.iter().any(|word| word == it.0);
            RETIRED.iter().chain(RETIRED_NAMES).filter(has).for_each(&mut note);
        }
    }
    found
}

/// The name that a line makes public, if it does.
fn public_name(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("pub ")?;
    for keyword in ["async ", "const ", "unsafe ", "extern \"C\" "] {
        rest = rest.strip_prefix(keyword).unwrap_or(rest);
    }
    for keyword in ["fn ", "struct ", "enum ", "trait ", "type ", "mod ", "static ", "union "] {
        rest = rest.strip_prefix(keyword).unwrap_or(rest);
    }
    let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|it| !it.is_empty() && *it != "use")
}

/// The words of a text or a name, in lower case: `open_link` and `OpenLink` are two.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in text.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().expect("there is one").extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
    }
    words.retain(|it| !it.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_cut_into_words() {
        assert_eq!(words("on_news"), ["on", "news"]);
        assert_eq!(
            words("RoadId of (this) `ROS 2` node"),
            ["road", "id", "of", "this", "ros", "2", "node"]
        );
        assert_eq!(public_name("pub async fn open_road(&self)"), Some("open_road"));
        assert_eq!(public_name("pub standing: Option<String>,"), Some("standing"));
        assert_eq!(public_name("pub use news::NewsCallback;"), None);
        assert_eq!(public_name("pub(crate) fn road(&self)"), None);
    }

    #[test]
    fn retired_words_are_told_with_the_word_to_say() {
        let check = |path: &str, text: &str, expect: &[&str]| {
            assert_eq!(retired(path, text), expect, "{path} {text}");
        };
        let told = ["docs/a.md:2: \"road\" is retired; say transport, route or link"];
        check("docs/a.md", "A crossroads.\nThe Road it takes.", &told);
        check(
            "docs/a.md",
            "Of plain ROS 2 nodes.",
            &["docs/a.md:1: \"plain ros 2\" is retired; say foreign ROS 2"],
        );
        check("docs/glossary.md", "road", &[]);
        let source = "crates/a/src/b.rs";
        check(
            source,
            "/// A road.",
            &["crates/a/src/b.rs:1: \"road\" is retired; say transport, route or link"],
        );
        check(source, "// A road.", &[]);
        check(
            source,
            "    pub fn on_news(&self)",
            &["crates/a/src/b.rs:1: \"news\" is retired; say on_new_message"],
        );
        check(source, "    /// News of others.", &[]);
        check("crates/a/tests/b.rs", "/// A road.", &[]);
    }
}
