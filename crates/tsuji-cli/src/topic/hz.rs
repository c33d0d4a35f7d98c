//! `tsuji topic hz`.

use serde_json::json;
use tsuji::RawSample;

use super::listener::Listener;
use super::measure::{self, Meter, Summary, Times};
use crate::completions;
use crate::output::Output;
use crate::session::{Globals, Session};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name, add = completions::topics())]
    topic: String,
    /// The most intervals between messages that the average is over
    #[arg(short, long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    window: u32,
    /// Print each summary as one line of JSON
    #[arg(long)]
    json: bool,
    /// No effect: the rate is always by this machine's clock
    #[arg(long, hide = true)]
    wall_time: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let Some(mut listener) = Listener::of_any_type(&session, &args.topic)? else { return Ok(()) };
    measure::run(&mut Rate::new(args.window), &session, &mut listener, args.json, out)
}

/// The times between the last messages.
struct Rate {
    last_ns: Option<u64>,
    between: Times,
}

impl Rate {
    fn new(window: u32) -> Self {
        Self { last_ns: None, between: Times::new(window) }
    }

    fn arrived_at(&mut self, at_ns: u64) {
        if let Some(last) = self.last_ns.replace(at_ns) {
            self.between.push(i64::try_from(at_ns.saturating_sub(last)).unwrap_or(i64::MAX));
        }
    }
}

impl Meter for Rate {
    const ONLY_OF_NEWS: bool = true;

    fn arrived(&mut self, sample: &RawSample) -> anyhow::Result<bool> {
        self.arrived_at(sample.info.received_mono_ns);
        Ok(true)
    }

    /// `None` before the second message.
    fn summary(&self) -> Option<Summary> {
        let between = self.between.figures()?;
        let rate = if between.mean > 0.0 { 1.0 / between.mean } else { 0.0 };
        Some(Summary {
            text: format!("average rate: {rate:.3}\n{}", between.spread()),
            json: json!({
                "rate_hz": rate,
                "min_s": between.min,
                "max_s": between.max,
                "std_dev_s": between.deviation,
                "window": between.count,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_forgets() {
        let mut rate = Rate::new(2);
        rate.arrived_at(0);
        assert!(rate.summary().is_none());
        for ms in [500_u64, 600, 700] {
            rate.arrived_at(ms * 1_000_000);
        }
        let summary = rate.summary().unwrap();
        let expect = "average rate: 10.000\n\tmin: 0.100s max: 0.100s std dev: 0.00000s window: 2";
        assert_eq!(summary.text, expect);
        assert_eq!((&summary.json["min_s"], &summary.json["window"]), (&json!(0.1), &json!(2)));
    }
}
