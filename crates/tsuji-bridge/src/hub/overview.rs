//! What clients ask of the bridge itself: the transports of all flows, as `tsuji routes` tells them, what the bridge has done, and that a
//! topic take another transport ([`super::route`]). By name these are services of rosapi, so that whoever may ask that may ask this.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji::{EndpointKind, Graph, Role, RouteReport};
use tsuji_rosbridge::access::{Access, Act, UserKey};
use tsuji_rosbridge::{Encoding, Values};

use super::rosapi::is_hidden;
use super::route::{self, Changes, Wish};
use super::service::Asking;
use crate::body::OwnedBody;
use crate::observer::{Observer, Snapshot};
use crate::settings::Settings;
use crate::{Counters, Statistics};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Every topic, and every flow with its transport and why it is that.
    Routes,
    /// What the bridge has done so far.
    Bridge,
    /// A topic is to be set, or left to the policy.
    SetRoute,
    /// What was set last for a topic is to be taken back.
    UndoRoute,
    /// What is set, and what may be.
    RouteSettings,
}

/// What a client that calls this service wants to know.
pub(super) fn question(service: &str) -> Option<Question> {
    match service.strip_prefix('/').unwrap_or(service) {
        "rosapi/tsuji_routes" => Some(Question::Routes),
        "rosapi/tsuji_bridge" => Some(Question::Bridge),
        "rosapi/tsuji_set_route" => Some(Question::SetRoute),
        "rosapi/tsuji_undo_route" => Some(Question::UndoRoute),
        "rosapi/tsuji_route_settings" => Some(Question::RouteSettings),
        _ => None,
    }
}

/// Answers such questions.
pub(super) struct Overview {
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    observer: Arc<Observer>,
    changes: Arc<Changes>,
    began: Instant,
}

impl Overview {
    pub(super) fn new(
        settings: Arc<Settings>,
        counters: Arc<Counters>,
        observer: Arc<Observer>,
    ) -> Self {
        let changes = Arc::default();
        Self { settings, counters, observer, changes, began: Instant::now() }
    }

    /// Answers, at once or when it is known.
    pub(super) fn ask(
        &self,
        question: Question,
        args: &OwnedBody,
        open: Asking,
        user: Option<UserKey>,
    ) {
        let wish = match question {
            Question::Bridge => {
                let told = bridge(&self.counters.statistics(), self.began.elapsed());
                return open.answer(&told);
            }
            Question::Routes => {
                let settings = Arc::clone(&self.settings);
                return self
                    .observer
                    .ask(false, move |snapshot| answer(snapshot, &settings.access, open, user));
            }
            Question::RouteSettings => {
                let (settings, changes) = (Arc::clone(&self.settings), Arc::clone(&self.changes));
                return self.observer.ask(false, move |snapshot| match snapshot {
                    Ok(snapshot) => {
                        open.answer(&route::settings(snapshot, &changes, &settings.access, user));
                    }
                    Err(why) => open.fail(why),
                });
            }
            Question::SetRoute => Wish::set(args),
            Question::UndoRoute => Wish::undo(args),
        };
        let wish = match wish {
            Ok(wish) => wish,
            Err(why) => return open.fail(&why),
        };
        let (settings, changes) = (Arc::clone(&self.settings), Arc::clone(&self.changes));
        self.observer.act(move |watch| {
            let done = match watch {
                Ok(watch) => route::change(watch, &wish, &changes, &settings.access, &open, user),
                Err(why) => Err(why.to_owned()),
            };
            match done {
                Ok(told) => open.answer(&told),
                Err(why) => open.fail(&why),
            }
        });
    }
}

fn answer(snapshot: Result<&Snapshot, &str>, access: &Access, open: Asking, user: Option<UserKey>) {
    let Snapshot { graph, routes, .. } = match snapshot {
        Ok(snapshot) => snapshot,
        Err(why) => return open.fail(why),
    };
    let told = told(graph, routes, access, user);
    match open.member.encoding {
        Encoding::Json | Encoding::Cbor => open.end(Values::Encoded(told.as_bytes()), true),
        Encoding::Bson => open.answer(&serde_json::from_str(&told).unwrap_or_default()),
    }
}

/// The topics, and the flows of topics and services, that a user may know of.
fn told(graph: &Graph, routes: &[RouteReport], access: &Access, user: Option<UserKey>) -> String {
    let may = |act, name: &str| access.decide(user, act, name).is_ok();
    let mut topics = BTreeMap::<(&str, &str), [u32; 2]>::new();
    for it in graph.endpoints.iter().filter(|it| !is_hidden(&it.topic)) {
        if may(Act::Subscribe, &it.topic) {
            let ends = topics.entry((&it.topic, &it.type_name)).or_default();
            ends[usize::from(it.kind != EndpointKind::Publisher)] += 1;
        }
    }
    let topics_left_out = topics.len().saturating_sub(TOPICS_MAX);
    let topics = topics.iter().take(TOPICS_MAX).map(|((topic, ty), [publishers, subscriptions])| {
        json!({
            "topic": topic, "type": ty, "publishers": publishers, "subscriptions": subscriptions,
        })
    });
    let topics = Value::from_iter(topics);
    let mut shown = routes.iter().filter(|it| may_see(access, user, it));
    let listed: Vec<_> = shown.by_ref().take(ROUTES_MAX).collect();
    let routes_left_out = shown.count();
    // Reports are plain data, which can always be written.
    let routes = serde_json::to_string(&listed).unwrap_or_else(|_| "[]".to_owned());
    format!(
        "{{\"topics\":{topics},\"topics_left_out\":{topics_left_out},\
         \"routes\":{routes},\"routes_left_out\":{routes_left_out}}}"
    )
}

/// Whether a user may know of a flow: may hear the topic, call the service, or send goals to the action that it is a part of.
pub(crate) fn may_see(access: &Access, user: Option<UserKey>, flow: &RouteReport) -> bool {
    let (act, name) = match (flow.topic.split_once("/_action/"), flow.role) {
        (Some((action, _)), _) => (Act::SendGoal, action),
        (None, Role::Topic) => (Act::Subscribe, &*flow.topic),
        (None, Role::Request | Role::Reply) => (Act::CallService, &*flow.topic),
    };
    access.decide(user, act, name).is_ok()
}

fn bridge(done: &Statistics, since: Duration) -> Value {
    let mut told = done.to_json();
    told["version"] = env!("CARGO_PKG_VERSION").into();
    told["uptime_s"] = since.as_secs_f64().into();
    told["connections"] = done.connections().into();
    told
}

/// Topics and flows that one answer tells of. How many it leaves out it says.
const TOPICS_MAX: usize = 5000;
pub(super) const ROUTES_MAX: usize = 1000;
