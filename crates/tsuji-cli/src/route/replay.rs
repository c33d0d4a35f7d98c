//! `tsuji route replay`: what a process has decided of its flows, decided again from its trace.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value as Json, json};
use tsuji_core::flows::trace::{Entry, replay};
use tsuji_core::flows::{Action, Flows, Note};
use tsuji_platform::clock;

use crate::failure::Told;
use crate::figures::{self, count};
use crate::output::{Colour, Output};
use crate::table::{Cell, Column, Table};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What processes have written that ran with TSUJI_TRACE
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON: what was decided in each trace, and where it differs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, out: &mut Output) -> anyhow::Result<()> {
    let traces = args.files.iter().map(|path| Trace::read(path));
    let traces = traces.collect::<anyhow::Result<Vec<_>>>()?;
    if args.json {
        let traces: Vec<Json> = traces.iter().map(Trace::json).collect();
        out.lines(serde_json::to_string_pretty(&traces)?)?;
    } else {
        traces.iter().try_for_each(|it| it.show(out))?;
    }
    match traces.iter().any(|it| it.difference.is_some()) {
        true => Err(Told(1).into()),
        false => Ok(()),
    }
}

/// What was in a trace.
struct Trace {
    file: String,
    entries: usize,
    notes: Vec<(i64, Note)>,
    /// The flows that there are at its end.
    flows: usize,
    /// Where it is not decided as it was.
    difference: Option<String>,
}

impl Trace {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let file = path.display().to_string();
        let mut lines =
            BufReader::new(File::open(path).with_context(|| file.clone())?).split(b'\n');
        let (mut trouble, mut entries, mut notes) = (None, 0, Vec::new());
        let all = lines.by_ref().enumerate().map_while(|(at, line)| {
            let entry = line.map_err(anyhow::Error::from);
            let entry = entry.and_then(|line| Ok(serde_json::from_slice::<Entry>(&line)?));
            let entry = entry.with_context(|| format!("{file}: line {}", at + 1));
            entry.map_err(|error| trouble = Some(error)).ok()
        });
        let all = all.inspect(|entry| {
            entries += 1;
            if let Entry::Polled { now, action: Some(Action::Log(note)), .. } = entry {
                notes.push((now.wall_ns, note.clone()));
            }
        });
        let replayed = replay(all);
        // The last line of a process that was killed may be cut off.
        let is_last = lines.next().is_none();
        let is_cut_off = |error: &anyhow::Error| {
            let of_json = error.downcast_ref::<serde_json::Error>();
            is_last && of_json.is_some_and(serde_json::Error::is_eof)
        };
        if let Some(error) = trouble.filter(|error| entries == 0 || !is_cut_off(error)) {
            return Err(error);
        }
        let flows = replayed.as_ref().map_or(0, |it: &Flows| it.iter().count());
        let difference = replayed.err().map(|error| error.to_string());
        Ok(Self { file, entries, notes, flows, difference })
    }

    fn show(&self, out: &mut Output) -> anyhow::Result<()> {
        let paint = out.paint;
        let verdict = match &self.difference {
            None => paint.text(Colour::Good, "decided again as it was"),
            Some(_) => paint.text(Colour::Error, "not decided as it was"),
        };
        let entries = count(self.entries, "entry", "entries");
        let flows = count(self.flows, "flow", "flows");
        let title = paint.text(Colour::Strong, &self.file);
        out.line(format_args!("{title}: {entries}, {flows} at the end; {verdict}"))?;
        if let Some(difference) = &self.difference {
            out.line(format_args!("  {difference}"))?;
        }
        let room = out.columns().map(|it| it.saturating_sub(2));
        for line in self.table().lines(room, paint) {
            out.line(format_args!("  {line}"))?;
        }
        Ok(())
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            Column::whole("TIME"),
            Column::name("TOPIC", 12),
            Column::whole("WHAT"),
            Column::sentence("WHY", 20),
        ]);
        let now_ns = clock::wall_ns();
        for (wall_ns, note) in &self.notes {
            let (topic, what, why) = described(note);
            let time = Cell::new(figures::time(*wall_ns, now_ns), Colour::Dim);
            table.row(vec![time, topic.into(), what.into(), Cell::new(why, Colour::Dim)]);
        }
        table
    }

    fn json(&self) -> Json {
        let notes = self.notes.iter().map(|(wall_ns, note)| {
            let (topic, what, why) = described(note);
            json!({ "wall_ns": wall_ns, "topic": topic, "what": what, "why": why })
        });
        json!({
            "file": self.file,
            "entries": self.entries,
            "flows": self.flows,
            "decided": notes.collect::<Vec<_>>(),
            "difference": self.difference,
        })
    }
}

/// Of what topic, what became of it, and why.
fn described(note: &Note) -> (&str, String, &str) {
    match note {
        Note::Chosen { topic, transport, because } => {
            (topic, format!("{transport} chosen"), because)
        }
        Note::NotOpened { transport, reason } => ("", format!("{transport} not to be had"), reason),
        Note::NoRoute { topic, why } => (topic, "no transport".to_owned(), why),
        Note::Changed { topic, from, to, why, .. } => (topic, format!("{from} → {to}"), why),
    }
}
