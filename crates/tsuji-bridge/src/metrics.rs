//! What Prometheus and its like ask for: flows, processes, engines and the bridge itself, as numbers with labels.
//!
//! The formats are the [text format of Prometheus](https://prometheus.io/docs/instrumenting/exposition_formats/), version 0.0.4,
//! and [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/) 1.0, for whoever accepts that.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tsuji::{EngineReport, LatencyReport, ProcessEngines, RouteReport};
use tsuji_rosbridge::access::{Access, Act, UserKey};

use crate::Statistics;
use crate::hub::visible;
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
    /// The one that is wanted more by `Accept` headers; that of Prometheus if neither is.
    pub(crate) fn accepted<'a>(headers: impl Iterator<Item = &'a str>) -> Self {
        let (mut open, mut plain) = (0.0, 0.0);
        for kind in headers.flat_map(|it| it.split(',')) {
            let mut parts = kind.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|it| it.strip_prefix("q=")).map_or(Ok(1.0), str::parse);
            let quality: f64 = quality.unwrap_or(0.0);
            match &*name {
                "application/openmetrics-text" => open = quality,
                "text/plain" => plain = quality,
                _ => {}
            }
        }
        if 0.0 < open && plain <= open { Self::OpenMetrics } else { Self::Prometheus }
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

/// Of more flows than so many the rest is left out, and counted.
const FLOWS_MAX: usize = 10_000;

/// Writes all that the user may know of.
pub(crate) fn write(
    snapshot: &Snapshot,
    done: &Statistics,
    uptime: Duration,
    access: &Access,
    Request { format, user }: Request,
) -> String {
    let (flows, processes) = visible(snapshot, access, user);
    let mut page = Page { text: String::new(), format, name: String::new() };
    page.family("tsuji_build", Kind::Info, "Version of the bridge that tells this.");
    page.sample("_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    write_flows(&flows, &mut page);
    write_processes(&processes, snapshot.silent(), &mut page);
    if access.decide(user, Act::CallService, BRIDGE).is_ok() {
        write_bridge(done, uptime, &mut page);
    }
    if format == Format::OpenMetrics {
        page.text.push_str("# EOF\n");
    }
    page.text
}

/// The service that tells what the bridge has done.
const BRIDGE: &str = "/rosapi/tsuji_bridge";

/// What tells a flow from others: a name of it alone, the topic, what it carries, and the nodes of its two ends.
struct Labels<'a> {
    id: String,
    role: String,
    flow: &'a RouteReport,
}

impl<'a> Labels<'a> {
    fn of(flow: &'a RouteReport) -> Self {
        let role = word(serde_json::to_value(flow.role));
        let mut hasher = DefaultHasher::new();
        (&flow.publisher.gid, &flow.subscription.gid).hash(&mut hasher);
        Self { id: format!("{:016x}", hasher.finish()), role, flow }
    }

    fn with(&self, more: &[(&'static str, &'a str)]) -> Vec<(&'static str, &str)> {
        let own = [
            ("flow", &*self.id),
            ("topic", &self.flow.topic),
            ("role", &self.role),
            ("publisher", &self.flow.publisher.node),
            ("subscription", &self.flow.subscription.node),
        ];
        own.into_iter().chain(more.iter().copied()).collect()
    }
}

/// A number of something.
type Number<T, N> = fn(&T) -> N;

/// A number of a flow; nothing where an end does not tell it.
type Count = Number<RouteReport, Option<u64>>;

const COUNTS: [(&str, Count, &str); 4] = [
    (
        "tsuji_flow_sent_samples",
        |it| (!it.publisher.is_foreign()).then_some(it.sent),
        "Samples that the publisher has sent to the subscription.",
    ),
    (
        "tsuji_flow_received_samples",
        |it| it.is_counted.then_some(it.samples),
        "Samples that the subscription has received.",
    ),
    (
        "tsuji_flow_received_bytes",
        |it| it.is_counted.then_some(it.bytes),
        "Bytes that the subscription has received; values by reference count as nothing.",
    ),
    (
        "tsuji_flow_route_changes",
        |it| Some(it.epoch.saturating_sub(1).into()),
        "Routes that the flow has had beyond its first.",
    ),
];

const QUANTILES: [(&str, Number<LatencyReport, f64>); 3] =
    [("0.5", |it| it.median_us), ("0.99", |it| it.p99_us), ("1.0", |it| it.max_us)];

fn write_flows(all: &[&RouteReport], page: &mut Page) {
    let flows: Vec<Labels<'_>> = all.iter().take(FLOWS_MAX).map(|it| Labels::of(it)).collect();
    page.family("tsuji_flow", Kind::Info, "Each flow, with its transport and the reason for it.");
    for labels in &flows {
        let flow = labels.flow;
        let (state, reason) = (word(serde_json::to_value(flow.state)), flow.reason());
        let more = [
            ("type", &*flow.type_name),
            ("transport", flow.transport.as_deref().unwrap_or_default()),
            ("state", &state),
            ("reach", &flow.scope),
            ("size", &flow.size),
            ("reliability", &flow.reliability),
            ("reason", &reason),
        ];
        page.sample("_info", &labels.with(&more), 1.0);
    }
    let help = "Flows that are not told, as there are too many.";
    page.family("tsuji_flows_left_out", Kind::Gauge, help);
    page.sample("", &[], all.len().saturating_sub(FLOWS_MAX) as f64);
    for (name, count, help) in COUNTS {
        page.family(name, Kind::Counter, help);
        for labels in &flows {
            if let Some(number) = count(labels.flow) {
                page.sample("_total", &labels.with(&[]), number as f64);
            }
        }
    }
    let help = "Samples that the subscription's user does not get, by cause.";
    page.family("tsuji_flow_dropped_samples", Kind::Counter, help);
    for labels in flows.iter().filter(|it| it.flow.is_counted) {
        for (cause, number) in labels.flow.drops() {
            page.sample("_total", &labels.with(&[("cause", cause)]), number as f64);
        }
    }
    let help = "Time from publish() to the subscription by the present transport; the quantile 1.0 is the longest.";
    page.family("tsuji_flow_latency_seconds", Kind::Summary, help);
    for labels in &flows {
        let Some(latency) = &labels.flow.latency else { continue };
        for (quantile, number) in QUANTILES {
            let more = [("clock", &*latency.clock), ("quantile", quantile)];
            page.sample("", &labels.with(&more), number(latency) / 1e6);
        }
    }
    let help = "The same latencies, counted by their length; they begin anew where the flow takes another transport.";
    page.family("tsuji_flow_latency_distribution_seconds", Kind::Histogram, help);
    for labels in &flows {
        let Some(latency) = &labels.flow.latency else { continue };
        let clock = ("clock", &*latency.clock);
        let mut up_to = 0;
        for (bound, count) in BOUNDS.iter().zip(&latency.counts) {
            up_to += count;
            page.sample("_bucket", &labels.with(&[clock, ("le", *bound)]), up_to as f64);
        }
        page.sample("_sum", &labels.with(&[clock]), latency.sum_us / 1e6);
        page.sample("_count", &labels.with(&[clock]), up_to as f64);
    }
}

/// [`LatencyReport::BOUNDS_US`] in seconds, as OpenMetrics writes numbers in labels.
const BOUNDS: [&str; LatencyReport::BOUNDS_US.len() + 1] = [
    "1e-06", "3e-06", "1e-05", "3e-05", "0.0001", "0.0003", "0.001", "0.003", "0.01", "0.03",
    "0.1", "0.3", "1.0", "+Inf",
];

/// The word that the reports in JSON have for it.
fn word(of_json: serde_json::Result<Value>) -> String {
    of_json.ok().as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A process as its labels name it: program, id, host. It may have several contexts.
type Process<'a> = (&'a str, u32, &'a str);

fn write_processes(all: &[&ProcessEngines], silent: usize, page: &mut Page) {
    let mut processes = BTreeMap::<Process<'_>, Vec<&ProcessEngines>>::new();
    for &it in all {
        let process = &it.process;
        let process = (&*process.program, process.pid, &*process.host);
        processes.entry(process).or_default().push(it);
    }
    page.family("tsuji_processes", Kind::Gauge, "Processes that are told of.");
    page.sample("", &[], processes.len() as f64);
    let help = "Contexts of processes that have not said in time what they take.";
    page.family("tsuji_contexts_silent", Kind::Gauge, help);
    page.sample("", &[], silent as f64);
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
        |it| Some(f64::from(u8::from(it.state.is_at_work()))),
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
            done.connections() as f64,
            "Connections that are open, that of this request too.",
        ),
        ("tsuji_bridge_held_bytes", done.held_bytes as f64, "What waits for and of all clients."),
    ];
    for (name, number, help) in gauges {
        page.family(name, Kind::Gauge, help);
        page.sample("", &[], number);
    }
    for (name, number, help) in done.counts() {
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
    Histogram,
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
            (_, Kind::Histogram) => ("histogram", ""),
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
    fn bounds_are_those_of_the_report() {
        let seconds = BOUNDS.map(|it| it.parse::<f64>().unwrap());
        let expect = LatencyReport::BOUNDS_US.iter().map(|it| *it as f64 / 1e6);
        assert!(seconds.into_iter().eq(expect.chain([f64::INFINITY])), "{seconds:?}");
    }

    #[test]
    fn who_accepts_open_metrics_gets_them() {
        let of = |accept: &[&str]| Format::accepted(accept.iter().copied());
        let open = "application/openmetrics-text";
        for plain in [
            &[][..],
            &["*/*"],
            &["text/plain;version=0.0.4;q=0.5, */*;q=0.1"],
            &[&format!("{open};q=0")],
            &[&format!("{open}; q=0.1"), "text/plain;q=0.9"],
            &[&format!("{open};q=much")],
        ] {
            assert_eq!(of(plain), Format::Prometheus, "{plain:?}");
        }
        assert_eq!(of(&["text/html", "Application/OpenMetrics-Text"]), Format::OpenMetrics);
        let said =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2";
        assert_eq!(of(&[said]), Format::OpenMetrics);
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
