//! Links of documents: what they name is there, and has the heading that they name.

use std::collections::{BTreeMap, HashSet};

/// Links that lead nowhere, of all documents. `files` are those of the repository by their paths.
pub(crate) fn broken(files: &BTreeMap<String, String>) -> Vec<String> {
    let documents = files.iter().filter(|(path, _)| path.ends_with(".md"));
    documents
        .flat_map(|(path, text)| {
            let broken = links(text).into_iter().filter(|(_, link)| !leads(files, path, link));
            broken.map(move |(line, link)| format!("{path}:{line}: {link} leads nowhere"))
        })
        .collect()
}

/// The targets of the links of a document within the repository, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let mut rest = line;
        while let Some((_, behind)) = rest.split_once("](") {
            rest = behind;
            let Some((link, _)) = behind.split_once(')') else { break };
            if !link.contains("://") && !link.starts_with("mailto:") {
                links.push((number, link));
            }
        }
    }
    links
}

/// The lines of a document that are not code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn leads(files: &BTreeMap<String, String>, from: &str, link: &str) -> bool {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { from.to_owned() } else { joined(from, path) };
    match files.get(&target) {
        Some(text) => {
            heading.is_empty() || !target.ends_with(".md") || anchors(text).contains(heading)
        }
        // A folder is where something is in it.
        None => {
            let folder = format!("{}/", target.trim_end_matches('/'));
            heading.is_empty() && files.keys().any(|it| it.starts_with(&folder))
        }
    }
}

/// The path that `link` names in a document at `from`.
fn joined(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// What forges call the headings of a document: small letters, hyphens for spaces, no punctuation; a number where there are
/// several.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
        let anchor = kept.flat_map(char::to_lowercase).collect::<String>().replace(' ', "-");
        let several = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(several).find(|it| !anchors.contains(it));
        anchors.extend(free);
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let other = "# Other\n\n## What runs, and what `it` takes\n\n## Twice\n## Twice\n";
        let files = [("docs/one.md", text), ("docs/sub/other.md", other), ("a.rs", "")];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        assert_eq!(broken(&files), expect, "{text}");
    }

    #[test]
    fn what_a_link_names_is_there() {
        check("[a](sub/other.md) and [b](../a.rs), [c](sub), [d](sub/), [e](./sub/other.md)", &[]);
        check("x\n[a](other.md)", &["docs/one.md:2: other.md leads nowhere"]);
        check("[a](../docs/two.md) [b](../a.rs)", &["docs/one.md:1: ../docs/two.md leads nowhere"]);
        check("[a](https://example.com/x.md) [b](mailto:a@b.c)", &[]);
        check("```sh\n[a](nowhere)\n```\n", &[]);
    }

    #[test]
    fn a_heading_is_there_too() {
        check("# One's own\n[a](#ones-own) [b](sub/other.md#what-runs-and-what-it-takes)", &[]);
        check("[a](sub/other.md#twice-1)", &[]);
        check("[a](sub/other.md#twice-2)", &["docs/one.md:1: sub/other.md#twice-2 leads nowhere"]);
        check("```\n# code\n```\n[a](#code)", &["docs/one.md:4: #code leads nowhere"]);
    }
}
