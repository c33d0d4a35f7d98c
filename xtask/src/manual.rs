//! The manual as a book: which pages it has, and their sources as mdBook takes them.
//!
//! docs/README.md says which pages there are and in which order, for whoever reads in the repository and for the book. The
//! sources are laid out as in the repository, so that links between pages lead where they lead there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::{links, tidy};

mod blocks;
pub(crate) mod finish;
pub(crate) mod html;
mod sentences;

/// The list of all pages, which is one itself.
pub(crate) const LIST: &str = "docs/README.md";
/// What the book opens with.
const FIRST: &str = "README.md";
/// The pages below it are listed there, in the order of their names.
const DECISIONS: &str = "docs/decisions/README.md";
/// What mdBook is told, and what its pages look like beyond its own theme.
const CONFIGURATION: [(&str, &str); 3] = [
    ("docs/book/book.toml", "book.toml"),
    ("docs/book/manual.css", "manual.css"),
    ("docs/book/manual.js", "manual.js"),
];

/// What a browser shows or stores by itself; any other text is shown as plain text.
const KEPT: &[&str] = &["svg", "png", "xml", "ipynb", "html"];

/// A page, with what the list of contents calls it and the part that it is in.
#[derive(Debug, PartialEq)]
pub(crate) struct Page<'a> {
    pub(crate) part: &'a str,
    pub(crate) title: &'a str,
    pub(crate) path: String,
}

/// The pages that the list names: the first link of each of its items.
pub(crate) fn pages(list: &str) -> Vec<Page<'_>> {
    let mut pages = Vec::new();
    let mut part = "";
    for line in list.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            part = heading;
        }
        let item = line.trim_start_matches(|it: char| it.is_ascii_digit());
        let item = item.strip_prefix(". ").or_else(|| line.strip_prefix("- "));
        let named = item.and_then(|it| it.strip_prefix('[')).and_then(|it| it.split_once("]("));
        if let Some((title, (link, _))) =
            named.and_then(|(title, rest)| Some((title, rest.split_once(')')?)))
        {
            pages.push(Page { part, title, path: links::joined(LIST, link) });
        }
    }
    pages
}

/// The paths of all pages, those of decisions and the list itself among them.
pub(crate) fn paths(files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let list = files.get(LIST).map_or("", String::as_str);
    let listed = pages(list).into_iter().map(|it| it.path);
    let fixed = [FIRST, LIST].map(str::to_owned);
    listed.chain(fixed).chain(decisions(files).map(|(path, _)| path.clone())).collect()
}

fn decisions(files: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    files.iter().filter(|(path, _)| {
        path.starts_with("docs/decisions/") && path.ends_with(".md") && *path != DECISIONS
    })
}

/// What is wrong with the list: a page that it names twice, or a document of the manual that it does not name.
pub(crate) fn complaints(files: &BTreeMap<String, String>) -> Vec<String> {
    let Some(list) = files.get(LIST) else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let listed = pages(list).into_iter().map(|it| it.path);
    let twice = listed.filter(|path| !seen.insert(path.clone()));
    let mut complaints: Vec<_> =
        twice.map(|it| format!("{LIST}: {it} begins two items; it is one page")).collect();
    let documents = files.keys().filter(|it| it.starts_with("docs/") && it.ends_with(".md"));
    let missing = documents.filter(|it| !paths(files).contains(*it));
    complaints.extend(missing.map(|it| format!("{LIST}: no item begins with a link to {it}")));
    complaints.extend(long_winded(files));
    complaints.extend(blocks::complaints(files));
    complaints
}

/// The part of the manual that only its makers read.
const FOR_CONTRIBUTORS: &str = "For contributors";
/// How many words a sentence of a page for users may have in the mean, and of the first page.
const WORDS_MAX: f64 = 20.0;

/// The pages for users with their words and sentences.
fn lengths(files: &BTreeMap<String, String>) -> Vec<(String, sentences::Length)> {
    let list = files.get(LIST).map_or("", String::as_str);
    let read = pages(list).into_iter().filter(|it| it.part != FOR_CONTRIBUTORS);
    let paths = [FIRST, LIST].map(str::to_owned).into_iter().chain(read.map(|it| it.path));
    let text = |path: String| {
        let text = files.get(&path)?;
        Some((path, sentences::length(text)))
    };
    paths.filter_map(text).collect()
}

/// The pages whose sentences are too long in the mean.
fn long_winded(files: &BTreeMap<String, String>) -> Vec<String> {
    let long = lengths(files).into_iter().filter(|(_, it)| it.mean() > WORDS_MAX);
    long.map(|(path, it)| format!("{path}: {:.1} words a sentence; at most {WORDS_MAX}", it.mean()))
        .collect()
}

/// A line for each page of how long its sentences are, the longest first.
pub(crate) fn sentences(root: &Path) -> Result<Vec<String>, String> {
    let mut lengths = lengths(&tidy::files(root)?);
    lengths.sort_by(|(_, one), (_, other)| other.mean().total_cmp(&one.mean()));
    let line = |(path, it): &(String, sentences::Length)| {
        format!("{:5.1} words in {:4} sentences of {path}", it.mean(), it.sentences)
    };
    Ok(lengths.iter().map(line).collect())
}

/// Writes what mdBook makes the book of into `out`, whose sources are made anew. Returns how many pages there are.
pub(crate) fn assemble(root: &Path, out: &Path) -> Result<usize, String> {
    let files = tidy::files(root)?;
    let sources = assembled(&files)?;
    let source = out.join("src");
    if source.exists() {
        fs::remove_dir_all(&source).map_err(at(&source))?;
    }
    let write = |path: &Path, text: &[u8]| {
        let folder = path.parent().unwrap_or(out);
        fs::create_dir_all(folder).and_then(|()| fs::write(path, text)).map_err(at(path))
    };
    for (path, text) in &sources.texts {
        write(&source.join(path), text.as_bytes())?;
    }
    for path in &sources.copied {
        let from = root.join(path);
        let bytes = fs::read(&from).map_err(at(&from))?;
        write(&source.join(path), &bytes)?;
    }
    for (from, to) in CONFIGURATION {
        let text = files.get(from).ok_or_else(|| format!("{from} is missing"))?;
        write(&out.join(to), text.as_bytes())?;
    }
    Ok(paths(&files).len())
}

/// Says of an error at which file or folder it was.
fn at(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// The sources of the book: texts by their paths, and files that are taken as they are.
#[derive(Default)]
struct Sources {
    texts: BTreeMap<String, String>,
    copied: BTreeSet<String>,
}

fn assembled(files: &BTreeMap<String, String>) -> Result<Sources, String> {
    let list = files.get(LIST).ok_or_else(|| format!("{LIST} is missing"))?;
    let mut sources = Sources::default();
    sources.texts.insert("SUMMARY.md".to_owned(), summary(list, files));
    let pages = paths(files);
    for page in &pages {
        let text = files.get(page).ok_or_else(|| format!("{LIST}: {page} is missing"))?;
        let text = links::rewritten(text, |link| relinked(files, &pages, page, link, &mut sources));
        sources.texts.insert(page.clone(), text);
    }
    Ok(sources)
}

/// The list of chapters as mdBook reads it.
fn summary(list: &str, files: &BTreeMap<String, String>) -> String {
    let mut summary = format!("# Summary\n\n[tsuji]({FIRST})\n[The manual]({LIST})\n");
    let mut last = "";
    for Page { part, title, path } in pages(list) {
        if part != last {
            let _ = write!(summary, "\n# {part}\n\n");
            last = part;
        }
        let _ = writeln!(summary, "- [{title}]({path})");
        if path == DECISIONS {
            for (path, text) in decisions(files) {
                let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
                let _ = writeln!(summary, "  - [{title}]({path})");
            }
        }
    }
    summary
}

/// Where a link of a page leads in the book; what is no page of it is brought along.
fn relinked(
    files: &BTreeMap<String, String>,
    pages: &BTreeSet<String>,
    page: &str,
    link: &str,
    sources: &mut Sources,
) -> String {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = links::joined(page, path);
    if path.is_empty() || pages.contains(&target) {
        // mdBook makes the page of a folder from its README.
        return match path.strip_suffix("README.md") {
            Some(folder) => format!("{folder}index.html{}", &link[path.len()..]),
            None => link.to_owned(),
        };
    }
    if files.contains_key(&target) {
        let name = brought(files, &target, sources);
        let added = &name[target.len()..];
        let heading = if heading.is_empty() { String::new() } else { format!("#{heading}") };
        return format!("{path}{added}{heading}");
    }
    // A folder: what is in it, as a page of links.
    let folder = format!("{target}/");
    let within = files.keys().filter_map(|it| it.strip_prefix(&folder).map(|name| (it, name)));
    let mut rows = String::new();
    for (file, name) in within.filter(|(_, name)| !name.split('/').any(|it| it.starts_with('.'))) {
        let to = brought(files, file, sources);
        let _ = writeln!(rows, "<li><a href=\"{}\">{name}</a></li>", &to[folder.len()..]);
    }
    let title = format!("Files in {target}");
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><style>body {{ overflow-wrap: anywhere }} li {{ line-height: 2 }}</style></head>\n\
         <body><main><h1>{title}</h1>\n<ul>\n{rows}</ul></main></body>\n</html>\n"
    );
    sources.texts.insert(format!("{folder}index.html"), text);
    format!("{}/index.html", path.trim_end_matches('/'))
}

/// Brings a file along, and says by which name.
fn brought(files: &BTreeMap<String, String>, file: &str, sources: &mut Sources) -> String {
    let is_kept = file.rsplit_once('.').is_some_and(|(_, ending)| KEPT.contains(&ending));
    let text = &files[file];
    // A file that is not text is known by its name alone.
    if is_kept || text.is_empty() {
        sources.copied.insert(file.to_owned());
        return file.to_owned();
    }
    let name = format!("{file}.txt");
    sources.texts.insert(name.clone(), text.clone());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "# The manual\n\nText with [a link](b.md).\n\n## Tutorial\n\n1. [First](a.md): see [b](b.md).\n\n\
                         ## Reference\n\n- [Second](b.md).\n- [Policies](../policies/README.md)\n- [Decisions](decisions/README.md)\n";

    fn files(more: &[(&str, &str)]) -> BTreeMap<String, String> {
        let small = [
            ("README.md", "[the manual](docs/README.md)"),
            (LIST, SMALL),
            (
                "docs/a.md",
                "# A\n[b](b.md#x) [code](../src/main.rs) [all](../src) [it](#a) ![it](a.svg)\n```\n[c](d.rs)\n```\n",
            ),
            ("docs/b.md", "# B\n## X\n"),
            ("docs/a.svg", "<svg/>"),
            ("src/main.rs", "fn main() {}\n"),
            ("src/sub/more.rs", "\n"),
            ("policies/README.md", "[a](../docs/a.md) [all](../docs/README.md#reference)"),
            (DECISIONS, "# Decisions"),
            ("docs/decisions/0001-one.md", "# 0001: One thing\n"),
        ];
        small
            .iter()
            .chain(more)
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn the_first_link_of_an_item_is_a_page() {
        let found: Vec<_> =
            pages(SMALL).into_iter().map(|it| (it.part, it.title, it.path)).collect();
        let expected = [
            ("Tutorial", "First", "docs/a.md"),
            ("Reference", "Second", "docs/b.md"),
            ("Reference", "Policies", "policies/README.md"),
            ("Reference", "Decisions", DECISIONS),
        ];
        assert_eq!(found, expected.map(|(part, title, path)| (part, title, path.to_owned())));
        assert_eq!(complaints(&files(&[])), Vec::<String>::new());
    }

    #[test]
    fn each_document_is_one_page() {
        let check = |more: &[(&str, &str)], expect: &str| {
            assert_eq!(complaints(&files(more)), [expect]);
        };
        check(&[("docs/c.md", "")], "docs/README.md: no item begins with a link to docs/c.md");
        let twice = format!("{SMALL}- [Again](a.md)\n");
        check(&[(LIST, &twice)], "docs/README.md: docs/a.md begins two items; it is one page");
    }

    #[test]
    fn long_sentences_of_pages_for_users_are_told() {
        let long = format!("# A\n\n{}word.\n", "word ".repeat(20));
        let told = ["docs/a.md: 21.0 words a sentence; at most 20".to_owned()];
        assert_eq!(long_winded(&files(&[("docs/a.md", &long)])), told);
        let of = format!("# The manual\n\n## {FOR_CONTRIBUTORS}\n\n1. [First](a.md)\n");
        assert_eq!(long_winded(&files(&[("docs/a.md", &long), (LIST, &of)])), Vec::<String>::new());
    }

    #[test]
    fn the_summary_has_parts_and_decisions() {
        let expected = "# Summary\n\n[tsuji](README.md)\n[The manual](docs/README.md)\n\n# Tutorial\n\n- [First](docs/a.md)\n\n\
                        # Reference\n\n- [Second](docs/b.md)\n- [Policies](policies/README.md)\n\
                        - [Decisions](docs/decisions/README.md)\n  - [0001: One thing](docs/decisions/0001-one.md)\n";
        assert_eq!(summary(SMALL, &files(&[])), expected);
    }

    #[test]
    fn what_is_no_page_is_brought_along() {
        let sources = assembled(&files(&[])).unwrap();
        let expected = "# A\n[b](b.md#x) [code](../src/main.rs.txt) [all](../src/index.html) [it](#a) ![it](a.svg)\n```\n[c](d.rs)\n```\n";
        assert_eq!(sources.texts["docs/a.md"], expected);
        assert_eq!(sources.texts["src/main.rs.txt"], "fn main() {}\n");
        let index = &sources.texts["src/index.html"];
        assert!(index.contains("<a href=\"main.rs.txt\">main.rs</a>"), "{index}");
        assert!(index.contains("<a href=\"sub/more.rs.txt\">sub/more.rs</a>"), "{index}");
        assert_eq!(Vec::from_iter(&sources.copied), ["docs/a.svg"]);
        let page = &sources.texts["policies/README.md"];
        assert_eq!(page, "[a](../docs/a.md) [all](../docs/index.html#reference)");
    }

    #[test]
    fn a_page_that_is_not_there_is_told() {
        let mut files = files(&[]);
        files.remove("docs/b.md");
        assert_eq!(assembled(&files).err().unwrap(), "docs/README.md: docs/b.md is missing");
    }
}
