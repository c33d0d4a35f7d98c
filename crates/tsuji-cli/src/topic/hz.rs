//! `tsuji topic hz`.

use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

use super::listener::Listener;
use crate::output::Output;
use crate::session::{Globals, Session};

/// How often the rate is printed.
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name)]
    topic: String,
    /// The most intervals between messages that the average is over
    #[arg(short, long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    window: u32,
    /// No effect: the rate is always by this machine's clock
    #[arg(long, hide = true)]
    wall_time: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let Some(mut listener) = Listener::of_any_type(&session, &args.topic)? else { return Ok(()) };
    measure(args, &session, &mut listener, out)
}

fn measure(
    args: &Args,
    session: &Session,
    listener: &mut Listener,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut window = Window::new(args.window);
    let mut next = Instant::now() + PERIOD;
    let mut printed = 0;
    while session.context.is_ok() {
        listener.wait(next.saturating_duration_since(Instant::now()))?;
        while let Some(sample) = listener.take() {
            window.arrived(sample.info.received_mono_ns);
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + PERIOD;
        if window.count > printed {
            printed = window.count;
            if let Some(summary) = window.summary() {
                out.line(summary)?;
            }
        } else if printed > 0 {
            out.line("no new messages")?;
        }
        out.flush()?;
    }
    if window.count > printed
        && let Some(summary) = window.summary()
    {
        out.line(summary)?;
    }
    Ok(())
}

/// The times between the last messages, at most `size` of them.
struct Window {
    size: usize,
    last_ns: Option<u64>,
    between_ns: VecDeque<u64>,
    /// Messages that ever came.
    count: u64,
}

impl Window {
    fn new(size: u32) -> Self {
        Self { size: size as usize, last_ns: None, between_ns: VecDeque::new(), count: 0 }
    }

    fn arrived(&mut self, at_ns: u64) {
        self.count += 1;
        if let Some(last) = self.last_ns.replace(at_ns) {
            self.between_ns.push_back(at_ns.saturating_sub(last));
        }
        if self.between_ns.len() > self.size {
            self.between_ns.pop_front();
        }
    }

    /// In the words of `ros2`. `None` before the second message.
    fn summary(&self) -> Option<String> {
        let min = *self.between_ns.iter().min()? as f64 / 1e9;
        let max = *self.between_ns.iter().max()? as f64 / 1e9;
        let count = self.between_ns.len() as f64;
        let seconds = || self.between_ns.iter().map(|it| *it as f64 / 1e9);
        let mean = seconds().sum::<f64>() / count;
        let deviation = (seconds().map(|it| (it - mean).powi(2)).sum::<f64>() / count).sqrt();
        let rate = if mean > 0.0 { 1.0 / mean } else { 0.0 };
        Some(format!(
            "average rate: {rate:.3}\n\tmin: {min:.3}s max: {max:.3}s std dev: {deviation:.5}s window: {}",
            self.between_ns.len()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_forgets() {
        let mut window = Window::new(2);
        window.arrived(0);
        assert_eq!(window.summary(), None);
        for ms in [500_u64, 600, 700] {
            window.arrived(ms * 1_000_000);
        }
        let expect = "average rate: 10.000\n\tmin: 0.100s max: 0.100s std dev: 0.00000s window: 2";
        assert_eq!(window.summary().as_deref(), Some(expect));
    }
}
