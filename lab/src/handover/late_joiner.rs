//! How soon a subscription that appears on the host is on shared memory.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tsuji::{Qos, RouteState, WaitSet};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_platform::clock::monotonic_ns;

use super::member::Part;
use crate::Allocations;
use crate::budgets::Run;
use crate::child::ChildPart;
use crate::crew::{Child, Stop};
use crate::route::{self, Route};
use crate::statistics::{Bar, interval_of_median, quantile, sorted};

/// Starts such processes one after the other beside a publisher at 1 kHz, without foreign nodes and with
/// the engine that listens for them.
pub(super) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    for (what, route) in [("late-joiner", Route::Alone), ("late-joiner-rtps", Route::Rtps)] {
        let measured = measure_on(run, what, route);
        run.part(what, measured)?;
    }
    Ok(())
}

fn measure_on(run: &mut Run<'_, '_>, what: &str, route: Route) -> Result<(), Stop> {
    let folder = run.stage.folder().to_owned();
    let part = Part {
        folder: folder.clone(),
        route,
        topic: route::of_this_run(&folder, &what.replace('-', "_")),
        size: 64,
        period_us: 1000,
        depth: 10,
        publishers: 1,
        subscriptions: 0,
        readers: 0,
        writers: 0,
    };
    let mut publisher = Child::open(run.stage, &part)?;
    publisher.ask("meet")?;
    publisher.ask("start")?;
    let joiner = Joiner { folder, route, topic: part.topic };
    let all = if run.options.quick { STARTS_QUICK } else { STARTS };
    let mut took_ms: [Vec<f64>; STRETCHES.len()] = Default::default();
    for at in 0..all {
        run.screen.progress(&format!("{what}: {} of {all}", at + 1));
        let started_ns = monotonic_ns();
        let mut child = Child::start(run.stage, &joiner)?;
        let said = child.answer()?;
        if said["transports"] != json!(["shm"]) {
            return Err(format!("its transports were {}", said["transports"]).into());
        }
        let ns = |field: &str| said[field].as_u64().unwrap_or(0);
        for ((_, from, to, _), took_ms) in STRETCHES.iter().zip(&mut took_ms) {
            let from_ns = if *from == "started" { started_ns } else { ns(from) };
            took_ms.push(ns(to).saturating_sub(from_ns) as f64 / 1e6);
        }
        drop(child);
        // The publisher's process is at rest again before the next one appears.
        thread::sleep(REST);
        // It keeps what it has sent until it is asked.
        publisher.ask("look")?;
    }
    for ((name, from, to, bar), took_ms) in STRETCHES.iter().zip(took_ms) {
        let (of, bar) = (format!("{from} to {to}"), bar.map(Bar::AtMost));
        let most = quantile(&sorted(took_ms.clone()), 1.0);
        run.judge(format!("{what} {name} median"), &*of, interval_of_median(&took_ms), "ms", bar);
        run.judge(format!("{what} {name} most"), of, most, "ms", bar);
    }
    Ok(())
}

/// What is measured, from when to when, and its bar.
const STRETCHES: &[(&str, &str, &str, Option<f64>)] = &[
    ("from its start", "started", "connected", Some(50.0)),
    ("from its context", "built", "connected", Some(50.0)),
    ("building its context", "running", "built", None),
    ("to its first sample", "started", "arrived", None),
];

const STARTS: usize = 50;
const STARTS_QUICK: usize = 5;
const REST: Duration = Duration::from_millis(100);

/// A process that subscribes and says when it was where.
#[derive(Serialize, Deserialize)]
pub(crate) struct Joiner {
    folder: PathBuf,
    route: Route,
    topic: String,
}

impl ChildPart for Joiner {
    const MODE: &'static str = "--late-joiner";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        appear(&self)
    }
}

fn appear(joiner: &Joiner) -> Result<(), String> {
    let running = monotonic_ns();
    let context = joiner.route.context(&joiner.folder).build().map_err(super::said)?;
    let built = monotonic_ns();
    let node = context.node("late_joiner").map_err(super::said)?;
    let subscription = node
        .create_polled_subscription::<Image>(&joiner.topic, Qos::DEFAULT)
        .map_err(super::said)?;
    let mut set = WaitSet::new(&context).map_err(super::said)?;
    set.add(&subscription).map_err(super::said)?;
    subscription.wait_for_publishers(1, PATIENCE).map_err(super::said)?;
    let connected = monotonic_ns();
    while subscription.take().map_err(super::said)?.is_none() {
        if set.wait(PATIENCE).map_err(super::said)?.is_empty() {
            return Err("no sample comes".to_owned());
        }
    }
    let arrived = monotonic_ns();
    let gid = subscription.gid().to_string();
    let routes = context.routes(PATIENCE).map_err(super::said)?;
    let own = routes.iter().filter(|it| it.subscription.gid == gid);
    let transports: Vec<&String> = own
        .filter(|it| it.state == RouteState::Active)
        .flat_map(|it| it.changes.iter().map(|change| &change.to))
        .collect();
    super::answer(&json!({
        "running": running, "built": built, "connected": connected, "arrived": arrived,
        "transports": transports,
    }));
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(20);
