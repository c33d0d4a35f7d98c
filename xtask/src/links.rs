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

/// What stands before and behind the target of a link or a picture, in Markdown and in HTML.
const AROUND: [(&str, char); 4] =
    [("](", ')'), (" src=\"", '"'), (" srcset=\"", '"'), (" href=\"", '"')];

/// The targets of the links of a document within the repository, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    prose(text).flat_map(|(number, line)| of_line(line).map(move |it| (number, it))).collect()
}

/// The document with other targets of its links within the repository, as `target` says.
pub(crate) fn rewritten(text: &str, mut target: impl FnMut(&str) -> String) -> String {
    let mut result = String::with_capacity(text.len());
    let mut prose = prose(text).map(|(number, _)| number).peekable();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let mut rest = line;
        if prose.next_if_eq(&number).is_some() {
            for link in of_line(line) {
                // The targets are parts of the line, in their order.
                let at = link.as_ptr().addr() - rest.as_ptr().addr();
                result += &rest[..at];
                result += &target(link);
                rest = &rest[at + link.len()..];
            }
        }
        result += rest;
    }
    result
}

fn of_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let next = |(before, behind): &(&str, char)| {
                rest.find(before).map(|at| (at + before.len(), *behind))
            };
            let (at, behind) = AROUND.iter().filter_map(next).min()?;
            rest = &rest[at..];
            let end = rest.find(behind)?;
            let link = &rest[..end];
            rest = &rest[end..];
            if !link.contains("://") && !link.starts_with("mailto:") {
                return Some(link);
            }
        }
    })
}

/// The lines of a document that are not code.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
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
pub(crate) fn joined(from: &str, link: &str) -> String {
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
        check(
            "<p><a href=\"sub\"><img alt=\"x\" src=\"gone.svg\"></a>",
            &["docs/one.md:1: gone.svg leads nowhere"],
        );
    }

    #[test]
    fn links_are_rewritten_where_they_are_links() {
        let text = "a [b](c.md), ![d](e.svg) <img src=\"f.png\">\n```\n[g](h.md)\n```\n[i](https://j.example) [k](l)";
        let expected = "a [b](<c.md>), ![d](<e.svg>) <img src=\"<f.png>\">\n```\n[g](h.md)\n```\n[i](https://j.example) [k](<l>)";
        assert_eq!(rewritten(text, |link| format!("<{link}>")), expected);
    }

    #[test]
    fn a_heading_is_there_too() {
        check("# One's own\n[a](#ones-own) [b](sub/other.md#what-runs-and-what-it-takes)", &[]);
        check("[a](sub/other.md#twice-1)", &[]);
        check("[a](sub/other.md#twice-2)", &["docs/one.md:1: sub/other.md#twice-2 leads nowhere"]);
        check("```\n# code\n```\n[a](#code)", &["docs/one.md:4: #code leads nowhere"]);
    }
}
