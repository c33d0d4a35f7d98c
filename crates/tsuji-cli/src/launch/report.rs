//! What a launch says: what happens, and what its processes print.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use crate::output::{Colour, Output, Paint};

/// Lines that wait to be printed. Beyond, a process that prints waits; what the launch itself says is counted.
const WAITING_MAX: usize = 1024;

/// Lines that are written in one go.
const AT_ONCE_MAX: u64 = 64;

/// The colours of processes, by turns.
const COLOURS: [Colour; 3] = [Colour::Name, Colour::Good, Colour::Warning];

/// How grave it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Warning,
    Error,
}

/// Something to be printed.
#[derive(Debug)]
pub(super) enum Said {
    /// What happened, of which process, and the same as JSON.
    Event { level: Level, label: String, text: String, event: Json },
    /// A line of a process, without its end.
    Line { number: usize, label: String, is_standard_error: bool, line: Vec<u8> },
}

/// Prints in a thread of its own, so that a terminal that stands still keeps nobody from ending the processes.
#[derive(Debug)]
pub(super) struct Report {
    voice: Voice,
    thread: JoinHandle<()>,
}

/// By which anybody says something.
#[derive(Clone, Debug)]
pub(super) struct Voice {
    sender: SyncSender<Said>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// How much of what the launch itself has to say found no room.
    unsaid: AtomicU64,
    /// How much waits to be printed, or for room to wait in.
    waiting: AtomicU64,
}

/// What the thread that prints tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Print {
    /// Nobody reads any more.
    ReaderIsGone,
    /// All is printed that was said, and all voices are gone.
    Done,
}

impl Report {
    /// `tell` is called once for each that happens.
    pub(super) fn start(json: bool, tell: impl Fn(Print) + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let counts = Arc::new(Counts::default());
        let voice = Voice { sender, counts: Arc::clone(&counts) };
        let thread = thread::Builder::new().name("report".to_owned()).spawn(move || {
            print(&receiver, json, &counts, || tell(Print::ReaderIsGone));
            tell(Print::Done);
        })?;
        Ok(Self { voice, thread })
    }

    pub(super) fn voice(&self) -> Voice {
        self.voice.clone()
    }

    /// The launch itself has nothing more to say. What comes of it is how to wait for the end.
    pub(super) fn finish(self) -> Finish {
        let Self { voice: Voice { sender, counts }, thread } = self;
        drop(sender);
        Finish { counts, thread }
    }
}

/// The rest of what is to be printed.
#[derive(Debug)]
pub(super) struct Finish {
    counts: Arc<Counts>,
    thread: JoinHandle<()>,
}

impl Finish {
    /// Waits for the thread, which has told that it is done.
    pub(super) fn join(self) {
        // A panic has been told by its hook.
        let _ = self.thread.join();
    }

    /// How many lines and messages are not printed, or just being printed. What a process has printed and nobody has read is not known.
    pub(super) fn unprinted(&self) -> u64 {
        self.counts.waiting.load(Ordering::Acquire) + self.counts.unsaid.load(Ordering::Acquire)
    }
}

impl Voice {
    /// Says what happened. Never waits.
    pub(super) fn event(&self, level: Level, label: &str, text: String, event: Json) {
        let said = Said::Event { level, label: label.to_owned(), text, event };
        self.counts.waiting.fetch_add(1, Ordering::AcqRel);
        if let Err(error) = self.sender.try_send(said) {
            self.counts.waiting.fetch_sub(1, Ordering::AcqRel);
            if matches!(error, TrySendError::Full(_)) {
                self.counts.unsaid.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// Says a line of a process, after waiting for room.
    pub(super) fn line(&self, said: Said) {
        self.counts.waiting.fetch_add(1, Ordering::AcqRel);
        // The printer lasts as long as its senders.
        let _ = self.sender.send(said);
    }
}

fn print(receiver: &Receiver<Said>, json: bool, counts: &Counts, gone: impl FnOnce()) {
    let mut out = Output::stdout();
    let mut gone = Some(gone);
    while let Ok(first) = receiver.recv() {
        // What waits is written together.
        let mut next = Some(first);
        let mut result = Ok(());
        let mut taken = 0;
        while let Some(said) = next {
            taken += 1;
            let unsaid = counts.unsaid.swap(0, Ordering::AcqRel);
            if gone.is_some() {
                result = result.and_then(|()| write(&mut out, json, &said));
                if unsaid > 0 {
                    let text = format!("{unsaid} messages of the launch were not shown");
                    let event = json!({ "event": "unsaid", "count": unsaid });
                    let said =
                        Said::Event { level: Level::Warning, label: "launch".into(), text, event };
                    result = result.and_then(|()| write(&mut out, json, &said));
                }
            }
            next = if taken < AT_ONCE_MAX { receiver.try_recv().ok() } else { None };
        }
        let result = result.and_then(|()| out.flush());
        counts.waiting.fetch_sub(taken, Ordering::AcqRel);
        if result.is_err()
            && let Some(gone) = gone.take()
        {
            gone();
        }
    }
}

fn write(out: &mut Output, json: bool, said: &Said) -> io::Result<()> {
    if json {
        let mut object = match said {
            Said::Event { event, label, .. } => {
                let mut event = event.clone();
                if label != "launch" {
                    event["process"] = label.as_str().into();
                }
                event
            }
            Said::Line { label, is_standard_error, line, .. } => {
                let stream = if *is_standard_error { "stderr" } else { "stdout" };
                let line = String::from_utf8_lossy(line);
                json!({ "event": "output", "process": label, "stream": stream, "line": line })
            }
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        object["time"] = since.as_secs_f64().into();
        return out.line(object);
    }
    match said {
        Said::Event { level, label, text, .. } => {
            let paint: Paint = out.paint;
            let word = match level {
                Level::Info => "[INFO]".to_owned(),
                Level::Warning => paint.text(Colour::Warning, "[WARNING]"),
                Level::Error => paint.text(Colour::Error, "[ERROR]"),
            };
            out.line(format_args!("{word} [{label}]: {text}"))
        }
        Said::Line { number, label, line, .. } => {
            let colour = COLOURS[number % COLOURS.len()];
            let label = out.paint.text(colour, format_args!("[{label}]"));
            out.program_line(label, line)
        }
    }
}
