//! The transport of a topic, set by clients and taken back, as `tsuji top` does it.
//!
//! What is set holds for everybody who uses the topic, so the bridge remembers what it has set for all its clients together: whoever may
//! set a topic may take back what was set last, also after the page was loaded anew, or from another device. What another command has
//! set since is not touched.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tsuji::{Graph, KNOWN_TRANSPORTS, ProcessInfo, RouteReport, RouteSetting, RouteState};
use tsuji_rosbridge::access::{Access, Act, UserKey};

use super::overview::ROUTES_MAX;
use super::rights::{Right, acts_of, may_know, may_see, rights_needed};
use super::rosapi::full_name;
use super::service::{Asking, read_args};
use crate::body::OwnedBody;
use crate::observer::{ANSWER, Snapshot, Watch};
use crate::tree;

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
        let topic = full_name(tree::text_of(&args, SERVICE, "topic", 0)?);
        let transport = tree::text_of(&args, SERVICE, "transport", 1)?;
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
        let args = read_args(args)?;
        let topic = full_name(tree::text_of(&args, "tsuji_undo_route", "topic", 0)?);
        Ok(Self { topic, what: What::Undo })
    }
}

/// What clients of this bridge have set and not taken back, the last one at the end.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<VecDeque<Change>>);

#[derive(Clone, Debug)]
struct Change {
    topic: String,
    /// What the name was known by when it was set: who may take that back, or see it, is judged by that too, whatever has the name since.
    acts: Vec<Act>,
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

/// Does what a client wants, and returns what became of it; or why it was not done.
pub(super) fn change(
    watch: &mut Watch<'_>,
    wish: &Wish,
    changes: &Changes,
    access: &Access,
    asking: &Asking,
    user: Option<UserKey>,
) -> Result<Value, String> {
    let Wish { topic, what } = wish;
    let seen = watch.refresh()?;
    let last = changes.last(topic);
    let acts = check(&seen.graph, topic, last.as_ref(), access, asking, user)?;
    let flows: Vec<_> = seen.routes.iter().filter(|it| it.topic == *topic).collect();
    let pinned = pinned(&flows);
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
    // Setting it would be a handover to what the policy says, and another one back.
    if let What::Set(Some(wanted)) = what
        && let Some(why) = none_can(&flows, wanted)
    {
        return Err(not_set(topic, &no_flow_goes_by(wanted, why)));
    }

    let publishers = publishers(&seen.graph, topic);
    let answers = set(watch, topic, transport.as_deref())?;
    if let Some(why) = refusal(&answers, &publishers) {
        if answers.iter().any(|it| it.outcome.is_ok()) {
            set(watch, topic, before.as_deref())?;
        }
        return Err(not_set(topic, &why));
    }
    let routes = watch.refresh()?.routes.iter().filter(|it| it.topic == *topic).cloned().collect();
    let outcome = SettingOutcome { topic, before, transport, publishers, answers, routes };
    let (not_carried, silent) = (outcome.not_carried(), outcome.silent());
    if let (What::Set(Some(wanted)), [(_, why), ..]) = (what, &*not_carried)
        && (not_carried.len(), silent.len()) == (outcome.routes.len(), 0)
    {
        set(watch, topic, outcome.before.as_deref())?;
        return Err(not_set(topic, &no_flow_goes_by(wanted, why)));
    }

    let SettingOutcome { before, transport, .. } = &outcome;
    match what {
        What::Set(_) if before == transport => {}
        What::Set(_) => changes.push(Change {
            topic: topic.clone(),
            acts,
            before: before.clone(),
            transport: transport.clone(),
        }),
        What::Undo => changes.forget_last(topic),
    }
    let who = user.map_or_else(|| "a client".to_owned(), |it| format!("{:?}", access.name(it)));
    let now = word(transport.as_deref());
    asking.member.audit(&format_args!("{who} has set {topic:?} to {now}"));
    Ok(outcome.to_json(&not_carried, &silent))
}

/// What became of a setting that some process has taken.
struct SettingOutcome<'a> {
    topic: &'a str,
    before: Option<String>,
    transport: Option<String>,
    publishers: BTreeMap<String, ProcessInfo>,
    answers: Vec<RouteSetting>,
    routes: Vec<RouteReport>,
}

impl SettingOutcome<'_> {
    /// The flows that go by another transport all the same, and why.
    fn not_carried(&self) -> Vec<(&RouteReport, String)> {
        let Some(wanted) = self.transport.as_deref() else { return Vec::new() };
        self.routes.iter().filter_map(|it| Some((it, why_not(it, wanted)?))).collect()
    }

    /// The processes that decide and have not answered yet.
    fn silent(&self) -> Vec<&ProcessInfo> {
        let has_answered =
            |it: &&ProcessInfo| self.answers.iter().any(|answer| answer.process.token == it.token);
        self.publishers.values().filter(|it| !has_answered(it)).collect()
    }

    fn to_json(&self, not_carried: &[(&RouteReport, String)], silent: &[&ProcessInfo]) -> Value {
        // Who may know of one topic need not know of all processes.
        let (deciding, others): (Vec<_>, Vec<_>) = self.answers.iter().partition(|it| {
            self.publishers.contains_key(&it.process.token)
                || it.outcome.as_ref().is_ok_and(|it| 0 < *it)
        });
        let refused = others.iter().filter(|it| it.outcome.is_err()).count();
        let processes = deciding.iter().map(|RouteSetting { process, outcome }| {
            json!({ "process": process, "flows": outcome.as_ref().ok(), "refused": outcome.as_ref().err() })
        });
        let not_carried = not_carried.iter().take(ROUTES_MAX).map(|(it, why)| {
            json!({ "publisher": it.publisher, "subscription": it.subscription, "because": why })
        });
        json!({
            "topic": self.topic,
            "transport": word(self.transport.as_deref()),
            "before": word(self.before.as_deref()),
            "flows": deciding.iter().filter_map(|it| it.outcome.as_ref().ok()).sum::<u32>(),
            "processes": Value::from_iter(processes),
            "silent": silent,
            "others": { "remembered": others.len() - refused, "refused": refused },
            "not_carried": Value::from_iter(not_carried),
            "routes": self.routes.iter().take(ROUTES_MAX).collect::<Vec<_>>(),
            "routes_left_out": self.routes.len().saturating_sub(ROUTES_MAX),
        })
    }
}

/// What is set, which topics the user may set, and which transports can carry none of their flows.
pub(super) fn settings(
    seen: &Snapshot,
    changes: &Changes,
    access: &Access,
    user: Option<UserKey>,
) -> Value {
    let all = changes.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // The last one of each topic.
    let here: BTreeMap<&str, &Change> = all.iter().map(|it| (&*it.topic, it)).collect();
    let mut topics = BTreeMap::<&str, Vec<&RouteReport>>::new();
    for it in &seen.routes {
        topics.entry(&it.topic).or_default().push(it);
    }
    // What has no flow now is set for those that come.
    for topic in here.keys() {
        topics.entry(topic).or_default();
    }
    topics.retain(|topic, flows| {
        let may_know_set = |it: &&Change| {
            may_know(access, user, topic, &acts_with(acts_of(&seen.graph, topic), &it.acts))
        };
        flows.iter().all(|it| may_see(access, user, it)) && here.get(topic).is_none_or(may_know_set)
    });

    let (mut settings, mut may_set, mut unable) = (Vec::new(), Vec::new(), Map::new());
    for (topic, flows) in &topics {
        let change = here.get(topic).copied();
        let last = change.and_then(|it| it.transport.as_deref());
        let transport = pinned(flows).unwrap_or(last);
        let own = change.filter(|it| it.transport.as_deref() == transport);
        if transport.is_some() || own.is_some() {
            let undo = own.map(|it| word(it.before.as_deref()));
            settings.push(json!({ "topic": topic, "transport": word(transport), "undo": undo }));
        }
        if access.decide(user, Act::SetRoute, topic).is_err() {
            continue;
        }
        may_set.push(topic);
        let none = KNOWN_TRANSPORTS.iter().filter_map(|it| Some((*it, none_can(flows, it)?)));
        let none: BTreeMap<&str, &str> = none.collect();
        if !none.is_empty() {
            unable.insert((*topic).to_owned(), json!(none));
        }
    }
    json!({
        "transports": KNOWN_TRANSPORTS,
        "settings": settings,
        "may_set": may_set,
        "unable": unable,
    })
}

/// Returns what that name is known by, now or when it was set, if the user may set it. What is refused is a line of the audit.
fn check(
    graph: &Graph,
    name: &str,
    last: Option<&Change>,
    access: &Access,
    asking: &Asking,
    user: Option<UserKey>,
) -> Result<Vec<Act>, String> {
    let acts = acts_with(acts_of(graph, name), last.map_or(&[], |it| &it.acts));
    let denial_of = |rights: &[Right<'_>]| {
        rights.iter().find_map(|(act, name)| access.decide(user, *act, name).err())
    };
    let denial = match denial_of(&rights_needed(name, &acts)) {
        // The same words whatever has the name, so that nobody learns what there is by asking for it.
        Some(denial) => Some(denial_of(&rights_needed(name, &[])).unwrap_or(denial)),
        None => denial_of(&[(Act::SetRoute, name)]),
    };
    if let Some(denial) = denial {
        asking.member.audit(&denial);
        return Err(denial.to_string());
    }
    match acts.is_empty() {
        false => Ok(acts),
        true => Err(format!(
            "topic: found {name:?}; expected a topic that is published or subscribed to, or a service"
        )),
    }
}

/// These acts, and those of `earlier` that are not among them.
fn acts_with(mut acts: Vec<Act>, earlier: &[Act]) -> Vec<Act> {
    let missing: Vec<Act> = earlier.iter().copied().filter(|it| !acts.contains(it)).collect();
    acts.extend(missing);
    acts
}

/// The processes that decide about flows of a topic, by their tokens: those that publish it, or ask and answer.
fn publishers(graph: &Graph, topic: &str) -> BTreeMap<String, ProcessInfo> {
    let publishes = |it: &&tsuji::EndpointInfo| {
        it.topic == topic && it.vendor.is_none() && it.kind != tsuji::EndpointKind::Subscription
    };
    let all = graph.endpoints.iter().chain(&graph.services).filter(publishes);
    all.map(|it| (it.process.token.clone(), it.process.clone())).collect()
}

/// What a topic with these flows is set to; nothing if none of them is decided by tsuji, which alone tells.
fn pinned<'r>(flows: &[&'r RouteReport]) -> Option<Option<&'r str>> {
    let mut own = flows.iter().filter(|it| !it.publisher.is_foreign()).peekable();
    own.peek()?;
    Some(own.find_map(|it| it.pinned.as_deref()))
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
    if is_foreign(flow) {
        return Some("a flow with a foreign node keeps its transport".to_owned());
    }
    if flow.state == RouteState::Incompatible {
        return Some(flow.reason());
    }
    flow.rejected.iter().find(|(it, _)| it == wanted).map(|(_, why)| why.clone())
}

/// Why none of these flows can take a transport, as far as their last decisions tell, which were about others too. Flows with foreign
/// nodes keep theirs whatever is set.
fn none_can<'r>(flows: &[&'r RouteReport], wanted: &str) -> Option<&'r str> {
    let unable = |it: &'r RouteReport| {
        let (_, why) = it.rejected.iter().find(|(it, _)| it == wanted)?;
        UNABLE.iter().any(|it| why.starts_with(it)).then_some(&**why)
    };
    let mut reasons = flows.iter().copied().filter(|it| !is_foreign(it)).map(unable);
    let first = reasons.next()??;
    reasons.all(|it| it.is_some()).then_some(first)
}

fn is_foreign(flow: &RouteReport) -> bool {
    flow.publisher.is_foreign() || flow.subscription.is_foreign()
}

fn not_set(topic: &str, why: &str) -> String {
    format!("{topic}: nothing is set: {why}")
}

fn no_flow_goes_by(wanted: &str, why: &str) -> String {
    format!("none of its flows can go by {wanted}: {why}")
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
