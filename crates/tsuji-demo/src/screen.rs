//! What the operator shows: the table of routes, the picture, the summary.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{StdoutLock, Write};
use std::time::{Duration, Instant};

use tsuji::{LatencyReport, RouteReport, RouteState};

use crate::crew::Surroundings;
use crate::guide::Tour;
use crate::picture::{FULL, TINY};
use crate::story::{Change, Chapter, Story};
use crate::summary::{FlowSum, Summary};
use crate::{Result, Show};

/// The newest small picture; empty while none has come.
#[derive(Debug, Default)]
pub(crate) struct Thumbnail {
    pub(crate) pixels: Vec<u8>,
}

/// How things stand.
pub(crate) struct Moment<'a> {
    pub(crate) routes: &'a [RouteReport],
    /// How long the robot has run.
    pub(crate) runs: Duration,
    /// How long it is to run.
    pub(crate) of: Duration,
    /// It runs until it is interrupted.
    pub(crate) stays: bool,
}

/// Shows the robot on standard output.
pub(crate) struct Screen {
    show: Show,
    has_colour: bool,
    has_full_colour: bool,
    /// The command by which the robot can be seen from elsewhere, if it is there.
    command: Option<String>,
    /// The address of the page, once it is served.
    page: Option<String>,
    /// Lines that stand there from the last time, and how large the window was then.
    shown: usize,
    shown_in: Window,
    /// The cursor was hidden.
    is_drawing: bool,
    next_table: Instant,
    /// What was done last, and what came of it, where it is drawn over: each with the indent of what does not fit into its line.
    /// At most [`LOG_MAX`]; when it is full the oldest is dropped.
    log: VecDeque<(Line, usize)>,
}

/// Columns and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    width: usize,
    height: usize,
}

impl Window {
    /// Of what says nothing of its size.
    const UNKNOWN: Self = Self { width: 80, height: 24 };

    /// That of the terminal.
    fn of_terminal() -> Self {
        let said = terminal_size::terminal_size();
        let said = said.map(|(width, height)| Self {
            width: usize::from(width.0),
            height: usize::from(height.0),
        });
        // A terminal that was told nothing says 0.
        said.filter(|it| it.width != 0 && it.height != 0).unwrap_or(Self::UNKNOWN)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Bold,
    Dim,
    Transport,
    Good,
    Bad,
}

/// A line, in pieces of one style each.
type Line = Vec<(Style, String)>;

impl Screen {
    pub(crate) fn new(show: Show) -> Self {
        let is_said = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        let colours = std::env::var("COLORTERM").unwrap_or_default();
        let has_colour = show == Show::InPlace && !is_said("NO_COLOR");
        let has_full_colour = matches!(&*colours, "truecolor" | "24bit");
        let next_table = Instant::now() + PLAIN_EVERY;
        Self {
            show,
            has_colour,
            has_full_colour,
            command: None,
            page: None,
            shown: 0,
            shown_in: Window::UNKNOWN,
            is_drawing: false,
            next_table,
            log: VecDeque::new(),
        }
    }

    pub(crate) fn begin(&mut self, surroundings: &Surroundings, has_acts: bool) -> Result<()> {
        let intro = &INTRO[..if has_acts { INTRO.len() } else { 1 }];
        self.command =
            surroundings.command.as_ref().map(|it| format!("{} routes --why", it.display()));
        let mut out = std::io::stdout().lock();
        match self.show {
            Show::InPlace => {
                self.is_drawing = true;
                let lines = intro.iter().map(|it| (vec![(Style::Plain, (*it).to_owned())], 0));
                self.log.extend(lines);
                write!(out, "\x1b[?25l")?;
            }
            Show::Plain => {
                for text in intro {
                    self.print(&mut out, &vec![(Style::Plain, (*text).to_owned())], 0)?;
                }
                // This one among them.
                let processes = surroundings.roles.len() + 1;
                let beside = match surroundings.foreign {
                    Some(_) => ", and beside it a foreign ROS 2 node of ros2-client on RustDDS",
                    None => "",
                };
                let elsewhere = match &self.command {
                    Some(command) => format!("In another terminal:\n  {command}"),
                    None => format!("{NO_COMMAND}."),
                };
                for text in
                    format!("A robot of {processes} processes{beside}.\n{elsewhere}").lines()
                {
                    self.print(&mut out, &vec![(Style::Plain, text.to_owned())], 2)?;
                }
                writeln!(out)?;
            }
            Show::Json => (),
        }
        Ok(out.flush()?)
    }

    /// Shows where the page is, from the first time on.
    pub(crate) fn show_page(&mut self, address: &str) -> Result<()> {
        if self.page.is_none() {
            self.page = Some(address.to_owned());
            if self.show == Show::Plain {
                let line = vec![(Style::Plain, page_at(address))];
                self.print(&mut std::io::stdout().lock(), &line, 2)?;
            }
        }
        Ok(())
    }

    /// Shows the page no more, and why.
    pub(crate) fn drop_page(&mut self, runs: Duration, why: &str) -> Result<()> {
        self.page = None;
        self.log(runs, &format!("no page in a browser: {why}"))
    }

    /// Prints a line in as many as its window needs.
    fn print(&self, out: &mut StdoutLock<'_>, line: &Line, indent: usize) -> Result<()> {
        for line in wrapped(line, Window::of_terminal().width, indent) {
            writeln!(out, "{}", self.styled(&line, usize::MAX))?;
        }
        Ok(())
    }

    /// Shows what is done to the robot.
    pub(crate) fn log(&mut self, runs: Duration, text: &str) -> Result<()> {
        let line = vec![(Style::Dim, time(runs)), (Style::Bold, text.to_owned())];
        self.append([line], wide(&time(runs)))
    }

    /// Shows that a flow has another transport.
    pub(crate) fn log_change(&mut self, runs: Duration, change: &Change) -> Result<()> {
        let Change { from, to, transport, .. } = change;
        let line = vec![
            (Style::Dim, time(runs)),
            (Style::Plain, format!("{} → {}  ", short(from), short(to))),
            (Style::Transport, way(change)),
            (Style::Plain, format!("  {}", pace(change))),
        ];
        let indent = wide(&time(runs)) + 2;
        let why =
            format!("{}{}; {}", " ".repeat(indent), transport.why, plainly(&transport.because));
        self.append([line, vec![(Style::Dim, why)]], indent)
    }

    fn append(&mut self, lines: impl IntoIterator<Item = Line>, indent: usize) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for line in lines {
            match self.show {
                Show::Json => (),
                Show::Plain => self.print(&mut out, &line, indent)?,
                Show::InPlace => {
                    self.log.push_back((line, indent));
                    if LOG_MAX < self.log.len() {
                        self.log.pop_front();
                    }
                }
            }
        }
        Ok(out.flush()?)
    }

    /// Shows how things stand, if it is time to.
    pub(crate) fn show(
        &mut self,
        moment: &Moment<'_>,
        status: &str,
        thumbnail: &Thumbnail,
    ) -> Result<()> {
        match self.show {
            Show::Json => Ok(()),
            Show::InPlace => self.draw(moment, status, thumbnail),
            Show::Plain if Instant::now() < self.next_table => Ok(()),
            Show::Plain => {
                self.next_table += PLAIN_EVERY;
                let mut out = std::io::stdout().lock();
                let head = format!("After {}; the robot {status}:", moment.time());
                self.print(&mut out, &vec![(Style::Plain, head)], 2)?;
                let width = Window::of_terminal().width;
                for line in table(moment.routes, width, usize::MAX).0 {
                    writeln!(out, "{}", self.styled(&line, width))?;
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
            (self.shown, self.is_drawing) = (0, false);
        }
        Ok(())
    }

    pub(crate) fn summary(&self, summary: &Summary, out: &mut StdoutLock<'_>) -> Result<()> {
        let width = Window::of_terminal().width;
        if self.show == Show::Plain {
            writeln!(out)?;
        }
        for line in sums(summary, width) {
            writeln!(out, "{}", self.styled(&line, width))?;
        }
        Ok(out.flush()?)
    }

    fn draw(&mut self, moment: &Moment<'_>, status: &str, thumbnail: &Thumbnail) -> Result<()> {
        let window = Window::of_terminal();
        let text = self.frame(moment, status, thumbnail, window);
        let mut out = std::io::stdout().lock();
        if self.shown_in != window && self.shown != 0 {
            // The terminal has broken the lines anew, nobody knows how.
            write!(out, "\x1b[H\x1b[2J")?;
            self.shown = 0;
        }
        let mut frame = String::new();
        for line in &text {
            writeln!(frame, "{line}\x1b[K")?;
        }
        self.go_up(&mut out)?;
        write!(out, "{frame}\x1b[J")?;
        (self.shown, self.shown_in) = (text.len(), window);
        Ok(out.flush()?)
    }

    /// What stands in a window: what fits into it, and what a larger one would show.
    fn frame(
        &self,
        moment: &Moment<'_>,
        status: &str,
        thumbnail: &Thumbnail,
        window: Window,
    ) -> Vec<String> {
        let Window { width, height } = window;
        let has_picture = !thumbnail.pixels.is_empty();
        let time = if has_picture { moment.time() } else { "starting".to_owned() };
        let elsewhere = match &self.command {
            Some(command) => format!("in another terminal: {command}"),
            None => NO_COMMAND.to_owned(),
        };
        // Cut where it is too long, as what is below would go up and down with what it says.
        let mut head: Vec<Line> = vec![vec![
            (Style::Bold, "tsuji demo".to_owned()),
            (Style::Plain, format!("  {time}")),
            (Style::Dim, " (Ctrl-C ends it)".to_owned()),
            (Style::Plain, format!("  {status}")),
        ]];
        // What is to be typed is whole.
        let page = self.page.as_deref().map(page_at);
        let typed = std::iter::once(elsewhere).chain(page);
        head.extend(typed.flat_map(|it| wrapped(&vec![(Style::Dim, it)], width, 2)));
        let mut log: Vec<Line> =
            self.log.iter().flat_map(|(line, indent)| wrapped(line, width, *indent)).collect();
        // Under the head a line for what a larger window shows; one above the table, one for the cursor.
        let (others, picture_max) = (head.len() + 3, TINY.height / 2);
        // The picture says more than the reasons.
        let lines_max = height.saturating_sub(others + LOG_LINES_ENOUGH + 1 + picture_max);
        let (table, has_reasons) = table(moment.routes, width, lines_max);
        let others = others + table.len();
        let room = height.saturating_sub(others);
        let room = match LOG_LINES_ENOUGH + 1 + PICTURE_LINES_MIN <= room {
            true => room.saturating_sub(1 + picture_max).max(LOG_LINES_ENOUGH),
            false => room.max(LOG_LINES_MIN),
        };
        log.drain(..log.len().saturating_sub(room.min(LOG_LINES_MAX)));
        let taken = others + log.len();
        // One line stays free between the table and the picture.
        let left = height.saturating_sub(taken + 1).min(picture_max);
        let is_shown = PICTURE_LINES_MIN <= left && TINY.width <= width;
        let longest = table.iter().map(length).max().unwrap_or_default();
        let mut more = Vec::new();
        if !is_shown {
            more.push("the picture");
        } else if left < picture_max {
            more.push("a larger picture");
        }
        let has_reasons = has_reasons && longest <= width;
        if !has_reasons {
            more.push("all reasons");
        }
        if height < taken {
            more.push("all lines");
        }
        let hint = match &more[..] {
            [] => String::new(),
            more => {
                let wanted = Window {
                    width: width.max(longest).max(TINY.width).max(if has_reasons {
                        0
                    } else {
                        REASONS_WIDE
                    }),
                    height: height.max(taken + 1 + picture_max),
                };
                let Window { width, height } = wanted;
                format!("a window of {width}×{height} shows more: {}", more.join(", "))
            }
        };
        let mut lines = head;
        lines.push(vec![(Style::Dim, hint)]);
        let has_log = !log.is_empty();
        lines.extend(log);
        lines.extend(has_log.then(Line::new));
        lines.extend(table);
        lines.truncate(height.saturating_sub(1));
        let mut text: Vec<String> = lines.iter().map(|it| self.styled(it, width)).collect();
        if is_shown && has_picture {
            text.push(String::new());
            text.extend(self.picture(&thumbnail.pixels, left));
        }
        text
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

    /// The text of a line; where it is too long its end is left out.
    fn styled(&self, line: &Line, width: usize) -> String {
        let is_cut = width < length(line);
        let mut text = String::new();
        let mut left = if is_cut { width.saturating_sub(1) } else { width };
        for (style, piece) in line {
            let shown: String = piece.chars().take(left).collect();
            left -= shown.chars().count();
            let code = match style {
                Style::Plain => "",
                Style::Bold => "1",
                Style::Dim => "2",
                Style::Transport => "36",
                Style::Good => "32",
                Style::Bad => "1;31",
            };
            if self.has_colour && !code.is_empty() && !shown.is_empty() {
                let _ = write!(text, "\x1b[{code}m{shown}\x1b[0m");
            } else {
                text.push_str(&shown);
            }
        }
        let mut text = text.trim_end().to_owned();
        if is_cut {
            text.push('…');
        }
        text
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_drawing {
            // Whatever ends it, the user's cursor comes back.
            let _ = write!(std::io::stdout(), "\x1b[?25h");
        }
    }
}

/// A line in as many as it takes, those after the first with so many blanks before them. What has no blank where it would
/// have to end is parted anywhere.
fn wrapped(line: &Line, width: usize, indent: usize) -> Vec<Line> {
    let indent = indent.min(width / 4);
    let (mut lines, mut current, mut column) = (Vec::new(), Line::new(), 0);
    let begin = |current: &mut Line, lines: &mut Vec<Line>| {
        if let Some((_, last)) = current.last_mut() {
            last.truncate(last.trim_end().len());
        }
        lines.push(std::mem::replace(current, vec![(Style::Plain, " ".repeat(indent))]));
    };
    for (style, text) in line {
        for word in text.split_inclusive(' ') {
            let is_first = lines.is_empty();
            let start = if is_first { 0 } else { indent };
            let mut word = word;
            if width < column + wide(word.trim_end()) && start < column {
                begin(&mut current, &mut lines);
                column = indent;
                word = word.trim_start();
            }
            while width < column + wide(word.trim_end()) {
                let at = word.char_indices().nth(width.saturating_sub(column).max(1));
                let (head, tail) = word.split_at(at.map_or(word.len(), |(at, _)| at));
                current.push((*style, head.to_owned()));
                begin(&mut current, &mut lines);
                (column, word) = (indent, tail);
                if word.is_empty() {
                    break;
                }
            }
            column += wide(word);
            match current.last_mut() {
                Some((last, text)) if last == style => text.push_str(word),
                _ => current.push((*style, word.to_owned())),
            }
        }
    }
    begin(&mut current, &mut lines);
    lines
}

/// Brighter is denser.
fn shade(upper: [u8; 3], lower: [u8; 3]) -> char {
    let sum: u32 = [upper, lower].into_iter().flatten().map(u32::from).sum();
    SHADES[(sum as usize * SHADES.len() / (6 * 256)).min(SHADES.len() - 1)]
}

const SHADES: [char; 8] = [' ', '.', ':', '-', '=', '+', '*', '#'];

/// The table of routes, and whether the reasons are in it: one line each where there is room for them, else with a second one
/// for the reason, and without it where that is more than `lines_max`.
fn table(routes: &[RouteReport], width: usize, lines_max: usize) -> (Vec<Line>, bool) {
    let routes = sorted(routes);
    let wide = wide_table(&routes);
    // With room for the beginnings of the reasons.
    let without_reasons = wide.first().map_or(0, length);
    if without_reasons <= width {
        return (wide, true);
    }
    match 2 * routes.len() < lines_max {
        true => (narrow_table(&routes), true),
        false => (short_table(&routes), false),
    }
}

fn sorted(routes: &[RouteReport]) -> Vec<&RouteReport> {
    let mut routes: Vec<&RouteReport> = routes.iter().collect();
    routes.sort_by_key(|it| (&it.topic, &it.publisher.node, &it.subscription.node));
    routes
}

fn wide_table(routes: &[&RouteReport]) -> Vec<Line> {
    let titles = ["TOPIC", "FROM → TO", "REACH", "RELIABILITY", "SIZE"];
    let mut lines = rows(routes, &titles, |it| {
        vec![it.topic.clone(), ends(it), it.scope.clone(), it.reliability.clone(), sample_size(it)]
    });
    let reasons = routes.iter().map(|it| (Style::Dim, format!("  {}", it.reason())));
    let reasons = std::iter::once((Style::Bold, "  BECAUSE".to_owned())).chain(reasons);
    lines.iter_mut().zip(reasons).for_each(|(line, reason)| line.push(reason));
    lines
}

fn narrow_table(routes: &[&RouteReport]) -> Vec<Line> {
    let mut lines = rows(routes, &["FROM → TO"], |it| vec![ends(it)]).into_iter();
    let mut table: Vec<Line> = lines.next().into_iter().collect();
    for (line, route) in lines.zip(routes) {
        table.push(line);
        let (topic, size) = (&route.topic, sample_size(route));
        table.push(vec![(Style::Dim, format!("  {topic}, {size}: {}", because(route)))]);
    }
    table
}

/// A line each, without what is known of a flow and the reason.
fn short_table(routes: &[&RouteReport]) -> Vec<Line> {
    rows(routes, &["TOPIC", "FROM → TO"], |it| vec![it.topic.clone(), ends(it)])
}

/// A header and a line for each flow: its `cells` under `titles`, and what is measured.
fn rows(
    routes: &[&RouteReport],
    titles: &[&str],
    cells: fn(&RouteReport) -> Vec<String>,
) -> Vec<Line> {
    let mut rows = vec![header(&[titles, &MEASURED[..]].concat())];
    rows.extend(routes.iter().map(|route| {
        let cells = cells(route).into_iter().map(|it| (Style::Plain, it));
        cells.chain(measured(route)).collect()
    }));
    align(rows, titles.len() + 1)
}

fn header(titles: &[&str]) -> Line {
    titles.iter().map(|it| (Style::Bold, (*it).to_owned())).collect()
}

const MEASURED: [&str; 5] = ["TRANSPORT", "RATE", "MEDIAN", "P99", "LOST"];

/// What stands under [`MEASURED`].
fn measured(route: &RouteReport) -> Line {
    if !route.is_counted {
        // As a foreign node, which does not count.
        let unknown = || (Style::Plain, "-".to_owned());
        return vec![transport(route), unknown(), unknown(), unknown(), unknown()];
    }
    let lost = route.lost + route.displaced + route.invalid;
    let style = if lost == 0 { Style::Good } else { Style::Bad };
    vec![
        transport(route),
        (Style::Plain, format!("{:.0}/s", route.rate_hz)),
        latency(Some(route), |it| it.median_us),
        latency(Some(route), |it| it.p99_us),
        (style, lost.to_string()),
    ]
}

fn latency(route: Option<&RouteReport>, pick: fn(&LatencyReport) -> f64) -> (Style, String) {
    let latency = route.and_then(|it| it.latency.as_ref());
    // As `tsuji routes` marks what is by two wall clocks.
    let shown = |it: &LatencyReport| {
        let clock = if it.clock == "wall" { "~" } else { "" };
        format!("{clock}{}", micros(pick(it)))
    };
    (Style::Plain, latency.map_or_else(|| "-".to_owned(), shown))
}

/// The size of a sample, in bytes as soon as they are known.
fn sample_size(route: &RouteReport) -> String {
    let mean = || route.bytes.checked_div(route.samples).filter(|it| *it != 0);
    route.sample_bytes.or_else(mean).map_or_else(|| route.size.clone(), bytes)
}

fn sums(summary: &Summary, width: usize) -> Vec<Line> {
    let mut lines = chapters(&summary.story, width);
    let flows = flow_sums(&summary.flows, true);
    let is_narrow = flows.iter().any(|it| width < length(it));
    lines.extend(if is_narrow { flow_sums(&summary.flows, false) } else { flows });
    lines.push(Line::new());
    let troubles = summary.troubles.iter().map(|it| vec![(Style::Bad, it.clone())]);
    let mut told: Vec<Line> = summary.flows.iter().filter_map(wrong).chain(troubles).collect();
    let reasons = reasons(&summary.flows).into_iter().chain(left_out(&summary.left_out));
    told.extend(reasons.map(|it| vec![(Style::Dim, it)]));
    told.push(Line::new());
    told.extend(last_words(summary));
    lines.extend(told.iter().flat_map(|it| wrapped(it, width, 2)));
    lines
}

/// A line for each flow; where there is little room without its topic and how often its transport changed.
fn flow_sums(flows: &[FlowSum], is_wide: bool) -> Vec<Line> {
    let kept = |row: Line| -> Line {
        let columns = row.into_iter().enumerate();
        columns.filter(|(at, _)| is_wide || ![0, 3].contains(at)).map(|(_, it)| it).collect()
    };
    let mut rows = vec![kept(header(&[
        "TOPIC",
        "FROM → TO",
        "TRANSPORT",
        "CHANGES",
        "SENT",
        "RECEIVED",
        "LOST",
        "MEDIAN",
        "P99",
    ]))];
    for flow in flows {
        let count = |it: Option<u64>| it.map_or_else(|| "?".to_owned(), |it| it.to_string());
        let style = if flow.is_good() { Style::Good } else { Style::Bad };
        let route = flow.route.as_ref();
        rows.push(kept(vec![
            (Style::Plain, flow.topic.to_owned()),
            (Style::Plain, format!("{} → {}", short(flow.from), short(flow.to))),
            route.map_or_else(|| (Style::Bad, "?".to_owned()), transport),
            (Style::Plain, flow.changes.to_string()),
            (Style::Plain, count(flow.sent)),
            (Style::Plain, count(flow.received)),
            (style, count(flow.lost())),
            latency(route, |it| it.median_us),
            latency(route, |it| it.p99_us),
        ]));
    }
    align(rows, if is_wide { 3 } else { 2 })
}

/// What is to be remembered: what a picture takes, what the changes cost, what the robot did.
fn last_words(summary: &Summary) -> Vec<Line> {
    let by = |(transport, took): (&str, f64)| {
        let by = match transport {
            "inproc" => "by pointer",
            "shm" => "by shared memory",
            "cyclonedds" => "by DDS",
            other => other,
        };
        format!("{} {by}", briefly(took))
    };
    let latencies: Vec<String> = summary.story.latencies().into_iter().map(by).collect();
    let kilobytes = FULL.bytes() / 1000;
    let picture = (!latencies.is_empty())
        .then(|| format!("A {kilobytes} kB picture: {}.", latencies.join(", ")));
    let (seconds, changes) = (summary.seconds, summary.story.changes_made());
    let changes = match changes {
        0 => format!("{seconds:.1} s."),
        _ => format!("{seconds:.1} s, {} of transport.", counted(changes, "change")),
    };
    let (style, verdict) = match summary.is_good() {
        true => (Style::Good, VERDICT),
        false => (Style::Bad, "Not as it should be."),
    };
    let Tour { places, metres, .. } = &summary.tour;
    let mut drive = format!("It drove {metres:.0} m to {}", counted(*places as usize, "place"));
    match summary.story.changes_made() {
        0 => drive.push('.'),
        _ => {
            let later = briefly(summary.story.extra_us());
            drive.push_str(&format!("; no picture was more than {later} later than usual."));
        }
    }
    picture
        .map(|it| vec![(Style::Plain, it)])
        .into_iter()
        .chain([vec![(style, format!("{changes} {verdict}"))], vec![(Style::Plain, drive)]])
        .collect()
}

const VERDICT: &str = "Nothing lost, doubled, out of order or altered.";

/// The changes of each act: one line each where there is room, else with a second one for the reason.
fn chapters(story: &Story, width: usize) -> Vec<Line> {
    if story.chapters.is_empty() {
        return Vec::new();
    }
    let is_narrow = width < CHAPTERS_WIDE;
    let flow = if is_narrow { "TO" } else { "FROM → TO" };
    let mut rows = vec![header(&["ACT", flow, "TRANSPORT", "OPENED", "SETTLED", "HELD", "LATER"])];
    let mut reasons = vec![(Style::Bold, "  WHY".to_owned())];
    for (at, Chapter { name, changes, extra_us, .. }) in story.chapters.iter().enumerate() {
        for (nth, change) in changes.iter().enumerate() {
            let first = |text: String| if nth == 0 { text } else { String::new() };
            let (transport, to) = (&change.transport, short(&change.to));
            let is_change = transport.from.is_some();
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
                (Style::Transport, way(change)),
                (Style::Plain, micros(transport.opening_us)),
                (Style::Plain, of_change(micros(transport.settling_us))),
                (Style::Plain, of_change(transport.held.to_string())),
                (Style::Plain, first(format!("+{}", micros(*extra_us)))),
            ]);
            reasons.push((Style::Dim, format!("  {}", transport.why)));
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

/// Where a browser finds the robot.
fn page_at(address: &str) -> String {
    format!("in a browser: {address} (under Routes a click sets a transport)")
}

impl Moment<'_> {
    fn time(&self) -> String {
        let runs = self.runs.as_secs();
        match self.stays {
            true => format!("{runs} s"),
            false => format!("{runs} of {} s", self.of.as_secs()),
        }
    }
}

/// From which transport to which.
fn way(change: &Change) -> String {
    let transport = &change.transport;
    match &transport.from {
        Some(from) => format!("{from} → {}", transport.to),
        None => transport.to.clone(),
    }
}

/// How long it took to change a transport.
fn pace(change: &Change) -> String {
    let transport = &change.transport;
    let mut text = format!("opened {}", micros(transport.opening_us));
    if transport.from.is_none() {
        return text;
    }
    match transport.is_settled {
        true => text.push_str(&format!(", settled {}", micros(transport.settling_us))),
        false => text.push_str(", not settled"),
    }
    if transport.held != 0 {
        text.push_str(&format!(", {} held", transport.held));
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

/// Each reason once, with the transport that it led to.
fn reasons(flows: &[FlowSum]) -> Vec<String> {
    let mut reasons = Vec::new();
    for route in flows.iter().filter_map(|it| it.route.as_ref()) {
        let transport = route.transport.as_deref().unwrap_or("none");
        let reason = format!("{transport}: {}", because(route));
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

fn transport(route: &RouteReport) -> (Style, String) {
    match (route.state, &route.transport) {
        (RouteState::Active, Some(transport)) => (Style::Transport, transport.clone()),
        (RouteState::Opening, _) => (Style::Dim, "…".to_owned()),
        _ => (Style::Bad, "none".to_owned()),
    }
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

/// A number of things, of one or of several.
fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// As one says it: of microseconds only whole ones.
fn briefly(value_us: f64) -> String {
    match value_us {
        ..100.0 => format!("{value_us:.0} µs"),
        _ => micros(value_us),
    }
}

fn bytes(value: u64) -> String {
    match value {
        ..1024 => format!("{value} B"),
        1024..102_400 => format!("{:.1} KiB", value as f64 / 1024.0),
        102_400..1_048_576 => format!("{:.0} KiB", value as f64 / 1024.0),
        _ => format!("{:.1} MiB", value as f64 / 1_048_576.0),
    }
}

/// From one table to the next where nothing can be drawn over.
const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// Lines about what was done, and what came of it, as long as they are.
const LOG_MAX: usize = 8;
/// So many lines of the window they take, as far as there is room.
const LOG_LINES_MAX: usize = 10;
const LOG_LINES_MIN: usize = 3;
/// Where the picture could stand below, so many do.
const LOG_LINES_ENOUGH: usize = 5;
/// Why it can be seen from nowhere else.
const NO_COMMAND: &str =
    "the command tsuji, which shows it from elsewhere, is neither beside tsuji-demo nor in PATH";
/// What will be seen, and why that is new.
const INTRO: [&str; 2] = [
    "A small robot drives round a crossroads: real processes, and each of their flows takes the \
     transport that suits it.",
    "While its pictures flow, that transport is changed by policy, by size and by force, \
     and nothing is lost: other middleware is chosen once, for everything, before the start.",
];
/// So many columns hold the reasons of most flows.
const REASONS_WIDE: usize = 120;
/// So many columns hold the changes with something of the reasons.
const CHAPTERS_WIDE: usize = 110;
/// A smaller picture shows nothing.
const PICTURE_LINES_MIN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use tsuji::{Context, Qos};
    use tsuji_interfaces::std_msgs::msg::String as Text;

    /// The flows of the demonstration, each made of a real one.
    fn routes() -> Vec<RouteReport> {
        let folder = std::env::temp_dir().join(format!("tsuji-screen-{}", std::process::id()));
        let context = Context::builder().runtime_dir(&folder).domain(1).isolated().build().unwrap();
        let node = context.node("a").unwrap();
        let publisher = node.create_publisher::<Text>("t", Qos::DEFAULT).unwrap();
        let _subscription = node.create_polled_subscription::<Text>("t", Qos::DEFAULT).unwrap();
        let forever = Duration::from_secs(60);
        publisher.wait_for_subscriptions(1, forever).unwrap();
        let [route] = &context.routes(forever).unwrap()[..] else { panic!("one flow") };
        let flows = crate::robot::FLOWS.iter().map(|(topic, from, to)| {
            let mut route = route.clone();
            (route.topic, route.publisher.node) = ((*topic).into(), (*from).into());
            route.subscription.node = (*to).into();
            route.transport = Some("cyclonedds".into());
            route.because = "rule \"large pictures\" (policy.xml:2); large (921652 bytes, what was really \
                             sent), local (one host, proved), reliable, peer tsuji, as the demo has them"
                .into();
            route
        });
        let flows = flows.collect();
        drop(context);
        let _ = std::fs::remove_dir_all(folder);
        flows
    }

    fn screen() -> Screen {
        let mut screen = Screen::new(Show::InPlace);
        screen.command = Some("/tmp/tsuji-demo-4194304/tsuji routes --why".to_owned());
        screen.page = Some("http://127.0.0.1:43975/".to_owned());
        screen.has_colour = false;
        for act in 1..=4 {
            let text =
                format!("act {act} of 5: the pictures become thumbnails of 128×96, 100 a second");
            screen.log(Duration::from_secs(123), &text).unwrap();
            let why = "           the samples are of another size; rule \"small pictures\"; small, local, reliable, peer tsuji";
            screen.append([vec![(Style::Dim, why.to_owned())]], 11).unwrap();
        }
        screen
    }

    #[test]
    fn every_line_fits_into_the_window_and_what_does_not_is_told() {
        let (screen, routes) = (screen(), routes());
        let thumbnail = Thumbnail { pixels: vec![9; TINY.bytes()] };
        let moment = Moment {
            routes: &routes,
            runs: Duration::from_secs(86_399),
            of: Duration::from_secs(86_400),
            stays: false,
        };
        let status = "drives to the station, 12.3 m to go";
        let frame =
            |width, height| screen.frame(&moment, status, &thumbnail, Window { width, height });
        for width in 1..250 {
            for height in 1..70 {
                let frame = frame(width, height);
                assert!(frame.len() < height, "{} lines in {width}×{height}", frame.len());
                for line in &frame {
                    assert!(wide(line) <= width, "{line:?} in {width}×{height}");
                }
            }
        }
        let check = |width, height, expect: &str, has_picture: bool| {
            let frame = frame(width, height);
            assert!(frame[3].ends_with(expect), "{:?} in {width}×{height}", frame[3]);
            let is_whole = frame[3].is_empty() || frame[3].starts_with("a window of ");
            assert!(is_whole, "{:?}", frame[3]);
            let picture = frame.last().unwrap().chars().all(|it| SHADES.contains(&it));
            assert_eq!(picture, has_picture, "{frame:#?}");
        };
        // What is to be typed is whole where most windows are.
        assert_eq!(
            frame(80, 24)[1],
            "in another terminal: /tmp/tsuji-demo-4194304/tsuji routes --why"
        );
        let narrow: String = frame(20, 60).concat().split_whitespace().collect();
        for whole in ["/tmp/tsuji-demo-4194304/tsujiroutes--why", "http://127.0.0.1:43975/"] {
            assert!(narrow.contains(whole), "{whole}: {narrow}");
        }
        check(80, 24, " shows more: the picture, all reasons", false);
        check(80, 34, " shows more: a larger picture, all reasons", true);
        check(80, 60, " shows more: all reasons", true);
        check(80, 12, " shows more: the picture, all reasons, all lines", false);
        check(220, 60, "", true);

        let mut route = routes[0].clone();
        for (clock, expect) in [("monotonic", "1.5 µs"), ("wall", "~1.5 µs")] {
            let (median_us, p99_us, max_us) = (1.5, 2.5, 3.5);
            let (clock, sum_us, counts) = (clock.to_owned(), 0.0, Vec::new());
            route.latency =
                Some(LatencyReport { median_us, p99_us, max_us, sum_us, counts, clock });
            assert_eq!(latency(Some(&route), |it| it.median_us).1, expect);
        }
    }

    #[test]
    fn a_long_line_becomes_several() {
        let check = |text: &str, width: usize, indent: usize, expect: &[&str]| {
            let line = vec![(Style::Dim, String::new()), (Style::Bold, text.to_owned())];
            let lines = wrapped(&line, width, indent);
            let text = |line: &Line| line.iter().map(|(_, it)| &**it).collect::<String>();
            let lines: Vec<String> =
                lines.iter().map(|it| text(it).trim_end().to_owned()).collect();
            assert_eq!(lines, expect, "{width}");
        };
        check("  one two three", 40, 4, &["  one two three"]);
        check("  one two three", 15, 3, &["  one two three"]);
        check("  one two three", 14, 3, &["  one two", "   three"]);
        check("  one two three", 8, 8, &["  one", "  two", "  three"]);
        check("abcdefghij klm", 8, 2, &["abcdefgh", "  ij klm"]);
        check("ab", 1, 5, &["a", "b"]);
    }
}
