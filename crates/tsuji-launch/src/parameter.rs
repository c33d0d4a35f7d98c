//! The value of a parameter as a launch file has it: read as ROS 2's launch reads it, and written as YAML that nodes read.

use tsuji_msg::yaml::{
    self, Node, NodeKind, ParameterWord, Word, python_float, python_float_text, python_integer,
};

use crate::substitution::{Problem, yaml_truth};

/// The types that a launch file names. Without one, and as `yaml`, the value is taken for what it looks like.
pub(crate) const TYPES: &[&str] = &[
    "int",
    "float",
    "bool",
    "str",
    "list_of_int",
    "list_of_float",
    "list_of_bool",
    "list_of_str",
    "yaml",
];

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    /// A text that stands without quotes: it reaches nodes without them too, and they read more words as numbers and
    /// truth values than YAML does.
    Word(String),
    /// Values of one of these types; one that is empty has no type.
    Array(Vec<Self>),
}

/// Who reads a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A process, by the words that start it.
    Node,
    /// A container, which is sent values with their types.
    Container,
}

type Result<T> = std::result::Result<T, Problem>;

/// Reads what an attribute says, of a type if `ty` is not empty, and of parts if there is a separator. Values are read
/// first, and then `substitute` is called for each text, as launch does it.
pub(crate) fn read(
    text: &str,
    ty: &str,
    separator: Option<&str>,
    substitute: &mut dyn FnMut(&str) -> Result<Substituted>,
) -> Result<Value> {
    let ty = if ty == "yaml" { "" } else { ty };
    let item_type = match ty.strip_prefix("list_of_") {
        Some(item) => item,
        None if ty.is_empty() => "",
        None if separator.is_some() => {
            return Err(wrong(ty, "is no list, and \"value-sep\" makes one"));
        }
        None => return scalar(Parsed::of_type(text, ty), ty, substitute),
    };
    let items = match separator {
        Some(separator) => {
            text.split(separator).map(|item| Parsed::of_type(item, item_type)).collect()
        }
        None => match Parsed::of_yaml(text)? {
            Parsed::List(items) => items,
            // A list that a substitution gives.
            Parsed::Text { text, is_plain: true } if !item_type.is_empty() => {
                let given = substitute(&text)?;
                return match given.is_substituted {
                    true => given_list(&given.text, item_type),
                    false => Err(wrong(&given.text, &format!("is no list of {item_type}"))),
                };
            }
            other if item_type.is_empty() => return scalar(other, "", substitute),
            other => return Err(wrong(&other.words(), &format!("is no list of {item_type}"))),
        },
    };
    let items = items.into_iter().map(|item| list_item(item, item_type, substitute));
    uniform(items.collect::<Result<_>>()?)
}

/// Reads a value whose substitutions are made, as `set_parameter` has one.
pub(crate) fn read_substituted(text: &str) -> Result<Value> {
    match Parsed::of_yaml(text)? {
        Parsed::List(items) => {
            uniform(items.into_iter().map(|item| item.value("")).collect::<Result<_>>()?)
        }
        other => other.value(""),
    }
}

/// A text after its substitutions.
pub(crate) struct Substituted {
    pub(crate) text: String,
    /// Whether there were any; else it is the text that was written, and remains a text.
    pub(crate) is_substituted: bool,
}

fn given_list(text: &str, item_type: &str) -> Result<Value> {
    match Parsed::of_yaml(text)? {
        Parsed::List(items) => {
            let items = items.into_iter().map(|item| item.value(item_type));
            uniform(items.collect::<Result<_>>()?)
        }
        other => Err(wrong(&other.words(), &format!("is no list of {item_type}"))),
    }
}

fn list_item(
    item: Parsed,
    ty: &str,
    substitute: &mut dyn FnMut(&str) -> Result<Substituted>,
) -> Result<Value> {
    match scalar(item, ty, substitute)? {
        Value::Array(_) => Err(wrong("[", "is an array in an array")),
        value => Ok(value),
    }
}

fn scalar(
    parsed: Parsed,
    ty: &str,
    substitute: &mut dyn FnMut(&str) -> Result<Substituted>,
) -> Result<Value> {
    let Parsed::Text { text, is_plain } = parsed else { return parsed.value(ty) };
    let given = substitute(&text)?;
    match (given.is_substituted, ty) {
        (true, "") => read_substituted(&given.text),
        (true, _) => Parsed::of_type(&given.text, ty).value(ty),
        (false, _) => Parsed::Text { text: given.text, is_plain }.value(ty),
    }
}

/// A value as YAML has it, before its substitutions.
#[derive(Clone, Debug, PartialEq)]
enum Parsed {
    Bool(bool),
    Integer(i128),
    Float(f64),
    /// A text, and whether it stands without quotes.
    Text {
        text: String,
        is_plain: bool,
    },
    List(Vec<Self>),
}

impl Parsed {
    /// Reads a text by the rules of YAML and its tags. What PyYAML cannot read is a text.
    fn of_yaml(text: &str) -> Result<Self> {
        let quoted = |text: &str| Self::Text { text: text.to_owned(), is_plain: false };
        if text.is_empty() {
            return Ok(quoted(text));
        }
        let Ok(node) = yaml::parse_with_tags(text) else { return Ok(quoted(text)) };
        match &node.kind {
            NodeKind::Sequence(items) => {
                Ok(Self::List(items.iter().map(Self::of_node).collect::<Result<_>>()?))
            }
            _ => Self::of_node(&node),
        }
    }

    fn of_node(node: &Node) -> Result<Self> {
        let is_plain = matches!(node.kind, NodeKind::Scalar { plain: true, .. });
        let text = match &node.kind {
            NodeKind::Scalar { text, .. } => text.as_str(),
            NodeKind::Sequence(_) => return Err(wrong("[", "is an array in an array")),
            NodeKind::Mapping(_) => {
                let problem = "is a mapping, which no parameter has; type=\"str\" makes it a text";
                return Err(wrong("{", problem));
            }
        };
        Ok(match Word::of(node) {
            Some(Word::Bool(value)) => Self::Bool(value),
            Some(Word::Integer(value)) => Self::Integer(value),
            Some(Word::Float(value)) => Self::Float(value),
            Some(Word::Text(text)) => Self::Text { text: text.to_owned(), is_plain },
            // What YAML cannot read is a text.
            Some(Word::Unreadable) if text.parse::<f64>().is_err() => {
                Self::Text { text: text.to_owned(), is_plain }
            }
            _ => {
                let problem = "is a word of YAML that is no value of a parameter; type=\"str\" makes it a text";
                return Err(wrong(text, problem));
            }
        })
    }

    /// Reads a text as a type, and leaves what is not of it as a text, in which a substitution may stand.
    fn of_type(text: &str, ty: &str) -> Self {
        let read = match ty {
            "int" => python_integer(text).map(Self::Integer),
            "float" => python_float(text).map(Self::Float),
            "bool" => yaml_truth(text).map(Self::Bool),
            "str" => Some(Self::Text { text: text.to_owned(), is_plain: false }),
            _ => Self::of_yaml(text).ok(),
        };
        read.unwrap_or_else(|| Self::Text { text: text.to_owned(), is_plain: true })
    }

    fn words(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => python_float_text(*value),
            Self::Text { text, .. } => text.clone(),
            Self::List(_) => "[".to_owned(),
        }
    }

    /// The value, which is of the type if that is not empty.
    fn value(self, ty: &str) -> Result<Value> {
        let refuse = |what: &str| Err(wrong(&self.words(), &format!("is no {what}")));
        match (&self, ty) {
            (Self::Bool(value), "" | "bool") => Ok(Value::Bool(*value)),
            (Self::Integer(value), "" | "int") => match i64::try_from(*value) {
                Ok(value) => Ok(Value::Integer(value)),
                Err(_) => refuse("int, an integer of 64 bits"),
            },
            (Self::Float(value), "" | "float") => Ok(Value::Float(*value)),
            (Self::Integer(value), "float") => Ok(Value::Float(*value as f64)),
            (Self::Text { text, is_plain: true }, "") => Ok(Value::Word(text.clone())),
            (Self::Text { text, .. }, "" | "str") => Ok(Value::Text(text.clone())),
            (Self::List(_), "") => refuse("value of an array"),
            (_, "int") => refuse("int, an integer of 64 bits"),
            (_, "float") => refuse("float"),
            (_, "bool") => refuse("bool; it is true, false, yes, no, on, off, 1 or 0"),
            _ => refuse(ty),
        }
    }
}

fn uniform(items: Vec<Value>) -> Result<Value> {
    let first = items.first().map(Value::kind);
    match items.iter().find(|it| Some(it.kind()) != first) {
        None => Ok(Value::Array(items)),
        Some(other) => {
            Err(wrong(&other.python_text(), "is of another type than the first of its array"))
        }
    }
}

fn wrong(word: &str, problem: &str) -> Problem {
    let (word, problem) = (word.to_owned(), problem.to_owned());
    Problem { at: 0, word, problem, allowed: Vec::new() }
}

impl Value {
    /// What arrays have one of.
    fn kind(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Integer(_) => 1,
            Self::Float(_) => 2,
            Self::Text(_) | Self::Word(_) => 3,
            Self::Array(_) => 4,
        }
    }

    /// As a command line has it.
    pub(crate) fn to_yaml(&self, reader: Reader) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => yaml::float_text(*value),
            Self::Word(text) if reader == Reader::Node => {
                as_nodes_read(text).to_yaml(Reader::Container)
            }
            Self::Text(text) | Self::Word(text) => quoted(text),
            Self::Array(items) => {
                let read: Vec<Self> = items.iter().map(|it| it.as_read_by(reader)).collect();
                // Where nodes would read words of several types, they are texts.
                let is_uniform =
                    read.iter().all(|it| Some(it.kind()) == read.first().map(Self::kind));
                let items = if is_uniform { &read } else { items };
                let items = items.iter().map(|it| it.to_yaml(Reader::Container));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn as_read_by(&self, reader: Reader) -> Self {
        match self {
            Self::Word(text) if reader == Reader::Node => as_nodes_read(text),
            value => value.clone(),
        }
    }

    /// What `$(param name)` gives: what Python prints.
    pub(crate) fn python_text(&self) -> String {
        match self {
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Float(value) => python_float_text(*value),
            Self::Integer(value) => value.to_string(),
            Self::Text(text) | Self::Word(text) => text.clone(),
            Self::Array(items) => {
                let items: Vec<String> = items.iter().map(Self::python_repr).collect();
                let comma = if items.len() == 1 { "," } else { "" };
                format!("({}{comma})", items.join(", "))
            }
        }
    }

    fn python_repr(&self) -> String {
        match self {
            Self::Text(text) | Self::Word(text) => {
                let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
                let mut repr = String::from(quote);
                for it in text.chars() {
                    match it {
                        '\\' => repr.push_str("\\\\"),
                        '\n' => repr.push_str("\\n"),
                        '\r' => repr.push_str("\\r"),
                        '\t' => repr.push_str("\\t"),
                        _ if it == quote => repr.extend(['\\', it]),
                        _ => repr.push(it),
                    }
                }
                repr.push(quote);
                repr
            }
            value => value.python_text(),
        }
    }
}

fn as_nodes_read(text: &str) -> Value {
    match ParameterWord::plain(text) {
        ParameterWord::Bool(value) => Value::Bool(value),
        ParameterWord::Integer(value) => Value::Integer(value),
        ParameterWord::Double(value) => Value::Float(value),
        ParameterWord::OutOfRange | ParameterWord::Text => Value::Text(text.to_owned()),
    }
}

/// A text that is a text whatever it looks like.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for it in text.chars() {
        match it {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            it if it.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(it))),
            it => quoted.push(it),
        }
    }
    quoted.push('"');
    quoted
}
