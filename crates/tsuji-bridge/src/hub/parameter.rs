//! The parameters of nodes as rosapi tells and sets them, by the services that every node of ROS 2 has for them.
//!
//! What is here decides: which request comes next, and what is answered. `Callers` asks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji::{EndpointKind, Graph, Message as _};
use tsuji_interfaces::rcl_interfaces::srv::GetParametersResponse;
use tsuji_rosbridge::access::Act;

use super::rosapi::full_name;
use crate::tree;

/// The services of rosapi that are answered so.
pub(super) const SERVICES: &[&str] =
    &["get_param", "set_param", "has_param", "delete_param", "search_param", "get_param_names"];

/// What a client wants of a parameter.
#[derive(Debug)]
pub(super) struct Asked {
    node: String,
    name: String,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Its value; if it has none this one, as a text of JSON.
    Get {
        otherwise: Option<String>,
    },
    Has,
    /// To have this one.
    Set {
        value: Said,
    },
    /// To have none.
    Delete,
    /// The same two, of which the node has been told.
    Told,
}

/// What a client wants to know of parameters.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Of one.
    One(Asked),
    /// The names of all, or where there is one the first that ends so.
    Names { last: Option<String> },
}

/// A request to a node.
#[derive(Debug)]
pub(super) struct Step {
    /// The full name of the service.
    pub(super) service: Arc<str>,
    /// Its type.
    pub(super) ty: &'static str,
    /// What is asked, as JSON, in which a float may be what Python writes for one that is not finite.
    pub(super) request: String,
}

/// What follows a reply.
#[derive(Debug)]
pub(super) enum Next {
    /// This is answered.
    Answer(Value),
    /// This is asked, with the same question in mind.
    Ask(Asked, Step),
}

/// What is wanted by a call of one of [`SERVICES`], or what is the matter with its arguments.
pub(super) fn wanted(service: &str, args: &Value) -> Result<Wanted, String> {
    let text = |field: &str, place| tree::text_of(args, service, field, place);
    let what = match service {
        "get_param_names" => return Ok(Wanted::Names { last: None }),
        "get_param" => What::Get {
            otherwise: text("default_value", 1).ok().filter(|it| !it.is_empty()).map(read),
        },
        "has_param" => What::Has,
        "search_param" => match text("name", 0)? {
            name if name.contains(':') => What::Has,
            name => return Ok(Wanted::Names { last: Some(name.to_owned()) }),
        },
        "set_param" => {
            let value = text("value", 1)?;
            let value = Said::parse(value).map_err(|error| {
                format!("set_param: value: found {value:?}; expected a text of JSON: {error}")
            })?;
            What::Set { value }
        }
        _ => What::Delete,
    };
    let whole = text("name", 0)?;
    let parts = whole.split_once(':').filter(|(node, name)| !node.is_empty() && !name.is_empty());
    let Some((node, name)) = parts else {
        return Err(format!("{service}: name: found {whole:?}; expected NODE:PARAMETER"));
    };
    Ok(Wanted::One(Asked { node: full_name(node), name: name.to_owned(), what }))
}

/// A text of JSON, or as it stands where it is none.
fn read(text: &str) -> String {
    match Said::parse(text) {
        Ok(said) => said.text,
        Err(_) => Value::from(text).to_string(),
    }
}

/// A value as a client says it, in JSON with the words that Python has for what is not finite.
#[derive(Debug)]
struct Said {
    text: String,
    /// The same with a finite number for each that is not, which tells the type.
    shape: Value,
}

impl Said {
    fn parse(text: &str) -> serde_json::Result<Self> {
        let shape = serde_json::from_str(&with_finite_numbers(text))?;
        Ok(Self { text: text.trim().to_owned(), shape })
    }
}

/// A text of JSON with a number in the place of each that is not finite: of Python's words, and of what no float can hold.
fn with_finite_numbers(text: &str) -> String {
    const FINITE: &str = "0.5";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_of_word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '+' | '.');
        let len = match first {
            '"' => text_len(rest),
            it if is_of_word(it) => rest.find(|it: char| !is_of_word(it)).unwrap_or(rest.len()),
            other => other.len_utf8(),
        };
        let (word, behind) = rest.split_at(len);
        out.push_str(if is_not_finite(word) { FINITE } else { word });
        rest = behind;
    }
    out
}

fn is_not_finite(word: &str) -> bool {
    let digit = |it: char| it.is_ascii_digit();
    let is_number = word.trim_start_matches('-').starts_with(digit) && word.ends_with(digit);
    matches!(word, "NaN" | "Infinity" | "-Infinity")
        || (is_number && word.parse::<f64>().is_ok_and(f64::is_infinite))
}

/// Bytes of the text of JSON that begins here, with its quotes; all where its end is missing.
fn text_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '"' if !is_escaped => return at + 1,
            _ => is_escaped = letter == '\\' && !is_escaped,
        }
    }
    text.len()
}

impl Step {
    /// The services of a node.
    pub(super) const LIST: &str = "/list_parameters";
    pub(super) const GET: &str = "/get_parameters";
    pub(super) const SET: &str = "/set_parameters";

    /// Which parameters a node has.
    pub(super) fn list(node: &str) -> Self {
        // A depth of 0 is any.
        let request = json!({ "prefixes": [], "depth": 0 });
        Self::of(node, Self::LIST, "rcl_interfaces/srv/ListParameters", request.to_string())
    }

    /// Which values these have.
    pub(super) fn get(node: &str, names: &[String]) -> Self {
        let request = json!({ "names": names });
        Self::of(node, Self::GET, "rcl_interfaces/srv/GetParameters", request.to_string())
    }

    /// To give each of these its value, a text of JSON.
    pub(super) fn set<'a>(
        node: &str,
        values: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let each = values
            .into_iter()
            .map(|(name, value)| format!(r#"{{"name":{},"value":{value}}}"#, Value::from(name)));
        let each: Vec<String> = each.collect();
        let request = format!(r#"{{"parameters":[{}]}}"#, each.join(","));
        Self::of(node, Self::SET, "rcl_interfaces/srv/SetParameters", request)
    }

    fn of(node: &str, service: &str, ty: &'static str, request: String) -> Self {
        Self { service: format!("{node}{service}").into(), ty, request }
    }
}

/// The nodes that serve their parameters.
pub(super) fn nodes(graph: &Graph) -> BTreeSet<&str> {
    let servers = graph.services.iter().filter(|it| it.kind == EndpointKind::Server);
    servers.filter_map(|it| it.topic.strip_suffix(Step::LIST)).collect()
}

impl Asked {
    /// The whole name.
    pub(super) fn whole(&self) -> String {
        format!("{}:{}", self.node, self.name)
    }

    /// What the client wants to do with the parameter.
    pub(super) fn act(&self) -> Act {
        match self.what {
            What::Get { .. } | What::Has => Act::ReadParameter,
            What::Set { .. } | What::Delete | What::Told => Act::WriteParameter,
        }
    }

    /// What to ask first: whatever is wanted, it is seen from what there is.
    pub(super) fn begin(&self) -> Step {
        Step::get(&self.node, std::slice::from_ref(&self.name))
    }

    /// What follows a reply of the node, to the client's call of `service`. `cdr` is the same reply as it came, for what JSON has
    /// no words for.
    pub(super) fn go_on(self, service: &str, reply: &Value, cdr: &[u8]) -> Next {
        let value = &reply["values"][0];
        let ty = value["type"].as_u64().unwrap_or(NOT_SET);
        let is_set = ty != NOT_SET && FIELDS.get(ty as usize).is_some();
        let none = || format!("{} has no parameter {}", self.node, self.name);
        let wanted = match &self.what {
            What::Get { .. } if is_set => {
                let text =
                    floats(ty, cdr).unwrap_or_else(|| value[FIELDS[ty as usize]].to_string());
                return Next::Answer(json!({ "value": text, "successful": true, "reason": "" }));
            }
            What::Get { .. } => return Next::Answer(self.failed(service, &none())),
            What::Has => return Next::Answer(self.found(service, is_set)),
            What::Told => {
                let result = &reply["results"][0];
                let (successful, reason) = (&result["successful"], &result["reason"]);
                return Next::Answer(json!({ "successful": successful, "reason": reason }));
            }
            What::Set { value } => parameter_value(value, ty),
            What::Delete if is_set => Ok(json!({ "type": NOT_SET }).to_string()),
            What::Delete => Err(none()),
        };
        match wanted {
            Ok(value) => {
                let step = Step::set(&self.node, [(&*self.name, &*value)]);
                Next::Ask(Self { what: What::Told, ..self }, step)
            }
            Err(why) => Next::Answer(self.failed(service, &why)),
        }
    }

    /// What is answered where the node does not.
    pub(super) fn failed(&self, service: &str, why: &str) -> Value {
        match &self.what {
            What::Get { otherwise: Some(value) } => {
                json!({ "value": value, "successful": true, "reason": why })
            }
            What::Get { otherwise: None } => {
                json!({ "value": "null", "successful": false, "reason": why })
            }
            What::Has => self.found(service, false),
            What::Set { .. } | What::Delete | What::Told => {
                json!({ "successful": false, "reason": why })
            }
        }
    }

    fn found(&self, service: &str, is_there: bool) -> Value {
        match service {
            "search_param" if is_there => json!({ "global_name": self.whole() }),
            "search_param" => json!({ "global_name": "" }),
            _ => json!({ "exists": is_there }),
        }
    }
}

/// A value of JSON as `rcl_interfaces/msg/ParameterValue`, where the parameter has that type now. JavaScript has one kind of numbers,
/// so that for a double `1` is `1.0`; of an empty list the type is that of what is there.
fn parameter_value(value: &Said, ty: u64) -> Result<String, String> {
    let Said { text, shape } = value;
    let of = |ty: u64| Ok(format!(r#"{{"type":{ty},"{}":{text}}}"#, FIELDS[ty as usize]));
    match shape {
        Value::Bool(_) => of(BOOL),
        Value::Number(_) if ty == DOUBLE => of(DOUBLE),
        Value::Number(number) if number.is_i64() => of(INTEGER),
        Value::Number(number) if number.is_f64() => of(DOUBLE),
        // Of bytes messages have base64, and so has this.
        Value::String(_) if ty == BYTE_ARRAY => of(BYTE_ARRAY),
        Value::String(_) => of(STRING),
        Value::Array(items) => match list_type(items, ty) {
            Some(ty) => of(ty),
            None => Err(format!("found {text}; expected {LIST}")),
        },
        _ => Err(format!("found {text}; expected true or false, a number, a text or {LIST}")),
    }
}

/// The same of a value that a client of Foxglove says, with what it says of its type.
pub(super) fn value_of(value: &Value, ty: u64) -> Result<String, String> {
    parameter_value(&Said { text: value.to_string(), shape: value.clone() }, ty)
}

/// The doubles in a reply of `rcl_interfaces/srv/GetParameters`, as Python writes them in JSON. Nothing where it has none.
fn floats(ty: u64, cdr: &[u8]) -> Option<String> {
    let word = |it: f64| match (it.is_nan(), it.is_infinite()) {
        (true, _) => "NaN".to_owned(),
        (_, true) if it.is_sign_negative() => "-Infinity".to_owned(),
        (_, true) => "Infinity".to_owned(),
        _ => Value::from(it).to_string(),
    };
    if ty != DOUBLE && ty != DOUBLE_ARRAY {
        return None;
    }
    let value = GetParametersResponse::deserialize_lossy(cdr).ok()?.values.into_iter().next()?;
    if ty == DOUBLE {
        return Some(word(value.double_value));
    }
    let words: Vec<String> = value.double_array_value.into_iter().map(word).collect();
    Some(format!("[{}]", words.join(",")))
}

fn list_type(items: &[Value], ty: u64) -> Option<u64> {
    let all = |is: fn(&Value) -> bool| items.iter().all(is);
    match items {
        [] => (BYTE_ARRAY..=STRING_ARRAY).contains(&ty).then_some(ty),
        _ if all(Value::is_boolean) => Some(BOOL_ARRAY),
        _ if all(Value::is_string) => Some(STRING_ARRAY),
        _ if all(Value::is_number) && ty == DOUBLE_ARRAY => Some(DOUBLE_ARRAY),
        _ if all(Value::is_i64) && ty == BYTE_ARRAY => Some(BYTE_ARRAY),
        _ if all(Value::is_i64) => Some(INTEGER_ARRAY),
        _ if all(|it| it.is_i64() || it.is_f64()) => Some(DOUBLE_ARRAY),
        _ => None,
    }
}

/// The names of the parameters of all nodes, while they are gathered.
#[derive(Debug)]
pub(super) struct Gathering {
    /// Nodes that are still to be asked.
    nodes: Vec<Arc<str>>,
    /// How many are asked at the moment.
    asked: usize,
    names: BTreeSet<String>,
    /// What the name ends with that is looked for; all if it is none.
    last: Option<String>,
    /// Who has not answered then is left out. It begins with the first that is asked.
    until: Option<Instant>,
}

impl Gathering {
    /// Of the nodes that serve their parameters.
    pub(super) fn new(graph: &Graph, last: Option<String>) -> Self {
        Self {
            nodes: nodes(graph).into_iter().map(Arc::from).collect(),
            asked: 0,
            names: BTreeSet::new(),
            last,
            until: None,
        }
    }

    /// The next node to ask, if another may be asked now.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Arc<str>, Step)> {
        self.until.get_or_insert(now + PATIENCE);
        if ASKED_AT_ONCE <= self.asked {
            return None;
        }
        let node = self.nodes.pop()?;
        self.asked += 1;
        let step = Step::list(&node);
        Some((node, step))
    }

    /// Notes what a node has answered, or that it has not.
    pub(super) fn note(&mut self, node: &str, reply: Option<&Value>) {
        self.asked -= 1;
        let names = reply.and_then(|it| it["result"]["names"].as_array());
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        self.names.extend(names.map(|it| format!("{node}:{it}")));
    }

    /// Whether all have answered, or have had their time.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let is_late = self.until.is_some_and(|it| it <= now);
        is_late || (self.nodes.is_empty() && self.asked == 0)
    }

    /// What is answered, of the names that the client may know.
    pub(super) fn answer(mut self, may_know: impl Fn(&str) -> bool) -> Value {
        self.names.retain(|it| may_know(it));
        let Some(last) = self.last else { return json!({ "names": self.names }) };
        let found = self.names.iter().find(|it| it.split_once(':').is_some_and(|it| it.1 == last));
        json!({ "global_name": found.map_or("", String::as_str) })
    }
}

/// As `rcl_interfaces/msg/ParameterType` numbers them.
pub(super) const NOT_SET: u64 = 0;
const BOOL: u64 = 1;
const INTEGER: u64 = 2;
pub(super) const DOUBLE: u64 = 3;
const STRING: u64 = 4;
pub(super) const BYTE_ARRAY: u64 = 5;
const BOOL_ARRAY: u64 = 6;
const INTEGER_ARRAY: u64 = 7;
pub(super) const DOUBLE_ARRAY: u64 = 8;
const STRING_ARRAY: u64 = 9;

/// Where the value stands, by the number of its type.
pub(super) const FIELDS: [&str; 10] = [
    "",
    "bool_value",
    "integer_value",
    "double_value",
    "string_value",
    "byte_array_value",
    "bool_array_value",
    "integer_array_value",
    "double_array_value",
    "string_array_value",
];

const LIST: &str = "a list of texts, of numbers or of truth values, which is not empty unless the parameter is a list";

/// Nodes that are asked for their names at a time.
const ASKED_AT_ONCE: usize = 64;

/// How long nodes may take to tell their names. rosapi's callers wait for 5 s.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use tsuji_interfaces::rcl_interfaces::msg::ParameterValue;

    use super::*;

    fn asked(service: &str, args: Value) -> Asked {
        match wanted(service, &args).unwrap() {
            Wanted::One(asked) => asked,
            other => panic!("{other:?}"),
        }
    }

    fn answered(service: &str, args: Value, reply: Value) -> Value {
        match asked(service, args).go_on(service, &reply, &[]) {
            Next::Answer(value) => value,
            other => panic!("{other:?}"),
        }
    }

    /// What follows when a parameter of this type is to have a value.
    fn set(text: &str, ty: u64) -> Next {
        let args = json!({ "name": "/a:b", "value": text });
        let reply = json!({ "values": [{ "type": ty }] });
        asked("set_param", args).go_on("set_param", &reply, &[])
    }

    fn parsed(step: &Step) -> Value {
        serde_json::from_str(&step.request).unwrap()
    }

    /// As Python's `json` writes it.
    #[test]
    fn what_is_not_finite_comes_in_and_goes_out() {
        let set = |text: &str, ty: u64| match set(text, ty) {
            Next::Ask(_, step) => step.request,
            Next::Answer(answer) => panic!("{answer}"),
        };
        let value = |value: &str| format!(r#"{{"parameters":[{{"name":"b","value":{value}}}]}}"#);
        for word in ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"] {
            let expected = value(&format!(r#"{{"type":3,"double_value":{word}}}"#));
            assert_eq!(set(word, 3), expected);
            assert_eq!(set(&format!(" {word} "), 0), expected);
        }
        let expected = value(r#"{"type":8,"double_array_value":[1, NaN,-Infinity]}"#);
        assert_eq!(set("[1, NaN,-Infinity]", 0), expected);
        let text = r#""\"NaN\\" "#;
        let expected = value(&format!(r#"{{"type":4,"string_value":{}}}"#, text.trim()));
        assert_eq!(set(text, 0), expected);
        for wrong in ["-NaN", "Nan", "+Infinity", "inf", "[NaN", "\"NaN", "+1e999"] {
            let args = json!({ "name": "/a:b", "value": wrong });
            assert!(wanted("set_param", &args).unwrap_err().contains("a text of JSON"), "{wrong}");
        }

        let get = |reply: ParameterValue| {
            let json = json!({ "values": [{ "type": reply.r#type }] });
            let reply = GetParametersResponse { values: vec![reply] }.to_vec().unwrap();
            let asked = asked("get_param", json!({ "name": "/a:b" }));
            let Next::Answer(answer) = asked.go_on("get_param", &json, &reply) else { panic!() };
            answer["value"].as_str().unwrap().to_owned()
        };
        let double = |double_value: f64| {
            get(ParameterValue { r#type: 3, double_value, ..Default::default() })
        };
        let words = [double(f64::NAN), double(f64::INFINITY), double(f64::NEG_INFINITY)];
        assert_eq!(words, ["NaN", "Infinity", "-Infinity"]);
        assert_eq!([double(2.0), double(-0.1)], ["2.0", "-0.1"]);
        let list = vec![0.5, f64::NAN, f64::INFINITY];
        let list = ParameterValue { r#type: 8, double_array_value: list, ..Default::default() };
        assert_eq!(get(list), "[0.5,NaN,Infinity]");
        let args = json!({ "name": "/a:b", "default_value": "Infinity" });
        let answer = answered("get_param", args, json!({ "values": [] }));
        assert_eq!((&answer["value"], &answer["successful"]), (&json!("Infinity"), &json!(true)));
    }

    #[test]
    fn values_go_out_as_texts_of_json() {
        for (ty, field, value, text) in [
            (1, "bool_value", json!(true), "true"),
            (2, "integer_value", json!(i64::MIN), "-9223372036854775808"),
            (3, "double_value", json!(2.0), "2.0"),
            (4, "string_value", json!("a \"b\""), "\"a \\\"b\\\"\""),
            (9, "string_array_value", json!(["a", "b"]), "[\"a\",\"b\"]"),
        ] {
            let mut reply = json!({ "values": [{ "type": ty }] });
            reply["values"][0][field] = value;
            let answer = answered("get_param", json!({ "name": "/a:b" }), reply);
            assert_eq!(answer, json!({ "value": text, "successful": true, "reason": "" }));
        }
        let none = json!({ "values": [] });
        let answer = answered("get_param", json!(["a:b", "[1]"]), none.clone());
        assert_eq!((&answer["value"], &answer["successful"]), (&json!("[1]"), &json!(true)));
        let answer = answered("get_param", json!({ "name": "a:b", "default_value": "" }), none);
        let expected =
            json!({ "value": "null", "successful": false, "reason": "/a has no parameter b" });
        assert_eq!(answer, expected);
    }

    #[test]
    fn values_come_in_as_what_they_are_or_as_the_parameter_is() {
        let set = |text: &str, ty: u64| match set(text, ty) {
            Next::Ask(_, step) => {
                assert_eq!(&*step.service, "/a/set_parameters");
                parsed(&step)["parameters"][0]["value"].clone()
            }
            Next::Answer(answer) => answer["reason"].clone(),
        };
        assert_eq!(set("true", 0), json!({ "type": 1, "bool_value": true }));
        assert_eq!(set("1", 0), json!({ "type": 2, "integer_value": 1 }));
        assert_eq!(set("1", 3), json!({ "type": 3, "double_value": 1 }));
        assert_eq!(set("1.5", 2), json!({ "type": 3, "double_value": 1.5 }));
        assert_eq!(set("\"1\"", 2), json!({ "type": 4, "string_value": "1" }));
        assert_eq!(set("[1, 2]", 0), json!({ "type": 7, "integer_array_value": [1, 2] }));
        assert_eq!(set("[1, 2]", 8), json!({ "type": 8, "double_array_value": [1, 2] }));
        assert_eq!(set("[1, 2.5]", 7), json!({ "type": 8, "double_array_value": [1, 2.5] }));
        assert_eq!(set("[]", 9), json!({ "type": 9, "string_array_value": [] }));
        for wrong in ["[]", "null", "{}", "[1, \"a\"]", "[[1]]", "18446744073709551615"] {
            let why = set(wrong, 0);
            assert!(why.as_str().unwrap().contains("expected"), "{wrong}: {why}");
        }
    }

    #[test]
    fn what_is_asked_wrongly_is_said() {
        for (service, args, expected) in [
            ("get_param", json!({ "name": "b" }), "found \"b\"; expected NODE:PARAMETER"),
            ("has_param", json!({ "name": ":b" }), "expected NODE:PARAMETER"),
            ("delete_param", json!({ "name": 7 }), "name: found 7; expected a text"),
            ("set_param", json!({ "name": "a:b", "value": "{" }), "expected a text of JSON"),
            ("set_param", json!({ "name": "a:b" }), "value: found null; expected a text"),
        ] {
            let why = wanted(service, &args).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn a_parameter_is_deleted_only_where_it_is() {
        let args = json!({ "name": "/a:b" });
        let there = json!({ "values": [{ "type": 4, "string_value": "x" }] });
        let asked = asked("delete_param", args.clone()).go_on("", &there, &[]);
        let Next::Ask(told, step) = asked else { panic!("it is not asked for") };
        assert_eq!(
            parsed(&step),
            json!({ "parameters": [{ "name": "b", "value": { "type": 0 } }] })
        );
        let reply = json!({ "results": [{ "successful": false, "reason": "it is static" }] });
        let Next::Answer(answer) = told.go_on("delete_param", &reply, &[]) else {
            panic!("asked again")
        };
        assert_eq!(answer, json!({ "successful": false, "reason": "it is static" }));
        let answer = answered("delete_param", args, json!({ "values": [{ "type": 0 }] }));
        assert_eq!(answer["successful"], false);
    }

    #[test]
    fn names_are_gathered_from_whoever_answers_in_time() {
        let now = Instant::now();
        let graph = Graph::default();
        let mut all = Gathering::new(&graph, None);
        all.nodes = vec!["/b".into(), "/a".into()];
        let (a, step) = all.next(now).unwrap();
        assert_eq!((&*a, &*step.service), ("/a", "/a/list_parameters"));
        let (b, _) = all.next(now).unwrap();
        assert!(all.next(now).is_none() && !all.is_over(now));
        all.note(&a, Some(&json!({ "result": { "names": ["y", "x.z"] } })));
        assert!(!all.is_over(now) && all.is_over(now + PATIENCE));
        all.note(&b, None);
        assert!(all.is_over(now));
        assert_eq!(all.answer(|it| it != "/a:y"), json!({ "names": ["/a:x.z"] }));
    }
}
