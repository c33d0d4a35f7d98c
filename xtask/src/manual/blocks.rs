//! The fenced blocks of the manual: which are commands and programs, and that each of these is run by something, or is listed
//! with the reason why nothing runs it. The list is docs/programs.md.

use std::collections::{BTreeMap, BTreeSet};

use crate::{links, manual};

/// The list of the blocks with what runs each, which is a page itself.
const LIST: &str = "docs/programs.md";

/// What a block may be said to be in.
const LANGUAGES: &[&str] =
    &["console", "cpp", "json", "markdown", "pycon", "python", "rust", "sh", "text", "xml", "yaml"];
/// Blocks in these are for reading alone: drawings and what programs print.
const READ: &[&str] = &["markdown", "text"];

/// A fenced block, without the spaces before all of it.
#[derive(Debug)]
pub(crate) struct Block {
    line: usize,
    language: String,
    /// What stands behind the language, such as `no_run`.
    attributes: String,
    text: String,
}

/// A row of the list.
struct Row<'a> {
    line: usize,
    page: String,
    begins: String,
    run_by: &'a str,
}

/// What of the blocks is not as the list says.
pub(crate) fn complaints(files: &BTreeMap<String, String>) -> Vec<String> {
    let Some(list) = files.get(LIST) else { return Vec::new() };
    let rows: Vec<_> = rows(list).collect();
    let mut complaints = Vec::new();
    let mut listed = BTreeSet::new();
    for page in manual::paths(files) {
        let mut firsts = BTreeMap::new();
        for block in blocks(files.get(&page).map_or("", String::as_str)) {
            let place = format!("{page}:{}", block.line);
            if !LANGUAGES.contains(&block.language.as_str()) {
                let allowed = LANGUAGES.join(", ");
                complaints
                    .push(format!("{place}: a block in {:?}; allowed: {allowed}", block.language));
                continue;
            }
            if READ.contains(&block.language.as_str()) {
                if block.text.lines().any(|it| it.starts_with("$ ")) {
                    complaints.push(format!("{place}: a block with commands is `console`"));
                }
                continue;
            }
            let begins = begins(&block, &mut firsts);
            let Some(row) = rows.iter().find(|it| it.page == page && it.begins == begins) else {
                complaints.push(format!(
                    "{place}: `{begins}` is not in {LIST}: what runs it, or why does nothing?"
                ));
                continue;
            };
            listed.insert(row.line);
            let why = not_run(files, &page, &block, row.run_by);
            complaints
                .extend(why.map(|why| format!("{place}: {LIST} says {:?}, but {why}", row.run_by)));
        }
    }
    let stale = rows.iter().filter(|it| !listed.contains(&it.line));
    complaints.extend(
        stale.map(|it| {
            format!("{LIST}:{}: {} has no such block: `{}`", it.line, it.page, it.begins)
        }),
    );
    complaints
}

/// How a block is named: by its first line, with a number where the page has several of that.
fn begins(block: &Block, firsts: &mut BTreeMap<String, usize>) -> String {
    let first = block.text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default().trim();
    let count = firsts.entry(first.to_owned()).or_default();
    *count += 1;
    if *count == 1 { first.to_owned() } else { format!("{first} ({count})") }
}

/// The rows of the list: a link to the page, how the block begins, what runs it.
fn rows(list: &str) -> impl Iterator<Item = Row<'_>> {
    (1..).zip(list.lines()).filter_map(|(line, text)| {
        let (page, rest) = text.strip_prefix("| [")?.split_once("](")?.1.split_once(") | `")?;
        let (begins, run_by) = rest.rsplit_once("` | ")?;
        Some(Row {
            line,
            page: links::joined(LIST, page),
            // What has the sign of code in it stands between two of them.
            begins: begins
                .strip_prefix("` ")
                .and_then(|it| it.strip_suffix(" `"))
                .unwrap_or(begins)
                .replace("\\|", "|"),
            run_by: run_by.strip_suffix(" |")?,
        })
    })
}

/// Why a block is not run as it is said to be, if it is not.
fn not_run(
    files: &BTreeMap<String, String>,
    page: &str,
    block: &Block,
    run_by: &str,
) -> Option<String> {
    let (how, rest) = run_by.split_once(' ').unwrap_or((run_by, ""));
    let path = rest.trim_matches('`');
    let file = || files.get(path).ok_or_else(|| format!("there is no {path}"));
    match how {
        "not" => (!rest.starts_with("run: ") || rest.len() < "run: why not".len())
            .then(|| "a reason is `not run: …`".to_owned()),
        // rustdoc makes a program of each that is not ignored.
        "doctest" => {
            let includes = |(path, text): (&String, &String)| {
                path.ends_with("/src/lib.rs")
                    && text.contains("cfg(doctest)")
                    && text.contains(&format!("/{page}\")"))
            };
            let is_ignored = block.attributes.contains("ignore") || block.language != "rust";
            (is_ignored || !files.iter().any(includes))
                .then(|| "no documentation test takes it".to_owned())
        }
        "test" => match file() {
            Err(error) => Some(error),
            Ok(text) => (!text.contains(page)).then(|| format!("{path} does not name {page}")),
        },
        // What is built and run there.
        "in" => match file() {
            Err(error) => Some(error),
            Ok(_) if path.ends_with(".md") => Some("a document runs nothing".to_owned()),
            Ok(text) => {
                (!stands_in(&block.text, text)).then(|| format!("{path} does not have these lines"))
            }
        },
        _ => Some("allowed: test FILE, in FILE, doctest, not run: REASON".to_owned()),
    }
}

/// Whether the lines of a block stand in a file, one after the other; however far to the right.
fn stands_in(block: &str, file: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
    };
    let (block, file) = (lines(block), lines(file));
    !block.is_empty() && file.windows(block.len()).any(|it| it == block)
}

/// The fenced blocks of a page.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, Block)> = None;
    for (line, text) in (1..).zip(text.lines()) {
        let trimmed = text.trim_start();
        let fence: String = trimmed.chars().take_while(|it| *it == '`').collect();
        match &mut open {
            None if fence.len() >= 3 => {
                let told = &trimmed[fence.len()..];
                let (language, attributes) = told.split_once(',').unwrap_or((told, ""));
                let block = Block {
                    line,
                    language: language.trim().to_owned(),
                    attributes: attributes.to_owned(),
                    text: String::new(),
                };
                open = Some((fence, block));
            }
            None => {}
            Some((opened, _)) if fence.len() >= opened.len() && trimmed == fence => {
                blocks.extend(open.take().map(|(_, block)| block));
            }
            Some((_, block)) => {
                block.text += text;
                block.text.push('\n');
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manual whose page docs/a.md has `block`, with `row` in the list of programs.
    #[track_caller]
    fn check(block: &str, row: &str, expect: &[&str]) {
        let list = format!("# Programs\n\n| page | begins | run by |\n|---|---|---|\n{row}\n");
        let files = [
            ("README.md", ""),
            ("docs/README.md", "- [A](a.md)\n- [Programs](programs.md)\n"),
            ("docs/a.md", block),
            (LIST, &list),
            (
                "crates/a/src/lib.rs",
                "#[cfg(doctest)]\n#[doc = include_str!(\"../../../docs/a.md\")]\nstruct A;\n",
            ),
            ("crates/a/tests/of_documents.rs", "run(\"docs/a.md\")"),
            ("crates/a/tests/of_others.rs", "run(\"docs/b.md\")"),
            ("crates/a/examples/x.rs", "fn main() {\n    let x = 1;\n    print(x);\n}\n"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        assert_eq!(complaints(&files), expect, "{block} {row}");
    }

    #[test]
    fn a_command_or_program_that_is_not_listed_is_told() {
        for language in ["sh", "rust", "python", "console", "xml"] {
            let told = "docs/a.md:1: `make it` is not in docs/programs.md: what runs it, or why does nothing?";
            check(&format!("```{language}\nmake it\n```"), "", &[told]);
        }
        check("```text\nfigure\n```", "", &[]);
        check("```text\n$ tsuji\n```", "", &["docs/a.md:1: a block with commands is `console`"]);
        let told = "docs/a.md:2: a block in \"\"; allowed: console, cpp, json, markdown, pycon, python, rust, sh, text, xml, yaml";
        check("x\n```\n$ tsuji\n```", "", &[told]);
    }

    #[test]
    fn what_is_listed_is_there() {
        let row = "| [A](a.md) | `make it` | not run: it takes an hour |";
        check("```sh\nmake it\n```", row, &[]);
        check("", row, &["docs/programs.md:5: docs/a.md has no such block: `make it`"]);
        let told = "docs/a.md:4: `make it (2)` is not in docs/programs.md: what runs it, or why does nothing?";
        check("```sh\nmake it\n```\n```sh\nmake it\n```", row, &[told]);
        let rows =
            format!("{row}\n| [A](a.md) | `make it (2)` | test `crates/a/tests/of_documents.rs` |");
        check("```sh\nmake it\n```\n```sh\nmake it\n```", &rows, &[]);
        check("```sh\na | b\n```", "| [A](a.md) | `a \\| b` | not run: it takes an hour |", &[]);
        check("```sh\na `b`\n```", "| [A](a.md) | `` a `b` `` | not run: it takes an hour |", &[]);
    }

    #[test]
    fn what_is_said_to_run_it_knows_it() {
        let of = |block: &str, run_by: &str, why: &[&str]| {
            let why: Vec<_> = why
                .iter()
                .map(|it| format!("docs/a.md:1: docs/programs.md says {run_by:?}, but {it}"))
                .collect();
            let why: Vec<_> = why.iter().map(String::as_str).collect();
            let first = block.lines().nth(1).unwrap().trim().to_owned();
            check(block, &format!("| [A](a.md) | `{first}` | {run_by} |"), &why);
        };
        of("```sh\nls\n```", "test `crates/a/tests/of_documents.rs`", &[]);
        of(
            "```sh\nls\n```",
            "test `crates/a/tests/of_others.rs`",
            &["crates/a/tests/of_others.rs does not name docs/a.md"],
        );
        of("```sh\nls\n```", "test `gone.rs`", &["there is no gone.rs"]);
        of("```sh\nls\n```", "in `docs/a.md`", &["a document runs nothing"]);
        of("```rust\nlet x = 1;\nprint(x);\n```", "in `crates/a/examples/x.rs`", &[]);
        of(
            "```rust\nlet x = 2;\n```",
            "in `crates/a/examples/x.rs`",
            &["crates/a/examples/x.rs does not have these lines"],
        );
        of("```rust\nlet x = 1;\n```", "doctest", &[]);
        of("```rust,ignore\nlet x = 1;\n```", "doctest", &["no documentation test takes it"]);
        of("```python\nx = 1\n```", "doctest", &["no documentation test takes it"]);
        of("```sh\nls\n```", "not run: ", &["a reason is `not run: …`"]);
        of(
            "```sh\nls\n```",
            "somebody",
            &["allowed: test FILE, in FILE, doctest, not run: REASON"],
        );
    }

    #[test]
    fn blocks_are_found_where_they_are_indented_and_nested() {
        let text = "- x\n\n  ```sh\n  a\n  ```\n````markdown\n```sh\nb\n```\n````\n";
        let found: Vec<_> =
            blocks(text).into_iter().map(|it| (it.line, it.language, it.text)).collect();
        let expected = [(3, "sh", "  a\n"), (6, "markdown", "```sh\nb\n```\n")];
        assert_eq!(
            found,
            expected.map(|(line, language, text)| (line, language.to_owned(), text.to_owned()))
        );
    }
}
