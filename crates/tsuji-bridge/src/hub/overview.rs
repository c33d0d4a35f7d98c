//! What clients ask of the bridge itself: the transports of all flows, as `tsuji routes` tells them, and what the bridge has done. By
//! name these are services of rosapi, so that whoever may ask that may ask this.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji::{Context, EndpointKind, Graph, Role, RouteReport};
use tsuji_rosbridge::access::{Access, Act, UserKey};
use tsuji_rosbridge::{Encoding, Values};

use super::rosapi::is_hidden;
use super::service::Asking;
use crate::settings::Settings;
use crate::{Counters, Statistics};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Every topic, and every flow with its transport and why it is that.
    Routes,
    /// What the bridge has done so far.
    Bridge,
}

/// What a client that calls this service wants to know.
pub(super) fn question(service: &str) -> Option<Question> {
    match service.strip_prefix('/').unwrap_or(service) {
        "rosapi/tsuji_routes" => Some(Question::Routes),
        "rosapi/tsuji_bridge" => Some(Question::Bridge),
        _ => None,
    }
}

/// Answers such questions.
pub(super) struct Overview {
    context: Context,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    began: Instant,
    /// From the first question about flows on: every process has to answer it, which this thread waits for.
    looking: Option<(SyncSender<Asked>, JoinHandle<()>)>,
}

/// A question about flows.
struct Asked {
    open: Asking,
    user: Option<UserKey>,
}

impl Overview {
    pub(super) fn new(context: Context, settings: Arc<Settings>, counters: Arc<Counters>) -> Self {
        Self { context, settings, counters, began: Instant::now(), looking: None }
    }

    /// Answers, at once or when it is known.
    pub(super) fn ask(&mut self, question: Question, open: Asking, user: Option<UserKey>) {
        match question {
            Question::Bridge => {
                let told = bridge(&self.counters.statistics(), self.began.elapsed());
                open.answer(&told);
            }
            Question::Routes => match self.looking() {
                Ok(looking) => match looking.try_send(Asked { open, user }) {
                    Ok(()) => {}
                    Err(TrySendError::Full(asked) | TrySendError::Disconnected(asked)) => {
                        asked.open.fail("too many ask for the routes at a time; ask later");
                    }
                },
                Err(why) => open.fail(&why),
            },
        }
    }

    /// The way to the thread that looks, which begins now if it has not.
    fn looking(&mut self) -> Result<&SyncSender<Asked>, String> {
        let looking = match self.looking.take() {
            Some(looking) => looking,
            None => {
                let (sender, asked) = mpsc::sync_channel(ASKED_MAX);
                let (context, settings) = (self.context.clone(), Arc::clone(&self.settings));
                let look = move || look(&asked, &context, &settings.access);
                let thread = thread::Builder::new().name("bridge-routes".to_owned()).spawn(look);
                (sender, thread.map_err(|error| format!("thread: {error}"))?)
            }
        };
        Ok(&self.looking.insert(looking).0)
    }
}

impl Drop for Overview {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.looking.take() {
            drop(sender);
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Answers until nobody can ask any more.
fn look(asked: &Receiver<Asked>, context: &Context, access: &Access) {
    let mut seen: Option<(Instant, Graph, Result<Vec<RouteReport>, String>)> = None;
    while let Ok(first) = asked.recv() {
        if seen.as_ref().is_none_or(|(at, ..)| LOOK_EVERY <= at.elapsed()) {
            let routes = context.routes(ANSWER).map_err(|error| error.to_string());
            seen = Some((Instant::now(), context.graph(), routes));
        }
        let Some((_, graph, routes)) = &seen else { continue };
        for Asked { open, user } in std::iter::once(first).chain(asked.try_iter()) {
            match routes {
                Ok(routes) => {
                    let told = told(graph, routes, access, user);
                    match open.member.encoding {
                        Encoding::Json | Encoding::Cbor => {
                            open.end(Values::Encoded(told.as_bytes()), true);
                        }
                        Encoding::Bson => {
                            open.answer(&serde_json::from_str(&told).unwrap_or_default());
                        }
                    }
                }
                Err(why) => open.fail(why),
            }
        }
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
    let shows = |it: &&RouteReport| match it.role {
        Role::Topic => may(Act::Subscribe, &it.topic),
        Role::Request | Role::Reply => may(Act::CallService, &it.topic),
    };
    let mut shown = routes.iter().filter(shows);
    let listed: Vec<_> = shown.by_ref().take(ROUTES_MAX).collect();
    let routes_left_out = shown.count();
    // Reports are plain data, which can always be written.
    let routes = serde_json::to_string(&listed).unwrap_or_else(|_| "[]".to_owned());
    format!(
        "{{\"topics\":{topics},\"topics_left_out\":{topics_left_out},\
         \"routes\":{routes},\"routes_left_out\":{routes_left_out}}}"
    )
}

fn bridge(done: &Statistics, since: Duration) -> Value {
    let mut told = done.to_json();
    told["version"] = env!("CARGO_PKG_VERSION").into();
    told["uptime_s"] = since.as_secs_f64().into();
    told["connections"] = done.connected.saturating_sub(done.disconnected).into();
    told
}

/// How long other processes have to say what they know of flows.
const ANSWER: Duration = Duration::from_secs(1);

/// No more often than this other processes are asked; who asks meanwhile is told what was seen last.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Questions that wait for a look. One more fails.
const ASKED_MAX: usize = 4096;

/// Topics and flows that one answer tells of. How many it leaves out it says.
const TOPICS_MAX: usize = 5000;
const ROUTES_MAX: usize = 1000;
