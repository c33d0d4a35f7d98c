//! `tsuji topic bw`.

use std::collections::VecDeque;
use std::io::Write;

use serde_json::json;
use tsuji::{RawSample, RawType};

use super::listener::{Listener, type_to_measure};
use super::measure::{self, By, Measured, Meter, Summary, Topics};
use crate::output::{self, Output};
use crate::session::{Globals, Session};
use crate::table::Column;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    topics: Topics,
    /// The most messages that the average is over
    #[arg(short, long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    window: u32,
    /// Print each summary as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(
    args: &Args,
    globals: &Globals,
    use_sim_time: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let by = By::new(&session, use_sim_time)?;
    let mut listener = Listener::of_nothing(&session, &session.hidden_node()?)?;
    let mut measured = Vec::new();
    for topic in args.topics.names(&session.graph())? {
        let Some(name) = type_to_measure(&session, &topic)? else { return Ok(()) };
        // Any version of the type will do.
        listener.measure(&topic, RawType::new(name))?;
        if !args.json {
            out.line(format_args!("Subscribed to [{topic}]"))?;
            out.flush()?;
        }
        let meter = Bandwidth { size: args.window as usize, window: VecDeque::new() };
        measured.push(Measured::new(topic, meter));
    }
    measure::run(measured, &by, &session, &mut listener, args.json, out)
}

/// When the last messages came, and their bytes. When there are more than `size`, the oldest go.
struct Bandwidth {
    size: usize,
    window: VecDeque<(i64, usize)>,
}

impl Meter for Bandwidth {
    // While nothing comes, the bandwidth falls.
    const ONLY_OF_NEWS: bool = false;
    const COLUMNS: &'static [Column] = &[
        Column::number("bandwidth"),
        Column::number("mean"),
        Column::number("min"),
        Column::number("max"),
        Column::number("window"),
    ];

    fn arrived(&mut self, sample: &RawSample, by: &By) -> anyhow::Result<bool> {
        let Some(at_ns) = by.arrival_ns(&sample.info) else { return Ok(false) };
        self.window.push_back((at_ns, sample.bytes.len()));
        if self.window.len() > self.size {
            self.window.pop_front();
        }
        Ok(true)
    }

    fn summary(&mut self, by: &By) -> Option<Summary> {
        let now_ns = by.now_ns()?;
        if self.window.front().is_some_and(|(first, _)| now_ns < *first) {
            output::warning("time is reset!");
            self.window.clear();
        }
        summary(&self.window, now_ns)
    }
}

/// `None` before the second message.
fn summary(window: &VecDeque<(i64, usize)>, now_ns: i64) -> Option<Summary> {
    let sizes = || window.iter().map(|(_, size)| *size as f64);
    let (first, _) = window.front().filter(|_| 1 < window.len())?;
    let seconds = (now_ns.saturating_sub(*first) as f64 / 1e9).max(1e-9);
    let total: f64 = sizes().sum();
    let (min, max) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let (per_second, mean) = (total / seconds, total / window.len() as f64);
    let text = |value: f64| match per_second {
        it if it < 1e3 => format!("{value:.0} B"),
        it if it < 1e6 => format!("{:.2} KB", value / 1e3),
        _ => format!("{:.2} MB", value / 1e6),
    };
    let count = window.len().to_string();
    Some(Summary {
        text: format!(
            "{}/s from {count} messages\n\tMessage size mean: {} min: {} max: {}",
            text(per_second),
            text(mean),
            text(min),
            text(max)
        ),
        cells: vec![format!("{}/s", text(per_second)), text(mean), text(min), text(max), count],
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
        let window = VecDeque::from([(0, 1000), (0, 3000)]);
        assert_eq!(
            summary(&window, 1_000_000_000).unwrap().text,
            "4.00 KB/s from 2 messages\n\tMessage size mean: 2.00 KB min: 1.00 KB max: 3.00 KB"
        );
        assert!(summary(&VecDeque::from([(0, 1)]), 0).is_none());
    }
}
