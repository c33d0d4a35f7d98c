//! What Prometheus and its like ask for: flows, processes, engines and the bridge itself, as numbers with labels.
//!
//! The formats are the [text format of Prometheus](https://prometheus.io/docs/instrumenting/exposition_formats/), version 0.0.4,
//! and [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/) 1.0, for whoever accepts that.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tsuji::{
    EndReport, EngineReport, EngineState, LatencyReport, ProcessEngines, Role, RouteReport,
    RouteState,
};
use tsuji_rosbridge::access::{Access, UserKey};

use crate::Statistics;
use crate::hub::may_see;
use crate::observer::Snapshot;

/// Who wants the metrics, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) format: Format,
    pub(crate) user: Option<UserKey>,
}

/// How the metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Prometheus,
    OpenMetrics,
}

impl Format {
    /// The one that is asked for by an `Accept` header.
    pub(crate) fn accepted(accept: Option<&str>) -> Self {
        let mut kinds = accept.unwrap_or_default().split(',').map(|it| it.split(';').next());
        match kinds.any(|it| it.is_some_and(|it| it.trim() == "application/openmetrics-text")) {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// As `Content-Type` names it.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A place for an answer that comes from another thread.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<Result<String, String>>>);

impl Slot {
    pub(crate) fn put(&self, answer: Result<String, &str>) {
        let answer = answer.map_err(str::to_owned);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }

    /// The answer, once it is there: the metrics, or a sentence why there are none.
    pub(crate) fn take(&self) -> Option<Result<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Flows that differ in nothing but their endpoints are one. Of more than so many the rest is left out, and counted.
const FLOWS_MAX: usize = 10_000;

/// Writes all that the user may know of.
pub(crate) fn write(
    seen: &Snapshot,
    done: &Statistics,
    uptime: Duration,
    access: &Access,
    Request { format, user }: Request,
) -> String {
    let flows: Vec<_> = seen.routes.iter().filter(|it| may_see(access, user, it)).collect();
    let mut page = Page { text: String::new(), format, name: String::new() };
    page.family("tsuji_build", Kind::Info, "Version of the bridge that tells this.");
    page.sample("_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    write_flows(&flows, &mut page);
    write_processes(seen, &mut page);
    write_bridge(done, uptime, &mut page);
    if format == Format::OpenMetrics {
        page.text.push_str("# EOF\n");
    }
    page.text
}

/// What tells flows apart: the topic, what it carries, and the nodes of its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ends<'a> {
    topic: &'a str,
    role: &'static str,
    publisher: &'a str,
    subscription: &'a str,
}

impl<'a> Ends<'a> {
    fn of(flow: &'a RouteReport) -> Self {
        let role = match flow.role {
            Role::Topic => "topic",
            Role::Request => "request",
            Role::Reply => "reply",
        };
        let (publisher, subscription) = (&flow.publisher.node, &flow.subscription.node);
        Self { topic: &flow.topic, role, publisher, subscription }
    }

    fn labels(&self) -> [(&'static str, &'a str); 4] {
        [
            ("topic", self.topic),
            ("role", self.role),
            ("publisher", self.publisher),
            ("subscription", self.subscription),
        ]
    }
}

/// A number of a flow; nothing where an end is a foreign node, which does not tell.
type Pick = Number<RouteReport, Option<u64>>;

/// A number of something.
type Number<T, N> = fn(&T) -> N;

fn of_publisher(flow: &RouteReport, number: u64) -> Option<u64> {
    tells(&flow.publisher).then_some(number)
}

fn of_subscription(flow: &RouteReport, number: u64) -> Option<u64> {
    tells(&flow.subscription).then_some(number)
}

fn tells(end: &EndReport) -> bool {
    end.vendor.is_none()
}

const COUNTS: [(&str, Pick, &str); 4] = [
    (
        "tsuji_flow_sent_samples",
        |it| of_publisher(it, it.sent),
        "Samples that the publisher has sent to the subscription.",
    ),
    (
        "tsuji_flow_received_samples",
        |it| of_subscription(it, it.samples),
        "Samples that the subscription has received.",
    ),
    (
        "tsuji_flow_received_bytes",
        |it| of_subscription(it, it.bytes),
        "Bytes that the subscription has received; values by reference count as nothing.",
    ),
    (
        "tsuji_flow_route_changes",
        |it| Some(it.epoch.saturating_sub(1).into()),
        "Routes that the flow has had beyond its first.",
    ),
];

const DROPS: [(&str, Number<RouteReport, u64>); 5] = [
    ("displaced", |it| it.displaced),
    ("expired", |it| it.expired),
    ("invalid", |it| it.invalid),
    ("lost", |it| it.lost),
    ("duplicate", |it| it.duplicates),
];

fn write_flows(all: &[&RouteReport], page: &mut Page) {
    let mut groups = BTreeMap::<Ends<'_>, Vec<&RouteReport>>::new();
    let mut left_out = 0;
    for flow in all {
        let ends = Ends::of(flow);
        if groups.len() < FLOWS_MAX || groups.contains_key(&ends) {
            groups.entry(ends).or_default().push(flow);
        } else {
            left_out += 1;
        }
    }
    page.family("tsuji_flows", Kind::Gauge, "Flows, by their transport and the reason for it.");
    for (ends, flows) in &groups {
        let mut alike = BTreeMap::<Vec<(&str, String)>, u64>::new();
        for flow in flows {
            *alike.entry(route_labels(flow)).or_default() += 1;
        }
        for (route, count) in &alike {
            let route = route.iter().map(|(name, value)| (*name, &**value));
            let labels: Vec<_> = ends.labels().into_iter().chain(route).collect();
            page.sample("", &labels, *count as f64);
        }
    }
    page.family(
        "tsuji_flows_left_out",
        Kind::Gauge,
        "Flows that are not told, as there are too many.",
    );
    page.sample("", &[], f64::from(left_out));
    for (name, pick, help) in COUNTS {
        page.family(name, Kind::Counter, help);
        for (ends, flows) in &groups {
            let known: Vec<u64> = flows.iter().filter_map(|it| pick(it)).collect();
            if !known.is_empty() {
                page.sample("_total", &ends.labels(), known.iter().sum::<u64>() as f64);
            }
        }
    }
    let help = "Samples that the subscription's user does not get, by cause.";
    page.family("tsuji_flow_dropped_samples", Kind::Counter, help);
    for (ends, flows) in &groups {
        let mut telling = flows.iter().filter(|it| tells(&it.subscription)).peekable();
        if telling.peek().is_none() {
            continue;
        }
        let telling: Vec<_> = telling.collect();
        for (cause, pick) in DROPS {
            let labels: Vec<_> = ends.labels().into_iter().chain([("cause", cause)]).collect();
            let sum: u64 = telling.iter().map(|it| pick(it)).sum();
            page.sample("_total", &labels, sum as f64);
        }
    }
    let help = "Time from publish() to the subscription; the quantile 1.0 is the longest. Of several flows the greatest.";
    page.family("tsuji_flow_latency_seconds", Kind::Summary, help);
    for (ends, flows) in &groups {
        let measured: Vec<_> = flows.iter().filter_map(|it| it.latency.as_ref()).collect();
        let Some(first) = measured.first() else { continue };
        let quantiles: [(&str, Number<LatencyReport, f64>); 3] =
            [("0.5", |it| it.median_us), ("0.99", |it| it.p99_us), ("1.0", |it| it.max_us)];
        for (quantile, pick) in quantiles {
            let more = [("clock", &*first.clock), ("quantile", quantile)];
            let labels: Vec<_> = ends.labels().into_iter().chain(more).collect();
            let greatest = measured.iter().map(|it| pick(it)).fold(0.0, f64::max);
            page.sample("", &labels, greatest / 1e6);
        }
    }
}

fn route_labels(flow: &RouteReport) -> Vec<(&'static str, String)> {
    let state = match flow.state {
        RouteState::Opening => "opening",
        RouteState::Active => "active",
        RouteState::Incompatible => "incompatible",
        RouteState::NoRoute => "no_route",
    };
    vec![
        ("type", flow.type_name.clone()),
        ("transport", flow.transport.clone().unwrap_or_default()),
        ("state", state.to_owned()),
        ("reach", flow.scope.clone()),
        ("size", flow.size.clone()),
        ("reliability", flow.reliability.clone()),
        ("reason", flow.reason()),
    ]
}

/// A process as its labels name it: program, id, host. It may have several contexts.
type Process<'a> = (&'a str, u32, &'a str);

fn write_processes(seen: &Snapshot, page: &mut Page) {
    let mut processes = BTreeMap::<Process<'_>, Vec<&ProcessEngines>>::new();
    for it in &seen.processes {
        let process = &it.process;
        let process = (&*process.program, process.pid, &*process.host);
        processes.entry(process).or_default().push(it);
    }
    page.family("tsuji_processes", Kind::Gauge, "Processes that are told of, this one too.");
    page.sample("", &[], processes.len() as f64);
    let help = "Contexts of processes that have not said in time what they take.";
    page.family("tsuji_contexts_silent", Kind::Gauge, help);
    page.sample("", &[], (seen.others + 1).saturating_sub(seen.processes.len()) as f64);
    let numbers: [(&str, Number<ProcessEngines, u64>, &str); 3] = [
        ("tsuji_process_threads", |it| it.threads, "Threads of the process."),
        (
            "tsuji_process_resident_memory_bytes",
            |it| it.resident_bytes,
            "Resident memory of the process.",
        ),
        (
            "tsuji_process_virtual_memory_bytes",
            |it| it.virtual_bytes,
            "Address space of the process.",
        ),
    ];
    for (name, pick, help) in numbers {
        page.family(name, Kind::Gauge, help);
        for ((program, pid, host), contexts) in &processes {
            let labels = [("program", *program), ("pid", &*pid.to_string()), ("host", *host)];
            // Each of its contexts tells of the whole process.
            let most = contexts.iter().map(|it| pick(it)).max().unwrap_or(0);
            page.sample("", &labels, most as f64);
        }
    }
    for (name, kind, of, help) in ENGINES {
        page.family(name, kind, help);
        for ((program, pid, host), contexts) in &processes {
            let mut numbers = BTreeMap::<&str, f64>::new();
            for engine in contexts.iter().flat_map(|it| &it.engines) {
                if let Some(number) = of(engine) {
                    *numbers.entry(&engine.transport).or_default() += number;
                }
            }
            let pid = pid.to_string();
            for (transport, number) in numbers {
                let labels = [
                    ("program", *program),
                    ("pid", &*pid),
                    ("host", *host),
                    ("transport", transport),
                ];
                page.sample(if kind == Kind::Counter { "_total" } else { "" }, &labels, number);
            }
        }
    }
}

/// A number of an engine; of several contexts the sum.
type OfEngine = Number<EngineReport, Option<f64>>;

const ENGINES: [(&str, Kind, OfEngine, &str); 5] = [
    (
        "tsuji_engines_running",
        Kind::Gauge,
        |it| {
            let runs = matches!(it.state, EngineState::Running | EngineState::BuiltIn);
            Some(f64::from(u8::from(runs)))
        },
        "1 if the transport's engine runs, or needs none; of several contexts how many of them.",
    ),
    (
        "tsuji_engine_users",
        Kind::Gauge,
        |it| Some(it.users as f64),
        "Writers, readers and others that need the engine now.",
    ),
    (
        "tsuji_engine_threads",
        Kind::Gauge,
        |it| Some(it.threads.len() as f64),
        "Threads of the engine.",
    ),
    (
        "tsuji_engine_memory_bytes",
        Kind::Gauge,
        |it| Some(it.resident_bytes?.max(0) as f64),
        "Memory that the process grew by while the engine started.",
    ),
    (
        "tsuji_engine_starts",
        Kind::Counter,
        |it| Some(it.starts as f64),
        "Times that the engine has started.",
    ),
];

fn write_bridge(done: &Statistics, uptime: Duration, page: &mut Page) {
    let gauges = [
        ("tsuji_bridge_uptime_seconds", uptime.as_secs_f64(), "Time since the bridge began."),
        (
            "tsuji_bridge_connections",
            done.connected.saturating_sub(done.disconnected) as f64,
            "Connections that are open, that of this request too.",
        ),
        ("tsuji_bridge_held_bytes", done.held_bytes as f64, "What waits for and of all clients."),
    ];
    for (name, number, help) in gauges {
        page.family(name, Kind::Gauge, help);
        page.sample("", &[], number);
    }
    for (name, number, help) in [
        ("connected", done.connected, "Connections that were accepted."),
        ("refused_connections", done.refused, "Connections that were not accepted."),
        ("published", done.published, "Messages of clients that were published."),
        ("received", done.received, "Samples that came for clients."),
        ("refused", done.refusals, "Messages of clients that were refused."),
        (
            "missed",
            done.missed,
            "Samples that never came, or were displaced before they were written.",
        ),
        (
            "dropped",
            done.dropped,
            "Samples that newer ones displaced in the queue of a slow client.",
        ),
        (
            "throttled",
            done.throttled,
            "Samples before their time for a client with a throttle_rate.",
        ),
        ("invalid", done.invalid, "Samples that were none of their type."),
        ("datagrams_lost", done.datagrams_lost, "Messages by UDP that the system did not take."),
        ("excess", done.excess, "Messages by UDP that came faster than is allowed."),
        ("datagrams_dropped", done.datagrams_dropped, "Datagrams that the system dropped unread."),
        ("crowded_out", done.crowded_out, "Samples that a client lost as too much waited for all."),
        ("cut_off", done.cut_off, "Clients that were closed as too much waited for all."),
    ] {
        page.family(&format!("tsuji_bridge_{name}"), Kind::Counter, help);
        page.sample("_total", &[], number as f64);
    }
}

/// What a family of metrics is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Summary,
    Info,
}

/// Metrics in the making.
struct Page {
    text: String,
    format: Format,
    /// The family that was begun last.
    name: String,
}

impl Page {
    /// Begins a family. The samples that follow are of it.
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let (word, suffix) = match (self.format, kind) {
            (_, Kind::Gauge) => ("gauge", ""),
            (_, Kind::Summary) => ("summary", ""),
            // Prometheus itself names a counter as its sample is, and knows no infos.
            (Format::Prometheus, Kind::Counter) => ("counter", "_total"),
            (Format::OpenMetrics, Kind::Counter) => ("counter", ""),
            (Format::Prometheus, Kind::Info) => ("gauge", "_info"),
            (Format::OpenMetrics, Kind::Info) => ("info", ""),
        };
        let _ = writeln!(self.text, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {word}");
        self.name.clear();
        self.name.push_str(name);
    }

    /// Adds a sample to the family that was begun last.
    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let Self { text, name, .. } = self;
        text.extend([&**name, suffix]);
        for (at, (label, value)) in labels.iter().enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            text.extend([label, "=\""]);
            for letter in value.chars() {
                match letter {
                    '\\' => text.push_str("\\\\"),
                    '"' => text.push_str("\\\""),
                    '\n' => text.push_str("\\n"),
                    letter => text.push(letter),
                }
            }
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_accepts_open_metrics_gets_them() {
        let of = |accept| Format::accepted(accept);
        assert_eq!(of(None), Format::Prometheus);
        assert_eq!(of(Some("*/*")), Format::Prometheus);
        assert_eq!(of(Some("text/plain;version=0.0.4;q=0.5, */*;q=0.1")), Format::Prometheus);
        let said =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2";
        assert_eq!(of(Some(said)), Format::OpenMetrics);
    }

    #[test]
    fn families_are_named_as_each_format_wants() {
        let written = |format| {
            let mut page = Page { text: String::new(), format, name: String::new() };
            page.family("a", Kind::Counter, "Help.");
            page.sample("_total", &[("b", "x\"y\\z\n"), ("c", "")], 12.0);
            page.family("d", Kind::Gauge, "Help.");
            page.sample("", &[], 0.5);
            page.text
        };
        let samples = ["a_total{b=\"x\\\"y\\\\z\\n\",c=\"\"} 12\n", "d 0.5\n"];
        let [counter, gauge] = samples;
        assert_eq!(
            written(Format::Prometheus),
            format!(
                "# HELP a_total Help.\n# TYPE a_total counter\n{counter}# HELP d Help.\n# TYPE d gauge\n{gauge}"
            )
        );
        assert_eq!(
            written(Format::OpenMetrics),
            format!(
                "# HELP a Help.\n# TYPE a counter\n{counter}# HELP d Help.\n# TYPE d gauge\n{gauge}"
            )
        );
    }
}
