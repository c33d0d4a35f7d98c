//! A ROS 1 master as decisions: what `rosmaster` answers, and whom it tells what.
//!
//! It is handed calls and hands back replies and notices; it opens no socket and reads no clock. Codes and texts of
//! replies are those of `rosmaster`. It differs in four ways:
//!
//! - it has limits, each of which is refused with code 0 and a text that names it (-1 for a name that is too long);
//! - lists are in alphabetical order, but for publishers and subscribers of a topic, which are in the order they came;
//! - when a node takes the place of another, the subscribers of the other's topics are told at once;
//! - a parameter cannot be nil, nor have one in it.

use std::collections::BTreeMap;

use crate::xmlrpc::{Call, Reply, Value};

mod names;
mod parameters;
mod registrations;

use parameters::{Parameters, bytes_of};
use registrations::{Kind, Registrations};

/// The most nodes. One more is refused.
pub const NODES_MAX: usize = 10_000;
/// The most registrations of all nodes together: publishers, subscribers, services, and subscriptions to parameters. One
/// more is refused.
pub const REGISTRATIONS_MAX: usize = 100_000;
/// The most publishers of a topic times its subscribers, which is what a change of it takes to tell. More are refused.
pub const PAIRS_MAX: usize = 250_000;
/// The most topics whose types are known. At that, those of topics nobody is registered for are forgotten, and if there are
/// none the topic is refused.
pub const TYPES_MAX: usize = 50_000;
/// The most bytes of all parameters, of which each takes 64 beside its name and its value. What is more is refused.
pub const PARAMETER_BYTES_MAX: usize = 64 << 20;
/// The most levels of parameters: parts of the name, and nesting of the value. A deeper one is refused.
pub const PARAMETER_LEVELS_MAX: usize = 60;
/// The longest name, type or address, in bytes. A longer one is refused.
pub const NAME_BYTES_MAX: usize = 1024;
/// The most calls in a `system.multicall`. With more all are refused.
pub const MULTICALL_MAX: usize = 10_000;
/// The most bytes of the answers to a `system.multicall`. Calls beyond are refused.
pub const MULTICALL_BYTES_MAX: usize = 128 << 20;
/// The most bytes of the notices that a call leads to. A parameter that takes more is refused.
pub const NOTICE_BYTES_MAX: usize = 128 << 20;

/// A ROS 1 master.
#[derive(Debug)]
pub struct Master {
    uri: String,
    pid: u32,
    registrations: Registrations,
    /// The types of topics, which stay when nobody is registered any more.
    types: BTreeMap<String, String>,
    parameters: Parameters,
    shutdown: Option<String>,
}

/// What a node is to be told.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The publishers of a topic have changed.
    PublisherUpdate {
        /// Address of the node.
        api: String,
        /// The topic.
        topic: String,
        /// Addresses of all its publishers.
        publishers: Vec<String>,
    },
    /// A parameter has changed.
    ParamUpdate {
        /// Address of the node.
        api: String,
        /// The parameter, with a slash at its end.
        key: String,
        /// Its new value; an empty struct if it was deleted.
        value: Value,
    },
    /// The node is to end.
    Shutdown {
        /// Address of the node.
        api: String,
        /// Why.
        reason: String,
    },
}

impl Notice {
    /// Address of the node that is to be told.
    pub fn api(&self) -> &str {
        match self {
            Self::PublisherUpdate { api, .. }
            | Self::ParamUpdate { api, .. }
            | Self::Shutdown { api, .. } => api,
        }
    }

    /// The call that tells the node.
    pub fn to_call(&self) -> Call {
        let caller = || Value::from("/master");
        match self {
            Self::PublisherUpdate { topic, publishers, .. } => {
                let params = vec![caller(), Value::from(topic.as_str()), texts(publishers)];
                Call::new("publisherUpdate", params)
            }
            Self::ParamUpdate { key, value, .. } => {
                Call::new("paramUpdate", vec![caller(), Value::from(key.as_str()), value.clone()])
            }
            Self::Shutdown { reason, .. } => {
                Call::new("shutdown", vec![caller(), Value::from(reason.as_str())])
            }
        }
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::PublisherUpdate { api, topic, publishers } => {
                64 + api.len()
                    + topic.len()
                    + publishers.iter().map(|it| 24 + it.len()).sum::<usize>()
            }
            Self::ParamUpdate { api, key, value } => 64 + api.len() + key.len() + bytes_of(value),
            Self::Shutdown { api, reason } => 64 + api.len() + reason.len(),
        }
    }
}

/// Why a method was not carried out.
#[derive(Debug)]
struct Refusal {
    code: i32,
    text: String,
    /// The value of the reply, if not the usual one of the method.
    value: Option<Value>,
}

impl Refusal {
    /// The caller is wrong.
    fn error(text: String) -> Self {
        Self { code: -1, text, value: None }
    }

    /// The method failed.
    fn failure(text: String) -> Self {
        Self { code: 0, text, value: None }
    }
}

type Outcome = Result<(String, Value), Refusal>;

impl Master {
    /// A master at this address, in a process of this number.
    pub fn new(uri: String, pid: u32) -> Self {
        Self {
            uri,
            pid,
            registrations: Registrations::default(),
            types: BTreeMap::new(),
            parameters: Parameters::default(),
            shutdown: None,
        }
    }

    /// Answers a call and says who is to be told what: each `api` is told in order, as the slave API's method of that name
    /// with caller id `/master`.
    pub fn handle(&mut self, call: &Call) -> (Reply, Vec<Notice>) {
        let mut notices = Notices::default();
        let reply = if call.method == "system.multicall" {
            self.multicall(&call.params, &mut notices)
        } else {
            self.answer(&call.method, &call.params, &mut notices)
        };
        (reply, notices.all)
    }

    /// Who asked the master to end, and why, once somebody has.
    pub fn shutdown_reason(&self) -> Option<&str> {
        self.shutdown.as_deref()
    }

    /// The number of nodes that are registered.
    pub fn node_count(&self) -> usize {
        self.registrations.node_count()
    }

    fn answer(&mut self, method: &str, params: &[Value], notices: &mut Notices) -> Reply {
        let Some((arity, otherwise)) = signature(method) else {
            let text = format!("method {:?} is not supported", shortened(method));
            return Reply::Fault { code: 1, text };
        };
        let outcome = Args::new(params, arity).and_then(|args| self.run(method, &args, notices));
        match outcome {
            Ok((text, value)) => Reply::success(&text, value),
            Err(it) => Reply::triple(it.code, &it.text, it.value.unwrap_or(otherwise)),
        }
    }

    /// As Python's server has it: each answer in a list of its own, or a struct that says what is wrong.
    fn multicall(&mut self, params: &[Value], notices: &mut Notices) -> Reply {
        let fault = |text: String| Reply::Fault { code: 1, text };
        let [Value::Array(calls)] = params else {
            return fault("system.multicall takes one list of calls".to_owned());
        };
        if MULTICALL_MAX < calls.len() {
            return fault(format!("system.multicall takes at most {MULTICALL_MAX} calls"));
        }
        let mut bytes = 0_usize;
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let method = call.member("methodName").and_then(Value::as_str);
            let params = call.member("params").and_then(Value::as_array);
            let reply = match (method, params) {
                (Some("getParam" | "subscribeParam"), Some(params))
                    if MULTICALL_BYTES_MAX < bytes + self.largest_value(params) =>
                {
                    fault(format!("answers take more than {MULTICALL_BYTES_MAX} bytes"))
                }
                (Some(_), Some(_)) if MULTICALL_BYTES_MAX < bytes => {
                    fault(format!("answers take more than {MULTICALL_BYTES_MAX} bytes"))
                }
                (Some("system.multicall"), _) => {
                    fault("recursive system.multicall forbidden".to_owned())
                }
                (Some(method), Some(params)) => self.answer(method, params, notices),
                _ => fault("a call has a methodName and params".to_owned()),
            };
            let answer = match reply {
                Reply::Value(value) => Value::Array(vec![value]),
                Reply::Fault { code, text } => Value::Struct(vec![
                    ("faultCode".to_owned(), Value::Int(code)),
                    ("faultString".to_owned(), Value::from(text)),
                ]),
            };
            bytes += bytes_of(&answer);
            answers.push(answer);
        }
        Reply::Value(Value::Array(answers))
    }

    /// The bytes of what a call that reads a parameter with these arguments would be answered.
    fn largest_value(&self, params: &[Value]) -> usize {
        let caller = params.first().and_then(Value::as_str).unwrap_or_default();
        let key = params.last().and_then(Value::as_str).unwrap_or_default();
        self.parameters.value_bytes(&names::resolve(key, caller))
    }

    fn run(&mut self, method: &str, args: &Args<'_>, notices: &mut Notices) -> Outcome {
        match method {
            "registerPublisher" => self.register_publisher(args, notices),
            "registerSubscriber" => self.register_subscriber(args, notices),
            "registerService" => self.register_service(args, notices),
            "unregisterPublisher" => self.unregister_publisher(args, notices),
            "unregisterSubscriber" => {
                let (topic, api) = (args.name(0, "topic")?, args.api(1, "caller_api")?);
                Ok(self.unregister(Kind::Subscriber, &topic, args.caller, api))
            }
            "unregisterService" => {
                let (service, api) = (args.name(0, "service")?, args.api(1, "service_api")?);
                Ok(self.unregister(Kind::Service, &service, args.caller, api))
            }
            "lookupService" => {
                let service = args.name(0, "service")?;
                match self.registrations.service_api(&service) {
                    Some(api) => Ok((format!("rosrpc URI: [{api}]"), Value::from(api))),
                    None => Err(Refusal::error("no provider".to_owned())),
                }
            }
            "lookupNode" => {
                let node = args.resolved(0, "node")?;
                match self.registrations.node_api(&node) {
                    Some(api) => Ok(("node api".to_owned(), Value::from(api))),
                    None => Err(Refusal::error(format!("unknown node [{node}]"))),
                }
            }
            "getPublishedTopics" => self.published_topics(args),
            "getTopicTypes" => {
                let types = self.types.iter().map(|(topic, it)| pair(topic, it));
                Ok(("current system state".to_owned(), Value::Array(types.collect())))
            }
            "getSystemState" => {
                let kinds = [Kind::Publisher, Kind::Subscriber, Kind::Service];
                let state = kinds.map(|it| self.registrations.state(it));
                Ok(("current system state".to_owned(), Value::Array(state.into())))
            }
            "getUri" => Ok((String::new(), Value::from(self.uri.as_str()))),
            "getPid" => {
                Ok((String::new(), Value::Int(i32::try_from(self.pid).unwrap_or(i32::MAX))))
            }
            "shutdown" => {
                let message = args.params.first().and_then(Value::as_str).unwrap_or_default();
                let reason = format!("[{}] {}", args.caller, shortened(message));
                self.shutdown.get_or_insert(reason);
                Ok(("shutdown".to_owned(), Value::Int(0)))
            }
            "deleteParam" => self.delete_param(args, notices),
            "setParam" => self.set_param(args, notices),
            "getParam" => {
                let key = args.key(0)?;
                match self.parameters.value(&key) {
                    Some(value) => Ok((format!("Parameter [{key}]"), value)),
                    None => Err(Refusal::error(format!("Parameter [{key}] is not set"))),
                }
            }
            "searchParam" => {
                let key = args.text(0, "key")?;
                match self.parameters.search(args.caller, key)? {
                    Some(found) => Ok((format!("Found [{found}]"), Value::from(found))),
                    None => Err(Refusal {
                        code: -1,
                        text: format!("Cannot find parameter [{key}] in an upwards search"),
                        value: Some(Value::from("")),
                    }),
                }
            }
            "hasParam" => {
                let key = args.key(0)?;
                let has = self.parameters.has(&key);
                Ok((key, Value::Bool(has)))
            }
            "getParamNames" => Ok(("Parameter names".to_owned(), texts(&self.parameters.names()))),
            "subscribeParam" => {
                let (api, key) = (args.api(0, "caller_api")?, args.key(1)?);
                let subscribed = parameters::subscribed(&key);
                self.register(Kind::Parameter, &subscribed, args.caller, api, None, notices)?;
                let value = self.parameters.value(&key).unwrap_or(Value::Struct(Vec::new()));
                Ok((format!("Subscribed to parameter [{key}]"), value))
            }
            "unsubscribeParam" => {
                let (api, key) = (args.api(0, "caller_api")?, args.key(1)?);
                let subscribed = parameters::subscribed(&key);
                self.unregister(Kind::Parameter, &subscribed, args.caller, api);
                Ok((format!("Unsubscribe to parameter [{key}]"), Value::Int(1)))
            }
            _ => Err(Refusal::failure(format!("method {method:?} is not supported"))),
        }
    }

    fn register_publisher(&mut self, args: &Args<'_>, notices: &mut Notices) -> Outcome {
        let (topic, kind) = (args.name(0, "topic")?, args.type_name(1, "topic_type")?);
        let api = args.api(2, "caller_api")?;
        self.make_room_for_type(&topic)?;
        self.register(Kind::Publisher, &topic, args.caller, api, None, notices)?;
        if kind != ANY_TYPE || !self.types.contains_key(&topic) {
            self.types.insert(topic.clone(), kind.to_owned());
        }
        self.tell_publishers(&topic, notices);
        let subscribers = texts(&self.registrations.apis(Kind::Subscriber, &topic));
        Ok((format!("Registered [{}] as publisher of [{topic}]", args.caller), subscribers))
    }

    fn register_subscriber(&mut self, args: &Args<'_>, notices: &mut Notices) -> Outcome {
        let (topic, kind) = (args.name(0, "topic")?, args.type_name(1, "topic_type")?);
        let api = args.api(2, "caller_api")?;
        self.make_room_for_type(&topic)?;
        self.register(Kind::Subscriber, &topic, args.caller, api, None, notices)?;
        if kind != ANY_TYPE && !self.types.contains_key(&topic) {
            self.types.insert(topic.clone(), kind.to_owned());
        }
        let publishers = texts(&self.registrations.apis(Kind::Publisher, &topic));
        Ok((format!("Subscribed to [{topic}]"), publishers))
    }

    fn register_service(&mut self, args: &Args<'_>, notices: &mut Notices) -> Outcome {
        let (service, service_api) = (args.name(0, "service")?, args.api(1, "service_api")?);
        let api = args.api(2, "caller_api")?;
        self.register(Kind::Service, &service, args.caller, api, Some(service_api), notices)?;
        let text = format!("Registered [{}] as provider of [{service}]", args.caller);
        Ok((text, Value::Int(1)))
    }

    fn unregister_publisher(&mut self, args: &Args<'_>, notices: &mut Notices) -> Outcome {
        let (topic, api) = (args.name(0, "topic")?, args.api(1, "caller_api")?);
        let (text, is_done) =
            self.registrations.unregister(Kind::Publisher, &topic, args.caller, api);
        if is_done {
            self.tell_publishers(&topic, notices);
        }
        Ok((text, Value::Int(is_done.into())))
    }

    fn unregister(&mut self, kind: Kind, key: &str, caller: &str, api: &str) -> (String, Value) {
        let (text, is_done) = self.registrations.unregister(kind, key, caller, api);
        (text, Value::Int(is_done.into()))
    }

    fn register(
        &mut self,
        kind: Kind,
        key: &str,
        caller: &str,
        api: &str,
        service_api: Option<&str>,
        notices: &mut Notices,
    ) -> Result<(), Refusal> {
        self.registrations.check(kind, key, caller, api)?;
        let Some(old) = self.registrations.register(kind, key, caller, api, service_api) else {
            return Ok(());
        };
        let reason = format!("[{caller}] Reason: new node registered with same name");
        notices.push(Notice::Shutdown { api: old.api, reason });
        for topic in old.topics.iter().filter(|it| kind != Kind::Publisher || *it != key) {
            // Their own connections tell them too, if that is too much.
            if NOTICE_BYTES_MAX < notices.bytes {
                break;
            }
            self.tell_publishers(topic, notices);
        }
        Ok(())
    }

    fn tell_publishers(&self, topic: &str, notices: &mut Notices) {
        let publishers = self.registrations.apis(Kind::Publisher, topic);
        for api in self.registrations.apis(Kind::Subscriber, topic) {
            let (topic, publishers) = (topic.to_owned(), publishers.clone());
            notices.push(Notice::PublisherUpdate { api, topic, publishers });
        }
    }

    fn make_room_for_type(&mut self, topic: &str) -> Result<(), Refusal> {
        if self.types.len() < TYPES_MAX || self.types.contains_key(topic) {
            return Ok(());
        }
        self.types.retain(|topic, _| self.registrations.has_topic(topic));
        if self.types.len() < TYPES_MAX {
            return Ok(());
        }
        Err(Refusal::failure(format!("the master has at most {TYPES_MAX} topics")))
    }

    fn published_topics(&self, args: &Args<'_>) -> Outcome {
        let subgraph = args.params.first().and_then(Value::as_str).ok_or_else(|| {
            Refusal::error("ERROR: parameter [subgraph] must be a string".to_owned())
        })?;
        check_length("parameter [subgraph]", subgraph)?;
        let mut within = String::new();
        if !subgraph.is_empty() {
            within = names::resolve(subgraph, args.caller);
            if !within.ends_with('/') {
                within.push('/');
            }
        }
        let topics = self.registrations.keys(Kind::Publisher).filter(|it| it.starts_with(&within));
        let pairs = topics.map(|it| pair(it, self.types.get(it).map_or(ANY_TYPE, String::as_str)));
        Ok(("current topics".to_owned(), Value::Array(pairs.collect())))
    }

    fn set_param(&mut self, args: &Args<'_>, notices: &mut Notices) -> Outcome {
        let key = args.key(0)?;
        let value = args.params.get(1).filter(|it| **it != Value::Nil).ok_or_else(|| {
            Refusal::error("ERROR: parameter [value] must be specified".to_owned())
        })?;
        self.parameters.check(&key, value)?;
        self.tell_param(&key, value, Some(args.caller), notices)?;
        self.parameters.set(&key, value.clone());
        Ok((format!("parameter {key} set"), Value::Int(0)))
    }

    fn delete_param(&mut self, args: &Args<'_>, notices: &mut Notices) -> Outcome {
        let key = args.key(0)?;
        if !self.parameters.delete(&key) {
            return Err(Refusal::error(format!("parameter [{key}] is not set")));
        }
        self.tell_param(&key, &Value::Struct(Vec::new()), None, notices)?;
        Ok((format!("parameter {key} deleted"), Value::Int(0)))
    }

    /// Tells subscribers of a parameter about it, except `caller`, who knows.
    fn tell_param(
        &self,
        key: &str,
        value: &Value,
        caller: Option<&str>,
        notices: &mut Notices,
    ) -> Result<(), Refusal> {
        let subscriptions = self.registrations.keys(Kind::Parameter);
        // Each subscription is told once at most, and no more than this value.
        let most = subscriptions
            .filter(|it| {
                it.starts_with(&parameters::subscribed(key))
                    || parameters::subscribed(key).starts_with(it)
            })
            .map(|it| {
                (1 + self.registrations.providers(Kind::Parameter, it).len()) * bytes_of(value)
            })
            .sum::<usize>();
        if caller.is_some() && NOTICE_BYTES_MAX < notices.bytes + most {
            let text = format!("telling its subscribers takes more than {NOTICE_BYTES_MAX} bytes");
            return Err(Refusal::failure(text));
        }
        for update in parameters::updates(self.registrations.keys(Kind::Parameter), key, value) {
            for (node, api) in self.registrations.providers(Kind::Parameter, &update.subscription) {
                if update.is_known_to_caller && caller == Some(node) {
                    continue;
                }
                let (api, key) = (api.clone(), update.key.clone());
                notices.push(Notice::ParamUpdate { api, key, value: update.value.clone() });
            }
        }
        Ok(())
    }
}

const ANY_TYPE: &str = "*";

/// What a method takes beside the caller's name, and the value of its reply when it is refused.
fn signature(method: &str) -> Option<(usize, Value)> {
    let none = || Value::Array(Vec::new());
    Some(match method {
        "getUri" => (0, Value::from("")),
        "getPid" => (0, Value::Int(-1)),
        "getParamNames" | "getTopicTypes" => (0, none()),
        "getSystemState" => (0, Value::Array(vec![none(), none(), none()])),
        "shutdown" | "deleteParam" | "getParam" | "searchParam" | "getPublishedTopics" => {
            (1, Value::Int(0))
        }
        "hasParam" => (1, Value::Bool(false)),
        "lookupService" | "lookupNode" => (1, Value::from("")),
        "setParam"
        | "subscribeParam"
        | "unsubscribeParam"
        | "unregisterService"
        | "unregisterSubscriber"
        | "unregisterPublisher" => (2, Value::Int(0)),
        "registerService" => (3, Value::Int(0)),
        "registerSubscriber" | "registerPublisher" => (3, none()),
        _ => return None,
    })
}

/// The notices of a call, and what they take.
#[derive(Default)]
struct Notices {
    all: Vec<Notice>,
    bytes: usize,
}

impl Notices {
    fn push(&mut self, notice: Notice) {
        self.bytes += notice.bytes();
        self.all.push(notice);
    }
}

/// The arguments of a method, as `rosmaster` checks them.
struct Args<'a> {
    caller: &'a str,
    params: &'a [Value],
}

impl<'a> Args<'a> {
    fn new(params: &'a [Value], arity: usize) -> Result<Self, Refusal> {
        let Some((caller, params)) = params.split_first() else {
            return Err(Refusal::error("missing required caller_id parameter".to_owned()));
        };
        if params.len() != arity {
            return Err(Refusal::error("Error: bad call arity".to_owned()));
        }
        let Some(caller) = caller.as_str() else {
            return Err(Refusal::error("caller_id must be a string".to_owned()));
        };
        check_length("caller_id", caller)?;
        Ok(Self { caller, params })
    }

    /// A text that is not empty, or an error with `problem` in it.
    fn string(&self, index: usize, name: &str, problem: &str) -> Result<&'a str, Refusal> {
        let text = self.params.get(index).and_then(Value::as_str).filter(|it| !it.is_empty());
        let text =
            text.ok_or_else(|| Refusal::error(format!("ERROR: parameter [{name}] {problem}")))?;
        check_length(&format!("parameter [{name}]"), text)?;
        Ok(text)
    }

    /// The text of a parameter's name.
    fn text(&self, index: usize, name: &str) -> Result<&'a str, Refusal> {
        let is_nothing = match self.params.get(index) {
            None | Some(Value::Nil | Value::Int(0) | Value::Bool(false)) => true,
            Some(Value::Double(number)) => *number == 0.0,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(values)) => values.is_empty(),
            Some(Value::Struct(members)) => members.is_empty(),
            Some(_) => false,
        };
        let problem =
            if is_nothing { "must be specified and non-empty" } else { "must be a string" };
        self.string(index, name, problem)
    }

    /// The resolved name of a parameter.
    fn key(&self, index: usize) -> Result<String, Refusal> {
        Ok(names::resolve(self.text(index, "key")?, self.caller))
    }

    /// A resolved name.
    fn resolved(&self, index: usize, name: &str) -> Result<String, Refusal> {
        let text = self.string(index, name, "must be a non-empty string")?;
        if text.contains([':', ' ']) {
            return Err(Refusal::error(format!(
                "ERROR: parameter [{name}] contains illegal chars"
            )));
        }
        Ok(names::resolve(text, self.caller))
    }

    /// The resolved name of a topic or a service.
    fn name(&self, index: usize, name: &str) -> Result<String, Refusal> {
        let resolved = self.resolved(index, name)?;
        if self.params.get(index).and_then(Value::as_str) == Some("/") {
            let text = format!("ERROR: parameter [{name}] cannot be the global namespace");
            return Err(Refusal::error(text));
        }
        Ok(resolved)
    }

    fn type_name(&self, index: usize, name: &str) -> Result<&'a str, Refusal> {
        let text = self.string(index, name, "must be a non-empty string")?;
        if text != ANY_TYPE && text.split('/').count() != 2 {
            let problem = "is not a valid package resource name";
            return Err(Refusal::error(format!("ERROR: parameter [{name}] {problem}")));
        }
        Ok(text)
    }

    fn api(&self, index: usize, name: &str) -> Result<&'a str, Refusal> {
        let text = self.string(index, name, "is not an XMLRPC URI")?;
        if !text.starts_with("http://") && !text.starts_with("rosrpc://") {
            return Err(Refusal::error(format!("ERROR: parameter [{name}] is not an RPC URI")));
        }
        Ok(text)
    }
}

fn check_length(what: &str, text: &str) -> Result<(), Refusal> {
    if NAME_BYTES_MAX < text.len() {
        let text = format!("ERROR: {what} is longer than {NAME_BYTES_MAX} bytes");
        return Err(Refusal::error(text));
    }
    Ok(())
}

fn pair(first: &str, second: &str) -> Value {
    Value::Array(vec![Value::from(first), Value::from(second)])
}

fn texts(all: &[String]) -> Value {
    Value::Array(all.iter().map(|it| Value::from(it.as_str())).collect())
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}
