//! A child process: one end of a flow, or both, told what to do by lines on its standard input.
//!
//! It answers each line with one line of JSON. When its input ends, it ends.

use std::io::{self, BufRead, Write};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tsuji_platform::clock::{monotonic_ns, thread_cpu_ns};

use crate::Allocations;
use crate::crew::{Report, Sent};
use crate::pace::sleep_until;
use crate::picture::HANDSHAKE;
use crate::placement;
use crate::probe::{self, Arrivals, BLOCK_MAX, Meter, Paced, Pacer};
use crate::transport::{self, End, Flow, Role, Sender, Spec, Transport};

/// What a child process is told to be, in its second argument.
pub(crate) trait ChildPart: Serialize + DeserializeOwned {
    /// Its first argument, which nobody else is told of.
    const MODE: &'static str;

    /// Plays it. `allocations` counts those of this process, where its program does.
    fn play(self, allocations: Option<Allocations>) -> Result<(), String>;
}

/// Plays the part that `text` describes, as whoever started this child wrote it, if `mode` is one of such a part. The answer is the
/// exit code; where the child has failed it has said why.
pub(crate) fn play<P: ChildPart>(
    mode: &str,
    text: &str,
    allocations: Option<Allocations>,
) -> Option<i32> {
    if mode != P::MODE {
        return None;
    }
    let part = serde_json::from_str(text).map_err(|error| error.to_string());
    match part.and_then(|part: P| part.play(allocations)) {
        Ok(()) => Some(0),
        Err(error) => {
            answer(&json!({ "failed": error }));
            Some(1)
        }
    }
}

impl ChildPart for Spec {
    const MODE: &'static str = "--child";

    fn play(self, allocations: Option<Allocations>) -> Result<(), String> {
        match self.role {
            Role::Both => both(&self, allocations),
            Role::Sender => sender(&self, allocations),
            Role::Receiver => receiver(&self, allocations),
        }
    }
}

/// A number of a line that a child is told something by.
pub(crate) fn parsed(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

/// Answers what a child was told.
pub(crate) fn answer(told: &impl Serialize) {
    // What a child says is always text. Nobody listens any more when it cannot be written, and the input ends as well.
    let line = serde_json::to_string(told).unwrap_or_default();
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Makes a type that has words be told to a child by its word.
macro_rules! told_by_word {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = <String as serde::Deserialize>::deserialize(from)?;
                Self::of_word(&word).map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use told_by_word;

/// What tsuji said that went wrong.
pub(crate) fn said(error: tsuji::Error) -> String {
    format!("tsuji: {error}")
}

/// Calls `obey` with each line of the input.
pub(crate) fn obey_each<A: Serialize>(
    mut obey: impl FnMut(&str) -> Result<A, String>,
) -> Result<(), String> {
    let mut line = String::with_capacity(256);
    let mut input = io::stdin().lock();
    loop {
        line.clear();
        match input.read_line(&mut line) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => answer(&obey(line.trim_end())?),
        }
    }
}

fn both(spec: &Spec, allocations: Option<Allocations>) -> Result<(), String> {
    let meter = Arc::<Meter>::default();
    let (near, far) = probe::pair().map_err(|error| error.to_string())?;
    let arrivals = Arrivals::paced(spec.size, far, Arc::clone(&meter));
    let (sender, receiver) = transport::open_both(spec, Arc::clone(&arrivals))?;
    let end = Arc::new(End::default());
    let (tell, told) = mpsc::channel();
    let receiving = thread::Builder::new().name("receiver".to_owned()).spawn({
        let end = Arc::clone(&end);
        move || {
            placement::receive_here();
            // The sender is waiting for this.
            let _ = tell.send(probe::this_thread());
            receiver.run(&end)
        }
    });
    let receiving = receiving.map_err(|error| error.to_string())?;
    let thread = told.recv().map_err(|error| error.to_string())?;
    let pacer = thread.and_then(|thread| Pacer::new(near, &thread, pause(spec)));
    let pacer = pacer.map_err(|error| error.to_string())?;
    let mut sending = Sending::new(sender, spec, meter, allocations);
    sending.pacer = Some(pacer);
    answer(&json!({ "open": true }));
    let obeyed = obey_each(|line| match line {
        "report" => Ok(report(&arrivals)),
        _ => sending.obey(line),
    });
    end.now();
    let received = receiving.join().map_err(|_| "the receiving thread panicked".to_owned())?;
    obeyed.and(received)
}

fn sender(spec: &Spec, allocations: Option<Allocations>) -> Result<(), String> {
    let meter = Arc::<Meter>::default();
    let listener = match spec.flow {
        Flow::Paced => Some(probe::listen(&spec.folder, &spec.name)),
        Flow::Stream => None,
    };
    let listener = listener.transpose().map_err(|error| error.to_string())?;
    let mut sending = Sending::new(transport::open_sender(spec)?, spec, meter, allocations);
    sending.listener = listener;
    answer(&json!({ "open": true }));
    obey_each(|line| sending.obey(line))
}

fn pause(spec: &Spec) -> Duration {
    Duration::from_micros(spec.pause_us)
}

/// What a process that sends keeps.
struct Sending {
    sender: Box<dyn Sender>,
    transport: Transport,
    flow: Flow,
    pause: Duration,
    period_ns: u64,
    /// Otherwise two readings of the clock would be a good part of a sample.
    draws_long: bool,
    listener: Option<UnixListener>,
    pacer: Option<Pacer>,
    meter: Arc<Meter>,
    allocations: Option<Allocations>,
    next: u64,
    /// Number, begin of the drawing, begin and end of the sending.
    sent: Vec<[u64; 4]>,
}

impl Sending {
    fn new(
        sender: Box<dyn Sender>,
        spec: &Spec,
        meter: Arc<Meter>,
        allocations: Option<Allocations>,
    ) -> Self {
        let sent = Vec::with_capacity(BLOCK_MAX);
        let (listener, pacer, next) = (None, None, 0);
        Self {
            sender,
            transport: spec.transport,
            flow: spec.flow,
            pause: pause(spec),
            period_ns: spec.period_us * 1000,
            draws_long: DRAWS_LONG_MIN <= spec.size,
            listener,
            pacer,
            meter,
            allocations,
            next,
            sent,
        }
    }

    fn obey(&mut self, line: &str) -> Result<Value, String> {
        match line.split_once(' ').and_then(|(word, count)| Some((word, count.parse().ok()?))) {
            Some(("block", count)) => self.block(count),
            Some(("stream", count)) => self.stream(count),
            None if line == "greet" => self.greet(),
            None if line == "transport" => {
                let carried = self.sender.transport();
                Ok(json!({ "transport": carried.map(|it| format!("{}:{it}", self.transport)) }))
            }
            _ => Err(format!("`{line}` is no command")),
        }
    }

    fn greet(&mut self) -> Result<Value, String> {
        if self.flow == Flow::Stream {
            let _ = self.send(HANDSHAKE);
            return Ok(json!({ "greeted": true }));
        }
        if let Some(listener) = self.listener.take() {
            self.pacer =
                Some(probe::accept(&listener, self.pause).map_err(|error| error.to_string())?);
        }
        let mut refusal = String::new();
        for _ in 0..HANDSHAKES_MAX {
            // Until both ends know each other a handshake may be refused or get lost.
            if let Err(error) = self.send(HANDSHAKE) {
                refusal = format!(": {error}");
            }
            let pacer = self.pacer.as_mut().ok_or("nobody has joined")?;
            if pacer.is_greeted()? {
                return Ok(json!({ "greeted": true }));
            }
        }
        Err(format!("nothing arrives{refusal}"))
    }

    fn send(&mut self, number: u64) -> Result<(), String> {
        self.sender.prepare()?;
        self.sender.draw(number)?;
        self.sender.publish()
    }

    /// Sends pictures one by one, each to a receiver that sleeps.
    fn block(&mut self, count: u64) -> Result<Value, String> {
        let pacer = self.pacer.as_mut().ok_or("not greeted")?;
        let (mut silent, mut due) = (0, 0_u64);
        self.sent.clear();
        self.sender.begin();
        let allocated = self.allocations.map(|count| count());
        let used = self.meter.used_ns();
        for _ in 0..count {
            let number = self.next;
            self.next += 1;
            let excluded = self.meter.exclude();
            sleep_until(due);
            pacer.wait_until_asleep()?;
            let begun = monotonic_ns();
            due = next_beat(due, self.period_ns, begun);
            drop(excluded);
            self.sender.prepare()?;
            let excluded = self.meter.exclude();
            self.sender.draw(number)?;
            drop(excluded);
            let at = monotonic_ns();
            let published = self.sender.publish();
            let _excluded = self.meter.exclude();
            let done = monotonic_ns();
            if published.is_err() {
                continue;
            }
            self.sent.push([number, begun, at, done]);
            silent = if pacer.is_acknowledged(number) { 0 } else { silent + 1 };
            if SILENT_MAX <= silent {
                break;
            }
        }
        self.sender.end();
        let cpu_ns = self.meter.used_ns().saturating_sub(used);
        let allocated = self.allocations.zip(allocated).map(|(count, before)| count() - before);
        Ok(json!(Sent { sent: self.sent.clone(), cpu_ns, allocations: allocated }))
    }

    /// Sends pictures as fast as they are taken.
    fn stream(&mut self, count: u64) -> Result<Value, String> {
        let mut drawing_ns = 0;
        let used = self.meter.used_ns();
        let began = monotonic_ns();
        for _ in 0..count {
            self.sender.prepare()?;
            let before = if self.draws_long { thread_cpu_ns() } else { 0 };
            self.sender.draw(self.next)?;
            if self.draws_long {
                drawing_ns += thread_cpu_ns() - before;
            }
            self.sender.publish()?;
            self.next += 1;
        }
        let cpu_ns = self.meter.used_ns().saturating_sub(used);
        Ok(json!({ "began": began, "cpu_ns": cpu_ns, "drawing_ns": drawing_ns }))
    }
}

/// The beat after the one of `due` that has not passed at `now`. The first is whenever it is.
fn next_beat(due: u64, period_ns: u64, now: u64) -> u64 {
    let first = if due == 0 { now } else { due };
    let passed = now.saturating_sub(first).checked_div(period_ns).unwrap_or(0);
    first + (passed + 1) * period_ns
}

const DRAWS_LONG_MIN: usize = 4096;

const HANDSHAKES_MAX: u32 = 50;

/// A block is given up after so many pictures in a row that nobody acknowledged.
const SILENT_MAX: u32 = 3;

fn receiver(spec: &Spec, allocations: Option<Allocations>) -> Result<(), String> {
    let meter = Arc::<Meter>::default();
    let arrivals = match spec.flow {
        Flow::Paced => {
            let acknowledge = probe::join(&spec.folder, &spec.name);
            let acknowledge = acknowledge.map_err(|error| error.to_string())?;
            Arrivals::paced(spec.size, acknowledge, Arc::clone(&meter))
        }
        Flow::Stream => Arrivals::stream(Arc::clone(&meter)),
    };
    let receiver = transport::open_receiver(spec, Arc::clone(&arrivals))?;
    let end = Arc::new(End::default());
    let control = thread::Builder::new().name("control".to_owned()).spawn({
        let end = Arc::clone(&end);
        let spec = spec.clone();
        let mut listening = Listening { spec, arrivals, meter, allocations, used: 0, allocated: 0 };
        move || {
            answer(&json!({ "open": true }));
            let _ = listening.obey_all();
            end.now();
            // Whatever the receiver waits for, nobody wants it any more.
            thread::sleep(GRACE);
            std::process::exit(0);
        }
    });
    control.map_err(|error| error.to_string())?;
    receiver.run(&end)
}

/// How long a receiver may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// The thread of a receiving process that answers; what it uses is left out.
struct Listening {
    spec: Spec,
    arrivals: Arc<Arrivals>,
    meter: Arc<Meter>,
    allocations: Option<Allocations>,
    used: u64,
    allocated: u64,
}

impl Listening {
    fn obey_all(&mut self) -> Result<(), String> {
        let meter = Arc::clone(&self.meter);
        let mut line = String::with_capacity(256);
        let mut input = io::stdin().lock();
        loop {
            self.used = meter.used_ns();
            self.allocated = self.allocations.map_or(0, |count| count());
            let excluded = meter.exclude();
            line.clear();
            if matches!(input.read_line(&mut line), Ok(0) | Err(_)) {
                return Ok(());
            }
            let waited = self.wait(line.trim_end())?;
            let allocated = self.allocations.map(|count| count() - self.allocated);
            drop(excluded);
            let cpu_ns = meter.used_ns().saturating_sub(self.used);
            let _excluded = meter.exclude();
            let mut value = match waited {
                Some(value) => value,
                None => report(&self.arrivals),
            };
            value["cpu_ns"] = cpu_ns.into();
            value["allocations"] = json!(allocated);
            answer(&value);
        }
    }

    /// Does what is asked; a report is left to be made when the accounts are closed.
    fn wait(&self, line: &str) -> Result<Option<Value>, String> {
        let (word, count) = line.split_once(' ').unwrap_or((line, ""));
        match (word, count.parse::<u64>()) {
            ("report", _) => Ok(None),
            ("await", Ok(count)) => {
                self.arrivals.await_count(count);
                Ok(Some(json!({})))
            }
            ("doubled", _) => Ok(Some(json!({ "doubled": transport::doubled(&self.spec)? }))),
            ("greeted", _) => {
                let reached = self.arrivals.wait_for_count(GREETED_PATIENCE);
                Ok(Some(json!({ "greeted": reached.at.is_some() })))
            }
            ("reached", _) => {
                let reached = self.arrivals.wait_for_count(probe::SILENCE);
                Ok(Some(json!({ "at": reached.at, "missing": reached.missing })))
            }
            _ => Err(format!("`{line}` is no command")),
        }
    }
}

const GREETED_PATIENCE: Duration = Duration::from_millis(200);

fn report(arrivals: &Arrivals) -> Value {
    let Paced { arrived, damaged, beside } = arrivals.take_paced();
    json!(Report { arrived, damaged, beside, ..Report::default() })
}

#[cfg(test)]
mod tests {
    use super::next_beat;

    #[test]
    fn a_beat_that_has_passed_is_skipped_and_the_next_ones_stay_where_they_were() {
        assert_eq!(next_beat(0, 100, 1007), 1107, "the first begins it");
        assert_eq!(next_beat(1107, 100, 1109), 1207);
        assert_eq!(next_beat(1207, 100, 1430), 1507);
        assert_eq!(next_beat(1507, 0, 1600), 1507, "without a beat it is always due");
    }
}
