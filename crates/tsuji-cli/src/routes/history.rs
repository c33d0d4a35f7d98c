//! The transports that flows have had.

use tsuji::{RouteChange, RouteReport};
use tsuji_platform::clock;

use super::{Args, end, name};
use crate::figures;
use crate::output::{Colour, Paint};
use crate::table::{Cell, Column, Table, shorten_end, wrapped};

/// Changes that `--watch` shows.
const RECENT_NS: i64 = 10_000_000_000;
/// Of one flow.
const RECENT_MAX: usize = 3;

/// Each flow, and below it its transports.
pub(super) fn lines(
    args: &Args,
    routes: &[RouteReport],
    width: Option<usize>,
    paint: Paint,
) -> Vec<String> {
    if routes.is_empty() {
        return super::lines(args, routes, width, paint);
    }
    let mut lines = Vec::new();
    for route in routes {
        let ends = format!("{} → {}", end(&route.publisher), end(&route.subscription));
        let title = format!("{}  {ends}", name(route));
        let title = width.map_or_else(|| title.clone(), |width| shorten_end(&title, width));
        lines.push(paint.text(Colour::Strong, title));
        if route.changes.is_empty() {
            lines.push(paint.text(Colour::Dim, "  no transport yet"));
            continue;
        }
        lines.extend(changes(&route.changes, width, paint));
    }
    lines
}

fn changes(changes: &[RouteChange], width: Option<usize>, paint: Paint) -> Vec<String> {
    let room = width.map(|width| width.saturating_sub(INDENT.len()));
    let whole = table(changes, true);
    let fits = room.is_none_or(|room| whole.natural_width() <= room);
    let table = if fits { whole } else { table(changes, false) };
    let mut printed = table.lines(room, paint).into_iter();
    let mut lines: Vec<String> = printed.next().into_iter().collect();
    for (line, change) in printed.zip(changes) {
        lines.push(line);
        if !fits {
            let room = room.unwrap_or(usize::MAX).saturating_sub(INDENT.len());
            let why = wrapped(&change.why, room).into_iter();
            lines.extend(why.map(|it| paint.text(Colour::Dim, format_args!("{INDENT}{it}"))));
        }
    }
    lines.into_iter().map(|line| format!("{INDENT}{line}")).collect()
}

fn table(changes: &[RouteChange], with_why: bool) -> Table {
    let mut columns = vec![
        Column::whole("SINCE"),
        Column::whole("FROM"),
        Column::whole("TO"),
        Column::number("OPENED IN"),
        Column::number("SETTLED IN"),
        Column::number("HELD"),
    ];
    columns.extend(with_why.then(|| Column::whole("WHY")));
    let mut table = Table::new(&columns);
    let now_ns = clock::wall_ns();
    for change in changes {
        let of_old = |text: String| match (&change.from, change.is_settled) {
            (None, _) => "-".to_owned(),
            (Some(_), true) => text,
            (Some(_), false) => "…".to_owned(),
        };
        let mut cells: Vec<Cell> = vec![
            figures::time(change.wall_ns, now_ns).into(),
            change.from.clone().unwrap_or_else(|| "-".to_owned()).into(),
            Cell::new(&change.to, Colour::Name),
            figures::duration(change.opening_us).into(),
            of_old(figures::duration(change.settling_us)).into(),
            of_old(change.held.to_string()).into(),
        ];
        cells.extend(with_why.then(|| Cell::new(&change.why, Colour::Dim)));
        table.row(cells);
    }
    table
}

const INDENT: &str = "  ";

/// What has happened to a flow a moment ago, beside its beginning.
pub(super) fn recent(route: &RouteReport, width: Option<usize>, paint: Paint) -> Vec<String> {
    let now_ns = clock::wall_ns();
    let is_recent = |it: &&RouteChange| {
        now_ns.saturating_sub(it.wall_ns) < RECENT_NS && (it.from.is_some() || it.epoch > 1)
    };
    let recent: Vec<&RouteChange> = route.changes.iter().filter(is_recent).collect();
    let newest = recent.into_iter().rev().take(RECENT_MAX).rev();
    let line = |it: &RouteChange| {
        let line = format!("  {}", change_text(it, now_ns));
        paint.text(
            Colour::Dim,
            width.map_or_else(|| line.clone(), |width| shorten_end(&line, width)),
        )
    };
    newest.map(line).collect()
}

/// When a change was, from what to what, why, and how it went.
pub(crate) fn change_text(change: &RouteChange, now_ns: i64) -> String {
    let RouteChange { to, why, held, .. } = change;
    let from = change.from.as_deref().unwrap_or("none");
    let time = figures::time(change.wall_ns, now_ns);
    let took = figures::duration(change.opening_us + change.settling_us);
    let progress = match (&change.from, change.is_settled) {
        (_, true) => format!("took {took}, {held} held"),
        (None, false) => format!("took {took}"),
        (Some(_), false) => "the old transport is not empty yet".to_owned(),
    };
    format!("{time}  {from} → {to}: {why}; {progress}")
}

/// How a change went that is over.
pub(crate) fn told(change: &RouteChange) -> String {
    let opened = figures::duration(change.opening_us);
    if change.from.is_none() {
        return format!("opened in {opened}");
    }
    let settled = figures::duration(change.settling_us);
    format!("opened in {opened}, settled in {settled}, {} held", change.held)
}
