//! What the operator shows: the table of routes, the picture, the summary.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{StdoutLock, Write};
use std::time::{Duration, Instant};

use tsuji::{LatencyReport, RouteReport, RouteState};

use crate::crew::Place;
use crate::picture::TINY;
use crate::story::{Change, Chapter, Story};
use crate::summary::{FlowSum, Summary};
use crate::{Result, Show, robot};

/// The newest small picture; empty while none has come.
#[derive(Debug, Default)]
pub(crate) struct Thumbnail {
    pub(crate) pixels: Vec<u8>,
}

/// Shows the robot on standard output.
pub(crate) struct Screen {
    show: Show,
    has_colour: bool,
    has_full_colour: bool,
    command: String,
    /// Lines that stand there from the last time.
    shown: usize,
    next_table: Instant,
    /// What was told last, where it is drawn over.
    news: VecDeque<Line>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Bold,
    Dim,
    Road,
    Good,
    Bad,
}

/// A line, in pieces of one style each.
type Line = Vec<(Style, String)>;

impl Screen {
    pub(crate) fn new(show: Show) -> Result<Self> {
        let is_said = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        let colours = std::env::var("COLORTERM").unwrap_or_default();
        let has_colour = show == Show::InPlace && !is_said("NO_COLOR");
        let has_full_colour = matches!(&*colours, "truecolor" | "24bit");
        let next_table = Instant::now() + PLAIN_EVERY;
        let command = String::new();
        let news = VecDeque::new();
        Ok(Self { show, has_colour, has_full_colour, command, shown: 0, next_table, news })
    }

    pub(crate) fn begin(&mut self, place: &Place) -> Result<()> {
        let Place { runtime_dir, domain, plain, .. } = place;
        let runtime_dir = runtime_dir.display();
        self.command = format!(
            "TSUJI_RUNTIME_DIR={runtime_dir} ROS_DOMAIN_ID={domain} \
             ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST tsuji routes --why"
        );
        let mut out = std::io::stdout().lock();
        match self.show {
            Show::InPlace => write!(out, "\x1b[?25l")?,
            Show::Plain => {
                let processes = robot::Role::ALL.len() + 1;
                let beside = match plain {
                    Some(_) => ", and beside it a plain ROS 2 node of ros2-client on RustDDS",
                    None => "",
                };
                writeln!(out, "A robot of {processes} processes{beside}. In another terminal:")?;
                writeln!(out, "  {}\n", self.command)?;
            }
            Show::Json => (),
        }
        Ok(out.flush()?)
    }

    /// Says what is done to the robot.
    pub(crate) fn tell(&mut self, runs: Duration, says: &str) -> Result<()> {
        let line = vec![(Style::Dim, time(runs)), (Style::Bold, says.to_owned())];
        self.report([line])
    }

    /// Says that a flow has another road.
    pub(crate) fn tell_change(&mut self, runs: Duration, change: &Change) -> Result<()> {
        let Change { from, to, road, .. } = change;
        let line = vec![
            (Style::Dim, time(runs)),
            (Style::Plain, format!("{} → {}  ", short(from), short(to))),
            (Style::Road, way(change)),
            (Style::Plain, format!("  {}", pace(change))),
        ];
        let indent = " ".repeat(wide(&time(runs)) + 2);
        let why = format!("{indent}{}; {}", road.why, plainly(&road.because));
        self.report([line, vec![(Style::Dim, why)]])
    }

    fn report(&mut self, lines: impl IntoIterator<Item = Line>) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for line in lines {
            match self.show {
                Show::Json => (),
                Show::Plain => writeln!(out, "{}", self.styled(&line, usize::MAX))?,
                Show::InPlace => {
                    self.news.push_back(line);
                    if NEWS_MAX < self.news.len() {
                        self.news.pop_front();
                    }
                }
            }
        }
        Ok(out.flush()?)
    }

    /// Shows how things stand, if it is time to.
    pub(crate) fn show(
        &mut self,
        routes: &[RouteReport],
        runs: Duration,
        of: Duration,
        thumbnail: &Thumbnail,
    ) -> Result<()> {
        match self.show {
            Show::Json => Ok(()),
            Show::InPlace => self.draw(routes, runs, of, thumbnail),
            Show::Plain if Instant::now() < self.next_table => Ok(()),
            Show::Plain => {
                self.next_table += PLAIN_EVERY;
                let mut out = std::io::stdout().lock();
                writeln!(out, "After {} of {} s:", runs.as_secs(), of.as_secs())?;
                for line in table(routes, None) {
                    writeln!(out, "{}", self.styled(&line, usize::MAX))?;
                }
                writeln!(out)?;
                Ok(out.flush()?)
            }
        }
    }

    /// Takes away what was drawn; the summary stands in its place.
    pub(crate) fn leave(&mut self) -> Result<()> {
        if self.show == Show::InPlace {
            let mut out = std::io::stdout().lock();
            self.go_up(&mut out)?;
            write!(out, "\x1b[J\x1b[?25h")?;
            out.flush()?;
            self.shown = 0;
        }
        Ok(())
    }

    pub(crate) fn summary(&self, summary: &Summary, out: &mut StdoutLock<'_>) -> Result<()> {
        let width = (self.show == Show::InPlace).then(|| size().0);
        if self.show == Show::Plain {
            writeln!(out)?;
        }
        for line in sums(summary, width) {
            writeln!(out, "{}", self.styled(&line, width.unwrap_or(usize::MAX)))?;
        }
        Ok(out.flush()?)
    }

    fn draw(
        &mut self,
        routes: &[RouteReport],
        runs: Duration,
        of: Duration,
        thumbnail: &Thumbnail,
    ) -> Result<()> {
        let (width, height) = size();
        let time = if thumbnail.pixels.is_empty() {
            "starting".to_owned()
        } else {
            format!("{} of {} s", runs.as_secs(), of.as_secs())
        };
        let processes = robot::Role::ALL.len() + 1;
        let mut lines: Vec<Line> = vec![
            vec![
                (Style::Bold, "tsuji demo".to_owned()),
                (Style::Plain, format!("  a robot of {processes} processes, {time}")),
                (Style::Dim, "  (Ctrl-C ends it)".to_owned()),
            ],
            vec![(Style::Dim, format!("elsewhere: {}", self.command))],
            Line::new(),
        ];
        if !self.news.is_empty() {
            lines.extend(self.news.iter().cloned());
            lines.push(Line::new());
        }
        lines.extend(table(routes, Some(width)));
        lines.truncate(height.saturating_sub(1));
        let mut text: Vec<String> = lines.iter().map(|it| self.styled(it, width)).collect();
        // One line stays free for the cursor, one between the table and the picture.
        let left = height.saturating_sub(text.len() + 2).min(TINY.height / 2);
        if PICTURE_LINES_MIN <= left && TINY.width <= width && !thumbnail.pixels.is_empty() {
            text.push(String::new());
            text.extend(self.picture(&thumbnail.pixels, left));
        }
        let mut out = std::io::stdout().lock();
        let mut frame = String::new();
        for line in &text {
            writeln!(frame, "{line}\x1b[K")?;
        }
        self.go_up(&mut out)?;
        write!(out, "{frame}\x1b[J")?;
        self.shown = text.len();
        Ok(out.flush()?)
    }

    fn go_up(&self, out: &mut StdoutLock<'_>) -> std::io::Result<()> {
        match self.shown {
            0 => Ok(()),
            lines => write!(out, "\r\x1b[{lines}A"),
        }
    }

    /// The small picture, two of its pixels a character.
    fn picture(&self, pixels: &[u8], lines: usize) -> Vec<String> {
        let columns = lines * 2 * TINY.width / TINY.height;
        let pixel = |x: usize, y: usize| -> [u8; 3] {
            let (x, y) = (x * TINY.width / columns, y * TINY.height / (lines * 2));
            std::array::from_fn(|at| pixels[(y * TINY.width + x) * 3 + at])
        };
        let line = |y: usize| {
            let mut line = String::new();
            for x in 0..columns {
                let (upper, lower) = (pixel(x, 2 * y), pixel(x, 2 * y + 1));
                if self.has_colour {
                    let _ = write!(
                        line,
                        "\x1b[38;{}m\x1b[48;{}m▀",
                        self.colour(upper),
                        self.colour(lower)
                    );
                } else {
                    line.push(shade(upper, lower));
                }
            }
            if self.has_colour {
                line.push_str("\x1b[0m");
            }
            line
        };
        (0..lines).map(line).collect()
    }

    fn colour(&self, [red, green, blue]: [u8; 3]) -> String {
        if self.has_full_colour {
            return format!("2;{red};{green};{blue}");
        }
        // The cube of 6 × 6 × 6 colours, whose steps are 0, 95, 135, 175, 215, 255.
        let step = |it: u8| match it {
            0..48 => 0,
            48..115 => 1,
            _ => (u32::from(it) - 35) / 40,
        };
        format!("5;{}", 16 + 36 * step(red) + 6 * step(green) + step(blue))
    }

    fn styled(&self, line: &Line, width: usize) -> String {
        let mut text = String::new();
        let mut left = width;
        for (style, piece) in line {
            let shown: String = piece.chars().take(left).collect();
            left -= shown.chars().count();
            let code = match style {
                Style::Plain => "",
                Style::Bold => "1",
                Style::Dim => "2",
                Style::Road => "36",
                Style::Good => "32",
                Style::Bad => "1;31",
            };
            if self.has_colour && !code.is_empty() {
                let _ = write!(text, "\x1b[{code}m{shown}\x1b[0m");
            } else {
                text.push_str(&shown);
            }
        }
        text.trim_end().to_owned()
    }
}

/// Columns and lines of the terminal.
fn size() -> (usize, usize) {
    terminal_size::terminal_size()
        .map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

/// Brighter is denser.
fn shade(upper: [u8; 3], lower: [u8; 3]) -> char {
    let sum: u32 = [upper, lower].into_iter().flatten().map(u32::from).sum();
    SHADES[(sum as usize * SHADES.len() / (6 * 256)).min(SHADES.len() - 1)]
}

const SHADES: [char; 8] = [' ', '.', ':', '-', '=', '+', '*', '#'];

/// The table of routes: one line each where there is room, else with a second one for the reason.
fn table(routes: &[RouteReport], width: Option<usize>) -> Vec<Line> {
    let mut routes: Vec<&RouteReport> = routes.iter().collect();
    routes.sort_by_key(|it| (&it.topic, &it.publisher.node, &it.subscription.node));
    let wide = wide_table(&routes);
    let columns = wide.first().map_or(0, length);
    if width.is_some_and(|width| width < columns) {
        return narrow_table(&routes);
    }
    wide
}

fn wide_table(routes: &[&RouteReport]) -> Vec<Line> {
    let mut rows = vec![header(&[
        "TOPIC",
        "FROM → TO",
        "REACH",
        "RELIABILITY",
        "SIZE",
        "ROAD",
        "RATE",
        "MEDIAN",
        "P99",
        "LOST",
    ])];
    for route in routes {
        let mut row = vec![
            (Style::Plain, route.topic.clone()),
            (Style::Plain, ends(route)),
            (Style::Plain, route.scope.clone()),
            (Style::Plain, route.reliability.clone()),
            (Style::Plain, sample_size(route)),
        ];
        row.extend(measured(route));
        rows.push(row);
    }
    let mut lines = align(rows, 6);
    let reasons = routes.iter().map(|it| (Style::Dim, format!("  {}", rule(it))));
    let reasons = std::iter::once((Style::Bold, "  BECAUSE".to_owned())).chain(reasons);
    lines.iter_mut().zip(reasons).for_each(|(line, reason)| line.push(reason));
    lines
}

fn narrow_table(routes: &[&RouteReport]) -> Vec<Line> {
    let mut rows = vec![header(&["TOPIC", "FROM → TO", "ROAD", "RATE", "MEDIAN", "P99", "LOST"])];
    for route in routes {
        let mut row = vec![(Style::Plain, route.topic.clone()), (Style::Plain, ends(route))];
        row.extend(measured(route));
        rows.push(row);
    }
    let mut lines = align(rows, 3).into_iter();
    let mut table: Vec<Line> = lines.next().into_iter().collect();
    for (line, route) in lines.zip(routes) {
        table.push(line);
        table.push(vec![(Style::Dim, format!("  {}: {}", sample_size(route), because(route)))]);
    }
    table
}

fn header(titles: &[&str]) -> Line {
    titles.iter().map(|it| (Style::Bold, (*it).to_owned())).collect()
}

/// From ROAD to LOST.
fn measured(route: &RouteReport) -> Line {
    if route.subscription.vendor.is_some() {
        // A plain node does not tell what it counts.
        let unknown = || (Style::Plain, "-".to_owned());
        return vec![road(route), unknown(), unknown(), unknown(), unknown()];
    }
    let lost = route.lost + route.displaced + route.invalid;
    let style = if lost == 0 { Style::Good } else { Style::Bad };
    vec![
        road(route),
        (Style::Plain, format!("{:.0}/s", route.rate_hz)),
        latency(Some(route), |it| it.median_us),
        latency(Some(route), |it| it.p99_us),
        (style, lost.to_string()),
    ]
}

fn latency(route: Option<&RouteReport>, pick: fn(&LatencyReport) -> f64) -> (Style, String) {
    let latency = route.and_then(|it| it.latency.as_ref());
    (Style::Plain, latency.map_or_else(|| "-".to_owned(), |it| micros(pick(it))))
}

/// The size of a sample, in bytes as soon as they are known.
fn sample_size(route: &RouteReport) -> String {
    let mean = || route.bytes.checked_div(route.samples).filter(|it| *it != 0);
    route.sample_bytes.or_else(mean).map_or_else(|| route.size.clone(), bytes)
}

fn sums(summary: &Summary, width: Option<usize>) -> Vec<Line> {
    let mut rows = vec![header(&[
        "TOPIC",
        "FROM → TO",
        "ROAD",
        "CHANGES",
        "SENT",
        "RECEIVED",
        "LOST",
        "MEDIAN",
        "P99",
    ])];
    for flow in &summary.flows {
        let count = |it: Option<u64>| it.map_or_else(|| "?".to_owned(), |it| it.to_string());
        let style = if flow.is_good() { Style::Good } else { Style::Bad };
        let route = flow.route.as_ref();
        rows.push(vec![
            (Style::Plain, flow.topic.to_owned()),
            (Style::Plain, format!("{} → {}", short(flow.from), short(flow.to))),
            route.map_or_else(|| (Style::Bad, "?".to_owned()), road),
            (Style::Plain, flow.changes.to_string()),
            (Style::Plain, count(flow.sent)),
            (Style::Plain, count(flow.received)),
            (style, count(flow.lost())),
            latency(route, |it| it.median_us),
            latency(route, |it| it.p99_us),
        ]);
    }
    let mut lines = chapters(&summary.story, width);
    lines.extend(align(rows, 3));
    lines.push(Line::new());
    lines.extend(summary.flows.iter().filter_map(wrong));
    lines.extend(summary.troubles.iter().map(|it| vec![(Style::Bad, it.clone())]));
    for reason in reasons(&summary.flows) {
        lines.push(vec![(Style::Dim, reason)]);
    }
    for reason in left_out(&summary.left_out) {
        lines.push(vec![(Style::Dim, reason)]);
    }
    lines.push(Line::new());
    let (style, verdict) = match summary.is_good() {
        true => (Style::Good, VERDICT),
        false => (Style::Bad, "Not as it should be."),
    };
    lines.push(vec![(style, format!("{:.1} s. {verdict}", summary.seconds))]);
    lines.extend(cost(&summary.story).map(|it| vec![(Style::Plain, it)]));
    lines
}

const VERDICT: &str = "Nothing lost, doubled or out of order; every number and checksum right.";

/// The changes of each act: one line each where there is room, else with a second one for the reason.
fn chapters(story: &Story, width: Option<usize>) -> Vec<Line> {
    if story.chapters.is_empty() {
        return Vec::new();
    }
    let is_narrow = width.is_some_and(|width| width < CHAPTERS_WIDE);
    let flow = if is_narrow { "TO" } else { "FROM → TO" };
    let mut rows = vec![header(&["ACT", flow, "ROAD", "OPENED", "SETTLED", "HELD", "LATER"])];
    let mut reasons = vec![(Style::Bold, "  WHY".to_owned())];
    for (at, Chapter { name, changes, extra_us, .. }) in story.chapters.iter().enumerate() {
        for (nth, change) in changes.iter().enumerate() {
            let first = |text: String| if nth == 0 { text } else { String::new() };
            let (road, to) = (&change.road, short(&change.to));
            let is_change = road.from.is_some();
            let of_change = |text: String| if is_change { text } else { "-".to_owned() };
            rows.push(vec![
                (Style::Plain, first(format!("{} {name}", at + 1))),
                (
                    Style::Plain,
                    match is_narrow {
                        true => to.to_owned(),
                        false => format!("{} → {to}", short(&change.from)),
                    },
                ),
                (Style::Road, way(change)),
                (Style::Plain, micros(road.opening_us)),
                (Style::Plain, of_change(micros(road.settling_us))),
                (Style::Plain, of_change(road.held.to_string())),
                (Style::Plain, first(format!("+{}", micros(*extra_us)))),
            ]);
            reasons.push((Style::Dim, format!("  {}", road.why)));
        }
    }
    let mut lines = Vec::new();
    for (nth, (mut line, reason)) in align(rows, 3).into_iter().zip(reasons).enumerate() {
        if !is_narrow {
            line.push(reason);
            lines.push(line);
            continue;
        }
        lines.push(line);
        if 0 < nth {
            lines.push(vec![(Style::Plain, "  ".to_owned()), reason]);
        }
    }
    lines.push(Line::new());
    lines
}

/// Each reason once, with the acts that were left out for it.
fn left_out(left_out: &[(&str, String)]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in left_out {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let line = |(why, names): (&str, Vec<&str>)| {
        format!("acts that were left out: {}: {why}", names.join(", "))
    };
    reasons.into_iter().map(line).collect()
}

/// What the changes cost, if there were any.
fn cost(story: &Story) -> Option<String> {
    let changes = story.changes().filter(|it| it.road.from.is_some()).count();
    let acts = story.chapters.len();
    (0 < changes).then(|| {
        let later = micros(story.extra_us());
        format!("{changes} changes of road in {acts} acts; no picture came more than {later} later than usual.")
    })
}

/// From which road to which.
fn way(change: &Change) -> String {
    let road = &change.road;
    match &road.from {
        Some(from) => format!("{from} → {}", road.to),
        None => road.to.clone(),
    }
}

/// How long it took to change a road.
fn pace(change: &Change) -> String {
    let road = &change.road;
    let mut text = format!("opened {}", micros(road.opening_us));
    if road.from.is_none() {
        return text;
    }
    match road.is_settled {
        true => text.push_str(&format!(", settled {}", micros(road.settling_us))),
        false => text.push_str(", not settled"),
    }
    if road.held != 0 {
        text.push_str(&format!(", {} held", road.held));
    }
    text
}

/// So long the robot has run.
fn time(runs: Duration) -> String {
    format!("{:5.1} s  ", runs.as_secs_f64())
}

fn wrong(flow: &FlowSum) -> Option<Line> {
    let trouble = flow.trouble.as_deref()?;
    let text = format!("{} at {}: {} wrong, first: {trouble}", flow.topic, flow.to, flow.wrong);
    Some(vec![(Style::Bad, text)])
}

/// Each reason once, with the road that it led to.
fn reasons(flows: &[FlowSum]) -> Vec<String> {
    let mut reasons = Vec::new();
    for route in flows.iter().filter_map(|it| it.route.as_ref()) {
        let road = route.transport.as_deref().unwrap_or("none");
        let reason = format!("{road}: {}", because(route));
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

fn road(route: &RouteReport) -> (Style, String) {
    match (route.state, &route.transport) {
        (RouteState::Active, Some(transport)) => (Style::Road, transport.clone()),
        (RouteState::Opening, _) => (Style::Dim, "…".to_owned()),
        _ => (Style::Bad, "none".to_owned()),
    }
}

/// The rule that decided.
fn rule(route: &RouteReport) -> String {
    if !route.mismatches.is_empty() {
        return route.mismatches.join("; ");
    }
    because(route).split("; ").next().unwrap_or_default().to_owned()
}

/// What decided and what it went by, without what stands in parentheses: where the rule is written
/// and how each trait is known, for which there is `tsuji routes --why`.
fn because(route: &RouteReport) -> String {
    plainly(&route.because)
}

/// Without what stands in parentheses.
fn plainly(because: &str) -> String {
    let (mut text, mut depth) = (String::new(), 0u32);
    for letter in because.chars() {
        match letter {
            '(' => {
                depth += 1;
                text.truncate(text.trim_end().len());
            }
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => text.push(letter),
            _ => (),
        }
    }
    text
}

fn ends(route: &RouteReport) -> String {
    format!("{} → {}", short(&route.publisher.node), short(&route.subscription.node))
}

fn short(node: &str) -> &str {
    node.trim_start_matches('/')
}

/// Columns as wide as their widest cell, two blanks between; from column `numbers` on to the right.
fn align(rows: Vec<Line>, numbers: usize) -> Vec<Line> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|it| wide(&it.1)).max())
        .map(Option::unwrap_or_default)
        .collect();
    let padded = |(at, (style, text)): (usize, (Style, String))| {
        let blanks = " ".repeat(widths[at] - wide(&text));
        let gap = if at == 0 { "" } else { "  " };
        let text = match at < numbers {
            true => format!("{gap}{text}{blanks}"),
            false => format!("{gap}{blanks}{text}"),
        };
        (style, text)
    };
    rows.into_iter().map(|row| row.into_iter().enumerate().map(padded).collect()).collect()
}

fn wide(text: &str) -> usize {
    text.chars().count()
}

fn length(line: &Line) -> usize {
    line.iter().map(|(_, text)| wide(text)).sum()
}

fn micros(value: f64) -> String {
    match value {
        10_000.0.. => format!("{:.0} ms", value / 1000.0),
        1_000.0.. => format!("{:.1} ms", value / 1000.0),
        100.0.. => format!("{value:.0} µs"),
        _ => format!("{value:.1} µs"),
    }
}

fn bytes(value: u64) -> String {
    match value {
        ..1024 => format!("{value} B"),
        1024..1_048_576 => format!("{:.1} KiB", value as f64 / 1024.0),
        _ => format!("{:.1} MiB", value as f64 / 1_048_576.0),
    }
}

/// From one table to the next where nothing can be drawn over.
const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// Lines about what was done, and what came of it.
const NEWS_MAX: usize = 5;
/// So many columns hold the changes with something of the reasons.
const CHAPTERS_WIDE: usize = 110;
/// A smaller picture shows nothing.
const PICTURE_LINES_MIN: usize = 6;
