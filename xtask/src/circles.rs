//! Modules of a crate that need each other in a circle: none may be read, tested or moved without the others.
//!
//! Those that there are stand in [`KNOWN`]. A new one is refused, and one that was cut is taken out of the table, so that it does not
//! come back. It reads the text and does not resolve names: what is used by its name behind the crate's root (`crate::Error`), or by `super::`
//! from deeper down, is not seen.

use std::collections::{BTreeMap, BTreeSet};

/// The modules of a crate, as they stand side by side in its folder of sources, and which of the others each names.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The files of each module, and whether each lies beside the crate's root.
type Modules<'a> = BTreeMap<String, Vec<(bool, &'a str)>>;

/// The circles that are left, by the crate's folder. Each is what a change should make smaller.
const KNOWN: &[(&str, &str)] = &[
    ("crates/tsuji-bridge/src", "connected_client foxglove hub jpeg memory settings"),
    ("crates/tsuji-bridge/src", "desk io session"),
    (
        "crates/tsuji-cli/src",
        "action completions elsewhere failure interfaces policy qos service session topic",
    ),
    ("crates/tsuji-codec/src", "bson cbor cdr json plan raw read write"),
    ("crates/tsuji-demo/src", "acts nodes robot stage"),
    ("crates/tsuji-launch/src", "parameter read substitution words"),
    ("crates/tsuji-msg/src", "array cdr dynamic hash message types view wire"),
    ("crates/tsuji-platform/src", "exit fork"),
    ("crates/tsuji-record/src", "list offered"),
    ("crates/tsuji-rmw/src", "abi distribution error ffi"),
    (
        "crates/tsuji-rmw/src",
        "check client events filter gid handle identity init node publisher qos serialized service subscription wait",
    ),
    ("crates/tsuji-rosbridge/src", "bson cbor fields json operation qos refusal"),
    ("crates/tsuji-ros1/src", "mapping types"),
    ("crates/tsuji-transport-ros1/src", "io service state topic"),
    ("crates/tsuji/src", "action service"),
    (
        "crates/tsuji/src",
        "announcement arrivals content_filter control endpoint executor graph_cache guard_condition policy_file publisher_core registry session subscription_core wait_list",
    ),
    ("engines/zenoh/src", "endpoint engine wire"),
    ("lab/src", "arguments budgets child crew handover matrix report rounds route transport tune"),
    ("peers/ros2-client/src", "parameters peer"),
    ("python/src", "loan message read topic types view write"),
    ("python/src", "loop_wakers waiting"),
    ("xtask/src", "manual tidy"),
];

/// The circles that are not in the table, and those that are there and are cut.
pub(crate) fn complaints(files: &BTreeMap<String, String>) -> Vec<String> {
    let known = KNOWN.iter().map(|(folder, modules)| {
        ((*folder).to_owned(), modules.split_whitespace().map(str::to_owned).collect())
    });
    compared(&crates(files), &known.collect())
}

fn compared(
    crates: &BTreeMap<String, Uses>,
    known: &BTreeSet<(String, BTreeSet<String>)>,
) -> Vec<String> {
    let circles = crates.iter().flat_map(|(folder, uses)| {
        circles(uses).into_iter().map(|circle| (folder.clone(), circle))
    });
    let circles: BTreeSet<(String, BTreeSet<String>)> = circles.collect();
    let new = circles.difference(known).map(|(folder, circle)| {
        let way = way(&crates[folder], circle);
        format!(
            "{folder}: modules need each other in a circle: {}, for example {way}; \
             xtask/src/circles.rs lists the circles that are left",
            shown(circle)
        )
    });
    let cut = known.difference(&circles).map(|(folder, circle)| {
        format!(
            "{folder}: the circle of {} is not there any more, or is smaller: take it out of \
             xtask/src/circles.rs",
            shown(circle)
        )
    });
    new.chain(cut).collect()
}

fn shown(circle: &BTreeSet<String>) -> String {
    circle.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The modules of each crate, by the folder of its sources.
fn crates(files: &BTreeMap<String, String>) -> BTreeMap<String, Uses> {
    let mut crates: BTreeMap<String, Modules<'_>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let Some((folder, inner)) = path.split_once("/src/") else { continue };
        let (module, is_beside) = match inner.split_once('/') {
            Some((module, _)) => (module, false),
            None => (inner.trim_end_matches(".rs"), true),
        };
        if !["lib", "main", "bin"].contains(&module) {
            let modules = crates.entry(format!("{folder}/src")).or_default();
            modules.entry(module.to_owned()).or_default().push((is_beside, text));
        }
    }
    let uses = |(folder, modules): (String, Modules<'_>)| {
        let uses = modules.iter().map(|(module, texts)| {
            let named = texts.iter().flat_map(|(is_beside, text)| named(text, *is_beside));
            let named = named.filter(|it| it != module && modules.contains_key(it));
            (module.clone(), named.collect())
        });
        (folder, uses.collect())
    };
    crates.into_iter().map(uses).collect()
}

/// The first names behind `crate::`, also in braces; of a file beside the crate's root `super::` is the same. Tests at the end
/// may name whatever they like.
fn named(text: &str, is_beside_root: bool) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut roots = vec!["crate::"];
    if is_beside_root {
        roots.push("super::");
    }
    let mut names = Vec::new();
    for root in roots {
        for (at, _) in text.match_indices(root) {
            if text[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_' || it == ':') {
                continue;
            }
            let rest = &text[at + root.len()..];
            match rest.strip_prefix('{') {
                Some(group) => names.extend(firsts(group)),
                None => names.extend(first(rest)),
            }
        }
    }
    names
}

/// The first name of each path in braces, up to the brace that closes them.
fn firsts(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                names.extend(first(group[start..at].trim_start()));
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn first(path: &str) -> Option<String> {
    let name = path.split(|it: char| !it.is_alphanumeric() && it != '_').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Those sets of modules of which each reaches all others, and which are more than one.
fn circles(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|it| (it, reached(uses, it))).collect();
    let circle_of = |module: &String| -> BTreeSet<String> {
        let mutual = reached[module].iter().filter(|it| reached[**it].contains(module));
        mutual.map(|it| (*it).clone()).collect()
    };
    let circles: BTreeSet<BTreeSet<String>> = uses.keys().map(circle_of).collect();
    circles.into_iter().filter(|it| 1 < it.len()).collect()
}

/// All that a module needs, and what those need. Itself is among them where it is in a circle.
fn reached<'a>(uses: &'a Uses, from: &'a String) -> BTreeSet<&'a String> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        left.extend(uses[module].iter().filter(|it| reached.insert(*it)));
    }
    reached
}

/// A shortest way round, from the first module of a circle.
fn way(uses: &Uses, circle: &BTreeSet<String>) -> String {
    let Some(start) = circle.first() else { return String::new() };
    let mut ways = vec![vec![start]];
    loop {
        let mut longer = Vec::new();
        for way in &ways {
            let last = way[way.len() - 1];
            for next in uses[last].iter().filter(|it| circle.contains(*it)) {
                let mut way = way.clone();
                way.push(next);
                if next == start || circle.len() < way.len() {
                    return way.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(" → ");
                }
                longer.push(way);
            }
        }
        ways = longer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn what_a_module_names() {
        let text = "use crate::a::B;\nuse crate::{b, c::{D, E}, f};\n// crate::x\nfn g() { crate::h::i() }\n\
                    use tsuji_crate::y;\n#[cfg(test)]\nmod tests {\n    use crate::z;\n}\n";
        assert_eq!(named(text, false), ["a", "b", "c", "f", "h"]);
        assert_eq!(named("use super::a;\nuse super::super::b;", true), ["a", "super"]);
        assert!(named("use super::a;", false).is_empty());
    }

    #[test]
    fn a_circle_is_refused_with_a_way_round() {
        let files = files(&[
            ("crates/x/src/lib.rs", "mod a; mod b; mod c; use crate::a;"),
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/b/inner.rs", "use crate::c;"),
            ("crates/x/src/c.rs", "use crate::{a::A, d};"),
            ("crates/x/src/d.rs", "use crate::missing;"),
        ]);
        let found = crates(&files);
        let complaints = compared(&found, &BTreeSet::new());
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        let expect = "crates/x/src: modules need each other in a circle: a, b, c, for example a → b → c → a;";
        assert!(complaints[0].starts_with(expect), "{complaints:?}");

        let set = |modules: &[&str]| {
            let modules = modules.iter().map(|it| (*it).to_owned()).collect();
            BTreeSet::from([("crates/x/src".to_owned(), modules)])
        };
        assert!(compared(&found, &set(&["a", "b", "c"])).is_empty());
        // One that was larger is refused as it is now, and is to be taken out.
        assert_eq!(compared(&found, &set(&["a", "b", "c", "d"])).len(), 2);
    }
}
