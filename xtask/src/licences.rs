use std::fs;
use std::path::Path;

use crate::metadata::{self, Package};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Where tsuji runs; what is only needed elsewhere is neither downloaded nor judged.
const TARGETS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Every dependency of the workspace in this folder of the repository whose licence `deny.toml` does not
/// allow or that does not come from crates.io.
pub(crate) fn complaints(root: &Path, folder: &str) -> Result<Vec<String>, String> {
    let deny = fs::read_to_string(root.join("deny.toml"))
        .map_err(|error| format!("deny.toml: {error}"))?;
    let (allowed, exceptions) = (allowed(&deny)?, exceptions(&deny, folder));
    let mut arguments = vec!["--locked"];
    arguments.extend(TARGETS.iter().flat_map(|target| ["--filter-platform", target]));
    let packages = metadata::packages(&root.join(folder), &arguments)?;
    let complaints = |package: &Package| {
        let excepted = exceptions.iter().filter(|(name, _)| *name == package.name);
        let excepted = excepted.map(|(_, licence)| licence.clone());
        judge(package, &allowed.iter().cloned().chain(excepted).collect::<Vec<_>>())
    };
    Ok(packages.iter().flat_map(complaints).collect())
}

/// What `deny.toml` excepts for the workspace in this folder alone, as packages and licences, in comments of the form
/// `# except in FOLDER: PACKAGE LICENCE`. To cargo-deny, which judges the root's workspace, they mean nothing.
fn exceptions(deny: &str, folder: &str) -> Vec<(String, String)> {
    let start = format!("# except in {folder}: ");
    let lines = deny.lines().filter_map(|line| line.strip_prefix(&start)?.split_once(' '));
    lines.map(|(name, licence)| (name.to_owned(), licence.trim().to_owned())).collect()
}

fn judge(package: &Package, allowed: &[String]) -> Vec<String> {
    let named = format!("{} {}", package.name, package.version);
    let mut complaints = Vec::new();
    if let Some(source) = package.source.as_deref().filter(|it| *it != CRATES_IO) {
        complaints.push(format!("{named} comes from {source}; only crates.io is allowed"));
    }
    match package.licence.as_deref() {
        None => complaints.push(format!("{named} states no licence")),
        Some(licence) => match satisfied(licence, allowed) {
            Ok(true) => (),
            Ok(false) => complaints.push(format!(
                "{named} is under `{licence}`; deny.toml allows {}",
                allowed.join(", ")
            )),
            Err(error) => complaints.push(format!("{named}: licence `{licence}`: {error}")),
        },
    }
    complaints
}

/// The list `allow` of the table `[licenses]`, written one quoted word after the other.
fn allowed(deny: &str) -> Result<Vec<String>, String> {
    let table = deny.split_once("[licenses]").ok_or("deny.toml has no table [licenses]")?.1;
    let list = table.split_once("allow = [").ok_or("deny.toml: [licenses] has no list `allow`")?.1;
    let list = list.split_once(']').ok_or("deny.toml: the list `allow` does not end")?.0;
    Ok(list.split('"').skip(1).step_by(2).map(str::to_owned).collect())
}

/// Whether one arm of an SPDX expression is allowed; the old `MIT/Apache-2.0` means OR.
fn satisfied(expression: &str, allowed: &[String]) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let satisfied = parser.either()?;
    match parser.words {
        [] => Ok(satisfied),
        [word, ..] => Err(format!("unexpected `{word}`")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl Parser<'_> {
    fn either(&mut self) -> Result<bool, String> {
        let mut satisfied = self.both()?;
        while self.eat("OR") {
            satisfied |= self.both()?;
        }
        Ok(satisfied)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut satisfied = self.term()?;
        while self.eat("AND") {
            satisfied &= self.term()?;
        }
        Ok(satisfied)
    }

    fn term(&mut self) -> Result<bool, String> {
        if self.eat("(") {
            let satisfied = self.either()?;
            return if self.eat(")") { Ok(satisfied) } else { Err("`(` is not closed".to_owned()) };
        }
        let mut licence = self.next()?.to_owned();
        if self.eat("WITH") {
            licence = format!("{licence} WITH {}", self.next()?);
        }
        Ok(self.allowed.contains(&licence))
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn next(&mut self) -> Result<&str, String> {
        let [word, rest @ ..] = self.words else { return Err("ends too early".to_owned()) };
        self.words = rest;
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expect: Result<bool, &str>) {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        let found = satisfied(expression, &allowed.map(str::to_owned));
        assert_eq!(found, expect.map_err(str::to_owned), "{expression}");
    }

    #[test]
    fn one_allowed_arm_is_enough() {
        check("MIT", Ok(true));
        check("EPL-2.0 OR Apache-2.0", Ok(true));
        check("MIT/Apache-2.0", Ok(true));
        check("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", Ok(true));
        check("(MIT OR Apache-2.0) AND Unicode-3.0", Ok(true));
    }

    #[test]
    fn what_is_not_allowed_is_refused() {
        check("EPL-2.0", Ok(false));
        check("MIT AND EPL-2.0", Ok(false));
        check("MIT WITH Bison-exception-2.2", Ok(false));
        check("(MIT OR Apache-2.0) AND GPL-2.0-only", Ok(false));
        check("EPL-2.0 OR MIT AND GPL-2.0-only", Ok(false));
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        check("", Err("ends too early"));
        check("MIT OR", Err("ends too early"));
        check("(MIT", Err("`(` is not closed"));
        check("MIT Apache-2.0", Err("unexpected `Apache-2.0`"));
    }

    #[test]
    fn the_list_is_read_from_the_table_of_licences() {
        let deny =
            "[bans]\nallow = [\"x\"]\n[licenses]\nallow = [\n  \"MIT\", # why\n  \"ISC\",\n]\n";
        assert_eq!(allowed(deny), Ok(vec!["MIT".to_owned(), "ISC".to_owned()]));
        assert!(allowed("[bans]").is_err());
    }

    #[test]
    fn an_exception_is_for_one_workspace() {
        let deny = "# except in engines/x: odd MPL-2.0\n[licenses]\nallow = [\"MIT\"]\n";
        let expect = [("odd".to_owned(), "MPL-2.0".to_owned())];
        assert_eq!(exceptions(deny, "engines/x"), expect);
        assert_eq!(exceptions(deny, "."), []);
    }

    #[test]
    fn another_source_and_no_licence_are_two_complaints() {
        let package = Package {
            name: "odd".to_owned(),
            source: Some("git+https://example.org/odd".to_owned()),
            ..Package::default()
        };
        assert_eq!(judge(&package, &[]).len(), 2);
    }
}
