//! Processes that end with their test, and waiting for what they print.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use tsuji::{Executor, Node};
use tsuji_platform::child;
pub(crate) use tsuji_platform::child::Signal;
use tsuji_platform::subprocess::{Lines, Subprocess};

/// Cuts a hang. Nothing is expected to take any part of it.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(120);

/// A run-time folder of its own, and an environment without anybody's settings.
pub(crate) struct World {
    folder: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tsuji_platform::process::temporary_path("tsuji-cli-test");
        fs::create_dir(&folder).unwrap();
        Self { folder }
    }

    /// A path for files of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file of the test.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a script that can be run.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes `cert.pem`, a certificate of 127.0.0.1 that its own key has signed, and that as `key.pem`.
    pub(crate) fn certify(&self) -> [PathBuf; 2] {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = made.signing_key.serialize_pem();
        [self.write("cert.pem", &made.cert.pem()), self.write("key.pem", &key)]
    }

    /// The folder in which the processes of this world meet.
    pub(crate) fn run_time(&self) -> PathBuf {
        self.path("run")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_under(&[], arguments)
    }

    /// The command with another in front of it, such as `unshare`.
    pub(crate) fn command_under(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let program = tsuji();
        let program = program.split_whitespace();
        self.foreign(wrapper.iter().copied().chain(program).chain(arguments.iter().copied()))
    }

    /// Another program in the same environment.
    pub(crate) fn foreign<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(&self.folder);
        let foreign = |name: &str| {
            ["ROS_", "TSUJI_", "RMW_", "AMENT_", "CYCLONEDDS", "FAST", "ZENOH"]
                .iter()
                .any(|it| name.starts_with(it))
        };
        for (name, _) in env::vars().filter(|(name, _)| foreign(name)) {
            command.env_remove(name);
        }
        command
            .env_remove("COLUMNS")
            .env_remove("NO_COLOR")
            .env("TSUJI_RUNTIME_DIR", self.run_time())
            // Worlds are kept apart by folders, of which the network knows nothing.
            .env("TSUJI_INTEROP", "none");
        command
    }

    /// Another program in the same environment, which finds `tsuji`.
    pub(crate) fn with_tsuji<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        if !self.path("bin/tsuji").exists() {
            self.script("bin/tsuji", &format!("#!/bin/sh\nexec {} \"$@\"\n", tsuji()));
        }
        let mut command = self.foreign(words);
        let path = env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Running::new(&mut self.command(arguments)).end()
    }

    /// Publishes the same value `count` times as soon as somebody subscribes, and stays until it has gone out.
    pub(crate) fn publish(&self, count: u32, topic: &str, ty: &str, value: &str) {
        let count = count.to_string();
        let quickly = ["-w", "1", "-r", "1000", "-p", "0", "--keep-alive", "1", "-t", &count];
        self.run(&[&["topic", "pub"], &quickly[..], &[topic, ty, value]].concat()).good();
    }

    /// Runs a command to its end with variables of the environment.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
        let mut command = self.command(arguments);
        Running::new(command.envs(variables.iter().copied())).end()
    }

    /// Starts a command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::new(&mut self.command(arguments))
    }

    /// The same with these variables.
    pub(crate) fn start_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Running {
        Running::new(self.command(arguments).envs(variables.iter().copied()))
    }

    /// Runs a command again and again until what it prints is what is waited for.
    pub(crate) fn run_until(&self, arguments: &[&str], done: impl Fn(&Ended) -> bool) -> Ended {
        let began = Instant::now();
        loop {
            let ended = self.run(arguments);
            if done(&ended) {
                return ended;
            }
            assert!(began.elapsed() < WATCHDOG, "waited in vain: {ended:?}");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A process that was started; it is killed if it still runs at the end of the test.
pub(crate) struct Running {
    process: Subprocess,
    seen_out: Vec<String>,
    seen_err: Vec<String>,
}

/// What a process printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl Running {
    pub(crate) fn new(command: &mut Command) -> Self {
        Self::start(command.stdout(Stdio::piped()))
    }

    /// One whose standard output nobody reads, unless the test does itself.
    pub(crate) fn unread(command: &mut Command) -> (PipeReader, Self) {
        let (reader, writer) = io::pipe().unwrap();
        let running = Self::start(command.stdout(writer));
        // The command has the other end as well.
        command.stdout(Stdio::null());
        (reader, running)
    }

    fn start(command: &mut Command) -> Self {
        child::bind(command.stdin(Stdio::null()).stderr(Stdio::piped()));
        let process = Subprocess::start(command, Duration::ZERO).unwrap();
        Self { process, seen_out: Vec::new(), seen_err: Vec::new() }
    }

    /// Waits for a line of standard output.
    pub(crate) fn out(&mut self, wanted: &str) {
        await_line(&self.process.output, &mut self.seen_out, wanted, "standard output");
    }

    /// Waits for a line of standard output, and gives it.
    pub(crate) fn out_line(&mut self, wanted: &str) -> String {
        self.out(wanted);
        self.seen_out.last().cloned().unwrap_or_default()
    }

    /// Waits for lines of standard output, in any order.
    pub(crate) fn out_each(&mut self, wanted: &[&str]) {
        for wanted in wanted {
            if !self.seen_out.iter().any(|it| it.contains(wanted)) {
                self.out(wanted);
            }
        }
    }

    /// Waits for a line of standard error.
    pub(crate) fn err(&mut self, wanted: &str) {
        await_line(&self.process.errors, &mut self.seen_err, wanted, "standard error");
    }

    /// Waits for a line of standard error, and gives it.
    pub(crate) fn err_line(&mut self, wanted: &str) -> String {
        self.err(wanted);
        self.seen_err.last().cloned().unwrap_or_default()
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::Interrupt);
    }

    /// Stops it, as a debugger does, until it is killed.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::Stop);
        let is_stopped = |task: PathBuf| {
            let status = fs::read_to_string(task.join("status")).unwrap_or_default();
            status.lines().any(|it| it.starts_with("State:\tT"))
        };
        let tasks = || fs::read_dir(format!("/proc/{}/task", self.id())).unwrap().flatten();
        let began = Instant::now();
        while !tasks().all(|it| is_stopped(it.path())) {
            assert!(began.elapsed() < WATCHDOG, "it does not stop");
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        assert!(self.process.signal(signal));
    }

    /// Kills it, so that it cannot tidy up.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        let ended = self.process.finish(WATCHDOG).expect("the process does not end");
        let text = |seen: &[String], rest: &[String]| {
            seen.iter().chain(rest).map(|it| format!("{it}\n")).collect::<String>()
        };
        let out = text(&self.seen_out, &ended.output);
        Ended { out, err: text(&self.seen_err, &ended.errors), code: ended.status.code() }
    }

    /// Presses Ctrl-C and waits for the end.
    pub(crate) fn stop(self) -> Ended {
        self.interrupt();
        self.end()
    }
}

impl Ended {
    /// What it printed, after it ended well and without a word on standard error.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self.out
    }

    /// What it said on standard error, after it ended with `code` and without a result.
    #[track_caller]
    pub(crate) fn bad(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{self:?}");
        self.err
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A flow between two processes, by shared memory.
pub(crate) fn flow(world: &World, flags: &[&str]) -> [Running; 2] {
    let text = "std_msgs/msg/String";
    let publish = ["topic", "pub", "-n", "talker", "-r", "50", "/chatter", text];
    let publisher = world.start(&[&publish[..], flags].concat());
    let echo = world.start(&["topic", "echo", "/chatter", text, "--qos-reliability", "reliable"]);
    world.run_until(&["routes", "--json"], |it| it.json()[0]["state"] == "active");
    [publisher, echo]
}

/// A shell script at a terminal of its own, of 80 columns and 24 rows, at which keys are pressed.
pub(crate) struct AtTerminal {
    process: Option<Running>,
    pipe: PathBuf,
    keys: Option<fs::File>,
    shown: Receiver<Vec<u8>>,
    /// What was shown, and how much of it was waited for.
    seen: String,
    awaited: usize,
}

impl AtTerminal {
    /// Runs the script; `None`, and that is said, where nothing makes a terminal here.
    pub(crate) fn start(world: &World, script: &str) -> Option<Self> {
        if !is_there(&["script", "--version"]) {
            return None;
        }
        world.write("run.sh", &format!("stty cols 80 rows 24\n{script}\n"));
        let pipe = world.path("keys");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let at_a_terminal = "exec script -qfec 'sh run.sh' /dev/null < keys";
        let (mut reader, process) =
            Running::unread(&mut world.foreign(["sh", "-c", at_a_terminal]));
        let keys = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let (show, shown) = channel();
        thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if show.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            process: Some(process),
            pipe,
            keys: Some(keys),
            shown,
            seen: String::new(),
            awaited: 0,
        })
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: impl AsRef<[u8]>) {
        self.keys.as_mut().unwrap().write_all(keys.as_ref()).unwrap();
    }

    /// Waits until this is shown, after what was waited for before.
    #[track_caller]
    pub(crate) fn wait(&mut self, wanted: &str) {
        let began = Instant::now();
        loop {
            if let Some(at) = self.seen[self.awaited..].find(wanted) {
                self.awaited += at + wanted.len();
                return;
            }
            let left = WATCHDOG.saturating_sub(began.elapsed());
            match self.shown.recv_timeout(left) {
                // Letters that come in pieces are none that is waited for.
                Ok(bytes) => self.seen += &String::from_utf8_lossy(&bytes),
                Err(error) => {
                    let last: Vec<char> =
                        self.seen[self.awaited..].chars().rev().take(1000).collect();
                    let last: String = last.into_iter().rev().collect();
                    panic!("no {wanted:?}: {error}; last was shown {last:?}");
                }
            }
        }
    }

    /// Takes the terminal away from whoever uses it.
    pub(crate) fn hang_up(mut self) {
        self.process.take().unwrap().kill();
    }

    /// Waits for the end, and answers all that was shown.
    pub(crate) fn end(mut self) -> String {
        self.keys = None;
        let ended = self.process.take().unwrap().end();
        assert_eq!(ended.err, "");
        while let Ok(bytes) = self.shown.recv() {
            self.seen += &String::from_utf8_lossy(&bytes);
        }
        std::mem::take(&mut self.seen)
    }
}

/// The next one has a pipe of its own.
impl Drop for AtTerminal {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.pipe);
    }
}

/// The first line that a process prints, after which nobody reads any more.
pub(crate) fn first_line_then_hang_up(command: &mut Command) -> (String, Ended) {
    let (reader, running) = Running::unread(command);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    (line, running.end())
}

/// Spins a node of this process while `body` runs.
pub(crate) fn spun(node: &Node, body: impl FnOnce()) {
    let done = AtomicBool::new(false);
    let mut executor = Executor::new(node.context()).unwrap();
    executor.add(node).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                executor.spin_once(Duration::from_millis(20)).unwrap();
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        done.store(true, Ordering::Release);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
}

/// The words that run the program. Under emulation the kernel cannot do it by itself.
pub(crate) fn tsuji() -> String {
    let runner = env::var("TSUJI_TEST_RUNNER").unwrap_or_default();
    format!("{runner} {}", env!("CARGO_BIN_EXE_tsuji"))
}

/// Whether a program can be run here; else says in one line what did not run.
pub(crate) fn is_there(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command.status().is_ok_and(|it| it.success());
    if !is_there {
        let _ = writeln!(io::stderr(), "skipped: cannot be run here: {words:?}");
    }
    is_there
}

/// A folder's entries by name.
pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect()
}

#[track_caller]
fn await_line(lines: &Lines, seen: &mut Vec<String>, wanted: &str, what: &str) {
    loop {
        match lines.next(WATCHDOG) {
            Ok(line) => {
                let found = line.contains(wanted);
                seen.push(line);
                if found {
                    return;
                }
            }
            Err(silence) => panic!("no {wanted:?} on {what} ({silence:?}): {seen:#?}"),
        }
    }
}
