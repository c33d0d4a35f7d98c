//! What carries the samples in each process, and what it takes.

use tsuji::{EngineReport, EngineState, ProcessEngines};
use tsuji_platform::clock;

use super::ANSWER;
use crate::figures;
use crate::output::{Colour, Output, Paint};
use crate::session::Session;
use crate::table::{Cell, Column, Table, shorten_end};

pub(super) fn run(json: bool, session: &Session, out: &mut Output) -> anyhow::Result<()> {
    let token = session.context.token();
    let mut all = session.context.engines(ANSWER)?;
    // This command is there for a moment only.
    all.retain(|it| it.process.token != token);
    if json {
        return Ok(out.lines(serde_json::to_string_pretty(&all)?)?);
    }
    let lines = lines(&all, out.columns(), out.paint);
    Ok(lines.into_iter().try_for_each(|line| out.line(line))?)
}

/// Each process, and below it its transports.
fn lines(all: &[ProcessEngines], width: Option<usize>, paint: Paint) -> Vec<String> {
    if all.is_empty() {
        return vec!["No process of tsuji is in this domain.".to_owned()];
    }
    let room = width.map(|width| width.saturating_sub(INDENT.len()));
    let mut lines = Vec::new();
    for process in all {
        let title = title(process);
        let title = width.map_or_else(|| title.clone(), |width| shorten_end(&title, width));
        lines.push(paint.text(Colour::Strong, title));
        let whole = table(&process.engines, true);
        let fits = room.is_none_or(|room| whole.natural_width() <= room + SHORTENED_MAX);
        let table = if fits { whole } else { table(&process.engines, false) };
        let table = table.lines(room, paint).into_iter();
        lines.extend(table.map(|line| format!("{INDENT}{line}")));
        for engine in &process.engines {
            let because = (!fits).then(|| engine.because.clone());
            lines.extend(because.into_iter().chain(details(engine)).map(|it| {
                let line = format!("{INDENT}{}: {it}", engine.transport);
                let line = width.map_or_else(|| line.clone(), |width| shorten_end(&line, width));
                paint.text(Colour::Dim, line)
            }));
        }
    }
    lines
}

const INDENT: &str = "  ";

/// Characters that may be left out before the reasons stand below the table.
const SHORTENED_MAX: usize = 20;

pub(crate) fn title(it: &ProcessEngines) -> String {
    let process = &it.process;
    format!(
        "{} {} on {}: {} threads, {} resident, {} of address space",
        process.program,
        process.pid,
        process.host,
        it.threads,
        figures::bytes(it.resident_bytes),
        figures::bytes(it.virtual_bytes)
    )
}

fn table(engines: &[EngineReport], with_because: bool) -> Table {
    let mut columns = vec![
        Column::whole("TRANSPORT"),
        Column::whole("STATE"),
        Column::whole("SINCE"),
        Column::number("THREADS"),
        Column::number("MEMORY"),
        Column::number("USED BY"),
    ];
    if with_because {
        columns.push(Column::sentence("BECAUSE", 24));
    }
    let mut table = Table::new(&columns);
    let now_ns = clock::wall_ns();
    for engine in engines {
        let since = engine.since_wall_ns.map(|it| figures::time(it, now_ns));
        let runs = engine.state == EngineState::Running;
        let shown = |text: String| if runs { text } else { "-".to_owned() };
        let colour = match engine.state {
            state if state.is_at_work() => Colour::Name,
            EngineState::Failed => Colour::Warning,
            _ => Colour::Dim,
        };
        let mut cells: Vec<Cell> = vec![
            Cell::new(&engine.transport, colour),
            Cell::new(engine.state.to_string(), colour),
            since.unwrap_or_else(|| "-".to_owned()).into(),
            shown(engine.threads.len().to_string()).into(),
            shown(memory(engine)).into(),
            shown(engine.users.to_string()).into(),
        ];
        if with_because {
            cells.push(Cell::new(&engine.because, Colour::Dim));
        }
        table.row(cells);
    }
    table
}

pub(crate) fn memory(engine: &EngineReport) -> String {
    let Some(grown) = engine.resident_bytes else { return "-".to_owned() };
    let mark = if engine.is_shared { "~" } else { "" };
    format!("{mark}{}", figures::bytes(grown.max(0).unsigned_abs()))
}

/// What is loaded, and how its threads are called.
pub(crate) fn details(engine: &EngineReport) -> impl Iterator<Item = String> {
    let loaded = engine.library.as_ref().map(|file| {
        let version = engine.version.as_deref().unwrap_or("its version is known when it is loaded");
        let is_loaded = if engine.is_loaded { "loaded" } else { "not loaded" };
        format!("{file}, {is_loaded} ({version})")
    });
    let built_in = || {
        let runs = engine.state == EngineState::Running;
        engine.version.as_ref().filter(|_| runs).map(|it| format!("{it}, a part of the program"))
    };
    let threads =
        (!engine.threads.is_empty()).then(|| format!("threads {}", counted(&engine.threads)));
    loaded.or_else(built_in).into_iter().chain(threads)
}

/// Sorted names, each once with how many are called so.
fn counted(names: &[String]) -> String {
    let runs = names.chunk_by(|a, b| a == b);
    let counted = runs.map(|run| match run.len() {
        1 => run[0].clone(),
        count => format!("{} ×{count}", run[0]),
    });
    counted.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_name_are_counted() {
        let names = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(counted(&names(&["fastdds", "fastdds", "gc"])), "fastdds ×2, gc");
        assert_eq!(counted(&[]), "");
    }

    #[test]
    fn memory_says_whether_it_is_another_engines_too() {
        let check = |resident_bytes, is_shared, expect: &str| {
            let it = EngineReport { resident_bytes, is_shared, ..EngineReport::default() };
            assert_eq!(memory(&it), expect);
        };
        check(Some(1_500_000), false, "1.5 MB");
        check(Some(1_500_000), true, "~1.5 MB");
        check(Some(-5), false, "0 B");
        check(None, false, "-");
    }
}
