//! What the tools of ROS show of a robot's health: each topic with its transport, and the bridge itself, on `/diagnostics` once a
//! second, as REP 107 has it. While nobody subscribes to that nobody is asked and nothing is published.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tsuji::{Context, EndpointKind, Node, Publisher, Qos, RouteReport, RouteState};
use tsuji_codec::Now;
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus, KeyValue};
use tsuji_interfaces::std_msgs::msg::Header;
use tsuji_platform::process;

use crate::body::wall_now;
use crate::observer::{Observer, Snapshot};
use crate::plain::Plain;
use crate::{Counters, Statistics};

const TOPIC: &str = "/diagnostics";

/// So often it is told.
const EVERY: Duration = Duration::from_secs(1);

/// Of more topics than so many the rest is left out, and counted.
const TOPICS_MAX: usize = 1000;

/// Tells it, while somebody subscribes.
pub(super) struct Diagnostics {
    context: Context,
    observer: Arc<Observer>,
    counters: Arc<Counters>,
    publisher: Arc<Publisher<DiagnosticArray>>,
    before: Arc<Mutex<Before>>,
    /// When it is told next, while somebody subscribes.
    next: Option<Instant>,
}

/// What had been lost when it was told last.
#[derive(Default)]
struct Before {
    /// By topic.
    drops: HashMap<String, u64>,
    bridge: Option<Statistics>,
}

impl Diagnostics {
    pub(super) fn new(
        node: &Node,
        observer: Arc<Observer>,
        counters: Arc<Counters>,
    ) -> tsuji::Result<Self> {
        let publisher = Arc::new(node.create_publisher(TOPIC, Qos::DEFAULT)?);
        let (context, before) = (node.context().clone(), Arc::default());
        Ok(Self { context, observer, counters, publisher, before, next: None })
    }

    /// When it is told next, if it is.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Looks whether somebody subscribes, after the graph has changed.
    pub(super) fn reconsider(&mut self) {
        let ends = self.context.endpoints_of(TOPIC);
        match ends.iter().any(|it| it.kind == EndpointKind::Subscription) {
            true => self.next = self.next.or_else(|| Some(Instant::now())),
            false => self.next = None,
        }
    }

    /// Tells it, where it is time.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        if self.next.is_none_or(|it| now < it) {
            return;
        }
        self.next = Some(now + EVERY);
        let done = self.counters.statistics();
        let (publisher, before) = (Arc::clone(&self.publisher), Arc::clone(&self.before));
        self.observer.ask(false, move |seen| {
            let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
            let told = publisher.publish(told(seen, done, &mut before, wall_now()));
            if let Err(error) = told {
                tracing::warn!(topic = TOPIC, error = %Plain(error), "the diagnostics are not published");
            }
        });
    }
}

/// All that is told of what there is, or of the reason why that is not known.
fn told(
    seen: Result<&Snapshot, &str>,
    done: Statistics,
    before: &mut Before,
    Now { sec, nanosec }: Now,
) -> DiagnosticArray {
    let mut status = vec![bridge(done, before.bridge.replace(done).unwrap_or(done))];
    match seen {
        Ok(seen) => status.extend(topics(&seen.routes, &mut before.drops)),
        Err(why) => status.push(one(DiagnosticStatus::STALE, "flows", why, Vec::new())),
    }
    let stamp = Time { sec, nanosec };
    DiagnosticArray { header: Header { stamp, frame_id: String::new() }, status }
}

fn one(level: u8, name: &str, message: &str, values: Vec<(&str, String)>) -> DiagnosticStatus {
    let value = |(key, value): (&str, String)| KeyValue { key: key.to_owned(), value };
    DiagnosticStatus {
        level,
        name: format!("tsuji: {name}"),
        message: message.to_owned(),
        hardware_id: process::host_name(),
        values: values.into_iter().map(value).collect(),
    }
}

fn bridge(done: Statistics, before: Statistics) -> DiagnosticStatus {
    let lost = |of: Statistics| of.missed + of.dropped + of.crowded_out + of.cut_off;
    let more = lost(done).saturating_sub(lost(before));
    let (level, message) = match more {
        0 => (DiagnosticStatus::OK, format!("{} connections", done.connections())),
        more => (
            DiagnosticStatus::WARN,
            format!(
                "{more} samples more did not come to clients; {} connections",
                done.connections()
            ),
        ),
    };
    let values = done.counts().into_iter().map(|(name, number, _)| (name, number.to_string()));
    one(level, "bridge", &message, values.collect())
}

/// One status for each topic or service, of all its flows.
fn topics(routes: &[RouteReport], before: &mut HashMap<String, u64>) -> Vec<DiagnosticStatus> {
    let mut flows = BTreeMap::<&str, Vec<&RouteReport>>::new();
    for it in routes {
        flows.entry(&it.topic).or_default().push(it);
    }
    let mut drops = HashMap::new();
    let mut told = Vec::new();
    let left_out = flows.len().saturating_sub(TOPICS_MAX);
    for (topic, flows) in flows.into_iter().take(TOPICS_MAX) {
        let dropped = flows.iter().flat_map(|it| it.drops()).map(|it| it.1).sum();
        // What was lost before anybody looked is no news.
        let more = before.get(topic).map_or(0, |it| u64::saturating_sub(dropped, *it));
        drops.insert(topic.to_owned(), dropped);
        told.push(of_topic(topic, &flows, more));
    }
    *before = drops;
    if left_out != 0 {
        let message = format!("{left_out} topics are left out");
        told.push(one(DiagnosticStatus::WARN, "flows", &message, Vec::new()));
    }
    told
}

fn of_topic(topic: &str, flows: &[&RouteReport], more_drops: u64) -> DiagnosticStatus {
    let all = |of: &dyn Fn(&RouteReport) -> String| {
        let each: BTreeSet<String> =
            flows.iter().map(|it| of(it)).filter(|it| !it.is_empty()).collect();
        each.into_iter().collect::<Vec<_>>().join("; ")
    };
    let transports = all(&|it| it.transport.clone().unwrap_or_default());
    let most = |of: &dyn Fn(&RouteReport) -> f64| flows.iter().map(|it| of(it)).fold(0.0, f64::max);
    let median_us = most(&|it| it.latency.as_ref().map_or(0.0, |it| it.median_us));
    let rate_hz = most(&|it| it.rate_hz);
    let without = |state| flows.iter().filter(|it| it.state == state).count();
    let [without_route, incompatible] =
        [RouteState::NoRoute, RouteState::Incompatible].map(without);
    let (level, message) = if without_route != 0 {
        (
            DiagnosticStatus::ERROR,
            format!("no transport can carry {without_route} of {} flows", flows.len()),
        )
    } else if incompatible != 0 {
        (DiagnosticStatus::ERROR, format!("{incompatible} of {} flows do not fit", flows.len()))
    } else if more_drops != 0 {
        (DiagnosticStatus::WARN, format!("{more_drops} samples more were lost; by {transports}"))
    } else {
        (DiagnosticStatus::OK, format!("by {transports}, {rate_hz:.1} Hz, {median_us:.0} µs"))
    };
    let mut values = vec![
        ("flows", flows.len().to_string()),
        ("transport", transports),
        ("reason", all(&|it| it.reason())),
        ("rate (Hz)", format!("{rate_hz:.1}")),
        ("latency, median (µs)", format!("{median_us:.1}")),
    ];
    let mut causes = BTreeMap::<&str, u64>::new();
    for (cause, number) in flows.iter().flat_map(|it| it.drops()) {
        *causes.entry(cause).or_default() += number;
    }
    values.extend(causes.into_iter().map(|(cause, number)| (cause, number.to_string())));
    one(level, topic, &message, values)
}

#[cfg(test)]
mod tests {
    use super::super::rights::tests::flow;
    use super::*;

    fn carried(topic: &str, lost: u64) -> RouteReport {
        let (transport, because) = (Some("shm".into()), "rule \"on this host\"; …".into());
        RouteReport { transport, because, lost, rate_hz: 30.0, ..flow(topic, [1, 2]) }
    }

    fn value<'a>(status: &'a DiagnosticStatus, key: &str) -> &'a str {
        &status.values.iter().find(|it| it.key == key).unwrap().value
    }

    #[test]
    fn what_is_lost_since_is_a_warning_and_what_was_lost_before_is_none() {
        let mut before = HashMap::new();
        let mut told =
            |lost| topics(&[carried("/a", lost), carried("/a", 0)], &mut before).remove(0);
        let first = told(7);
        assert_eq!((first.level, &*first.name), (DiagnosticStatus::OK, "tsuji: /a"));
        assert_eq!(first.message, "by shm, 30.0 Hz, 0 µs");
        assert_eq!((value(&first, "flows"), value(&first, "lost")), ("2", "7"));
        assert_eq!(value(&first, "reason"), "rule \"on this host\"");
        let second = told(10);
        assert_eq!(second.level, DiagnosticStatus::WARN);
        assert_eq!(second.message, "3 samples more were lost; by shm");
        assert_eq!(told(10).level, DiagnosticStatus::OK);
        // A flow that has gone takes its count with it.
        assert_eq!(told(2).level, DiagnosticStatus::OK);
    }

    #[test]
    fn what_cannot_be_carried_is_an_error() {
        let of = |state, mismatches: &[&str]| {
            let mismatches = mismatches.iter().map(|it| (*it).to_owned()).collect();
            let broken = RouteReport { state, mismatches, ..flow("/b", [1, 2]) };
            topics(&[carried("/b", 0), broken], &mut HashMap::new()).remove(0)
        };
        let told = of(RouteState::NoRoute, &[]);
        assert_eq!(told.level, DiagnosticStatus::ERROR);
        assert_eq!(told.message, "no transport can carry 1 of 2 flows");
        let told = of(RouteState::Incompatible, &["durability: offered volatile"]);
        assert_eq!(told.message, "1 of 2 flows do not fit");
        assert!(value(&told, "reason").contains("durability: offered volatile"));
    }

    #[test]
    fn the_bridge_and_what_is_not_known_are_told() {
        let mut before = Before::default();
        let mut told = |seen, dropped| {
            let done =
                Statistics { connected: 3, disconnected: 1, dropped, ..Statistics::default() };
            let told = told(seen, done, &mut before, Now { sec: 2, nanosec: 3 });
            assert_eq!(told.header.stamp, Time { sec: 2, nanosec: 3 });
            told.status
        };
        let first = told(Err("the processes cannot be asked any more"), 0);
        assert_eq!((first[0].level, &*first[0].message), (DiagnosticStatus::OK, "2 connections"));
        assert_eq!((first[1].level, &*first[1].name), (DiagnosticStatus::STALE, "tsuji: flows"));
        assert_eq!(value(&told(Err(""), 5)[0], "dropped"), "5");
        let third = told(Err(""), 6);
        assert_eq!(third[0].message, "1 samples more did not come to clients; 2 connections");
    }

    #[test]
    fn more_topics_than_are_told_are_counted() {
        let routes: Vec<_> = (0..1003).map(|at| carried(&format!("/t{at}"), 0)).collect();
        let told = topics(&routes, &mut HashMap::new());
        assert_eq!(told.len(), 1001);
        assert_eq!(told[1000].message, "3 topics are left out");
    }
}
