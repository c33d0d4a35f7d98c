//! Parameters as YAML, in the layout of ROS 2: text in, values out, and back.

use std::fmt;

use tsuji_core::names;
use tsuji_msg::ValueError;
use tsuji_msg::yaml::{self, Node, NodeKind, ParameterWord, Word};

use super::{NAME_BYTES_MAX, Parameter, ParameterType, ParameterValue, SEPARATOR};

/// The most bytes of a parameter file.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// Below it stand the parameters of a node.
const PARAMETERS_KEY: &str = "ros__parameters";

/// What is wrong with a text: where, about what, what was found and what is allowed.
#[derive(Clone, PartialEq, Eq)]
pub struct YamlError {
    /// Line and column, from 1.
    pub place: (usize, usize),
    /// The parameter or the key, as far as there is one.
    pub name: String,
    /// What was found.
    pub found: String,
    /// What is allowed there.
    pub allowed: String,
}

impl YamlError {
    fn new(node: &Node, name: &str, found: impl Into<String>, allowed: impl Into<String>) -> Self {
        let (name, found, allowed) = (name.to_owned(), found.into(), allowed.into());
        Self { place: node.place, name, found, allowed }
    }
}

impl From<ValueError> for YamlError {
    fn from(error: ValueError) -> Self {
        let place = error.place.unwrap_or((1, 1));
        Self { place, name: error.field, found: error.found, allowed: error.expected }
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place: (line, column), name, found, allowed } = self;
        write!(f, "{line}:{column}: ")?;
        if !name.is_empty() {
            write!(f, "{name}: ")?;
        }
        write!(f, "found {found}; allowed: {allowed}")
    }
}

impl std::error::Error for YamlError {}

/// Parameters of nodes, as a file has them, or one argument.
///
/// ```
/// use tsuji::parameter::{Parameter, ParameterFile};
///
/// let text = "/**:\n  ros__parameters:\n    speed: {highest: 2.0}\n";
/// let file = ParameterFile::parse(text)?;
/// assert_eq!(file.for_node("/robot/arm"), [Parameter::new("speed.highest", 2.0)]);
/// # Ok::<_, tsuji::parameter::YamlError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterFile {
    sections: Vec<(NodePattern, Vec<Parameter>)>,
}

impl ParameterFile {
    /// Parses a file: below the name of each node, `ros__parameters`, and below that the parameters.
    ///
    /// A name may be nested, `/ns: {node: …}`, and have the wildcards `*` for one part and `**` for any number of
    /// them. Nested parameters are joined by dots. An array has values of one type; 1 is an integer, 1.0 a double
    /// and '1' a text.
    ///
    /// # Errors
    ///
    /// A [`YamlError`] with line and column if the text is longer than [`FILE_BYTES_MAX`] or not what ROS allows.
    pub fn parse(text: &str) -> Result<Self, YamlError> {
        if FILE_BYTES_MAX < text.len() {
            return Err(YamlError {
                place: (1, 1),
                name: String::new(),
                found: format!("{} bytes", text.len()),
                allowed: format!("at most {FILE_BYTES_MAX}"),
            });
        }
        let root = yaml::parse(text)?;
        let mut file = Self::default();
        match &root.kind {
            NodeKind::Scalar { text, plain: true } if text.is_empty() => {}
            NodeKind::Mapping(_) => file.read_nodes(&root, "")?,
            _ => return Err(YamlError::new(&root, "", root.describe(), "names of nodes")),
        }
        Ok(file)
    }

    /// Parses what stands after `-p`: `NAME:=VALUE` for all nodes, or `NODE:NAME:=VALUE`.
    ///
    /// # Errors
    ///
    /// A [`YamlError`] if the text has another form, or the value is none.
    pub fn parse_argument(words: &str) -> Result<Self, YamlError> {
        let at = |found: String, allowed: &str| {
            Err(YamlError {
                place: (1, 1),
                name: String::new(),
                found,
                allowed: allowed.to_owned(),
            })
        };
        let Some((left, value)) = words.split_once(":=") else {
            return at(format!("{words:?}"), "[NODE:]NAME:=VALUE");
        };
        let (node, name) = left.rsplit_once(':').unwrap_or(("/**", left));
        if name.is_empty() || NAME_BYTES_MAX < name.len() {
            return at(format!("{words:?}"), "[NODE:]NAME:=VALUE with a name");
        }
        let pattern = match node.parse() {
            Ok(pattern) => pattern,
            Err(NoPattern) => return at(format!("{node:?}"), NODE_ALLOWED),
        };
        let value =
            parse_value(value).map_err(|error| YamlError { name: name.to_owned(), ..error })?;
        Ok(Self { sections: vec![(pattern, vec![Parameter::new(name, value)])] })
    }

    /// The parameters of the node of this full name, in the order of the file: of two of one name the later counts.
    pub fn for_node(&self, full_name: &str) -> Vec<Parameter> {
        let tokens: Vec<&str> = tokens(full_name).collect();
        self.parameters_where(|pattern| fits(&pattern.0, &tokens))
    }

    /// The same without what the file says of nodes by wildcards.
    pub fn for_node_by_name(&self, full_name: &str) -> Vec<Parameter> {
        self.parameters_where(|pattern| pattern.0.iter().eq(tokens(full_name)))
    }

    fn parameters_where(&self, is_meant: impl Fn(&NodePattern) -> bool) -> Vec<Parameter> {
        let meant = self.sections.iter().filter(|(pattern, _)| is_meant(pattern));
        meant.flat_map(|(_, parameters)| parameters.iter().cloned()).collect()
    }

    /// Reads what stands below a part of a node's name.
    fn read_nodes(&mut self, below: &Node, path: &str) -> Result<(), YamlError> {
        let NodeKind::Mapping(entries) = &below.kind else {
            let allowed = format!("`{PARAMETERS_KEY}:` and parameters below it");
            return Err(YamlError::new(below, path, below.describe(), allowed));
        };
        for (key, node) in entries {
            if key != PARAMETERS_KEY {
                let joint = if path.is_empty() || path.ends_with('/') { "" } else { "/" };
                let inner = format!("{path}{joint}{}", key.trim_start_matches('/'));
                self.read_nodes(node, if path.is_empty() { key } else { &inner })?;
                continue;
            }
            if path.is_empty() {
                return Err(YamlError::new(
                    node,
                    "",
                    format!("`{key}` at the top"),
                    "names of nodes",
                ));
            }
            let pattern = path.parse().map_err(|NoPattern| {
                YamlError::new(node, path, format!("`{path}`"), NODE_ALLOWED)
            })?;
            let mut parameters = Vec::new();
            match &node.kind {
                NodeKind::Mapping(entries) => read_parameters(entries, "", &mut parameters)?,
                NodeKind::Scalar { text, plain: true } if text.is_empty() => {}
                _ => {
                    return Err(YamlError::new(node, path, node.describe(), "names of parameters"));
                }
            }
            self.sections.push((pattern, parameters));
        }
        Ok(())
    }
}

/// Reads what stands below a part of a parameter's name.
fn read_parameters(
    entries: &[(String, Node)],
    path: &str,
    parameters: &mut Vec<Parameter>,
) -> Result<(), YamlError> {
    for (key, node) in entries {
        let name = if path.is_empty() { key.clone() } else { format!("{path}{SEPARATOR}{key}") };
        if key.is_empty() || NAME_BYTES_MAX < name.len() {
            let allowed = format!("1 to {NAME_BYTES_MAX} bytes");
            return Err(YamlError::new(
                node,
                path,
                format!("a name of {} bytes", name.len()),
                allowed,
            ));
        }
        match &node.kind {
            NodeKind::Mapping(entries) => read_parameters(entries, &name, parameters)?,
            _ => parameters.push(Parameter { value: value(node, &name)?, name }),
        }
    }
    Ok(())
}

/// Parses the value of a parameter as YAML has it: a word, or an array of words of one type.
///
/// # Errors
///
/// A [`YamlError`] if the text is none.
pub fn parse_value(text: &str) -> Result<ParameterValue, YamlError> {
    value(&yaml::parse(text)?, "")
}

fn value(node: &Node, name: &str) -> Result<ParameterValue, YamlError> {
    match &node.kind {
        NodeKind::Scalar { .. } => scalar(node, name),
        NodeKind::Sequence(items) => array(node, items, name),
        NodeKind::Mapping(_) => Err(YamlError::new(node, name, node.describe(), VALUE_ALLOWED)),
    }
}

fn scalar(node: &Node, name: &str) -> Result<ParameterValue, YamlError> {
    let refuse = |allowed: &str| Err(YamlError::new(node, name, node.describe(), allowed));
    let (text, plain) = match &node.kind {
        NodeKind::Scalar { text, plain } => (text.as_str(), *plain),
        _ => return refuse("a word, since arrays are not nested"),
    };
    if !plain {
        return Ok(ParameterValue::String(text.to_owned()));
    }
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return refuse("a value; a text like this stands in quotes");
    }
    match ParameterWord::plain(text) {
        ParameterWord::Bool(value) => Ok(ParameterValue::Bool(value)),
        ParameterWord::Integer(value) => Ok(ParameterValue::Integer(value)),
        ParameterWord::Double(value) => Ok(ParameterValue::Double(value)),
        ParameterWord::Text => Ok(ParameterValue::String(text.to_owned())),
        ParameterWord::OutOfRange => {
            refuse("an integer of 64 bits, or a double, with a point and within its range")
        }
    }
}

/// Parses the value of a parameter as the commands of ROS 2 take it, `ros2 param set` and the like: words mean what
/// YAML 1.1 and its tags say, and what is no YAML, or nothing, is a text.
///
/// # Errors
///
/// A [`YamlError`] if the text is a mapping, or an array or a tag that is wrong.
pub fn parse_command_value(text: &str) -> Result<ParameterValue, YamlError> {
    let as_text = || Ok(ParameterValue::String(text.to_owned()));
    if yaml::parse(text).is_err() {
        return as_text();
    }
    // What is wrong with its tags alone is no text: `ros2` fails at that.
    let node = yaml::parse_with_tags(text)?;
    match &node.kind {
        NodeKind::Scalar { .. } if Word::of(&node) == Some(Word::Null) => as_text(),
        NodeKind::Scalar { .. } => command_word(&node),
        NodeKind::Sequence(items) => array_of(&node, items, "", |item, _| command_word(item)),
        NodeKind::Mapping(_) => Err(YamlError::new(&node, "", node.describe(), VALUE_ALLOWED)),
    }
}

fn command_word(node: &Node) -> Result<ParameterValue, YamlError> {
    let refuse = |allowed: &str| Err(YamlError::new(node, "", node.describe(), allowed));
    match Word::of(node) {
        Some(Word::Bool(value)) => Ok(ParameterValue::Bool(value)),
        Some(Word::Integer(value)) => match i64::try_from(value) {
            Ok(value) => Ok(ParameterValue::Integer(value)),
            Err(_) => refuse("an integer of 64 bits, or a double, with a point"),
        },
        Some(Word::Float(value)) => Ok(ParameterValue::Double(value)),
        Some(Word::Text(text)) => Ok(ParameterValue::String(text.to_owned())),
        Some(Word::Null | Word::Date(_) | Word::Unreadable) => {
            refuse("a value; a text like this stands in quotes")
        }
        None => refuse("a word, since arrays are not nested"),
    }
}

fn array(node: &Node, items: &[Node], name: &str) -> Result<ParameterValue, YamlError> {
    array_of(node, items, name, scalar)
}

/// An array of words that `read` reads, which are of one type. An empty one is of truth values, and every parameter of
/// an array takes it.
fn array_of(
    node: &Node,
    items: &[Node],
    name: &str,
    read: fn(&Node, &str) -> Result<ParameterValue, YamlError>,
) -> Result<ParameterValue, YamlError> {
    let Some(first) = items.first() else { return Ok(ParameterValue::UNTYPED_EMPTY) };
    let values = items.iter().map(|item| read(item, name)).collect::<Result<Vec<_>, _>>()?;
    let kind = values.first().map_or(ParameterType::NotSet, ParameterValue::ty);
    /// Takes the items of one type, and says which one is not.
    fn all<T: TryFrom<ParameterValue, Error = super::WrongType>>(
        items: &[Node],
        values: Vec<ParameterValue>,
        name: &str,
    ) -> Result<Vec<T>, YamlError> {
        let each = items.iter().zip(values).map(|(item, value)| {
            T::try_from(value).map_err(|error| {
                let found = format!("{}, of type {}", item.describe(), error.found);
                let allowed = format!("values of one type, here {} as the first", error.expected);
                YamlError::new(item, name, found, allowed)
            })
        });
        each.collect()
    }
    Ok(match kind {
        ParameterType::Bool => ParameterValue::BoolArray(all(items, values, name)?),
        ParameterType::Integer => ParameterValue::IntegerArray(all(items, values, name)?),
        ParameterType::Double => ParameterValue::DoubleArray(all(items, values, name)?),
        ParameterType::String => ParameterValue::StringArray(all(items, values, name)?),
        _ => {
            let found = first.describe();
            return Err(YamlError::new(node, name, found, "a word, since arrays are not nested"));
        }
    })
}

/// The parameters of a node as a file that [`ParameterFile::parse`] reads.
///
/// What a file cannot say, byte arrays, stands there as a comment. An empty array is of the type that its parameter has
/// where the file is read.
pub fn to_yaml(full_name: &str, parameters: &[Parameter]) -> String {
    let mut sorted: Vec<(&str, &ParameterValue)> =
        parameters.iter().map(|it| (it.name.as_str(), &it.value)).collect();
    sorted.sort_by(|a, b| a.0.cmp(b.0));
    let mut text = format!("{}:\n  {PARAMETERS_KEY}:\n", yaml::quoted(full_name));
    write_level(&sorted, 4, &mut text);
    text
}

/// Beyond this names are written whole: whoever named them may be another process.
const INDENT_MAX: usize = 40;

fn write_level(parameters: &[(&str, &ParameterValue)], indent: usize, text: &mut String) {
    let mut rest = parameters;
    while let Some((name, value)) = rest.first() {
        let nested = name.split_once(SEPARATOR).filter(|(head, tail)| {
            // A parameter that has others below it keeps them beside it. What is too deep to be read stays in one.
            indent < INDENT_MAX
                && !head.is_empty()
                && !tail.is_empty()
                && !parameters.iter().any(|(it, _)| it == head)
        });
        let prefix = nested.map(|(head, _)| format!("{head}{SEPARATOR}"));
        let inner: Vec<(&str, &ParameterValue)> = prefix
            .iter()
            .flat_map(|prefix| {
                rest.iter().map_while(move |(name, value)| {
                    Some((name.strip_prefix(prefix.as_str())?, *value))
                })
            })
            .collect();
        let has_all =
            inner.iter().all(|(name, _)| !name.is_empty() && !name.starts_with(SEPARATOR));
        match nested.filter(|_| has_all) {
            Some((head, _)) => {
                text.push_str(&format!("{:indent$}{}:\n", "", key(head)));
                write_level(&inner, indent + 2, text);
                rest = &rest[inner.len()..];
            }
            None => {
                text.push_str(&match value_text(value) {
                    Ok(value) => format!("{:indent$}{}: {value}\n", "", key(name)),
                    Err(why) => format!("{:indent$}# {}: {why}\n", "", key(name)),
                });
                rest = &rest[1..];
            }
        }
    }
}

/// A name as a key: what reads back as a number stands in quotes.
fn key(name: &str) -> String {
    yaml::in_flow(word(name))
}

/// A value as [`parse_value`] reads it, or why there is no such text.
pub(super) fn value_text(value: &ParameterValue) -> Result<String, &'static str> {
    fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> Result<String, &'static str> {
        let items: Vec<String> = items.iter().map(|it| yaml::in_flow(text(it))).collect();
        Ok(format!("[{}]", items.join(", ")))
    }
    match value {
        ParameterValue::NotSet => Err("not set"),
        ParameterValue::Bool(value) => Ok(value.to_string()),
        ParameterValue::Integer(value) => Ok(value.to_string()),
        ParameterValue::Double(value) => Ok(yaml::float_text(*value)),
        ParameterValue::String(value) => Ok(word(value)),
        ParameterValue::ByteArray(_) => Err("a byte array, which YAML of ROS has no form for"),
        ParameterValue::BoolArray(values) => list(values, bool::to_string),
        ParameterValue::IntegerArray(values) => list(values, i64::to_string),
        ParameterValue::DoubleArray(values) => list(values, |it| yaml::float_text(*it)),
        ParameterValue::StringArray(values) => list(values, |it| word(it)),
    }
}

/// A text so that it is read as a text.
fn word(text: &str) -> String {
    let quoted = yaml::quoted(text);
    let reads_back =
        parse_value(&quoted).is_ok_and(|it| it == ParameterValue::String(text.to_owned()));
    if reads_back { quoted } else { format!("'{}'", text.replace('\'', "''")) }
}

const VALUE_ALLOWED: &str = "a word, or an array of words of one type";
const NODE_ALLOWED: &str = "a node's name such as /robot/arm, /*/arm or /**";

/// Which nodes are meant: tokens between slashes, of which `*` is any one and `**` any number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodePattern(Vec<String>);

struct NoPattern;

impl std::str::FromStr for NodePattern {
    type Err = NoPattern;

    fn from_str(text: &str) -> Result<Self, NoPattern> {
        let of: Vec<String> = tokens(text).map(str::to_owned).collect();
        let is_sound = |token: &String| {
            matches!(token.as_str(), "*" | "**") || names::validate_node(token).is_ok()
        };
        if of.is_empty() || !of.iter().all(is_sound) { Err(NoPattern) } else { Ok(Self(of)) }
    }
}

fn tokens(name: &str) -> impl Iterator<Item = &str> {
    name.strip_prefix('/').unwrap_or(name).split('/')
}

/// Where a token does not fit, the last `**` before it takes one more; earlier ones need not be asked again.
fn fits(pattern: &[String], tokens: &[&str]) -> bool {
    let (mut at, mut token, mut any) = (0, 0, None);
    while token < tokens.len() {
        match (pattern.get(at).map(String::as_str), any) {
            (Some("**"), _) => {
                any = Some((at, token));
                at += 1;
            }
            (Some(wanted), _) if wanted == "*" || wanted == tokens[token] => {
                at += 1;
                token += 1;
            }
            (_, Some((any_at, taken))) => {
                any = Some((any_at, taken + 1));
                at = any_at + 1;
                token = taken + 1;
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|it| it == "**")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn read(text: &str, expect: impl Into<ParameterValue>) {
        assert_eq!(parse_value(text), Ok(expect.into()), "{text}");
    }

    #[track_caller]
    fn refused(text: &str, expect: &str) {
        assert_eq!(ParameterFile::parse(text).unwrap_err().to_string(), expect);
    }

    #[test]
    fn words_are_read_as_ros_reads_them() {
        read("1", 1);
        read("-0x1F", -31);
        read("1.0", 1.0);
        read("1e3", 1000.0);
        read("010", 8);
        read("08", 8.0);
        read("0o17", "0o17");
        read("[]", ParameterValue::UNTYPED_EMPTY);
        read(".inf", f64::INFINITY);
        read("inf", f64::INFINITY);
        read("'1'", "1");
        read("!!str 1", "1");
        read("1_000", "1_000");
        read("0b1", "0b1");
        read("yes", true);
        read("n", false);
        read("'n'", "n");
        read("/a/b", "/a/b");
        read("1.2.3", "1.2.3");
        read("[1, 2]", vec![1i64, 2]);
        read("[1.0, 2.5]", vec![1.0, 2.5]);
        read("[a, '1']", vec!["a".to_owned(), "1".to_owned()]);
        read("[true, off]", vec![true, false]);
    }

    #[test]
    fn values_of_commands_are_read_as_ros2_param_set_reads_them() {
        #[track_caller]
        fn check(text: &str, expect: impl Into<ParameterValue>) {
            assert_eq!(parse_command_value(text), Ok(expect.into()), "{text}");
        }
        check("010", 8);
        check("08", "08");
        check("1_000", 1000);
        check("0b11", 3);
        check("1:30", 90);
        check("1e3", "1e3");
        check("1.0e+3", 1000.0);
        check("nan", "nan");
        check(".inf", f64::INFINITY);
        check("y", "y");
        check("yes", true);
        check("", "");
        check("null", "null");
        check("~", "~");
        check("'1'", "1");
        check("a: [", "a: [");
        check("[1, 010]", vec![1i64, 8]);
        check("[on, no]", vec![true, false]);
        check("[a, '1']", vec!["a".to_owned(), "1".to_owned()]);
        check("[]", ParameterValue::UNTYPED_EMPTY);
        check("!!str 1", "1");
        check("!!str [", "!!str [");
        check("! 1", 1);
        check("!!int '5'", 5);
        check("!!float 1", 1.0);
        check("!!bool 'on'", true);
        check("!!null x", "!!null x");
        check("'!foo'", "!foo");
        check("!!seq [!!str 1, b]", vec!["1".to_owned(), "b".to_owned()]);
        check("[!!float 1, 2.5]", vec![1.0, 2.5]);
        for (text, expect) in [
            (
                "!foo x",
                "1:1: found `x` with the tag `!foo`; allowed: no tag, or one of !!str, !!int, !!float, !!bool and !!null",
            ),
            (
                "!!binary aGk=",
                "1:1: found `aGk=` with the tag `!!binary`; allowed: no tag, or one of !!str, !!int, !!float, !!bool and \
                 !!null",
            ),
            ("!!int x", "1:1: found `x` with the tag `!!int`; allowed: a whole number"),
            ("!!str [1]", "1:1: found a sequence with the tag `!!str`; allowed: !!seq or no tag"),
            (
                "[1, !!str 2]",
                "1:5: found `2`, of type string; allowed: values of one type, here integer as the first",
            ),
            (
                "[1, 2.0]",
                "1:5: found `2.0`, of type double; allowed: values of one type, here integer as the first",
            ),
            ("[[1]]", "1:2: found a sequence; allowed: a word, since arrays are not nested"),
            ("{a: 1}", "1:1: found a mapping; allowed: a word, or an array of words of one type"),
            (
                "2024-01-01",
                "1:1: found `2024-01-01`; allowed: a value; a text like this stands in quotes",
            ),
            (
                "9223372036854775808",
                "1:1: found `9223372036854775808`; allowed: an integer of 64 bits, or a double, with a point",
            ),
        ] {
            assert_eq!(parse_command_value(text).unwrap_err().to_string(), expect, "{text}");
        }
    }

    #[test]
    fn nodes_are_named_in_full_nested_or_by_wildcards() {
        let text = "
/**: {ros__parameters: {level: all}}
/robot:
  arm:
    ros__parameters: {level: arm, joint: {a.b: 1, c: {d: 2}}}
/robot/*: {ros__parameters: {level: any}}
leg: {ros__parameters: {level: leg}}
/**/foot: {ros__parameters: {level: foot}}
/empty: {ros__parameters: }
";
        let file = ParameterFile::parse(text).unwrap();
        let check = |node: &str, expect: &[&str]| {
            let levels = file.for_node(node).into_iter().filter(|it| it.name == "level");
            let levels: Vec<String> = levels.map(|it| it.value.try_into().unwrap()).collect();
            assert_eq!(levels, expect, "{node}");
        };
        check("/robot/arm", &["all", "arm", "any"]);
        check("/robot/hand", &["all", "any"]);
        check("/robot/hand/thumb", &["all"]);
        check("/leg", &["all", "leg"]);
        check("/robot/leg", &["all", "any"]);
        check("/foot", &["all", "foot"]);
        check("/a/b/foot", &["all", "foot"]);
        check("/a/foot/b", &["all"]);
        assert_eq!(file.for_node_by_name("/robot/arm")[0], Parameter::new("level", "arm"));
        assert_eq!(file.for_node_by_name("/robot/hand"), []);
        let joints = file.for_node("/robot/arm");
        assert!(joints.contains(&Parameter::new("joint.a.b", 1)), "{joints:?}");
        assert!(joints.contains(&Parameter::new("joint.c.d", 2)), "{joints:?}");
        assert_eq!(ParameterFile::parse(""), Ok(ParameterFile::default()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        refused(
            "/a:\n  ros__parameters:\n    x: [1, 2.0]\n",
            "3:12: x: found `2.0`, of type double; allowed: values of one type, here integer as the first",
        );
        refused(
            "/a:\n  ros__parameters:\n    x:\n      y: [[1]]\n",
            "4:11: x.y: found a sequence; allowed: a word, since arrays are not nested",
        );
        refused(
            "/a:\n  ros__parameters:\n    x: ~\n",
            "3:8: x: found `~`; allowed: a value; a text like this stands in quotes",
        );
        refused(
            "/a:\n  ros__parameters:\n    x: 9223372036854775808\n",
            "3:8: x: found `9223372036854775808`; allowed: an integer of 64 bits, or a double, with a point and within its range",
        );
        refused(
            "/a:\n  x: 1\n",
            "2:6: /a/x: found `1`; allowed: `ros__parameters:` and parameters below it",
        );
        refused(
            "ros__parameters: {x: 1}",
            "1:18: found `ros__parameters` at the top; allowed: names of nodes",
        );
        refused(
            "/a b: {ros__parameters: {x: 1}}",
            "1:25: /a b: found `/a b`; allowed: a node's name such as /robot/arm, /*/arm or /**",
        );
        refused("[1]", "1:1: found a sequence; allowed: names of nodes");
        refused(
            "/a: {ros__parameters: {x: &y 1, z: *y}}",
            "1:36: found an alias; allowed: a value written out",
        );
        let error = ParameterFile::parse("/a:\n  b: {\n").unwrap_err();
        assert_eq!(error.place, (2, 7), "{error}");
        let deep = format!("/a: {{ros__parameters: {}{}}}", "{x: ".repeat(100), "}".repeat(100));
        let error = ParameterFile::parse(&deep).unwrap_err().to_string();
        assert!(error.ends_with("found a deeper nesting; allowed: at most 64 levels"), "{error}");
        let error = ParameterFile::parse(&" ".repeat(FILE_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(error.allowed, "at most 4194304");
    }

    #[test]
    fn arguments_name_a_node_or_all() {
        let check = |words: &str, node: &str, expect: &[Parameter]| {
            let file = ParameterFile::parse_argument(words).unwrap();
            assert_eq!(file.for_node(node), expect, "{words}");
        };
        check("a.b:=1", "/ns/n", &[Parameter::new("a.b", 1)]);
        check("n:a:=x:=y", "/n", &[Parameter::new("a", "x:=y")]);
        check("n:a:=1", "/ns/n", &[]);
        check("/ns/*:a:=[1, 2]", "/ns/n", &[Parameter::new("a", vec![1i64, 2])]);
        for (words, expect) in [
            ("a", "1:1: found \"a\"; allowed: [NODE:]NAME:=VALUE"),
            (":=1", "1:1: found \":=1\"; allowed: [NODE:]NAME:=VALUE with a name"),
            (
                "n!:a:=1",
                "1:1: found \"n!\"; allowed: a node's name such as /robot/arm, /*/arm or /**",
            ),
            (
                "a:={b: 1}",
                "1:1: a: found a mapping; allowed: a word, or an array of words of one type",
            ),
            ("a:=", "1:1: a: found nothing; allowed: a value; a text like this stands in quotes"),
        ] {
            assert_eq!(ParameterFile::parse_argument(words).unwrap_err().to_string(), expect);
        }
    }

    #[test]
    fn a_file_is_written_as_ros2_dumps_it() {
        let parameters = [
            Parameter::new("b.d.e", vec![1.0, 2.5]),
            Parameter::new("b.c", "y"),
            Parameter::new("a", 1),
            Parameter::new("bytes", vec![1u8]),
            Parameter::new("empty", Vec::<i64>::new()),
            Parameter::new("f", "x"),
            Parameter::new("f.g", true),
        ];
        let expect = "/ns/n:\n  ros__parameters:\n    a: 1\n    b:\n      c: 'y'\n      d:\n        e: [1.0, 2.5]\n    \
                      # bytes: a byte array, which YAML of ROS has no form for\n    empty: []\n    f: x\n    f.g: true\n";
        assert_eq!(to_yaml("/ns/n", &parameters), expect);
    }

    fn any_value() -> impl Strategy<Value = ParameterValue> {
        let text = prop_oneof!["[ -~]{0,8}", "\\PC{0,4}", "[0-9a-fxnyo.e+-]{0,5}"];
        let double = any::<f64>().prop_filter("equal to itself", |it| !it.is_nan());
        prop_oneof![
            any::<bool>().prop_map(ParameterValue::Bool),
            any::<i64>().prop_map(ParameterValue::Integer),
            double.clone().prop_map(ParameterValue::Double),
            text.clone().prop_map(ParameterValue::String),
            prop::collection::vec(any::<bool>(), 1..4).prop_map(ParameterValue::BoolArray),
            prop::collection::vec(any::<i64>(), 1..4).prop_map(ParameterValue::IntegerArray),
            prop::collection::vec(double, 1..4).prop_map(ParameterValue::DoubleArray),
            prop::collection::vec(text, 1..4).prop_map(ParameterValue::StringArray),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            parameters in prop::collection::btree_map("[ -~]{1,6}|[a-c.]{1,5}", any_value(), 0..8)
        ) {
            let parameters: Vec<Parameter> =
                parameters.into_iter().map(|(name, value)| Parameter { name, value }).collect();
            let text = to_yaml("/robot/arm", &parameters);
            let mut back = ParameterFile::parse(&text).map_err(|error| {
                TestCaseError::fail(format!("{error}\n{text}"))
            })?.for_node("/robot/arm");
            back.sort_by(|a, b| a.name.cmp(&b.name));
            prop_assert_eq!(back, parameters, "{}", text);
        }

        #[test]
        fn nothing_that_is_read_panics(text in "[ \n:a/*{}\\[\\]'\"0-9.&!|>~-]{0,60}") {
            let _ = ParameterFile::parse(&text);
            let _ = ParameterFile::parse_argument(&text);
        }
    }
}
