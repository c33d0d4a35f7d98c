//! What clients ask of the bridge itself: the transports of all flows and the engines of all processes, as `tsuji routes` tells them, what
//! the bridge has done, and that a topic take another transport ([`super::route`]). By name these are services of rosapi, so that whoever
//! may ask that may ask this.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji::{EndpointKind, ProcessEngines};
use tsuji_rosbridge::access::{Access, Act, UserKey};

use super::playback;
use super::rights::{acts_of, may_know, may_see, visible};
use super::rosapi::is_hidden;
use super::route::{self, Changes, Wish};
use super::service::Asking;
use crate::body::OwnedBody;
use crate::observer::{Observer, Snapshot};
use crate::playback::{NOTHING_IS_PLAYED, Playback};
use crate::settings::Settings;
use crate::{Counters, Statistics};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Every topic, and every flow with its transport and why it is that.
    Routes,
    /// Every process, what carries samples in it, why that runs and what it takes.
    Engines,
    /// What the bridge has done so far.
    Bridge,
    /// A topic is to be set, or left to the policy.
    SetRoute,
    /// What was set last for a topic is to be taken back.
    UndoRoute,
    /// What is set, and what may be.
    RouteSettings,
    /// How far the recording is that is played.
    Playback,
    /// It is to be controlled.
    SetPlayback,
}

/// What a client that calls this service wants to know.
pub(super) fn question(service: &str) -> Option<Question> {
    match service.strip_prefix('/').unwrap_or(service) {
        "rosapi/tsuji_routes" => Some(Question::Routes),
        "rosapi/tsuji_engines" => Some(Question::Engines),
        "rosapi/tsuji_bridge" => Some(Question::Bridge),
        "rosapi/tsuji_set_route" => Some(Question::SetRoute),
        "rosapi/tsuji_undo_route" => Some(Question::UndoRoute),
        "rosapi/tsuji_route_settings" => Some(Question::RouteSettings),
        "rosapi/tsuji_playback" => Some(Question::Playback),
        "rosapi/tsuji_set_playback" => Some(Question::SetPlayback),
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
        let played = |it: &Arc<dyn Playback>| playback::told(&**it, &self.settings.access, user);
        match question {
            Question::Bridge => {
                let mut told = bridge(&self.counters.statistics(), self.began.elapsed());
                if let Some(it) = &self.settings.playback {
                    told["playback"] = played(it);
                }
                open.answer(&told);
            }
            Question::Routes => {
                self.answer_from(false, open, move |seen, access| routes(seen, access, user));
            }
            Question::Engines => {
                self.answer_from(true, open, move |seen, access| engines(seen, access, user));
            }
            Question::RouteSettings => {
                let changes = Arc::clone(&self.changes);
                self.answer_from(false, open, move |seen, access| {
                    route::settings(seen, &changes, access, user).to_string()
                });
            }
            Question::SetRoute => self.change(Wish::set(args), open, user),
            Question::UndoRoute => self.change(Wish::undo(args), open, user),
            Question::Playback | Question::SetPlayback => {
                let answer = match &self.settings.playback {
                    None => Err(NOTHING_IS_PLAYED.to_owned()),
                    Some(it) if question == Question::Playback => Ok(played(it)),
                    Some(it) => playback::change(&**it, args).map(|()| played(it)),
                };
                match answer {
                    Ok(answer) => open.answer(&answer),
                    Err(why) => open.fail(&why),
                }
            }
        }
    }

    /// Answers in JSON as `write` has it of what there is, once that is known.
    fn answer_from(
        &self,
        wants_processes: bool,
        open: Asking,
        write: impl FnOnce(&Snapshot, &Access) -> String + Send + 'static,
    ) {
        let settings = Arc::clone(&self.settings);
        self.observer.ask(wants_processes, move |seen| match seen {
            Ok(seen) => open.answer_json(&write(seen, &settings.access)),
            Err(why) => open.fail(why),
        });
    }

    /// Does what is wished, and answers what became of it.
    fn change(&self, wish: Result<Wish, String>, open: Asking, user: Option<UserKey>) {
        let wish = match wish {
            Ok(wish) => wish,
            Err(why) => return open.fail(&why),
        };
        let (settings, changes) = (Arc::clone(&self.settings), Arc::clone(&self.changes));
        self.observer.act(move |watch| {
            let outcome = match watch {
                Ok(watch) => route::change(watch, &wish, &changes, &settings.access, &open, user),
                Err(why) => Err(why.to_owned()),
            };
            match outcome {
                Ok(answer) => open.answer(&answer),
                Err(why) => open.fail(&why),
            }
        });
    }
}

/// The topics, and the flows of topics and services, that a user may know of.
fn routes(seen: &Snapshot, access: &Access, user: Option<UserKey>) -> String {
    let Snapshot { graph, routes, .. } = seen;
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

/// The processes that a user may know of, each with its engines.
fn engines(seen: &Snapshot, access: &Access, user: Option<UserKey>) -> String {
    let (_, visible) = visible(seen, access, user);
    let left_out = visible.len().saturating_sub(PROCESSES_MAX);
    let mut processes: Vec<ProcessEngines> =
        visible.into_iter().take(PROCESSES_MAX).cloned().collect();
    for engine in processes.iter_mut().flat_map(|it| &mut it.engines) {
        // The names of topics are the only words that begin so, beside paths of files.
        let mut names = engine.because.split([' ', ';']).filter(|it| it.starts_with('/'));
        // What nobody has any more is named still, and not what it was.
        if !names.all(|name| may_know(access, user, name, &acts_of(&seen.graph, name))) {
            engine.because.clear();
        }
    }
    let answer = json!({
        "processes": processes, "processes_left_out": left_out, "contexts_silent": seen.silent(),
    });
    answer.to_string()
}

fn bridge(done: &Statistics, since: Duration) -> Value {
    let mut told = done.to_json();
    told["version"] = env!("CARGO_PKG_VERSION").into();
    told["uptime_s"] = since.as_secs_f64().into();
    told["connections"] = done.connections().into();
    told
}

/// Topics, flows and processes that one answer tells of. How many it leaves out it says.
const TOPICS_MAX: usize = 5000;
pub(super) const ROUTES_MAX: usize = 1000;
const PROCESSES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use tsuji::{EngineReport, Graph};

    use super::super::rights::tests::{endpoint, flow, only, process, user_with};
    use super::*;

    #[test]
    fn an_engine_that_runs_for_what_has_gone_says_so_to_who_may_know_of_it_whatever_it_was() {
        let engine = |because: &str| EngineReport { because: because.into(), ..Default::default() };
        let engines = vec![
            engine("a subscription to /vault/open; no flow needs it now"),
            engine("a publisher on /open"),
        ];
        let processes =
            vec![ProcessEngines { process: process(1), engines, ..ProcessEngines::default() }];
        let open = endpoint(EndpointKind::Publisher, "/open", 1);
        let graph = Graph { nodes: Vec::new(), endpoints: vec![open], services: Vec::new() };
        let snapshot = Snapshot::new(graph, vec![flow("/open", [1, 1])], processes);
        let reasons = |subscribe, call_service| {
            let (access, user) = user_with(only(subscribe, call_service));
            let answer: Value =
                serde_json::from_str(&super::engines(&snapshot, &access, user)).unwrap();
            let engines = answer["processes"][0]["engines"].as_array().unwrap();
            engines.iter().map(|it| it["because"] != "").collect::<Vec<_>>()
        };
        assert_eq!(reasons("", "[/rosapi/*]"), [false, true]);
        assert_eq!(reasons("[/open]", ""), [false, true]);
        assert_eq!(reasons("", "[/vault/*]"), [true, true]);
    }
}
