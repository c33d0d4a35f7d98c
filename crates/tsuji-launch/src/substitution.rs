//! `$(…)` in the values of a launch file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::World;

/// The most bytes of a value after substitution: an argument of a process has room for twice as many.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// The deepest nesting of substitutions in each other.
const DEPTH_MAX: usize = 16;

/// What `$(…)` may begin with.
const WORDS: &[&str] = &[
    "and",
    "anon",
    "dirname",
    "env",
    "equals",
    "exec-in-pkg",
    "filename",
    "find-pkg-prefix",
    "find-pkg-share",
    "not",
    "not-equals",
    "or",
    "var",
];

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As it is written.
    Text(String),
    /// What a substitution gave.
    Value(String),
}

/// What is wrong with a value: from which byte on, which word, why, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) at: usize,
    pub(crate) word: String,
    pub(crate) problem: String,
    pub(crate) allowed: Vec<String>,
}

/// What values are substituted from.
pub(crate) struct Source<'a, W: World + ?Sized> {
    pub(crate) world: &'a W,
    pub(crate) variables: &'a BTreeMap<String, String>,
    pub(crate) env: &'a BTreeMap<String, Option<String>>,
    pub(crate) file: &'a Path,
    /// Made once for a launch.
    pub(crate) token: &'a str,
}

/// The parts of `text`. `\$` is a dollar sign.
pub(crate) fn pieces<W: World + ?Sized>(
    text: &str,
    source: &Source<'_, W>,
) -> Result<Vec<Piece>, Problem> {
    let mut reader = Reader { text, at: 0, source };
    let mut pieces = Vec::new();
    let mut plain = String::new();
    while let Some(rest) = text.get(reader.at..).filter(|it| !it.is_empty()) {
        if rest.starts_with("$(") {
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Value(reader.substitution(1)?));
        } else {
            plain.extend(reader.letter());
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    let bytes: usize = pieces
        .iter()
        .map(|it| match it {
            Piece::Text(it) | Piece::Value(it) => it.len(),
        })
        .sum();
    if VALUE_BYTES_MAX < bytes {
        return Err(too_long(0, bytes));
    }
    Ok(pieces)
}

/// The parts as one text.
pub(crate) fn joined(pieces: &[Piece]) -> String {
    let each = pieces.iter().map(|it| match it {
        Piece::Text(it) | Piece::Value(it) => it.as_str(),
    });
    each.collect()
}

fn too_long(at: usize, bytes: usize) -> Problem {
    let problem = format!("bytes are too many for a value; it has at most {VALUE_BYTES_MAX}");
    Problem { at, word: bytes.to_string(), problem, allowed: Vec::new() }
}

struct Reader<'a, W: World + ?Sized> {
    text: &'a str,
    at: usize,
    source: &'a Source<'a, W>,
}

impl<W: World + ?Sized> Reader<'_, W> {
    /// The next letter, without the backslash before a dollar sign.
    fn letter(&mut self) -> Option<char> {
        let rest = self.text.get(self.at..)?;
        let skipped = usize::from(rest.starts_with("\\$"));
        let letter = rest[skipped..].chars().next()?;
        self.at += skipped + letter.len_utf8();
        Some(letter)
    }

    /// Reads from `$(` to its `)`.
    fn substitution(&mut self, depth: usize) -> Result<String, Problem> {
        let began = self.at;
        let refuse = |word: &str, problem: &str| {
            let (word, problem) = (word.to_owned(), problem.to_owned());
            Err(Problem { at: began, word, problem, allowed: Vec::new() })
        };
        if DEPTH_MAX < depth {
            return refuse("$(", &format!("is nested too deep; the most is {DEPTH_MAX} levels"));
        }
        self.at += 2;
        let mut words: Vec<String> = Vec::new();
        let mut word: Option<String> = None;
        let mut quote: Option<char> = None;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            if rest.starts_with("$(") {
                let value = self.substitution(depth + 1)?;
                word.get_or_insert_default().push_str(&value);
                continue;
            }
            let is_escaped = rest.starts_with('\\');
            let Some(letter) = self.letter() else {
                return refuse("$(", "is not closed; its ')' is missing");
            };
            match (letter, quote) {
                (_, Some(open)) if letter == open => quote = None,
                (_, Some(_)) => word.get_or_insert_default().push(letter),
                ('\'' | '"', None) => {
                    quote = Some(letter);
                    word.get_or_insert_default();
                }
                (')', None) => break,
                (_, None) if letter.is_whitespace() && !is_escaped => words.extend(word.take()),
                (_, None) => word.get_or_insert_default().push(letter),
            }
            if word.as_ref().is_some_and(|it| VALUE_BYTES_MAX < it.len()) {
                return Err(too_long(began, VALUE_BYTES_MAX + 1));
            }
        }
        words.extend(word);
        let Some((name, arguments)) = words.split_first() else {
            return refuse("$()", "says nothing");
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let value = self.apply(began, name, &arguments)?;
        if VALUE_BYTES_MAX < value.len() {
            return Err(too_long(began, value.len()));
        }
        Ok(value)
    }

    fn apply(&self, at: usize, name: &str, arguments: &[&str]) -> Result<String, Problem> {
        let source = self.source;
        let refuse = |word: &str, problem: String, allowed: Vec<String>| {
            Err(Problem { at, word: word.to_owned(), problem, allowed })
        };
        let flag = |word: &str| {
            truth(word).ok_or_else(|| Problem {
                at,
                word: word.to_owned(),
                problem: "is not a truth value".to_owned(),
                allowed: TRUTHS.map(str::to_owned).to_vec(),
            })
        };
        let folder = || source.file.parent().unwrap_or_else(|| Path::new(""));
        Ok(match (name, arguments) {
            ("var", [name, default @ ..]) if default.len() < 2 => {
                match source
                    .variables
                    .get(*name)
                    .map(String::as_str)
                    .or_else(|| default.first().copied())
                {
                    Some(value) => value.to_owned(),
                    None => {
                        let allowed = source.variables.keys().cloned().collect();
                        let problem = "is not an argument or variable that is known here";
                        return refuse(name, problem.to_owned(), allowed);
                    }
                }
            }
            ("env", [name, default @ ..]) if default.len() < 2 => {
                let value = variable(source.world, source.env, name);
                match value.or_else(|| default.first().map(|it| (*it).to_owned())) {
                    Some(value) => value,
                    None => {
                        let problem = "is not set in the environment, and no default is given";
                        return refuse(name, problem.to_owned(), Vec::new());
                    }
                }
            }
            ("find-pkg-prefix", [package]) => self.prefix(at, package)?.display().to_string(),
            ("find-pkg-share", [package]) => {
                self.prefix(at, package)?.join("share").join(package).display().to_string()
            }
            ("exec-in-pkg", [executable, package]) => {
                let lib = self.prefix(at, package)?.join("lib").join(package);
                lib.join(executable).display().to_string()
            }
            ("dirname", []) => folder().display().to_string(),
            ("filename", []) => source.file.display().to_string(),
            ("anon", [name]) => format!("{name}_{}", source.token),
            ("not", [a]) => (!flag(a)?).to_string(),
            ("and", [a, b]) => (flag(a)? & flag(b)?).to_string(),
            ("or", [a, b]) => (flag(a)? | flag(b)?).to_string(),
            ("equals", [a, b]) => (a == b).to_string(),
            ("not-equals", [a, b]) => (a != b).to_string(),
            _ if WORDS.contains(&name) => {
                let problem = format!("does not have {} words after it", arguments.len());
                return refuse(name, problem, Vec::new());
            }
            _ => {
                let problem = "is not a substitution; what runs programs is not one here";
                return refuse(
                    name,
                    problem.to_owned(),
                    WORDS.iter().map(|it| (*it).to_owned()).collect(),
                );
            }
        })
    }

    fn prefix(&self, at: usize, package: &str) -> Result<PathBuf, Problem> {
        package_prefix(self.source.world, self.source.env, package).map_err(|problem| Problem {
            at,
            word: package.to_owned(),
            problem,
            allowed: Vec::new(),
        })
    }
}

/// The words of truth values.
pub(crate) const TRUTHS: [&str; 4] = ["true", "false", "1", "0"];

/// What a truth value says.
pub(crate) fn truth(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// A variable as a process that is started now would have it.
pub(crate) fn variable<W: World + ?Sized>(
    world: &W,
    env: &BTreeMap<String, Option<String>>,
    name: &str,
) -> Option<String> {
    env.get(name).cloned().unwrap_or_else(|| world.variable(name))
}

/// Where a package is installed, or why that is not known.
pub(crate) fn package_prefix<W: World + ?Sized>(
    world: &W,
    env: &BTreeMap<String, Option<String>>,
    package: &str,
) -> Result<PathBuf, String> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if package.is_empty() || !package.chars().all(is_name) {
        return Err("is not a package's name; it has letters, digits, '_' and '-'".to_owned());
    }
    let prefixes = variable(world, env, "AMENT_PREFIX_PATH").unwrap_or_default();
    let index = Path::new("share/ament_index/resource_index/packages").join(package);
    let mut all = prefixes.split(':').filter(|it| !it.is_empty()).map(Path::new);
    let found = all.find(|prefix| world.is_file(&prefix.join(&index)));
    found.map(Path::to_path_buf).ok_or_else(|| match prefixes.as_str() {
        "" => "is a package, but AMENT_PREFIX_PATH is not set, so none is known".to_owned(),
        _ => format!("is not a package of AMENT_PREFIX_PATH, which is {prefixes}"),
    })
}
