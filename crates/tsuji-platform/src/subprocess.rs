//! Child processes that are spoken with by lines: started, watched and ended.
//!
//! It is for a program that has a few children of its own, as the laboratory, the demonstration and the tests have. It knows lines
//! and ends, and not what a line means. Who supervises processes of others, with the groups and the orphans that those make, uses
//! [`child`] alone.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::child::{self, Signal};

/// A child process. When dropped its input is closed, and it is killed if it has not ended after its grace.
#[derive(Debug)]
pub struct Subprocess {
    child: Child,
    /// Its number may be another's.
    is_reaped: bool,
    input: Option<ChildStdin>,
    /// Lines of standard output.
    pub output: Lines,
    /// Lines of standard error.
    pub errors: Lines,
    grace: Duration,
}

impl Subprocess {
    /// Starts a process, and reads by lines which of its outputs `command` pipes; an output that it does not pipe has no lines.
    ///
    /// Its group, and whether it ends with the thread that starts it ([`child::bind`]), are up to `command`. The input of a child ends
    /// with its parent, if it is piped. `grace` is how long it may take to end by itself when this is dropped.
    ///
    /// # Errors
    /// What the system says where it cannot be started, or not be listened to.
    pub fn start(command: &mut Command, grace: Duration) -> io::Result<Self> {
        Self::of(command.spawn()?, grace)
    }

    /// The same of a process that was just started. What reads its outputs are threads of the one that calls this, on its processors.
    ///
    /// # Errors
    /// What the system says where it cannot be listened to.
    pub fn of(mut child: Child, grace: Duration) -> io::Result<Self> {
        let input = child.stdin.take();
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let lines = (Lines::default(), Lines::default());
        // If it cannot be listened to it ends with this.
        let process =
            Self { child, is_reaped: false, input, output: lines.0, errors: lines.1, grace };
        process.output.read("output", output)?;
        process.errors.read("errors", errors)?;
        Ok(process)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its input.
    ///
    /// # Errors
    /// `BrokenPipe` if its input is closed, or it has ended.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        // In one piece, so that it never reads half a line.
        input.write_all(format!("{line}\n").as_bytes())?;
        input.flush()
    }

    /// Closes its input, which tells it to end if that is what it takes for it.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Sends it a signal; false if it has ended and that is known here.
    pub fn signal(&self, signal: Signal) -> bool {
        !self.is_reaped && child::tell(self.id(), signal)
    }

    /// How it has ended, if it has.
    ///
    /// # Errors
    /// What the system says where its end cannot be taken.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        self.is_reaped |= status.is_some();
        Ok(status)
    }

    /// Waits for its end, however long that takes. Its input stays as it is.
    ///
    /// # Errors
    /// What the system says where its end cannot be taken.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.is_reaped = true;
        Ok(status)
    }

    /// Waits for its end; `None` if that takes longer than `patience`.
    pub fn wait_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            match self.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begin.elapsed() < patience => thread::sleep(LOOK_AGAIN),
                _ => return None,
            }
        }
    }

    /// Closes its input and takes what it writes to its end; `None` if neither a line nor the end comes for so long.
    pub fn finish(&mut self, silence_max: Duration) -> Option<Ended> {
        self.close_input();
        let output = self.output.rest(silence_max)?;
        let errors = self.errors.rest(silence_max)?;
        let status = self.wait_within(silence_max)?;
        Some(Ended { output, errors, status })
    }

    /// Kills it and takes its end. What it has started is left alone.
    pub fn kill(&mut self) {
        // Fails for one that has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.wait();
    }

    /// Says why nothing came from [`output`](Self::output): how it ended, if it has, and its last lines on standard error.
    pub fn explain(&mut self, silence: Silence) -> String {
        match silence {
            Silence::Quiet(patience) => {
                self.with_errors(&format!("no answer for {} s", patience.as_secs()))
            }
            // Its output ends a moment before it does.
            Silence::Over => self.end_within(ENDS).unwrap_or_else(|| self.with_errors("it ended")),
        }
    }

    /// Says how it ended, with its last lines on standard error; `None` if it has not and does not within `patience`.
    pub fn end_within(&mut self, patience: Duration) -> Option<String> {
        let status = self.wait_within(patience)?;
        // What it said last is read a moment after it has ended; what it has started may keep its output open for longer.
        let _ = self.errors.wait_for_end(HEARD_OUT);
        Some(self.with_errors(&format!("it ended ({status})")))
    }

    /// Adds to `error` the last lines on standard error that nobody has taken.
    pub fn with_errors(&self, error: &str) -> String {
        let last = self.errors.last(ERRORS_SHOWN);
        if last.is_empty() {
            return error.to_owned();
        }
        format!("{error}; it said: {}", last.join(" / "))
    }
}

impl Drop for Subprocess {
    fn drop(&mut self) {
        self.close_input();
        if self.grace.is_zero() || self.wait_within(self.grace).is_none() {
            self.kill();
        }
    }
}

/// All that a process wrote and nobody had taken before, and how it ended.
#[derive(Debug)]
pub struct Ended {
    /// Lines of standard output.
    pub output: Vec<String>,
    /// Lines of standard error.
    pub errors: Vec<String>,
    /// How it ended.
    pub status: ExitStatus,
}

/// Why no line came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The output is open, and nothing came for so long.
    Quiet(Duration),
    /// The output has ended, and all lines are taken.
    Over,
}

/// What a process writes, line by line, as a thread of its own reads it.
///
/// Of lines that nobody takes the last 65,536 are kept: what is older is dropped and counted, and the process never waits. What is
/// not UTF-8 is replaced. A line is as long as the process makes it.
#[derive(Debug, Default)]
pub struct Lines {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<String>,
    dropped: u64,
    is_over: bool,
    /// Nobody will take any more.
    is_left: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), dropped: 0, is_over: true, is_left: false }
    }
}

impl Lines {
    fn read(&self, name: &str, from: Option<impl Read + Send + 'static>) -> io::Result<()> {
        let Some(from) = from else { return Ok(()) };
        self.shared.lock().is_over = false;
        let shared = Arc::clone(&self.shared);
        let reading = thread::Builder::new().name(name.to_owned());
        reading.spawn(move || shared.read(BufReader::new(from))).map(drop)
    }

    /// Takes the next line.
    ///
    /// # Errors
    /// [`Silence`] if there is none for `patience`.
    pub fn next(&self, patience: Duration) -> Result<String, Silence> {
        self.find(patience, |_| true)
    }

    /// Takes the next line that is there already.
    pub fn try_next(&self) -> Option<String> {
        self.next(Duration::ZERO).ok()
    }

    /// Waits for a line that is as wanted, and takes it. Those before it stay.
    ///
    /// # Errors
    /// [`Silence`] if there is none for `patience`.
    pub fn find(
        &self,
        patience: Duration,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<String, Silence> {
        let begin = Instant::now();
        let mut state = self.shared.lock();
        loop {
            let at = state.waiting.iter().position(|line| is_wanted(line));
            if let Some(line) = at.and_then(|at| state.waiting.remove(at)) {
                return Ok(line);
            }
            if state.is_over {
                return Err(Silence::Over);
            }
            let left = patience.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Err(Silence::Quiet(patience));
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Takes all lines to the end; `None` if neither a line nor the end comes for so long.
    pub fn rest(&self, silence_max: Duration) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            match self.next(silence_max) {
                Ok(line) => lines.push(line),
                Err(Silence::Over) => return Some(lines),
                Err(Silence::Quiet(_)) => return None,
            }
        }
    }

    /// Shows the last `count` of the lines that nobody has taken.
    pub fn last(&self, count: usize) -> Vec<String> {
        let state = self.shared.lock();
        let skipped = state.waiting.len().saturating_sub(count);
        state.waiting.iter().skip(skipped).cloned().collect()
    }

    /// Waits for the end of the output, whoever has it open; whether it came within `patience`.
    pub fn wait_for_end(&self, patience: Duration) -> bool {
        self.find(patience, |_| false) == Err(Silence::Over)
    }

    /// Lines that were dropped because nobody took them.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.shared.lock().is_left = true;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, timeout);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn read(&self, mut from: impl BufRead) {
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| 0 < read) {
            if line.pop_if(|last| *last == b'\n').is_some() {
                line.pop_if(|last| *last == b'\r');
            }
            let mut state = self.lock();
            if state.is_left {
                return;
            }
            if state.waiting.len() == LINES_MAX {
                state.waiting.pop_front();
                state.dropped += 1;
            }
            state.waiting.push_back(String::from_utf8_lossy(&line).into_owned());
            drop(state);
            self.changed.notify_all();
            line.clear();
        }
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

/// Lines that are kept for whoever takes them.
const LINES_MAX: usize = 65_536;

/// Lines of standard error that are told with a failure.
const ERRORS_SHOWN: usize = 5;

/// How often a look is taken whether a process has ended, of which no event tells.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// How long a process whose output has ended may take to end.
const ENDS: Duration = Duration::from_secs(4);

/// How long is waited for what one that has ended said last.
const HEARD_OUT: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Stdio;

    use super::*;

    const HANG: Duration = Duration::from_secs(60);

    fn shell(script: &str, grace: Duration) -> Subprocess {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Subprocess::start(&mut command, grace).unwrap()
    }

    #[test]
    fn it_is_spoken_with_by_lines_and_ends_when_its_input_does() {
        let mut echo = shell("cat", HANG);
        echo.tell("one").unwrap();
        echo.tell("two").unwrap();
        assert_eq!(echo.output.next(HANG).unwrap(), "one");
        assert_eq!(echo.output.next(HANG).unwrap(), "two");
        assert_eq!(
            echo.output.next(Duration::from_millis(1)),
            Err(Silence::Quiet(Duration::from_millis(1)))
        );
        assert_eq!(echo.try_wait().unwrap(), None);
        let ended = echo.finish(HANG).unwrap();
        assert!(ended.status.success() && ended.output.is_empty(), "{ended:?}");
        assert_eq!(echo.output.next(HANG), Err(Silence::Over));
        assert_eq!(echo.tell("three").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_line_is_waited_for_and_those_before_it_stay() {
        let process = shell("echo early; echo ready; printf 'late \\377'; exec sleep 0", HANG);
        assert_eq!(process.output.find(HANG, |it| it == "ready").unwrap(), "ready");
        assert_eq!(process.output.rest(HANG).unwrap(), ["early", "late \u{fffd}"]);
        assert!(process.output.wait_for_end(HANG) && process.errors.wait_for_end(HANG));
    }

    #[test]
    fn a_crash_is_told_with_the_last_lines_of_standard_error() {
        let mut process = shell("for it in 1 2 3 4 5 6; do echo $it >&2; done; kill -9 $$", HANG);
        let silence = process.output.next(HANG).unwrap_err();
        let why = process.explain(silence);
        assert_eq!(why, "it ended (signal: 9 (SIGKILL)); it said: 2 / 3 / 4 / 5 / 6");
    }

    #[test]
    fn what_does_not_end_by_itself_is_killed() {
        let mut deaf = shell("trap '' INT; echo ready; exec sleep 1000", Duration::ZERO);
        deaf.output.next(HANG).unwrap();
        assert!(deaf.signal(Signal::Interrupt));
        assert_eq!(deaf.end_within(Duration::ZERO), None);
        let why = deaf.explain(Silence::Quiet(Duration::from_secs(3)));
        assert_eq!(why, "no answer for 3 s");
        let id = deaf.id();
        drop(deaf);
        assert!(!child::tell(id, Signal::Continue));
    }

    #[test]
    fn lines_that_nobody_takes_are_dropped_and_counted() {
        let process = shell("seq 70000", HANG);
        assert!(process.output.wait_for_end(HANG));
        assert_eq!(process.output.dropped(), 70_000 - LINES_MAX as u64);
        assert_eq!(process.output.next(HANG).unwrap(), (70_001 - LINES_MAX).to_string());
        assert_eq!(process.output.last(2), ["69999", "70000"]);
    }

    #[test]
    fn its_end_is_taken_by_whoever_waits() {
        let mut process = shell("exec sleep 1000", Duration::ZERO);
        assert!(process.signal(Signal::Terminate));
        assert_eq!(process.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(process.wait_within(Duration::ZERO).unwrap().signal(), Some(libc::SIGTERM));
    }
}
