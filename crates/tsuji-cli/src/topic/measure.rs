//! What the commands that measure topics have in common: the loop, the figures, the flags.

use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tsuji::{Graph, MessageInfo, RawSample};

use super::listener::{Listener, received_wall_ns};
use crate::completions;
use crate::output::{self, Output};
use crate::session::{Session, SimulatedTime, is_hidden};
use crate::table::{Column, Table};

/// How often a summary is printed.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// Which topics are measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Topics {
    /// The topics
    #[arg(value_name = "TOPIC", required_unless_present = "all", value_parser = super::full_name, add = completions::topics())]
    topics: Vec<String>,
    /// Measure all topics that are published now
    #[arg(short, long, conflicts_with = "topics")]
    all: bool,
}

impl Topics {
    /// Whether they are all that there are, of which not each can be measured.
    pub(super) fn are_all(&self) -> bool {
        self.all
    }

    /// Their names, each once.
    pub(super) fn names(&self, graph: &Graph) -> anyhow::Result<Vec<String>> {
        let mut names = self.topics.clone();
        if self.all {
            names = graph.endpoints.iter().map(|it| it.topic.clone()).collect();
            names.retain(|it| !is_hidden(it) && super::is_published(graph, it));
            names.sort();
            if names.is_empty() {
                anyhow::bail!("no topic is published; `tsuji topic list` shows what is there");
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|it| seen.insert(it.clone()));
        Ok(names)
    }
}

/// By which clock is measured.
#[derive(Debug)]
pub(super) enum By {
    /// This machine's.
    Machine,
    /// What `/clock` tells.
    Simulation(SimulatedTime),
}

impl By {
    pub(super) fn new(session: &Session, use_sim_time: bool) -> anyhow::Result<Self> {
        Ok(match use_sim_time {
            true => Self::Simulation(session.simulated_time()?),
            false => Self::Machine,
        })
    }

    /// When a sample came, on a clock that nobody sets; `None` while the simulation has not begun.
    pub(super) fn arrival_ns(&self, info: &MessageInfo) -> Option<i64> {
        match self {
            Self::Machine => Some(i64::try_from(info.received_mono_ns).unwrap_or(i64::MAX)),
            Self::Simulation(time) => Some(time.now_ns()).filter(|it| *it != 0),
        }
    }

    /// The same on the clock by which publishers stamp.
    pub(super) fn stamp_ns(&self, info: &MessageInfo) -> Option<i64> {
        match self {
            Self::Machine => Some(received_wall_ns(info)),
            Self::Simulation(_) => self.arrival_ns(info),
        }
    }

    /// The time now, on the clock of [`By::arrival_ns`].
    pub(super) fn now_ns(&self) -> Option<i64> {
        match self {
            Self::Machine => {
                Some(i64::try_from(tsuji_platform::clock::monotonic_ns()).unwrap_or(i64::MAX))
            }
            Self::Simulation(time) => Some(time.now_ns()).filter(|it| *it != 0),
        }
    }
}

/// What is made of the samples of one topic.
pub(super) trait Meter {
    /// Whether there is nothing to say between samples but that none came.
    const ONLY_OF_NEWS: bool;

    /// The columns where several topics are measured, behind their names.
    const COLUMNS: &'static [Column];

    /// Takes in a sample. Answers whether it counts.
    fn arrived(&mut self, sample: &RawSample, by: &By) -> anyhow::Result<bool>;

    /// What is to be printed; `None` while there are too few samples.
    fn summary(&mut self, by: &By) -> Option<Summary>;
}

/// Figures at one moment.
#[derive(Debug)]
pub(super) struct Summary {
    /// In the words of `ros2`.
    pub(super) text: String,
    /// The same in the columns of a table.
    pub(super) cells: Vec<String>,
    /// The same for programs.
    pub(super) json: Json,
}

/// A topic that is measured.
pub(super) struct Measured<M> {
    pub(super) topic: String,
    pub(super) meter: M,
    has_news: bool,
    has_spoken: bool,
}

impl<M> Measured<M> {
    pub(super) fn new(topic: String, meter: M) -> Self {
        Self { topic, meter, has_news: false, has_spoken: false }
    }
}

/// Says which topics are subscribed to, where they are several, in the words of `ros2`.
pub(super) fn tell_subscribed<M>(
    measured: &[Measured<M>],
    json: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    if 1 < measured.len() && !json {
        for it in measured {
            out.line(format_args!("Subscribed to [{}]", it.topic))?;
        }
    }
    Ok(out.flush()?)
}

/// Measures until the command is to end. `measured` are in the order in which they were subscribed to.
pub(super) fn run<M: Meter>(
    mut measured: Vec<Measured<M>>,
    by: &By,
    session: &Session,
    listener: &mut Listener,
    json: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut next = Instant::now() + PERIOD;
    while session.context.is_ok() {
        listener.wait(next.saturating_duration_since(Instant::now()))?;
        while let Some((number, sample)) = listener.take_numbered() {
            if let Some(it) = measured.get_mut(number) {
                it.has_news |= it.meter.arrived(&sample, by)?;
            }
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + PERIOD;
        print(&mut measured, by, json, true, out)?;
        out.flush()?;
    }
    if M::ONLY_OF_NEWS && measured.iter().any(|it| it.has_news) {
        print(&mut measured, by, json, false, out)?;
    }
    Ok(())
}

/// Prints what is new. `tells_silence` says that nothing came.
fn print<M: Meter>(
    measured: &mut [Measured<M>],
    by: &By,
    json: bool,
    tells_silence: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let is_one = measured.len() == 1;
    let mut rows = Vec::new();
    for it in measured {
        let has_news = std::mem::take(&mut it.has_news);
        if !has_news && M::ONLY_OF_NEWS {
            if is_one && it.has_spoken && tells_silence && !json {
                out.line("no new messages")?;
            }
            continue;
        }
        it.has_spoken |= has_news;
        let Some(mut summary) = it.meter.summary(by) else { continue };
        match (json, is_one) {
            (true, _) => {
                if let (false, Json::Object(object)) = (is_one, &mut summary.json) {
                    object.insert("topic".to_owned(), it.topic.as_str().into());
                }
                out.line(summary.json)?;
            }
            (false, true) => out.lines(summary.text)?,
            (false, false) => rows.push((it.topic.clone(), summary.cells)),
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let columns: Vec<Column> =
        [Column::name("topic", 16)].iter().chain(M::COLUMNS).copied().collect();
    let mut table = Table::new(&columns);
    for (topic, cells) in rows {
        table.row([topic].into_iter().chain(cells).map(Into::into).collect());
    }
    let lines = table.lines(out.columns(), out.paint);
    lines.into_iter().try_for_each(|it| out.line(it))?;
    Ok(out.line("")?)
}

/// Says that time went back, in the words of `ros2`.
pub(super) fn tell_reset() {
    output::warning("time has reset, resetting counters");
}

/// The last times that were measured. When there are more than it is for, the oldest go.
#[derive(Debug)]
pub(super) struct Times {
    size: usize,
    ns: VecDeque<i64>,
}

/// What is said of some times, in seconds.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) deviation: f64,
    pub(super) count: usize,
}

impl Times {
    pub(super) fn new(size: u32) -> Self {
        Self { size: size as usize, ns: VecDeque::new() }
    }

    pub(super) fn push(&mut self, ns: i64) {
        self.ns.push_back(ns);
        if self.ns.len() > self.size {
            self.ns.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.ns.clear();
    }

    pub(super) fn figures(&self) -> Option<Figures> {
        let seconds = || self.ns.iter().map(|it| *it as f64 / 1e9);
        let min = *self.ns.iter().min()? as f64 / 1e9;
        let max = *self.ns.iter().max()? as f64 / 1e9;
        let count = self.ns.len() as f64;
        let mean = seconds().sum::<f64>() / count;
        let deviation = (seconds().map(|it| (it - mean).powi(2)).sum::<f64>() / count).sqrt();
        Some(Figures { mean, min, max, deviation, count: self.ns.len() })
    }
}

/// The columns of [`Figures::cells`], behind the mean.
pub(super) const SPREAD: [Column; 4] = [
    Column::number("min_delta"),
    Column::number("max_delta"),
    Column::number("std_dev"),
    Column::number("window"),
];

impl Figures {
    /// What follows the mean, in the words of `ros2`.
    pub(super) fn spread(&self) -> String {
        let Self { min, max, deviation, count, .. } = self;
        format!("\tmin: {min:.3}s max: {max:.3}s std dev: {deviation:.5}s window: {count}")
    }

    /// The same in the columns of [`SPREAD`], behind the mean.
    pub(super) fn cells(&self, mean: f64) -> Vec<String> {
        let Self { min, max, deviation, count, .. } = self;
        vec![
            format!("{mean:.3}"),
            format!("{min:.3}"),
            format!("{max:.3}"),
            format!("{deviation:.5}"),
            count.to_string(),
        ]
    }
}
