//! Names of ROS 2: what is allowed, how a name becomes a fully qualified one, and remapping.
//!
//! The rules are those that `rcl` and `rmw` enforce. Where the design article of ROS 2 is stricter
//! (it asks for no `__` inside a name) its implementation is followed, since names in use are.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// The most characters of a fully qualified topic name: DDS allows 255, a prefix such as `rt/`
/// takes up to 8.
pub const TOPIC_LENGTH_MAX: usize = 247;

/// The most characters of a namespace, which leaves room for the shortest topic, `/x`.
pub const NAMESPACE_LENGTH_MAX: usize = TOPIC_LENGTH_MAX - 2;

/// The most characters of a node name.
pub const NODE_LENGTH_MAX: usize = 255;

/// The topic or service that `name` means in the node `node` of `namespace`, fully qualified.
///
/// `/a` stands for itself, `a` is in the namespace, `~` and `~/a` are private to the node, and
/// `{node}`, `{ns}` and `{namespace}` are put in. `{ns}` begins with its slash, so `{ns}/a` is
/// right and `a/{ns}` is refused.
///
/// # Errors
///
/// Those of [`validate_topic_name`] for `name`, of [`validate_node`] for `node`, of [`validate_namespace`] for
/// `namespace` and of [`validate_topic`] for the full name.
pub fn expand_topic(name: &str, node: &str, namespace: &str) -> Result<String, NameError> {
    validate_topic_name(name)?;
    validate_node(node)?;
    validate_namespace(namespace)?;
    let base = if namespace == "/" { "" } else { namespace };
    let mut full = String::with_capacity(base.len() + node.len() + name.len() + 2);
    let mut rest = name;
    if let Some(private) = name.strip_prefix('~') {
        full.extend([base, "/", node]);
        rest = private;
    } else if !name.starts_with(['/', '{']) {
        full.extend([base, "/"]);
    }
    while let Some((before, substitution)) = rest.split_once('{') {
        full.push_str(before);
        let (word, after) = substitution.split_once('}').unwrap_or((substitution, ""));
        full.push_str(if word == "node" { node } else { namespace });
        rest = after;
    }
    full.push_str(rest);
    if !full.starts_with('/') {
        // The name began with `{node}`.
        full.insert_str(0, &format!("{base}/"));
    }
    validate_topic(&full)?;
    Ok(full)
}

/// Checks a fully qualified topic or service name.
///
/// # Errors
///
/// - [`NameProblem::Empty`] if it is empty, [`NameProblem::NotAbsolute`] if it does not start with a slash,
///   [`NameProblem::TrailingSlash`] if it ends with one, [`NameProblem::RepeatedSlash`] if two are in a row.
/// - [`NameProblem::Character`] if it has anything but letters, digits, `_` and `/`; [`NameProblem::LeadingDigit`]
///   if a token starts with a digit.
/// - [`NameProblem::TooLong`] if it is longer than [`TOPIC_LENGTH_MAX`].
pub fn validate_topic(full: &str) -> Result<(), NameError> {
    validate_tokens(NameKind::Topic, full, TOPIC_LENGTH_MAX)
}

/// Checks a namespace, which is fully qualified; `/` is the root.
///
/// # Errors
///
/// Those of [`validate_topic`]; [`NameProblem::TooLong`] beyond [`NAMESPACE_LENGTH_MAX`].
pub fn validate_namespace(namespace: &str) -> Result<(), NameError> {
    if namespace == "/" {
        return Ok(());
    }
    validate_tokens(NameKind::Namespace, namespace, NAMESPACE_LENGTH_MAX)
}

/// Checks a node name: one token.
///
/// # Errors
///
/// [`NameProblem::Empty`] if it is empty, [`NameProblem::Character`] if it has anything but letters, digits and
/// `_`, [`NameProblem::LeadingDigit`] if it starts with a digit, [`NameProblem::TooLong`] if it is longer than
/// [`NODE_LENGTH_MAX`].
pub fn validate_node(node: &str) -> Result<(), NameError> {
    let error = |at, problem| Err(NameError::new(NameKind::Node, node, at, problem));
    if node.is_empty() {
        return error(0, NameProblem::Empty);
    }
    if let Some(at) = node.chars().position(|c| !is_word(c)) {
        return error(at, NameProblem::Character { allowed: "letters, digits and '_'" });
    }
    if node.starts_with(is_digit) {
        return error(0, NameProblem::LeadingDigit);
    }
    if node.len() > NODE_LENGTH_MAX {
        return error(NODE_LENGTH_MAX, NameProblem::TooLong { length_max: NODE_LENGTH_MAX });
    }
    Ok(())
}

/// Checks a topic or service name as a user writes it, before [`expand_topic`].
///
/// # Errors
///
/// - [`NameProblem::Empty`] if it is empty, [`NameProblem::TrailingSlash`] if it ends with a slash,
///   [`NameProblem::RepeatedSlash`] if two are in a row.
/// - [`NameProblem::Character`] if it has a character that has no place there; [`NameProblem::LeadingDigit`] if a
///   token starts with a digit.
/// - [`NameProblem::MisplacedTilde`] if a tilde is not the first character, [`NameProblem::TildeWithoutSlash`] if
///   it is and no slash follows.
/// - [`NameProblem::UnmatchedBrace`] if a brace has no other; [`NameProblem::Substitution`] if braces hold anything
///   but `node`, `ns` and `namespace`.
/// - [`NameProblem::TooLong`] if it is longer than [`TOPIC_LENGTH_MAX`].
pub fn validate_topic_name(name: &str) -> Result<(), NameError> {
    let error = |at, problem| Err(NameError::new(NameKind::Topic, name, at, problem));
    if name.is_empty() {
        return error(0, NameProblem::Empty);
    }
    if name.ends_with('/') {
        return error(name.chars().count() - 1, NameProblem::TrailingSlash);
    }
    let mut opened = None;
    let mut token_starts = true;
    for (at, (index, c)) in name.char_indices().enumerate() {
        let next = name[index..].chars().nth(1);
        match (c, opened) {
            ('}', Some((_, word_index))) => {
                let word: &str = &name[word_index..index];
                if !matches!(word, "node" | "ns" | "namespace") {
                    return error(at, NameProblem::Substitution { word: word.to_owned() });
                }
                opened = None;
            }
            ('}', None) => return error(at, NameProblem::UnmatchedBrace),
            ('{', None) => opened = Some((at, index + 1)),
            (_, Some(_)) if !is_word(c) => {
                return error(at, NameProblem::Character { allowed: "node, ns or namespace" });
            }
            ('~', None) if at > 0 => return error(at, NameProblem::MisplacedTilde),
            ('~', None) if next.is_some_and(|next| next != '/') => {
                return error(at + 1, NameProblem::TildeWithoutSlash);
            }
            ('~' | '/', None) => {}
            (_, None) if !is_word(c) => {
                let allowed = "letters, digits, '_', '/', a leading '~' and substitutions in '{}'";
                return error(at, NameProblem::Character { allowed });
            }
            (_, None) if token_starts && is_digit(c) => {
                return error(at, NameProblem::LeadingDigit);
            }
            _ => {}
        }
        if c == '/' && next == Some('/') {
            return error(at + 1, NameProblem::RepeatedSlash);
        }
        token_starts = c == '/';
    }
    if let Some((at, _)) = opened {
        return error(at, NameProblem::UnmatchedBrace);
    }
    if name.len() > TOPIC_LENGTH_MAX {
        return error(TOPIC_LENGTH_MAX, NameProblem::TooLong { length_max: TOPIC_LENGTH_MAX });
    }
    Ok(())
}

/// A static remapping rule of ROS 2, as it stands after `-r` or `--remap`.
///
/// - `from:=to`: names as in [`expand_topic`]; a topic or service whose full name is that of
///   `from` becomes `to`. `rostopic://from:=to` is for topics only, `rosservice://` for services.
/// - `__node:=name` (or `__name`) and `__ns:=/namespace`: the node itself.
/// - `node:` before any of them: only for the node of that name.
///
/// Wildcards and capture groups of the design article are refused, as `rcl` refuses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemapRule {
    node: Option<String>,
    remap: Remap,
}

/// What a name is remapped as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remapped {
    /// A topic.
    Topic,
    /// A service.
    Service,
}

/// The name that the node called `node` takes, if a rule gives one. The first that fits counts.
pub fn remap_node<'a>(rules: &'a [RemapRule], node: &str) -> Option<&'a str> {
    rules.iter().filter(|rule| rule.is_for(node)).find_map(|rule| match &rule.remap {
        Remap::Node(to) => Some(to.as_str()),
        _ => None,
    })
}

/// The namespace that the node called `node` (its name after [`remap_node`]) takes, if a rule
/// gives one.
pub fn remap_namespace<'a>(rules: &'a [RemapRule], node: &str) -> Option<&'a str> {
    rules.iter().filter(|rule| rule.is_for(node)).find_map(|rule| match &rule.remap {
        Remap::Namespace(to) => Some(to.as_str()),
        _ => None,
    })
}

/// The full name of `name`, expanded and then remapped by the first rule that fits it.
///
/// `node` and `namespace` are those after their own remapping. A remapped name is not remapped
/// again.
///
/// # Errors
///
/// Those of [`expand_topic`] for `name`, and for the names of the rules that are tried.
pub fn resolve(
    rules: &[RemapRule],
    what: Remapped,
    name: &str,
    node: &str,
    namespace: &str,
) -> Result<String, NameError> {
    let full = expand_topic(name, node, namespace)?;
    for rule in rules.iter().filter(|rule| rule.is_for(node)) {
        if let Remap::Name { only, from, to } = &rule.remap
            && only.is_none_or(|only| only == what)
            && expand_topic(from, node, namespace)? == full
        {
            return expand_topic(to, node, namespace);
        }
    }
    Ok(full)
}

impl RemapRule {
    fn is_for(&self, node: &str) -> bool {
        self.node.as_deref().is_none_or(|wanted| wanted == node)
    }
}

impl FromStr for RemapRule {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let Some((left, to)) = text.split_once(":=") else {
            let end = text.chars().count();
            return Err(NameError::new(NameKind::Remap, text, end, NameProblem::NoRemap));
        };
        let to_at = left.chars().count() + 2;
        let (node, from, from_at) = match left.split_once(':') {
            Some((node, from)) if !from.starts_with("//") => {
                validate_node(node).map_err(|error| error.inside(text, 0))?;
                (Some(node.to_owned()), from, node.chars().count() + 1)
            }
            _ => (None, left, 0),
        };
        let in_to = |error: NameError| error.inside(text, to_at);
        let remap = match from {
            "__node" | "__name" => {
                validate_node(to).map_err(in_to)?;
                Remap::Node(to.to_owned())
            }
            "__ns" => {
                validate_namespace(to).map_err(in_to)?;
                Remap::Namespace(to.to_owned())
            }
            _ => {
                let (only, name) = if let Some(name) = from.strip_prefix("rostopic://") {
                    (Some(Remapped::Topic), name)
                } else if let Some(name) = from.strip_prefix("rosservice://") {
                    (Some(Remapped::Service), name)
                } else {
                    (None, from)
                };
                let name_at = from_at + from.len() - name.len();
                validate_topic_name(name).map_err(|error| error.inside(text, name_at))?;
                validate_topic_name(to).map_err(in_to)?;
                Remap::Name { only, from: name.to_owned(), to: to.to_owned() }
            }
        };
        Ok(Self { node, remap })
    }
}

/// Why a name is refused: which character, and what is allowed in its place.
#[derive(Clone, PartialEq, Eq)]
pub struct NameError {
    /// What the name was to be.
    pub kind: NameKind,
    /// The name.
    pub name: String,
    /// The offending character, counted from 1. One past the end where something is missing.
    pub position: usize,
    /// The offending character itself, if there is one.
    pub found: Option<char>,
    /// What is wrong about it.
    pub problem: NameProblem,
}

impl NameError {
    fn new(kind: NameKind, name: &str, at: usize, problem: NameProblem) -> Self {
        let found = name.chars().nth(at);
        Self { kind, name: name.to_owned(), position: at + 1, found, problem }
    }

    /// The same error about a part of `whole` that begins after `offset` characters.
    fn inside(mut self, whole: &str, offset: usize) -> Self {
        whole.clone_into(&mut self.name);
        self.kind = NameKind::Remap;
        self.position += offset;
        self.found = whole.chars().nth(self.position - 1);
        self
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, position, found, problem } = self;
        write!(f, "{kind} {name:?}: character {position}")?;
        if let Some(found) = found {
            write!(f, ", {found:?}")?;
        }
        write!(f, ": {problem}")
    }
}

impl Error for NameError {}

/// What a refused name was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// A topic or service.
    Topic,
    /// A namespace.
    Namespace,
    /// A node.
    Node,
    /// A remapping rule.
    Remap,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Topic => "name",
            Self::Namespace => "namespace",
            Self::Node => "node name",
            Self::Remap => "remapping rule",
        })
    }
}

/// What is wrong with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameProblem {
    /// There is nothing.
    Empty,
    /// A full name starts with a slash.
    NotAbsolute,
    /// No name ends with a slash.
    TrailingSlash,
    /// Two slashes in a row.
    RepeatedSlash,
    /// A character that has no place here.
    Character {
        /// What may stand here.
        allowed: &'static str,
    },
    /// A token starts with a digit.
    LeadingDigit,
    /// It is too long.
    TooLong {
        /// The most characters.
        length_max: usize,
    },
    /// A tilde that is not the first character.
    MisplacedTilde,
    /// A tilde that is followed by something other than a slash.
    TildeWithoutSlash,
    /// A brace without its other.
    UnmatchedBrace,
    /// A substitution that there is not.
    Substitution {
        /// The word in the braces.
        word: String,
    },
    /// A remapping rule without `:=`.
    NoRemap,
}

impl fmt::Display for NameProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty; allowed: at least one character"),
            Self::NotAbsolute => f.write_str("a full name is needed; allowed: '/'"),
            Self::TrailingSlash => f.write_str("a name does not end with '/'; allowed: a token"),
            Self::RepeatedSlash => f.write_str("repeated '/'; allowed: a token between two"),
            Self::Character { allowed } => write!(f, "allowed: {allowed}"),
            Self::LeadingDigit => {
                f.write_str("a token does not start with a digit; allowed: a letter or '_'")
            }
            Self::TooLong { length_max } => {
                write!(f, "too long; allowed: at most {length_max} characters")
            }
            Self::MisplacedTilde => f.write_str("'~' is allowed as the first character only"),
            Self::TildeWithoutSlash => f.write_str("allowed after '~': '/' or the end"),
            Self::UnmatchedBrace => f.write_str("a brace without its other; allowed: {node}"),
            Self::Substitution { word } => {
                write!(f, "{{{word}}} is no substitution; allowed: {{node}}, {{ns}}, {{namespace}}")
            }
            Self::NoRemap => f.write_str("':=' is missing; allowed: [node:]from:=to"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Remap {
    Node(String),
    Namespace(String),
    Name { only: Option<Remapped>, from: String, to: String },
}

fn validate_tokens(kind: NameKind, name: &str, length_max: usize) -> Result<(), NameError> {
    let error = |at, problem| Err(NameError::new(kind, name, at, problem));
    if name.is_empty() {
        return error(0, NameProblem::Empty);
    }
    if !name.starts_with('/') {
        return error(0, NameProblem::NotAbsolute);
    }
    if name.ends_with('/') {
        return error(name.chars().count() - 1, NameProblem::TrailingSlash);
    }
    let mut before = None;
    for (at, c) in name.chars().enumerate() {
        if !is_word(c) && c != '/' {
            return error(at, NameProblem::Character { allowed: "letters, digits, '_' and '/'" });
        }
        if before == Some('/') && c == '/' {
            return error(at, NameProblem::RepeatedSlash);
        }
        if before == Some('/') && is_digit(c) {
            return error(at, NameProblem::LeadingDigit);
        }
        before = Some(c);
    }
    if name.len() > length_max {
        return error(length_max, NameProblem::TooLong { length_max });
    }
    Ok(())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told<T: fmt::Display>(result: Result<T, NameError>) -> String {
        match result {
            Ok(name) => name.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[track_caller]
    fn expands(name: &str, expect: &str) {
        assert_eq!(told(expand_topic(name, "cam", "/front")), expect);
    }

    #[test]
    fn names_expand() {
        expands("image", "/front/image");
        expands("a/b", "/front/a/b");
        expands("/image", "/image");
        expands("~", "/front/cam");
        expands("~/image", "/front/cam/image");
        expands("{node}/image", "/front/cam/image");
        expands("/x/{node}/image", "/x/cam/image");
        expands("{ns}/image", "/front/image");
        expands("{namespace}/{node}", "/front/cam");
        expands("~/{node}_raw", "/front/cam/cam_raw");
        expands("_hidden", "/front/_hidden");
        expands("a__b", "/front/a__b");
        assert_eq!(told(expand_topic("image", "cam", "/")), "/image");
        assert_eq!(told(expand_topic("~/image", "cam", "/")), "/cam/image");
        assert_eq!(told(expand_topic("{node}", "cam", "/")), "/cam");
    }

    #[test]
    fn refused_names_tell_where_and_what_is_allowed() {
        expands("", "name \"\": character 1: it is empty; allowed: at least one character");
        expands(
            "/",
            "name \"/\": character 1, '/': a name does not end with '/'; allowed: a token",
        );
        expands(
            "a/",
            "name \"a/\": character 2, '/': a name does not end with '/'; allowed: a token",
        );
        expands(
            "a//b",
            "name \"a//b\": character 3, '/': repeated '/'; allowed: a token between two",
        );
        expands(
            "a b",
            "name \"a b\": character 2, ' ': \
             allowed: letters, digits, '_', '/', a leading '~' and substitutions in '{}'",
        );
        let digit = "a token does not start with a digit; allowed: a letter or '_'";
        expands("1a", &format!("name \"1a\": character 1, '1': {digit}"));
        expands("a/2b", &format!("name \"a/2b\": character 3, '2': {digit}"));
        expands("a~", "name \"a~\": character 2, '~': '~' is allowed as the first character only");
        expands("~a", "name \"~a\": character 2, 'a': allowed after '~': '/' or the end");
        expands(
            "{node",
            "name \"{node\": character 1, '{': a brace without its other; allowed: {node}",
        );
        expands(
            "node}",
            "name \"node}\": character 5, '}': a brace without its other; allowed: {node}",
        );
        expands(
            "{robot}/a",
            "name \"{robot}/a\": character 7, '}': \
             {robot} is no substitution; allowed: {node}, {ns}, {namespace}",
        );
        expands("{n{s}}", "name \"{n{s}}\": character 3, '{': allowed: node, ns or namespace");
        expands("{n/s}", "name \"{n/s}\": character 3, '/': allowed: node, ns or namespace");
        expands(
            "a/{ns}",
            "name \"/front/a//front\": character 10, '/': repeated '/'; allowed: a token between two",
        );
        expands(
            "カメラ",
            "name \"カメラ\": character 1, 'カ': \
             allowed: letters, digits, '_', '/', a leading '~' and substitutions in '{}'",
        );
    }

    #[test]
    fn lengths() {
        let full = |length: usize| format!("/{}", "a".repeat(length - 1));
        assert!(validate_topic(&full(247)).is_ok());
        let error = validate_topic(&full(248)).unwrap_err();
        assert_eq!(error.position, 248);
        assert_eq!(error.problem.to_string(), "too long; allowed: at most 247 characters");
        assert!(validate_namespace(&full(245)).is_ok());
        assert!(validate_namespace(&full(246)).is_err());
        assert!(validate_node(&"a".repeat(255)).is_ok());
        assert!(validate_node(&"a".repeat(256)).is_err());
    }

    #[test]
    fn nodes_and_namespaces() {
        let node = |name| told(validate_node(name).map(|()| "ok"));
        assert_eq!(node("cam_1"), "ok");
        assert_eq!(
            node("a/b"),
            "node name \"a/b\": character 2, '/': allowed: letters, digits and '_'"
        );
        assert_eq!(
            node("1cam"),
            "node name \"1cam\": character 1, '1': \
             a token does not start with a digit; allowed: a letter or '_'"
        );
        let namespace = |name| told(validate_namespace(name).map(|()| "ok"));
        assert_eq!(namespace("/"), "ok");
        assert_eq!(namespace("/a/b"), "ok");
        assert_eq!(
            namespace("a"),
            "namespace \"a\": character 1, 'a': a full name is needed; allowed: '/'"
        );
    }

    #[track_caller]
    fn resolves(rules: &[&str], what: Remapped, name: &str, expect: &str) {
        let rules: Vec<RemapRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        assert_eq!(told(resolve(&rules, what, name, "cam", "/front")), expect);
    }

    #[test]
    fn remapping() {
        use Remapped::{Service, Topic};
        resolves(&["image:=picture"], Topic, "image", "/front/picture");
        resolves(&["image:=picture"], Topic, "/front/image", "/front/picture");
        resolves(&["image:=picture"], Topic, "/image", "/image");
        resolves(&["/front/image:=/p"], Topic, "image", "/p");
        resolves(&["~/image:=~/p"], Topic, "~/image", "/front/cam/p");
        resolves(&["a:=b", "b:=c", "a:=d"], Topic, "a", "/front/b");
        resolves(&["cam:a:=b"], Topic, "a", "/front/b");
        resolves(&["other:a:=b"], Topic, "a", "/front/a");
        resolves(&["rostopic://a:=b"], Topic, "a", "/front/b");
        resolves(&["rostopic://a:=b"], Service, "a", "/front/a");
        resolves(&["cam:rosservice://a:=b"], Service, "a", "/front/b");
        resolves(&["{node}/a:={node}/b"], Topic, "cam/a", "/front/cam/b");
    }

    #[test]
    fn nodes_remap() {
        let rules = ["x:__node:=y", "__name:=z", "z:__ns:=/there", "__node:=late"];
        let rules: Vec<RemapRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        assert_eq!(remap_node(&rules, "x"), Some("y"));
        assert_eq!(remap_node(&rules, "cam"), Some("z"));
        assert_eq!(remap_namespace(&rules, "z"), Some("/there"));
        assert_eq!(remap_namespace(&rules, "cam"), None);
    }

    #[track_caller]
    fn no_rule(text: &str, expect: &str) {
        assert_eq!(text.parse::<RemapRule>().unwrap_err().to_string(), expect);
    }

    #[test]
    fn refused_rules_tell_the_position_in_the_whole() {
        no_rule(
            "image",
            "remapping rule \"image\": character 6: ':=' is missing; allowed: [node:]from:=to",
        );
        no_rule(
            "a:=b/",
            "remapping rule \"a:=b/\": character 5, '/': \
             a name does not end with '/'; allowed: a token",
        );
        no_rule(
            "cam:rostopic://a*:=b",
            "remapping rule \"cam:rostopic://a*:=b\": character 17, '*': \
             allowed: letters, digits, '_', '/', a leading '~' and substitutions in '{}'",
        );
        no_rule(
            "__ns:=there",
            "remapping rule \"__ns:=there\": character 7, 't': a full name is needed; allowed: '/'",
        );
        no_rule(
            "1:a:=b",
            "remapping rule \"1:a:=b\": character 1, '1': \
             a token does not start with a digit; allowed: a letter or '_'",
        );
    }

    proptest! {
        #[test]
        fn anything_is_either_a_full_name_or_refused_inside(name in "[a1_~/{}nodes.é ]{0,12}") {
            match expand_topic(&name, "cam", "/front") {
                Ok(full) => prop_assert!(validate_topic(&full).is_ok()),
                Err(error) => {
                    prop_assert!((1..=error.name.chars().count() + 1).contains(&error.position));
                    prop_assert_eq!(error.found, error.name.chars().nth(error.position - 1));
                }
            }
        }

        #[test]
        fn any_text_is_a_rule_or_refused_inside(text in "[a1_~/{}:=.é]{0,16}") {
            if let Err(error) = text.parse::<RemapRule>() {
                prop_assert_eq!(&error.name, &text);
                prop_assert_eq!(error.found, text.chars().nth(error.position - 1));
            }
        }
    }
}
