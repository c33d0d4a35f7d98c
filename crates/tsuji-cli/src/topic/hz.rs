//! `tsuji topic hz`.

use serde_json::json;
use tsuji::{RawSample, RawType};

use super::listener::{Listener, type_to_measure};
use super::measure::{self, By, Measured, Meter, SPREAD, Summary, Times, Topics};
use crate::output::Output;
use crate::session::{Globals, Session};
use crate::table::Column;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    topics: Topics,
    /// The most intervals between messages that the average is over
    #[arg(short, long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    window: u32,
    /// Print each summary as one line of JSON
    #[arg(long)]
    json: bool,
    /// Measure by this machine's clock, also with --use-sim-time
    #[arg(long)]
    wall_time: bool,
    /// Refused: an expression of Python
    #[arg(long, value_name = "EXPRESSION", hide = true, value_parser = super::no_filter)]
    filter: Option<String>,
}

pub(crate) fn run(
    args: &Args,
    globals: &Globals,
    use_sim_time: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let by = By::new(&session, use_sim_time && !args.wall_time)?;
    let mut listener = Listener::of_nothing(&session, &session.hidden_node()?)?;
    let mut measured = Vec::new();
    for topic in args.topics.names(&session.graph())? {
        let Some(name) = type_to_measure(&session, &topic)? else { return Ok(()) };
        // Any version of the type will do.
        listener.measure(&topic, RawType::new(name))?;
        measured.push(Measured::new(topic, Rate::new(args.window)));
    }
    measure::tell_subscribed(&measured, args.json, out)?;
    measure::run(measured, &by, &session, &mut listener, args.json, out)
}

/// The times between the last messages.
struct Rate {
    last_ns: Option<i64>,
    between: Times,
}

impl Rate {
    fn new(window: u32) -> Self {
        Self { last_ns: None, between: Times::new(window) }
    }

    fn arrived_at(&mut self, at_ns: i64) {
        match self.last_ns.replace(at_ns) {
            Some(last) if at_ns < last => {
                measure::tell_reset();
                self.between.clear();
            }
            Some(last) => self.between.push(at_ns.saturating_sub(last)),
            None => (),
        }
    }
}

impl Meter for Rate {
    const ONLY_OF_NEWS: bool = true;
    const COLUMNS: &'static [Column] =
        &[Column::number("rate"), SPREAD[0], SPREAD[1], SPREAD[2], SPREAD[3]];

    fn arrived(&mut self, sample: &RawSample, by: &By) -> anyhow::Result<bool> {
        let at_ns = by.arrival_ns(&sample.info);
        at_ns.into_iter().for_each(|it| self.arrived_at(it));
        Ok(at_ns.is_some())
    }

    /// `None` before the second message.
    fn summary(&mut self, _: &By) -> Option<Summary> {
        let between = self.between.figures()?;
        let rate = if between.mean > 0.0 { 1.0 / between.mean } else { 0.0 };
        Some(Summary {
            text: format!("average rate: {rate:.3}\n{}", between.spread()),
            cells: between.cells(rate),
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
        assert!(rate.summary(&By::Machine).is_none());
        for ms in [500, 600, 700] {
            rate.arrived_at(ms * 1_000_000);
        }
        let summary = rate.summary(&By::Machine).unwrap();
        let expect = "average rate: 10.000\n\tmin: 0.100s max: 0.100s std dev: 0.00000s window: 2";
        assert_eq!(summary.text, expect);
        assert_eq!((&summary.json["min_s"], &summary.json["window"]), (&json!(0.1), &json!(2)));
        // Simulated time that begins anew.
        rate.arrived_at(0);
        assert!(rate.summary(&By::Machine).is_none());
        rate.arrived_at(1_000_000_000);
        assert_eq!(rate.summary(&By::Machine).unwrap().cells[0], "1.000");
    }
}
