//! What the commands that measure a topic have in common: the loop, the figures, the flags.

use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tsuji::RawSample;

use super::listener::Listener;
use crate::output::Output;
use crate::session::Session;

/// How often a summary is printed.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// What is made of samples.
pub(super) trait Meter {
    /// Whether there is nothing to say between samples but that none came.
    const ONLY_OF_NEWS: bool;

    /// Takes in a sample. Answers whether it counts.
    fn arrived(&mut self, sample: &RawSample) -> anyhow::Result<bool>;

    /// What is to be printed; `None` while there are too few samples.
    fn summary(&self) -> Option<Summary>;
}

/// Figures at one moment.
#[derive(Debug)]
pub(super) struct Summary {
    /// In the words of `ros2`.
    pub(super) text: String,
    /// The same for programs.
    pub(super) json: Json,
}

/// Measures until the command is to end.
pub(super) fn run<M: Meter>(
    meter: &mut M,
    session: &Session,
    listener: &mut Listener,
    json: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut next = Instant::now() + PERIOD;
    let (mut has_news, mut has_spoken) = (false, false);
    while session.context.is_ok() {
        listener.wait(next.saturating_duration_since(Instant::now()))?;
        while let Some(sample) = listener.take() {
            has_news |= meter.arrived(&sample)?;
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + PERIOD;
        if has_news || !M::ONLY_OF_NEWS {
            has_spoken |= has_news;
            print(meter, json, out)?;
        } else if has_spoken && !json {
            out.line("no new messages")?;
        }
        has_news = false;
        out.flush()?;
    }
    if has_news && M::ONLY_OF_NEWS {
        print(meter, json, out)?;
    }
    Ok(())
}

fn print(meter: &impl Meter, json: bool, out: &mut Output) -> anyhow::Result<()> {
    match meter.summary() {
        Some(summary) if json => out.line(summary.json)?,
        Some(summary) => out.line(summary.text)?,
        None => {}
    }
    Ok(())
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

impl Figures {
    /// What follows the mean, in the words of `ros2`.
    pub(super) fn spread(&self) -> String {
        let Self { min, max, deviation, count, .. } = self;
        format!("\tmin: {min:.3}s max: {max:.3}s std dev: {deviation:.5}s window: {count}")
    }
}
