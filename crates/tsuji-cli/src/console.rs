//! What a terminal has while a recording is played: keys that pause it, and a line that tells how far it is.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tsuji_platform::terminal::{self, Key, Keys};
use tsuji_record::{Controls, Position};

use crate::output;
use crate::terminal::TerminalGuard;

/// How often keys are looked for where there is no line to show.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How much a key changes the rate, as in `ros2 bag play`.
const RATE_STEP: f64 = 0.1;

/// What is wanted of a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Keys.
    pub(crate) keys: bool,
    /// How often the line is shown; never if nothing is said.
    pub(crate) every: Option<Duration>,
    /// When the recording begins and ends, in nanoseconds since the Unix epoch.
    pub(crate) span: (u64, u64),
}

/// A thread that reads keys and shows the line, until this is dropped. The terminal is as it was before then.
pub(crate) struct Console {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _signals: Option<TerminalGuard>,
}

impl Console {
    /// Takes the terminal, where there is one.
    pub(crate) fn start(controls: Controls, mut wanted: Wanted) -> io::Result<Self> {
        let mut signals = None;
        wanted.every = wanted.every.filter(|_| io::stderr().is_terminal());
        // Heard before the keys are taken, so that no signal ends the process between.
        if wanted.keys {
            signals = Some(TerminalGuard::at_signals(|_| terminal::give_back(), take_again)?);
        }
        let keys = signals.as_ref().and_then(|_| Keys::take());
        if keys.is_some() {
            output::note(
                "space pauses and goes on, → plays the next message while paused, ↑ and ↓ change the rate",
            );
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let mut thread = None;
        if keys.is_some() || wanted.every.is_some() {
            let told = Arc::clone(&is_over);
            let run = move || run(keys, &controls, wanted, &told);
            thread = Some(thread::Builder::new().name("console".to_owned()).spawn(run)?);
        }
        Ok(Self { is_over, thread, _signals: signals })
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic of it was told, and its keys were given back.
            let _ = thread.join();
        }
    }
}

fn take_again() {
    terminal::take_again();
}

fn run(mut keys: Option<Keys>, controls: &Controls, wanted: Wanted, is_over: &AtomicBool) {
    let mut next_show = Instant::now();
    while !is_over.load(Ordering::Acquire) {
        if let Some(every) = wanted.every.filter(|_| next_show <= Instant::now()) {
            next_show = Instant::now() + every;
            show(&line(controls.position(), wanted.span));
        }
        match &mut keys {
            Some(keys) => {
                if let Some(key) = keys.next(LOOK_AGAIN) {
                    obey(key, controls);
                    next_show = Instant::now();
                }
            }
            None => thread::sleep(LOOK_AGAIN),
        }
    }
    if wanted.every.is_some() {
        show("");
    }
}

fn obey(key: Key, controls: &Controls) {
    let rate = controls.position().rate;
    match key {
        Key::Char(' ') => controls.toggle_paused(),
        Key::Right => drop(controls.play_next()),
        Key::Up => controls.set_rate(rate + RATE_STEP),
        Key::Down => controls.set_rate(rate - RATE_STEP),
        _ => {}
    }
}

/// Puts a line in the place of the last. That nobody reads it is no fault.
fn show(line: &str) {
    let _ = write!(io::stderr(), "\r\x1b[K{line}");
}

fn line(position: Position, (first_ns, last_ns): (u64, u64)) -> String {
    let Position { at_ns, rate, paused, waits, ended, .. } = position;
    let word = match (waits, ended, paused) {
        (true, _, _) => "waiting",
        (_, true, _) => "ended  ",
        (_, _, true) => "paused ",
        _ => "playing",
    };
    let seconds = |ns: u64| ns.saturating_sub(first_ns) as f64 / 1e9;
    let at = seconds(at_ns.clamp(first_ns, last_ns));
    format!("{word}  {at:.1} s of {:.1} s  {rate:.2} times as fast", seconds(last_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_stays_within_the_recording() {
        let check = |at_ns, paused, waits, expect: &str| {
            let ended = 61_000_000_000 < at_ns;
            let position = Position { at_ns, rate: 0.5, paused, waits, ended, jumps: 0 };
            assert_eq!(line(position, (1_000_000_000, 61_000_000_000)), expect);
        };
        check(0, false, true, "waiting  0.0 s of 60.0 s  0.50 times as fast");
        check(13_340_000_000, true, false, "paused   12.3 s of 60.0 s  0.50 times as fast");
        check(61_000_000_000, false, false, "playing  60.0 s of 60.0 s  0.50 times as fast");
        check(u64::MAX, false, false, "ended    60.0 s of 60.0 s  0.50 times as fast");
    }
}
