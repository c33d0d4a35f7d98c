//! `tsuji topic bw`.

use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

use super::listener::Listener;
use crate::output::Output;
use crate::session::{Globals, Session};

/// How often the bandwidth is printed.
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name)]
    topic: String,
    /// The most messages that the average is over
    #[arg(short, long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    window: u32,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let Some(mut listener) = Listener::of_any_type(&session, &args.topic)? else { return Ok(()) };
    out.line(format_args!("Subscribed to [{}]", args.topic))?;
    out.flush()?;
    let mut window = VecDeque::new();
    let mut next = Instant::now() + PERIOD;
    while session.context.is_ok() {
        listener.wait(next.saturating_duration_since(Instant::now()))?;
        while let Some(sample) = listener.take() {
            window.push_back((Instant::now(), sample.bytes.len()));
            if window.len() > args.window as usize {
                window.pop_front();
            }
        }
        if next <= Instant::now() {
            next = Instant::now() + PERIOD;
            if let Some(summary) = summary(&window, Instant::now()) {
                out.line(summary)?;
                out.flush()?;
            }
        }
    }
    Ok(())
}

/// In the words of `ros2`. `None` before the second message.
fn summary(window: &VecDeque<(Instant, usize)>, now: Instant) -> Option<String> {
    let sizes = || window.iter().map(|(_, size)| *size as f64);
    let (first, _) = window.front().filter(|_| 1 < window.len())?;
    let seconds = now.saturating_duration_since(*first).as_secs_f64().max(1e-9);
    let total: f64 = sizes().sum();
    let (min, max) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let per_second = total / seconds;
    let text = |value: f64| match per_second {
        it if it < 1e3 => format!("{value:.0} B"),
        it if it < 1e6 => format!("{:.2} KB", value / 1e3),
        _ => format!("{:.2} MB", value / 1e6),
    };
    Some(format!(
        "{}/s from {} messages\n\tMessage size mean: {} min: {} max: {}",
        text(per_second),
        window.len(),
        text(total / window.len() as f64),
        text(min),
        text(max)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_in_the_unit_that_suits_it() {
        let began = Instant::now();
        let window = VecDeque::from([(began, 1000), (began, 3000)]);
        assert_eq!(
            summary(&window, began + PERIOD).as_deref(),
            Some(
                "4.00 KB/s from 2 messages\n\tMessage size mean: 2.00 KB min: 1.00 KB max: 3.00 KB"
            )
        );
        assert_eq!(summary(&VecDeque::from([(began, 1)]), began), None);
    }
}
