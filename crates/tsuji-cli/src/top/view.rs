//! What the screen looks like.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState};
use tsuji::{EngineReport, EngineState, ProcessEngines, RouteReport};
use tsuji_platform::clock;

use super::state::{Choice, Details, FlowColumn, Mode, Page, ProcessColumn, Top, is_at_work};
use crate::figures;
use crate::output::{Colour, Paint, escaped};
use crate::routes::{self, engines, history};
use crate::table::{self, shorten_end, shorten_middle, wrapped};

/// Blanks between columns.
const GAP: u16 = 2;

/// Columns for the title of a detail.
const TITLE: usize = 10;

/// Rows from which on there is room for details beside the table.
const ROWS_WITH_DETAILS: u16 = 14;

/// What the keys are for, told by `?`.
const KEYS: [(&str, &str); 12] = [
    ("↑ ↓ PgUp PgDn", "choose a flow or a process"),
    ("Enter", "show less or more of what is chosen"),
    ("Tab", "the other page: flows, processes"),
    ("t", "set the transport of the topic"),
    ("a", "leave the topic to the policy"),
    ("u", "take back what was set last"),
    ("< >", "sort by another column"),
    ("r", "sort the other way round"),
    ("/", "show only what has a text in it; Esc shows all"),
    ("+ -", "look more often, less often"),
    ("space", "look no more for a while"),
    ("q", "end"),
];

/// Draws all. How many rows there are, and how far the details can be scrolled, is noted in `top`.
pub(super) fn draw(top: &mut Top, paint: Paint, frame: &mut Frame<'_>) {
    let look = Looks { paint };
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(head_line(top, look, head.width), head);
    let details = match top.details {
        Details::None => 0,
        Details::Some if body.height < ROWS_WITH_DETAILS => 0,
        Details::Some => body.height / 2,
        Details::All => body.height,
    };
    let [rows, details] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(details)]).areas(body);
    draw_table(top, look, frame, rows);
    draw_details(top, look, frame, details);
    frame.render_widget(foot_line(top, look, foot.width), foot);
    match &top.mode {
        Mode::Transports(choice) => draw_choice(choice, look, frame),
        Mode::Help => draw_help(look, frame),
        Mode::Table | Mode::Filter => {}
    }
}

/// How colours are shown.
#[derive(Clone, Copy)]
struct Looks {
    paint: Paint,
}

impl Looks {
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
fn head_line(top: &Top, look: Looks, width: u16) -> Line<'static> {
    let flows = top.all_flows();
    let sum = |pick: fn(&RouteReport) -> f64| flows.iter().map(pick).sum::<f64>();
    let drops: u64 = flows.iter().map(routes::drops).sum();
    let page = |page, name: &str| {
        let colour = if top.page == page { Colour::Strong } else { Colour::Dim };
        look.span(colour, name)
    };
    let every = match top.is_paused {
        true => look.span(Colour::Warning, "paused"),
        false => look.span(Colour::Dim, format!("every {}", figures::seconds(top.every))),
    };
    let drops_colour = if drops > 0 { Colour::Warning } else { Colour::Plain };
    let mut parts = vec![
        page(Page::Flows, &counted(flows.len(), "flow", "flows")),
        page(Page::Processes, &counted(top.others().len(), "process", "processes")),
        Span::raw(figures::rate(sum(|it| it.rate_hz))),
        Span::raw(figures::throughput(sum(|it| it.bytes_per_s))),
        look.span(drops_colour, format!("{drops} dropped")),
        every,
    ];
    if !top.filter.is_empty() {
        parts.push(look.span(Colour::Warning, format!("only \"{}\"", escaped(&top.filter, ""))));
    }
    let mut line = vec![look.span(Colour::Strong, "tsuji top")];
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

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// What was done last, or the keys that are pressed most.
fn foot_line(top: &Top, look: Looks, width: u16) -> Line<'static> {
    let width = usize::from(width);
    if top.mode == Mode::Filter {
        let text = format!("/{}", escaped(&top.filter, ""));
        let keys = "  Enter keeps, Esc shows all";
        return Line::from(vec![Span::raw(text), look.span(Colour::Dim, keys)]);
    }
    if let Some((colour, text)) = top.message() {
        return Line::from(look.span(colour, shorten_end(&escaped(text, ""), width)));
    }
    let keys = "q end  ↑↓ choose  Enter details  t transport  u undo  < > sort  / filter  ? keys";
    Line::from(look.span(Colour::Dim, shorten_end(keys, width)))
}

/// A column of a table.
struct Column {
    title: &'static str,
    is_number: bool,
    /// So narrow it may become; `None` if it is never shortened.
    least: Option<u16>,
    /// Whether it is what is sorted by.
    is_sorted: bool,
}

impl Column {
    fn name(title: &'static str, is_sorted: bool) -> Self {
        Self { title, is_number: false, least: Some(10), is_sorted }
    }

    fn whole(title: &'static str, is_sorted: bool) -> Self {
        Self { title, is_number: false, least: None, is_sorted }
    }

    fn number(title: &'static str, is_sorted: bool) -> Self {
        Self { title, is_number: true, least: None, is_sorted }
    }
}

fn draw_table(top: &mut Top, look: Looks, frame: &mut Frame<'_>, area: Rect) {
    top.rows = usize::from(area.height.saturating_sub(1));
    if area.height == 0 {
        return;
    }
    let (columns, rows) = match top.page {
        Page::Flows => flow_table(top, area.width),
        Page::Processes => process_table(top),
    };
    if rows.is_empty() {
        return frame.render_widget(look.span(Colour::Dim, why_empty(top)), area);
    }
    let widths = fitted(&columns, &rows, area.width);
    let is_downwards = match top.page {
        Page::Flows => top.flow_column.is_downwards(),
        Page::Processes => top.process_column.is_downwards(),
    };
    let mark = if is_downwards != top.is_reversed { "▼" } else { "▲" };
    let titles = columns.iter().zip(&widths).map(|(column, width)| {
        let title = match column.is_sorted {
            true => format!("{}{mark}", column.title),
            false => column.title.to_owned(),
        };
        Cell::new(aligned(title, *width, column.is_number))
    });
    let titles = Row::new(titles).style(look.style(Colour::Strong));
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&columns).zip(&widths).map(|((cell, column), width)| {
            let text = match column.least {
                Some(_) => shorten_middle(cell.text(), usize::from(*width)),
                None => cell.text().to_owned(),
            };
            Cell::new(aligned(text, *width, column.is_number)).style(look.style(cell.colour()))
        });
        Row::new(cells)
    });
    let table = Table::new(lines, widths.iter().map(|it| Constraint::Length(*it)))
        .header(titles)
        .column_spacing(GAP)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(top.chosen()).with_offset(top.above);
    frame.render_stateful_widget(table, area, &mut state);
    top.above = state.offset();
}

fn aligned(text: String, width: u16, is_number: bool) -> String {
    let width = usize::from(width);
    if is_number { format!("{text:>width$}") } else { text }
}

/// The width of each column. What may be shortened is, the widest first.
fn fitted(columns: &[Column], rows: &[Vec<table::Cell>], room: u16) -> Vec<u16> {
    let widest = |at: usize, column: &Column| {
        let texts = rows.iter().filter_map(|row| row.get(at)).map(|it| it.text().chars().count());
        // The mark of the column that is sorted by has its place, so that nothing jumps.
        let title = column.title.chars().count() + 1;
        u16::try_from(texts.chain([title]).max().unwrap_or(0)).unwrap_or(u16::MAX)
    };
    let mut widths: Vec<u16> =
        columns.iter().enumerate().map(|(at, column)| widest(at, column)).collect();
    let gaps = GAP.saturating_mul(u16::try_from(columns.len().saturating_sub(1)).unwrap_or(0));
    let total = |widths: &[u16]| widths.iter().fold(gaps, |sum, width| sum.saturating_add(*width));
    while room < total(&widths) {
        let shrinkable = widths
            .iter()
            .zip(columns)
            .enumerate()
            .filter(|(_, (width, column))| column.least.is_some_and(|least| least < **width));
        let Some((at, _)) = shrinkable.max_by_key(|(_, (width, _))| **width) else { break };
        widths[at] -= 1;
    }
    widths
}

/// Columns from which on there is room for the two ends of a flow, and for its type.
const WIDE: u16 = 120;
const WIDER: u16 = 160;

fn flow_table(top: &Top, width: u16) -> (Vec<Column>, Vec<Vec<table::Cell>>) {
    let is_sorted = |column| top.flow_column == column;
    let mut columns = vec![Column::name("TOPIC", is_sorted(FlowColumn::Topic))];
    if WIDER <= width {
        columns.push(Column::name("TYPE", false));
    }
    if WIDE <= width {
        columns.extend(["FROM", "TO"].map(|it| Column::name(it, false)));
    }
    columns.extend([
        Column::whole("TRANSPORT", is_sorted(FlowColumn::Transport)),
        Column::number("RATE", is_sorted(FlowColumn::Rate)),
        Column::number("BYTES/S", is_sorted(FlowColumn::Bytes)),
        Column::number("MEDIAN µs", is_sorted(FlowColumn::Median)),
        Column::number("P99 µs", is_sorted(FlowColumn::P99)),
        Column::number("DROPS", is_sorted(FlowColumn::Drops)),
    ]);
    let row = |flow: &&RouteReport| {
        let mut cells: Vec<table::Cell> = vec![routes::name(flow).into()];
        if WIDER <= width {
            cells.push(flow.type_name.clone().into());
        }
        if WIDE <= width {
            cells.extend([&flow.publisher, &flow.subscription].map(|it| routes::end(it).into()));
        }
        cells.push(routes::transport(flow));
        cells.extend(routes::measured(flow));
        cells
    };
    (columns, top.flows().iter().map(row).collect())
}

fn process_table(top: &Top) -> (Vec<Column>, Vec<Vec<table::Cell>>) {
    let is_sorted = |column| top.process_column == column;
    let columns = vec![
        Column::name("PROGRAM", is_sorted(ProcessColumn::Program)),
        Column::number("PID", is_sorted(ProcessColumn::Pid)),
        Column::name("HOST", is_sorted(ProcessColumn::Host)),
        Column::number("THREADS", is_sorted(ProcessColumn::Threads)),
        Column::number("MEMORY", is_sorted(ProcessColumn::Memory)),
        Column::whole("TRANSPORTS", false),
    ];
    let row = |it: &&ProcessEngines| {
        let running = it.engines.iter().filter(|it| is_at_work(it.state));
        let running: Vec<&str> = running.map(|it| &*it.transport).collect();
        vec![
            it.process.program.clone().into(),
            it.process.pid.to_string().into(),
            it.process.host.clone().into(),
            it.threads.to_string().into(),
            figures::bytes(it.resident_bytes).into(),
            table::Cell::new(running.join(" "), Colour::Name),
        ]
    };
    (columns, top.processes().iter().map(row).collect())
}

fn why_empty(top: &Top) -> String {
    if !top.has_looked() {
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

fn draw_details(top: &mut Top, look: Looks, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let lines = match top.page {
        Page::Flows => top.chosen_flow().map(|it| flow_details(top, it, look, width)),
        Page::Processes => {
            let at = top.chosen();
            at.and_then(|at| top.processes().get(at).map(|it| process_details(it, look, width)))
        }
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
        (Details::All, rest) => format!("─ {} below ─", counted(rest, "line", "lines")),
        (_, _) => "─ Enter shows more ─".to_owned(),
    };
    let block = Block::new()
        .borders(ratatui::widgets::Borders::TOP)
        .border_style(look.style(Colour::Dim))
        .title_top(Line::from(look.span(Colour::Dim, title)).right_aligned());
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top.scrolled).take(room).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// A title and a text, which takes several lines where there is little room.
fn told(look: Looks, title: &str, text: &str, width: usize) -> Vec<Line<'static>> {
    let parts = wrapped(&escaped(text, ""), width.saturating_sub(TITLE).max(1));
    let lines = parts.into_iter().enumerate().map(|(at, part)| {
        let title = if at == 0 { title } else { "" };
        Line::from(vec![look.span(Colour::Dim, format!("{title:<TITLE$}")), Span::raw(part)])
    });
    lines.collect()
}

fn flow_details(top: &Top, flow: &RouteReport, look: Looks, width: usize) -> Vec<Line<'static>> {
    let RouteReport { size, scope, reliability, .. } = flow;
    let ends = format!("{} → {}", routes::end(&flow.publisher), routes::end(&flow.subscription));
    let name = format!("{}  {}", routes::name(flow), flow.type_name);
    let name = shorten_end(&escaped(&name, ""), width);
    let mut lines = vec![Line::from(look.span(Colour::Strong, name))];
    lines.extend(told(look, "from, to", &ends, width));
    lines.extend(told(look, "traits", &format!("{size}, {scope}, {reliability}"), width));
    let all = routes::told(flow);
    let (first, rest): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(title, _)| matches!(*title, "because" | "set" | "mismatch"));
    for (title, text) in first {
        lines.extend(told(look, title, &text, width));
    }
    lines.extend(trends(top, flow, look, width));
    let now_ns = clock::wall_ns();
    for (at, change) in flow.changes.iter().rev().enumerate() {
        let title = if at == 0 { "history" } else { "" };
        lines.extend(told(look, title, &history::told_whole(change, now_ns), width));
    }
    for (title, text) in rest {
        lines.extend(told(look, title, &text, width));
    }
    lines
}

/// Rate and latency of the last looks, as bars.
fn trends(top: &Top, flow: &RouteReport, look: Looks, width: usize) -> Vec<Line<'static>> {
    if !routes::tells(&flow.subscription) {
        return Vec::new();
    }
    let (rates, medians): (Vec<f64>, Vec<f64>) = top.trend(flow).unzip();
    let line = |title: &str, values: &[f64], tell: &dyn Fn(f64) -> String| {
        let now = values.last().copied().unwrap_or(0.0);
        let most = values.iter().copied().fold(0.0, f64::max);
        let text = format!("{}, {} at most", tell(now), tell(most));
        let room = width.saturating_sub(TITLE + 2 + text.chars().count());
        let newest = &values[values.len().saturating_sub(room)..];
        Line::from(vec![
            look.span(Colour::Dim, format!("{title:<TITLE$}")),
            look.span(Colour::Good, bars(newest, most)),
            Span::raw(format!("  {text}")),
        ])
    };
    vec![
        line("rate", &rates, &figures::rate),
        line("median", &medians, &|it| format!("{} µs", figures::micros(it))),
    ]
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

fn process_details(it: &ProcessEngines, look: Looks, width: usize) -> Vec<Line<'static>> {
    let process = &it.process;
    let title = format!(
        "{} {} on {}: {} threads, {} resident, {} of address space",
        process.program,
        process.pid,
        process.host,
        it.threads,
        figures::bytes(it.resident_bytes),
        figures::bytes(it.virtual_bytes)
    );
    let title = shorten_end(&escaped(&title, ""), width);
    let mut lines = vec![Line::from(look.span(Colour::Strong, title))];
    let (at_work, not): (Vec<_>, Vec<_>) = it.engines.iter().partition(|it| is_at_work(it.state));
    for engine in at_work.into_iter().chain(not) {
        lines.extend(told(look, &engine.transport, &engine_told(engine), width));
        for more in engines::details(engine) {
            lines.extend(told(look, "", &more, width));
        }
    }
    lines
}

fn engine_told(engine: &EngineReport) -> String {
    let mut text = engine.state.to_string();
    if let Some(since) = engine.since_wall_ns {
        text += &format!(" since {}", figures::time(since, clock::wall_ns()));
    }
    if engine.state == EngineState::Running {
        let threads = counted(engine.threads.len(), "thread", "threads");
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
    let block = Block::bordered().title(title).padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_choice(choice: &Choice, look: Looks, frame: &mut Frame<'_>) {
    let room = usize::from(frame.area().width).saturating_sub(4);
    let name = |transport: &Option<String>| transport.clone().unwrap_or_else(|| "auto".to_owned());
    let widest = choice.offered.iter().map(|(it, _)| name(it).chars().count()).max().unwrap_or(0);
    let lines = choice.offered.iter().enumerate().map(|(at, (transport, reason))| {
        let text = format!("{:<widest$}  {reason}", name(transport));
        let text = shorten_end(&escaped(&text, ""), room);
        match at == choice.at {
            true => Line::styled(text, Style::new().add_modifier(Modifier::REVERSED)),
            false => Line::styled(text, look.style(Colour::Plain)),
        }
    });
    let title = format!(" {}: Enter sets, Esc leaves it ", choice.topic);
    draw_box(lines.collect(), title, choice.at, frame);
}

fn draw_help(look: Looks, frame: &mut Frame<'_>) {
    let lines = KEYS.iter().map(|(keys, text)| {
        Line::from(vec![look.span(Colour::Strong, format!("{keys:<15}")), Span::raw(*text)])
    });
    draw_box(lines.collect(), " keys ".to_owned(), 0, frame);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::super::fixture::{flow, look, process};
    use super::super::watcher::News;
    use super::*;

    fn top(flows: Vec<RouteReport>) -> Top {
        let mut top = Top::new(None, Duration::from_secs(1), FlowColumn::Topic);
        top.learn(News::Look(look(flows)), Instant::now());
        top
    }

    fn press(top: &mut Top, code: KeyCode) {
        top.press(KeyEvent::new(code, KeyModifiers::NONE));
    }

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
    fn no_size_is_too_small_and_no_page_breaks() {
        let mut long = flow(&format!("/{}", "name/".repeat(60)), 1);
        long.because = "word ".repeat(200);
        let flows: Vec<_> = (0..50).map(|it| flow(&format!("/t{it}"), it)).chain([long]).collect();
        for flows in [Vec::new(), flows] {
            let mut top = top(flows.clone());
            let mut seen = look(flows);
            seen.processes = Some((0..30).map(|it| process("tsuji", it)).collect());
            for key in ['t', 'q', '?', 'x', '/', 'y'].map(KeyCode::Char).into_iter().chain([
                KeyCode::Esc,
                KeyCode::Enter,
                KeyCode::End,
                KeyCode::Enter,
                KeyCode::End,
                KeyCode::Tab,
                KeyCode::Enter,
                KeyCode::End,
                KeyCode::Enter,
            ]) {
                press(&mut top, key);
                seen = match top.page {
                    Page::Flows => seen,
                    Page::Processes => {
                        let look = look(seen.flows.clone());
                        let processes = seen.processes.clone();
                        top.learn(News::Look(seen), Instant::now());
                        super::super::watcher::Look { processes, ..look }
                    }
                };
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
        press(&mut top, KeyCode::End);
        let lines = screen(&mut top, 80, 24);
        assert!(lines.iter().any(|it| it.starts_with("/t49 ")), "{lines:#?}");
        press(&mut top, KeyCode::Enter);
        press(&mut top, KeyCode::End);
        let lines = screen(&mut top, 80, 10);
        assert_eq!(lines[8], "route     number 1 of this flow", "{lines:#?}");
        press(&mut top, KeyCode::Home);
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
        for key in [KeyCode::Enter, KeyCode::Char('t')] {
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
