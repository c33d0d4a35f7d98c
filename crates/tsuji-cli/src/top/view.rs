//! What the screen looks like.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, List, ListState, Padding, Paragraph};
use tsuji::{EngineReport, EngineState, ProcessEngines, RouteReport};
use tsuji_platform::clock;

use super::state::{Choice, Details, FlowColumn, Mode, Page, ProcessColumn, Top};
use crate::figures;
use crate::output::{Colour, Paint, escaped};
use crate::routes::{self, engines, history};
use crate::table::{Cell, Column, Table, shorten_end, shorten_middle, wrapped};

/// Columns for the title of a detail.
const TITLE: usize = 10;

/// Rows from which on there is room for details beside the table.
const ROWS_WITH_DETAILS: u16 = 14;

/// Draws all. How many rows there are, and how far the details can be scrolled, is noted in `top`.
pub(super) fn draw(top: &mut Top, paint: Paint, frame: &mut Frame<'_>) {
    let styles = Styles { paint };
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(head_line(top, styles, head.width), head);
    let details = match top.details {
        Details::None => 0,
        Details::Some if body.height < ROWS_WITH_DETAILS => 0,
        Details::Some => body.height / 2,
        Details::All => body.height,
    };
    let [rows, details] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(details)]).areas(body);
    draw_table(top, styles, frame, rows);
    draw_details(top, styles, frame, details);
    frame.render_widget(foot_line(top, styles, foot.width), foot);
    match &top.mode {
        Mode::Transports(choice) => draw_choice(choice, styles, frame),
        Mode::Help => draw_help(frame),
        Mode::Table | Mode::Filter => {}
    }
}

/// How colours are shown.
#[derive(Clone, Copy)]
struct Styles {
    paint: Paint,
}

impl Styles {
    fn style(self, colour: Colour) -> Style {
        let of = |color: Color| match self.paint.is_on() {
            true => Style::new().fg(color),
            false => Style::new(),
        };
        match colour {
            Colour::Plain => Style::new(),
            Colour::Dim => Style::new().add_modifier(Modifier::DIM),
            Colour::Strong => Style::new().add_modifier(Modifier::BOLD),
            Colour::Good => of(Color::Green),
            Colour::Warning => of(Color::Yellow),
            Colour::Error => of(Color::Red).add_modifier(Modifier::BOLD),
            Colour::Name => of(Color::Cyan),
        }
    }

    fn span(self, colour: Colour, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(colour))
    }
}

/// What there is in all.
fn head_line(top: &Top, styles: Styles, width: u16) -> Line<'static> {
    let flows = top.all_flows();
    let sum = |pick: fn(&RouteReport) -> f64| flows.iter().map(pick).sum::<f64>();
    let drops: u64 = flows.iter().map(routes::drops).sum();
    let page = |page, name: &str| {
        let colour = if top.page == page { Colour::Strong } else { Colour::Dim };
        styles.span(colour, name)
    };
    let every = match top.is_paused {
        true => styles.span(Colour::Warning, "paused"),
        false => styles.span(Colour::Dim, format!("every {}", figures::seconds(top.every))),
    };
    let drops_colour = if drops > 0 { Colour::Warning } else { Colour::Plain };
    let mut parts = vec![
        page(Page::Flows, &figures::count(flows.len(), "flow", "flows")),
        page(Page::Processes, &figures::count(top.others().len(), "process", "processes")),
        Span::raw(figures::rate(sum(|it| it.rate_hz))),
        Span::raw(figures::throughput(sum(|it| it.bytes_per_s))),
        styles.span(drops_colour, format!("{drops} dropped")),
        every,
    ];
    if !top.filter.is_empty() {
        parts.push(styles.span(Colour::Warning, format!("only \"{}\"", escaped(&top.filter, ""))));
    }
    let mut line = vec![styles.span(Colour::Strong, "tsuji top")];
    let mut used = line[0].width();
    for part in parts {
        used += 2 + part.width();
        if usize::from(width) < used {
            break;
        }
        line.extend([Span::raw("  "), part]);
    }
    Line::from(line)
}

/// What was done last, or the keys that are pressed most.
fn foot_line(top: &Top, styles: Styles, width: u16) -> Line<'static> {
    let width = usize::from(width);
    if top.mode == Mode::Filter {
        let text = format!("/{}", escaped(&top.filter, ""));
        let keys = "  Enter keeps, Esc shows all";
        return Line::from(vec![Span::raw(text), styles.span(Colour::Dim, keys)]);
    }
    if let Some((colour, text)) = top.message() {
        return Line::from(styles.span(colour, shorten_end(&escaped(text, ""), width)));
    }
    let keys = "q end  ↑↓ choose  Enter details  t transport  u undo  < > sort  / filter  ? keys";
    Line::from(styles.span(Colour::Dim, shorten_end(keys, width)))
}

fn draw_table(top: &mut Top, styles: Styles, frame: &mut Frame<'_>, area: Rect) {
    top.rows = usize::from(area.height.saturating_sub(1));
    let table = match top.page {
        Page::Flows => flow_table(top, area.width),
        Page::Processes => process_table(top),
    };
    let mut lines = table.cells(Some(area.width.into())).into_iter().map(|cells| {
        let spans = cells.into_iter().map(|it| styles.span(it.colour(), it.text()));
        Line::from_iter(spans)
    });
    let titles = lines.next().unwrap_or_default();
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return frame.render_widget(styles.span(Colour::Dim, why_empty(top)), area);
    }
    let [head, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    frame.render_widget(titles, head);
    let list = List::new(lines).highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = ListState::default().with_selected(top.chosen()).with_offset(top.above);
    frame.render_stateful_widget(list, rows, &mut state);
    top.above = state.offset();
}

/// The column with the mark of the order, if the rows are sorted by it.
fn sorted(column: Column, is_it: bool, is_downwards: bool) -> Column {
    column.marked(match (is_it, is_downwards) {
        (false, _) => "",
        (true, true) => "▼",
        (true, false) => "▲",
    })
}

/// Columns from which on there is room for the two ends of a flow, and for its type.
const WIDE: u16 = 120;
const WIDER: u16 = 160;

fn flow_table(top: &Top, width: u16) -> Table {
    let is_downwards = top.flow_column.is_downwards() != top.is_reversed;
    let by = |column: Column, it: FlowColumn| sorted(column, top.flow_column == it, is_downwards);
    let mut columns = vec![by(Column::name("TOPIC", 10), FlowColumn::Topic)];
    if WIDER <= width {
        columns.push(Column::name("TYPE", 10));
    }
    if WIDE <= width {
        columns.extend(["FROM", "TO"].map(|it| Column::name(it, 10)));
    }
    columns.extend([
        by(Column::whole("TRANSPORT"), FlowColumn::Transport),
        by(Column::number("RATE"), FlowColumn::Rate),
        by(Column::number("BYTES/S"), FlowColumn::Bytes),
        by(Column::number("MEDIAN µs"), FlowColumn::Median),
        by(Column::number("P99 µs"), FlowColumn::P99),
        by(Column::number("DROPS"), FlowColumn::Drops),
    ]);
    let mut table = Table::new(&columns);
    for flow in top.flows() {
        let mut cells: Vec<Cell> = vec![routes::name(flow).into()];
        if WIDER <= width {
            cells.push(flow.type_name.clone().into());
        }
        if WIDE <= width {
            cells.extend([&flow.publisher, &flow.subscription].map(|it| routes::end(it).into()));
        }
        cells.push(routes::transport(flow));
        cells.extend(routes::measured(flow));
        table.row(cells);
    }
    table
}

fn process_table(top: &Top) -> Table {
    let is_downwards = top.process_column.is_downwards() != top.is_reversed;
    let by =
        |column: Column, it: ProcessColumn| sorted(column, top.process_column == it, is_downwards);
    let mut table = Table::new(&[
        by(Column::name("PROGRAM", 10), ProcessColumn::Program),
        by(Column::number("PID"), ProcessColumn::Pid),
        by(Column::name("HOST", 10), ProcessColumn::Host),
        by(Column::number("CPU %"), ProcessColumn::Cpu),
        by(Column::number("THREADS"), ProcessColumn::Threads),
        by(Column::number("MEMORY"), ProcessColumn::Memory),
        Column::whole("TRANSPORTS"),
    ]);
    for it in top.processes() {
        let running = it.engines.iter().filter(|it| it.state.is_at_work());
        let running: Vec<&str> = running.map(|it| &*it.transport).collect();
        table.row(vec![
            it.process.program.clone().into(),
            it.process.pid.to_string().into(),
            it.process.host.clone().into(),
            top.share(it).map_or_else(|| "-".to_owned(), percent).into(),
            it.threads.to_string().into(),
            figures::bytes(it.resident_bytes).into(),
            Cell::new(running.join(" "), Colour::Name),
        ]);
    }
    table
}

/// Of one core, as top tells it: 200.0 is two whole ones.
fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn why_empty(top: &Top) -> String {
    if !top.is_known() {
        return "Asking the processes of the domain …".to_owned();
    }
    match (top.filter.is_empty(), top.page) {
        (false, _) => format!("Nothing has \"{}\" in it; Esc shows all.", escaped(&top.filter, "")),
        (true, Page::Flows) => {
            "No flows: no publisher here has a subscription that matches.".to_owned()
        }
        (true, Page::Processes) => "No other process of tsuji is in this domain.".to_owned(),
    }
}

fn draw_details(top: &mut Top, styles: Styles, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let lines = match top.page {
        Page::Flows => top.chosen_flow().map(|it| flow_details(top, it, styles, width)),
        Page::Processes => top.chosen_process().map(|it| process_details(it, styles, width)),
    };
    let lines = lines.unwrap_or_default();
    let room = usize::from(area.height).saturating_sub(1);
    top.scrolled = match top.details {
        Details::All => top.scrolled.min(lines.len().saturating_sub(room)),
        _ => 0,
    };
    let rest = lines.len().saturating_sub(top.scrolled + room);
    let title = match (top.details, rest) {
        (_, 0) => String::new(),
        (Details::All, rest) => format!("─ {} below ─", figures::count(rest, "line", "lines")),
        (_, _) => "─ Enter shows more ─".to_owned(),
    };
    let block = Block::new()
        .borders(Borders::TOP)
        .border_style(styles.style(Colour::Dim))
        .title_top(Line::from(styles.span(Colour::Dim, title)).right_aligned());
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top.scrolled).take(room).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// A title and a text, which takes several lines where there is little room.
fn detail(styles: Styles, title: &str, text: &str, width: usize) -> Vec<Line<'static>> {
    let parts = wrapped(&escaped(text, ""), width.saturating_sub(TITLE).max(1));
    let lines = parts.into_iter().enumerate().map(|(at, part)| {
        let title = if at == 0 { title } else { "" };
        Line::from(vec![styles.span(Colour::Dim, format!("{title:<TITLE$}")), Span::raw(part)])
    });
    lines.collect()
}

fn flow_details(top: &Top, flow: &RouteReport, styles: Styles, width: usize) -> Vec<Line<'static>> {
    let RouteReport { size, scope, reliability, .. } = flow;
    let ends = format!("{} → {}", routes::end(&flow.publisher), routes::end(&flow.subscription));
    let name = format!("{}  {}", routes::name(flow), flow.type_name);
    let name = shorten_end(&escaped(&name, ""), width);
    let mut lines = vec![Line::from(styles.span(Colour::Strong, name))];
    lines.extend(detail(styles, "from, to", &ends, width));
    lines.extend(detail(styles, "traits", &format!("{size}, {scope}, {reliability}"), width));
    let all = routes::explanation(flow);
    let (first, rest): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(title, _)| matches!(*title, "because" | "set" | "mismatch"));
    for (title, text) in first {
        lines.extend(detail(styles, title, &text, width));
    }
    lines.extend(trends(top, flow, styles, width));
    let now_ns = clock::wall_ns();
    for (at, change) in flow.changes.iter().rev().enumerate() {
        let title = if at == 0 { "history" } else { "" };
        lines.extend(detail(styles, title, &history::change_text(change, now_ns), width));
    }
    for (title, text) in rest {
        lines.extend(detail(styles, title, &text, width));
    }
    lines
}

/// Rate and latency of late, as bars.
fn trends(top: &Top, flow: &RouteReport, styles: Styles, width: usize) -> Vec<Line<'static>> {
    let line = |title: &str, values: Vec<f64>, text: fn(f64) -> String| {
        let now = *values.last()?;
        let most = values.iter().copied().fold(0.0, f64::max);
        let text = format!("{}, {} at most", text(now), text(most));
        let room = width.saturating_sub(TITLE + 2 + text.chars().count());
        let newest = &values[values.len().saturating_sub(room)..];
        Some(Line::from(vec![
            styles.span(Colour::Dim, format!("{title:<TITLE$}")),
            styles.span(Colour::Good, bars(newest, most)),
            Span::raw(format!("  {text}")),
        ]))
    };
    if !flow.is_counted {
        return Vec::new();
    }
    let rates = line("rate", top.trend(flow).map(|it| it.rate_hz).collect(), figures::rate);
    let medians = top.trend(flow).filter_map(|it| it.median_us).collect();
    let medians = line("median", medians, |it| format!("{} µs", figures::micros(it)));
    rates.into_iter().chain(medians).collect()
}

/// A bar for each value, the highest for `most`.
fn bars(values: &[f64], most: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: &f64| match *value {
        value if value <= 0.0 => ' ',
        value => BARS[((value / most * 8.0).ceil() as usize).clamp(1, BARS.len()) - 1],
    };
    values.iter().map(bar).collect()
}

fn process_details(it: &ProcessEngines, styles: Styles, width: usize) -> Vec<Line<'static>> {
    let title = shorten_end(&escaped(&engines::title(it), ""), width);
    let mut lines = vec![Line::from(styles.span(Colour::Strong, title))];
    let (at_work, not): (Vec<_>, Vec<_>) = it.engines.iter().partition(|it| it.state.is_at_work());
    for engine in at_work.into_iter().chain(not) {
        lines.extend(detail(styles, &engine.transport, &engine_text(engine), width));
        for more in engines::details(engine) {
            lines.extend(detail(styles, "", &more, width));
        }
    }
    lines
}

fn engine_text(engine: &EngineReport) -> String {
    let mut text = engine.state.to_string();
    if let Some(since) = engine.since_wall_ns {
        text += &format!(" since {}", figures::time(since, clock::wall_ns()));
    }
    if engine.state == EngineState::Running {
        let threads = figures::count(engine.threads.len(), "thread", "threads");
        text += &format!(", {threads}, {}, used by {}", engines::memory(engine), engine.users);
    }
    if !engine.because.is_empty() {
        text += &format!(": {}", engine.because);
    }
    text
}

/// The middle of the screen, for what is asked there.
fn middle(frame: &Frame<'_>, width: usize, height: usize) -> Rect {
    let area = frame.area();
    let width = u16::try_from(width + 4).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(height + 2).unwrap_or(u16::MAX).min(area.height);
    let (x, y) = ((area.width - width) / 2, (area.height - height) / 2);
    Rect { x: area.x + x, y: area.y + y, width, height }
}

fn draw_box(lines: Vec<Line<'_>>, title: String, at: usize, frame: &mut Frame<'_>) {
    let title = escaped(&title, "");
    let widths = lines.iter().map(Line::width).chain([title.chars().count()]);
    let area = middle(frame, widths.max().unwrap_or(0), lines.len());
    let room = usize::from(area.height.saturating_sub(2));
    let hidden = (at + 1).saturating_sub(room);
    let lines: Vec<Line<'_>> = lines.into_iter().skip(hidden).collect();
    let block = Block::bordered().title(title).padding(Padding::horizontal(1));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_choice(choice: &Choice, styles: Styles, frame: &mut Frame<'_>) {
    let room = usize::from(frame.area().width).saturating_sub(4);
    let name = |transport: &Option<String>| transport.clone().unwrap_or_else(|| "auto".to_owned());
    let widest = choice.offered.iter().map(|(it, _)| name(it).chars().count()).max().unwrap_or(0);
    let lines = choice.offered.iter().enumerate().map(|(at, (transport, reason))| {
        let text = format!("{:<widest$}  {reason}", name(transport));
        let text = shorten_end(&escaped(&text, ""), room);
        match at == choice.at {
            true => Line::styled(text, Style::new().add_modifier(Modifier::REVERSED)),
            false => Line::styled(text, styles.style(Colour::Plain)),
        }
    });
    let keys = ": Enter sets, Esc leaves it ";
    let topic = shorten_middle(&choice.topic, room.saturating_sub(keys.chars().count()));
    let title = format!(" {topic}{keys}");
    draw_box(lines.collect(), title, choice.at, frame);
}

fn draw_help(frame: &mut Frame<'_>) {
    // The same as `--help` has, with no margin.
    let lines = super::KEYS.lines().map(|it| Line::from(it.trim_start()));
    draw_box(lines.collect(), " keys ".to_owned(), 0, frame);
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use tsuji_platform::terminal::Key;

    use super::super::fixture::{flow, press, process, snapshot, top};
    use super::super::watcher::Report;
    use super::*;

    fn screen(top: &mut Top, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(top, Paint::PLAIN, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(row).map(|it| it.trim_end().to_owned()).collect()
    }

    #[test]
    fn all_is_seen_in_eighty_columns() {
        let mut top = top(vec![flow("/chatter", 1), flow("/robot/front/camera/image_raw", 2)]);
        let lines = screen(&mut top, 80, 24);
        let expect = [
            "tsuji top  2 flows  1 process  60.0 Hz  840.0 B/s  0 dropped  every 1 s",
            "TOPIC▲               TRANSPORT      RATE    BYTES/S   MEDIAN µs   P99 µs   DROPS",
            "/chatter             shm         30.0 Hz  420.0 B/s        20.0     90.0       0",
            "/robot/…a/image_raw  shm         30.0 Hz  420.0 B/s        20.0     90.0       0",
        ];
        assert_eq!(lines[..4], expect, "{lines:#?}");
        let has = |wanted: &str| assert!(lines.iter().any(|it| it == wanted), "{lines:#?}");
        has("/chatter  std_msgs/msg/String");
        has("from, to  /talker1 (tsuji 101) → /listener1 (tsuji 101)");
        has("because   rule \"on this host\"; small, local");
        has("rate      █  30.0 Hz, 30.0 Hz at most");
        assert!(lines[23].starts_with("q end  ↑↓ choose  "), "{lines:#?}");
    }

    #[test]
    fn processor_time_is_shown_where_it_is_known() {
        let mut top = top(Vec::new());
        press(&mut top, Key::Tab);
        let mut seen = snapshot(Vec::new());
        seen.processes = Some(vec![process("tsuji", 7), process("talker", 123_456)]);
        seen.shares = [("tsuji7".to_owned(), 1.2345)].into();
        top.on_report(Instant::now(), Report::Snapshot(seen));
        let lines = screen(&mut top, 80, 10);
        let expect = [
            "PROGRAM▲     PID  HOST    CPU %   THREADS   MEMORY  TRANSPORTS",
            "talker    123456  robot       -         6  27.0 MB  cyclonedds",
            "tsuji          7  robot   123.4         6  27.0 MB  cyclonedds",
        ];
        assert_eq!(lines[1..4], expect, "{lines:#?}");
        (0..3).for_each(|_| drop(press(&mut top, Key::Char('>'))));
        let lines = screen(&mut top, 80, 10);
        assert!(lines[1].contains("CPU %▼") && lines[2].starts_with("tsuji "), "{lines:#?}");
    }

    #[test]
    fn no_size_is_too_small_and_no_page_breaks() {
        let mut long = flow(&format!("/{}", "name/".repeat(60)), 1);
        long.because = "word ".repeat(200);
        let flows: Vec<_> = (0..50).map(|it| flow(&format!("/t{it}"), it)).chain([long]).collect();
        use Key::{Char, End, Enter, Escape, Tab};
        let keys = [Char('t'), Char('q'), Char('?'), Char('x'), Char('/'), Char('y'), Escape];
        let both = [Enter, End, Enter, End, Enter, Tab, Enter, End, Enter, End, Enter, Tab];
        for (flows, processes) in [(Vec::new(), 0), (flows, 30)] {
            let mut top = top(flows.clone());
            for key in keys.into_iter().chain(both) {
                press(&mut top, key);
                let mut seen = snapshot(flows.clone());
                seen.processes = Some((0..processes).map(|it| process("tsuji", it)).collect());
                seen.shares = (0..processes).map(|it| (format!("tsuji{it}"), 64.0)).collect();
                top.on_report(Instant::now(), Report::Snapshot(seen));
                for (width, height) in [(0, 0), (1, 1), (2, 40), (40, 3), (80, 24), (250, 60)] {
                    let lines = screen(&mut top, width, height);
                    assert!(lines.iter().all(|it| it.chars().count() <= usize::from(width)));
                }
            }
        }
    }

    #[test]
    fn the_end_of_the_table_and_of_the_details_is_reached() {
        let mut top = top((0..50).map(|it| flow(&format!("/t{it:02}"), it)).collect());
        screen(&mut top, 80, 24);
        press(&mut top, Key::End);
        let lines = screen(&mut top, 80, 24);
        assert!(lines.iter().any(|it| it.starts_with("/t49 ")), "{lines:#?}");
        press(&mut top, Key::Enter);
        press(&mut top, Key::End);
        let lines = screen(&mut top, 80, 10);
        assert_eq!(lines[8], "route     number 1 of this flow", "{lines:#?}");
        press(&mut top, Key::Home);
        let lines = screen(&mut top, 80, 10);
        assert!(lines[1].ends_with(" lines below ─"), "{lines:#?}");
    }

    #[test]
    fn text_of_others_commands_no_terminal() {
        let nasty = "/a\u{1b}[2J\u{9b}2J\u{202e}b";
        let mut it = flow(nasty, 1);
        for text in [
            &mut it.because,
            &mut it.type_name,
            &mut it.publisher.node,
            &mut it.subscription.program,
            &mut it.rejected[0].1,
            &mut it.changes[0].why,
        ] {
            *text = nasty.to_owned();
        }
        let mut top = top(vec![it]);
        for key in [Key::Enter, Key::Char('t')] {
            press(&mut top, key);
            for (width, height) in [(80, 24), (200, 60)] {
                let text = screen(&mut top, width, height).concat();
                assert!(!text.contains(|it: char| it.is_control() || it == '\u{202e}'), "{text:?}");
            }
        }
    }

    #[test]
    fn bars_are_as_high_as_what_they_stand_for() {
        assert_eq!(bars(&[0.0, 1.0, 4.0, 8.0], 8.0), " ▁▄█");
        assert_eq!(bars(&[0.0, -1.0, f64::NAN], 0.0), "  ▁");
        assert_eq!(bars(&[], 0.0), "");
    }
}
