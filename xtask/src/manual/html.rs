//! The book as it was built: what its pages refer to is there, and nothing of it comes from the network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{links, tidy};

/// What was found in a book.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    pub(crate) pages: usize,
    pub(crate) links: usize,
    pub(crate) complaints: Vec<String>,
}

/// Follows every reference of the book at `folder`.
pub(crate) fn check(folder: &Path) -> Result<Found, String> {
    Ok(checked(&tidy::files(folder)?))
}

fn checked(files: &BTreeMap<String, String>) -> Found {
    let pages: BTreeMap<&str, Page> = files
        .iter()
        .filter(|(path, _)| path.ends_with(".html"))
        .map(|(path, text)| (path.as_str(), Page::of(text)))
        .collect();
    let mut found = Found { pages: pages.len(), ..Found::default() };
    for (path, page) in &pages {
        found.links += page.references.len();
        for reference in &page.references {
            if let Some(why) = wrong(files, &pages, path, reference) {
                found.complaints.push(format!("{path}: {}: {why}", reference.to));
            }
        }
        let twice = page.twice.iter().map(|id| format!("{path}: two elements have the id {id}"));
        found.complaints.extend(twice);
    }
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".css")) {
        for to in text.split("url(").skip(1).filter_map(|it| it.split(')').next()) {
            let to = to.trim_matches(['"', '\'']);
            let reference = Reference { to: to.to_owned(), is_loaded: true };
            let why = wrong(files, &pages, path, &reference);
            found.complaints.extend(why.map(|why| format!("{path}: {to}: {why}")));
        }
    }
    if found.pages == 0 {
        found.complaints.push("there is no page".to_owned());
    }
    found
}

/// Why a reference is wrong, if it is.
fn wrong(
    files: &BTreeMap<String, String>,
    pages: &BTreeMap<&str, Page>,
    from: &str,
    reference: &Reference,
) -> Option<String> {
    let to = reference.to.as_str();
    if to.starts_with("data:") {
        return None;
    }
    let scheme = to.split(['/', '?', '#']).next().unwrap_or_default();
    if scheme.contains(':') || to.starts_with("//") {
        return reference.is_loaded.then(|| "is loaded from the network".to_owned());
    }
    if to.starts_with('/') {
        return Some("is right only where the book is at the root of a site".to_owned());
    }
    let (path, id) = to.split_once('#').unwrap_or((to, ""));
    let path = path.split('?').next().unwrap_or_default();
    let target = if path.is_empty() { from.to_owned() } else { links::joined(from, path) };
    if !files.contains_key(&target) {
        return Some("leads nowhere".to_owned());
    }
    let has_id = |page: &Page| page.ids.contains(&decoded(id));
    let is_there = id.is_empty() || pages.get(target.as_str()).is_none_or(has_id);
    (!is_there).then(|| format!("{target} has no element of this id"))
}

/// What a page refers to, and what it can be referred to by.
#[derive(Default)]
struct Page {
    references: Vec<Reference>,
    ids: BTreeSet<String>,
    twice: BTreeSet<String>,
}

struct Reference {
    to: String,
    /// Whether a browser gets it without being asked.
    is_loaded: bool,
}

impl Page {
    fn of(text: &str) -> Self {
        let mut page = Self::default();
        let mut rest = text;
        while let Some((_, behind)) = rest.split_once('<') {
            rest = behind;
            if let Some(comment) = behind.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, behind)| behind);
                continue;
            }
            if !behind.starts_with(|it: char| it.is_ascii_alphabetic()) {
                continue;
            }
            let (name, behind) = behind.split_at(
                behind
                    .find(|it: char| it.is_whitespace() || "/>".contains(it))
                    .unwrap_or(behind.len()),
            );
            let name = name.to_ascii_lowercase();
            rest = attributes(behind, |attribute, value| page.note(&name, attribute, value));
            // What is in these is no markup.
            if ["script", "style"].contains(&name.as_str()) {
                let end = rest.find(&format!("</{name}")).unwrap_or(rest.len());
                rest = &rest[end..];
            }
        }
        page
    }

    fn note(&mut self, element: &str, attribute: &str, value: &str) {
        let value = unescaped(value);
        match attribute {
            "id" if !self.ids.insert(value.clone()) => {
                self.twice.insert(value);
            }
            "href" => {
                let is_loaded = !["a", "area", "base"].contains(&element);
                self.references.push(Reference { to: value, is_loaded });
            }
            "src" | "poster" => self.references.push(Reference { to: value, is_loaded: true }),
            _ => {}
        }
    }
}

/// Tells the attributes of an element from behind its name on, and returns what is behind the element's first tag.
fn attributes(text: &str, mut tell: impl FnMut(&str, &str)) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|it: char| it.is_whitespace() || it == '/');
        if rest.is_empty() {
            return rest;
        }
        if let Some(behind) = rest.strip_prefix('>') {
            return behind;
        }
        let end = rest.find(|it: char| it.is_whitespace() || "=/>".contains(it));
        let end = end.or(Some(rest.len()));
        // A name has at least one letter, so that this ends.
        let end = end
            .filter(|it| *it > 0)
            .unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8));
        let (name, behind) = rest.split_at(end);
        let name = name.to_ascii_lowercase();
        let Some(value) = behind.trim_start().strip_prefix('=') else {
            tell(&name, "");
            rest = behind;
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|it| "\"'".contains(*it));
        let (value, behind) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or_else(|| (&value[1..], "")),
            None => value.split_at(
                value.find(|it: char| it.is_whitespace() || it == '>').unwrap_or(value.len()),
            ),
        };
        tell(&name, value);
        rest = behind;
    }
}

fn unescaped(text: &str) -> String {
    let pairs = [
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    pairs.iter().fold(text.to_owned(), |text, (escape, letter)| text.replace(escape, letter))
}

/// A part of a URL without its percent escapes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let escaped =
            digits.filter(|_| *first == b'%').and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expect: &[&str]) {
        let other = "<h1 id=\"top\">x</h1><h2 id='what-it-costs-µs'>y</h2>";
        let files =
            [("a/page.html", page), ("a/other.html", other), ("style.css", ""), ("a/it.svg", "")];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        assert_eq!(checked(&files).complaints, expect, "{page}");
    }

    #[test]
    fn what_is_referred_to_is_there() {
        check(
            "<a href=\"other.html#top\">x</a><link rel=stylesheet href=../style.css><img src='it.svg'/>",
            &[],
        );
        check("<a href=\"#here\" id=here>x</a> <a href='../a/page.html?highlight=x'>x</a>", &[]);
        check("<a href=\"gone.html\">", &["a/page.html: gone.html: leads nowhere"]);
        check("<img alt=\"a > b\"\n src=\"gone.svg\">", &["a/page.html: gone.svg: leads nowhere"]);
        check("<a href=\"../a\">", &["a/page.html: ../a: leads nowhere"]);
        check(
            "<a href=\"/a/other.html\">",
            &["a/page.html: /a/other.html: is right only where the book is at the root of a site"],
        );
    }

    #[test]
    fn the_element_that_a_link_names_is_there() {
        check(
            "<a href=\"other.html#what-it-costs-%C2%B5s\"><a href=\"other.html#what-it-costs-µs\">",
            &[],
        );
        check(
            "<a href=\"other.html#bottom\">",
            &["a/page.html: other.html#bottom: a/other.html has no element of this id"],
        );
        check("<a href=\"#x\">", &["a/page.html: #x: a/page.html has no element of this id"]);
        check("<p id=x></p><p id=\"x\"></p>", &["a/page.html: two elements have the id x"]);
    }

    #[test]
    fn nothing_is_loaded_from_the_network() {
        let why = "is loaded from the network";
        check(
            "<a href=\"https://example.com/x\"><a href=\"mailto:a@b.c\"><img src=\"data:,x\">",
            &[],
        );
        check(
            "<script src=\"https://example.com/x.js\"></script>",
            &[&format!("a/page.html: https://example.com/x.js: {why}")],
        );
        check(
            "<link href=\"//example.com/x.css\">",
            &[&format!("a/page.html: //example.com/x.css: {why}")],
        );
        let files = [
            ("a.html", ""),
            ("a.css", "@import url(\"https://example.com/f.css\"); b { c: url(gone.woff2) }"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let expect = [
            format!("a.css: https://example.com/f.css: {why}"),
            "a.css: gone.woff2: leads nowhere".to_owned(),
        ];
        assert_eq!(checked(&files).complaints, expect);
    }

    #[test]
    fn what_is_no_markup_is_not_read() {
        check(
            "<!-- <a href=gone> --><script>'<a href=gone>'</script><style>a<b href=gone</style><p>1 < 2 href=gone",
            &[],
        );
        check("<a é href=gone.html =>", &["a/page.html: gone.html: leads nowhere"]);
        check("<a href=\"x&amp;y.html\">", &["a/page.html: x&y.html: leads nowhere"]);
    }

    #[test]
    fn a_book_has_pages() {
        assert_eq!(checked(&BTreeMap::new()).complaints, ["there is no page"]);
    }
}
