//! XML-RPC as ROS 1 speaks it: values, calls and replies, from and to text.
//!
//! Names and texts are UTF-8. A document type, and so every entity but XML's own five, is refused, as are attributes, which
//! XML-RPC has none of.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use roxmltree::{Document, Node, ParsingOptions};

/// The deepest nesting of arrays and structs that is taken. A deeper one is an error.
pub const NESTING_MAX: usize = 64;
/// The most elements and texts of a call or a reply. One more is an error; with it goes what memory one can cost.
pub const ELEMENTS_MAX: u32 = 1_000_000;
/// The longest name of a method, in bytes.
pub const METHOD_BYTES_MAX: usize = 256;

/// What the elements around the outermost value, and three levels for each nested one, come to.
const DEPTH_MAX: usize = 3 * NESTING_MAX + 8;
/// The longest tag. All of XML-RPC are shorter.
const TAG_BYTES_MAX: usize = 64;

/// A value of XML-RPC.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `<i4>` or `<int>`.
    Int(i32),
    /// `<boolean>`.
    Bool(bool),
    /// `<double>`; `nan` and `inf` are taken too, as ROS 1 writes them.
    Double(f64),
    /// `<string>`, or what has no type. A character that XML cannot have is written as U+FFFD.
    String(String),
    /// `<dateTime.iso8601>`, as it was written.
    DateTime(String),
    /// `<base64>`.
    Base64(Vec<u8>),
    /// `<array>`.
    Array(Vec<Self>),
    /// `<struct>`, in the order it was written. Of two members of a name, a parsed one has the last.
    Struct(Vec<(String, Self)>),
    /// `<nil/>`, which not every node of ROS 1 understands.
    Nil,
}

impl Value {
    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The number of an int.
    pub fn as_int(&self) -> Option<i32> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    /// The truth of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self { Some(*truth) } else { None }
    }

    /// The number of a double.
    pub fn as_double(&self) -> Option<f64> {
        if let Self::Double(number) = self { Some(*number) } else { None }
    }

    /// The values of an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(values) = self { Some(values) } else { None }
    }

    /// The members of a struct.
    pub fn as_struct(&self) -> Option<&[(String, Self)]> {
        if let Self::Struct(members) = self { Some(members) } else { None }
    }

    /// The last member of a struct that has this name.
    pub fn member(&self, name: &str) -> Option<&Self> {
        self.as_struct()?.iter().rev().find(|it| it.0 == name).map(|it| &it.1)
    }

    fn encode(&self, out: &mut String) {
        out.push_str("<value>");
        match self {
            Self::Int(number) => element(out, "i4", &number.to_string()),
            Self::Bool(truth) => element(out, "boolean", if *truth { "1" } else { "0" }),
            // The shortest text that is read back as the same number.
            Self::Double(number) => {
                element(out, "double", &format!("{number:?}").to_ascii_lowercase())
            }
            Self::String(text) => element(out, "string", &escaped(text)),
            Self::DateTime(text) => element(out, "dateTime.iso8601", &escaped(text)),
            Self::Base64(bytes) => element(out, "base64", &STANDARD.encode(bytes)),
            Self::Array(values) => {
                out.push_str("<array><data>");
                values.iter().for_each(|it| it.encode(out));
                out.push_str("</data></array>");
            }
            Self::Struct(members) => {
                out.push_str("<struct>");
                for (name, value) in members {
                    out.push_str("<member>");
                    element(out, "name", &escaped(name));
                    value.encode(out);
                    out.push_str("</member>");
                }
                out.push_str("</struct>");
            }
            Self::Nil => out.push_str("<nil/>"),
        }
        out.push_str("</value>");
    }

    fn parse(value: Node<'_, '_>, levels: usize) -> Result<Self, XmlRpcError> {
        let mut kinds = value.children().filter(Node::is_element);
        let Some(kind) = kinds.next() else {
            return Ok(Self::String(text_of(value).into_owned()));
        };
        if kinds.next().is_some() {
            return wrong("a <value> has two types");
        }
        let text = text_of(kind);
        let trimmed = text.trim();
        let refused = |expected: &str| wrong(format!("{:?} is not {expected}", shortened(trimmed)));
        let within = || levels.checked_sub(1).ok_or_else(too_deep);
        match kind.tag_name().name() {
            "string" => Ok(Self::String(text.into_owned())),
            "int" | "i4" | "i8" | "i2" | "i1" => match trimmed.parse() {
                Ok(number) => Ok(Self::Int(number)),
                Err(_) => refused("an integer of 32 bits"),
            },
            "boolean" => match trimmed {
                "0" => Ok(Self::Bool(false)),
                "1" => Ok(Self::Bool(true)),
                _ => refused("a boolean; allowed: 0, 1"),
            },
            "double" | "float" => match trimmed.parse() {
                Ok(number) => Ok(Self::Double(number)),
                Err(_) => refused("a number"),
            },
            "dateTime.iso8601" if trimmed.len() <= 64 => Ok(Self::DateTime(trimmed.to_owned())),
            "dateTime.iso8601" => refused("a time"),
            "base64" => {
                let letters: Vec<u8> =
                    text.bytes().filter(|it| !it.is_ascii_whitespace()).collect();
                STANDARD.decode(letters).map(Self::Base64).or_else(|_| refused("base64"))
            }
            "array" => {
                let levels = within()?;
                let data = only(kind, "data")?;
                let values = elements(data, "value").map(|it| Self::parse(it?, levels));
                Ok(Self::Array(values.collect::<Result<_, _>>()?))
            }
            "struct" => {
                let levels = within()?;
                let mut members: Vec<(String, Self)> = Vec::new();
                let mut places = HashMap::new();
                for member in elements(kind, "member") {
                    let mut parts = member?.children().filter(Node::is_element);
                    let (Some(name), Some(value), None) =
                        (parts.next(), parts.next(), parts.next())
                    else {
                        return wrong("a <member> has not one <name> and one <value>");
                    };
                    if name.tag_name().name() != "name" || value.tag_name().name() != "value" {
                        return wrong("a <member> has not one <name> and one <value>");
                    }
                    let name = text_of(name).into_owned();
                    let value = Self::parse(value, levels)?;
                    match places.get(&name) {
                        Some(place) => members[*place] = (name, value),
                        None => {
                            places.insert(name.clone(), members.len());
                            members.push((name, value));
                        }
                    }
                }
                Ok(Self::Struct(members))
            }
            "nil" => Ok(Self::Nil),
            other => wrong(format!("<{}> is no type of XML-RPC", shortened(other))),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Double(number)
    }
}

impl From<Vec<Self>> for Value {
    fn from(values: Vec<Self>) -> Self {
        Self::Array(values)
    }
}

/// A call of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The name of the method.
    pub method: String,
    /// What it is called with.
    pub params: Vec<Value>,
}

impl Call {
    /// A call of `method` with `params`.
    pub fn new(method: &str, params: Vec<Value>) -> Self {
        Self { method: method.to_owned(), params }
    }

    /// Reads the body of a request.
    ///
    /// # Errors
    /// `body` is no call of XML-RPC, or is beyond a limit.
    pub fn parse(body: &[u8]) -> Result<Self, XmlRpcError> {
        parse(body, "methodCall", |call| {
            let method = text_of(only(call, "methodName")?).trim().to_owned();
            if method.is_empty() || METHOD_BYTES_MAX < method.len() {
                return wrong(format!("a method has a name of 1 to {METHOD_BYTES_MAX} bytes"));
            }
            let params = match child(call, "params") {
                Some(params) => elements(params, "param").map(param).collect::<Result<_, _>>()?,
                None => Vec::new(),
            };
            Ok(Self { method, params })
        })
    }

    /// The body of a request.
    pub fn encode(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\"?>\n<methodCall>");
        element(&mut out, "methodName", &escaped(&self.method));
        out.push_str("<params>");
        for value in &self.params {
            out.push_str("<param>");
            value.encode(&mut out);
            out.push_str("</param>");
        }
        out.push_str("</params></methodCall>\n");
        out
    }
}

/// What comes back from a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The method's value; in ROS the triple of code, text and value.
    Value(Value),
    /// The call could not be made, for there is no such method, or what was sent is no call.
    Fault {
        /// A number of the server's choice.
        code: i32,
        /// What is wrong.
        text: String,
    },
}

impl Reply {
    /// Reads the body of a response.
    ///
    /// # Errors
    /// `body` is no response of XML-RPC, or is beyond a limit.
    pub fn parse(body: &[u8]) -> Result<Self, XmlRpcError> {
        parse(body, "methodResponse", |response| {
            if let Some(fault) = child(response, "fault") {
                let fault = Value::parse(only(fault, "value")?, NESTING_MAX)?;
                let code = fault.member("faultCode").and_then(Value::as_int).unwrap_or_default();
                let text = fault.member("faultString").and_then(Value::as_str).unwrap_or_default();
                return Ok(Self::Fault { code, text: text.to_owned() });
            }
            Ok(Self::Value(param(
                elements(only(response, "params")?, "param")
                    .next()
                    .unwrap_or_else(|| wrong("a response has no value")),
            )?))
        })
    }

    /// The body of a response.
    pub fn encode(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\"?>\n<methodResponse>");
        match self {
            Self::Value(value) => {
                out.push_str("<params><param>");
                value.encode(&mut out);
                out.push_str("</param></params>");
            }
            Self::Fault { code, text } => {
                out.push_str("<fault>");
                let code = ("faultCode".to_owned(), Value::Int(*code));
                let text = ("faultString".to_owned(), Value::from(text.as_str()));
                Value::Struct(vec![code, text]).encode(&mut out);
                out.push_str("</fault>");
            }
        }
        out.push_str("</methodResponse>\n");
        out
    }

    /// The value of ROS's triple of code, text and value.
    ///
    /// # Errors
    /// The text, where the code is not 1; and what is wrong, of a fault or of what is no such triple.
    pub fn ros(self) -> Result<Value, String> {
        let value = match self {
            Self::Value(value) => value,
            Self::Fault { code, text } => return Err(format!("fault {code}: {text}")),
        };
        let Value::Array(triple) = value else {
            return Err("the reply is not the triple that ROS 1 has".to_owned());
        };
        let Ok([Value::Int(code), text, value]) = <[Value; 3]>::try_from(triple) else {
            return Err("the reply is not the triple that ROS 1 has".to_owned());
        };
        match (code, text.as_str()) {
            (1, _) => Ok(value),
            (code, None | Some("")) => Err(format!("code {code}")),
            (_, Some(text)) => Err(text.to_owned()),
        }
    }

    /// A reply in ROS that something is done.
    pub fn success(text: &str, value: Value) -> Self {
        Self::triple(1, text, value)
    }

    /// A reply in ROS that something failed: `code` is 0 for a failure, -1 for an error of the caller. Its value is 0.
    pub fn failure(code: i32, text: &str) -> Self {
        Self::triple(code, text, Value::Int(0))
    }

    /// A reply in ROS of any code.
    pub fn triple(code: i32, text: &str, value: Value) -> Self {
        Self::Value(Value::Array(vec![Value::Int(code), Value::from(text), value]))
    }
}

/// Why a text is no call and no reply.
#[derive(Clone, PartialEq, Eq)]
pub struct XmlRpcError {
    problem: Cow<'static, str>,
}

impl fmt::Display for XmlRpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is not XML-RPC: {}", self.problem)
    }
}

impl std::error::Error for XmlRpcError {}

fn wrong<T>(problem: impl Into<Cow<'static, str>>) -> Result<T, XmlRpcError> {
    Err(XmlRpcError { problem: problem.into() })
}

fn too_deep() -> XmlRpcError {
    XmlRpcError { problem: format!("values are nested deeper than {NESTING_MAX} levels").into() }
}

fn element(out: &mut String, name: &str, text: &str) {
    for part in ["<", name, ">", text, "</", name, ">"] {
        out.push_str(part);
    }
}

/// A text as XML has it. Quotes stay: in content they mean nothing, and carriage returns too, since not all nodes know what
/// stands for them; those that read XML strictly get a line feed instead.
fn escaped(text: &str) -> Cow<'_, str> {
    let is_plain = |it: char| !matches!(it, '&' | '<' | '>') && is_of_xml(it);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            it if is_of_xml(it) => out.push(it),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(out)
}

fn is_of_xml(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

fn parse<T>(
    body: &[u8],
    root: &str,
    read: impl FnOnce(Node<'_, '_>) -> Result<T, XmlRpcError>,
) -> Result<T, XmlRpcError> {
    let Ok(text) = std::str::from_utf8(body.trim_ascii()) else {
        return wrong("it is not UTF-8");
    };
    check_tags(text)?;
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: ELEMENTS_MAX, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => return wrong(shortened(&error.to_string())),
    };
    let element = document.root_element();
    if element.tag_name().name() != root {
        return wrong(format!("it is <{}>, not <{root}>", shortened(element.tag_name().name())));
    }
    read(element)
}

/// Looks at the tags before the parser does, for what would cost it much: attributes, each of which it compares with each,
/// and nesting.
fn check_tags(text: &str) -> Result<(), XmlRpcError> {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")]
            .into_iter()
            .find(|(open, _)| rest.starts_with(open));
        if let Some((open, close)) = skipped {
            let Some(end) = rest[open.len()..].find(close) else {
                return wrong(format!("{open} has no {close}"));
            };
            rest = &rest[open.len() + end + close.len()..];
            continue;
        }
        if rest.starts_with("<!") {
            return wrong("it has a document type");
        }
        let Some(end) = rest.bytes().take(TAG_BYTES_MAX).position(|it| it == b'>') else {
            return wrong("a tag has no end, or is too long");
        };
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        if let Some(_closing) = tag.strip_prefix('/') {
            depth = depth.saturating_sub(1);
            continue;
        }
        let name = tag.strip_suffix('/').unwrap_or(tag);
        if name.trim_ascii_end().contains(|it: char| it.is_ascii_whitespace() || it == '=') {
            return wrong(format!("<{tag}> has an attribute"));
        }
        if name.len() == tag.len() {
            depth += 1;
            if DEPTH_MAX < depth {
                return Err(too_deep());
            }
        }
    }
    Ok(())
}

/// The texts of an element, without those of elements in it.
fn text_of<'a>(node: Node<'a, '_>) -> Cow<'a, str> {
    let mut texts = node.children().filter(Node::is_text).filter_map(|it| it.text());
    let first = texts.next().unwrap_or_default();
    texts.fold(Cow::Borrowed(first), |all, it| all + it)
}

fn child<'a, 'b>(node: Node<'a, 'b>, name: &str) -> Option<Node<'a, 'b>> {
    node.children().find(|it| it.is_element() && it.tag_name().name() == name)
}

fn only<'a, 'b>(node: Node<'a, 'b>, name: &str) -> Result<Node<'a, 'b>, XmlRpcError> {
    let found = child(node, name);
    found.map_or_else(|| wrong(format!("<{}> has no <{name}>", node.tag_name().name())), Ok)
}

/// The elements of a node, each of which has this name.
fn elements<'a, 'b>(
    node: Node<'a, 'b>,
    name: &'static str,
) -> impl Iterator<Item = Result<Node<'a, 'b>, XmlRpcError>> {
    node.children().filter(Node::is_element).map(move |it| match it.tag_name().name() {
        found if found == name => Ok(it),
        found => wrong(format!("<{}> stands where only <{name}> may", shortened(found))),
    })
}

fn param(node: Result<Node<'_, '_>, XmlRpcError>) -> Result<Value, XmlRpcError> {
    Value::parse(only(node?, "value")?, NESTING_MAX)
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(xml: &str) -> Result<Value, XmlRpcError> {
        let call = format!(
            "<methodCall><methodName>m</methodName><params><param>{xml}</param></params></methodCall>"
        );
        Call::parse(call.as_bytes()).map(|mut it| it.params.remove(0))
    }

    #[test]
    fn each_type_is_read() {
        for (xml, expected) in [
            ("<value><int>-5</int></value>", Value::Int(-5)),
            ("<value>\n <i4> 7 </i4>\n</value>", Value::Int(7)),
            ("<value><boolean>1</boolean></value>", Value::Bool(true)),
            ("<value><double>-1.5e3</double></value>", Value::Double(-1500.0)),
            ("<value><double>inf</double></value>", Value::Double(f64::INFINITY)),
            ("<value> a b </value>", Value::from(" a b ")),
            ("<value></value>", Value::from("")),
            ("<value/>", Value::from("")),
            ("<value><string></string></value>", Value::from("")),
            ("<value><string/></value>", Value::from("")),
            (
                "<value><string>a &lt;&amp;&#233;&gt;<!-- x --><![CDATA[<b>]]></string></value>",
                Value::from("a <&é><b>"),
            ),
            (
                "<value><dateTime.iso8601>19980717T14:08:55</dateTime.iso8601></value>",
                Value::DateTime("19980717T14:08:55".to_owned()),
            ),
            ("<value><base64>aGV\n sbG8=\n</base64></value>", Value::Base64(b"hello".to_vec())),
            ("<value><nil/></value>", Value::Nil),
            ("<value><array><data/></array></value>", Value::Array(Vec::new())),
            (
                "<value><array> <data> <value>a</value> </data> </array></value>",
                Value::from(vec![Value::from("a")]),
            ),
            (
                "<value><struct><member><name>a</name><value>1</value></member>\
                 <member><name>b</name><value>2</value></member>\
                 <member><name>a</name><value>3</value></member></struct></value>",
                Value::Struct(vec![
                    ("a".to_owned(), Value::from("3")),
                    ("b".to_owned(), Value::from("2")),
                ]),
            ),
        ] {
            assert_eq!(value(xml), Ok(expected), "{xml}");
        }
        assert!(
            value("<value><double>nan</double></value>").unwrap().as_double().unwrap().is_nan()
        );
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for xml in [
            "",
            "<valu/>",
            "<value><int>2147483648</int></value>",
            "<value><int>1.0</int></value>",
            "<value><int></int></value>",
            "<value><boolean>true</boolean></value>",
            "<value><double>x</double></value>",
            "<value><base64>a</base64></value>",
            "<value><int>1</int><int>2</int></value>",
            "<value><thing>1</thing></value>",
            "<value><array/></value>",
            "<value><array><data><int>1</int></data></array></value>",
            "<value><struct><member><name>a</name></member></struct></value>",
            "<value><struct><member><value>a</value><name>a</name></member></struct></value>",
            "<value><struct><int>1</int></struct></value>",
            "<value><string>&unknown;</string></value>",
            "<value a=\"1\">1</value>",
            "<value>1",
        ] {
            assert!(value(xml).is_err(), "{xml}");
        }
    }

    #[test]
    fn calls_of_nodes_are_read() {
        // As xmlrpcpp and Python write them.
        for text in [
            "<?xml version=\"1.0\"?>\r\n<methodCall><methodName>getPid</methodName>\r\n<params><param><value>/a</value></param></params></methodCall>\r\n",
            "<?xml version='1.0'?>\n<methodCall>\n<methodName>getPid</methodName>\n<params>\n<param>\n<value><string>/a</string></value>\n</param>\n</params>\n</methodCall>\n",
        ] {
            assert_eq!(
                Call::parse(text.as_bytes()),
                Ok(Call::new("getPid", vec![Value::from("/a")]))
            );
        }
        let bare = "<methodCall><methodName>m</methodName></methodCall>";
        assert_eq!(Call::parse(bare.as_bytes()), Ok(Call::new("m", Vec::new())));
        for text in [
            "",
            "<methodCall/>",
            "<methodCall><methodName/></methodCall>",
            "<methodResponse/>",
            "<methodCall><methodName>m</methodName><params><value/></params></methodCall>",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><methodCall><methodName>m</methodName></methodCall>",
            "<methodCall><methodName>m</methodName><params></methodCall>",
        ] {
            assert!(Call::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Call::parse(b"<methodCall><methodName>\xff</methodName></methodCall>").is_err());
        let long = "m".repeat(METHOD_BYTES_MAX + 1);
        assert!(Call::parse(Call::new(&long, Vec::new()).encode().as_bytes()).is_err());
    }

    #[test]
    fn replies_of_ros_have_three_parts() {
        let reply = Reply::success("done", Value::Int(5));
        assert_eq!(Reply::parse(reply.encode().as_bytes()), Ok(reply.clone()));
        assert_eq!(reply.ros(), Ok(Value::Int(5)));
        assert_eq!(Reply::failure(-1, "no").ros(), Err("no".to_owned()));
        assert_eq!(Reply::failure(0, "").ros(), Err("code 0".to_owned()));
        let fault = Reply::Fault { code: 3, text: "a < b".to_owned() };
        assert_eq!(Reply::parse(fault.encode().as_bytes()), Ok(fault.clone()));
        assert_eq!(fault.ros(), Err("fault 3: a < b".to_owned()));
        assert!(Reply::Value(Value::Int(1)).ros().is_err());
        assert!(Reply::Value(Value::from(vec![Value::Int(1)])).ros().is_err());
        assert!(Reply::parse(b"<methodResponse><params/></methodResponse>").is_err());
    }

    #[test]
    fn limits_are_refused() {
        let nested = |levels| (0..levels).fold(Value::Int(1), |it, _| Value::from(vec![it]));
        let text = |levels| Call::new("m", vec![nested(levels)]).encode();
        assert!(Call::parse(text(NESTING_MAX).as_bytes()).is_ok());
        let error = Call::parse(text(NESTING_MAX + 1).as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "this is not XML-RPC: values are nested deeper than 64 levels");
        assert!(Call::parse("<value>".repeat(1_000_000).as_bytes()).is_err());
        let many = Call::new("m", vec![Value::from(""); ELEMENTS_MAX as usize / 3]);
        assert!(Call::parse(many.encode().as_bytes()).is_err());
    }

    #[test]
    fn what_xml_cannot_have_is_replaced() {
        let call = Call::new("m", vec![Value::from("a\0b\u{1b}")]);
        let read = Call::parse(call.encode().as_bytes()).unwrap();
        assert_eq!(read.params, [Value::from("a\u{fffd}b\u{fffd}")]);
    }
}
