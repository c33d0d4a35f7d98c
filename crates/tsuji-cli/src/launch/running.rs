//! Processes from their start to their end.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use tsuji_launch::{End, Order, Plan, Process, Signal, Supervised, Supervision};
use tsuji_platform::child::{self, Reaped};
use tsuji_platform::signals;

use super::guard::Guard;
use super::loading::Loading;
use super::report::{Finish, Level, Print, Report, Said, Voice};
use super::{Loadable, command_line, log_folder};
use crate::failure::Told;
use crate::output;
use crate::session::Globals;

/// A longer line of a process is broken into lines of so many bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The most bytes of a file of output. What comes beyond is not kept, and counted.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// How often is looked whether a group is gone whose first process has ended: nobody tells of the end of its others.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long a launch that was interrupted waits for what is to be printed, once nothing of it runs.
const PRINT_PATIENCE: Duration = Duration::from_secs(2);

/// How long it waits to have told what was not.
const TELL_PATIENCE: Duration = Duration::from_millis(500);

/// What happens to a launch.
#[derive(Debug)]
pub(super) enum Happened {
    /// A signal came.
    Signal(i32),
    /// Of the output.
    Print(Print),
}

pub(super) fn run(
    plan: Plan,
    components: Vec<Loadable>,
    json: bool,
    globals: &Globals,
) -> anyhow::Result<()> {
    let (sender, happened) = mpsc::channel();
    // Before the first child, so that no end of one is missed.
    hear_signals(sender.clone())?;
    child::adopt_orphans().context("cannot take in processes whose parent ends")?;
    let report = Report::start(json, move |print| {
        // After its end the launch needs no more news.
        let _ = sender.send(Happened::Print(print));
    })?;
    let voice = report.voice();
    let log = match plan.processes.iter().any(|it| it.output.is_kept()) {
        true => Some(log_folder()?),
        false => None,
    };
    if let Some(folder) = &log {
        let text = format!("All log files can be found below {}", folder.display());
        let event = json!({ "event": "log", "folder": folder });
        voice.event(Level::Info, "launch", text, event);
    }
    for (text, place) in &plan.messages {
        let event = json!({ "event": "message", "message": text, "place": place.to_string() });
        voice.event(Level::Info, "launch.user", text.clone(), event);
    }
    let loading = match components.is_empty() {
        true => None,
        false => {
            let own = plan.processes.iter().filter_map(|it| it.node.as_deref());
            let own: Vec<&str> = own.collect();
            Some(Loading::start(globals, components, &own, &voice)?)
        }
    };
    let supervised = plan.processes.iter().map(|it| Supervised {
        respawn: it.respawn,
        shuts_down: it.shuts_down,
        patience: it.patience,
    });
    let mut launch = Launch {
        supervision: Supervision::new(supervised.collect()),
        began: Instant::now(),
        pids: vec![None; plan.processes.len()],
        numbers: BTreeMap::new(),
        processes: plan.processes,
        voice,
        guard: Guard::start(),
        log,
        loading,
        interrupts: 0,
    };
    launch.supervise(&happened);
    let is_interrupted = launch.interrupts > 0;
    let is_bad = launch.finish();
    if !is_printed(report.finish(), &happened, is_interrupted) {
        // The thread that prints holds standard output, which whoever returned to would flush, and wait.
        std::process::exit(i32::from(is_bad));
    }
    if is_bad { Err(Told(1).into()) } else { Ok(()) }
}

/// Waits until all is printed. A reader that stands still is waited for until somebody wants the launch to end, and then
/// a little longer; another interrupt meanwhile ends that too. False, which has been told, if it was given up.
fn is_printed(print: Finish, happened: &Receiver<Happened>, is_interrupted: bool) -> bool {
    let mut until = is_interrupted.then(|| Instant::now() + PRINT_PATIENCE);
    loop {
        let news = match until {
            Some(until) => happened.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match news {
            Ok(Happened::Print(Print::Done)) | Err(RecvTimeoutError::Disconnected) => {
                print.join();
                return true;
            }
            Ok(Happened::Signal(SIGCHLD) | Happened::Print(Print::ReaderIsGone)) => {}
            Ok(Happened::Signal(_)) if until.is_none() => {
                until = Some(Instant::now() + PRINT_PATIENCE);
            }
            Ok(Happened::Signal(_)) | Err(RecvTimeoutError::Timeout) => break,
        }
    }
    let unprinted = print.unprinted();
    let (sender, told) = mpsc::channel::<()>();
    // Standard error may be the same terminal, and stand still as well.
    let telling = thread::Builder::new().name("unprinted".to_owned()).spawn(move || {
        let text = format!("about {unprinted} lines were not printed, since nobody read them");
        output::warning(text);
        drop(sender);
    });
    if telling.is_ok() {
        let _ = told.recv_timeout(TELL_PATIENCE);
    }
    false
}

fn hear_signals(sender: Sender<Happened>) -> anyhow::Result<()> {
    let signals = signal_hook::iterator::Signals::new(
        signals::heard(&[SIGINT, SIGTERM, SIGHUP]).into_iter().chain([SIGCHLD]),
    );
    let mut signals = signals.context("cannot hear signals")?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if sender.send(Happened::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

struct Launch {
    processes: Vec<Process>,
    supervision: Supervision,
    began: Instant,
    /// The groups that are there, each by the id of its first process.
    pids: Vec<Option<u32>>,
    /// Which process an id is of, as long as its end was not taken.
    numbers: BTreeMap<u32, usize>,
    voice: Voice,
    guard: Guard,
    log: Option<PathBuf>,
    loading: Option<Loading>,
    interrupts: usize,
}

impl Launch {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Until no process runs. Only this thread starts processes, since the system ends them with it.
    fn supervise(&mut self, happened: &Receiver<Happened>) {
        let mut was_stopping = false;
        loop {
            while let Some(order) = self.supervision.poll(self.now()) {
                self.obey(order);
            }
            if self.supervision.is_stopping() && !was_stopping {
                was_stopping = true;
                if let Some(loading) = &self.loading {
                    loading.stop();
                }
            }
            self.look_at_groups();
            if self.supervision.is_over() && (was_stopping || !self.waits_for_loading()) {
                return;
            }
            let next = self.supervision.timeout().map(|at| at.saturating_sub(self.now()));
            let looks = self.supervision.leaving().next().is_some() || self.supervision.is_over();
            let next =
                if looks { Some(next.map_or(LOOK_AGAIN, |it| it.min(LOOK_AGAIN))) } else { next };
            let news = match next {
                Some(timeout) => happened.recv_timeout(timeout),
                None => happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match news {
                Ok(Happened::Signal(SIGCHLD)) => self.reap(),
                Ok(Happened::Signal(signal)) => self.stop_for(signal),
                Ok(Happened::Print(_)) => self.supervision.stop(self.now()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // Without the thread that hears signals nobody could end the launch.
                    self.supervision.stop(self.now());
                }
            }
        }
    }

    /// Whether components are left to load, into containers of others where no process is left.
    fn waits_for_loading(&self) -> bool {
        self.loading.as_ref().is_some_and(|it| !it.is_idle())
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start(number) => self.start(number),
            Order::Tell(number, signal) => {
                let (word, signal) = match signal {
                    Signal::Interrupt => ("SIGINT", child::Signal::Interrupt),
                    Signal::Terminate => ("SIGTERM", child::Signal::Terminate),
                    Signal::Kill => ("SIGKILL", child::Signal::Kill),
                };
                if let Some(pid) = self.pids[number]
                    && child::tell_group(pid, signal)
                {
                    let label = &self.processes[number].label;
                    let text = format!("sending signal '{word}' to process[{label}]");
                    let event = json!({ "event": "signal", "signal": word });
                    self.tell(Level::Info, number, text, event);
                }
            }
            Order::Respawn(number, delay) => {
                let text = format!("process is started again in {:.1} s", delay.as_secs_f64());
                let event = json!({ "event": "respawn", "delay_s": delay.as_secs_f64() });
                self.tell(Level::Info, number, text, event);
            }
            Order::GiveUp(number) => {
                let most = self.processes[number].respawn.and_then(|it| it.retries_max);
                let most = most.unwrap_or_default();
                let text = format!("process is not started again: it has been {most} times");
                self.tell(Level::Error, number, text, json!({ "event": "given up" }));
            }
            Order::ShutDown(number) => {
                let label = self.processes[number].label.clone();
                let text = format!("process[{label}] has ended, and all others with it");
                let event = json!({ "event": "shutdown", "reason": text });
                self.voice.event(Level::Info, "launch", text, event);
            }
        }
    }

    fn start(&mut self, number: usize) {
        let process = &self.processes[number];
        let mut command = Command::new(&process.argv[0]);
        command.args(&process.argv[1..]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in &process.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(cwd) = &process.cwd {
            command.current_dir(cwd);
        }
        let mut child = match child::spawn(&mut command) {
            Ok(child) => child,
            Err(error) => {
                let text = format!("cannot be started: {error} [cmd '{}']", command_line(process));
                let event = json!({ "event": "not started", "error": error.to_string() });
                self.tell(Level::Error, number, text, event);
                self.supervision.not_started(self.now(), number);
                return;
            }
        };
        let pid = child.id();
        self.guard.began(pid);
        self.pids[number] = Some(pid);
        self.numbers.insert(pid, number);
        let text = format!("process started with pid [{pid}]");
        self.tell(Level::Info, number, text, json!({ "event": "started", "pid": pid }));
        self.read(number, false, child.stdout.take());
        self.read(number, true, child.stderr.take());
        if let (Some(loading), Some(node)) = (&self.loading, &self.processes[number].node) {
            loading.container_started(node);
        }
    }

    /// Reads a stream to its end, in a thread.
    fn read<S: Read + Send + 'static>(
        &mut self,
        number: usize,
        is_standard_error: bool,
        stream: Option<S>,
    ) {
        let Some(stream) = stream else { return };
        let process = &self.processes[number];
        let (label, output) = (process.label.clone(), process.output);
        let file = match &self.log {
            Some(folder) if output.is_kept() => {
                match Kept::open(folder, &label, is_standard_error) {
                    Ok(file) => Some(file),
                    Err(error) => {
                        let text = format!("what it prints is not kept: {error}");
                        let event = json!({ "event": "not kept", "error": error.to_string() });
                        self.tell(Level::Error, number, text, event);
                        None
                    }
                }
            }
            _ => None,
        };
        let voice = self.voice.clone();
        let shown = output.is_shown(is_standard_error);
        let name = if is_standard_error { "stderr" } else { "stdout" };
        let reader = thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
            let line = |line: Vec<u8>| Said::Line {
                number,
                label: label.clone(),
                is_standard_error,
                line,
            };
            read_lines(stream, file, |bytes| {
                if shown {
                    voice.line(line(bytes));
                }
            });
        });
        // Its voice, which is gone when it has ended, is what its end is waited for by.
        if let Err(error) = reader {
            let text = format!("what it prints is not read: {error}");
            let event = json!({ "event": "not read", "error": error.to_string() });
            self.tell(Level::Error, number, text, event);
        }
    }

    fn reap(&mut self) {
        while let Reaped::Ended(pid, status) = child::reap() {
            // Others are those that were adopted.
            let Some(number) = self.numbers.remove(&pid) else { continue };
            self.tell_end(number, pid, status);
            let end = match status.signal() {
                Some(signal) => End::Signalled(signal),
                None => End::Exited(status.code().unwrap_or_default()),
            };
            let is_left = child::group_is_there(pid);
            if !is_left {
                self.pids[number] = None;
                self.guard.ended(pid);
            }
            let was_stopping = self.supervision.is_stopping();
            self.supervision.ended(self.now(), number, end, is_left);
            self.tell_loading(number, was_stopping);
        }
    }

    /// That a container will not come back, unless that is for the end of the launch.
    fn tell_loading(&self, number: usize, was_stopping: bool) {
        let (Some(loading), Some(node)) = (&self.loading, &self.processes[number].node) else {
            return;
        };
        let of_node = self.processes.iter().enumerate();
        let mut of_node = of_node.filter(|(_, it)| it.node.as_ref() == Some(node));
        if !was_stopping && of_node.all(|(number, _)| self.supervision.is_process_over(number)) {
            loading.container_is_over(node);
        }
    }

    fn look_at_groups(&mut self) {
        let leaving: Vec<usize> = self.supervision.leaving().collect();
        if !leaving.is_empty() {
            self.reap();
        }
        for number in leaving {
            if !self.pids[number].is_some_and(child::group_is_there) {
                if let Some(pid) = self.pids[number].take() {
                    self.guard.ended(pid);
                }
                let was_stopping = self.supervision.is_stopping();
                self.supervision.emptied(self.now(), number);
                self.tell_loading(number, was_stopping);
            }
        }
    }

    fn tell_end(&self, number: usize, pid: u32, status: ExitStatus) {
        let event = json!({ "event": "ended", "pid": pid, "code": status.code(), "signal": status.signal() });
        if status.success() {
            let text = format!("process has finished cleanly [pid {pid}]");
            return self.tell(Level::Info, number, text, event);
        }
        // As Python counts, and so launch.
        let code =
            status.signal().map_or_else(|| status.code().unwrap_or_default(), |signal| -signal);
        let command = command_line(&self.processes[number]);
        let text = format!("process has died [pid {pid}, exit code {code}, cmd '{command}']");
        let level = if self.supervision.is_stopping() { Level::Info } else { Level::Error };
        self.tell(level, number, text, event);
    }

    fn stop_for(&mut self, signal: i32) {
        self.interrupts += 1;
        self.supervision.stop(self.now());
        let (word, again) = match signal {
            SIGINT => ("SIGINT", "ctrl-c"),
            SIGTERM => ("SIGTERM", "sigterm"),
            _ => ("SIGHUP", "sighup"),
        };
        let more = if self.interrupts > 1 { " again, so with more force" } else { "" };
        let text = format!("user interrupted with {again} ({word}){more}");
        let event = json!({ "event": "shutdown", "reason": word, "times": self.interrupts });
        self.voice.event(Level::Warning, "launch", text, event);
    }

    fn tell(&self, level: Level, number: usize, text: String, event: serde_json::Value) {
        self.voice.event(level, &self.processes[number].label, text, event);
    }

    /// Ends what is left of processes that went their own way. Whether something went wrong.
    fn finish(mut self) -> bool {
        let not_loaded = self.loading.take().map_or(0, Loading::finish);
        let mut killed = 0_usize;
        let guard = self.guard.id();
        // With its pipe the guard is told to end.
        drop(self.guard);
        loop {
            match child::reap() {
                Reaped::Childless => break,
                Reaped::Ended(..) => {}
                Reaped::Living => {
                    // One that ends may leave others, which are adopted and found the next time.
                    let mut left = child::children().unwrap_or_default();
                    left.retain(|it| Some(*it) != guard);
                    killed += left.len();
                    left.into_iter().for_each(child::kill);
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
        if killed > 0 {
            let text = "processes that had left their groups were killed".to_owned();
            self.voice.event(Level::Warning, "launch", text, json!({ "event": "strays killed" }));
        }
        self.supervision.failed() > 0 || not_loaded > 0
    }
}

/// A file of what a process prints.
struct Kept {
    file: File,
    bytes: u64,
    left_out: u64,
}

impl Kept {
    fn open(folder: &Path, label: &str, is_standard_error: bool) -> io::Result<Self> {
        let stream = if is_standard_error { "stderr" } else { "stdout" };
        let path = folder.join(format!("{}-{stream}.log", label.replace('/', "_")));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, left_out: 0 })
    }

    fn keep(&mut self, line: &[u8]) {
        let bytes = line.len() as u64 + 1;
        if LOG_BYTES_MAX < self.bytes + bytes {
            self.left_out += bytes;
            return;
        }
        self.bytes += bytes;
        let mut whole = line.to_vec();
        whole.push(b'\n');
        if self.file.write_all(&whole).is_err() {
            self.left_out += bytes;
        }
    }

    /// What the last line says if something is missing.
    fn left_out(&self) -> Option<Vec<u8>> {
        let bytes = self.left_out;
        (bytes > 0).then(|| format!("{bytes} bytes of this are not in its file").into_bytes())
    }
}

fn read_lines(stream: impl Read, mut file: Option<Kept>, mut show: impl FnMut(Vec<u8>)) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let limit = LINE_BYTES_MAX as u64;
        match (&mut stream).take(limit).read_until(b'\n', &mut line) {
            // A stream that fails is as one that has ended.
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        if line.ends_with(b"\n") {
            line.pop();
        }
        if let Some(file) = &mut file {
            file.keep(&line);
        }
        show(line);
    }
    if let Some(left_out) = file.and_then(|it| it.left_out()) {
        show(left_out);
    }
}
