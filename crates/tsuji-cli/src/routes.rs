//! `tsuji routes`: the transport of each flow, why it is that one, and how it does.

use std::io::Write;
use std::time::{Duration, Instant};

use tsuji::{EndReport, Graph, Role, RouteReport, RouteState};
use tsuji_core::TopicPattern;

use crate::completions;
use crate::figures;
use crate::output::{Colour, Output, Paint};
use crate::session::{Globals, LOOK_AGAIN, Session};
use crate::table::{Cell, Column, Table, shorten_end, wrapped};

pub(crate) mod engines;
pub(crate) mod history;

pub(crate) const EXAMPLES: &str = "\
Columns: SIZE small or large as it is now (--why tells what it was when the transport was decided), REACH intra (one
process), local (this host) or remote, RATE and BYTES/S of late, MEDIAN and P99 from publish() to the subscription
(~: by two wall clocks, which may differ), SENT and TAKEN samples of this flow, where there is room (what is in
neither TAKEN nor DROPS still waits), DROPS displaced + expired + invalid + lost + duplicates. A TRANSPORT such as
shm→cyclonedds… is being changed; what has changed in the last 10 s stands below its flow while you --watch.

--history tells the transports that a flow has had, the last 32 of them: since when (UTC), how long the new transport took to
open beside the old one and then until the old one was empty, the most samples that were held meanwhile, and why.

--engines tells of each process and each transport in it whether its engine runs, since when (UTC), for what it was
started, or why it was not. THREADS are those that began while it started or its first writer and reader were opened,
and MEMORY is by how much the process's resident memory grew meanwhile (~: another engine took such a step at the same
time). USED BY counts the writers and readers that need it now. An engine that nothing needs and by which nobody is
spoken to is shut down after 10 s, or after the transport's idle_seconds in the policy; its library stays loaded.

Examples:
  tsuji routes
  tsuji routes --topic '/camera/**' --why
  tsuji routes --watch -i 0.5
  tsuji routes --history --topic /camera/image
  tsuji routes --engines
  tsuji routes --engines --json | jq '.[] | {pid: .process.pid, engines}'
  tsuji routes --json | jq '.[] | {topic, transport, because}'";

/// How long the other processes have to answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(2);

/// How often is looked whether a transport has changed, where it is not time yet to show all.
const LOOK: Duration = Duration::from_millis(200);

/// A look may take so small a part of the time, since everybody has to answer.
pub(crate) const LOOK_SHARE: u32 = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only topics and services of this pattern: * is any run of characters in a token, ** any run of tokens
    #[arg(long, value_name = "PATTERN", add = completions::topics())]
    topic: Option<TopicPattern>,
    /// Show the full reason under each flow, and why each other transport was not taken
    #[arg(long)]
    why: bool,
    /// Tell the transports that each flow has had, the newest last
    #[arg(long, conflicts_with_all = ["why", "watch"])]
    history: bool,
    /// Show what carries the samples in each process: which engines run, what for, since when, and what they take
    #[arg(long, conflicts_with_all = ["topic", "why", "history", "watch"])]
    engines: bool,
    /// Show it again and again, in place, and at once when a transport changes
    #[arg(short, long)]
    watch: bool,
    /// The time between two looks that show all
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = crate::topic::seconds)]
    interval: Duration,
    /// Print JSON: an array of flows, with --watch one line each time; with --engines an array of processes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    // What is shown again and again shows names as they come, and engines have none.
    let is_enough = |_: &Graph| args.watch || args.engines;
    let session = Session::open_named(globals, is_enough)?;
    if args.engines {
        return engines::run(args.json, &session, out);
    }
    if args.watch {
        return watch(args, &session, out);
    }
    let routes = routes(args, &session)?;
    if args.json {
        return Ok(out.lines(serde_json::to_string_pretty(&routes)?)?);
    }
    let lines = match args.history {
        true => history::lines(args, &routes, out.columns(), out.paint),
        false => lines(args, &routes, out.columns(), out.paint),
    };
    Ok(lines.into_iter().try_for_each(|line| out.line(line))?)
}

fn routes(args: &Args, session: &Session) -> anyhow::Result<Vec<RouteReport>> {
    let mut routes = session.context.routes(ANSWER)?;
    routes.retain(|it| args.topic.as_ref().is_none_or(|pattern| pattern.matches(&it.topic)));
    Ok(routes)
}

fn watch(args: &Args, session: &Session, out: &mut Output) -> anyhow::Result<()> {
    let mut screen = Screen::new(out)?;
    let result = look_again_and_again(args, session, &mut screen, out);
    // Also after an error the cursor must be seen again.
    screen.leave(out)?;
    match result {
        // Ctrl-C in the middle of asking is an end like any other.
        Err(_) if !session.context.is_ok() => Ok(()),
        result => result,
    }
}

fn look_again_and_again(
    args: &Args,
    session: &Session,
    screen: &mut Screen,
    out: &mut Output,
) -> anyhow::Result<()> {
    let (mut shown, mut due) = (Vec::new(), Instant::now());
    while session.context.is_ok() {
        let began = Instant::now();
        let routes = routes(args, session)?;
        let took = began.elapsed();
        let transports: Vec<_> = routes.iter().map(transport_now).collect();
        if due <= began || transports != shown {
            if args.json {
                out.line(serde_json::to_string(&routes)?)?;
                out.flush()?;
            } else {
                screen.show(lines(args, &routes, out.columns(), out.paint), out)?;
            }
            (shown, due) = (transports, began + args.interval);
        }
        let end = due.min(began + LOOK.max(took * LOOK_SHARE));
        while session.context.is_ok() && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(LOOK_AGAIN));
        }
    }
    Ok(())
}

/// What of a flow is shown at once when it changes.
fn transport_now(route: &RouteReport) -> impl PartialEq + use<> {
    let ends = (route.publisher.gid.clone(), route.subscription.gid.clone());
    let last = route.changes.last().map(|it| (it.epoch, it.is_settled));
    (ends, route.state, route.transport.clone(), route.handover_to.clone(), last)
}

/// Lines that are written over those before, on a terminal; elsewhere one after the other.
struct Screen {
    is_terminal: bool,
    /// Lines that stand there from the last time.
    shown: usize,
}

impl Screen {
    fn new(out: &mut Output) -> std::io::Result<Self> {
        let is_terminal = out.rows().is_some();
        if is_terminal {
            // No cursor, and no line that takes two, which would put the next look out of place.
            out.control("\x1b[?25l\x1b[?7l")?;
        }
        Ok(Self { is_terminal, shown: 0 })
    }

    fn show(&mut self, mut lines: Vec<String>, out: &mut Output) -> std::io::Result<()> {
        if let Some(rows) = out.rows()
            && lines.len() >= rows
        {
            // What has scrolled off the screen could not be written over.
            let hidden = lines.len() - (rows - 2);
            lines.truncate(rows - 2);
            lines.push(
                out.paint
                    .text(Colour::Dim, format_args!("… {hidden} more lines; --topic shows fewer")),
            );
        }
        if self.is_terminal && self.shown > 0 {
            out.control(format_args!("\x1b[{}A", self.shown))?;
        }
        for line in &lines {
            // What is left of a longer line from the last time goes first.
            if self.is_terminal {
                out.control("\x1b[K")?;
            }
            out.line(line)?;
        }
        if self.is_terminal {
            out.control("\x1b[J")?;
        } else {
            writeln!(out)?;
        }
        self.shown = lines.len();
        out.flush()
    }

    fn leave(&self, out: &mut Output) -> std::io::Result<()> {
        if self.is_terminal {
            out.control("\x1b[?7h\x1b[?25h")?;
        }
        out.flush()
    }
}

/// The table: one line a flow where there is room, else two more with what is less important.
fn lines(args: &Args, routes: &[RouteReport], width: Option<usize>, paint: Paint) -> Vec<String> {
    if routes.is_empty() {
        let text = match &args.topic {
            Some(pattern) => format!("No flows on {pattern}."),
            None => "No flows: no publisher here has a subscription that matches.".to_owned(),
        };
        return vec![text];
    }
    let fits = |table: &Table| {
        width.is_none_or(|width| table.natural_width() <= width + WIDE_SHORTENED_MAX)
    };
    let wide = [wide_table(routes, &COUNTS), wide_table(routes, &[])].into_iter().find(fits);
    let fits = wide.is_some();
    let table = wide.unwrap_or_else(|| narrow_table(routes));
    let mut printed = table.lines(width, paint).into_iter();
    let mut lines: Vec<String> = printed.next().into_iter().collect();
    for (line, route) in printed.zip(routes) {
        lines.push(line);
        if !fits {
            let details = details(route).into_iter();
            let details = details.map(|it| match width {
                Some(width) => shorten_end(&it, width),
                None => it,
            });
            lines.extend(details.map(|it| paint.text(Colour::Dim, it)));
        }
        if args.watch {
            lines.extend(history::recent(route, width, paint));
        }
        if args.why {
            lines.extend(why(route, width, paint));
        }
    }
    lines
}

/// Characters that may be left out before the table breaks into three lines a flow.
const WIDE_SHORTENED_MAX: usize = 40;

/// A column of a number of samples.
type Count = (&'static str, fn(&RouteReport) -> Option<u64>);

/// What is left out first where there is no room.
const COUNTS: [Count; 2] = [
    ("SENT", |it| (!it.publisher.is_foreign()).then_some(it.sent)),
    ("TAKEN", |it| it.is_counted.then_some(it.samples)),
];

fn wide_table(routes: &[RouteReport], counts: &[Count]) -> Table {
    let mut columns = vec![
        Column::name("TOPIC", 12),
        Column::name("TYPE", 12),
        Column::name("FROM", 12),
        Column::name("TO", 12),
        Column::whole("SIZE"),
        Column::whole("REACH"),
        Column::whole("RELIABILITY"),
        Column::whole("TRANSPORT"),
    ];
    columns.extend(counts.iter().map(|(title, _)| Column::number(title)));
    columns.extend([
        Column::number("RATE"),
        Column::number("BYTES/S"),
        Column::number("MEDIAN µs"),
        Column::number("P99 µs"),
        Column::number("DROPS"),
        Column::sentence("BECAUSE", 16),
    ]);
    let mut table = Table::new(&columns);
    for route in routes {
        let mut cells: Vec<Cell> = vec![
            name(route).into(),
            route.type_name.clone().into(),
            end(&route.publisher).into(),
            end(&route.subscription).into(),
            route.size.clone().into(),
            route.scope.clone().into(),
            route.reliability.clone().into(),
            transport(route),
        ];
        cells.extend(counts.iter().map(|(_, count)| number(count(route)).into()));
        cells.extend(measured(route));
        cells.push(Cell::new(route.reason(), Colour::Dim));
        table.row(cells);
    }
    table
}

fn narrow_table(routes: &[RouteReport]) -> Table {
    let mut table = Table::new(&[
        Column::name("TOPIC", 12),
        Column::whole("TRANSPORT"),
        Column::number("RATE"),
        Column::number("BYTES/S"),
        Column::number("MEDIAN µs"),
        Column::number("P99 µs"),
        Column::number("DROPS"),
    ]);
    for route in routes {
        let mut cells: Vec<Cell> = vec![name(route).into(), transport(route)];
        cells.extend(measured(route));
        table.row(cells);
    }
    table
}

/// A flow's topic, or the service whose requests or replies it carries.
pub(crate) fn name(route: &RouteReport) -> String {
    match route.role {
        Role::Topic => route.topic.clone(),
        Role::Request => format!("{} (requests)", route.topic),
        Role::Reply => format!("{} (replies)", route.topic),
    }
}

/// A number that may not be known.
fn number(known: Option<u64>) -> String {
    known.map_or_else(|| "-".to_owned(), |it| it.to_string())
}

/// From RATE to DROPS.
pub(crate) fn measured(route: &RouteReport) -> Vec<Cell> {
    if !route.is_counted {
        return vec!["-".into(); 5];
    }
    let latency = |pick: fn(&tsuji::LatencyReport) -> f64| match &route.latency {
        Some(latency) => {
            let clock = if latency.clock == "wall" { "~" } else { "" };
            format!("{clock}{}", figures::micros(pick(latency)))
        }
        None => "-".to_owned(),
    };
    let drops = drops(route);
    let drops_colour = if drops > 0 { Colour::Warning } else { Colour::Plain };
    vec![
        figures::rate(route.rate_hz).into(),
        figures::throughput(route.bytes_per_s).into(),
        latency(|it| it.median_us).into(),
        latency(|it| it.p99_us).into(),
        Cell::new(drops.to_string(), drops_colour),
    ]
}

pub(crate) fn transport(route: &RouteReport) -> Cell {
    if let (Some(transport), Some(to)) = (&route.transport, &route.handover_to) {
        return Cell::new(format!("{transport}→{to}…"), Colour::Name);
    }
    match (route.state, &route.transport) {
        (RouteState::Active, Some(transport)) => Cell::new(transport, Colour::Name),
        (RouteState::Opening, Some(transport)) => Cell::new(format!("{transport}…"), Colour::Dim),
        (RouteState::Incompatible, _) => {
            let what = if route.has_two_types() { "none: type" } else { "none: QoS" };
            Cell::new(what, Colour::Error)
        }
        (RouteState::NoRoute, _) => Cell::new("none", Colour::Error),
        (RouteState::Active | RouteState::Opening, None) => Cell::new("…", Colour::Dim),
    }
}

/// The second and third line of a flow where the terminal is narrow.
fn details(route: &RouteReport) -> [String; 2] {
    let RouteReport { publisher, subscription, size, scope, reliability, .. } = route;
    let type_name = route.type_name.rsplit('/').next().unwrap_or_default();
    [
        format!("  {} → {}", end(publisher), end(subscription)),
        format!("  {type_name}, {size}, {scope}, {reliability}; {}", route.reason()),
    ]
}

/// The lines of `--why`.
fn why(route: &RouteReport, width: Option<usize>, paint: Paint) -> Vec<String> {
    const TITLE: usize = 16;
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(TITLE));
    let mut lines = Vec::new();
    for (title, text) in explanation(route) {
        for (at, part) in wrapped(&text, room).iter().enumerate() {
            let title = if at == 0 { title } else { "" };
            let title = paint.text(Colour::Strong, format_args!("    {title:<12}"));
            lines.push(format!("{title}{part}"));
        }
    }
    lines
}

/// All that is known of why a flow has its transport and how it does, each with a title.
pub(crate) fn explanation(route: &RouteReport) -> Vec<(&'static str, String)> {
    let mut lines = vec![("because", route.because.clone())];
    if let Some(transport) = &route.pinned {
        let topic = &route.topic;
        lines.push((
            "set",
            format!(
                "{transport}, by the user; `tsuji route auto {topic}` leaves it to the policy again"
            ),
        ));
    }
    lines.extend(route.mismatches.iter().map(|it| ("mismatch", it.clone())));
    let rejected = route.rejected.iter();
    lines.extend(rejected.map(|(it, reason)| ("rejected", format!("{it}: {reason}"))));
    lines.extend(secured(route).map(|it| ("secured", it)));
    let typical = route.sample_bytes.map(|it| format!("{it} bytes, ")).unwrap_or_default();
    lines.push(("now", format!("{} ({typical}{})", route.size, route.size_origin)));
    lines.push((
        "sent",
        match &route.publisher.vendor {
            None => format!("{} samples", route.sent),
            Some(vendor) => format!("not known: a foreign node on {vendor}"),
        },
    ));
    if !route.is_counted {
        let why = match &route.subscription.vendor {
            Some(vendor) => format!("a foreign node on {vendor}"),
            None => "its process does not answer".to_owned(),
        };
        lines.push(("received", format!("not known: {why}")));
        return lines;
    }
    lines.push(("received", format!("{} samples, {}", route.samples, figures::bytes(route.bytes))));
    if let Some(latency) = &route.latency {
        let [median, p99, max] =
            [latency.median_us, latency.p99_us, latency.max_us].map(figures::micros);
        let clock = &latency.clock;
        lines.push((
            "latency",
            format!("median {median} µs, p99 {p99} µs, max {max} µs, by the {clock} clock"),
        ));
    }
    let RouteReport { displaced, expired, invalid, lost, duplicates, .. } = route;
    lines.push((
        "drops",
        format!(
            "{displaced} displaced, {expired} expired, {invalid} invalid, {lost} lost, {duplicates} duplicates"
        ),
    ));
    lines.push(("route", format!("number {} of this flow", route.epoch)));
    lines
}

/// What protects it, by which keys, and until when; nothing of a flow in clear.
fn secured(route: &RouteReport) -> Option<String> {
    let protection = match route.protection.as_deref()? {
        "confined" => "confined to memory of proved processes".to_owned(),
        kind => format!("{kind}, by DDS Security"),
    };
    Some(match proved(route) {
        Some(proved) => format!("{protection}; {proved}"),
        None => protection,
    })
}

fn proved(route: &RouteReport) -> Option<String> {
    let ends = [&route.publisher, &route.subscription];
    let [publisher, subscription] = ends.map(|it| it.certificate.as_ref());
    let (publisher, subscription) = publisher.zip(subscription)?;
    let until = figures::date_of(publisher.expires_wall_ns.min(subscription.expires_wall_ns));
    Some(match publisher == subscription {
        true => format!("{} has proved its key; until {until}", publisher.subject),
        false => format!(
            "{} and {} have proved their keys; until {until}",
            publisher.subject, subscription.subject
        ),
    })
}

pub(crate) fn drops(route: &RouteReport) -> u64 {
    route.drops().iter().map(|(_, number)| number).sum()
}

/// A node and its process.
pub(crate) fn end(end: &EndReport) -> String {
    match &end.vendor {
        None => format!("{} ({} {})", end.node, end.program, end.pid),
        Some(vendor) => format!("{} (foreign, {vendor})", end.node),
    }
}
