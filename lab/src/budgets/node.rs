//! What makes a node whole, between two processes: an action beside a service, and many parameters in one call.

use std::io::{self, BufRead as _};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tsuji::action::GoalHandle;
use tsuji::parameter::{Parameter, ParameterClient};
use tsuji::{Node, Request};
use tsuji_interfaces::example_interfaces::action::{Fibonacci, FibonacciGoal, FibonacciResult};
use tsuji_interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
use tsuji_platform::clock::monotonic_ns;

use crate::Allocations;
use crate::budgets::{Parts, Run, case, reading};
use crate::child::{ChildPart, answer, said};
use crate::crew::{Child, Stop};
use crate::placement::Place;
use crate::report::Series;
use crate::rounds::Round;
use crate::route::{Route, TsujiTransport};
use crate::statistics::{Bar, Statistic, over_clusters, ratio};

/// An action's goal until its result is there, beside a call of a service, by each of two transports.
pub(crate) fn action(_: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    let routes =
        [("action", Route::Alone), ("action-cyclonedds", Route::By(TsujiTransport::CycloneDds))];
    let asking = |(what, route)| {
        let measure = move |run: &mut Run<'_, '_>, round| ask_all(run, what, route, round);
        case(what, measure, move |run: &mut Run<'_, '_>, times| judge_actions(run, what, &times))
    };
    Ok(routes.map(asking).into())
}

/// How long each took, of each that is asked.
fn ask_all(
    run: &mut Run<'_, '_>,
    what: &str,
    route: Route,
    round: Round,
) -> Result<[Vec<f64>; 4], Stop> {
    let (_server, mut client) = start(run, what, route)?;
    for (word, _) in ASKED {
        take(&mut client, word, WARM_UP)?;
    }
    let each = round.part(run.options.count);
    let mut fresh = ASKED.map(|_| Vec::new());
    let mut order = [0, 1, 2, 3];
    order.rotate_left(round.number % ASKED.len());
    for at in order {
        fresh[at] = take(&mut client, ASKED[at].0, each)?;
    }
    Ok(fresh)
}

fn judge_actions(run: &mut Run<'_, '_>, what: &str, rounds: &[[Vec<f64>; 4]]) {
    let times = [0, 1, 2, 3].map(|at| rounds.iter().map(|it| it[at].clone()).collect::<Times>());
    for ((_, of), times) in ASKED.iter().zip(&times) {
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            run.judge(format!("{what} {name}"), *of, over_clusters(times, share), "µs", None);
        }
        run.report.series(Series::latency(what, *of, times));
    }
    let [service, action, threads_service, threads_action] = [0, 1, 2, 3];
    for (action, service, has_bar) in [
        (action, service, true),
        (threads_action, threads_service, true),
        (threads_action, service, false),
    ] {
        let of = format!("{} / {}", ASKED[action].1, ASKED[service].1);
        for statistic in [Statistic::Median, Statistic::P99] {
            let has_bar = has_bar && statistic == Statistic::Median;
            let bar = has_bar.then_some(Bar::AtMost(ACTION_MAX));
            let figure = ratio(statistic, &times[action], &times[service]);
            run.judge(format!("{what} {statistic}"), &*of, figure, "×", bar);
        }
    }
}

/// What is asked of the server, and what that is: whoever spins it answers, or hands it to a thread of its own.
const ASKED: [(&str, &str); 4] = [
    ("service", "a call of a service"),
    ("action", "a goal with its result"),
    ("service-by-thread", "a call that a thread answers"),
    ("action-by-thread", "a goal that a thread pursues"),
];

/// A thousand parameters, set in one call.
pub(crate) fn parameters(_: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    const WHAT: &str = "parameters";
    let measure = |run: &mut Run<'_, '_>, round: Round| {
        let (_server, mut client) = start(run, WHAT, Route::Alone)?;
        take(&mut client, WHAT, 1)?;
        take(&mut client, WHAT, round.part(run.options.count / 20).max(1))
    };
    let say = |run: &mut Run<'_, '_>, times: Times| {
        let of = format!("{PARAMETERS} set in one call");
        let [median, p99] = [0.5, 0.99].map(|it| over_clusters(&times, it));
        run.judge("parameters median", &*of, median, "µs", Some(CALL_MAX));
        run.judge("parameters p99", &*of, p99, "µs", None);
        run.report.series(Series::latency(WHAT, of, &times));
    };
    Ok(vec![case(WHAT, measure, say)])
}

/// An action is two calls: one for the goal, one for the result.
const ACTION_MAX: f64 = 3.0;
const CALL_MAX: Bar = Bar::AtMost(10_000.0);
const PARAMETERS: usize = 1000;
const WARM_UP: u64 = 20;

/// Of each start, how long each took, in µs.
type Times = Vec<Vec<f64>>;

/// A process that serves, and one that asks.
pub(super) fn start(run: &Run<'_, '_>, what: &str, route: Route) -> Result<(Child, Child), Stop> {
    let part = |serves| NodePart {
        folder: run.stage.folder().to_owned(),
        route,
        serves,
        name: what.replace('-', "_"),
    };
    let server = Child::open(&run.stage.at(Place::Receiver(0)), &part(true))?;
    Ok((server, Child::open(&run.stage.at(Place::Sender), &part(false))?))
}

/// How long each took, in µs.
pub(super) fn take(client: &mut Child, word: &str, count: u64) -> Result<Vec<f64>, Stop> {
    let answer = client.ask(&format!("{word} {count}"))?;
    let times = answer["times_ns"].as_array();
    Ok(times.into_iter().flatten().filter_map(Value::as_f64).map(|ns| ns / 1000.0).collect())
}

/// A process that serves or asks.
#[derive(Serialize, Deserialize)]
pub(crate) struct NodePart {
    folder: PathBuf,
    route: Route,
    /// Whether it serves, or asks.
    serves: bool,
    name: String,
}

impl ChildPart for NodePart {
    const MODE: &'static str = "--node";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        let Self { folder, route, serves, name } = self;
        let context = route.context(&folder).build().map_err(said)?;
        let role = if serves { "server" } else { "client" };
        let node = context.node(&format!("{name}_{role}")).map_err(said)?;
        if serves { serve(&node, &name) } else { ask(&node, &name) }
    }
}

fn serve(node: &Node, name: &str) -> Result<(), String> {
    let mut adding = reading::answering();
    let add_in_place = move |request: Arc<AddTwoIntsRequest>| adding(&request);
    let _service = node.create_service::<AddTwoInts>(&format!("{name}_add"), add_in_place);
    let _service = _service.map_err(said)?;
    let (hand, handed) = mpsc::channel::<Request<AddTwoInts>>();
    thread::spawn(move || {
        let mut add = reading::answering();
        for request in handed {
            let answer = add(&request.message());
            // Whoever asked has left.
            let _ = request.respond(answer);
        }
    });
    let _by_thread = node
        .create_deferred_service::<AddTwoInts>(&format!("{name}_add_by_thread"), move |request| {
            // The thread ends with this.
            let _ = hand.send(request);
        })
        .map_err(said)?;
    let pursue = |goal: GoalHandle<Fibonacci>| {
        let sequence = (0..goal.goal().order).collect();
        // Whoever asked is told, or has left.
        let _ = goal.succeed(FibonacciResult { sequence });
    };
    let action = format!("{name}_fibonacci");
    let _action = node.create_deferred_action_server(&action, pursue).map_err(said)?;
    let by_thread = format!("{action}_by_thread");
    let _action_by_thread = node.create_action_server(by_thread, pursue).map_err(said)?;
    let parameters = node.parameters().map_err(said)?;
    for name in names() {
        parameters.declare(&name, 0_i64).map_err(said)?;
    }
    answer(&json!({ "open": true }));
    let ending = node.context().clone();
    thread::spawn(move || {
        let _ = io::stdin().lock().read_line(&mut String::new());
        ending.shutdown();
    });
    tsuji::spin(node).map_err(said)
}

fn ask(node: &Node, name: &str) -> Result<(), String> {
    let adding = |part: &str| node.create_client::<AddTwoInts>(&format!("{name}_add{part}"));
    let action =
        |part: &str| node.create_action_client::<Fibonacci>(&format!("{name}_fibonacci{part}"));
    let parts = ["", "_by_thread"];
    let [adding, adding_by_thread] = parts.map(adding);
    let [action, action_by_thread] = parts.map(action);
    let adding = [adding.map_err(said)?, adding_by_thread.map_err(said)?];
    let action = [action.map_err(said)?, action_by_thread.map_err(said)?];
    let parameters = ParameterClient::new(node, &format!("/{name}_server"));
    for (adding, action) in adding.iter().zip(&action) {
        adding.wait_for_service(PATIENCE).map_err(said)?;
        action.wait_for_server(PATIENCE).map_err(said)?;
    }
    answer(&json!({ "open": true }));
    let mut round = 0;
    let mut line = String::new();
    let mut input = io::stdin().lock();
    while let Ok(1..) = input.read_line(&mut line) {
        let (word, count) = line.trim_end().split_once(' ').unwrap_or_default();
        let count = count.parse().unwrap_or(0);
        let mut times = Vec::new();
        if let reading::BARE | reading::READ = word {
            times.push(reading::call(&adding[0], count, word == reading::READ)?);
            answer(&json!({ "times_ns": times }));
            line.clear();
            continue;
        }
        for _ in 0..count {
            round += 1;
            // So that the other end sleeps.
            thread::sleep(REST);
            let set: Vec<_> = match word {
                "parameters" => names().map(|name| Parameter::new(name, round)).collect(),
                _ => Vec::new(),
            };
            let (word, at) = match word.strip_suffix("-by-thread") {
                Some(word) => (word, 1),
                None => (word, 0),
            };
            let (adding, action) = (&adding[at], &action[at]);
            let began = monotonic_ns();
            match word {
                "service" => {
                    let response = adding.call(AddTwoIntsRequest { a: round, b: 1 }, PATIENCE);
                    if response.map_err(said)?.sum != round + 1 {
                        return Err("a wrong sum".to_owned());
                    }
                }
                "action" => {
                    let goal = action.send_goal(FibonacciGoal { order: 2 }, PATIENCE);
                    let goal = goal.map_err(said)?.ok_or("a goal was rejected")?;
                    if goal.result(PATIENCE).map_err(said)?.1.sequence != [0, 1] {
                        return Err("a wrong result".to_owned());
                    }
                }
                _ => {
                    let answers = parameters.set(set, PATIENCE).map_err(said)?;
                    if answers.len() != PARAMETERS || answers.iter().any(Result::is_err) {
                        return Err("parameters were refused".to_owned());
                    }
                }
            }
            times.push(monotonic_ns() - began);
        }
        answer(&json!({ "times_ns": times }));
        line.clear();
    }
    Ok(())
}

fn names() -> impl Iterator<Item = String> {
    (0..PARAMETERS).map(|at| format!("part_{}.value_{}", at / 10, at % 10))
}

pub(super) const PATIENCE: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_micros(200);
