//! The transport of a topic, set by clients and taken back, as `tsuji top` does it.
//!
//! What is set holds for everybody who uses the topic, so the bridge remembers what it has set for all its clients together: whoever may
//! set a topic may take back what was set last, also after the page was loaded anew, or from another device. What another command has
//! set since is not touched.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tsuji::{Graph, KNOWN_TRANSPORTS, ProcessInfo, RouteReport, RouteSetting, RouteState};
use tsuji_rosbridge::access::{Access, Act, UserKey};

use super::overview::{ROUTES_MAX, may_see};
use super::service::{Asking, read_args};
use crate::body::OwnedBody;
use crate::observer::{ANSWER, Snapshot, Watch};

/// What a client wants of a topic.
#[derive(Debug)]
pub(super) struct Wish {
    topic: String,
    what: What,
}

#[derive(Debug)]
enum What {
    /// To take that transport, or what the policy says.
    Set(Option<String>),
    /// To take what was set before.
    Undo,
}

impl Wish {
    /// What is wanted by a call of `/rosapi/tsuji_set_route`, or what is the matter with its arguments.
    pub(super) fn set(args: &OwnedBody) -> Result<Self, String> {
        const SERVICE: &str = "tsuji_set_route";
        let args = read_args(args)?;
        let topic = topic(SERVICE, &args)?;
        let transport = text(SERVICE, &args, "transport", 1)?;
        // Before all: what is forgotten or mistyped must not leave a topic to the policy.
        if transport != AUTO && !KNOWN_TRANSPORTS.contains(&transport) {
            let known = KNOWN_TRANSPORTS.join(", ");
            return Err(format!(
                "{SERVICE}: transport: found {transport:?}; expected {known}, or {AUTO} for what the policy says"
            ));
        }
        let transport = (transport != AUTO).then(|| transport.to_owned());
        Ok(Self { topic, what: What::Set(transport) })
    }

    /// The same of `/rosapi/tsuji_undo_route`.
    pub(super) fn undo(args: &OwnedBody) -> Result<Self, String> {
        let topic = topic("tsuji_undo_route", &read_args(args)?)?;
        Ok(Self { topic, what: What::Undo })
    }
}

/// The full name of a topic.
fn topic(service: &str, args: &Value) -> Result<String, String> {
    let name = text(service, args, "topic", 0)?;
    let root = if name.starts_with('/') { "" } else { "/" };
    Ok(format!("{root}{name}"))
}

fn text<'a>(service: &str, args: &'a Value, field: &str, at: usize) -> Result<&'a str, String> {
    let listed = args.as_array().and_then(|it| it.get(at));
    match listed.unwrap_or_else(|| &args[field]) {
        Value::String(text) => Ok(text),
        other => Err(format!("{service}: {field}: found {other}; expected a text")),
    }
}

/// What clients of this bridge have set and not taken back, the last one at the end.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<VecDeque<Change>>);

#[derive(Clone, Debug)]
struct Change {
    topic: String,
    /// What the topic was set to before, by whomever.
    before: Option<String>,
    /// What it is set to since.
    transport: Option<String>,
}

impl Changes {
    fn last(&self, topic: &str) -> Option<Change> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().rev().find(|it| it.topic == topic).cloned()
    }

    fn push(&self, change: Change) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == CHANGES_MAX {
            all.pop_front();
        }
        all.push_back(change);
    }

    fn forget_last(&self, topic: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().rposition(|it| it.topic == topic) {
            all.remove(at);
        }
    }
}

/// Does what a client wants, and tells what became of it; or why it was not done.
pub(super) fn change(
    watch: &mut Watch<'_>,
    wish: &Wish,
    changes: &Changes,
    access: &Access,
    asking: &Asking,
    user: Option<UserKey>,
) -> Result<Value, String> {
    let Wish { topic, what } = wish;
    let seen = watch.look()?;
    check(&seen.graph, topic, access, asking, user)?;
    let publishers = publishers(&seen.graph, topic);
    let last = changes.last(topic);
    let pinned = pinned(&seen.routes, topic);
    let before = pinned.unwrap_or_else(|| last.as_ref()?.transport.as_deref()).map(str::to_owned);
    let transport = match what {
        What::Set(transport) => transport.clone(),
        What::Undo => {
            let Some(last) = last else {
                return Err(format!("{topic}: nothing was set here that could be taken back"));
            };
            if pinned.is_some() && before != last.transport {
                changes.forget_last(topic);
                let now = before.as_deref().unwrap_or("the policy");
                return Err(format!(
                    "{topic}: another command has chosen {now} since; nothing is taken back"
                ));
            }
            last.before
        }
    };

    if let What::Set(Some(wanted)) = what {
        let mut of_topic = seen.routes.iter().filter(|it| it.topic == *topic).peekable();
        // Setting it would be a handover to what the policy says, and another one back.
        if let Some(first) = of_topic.peek().and_then(|it| unable(it, wanted)).map(str::to_owned)
            && of_topic.all(|it| unable(it, wanted).is_some())
        {
            return Err(none_can(topic, wanted, &first));
        }
    }

    let answers = set(watch, topic, transport.as_deref())?;
    if let Some(why) = refusal(&answers, &publishers) {
        if answers.iter().any(|it| it.outcome.is_ok()) {
            set(watch, topic, before.as_deref())?;
        }
        return Err(format!("{topic}: nothing is set: {why}"));
    }
    let routes: Vec<RouteReport> =
        watch.look()?.routes.iter().filter(|it| it.topic == *topic).cloned().collect();
    let wanted = transport.as_deref();
    let not_carried: Vec<(&RouteReport, String)> =
        routes.iter().filter_map(|it| Some((it, why_not(it, wanted?)?))).collect();
    let silent: Vec<&ProcessInfo> = publishers
        .values()
        .filter(|it| answers.iter().all(|answer| answer.process.token != it.token))
        .collect();
    if let (What::Set(Some(wanted)), [(_, why), ..]) = (what, &*not_carried)
        && (not_carried.len(), silent.len()) == (routes.len(), 0)
    {
        set(watch, topic, before.as_deref())?;
        return Err(format!(
            "{topic}: nothing is set: none of its flows can go by {wanted}: {why}"
        ));
    }

    match what {
        What::Set(_) if before == transport => {}
        What::Set(_) => changes.push(Change {
            topic: topic.clone(),
            before: before.clone(),
            transport: transport.clone(),
        }),
        What::Undo => changes.forget_last(topic),
    }
    let who = user.map_or_else(|| "a client".to_owned(), |it| format!("{:?}", access.name(it)));
    asking.member.audit(&format_args!("{who} has set {topic:?} to {}", word(wanted)));
    // Who may know of one topic need not know of all processes.
    let (deciding, others): (Vec<_>, Vec<_>) = answers.iter().partition(|it| {
        publishers.contains_key(&it.process.token) || it.outcome.as_ref().is_ok_and(|it| 0 < *it)
    });
    let refused = others.iter().filter(|it| it.outcome.is_err()).count();
    let processes = deciding.iter().map(|RouteSetting { process, outcome }| {
        json!({ "process": process, "flows": outcome.as_ref().ok(), "refused": outcome.as_ref().err() })
    });
    let not_carried = not_carried.iter().take(ROUTES_MAX).map(|(it, why)| {
        json!({ "publisher": it.publisher, "subscription": it.subscription, "because": why })
    });
    Ok(json!({
        "topic": topic,
        "transport": word(wanted),
        "before": word(before.as_deref()),
        "flows": deciding.iter().filter_map(|it| it.outcome.as_ref().ok()).sum::<u32>(),
        "processes": Value::from_iter(processes),
        "silent": silent,
        "others": { "remembered": others.len() - refused, "refused": refused },
        "not_carried": Value::from_iter(not_carried),
        "routes": routes.iter().take(ROUTES_MAX).collect::<Vec<_>>(),
        "routes_left_out": routes.len().saturating_sub(ROUTES_MAX),
    }))
}

/// What is set, and which topics the user may set.
pub(super) fn settings(
    snapshot: &Snapshot,
    changes: &Changes,
    access: &Access,
    user: Option<UserKey>,
) -> Value {
    let Snapshot { graph, routes, .. } = snapshot;
    let seen = |name: &str| {
        let (ways, _) = ways(graph, name);
        ways.into_iter().all(|(act, name)| access.decide(user, act, name).is_ok())
    };
    let shown = routes.iter().filter(|it| may_see(access, user, it));
    let mut set = BTreeMap::<&str, Option<&str>>::new();
    let mut may_set = BTreeSet::<&str>::new();
    for it in shown {
        if access.decide(user, Act::SetRoute, &it.topic).is_ok() {
            may_set.insert(&it.topic);
        }
        if let Some(pinned) = &it.pinned {
            set.insert(&it.topic, Some(pinned));
        }
    }
    let all = changes.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // The last one of each topic.
    let here: BTreeMap<&str, &Change> = all.iter().map(|it| (&*it.topic, it)).collect();
    for (topic, change) in here.iter().filter(|(topic, _)| seen(topic)) {
        let now = pinned(routes, topic).unwrap_or(change.transport.as_deref());
        if now == change.transport.as_deref() {
            set.entry(topic).or_insert(now);
        }
    }
    let set = set.into_iter().map(|(topic, transport)| {
        let change = here.get(topic).filter(|it| it.transport.as_deref() == transport);
        let undo = change.map(|it| word(it.before.as_deref()));
        json!({ "topic": topic, "transport": word(transport), "undo": undo })
    });
    json!({
        "transports": KNOWN_TRANSPORTS,
        "settings": Value::from_iter(set),
        "may_set": may_set,
    })
}

/// Whether the user may set that name, and whether there is such a thing. What is refused is a line of the audit.
fn check(
    graph: &Graph,
    name: &str,
    access: &Access,
    asking: &Asking,
    user: Option<UserKey>,
) -> Result<(), String> {
    let (ways, is_known) = ways(graph, name);
    for (act, name) in ways.into_iter().chain([(Act::SetRoute, name)]) {
        if let Err(denial) = access.decide(user, act, name) {
            asking.member.audit(&denial);
            return Err(denial.to_string());
        }
    }
    match is_known {
        true => Ok(()),
        // Last, so that nobody learns what there is by asking for it.
        false => Err(format!(
            "topic: found {name:?}; expected a topic that is published or subscribed to, or a service"
        )),
    }
}

/// What a user has to be allowed to know of a name, and whether somebody has it.
fn ways<'n>(graph: &Graph, name: &'n str) -> (Vec<(Act, &'n str)>, bool) {
    let is_topic = graph.endpoints.iter().any(|it| it.topic == name);
    let is_service = graph.services.iter().any(|it| it.topic == name);
    let ways = match name.split_once("/_action/") {
        Some((action, _)) => vec![(Act::SendGoal, action)],
        None => match (is_topic, is_service) {
            (true, true) => vec![(Act::Subscribe, name), (Act::CallService, name)],
            (_, false) => vec![(Act::Subscribe, name)],
            (false, true) => vec![(Act::CallService, name)],
        },
    };
    (ways, is_topic || is_service)
}

/// The processes that decide about flows of a topic, by their tokens: those that publish it, or ask and answer.
fn publishers(graph: &Graph, topic: &str) -> BTreeMap<String, ProcessInfo> {
    let publishes = |it: &&tsuji::EndpointInfo| {
        it.topic == topic && it.vendor.is_none() && it.kind != tsuji::EndpointKind::Subscription
    };
    let all = graph.endpoints.iter().chain(&graph.services).filter(publishes);
    all.map(|it| (it.process.token.clone(), it.process.clone())).collect()
}

/// What a topic is set to; nothing if it has no flow.
fn pinned<'r>(routes: &'r [RouteReport], topic: &str) -> Option<Option<&'r str>> {
    let is_of_topic = |it: &&RouteReport| it.topic == topic && !it.publisher.is_foreign();
    let mut flows = routes.iter().filter(is_of_topic).peekable();
    flows.peek()?;
    Some(flows.find_map(|it| it.pinned.as_deref()))
}

fn set(
    watch: &mut Watch<'_>,
    topic: &str,
    transport: Option<&str>,
) -> Result<Vec<RouteSetting>, String> {
    watch.forget();
    watch.context.set_route(topic, transport, ANSWER).map_err(|error| error.to_string())
}

/// Why nothing is set, if that is so: nobody has taken it, or nobody of those who decide. One that has not answered may still do it.
fn refusal(answers: &[RouteSetting], publishers: &BTreeMap<String, ProcessInfo>) -> Option<String> {
    let is_refused = |it: &&RouteSetting| it.outcome.is_err();
    let deciding: Vec<&RouteSetting> =
        answers.iter().filter(|it| publishers.contains_key(&it.process.token)).collect();
    let is_all = answers.iter().all(|it| is_refused(&it));
    let is_deciding = !deciding.is_empty()
        && deciding.len() == publishers.len()
        && deciding.iter().all(is_refused);
    if !is_all && !is_deciding {
        return None;
    }
    let first = deciding.into_iter().chain(answers).find(is_refused)?;
    let RouteSetting { process: ProcessInfo { program, pid, .. }, outcome } = first;
    Some(format!("{program} {pid}: {}", outcome.as_ref().err()?))
}

/// Why a flow does not take the transport that was set; nothing if it does, or will.
fn why_not(flow: &RouteReport, wanted: &str) -> Option<String> {
    let carriers = [&flow.transport, &flow.handover_to];
    if carriers.into_iter().flatten().any(|it| it == wanted) {
        return None;
    }
    if flow.publisher.is_foreign() || flow.subscription.is_foreign() {
        return Some("a flow with a foreign node keeps its transport".to_owned());
    }
    if flow.state == RouteState::Incompatible {
        return Some(flow.reason());
    }
    flow.rejected.iter().find(|(it, _)| it == wanted).map(|(_, why)| why.clone())
}

/// Why a flow cannot take a transport, as far as its last decision tells, which was about others too.
fn unable<'r>(flow: &'r RouteReport, wanted: &str) -> Option<&'r str> {
    let (_, why) = flow.rejected.iter().find(|(it, _)| it == wanted)?;
    UNABLE.iter().any(|it| why.starts_with(it)).then_some(why)
}

fn none_can(topic: &str, wanted: &str, why: &str) -> String {
    format!("{topic}: nothing is set: none of its flows can go by {wanted}: {why}")
}

fn word(transport: Option<&str>) -> &str {
    transport.unwrap_or(AUTO)
}

/// No transport, but what the policy says; as in `tsuji route auto`.
const AUTO: &str = "auto";

/// How reasons begin that hold whatever is set. What begins otherwise is tried.
const UNABLE: [&str; 5] =
    ["out of reach: ", "not working: ", "not offered here ", "not reliable, ", "forbidden by "];

/// Settings that can be taken back, of all topics together. With one more the oldest cannot any more.
const CHANGES_MAX: usize = 1000;
