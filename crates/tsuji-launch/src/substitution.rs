//! `$(…)` in the values of a launch file: what it may say, and what becomes of it.
//!
//! A value is parsed by the grammar of ROS 2's launch, in which `\x` is `x`, a `$` behind a backslash begins nothing, one
//! space stands between the words of a substitution, and a word may stand in quotes as a whole.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tsuji_msg::yaml::{self, Word, python_float};
use tsuji_xml::spelling::distance;

use crate::World;
use crate::read::Inherited;

/// The most bytes of a value after substitution: an argument of a process has room for twice as many.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// The deepest nesting of substitutions in each other.
const DEPTH_MAX: usize = 16;

/// The most words of a substitution.
const WORDS_MAX: usize = 1000;

/// What `$(…)` may begin with, and how many words may follow.
const SUBSTITUTIONS: &[(&str, RangeInclusive<usize>)] = &[
    ("all", 0..=WORDS_MAX),
    ("and", 2..=2),
    ("anon", 1..=1),
    ("any", 0..=WORDS_MAX),
    ("dirname", 0..=0),
    ("env", 1..=2),
    ("equals", 2..=2),
    ("exec-in-pkg", 2..=2),
    ("file-content", 1..=1),
    ("filename", 0..=0),
    ("find-exec", 1..=1),
    ("find-pkg-prefix", 1..=1),
    ("find-pkg-share", 1..=1),
    ("if", 2..=3),
    ("launch_log_dir", 0..=0),
    ("log_dir", 0..=0),
    ("not", 1..=1),
    ("not-equals", 2..=2),
    ("or", 2..=2),
    ("param", 1..=2),
    ("var", 1..=2),
];

/// What other launch systems have in its place, and why it is not here or what to write.
const ELSEWHERE: &[(&str, &str)] = &[
    ("arg", "is of ROS 1; it is $(var NAME) in ROS 2"),
    (
        "command",
        "runs a program, and a plan is made without anything being run; give its output as an argument",
    ),
    (
        "eval",
        "runs Python, which is not here; $(if …), $(equals …), $(and …), $(or …) and $(not …) are",
    ),
    ("find", "is of ROS 1; it is $(find-pkg-share PACKAGE) in ROS 2"),
    ("optenv", "is of ROS 1; it is $(env NAME DEFAULT) in ROS 2"),
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

impl Problem {
    fn new(at: usize, word: &str, problem: impl Into<String>) -> Self {
        Self { at, word: word.to_owned(), problem: problem.into(), allowed: Vec::new() }
    }
}

/// What values are substituted from.
pub(crate) struct Source<'a, W: World + ?Sized> {
    pub(crate) world: &'a W,
    pub(crate) variables: &'a BTreeMap<String, String>,
    pub(crate) env: &'a BTreeMap<String, Option<String>>,
    /// Set for all nodes, for `$(param name)`.
    pub(crate) parameters: &'a [Inherited],
    pub(crate) file: &'a Path,
    /// Made once for a launch.
    pub(crate) token: &'a str,
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Substitution(Substitution),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Substitution {
    at: usize,
    name: &'static str,
    /// The words behind the name; one of `''` has no parts.
    words: Vec<Vec<Part>>,
}

/// The parts of `text`, with its substitutions made.
pub(crate) fn pieces<W: World + ?Sized>(
    text: &str,
    source: &Source<'_, W>,
) -> Result<Vec<Piece>, Problem> {
    let parts = parse(text)?;
    let mut pieces = Vec::with_capacity(parts.len());
    let mut bytes = 0;
    for part in &parts {
        let piece = match part {
            Part::Text(text) => Piece::Text(text.clone()),
            Part::Substitution(substitution) => Piece::Value(source.perform(substitution)?),
        };
        let (Piece::Text(it) | Piece::Value(it)) = &piece;
        bytes += it.len();
        if VALUE_BYTES_MAX < bytes {
            return Err(too_long(0, bytes));
        }
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Whether a text has a substitution, if it can be read.
pub(crate) fn has_substitution(text: &str) -> bool {
    parse(text).map_or(true, |parts| parts.iter().any(|it| matches!(it, Part::Substitution(_))))
}

/// The parts as one text.
pub(crate) fn joined(pieces: &[Piece]) -> String {
    let each = pieces.iter().map(|it| match it {
        Piece::Text(it) | Piece::Value(it) => it.as_str(),
    });
    each.collect()
}

/// A text in which each `\x` is `x`.
pub(crate) fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // The grammar's "any letter" is not a line break.
            '\\' if letters.peek().is_some_and(|it| *it != '\n') => plain.extend(letters.next()),
            _ => plain.push(letter),
        }
    }
    plain
}

fn too_long(at: usize, bytes: usize) -> Problem {
    let problem = format!("bytes are too many for a value; it has at most {VALUE_BYTES_MAX}");
    Problem::new(at, &bytes.to_string(), problem)
}

fn parse(text: &str) -> Result<Vec<Part>, Problem> {
    if VALUE_BYTES_MAX < text.len() {
        return Err(too_long(0, text.len()));
    }
    let mut reader = Reader { text, at: 0 };
    reader.template(None, 0)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_behind_backslash(&self) -> bool {
        self.text.get(..self.at).is_some_and(|it| it.ends_with('\\'))
    }

    fn is_at_substitution(&self) -> bool {
        self.rest().starts_with("$(") && !self.is_behind_backslash()
    }

    /// Reads to the end, or to the quote that closes what is read.
    fn template(&mut self, quote: Option<char>, depth: usize) -> Result<Vec<Part>, Problem> {
        let began = self.at;
        let mut parts = Vec::new();
        let mut start = self.at;
        let mut is_escaped = false;
        while let Some(letter) = self.rest().chars().next() {
            if self.is_at_substitution() {
                let end = self.at;
                let substitution = self.substitution(quote, depth + 1)?;
                if start < end {
                    parts.push(Part::Text(unescaped(&self.text[start..end])));
                }
                parts.push(Part::Substitution(substitution));
                start = self.at;
                is_escaped = false;
                continue;
            }
            if !is_escaped && quote == Some(letter) {
                if start < self.at {
                    parts.push(Part::Text(unescaped(&self.text[start..self.at])));
                }
                self.at += letter.len_utf8();
                return Ok(parts);
            }
            is_escaped = letter == '\\' && !is_escaped;
            self.at += letter.len_utf8();
        }
        match quote {
            Some(quote) => {
                let problem = "is a quote that is not closed";
                Err(Problem::new(began.saturating_sub(1), &quote.to_string(), problem))
            }
            None => {
                if start < self.at {
                    parts.push(Part::Text(unescaped(&self.text[start..self.at])));
                }
                Ok(parts)
            }
        }
    }

    /// Reads from `$(` to its `)`. Within quotes other quotes are letters.
    fn substitution(&mut self, quote: Option<char>, depth: usize) -> Result<Substitution, Problem> {
        let at = self.at;
        if DEPTH_MAX < depth {
            let problem = format!("is nested too deep; the most is {DEPTH_MAX} levels");
            return Err(Problem::new(at, "$(", problem));
        }
        self.at += 2;
        let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        let rest = self.rest();
        let end = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        if !name.starts_with(|it: char| it.is_ascii_alphabetic()) {
            return Err(match rest.chars().next() {
                None => unclosed(at),
                Some(')') => Problem::new(at, "$()", "says nothing"),
                Some(_) => Problem::new(at, "$(", "is not followed by the name of a substitution"),
            });
        }
        self.at += end;
        let mut words = Vec::new();
        loop {
            match self.rest().chars().next() {
                Some(')') => {
                    self.at += 1;
                    break;
                }
                Some(' ') => self.at += 1,
                None => return Err(unclosed(at)),
                Some(other) => {
                    let problem =
                        "has no place there; a space or ')' has, or a backslash before it";
                    return Err(Problem::new(self.at, &other.to_string(), problem));
                }
            }
            if WORDS_MAX <= words.len() {
                let problem = format!("has too many words; the most is {WORDS_MAX}");
                return Err(Problem::new(at, &name, problem));
            }
            words.push(self.word(quote, depth, at)?);
        }
        let Some((name, allowed)) = SUBSTITUTIONS.iter().find(|(it, _)| *it == name) else {
            return Err(unknown(at, &name));
        };
        if !allowed.contains(&words.len()) {
            let most = *allowed.end();
            let said = match *allowed.start() {
                0 if most == 0 => "none".to_owned(),
                least if least == most => least.to_string(),
                least => format!("{least} or {most}"),
            };
            let problem = format!("has {} words after it, and takes {said}", words.len());
            return Err(Problem::new(at, name, problem));
        }
        Ok(Substitution { at, name, words })
    }

    /// A word of a substitution that begins at `at`.
    fn word(&mut self, quote: Option<char>, depth: usize, at: usize) -> Result<Vec<Part>, Problem> {
        let first = self.rest().chars().next();
        if let (None, Some(open @ ('\'' | '"'))) = (quote, first) {
            self.at += 1;
            return self.template(Some(open), depth);
        }
        let mut parts = Vec::new();
        let mut start = self.at;
        loop {
            let Some(letter) = self.rest().chars().next() else { return Err(unclosed(at)) };
            let is_behind_backslash = start < self.at && self.is_behind_backslash();
            if self.is_at_substitution() {
                if start < self.at {
                    parts.push(Part::Text(unescaped(&self.text[start..self.at])));
                }
                parts.push(Part::Substitution(self.substitution(quote, depth + 1)?));
                start = self.at;
                continue;
            }
            // An open quote ends here only if the whole does, which the caller then sees.
            let is_quote = quote.map_or(matches!(letter, '\'' | '"'), |it| it == letter);
            let ends = match letter {
                ' ' => true,
                '(' | ')' => !is_behind_backslash,
                _ => is_quote && !is_behind_backslash,
            };
            if ends {
                break;
            }
            self.at += letter.len_utf8();
        }
        if start < self.at {
            parts.push(Part::Text(unescaped(&self.text[start..self.at])));
        }
        match parts.is_empty() {
            false => Ok(parts),
            true => {
                let word = self.rest().chars().next().unwrap_or(' ').to_string();
                let problem =
                    "stands where a word does; one space is between words, and '' is an empty one";
                Err(Problem::new(self.at, &word, problem))
            }
        }
    }
}

fn unclosed(at: usize) -> Problem {
    Problem::new(at, "$(", "is not closed; its ')' is missing")
}

fn unknown(at: usize, name: &str) -> Problem {
    if let Some((_, why)) = ELSEWHERE.iter().find(|(it, _)| *it == name) {
        return Problem::new(at, name, *why);
    }
    let allowed = SUBSTITUTIONS.iter().map(|(it, _)| (*it).to_owned()).collect();
    Problem { allowed, ..Problem::new(at, name, "is not a substitution that is here") }
}

impl<W: World + ?Sized> Source<'_, W> {
    fn perform(&self, substitution: &Substitution) -> Result<String, Problem> {
        let Substitution { at, name, words } = substitution;
        let at = *at;
        let refuse = |word: &str, problem: &str| Err(Problem::new(at, word, problem));
        let value = match (*name, &words[..]) {
            ("var", [name, default @ ..]) => {
                let name = self.text(at, name)?;
                match (self.variables.get(&name), default) {
                    (Some(value), _) => value.clone(),
                    (None, [default]) => self.text(at, default)?,
                    (None, _) => {
                        let allowed = self.variables.keys().cloned().collect();
                        let problem = "is not an argument or variable that is known here";
                        return Err(Problem { allowed, ..Problem::new(at, &name, problem) });
                    }
                }
            }
            ("env", [name, default @ ..]) => {
                // Its default is made even where it is not needed, as there.
                let default = default.first().map(|it| self.text(at, it)).transpose()?;
                let name = self.text(at, name)?;
                match (variable(self.world, self.env, &name).map(OsString::into_string), default) {
                    (Some(Ok(value)), _) => value,
                    (Some(Err(_)), _) => return refuse(&name, NOT_UTF_8),
                    (None, Some(default)) => default,
                    (None, None) => {
                        let problem = "is not set in the environment, and no default is given";
                        return refuse(&name, problem);
                    }
                }
            }
            ("param", [name, default @ ..]) => {
                let name = self.text(at, name)?;
                let mut all = self.parameters.iter();
                let set = all.find_map(|it| match it {
                    Inherited::Value(of, value, _) if *of == name => Some(value),
                    _ => None,
                });
                match (set, default) {
                    (Some(value), _) => value.python_text(),
                    (None, [default]) => self.text(at, default)?,
                    (None, _) => {
                        let problem = "is not a parameter that set_parameter has set here, and no default is given";
                        return refuse(&name, problem);
                    }
                }
            }
            ("find-pkg-prefix", [package]) => {
                let package = self.text(at, package)?;
                self.prefix(at, &package)?.display().to_string()
            }
            ("find-pkg-share", [package]) => {
                let package = self.text(at, package)?;
                let share = self.prefix(at, &package)?.join("share").join(package);
                share.display().to_string()
            }
            ("exec-in-pkg", [executable, package]) => {
                let (executable, package) = (self.text(at, executable)?, self.text(at, package)?);
                let lib = self.prefix(at, &package)?.join("lib").join(package);
                let program = lib.join(&executable);
                if executable.contains('/') || !self.world.is_executable(&program) {
                    let problem = format!("is not an executable in {}", lib.display());
                    return refuse(&executable, &problem);
                }
                program.display().to_string()
            }
            ("find-exec", [name]) => {
                let name = self.text(at, name)?;
                match in_path(self.world, self.env, &name) {
                    Some(path) => path.display().to_string(),
                    None => return refuse(&name, "is not an executable in PATH"),
                }
            }
            ("file-content", [path]) => {
                let path = self.text(at, path)?;
                let bytes = self.world.read(Path::new(&path));
                let bytes = bytes.map_err(|why| {
                    Problem::new(at, &path, format!("is a file that cannot be read: {why}"))
                })?;
                match String::from_utf8(bytes) {
                    // As a text file is read in Python.
                    Ok(text) => text.replace("\r\n", "\n"),
                    Err(_) => return refuse(&path, "is a file that is not UTF-8"),
                }
            }
            ("dirname", _) => {
                self.file.parent().unwrap_or_else(|| Path::new("")).display().to_string()
            }
            ("filename", _) => self.file.display().to_string(),
            ("log_dir" | "launch_log_dir", _) => match self.world.log_folder() {
                Ok(folder) => folder.display().to_string(),
                Err(why) => return refuse(name, &format!("is not known: {why}")),
            },
            ("anon", [name]) => {
                let name = format!("{}_{}", self.text(at, name)?, self.token);
                name.replace(['.', '-', ':'], "_")
            }
            ("not", [a]) => (!self.truth(at, a)?).to_string(),
            ("and", [a, b]) => (self.truth(at, a)? & self.truth(at, b)?).to_string(),
            ("or", [a, b]) => (self.truth(at, a)? | self.truth(at, b)?).to_string(),
            ("any" | "all", words) => {
                let truths = words.iter().map(|it| self.truth(at, it));
                let truths = truths.collect::<Result<Vec<bool>, _>>()?;
                match *name {
                    "any" => truths.contains(&true),
                    _ => !truths.contains(&false),
                }
                .to_string()
            }
            ("equals" | "not-equals", [a, b]) => {
                if a.is_empty() != b.is_empty() {
                    let problem = "is empty, which ROS 2 compares as the text [], so that nothing empty equals it; \
                                   compare with a variable that is empty";
                    return refuse("''", problem);
                }
                let is_equal = equals(&self.text(at, a)?, &self.text(at, b)?);
                (is_equal == (*name == "equals")).to_string()
            }
            ("if", [condition, then, otherwise @ ..]) => {
                match (self.truth(at, condition)?, otherwise) {
                    (true, _) => self.text(at, then)?,
                    (false, [otherwise]) => self.text(at, otherwise)?,
                    (false, _) => String::new(),
                }
            }
            // The number of words was counted when it was read.
            _ => return Err(unknown(at, name)),
        };
        match value.len() <= VALUE_BYTES_MAX {
            true => Ok(value),
            false => Err(too_long(at, value.len())),
        }
    }

    fn text(&self, at: usize, word: &[Part]) -> Result<String, Problem> {
        let mut all = String::new();
        for part in word {
            match part {
                Part::Text(text) => all.push_str(text),
                Part::Substitution(substitution) => all.push_str(&self.perform(substitution)?),
            }
            if VALUE_BYTES_MAX < all.len() {
                return Err(too_long(at, all.len()));
            }
        }
        Ok(all)
    }

    fn truth(&self, at: usize, word: &[Part]) -> Result<bool, Problem> {
        let text = self.text(at, word)?;
        yaml_truth(&text).ok_or_else(|| {
            let allowed = YAML_TRUTHS.map(str::to_owned).to_vec();
            Problem { allowed, ..Problem::new(at, &text, "is not a truth value") }
        })
    }

    fn prefix(&self, at: usize, package: &str) -> Result<PathBuf, Problem> {
        package_prefix(self.world, self.env, package)
            .map_err(|problem| Problem::new(at, package, problem))
    }
}

/// Whether two texts say the same, truth values and numbers by their value.
fn equals(a: &str, b: &str) -> bool {
    if let (Some(a), Some(b)) = (truth_word(a), truth_word(b)) {
        return a == b;
    }
    match (python_float(a), python_float(b)) {
        (Some(a), Some(b)) if a.is_finite() && b.is_finite() => {
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// The words of conditions.
pub(crate) const TRUTHS: [&str; 4] = ["true", "false", "1", "0"];

/// What the word of an `if` or `unless` says.
pub(crate) fn truth(word: &str) -> Option<bool> {
    truth_word(word.trim())
}

fn truth_word(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// The words of truth values everywhere else; `True`, `TRUE` and the like too.
pub(crate) const YAML_TRUTHS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "1", "0"];

/// What a truth value says that is not a condition's: 1 and 0, and the words of YAML 1.1.
pub(crate) fn yaml_truth(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ => match Word::of(&yaml::parse_with_tags(text).ok()?)? {
            Word::Bool(value) => Some(value),
            _ => None,
        },
    }
}

/// A variable as a process that is started now would have it.
pub(crate) fn variable<W: World + ?Sized>(
    world: &W,
    env: &BTreeMap<String, Option<String>>,
    name: &str,
) -> Option<OsString> {
    match env.get(name) {
        Some(set) => set.clone().map(OsString::from),
        None => world.variable(name),
    }
}

/// What keeps a variable of the environment from being part of a text.
pub(crate) const NOT_UTF_8: &str = "is not UTF-8 in the environment";

/// The folders that a variable names, with colons between them.
fn folders<W: World + ?Sized>(
    world: &W,
    env: &BTreeMap<String, Option<String>>,
    name: &str,
) -> Vec<PathBuf> {
    let path = variable(world, env, name).unwrap_or_default();
    std::env::split_paths(&path).filter(|it| !it.as_os_str().is_empty()).collect()
}

/// An executable by its path, or the first of its name in `PATH`.
pub(crate) fn in_path<W: World + ?Sized>(
    world: &W,
    env: &BTreeMap<String, Option<String>>,
    name: &str,
) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|it| world.is_executable(it));
    }
    if name.is_empty() {
        return None;
    }
    let folders = folders(world, env, "PATH").into_iter();
    folders.map(|it| it.join(name)).find(|it| world.is_executable(it))
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
    let prefixes = folders(world, env, "AMENT_PREFIX_PATH");
    let index = Path::new(PACKAGES).join(package);
    if let Some(found) = prefixes.iter().find(|prefix| world.is_file(&prefix.join(&index))) {
        return Ok(found.clone());
    }
    if prefixes.is_empty() {
        return Err("is a package, but AMENT_PREFIX_PATH is not set, so none is known".to_owned());
    }
    let names = prefixes.iter().flat_map(|prefix| world.files(&prefix.join(PACKAGES)));
    let near = nearest(package, names);
    let prefixes: Vec<String> = prefixes.iter().map(|it| it.display().to_string()).collect();
    Err(format!("is not a package of AMENT_PREFIX_PATH, which is {}{near}", prefixes.join(":")))
}

/// Where a prefix has a file for each of its packages.
const PACKAGES: &str = "share/ament_index/resource_index/packages";

/// `; did you mean …?`, or nothing where no name is near.
fn nearest(word: &str, names: impl Iterator<Item = String>) -> String {
    let mut near: Vec<(usize, String)> = names
        .map(|it| (distance(word, &it), it))
        .filter(|(distance, _)| *distance <= word.chars().count().div_ceil(3).min(3))
        .collect();
    near.sort();
    near.dedup();
    let names: Vec<String> = near.into_iter().take(3).map(|(_, name)| name).collect();
    let names: Vec<String> = names.iter().map(|it| format!("{it:?}")).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_as_launch_compares_them() {
        // Recorded from EqualsSubstitution of ROS 2 Jazzy.
        for (a, b, expect) in [
            ("True", "true", true),
            ("True", "1", true),
            ("0", "FALSE", true),
            ("1", "false", false),
            ("0.10", "0.1", true),
            ("1", "1.0", true),
            ("1.0", "true", false),
            ("on", "true", false),
            ("yes", "True", false),
            ("1e3", "1000", true),
            ("1_000", "1000", true),
            ("inf", "Infinity", true),
            ("inf", "-inf", false),
            ("inf", "1e308", false),
            ("nan", "nan", false),
            ("1 ", "1", true),
            (" 1.5", "1.5", true),
            ("0x10", "16", false),
            ("0x10", "0x10", true),
            ("1.0000000001", "1", true),
            ("1.00000001", "1", false),
            ("0", "1e-12", false),
            ("a", "A", false),
            ("", "", true),
            ("", "0", false),
        ] {
            assert_eq!(equals(a, b), expect, "{a:?} {b:?}");
            assert_eq!(equals(b, a), expect, "{b:?} {a:?}");
        }
    }

    #[test]
    fn truth_values_are_those_of_yaml_but_for_conditions() {
        for (text, of_yaml, of_condition) in [
            ("true", Some(true), Some(true)),
            ("True", Some(true), Some(true)),
            ("tRUE", None, Some(true)),
            (" true ", Some(true), Some(true)),
            ("1", Some(true), Some(true)),
            (" 1", None, Some(true)),
            ("on", Some(true), None),
            ("Yes", Some(true), None),
            ("OFF", Some(false), None),
            ("n", None, None),
            ("'true'", None, None),
            ("2", None, None),
            ("", None, None),
            ("[true]", None, None),
        ] {
            assert_eq!(yaml_truth(text), of_yaml, "{text:?}");
            assert_eq!(truth(text), of_condition, "{text:?}");
        }
    }
}
