//! `tsuji topic bw`.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Instant;

use serde_json::json;
use tsuji::RawSample;

use super::listener::Listener;
use super::measure::{self, Meter, Summary};
use crate::completions;
use crate::output::Output;
use crate::session::{Globals, Session};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name, add = completions::topics())]
    topic: String,
    /// The most messages that the average is over
    #[arg(short, long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    window: u32,
    /// Print each summary as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let Some(mut listener) = Listener::of_any_type(&session, &args.topic)? else { return Ok(()) };
    if !args.json {
        out.line(format_args!("Subscribed to [{}]", args.topic))?;
        out.flush()?;
    }
    let mut meter = Bandwidth { size: args.window as usize, window: VecDeque::new() };
    measure::run(&mut meter, &session, &mut listener, args.json, out)
}

/// When the last messages came, and their bytes. When there are more than `size`, the oldest go.
struct Bandwidth {
    size: usize,
    window: VecDeque<(Instant, usize)>,
}

impl Meter for Bandwidth {
    // While nothing comes, the bandwidth falls.
    const ONLY_OF_NEWS: bool = false;

    fn arrived(&mut self, sample: &RawSample) -> anyhow::Result<bool> {
        self.window.push_back((Instant::now(), sample.bytes.len()));
        if self.window.len() > self.size {
            self.window.pop_front();
        }
        Ok(true)
    }

    fn summary(&self) -> Option<Summary> {
        summary(&self.window, Instant::now())
    }
}

/// `None` before the second message.
fn summary(window: &VecDeque<(Instant, usize)>, now: Instant) -> Option<Summary> {
    let sizes = || window.iter().map(|(_, size)| *size as f64);
    let (first, _) = window.front().filter(|_| 1 < window.len())?;
    let seconds = now.saturating_duration_since(*first).as_secs_f64().max(1e-9);
    let total: f64 = sizes().sum();
    let (min, max) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let (per_second, mean) = (total / seconds, total / window.len() as f64);
    let text = |value: f64| match per_second {
        it if it < 1e3 => format!("{value:.0} B"),
        it if it < 1e6 => format!("{:.2} KB", value / 1e3),
        _ => format!("{:.2} MB", value / 1e6),
    };
    Some(Summary {
        text: format!(
            "{}/s from {} messages\n\tMessage size mean: {} min: {} max: {}",
            text(per_second),
            window.len(),
            text(mean),
            text(min),
            text(max)
        ),
        json: json!({
            "bytes_per_s": per_second,
            "mean_bytes": mean,
            "min_bytes": min,
            "max_bytes": max,
            "window": window.len(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_in_the_unit_that_suits_it() {
        let began = Instant::now();
        let window = VecDeque::from([(began, 1000), (began, 3000)]);
        assert_eq!(
            summary(&window, began + measure::PERIOD).unwrap().text,
            "4.00 KB/s from 2 messages\n\tMessage size mean: 2.00 KB min: 1.00 KB max: 3.00 KB"
        );
        assert!(summary(&VecDeque::from([(began, 1)]), began).is_none());
    }
}
