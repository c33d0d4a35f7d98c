//! Parameters of all nodes, each as `/node.name`: read, set and followed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji::{EndpointKind, Graph, Node, Qos, RawSubscription, Waitable};
use tsuji_foxglove::{Level, Message, Parameter, ParameterType};
use tsuji_rosbridge::access::{Act, UserKey};

use crate::Counters;
use crate::connected_client::ConnectedClient;
use crate::foxglove::{status, tell};
use crate::hub::parameter::{
    BYTE_ARRAY, DOUBLE, DOUBLE_ARRAY, FIELDS, NOT_SET, Step, nodes, value_of,
};
use crate::hub::{A_TURN, Missed};
use crate::plain::Plain;
use crate::settings::Settings;
use crate::types::{MessageType, Types};

/// All that clients of Foxglove want of parameters.
pub(super) struct Parameters {
    node: Node,
    settings: Arc<Settings>,
    types: Arc<Types>,
    counters: Arc<Counters>,
    wanted: BTreeMap<u64, Wanted>,
    last: u64,
    followers: HashMap<u64, Follower>,
    events: Option<Events>,
}

/// What is to be asked of a node.
pub(crate) struct Question {
    /// By which the answer is known.
    pub(crate) ticket: u64,
    /// For whom it is asked.
    pub(crate) client: Arc<ConnectedClient>,
    /// What.
    pub(crate) step: Step,
}

/// What one client wants to know, while nodes are asked.
struct Wanted {
    client: Arc<ConnectedClient>,
    user: Option<UserKey>,
    id: Option<String>,
    /// Whether the values are told in the end.
    is_told: bool,
    to_ask: VecDeque<(Arc<str>, Stage)>,
    /// By their tickets.
    asked: HashMap<u64, (Arc<str>, Stage)>,
    values: Vec<Parameter>,
    until: Instant,
}

/// What a node is asked.
enum Stage {
    /// Which parameters it has.
    List,
    /// Which values these have.
    Get(Vec<String>),
    /// To give these such values, as texts of JSON.
    Set(Vec<(String, String)>),
}

/// Who wants to hear of changes: of these names, or of all.
struct Follower {
    client: Arc<ConnectedClient>,
    user: Option<UserKey>,
    names: Option<BTreeSet<String>>,
}

/// Where changes come.
struct Events {
    subscription: RawSubscription,
    ty: Arc<MessageType>,
    missed: Missed,
}

impl Parameters {
    pub(super) fn new(
        node: Node,
        settings: Arc<Settings>,
        types: Arc<Types>,
        counters: Arc<Counters>,
    ) -> Self {
        let (wanted, followers) = (BTreeMap::new(), HashMap::new());
        Self { node, settings, types, counters, wanted, last: 0, followers, events: None }
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.events.iter().map(|it| &it.subscription as &dyn Waitable)
    }

    pub(super) fn waits(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Reads parameters; all if there is no name.
    pub(super) fn get(
        &mut self,
        client: Arc<ConnectedClient>,
        user: Option<UserKey>,
        names: Vec<String>,
        id: Option<String>,
        graph: &Graph,
    ) {
        let to_ask = if names.is_empty() {
            nodes(graph).into_iter().map(|it| (Arc::from(it), Stage::List)).collect()
        } else {
            let mut of_nodes = BTreeMap::<Arc<str>, Vec<String>>::new();
            for name in &names {
                match self.may(&client, user, Act::ReadParameter, name) {
                    Ok((node, name)) => of_nodes.entry(node).or_default().push(name),
                    Err(why) => status(&client, Level::Warning, &format!("getParameters: {why}")),
                }
            }
            of_nodes.into_iter().map(|(node, names)| (node, Stage::Get(names))).collect()
        };
        let to_ask = known(to_ask, &client, graph);
        self.begin(client, user, id, true, to_ask);
    }

    /// Sets parameters, and tells what has become of them where there is an id.
    pub(super) fn set(
        &mut self,
        client: Arc<ConnectedClient>,
        user: Option<UserKey>,
        parameters: Vec<Parameter>,
        id: Option<String>,
        graph: &Graph,
    ) {
        let mut of_nodes = BTreeMap::<Arc<str>, Vec<(String, String)>>::new();
        for parameter in &parameters {
            let known = self.may(&client, user, Act::WriteParameter, &parameter.name);
            let value = known.and_then(|(node, name)| {
                let value = written(parameter).map_err(|why| format!("{}: {why}", parameter.name));
                Ok((node, name, value?))
            });
            match value {
                Ok((node, name, value)) => of_nodes.entry(node).or_default().push((name, value)),
                Err(why) => status(&client, Level::Error, &format!("setParameters: {why}")),
            }
        }
        let to_ask = of_nodes.into_iter().map(|(node, values)| (node, Stage::Set(values)));
        let to_ask = known(to_ask.collect(), &client, graph);
        let is_told = id.is_some();
        self.begin(client, user, id, is_told, to_ask);
    }

    fn begin(
        &mut self,
        client: Arc<ConnectedClient>,
        user: Option<UserKey>,
        id: Option<String>,
        is_told: bool,
        to_ask: VecDeque<(Arc<str>, Stage)>,
    ) {
        let own = self.wanted.values().filter(|it| it.client.number == client.number).count();
        let is_full = WANTED_MAX <= self.wanted.len() || WANTED_OF_ONE_MAX <= own;
        let to_ask = if is_full {
            let why = "parameters: too much is asked of nodes at a time; ask later";
            status(&client, Level::Error, why);
            VecDeque::new()
        } else {
            to_ask
        };
        // Who waits for a call for ever does not wait so for all nodes.
        let patience = Some(self.settings.call_timeout).filter(|it| !it.is_zero());
        let until = Instant::now() + patience.unwrap_or(PATIENCE_MAX).min(PATIENCE_MAX);
        let (asked, values) = (HashMap::new(), Vec::new());
        let wanted = Wanted { client, user, id, is_told, to_ask, asked, values, until };
        if wanted.is_over() {
            return wanted.tell();
        }
        self.last += 1;
        self.wanted.insert(self.last, wanted);
    }

    /// What nodes are to be asked now.
    pub(super) fn questions(&mut self) -> Vec<Question> {
        let Self { wanted, last, .. } = self;
        let mut room = ASKED_MAX.saturating_sub(wanted.values().map(|it| it.asked.len()).sum());
        room = room.min(QUESTIONS_AT_ONCE);
        let mut questions = Vec::new();
        for wanted in wanted.values_mut() {
            while questions.len() < room
                && wanted.asked.len() < ASKED_AT_ONCE
                && let Some((node, stage)) = wanted.to_ask.pop_front()
            {
                *last += 1;
                let (ticket, client) = (*last, Arc::clone(&wanted.client));
                questions.push(Question { ticket, client, step: stage.step(&node) });
                wanted.asked.insert(ticket, (node, stage));
            }
        }
        questions
    }

    /// What a node has answered, or nothing where it will not.
    pub(super) fn answered(&mut self, ticket: u64, reply: Option<&Value>) {
        let of = self.wanted.iter_mut().find(|(_, it)| it.asked.contains_key(&ticket));
        let Some((number, wanted)) = of else { return };
        let (number, asked) = (*number, wanted.asked.remove(&ticket));
        let Some((node, stage)) = asked else { return };
        let access = &self.settings.access;
        let user = wanted.user;
        match (stage, reply) {
            (_, None) => {
                let why = format!("parameters: node {node} does not answer");
                status(&wanted.client, Level::Warning, &why);
            }
            (Stage::List, Some(reply)) => {
                let names = reply["result"]["names"].as_array().into_iter().flatten();
                let names = names.filter_map(Value::as_str).filter(|it| {
                    access.decide(user, Act::ReadParameter, &format!("{node}:{it}")).is_ok()
                });
                let names: Vec<String> = names.map(str::to_owned).collect();
                if !names.is_empty() {
                    wanted.to_ask.push_back((node, Stage::Get(names)));
                }
            }
            // A node that does not know one of several names tells of none.
            (Stage::Get(names), Some(reply))
                if reply["values"].as_array().is_some_and(Vec::is_empty) && 1 < names.len() =>
            {
                let count = names.len();
                if ONE_BY_ONE_MAX < count {
                    let why = format!(
                        "getParameters: node {node} does not know one of {count} names; ask for at most {ONE_BY_ONE_MAX} where one may not be there"
                    );
                    status(&wanted.client, Level::Warning, &why);
                }
                let names = if count <= ONE_BY_ONE_MAX { names } else { Vec::new() };
                let each = names.into_iter().map(|it| (Arc::clone(&node), Stage::Get(vec![it])));
                wanted.to_ask.extend(each);
            }
            (Stage::Get(names), Some(reply)) => {
                let values = reply["values"].as_array().into_iter().flatten();
                let read = names.iter().zip(values).map(|(name, it)| read(&node, name, it));
                wanted.values.extend(read.filter(|it| it.value.is_some()));
            }
            (Stage::Set(values), Some(reply)) => {
                let results = reply["results"].as_array().into_iter().flatten();
                for ((name, _), result) in values.iter().zip(results) {
                    if result["successful"] != true {
                        let reason = result["reason"].as_str().unwrap_or_default();
                        let why = format!("setParameters: {node}.{name}: {reason}");
                        status(&wanted.client, Level::Error, &why);
                    }
                }
                if wanted.is_told {
                    let names = values.into_iter().map(|it| it.0).collect();
                    wanted.to_ask.push_back((node, Stage::Get(names)));
                }
            }
        }
        if wanted.is_over()
            && let Some(wanted) = self.wanted.remove(&number)
        {
            wanted.tell();
        }
    }

    /// Tells what is known to whoever has waited for long enough.
    pub(super) fn look(&mut self) {
        if self.wanted.is_empty() {
            return;
        }
        let now = Instant::now();
        let late = self.wanted.iter().filter(|(_, it)| it.until <= now).map(|it| *it.0);
        for ticket in late.collect::<Vec<_>>() {
            let Some(wanted) = self.wanted.remove(&ticket) else { continue };
            for (node, _) in wanted.asked.values().chain(&wanted.to_ask) {
                let why = format!("parameters: node {node} does not answer");
                status(&wanted.client, Level::Warning, &why);
            }
            wanted.tell();
        }
    }

    /// A client has gone.
    pub(super) fn gone(&mut self, number: u64) {
        self.wanted.retain(|_, it| it.client.number != number);
        self.leave(number, &[]);
    }

    /// Lets a client hear of changes; of all if there is no name.
    pub(super) fn follow(
        &mut self,
        client: Arc<ConnectedClient>,
        user: Option<UserKey>,
        names: Vec<String>,
    ) {
        if self.events.is_none() {
            let opened = self.types.message("rcl_interfaces/msg/ParameterEvent").and_then(|ty| {
                let opened =
                    self.node.create_polled_raw_subscription(EVENTS, ty.raw(), Qos::PARAMETERS);
                opened
                    .map(|it| Events { subscription: it, ty, missed: Missed::default() })
                    .map_err(|error| error.to_string())
            });
            match opened {
                Ok(events) => self.events = Some(events),
                Err(why) => {
                    let why = format!("subscribeParameterUpdates: {EVENTS}: {why}");
                    return status(&client, Level::Error, &why);
                }
            }
        }
        let number = client.number;
        let names_max = self.settings.limits.client.names_max;
        let none = Some(BTreeSet::new());
        let follower =
            self.followers.entry(number).or_insert(Follower { client, user, names: none });
        match &mut follower.names {
            Some(there) if !names.is_empty() => {
                let mut left_out = 0;
                for name in names {
                    let fits = name.len() <= NAME_BYTES_MAX && there.len() < names_max;
                    if fits || there.contains(&name) {
                        there.insert(name);
                    } else {
                        left_out += 1;
                    }
                }
                if 0 < left_out {
                    let why = format!(
                        "subscribeParameterUpdates: {left_out} names are left out; allowed: {names_max} of {NAME_BYTES_MAX} bytes at most, or none for all"
                    );
                    status(&follower.client, Level::Error, &why);
                }
            }
            there => *there = None,
        }
    }

    /// Lets a client hear of them no more; of all if there is no name.
    pub(super) fn leave(&mut self, number: u64, names: &[String]) {
        let Some(follower) = self.followers.get_mut(&number) else { return };
        let is_left = match &mut follower.names {
            _ if names.is_empty() => true,
            Some(there) => {
                for name in names {
                    there.remove(name);
                }
                there.is_empty()
            }
            // Of all but these nothing is kept.
            None => false,
        };
        if is_left {
            self.followers.remove(&number);
        }
        if self.followers.is_empty() {
            self.events = None;
        }
    }

    /// Tells followers what has changed.
    pub(super) fn drain(&mut self) {
        let Some(Events { subscription, ty, missed }) = &mut self.events else { return };
        missed.note(subscription, &self.counters);
        let began = Instant::now();
        while began.elapsed() < A_TURN {
            let sample = match subscription.take_bytes() {
                Ok(Some(sample)) => sample,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(topic = EVENTS, error = %Plain(error), "a sample could not be taken");
                    return;
                }
            };
            let mut text = Vec::new();
            let is_read = ty.plan.json_from_cdr(&sample.bytes, &mut text).is_ok();
            let event: Value = serde_json::from_slice(&text).unwrap_or_default();
            let Some(node) = event["node"].as_str().filter(|_| is_read) else { continue };
            let of = |field: &str| event[field].as_array().cloned().unwrap_or_default();
            let parameters = [of("new_parameters"), of("changed_parameters")].concat();
            let mut changed = Vec::new();
            for it in &parameters {
                let name = it["name"].as_str().unwrap_or_default();
                changed.push((name.to_owned(), read(node, name, &it["value"])));
            }
            for it in of("deleted_parameters") {
                let name = it["name"].as_str().unwrap_or_default();
                changed.push((name.to_owned(), read(node, name, &Value::Null)));
            }
            let access = &self.settings.access;
            for Follower { client, user, names } in self.followers.values() {
                let may = |name: &str| {
                    access.decide(*user, Act::ReadParameter, &format!("{node}:{name}")).is_ok()
                };
                let wants =
                    |it: &Parameter| names.as_ref().is_none_or(|all| all.contains(&it.name));
                let told = changed.iter().filter(|(name, it)| wants(it) && may(name));
                let told: Vec<Parameter> = told.map(|it| it.1.clone()).collect();
                if !told.is_empty() {
                    tell(client, &Message::ParameterValues { parameters: &told, id: None });
                }
            }
        }
    }

    /// The node and the name of a parameter, if the client may do so with it.
    fn may(
        &self,
        client: &ConnectedClient,
        user: Option<UserKey>,
        act: Act,
        whole: &str,
    ) -> Result<(Arc<str>, String), String> {
        let parts = whole
            .split_once('.')
            .filter(|(node, name)| node.starts_with('/') && 1 < node.len() && !name.is_empty());
        let Some((node, name)) = parts else {
            return Err(format!("found {whole:?}; expected /NODE.PARAMETER"));
        };
        let decided = self.settings.access.decide(user, act, &format!("{node}:{name}"));
        if let Err(denial) = decided {
            client.audit(&denial);
            return Err(denial.to_string());
        }
        Ok((node.into(), name.to_owned()))
    }
}

impl Wanted {
    fn is_over(&self) -> bool {
        self.to_ask.is_empty() && self.asked.is_empty()
    }

    fn tell(mut self) {
        if self.is_told {
            self.values.sort_by(|one, other| one.name.cmp(&other.name));
            let (parameters, id) = (&*self.values, self.id.as_deref());
            tell(&self.client, &Message::ParameterValues { parameters, id });
        }
    }
}

impl Stage {
    /// The service of a node that is asked.
    fn service(&self) -> &'static str {
        match self {
            Self::List => Step::LIST,
            Self::Get(_) => Step::GET,
            Self::Set(_) => Step::SET,
        }
    }

    /// As a request to it.
    fn step(&self, node: &str) -> Step {
        match self {
            Self::List => Step::list(node),
            Self::Get(names) => Step::get(node, names),
            Self::Set(values) => {
                Step::set(node, values.iter().map(|(name, value)| (&**name, &**value)))
            }
        }
    }
}

/// Those of nodes that serve what they are asked; of the others the client is told.
fn known(
    to_ask: VecDeque<(Arc<str>, Stage)>,
    client: &ConnectedClient,
    graph: &Graph,
) -> VecDeque<(Arc<str>, Stage)> {
    let servers = graph.services.iter().filter(|it| it.kind == EndpointKind::Server);
    let servers: BTreeSet<&str> = servers.map(|it| &*it.topic).collect();
    let (known, unknown): (VecDeque<_>, VecDeque<_>) = to_ask
        .into_iter()
        .partition(|(node, stage)| servers.contains(&*format!("{node}{}", stage.service())));
    if let Some((first, _)) = unknown.front() {
        let others = match unknown.len() {
            1 => String::new(),
            count => format!(", nor have {} others", count - 1),
        };
        let why = format!("parameters: node {first} has none{others}");
        status(client, Level::Warning, &why);
    }
    known
}

/// A value as `rcl_interfaces/msg/ParameterValue`, as a text of JSON.
fn written(parameter: &Parameter) -> Result<String, String> {
    let ty = match parameter.ty {
        Some(ParameterType::ByteArray) => BYTE_ARRAY,
        Some(ParameterType::Float64) => DOUBLE,
        Some(ParameterType::Float64Array) => DOUBLE_ARRAY,
        None => NOT_SET,
    };
    match &parameter.value {
        None | Some(Value::Null) => Ok(json!({ "type": NOT_SET }).to_string()),
        Some(value) => value_of(value, ty),
    }
}

/// A parameter of `rcl_interfaces/msg/ParameterValue`; without a value where it is not set.
fn read(node: &str, name: &str, value: &Value) -> Parameter {
    let number = value["type"].as_u64().unwrap_or(NOT_SET);
    let field = FIELDS.get(number as usize).filter(|_| number != NOT_SET);
    let ty = match number {
        BYTE_ARRAY => Some(ParameterType::ByteArray),
        DOUBLE => Some(ParameterType::Float64),
        DOUBLE_ARRAY => Some(ParameterType::Float64Array),
        _ => None,
    };
    let value = field.map(|it| value[*it].clone());
    Parameter { name: format!("{node}.{name}"), ty, value }
}

const EVENTS: &str = "/parameter_events";

/// Nodes that are asked at a time for one client's wish.
const ASKED_AT_ONCE: usize = 64;

/// The same of all.
const ASKED_MAX: usize = 128;

/// Questions that are begun before others have a turn.
const QUESTIONS_AT_ONCE: usize = 16;

/// Wishes of all clients at a time, and of one.
const WANTED_MAX: usize = 64;
const WANTED_OF_ONE_MAX: usize = 8;

/// How long nodes may take at most.
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// Names of which a node does not know one are asked for one by one, if they are no more.
const ONE_BY_ONE_MAX: usize = 64;

/// A name that is followed is no longer.
const NAME_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_by_their_types() {
        let of = |ty, value: Value| {
            let name = "/n.p".to_owned();
            let written = written(&Parameter { name, ty, value: Some(value) });
            written.map(|it| serde_json::from_str::<Value>(&it).unwrap())
        };
        assert_eq!(of(None, json!(true)), Ok(json!({ "type": 1, "bool_value": true })));
        assert_eq!(of(None, json!(3)), Ok(json!({ "type": 2, "integer_value": 3 })));
        let float = Some(ParameterType::Float64);
        assert_eq!(of(float, json!(3)), Ok(json!({ "type": 3, "double_value": 3 })));
        let floats = Some(ParameterType::Float64Array);
        assert_eq!(of(floats, json!([])), Ok(json!({ "type": 8, "double_array_value": [] })));
        let bytes = Some(ParameterType::ByteArray);
        assert_eq!(of(bytes, json!("ECAw")), Ok(json!({ "type": 5, "byte_array_value": "ECAw" })));
        assert_eq!(of(None, json!(["a"])), Ok(json!({ "type": 9, "string_array_value": ["a"] })));
        assert_eq!(of(None, Value::Null), Ok(json!({ "type": 0 })));
        assert!(of(None, json!({ "a": 1 })).unwrap_err().contains("expected true or false"));
        assert!(
            of(float, json!("x")).is_ok(),
            "a text is a text, and the node says what it thinks of it"
        );
    }

    #[test]
    fn values_are_read_with_what_json_does_not_tell() {
        let of = |value: Value| {
            let Parameter { name, ty, value } = read("/n", "a.b", &value);
            assert_eq!(name, "/n.a.b");
            (ty, value)
        };
        let double = json!({ "type": 3, "double_value": 1.0 });
        assert_eq!(of(double), (Some(ParameterType::Float64), Some(json!(1.0))));
        let text = json!({ "type": 4, "string_value": "x" });
        assert_eq!(of(text), (None, Some(json!("x"))));
        assert_eq!(of(json!({ "type": 0 })), (None, None));
        assert_eq!(of(json!({ "type": 77 })), (None, None));
        assert_eq!(of(Value::Null), (None, None));
    }
}
