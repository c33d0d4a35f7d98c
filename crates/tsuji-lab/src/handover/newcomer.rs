//! How soon a subscription that appears on the host is on shared memory.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tsuji::{RouteState, WaitSet};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_platform::clock::monotonic_ns;

use super::member::{MEMBER, Part};
use crate::crew::{Child, Stop};
use crate::limits::Run;
use crate::road::{self, Road};
use crate::statistics::{Bar, Interval, interval_of_median, quantile, sorted};

/// The hidden argument of a process that subscribes and says when it was where.
pub(crate) const NEWCOMER: &str = "--newcomer";

/// Starts such processes one after the other beside a publisher at 1 kHz, without plain nodes and with
/// the engine that listens for them.
pub(super) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    for (what, road) in [("newcomer", Road::Alone), ("newcomer-rtps", Road::Rtps)] {
        let measured = measure_on(run, what, road);
        run.part(what, measured)?;
    }
    Ok(())
}

fn measure_on(run: &mut Run<'_, '_>, what: &str, road: Road) -> Result<(), Stop> {
    let folder = run.stage.folder().to_owned();
    let part = Part {
        folder: folder.clone(),
        road,
        topic: road::of_this_run(&folder, &what.replace('-', "_")),
        size: 64,
        period_us: 1000,
        depth: 10,
        publishers: 1,
        subscriptions: 0,
        readers: 0,
        writers: 0,
    };
    let mut publisher = Child::start(run.stage, MEMBER, &part.to_json())?;
    publisher.answer()?;
    publisher.ask("meet")?;
    publisher.ask("start")?;
    let text = json!({ "folder": folder, "road": road.word(), "topic": part.topic }).to_string();
    let all = if run.options.quick { STARTS_QUICK } else { STARTS };
    let mut took_ms: [Vec<f64>; STRETCHES.len()] = Default::default();
    for at in 0..all {
        run.screen.progress(&format!("{what}: {} of {all}", at + 1));
        let started_ns = monotonic_ns();
        let mut child = Child::start(run.stage, NEWCOMER, &text)?;
        let said = child.answer()?;
        if said["roads"] != json!(["shm"]) {
            return Err(format!("its roads were {}", said["roads"]).into());
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
        let most = Some(Interval::exactly(quantile(&sorted(took_ms.clone()), 1.0)));
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

/// Plays one.
pub(crate) fn newcomer(text: &str) -> i32 {
    super::ended(appear(text))
}

fn appear(text: &str) -> Result<(), String> {
    let running = monotonic_ns();
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let word = |field: &str| value[field].as_str().unwrap_or_default();
    let folder = PathBuf::from(word("folder"));
    let context = Road::of_word(word("road"))?.context(&folder).build().map_err(super::said)?;
    let built = monotonic_ns();
    let node = context.node("newcomer").map_err(super::said)?;
    let subscription = node.subscription::<Image>(word("topic")).build().map_err(super::said)?;
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
    let roads: Vec<&String> = own
        .filter(|it| it.state == RouteState::Active)
        .flat_map(|it| it.changes.iter().map(|change| &change.to))
        .collect();
    super::answer(&json!({
        "running": running, "built": built, "connected": connected, "arrived": arrived,
        "roads": roads,
    }));
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(20);
